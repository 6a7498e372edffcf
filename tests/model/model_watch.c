// SPDX-License-Identifier: MIT OR 0BSD
// The watchdog over stuck workers (rules W1 to W4 of volt.h's >>watchdog, tags [W1] [W2]): while a
// worker is awake, the timer is armed, or a thread is about to arm it; whatever waits for a worker
// that is stuck in a poll is served by one that sleeps. And what a rescuer does to the stuck
// worker's queues, wheel, descriptors and wake-up while that worker goes on.
//
// The timer expires at any moment, as a step of the checker's environment.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { MAX_ITEMS = 3, PUSHED = 7 };
typedef struct item {
    volt__task task;
    volt_frame frame;
    volt__node node;
    uint32_t payload, n_runs; // plain
} item;
static item items[MAX_ITEMS];
static uint32_t n_run; // futex word

static volt__task *make_item(int i) {
    items[i].payload = PUSHED;
    items[i].task.word = VOLT__NOTIFIED + VOLT__REF;
    return &items[i].task;
}
static void note_run(volt__task *t) {
    if (!t) return;
    item *it = VOLT__CONTAINER(item, task, t);
    VMC_ASSERT(it->payload == PUSHED && it->n_runs++ == 0);
    __atomic_fetch_add(&n_run, 1, __ATOMIC_ACQ_REL);
    vmc_futex_wake(&n_run, 1);
}
static void wait_until_run(uint32_t n) {
    for (uint32_t seen; (seen = __atomic_load_n(&n_run, __ATOMIC_ACQUIRE)) < n;)
        vmc_futex_wait(&n_run, seen, VOLT_NEVER);
}
static void put_to_sleep(volt__worker *w) { volt__idle_park(&rt->idle, w->index, 0); }

// ---- the words alone: two workers wake up while two others receive the expiry

enum { PERIOD = 750 };
static uint32_t n_armed; // timers running
static void arm_if_unarmed(void) {
    if (volt__watchdog_claim(&rt->watchdog)) __atomic_fetch_add(&n_armed, 1, __ATOMIC_RELAXED);
}
static void wakes_up(void *arg) {
    volt__worker *w = arg;
    volt__idle_unpark(&rt->idle, w->index);
    arm_if_unarmed();
}
static void receives_expiry(void *arg) { // and sleeps on: W4
    volt__worker *w = arg;
    if (!volt__watchdog_take(&rt->watchdog)) return;
    __atomic_fetch_sub(&n_armed, 1, __ATOMIC_RELAXED);
    if (volt__others_awake(w)) arm_if_unarmed();
}
SCENARIO(watchdog_words) {
    make_runtime(4, PERIOD);
    for (int i = 0; i < 4; i++) put_to_sleep(workers[i]);
    rt->watchdog.is_armed = n_armed = 1;
    int a = vmc_spawn(wakes_up, workers[0]), b = vmc_spawn(receives_expiry, workers[2]);
    wakes_up(workers[1]);
    vmc_join(a);
    vmc_join(b);
    VMC_ASSERT(rt->watchdog.is_armed == 1 && n_armed == 1);
    free_runtime();
}
SCENARIO(watchdog_words_two_expiries) {
    make_runtime(3, PERIOD);
    for (int i = 0; i < 3; i++) put_to_sleep(workers[i]);
    rt->watchdog.is_armed = n_armed = 1;
    int a = vmc_spawn(receives_expiry, workers[1]), b = vmc_spawn(receives_expiry, workers[2]);
    wakes_up(workers[0]);
    vmc_join(a);
    vmc_join(b);
    VMC_ASSERT(rt->watchdog.is_armed == 1 && n_armed == 1);
    free_runtime();
}

// A worker that parks, and finds a task by its last look, was seen parked by the one that has
// received the expiry: it must arm the timer again, although it had armed it before.
SCENARIO(watchdog_is_armed_after_a_park_that_finds_a_task) {
    volt__chain c;
    volt__worker *w;
    make_runtime(2, PERIOD);
    w = workers[0];
    put_to_sleep(workers[1]);
    rt->watchdog.is_armed = n_armed = 1;
    w->needs_watchdog = 0;
    int t = vmc_spawn(receives_expiry, workers[1]);
    act_as(w);
    volt__chain_init(&c);
    volt__chain_push(&c, make_item(0));
    volt__injector_push(&rt->injector, &c);
    volt__park(w);
    note_run(volt__next_after_events(w));
    volt__searching_done(w);
    vmc_join(t);
    VMC_ASSERT(n_run == 1 && rt->watchdog.is_armed == 1);
    act_as(NULL);
    free_runtime();
}

// ---- worker 0 is stuck in its poll until another worker has run what waits for it

static void sleep_then_run(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    volt__worker_sleep(w);
    volt__task *t = volt__next_local(w);
    if (t) volt__searching_done(w);
    else t = volt__wait_for_task(w);
    note_run(t);
}
static void make_stuck_pair(void) {
    make_runtime(2, PERIOD);
    put_to_sleep(workers[1]);
    act_as(workers[0]);
}
static void stay_stuck(void) {
    volt__searching_done(workers[0]); // W1
    act_as(NULL);
    int t = vmc_spawn(sleep_then_run, workers[1]);
    act_as(workers[0]);
    wait_until_run(1);
    vmc_join(t);
    act_as(NULL);
    VMC_ASSERT(rt->idle.searching == 0); // every counted searcher has left
    free_runtime();
}
SCENARIO(watchdog_rescues_lifo) {
    make_stuck_pair();
    volt__push_lifo(workers[0], make_item(0));
    stay_stuck();
}
SCENARIO(watchdog_rescues_ring) {
    make_stuck_pair();
    volt__push_ring(workers[0], make_item(0)); // one task: no worker is woken for it
    stay_stuck();
}
SCENARIO(watchdog_rescues_timer) {
    make_stuck_pair();
    make_item(0);
    items[0].task.word = VOLT__REF;
    volt__timer_arm(&workers[0]->wheel, &items[0].node, &items[0].task, workers[0]->wheel.elapsed);
    rt->epoch -= VOLT_MS(1); // it is due, and worker 0 does not look
    stay_stuck();
}
SCENARIO(watchdog_rescues_descriptor) {
    make_stuck_pair();
    make_item(0);
    items[0].task.word = VOLT__REF;
    int fd = vmc_fd();
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    VMC_ASSERT(volt__fd_wait(&rt->fds, e, fd, 0, VOLT__RD, VOLT__RD,
                             volt__fd_take_snapshot(e), &items[0].node, &items[0].task) == 1);
    vmc_fd_raise(fd, EPOLLIN);
    volt__searching_done(workers[0]);
    act_as(NULL);
    int t = vmc_spawn(sleep_then_run, workers[1]);
    act_as(workers[0]);
    wait_until_run(1);
    vmc_join(t);
    act_as(NULL);
    volt__fds_free_pages(&rt->fds);
    free_runtime();
}
// It has done maintenance since: the first look does not take it for stuck, the second does.
SCENARIO(watchdog_looks_twice) {
    make_stuck_pair();
    workers[0]->event_polls = 1;
    volt__push_lifo(workers[0], make_item(0));
    stay_stuck();
}

// A busy worker that receives the expiry arms the timer again: it is awake itself.
static void maintain(void *arg) {
    act_as(arg);
    volt__maintain(arg);
}
SCENARIO(watchdog_busy_scanner) {
    vmc_must_happen("looked");
    make_runtime(2, PERIOD);
    workers[1]->needs_watchdog = 0;
    act_as(workers[0]);
    volt__searching_done(workers[0]);
    int t = vmc_spawn(maintain, workers[1]);
    vmc_join(t);
    act_as(NULL);
    if (workers[1]->stats.watchdog_scans > 0) vmc_reached("looked");
    VMC_ASSERT(rt->watchdog.is_armed == 1);
    free_runtime();
}

// ---- a rescuer against the worker that it takes for stuck

static void rescue(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    w->is_searching = 1;
    volt__idle_begin_search_always(&rt->idle);
    volt__rescue(w, workers[0]);
    for (volt__task *t; (t = volt__next_local(w)) != NULL;) {
        vmc_reached("rescued");
        note_run(t);
    }
}
static void run_own(void) {
    act_as(workers[0]);
    for (volt__task *t; (t = volt__next_local(workers[0])) != NULL;) {
        vmc_reached("taken by its owner");
        note_run(t);
    }
    act_as(NULL);
}
static void rescue_must(void) {
    vmc_must_happen("rescued");
    vmc_must_happen("taken by its owner");
}
static void end_rescue(int t, uint32_t n) {
    vmc_join(t);
    VMC_ASSERT(n_run == n);
    free_runtime();
}
SCENARIO(watchdog_rescuer_owner_lifo) {
    rescue_must();
    make_runtime(2, PERIOD);
    act_as(workers[0]);
    volt__push_lifo(workers[0], make_item(0));
    act_as(NULL);
    int t = vmc_spawn(rescue, workers[1]);
    run_own();
    end_rescue(t, 1);
}
// The owner fills the slot and replaces what is in it while it is taken.
SCENARIO(watchdog_rescuer_owner_pushes_lifo) {
    rescue_must();
    make_runtime(2, PERIOD);
    int t = vmc_spawn(rescue, workers[1]);
    act_as(workers[0]);
    volt__push_lifo(workers[0], make_item(0));
    volt__push_lifo(workers[0], make_item(1));
    run_own();
    end_rescue(t, 2);
}
SCENARIO(watchdog_rescuer_owner_wheel) {
    rescue_must();
    make_runtime(2, PERIOD);
    make_item(0);
    items[0].task.word = VOLT__REF;
    volt__timer_arm(&workers[0]->wheel, &items[0].node, &items[0].task, workers[0]->wheel.elapsed);
    rt->epoch -= VOLT_MS(1);
    int t = vmc_spawn(rescue, workers[1]);
    act_as(workers[0]);
    volt__drive_events(workers[0], 0, 0);
    run_own();
    end_rescue(t, 1);
}
SCENARIO(watchdog_rescuer_owner_descriptor) {
    rescue_must();
    make_runtime(2, PERIOD);
    make_item(0);
    items[0].task.word = VOLT__REF;
    int fd = vmc_fd();
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    VMC_ASSERT(volt__fd_wait(&rt->fds, e, fd, 0, VOLT__RD, VOLT__RD,
                             volt__fd_take_snapshot(e), &items[0].node, &items[0].task) == 1);
    vmc_fd_raise(fd, EPOLLIN);
    int t = vmc_spawn(rescue, workers[1]);
    act_as(workers[0]);
    volt__drive_events(workers[0], 0, 0);
    run_own();
    vmc_join(t);
    VMC_ASSERT(n_run == 1);
    volt__fds_free_pages(&rt->fds);
    free_runtime();
}
// The foreign poll must not swallow the wake-up of a worker that has fallen asleep meanwhile.
static void inject(void *arg) {
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    volt__chain_push(&c, make_item(0));
    volt__inject(rt, &c);
}
static void poll_worker_0(void *arg) {
    volt__reactor_events got;
    (void)arg;
    act_as(workers[1]);
    volt__reactor_poll(&workers[0]->reactor, &rt->fds, 1, 0, &got);
    VMC_ASSERT(got.chain.head == NULL);
}
SCENARIO(watchdog_foreign_poll_unpark) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep(workers[0]);
    int a = vmc_spawn(sleep_then_run, workers[0]), b = vmc_spawn(poll_worker_0, NULL);
    inject(NULL);
    vmc_join(a);
    vmc_join(b);
    VMC_ASSERT(n_run == 1);
    free_runtime();
}
