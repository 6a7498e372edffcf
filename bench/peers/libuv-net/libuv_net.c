// SPDX-License-Identifier: MIT OR 0BSD
// The server of bench/servers/net_server.c by libuv, on the parsers of bench/servers/serve.h.
//
//   libuv_net MODE WORKERS [SECONDS [PORT]]     all modes but liar
//   libuv_net --version
//
// Each worker is a thread with a loop; several listen on one port by SO_REUSEPORT. Everything else,
// including the final output, is the same. Answers are written at once, as far as the socket takes
// them. Connections of idle and relay share the buffer of their worker, and keep a copy of the
// bytes for which a socket has no room. libuv has no call for joined datagrams: their sockets have
// the options UDP_SEGMENT and UDP_GRO, and the length of a datagram is known.
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
    serve_burst *burst;
    char *in; // of all connections, or of datagrams
} worker;
enum { IN_BYTES = SERVE_DATAGRAMS * 65536 }; // libuv divides it into parts of 64 KiB

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

// ---- idle connections and relays

typedef struct idler {
    uv_tcp_t tcp;
    struct idler *to; // where its bytes go: to itself, or to the other end of a relay
    worker *worker;
    uv_write_t *write; // the bytes that have no room in the other socket, or NULL
    int is_ended;
} idler;

static void on_idler_room(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    const idler *c = handle->data;
    (void)size;
    *buf = uv_buf_init(c->worker->in, SERVE_JOINED);
}

static void on_idler_closed(uv_handle_t *handle) { free(handle->data); }

static void idler_close(idler *c) {
    if (!uv_is_closing((uv_handle_t *)&c->tcp)) uv_close((uv_handle_t *)&c->tcp, on_idler_closed);
}
static void idler_finish(idler *c) {
    idler *other = c->to;
    idler_close(c);
    if (other != c) idler_close(other);
}

static void on_idler_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void on_rest_written(uv_write_t *write, int status) {
    idler *c = write->data;
    free(write);
    if (status == UV_ECANCELED) return; // it is closing
    c->write = NULL;
    if (status < 0 || uv_read_start((uv_stream_t *)&c->tcp, on_idler_room, on_idler_read) < 0)
        idler_finish(c);
}

static void idler_write_rest(idler *c, const char *bytes, size_t len) {
    uv_write_t *write = malloc(sizeof *write + len);
    if (!write) bench_die("out of memory");
    char *copy = (char *)(write + 1);
    uv_buf_t rest = uv_buf_init(memcpy(copy, bytes, len), (unsigned)len);
    write->data = c;
    c->write = write;
    uv_read_stop((uv_stream_t *)&c->tcp);
    if (uv_write(write, (uv_stream_t *)&c->to->tcp, &rest, 1, on_rest_written) < 0) idler_finish(c);
}

static void on_idler_shut(uv_shutdown_t *shut, int status) {
    idler *c = shut->data;
    free(shut);
    if (status == UV_ECANCELED) return;
    if (c->to->is_ended) idler_finish(c);
}

// Passes the end of a direction on; an idle connection ends with it.
static void idler_end(idler *c, ssize_t why) {
    uv_shutdown_t *shut = malloc(sizeof *shut);
    c->is_ended = 1;
    if (!shut) bench_die("out of memory");
    shut->data = c;
    if (c->to == c || why != UV_EOF ||
        uv_shutdown(shut, (uv_stream_t *)&c->to->tcp, on_idler_shut) < 0) {
        free(shut);
        idler_finish(c);
    }
}

static void on_idler_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    idler *c = stream->data;
    if (n == 0) return;
    if (n < 0) {
        idler_end(c, n);
        return;
    }
    const uv_buf_t out = uv_buf_init(buf->base, (unsigned)n);
    int sent = uv_try_write((uv_stream_t *)&c->to->tcp, &out, 1);
    if (sent == UV_EAGAIN) sent = 0;
    c->worker->requests += c->to == c;
    c->worker->bytes += (uint64_t)n;
    if (sent < 0) idler_finish(c);
    else if (sent < n) idler_write_rest(c, buf->base + sent, (size_t)(n - sent));
}

static idler *idler_new(worker *w) {
    idler *c = calloc(1, sizeof *c);
    if (!c) bench_die("out of memory");
    c->to = c;
    c->worker = w;
    uv_tcp_init(&w->loop, &c->tcp);
    c->tcp.data = c;
    return c;
}

static int idler_read(idler *c) {
    uv_tcp_nodelay(&c->tcp, 1);
    return uv_read_start((uv_stream_t *)&c->tcp, on_idler_room, on_idler_read);
}

static void on_backend(uv_connect_t *connect, int status) {
    idler *backend = connect->data;
    free(connect);
    if (status == UV_ECANCELED) return;
    if (status < 0 || idler_read(backend) < 0 || idler_read(backend->to) < 0) idler_finish(backend);
}

static void start_relay(worker *w, idler *client) {
    const struct sockaddr_in to = serve_address(options.port);
    idler *backend = idler_new(w);
    uv_connect_t *connect = malloc(sizeof *connect);
    if (!connect) bench_die("out of memory");
    backend->to = client;
    client->to = backend;
    connect->data = backend;
    check(uv_tcp_connect(connect, &backend->tcp, (const struct sockaddr *)&to, on_backend),
          "connect");
}

static void start_idler(worker *w, uv_stream_t *listener) {
    idler *c = idler_new(w);
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0) idler_finish(c);
    else if (options.mode == SERVE_RELAY) start_relay(w, c);
    else if (idler_read(c) < 0) idler_finish(c);
}

// ---- connections

static void on_connection(uv_stream_t *listener, int status) {
    worker *w = listener->data;
    if (status < 0) return;
    if (options.mode == SERVE_IDLE || options.mode == SERVE_RELAY) {
        start_idler(w, listener);
        return;
    }
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
    *buf = uv_buf_init(w->in, uv_udp_using_recvmmsg(&w->socket.udp) ? IN_BYTES : SERVE_JOINED);
}

static void send_back(worker *w, const void *at, size_t n, const struct sockaddr *to) {
    const uv_buf_t out = uv_buf_init((char *)(uintptr_t)at, (unsigned)n); // only read
    const int rc = uv_udp_try_send(&w->socket.udp, &out, 1, to);
    if (rc < 0) return; // lost, as datagrams may be; the client sees it
    w->requests++;
    w->bytes += n;
}

static void on_datagram(uv_udp_t *udp, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from,
                        unsigned flags) {
    worker *w = udp->data;
    (void)flags;
    if (n < 0 || !from) return; // nothing, or nothing more
    if (options.mode == SERVE_UDP) {
        send_back(w, buf->base, (size_t)n, from);
    } else if (options.mode == SERVE_UDP_SEND) {
        memcpy(&w->burst->number, buf->base, sizeof w->burst->number);
        burst_number(w->burst->joined, w->burst->number);
        send_back(w, w->burst->joined, BURST_BYTES, from);
    } else if (burst_add(&w->burst->receipt, buf->base, (size_t)n, BURST_DATAGRAM)) {
        send_back(w, &w->burst->receipt, sizeof w->burst->receipt, from);
    }
}

// The datagrams of one recvmmsg, and of the sendmmsg that sends them back: libuv has one callback
// for each, and one more at the end of them.
static struct {
    uv_buf_t parts[SERVE_DATAGRAMS], *buffers[SERVE_DATAGRAMS];
    struct sockaddr_in from[SERVE_DATAGRAMS];
    struct sockaddr *to[SERVE_DATAGRAMS];
    unsigned counts[SERVE_DATAGRAMS], n;
} turned;

static void send_turned(worker *w) {
    const int n = turned.n > 0 ? uv_udp_try_send2(&w->socket.udp, turned.n, turned.buffers,
                                                  turned.counts, turned.to, 0)
                               : 0;
    for (int i = 0; i < n; i++) w->bytes += turned.parts[i].len;
    w->requests += n > 0 ? (uint64_t)n : 0;
    turned.n = 0;
}

static void on_many(uv_udp_t *udp, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from,
                    unsigned flags) {
    worker *w = udp->data;
    if (from && n >= 0) {
        const unsigned i = turned.n++;
        memcpy(&turned.from[i], from, sizeof turned.from[i]);
        turned.parts[i] = uv_buf_init(buf->base, (unsigned)n);
        turned.buffers[i] = &turned.parts[i];
        turned.to[i] = (struct sockaddr *)&turned.from[i];
        turned.counts[i] = 1;
    }
    if (!(flags & UV_UDP_MMSG_CHUNK) || turned.n == SERVE_DATAGRAMS) send_turned(w);
}

// ---- workers

static int descriptor_of(const worker *w) {
    uv_os_fd_t fd = -1;
    check(uv_fileno((const uv_handle_t *)&w->socket, &fd), "fileno");
    return fd;
}

static void listen_at(worker *w, unsigned port) {
    const int one = 1;
    const struct sockaddr_in at = serve_address(port);
    check(uv_tcp_init_ex(&w->loop, &w->socket.tcp, AF_INET), "socket");
    if (setsockopt(descriptor_of(w), SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0)
        bench_die("SO_REUSEPORT: %s", strerror(errno));
    check(uv_tcp_bind(&w->socket.tcp, (const struct sockaddr *)&at, 0), "bind");
    w->socket.tcp.data = w;
    check(uv_listen((uv_stream_t *)&w->socket.tcp, BACKLOG, on_connection), "listen");
}

static void receive(worker *w) {
    const struct sockaddr_in at = serve_address(0);
    const int is_many = options.mode == SERVE_UDP_MANY;
    check(uv_udp_init_ex(&w->loop, &w->socket.udp, is_many ? UV_UDP_RECVMMSG : AF_UNSPEC),
          "socket");
    check(uv_udp_bind(&w->socket.udp, (const struct sockaddr *)&at, 0), "bind");
    serve_set_bursts(descriptor_of(w), options.mode);
    if (options.mode == SERVE_UDP_SEND &&
        burst_set(descriptor_of(w), UDP_SEGMENT, BURST_DATAGRAM) < 0)
        bench_die("UDP_SEGMENT: %s", strerror(errno));
    w->socket.udp.data = w;
    w->burst = serve_burst_new();
    check(uv_udp_recv_start(&w->socket.udp, on_datagram_room, is_many ? on_many : on_datagram),
          "recv_start");
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
    w->in = malloc(IN_BYTES);
    if (!w->in) bench_die("out of memory");
    if (serve_is_udp(options.mode) && w == workers) receive(w);
    if (!serve_is_udp(options.mode))
        listen_at(w, w == workers ? 0 : port_of(descriptor_of(workers)));
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
    signal(SIGPIPE, SIG_IGN);
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
