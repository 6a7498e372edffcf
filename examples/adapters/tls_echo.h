// SPDX-License-Identifier: MIT OR 0BSD
// An echo server and its client over TLS. openssl.c and mbedtls.c beside it choose the library, and
// show how the program is compiled and called.
//
// The client sends its standard input, and writes the echo to its standard output. If it is given a
// file for the session, it resumes the session in it, and then saves its own there.
//
// The server sends back what a client sends, until the client ends its side. A client that is
// silent for IDLE_SECONDS, or does not read its echo for WRITE_SECONDS, is cut. SIGTERM or SIGINT
// closes the listener and ends each connection behind the echo that is under way.
#ifndef EXAMPLE_TLS_ECHO_H
#define EXAMPLE_TLS_ECHO_H

#include "examples/03_server.h"
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1000, CHUNK_BYTES = 4096, SESSION_BYTES = 16384 };
enum { HANDSHAKE_SECONDS = 10, IDLE_SECONDS = 60, WRITE_SECONDS = 10 };
enum { LINGER_SECONDS = 2, GRACE_SECONDS = 5 };

// ---- the server

typedef struct {
    volt_frame frame;
    volt_arm came, signalled;
    volt_timer grace;
    volt_tls_context tls;
    volt_group connections;
    volt_token stop;
    doorway door;
    int client;
} server;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link link;
    server *srv;
    volt_tls *tls;
    struct {
        volt_frame frame;
        int64_t n;
    } part;
    size_t n, at;
    int64_t rc;
    char buf[CHUNK_BYTES];
} connection;

// Ends this side, then drops what comes until the client has ended its own: a close with unread
// input would reset the connection, and destroy the end on its way.
static volt_poll part(volt_cx *cx, connection *c) {
    VOLT_BEGIN(cx, &c->part);
    VOLT_AWAIT(c->part.n, volt_stream_end(cx, volt_tls_stream(c->tls)));
    while (c->part.n >= 0) {
        VOLT_AWAIT(c->part.n, volt_stream_read(cx, volt_tls_stream(c->tls), c->buf, CHUNK_BYTES));
        if (c->part.n == 0) break;
    }
    VOLT_END(c->part.n);
}

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = (connection *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_tls_handshake(cx, c->tls)));
    while (c->rc >= 0) { // the stop ends only the wait for more
        VOLT_AWAIT(c->rc, volt_with_token(cx, &c->link, &c->srv->stop,
            volt_within(cx, &c->limit, VOLT_S(IDLE_SECONDS),
                        volt_stream_read(cx, volt_tls_stream(c->tls), c->buf, CHUNK_BYTES))));
        if (c->rc <= 0) break;
        c->n = (size_t)c->rc;
        for (c->at = 0; c->rc >= 0 && c->at < c->n; c->at += (size_t)c->rc)
            VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(WRITE_SECONDS),
                                          volt_stream_write(cx, volt_tls_stream(c->tls),
                                                            c->buf + c->at, c->n - c->at)));
    }
    if (c->rc < 0 && c->rc != -ECANCELED)
        fprintf(stderr, "%s\n", c->tls->why[0] ? c->tls->why : volt_strerror((int)c->rc));
    if (c->rc == 0 || c->rc == -ECANCELED)
        VOLT_AWAIT(volt_within(cx, &c->limit, VOLT_S(LINGER_SECONDS), part(cx, c)));
    volt_tls_close(cx, c->tls);
    volt_sem_release(&c->srv->door.places, 1);
    VOLT_END(0);
}

static void client_came(volt_cx *cx, server *s) {
    connection c = { .srv = s };
    int rc = volt_tls_open(&c.tls, &s->tls, s->client, NULL);
    if (rc < 0) {
        door_leave(cx, &s->door, s->client);
    } else if (VOLT_GROUP_SPAWN(cx, &s->connections, connection_run, c) < 0) {
        volt_tls_close(cx, c.tls);
        volt_sem_release(&s->door.places, 1);
    }
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&s->came, s->client, door_accept(cx, &s->door)),
            VOLT_ARM(&s->signalled, volt_signals_next(cx, s->door.signals, NULL))));
        if (!s->came.fired || s->client < 0) break;
        client_came(cx, s);
    }
    volt_close(cx, s->door.lfd);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(volt_within(cx, &s->grace, VOLT_S(GRACE_SECONDS),
                           volt_group_wait(cx, &s->connections)));
    VOLT_AWAIT(volt_group_close(cx, &s->connections)); // cuts those that are left
    volt_close(cx, s->door.signals);
    VOLT_END(s->came.fired ? s->client : 0);
}

static int serve(server *s, const char *port) {
    int rc = door_open(&s->door, "127.0.0.1", (unsigned)atoi(port), CLIENTS_MAX);
    if (rc < 0) return rc;
    printf("port %d\n", rc);
    fflush(stdout);
    return volt_run(NULL, server_run, s);
}

// ---- the client

typedef struct {
    volt_frame frame;
    volt_copier copy;
    int64_t rc;
} direction;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm sent, received;
    direction out, in;
    volt_tls_context tls;
    const char *name;
    volt_addr to;
    volt_tls *t;
    int64_t rc;
    int fd;
    size_t n_session;
    char session[SESSION_BYTES];
} client;

// Ends the own side behind the input, and waits until the server has ended the other one.
static volt_poll send_input(volt_cx *cx, client *c) {
    direction *d = &c->out;
    VOLT_BEGIN(cx, d);
    volt_copier_init(&d->copy, volt_stream_of(STDIN_FILENO), volt_tls_stream(c->t), NULL, 0);
    VOLT_AWAIT(d->rc, volt_copy(cx, &d->copy, VOLT_ALL));
    volt_copier_close(cx, &d->copy);
    if (d->rc >= 0) VOLT_AWAIT(d->rc, volt_stream_end(cx, volt_tls_stream(c->t)));
    if (d->rc >= 0) VOLT_AWAIT(d->rc, volt_sleep_forever(cx));
    VOLT_END(d->rc);
}
static volt_poll receive(volt_cx *cx, client *c) {
    direction *d = &c->in;
    VOLT_BEGIN(cx, d);
    volt_copier_init(&d->copy, volt_tls_stream(c->t), volt_stream_of(STDOUT_FILENO), NULL, 0);
    VOLT_AWAIT(d->rc, volt_copy(cx, &d->copy, VOLT_ALL));
    volt_copier_close(cx, &d->copy);
    VOLT_END(d->rc);
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_connect(cx, &c->to)));
    if (c->fd < 0) VOLT_RETURN(c->fd);
    c->rc = volt_tls_open(&c->t, &c->tls, c->fd, c->name);
    if (c->rc < 0) {
        volt_close(cx, c->fd);
        VOLT_RETURN(c->rc);
    }
    if (c->n_session > 0 && volt_tls_resume(c->t, c->session, c->n_session) < 0)
        fprintf(stderr, "the session is not for this server\n");
    VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_tls_handshake(cx, c->t)));
    if (c->rc == 0) {
        if (c->n_session > 0) fprintf(stderr, "resumed: %d\n", c->t->is_resumed);
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->sent, send_input(cx, c)),
                               VOLT_ARM(&c->received, receive(cx, c))));
        c->rc = c->received.fired ? c->received.value : c->sent.value;
    }
    if (c->t->why[0]) fprintf(stderr, "%s\n", c->t->why);
    int64_t n = volt_tls_save(c->t, c->session, sizeof c->session);
    c->n_session = n > 0 ? (size_t)n : 0;
    volt_tls_close(cx, c->t);
    VOLT_END(c->rc);
}

static int talk(client *c, const char *to, const char *name, const char *file_or_null) {
    FILE *f = file_or_null ? fopen(file_or_null, "r") : NULL;
    c->n_session = f ? fread(c->session, 1, sizeof c->session, f) : 0;
    if (f) fclose(f);
    c->name = name;
    int rc = volt_addr_parse(&c->to, to);
    if (rc == 0) rc = volt_run(NULL, client_run, c);
    umask(077); // a session is as secret as a key
    f = file_or_null && c->n_session > 0 ? fopen(file_or_null, "w") : NULL;
    if (f) fwrite(c->session, 1, c->n_session, f), fclose(f);
    return rc;
}

// ---- the library is given by its init

static int tls_echo(int argc, char **argv,
                    int (*init)(volt_tls_context *x, const volt_tls_options *o)) {
    static server s;
    static client c;
    int is_server = argc == 6 && strcmp(argv[1], "serve") == 0;
    int is_client = (argc == 6 || argc == 7) && strcmp(argv[1], "client") == 0;
    volt_tls_context *x = is_server ? &s.tls : &c.tls;
    if (is_server == is_client) {
        fprintf(stderr, "usage: %s serve PORT CHAIN KEY PROTOCOLS\n"
                        "       %s client ADDR NAME AUTHORITIES PROTOCOLS [SESSION]\n",
                argv[0], argv[0]);
        return 2;
    }
    volt_tls_options o = { .is_server = is_server, .alpn = argv[5] };
    if (is_server) o.chain = argv[3], o.key = argv[4];
    else o.authorities = argv[4];
    int rc = init(x, &o);
    if (rc < 0) fprintf(stderr, "%s\n", x->why);
    else rc = is_server ? serve(&s, argv[2]) : talk(&c, argv[2], argv[3], argv[6]);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    volt_tls_context_free(x);
    return rc < 0;
}
#endif
