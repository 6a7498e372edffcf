// SPDX-License-Identifier: MIT OR 0BSD
// Private task words (">>task" in volt.h): the runner of a task that nothing else can reach moves
// its word by a load and a store. Each scenario lets another thread reach the task in one of the
// ways there are, and its runner begin, yield and finish beside that. Every task is polled as often
// as it should be, by one thread at a time, and freed once.
// Run: make model ONE=private_stolen (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

static int n_polls; // plain: polls of one task are ordered, one after the other

typedef struct job {
    volt_frame frame;
} job;
static void spawn(volt__worker *w, volt_handle *h, volt_fn *fn, const void *state, size_t size) {
    VMC_ASSERT(volt__spawn(rt, w, h, fn, state, size, "job") == 0);
}
static volt_poll ends(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    n_polls++;
    return volt_ready(7);
}
static volt_poll yields_and_ends(volt_cx *cx, void *arg) {
    job *j = arg;
    VOLT_BEGIN(cx, j);
    n_polls++;
    VOLT_AWAIT(volt_yield(cx));
    n_polls++;
    VOLT_END(7);
}

// ---- other workers: a task is private to the worker that has it

static void thief(void *unused) {
    (void)unused;
    rt_carry(w1);
    if (rt_steal_and_run(w1, w0)) vmc_reached("a thief polls it");
    rt_run_one(w1);
}
SCENARIO(private_stolen, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a thief polls it");
    vmc_must_happen("it is stolen back");
    job j = { 0 };
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, yields_and_ends, &j, sizeof j);
    int t = vmc_spawn(thief, NULL);
    rt_run_one(w0);
    if (rt_steal_and_run(w0, w1)) vmc_reached("it is stolen back");
    vmc_join(t);
    rt_end();
    VMC_ASSERT(n_polls == 2);
}

// ---- wakers: a task gives one out, and is private no more

typedef struct sleeper {
    volt_frame frame;
} sleeper;
static volt_waker waker;
static volt__parker has_waker;
static int message; // plain: the wake-up hands it over
static volt_poll waits_for_waker(volt_cx *cx, void *arg) {
    (void)arg;
    if (n_polls++ == 0) {
        waker = volt_waker_retain(cx);
        volt__parker_set(&has_waker);
        return volt_pending();
    }
    VMC_ASSERT(message == 1);
    return volt_ready(7);
}
static void use_waker(void *w) {
    if (w) rt_carry(w);
    volt__parker_wait(&has_waker, VOLT_NEVER);
    message = 1;
    volt_wake(waker);
    volt_waker_release(waker);
}
static void wake_from(int is_on_worker) {
    sleeper s = { 0 };
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, waits_for_waker, &s, sizeof s);
    int t = vmc_spawn(use_waker, is_on_worker ? w1 : NULL);
    rt_run_all(w0);
    if (is_on_worker) rt_steal_and_run(w0, w1);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(n_polls == 2);
}
SCENARIO(private_gives_waker_outside, .class = VMC_EXHAUSTIVE) { wake_from(0); }
SCENARIO(private_gives_waker_to_worker, .class = VMC_EXHAUSTIVE) { wake_from(1); }

// ---- joins: a waiter holds a reference to itself, which the completion of the child gives back,
// perhaps long after the waiter has gone on. The waiter is large: freed, its slab is gone at once.

typedef struct joiner {
    volt_frame frame;
    volt_handle child;
    int n_tries;
    char large[VOLT_SLAB_SIZE / 8];
} joiner;
static int is_joined;
static volt_poll joins(volt_cx *cx, void *arg) {
    joiner *j = arg;
    VOLT_BEGIN(cx, j);
    int r;
    VOLT_AWAIT(r, volt_join(cx, &j->child));
    VMC_ASSERT(r == 7 && n_polls == 1);
    VOLT_AWAIT(volt_yield(cx));
    is_joined++;
    VOLT_END(0);
}
// The second poll of the join is a cancelled one.
static volt_poll join_or_give_up(volt_cx *cx, joiner *j) {
    if (j->n_tries++ > 0)
        cx->cancel_level_ = 1;
    else
        volt__task_wake(cx->task_); // running: its worker enqueues it
    return volt_join(cx, &j->child);
}
static volt_poll gives_up(volt_cx *cx, void *arg) {
    joiner *j = arg;
    VOLT_BEGIN(cx, j);
    int r;
    VOLT_AWAIT(r, join_or_give_up(cx, j));
    VMC_ASSERT(r == 7 || r == -ECANCELED);
    vmc_reached(r == 7 ? "it joins" : "it gives up");
    if (r < 0) volt_detach(&j->child);
    VOLT_AWAIT(volt_yield(cx));
    is_joined++;
    VOLT_END(0);
}
static void run_child(void *unused) {
    (void)unused;
    rt_carry(w1);
    rt_run_one(w1);
}
static void join_by(volt_fn *fn) {
    static joiner j;
    job child = { 0 };
    rt_make(2);
    rt_carry(w0);
    spawn(w1, &j.child, ends, &child, sizeof child);
    spawn(w0, NULL, fn, &j, sizeof j);
    int t = vmc_spawn(run_child, NULL);
    rt_run_all(w0);
    rt_steal_and_run(w0, w1);
    rt_run_all(w0);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(is_joined == 1 && n_polls == 1);
}
SCENARIO(private_joins, .class = VMC_EXHAUSTIVE) { join_by(joins); }
SCENARIO(private_gives_up_a_join, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("it joins");
    vmc_must_happen("it gives up");
    join_by(gives_up);
}

// ---- armed nodes: another thread fires them, under the lock that disarming takes

static volt_poll sleeps(volt_cx *cx, void *arg) {
    job *j = arg;
    VOLT_BEGIN(cx, j);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    n_polls++;
    VOLT_AWAIT(volt_yield(cx));
    n_polls++;
    VOLT_END(0);
}
static void fire_timers(uint32_t ms) {
    volt__chain c;
    volt__chain_init(&c);
    uint64_t tick = volt__tick_ceil(rt, rt->epoch + VOLT_MS(ms));
    if (volt__wheel_fire(&w0->wheel, tick, &c)) vmc_reached("another worker fires a timer");
    volt__schedule_chain(&c);
}
static void look_after_timers(void *unused) {
    (void)unused;
    rt_carry(w1);
    fire_timers(1);
}
SCENARIO(private_sleeps, .class = VMC_EXHAUSTIVE) {
    job j = { 0 };
    vmc_must_happen("another worker fires a timer");
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, sleeps, &j, sizeof j);
    int t = vmc_spawn(look_after_timers, NULL);
    rt_run_all(w0);
    rt_steal_and_run(w0, w1);
    rt_run_all(w0);
    vmc_join(t);
    fire_timers(2); // armed after the other one has looked
    rt_end();
    VMC_ASSERT(n_polls == 2);
}

// Woken by one timer it is polled while the other one is armed, and fires. It is large: freed, its
// slab is gone at once.
typedef struct napper {
    volt_frame frame;
    volt_arm arms[2];
    char large[VOLT_SLAB_SIZE / 8];
} napper;
static volt_poll sleeps_twice(volt_cx *cx, void *arg) {
    napper *s = arg;
    VOLT_BEGIN(cx, s);
    n_polls++;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arms[0], volt_sleep(cx, VOLT_MS(1))),
                             VOLT_ARM(&s->arms[1], volt_sleep(cx, VOLT_MS(2)))));
    n_polls++;
    VOLT_END(0);
}
static void fire_second(void *unused) {
    (void)unused;
    rt_carry(w1);
    fire_timers(2);
}
SCENARIO(private_sleeps_twice, .class = VMC_EXHAUSTIVE) {
    static napper s;
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, sleeps_twice, &s, sizeof s);
    rt_run_one(w0);
    fire_timers(1);
    int t = vmc_spawn(fire_second, NULL);
    rt_run_one(w0);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(n_polls == 2);
}

// It yields with a timer armed: the next poll does not come from the timer, which fires beside it.
static volt_poll yields_asleep(volt_cx *cx, void *arg) {
    napper *s = arg;
    VOLT_BEGIN(cx, s);
    n_polls++;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arms[0], volt_yield(cx)),
                             VOLT_ARM(&s->arms[1], volt_sleep(cx, VOLT_MS(1)))));
    n_polls++;
    VOLT_END(0);
}
SCENARIO(private_yields_asleep, .class = VMC_EXHAUSTIVE) {
    static napper s;
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, yields_asleep, &s, sizeof s);
    rt_run_one(w0);
    int t = vmc_spawn(look_after_timers, NULL);
    rt_run_one(w0);
    rt_steal_and_run(w0, w1);
    vmc_join(t);
    rt_end();
    VMC_ASSERT(n_polls == 2);
}

// ---- walkers, which go by the slabs: the sweep of a shutdown comes when every worker has
// acknowledged, and from then on none takes a word for private

static void acknowledge(void *unused) {
    (void)unused;
    rt_carry(w1);
    volt__check_shutdown(w1);
}
static void sweep_beside(volt_fn *fn, int is_acknowledged_first) {
    job j = { 0 };
    rt_make(2);
    rt_carry(w0);
    spawn(w0, NULL, fn, &j, sizeof j);
    volt__shutdown_begin(rt);
    int t = vmc_spawn(acknowledge, NULL);
    if (!is_acknowledged_first) rt_run_one(w0);
    volt__check_shutdown(w0);
    rt_run_all(w0);
    vmc_join(t);
    VMC_ASSERT(volt__load_rlx(&rt->acks) == 0);
    rt_end();
    VMC_ASSERT(volt__count_alive(rt) == 0);
}
SCENARIO(private_ends_before_the_sweep, .class = VMC_EXHAUSTIVE) { sweep_beside(ends, 0); }
SCENARIO(private_ends_beside_the_sweep, .class = VMC_EXHAUSTIVE) { sweep_beside(ends, 1); }
SCENARIO(private_yields_before_the_sweep, .class = VMC_EXHAUSTIVE) {
    sweep_beside(yields_and_ends, 0);
    VMC_ASSERT(n_polls == 2);
}
SCENARIO(private_yields_beside_the_sweep, .class = VMC_EXHAUSTIVE) {
    sweep_beside(yields_and_ends, 1);
    VMC_ASSERT(n_polls == 2);
}

// A shutdown whose time is up looks for tasks still alive, whether or not the workers have
// acknowledged: it must not touch a word.
static void run_w0(void *unused) {
    (void)unused;
    rt_carry(w0);
    rt_run_all(w0);
}
static void deadline_beside(volt_fn *fn, int n_most) {
    job j = { 0 };
    rt_make(1);
    spawn(w0, NULL, fn, &j, sizeof j);
    int t = vmc_spawn(run_w0, NULL);
    int n = volt_shutdown(rt, 0);
    VMC_ASSERT(n >= 1 && n <= n_most);
    vmc_join(t);
    rt_end();
}
SCENARIO(private_ends_beside_a_deadline, .class = VMC_EXHAUSTIVE) { deadline_beside(ends, 1); }
SCENARIO(private_yields_beside_a_deadline, .class = VMC_EXHAUSTIVE) {
    deadline_beside(yields_and_ends, 1);
}
// Slots that it has not seen used come into use meanwhile.
static volt_poll spawns(volt_cx *cx, void *arg) {
    job j = { 0 };
    (void)arg;
    spawn(cx->worker_, NULL, ends, &j, sizeof j);
    return volt_ready(0);
}
SCENARIO(private_spawns_beside_a_deadline, .class = VMC_EXHAUSTIVE) { deadline_beside(spawns, 2); }
