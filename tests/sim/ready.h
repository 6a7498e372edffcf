// SPDX-License-Identifier: MIT OR 0BSD
// Bytes from one task to another through a pipe or a pair of sockets, by volt_read_ready,
// volt_write_ready, the volt_try_ functions and volt_io, beside time limits, cancellations and
// closes. Part of grammar.h.
//
// Checked
//   all bytes that were written arrive, once and in order             trickle_end
//   a wait that is cancelled, or has a time limit, has moved none     trickle_end
//   volt_io makes no call that it does not report                     trickle_in, trickle_out
//   a wake-up is not lost: half of the waits have no limit            sim__advance  (machine.h)
//   a readiness that proves wrong is not reported again               trickle_idle
//   one that comes while an attempt fails is kept                     pong_run
//   both directions of one socket stay armed                          duo_run
//   a close ends the waits of both directions                         duo_run
#ifndef VOLT_SIM_READY_H
#define VOLT_SIM_READY_H

#include "packets.h"

enum { TRICKLES = 24, TRICKLE_BYTES = 32 };

// ---- a stream that two tasks know

typedef struct trickle {
    int n_users;
    uint32_t id;
    uint64_t total, written, got;
    int is_ended; // the writer has closed its end
    int is_cut;   // a task between the two ends has dropped bytes
} trickle;
static trickle trickles[TRICKLES];

static trickle *trickle_take(void) {
    for (int i = 0; i < TRICKLES; i++) {
        if (trickles[i].n_users) continue;
        memset(&trickles[i], 0, sizeof trickles[i]);
        trickles[i].n_users = 1;
        trickles[i].id = prog_below(1u << 30);
        trickles[i].total = prog_below(300);
        return &trickles[i];
    }
    return NULL;
}
typedef struct trickler { // one end of it
    volt_frame frame;
    volt_timer timer;
    trickle *t;
    int fd, has_limits, is_half, how, n_idle, n_moved; // half: of a socket for both directions
    int64_t limit, rc, called; // called: the result of the last call of volt_io
    size_t n;
    struct iovec part[2];
    unsigned char buf[TRICKLE_BYTES];
} trickler;
enum { TRICKLE_READY, TRICKLE_READY_V, TRICKLE_READY_IO, TRICKLE_IO, TRICKLE_PLAIN, N_TRICKLES };

static int64_t trickle_in(int fd, void *arg) {
    trickler *o = (trickler *)arg;
    SIM_CHECK(o->called <= 0);
    o->called = sim_read(fd, o->buf, o->n);
    return o->called < 0 ? -errno : o->called;
}
static int64_t trickle_out(int fd, void *arg) {
    trickler *o = (trickler *)arg;
    SIM_CHECK(o->called <= 0);
    o->called = sim_write(fd, o->buf, o->n);
    return o->called < 0 ? -errno : o->called;
}
static void trickle_draw(trickler *o) {
    o->how = (int)prog_below(N_TRICKLES);
    o->n = 1 + prog_below(TRICKLE_BYTES);
    o->limit = o->has_limits ? draw_limit() : VOLT_NEVER;
    o->called = 0;
}
static void trickle_cut(trickler *o) {
    o->part[0].iov_base = o->buf;
    o->part[0].iov_len = o->n / 3;
    o->part[1].iov_base = o->buf + o->n / 3;
    o->part[1].iov_len = o->n - o->n / 3;
}
static volt_poll trickle_wait(volt_cx *cx, trickler *o, int is_write) {
    if (o->how == TRICKLE_IO)
        return is_write ? volt_io(cx, o->fd, VOLT_OUT, trickle_out, o)
                        : volt_io(cx, o->fd, VOLT_IN, trickle_in, o);
    if (o->how == TRICKLE_PLAIN)
        return is_write ? volt_write(cx, o->fd, o->buf, o->n)
                        : volt_read(cx, o->fd, o->buf, o->n);
    return is_write ? volt_write_ready(cx, o->fd) : volt_read_ready(cx, o->fd);
}
static int64_t trickle_try(volt_cx *cx, trickler *o, int is_write) {
    trickle_cut(o);
    if (o->how == TRICKLE_READY_V)
        return is_write ? volt_try_writev(cx, o->fd, o->part, 2)
                        : volt_try_readv(cx, o->fd, o->part, 2);
    if (o->how == TRICKLE_READY_IO)
        return is_write ? volt_try_io(cx, o->fd, VOLT_OUT, trickle_out, o)
                        : volt_try_io(cx, o->fd, VOLT_IN, trickle_in, o);
    return is_write ? volt_try_write(cx, o->fd, o->buf, o->n)
                    : volt_try_read(cx, o->fd, o->buf, o->n);
}
// Without faults a wrong readiness comes from the wait that registers the descriptor, or from an
// event that came while the bytes were being moved.
static void trickle_idle(trickler *o) {
    int is_quiet = !sim.rate[SIM_PHANTOM] && !sim.rate[SIM_AGAIN] && !sim.is_calm;
    o->n_idle++;
    if (is_quiet && o->n_idle > 3 + 2 * o->n_moved)
        sim_fail("%d times ready for nothing, %d transfers", o->n_idle, o->n_moved);
}
// Returns 1 if the transfer is over: an end or an error.
static int trickle_step_is_last(trickler *o, int is_write) {
    sim__trace("trickle on %d: way %d gives %d", o->fd, o->how, (int)o->rc);
    if (o->how == TRICKLE_IO || o->how == TRICKLE_READY_IO)
        SIM_CHECK(o->rc > 0 ? o->called == o->rc : o->called <= 0);
    if (o->rc == -EAGAIN) trickle_idle(o);
    if (o->rc == -ETIMEDOUT) SIM_CHECK(o->has_limits);
    if (o->rc == -EAGAIN || o->rc == -ETIMEDOUT) return 0;
    if (o->rc <= 0) return 1;
    SIM_CHECK(o->rc <= (int64_t)o->n);
    o->n_moved++;
    if (is_write) {
        o->t->written += (uint64_t)o->rc;
        return 0;
    }
    check_bytes(o->buf, (size_t)o->rc, o->t->id, o->t->got);
    o->t->got += (uint64_t)o->rc;
    return 0;
}
// Moves bytes until the end, or until an error.
static volt_poll trickle_run(volt_cx *cx, trickler *o, int is_write) {
    VOLT_BEGIN(cx, o);
    while (!is_write || o->t->written < o->t->total) {
        trickle_draw(o);
        if (is_write && o->n > o->t->total - o->t->written)
            o->n = (size_t)(o->t->total - o->t->written);
        if (is_write) fill_bytes(o->buf, o->n, o->t->id, o->t->written);
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, trickle_wait(cx, o, is_write)));
        if (o->rc == 0 && o->how < TRICKLE_IO) o->rc = trickle_try(cx, o, is_write);
        if (trickle_step_is_last(o, is_write)) break;
        if (is_write && prog_below(3) == 0) VOLT_AWAIT(volt_sleep(cx, 1000 + prog_below(100000)));
    }
    VOLT_END(o->rc > 0 ? 0 : o->rc);
}
// The writer ends first, or the reader has left.
static void trickle_end(volt_cx *cx, trickler *o, int is_write, int id) {
    trickle *t = o->t;
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    else if (o->rc < 0) SIM_CHECK(o->rc == -EPIPE || prog.may_fail);
    if (is_write) t->is_ended = 1;
    if (!is_write && o->rc == 0 && !t->is_cut) SIM_CHECK(t->is_ended && t->got == t->written);
    SIM_CHECK(t->got <= t->written || !t->is_ended);
    if (!o->is_half) volt_close(cx, o->fd);
    else if (is_write) volt_sock_shutdown(o->fd, SHUT_WR);
    t->n_users--;
}

// ---- the child is the other end

typedef struct trickle_child {
    volt_frame frame;
    trickler end;
    int id, is_write;
    int64_t rc;
} trickle_child;
static volt_poll trickle_child_body(volt_cx *cx, trickle_child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, trickle_run(cx, &c->end, c->is_write));
    c->end.rc = c->rc;
    trickle_end(cx, &c->end, c->is_write, c->id);
    VOLT_END(c->id);
}
static volt_poll trickle_child_run(volt_cx *cx, void *arg) {
    trickle_child *c = (trickle_child *)arg;
    int id = c->id;
    note_poll_begin(id);
    volt_poll p = trickle_child_body(cx, c);
    note_poll_end(id, p);
    return p;
}
typedef struct op_trickle {
    volt_frame frame;
    volt_handle h;
    trickler end;
    int is_write, child, nap;
    int64_t rc;
} op_trickle;
// fd[0] is the end that reads.
static int trickle_open(op_trickle *o, int fd[2]) {
    int rc = prog_below(2) ? sim_pipe2(fd, 0) : sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd);
    o->end.t = rc < 0 ? NULL : trickle_take();
    if (rc == 0 && !o->end.t) {
        sim_close(fd[0]);
        sim_close(fd[1]);
    }
    return o->end.t != NULL;
}
// Returns the number of the child, which owns the descriptor, or -1.
static int trickle_spawn(volt_cx *cx, volt_handle *h, trickle *t, int fd, int is_write) {
    trickle_child c;
    memset(&c, 0, sizeof c);
    c.end.t = t;
    c.end.has_limits = (int)prog_below(2);
    c.end.fd = fd;
    c.is_write = is_write;
    c.id = note_task();
    if (c.id < 0) return -1;
    t->n_users++;
    prog.note[c.id].spawned_at = prog.n_polls;
    int rc = VOLT_SPAWN(cx, h, trickle_child_run, c);
    note_spawned(c.id, rc);
    if (rc < 0) t->n_users--;
    return rc < 0 ? -1 : c.id;
}
static int trickle_start(volt_cx *cx, op_trickle *o) {
    int fd[2];
    if (!trickle_open(o, fd)) return 0;
    o->is_write = (int)prog_below(2);
    o->end.fd = fd[o->is_write];
    o->end.has_limits = (int)prog_below(2);
    o->child = trickle_spawn(cx, &o->h, o->end.t, fd[!o->is_write], !o->is_write);
    if (o->child >= 0) return 1;
    volt_close(cx, fd[0]);
    volt_close(cx, fd[1]);
    o->end.t->n_users--;
    return 0;
}
static volt_poll trickle_op(volt_cx *cx, op_trickle *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!trickle_start(cx, o)) VOLT_RETURN(0);
    if (prog_below(4) == 0) {
        o->nap = prog_below(2) ? 1000 + (int)prog_below(200000) : 0;
        if (o->nap) VOLT_AWAIT(o->rc, volt_sleep(cx, o->nap));
        note_cancel(o->child);
        volt_cancel(&o->h);
    }
    VOLT_AWAIT(o->rc, trickle_run(cx, &o->end, o->is_write));
    o->end.rc = o->rc;
    trickle_end(cx, &o->end, o->is_write, id);
    volt_detach(&o->h);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- one byte to and fro: while one side tries to read, the other one may just be writing

typedef struct pong {
    volt_frame frame;
    int fd, left, is_first;
    int64_t rc;
    unsigned char byte;
} pong;
static volt_poll pong_run(volt_cx *cx, pong *o) {
    VOLT_BEGIN(cx, o);
    for (; o->left > 0; o->left--) {
        o->byte = (unsigned char)o->left;
        if (o->is_first) VOLT_AWAIT(o->rc, volt_write(cx, o->fd, &o->byte, 1));
        if (o->is_first && o->rc < 0) break;
        while ((o->rc = volt_try_read(cx, o->fd, &o->byte, 1)) == -EAGAIN) {
            VOLT_AWAIT(o->rc, volt_read_ready(cx, o->fd));
            if (o->rc < 0) break;
        }
        if (o->rc <= 0) break;
        SIM_CHECK(o->byte == (unsigned char)o->left);
        if (!o->is_first) VOLT_AWAIT(o->rc, volt_write(cx, o->fd, &o->byte, 1));
        if (o->rc < 0) break;
    }
    VOLT_END(o->rc);
}
// An end or EPIPE: the other side was cancelled, or has failed.
static void pong_end(volt_cx *cx, pong *o, int id) {
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    else if (o->rc < 0) SIM_CHECK(o->rc == -EPIPE || prog.may_fail);
    if (o->rc > 0) SIM_CHECK(o->left == 0);
    volt_close(cx, o->fd);
}
typedef struct pong_child {
    volt_frame frame;
    pong side;
    int id;
} pong_child;
static volt_poll pong_child_body(volt_cx *cx, pong_child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->side.rc, pong_run(cx, &c->side));
    pong_end(cx, &c->side, c->id);
    VOLT_END(c->id);
}
static volt_poll pong_child_run(volt_cx *cx, void *arg) {
    pong_child *c = (pong_child *)arg;
    int id = c->id;
    note_poll_begin(id);
    volt_poll p = pong_child_body(cx, c);
    note_poll_end(id, p);
    return p;
}
typedef struct op_pong {
    volt_frame frame;
    volt_handle h;
    pong side;
} op_pong;
static int pong_open(volt_cx *cx, op_pong *o) {
    int fd[2];
    pong_child c;
    memset(&c, 0, sizeof c);
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) return 0;
    c.side.left = o->side.left = 1 + (int)prog_below(30);
    o->side.is_first = 1;
    o->side.fd = fd[0];
    c.side.fd = fd[1];
    c.id = note_task();
    if (c.id >= 0) prog.note[c.id].spawned_at = prog.n_polls;
    int rc = c.id < 0 ? -1 : VOLT_SPAWN(cx, &o->h, pong_child_run, c);
    if (c.id >= 0) note_spawned(c.id, rc);
    for (int i = 0; i < 2 && rc < 0; i++) sim_close(fd[i]);
    return rc == 0;
}
static volt_poll pong_op(volt_cx *cx, op_pong *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!pong_open(cx, o)) VOLT_RETURN(0);
    VOLT_AWAIT(o->side.rc, pong_run(cx, &o->side));
    pong_end(cx, &o->side, id);
    volt_detach(&o->h);
    VOLT_END(o->side.rc == -ECANCELED ? o->side.rc : 0);
}

// The program "pongs": pairs on several workers, whose events all come to the first one.
typedef struct pongs {
    volt_frame frame;
    volt_group g;
    int64_t rc;
} pongs;
static int pongs_start(volt_cx *cx, pongs *r) {
    int fd[2], rc = 0;
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) return -errno;
    for (int i = 0; i < 2; i++) {
        pong_child c;
        memset(&c, 0, sizeof c);
        c.id = note_task();
        c.side.fd = fd[i];
        c.side.left = 60;
        c.side.is_first = i == 0;
        if (rc == 0) rc = VOLT_GROUP_SPAWN(cx, &r->g, pong_child_run, c);
        note_spawned(c.id, rc);
        if (rc < 0) volt_close(cx, fd[i]);
    }
    return rc;
}
static volt_poll pongs_run(volt_cx *cx, void *arg) {
    pongs *r = (pongs *)arg;
    VOLT_BEGIN(cx, r);
    for (int i = 0; i < 4; i++) check_app(pongs_start(cx, r));
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->g));
    VOLT_END(r->rc);
}
static void app_pongs(void) {
    volt_config cfg = draw_config();
    static pongs r;
    memset(&r, 0, sizeof r);
    prog.most_tasks = MOST_TASKS;
    cfg.workers = 2 + prog_below(3);
    cfg.reactors = 1;
    check_app(volt_run(&cfg, pongs_run, &r));
    check_all_ended();
}

// ---- both directions of one socket at once, until its close

typedef struct op_duo {
    volt_frame frame;
    volt_arm a, b, c;
    struct duo_arm {
        volt_frame frame;
        int64_t n, rc;
    } in, out, end;
    int fd, is_open;
    int64_t rc, nap;
} op_duo;
static void both_peer(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[256];
    for (int i = 0; i < 6; i++) {
        sim_nap(1 + sim_below(400000));
        if (sim_below(2))
            while (sim_write(fd, "x", 1) < 0 && errno == EINTR) {}
        else
            while (sim_read(fd, buf, sizeof buf) < 0 && errno == EINTR) {}
    }
    sim_close(fd);
}
static int duo_open(op_duo *o) {
    int fd[2];
    if (!may_start_thread() || sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) return 0;
    sim_fcntl(fd[1], F_SETFL, O_NONBLOCK);
    o->fd = fd[0];
    o->is_open = 1;
    start_thread(both_peer, (void *)(intptr_t)fd[1]);
    return 1;
}
static volt_poll duo_in(volt_cx *cx, op_duo *o) {
    struct duo_arm *const d = &o->in;
    VOLT_BEGIN(cx, d);
    do {
        char buf[16];
        VOLT_AWAIT(d->rc, volt_read_ready(cx, o->fd));
        d->n = d->rc;
        if (d->rc == 0) d->n = volt_try_read(cx, o->fd, buf, sizeof buf);
        for (int64_t i = 0; i < d->n; i++) SIM_CHECK(buf[i] == 'x');
    } while (d->n > 0 || d->n == -EAGAIN);
    VOLT_END(d->n);
}
static volt_poll duo_out(volt_cx *cx, op_duo *o) {
    struct duo_arm *const d = &o->out;
    VOLT_BEGIN(cx, d);
    do {
        char buf[64] = "";
        VOLT_AWAIT(d->rc, volt_write_ready(cx, o->fd));
        d->n = d->rc;
        if (d->rc == 0) d->n = volt_try_write(cx, o->fd, buf, sizeof buf);
    } while (d->n > 0 || d->n == -EAGAIN);
    VOLT_END(d->n);
}
static volt_poll duo_end(volt_cx *cx, op_duo *o) {
    struct duo_arm *const d = &o->end;
    VOLT_BEGIN(cx, d);
    if (!o->nap) VOLT_RETURN(0); // its peer closes
    VOLT_AWAIT(d->rc, volt_sleep(cx, o->nap));
    volt_close(cx, o->fd);
    o->is_open = 0;
    VOLT_END(0);
}
// Each arm meets the end of the peer, or the close.
static volt_poll duo_run(volt_cx *cx, op_duo *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!duo_open(o)) VOLT_RETURN(0);
    o->nap = prog_below(2) ? 1000 + (int64_t)prog_below(3000000) : 0;
    VOLT_AWAIT(o->rc, VOLT_JOIN_ALL(VOLT_ARM(&o->a, duo_in(cx, o)), VOLT_ARM(&o->b, duo_out(cx, o)),
                                    VOLT_ARM(&o->c, duo_end(cx, o))));
    if (o->is_open) {
        volt_close(cx, o->fd);
    } else if (o->rc == 0) {
        SIM_CHECK(o->in.n == 0 || o->in.n == -EBADF || prog.may_fail);
        SIM_CHECK(o->out.n == -EPIPE || o->out.n == -EBADF || prog.may_fail);
    }
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

#endif // VOLT_SIM_READY_H
