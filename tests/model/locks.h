// SPDX-License-Identifier: MIT OR 0BSD
// Uses of a lock by model_lock.c and model_barrier.c. Include it after volt.h.
#ifndef LOCKS_H
#define LOCKS_H

static uint32_t lock;
static int guarded; // plain: only the lock orders its users

static void locked_add(void *unused) {
    (void)unused;
    volt__lock(&lock);
    guarded++;
    volt__unlock(&lock);
}
// The second lock meets the other thread asleep, or waking up.
static void locked_add_twice(void *unused) {
    locked_add(unused);
    locked_add(unused);
}
// The lock was held as often as the count says; a lost wake-up would be a deadlock.
static void add_beside(int n_others, void (*add)(void *), int n_times) {
    int t[2];
    for (int i = 0; i < n_others; i++) t[i] = vmc_spawn(add, NULL);
    add(NULL);
    for (int i = 0; i < n_others; i++) vmc_join(t[i]);
    VMC_ASSERT(guarded == n_times * (n_others + 1));
    VMC_ASSERT(lock == 0);
}

// The last of several users frees the memory of the lock right after its unlock. An earlier one may
// still be about to wake a sleeper: it must not access the lock any more.
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

#endif
