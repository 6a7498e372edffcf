// SPDX-License-Identifier: MIT OR 0BSD
// One unit of a program; see programs.sh, which compiles it many times, as C and as C++, with the
// implementation of volt.h or without.
#include "../../../volt.h"
#include "unit.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 20, PAIRS = 8 };

// Writes a byte each millisecond.
typedef struct {
    volt_frame frame;
    volt_timer timer;
    int fd, round;
    int64_t n;
} writer;
static volt_poll writer_run(volt_cx *cx, void *arg) {
    writer *w = (writer *)arg;
    VOLT_BEGIN(cx, w);
    for (w->round = 0; w->round < ROUNDS; w->round++) {
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
        VOLT_AWAIT(w->n, volt_within(cx, &w->timer, VOLT_S(30), volt_write_all(cx, w->fd, "x", 1)));
        if (w->n < 0) break;
    }
    volt_close(cx, w->fd);
    VOLT_END(w->n < 0 ? w->n : 0);
}

// Counts what it reads, and does not wait longer than a millisecond.
typedef struct {
    volt_frame frame;
    volt_arm in, late;
    int fd, n_read;
    int64_t n;
    char buf[4];
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    VOLT_BEGIN(cx, r);
    do {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&r->in, r->n, volt_read(cx, r->fd, r->buf, 4)),
                               VOLT_ARM(&r->late, volt_sleep(cx, VOLT_MS(1)))));
        if (r->in.fired && r->n > 0) r->n_read += (int)r->n;
    } while (r->late.fired || r->n > 0);
    volt_close(cx, r->fd);
    VOLT_END(r->n < 0 ? r->n : r->n_read);
}

typedef struct {
    volt_frame frame;
    volt_handle readers[PAIRS];
    volt_group writers;
    reader in;
    writer out;
    int fd[2], i, n_bad;
    int64_t rc;
} root;
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    VOLT_BEGIN(cx, r);
    for (r->i = 0; r->i < PAIRS; r->i++) {
        if (pipe(r->fd) < 0) VOLT_RETURN(-errno);
        r->in.fd = r->fd[0];
        r->out.fd = r->fd[1];
        r->n_bad += VOLT_SPAWN(cx, &r->readers[r->i], reader_run, r->in) != 0;
        r->n_bad += VOLT_GROUP_SPAWN(cx, &r->writers, writer_run, r->out) != 0;
    }
    for (r->i = 0; r->i < PAIRS; r->i++) {
        VOLT_AWAIT(r->rc, volt_join(cx, &r->readers[r->i]));
        r->n_bad += r->rc != ROUNDS;
    }
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->writers));
    VOLT_END(r->n_bad + (r->rc != 0));
}

int UNIT(void) {
    root r;
    volt_config config;
    memset(&r, 0, sizeof r);
    memset(&config, 0, sizeof config);
    config.workers = 2;
    return volt_run(&config, root_run, &r);
}
