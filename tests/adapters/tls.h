// SPDX-License-Identifier: MIT OR 0BSD
// The tests of a TLS adapter, which are the same for each library. A test program includes volt.h,
// tests/lib/test.h and the adapter, defines what is the library's, and includes this:
//   TLS_INIT                 the init of a context
//   TLS_SAYS_...             its texts
//   TLS_ONLY_1_2(x)          what makes a context use TLS 1.2 only
//   TLS_ALLOW_RENEGOTIATION(x), TLS_RENEGOTIATE(t)    and what a client does to begin it
//   TLS_SAY_NOTHING(t)       what makes a client send a record without data
//   TLS_BOUNDS_1_2           1 if the library accepts few such records with TLS 1.2
// TLS_FILES is the folder with the certificates of tls/peers.sh: NAME.pem and NAME.key.
// With TLS_1_2 all tests are with TLS 1.2; with TLS_SHORT the long ones do a tenth of their work.
#ifndef TEST_TLS_H
#define TEST_TLS_H

#include <sys/ioctl.h>
#include <sys/socket.h>
#include "tests/adapters/cancel.h"

// Part of some amount of work.
static uint64_t part_of(uint64_t n) { return getenv("TLS_SHORT") ? n / 10 : n; }

// ---- contexts

static volt_tls_context client_context, server_context;

static const char *file(const char *name) {
    static char paths[8][256];
    static unsigned n;
    const char *folder = getenv("TLS_FILES");
    CHECK(folder);
    char *path = paths[n++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}
static void serve_by(const char *chain, const char *key, const char *alpn) {
    volt_tls_options o = { .is_server = 1, .alpn = alpn, .chain = file(chain), .key = file(key) };
    CHECK_EQ(TLS_INIT(&server_context, &o), 0);
    if (getenv("TLS_1_2")) TLS_ONLY_1_2(&server_context);
}
static void trust(const char *authorities, const char *alpn) {
    volt_tls_options o = { .alpn = alpn, .authorities = file(authorities) };
    CHECK_EQ(TLS_INIT(&client_context, &o), 0);
}
static void contexts(void) {
    serve_by("good.pem", "good.key", "other,test");
    trust("good.pem", "test");
}
static void contexts_free(void) {
    volt_tls_context_free(&client_context);
    volt_tls_context_free(&server_context);
}
// Runs a task with contexts, and then frees them.
static void run(uint32_t workers, volt_fn *fn, void *state) {
    volt_config c = { .workers = workers };
    if (!server_context.impl) contexts();
    CHECK_EQ(volt_run(&c, fn, state), 0);
    contexts_free();
}

// ---- two ends of a connection in one task

typedef struct {
    volt_frame frame;
    volt_arm arm[2];
    volt_timer late[2];
    volt_tls *client, *server;
} duo;

static void duo_over(duo *d, int client, int server, const char *name) {
    CHECK_EQ(volt_tls_open(&d->client, &client_context, client, name), 0);
    CHECK_EQ(volt_tls_open(&d->server, &server_context, server, NULL), 0);
}
static void duo_open(duo *d) {
    int fd[2];
    CHECK_EQ(volt_socketpair(SOCK_STREAM, fd), 0);
    duo_over(d, fd[0], fd[1], "localhost");
}
static void duo_close(volt_cx *cx, duo *d) {
    volt_tls_close(cx, d->client);
    volt_tls_close(cx, d->server);
}
// The sockets take little at a time, so that each record waits several times.
static void duo_open_small(duo *d) {
    int bytes = 1;
    duo_open(d);
    CHECK_EQ(setsockopt(d->client->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    CHECK_EQ(setsockopt(d->server->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
}
// Both handshakes. The results are in d->arm[0] and d->arm[1].
static volt_poll duo_shake(volt_cx *cx, duo *d) {
    VOLT_BEGIN(cx, d);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&d->arm[0], volt_tls_handshake(cx, d->client)),
                             VOLT_ARM(&d->arm[1], volt_tls_handshake(cx, d->server))));
    VOLT_END(d->arm[0].value < 0 ? d->arm[0].value : d->arm[1].value);
}
static volt_stream of(volt_tls *t) { return volt_tls_stream(t); }

// The state of a small function.
typedef struct {
    volt_frame frame;
    int64_t rc;
} call;

// ---- a pattern of bytes, of which each position has its own

static char pattern_at(uint64_t i) { return (char)(i * 31 + (i >> 8) * 7 + (i >> 16)); }
static void pattern_fill(char *to, uint64_t from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = pattern_at(from + i);
}
static void pattern_check(const char *got, uint64_t from, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (got[i] != pattern_at(from + i))
            test_fail(__FILE__, __LINE__, "byte %llu is not that which was sent",
                      (unsigned long long)(from + i));
}

// One direction: `total` bytes of the pattern, `chunk` bytes in a call, then the end. Each call is
// cancelled at its k-th poll, and repeated; k 0: none is.
typedef struct {
    volt_frame frame;
    cancel_point at;
    volt_tls *t;
    uint64_t total, n_moved;
    size_t chunk;
    unsigned k, n_cancelled;
    int64_t n;
    char buf[20000];
} way;

static void way_arm(way *w) { w->at = (cancel_point){ .k = w->k ? w->k : CANCEL_ROUNDS }; }
// Returns 1 if the call must be repeated.
static int way_again(way *w) {
    int is_again = w->n == -ECANCELED && cancel_came(&w->at);
    w->n_cancelled += (unsigned)is_again;
    return is_again;
}
static volt_poll way_send(volt_cx *cx, way *w) {
    VOLT_BEGIN(cx, w);
    for (w->n_moved = 0; w->n_moved < w->total; w->n_moved += (uint64_t)w->n) {
        if (w->chunk > w->total - w->n_moved) w->chunk = (size_t)(w->total - w->n_moved);
        pattern_fill(w->buf, w->n_moved, w->chunk);
        way_arm(w);
        VOLT_AWAIT(w->n, CANCEL_AT(cx, &w->at, volt_stream_write(cx, of(w->t), w->buf, w->chunk)));
        if (way_again(w)) VOLT_AWAIT(w->n, volt_stream_write(cx, of(w->t), w->buf, w->chunk));
        if (w->n < 0) VOLT_RETURN(w->n);
        CHECK(w->n > 0 && (size_t)w->n <= w->chunk);
    }
    way_arm(w);
    VOLT_AWAIT(w->n, CANCEL_AT(cx, &w->at, volt_stream_end(cx, of(w->t))));
    if (way_again(w)) VOLT_AWAIT(w->n, volt_stream_end(cx, of(w->t)));
    VOLT_END(w->n);
}
static volt_poll way_receive(volt_cx *cx, way *w) {
    VOLT_BEGIN(cx, w);
    for (w->n_moved = 0;; w->n_moved += (uint64_t)w->n) {
        way_arm(w);
        VOLT_AWAIT(w->n, CANCEL_AT(cx, &w->at, volt_stream_ready(cx, of(w->t))));
        if (way_again(w)) VOLT_AWAIT(w->n, volt_stream_ready(cx, of(w->t)));
        if (w->n < 0) VOLT_RETURN(w->n);
        way_arm(w);
        memset(w->buf, 0, w->chunk);
        VOLT_AWAIT(w->n, CANCEL_AT(cx, &w->at, volt_stream_read(cx, of(w->t), w->buf, w->chunk)));
        if (way_again(w)) VOLT_AWAIT(w->n, volt_stream_read(cx, of(w->t), w->buf, w->chunk));
        if (w->n <= 0) break;
        pattern_check(w->buf, w->n_moved, (size_t)w->n);
    }
    if (w->n == 0) CHECK_EQ(w->n_moved, w->total);
    VOLT_END(w->n);
}
static volt_poll send_run(volt_cx *cx, void *arg) { return way_send(cx, (way *)arg); }
static volt_poll receive_run(volt_cx *cx, void *arg) { return way_receive(cx, (way *)arg); }

// ---- handshakes

typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[2];
    int64_t rc, n;
    size_t i;
    char buf[64];
} state;

static volt_poll agreement_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, 1));
    CHECK_EQ(s->rc, -ENOTCONN);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), s->buf, 1));
    CHECK_EQ(s->rc, -ENOTCONN);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(s->rc, 0);
    CHECK_STR(s->d.client->protocol, "test");
    CHECK_STR(s->d.server->protocol, "test");
    CHECK_STR(s->d.client->why, "");
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d)); // again: it is complete
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, 0));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), s->buf, 0));
    CHECK_EQ(s->rc, 0);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(handshake_agrees_on_a_protocol_and_precedes_all_else) {
    static state s;
    run(1, agreement_run, &s);
}

// A handshake that must fail, for the client, the server or both.
typedef struct {
    volt_frame frame;
    duo d;
    const char *name, *why;
    int64_t rc, client, server; // expected; 1: any error
    int fd[2];
    char byte;
} refusal;
// The side that fails first closes its connection, as programs do.
static volt_poll refusal_client(volt_cx *cx, refusal *r) {
    volt_poll p = volt_tls_handshake(cx, r->d.client);
    if (!volt_is_pending(p) && volt_value(p) < 0) volt_sock_shutdown(r->d.client->fd, SHUT_RDWR);
    return p;
}
static volt_poll refusal_server(volt_cx *cx, refusal *r) {
    volt_poll p = volt_tls_handshake(cx, r->d.server);
    if (!volt_is_pending(p) && volt_value(p) < 0) volt_sock_shutdown(r->d.server->fd, SHUT_RDWR);
    return p;
}
static volt_poll refusal_run(volt_cx *cx, void *arg) {
    refusal *r = (refusal *)arg;
    VOLT_BEGIN(cx, r);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, r->fd), 0);
    duo_over(&r->d, r->fd[0], r->fd[1], r->name);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&r->d.arm[0], refusal_client(cx, r)),
                             VOLT_ARM(&r->d.arm[1], refusal_server(cx, r))));
    if (r->client == 1) CHECK(r->d.arm[0].value < 0);
    else CHECK_EQ(r->d.arm[0].value, r->client);
    if (!strstr(r->d.client->why, r->why)) CHECK_STR(r->d.client->why, r->why);
    // with TLS 1.3 the server has completed its handshake only if the client accepts
    if (r->server == 1) CHECK(r->d.arm[1].value < 0 && r->d.server->why[0]);
    else CHECK_EQ(r->d.arm[1].value, r->server);
    VOLT_AWAIT(r->rc, volt_stream_read(cx, of(r->d.client), &r->byte, 1));
    CHECK_EQ(r->rc, r->d.arm[0].value); // the error stays
    duo_close(cx, &r->d);
    VOLT_END(0);
}
static void refuse(const char *name, int64_t client, const char *why, int64_t server) {
    refusal r = { .name = name, .client = client, .why = why, .server = server };
    run(1, refusal_run, &r);
}
TEST(expired_certificate_is_refused) {
    serve_by("expired.pem", "expired.key", "test");
    trust("expired.pem", "test");
    refuse("localhost", -EKEYREJECTED, TLS_SAYS_EXPIRED, 1);
}
TEST(certificate_of_an_unknown_authority_is_refused) {
    serve_by("good.pem", "good.key", "test");
    trust("other.pem", "test");
    refuse("localhost", -EKEYREJECTED, TLS_SAYS_UNKNOWN, 1);
}
TEST(certificate_of_another_host_is_refused) {
    contexts();
    refuse("example.org", -EKEYREJECTED, TLS_SAYS_OTHER_HOST, 1);
    refuse("127.0.0.1", -EKEYREJECTED, TLS_SAYS_OTHER_ADDRESS, 1);
}
TEST(client_without_options_trusts_only_the_system) {
    volt_tls_options o = { .alpn = "test" };
    serve_by("good.pem", "good.key", "test");
    CHECK_EQ(TLS_INIT(&client_context, &o), 0);
    refuse("localhost", -EKEYREJECTED, TLS_SAYS_UNKNOWN, 1);
}
TEST(another_protocol_is_refused) {
    serve_by("good.pem", "good.key", "other");
    trust("good.pem", "test");
    refuse("localhost", -EPROTO, "", -EPROTO);
}
TEST(server_without_protocols_is_refused) {
    serve_by("good.pem", "good.key", "");
    trust("good.pem", "test");
    refuse("localhost", -EPROTONOSUPPORT, "no protocol was agreed on", 0);
}

// With TLS 1.3 the client has completed its handshake when the server refuses.
static volt_poll asked_run(volt_cx *cx, void *arg) {
    refusal *r = (refusal *)arg;
    VOLT_BEGIN(cx, r);
    duo_open(&r->d);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&r->d.arm[0], refusal_client(cx, r)),
                             VOLT_ARM(&r->d.arm[1], refusal_server(cx, r))));
    CHECK_EQ(r->d.arm[1].value, r->server);
    if (r->server == 0) CHECK_EQ(r->d.arm[0].value, 0);
    duo_close(cx, &r->d);
    VOLT_END(0);
}
// NAME.pem and NAME.key of the client, or none.
static void ask_for(const char *chain, const char *key, int64_t expected) {
    refusal r = { .server = expected };
    volt_tls_options o = { .is_server = 1, .alpn = "test", .chain = file("good.pem"),
                           .key = file("good.key"), .authorities = file("good.pem") };
    volt_tls_options c = { .alpn = "test", .authorities = file("good.pem") };
    if (chain) c.chain = file(chain), c.key = file(key);
    CHECK_EQ(TLS_INIT(&server_context, &o), 0);
    CHECK_EQ(TLS_INIT(&client_context, &c), 0);
    run(1, asked_run, &r);
}
TEST(server_can_ask_for_a_certificate) {
    ask_for("good.pem", "good.key", 0);
    ask_for("other.pem", "other.key", -EKEYREJECTED);
    ask_for(NULL, NULL, -EPROTO);
}

TEST(options_that_cannot_be_are_refused_with_a_reason) {
    const char *chain = file("good.pem"), *key = file("good.key"), *other = file("other.key");
    char long_alpn[VOLT_TLS_ALPN + 1];
    memset(long_alpn, 'a', sizeof long_alpn - 1);
    long_alpn[sizeof long_alpn - 1] = 0;
    const volt_tls_options wrong[] = {
        { .alpn = NULL },
        { .alpn = "," },
        { .alpn = "a,,b" },
        { .alpn = "a," },
        { .alpn = long_alpn },
        { .is_server = 1, .alpn = "" },
        { .is_server = 1, .alpn = "", .chain = chain },
        { .is_server = 1, .alpn = "", .key = key },
        { .is_server = 1, .alpn = "", .chain = chain, .key = other },
        { .is_server = 1, .alpn = "", .chain = file("none.pem"), .key = key },
        { .is_server = 1, .alpn = "", .chain = chain, .key = file("none.pem") },
        { .is_server = 1, .alpn = "", .chain = key, .key = key },
        { .alpn = "", .authorities = file("none.pem") },
        { .alpn = "", .authorities = key },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        volt_tls_context x;
        int rc = TLS_INIT(&x, &wrong[i]);
        if (rc != -EINVAL || !x.why[0])
            test_fail(__FILE__, __LINE__, "options %zu: %d, \"%s\"", i, rc, x.why);
        volt_tls_context_free(&x); // does nothing
    }
    volt_tls *t;
    contexts();
    CHECK_EQ(volt_tls_open(&t, &client_context, -1, NULL), -EINVAL);
    CHECK_EQ(volt_tls_open(&t, &client_context, -1, ""), -EINVAL);
    CHECK_EQ(volt_tls_open(&t, &client_context, -1, ".localhost"), -EINVAL);
    CHECK_EQ(volt_tls_open(&t, &server_context, -1, "localhost"), -EINVAL);
    char long_name[300];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    CHECK_EQ(volt_tls_open(&t, &client_context, -1, long_name), -EINVAL);
    contexts_free();
}

// ---- both ways, halves and ends

typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[4];
    way out, in, back, home;
    unsigned k, n_cancelled;
    int64_t rc;
} exchange;

// The bytes to send are in s->out.total and s->back.total.
static volt_poll exchange_run(volt_cx *cx, void *arg) {
    exchange *s = (exchange *)arg;
    VOLT_BEGIN(cx, s);
    if (s->k) duo_open_small(&s->d);
    else duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(s->rc, 0);
    s->out.t = s->home.t = s->d.client, s->in.t = s->back.t = s->d.server;
    s->in.total = s->out.total, s->home.total = s->back.total;
    s->out.k = s->in.k = s->back.k = s->home.k = s->k;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], way_send(cx, &s->out)),
                             VOLT_ARM(&s->arm[1], way_receive(cx, &s->in)),
                             VOLT_ARM(&s->arm[2], way_send(cx, &s->back)),
                             VOLT_ARM(&s->arm[3], way_receive(cx, &s->home))));
    for (int i = 0; i < 4; i++) CHECK_EQ(s->arm[i].value, 0);
    s->n_cancelled = s->out.n_cancelled + s->in.n_cancelled + s->back.n_cancelled +
                     s->home.n_cancelled;
    duo_close(cx, &s->d);
    VOLT_END(0);
}
static void exchange_of(exchange *s, uint64_t total, size_t chunk, unsigned k) {
    memset(s, 0, sizeof *s);
    s->out.total = total, s->back.total = total / 2; // one half ends earlier
    s->out.chunk = s->in.chunk = chunk;
    s->back.chunk = s->home.chunk = chunk / 2 + 1;
    s->k = k;
    run(1, exchange_run, s);
}
static exchange an_exchange;
TEST(bytes_go_both_ways_at_once_and_one_half_ends_earlier) {
    exchange_of(&an_exchange, part_of(3000000), 20000, 0);
    exchange_of(&an_exchange, part_of(3000), 1, 0);
    exchange_of(&an_exchange, 0, 100, 0);
}
// The calls of each operation are cancelled at their first poll, then at their second, ...
TEST(cancelled_read_write_end_or_wait_loses_nothing) {
    unsigned k = 1, n = 1;
    for (; n > 0; k++) {
        exchange_of(&an_exchange, part_of(600000), 20000, k);
        n = an_exchange.n_cancelled;
        printf("%u cancelled at poll %u\n", n, k);
    }
    CHECK(k > 4);
}

// A relay between two connections: each half of one is passed to the other, and its end.
typedef struct {
    volt_frame frame;
    duo left, right;
    volt_relayer relay;
    volt_arm arm[5];
    way out, in, back, home;
    int64_t rc;
} relayed;
static volt_poll relayed_run(volt_cx *cx, void *arg) {
    relayed *s = (relayed *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->left);
    duo_open_small(&s->right);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->left));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->right));
    CHECK_EQ(s->rc, 0);
    volt_relayer_init(&s->relay, of(s->left.server), of(s->right.client), VOLT_NEVER);
    s->out.t = s->home.t = s->left.client, s->in.t = s->back.t = s->right.server;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], way_send(cx, &s->out)),
                             VOLT_ARM(&s->arm[1], way_receive(cx, &s->in)),
                             VOLT_ARM(&s->arm[2], way_send(cx, &s->back)),
                             VOLT_ARM(&s->arm[3], way_receive(cx, &s->home)),
                             VOLT_ARM(&s->arm[4], volt_relay(cx, &s->relay))));
    for (int i = 0; i < 5; i++) CHECK_EQ(s->arm[i].value, 0);
    duo_close(cx, &s->left);
    duo_close(cx, &s->right);
    VOLT_END(0);
}
static void relay_of(uint64_t out, uint64_t back) {
    static relayed s;
    memset(&s, 0, sizeof s);
    s.out.total = s.in.total = out, s.back.total = s.home.total = back;
    s.out.chunk = s.in.chunk = s.back.chunk = s.home.chunk = sizeof s.out.buf;
    run(1, relayed_run, &s);
}
TEST(relay_passes_both_ways_on_and_the_end_of_each) {
    relay_of(part_of(1000000), part_of(300000));
    relay_of(0, part_of(100000)); // one half ends before anything came
    relay_of(part_of(100000), 0);
}

typedef struct {
    volt_frame frame;
    duo d;
    cancel_point at;
    int whose;
    volt_arm arm[2];
    call shake;
    int64_t rc;
    char byte;
} stubborn;
static volt_tls *stubborn_of(const stubborn *s, int i) { return i ? s->d.server : s->d.client; }
// A handshake that is repeated if it is cancelled.
static volt_poll stubborn_shake(volt_cx *cx, stubborn *s) {
    call *c = &s->shake;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, CANCEL_AT(cx, &s->at, volt_tls_handshake(cx, stubborn_of(s, s->whose))));
    if (c->rc == -ECANCELED && cancel_came(&s->at))
        VOLT_AWAIT(c->rc, volt_tls_handshake(cx, stubborn_of(s, s->whose)));
    VOLT_END(c->rc);
}
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *s = (stubborn *)arg;
    VOLT_BEGIN(cx, s);
    while (cancel_next(&s->at)) {
        duo_open(&s->d);
        VOLT_AWAIT(VOLT_JOIN_ALL(
            VOLT_ARM(&s->arm[0], stubborn_shake(cx, s)),
            VOLT_ARM(&s->arm[1], volt_tls_handshake(cx, stubborn_of(s, !s->whose)))));
        CHECK_EQ(s->arm[0].value, 0);
        CHECK_EQ(s->arm[1].value, 0);
        VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "x", 1));
        CHECK_EQ(s->rc, 1);
        VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.server), &s->byte, 1));
        CHECK_EQ(s->rc, 1);
        CHECK_EQ(s->byte, 'x');
        duo_close(cx, &s->d);
    }
    VOLT_END(0);
}
TEST(handshake_cancelled_at_any_poll_can_be_repeated) {
    static stubborn client, server = { .whose = 1 };
    run(1, stubborn_run, &client);
    run(1, stubborn_run, &server);
}
// And a handshake that is given up leaves nothing.
static volt_poll given_up_run(volt_cx *cx, void *arg) {
    stubborn *s = (stubborn *)arg;
    VOLT_BEGIN(cx, s);
    while (cancel_next(&s->at)) {
        duo_open(&s->d);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, duo_shake(cx, &s->d)));
        CHECK_EQ(s->rc, cancel_came(&s->at) && s->rc ? -ECANCELED : 0);
        duo_close(cx, &s->d);
    }
    VOLT_END(0);
}
TEST(handshakes_given_up_at_any_poll_leave_nothing) {
    static stubborn s;
    run(1, given_up_run, &s);
}

static volt_poll halves_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "ask", 3));
    CHECK_EQ(s->rc, 3);
    for (s->i = 0; s->i < 2; s->i++) { // also again
        VOLT_AWAIT(s->rc, volt_stream_end(cx, of(s->d.client)));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "more", 4));
    CHECK_EQ(s->rc, -EPIPE);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.server), s->buf, sizeof s->buf));
    CHECK_EQ(s->rc, 3);
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_stream_ready(cx, of(s->d.server)));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.server), s->buf, sizeof s->buf));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_AWAIT(s->rc, volt_read(cx, s->d.server->fd, s->buf, 1)); // the socket has ended, too
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.server), "the answer", 10));
    CHECK_EQ(s->rc, 10);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, of(s->d.server)));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf));
    CHECK_EQ(s->rc, 10);
    CHECK(memcmp(s->buf, "the answer", 10) == 0);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf));
    CHECK_EQ(s->rc, 0);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(side_that_has_ended_goes_on_reading) {
    static state s;
    run(1, halves_run, &s);
}

// Without a wait: the bytes are in the buffer of the library, and not in the socket.
static volt_poll pending_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "0123456789", 10));
    for (s->i = 0; s->i < 10; s->i++) {
        VOLT_AWAIT(s->rc, volt_stream_ready(cx, of(s->d.server)));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.server), s->buf, 1));
        CHECK_EQ(s->rc, 1);
        CHECK_EQ(s->buf[0], '0' + (int)s->i);
    }
    VOLT_AWAIT(s->rc, volt_within(cx, &s->d.late[0], VOLT_MS(10),
                                  volt_stream_ready(cx, of(s->d.server))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->d.late[0], VOLT_MS(10),
                                  volt_stream_read(cx, of(s->d.server), s->buf, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(read_gives_what_the_library_has_read_ahead) {
    static state s;
    run(1, pending_run, &s);
}

// ---- peers that misbehave

static volt_poll cut_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.server), "bye", 3));
    CHECK_EQ(s->rc, 3);
    volt_tls_close(cx, s->d.server);
    // The library learns of the end by the write; what came before can still be read.
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "x", 1));
    CHECK_EQ(s->rc, -EPIPE);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf));
    CHECK_EQ(s->rc, 3);
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf));
        CHECK_EQ(s->rc, -ECONNABORTED);
        CHECK_STR(s->d.client->why, "the peer has ended without a close_notify");
    }
    volt_tls_close(cx, s->d.client);
    VOLT_END(0);
}
TEST(end_without_a_close_notify_is_an_error) {
    static state s;
    run(1, cut_run, &s);
}

// A peer that resets the connection in the handshake.
typedef struct {
    volt_frame frame;
    volt_arm arm[2];
    volt_addr at;
    volt_tls *t;
    int64_t rc;
    int listener;
    char byte;
} reset;
static volt_poll reset_run(volt_cx *cx, void *arg) {
    reset *s = (reset *)arg;
    VOLT_BEGIN(cx, s);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    CHECK_EQ(volt_local_addr(s->listener, &s->at), 0);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], volt_connect(cx, &s->at)),
                                    VOLT_ARM(&s->arm[1], volt_accept(cx, s->listener))));
    CHECK_EQ(volt_tls_open(&s->t, &client_context, (int)s->arm[0].value, "localhost"), 0);
    volt_close_reset(cx, (int)s->arm[1].value);
    VOLT_AWAIT(s->rc, volt_tls_handshake(cx, s->t));
    CHECK_EQ(s->rc, -ECONNRESET);
    CHECK(strstr(s->t->why, "reset"));
    volt_tls_close(cx, s->t);
    volt_close(cx, s->listener);
    VOLT_END(0);
}
TEST(reset_in_the_handshake_is_an_error) {
    static reset s;
    run(1, reset_run, &s);
}

// Garbage in place of a handshake, and behind it.
static volt_poll garbage_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    static const char text[] = "GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: curious\r\n\r\n";
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->d.client->fd, text, sizeof text - 1));
    VOLT_AWAIT(s->rc, volt_tls_handshake(cx, s->d.server));
    CHECK_EQ(s->rc, -EPROTO);
    CHECK(s->d.server->why[0]);
    duo_close(cx, &s->d);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->d.server->fd, text, sizeof text - 1));
    VOLT_AWAIT(s->rc, volt_tls_handshake(cx, s->d.client));
    CHECK_EQ(s->rc, -EPROTO);
    CHECK(s->d.client->why[0]);
    duo_close(cx, &s->d);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->d.server->fd, text, sizeof text - 1));
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf));
        CHECK_EQ(s->rc, -EPROTO);
        CHECK(s->d.client->why[0]);
        VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "x", 1));
        CHECK_EQ(s->rc, -EPROTO);
    }
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(garbage_is_an_error_in_the_handshake_and_behind_it) {
    static state s;
    run(1, garbage_run, &s);
}

// A wire between two connections: it ends behind `left` bytes, and flips a bit at a position.
typedef struct {
    volt_frame frame;
    int from, to;
    uint64_t left, n_moved, flip_at;
    int64_t n;
    char buf[4096];
} wire;
static volt_poll wire_run(volt_cx *cx, wire *w) {
    VOLT_BEGIN(cx, w);
    for (w->n_moved = 0; w->left > 0; w->left -= (uint64_t)w->n, w->n_moved += (uint64_t)w->n) {
        VOLT_AWAIT(w->n, volt_read(cx, w->from, w->buf,
                                   w->left < sizeof w->buf ? (size_t)w->left : sizeof w->buf));
        if (w->n <= 0) break;
        if (w->flip_at - w->n_moved < (uint64_t)w->n) w->buf[w->flip_at - w->n_moved] ^= 4;
        VOLT_AWAIT(w->n, volt_write_all(cx, w->to, w->buf, (size_t)w->n));
        if (w->n < 0) break;
    }
    volt_sock_shutdown(w->from, SHUT_RD);
    volt_sock_shutdown(w->to, SHUT_WR);
    VOLT_END(0);
}
enum { WIRE_BYTES = 30000 };
typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[4];
    wire there, back;
    struct talker {
        volt_frame frame;
        volt_timer late;
        int64_t rc;
        way w;
    } client, server;
    call once;
    int fd[4];
    uint64_t cut_at, flip_at, step, n_back, n_errors;
    int64_t shaken, saved; // the handshake of the client, and the volt_tls_save behind it
    char session[8192];
    volt_time at_most;
} wired;
// Each side shuts its socket down when it is done, or has failed.
static volt_poll wired_client(volt_cx *cx, wired *s) {
    struct talker *c = &s->client;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_within(cx, &c->late, s->at_most, volt_tls_handshake(cx, s->d.client)));
    s->shaken = c->rc;
    s->saved = volt_tls_save(s->d.client, s->session, sizeof s->session);
    c->w.t = s->d.client, c->w.total = WIRE_BYTES, c->w.chunk = 5000;
    if (c->rc == 0)
        VOLT_AWAIT(c->rc, volt_within(cx, &c->late, s->at_most, way_receive(cx, &c->w)));
    volt_sock_shutdown(s->d.client->fd, SHUT_RDWR);
    VOLT_END(c->rc);
}
static volt_poll wired_server(volt_cx *cx, wired *s) {
    struct talker *c = &s->server;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_within(cx, &c->late, s->at_most, volt_tls_handshake(cx, s->d.server)));
    c->w.t = s->d.server, c->w.total = WIRE_BYTES, c->w.chunk = 20000;
    if (c->rc == 0) VOLT_AWAIT(c->rc, volt_within(cx, &c->late, s->at_most, way_send(cx, &c->w)));
    volt_sock_shutdown(s->d.server->fd, SHUT_RDWR);
    VOLT_END(c->rc);
}
static volt_poll wired_once(volt_cx *cx, wired *s) {
    call *c = &s->once;
    VOLT_BEGIN(cx, c);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd + 2), 0);
    duo_over(&s->d, s->fd[0], s->fd[3], "localhost");
    s->there.from = s->back.to = s->fd[1], s->there.to = s->back.from = s->fd[2];
    s->there.left = UINT64_MAX, s->there.flip_at = UINT64_MAX;
    s->back.left = s->cut_at, s->back.flip_at = s->flip_at;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], wire_run(cx, &s->there)),
                             VOLT_ARM(&s->arm[1], wire_run(cx, &s->back)),
                             VOLT_ARM(&s->arm[2], wired_client(cx, s)),
                             VOLT_ARM(&s->arm[3], wired_server(cx, s))));
    volt_close(cx, s->fd[1]);
    volt_close(cx, s->fd[2]);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
static volt_poll cuts_run(volt_cx *cx, void *arg) {
    wired *s = (wired *)arg;
    VOLT_BEGIN(cx, s);
    s->at_most = VOLT_S(20);
    s->cut_at = s->flip_at = UINT64_MAX;
    VOLT_AWAIT(wired_once(cx, s)); // whole
    CHECK_EQ(s->arm[2].value, 0);
    CHECK_EQ(s->arm[3].value, 0);
    s->n_back = s->back.n_moved;
    for (s->cut_at = 0; s->cut_at < s->n_back; s->cut_at += s->step) {
        VOLT_AWAIT(wired_once(cx, s));
        CHECK_EQ(s->arm[2].value, -ECONNABORTED);
    }
    VOLT_END(0);
}
TEST(stream_that_is_cut_anywhere_is_an_error) {
    static wired s;
    s.step = 30000 / part_of(100) + 97;
    run(1, cuts_run, &s);
}
// A changed byte is an error, or, in a field that TLS does not check, nothing. It may also be a
// length for which a side waits until its time limit.
static volt_poll flips_run(volt_cx *cx, void *arg) {
    wired *s = (wired *)arg;
    VOLT_BEGIN(cx, s);
    s->at_most = VOLT_S(20);
    s->cut_at = s->flip_at = UINT64_MAX;
    VOLT_AWAIT(wired_once(cx, s));
    s->n_back = s->back.n_moved;
    s->at_most = VOLT_S(10);
    for (s->flip_at = 0; s->flip_at < s->n_back; s->flip_at += s->step) {
        VOLT_AWAIT(wired_once(cx, s)); // which checks the data
        s->n_errors += s->arm[2].value < 0 && s->arm[2].value != -ETIMEDOUT;
    }
    CHECK(s->n_errors * s->step > s->n_back * 9 / 10);
    VOLT_END(0);
}
TEST(changed_byte_is_never_taken_for_data) {
    static wired s;
    s.step = 30000 / part_of(100) + 7;
    run(1, flips_run, &s);
}

// ---- a peer that stops reading. A write is given up, and has taken what it says. The rest of its
// record is sent by a read that begins later, or waits already.

typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[3];
    volt_event stalled;
    volt_timer late;
    call writes, reads, peer;
    uint64_t n_taken, n_read;
    size_t n_piece;
    int is_reading;
    char out[20000], in[20000], byte;
} stall;
static volt_poll stall_read(volt_cx *cx, stall *s) {
    call *c = &s->reads;
    VOLT_BEGIN(cx, c);
    if (!s->is_reading) VOLT_AWAIT(c->rc, volt_event_wait(cx, &s->stalled));
    VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.client), &s->byte, 1));
    CHECK_EQ(c->rc, 1);
    CHECK_EQ(s->byte, '!');
    VOLT_END(0);
}
static volt_poll stall_write(volt_cx *cx, stall *s) {
    call *c = &s->writes;
    VOLT_BEGIN(cx, c);
    do { // until one was given up, and the next one has taken nothing
        pattern_fill(s->out, s->n_taken, sizeof s->out);
        VOLT_AWAIT(c->rc, volt_within(cx, &s->late, VOLT_MS(20),
                                      volt_stream_write(cx, of(s->d.client), s->out,
                                                        sizeof s->out)));
        if (c->rc > 0) s->n_taken += (uint64_t)c->rc;
    } while (c->rc > 0);
    CHECK_EQ(c->rc, -ETIMEDOUT);
    // the rest of the last record, and no other one
    CHECK(s->d.client->out && s->d.client->to <= VOLT_TLS_RECORD + 600);
    volt_event_set(&s->stalled);
    VOLT_END(0);
}
static volt_poll stall_peer(volt_cx *cx, stall *s) {
    call *c = &s->peer;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_event_wait(cx, &s->stalled));
    for (s->n_piece = 0; s->n_piece < 10; s->n_piece++) // the read is in its wait
        VOLT_AWAIT(volt_yield(cx));
    for (s->n_read = 0; s->n_read < s->n_taken; s->n_read += (uint64_t)c->rc) {
        VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.server), s->in, sizeof s->in));
        CHECK(c->rc > 0);
        pattern_check(s->in, s->n_read, (size_t)c->rc);
    }
    CHECK_EQ(s->n_read, s->n_taken);
    VOLT_AWAIT(c->rc, volt_stream_write(cx, of(s->d.server), "!", 1));
    VOLT_END(0);
}
static volt_poll stall_run(volt_cx *cx, void *arg) {
    stall *s = (stall *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], stall_read(cx, s)),
                             VOLT_ARM(&s->arm[1], stall_write(cx, s)),
                             VOLT_ARM(&s->arm[2], stall_peer(cx, s))));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(write_that_is_given_up_has_taken_what_it_says_and_a_read_sends_it) {
    static stall later, reading = { .is_reading = 1 };
    run(1, stall_run, &later);
    run(1, stall_run, &reading);
}

// A write has sent all of its bytes when it returns, so that no other operation need follow.
static volt_poll whole_write(volt_cx *cx, stall *s) {
    call *c = &s->writes;
    VOLT_BEGIN(cx, c);
    pattern_fill(s->out, 0, sizeof s->out);
    VOLT_AWAIT(c->rc, volt_stream_write(cx, of(s->d.client), s->out, sizeof s->out));
    s->n_taken = (uint64_t)c->rc;
    CHECK(c->rc > 0);
    volt_event_set(&s->stalled);
    VOLT_END(0);
}
static volt_poll whole_read(volt_cx *cx, stall *s) {
    call *c = &s->peer;
    VOLT_BEGIN(cx, c);
    while (!s->n_taken || s->n_read < s->n_taken) {
        VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.server), s->in, sizeof s->in));
        CHECK(c->rc > 0);
        pattern_check(s->in, s->n_read, (size_t)c->rc);
        s->n_read += (uint64_t)c->rc;
        if (s->n_read == VOLT_TLS_RECORD) VOLT_AWAIT(volt_event_wait(cx, &s->stalled));
    }
    VOLT_END(0);
}
static volt_poll whole_run(volt_cx *cx, void *arg) {
    stall *s = (stall *)arg;
    VOLT_BEGIN(cx, s);
    duo_open_small(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], whole_write(cx, s)),
                             VOLT_ARM(&s->arm[1], whole_read(cx, s))));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(write_returns_when_all_of_its_bytes_are_sent) {
    static stall s;
    run(1, whole_run, &s);
}

static volt_poll dropped_run(volt_cx *cx, void *arg) {
    stall *s = (stall *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(stall_write(cx, s));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(connection_can_be_closed_in_the_middle_of_a_record) {
    static stall s;
    run(1, dropped_run, &s);
}

// The rest of a record needs memory.
static volt_poll no_memory_run(volt_cx *cx, void *arg) {
    stall *s = (stall *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    test_has_no_memory = 1;
    do {
        VOLT_AWAIT(s->writes.rc, volt_stream_write(cx, of(s->d.client), s->out, sizeof s->out));
    } while (s->writes.rc > 0);
    test_has_no_memory = 0;
    CHECK_EQ(s->writes.rc, -ENOMEM);
    CHECK(s->d.client->why[0]);
    VOLT_AWAIT(s->writes.rc, volt_stream_read(cx, of(s->d.client), s->in, sizeof s->in));
    CHECK_EQ(s->writes.rc, -ENOMEM);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(write_without_memory_ends_the_connection) {
    static stall s;
    run(1, no_memory_run, &s);
}

// ---- an error of one operation ends the other one, which waits. If it does not, a token does it
// some polls later.

typedef struct {
    volt_frame frame;
    stall s;
    volt_token token;
    volt_token_link link;
    call turns;
    int i, is_late; // is_late: the write begins when there is no room
} ending;
static volt_poll ten_turns(volt_cx *cx, ending *e) {
    VOLT_BEGIN(cx, &e->turns);
    for (e->i = 0; e->i < 10; e->i++) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
static volt_poll failing_write(volt_cx *cx, ending *e) {
    call *c = &e->s.writes;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(ten_turns(cx, e)); // the read is in its wait
    test_has_no_memory = 1;
    do {
        VOLT_AWAIT(c->rc, volt_stream_write(cx, of(e->s.d.client), e->s.out, sizeof e->s.out));
    } while (c->rc > 0);
    test_has_no_memory = 0;
    VOLT_AWAIT(ten_turns(cx, e));
    volt_token_cancel(&e->token);
    VOLT_END(c->rc);
}
static volt_poll read_ends_run(volt_cx *cx, void *arg) {
    ending *e = (ending *)arg;
    stall *const s = &e->s;
    VOLT_BEGIN(cx, e);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(VOLT_JOIN_ALL(
        VOLT_ARM(&s->arm[0], volt_with_token(cx, &e->link, &e->token,
                                             volt_stream_read(cx, of(s->d.client), s->in, 100))),
        VOLT_ARM(&s->arm[1], failing_write(cx, e))));
    CHECK_EQ(s->arm[1].value, -ENOMEM);
    CHECK_EQ(s->arm[0].value, -ENOMEM);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(error_of_a_write_ends_a_read_that_waits) {
    static ending e;
    run(1, read_ends_run, &e);
}

static volt_poll failing_read(volt_cx *cx, ending *e) {
    static const char garbage[] = "a line of text that is no record";
    call *c = &e->s.reads;
    VOLT_BEGIN(cx, c);
    while (e->s.d.client->to == 0) VOLT_AWAIT(volt_yield(cx)); // until the write waits for room
    VOLT_AWAIT(ten_turns(cx, e));
    VOLT_AWAIT(c->rc, volt_write_all(cx, e->s.d.server->fd, garbage, sizeof garbage - 1));
    VOLT_AWAIT(c->rc, volt_stream_read(cx, of(e->s.d.client), e->s.in, sizeof e->s.in));
    VOLT_AWAIT(ten_turns(cx, e));
    volt_token_cancel(&e->token);
    VOLT_END(c->rc);
}
static volt_poll stuck_write(volt_cx *cx, ending *e) {
    call *c = &e->s.peer;
    VOLT_BEGIN(cx, c);
    do {
        VOLT_AWAIT(c->rc, volt_with_token(cx, &e->link, &e->token,
                                          volt_stream_write(cx, of(e->s.d.client), e->s.out,
                                                            sizeof e->s.out)));
    } while (c->rc > 0);
    VOLT_END(c->rc);
}
static volt_poll write_ends_run(volt_cx *cx, void *arg) {
    ending *e = (ending *)arg;
    stall *const s = &e->s;
    VOLT_BEGIN(cx, e);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    if (e->is_late) VOLT_AWAIT(stall_write(cx, s));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], stuck_write(cx, e)),
                             VOLT_ARM(&s->arm[1], failing_read(cx, e))));
    CHECK_EQ(s->arm[1].value, -EPROTO);
    CHECK_EQ(s->arm[0].value, -EPROTO);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(error_of_a_read_ends_a_write_that_waits_for_room) {
    static ending early, late = { .is_late = 1 };
    run(1, write_ends_run, &early);
    run(1, write_ends_run, &late);
}

// ---- a peer that sends records without data, through which one read works

typedef struct {
    volt_frame frame;
    duo d;
    volt_group others;
    int64_t rc;
    int n_records, n_bytes, n_turns, is_over;
    char byte;
} silence;
typedef struct {
    volt_frame frame;
    silence *s;
} other;
// Another task of the same worker, which has a turn between two polls of the read.
static volt_poll other_run(volt_cx *cx, void *arg) {
    other *o = (other *)arg;
    VOLT_BEGIN(cx, o);
    while (!o->s->is_over) {
        o->s->n_turns++;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
static volt_poll silence_run(volt_cx *cx, void *arg) {
    static const int room = 1 << 20;
    silence *s = (silence *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(setsockopt(s->d.client->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    s->d.client->cx = cx;
    for (int i = 0; i < s->n_records; i++) TLS_SAY_NOTHING(s->d.client);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.client), "x", 1));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(ioctl(s->d.server->fd, FIONREAD, &s->n_bytes), 0); // all is there
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->others, other_run, (other){ .s = s }), 0);
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.server), &s->byte, 1));
    CHECK_EQ(s->rc, 1);
    s->is_over = 1;
    printf("%d bytes, %d turns\n", s->n_bytes, s->n_turns);
    CHECK(s->n_turns >= (s->n_bytes - 1) / (VOLT_TLS_RECORD + 1024)); // a record for each poll
    CHECK(s->n_turns > 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->others));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(peer_that_sends_records_without_data_holds_no_worker) {
    static silence s;
    if (getenv("TLS_1_2") && TLS_BOUNDS_1_2) SKIP("the library accepts few of them with TLS 1.2");
    s.n_records = getenv("TLS_SHORT") ? 4000 : 7500;
    run(1, silence_run, &s);
}

// ---- renegotiation, with TLS 1.2: refused, unless the program allows it; a write then needs input

typedef struct {
    volt_frame frame;
    duo d;
    volt_arm arm[3];
    call writes, reads, peer;
    int i, n, is_reading, has_waited; // has_waited: a write for input
    char buf[100], byte;
} renewal;
static volt_poll renewal_write(volt_cx *cx, renewal *s) {
    volt_poll p = volt_stream_write(cx, of(s->d.client), s->buf, sizeof s->buf);
    if (volt_is_pending(p) && s->d.client->writing.wants & VOLT_IN) s->has_waited = 1;
    return p;
}
static volt_poll renewal_writes(volt_cx *cx, renewal *s) {
    call *c = &s->writes;
    VOLT_BEGIN(cx, c);
    for (s->i = 0; s->i < 5; s->i++) {
        s->d.client->cx = cx;
        TLS_RENEGOTIATE(s->d.client);
        VOLT_AWAIT(c->rc, renewal_write(cx, s));
        if (c->rc < 0) break;
    }
    if (c->rc < 0) volt_sock_shutdown(s->d.client->fd, SHUT_RDWR);
    VOLT_END(c->rc);
}
// A read that is in progress may take the input of the write.
static volt_poll renewal_reads(volt_cx *cx, renewal *s) {
    call *c = &s->reads;
    VOLT_BEGIN(cx, c);
    if (s->is_reading) VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.client), &s->byte, 1));
    VOLT_END(c->rc);
}
static volt_poll renewal_peer(volt_cx *cx, renewal *s) {
    static char in[100];
    call *c = &s->peer;
    VOLT_BEGIN(cx, c);
    for (s->n = 0; s->n < 5 * (int)sizeof s->buf; s->n += (int)c->rc) {
        VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->d.server), in, sizeof in));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        CHECK(c->rc > 0);
    }
    VOLT_AWAIT(c->rc, volt_stream_write(cx, of(s->d.server), "!", 1));
    VOLT_END(c->rc);
}
static volt_poll renewal_run(volt_cx *cx, void *arg) {
    renewal *s = (renewal *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(duo_shake(cx, &s->d));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], renewal_reads(cx, s)),
                             VOLT_ARM(&s->arm[1], renewal_writes(cx, s)),
                             VOLT_ARM(&s->arm[2], renewal_peer(cx, s))));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
static void renew(renewal *s, int is_allowed) {
    contexts();
    TLS_ONLY_1_2(&client_context);
    TLS_ALLOW_RENEGOTIATION(&client_context);
    if (is_allowed) TLS_ALLOW_RENEGOTIATION(&server_context);
    run(1, renewal_run, s);
}
TEST(write_waits_for_the_input_that_it_needs) {
    static renewal alone, reading = { .is_reading = 1 };
    renew(&alone, 1);
    CHECK_EQ(alone.arm[1].value, sizeof alone.buf);
    CHECK_EQ(alone.arm[2].value, 1);
    CHECK(alone.has_waited);
    renew(&reading, 1);
    CHECK_EQ(reading.arm[0].value, 1);
    CHECK_EQ(reading.arm[1].value, sizeof alone.buf);
    CHECK_EQ(reading.arm[2].value, 1);
}
TEST(renegotiation_is_refused_and_ends_the_connection) {
    static renewal s;
    renew(&s, 0);
    CHECK_EQ(s.arm[1].value, -EPROTO);
    CHECK(s.arm[2].value < 0);
}

// A library whose write reads what is there, as in a renegotiation, and keeps it for the next read.
typedef struct {
    volt_frame frame;
    volt_tls *t;
    volt_tls_library library;
    volt_tls_context context;
    volt_arm arm[2];
    call reads, writes;
    int fd[2];
    int64_t n_kept;
    uint32_t n_woken;
    char kept[8], got[8];
} hoard;
static hoard the_hoard;
static int64_t hoard_call(volt_tls *t, volt_tls__kind kind, void *buf, size_t len) {
    hoard *s = &the_hoard;
    if (kind == VOLT_TLS__HANDSHAKE) return 0;
    if (kind == VOLT_TLS__WRITE) {
        s->n_kept = volt_tls__get(t, s->kept, sizeof s->kept);
        return (int64_t)len;
    }
    if (s->n_kept <= 0) return volt_tls__get(t, buf, len);
    int64_t n = s->n_kept;
    memcpy(buf, s->kept, (size_t)n);
    s->n_kept = 0;
    return n;
}
static volt_poll hoard_reads(volt_cx *cx, hoard *s) {
    call *c = &s->reads;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_stream_read(cx, of(s->t), s->got, sizeof s->got));
    VOLT_END(c->rc);
}
// The write takes the input before the read is polled. The event has woken the read here, but with
// several workers the read may begin its wait behind the event, so that the write must wake it.
static volt_poll hoard_writes(volt_cx *cx, hoard *s) {
    call *c = &s->writes;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(send(s->fd[1], "input", 5, 0), 5);
    while (s->n_kept <= 0) {
        VOLT_AWAIT(volt_yield(cx));
        s->n_woken = volt_notify_count(&s->t->wake);
        VOLT_AWAIT(c->rc, volt_stream_write(cx, of(s->t), "x", 1));
    }
    CHECK_EQ(s->n_kept, 5);
    CHECK_EQ(volt_notify_count(&s->t->wake), s->n_woken + 1);
    VOLT_END(c->rc);
}
static volt_poll hoard_run(volt_cx *cx, void *arg) {
    hoard *s = (hoard *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    s->library = *client_context.library;
    s->library.call = hoard_call;
    s->context = client_context;
    s->context.library = &s->library, s->context.has_alpn = 0;
    CHECK_EQ(volt_tls_open(&s->t, &s->context, s->fd[0], "localhost"), 0);
    VOLT_AWAIT(volt_tls_handshake(cx, s->t));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], hoard_writes(cx, s)),
                             VOLT_ARM(&s->arm[1], hoard_reads(cx, s))));
    CHECK_EQ(s->arm[0].value, 1);
    CHECK_EQ(s->arm[1].value, 5);
    CHECK_STR(s->got, "input");
    volt_tls_close(cx, s->t);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
TEST(write_that_reads_input_wakes_the_read_that_waits_for_it) {
    run(1, hoard_run, &the_hoard);
}

// ---- sessions

typedef struct {
    volt_frame frame;
    duo d;
    int64_t rc, n;
    int expects, fd[2];
    const char *name;
    char session[8192], other[8192], byte;
} sessions;
// Makes a connection, with the session if there is one, and saves its session.
static volt_poll session_run(volt_cx *cx, void *arg) {
    sessions *s = (sessions *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    CHECK_EQ(volt_tls_save(s->d.client, s->other, sizeof s->other), -EAGAIN);
    if (s->n > 0) CHECK_EQ(volt_tls_resume(s->d.client, s->session, (size_t)s->n), 0);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->d.client->is_resumed, s->expects);
    CHECK_EQ(s->d.server->is_resumed, s->expects);
    CHECK_STR(s->d.client->protocol, "test");
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.server), "x", 1));
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), &s->byte, 1));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(volt_tls_save(s->d.server, s->session, sizeof s->session), -EINVAL);
    s->n = volt_tls_save(s->d.client, s->session, sizeof s->session);
    CHECK(s->n > 0);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, of(s->d.client)));
    VOLT_AWAIT(s->rc, volt_stream_end(cx, of(s->d.server)));
    duo_close(cx, &s->d);
    VOLT_END(0);
}
static void session_make(sessions *s, int expects) {
    volt_config c = { .workers = 1 };
    memset(&s->frame, 0, sizeof s->frame);
    s->expects = expects;
    CHECK_EQ(volt_run(&c, session_run, s), 0);
}
TEST(second_handshake_resumes_the_session_of_the_first) {
    static sessions s;
    contexts();
    session_make(&s, 0);
    session_make(&s, 1);
    session_make(&s, 1);
    volt_tls_context_free(&server_context); // its tickets end with it
    serve_by("good.pem", "good.key", "test");
    session_make(&s, 0);
    contexts_free();
}
// Before the end of a handshake, which authenticates it, a library may have a session already.
static volt_poll unfinished_run(volt_cx *cx, void *arg) {
    wired *s = (wired *)arg;
    VOLT_BEGIN(cx, s);
    s->at_most = VOLT_S(20);
    s->flip_at = UINT64_MAX;
    for (s->shaken = -1; s->shaken < 0; s->cut_at += s->step) {
        VOLT_AWAIT(wired_once(cx, s));
        if (s->shaken < 0) CHECK_EQ(s->saved, -EAGAIN);
    }
    CHECK(s->cut_at > s->step); // some have failed
    CHECK(s->saved > 0);
    VOLT_END(0);
}
TEST(session_of_a_handshake_that_failed_is_not_saved) {
    static wired s;
    s.step = getenv("TLS_SHORT") ? 150 : 17;
    contexts();
    TLS_ONLY_1_2(&server_context);
    run(1, unfinished_run, &s);
}
static volt_poll wrong_session_run(volt_cx *cx, void *arg) {
    sessions *s = (sessions *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    for (size_t n = 0; n < (size_t)s->n; n++)
        CHECK_EQ(volt_tls_resume(s->d.client, s->session, n), -EINVAL);
    CHECK_EQ(volt_tls_resume(s->d.server, s->session, (size_t)s->n), -EINVAL);
    memcpy(s->other, s->session, (size_t)s->n);
    s->other[0] ^= 1; // of another name
    CHECK_EQ(volt_tls_resume(s->d.client, s->other, (size_t)s->n), -EINVAL);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(session_that_is_broken_or_of_another_name_is_refused) {
    static sessions s;
    contexts();
    session_make(&s, 0);
    memset(&s.frame, 0, sizeof s.frame);
    run(1, wrong_session_run, &s);
}
static volt_poll long_session_run(volt_cx *cx, void *arg) {
    sessions *s = (sessions *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    VOLT_AWAIT(s->rc, volt_stream_write(cx, of(s->d.server), "x", 1));
    VOLT_AWAIT(s->rc, volt_stream_read(cx, of(s->d.client), &s->byte, 1));
    CHECK_EQ(volt_tls_save(s->d.client, s->session, 5), -EMSGSIZE);
    CHECK_EQ(volt_tls_save(s->d.client, s->session, 50), -EMSGSIZE);
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(session_that_does_not_fit_is_refused) {
    static sessions s;
    run(1, long_session_run, &s);
}

// ---- many connections on several workers: each has four tasks

enum { MANY = 12, MANY_BYTES = 300000 };
typedef struct {
    volt_frame frame;
    volt_tls *t;
    int64_t rc;
} shaker;
static volt_poll shaker_run(volt_cx *cx, void *arg) {
    shaker *s = (shaker *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_tls_handshake(cx, s->t));
    VOLT_END(s->rc);
}
typedef struct {
    volt_frame frame;
    duo d[MANY];
    volt_group all;
    int64_t rc;
} many;
static void many_spawn(volt_cx *cx, many *m, volt_tls *t, int is_send) {
    static way w; // copied
    w.t = t, w.total = part_of(MANY_BYTES), w.chunk = 20000;
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &m->all, is_send ? send_run : receive_run, w), 0);
}
static volt_poll many_run(volt_cx *cx, void *arg) {
    many *m = (many *)arg;
    VOLT_BEGIN(cx, m);
    for (int i = 0; i < MANY; i++) {
        duo_open(&m->d[i]);
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &m->all, shaker_run, (shaker){ .t = m->d[i].client }), 0);
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &m->all, shaker_run, (shaker){ .t = m->d[i].server }), 0);
    }
    VOLT_AWAIT(m->rc, volt_group_wait(cx, &m->all));
    CHECK_EQ(m->rc, 0);
    for (int i = 0; i < MANY; i++) {
        many_spawn(cx, m, m->d[i].client, 1);
        many_spawn(cx, m, m->d[i].client, 0);
        many_spawn(cx, m, m->d[i].server, 1);
        many_spawn(cx, m, m->d[i].server, 0);
    }
    VOLT_AWAIT(m->rc, volt_group_wait(cx, &m->all));
    CHECK_EQ(m->rc, 0);
    for (int i = 0; i < MANY; i++) duo_close(cx, &m->d[i]);
    VOLT_END(0);
}
TEST(connections_on_several_workers_share_the_contexts) {
    static many m;
    run(3, many_run, &m);
}
#endif
