// SPDX-License-Identifier: MIT OR 0BSD
// Tasks that wait for the thread pool: a call that is cancelled is run or not, and its task knows
// which; one that may be left frees its argument once; a shutdown waits for it as long as it may. A
// worker whose poll blocks where no thread can be started: what waits there is run by others.
// Run: make model ONE=blocking_cancel (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#include "refuse.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { N_CALLS = 2, RESULT = 7 };
typedef struct call {
    volt_frame frame;
    volt_job job;
    int i;
    int64_t rc;
} call;
static call calls[N_CALLS];
static volt_handle handles[N_CALLS];
static uint32_t n_runs[N_CALLS]; // plain: the pool's lock hands them over
static uint32_t n_left; // tasks: the last one stops the runtime
static uint32_t may_end; // futex word

static void wait_until(uint32_t *word) {
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) vmc_futex_wait(word, 0, VOLT_NEVER);
}
static void tell(uint32_t *word) {
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    vmc_futex_wake(word, 1);
}
static int run_call(void *arg) {
    call *c = arg;
    n_runs[c->i]++;
    return RESULT;
}
static int run_until_told(void *arg) {
    wait_until(&may_end);
    return run_call(arg);
}
static void end_task(void) {
    if (__atomic_sub_fetch(&n_left, 1, __ATOMIC_ACQ_REL) != 0) return;
    volt__store_rel(&rt->is_stopped, 1);
    volt__unpark_all(rt);
}
static volt_poll blocks(volt_cx *cx, void *arg) {
    call *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_blocking(cx, &c->job, run_call, c));
    end_task();
    VOLT_END(c->rc);
}
static volt_poll blocks_until_told(volt_cx *cx, void *arg) {
    call *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_blocking(cx, &c->job, run_until_told, c));
    end_task();
    VOLT_END(c->rc);
}
static void begin(uint32_t n_workers, uint32_t n_tasks) {
    make_runtime(n_workers, UINT32_MAX);
    rt->pool.lane[VOLT__LANE_WORK].limit = 1;
    n_left = n_tasks;
}
static void start(volt__worker *w, int i, volt_fn *fn) {
    calls[i].i = i;
    spawn_on(w, &handles[i], fn, &calls[i]);
}
static volt__task *next(volt__worker *w) {
    volt__task *t = volt__next_local(w);
    return t ? t : volt__wait_for_task(w);
}
// As its thread does it.
static void carry(void *worker) {
    volt__worker *w = worker;
    act_as(w);
    w->needs_watchdog = 0;
    for (volt__task *t; (t = next(w)) != NULL;) volt__poll_task(w, t);
    act_as(NULL);
}
static void end(int n) {
    for (int i = 0; i < n; i++) volt_detach(&handles[i]);
    VMC_ASSERT(volt__pool_close(&rt->pool, VOLT_NEVER) == 0);
    finish();
}
// How it ended, if it may have been cancelled.
static void check_whether_run(int i) {
    int64_t rc = calls[i].rc;
    VMC_ASSERT(rc == RESULT || rc == -ECANCELED);
    VMC_ASSERT(n_runs[i] == (rc == RESULT ? 1 : 0));
    vmc_reached(rc == RESULT ? "run" : "taken back");
}

// ---- cancelled: its thread comes, or takes the one before it and then this one

static void must_run_and_take_back(void) {
    vmc_must_happen("run");
    vmc_must_happen("taken back");
}
static void cancel_the_last(int n) {
    int i = n;
    must_run_and_take_back();
    begin(1, (uint32_t)n);
    while (i-- > 0) start(workers[0], i, blocks); // the newest one is polled first
    drain(workers[0]); // until they wait
    volt_cancel(&handles[n - 1]);
    carry(workers[0]);
    end(n);
    check_whether_run(n - 1);
    VMC_ASSERT(n == 1 || calls[0].rc == RESULT);
}
SCENARIO(blocking_cancel, .class = VMC_BOUNDED, .preemptions = 3) { cancel_the_last(1); }
SCENARIO(blocking_cancel_queued, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .contests = 1) {
    cancel_the_last(2);
}

// ---- a shutdown beside a call that has begun, or not yet

static void carry_home(void *worker) { volt__worker_main(worker); }
static void tell_to_end(void *unused) {
    (void)unused;
    tell(&may_end);
}
SCENARIO(blocking_shutdown, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1,
         .contests = 1) {
    must_run_and_take_back();
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    begin(1, 0);
    start(workers[0], 0, blocks_until_told);
    drain(workers[0]);
    act_as(NULL);
    int t = vmc_spawn(tell_to_end, NULL);
    workers[0]->has_thread = 1;
    workers[0]->thread = (pthread_t)vmc_spawn(carry_home, workers[0]);
    int rc = volt_shutdown(rt, 10);
    vmc_reached(rc ? "too late" : "in time");
    VMC_ASSERT(rc == 1 ? volt_destroy(rt) == -EBUSY : rc == 0);
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0 && !volt__is_pool_busy(rt));
    vmc_join(t);
    check_whether_run(0);
    volt_detach(&handles[0]);
    free_runtime();
}

// ---- a call that may be left: its argument is given back once, to its task with the result, or to
// `drop`, at once or when it has run

typedef struct errand {
    volt_frame frame;
    volt_detached_job errand;
    int (*fn)(void *);
    int *ran; // on the heap, where a leak is found, and what is freed twice; plain
    int64_t rc;
} errand;
static errand errands[N_CALLS];
static uint32_t has_begun; // futex word
static void drop(void *ran) {
    volt__lock(&rt->pool.lock); // it is called without any lock
    volt__unlock(&rt->pool.lock);
    vmc_reached(*(int *)ran ? "dropped when it had run" : "dropped before it was run");
    vmc_free(ran);
}
static int run_errand(void *ran) { return *(int *)ran = RESULT; }
static int run_errand_until_told(void *ran) {
    tell(&has_begun);
    wait_until(&may_end);
    return run_errand(ran);
}
static volt_poll leaves(volt_cx *cx, void *arg) {
    errand *e = arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, volt_blocking_detach(cx, &e->errand, e->fn, e->ran, drop));
    VMC_ASSERT(!e->errand.impl_);
    if (e->rc != -ECANCELED) {
        VMC_ASSERT(*e->ran == (e->rc == RESULT ? RESULT : 0));
        vmc_free(e->ran);
    }
    end_task();
    VOLT_END(e->rc);
}
static void start_errand(volt__worker *w, int i, int (*fn)(void *)) {
    errands[i].fn = fn;
    errands[i].ran = vmc_alloc(sizeof *errands[i].ran);
    spawn_on(w, &handles[i], leaves, &errands[i]);
}
static void check_told_or_left(int i) {
    int64_t rc = errands[i].rc;
    VMC_ASSERT(rc == RESULT || rc == -ECANCELED);
    if (rc == RESULT) vmc_reached("told");
}
SCENARIO(detached_job_left, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) {
    vmc_must_happen("told");
    vmc_must_happen("dropped before it was run");
    vmc_must_happen("dropped when it had run");
    begin(1, 1);
    start_errand(workers[0], 0, run_errand);
    drain(workers[0]);
    volt_cancel(&handles[0]);
    carry(workers[0]);
    end(1);
    check_told_or_left(0);
}
// It has begun, and ends while it is left.
SCENARIO(detached_job_left_as_it_ends, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) {
    vmc_must_happen("told");
    vmc_must_happen("dropped when it had run");
    begin(1, 1);
    start_errand(workers[0], 0, run_errand_until_told);
    drain(workers[0]);
    wait_until(&has_begun);
    tell(&may_end);
    volt_cancel(&handles[0]);
    carry(workers[0]);
    end(1);
    check_told_or_left(0);
}
// It waits for the thread of another one, which comes to it while it is left.
SCENARIO(detached_job_left_in_the_queue, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .contests = 1) {
    vmc_must_happen("told");
    vmc_must_happen("dropped before it was run");
    vmc_must_happen("dropped when it had run");
    begin(1, 2);
    start_errand(workers[0], 0, run_errand_until_told);
    drain(workers[0]);
    start_errand(workers[0], 1, run_errand);
    drain(workers[0]);
    wait_until(&has_begun);
    tell(&may_end);
    volt_cancel(&handles[1]);
    carry(workers[0]);
    end(2);
    check_told_or_left(1);
    VMC_ASSERT(errands[0].rc == RESULT);
}
// No thread can be started. The second is queued behind the first, or fails by itself, and is left:
// one that has failed is its task's again, or is dropped by the thread that it was queued behind.
static void start_and_leave(void *worker) {
    drain(worker);
    act_as(worker);
    volt_cancel(&handles[1]);
    drain(worker);
}
SCENARIO(detached_job_no_thread, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .contests = 1) {
    vmc_must_happen("failed");
    vmc_must_happen("dropped before it was run");
    begin(2, 2);
    n_refusals = INT32_MAX;
    start_errand(workers[0], 0, run_errand);
    start_errand(workers[1], 1, run_errand);
    int t = vmc_spawn(start_and_leave, workers[1]);
    drain(workers[0]);
    vmc_join(t);
    end(2);
    int64_t rc = errands[1].rc;
    VMC_ASSERT(errands[0].rc == -EAGAIN && (rc == -EAGAIN || rc == -ECANCELED));
    if (rc == -EAGAIN) vmc_reached("failed");
}

// ---- in place, where no thread can be started

static int in_place(void *arg) {
    call *c = arg;
    volt__worker *w = VOLT_TLS_GET();
    VMC_ASSERT(rt->started > 1 ? !w : !w || w == workers[0]);
    vmc_reached(w ? "here" : "elsewhere");
    return run_call(c);
}
static int in_place_until_told(void *arg) {
    wait_until(&may_end);
    return in_place(arg);
}
static volt_poll blocks_in_place(volt_cx *cx, void *arg) {
    call *c = arg;
    volt__worker *w = cx->worker_;
    c->rc = volt_block_in_place(cx, c->i ? in_place : in_place_until_told, c);
    VMC_ASSERT(VOLT_TLS_GET() == w && cx->worker_ == w);
    end_task();
    return volt_ready(c->rc);
}
static volt_poll tells(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    tell(&may_end);
    end_task();
    return volt_ready(0);
}
// It waits for a task in the worker's LIFO slot, where no thief comes.
static volt_poll spawns_and_blocks(volt_cx *cx, void *arg) {
    VMC_ASSERT(volt__spawn_root(rt, cx->worker_, &handles[1], tells, &calls[1], 0) == 0);
    return blocks_in_place(cx, arg);
}
static void end_all(int n) {
    VMC_ASSERT(calls[0].rc == RESULT && n_runs[0] == 1);
    end(n);
}
SCENARIO(place_no_thread, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    begin(2, 2);
    n_refusals = INT32_MAX;
    start(workers[0], 0, spawns_and_blocks);
    int t = vmc_spawn(carry, workers[1]);
    carry(workers[0]);
    vmc_join(t);
    end_all(2);
}
// It comes from outside, placed with that worker.
static void spawn_outside(void *unused) {
    (void)unused;
    calls[1].i = 1;
    VMC_ASSERT(volt__spawn_root(rt, NULL, &handles[1], tells, &calls[1], 0) == 0);
}
SCENARIO(place_no_thread_placed, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    begin(2, 2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    n_refusals = INT32_MAX;
    start(workers[0], 0, blocks_in_place);
    int t1 = vmc_spawn(carry, workers[1]), t2 = vmc_spawn(spawn_outside, NULL);
    carry(workers[0]);
    vmc_join(t1);
    vmc_join(t2);
    end_all(2);
}
// One worker: a thread that comes to rest on the pool goes to its carrier lock, or it blocks.
SCENARIO(place_no_thread_beside_a_call, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    vmc_must_happen("here");
    vmc_must_happen("elsewhere");
    begin(1, 2);
    start(workers[0], 0, blocks);
    drain(workers[0]);
    n_refusals = INT32_MAX;
    start(workers[0], 1, blocks_in_place);
    carry(workers[0]);
    volt__carrier_release(workers[0]); // to a helper that comes too late
    VMC_ASSERT(n_runs[1] == 1);
    end(2);
}
