// SPDX-License-Identifier: MIT OR 0BSD
// volt_nghttp2_http.h: an HTTP/2 server, by prior knowledge (h2c), or over TLS by volt_openssl.h.
//
//     cc -O2 -I. -pthread examples/adapters/nghttp2.c -lnghttp2 -lssl -lcrypto -o h2
//     ./h2 127.0.0.1:8080 &           or: ./h2 127.0.0.1:8443 chain.pem key.pem
//     curl --http2-prior-knowledge http://127.0.0.1:8080/
//
//   GET /          a text
//   GET /bytes/N   N bytes
//   POST /echo     the body of the request, while it comes
//
// SIGTERM and SIGINT: no more connections and requests; those in progress have 10 s.
//
// Expected output:
// port 8080
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_nghttp2_http.h"
#include "examples/adapters/volt_openssl.h"
#include "examples/programs/server.h"

enum { LIMIT_SECONDS = 30, GRACE_SECONDS = 10, LINGER_SECONDS = 5, CLIENTS_MAX = 1000 };
static volt_tls_context tls; // .impl NULL: without TLS

// ---- requests

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_copier copy;
    long long left;
    int64_t n;
} request;

static volt_poll request_run(volt_cx *cx, volt_nghttp2_stream *r) {
    static const char *const text[] = { "content-type", "text/plain", NULL };
    static char chunk[16384];
    request *s = (request *)r->state;
    const char *const path = volt_nghttp2_field(r, ":path");
    const char *const method = volt_nghttp2_field(r, ":method");
    VOLT_BEGIN(cx, s);
    if (path && strcmp(path, "/echo") == 0) { // CONNECT has no path
        s->n = volt_nghttp2_respond(r, 200, text, 0);
        volt_copier_init(&s->copy, volt_nghttp2_body(r), volt_nghttp2_body(r), NULL, 0);
        while (s->n == 0 && (uint64_t)s->left == volt_copied(&s->copy)) {
            s->left += (long long)sizeof chunk; // less comes only at the end
            VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(LIMIT_SECONDS),
                                         volt_copy(cx, &s->copy, sizeof chunk)));
        }
        volt_copier_close(cx, &s->copy);
        VOLT_RETURN(s->n);
    }
    if (strcmp(method, "GET") != 0) VOLT_RETURN(volt_nghttp2_respond(r, 405, NULL, 1));
    s->left = strcmp(path, "/") == 0 ? 6 : strncmp(path, "/bytes/", 7) == 0 ? atoll(path + 7) : -1;
    if (s->left < 0) VOLT_RETURN(volt_nghttp2_respond(r, 404, NULL, 1));
    s->n = volt_nghttp2_respond(r, 200, text, 0);
    while (s->n >= 0 && s->left > 0) {
        VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(LIMIT_SECONDS), volt_stream_write(
            cx, volt_nghttp2_body(r), path[1] ? chunk : "hello\n",
            s->left < (long long)sizeof chunk ? (size_t)s->left : sizeof chunk)));
        if (s->n > 0) s->left -= s->n;
    }
    VOLT_END(s->n);
}

// ---- connections

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_hook hook;
    server *of;
    volt_nghttp2_conn *http;
    volt_tls *t;
    volt_stream peer;
    struct {
        volt_frame frame;
        int64_t n;
        char buf[1024];
    } part;
    int fd, rc;
} client;

// Ends this side, then drops what comes until the client has ended its own: a close with unread
// input would reset the connection, and destroy answers on their way.
static volt_poll part(volt_cx *cx, client *c) {
    VOLT_BEGIN(cx, &c->part);
    VOLT_AWAIT(c->part.n, volt_stream_end(cx, c->peer));
    while (c->part.n >= 0) {
        VOLT_AWAIT(c->part.n, volt_stream_read(cx, c->peer, c->part.buf, sizeof c->part.buf));
        if (c->part.n == 0) break;
    }
    VOLT_END(c->part.n);
}

static void client_stop(void *session) { volt_nghttp2_stop((volt_nghttp2 *)session); }
static volt_poll client_run(volt_cx *cx, void *arg) {
    static const volt_nghttp2_options options = { .handler = request_run,
                                                  .state_size = sizeof(request),
                                                  .limit = VOLT_S(LIMIT_SECONDS) };
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    c->peer = volt_stream_of(c->fd);
    c->rc = volt_nghttp2_open(&c->http, &options);
    if (c->rc == 0 && tls.impl) c->rc = volt_tls_open(&c->t, &tls, c->fd, NULL);
    if (c->t) {
        c->peer = volt_tls_stream(c->t);
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(10), volt_tls_handshake(cx, c->t)));
    }
    if (c->rc == 0) {
        if (volt_token_hook(&c->of->stop, &c->hook, client_stop, &c->http->h) < 0)
            volt_nghttp2_stop(&c->http->h);
        VOLT_AWAIT(c->rc, volt_nghttp2_serve(cx, c->http, c->peer));
        volt_token_unhook(&c->hook);
    }
    if (c->rc < 0) fprintf(stderr, "a connection: %s\n", volt_strerror(c->rc));
    VOLT_AWAIT(volt_within(cx, &c->limit, VOLT_S(LINGER_SECONDS), part(cx, c)));
    volt_nghttp2_free(c->http);
    if (c->t) volt_tls_close(cx, c->t);
    else volt_close(cx, c->fd);
    VOLT_END(0);
}
static int client_came(volt_cx *cx, server *s, int fd) {
    return VOLT_GROUP_SPAWN(cx, &s->clients, client_run, (client){ .of = s, .fd = fd });
}

int main(int argc, char **argv) {
    static server s = { .n_max = CLIENTS_MAX, .grace = VOLT_S(GRACE_SECONDS),
                        .client_came = client_came };
    const volt_tls_options options = { .is_server = 1, .chain = argc > 2 ? argv[2] : NULL,
                                       .key = argc > 3 ? argv[3] : NULL, .alpn = "h2" };
    volt_addr at;
    int rc = volt_addr_parse(&at, argc > 1 ? argv[1] : "127.0.0.1:0");
    if (rc == 0 && argc > 2) rc = volt_openssl_init(&tls, &options);
    if (rc == 0) rc = server_open(&s, &at, NULL);
    if (rc == 0) rc = volt_run(NULL, server_run, &s);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    volt_tls_context_free(&tls);
    return rc < 0;
}
