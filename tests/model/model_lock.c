// SPDX-License-Identifier: MIT OR 0BSD
// The futex lock [L1]: what it guards is touched by one thread at a time, nobody sleeps for ever,
// and whoever frees the lock's own memory may do so as soon as it has the lock for the last time.
// Run: make model ONE=lock_two (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

static uint32_t lock;
static int guarded; // plain: only the lock orders its users

static void locked_add(void *unused) {
    (void)unused;
    volt__lock(&lock);
    guarded++;
    volt__unlock(&lock);
}
// As often as it is counted, the lock was held; a lost wake-up would be a deadlock.
static void add_beside(int n_others) {
    int t[2];
    for (int i = 0; i < n_others; i++) t[i] = vmc_spawn(locked_add, NULL);
    locked_add(NULL);
    for (int i = 0; i < n_others; i++) vmc_join(t[i]);
    VMC_ASSERT(guarded == n_others + 1);
    VMC_ASSERT(lock == 0);
}
SCENARIO(lock_two, .mo_insert = 1) { add_beside(1); }
SCENARIO(lock_two_spurious, .mo_insert = 1, .spurious = 1) { add_beside(1); }
SCENARIO(lock_three, .mo_insert = 1) { add_beside(2); }

// Who comes back at once meets the other one asleep, or waking up.
static void locked_add_twice(void *unused) {
    locked_add(unused);
    locked_add(unused);
}
SCENARIO(lock_again, .mo_insert = 1) {
    int t = vmc_spawn(locked_add_twice, NULL);
    locked_add_twice(NULL);
    vmc_join(t);
    VMC_ASSERT(guarded == 4);
}

// A try that succeeds holds the lock like any other; it may fail only while another one holds it.
static void try_add(void *result) {
    int *has_got = result;
    *has_got = volt__try_lock(&lock);
    if (!*has_got) return;
    guarded++;
    volt__unlock(&lock);
}
SCENARIO(lock_try, .mo_insert = 1) {
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
SCENARIO(lock_try_two, .mo_insert = 1) {
    int has_got[2] = { 0, 0 };
    int t = vmc_spawn(try_add, &has_got[0]);
    try_add(&has_got[1]);
    vmc_join(t);
    VMC_ASSERT(guarded == has_got[0] + has_got[1] && guarded > 0); // one of them was first
}

// The last of several users frees what the lock lies in, right after its unlock. Those before it
// may still be about to wake a sleeper: they must not look at the lock any more.
typedef struct shared {
    uint32_t lock;
    int n_users;
} shared;
static void leave(void *arg) {
    shared *s = arg;
    volt__lock(&s->lock);
    int is_last = --s->n_users == 0;
    volt__unlock(&s->lock);
    if (!is_last) return;
    vmc_reached("the last one frees it");
    vmc_free(s);
}
static void leave_beside(int n_others) {
    int t[2];
    vmc_must_happen("the last one frees it");
    shared *s = vmc_alloc(sizeof *s);
    s->n_users = n_others + 1;
    for (int i = 0; i < n_others; i++) t[i] = vmc_spawn(leave, s);
    leave(s);
    for (int i = 0; i < n_others; i++) vmc_join(t[i]);
}
SCENARIO(lock_freed_by_the_last_of_two, .mo_insert = 1) { leave_beside(1); }
SCENARIO(lock_freed_by_the_last_of_three, .mo_insert = 1) { leave_beside(2); }
