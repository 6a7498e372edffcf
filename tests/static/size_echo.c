// SPDX-License-Identifier: MIT OR 0BSD
// The plain echo server whose size `make size` measures and limits: accept, a task for each client,
// limits on silence and on unread echoes.
#define VOLT_IMPLEMENTATION
#include "volt.h"

typedef struct {
    volt_frame frame;
    volt_timer idle;
    int fd;
    int64_t n;
    char buf[512];
} conn;

static volt_poll echo(volt_cx *cx, void *arg) {
    conn *c = (conn *)arg;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->n, volt_within(cx, &c->idle, VOLT_S(5),
                                     volt_read(cx, c->fd, c->buf, sizeof c->buf)));
        if (c->n <= 0) break; // 0: end of file; -ETIMEDOUT, -ECANCELED, -ECONNRESET ...
        VOLT_AWAIT(c->n, volt_within(cx, &c->idle, VOLT_S(5),
                                     volt_write_all(cx, c->fd, c->buf, (size_t)c->n)));
        if (c->n < 0) break;
    }
    volt_close(cx, c->fd);
    VOLT_END(c->n);
}

typedef struct {
    volt_frame frame;
    int lfd, fd;
} server;

static volt_poll serve(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen(NULL, 7000, NULL);
    if (s->lfd < 0) VOLT_RETURN(s->lfd);
    for (;;) {
        VOLT_AWAIT(s->fd, volt_accept(cx, s->lfd));
        if (s->fd < 0) break;
        if (VOLT_SPAWN(cx, NULL, echo, (conn){ .fd = s->fd }) < 0) volt_close(cx, s->fd);
    }
    volt_close(cx, s->lfd);
    VOLT_END(s->fd);
}

int main(void) {
    server s = { .lfd = 0 };
    return volt_run(NULL, serve, &s) < 0;
}
