// SPDX-License-Identifier: MIT OR 0BSD
// The futex lock where it is given back by a store [L1] [L2]: no thread sleeps forever, though
// nothing but the sleeper's barrier of all threads orders the store and the look behind it.
// Run: make model ONE=barrier_two (or another name from below).
#define MODEL_BARRIER
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "locks.h"

static void check_counts(void) { // each sleeper has uncounted itself
    for (int i = 0; i < VOLT__LOCK_BUCKETS; i++) VMC_ASSERT(volt__lock_waiters.n[i] == 0);
}
static void add_prepared(int n_others, void (*add)(void *), int n_times) {
    volt__membarrier_prepare();
    VMC_ASSERT(volt__has_membarrier());
    add_beside(n_others, add, n_times);
    check_counts();
}
SCENARIO(barrier_two, .class = VMC_EXHAUSTIVE) { add_prepared(1, locked_add, 1); }
SCENARIO(barrier_two_spurious, .class = VMC_EXHAUSTIVE, .spurious = 1) {
    add_prepared(1, locked_add, 1);
}
SCENARIO(barrier_three, .class = VMC_BOUNDED, .preemptions = 2) { add_prepared(2, locked_add, 1); }
SCENARIO(barrier_again, .class = VMC_EXHAUSTIVE) { add_prepared(1, locked_add_twice, 2); }
SCENARIO(barrier_freed_by_the_last_of_two, .class = VMC_EXHAUSTIVE) {
    volt__membarrier_prepare();
    leave_beside(1);
}

// The first runtime is created while the lock is in use: some give it back by an exchange, others
// by a store already, and a sleeper may have been refused its barrier.
static void prepare(void *unused) {
    (void)unused;
    volt__membarrier_prepare();
}
SCENARIO(barrier_comes, .class = VMC_EXHAUSTIVE) {
    int t = vmc_spawn(prepare, NULL);
    add_beside(1, locked_add, 1);
    vmc_join(t);
    check_counts();
}
SCENARIO(barrier_comes_again, .class = VMC_BOUNDED, .preemptions = 2) {
    int t = vmc_spawn(prepare, NULL);
    add_beside(1, locked_add_twice, 2);
    vmc_join(t);
    check_counts();
}

// With a deadline: a thread that gives up does not keep the lock, and leaves no count behind.
static void add_in_time(void *result) {
    int *has_got = result;
    *has_got = volt__lock_until(&lock, VOLT_NOW_NS() + 10);
    if (!*has_got) return;
    guarded++;
    volt__unlock(&lock);
}
SCENARIO(barrier_timeout, .class = VMC_EXHAUSTIVE) {
    int has_got = 0;
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    volt__membarrier_prepare();
    int t = vmc_spawn(add_in_time, &has_got);
    locked_add(NULL);
    vmc_join(t);
    vmc_reached(has_got ? "in time" : "too late");
    VMC_ASSERT(guarded == 1 + has_got && lock == 0);
    check_counts();
}
