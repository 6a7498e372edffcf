// SPDX-License-Identifier: MIT OR 0BSD
// The futex lock: it excludes, hands over what it guards, and no sleeper is forgotten. The lock may
// lie in memory that is freed by who locks it next: unlock must not touch it after letting go.
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

typedef struct counter {
    uint32_t lock;
    int value, n_users;
} counter;
static counter *shared;

static void add_one(void *arg) {
    (void)arg;
    volt__lock(&shared->lock);
    shared->value++;
    volt__unlock(&shared->lock);
}
static void lock_by(int n_threads) {
    int t[3];
    shared = vmc_alloc(sizeof *shared);
    for (int i = 1; i < n_threads; i++) t[i] = vmc_spawn(add_one, NULL);
    add_one(NULL);
    for (int i = 1; i < n_threads; i++) vmc_join(t[i]);
    VMC_ASSERT(shared->value == n_threads && shared->lock == 0);
    vmc_free(shared);
}
SCENARIO(lock_two, .class = VMC_EXHAUSTIVE) { lock_by(2); }
SCENARIO(lock_three, .class = VMC_EXHAUSTIVE) { lock_by(3); }

// The last user, known under the lock, frees it.
static void use_and_drop(void *arg) {
    (void)arg;
    volt__lock(&shared->lock);
    int is_last = --shared->n_users == 0;
    volt__unlock(&shared->lock);
    if (is_last) vmc_free(shared);
}
SCENARIO(lock_freed_by_the_last_user, .class = VMC_EXHAUSTIVE) {
    shared = vmc_alloc(sizeof *shared);
    shared->n_users = 2;
    vmc_spawn(use_and_drop, NULL);
    use_and_drop(NULL);
}

static void try_add_one(void *arg) {
    (void)arg;
    if (!volt__try_lock(&shared->lock)) return;
    vmc_reached("a try that succeeds");
    shared->value++;
    volt__unlock(&shared->lock);
}
SCENARIO(lock_try, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a try that succeeds");
    shared = vmc_alloc(sizeof *shared);
    int t = vmc_spawn(try_add_one, NULL);
    add_one(NULL);
    vmc_join(t);
    vmc_free(shared);
}
