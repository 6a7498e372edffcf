// SPDX-License-Identifier: MIT OR 0BSD
// Locks, latches and signals that a program's tasks and threads share, with the model of each; for
// turns.h. There are few of each, so that many wait for one.
#ifndef VOLT_SIM_LOCKS_H
#define VOLT_SIM_LOCKS_H

#include "waits.h"

enum { N_MUTEXES = 3, N_ONCES = 6, N_TRACKERS = 6, N_BELLS = 2, PERMITS = 3, STORE_MUTEX = 2 };
enum { N_TOKENS = 6, N_HOOKS = 512 };
static struct locks {
    struct {
        volt_mutex m;
        int is_held;
    } mutex[N_MUTEXES]; // plain; FIFO; the store's
    struct {
        volt_rwlock l;
        int n_readers, n_writers;
    } room;
    struct {
        volt_sem s;
        uint32_t n_out; // permits
        int is_closing;
        uint64_t closed_at;
    } sem[2]; // the second one may be closed
    struct {
        volt_once o;
        int n_doing, is_ending; // ending: a thread reports that it is done
    } once[N_ONCES];
    struct {
        volt_event e;
        int n_setting;
        uint64_t set_at, reset_at; // begin of the last set, end of the last reset
        uint64_t down_at;          // down since then; 0: it may be up
    } event;
    struct {
        volt_wait_group g;
        int n;
        uint64_t zero_at;
    } tasks;
    struct {
        volt_tracker t;
        int n_inside, is_closing, is_left; // left: a thread was told that all have left
    } tracker[N_TRACKERS];
    struct {
        volt_notify n;
        uint64_t n_one, n_all, n_passed; // calls that have begun; waits that ended
        uint64_t n_waits, n_waits_before, n_one_before; // before: at the previous rest
    } bell[N_BELLS]; // the second one also uses notify_all
    struct {
        volt_barrier b;
        uint64_t n_zero, n_one; // its results
    } barrier;
    struct {
        volt_cond c;
        int n; // under the mutex: items in the store
        uint64_t n_signal, n_broadcast, n_passed;
    } store;
    struct {
        volt_token t;
        int is_cancelling;
    } token[N_TOKENS]; // children of the first, but for the second
    struct hook_note {
        int token, is_on, is_off, n_called, n_returned; // on: hooked, off: unhooked
    } hook[N_HOOKS];
    int n_hooks;
} locks;

static void locks_init(void) {
    memset(&locks, 0, sizeof locks);
    locks.mutex[1].m = (volt_mutex)VOLT_MUTEX_FIFO;
    for (int i = 0; i < 2; i++) locks.sem[i].s = (volt_sem)VOLT_SEM_INIT(PERMITS);
    locks.event.down_at = stamp();
    locks.tasks.zero_at = stamp();
    locks.barrier.b = (volt_barrier)VOLT_BARRIER_INIT(2 + prog_below(2));
    for (int i = 2; i < N_TOKENS; i++) volt_token_init(&locks.token[i].t, &locks.token[0].t);
}

// ---- entering, and leaving

static void mutex_taken(int i) { SIM_CHECK(locks.mutex[i].is_held++ == 0); }
static void mutex_given(int i) { SIM_CHECK(locks.mutex[i].is_held-- == 1); }
static void mutex_unlock(int i) {
    mutex_given(i);
    volt_mutex_unlock(&locks.mutex[i].m);
}
static void room_taken(int is_writer) {
    SIM_CHECK(locks.room.n_writers == 0 && (!is_writer || locks.room.n_readers == 0));
    if (is_writer) locks.room.n_writers++;
    else locks.room.n_readers++;
}
static uint32_t permits(int i) { return PERMITS - locks.sem[i].n_out; }
static void permits_taken(int i, uint32_t n) {
    SIM_CHECK(n <= permits(i));
    locks.sem[i].n_out += n;
}
static void sem_result(const waiting *w) {
    if (w->rc == 0) permits_taken(w->i, w->n);
    if (w->rc == 0 && locks.sem[w->i].closed_at)
        SIM_CHECK(locks.sem[w->i].closed_at > w->began_at);
    if (w->rc == -EPIPE) SIM_CHECK(locks.sem[w->i].is_closing);
}
static void once_result(const waiting *w) {
    if (w->rc == 1) SIM_CHECK(locks.once[w->i].n_doing++ == 0 && !locks.once[w->i].is_ending);
    if (w->rc == 0) SIM_CHECK(locks.once[w->i].is_ending);
}
static void event_set(void) {
    locks.event.n_setting++;
    locks.event.set_at = stamp();
    locks.event.down_at = 0;
    volt_event_set(&locks.event.e);
    locks.event.n_setting--;
}
static void event_reset(void) {
    uint64_t now = stamp();
    volt_event_reset(&locks.event.e);
    locks.event.reset_at = stamp();
    if (!locks.event.n_setting && locks.event.set_at < now && !locks.event.down_at)
        locks.event.down_at = locks.event.reset_at;
}
static void task_added(void) {
    SIM_CHECK(volt_wait_group_add(&locks.tasks.g, 1) == 0);
    locks.tasks.n++;
}
static void task_done(void) {
    if (--locks.tasks.n == 0) locks.tasks.zero_at = stamp();
    volt_wait_group_done(&locks.tasks.g);
}
static int tracker_enter(int i) {
    int rc = volt_tracker_enter(&locks.tracker[i].t);
    if (rc < 0) SIM_CHECK(rc == -EPIPE && locks.tracker[i].is_closing);
    if (rc == 0) SIM_CHECK(!locks.tracker[i].is_left);
    locks.tracker[i].n_inside += rc == 0;
    return rc == 0;
}
static void tracker_leave(int i) {
    locks.tracker[i].n_inside--;
    volt_tracker_leave(&locks.tracker[i].t);
}
static void tracker_close(int i) {
    locks.tracker[i].is_closing = 1;
    volt_tracker_close(&locks.tracker[i].t);
}
static void tracker_left(int i) {
    SIM_CHECK(locks.tracker[i].is_closing && locks.tracker[i].n_inside == 0);
    locks.tracker[i].is_left = 1;
}
static void bell_ring(int i) {
    uint32_t how = prog_below(i ? 3 : 2);
    if (how == 2) {
        locks.bell[i].n_all++;
        volt_notify_all(&locks.bell[i].n);
        return;
    }
    locks.bell[i].n_one++;
    if (how == 1) volt_notify_last(&locks.bell[i].n);
    else volt_notify_one(&locks.bell[i].n);
}
static void bell_passed(int i) {
    locks.bell[i].n_passed++;
    if (!locks.bell[i].n_all) SIM_CHECK(locks.bell[i].n_passed <= locks.bell[i].n_one);
}
static void store_signal(void) {
    if (prog_below(3)) {
        locks.store.n_signal++;
        volt_cond_signal(&locks.store.c);
    } else {
        locks.store.n_broadcast++;
        volt_cond_broadcast(&locks.store.c);
    }
}
// The mutex is held again, however the wait ended.
static void store_result(const waiting *w) {
    mutex_taken(STORE_MUTEX);
    if (w->rc == 0) locks.store.n_passed++;
    if (!locks.store.n_broadcast) SIM_CHECK(locks.store.n_passed <= locks.store.n_signal);
}

// ---- the result of a wait

static void lock_begins(waiting *w) {
    if (w->kind == W_COND) mutex_given(STORE_MUTEX);
    if (w->kind == W_WAIT_GROUP) w->was_open = locks.tasks.n == 0;
    if (w->kind == W_NOTIFY) locks.bell[w->i].n_waits++;
}
static void lock_linked(waiting *w) {
    if (w->kind == W_NOTIFY) {
        w->n = (uint32_t)locks.bell[w->i].n_all;
        w->n_told = locks.bell[w->i].n_one;
        w->n_passed = locks.bell[w->i].n_passed;
    } else if (w->kind == W_COND) {
        w->n = (uint32_t)locks.store.n_broadcast;
        w->n_told = locks.store.n_signal;
        w->n_passed = locks.store.n_passed;
    }
}
static void gate_got(const waiting *w) {
    switch (w->kind) {
    case W_MUTEX:
        mutex_taken(w->i);
        if (w->i == 1) check_order(w);
        break;
    case W_READ:
    case W_WRITE:
        room_taken(w->kind == W_WRITE);
        check_order(w);
        break;
    default:
        if (w->rc == 0) check_order(w);
        sem_result(w);
    }
}
static void latch_got(const waiting *w) {
    switch (w->kind) {
    case W_EVENT:
        SIM_CHECK(!locks.event.down_at || locks.event.down_at > w->began_at);
        break;
    case W_WAIT_GROUP:
        SIM_CHECK(w->was_open || locks.tasks.n == 0 || locks.tasks.zero_at > w->began_at);
        break;
    case W_TRACKER: tracker_left(w->i); break;
    case W_NOTIFY: bell_passed(w->i); break;
    case W_PAST: SIM_CHECK(locks.bell[w->i].n_all > w->n); break;
    default:
        locks.barrier.n_one += w->rc == 1;
        locks.barrier.n_zero += w->rc == 0;
    }
}
static void lock_got(const waiting *w) {
    if (w->kind == W_COND) {
        store_result(w);
        return;
    }
    if (w->rc < 0 && w->rc != -EPIPE) return;
    if (w->kind == W_ONCE) once_result(w);
    else if (w->kind <= W_SEM) gate_got(w);
    else latch_got(w);
}

// ---- at rest

static int gate_is_open(const waiting *w) {
    switch (w->kind) {
    case W_MUTEX: return !locks.mutex[w->i].is_held;
    case W_READ: // behind a waiting writer
        return !locks.room.n_writers && (!locks.room.n_readers || !count_waits(W_WRITE, 0));
    case W_WRITE: return !locks.room.n_writers && !locks.room.n_readers;
    case W_ONCE: return !locks.once[w->i].n_doing;
    default: // the first of them gets the available permits
        return locks.sem[w->i].is_closing || most_wanted(W_SEM, w->i) <= permits(w->i);
    }
}
static int latch_is_open(const waiting *w) {
    switch (w->kind) {
    case W_EVENT:
        return volt_event_is_set(&locks.event.e) || locks.event.set_at > locks.event.reset_at;
    case W_WAIT_GROUP: return locks.tasks.n == 0;
    case W_TRACKER: return locks.tracker[w->i].is_closing && !locks.tracker[w->i].n_inside;
    default: return (uint32_t)count_waits(W_BARRIER, 0) >= locks.barrier.b.n_;
    }
}
// While this one waits each notify_one passes a waiter, and a notify_all passes this one.
static int bell_is_open(const waiting *w) {
    switch (w->kind) {
    case W_NOTIFY:
        return locks.bell[w->i].n_all > w->n ||
               locks.bell[w->i].n_one - w->n_told > locks.bell[w->i].n_passed - w->n_passed;
    case W_PAST: return locks.bell[w->i].n_all > w->n;
    default: // a notified waiter may wait for the mutex now
        return !locks.mutex[STORE_MUTEX].is_held &&
               (locks.store.n > 0 || locks.store.n_broadcast > w->n ||
                locks.store.n_signal - w->n_told > locks.store.n_passed - w->n_passed);
    }
}
static int lock_is_open(const waiting *w) {
    if (w->kind <= W_ONCE) return gate_is_open(w);
    return w->kind == W_NOTIFY || w->kind == W_PAST || w->kind == W_COND ? bell_is_open(w)
                                                                         : latch_is_open(w);
}
// A notify without a waiter leaves a permit.
static void check_bell(int i) {
    int has_permit = (locks.bell[i].n.word_ & VOLT__NOTIFY_PERMIT) != 0;
    SIM_CHECK(volt_notify_count(&locks.bell[i].n) == locks.bell[i].n_all);
    int is_waited_for = count_waits(W_NOTIFY, i) > 0;
    SIM_CHECK(!has_permit || !is_waited_for);
    if (locks.bell[i].n_waits == locks.bell[i].n_waits_before &&
        locks.bell[i].n_one > locks.bell[i].n_one_before)
        SIM_CHECK(has_permit);
    locks.bell[i].n_waits_before = is_waited_for ? UINT64_MAX : locks.bell[i].n_waits;
    locks.bell[i].n_one_before = locks.bell[i].n_one;
}
static void check_locks(void) {
    SIM_CHECK(locks.barrier.n_zero == locks.barrier.n_one * (locks.barrier.b.n_ - 1));
    for (int i = 0; i < 2; i++) {
        uint32_t n = volt_sem_available(&locks.sem[i].s);
        SIM_CHECK(n <= permits(i) && (n == permits(i) || count_waits(W_SEM, i) > 0));
    }
    for (int i = 0; i < N_BELLS; i++) check_bell(i);
    for (int i = 0; i < locks.n_hooks; i++) {
        const struct hook_note *h = &locks.hook[i];
        SIM_CHECK(h->n_called == h->n_returned);
        if (h->is_on && !h->is_off) SIM_CHECK(h->n_called == locks.token[h->token].is_cancelling);
    }
}
// At the end: all is as at the start.
static void check_locks_left(void) {
    for (int i = 0; i < N_MUTEXES; i++) SIM_CHECK(volt_mutex_try_lock(&locks.mutex[i].m) == 0);
    SIM_CHECK(volt_rwlock_try_write(&locks.room.l) == 0);
    SIM_CHECK(locks.tasks.n == 0 && locks.sem[0].n_out == 0 && locks.sem[1].n_out == 0);
    check_locks();
}

// ---- turns

static int mutex_turn(turn *t) {
    switch (t->step++) {
    case 0: return turn_waits(t, W_MUTEX, (int)prog_below(2), 1, 1);
    case 1: return t->w.rc < 0 ? TURN_ENDS : TURN_HOLDS;
    default: mutex_unlock(t->w.i); return TURN_ENDS;
    }
}
static int room_turn(turn *t) {
    switch (t->step++) {
    case 0: return turn_waits(t, prog_below(3) ? W_READ : W_WRITE, 0, 1, 1);
    case 1: return t->w.rc < 0 ? TURN_ENDS : TURN_HOLDS;
    case 2:
        if (t->w.kind == W_READ || prog_below(2)) break;
        locks.room.n_writers--;
        locks.room.n_readers++;
        volt_rwlock_downgrade(&locks.room.l);
        t->w.kind = W_READ;
        return TURN_HOLDS;
    default: break;
    }
    if (t->w.kind == W_READ) locks.room.n_readers--;
    else locks.room.n_writers--;
    volt_rwlock_unlock(&locks.room.l);
    return TURN_ENDS;
}
static void sem_close(void) {
    locks.sem[1].is_closing = 1;
    volt_sem_close(&locks.sem[1].s);
    if (!locks.sem[1].closed_at) locks.sem[1].closed_at = stamp();
}
// Some permits are forgotten, and others take their place.
static void sem_renew(int i) {
    uint32_t n = volt_sem_forget(&locks.sem[i].s, 1 + prog_below(PERMITS));
    SIM_CHECK(n <= permits(i));
    SIM_CHECK(volt_sem_release(&locks.sem[i].s, n) == 0);
}
static int sem_turn(turn *t) {
    switch (t->step++) {
    case 0:
        t->i = (int)prog_below(2);
        if (prog_below(6) == 0) sem_renew(t->i);
        if (t->i && prog_below(20) == 0) sem_close();
        return turn_waits(t, W_SEM, t->i, 1 + prog_below(PERMITS), 1);
    case 1: return t->w.rc < 0 ? TURN_ENDS : TURN_HOLDS;
    default: break;
    }
    uint32_t n = 1 + prog_below(t->w.n); // not all at once
    t->w.n -= n;
    locks.sem[t->i].n_out -= n;
    SIM_CHECK(volt_sem_release(&locks.sem[t->i].s, n) == 0);
    return t->w.n > 0 ? TURN_HOLDS : TURN_ENDS;
}
static int once_turn(turn *t) {
    switch (t->step++) {
    case 0: return turn_waits(t, W_ONCE, (int)prog_below(N_ONCES), 1, 1);
    case 1: return t->w.rc == 1 ? TURN_HOLDS : TURN_ENDS;
    default: break;
    }
    int is_done = prog_below(3) == 0;
    locks.once[t->w.i].n_doing--;
    locks.once[t->w.i].is_ending |= is_done;
    volt_once_end(&locks.once[t->w.i].o, is_done);
    return TURN_ENDS;
}
static int event_turn(turn *t) {
    if (t->step++ > 0) return TURN_ENDS;
    uint32_t how = prog_below(4);
    if (how >= 2) return turn_waits(t, W_EVENT, 0, 1, 0);
    if (how == 1) event_set();
    else event_reset();
    return TURN_ENDS;
}
static int wait_group_turn(turn *t) {
    switch (t->step++) {
    case 0:
        if (prog_below(2)) return turn_waits(t, W_WAIT_GROUP, 0, 1, 1);
        task_added();
        t->left = 1;
        return TURN_HOLDS;
    default:
        if (t->left) task_done();
        return TURN_ENDS;
    }
}
static int tracker_turn(turn *t) {
    switch (t->step++) {
    case 0:
        t->i = (int)prog_below(N_TRACKERS);
        if (prog_below(2)) {
            int is_closing = prog_below(8) == 0;
            if (is_closing) tracker_close(t->i);
            return turn_waits(t, W_TRACKER, t->i, 1, is_closing);
        }
        t->left = tracker_enter(t->i);
        return t->left ? TURN_HOLDS : TURN_ENDS;
    default:
        if (t->left) tracker_leave(t->i);
        return TURN_ENDS;
    }
}
static int notify_turn(turn *t) {
    if (t->step++ > 0) return TURN_ENDS;
    int i = (int)prog_below(N_BELLS);
    uint32_t how = prog_below(4);
    if (how == 0) return turn_waits(t, W_NOTIFY, i, 1, 0);
    if (how == 1) return turn_waits(t, W_PAST, i, volt_notify_count(&locks.bell[i].n), 0);
    bell_ring(i);
    return TURN_ENDS;
}
static int barrier_turn(turn *t) {
    return t->step++ > 0 ? TURN_ENDS : turn_waits(t, W_BARRIER, 0, 1, 0);
}
static int store_turn(turn *t) {
    int is_outside = 0;
    switch (t->step++) {
    case 0: return turn_waits(t, W_MUTEX, STORE_MUTEX, 1, 1);
    case 1:
        if (t->w.rc < 0) return TURN_ENDS;
        if (prog_below(2)) {
            locks.store.n++;
            is_outside = (int)prog_below(2);
            if (!is_outside) store_signal();
        } else if (locks.store.n == 0) {
            return turn_waits(t, W_COND, 0, 1, 0);
        } else {
            locks.store.n--;
        }
        break;
    default: // not begun: it is held all the same
        if (t->w.rc == 0 && locks.store.n > 0) locks.store.n--;
    }
    mutex_unlock(STORE_MUTEX);
    if (is_outside) store_signal();
    return TURN_ENDS;
}

// ---- hooks: called once, or never

static void hook_called(void *arg) {
    struct hook_note *h = (struct hook_note *)arg;
    SIM_CHECK(!h->is_off && h->n_called++ == 0 && locks.token[h->token].is_cancelling);
    if (prog_below(2)) sim_point();
    h->n_returned++;
}
static void token_cancel(int i) {
    locks.token[i].is_cancelling = 1;
    for (int k = 2; k < N_TOKENS && i == 0; k++) locks.token[k].is_cancelling = 1;
    volt_token_cancel(&locks.token[i].t);
}
static int hook_turn(turn *t) {
    switch (t->step++) {
    case 0:
        if (prog_below(20) == 0) token_cancel((int)prog_below(N_TOKENS));
        if (locks.n_hooks == N_HOOKS) return TURN_ENDS;
        t->i = locks.n_hooks++;
        locks.hook[t->i].token = (int)prog_below(N_TOKENS);
        break;
    case 1: break;
    default: return TURN_ENDS;
    }
    struct hook_note *h = &locks.hook[t->i];
    if (t->step == 1) {
        int rc = volt_token_hook(&locks.token[h->token].t, &t->hook, hook_called, h);
        h->is_on = rc == 0;
        if (rc < 0) SIM_CHECK(locks.token[h->token].is_cancelling && h->n_called == 0);
        return rc < 0 ? TURN_ENDS : TURN_HOLDS;
    }
    int was_on = volt_token_unhook(&t->hook);
    h->is_off = 1;
    SIM_CHECK(h->n_called == !was_on && h->n_returned == h->n_called);
    return TURN_ENDS;
}

// ---- the waits themselves

static volt_poll lock_poll(volt_cx *cx, const waiting *w) {
    switch (w->kind) {
    case W_MUTEX: return volt_mutex_lock(cx, &locks.mutex[w->i].m);
    case W_READ: return volt_rwlock_read(cx, &locks.room.l);
    case W_WRITE: return volt_rwlock_write(cx, &locks.room.l);
    case W_SEM: return volt_sem_acquire(cx, &locks.sem[w->i].s, w->n);
    case W_ONCE: return volt_once_begin(cx, &locks.once[w->i].o);
    case W_EVENT: return volt_event_wait(cx, &locks.event.e);
    case W_WAIT_GROUP: return volt_wait_group_wait(cx, &locks.tasks.g);
    case W_TRACKER: return volt_tracker_wait(cx, &locks.tracker[w->i].t);
    case W_NOTIFY: return volt_notify_wait(cx, &locks.bell[w->i].n);
    case W_PAST: return volt_notify_wait_past(cx, &locks.bell[w->i].n, w->n);
    case W_BARRIER: return volt_barrier_wait(cx, &locks.barrier.b);
    default: return volt_cond_wait(cx, &locks.store.c, &locks.mutex[STORE_MUTEX].m);
    }
}
static int lock_sync(const waiting *w, int64_t at_most) {
    switch (w->kind) {
    case W_MUTEX: return volt_mutex_lock_sync(&locks.mutex[w->i].m, at_most);
    case W_READ: return volt_rwlock_read_sync(&locks.room.l, at_most);
    case W_WRITE: return volt_rwlock_write_sync(&locks.room.l, at_most);
    case W_SEM: return volt_sem_acquire_sync(&locks.sem[w->i].s, w->n, at_most);
    case W_ONCE: return volt_once_begin_sync(&locks.once[w->i].o, at_most);
    case W_EVENT: return volt_event_wait_sync(&locks.event.e, at_most);
    case W_WAIT_GROUP: return volt_wait_group_wait_sync(&locks.tasks.g, at_most);
    case W_TRACKER: return volt_tracker_wait_sync(&locks.tracker[w->i].t, at_most);
    case W_NOTIFY: return volt_notify_wait_sync(&locks.bell[w->i].n, at_most);
    case W_PAST: return volt_notify_wait_past_sync(&locks.bell[w->i].n, w->n, at_most);
    case W_BARRIER: return volt_barrier_wait_sync(&locks.barrier.b, at_most);
    default: return volt_cond_wait_sync(&locks.store.c, &locks.mutex[STORE_MUTEX].m, at_most);
    }
}
// -ENOSYS: it has no such form.
static int lock_try(const waiting *w) {
    switch (w->kind) {
    case W_MUTEX: return volt_mutex_try_lock(&locks.mutex[w->i].m);
    case W_READ: return volt_rwlock_try_read(&locks.room.l);
    case W_WRITE: return volt_rwlock_try_write(&locks.room.l);
    case W_SEM: return volt_sem_try_acquire(&locks.sem[w->i].s, w->n);
    case W_ONCE: return volt_once_try_begin(&locks.once[w->i].o);
    case W_NOTIFY: return volt_notify_try_wait(&locks.bell[w->i].n);
    default: return -ENOSYS;
    }
}

#endif // VOLT_SIM_LOCKS_H
