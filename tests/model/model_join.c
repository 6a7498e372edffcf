// SPDX-License-Identifier: MIT OR 0BSD
// Joins: the join word [T3] of a task that ends, and the parker [P1] of a thread that waits for
// it. A result is delivered once, with all that the task wrote; a waiter is woken; one that gives
// up may go its way, and with it the memory that it waited in.
// Run: make model ONE=join_thread (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

typedef struct child {
    volt_frame frame;
    int answer;
} child;
static volt_handle handle;
static int message; // plain: the end of the child hands it over
static volt_poll ends(volt_cx *cx, void *arg) {
    child *c = arg;
    (void)cx;
    c->answer = 42;
    message = 1;
    return volt_ready(7);
}
static void start(uint32_t n_workers, volt__worker **where) {
    child c = { .answer = 0 };
    rt_make(n_workers);
    VMC_ASSERT(volt__spawn(rt, *where, &handle, ends, &c, sizeof c, "child") == 0);
}
static void run(void *where) {
    rt_carry(where);
    rt_run_all(where);
}
static void check_delivered(int64_t result) {
    VMC_ASSERT(result == 7 && message == 1 && !handle.task_);
}

// ---- threads

// The thread's waiter lies on its stack, which it uses for something else as soon as it has its
// answer.
static void use_stack(void) {
    char deep[2048];
    memset(deep, 0, sizeof deep);
}
static int join(volt_time at_most, int64_t *r) {
    int rc = volt_join_sync(&handle, at_most, r);
    use_stack();
    return rc;
}
SCENARIO(join_thread, .class = VMC_EXHAUSTIVE) {
    int64_t r = 0;
    start(1, &w0);
    int t = vmc_spawn(run, w0);
    VMC_ASSERT(join(VOLT_NEVER, &r) == 0);
    check_delivered(r);
    vmc_join(t);
    rt_end();
}
SCENARIO(join_thread_timeout, .class = VMC_EXHAUSTIVE) {
    int64_t r = 0;
    vmc_must_happen("in time");
    vmc_must_happen("too late, then again");
    start(1, &w0);
    int t = vmc_spawn(run, w0), rc = join(VOLT_MS(1), &r);
    VMC_ASSERT(rc == 0 || (rc == -ETIMEDOUT && handle.task_));
    vmc_reached(rc == 0 ? "in time" : "too late, then again");
    if (rc < 0) VMC_ASSERT(join(VOLT_NEVER, &r) == 0);
    check_delivered(r);
    vmc_join(t);
    rt_end();
}
SCENARIO(join_thread_gives_up, .class = VMC_EXHAUSTIVE) {
    int64_t r = 0;
    start(1, &w0);
    int t = vmc_spawn(run, w0);
    if (join(VOLT_MS(1), &r) < 0) volt_detach(&handle);
    VMC_ASSERT(!handle.task_);
    vmc_join(t);
    rt_end();
}
SCENARIO(join_try, .class = VMC_EXHAUSTIVE) {
    int64_t r = 0;
    vmc_must_happen("it has ended");
    vmc_must_happen("not yet");
    start(1, &w0);
    int t = vmc_spawn(run, w0), rc = volt_try_join(&handle, &r);
    VMC_ASSERT(rc == 0 || rc == -EAGAIN);
    vmc_reached(rc == 0 ? "it has ended" : "not yet");
    if (rc == 0) check_delivered(r);
    vmc_join(t);
    if (rc < 0) VMC_ASSERT(volt_try_join(&handle, &r) == 0);
    check_delivered(r);
    rt_end();
}
SCENARIO(join_detach, .class = VMC_EXHAUSTIVE) {
    start(1, &w0);
    int t = vmc_spawn(run, w0);
    volt_detach(&handle);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(message == 1);
}
SCENARIO(join_cancelled_thread, .class = VMC_EXHAUSTIVE) { // a cancelled task still delivers
    int64_t r = 0;
    start(1, &w0);
    int t = vmc_spawn(run, w0);
    volt_cancel(&handle);
    VMC_ASSERT(join(VOLT_NEVER, &r) == 0);
    check_delivered(r);
    vmc_join(t);
    rt_end();
}

// ---- tasks

typedef struct joiner {
    volt_frame frame;
    child copy;
} joiner;
static int n_delivered, n_cancelled;
static volt_poll joins(volt_cx *cx, void *arg) {
    joiner *j = arg;
    VOLT_BEGIN(cx, j);
    int r;
    VOLT_AWAIT(r, volt_join_state(cx, &handle, &j->copy, sizeof j->copy));
    if (r == -ECANCELED) {
        VMC_ASSERT(handle.task_);
        volt_detach(&handle);
        n_cancelled++;
    } else {
        check_delivered(r);
        VMC_ASSERT(j->copy.answer == 42);
        n_delivered++;
    }
    VOLT_END(0);
}
static void spawn_joiner(volt_handle *h) {
    joiner j;
    memset(&j, 0, sizeof j);
    VMC_ASSERT(volt__spawn(rt, w0, h, joins, &j, sizeof j, "joiner") == 0);
}
SCENARIO(join_task, .class = VMC_EXHAUSTIVE) {
    start(2, &w1);
    spawn_joiner(NULL);
    int t = vmc_spawn(run, w1);
    run(w0);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(n_delivered == 1);
}
static void cancel_joiner(void *joiner_) { volt_cancel(joiner_); }
static void join_beside_cancel(void) {
    static volt_handle h;
    vmc_must_happen("it joins");
    vmc_must_happen("it is cancelled");
    start(2, &w1);
    spawn_joiner(&h);
    int t1 = vmc_spawn(run, w1), t2 = vmc_spawn(cancel_joiner, &h);
    run(w0);
    vmc_join(t1);
    vmc_join(t2);
    volt_detach(&h);
    rt_end();
    VMC_ASSERT(n_delivered + n_cancelled == 1);
    vmc_reached(n_delivered ? "it joins" : "it is cancelled");
}
SCENARIO(join_task_cancelled, .class = VMC_BOUNDED, .preemptions = 2) {
    join_beside_cancel();
}
SCENARIO(join_task_cancelled_long, .class = VMC_EXHAUSTIVE, .is_long = 1) { join_beside_cancel(); }
