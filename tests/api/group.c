// SPDX-License-Identifier: MIT OR 0BSD
// Groups. In a release build, where a group left open is closed instead of being a misuse.
#define VOLT_DEBUG 0
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

ROOT_TEST(group_waits_for_all, { volt_group g; int i, n_ended, rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g)); // empty
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 300; s->i++)
        GROUP_SPAWN(&s->g, napper_run, (napper){ .d = (volt_time)RANDOM_BELOW(4) * VOLT_MS(1),
                    .value = 1, .n_ended = &s->n_ended });
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(READ(s->n_ended), 300);
    CHECK(!s->g.scope_.task_); // owned by no task: another may take it
    VOLT_END(0);
}

// On one worker, so that the order of the errors is known.
ROOT_TEST_1(group_wait_gives_first_error_once, { volt_group g; volt_token t[2]; int rc; }) {
    VOLT_BEGIN(cx, s);
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 });
    GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t[0], .value = -EIO });
    GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t[1], .value = -EBADF });
    volt_token_cancel(&s->t[0]);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    volt_token_cancel(&s->t[1]);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, -EIO);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0); // since the last wait: none
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = -ENOSPC });
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, -ENOSPC);
    VOLT_END(0);
}

// Results come in the order in which the children end, whatever the order of spawning.
ROOT_TEST(group_next_follows_order_of_completion, {
    volt_group g;
    volt_token t[16];
    int i, order[16];
    uint64_t id;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    for (s->i = 0; s->i < 16; s->i++) {
        s->order[s->i] = s->i;
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t[s->i], .value = 100 + s->i });
    }
    for (int i = 15; i > 0; i--) {
        int j = (int)RANDOM_BELOW(i + 1), x = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = x;
    }
    for (s->i = 0; s->i < 16; s->i++) {
        volt_token_cancel(&s->t[s->order[s->i]]);
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
        CHECK_EQ(s->id, s->order[s->i]);
        CHECK_EQ(s->rc, 100 + s->order[s->i]);
    }
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    VOLT_END(0);
}

ROOT_TEST(group_keeps_results_until_they_are_fetched,
          { volt_group g; int i, seen[40]; uint64_t id; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    for (s->i = 0; s->i < 40; s->i++)
        GROUP_SPAWN(&s->g, giver_run, (giver){ .value = s->i % 2 ? -s->i : s->i });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(3)));
    for (s->i = 0; s->i < 40; s->i++) {
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
        CHECK(s->id < 40);
        CHECK_EQ(s->rc, s->id % 2 ? -(int64_t)s->id : (int64_t)s->id);
        CHECK_EQ(s->seen[s->id]++, 0);
    }
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    VOLT_END(0);
}

ROOT_TEST_1(group_try_next_takes_only_what_is_there,
            { volt_group g; volt_token t[2]; uint64_t id; int64_t result; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_group_try_next(cx, &s->g, NULL, NULL), -EINVAL); // it collects nothing
    volt_group_collect(&s->g);
    CHECK_EQ(volt_group_try_next(cx, &s->g, NULL, NULL), -ENOENT);
    for (s->i = 0; s->i < 2; s->i++)
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t[s->i], .value = 7 + s->i });
    CHECK_EQ(volt_group_len(&s->g), 2);
    CHECK_EQ(volt_group_try_next(cx, &s->g, &s->result, &s->id), -EAGAIN);
    volt_token_cancel(&s->t[1]);
    while (volt_group_len(&s->g) > 1) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_group_try_next(cx, &s->g, &s->result, &s->id), 0);
    CHECK_EQ(s->result, 8);
    CHECK_EQ(s->id, 1);
    CHECK_EQ(volt_group_try_next(cx, &s->g, &s->result, &s->id), -EAGAIN);
    volt_token_cancel(&s->t[0]);
    while (volt_group_len(&s->g) > 0) VOLT_AWAIT(volt_yield(cx));
    CHECK(s->g.scope_.task_); // the result is still there
    CHECK_EQ(volt_group_try_next(cx, &s->g, NULL, NULL), 0);
    CHECK_EQ(volt_group_try_next(cx, &s->g, NULL, NULL), -ENOENT);
    CHECK(!s->g.scope_.task_); // owned by no task: another may take it
    VOLT_END(0);
}
// The first error is the result, and not that of a child that it has cancelled.
ROOT_TEST(group_that_fails_together_ends_with_its_first_error,
          { volt_group g; volt_token never, now; int i, round; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_group_fail_together(&s->g);
    for (s->round = 0; s->round < 3; s->round++) { // a wait makes the group whole again
        s->now = (volt_token){ .cancelled_ = 0 };
        for (s->i = 0; s->i < 20; s->i++)
            GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->never, .value = 1 });
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->now, .value = -EIO });
        for (s->i = 0; s->i < 20; s->i++)
            GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->never, .value = 1 });
        volt_token_cancel(&s->now);
        while (volt_group_len(&s->g) > 0) VOLT_AWAIT(volt_yield(cx));
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->g, giver_run, (giver){ .value = 1 }), -ECANCELED);
        VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
        CHECK_EQ(s->rc, -EIO);
    }
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 });
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST(group_that_fails_together_may_be_closed_and_used_again,
          { volt_group g; volt_token never; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_group_fail_together(&s->g);
    GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->never, .value = 1 });
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = -ENOSPC });
    while (volt_group_len(&s->g) > 0) VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 });
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// The others run on.
ROOT_TEST(group_cancels_one_child_by_its_number,
          { volt_group g; volt_token t; int i; uint64_t id; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    CHECK_EQ(volt_group_cancel_one(&s->g, 0), -ENOENT);
    for (s->i = 0; s->i < 5; s->i++)
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t, .value = s->i });
    for (s->i = 0; s->i < 5; s->i++) VOLT_AWAIT(volt_yield(cx)); // they wait by now
    CHECK_EQ(volt_group_cancel_one(&s->g, 5), -ENOENT);
    CHECK_EQ(volt_group_cancel_one(&s->g, 3), 0);
    s->rc = volt_group_cancel_one(&s->g, 3);
    CHECK(s->rc == 0 || s->rc == -ENOENT); // it is woken, or has ended
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->id, 3);
    CHECK_EQ(volt_group_cancel_one(&s->g, 3), -ENOENT); // it has ended
    CHECK_EQ(volt_group_len(&s->g), 4);
    volt_token_cancel(&s->t);
    for (s->i = 0; s->i < 4; s->i++) {
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
        CHECK_EQ(s->rc, s->id);
    }
    VOLT_END(0);
}

// In order also where some are fetched between the ends of others.
ROOT_TEST_1(group_next_keeps_order_between_completions, {
    volt_group g;
    volt_token t[3];
    int i;
    uint64_t id;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    for (s->i = 0; s->i < 3; s->i++)
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t[s->i], .value = s->i });
    for (s->i = 0; s->i < 2; s->i++) {
        volt_token_cancel(&s->t[s->i]);
        while (s->g.n_live_ > 2 - (uint32_t)s->i) VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->id, 0);
    volt_token_cancel(&s->t[2]);
    while (s->g.n_live_ > 0) VOLT_AWAIT(volt_yield(cx));
    for (s->i = 1; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
        CHECK_EQ(s->id, s->i);
        CHECK_EQ(s->rc, s->i);
    }
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    CHECK(!s->g.scope_.task_); // owned by no task: another may take it
    VOLT_END(0);
}

// Its task waits for the members and leaves their results: they go with the task.
typedef struct {
    volt_frame frame;
    volt_group g;
    int rc;
} careless;
static volt_poll careless_run(volt_cx *cx, void *arg) {
    careless *c = arg;
    VOLT_BEGIN(cx, c);
    volt_group_collect(&c->g);
    GROUP_SPAWN(&c->g, giver_run, (giver){ .value = 1 });
    GROUP_SPAWN(&c->g, giver_run, (giver){ .value = 2 });
    VOLT_AWAIT(c->rc, volt_group_wait(cx, &c->g));
    VOLT_END(c->rc);
}
ROOT_TEST(group_results_not_fetched_are_freed_with_task, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, careless_run, (careless){ .rc = 1 });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

ROOT_TEST(group_next_needs_collect, { volt_group g; uint64_t id; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 });
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// Results that no task fetched are freed by close.
ROOT_TEST(group_close_drops_results, { volt_group g; int i; int64_t rc; uint64_t id; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    for (s->i = 0; s->i < 10; s->i++)
        GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 });
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, 1);
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    CHECK(!s->g.done_ && !s->g.done_last_);
    volt_group_collect(&s->g); // used again
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 2 });
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK(s->rc == 2 && s->id == 0);
    VOLT_END(0);
}

ROOT_TEST(group_cancel_cancels_all_children,
          { volt_group g; int i, n_ended, n_started, rc; volt_token t; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    volt_group_cancel(&s->g); // empty: nothing
    for (s->i = 0; s->i < 30; s->i++)
        GROUP_SPAWN(&s->g, waiter_run, (waiter){ .token = &s->t, .n_ended = &s->n_ended,
                    .n_started = &s->n_started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, s->i / 2));
    volt_group_cancel(&s->g);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(READ(s->n_ended), 30);
    CHECK(!s->t.waiters_);
    GROUP_SPAWN(&s->g, giver_run, (giver){ .value = 1 }); // it is not closed
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- close

typedef struct {
    volt_frame frame;
    volt_shield grace;
    volt_group *g;
    int *n_ended, *n_refused;
    int rc;
} tidy;
static volt_poll tidy_run(volt_cx *cx, void *arg) {
    tidy *t = arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(t->rc, -ECANCELED);
    if (t->g && VOLT_GROUP_SPAWN(cx, t->g, giver_run, (giver){ .value = 1 }) == -ECANCELED)
        COUNT(*t->n_refused);
    volt_shield_begin(cx, &t->grace, VOLT_NEVER);
    VOLT_AWAIT(t->rc, volt_sleep(cx, VOLT_MS(2)));
    volt_shield_end(cx, &t->grace);
    COUNT(*t->n_ended);
    VOLT_END(-ECANCELED);
}
ROOT_TEST(group_close_cancels_and_waits_for_cleanup, {
    volt_group g;
    int i, k, n_ended, n_refused, rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->k = 1; s->k <= 3; s->k++) { // reusable
        for (s->i = 0; s->i < 20; s->i++)
            GROUP_SPAWN(&s->g, tidy_run, (tidy){ .n_ended = &s->n_ended, .g = &s->g,
                        .n_refused = &s->n_refused });
        if (s->k == 2) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
        VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(READ(s->n_ended), 20 * s->k);
        CHECK_EQ(READ(s->n_refused), 20 * s->k); // no spawns while it is being closed
    }
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g)); // empty
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// In a task that is cancelled, a wait ends and leaves the children; close completes all the same.
typedef struct {
    volt_frame frame;
    volt_group g;
    volt_timer t;
    int *n_ended, *n_started;
    int rc;
} owner;
static volt_poll owner_run(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    for (int i = 0; i < 5; i++)
        GROUP_SPAWN(&o->g, tidy_run, (tidy){ .n_ended = o->n_ended });
    COUNT(*o->n_started);
    VOLT_AWAIT(o->rc, volt_within(cx, &o->t, VOLT_MS(2), volt_group_wait(cx, &o->g)));
    CHECK(o->rc == -ETIMEDOUT || o->rc == -ECANCELED);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, &o->g));
    CHECK_EQ(o->rc, -ECANCELED);
    CHECK_EQ(READ(*o->n_ended), 0); // the children went on
    VOLT_AWAIT(o->rc, volt_group_close(cx, &o->g));
    CHECK_EQ(o->rc, 0);
    CHECK_EQ(READ(*o->n_ended), 5);
    CHECK(volt_is_cancelled(cx));
    VOLT_END(6);
}
ROOT_TEST(group_close_completes_in_a_cancelled_task, {
    volt_handle h;
    int n_ended, n_started, rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, owner_run, (owner){ .n_ended = &s->n_ended, .n_started = &s->n_started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, 1));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 6);
    VOLT_END(0);
}

// A timeout around close cannot end it: it always completes.
ROOT_TEST(group_close_is_not_cancelled_by_a_timeout, {
    volt_group g;
    volt_timer t;
    int n_ended, rc;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 5; i++)
        GROUP_SPAWN(&s->g, tidy_run, (tidy){ .n_ended = &s->n_ended });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_US(1), volt_group_close(cx, &s->g)));
    CHECK_EQ(READ(s->n_ended), 5);
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- left open

typedef struct {
    volt_frame frame;
    volt_group g[2];
    int *n_ended;
} leaver;
static volt_poll leaver_run(volt_cx *cx, void *arg) {
    leaver *l = arg;
    VOLT_BEGIN(cx, l);
    for (int i = 0; i < 6; i++)
        GROUP_SPAWN(&l->g[i % 2], tidy_run, (tidy){ .n_ended = l->n_ended });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(11);
}
ROOT_TEST(group_left_open_is_closed_before_its_task_ends, { volt_handle h; int n_ended, rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, leaver_run, (leaver){ .n_ended = &s->n_ended });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 11);
    CHECK_EQ(READ(s->n_ended), 6);
    VOLT_END(0);
}

// The root of volt_run counts as a task, too.
TEST(group_left_open_by_root_is_closed) {
    EACH_WORKERS(w) {
        int n_ended = 0;
        leaver l = { .n_ended = &n_ended };
        CHECK_EQ(run_on(w, leaver_run, &l), 11);
        CHECK_EQ(n_ended, 6);
    }
}

// Groups of groups: each level owns its children.
typedef struct {
    volt_frame frame;
    volt_group g;
    int depth, rc, closes;
    int *n_ended;
} level;
static volt_poll level_run(volt_cx *cx, void *arg) {
    level *l = arg;
    VOLT_BEGIN(cx, l);
    for (int i = 0; i < 3 && l->depth > 0; i++)
        GROUP_SPAWN(&l->g, level_run, (level){ .depth = l->depth - 1, .n_ended = l->n_ended });
    if (l->depth == 0) VOLT_AWAIT(l->rc, volt_sleep(cx, VOLT_S(100)));
    else VOLT_AWAIT(l->rc, volt_group_wait(cx, &l->g));
    CHECK_EQ(l->rc, -ECANCELED);
    VOLT_AWAIT(volt_group_close(cx, &l->g));
    COUNT(*l->n_ended);
    VOLT_END(l->rc);
}
ROOT_TEST(group_close_ends_nested_groups, { volt_group g; int n_ended, rc; }) {
    VOLT_BEGIN(cx, s);
    GROUP_SPAWN(&s->g, level_run, (level){ .depth = 4, .n_ended = &s->n_ended });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(READ(s->n_ended), 1 + 3 + 9 + 27 + 81);
    VOLT_END(0);
}
#if UINTPTR_MAX > UINT32_MAX // else states are aligned to 16, and more does not compile
enum { ALIGNED_STATES = 140 };
typedef struct {
    volt_frame frame;
    volt_event *go;
    __attribute__((aligned(64))) char line[64];
} aligned_64;
typedef struct {
    volt_frame frame;
    volt_event *go;
    __attribute__((aligned(32))) char half[64];
    char more[64];
} aligned_32;
static volt_poll aligned_64_run(volt_cx *cx, void *arg) {
    aligned_64 *a = arg;
    VOLT_BEGIN(cx, a);
    CHECK_EQ((uintptr_t)a % 64, 0);
    VOLT_AWAIT(volt_event_wait(cx, a->go));
    VOLT_END(0);
}
static volt_poll aligned_32_run(volt_cx *cx, void *arg) {
    aligned_32 *a = arg;
    VOLT_BEGIN(cx, a);
    CHECK_EQ((uintptr_t)a % 32, 0);
    VOLT_AWAIT(volt_event_wait(cx, a->go));
    VOLT_END(0);
}
ROOT_TEST_1(group_keeps_the_alignment_of_its_states, { volt_group g; volt_event go; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < ALIGNED_STATES; s->i++) { // all alive at once
        aligned_64 a = { .go = &s->go };
        aligned_32 b = { .go = &s->go };
        GROUP_SPAWN(&s->g, aligned_64_run, a);
        GROUP_SPAWN(&s->g, aligned_32_run, b);
        SPAWN(NULL, aligned_64_run, a);
        SPAWN(NULL, aligned_32_run, b);
    }
    volt_event_set(&s->go);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
#endif
