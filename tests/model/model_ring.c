// SPDX-License-Identifier: MIT OR 0BSD
// The ring: its owner pushes and pops while thieves steal. Every task comes out exactly once,
// whichever stores the threads see, also where the indices wrap.
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { N_TASKS = 8, MAX_THIEVES = 2 };
static volt__ring ring, loot[MAX_THIEVES];
static volt__task tasks[N_TASKS];
static uint32_t n_taken[N_TASKS];

static void start(volt__ring *r, uint32_t index) {
    r->head = volt__head_make(index, 0);
    r->tail = index & VOLT__RING_INDEX_MASK;
}
static void take(volt__task *t) {
    VMC_ASSERT(t >= tasks && t < tasks + N_TASKS);
    VMC_ASSERT(t->gen == 7); // plain: what the pusher wrote is handed over by the ring
    VMC_ASSERT(__atomic_fetch_add(&n_taken[t - tasks], 1, __ATOMIC_RELAXED) == 0);
}
static int push(int i) {
    tasks[i].gen = 7;
    return volt__ring_push(&ring, &tasks[i]);
}
static void take_all(volt__ring *r) {
    for (volt__task *t; (t = volt__ring_pop(r)) != NULL;) take(t);
}
static void thief(void *arg) {
    volt__ring *mine = &loot[(intptr_t)arg];
    if (volt__ring_steal(&ring, mine) > 0) vmc_reached("a steal");
    take_all(mine);
}
static void check_all_taken(int n) {
    for (int i = 0; i < n; i++) VMC_ASSERT(n_taken[i] == 1);
}

// One task is in, two more come, one is popped, beside n thieves.
static void push_and_pop(uint32_t index, int n_thieves) {
    int t[MAX_THIEVES];
    start(&ring, index);
    VMC_ASSERT(push(0));
    for (int i = 0; i < n_thieves; i++) t[i] = vmc_spawn(thief, (void *)(intptr_t)i);
    VMC_ASSERT(push(1));
    VMC_ASSERT(push(2));
    volt__task *mine = volt__ring_pop(&ring);
    if (mine) take(mine);
    for (int i = 0; i < n_thieves; i++) vmc_join(t[i]);
    take_all(&ring);
    check_all_taken(3);
}
SCENARIO(ring_steal, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    push_and_pop(0, 1);
}
SCENARIO(ring_steal_at_the_wrap, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    push_and_pop(VOLT__RING_INDEX_MASK - 1, 1);
}
SCENARIO(ring_two_thieves, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    push_and_pop(0, 2);
}
SCENARIO(ring_two_thieves_at_the_wrap, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    push_and_pop(VOLT__RING_INDEX_MASK - 1, 2);
}

// A full ring spills its newer half while a thief is at work, or the thief makes room.
static void overflow(uint32_t index) {
    volt__chain spilled;
    start(&ring, index);
    for (int i = 0; i < 4; i++) VMC_ASSERT(push(i));
    int t = vmc_spawn(thief, NULL);
    volt__chain_init(&spilled);
    if (!push(4)) {
        if (volt__ring_overflow(&ring, &spilled)) vmc_reached("an overflow");
        else vmc_reached("a thief came first");
        volt__chain_push(&spilled, &tasks[4]);
        tasks[4].gen = 7;
    }
    vmc_join(t);
    take_all(&ring);
    for (volt__task *s; (s = volt__chain_pop(&spilled)) != NULL;) take(s);
    check_all_taken(5);
}
SCENARIO(ring_overflow, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("an overflow");
    vmc_must_happen("a thief came first");
    vmc_must_happen("a steal");
    overflow(0);
}
SCENARIO(ring_overflow_at_the_wrap, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("an overflow");
    overflow(VOLT__RING_INDEX_MASK - 2);
}

// The thief's loot may be stolen in turn while it is still copying.
static void thief_of_thief(void *arg) {
    volt__ring *mine = &loot[1];
    (void)arg;
    if (volt__ring_steal(&loot[0], mine) > 0) vmc_reached("a steal from a thief");
    take_all(mine);
}
SCENARIO(ring_chained_steal, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal from a thief");
    start(&ring, 0);
    for (int i = 0; i < 3; i++) VMC_ASSERT(push(i));
    int a = vmc_spawn(thief, NULL), b = vmc_spawn(thief_of_thief, NULL);
    volt__task *mine = volt__ring_pop(&ring, 0);
    if (mine) take(mine);
    vmc_join(a);
    vmc_join(b);
    take_all(&ring);
    check_all_taken(3);
}
// Slots are used again: who pushes must see that the thieves have copied what was there.
static void reuse(int n_pops, int n_thieves) {
    int t[MAX_THIEVES];
    start(&ring, 0);
    for (int i = 0; i < 4; i++) VMC_ASSERT(push(i));
    for (int i = 0; i < n_thieves; i++) t[i] = vmc_spawn(thief, (void *)(intptr_t)i);
    for (volt__task *mine; n_pops-- > 0;)
        if ((mine = volt__ring_pop(&ring, 0)) != NULL) take(mine);
    for (int i = 4; i < 6; i++) {
        if (push(i)) vmc_reached("a slot is used again");
        else take(&tasks[i]);
    }
    for (int i = 0; i < n_thieves; i++) vmc_join(t[i]);
    take_all(&ring);
    check_all_taken(6);
}
SCENARIO(ring_reuse, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a slot is used again");
    reuse(0, 1);
}
SCENARIO(ring_reuse_after_pop, .class = VMC_EXHAUSTIVE) { reuse(1, 1); }
SCENARIO(ring_reuse_two_thieves, .class = VMC_EXHAUSTIVE) { reuse(0, 2); }
