// SPDX-License-Identifier: MIT OR 0BSD
// Waits for objects that all tasks and threads of a program share: locks (locks.h), channels
// (mail.h), and such as end with the wait (loans.h). Here is what they have in common; turns.h lets
// tasks and threads do it.
//
// Of every object a model is kept that knows no lock: between two points nothing else runs here.
// What begins is noted before the call, what is there for others after it; so what the model allows
// is a little more than the object may do, and at rest, when all threads sleep and no task can run,
// it is exact.
//
// What is checked                                                   where
//   who is let through may come in, and is told why else              wait_got
//   ... in order of arrival, but for a plain mutex                    check_order
//   ... which is had after so many tries                              wait_poll     (turns.h)
//   a wait ends early for a limit or a cancellation only              turn_wait     (turns.h)
//   at rest nobody waits for what would let him through               check_stuck
//   ... locks, counts and messages are where the model has them       check_locks, check_mail
//   who lets the last one through does not touch the object any more  check_loans   (loans.h)
//   in the end nobody is inside, and all messages have arrived        check_turns   (turns.h)
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
    int kind, i;     // for what: the i-th of its kind
    uint32_t n;      // permits, messages, the number of a notify
    void *data;      // where messages are
    int is_over;     // rc is there
    int64_t rc;      // -ECANCELED: also if it has not begun
    const volt__node *node;          // a task's
    uint64_t began_at, linked_at;    // linked: it is known to wait; 0: not yet
    uint64_t n_told, n_passed;       // when it was linked: of notify and cond
    int n_tries;                     // in vain, of a mutex
    int was_open;                    // when it began: of wait groups; of channels: has rooms
};
static struct {
    uint64_t stamp; // counts what happens
    waiting *first;
} waits;

static uint64_t stamp(void) { return ++waits.stamp; }
static int is_same(const waiting *a, const waiting *b) {
    int kind = b->kind == W_WRITE ? W_READ : b->kind == W_RESERVE ? W_SEND : b->kind;
    int mine = a->kind == W_WRITE ? W_READ : a->kind == W_RESERVE ? W_SEND : a->kind;
    return kind == mine && a->i == b->i;
}
// No point: others do not run meanwhile.
static int node_state(const volt__node *n) {
    int fine = sim_fine;
    sim_fine = 0;
    int state = volt__node_state(n);
    sim_fine = fine;
    return state;
}
// It got through: nobody who waited when it began is still in the list.
static void check_order(const waiting *w) {
    for (const waiting *o = waits.first; o; o = o->next)
        if (o != w && is_same(o, w) && o->node && o->linked_at && o->linked_at < w->began_at &&
            node_state(o->node) == VOLT__LINKED)
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

// What somebody does with one object, step by step; each step says what comes next.
enum { TURN_ENDS, TURN_WAITS, TURN_HOLDS }; // holds: lets some time pass
enum { MOST_MESSAGES = 3 };
typedef struct message {
    uint32_t from, nth; // the writer, and which of his
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
