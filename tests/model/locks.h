// SPDX-License-Identifier: MIT OR 0BSD
// What model_lock.c and model_barrier.c do with a lock. Include it after volt.h.
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
// Who comes back at once meets the other one asleep, or waking up.
static void locked_add_twice(void *unused) {
    locked_add(unused);
    locked_add(unused);
}
// As often as it is counted, the lock was held; a lost wake-up would be a deadlock.
static void add_beside(int n_others, void (*add)(void *), int n_times) {
    int t[2];
    for (int i = 0; i < n_others; i++) t[i] = vmc_spawn(add, NULL);
    add(NULL);
    for (int i = 0; i < n_others; i++) vmc_join(t[i]);
    VMC_ASSERT(guarded == n_times * (n_others + 1));
    VMC_ASSERT(lock == 0);
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

#endif
