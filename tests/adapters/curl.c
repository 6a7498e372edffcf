// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_curl.h with real servers, which tests/adapters/curl.sh starts,
// and with servers of this program that end badly or are slow. From the environment, all on
// 127.0.0.1:
//   CURL_EXAMPLE     06_http
//   CURL_HTTP        nginx, with the files /data and /part
//   CURL_HTTPS       the same with TLS and HTTP/2; its certificate is the file CURL_AUTHORITY
//   CURL_UNTRUSTED   the same with another certificate
//   CURL_DYING       the address of a further nginx, by the configuration CURL_DYING_FILE, which a
//                    test starts and kills; its answers take some seconds
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1
#endif
#include "full.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_curl.h"
#include "cancel.h"
#include "pace.h"
#include "tests/lib/test.h"
#include "log.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/resource.h>

#define READ(x_) __atomic_load_n(&(x_), __ATOMIC_ACQUIRE)
#define WRITE(x_, v_) __atomic_store_n(&(x_), (v_), __ATOMIC_RELEASE)

static const char pattern[] = "0123456789abcdef\n"; // /data repeats it
enum { PATTERN = sizeof pattern - 1, DATA = 1 << 18, PART = 10000 };

// ---- a transfer with its handle and its result

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_curl *home;
    volt_curl_transfer transfer;
    CURL *easy;
    volt_time at_most;
    size_t n_bytes;
    int is_other; // a byte was not that of /data
    long status, n_connects, version;
    int rc, begun; // begun: bytes have come
} fetch;

static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
    fetch *f = (fetch *)user;
    for (size_t i = 0; i < size * n; i++)
        f->is_other |= bytes[i] != pattern[(f->n_bytes + i) % PATTERN];
    f->n_bytes += size * n;
    WRITE(f->begun, 1);
    return size * n;
}
// Makes the handle of a fetch.
static fetch *prepare(fetch *f, volt_curl *home, const char *base, const char *path) {
    char url[300];
    memset(f, 0, sizeof *f);
    f->home = home;
    f->at_most = VOLT_NEVER;
    f->easy = curl_easy_init();
    CHECK(f->easy);
    snprintf(url, sizeof url, "%s%s", base, path);
    curl_easy_setopt(f->easy, CURLOPT_URL, url);
    curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(f->easy, CURLOPT_CAINFO, getenv("CURL_AUTHORITY"));
    return f;
}
// Prepares one that opens a connection of its own and closes it.
static fetch *prepare_alone(fetch *f, volt_curl *home, const char *base, const char *path) {
    prepare(f, home, base, path);
    curl_easy_setopt(f->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(f->easy, CURLOPT_FORBID_REUSE, 1L);
    return f;
}
// Transfers and cleans up.
static volt_poll fetch_run(volt_cx *cx, void *arg) {
    fetch *f = (fetch *)arg;
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(f->rc, volt_within(cx, &f->limit, f->at_most,
                                  volt_curl_perform(cx, f->home, &f->transfer, f->easy)));
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &f->status);
    curl_easy_getinfo(f->easy, CURLINFO_NUM_CONNECTS, &f->n_connects);
    curl_easy_getinfo(f->easy, CURLINFO_HTTP_VERSION, &f->version);
    curl_easy_cleanup(f->easy);
    VOLT_END(f->rc);
}
static void expect(const fetch *f, size_t n_bytes) {
    CHECK_EQ(f->rc, 0);
    CHECK_EQ(f->transfer.code, CURLE_OK);
    CHECK_EQ(f->status, 200);
    CHECK_EQ(f->n_bytes, n_bytes);
    CHECK(!f->is_other);
}
static void expect_data(const fetch *f) { expect(f, DATA); }

// ---- a server that gives one answer to each connection, whatever it is asked

typedef struct {
    volt_frame frame;
    const char *says;
    int listener, fd, is_reset, n;
    char request[2000];
} bad_server;
static volt_poll bad_server_run(volt_cx *cx, void *arg) {
    bad_server *s = (bad_server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->fd, volt_accept(cx, s->listener));
        if (s->fd < 0) break; // cancelled
        VOLT_AWAIT(s->n, volt_read(cx, s->fd, s->request, sizeof s->request));
        VOLT_AWAIT(s->n, volt_write_all(cx, s->fd, s->says, strlen(s->says)));
        (s->is_reset ? volt_close_reset : volt_close)(cx, s->fd);
    }
    VOLT_END(0);
}
// Writes the URL of a listener.
static void url_of(int listener, char url[64]) {
    volt_addr here;
    CHECK_EQ(volt_local_addr(listener, &here), 0);
    snprintf(url, 64, "http://127.0.0.1:%d/", volt_addr_port(&here));
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm left, right;
    cancel_point at;
    volt_handle server;
    volt_curl curl;
    volt_curl_resumer resumer;
    volt_process process;
    volt_process_options options;
    fetch one, two, many[20];
    volt_time began;
    volt_counters before, after;
    const char *argv[8];
    int n, i, n_fds, listener;
    char url[64];
} test;

static void run_with(volt_fn *fn, uint32_t workers) {
    static test s;
    volt_config config = { .workers = workers, .log = { .fn = on_log } };
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}
static void run(volt_fn *fn) { run_with(fn, 0); }

// ---- transfers that complete

static volt_poll plain(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    prepare(&s->one, &s->curl, getenv("CURL_EXAMPLE"), "/");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, 0);
    CHECK_EQ(s->one.status, 200);
    CHECK_EQ(s->one.n_bytes, 52);
    CHECK_EQ(s->one.n_connects, 1);
    prepare(&s->one, &s->curl, getenv("CURL_EXAMPLE"), "/nothing"); // by the same connection
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, 0);
    CHECK_EQ(s->one.status, 404);
    CHECK_EQ(s->one.n_connects, 0);
    prepare(&s->one, &s->curl, getenv("CURL_EXAMPLE"), "/echo");
    curl_easy_setopt(s->one.easy, CURLOPT_POSTFIELDS, "0123456789abcdef\n0123");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, 0);
    CHECK_EQ(s->one.n_bytes, 21);
    CHECK(!s->one.is_other);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(transfers_over_http_use_an_open_connection_again) { run(plain); }

static volt_poll versions(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    prepare(&s->one, &s->curl, getenv("CURL_HTTP"), "/data");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    expect_data(&s->one);
    prepare(&s->one, &s->curl, getenv("CURL_HTTPS"), "/data");
    curl_easy_setopt(s->one.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    VOLT_AWAIT(fetch_run(cx, &s->one));
    expect_data(&s->one);
    CHECK_EQ(s->one.version, CURL_HTTP_VERSION_1_1);
    prepare_alone(&s->one, &s->curl, getenv("CURL_HTTPS"), "/data");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    expect_data(&s->one);
    CHECK_EQ(s->one.version, CURL_HTTP_VERSION_2_0);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(body_passes_over_http_and_https_and_http_2) { run(versions); }

static volt_poll multiplexed(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    for (s->i = 0; s->i < 20; s->i++) {
        prepare(&s->many[s->i], &s->curl, getenv("CURL_HTTPS"), "/data");
        curl_easy_setopt(s->many[s->i].easy, CURLOPT_PIPEWAIT, 1L);
    }
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(fetch_run, s->many)));
    for (s->n = s->i = 0; s->i < 20; s->i++) {
        expect_data(&s->many[s->i]);
        s->n += (int)s->many[s->i].n_connects;
    }
    CHECK_EQ(s->n, 1);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(twenty_transfers_at_once_share_a_connection_of_http_2) { run(multiplexed); }

// ---- servers that are refused, or end badly

static volt_poll untrusted(volt_cx *cx, void *arg) {
    static const char *const because[] = { "another authority", "another name", "no authority" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    for (s->i = 0; s->i < 3; s->i++) {
        prepare(&s->one, &s->curl, getenv(s->i == 0 ? "CURL_UNTRUSTED" : "CURL_HTTPS"), "/data");
        if (s->i == 1) { // the certificate is for the address
            const char *port = strrchr(getenv("CURL_HTTPS"), ':');
            snprintf(s->url, sizeof s->url, "https://localhost%s/data", port);
            curl_easy_setopt(s->one.easy, CURLOPT_URL, s->url);
        }
        if (s->i == 2) curl_easy_setopt(s->one.easy, CURLOPT_CAINFO, NULL);
        if (s->i == 2) curl_easy_setopt(s->one.easy, CURLOPT_CAPATH, NULL);
        VOLT_AWAIT(fetch_run(cx, &s->one));
        if (s->one.rc != -EKEYREJECTED)
            test_fail(__FILE__, __LINE__, "%s: %s", because[s->i], volt_strerror(s->one.rc));
        CHECK_EQ(s->one.n_bytes, 0);
    }
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(certificate_that_is_not_trusted_ends_the_transfer) { run(untrusted); }

static volt_poll cut(volt_cx *cx, void *arg) {
    static const struct {
        const char *says;
        int is_reset, rc;
    } ends[] = {
        { "", 0, -ECONNABORTED },
        { "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123", 0, -ECONNABORTED },
        { "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123", 1, -ECONNABORTED },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n0123", 0, -ECONNABORTED },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n", 0, -ECONNABORTED },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, -ECONNABORTED },
        { "+OK this is POP3\r\n", 0, -EPROTONOSUPPORT },
        { "HTTP/1.1 200 OK\r\n\r\n0123", 0, 0 }, // the end of the connection ends the body
    };
    enum { N = sizeof ends / sizeof ends[0] };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    url_of(s->listener, s->url);
    for (s->i = 0; s->i < N; s->i++) {
        bad_server b = { .listener = s->listener, .says = ends[s->i].says,
                         .is_reset = ends[s->i].is_reset };
        CHECK_EQ(VOLT_SPAWN(cx, &s->server, bad_server_run, b), 0);
        prepare(&s->one, &s->curl, s->url, "");
        VOLT_AWAIT(fetch_run(cx, &s->one));
        if (s->one.rc != ends[s->i].rc)
            test_fail(__FILE__, __LINE__, "end %d: %s, %s", s->i, volt_strerror(s->one.rc),
                      curl_easy_strerror(s->one.transfer.code));
        volt_cancel(&s->server);
        VOLT_AWAIT(volt_join(cx, &s->server));
    }
    volt_close(cx, s->listener);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(truncated_answer_is_not_taken_for_a_complete_one) { run(cut); }

// Kills the server of another arm when that has received a part of its body.
static volt_poll kill_in_the_middle(volt_cx *cx, test *s) {
    fetch *f = &s->two; // its frame serves this function
    VOLT_BEGIN(cx, f);
    while (!READ(s->one.begun)) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(volt_process_signal(&s->process, SIGKILL), 0);
    VOLT_AWAIT(f->rc, volt_process_wait(cx, &s->process, NULL));
    CHECK_EQ(f->rc, 0);
    VOLT_END(0);
}
static volt_poll dying(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->argv[0] = "nginx", s->argv[1] = "-e", s->argv[2] = "stderr";
    s->argv[3] = "-c", s->argv[4] = getenv("CURL_DYING_FILE");
    s->options.argv = s->argv;
    VOLT_AWAIT(s->n, volt_process_start(cx, &s->process, &s->options));
    CHECK_EQ(s->n, 0);
    do { // until it listens
        prepare(&s->one, &s->curl, getenv("CURL_DYING"), "/nothing");
        VOLT_AWAIT(fetch_run(cx, &s->one));
        if (s->one.rc < 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(10)));
    } while (s->one.rc == -ECONNREFUSED);
    CHECK_EQ(s->one.status, 404);
    prepare(&s->one, &s->curl, getenv("CURL_DYING"), "/data");
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, fetch_run(cx, &s->one)),
                             VOLT_ARM(&s->right, kill_in_the_middle(cx, s))));
    CHECK_EQ(s->one.rc, -ECONNABORTED);
    CHECK(s->one.n_bytes > 0 && s->one.n_bytes < DATA);
    prepare(&s->one, &s->curl, getenv("CURL_DYING"), "/data");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, -ECONNREFUSED);
    prepare(&s->one, &s->curl, getenv("CURL_HTTP"), "/data");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    expect_data(&s->one);
    volt_process_close(cx, &s->process);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(server_that_is_killed_in_the_middle_ends_the_transfer) { run(dying); }

static volt_poll refusals(volt_cx *cx, void *arg) {
    static const struct {
        const char *url;
        int rc;
    } bad[] = { { "http://127.0.0.1:1/", -ECONNREFUSED }, { "http://127.0.0.1:99999/", -EINVAL },
                { "none://127.0.0.1/", -EPROTONOSUPPORT }, { "", -EINVAL },
                { "http://no.such.test/", -ENOENT } };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    for (s->i = 0; s->i < 5; s->i++) {
        prepare(&s->one, &s->curl, bad[s->i].url, "");
        VOLT_AWAIT(fetch_run(cx, &s->one));
        if (s->one.rc != bad[s->i].rc)
            test_fail(__FILE__, __LINE__, "%s: %s", bad[s->i].url, volt_strerror(s->one.rc));
    }
    VOLT_AWAIT(s->n, volt_curl_perform(cx, &s->curl, &s->one.transfer, NULL));
    CHECK_EQ(s->n, -EINVAL);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(address_that_cannot_be_used_is_an_error) { run(refusals); }

// ---- time limits

static volt_poll silence(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL); // nothing accepts
    url_of(s->listener, s->url);
    s->n_fds = test_count_fds();
    for (s->i = 0; s->i < 2; s->i++) { // by the limit of the task, and by that of libcurl
        prepare(&s->one, &s->curl, s->url, "");
        if (s->i == 0) s->one.at_most = VOLT_MS(200);
        else curl_easy_setopt(s->one.easy, CURLOPT_TIMEOUT_MS, 200L);
        volt_stats(volt_cx_rt(cx), &s->before);
        s->began = volt_now();
        VOLT_AWAIT(fetch_run(cx, &s->one));
        volt_stats(volt_cx_rt(cx), &s->after);
        CHECK_EQ(s->one.rc, -ETIMEDOUT);
        CHECK_EQ(volt_timer_fired(&s->one.limit), s->i == 0);
        CHECK(volt_now() - s->began >= VOLT_MS(199));
        CHECK(s->after.polls - s->before.polls <= 12); // the worker sleeps
        CHECK_EQ(test_count_fds(), s->n_fds); // the connection is closed
    }
    volt_close(cx, s->listener);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(silent_server_costs_a_few_polls_until_the_time_limit) { run_with(silence, 1); }

// A server that ends a connection which it has left open.
typedef struct {
    volt_frame frame;
    int listener, fd, n;
    char request[2000];
} leaving_server;
static volt_poll leaving_run(volt_cx *cx, void *arg) {
    static const char says[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n0123";
    leaving_server *s = (leaving_server *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->fd, volt_accept(cx, s->listener));
    VOLT_AWAIT(s->n, volt_read(cx, s->fd, s->request, sizeof s->request));
    VOLT_AWAIT(s->n, volt_write_all(cx, s->fd, says, sizeof says - 1));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(50)));
    volt_close(cx, s->fd);
    volt_close(cx, s->listener);
    VOLT_END(0);
}
static volt_poll left_open(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    url_of(s->listener, s->url);
    CHECK_EQ(VOLT_SPAWN(cx, &s->server, leaving_run,
                        (leaving_server){ .listener = s->listener }), 0);
    prepare(&s->one, &s->curl, s->url, "");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    expect(&s->one, 4);
    s->listener = volt_listen("127.0.0.1", 0, NULL); // nothing accepts
    url_of(s->listener, s->url);
    prepare(&s->one, &s->curl, s->url, "");
    s->one.at_most = VOLT_MS(250);
    volt_stats(volt_cx_rt(cx), &s->before);
    VOLT_AWAIT(fetch_run(cx, &s->one));
    volt_stats(volt_cx_rt(cx), &s->after);
    CHECK_EQ(s->one.rc, -ETIMEDOUT);
    CHECK(s->after.polls - s->before.polls <= 24);
    VOLT_AWAIT(volt_join(cx, &s->server));
    volt_close(cx, s->listener);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(connection_left_open_costs_nothing_when_its_server_ends_it) { run_with(left_open, 1); }

// The names of a slow name server: looked up by libcurl, on a thread of its own.
static int lookup_has_begun, lookup_may_end;
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out) {
    if (node && strcmp(node, "slow.test") == 0) {
        WRITE(lookup_has_begun, 1);
        UNTIL(READ(lookup_may_end));
        return EAI_NONAME;
    }
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(node, service, hints, out);
}
typedef struct {
    volt_frame frame;
    int n_ticks;
} ticker;
// A task of the same worker, which must go on while the transfer is given up.
static volt_poll end_lookup_run(volt_cx *cx, void *arg) {
    ticker *t = (ticker *)arg;
    VOLT_BEGIN(cx, t);
    while (!READ(lookup_has_begun)) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    for (t->n_ticks = 0; t->n_ticks < 50; t->n_ticks++) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    WRITE(lookup_may_end, 1); // past the time limit of the transfer
    VOLT_END(0);
}
static volt_poll slow_name(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    CHECK_EQ(VOLT_SPAWN(cx, &s->server, end_lookup_run, (ticker){ .n_ticks = 0 }), 0);
    prepare(&s->one, &s->curl, "http://slow.test/", "");
    s->one.at_most = VOLT_MS(20);
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, -ETIMEDOUT);
    VOLT_AWAIT(volt_join(cx, &s->server));
    prepare(&s->one, &s->curl, "http://slow.test/", "");
    VOLT_AWAIT(fetch_run(cx, &s->one));
    CHECK_EQ(s->one.rc, -ENOENT);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(transfer_given_up_in_its_look_up_does_not_hold_up_its_worker) { run_with(slow_name, 1); }

// ---- given up, while others go on

static volt_poll leader_gives_up(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    url_of(s->listener, s->url);
    prepare(&s->one, &s->curl, s->url, "");
    s->one.at_most = VOLT_MS(1);
    prepare(&s->two, &s->curl, getenv("CURL_HTTPS"), "/slow/data");
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, fetch_run(cx, &s->one)),
                             VOLT_ARM(&s->right, fetch_run(cx, &s->two))));
    CHECK_EQ(s->one.rc, -ETIMEDOUT);
    expect_data(&s->two);
    volt_close(cx, s->listener);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(transfer_goes_on_when_the_task_that_led_gives_up) { run_with(leader_gives_up, 1); }

// Starts a relay to nginx, and writes its address to s->url.
static void start_pacer(volt_cx *cx, test *s) {
    volt_addr to;
    CHECK_EQ(volt_addr_parse(&to, getenv("CURL_HTTPS") + strlen("https://")), 0);
    int port = pacer_start(cx, &s->server, &to);
    CHECK(port > 0);
    snprintf(s->url, sizeof s->url, "https://127.0.0.1:%d", port);
}

static int n_sockets; // that libcurl has open
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *at) {
    (void)user, (void)purpose;
    n_sockets++;
    return socket(at->family, at->socktype, at->protocol);
}
static int close_socket(void *user, curl_socket_t fd) {
    (void)user;
    n_sockets--;
    return close(fd);
}
static void count_sockets(const fetch *f) {
    curl_easy_setopt(f->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(f->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
}
// Each round opens a connection, so that the cancellation meets each step of it.
static volt_poll cancelled(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    start_pacer(cx, s);
    while (cancel_next(&s->at)) {
        prepare_alone(&s->one, &s->curl, s->url, "/part");
        count_sockets(&s->one);
        VOLT_AWAIT(CANCEL_AT(cx, &s->at, fetch_run(cx, &s->one)));
        CHECK_EQ(s->one.rc, cancel_came(&s->at) ? -ECANCELED : 0);
        CHECK_EQ(n_sockets, 0);
        if (s->one.rc == 0) break;
        CHECK(!s->one.is_other);
        prepare_alone(&s->two, &s->curl, getenv("CURL_HTTP"), "/part");
        VOLT_AWAIT(fetch_run(cx, &s->two));
        expect(&s->two, PART);
        s->i++;
    }
    expect(&s->one, PART);
    CHECK(s->i >= 8);
    volt_curl_close(cx, &s->curl);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(transfer_is_cancelled_at_any_poll_and_leaves_nothing_behind) { run_with(cancelled, 1); }

// One stream of a connection of HTTP/2 is cancelled at each of its polls; the other one completes.
static volt_poll stream_cancelled(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    start_pacer(cx, s);
    while (cancel_next(&s->at)) {
        prepare(&s->one, &s->curl, s->url, "/part");
        prepare(&s->two, &s->curl, s->url, "/part");
        curl_easy_setopt(s->one.easy, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(s->two.easy, CURLOPT_PIPEWAIT, 1L);
        VOLT_AWAIT(VOLT_JOIN_ALL(
            VOLT_ARM(&s->left, CANCEL_AT(cx, &s->at, fetch_run(cx, &s->one))),
            VOLT_ARM(&s->right, fetch_run(cx, &s->two))));
        CHECK_EQ(s->one.rc, cancel_came(&s->at) ? -ECANCELED : 0);
        expect(&s->two, PART);
        s->i++;
    }
    expect(&s->one, PART);
    CHECK(s->i >= 6);
    volt_curl_close(cx, &s->curl);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(stream_that_is_cancelled_at_any_poll_does_not_harm_another) {
    run_with(stream_cancelled, 1);
}

// A transfer is led by the task of another one, which has no end. If it is cancelled at the poll
// for its end, it has its result.
typedef struct {
    volt_frame frame;
    fetch *f;
    int rc;
} endless;
static volt_poll endless_run(volt_cx *cx, void *arg) {
    endless *e = (endless *)arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, fetch_run(cx, e->f));
    VOLT_END(e->rc);
}
static int has_leader(volt_curl *c) {
    int rc = volt_mutex_try_lock(&c->lead);
    if (rc == 0) volt_mutex_unlock(&c->lead);
    return rc < 0;
}
static volt_poll led(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL); // nothing accepts
    url_of(s->listener, s->url);
    prepare(&s->one, &s->curl, s->url, "");
    CHECK_EQ(VOLT_SPAWN(cx, &s->server, endless_run, (endless){ .f = &s->one }), 0);
    while (!has_leader(&s->curl)) VOLT_AWAIT(volt_yield(cx));
    do { // again, if no round has met the poll for the end
        while (cancel_next(&s->at)) {
            prepare(&s->two, &s->curl, getenv("CURL_HTTP"), "/part");
            VOLT_AWAIT(CANCEL_AT(cx, &s->at, fetch_run(cx, &s->two)));
            if (s->two.rc == 0) expect(&s->two, PART);
            if (s->two.rc == 0 && cancel_came(&s->at)) s->i++;
        }
    } while (s->i == 0);
    CHECK_EQ(s->two.rc, 0);
    volt_cancel(&s->server);
    VOLT_AWAIT(s->n, volt_join(cx, &s->server));
    CHECK_EQ(s->n, -ECANCELED);
    volt_close(cx, s->listener);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(transfer_that_another_task_leads_ends_by_itself_and_keeps_its_result) {
    run_with(led, 1);
}

// The second transfer begins when the first one has the handle, and is far from its end.
static volt_poll perform_later(volt_cx *cx, test *s) {
    fetch *f = &s->two;
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(f->rc, volt_curl_perform(cx, &s->curl, &f->transfer, s->one.easy));
    VOLT_END(f->rc);
}
static volt_poll twice(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    start_pacer(cx, s);
    prepare(&s->one, &s->curl, s->url, "/part");
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, fetch_run(cx, &s->one)),
                             VOLT_ARM(&s->right, perform_later(cx, s))));
    CHECK_EQ(s->two.rc, -EINVAL);
    expect(&s->one, PART);
    volt_curl_close(cx, &s->curl);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    VOLT_END(0);
}
TEST(handle_in_use_is_refused_and_its_transfer_completes) { run_with(twice, 1); }

// ---- many tasks

typedef struct {
    volt_frame frame;
    volt_curl *home;
    fetch f;
    int i, is_hasty;
} walker;
static volt_poll walk_run(volt_cx *cx, void *arg) {
    walker *w = (walker *)arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < 6; w->i++) {
        prepare(&w->f, w->home, getenv(w->i % 2 ? "CURL_HTTPS" : "CURL_HTTP"), "/data");
        if (w->is_hasty) w->f.at_most = (volt_time)RANDOM_BELOW(VOLT_MS(8));
        VOLT_AWAIT(fetch_run(cx, &w->f));
        if (!w->is_hasty || w->f.rc != -ETIMEDOUT) expect_data(&w->f);
        CHECK(!w->f.is_other);
    }
    VOLT_END(0);
}
static volt_poll crowd(volt_cx *cx, void *arg) {
    static volt_group group;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    for (s->i = 0; s->i < 24; s->i++) {
        walker w = { .home = &s->curl, .is_hasty = s->i % 2 };
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &group, walk_run, w), 0);
    }
    VOLT_AWAIT(s->n, volt_group_wait(cx, &group));
    CHECK_EQ(s->n, 0);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(tasks_on_all_workers_share_connections_while_others_give_up) { run_with(crowd, 4); }

// ---- a body that is taken slowly

enum { ROOM = 40000 };
typedef struct {
    volt_frame frame;
    volt_curl_resumer resumer;
    cancel_point at;
    int i, rc;
} consumer;
typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_curl curl;
    fetch f;
    consumer c;
    volt_notify filled;
    size_t n_held, n_taken; // n_held: any, atomic
    int is_paused, n_pauses;
} slow_taker;
static size_t on_slow_body(char *bytes, size_t size, size_t n, void *user) {
    slow_taker *s = (slow_taker *)user;
    CHECK(size * n <= ROOM);
    int is_full = READ(s->n_held) + size * n > ROOM;
    if (is_full) {
        s->n_pauses++;
        WRITE(s->is_paused, 1);
    } else {
        on_body(bytes, size, n, &s->f);
        __atomic_add_fetch(&s->n_held, size * n, __ATOMIC_ACQ_REL);
    }
    volt_notify_one(&s->filled);
    return is_full ? CURL_WRITEFUNC_PAUSE : size * n;
}
// Takes what has come. Each second call of volt_curl_resume is cancelled, and made again.
static volt_poll consume(volt_cx *cx, slow_taker *s) {
    consumer *c = &s->c;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->rc, volt_notify_wait(cx, &s->filled));
        if (c->rc < 0) break; // the transfer has ended
        s->n_taken += __atomic_exchange_n(&s->n_held, 0, __ATOMIC_ACQ_REL);
        if (!__atomic_exchange_n(&s->is_paused, 0, __ATOMIC_ACQ_REL)) continue;
        if (c->i++ % 2 == 0) {
            cancel_next(&c->at);
            VOLT_AWAIT(c->rc, CANCEL_AT(cx, &c->at,
                                        volt_curl_resume(cx, &c->resumer, &s->f.transfer)));
            CHECK_EQ(c->rc, -ECANCELED);
            memset(&c->at, 0, sizeof c->at);
        }
        VOLT_AWAIT(c->rc, volt_curl_resume(cx, &c->resumer, &s->f.transfer));
        if (c->rc < 0) break;
    }
    VOLT_END(c->rc);
}
static volt_poll slowly(volt_cx *cx, void *arg) {
    slow_taker *s = (slow_taker *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    prepare(&s->f, &s->curl, getenv("CURL_HTTPS"), "/data");
    curl_easy_setopt(s->f.easy, CURLOPT_WRITEFUNCTION, on_slow_body);
    curl_easy_setopt(s->f.easy, CURLOPT_WRITEDATA, s);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->left, fetch_run(cx, &s->f)),
                           VOLT_ARM(&s->right, consume(cx, s))));
    CHECK(s->left.fired);
    expect_data(&s->f);
    CHECK_EQ(s->n_taken + s->n_held, DATA);
    CHECK(s->n_pauses > 1);
    VOLT_AWAIT(s->c.rc, volt_curl_resume(cx, &s->c.resumer, &s->f.transfer)); // it has ended
    CHECK_EQ(s->c.rc, 0);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(body_is_paused_until_there_is_room_for_it) {
    static slow_taker s;
    volt_config config = { .workers = 2, .log = { .fn = on_log } };
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(volt_run(&config, slowly, &s), 0);
}

// A body whose callback pauses it at first, and then fails. The server ends the connection, too,
// which would be another error.
typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_handle server, leader;
    volt_curl curl;
    fetch led, f;
    consumer c;
    volt_notify paused;
    int i, n_calls, listener, silent;
    char url[64];
} failing;
static size_t on_failing_body(char *bytes, size_t size, size_t n, void *user) {
    failing *s = (failing *)user;
    (void)bytes, (void)size, (void)n;
    if (s->n_calls++ > 0) return 0;
    volt_notify_one(&s->paused);
    return CURL_WRITEFUNC_PAUSE;
}
static volt_poll resume_once(volt_cx *cx, failing *s) {
    consumer *c = &s->c;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_notify_wait(cx, &s->paused));
    VOLT_AWAIT(c->rc, volt_curl_resume(cx, &c->resumer, &s->f.transfer));
    VOLT_END(c->rc);
}
static volt_poll fails_in_resume(volt_cx *cx, void *arg) {
    static const char says[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123";
    failing *s = (failing *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    s->silent = volt_listen("127.0.0.1", 0, NULL); // nothing accepts
    CHECK_EQ(VOLT_SPAWN(cx, &s->server, bad_server_run,
                        (bad_server){ .listener = s->listener, .says = says }), 0);
    for (s->i = 0; s->i < 2; s->i++) { // the task of the transfer leads, and then another one
        s->n_calls = 0;
        url_of(s->listener, s->url);
        prepare(&s->f, &s->curl, s->url, "");
        curl_easy_setopt(s->f.easy, CURLOPT_WRITEFUNCTION, on_failing_body);
        curl_easy_setopt(s->f.easy, CURLOPT_WRITEDATA, s);
        VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, fetch_run(cx, &s->f)),
                                 VOLT_ARM(&s->right, resume_once(cx, s))));
        CHECK_EQ(s->right.value, 0);
        CHECK_EQ(s->f.transfer.code, CURLE_WRITE_ERROR);
        CHECK_EQ(s->f.rc, -EIO);
        CHECK_EQ(s->n_calls, 2);
        if (s->i == 1) continue;
        url_of(s->silent, s->url);
        prepare(&s->led, &s->curl, s->url, "");
        CHECK_EQ(VOLT_SPAWN(cx, &s->leader, endless_run, (endless){ .f = &s->led }), 0);
        while (!has_leader(&s->curl)) VOLT_AWAIT(volt_yield(cx));
    }
    volt_cancel(&s->leader);
    VOLT_AWAIT(s->i, volt_join(cx, &s->leader));
    CHECK_EQ(s->i, -ECANCELED);
    volt_cancel(&s->server);
    VOLT_AWAIT(volt_join(cx, &s->server));
    volt_close(cx, s->listener);
    volt_close(cx, s->silent);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(callback_that_fails_in_a_resume_ends_its_transfer) {
    static failing s;
    volt_config config = { .workers = 2, .log = { .fn = on_log } };
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(volt_run(&config, fails_in_resume, &s), 0);
}

// ---- no room

static volt_poll no_room(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_curl_open(&s->curl), 0);
    for (s->i = 1;; s->i++) {
        prepare_alone(&s->one, &s->curl, getenv("CURL_HTTPS"), "/data");
        prepare_alone(&s->two, &s->curl, getenv("CURL_HTTP"), "/data");
        s->one.at_most = s->two.at_most = VOLT_S(15);
        full_at = (unsigned)s->i;
        VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, fetch_run(cx, &s->one)),
                                 VOLT_ARM(&s->right, fetch_run(cx, &s->two))));
        if (full_at > 0) break; // it was not reached
        CHECK(s->one.rc == -ENOSPC || s->two.rc == -ENOSPC);
        if (s->one.rc != -ENOSPC) expect_data(&s->one); // it had ended before
        if (s->two.rc != -ENOSPC) expect_data(&s->two);
    }
    full_at = 0;
    expect_data(&s->one);
    expect_data(&s->two);
    CHECK(s->i >= 3);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(socket_that_cannot_be_waited_for_ends_the_transfers_and_no_later_one) {
    run_with(no_room, 1);
}

static volt_poll no_descriptor(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    struct rlimit was, few; // no await below
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = (rlim_t)dup(0);
    close((int)few.rlim_cur);
    for (s->n = -1; s->n < 0; few.rlim_cur++, s->i++) { // one more descriptor each time
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        s->n = volt_curl_open(&s->curl);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
        CHECK(s->n == 0 || s->n == -EMFILE || s->n == -ENOMEM); // -ENOMEM: of curl_multi_init
    }
    CHECK(s->i > 1);
    volt_curl_close(cx, &s->curl);
    VOLT_END(0);
}
TEST(open_without_descriptors_leaves_nothing_behind) { run_with(no_descriptor, 1); }
