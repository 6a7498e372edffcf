// SPDX-License-Identifier: MIT OR 0BSD
// A relay that passes small pieces on, at a pace, in tasks of the test. On one worker an operation
// through it has a poll for each piece, at any speed of the machine, so that a cancellation meets
// each step of it. Include it behind volt.h.
#ifndef TEST_PACE_H
#define TEST_PACE_H

enum { PACE_PIECE = 1500 };

typedef struct {
    volt_frame frame;
    int from, to, n;
    char buf[PACE_PIECE];
} pace;
static inline volt_poll pace_run(volt_cx *cx, pace *p) {
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(p->n, volt_read(cx, p->from, p->buf, sizeof p->buf));
        if (p->n <= 0) break;
        VOLT_AWAIT(p->n, volt_write_all(cx, p->to, p->buf, (size_t)p->n));
        if (p->n > 0) VOLT_AWAIT(p->n, volt_sleep(cx, VOLT_US(300)));
        if (p->n < 0) break;
    }
    VOLT_END(p->n);
}
typedef struct {
    volt_frame frame;
    volt_arm up, down;
    pace left, right;
    volt_addr to;
    int client, server;
} paced;
static inline volt_poll paced_run(volt_cx *cx, void *arg) {
    paced *p = (paced *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->server, volt_connect(cx, &p->to));
    p->left.from = p->right.to = p->client;
    p->left.to = p->right.from = p->server;
    if (p->server >= 0) // the end of one direction ends both
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&p->up, pace_run(cx, &p->left)),
                               VOLT_ARM(&p->down, pace_run(cx, &p->right))));
    volt_close(cx, p->client);
    if (p->server >= 0) volt_close(cx, p->server);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    volt_addr to;
    int listener, fd;
} pacer;
static inline volt_poll pacer_run(volt_cx *cx, void *arg) {
    pacer *p = (pacer *)arg;
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(p->fd, volt_accept(cx, p->listener));
        if (p->fd < 0) break;
        p->fd = VOLT_GROUP_SPAWN(cx, &p->group, paced_run,
                                 (paced){ .client = p->fd, .to = p->to });
        if (p->fd < 0) break;
    }
    VOLT_AWAIT(volt_group_close(cx, &p->group));
    volt_close(cx, p->listener);
    VOLT_END(0);
}
// Starts a relay to an address, as a task that is cancelled and joined by *h. Returns its port on
// 127.0.0.1, or a negative error.
static inline int pacer_start(volt_cx *cx, volt_handle *h, const volt_addr *to) {
    volt_addr here;
    pacer p = { .to = *to, .listener = volt_listen("127.0.0.1", 0, NULL) };
    int rc = p.listener < 0 ? p.listener : volt_local_addr(p.listener, &here);
    if (rc == 0) rc = VOLT_SPAWN(cx, h, pacer_run, p);
    return rc < 0 ? rc : volt_addr_port(&here);
}
#endif
