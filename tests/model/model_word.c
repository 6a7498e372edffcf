// SPDX-License-Identifier: MIT OR 0BSD
// The task word [T1] [T2]: a thread that wins the right to enqueue a task polls it here at once, so
// the word alone orders the polls. No wake-up is lost: the last poll saw what each waker had
// written before it woke, even where the task was notified already. No two polls overlap. The last
// reference frees, after all that the others did.
// Run: make model ONE=word_wake (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

typedef struct block { // header and state of a task, in one block, as in a slab
    volt__task task;
    int n_polls;       // plain: the runner's
    uint32_t seen;     // plain: what the last poll saw
    int was_cancelled; // plain: whether the last poll was
    int uses[3];       // plain: of each holder of a reference
} block;
static block *b;
static uint32_t events; // any, relaxed: bit i: waker i has something to say
static uint32_t n_enqueued;
static int reason; // plain: the cancellation hands it over

static void make(uint32_t refs) {
    b = vmc_alloc(sizeof *b);
    volt__store_rlx(&b->task.word, VOLT__NOTIFIED + refs * VOLT__REF);
}
// Through a queue of the thread's own, whose link is the task's.
static void begin(void) {
    volt__chain queue;
    volt__chain_init(&queue);
    volt__chain_push(&queue, &b->task);
    volt__task *t = volt__chain_pop(&queue);
    b->was_cancelled = (volt__task_begin(t) & VOLT__CANCELLED) != 0;
    b->n_polls++;
    b->seen = volt__load_rlx(&events);
    if (b->was_cancelled) VMC_ASSERT(reason == 1);
}
// Polls until nothing is to be done: a runner that was notified meanwhile goes on itself.
static void run(void) {
    do begin();
    while (volt__task_suspend(&b->task));
}
static void won(void) {
    volt__add_rlx(&n_enqueued, 1);
    run();
}

// ---- wakers beside the runner

static void waker(void *event) {
    __atomic_fetch_or(&events, (uint32_t)(uintptr_t)event, __ATOMIC_RELAXED);
    if (volt__task_wake(&b->task)) won();
}
static void canceller(void *unused) {
    (void)unused;
    reason = 1;
    if (volt__task_cancel(&b->task)) won();
}
SCENARIO(word_wake, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("the waker enqueues it");
    vmc_must_happen("the runner enqueues it");
    vmc_must_happen("it was queued anyway");
    make(1);
    int t = vmc_spawn(waker, (void *)1);
    run();
    vmc_join(t);
    VMC_ASSERT(b->seen == 1);
    VMC_ASSERT(b->n_polls == 1 || b->n_polls == 2);
    vmc_reached(n_enqueued ? "the waker enqueues it" : "it was queued anyway");
    if (b->n_polls == 2 && !n_enqueued) vmc_reached("the runner enqueues it");
    vmc_free(b);
}
SCENARIO(word_wake_wake, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t1 = vmc_spawn(waker, (void *)1), t2 = vmc_spawn(waker, (void *)2);
    run();
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(b->seen == 3 && b->n_polls <= 3);
    vmc_free(b);
}
SCENARIO(word_cancel, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t = vmc_spawn(canceller, NULL);
    run();
    vmc_join(t);
    VMC_ASSERT(b->was_cancelled);
    vmc_free(b);
}
SCENARIO(word_cancel_wake, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t1 = vmc_spawn(canceller, NULL), t2 = vmc_spawn(waker, (void *)1);
    run();
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(b->was_cancelled && b->seen == 1);
    vmc_free(b);
}
// A task that yields is its runner's to enqueue, whichever thread wakes it meanwhile.
SCENARIO(word_yield_wake, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t = vmc_spawn(waker, (void *)1);
    begin();
    volt__task_yield(&b->task);
    run();
    vmc_join(t);
    VMC_ASSERT(b->seen == 1);
    VMC_ASSERT(b->n_polls == 2 || b->n_polls == 3);
    vmc_free(b);
}
SCENARIO(word_yield_wake_wake, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t1 = vmc_spawn(waker, (void *)1), t2 = vmc_spawn(waker, (void *)2);
    begin();
    volt__task_yield(&b->task);
    run();
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(b->seen == 3);
    vmc_free(b);
}
// Whichever thread polls it next, it may yield: the word hands over what the poll before left.
static void waker_yields(void *event) {
    __atomic_fetch_or(&events, (uint32_t)(uintptr_t)event, __ATOMIC_RELAXED);
    if (!volt__task_wake(&b->task)) return;
    begin();
    volt__task_yield(&b->task);
    run();
}
SCENARIO(word_wake_yield, .class = VMC_EXHAUSTIVE) {
    make(1);
    int t1 = vmc_spawn(waker_yields, (void *)1), t2 = vmc_spawn(waker, (void *)2);
    run();
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(b->seen == 3);
    vmc_free(b);
}

// ---- the end: it is not polled again, and its last holder frees it

static void drop(int holder) {
    b->uses[holder]++;
    if (volt__task_release(&b->task)) vmc_free(b);
}
static void wake_and_drop(void *unused) {
    (void)unused;
    if (volt__task_wake(&b->task)) run();
    drop(1);
}
// The runner finishes in its second poll, or in the first if it was not woken.
static void run_to_the_end(void) {
    begin();
    b->task.u.result = 7;
    if (volt__task_finish(&b->task)) {
        vmc_reached("the runner frees it");
        vmc_free(b);
    }
}
SCENARIO(word_wake_finish, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("the runner frees it");
    make(2);
    int t = vmc_spawn(wake_and_drop, NULL);
    run_to_the_end();
    vmc_join(t);
}
static void look_and_drop(void *holder) { drop((int)(intptr_t)holder); }
SCENARIO(word_wake_finish_drop, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("the runner frees it");
    make(3);
    int t1 = vmc_spawn(wake_and_drop, NULL), t2 = vmc_spawn(look_and_drop, (void *)2);
    run_to_the_end();
    vmc_join(t1);
    vmc_join(t2);
}
SCENARIO(word_drop_two, .class = VMC_EXHAUSTIVE) {
    make(2);
    int t = vmc_spawn(look_and_drop, (void *)1);
    drop(0);
    vmc_join(t);
}
SCENARIO(word_drop_three, .class = VMC_EXHAUSTIVE) {
    make(3);
    int t1 = vmc_spawn(look_and_drop, (void *)1), t2 = vmc_spawn(look_and_drop, (void *)2);
    drop(0);
    vmc_join(t1);
    vmc_join(t2);
}
// The holder of a reference makes another one, and gives both back.
static void clone_and_drop(void *unused) {
    (void)unused;
    volt__task_retain(&b->task);
    drop(1);
    drop(2);
}
SCENARIO(word_clone_drop, .class = VMC_EXHAUSTIVE) {
    make(2);
    int t = vmc_spawn(clone_and_drop, NULL);
    drop(0);
    vmc_join(t);
}
