// SPDX-License-Identifier: MIT OR 0BSD
// Tasks: spawn, join, cancel, shields, yield, budget, wakers. Groups are in group.c.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- spawn and join

ROOT_TEST(join_gives_result_and_clears_handle, { volt_handle h; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK(!volt_handle_is_set(&s->h));
    SPAWN(&s->h, napper_run, (napper){ .d = VOLT_MS(2), .value = 41 });
    CHECK(volt_handle_is_set(&s->h));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 41);
    CHECK(!volt_handle_is_set(&s->h));
    VOLT_END(0);
}

ROOT_TEST(results_are_64_bit, { volt_handle h; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, giver_run, (giver){ .value = INT64_MAX });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, INT64_MAX);
    SPAWN(&s->h, giver_run, (giver){ .value = -EIO });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EIO);
    VOLT_END(0);
}

ROOT_TEST(state_is_copied, { volt_handle h; giver original; int rc; }) {
    VOLT_BEGIN(cx, s);
    s->original.value = 7;
    SPAWN(&s->h, giver_run, s->original);
    s->original.value = 8;
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 7);
    VOLT_END(0);
}

// Every size class, and more than a slab holds.
typedef struct {
    volt_frame frame;
    size_t size;
    int rc;
    unsigned char bytes[200000];
} blob;
static volt_poll blob_run(volt_cx *cx, void *arg) {
    blob *b = arg;
    CHECK_EQ((uintptr_t)b % 16, 0);
    for (size_t i = 0; i < b->size; i++) CHECK_EQ(b->bytes[i], (unsigned char)(i * 7));
    (void)cx;
    return volt_ready((int64_t)b->size);
}
ROOT_TEST(spawn_takes_state_of_every_size, { volt_handle h; size_t n; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < sizeof((blob *)0)->bytes; s->n += s->n / 7 + 1) {
        blob *b = calloc(1, sizeof *b);
        b->size = s->n;
        for (size_t i = 0; i < s->n; i++) b->bytes[i] = (unsigned char)(i * 7);
        CHECK_EQ(volt_spawn(cx, &s->h, blob_run, b, offsetof(blob, bytes) + s->n), 0);
        free(b);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->n);
    }
    VOLT_END(0);
}

// By each call that spawns, into fresh slots and then into freed ones, which small states take by a
// way of their own. Each task runs once: the yields are for a second time.
enum { LOOSE = 6 };
ROOT_TEST(spawn_without_handle_runs_its_task, {
    int rc[LOOSE], n_ended[LOOSE], round, i;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    for (s->round = 1; s->round <= 2; s->round++) {
        volt_rt *rt = volt_cx_rt(cx);
        napper n[4];
        memset(n, 0, sizeof n);
        for (int i = 0; i < 4; i++) {
            n[i].d = i % 2 ? VOLT_MS(1) : 0;
            n[i].rc = &s->rc[i];
            n[i].n_ended = &s->n_ended[i];
            s->rc[i] = 1;
        }
        SPAWN(NULL, napper_run, n[0]);
        RT_SPAWN(rt, NULL, napper_run, n[1]);
        CHECK_EQ(volt_spawn(cx, NULL, napper_run, &n[2], sizeof n[2]), 0);
        CHECK_EQ(volt_rt_spawn(rt, NULL, napper_run, &n[3], sizeof n[3]), 0);
        SPAWN(NULL, giver_run, (giver){ .n_ended = &s->n_ended[4] });
        RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &s->n_ended[5] });
        for (s->i = 0; s->i < LOOSE; s->i++)
            VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended[s->i], s->round));
        for (s->i = 0; s->i < 10; s->i++) VOLT_AWAIT(volt_yield(cx));
        for (int i = 0; i < LOOSE; i++) CHECK_EQ(READ(s->n_ended[i]), s->round);
        for (int i = 0; i < LOOSE; i++) CHECK_EQ(READ(s->rc[i]), 0);
    }
    VOLT_END(0);
}

ROOT_TEST(spawn_refuses_frame_that_is_not_zero, { volt_handle h; giver bad; }) {
    VOLT_BEGIN(cx, s);
    memset(&s->bad.frame, 0x5a, sizeof s->bad.frame);
    CHECK_EQ(VOLT_SPAWN(cx, &s->h, giver_run, s->bad), -EINVAL);
    CHECK(!volt_handle_is_set(&s->h));
    CHECK_EQ(VOLT_RT_SPAWN(volt_cx_rt(cx), &s->h, giver_run, s->bad), -EINVAL);
    CHECK(!volt_handle_is_set(&s->h));
    VOLT_END(0);
}

ROOT_TEST(join_of_ended_task_gives_result_despite_cancel,
          { volt_handle h; int n_ended; int64_t rc; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, giver_run, (giver){ .value = 5, .n_ended = &s->n_ended });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended, 1));
    for (int i = 0; i < 100; i++) volt_cancel(&s->h); // it waits for nothing more
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    volt_cancel(&s->h); // of an empty handle: nothing
    VOLT_END(0);
}

ROOT_TEST(try_join_keeps_handle_until_task_has_ended,
          { volt_handle h; volt_token t; int64_t value; awaiter a; int rc; }) {
    VOLT_BEGIN(cx, s);
    s->value = 99;
    CHECK_EQ(volt_try_join(&s->h, &s->value), -EINVAL);
    SPAWN(&s->h, waiter_run, (waiter){ .token = &s->t, .value = 3 });
    CHECK_EQ(volt_try_join(&s->h, &s->value), -EAGAIN);
    CHECK(volt_handle_is_set(&s->h));
    CHECK_EQ(s->value, 99);
    volt_token_cancel(&s->t);
    while (volt_try_join(&s->h, &s->value) == -EAGAIN) VOLT_AWAIT(s->rc, volt_yield(cx));
    CHECK_EQ(s->value, 3);
    CHECK(!volt_handle_is_set(&s->h));
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    int in;
    int out[40];
} squares;
static volt_poll squares_run(volt_cx *cx, void *arg) {
    squares *q = arg;
    VOLT_BEGIN(cx, q);
    VOLT_AWAIT(volt_yield(cx));
    for (int i = 0; i < 40; i++) q->out[i] = q->in * i * i;
    VOLT_END(1);
}
ROOT_TEST(join_state_copies_the_final_state, { volt_handle h; squares got; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, squares_run, (squares){ .in = 3 });
    VOLT_AWAIT(s->rc, volt_join_state(cx, &s->h, &s->got, sizeof s->got));
    CHECK_EQ(s->rc, 1);
    for (int i = 0; i < 40; i++) CHECK_EQ(s->got.out[i], 3 * i * i);
    CHECK(!volt_handle_is_set(&s->h));
    SPAWN(&s->h, squares_run, (squares){ .in = 2 });
    VOLT_AWAIT(s->rc, volt_join_state(cx, &s->h, &s->got, offsetof(squares, out[20])));
    for (int i = 0; i < 40; i++) // the first part
        CHECK_EQ(s->got.out[i], (i < 20 ? 2 : 3) * i * i);
    VOLT_END(0);
}

ROOT_TEST(detach_lets_the_task_go_on, { volt_handle h; volt_token t; int n_ended; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, waiter_run, (waiter){ .token = &s->t, .n_ended = &s->n_ended });
    volt_detach(&s->h);
    CHECK(!volt_handle_is_set(&s->h));
    volt_detach(&s->h); // of an empty handle: nothing
    volt_token_cancel(&s->t);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended, 1));
    SPAWN(&s->h, giver_run, (giver){ .n_ended = &s->n_ended });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended, 2));
    volt_detach(&s->h); // of an ended one: its memory goes
    VOLT_END(0);
}

// A cancelled or timed-out join keeps the handle: the child has not ended.
ROOT_TEST(join_that_times_out_keeps_the_handle, { volt_handle h; volt_timer t; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, napper_run, (napper){ .d = VOLT_S(100) });
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3), volt_join(cx, &s->h)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_handle_is_set(&s->h));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK(!volt_handle_is_set(&s->h));
    VOLT_END(0);
}

ROOT_TEST(thousands_of_joins_give_every_result, { volt_handle h[64]; int i, n; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < 100; s->n++) {
        for (s->i = 0; s->i < 64; s->i++)
            SPAWN(&s->h[s->i], giver_run, (giver){ .value = s->n * 64 + s->i });
        for (s->i = 0; s->i < 64; s->i++) {
            VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
            CHECK_EQ(s->rc, s->n * 64 + s->i);
        }
    }
    VOLT_END(0);
}

// A tree of tasks: each joins two children; 2^(depth+1) - 1 in all.
typedef struct {
    volt_frame frame;
    int depth, rc[2];
    volt_handle h[2];
} branch;
static volt_poll branch_run(volt_cx *cx, void *arg) {
    branch *b = arg;
    VOLT_BEGIN(cx, b);
    if (b->depth == 0) VOLT_RETURN(1);
    SPAWN(&b->h[0], branch_run, (branch){ .depth = b->depth - 1 });
    SPAWN(&b->h[1], branch_run, (branch){ .depth = b->depth - 1 });
    VOLT_AWAIT(b->rc[0], volt_join(cx, &b->h[0]));
    VOLT_AWAIT(b->rc[1], volt_join(cx, &b->h[1]));
    VOLT_END(1 + b->rc[0] + b->rc[1]);
}
TEST(tree_of_tasks_joins_every_child) {
    EACH_WORKERS(w) {
        branch b = { .depth = 12 };
        CHECK_EQ(run_on(w, branch_run, &b), (1 << 13) - 1);
    }
}

// ---- from outside

TEST(join_sync_gives_result_of_task_spawned_outside) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        volt_handle h = { NULL };
        int64_t value = 0;
        CHECK_EQ(volt_join_sync(&h, VOLT_S(1), &value), -EINVAL);
        RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_MS(5), .value = 12 });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        CHECK_EQ(value, 12);
        CHECK(!volt_handle_is_set(&h));
        destroy(rt);
    }
}

TEST_OF_THREADS(join_sync_time_out_keeps_handle) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    int64_t value = 7;
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_S(100) });
    volt_time start = volt_now();
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(10), &value), -ETIMEDOUT);
    CHECK(volt_now() - start >= VOLT_MS(10));
    CHECK(volt_handle_is_set(&h));
    CHECK_EQ(volt_join_sync(&h, 0, &value), -ETIMEDOUT);
    CHECK_EQ(volt_try_join(&h, &value), -EAGAIN);
    CHECK_EQ(value, 7);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(value, -ECANCELED);
    destroy(rt);
}

enum { SPAWNERS = 4, PER_SPAWNER = 500 };
static int n_spawned_ended;
static void *spawner(void *arg) {
    volt_rt *rt = arg;
    volt_handle h[8] = { { NULL } };
    int64_t value;
    for (int i = 0; i < PER_SPAWNER; i++) {
        volt_handle *slot = &h[i % 8];
        if (volt_handle_is_set(slot)) CHECK_EQ(volt_join_sync(slot, VOLT_NEVER, &value), 0);
        RT_SPAWN(rt, slot, giver_run, (giver){ .n_ended = &n_spawned_ended });
    }
    for (int i = 0; i < 8; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &value), 0);
    return NULL;
}
TEST_OF_THREADS(tasks_spawned_by_many_threads_all_run) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        pthread_t t[SPAWNERS];
        n_spawned_ended = 0;
        for (int i = 0; i < SPAWNERS; i++) t[i] = start_thread(spawner, rt);
        for (int i = 0; i < SPAWNERS; i++) join_thread(t[i]);
        CHECK_EQ(n_spawned_ended, SPAWNERS * PER_SPAWNER);
        destroy(rt);
    }
}

// ---- created in place

ROOT_TEST(created_task_is_zeroed_and_runs_once_started,
          { volt_handle h; int64_t rc; int n_ended; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    {
        squares *q = volt_task_create(volt_cx_rt(cx), squares_run, sizeof *q);
        CHECK(q && q->in == 0 && q->out[39] == 0);
        CHECK_EQ((uintptr_t)q % 16, 0);
        volt_counters before, c;
        volt_stats(volt_cx_rt(cx), &before);
        volt_task_destroy(q);
        volt_stats(volt_cx_rt(cx), &c);
        CHECK_EQ(c.completed, before.completed + 1);
        q = volt_task_create(volt_cx_rt(cx), squares_run, sizeof *q);
        CHECK(q && q->in == 0); // zeroed, also when the memory was used before
        q->in = 5;
        volt_task_start(q, &s->h);
    }
    CHECK(volt_handle_is_set(&s->h));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 1);
    {
        giver *g = volt_task_create(volt_cx_rt(cx), giver_run, sizeof *g);
        CHECK(g);
        g->n_ended = &s->n_ended;
        volt_task_start(g, NULL);
    }
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended, 1));
    VOLT_END(0);
}

TEST_OF_THREADS(task_created_outside_runs_once_started) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    int64_t value = 0;
    int n_ended = 0, n_started = 0;
    for (int i = 0; i < 200; i++) {
        giver *g = volt_task_create(rt, giver_run, sizeof *g);
        CHECK(g);
        g->value = i;
        g->n_ended = &n_ended;
        RT_SPAWN(rt, &h, giver_run, (giver){ .value = -1 }); // goes past it
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        CHECK_EQ(value, -1);
        CHECK_EQ(READ(n_ended), n_started);
        if (i % 3 == 0) {
            volt_task_destroy(g);
            continue;
        }
        volt_task_start(g, &h);
        n_started++;
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        CHECK_EQ(value, i);
        CHECK_EQ(READ(n_ended), n_started);
    }
    destroy(rt);
    CHECK_EQ(n_ended, n_started);
}

// ---- cancel

typedef struct {
    volt_frame frame;
    int *n_polls, *is_seen;
    int rc;
} newborn;
static volt_poll newborn_run(volt_cx *cx, void *arg) {
    newborn *n = arg;
    VOLT_BEGIN(cx, n);
    COUNT(*n->n_polls);
    WRITE(*n->is_seen, volt_is_cancelled(cx));
    VOLT_AWAIT(n->rc, volt_sleep(cx, VOLT_S(100)));
    VOLT_END(n->rc);
}
ROOT_TEST(task_cancelled_before_first_poll_is_polled_once,
          { volt_handle h; int n_polls, is_seen; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, newborn_run, (newborn){ .n_polls = &s->n_polls, .is_seen = &s->is_seen });
    volt_cancel(&s->h);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(s->n_polls, 1);
    VOLT_END(0);
}
ROOT_TEST_1(cancel_is_visible_in_the_first_poll, { volt_handle h; int n_polls, is_seen, rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, newborn_run, (newborn){ .n_polls = &s->n_polls, .is_seen = &s->is_seen });
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->is_seen, 1); // one worker: it cannot have been polled before
    VOLT_END(0);
}

ROOT_TEST(cancel_wakes_idle_task_and_unlinks_its_wait, {
    volt_handle h;
    int started, ended;
    int64_t rc;
    awaiter a;
    volt_token t;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, waiter_run, (waiter){ .token = &s->t, .n_started = &s->started,
          .n_ended = &s->ended });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->started, 1));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(s->ended, 1);
    CHECK(!s->t.waiters_); // nothing stays linked
    VOLT_END(0);
}

// Queued by its token and cancelled before it runs: cancellation comes first.
ROOT_TEST_1(cancel_wins_over_token_that_has_fired, {
    volt_handle h;
    int started;
    int64_t rc;
    awaiter a;
    volt_token t;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, waiter_run, (waiter){ .token = &s->t, .n_started = &s->started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->started, 1));
    volt_token_cancel(&s->t);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}

// A loop without awaits sees a cancel that comes while it runs, and so does its next await.
typedef struct {
    volt_frame frame;
    int *n_started;
    int rc;
} spinner;
static volt_poll spinner_run(volt_cx *cx, void *arg) {
    spinner *p = arg;
    VOLT_BEGIN(cx, p);
    COUNT(*p->n_started);
    while (!volt_is_cancelled(cx)) sched_yield();
    VOLT_AWAIT(p->rc, volt_sleep(cx, VOLT_S(100)));
    VOLT_END(p->rc);
}
TEST_OF_THREADS(running_task_sees_cancel_without_an_await) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    int n_started = 0;
    int64_t value = 0;
    RT_SPAWN(rt, &h, spinner_run, (spinner){ .n_started = &n_started });
    UNTIL(READ(n_started));
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(value, -ECANCELED);
    destroy(rt);
}

// The rest of the poll knows what volt_is_cancelled has told an inner function.
typedef struct {
    volt_frame frame;
    volt_group *g;
    int rc;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    volt_group_cancel(a->g);
    VOLT_AWAIT(a->rc, volt_sleep(cx, 0)); // the scope is that of the poll's beginning
    CHECK_EQ(a->rc, 0);
    CHECK(volt_is_cancelled(cx));
    VOLT_END(-ECANCELED);
}
enum { ASK_DIRECTLY, ASK_WITHIN, ASK_WITH_TOKEN, ASK_IN_SELECT, ASK_IN_ARRAY, ASK_FORMS };
typedef struct {
    volt_frame frame;
    volt_group *g;
    asker inner[1];
    volt_timer limit;
    volt_token never;
    volt_token_link link;
    volt_arm arm;
    int form, rc, *seen;
} asking;
static volt_poll asking_run(volt_cx *cx, void *arg) {
    asking *a = (asking *)arg;
    VOLT_BEGIN(cx, a);
    a->inner[0].g = a->g;
    if (a->form == ASK_DIRECTLY) VOLT_AWAIT(a->rc, asker_run(cx, a->inner));
    if (a->form == ASK_WITHIN)
        VOLT_AWAIT(a->rc, volt_within(cx, &a->limit, VOLT_S(100), asker_run(cx, a->inner)));
    if (a->form == ASK_WITH_TOKEN)
        VOLT_AWAIT(a->rc, volt_with_token(cx, &a->link, &a->never, asker_run(cx, a->inner)));
    if (a->form == ASK_IN_SELECT)
        VOLT_AWAIT(a->rc, VOLT_SELECT(VOLT_ARM(&a->arm, asker_run(cx, a->inner))));
    if (a->form == ASK_IN_ARRAY)
        VOLT_AWAIT(a->rc, volt_join_any(cx, VOLT_EACH(asker_run, a->inner)));
    a->seen[0] = a->rc;
    VOLT_AWAIT(a->seen[1], volt_sleep(cx, 0));
    VOLT_END(0);
}
ROOT_TEST_ALL(cancellation_that_was_seen_lasts_to_the_end_of_the_poll, {
    volt_group g;
    int form, rc, seen[2];
}) {
    VOLT_BEGIN(cx, s);
    for (s->form = 0; s->form < ASK_FORMS; s->form++) {
        GROUP_SPAWN(&s->g, asking_run,
                    ((asking){ .g = &s->g, .form = s->form, .seen = s->seen }));
        VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
        CHECK_EQ(s->seen[0], -ECANCELED);
        CHECK_EQ(s->seen[1], -ECANCELED);
    }
    VOLT_END(0);
}

// Arms and children of an array that are polled after one with an expired shield, which waits under
// a shield inside that one.
typedef struct {
    volt_frame frame;
    volt_sem *permit;
    volt_shield outer, inner;
    int is_first, rc;
} neighbour;
static volt_poll neighbour_run(volt_cx *cx, void *arg) {
    neighbour *n = (neighbour *)arg;
    VOLT_BEGIN(cx, n);
    if (n->is_first) {
        volt_shield_begin(cx, &n->outer, VOLT_MS(1));
        VOLT_AWAIT(n->rc, volt_sleep(cx, VOLT_S(100)));
        CHECK_EQ(n->rc, -ECANCELED);
        volt_shield_begin(cx, &n->inner, VOLT_NEVER);
        VOLT_AWAIT(n->rc, volt_sem_acquire(cx, n->permit, 1));
        CHECK_EQ(n->rc, 0);
        VOLT_RETURN(0);
    }
    VOLT_AWAIT(n->rc, volt_sleep(cx, VOLT_MS(3)));
    CHECK_EQ(n->rc, 0);
    CHECK_EQ(volt_sem_release(n->permit, 1), 0);
    VOLT_END(n->rc);
}
ROOT_TEST_1(expired_shield_of_a_pending_arm_cancels_no_other, {
    volt_sem permit;
    volt_arm arm[2];
    neighbour n[2];
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) s->n[i] = (neighbour){ .permit = &s->permit, .is_first = i == 0 };
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], neighbour_run(cx, &s->n[0])),
                             VOLT_ARM(&s->arm[1], neighbour_run(cx, &s->n[1]))));
    CHECK(s->arm[0].value == 0 && s->arm[1].value == 0);
    for (int i = 0; i < 2; i++) s->n[i] = (neighbour){ .permit = &s->permit, .is_first = i == 0 };
    VOLT_AWAIT(s->rc, volt_join_all(cx, VOLT_EACH(neighbour_run, s->n)));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// Each kind of wait gives -ECANCELED, again and again, and consumes nothing.
typedef struct {
    volt_frame frame;
    volt_token cancelled, never;
    volt_interval ticks;
    volt_group group;
    volt_handle h;
    volt_timer timer;
    volt_token_link link;
    volt_arm arm;
    volt_shield shield;
    napper nap;
    int round, rc, pipe[2];
    char byte;
} stubborn;
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *b = arg;
    VOLT_BEGIN(cx, b);
    CHECK_EQ(pipe(b->pipe), 0);
    CHECK_EQ(write(b->pipe[1], "x", 1), 1);
    volt_token_cancel(&b->cancelled);
    volt_interval_init(&b->ticks, VOLT_MS(1));
    SPAWN(&b->h, giver_run, (giver){ .value = 3 });
    VOLT_AWAIT(b->rc, volt_token_wait(cx, &b->never));
    for (b->round = 0; b->round < 3; b->round++) {
        CHECK(volt_is_cancelled(cx));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_token_wait(cx, &b->cancelled)); // would be ready
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_S(100)));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_sleep(cx, 0));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_yield(cx));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_sleep_forever(cx));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_interval_next(cx, &b->ticks));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_read(cx, b->pipe[0], &b->byte, 1));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_readable(cx, b->pipe[0]));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_write(cx, b->pipe[1], "y", 1));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, volt_join(cx, &b->h));
        CHECK_EQ(b->rc, -ECANCELED);
        CHECK(volt_handle_is_set(&b->h));
        VOLT_AWAIT(b->rc, volt_within(cx, &b->timer, VOLT_S(1), volt_sleep(cx, VOLT_S(100))));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc,
                   volt_with_token(cx, &b->link, &b->cancelled, volt_sleep(cx, VOLT_S(100))));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, VOLT_SELECT(VOLT_ARM(&b->arm, volt_sleep(cx, VOLT_S(100)))));
        CHECK_EQ(b->rc, -ECANCELED);
        VOLT_AWAIT(b->rc, VOLT_JOIN_ALL(VOLT_ARM(&b->arm, volt_sleep(cx, VOLT_S(100)))));
        CHECK_EQ(b->rc, -ECANCELED);
        b->nap.d = VOLT_S(100);
        VOLT_AWAIT(b->rc, napper_run(cx, &b->nap));
        CHECK_EQ(b->rc, -ECANCELED);
    }
    CHECK(!b->never.waiters_);
    volt_shield_begin(cx, &b->shield, VOLT_NEVER);
    VOLT_AWAIT(b->rc, volt_read(cx, b->pipe[0], &b->byte, 1));
    CHECK(b->rc == 1 && b->byte == 'x'); // nothing was consumed
    VOLT_AWAIT(b->rc, volt_join(cx, &b->h));
    CHECK_EQ(b->rc, 3);
    volt_shield_end(cx, &b->shield);
    volt_close(cx, b->pipe[0]);
    volt_close(cx, b->pipe[1]);
    VOLT_END(77);
}
ROOT_TEST(cancellation_is_level_triggered, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, stubborn_run, (stubborn){ .rc = 0 });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 77);
    VOLT_END(0);
}

// Half of them end by cancellation only. A task that ends by itself gives its own result, unless
// it was cancelled before.
ROOT_TEST(tasks_cancelled_at_random_all_end, {
    volt_handle h[100];
    char is_endless[100], is_cancelled[100];
    int i, at;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 100; s->i++) {
        s->is_endless[s->i] = RANDOM_BELOW(2) == 0;
        volt_time d = (volt_time)RANDOM_BELOW(5) * VOLT_MS(1);
        SPAWN(&s->h[s->i], napper_run,
              (napper){ .d = s->is_endless[s->i] ? VOLT_NEVER : d, .value = 1 });
    }
    for (s->i = 0; s->i < 100; s->i++) {
        if (RANDOM_BELOW(3) == 0) VOLT_AWAIT(volt_yield(cx));
        s->at = (int)RANDOM_BELOW(100);
        s->is_cancelled[s->at] = 1;
        volt_cancel(&s->h[s->at]);
    }
    for (s->i = 0; s->i < 100; s->i++) // those that chance has left out
        if (s->is_endless[s->i] && !s->is_cancelled[s->i]) volt_cancel(&s->h[s->i]);
    for (s->i = 0; s->i < 100; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        if (s->is_endless[s->i]) CHECK_EQ(s->rc, -ECANCELED);
        else if (!s->is_cancelled[s->i]) CHECK_EQ(s->rc, 1);
        else CHECK(s->rc == 1 || s->rc == -ECANCELED);
    }
    VOLT_END(0);
}

// ---- shields

typedef struct {
    volt_frame frame;
    volt_shield outer, inner;
    volt_timer timer;
    volt_time at;
    napper nap;
    int rc;
} shielded;

#define SHIELD_TEST(name_)                                                                         \
    static volt_poll name_##_in_task(volt_cx *cx, void *arg);                                      \
    ROOT_TEST(name_, { volt_handle h; int rc; }) {                                                 \
        VOLT_BEGIN(cx, s);                                                                         \
        SPAWN(&s->h, name_##_in_task, (shielded){ .rc = 0 });                                      \
        volt_cancel(&s->h);                                                                        \
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));                                                   \
        CHECK_EQ(s->rc, 5);                                                                        \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    static volt_poll name_##_in_task(volt_cx *cx, void *arg)
// The tasks below are cancelled once this returns -ECANCELED.
#define UNTIL_CANCELLED(b_) VOLT_AWAIT((b_)->rc, volt_sleep(cx, VOLT_S(100)))

SHIELD_TEST(shield_lets_awaits_work) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    CHECK_EQ(b->rc, -ECANCELED);
    volt_shield_begin(cx, &b->outer, VOLT_NEVER);
    CHECK(!volt_is_cancelled(cx));
    b->at = volt_now();
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(3)));
    CHECK_EQ(b->rc, 0);
    CHECK(volt_now() - b->at >= VOLT_MS(3));
    b->nap.d = VOLT_MS(1);
    b->nap.value = 9;
    VOLT_AWAIT(b->rc, napper_run(cx, &b->nap)); // below this frame too
    CHECK_EQ(b->rc, 9);
    volt_shield_end(cx, &b->outer);
    CHECK(volt_is_cancelled(cx));
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, -ECANCELED);
    volt_shield_begin(cx, &b->outer, VOLT_NEVER); // again, with the same object
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, 0);
    volt_shield_end(cx, &b->outer);
    VOLT_END(5);
}

SHIELD_TEST(shields_nest) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    volt_shield_begin(cx, &b->outer, VOLT_NEVER);
    volt_shield_begin(cx, &b->inner, VOLT_NEVER);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, 0);
    volt_shield_end(cx, &b->inner);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, 0);
    volt_shield_end(cx, &b->outer);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, -ECANCELED);
    VOLT_END(5);
}

SHIELD_TEST(shield_is_bounded) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    b->at = volt_now();
    volt_shield_begin(cx, &b->outer, VOLT_MS(10));
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK(b->rc == 0 || volt_now() - b->at >= VOLT_MS(10));
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(b->rc, -ECANCELED);
    CHECK(volt_now() - b->at >= VOLT_MS(10));
    CHECK(volt_is_cancelled(cx));
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, -ECANCELED); // until the shield ends
    volt_shield_end(cx, &b->outer);
    VOLT_END(5);
}

SHIELD_TEST(inner_bound_does_not_end_the_outer_shield) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    volt_shield_begin(cx, &b->outer, VOLT_NEVER);
    volt_shield_begin(cx, &b->inner, VOLT_MS(2));
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(b->rc, -ECANCELED);
    volt_shield_end(cx, &b->inner);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(2)));
    CHECK_EQ(b->rc, 0);
    volt_shield_end(cx, &b->outer);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(2)));
    CHECK_EQ(b->rc, -ECANCELED);
    VOLT_END(5);
}

SHIELD_TEST(outer_bound_waits_for_the_inner_shield) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    b->at = volt_now();
    volt_shield_begin(cx, &b->outer, VOLT_MS(2));
    VOLT_AWAIT(b->rc, volt_yield(cx));
    CHECK(b->rc == 0 || volt_now() - b->at >= VOLT_MS(2));
    volt_shield_begin(cx, &b->inner, VOLT_NEVER);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(10)));
    CHECK_EQ(b->rc, 0);
    volt_shield_end(cx, &b->inner);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(b->rc, -ECANCELED);
    volt_shield_end(cx, &b->outer);
    VOLT_END(5);
}

SHIELD_TEST(timeouts_work_under_a_shield) {
    shielded *b = arg;
    VOLT_BEGIN(cx, b);
    UNTIL_CANCELLED(b);
    volt_shield_begin(cx, &b->outer, VOLT_NEVER);
    VOLT_AWAIT(b->rc, volt_within(cx, &b->timer, VOLT_MS(2), volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(b->rc, -ETIMEDOUT);
    b->nap.d = VOLT_S(100);
    VOLT_AWAIT(b->rc, volt_within(cx, &b->timer, VOLT_MS(2), napper_run(cx, &b->nap)));
    CHECK_EQ(b->rc, -ETIMEDOUT);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(b->rc, 0);
    VOLT_END(5); // ends the shield too
}

typedef struct {
    volt_frame frame;
    volt_shield shield;
    int rc, leaves_early;
} careless;
static volt_poll careless_run(volt_cx *cx, void *arg) {
    careless *c = arg;
    VOLT_BEGIN(cx, c);
    volt_shield_begin(cx, &c->shield, VOLT_S(100));
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(c->rc, 0);
    if (c->leaves_early) VOLT_RETURN(1);
    VOLT_END(2);
}
typedef struct {
    volt_frame frame;
    careless child;
    int rc;
} parent_of_careless;
static volt_poll parent_of_careless_run(volt_cx *cx, void *arg) {
    parent_of_careless *p = arg;
    VOLT_BEGIN(cx, p);
    UNTIL_CANCELLED(p);
    for (p->child.leaves_early = 0; p->child.leaves_early < 2; p->child.leaves_early++) {
        VOLT_AWAIT(p->rc, careless_run(cx, &p->child));
        CHECK_EQ(p->rc, p->child.leaves_early ? 1 : 2);
        CHECK(volt_is_cancelled(cx)); // the child's shield ended with it
        VOLT_AWAIT(p->rc, volt_sleep(cx, VOLT_MS(1)));
        CHECK_EQ(p->rc, -ECANCELED);
    }
    VOLT_END(5);
}
ROOT_TEST(returning_ends_a_shield, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, parent_of_careless_run, (parent_of_careless){ .rc = 0 });
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    VOLT_END(0);
}

// The bound cancels also where nothing else does; behind the shield all is as before.
ROOT_TEST(shield_bound_cancels_task_that_is_not_cancelled,
          { volt_shield shield; volt_time at; int rc; }) {
    VOLT_BEGIN(cx, s);
    s->at = volt_now();
    volt_shield_begin(cx, &s->shield, VOLT_MS(5));
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK(volt_now() - s->at >= VOLT_MS(5));
    volt_shield_end(cx, &s->shield);
    CHECK(!volt_is_cancelled(cx));
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- yield, budget

// No more than the smallest ring holds: an overflow goes through the injector, out of order.
enum { YIELDERS = 3, ROUNDS = 60 };
typedef struct {
    volt_frame frame;
    int id, i;
    int *order, *n;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    VOLT_BEGIN(cx, y);
    for (y->i = 0; y->i < ROUNDS; y->i++) {
        y->order[(*y->n)++] = y->id;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
ROOT_TEST_1(yield_goes_behind_the_queue, {
    volt_handle h[YIELDERS];
    int i, n, order[YIELDERS * ROUNDS];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < YIELDERS; s->i++)
        SPAWN(&s->h[s->i], yielder_run, (yielder){ .id = s->i, .order = s->order, .n = &s->n });
    for (s->i = 0; s->i < YIELDERS; s->i++) VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
    CHECK_EQ(s->n, YIELDERS * ROUNDS);
    // strict rotation: no task runs twice before each of the others has run
    for (int i = YIELDERS; i < s->n; i++) CHECK_EQ(s->order[i], s->order[i - YIELDERS]);
    VOLT_END(0);
}

// Every await of it is ready at once, each time.
typedef struct {
    volt_frame frame;
    volt_token done;
    int *stop, *n_polls;
    int rc, ignores_cancel;
} greedy;
static volt_poll greedy_run(volt_cx *cx, void *arg) {
    greedy *g = arg;
    VOLT_BEGIN(cx, g);
    volt_token_cancel(&g->done);
    while (!READ(*g->stop)) {
        VOLT_AWAIT(g->rc, volt_token_wait(cx, &g->done));
        COUNT(*g->n_polls);
        CHECK(g->rc == 0 || (g->ignores_cancel && g->rc == -ECANCELED));
    }
    VOLT_END(0);
}
ROOT_TEST_1(budget_keeps_greedy_task_from_starving_tasks_and_timers, {
    volt_handle h;
    int stop, n_polls, rc, i;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, greedy_run, (greedy){ .stop = &s->stop, .n_polls = &s->n_polls });
    for (s->i = 0; s->i < 10; s->i++) VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(2))); // timers are served too
    CHECK_EQ(s->rc, 0);
    CHECK(READ(s->n_polls) > 0);
    WRITE(s->stop, 1);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    VOLT_END(0);
}
// The budget is that of the task, and an arm that is always ready uses it up in each poll.
typedef struct {
    volt_frame frame;
    volt_token *done;
    int *stop;
    int64_t rc;
} eager;
static volt_poll eager_run(volt_cx *cx, void *arg) {
    eager *e = (eager *)arg;
    VOLT_BEGIN(cx, e);
    do VOLT_AWAIT(e->rc, volt_token_wait(cx, e->done));
    while (e->rc == 0 && !*e->stop);
    VOLT_END(e->rc);
}
typedef struct {
    volt_frame frame;
    volt_timer limit;
    int *stop;
    int64_t rc;
} patient;
static volt_poll patient_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_within(cx, &p->limit, VOLT_MS(1), volt_sleep_forever(cx)));
    *p->stop = 1;
    VOLT_END(p->rc);
}
ROOT_TEST_1(arm_that_is_always_ready_starves_no_other, {
    volt_token done;
    eager e;
    patient p;
    volt_arm a, b;
    int stop, i;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    for (s->i = 0; s->i < 20; s->i++) { // whichever is polled first
        s->e = (eager){ .done = &s->done, .stop = &s->stop };
        VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, eager_run(cx, &s->e)),
                                      VOLT_ARM(&s->b, volt_sleep(cx, VOLT_MS(1)))));
        CHECK(s->b.fired && !s->a.fired);
    }
    s->e = (eager){ .done = &s->done, .stop = &s->stop };
    s->p = (patient){ .stop = &s->stop };
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->a, eager_run(cx, &s->e)),
                                    VOLT_ARM(&s->b, patient_run(cx, &s->p))));
    CHECK_EQ(s->b.value, -ETIMEDOUT);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int is_eager, *stop;
    eager e;
    patient p;
    int64_t rc;
} one_of_two;
static volt_poll one_of_two_run(volt_cx *cx, void *arg) {
    one_of_two *o = (one_of_two *)arg;
    VOLT_BEGIN(cx, o);
    if (o->is_eager) VOLT_AWAIT(o->rc, eager_run(cx, &o->e));
    else VOLT_AWAIT(o->rc, patient_run(cx, &o->p));
    VOLT_END(o->rc);
}
ROOT_TEST_1(child_that_is_always_ready_starves_no_other, {
    volt_token done;
    one_of_two child[2];
    int stop;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    s->child[0] = (one_of_two){ .is_eager = 1, .e = { .done = &s->done, .stop = &s->stop } };
    s->child[1] = (one_of_two){ .p = { .stop = &s->stop } };
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(one_of_two_run, s->child)));
    CHECK_EQ(s->child[1].rc, -ETIMEDOUT);
    VOLT_END(0);
}
// An await of arms or children charges no unit, and each arm and child has one: a loop of such
// awaits ends its poll all the same. LAST_IS_DONE: the last arm or child does not wait.
enum { SELECTS, JOINS, JOIN_LAST_IS_DONE, ARRAYS, ARRAY_LAST_IS_DONE, TRIES, FIRSTS, NESTED };
enum { N_LOOPS = NESTED + 1, MANY_ROUNDS = 2000 };
typedef struct {
    volt_frame frame;
    volt_token *done;
    int64_t rc;
} ready_once;
static volt_poll ready_once_run(volt_cx *cx, void *arg) {
    ready_once *r = (ready_once *)arg;
    VOLT_BEGIN(cx, r);
    if (r->done) VOLT_AWAIT(r->rc, volt_token_wait(cx, r->done));
    VOLT_END(r->rc);
}
typedef struct {
    volt_frame frame;
    volt_token *done;
    volt_arm a, b;
    ready_once child[2];
    int kind, *n_rounds;
    int64_t rc;
} looper;
#define IS_DONE volt_token_wait(cx, l->done)
static volt_poll looper_run(volt_cx *cx, void *arg) {
    looper *l = (looper *)arg;
    VOLT_BEGIN(cx, l);
    for (l->rc = 0; l->rc >= 0 && *l->n_rounds < MANY_ROUNDS; ++*l->n_rounds) {
        for (int i = 0; i < 2; i++) l->child[i] = (ready_once){ .done = l->done };
        if (l->kind == JOIN_LAST_IS_DONE || l->kind == ARRAY_LAST_IS_DONE) l->child[1].done = NULL;
        if (l->kind == SELECTS || l->kind == NESTED)
            VOLT_AWAIT(l->rc, VOLT_SELECT(VOLT_ARM(&l->a, IS_DONE),
                                          VOLT_ARM(&l->b, volt_sleep_forever(cx))));
        if (l->kind == JOINS)
            VOLT_AWAIT(l->rc, VOLT_JOIN_ALL(VOLT_ARM(&l->a, IS_DONE), VOLT_ARM(&l->b, IS_DONE)));
        if (l->kind == JOIN_LAST_IS_DONE)
            VOLT_AWAIT(l->rc, VOLT_JOIN_ALL(VOLT_ARM(&l->a, IS_DONE),
                                            VOLT_ARM(&l->b, ready_once_run(cx, &l->child[1]))));
        if (l->kind == ARRAYS || l->kind == ARRAY_LAST_IS_DONE)
            VOLT_AWAIT(l->rc, volt_join_all(cx, VOLT_EACH(ready_once_run, l->child)));
        if (l->kind == TRIES)
            VOLT_AWAIT(l->rc, volt_try_join_all(cx, VOLT_EACH(ready_once_run, l->child)));
        if (l->kind == FIRSTS)
            VOLT_AWAIT(l->rc, volt_join_any(cx, VOLT_EACH(ready_once_run, l->child)));
    }
    VOLT_END(l->rc);
}
typedef struct {
    volt_frame frame;
    volt_arm a, b;
    looper l[2];
    int64_t rc;
} two_loopers;
static volt_poll two_loopers_run(volt_cx *cx, void *arg) {
    two_loopers *t = (two_loopers *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, VOLT_JOIN_ALL(VOLT_ARM(&t->a, looper_run(cx, &t->l[0])),
                                    VOLT_ARM(&t->b, looper_run(cx, &t->l[1]))));
    VOLT_END(t->rc);
}
ROOT_TEST_1(loop_of_awaits_of_arms_or_children_ends_its_poll, {
    volt_token done;
    volt_handle h;
    int kind, n_rounds;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    for (s->kind = 0; s->kind < N_LOOPS; s->kind++) {
        looper l = { .done = &s->done, .kind = s->kind, .n_rounds = &s->n_rounds };
        s->n_rounds = 0;
        if (s->kind != NESTED) SPAWN(&s->h, looper_run, l);
        else SPAWN(&s->h, two_loopers_run, ((two_loopers){ .l = { l, l } }));
        VOLT_AWAIT(volt_yield(cx));
        CHECK(s->n_rounds > 0 && s->n_rounds < MANY_ROUNDS); // it was polled once
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK(s->n_rounds < MANY_ROUNDS);
    }
    VOLT_END(0);
}
// A time limit around such a loop ends it.
ROOT_TEST_1(loop_of_selects_is_timed_out, {
    volt_token done;
    volt_timer t;
    looper l;
    int n_rounds;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    s->l = (looper){ .done = &s->done, .n_rounds = &s->n_rounds };
    s->n_rounds = INT_MIN; // enough for the whole time
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), looper_run(cx, &s->l)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_END(0);
}
// Each of them spends a few units: the task does not ignore its cancellation.
enum { MANY_CHILDREN = 600 };
typedef struct {
    volt_frame frame;
    int64_t rc;
    int n_more;
} obedient;
static volt_poll obedient_run(volt_cx *cx, void *arg) {
    obedient *o = (obedient *)arg;
    VOLT_BEGIN(cx, o);
    do VOLT_AWAIT(o->rc, volt_sleep_forever(cx));
    while (o->n_more-- > 0);
    VOLT_END(o->rc);
}
typedef struct {
    volt_frame frame;
    obedient child[MANY_CHILDREN];
    int64_t rc;
} parent_of_many;
static volt_poll parent_of_many_run(volt_cx *cx, void *arg) {
    parent_of_many *p = (parent_of_many *)arg;
    VOLT_BEGIN(cx, p);
    for (int i = 0; i < MANY_CHILDREN; i++) p->child[i].n_more = 2;
    VOLT_AWAIT(p->rc, volt_join_all(cx, VOLT_EACH(obedient_run, p->child)));
    VOLT_END(p->rc);
}
ROOT_TEST_1(cancelled_children_are_not_taken_for_a_task_that_ignores_it, {
    parent_of_many many;
    volt_handle h;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, parent_of_many_run, s->many);
    for (s->i = 0; s->i < 20; s->i++) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], 0);
    VOLT_END(0);
}
// With a budget of one unit every await but the first finds it used up.
typedef struct {
    volt_frame frame;
    int64_t rc;
    int i, n;
} tidy;
static volt_poll tidy_run(volt_cx *cx, void *arg) {
    tidy *t = (tidy *)arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < t->n; t->i++) VOLT_AWAIT(t->rc, volt_sleep_forever(cx));
    VOLT_END(t->rc);
}
TEST(few_awaits_with_a_small_budget_do_not_ignore_a_cancellation) {
    volt_config c = test_config(1);
    volt_handle h = { 0 };
    volt_rt *rt = NULL;
    c.budget = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, &h, tidy_run, (tidy){ .n = 10 });
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], 0);
    destroy(rt);
}
// One slot serves all of these tasks, none of which spends much.
ROOT_TEST_1(cancelled_awaits_of_several_tasks_are_not_added_up, {
    volt_handle h;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 100; s->i++) {
        SPAWN(&s->h, tidy_run, (tidy){ .n = 150 });
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    }
    CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], 0);
    VOLT_END(0);
}
// They take turns, and two spend their budgets in the await of another function each time.
typedef struct {
    volt_frame frame;
    obedient child[3];
    int *stop;
} deaf;
static volt_poll deaf_run(volt_cx *cx, void *arg) {
    deaf *d = (deaf *)arg;
    VOLT_BEGIN(cx, d);
    while (!*d->stop) {
        VOLT_AWAIT(obedient_run(cx, &d->child[0]));
        VOLT_AWAIT(obedient_run(cx, &d->child[1]));
        VOLT_AWAIT(obedient_run(cx, &d->child[2]));
    }
    VOLT_END(0);
}
ROOT_TEST_1(each_task_that_ignores_cancel_is_logged, {
    volt_handle h[4];
    int stop, n_polls, rc, i;
}) {
    VOLT_BEGIN(cx, s);
    test_log.n[VOLT_LOG_IGNORES_CANCEL] = 0;
    for (int i = 0; i < 2; i++) {
        SPAWN(&s->h[i], deaf_run, (deaf){ .stop = &s->stop });
        SPAWN(&s->h[2 + i], greedy_run, (greedy){ .stop = &s->stop, .n_polls = &s->n_polls,
              .ignores_cancel = 1 });
    }
    for (int i = 0; i < 4; i++) volt_cancel(&s->h[i]);
    while (test_log.n[VOLT_LOG_IGNORES_CANCEL] < 4) VOLT_AWAIT(volt_yield(cx));
    WRITE(s->stop, 1);
    for (s->i = 0; s->i < 4; s->i++) VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
    CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], 4);
    VOLT_END(0);
}
ROOT_TEST_1(task_that_ignores_cancel_is_logged_and_starves_no_other,
            { volt_handle h; int stop, n_polls, rc, i; }) {
    VOLT_BEGIN(cx, s);
    test_log.n[VOLT_LOG_IGNORES_CANCEL] = 0;
    SPAWN(&s->h, greedy_run, (greedy){ .stop = &s->stop, .n_polls = &s->n_polls,
          .ignores_cancel = 1 });
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(2)));
    while (test_log.n[VOLT_LOG_IGNORES_CANCEL] == 0) VOLT_AWAIT(volt_yield(cx));
    WRITE(s->stop, 1);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- wakers

typedef struct {
    volt_waker waker;
    int has_waker, is_set, n_polls;
} flag;
// A poll by hand: it must expect to be polled for no reason.
static volt_poll flag_wait(volt_cx *cx, flag *f) {
    f->n_polls++;
    if (READ(f->is_set)) return volt_ready(0);
    if (volt_is_cancelled(cx)) return volt_ready(-ECANCELED);
    if (!f->has_waker) {
        f->waker = volt_waker_retain(cx);
        WRITE(f->has_waker, 1);
    }
    return READ(f->is_set) ? volt_ready(0) : volt_pending();
}
static void *set_flag(void *arg) {
    flag *f = arg;
    UNTIL(READ(f->has_waker));
    volt_wake(f->waker); // spurious
    WRITE(f->is_set, 1);
    volt_wake(f->waker);
    volt_wake(f->waker);
    volt_waker_release(f->waker);
    return NULL;
}
typedef struct {
    volt_frame frame;
    flag *f;
    int rc;
} flag_task;
static volt_poll flag_task_run(volt_cx *cx, void *arg) {
    flag_task *t = arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, flag_wait(cx, t->f));
    VOLT_END(t->rc);
}
static void start_flag_task(volt_rt *rt, volt_handle *h, flag *f) {
    RT_SPAWN(rt, h, flag_task_run, (flag_task){ .f = f });
}
TEST_OF_THREADS(waker_wakes_task_from_foreign_thread) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        for (int round = 0; round < 200; round++) {
            flag f = { .n_polls = 0 };
            volt_handle h = { NULL };
            int64_t value = -1;
            pthread_t t = start_thread(set_flag, &f);
            start_flag_task(rt, &h, &f);
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
            CHECK_EQ(value, 0);
            join_thread(t);
        }
        destroy(rt);
    }
}

// The waker outlives the task: a wake does nothing, and the runtime cannot be destroyed before.
TEST_OF_THREADS(waker_outlives_its_task_and_wakes_nothing) {
    volt_rt *rt = create_on(2);
    flag f = { .n_polls = 0 };
    volt_handle h = { NULL };
    int64_t value;
    start_flag_task(rt, &h, &f);
    UNTIL(READ(f.has_waker));
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(value, -ECANCELED);
    int n_polls = f.n_polls;
    volt_wake(f.waker);
    volt_wake(f.waker);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt_wake(f.waker);
    CHECK_EQ(f.n_polls, n_polls);
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    volt_waker_release(f.waker);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}

// A foreign thread and a task hand a ball to and fro: if one wake-up is lost, both stop.
enum { VOLLEYS = 3000 };
typedef struct {
    volt_waker waker;
    int has_waker, task_turns, thread_turns;
} ball;
static volt_poll ball_comes(volt_cx *cx, ball *b, int turn) {
    if (READ(b->thread_turns) > turn) return volt_ready(0);
    if (!b->has_waker) {
        b->waker = volt_waker_retain(cx);
        WRITE(b->has_waker, 1);
    }
    return READ(b->thread_turns) > turn ? volt_ready(0) : volt_pending();
}
typedef struct {
    volt_frame frame;
    ball *b;
    int i;
} player;
static volt_poll player_run(volt_cx *cx, void *arg) {
    player *p = arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < VOLLEYS; p->i++) {
        VOLT_AWAIT(ball_comes(cx, p->b, p->i));
        WRITE(p->b->task_turns, p->i + 1);
    }
    VOLT_END(0);
}
static void *thread_player(void *arg) {
    ball *b = arg;
    UNTIL(READ(b->has_waker));
    for (int i = 0; i < VOLLEYS; i++) {
        COUNT(b->thread_turns);
        volt_wake(b->waker);
        UNTIL(READ(b->task_turns) > i);
    }
    return NULL;
}
TEST_OF_THREADS(waker_loses_no_wake_between_task_and_thread) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        ball b = { .has_waker = 0 };
        pthread_t t = start_thread(thread_player, &b);
        player p = { .b = &b };
        CHECK_EQ(volt_block_on(rt, player_run, &p), 0);
        join_thread(t);
        volt_waker_release(b.waker);
        destroy(rt);
    }
}

// A waker used by another task of the same runtime.
typedef struct {
    volt_frame frame;
    flag *f;
    awaiter a;
} setter;
static volt_poll setter_run(volt_cx *cx, void *arg) {
    setter *t = arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(until_reaches(cx, &t->a, &t->f->has_waker, 1));
    WRITE(t->f->is_set, 1);
    volt_wake(t->f->waker);
    volt_waker_release(t->f->waker);
    VOLT_END(0);
}
ROOT_TEST(waker_wakes_task_from_another_task, { volt_handle a, b; flag f; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->a, flag_task_run, (flag_task){ .f = &s->f });
    SPAWN(&s->b, setter_run, (setter){ .f = &s->f });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->a));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->b));
    VOLT_END(0);
}

// ---- time

ROOT_TEST(sleeps_are_never_early, { volt_time at, d; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 40; s->i++) {
        s->d = VOLT_US(1) + (volt_time)RANDOM_BELOW(VOLT_MS(3));
        s->at = volt_now();
        VOLT_AWAIT(s->rc, volt_sleep(cx, s->d));
        CHECK_EQ(s->rc, 0);
        CHECK(volt_now() - s->at >= s->d);
    }
    s->at = volt_now() + VOLT_MS(4);
    VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->at));
    CHECK(s->rc == 0 && volt_now() >= s->at);
    VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->at)); // in the past
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_sleep(cx, 0));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_sleep(cx, -VOLT_S(1)));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// Deadlines that lie anywhere in the range are legal and are cancelled like others.
ROOT_TEST(sleep_of_every_length_waits_until_cancelled, { volt_handle h[64]; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 63; s->i++)
        SPAWN(&s->h[s->i], napper_run,
              (napper){ .d = s->i < 37 ? VOLT_S(1000) << (s->i % 24) : VOLT_NEVER - s->i + 37 });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    for (s->i = 0; s->i < 63; s->i++) {
        CHECK_EQ(volt_try_join(&s->h[s->i], &s->rc), -EAGAIN);
        volt_cancel(&s->h[s->i]);
    }
    for (s->i = 0; s->i < 63; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->rc, -ECANCELED);
    }
    VOLT_END(0);
}

ROOT_TEST(interval_burst_gives_every_tick_once,
          { volt_interval iv; volt_time start; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->start = volt_now();
    volt_interval_init(&s->iv, VOLT_MS(2));
    for (s->i = 1; s->i <= 20; s->i++) {
        VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
        CHECK_EQ(s->rc, 1); // one result per tick, none is early, none is lost
        CHECK(volt_now() - s->start >= VOLT_MS(2) * s->i);
        if (s->i == 5) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(9)));
    }
    VOLT_END(0);
}
ROOT_TEST(interval_delay_never_gives_two_ticks_at_once,
          { volt_interval iv; volt_time before, asked; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_interval_init(&s->iv, VOLT_MS(3));
    s->iv.missed = VOLT_MISSED_DELAY;
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(10))); // three ticks are missed: one result
    for (s->i = 0; s->i < 4; s->i++) {
        s->before = s->asked;
        s->asked = volt_now();
        VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
        CHECK(s->rc >= 1);
        CHECK(s->i == 0 || volt_now() - s->before >= VOLT_MS(3)); // never two at once
    }
    VOLT_END(0);
}
ROOT_TEST(interval_skip_counts_missed_ticks_and_keeps_phase,
          { volt_interval iv; volt_time start; int64_t n, rc; }) {
    VOLT_BEGIN(cx, s);
    s->start = volt_now();
    volt_interval_init(&s->iv, VOLT_MS(2));
    s->iv.missed = VOLT_MISSED_SKIP;
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(11)));
    VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
    CHECK(s->rc >= 5); // all that were missed, in one result
    s->n = s->rc;
    while (s->n < 12) {
        VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
        CHECK(s->rc >= 1);
        s->n += s->rc;
        CHECK(volt_now() - s->start >= VOLT_MS(2) * s->n); // the phase stays
    }
    VOLT_END(0);
}

// ---- tokens

ROOT_TEST(token_cancel_reaches_descendants_only, {
    volt_token root, child, grandchild, other;
    volt_handle h[4];
    int64_t rc;
    int n_started;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_init(&s->child, &s->root);
    volt_token_init(&s->grandchild, &s->child);
    volt_token_init(&s->other, &s->root);
    {
        volt_token *t[] = { &s->root, &s->child, &s->grandchild, &s->other };
        for (int i = 0; i < 4; i++)
            SPAWN(&s->h[i], waiter_run, (waiter){ .token = t[i], .n_started = &s->n_started });
    }
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, 4));
    volt_token_cancel(&s->child);
    CHECK(volt_token_is_cancelled(&s->child) && volt_token_is_cancelled(&s->grandchild));
    CHECK(!volt_token_is_cancelled(&s->root) && !volt_token_is_cancelled(&s->other));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[2]));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_try_join(&s->h[0], &s->rc), -EAGAIN);
    CHECK_EQ(volt_try_join(&s->h[3], &s->rc), -EAGAIN);
    volt_token_deinit(&s->grandchild);
    volt_token_deinit(&s->child);
    volt_token_cancel(&s->root);
    volt_token_cancel(&s->root);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[3]));
    CHECK_EQ(s->rc, 0);
    volt_token_init(&s->child, &s->root); // of a cancelled one: cancelled
    CHECK(volt_token_is_cancelled(&s->child));
    VOLT_AWAIT(s->rc, volt_token_wait(cx, &s->child));
    CHECK_EQ(s->rc, 0);
    volt_token_deinit(&s->child);
    volt_token_deinit(&s->other);
    VOLT_END(0);
}

static void *cancel_token(void *arg) {
    volt_token_cancel(arg);
    return NULL;
}
TEST_OF_THREADS(token_cancelled_by_foreign_thread_wakes_every_waiter) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        for (int round = 0; round < 100; round++) {
            volt_token t;
            memset(&t, 0, sizeof t);
            volt_handle h[4];
            int64_t value = 0;
            for (int i = 0; i < 4; i++)
                RT_SPAWN(rt, &h[i], waiter_run, (waiter){ .token = &t, .value = 2 });
            pthread_t thread = start_thread(cancel_token, &t);
            for (int i = 0; i < 4; i++) {
                CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &value), 0);
                CHECK_EQ(value, 2);
            }
            join_thread(thread);
            CHECK(!t.waiters_);
        }
        destroy(rt);
    }
}

// ---- what the log tells

static volt_poll nothing_to_wait_for(volt_cx *cx) {
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
typedef struct {
    volt_frame frame;
    int rc;
} stuck;
static volt_poll stuck_run(volt_cx *cx, void *arg) {
    stuck *t = arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, nothing_to_wait_for(cx));
    VOLT_END(t->rc);
}
ROOT_TEST(task_that_nothing_can_wake_is_logged, { volt_handle h; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    test_log.n[VOLT_LOG_NEVER_WAKES] = 0;
    SPAWN(&s->h, stuck_run, (stuck){ .rc = 0 });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    while (!READ(test_log.n[VOLT_LOG_NEVER_WAKES])) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK(strstr(test_log.text[VOLT_LOG_NEVER_WAKES], "task.c"));
    VOLT_END(0);
}

ROOT_TEST_1(interval_without_a_period_gives_an_error, { volt_interval iv; int64_t n; int i; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_interval_next(cx, &s->iv)); // zeroed
    CHECK_EQ(s->n, -EINVAL);
    for (s->i = 0; s->i < 2; s->i++) {
        volt_interval_init(&s->iv, s->i ? INT64_MIN : 0);
        VOLT_AWAIT(s->n, volt_interval_next(cx, &s->iv));
        CHECK_EQ(s->n, -EINVAL);
    }
    VOLT_END(0);
}
ROOT_TEST_1(interval_reset_moves_the_next_tick, { volt_interval iv; int64_t n; }) {
    VOLT_BEGIN(cx, s);
    volt_interval_init(&s->iv, VOLT_S(1000));
    volt_interval_reset(&s->iv, volt_now());
    VOLT_AWAIT(s->n, volt_interval_next(cx, &s->iv)); // in 1000 s otherwise
    CHECK_EQ(s->n, 1);
    VOLT_END(0);
}
// Times before the clock's beginning and beyond its end.
ROOT_TEST_1(interval_stays_within_the_times_of_the_clock, { volt_interval iv; int64_t n; }) {
    VOLT_BEGIN(cx, s);
    volt_interval_init(&s->iv, 1);
    s->iv.missed = VOLT_MISSED_SKIP;
    volt_interval_reset(&s->iv, INT64_MIN);
    VOLT_AWAIT(s->n, volt_interval_next(cx, &s->iv));
    CHECK(s->n > 0);
    volt_interval_init(&s->iv, INT64_MAX);
    volt_interval_reset(&s->iv, volt_now());
    VOLT_AWAIT(s->n, volt_interval_next(cx, &s->iv));
    CHECK_EQ(s->n, 1);
    CHECK_EQ(s->iv.next_, VOLT_NEVER);
    VOLT_END(0);
}

// ---- a limit that is moved

// Resets a limit around it, or in another arm, after some polls; then goes on for some more.
typedef struct {
    volt_frame frame;
    volt_timer *limit;
    volt_time deadline;
    int before, after, value, rc, i;
} mover;
static volt_poll mover_run(volt_cx *cx, void *arg) {
    mover *m = (mover *)arg;
    VOLT_BEGIN(cx, m);
    for (m->i = 0; m->i < m->before; m->i++) VOLT_AWAIT(volt_yield(cx));
    m->rc = volt_timer_reset(cx, m->limit, m->deadline);
    CHECK_EQ(m->rc, 0);
    for (m->i = 0; m->i < m->after; m->i++) {
        VOLT_AWAIT(m->rc, volt_sleep(cx, VOLT_US(100)));
        if (m->rc < 0) VOLT_RETURN(m->rc);
    }
    if (!m->value) VOLT_AWAIT(m->value, volt_sleep_forever(cx));
    VOLT_END(m->value);
}
// The limit has expired, and its last try is made, in the poll in which another arm moves it.
typedef struct {
    volt_frame frame;
    volt_timer *limit;
    int rc;
} late_mover;
static volt_poll late_mover_run(volt_cx *cx, void *arg) {
    late_mover *m = (late_mover *)arg;
    VOLT_BEGIN(cx, m);
    while (!(m->limit->node_.resume_line_ & VOLT__WRAPPER_LAST_TRY)) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_timer_reset(cx, m->limit, VOLT_NEVER), 0);
    for (m->rc = 0; m->rc < 3; m->rc++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_timer_reset(cx, m->limit, 0), 0);
    VOLT_END(7);
}
ROOT_TEST_1(limit_is_pushed_back_behind_its_last_try, {
    volt_timer limit;
    volt_arm sleeps, moves;
    late_mover m;
}) {
    VOLT_BEGIN(cx, s);
    s->m.limit = &s->limit;
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->sleeps, volt_within(cx, &s->limit, VOLT_US(100),
                                                              volt_sleep_forever(cx))),
                             VOLT_ARM(&s->moves, late_mover_run(cx, &s->m))));
    CHECK_EQ(s->moves.value, 7); // the limit was not over before
    CHECK_EQ(s->sleeps.value, -ETIMEDOUT);
    VOLT_END(0);
}
// before 0: in its first poll, 1: later; also if the first limit has expired by then.
ROOT_TEST_1(limit_is_pushed_back_by_its_inner_function,
            { volt_timer limit; mover m; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 8; s->i++) {
        s->m = (mover){ .limit = &s->limit, .before = s->i & 1, .after = 3, .value = 7 };
        s->m.deadline = s->i & 2 ? VOLT_NEVER : volt_now() + VOLT_S(1000);
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, s->i & 4 ? VOLT_S(1000) : 0,
                                      mover_run(cx, &s->m)));
        CHECK_EQ(s->rc, 7);
        CHECK(!volt_timer_fired(&s->limit));
    }
    VOLT_END(0);
}
ROOT_TEST_1(limit_is_brought_forward_by_its_inner_function,
            { volt_timer limit; mover m; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 8; s->i++) {
        s->m = (mover){ .limit = &s->limit, .before = s->i & 1 };
        s->m.deadline = s->i & 2 ? volt_now() + VOLT_MS(1) : 0;
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, s->i & 4 ? VOLT_S(1000) : VOLT_NEVER,
                                      mover_run(cx, &s->m)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        CHECK(volt_timer_fired(&s->limit));
    }
    VOLT_END(0);
}
// The reset holds for one await.
ROOT_TEST_1(limit_that_was_reset_is_whole_in_the_next_await,
            { volt_timer limit; mover m; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->m = (mover){ .limit = &s->limit, .deadline = VOLT_NEVER, .value = 1 };
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 0, mover_run(cx, &s->m)));
    CHECK_EQ(s->rc, 1);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1), volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_END(0);
}
ROOT_TEST_1(limit_of_one_arm_is_moved_by_another,
            { volt_timer limit; mover m; volt_arm a, b; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->m = (mover){ .limit = &s->limit, .before = 3 };
    VOLT_AWAIT(s->rc, VOLT_SELECT(
        VOLT_ARM(&s->a, volt_within(cx, &s->limit, VOLT_S(1000), volt_sleep_forever(cx))),
        VOLT_ARM(&s->b, mover_run(cx, &s->m))));
    CHECK(s->a.fired);
    CHECK_EQ(s->a.value, -ETIMEDOUT);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_timer *limit;
    int rc;
} tardy;
static volt_poll tardy_run(volt_cx *cx, void *arg) {
    tardy *t = (tardy *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, volt_sleep_forever(cx));
    CHECK_EQ(t->rc, -ECANCELED);
    CHECK_EQ(volt_timer_reset(cx, t->limit, VOLT_NEVER), -ETIMEDOUT);
    VOLT_END(t->rc);
}
ROOT_TEST_1(limit_is_not_moved_before_or_after_it_limits,
            { volt_timer limit; tardy t; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_timer_reset(cx, &s->limit, VOLT_NEVER), -EINVAL);
    s->t = (tardy){ .limit = &s->limit };
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1), tardy_run(cx, &s->t)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(volt_timer_reset(cx, &s->limit, VOLT_NEVER), -EINVAL);
    VOLT_END(0);
}

// The operation inside may give -ETIMEDOUT, too.
typedef struct {
    volt_frame frame;
    int rc;
} late_child;
static volt_poll late_child_run(volt_cx *cx, void *arg) {
    late_child *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(c->rc < 0 ? c->rc : -ETIMEDOUT);
}
ROOT_TEST_1(timer_tells_its_own_limit_from_an_error_inside, {
    late_child child;
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK(!volt_timer_fired(&s->limit));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(10), late_child_run(cx, &s->child)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(!volt_timer_fired(&s->limit));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1), volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_timer_fired(&s->limit));
    VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, volt_now() - 1, volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_timer_fired(&s->limit));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1), volt_yield(cx)));
    CHECK_EQ(s->rc, 0);
    CHECK(!volt_timer_fired(&s->limit));
    VOLT_END(0);
}
