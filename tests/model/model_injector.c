// SPDX-License-Identifier: MIT OR 0BSD
// The injector [Q3]: tasks that come from outside the workers. Every task comes out exactly once,
// in the order of its pushes, with what its pusher wrote; a thread told of a push finds the task.
// Run: make model ONE=injector_two_producers (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { N_TASKS = 4, STAMP = 7 };
static volt__injector q;
static volt__task tasks[N_TASKS];
static uint32_t n_taken[N_TASKS];

static void push(int first, int n) {
    volt__chain c;
    volt__chain_init(&c);
    for (int i = first; i < first + n; i++) {
        tasks[i].spawn_ms = STAMP; // plain: the injector hands it over
        volt__chain_push(&c, &tasks[i]);
    }
    volt__injector_push(&q, &c);
}
static void take(volt__task *t) {
    VMC_ASSERT(t >= tasks && t < tasks + N_TASKS && t->spawn_ms == STAMP);
    VMC_ASSERT(volt__add_rlx(&n_taken[t - tasks], 1) == 0);
}
// In the order of pushing: the two of a chain come as they went in.
static uint32_t pop(uint32_t n_workers, uint32_t room) {
    volt__chain c;
    volt__task *last = NULL;
    volt__chain_init(&c);
    uint32_t n = volt__injector_pop(&q, n_workers, room, &c);
    VMC_ASSERT(n == c.len && n <= room);
    for (volt__task *t; (t = volt__chain_pop(&c)) != NULL; last = t) {
        take(t);
        if (last == &tasks[2]) VMC_ASSERT(t != &tasks[1]);
        if (last == &tasks[0] && t == &tasks[2]) vmc_fail("the second of a chain came first");
    }
    return n;
}
static void check_all_taken(int n) {
    while (pop(1, N_TASKS)) {}
    VMC_ASSERT(volt__injector_is_empty(&q) && !q.head && !q.tail);
    for (int i = 0; i < n; i++) VMC_ASSERT(n_taken[i] == 1);
}
static void push_one(void *first) { push((int)(intptr_t)first, 1); }
static void push_two(void *first) { push((int)(intptr_t)first, 2); }
static void pop_share(void *unused) {
    (void)unused;
    if (pop(2, 2)) vmc_reached("a consumer gets something");
}

SCENARIO(injector_push_pop, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a consumer gets something");
    int t = vmc_spawn(push_two, (void *)0);
    pop_share(NULL);
    vmc_join(t);
    check_all_taken(2);
}
SCENARIO(injector_two_producers, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a consumer gets something");
    int t1 = vmc_spawn(push_one, (void *)0), t2 = vmc_spawn(push_one, (void *)1);
    pop_share(NULL);
    vmc_join(t1);
    vmc_join(t2);
    check_all_taken(2);
}
SCENARIO(injector_two_consumers, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a consumer gets something");
    push(0, 2);
    int t1 = vmc_spawn(pop_share, NULL), t2 = vmc_spawn(pop_share, NULL);
    vmc_join(t1);
    vmc_join(t2);
    check_all_taken(2);
}
static void two_and_two(void) {
    vmc_must_happen("a consumer gets something");
    int t1 = vmc_spawn(push_two, (void *)0), t2 = vmc_spawn(push_one, (void *)2);
    int t3 = vmc_spawn(pop_share, NULL);
    pop_share(NULL);
    vmc_join(t1);
    vmc_join(t2);
    vmc_join(t3);
    check_all_taken(3);
}
SCENARIO(injector_two_and_two, .class = VMC_BOUNDED, .preemptions = 1) {
    two_and_two();
}
SCENARIO(injector_two_and_two_long, .class = VMC_BOUNDED, .preemptions = 2,
         .is_long = 1) {
    two_and_two();
}

// ---- a thread that is told of a push finds the task, though it looks without the lock first

static uint32_t is_told;
static void told(void *unused) {
    (void)unused;
    if (!volt__load_acq(&is_told)) return;
    vmc_reached("told");
    VMC_ASSERT(!volt__injector_is_empty(&q));
    VMC_ASSERT(pop(1, 1) == 1);
}
SCENARIO(injector_told, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("told");
    push(0, 1);
    VMC_ASSERT(pop(1, 1) == 1);
    int t = vmc_spawn(told, NULL);
    push(1, 1);
    volt__store_rel(&is_told, 1);
    vmc_join(t);
    check_all_taken(2);
}
