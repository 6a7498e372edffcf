// SPDX-License-Identifier: MIT OR 0BSD
// Turns at shared objects: tasks wait plainly, with a limit, or in a select, and are cancelled;
// foreign threads block. Includes the checks at rest, and at the end.
#ifndef VOLT_SIM_TURNS_H
#define VOLT_SIM_TURNS_H

#include "loans.h"

#define TURNS(X_)                                                                                  \
    X_(mutex) X_(room) X_(sem) X_(once) X_(event) X_(wait_group) X_(tracker) X_(notify)            \
    X_(barrier) X_(store) X_(hook) X_(send) X_(recv) X_(reserve) X_(closed) X_(queue)              \
    X_(oneshot) X_(sub) X_(watch) X_(loan)
enum {
#define TURN_ENUM(name_) T_##name_,
    TURNS(TURN_ENUM) N_TURNS
};
typedef int turn_fn(turn *t);
static turn_fn *const turn_fns[] = {
#define TURN_FN(name_) name_##_turn,
    TURNS(TURN_FN)};
static const char *const turn_names[] = {
#define TURN_NAME(name_) #name_,
    TURNS(TURN_NAME)};
enum { chan_turns = 1 << T_send | 1 << T_recv | 1 << T_reserve | 1 << T_closed };
static uint32_t turns_off; // bit per kind: not in this program

static int draw_turn(void) {
    uint32_t kind = prog_below(N_TURNS);
    while (turns_off >> kind & 1) kind = (kind + 1) % N_TURNS;
    return (int)kind;
}
static int turn_next(turn *t) {
    if (t->step == 0) sim__trace("turn: %s", turn_names[t->kind]);
    return turn_fns[t->kind](t);
}

// ---- a wait begins and ends

static int is_lock(const waiting *w) { return w->kind <= W_COND; }
static void wait_begins(waiting *w) {
    w->began_at = stamp();
    w->next = waits.first;
    if (w->next) w->next->prev = w;
    waits.first = w;
    if (w->kind == W_LOAN) w->data = &turn_of(w)->node;
    else if (is_lock(w)) lock_begins(w);
    else mail_begins(w);
}
static void wait_linked(waiting *w) {
    if (w->linked_at) return;
    w->linked_at = stamp();
    lock_linked(w);
}
static void wait_ends(waiting *w, int64_t rc) {
    sim__trace("wait: %s %d gives %d", wait_names[w->kind], w->i, (int)rc);
    w->rc = rc;
    w->is_over = 1;
    if (w->next) w->next->prev = w->prev;
    if (w->prev) w->prev->next = w->next;
    else waits.first = w->next;
    SIM_CHECK(rc >= 0 || rc == -ECANCELED || rc == -ETIMEDOUT || rc == -EAGAIN || rc == -EPIPE ||
              rc == -ENOSYS || (rc == -EOVERFLOW && w->kind == W_SUB));
    if (w->kind == W_LOAN) SIM_CHECK(rc < 0 || loans[w->i].state == LOAN_TAKEN);
    else if (is_lock(w)) lock_got(w);
    else mail_got(w);
}
static void wait_try(waiting *w) {
    wait_begins(w);
    wait_ends(w, is_lock(w) ? lock_try(w) : mail_try(w));
}
static int has_try(const waiting *w) {
    switch (w->kind) {
    case W_EVENT:
    case W_WAIT_GROUP:
    case W_TRACKER:
    case W_PAST:
    case W_BARRIER:
    case W_COND:
    case W_CLOSED:
    case W_LOAN: return 0;
    default: return w->kind <= W_COND || w->n == 1;
    }
}

// ---- by a task

typedef struct op_wait {
    volt_frame frame;
    turn t;
} op_wait;
static volt_poll wait_poll(volt_cx *cx, waiting *w) {
    const volt__node *n = cx->frame_;
    int is_retry = node_state(n) == VOLT__RETRY, has_turn = is_retry && w->kind == W_MUTEX;
    if (is_retry && w->beside) w->linked_at = 0; // it could not be claimed: others came first
    volt_poll p = w->kind == W_LOAN ? loan_poll(cx, w)
                  : is_lock(w)      ? lock_poll(cx, w)
                                    : mail_poll(cx, w);
    if (!volt_is_pending(p)) {
        wait_ends(w, volt_value(p));
    } else if (node_state(n) == VOLT__LINKED) { // not only out of budget
        w->node = n;
        wait_linked(w);
        if (has_turn) SIM_CHECK(++w->n_tries <= VOLT_MUTEX_BARGES);
    }
    return p;
}
static volt_poll wait_run(volt_cx *cx, op_wait *o) {
    VOLT_BEGIN(cx, o);
    wait_begins(&o->t.w);
    VOLT_AWAIT(wait_poll(cx, &o->t.w));
    VOLT_END(0);
}
// A limit so short that the thread which ends the wait is often in the middle of it.
typedef struct op_pause {
    volt_frame frame;
    int left;
} op_pause;
static volt_poll pause_run(volt_cx *cx, op_pause *o) {
    VOLT_BEGIN(cx, o);
    for (o->left = 1 + (int)prog_below(3); o->left > 0; o->left--) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct op_turn {
    volt_frame frame;
    op_pause pause;
    volt_timer timer;
    volt_arm a, b;
    op_wait wait;
    turn other; // of a select over two receives
    int64_t limit, start, rc;
    int how, waits_again; // the first of them takes a message, and waits for another one
} op_turn;
enum { HOW_PLAIN, HOW_WITHIN, HOW_BESIDE_SLEEP, HOW_BESIDE_PAUSE, HOW_BESIDE_OTHER };
// The end of a wait: by itself, or by a limit or a cancellation.
static void check_wait(const op_turn *o, int id) {
    const waiting *w = &o->wait.t.w;
    if (w->rc != -ECANCELED || may_be_cancelled(id)) return;
    SIM_CHECK(o->how == HOW_BESIDE_PAUSE || (o->how == HOW_BESIDE_OTHER && o->other.w.rc >= 0) ||
              (o->how != HOW_PLAIN && sim_now() >= o->start + o->limit));
}
static void recv_begins(turn *t, int i, uint32_t n, const waiting *beside) {
    turn_waits(t, W_RECV, i, n, 0);
    t->w.data = t->messages;
    t->w.beside = beside;
    wait_begins(&t->w);
}
// Arms that wait themselves, not in a function of their own: a rendezvous claims their select. It
// must not claim it twice: at most one of the two receives a message.
static void two_waits_begin(op_turn *o) {
    o->wait.t.w.beside = &o->other.w;
    wait_begins(&o->wait.t.w);
    recv_begins(&o->other, o->wait.t.w.i, 1, &o->wait.t.w);
    o->waits_again = (int)prog_below(2);
}
static volt_poll first_wait_poll(volt_cx *cx, op_turn *o) {
    waiting *w = &o->wait.t.w;
    volt_poll p = wait_poll(cx, w);
    if (volt_is_pending(p) || volt_value(p) <= 0 || !o->waits_again) return p;
    o->waits_again = 0;
    recv_begins(&o->wait.t, w->i, w->n, &o->other.w);
    return wait_poll(cx, w);
}
static void two_waits_end(op_turn *o) {
    if (!o->wait.t.w.is_over) wait_ends(&o->wait.t.w, -ECANCELED); // was not polled
    if (!o->other.w.is_over) wait_ends(&o->other.w, -ECANCELED);
    SIM_CHECK(o->wait.t.w.rc < 0 || o->other.w.rc < 0);
}
static volt_poll turn_wait(volt_cx *cx, op_turn *o, int id) {
    VOLT_BEGIN(cx, o);
    o->start = sim_now();
    o->limit = prog_below(2) ? prog_below(5000) : prog_below(1u << 22);
    o->how = o->wait.t.is_sure ? (int)prog_below(4) : 1 + (int)prog_below(3);
    if (o->wait.t.w.kind == W_RECV && prog_below(3) == 0) o->how = HOW_BESIDE_OTHER;
    if (o->how == HOW_PLAIN)
        VOLT_AWAIT(wait_run(cx, &o->wait));
    else if (o->how == HOW_WITHIN)
        VOLT_AWAIT(volt_within(cx, &o->timer, o->limit, wait_run(cx, &o->wait)));
    else if (o->how == HOW_BESIDE_PAUSE)
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&o->a, wait_run(cx, &o->wait)),
                               VOLT_ARM(&o->b, pause_run(cx, &o->pause))));
    else if (o->how == HOW_BESIDE_SLEEP)
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&o->a, wait_run(cx, &o->wait)),
                               VOLT_ARM(&o->b, volt_sleep(cx, o->limit + 1000))));
    else {
        two_waits_begin(o);
        VOLT_AWAIT(volt_within(cx, &o->timer, o->limit,
                               VOLT_SELECT(VOLT_ARM(&o->a, first_wait_poll(cx, o)),
                                           VOLT_ARM(&o->b, wait_poll(cx, &o->other.w)))));
        two_waits_end(o);
    }
    check_wait(o, id);
    VOLT_END(0);
}
typedef struct op_turns {
    volt_frame frame;
    op_turn one;
    int64_t d, rc;
    int next;
} op_turns;
static int64_t draw_hold(void) {
    uint32_t bits = prog_below(24);
    return bits < 10 ? 0 : 1000 + prog_below(1u << bits);
}
static volt_poll turns_run(volt_cx *cx, op_turns *o, int id) {
    VOLT_BEGIN(cx, o);
    prog.note[id].has_waker = 1; // a wake-up of a wait that has ended may come late
    o->one.wait.t.kind = draw_turn();
    while ((o->next = turn_next(&o->one.wait.t)) != TURN_ENDS) {
        if (o->next == TURN_HOLDS) {
            o->d = draw_hold();
            if (o->d) VOLT_AWAIT(o->rc, volt_sleep(cx, o->d));
            else VOLT_AWAIT(o->rc, volt_yield(cx));
        } else if (has_try(&o->one.wait.t.w) && prog_below(5) == 0) {
            wait_try(&o->one.wait.t.w);
        } else {
            VOLT_AWAIT(turn_wait(cx, &o->one, id));
        }
    }
    VOLT_END(volt_is_cancelled(cx) ? -ECANCELED : 0);
}

// ---- by a foreign thread

static void thread_wait(turn *t) {
    int64_t limit = t->is_sure && sim_below(2) ? VOLT_NEVER : 1 + sim_below(1u << sim_below(23));
    int64_t start = sim_now();
    if (has_try(&t->w) && sim_below(5) == 0) {
        wait_try(&t->w);
        return;
    }
    wait_begins(&t->w);
    int64_t rc = t->w.kind == W_LOAN ? loan_sync(&t->w, limit)
                 : is_lock(&t->w)    ? lock_sync(&t->w, limit)
                                     : mail_sync(&t->w, limit);
    SIM_CHECK(rc != -ETIMEDOUT || sim_now() >= start + limit);
    SIM_CHECK(rc != -ECANCELED);
    wait_ends(&t->w, rc);
}
static void thread_turn(void) {
    turn t;
    memset(&t, 0, sizeof t);
    t.kind = draw_turn();
    for (int next; (next = turn_next(&t)) != TURN_ENDS;) {
        if (next == TURN_HOLDS) sim_nap(1 + draw_hold());
        else thread_wait(&t);
    }
}
static void thread_turns(void *arg) {
    for (int i = (int)(intptr_t)arg; i > 0; i--) {
        if (sim_below(3) == 0) sim_nap(1 + sim_below(3000000));
        thread_turn();
    }
}

// ---- at rest: all threads sleep, no task can run, none is in the middle of a poll

static int is_task_awake(const volt_rt *rt) {
    if (!rt || rt->is_stopped) return 0;
    for (volt__slab *s = rt->slabs.first; s; s = s->all_next)
        for (uint32_t i = 0; i < s->carved; i++) {
            uintptr_t word = volt__slab_slot(s, i)->word;
            if (word >= VOLT__REF && (word & (VOLT__NOTIFIED | VOLT__RUNNING)) &&
                !(word & VOLT__COMPLETE))
                return 1;
        }
    return 0;
}
static void check_stuck(waiting *w) {
    wait_linked(w); // a thread's
    if (w->kind == W_LOAN ? loan_is_open(w) : is_lock(w) ? lock_is_open(w) : mail_is_open(w))
        sim_fail("%s %d: a waiter waits for what would let it through", wait_names[w->kind], w->i);
}
static void check_rest(void) {
    for (int i = 0; i < sim.n_threads; i++)
        if (sim.threads[i].state == SIM_WAKING) return;
    if (is_task_awake(prog.rt) || is_task_awake(prog.other)) return;
    check_locks();
    check_mail();
    check_loans();
    for (waiting *w = waits.first; w; w = w->next) check_stuck(w);
}
static void look_at_turns(void) {
    if (sim.report.switches % 4 == 0) check_rest();
}
static void turns_init(void) {
    memset(&waits, 0, sizeof waits);
    turns_off = 0;
    locks_init();
    mail_init();
    memset(loans, 0, sizeof loans);
}
// When all have left.
static void check_turns(void) {
    SIM_CHECK(!waits.first);
    check_locks_left();
    check_mail_left();
    check_loans();
}

#endif // VOLT_SIM_TURNS_H
