// SPDX-License-Identifier: MIT OR 0BSD
// The TLS echo server by volt.h and examples/adapters/volt_openssl.h: see tls_serve.h.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_openssl.h"
#include "tls_serve.h"

typedef struct server {
    volt_frame frame;
    volt_group connections;
    volt_arm came, signalled;
    volt_tls_context tls;
    int fd, signals, rc;
    uint64_t requests, bytes;
} server;
static server the_server;

typedef struct connection {
    volt_frame frame;
    volt_tls *t;
    char *buf;
    size_t n, at;
    int64_t rc;
} connection;

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = arg;
    VOLT_BEGIN(cx, c);
    c->buf = malloc(TLS_CHUNK);
    VOLT_AWAIT(c->rc, volt_tls_handshake(cx, c->t));
    while (c->rc >= 0 && c->buf) {
        VOLT_AWAIT(c->rc, volt_stream_read(cx, volt_tls_stream(c->t), c->buf, TLS_CHUNK));
        if (c->rc <= 0) break;
        c->n = (size_t)c->rc;
        for (c->at = 0; c->rc >= 0 && c->at < c->n; c->at += (size_t)c->rc)
            VOLT_AWAIT(c->rc, volt_stream_write(cx, volt_tls_stream(c->t), c->buf + c->at,
                                                c->n - c->at));
        the_server.requests++; // there is one worker
        the_server.bytes += c->n;
    }
    if (c->rc == 0) VOLT_AWAIT(volt_stream_end(cx, volt_tls_stream(c->t)));
    volt_tls_close(cx, c->t);
    free(c->buf);
    VOLT_END(0);
}

static void client_came(volt_cx *cx, server *s, int fd) {
    connection c = { .rc = 0 };
    if (volt_tls_open(&c.t, &s->tls, fd, NULL) < 0) volt_close(cx, fd);
    else if (VOLT_GROUP_SPAWN(cx, &s->connections, connection_run, c) < 0) volt_tls_close(cx, c.t);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->came, volt_accept(cx, s->fd)),
                               VOLT_ARM(&s->signalled, volt_readable(cx, s->signals))));
        if (!s->came.fired || s->came.value < 0) break;
        client_came(cx, s, (int)s->came.value);
    }
    VOLT_AWAIT(volt_group_close(cx, &s->connections));
    volt_close(cx, s->fd);
    volt_close(cx, s->signals);
    VOLT_END(0);
}

int main(int argc, char **argv) {
    server *s = &the_server;
    serve_options options = tls_parse(argc, argv);
    const volt_config config = { .workers = options.workers };
    const volt_tls_options tls = { .is_server = 1, .alpn = "", .chain = argv[1], .key = argv[2] };
    if (volt_openssl_init(&s->tls, &tls) < 0) bench_die("%s", s->tls.why);
    s->signals = serve_signals();
    s->fd = volt_listen("127.0.0.1", 0, NULL);
    if (s->fd < 0) bench_die("listen: %s", volt_strerror(s->fd));
    serve_begin(&options, s->fd);
    const int rc = volt_run(&config, server_run, s);
    if (rc < 0) bench_die("%s", volt_strerror(rc));
    serve_report(&options, s->requests, s->bytes);
    volt_tls_context_free(&s->tls);
    return 0;
}
