// SPDX-License-Identifier: MIT OR 0BSD
// Gates ([G1]): mutex, read-write lock, semaphore, once. What they guard is touched by those inside
// only; who waits goes on when there is room, also when another one that was let through leaves;
// permits are neither lost nor made; whoever is let through last may free the object at once, with
// those before it still on their way out of the call that let it through.
// Run: make model ONE=gate_mutex_two (or another name from below).
#define VOLT_LOCK_SPIN 0
#define VOLT_MUTEX_BARGES 1
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

// ---- what is freed by who comes last

typedef struct shared {
    volt_mutex mutex;
    int n_users; // plain, under the mutex
} shared;
static shared *s;

static void share(int n_users, int is_fifo) {
    volt_mutex fifo = VOLT_MUTEX_FIFO;
    vmc_must_happen("the last one frees it");
    s = vmc_alloc(sizeof *s);
    if (is_fifo) s->mutex = fifo;
    s->n_users = n_users;
}
// Inside. Whoever sees that it is the last one frees it as soon as it is out.
static void use_and_unlock(void) {
    int is_last = --s->n_users == 0;
    volt_mutex_unlock(&s->mutex);
    if (!is_last) return;
    vmc_reached("the last one frees it");
    vmc_free(s);
}
static void lock_and_use(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_mutex_lock_sync(&s->mutex, VOLT_NEVER) == 0);
    use_and_unlock();
}
SCENARIO(gate_mutex_two) {
    share(2, 0);
    int t = vmc_spawn(lock_and_use, NULL);
    lock_and_use(NULL);
    vmc_join(t);
}
SCENARIO(gate_mutex_two_fifo) {
    share(2, 1);
    int t = vmc_spawn(lock_and_use, NULL);
    lock_and_use(NULL);
    vmc_join(t);
}

// ---- once

static volt_once *once;
static waiter w1;
static void once_wait_begin(waiter *w) {
    volt__gate_wait(wait_of(w), &once->gate_, VOLT__GATE_ONE, 1);
    VMC_ASSERT(wait_begin(w) == VOLT__PENDING);
}
// Who waits gives up and looks again.
static void leave_and_look(void *is_freed) {
    VMC_ASSERT(wait_leave(&w1) == -ECANCELED);
    if (volt_once_try_begin(once) != 0) return;
    vmc_reached("freed by who has seen it done");
    vmc_free(once);
    *(int *)is_freed = 1;
}
SCENARIO(gate_once_freed_by_who_looks) {
    int is_freed = 0;
    vmc_must_happen("freed by who has seen it done");
    once = vmc_alloc(sizeof *once);
    VMC_ASSERT(volt_once_try_begin(once) == 1);
    once_wait_begin(&w1);
    int t = vmc_spawn(leave_and_look, &is_freed);
    volt_once_end(once, 1);
    vmc_join(t);
    if (!is_freed) vmc_free(once);
}
