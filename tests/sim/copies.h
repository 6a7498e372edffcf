// SPDX-License-Identifier: MIT OR 0BSD
// volt_copy, volt_relay and volt_sendfile to tasks that check bytes (ready.h): through pipes and
// sockets, by splice or by a buffer, with time limits, cancellations and half-closes. Part of
// grammar.h.
//
// Checked
//   all bytes that were written arrive, once and in order             trickle_end   (ready.h)
//   ... also if a copy is cancelled and goes on                       copy_run
//   a copy counts its bytes, and keeps to its limit                   copy_settle
//   a copy that fails names the side                                  copy_failed
//   a relay ends when both directions have, and passes on each end    relay_settle, duplex_out
//   ... or when nothing has moved for its time                        relay_settle
//   the offset of a file advances by what was sent, and not otherwise send_settle
//   no pipe is left                                                   sim_run
#ifndef VOLT_SIM_COPIES_H
#define VOLT_SIM_COPIES_H

#include "ready.h"

// Any file through which bytes go one way: fd[0] is the end that reads.
static int copy_pipe(int fd[2]) {
    return prog_below(2) ? sim_pipe2(fd, 0) : sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd);
}

// ---- a copy: a child writes, another one reads, and this task is between them

typedef struct op_copy {
    volt_frame frame;
    volt_handle writer, reader;
    volt_copier c;
    volt_reader head;
    volt_timer timer;
    trickle *t;
    int from, to, has_limits;
    int64_t limit, rc;
    uint64_t before, most;
    char buf[24], head_buf[16];
} op_copy;
static int copy_open(volt_cx *cx, op_copy *o) {
    int in[2], out[2];
    if (copy_pipe(in) < 0) return 0;
    o->from = in[0];
    o->to = -1;
    int rc = copy_pipe(out);
    if (rc == 0) o->to = out[1];
    o->t = rc == 0 ? trickle_take() : NULL;
    int writer = o->t ? trickle_spawn(cx, &o->writer, o->t, in[1], 1) : -1;
    if (writer < 0) volt_close(cx, in[1]);
    if (rc < 0) return 0;
    int reader = writer < 0 ? -1 : trickle_spawn(cx, &o->reader, o->t, out[0], 0);
    if (reader < 0) volt_close(cx, out[0]);
    if (writer >= 0 && prog_below(8) == 0) note_cancel(writer);
    if (writer >= 0 && prog.note[writer].is_cancelled) volt_cancel(&o->writer);
    if (reader >= 0 && prog_below(8) == 0) note_cancel(reader);
    if (reader >= 0 && prog.note[reader].is_cancelled) volt_cancel(&o->reader);
    return reader >= 0;
}
static void copy_init(op_copy *o) {
    volt_stream from = volt_stream_of(o->from);
    volt_reader_init(&o->head, from, o->head_buf, sizeof o->head_buf, VOLT_LONG_STOP);
    if (prog_below(4) == 0) from = volt_reader_stream(&o->head);
    void *buf = prog_below(2) ? o->buf : NULL;
    volt_copier_init(&o->c, from, volt_stream_of(o->to), buf, 1 + prog_below(sizeof o->buf));
    o->has_limits = (int)prog_below(2);
}
static void copy_failed(const op_copy *o, int id) {
    int side = volt_copy_failed_at(&o->c);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id) && side == 0);
    else if (o->rc == -EPIPE) SIM_CHECK(side == VOLT_OUT);
    else SIM_CHECK(prog.may_fail && (side == VOLT_IN || side == VOLT_OUT));
}
// Returns 1 if the copy has ended. Bytes that a cancelled call has read count in the call that
// writes them.
static int copy_settle(op_copy *o, int id) {
    uint64_t n = volt_copied(&o->c) - o->before;
    sim__trace("copy from %d to %d: %d bytes, gives %d", o->from, o->to, (int)n, (int)o->rc);
    SIM_CHECK(n <= o->most);
    if (o->rc == -ETIMEDOUT) SIM_CHECK(o->has_limits);
    if (o->rc == -ETIMEDOUT) return 0;
    if (o->rc < 0) copy_failed(o, id);
    if (o->rc < 0) return 1;
    SIM_CHECK(o->rc == 0 && volt_copy_failed_at(&o->c) == 0);
    if (n >= o->most) return 0;
    SIM_CHECK(o->t->is_ended && volt_copied(&o->c) == o->t->written);
    return 1;
}
static volt_poll copy_run(volt_cx *cx, op_copy *o, int id) {
    VOLT_BEGIN(cx, o);
    if (copy_open(cx, o)) {
        copy_init(o);
        do {
            o->before = volt_copied(&o->c);
            o->most = prog_below(2) ? 1 + prog_below(100) : VOLT_ALL;
            o->limit = o->has_limits ? draw_limit() : VOLT_NEVER;
            VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, volt_copy(cx, &o->c, o->most)));
        } while (!copy_settle(o, id));
        volt_copier_close(cx, &o->c);
        if (o->rc < 0) o->t->is_cut = 1;
    } else if (o->t) {
        o->t->is_cut = 1;
    }
    if (o->t) o->t->n_users--;
    if (o->from) volt_close(cx, o->from);
    if (o->to > 0) volt_close(cx, o->to);
    volt_detach(&o->writer);
    volt_detach(&o->reader);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- a relay: at each end a child writes and reads at once

typedef struct duplex_child {
    volt_frame frame;
    volt_arm a, b;
    trickler in, out;
    volt_event has_heard; // the end of the other side
    struct duplex_turn {
        volt_frame frame;
        int64_t rc;
    } turn;
    int id, fd, answers; // answers: writes nothing before it has heard the end
    int64_t rc;
} duplex_child;
static volt_poll duplex_half(volt_cx *cx, duplex_child *c, int is_write) {
    trickler *half = is_write ? &c->out : &c->in;
    volt_poll p = trickle_run(cx, half, is_write);
    if (volt_is_pending(p)) return p;
    half->rc = volt_value(p);
    trickle_end(cx, half, is_write, c->id);
    if (!is_write) volt_event_set(&c->has_heard);
    if (half->rc < 0) { // the other half must not wait for a peer that waits for this one
        c->in.t->is_cut = c->out.t->is_cut = 1;
        (void)volt_sock_shutdown(half->fd, SHUT_RDWR);
    }
    return p;
}
static volt_poll duplex_out(volt_cx *cx, duplex_child *c) {
    struct duplex_turn *const o = &c->turn;
    VOLT_BEGIN(cx, o);
    if (c->answers) VOLT_AWAIT(o->rc, volt_event_wait(cx, &c->has_heard));
    VOLT_AWAIT(o->rc, duplex_half(cx, c, 1));
    VOLT_END(o->rc);
}
static volt_poll duplex_child_body(volt_cx *cx, duplex_child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, VOLT_JOIN_ALL(VOLT_ARM(&c->a, duplex_half(cx, c, 0)),
                                    VOLT_ARM(&c->b, duplex_out(cx, c))));
    volt_close(cx, c->fd);
    VOLT_END(c->id);
}
static volt_poll duplex_child_run(volt_cx *cx, void *arg) {
    duplex_child *c = (duplex_child *)arg;
    int id = c->id;
    note_poll_begin(id);
    volt_poll p = duplex_child_body(cx, c);
    note_poll_end(id, p);
    return p;
}
typedef struct op_relay {
    volt_frame frame;
    volt_handle h[2];
    volt_relayer r;
    volt_timer timer;
    trickle *t[2]; // t[i]: from the child at fd[i]
    int fd[2], answerer; // answerer: the child that answers, or 2
    int64_t idle, limit, start, rc;
} op_relay;
static int relay_spawn(volt_cx *cx, op_relay *o, int i, int fd) {
    duplex_child c;
    memset(&c, 0, sizeof c);
    c.fd = c.in.fd = c.out.fd = fd;
    c.in.is_half = c.out.is_half = 1;
    c.in.has_limits = (int)prog_below(2);
    c.out.has_limits = (int)prog_below(2);
    c.answers = i == o->answerer;
    c.out.t = o->t[i];
    c.in.t = o->t[1 - i];
    c.id = note_task();
    if (c.id < 0) return 0;
    for (int k = 0; k < 2; k++) o->t[k]->n_users++;
    prog.note[c.id].spawned_at = prog.n_polls;
    int rc = VOLT_SPAWN(cx, &o->h[i], duplex_child_run, c);
    note_spawned(c.id, rc);
    for (int k = 0; k < 2 && rc < 0; k++) o->t[k]->n_users--;
    if (rc == 0 && prog_below(8) == 0) {
        note_cancel(c.id);
        volt_cancel(&o->h[i]);
    }
    return rc == 0;
}
static int relay_open(volt_cx *cx, op_relay *o) {
    o->answerer = (int)prog_below(3);
    for (int i = 0; i < 2; i++) o->t[i] = trickle_take();
    for (int i = 0; i < 2 && o->t[1]; i++) {
        int fd[2];
        if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) return 0;
        o->fd[i] = fd[0];
        if (relay_spawn(cx, o, i, fd[1])) continue;
        volt_close(cx, fd[1]);
        return 0;
    }
    return o->t[1] != NULL;
}
static void relay_settle(op_relay *o, int id) {
    sim__trace("relay of %d and %d: gives %d", o->fd[0], o->fd[1], (int)o->rc);
    int is_idle = volt_relay_is_idle(&o->r);
    for (int i = 0; i < 2; i++)
        SIM_CHECK(volt_copied(volt_relay_way(&o->r, i)) <= o->t[i]->total);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    if (o->rc == -ETIMEDOUT && is_idle) SIM_CHECK(sim_now() >= o->start + o->idle);
    if (o->rc == -ETIMEDOUT && !is_idle) SIM_CHECK(sim_now() >= o->start + o->limit);
    if (o->rc != -ETIMEDOUT) SIM_CHECK(!is_idle);
    if (o->rc < 0) SIM_CHECK(o->rc == -ECANCELED || o->rc == -ETIMEDOUT || o->rc == -EPIPE ||
                             prog.may_fail);
    for (int i = 0; i < 2 && o->rc == 0; i++)
        SIM_CHECK(o->t[i]->is_cut || (o->t[i]->is_ended &&
                  volt_copied(volt_relay_way(&o->r, i)) == o->t[i]->written));
}
static volt_poll relay_run(volt_cx *cx, op_relay *o, int id) {
    VOLT_BEGIN(cx, o);
    if (relay_open(cx, o)) {
        o->idle = prog_below(3) ? VOLT_NEVER : 1000 + prog_below(1u << (12 + prog_below(14)));
        o->limit = prog_below(3) ? VOLT_NEVER : 1000 + prog_below(1u << 23);
        volt_relayer_init(&o->r, volt_stream_of(o->fd[0]), volt_stream_of(o->fd[1]), o->idle);
        o->start = sim_now();
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, volt_relay(cx, &o->r)));
        relay_settle(o, id);
    } else {
        o->rc = -EAGAIN;
    }
    for (int i = 0; i < 2; i++) { // before the first close
        if (o->t[i] && o->rc < 0) o->t[i]->is_cut = 1;
        if (o->t[i]) o->t[i]->n_users--;
    }
    for (int i = 0; i < 2; i++) {
        if (o->fd[i] && o->rc < 0) volt_close_reset(cx, o->fd[i]);
        else if (o->fd[i]) volt_close(cx, o->fd[i]);
        volt_detach(&o->h[i]);
    }
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- a file to a task

typedef struct op_send {
    volt_frame frame;
    volt_handle reader;
    volt_timer timer;
    trickle *t;
    int file, to, path, has_limits;
    int64_t offset, before, limit, rc;
    size_t n;
    unsigned char bytes[300];
} op_send;
// Returns 1 if the reader has started; the others are closed and returned in any case.
static int send_open(volt_cx *cx, op_send *o) {
    int fd[2];
    o->file = o->to = -1;
    o->path = path_take();
    o->t = o->path < 0 ? NULL : trickle_take();
    if (!o->t) return 0;
    fill_bytes(o->bytes, (size_t)o->t->total, o->t->id, 0);
    o->file = sim_open_cached(o->path, o->bytes, (int)o->t->total);
    if (o->file < 0 || copy_pipe(fd) < 0) return 0;
    o->to = fd[1];
    int reader = trickle_spawn(cx, &o->reader, o->t, fd[0], 0);
    if (reader < 0) volt_close(cx, fd[0]);
    if (reader >= 0 && prog_below(8) == 0) {
        note_cancel(reader);
        volt_cancel(&o->reader);
    }
    return reader >= 0;
}
// Returns 1 if the transfer is over.
static int send_settle(op_send *o, int id) {
    int64_t n = o->rc > 0 ? o->rc : 0;
    sim__trace("file to %d at %d: gives %d", o->to, (int)o->before, (int)o->rc);
    SIM_CHECK(o->offset == o->before + n && n <= (int64_t)o->n);
    o->t->written += (uint64_t)n;
    if (o->rc == -ETIMEDOUT) SIM_CHECK(o->has_limits);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    if (o->rc == 0) SIM_CHECK(o->t->written == o->t->total);
    if (o->rc < 0)
        SIM_CHECK(o->rc == -ETIMEDOUT || o->rc == -ECANCELED || o->rc == -EPIPE || prog.may_fail);
    return o->rc <= 0 && o->rc != -ETIMEDOUT;
}
static volt_poll send_run(volt_cx *cx, op_send *o, int id) {
    VOLT_BEGIN(cx, o);
    if (send_open(cx, o)) {
        o->has_limits = (int)prog_below(2);
        do {
            o->before = o->offset;
            o->n = 1 + prog_below(100);
            o->limit = o->has_limits ? draw_limit() : VOLT_NEVER;
            VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                          volt_sendfile(cx, o->to, o->file, &o->offset, o->n)));
        } while (!send_settle(o, id));
    }
    if (o->t) {
        o->t->is_ended = 1;
        o->t->n_users--;
    }
    if (o->to >= 0) volt_close(cx, o->to);
    if (o->file >= 0) volt_close(cx, o->file);
    if (o->path >= 0) is_path_used[o->path] = 0;
    volt_detach(&o->reader);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

#endif // VOLT_SIM_COPIES_H
