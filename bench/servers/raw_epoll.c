// SPDX-License-Identifier: MIT OR 0BSD
// The limit for net_server.c and echo_server.c: the same service by plain code on edge-triggered
// epoll.
//
//   raw_epoll MODE WORKERS [SECONDS [PORT]]     the modes: see serve.h
//
// Listens on a free port of 127.0.0.1, prints "port N", and serves until SIGTERM, or is killed
// after SECONDS (default 300), in case it is left behind. Each worker is a thread with an epoll
// instance; the first one accepts and distributes connections to all in turn. Prints at its end:
//   requests  answered; of echo: reads that brought data; of bursts: bursts; of relay: none
//   bytes     sent back
//   cpu_us    user and system time of the process since it began to listen
//   wakes     voluntary context switches of all threads
#define _GNU_SOURCE 1
#include "raw_datagrams.h"
#include "raw_relay.h"
#include "serve.h"
#include <netinet/tcp.h>
#include <sys/epoll.h>

enum { EVENTS = 256, WORKERS_MAX = 64 };

typedef struct connection {
    int fd;
    size_t written; // bytes written of the current answer
    serve_io *io;
} connection;

typedef struct idler {
    int fd;
    unsigned len; // of `rest`: bytes that the socket had no room for
    char *rest;
} idler;

typedef struct worker {
    pthread_t thread;
    int epoll;
    uint64_t requests, bytes;
    raw_relay *over; // freed when no event of the same round can be theirs
} worker;

static struct {
    serve_options options;
    int fd, signals;
    size_t n_accepted;
    worker workers[WORKERS_MAX];
} server;

static void watch(const worker *w, int fd, uint32_t events, void *source) {
    struct epoll_event e = { .events = events, .data = { .ptr = source } };
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) < 0) bench_die("epoll_ctl: %s", strerror(errno));
}

static void *allocated(void *p) {
    if (!p) bench_die("out of memory");
    return p;
}

static void *connection_new(int fd) {
    connection *c = allocated(malloc(sizeof *c));
    *c = (connection){ .fd = fd, .io = serve_open(server.options.mode) };
    return c;
}

static void *idler_new(int fd) {
    idler *c = allocated(malloc(sizeof *c));
    *c = (idler){ .fd = fd };
    return c;
}

// Both sockets carry the same pointer: each event tries both directions.
static void *relay_new(const worker *w, int fd) {
    raw_relay *r = raw_relay_open(fd, server.options.port);
    watch(w, r->ways[1].from, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, r);
    return r;
}

static void accept_all(void) {
    const int one = 1;
    for (;;) {
        const int fd = accept4(server.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) return;
        const worker *w = &server.workers[server.n_accepted++ % server.options.workers];
        const serve_mode mode = server.options.mode;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(w, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
              mode == SERVE_IDLE ? idler_new(fd)
                                 : mode == SERVE_RELAY ? relay_new(w, fd) : connection_new(fd));
    }
}

static void finish(connection *c) {
    close(c->fd);
    free(c->io);
    free(c);
}

// Writes all pending answers.  returns: 1 | 0 the socket is full | -1 the connection broke
static int flush(connection *c) {
    for (;;) {
        while (c->written < c->io->len) {
            const ssize_t n = send(c->fd, c->io->answer + c->written, c->io->len - c->written,
                                   MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno == EAGAIN ? 0 : -1;
            c->written += (size_t)n;
        }
        c->written = 0;
        if (!serve_answer(c->io)) return c->io->is_broken ? -1 : 1;
    }
}

// Serves until there is nothing left to read or no room to write. A short read empties the socket,
// but no further edge follows if the end of the file came with the data.  returns: 0 | -1 close it
static int talk(connection *c, uint32_t events) {
    const int is_ending = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    for (;;) {
        const int flushed = flush(c);
        if (flushed <= 0) return flushed;
        const size_t room = serve_room(c->io);
        const ssize_t n = recv(c->fd, serve_at(c->io), room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) return -1;
        serve_read(c->io, (size_t)n);
        if ((size_t)n < room && !is_ending) return flush(c) < 0 ? -1 : 0;
    }
}

// ---- idle connections: one buffer for all

static void idler_finish(idler *c) {
    close(c->fd);
    free(c->rest);
    free(c);
}

// Sends, and keeps the bytes that the socket has no room for.  returns: 1 | 0 it is full | -1
static int idler_send(idler *c, const char *bytes, size_t len) {
    char *rest = NULL;
    ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return -1;
    if (n < 0) n = 0;
    if ((size_t)n < len) {
        rest = allocated(malloc(len - (size_t)n));
        memcpy(rest, bytes + n, len - (size_t)n);
    }
    free(c->rest);
    c->rest = rest;
    c->len = (unsigned)(len - (size_t)n);
    return !rest;
}

static int idler_talk(worker *w, idler *c, uint32_t events) {
    static _Thread_local char in[SERVE_JOINED];
    const int is_ending = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    for (int is_open = 1; is_open;) {
        if (c->rest && (is_open = idler_send(c, c->rest, c->len)) <= 0) return is_open;
        const ssize_t n = recv(c->fd, in, sizeof in, 0);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) return -1;
        w->requests++;
        w->bytes += (uint64_t)n;
        is_open = idler_send(c, in, (size_t)n);
        if (is_open < 0 || ((size_t)n < sizeof in && !is_ending)) return is_open < 0 ? -1 : 0;
    }
    return 0;
}

// ---- workers

static void talk_and_count(worker *w, connection *c, uint32_t events) {
    const int rc = talk(c, events);
    w->requests += c->io->requests;
    w->bytes += c->io->bytes;
    c->io->requests = c->io->bytes = 0;
    if (rc < 0) finish(c);
}

static void relay_talk(worker *w, raw_relay *r) {
    if (r->is_over || raw_relay_move(r)) return;
    r->is_over = 1;
    r->next = w->over;
    w->over = r;
}

static void free_relays(worker *w) {
    for (raw_relay *r = w->over, *next; r; r = next) {
        next = r->next;
        raw_relay_close(r);
    }
    w->over = NULL;
}

static void handle(worker *w, void *source, uint32_t events) {
    switch (server.options.mode) {
    case SERVE_IDLE:
        if (idler_talk(w, source, events) < 0) idler_finish(source);
        break;
    case SERVE_RELAY: relay_talk(w, source); break;
    default: talk_and_count(w, source, events);
    }
}

static void *serve(void *arg) {
    worker *w = arg;
    struct epoll_event events[EVENTS];
    for (;;) {
        const int n = epoll_wait(w->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            void *source = events[i].data.ptr;
            if (source == &server.signals) return NULL;
            if (source != &server.fd) {
                handle(w, source, events[i].events);
            } else if (serve_is_udp(server.options.mode)) {
                w->requests += raw_answer_datagrams(server.options.mode, server.fd, &w->bytes);
            } else {
                accept_all();
            }
        }
        free_relays(w);
    }
}

static void start_workers(void) {
    const uint32_t edge = serve_is_udp(server.options.mode) ? 0 : EPOLLET;
    for (unsigned i = 0; i < server.options.workers; i++) {
        worker *w = &server.workers[i];
        w->epoll = epoll_create1(EPOLL_CLOEXEC);
        watch(w, server.signals, EPOLLIN, &server.signals);
        if (i == 0) watch(w, server.fd, EPOLLIN | edge, &server.fd);
    }
    for (unsigned i = 1; i < server.options.workers; i++)
        if (pthread_create(&server.workers[i].thread, NULL, serve, &server.workers[i]) != 0)
            bench_die("pthread_create");
}

int main(int argc, char **argv) {
    uint64_t requests = 0, bytes = 0;
    server.options = serve_parse(argc, argv);
    server.signals = serve_signals();
    signal(SIGPIPE, SIG_IGN); // splice(2) has no flag against it
    server.fd = serve_socket(server.options.mode);
    serve_begin(&server.options, server.fd);
    start_workers();
    serve(&server.workers[0]);
    for (unsigned i = 0; i < server.options.workers; i++) {
        if (i > 0) pthread_join(server.workers[i].thread, NULL);
        requests += server.workers[i].requests;
        bytes += server.workers[i].bytes;
    }
    serve_report(&server.options, requests, bytes);
    return 0;
}
