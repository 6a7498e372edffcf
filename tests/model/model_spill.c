// SPDX-License-Identifier: MIT OR 0BSD
// The overflow queue [Q3]: batches behind a ring, of which the owner takes the newest and others
// the oldest. Every task comes out exactly once, a batch in its order, with what its pusher wrote;
// a thread told of a push finds it. Two batches fit: of three the oldest two become one.
// Run: make model ONE=overflow_push_steal (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { N_TASKS = 6, STAMP = 7 };
static volt__overflow s;
static volt__task tasks[N_TASKS]; // two to a batch
static uint32_t n_taken[N_TASKS];

static void push_batch(int i) {
    volt__chain c;
    volt__chain_init(&c);
    for (int k = 2 * i; k < 2 * i + 2; k++) {
        tasks[k].spawn_ms = STAMP; // plain: the overflow queue hands it over
        volt__chain_push(&c, &tasks[k]);
    }
    volt__overflow_push(&s, &c);
}
static void take(volt__chain *c) {
    volt__task *last = NULL;
    for (volt__task *t; (t = volt__chain_pop(c)) != NULL; last = t) {
        VMC_ASSERT(t >= tasks && t < tasks + N_TASKS && t->spawn_ms == STAMP);
        VMC_ASSERT(volt__add_rlx(&n_taken[t - tasks], 1) == 0);
        VMC_ASSERT(!last || t > last); // in the order of pushing
    }
}
static uint32_t pop(volt__overflow_end end, uint32_t most) {
    volt__chain c;
    volt__chain_init(&c);
    uint32_t n = volt__overflow_pop(&s, end, most, &c);
    VMC_ASSERT(n == c.len && n <= most);
    take(&c);
    return n;
}
static void take_all(void) {
    volt__chain c;
    volt__chain_init(&c);
    volt__overflow_pop_all(&s, &c);
    if (c.head) vmc_reached("all that is there");
    take(&c);
}
static void check_all_taken(int n) {
    while (pop(VOLT__NEWEST, N_TASKS)) {}
    VMC_ASSERT(volt__overflow_is_empty(&s) && s.n == 0);
    for (int i = 0; i < n; i++) VMC_ASSERT(n_taken[i] == 1);
}
static void steal(void *most) {
    if (pop(VOLT__OLDEST, (uint32_t)(uintptr_t)most)) vmc_reached("a thief gets something");
}
static void rescue(void *unused) {
    (void)unused;
    take_all();
}

SCENARIO(overflow_push_steal, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a thief gets something");
    int t = vmc_spawn(steal, (void *)2);
    push_batch(0);
    push_batch(1);
    vmc_join(t);
    check_all_taken(4);
}
SCENARIO(overflow_pop_steal, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a thief gets something");
    push_batch(0);
    int t = vmc_spawn(steal, (void *)1);
    pop(VOLT__NEWEST, 1);
    pop(VOLT__NEWEST, 1);
    vmc_join(t);
    check_all_taken(2);
}
SCENARIO(overflow_merges_beside_thief, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a thief gets something");
    push_batch(0);
    push_batch(1);
    int t = vmc_spawn(steal, (void *)3);
    push_batch(2);
    vmc_join(t);
    VMC_ASSERT(pop(VOLT__NEWEST, N_TASKS) == 2 && n_taken[4] == 1 && n_taken[5] == 1);
    check_all_taken(6);
}
SCENARIO(overflow_two_thieves, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a thief gets something");
    push_batch(0);
    push_batch(1);
    int t1 = vmc_spawn(steal, (void *)2), t2 = vmc_spawn(steal, (void *)2);
    pop(VOLT__NEWEST, 2);
    vmc_join(t1);
    vmc_join(t2);
    check_all_taken(4);
}
SCENARIO(overflow_rescue, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("all that is there");
    push_batch(0);
    push_batch(1);
    int t = vmc_spawn(rescue, NULL);
    pop(VOLT__NEWEST, 1);
    push_batch(2);
    vmc_join(t);
    check_all_taken(6);
}
// A thread that has been told of a push does not find the overflow queue empty.
static uint32_t is_told;
static void find_what_was_told(void *unused) {
    (void)unused;
    if (!volt__load_acq(&is_told)) return;
    vmc_reached("told in time");
    VMC_ASSERT(!volt__overflow_is_empty(&s) && pop(VOLT__OLDEST, 2) == 2);
}
SCENARIO(overflow_tells, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("told in time");
    int t = vmc_spawn(find_what_was_told, NULL);
    push_batch(0);
    volt__store_rel(&is_told, 1);
    vmc_join(t);
    check_all_taken(2);
}
