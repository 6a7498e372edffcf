// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios that are programs of their own: defaults, several runtimes, the end of a runtime.
#ifndef VOLT_FAULT_SCENARIOS_WHOLE_H
#define VOLT_FAULT_SCENARIOS_WHOLE_H

// A runtime that the scenario must end; negative: the error.
static int open_rt(uint32_t workers, volt_rt **rt) {
    volt_config c = config(workers);
    int rc = volt_create(&c, rt);
    CHECK((rc == 0) == (*rt != NULL));
    return rc;
}
static void close_rt(volt_rt *rt) {
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}

// Memory from the kernel, the number of workers from the machine, the seed from its randomness.
STATE(defaults_root, volt_group group; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, napper_run, (napper_state){ .d = VOLT_US(100) }));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}
static int defaults(void) {
    static defaults_root_state root;
    memset(&root, 0, sizeof root);
    return volt_run(NULL, defaults_root_run, &root);
}
static int defaults_of_one(void) {
    static defaults_root_state root;
    volt_config c = { .workers = 1 };
    memset(&root, 0, sizeof root);
    return volt_run(&c, defaults_root_run, &root);
}

// Tasks of one runtime start and cancel tasks of another.
STATE(abroad, volt_rt *other; volt_handle h[2]; int i; int64_t value;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_RT_SPAWN(s->other, &s->h[0], giver_run, (giver_state){ .value = 1 }));
    KEEP(VOLT_RT_SPAWN(s->other, &s->h[1], napper_run, (napper_state){ .d = VOLT_NEVER }));
    for (s->i = 0; s->i < 2; s->i++) {
        if (!volt_handle_is_set(&s->h[s->i])) continue;
        if (s->i == 1) volt_cancel(&s->h[s->i]);
        VOLT_AWAIT(s->value, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->value, s->i == 0 ? 1 : -ECANCELED);
    }
    VOLT_END(s->first);
}
static int two_runtimes(void) {
    volt_rt *a = NULL, *b = NULL;
    static abroad_state root;
    int rc = open_rt(1, &a);
    if (rc < 0) return rc;
    rc = open_rt(1, &b);
    if (rc == 0) {
        memset(&root, 0, sizeof root);
        root.other = b;
        rc = volt_block_on(a, abroad_run, &root);
        close_rt(b);
    }
    close_rt(a);
    return rc;
}

// Several threads block on one runtime.
typedef struct {
    volt_rt *rt;
    sleeps_state root;
    int rc;
} blocker;
static void *block(void *arg) {
    blocker *b = (blocker *)arg;
    b->rc = volt_block_on(b->rt, sleeps_run, &b->root);
    return NULL;
}
static int blocks_threads(volt_rt *rt) {
    blocker b[3];
    pthread_t t[3];
    int64_t first = 0;
    memset(b, 0, sizeof b);
    for (int i = 0; i < 3; i++) {
        b[i].rt = rt;
        CHECK_EQ(pthread_create(&t[i], NULL, block, &b[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(t[i], NULL), 0);
        first = worse(first, b[i].rc);
    }
    return (int)first;
}

// Functions that must not be called on a worker return an error.
STATE(asks_on_a_worker, giver_state giver; volt_handle h; int64_t value;) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_block_on(volt_cx_rt(cx), giver_run, &s->giver), -EDEADLK);
    CHECK_EQ(volt_run(NULL, giver_run, &s->giver), -EDEADLK);
    KEEP(VOLT_SPAWN(cx, &s->h, giver_run, (giver_state){ .value = 1 }));
    if (s->first < 0) VOLT_RETURN(s->first);
    CHECK_EQ(volt_join_sync(&s->h, VOLT_NEVER, &s->value), -EDEADLK);
    KEEP_AWAIT(volt_join(cx, &s->h));
    VOLT_END(s->first);
}

// A task that needs a while to clean up outlives the first limit of a shutdown.
STATE(slow_to_end, volt_shield shield; int *n_started;) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    add(s->n_started, 1);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(3)));
    volt_shield_end(cx, &s->shield);
    VOLT_END(0);
}
static int shuts_down_with_a_limit(void) {
    volt_rt *rt = NULL;
    int n_started = 0, rc = open_rt(1, &rt);
    if (rc < 0) return rc;
    rc = VOLT_RT_SPAWN(rt, NULL, slow_to_end_run, (slow_to_end_state){ .n_started = &n_started });
    while (rc == 0 && !get(&n_started)) sched_yield();
    int left = volt_shutdown(rt, VOLT_US(100));
    CHECK(left == 0 || left == 1);
    int late = VOLT_RT_SPAWN(rt, NULL, giver_run, (giver_state){ .value = 1 });
    CHECK(late == -ESHUTDOWN || late == -ENOMEM);
    close_rt(rt);
    return rc;
}

// Refused while it runs and while a handle is held; each refusal can be retried.
static int destroys_while_busy(void) {
    volt_rt *rt = NULL;
    volt_handle h = { NULL };
    int rc = open_rt(1, &rt);
    if (rc < 0) return rc;
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    rc = VOLT_RT_SPAWN(rt, &h, napper_run, (napper_state){ .d = VOLT_NEVER });
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    if (rc == 0) CHECK_EQ(volt_destroy(rt), -EBUSY);
    volt_detach(&h);
    CHECK_EQ(volt_destroy(rt), 0);
    return rc;
}

// The root ends while other tasks wait: they are cancelled and drained.
STATE(leaves_others, volt_token token; int *fds;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_SPAWN(cx, NULL, napper_run, (napper_state){ .d = VOLT_NEVER }));
    KEEP(VOLT_SPAWN(cx, NULL, waiter_run, (waiter_state){ .token = &s->token }));
    s->rc = VOLT_SPAWN(cx, NULL, echo_run, (echo_state){ .fd = s->fds[0] });
    if (s->rc < 0) volt_close(cx, s->fds[0]);
    KEEP(s->rc);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    VOLT_END(s->first);
}
static int drains(void) {
    static leaves_others_state root;
    volt_config c = config(1);
    int fd[2], rc = make_pair(fd);
    if (rc < 0) return rc;
    memset(&root, 0, sizeof root);
    root.fds = fd;
    c.drain_timeout = FAR_AWAY;
    rc = volt_run(&c, leaves_others_run, &root);
    if (kind_of(fd[0]) != FD_FREE) drop(fd[0]); // the runtime did not start
    drop(fd[1]);
    return rc;
}

// ---- operations that never allocate: wake, cancel, the end of a wait and of a task, timers,
// shutdown

typedef struct {
    volt_token token;
    int n_started;
    volt_handle h[4];
    doorbell bell;
} stage;
STATE(prepares, stage *stage; int *fd; volt_group group; int i;) {
    VOLT_BEGIN(cx, s);
    KEEP(VOLT_SPAWN(cx, &s->stage->h[0], waiter_run,
                    (waiter_state){ .token = &s->stage->token,
                                    .n_started = &s->stage->n_started }));
    KEEP(VOLT_SPAWN(cx, &s->stage->h[1], napper_run, (napper_state){ .d = VOLT_MS(2) }));
    KEEP(VOLT_SPAWN(cx, &s->stage->h[2], napper_run, (napper_state){ .d = VOLT_NEVER }));
    KEEP(VOLT_SPAWN(cx, &s->stage->h[3], reader_run,
                    (reader_state){ .fd = s->fd[0], .n_started = &s->stage->n_started }));
    KEEP(VOLT_SPAWN(cx, NULL, listener_run, (listener_state){ .bell = &s->stage->bell }));
    for (s->i = 0; s->i < 20; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, yielder_run, (yielder_state){ .n = 40 }));
    if (s->first < 0) VOLT_RETURN(s->first);
    while (get(&s->stage->n_started) < 2) VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    while (!get(&s->stage->bell.is_out)) VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    add(&inject.n_forbidden, 1);
    for (s->i = 0; s->i < 50; s->i++) VOLT_AWAIT(volt_yield(cx));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}
static void end_the_waits(stage *s, const int fd[2]) {
    volt_token_cancel(&s->token);
    volt_cancel(&s->h[2]);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    set(&s->bell.is_set, 1);
    volt_wake(s->bell.waker);
    volt_waker_release(s->bell.waker);
    for (int i = 0; i < 4; i++) {
        int64_t value = 0;
        CHECK_EQ(volt_join_sync(&s->h[i], VOLT_NEVER, &value), 0);
        CHECK_EQ(value, i == 2 ? -ECANCELED : i == 3);
    }
}
static int never_allocates_on(uint32_t workers) {
    volt_config c = config(workers);
    volt_rt *rt = NULL;
    stage st;
    static prepares_state root;
    int fd[2];
    memset(&st, 0, sizeof st);
    memset(&root, 0, sizeof root);
    c.start_all_workers = 1;
    root.stage = &st;
    root.fd = fd;
    CHECK_EQ(make_pair(fd), 0);
    CHECK_EQ(volt_create(&c, &rt), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(VOLT_RT_SPAWN(rt, NULL, napper_run, (napper_state){ .d = VOLT_NEVER }), 0);
    CHECK_EQ(volt_block_on(rt, prepares_run, &root), 0);
    end_the_waits(&st, fd);
    volt_rt_close(rt, fd[0]);
    close_rt(rt); // with live tasks
    add(&inject.n_forbidden, -1);
    drop(fd[1]);
    return 0;
}
static int never_allocates(void) {
    for (uint32_t workers = 1; workers <= 3; workers++) never_allocates_on(workers);
    return 0;
}

#endif // VOLT_FAULT_SCENARIOS_WHOLE_H
