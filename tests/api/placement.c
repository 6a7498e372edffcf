// SPDX-License-Identifier: MIT OR 0BSD
// Placement: which worker gets what comes from outside the workers, by .placement.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

enum { WORKERS = 4, ANY = VOLT__ANY_WORKER };

static volt_rt *create_watched(volt_placement placement, uint32_t workers, uint32_t watch_us) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.placement = placement;
    c.start_all_workers = workers > 1;
    c.watchdog_us = watch_us;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
static volt_rt *create_placed(volt_placement placement, uint32_t workers) {
    return create_watched(placement, workers, test_config(workers).watchdog_us);
}
static uint32_t count_parked(const volt_rt *rt) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rt->n_workers; i++) n += volt__idle_is_parked(&rt->idle, i) != 0;
    return n;
}
static volt_counters stats_of(volt_rt *rt) {
    volt_counters s;
    volt_stats(rt, &s);
    return s;
}
static uint32_t in_inbox(const volt_rt *rt, uint32_t i) {
    return (uint32_t)READ(rt->workers[i]->inbox.len);
}
static int index_of(const volt_cx *cx) { return (int)cx->worker_->index; }
#define EACH_PLACEMENT(p_) for (int p_ = VOLT_PLACE_SHARED; p_ <= VOLT_PLACE_LEAST; p_++)

// ---- tasks that hold their workers, each inside one poll

typedef struct {
    int n_in, is_open;
    int at; // the worker of the last holder that has come in
} gate;
typedef struct {
    volt_frame frame;
    gate *gate;
} holder;
static volt_poll holder_run(volt_cx *cx, void *arg) {
    holder *h = (holder *)arg;
    VOLT_BEGIN(cx, h);
    WRITE(h->gate->at, index_of(cx));
    COUNT(h->gate->n_in);
    UNTIL(READ(h->gate->is_open));
    VOLT_END(0);
}
// Work is conserved, so each of them gets a worker of its own, wherever it was placed. They come
// one after the other: a worker whose polls were short may fetch two, run the first, and keep the
// second from thieves by the steal floor, which only the watchdog ignores.
static void hold(volt_rt *rt, gate *g, int n) {
    g->n_in = g->is_open = 0;
    for (int i = 1; i <= n; i++) {
        RT_SPAWN(rt, NULL, holder_run, (holder){ .gate = g });
        UNTIL(READ(g->n_in) == i);
    }
}
static void release(gate *g) { WRITE(g->is_open, 1); }

// ---- where it goes

// Tells which worker has run it, and when in the order of all.
typedef struct {
    volt_frame frame;
    int *at, *n_ended;
    int number;
} tell;
static volt_poll tell_run(volt_cx *cx, void *arg) {
    tell *t = (tell *)arg;
    VOLT_BEGIN(cx, t);
    if (t->at) WRITE(*t->at, 1 + index_of(cx));
    COUNT(*t->n_ended);
    VOLT_END(0);
}
static void spawn_outside(volt_rt *rt, int n, int *n_ended) {
    for (int i = 0; i < n; i++)
        RT_SPAWN(rt, NULL, tell_run, (tell){ .n_ended = n_ended, .number = i });
}

TEST_OF_THREADS(place_least_picks_least_loaded_and_rotates_equals) {
    gate g;
    int n_ended = 0;
    volt_rt *rt = create_placed(VOLT_PLACE_LEAST, WORKERS);
    hold(rt, &g, WORKERS);
    for (int n = 1; n <= 5; n++) { // round and round
        spawn_outside(rt, WORKERS, &n_ended);
        for (uint32_t i = 0; i < WORKERS; i++) CHECK_EQ(in_inbox(rt, i), n);
    }
    // one that has more gets nothing until the others have as much
    volt__lock(&rt->workers[2]->inbox.lock);
    WRITE(rt->workers[2]->inbox.len, 5 + 3);
    volt__unlock(&rt->workers[2]->inbox.lock);
    spawn_outside(rt, 3 * (WORKERS - 1), &n_ended);
    for (uint32_t i = 0; i < WORKERS; i++) CHECK_EQ(in_inbox(rt, i), 8);
    WRITE(rt->workers[2]->inbox.len, 5);
    release(&g);
    UNTIL(READ(n_ended) == 5 * WORKERS + 3 * (WORKERS - 1));
    destroy(rt);
}
TEST_OF_THREADS(place_two_keeps_loads_nearly_equal) {
    enum { MANY = 400 };
    gate g;
    int n_ended = 0;
    volt_rt *rt = create_placed(VOLT_PLACE_TWO, WORKERS);
    hold(rt, &g, WORKERS);
    spawn_outside(rt, MANY, &n_ended);
    uint32_t sum = 0, most = 0, least = MANY;
    for (uint32_t i = 0; i < WORKERS; i++) {
        uint32_t n = in_inbox(rt, i);
        sum += n;
        if (n > most) most = n;
        if (n < least) least = n;
    }
    CHECK_EQ(sum, MANY);
    CHECK(most - least <= 8); // by chance alone it would be some twenty
    release(&g);
    UNTIL(READ(n_ended) == MANY);
    destroy(rt);
}
// Of one there are no two: beside a guest the only other worker gets all.
TEST_OF_THREADS(place_two_gives_all_to_sole_worker_beside_guest) {
    gate g;
    int n_ended = 0;
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    c.start_all_workers = 1;
    c.placement = VOLT_PLACE_TWO;
    CHECK_EQ(volt_create(&c, &rt), 0);
    hold(rt, &g, 1); // no thread steps
    spawn_outside(rt, 20, &n_ended);
    CHECK_EQ(in_inbox(rt, 0), 0);
    CHECK_EQ(in_inbox(rt, 1), 20);
    CHECK_EQ(READ(rt->injector.len), 0);
    release(&g);
    UNTIL(READ(n_ended) == 20);
    destroy(rt);
}
TEST_OF_THREADS(placement_prefers_parked_to_busy_workers) {
    for (int p = VOLT_PLACE_TWO; p <= VOLT_PLACE_LEAST; p++) {
        gate g;
        int n_ended = 0, at = 0, seen[WORKERS] = { 0 };
        volt_rt *rt = create_placed((volt_placement)p, WORKERS);
        hold(rt, &g, 1);
        UNTIL(count_parked(rt) == WORKERS - 1);
        int busy = READ(g.at);
        uint64_t was_spawned = rt->workers[busy]->inbox.spawned;
        for (int i = 0; i < 200; i++) {
            UNTIL(count_parked(rt) == WORKERS - 1);
            RT_SPAWN(rt, NULL, tell_run, (tell){ .n_ended = &n_ended, .at = &at });
            UNTIL(READ(n_ended) == i + 1);
            seen[READ(at) - 1]++;
        }
        // a parked one may be awake for a moment; by chance alone it would be some 50
        CHECK(rt->workers[busy]->inbox.spawned - was_spawned <= 20);
        for (int i = 0; i < WORKERS; i++) CHECK(i == busy || seen[i] > 0); // they take turns
        UNTIL(stats_of(rt).inbox_tasks > 0); // some are stolen by a worker that is not yet asleep
        release(&g);
        destroy(rt);
    }
}
TEST_OF_THREADS(placement_finds_sole_parked_worker) {
    for (int p = VOLT_PLACE_TWO; p <= VOLT_PLACE_LEAST; p++) {
        for (uint32_t free = 0; free < WORKERS; free++) {
            gate g[WORKERS], *opened = g;
            int n_ended = 0;
            volt_rt *rt = create_placed((volt_placement)p, WORKERS);
            for (int i = 0; i < WORKERS; i++) hold(rt, &g[i], 1);
            while (READ(opened->at) != (int)free) opened++;
            uint64_t was_spawned = rt->workers[free]->inbox.spawned;
            release(opened);
            for (int i = 0; i < 100; i++) {
                UNTIL(volt__idle_is_parked(&rt->idle, free));
                spawn_outside(rt, 1, &n_ended);
                UNTIL(READ(n_ended) == i + 1);
            }
            // it may have been awake for a moment; by chance alone it would be some 50
            CHECK(rt->workers[free]->inbox.spawned - was_spawned >= 90);
            for (int i = 0; i < WORKERS; i++) release(&g[i]);
            destroy(rt);
        }
    }
}
TEST_OF_THREADS(placement_skips_blocked_workers_or_uses_injector) {
    for (int p = VOLT_PLACE_TWO; p <= VOLT_PLACE_LEAST; p++) {
        gate g;
        int n_ended = 0;
        volt_rt *rt = create_placed((volt_placement)p, WORKERS);
        hold(rt, &g, WORKERS);
        WRITE(rt->workers[1]->is_blocked, 1);
        WRITE(rt->workers[2]->is_blocked, 1);
        spawn_outside(rt, 40, &n_ended);
        CHECK_EQ(in_inbox(rt, 1) + in_inbox(rt, 2), 0);
        CHECK_EQ(in_inbox(rt, 0) + in_inbox(rt, 3), 40);
        for (int i = 0; i < WORKERS; i++) WRITE(rt->workers[i]->is_blocked, 1);
        spawn_outside(rt, 7, &n_ended);
        CHECK_EQ(in_inbox(rt, 0) + in_inbox(rt, 3), 40);
        CHECK_EQ(READ(rt->injector.len), 7);
        for (int i = 0; i < WORKERS; i++) WRITE(rt->workers[i]->is_blocked, 0);
        release(&g);
        UNTIL(READ(n_ended) == 47);
        destroy(rt);
    }
}
TEST_OF_THREADS(place_shared_puts_every_task_into_injector) {
    gate g;
    int n_ended = 0;
    volt_rt *rt = create_placed(VOLT_PLACE_SHARED, WORKERS);
    hold(rt, &g, WORKERS);
    spawn_outside(rt, 10, &n_ended);
    CHECK_EQ(READ(rt->injector.len), 10);
    for (uint32_t i = 0; i < WORKERS; i++) CHECK_EQ(in_inbox(rt, i), 0);
    release(&g);
    UNTIL(READ(n_ended) == 10);
    CHECK_EQ(stats_of(rt).inbox_tasks, 0);
    destroy(rt);
}
TEST_OF_THREADS(inbox_keeps_order_of_its_producer) {
    gate g;
    int n_ended = 0, n_seen = 0;
    volt_rt *rt = create_placed(VOLT_PLACE_LEAST, WORKERS);
    hold(rt, &g, WORKERS);
    spawn_outside(rt, 100, &n_ended);
    for (uint32_t i = 0; i < WORKERS; i++) {
        int last = -1;
        for (volt__task *t = rt->workers[i]->inbox.head; t; t = t->next) {
            int number = ((tell *)volt__task_state(t))->number;
            CHECK(number > last);
            last = number;
            n_seen++;
        }
    }
    CHECK_EQ(n_seen, 100);
    release(&g);
    UNTIL(READ(n_ended) == 100);
    destroy(rt);
}
// Its thread is the application's: nothing waits for that while others can do it.
TEST_OF_THREADS(placement_spares_guest_with_other_workers) {
    int n_ended = 0;
    volt_config c = test_config(3);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    c.start_all_workers = 1;
    c.placement = VOLT_PLACE_LEAST;
    CHECK_EQ(volt_create(&c, &rt), 0);
    for (int i = 0; i < 100; i++) {
        spawn_outside(rt, 1, &n_ended);
        UNTIL(READ(n_ended) == i + 1);
    }
    CHECK_EQ(rt->workers[0]->inbox.spawned, 0);
    CHECK_EQ(rt->workers[1]->inbox.spawned + rt->workers[2]->inbox.spawned, 100);
    destroy(rt);
}

// ---- wake-ups from outside

typedef struct {
    volt_frame frame;
    volt_waker *waker;
    int *is_given, *n_ended;
    int is_woken;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) { // by hand
    sleeper *s = (sleeper *)arg;
    if (!s->is_woken) {
        s->is_woken = 1;
        *s->waker = volt_waker_retain(cx);
        WRITE(*s->is_given, 1);
        return volt_pending();
    }
    COUNT(*s->n_ended);
    return volt_ready(0);
}
TEST_OF_THREADS(wake_from_outside_is_placed_in_an_inbox) {
    gate g;
    int is_given = 0, n_ended = 0;
    volt_waker waker;
    volt_rt *rt = create_placed(VOLT_PLACE_LEAST, WORKERS);
    RT_SPAWN(rt, NULL, sleeper_run,
             (sleeper){ .waker = &waker, .is_given = &is_given, .n_ended = &n_ended });
    UNTIL(READ(is_given));
    UNTIL(count_parked(rt) == WORKERS); // it is suspended
    hold(rt, &g, WORKERS);
    volt_wake(waker);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < WORKERS; i++) sum += in_inbox(rt, i);
    CHECK_EQ(sum, 1);
    CHECK_EQ(READ(rt->injector.len), 0);
    release(&g);
    UNTIL(READ(n_ended) == 1);
    volt_waker_release(waker);
    destroy(rt);
}
// All that one event wakes: each goes its own way.
TEST_OF_THREADS(tasks_woken_at_once_spread_over_inboxes) {
    enum { MANY = 40 };
    gate g;
    volt_token token;
    int n_started = 0, n_ended = 0;
    memset(&token, 0, sizeof token);
    volt_rt *rt = create_placed(VOLT_PLACE_LEAST, WORKERS);
    for (int i = 0; i < MANY; i++)
        RT_SPAWN(rt, NULL, waiter_run,
                 (waiter){ .token = &token, .n_started = &n_started, .n_ended = &n_ended });
    UNTIL(READ(n_started) == MANY);
    UNTIL(count_parked(rt) == WORKERS);
    hold(rt, &g, WORKERS);
    volt_token_cancel(&token);
    for (uint32_t i = 0; i < WORKERS; i++) CHECK_EQ(in_inbox(rt, i), MANY / WORKERS);
    release(&g);
    UNTIL(READ(n_ended) == MANY);
    destroy(rt);
}

// ---- which worker takes it

// No worker is told, as if the pusher were held up: the one that the watchdog wakes takes it.
TEST_OF_THREADS(inbox_of_stuck_worker_is_emptied_by_another_worker) {
    enum { MANY = 100 }; // more than one share
    gate g;
    int n_ended = 0;
    volt_rt *rt = create_placed(VOLT_PLACE_LEAST, 2);
    hold(rt, &g, 1);
    UNTIL(count_parked(rt) == 1);
    volt__worker *w = rt->workers[READ(g.at)];
    for (int i = 0; i < MANY; i++) {
        tell t = { .n_ended = &n_ended };
        volt__task *task = volt__task_alloc(rt, NULL, sizeof t, 0);
        CHECK(task);
        volt__spawn_fill(task, NULL, tell_run, &t, sizeof t, "placed by hand");
        CHECK(volt__injector_spawn(&w->inbox, task));
    }
    UNTIL(READ(n_ended) == MANY); // while its worker is held
    UNTIL(stats_of(rt).steals + stats_of(rt).rescued > 0);
    release(&g);
    destroy(rt);
}
// A worker that has nothing takes half of what another one has, in order.
TEST_OF_THREADS(thieves_empty_inboxes) {
    gate g, other;
    int n_ended = 0;
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    c.placement = VOLT_PLACE_LEAST;
    c.start_all_workers = 1;
    c.watchdog_us = UINT32_MAX; // not by a rescue
    CHECK_EQ(volt_create(&c, &rt), 0);
    hold(rt, &g, 1);
    hold(rt, &other, 1);
    spawn_outside(rt, 100, &n_ended);
    CHECK_EQ(in_inbox(rt, 0), 50);
    CHECK_EQ(in_inbox(rt, 1), 50);
    release(&other);
    UNTIL(READ(n_ended) == 100);
    UNTIL(stats_of(rt).steals > 0);
    release(&g);
    destroy(rt);
}

// ---- the load is exact whenever nothing moves

enum { BACKLOG = 2000 }; // producers wait beyond
typedef struct {
    int stop, n_spawned, n_ended;
    // while odd, workers stay in their next poll, and producers pause; n_... counts them
    int freeze, n_frozen, quiet, n_quiet;
} traffic;
static void pause_if_odd(const int *word, int *n_paused) {
    int now = READ(*word);
    if (now % 2 == 0) return;
    COUNT(*n_paused);
    UNTIL(READ(*word) != now);
}
static void freeze_if_asked(traffic *t) { pause_if_odd(&t->freeze, &t->n_frozen); }
typedef struct {
    volt_frame frame;
    traffic *t;
    int n_children, i, rc;
} parent;
// Spawns children, some more than a ring holds, and yields now and then: steals and overflows.
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = (parent *)arg;
    VOLT_BEGIN(cx, p);
    freeze_if_asked(p->t);
    for (p->i = 0; p->i < p->n_children; p->i++) {
        COUNT(p->t->n_spawned);
        SPAWN(NULL, parent_run, (parent){ .t = p->t });
        if (p->i % 7 == 0) VOLT_AWAIT(p->rc, volt_yield(cx)); // also when it is cancelled
        freeze_if_asked(p->t);
    }
    COUNT(p->t->n_ended);
    VOLT_END(0);
}
typedef struct {
    volt_rt *rt;
    traffic *t;
} producer;
static void *produce(void *arg) {
    producer *p = (producer *)arg;
    traffic *t = p->t;
    while (!READ(t->stop)) {
        pause_if_odd(&t->quiet, &t->n_quiet);
        if (READ(t->n_spawned) - READ(t->n_ended) > BACKLOG) {
            sched_yield();
            // A parked worker can freeze only in a task. Those of frozen workers may be below the
            // steal floor, and without a watchdog it gets none of them.
            if (READ(t->freeze) % 2 == 0) continue;
        }
        volt_handle h = { NULL };
        COUNT(t->n_spawned);
        RT_SPAWN(p->rt, &h, parent_run, (parent){ .t = t, .n_children = (int)RANDOM_BELOW(20) });
        if (RANDOM_BELOW(3) == 0) volt_cancel(&h); // also while it is queued
        volt_detach(&h);
    }
    return NULL;
}
// Everything stands still: the workers in a poll each, the producers between two spawns.
static void check_loads(const volt_rt *rt, traffic *t, int n_producers) {
    WRITE(t->n_frozen, 0);
    WRITE(t->n_quiet, 0);
    COUNT(t->freeze);
    UNTIL(READ(t->n_frozen) == WORKERS);
    COUNT(t->quiet);
    UNTIL(READ(t->n_quiet) == n_producers);
    int64_t sum = (int64_t)READ(rt->injector.len);
    for (uint32_t i = 0; i < WORKERS; i++) sum += volt__worker_load(rt, i);
    CHECK_EQ(sum, READ(t->n_spawned) - READ(t->n_ended));
    COUNT(t->quiet);
    COUNT(t->freeze);
}
enum { PRODUCERS = 3 };
static void start_producers(producer *p, pthread_t thread[PRODUCERS]) {
    WRITE(p->t->stop, 0);
    for (int i = 0; i < PRODUCERS; i++) thread[i] = start_thread(produce, p);
}
static void stop_producers(producer *p, pthread_t thread[PRODUCERS]) {
    WRITE(p->t->stop, 1);
    for (int i = 0; i < PRODUCERS; i++) join_thread(thread[i]);
}
// The tasks in the inbox of a held worker end only if they are stolen or rescued.
static void empty_by_others(producer *p, pthread_t thread[PRODUCERS], gate *one, gate *others) {
    hold(p->rt, one, 1);
    hold(p->rt, others, WORKERS - 1);
    start_producers(p, thread);
    UNTIL(READ(p->t->n_spawned) - READ(p->t->n_ended) >= BACKLOG);
    stop_producers(p, thread);
    release(others);
    UNTIL(READ(p->t->n_ended) == READ(p->t->n_spawned));
    release(one);
}
static void check_moving_loads(volt_placement placement, uint32_t watch_us) {
    enum { ROUNDS = 100 };
    traffic t;
    gate one, others; // held tasks read them until the runtime is destroyed
    pthread_t thread[PRODUCERS];
    memset(&t, 0, sizeof t);
    volt_rt *rt = create_watched(placement, WORKERS, watch_us);
    producer all = { rt, &t };
    start_producers(&all, thread);
    for (int round = 0; round < ROUNDS; round++) {
        int n = READ(t.n_spawned);
        check_loads(rt, &t, PRODUCERS);
        UNTIL(READ(t.n_spawned) - n > 50);
    }
    stop_producers(&all, thread);
    UNTIL(READ(t.n_ended) == READ(t.n_spawned));
    empty_by_others(&all, thread, &one, &others);
    UNTIL(count_parked(rt) == WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK_EQ(volt__queued_at(rt->workers[i]), 0);
        UNTIL(volt__worker_load(rt, i) == 0); // the watchdog wakes a parked one for a moment
    }
    volt_counters c = stats_of(rt);
    CHECK(c.inbox_tasks > 0);
    CHECK(c.steals + (watch_us == UINT32_MAX ? 0 : c.rescued) > 0);
    destroy(rt);
}
TEST_OF_THREADS(loads_are_exact_whenever_nothing_moves) {
    for (int p = VOLT_PLACE_TWO; p <= VOLT_PLACE_LEAST; p++) {
        check_moving_loads((volt_placement)p, test_config(1).watchdog_us);
        check_moving_loads((volt_placement)p, UINT32_MAX);
    }
}

// ---- from many threads; at a shutdown; configuration

typedef struct {
    volt_rt *rt;
    int n_accepted, *n_ended;
} caller;
static void *call_until_refused(void *arg) {
    caller *c = (caller *)arg;
    for (;;) {
        int rc = VOLT_RT_SPAWN(c->rt, NULL, tell_run, (tell){ .n_ended = c->n_ended });
        if (rc == -ESHUTDOWN) return NULL;
        CHECK_EQ(rc, 0);
        c->n_accepted++;
    }
}
TEST_OF_THREADS(spawn_that_shutdown_accepts_is_run) {
    enum { CALLERS = 3, ROUNDS = 30 };
    EACH_PLACEMENT(p) {
        for (int round = 0; round < ROUNDS; round++) {
            int n_ended = 0, n = 0;
            pthread_t thread[CALLERS];
            caller c[CALLERS];
            volt_config config = test_config(1 + (uint32_t)RANDOM_BELOW(WORKERS));
            volt_rt *rt = NULL;
            config.placement = (volt_placement)p;
            CHECK_EQ(volt_create(&config, &rt), 0);
            for (int i = 0; i < CALLERS; i++) {
                c[i] = (caller){ rt, 0, &n_ended };
                thread[i] = start_thread(call_until_refused, &c[i]);
            }
            UNTIL(READ(n_ended) > 50);
            CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
            for (int i = 0; i < CALLERS; i++) join_thread(thread[i]);
            for (int i = 0; i < CALLERS; i++) n += c[i].n_accepted;
            CHECK_EQ(READ(n_ended), n);
            volt_counters s = stats_of(rt);
            CHECK_EQ(s.spawned, n);
            CHECK_EQ(s.completed, n);
            CHECK_EQ(volt_destroy(rt), 0);
            test_check_heap();
        }
    }
}
TEST(config_accepts_three_placements) {
    EACH_WORKERS(n) {
        EACH_PLACEMENT(p) {
            volt_config c = test_config(n), effective;
            volt_rt *rt = NULL;
            c.placement = (volt_placement)p;
            CHECK_EQ(volt_create(&c, &rt), 0);
            volt_effective_config(rt, &effective);
            CHECK_EQ(effective.placement, n == 1 ? VOLT_PLACE_SHARED : p); // 1: no choice
            destroy(rt);
        }
        volt_config c = test_config(n);
        volt_rt *rt = NULL;
        c.placement = (volt_placement)(VOLT_PLACE_LEAST + 1);
        CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    }
}
