// SPDX-License-Identifier: MIT OR 0BSD
// An operation of several steps that pauses, as its task has used up its budget, belongs to its
// file all the same: closed meanwhile and its number used again, it fails with -EBADF and leaves
// the new file alone.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

typedef struct { int first[2], second[2]; } pairs;

static void open_pair(int fd[2]) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

// Reads one of 8 bytes, and has then no budget left.
typedef struct {
    volt_frame frame;
    volt_timer t;
    pairs *p;
    int64_t rc;
    char buf[8];
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_within(cx, &r->t, VOLT_S(1),
                                  volt_read_exact(cx, r->p->first[0], r->buf, sizeof r->buf)));
    VOLT_END(r->rc);
}

typedef struct {
    volt_frame frame;
    volt_handle h;
    pairs p;
    int n;
    int64_t rc;
    char byte;
} owner;
static volt_poll owner_run(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    open_pair(o->p.first);
    SPAWN(&o->h, reader_run, (reader){ .p = &o->p });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5))); // it waits
    CHECK_EQ(write(o->p.first[1], "a", 1), 1);
    VOLT_AWAIT(volt_yield(cx)); // its event is fetched
    VOLT_AWAIT(volt_yield(cx)); // it reads the byte, and goes round: behind us
    o->n = o->p.first[0];
    volt_close(cx, o->p.first[0]);
    open_pair(o->p.second);
    CHECK_EQ(o->p.second[0], o->n); // the lowest free number
    CHECK_EQ(write(o->p.second[1], "secret!", 7), 7);
    VOLT_AWAIT(o->rc, volt_join(cx, &o->h));
    CHECK_EQ(o->rc, -EBADF);
    VOLT_AWAIT(o->rc, volt_read(cx, o->p.second[0], &o->byte, 1));
    CHECK_EQ(o->rc, 1);
    CHECK_EQ(o->byte, 's');
    volt_close(cx, o->p.second[0]);
    close(o->p.first[1]);
    close(o->p.second[1]);
    VOLT_END(0);
}
TEST(paused_read_stays_with_its_file) {
    volt_config c = test_config(1);
    owner o = { .n = 0 };
    c.budget = 1;
    CHECK_EQ(volt_run(&c, owner_run, &o), 0);
    test_check_heap();
}
