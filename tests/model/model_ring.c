// SPDX-License-Identifier: MIT OR 0BSD
// A worker's own queues. The ring [Q1] [Q2]: its owner pushes, pops and overflows while thieves
// steal, from it and from each other. The LIFO slot [Q4], and what the owner has claimed of the
// ring [Q5]: the owner pushes and takes while the watchdog rescues what a stuck worker has. Every
// task comes out exactly once, with what its pusher wrote, also where indices wrap and slots are
// used again; nothing that could be taken stays unseen.
// Run: make model ONE=ring_steal (or another name from below).
#define VOLT_RING_INDEX_BITS 4
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

enum { N_TASKS = 20, MAX_THIEVES = 2, STAMP = 7, WRAP = 14 };
static volt__ring ring, loot[MAX_THIEVES];
static volt__task tasks[N_TASKS];
static uint32_t n_taken[N_TASKS];
static int n_pushed;

static void start(volt__ring *r, uint32_t index) {
    r->head = volt__head_make(index, 0);
    r->tail = r->limit = index & VOLT__RING_INDEX_MASK;
}
static volt__task *new_task(void) {
    volt__task *t = &tasks[n_pushed++];
    t->spawn_ms = STAMP; // plain: the queue hands over what the pusher wrote
    volt__store_rlx(&t->word, VOLT__NOTIFIED + VOLT__REF);
    return t;
}
static void take(volt__task *t) {
    VMC_ASSERT(t >= tasks && t < tasks + N_TASKS);
    VMC_ASSERT(t->spawn_ms == STAMP);
    VMC_ASSERT(volt__add_rlx(&n_taken[t - tasks], 1) == 0);
}
static int pop_one(volt__ring *r) {
    volt__task *t = volt__ring_pop(r);
    if (t) take(t);
    return t != NULL;
}
static void pop_all(volt__ring *r) {
    while (pop_one(r)) {}
}
static void push(volt__ring *r) { VMC_ASSERT(volt__ring_push(r, new_task())); }
static void check_all_taken(void) {
    pop_all(&ring);
    for (int i = 0; i < MAX_THIEVES; i++) pop_all(&loot[i]);
    for (int i = 0; i < n_pushed; i++) VMC_ASSERT(n_taken[i] == 1);
    VMC_ASSERT(volt__ring_room(&ring) == VOLT_RING_CAP); // no slot is held by a thief forever
}

static void thief(void *arg) {
    volt__ring *mine = &loot[(intptr_t)arg];
    if (volt__ring_steal(&ring, mine) > 0) vmc_reached("a steal");
    pop_all(mine);
}
typedef void step_fn(void);
static void beside_thieves(step_fn *owner, int n_thieves) {
    int t[MAX_THIEVES];
    vmc_must_happen("a steal");
    for (int i = 0; i < n_thieves; i++) t[i] = vmc_spawn(thief, (void *)(intptr_t)i);
    owner();
    for (int i = 0; i < n_thieves; i++) vmc_join(t[i]);
    check_all_taken();
}

// ---- one task is in, two more come, one is popped

static void push_push_pop(void) {
    push(&ring);
    push(&ring);
    pop_one(&ring);
}
static void few(uint32_t index, int n_thieves) {
    start(&ring, index);
    push(&ring);
    beside_thieves(push_push_pop, n_thieves);
}
SCENARIO(ring_steal, .class = VMC_EXHAUSTIVE) { few(0, 1); }
SCENARIO(ring_steal_at_the_wrap, .class = VMC_EXHAUSTIVE) { few(WRAP, 1); }
SCENARIO(ring_two_thieves, .class = VMC_EXHAUSTIVE) { few(0, 2); }
SCENARIO(ring_two_thieves_at_the_wrap, .class = VMC_EXHAUSTIVE) { few(WRAP, 2); }

// ---- slots are used again while a thief is at work: it has claimed, but not yet copied

static void pop_and_push(void) {
    pop_one(&ring);
    if (volt__ring_room(&ring)) push(&ring);
}
static void pop_and_push_twice(void) {
    pop_and_push();
    pop_and_push();
}
static void pop_and_push_thrice(void) {
    for (int i = 0; i < 3; i++) pop_and_push();
}
static void lap(step_fn *owner, int n_thieves) {
    start(&ring, WRAP);
    for (uint32_t i = 0; i < VOLT_RING_CAP; i++) push(&ring);
    beside_thieves(owner, n_thieves);
}
SCENARIO(ring_lap, .class = VMC_EXHAUSTIVE) { lap(pop_and_push_thrice, 1); }
SCENARIO(ring_lap_two_thieves, .class = VMC_EXHAUSTIVE) { lap(pop_and_push, 2); }
SCENARIO(ring_lap_long, .class = VMC_EXHAUSTIVE, .is_long = 1) { lap(pop_and_push_twice, 2); }
SCENARIO(ring_lap_thrice_long, .class = VMC_BOUNDED, .preemptions = 1, .is_long = 1) {
    lap(pop_and_push_thrice, 2);
}

// ---- a full ring gives up its newer half, unless a thief makes room

static void overflow(void) {
    volt__chain c;
    push(&ring); // the last slot
    volt__task *t = new_task();
    volt__chain_init(&c);
    if (volt__ring_push(&ring, t)) return;
    int has_spilled = volt__ring_overflow(&ring, &c);
    vmc_reached(has_spilled ? "a spill" : "a thief prevents a spill");
    VMC_ASSERT(c.len == (has_spilled ? VOLT_RING_CAP / 2 : 0));
    for (volt__task *s; (s = volt__chain_pop(&c)) != NULL;) {
        VMC_ASSERT(s - tasks >= VOLT_RING_CAP / 2); // the older ones stay
        take(s);
    }
    take(t);
    if (has_spilled) push(&ring); // there is room now
}
static void spill(uint32_t index, int n_thieves) {
    vmc_must_happen("a spill");
    vmc_must_happen("a thief prevents a spill");
    start(&ring, index);
    for (uint32_t i = 0; i < VOLT_RING_CAP - 1; i++) push(&ring);
    beside_thieves(overflow, n_thieves);
}
SCENARIO(ring_overflow, .class = VMC_EXHAUSTIVE) { spill(0, 1); }
SCENARIO(ring_overflow_at_the_wrap, .class = VMC_EXHAUSTIVE) { spill(WRAP, 1); }
SCENARIO(ring_overflow_two_thieves, .class = VMC_EXHAUSTIVE) { spill(WRAP, 2); }

// The thief is there before the first push: it may see a head that is newer than its tail.
SCENARIO(ring_overflow_early_thief, .class = VMC_EXHAUSTIVE) {
    volt__chain spilt;
    volt__chain_init(&spilt);
    vmc_must_happen("a steal");
    int t = vmc_spawn(thief, NULL);
    while (volt__ring_room(&ring) > 0) push(&ring);
    (void)volt__ring_overflow(&ring, &spilt);
    vmc_join(t);
    for (volt__task *task; (task = volt__chain_pop(&spilt)) != NULL;) take(task);
    check_all_taken();
}

// ---- the owner claims two at a time

static void claim_two(step_fn *owner, int n_thieves) {
    ring.claim_more = 1;
    lap(owner, n_thieves);
}
SCENARIO(ring_claim, .class = VMC_EXHAUSTIVE) { claim_two(pop_and_push_thrice, 1); }
SCENARIO(ring_claim_two_thieves, .class = VMC_EXHAUSTIVE) { claim_two(pop_and_push, 2); }
SCENARIO(ring_claim_long, .class = VMC_EXHAUSTIVE, .is_long = 1) {
    claim_two(pop_and_push_twice, 2);
}
// One of two that were claimed is still there when the ring is full.
static void pop_and_overflow(void) {
    volt__chain c;
    volt__chain_init(&c);
    pop_one(&ring);
    while (volt__ring_room(&ring)) push(&ring);
    int has_claimed = volt__ring_n_claimed(&ring) > 0;
    if (volt__ring_overflow(&ring, &c)) vmc_reached(has_claimed ? "a spill" : "nothing claimed");
    VMC_ASSERT(volt__ring_n_claimed(&ring) == (has_claimed && c.len == 0));
    for (volt__task *t; (t = volt__chain_pop(&c)) != NULL;) take(t);
}
SCENARIO(ring_claim_overflow, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a spill");
    claim_two(pop_and_overflow, 1);
}
SCENARIO(ring_claim_overflow_two_thieves, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a spill");
    claim_two(pop_and_overflow, 2);
}

// ---- a thief is robbed of its loot

static void second_thief(void *unused) {
    (void)unused;
    if (volt__ring_steal(&loot[0], &loot[1]) > 0) vmc_reached("the thief is robbed");
    pop_all(&loot[1]);
}
SCENARIO(ring_chained_thief, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    vmc_must_happen("the thief is robbed");
    start(&ring, WRAP);
    for (int i = 0; i < 3; i++) push(&ring);
    int t1 = vmc_spawn(thief, 0), t2 = vmc_spawn(second_thief, NULL);
    pop_one(&ring);
    vmc_join(t1);
    vmc_join(t2);
    check_all_taken();
}

// ---- a thief goes on pushing: what it knew of its own room is no longer so

static void thief_that_pushes(void *unused) {
    (void)unused;
    uint32_t n_first = 0, n_more = 0;
    while (volt__ring_push(&loot[0], &tasks[N_TASKS - 1])) n_first++;
    VMC_ASSERT(n_first == VOLT_RING_CAP); // leaves `limit` where it was full
    while (volt__ring_pop(&loot[0])) {}
    uint32_t n = volt__ring_steal(&ring, &loot[0]);
    while (volt__ring_push(&loot[0], &tasks[N_TASKS - 1])) n_more++;
    VMC_ASSERT(n + n_more == VOLT_RING_CAP);
    if (n) vmc_reached("a steal");
    while (n-- > 0) take(volt__ring_pop(&loot[0]));
    while (volt__ring_pop(&loot[0])) {}
}
SCENARIO(ring_thief_pushes, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a steal");
    for (int i = 0; i < 3; i++) push(&ring);
    int t = vmc_spawn(thief_that_pushes, NULL);
    pop_one(&ring);
    vmc_join(t);
    check_all_taken();
}

static void thief_with_little_room(void *unused) {
    (void)unused;
    VMC_ASSERT(volt__ring_steal(&ring, &loot[0]) <= 1);
    pop_all(&loot[0]);
}
SCENARIO(ring_thief_has_little_room, .class = VMC_EXHAUSTIVE) {
    for (int i = 0; i < 3; i++) push(&loot[0]);
    for (int i = 0; i < 3; i++) push(&ring);
    int t = vmc_spawn(thief_with_little_room, NULL);
    pop_one(&ring);
    vmc_join(t);
    check_all_taken();
}

// ---- a thread that has been told that there is a task can take it, if no other does

static uint32_t is_told;
static void told_thief(void *unused) {
    (void)unused;
    if (!volt__load_acq(&is_told)) return;
    vmc_reached("told");
    VMC_ASSERT(volt__ring_is_stealable(&ring));
    VMC_ASSERT(volt__ring_steal(&ring, &loot[0]) == 1);
}
SCENARIO(ring_stealable_when_told, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("told");
    start(&ring, WRAP);
    push(&ring);
    pop_one(&ring);
    int t = vmc_spawn(told_thief, NULL);
    push(&ring);
    volt__store_rel(&is_told, 1);
    vmc_join(t);
    check_all_taken();
}
// An emptied ring is seen as such by a thread that was told that it was emptied.
static void told_of_nothing(void *unused) {
    (void)unused;
    if (!volt__load_acq(&is_told)) return;
    vmc_reached("told");
    VMC_ASSERT(!volt__ring_is_stealable(&ring));
}
SCENARIO(ring_not_stealable_when_told, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("told");
    push(&ring);
    int t = vmc_spawn(told_of_nothing, NULL);
    pop_one(&ring);
    volt__store_rel(&is_told, 1);
    vmc_join(t);
    check_all_taken();
}

// ---- the limit: a thief that sleeps while 2^bits tasks go by may claim what is not there

static void thief_once(void *unused) {
    (void)unused;
    volt__ring_steal(&ring, &loot[0]);
}
SCENARIO(ring_limit_full_turn, .class = VMC_BOUNDED, .preemptions = 2,
         .stale_reads = VMC_NO_STALE, .must_fail = "VMC_ASSERT") {
    push(&ring);
    int t = vmc_spawn(thief_once, NULL);
    for (uint32_t i = 0; i <= VOLT__RING_INDEX_MASK; i++) {
        pop_one(&ring);
        if (i < VOLT__RING_INDEX_MASK) push(&ring);
    }
    vmc_join(t);
    check_all_taken();
}

// ---- LIFO slot: the worker is not stuck after all, while it is being rescued

static void owner_of_lifo(void) {
    w0->lifo_run = 0;
    volt__push_lifo(w0, new_task());
    volt__push_lifo(w0, new_task()); // the first one moves to the ring, unless it was rescued
    volt__task *t = volt__lifo_take(w0);
    if (t) take(t);
    volt__push_lifo(w0, new_task());
}
static void watch(void *unused) {
    (void)unused;
    rt_carry(w1);
    volt__idle_begin_search_always(&rt->idle);
    w1->is_searching = 1;
    volt__rescue(w1, w0);
    if (w1->stats.rescued > 0) vmc_reached("a rescue");
    pop_all(&w1->ring);
}
SCENARIO(lifo_rescue, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a rescue");
    rt_make(2);
    rt_carry(w0);
    int t = vmc_spawn(watch, NULL);
    owner_of_lifo();
    vmc_join(t);
    volt__task *last = volt__lifo_take(w0);
    if (last) take(last);
    pop_all(&w0->ring);
    check_all_taken();
}

// ---- what it has claimed: the same

static void owner_of_claimed(void) {
    volt__task *t;
    for (int i = 0; i < 2; i++)
        if ((t = volt__pop_ring(w0)) != NULL) take(t);
    for (int i = 0; i < 2; i++) // into slots of what was claimed, and maybe rescued
        if (volt__ring_room(&w0->ring)) push(&w0->ring);
}
// Beside a rescue, with three tasks in the ring, of which a pop claims two.
static void run_owner(void (*owner)(void)) {
    vmc_must_happen("a rescue");
    rt_make(2);
    rt_carry(w0);
    w0->ring.claim_more = 1;
    for (int i = 0; i < 3; i++) push(&w0->ring);
    int t = vmc_spawn(watch, NULL);
    owner();
    vmc_join(t);
}
SCENARIO(claimed_rescue, .class = VMC_EXHAUSTIVE) {
    run_owner(owner_of_claimed);
    pop_all(&w0->ring);
    check_all_taken();
}

// ---- the ring overflows while the watchdog takes what is claimed: the same lock keeps them apart

static void take_chain(volt__chain *c) {
    for (volt__task *t; (t = volt__chain_pop(c)) != NULL;) take(t);
}
static void owner_that_overflows(void) {
    volt__task *t = volt__pop_ring(w0); // claims two
    if (t) take(t);
    while (volt__ring_room(&w0->ring)) push(&w0->ring);
    volt__push_tail(w0, new_task(), 1);
}
static void drain(volt__worker *w) {
    volt__chain c;
    volt__chain_init(&c);
    volt__overflow_pop_all(&w->overflow, &c);
    take_chain(&c);
    pop_all(&w->ring);
}
static void overflow_beside_rescue(void) {
    run_owner(owner_that_overflows);
    drain(w0);
    drain(w1);
    volt__chain c;
    volt__chain_init(&c);
    while (volt__injector_pop(&rt->injector, 1, N_TASKS, &c)) {}
    take_chain(&c);
    check_all_taken();
}
SCENARIO(claimed_rescue_beside_overflow, .class = VMC_BOUNDED, .preemptions = 2) {
    overflow_beside_rescue();
}
