// SPDX-License-Identifier: MIT OR 0BSD
// The futex lock [L1]: what it guards is touched by one thread at a time, no thread sleeps forever,
// and the last thread to get the lock may free the lock's own memory as soon as it has it.
// Run: make model ONE=lock_two (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "locks.h"

SCENARIO(lock_two, .class = VMC_EXHAUSTIVE) { add_beside(1, locked_add, 1); }
SCENARIO(lock_two_spurious, .class = VMC_EXHAUSTIVE, .spurious = 1) {
    add_beside(1, locked_add, 1);
}
SCENARIO(lock_three, .class = VMC_EXHAUSTIVE) { add_beside(2, locked_add, 1); }
SCENARIO(lock_again, .class = VMC_EXHAUSTIVE) { add_beside(1, locked_add_twice, 2); }

// A try that succeeds holds the lock like any other; it may fail only while another one holds it.
static void try_add(void *result) {
    int *has_got = result;
    *has_got = volt__try_lock(&lock);
    if (!*has_got) return;
    guarded++;
    volt__unlock(&lock);
}
SCENARIO(lock_try, .class = VMC_EXHAUSTIVE) {
    int has_got = 0;
    vmc_must_happen("a try succeeds");
    vmc_must_happen("a try fails");
    int t = vmc_spawn(try_add, &has_got);
    locked_add(NULL);
    vmc_join(t);
    vmc_reached(has_got ? "a try succeeds" : "a try fails");
    VMC_ASSERT(guarded == 1 + has_got);
    VMC_ASSERT(volt__try_lock(&lock));
}
SCENARIO(lock_try_two, .class = VMC_EXHAUSTIVE) {
    int has_got[2] = { 0, 0 };
    int t = vmc_spawn(try_add, &has_got[0]);
    try_add(&has_got[1]);
    vmc_join(t);
    VMC_ASSERT(guarded == has_got[0] + has_got[1] && guarded > 0); // one of them was first
}

SCENARIO(lock_freed_by_the_last_of_two, .class = VMC_EXHAUSTIVE) { leave_beside(1); }
SCENARIO(lock_freed_by_the_last_of_three, .class = VMC_EXHAUSTIVE) { leave_beside(2); }
