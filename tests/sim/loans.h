// SPDX-License-Identifier: MIT OR 0BSD
// Objects that end with the wait for them: a lender lends an object, waits for it, and overwrites
// its memory as soon as the wait ends; the thread that ends it must not access the object
// afterwards. At rest all overwritten memory must be unchanged. For turns.h.
#ifndef VOLT_SIM_LOANS_H
#define VOLT_SIM_LOANS_H

#include "mail.h"

#define LOANS(X_)                                                                                  \
    X_(EVENT) X_(GROUP) X_(TRACKER) X_(ONE) X_(ALL) X_(SEM) X_(ROOM) X_(ONCE) X_(ONESHOT) X_(QUEUE)
enum {
#define LOAN_ENUM(name_) LOAN_##name_,
    LOANS(LOAN_ENUM) N_LOAN_KINDS
};
enum { N_LOANS = 24, SPOILED = 0xdd };
// Spoiled: no thread will access it any more. Left: by a lender that could not wait, for good.
enum { LOAN_FREE, LOAN_OPEN, LOAN_TAKEN, LOAN_SPOILED, LOAN_LEFT };
typedef union lent {
    volt_event event;
    volt_wait_group group;
    volt_tracker tracker;
    volt_notify bell;
    volt_sem sem;
    volt_rwlock room;
    volt_once once;
    volt_oneshot oneshot;
    volt_queue queue;
    unsigned char bytes[64];
} lent;
static struct loan {
    lent it;
    int kind, state, is_let_through;
    volt_queue_node node; // of the queue: stays
} loans[N_LOANS];

static void loan_make(struct loan *l) {
    memset(l, 0, sizeof *l);
    l->state = LOAN_LEFT; // not offered yet
    l->kind = (int)prog_below(N_LOAN_KINDS);
    int rc = 0;
    if (l->kind == LOAN_GROUP) rc = volt_wait_group_add(&l->it.group, 1);
    if (l->kind == LOAN_ROOM) rc = volt_rwlock_try_write(&l->it.room);
    if (l->kind == LOAN_ONCE) rc = volt_once_try_begin(&l->it.once) - 1;
    if (l->kind == LOAN_TRACKER) {
        rc = volt_tracker_enter(&l->it.tracker);
        if (prog_below(2)) volt_tracker_close(&l->it.tracker);
    }
    SIM_CHECK(rc == 0);
    l->state = LOAN_OPEN;
}
static void loan_let_through(struct loan *l) {
    int rc = 0;
    switch (l->kind) {
    case LOAN_EVENT: volt_event_set(&l->it.event); break;
    case LOAN_GROUP: volt_wait_group_done(&l->it.group); break;
    case LOAN_TRACKER:
        volt_tracker_close(&l->it.tracker);
        volt_tracker_leave(&l->it.tracker);
        break;
    case LOAN_ONE: volt_notify_one(&l->it.bell); break;
    case LOAN_ALL: volt_notify_all(&l->it.bell); break;
    case LOAN_SEM: rc = volt_sem_release(&l->it.sem, 1); break;
    case LOAN_ROOM: volt_rwlock_unlock(&l->it.room); break;
    case LOAN_ONCE: volt_once_end(&l->it.once, 1); break;
    case LOAN_ONESHOT: rc = volt_oneshot_send(&l->it.oneshot, 1); break;
    default: rc = volt_queue_push(&l->it.queue, &l->node);
    }
    SIM_CHECK(rc == 0);
    l->is_let_through = 1;
}
static void loan_spoil(struct loan *l) {
    memset(&l->it, SPOILED, sizeof l->it);
    l->state = LOAN_SPOILED;
}
static struct loan *find_loan(int state) {
    int first = (int)prog_below(N_LOANS);
    for (int i = 0; i < N_LOANS; i++)
        if (loans[(first + i) % N_LOANS].state == state) return &loans[(first + i) % N_LOANS];
    return NULL;
}
static int loan_turn(turn *t) {
    struct loan *l;
    if (t->step++ == 0) {
        int is_lender = prog_below(2) != 0;
        l = find_loan(is_lender ? LOAN_FREE : LOAN_OPEN);
        if (l && is_lender) {
            loan_make(l);
            return turn_waits(t, W_LOAN, (int)(l - loans), 1, 0);
        }
        if (!l) return TURN_ENDS;
        l->state = LOAN_TAKEN; // from here on it will be granted
        loan_let_through(l);
        return TURN_ENDS;
    }
    l = &loans[t->w.i];
    if (t->w.rc >= 0 || l->state == LOAN_OPEN) {
        loan_spoil(l);
        return TURN_ENDS;
    }
    if (t->left++ < 12) return turn_waits(t, W_LOAN, t->w.i, 1, 1);
    l->state = LOAN_LEFT;
    return TURN_ENDS;
}

static volt_poll loan_poll(volt_cx *cx, const waiting *w) {
    struct loan *l = &loans[w->i];
    switch (l->kind) {
    case LOAN_EVENT: return volt_event_wait(cx, &l->it.event);
    case LOAN_GROUP: return volt_wait_group_wait(cx, &l->it.group);
    case LOAN_TRACKER: return volt_tracker_wait(cx, &l->it.tracker);
    case LOAN_ONE: return volt_notify_wait(cx, &l->it.bell);
    case LOAN_ALL: return volt_notify_wait_past(cx, &l->it.bell, 0);
    case LOAN_SEM: return volt_sem_acquire(cx, &l->it.sem, 1);
    case LOAN_ROOM: return volt_rwlock_read(cx, &l->it.room);
    case LOAN_ONCE: return volt_once_begin(cx, &l->it.once);
    case LOAN_ONESHOT: return volt_oneshot_recv(cx, &l->it.oneshot);
    default: return volt_queue_pop(cx, &l->it.queue, w->data);
    }
}
static int loan_sync(const waiting *w, int64_t at_most) {
    struct loan *l = &loans[w->i];
    int64_t value;
    switch (l->kind) {
    case LOAN_EVENT: return volt_event_wait_sync(&l->it.event, at_most);
    case LOAN_GROUP: return volt_wait_group_wait_sync(&l->it.group, at_most);
    case LOAN_TRACKER: return volt_tracker_wait_sync(&l->it.tracker, at_most);
    case LOAN_ONE: return volt_notify_wait_sync(&l->it.bell, at_most);
    case LOAN_ALL: return volt_notify_wait_past_sync(&l->it.bell, 0, at_most);
    case LOAN_SEM: return volt_sem_acquire_sync(&l->it.sem, 1, at_most);
    case LOAN_ROOM: return volt_rwlock_read_sync(&l->it.room, at_most);
    case LOAN_ONCE: return volt_once_begin_sync(&l->it.once, at_most);
    case LOAN_ONESHOT: return volt_oneshot_recv_sync(&l->it.oneshot, at_most, &value);
    default: return volt_queue_pop_sync(&l->it.queue, w->data, at_most);
    }
}
static int loan_is_open(const waiting *w) { return loans[w->i].is_let_through; }
// At rest; spoiled objects can be lent again.
static void check_loans(void) {
    for (int i = 0; i < N_LOANS; i++) {
        struct loan *l = &loans[i];
        if (l->state != LOAN_SPOILED) continue;
        for (size_t k = 0; k < sizeof l->it; k++)
            if (l->it.bytes[k] != SPOILED)
                sim_fail("an object of kind %d is touched late", l->kind);
        l->state = LOAN_FREE;
    }
}

#endif // VOLT_SIM_LOANS_H
