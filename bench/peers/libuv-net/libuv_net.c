// SPDX-License-Identifier: MIT OR 0BSD
// The server of bench/servers/net_server.c by libuv, on the parsers of bench/servers/serve.h.
//
//   libuv_net echo|http|resp|udp WORKERS [SECONDS]
//   libuv_net --version
//
// Each worker is a thread with a loop; several listen on one port by SO_REUSEPORT. Everything else,
// including the final output, is the same. Answers are written at once, as far as the socket takes
// them.
#define _GNU_SOURCE 1
#include "serve.h"
#include <uv.h>

enum { WORKERS_MAX = 64, BACKLOG = 1024 };

typedef struct worker {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t stop;
    union {
        uv_tcp_t tcp;
        uv_udp_t udp;
    } socket;
    uint64_t requests, bytes;
    char in[SERVE_IN]; // a datagram
} worker;

typedef struct connection {
    uv_tcp_t tcp;
    uv_write_t write; // the part that the socket had no room for
    worker *worker;
    serve_io *io;
} connection;

static serve_options options;
static worker workers[WORKERS_MAX];

static void check(int rc, const char *what) {
    if (rc < 0) bench_die("%s: %s", what, uv_strerror(rc));
}

// ---- streams

static void on_closed(uv_handle_t *handle) {
    connection *c = handle->data;
    free(c->io);
    free(c);
}

static void finish(connection *c) {
    if (!uv_is_closing((uv_handle_t *)&c->tcp)) uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    connection *c = handle->data;
    (void)size;
    *buf = uv_buf_init(serve_at(c->io), (unsigned)serve_room(c->io));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void answer(connection *c);

static void on_written(uv_write_t *request, int status) {
    connection *c = request->data;
    if (status < 0) {
        finish(c);
        return;
    }
    if (uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read) < 0) finish(c);
    else answer(c);
}

static void write_rest(connection *c, size_t written) {
    uv_buf_t rest;
    memset(&rest, 0, sizeof rest);
    rest.base = (char *)(uintptr_t)(c->io->answer + written); // libuv does not write to it
    rest.len = c->io->len - written;
    uv_read_stop((uv_stream_t *)&c->tcp); // the buffers are in use
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &rest, 1, on_written) < 0) finish(c);
}

static void answer(connection *c) {
    while (serve_answer(c->io)) {
        uv_buf_t buf;
        memset(&buf, 0, sizeof buf);
        buf.base = (char *)(uintptr_t)c->io->answer;
        buf.len = c->io->len;
        int n = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
        if (n == UV_EAGAIN) n = 0;
        if (n < 0) {
            finish(c);
            return;
        }
        if ((size_t)n < buf.len) {
            write_rest(c, (size_t)n);
            return;
        }
    }
    if (c->io->is_broken) finish(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    connection *c = stream->data;
    (void)buf;
    if (n < 0) {
        finish(c);
        return;
    }
    serve_read(c->io, (size_t)n);
    answer(c);
    c->worker->requests += c->io->requests;
    c->worker->bytes += c->io->bytes;
    c->io->requests = c->io->bytes = 0;
}

static void on_connection(uv_stream_t *listener, int status) {
    worker *w = listener->data;
    if (status < 0) return;
    connection *c = malloc(sizeof *c);
    if (!c) bench_die("out of memory");
    c->worker = w;
    c->io = serve_open(options.mode);
    uv_tcp_init(&w->loop, &c->tcp);
    c->tcp.data = c;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0 || uv_tcp_nodelay(&c->tcp, 1) < 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read) < 0)
        finish(c);
}

// ---- datagrams

static void on_datagram_room(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    worker *w = handle->data;
    (void)size;
    *buf = uv_buf_init(w->in, sizeof w->in);
}

static void on_datagram(uv_udp_t *udp, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from,
                        unsigned flags) {
    worker *w = udp->data;
    (void)flags;
    if (n < 0 || !from) return; // nothing, or nothing more
    const uv_buf_t out = uv_buf_init(buf->base, (unsigned)n);
    if (uv_udp_try_send(udp, &out, 1, from) < 0) return; // lost, as datagrams may be
    w->requests++;
    w->bytes += (uint64_t)n;
}

// ---- workers

static int descriptor_of(const worker *w) {
    uv_os_fd_t fd = -1;
    check(uv_fileno((const uv_handle_t *)&w->socket, &fd), "fileno");
    return fd;
}

static void listen_at(worker *w, unsigned port) {
    const int one = 1;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(uv_tcp_init_ex(&w->loop, &w->socket.tcp, AF_INET), "socket");
    if (setsockopt(descriptor_of(w), SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0)
        bench_die("SO_REUSEPORT: %s", strerror(errno));
    check(uv_tcp_bind(&w->socket.tcp, (const struct sockaddr *)&at, 0), "bind");
    w->socket.tcp.data = w;
    check(uv_listen((uv_stream_t *)&w->socket.tcp, BACKLOG, on_connection), "listen");
}

static void receive(worker *w) {
    struct sockaddr_in at = { .sin_family = AF_INET };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(uv_udp_init(&w->loop, &w->socket.udp), "socket");
    check(uv_udp_bind(&w->socket.udp, (const struct sockaddr *)&at, 0), "bind");
    w->socket.udp.data = w;
    check(uv_udp_recv_start(&w->socket.udp, on_datagram_room, on_datagram), "recv_start");
}

static unsigned port_of(int fd) {
    struct sockaddr_in at = { .sin_port = 0 };
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0) bench_die("getsockname");
    return ntohs(at.sin_port);
}

static void on_stop(uv_async_t *async) { uv_stop(async->loop); }

static void on_signal(uv_signal_t *handle, int number) {
    (void)handle, (void)number;
    for (unsigned i = 0; i < options.workers; i++) uv_async_send(&workers[i].stop);
}

static void prepare(worker *w) {
    check(uv_loop_init(&w->loop), "loop");
    check(uv_async_init(&w->loop, &w->stop, on_stop), "async");
    if (options.mode == SERVE_UDP && w == workers) receive(w);
    if (options.mode != SERVE_UDP) listen_at(w, w == workers ? 0 : port_of(descriptor_of(workers)));
}

static void *work(void *arg) {
    worker *w = arg;
    uv_run(&w->loop, UV_RUN_DEFAULT);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t requests = 0, bytes = 0;
    uv_signal_t term;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("libuv %s\n", uv_version_string());
        return 0;
    }
    options = serve_parse(argc, argv);
    for (unsigned i = 0; i < options.workers; i++) prepare(&workers[i]);
    check(uv_signal_init(&workers[0].loop, &term), "signal");
    check(uv_signal_start(&term, on_signal, SIGTERM), "signal");
    serve_begin(&options, descriptor_of(&workers[0]));
    for (unsigned i = 1; i < options.workers; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("pthread_create");
    work(&workers[0]);
    for (unsigned i = 0; i < options.workers; i++) {
        if (i > 0) pthread_join(workers[i].thread, NULL);
        requests += workers[i].requests;
        bytes += workers[i].bytes;
    }
    serve_report(&options, requests, bytes);
    return 0;
}
