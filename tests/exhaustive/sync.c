// SPDX-License-Identifier: MIT OR 0BSD
// Synchronisation, common to all kinds: a line of tasks and threads wait in order, one of them is
// cancelled in each way, before its turn or when it has come, and no other one misses anything.
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "sync.h"

// ---- one that waits

enum { PLAIN, WITHIN, BEFORE, UNLESS, SELECT, SHIELDED, N_WAYS }; // how it can be cancelled

enum { N_CONTENDERS = 5 };
typedef struct line { // shared by all of them
    object o;
    volt_token stop;
    volt_time deadline;
    int n_inside, n_through, order[N_CONTENDERS]; // plain: the one let through is alone there
    int n_free; // of those that all go on at once
    int n_gone; // without
} line;
typedef struct {
    volt_frame frame;
    line *l;
    int way, id;
    volt_timer timer;
    volt_token_link link;
    volt_shield shield;
    volt_arm a, b;
    int64_t rc;
} contender;

static int is_passed_on(int kind) { return kind < N_PASSED && kind != READING; }
static void go_through(line *l, int id) {
    if (!is_passed_on(l->o.kind)) {
        COUNT(l->n_free);
    } else {
        CHECK_EQ(l->n_inside++, 0);
        l->order[l->n_through++ % N_CONTENDERS] = id;
        CHECK_EQ(--l->n_inside, 0);
    }
    object_pass(&l->o);
}
static void come_back(line *l, int id, int64_t rc) {
    if (rc == object_gives(l->o.kind)) {
        go_through(l, id);
    } else {
        CHECK(rc == -ECANCELED || rc == -ETIMEDOUT);
        if (l->o.kind == COND) volt_mutex_unlock(&l->o.mutex); // it has it all the same
        COUNT(l->n_gone);
    }
}

static volt_poll bounded_wait(volt_cx *cx, contender *c) {
    object *o = &c->l->o;
    switch (c->way) {
    case WITHIN: return volt_within(cx, &c->timer, VOLT_MS(2), object_wait(cx, o));
    case BEFORE: return volt_before(cx, &c->timer, c->l->deadline, object_wait(cx, o));
    case UNLESS: return volt_with_token(cx, &c->link, &c->l->stop, object_wait(cx, o));
    default: return object_wait(cx, o);
    }
}
static volt_poll contender_run(volt_cx *cx, void *arg) {
    contender *c = (contender *)arg;
    VOLT_BEGIN(cx, c);
    if (c->l->o.kind == COND) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &c->l->o.mutex));
        CHECK_EQ(c->rc, 0);
    }
    if (c->way == SHIELDED) volt_shield_begin(cx, &c->shield, VOLT_NEVER);
    if (c->way == SELECT) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->a, object_wait(cx, &c->l->o)),
                               VOLT_ARM(&c->b, volt_token_wait(cx, &c->l->stop))));
        CHECK(c->a.fired || c->a.value == -ECANCELED);
        c->rc = c->a.value;
    } else {
        VOLT_AWAIT(c->rc, bounded_wait(cx, c));
    }
    if (c->way == SHIELDED) volt_shield_end(cx, &c->shield);
    come_back(c->l, c->id, c->rc);
    VOLT_END(c->rc);
}

// Waiters that have come: they wait or have left. One that is leaving is counted once, or not yet.
static int n_come(line *l) {
    int n_gone = READ(l->n_gone);
    return n_gone + n_waiting(&l->o);
}
// Yields until n have come.
static volt_poll until_in_line(volt_cx *cx, awaiter *a, line *l, int n) {
    VOLT_BEGIN(cx, a);
    while (n_come(l) < n) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}

// ---- a line of them, and one is struck

typedef struct {
    volt_frame frame;
    int kind, way, is_late, victim; // late: its turn has come already
    line l;
    volt_handle h[N_CONTENDERS];
    awaiter a;
    int i;
    int64_t rc, rcs[N_CONTENDERS];
} scene;

// Of timers: until they are due, in this poll.
static void strike(scene *s) {
    volt_time due = volt_now() + VOLT_MS(4);
    if (s->way == PLAIN || s->way == SHIELDED) volt_cancel(&s->h[s->victim]);
    else if (s->way == UNLESS || s->way == SELECT) volt_token_cancel(&s->l.stop);
    else if (s->is_late)
        while (volt_now() < due) {}
}
// The result of the one that was struck, where it is known.
static void judge_victim(const scene *s, int64_t rc, int is_alone) {
    int64_t lost = s->way == WITHIN || s->way == BEFORE ? -ETIMEDOUT : -ECANCELED;
    int64_t won = object_gives(s->kind);
    int is_known = !s->is_late || (is_alone && (s->way == PLAIN || s->way == UNLESS));
    if (s->way == SHIELDED) CHECK_EQ(rc, won);
    else if (is_known) CHECK_EQ(rc, lost);
    else CHECK(rc == lost || rc == won);
}
static void judge(const scene *s, int is_alone) {
    const line *l = &s->l;
    int n_through = 0;
    for (int i = 0; i < N_CONTENDERS; i++) {
        if (i == s->victim) judge_victim(s, s->rcs[i], is_alone);
        else CHECK_EQ(s->rcs[i], object_gives(s->kind));
        n_through += s->rcs[i] >= 0;
    }
    CHECK_EQ(is_passed_on(s->kind) ? l->n_through : l->n_free, n_through);
    for (int i = 1; i < l->n_through; i++) CHECK(l->order[i] > l->order[i - 1]);
}
static volt_poll scene_run(volt_cx *cx, scene *s) {
    VOLT_BEGIN(cx, s);
    object_init(&s->l.o, s->kind);
    s->l.deadline = volt_now() + VOLT_MS(2);
    for (s->i = 0; s->i < N_CONTENDERS; s->i++) {
        SPAWN(&s->h[s->i], contender_run,
              (contender){ .l = &s->l, .id = s->i, .way = s->i == s->victim ? s->way : PLAIN });
        VOLT_AWAIT(until_in_line(cx, &s->a, &s->l, s->i + 1));
    }
    if (s->is_late) object_open(&s->l.o);
    strike(s);
    if (!s->is_late) {
        if (s->way != SHIELDED) VOLT_AWAIT(until_reaches(cx, &s->a, &s->l.n_gone, 1));
        CHECK_EQ(n_waiting(&s->l.o), N_CONTENDERS - (s->way != SHIELDED));
        object_open(&s->l.o);
    }
    for (s->i = 0; s->i < N_CONTENDERS; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        s->rcs[s->i] = s->rc;
    }
    judge(s, cx->rt_->n_workers == 1);
    CHECK_EQ(n_waiting(&s->l.o), 0);
    if (s->kind < N_PASSED) CHECK_EQ(object_try(&s->l.o), object_gives(s->kind)); // none is lost
    VOLT_END(0);
}

// Every way, at each place or, when its turn has come, at the first. Once all memory is there,
// nothing is allocated.
typedef struct {
    volt_frame frame;
    scene sc;
    int kind, is_late, i;
    size_t n_allocs;
} scenes;
static volt_poll scenes_run(volt_cx *cx, scenes *s) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < N_WAYS * N_CONTENDERS; s->i++) {
        int victim = s->i % N_CONTENDERS;
        if (s->is_late && victim > 0) continue;
        s->sc = (scene){ .kind = s->kind, .is_late = s->is_late, .victim = victim };
        s->sc.way = s->i / N_CONTENDERS;
        VOLT_AWAIT(scene_run(cx, &s->sc));
        if (cx->rt_->n_workers > 1) continue; // others start meanwhile
        if (s->i == 0) s->n_allocs = READ(test_heap.n_allocs);
        CHECK_EQ(READ(test_heap.n_allocs), s->n_allocs);
    }
    VOLT_END(0);
}

// ---- threads in the same line, one of them with a time limit
typedef struct {
    line *l;
    int id;
    volt_time at_most;
    int rc;
} visitor;
static void *visitor_run(void *arg) {
    visitor *v = (visitor *)arg;
    object *o = &v->l->o;
    if (o->kind == COND) CHECK_EQ(volt_mutex_lock_sync(&o->mutex, VOLT_NEVER), 0);
    v->rc = object_wait_sync(o, v->at_most);
    come_back(v->l, v->id, v->rc);
    return NULL;
}
static void run_mixed(int kind, uint32_t workers, int victim) {
    static line l;
    visitor v[N_CONTENDERS];
    pthread_t t[N_CONTENDERS];
    volt_handle h[N_CONTENDERS];
    volt_rt *rt = create_on(workers);
    memset(&l, 0, sizeof l);
    object_init(&l.o, kind);
    for (int i = 0; i < N_CONTENDERS; i++) {
        v[i] = (visitor){ &l, i, i == victim ? VOLT_MS(1 + (int)RANDOM_BELOW(4)) : VOLT_NEVER, 0 };
        if (i == victim || i % 2) t[i] = start_thread(visitor_run, &v[i]);
        else RT_SPAWN(rt, &h[i], contender_run, (contender){ .l = &l, .id = i, .way = PLAIN });
        UNTIL(n_come(&l) > i);
    }
    UNTIL(victim < 0 || READ(l.n_gone) == 1);
    CHECK_EQ(n_waiting(&l.o), N_CONTENDERS - (victim >= 0));
    object_open(&l.o);
    for (int i = 0; i < N_CONTENDERS; i++) {
        int64_t rc = 0;
        if (i == victim || i % 2) join_thread(t[i]), rc = v[i].rc;
        else CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, i == victim ? -ETIMEDOUT : object_gives(kind));
    }
    if (is_passed_on(kind)) CHECK_EQ(l.n_through, N_CONTENDERS - (victim >= 0));
    for (int i = 1; i < l.n_through; i++) CHECK(l.order[i] > l.order[i - 1]);
    destroy(rt);
}
// Their time is over just when their turn comes: whichever is first, none is lost.
typedef struct {
    visitor v;
    int n_through;
} hasty;
static void *hasty_run(void *arg) {
    hasty *h = (hasty *)arg;
    object *o = &h->v.l->o;
    for (int i = 0; i < 300; i++) {
        if (o->kind == COND) CHECK_EQ(volt_mutex_lock_sync(&o->mutex, VOLT_NEVER), 0);
        int rc = object_wait_sync(o, VOLT_US((int)RANDOM_BELOW(60)));
        if (rc == object_gives(o->kind)) {
            go_through(h->v.l, h->v.id);
            h->n_through++;
        } else {
            CHECK_EQ(rc, -ETIMEDOUT);
            if (o->kind == COND) volt_mutex_unlock(&o->mutex);
        }
    }
    return NULL;
}
static void run_hasty(int kind) {
    static line l;
    hasty h[4];
    pthread_t t[4];
    memset(&l, 0, sizeof l);
    object_init(&l.o, kind);
    for (int i = 0; i < 4; i++) {
        h[i] = (hasty){ { &l, i, 0, 0 }, 0 };
        t[i] = start_thread(hasty_run, &h[i]);
    }
    object_open(&l.o);
    int n_through = 0;
    for (int i = 0; i < 4; i++) join_thread(t[i]), n_through += h[i].n_through;
    CHECK_EQ(n_through, is_passed_on(kind) ? l.n_through : l.n_free);
    CHECK_EQ(n_waiting(&l.o), 0);
    if (kind < N_PASSED && kind != COND) CHECK_EQ(object_try(&l.o), object_gives(kind));
}

// All waiters are cancelled by a shutdown, and it is free afterwards.
static void run_shutdown(int kind, uint32_t workers) {
    static line l;
    volt_handle h[N_CONTENDERS];
    int64_t rc;
    volt_rt *rt = create_on(workers);
    memset(&l, 0, sizeof l);
    object_init(&l.o, kind);
    for (int i = 0; i < N_CONTENDERS; i++) {
        RT_SPAWN(rt, &h[i], contender_run, (contender){ .l = &l, .id = i, .way = i % SHIELDED });
        UNTIL(n_come(&l) > i);
    }
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(n_waiting(&l.o), 0);
    CHECK_EQ(l.n_gone, N_CONTENDERS);
    for (int i = 0; i < N_CONTENDERS; i++) {
        CHECK_EQ(volt_try_join(&h[i], &rc), 0);
        CHECK(rc == -ECANCELED || rc == -ETIMEDOUT);
    }
    CHECK_EQ(volt_destroy(rt), 0);
    object_open(&l.o);
    if (kind < N_PASSED) CHECK_EQ(object_try(&l.o), kind == COND ? 0 : object_gives(kind));
}

// ---- on a worker
typedef struct {
    volt_frame frame;
    object o;
    int kind, rc;
    volt_arm a, b;
    object other;
} single;
// _sync blocks, and says so; try_ does not wait.
static volt_poll on_a_worker(volt_cx *cx, single *s) {
    VOLT_BEGIN(cx, s);
    object_init(&s->o, s->kind);
    if (s->kind == COND) CHECK_EQ(volt_mutex_try_lock(&s->o.mutex), 0);
    CHECK_EQ(object_wait_sync(&s->o, VOLT_NEVER), -EDEADLK);
    CHECK_EQ(n_waiting(&s->o), 0);
    if (s->kind < N_PASSED) CHECK_EQ(object_try(&s->o), -EAGAIN);
    object_open(&s->o);
    CHECK_EQ(object_wait_sync(&s->o, VOLT_NEVER), -EDEADLK);
    if (s->kind == COND) volt_mutex_unlock(&s->o.mutex);
    if (s->kind < N_PASSED) CHECK_EQ(object_try(&s->o), object_gives(s->kind));
    VOLT_END(0);
}
// One select over two objects: the loser's has no waiter left, and its turn is not taken.
static volt_poll over_two(volt_cx *cx, single *s) {
    VOLT_BEGIN(cx, s);
    object_init(&s->o, s->kind);
    object_init(&s->other, s->kind);
    s->o.mutex.holder_ = NULL; // as if a thread had it
    object_open(&s->other);
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, object_wait(cx, &s->o)),
                                  VOLT_ARM(&s->b, object_wait(cx, &s->other))));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->b.value, object_gives(s->kind));
    CHECK_EQ(n_waiting(&s->o), 0);
    object_open(&s->o);
    object_pass(&s->other);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->a, object_wait(cx, &s->o)),
                                    VOLT_ARM(&s->b, object_wait(cx, &s->other))));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->a.value, object_gives(s->kind));
    CHECK_EQ(s->b.value, object_gives(s->kind));
    VOLT_END(0);
}
// In a scope that is cancelled already nothing is taken, also where it is free.
static volt_poll when_cancelled(volt_cx *cx, single *s) {
    VOLT_BEGIN(cx, s);
    while (!volt_is_cancelled(cx)) VOLT_AWAIT(volt_yield(cx));
    object_init(&s->o, s->kind);
    if (s->kind == COND) CHECK_EQ(volt_mutex_try_lock(&s->o.mutex), 0);
    object_open(&s->o);
    VOLT_AWAIT(s->rc, object_wait(cx, &s->o));
    CHECK_EQ(s->rc, -ECANCELED);
    if (s->kind == COND) volt_mutex_unlock(&s->o.mutex); // it has kept it
    if (s->kind < N_PASSED) CHECK_EQ(object_try(&s->o), object_gives(s->kind));
    VOLT_END(0);
}
static volt_poll when_cancelled_run(volt_cx *cx, void *arg) {
    return when_cancelled(cx, (single *)arg);
}

// A task that is cancelled and waits all the same pays for it: it waits more often than a budget
// has units. Beside the objects: a barrier and a token.
enum { N_DEAF = N_KINDS + 2, DEAF_WAITS = 3 * VOLT_BUDGET };
typedef struct {
    volt_frame frame;
    object o;
    volt_barrier barrier;
    volt_token token;
    int kind, i, rc, n_polls, before;
} deaf;
static volt_poll deaf_wait(volt_cx *cx, deaf *d) {
    if (d->kind < N_KINDS) return object_wait(cx, &d->o);
    return d->kind == N_KINDS ? volt_barrier_wait(cx, &d->barrier)
                              : volt_token_wait(cx, &d->token);
}
static volt_poll deaf_run(volt_cx *cx, void *arg) {
    deaf *d = (deaf *)arg;
    d->n_polls++;
    VOLT_BEGIN(cx, d);
    while (!volt_is_cancelled(cx)) VOLT_AWAIT(volt_yield(cx));
    if (d->kind < N_KINDS) object_init(&d->o, d->kind);
    d->o.mutex.holder_ = NULL; // as if a thread had it
    if (d->kind == COND) CHECK_EQ(volt_mutex_try_lock(&d->o.mutex), 0);
    d->barrier = (volt_barrier)VOLT_BARRIER_INIT(2);
    d->before = d->n_polls;
    for (d->i = 0; d->i < DEAF_WAITS; d->i++) {
        VOLT_AWAIT(d->rc, deaf_wait(cx, d));
        CHECK_EQ(d->rc, -ECANCELED);
    }
    CHECK(d->n_polls - d->before >= DEAF_WAITS / VOLT_BUDGET - 1);
    VOLT_END(d->kind);
}
ROOT_TEST(wait_after_cancellation_spends_budget, { volt_handle h; int kind; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->kind = 0; s->kind < N_DEAF; s->kind++) {
        SPAWN(&s->h, deaf_run, (deaf){ .kind = s->kind });
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->kind);
    }
    VOLT_END(0);
}

// Blocking code may wait for objects that tasks hold.
static int waits_in_a_job(void *arg) {
    object *o = (object *)arg;
    if (o->kind == COND) CHECK_EQ(volt_mutex_lock_sync(&o->mutex, VOLT_NEVER), 0);
    CHECK_EQ(object_wait_sync(o, VOLT_NEVER), object_gives(o->kind));
    object_pass(o);
    return 7;
}
typedef struct {
    volt_frame frame;
    object *o;
    volt_job job;
    int64_t rc;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *k = (asker *)arg;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->rc, volt_blocking(cx, &k->job, waits_in_a_job, k->o));
    VOLT_END(k->rc);
}
typedef struct {
    volt_frame frame;
    object o;
    awaiter a;
    volt_handle h;
    int64_t rc;
} boss;
static volt_poll ask_a_job(volt_cx *cx, boss *b, int kind) {
    VOLT_BEGIN(cx, b);
    object_init(&b->o, kind);
    SPAWN(&b->h, asker_run, (asker){ .o = &b->o });
    VOLT_AWAIT(until_waiting(cx, &b->a, &b->o, 1));
    object_open(&b->o);
    VOLT_AWAIT(b->rc, volt_join(cx, &b->h));
    CHECK_EQ(b->rc, 7);
    VOLT_END(0);
}

#define KIND_TESTS(name_, kind_)                                                                   \
    ROOT_TEST(name_##_cancelled_waiter_takes_nothing, { scenes sc; }) {                            \
        VOLT_BEGIN(cx, s);                                                                         \
        s->sc.kind = kind_;                                                                        \
        VOLT_AWAIT(scenes_run(cx, &s->sc));                                                        \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    ROOT_TEST(name_##_cancelled_grant_is_not_lost, { scenes sc; }) {                               \
        VOLT_BEGIN(cx, s);                                                                         \
        s->sc.kind = kind_;                                                                        \
        s->sc.is_late = 1;                                                                         \
        VOLT_AWAIT(scenes_run(cx, &s->sc));                                                        \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    TEST_OF_THREADS(name_##_serves_waiting_tasks_and_threads) {                                    \
        EACH_WORKERS(w) for (int victim = -1; victim < N_CONTENDERS; victim++)                     \
            run_mixed(kind_, w, victim);                                                           \
    }                                                                                              \
    TEST_OF_THREADS(name_##_grant_at_time_limit_is_not_lost) { run_hasty(kind_); }                 \
    TEST_OF_THREADS(name_##_waits_end_at_shutdown) { EACH_WORKERS(w) run_shutdown(kind_, w); }     \
    ROOT_TEST(name_##_wait_in_blocking_job_ends, { boss b; }) {                                    \
        VOLT_BEGIN(cx, s);                                                                         \
        if (TEST_MOST_WORKERS > 1) VOLT_AWAIT(ask_a_job(cx, &s->b, kind_));                        \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    ROOT_DIES_OF_A_LOCAL(name_##_on_the_stack_is_misuse, { int64_t rc; }) {                        \
        VOLT_BEGIN(cx, s);                                                                         \
        object o;                                                                                  \
        object_init(&o, kind_);                                                                    \
        if (kind_ == COND) CHECK_EQ(volt_mutex_try_lock(&o.mutex), 0);                             \
        VOLT_AWAIT(s->rc, object_wait(cx, &o));                                                    \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    TEST(name_##_sync_wait_times_out) {                                                            \
        static object o;                                                                           \
        object_init(&o, kind_);                                                                    \
        if (kind_ == COND) CHECK_EQ(volt_mutex_try_lock(&o.mutex), 0);                             \
        for (int i = 0; i < 3; i++) CHECK_EQ(object_wait_sync(&o, VOLT_MS(i)), -ETIMEDOUT);        \
        CHECK_EQ(n_waiting(&o), 0);                                                                \
        CHECK_EQ(object_wait_sync(&o, -1), -ETIMEDOUT);                                            \
        if (kind_ < N_PASSED) CHECK_EQ(object_try(&o), -EAGAIN); /* of a cond, it has the mutex */ \
    }                                                                                              \
    ROOT_TEST(name_##_sync_wait_gives_edeadlk_on_worker, { single one; }) {                        \
        VOLT_BEGIN(cx, s);                                                                         \
        s->one.kind = kind_;                                                                       \
        VOLT_AWAIT(on_a_worker(cx, &s->one));                                                      \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    ROOT_TEST(name_##_wait_in_cancelled_task_takes_nothing, { volt_handle h; int64_t rc; }) {      \
        VOLT_BEGIN(cx, s);                                                                         \
        SPAWN(&s->h, when_cancelled_run, (single){ .kind = kind_ });                               \
        volt_cancel(&s->h);                                                                        \
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));                                                   \
        CHECK_EQ(s->rc, 0);                                                                        \
        VOLT_END(0);                                                                               \
    }
#define ARMS_TEST(name_, kind_)                                                                    \
    ROOT_TEST(name_##_losing_arm_takes_nothing, { single one; }) {                                 \
        VOLT_BEGIN(cx, s);                                                                         \
        s->one.kind = kind_;                                                                       \
        VOLT_AWAIT(over_two(cx, &s->one));                                                         \
        VOLT_END(0);                                                                               \
    }

KIND_TESTS(mutex, MUTEX)
KIND_TESTS(fifo_mutex, FIFO)
KIND_TESTS(rwlock_read, READING)
KIND_TESTS(rwlock_write, WRITING)
KIND_TESTS(sem, SEM)
KIND_TESTS(once, ONCE)
KIND_TESTS(notify, NOTIFY)
KIND_TESTS(cond, COND)
KIND_TESTS(event, EVENT)
KIND_TESTS(wait_group, GROUP)
KIND_TESTS(tracker, TRACKER)
KIND_TESTS(notify_past, PAST)
ARMS_TEST(sem, SEM)
ARMS_TEST(once, ONCE)
ARMS_TEST(notify, NOTIFY)
ARMS_TEST(event, EVENT)
ARMS_TEST(wait_group, GROUP)
ARMS_TEST(tracker, TRACKER)
ARMS_TEST(notify_past, PAST)
ARMS_TEST(rwlock_read, READING)
ARMS_TEST(rwlock_write, WRITING)
ARMS_TEST(mutex, MUTEX)
ARMS_TEST(fifo_mutex, FIFO)
