// SPDX-License-Identifier: MIT OR 0BSD
// Waits for objects that all tasks and threads of a program share: locks (locks.h), channels
// (mail.h), and objects that end with the wait (loans.h). This file has their common parts; turns.h
// runs them in tasks and threads.
//
// Each object has a model, which needs no lock: between two points nothing else runs here. The
// begin of an operation is noted before the call, its effect for others after it; so the model
// allows slightly more than the object may do. At rest, when all threads sleep and no task can run,
// it is exact.
//
// Checked                                                           where
//   a granted wait is permitted, and a failed one has its reason      wait_got
//   ... in order of arrival, except for a plain mutex                 check_order
//   ... which is acquired within a number of tries                    wait_poll     (turns.h)
//   a wait ends early by a limit or a cancellation only               turn_wait     (turns.h)
//   at rest no wait could be granted                                  check_stuck
//   ... locks, counts and messages agree with the model               check_locks, check_mail
//   the last grant is not followed by an access to the object         check_loans   (loans.h)
//   at the end no holder is left, and all messages have arrived       check_turns   (turns.h)
#ifndef VOLT_SIM_WAITS_H
#define VOLT_SIM_WAITS_H

#include "calls.h"

#define WAITS(X_)                                                                                  \
    X_(MUTEX) X_(READ) X_(WRITE) X_(SEM) X_(ONCE) X_(EVENT) X_(WAIT_GROUP) X_(TRACKER) X_(NOTIFY)  \
    X_(PAST) X_(BARRIER) X_(COND) X_(SEND) X_(RECV) X_(RESERVE) X_(CLOSED) X_(QUEUE) X_(ONESHOT)   \
    X_(SUB) X_(WATCH) X_(LOAN)
enum {
#define WAIT_ENUM(name_) W_##name_,
    WAITS(WAIT_ENUM) N_WAITS
};
static const char *const wait_names[] = {
#define WAIT_NAME(name_) #name_,
    WAITS(WAIT_NAME)};

// One wait, of a task or of a foreign thread.
typedef struct waiting waiting;
struct waiting {
    waiting *next, *prev;
    int kind, i;     // the i-th object of its kind
    uint32_t n;      // permits, messages, the number of a notify
    void *data;      // the messages
    int is_over;     // rc is set
    int64_t rc;      // -ECANCELED: also if it has not begun
    const volt__node *node;          // a task's
    uint64_t began_at, linked_at;    // linked: it is known to wait; 0: not yet
    uint64_t n_told, n_passed;       // when it was linked: of notify and cond
    int n_tries;                     // failed tries, of a mutex
    int was_open;                    // at its begin: of wait groups; of channels: has reservations
    const waiting *beside;           // the other arm of the same select, or NULL
};
static struct {
    uint64_t stamp; // counts events
    waiting *first;
} waits;

static uint64_t stamp(void) { return ++waits.stamp; }
static int is_same(const waiting *a, const waiting *b) {
    int kind = b->kind == W_WRITE ? W_READ : b->kind == W_RESERVE ? W_SEND : b->kind;
    int mine = a->kind == W_WRITE ? W_READ : a->kind == W_RESERVE ? W_SEND : a->kind;
    return kind == mine && a->i == b->i;
}
// Not a point: no other thread runs meanwhile.
static int node_state(const volt__node *n) {
    int fine = sim_fine;
    sim_fine = 0;
    int state = volt__node_state(n);
    sim_fine = fine;
    return state;
}
// An arm whose select was met by its other arm stays linked until its task runs: it is passed over.
static int is_passed_over(const waiting *o) {
    const waiting *b = o->beside;
    return b && (b->is_over || (b->node && node_state(b->node) != VOLT__LINKED));
}
// It was granted: no wait that was linked at its begin is still in the list.
static void check_order(const waiting *w) {
    for (const waiting *o = waits.first; o; o = o->next)
        if (o != w && is_same(o, w) && o->node && o->linked_at && o->linked_at < w->began_at &&
            node_state(o->node) == VOLT__LINKED && !is_passed_over(o))
            sim_fail("%s %d: overtaken by %s", wait_names[o->kind], o->i, wait_names[w->kind]);
}
static int count_waits(int kind, int i) {
    int n = 0;
    for (const waiting *w = waits.first; w; w = w->next) n += w->kind == kind && w->i == i;
    return n;
}
static uint32_t most_wanted(int kind, int i) {
    uint32_t n = 0;
    for (const waiting *w = waits.first; w; w = w->next)
        if (w->kind == kind && w->i == i && w->n > n) n = w->n;
    return n;
}

// The use of one object, step by step; each step returns the kind of the next.
enum { TURN_ENDS, TURN_WAITS, TURN_HOLDS }; // holds: lets some time pass
enum { MOST_MESSAGES = 3 };
typedef struct message {
    uint32_t from, nth; // the writer, and the number of its message
} message;
typedef struct turn {
    waiting w;
    int kind, i, step, left;
    int is_sure; // the wait ends, whatever others do
    message messages[MOST_MESSAGES];
    uint32_t from, n;
    volt_queue_node *node;
    volt_hook hook;
    volt_sub sub;
    volt_watcher watcher;
    uint64_t value, next, low;
} turn;
static int turn_waits(turn *t, int kind, int i, uint32_t n, int is_sure) {
    memset(&t->w, 0, sizeof t->w);
    t->w.kind = kind;
    t->w.i = i;
    t->w.n = n;
    t->w.rc = -ECANCELED;
    t->is_sure = is_sure;
    return TURN_WAITS;
}

#endif // VOLT_SIM_WAITS_H
