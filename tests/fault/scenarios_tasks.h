// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios without descriptors: tasks, time, groups, tokens, several waits at once.
// Each returns 0 if nothing fails; its checks hold whatever fails.
#ifndef VOLT_FAULT_SCENARIOS_TASKS_H
#define VOLT_FAULT_SCENARIOS_TASKS_H

// ---- spawning

STATE(ends_at_once, ) {
    VOLT_BEGIN(cx, s);
    VOLT_END(0);
}

// One for each size class of slabs; the largest have a slab of their own.
static const size_t spawn_sizes[] = { sizeof(giver_state), 200, 1000, 3000, 9000, 20000, 70000 };
enum { N_SIZES = sizeof spawn_sizes / sizeof spawn_sizes[0] };
static struct {
    giver_state giver;
    char more[70000];
} giver_of_any_size;
STATE(spawns_of_every_size, volt_handle h[N_SIZES]; int i; int64_t value;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < N_SIZES; s->i++) {
        giver_of_any_size.giver.value = s->i;
        s->rc = volt_spawn(cx, &s->h[s->i], giver_run, &giver_of_any_size, spawn_sizes[s->i]);
        CHECK_EQ(s->rc == 0, volt_handle_is_set(&s->h[s->i]));
        KEEP(s->rc);
    }
    for (s->i = 0; s->i < N_SIZES; s->i++) {
        if (!volt_handle_is_set(&s->h[s->i])) continue;
        VOLT_AWAIT(s->value, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->value, s->i);
    }
    VOLT_END(s->first);
}

// More than a small ring holds.
STATE(spawns_many, volt_group group; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 20; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, yielder_run, (yielder_state){ .n = 2 }));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// From a plain thread.
static int spawns_from_outside(volt_rt *rt) {
    int64_t first = 0, value = 0;
    for (int i = 0; i < 5; i++) {
        volt_handle h = { NULL };
        int rc = VOLT_RT_SPAWN(rt, &h, giver_run, (giver_state){ .value = i });
        CHECK_EQ(rc == 0, volt_handle_is_set(&h));
        first = worse(first, rc);
        if (rc < 0) continue;
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        CHECK_EQ(value, i);
    }
    return (int)first;
}

// State that is filled in place: started, or released.
STATE(creates_in_place, volt_handle h; giver_state *giver; int i; int64_t value;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->giver = volt_task_create(volt_cx_rt(cx), giver_run, sizeof *s->giver);
        KEEP(s->giver ? 0 : -ENOMEM);
        if (!s->giver) continue;
        s->giver->value = s->i;
        if (s->i == 1) {
            volt_task_destroy(s->giver);
            continue;
        }
        volt_task_start(s->giver, &s->h);
        VOLT_AWAIT(s->value, volt_join(cx, &s->h));
        CHECK_EQ(s->value, s->i);
    }
    VOLT_END(s->first);
}
static int creates_from_outside(volt_rt *rt) {
    volt_handle h = { NULL };
    int64_t value = 0;
    giver_state *a = volt_task_create(rt, giver_run, sizeof *a);
    giver_state *b = volt_task_create(rt, giver_run, 30000);
    if (a) {
        a->value = 5;
        volt_task_start(a, &h);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        CHECK_EQ(value, 5);
    }
    if (b) volt_task_destroy(b);
    return a && b ? 0 : -ENOMEM;
}

// ---- handles

STATE(joins, volt_handle h; napper_state end; int64_t value;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_SPAWN(cx, &s->h, napper_run, (napper_state){ .d = VOLT_US(300) }));
    if (s->first < 0) VOLT_RETURN(s->first);
    CHECK_EQ(volt_try_join(&s->h, &s->value), -EAGAIN);
    KEEP_AWAIT(volt_join_state(cx, &s->h, &s->end, sizeof s->end));
    CHECK_EQ(s->end.d, VOLT_US(300));
    CHECK(!volt_handle_is_set(&s->h));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EINVAL);
    KEEP(VOLT_SPAWN(cx, &s->h, giver_run, (giver_state){ .value = 3 }));
    volt_detach(&s->h);
    volt_detach(&s->h);
    VOLT_END(s->first);
}

// The first limit passes before the task ends.
static int joins_with_a_limit(volt_rt *rt) {
    volt_handle h = { NULL };
    int64_t value = 1;
    int rc = VOLT_RT_SPAWN(rt, &h, napper_run, (napper_state){ .d = VOLT_MS(3) });
    if (rc < 0) return rc;
    rc = volt_join_sync(&h, VOLT_US(200), &value);
    if (rc == 0) return 0; // this thread was slow
    CHECK_EQ(rc, -ETIMEDOUT);
    rc = volt_join_sync(&h, FAR_AWAY, &value);
    if (rc < 0) CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(value, 0);
    CHECK_EQ(volt_join_sync(&h, 0, &value), -EINVAL);
    return rc;
}

// Whatever the tasks wait for.
STATE(cancels, volt_handle h[4]; volt_token token; int i; int64_t value;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_SPAWN(cx, &s->h[0], napper_run, (napper_state){ .d = FAR_AWAY }));
    KEEP(VOLT_SPAWN(cx, &s->h[1], waiter_run, (waiter_state){ .token = &s->token }));
    KEEP(VOLT_SPAWN(cx, &s->h[2], napper_run, (napper_state){ .d = VOLT_NEVER }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    KEEP(VOLT_SPAWN(cx, &s->h[3], napper_run, (napper_state){ .d = FAR_AWAY }));
    for (s->i = 0; s->i < 4; s->i++) {
        if (!volt_handle_is_set(&s->h[s->i])) continue;
        volt_cancel(&s->h[s->i]);
        VOLT_AWAIT(s->value, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->value, -ECANCELED);
    }
    VOLT_END(s->first);
}

STATE(yields, volt_handle h[2]; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++)
        KEEP(VOLT_SPAWN(cx, &s->h[s->i], yielder_run, (yielder_state){ .n = 20 }));
    for (s->i = 0; s->i < 2; s->i++)
        if (volt_handle_is_set(&s->h[s->i])) KEEP_AWAIT(volt_join(cx, &s->h[s->i]));
    VOLT_END(s->first);
}

// A waker held by a thread of the application.
typedef struct doorbell {
    int is_set, is_out; // the waker is out; the bell was rung
    volt_waker waker;
} doorbell;
typedef struct {
    volt_frame frame;
    doorbell *bell;
} listener_state;
static volt_poll listener_run(volt_cx *cx, void *arg) {
    doorbell *b = ((listener_state *)arg)->bell;
    if (get(&b->is_set)) return volt_ready(0);
    if (!get(&b->is_out)) {
        b->waker = volt_waker_retain(cx);
        set(&b->is_out, 1);
    }
    return volt_pending();
}
static void *ring(void *arg) {
    doorbell *b = (doorbell *)arg;
    while (!get(&b->is_out)) sched_yield();
    volt_wake(b->waker); // no effect
    set(&b->is_set, 1);
    volt_wake(b->waker);
    volt_waker_release(b->waker);
    return NULL;
}
static int wakes_from_a_thread(volt_rt *rt) {
    doorbell bell = { 0 };
    volt_handle h = { NULL };
    pthread_t t;
    int64_t value = 1;
    int rc = VOLT_RT_SPAWN(rt, &h, listener_run, (listener_state){ .bell = &bell });
    if (rc < 0) return rc;
    CHECK_EQ(pthread_create(&t, NULL, ring, &bell), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return (int)value;
}

// ---- time

STATE(sleeps, volt_time start; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->start = volt_now();
        KEEP_AWAIT(volt_sleep(cx, VOLT_US(300)));
        if (inject.f.effect != DIP) CHECK(volt_now() - s->start >= VOLT_US(300));
    }
    KEEP_AWAIT(volt_sleep_until(cx, volt_now() + VOLT_MS(1)));
    KEEP_AWAIT(volt_sleep(cx, 0));
    VOLT_END(s->first);
}

// The time limit passes; a value wins; a child cleans up first.
STATE(withins, volt_timer timer; napper_state child; volt_time due;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_MS(1), volt_sleep(cx, FAR_AWAY)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    s->child.d = VOLT_US(200);
    KEEP_AWAIT(volt_within(cx, &s->timer, FAR_AWAY, napper_run(cx, &s->child)));
    s->child.d = FAR_AWAY;
    s->due = volt_now() + VOLT_MS(1);
    VOLT_AWAIT(s->rc, volt_before(cx, &s->timer, s->due, napper_run(cx, &s->child)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(volt_result(&s->child.frame), -ECANCELED);
    VOLT_END(s->first);
}

// When cancelled, it sleeps under a shield, then exceeds the bound of another.
STATE(shielded, volt_shield free, bound; volt_time most; int *n_started; int inner;) {
    VOLT_BEGIN(cx, s);
    add(s->n_started, 1);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_NEVER));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_shield_begin(cx, &s->free, VOLT_NEVER);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(s->rc, 0);
    volt_shield_begin(cx, &s->bound, VOLT_MS(1));
    VOLT_AWAIT(s->inner, volt_sleep(cx, VOLT_NEVER));
    CHECK_EQ(s->inner, -ECANCELED);
    volt_shield_end(cx, &s->bound);
    volt_shield_end(cx, &s->free);
    VOLT_AWAIT(s->rc, volt_sleep(cx, 0));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(7);
}
STATE(shields, volt_handle h; int n_started; int64_t value;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_SPAWN(cx, &s->h, shielded_run, (shielded_state){ .n_started = &s->n_started }));
    if (s->first < 0) VOLT_RETURN(s->first);
    while (!get(&s->n_started)) VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->value, volt_join(cx, &s->h));
    CHECK_EQ(s->value, 7);
    VOLT_END(s->first);
}

STATE(intervals, volt_interval iv; int mode, i;) {
    VOLT_BEGIN(cx, s);
    for (s->mode = VOLT_MISSED_BURST; s->mode <= VOLT_MISSED_SKIP; s->mode++) {
        volt_interval_init(&s->iv, VOLT_MS(1));
        s->iv.missed = (volt_missed)s->mode;
        for (s->i = 0; s->i < 2; s->i++) {
            VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->iv));
            CHECK(s->rc >= 1);
        }
    }
    VOLT_END(s->first);
}

// ---- groups

STATE(group_waits, volt_group group; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 1; s->i <= 3; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, napper_run, (napper_state){ .d = VOLT_US(s->i) }));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// Every spawned child yields one result.
STATE(group_collects, volt_group group; int i, n; int64_t value; uint64_t id;) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->group);
    for (s->i = 0; s->i < 4; s->i++) {
        s->rc = VOLT_GROUP_SPAWN(cx, &s->group, giver_run, (giver_state){ .value = s->n });
        s->n += s->rc == 0;
        KEEP(s->rc);
    }
    for (; s->n > 0; s->n--) {
        VOLT_AWAIT(s->value, volt_group_next(cx, &s->group, &s->id));
        CHECK_EQ(s->value, (int64_t)s->id);
    }
    VOLT_AWAIT(s->value, volt_group_next(cx, &s->group, &s->id));
    CHECK_EQ(s->value, -ENOENT);
    VOLT_END(s->first);
}

// Cancelled by hand, then closed, then used again.
STATE(group_closes, volt_group group; volt_token token; int round;) {
    VOLT_BEGIN(cx, s);
    for (s->round = 0; s->round < 2; s->round++) {
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, waiter_run, (waiter_state){ .token = &s->token }));
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, napper_run, (napper_state){ .d = VOLT_NEVER }));
        if (s->round == 1) {
            volt_group_cancel(&s->group);
            VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->group));
        }
        KEEP_AWAIT(volt_group_close(cx, &s->group));
    }
    VOLT_END(s->first);
}

// ---- tokens

STATE(tokens, volt_token root, left, right; volt_group group; int i;) {
    VOLT_BEGIN(cx, s);
    volt_token_init(&s->left, &s->root);
    volt_token_init(&s->right, &s->root);
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, waiter_run, (waiter_state){ .token = &s->left }));
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, waiter_run, (waiter_state){ .token = &s->right }));
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, waiter_run, (waiter_state){ .token = &s->root }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    volt_token_cancel(&s->left);
    volt_token_cancel(&s->root);
    CHECK(volt_token_is_cancelled(&s->right));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    volt_token_deinit(&s->left);
    volt_token_deinit(&s->right);
    VOLT_END(s->first);
}

STATE(canceller, volt_token *token;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    volt_token_cancel(s->token);
    VOLT_END(0);
}
STATE(unlesses, volt_token token; volt_token_link link; volt_group group;) {
    VOLT_BEGIN(cx, s);
    KEEP_AWAIT(volt_with_token(cx, &s->link, &s->token, volt_sleep(cx, VOLT_US(100))));
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, canceller_run, (canceller_state){ .token = &s->token }));
    if (s->first < 0) VOLT_RETURN(s->first);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, &s->token, volt_sleep(cx, VOLT_NEVER)));
    CHECK_EQ(s->rc, -ECANCELED);
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// ---- several waits at once

STATE(selects, volt_arm a, b; napper_state child; volt_token token;) {
    VOLT_BEGIN(cx, s);
    s->child.d = VOLT_NEVER;
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, napper_run(cx, &s->child)),
                                  VOLT_ARM(&s->b, volt_sleep(cx, VOLT_MS(1)))));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->a.value, -ECANCELED);
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_sleep(cx, VOLT_US(200))),
                                  VOLT_ARM(&s->b, volt_token_wait(cx, &s->token))));
    CHECK_EQ(s->rc, 0);
    VOLT_END(s->first);
}

STATE(joins_arms, volt_arm a, b; napper_state child; volt_handle h;) {
    VOLT_BEGIN(cx, s);
    s->child.d = VOLT_US(200);
    KEEP(VOLT_SPAWN(cx, &s->h, giver_run, (giver_state){ .value = -EIO }));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->a, napper_run(cx, &s->child)),
                             VOLT_ARM(&s->b, volt_join(cx, &s->h))));
    CHECK_EQ(s->b.value, -EIO);
    s->child.d = VOLT_NEVER;
    KEEP(VOLT_SPAWN(cx, &s->h, giver_run, (giver_state){ .value = -EIO }));
    if (s->first < 0) VOLT_RETURN(s->first);
    VOLT_AWAIT(s->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&s->a, napper_run(cx, &s->child)),
                                        VOLT_ARM(&s->b, volt_join(cx, &s->h))));
    CHECK_EQ(s->rc, -EIO);
    VOLT_END(s->first);
}

STATE(joins_arrays, napper_state naps[3];) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 3; i++) s->naps[i].d = VOLT_US(100 * (i + 1));
    KEEP_AWAIT(volt_join_all(cx, VOLT_EACH(napper_run, s->naps)));
    KEEP_AWAIT(volt_try_join_all(cx, VOLT_EACH(napper_run, s->naps)));
    for (int i = 0; i < 3; i++) s->naps[i].d = i == 1 ? VOLT_US(100) : VOLT_NEVER;
    VOLT_AWAIT(s->rc, volt_join_any(cx, VOLT_EACH(napper_run, s->naps)));
    CHECK_EQ(s->rc, 1);
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_TASKS_H
