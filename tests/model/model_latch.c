// SPDX-License-Identifier: MIT OR 0BSD
// Latches ([G2]): event, wait group, tracker; and notify ([G3]), condition variable, barrier. A
// waiter goes on when it opens, and sees what was done before; what a notify gives is neither lost
// nor given twice; the last one to be let through may free the object at once, while the thread
// that let it through is still in its call.
// Run: make model ONE=waitword_event_set_wait (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

static int written[2];   // plain: handed over by what opens
static uint32_t is_told; // atomic, without an order of its own
static uint32_t n_to_come;

// ---- event

static volt_event *event;
static void event_wait_begin(waiter *w) {
    volt__waitword_wait_op(&w->a, &event->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
    wait_begin(w);
}
static void set_event(void *unused) {
    (void)unused;
    written[0] = 7;
    volt_event_set(event);
}
// Has waited.
static void see_event_and_free(void) {
    VMC_ASSERT(written[0] == 7);
    if (__atomic_sub_fetch(&n_to_come, 1, __ATOMIC_ACQ_REL) == 0) vmc_free(event);
}
static void event_wait_through(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    see_event_and_free();
}
static void wait_for_event(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_event_wait_sync(event, VOLT_NEVER) == 0);
    see_event_and_free();
}
SCENARIO(waitword_event_set_wait) {
    n_to_come = 1;
    event = vmc_alloc(sizeof *event);
    int t = vmc_spawn(set_event, NULL);
    wait_for_event(NULL);
    vmc_join(t);
}
// One waits, one comes and finds it up without waiting.
SCENARIO(waitword_event_freed_by_the_last) {
    vmc_must_happen("without waiting");
    n_to_come = 2;
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    int t1 = vmc_spawn(event_wait_through, &w1), t2 = vmc_spawn(set_event, NULL);
    int is_up = volt__waitword_check(&event->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
    if (is_up) {
        see_event_and_free();
        vmc_reached("without waiting");
    }
    vmc_join(t1);
    vmc_join(t2);
    if (!is_up) see_event_and_free();
}
// The waiter gives up, looks again, finds it up without the lock, and frees it.
SCENARIO(waitword_event_freed_by_its_reader) {
    vmc_must_happen("up when it looks");
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    int t = vmc_spawn(set_event, NULL);
    wait_leave(&w1);
    int is_up = volt__waitword_check(&event->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
    if (is_up) {
        VMC_ASSERT(written[0] == 7);
        vmc_free(event);
        vmc_reached("up when it looks");
    }
    vmc_join(t);
    if (!is_up) vmc_free(event);
}
// volt_event_is_set alone does not permit freeing the event, but shows what was written before.
static void event_is_set(int has_waiter) {
    vmc_must_happen("up");
    event = vmc_alloc(sizeof *event);
    if (has_waiter) event_wait_begin(&w1);
    int t = vmc_spawn(set_event, NULL);
    if (volt_event_is_set(event)) {
        VMC_ASSERT(written[0] == 7);
        vmc_reached("up");
    }
    vmc_join(t);
    if (has_waiter) VMC_ASSERT(wait_end(&w1) == 0);
    vmc_free(event);
}
SCENARIO(waitword_event_is_set) { event_is_set(0); }
SCENARIO(waitword_event_is_set_with_a_wait) { event_is_set(1); }
// Each that waited frees what it waited with as soon as it goes on.
static void event_wait_and_free_waiter(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    vmc_free(w);
}
SCENARIO(waitword_event_waiters_freed) {
    waiter *a = vmc_alloc(sizeof *a), *b = vmc_alloc(sizeof *b);
    event = vmc_alloc(sizeof *event);
    event_wait_begin(a);
    event_wait_begin(b);
    int t1 = vmc_spawn(event_wait_and_free_waiter, a);
    int t2 = vmc_spawn(event_wait_and_free_waiter, b);
    set_event(NULL);
    vmc_join(t1);
    vmc_join(t2);
    vmc_free(event);
}
// A wait leaves while the event is set; the other one goes on.
SCENARIO(waitword_event_leave) {
    n_to_come = 1;
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    event_wait_begin(&w2);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(set_event, NULL);
    VMC_ASSERT(wait_end(&w2) == 0);
    VMC_ASSERT(written[0] == 7);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(event->waitword_.word_ == VOLT__WAITWORD_FLAG); // no waiter
    vmc_free(event);
}
SCENARIO(waitword_event_leave_alone) {
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    int t = vmc_spawn(wait_leave, &w1);
    set_event(NULL);
    vmc_join(t);
    VMC_ASSERT(event->waitword_.word_ == VOLT__WAITWORD_FLAG);
    vmc_free(event);
}
// It is taken down at once: a waiter from before it was up goes on all the same.
static void set_and_reset(void *unused) {
    (void)unused;
    written[0] = 7;
    volt_event_set(event);
    volt_event_reset(event);
}
SCENARIO(waitword_event_reset) {
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    int t = vmc_spawn(set_and_reset, NULL);
    VMC_ASSERT(wait_end(&w1) == 0);
    VMC_ASSERT(written[0] == 7);
    vmc_join(t);
    VMC_ASSERT(!volt_event_is_set(event));
    vmc_free(event);
}
static void reset_event(void *unused) {
    (void)unused;
    volt_event_reset(event);
}
// One takes it down, one sets it, one comes to wait: it is up in the end, or it goes on before.
SCENARIO(waitword_event_reset_beside_set, .class = VMC_BOUNDED, .preemptions = 2) {
    event = vmc_alloc(sizeof *event);
    volt_event_set(event);
    int t1 = vmc_spawn(reset_event, NULL), t2 = vmc_spawn(set_and_reset, NULL);
    int rc = volt_event_wait_sync(event, VOLT_MS(1));
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(rc == 0 || rc == -ETIMEDOUT);
    VMC_ASSERT(event->waitword_.word_ == 0 && !event->waitword_.waiters_);
    vmc_free(event);
}
// Takes it down, looks for the reason, waits again: a set that finds it up counts, too.
static void tell(void *unused) {
    (void)unused;
    __atomic_store_n(&is_told, 1, __ATOMIC_RELAXED);
    volt_event_set(event);
}
SCENARIO(waitword_event_set_again) {
    event = vmc_alloc(sizeof *event);
    volt_event_set(event);
    int t = vmc_spawn(tell, NULL);
    VMC_ASSERT(volt_event_wait_sync(event, VOLT_NEVER) == 0);
    volt_event_reset(event);
    if (!__atomic_load_n(&is_told, __ATOMIC_RELAXED)) {
        VMC_ASSERT(volt_event_wait_sync(event, VOLT_NEVER) == 0);
        VMC_ASSERT(__atomic_load_n(&is_told, __ATOMIC_RELAXED));
    }
    vmc_join(t);
    vmc_free(event);
}

// ---- a thread that waits with a time limit: what it waits with is on its stack

static void use_stack(void) {
    char deep[1024];
    memset(deep, 0, sizeof deep);
}
SCENARIO(waitword_event_timeout) {
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    event = vmc_alloc(sizeof *event);
    int t = vmc_spawn(set_event, NULL), rc = volt_event_wait_sync(event, VOLT_MS(1));
    use_stack();
    if (rc == 0) {
        VMC_ASSERT(written[0] == 7);
        vmc_free(event);
    }
    vmc_join(t);
    if (rc != 0) {
        VMC_ASSERT(rc == -ETIMEDOUT && event->waitword_.word_ == VOLT__WAITWORD_FLAG);
        vmc_free(event);
    }
    vmc_reached(rc ? "too late" : "in time");
}

// ---- wait group

static volt_wait_group *group;
static void make_group(uint32_t n) {
    group = vmc_alloc(sizeof *group);
    VMC_ASSERT(volt_wait_group_add(group, n) == 0);
}
static void group_done(void *i) {
    written[(intptr_t)i] = 7;
    volt_wait_group_done(group);
}
static void see_group_and_free(void) {
    VMC_ASSERT(written[0] == 7 && written[1] == 7);
    vmc_free(group);
}
static void group_wait_through(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    see_group_and_free();
}
SCENARIO(waitword_group_two_done) {
    make_group(2);
    volt__waitword_wait_op(&w1.a, &group->waitword_, VOLT__WAITWORD_ALL, 0);
    wait_begin(&w1);
    int t1 = vmc_spawn(group_wait_through, &w1), t2 = vmc_spawn(group_done, (void *)1);
    group_done((void *)0);
    vmc_join(t1);
    vmc_join(t2);
}
// no waiter yet
SCENARIO(waitword_group_two_done_fresh, .class = VMC_BOUNDED, .preemptions = 2) {
    make_group(2);
    int t1 = vmc_spawn(group_done, (void *)0), t2 = vmc_spawn(group_done, (void *)1);
    VMC_ASSERT(volt_wait_group_wait_sync(group, VOLT_NEVER) == 0);
    see_group_and_free();
    vmc_join(t1);
    vmc_join(t2);
}
// One more is added by one of those that are not done.
static void add_and_done(void *unused) {
    (void)unused;
    written[0] = 7;
    VMC_ASSERT(volt_wait_group_add(group, 1) == 0);
    volt_wait_group_done(group);
    written[1] = 7;
    volt_wait_group_done(group);
}
SCENARIO(waitword_group_add) {
    make_group(1);
    int t = vmc_spawn(add_and_done, NULL);
    VMC_ASSERT(volt_wait_group_wait_sync(group, VOLT_NEVER) == 0);
    see_group_and_free();
    vmc_join(t);
}
SCENARIO(waitword_group_freed_by_its_reader) {
    make_group(1);
    written[1] = 7;
    volt__waitword_wait_op(&w1.a, &group->waitword_, VOLT__WAITWORD_ALL, 0);
    wait_begin(&w1);
    int t = vmc_spawn(group_done, (void *)0);
    wait_leave(&w1);
    int is_over = volt__waitword_check(&group->waitword_, VOLT__WAITWORD_ALL, 0);
    if (is_over) see_group_and_free();
    vmc_join(t);
    if (!is_over) see_group_and_free();
}

// ---- tracker

static volt_tracker *tracker;
static int rc_enter;
static void enter_and_leave(void *unused) {
    (void)unused;
    rc_enter = volt_tracker_enter(tracker);
    if (rc_enter < 0) return;
    written[0] = 7;
    volt_tracker_leave(tracker);
}
SCENARIO(waitword_tracker_enter_close) {
    vmc_must_happen("entered");
    vmc_must_happen("too late");
    tracker = vmc_alloc(sizeof *tracker);
    int t = vmc_spawn(enter_and_leave, NULL);
    volt_tracker_close(tracker);
    VMC_ASSERT(volt_tracker_wait_sync(tracker, VOLT_NEVER) == 0);
    vmc_join(t);
    VMC_ASSERT(rc_enter == 0 ? written[0] == 7 : rc_enter == -EPIPE);
    vmc_reached(rc_enter ? "too late" : "entered");
    vmc_free(tracker);
}
static void leave_tracker(void *unused) {
    (void)unused;
    written[0] = 7;
    volt_tracker_leave(tracker);
}
static void close_tracker(void *unused) {
    (void)unused;
    written[1] = 7;
    volt_tracker_close(tracker);
}
SCENARIO(waitword_tracker_freed) { // by the waiter, beside a close and a leave
    tracker = vmc_alloc(sizeof *tracker);
    VMC_ASSERT(volt_tracker_enter(tracker) == 0);
    volt__waitword_wait_op(&w1.a, &tracker->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
    wait_begin(&w1);
    int t1 = vmc_spawn(leave_tracker, NULL), t2 = vmc_spawn(close_tracker, NULL);
    VMC_ASSERT(wait_end(&w1) == 0);
    VMC_ASSERT(written[0] == 7 && written[1] == 7);
    vmc_free(tracker);
    vmc_join(t1);
    vmc_join(t2);
}

// ---- notify

static volt_notify *notify;
static void notify_wait_begin(waiter *w) {
    volt__notify_wait_op(&w->a, notify);
    wait_begin(w);
}
static void notify_one(void *i) {
    written[(intptr_t)i] = 7;
    volt_notify_one(notify);
}
static void notify_all(void *i) {
    written[(intptr_t)i] = 7;
    __atomic_store_n(&is_told, 1, __ATOMIC_RELAXED);
    volt_notify_all(notify);
}
static void notify_passed(void) {
    if (__atomic_sub_fetch(&n_to_come, 1, __ATOMIC_ACQ_REL) == 0) vmc_free(notify);
}
static void notify_wait_through(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    notify_passed();
}
static void wait_for_notify(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_notify_wait_sync(notify, VOLT_NEVER) == 0);
    notify_passed();
}
SCENARIO(notify_one_wait) {
    n_to_come = 1;
    notify = vmc_alloc(sizeof *notify);
    int t = vmc_spawn(notify_one, (void *)0);
    VMC_ASSERT(volt_notify_wait_sync(notify, VOLT_NEVER) == 0);
    VMC_ASSERT(written[0] == 7);
    notify_passed();
    vmc_join(t);
}
// At most one permit is kept, and it brings what both have written.
SCENARIO(notify_two_permits) {
    notify = vmc_alloc(sizeof *notify);
    int t = vmc_spawn(notify_one, (void *)0);
    notify_one((void *)1);
    vmc_join(t);
    VMC_ASSERT(volt_notify_try_wait(notify) == 0 && volt_notify_try_wait(notify) == -EAGAIN);
    vmc_free(notify);
}
// The permit is taken while another notify finds it there: what that one tells is seen, or waited
// for.
static void tell_one(void *unused) {
    (void)unused;
    __atomic_store_n(&is_told, 1, __ATOMIC_RELAXED);
    volt_notify_one(notify);
}
SCENARIO(notify_one_again) {
    notify = vmc_alloc(sizeof *notify);
    volt_notify_one(notify);
    int t = vmc_spawn(tell_one, NULL);
    VMC_ASSERT(volt_notify_try_wait(notify) == 0);
    if (!__atomic_load_n(&is_told, __ATOMIC_RELAXED)) {
        VMC_ASSERT(volt_notify_wait_sync(notify, VOLT_NEVER) == 0);
        VMC_ASSERT(__atomic_load_n(&is_told, __ATOMIC_RELAXED));
    }
    vmc_join(t);
    vmc_free(notify);
}
// Two are notified: one that waits, and one that comes.
static void notify_twice(void *unused) {
    (void)unused;
    volt_notify_one(notify);
    volt_notify_one(notify);
}
SCENARIO(notify_one_two_waits, .class = VMC_BOUNDED, .preemptions = 2) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(notify_one, (void *)0);
    notify_one((void *)1);
    wait_for_notify(NULL);
    vmc_join(t1);
    vmc_join(t2);
}
SCENARIO(notify_twice_two_waits) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    notify_wait_begin(&w2);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(notify_wait_through, &w2);
    notify_twice(NULL);
    vmc_join(t1);
    vmc_join(t2);
}
// One leaves, after it was notified or before: the other one is notified.
SCENARIO(notify_leave) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    notify_wait_begin(&w2);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(notify_wait_through, &w2);
    notify_one((void *)0);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_notify_try_wait(notify) == -EAGAIN);
    notify_passed();
}
SCENARIO(notify_leave_last) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    notify_wait_begin(&w2);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(wait_leave, &w2);
    volt_notify_last(notify);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_notify_try_wait(notify) == -EAGAIN);
    notify_passed();
}
// There is no other waiter: the permit is kept for the next one.
SCENARIO(notify_leave_alone) {
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t = vmc_spawn(wait_leave, &w1);
    notify_one((void *)0);
    vmc_join(t);
    VMC_ASSERT(volt_notify_try_wait(notify) == 0 && volt_notify_try_wait(notify) == -EAGAIN);
    VMC_ASSERT(notify->word_ == 0); // no waiter
    vmc_free(notify);
}
// A permit that is left behind brings what was written before.
SCENARIO(notify_leave_beside_try) {
    vmc_must_happen("left behind");
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(notify_one, (void *)0);
    if (volt_notify_try_wait(notify) == 0) {
        VMC_ASSERT(written[0] == 7);
        vmc_reached("left behind");
    }
    vmc_join(t1);
    vmc_join(t2);
    vmc_free(notify);
}
// All are told while one of two leaves: it takes nothing along, and leaves nothing.
SCENARIO(notify_all_leave) {
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t = vmc_spawn(wait_leave, &w1);
    notify_all((void *)0);
    vmc_join(t);
    VMC_ASSERT(volt_notify_try_wait(notify) == -EAGAIN);
    VMC_ASSERT(volt_notify_count(notify) == 1);
    vmc_free(notify);
}
SCENARIO(notify_timeout) {
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    notify = vmc_alloc(sizeof *notify);
    int t = vmc_spawn(notify_one, (void *)0), rc = volt_notify_wait_sync(notify, VOLT_MS(1));
    use_stack();
    vmc_join(t);
    VMC_ASSERT(rc == 0 || rc == -ETIMEDOUT);
    VMC_ASSERT(volt_notify_try_wait(notify) == (rc == 0 ? -EAGAIN : 0));
    vmc_reached(rc ? "too late" : "in time");
    vmc_free(notify);
}

// ---- notify: a condition that all are told of

static void wait_past(int has_waiter) {
    notify = vmc_alloc(sizeof *notify);
    if (has_waiter) notify_wait_begin(&w1);
    int t = vmc_spawn(notify_all, (void *)0);
    uint32_t before = volt_notify_count(notify);
    if (!__atomic_load_n(&is_told, __ATOMIC_RELAXED)) {
        VMC_ASSERT(volt_notify_wait_past_sync(notify, before, VOLT_NEVER) == 0);
        VMC_ASSERT(written[0] == 7);
    }
    if (has_waiter) VMC_ASSERT(wait_end(&w1) == 0);
    vmc_join(t);
    vmc_free(notify);
}
SCENARIO(notify_all_wait_past) { wait_past(0); }
SCENARIO(notify_all_wait_past_with_a_wait) { wait_past(1); }
// One waits, another one finds without waiting that all were told: the last one frees it.
SCENARIO(notify_all_freed_by_the_last) {
    vmc_must_happen("without waiting");
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(notify_all, (void *)0);
    int is_over = volt__notify_is_past(notify, 0);
    if (is_over) {
        VMC_ASSERT(written[0] == 7);
        vmc_reached("without waiting");
        notify_passed();
    }
    vmc_join(t1);
    vmc_join(t2);
    if (!is_over) notify_passed();
}
// The waiter gives up, looks again, finds without the lock that all were told, and frees it.
SCENARIO(notify_all_freed_by_its_reader) {
    vmc_must_happen("told when it looks");
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    int t = vmc_spawn(notify_all, (void *)0);
    wait_leave(&w1);
    int is_over = volt__notify_is_past(notify, 0);
    if (is_over) {
        VMC_ASSERT(written[0] == 7);
        vmc_free(notify);
        vmc_reached("told when it looks");
    }
    vmc_join(t);
    if (!is_over) vmc_free(notify);
}
// One waits for a permit, one for all to be told. Both go on; the last one frees it.
SCENARIO(notify_all_both_kinds) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    volt__notify_past_wait_op(&w2.a, notify, 0);
    wait_begin(&w2);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(notify_wait_through, &w2);
    notify_all((void *)0);
    vmc_join(t1);
    vmc_join(t2);
}
// A permit is not for a waiter for notify_all, which is told all the same.
SCENARIO(notify_one_beside_wait_past) {
    n_to_come = 2;
    notify = vmc_alloc(sizeof *notify);
    volt__notify_past_wait_op(&w1.a, notify, 0);
    wait_begin(&w1);
    int t1 = vmc_spawn(notify_wait_through, &w1), t2 = vmc_spawn(notify_all, (void *)0);
    notify_one((void *)1);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_notify_try_wait(notify) == 0);
    notify_passed();
}

// ---- condition variable

typedef struct box {
    volt_mutex mutex;
    volt_cond cond;
    int is_full; // plain, under the mutex
} box;
static box *box_;
static void fill_box(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_mutex_lock_sync(&box_->mutex, VOLT_NEVER) == 0);
    box_->is_full = 1;
    volt_cond_signal(&box_->cond);
    volt_mutex_unlock(&box_->mutex);
}
SCENARIO(waitword_cond_signal, .class = VMC_BOUNDED, .preemptions = 2) {
    box_ = vmc_alloc(sizeof *box_);
    int t = vmc_spawn(fill_box, NULL);
    VMC_ASSERT(volt_mutex_lock_sync(&box_->mutex, VOLT_NEVER) == 0);
    while (!box_->is_full)
        VMC_ASSERT(volt_cond_wait_sync(&box_->cond, &box_->mutex, VOLT_NEVER) == 0);
    volt_mutex_unlock(&box_->mutex);
    vmc_free(box_);
    vmc_join(t);
}
// Signalled without the mutex, once it waits: it frees the condition variable as soon as it has
// the mutex again.
static volt_cond *cond;
static void signal_later(void *mutex) {
    VMC_ASSERT(volt_mutex_lock_sync(mutex, VOLT_NEVER) == 0);
    volt_mutex_unlock(mutex);
    volt_cond_signal(cond);
}
SCENARIO(waitword_cond_freed, .class = VMC_BOUNDED, .preemptions = 2) {
    static volt_mutex mutex;
    cond = vmc_alloc(sizeof *cond);
    VMC_ASSERT(volt_mutex_try_lock(&mutex) == 0);
    int t = vmc_spawn(signal_later, &mutex);
    VMC_ASSERT(volt_cond_wait_sync(cond, &mutex, VOLT_NEVER) == 0);
    vmc_free(cond);
    volt_mutex_unlock(&mutex);
    vmc_join(t);
}
// The time is over when it is signalled, or not: it has the mutex in any case.
SCENARIO(waitword_cond_timeout, .class = VMC_BOUNDED, .preemptions = 2) {
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    static volt_mutex mutex;
    cond = vmc_alloc(sizeof *cond);
    VMC_ASSERT(volt_mutex_try_lock(&mutex) == 0);
    int t = vmc_spawn(signal_later, &mutex);
    int rc = volt_cond_wait_sync(cond, &mutex, VOLT_MS(1));
    use_stack();
    VMC_ASSERT(rc == 0 || rc == -ETIMEDOUT);
    VMC_ASSERT(volt_mutex_try_lock(&mutex) == -EAGAIN);
    volt_mutex_unlock(&mutex);
    vmc_join(t);
    vmc_reached(rc ? "too late" : "in time");
    vmc_free(cond);
}
// A signal goes to the other waiter, though the first one leaves.
SCENARIO(waitword_cond_leave) {
    cond = vmc_alloc(sizeof *cond);
    volt__cond_wait_op(&w1.a, cond);
    volt__cond_wait_op(&w2.a, cond);
    wait_begin(&w1);
    wait_begin(&w2);
    int t = vmc_spawn(wait_leave, &w1);
    volt_cond_signal(cond);
    VMC_ASSERT(wait_end(&w2) == 0);
    vmc_join(t);
    vmc_free(cond);
}

// ---- barrier

static volt_barrier *barrier;
static int rc_barrier[2];
static void pass_barrier(void *i) {
    written[(intptr_t)i] = 7;
    rc_barrier[(intptr_t)i] = volt_barrier_wait_sync(barrier, VOLT_NEVER);
    VMC_ASSERT(written[!(intptr_t)i] == 7);
    if (__atomic_sub_fetch(&n_to_come, 1, __ATOMIC_ACQ_REL) == 0) vmc_free(barrier);
}
SCENARIO(waitword_barrier) {
    volt_barrier two = VOLT_BARRIER_INIT(2);
    n_to_come = 2;
    barrier = vmc_alloc(sizeof *barrier);
    *barrier = two;
    int t = vmc_spawn(pass_barrier, (void *)0);
    pass_barrier((void *)1);
    vmc_join(t);
    VMC_ASSERT(rc_barrier[0] + rc_barrier[1] == 1);
}
