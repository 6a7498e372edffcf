// SPDX-License-Identifier: MIT OR 0BSD
// Hosts by name: the results that volt_resolve makes from getaddrinfo's answers, tasks that share a
// call or leave one; connecting by name.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#ifdef VOLT_TEST_SMALL // as most programs are built that ship
#  define VOLT_DEBUG 0
#endif
#include <netdb.h>
#include <pthread.h>

// The seam: names that end in ".test" are this file's; threads of the pool cannot be had while a
// test says so.
static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg);
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) test_thread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) pthread_join(thread_, NULL)
static int test_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **list);
#define getaddrinfo test_getaddrinfo
#include "volt.h"
#undef getaddrinfo
#include "test.h"
#include "tasks.h"
#include "json.h"

// ---- a resolver: "N.test" has N addresses, "held.test" waits, others are errors by name

typedef struct {
    int n_calls, n_in, is_open;
} resolver;
static resolver names;
enum { N_DEAD = VOLT__NAMES_MAX };
static unsigned ports[N_DEAD + 1]; // of 127.0.0.1, for "dial.test"
static int n_ports;

static int answer(const char *const *hosts, const unsigned *port, int n, const char *service,
                  struct addrinfo **list) {
    struct addrinfo hints;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    *list = NULL;
    for (int i = n; i-- > 0;) { // each is a list of its own, joined from behind
        char text[8];
        struct addrinfo *one = NULL;
        snprintf(text, sizeof text, "%u", port ? port[i] : 0);
        int rc = getaddrinfo(hosts ? hosts[i] : "127.0.0.1", port ? text : service, &hints, &one);
        if (rc != 0) return rc;
        one->ai_next = *list;
        *list = one;
    }
    return 0;
}
static int test_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **list) {
    static const char *const many[] = { "127.0.0.1", "::1", "127.0.0.3", "127.0.0.4" };
#ifndef VOLT_SINGLE_THREAD
    CHECK(!VOLT_TLS_GET());
#endif
    CHECK_EQ(hints->ai_socktype, SOCK_STREAM);
    COUNT(names.n_calls);
    if (strcmp(host, "3.test") == 0) return answer(many, NULL, 3, service, list);
    if (strcmp(host, "dead6.test") == 0) { // more of one family than are kept
        static const char *hosts[N_DEAD + 1];
        for (int i = 0; i < N_DEAD; i++) hosts[i] = "::1";
        hosts[N_DEAD] = "127.0.0.1";
        return answer(hosts, ports, N_DEAD + 1, service, list);
    }
    if (strcmp(host, "rest.test") == 0) { // and several of the other
        static const char *hosts[N_DEAD + 2];
        static unsigned numbers[N_DEAD + 2];
        for (int i = 0; i < N_DEAD + 2; i++) {
            hosts[i] = i < N_DEAD ? "127.0.0.1" : "::1";
            numbers[i] = 1 + (unsigned)i;
        }
        return answer(hosts, numbers, N_DEAD + 2, service, list);
    }
    if (strcmp(host, "dial.test") == 0) return answer(NULL, ports, n_ports, service, list);
    if (strcmp(host, "service.test") == 0) return EAI_SERVICE;
#ifdef EAI_NODATA
    if (strcmp(host, "nodata.test") == 0) return EAI_NODATA;
#endif
#ifdef EAI_ADDRFAMILY
    if (strcmp(host, "family.test") == 0) return EAI_ADDRFAMILY;
#endif
    if (strcmp(host, "again.test") == 0) return EAI_AGAIN;
    if (strcmp(host, "memory.test") == 0) return EAI_MEMORY;
    if (strcmp(host, "fail.test") == 0) return EAI_FAIL;
    if (strcmp(host, "system.test") == 0) {
        errno = EMFILE;
        return EAI_SYSTEM;
    }
    if (strcmp(host, "nothing.test") == 0) { // a system error without a number
        errno = 0;
        return EAI_SYSTEM;
    }
    if (strcmp(host, "20.test") == 0) {
        const char *const all[20] = { "127.0.0.1", "::1",       "127.0.0.3", "127.0.0.3",
                                      "127.0.0.3", "127.0.0.3", "127.0.0.3", "127.0.0.3",
                                      "127.0.0.3", "127.0.0.3", "127.0.0.3", "127.0.0.3",
                                      "127.0.0.3", "127.0.0.3", "127.0.0.3", "127.0.0.3",
                                      "127.0.0.3", "127.0.0.3", "127.0.0.3", "127.0.0.3" };
        return answer(all, NULL, 20, service, list);
    }
    if (strcmp(host, "long.test") == 0) { // an address of a family that is none of volt's
        int rc = answer(many, NULL, 2, service, list);
        (*list)->ai_addrlen = sizeof(volt_addr) + 1;
        return rc;
    }
    if (strncmp(host, "held", 4) == 0) {
        COUNT(names.n_in);
        UNTIL(READ(names.is_open));
        return answer(many, NULL, 1, service, list);
    }
    return EAI_NONAME;
}
static void reset_names(void) { memset(&names, 0, sizeof names); }

typedef struct {
    volt_frame frame;
    volt_lookup lookup;
    volt_addr addr[24];
    const char *host, *service;
    size_t cap;
    int64_t rc, *out;
    int *n_ended;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_resolve(cx, &a->lookup, a->host, a->service, a->addr, a->cap));
    CHECK(!a->lookup.query_);
    if (a->n_ended) COUNT(*a->n_ended);
    VOLT_END(a->rc);
}
static int64_t ask(volt_rt *rt, const char *host, size_t cap) {
    asker a;
    memset(&a, 0, sizeof a);
    a.host = host;
    a.service = "80";
    a.cap = cap;
    int rc = volt_block_on(rt, asker_run, &a);
    for (int i = 0; i < rc; i++) {
        char text[64];
        CHECK(volt_addr_format(&a.addr[i], text, sizeof text) > 0);
        CHECK_STR(text, i == 0 ? "127.0.0.1:80" : i == 1 ? "[::1]:80" : "127.0.0.3:80");
    }
    return rc;
}
TEST(resolve_maps_answers_of_getaddrinfo_to_results) {
    volt_rt *rt = create_on(1);
    char longest[400];
    CHECK_EQ(ask(rt, "3.test", 4), 3);
    CHECK_EQ(ask(rt, "3.test", 3), 3);
    CHECK_EQ(ask(rt, "3.test", 1), 1);
    CHECK_EQ(ask(rt, "3.test", 0), 0);
    CHECK_EQ(ask(rt, "none.test", 4), -ENOENT);
    CHECK_EQ(ask(rt, "again.test", 4), -EAGAIN);
    CHECK_EQ(ask(rt, "memory.test", 4), -ENOMEM);
    CHECK_EQ(ask(rt, "fail.test", 4), -EIO);
    CHECK_EQ(ask(rt, "system.test", 4), -EMFILE);
    CHECK_EQ(ask(rt, "nothing.test", 4), -EIO);
    CHECK_EQ(ask(rt, "20.test", 24), VOLT__NAMES_MAX); // only the first ones
    int n = READ(names.n_calls);
    memset(longest, 'x', sizeof longest);
    longest[256] = 0;
    CHECK_EQ(ask(rt, longest, 4), -EINVAL);
    CHECK_EQ(READ(names.n_calls), n); // it is not asked for
    longest[255] = 0;
    CHECK_EQ(ask(rt, longest, 4), -ENOENT);
    CHECK_EQ(READ(names.n_calls), n + 1);
    asker a;
    memset(&a, 0, sizeof a);
    a.service = "80";
    CHECK_EQ(volt_block_on(rt, asker_run, &a), -EINVAL); // no host
    memset(&a, 0, sizeof a);
    a.host = "3.test";
    CHECK_EQ(volt_block_on(rt, asker_run, &a), -EINVAL); // no service
    memset(&a, 0, sizeof a);
    a.host = "3.test";
    longest[32] = 0;
    a.service = longest;
    CHECK_EQ(volt_block_on(rt, asker_run, &a), -EINVAL);
    CHECK_EQ(READ(names.n_calls), n + 1);
    memset(&a, 0, sizeof a);
    a.host = "long.test";
    a.service = "80";
    a.cap = 4;
    CHECK_EQ(volt_block_on(rt, asker_run, &a), 1); // left out
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    volt_arm one, two;
    volt_lookup lookup;
    volt_addr addr[4];
    int rc;
} twice;
static volt_poll twice_run(volt_cx *cx, void *arg) {
    twice *t = (twice *)arg;
    VOLT_BEGIN(cx, t);
#define ASK volt_resolve(cx, &t->lookup, "held.test", "1", t->addr, 1)
    VOLT_AWAIT(t->rc, VOLT_JOIN_ALL(VOLT_ARM(&t->one, ASK), VOLT_ARM(&t->two, ASK)));
#undef ASK
    VOLT_END(0);
}
#ifndef VOLT_SINGLE_THREAD // there the first has ended when the second begins
TEST_DIES(lookup_for_two_calls_at_once_is_caught, "volt_lookup is in use by another call") {
    twice t;
    memset(&t, 0, sizeof t);
    (void)run_on(1, twice_run, &t);
}
#endif
static void ask_beside(volt_rt *rt, volt_handle *h, const char *host, int *n_ended) {
    RT_SPAWN(rt, h, asker_run,
             (asker){ .host = host, .service = "80", .cap = 4, .n_ended = n_ended });
}
// Until n of them wait for an answer.
static void until_asked(volt_rt *rt, int n) {
    sink s = { .text = NULL };
    do dump(rt, &s, 0);
    while (count(&s, " for name, ") < n);
    drop(&s);
}
TEST_OF_THREADS(resolve_shares_call_for_same_host_and_service) {
    enum { MANY = 20 };
    volt_handle h[MANY];
    int n_ended = 0;
    reset_names();
    volt_rt *rt = create_on(4);
    ask_beside(rt, &h[0], "held.test", &n_ended);
    UNTIL(READ(names.n_in) == 1);
    volt_handle other = { NULL }; // another service: a call of its own
    RT_SPAWN(rt, &other, asker_run, (asker){ .host = "held.test", .service = "81", .cap = 4 });
    UNTIL(READ(names.n_in) == 2);
    for (int i = 1; i < MANY; i++) ask_beside(rt, &h[i], "held.test", &n_ended);
    until_asked(rt, MANY + 1);
    for (int i = 3; i < MANY; i += 3) volt_cancel(&h[i]); // some leave
    int64_t rc = 0;
    for (int i = 3; i < MANY; i += 3) {
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, -ECANCELED);
    }
    CHECK_EQ(READ(n_ended), (MANY - 1) / 3);
    ask_beside(rt, &h[3], "held.test", &n_ended); // a later task joins the remaining ones
    until_asked(rt, MANY + 1 - (MANY - 1) / 3 + 1);
    WRITE(names.is_open, 1);
    for (int i = 0; i < MANY; i++) {
        if (i > 3 && i % 3 == 0) continue;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 1);
    }
    CHECK_EQ(volt_join_sync(&other, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, 1);
    CHECK_EQ(READ(names.n_calls), 2);
    destroy(rt);
}
TEST_OF_THREADS(cancelled_resolve_leaves_its_call_running) {
    volt_handle h = { NULL };
    int64_t rc = 0;
    reset_names();
    volt_rt *rt = create_on(2);
    ask_beside(rt, &h, "held.test", NULL);
    UNTIL(READ(names.n_in) == 1);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0); // while the call hangs
    CHECK_EQ(rc, -ECANCELED);
    ask_beside(rt, &h, "held.test", NULL); // no task was left in the call: a new one
    UNTIL(READ(names.n_in) == 2);
    while (volt_shutdown(rt, VOLT_MS(20)) != 2) {} // all tasks have ended; two calls hang
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    volt_detach(&h);
    WRITE(names.is_open, 1);
    destroy(rt);
}
TEST_OF_THREADS(resolve_runs_at_most_pool_names_calls_at_once) {
    enum { MANY = VOLT_POOL_NAMES + 3 };
    static const char *const hosts[MANY] = { "held0", "held1", "held2", "held3",
                                             "held4", "held5", "held6" };
    volt_handle h[MANY];
    int64_t rc = 0;
    reset_names();
    volt_rt *rt = create_on(2);
    for (int i = 0; i < MANY; i++) ask_beside(rt, &h[i], hosts[i], NULL);
    UNTIL(READ(names.n_in) == VOLT_POOL_NAMES);
    volt_counters s;
    do volt_stats(rt, &s);
    while (s.blocking_queued != 3);
    // the waiting ones are taken back: no task needs them
    volt_cancel(&h[0]);
    for (int i = 0; i < MANY; i++) volt_cancel(&h[i]);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, -ECANCELED);
    }
    volt_stats(rt, &s);
    CHECK_EQ(s.blocking_queued, 0);
    CHECK_EQ(READ(names.n_calls), VOLT_POOL_NAMES);
    WRITE(names.is_open, 1);
    destroy(rt);
}
TEST_OF_THREADS(resolve_without_memory_gives_enomem) {
    reset_names();
    volt_rt *rt = create_on(1);
    CHECK_EQ(ask(rt, "3.test", 4), 3); // slabs are there, and a thread that rests
    test_heap.is_sticky = 1;
    test_heap.fail_at = READ(test_heap.n_allocs) + 1;
    CHECK_EQ(ask(rt, "3.test", 4), -ENOMEM);
    test_heap.fail_at = 0;
    CHECK_EQ(ask(rt, "3.test", 4), 3);
    destroy(rt);
}
// All threads of the lane are just being started, and one more call waits for them, when it turns
// out that none can be.
static volt_rt *in_vain; // its creations fail, once a call is queued behind them
static int n_in_vain;
static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    volt_counters s;
    if (!READ(in_vain)) return pthread_create(thread, attr, fn, arg);
    if (COUNT(n_in_vain) == VOLT_POOL_NAMES) { // the last one looks, the others wait for it
        do volt_stats(in_vain, &s);
        while (s.blocking_queued == 0);
        COUNT(n_in_vain);
    }
    UNTIL(READ(n_in_vain) > VOLT_POOL_NAMES);
    return EAGAIN;
}
TEST_OF_THREADS(resolve_without_threads_fails_every_queued_call) {
    enum { MANY = VOLT_POOL_NAMES + 1 };
    static const char *const hosts[MANY] = { "held0", "held1", "held2", "held3", "held4" };
    volt_handle h[MANY];
    int64_t rc = 0;
    reset_names();
    test_starts_all = 1;
    volt_rt *rt = create_on(MANY);
    UNTIL(volt__started(rt) == MANY);
    WRITE(in_vain, rt);
    for (int i = 0; i < MANY; i++) ask_beside(rt, &h[i], hosts[i], NULL);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, -EAGAIN);
    }
    WRITE(in_vain, NULL);
    CHECK_EQ(READ(names.n_calls), 0);
    CHECK_EQ(ask(rt, "3.test", 4), 3);
    destroy(rt);
}
// Cancelled, and asks all the same, more often than a budget has units.
typedef struct {
    volt_frame frame;
    volt_lookup lookup;
    volt_addr addr;
    int i, rc;
} deaf;
static volt_poll deaf_run(volt_cx *cx, void *arg) {
    deaf *s = (deaf *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep_forever(cx));
    for (s->i = 0; s->i < 300; s->i++) {
        VOLT_AWAIT(s->rc, volt_resolve(cx, &s->lookup, "3.test", "80", &s->addr, 1));
        CHECK_EQ(s->rc, -ECANCELED);
    }
    VOLT_END(s->i);
}
TEST(cancelled_resolve_costs_budget) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    volt_counters s;
    int64_t rc;
    reset_names();
    RT_SPAWN(rt, &h, deaf_run, (deaf){ .i = 0 });
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, 300);
    CHECK_EQ(names.n_calls, 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt_stats(rt, &s);
    CHECK(s.polls > 300 / 128); // a budget is 128
    destroy(rt);
}
// For each code that the system has for it, and by a call each time: the answer is not kept.
TEST(resolve_of_unknown_host_or_service_gives_enoent) {
    static const char *const hosts[] = { "none.test", "service.test", "nodata.test",
                                         "family.test", "none.test" };
    volt_rt *rt = create_on(1);
    reset_names();
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(ask(rt, hosts[i], 4), -ENOENT);
        CHECK_EQ(READ(names.n_calls), i + 1);
    }
    CHECK_EQ(ask(rt, "3.test", 4), 3);
    destroy(rt);
}
// getaddrinfo takes any number, modulo 65536. The name of a service may begin with a digit.
ROOT_TEST_1(resolve_of_a_number_that_is_no_port_gives_enoent, {
    volt_lookup lookup;
    volt_addr addr;
    int64_t rc;
    int i;
}) {
    static const char *const wrong[] = { "65536", "4294967376", "99999999999999999999", "+80",
                                         "-1", " 80", "\t80" };
    static const char *const right[] = { "0", "65535", "00080", "9pfs", "80a", "http", "\1" };
    VOLT_BEGIN(cx, s);
    reset_names();
    for (s->i = 0; s->i < 7; s->i++) {
        VOLT_AWAIT(s->rc, volt_resolve(cx, &s->lookup, "3.test", wrong[s->i], &s->addr, 1));
        CHECK_EQ(s->rc, -ENOENT);
    }
    CHECK_EQ(names.n_calls, 0);
    for (s->i = 0; s->i < 7; s->i++) { // the resolver of this test knows no services
        VOLT_AWAIT(s->rc, volt_resolve(cx, &s->lookup, "3.test", right[s->i], &s->addr, 1));
        CHECK_EQ(s->rc, s->i < 3 ? 1 : -ENOENT);
        CHECK_EQ(names.n_calls, s->i + 1);
    }
    VOLT_END(0);
}

// ---- connecting

static int listen_on(unsigned *port, int backlog) {
    volt_addr a;
    volt_listen_options options;
    memset(&options, 0, sizeof options);
    options.backlog = backlog;
    int fd = volt_listen("127.0.0.1", 0, &options);
    CHECK(fd >= 0);
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    *port = (unsigned)volt_addr_port(&a);
    return fd;
}
// A port on which no socket listens.
static unsigned closed_port(void) {
    unsigned port;
    close(listen_on(&port, 1));
    return port;
}
// A port whose listener never accepts and has a full backlog: attempts hang.
typedef struct {
    int fd, full[8];
} hanging;
static unsigned hang_port(hanging *h) {
    unsigned port;
    volt_addr a;
    h->fd = listen_on(&port, 1);
    CHECK_EQ(volt_local_addr(h->fd, &a), 0);
    for (int i = 0; i < 8; i++) {
        h->full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = connect(h->full[i], (const struct sockaddr *)(const void *)a.sa_, a.len_);
        CHECK(rc == 0 || errno == EINPROGRESS);
    }
    return port;
}
static void unhang(hanging *h) {
    for (int i = 0; i < 8; i++) close(h->full[i]);
    close(h->fd);
}
typedef struct {
    volt_frame frame;
    volt_dial dial;
    volt_timer limit;
    volt_time at_most;
    int64_t fd;
    int port;
} dialler;
static volt_poll dialler_run(volt_cx *cx, void *arg) {
    dialler *d = (dialler *)arg;
    VOLT_BEGIN(cx, d);
    volt_addr a;
    VOLT_AWAIT(d->fd, volt_within(cx, &d->limit, d->at_most,
                                  volt_tcp_connect(cx, &d->dial, "dial.test", "80")));
    if (d->fd < 0) VOLT_RETURN(d->fd);
    CHECK_EQ(volt_peer_addr((int)d->fd, &a), 0);
    d->port = volt_addr_port(&a);
    volt_close(cx, (int)d->fd);
    VOLT_END(0);
}
static int64_t dial(int n, int *port) {
    dialler d;
    memset(&d, 0, sizeof d);
    d.at_most = VOLT_S(2);
    n_ports = n;
    int rc = run_on(1, dialler_run, &d);
    *port = d.port;
    return rc;
}
typedef struct {
    volt_frame frame;
    volt_dial dial;
    int64_t fd;
} reacher;
static volt_poll reacher_run(volt_cx *cx, void *arg) {
    reacher *r = (reacher *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->fd, volt_tcp_connect(cx, &r->dial, "dead6.test", "80"));
    if (r->fd >= 0) volt_close(cx, (int)r->fd);
    VOLT_END(r->fd < 0 ? r->fd : 0);
}
TEST(many_dead_addresses_of_one_family_do_not_hide_the_other) {
    static reacher r;
    memset(&r, 0, sizeof r);
    unsigned open_port, bad = closed_port();
    int fd = listen_on(&open_port, 16);
    for (int i = 0; i <= N_DEAD; i++) ports[i] = i == N_DEAD ? open_port : bad;
    CHECK_EQ(run_on(1, reacher_run, &r), 0);
    close(fd);
}
// Of an answer that is too long, the first address of the other family takes the last place.
TEST(one_address_of_other_family_is_kept_behind_many) {
    static asker a;
    volt_rt *rt = create_on(1);
    a.host = "rest.test";
    a.service = "80";
    a.cap = sizeof a.addr / sizeof a.addr[0];
    CHECK_EQ(volt_block_on(rt, asker_run, &a), VOLT__NAMES_MAX);
    for (int i = 0; i < VOLT__NAMES_MAX; i++) {
        int is_last = i == VOLT__NAMES_MAX - 1;
        CHECK_EQ(volt_addr_family(&a.addr[i]), is_last ? AF_INET6 : AF_INET);
        CHECK_EQ(volt_addr_port(&a.addr[i]), is_last ? VOLT__NAMES_MAX + 1 : i + 1);
    }
    destroy(rt);
}
TEST(resolve_alternates_families_and_keeps_their_order) {
    static volt__query q;
    static const char *const all[] = { "[::1]:1", "[::1]:2", "127.0.0.1:3", "[::1]:4",
                                       "127.0.0.1:5", "[::1]:6" };
    static const int in_turn[] = { 1, 3, 2, 5, 4, 6 };
    volt_addr out[6];
    q.rc = 6;
    for (int i = 0; i < 6; i++) CHECK_EQ(volt_addr_parse(&q.addr[i], all[i]), 0);
    for (int64_t cap = 0; cap <= 6; cap++) {
        CHECK_EQ(volt__resolve_result(&q, out, (size_t)cap, 1), cap);
        for (int i = 0; i < cap; i++) CHECK_EQ(volt_addr_port(&out[i]), in_turn[i]);
    }
    q.rc = 2; // of one family
    CHECK_EQ(volt__resolve_result(&q, out, 6, 1), 2);
    CHECK_EQ(volt_addr_port(&out[1]), 2);
}
TEST(dial_gives_first_address_that_connects) {
    int port;
    hanging h;
    unsigned open_port, bad = closed_port();
    int fd = listen_on(&open_port, 16);
    for (int at = 0; at < VOLT_DIAL_MAX; at++) { // refused at once: the next one is tried
        for (int i = 0; i < VOLT_DIAL_MAX; i++) ports[i] = i == at ? open_port : bad;
        CHECK_EQ(dial(VOLT_DIAL_MAX, &port), 0);
        CHECK_EQ(port, open_port);
    }
    for (int i = 0; i < VOLT_DIAL_MAX; i++) ports[i] = bad;
    for (int n = 1; n <= VOLT_DIAL_MAX; n++) CHECK_EQ(dial(n, &port), -ECONNREFUSED);
    unsigned hang = hang_port(&h);
    ports[0] = hang;
    ports[1] = open_port;
    volt_time start = volt_now(); // one that hangs is not waited for
    CHECK_EQ(dial(2, &port), 0);
    CHECK_EQ(port, open_port);
    CHECK(volt_now() - start >= VOLT__DIAL_STAGGER);
    // the third starts when the second has failed, or after the second has had its time
    ports[2] = open_port;
    for (int i = 0; i < 2; i++) {
        ports[1 - i] = bad;
        ports[i] = hang;
        volt_time least = VOLT_NEVER; // of a few: the machine may be busy
        for (int tries = 0; tries < 5 && least >= 2 * VOLT__DIAL_STAGGER; tries++) {
            start = volt_now();
            CHECK_EQ(dial(3, &port), 0);
            CHECK_EQ(port, open_port);
            CHECK(volt_now() - start >= VOLT__DIAL_STAGGER);
            if (volt_now() - start < least) least = volt_now() - start;
        }
        CHECK(least < 2 * VOLT__DIAL_STAGGER);
    }
    ports[0] = hang;
    CHECK_EQ(dial(1, &port), -ETIMEDOUT); // ours; nothing is left open
    unhang(&h);
    n_ports = 0;
    CHECK_EQ(dial(0, &port), -ENOENT);
    close(fd);
}
// Until the first attempt has begun, which hangs; may overwrite a frame then.
typedef struct {
    volt_frame frame;
    awaiter looks;
    const int *n_started;
    volt_frame *spoilt; // or NULL
} watcher;
static volt_poll watcher_run(volt_cx *cx, watcher *w) {
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(until_reaches(cx, &w->looks, w->n_started, 1));
    if (w->spoilt) w->spoilt->node_.resume_line_ = 12345;
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_arm watch, dial;
    watcher watcher;
    dialler dialler;
    int rc;
} watched;
static volt_poll watched_run(volt_cx *cx, void *arg) {
    watched *w = (watched *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, VOLT_SELECT_BIASED(VOLT_ARM(&w->watch, watcher_run(cx, &w->watcher)),
                                         VOLT_ARM(&w->dial, dialler_run(cx, &w->dialler))));
    VOLT_END(w->rc);
}
static int run_watched(watched *w) {
    hanging h;
    w->dialler.at_most = VOLT_S(1000);
    w->watcher.n_started = &w->dialler.dial.n_started_;
    n_ports = VOLT_DIAL_MAX;
    ports[0] = hang_port(&h);
    for (int i = 1; i < VOLT_DIAL_MAX; i++) ports[i] = ports[0];
    int rc = run_on(1, watched_run, w);
    unhang(&h);
    return rc;
}
// One that is cancelled fails, and the turn of the next one comes, which is cancelled as well.
TEST(cancelled_dial_attempt_is_not_followed_by_another) {
    static watched w;
    CHECK_EQ(run_watched(&w), 0);
    CHECK_EQ(w.dial.value, -ECANCELED);
    CHECK_EQ(w.dialler.dial.n_started_, 1);
}
// A task overwrites the memory of one that waits.
TEST_DIES(overwritten_dial_frame_is_caught, "the frame is not zeroed or not its own") {
    static watched w;
    w.watcher.spoilt = &w.dialler.dial.frame;
    run_watched(&w);
}
TEST_DIES(overwritten_dial_attempt_is_caught, "the frame is not zeroed or not its own") {
    static watched w;
    w.watcher.spoilt = &w.dialler.dial.attempt_[0].frame;
    run_watched(&w);
}

// ---- what a dump says of them

typedef struct {
    volt_frame frame;
    volt_addr to;
    int64_t fd;
} connecter;
static volt_poll connecter_run(volt_cx *cx, void *arg) {
    connecter *c = (connecter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd, volt_connect(cx, &c->to));
    VOLT_END(0);
}
TEST_OF_THREADS(dump_names_waits_for_name_and_connect) {
    sink s = { .text = NULL };
    hanging h;
    volt_handle asks = { NULL };
    int n_ended = 0;
    reset_names();
    volt_rt *rt = create_on(1);
    unsigned port = hang_port(&h);
    connecter c;
    memset(&c, 0, sizeof c);
    char at[32];
    snprintf(at, sizeof at, "127.0.0.1:%u", port);
    CHECK_EQ(volt_addr_parse(&c.to, at), 0);
    ask_beside(rt, &asks, "held1.test", &n_ended);
    RT_SPAWN(rt, NULL, connecter_run, c);
    do dump(rt, &s, 0);
    while (count(&s, ": waiting at ") < 2);
    CHECK_EQ(count(&s, " for name, "), 1);
    CHECK_EQ(count(&s, " for connect fd "), 1);
    WRITE(names.is_open, 1);
    CHECK_EQ(volt_join_sync(&asks, VOLT_NEVER, NULL), 0);
    unhang(&h);
    drop(&s);
    destroy(rt);
}
