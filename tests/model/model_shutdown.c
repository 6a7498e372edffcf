// SPDX-License-Identifier: MIT OR 0BSD
// Shutdown [S1] [S2]: a spawn that races with it is refused or runs to its end; the last worker to
// acknowledge cancels all that lives; of the workers that end the last tasks one stops the runtime;
// destroying it waits for the threads that are still inside.
// Run: make model ONE=shutdown_spawn_outside (or another name from below).
#define VOLT_MAX_WORKERS 128u // parked bits in more than one word
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

typedef struct job {
    volt_frame frame;
} job;
static int n_polls, n_accepted;
static volt_poll ends(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    n_polls++;
    return volt_ready(0);
}
static int spawn(volt__worker *where, volt_handle *h, volt_fn *fn) {
    job j = { 0 };
    return volt__spawn(rt, where, h, fn, &j, sizeof j, "job");
}
static void count(int rc) {
    VMC_ASSERT(rc == 0 || rc == -ESHUTDOWN);
    vmc_reached(rc == 0 ? "accepted" : "refused");
    n_accepted += rc == 0;
}
static void must_accept_and_refuse(void) {
    vmc_must_happen("accepted");
    vmc_must_happen("refused");
}
static void begin(void *unused) {
    (void)unused;
    volt__shutdown_begin(rt);
}
// As a worker does it: looks at the shutdown between polls, not within.
static void work(void *worker_) {
    volt__worker *w = worker_;
    rt_carry(w);
    rt_run_all(w);
    volt__check_shutdown(w);
    rt_run_all(w);
}
// The workers' steps then, one after the other: the sums agree, so the runtime is stopped.
static void stop(void) {
    volt__idle_park(&rt->idle, 0, 0);
    volt__stop_if_done(rt);
    VMC_ASSERT(volt__count_alive(rt) == 0 && volt__is_stopped(rt));
}
static void end(void) {
    for (uint32_t i = 0; i < rt->started; i++) {
        rt_carry(rt->workers[i]);
        volt__check_shutdown(rt->workers[i]);
    }
    rt_end();
    stop();
}

// ---- spawns beside the beginning of a shutdown

static void spawn_outside(void *unused) {
    (void)unused;
    count(spawn(NULL, NULL, ends));
}
SCENARIO(shutdown_spawn_outside, .class = VMC_EXHAUSTIVE) {
    must_accept_and_refuse();
    rt_make(1);
    int t = vmc_spawn(spawn_outside, NULL);
    begin(NULL);
    work(w0);
    vmc_join(t);
    end();
    VMC_ASSERT(n_polls == n_accepted);
}
// Placed with the worker, whose inbox is open until it has seen the shutdown.
SCENARIO(shutdown_spawn_placed, .class = VMC_EXHAUSTIVE) {
    must_accept_and_refuse();
    rt_make(1);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    int t = vmc_spawn(spawn_outside, NULL);
    begin(NULL);
    work(w0);
    volt__idle_park(&rt->idle, 0, 0);
    volt__stop_if_done(rt);
    int is_over = volt__is_stopped(rt); // a task spawned now would never run
    vmc_join(t);
    if (is_over) VMC_ASSERT(n_polls == n_accepted);
    volt__idle_unpark(&rt->idle, 0);
    end();
    VMC_ASSERT(n_polls == n_accepted);
}
// Any thread may count the tasks, by the sums of queues that others change.
static void count_beside_spawn(volt_placement placement) {
    rt_make(1);
    rt->cfg.placement = placement;
    int t = vmc_spawn(spawn_outside, NULL);
    VMC_ASSERT(volt__count_alive(rt) <= 1);
    vmc_join(t);
    VMC_ASSERT(volt__count_alive(rt) == 1);
    begin(NULL);
    end();
}
SCENARIO(shutdown_count_beside_spawn, .class = VMC_EXHAUSTIVE) {
    count_beside_spawn(VOLT_PLACE_SHARED);
}
SCENARIO(shutdown_count_beside_placed_spawn, .class = VMC_EXHAUSTIVE) {
    count_beside_spawn(VOLT_PLACE_LEAST);
}
static volt_poll spawns(volt_cx *cx, void *arg) {
    (void)arg;
    count(spawn(cx->worker_, NULL, ends));
    return volt_ready(0);
}
static volt_poll yields_and_spawns(volt_cx *cx, void *arg) {
    job *j = arg;
    VOLT_BEGIN(cx, j);
    VOLT_AWAIT(volt_yield(cx));
    count(spawn(cx->worker_, NULL, ends));
    VOLT_END(0);
}
static void begin_and_work(void *worker_) {
    begin(NULL);
    work(worker_);
}
static void spawn_inside(volt_fn *fn) {
    rt_make(2);
    rt_carry(w0);
    VMC_ASSERT(spawn(w0, NULL, fn) == 0);
    int t = vmc_spawn(begin_and_work, w1);
    rt_run_one(w0);
    volt__check_shutdown(w0);
    rt_run_all(w0);
    vmc_join(t);
    end();
    VMC_ASSERT(n_polls == n_accepted);
}
SCENARIO(shutdown_spawn_inside, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("accepted");
    spawn_inside(spawns);
}
SCENARIO(shutdown_yield_spawn_inside, .class = VMC_EXHAUSTIVE) {
    must_accept_and_refuse();
    spawn_inside(yields_and_spawns);
}

// ---- spawns refused beside the sweep, which may hold what is refused: one of them frees it

static void refused_outside(void *unused) {
    (void)unused;
    VMC_ASSERT(spawn(NULL, NULL, ends) == -ESHUTDOWN);
}
SCENARIO(shutdown_refuse_outside_beside_the_sweep, .class = VMC_EXHAUSTIVE) {
    rt_make(1);
    begin(NULL);
    int t = vmc_spawn(refused_outside, NULL);
    work(w0);
    vmc_join(t);
    end();
    VMC_ASSERT(n_polls == 0);
}
static void see_shutdown(void *worker_) {
    rt_carry(worker_);
    volt__check_shutdown(worker_);
}
SCENARIO(shutdown_refuse_inside_beside_the_sweep, .class = VMC_EXHAUSTIVE) {
    volt_handle h = { NULL };
    rt_make(2);
    begin(NULL);
    see_shutdown(w0);
    int t = vmc_spawn(see_shutdown, w1);
    VMC_ASSERT(spawn(w0, &h, ends) == -ESHUTDOWN && !h.task_);
    vmc_join(t);
    end();
    VMC_ASSERT(n_polls == 0);
}

// ---- the sweep comes once, when all have acknowledged, in whatever order: a task that nothing
// else would ever wake is polled again, cancelled

static int n_cancelled;
static volt_poll never(volt_cx *cx, void *arg) {
    job *j = arg;
    VOLT_BEGIN(cx, j);
    int r;
    VOLT_AWAIT(r, volt_sleep_forever(cx));
    VMC_ASSERT(r == -ECANCELED);
    n_cancelled++;
    VOLT_END(0);
}
SCENARIO(shutdown_sweep_of_three, .class = VMC_EXHAUSTIVE) {
    rt_make(2);
    rt_carry(w0);
    VMC_ASSERT(spawn(w0, NULL, never) == 0);
    rt_run_one(w0);
    int t1 = vmc_spawn(begin, NULL), t2 = vmc_spawn(see_shutdown, w1);
    see_shutdown(w0);
    vmc_join(t1);
    vmc_join(t2);
    end();
    VMC_ASSERT(n_cancelled == 1);
}
SCENARIO(shutdown_begun_twice, .class = VMC_EXHAUSTIVE) {
    rt_make(1);
    rt_carry(w0);
    VMC_ASSERT(spawn(w0, NULL, never) == 0);
    int t = vmc_spawn(begin, NULL);
    begin(NULL);
    work(w0);
    vmc_join(t);
    end();
    VMC_ASSERT(n_cancelled == 1);
}
// A handle is cancelled and given up beside the sweep.
static volt_handle handle;
static void cancel_and_detach(void *unused) {
    (void)unused;
    volt_cancel(&handle);
    volt_detach(&handle);
}
SCENARIO(shutdown_sweep_beside_a_cancel, .class = VMC_EXHAUSTIVE) {
    rt_make(1);
    rt_carry(w0);
    VMC_ASSERT(spawn(w0, &handle, never) == 0);
    rt_run_one(w0);
    begin(NULL);
    int t = vmc_spawn(cancel_and_detach, NULL);
    work(w0);
    vmc_join(t);
    end();
    VMC_ASSERT(n_cancelled == 1);
}

static volt_poll ends_alone(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    return volt_ready(0);
}

// ---- [S2]: each ends its last task, then enters the parked set and compares the sums

static void end_and_park(volt__worker *w, uint32_t bit) {
    rt_carry(w);
    VMC_ASSERT(rt_run_one(w));
    volt__idle_park(&rt->idle, bit, 0);
    volt__stop_if_done(rt);
}
static void end_and_park_near(void *worker_) { end_and_park(worker_, 1); }
static void end_and_park_far(void *worker_) { end_and_park(worker_, VOLT__IDLE_BITS); }
static void start_last_two(void) {
    rt_make(2);
    VMC_ASSERT(spawn(w0, NULL, ends_alone) == 0);
    VMC_ASSERT(spawn(w1, NULL, ends_alone) == 0);
    begin(NULL);
    see_shutdown(w0);
    see_shutdown(w1);
}
static void end_last_two(void (*second)(void *)) {
    start_last_two();
    int t = vmc_spawn(second, w1);
    end_and_park(w0, 0);
    vmc_join(t);
    VMC_ASSERT(volt__is_stopped(rt));
    rt_end();
}
SCENARIO(shutdown_last_two, .class = VMC_EXHAUSTIVE) { end_last_two(end_and_park_near); }
SCENARIO(shutdown_last_two_far, .class = VMC_EXHAUSTIVE) {
    end_last_two(end_and_park_far);
} // bits in two words
// Each sleeps in the end, but for the one that finds that all is over: it wakes the other.
static void carry(void *worker_) {
    volt__task *t;
    rt_carry(worker_);
    while ((t = volt__wait_for_task(worker_)) != NULL) volt__poll_task(worker_, t);
}
static void sleep_in_the_end(void) {
    start_last_two();
    int t = vmc_spawn(carry, w1);
    carry(w0);
    vmc_join(t);
    VMC_ASSERT(volt__is_stopped(rt) && volt__count_alive(rt) == 0);
    rt_end();
}
SCENARIO(shutdown_last_two_sleep, .class = VMC_BOUNDED, .preemptions = 1) {
    sleep_in_the_end();
}
SCENARIO(shutdown_last_two_sleep_long, .class = VMC_BOUNDED, .preemptions = 3,
         .is_long = 1) {
    sleep_in_the_end();
}
// A task that is spawned before its worker acknowledges counts when the sums are compared.
static void spawn_and_acknowledge(void *worker_) {
    volt__worker *w = worker_;
    rt_carry(w);
    VMC_ASSERT(spawn(w, NULL, ends_alone) == 0);
    volt__check_shutdown(w);
}
SCENARIO(shutdown_not_too_early, .class = VMC_EXHAUSTIVE) {
    rt_make(2);
    begin(NULL);
    int t = vmc_spawn(spawn_and_acknowledge, w1);
    see_shutdown(w0);
    volt__idle_park(&rt->idle, 0, 0);
    volt__stop_if_done(rt);
    VMC_ASSERT(!volt__is_stopped(rt));
    volt__idle_unpark(&rt->idle, 0);
    vmc_join(t);
    end();
}

// ---- all waiters for the end are told; a created task that is destroyed counts as ended

static void wait_for_end(void *unused) {
    (void)unused;
    VMC_ASSERT(volt__shutdown_wait(rt, VOLT_NEVER) == 0);
}
SCENARIO(shutdown_two_wait, .class = VMC_EXHAUSTIVE) {
    rt_make(1);
    begin(NULL);
    int t1 = vmc_spawn(wait_for_end, NULL), t2 = vmc_spawn(wait_for_end, NULL);
    end();
    vmc_join(t1);
    vmc_join(t2);
}
static void destroy_task(void *state) { volt_task_destroy(state); }
SCENARIO(shutdown_created_task_destroyed, .class = VMC_EXHAUSTIVE) {
    rt_make(1);
    void *state = volt_task_create(rt, ends, sizeof(job));
    begin(NULL);
    int t = vmc_spawn(destroy_task, state);
    rt_carry(w0);
    VMC_ASSERT(volt__wait_for_task(w0) == NULL); // sleeps until it is told
    vmc_join(t);
    VMC_ASSERT(volt__is_stopped(rt));
    rt_end();
}

// ---- destroy beside the last holder: it gives up what it holds and leaves, then all is freed

static void detach(void *unused) {
    (void)unused;
    volt_detach(&handle);
}
static volt_waker waker;
static volt_poll gives_waker(volt_cx *cx, void *arg) {
    (void)arg;
    waker = volt_waker_retain(cx);
    return volt_ready(0);
}
static void wake_and_release(void *unused) {
    (void)unused;
    volt_wake(waker);
    volt_waker_release(waker);
}
static void destroy_beside(volt_handle *h, volt_fn *fn, void (*last)(void *)) {
    vmc_must_happen("held");
    vmc_must_happen("given up");
    rt_is_on_heap = 1;
    rt_make(1);
    VMC_ASSERT(spawn(w0, h, fn) == 0);
    begin(NULL);
    work(w0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    int t = vmc_spawn(last, NULL), rc = volt_destroy(rt);
    VMC_ASSERT(rc == 0 || rc == -EBUSY);
    vmc_reached(rc ? "held" : "given up");
    vmc_join(t);
    if (rc) VMC_ASSERT(volt_destroy(rt) == 0);
}
SCENARIO(shutdown_destroy_beside_detach, .class = VMC_EXHAUSTIVE) {
    destroy_beside(&handle, ends, detach);
}
SCENARIO(shutdown_destroy_beside_waker, .class = VMC_EXHAUSTIVE) {
    destroy_beside(NULL, gives_waker, wake_and_release);
}
// The last task was never started: the thread that destroys it leaves, then all is freed.
SCENARIO(shutdown_destroy_beside_task_destroy, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    void *state = volt_task_create(rt, ends, sizeof(job));
    begin(NULL);
    int t = vmc_spawn(destroy_task, state);
    rt_carry(w0);
    VMC_ASSERT(volt__wait_for_task(w0) == NULL && volt__is_stopped(rt));
    rt_carry(NULL);
    volt__join_threads(rt);
    VMC_ASSERT(volt_destroy(rt) == 0);
    vmc_join(t);
}
// One thread has shut it down and is about to leave; what the worker's thread wrote comes to the
// one that frees it by way of the thread that joined it.
static void work_and_stop(void *unused) {
    (void)unused;
    work(w0);
    stop();
}
static void shut_down(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0);
}
SCENARIO(shutdown_destroy_beside_shutdown, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("held");
    vmc_must_happen("given up");
    rt_is_on_heap = 1;
    rt_make(1);
    begin(NULL);
    w0->has_thread = 1;
    w0->thread = (pthread_t)vmc_spawn(work_and_stop, NULL);
    int t = vmc_spawn(shut_down, NULL), rc = volt_destroy(rt);
    vmc_reached(rc ? "held" : "given up");
    vmc_join(t);
    if (rc) VMC_ASSERT(volt_destroy(rt) == 0);
}
// A thread that blocks on a task has it given back before the runtime can go, held or not.
static void block_on(void *unused) {
    job j = { 0 };
    (void)unused;
    VMC_ASSERT(volt_block_on(rt, ends, &j) == 0);
}
SCENARIO(shutdown_destroy_beside_block_on, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    int t = vmc_spawn(block_on, NULL);
    rt_carry(w0);
    rt_run_all(w0);
    vmc_assume(n_polls == 1);
    begin(NULL);
    work(w0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    VMC_ASSERT(volt_destroy(rt) == 0);
    vmc_join(t);
}
// The task that a thread hands over ends, and the runtime with it, while that thread is still in
// the call: the task was accepted, so the thread need not hold anything.
static void spawn_last(void *unused) {
    (void)unused;
    VMC_ASSERT(spawn(NULL, NULL, ends) == 0);
}
static void *created;
static void start_last(void *unused) {
    (void)unused;
    volt_task_start(created, NULL);
}
static void destroy_beside_last(void (*last)(void *)) {
    int t = vmc_spawn(last, NULL);
    rt_carry(w0);
    rt_run_all(w0);
    vmc_assume(n_polls == 1);
    begin(NULL);
    work(w0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    VMC_ASSERT(volt_destroy(rt) == 0);
    vmc_join(t);
}
SCENARIO(shutdown_destroy_beside_spawn, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    destroy_beside_last(spawn_last);
}
SCENARIO(shutdown_destroy_beside_placed_spawn, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    destroy_beside_last(spawn_last);
}
SCENARIO(shutdown_destroy_beside_start, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    created = volt_task_create(rt, ends, sizeof(job));
    destroy_beside_last(start_last);
}
// A spawn that comes too late is refused, by a thread that holds a task and gives it up then.
static void spawn_and_detach(void *unused) {
    VMC_ASSERT(spawn(NULL, NULL, ends) == -ESHUTDOWN);
    detach(unused);
}
SCENARIO(shutdown_destroy_beside_refused_spawn, .class = VMC_EXHAUSTIVE) {
    destroy_beside(&handle, ends, spawn_and_detach);
}
// Nothing is held here: the thread has only begun its call.
static void spawn_refused(void *unused) {
    (void)unused;
    VMC_ASSERT(spawn(NULL, NULL, ends) == -ESHUTDOWN);
}
SCENARIO(shutdown_destroy_waits_for_a_refused_spawn, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    begin(NULL);
    work(w0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    int t = vmc_spawn(spawn_refused, NULL);
    vmc_assume(volt__load_acq(&rt->pins) >= 2);
    VMC_ASSERT(volt_destroy(rt) == 0);
    vmc_join(t);
}
// A task of another runtime begins the shutdown, and is still in the call when all has ended.
static volt__worker stranger;
static volt_rt home;
static void shut_down_by_a_task(void *unused) {
    (void)unused;
    stranger.rt = &home;
    VOLT_TLS_SET(&stranger);
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == -EINPROGRESS);
    VOLT_TLS_SET((volt__worker *)NULL);
}
SCENARIO(shutdown_destroy_waits_for_a_task_of_another_runtime, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    int t = vmc_spawn(shut_down_by_a_task, NULL);
    vmc_assume(volt__load_acq(&rt->is_closed) != 0);
    work(w0);
    vmc_assume(volt__load_acq(&rt->acks) == 0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    VMC_ASSERT(volt_destroy(rt) == 0);
    vmc_join(t);
}
// A task that has joined one of another runtime ends as soon as it is woken, and its runtime with
// it, while the worker that has woken it gives its reference back.
static volt__task *joiner;
static volt_poll joins_a_stranger(volt_cx *cx, void *arg) {
    volt__node *node = &((job *)arg)->frame.node_;
    if (joiner) {
        volt__node_unbind(node, joiner);
        return ends(cx, arg);
    }
    joiner = cx->task_;
    joiner->flags |= VOLT__IS_SHARED;
    volt__task_retain(joiner);
    volt__node_bind(node, joiner, joiner);
    return volt_pending();
}
static void end_of_the_stranger(void *unused) {
    (void)unused;
    volt__join_wake_elsewhere(joiner);
}
SCENARIO(shutdown_destroy_waits_for_a_join_of_another_runtime, .class = VMC_EXHAUSTIVE) {
    rt_is_on_heap = 1;
    rt_make(1);
    VMC_ASSERT(spawn(w0, NULL, joins_a_stranger) == 0);
    rt_carry(w0);
    rt_run_one(w0);
    rt_carry(NULL);
    destroy_beside_last(end_of_the_stranger);
}
// Two threads hold the same task; the last one to give it up is the last to leave, or not.
static volt_poll gives_another(volt_cx *cx, void *arg) {
    waker = volt_waker_retain(cx);
    return ends(cx, arg);
}
SCENARIO(shutdown_destroy_beside_two, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("held");
    vmc_must_happen("given up");
    rt_is_on_heap = 1;
    rt_make(1);
    VMC_ASSERT(spawn(w0, &handle, gives_another) == 0);
    begin(NULL);
    work(w0);
    stop();
    rt_carry(NULL);
    volt__join_threads(rt);
    int t1 = vmc_spawn(detach, NULL), t2 = vmc_spawn(wake_and_release, NULL);
    int rc = volt_destroy(rt);
    VMC_ASSERT(rc == 0 || rc == -EBUSY);
    vmc_reached(rc ? "held" : "given up");
    vmc_join(t1);
    vmc_join(t2);
    if (rc) VMC_ASSERT(volt_destroy(rt) == 0);
}

// ---- two workers: one compares the sums while the other one has acknowledged, or is about to; a
// spawn that is placed with that one is counted, or refused

static void spawn_placed(void *unused) {
    (void)unused;
    count(spawn(NULL, NULL, ends));
}
SCENARIO(shutdown_placed_beside_the_sums, .class = VMC_BOUNDED, .preemptions = 2,
         .stale_reads = 1) {
    must_accept_and_refuse();
    vmc_must_happen("stopped");
    rt_make(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    rt->n_placements = 1; // worker 1 comes first
    int t1 = vmc_spawn(spawn_placed, NULL);
    begin(NULL);
    int t2 = vmc_spawn(see_shutdown, w1);
    see_shutdown(w0);
    volt__idle_park(&rt->idle, VOLT__IDLE_BITS, 0); // as if far away: nothing is placed there
    volt__stop_if_done(rt);
    int is_over = volt__is_stopped(rt);
    vmc_join(t1);
    vmc_join(t2);
    if (is_over) {
        VMC_ASSERT(n_accepted == 0);
        vmc_reached("stopped");
    }
    volt__idle_unpark(&rt->idle, VOLT__IDLE_BITS);
    work(w1);
    end();
    VMC_ASSERT(n_polls == n_accepted);
}

// ---- a worker that was lent acknowledges in the middle of its task's poll: the sweep may hold a
// task that nothing else knows of, and its runner must not take its word for private

static int other;
static int begin_in_place(void *unused) {
    begin(unused);
    other = vmc_spawn(see_shutdown, w1); // the last to acknowledge sweeps
    return 0;
}
static volt_poll blocks(volt_cx *cx, void *arg) {
    (void)arg;
    VMC_ASSERT(volt_block_in_place(cx, begin_in_place, NULL) == 0);
    n_polls++;
    return volt_ready(0);
}
SCENARIO(shutdown_sweep_beside_a_lent_worker, .class = VMC_BOUNDED, .preemptions = 2,
         .stale_reads = 1) {
    rt_make(2);
    rt_carry(w0);
    VMC_ASSERT(spawn(w0, NULL, blocks) == 0);
    rt_run_one(w0);
    VMC_ASSERT(n_polls == 1);
    vmc_join(other);
    end();
    volt__carrier_release(w0); // a helper that comes too late finds that all is over
    VMC_ASSERT(volt__pool_close(&rt->pool, VOLT_NEVER) == 0);
}
