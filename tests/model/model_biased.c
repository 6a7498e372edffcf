// SPDX-License-Identifier: MIT OR 0BSD
// The biased lock [L3]: what it guards is touched by one thread at a time, though its owner takes
// it without a fence. Beside it, what it is there for: a worker takes what is its own while the
// watch rescues it.
// Run: make model ONE=biased_once (or another name from below).
#define MODEL_BARRIER
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

enum { MAX_OTHERS = 2 };
static volt__biased lock;
static int guarded; // plain: only the lock orders its users

static void own_add(int n_times) {
    for (int i = 0; i < n_times; i++) {
        volt__biased_lock(&lock);
        guarded++;
        volt__biased_unlock(&lock);
    }
}
static void revoke_and_add(void *result) {
    int *has_got = result;
    *has_got = volt__biased_revoke(&lock);
    if (!*has_got) return;
    guarded++;
    volt__biased_rebias(&lock);
}
static void add_beside(int n_times, int n_others) {
    int t[MAX_OTHERS], has_got[MAX_OTHERS], n = n_times;
    vmc_must_happen("revoked");
    vmc_must_happen("held");
    for (int i = 0; i < n_others; i++) t[i] = vmc_spawn(revoke_and_add, &has_got[i]);
    own_add(n_times);
    for (int i = 0; i < n_others; i++) {
        vmc_join(t[i]);
        vmc_reached(has_got[i] ? "revoked" : "held");
        n += has_got[i];
    }
    VMC_ASSERT(guarded == n);
    VMC_ASSERT(lock.is_held == 0 && lock.revoked == 0);
}
SCENARIO(biased_once, .class = VMC_EXHAUSTIVE) {
    volt__membarrier_prepare();
    add_beside(1, 1);
}
SCENARIO(biased_twice, .class = VMC_EXHAUSTIVE) {
    volt__membarrier_prepare();
    add_beside(2, 1);
}
SCENARIO(biased_two_others, .class = VMC_BOUNDED, .preemptions = 2) {
    volt__membarrier_prepare();
    add_beside(1, 2);
}
// No barrier can be had: both have their own fence.
SCENARIO(biased_refused, .class = VMC_EXHAUSTIVE) { add_beside(1, 1); }
SCENARIO(biased_refused_twice, .class = VMC_EXHAUSTIVE) { add_beside(2, 1); }
// It can be had from now on: one relies on it already, the other had its own fence.
static void prepare(void *unused) {
    (void)unused;
    volt__membarrier_prepare();
}
SCENARIO(biased_comes, .class = VMC_EXHAUSTIVE) {
    int t = vmc_spawn(prepare, NULL);
    add_beside(1, 1);
    vmc_join(t);
}
SCENARIO(biased_comes_twice, .class = VMC_BOUNDED, .preemptions = 2) {
    int t = vmc_spawn(prepare, NULL);
    add_beside(2, 1);
    vmc_join(t);
}

// ---- a worker is not stuck after all, while it is being rescued

enum { N_TASKS = 8, STAMP = 7 };
static volt__task tasks[N_TASKS];
static uint32_t n_taken[N_TASKS];
static int n_pushed;

static volt__task *new_task(void) {
    volt__task *t = &tasks[n_pushed++];
    t->spawn_ms = STAMP; // plain: the taker sees what the pusher wrote
    volt__store_rlx(&t->word, VOLT__NOTIFIED + VOLT__REF);
    return t;
}
static int take(volt__task *t) {
    if (!t) return 0;
    VMC_ASSERT(t->spawn_ms == STAMP);
    VMC_ASSERT(volt__add_rlx(&n_taken[t - tasks], 1) == 0);
    return 1;
}
static void watch(void *unused) {
    volt__task *t;
    volt__chain c;
    (void)unused;
    volt__chain_init(&c);
    volt__rescue_local(w0, &c);
    if (c.len > 0) vmc_reached("a rescue");
    while ((t = volt__chain_pop(&c)) != NULL) take(t);
}
static void rescue_beside(void (*owner)(void)) {
    vmc_must_happen("a rescue");
    volt__membarrier_prepare();
    rt_carry(w0);
    int t = vmc_spawn(watch, NULL);
    owner();
    vmc_join(t);
    while (take(volt__next_local(w0))) {}
    for (int i = 0; i < n_pushed; i++) VMC_ASSERT(n_taken[i] == 1);
    VMC_ASSERT(volt__ring_room(&w0->ring) == VOLT_RING_CAP);
}
static void push_and_take(void) {
    volt__push_lifo(w0, new_task());
    volt__push_lifo(w0, new_task()); // the first one moves to the ring, unless it was rescued
    take(volt__next_local(w0));
}
SCENARIO(biased_lifo, .class = VMC_EXHAUSTIVE) {
    rt_make(2);
    w0->lifo_run = 0;
    w0->wake_at = 100;
    rescue_beside(push_and_take);
}
// Into an empty slot without the lock, while the one before it was about to be rescued.
static void push_again(void) {
    volt__push_lifo(w0, new_task());
    take(volt__lifo_take(w0));
    volt__push_lifo(w0, new_task());
}
SCENARIO(biased_lifo_again, .class = VMC_EXHAUSTIVE) {
    rt_make(2);
    w0->lifo_run = 0;
    rescue_beside(push_again);
}
static void take_and_push(void) {
    take(volt__next_local(w0));
    take(volt__next_local(w0));
    volt__ring_push(&w0->ring, new_task()); // into slots that were claimed
    volt__ring_push(&w0->ring, new_task());
}
SCENARIO(biased_claimed, .class = VMC_EXHAUSTIVE) {
    rt_make(2);
    w0->ring.claim_more = 1;
    for (int i = 0; i < 3; i++) volt__ring_push(&w0->ring, new_task());
    take(volt__next_local(w0));
    rescue_beside(take_and_push);
}
// The ring is full but for one slot, and for what is rescued.
static void push_while_there_is_room(void) {
    for (int n = 0; volt__ring_room(&w0->ring) > 0; n++) {
        if (n > 0) vmc_reached("room of what was rescued");
        volt__ring_push(&w0->ring, new_task());
    }
}
SCENARIO(biased_claimed_room, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("room of what was rescued");
    rt_make(2);
    w0->ring.claim_more = 1;
    for (int i = 0; i < 4; i++) volt__ring_push(&w0->ring, new_task());
    take(volt__next_local(w0));
    rescue_beside(push_while_there_is_room);
}
