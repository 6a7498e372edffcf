// SPDX-License-Identifier: MIT OR 0BSD
// A TCP echo server that stops gracefully. Teaches: a group that owns one task per client; time
// limits around a read and a write (volt_within); a token that ends accepting and reading, but lets
// an echo under way finish (volt_with_token); volt_readable on a descriptor that volt does not
// read, a signalfd. 03_server.h bounds the number of clients and outlives an accept that fails.
//
//     cc -I. -pthread examples/03_echo.c -o echo && ./echo 7000
//     nc 127.0.0.1 7000
//
// It listens on loopback, or on the address that comes second: ./echo 7000 ::
//
// Expected output, after a Ctrl-C:
// port 7000
// stopping
// served 1 clients
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "03_server.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CLIENTS_MAX = 128, IDLE_SECONDS = 5, WRITE_SECONDS = 5 };

typedef struct {
    volt_token stop;
    volt_group clients;
    doorway door;
} server;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link stop;
    server *srv;
    int fd;
    int64_t n;
    char buf[4096];
} client;

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop,
                                         volt_within(cx, &c->limit, VOLT_S(IDLE_SECONDS),
                                                     volt_read(cx, c->fd, c->buf, sizeof c->buf))));
        if (c->n <= 0) break; // 0: end of file, -ETIMEDOUT: idle, -ECANCELED: stop
        VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(WRITE_SECONDS),
                                     volt_write_all(cx, c->fd, c->buf, (size_t)c->n)));
        if (c->n < 0) break; // -ETIMEDOUT: the client does not read its echo
    }
    door_leave(cx, &c->srv->door, c->fd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer grace;
    server *srv;
    int fd;
    unsigned n_served;
} acceptor;

static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    acceptor *a = (acceptor *)arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->fd,
                   volt_with_token(cx, &a->stop, &a->srv->stop, door_accept(cx, &a->srv->door)));
        if (a->fd < 0) break;
        if (VOLT_GROUP_SPAWN(cx, &a->srv->clients, client_run,
                             (client){ .srv = a->srv, .fd = a->fd }) < 0)
            // nothing was taken: the caller still owns the descriptor
            door_leave(cx, &a->srv->door, a->fd);
        else
            a->n_served++;
    }
    volt_close(cx, a->srv->door.lfd);
    VOLT_AWAIT(volt_within(cx, &a->grace, VOLT_S(2), volt_group_wait(cx, &a->srv->clients)));
    VOLT_AWAIT(volt_group_close(cx, &a->srv->clients)); // cancels the remaining clients
    printf("served %u clients\n", a->n_served);
    VOLT_END(a->fd == -ECANCELED ? 0 : a->fd);
}

typedef struct {
    volt_frame frame;
    volt_arm ended, stop;
    volt_handle h;
    server srv;
    int sigfd, rc;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = VOLT_SPAWN(cx, &m->h, acceptor_run, (acceptor){ .srv = &m->srv });
    if (m->rc < 0) VOLT_RETURN(m->rc);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->ended, m->rc, volt_join(cx, &m->h)),
                           VOLT_ARM(&m->stop, volt_readable(cx, m->sigfd))));
    if (m->ended.fired) VOLT_RETURN(m->rc); // accept kept failing
    printf("stopping\n");
    volt_token_cancel(&m->srv.stop);
    VOLT_AWAIT(m->rc, volt_join(cx, &m->h));
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    app m = { .sigfd = stop_signals() };
    unsigned port = argc > 1 ? (unsigned)atoi(argv[1]) : 7000;
    int rc = door_open(&m.srv.door, argc > 2 ? argv[2] : "127.0.0.1", port, CLIENTS_MAX);
    if (rc >= 0) printf("port %d\n", rc), fflush(stdout);
    rc = rc < 0 ? rc : m.sigfd < 0 ? m.sigfd : volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
