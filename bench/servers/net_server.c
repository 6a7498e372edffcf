// SPDX-License-Identifier: MIT OR 0BSD
// The server of bench/tools/net_ratio.sh by volt.h: one task for each connection.
//
//   net_server echo|http|resp|udp WORKERS [SECONDS]     the modes: see serve.h
//
// Listens on a free port of 127.0.0.1, prints "port N", and serves until SIGTERM, or is killed
// after SECONDS (default 300), in case it is left behind. Prints at its end:
//   requests  answered; of echo: reads that brought data
//   bytes     sent back
//   cpu_us    user and system time of the process since it began to listen
//   wakes     voluntary context switches of all threads
// The buffers are on the stack of a poll; those of a connection are on the heap, and only while a
// request is incomplete or the socket has no room for an answer.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "serve.h"

typedef struct server {
    volt_frame frame;
    volt_group tasks;
    serve_options options;
    int fd, signals, rc;
    uint64_t requests, bytes; // added up by tasks as they end
} server;

typedef struct connection {
    volt_frame frame;
    server *server;
    serve_io *io; // or NULL
    int fd;
    int64_t n;
    uint64_t requests, bytes;
} connection;

typedef struct socket_task { // accepts, or answers datagrams
    volt_frame frame;
    server *server;
    int64_t n;
    uint64_t requests, bytes;
} socket_task;

static void add_up(server *s, uint64_t requests, uint64_t bytes) {
    __atomic_fetch_add(&s->requests, requests, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
}

static void count(connection *c, serve_io *io) {
    c->requests += io->requests;
    c->bytes += io->bytes;
    io->requests = io->bytes = 0;
}
// Answers the bytes that are there, and keeps those that are left.
//   returns: above 0 | 0 at the end | -EAGAIN, or another -errno
static int64_t connection_answer(volt_cx *cx, connection *c) {
    serve_io io;
    serve_reset(&io, c->server->options.mode);
    const int64_t n = volt_try_read(cx, c->fd, serve_at(&io), serve_room(&io));
    if (n <= 0) return n;
    serve_read(&io, (size_t)n);
    while (serve_answer(&io)) {
        const int64_t sent = volt_try_write(cx, c->fd, io.answer, io.len);
        if (sent < 0 && sent != -EAGAIN) return sent;
        io.answer += sent < 0 ? 0 : sent;
        io.len -= sent < 0 ? 0 : (size_t)sent;
        if (io.len > 0) break;
    }
    count(c, &io);
    if (io.len > 0 || (io.have > 0 && !io.is_broken)) c->io = serve_keep(&io);
    return c->io || !io.is_broken;
}
static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = arg;
    VOLT_BEGIN(cx, c);
    do {
        VOLT_AWAIT(c->n, volt_read_ready(cx, c->fd));
        if (c->n == 0) c->n = connection_answer(cx, c);
        while (c->io) {
            while (c->n > 0 && c->io->len > 0) {
                VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->io->answer, c->io->len));
                serve_answer(c->io);
            }
            if (c->io->is_broken) c->n = 0;
            if (c->n > 0 && c->io->have > 0) {
                VOLT_AWAIT(c->n, volt_read(cx, c->fd, serve_at(c->io), serve_room(c->io)));
                if (c->n > 0) serve_read(c->io, (size_t)c->n), serve_answer(c->io);
            } else {
                count(c, c->io);
                free(c->io);
                c->io = NULL;
            }
        }
    } while (c->n > 0 || c->n == -EAGAIN);
    volt_close(cx, c->fd);
    add_up(c->server, c->requests, c->bytes);
    VOLT_END(0);
}

static void start_connection(volt_cx *cx, server *s, int fd) {
    const connection c = { .server = s, .fd = fd };
    if (VOLT_GROUP_SPAWN(cx, &s->tasks, connection_run, c) < 0) volt_close(cx, fd);
}

static volt_poll accept_run(volt_cx *cx, void *arg) {
    socket_task *a = arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->n, volt_accept(cx, a->server->fd));
        if (a->n < 0) break;
        start_connection(cx, a->server, (int)a->n);
    }
    VOLT_END(a->n);
}

static volt_poll datagrams_run(volt_cx *cx, void *arg) {
    socket_task *d = arg;
    VOLT_BEGIN(cx, d);
    for (;;) {
        VOLT_AWAIT(d->n, volt_readable(cx, d->server->fd));
        if (d->n < 0) break;
        d->requests += serve_datagrams(d->server->fd, &d->bytes);
    }
    add_up(d->server, d->requests, d->bytes);
    VOLT_END(d->n);
}

// Waits for the signal; then ends every task.
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = arg;
    VOLT_BEGIN(cx, s);
    s->rc = VOLT_GROUP_SPAWN(cx, &s->tasks,
                             s->options.mode == SERVE_UDP ? datagrams_run : accept_run,
                             (socket_task){ .server = s });
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_readable(cx, s->signals));
    VOLT_AWAIT(volt_group_close(cx, &s->tasks));
    volt_close(cx, s->fd);
    volt_close(cx, s->signals);
    VOLT_END(s->rc);
}

int main(int argc, char **argv) {
    server s = { .options = serve_parse(argc, argv), .signals = serve_signals() };
    const volt_config config = { .workers = s.options.workers };
    s.fd = s.options.mode == SERVE_UDP ? serve_socket(SERVE_UDP)
                                       : volt_listen("127.0.0.1", 0, NULL);
    if (s.fd < 0) bench_die("listen: %s", volt_strerror(s.fd));
    serve_begin(&s.options, s.fd);
    const int rc = volt_run(&config, server_run, &s);
    if (rc < 0) bench_die("%s", volt_strerror(rc));
    serve_report(&s.options, s.requests, s.bytes);
    return 0;
}
