// SPDX-License-Identifier: MIT OR 0BSD
// A service as its manager wants it: an echo server that says when it is ready, reloads, stops and
// is healthy (sd_notify without libsystemd), takes sockets that the manager has opened, drains with
// a limit, offers metrics by HTTP, and logs events as key=value.
//
//     cc -O2 -I. -pthread examples/programs/service.c -o volt-echo
//     ./volt-echo examples/programs/service/volt-echo.conf
//
// service/ has a unit and a socket for systemd, an init script for procd (OpenWrt), the
// configuration, and the parts that other services may use: manager.h, log.h, metrics.h.
//
//   SIGHUP           reads the configuration again; a broken one changes nothing
//   SIGTERM, SIGINT  closes the listener, echoes what has come from clients, and closes them. Those
//                    that do not take their echo are cut when the limit is over, or by a second
//                    signal. The metrics can be read until then
//
// GET /metrics is OpenMetrics, GET /health is 200, or 503 while a poll or a runnable task is stuck.
// The watchdog of the manager is fed by the same measure. So a service in which one worker hangs is
// started again, although the others still work.
#define VOLT_IMPLEMENTATION
#define VOLT_TRACE 1 // for volt_health and volt_histograms
#include "volt.h"
#include "examples/06_http.h"
#include "examples/programs/service/log.h"
#include "examples/programs/service/manager.h"
#include "examples/programs/service/metrics.h"
#include <signal.h>

enum { ECHO_BYTES = 16384, REQUEST_BYTES = 4096, FILE_BYTES = 8192, SCRAPES_MAX = 16 };
enum { REQUEST_SECONDS = 5, LINGER_SECONDS = 1, STUCK_SECONDS = 5, NUMBER_MAX = 1000000 };
enum { LINGER_BYTES = 4 << 20 };
enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all

// ---- the configuration

typedef struct settings {
    char listen[64], metrics[64]; // addresses; of no effect for sockets of the manager
    long clients;                 // at most
    long idle, drain;             // in s
    long log;                     // the last priority that is logged
} settings;
static const settings settings_default = { "127.0.0.1:7007", "127.0.0.1:9107", 1000, 60, 20,
                                           LOG_NEWS };

// Takes a line "name = value". Blank lines and comments are skipped.
//   returns: NULL | the text of an error
static const char *settings_line(settings *s, char *line) {
    static const char *const names[] = { "clients", "idle", "drain", "log" };
    long *const numbers[] = { &s->clients, &s->idle, &s->drain, &s->log };
    char name[16], value[64], more, *end;
    line += strspn(line, " \t\r");
    if (!*line || *line == '#') return NULL;
    if (sscanf(line, "%15[a-z] = %63s %c", name, value, &more) != 2) return "not name = value";
    char *const text = strcmp(name, "listen") == 0    ? s->listen
                       : strcmp(name, "metrics") == 0 ? s->metrics
                                                      : NULL;
    if (text) {
        strcpy(text, value);
        return NULL;
    }
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *numbers[i] = strtol(value, &end, 10);
        return *end || *numbers[i] < 1 || *numbers[i] > NUMBER_MAX ? "not a number of 1 or more"
                                                                   : NULL;
    }
    return "no such name";
}
// Takes a whole text, which it changes.
//   returns: NULL | the text of an error, in line *n
static const char *settings_parse(settings *s, char *text, int *n) {
    *s = settings_default;
    for (*n = 1;; ++*n) {
        size_t len = strcspn(text, "\n");
        int is_last = text[len] == 0;
        text[len] = 0;
        const char *error = settings_line(s, text);
        if (error || is_last) return error;
        text += len + 1;
    }
}

// ---- the service

static struct {
    manager by; // the program that has started the service
    const char *path; // of the configuration
    settings now;     // only by the watch below
    volt_watch watch;
    volt_token stop, stop_metrics;
    uint64_t n_accepted, n_bytes, n_reloads, n_refused; // atomic, as the next one
    long n_clients;
} service = { .watch = VOLT_WATCH_INIT(service.now) };

#define COUNT(member_, n_) (void)__atomic_add_fetch(&service.member_, (n_), __ATOMIC_RELAXED)
#define VALUE(member_) __atomic_load_n(&service.member_, __ATOMIC_RELAXED)

static settings settings_now(void) {
    settings s;
    (void)volt_watch_get(&service.watch, &s, sizeof s, NULL);
    return s;
}
// Returns 1 if no poll and no runnable task is older than `limit`.
static int is_healthy(volt_rt *rt, volt_time limit) {
    volt_health_report r;
    return volt_health(rt, &r) == 0 && r.longest_poll < limit && r.oldest_runnable < limit;
}

typedef struct watchdog {
    volt_frame frame;
    volt_interval tick;
    manager_message message;
    int64_t n;
    int was_healthy;
} watchdog;
// Feeds the watchdog of the manager twice in its time, while the runtime is healthy.
static volt_poll watchdog_run(volt_cx *cx, void *arg) {
    watchdog *w = (watchdog *)arg;
    VOLT_BEGIN(cx, w);
    volt_interval_init(&w->tick, service.by.watchdog / 2);
    w->tick.missed = VOLT_MISSED_SKIP;
    strcpy(w->message.text, "WATCHDOG=1");
    for (w->was_healthy = 1;;) {
        VOLT_AWAIT(w->n, volt_interval_next(cx, &w->tick));
        if (w->n < 0) break;
        if (!is_healthy(volt_cx_rt(cx), service.by.watchdog / 2)) {
            if (w->was_healthy) log_event(LOG_ERROR, "unhealthy", NULL);
            w->was_healthy = 0;
            continue;
        }
        w->was_healthy = 1;
        VOLT_AWAIT(w->n, manager_tell(cx, &service.by, &w->message));
    }
    VOLT_END(0);
}

// ---- a listener with its clients

static volt_poll echo_run(volt_cx *cx, void *arg);
typedef struct front {
    volt_frame frame;
    // set by the program
    const char *name;
    int listener;
    volt_fn *client;  // its state is a `client`
    volt_token *stop; // closes the listener; the clients see it, too
    // private
    volt_arm came, left, stopped, changed, retry;
    volt_timer limit;
    volt_group clients;
    volt_watcher watcher;
    settings now, next;
    volt_time deadline, retry_at; // retry_at: after an accept that has failed, else VOLT_NEVER
    long n;
    int fd, rc, n_failed; // n_failed: in a row
} front;
typedef struct client {
    volt_frame frame;
    volt_token_link link;
    volt_timer limit;
    int fd, is_last;    // is_last: the service stops
    int64_t n, left;    // left: of the bytes that are dropped at the end
    volt_time idle;
    http_exchange *x;   // of a request
    char *text;         // the answer to it
    char *rest;         // of an echo, what the socket has not taken
} client;

static long front_most(const front *f) {
    return f->client == echo_run ? f->now.clients : (long)SCRAPES_MAX;
}
// Returns 1 if the next client may come.
static int front_is_open(const front *f) {
    return f->listener >= 0 && f->n < front_most(f) && f->retry_at == VOLT_NEVER;
}
// A failed accept is tried again after a pause. A cause that lasts, such as a firewall that refuses
// all, ends the service: waiting would not mend it, and the manager sees the end.
static void front_failed(front *f) {
    int is_last = f->n_failed == ACCEPT_RETRIES;
    log_event(is_last ? LOG_ERROR : LOG_WARN, "accept_failed", "name", f->name, "error",
              volt_strerror(f->fd), NULL);
    f->retry_at = volt_now() + VOLT_MS(ACCEPT_PAUSE_MS << f->n_failed++);
    if (is_last) volt_token_cancel(f->stop);
}
static void front_accepted(volt_cx *cx, front *f) {
    f->n_failed = 0;
    if (VOLT_GROUP_SPAWN(cx, &f->clients, f->client, (client){ .fd = f->fd }) < 0)
        volt_close(cx, f->fd);
    else f->n++;
}
// Serves until the token is cancelled, and then until all clients have left or the drain is over.
//   returns: the number of clients that were cut
static volt_poll front_run(volt_cx *cx, void *arg) {
    front *f = (front *)arg;
    VOLT_BEGIN(cx, f);
    volt_group_collect(&f->clients);
    volt_watcher_open(&f->watcher, &service.watch);
    f->now = settings_now();
    f->deadline = f->retry_at = VOLT_NEVER;
    while (f->listener >= 0 || f->n > 0) {
        VOLT_AWAIT(f->rc, volt_before(cx, &f->limit, f->deadline, VOLT_SELECT(
            VOLT_ARM(&f->came, f->fd, front_is_open(f) ? volt_accept(cx, f->listener)
                                                       : volt_sleep_forever(cx)),
            VOLT_ARM(&f->retry, volt_sleep_until(cx, f->retry_at)),
            VOLT_ARM(&f->left, f->n > 0 ? volt_group_next(cx, &f->clients, NULL)
                                        : volt_sleep_forever(cx)),
            VOLT_ARM(&f->stopped, f->listener >= 0 ? volt_token_wait(cx, f->stop)
                                                   : volt_sleep_forever(cx)),
            VOLT_ARM(&f->changed,
                     volt_watcher_next(cx, &f->watcher, &f->next, sizeof f->next)))));
        if (f->rc < 0) break;
        if (f->changed.fired) f->now = f->next; // not in the await, whose arms depend on it
        if (f->retry.fired) f->retry_at = VOLT_NEVER;
        if (f->came.fired && f->fd < 0) front_failed(f);
        if (f->came.fired && f->fd >= 0) front_accepted(cx, f);
        if (f->left.fired) f->n--;
        if (!f->stopped.fired) continue;
        volt_close(cx, f->listener);
        f->listener = -1;
        f->deadline = volt_now() + VOLT_S(f->now.drain);
    }
    if (f->listener >= 0) volt_close(cx, f->listener);
    VOLT_AWAIT(volt_group_close(cx, &f->clients)); // cancels those that are left
    VOLT_END(f->n);
}

// Ends the connection behind the last byte, and drops what still comes: a close with bytes unread
// would reset the connection, and take the last bytes with it.
static volt_poll client_linger(volt_cx *cx, client *c) {
    volt_sock_shutdown(c->fd, SHUT_WR); // again at each poll, without effect
    return volt_within(cx, &c->limit, VOLT_S(LINGER_SECONDS),
                       volt_io(cx, c->fd, VOLT_IN, http_drop, &c->left));
}

// ---- echo

// Echoes what has come, by a buffer on the stack. What the socket does not take goes to the heap.
//   returns: the number of bytes | 0 at the end | -EAGAIN | -errno. c->left of them are in c->rest
static int64_t echo_some(volt_cx *cx, client *c) {
    char buf[ECHO_BYTES];
    int64_t n = volt_try_read(cx, c->fd, buf, sizeof buf);
    if (n <= 0) return n;
    COUNT(n_bytes, (uint64_t)n);
    int64_t sent = volt_try_write(cx, c->fd, buf, (size_t)n);
    if (sent < 0 && sent != -EAGAIN) return sent;
    c->left = sent < 0 ? n : n - sent;
    if (c->left == 0) return n;
    c->rest = (char *)malloc((size_t)c->left);
    if (!c->rest) return -ENOMEM;
    memcpy(c->rest, buf + (n - c->left), (size_t)c->left);
    return n;
}
static void client_log(const char *event, const client *c) {
    char text[VOLT_ADDR_TEXT] = "";
    volt_addr peer;
    if (__atomic_load_n(&log_state.level, __ATOMIC_RELAXED) < LOG_DETAIL) return;
    if (volt_peer_addr(c->fd, &peer) == 0) (void)volt_addr_format(&peer, text, sizeof text);
    log_event(LOG_DETAIL, event, "peer", text, NULL);
}
static volt_poll echo_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    COUNT(n_accepted, 1);
    COUNT(n_clients, 1);
    client_log("client_came", c);
    for (;;) {
        c->idle = VOLT_S(settings_now().idle);
        VOLT_AWAIT(c->n, volt_with_token(cx, &c->link, &service.stop,
                                         volt_within(cx, &c->limit, c->idle,
                                                     volt_read_ready(cx, c->fd))));
        // the bytes that have come are echoed
        if (c->n == -ECANCELED && !volt_is_cancelled(cx)) c->is_last = 1;
        else if (c->n < 0) break;
        c->n = echo_some(cx, c);
        if (c->n == -EAGAIN && !c->is_last) continue;
        if (c->n <= 0) break;
        if (!c->rest) continue;
        VOLT_AWAIT(c->n, volt_within(cx, &c->limit, c->is_last ? VOLT_NEVER : c->idle,
                                     volt_write_all(cx, c->fd, c->rest, (size_t)c->left)));
        free(c->rest);
        c->rest = NULL;
        if (c->n < 0) break;
    }
    free(c->rest);
    c->left = LINGER_BYTES;
    if (c->is_last && c->n == -EAGAIN) VOLT_AWAIT(client_linger(cx, c));
    client_log("client_left", c);
    volt_close(cx, c->fd);
    COUNT(n_clients, -1);
    VOLT_END(0);
}

// ---- metrics and health

static void metrics_service(FILE *f) {
    metrics_gauge(f, "echo_clients", "Clients that are connected", (double)VALUE(n_clients));
    metrics_counter(f, "echo_connections", "Clients that were accepted", VALUE(n_accepted));
    metrics_counter(f, "echo_bytes", "Bytes that were received", VALUE(n_bytes));
    metrics_counter(f, "echo_reloads", "Configurations that were taken", VALUE(n_reloads));
    metrics_counter(f, "echo_reloads_refused", "Configurations that were broken",
                    VALUE(n_refused));
    metrics_counter(f, "echo_log_lines_dropped", "Lines that the log had no room for",
                    __atomic_load_n(&log_state.n_dropped, __ATOMIC_RELAXED));
}
// Makes the answer to a request; c->n is the status so far.
static void answer(volt_cx *cx, client *c) {
    static char words[] = "healthy\n";
    const http_request *r = &c->x->req;
    int is_head = http_is(r->method, "HEAD");
    http_text body = { words, 8 };
    const char *fields = "Content-Type: text/plain\r\n";
    size_t len = 0;
    if (c->n == HTTP_OK && !is_head && !http_is(r->method, "GET")) c->n = 405;
    if (c->n == HTTP_OK && http_is(r->path, "/metrics")) {
        FILE *f = open_memstream(&c->text, &len);
        if (f) {
            metrics_service(f);
            metrics_end(f, volt_cx_rt(cx));
        }
        if (!f || fclose(f) != 0) c->n = 503;
        body = (http_text){ c->text, len };
        fields = metrics_type;
    } else if (c->n == HTTP_OK && http_is(r->path, "/health")) {
        if (!is_healthy(volt_cx_rt(cx), VOLT_S(STUCK_SECONDS))) c->n = 503;
    } else if (c->n == HTTP_OK) {
        c->n = 404;
    }
    if (c->n != HTTP_OK) {
        body.at = http_reason((int)c->n), body.len = strlen(body.at);
        fields = c->n == 405 ? "Allow: GET, HEAD\r\n" : "";
    }
    http_answer(c->x, (int)c->n, fields, body, is_head, 1);
}
static volt_poll scrape_run(volt_cx *cx, void *arg) { // one request for each connection
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    c->x = http_begin(volt_stream_of(c->fd), REQUEST_BYTES);
    if (!c->x) goto out;
    VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(REQUEST_SECONDS), http_read(cx, c->x)));
    if (c->n == -ETIMEDOUT) c->n = 408;
    if (c->n <= 0) goto out;
    answer(cx, c);
    VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(REQUEST_SECONDS),
                                 volt_writev_all(cx, c->fd, c->x->answer, 2)));
    c->x = http_end(c->x);
    c->left = LINGER_BYTES;
    if (c->n > 0) VOLT_AWAIT(client_linger(cx, c));
out:
    free(c->x);
    free(c->text);
    volt_close(cx, c->fd);
    VOLT_END(0);
}

// ---- reloading

// A configuration on its way into force.
typedef struct loader {
    volt_frame frame;
    volt_file_op file;
    manager_message message;
    settings next;
    int line;
    int64_t n; // the length of the text, or -errno
    const char *error;
    char text[FILE_BYTES + 1];
} loader;
// Takes the text if it is sound; else l->error says why not.
static void loader_take(loader *l) {
    settings old = settings_now();
    l->line = 0;
    l->text[l->n > 0 ? l->n : 0] = 0;
    l->error = l->n < 0 ? volt_strerror((int)l->n) : settings_parse(&l->next, l->text, &l->line);
    if (l->error) {
        COUNT(n_refused, 1);
        log_event(LOG_ERROR, "configuration_refused", "file", service.path, "line",
                  log_number(l->line).text, "error", l->error, NULL);
        return;
    }
    if (VALUE(n_reloads) > 0 &&
        (strcmp(old.listen, l->next.listen) != 0 || strcmp(old.metrics, l->next.metrics) != 0))
        log_event(LOG_WARN, "addresses_unchanged", "reason", "they need a restart", NULL);
    COUNT(n_reloads, 1);
    __atomic_store_n(&log_state.level, (int)l->next.log, __ATOMIC_RELAXED);
    (void)volt_watch_set(&service.watch, &l->next, sizeof l->next);
    log_event(LOG_NEWS, "configured", "file", service.path, NULL);
}
static volt_poll reload(volt_cx *cx, loader *l) {
    VOLT_BEGIN(cx, l);
    snprintf(l->message.text, MANAGER_TEXT, "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(volt_now() / 1000));
    VOLT_AWAIT(manager_tell(cx, &service.by, &l->message));
    VOLT_AWAIT(l->n, volt_file_load(cx, &l->file, service.path, l->text, FILE_BYTES));
    loader_take(l);
    snprintf(l->message.text, MANAGER_TEXT, "READY=1\nSTATUS=%s",
             l->error ? "The new configuration is broken; the old one is in force" : "Serving");
    VOLT_AWAIT(manager_tell(cx, &service.by, &l->message));
    VOLT_END(0);
}

// ---- the root task

typedef struct root {
    volt_frame frame;
    volt_arm signal, ended;
    volt_group parts;  // all but the echo
    volt_handle echo;
    manager_message message;
    loader next;
    int signals, listeners[2], number, rc;
    int64_t n_cut;
} root;

static void root_spawn(volt_cx *cx, root *r) {
    const front echo = { .name = "echo", .listener = r->listeners[0], .client = echo_run,
                         .stop = &service.stop };
    const front metrics = { .name = "metrics", .listener = r->listeners[1], .client = scrape_run,
                            .stop = &service.stop_metrics };
    r->rc = VOLT_GROUP_SPAWN(cx, &r->parts, log_run, (log_writer){ .n = 0 });
    if (r->rc == 0) log_begin();
    if (r->rc == 0) r->rc = VOLT_SPAWN(cx, &r->echo, front_run, echo);
    if (r->rc == 0) r->rc = VOLT_GROUP_SPAWN(cx, &r->parts, front_run, metrics);
    if (r->rc == 0 && service.by.watchdog > 0)
        r->rc = VOLT_GROUP_SPAWN(cx, &r->parts, watchdog_run, (watchdog){ .n = 0 });
}
// Sets the message for the manager: a drain may last longer than it waits by default.
static void root_say_stopping(root *r) {
    long drain = settings_now().drain;
    snprintf(r->message.text, MANAGER_TEXT,
             "STOPPING=1\nSTATUS=Waiting for %ld clients\nEXTEND_TIMEOUT_USEC=%lld",
             VALUE(n_clients), (drain + LINGER_SECONDS) * 1000000LL);
    log_event(LOG_NOTICE, "stopping", "clients", log_number(VALUE(n_clients)).text, NULL);
}
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    VOLT_BEGIN(cx, r);
    root_spawn(cx, r);
    if (r->rc < 0) log_event(LOG_ERROR, "cannot_start", "error", volt_strerror(r->rc), NULL);
    strcpy(r->message.text, "READY=1\nSTATUS=Serving");
    if (r->rc == 0) {
        VOLT_AWAIT(r->rc, manager_tell(cx, &service.by, &r->message));
        if (r->rc < 0) log_event(LOG_WARN, "manager", "error", volt_strerror(r->rc), NULL);
        r->rc = 0;
    }
    while (r->rc == 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&r->signal, r->number, volt_signals_next(cx, r->signals, NULL)),
            VOLT_ARM(&r->ended, r->n_cut, volt_join(cx, &r->echo))));
        if (!r->signal.fired) r->rc = -EIO; // the listener has failed, which is logged
        if (!r->signal.fired || r->number != SIGHUP) break;
        VOLT_AWAIT(reload(cx, &r->next));
    }
    volt_token_cancel(&service.stop);
    root_say_stopping(r);
    VOLT_AWAIT(manager_tell(cx, &service.by, &r->message));
    while (volt_handle_is_set(&r->echo)) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&r->signal, r->number, volt_signals_next(cx, r->signals, NULL)),
            VOLT_ARM(&r->ended, r->n_cut, volt_join(cx, &r->echo))));
        if (r->signal.fired && r->number != SIGHUP) volt_cancel(&r->echo);
        if (!r->signal.fired && !r->ended.fired) volt_detach(&r->echo); // this task is cancelled
    }
    log_event(LOG_NOTICE, "stopped", "cut", log_number(r->n_cut).text, NULL);
    volt_token_cancel(&service.stop_metrics);
    VOLT_AWAIT(volt_group_close(cx, &r->parts));
    volt_close(cx, r->signals);
    VOLT_END(r->rc);
}

// ---- the start

// Opens a listener, or takes that of the manager.
//   returns: the descriptor | -errno, which is logged
static int listener_open(const char *name, const char *address) {
    volt_listen_options options = { .is_replacing = 1 };
    volt_addr at;
    char text[VOLT_ADDR_TEXT] = "";
    int rc = 0, fd = manager_socket(&service.by, name), is_given = fd >= 0;
    if (!is_given) rc = volt_addr_parse(&at, address);
    if (!is_given && rc == 0) rc = fd = volt_listen_addr(&at, &options);
    if (rc < 0) {
        log_event(LOG_ERROR, "cannot_listen", "name", name, "address", address, "error",
                  volt_strerror(rc), NULL);
        return rc;
    }
    if (volt_local_addr(fd, &at) == 0) (void)volt_addr_format(&at, text, sizeof text);
    log_event(LOG_NEWS, "listening", "name", name, "address", text, "by",
              is_given ? "manager" : "service", NULL);
    return fd;
}
// Reads the configuration, without volt.
static int load_first(loader *l) {
    FILE *f = fopen(service.path, "r");
    l->n = f ? (int64_t)fread(l->text, 1, sizeof l->text, f) : -errno;
    if (f && ferror(f)) l->n = -errno; // a directory, for example
    if (l->n > FILE_BYTES) l->n = -EFBIG;
    if (f) fclose(f);
    loader_take(l);
    return l->error ? -EINVAL : 0;
}
int main(int argc, char **argv) {
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    static root r;
    volt_config config = { .slow_poll = VOLT_MS(100), .log = { .fn = log_volt } };
    log_open();
    if (argc != 2) {
        log_event(LOG_ERROR, "usage", "arguments", "CONFIGURATION", NULL);
        return 2;
    }
    service.path = argv[1];
    service.now = settings_default;
    int rc = manager_open(&service.by);
    if (rc < 0) log_event(LOG_WARN, "manager", "error", volt_strerror(rc), NULL);
    rc = r.signals = volt_signals_open(signals, 3);
    if (rc >= 0) rc = load_first(&r.next);
    if (rc >= 0) rc = r.listeners[0] = listener_open("echo", service.now.listen);
    if (rc >= 0) rc = r.listeners[1] = listener_open("metrics", service.now.metrics);
    if (manager_close_others(&service.by) > 0)
        log_event(LOG_WARN, "sockets_closed", "reason", "no such name, not listening, or too many",
                  NULL);
    if (rc >= 0) rc = volt_run(&config, root_run, &r);
    return rc < 0;
}
