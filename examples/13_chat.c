// SPDX-License-Identifier: MIT OR 0BSD
// A chat room over TCP: what one client writes, the others read. Teaches: volt_bcast, of which each
// subscriber gets every message; a client who is too slow is told how many it has missed, and holds
// up nobody. Two things at once in one task: VOLT_SELECT over two functions, one that reads and one
// that writes; when one of them ends, the other is cancelled.
//
//     cc -I. -pthread examples/13_chat.c -o chat && ./chat 7000
//     nc 127.0.0.1 7000      in two terminals
//
// Expected output, after a Ctrl-C:
// port 7000
// stopping
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LINE = 200, KEPT = 64 };
typedef struct {
    int from; // whose own message it is: not for that one
    char text[LINE + 16];
} message;

typedef struct {
    volt_frame frame;
    size_t len;
    int64_t n;
    char buf[LINE];
} speaking; // reads lines
typedef struct {
    volt_frame frame;
    int64_t n;
    message m;
} hearing; // writes what others say
typedef struct {
    volt_frame frame;
    volt_arm speaks, hears;
    volt_bcast *room;
    volt_sub sub;
    speaking speaker;
    hearing hearer;
    int fd, id;
} client;

// Says each line that is complete; one that fills the buffer counts as one.
static void say_lines(client *c, speaking *s) {
    char *end;
    message m = { .from = c->id };
    while ((end = (char *)memchr(s->buf, '\n', s->len)) != NULL || s->len == sizeof s->buf) {
        size_t len = end ? (size_t)(end - s->buf) : s->len, used = end ? len + 1 : len;
        snprintf(m.text, sizeof m.text, "%d: %.*s\n", c->id, (int)len, s->buf);
        if (len > 0) volt_bcast_send(c->room, &m, sizeof m); // never waits
        memmove(s->buf, s->buf + used, s->len -= used);
    }
}
static volt_poll speak(volt_cx *cx, client *c) {
    speaking *s = &c->speaker;
    VOLT_BEGIN(cx, s);
    for (s->len = 0;; s->len += (size_t)s->n, say_lines(c, s)) {
        VOLT_AWAIT(s->n, volt_read(cx, c->fd, s->buf + s->len, sizeof s->buf - s->len));
        if (s->n <= 0) break;
    }
    VOLT_END(s->n);
}

static volt_poll hear(volt_cx *cx, client *c) {
    hearing *h = &c->hearer;
    VOLT_BEGIN(cx, h);
    snprintf(h->m.text, sizeof h->m.text, "* you are %d\n", c->id);
    for (;;) {
        VOLT_AWAIT(h->n, volt_write_all(cx, c->fd, h->m.text, strlen(h->m.text)));
        if (h->n < 0) break;
        do VOLT_AWAIT(h->n, volt_sub_recv(cx, &c->sub, &h->m, sizeof h->m));
        while (h->n == 1 && h->m.from == c->id);
        if (h->n == 0 || h->n == -ECANCELED) break; // the room is closed, or the speaker has ended
        if (h->n == -EOVERFLOW) // some were lost: it goes on with the oldest that is left
            snprintf(h->m.text, LINE, "* you have missed %d\n", (int)volt_sub_lost(&c->sub));
    }
    VOLT_END(h->n);
}

static void tell(const client *c, const char *what) {
    message m = { .from = 0 };
    snprintf(m.text, sizeof m.text, "* %d %s\n", c->id, what);
    volt_bcast_send(c->room, &m, sizeof m);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    tell(c, "comes");
    volt_sub_open(&c->sub, c->room); // hears what is said from now on
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->speaks, speak(cx, c)), VOLT_ARM(&c->hears, hear(cx, c))));
    volt_sub_close(&c->sub);
    volt_close(cx, c->fd);
    tell(c, "leaves");
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_arm come, stop;
    volt_timer grace;
    volt_group clients;
    volt_addr at;
    volt_bcast room;
    message kept[KEPT];
    int lfd, fd, sigfd, n_clients;
    unsigned port;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->room = (volt_bcast)VOLT_BCAST_INIT(m->kept);
    m->lfd = volt_listen(NULL, m->port, NULL);
    if (m->lfd < 0) VOLT_RETURN(m->lfd);
    if (volt_local_addr(m->lfd, &m->at) == 0) printf("port %d\n", volt_addr_port(&m->at));
    fflush(stdout);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->come, m->fd, volt_accept(cx, m->lfd)),
                               VOLT_ARM(&m->stop, volt_readable(cx, m->sigfd))));
        if (!m->come.fired || m->fd < 0) break;
        client c = { .room = &m->room, .fd = m->fd, .id = ++m->n_clients };
        if (VOLT_GROUP_SPAWN(cx, &m->clients, client_run, c) < 0) volt_close(cx, m->fd);
    }
    printf("stopping\n");
    volt_close(cx, m->lfd);
    volt_bcast_close(&m->room); // they hear what has been said, and leave
    VOLT_AWAIT(volt_within(cx, &m->grace, VOLT_S(2), volt_group_wait(cx, &m->clients)));
    VOLT_AWAIT(volt_group_close(cx, &m->clients)); // who does not read is cancelled
    VOLT_END(m->stop.fired ? 0 : m->fd);
}

int main(int argc, char **argv) {
    app m = { .port = argc > 1 ? (unsigned)atoi(argv[1]) : 7000 };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    m.sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    int rc = m.sigfd < 0 ? -errno : volt_run(NULL, app_run, &m);
    close(m.sigfd);
    return rc < 0;
}
