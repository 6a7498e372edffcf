// SPDX-License-Identifier: MIT OR 0BSD
// The server of bench/tools/net_ratio.sh by volt.h: one task for each connection.
//
//   net_server MODE WORKERS [SECONDS [PORT]]     the modes: see serve.h
//
// Listens on a free port of 127.0.0.1, prints "port N", and serves until SIGTERM, or is killed
// after SECONDS (default 300), in case it is left behind. Prints at its end:
//   requests  answered; of echo: reads that brought data; of bursts: bursts; of relay: none
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
static server the_server; // so that idle connections need no pointer to it

typedef struct connection {
    volt_frame frame;
    serve_io *io; // or NULL
    int fd;
    int64_t n;
    uint64_t requests, bytes;
} connection;

static void add_up(uint64_t requests, uint64_t bytes) {
    __atomic_fetch_add(&the_server.requests, requests, __ATOMIC_RELAXED);
    __atomic_fetch_add(&the_server.bytes, bytes, __ATOMIC_RELAXED);
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
    serve_reset(&io, the_server.options.mode);
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
    add_up(c->requests, c->bytes);
    VOLT_END(0);
}

// ---- idle connections: the buffer is on the stack of the poll

typedef struct idler {
    volt_frame frame;
    struct rest *rest; // bytes that the socket had no room for
    int fd, rc;
} idler;
typedef struct rest {
    size_t len;
    char bytes[];
} rest;

// Copies the bytes that are left for a wait.
static int idler_keep(idler *c, const char *bytes, size_t len) {
    c->rest = malloc(sizeof *c->rest + len);
    if (!c->rest) return -ENOMEM;
    c->rest->len = len;
    memcpy(c->rest->bytes, bytes, len);
    return 1;
}

// Sends back the bytes that are there.  returns: 1 | 0 at the end | -errno
static int idler_answer(volt_cx *cx, idler *c) {
    char in[SERVE_JOINED];
    const int64_t n = volt_try_read(cx, c->fd, in, sizeof in);
    if (n <= 0) return n == -EAGAIN ? 1 : (int)n;
    int64_t sent = volt_try_write(cx, c->fd, in, (size_t)n);
    if (sent == -EAGAIN) sent = 0;
    if (sent < 0) return (int)sent;
    add_up(1, (uint64_t)n);
    return sent < n ? idler_keep(c, in + sent, (size_t)(n - sent)) : 1;
}

static volt_poll idler_run(volt_cx *cx, void *arg) {
    idler *c = arg;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->rc, volt_read_ready(cx, c->fd));
        if (c->rc < 0) break;
        c->rc = idler_answer(cx, c);
        if (c->rc <= 0) break;
        if (!c->rest) continue;
        VOLT_AWAIT(c->rc, volt_write_all(cx, c->fd, c->rest->bytes, c->rest->len));
        free(c->rest);
        c->rest = NULL;
        if (c->rc < 0) break;
    }
    volt_close(cx, c->fd);
    VOLT_END(0);
}

// ---- relays

typedef struct passage {
    volt_frame frame;
    volt_relayer relay;
    volt_addr backend;
    int fds[2], rc; // of the client, of the backend
} passage;

static volt_poll passage_run(volt_cx *cx, void *arg) {
    passage *p = arg;
    VOLT_BEGIN(cx, p);
    volt_addr_make(&p->backend, "127.0.0.1", the_server.options.port);
    VOLT_AWAIT(p->fds[1], volt_connect(cx, &p->backend));
    if (p->fds[1] >= 0) {
        volt_relayer_init(&p->relay, volt_stream_of(p->fds[0]), volt_stream_of(p->fds[1]),
                          VOLT_S(60));
        VOLT_AWAIT(p->rc, volt_relay(cx, &p->relay));
        volt_close(cx, p->fds[1]);
    }
    volt_close(cx, p->fds[0]);
    VOLT_END(0);
}

// ---- streams

typedef struct listener {
    volt_frame frame;
    int64_t n;
} listener;

static void start_connection(volt_cx *cx, int fd) {
    int rc = 0;
    switch (the_server.options.mode) {
    case SERVE_IDLE: rc = VOLT_SPAWN(cx, NULL, idler_run, (idler){ .fd = fd }); break;
    case SERVE_RELAY:
        rc = VOLT_GROUP_SPAWN(cx, &the_server.tasks, passage_run, (passage){ .fds = { fd, -1 } });
        break;
    default:
        rc = VOLT_GROUP_SPAWN(cx, &the_server.tasks, connection_run, (connection){ .fd = fd });
    }
    if (rc < 0) volt_close(cx, fd);
}

static volt_poll accept_run(volt_cx *cx, void *arg) {
    listener *a = arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->n, volt_accept(cx, the_server.fd));
        if (a->n < 0) break;
        start_connection(cx, (int)a->n);
    }
    VOLT_END(a->n);
}

// ---- datagrams

typedef struct datagrams {
    volt_frame frame;
    int64_t n, rc;
    size_t done, segment;
    uint64_t requests, bytes;
    volt_addr from;
    serve_batch *batch;
    serve_burst *burst;
    char in[SERVE_DATAGRAM];
} datagrams;

static volt_poll datagrams_run(volt_cx *cx, void *arg) {
    datagrams *d = arg;
    VOLT_BEGIN(cx, d);
    for (;;) {
        VOLT_AWAIT(d->n, volt_recvfrom(cx, the_server.fd, d->in, sizeof d->in, 0, &d->from));
        if (d->n < 0) break;
        VOLT_AWAIT(d->rc, volt_sendto(cx, the_server.fd, d->in, (size_t)d->n, 0, &d->from));
        if (d->rc < 0) break;
        d->requests++;
        d->bytes += (uint64_t)d->n;
    }
    add_up(d->requests, d->bytes);
    VOLT_END(d->n);
}

static volt_poll batches_run(volt_cx *cx, void *arg) {
    datagrams *d = arg;
    VOLT_BEGIN(cx, d);
    d->batch = serve_batch_new();
    for (d->rc = 1; d->rc > 0;) {
        VOLT_AWAIT(d->n, volt_recvmmsg(cx, the_server.fd, d->batch->v, SERVE_DATAGRAMS, 0));
        if (d->n < 0) break;
        d->bytes += serve_batch_turn(d->batch, (size_t)d->n);
        for (d->done = 0; d->rc > 0 && d->done < (size_t)d->n; d->done += (size_t)d->rc) {
            VOLT_AWAIT(d->rc, volt_sendmmsg(cx, the_server.fd, d->batch->v + d->done,
                                            (unsigned)d->n - (unsigned)d->done, 0));
            if (d->rc < 0) break;
        }
        d->requests += d->done;
        serve_batch_clear(d->batch, (size_t)d->n);
    }
    free(d->batch);
    add_up(d->requests, d->bytes);
    VOLT_END(0);
}

static volt_poll send_run(volt_cx *cx, void *arg) {
    datagrams *d = arg;
    VOLT_BEGIN(cx, d);
    d->burst = serve_burst_new();
    for (;;) {
        VOLT_AWAIT(d->n, volt_recvfrom(cx, the_server.fd, &d->burst->number,
                                       sizeof d->burst->number, 0, &d->from));
        if (d->n < 0) break;
        burst_number(d->burst->joined, d->burst->number);
        for (d->done = 0; d->done < BURST_BYTES; d->done += (size_t)d->n) {
            VOLT_AWAIT(d->n, volt_send_segments(cx, the_server.fd, d->burst->joined + d->done,
                                                BURST_BYTES - d->done, BURST_DATAGRAM, &d->from));
            if (d->n < 0) break;
        }
        if (d->n < 0) break;
        d->requests++;
        d->bytes += BURST_BYTES;
    }
    free(d->burst);
    add_up(d->requests, d->bytes);
    VOLT_END(0);
}

static volt_poll receive_run(volt_cx *cx, void *arg) {
    datagrams *d = arg;
    VOLT_BEGIN(cx, d);
    d->burst = serve_burst_new();
    for (;;) {
        VOLT_AWAIT(d->n, volt_recv_segments(cx, the_server.fd, d->burst->joined, SERVE_JOINED,
                                            &d->segment, &d->from, NULL));
        if (d->n < 0) break;
        if (!burst_add(&d->burst->receipt, d->burst->joined, (size_t)d->n, d->segment)) continue;
        VOLT_AWAIT(d->n, volt_sendto(cx, the_server.fd, &d->burst->receipt,
                                     sizeof d->burst->receipt, 0, &d->from));
        if (d->n < 0) break;
        d->requests++;
        d->bytes += sizeof d->burst->receipt;
    }
    free(d->burst);
    add_up(d->requests, d->bytes);
    VOLT_END(0);
}

// ---- program

// Starts the task that accepts, or answers datagrams.
static int start_socket(volt_cx *cx) {
    volt_group *tasks = &the_server.tasks;
    const datagrams none = { .n = 0 };
    switch (the_server.options.mode) {
    case SERVE_UDP: return VOLT_GROUP_SPAWN(cx, tasks, datagrams_run, none);
    case SERVE_UDP_MANY: return VOLT_GROUP_SPAWN(cx, tasks, batches_run, none);
    case SERVE_UDP_SEND: return VOLT_GROUP_SPAWN(cx, tasks, send_run, none);
    case SERVE_UDP_RECEIVE: return VOLT_GROUP_SPAWN(cx, tasks, receive_run, none);
    default: return VOLT_GROUP_SPAWN(cx, tasks, accept_run, (listener){ .n = 0 });
    }
}

// Waits for the signal; then ends every task.
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = arg;
    VOLT_BEGIN(cx, s);
    s->rc = start_socket(cx);
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_readable(cx, s->signals));
    VOLT_AWAIT(volt_group_close(cx, &s->tasks));
    volt_close(cx, s->fd);
    volt_close(cx, s->signals);
    VOLT_END(s->rc);
}

static int open_udp(serve_mode mode) {
    const volt_udp_options options = { .is_joined = mode == SERVE_UDP_RECEIVE };
    volt_addr here;
    volt_addr_make(&here, "127.0.0.1", 0);
    const int fd = volt_udp_open(&here, &options);
    if (fd >= 0) burst_buffers(fd);
    return fd;
}

int main(int argc, char **argv) {
    server *s = &the_server;
    s->options = serve_parse(argc, argv);
    s->signals = serve_signals();
    const volt_config config = { .workers = s->options.workers, .spin_us = bench_spin_us() };
    s->fd = serve_is_udp(s->options.mode) ? open_udp(s->options.mode)
                                          : volt_listen("127.0.0.1", 0, NULL);
    if (s->fd < 0) bench_die("listen: %s", volt_strerror(s->fd));
    serve_begin(&s->options, s->fd);
    const int rc = volt_run(&config, server_run, s);
    if (rc < 0) bench_die("%s", volt_strerror(rc));
    serve_report(&s->options, s->requests, s->bytes);
    return 0;
}
