// SPDX-License-Identifier: MIT OR 0BSD
// Awaits that several threads end at once: time against completion, two arms of a select, a bound
// against what it shields, cancellation against all of them; and threads outside that wait for
// tasks or wake them ([P1]). A wait ends once, by one of them; nothing of it stays linked; whatever
// has been waited for may be freed as soon as the await is over. brackets.c has the rules that
// do not depend on threads.
//
// Tasks are polled by the real poll; an event that a worker would find in its loop (a timer that is
// due) is found by a thread of the scenario through the real function.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

typedef struct waits { // on the heap: freed when the await is over
    volt_timer timer;
    volt_token a, b;
} waits;
typedef struct awaiter {
    volt_frame frame;
    volt_shield shield;
    volt_arm arm[2];
    int64_t rc;
} awaiter;
static waits *ws;
static awaiter state;
static volt_handle handle;

static void start(volt_fn *fn) {
    ws = vmc_alloc(sizeof *ws);
    make_runtime(2, UINT32_MAX);
    spawn_on(workers[0], &handle, fn, &state);
    drain(workers[0]); // until it waits
    act_as(NULL);
}
static int64_t end(void) {
    int64_t value = 0;
    for (uint32_t i = 0; i < rt->started; i++) drain(workers[i]);
    act_as(NULL);
    VMC_ASSERT(volt_try_join(&handle, &value) == 0); // the first event has woken it
    finish();
    return value;
}
// The timers of worker 0 become due; then it runs what that has woken.
static void time_passes(void *arg) {
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    act_as(workers[0]);
    volt__wheel_fire(&workers[0]->wheel, volt__tick_ceil(rt, vmc_now() + VOLT_MS(5)), &c);
    volt__push_batch(workers[0], &c);
    drain(workers[0]);
}
// From a task of worker 1, which then runs what that has woken.
static void cancel_a(void *arg) {
    (void)arg;
    act_as(workers[1]);
    volt_token_cancel(&ws->a);
    drain(workers[1]);
}
static void cancel_b(void *arg) { // from one of worker 0
    (void)arg;
    act_as(workers[0]);
    volt_token_cancel(&ws->b);
    drain(workers[0]);
}
static void cancel_task(void *arg) {
    (void)arg;
    act_as(workers[0]);
    volt_cancel(&handle);
    drain(workers[0]);
}
static void both(void (*first)(void *), void (*second)(void *)) {
    int t = vmc_spawn(first, NULL);
    second(NULL);
    act_as(NULL);
    vmc_join(t);
}

// ---- within: expiry against completion

static volt_poll wait_within(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &ws->timer, VOLT_MS(1), volt_token_wait(cx, &ws->a)));
    vmc_free(s->rc == -ETIMEDOUT ? NULL : ws); // on completion, the canceller is done with it
    VOLT_END(s->rc);
}
static void check_time(int64_t rc) {
    VMC_ASSERT(rc == 0 || rc == -ETIMEDOUT);
    if (rc < 0) vmc_free(ws); // the canceller was still to come
    vmc_reached(rc ? "time" : "completion");
}
SCENARIO(await_within_completes) {
    vmc_must_happen("time");
    vmc_must_happen("completion");
    start(wait_within);
    both(time_passes, cancel_a);
    check_time(end());
}
// The expiry is noticed by a worker that looks after worker 0, which disarms meanwhile.
static void rescue(void *arg) {
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    act_as(workers[1]);
    volt__wheel_try_fire(&workers[0]->wheel, volt__tick_ceil(rt, vmc_now() + VOLT_MS(5)), &c);
    volt__push_batch(workers[1], &c);
    drain(workers[1]);
}
static void cancel_a_at_home(void *arg) {
    (void)arg;
    act_as(workers[0]);
    volt_token_cancel(&ws->a);
    drain(workers[0]);
}
SCENARIO(await_within_rescued) {
    vmc_must_happen("time");
    vmc_must_happen("completion");
    start(wait_within);
    both(rescue, cancel_a_at_home);
    check_time(end());
}

// ---- select: two arms become ready at once; the loser is drained before the await is over

static volt_poll select_two(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->arm[0], volt_token_wait(cx, &ws->a)),
                                         VOLT_ARM(&s->arm[1], volt_token_wait(cx, &ws->b))));
    VMC_ASSERT(s->rc < 0 || (s->arm[s->rc].fired && !s->arm[!s->rc].fired));
    VOLT_END(s->rc);
}
SCENARIO(await_select_two_grants) {
    vmc_must_happen("the first arm");
    vmc_must_happen("the second arm");
    start(select_two);
    both(cancel_b, cancel_a);
    int64_t rc = end();
    VMC_ASSERT(rc == 0 || rc == 1);
    vmc_reached(rc ? "the second arm" : "the first arm");
    vmc_free(ws);
}
SCENARIO(await_select_grant_cancel) {
    vmc_must_happen("granted");
    vmc_must_happen("cancelled");
    start(select_two);
    both(cancel_task, cancel_a);
    int64_t rc = end();
    VMC_ASSERT(rc == 0 || rc == -ECANCELED);
    vmc_reached(rc ? "cancelled" : "granted");
    vmc_free(ws);
}

// ---- join_all: both arms end on different threads

static volt_poll join_two(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], volt_token_wait(cx, &ws->a)),
                                    VOLT_ARM(&s->arm[1], volt_token_wait(cx, &ws->b))));
    vmc_free(ws);
    VOLT_END(s->rc);
}
SCENARIO(await_join_all) {
    start(join_two);
    both(cancel_b, cancel_a);
    VMC_ASSERT(end() == 0);
}

// ---- a bounded shield: its bound, the completion of what it shields, and a cancelled task

static volt_poll wait_shielded(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_MS(1));
    VOLT_AWAIT(s->rc, volt_token_wait(cx, &ws->a));
    volt_shield_end(cx, &s->shield);
    VOLT_END(s->rc);
}
SCENARIO(await_shield_bound) {
    vmc_must_happen("completed");
    vmc_must_happen("bound");
    start(wait_shielded);
    both(time_passes, cancel_a);
    int64_t rc = end();
    VMC_ASSERT(rc == 0 || rc == -ECANCELED);
    vmc_reached(rc ? "bound" : "completed");
    vmc_free(ws);
}
SCENARIO(await_shield_cancel) { // the cancellation alone does not end it
    start(wait_shielded);
    both(cancel_task, cancel_a);
    VMC_ASSERT(end() == 0);
    vmc_free(ws);
}

// ---- sleep: the timer fires while the task is cancelled

static volt_poll sleep_a_while(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(s->rc);
}
static void cancel_task_inside(void *arg) {
    (void)arg;
    act_as(workers[1]);
    volt_cancel(&handle);
    drain(workers[1]);
}
SCENARIO(await_sleep_cancel) {
    vmc_must_happen("slept");
    vmc_must_happen("cancelled");
    start(sleep_a_while);
    both(time_passes, cancel_task_inside);
    int64_t rc = end();
    VMC_ASSERT(rc == 0 || rc == -ECANCELED);
    vmc_reached(rc ? "cancelled" : "slept");
    vmc_free(ws);
}

// ---- wakers: a thread outside wakes a task and gives its waker back while the task ends

static volt_waker waker;
static int64_t told; // plain: handed over by the wake-up
static volt_poll wait_until_woken(volt_cx *cx, void *arg) { // a hand-written poll
    awaiter *s = arg;
    (void)cx;
    if (s->rc++ == 0) {
        waker = volt_waker_retain(cx);
        return volt_pending();
    }
    return volt_ready(told);
}
static void tell(void *arg) {
    (void)arg;
    told = 7;
    volt_wake(waker);
    volt_waker_release(waker);
}
static void drain_first(void *arg) {
    (void)arg;
    drain(workers[0]);
}
SCENARIO(await_waker) {
    start(wait_until_woken);
    both(tell, drain_first);
    VMC_ASSERT(end() == 7);
    vmc_free(ws);
}
// Two wake-ups: the second may find the task queued, running, or finished and held by its waker.
static void wake_and_drain(void *arg) {
    (void)arg;
    act_as(workers[1]);
    volt_wake(waker);
    drain(workers[1]);
}
static void wake_and_release(void *arg) {
    (void)arg;
    volt_wake(waker);
    volt_waker_release(waker);
}
SCENARIO(await_waker_after_the_end) {
    vmc_must_happen("wakes a finished task");
    start(wait_until_woken);
    volt_waker second = waker;
    volt__task_retain(second.task_);
    int t = vmc_spawn(wake_and_release, NULL);
    wake_and_drain(NULL);
    if (volt__join_is_done(handle.task_)) vmc_reached("wakes a finished task");
    act_as(NULL);
    vmc_join(t);
    volt_waker_release(second);
    VMC_ASSERT(end() == 0);
    vmc_free(ws);
}

// ---- threads outside that wait for a task

static volt_poll give_seven(volt_cx *cx, void *arg) {
    awaiter *s = arg;
    (void)cx;
    s->rc = 7; // plain: handed over with the result
    return volt_ready(7);
}
static void spawn_one(volt_fn *fn) {
    ws = NULL;
    make_runtime(2, UINT32_MAX);
    spawn_on(workers[0], &handle, fn, &state);
}
// Memory that the thread reuses as soon as it has returned from a wait.
static void use_stack(void) {
    volatile uint64_t words[64];
    for (int i = 0; i < 64; i++) words[i] = 1;
    VMC_ASSERT(words[0] == 1);
}
SCENARIO(await_join_sync) {
    int64_t value = 0;
    spawn_one(give_seven);
    int t = vmc_spawn(drain, workers[0]);
    VMC_ASSERT(volt_join_sync(&handle, VOLT_NEVER, &value) == 0);
    use_stack();
    VMC_ASSERT(value == 7 && state.rc == 7);
    vmc_join(t);
    finish();
}
SCENARIO(await_join_sync_times_out) {
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    int64_t value = 0;
    spawn_one(give_seven);
    int t = vmc_spawn(drain, workers[0]);
    int rc = volt_join_sync(&handle, VOLT_MS(1), &value);
    use_stack();
    VMC_ASSERT(rc == 0 ? value == 7 && state.rc == 7 : rc == -ETIMEDOUT);
    vmc_reached(rc ? "too late" : "in time");
    vmc_join(t);
    if (rc < 0) VMC_ASSERT(volt_join_sync(&handle, VOLT_NEVER, &value) == 0 && value == 7);
    finish();
}
static void block_on(void *arg) {
    (void)arg;
    VMC_ASSERT(volt_block_on(rt, give_seven, &state) == 7);
    VMC_ASSERT(state.rc == 7);
    volt__store_rel(&rt->is_stopped, 1);
    volt__unpark_all(rt);
}
static void carry(void *arg) { volt__worker_run(arg); }
SCENARIO(await_block_on) {
    make_runtime(1, UINT32_MAX);
    int t = vmc_spawn(carry, workers[0]);
    block_on(NULL);
    vmc_join(t);
    finish();
}
