// SPDX-License-Identifier: MIT OR 0BSD
// Idle and parking (rules I1 to I7 of volt.h's >>idle, tags [I1] [I2]): no wake-up is lost. Workers
// park without a time limit, so a lost one is a deadlock, which the checker reports.
//
// The worker's thread is real from end to end: volt__worker_run, with taking, searching, parking,
// the poll of the task, maintenance. Not real: the tasks lie in statics and end in a function of
// this file; the worker that ran the last one stops the runtime as volt__stop_if_done does, since
// the shutdown's own way there has scenarios of its own.
//
// In a rendezvous each task blocks its worker until all tasks run. A task that waits in a queue
// while a worker sleeps, the gap in work conservation that a mere delay would hide, is a deadlock
// then.
//
// MODEL_BARRIER: a full fence in a worker's own lock would order scans and words that only [I1] and
// [I2] may order.
//   make model ONE=idle_two_workers
#define MODEL_BARRIER
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { MAX_ITEMS = 5, PUSHED = 7 };
typedef struct item {
    volt__task task;
    volt_frame frame; // the state, where volt.h looks for it
    uint32_t payload; // plain: handed over with the task
    uint32_t n_runs;
} item;
static item items[MAX_ITEMS];
static uint32_t n_run, n_items; // n_run: futex word
static int is_rendezvous;

static void stop_all(void) {
    volt__store_rel(&rt->is_stopped, 1);
    volt__unpark_all(rt);
}
static volt_poll run_item(volt_cx *cx, void *arg) {
    item *it = VOLT__CONTAINER(item, frame, arg);
    (void)cx;
    VMC_ASSERT(it->payload == PUSHED && it->n_runs++ == 0);
    uint32_t n = __atomic_add_fetch(&n_run, 1, __ATOMIC_ACQ_REL);
    if (n == n_items) {
        stop_all();
        if (is_rendezvous) vmc_futex_wake(&n_run, INT_MAX);
    }
    while (is_rendezvous && n < n_items) {
        vmc_futex_wait(&n_run, n, VOLT_NEVER);
        n = __atomic_load_n(&n_run, __ATOMIC_ACQUIRE);
    }
    return volt_ready(0);
}
static volt__task *make_item(int i) {
    volt__task *t = &items[i].task;
    items[i].payload = PUSHED;
    t->u.fn = run_item;
    t->flags = VOLT__HAS_HANDLE;
    t->word = VOLT__NOTIFIED + 2 * VOLT__REF; // one is a handle's, so the task is never freed
    return t;
}
// Where tasks from outside go: to the injector, to the inbox of workers[0], where volt.h places
// them, to the bound queue of workers[0], or into the urgent lane.
static enum { INJECTED, IN_INBOX_0, PLACED, BOUND_TO_0, URGENT } way;
static void inject(void *arg) {
    volt__chain c;
    volt__chain_init(&c);
    volt__chain_push(&c, make_item((int)(intptr_t)arg));
    if (way == INJECTED) {
        volt__inject(rt, &c);
    } else if (way == PLACED) {
        volt__place_all(rt, &c);
    } else if (way == BOUND_TO_0) {
        volt__push_bound(workers[0], NULL, &c);
    } else if (way == URGENT) {
        volt__push_urgent(rt, NULL, &c);
    } else {
        volt__injector_push(volt__placement_queue(rt, 0), &c);
        volt__wake_worker_preferring(rt, 0);
    }
}
static void use_inboxes(int way_) {
    way = way_;
    rt->cfg.placement = VOLT_PLACE_LEAST;
}
static void carry(void *arg) { volt__worker_run(arg); }

// ---- parts of the loop. Here a worker's thread ends as soon as it has a task: it stays in its
// poll, so the other tasks must be run by another worker.

static void note_run(volt__task *t) {
    VMC_ASSERT(t);
    item *it = VOLT__CONTAINER(item, task, t);
    VMC_ASSERT(it->payload == PUSHED && it->n_runs++ == 0);
    __atomic_fetch_add(&n_run, 1, __ATOMIC_RELAXED);
}
static void take_one(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    note_run(volt__wait_for_task(w));
}
static const volt__task another; // than those that wait here
static void take_two(void *arg) {
    take_one(arg);
    note_run(volt__next_task(arg, &another));
}
static void wake_and_take_one(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    volt__worker_sleep(w);
    volt__task *t = volt__next_local(w);
    if (t) volt__searching_done(w);
    note_run(t ? t : volt__wait_for_task(w));
}
static void wake_and_take_two(void *arg) {
    wake_and_take_one(arg);
    note_run(volt__next_task(arg, &another));
}
// The state of a worker when the scenario starts: it sleeps, or searches.
static void put_to_sleep(int i) { volt__idle_park(&rt->idle, workers[i]->index, 0); }
static void start_searching(int i) {
    workers[i]->is_searching = (uint8_t)volt__idle_begin_search(&rt->idle, rt->n_workers);
    VMC_ASSERT(workers[i]->is_searching);
}
// All workers have a task: none sleeps or searches, and the words say so.
static void end_parts(uint32_t n_items_) {
    VMC_ASSERT(n_run == n_items_);
    VMC_ASSERT(rt->idle.searching == 0 && !volt__idle_has_parked(&rt->idle));
    free_runtime();
}
static void run_beside(void (*fn)(void *), volt__worker *w, int n_pushes) {
    int t = vmc_spawn(fn, w);
    for (int i = 0; i < n_pushes; i++) inject((void *)(intptr_t)i);
    vmc_join(t);
}

// ---- a worker parks while a task is pushed; the other one is in a long poll

SCENARIO(idle_park_push) {
    make_runtime(2, UINT32_MAX);
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
SCENARIO(idle_searcher_parks_push) {
    make_runtime(2, UINT32_MAX);
    start_searching(0);
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
// The pusher meets a searcher and leaves the duty to it; the searcher has found something else.
static void find(void *arg) {
    act_as(arg);
    volt__searching_done(arg);
}
SCENARIO(idle_leave_push) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep(1);
    start_searching(0);
    int t = vmc_spawn(wake_and_take_one, workers[1]);
    run_beside(find, workers[0], 1);
    vmc_join(t);
    end_parts(1);
}
// The worker wakes up by itself while a pusher claims it.
static void put_to_sleep_poked(int i) {
    put_to_sleep(i);
    volt__reactor_unpark(&workers[i]->reactor);
}
SCENARIO(idle_claim_push) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep_poked(0);
    run_beside(wake_and_take_one, workers[0], 1);
    end_parts(1);
}
static void push_twice_beside(void (*fn)(void *)) {
    int t = vmc_spawn(inject, (void *)(intptr_t)1);
    run_beside(fn, workers[0], 1);
    vmc_join(t);
    end_parts(2);
}
// ... and another thread pushes, which must not rely on the failed claim.
static void claim_push_push(void) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep_poked(0);
    push_twice_beside(wake_and_take_two);
}
SCENARIO(idle_claim_push_push, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    claim_push_push();
}
SCENARIO(idle_claim_push_push_long, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .is_long = 1) {
    claim_push_push();
}
// workers[0] is a guest that sleeps, and whose application makes no step. A push may claim it, but
// a worker that parks, and the next push, must not rely on it.
static void make_guest_that_is_away(void) {
    make_runtime(2, UINT32_MAX);
    rt->idle.guest = volt__idle_bit(0);
    put_to_sleep(0);
}
static void end_beside_a_guest(uint32_t n_items_) { // it may be claimed, or sleep
    VMC_ASSERT(n_run == n_items_ && rt->idle.searching == 0);
    VMC_ASSERT(!volt__idle_is_parked(&rt->idle, 1));
    free_runtime();
}
SCENARIO(idle_park_push_beside_a_guest) {
    make_guest_that_is_away();
    run_beside(take_one, workers[1], 1);
    end_beside_a_guest(1);
}
SCENARIO(idle_claim_push_beside_a_guest) {
    make_guest_that_is_away();
    put_to_sleep_poked(1);
    run_beside(wake_and_take_one, workers[1], 1);
    end_beside_a_guest(1);
}
SCENARIO(idle_two_pushes_beside_a_guest, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    make_guest_that_is_away();
    int t = vmc_spawn(inject, (void *)(intptr_t)1);
    run_beside(take_two, workers[1], 1);
    vmc_join(t);
    end_beside_a_guest(2);
}
// Of two threads that push at once one wakes a worker.
static uint32_t n_claimed;
static void claim(void *unused) {
    (void)unused;
    if (volt__idle_claim(&rt->idle, VOLT__ANY_WORKER) >= 0)
        __atomic_fetch_add(&n_claimed, 1, __ATOMIC_RELAXED);
}
SCENARIO(idle_two_claims) {
    make_runtime(2, UINT32_MAX);
    for (int i = 0; i < 2; i++) put_to_sleep(i);
    int t = vmc_spawn(claim, NULL);
    claim(NULL);
    vmc_join(t);
    VMC_ASSERT(n_claimed == 1 && rt->idle.searching == 1);
    free_runtime();
}
SCENARIO(idle_two_sleepers_two_pushes, .class = VMC_BOUNDED, .preemptions = 3, .is_long = 1) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep(0);
    put_to_sleep(1);
    int t = vmc_spawn(wake_and_take_one, workers[0]);
    run_beside(wake_and_take_one, workers[1], 2);
    vmc_join(t);
    end_parts(2);
}

// ---- the same where the task is placed in the inbox of workers[0]

SCENARIO(idle_inbox_park_push) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
SCENARIO(idle_inbox_searcher_parks_push) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    start_searching(0);
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
// Its worker is in a long poll: any other worker that parks must have looked into it.
SCENARIO(idle_inbox_of_busy_push) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    run_beside(take_one, workers[1], 1);
    end_parts(1);
}
SCENARIO(idle_inbox_leave_push) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    put_to_sleep(0);
    start_searching(1);
    int t = vmc_spawn(wake_and_take_one, workers[0]);
    run_beside(find, workers[1], 1);
    vmc_join(t);
    end_parts(1);
}
SCENARIO(idle_inbox_claim_push) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    put_to_sleep_poked(0);
    run_beside(wake_and_take_one, workers[0], 1);
    end_parts(1);
}
// Another worker sleeps beside it: the second push wakes it, or the taker of the first task does.
SCENARIO(idle_inbox_two_sleepers_two_pushes, .class = VMC_BOUNDED, .preemptions = 2) {
    make_runtime(2, UINT32_MAX);
    use_inboxes(IN_INBOX_0);
    put_to_sleep(0);
    put_to_sleep(1);
    int t = vmc_spawn(wake_and_take_one, workers[0]);
    run_beside(wake_and_take_one, workers[1], 2);
    vmc_join(t);
    end_parts(2);
}
// The load of a worker is never seen below 0 while its tasks are taken.
static void push_and_pop(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    volt__ring_push(&w->ring, make_item(0));
    note_run(volt__ring_pop(&w->ring));
}
static void steal_one(void *arg) {
    volt__ring_steal(&workers[0]->ring, &((volt__worker *)arg)->ring);
}
SCENARIO(idle_load_of, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("counted");
    make_runtime(2, UINT32_MAX);
    volt__ring_push(&workers[0]->ring, make_item(1));
    volt__ring_push(&workers[0]->ring, make_item(2));
    int owner = vmc_spawn(push_and_pop, workers[0]), thief = vmc_spawn(steal_one, workers[1]);
    uint32_t load = volt__worker_load(rt, 0);
    VMC_ASSERT(load <= 4); // three tasks, and it is awake
    if (load == 4) vmc_reached("counted");
    vmc_join(owner);
    vmc_join(thief);
    free_runtime();
}

// ---- worker 0 is in a poll, or about to poll, and gets more than one worker can run

static void push_two_and_take_one(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    w->needs_watchdog = 0;
    volt__push_ring(w, make_item(0));
    volt__push_ring(w, make_item(1));
    note_run(volt__next_local(w));
}
static void overflow_and_take_one(void *arg) { // the ring alone wakes no worker here
    volt__worker *w = arg;
    act_as(w);
    w->needs_watchdog = 0;
    w->wake_at = 100;
    for (int i = 0; i < MAX_ITEMS; i++) volt__push_ring(w, make_item(i));
    note_run(volt__next_local(w));
}
static void spill_and_take_two(void *arg) { // the same by a poll that spawns several
    volt__worker *w = arg;
    act_as(w);
    w->needs_watchdog = 0;
    w->wake_at = 100;
    for (int i = 0; i < MAX_ITEMS; i++) volt__push_tail(w, make_item(i), 1);
    if (!volt__overflow_is_empty(&w->overflow)) vmc_reached("a spill");
    for (int i = 0; i < 2; i++) note_run(volt__next_local(w)); // those left in the ring
}
// One whose polls end their tasks at once, and spawn others or none: what is not worth a wake-up is
// not taken either, or nothing is.
static void keep_short_tasks(volt__worker *w, uint32_t wake_at, uintptr_t n_spawned) {
    act_as(w);
    w->needs_watchdog = 0;
    w->wake_at = wake_at;
    w->avg_ns = w->polls_since = 1;
    volt__store_rel(&w->spawned, w->spawned_then + n_spawned);
    volt__store_rel(&w->completed, w->completed_then + 1);
    volt__update_steal_floor(w, 1);
    VMC_ASSERT(w->ring.steal_floor > 0 &&
               (w->ring.steal_floor == VOLT__NO_STEAL) == (n_spawned == 0));
}
static void slow_down(volt__worker *w) { // its polls take long, and end nothing
    w->avg_ns = VOLT_POLL_NS;
    w->completed_then = w->completed;
    volt__maintain(w);
    VMC_ASSERT(w->wake_at == 2 && w->ring.steal_floor == 0);
}
static void fill_to_wake_at_and_take_one(void *arg) { // the LIFO slot counts, and is not taken
    volt__worker *w = arg;
    keep_short_tasks(w, 3, 1);
    volt__push_lifo(w, make_item(0));
    volt__push_ring(w, make_item(1));
    volt__push_ring(w, make_item(2));
    note_run(volt__next_local(w));
}
static void slow_down_and_take_one(void *arg) { // too few until their polls are found to take long
    volt__worker *w = arg;
    keep_short_tasks(w, 100, 1);
    volt__push_ring(w, make_item(0));
    volt__push_ring(w, make_item(1));
    slow_down(w);
    note_run(volt__next_local(w));
}
static void keep_spill_slow_down_and_take_two(void *arg) { // one less than would be told of
    volt__worker *w = arg;
    keep_short_tasks(w, 3, 0);
    for (int i = 0; i < MAX_ITEMS; i++) volt__push_tail(w, make_item(i), 1);
    note_run(volt__next_local(w));
    if (volt__backlog(w) == 1 && !volt__overflow_is_empty(&w->overflow))
        vmc_reached("the spill alone");
    slow_down(w);
    note_run(volt__next_local(w));
}
static void keep_all_and_take_all(void *arg) { // the other one sleeps on
    volt__worker *w = arg;
    keep_short_tasks(w, 3, 0);
    for (int i = 0; i < MAX_ITEMS; i++) volt__push_tail(w, make_item(i), 1);
    for (int i = 0; i < MAX_ITEMS; i++) note_run(volt__next_local(w));
    VMC_ASSERT(volt__idle_is_parked(&rt->idle, 1));
}
static void splice_items(volt__worker *w, int n) { // woken by its descriptors and timers
    volt__chain c;
    volt__chain_init(&c);
    for (int i = 0; i < n; i++) volt__chain_push(&c, make_item(i));
    volt__push_batch(w, &c);
}
static void splice_two_and_take_one(void *arg) {
    act_as(arg);
    workers[0]->needs_watchdog = 0;
    splice_items(arg, 2);
    note_run(volt__next_local(arg));
}
static void splice_many_and_take_one(void *arg) { // more than its ring holds
    act_as(arg);
    workers[0]->needs_watchdog = 0;
    splice_items(arg, MAX_ITEMS);
    note_run(volt__next_local(arg));
}
// The other worker sleeps already, or is about to.
static void share_of(void (*busy)(void *), int is_asleep, uint32_t n_items_) {
    make_runtime(2, UINT32_MAX);
    if (is_asleep) put_to_sleep(1);
    int t = vmc_spawn(is_asleep ? wake_and_take_one : take_one, workers[1]);
    run_beside(busy, workers[0], 0);
    vmc_join(t);
    end_parts(n_items_);
}
static void share(void (*busy)(void *), int is_asleep) { share_of(busy, is_asleep, 2); }
SCENARIO(idle_push_sleeper) { share(push_two_and_take_one, 1); }
SCENARIO(idle_push_parker) { share(push_two_and_take_one, 0); }
SCENARIO(idle_kept_ring_sleeper) { share(fill_to_wake_at_and_take_one, 1); }
SCENARIO(idle_kept_ring_parker) { share(fill_to_wake_at_and_take_one, 0); }
SCENARIO(idle_slow_polls_sleeper) { share(slow_down_and_take_one, 1); }
SCENARIO(idle_slow_polls_parker) { share(slow_down_and_take_one, 0); }
static void kept_overflow(int is_asleep) {
    vmc_must_happen("the spill alone");
    share_of(keep_spill_slow_down_and_take_two, is_asleep, 3);
}
SCENARIO(idle_kept_overflow_sleeper) { kept_overflow(1); }
SCENARIO(idle_kept_overflow_parker, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 2) {
    kept_overflow(0);
}
SCENARIO(idle_kept_overflow_parker_long, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .is_long = 1) {
    kept_overflow(0);
}
SCENARIO(idle_all_kept) {
    make_runtime(2, UINT32_MAX);
    put_to_sleep(1);
    run_beside(keep_all_and_take_all, workers[0], 0);
    VMC_ASSERT(n_run == MAX_ITEMS && rt->idle.searching == 0);
    free_runtime();
}
SCENARIO(idle_overflow_sleeper) { share(overflow_and_take_one, 1); }
SCENARIO(idle_spill_sleeper) {
    vmc_must_happen("a spill");
    share_of(spill_and_take_two, 1, 3);
}
SCENARIO(idle_push_batch_sleeper) { share(splice_two_and_take_one, 1); }
SCENARIO(idle_push_batch_parker) { share(splice_two_and_take_one, 0); }
SCENARIO(idle_push_batch_overflow_sleeper) { share(splice_many_and_take_one, 1); }

// ---- three workers: a thief may have emptied a ring that no other looks at any more

static void steal_and_leave(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    volt__ring_steal(&workers[0]->ring, &w->ring);
    volt__task *t = volt__next_local(w);
    if (t) volt__searching_done(w);
    note_run(t ? t : volt__wait_for_task(w));
}
SCENARIO(idle_thief_leaves) {
    make_runtime(3, UINT32_MAX);
    workers[0]->wake_at = 100;
    for (int i = 0; i < 4; i++) volt__push_ring(workers[0], make_item(i));
    start_searching(1);
    int t = vmc_spawn(take_one, workers[2]); // parks or steals while the other steals
    run_beside(steal_and_leave, workers[1], 0);
    vmc_join(t);
    end_parts(2);
}

// The searcher leaves with something else, and must see what has overflowed meanwhile.
static void overflow_leave(void) {
    make_runtime(3, UINT32_MAX);
    vmc_must_happen("a spill");
    put_to_sleep(1);
    start_searching(0);
    int t1 = vmc_spawn(wake_and_take_one, workers[1]);
    int t2 = vmc_spawn(spill_and_take_two, workers[2]);
    run_beside(find, workers[0], 0);
    vmc_join(t1);
    vmc_join(t2);
    end_parts(3);
}
SCENARIO(idle_overflow_leave, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 2) {
    overflow_leave();
}
SCENARIO(idle_overflow_leave_long, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1,
         .is_long = 1) {
    overflow_leave();
}

// ---- the whole loop

// Tasks come from outside, one from each of n_pushers threads.
static void push_by(int way_, uint32_t n_workers, int n_pushers) {
    int t[VMC_THREADS], n = 0;
    n_items = (uint32_t)n_pushers;
    is_rendezvous = n_workers > 1;
    make_runtime(n_workers, UINT32_MAX);
    if (way_ != INJECTED) use_inboxes(way_);
    for (uint32_t i = 0; i < n_workers; i++) t[n++] = vmc_spawn(carry, workers[i]);
    for (int i = 1; i < n_pushers; i++) t[n++] = vmc_spawn(inject, (void *)(intptr_t)i);
    inject(0);
    for (int i = 0; i < n; i++) vmc_join(t[i]);
    for (int i = 0; i < n_pushers; i++) VMC_ASSERT(items[i].n_runs == 1);
    free_runtime();
}
static void push_from_outside(uint32_t n_workers, int n_pushers) {
    push_by(INJECTED, n_workers, n_pushers);
}
SCENARIO(idle_one_worker) { push_from_outside(1, 1); }
SCENARIO(idle_one_worker_two_pushers, .class = VMC_BOUNDED, .preemptions = 1) {
    push_from_outside(1, 2);
}
SCENARIO(idle_two_workers_one_push, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    push_from_outside(2, 1);
}
SCENARIO(idle_two_workers, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    push_from_outside(2, 2);
}
SCENARIO(idle_three_workers, .class = VMC_SAMPLED, .samples = 10000) { push_from_outside(3, 3); }
SCENARIO(idle_three_workers_in_turn, .class = VMC_BOUNDED, .preemptions = 0, .stale_reads = 1,
         .is_long = 1) {
    push_from_outside(3, 3);
}
SCENARIO(idle_one_worker_two_pushers_long, .class = VMC_BOUNDED, .preemptions = 2, .is_long = 1) {
    push_from_outside(1, 2);
}
SCENARIO(idle_two_workers_long, .class = VMC_BOUNDED, .is_long = 1,
         .preemptions = 2, .stale_reads = VMC_NO_STALE) {
    push_from_outside(2, 2);
}
SCENARIO(idle_two_workers_stale_long, .class = VMC_BOUNDED, .is_long = 1,
         .preemptions = 1, .stale_reads = 2) {
    push_from_outside(2, 2);
}
// Without those bounds, but not all.
SCENARIO(idle_two_workers_sampled, .class = VMC_SAMPLED, .samples = 100000, .is_long = 1) {
    push_from_outside(2, 2);
}
SCENARIO(idle_three_workers_sampled, .class = VMC_SAMPLED, .samples = 100000, .is_long = 1) {
    push_from_outside(3, 3);
}
// The same, placed: with a worker that sleeps, or the least loaded one.
SCENARIO(idle_placed_two_workers, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    push_by(PLACED, 2, 2);
}
SCENARIO(idle_placed_three_workers, .class = VMC_SAMPLED, .samples = 10000) {
    push_by(PLACED, 3, 3);
}
SCENARIO(idle_placed_two_workers_long, .class = VMC_BOUNDED, .is_long = 1,
         .preemptions = 2, .stale_reads = VMC_NO_STALE) {
    push_by(PLACED, 2, 2);
}
SCENARIO(idle_placed_two_workers_stale_long, .class = VMC_BOUNDED, .is_long = 1,
         .preemptions = 1, .stale_reads = 2) {
    push_by(PLACED, 2, 2);
}
SCENARIO(idle_placed_three_workers_sampled, .class = VMC_SAMPLED, .samples = 100000, .is_long = 1) {
    push_by(PLACED, 3, 3);
}

// ---- bound tasks, which one worker alone serves, and the urgent lane

SCENARIO(idle_park_push_bound) {
    make_runtime(2, UINT32_MAX);
    way = BOUND_TO_0;
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
SCENARIO(idle_searcher_parks_push_bound) {
    make_runtime(2, UINT32_MAX);
    way = BOUND_TO_0;
    start_searching(0);
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
// ... while another worker searches, which does not look at this queue.
SCENARIO(idle_park_push_bound_beside_searcher) {
    make_runtime(2, UINT32_MAX);
    way = BOUND_TO_0;
    start_searching(1);
    int t = vmc_spawn(find, workers[1]);
    run_beside(take_one, workers[0], 1);
    vmc_join(t);
    end_parts(1);
}
// The second push meets the first one's task, and leaves the wake-up to the first.
static void park_push_push_bound(void) {
    make_runtime(2, UINT32_MAX);
    way = BOUND_TO_0;
    push_twice_beside(take_two);
}
SCENARIO(idle_park_push_push_bound, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1) {
    park_push_push_bound();
}
SCENARIO(idle_park_push_push_bound_long, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 2,
         .is_long = 1) {
    park_push_push_bound();
}
// Another worker searches, on which a pusher of other tasks would rely.
SCENARIO(idle_search_push_bound) {
    make_runtime(2, UINT32_MAX);
    way = BOUND_TO_0;
    put_to_sleep(0);
    start_searching(1);
    int t = vmc_spawn(find, workers[1]);
    run_beside(wake_and_take_one, workers[0], 1);
    vmc_join(t);
    end_parts(1);
}
SCENARIO(idle_park_push_urgent) {
    make_runtime(2, UINT32_MAX);
    way = URGENT;
    run_beside(take_one, workers[0], 1);
    end_parts(1);
}
