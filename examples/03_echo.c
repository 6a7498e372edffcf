// SPDX-License-Identifier: MIT OR 0BSD
// A TCP echo server that stops gracefully. Teaches: a group that owns one task per client; time
// limits around a read and a write (volt_within); a client that holds no buffer while it is silent
// (volt_read_ready, volt_try_read); a signal (volt_signals_next), and a token that ends the waits
// for input, but lets an echo under way finish (volt_with_token). 03_server.h bounds the number of
// clients and outlives an accept that fails; 03_linger.h ends a connection without a loss.
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
#include "03_linger.h"
#include "03_server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 128, IDLE_SECONDS = 5, WRITE_SECONDS = 5 };

typedef struct {
    volt_frame frame;
    volt_arm came, quit;
    volt_timer grace;
    volt_token stop;
    volt_group clients;
    doorway door;
    int fd;
    unsigned n_served;
} server;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link stop;
    lingering last;
    server *srv;
    int fd;
    int64_t n;
    char *rest; // bytes that the client has not taken at once, or NULL
    size_t n_rest;
} client;

// Sends back the bytes that are there. They lie on the stack of this poll, which all clients of a
// worker share; only a rest is kept.
//   gives : the number of bytes | 0 at the end of the stream | -EAGAIN, or another -errno
static int64_t echo(volt_cx *cx, client *c) {
    char buf[16384];
    int64_t n = volt_try_read(cx, c->fd, buf, sizeof buf);
    int64_t n_sent = n > 0 ? volt_try_write(cx, c->fd, buf, (size_t)n) : n;
    if (n <= 0 || (n_sent < 0 && n_sent != -EAGAIN)) return n_sent;
    c->n_rest = (size_t)(n_sent < 0 ? n : n - n_sent);
    if (c->n_rest == 0) return n;
    c->rest = (char *)malloc(c->n_rest);
    if (c->rest) memcpy(c->rest, buf + n - c->n_rest, c->n_rest);
    return c->rest ? n : -ENOMEM;
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    do {
        VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop,
                                         volt_within(cx, &c->limit, VOLT_S(IDLE_SECONDS),
                                                     volt_read_ready(cx, c->fd))));
        if (c->n < 0) break; // -ETIMEDOUT: idle, -ECANCELED: stop
        c->n = echo(cx, c);
        if (!c->rest) continue;
        VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(WRITE_SECONDS),
                                     volt_write_all(cx, c->fd, c->rest, c->n_rest)));
        free(c->rest); // -ETIMEDOUT: the client does not read its echo
        c->rest = NULL;
    } while (c->n > 0 || c->n == -EAGAIN);
    if (c->n == -ECANCELED) // a stop
        VOLT_AWAIT(volt_within(cx, &c->limit, VOLT_MS(LINGER_MS),
                               linger_run(cx, &c->last, c->fd)));
    door_leave(cx, &c->srv->door, c->fd);
    VOLT_END(0);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->came, s->fd, door_accept(cx, &s->door)),
                               VOLT_ARM(&s->quit,
                                        volt_signals_next(cx, s->door.signals, NULL))));
        if (!s->came.fired || s->fd < 0) break; // -errno: accept kept failing
        if (VOLT_GROUP_SPAWN(cx, &s->clients, client_run, (client){ .srv = s, .fd = s->fd }) < 0)
            door_leave(cx, &s->door, s->fd); // nothing was taken: this task owns it
        else
            s->n_served++;
    }
    printf("stopping\n");
    volt_close(cx, s->door.lfd);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(volt_within(cx, &s->grace, VOLT_S(2), volt_group_wait(cx, &s->clients)));
    VOLT_AWAIT(volt_group_close(cx, &s->clients)); // cancels the remaining clients
    printf("served %u clients\n", s->n_served);
    VOLT_END(s->came.fired ? s->fd : 0);
}

int main(int argc, char **argv) {
    static server s;
    unsigned port = argc > 1 ? (unsigned)atoi(argv[1]) : 7000;
    int rc = door_open(&s.door, argc > 2 ? argv[2] : "127.0.0.1", port, CLIENTS_MAX);
    if (rc >= 0) printf("port %d\n", rc), fflush(stdout), rc = volt_run(NULL, server_run, &s);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
