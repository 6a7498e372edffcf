// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_nghttp2.h, volt_nghttp2_stream.h and volt_nghttp2_http.h: a
// server and a client of these over a pair of sockets, and peers that send bytes of the test.
// tests/adapters/nghttp2.sh runs other peers against the program.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_nghttp2_http.h"
#include "cancel.h"
#include "tests/lib/test.h"
#include "log.h"

// ---- a server and a client

typedef struct {
    volt_frame frame;
    volt_nghttp2_conn *http;
    int fd, *rc;
    int64_t n;
    char rest[1024];
} side; // of a connection
// A client drops what the server still sends, such as a window: closing the socket with unread
// input would be a reset.
static volt_poll side_run(volt_cx *cx, void *arg) {
    side *s = (side *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(*s->rc, volt_nghttp2_serve(cx, s->http, volt_stream_of(s->fd)));
    if (!s->http->o.handler) volt_sock_shutdown(s->fd, SHUT_WR);
    for (s->n = !s->http->o.handler; s->n > 0;)
        VOLT_AWAIT(s->n, volt_read(cx, s->fd, s->rest, sizeof s->rest));
    volt_close(cx, s->fd);
    VOLT_END(0);
}

// Counts of the handlers.
typedef struct {
    int n_begun, n_ended, n_cancelled, n_written;
    volt_event release;
} witness;

typedef struct {
    volt_frame frame;
    volt_copier copy;
    volt_timer limit;
    volt_shield shield;
    int64_t n;
    char text[4096];
} handled;

static const char *const plain[] = { "content-type", "text/plain", NULL };
static witness *witness_of(volt_nghttp2_stream *r) { return (witness *)r->conn->o.user; }

// Answers by the path.
static volt_poll handler(volt_cx *cx, volt_nghttp2_stream *r) {
    static char zeros[65536];
    handled *s = (handled *)r->state;
    witness *const w = witness_of(r);
    const char *const field = volt_nghttp2_field(r, ":path");
    const char *const path = field ? field : ""; // CONNECT has none
    VOLT_BEGIN(cx, s);
    __atomic_add_fetch(&w->n_begun, 1, __ATOMIC_RELAXED);
    if (strcmp(path, "/echo") == 0) {
        s->n = volt_nghttp2_respond(r, 200, plain, 0);
        volt_copier_init(&s->copy, volt_nghttp2_body(r), volt_nghttp2_body(r), NULL, 0);
        if (s->n == 0) VOLT_AWAIT(s->n, volt_copy(cx, &s->copy, UINT64_MAX));
        volt_copier_close(cx, &s->copy);
    } else if (strcmp(path, "/wait") == 0) { // neither reads nor answers
        VOLT_AWAIT(s->n, volt_event_wait(cx, &w->release));
        if (s->n == 0) s->n = volt_nghttp2_respond(r, 204, NULL, 1);
    } else if (strcmp(path, "/stubborn") == 0) { // does not end when it is cancelled
        volt_shield_begin(cx, &s->shield, VOLT_NEVER);
        VOLT_AWAIT(s->n, volt_event_wait(cx, &w->release));
        volt_shield_end(cx, &s->shield);
    } else if (strcmp(path, "/zeros") == 0) { // without an end
        s->n = volt_nghttp2_respond(r, 200, plain, 0);
        if (s->n == 0) do {
            VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), zeros, sizeof zeros));
            if (s->n > 0) __atomic_add_fetch(&w->n_written, (int)s->n, __ATOMIC_RELAXED);
        } while (s->n > 0);
    } else if (strcmp(path, "/nothing") == 0) {
        s->n = 0;
    } else if (strcmp(path, "/fails") == 0) {
        s->n = -EIO;
    } else if (strcmp(path, "/breaks") == 0) {
        CHECK_EQ(volt_nghttp2_respond(r, 200, plain, 0), 0);
        VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), "part", 4));
        VOLT_AWAIT(s->n, volt_event_wait(cx, &w->release));
        if (s->n == 0) s->n = -EIO;
    } else if (strcmp(path, "/misuse") == 0) {
        const char *many[2 * 70 + 1];
        for (int i = 0; i < 140; i++) many[i] = "x";
        many[140] = NULL;
        CHECK_EQ(volt_nghttp2_respond(r, 200, many, 1), -E2BIG);
        VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), "x", 1));
        CHECK_EQ(s->n, -EPIPE); // before the answer
        VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(r)));
        CHECK_EQ(s->n, -EPIPE);
        CHECK_EQ(volt_nghttp2_respond(r, 200, plain, 0), 0);
        CHECK_EQ(volt_nghttp2_respond(r, 200, plain, 0), -EINVAL);
        VOLT_AWAIT(s->n, volt_stream_ready(cx, volt_nghttp2_body(r)));
        CHECK_EQ(s->n, 0);
        VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(r)));
        CHECK_EQ(s->n, 0);
        VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(r)));
        CHECK_EQ(s->n, 0);
        VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), "x", 1));
        CHECK_EQ(s->n, -EPIPE); // behind the end
        s->n = 0;
    } else { // a field of the request
        const char *value = volt_nghttp2_field(r, "x-field");
        CHECK(volt_nghttp2_field(r, "x-missing") == NULL);
        snprintf(s->text, sizeof s->text, "%s %s", volt_nghttp2_field(r, ":method"),
                 value ? value : "");
        s->n = volt_nghttp2_respond(r, 200, plain, 0);
        if (s->n == 0)
            VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), s->text, strlen(s->text)));
    }
    __atomic_add_fetch(&w->n_cancelled, s->n == -ECANCELED || s->n == -ECONNRESET,
                       __ATOMIC_RELAXED);
    __atomic_add_fetch(&w->n_ended, 1, __ATOMIC_RELEASE);
    VOLT_END(s->n);
}

typedef struct {
    volt_frame frame;
    volt_group group;
    volt_nghttp2_conn *server, *client;
    witness w;
    int server_rc, client_rc, fds[2], rc;
} pair;
// Opens both sides; raw: only the server, and fds[1] is the other end.
static void pair_open(volt_cx *cx, pair *p, int is_raw, volt_time limit) {
    const volt_nghttp2_options server = { .handler = handler, .state_size = sizeof(handled),
                                          .user = &p->w, .limit = limit };
    const volt_nghttp2_options client = { .limit = 0 };
    memset(&p->w, 0, sizeof p->w);
    p->server_rc = p->client_rc = 1;
    CHECK_EQ(volt_socketpair(SOCK_STREAM, p->fds), 0);
    CHECK_EQ(volt_nghttp2_open(&p->server, &server), 0);
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &p->group, side_run,
                              (side){ .http = p->server, .fd = p->fds[0], .rc = &p->server_rc }),
             0);
    p->client = NULL;
    if (is_raw) return;
    CHECK_EQ(volt_nghttp2_open(&p->client, &client), 0);
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &p->group, side_run,
                              (side){ .http = p->client, .fd = p->fds[1], .rc = &p->client_rc }),
             0);
}
// Ends the client in order, waits for both sides, and checks that no task of a request is left.
static volt_poll pair_close(volt_cx *cx, pair *p) {
    VOLT_BEGIN(cx, p);
    if (p->client) volt_nghttp2_stop(&p->client->h);
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->group));
    CHECK_EQ(p->w.n_begun, p->w.n_ended);
    CHECK_EQ(p->server->h.n_busy, 0);
    volt_nghttp2_free(p->server);
    volt_nghttp2_free(p->client);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm left, right;
    cancel_point at;
    pair p;
    volt_nghttp2_stream *r, *other;
    int64_t n, sent, received;
    int i, k, rc;
    unsigned char buf[40000];
    char text[20000];
} test;
static void run_on(uint32_t workers, volt_fn *fn) {
    static test s;
    volt_config config = { .log = { .fn = on_log }, .workers = workers };
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}
static void run(volt_fn *fn) { run_on(0, fn); }
static int request(pair *p, volt_nghttp2_stream **r, const char *method, const char *path,
                   int is_last) {
    const char *const fields[] = { ":method", method, ":scheme", "http", ":authority", "test",
                                   ":path", path, "x-field", "its value", NULL };
    return volt_nghttp2_request(p->client, r, fields, is_last);
}

// ---- requests

static volt_poll simple(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/field", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    CHECK_STR(volt_nghttp2_field(s->r, "content-type"), "text/plain");
    VOLT_AWAIT(s->rc, volt_stream_ready(cx, volt_nghttp2_body(s->r)));
    CHECK_EQ(s->rc, 0);
    for (s->received = 0;; s->received += s->n) {
        VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf + s->received, 5));
        CHECK(s->n >= 0);
        if (s->n == 0) break;
    }
    s->buf[s->received] = 0;
    CHECK_STR((char *)s->buf, "GET its value");
    volt_nghttp2_leave(s->r);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/misuse", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->r), "x", 1));
    CHECK_EQ(s->n, -EPIPE); // the request is complete
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    CHECK_EQ(s->p.client_rc, 0);
    VOLT_END(0);
}
TEST(request_has_fields_and_gets_an_answer) { run(simple); }

static volt_poll failures(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/fails", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 500);
    volt_nghttp2_leave(s->r);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/nothing", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, -ECONNRESET);
    volt_nghttp2_leave(s->r);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/breaks", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, 4);
    volt_event_set(&s->p.w.release);
    VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, -ECONNRESET); // not a complete body
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(handler_that_fails_gives_500_or_a_reset) { run(failures); }

static volt_poll without_path(volt_cx *cx, void *arg) {
    static const char *const fields[] = { ":method", "CONNECT", ":authority", "test:80", NULL };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(volt_nghttp2_request(s->p.client, &s->r, fields, 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, 8);
    CHECK(memcmp(s->buf, "CONNECT ", 8) == 0);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(connect_has_no_path_and_gets_an_answer) { run(without_path); }

// Requests that are left at each stage of their answer, by a task on another worker than that of
// the session: the thread sanitizer sees what has no lock.
enum { LEFT = 600, LEFT_ROUNDS = 5 }; // nghttp2 ends a session with 1000 resets
static volt_poll leaving(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < LEFT_ROUNDS; s->n++) {
        pair_open(cx, &s->p, 0, 0);
        for (s->i = 0; s->i < LEFT; s->i++) {
            CHECK_EQ(request(&s->p, &s->r, "GET", "/field", 1), 0);
            for (s->k = 0; s->k < s->i % 40; s->k++) VOLT_AWAIT(volt_yield(cx));
            volt_nghttp2_leave(s->r);
        }
        VOLT_AWAIT(pair_close(cx, &s->p));
        CHECK_EQ(s->p.client_rc, 0);
    }
    VOLT_END(0);
}
TEST(request_is_left_while_its_answer_comes) { run(leaving); }

// ---- many at once

enum { BODY = 300000, REQUESTS = 400, USERS = 150 };
typedef struct {
    volt_frame frame;
    pair *p;
    volt_arm in, out;
    volt_nghttp2_stream *r;
    int64_t n, sent, received;
    int number, i, rc;
    unsigned char to[5000], from[7000];
} user;
typedef struct {
    volt_frame frame;
    user *u;
} upload;
static volt_poll upload_run(volt_cx *cx, upload *up) {
    user *const u = up->u;
    VOLT_BEGIN(cx, up);
    for (u->sent = 0; u->sent < BODY; u->sent += u->n) {
        for (size_t i = 0; i < sizeof u->to; i++)
            u->to[i] = (unsigned char)((u->sent + (int64_t)i) * u->number >> 3);
        VOLT_AWAIT(u->n, volt_stream_write(cx, volt_nghttp2_body(u->r), u->to,
                                           BODY - u->sent < 5000 ? (size_t)(BODY - u->sent)
                                                                 : sizeof u->to));
        CHECK(u->n > 0);
    }
    VOLT_AWAIT(u->n, volt_stream_end(cx, volt_nghttp2_body(u->r)));
    VOLT_END(u->n);
}
typedef struct {
    volt_frame frame;
    user *u;
    int64_t n;
} download;
static volt_poll download_run(volt_cx *cx, download *down) {
    user *const u = down->u;
    VOLT_BEGIN(cx, down);
    for (;;) {
        VOLT_AWAIT(down->n, volt_stream_read(cx, volt_nghttp2_body(u->r), u->from,
                                             sizeof u->from));
        if (down->n <= 0) break;
        for (int64_t i = 0; i < down->n; i++)
            CHECK_EQ(u->from[i], (unsigned char)((u->received + i) * u->number >> 3));
        u->received += down->n;
    }
    VOLT_END(down->n);
}
typedef struct {
    volt_frame frame;
    user u;
    upload up;
    download down;
} echo;
static volt_poll echo_run(volt_cx *cx, void *arg) {
    echo *e = (echo *)arg;
    user *const u = &e->u;
    VOLT_BEGIN(cx, e);
    CHECK_EQ(request(u->p, &u->r, "POST", "/echo", 0), 0);
    e->up.u = e->down.u = u;
    VOLT_AWAIT(u->rc, VOLT_JOIN_ALL(VOLT_ARM(&u->out, upload_run(cx, &e->up)),
                                    VOLT_ARM(&u->in, download_run(cx, &e->down))));
    CHECK_EQ(u->out.value, 0);
    CHECK_EQ(u->in.value, 0);
    CHECK_EQ(u->received, BODY);
    volt_nghttp2_leave(u->r);
    VOLT_END(0);
}
static volt_poll many_run(volt_cx *cx, void *arg) { // small ones, one after the other
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    for (u->i = 0; u->i < REQUESTS / USERS + 1; u->i++) {
        CHECK_EQ(request(u->p, &u->r, "GET", "/field", 1), 0);
        VOLT_AWAIT(u->rc, volt_nghttp2_status(cx, u->r));
        CHECK_EQ(u->rc, 200);
        for (u->received = 0;; u->received += u->n) { // a window may end inside
            VOLT_AWAIT(u->n, volt_stream_read(cx, volt_nghttp2_body(u->r), u->from + u->received,
                                              100));
            if (u->n <= 0) break;
        }
        CHECK_EQ(u->n, 0);
        CHECK_EQ(u->received, 13);
        volt_nghttp2_leave(u->r);
    }
    VOLT_END(0);
}
static volt_poll many(volt_cx *cx, void *arg) {
    static volt_group users;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    for (s->i = 0; s->i < 20; s->i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &users, echo_run,
                                  (echo){ .u = { .p = &s->p, .number = s->i + 1 } }), 0);
    for (s->i = 0; s->i < USERS; s->i++) // more than the server allows at once
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &users, many_run, (user){ .p = &s->p }), 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &users));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(many_requests_and_bodies_share_a_connection) { run(many); }

// ---- back-pressure

// Returns 1 if all that was written is on its way.
static int sent_all(volt_nghttp2_conn *c, const volt_nghttp2_stream *r) {
    volt_nghttp2_lock(&c->h);
    int is_sent = r->out.from == r->out.to;
    volt_nghttp2_unlock(&c->h);
    return is_sent;
}

static volt_poll stalled_upload(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(request(&s->p, &s->r, "POST", "/wait", 0), 0);
    for (s->sent = 0;; s->sent += s->n) {
        VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(300),
                                     volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf,
                                                       sizeof s->buf)));
        if (s->n < 0) break;
        CHECK(s->sent < 1 << 20);
    }
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(s->sent, VOLT_NGHTTP2_WINDOW + VOLT_NGHTTP2_ROOM); // the window, and the own buffer
    // another body of the connection is not held up
    CHECK_EQ(request(&s->p, &s->other, "POST", "/echo", 0), 0);
    VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->other), s->buf, 10000));
    CHECK_EQ(s->n, 10000);
    VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(s->other)));
    for (s->received = 0;; s->received += s->n) {
        VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(10),
                                     volt_stream_read(cx, volt_nghttp2_body(s->other), s->text,
                                                      sizeof s->text)));
        if (s->n <= 0) break;
    }
    CHECK_EQ(s->n, 0);
    CHECK_EQ(s->received, 10000);
    volt_nghttp2_leave(s->other);
    // the handler answers without having read
    volt_event_set(&s->p.w.release);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 204);
    // the rest of the request is dropped
    for (s->sent = 0; s->sent < 300000; s->sent += s->n) {
        VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(10),
                                     volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf,
                                                       sizeof s->buf)));
        CHECK(s->n > 0);
    }
    VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(s->r)));
    CHECK_EQ(s->n, 0);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(body_that_is_not_read_holds_up_its_sender_alone) { run(stalled_upload); }


// Bodies that nothing reads, of streams that are reset, must not use up the window of the
// connection.
static volt_poll unread_bodies(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    for (s->i = 0; s->i < 40; s->i++) {
        CHECK_EQ(request(&s->p, &s->r, "POST", "/wait", 0), 0);
        for (s->sent = 0; s->sent < 60000; s->sent += s->n) {
            s->k = s->sent < 40000 ? 20000 : 60000 - (int)s->sent;
            VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(10),
                                         volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf,
                                                           (size_t)s->k)));
            CHECK(s->n > 0);
        }
        while (sent_all(s->p.client, s->r) == 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
        volt_nghttp2_leave(s->r);
    }
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(unread_bodies_of_reset_streams_are_given_back) { run(unread_bodies); }

typedef struct {
    volt_frame frame;
    int before;
} stall;
// Waits until the handler has written something, and then no more for 100 ms.
static volt_poll until_it_stalls(volt_cx *cx, stall *w, const witness *of) {
    VOLT_BEGIN(cx, w);
    do {
        w->before = __atomic_load_n(&of->n_written, __ATOMIC_RELAXED);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100)));
    } while (w->before == 0 || w->before != __atomic_load_n(&of->n_written, __ATOMIC_RELAXED));
    VOLT_END(0);
}
static volt_poll stalled_download(volt_cx *cx, void *arg) {
    static stall w;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(request(&s->p, &s->r, "GET", "/zeros", 1), 0);
    VOLT_AWAIT(until_it_stalls(cx, &w, &s->p.w));
    CHECK_EQ(s->p.w.n_written, VOLT_NGHTTP2_WINDOW + VOLT_NGHTTP2_ROOM);
    for (s->received = 0; s->received < 1000000; s->received += s->n) {
        VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
        CHECK(s->n > 0);
    }
    VOLT_AWAIT(until_it_stalls(cx, &w, &s->p.w));
    CHECK(s->p.w.n_written >= 1000000);
    CHECK(s->p.w.n_written <= s->received + VOLT_NGHTTP2_WINDOW + VOLT_NGHTTP2_ROOM);
    volt_nghttp2_leave(s->r); // resets the stream, which cancels the handler
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.w.n_cancelled, 1);
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(peer_that_does_not_read_holds_up_the_handler) { run(stalled_download); }

// ---- ends

static volt_poll stopped(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    CHECK_EQ(request(&s->p, &s->r, "POST", "/echo", 0), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    volt_nghttp2_stop(&s->p.server->h);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(20)));
    CHECK_EQ(request(&s->p, &s->other, "GET", "/field", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->other));
    CHECK_EQ(s->rc, -ECONNRESET); // it came too late
    volt_nghttp2_leave(s->other);
    VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->r), "still", 5));
    VOLT_AWAIT(s->n, volt_stream_end(cx, volt_nghttp2_body(s->r)));
    VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, 5); // the one in progress is complete
    VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group)); // both sides end
    CHECK_EQ(s->p.server_rc, 0);
    CHECK_EQ(s->p.client_rc, 0);
    CHECK_EQ(request(&s->p, &s->other, "GET", "/field", 1), -ECONNRESET);
    VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->r), "x", 1));
    CHECK(s->n < 0);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(stop_completes_what_is_in_progress) { run(stopped); }

static volt_poll dying(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) { // the peer of a server dies, and that of a client
        pair_open(cx, &s->p, 0, 0);
        CHECK_EQ(request(&s->p, &s->r, "GET", "/wait", 1), 0);
        CHECK_EQ(request(&s->p, &s->other, "GET", "/zeros", 1), 0);
        VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->other));
        CHECK_EQ(s->rc, 200);
        CHECK_EQ(volt_sock_shutdown(s->p.fds[s->i], SHUT_RDWR), 0);
        VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
        CHECK_EQ(s->rc, -ECONNRESET);
        volt_nghttp2_leave(s->r);
        do VOLT_AWAIT(s->n, volt_stream_read(cx, volt_nghttp2_body(s->other), s->buf, 40000));
        while (s->n > 0);
        CHECK_EQ(s->n, -ECONNRESET);
        volt_nghttp2_leave(s->other);
        VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
        CHECK(s->p.server_rc == -ECONNRESET || s->p.server_rc == -EPIPE);
        CHECK(s->p.client_rc == -ECONNRESET || s->p.client_rc == -EPIPE);
        CHECK_EQ(s->p.w.n_cancelled, 2);
        VOLT_AWAIT(pair_close(cx, &s->p));
    }
    VOLT_END(0);
}
TEST(peer_that_dies_cancels_its_requests) { run(dying); }

static volt_poll left_open(volt_cx *cx, void *arg) { // requests that are freed with the session
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_nghttp2_open(&s->p.client, &(volt_nghttp2_options){ .limit = 0 }), 0);
    CHECK_EQ(request(&s->p, &s->r, "POST", "/", 0), 0); // before there is a connection
    VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    CHECK_EQ(s->n, VOLT_NGHTTP2_ROOM);
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(10),
                                 volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf, 1)));
    CHECK_EQ(s->n, -ETIMEDOUT);
    volt_nghttp2_leave(s->r);
    volt_nghttp2_free(s->p.client);
    VOLT_END(0);
}
TEST(session_that_never_ran_is_freed) { run(left_open); }

// ---- time limits

static volt_poll silent(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 1, VOLT_MS(50)); // a peer that says nothing at all
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
    CHECK_EQ(s->p.server_rc, 0);
    volt_close(cx, s->p.fds[1]);
    VOLT_AWAIT(pair_close(cx, &s->p));

    pair_open(cx, &s->p, 0, VOLT_MS(50)); // a client with a request in progress is not idle
    CHECK_EQ(request(&s->p, &s->r, "GET", "/wait", 1), 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(250), volt_nghttp2_status(cx, s->r)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    volt_event_set(&s->p.w.release);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 204);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group)); // then it is
    CHECK_EQ(s->p.server_rc, 0);
    CHECK_EQ(s->p.client_rc, 0);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(silent_peer_is_left_unless_it_waits_for_an_answer) { run(silent); }

// ---- peers that send bytes of the test

#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
// A request "GET /zeros" on stream N (odd, below 128), which is complete.
#define GET_ZEROS(n_) "\0\0\xd\1\5\0\0\0" n_ "\x82\x86\x04\x06/zeros\x41\x01t"
typedef struct {
    const char *name, *bytes;
    size_t len;
    int n; // times that the bytes are sent behind the magic and the settings
} evil;
#define EVIL(name_, bytes_, n_) { name_, bytes_, sizeof bytes_ - 1, n_ }
static const evil evils[] = {
    EVIL("a length beyond the limit", "\0\x80\0\0\0\0\0\0\1", 1),
    EVIL("data on stream 0", "\0\0\1\0\0\0\0\0\0x", 1),
    EVIL("data on an idle stream", "\0\0\1\0\0\0\0\0\5x", 1),
    EVIL("a header block that is nonsense", "\0\0\4\1\5\0\0\0\1\xff\xff\xff\xff", 1),
    EVIL("an even stream", "\0\0\1\1\5\0\0\0\2\x82", 1),
    EVIL("a window update of 0", "\0\0\4\x8\0\0\0\0\0\0\0\0\0", 1),
    EVIL("windows beyond 2^31", "\0\0\4\x8\0\0\0\0\0\x7f\xff\xff\xff", 2),
    EVIL("settings of a wrong length", "\0\0\5\4\0\0\0\0\0abcde", 1),
    EVIL("a continuation without a beginning", "\0\0\1\x9\4\0\0\0\1\x82", 1),
    EVIL("a push by a client", "\0\0\5\5\4\0\0\0\1\0\0\0\2\x82", 1),
    EVIL("a ping of a wrong length", "\0\0\7\6\0\0\0\0\0abcdefg", 1),
    EVIL("pings without end, answers not read", "\0\0\x8\6\0\0\0\0\0abcdefgh", 200000),
    EVIL("settings without end, answers not read", SETTINGS, 200000),
    EVIL("a goaway with an error", "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\2", 1),
};
typedef struct {
    volt_frame frame;
    volt_timer limit;
    const char *bytes;
    size_t len;
    int fd, n, i;
    int64_t rc;
} sender;
// Sends the bytes n times, as long as the server takes them.
static volt_poll send_bytes(volt_cx *cx, sender *s) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < s->n; s->i++) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(5),
                                      volt_write_all(cx, s->fd, s->bytes, s->len)));
        if (s->rc < 0) break;
    }
    VOLT_END(s->rc);
}
static volt_poll evil_peers(volt_cx *cx, void *arg) {
    static sender out;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < (int)(sizeof evils / sizeof evils[0]); s->i++) {
        pair_open(cx, &s->p, 1, VOLT_S(2));
        out = (sender){ .bytes = MAGIC SETTINGS, .len = 24 + 9, .fd = s->p.fds[1], .n = 1 };
        VOLT_AWAIT(send_bytes(cx, &out));
        out = (sender){ .bytes = evils[s->i].bytes, .len = evils[s->i].len, .fd = s->p.fds[1],
                        .n = evils[s->i].n };
        VOLT_AWAIT(s->n, send_bytes(cx, &out));
        CHECK(s->n != -ETIMEDOUT);
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(15),
                                      volt_group_wait(cx, &s->p.group)));
        if (s->rc < 0) printf("%s: the session goes on\n", evils[s->i].name);
        CHECK_EQ(s->rc, 0);
        volt_close(cx, s->p.fds[1]);
        VOLT_AWAIT(pair_close(cx, &s->p));
        CHECK_EQ(s->p.w.n_begun, 0);
    }
    // no HTTP/2 at all
    pair_open(cx, &s->p, 1, VOLT_S(2));
    out = (sender){ .bytes = "GET / HTTP/1.1\r\n\r\n--------", .len = 26, .fd = s->p.fds[1],
                    .n = 1 };
    VOLT_AWAIT(send_bytes(cx, &out));
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
    CHECK_EQ(s->p.server_rc, -EPROTO);
    volt_close(cx, s->p.fds[1]);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(bad_frames_end_the_session) { run(evil_peers); }

// A request with a field of N bytes.
static volt_poll large_fields(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    for (s->i = 0; s->i < 2; s->i++) {
        memset(s->text, 'x', sizeof s->text);
        s->text[s->i ? 17000 : 3000] = 0;
        const char *const fields[] = { ":method", "GET", ":scheme", "http", ":authority", "test",
                                       ":path", "/field", "x-field", s->text, NULL };
        CHECK_EQ(volt_nghttp2_request(s->p.client, &s->r, fields, 1), 0);
        VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
        CHECK_EQ(s->rc, s->i ? -ECONNRESET : 200);
        volt_nghttp2_leave(s->r);
    }
    CHECK_EQ(request(&s->p, &s->r, "GET", "/field", 1), 0); // the connection is not harmed
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(fields_beyond_16_KiB_reset_their_stream) { run(large_fields); }

// A client that opens streams and resets them at once has few tasks, and its last request an
// answer.
enum { RESETS = 600 };
static unsigned busy(volt_nghttp2_conn *c) {
    volt_nghttp2_lock(&c->h);
    unsigned n = c->h.n_busy;
    volt_nghttp2_unlock(&c->h);
    return n;
}
static volt_poll rapid_resets(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    for (s->i = 0; s->i < RESETS; s->i++) {
        CHECK_EQ(request(&s->p, &s->r, "GET", s->i % 2 ? "/wait" : "/stubborn", 1), 0);
        VOLT_AWAIT(volt_within(cx, &s->limit, VOLT_MS(1), volt_nghttp2_status(cx, s->r)));
        volt_nghttp2_leave(s->r);
        CHECK(busy(s->p.server) <= 200);
    }
    CHECK(busy(s->p.server) > 100); // the stubborn ones
    volt_event_set(&s->p.w.release);
    while (busy(s->p.server) > 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1))); // else it may be refused
    CHECK_EQ(request(&s->p, &s->r, "GET", "/field", 1), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 200);
    volt_nghttp2_leave(s->r);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(rapid_resets_make_a_bounded_number_of_tasks) { run(rapid_resets); }

// Requests without a path, each of which is answered by a reset, by a peer that reads nothing.
enum { REFUSED = 200000, REFUSED_AT_ONCE = 1000, REFUSED_BYTES = 11 };
static volt_poll refused(volt_cx *cx, void *arg) {
    static const int room = 1; // the least that there can be
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 1, 0);
    CHECK_EQ(setsockopt(s->p.fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    CHECK_EQ(setsockopt(s->p.fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.fds[1], MAGIC SETTINGS, 33));
    for (s->i = 0; s->n > 0 && s->i < REFUSED; s->i += REFUSED_AT_ONCE) {
        for (int i = 0; i < REFUSED_AT_ONCE; i++) {
            unsigned id = 2 * (unsigned)(s->i + i) + 1;
            unsigned char *at = s->buf + REFUSED_BYTES * i;
            memcpy(at, "\0\0\2\1\5\0\0\0\0\x82\x86", REFUSED_BYTES);
            for (int k = 0; k < 3; k++) at[8 - k] = (unsigned char)(id >> 8 * k);
        }
        VOLT_AWAIT(s->n, volt_write_all(cx, s->p.fds[1], s->buf, REFUSED_AT_ONCE * REFUSED_BYTES));
    }
    CHECK(s->n < 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
    CHECK_EQ(s->p.server_rc, -EPROTO);
    printf("%d streams\n", s->i);
    CHECK(s->i < 3 * VOLT_NGHTTP2_WAITING);
    volt_close(cx, s->p.fds[1]);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(peer_that_causes_resets_without_end_and_reads_nothing_is_left) { run(refused); }

// ---- a stream of the test, whose reads give bytes, and then the end

typedef struct {
    const unsigned char *bytes;
    size_t len, at;
    int fails_at, n_writes; // the number of the write that fails, or 0: none does
    volt_event is_open;     // reads begin
} script;
static volt_poll script_read(volt_cx *cx, volt_stream stream, void *buf, size_t len) {
    script *const c = (script *)stream.self;
    volt_poll p = volt_event_wait(cx, &c->is_open); // counts against the budget
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    if (len > c->len - c->at) len = c->len - c->at;
    memcpy(buf, c->bytes + c->at, len);
    c->at += len;
    return volt_ready((int64_t)len);
}
static volt_poll script_write(volt_cx *cx, volt_stream stream, const void *buf, size_t len) {
    script *const c = (script *)stream.self;
    (void)cx, (void)buf;
    if (++c->n_writes != c->fails_at) return volt_ready((int64_t)len);
    volt_event_set(&c->is_open);
    return volt_ready(-EPIPE);
}
static volt_stream script_stream(script *c) {
    static const volt_stream_ops ops = { script_read, script_write, NULL, NULL };
    volt_stream stream = { &ops, c, -1 };
    return stream;
}

// A server that answers in the middle of an upload, and closes: the write that fails is seen before
// the answer is read.
static volt_poll upload_all(volt_cx *cx, test *s) {
    static upload up;
    VOLT_BEGIN(cx, &up);
    do {
        VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(s->r), s->buf, sizeof s->buf));
    } while (s->n > 0);
    VOLT_END(s->n);
}
static volt_poll early_answer(volt_cx *cx, void *arg) {
    static const unsigned char answer[] = SETTINGS "\0\0\5\1\5\0\0\0\1\x48\x03" "413";
    static script c = { .bytes = answer, .len = sizeof answer - 1, .fails_at = 3 };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_nghttp2_open(&s->p.client, &(volt_nghttp2_options){ .limit = 0 }), 0);
    CHECK_EQ(request(&s->p, &s->r, "POST", "/", 0), 0);
    VOLT_AWAIT(VOLT_JOIN_ALL(
        VOLT_ARM(&s->left, volt_nghttp2_serve(cx, s->p.client, script_stream(&c))),
        VOLT_ARM(&s->right, upload_all(cx, s))));
    CHECK_EQ(s->left.value, -EPIPE);
    CHECK_EQ(c.n_writes, 3);
    VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
    CHECK_EQ(s->rc, 413);
    volt_nghttp2_leave(s->r);
    volt_nghttp2_free(s->p.client);
    VOLT_END(0);
}
TEST(answer_that_comes_before_an_upload_fails_is_read) { run(early_answer); }

// A peer that always has more to read. Another task of the same worker has its turns.
enum { ENDLESS_BYTES = 1 << 20 };
typedef struct {
    volt_frame frame;
    const script *c;
    int *n_turns;
} other;
static volt_poll other_run(volt_cx *cx, void *arg) {
    other *o = (other *)arg;
    VOLT_BEGIN(cx, o);
    while (o->c->at < o->c->len) {
        ++*o->n_turns;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
static volt_poll endless(volt_cx *cx, void *arg) {
    static const volt_nghttp2_options options = { .handler = handler,
                                                  .state_size = sizeof(handled) };
    static unsigned char bytes[ENDLESS_BYTES];
    static script c = { .bytes = bytes, .len = sizeof bytes };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    memcpy(bytes, MAGIC SETTINGS, 33);
    for (size_t i = 33; i < sizeof bytes; i += 9) // frames of a type that there is not
        memcpy(bytes + i, "\0\0\0\x55\0\0\0\0", i + 9 > sizeof bytes ? sizeof bytes - i : 9);
    volt_event_set(&c.is_open);
    s->k = 0;
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->p.group, other_run, (other){ .c = &c, .n_turns = &s->k }),
             0);
    CHECK_EQ(volt_nghttp2_open(&s->p.server, &options), 0);
    VOLT_AWAIT(s->rc, volt_nghttp2_serve(cx, s->p.server, script_stream(&c)));
    CHECK_EQ(s->rc, 0);
    printf("%d turns\n", s->k);
    CHECK(s->k >= ENDLESS_BYTES / (VOLT_NGHTTP2__TURN + (int)sizeof s->p.server->h.reading.buf));
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
    volt_nghttp2_free(s->p.server);
    VOLT_END(0);
}
TEST(peer_that_sends_without_end_holds_no_worker) { run_on(1, endless); }

// A peer that asks for much and takes nothing.
static volt_poll deaf(volt_cx *cx, void *arg) {
    static const char windows[] = "\0\0\4\x8\0\0\0\0\0\x7f\0\0\0"
                                  "\0\0\6\4\0\0\0\0\0\0\4\x7f\0\0\0";
    static sender out;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 1, VOLT_MS(300));
    memcpy(s->text, MAGIC SETTINGS, 33);
    memcpy(s->text + 33, windows, sizeof windows - 1);
    memcpy(s->text + 33 + sizeof windows - 1, GET_ZEROS("\1"), sizeof GET_ZEROS("\1") - 1);
    out = (sender){ .bytes = s->text, .len = 33 + sizeof windows - 1 + sizeof GET_ZEROS("\1") - 1,
                    .fd = s->p.fds[1], .n = 1 };
    VOLT_AWAIT(s->rc, send_bytes(cx, &out));
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
    CHECK_EQ(s->p.server_rc, -ETIMEDOUT);
    CHECK_EQ(s->p.w.n_cancelled, 1);
    CHECK(s->p.w.n_written > VOLT_NGHTTP2_WINDOW); // the windows were taken
    CHECK(s->p.w.n_written < 4 << 20);
    volt_close(cx, s->p.fds[1]);
    VOLT_AWAIT(pair_close(cx, &s->p));
    VOLT_END(0);
}
TEST(peer_that_takes_nothing_is_left) { run(deaf); }

// ---- cancelled at each poll

static volt_poll cancel_requests(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    pair_open(cx, &s->p, 0, 0);
    for (s->i = 0; s->i < 4; s->i++) {
        s->k = 0;
        while (cancel_next(&s->at)) {
            CHECK_EQ(request(&s->p, &s->r, "POST", "/echo", 0), 0);
            s->n = 0;
            if (s->i > 0) VOLT_AWAIT(s->n, volt_nghttp2_status(cx, s->r));
            if (s->i == 0) {
                VOLT_AWAIT(s->n, CANCEL_AT(cx, &s->at, volt_nghttp2_status(cx, s->r)));
            } else if (s->i == 1) { // a write, whose bytes come back once
                VOLT_AWAIT(s->n, CANCEL_AT(cx, &s->at,
                                           volt_stream_write(cx, volt_nghttp2_body(s->r), "ab",
                                                             2)));
                CHECK(s->n == 2 || s->n == -ECANCELED);
                if (s->n < 0)
                    VOLT_AWAIT(volt_stream_write(cx, volt_nghttp2_body(s->r), "ab", 2));
                VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_nghttp2_body(s->r)));
                for (s->received = 0;; s->received += s->rc) {
                    VOLT_AWAIT(s->rc, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, 100));
                    if (s->rc <= 0) break;
                }
                CHECK_EQ(s->received, 2);
            } else { // a read, or a wait for one, that is repeated
                VOLT_AWAIT(volt_stream_write(cx, volt_nghttp2_body(s->r), "abc", 3));
                if (s->i == 2)
                    VOLT_AWAIT(s->n, CANCEL_AT(cx, &s->at, volt_stream_read(
                        cx, volt_nghttp2_body(s->r), s->buf, 100)));
                else
                    VOLT_AWAIT(s->n, CANCEL_AT(cx, &s->at, volt_stream_ready(
                        cx, volt_nghttp2_body(s->r))));
                CHECK(s->n == (s->i == 2 ? 3 : 0) || s->n == -ECANCELED);
                if (s->n != 3) {
                    VOLT_AWAIT(s->rc, volt_stream_read(cx, volt_nghttp2_body(s->r), s->buf, 100));
                    CHECK_EQ(s->rc, 3);
                }
            }
            CHECK(!cancel_came(&s->at) || s->n == -ECANCELED);
            volt_nghttp2_leave(s->r);
            s->k++;
        }
        CHECK(s->k > 1);
    }
    VOLT_AWAIT(pair_close(cx, &s->p));
    CHECK_EQ(s->p.server_rc, 0);
    VOLT_END(0);
}
TEST(waits_of_a_request_are_cancelled_at_each_poll) { run(cancel_requests); }

// A session that is cancelled at its k-th poll, with requests in progress.
typedef struct {
    volt_frame frame;
    cancel_point *at;
    volt_nghttp2_conn *http;
    int fd, *rc;
} cut_side;
static volt_poll cut_side_run(volt_cx *cx, void *arg) {
    cut_side *s = (cut_side *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(*s->rc, CANCEL_AT(cx, s->at, volt_nghttp2_serve(cx, s->http,
                                                              volt_stream_of(s->fd))));
    volt_close(cx, s->fd);
    VOLT_END(0);
}
static volt_poll cancel_session(volt_cx *cx, void *arg) {
    static volt_group cut;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) { // the server, the client
        while (cancel_next(&s->at)) {
            const volt_nghttp2_options o = { .handler = s->i ? NULL : handler,
                                             .state_size = sizeof(handled), .user = &s->p.w };
            pair_open(cx, &s->p, 1, 0);
            if (s->i) { // the session above is a server, and this one its client
                CHECK_EQ(volt_nghttp2_open(&s->p.client, &o), 0);
                CHECK_EQ(request(&s->p, &s->r, "GET", "/field", 1), 0);
                CHECK_EQ(request(&s->p, &s->other, "GET", "/wait", 1), 0);
                CHECK_EQ(VOLT_GROUP_SPAWN(cx, &cut, cut_side_run,
                                          (cut_side){ .at = &s->at, .http = s->p.client,
                                                      .fd = s->p.fds[1], .rc = &s->p.client_rc }),
                         0);
                volt_event_set(&s->p.w.release);
                VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->r));
                CHECK(s->rc == 200 || s->rc == -ECONNRESET);
                VOLT_AWAIT(s->rc, volt_nghttp2_status(cx, s->other));
                CHECK(s->rc == 204 || s->rc == -ECONNRESET);
                if (!cancel_came(&s->at)) volt_nghttp2_stop(&s->p.client->h);
                VOLT_AWAIT(s->rc, volt_group_wait(cx, &cut));
                volt_nghttp2_leave(s->r);
                volt_nghttp2_leave(s->other);
                CHECK_EQ(s->p.client_rc, cancel_came(&s->at) ? -ECANCELED : 0);
                VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
                volt_nghttp2_free(s->p.client);
                s->p.client = NULL;
            } else { // a second server, on the other end, which gets no request
                static volt_nghttp2_conn *http;
                static int rc;
                CHECK_EQ(volt_nghttp2_open(&http, &o), 0);
                CHECK_EQ(VOLT_GROUP_SPAWN(cx, &cut, cut_side_run,
                                          (cut_side){ .at = &s->at, .http = http,
                                                      .fd = s->p.fds[1], .rc = &rc }), 0);
                VOLT_AWAIT(s->rc, volt_group_wait(cx, &cut));
                CHECK(rc <= 0); // two servers do not understand each other
                VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->p.group));
                volt_nghttp2_free(http);
            }
            VOLT_AWAIT(pair_close(cx, &s->p));
        }
    }
    VOLT_END(0);
}
TEST(session_is_cancelled_at_each_poll) { run(cancel_session); }

// ---- examples/adapters/nghttp2.c, the program of H2_PROGRAM

// A client that gives back its windows, as clients do, while the server stops and ends: what the
// server has not read must not reset the connection, with an answer still on its way. Whether it is
// still on its way is a matter of chance, so there are several rounds.
enum { STOPPED_BYTES = 800000, STOPS = 8 };
typedef struct {
    volt_frame frame;
    volt_process server;
    volt_exit_status end;
    volt_addr at;
    int64_t n, received;
    size_t len;
    int fd, is_complete;
    unsigned char head[9], body[65536];
} slow_client;
static volt_poll slow_client_run(volt_cx *cx, void *arg) {
    static const char *argv[] = { NULL, "127.0.0.1:0", NULL };
    static const volt_process_options options = { .argv = argv, .out = VOLT_STDIO_PIPE };
    static const char request[] = MAGIC "\0\0\6\4\0\0\0\0\0\0\4\x40\0\0\0"
                                  "\0\0\4\x8\0\0\0\0\0\x40\0\0\0"
                                  "\0\0\x14\1\5\0\0\0\1\x82\x86\x04\xd/bytes/800000\x41\1t";
    static const char window[] = "\0\0\4\x8\0\0\0\0\0\0\0\x40\0";
    static const int room = 32768; // most of the answer waits at the server
    slow_client *s = (slow_client *)arg;
    VOLT_BEGIN(cx, s);
    argv[0] = getenv("H2_PROGRAM");
    VOLT_AWAIT(s->n, volt_process_start(cx, &s->server, &options));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_read(cx, s->server.out, s->body, sizeof s->body - 1));
    CHECK(s->n > 5 && memcmp(s->body, "port ", 5) == 0);
    s->body[s->n] = 0;
    CHECK_EQ(volt_addr_make(&s->at, "127.0.0.1", (unsigned)atoi((char *)s->body + 5)), 0);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->at));
    CHECK(s->fd >= 0);
    CHECK_EQ(setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->fd, request, sizeof request - 1));
    for (;;) {
        VOLT_AWAIT(s->n, volt_read_exact(cx, s->fd, s->head, 9));
        if (s->n < 0) break;
        s->len = (size_t)s->head[0] << 16 | (size_t)s->head[1] << 8 | s->head[2];
        CHECK(s->len <= sizeof s->body);
        if (s->len > 0) VOLT_AWAIT(s->n, volt_read_exact(cx, s->fd, s->body, s->len));
        if (s->n < 0) break;
        if (s->head[3] != 0) continue; // no data
        if (s->received == 0) CHECK_EQ(volt_process_signal(&s->server, SIGTERM), 0);
        s->received += (int64_t)s->len;
        s->is_complete = s->head[4] & 1;
        VOLT_AWAIT(volt_write_all(cx, s->fd, window, sizeof window - 1));
    }
    printf("%d bytes, then %s\n", (int)s->received, volt_strerror((int)s->n));
    CHECK_EQ(s->received, STOPPED_BYTES);
    CHECK(s->is_complete);
    CHECK_EQ(s->n, -EPIPE); // the end, and no reset
    volt_close(cx, s->fd);
    VOLT_AWAIT(s->n, volt_process_wait(cx, &s->server, &s->end));
    CHECK_EQ(s->end.code, 0);
    volt_process_close(cx, &s->server);
    VOLT_END(0);
}
TEST(stop_of_the_program_lets_an_answer_arrive) {
    static slow_client s;
    if (!getenv("H2_PROGRAM")) SKIP("H2_PROGRAM is not set");
    for (int i = 0; i < STOPS; i++) {
        memset(&s, 0, sizeof s);
        CHECK_EQ(volt_run(NULL, slow_client_run, &s), 0);
    }
}
