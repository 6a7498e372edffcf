// SPDX-License-Identifier: MIT OR 0BSD
// The test clock: time limits of tasks without real time.
#define VOLT_TEST_CLOCK 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "in_child.h"
int limits_main(void);
#define main limits_main
#include "examples/16_limits.c"
#undef main

static volt_time real_now(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (volt_time)t.tv_sec * 1000000000 + t.tv_nsec;
}
enum { HOUR_S = 3600 };

typedef struct {
    volt_frame frame;
    volt_time before, real;
    volt_timer timer;
    int i, rc;
} hours;
static volt_poll hours_run(volt_cx *cx, void *arg) {
    hours *h = (hours *)arg;
    VOLT_BEGIN(cx, h);
    h->real = real_now();
    for (h->i = 0; h->i < 24; h->i++) {
        h->before = volt_now();
        VOLT_AWAIT(h->rc, volt_sleep(cx, VOLT_S(HOUR_S)));
        CHECK_EQ(h->rc, 0);
        volt_time slept = volt_now() - h->before;
        CHECK(slept >= VOLT_S(HOUR_S) && slept <= VOLT_S(HOUR_S) + VOLT_TICK_NS);
    }
    h->before = volt_now();
    VOLT_AWAIT(h->rc, volt_within(cx, &h->timer, VOLT_S(HOUR_S), volt_sleep(cx, VOLT_NEVER)));
    CHECK_EQ(h->rc, -ETIMEDOUT);
    CHECK(real_now() - h->real < VOLT_S(HOUR_S));
    VOLT_END(0);
}
TEST(sleep_of_hours_returns_at_once) {
    hours h;
    memset(&h, 0, sizeof h);
    CHECK_EQ(run_on(1, hours_run, &h), 0);
}

// The other clocks are the test clock, too.
ROOT_TEST_1(sleep_on_of_hours_returns_at_once, { volt_time before, until, real; int c, rc; }) {
    VOLT_BEGIN(cx, s);
    s->real = real_now();
    for (s->c = VOLT_CLOCK_BOOT; s->c <= VOLT_CLOCK_WALL; s->c++) {
        s->before = volt_now();
        CHECK_EQ(volt_clock_now((volt_clock)s->c), s->before);
        s->until = s->before + VOLT_S(HOUR_S);
        VOLT_AWAIT(s->rc, volt_sleep_on(cx, (volt_clock)s->c, s->until));
        CHECK_EQ(s->rc, 0);
        CHECK(volt_now() >= s->until && volt_now() <= s->until + VOLT_TICK_NS);
    }
    CHECK(real_now() - s->real < VOLT_S(HOUR_S));
    VOLT_END(0);
}

// Sleepers of random lengths wake in the order of their times, each at its own.
typedef struct {
    volt_frame frame;
    volt_time at, *last;
    int rc;
} riser;
static volt_poll riser_run(volt_cx *cx, void *arg) {
    riser *r = (riser *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_sleep_until(cx, r->at));
    CHECK_EQ(r->rc, 0);
    CHECK(volt_now() >= r->at && volt_now() - r->at <= VOLT_TICK_NS);
    CHECK(r->at + VOLT_TICK_NS >= *r->last);
    *r->last = r->at;
    VOLT_END(0);
}
ROOT_TEST_1(timers_fire_in_the_order_of_their_times, { volt_group g; volt_time last; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 200; s->i++) {
        volt_time at = volt_now() + (volt_time)RANDOM_BELOW(1000000) * 1000000;
        GROUP_SPAWN(&s->g, riser_run, (riser){ .at = at, .last = &s->last });
    }
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    VOLT_END(s->rc);
}
ROOT_TEST_1(clock_stands_still_during_a_poll, { int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_time now = volt_now(), until = real_now() + 1000000;
    while (real_now() < until) {}
    CHECK_EQ(volt_now(), now);
    VOLT_AWAIT(s->rc, volt_yield(cx));
    VOLT_END(0);
}
// While a pool thread works the clock waits for it.
static int nap_really(void *arg) {
    volt_time until = real_now() + 5000000;
    (void)arg;
    while (real_now() < until) sched_yield();
    return 7;
}
ROOT_TEST_1(clock_waits_for_a_blocking_call, { volt_timer t; volt_job job; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1),
                                  volt_blocking(cx, &s->job, nap_really, NULL)));
    CHECK_EQ(s->rc, 7);
    VOLT_END(0);
}

// It goes on after that, whether the task sleeps before the pool thread is idle or later.
static int return_none(void *arg) {
    (void)arg;
    return 0;
}
ROOT_TEST_1(clock_goes_on_after_blocking_calls, { volt_job job; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 300; s->i++) {
        if (s->i % 2) VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, return_none, NULL));
        else s->rc = volt_block_in_place(cx, return_none, NULL);
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(1)));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
// A thread of the pool that starts late finds no job: its task was cancelled, and sleeps.
static volt_rt *started_late;
static void start_late(void *user, uint32_t worker, int is_start) {
    (void)user;
    if (worker == UINT32_MAX && is_start) UNTIL(volt__idle_is_parked(&started_late->idle, 0));
}
typedef struct {
    volt_frame frame;
    volt_job job;
    volt_timer timer;
    int rc;
} quitter;
static volt_poll quitter_run(volt_cx *cx, void *arg) {
    quitter *q = (quitter *)arg;
    VOLT_BEGIN(cx, q);
    VOLT_AWAIT(q->rc, volt_within(cx, &q->timer, 0, volt_blocking(cx, &q->job, return_none, NULL)));
    CHECK_EQ(q->rc, -ETIMEDOUT);
    VOLT_AWAIT(q->rc, volt_sleep(cx, VOLT_S(1)));
    VOLT_END(q->rc);
}
TEST_OF_THREADS(clock_goes_on_after_a_call_that_was_cancelled) {
    volt_config c = test_config(1);
    volt_handle h;
    int64_t result = -1;
    c.on_thread.fn = start_late;
    CHECK_EQ(volt_create(&c, &started_late), 0);
    RT_SPAWN(started_late, &h, quitter_run, (quitter){ .rc = 0 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 0);
    destroy(started_late);
}

// The clock does not jump to a time limit while an event is pending.
ROOT_TEST_1(pending_event_comes_before_the_clock_moves, {
    volt_timer t;
    volt_time start;
    int ends[2], rc;
    char byte;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->ends), 0);
    s->start = volt_now();
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_read(cx, s->ends[0], &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT); // now the descriptor is watched
    CHECK_EQ(write(s->ends[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_read_ready(cx, s->ends[0])));
    CHECK(s->rc >= 0);
    CHECK_EQ(volt_now(), s->start);
    volt_close(cx, s->ends[0]);
    volt_close(cx, s->ends[1]);
    VOLT_END(0);
}
TEST(clock_never_goes_back) {
    volt_time now = volt_now();
    volt__test_clock_move(now - 1);
    CHECK_EQ(volt_now(), now);
    volt__test_clock_move(now + 1);
    CHECK_EQ(volt_now(), now + 1);
}

// ---- threads wait in real time

TEST(block_on_of_a_sleep_of_hours_returns_at_once) {
    volt_rt *rt = create_on(1);
    volt_time start = volt_now();
    volt_handle h;
    napper n = { .d = VOLT_S(HOUR_S), .value = 3 };
    CHECK_EQ(volt_block_on(rt, napper_run, &n), 3);
    CHECK(volt_now() - start >= VOLT_S(HOUR_S));
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_NEVER });
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), NULL), -ETIMEDOUT);
    volt_cancel(&h);
    volt_detach(&h);
    destroy(rt);
}
// A task that ends later than the deadline by the test clock, but sooner in real time.
static int waits_ended;
typedef struct {
    volt_frame frame;
    volt_event *event;
    volt_shield shield;
    int rc;
} holdout;
static volt_poll holdout_run(volt_cx *cx, void *arg) {
    holdout *h = (holdout *)arg;
    VOLT_BEGIN(cx, h);
    volt_shield_begin(cx, &h->shield, VOLT_NEVER);
    VOLT_AWAIT(h->rc, volt_sleep(cx, VOLT_S(3 * HOUR_S)));
    CHECK_EQ(h->rc, 0);
    VOLT_AWAIT(h->rc, volt_event_wait(cx, h->event));
    CHECK_EQ(h->rc, 0);
    waits_ended++;
    volt_shield_end(cx, &h->shield);
    VOLT_END(0);
}
typedef struct {
    volt_rt *rt;
    volt_event event;
    volt_time slept_until;
} releaser;
static void *release_parked(void *arg) {
    releaser *r = (releaser *)arg;
    UNTIL(volt_now() >= r->slept_until && volt__idle_is_parked(&r->rt->idle, 0));
    volt_event_set(&r->event);
    return NULL;
}
TEST_OF_THREADS(shutdown_waits_in_real_time) {
    for (int is_guest = 0; is_guest <= 1; is_guest++) {
        volt_config c = test_config(1);
        volt_time start = volt_now(), end = start + VOLT_S(3 * HOUR_S);
        releaser r = { .slept_until = end };
        volt_handle h;
        c.is_guest = (uint32_t)is_guest;
        waits_ended = 0;
        CHECK_EQ(volt_create(&c, &r.rt), 0);
        RT_SPAWN(r.rt, &h, holdout_run, (holdout){ .event = &r.event });
        volt_detach(&h);
        pthread_t thread = start_thread(release_parked, &r);
        CHECK_EQ(volt_shutdown(r.rt, VOLT_S(HOUR_S)), 0);
        CHECK_EQ(waits_ended, 1);
        CHECK(volt_now() >= end && volt_now() <= end + VOLT_TICK_NS);
        join_thread(thread);
        CHECK_EQ(volt_destroy(r.rt), 0);
        test_check_heap();
    }
}
typedef struct {
    volt_frame frame;
    releaser *r;
    pthread_t *thread;
    void *(*fn)(void *);
} leaver;
static volt_poll leaver_run(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    l->r->rt = cx->rt_;
    l->r->slept_until = volt_now() + VOLT_S(3 * HOUR_S);
    SPAWN(NULL, holdout_run, (holdout){ .event = &l->r->event });
    VOLT_AWAIT(volt_yield(cx));
    *l->thread = start_thread(l->fn, l->r);
    VOLT_END(5);
}
// A run whose task is left until `fn`, in a thread of its own, releases it.
static void drain_within_an_hour(void *(*fn)(void *)) {
    volt_config c = test_config(1);
    releaser r = { .rt = NULL };
    pthread_t thread;
    leaver l = { .r = &r, .thread = &thread, .fn = fn };
    c.drain_timeout = VOLT_S(HOUR_S);
    waits_ended = 0;
    CHECK_EQ(volt_run(&c, leaver_run, &l), 5);
    CHECK_EQ(waits_ended, 1);
    join_thread(thread);
    test_check_heap();
}
TEST_OF_THREADS(drain_timeout_is_in_real_time) { drain_within_an_hour(release_parked); }

// The limit is converted to the test clock. Moves of that clock between two looks at it must not
// use the limit up.
static void *advance_then_release(void *arg) {
    releaser *r = (releaser *)arg;
    for (int i = 0; i < 20000; i++) CHECK_EQ(volt_test_advance(r->rt, VOLT_S(HOUR_S)), 0);
    volt_event_set(&r->event);
    return NULL;
}
TEST_OF_THREADS(drain_timeout_is_not_used_up_by_moves_of_the_clock) {
    drain_within_an_hour(advance_then_release);
}
// A move by VOLT_NEVER leaves room for deadlines. (The wheel of the small build takes too long to
// turn so far.)
#ifndef VOLT_TEST_SMALL
ROOT_TEST_1(timer_fires_after_the_longest_move_of_the_clock, {
    volt_interval iv;
    volt_timer timer;
    volt_time at;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_test_advance(cx->rt_, VOLT_NEVER), 0);
    s->at = volt_now();
    CHECK(s->at > VOLT_S(100LL * 365 * 24 * HOUR_S));
    volt_interval_init(&s->iv, VOLT_MS(10));
    VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
    CHECK_EQ(s->rc, 1);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_S(HOUR_S), volt_sleep(cx, VOLT_NEVER)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_now() >= s->at + VOLT_S(HOUR_S));
    VOLT_END(0);
}
#endif

// ---- held and moved by hand

TEST_OF_THREADS(held_clock_moves_by_advance_only) {
    volt_rt *rt = create_on(1);
    int n_ended = 0;
    volt_handle h;
    int64_t result = 0;
    CHECK_EQ(volt_test_hold(rt, 1), 0);
    volt_time start = volt_now();
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_S(10), .value = 3, .n_ended = &n_ended });
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), &result), -ETIMEDOUT); // in real time
    CHECK_EQ(volt_now(), start);
    CHECK_EQ(volt_test_advance(rt, VOLT_S(9)), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), &result), -ETIMEDOUT);
    CHECK_EQ(READ(n_ended), 0);
    CHECK_EQ(volt_test_advance(rt, VOLT_S(2)), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(volt_now(), start + VOLT_S(11));
    CHECK_EQ(volt_test_advance(rt, -1), -EINVAL);
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_S(10), .value = 4 });
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), &result), -ETIMEDOUT);
    CHECK_EQ(volt_test_hold(rt, 0), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 4);
    destroy(rt);
}
// A worker that looks whether the clock is held moves it some time later.
TEST(clock_that_is_held_after_the_look_of_a_worker_stays) {
    volt_rt *rt = create_on(1);
    volt_time start = volt_now();
    CHECK_EQ(volt_test_hold(rt, 1), 0);
    volt__test_clock_move(start + VOLT_S(1));
    CHECK_EQ(volt_now(), start);
    CHECK_EQ(volt_test_hold(rt, 0), 0);
    volt__test_clock_move(start + VOLT_S(1));
    CHECK_EQ(volt_now(), start + VOLT_S(1));
    destroy(rt);
}
TEST(clock_of_a_guest_moves_by_advance_only) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    int n_ended = 0;
    c.is_guest = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    volt_time start = volt_now();
    struct pollfd p = { .fd = volt_rt_fd(rt), .events = POLLIN };
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(1), .n_ended = &n_ended });
    while (volt_rt_step(rt, 0) > 0) {}
    CHECK_EQ(poll(&p, 1, 20), 0); // real time does not count
    CHECK_EQ(volt_test_advance(rt, VOLT_MS(2)), 0);
    while (!n_ended) volt_rt_step(rt, 0);
    n_ended = 0;
    start = volt_now();
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(10), .n_ended = &n_ended });
    while (volt_rt_step(rt, 0) > 0) {}
    while (!n_ended) { // the wheel may want steps before the timer is due
        volt_time at = volt_rt_deadline(rt);
        CHECK(at > volt_now() && at <= start + VOLT_S(10) + VOLT_TICK_NS);
        CHECK_EQ(poll(&p, 1, 0), 0);
        CHECK_EQ(volt_test_advance(rt, at - volt_now()), 0);
        CHECK_EQ(poll(&p, 1, 0), 1);
        while (volt_rt_step(rt, 0) > 0) {}
    }
    CHECK(volt_now() >= start + VOLT_S(10));
    destroy(rt);
}

// ---- tasks that keep a worker busy, so that the clock stands still

// Each item of a queue of work makes two more, as long as there are few. Older tasks, in the
// overflow queue, have their turn all the same.
enum { ITEMS = 3000, OLDER = 30, MOST_ITEMS = 20000000 };
typedef struct {
    int n_alive, n_polls, n_older;
} mill;
typedef struct {
    volt_frame frame;
    mill *m;
} item;
static volt_poll older_run(volt_cx *cx, void *arg) {
    item *i = (item *)arg;
    VOLT_BEGIN(cx, i);
    i->m->n_older++;
    VOLT_END(0);
}
static volt_poll item_run(volt_cx *cx, void *arg) {
    item *i = (item *)arg;
    VOLT_BEGIN(cx, i);
    mill *m = i->m;
    m->n_alive--;
    m->n_polls++;
    for (int k = 0; k < 2; k++) {
        if (m->n_older == OLDER || m->n_polls > MOST_ITEMS || m->n_alive >= ITEMS) break;
        m->n_alive++;
        SPAWN(NULL, item_run, (item){ .m = m });
    }
    VOLT_END(0);
}
ROOT_TEST_1(older_tasks_have_their_turn_while_the_clock_stands_still, { mill m; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < ITEMS; s->i++) {
        int is_older = s->i % (ITEMS / OLDER) == 50;
        s->m.n_alive += !is_older;
        SPAWN(NULL, is_older ? older_run : item_run, (item){ .m = &s->m });
    }
    while (s->m.n_older < OLDER && s->m.n_polls <= MOST_ITEMS) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(s->m.n_older, OLDER);
    while (s->m.n_alive > 0) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}

static void is_refused_the_clock(void *rt) {
    CHECK_EQ(volt_test_advance((volt_rt *)rt, 1), -ECHILD);
    CHECK_EQ(volt_test_hold((volt_rt *)rt, 1), -ECHILD);
}
TEST(forked_child_does_not_move_the_clock) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), 0);
    in_child(is_refused_the_clock, rt);
    destroy(rt);
}

// ---- the bucket of examples/16_limits.c

typedef struct {
    volt_frame frame;
    request r;
    volt_sem *bucket;
    int *n_passed, rc;
} requester;
static volt_poll requester_run(volt_cx *cx, void *arg) {
    requester *r = (requester *)arg;
    VOLT_BEGIN(cx, r);
    r->r = (request){ .bucket = r->bucket };
    VOLT_AWAIT(r->rc, request_run(cx, &r->r));
    *r->n_passed += r->rc == 0;
    VOLT_END(r->rc);
}
// A second in which nothing runs adds as many permits as the bucket holds.
ROOT_TEST_1(stall_adds_one_bucket_of_permits, { rate r; volt_group g; int i, n_passed, rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(rate_start(cx, &s->r), 0);
    for (s->i = 0; s->i < 10 * BURST; s->i++)
        GROUP_SPAWN(&s->g, requester_run,
                    (requester){ .bucket = &s->r.bucket, .n_passed = &s->n_passed });
    while (s->n_passed < BURST) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_test_hold(cx->rt_, 1), 0);
    CHECK_EQ(volt_test_advance(cx->rt_, VOLT_S(1)), 0);
    for (s->i = 0; s->i < 2000; s->i++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(s->n_passed, 2 * BURST);
    CHECK_EQ(volt_test_hold(cx->rt_, 0), 0);
    VOLT_AWAIT(volt_group_close(cx, &s->r.refilling));
    VOLT_AWAIT(volt_group_close(cx, &s->g));
    VOLT_END(0);
}

TEST_OF_THREADS(test_clock_refuses_a_second_worker) {
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    c = test_config(0);
    CHECK_EQ(volt_create(&c, &rt), 0);
    volt_effective_config(rt, &c);
    CHECK_EQ(c.workers, 1);
    destroy(rt);
}

// ---- the same way in each run

enum { STEPS = 300 };
typedef struct {
    char way[STEPS];
    int n;
} diary;
typedef struct {
    volt_frame frame;
    diary *d;
    volt_arm arms[2];
    volt_time length;
    int number, i;
} walker;
static volt_poll walker_run(volt_cx *cx, void *arg) {
    walker *w = (walker *)arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < 20 && w->d->n < STEPS; w->i++) {
        memset(w->arms, 0, sizeof w->arms);
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&w->arms[0], volt_sleep(cx, w->length)),
                               VOLT_ARM(&w->arms[1], volt_sleep(cx, w->length))));
        if (w->d->n < STEPS) w->d->way[w->d->n++] = (char)(2 * w->number + (int)w->arms[1].fired);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    diary d;
    volt_group g;
    int i, rc;
} walk;
static volt_poll walk_run(volt_cx *cx, void *arg) {
    walk *w = (walk *)arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < 15; w->i++) {
        walker x = { .d = &w->d, .length = VOLT_MS(1 + w->i % 4), .number = w->i };
        GROUP_SPAWN(&w->g, walker_run, x);
    }
    VOLT_AWAIT(w->rc, volt_group_wait(cx, &w->g));
    VOLT_END(w->rc);
}
TEST(same_seed_gives_the_same_order) {
    static walk a, b;
    volt_config c = test_config(1);
    CHECK_EQ(volt_run(&c, walk_run, &a), 0);
    CHECK_EQ(volt_run(&c, walk_run, &b), 0);
    CHECK_EQ(a.d.n, STEPS);
    CHECK_EQ(memcmp(&a.d, &b.d, sizeof a.d), 0);
    int n_second = 0;
    for (int i = 0; i < STEPS; i++) n_second += a.d.way[i] & 1;
    CHECK(n_second > STEPS / 10 && n_second < STEPS * 9 / 10); // the choices are random
}
