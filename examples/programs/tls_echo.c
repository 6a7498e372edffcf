// SPDX-License-Identifier: MIT OR 0BSD
// An echo server and its client over TLS, by adapters/volt_openssl.h.
//
//     openssl req -x509 -newkey ed25519 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost
//             -addext subjectAltName=DNS:localhost            (all on one line)
//     cc -O2 -I. -pthread examples/programs/tls_echo.c -o tls_echo -lssl -lcrypto
//     ./tls_echo serve 127.0.0.1:7006 cert.pem key.pem
//     ./tls_echo client 127.0.0.1:7006 localhost cert.pem
//
// The client sends its standard input, and writes the echo to its standard output. A further
// argument is the list of protocols (ALPN) in place of "echo".
//
// The server sends back what a client sends, until the client ends its side. A client that is
// silent for IDLE_SECONDS, or does not read its echo for WRITE_SECONDS, is cut. SIGTERM or SIGINT
// closes the listener and ends each connection behind the echo that is under way.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_openssl.h"
#include <signal.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1000, CHUNK_BYTES = 4096 };
enum { HANDSHAKE_SECONDS = 10, IDLE_SECONDS = 60, WRITE_SECONDS = 10, LINGER_SECONDS = 2 };

// ---- a client of the server

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link link;
    size_t n, at;
    int64_t rc;
    char buf[CHUNK_BYTES];
} echoing;

typedef struct {
    volt_frame frame;
    int64_t rc;
} parting;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token *stop;
    volt_tls *tls;
    volt_addr peer;
    int64_t rc;
    echoing echo;
    parting part;
} connection;

// Sends back what comes. The token ends only the wait for more.
//   returns: 0 if the client has ended its side | -ECANCELED at a stop | -ETIMEDOUT | -errno
static volt_poll echo(volt_cx *cx, connection *c) {
    echoing *e = &c->echo;
    VOLT_BEGIN(cx, e);
    for (;;) {
        VOLT_AWAIT(e->rc, volt_with_token(cx, &e->link, c->stop,
            volt_within(cx, &e->limit, VOLT_S(IDLE_SECONDS),
                        volt_stream_read(cx, volt_tls_stream(c->tls), e->buf, sizeof e->buf))));
        if (e->rc <= 0) VOLT_RETURN(e->rc);
        e->n = (size_t)e->rc;
        for (e->at = 0; e->at < e->n; e->at += (size_t)e->rc) {
            VOLT_AWAIT(e->rc, volt_within(cx, &e->limit, VOLT_S(WRITE_SECONDS),
                                          volt_stream_write(cx, volt_tls_stream(c->tls),
                                                            e->buf + e->at, e->n - e->at)));
            if (e->rc < 0) VOLT_RETURN(e->rc);
        }
    }
    VOLT_END(0);
}

// Ends this side, then drops what comes until the client has ended its own: a close with unread
// input would reset the connection, and destroy the end on its way.
static volt_poll part(volt_cx *cx, connection *c) {
    parting *p = &c->part;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_stream_end(cx, volt_tls_stream(c->tls)));
    if (p->rc < 0) VOLT_RETURN(p->rc);
    do {
        VOLT_AWAIT(p->rc, volt_stream_read(cx, volt_tls_stream(c->tls), c->echo.buf, CHUNK_BYTES));
    } while (p->rc > 0);
    VOLT_END(p->rc);
}

static void note_error(const connection *c) {
    char peer[VOLT_ADDR_TEXT];
    volt_addr_format(&c->peer, peer, sizeof peer);
    fprintf(stderr, "%s: %s\n", peer,
            c->tls->why[0] ? c->tls->why : volt_strerror((int)c->rc));
}

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = (connection *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_tls_handshake(cx, c->tls)));
    if (c->rc == 0) VOLT_AWAIT(c->rc, echo(cx, c));
    if (c->rc < 0 && c->rc != -ECANCELED) note_error(c);
    if (c->rc == 0 || c->rc == -ECANCELED)
        VOLT_AWAIT(volt_within(cx, &c->limit, VOLT_S(LINGER_SECONDS), part(cx, c)));
    volt_tls_close(cx, c->tls);
    VOLT_END(0);
}

// ---- the server

typedef struct {
    volt_frame frame;
    volt_arm came, left, signalled;
    volt_tls_context tls;
    volt_group connections;
    volt_token stop;
    volt_addr peer;
    int listener, signals, signal, client, n_now;
} server;

static void client_came(volt_cx *cx, server *s) {
    connection c = { .stop = &s->stop, .peer = s->peer };
    int rc = volt_tls_open(&c.tls, &s->tls, s->client, NULL);
    if (rc < 0) {
        volt_close(cx, s->client);
    } else {
        rc = VOLT_GROUP_SPAWN(cx, &s->connections, connection_run, c);
        if (rc < 0) volt_tls_close(cx, c.tls);
        else s->n_now++;
    }
    if (rc < 0) fprintf(stderr, "a client was refused: %s\n", volt_strerror(rc));
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->connections);
    while (s->listener >= 0 || s->n_now > 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&s->came, s->client, s->listener >= 0 && s->n_now < CLIENTS_MAX
                                              ? volt_accept_from(cx, s->listener, &s->peer)
                                              : volt_sleep_forever(cx)),
            VOLT_ARM(&s->left, s->n_now > 0 ? volt_group_next(cx, &s->connections, NULL)
                                            : volt_sleep_forever(cx)),
            VOLT_ARM(&s->signalled, s->signal, volt_signals_next(cx, s->signals, NULL))));
        if (s->left.fired) s->n_now--;
        else if (s->came.fired && s->client >= 0) client_came(cx, s);
        else if (s->listener >= 0) { // a signal, or no more clients can be accepted
            volt_close(cx, s->listener);
            s->listener = -1;
            volt_token_cancel(&s->stop);
        } else break; // a second signal
    }
    VOLT_AWAIT(volt_group_close(cx, &s->connections)); // cuts those that are left
    volt_close(cx, s->signals);
    VOLT_END(s->client < 0 ? s->client : 0);
}

static int serve(const volt_addr *at, const volt_tls_options *o) {
    static const int signals[] = { SIGINT, SIGTERM };
    server s = { .listener = -1 };
    volt_addr here = *at;
    int rc = volt_tls_context_init(&s.tls, 1, o);
    if (rc >= 0) rc = s.signals = volt_signals_open(signals, 2);
    if (rc >= 0) rc = s.listener = volt_listen_addr(at, NULL);
    if (rc >= 0) rc = volt_local_addr(s.listener, &here);
    if (rc >= 0) {
        printf("port %d\n", volt_addr_port(&here));
        fflush(stdout);
        rc = volt_run(NULL, server_run, &s);
    }
    volt_tls_context_free(&s.tls);
    return rc;
}

// ---- the client: one task sends, and one receives

typedef struct {
    volt_frame frame;
    volt_copier copy;
    volt_tls *tls;
    int64_t rc;
} sender;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_copier copy;
    volt_group senders;
    volt_tls_context tls;
    const char *name;
    volt_addr to;
    volt_tls *t;
    int64_t rc;
    int fd;
} client;

static volt_poll sender_run(volt_cx *cx, void *arg) {
    sender *s = (sender *)arg;
    VOLT_BEGIN(cx, s);
    volt_copier_init(&s->copy, volt_stream_of(STDIN_FILENO), volt_tls_stream(s->tls), NULL, 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->copy, VOLT_ALL));
    volt_copier_close(cx, &s->copy);
    if (s->rc >= 0) VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_tls_stream(s->tls)));
    VOLT_END(s->rc);
}

// The server decides about the end: what it sends is written until it ends its side.
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd,
               volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS), volt_connect(cx, &c->to)));
    if (c->fd < 0) VOLT_RETURN(c->fd);
    c->rc = volt_tls_open(&c->t, &c->tls, c->fd, c->name);
    if (c->rc < 0) {
        volt_close(cx, c->fd);
        VOLT_RETURN(c->rc);
    }
    VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_tls_handshake(cx, c->t)));
    if (c->rc == 0)
        c->rc = VOLT_GROUP_SPAWN(cx, &c->senders, sender_run, (sender){ .tls = c->t });
    if (c->rc == 0) {
        volt_copier_init(&c->copy, volt_tls_stream(c->t), volt_stream_of(STDOUT_FILENO), NULL, 0);
        VOLT_AWAIT(c->rc, volt_copy(cx, &c->copy, VOLT_ALL));
        volt_copier_close(cx, &c->copy);
        VOLT_AWAIT(volt_group_close(cx, &c->senders)); // the input may not have ended
    }
    if (c->t->why[0]) fprintf(stderr, "%s\n", c->t->why);
    volt_tls_close(cx, c->t);
    VOLT_END(c->rc);
}

static int talk(const volt_addr *to, const char *name, const volt_tls_options *o) {
    client c = { .name = name, .to = *to };
    int rc = volt_tls_context_init(&c.tls, 0, o);
    if (rc >= 0) rc = volt_run(NULL, client_run, &c);
    volt_tls_context_free(&c.tls);
    return rc;
}

int main(int argc, char **argv) {
    int is_server = argc >= 2 && strcmp(argv[1], "serve") == 0;
    volt_tls_options o = { .alpn = argc == 6 ? argv[5] : "echo" };
    volt_addr at;
    if (argc < 5 || argc > 6 || (!is_server && strcmp(argv[1], "client") != 0) ||
        volt_addr_parse(&at, argv[2]) < 0) {
        fprintf(stderr, "usage: %s serve ADDR CHAIN KEY [PROTOCOLS]\n"
                        "       %s client ADDR NAME AUTHORITIES [PROTOCOLS]\n", argv[0], argv[0]);
        return 2;
    }
    if (is_server) o.chain = argv[3], o.key = argv[4];
    else o.authorities = argv[4];
    int rc = is_server ? serve(&at, &o) : talk(&at, argv[3], &o);
    ERR_print_errors_fp(stderr); // of files that cannot be read
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
