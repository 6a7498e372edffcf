// SPDX-License-Identifier: MIT OR 0BSD
// The limit for tls_server.c: the same service by OpenSSL on edge-triggered epoll, see tls_serve.h.
// The context has the options that volt_openssl.h sets.
#define _GNU_SOURCE 1
#include "tls_serve.h"
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

enum { EVENTS = 256 };

typedef struct connection {
    SSL *ssl;
    int fd, is_open;
    int n; // bytes in `buf` that are not sent yet
    struct connection *next, **prev;
    char buf[TLS_CHUNK];
} connection;

static SSL_CTX *ctx;
static connection *connections;
static uint64_t requests, bytes;

static SSL_CTX *context_new(const char *chain, const char *key) {
    SSL_CTX *x = SSL_CTX_new(TLS_server_method());
    if (!x || !SSL_CTX_use_certificate_chain_file(x, chain) ||
        !SSL_CTX_use_PrivateKey_file(x, key, SSL_FILETYPE_PEM))
        bench_die("the certificate or key cannot be read");
    SSL_CTX_set_mode(x, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(x, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_read_ahead(x, 1);
    SSL_CTX_set_min_proto_version(x, TLS1_2_VERSION);
    return x;
}

static void watch(int epoll, int fd, uint32_t events, void *source) {
    struct epoll_event e = { .events = events, .data = { .ptr = source } };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0) bench_die("epoll_ctl: %s", strerror(errno));
}

static void accept_all(int epoll, int listener) {
    const int one = 1;
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connection *c = calloc(1, sizeof *c);
        if (!c || !(c->ssl = SSL_new(ctx)) || !SSL_set_fd(c->ssl, fd)) bench_die("out of memory");
        SSL_set_accept_state(c->ssl);
        c->fd = fd;
        c->next = connections;
        c->prev = &connections;
        if (c->next) c->next->prev = &c->next;
        connections = c;
        watch(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c);
    }
}

static void finish(connection *c) {
    *c->prev = c->next;
    if (c->next) c->next->prev = c->prev;
    SSL_free(c->ssl);
    close(c->fd);
    free(c);
}

// Serves until the library needs the socket.  returns: 0 | -1 close it
static int talk(connection *c) {
    for (;;) {
        ERR_clear_error();
        int rc = 1;
        if (!c->is_open) rc = SSL_do_handshake(c->ssl);
        else if (c->n > 0) rc = SSL_write(c->ssl, c->buf, c->n);
        else rc = SSL_read(c->ssl, c->buf, sizeof c->buf);
        if (rc <= 0) {
            const int error = SSL_get_error(c->ssl, rc);
            if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
            if (error == SSL_ERROR_ZERO_RETURN) SSL_shutdown(c->ssl);
            return -1;
        }
        if (!c->is_open) {
            c->is_open = 1;
        } else if (c->n > 0) {
            c->n = 0; // without partial writes all of it is sent
        } else {
            c->n = rc;
            requests++;
            bytes += (uint64_t)rc;
        }
    }
}

int main(int argc, char **argv) {
    serve_options options = tls_parse(argc, argv);
    struct epoll_event events[EVENTS];
    ctx = context_new(argv[1], argv[2]);
    signal(SIGPIPE, SIG_IGN); // OpenSSL writes by write(2)
    const int signals = serve_signals(), listener = serve_socket(SERVE_ECHO);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) bench_die("epoll_create1: %s", strerror(errno));
    watch(epoll, signals, EPOLLIN, NULL);
    watch(epoll, listener, EPOLLIN | EPOLLET, &connections);
    serve_begin(&options, listener);
    for (int is_over = 0; !is_over;) {
        const int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            void *source = events[i].data.ptr;
            if (!source) is_over = 1;
            else if (source == (void *)&connections) accept_all(epoll, listener);
            else if (talk(source) < 0) finish(source);
        }
    }
    serve_report(&options, requests, bytes);
    while (connections) finish(connections);
    SSL_CTX_free(ctx);
    return 0;
}
