// SPDX-License-Identifier: MIT OR 0BSD
// Random programs: tasks that draw operations, among them starting further tasks, from the seed.
// Each operation checks volt's possible answers. Part of the simulation's main program.
#ifndef VOLT_SIM_GRAMMAR_H
#define VOLT_SIM_GRAMMAR_H

#include "guest.h"
#include "processes.h"

enum { FAN = 4, CHUNK = 48, PIPE_BYTES = 5 };

typedef struct job job;

// ---- leaves

// Sleeps, and counts the polls: only its end may wake it.
typedef struct op_sleep {
    volt_frame frame;
    int64_t d, rc;
    time_note t;
    uint64_t polls;
} op_sleep;
// Up to 12 days, or the longest time that the wheel of a small build bridges with few cascades.
static int64_t draw_sleep(void) {
    int bits = VOLT_WHEEL_BITS * VOLT_WHEEL_LEVELS;
    if (prog_below(40) == 0) return SIM_MS(1 + prog_below(1u << (bits < 30 ? bits + 1 : 30)));
    return 1000 + prog_below(1u << (4 + prog_below(21)));
}
static volt_poll sleep_run(volt_cx *cx, op_sleep *s, int id) {
    VOLT_BEGIN(cx, s);
    s->d = draw_sleep();
    note_sleep(&s->t, s->d);
    s->polls = prog.note[id].n_polls;
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->d));
    if (s->rc == 0)
        check_sleep(&s->t);
    else
        SIM_CHECK(s->rc == -ECANCELED);
    // once, and once more for a late wake-up of the wait before
    if (!may_be_cancelled(id) && !prog.note[id].has_waker && !prog.budget)
        SIM_CHECK(prog.note[id].n_polls - s->polls <= 2 + (uint64_t)prog.note[id].has_yielded);
    prog.note[id].has_yielded = 0;
    VOLT_END(s->rc);
}

typedef struct op_yield {
    volt_frame frame;
    int left;
    int64_t rc;
} op_yield;
static volt_poll yield_run(volt_cx *cx, op_yield *y) {
    VOLT_BEGIN(cx, y);
    for (y->left = 1 + (int)prog_below(4); y->left > 0; y->left--)
        VOLT_AWAIT(y->rc, volt_yield(cx));
    VOLT_END(y->rc);
}

typedef struct op_ticks {
    volt_frame frame;
    volt_interval every;
    int64_t start, n, rc;
    int left;
} op_ticks;
static volt_poll ticks_run(volt_cx *cx, op_ticks *k) {
    VOLT_BEGIN(cx, k);
    volt_interval_init(&k->every, 1 + (int64_t)prog_below(5000000));
    k->every.missed = (volt_missed)prog_below(3);
    k->start = sim_now();
    for (k->left = 3; k->left > 0; k->left--) {
        VOLT_AWAIT(k->rc, volt_interval_next(cx, &k->every));
        if (k->rc < 0) VOLT_RETURN(k->rc);
        SIM_CHECK(k->rc >= 1);
        k->n += k->rc;
        SIM_CHECK(k->every.missed == VOLT_MISSED_DELAY ||
                  sim_now() >= k->start + k->n * k->every.period_);
    }
    VOLT_END(0);
}

// ---- scopes over a leaf

// Cleanup that waits, as in a cancelled function: under a shield.
typedef struct op_tidy {
    volt_frame frame;
    volt_shield shield;
    op_sleep nap;
    int64_t rc, rest;
} op_tidy;
static volt_poll tidy_run(volt_cx *cx, op_tidy *o, int64_t d) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_sleep(cx, d));
    if (o->rc == -ECANCELED) {
        volt_shield_begin(cx, &o->shield, VOLT_NEVER);
        VOLT_AWAIT(o->rest, volt_sleep(cx, VOLT_MS(1)));
        SIM_CHECK(o->rest == 0);
        volt_shield_end(cx, &o->shield);
        VOLT_AWAIT(o->rest, volt_sleep(cx, VOLT_MS(1)));
        SIM_CHECK(o->rest == -ECANCELED);
    }
    VOLT_END(o->rc);
}

typedef struct op_within {
    volt_frame frame;
    volt_timer timer, inner;
    op_tidy tidy;
    int64_t d, limit, start, rc;
} op_within;
static volt_poll within_run(volt_cx *cx, op_within *w, int id) {
    VOLT_BEGIN(cx, w);
    w->d = 1000 + prog_below(1u << 23);
    w->limit = prog_below(1u << 23);
    w->start = sim_now();
    if (prog_below(2))
        VOLT_AWAIT(w->rc, volt_within(cx, &w->timer, w->limit, tidy_run(cx, &w->tidy, w->d)));
    else
        VOLT_AWAIT(w->rc, volt_within(cx, &w->timer, w->limit,
                                      volt_within(cx, &w->inner, w->d, volt_sleep_forever(cx))));
    SIM_CHECK(w->rc == 0 || w->rc == -ETIMEDOUT || w->rc == -ECANCELED);
    if (w->rc == 0) SIM_CHECK(sim_now() >= w->start + w->d);
    if (w->rc == -ETIMEDOUT) SIM_CHECK(sim_now() >= w->start + (w->limit < w->d ? w->limit : w->d));
    if (w->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    VOLT_END(w->rc == -ECANCELED ? w->rc : 0);
}

typedef struct op_select {
    volt_frame frame;
    volt_arm a, b, c;
    volt_token token;
    op_tidy tidy;
    op_yield yield;
    int64_t d, rc;
} op_select;
static volt_poll select_run(volt_cx *cx, op_select *s, int id) {
    VOLT_BEGIN(cx, s);
    s->d = 1000 + prog_below(1u << 22);
    if (prog_below(4) == 0) volt_token_cancel(&s->token);
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, tidy_run(cx, &s->tidy, s->d)),
                                  VOLT_ARM(&s->b, volt_token_wait(cx, &s->token)),
                                  VOLT_ARM(&s->c, yield_run(cx, &s->yield))));
    prog.note[id].has_yielded = 1;
    SIM_CHECK(s->a.fired + s->b.fired + s->c.fired <= 1 || s->rc == -ECANCELED);
    if (s->rc == -ECANCELED)
        SIM_CHECK(may_be_cancelled(id));
    else
        SIM_CHECK(s->rc >= 0 && s->rc <= 2);
    VOLT_END(s->rc < 0 ? s->rc : 0);
}
typedef struct op_all {
    volt_frame frame;
    volt_arm a, b;
    op_tidy x, y;
    int64_t rc;
} op_all;
static volt_poll all_run(volt_cx *cx, op_all *o, int id) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, VOLT_JOIN_ALL(VOLT_ARM(&o->a, tidy_run(cx, &o->x, 1000 + id)),
                                    VOLT_ARM(&o->b, tidy_run(cx, &o->y, VOLT_MS(1) + id))));
    if (o->rc == 0)
        SIM_CHECK(o->a.fired && o->b.fired);
    else
        SIM_CHECK(o->rc == -ECANCELED && may_be_cancelled(id));
    VOLT_END(o->rc);
}

// The same with an array of children: all, or the first that ends.
typedef struct op_each {
    volt_frame frame;
    int64_t rc;
    struct each_child {
        volt_frame frame;
        int64_t d, rc;
    } child[5];
    int is_any;
} op_each;
static volt_poll each_child_run(volt_cx *cx, void *arg) {
    struct each_child *c = (struct each_child *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_sleep(cx, c->d));
    VOLT_END(c->rc);
}
static volt_poll each_run(volt_cx *cx, op_each *o, int id) {
    VOLT_BEGIN(cx, o);
    for (int i = 0; i < 5; i++) o->child[i].d = 1000 + prog_below(1u << 21);
    o->is_any = (int)prog_below(2);
    if (o->is_any)
        VOLT_AWAIT(o->rc, volt_join_any(cx, VOLT_EACH(each_child_run, o->child)));
    else
        VOLT_AWAIT(o->rc, volt_join_all(cx, VOLT_EACH(each_child_run, o->child)));
    if (o->rc < 0)
        SIM_CHECK(o->rc == -ECANCELED && may_be_cancelled(id));
    else if (o->is_any)
        SIM_CHECK(volt_result(&o->child[o->rc].frame) == 0);
    for (int i = 0; i < 5; i++) (void)volt_result(&o->child[i].frame); // all have ended
    VOLT_END(o->rc < 0 ? o->rc : 0);
}

// A shield with a limit: after it cleanup is cut short.
typedef struct op_limit {
    volt_frame frame;
    volt_shield shield;
    int64_t rc, start, d;
} op_limit;
typedef struct op_limited {
    volt_frame frame;
    op_limit in;
    volt_timer timer;
    int64_t rc;
} op_limited;
static volt_poll limit_run(volt_cx *cx, op_limit *o) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_sleep_forever(cx));
    o->start = sim_now();
    o->d = 1000 + prog_below(3000000);
    volt_shield_begin(cx, &o->shield, o->d);
    VOLT_AWAIT(o->rc, volt_sleep(cx, VOLT_MS(2)));
    if (o->rc == 0)
        SIM_CHECK(sim_now() >= o->start + VOLT_MS(2));
    else
        SIM_CHECK(o->rc == -ECANCELED && sim_now() >= o->start + o->d);
    VOLT_END(-ECANCELED); // closes the shield as well
}
static volt_poll limited_run(volt_cx *cx, op_limited *o, int id) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, VOLT_MS(1), limit_run(cx, &o->in)));
    SIM_CHECK(o->rc == -ETIMEDOUT || (o->rc == -ECANCELED && may_be_cancelled(id)));
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// Frames within frames.
typedef struct op_nest {
    struct {
        volt_frame frame;
        int64_t rc;
    } level[6];
} op_nest;
static volt_poll nest_run(volt_cx *cx, op_nest *n, int depth) {
    VOLT_BEGIN(cx, &n->level[depth]);
    if (depth > 0)
        VOLT_AWAIT(n->level[depth].rc, nest_run(cx, n, depth - 1));
    else
        VOLT_AWAIT(n->level[depth].rc, volt_sleep(cx, VOLT_US(300)));
    VOLT_END(n->level[depth].rc);
}

// ---- tasks

static int job_spawn(volt_cx *cx, volt_handle *h, int id);
static int job_group_spawn(volt_cx *cx, volt_group *g, int id);

typedef struct op_spawn {
    volt_frame frame;
    volt_handle h[FAN];
    int id[FAN], n, i, rc;
    int64_t result;
} op_spawn;
static void spawn_some(volt_cx *cx, op_spawn *s) {
    int n = 1 + (int)prog_below(FAN);
    for (int i = 0; i < n; i++) {
        int id = note_task();
        if (id < 0) break;
        s->id[s->n] = id;
        if (job_spawn(cx, &s->h[s->n], id) == 0) s->n++;
    }
}
static void treat_child(op_spawn *s, int i) {
    uint32_t what = prog_below(8);
    int64_t result;
    if (what == 0) volt_detach(&s->h[i]);
    if (what == 1 || what == 2) {
        note_cancel(s->id[i]);
        volt_cancel(&s->h[i]);
    }
    if (what == 3 && volt_try_join(&s->h[i], &result) == 0) SIM_CHECK(result == s->id[i]);
}
static volt_poll spawn_run(volt_cx *cx, op_spawn *s, int id) {
    VOLT_BEGIN(cx, s);
    spawn_some(cx, s);
    for (s->i = 0; s->i < s->n; s->i++) {
        treat_child(s, s->i);
        if (!volt_handle_is_set(&s->h[s->i])) continue;
        VOLT_AWAIT(s->result, volt_join(cx, &s->h[s->i]));
        if (volt_handle_is_set(&s->h[s->i])) { // this task is the one that is cancelled
            SIM_CHECK(s->result == -ECANCELED && may_be_cancelled(id));
            for (; s->i < s->n; s->i++) volt_detach(&s->h[s->i]);
            VOLT_RETURN(-ECANCELED);
        }
        SIM_CHECK(s->result == s->id[s->i]);
    }
    VOLT_END(0);
}

typedef struct op_group {
    volt_frame frame;
    volt_group g;
    int id[FAN], n, collects, got;
    uint64_t nth;
    int64_t rc;
} op_group;
static void group_fill(volt_cx *cx, op_group *o) {
    o->collects = (int)prog_below(2);
    if (o->collects) volt_group_collect(&o->g);
    for (int i = 0, n = 1 + (int)prog_below(FAN); i < n; i++) {
        int id = note_task();
        if (id < 0) break;
        o->id[o->n] = id;
        if (job_group_spawn(cx, &o->g, id) == 0) o->n++;
    }
}
static void group_end_begins(op_group *o) {
    for (int i = 0; i < o->n; i++) note_cancel(o->id[i]);
}
static volt_poll group_run(volt_cx *cx, op_group *o, int id) {
    VOLT_BEGIN(cx, o);
    group_fill(cx, o);
    if (prog_below(3) == 0) {
        group_end_begins(o);
        volt_group_cancel(&o->g);
    }
    if (o->collects) {
        for (;;) {
            VOLT_AWAIT(o->rc, volt_group_next(cx, &o->g, &o->nth));
            if (o->rc < 0) break;
            SIM_CHECK(o->nth < (uint64_t)o->n && o->rc == o->id[o->nth]);
            o->got++;
        }
        SIM_CHECK((o->rc == -ENOENT && o->got == o->n) ||
                  (o->rc == -ECANCELED && may_be_cancelled(id)));
    } else if (prog_below(2)) {
        VOLT_AWAIT(o->rc, volt_group_wait(cx, &o->g));
        SIM_CHECK(o->rc == 0 || (o->rc == -ECANCELED && may_be_cancelled(id)));
    }
    group_end_begins(o);
    VOLT_AWAIT(o->rc, volt_group_close(cx, &o->g));
    SIM_CHECK(o->rc == 0);
    for (int i = 0; i < o->n; i++) SIM_CHECK(prog.note[o->id[i]].n_ended == 1);
    VOLT_END(0);
}

// Enough children to overflow queues and slabs.
typedef struct grain {
    volt_frame frame;
    int *n_ended;
} grain;
static volt_poll grain_run(volt_cx *cx, void *arg) {
    grain *g = (grain *)arg;
    VOLT_BEGIN(cx, g);
    if (prog_below(4) == 0) VOLT_AWAIT(volt_yield(cx));
    ++*g->n_ended;
    VOLT_END(0);
}
typedef struct op_burst {
    volt_frame frame;
    volt_group g;
    int n_spawned, n_ended;
} op_burst;
static volt_poll burst_run(volt_cx *cx, op_burst *o) {
    VOLT_BEGIN(cx, o);
    for (int n = 20 << prog_below(6); n > 0; n--) {
        grain g;
        memset(&g, 0, sizeof g);
        g.n_ended = &o->n_ended;
        int rc = VOLT_GROUP_SPAWN(cx, &o->g, grain_run, g);
        SIM_CHECK(rc == 0 || prog.may_fail || prog.is_ending);
        o->n_spawned += rc == 0;
        prog.n_spawned++;
    }
    VOLT_AWAIT(volt_group_close(cx, &o->g));
    SIM_CHECK(o->n_ended == o->n_spawned);
    VOLT_END(0);
}

// A task filled in place, larger than any slab's slots; started or released.
typedef struct giant {
    volt_frame frame;
    int id;
    unsigned char body[12000];
} giant;
static volt_poll giant_run(volt_cx *cx, void *arg) {
    giant *g = (giant *)arg;
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(volt_yield(cx));
    check_bytes(g->body, sizeof g->body, (uint64_t)g->id, 0);
    VOLT_END(g->id);
}
typedef struct op_giant {
    volt_frame frame;
    volt_handle h;
    int id;
    int64_t rc;
} op_giant;
static void giant_start(volt_cx *cx, op_giant *o, int id) {
    giant *g = (giant *)volt_task_create(volt_cx_rt(cx), giant_run, sizeof(giant));
    SIM_CHECK(g || prog.may_fail || prog.is_ending);
    if (!g) return;
    g->id = id;
    fill_bytes(g->body, sizeof g->body, (uint64_t)id, 0);
    if (prog_below(3) == 0)
        volt_task_destroy(g);
    else
        volt_task_start(g, &o->h);
}
static volt_poll giant_op(volt_cx *cx, op_giant *o, int id) {
    VOLT_BEGIN(cx, o);
    giant_start(cx, o, id);
    if (!volt_handle_is_set(&o->h)) VOLT_RETURN(0);
    VOLT_AWAIT(o->rc, volt_join(cx, &o->h));
    if (!volt_handle_is_set(&o->h)) SIM_CHECK(o->rc == id);
    volt_detach(&o->h);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// A child that waits until it is stopped: by its handle, by a token, in two ways.
typedef struct sleeper {
    volt_frame frame;
    volt_token *stop;
    volt_token_link link;
    int id, way;
    int64_t rc;
} sleeper;
static volt_poll sleeper_body(volt_cx *cx, sleeper *s) {
    VOLT_BEGIN(cx, s);
    if (s->way == 0)
        VOLT_AWAIT(s->rc, volt_token_wait(cx, s->stop));
    else if (s->way == 1)
        VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, s->stop, volt_sleep_forever(cx)));
    else
        VOLT_AWAIT(s->rc, volt_sleep_forever(cx));
    SIM_CHECK(s->rc == (s->way == 0 ? s->rc : -ECANCELED));
    VOLT_END(s->id);
}
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    int id = s->id;
    note_poll_begin(id);
    volt_poll p = sleeper_body(cx, s);
    note_poll_end(id, p);
    return p;
}
typedef struct op_stop {
    volt_frame frame;
    volt_token root, token;
    volt_handle h[2];
    volt_shield shield;
    int id[2], i, rc;
    int64_t result;
} op_stop;
static void stop_spawn(volt_cx *cx, op_stop *o) {
    volt_token_init(&o->token, &o->root);
    for (int i = 0; i < 2; i++) {
        int id = o->id[i] = note_task();
        if (id < 0) return;
        sleeper s;
        memset(&s, 0, sizeof s);
        s.id = id;
        s.stop = &o->token;
        s.way = (int)prog_below(3);
        prog.note[id].spawned_at = prog.n_polls;
        prog.note[id].is_cancelled = s.way == 2;
        note_spawned(id, VOLT_SPAWN(cx, &o->h[i], sleeper_run, s));
    }
}
// The children borrow the parent's token: they must end before it does, in any case.
static volt_poll stop_run(volt_cx *cx, op_stop *o) {
    VOLT_BEGIN(cx, o);
    stop_spawn(cx, o);
    VOLT_AWAIT(o->rc, volt_sleep(cx, 1000 + prog_below(1u << 21)));
    volt_token_cancel(prog_below(2) ? &o->root : &o->token);
    for (int i = 0; i < 2; i++)
        if (volt_handle_is_set(&o->h[i]) && prog.note[o->id[i]].is_cancelled) volt_cancel(&o->h[i]);
    volt_shield_begin(cx, &o->shield, VOLT_NEVER);
    for (o->i = 0; o->i < 2; o->i++) {
        if (!volt_handle_is_set(&o->h[o->i])) continue;
        VOLT_AWAIT(o->result, volt_join(cx, &o->h[o->i]));
        SIM_CHECK(o->result == o->id[o->i]);
    }
    volt_shield_end(cx, &o->shield);
    volt_token_deinit(&o->token);
    volt_token_deinit(&o->root);
    VOLT_END(o->rc);
}

// ---- descriptors

static int is_network_error(int64_t rc) {
    return rc == 0 || rc == -EPIPE || rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -EMFILE ||
           rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC;
}
// Writes some bytes, reads them back: an echo.
typedef struct op_echo {
    volt_frame frame;
    int fd, left;
    size_t n;
    uint64_t at;
    int64_t rc;
    unsigned char out[CHUNK], in[CHUNK];
} op_echo;
static void echo_draw(op_echo *e, int id) {
    uint32_t most = kernel.cap < CHUNK ? kernel.cap : CHUNK;
    e->n = 1 + prog_below(most);
    fill_bytes(e->out, e->n, (uint64_t)id, e->at);
    memset(e->in, 0, sizeof e->in);
}
static volt_poll echo_rounds(volt_cx *cx, op_echo *e, int id) {
    VOLT_BEGIN(cx, e);
    for (e->left = 1 + (int)prog_below(6); e->left > 0; e->left--) {
        echo_draw(e, id);
        VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd, e->out, e->n));
        if (e->rc < 0) VOLT_RETURN(e->rc);
        SIM_CHECK(e->rc == (int64_t)e->n);
        VOLT_AWAIT(e->rc, volt_read_exact(cx, e->fd, e->in, e->n));
        if (e->rc < 0) VOLT_RETURN(e->rc);
        check_bytes(e->in, e->n, (uint64_t)id, e->at);
        e->at += e->n;
    }
    VOLT_END(1);
}
static void check_network(int64_t rc, int id) {
    if (rc > 0 || (rc == -ECANCELED && may_be_cancelled(id))) return;
    SIM_CHECK(is_network_error(rc) || rc == -EAGAIN);
    SIM_CHECK(prog.may_fail || prog.is_ending);
}
typedef struct op_tcp {
    volt_frame frame;
    volt_addr to;
    op_echo echo;
    int64_t rc;
} op_tcp;
static volt_poll tcp_run(volt_cx *cx, op_tcp *o, int id) {
    VOLT_BEGIN(cx, o);
    char text[32];
    if (!prog.port) VOLT_RETURN(0);
    snprintf(text, sizeof text, "127.0.0.1:%d", prog.port);
    SIM_CHECK(volt_addr_parse(&o->to, text) == 0);
    VOLT_AWAIT(o->rc, volt_connect(cx, &o->to));
    if (o->rc >= 0) {
        o->echo.fd = (int)o->rc;
        VOLT_AWAIT(o->rc, echo_rounds(cx, &o->echo, id));
        if (prog_below(8) == 0) volt_set_linger(o->echo.fd, 0);
        volt_close(cx, o->echo.fd);
    }
    check_network(o->rc, id);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// Sends back all it reads, until the other end closes.
typedef struct echoer {
    volt_frame frame;
    int id, fd;
    int64_t n;
    unsigned char buf[64];
} echoer;
static volt_poll echoer_body(volt_cx *cx, echoer *e) {
    VOLT_BEGIN(cx, e);
    for (;;) {
        VOLT_AWAIT(e->n, volt_read(cx, e->fd, e->buf, sizeof e->buf));
        if (e->n <= 0) break;
        VOLT_AWAIT(e->n, volt_write_all(cx, e->fd, e->buf, (size_t)e->n));
        if (e->n < 0) break;
    }
    volt_close(cx, e->fd);
    VOLT_END(e->id);
}
static volt_poll echoer_run(volt_cx *cx, void *arg) {
    echoer *e = (echoer *)arg;
    int id = e->id;
    note_poll_begin(id);
    volt_poll p = echoer_body(cx, e);
    note_poll_end(id, p);
    return p;
}
static echoer make_echoer(int id, int fd) {
    echoer e;
    memset(&e, 0, sizeof e);
    e.id = id;
    e.fd = fd;
    prog.note[id].spawned_at = prog.n_polls;
    return e;
}
typedef struct op_pair {
    volt_frame frame;
    op_echo echo;
    volt_handle h;
    int fd[2];
    int64_t rc;
} op_pair;
static int pair_start(volt_cx *cx, op_pair *o) {
    int id = note_task();
    if (id < 0) return 0;
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, o->fd) < 0) return 0;
    echoer e = make_echoer(id, o->fd[1]);
    int rc = VOLT_SPAWN(cx, prog_below(2) ? &o->h : NULL, echoer_run, e);
    note_spawned(id, rc);
    if (rc == 0) return 1;
    volt_close(cx, o->fd[0]);
    volt_close(cx, o->fd[1]);
    return 0;
}
static volt_poll pair_run(volt_cx *cx, op_pair *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!pair_start(cx, o)) VOLT_RETURN(0);
    o->echo.fd = o->fd[0];
    VOLT_AWAIT(o->rc, echo_rounds(cx, &o->echo, id));
    volt_close(cx, o->fd[0]);
    check_network(o->rc, id);
    if (volt_handle_is_set(&o->h) && o->rc >= 0) VOLT_AWAIT(o->rc, volt_join(cx, &o->h));
    volt_detach(&o->h);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// A pipe that another library reads: a foreign thread writes one byte at a time, then closes.
typedef struct op_pipe {
    volt_frame frame;
    int rd, id;
    int64_t rc, n;
    uint64_t at;
    unsigned char byte;
} op_pipe;
static void pipe_writer(void *arg) {
    int fd = (int)(intptr_t)arg;
    for (uint64_t at = 0; at < PIPE_BYTES; at++) {
        unsigned char byte = stream_byte((uint64_t)fd, at);
        if (sim_below(2)) sim_nap(1 + sim_below(2000000));
        while (sim_write(fd, &byte, 1) < 0)
            if (errno != EINTR) goto gone; // the reader has left
    }
gone:
    sim_close(fd);
}
static int pipe_open(op_pipe *o) {
    int fd[2];
    if (!may_start_thread() || sim_pipe2(fd, 0) < 0) return 0;
    sim_fcntl(fd[0], F_SETFL, O_NONBLOCK);
    o->rd = fd[0];
    o->id = fd[1];
    start_thread(pipe_writer, (void *)(intptr_t)fd[1]);
    return 1;
}
static volt_poll pipe_run(volt_cx *cx, op_pipe *o) {
    VOLT_BEGIN(cx, o);
    if (!pipe_open(o)) VOLT_RETURN(0);
    for (;;) {
        VOLT_AWAIT(o->rc, volt_readable(cx, o->rd));
        if (o->rc < 0) break;
        o->n = sim_read(o->rd, &o->byte, 1);
        if (o->n == 0) break;
        if (o->n < 0)
            SIM_CHECK(errno == EAGAIN || errno == EINTR);
        else
            check_bytes(&o->byte, 1, (uint64_t)o->id, o->at++);
    }
    if (o->rc == 0) SIM_CHECK(o->at == PIPE_BYTES);
    volt_close(cx, o->rd);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// The same through a poll set: the worker's epoll watches another one.
typedef struct op_set {
    volt_frame frame;
    volt_pollset set;
    volt_pollev ev[4];
    int fd[2], n_open;
    uint64_t at[2];
    int64_t rc;
} op_set;
static int set_open(op_set *o) {
    if (volt_pollset_open(&o->set) < 0) return 0;
    while (o->n_open < 2 && may_start_thread()) {
        op_pipe p;
        memset(&p, 0, sizeof p);
        if (!pipe_open(&p)) break;
        if (volt_pollset_set(&o->set, p.rd, VOLT_IN) < 0) {
            sim_close(p.rd);
            break;
        }
        o->fd[o->n_open++] = p.rd;
    }
    return 1;
}
// One byte, or the end.
static void set_take(op_set *o, int fd) {
    unsigned char byte;
    int64_t n = sim_read(fd, &byte, 1);
    int i = fd == o->fd[1];
    SIM_CHECK(fd == o->fd[i]);
    if (n < 0) SIM_CHECK(errno == EAGAIN || errno == EINTR);
    if (n == 1) o->at[i]++;
    if (n != 0) return;
    SIM_CHECK(o->at[i] == PIPE_BYTES);
    SIM_CHECK(volt_pollset_set(&o->set, fd, 0) == 0);
    sim_close(fd);
    o->fd[i] = -1;
    o->n_open--;
}
static volt_poll set_run(volt_cx *cx, op_set *o, int id) {
    VOLT_BEGIN(cx, o);
    o->fd[0] = o->fd[1] = -1;
    if (!set_open(o)) VOLT_RETURN(0);
    while (o->n_open > 0) {
        VOLT_AWAIT(o->rc, volt_pollset_wait(cx, &o->set, o->ev, 4));
        if (o->rc < 0) break;
        for (int64_t i = 0; i < o->rc; i++) set_take(o, o->ev[i].fd);
    }
    for (int i = 0; i < 2; i++)
        if (o->fd[i] >= 0) sim_close(o->fd[i]);
    volt_pollset_close(cx, &o->set);
    if (o->rc < 0) SIM_CHECK(prog.may_fail || (o->rc == -ECANCELED && may_be_cancelled(id)));
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// Both directions of a descriptor that another library owns, waited for at once: each wake-up of
// one must leave the other armed. A foreign thread fills and drains the other end.
typedef struct op_both {
    volt_frame frame;
    volt_arm a, b;
    int fd, peer, n;
    int64_t rc, in, out;
} op_both;
static int both_open(op_both *o) {
    int fd[2];
    if (!may_start_thread() || sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) return 0;
    sim_fcntl(fd[0], F_SETFL, O_NONBLOCK);
    sim_fcntl(fd[1], F_SETFL, O_NONBLOCK);
    o->fd = fd[0];
    start_thread(both_peer, (void *)(intptr_t)fd[1]);
    return 1;
}
static void both_fill(op_both *o) { // until it would block: then only the peer can make room
    char buf[64] = "";
    while (sim_write(o->fd, buf, sizeof buf) > 0 || errno == EINTR) {}
}
static volt_poll both_run(volt_cx *cx, op_both *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!both_open(o)) VOLT_RETURN(0);
    for (o->in = 1; o->in != 0;) {
        both_fill(o);
        VOLT_AWAIT(o->rc, VOLT_SELECT(VOLT_ARM(&o->a, volt_readable(cx, o->fd)),
                                      VOLT_ARM(&o->b, volt_writable(cx, o->fd))));
        if (o->rc < 0) break;
        if (o->a.value < 0 && o->b.value < 0) break; // out of memory, or cancelled
        char buf[16];
        o->in = sim_read(o->fd, buf, sizeof buf);
        if (o->in < 0 && errno != EAGAIN && errno != EINTR) break;
    }
    volt_close(cx, o->fd);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// A descriptor that is closed while two tasks wait on it, by its owner or by a foreign thread. They
// are told, and read nothing of the file that gets the number next.
typedef struct victim {
    volt_frame frame;
    int id, fd;
    unsigned char buf[8]; // larger than any message
    int how;
    int64_t rc, n;
} victim;
enum { VICTIM_READS, VICTIM_CALLS, VICTIM_WAITS, N_VICTIMS };
static int64_t victim_call(int fd, void *arg) {
    victim *v = (victim *)arg;
    int64_t n = sim_read(fd, v->buf, sizeof v->buf);
    return n < 0 ? -errno : n;
}
static volt_poll victim_wait(volt_cx *cx, victim *v) {
    if (v->how == VICTIM_CALLS) return volt_io(cx, v->fd, VOLT_IN, victim_call, v);
    if (v->how == VICTIM_WAITS) return volt_read_ready(cx, v->fd);
    return volt_read_exact(cx, v->fd, v->buf, sizeof v->buf);
}
static volt_poll victim_body(volt_cx *cx, victim *v) {
    VOLT_BEGIN(cx, v);
    VOLT_AWAIT(v->rc, victim_wait(cx, v));
    v->n = v->how == VICTIM_READS ? volt_progress(&v->frame) : v->rc;
    for (int64_t i = 0; i < v->n; i++) SIM_CHECK(v->buf[i] == 0xee); // only bytes of the other end
    SIM_CHECK(v->rc == -EBADF || (v->rc == -ECANCELED && may_be_cancelled(v->id)) ||
              prog.may_fail || (v->how == VICTIM_CALLS && v->rc > 0) ||
              (v->how == VICTIM_WAITS && v->rc == 0));
    VOLT_END(v->id);
}
static volt_poll victim_run(volt_cx *cx, void *arg) {
    victim *v = (victim *)arg;
    int id = v->id;
    note_poll_begin(id);
    volt_poll p = victim_body(cx, v);
    note_poll_end(id, p);
    return p;
}
typedef struct op_close {
    volt_frame frame;
    volt_handle h[2];
    volt_shield shield;
    int fd[2], id[2], i, n;
    int64_t rc;
} op_close;
typedef struct closer {
    volt_rt *rt;
    int fd;
} closer;
static void close_outside(void *arg) {
    closer c = *(closer *)arg;
    free(arg);
    sim_nap(1 + sim_below(300000));
    volt_rt_close(c.rt, c.fd);
}
static void close_somehow(volt_cx *cx, int fd) {
    if (!prog.rt || !may_start_thread() || prog_below(2)) { // in volt_run threads may outlive it
        volt_close(cx, fd);
        return;
    }
    closer *c = (closer *)malloc(sizeof *c);
    if (!c) abort();
    c->rt = volt_cx_rt(cx);
    c->fd = fd;
    start_thread(close_outside, c);
}
static int close_open(volt_cx *cx, op_close *o) {
    if (sim_socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, o->fd) < 0) return 0;
    for (o->n = 0; o->n < 2; o->n++) {
        victim v;
        memset(&v, 0, sizeof v);
        v.id = o->id[o->n] = note_task();
        v.fd = o->fd[0];
        v.how = (int)prog_below(N_VICTIMS);
        if (v.id < 0) break;
        prog.note[v.id].spawned_at = prog.n_polls;
        note_spawned(v.id, VOLT_SPAWN(cx, &o->h[o->n], victim_run, v));
        if (!volt_handle_is_set(&o->h[o->n])) break;
    }
    return 1;
}
static int close_is_awaited(const op_close *o) {
    for (int i = 0; i < o->n; i++)
        if (prog.note[o->id[i]].n_polls == 0 || prog.note[o->id[i]].is_polling) return 0;
    return 1;
}
static volt_poll close_run(volt_cx *cx, op_close *o) {
    VOLT_BEGIN(cx, o);
    if (!close_open(cx, o)) VOLT_RETURN(0);
    // Later they could not distinguish the files. Sleeps, since a task that only yields lets time
    // advance by too little for a worker that computes.
    volt_shield_begin(cx, &o->shield, VOLT_NEVER);
    for (o->i = 0; !close_is_awaited(o); o->i += o->i < 10)
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(5) << o->i));
    volt_shield_end(cx, &o->shield);
    for (o->i = (int)prog_below(4); o->i > 0; o->i--) {
        sim_write(o->fd[1], "\xee", 1);
        VOLT_AWAIT(volt_yield(cx));
    }
    close_somehow(cx, o->fd[0]);
    volt_shield_begin(cx, &o->shield, VOLT_NEVER);
    for (o->i = 0; o->i < o->n; o->i++) VOLT_AWAIT(volt_join(cx, &o->h[o->i]));
    volt_shield_end(cx, &o->shield);
    sim_close(o->fd[1]);
    VOLT_END(0);
}

// Vectors through a socket, and a pipe of volt's own (which may raise SIGPIPE).
typedef struct op_vector {
    volt_frame frame;
    int fd[2];
    struct iovec v[2];
    unsigned char out[2][6], in[12];
    uint64_t sent, got;
    int64_t rc, n;
} op_vector;
static void vector_point(op_vector *o, int id) {
    fill_bytes(&o->out[0][0], sizeof o->out, (uint64_t)id, o->sent);
    for (int i = 0; i < 2; i++) {
        o->v[i].iov_base = o->out[i];
        o->v[i].iov_len = i == 0 ? prog_below(2) * 6 : 6;
    }
    if (o->v[0].iov_len == 0) o->v[1].iov_base = o->out[0];
}
static volt_poll vector_run(volt_cx *cx, op_vector *o, int id) {
    VOLT_BEGIN(cx, o);
    if (prog_below(2) ? sim_pipe2(o->fd, 0) < 0
                      : sim_socketpair(AF_UNIX, SOCK_STREAM, 0, o->fd) < 0)
        VOLT_RETURN(0);
    while (o->sent < 20) {
        vector_point(o, id);
        VOLT_AWAIT(o->rc, volt_writev(cx, o->fd[1], o->v, 2));
        if (o->rc < 0) break;
        o->sent += (uint64_t)o->rc;
        while (o->got < o->sent) {
            o->v[0].iov_base = o->in;
            o->v[0].iov_len = sizeof o->in;
            VOLT_AWAIT(o->rc, volt_readv(cx, o->fd[0], o->v, 1));
            if (o->rc <= 0) break;
            check_bytes(o->in, (size_t)o->rc, (uint64_t)id, o->got);
            o->got += (uint64_t)o->rc;
        }
        if (o->rc < 0) break;
    }
    volt_close(cx, o->fd[0]);
    if (o->rc >= 0) { // the reader has closed
        o->v[0].iov_base = o->out[0];
        o->v[0].iov_len = 1;
        VOLT_AWAIT(o->n, volt_writev(cx, o->fd[1], o->v, 1));
        SIM_CHECK(o->n == -EPIPE || (o->n == -ECANCELED && may_be_cancelled(id)));
    }
    volt_close(cx, o->fd[1]);
    if (o->rc < 0) check_network(o->rc, id);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// A number that is closed while its file lives on under another one, and reused at once: stale
// events of the old file must not reach the new one.
typedef struct op_reuse {
    volt_frame frame;
    op_pair first, second;
    int dup;
    int64_t rc;
} op_reuse;
static volt_poll reuse_run(volt_cx *cx, op_reuse *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!pair_start(cx, &o->first)) VOLT_RETURN(0);
    o->dup = sim_dup(o->first.fd[0]);
    o->first.echo.fd = o->first.fd[0];
    VOLT_AWAIT(o->rc, echo_rounds(cx, &o->first.echo, id));
    check_network(o->rc, id);
    volt_close(cx, o->first.fd[0]);
    VOLT_AWAIT(o->rc, pair_run(cx, &o->second, id));
    if (o->dup >= 0) sim_close(o->dup);
    volt_detach(&o->first.h);
    VOLT_END(o->rc);
}

// A connection by name: dead addresses before and after those of the server.
typedef struct op_dial {
    volt_frame frame;
    volt_dial dial;
    op_echo echo;
    char port[8];
    const char *host;
    int64_t start, drift, rc;
} op_dial;
// An address that refuses is followed by the next one at once, not after the stagger of 250 ms. A
// server with a short queue makes its clients wait.
static void check_dial_time(const op_dial *o) {
    int64_t took = sim_now() - o->start - (sim.drift - o->drift);
    if (!prog.is_punctual || prog.computes || kernel.somaxconn < 128 || !can_lend()) return;
    if (took > SIM_MS(200)) sim_fail("%" PRId64 " ns to connect to %s", took, o->host);
}
static void check_dialled(const op_dial *o, int id) {
    int is_live = strchr(o->host, '1') != NULL;
    if (o->rc == -ECONNREFUSED && !is_live) return;
    if (o->rc < 0 && !is_network_error(o->rc)) check_unnamed(o->rc, id);
    else check_network(o->rc, id);
}
static volt_poll dial_run(volt_cx *cx, op_dial *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!prog.port) VOLT_RETURN(0);
    snprintf(o->port, sizeof o->port, "%d", prog.port);
    o->host = host_names[prog_below(6)];
    o->start = sim_now();
    o->drift = sim.drift;
    VOLT_AWAIT(o->rc, volt_tcp_connect(cx, &o->dial, o->host, o->port));
    check_dialled(o, id);
    check_dial_time(o);
    if (o->rc >= 0) {
        o->echo.fd = (int)o->rc;
        VOLT_AWAIT(o->rc, echo_rounds(cx, &o->echo, id));
        volt_close(cx, o->echo.fd);
        check_network(o->rc, id);
    }
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- wakers: a foreign thread wakes; the task must receive it, and stays until it has
typedef struct bell {
    volt_waker w;
    int rung, n;
} bell;
typedef struct op_waker {
    volt_frame frame;
    volt_shield shield;
    bell bell;
    int64_t rc;
} op_waker;
static void bell_ringer(void *arg) {
    bell *b = (bell *)arg;
    volt_waker w = b->w;
    for (int i = 0; i < 3; i++) {
        if (sim_below(2)) sim_nap(1 + sim_below(500000));
        __atomic_add_fetch(&b->n, 1, __ATOMIC_RELEASE);
        volt_wake(w);
    }
    __atomic_store_n(&b->rung, 1, __ATOMIC_RELEASE); // *b may be gone from here on
    volt_wake(w);
    volt_waker_release(w);
}
static volt_poll bell_wait(volt_cx *cx, const bell *b) {
    if (__atomic_load_n(&b->rung, __ATOMIC_ACQUIRE)) return volt_ready(0);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
static volt_poll waker_run(volt_cx *cx, op_waker *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!may_start_thread()) VOLT_RETURN(0);
    prog.note[id].has_waker = 1;
    o->bell.w = volt_waker_retain(cx);
    start_thread(bell_ringer, &o->bell);
    VOLT_AWAIT(o->rc, bell_wait(cx, &o->bell));
    volt_shield_begin(cx, &o->shield, VOLT_NEVER);
    VOLT_AWAIT(bell_wait(cx, &o->bell)); // before the bell's memory is freed
    volt_shield_end(cx, &o->shield);
    SIM_CHECK(o->bell.n == 3);
    VOLT_END(o->rc);
}

// ---- the other runtime
typedef struct op_across {
    volt_frame frame;
    volt_handle h;
    int id;
    int64_t rc;
} op_across;
static volt_poll across_run(volt_cx *cx, op_across *o);

// ---- a task: draws operations

#define OPS(X_)                                                                                    \
    X_(SLEEP, 6) X_(YIELD, 4) X_(TICKS, 1) X_(WITHIN, 4) X_(SELECT, 3) X_(ALL, 2) X_(NEST, 2)      \
    X_(SPAWN, 7) X_(GROUP, 3) X_(STOP, 3) X_(TCP, 5) X_(PAIR, 4) X_(PIPE, 2) X_(WAKER, 2)          \
    X_(ACROSS, 2) X_(COMPUTE, 1) X_(SET, 2) X_(REUSE, 3) X_(EACH, 2) X_(LIMITED, 2) X_(BURST, 1)   \
    X_(GIANT, 1) X_(BOTH, 2) X_(VECTOR, 2) X_(CLOSE, 4) X_(JOB, 4) X_(JOBS, 2) X_(PLACE, 4)        \
    X_(FILES, 2) X_(NAME, 3) X_(DIAL, 2) X_(TURN, 20) X_(PACKETS, 5) X_(TRICKLE, 6)                \
    X_(DUO, 2) X_(COPY, 4) X_(RELAY, 3) X_(SEND, 3) X_(LINES, 6) X_(SIGNALS, 2) X_(PROCESS, 4)     \
    X_(CAPTURE, 3) X_(PONG, 3)
enum {
#define OP_ENUM(name_, weight_) OP_##name_,
    OPS(OP_ENUM) N_OPS
};
static const char *const op_names[] = {
#define OP_NAME(name_, weight_) #name_,
    OPS(OP_NAME)};
static const uint32_t op_weights[] = {
#define OP_WEIGHT(name_, weight_) weight_,
    OPS(OP_WEIGHT)};
struct job {
    volt_frame frame;
    int id, left, op, depth;
    int64_t rc;
    union {
        op_sleep sleep;
        op_yield yield;
        op_ticks ticks;
        op_within within;
        op_select select;
        op_all all;
        op_nest nest;
        op_spawn spawn;
        op_group group;
        op_stop stop;
        op_tcp tcp;
        op_pair pair;
        op_pipe pipe;
        op_waker waker;
        op_across across;
        op_set set;
        op_reuse reuse;
        op_each each;
        op_limited limited;
        op_burst burst;
        op_giant giant;
        op_both both;
        op_vector vector;
        op_close close;
        op_job job;
        op_jobs jobs;
        op_files files;
        op_name name;
        op_dial dial;
        op_turns turns;
        op_packets packets;
        op_trickle trickle;
        op_duo duo;
        op_copy copy;
        op_relay relay;
        op_send send;
        op_lines lines;
        op_signals signals;
        op_process process;
        op_capture capture;
        op_pong pong;
    } u;
};
static int draw_op(void) {
    uint32_t sum = 0, x;
    for (int i = 0; i < N_OPS; i++) sum += op_weights[i];
    x = prog_below(sum);
    int op = 0;
    while (x >= op_weights[op]) x -= op_weights[op++];
    int needs_rt = op == OP_WAKER || op == OP_ACROSS; // a runtime that outlives its last task
    if (op == OP_COMPUTE && !prog.computes) op = OP_YIELD;
    return needs_rt && !prog.rt ? OP_SLEEP : op;
}
static volt_poll op_run(volt_cx *cx, job *j) {
    switch (j->op) {
    case OP_YIELD: return yield_run(cx, &j->u.yield);
    case OP_TICKS: return ticks_run(cx, &j->u.ticks);
    case OP_WITHIN: return within_run(cx, &j->u.within, j->id);
    case OP_SELECT: return select_run(cx, &j->u.select, j->id);
    case OP_ALL: return all_run(cx, &j->u.all, j->id);
    case OP_NEST: return nest_run(cx, &j->u.nest, j->depth);
    case OP_SPAWN: return spawn_run(cx, &j->u.spawn, j->id);
    case OP_GROUP: return group_run(cx, &j->u.group, j->id);
    case OP_STOP: return stop_run(cx, &j->u.stop);
    case OP_TCP: return tcp_run(cx, &j->u.tcp, j->id);
    case OP_PAIR: return pair_run(cx, &j->u.pair, j->id);
    case OP_PIPE: return pipe_run(cx, &j->u.pipe);
    case OP_WAKER: return waker_run(cx, &j->u.waker, j->id);
    case OP_EACH: return each_run(cx, &j->u.each, j->id);
    case OP_LIMITED: return limited_run(cx, &j->u.limited, j->id);
    case OP_BURST: return burst_run(cx, &j->u.burst);
    case OP_GIANT: return giant_op(cx, &j->u.giant, j->id);
    case OP_BOTH: return both_run(cx, &j->u.both, j->id);
    case OP_VECTOR: return vector_run(cx, &j->u.vector, j->id);
    case OP_CLOSE: return close_run(cx, &j->u.close);
    case OP_SET: return set_run(cx, &j->u.set, j->id);
    case OP_REUSE: return reuse_run(cx, &j->u.reuse, j->id);
    case OP_ACROSS: return across_run(cx, &j->u.across);
    case OP_JOB: return job_op(cx, &j->u.job, j->id);
    case OP_JOBS: return jobs_op(cx, &j->u.jobs, j->id);
    case OP_FILES: return files_run(cx, &j->u.files, j->id);
    case OP_NAME: return name_run(cx, &j->u.name, j->id);
    case OP_DIAL: return dial_run(cx, &j->u.dial, j->id);
    case OP_TURN: return turns_run(cx, &j->u.turns, j->id);
    case OP_PACKETS: return packets_run(cx, &j->u.packets, j->id);
    case OP_TRICKLE: return trickle_op(cx, &j->u.trickle, j->id);
    case OP_DUO: return duo_run(cx, &j->u.duo, j->id);
    case OP_COPY: return copy_run(cx, &j->u.copy, j->id);
    case OP_RELAY: return relay_run(cx, &j->u.relay, j->id);
    case OP_SEND: return send_run(cx, &j->u.send, j->id);
    case OP_LINES: return lines_run(cx, &j->u.lines, j->id);
    case OP_SIGNALS: return signals_run(cx, &j->u.signals, j->id);
    case OP_PROCESS: return process_run(cx, &j->u.process, j->id);
    case OP_CAPTURE: return capture_run(cx, &j->u.capture, j->id);
    case OP_PONG: return pong_op(cx, &j->u.pong, j->id);
    default: return sleep_run(cx, &j->u.sleep, j->id);
    }
}
static volt_poll job_body(volt_cx *cx, job *j) {
    VOLT_BEGIN(cx, j);
    for (; j->left > 0; j->left--) {
        memset(&j->u, 0, sizeof j->u);
        j->op = draw_op();
        j->depth = (int)prog_below(6);
        sim__trace("task %d: %s", j->id, op_names[j->op]);
        if (j->op == OP_COMPUTE) {
            sim_compute(prog_below(3000000));
            continue;
        }
        if (j->op == OP_PLACE) {
            call_in_place(cx);
            continue;
        }
        VOLT_AWAIT(j->rc, op_run(cx, j));
        if (j->rc == -ECANCELED) {
            SIM_CHECK(may_be_cancelled(j->id));
            break;
        }
    }
    VOLT_END(j->id);
}
static volt_poll job_run(volt_cx *cx, void *arg) {
    job *j = (job *)arg;
    int id = j->id;
    note_poll_begin(id);
    check_options(cx, id);
    volt_poll p = job_body(cx, j);
    note_poll_end(id, p);
    return p;
}
static job make_job(int id) {
    job j;
    memset(&j, 0, sizeof j);
    j.id = id;
    j.left = 1 + (int)prog_below(5);
    prog.note[id].spawned_at = prog.n_polls;
    return j;
}
static int job_spawn(volt_cx *cx, volt_handle *h, int id) {
    job j = make_job(id);
    volt_spawn_options o = draw_options(volt_cx_rt(cx), id);
    int rc = VOLT_SPAWN_WITH(cx, &o, h, job_run, j);
    note_spawned(id, rc);
    return rc;
}
static int job_group_spawn(volt_cx *cx, volt_group *g, int id) {
    job j = make_job(id);
    volt_spawn_options o = draw_options(volt_cx_rt(cx), id);
    int rc = VOLT_GROUP_SPAWN_WITH(cx, &o, g, job_run, j);
    SIM_CHECK(rc != -ECANCELED);
    note_spawned(id, rc);
    return rc;
}
static int job_rt_spawn(volt_rt *rt, volt_handle *h, int id) {
    job j = make_job(id);
    volt_spawn_options o = draw_options(rt, id);
    int rc = VOLT_RT_SPAWN_WITH(rt, &o, h, job_run, j);
    note_spawned(id, rc);
    return rc;
}
static volt_poll across_run(volt_cx *cx, op_across *o) {
    VOLT_BEGIN(cx, o);
    o->id = note_task();
    volt_rt *there = volt_cx_rt(cx) == prog.rt && prog.other ? prog.other : prog.rt;
    if (o->id < 0 || job_rt_spawn(there, &o->h, o->id) < 0) VOLT_RETURN(0);
    VOLT_AWAIT(o->rc, volt_join(cx, &o->h));
    if (!volt_handle_is_set(&o->h)) SIM_CHECK(o->rc == o->id);
    volt_detach(&o->h);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- the echo server of the program
typedef struct server {
    volt_frame frame;
    volt_group clients;
    int lfd, fd;
} server;
static void server_take(volt_cx *cx, server *s) {
    int id = note_task();
    if (id < 0 || prog.note[id].n_polls) {
        prog.may_fail = 1; // for its client
        volt_close(cx, s->fd);
        return;
    }
    echoer e = make_echoer(id, s->fd);
    note_cancel(id);
    int rc = VOLT_GROUP_SPAWN(cx, &s->clients, echoer_run, e);
    note_spawned(id, rc);
    if (rc < 0) volt_close(cx, s->fd);
}
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->fd, volt_accept(cx, s->lfd));
        if (s->fd == -ECANCELED) break;
        if (s->fd >= 0)
            server_take(cx, s);
        else
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1))); // short of memory
    }
    VOLT_AWAIT(volt_group_close(cx, &s->clients));
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// ---- the root: some tasks, all joined; detached tasks may live on
typedef struct root {
    volt_frame frame;
    volt_handle h[8], server;
    int id[8], n, i;
    int64_t rc;
} root;
static void root_listen(volt_cx *cx, root *r) {
    int fd = volt_listen("127.0.0.1", 0, NULL);
    volt_addr a;
    if (fd < 0) return;
    server s;
    memset(&s, 0, sizeof s);
    s.lfd = fd;
    if (volt_local_addr(fd, &a) == 0 && VOLT_SPAWN(cx, &r->server, server_run, s) == 0)
        prog.port = volt_addr_port(&a);
    else
        volt_close(cx, fd);
}
static void root_spawn(volt_cx *cx, root *r) {
    int n = 1 + (int)prog_below(8);
    for (int i = 0; i < n; i++) {
        int id = note_task();
        if (id < 0) return;
        r->id[r->n] = id;
        if (job_spawn(cx, &r->h[r->n], id) == 0) r->n++;
    }
}
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    VOLT_BEGIN(cx, r);
    root_listen(cx, r);
    root_spawn(cx, r);
    for (r->i = 0; r->i < r->n; r->i++) {
        VOLT_AWAIT(r->rc, volt_join(cx, &r->h[r->i]));
        if (volt_handle_is_set(&r->h[r->i]))
            SIM_CHECK(r->rc == -ECANCELED && prog.is_ending);
        else
            SIM_CHECK(r->rc == r->id[r->i]);
        volt_detach(&r->h[r->i]);
    }
    prog.is_ending = 1; // of volt_run; else detached tasks may run for a while
    volt_cancel(&r->server);
    volt_detach(&r->server);
    VOLT_END(7);
}

// ---- foreign threads of a program with a runtime of its own

static void foreign_user(void *arg) {
    volt_handle h = {NULL};
    int64_t result;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        if (sim_below(2)) sim_nap(1 + sim_below(3000000));
        if (sim_below(2)) thread_turn();
        int id = note_task();
        if (id < 0 || job_rt_spawn(prog.rt, &h, id) < 0) continue;
        if (sim_below(3) == 0) {
            note_cancel(id);
            volt_cancel(&h);
        }
        int rc = volt_join_sync(&h, sim_below(2) ? VOLT_NEVER : 1000 + sim_below(4000000), &result);
        SIM_CHECK(rc == 0 ? result == id : rc == -ETIMEDOUT);
        volt_detach(&h);
    }
}
static void foreign_killer(void *arg) {
    (void)arg;
    sim_nap(1 + sim_below(1u << (10 + sim_below(16))));
    prog.is_ending = 1;
    int rc = volt_shutdown(prog.rt, sim_below(2) ? VOLT_NEVER : sim_below(5000000));
    SIM_CHECK(rc >= 0);
}
// Takes dumps while everything runs.
typedef struct dumped {
    size_t n;
    int depth; // of brackets
    char last;
} dumped;
static int take_dump(void *user, const char *text, size_t len) {
    dumped *d = (dumped *)user;
    SIM_CHECK(len > 0 && (d->n > 0 || text[0] == '{'));
    for (size_t i = 0; i < len; i++) d->depth += (text[i] == '{') - (text[i] == '}');
    d->n += len;
    d->last = text[len - 1];
    return 0;
}
static void foreign_looker(void *arg) {
    (void)arg;
    for (int i = 0; i < 3; i++) {
        volt_counters c;
        dumped d = {0, 0, 0};
        sim_nap(1 + sim_below(3000000));
        volt_stats(prog.rt, &c);
        SIM_CHECK(c.workers_started <= c.workers && c.blocking_idle <= c.blocking_threads);
        SIM_CHECK(volt_dump_to(prog.rt, take_dump, &d, VOLT_DUMP_JSON) == 0);
        SIM_CHECK(d.depth == 0 && d.last == '\n');
    }
}
static void check_end(volt_rt *rt) {
    volt_counters c;
    volt_stats(rt, &c);
    SIM_CHECK(c.spawned == c.completed);
    SIM_CHECK(c.blocking_threads == 0 && c.blocking_queued == 0 && c.blocking_idle == 0);
}
static void look_at_all(void) {
    look_at_queues();
    look_at_turns();
}
static int run_root(root *r) {
    volt_handle h = {NULL};
    if (!steps.rt || steps.n_threads) return volt_block_on(prog.rt, root_run, r);
    int rc = VOLT_RT_SPAWN(prog.rt, &h, root_run, *r);
    return rc < 0 ? rc : (int)guest_steps_until(&h);
}
static void program_created(int is_guest) {
    volt_config c = draw_config();
    root r;
    memset(&r, 0, sizeof r);
    prog.budget = c.budget;
    c.is_guest = (uint32_t)is_guest;
    int rc = volt_create(&c, &prog.rt);
    SIM_CHECK(rc == 0 || prog.may_fail);
    if (rc < 0) return;
    c = draw_config();
    if (c.budget) prog.budget = 1;
    if (prog_below(3) == 0 && volt_create(&c, &prog.other) < 0) SIM_CHECK(prog.may_fail);
    if (is_guest) guest_open(prog.rt);
    for (int n = steps.n_threads; n > 0; n--) start_thread(guest_thread, NULL);
    sim.on_quiet = look_at_all;
    for (int n = (int)prog_below(3); n > 0; n--) start_thread(foreign_user, NULL);
    if (prog_below(6) == 0) start_thread(foreign_looker, NULL);
    if (prog_below(4) == 0) start_thread(foreign_killer, NULL);
    rc = run_root(&r);
    SIM_CHECK(rc == 7 || prog.may_fail || prog.is_ending);
    prog.is_ending = 1;
    SIM_CHECK(volt_shutdown(prog.rt, VOLT_NEVER) == 0);
    if (prog.other) SIM_CHECK(volt_shutdown(prog.other, VOLT_NEVER) == 0);
    guest_ends();
    join_threads();
    guest_close();
    sim.on_quiet = NULL;
    check_end(prog.rt);
    SIM_CHECK(volt_destroy(prog.rt) == 0);
    if (prog.other) check_end(prog.other);
    if (prog.other) SIM_CHECK(volt_destroy(prog.other) == 0);
}
static void program_run(void) {
    volt_config c = draw_config();
    root r;
    memset(&r, 0, sizeof r);
    prog.budget = c.budget;
    int rc = volt_run(&c, root_run, &r);
    SIM_CHECK(rc == 7 || prog.may_fail);
    join_threads();
}
static void random_program(uint64_t seed, int most_tasks) {
    program_init(seed);
    memset(&calls, 0, sizeof calls);
    memset(is_path_used, 0, sizeof is_path_used);
    memset(flows, 0, sizeof flows);
    memset(trickles, 0, sizeof trickles);
    memset(texts, 0, sizeof texts);
    next_signal = 0;
    turns_init();
    prog.computes = prog_below(3) == 0;
    int n = 10 << prog_below(6);
    prog.most_tasks = n < most_tasks ? n : most_tasks;
    int is_guest = draw_guest(seed);
    if (prog_below(2))
        program_created(is_guest);
    else
        program_run();
    check_all_ended();
    check_calls();
    check_turns();
}

#endif // VOLT_SIM_GRAMMAR_H
