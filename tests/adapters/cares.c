// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_cares.h with dnsmasq, which tests/adapters/cares.sh starts, and
// with a name server of this program. From the environment: CARES_SERVER, the address of dnsmasq;
// CARES_UPSTREAM, the port to which it passes queries for names below up.test.
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1
#endif
#include "full.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <ares.h>
static int n_processed; // calls of ares_process_fd
static void process_fd(ares_channel channel, ares_socket_t in, ares_socket_t out) {
    __atomic_add_fetch(&n_processed, 1, __ATOMIC_RELAXED);
    ares_process_fd(channel, in, out);
}
static void begin_query(ares_channel channel, const char *host, const char *service,
                        const struct ares_addrinfo_hints *hints, ares_addrinfo_callback callback,
                        void *block);
static void meet_unlock(volt_mutex *lock);
static void meet_set(volt_event *ended);
static volt_poll meet_wait(volt_cx *cx, volt_pollset *set, volt_pollev *events, size_t n);
#define ares_process_fd process_fd
#define ares_getaddrinfo begin_query
#define volt_mutex_unlock meet_unlock
#define volt_event_set meet_set
#define volt_pollset_wait meet_wait
#include "examples/adapters/volt_cares.h"
#undef ares_getaddrinfo
#undef volt_mutex_unlock
#undef volt_event_set
#undef volt_pollset_wait
#include "cancel.h"
#include "tests/lib/test.h"
#include "log.h"

#include <sys/resource.h>

#define READ(x_) __atomic_load_n(&(x_), __ATOMIC_ACQUIRE)

enum { CAP = 128, HEAD = 12 };

// ---- a name server, as a task: UDP. The address of a host is 10.0.0.n, n being the length of its
// first label. The first letter of the name chooses: f, r, n: SERVFAIL, REFUSED, NXDOMAIN; s: no
// answer; l: the first query is lost; g: the answer is cut in its middle.

typedef struct {
    volt_frame frame;
    volt_addr from;
    int fd, n;
    int *n_asked; // queries for names with l, and for others
    unsigned char msg[512];
} name_server;

// Turns a query into its answer. Returns the length, or 0 if there is none.
static size_t answer(name_server *s, size_t len) {
    unsigned char *name = s->msg + HEAD, label = name[0], letter = name[1];
    const unsigned char record[] = { 0xc0, HEAD, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 0, 0, label };
    size_t end = HEAD + strnlen((char *)name, len - HEAD) + 5; // the 0, type and class
    CHECK(end <= len && end + sizeof record <= sizeof s->msg);
    int is_v4 = s->msg[end - 3] == 1;
    int n = s->n_asked[letter != 'l'] += is_v4;
    if (letter == 's' || (letter == 'l' && n == 1)) return 0;
    s->msg[2] |= 0x84; // an answer, with authority
    s->msg[3] = letter == 'f' ? 2 : letter == 'n' ? 3 : letter == 'r' ? 5 : 0;
    memset(s->msg + 6, 0, 6); // no records
    if (!is_v4 || strchr("fnr", letter)) return end;
    s->msg[7] = 1; // but one: the name again, type A, class IN, address
    memcpy(s->msg + end, record, sizeof record);
    return letter == 'g' ? end + 3 : end + sizeof record;
}
static volt_poll name_server_run(volt_cx *cx, void *arg) {
    name_server *s = (name_server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->n, volt_recvfrom(cx, s->fd, s->msg, sizeof s->msg, 0, &s->from));
        if (s->n < 0) break; // cancelled
        s->n = (int)answer(s, (size_t)s->n);
        if (s->n > 0)
            VOLT_AWAIT(s->n, volt_sendto(cx, s->fd, s->msg, (size_t)s->n, 0, &s->from));
    }
    volt_close(cx, s->fd);
    VOLT_END(0);
}
// Starts it on a port; 0: the kernel chooses. Writes its address to `at`.
static void name_server_start(volt_cx *cx, volt_handle *h, int *n_asked, unsigned port,
                              char at[VOLT_ADDR_TEXT]) {
    name_server s = { .n_asked = n_asked };
    volt_addr here;
    n_asked[0] = n_asked[1] = 0;
    CHECK_EQ(volt_addr_make(&here, "127.0.0.1", port), 0);
    s.fd = volt_udp_open(&here, NULL);
    CHECK(s.fd >= 0);
    CHECK_EQ(volt_local_addr(s.fd, &here), 0);
    CHECK(volt_addr_format(&here, at, VOLT_ADDR_TEXT) > 0);
    CHECK_EQ(VOLT_SPAWN(cx, h, name_server_run, s), 0);
}

// ---- the tests

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_cares *home;
    volt_cares_query query;
    const char *name;
    volt_time at_most;
    volt_addr found[4];
    int n, i;
} asker; // one look-up, in parallel with others

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm left, right;
    cancel_point at;
    volt_handle server;
    volt_cares resolver;
    volt_cares_query query;
    asker first, second, many[100];
    struct {
        volt_frame frame;
        volt_arm ended, late;
    } given_up;
    volt_addr found[CAP];
    volt_time began;
    volt_counters before, after;
    int n, i, n_asked[2], n_fds, is_over;
    char where[VOLT_ADDR_TEXT];
} test;

static void run_with(volt_fn *fn, uint32_t workers) {
    static test s;
    volt_config config = { .workers = workers, .log = { .fn = on_log } };
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}
static void run(volt_fn *fn) { run_with(fn, 0); }

static void open_at(volt_cares *c, const char *server, int try_ms, int tries) {
    static char no_files[] = "b";
    const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS;
    struct ares_options options;
    memset(&options, 0, sizeof options);
    options.flags = ARES_FLAG_NOSEARCH;
    options.timeout = try_ms;
    options.tries = tries;
    options.lookups = no_files;
    CHECK_EQ(volt_cares_open(c, &options, mask), 0);
    CHECK_EQ(ares_set_servers_ports_csv(c->channel, server), ARES_SUCCESS);
}
// dnsmasq may lose queries when hundreds of them are sent at once: they are repeated.
static void open_dnsmasq(volt_cares *c) { open_at(c, getenv("CARES_SERVER"), 1000, 6); }
static VOLT_POLL resolve(volt_cx *cx, test *s, const char *name) {
    return volt_cares_resolve(cx, &s->resolver, &s->query, name, "80", s->found, CAP);
}
// Expects that the address is among the first n.
static void expect(const volt_addr *found, int n, const char *want) {
    volt_addr a;
    CHECK_EQ(volt_addr_parse(&a, want), 0);
    for (int i = 0; i < n; i++)
        if (volt_addr_equal(&found[i], &a)) return;
    test_fail(__FILE__, __LINE__, "%s is not among %d addresses", want, n);
}

static volt_poll names(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    VOLT_AWAIT(s->n, resolve(cx, s, "one.test"));
    CHECK_EQ(s->n, 1);
    expect(s->found, 1, "192.0.2.1:80");
    VOLT_AWAIT(s->n, resolve(cx, s, "both.test"));
    CHECK_EQ(s->n, 2);
    expect(s->found, 2, "192.0.2.2:80");
    expect(s->found, 2, "[2001:db8::2]:80");
    VOLT_AWAIT(s->n, resolve(cx, s, "alias.test"));
    CHECK_EQ(s->n, 1);
    expect(s->found, 1, "192.0.2.1:80");
    VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "both.test", "443", s->found,
                                        1));
    CHECK_EQ(s->n, 1);
    CHECK_EQ(volt_addr_port(&s->found[0]), 443);
    VOLT_AWAIT(s->n, resolve(cx, s, "192.0.2.7")); // asks no server
    CHECK_EQ(s->n, 1);
    expect(s->found, 1, "192.0.2.7:80");
    VOLT_AWAIT(s->n, resolve(cx, s, "2001:db8::7"));
    CHECK_EQ(s->n, 1);
    expect(s->found, 1, "[2001:db8::7]:80");
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(name_gives_its_addresses_of_both_families) { run(names); }

static volt_poll large(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    VOLT_AWAIT(s->n, resolve(cx, s, "many.test"));
    CHECK_EQ(s->n, 100);
    expect(s->found, 100, "198.51.100.1:80");
    expect(s->found, 100, "198.51.100.100:80");
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(answer_that_is_too_long_for_a_datagram_comes_over_tcp) { run(large); }

static volt_poll errors(volt_cx *cx, void *arg) {
    static char long_name[400];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    VOLT_AWAIT(s->n, resolve(cx, s, "none.test"));
    CHECK_EQ(s->n, -ENOENT);
    CHECK_EQ(s->query.status, ARES_ENOTFOUND);
    VOLT_AWAIT(s->n, resolve(cx, s, "text.test")); // it has no address
    CHECK_EQ(s->n, -ENOENT);
    CHECK_EQ(s->query.status, ARES_ENODATA);
    VOLT_AWAIT(s->n, resolve(cx, s, "double..dot"));
    CHECK_EQ(s->n, -EINVAL);
    memset(long_name, 'x', sizeof long_name - 1);
    VOLT_AWAIT(s->n, resolve(cx, s, long_name));
    CHECK_EQ(s->n, -EINVAL);
    VOLT_AWAIT(s->n, resolve(cx, s, NULL));
    CHECK_EQ(s->n, -EINVAL);
    VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "one.test", NULL, s->found,
                                        CAP));
    CHECK_EQ(s->n, -EINVAL);
    VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "one.test", "no such service",
                                        s->found, CAP));
    CHECK_EQ(s->n, -ENOENT);
    VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "one.test", "80", NULL, 0));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, resolve(cx, s, "one.test"));
    CHECK_EQ(s->n, 1);
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(name_that_does_not_exist_or_cannot_be_is_an_error) { run(errors); }
static volt_poll no_ports(volt_cx *cx, void *arg) {
    static const char *const texts[] = { "65616", "4294967376", "80abc", "0x50", "-1", "+80", " 80",
                                         "" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    for (s->i = 0; s->i < (int)(sizeof texts / sizeof texts[0]); s->i++) {
        VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "one.test", texts[s->i],
                                            s->found, CAP));
        CHECK_EQ(s->n, -ENOENT);
        CHECK_EQ(s->query.status, ARES_ESERVICE);
    }
    VOLT_AWAIT(s->n, volt_cares_resolve(cx, &s->resolver, &s->query, "one.test", "065535", s->found,
                                        CAP));
    CHECK(s->n == 1 && volt_addr_port(&s->found[0]) == 65535);
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(text_that_is_no_port_is_not_taken_modulo_65536) { run(no_ports); }

static volt_poll failures(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, (unsigned)atoi(getenv("CARES_UPSTREAM")),
                      s->where);
    open_at(&s->resolver, getenv("CARES_SERVER"), 200, 2);
    VOLT_AWAIT(s->n, resolve(cx, s, "abc.up.test"));
    CHECK_EQ(s->n, 1);
    expect(s->found, 1, "10.0.0.3:80");
    VOLT_AWAIT(s->n, resolve(cx, s, "fail.up.test"));
    CHECK_EQ(s->n, -EAGAIN);
    CHECK(s->query.status == ARES_ESERVFAIL || s->query.status == ARES_ECONNREFUSED); // 1.18
    VOLT_AWAIT(s->n, resolve(cx, s, "none.up.test"));
    CHECK_EQ(s->n, -ENOENT);
    s->began = volt_now();
    VOLT_AWAIT(s->n, resolve(cx, s, "silent.up.test"));
    CHECK_EQ(s->n, -EAGAIN);
    CHECK_EQ(s->query.status, ARES_ETIMEOUT);
    CHECK(volt_now() - s->began >= VOLT_MS(400));
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(server_that_fails_or_is_silent_is_an_error_after_its_time) { run(failures); }

static volt_poll direct(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 100, 3);
    VOLT_AWAIT(s->n, resolve(cx, s, "lossy.test"));
    CHECK_EQ(s->n, 1);
    CHECK_EQ(s->n_asked[0], 2);
    VOLT_AWAIT(s->n, resolve(cx, s, "refused.test"));
    CHECK_EQ(s->n, -EAGAIN);
    CHECK(s->query.status == ARES_EREFUSED || s->query.status == ARES_ECONNREFUSED);
    VOLT_AWAIT(s->n, resolve(cx, s, "garbled.test"));
    CHECK(s->n < 0);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server)); // nothing is there now
    VOLT_AWAIT(s->n, resolve(cx, s, "one.test"));
    CHECK_EQ(s->n, -EAGAIN);
    CHECK(s->query.status == ARES_ECONNREFUSED || s->query.status == ARES_ETIMEOUT);
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(lost_query_is_repeated_and_a_missing_server_is_an_error) { run_with(direct, 1); }

// While a server is silent the worker sleeps, until the moment at which c-ares has something to do.
static volt_poll asleep(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 100, 3);
    volt_stats(volt_cx_rt(cx), &s->before);
    n_processed = 0;
    VOLT_AWAIT(s->n, resolve(cx, s, "silent.test"));
    volt_stats(volt_cx_rt(cx), &s->after);
    CHECK_EQ(s->n, -EAGAIN);
    CHECK(n_processed <= 12);
    CHECK(s->after.polls - s->before.polls <= 24);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(silent_server_costs_a_few_polls_per_try) { run_with(asleep, 1); }

// ---- given up

static volt_poll given_up(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 5000, 4);
    s->n_fds = test_count_fds();
    s->began = volt_now();
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(20), resolve(cx, s, "silent.test")));
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK(volt_now() - s->began < VOLT_S(4));
    CHECK_EQ(test_count_fds(), s->n_fds); // no query and no socket is left
    VOLT_AWAIT(s->n, resolve(cx, s, "abc.test"));
    CHECK_EQ(s->n, 1);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(last_query_that_is_given_up_leaves_nothing_behind) { run_with(given_up, 1); }

static volt_poll ask_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->n, volt_within(cx, &a->limit, a->at_most,
                                 volt_cares_resolve(cx, a->home, &a->query, a->name, "80", a->found,
                                                    4)));
    VOLT_END(a->n);
}
static volt_poll leader_gives_up(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 200, 4);
    s->first = (asker){ .home = &s->resolver, .name = "silent.test", .at_most = VOLT_MS(20) };
    s->second = (asker){ .home = &s->resolver, .name = "lossy.test", .at_most = VOLT_NEVER };
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, ask_run(cx, &s->first)),
                             VOLT_ARM(&s->right, ask_run(cx, &s->second))));
    CHECK_EQ(s->first.n, -ETIMEDOUT);
    CHECK_EQ(s->second.n, 1);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(query_goes_on_when_the_task_that_led_gives_up) { run_with(leader_gives_up, 1); }

// The first query is given up when the second one is lost, which is answered when it is repeated.
static volt_poll give_up(volt_cx *cx, test *s) {
    asker *a = &s->first;
    VOLT_BEGIN(cx, a);
    while (s->n_asked[0] == 0) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
static volt_poll ask_until_it_is_given_up(volt_cx *cx, test *s) {
    VOLT_BEGIN(cx, &s->given_up);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->given_up.ended, resolve(cx, s, "silent.test")),
                           VOLT_ARM(&s->given_up.late, give_up(cx, s))));
    CHECK(!s->given_up.ended.fired);
    VOLT_END(0);
}
static volt_poll answered_last(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 300, 8);
    s->n_fds = test_count_fds();
    s->second = (asker){ .home = &s->resolver, .name = "lossy.test", .at_most = VOLT_NEVER };
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, ask_until_it_is_given_up(cx, s)),
                             VOLT_ARM(&s->right, ask_run(cx, &s->second))));
    CHECK_EQ(s->second.n, 1);
    CHECK_EQ(test_count_fds(), s->n_fds); // no query and no socket is left
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(query_that_is_given_up_is_gone_after_the_last_answer) { run_with(answered_last, 1); }

// The first query is at its second try, which is longer than the first try of the second query.
static volt_poll ask_later(volt_cx *cx, test *s) {
    asker *a = &s->second;
    VOLT_BEGIN(cx, a);
    while (s->n_asked[1] < 2) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    VOLT_AWAIT(a->n, volt_cares_resolve(cx, &s->resolver, &a->query, "lossy.test", "80", a->found,
                                        4));
    CHECK_EQ(a->n, 1);
    CHECK(!s->is_over);
    VOLT_END(0);
}
static volt_poll ask_first(volt_cx *cx, test *s) {
    asker *a = &s->first;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->n, volt_cares_resolve(cx, &s->resolver, &a->query, "silent.test", "80", a->found,
                                        4));
    CHECK_EQ(a->n, -EAGAIN);
    s->is_over = 1;
    VOLT_END(0);
}
static volt_poll earlier(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 600, 2);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, ask_first(cx, s)),
                             VOLT_ARM(&s->right, ask_later(cx, s))));
    CHECK(s->is_over);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(later_query_is_repeated_before_an_earlier_one_ends) { run_with(earlier, 1); }

// The server runs only while the query waits, so that the query has several polls.
static volt_poll cancelled(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 20, 4);
    s->n_fds = test_count_fds();
    while (cancel_next(&s->at)) {
        s->n_asked[0] = 0;
        VOLT_AWAIT(s->n, CANCEL_AT(cx, &s->at, resolve(cx, s, "lossy.test")));
        CHECK_EQ(s->n, cancel_came(&s->at) ? -ECANCELED : 1);
        CHECK_EQ(test_count_fds(), s->n_fds);
        if (s->n > 0) break;
        VOLT_AWAIT(s->n, resolve(cx, s, "abc.test"));
        CHECK_EQ(s->n, 1);
        s->i++;
    }
    CHECK(s->i >= 2);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(query_is_cancelled_at_any_poll_and_leaves_nothing_behind) { run_with(cancelled, 1); }

// ---- many tasks

static volt_poll crowd(volt_cx *cx, void *arg) {
    static const char *const list[] = { "one.test", "both.test", "none.test", "alias.test" };
    static const int wants[] = { 1, 2, -ENOENT, 1 };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    for (s->i = 0; s->i < 100; s->i++)
        s->many[s->i] = (asker){ .home = &s->resolver, .name = list[s->i % 4],
                                 .at_most = VOLT_NEVER };
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(ask_run, s->many)));
    for (s->i = 0; s->i < 100; s->i++) CHECK_EQ(s->many[s->i].n, wants[s->i % 4]);
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(hundred_queries_at_once_have_their_own_answers) { run(crowd); }

// Tasks of their own, on all workers. Those that give up do so at a random time.
typedef struct {
    volt_frame frame;
    asker a;
    int i, is_hasty;
} walker;
static volt_poll walk_run(volt_cx *cx, void *arg) {
    walker *w = (walker *)arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < 20; w->i++) {
        w->a.at_most = w->is_hasty ? (volt_time)RANDOM_BELOW(VOLT_US(800)) : VOLT_NEVER;
        VOLT_AWAIT(ask_run(cx, &w->a));
        if (w->is_hasty && w->a.n == -ETIMEDOUT) continue;
        CHECK_EQ(w->a.n, 1);
        expect(w->a.found, 1, "192.0.2.1:80");
    }
    VOLT_END(0);
}
static volt_poll walk_all(volt_cx *cx, void *arg) {
    static volt_group group;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    for (s->i = 0; s->i < 40; s->i++) {
        walker w = { .a = { .home = &s->resolver, .name = "one.test" }, .is_hasty = s->i % 2 };
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &group, walk_run, w), 0);
    }
    VOLT_AWAIT(s->n, volt_group_wait(cx, &group));
    CHECK_EQ(s->n, 0);
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(tasks_on_all_workers_share_a_resolver_while_others_give_up) { run_with(walk_all, 4); }

// ---- a leader whose query is ended by the call of another task

// The leader is held behind its unlock, until the other call has noted the end of its query, which
// is held in turn, until the leader has left, or waits again.
enum { NOBODY, LEADER_COMES, LEADER_UNLOCKED, QUERY_ENDING, LEADER_LEFT, LEADER_WAITS };
static int meeting, is_broken; // atomic
static volt_cares *meet_at;
static volt_cares_query *meet_query; // that of the leader

static int meet(int from, int to) {
    return __atomic_compare_exchange_n(&meeting, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static void meet_unlock(volt_mutex *lock) {
    volt_mutex_unlock(lock);
    if (!READ(meeting)) return;
    if (lock == &meet_at->lock && meet(LEADER_COMES, LEADER_UNLOCKED))
        UNTIL(READ(meeting) != LEADER_UNLOCKED);
    if (lock == &meet_at->lead) meet(QUERY_ENDING, LEADER_LEFT);
}
static void meet_set(volt_event *ended) {
    if (READ(meeting) && ended == &meet_query->ended && meet(LEADER_UNLOCKED, QUERY_ENDING))
        UNTIL(READ(meeting) != QUERY_ENDING);
    volt_event_set(ended);
}
static volt_poll meet_wait(volt_cx *cx, volt_pollset *set, volt_pollev *events, size_t n) {
    meet(QUERY_ENDING, LEADER_WAITS);
    return volt_pollset_wait(cx, set, events, n);
}
// Begins a query, with a socket that cannot be waited for if a test wants it.
static void begin_query(ares_channel channel, const char *host, const char *service,
                        const struct ares_addrinfo_hints *hints, ares_addrinfo_callback callback,
                        void *block) {
    if (READ(is_broken)) ((volt_cares__block *)block)->home->error = -ENOSPC;
    ares_getaddrinfo(channel, host, service, hints, callback, block);
}
typedef struct {
    volt_frame frame;
    asker *of;
} led;
static volt_poll led_run(volt_cx *cx, void *arg) {
    led *l = (led *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(ask_run(cx, l->of));
    VOLT_END(0);
}
static int has_leader(volt_cares *c) {
    int rc = volt_mutex_try_lock(&c->lead);
    if (rc == 0) volt_mutex_unlock(&c->lead);
    return rc < 0;
}
static volt_poll ended_by_another(volt_cx *cx, void *arg) {
    static volt_group group;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    name_server_start(cx, &s->server, s->n_asked, 0, s->where);
    open_at(&s->resolver, s->where, 60000, 1);
    s->first = (asker){ .home = &s->resolver, .name = "silent.test", .at_most = VOLT_NEVER };
    s->second = s->first;
    meet_at = &s->resolver;
    meet_query = &s->first.query;
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &group, led_run, (led){ .of = &s->first }), 0);
    while (!has_leader(&s->resolver)) VOLT_AWAIT(volt_yield(cx));
    CHECK(meet(NOBODY, LEADER_COMES));
    volt_notify_all(&s->resolver.changed); // wakes the leader, if it waits already
    while (READ(meeting) != LEADER_UNLOCKED) VOLT_AWAIT(volt_yield(cx));
    __atomic_store_n(&is_broken, 1, __ATOMIC_RELEASE);
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &group, led_run, (led){ .of = &s->second }), 0);
    VOLT_AWAIT(s->n, volt_group_wait(cx, &group));
    CHECK_EQ(READ(meeting), LEADER_WAITS); // else its query could be gone before it has ended
    CHECK_EQ(s->first.n, -ENOSPC);
    CHECK_EQ(s->second.n, -ENOSPC);
    volt_cares_close(cx, &s->resolver);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(leader_stays_until_the_call_that_ends_its_query_has_left_the_lock) {
    run_with(ended_by_another, 4);
}

// ---- no room

static volt_poll no_room(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_dnsmasq(&s->resolver);
    for (s->i = 1;; s->i++) {
        full_at = (unsigned)s->i;
        VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(10), resolve(cx, s, "many.test")));
        if (full_at > 0) break; // it was not reached
        CHECK_EQ(s->n, -ENOSPC);
    }
    full_at = 0;
    CHECK_EQ(s->n, 100);
    CHECK(s->i >= 3); // the poll set, and sockets for UDP and TCP
    volt_cares_close(cx, &s->resolver);
    VOLT_END(0);
}
TEST(socket_that_cannot_be_waited_for_is_an_error) { run_with(no_room, 1); }

static volt_poll no_descriptor(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    struct rlimit was, none; // no await below
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = (rlim_t)dup(0);
    close((int)none.rlim_cur);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    s->n = volt_cares_open(&s->resolver, NULL, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
    CHECK(s->n == -EMFILE || s->n == -EIO); // -EIO: c-ares could not read its files
    VOLT_END(0);
}
TEST(resolver_that_cannot_be_opened_leaves_nothing_behind) { run_with(no_descriptor, 1); }
