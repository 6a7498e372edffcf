// SPDX-License-Identifier: MIT OR 0BSD
// The task word: wakes, polls and the end of a task. A wake is never lost, what the waker wrote is
// seen by the poll that follows, a task is queued once at a time and freed once.
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

static volt__task *task;
static uint32_t n_queued; // times in the queue, of which there may be one: futex word of the worker
static int is_done;       // plain: what the first waker wrote, for the poll
static uint32_t is_ready; // atomic: what the second wrote, relaxed; the wake publishes it

static volt__task *new_task(void) {
    volt__task *t = vmc_alloc(sizeof *t);
    t->word = VOLT__REF | VOLT__NOTIFIED; // as a spawn leaves it
    return t;
}
static void enqueue(void) {
    VMC_ASSERT(__atomic_fetch_add(&n_queued, 1, __ATOMIC_ACQ_REL) == 0);
    vmc_futex_wake(&n_queued, 1);
}
static void dequeue(void) {
    while (__atomic_load_n(&n_queued, __ATOMIC_ACQUIRE) == 0)
        vmc_futex_wait(&n_queued, 0, VOLT_NEVER);
    VMC_ASSERT(__atomic_fetch_sub(&n_queued, 1, __ATOMIC_ACQ_REL) == 1);
}

// One wakes for nothing, one after it has set what the task waits for; the task may be polled in
// between. A second wake of a task that is notified already must still publish.
static void wake_for_nothing(void *arg) {
    (void)arg;
    if (volt__task_wake(task)) enqueue();
}
static void wake_with_news(void *arg) {
    (void)arg;
    __atomic_store_n(&is_ready, 1, __ATOMIC_RELAXED);
    if (volt__task_wake(task))
        enqueue();
    else
        vmc_reached("a wake of a task that is notified or running");
}
static void run_until_ready(void) {
    for (;;) {
        dequeue();
        VMC_ASSERT(!(volt__task_begin(task) & VOLT__CANCELLED));
        if (__atomic_load_n(&is_ready, __ATOMIC_RELAXED)) return;
        if (volt__task_suspend(task)) enqueue();
    }
}
SCENARIO(task_wake_run, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a wake of a task that is notified or running");
    task = new_task();
    n_queued = 1;
    int a = vmc_spawn(wake_for_nothing, NULL), b = vmc_spawn(wake_with_news, NULL);
    run_until_ready();
    vmc_join(a);
    vmc_join(b);
    vmc_free(task);
}

// The poll sees the plain memory that the waker wrote before.
static void write_and_wake(void *arg) {
    (void)arg;
    is_done = 7;
    if (volt__task_wake(task)) enqueue();
}
SCENARIO(task_wake_publishes, .class = VMC_EXHAUSTIVE) {
    task = new_task();
    task->word = VOLT__REF; // idle: only the wake queues it
    int a = vmc_spawn(write_and_wake, NULL);
    dequeue();
    volt__task_begin(task);
    VMC_ASSERT(is_done == 7);
    vmc_join(a);
    vmc_free(task);
}

// The runner finishes while a holder of a reference wakes, then lets go: the last one frees.
static void wake_and_release(void *arg) {
    (void)arg;
    volt__task_wake(task);
    task->spawn_ms++; // plain use, as a joiner reads the result
    if (volt__task_release(task)) {
        task->spawn_ms++;
        vmc_reached("the waker frees");
        vmc_free(task);
    }
}
SCENARIO(task_last_reference, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("the waker frees");
    vmc_must_happen("the runner frees");
    task = new_task();
    task->word += VOLT__REF;
    volt__task_begin(task);
    vmc_spawn(wake_and_release, NULL);
    if (volt__task_finish(task)) {
        task->spawn_ms++;
        vmc_reached("the runner frees");
        vmc_free(task);
    }
}

// Cancelled before, during or after its first poll: that one or the next starts cancelled.
static void cancel(void *arg) {
    (void)arg;
    if (volt__task_cancel(task)) enqueue();
}
SCENARIO(task_cancel_run, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("cancelled before the first poll");
    vmc_must_happen("cancelled after it");
    task = new_task();
    n_queued = 1;
    int a = vmc_spawn(cancel, NULL);
    dequeue();
    if (volt__task_begin(task) & VOLT__CANCELLED) {
        vmc_reached("cancelled before the first poll");
    } else {
        if (volt__task_suspend(task)) enqueue();
        dequeue(); // the cancel is never lost
        VMC_ASSERT(volt__task_begin(task) & VOLT__CANCELLED);
        vmc_reached("cancelled after it");
    }
    vmc_join(a);
    vmc_free(task);
}
