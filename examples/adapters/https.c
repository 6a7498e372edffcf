// SPDX-License-Identifier: MIT OR 0BSD
// A server of HTTP and HTTPS: a connection is a volt_stream, with TLS or without, and the rest of
// the program does not see the difference. ../06_http.h reads requests and makes answers,
// ../03_server.h accepts clients; ../06_http.c explains the way of a request.
//
//     cc -O2 -I. -pthread examples/adapters/https.c -o https -lssl -lcrypto
//     ./https 8080 8443 cert.pem key.pem
//     curl --cacert cert.pem https://localhost:8443/
//
// openssl.c shows how a certificate is made. With -DHTTPS_MBEDTLS, and the libraries of mbedtls.c,
// it is served by mbedTLS. A client need not know ALPN: HTTP/1.1 is the only protocol.
//
// Expected output:
// port 8080
// tls 8443
#define VOLT_IMPLEMENTATION
#include "volt.h"
#ifdef HTTPS_MBEDTLS
#  include "examples/adapters/volt_mbedtls.h"
#  define tls_init volt_mbedtls_init
#else
#  include "examples/adapters/volt_openssl.h"
#  define tls_init volt_openssl_init
#endif
#include "examples/03_server.h"
#include "examples/06_http.h"

enum { CLIENTS_MAX = 128, REQUEST_CAP = 4096, OUT_BYTES = 2048, LINGER_CAP = 4 << 20 };
enum { REQUEST_SECONDS = 5, GRACE_SECONDS = 5, LINGER_SECONDS = 2 };
static const char page[] = "It works\n";

typedef struct {
    volt_frame frame;
    volt_arm plain, secure, quit;
    volt_token stop;
    volt_group clients;
    volt_timer grace;
    volt_tls_context tls;
    doorway door[2]; // plain, TLS
    int fd;
} server;

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer late;
    volt_time deadline; // for a request
    server *srv;
    volt_stream s;
    volt_tls *tls;    // NULL: plain, or it could not be opened
    http_exchange *x; // NULL: idle
    volt_writer out;
    struct {
        volt_frame frame;
        int64_t n, left; // left: of the bytes that are dropped
    } part;
    int64_t n;
    int fd, is_tls, is_last;
    char buf[OUT_BYTES];
} client;

static void client_left(volt_cx *cx, client *c) {
    if (!c->tls) {
        door_leave(cx, &c->srv->door[c->is_tls], c->fd);
    } else {
        volt_tls_close(cx, c->tls);
        volt_sem_release(&c->srv->door[1].places, 1);
    }
}

static void answer(client *c, int status) {
    const http_request *r = &c->x->req;
    int is_head = http_is(r->method, "HEAD"), is_get = is_head || http_is(r->method, "GET");
    int is_echo = http_is(r->path, "/echo") && http_is(r->method, "POST");
    http_text body = is_echo ? r->body : (http_text){ page, sizeof page - 1 };
    c->is_last = status != HTTP_OK || r->is_last || volt_token_is_cancelled(&c->srv->stop);
    if (status == HTTP_OK && !is_echo && !(is_get && http_is(r->path, "/"))) status = 404;
    if (status != HTTP_OK) body.at = http_reason(status), body.len = strlen(body.at);
    http_answer(c->x, status, "Content-Type: text/plain\r\n", body, is_head, c->is_last);
}

// Head and body leave together, in one record of TLS if they fit into the buffer.
static volt_poll send_answer(volt_cx *cx, client *c) {
    VOLT_BEGIN(cx, c->x);
    volt_writer_init(&c->out, c->s, c->buf, sizeof c->buf);
    VOLT_AWAIT(c->x->n, volt_put_wait(cx, &c->out, c->x->answer[0].iov_base,
                                      c->x->answer[0].iov_len));
    if (c->x->n == 0)
        VOLT_AWAIT(c->x->n, volt_put_wait(cx, &c->out, c->x->answer[1].iov_base,
                                          c->x->answer[1].iov_len));
    if (c->x->n == 0) VOLT_AWAIT(c->x->n, volt_flush(cx, &c->out));
    VOLT_END(c->x->n);
}

// Ends this side. Behind the last answer, drops what comes: a close with bytes unread would reset
// the connection, and the answer may be lost.
static volt_poll part(volt_cx *cx, client *c) {
    VOLT_BEGIN(cx, &c->part);
    VOLT_AWAIT(c->part.n, volt_stream_end(cx, c->s));
    c->part.left = c->is_last && c->part.n == 0 ? LINGER_CAP : 0;
    for (; c->part.left > 0; c->part.left -= c->part.n) {
        VOLT_AWAIT(c->part.n, volt_stream_read(cx, c->s, c->buf, sizeof c->buf));
        if (c->part.n <= 0) break;
    }
    VOLT_END(0);
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    if (c->tls) {
        VOLT_AWAIT(c->n, volt_within(cx, &c->late, VOLT_S(REQUEST_SECONDS),
                                     volt_tls_handshake(cx, c->tls)));
        if (c->n < 0) fprintf(stderr, "%s\n", c->tls->why[0] ? c->tls->why
                                                             : volt_strerror((int)c->n));
    }
    while (c->n >= 0 && !c->is_last) {
        c->deadline = volt_now() + VOLT_S(REQUEST_SECONDS);
        if (!c->x) { // the stop ends the wait for a request, but not a request that has begun
            VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop,
                                             volt_before(cx, &c->late, c->deadline,
                                                         volt_stream_ready(cx, c->s))));
            if (c->n < 0 || !(c->x = http_begin(c->s, REQUEST_CAP))) break;
            if (c->tls) c->x->req.scheme = "https";
        }
        VOLT_AWAIT(c->n, volt_before(cx, &c->late, c->deadline, http_read(cx, c->x)));
        if (c->n == -ETIMEDOUT && c->x->req.is_begun) c->n = 408;
        if (c->n <= 0) break; // the client has closed or is idle
        answer(c, (int)c->n);
        VOLT_AWAIT(c->n, volt_within(cx, &c->late, VOLT_S(REQUEST_SECONDS), send_answer(cx, c)));
        if (c->n == 0) c->x = http_end(c->x);
    }
    free(c->x);
    VOLT_AWAIT(volt_within(cx, &c->late, VOLT_S(LINGER_SECONDS), part(cx, c)));
    client_left(cx, c);
    VOLT_END(0);
}

static void client_came(volt_cx *cx, server *s, int is_tls) {
    client c = { .srv = s, .s = volt_stream_of(s->fd), .fd = s->fd, .is_tls = is_tls };
    int rc = is_tls ? volt_tls_open(&c.tls, &s->tls, s->fd, NULL) : 0;
    if (rc == 0 && is_tls) c.s = volt_tls_stream(c.tls);
    if (rc == 0) rc = VOLT_GROUP_SPAWN(cx, &s->clients, client_run, c);
    if (rc < 0) client_left(cx, &c);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&s->plain, door_accept(cx, &s->door[0])),
            VOLT_ARM(&s->secure, door_accept(cx, &s->door[1])),
            VOLT_ARM(&s->quit, volt_signals_next(cx, s->door[0].signals, NULL))));
        if (!s->plain.fired && !s->secure.fired) break;
        s->fd = (int)(s->plain.fired ? s->plain.value : s->secure.value);
        if (s->fd < 0) break;
        client_came(cx, s, s->secure.fired);
    }
    volt_close(cx, s->door[0].lfd);
    volt_close(cx, s->door[1].lfd);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(volt_within(cx, &s->grace, VOLT_S(GRACE_SECONDS), volt_group_wait(cx, &s->clients)));
    VOLT_AWAIT(volt_group_close(cx, &s->clients));
    VOLT_END(s->fd < 0 ? s->fd : 0);
}

int main(int argc, char **argv) {
    static server s;
    volt_tls_options o = { .is_server = 1, .alpn = "" };
    int rc = argc == 5 ? 0 : -EINVAL, port[2] = { 0, 0 };
    if (rc == 0) {
        o.chain = argv[3], o.key = argv[4];
        rc = tls_init(&s.tls, &o);
        if (rc < 0) fprintf(stderr, "%s\n", s.tls.why);
    }
    for (int i = 0; i < 2 && rc >= 0; i++)
        rc = port[i] = door_open(&s.door[i], "127.0.0.1", (unsigned)atoi(argv[1 + i]), CLIENTS_MAX);
    if (rc >= 0) {
        printf("port %d\ntls %d\n", port[0], port[1]);
        fflush(stdout);
        rc = volt_run(NULL, server_run, &s);
    }
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    volt_tls_context_free(&s.tls);
    return rc < 0;
}
