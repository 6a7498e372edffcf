// SPDX-License-Identifier: MIT OR 0BSD
// The runtime watches itself: a page that shows the activity of its workers, tasks and threads
// live, served by that runtime, beside some work that makes it worth looking at. 03_server.h
// accepts clients, 06_http.h reads the requests, 15_dashboard.h is the page. New: volt_stats,
// volt_health, volt_histograms, volt_dump_to, volt_trace_to; a stream that ends when its reader is
// too slow; bounds on clients and memory; idle clients that make room (volt_notify).
//
//     cc -I. -pthread examples/15_dashboard.c -o dashboard && ./dashboard 8080
//
// It runs until a Ctrl-C, or for a number of seconds: ./dashboard 8080 60
//
// Expected output:
// http://127.0.0.1:8080/
#define VOLT_IMPLEMENTATION
#define VOLT_TRACE 1 // measures polls and waits: histograms and /trace.json
#include "volt.h"
#include "03_server.h"
#include "06_http.h"
#include "15_dashboard.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { REQUEST_CAP = 8192, REQUEST_SECONDS = 5, STALL_SECONDS = 5, GRACE_SECONDS = 5 };
enum { LINGER_SECONDS = 2, LINGER_CAP = 4 << 20 };
enum { CLIENTS_MAX = 64, STREAMS_MAX = 8, FILES_MAX = 2, EVENT_MS = 500 };
enum { EVENT_CAP = 256 << 10, FILE_CAP = 64 << 20, SEND_CAP = 64 << 10 };
#ifndef SLEEPERS // tasks that only sleep; a test has more
#  define SLEEPERS 160
#endif

// ---- text: on the heap, up to `max` bytes. The first failure stays in rc.

typedef struct {
    char *at;
    size_t len, cap, max;
    int rc;
} text;

static int text_put(void *user, const char *from, size_t len) {
    text *t = (text *)user;
    if (t->rc == 0 && t->len + len > t->max) t->rc = -ENOSPC;
    if (t->rc == 0 && t->len + len > t->cap) {
        size_t cap = 2 * (t->len + len);
        char *at = (char *)realloc(t->at, cap);
        if (at) t->at = at, t->cap = cap;
        else t->rc = -ENOMEM;
    }
    if (t->rc == 0) memcpy(t->at + t->len, from, len), t->len += len;
    return t->rc;
}

__attribute__((format(printf, 2, 3))) static void text_print(text *t, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof line) t->rc = -ENOSPC;
    else text_put(t, line, (size_t)n);
}

// ---- one event: all data of the page, as JSON on one line

#define OF_WORKERS(X_) X_(polls) X_(steals) X_(parks) X_(queued) X_(busy_ns)
#define OF_ALL(X_)                                                                       \
    X_(workers) X_(spawned) X_(completed) X_(polls) X_(steals) X_(stolen) X_(overflows)  \
    X_(parks) X_(spurious_unparks) X_(rescued) X_(queued) X_(blocking_threads) X_(blocking_idle) \
    X_(blocking_queued) X_(blocking_jobs)
#define AS_FORMAT(name_) ",\"" #name_ "\":%llu"
#define AS_ARGUMENT(name_) , (unsigned long long)c.name_

static void put_counters(text *t, volt_rt *rt) {
    volt_counters c;
    volt_stats(rt, &c);
    text_print(t, ",\"sum\":{\"version\":%d" OF_ALL(AS_FORMAT) "}",
               VOLT_VERSION OF_ALL(AS_ARGUMENT));
    text_print(t, ",\"workers\":[");
    for (unsigned i = 0; volt_worker_stats(rt, i, &c) == 0; i++)
        text_print(t, "%s{\"index\":%u" OF_WORKERS(AS_FORMAT) "}", i ? "," : "",
                   i OF_WORKERS(AS_ARGUMENT));
    text_print(t, "]");
}

static void put_histogram(text *t, const char *name, const uint64_t *counts) {
    text_print(t, ",\"%s\":[", name);
    for (int i = 0; i < VOLT_HISTOGRAM; i++)
        text_print(t, "%s%llu", i ? "," : "", (unsigned long long)counts[i]);
    text_print(t, "]");
}

// As many tasks as fit: each is a line of the dump. The workers, 1024 at most, always fit.
static void put_dump(text *t, volt_rt *rt) {
    size_t from = t->len;
    if (t->rc < 0) return;
    t->max = EVENT_CAP - 16;
    int rc = volt_dump_to(rt, text_put, t, VOLT_DUMP_JSON);
    t->max = EVENT_CAP;
    if (rc == -ENOSPC) {
        t->rc = 0;
        while (t->at[t->len - 1] != '\n') t->len--;
        t->len -= 2; // and the comma before it
        text_print(t, "]}");
    }
    for (size_t i = from; i < t->len; i++)
        if (t->at[i] == '\n') t->at[i] = ' ';
}

// A literal of the program: "file:line".
static void put_site(text *t, const char *site) {
    text_print(t, ",\"longest_at\":\"");
    for (; site && *site; site++)
        if (*site >= ' ' && *site != '"' && *site != '\\') text_put(t, site, 1);
    text_print(t, "\"");
}

static int put_event(text *t, volt_rt *rt, volt_time up) {
    volt_latency_histograms h;
    volt_health_report health;
    volt_config config;
    volt_effective_config(rt, &config);
    text_print(t, "data: {\"up_us\":%lld,\"blocking_max\":%u", (long long)(up / 1000),
               config.max_blocking_threads);
    put_counters(t, rt);
    volt_histograms(rt, &h);
    put_histogram(t, "poll", h.poll);
    put_histogram(t, "wait", h.wait);
    volt_health(rt, &health);
    text_print(t, ",\"oldest_ns\":%lld,\"longest_ns\":%lld", (long long)health.oldest_runnable,
               (long long)health.longest_poll);
    put_site(t, health.site);
    text_print(t, ",\"dump\":");
    put_dump(t, rt);
    text_print(t, "}\n\n");
    return t->rc;
}

// ---- sample work: a few percent of a processor. All of it ends when it is cancelled.

typedef struct {
    volt_frame frame;
    volt_group parts;
    volt_job job;
    uint32_t seed; // for chance()
    int fd, ms, i;
    int64_t n;
    char buf[32];
} work;

static int chance(work *w, int from, int to) {
    w->seed = w->seed * 1664525u + 1013904223u;
    return from + (int)((w->seed >> 8) % (unsigned)(to - from + 1));
}
static void compute(volt_time how_long) {
    volt_time end = volt_now() + how_long;
    while (volt_now() < end) {}
}
static int block(void *arg) { // stands for a library with blocking calls
    work *w = (work *)arg;
    struct timespec t = { 0, w->ms * 1000000L };
    return nanosleep(&t, NULL);
}

static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "sleeper");
    while (w->n >= 0) {
        w->ms = chance(w, 500, 30000);
        VOLT_AWAIT(w->n, volt_sleep(cx, VOLT_MS(w->ms)));
    }
    VOLT_END(0);
}

static volt_poll echo_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "echo server");
    do {
        VOLT_AWAIT(w->n, volt_read(cx, w->fd, w->buf, sizeof w->buf));
        if (w->n > 0) VOLT_AWAIT(w->n, volt_write_all(cx, w->fd, w->buf, (size_t)w->n));
    } while (w->n > 0);
    volt_close(cx, w->fd);
    VOLT_END(0);
}

static volt_poll caller_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "echo client");
    while (w->n >= 0) {
        w->ms = chance(w, 20, 150);
        VOLT_AWAIT(w->n, volt_sleep(cx, VOLT_MS(w->ms)));
        if (w->n >= 0) VOLT_AWAIT(w->n, volt_write_all(cx, w->fd, w->buf, sizeof w->buf));
        if (w->n >= 0) VOLT_AWAIT(w->n, volt_read_exact(cx, w->fd, w->buf, sizeof w->buf));
    }
    volt_close(cx, w->fd);
    VOLT_END(0);
}

static volt_poll part_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "part of a burst");
    for (w->i = 0; w->i < 3 && w->n >= 0; w->i++) {
        compute(VOLT_US(chance(w, 5, 40)));
        VOLT_AWAIT(w->n, volt_yield(cx));
    }
    VOLT_END(0);
}

static volt_poll burst_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "burst");
    while (w->n >= 0) {
        w->ms = chance(w, 600, 2500);
        VOLT_AWAIT(w->n, volt_sleep(cx, VOLT_MS(w->ms)));
        w->ms = chance(w, 50, 400);
        for (w->i = 0; w->i < w->ms; w->i++)
            if (VOLT_GROUP_SPAWN(cx, &w->parts, part_run,
                                 (work){ .seed = w->seed + (uint32_t)w->i }) < 0)
                break;
        if (w->n >= 0) VOLT_AWAIT(w->n, volt_group_wait(cx, &w->parts));
    }
    VOLT_AWAIT(volt_group_close(cx, &w->parts));
    VOLT_END(0);
}

static volt_poll long_poll_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "long poll");
    while (w->n >= 0) {
        VOLT_AWAIT(w->n, volt_sleep(cx, VOLT_MS(1500)));
        compute(VOLT_MS(chance(w, 1, 8))); // blocks the worker on purpose: it belongs on the pool
    }
    VOLT_END(0);
}

static volt_poll blocking_run(volt_cx *cx, void *arg) {
    work *w = (work *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "blocking call");
    while (w->n >= 0) {
        w->ms = chance(w, 100, 3000);
        VOLT_AWAIT(w->n, volt_sleep(cx, VOLT_MS(w->ms)));
        w->ms = chance(w, 20, 900);
        if (w->n >= 0) VOLT_AWAIT(w->n, volt_blocking(cx, &w->job, block, w));
    }
    VOLT_END(0);
}

static int start_work(volt_cx *cx, volt_group *g) {
    int rc = VOLT_GROUP_SPAWN(cx, g, long_poll_run, (work){ .seed = 1 }), fd[2];
    for (uint32_t i = 0; i < SLEEPERS && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, g, sleeper_run, (work){ .seed = 2 + i });
    for (uint32_t i = 0; i < 12 && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, g, blocking_run, (work){ .seed = 3 + i });
    for (uint32_t i = 0; i < 3 && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, g, burst_run, (work){ .seed = 4 + i });
    for (uint32_t i = 0; i < 24 && rc == 0; i++) {
        if ((rc = volt_socketpair(SOCK_STREAM, fd)) < 0) return rc;
        rc = VOLT_GROUP_SPAWN(cx, g, echo_run, (work){ .fd = fd[0] });
        if (rc < 0) volt_close(cx, fd[0]);
        else rc = VOLT_GROUP_SPAWN(cx, g, caller_run, (work){ .seed = 5 + i, .fd = fd[1] });
        if (rc < 0) volt_close(cx, fd[1]);
    }
    return rc;
}

// ---- the server

typedef struct {
    volt_frame frame;
    volt_arm in, late, quit;
    volt_token stop;
    volt_notify make_room; // ends one of the clients that wait for a request
    volt_group clients, work;
    volt_timer grace;
    volt_time start, until;
    doorway door;
    int fd, seconds, rc;
    int n_streams, n_files; // shared by the clients
} server;

// A child of client_run: an event every EVENT_MS, until the reader leaves or is too slow for them.
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer late;
    volt_interval tick;
    server *srv;
    const char *fields; // of the head
    int64_t n;
    int fd;
    text out;
} stream;

// A child of client_run: one wait for the client.
typedef struct {
    volt_frame frame;
    volt_arm comes, makes_room;
    volt_timer late;
    int64_t n;
} receiving;

typedef struct route route;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer late;
    volt_time deadline; // for a request
    receiving input;
    volt_job job;
    server *srv;
    volt_rt *rt;
    const route *to;
    http_exchange *x; // NULL: idle
    stream events;
    text body;
    int *place; // counts the clients of this kind, or NULL
    int64_t n, left; // left: of the bytes that are dropped at the end
    int fd, status, kind, is_head, is_last;
} client;

static int put_pieces(client *c, const char *const *piece) {
    for (; *piece; piece++) text_put(&c->body, *piece, strlen(*piece));
    return c->body.rc;
}
static int make_html(client *c) { return put_pieces(c, page_html); }
static int make_css(client *c) { return put_pieces(c, page_css); }
static int make_js(client *c) { return put_pieces(c, page_js); }
static int make_dump(client *c) { return volt_dump_to(c->rt, text_put, &c->body, 0); }
static int make_trace(client *c) { return volt_trace_to(c->rt, text_put, &c->body); }
static int make_nothing(client *c) { return (void)c, 0; }

// The page runs and loads only content of this server, and no other page embeds or stores it.
#define FIELDS(type_)                                                                          \
    "Content-Type: " type_ "\r\n"                                                              \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "       \
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "                 \
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"     \
    "Cross-Origin-Resource-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\n"         \
    "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"

// QUICK: made in the poll that answers. SLOW: large, and made by a thread of the pool. EVENTS: a
// stream.
enum { QUICK, SLOW, EVENTS };
struct route {
    const char *path, *fields;
    int (*make)(client *c); // writes the body
    int kind;
};
static const route routes[] = {
    { "/", FIELDS("text/html; charset=utf-8"), make_html, QUICK },
    { "/style.css", FIELDS("text/css"), make_css, QUICK },
    { "/app.js", FIELDS("text/javascript"), make_js, QUICK },
    { "/events", FIELDS("text/event-stream"), make_nothing, EVENTS },
    { "/dump.txt", FIELDS("text/plain; charset=utf-8"), make_dump, SLOW },
    { "/trace.json", FIELDS("application/json"), make_trace, SLOW },
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

// Refuses other names: a page of a host whose name changes to 127.0.0.1 could read all this.
static int is_local(http_text host) {
    http_text name = host;
    http_cut(&host, ":", &name);
    return http_is_like(name, "127.0.0.1") || http_is_like(name, "localhost");
}
static int is_from_here(const http_request *r) {
    http_text origin = r->origin, site = r->site, scheme;
    if (!is_local(r->host)) return 0;
    // "none": the address was typed, or is a bookmark
    if (site.at && !http_is(site, "same-origin") && !http_is(site, "none")) return 0;
    if (!origin.at) return 1; // not sent by a script
    return http_cut(&origin, "http://", &scheme) && !scheme.len && origin.len == r->host.len &&
           memcmp(origin.at, r->host.at, origin.len) == 0;
}

// Takes a place of a kind that only `max` clients may have, n by now. Returns the status.
static int take(client *c, int *n, int max) {
    c->place = n;
    return __atomic_add_fetch(n, 1, __ATOMIC_RELAXED) <= max ? HTTP_OK : 503;
}
// Releases the resources of an answer.
static void give_back(client *c) {
    free(c->body.at);
    c->body = (text){ .max = FILE_CAP };
    if (c->place) __atomic_sub_fetch(c->place, 1, __ATOMIC_RELAXED);
    c->place = NULL;
}

// Returns the status. With HTTP_OK c->to selects the answer, and c->kind its way.
static int choose(client *c) {
    c->is_head = http_is(c->x->req.method, "HEAD");
    if (!is_from_here(&c->x->req)) return 403;
    c->to = NULL;
    for (int i = 0; i < N_ROUTES; i++)
        if (http_is(c->x->req.path, routes[i].path)) c->to = &routes[i];
    if (!c->to) return 404;
    if (!c->is_head && !http_is(c->x->req.method, "GET")) return 405;
    c->kind = c->is_head && c->to->kind == EVENTS ? QUICK : c->to->kind;
    if (c->kind == SLOW) return take(c, &c->srv->n_files, FILES_MAX);
    if (c->kind == EVENTS) return take(c, &c->srv->n_streams, STREAMS_MAX);
    return HTTP_OK;
}

static void answer(client *c) {
    int is_good = c->status == HTTP_OK;
    const char *fields = is_good            ? c->to->fields
                         : c->status == 405 ? "Allow: GET, HEAD\r\n" FIELDS("text/plain")
                         : c->status == 503 ? "Retry-After: 5\r\n" FIELDS("text/plain")
                                            : FIELDS("text/plain");
    c->is_last = !is_good || c->x->req.is_last || volt_token_is_cancelled(&c->srv->stop);
    if (!is_good) {
        c->body.len = 0, c->body.rc = 0;
        text_print(&c->body, "%s\n", http_reason(c->status));
    }
    http_text body = { c->body.at, c->body.len };
    http_answer(c->x, c->status, fields, body, c->is_head, c->is_last);
}
static int make(void *arg) {
    client *c = (client *)arg;
    return c->to->make(c);
}

static void put_head(stream *s) {
    char date[HTTP_DATE_CAP];
    text_print(&s->out, "HTTP/1.1 200 OK\r\nConnection: close\r\n");
    text_put(&s->out, date, http_date(date));
    text_put(&s->out, s->fields, strlen(s->fields));
    text_print(&s->out, "\r\n");
}

static volt_poll stream_run(volt_cx *cx, void *arg) {
    stream *s = (stream *)arg;
    VOLT_BEGIN(cx, s);
    volt_interval_init(&s->tick, VOLT_MS(EVENT_MS));
    s->tick.missed = VOLT_MISSED_DELAY;
    s->out.max = EVENT_CAP;
    put_head(s);
    for (;;) {
        if (put_event(&s->out, volt_cx_rt(cx), volt_now() - s->srv->start) < 0) break;
        VOLT_AWAIT(s->n, volt_within(cx, &s->late, VOLT_S(STALL_SECONDS),
                                     volt_write_all(cx, s->fd, s->out.at, s->out.len)));
        if (s->n < 0) break;
        s->out.len = 0;
        VOLT_AWAIT(s->n,
                   volt_with_token(cx, &s->stop, &s->srv->stop, volt_interval_next(cx, &s->tick)));
        if (s->n < 0) break;
    }
    free(s->out.at);
    VOLT_END(0);
}

static volt_poll next(volt_cx *cx, client *c) {
    if (c->is_last) return volt_io(cx, c->fd, VOLT_IN, http_drop, &c->left);
    return c->x ? http_read(cx, c->x) : volt_read_ready(cx, c->fd);
}
// Also returns -ECANCELED if this client has been silent for longest and the next one needs its
// place. So connections without requests do not keep the page from others.
static volt_poll receive(volt_cx *cx, client *c) {
    receiving *i = &c->input;
    VOLT_BEGIN(cx, i);
    VOLT_AWAIT(VOLT_SELECT_BIASED(
        VOLT_ARM(&i->comes, i->n, volt_before(cx, &i->late, c->deadline, next(cx, c))),
        VOLT_ARM(&i->makes_room, volt_notify_wait(cx, &c->srv->make_room))));
    VOLT_END(i->comes.fired ? i->n : -ECANCELED);
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    volt_name(cx, "http client");
    // otherwise kernel buffers hide a client that does not read
    volt_set_buffers(c->fd, SEND_CAP, 0);
    c->body.max = FILE_CAP;
    while (!c->is_last) {
        c->is_head = 0;
        c->deadline = volt_now() + VOLT_S(REQUEST_SECONDS);
        if (!c->x) { // the stop ends the wait for a request, but not a request that has begun
            VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop, receive(cx, c)));
            if (c->n < 0 || !(c->x = http_begin(volt_stream_of(c->fd), REQUEST_CAP))) break;
        }
        VOLT_AWAIT(c->n, receive(cx, c));
        if (c->n == -ETIMEDOUT && c->x->req.is_begun) c->n = 408;
        if (c->n <= 0) break; // the client has closed or is idle
        c->status = c->n == HTTP_OK ? choose(c) : (int)c->n;
        if (c->status == HTTP_OK && c->kind == EVENTS) {
            c->events = (stream){ .srv = c->srv, .fields = c->to->fields, .fd = c->fd };
            VOLT_AWAIT(stream_run(cx, &c->events));
            c->is_last = 1;
            break;
        }
        if (c->status == HTTP_OK && c->kind == SLOW) {
            VOLT_AWAIT(c->n, volt_blocking(cx, &c->job, make, c));
            if (c->n < 0) c->status = 503;
        }
        if (c->status == HTTP_OK && c->kind == QUICK && make(c) < 0) c->status = 503;
        answer(c);
        VOLT_AWAIT(c->n, volt_within(cx, &c->late, VOLT_S(REQUEST_SECONDS),
                                     volt_writev_all(cx, c->fd, c->x->answer, 2)));
        give_back(c);
        if (c->n < 0) break;
        c->x = http_end(c->x);
    }
    give_back(c);
    free(c->x);
    volt_sock_shutdown(c->fd, SHUT_WR);
    c->left = LINGER_CAP;
    c->deadline = volt_now() + VOLT_S(LINGER_SECONDS);
    if (c->is_last && c->n > 0) VOLT_AWAIT(receive(cx, c));
    door_leave(cx, &c->srv->door, c->fd);
    VOLT_END(0);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    volt_name(cx, "http server");
    s->start = volt_now();
    s->until = s->seconds > 0 ? s->start + VOLT_S(s->seconds) : VOLT_NEVER;
    s->rc = start_work(cx, &s->work);
    while (s->rc == 0) {
        // If the next client has no place, a silent one leaves, now or as soon as there is one.
        if (volt_sem_available(&s->door.places) == 0) volt_notify_one(&s->make_room);
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->in, s->fd, door_accept(cx, &s->door)),
                               VOLT_ARM(&s->late, volt_sleep_until(cx, s->until)),
                               VOLT_ARM(&s->quit, volt_signals_next(cx, s->door.signals, NULL))));
        while (volt_notify_try_wait(&s->make_room) == 0) {} // another client has left instead
        if (!s->in.fired || s->fd < 0) break;
        if (VOLT_GROUP_SPAWN(cx, &s->clients, client_run,
                             (client){ .srv = s, .rt = volt_cx_rt(cx), .fd = s->fd }) < 0)
            door_leave(cx, &s->door, s->fd);
    }
    volt_close(cx, s->door.lfd);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(volt_within(cx, &s->grace, VOLT_S(GRACE_SECONDS), volt_group_wait(cx, &s->clients)));
    VOLT_AWAIT(volt_group_close(cx, &s->clients));
    VOLT_AWAIT(volt_group_close(cx, &s->work));
    VOLT_END(s->in.fired ? s->fd : s->rc);
}

int main(int argc, char **argv) {
    static server s;
    s.seconds = argc > 2 ? atoi(argv[2]) : 0;
    int rc = door_open(&s.door, "127.0.0.1", argc > 1 ? (unsigned)atoi(argv[1]) : 0, CLIENTS_MAX);
    if (rc >= 0) {
        printf("http://127.0.0.1:%d/\n", rc);
        fflush(stdout);
        rc = volt_run(NULL, server_run, &s);
    }
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
