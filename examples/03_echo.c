// SPDX-License-Identifier: MIT OR 0BSD
// A TCP echo server that stops gracefully. Teaches: a group that owns one task per client; an idle
// timeout around a read (volt_within); a token that ends accepting and reading, but lets an echo
// under way finish (volt_unless); volt_readable on a descriptor of somebody else, a signalfd.
//
//     cc -I. -pthread examples/03_echo.c -o echo && ./echo 7000
//     nc 127.0.0.1 7000
//
// Expected output, after a Ctrl-C:
// port 7000
// stopping
// served 1 clients
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

typedef struct {
    volt_token stop;
    volt_group clients;
    unsigned port;
} server;

typedef struct {
    volt_frame frame;
    volt_timer idle;
    volt_link stop;
    server *srv;
    int fd;
    int64_t n;
    char buf[4096];
} client;

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->n, volt_unless(cx, &c->stop, &c->srv->stop,
                                     volt_within(cx, &c->idle, VOLT_S(5),
                                                 volt_read(cx, c->fd, c->buf, sizeof c->buf))));
        if (c->n <= 0) break; // 0: end of file, -ETIMEDOUT: idle, -ECANCELED: stop
        VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->buf, (size_t)c->n));
        if (c->n < 0) break;
    }
    volt_close(cx, c->fd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_link stop;
    volt_timer grace;
    server *srv;
    volt_addr at;
    int lfd, fd;
    unsigned n_served;
} acceptor;

static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    acceptor *a = (acceptor *)arg;
    VOLT_BEGIN(cx, a);
    a->lfd = volt_listen(NULL, a->srv->port, NULL);
    if (a->lfd < 0) VOLT_RETURN(a->lfd);
    if (volt_local_addr(a->lfd, &a->at) == 0) printf("port %d\n", volt_addr_port(&a->at));
    fflush(stdout);
    for (;;) {
        VOLT_AWAIT(a->fd, volt_unless(cx, &a->stop, &a->srv->stop, volt_accept(cx, a->lfd)));
        if (a->fd < 0) break;
        if (VOLT_GROUP_SPAWN(cx, &a->srv->clients, client_run,
                             (client){ .srv = a->srv, .fd = a->fd }) < 0)
            volt_close(cx, a->fd); // nothing was taken: the descriptor is still ours
        else
            a->n_served++;
    }
    volt_close(cx, a->lfd);
    VOLT_AWAIT(volt_within(cx, &a->grace, VOLT_S(2), volt_group_wait(cx, &a->srv->clients)));
    VOLT_AWAIT(volt_group_close(cx, &a->srv->clients)); // cancels whoever is left
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
    if (m->ended.fired) VOLT_RETURN(m->rc); // it could not listen, or accept failed
    printf("stopping\n");
    volt_token_cancel(&m->srv.stop);
    VOLT_AWAIT(m->rc, volt_join(cx, &m->h));
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    app m = { .srv = { .port = argc > 1 ? (unsigned)atoi(argv[1]) : 7000 } };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); // volt installs no handlers
    m.sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    int rc = m.sigfd < 0 ? -errno : volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    close(m.sigfd);
    return rc < 0;
}
