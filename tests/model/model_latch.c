// SPDX-License-Identifier: MIT OR 0BSD
// Latches ([G2]): event, wait group, tracker; and notify ([G3]). Who waits goes on when it opens,
// and sees what was done before; what a notify gives is neither lost nor given twice; whoever is
// let through last may free the object at once, with the one that let it through still in its call.
// Run: make model ONE=latch_event_freed (or another name from below).
#define VOLT_LOCK_SPIN 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

static waiter w1;
static volt_event *event;
static volt_notify *notify;

// ---- event

static void event_wait_begin(waiter *w) {
    volt__latch_wait(wait_of(w), &event->latch_, VOLT__LATCH_FLAG);
    VMC_ASSERT(wait_begin(w) == VOLT__PENDING);
}
static void set_event(void *unused) {
    (void)unused;
    volt_event_set(event);
}
// Who waits gives up, and then does not have to wait at all.
SCENARIO(latch_event_freed_by_who_looks) {
    vmc_must_happen("up when it looks");
    event = vmc_alloc(sizeof *event);
    event_wait_begin(&w1);
    int t = vmc_spawn(set_event, NULL);
    VMC_ASSERT(wait_leave(&w1) == -ECANCELED);
    if (volt_event_wait_sync(event, 0) == 0) {
        vmc_reached("up when it looks");
        vmc_free(event);
        vmc_join(t);
    } else {
        vmc_join(t);
        vmc_free(event);
    }
}
static uint32_t is_ready; // atomic
static void get_ready(void *unused) {
    (void)unused;
    __atomic_store_n(&is_ready, 1, __ATOMIC_RELAXED);
    volt_event_set(event);
}
// Takes it down, looks for the reason, waits again: a set that finds it up counts, too.
SCENARIO(latch_event_set_again) {
    event = vmc_alloc(sizeof *event);
    volt_event_set(event);
    int t = vmc_spawn(get_ready, NULL);
    VMC_ASSERT(volt_event_wait_sync(event, VOLT_NEVER) == 0);
    volt_event_reset(event);
    if (!__atomic_load_n(&is_ready, __ATOMIC_RELAXED)) {
        VMC_ASSERT(volt_event_wait_sync(event, VOLT_NEVER) == 0);
        VMC_ASSERT(__atomic_load_n(&is_ready, __ATOMIC_RELAXED));
    }
    vmc_join(t);
    vmc_free(event);
}

// ---- notify

static void notify_wait_begin(waiter *w) {
    volt__bell_wait(wait_of(w), notify);
    VMC_ASSERT(wait_begin(w) == VOLT__PENDING);
}
static void notify_all(void *unused) {
    (void)unused;
    volt_notify_all(notify);
}
SCENARIO(notify_all_freed_by_who_looks) {
    vmc_must_happen("told when it looks");
    notify = vmc_alloc(sizeof *notify);
    notify_wait_begin(&w1);
    uint32_t before = volt_notify_count(notify);
    int t = vmc_spawn(notify_all, NULL);
    VMC_ASSERT(wait_leave(&w1) == -ECANCELED);
    if (volt_notify_wait_past_sync(notify, before, 0) == 0) {
        vmc_reached("told when it looks");
        vmc_free(notify);
        vmc_join(t);
    } else {
        vmc_join(t);
        vmc_free(notify);
    }
}
