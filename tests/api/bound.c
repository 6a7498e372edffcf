// SPDX-License-Identifier: MIT OR 0BSD
// Options of a spawn: tasks bound to a worker, urgent tasks, and tags.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "json.h"

static volt_spawn_options bound_to(uint32_t worker) {
    return (volt_spawn_options){ .is_bound = 1, .worker = worker };
}
static const volt_spawn_options urgent = { .is_urgent = 1 };
static volt_config started_config(uint32_t workers) {
    volt_config c = test_config(workers);
    c.start_all_workers = workers > 1;
    return c;
}
static int run_started(uint32_t workers, volt_fn *fn, void *state) {
    volt_config c = started_config(workers);
    int rc = volt_run(&c, fn, state);
    test_check_heap();
    return rc;
}
static volt_rt *create_started(uint32_t workers) {
    volt_config c = started_config(workers);
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}

// ---- tasks that are bound

// Waits in each way in turn. Each poll checks its worker, and that no other task of that worker is
// in a poll: `inside` is a plain word of the worker, without a lock.
typedef struct {
    int inside, n_polls, n_ended;
} shard;
typedef struct {
    volt_frame frame;
    shard *shards;
    volt_notify *notify;
    uint32_t worker;
    int round, rc;
} resident;
static void visit(const volt_cx *cx, resident *r) {
    shard *s = &r->shards[r->worker];
    CHECK_EQ(cx->worker_->index, r->worker);
    CHECK_EQ(s->inside++, 0);
    s->n_polls++;
    CHECK_EQ(--s->inside, 0);
}
enum { ROUNDS = 40 };
static volt_poll resident_run(volt_cx *cx, void *arg) {
    resident *r = (resident *)arg;
    visit(cx, r);
    VOLT_BEGIN(cx, r);
    for (; r->round < ROUNDS; r->round++) {
        if (r->round % 4 == 0) VOLT_AWAIT(r->rc, volt_sleep(cx, VOLT_US(100)));
        else if (r->round % 4 == 1) VOLT_AWAIT(r->rc, volt_notify_wait(cx, r->notify));
        else VOLT_AWAIT(r->rc, volt_yield(cx));
        CHECK_EQ(r->rc, 0);
        volt_notify_one(r->notify);
    }
    r->shards[r->worker].n_ended++;
    VOLT_END(0);
}
// Tasks that are not bound keep the workers stealing.
typedef struct {
    volt_frame frame;
    volt_notify *notify;
    const int *is_over;
} roamer;
static volt_poll roamer_run(volt_cx *cx, void *arg) {
    roamer *r = (roamer *)arg;
    VOLT_BEGIN(cx, r);
    while (!READ(*r->is_over)) {
        volt_notify_one(r->notify);
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
enum { RESIDENTS = 24, MOST_SHARDS = 4 };
typedef struct {
    volt_frame frame;
    volt_notify notify;
    shard shards[MOST_SHARDS];
    volt_group residents, roamers;
    int i, rc, is_over;
} town;
static volt_poll town_run(volt_cx *cx, void *arg) {
    town *t = (town *)arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < RESIDENTS; t->i++) {
        uint32_t worker = (uint32_t)t->i % cx->rt_->n_workers;
        volt_spawn_options o = bound_to(worker);
        resident r = { .shards = t->shards, .notify = &t->notify, .worker = worker };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &o, &t->residents, resident_run, r), 0);
        roamer roaming = { .notify = &t->notify, .is_over = &t->is_over };
        if (t->i % 4 == 0) GROUP_SPAWN(&t->roamers, roamer_run, roaming);
    }
    VOLT_AWAIT(t->rc, volt_group_wait(cx, &t->residents));
    CHECK_EQ(t->rc, 0);
    WRITE(t->is_over, 1);
    VOLT_AWAIT(t->rc, volt_group_wait(cx, &t->roamers));
    VOLT_END(t->rc);
}
TEST(bound_tasks_run_one_at_a_time_on_their_worker) {
    EACH_WORKERS(w) {
        town t;
        memset(&t, 0, sizeof t);
        CHECK_EQ(run_started(w, town_run, &t), 0);
        for (uint32_t i = 0; i < w; i++) {
            CHECK_EQ(t.shards[i].n_ended, RESIDENTS / w);
            CHECK(t.shards[i].n_polls >= ROUNDS);
        }
    }
}

// Two tasks on different workers pass a permit back and forth: each push meets a worker that is
// about to sleep.
typedef struct {
    volt_frame frame;
    volt_sem *mine, *other;
    uint32_t worker;
    int n_left, rc;
} player;
static volt_poll player_run(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    CHECK_EQ(cx->worker_->index, p->worker);
    VOLT_BEGIN(cx, p);
    for (; p->n_left > 0; p->n_left--) {
        VOLT_AWAIT(p->rc, volt_sem_acquire(cx, p->mine, 1));
        CHECK_EQ(p->rc, 0);
        volt_sem_release(p->other, 1);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_sem sems[2];
    volt_handle handles[2];
    int i, rc;
} match;
static volt_poll match_run(volt_cx *cx, void *arg) {
    match *m = (match *)arg;
    VOLT_BEGIN(cx, m);
    volt_sem_release(&m->sems[0], 1);
    for (m->i = 0; m->i < 2; m->i++) {
        uint32_t worker = (uint32_t)m->i % cx->rt_->n_workers;
        volt_spawn_options o = bound_to(worker);
        player p = { .mine = &m->sems[m->i], .other = &m->sems[1 - m->i], .worker = worker,
                     .n_left = test_is_long() ? 20000 : 2000 };
        CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &m->handles[m->i], player_run, p), 0);
    }
    for (m->i = 0; m->i < 2; m->i++) {
        VOLT_AWAIT(m->rc, volt_join(cx, &m->handles[m->i]));
        CHECK_EQ(m->rc, 0);
    }
    VOLT_END(0);
}
TEST(bound_task_is_woken_by_a_task_of_another_worker) {
    EACH_WORKERS(w) {
        match m;
        memset(&m, 0, sizeof m);
        CHECK_EQ(run_started(w, match_run, &m), 0);
    }
}
TEST_OF_THREADS(bound_task_is_woken_by_a_plain_thread) {
    volt_rt *rt = create_started(3);
    volt_sem sems[2] = { VOLT_SEM_INIT(0), VOLT_SEM_INIT(0) };
    volt_handle h;
    int64_t result = -1;
    volt_spawn_options o = bound_to(2);
    enum { N = 300 };
    player p = { .mine = &sems[0], .other = &sems[1], .worker = 2, .n_left = N };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, &h, player_run, p), 0);
    for (int i = 0; i < N; i++) {
        volt_sem_release(&sems[0], 1);
        CHECK_EQ(volt_sem_acquire_sync(&sems[1], 1, VOLT_NEVER), 0);
    }
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 0);
    destroy(rt);
}
// The tasks of a worker that is stuck in a poll move to others, except those that are bound to it.
typedef struct {
    volt_frame frame;
    int *n_ended;
    uint32_t worker;
    int rc;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    CHECK_EQ(cx->worker_->index, s->worker);
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(2)));
    COUNT(*s->n_ended);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int *n_bound, *n_free;
} hog;
static volt_poll hog_run(volt_cx *cx, void *arg) {
    hog *h = (hog *)arg;
    VOLT_BEGIN(cx, h);
    volt_spawn_options o = bound_to(cx->worker_->index);
    sleeper s = { .n_ended = h->n_bound, .worker = o.worker };
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, NULL, sleeper_run, s), 0);
    SPAWN(NULL, napper_run, (napper){ .d = VOLT_MS(2), .n_ended = h->n_free });
    UNTIL(READ(*h->n_free) == 1); // by another worker
    CHECK_EQ(READ(*h->n_bound), 0);
    VOLT_END(0);
}
TEST_OF_THREADS(bound_task_waits_for_its_worker_to_leave_a_long_poll) {
    volt_rt *rt = create_started(2);
    int n_bound = 0, n_free = 0;
    RT_SPAWN(rt, NULL, hog_run, (hog){ .n_bound = &n_bound, .n_free = &n_free });
    UNTIL(READ(n_bound) == 1);
    destroy(rt);
}
// Half of the polls go to the bound tasks, and half to the others.
typedef struct {
    volt_frame frame;
    int *count;
    const int *is_over;
} counter;
static volt_poll counter_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    while (!READ(*c->is_over)) {
        ++*c->count;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int *has_begun; // or NULL
    const int *is_over;
} spinner; // keeps its worker
static volt_poll spinner_run(volt_cx *cx, void *arg) {
    spinner *h = (spinner *)arg;
    VOLT_BEGIN(cx, h);
    if (h->has_begun) WRITE(*h->has_begun, 1);
    UNTIL(READ(*h->is_over));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group g;
    int n_bound, n_free, has_begun, is_over, i, rc;
} balance; // bound to worker 0
enum { POLLS = 4000 };
static volt_poll balance_run(volt_cx *cx, void *arg) {
    balance *b = (balance *)arg;
    VOLT_BEGIN(cx, b);
    volt_spawn_options other = bound_to(1);
    spinner spin = { .has_begun = &b->has_begun, .is_over = &b->is_over };
    CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &other, &b->g, spinner_run, spin), 0);
    // Before, worker 1 could steal tasks that are not bound, and then keep them.
    while (!READ(b->has_begun)) VOLT_AWAIT(volt_yield(cx));
    for (b->i = 0; b->i < 60; b->i++) {
        volt_spawn_options here = bound_to(0);
        counter c = { .count = b->i % 3 ? &b->n_free : &b->n_bound, .is_over = &b->is_over };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, b->i % 3 ? NULL : &here, &b->g, counter_run, c), 0);
    }
    while (b->n_bound + b->n_free < POLLS) VOLT_AWAIT(volt_yield(cx));
    WRITE(b->is_over, 1);
    // fewer if the ring is small and others wait behind it, too
    int least = POLLS * 2 / (VOLT_RING_CAP < 60 ? 10 : 5);
    CHECK(b->n_bound > least && b->n_free > least);
    VOLT_AWAIT(b->rc, volt_group_wait(cx, &b->g));
    VOLT_END(b->rc);
}
TEST_OF_THREADS(bound_tasks_and_others_get_every_other_poll) {
    volt_config c = started_config(2);
    balance b;
    memset(&b, 0, sizeof b);
    c.watchdog_us = UINT32_MAX; // it would move the tasks of the spinner's worker
    volt_rt *rt = NULL;
    int64_t result = -1;
    volt_handle h;
    CHECK_EQ(volt_create(&c, &rt), 0);
    volt_spawn_options here = bound_to(0);
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &here, &h, balance_run, b), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 0);
    destroy(rt);
}

// The queue is empty while the only bound task runs. (A single-threaded build has no such queue.)
#ifndef VOLT_SINGLE_THREAD
typedef struct {
    volt_frame frame;
    volt_group g;
    int n_bound, n_free, n_turns, is_over, i, rc;
    volt_notify turn[2];
    volt_spawn_options here;
} alone;
static volt_poll lone_counter_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    for (; *c->count < POLLS; ++*c->count) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    alone *a;
    int side, rc;
} partner; // wakes the other one, and waits for it
static volt_poll partner_run(volt_cx *cx, void *arg) {
    partner *p = (partner *)arg;
    VOLT_BEGIN(cx, p);
    while (p->a->n_turns < POLLS) {
        p->a->n_turns++;
        volt_notify_one(&p->a->turn[1 - p->side]);
        VOLT_AWAIT(p->rc, volt_notify_wait(cx, &p->a->turn[p->side]));
    }
    volt_notify_one(&p->a->turn[1 - p->side]);
    VOLT_END(0);
}
ROOT_TEST_1(lone_bound_task_gets_every_other_poll, { alone a; }) {
    alone *const a = &s->a;
    VOLT_BEGIN(cx, s);
    a->here = bound_to(0);
    for (a->i = 0; a->i < 20; a->i++) {
        counter c = { .count = &a->n_free, .is_over = &a->is_over };
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &a->g, counter_run, c), 0);
    }
    while (a->n_free < POLLS) VOLT_AWAIT(volt_yield(cx));
    counter lone = { .count = &a->n_bound };
    a->n_free = 0;
    CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &a->here, &a->g, lone_counter_run, lone), 0);
    while (a->n_bound < POLLS) VOLT_AWAIT(volt_yield(cx));
    // every fourth if the ring is small and others wait behind it, too
    CHECK(a->n_free < POLLS * (VOLT_RING_CAP < 60 ? 5 : 2));
    a->n_free = 0;
    for (int i = 0; i < 2; i++) {
        partner p = { .a = a, .side = i };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &a->here, &a->g, partner_run, p), 0);
    }
    while (a->n_turns < POLLS) VOLT_AWAIT(volt_yield(cx));
    CHECK(a->n_free < POLLS * (VOLT_RING_CAP < 60 ? 5 : 2));
    a->is_over = 1;
    VOLT_AWAIT(a->rc, volt_group_wait(cx, &a->g));
    CHECK_EQ(a->rc, 0);
    VOLT_END(0);
}
#endif

// Neither keeps the others from timers and events.
typedef struct {
    volt_frame frame;
    int *is_over;
    int i, rc;
} ticker;
static volt_poll ticker_run(volt_cx *cx, void *arg) {
    ticker *t = (ticker *)arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < 20; t->i++) {
        VOLT_AWAIT(t->rc, volt_sleep(cx, VOLT_MS(1)));
        CHECK_EQ(t->rc, 0);
    }
    WRITE(*t->is_over, 1);
    VOLT_END(0);
}
TEST_OF_THREADS(bound_and_urgent_tasks_leave_timers_their_turn) {
    enum { N_BOUND = 4, N_URGENT = 6, N = N_BOUND + N_URGENT };
    volt_rt *rt = create_started(2);
    int counts[N] = { 0 }, is_over = 0;
    volt_handle ticking, handles[N];
    RT_SPAWN(rt, &ticking, ticker_run, (ticker){ .is_over = &is_over });
    for (int i = 0; i < N; i++) {
        volt_spawn_options bound = bound_to((uint32_t)i % 2);
        counter c = { .count = &counts[i], .is_over = &is_over };
        const volt_spawn_options *o = i < N_BOUND ? &bound : &urgent;
        CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, o, &handles[i], counter_run, c), 0);
    }
    CHECK_EQ(volt_join_sync(&ticking, VOLT_NEVER, NULL), 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(volt_join_sync(&handles[i], VOLT_NEVER, NULL), 0);
        CHECK(counts[i] > 0);
    }
    destroy(rt);
}

// ---- misuse and limits

ROOT_TEST_1(worker_that_was_not_started_refuses_bound_tasks, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_spawn_options o = bound_to(1), both = { .is_bound = 1, .is_urgent = 1 };
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &s->h, napper_run, (napper){ .value = 1 }), -ENXIO);
    CHECK(!volt_handle_is_set(&s->h));
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &both, NULL, napper_run, (napper){ .value = 1 }), -EINVAL);
    volt_spawn_options at_0 = bound_to(0);
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &at_0, &s->h, napper_run, (napper){ .value = 5 }), 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    CHECK_EQ(VOLT_SPAWN_WITH(cx, NULL, &s->h, napper_run, (napper){ .value = 6 }), 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 6);
    VOLT_END(0);
}
static volt_poll dozer_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    CHECK_EQ(cx->worker_->index, s->worker);
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_NEVER));
    CHECK_EQ(s->rc, -ECANCELED);
    COUNT(*s->n_ended);
    VOLT_END(0);
}
TEST(shutdown_cancels_bound_tasks_on_their_workers) {
    volt_rt *rt = create_started(TEST_MOST_WORKERS);
    int n_ended = 0;
    enum { N = 40 };
    for (uint32_t i = 0; i < N; i++) {
        volt_spawn_options o = bound_to(i % rt->n_workers);
        sleeper s = { .n_ended = &n_ended, .worker = o.worker };
        CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, NULL, dozer_run, s), 0);
    }
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(n_ended, N);
    volt_spawn_options o = bound_to(0);
    sleeper s = { .n_ended = &n_ended };
    volt_handle h = { NULL };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, NULL, dozer_run, s), -ESHUTDOWN);
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, &h, dozer_run, s), -ESHUTDOWN);
    CHECK(!volt_handle_is_set(&h));
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}
ROOT_TEST_1(bound_spawn_without_memory_leaves_nothing, {
    volt_handle h;
    volt_group g;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_spawn_options o = bound_to(0), none = bound_to(VOLT_MAX_WORKERS);
    CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &none, &s->g, napper_run, (napper){ .value = 1 }), -ENXIO);
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    // until no slot is left
    do s->rc = VOLT_GROUP_SPAWN_WITH(cx, &o, &s->g, napper_run, (napper){ .value = 1 });
    while (s->rc == 0);
    CHECK_EQ(s->rc, -ENOMEM);
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &s->h, napper_run, (napper){ .value = 1 }), -ENOMEM);
    CHECK(!volt_handle_is_set(&s->h));
    test_heap.fail_at = 0;
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// The task that was polled last waits until both timers are due: the event poll after that wakes
// it, and then the other one.
typedef struct {
    volt_frame frame;
    volt_arm arm[2];
    volt_time until;
    volt_time latest; // 0: does not wait for it
    int *order, id;
} punctual;
static volt_poll wait_in_the_poll(volt_time until) {
    while (volt_now() < until) {}
    return volt_ready(0);
}
static volt_poll punctual_run(volt_cx *cx, void *arg) {
    punctual *p = (punctual *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&p->arm[0], volt_sleep_until(cx, p->until)),
                             VOLT_ARM(&p->arm[1], wait_in_the_poll(p->latest))));
    *p->order = *p->order * 10 + p->id;
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group g;
    volt_time at;
    int i, rc, order;
} start_list;
static volt_poll start_list_run(volt_cx *cx, void *arg) {
    start_list *s = (start_list *)arg;
    VOLT_BEGIN(cx, s);
    s->at = volt_now() + VOLT_MS(5);
    for (s->i = 2; s->i > 0; s->i--) {
        volt_spawn_options o = bound_to(0);
        punctual one = { .until = s->at + VOLT_MS(s->i), .order = &s->order, .id = s->i };
        if (s->i == 1) one.latest = s->at + VOLT_MS(4);
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &o, &s->g, punctual_run, one), 0);
    }
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    VOLT_END(s->order);
}
TEST_OF_THREADS(bound_tasks_run_in_the_order_in_which_they_became_runnable) {
    volt_config c = test_config(1);
    start_list s;
    c.event_interval = 1;
    memset(&s, 0, sizeof s);
    CHECK_EQ(volt_run(&c, start_list_run, &s), 12);
}
// A pipe is watched by the worker on which its reader waits; a job ends on a thread of the pool.
static int give_seven(void *arg) {
    (void)arg;
    return 7;
}
typedef struct {
    volt_frame frame;
    volt_job job;
    uint32_t worker;
    int fd, i;
    char byte;
    int64_t rc;
} plumber;
static volt_poll plumber_run(volt_cx *cx, void *arg) {
    plumber *p = (plumber *)arg;
    CHECK_EQ(cx->worker_->index, p->worker);
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < ROUNDS; p->i++) {
        VOLT_AWAIT(p->rc, volt_read(cx, p->fd, &p->byte, 1));
        CHECK_EQ(p->rc, 1);
        VOLT_AWAIT(p->rc, volt_blocking(cx, &p->job, give_seven, NULL));
        CHECK_EQ(p->rc, 7);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group plumbers;
    int ends[4][2], i, k;
    int64_t rc;
} pipes;
static volt_poll pipes_run(volt_cx *cx, void *arg) {
    pipes *p = (pipes *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < 4; p->i++) {
        volt_spawn_options o = bound_to((uint32_t)p->i % cx->rt_->n_workers);
        CHECK_EQ(pipe(p->ends[p->i]), 0);
        plumber one = { .worker = o.worker, .fd = p->ends[p->i][0] };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &o, &p->plumbers, plumber_run, one), 0);
    }
    for (p->k = 0; p->k < ROUNDS; p->k++)
        for (p->i = 0; p->i < 4; p->i++) {
            VOLT_AWAIT(p->rc, volt_write(cx, p->ends[p->i][1], "x", 1));
            CHECK_EQ(p->rc, 1);
            if (p->k % 4 == 0) VOLT_AWAIT(volt_yield(cx));
        }
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->plumbers));
    for (p->i = 0; p->i < 8; p->i++) volt_close(cx, p->ends[p->i / 2][p->i % 2]);
    VOLT_END(p->rc);
}
TEST(bound_task_is_woken_by_a_descriptor_and_by_a_job_on_its_worker) {
    EACH_WORKERS(w) {
        pipes p;
        memset(&p, 0, sizeof p);
        CHECK_EQ(run_started(w, pipes_run, &p), 0);
    }
}
// One call of a plain thread wakes several: each goes to its own worker.
typedef struct {
    volt_frame frame;
    volt_event *event;
    uint32_t worker;
    int *n_waiting, rc;
} event_waiter;
static volt_poll event_waiter_run(volt_cx *cx, void *arg) {
    event_waiter *e = (event_waiter *)arg;
    CHECK_EQ(cx->worker_->index, e->worker);
    VOLT_BEGIN(cx, e);
    COUNT(*e->n_waiting);
    VOLT_AWAIT(e->rc, volt_event_wait(cx, e->event));
    VOLT_END(e->rc);
}
TEST_OF_THREADS(event_of_a_plain_thread_wakes_bound_tasks_on_their_workers) {
    volt_rt *rt = create_started(2);
    volt_event event;
    volt_handle h[4];
    int n_waiting = 0;
    memset(&event, 0, sizeof event);
    memset(h, 0, sizeof h);
    for (uint32_t i = 0; i < 4; i++) {
        volt_spawn_options o = bound_to(i % 2);
        event_waiter e = { .event = &event, .worker = o.worker, .n_waiting = &n_waiting };
        CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, &h[i], event_waiter_run, e), 0);
    }
    UNTIL(READ(n_waiting) == 4);
    volt_event_set(&event);
    for (int i = 0; i < 4; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
    destroy(rt);
}
// The slot keeps the alignment of the state, with a group's link and an extra behind it.
typedef struct {
    volt_frame frame;
    char text[40];
    uint64_t wide __attribute__((aligned(VOLT_STATE_ALIGN)));
} wide;
static volt_poll wide_run(volt_cx *cx, void *arg) {
    wide *x = (wide *)arg;
    VOLT_BEGIN(cx, x);
    CHECK_EQ((uintptr_t)x % VOLT_STATE_ALIGN, 0);
    CHECK_EQ(volt_task_tag(cx), 77);
    CHECK_STR(x->text, "kept");
    memset(x->text, 'x', sizeof x->text);
    x->wide = UINT64_MAX;
    VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_task_tag(cx), 77);
    VOLT_END(0);
}
ROOT_TEST(options_keep_the_alignment_of_the_state, { volt_group g; volt_handle h; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 10; s->i++) {
        volt_spawn_options o = { .tag = 77, .is_urgent = (uint32_t)s->i % 2 };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &o, &s->g, wide_run, (wide){ .text = "kept" }), 0);
        CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &s->h, wide_run, (wide){ .text = "kept" }), 0);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    }
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- tags

typedef struct {
    volt_frame frame;
    uintptr_t want;
    int depth, rc;
    volt_group g;
    volt_handle child;
} heir;
static volt_poll heir_run(volt_cx *cx, void *arg) {
    heir *h = (heir *)arg;
    VOLT_BEGIN(cx, h);
    CHECK_EQ(volt_task_tag(cx), h->want);
    if (h->depth > 0) {
        heir next = { .want = h->want, .depth = h->depth - 1 };
        volt_spawn_options own = { .tag = h->want + 1 };
        GROUP_SPAWN(&h->g, heir_run, next);
        SPAWN(&h->child, heir_run, next);
        next.want++;
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &own, &h->g, heir_run, next), 0);
        VOLT_AWAIT(h->rc, volt_group_wait(cx, &h->g));
        CHECK_EQ(h->rc, 0);
        VOLT_AWAIT(h->rc, volt_join(cx, &h->child));
        CHECK_EQ(h->rc, 0);
    }
    VOLT_END(0);
}
ROOT_TEST(tag_is_inherited_by_spawned_tasks, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_task_tag(cx), 0);
    volt_spawn_options o = { .tag = 100 };
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &s->h, heir_run, (heir){ .want = 100, .depth = 3 }), 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    SPAWN(&s->h, heir_run, (heir){ .want = 0 });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    VOLT_END(s->rc);
}
// The extra costs memory and the fast path of a spawn, so a task without a tag, a binding and
// urgency has none, whatever its parent has.
typedef struct {
    volt_frame frame;
    volt_handle h;
    int has_extra, rc;
} parent;
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = (parent *)arg;
    VOLT_BEGIN(cx, p);
    CHECK(volt__task_has_extra(cx->task_));
    SPAWN(&p->h, giver_run, (giver){ .value = 1 });
    CHECK_EQ(!!volt__task_has_extra(p->h.task_), p->has_extra);
    VOLT_AWAIT(p->rc, volt_join(cx, &p->h));
    VOLT_END(0);
}
ROOT_TEST(children_of_a_task_without_a_tag_have_no_extra, { volt_handle h; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 4; s->i++) {
        int has_tag = s->i > 1;
        volt_spawn_options o = { .is_urgent = 1, .tag = has_tag ? 9 : 0 };
        if (s->i % 2 && VOLT_MAX_WORKERS > 1) o = bound_to(0), o.tag = has_tag ? 9 : 0;
        parent p = { .has_extra = has_tag };
        CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, &s->h, parent_run, p), 0);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    }
    VOLT_END(s->rc);
}
TEST(dump_shows_tags) {
    volt_rt *rt = create_started(1);
    int n_ended = 0;
    sink d = { .text = NULL };
    volt_spawn_options o = { .tag = 4711 };
    sleeper s = { .n_ended = &n_ended };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, NULL, dozer_run, s), 0);
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_NEVER });
    dump(rt, &d, 0);
    CHECK_EQ(count(&d, "dozer_run, tag 4711, "), 1);
    CHECK_EQ(count(&d, "napper_run, 0."), 1);
    dump(rt, &d, VOLT_DUMP_JSON);
    CHECK_EQ(read_json(&d), 3);
    CHECK_EQ(count(&d, "\"tag\":4711,"), 1);
    CHECK_EQ(count(&d, "\"tag\""), 1);
    drop(&d);
    destroy(rt);
}

// ---- the order of polls, urgent tasks

typedef struct {
    volt_frame frame;
    int *order, *n;
    int number, n_polls;
} entrant;
static volt_poll entrant_run(volt_cx *cx, void *arg) {
    entrant *e = (entrant *)arg;
    VOLT_BEGIN(cx, e);
    for (;;) { // each poll is noted, the last one too
        e->order[(*e->n)++] = e->number;
        if (--e->n_polls == 0) break;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
// Bound tasks run in that order whatever the number of workers.
enum { CALLERS = 6 };
typedef struct {
    volt_frame frame;
    volt_group g;
    int order[CALLERS], i, n, rc;
} queue;
static volt_poll queue_run(volt_cx *cx, void *arg) {
    queue *q = (queue *)arg;
    const volt_spawn_options o = bound_to(0);
    VOLT_BEGIN(cx, q);
    for (q->i = 0; q->i < CALLERS; q->i++) {
        entrant e = { .order = q->order, .n = &q->n, .number = q->i, .n_polls = 1 };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &o, &q->g, entrant_run, e), 0);
    }
    VOLT_AWAIT(q->rc, volt_group_wait(cx, &q->g));
    VOLT_END(q->rc);
}
TEST_OF_THREADS(bound_tasks_run_in_the_order_in_which_they_become_runnable) {
    for (uint32_t workers = 1; workers <= 2; workers++) {
        queue q;
        memset(&q, 0, sizeof q);
        CHECK_EQ(run_started(workers, queue_run, &q), 0);
        for (int i = 0; i < CALLERS; i++) CHECK_EQ(q.order[i], i);
    }
}
enum { QUEUED = 60 };
ROOT_TEST_1(urgent_task_runs_before_queued_ones, {
    int order[QUEUED + 1], n, i;
    volt_group g;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < QUEUED; s->i++) {
        entrant e = { .order = s->order, .n = &s->n, .number = s->i, .n_polls = 1 };
        GROUP_SPAWN(&s->g, entrant_run, e);
    }
    entrant e = { .order = s->order, .n = &s->n, .number = -1, .n_polls = 1 };
    CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, &urgent, &s->g, entrant_run, e), 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->n, QUEUED + 1);
    CHECK_EQ(s->order[0], -1);
    VOLT_END(0);
}
// Of nine polls in a row at least one is not urgent, and of ten at least eight are.
enum { TURNS = 900 };
ROOT_TEST_1(urgent_tasks_leave_every_ninth_poll_to_others, {
    int order[TURNS], n, i;
    volt_group g;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 9; s->i++) {
        entrant e = { .order = s->order, .n = &s->n, .number = s->i % 3, .n_polls = TURNS / 9 };
        CHECK_EQ(VOLT_GROUP_SPAWN_WITH(cx, s->i % 3 ? NULL : &urgent, &s->g, entrant_run, e), 0);
    }
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->n, TURNS);
    int run = 0, n_left = 3 * (TURNS / 9);
    for (int i = 0; i < TURNS && n_left > 0; i++) {
        int is_urgent = s->order[i] == 0;
        n_left -= is_urgent;
        if (!is_urgent) CHECK(run >= 7 || i < 9);
        run = is_urgent ? run + 1 : 0;
        CHECK(run <= 8);
    }
    VOLT_END(0);
}
// The others are in the shared queue: the worker, which has nothing else, takes its share of them.
TEST_OF_THREADS(urgent_tasks_leave_every_ninth_poll_to_the_shared_queue) {
    enum { OTHERS = 50, URGENT = 4, URGENT_POLLS = 100, N = OTHERS + URGENT };
    static int order[OTHERS + URGENT * URGENT_POLLS];
    volt_rt *rt = create_started(1);
    volt_handle handles[N], held;
    int has_begun = 0, is_over = 0, n = 0, run = 0, n_left = OTHERS;
    RT_SPAWN(rt, &held, spinner_run, (spinner){ .has_begun = &has_begun, .is_over = &is_over });
    UNTIL(READ(has_begun));
    for (int i = 0; i < N; i++) {
        int is_urgent = i >= OTHERS;
        entrant e = { .order = order, .n = &n, .number = is_urgent, .n_polls = 1 };
        if (is_urgent) e.n_polls = URGENT_POLLS;
        const volt_spawn_options *o = is_urgent ? &urgent : NULL;
        CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, o, &handles[i], entrant_run, e), 0);
    }
    WRITE(is_over, 1);
    CHECK_EQ(volt_join_sync(&held, VOLT_NEVER, NULL), 0);
    for (int i = 0; i < N; i++) CHECK_EQ(volt_join_sync(&handles[i], VOLT_NEVER, NULL), 0);
    for (int i = 0; i < n && n_left > 0; i++) {
        n_left -= !order[i];
        run = order[i] ? run + 1 : 0;
        CHECK(run <= 8);
    }
    CHECK_EQ(n_left, 0);
    destroy(rt);
}
static volt_rt *create_guest(void) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
// Each step begins with the lane, or ends one poll later.
TEST(urgent_task_keeps_its_share_in_short_steps_of_a_guest) {
    enum { OTHERS = 20, LEAST_POLLS = 900, N = OTHERS + 1 };
    static int order[N * LEAST_POLLS];
    static const uint32_t sizes[] = { 1, 2, 3, 8, 9, 64 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        volt_rt *rt = create_guest();
        int n = 0, run = 0;
        for (int k = 0; k < N; k++) {
            entrant e = { .order = order, .n = &n, .number = k == 0, .n_polls = LEAST_POLLS };
            CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, k == 0 ? &urgent : NULL, NULL, entrant_run, e), 0);
        }
        while (n < LEAST_POLLS) CHECK(volt_rt_step(rt, sizes[i]) >= 0);
        for (int k = 0; k < LEAST_POLLS; k++) {
            if (!order[k]) CHECK(k < 9 || run == 8); // only after eight urgent ones
            run = order[k] ? run + 1 : 0;
            CHECK(run <= 8);
        }
        destroy(rt);
    }
}
// The timers that expire during the sleep fill the ring.
TEST(urgent_task_of_a_plain_thread_runs_first_on_a_sleeping_worker) {
    enum { SLEEPERS = 40 };
    static int order[SLEEPERS + 1];
    volt_rt *rt;
    volt_time nap = VOLT_MS(1);
    int n = 0, n_ended;
    // On a slow machine naps end in the step in which they begin: again, with longer ones.
    for (;; nap *= 2) {
        rt = create_guest();
        n_ended = 0;
        for (int i = 0; i < SLEEPERS; i++)
            RT_SPAWN(rt, NULL, napper_run, (napper){ .d = nap, .n_ended = &n_ended });
        if (volt_rt_step(rt, 0) == SLEEPERS) break;
        destroy(rt);
    }
    for (volt_time until = volt_now() + 2 * nap; volt_now() < until;) {}
    entrant e = { .order = order, .n = &n, .number = 1, .n_polls = 1 };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &urgent, NULL, entrant_run, e), 0);
    CHECK_EQ(volt_rt_step(rt, 1), 1);
    CHECK_EQ(n, 1);
    CHECK_EQ(n_ended, 0);
    CHECK_EQ(volt_rt_step(rt, 0), SLEEPERS);
    destroy(rt);
}
TEST(urgent_task_is_woken_by_a_plain_thread) {
    volt_rt *rt = create_started(TEST_MOST_WORKERS);
    volt_handle h;
    enum { N = 100 };
    int n_ended = 0;
    for (int i = 0; i < N; i++) {
        napper n = { .n_ended = &n_ended, .value = i };
        int64_t result = -1;
        CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &urgent, &h, napper_run, n), 0);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
        CHECK_EQ(result, i);
    }
    CHECK_EQ(n_ended, N);
    destroy(rt);
}
