// SPDX-License-Identifier: MIT OR 0BSD
// The thread pool: each job is run once, or taken back, never both; a thread that ends for want of
// work misses none; a close waits for all. The carrier lock of a worker ([H1]): it is carried by
// one thread at a time, with all that the one before wrote, and its lender gets it back.
// Run: make model ONE=pool_submit (or another name from below).
#define VOLT_LOCK_TRIES 0
#define VOLT_POOL_IDLE_NS idle_ns // a thread that rests is woken, or it sleeps forever
#include "vmc.h"
static int64_t idle_ns = INT64_MAX;
#include "refuse.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { N_JOBS = 3 };
static volt__pool pool;
static volt_job jobs[N_JOBS];
static uint32_t n_runs[N_JOBS]; // plain: the pool's lock hands them over
static uint32_t is_done[N_JOBS]; // futex words

static int has_failed[N_JOBS];   // plain: alike

static uint32_t n_inside;
static void run_job(void *arg) {
    int i = (int)(intptr_t)arg;
    uint32_t limit = pool.lane[VOLT__LANE_WORK].limit;
    VMC_ASSERT(__atomic_add_fetch(&n_inside, 1, __ATOMIC_RELAXED) <= limit);
    n_runs[i]++;
    __atomic_fetch_sub(&n_inside, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&is_done[i], 1, __ATOMIC_RELEASE);
    vmc_futex_wake(&is_done[i], 1);
}
static void make_pool(uint32_t limit) {
    volt_config c;
    memset(&c, 0, sizeof c);
    c.alloc.alloc = vmc_volt_alloc;
    c.alloc.free = vmc_volt_free;
    c.max_blocking_threads = limit;
    volt__pool_init(&pool, &c);
}
static void fail_job(void *arg, int rc) {
    int i = (int)(intptr_t)arg;
    VMC_ASSERT(rc == -EAGAIN && !has_failed[i]);
    has_failed[i] = 1;
}
static int try_submit(int i, void (*run)(void *)) {
    volt_job *job = &jobs[i];
    job->run_ = run;
    job->fail_ = fail_job;
    job->arg_ = (void *)(intptr_t)i;
    return volt__pool_submit(&pool, job);
}
static void submit(void *arg) { VMC_ASSERT(try_submit((int)(intptr_t)arg, run_job) == 0); }
static int take_back(int i) {
    volt__lock(&pool.lock);
    int ok = volt__pool_cancel(&pool, &jobs[i]);
    volt__unlock(&pool.lock);
    return ok;
}
static void wait_until(uint32_t *word) {
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) vmc_futex_wait(word, 0, VOLT_NEVER);
}
static void wait_until_done(int i) { wait_until(&is_done[i]); }
static void close_pool(int n) {
    VMC_ASSERT(volt__pool_close(&pool, VOLT_NEVER) == 0);
    VMC_ASSERT(!pool.idle && !pool.exited && !pool.n_idle && !pool.n_queued);
    for (int i = 0; i < VOLT__LANES; i++)
        VMC_ASSERT(!pool.lane[i].head && !pool.lane[i].tail && !pool.lane[i].n_running);
    for (int i = 0; i < n; i++) VMC_ASSERT(n_runs[i] == 1);
}

SCENARIO(pool_submit, .class = VMC_BOUNDED, .preemptions = 3) {
    make_pool(1);
    submit((void *)0);
    close_pool(1);
}
// The second waits for the thread of the first.
SCENARIO(pool_lane_is_full, .class = VMC_BOUNDED, .preemptions = 3) {
    make_pool(1);
    submit((void *)0);
    submit((void *)1);
    volt__lock(&pool.lock);
    VMC_ASSERT(pool.lane[VOLT__LANE_WORK].n_running <= 1);
    volt__unlock(&pool.lock);
    wait_until_done(1);
    close_pool(2);
    VMC_ASSERT(pool.n_jobs == 2);
}
// The second comes while the thread of the first goes to rest, rests, or ends for want of work.
static void submit_again(void) {
    make_pool(1);
    submit((void *)0);
    wait_until_done(0);
    submit((void *)1);
    wait_until_done(1);
    close_pool(2);
}
SCENARIO(pool_rest, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) { submit_again(); }
SCENARIO(pool_rest_ends, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1, .early_timers = 1) {
    idle_ns = 10;
    submit_again();
}
static void two_submit(void) {
    make_pool(1);
    int t = vmc_spawn(submit, (void *)1);
    submit((void *)0);
    vmc_join(t);
    wait_until_done(0);
    wait_until_done(1);
    close_pool(2);
}
SCENARIO(pool_two_submit, .class = VMC_BOUNDED, .preemptions = 1, .contests = 1) { two_submit(); }
SCENARIO(pool_two_submit_long, .class = VMC_BOUNDED, .preemptions = 2, .is_long = 1) {
    two_submit();
}
static void check_taken_back(int i, int was_taken_back) {
    vmc_reached(was_taken_back ? "taken back" : "run");
    VMC_ASSERT(n_runs[i] == (was_taken_back ? 0 : 1));
}
SCENARIO(pool_take_back, .class = VMC_BOUNDED, .preemptions = 3) {
    vmc_must_happen("taken back");
    vmc_must_happen("run");
    make_pool(1);
    submit((void *)0);
    int ok = take_back(0);
    close_pool(0);
    check_taken_back(0, ok);
}
// A job above the limit of its lane is taken back, while the lane's thread comes to it.
SCENARIO(pool_take_back_queued, .class = VMC_BOUNDED, .preemptions = 3) {
    vmc_must_happen("taken back");
    vmc_must_happen("run");
    make_pool(1);
    submit((void *)0);
    submit((void *)1);
    int ok = take_back(1);
    if (!ok) wait_until_done(1);
    wait_until_done(0);
    close_pool(1);
    check_taken_back(1, ok);
}


// ---- threads that cannot be started: a job is run, or its submitter learns that it is not

static void submit_or_fail(void *arg) {
    int i = (int)(intptr_t)arg, rc = try_submit(i, run_job);
    if (rc < 0) fail_job(arg, rc);
}
static void check_run_or_failed(int n) {
    close_pool(0);
    for (int i = 0; i < n; i++) VMC_ASSERT((int)n_runs[i] + has_failed[i] == 1);
}
// A job that has been queued behind it is not left behind.
SCENARIO(pool_no_thread_and_one_behind, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) {
    vmc_must_happen("one fails");
    vmc_must_happen("both fail");
    make_pool(1);
    n_refusals = 1;
    int t = vmc_spawn(submit_or_fail, (void *)1);
    submit_or_fail((void *)0);
    vmc_join(t);
    check_run_or_failed(2);
    VMC_ASSERT(has_failed[0] || has_failed[1]);
    vmc_reached(has_failed[0] && has_failed[1] ? "both fail" : "one fails");
}
// Each counts on the thread of the other.
SCENARIO(pool_no_thread_for_two, .class = VMC_BOUNDED, .preemptions = 3) {
    make_pool(2);
    n_refusals = 2;
    int t = vmc_spawn(submit_or_fail, (void *)1);
    submit_or_fail((void *)0);
    vmc_join(t);
    check_run_or_failed(2);
    VMC_ASSERT(has_failed[0] && has_failed[1]);
}
// There is a thread, which runs something, looks for more or rests: it is the one.
SCENARIO(pool_no_thread_beside_another, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) {
    make_pool(2);
    submit((void *)0);
    n_refusals = 1;
    submit((void *)1);
    wait_until_done(1);
    close_pool(2);
}
// The same, and what the thread was given is taken back.
SCENARIO(pool_no_thread_beside_one_for_nothing, .class = VMC_BOUNDED, .preemptions = 2,
         .contests = 1) {
    vmc_must_happen("taken back");
    make_pool(2);
    submit((void *)0);
    int ok = take_back(0);
    if (ok) vmc_reached("taken back");
    n_refusals = 1;
    submit((void *)1);
    wait_until_done(1);
    close_pool(0);
    VMC_ASSERT(n_runs[0] == (ok ? 0 : 1) && n_runs[1] == 1);
}
// The only one rests, and may end for want of work just then.
SCENARIO(pool_no_thread_when_it_ends, .class = VMC_BOUNDED, .preemptions = 3, .early_timers = 1) {
    vmc_must_happen("it was given the job");
    vmc_must_happen("it had ended");
    idle_ns = 10;
    make_pool(1);
    submit((void *)0);
    wait_until_done(0);
    n_refusals = 1;
    submit_or_fail((void *)1);
    vmc_reached(has_failed[1] ? "it had ended" : "it was given the job");
    check_run_or_failed(2);
}

// ---- closing with a time limit

static uint32_t may_end; // futex word
static void run_until_told(void *arg) {
    wait_until(&may_end);
    n_runs[(intptr_t)arg]++;
}
static void tell_to_end(void *unused) {
    (void)unused;
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    vmc_futex_wake(&may_end, 1);
}
// 0: all threads have ended. Else the job is left alone, and waited for later.
static void close_for_a_while(void) {
    uint32_t n = volt__pool_close(&pool, vmc_now() + 10);
    vmc_reached(n ? "left alone" : "waited for");
    if (n == 0) VMC_ASSERT(!pool.n_threads && n_runs[0] == 1);
    else VMC_ASSERT(n == 1);
}
SCENARIO(pool_close_beside_a_job, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1,
         .early_timers = 1) {
    vmc_must_happen("left alone");
    vmc_must_happen("waited for");
    make_pool(1);
    VMC_ASSERT(try_submit(0, run_until_told) == 0);
    int t = vmc_spawn(tell_to_end, NULL);
    close_for_a_while();
    vmc_join(t);
    close_pool(1);
}
static void close_all(void *unused) {
    (void)unused;
    VMC_ASSERT(volt__pool_close(&pool, VOLT_NEVER) == 0);
}
SCENARIO(pool_two_close, .class = VMC_BOUNDED, .preemptions = 1, .contests = 1, .early_timers = 1) {
    vmc_must_happen("left alone");
    vmc_must_happen("waited for");
    make_pool(1);
    submit((void *)0);
    int t = vmc_spawn(close_all, NULL);
    uint32_t n = volt__pool_close(&pool, vmc_now() + 10);
    vmc_reached(n ? "left alone" : "waited for");
    vmc_join(t);
    close_pool(1);
}

// ---- the carrier lock: tasks that block in place, by the real function

typedef struct item {
    volt_frame frame;
} item;
static item outer, inner;
static uint32_t n_steps; // plain: written by the carrier of the worker
static void step(volt__worker *w) {
    VMC_ASSERT(VOLT_TLS_GET() == w);
    n_steps++;
    w->ms++;
}
static int without_worker(void *unused) {
    (void)unused;
    VMC_ASSERT(!VOLT_TLS_GET());
    return 0;
}
// Thread 0 is the worker's own: the worker says so in its polls, also after another thread had it.
static void check_home(const volt__worker *w) { VMC_ASSERT(w->is_own_thread == (vmc_self() == 0)); }
static void block_in_place(volt_cx *cx, int (*fn)(void *)) {
    volt__worker *w = cx->worker_;
    check_home(w);
    step(w);
    VMC_ASSERT(volt_block_in_place(cx, fn, NULL) == 0);
    VMC_ASSERT(cx->worker_ == w);
    check_home(w);
    step(w);
}
// Two polls block in place; when both are over, all is.
static uint32_t n_left;
static void end_poll(void) {
    if (__atomic_sub_fetch(&n_left, 1, __ATOMIC_ACQ_REL) != 0) return;
    volt__store_rel(&rt->is_stopped, 1);
    volt__unpark_all(rt);
}
static volt_poll blocks_once(volt_cx *cx, void *arg) {
    (void)arg;
    block_in_place(cx, without_worker);
    end_poll();
    return volt_ready(0);
}
static volt_poll blocks_twice(volt_cx *cx, void *arg) {
    block_in_place(cx, without_worker);
    return blocks_once(cx, arg);
}
// The worker's own thread: the first poll, then its loop.
static void carry_helm(volt_fn *fn, uint32_t n_polls, uint32_t n) {
    n_left = n_polls;
    make_runtime(1, UINT32_MAX);
    spawn_on(workers[0], NULL, fn, &outer);
    act_as(workers[0]);
    volt__searching_done(workers[0]);
    volt__poll_task(workers[0], volt__next_local(workers[0]));
    volt__worker_main(workers[0]);
    VMC_ASSERT(!VOLT_TLS_GET());
    VMC_ASSERT(volt__pool_close(&rt->pool, VOLT_NEVER) == 0);
    VMC_ASSERT(n_steps == n && workers[0]->carrier_ticket == workers[0]->carrier_serving);
    finish();
}
SCENARIO(handoff, .class = VMC_BOUNDED, .preemptions = 3, .stale_reads = 2) {
    carry_helm(blocks_once, 1, 2);
}
SCENARIO(handoff_twice, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1, .contests = 1) {
    carry_helm(blocks_twice, 1, 4);
}
// The helper meets a task that blocks in place as well, and is polled again by the thread that
// comes next.
static uint32_t is_inside; // futex word
static int has_yield;      // a yield looks at the carrier lock, too
static volt_poll blocks_inside(volt_cx *cx, void *arg) {
    item *i = arg;
    VOLT_BEGIN(cx, i);
    __atomic_store_n(&is_inside, 1, __ATOMIC_RELEASE);
    vmc_futex_wake(&is_inside, 1);
    block_in_place(cx, without_worker);
    if (has_yield) VOLT_AWAIT(volt_yield(cx));
    check_home(cx->worker_);
    vmc_reached(vmc_self() ? "goes on elsewhere" : "goes on at home");
    end_poll();
    VOLT_END(0);
}
static int until_inside(void *unused) {
    wait_until(&is_inside);
    return without_worker(unused);
}
static volt_poll spawns_and_blocks(volt_cx *cx, void *arg) {
    (void)arg;
    VMC_ASSERT(volt__spawn_root(rt, cx->worker_, NULL, blocks_inside, &inner, 0) == 0);
    block_in_place(cx, until_inside);
    end_poll();
    return volt_ready(0);
}
static void nest(void) {
    has_yield = 1;
    carry_helm(spawns_and_blocks, 2, 4);
}
SCENARIO(handoff_nested, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1,
         .max_steps = 5000, .contests = 1, .is_long = 1) {
    vmc_must_happen("goes on at home");
    vmc_must_happen("goes on elsewhere");
    nest();
}
SCENARIO(handoff_nested_ends, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1,
         .max_steps = 5000, .contests = 1, .is_long = 1) {
    carry_helm(spawns_and_blocks, 2, 4);
}
SCENARIO(handoff_nested_sampled, .class = VMC_SAMPLED, .samples = 20000,
         .max_steps = 5000) { nest(); }
