// SPDX-License-Identifier: MIT OR 0BSD
// Blocking: jobs on the thread pool, and calls in place, whose worker another thread takes over.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#define VOLT_POOL_IDLE_NS 30000000 // threads of the pool end after 30 ms

// The seam for threads: creation fails where a test says so.
#include <pthread.h>
static int n_creates, fail_from, fail_count; // creations `fail_from` .. fail, from 1 on
static int n_joined;
static int holding; // they are create_held's; 1: until a job is queued, 2: until a thread rests
static int create_held(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                       void *arg);
static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg);
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) test_thread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) \
    (pthread_join(thread_, NULL), __atomic_add_fetch(&n_joined, 1, __ATOMIC_ACQ_REL))

#include "volt.h"
#include "test.h"
#include "tasks.h"

static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    if (READ(holding)) return create_held(thread, attr, fn, arg);
    int n = COUNT(n_creates), from = READ(fail_from);
    if (from && n >= from && n < from + READ(fail_count)) return EAGAIN;
    return pthread_create(thread, attr, fn, arg);
}
// From here on n creations fail.
static void fail_threads(int n) {
    WRITE(fail_count, n);
    WRITE(fail_from, READ(n_creates) + 1);
}
static volt_counters stats_of(volt_rt *rt) {
    volt_counters s;
    volt_stats(rt, &s);
    return s;
}
static long thread_id(void) { return syscall(SYS_gettid); }

// ---- functions that block

typedef struct {
    int n_in, most_in, n_done; // inside now, most ever, ended
    int is_open;
    long thread;
} place;
static void note_most(place *p, int n) {
    int most = READ(p->most_in);
    while (n > most && !__atomic_compare_exchange_n(&p->most_in, &most, n, 0, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_ACQUIRE)) {}
}
// Until it is opened.
static int wait_for_opening(void *arg) {
    place *p = (place *)arg;
    note_most(p, COUNT(p->n_in));
    UNTIL(READ(p->is_open));
    __atomic_sub_fetch(&p->n_in, 1, __ATOMIC_ACQ_REL);
    COUNT(p->n_done);
    return 7;
}
static int tell_thread(void *arg) {
    place *p = (place *)arg;
    p->thread = thread_id();
    COUNT(p->n_done);
    return 0;
}
static int give_square(void *arg) {
    int n = *(int *)arg;
    CHECK(!VOLT_TLS_GET()); // a plain thread
    if (n % 3 == 0) sched_yield();
    return n * n;
}

typedef struct {
    volt_frame frame;
    volt_job job;
    place *place;
    int *rc, *n_ended;
    int n;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->n, volt_blocking(cx, &a->job, wait_for_opening, a->place));
    if (a->rc) WRITE(*a->rc, a->n);
    if (a->n_ended) COUNT(*a->n_ended);
    VOLT_END(a->n);
}

// ---- the pool

typedef struct {
    volt_frame frame;
    volt_job job;
    int n, rc, i;
} squarer;
static volt_poll squarer_run(volt_cx *cx, void *arg) {
    squarer *s = (squarer *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 5; s->i++) { // one job struct, one call after the other
        VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, give_square, &s->n));
        CHECK_EQ(s->rc, s->n * s->n);
        s->n++;
    }
    VOLT_END(s->rc);
}
enum { SQUARERS = 100 };
ROOT_TEST(jobs_give_what_their_functions_return, {
    volt_group group;
    int i;
    uint64_t id;
    int64_t rc, sum;
}) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->group);
    for (s->i = 0; s->i < SQUARERS; s->i++)
        GROUP_SPAWN(&s->group, squarer_run, (squarer){ .n = s->i });
    for (s->sum = 0; s->i > 0; s->i--) {
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->group, &s->id));
        CHECK_EQ(s->rc, (s->id + 4) * (s->id + 4));
        s->sum++;
    }
    CHECK_EQ(s->sum, SQUARERS);
#ifndef VOLT_SINGLE_THREAD
    CHECK_EQ(stats_of(volt_cx_rt(cx)).blocking_jobs, 5 * SQUARERS);
#endif
    VOLT_AWAIT(volt_group_close(cx, &s->group));
    VOLT_END(0);
}
// No errno has that number. It would mean that the wait goes on.
static int give_4096(void *n_calls) {
    COUNT(*(int *)n_calls);
    return -4096;
}
ROOT_TEST_1(job_that_returns_4096_below_0_is_called_once, {
    volt_job job;
    volt_detached_job detached;
    int n_calls;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, give_4096, &s->n_calls));
    CHECK(s->rc == -EINVAL && READ(s->n_calls) == 1);
    VOLT_AWAIT(s->rc, volt_blocking_detach(cx, &s->detached, give_4096, &s->n_calls, NULL));
    CHECK(s->rc == -EINVAL && READ(s->n_calls) == 2);
    VOLT_END(0);
}
static volt_rt *create_pool(uint32_t workers, uint32_t most) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.max_blocking_threads = most;
    c.start_all_workers = 1; // threads that are created later are the pool's
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
TEST_OF_THREADS(pool_queues_jobs_beyond_max_blocking_threads) {
    for (uint32_t most = 1; most <= 4; most++) {
        place p = { 0 };
        int n_ended = 0;
        volt_rt *rt = create_pool(1, most);
        for (int i = 0; i < 10; i++)
            RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
        UNTIL(READ(p.n_in) == (int)most);
        UNTIL(stats_of(rt).blocking_queued == 10 - most);
        CHECK_EQ(stats_of(rt).blocking_threads, most);
        CHECK_EQ(stats_of(rt).blocking_idle, 0);
        WRITE(p.is_open, 1);
        UNTIL(READ(n_ended) == 10);
        CHECK_EQ(READ(p.most_in), most);
        CHECK_EQ(stats_of(rt).blocking_jobs, 10);
        CHECK_EQ(stats_of(rt).blocking_queued, 0);
        destroy(rt);
    }
}
TEST_OF_THREADS(pool_thread_is_reused_and_ends_once_idle) {
    place p = { 0 };
    int n_ended = 0;
    volt_rt *rt = create_pool(2, 0);
    for (int i = 0; i < 3; i++)
        RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 3);
    CHECK_EQ(stats_of(rt).blocking_threads, 3);
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 3);
    int joined = READ(n_joined);
    UNTIL(stats_of(rt).blocking_threads == 0); // by itself
    UNTIL(READ(n_joined) == joined + 2);       // each the one before it
    for (int i = 4; i <= 20; i++) {
        RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
        UNTIL(READ(n_ended) == i);
        UNTIL(stats_of(rt).blocking_idle == stats_of(rt).blocking_threads);
        CHECK(stats_of(rt).blocking_threads <= 1);
    }
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    volt_job job;
    place *place;
} teller;
static volt_poll teller_run(volt_cx *cx, void *arg) {
    teller *t = (teller *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(volt_blocking(cx, &t->job, tell_thread, t->place));
    VOLT_END(0);
}
TEST_OF_THREADS(pool_reuses_most_recently_idle_thread_first) {
    place p = { 0 }, told = { 0 };
    long last = 0;
    int n_ended = 0, n_same = 0;
    volt_rt *rt = create_pool(1, 4);
    for (int i = 0; i < 4; i++)
        RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 4);
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 4);
    for (int i = 0; i < 200; i++) {
        UNTIL(stats_of(rt).blocking_idle == stats_of(rt).blocking_threads);
        RT_SPAWN(rt, NULL, teller_run, (teller){ .place = &told });
        UNTIL(READ(told.n_done) == i + 1);
        n_same += told.thread == last;
        last = told.thread;
    }
    CHECK(n_same >= 150); // while the three others rest for good; a slow machine ends some
    destroy(rt);
}
TEST_OF_THREADS(queued_job_is_cancelled_without_running) {
    place p = { 0 }, never = { 0 };
    int n_ended = 0, rc = 0;
    volt_handle first = { NULL }, second = { NULL };
    int64_t result = 0;
    volt_rt *rt = create_pool(2, 1);
    RT_SPAWN(rt, &first, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1);
    for (int i = 0; i < 50; i++) {
        RT_SPAWN(rt, &second, asker_run, (asker){ .place = &never, .rc = &rc });
        if (i % 2) UNTIL(stats_of(rt).blocking_queued == 1);
        volt_cancel(&second);
        CHECK_EQ(volt_join_sync(&second, VOLT_NEVER, &result), 0);
        CHECK_EQ(result, -ECANCELED);
        CHECK_EQ(stats_of(rt).blocking_queued, 0);
    }
    WRITE(p.is_open, 1);
    CHECK_EQ(volt_join_sync(&first, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 7);
    CHECK_EQ(READ(never.n_in) + READ(never.n_done), 0);
    destroy(rt);
}
// From any place in the queue, and the others keep theirs.
TEST_OF_THREADS(queued_jobs_are_cancelled_in_any_order) {
    enum { MANY = 5 };
    static const int order[MANY] = { 2, 3, 4, 0, 1 }; // middle, middle, last, first, alone
    place p = { 0 }, never = { 0 };
    volt_handle first = { NULL }, h[MANY];
    int64_t result = 0;
    volt_rt *rt = create_pool(2, 1);
    RT_SPAWN(rt, &first, asker_run, (asker){ .place = &p });
    UNTIL(READ(p.n_in) == 1);
    for (int i = 0; i < MANY; i++) {
        RT_SPAWN(rt, &h[i], asker_run, (asker){ .place = &never });
        UNTIL(stats_of(rt).blocking_queued == (uint64_t)i + 1);
    }
    for (int i = 0; i < MANY; i++) {
        volt_cancel(&h[order[i]]);
        CHECK_EQ(volt_join_sync(&h[order[i]], VOLT_NEVER, &result), 0);
        CHECK_EQ(result, -ECANCELED);
        CHECK_EQ(stats_of(rt).blocking_queued, MANY - 1 - i);
        int n = 0;
        volt__lock(&rt->pool.lock);
        for (const volt_job *job = rt->pool.lane[VOLT__LANE_WORK].head; job; job = job->next_) n++;
        volt__unlock(&rt->pool.lock);
        CHECK_EQ(n, MANY - 1 - i);
    }
    WRITE(p.is_open, 1);
    CHECK_EQ(volt_join_sync(&first, VOLT_NEVER, &result), 0);
    CHECK_EQ(READ(never.n_in) + READ(never.n_done), 0);
    destroy(rt);
}
TEST_OF_THREADS(running_job_outlasts_cancel_and_gives_its_result) {
    place p = { 0 };
    int64_t result = 0;
    volt_handle h = { NULL };
    volt_rt *rt = create_pool(2, 1);
    RT_SPAWN(rt, &h, asker_run, (asker){ .place = &p });
    UNTIL(READ(p.n_in) == 1);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), &result), -ETIMEDOUT);
    WRITE(p.is_open, 1);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 7); // it has happened, so it is told
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    volt_job job;
    volt_timer limit;
    volt_time at_most;
    place *place;
    int64_t rc;
} hurried;
static volt_poll hurried_run(volt_cx *cx, void *arg) {
    hurried *h = (hurried *)arg;
    VOLT_BEGIN(cx, h);
    VOLT_AWAIT(h->rc, volt_within(cx, &h->limit, h->at_most,
                                  volt_blocking(cx, &h->job, wait_for_opening, h->place)));
    VOLT_END(h->rc);
}
TEST_OF_THREADS(time_limit_ends_queued_job_but_not_running_one) {
    place p = { 0 };
    int64_t result = 0;
    volt_handle runs = { NULL }, waits = { NULL };
    volt_rt *rt = create_pool(1, 1);
    RT_SPAWN(rt, &runs, hurried_run, (hurried){ .place = &p, .at_most = VOLT_MS(200) });
    UNTIL(READ(p.n_in) == 1);
    RT_SPAWN(rt, &waits, hurried_run, (hurried){ .place = &p, .at_most = VOLT_MS(5) });
    CHECK_EQ(volt_join_sync(&waits, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(volt_join_sync(&runs, VOLT_MS(250), &result), -ETIMEDOUT);
    WRITE(p.is_open, 1);
    CHECK_EQ(volt_join_sync(&runs, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 7);
    destroy(rt);
}
TEST_OF_THREADS(job_without_thread_fails_unless_another_job_runs) {
    place p = { 0 };
    int rc = 0, n_ended = 0;
    volt_rt *rt = create_pool(1, 0);
    fail_threads(1000);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(READ(n_ended) == 1);
    CHECK_EQ(READ(rc), -EAGAIN);
    CHECK_EQ(stats_of(rt).blocking_threads, 0);
    fail_threads(0);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1);
    fail_threads(1000);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(stats_of(rt).blocking_queued == 1); // the thread that runs comes to it
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 3);
    CHECK_EQ(READ(rc), 7);
    CHECK_EQ(READ(p.most_in), 1);
    destroy(rt);
}
// The last call of on_thread keeps a thread of the pool, after its time without work, until the
// test lets it go.
typedef struct {
    int n_in, is_open;
} leaving;
static void leave_slowly(void *user, uint32_t worker, int is_start) {
    leaving *l = (leaving *)user;
    if (is_start || worker != UINT32_MAX) return;
    COUNT(l->n_in);
    UNTIL(READ(l->is_open));
}
static volt_rt *create_leaving(leaving *l) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.on_thread.fn = leave_slowly;
    c.on_thread.user = l;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
TEST_OF_THREADS(job_does_not_wait_for_a_thread_that_ends) {
    leaving l = { 0 };
    place p = { .is_open = 1 };
    int n_ended = 0, rc = 0;
    volt_rt *rt = create_leaving(&l);
    for (int i = 1; i <= 3; i++) {
        RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
        UNTIL(READ(n_ended) == i);
        CHECK_EQ(READ(rc), 7);
        UNTIL(READ(l.n_in) == i);
    }
    WRITE(l.is_open, 1);
    destroy(rt);
}
TEST_OF_THREADS(job_fails_if_the_only_thread_is_about_to_end) {
    leaving l = { 0 };
    place p = { .is_open = 1 };
    int n_ended = 0, rc = 0;
    volt_rt *rt = create_leaving(&l);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
    UNTIL(READ(l.n_in) == 1);
    fail_threads(1);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(READ(n_ended) == 2);
    CHECK_EQ(READ(rc), -EAGAIN);
    WRITE(l.is_open, 1);
    destroy(rt);
}
TEST_OF_THREADS(job_without_memory_fails_unless_another_job_runs) {
    place p = { 0 };
    int rc = 0, n_ended = 0;
    volt_rt *rt = create_pool(1, 0);
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1); // there is a slab for the next task
    test_heap.is_sticky = 1;
    test_heap.fail_at = READ(test_heap.n_allocs) + 1;
    // a thread runs: it comes to the second one
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(stats_of(rt).blocking_queued == 1);
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 2);
    CHECK_EQ(READ(rc), 7);
    UNTIL(stats_of(rt).blocking_threads == 0);
    test_heap.fail_at = READ(test_heap.n_allocs) + 1;
    RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc, .n_ended = &n_ended });
    UNTIL(READ(n_ended) == 3);
    CHECK_EQ(READ(rc), -ENOMEM);
    test_heap.fail_at = 0;
    destroy(rt);
}
// A job is queued behind one whose thread cannot be started: no thread would ever run it.
static int n_held;
static volt_rt *held_rt;
static place held_place;
static int held_rc, n_held_ended;
static int create_held(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                       void *arg) {
    (void)thread, (void)attr, (void)fn, (void)arg;
    COUNT(n_held);
    if (READ(holding) == 1) UNTIL(stats_of(held_rt).blocking_queued == 1);
    WRITE(held_place.is_open, 1);
    if (READ(holding) == 2) { // or has rested and ended, on a slow machine
        volt_counters s;
        do s = stats_of(held_rt);
        while (s.blocking_idle == 0 && s.blocking_threads > 1);
        burn(VOLT_MS(2)); // it sleeps by then
    }
    return EAGAIN;
}
TEST_OF_THREADS(job_queued_behind_failed_thread_fails_too) {
    int rc = 0;
    held_rt = create_pool(2, 1);
    WRITE(holding, 1);
    RT_SPAWN(held_rt, NULL, asker_run,
             (asker){ .place = &held_place, .rc = &rc, .n_ended = &n_held_ended });
    UNTIL(READ(n_held) == 1);
    RT_SPAWN(held_rt, NULL, asker_run,
             (asker){ .place = &held_place, .rc = &held_rc, .n_ended = &n_held_ended });
    UNTIL(READ(n_held_ended) == 2);
    CHECK_EQ(READ(rc), -EAGAIN);
    CHECK_EQ(READ(held_rc), -EAGAIN);
    WRITE(holding, 0);
    destroy(held_rt);
}
// The thread of another job comes to rest meanwhile: it runs what the failed one was to run. It is
// woken for it: after its 30 ms it would look by itself.
TEST_OF_THREADS(idle_thread_runs_job_of_thread_that_failed_to_start) {
    for (int tries = 0, is_quick = 0; !is_quick; tries++) { // some do not rest for long enough
        int first_rc = 0, rc = 0;
        CHECK(tries < 50);
        n_held_ended = 0;
        memset(&held_place, 0, sizeof held_place);
        held_rt = create_pool(2, 2);
        RT_SPAWN(held_rt, NULL, asker_run,
                 (asker){ .place = &held_place, .rc = &first_rc, .n_ended = &n_held_ended });
        UNTIL(READ(held_place.n_in) == 1);
        WRITE(holding, 2);
        volt_time start = volt_now();
        RT_SPAWN(held_rt, NULL, asker_run,
                 (asker){ .place = &held_place, .rc = &rc, .n_ended = &n_held_ended });
        UNTIL(READ(n_held_ended) == 2);
        is_quick = rc == 7 && volt_now() - start < VOLT_POOL_IDLE_NS;
        CHECK_EQ(READ(first_rc), 7);
        CHECK(READ(rc) == 7 || READ(rc) == -EAGAIN);
        CHECK_EQ(READ(held_place.n_done), READ(rc) == 7 ? 2 : 1);
        CHECK(stats_of(held_rt).blocking_threads <= 1);
        WRITE(holding, 0);
        destroy(held_rt);
    }
}

// ---- at a shutdown

TEST_OF_THREADS(shutdown_cancels_queued_jobs_and_waits_for_running_ones) {
    place p = { 0 };
    int rc[3] = { 0 }, n_ended = 0;
    volt_rt *rt = create_pool(2, 1);
    for (int i = 0; i < 3; i++)
        RT_SPAWN(rt, NULL, asker_run, (asker){ .place = &p, .rc = &rc[i], .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1);
    UNTIL(stats_of(rt).blocking_queued == 2);
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(20)), 1);
    CHECK_EQ(READ(n_ended), 2);
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    WRITE(p.is_open, 1);
    destroy(rt);
    int n_run = 0;
    for (int i = 0; i < 3; i++) n_run += rc[i] == 7;
    CHECK_EQ(n_run, 1);
    for (int i = 0; i < 3; i++) CHECK(rc[i] == 7 || rc[i] == -ECANCELED);
}

// ---- in place

typedef struct {
    volt_frame frame;
    place *mine, *next;  // waits for `mine`; before that opens `next`, if any
    int *n_ended, *n_begun;
    int rc;
    volt__worker *worker;
    long thread;
} blocker;
static volt_poll blocker_run(volt_cx *cx, void *arg) {
    blocker *b = (blocker *)arg;
    VOLT_BEGIN(cx, b);
    b->worker = cx->worker_;
    b->thread = thread_id();
    if (b->next) WRITE(b->next->is_open, 1);
    b->rc = volt_block_in_place(cx, wait_for_opening, b->mine);
    CHECK(b->rc == 7 && cx->worker_ == b->worker && b->thread == thread_id());
    CHECK(VOLT_TLS_GET() == b->worker && volt__current_worker(volt_cx_rt(cx)) == b->worker);
    VOLT_AWAIT(b->rc, volt_sleep(cx, VOLT_MS(1))); // timers and the rest of the poll as ever
    COUNT(*b->n_ended);
    VOLT_END(b->rc);
}
// Each is let go by the next one: all are inside at once, on as many workers as there are.
enum { DEEP = 6 };
static void block_deep(uint32_t workers) {
    place p[DEEP] = { { 0 } };
    int n_ended = 0;
    volt_rt *rt = create_on(workers);
    for (int i = 0; i < DEEP; i++) {
        RT_SPAWN(rt, NULL, blocker_run,
                 (blocker){ .mine = &p[i], .next = i == DEEP - 1 ? &p[i] : NULL,
                            .n_ended = &n_ended });
        UNTIL(READ(p[i].n_in) == 1 || i == DEEP - 1);
    }
    UNTIL(READ(n_ended) == 1);
    for (int i = DEEP - 1; i-- > 0;) { // the innermost first
        WRITE(p[i].is_open, 1);
        UNTIL(READ(n_ended) == DEEP - i);
    }
    destroy(rt);
}
TEST_OF_THREADS(handoff_keeps_worker_running_while_tasks_block) {
    EACH_WORKERS(w) block_deep(w);
}
TEST_OF_THREADS(handoffs_end_in_any_order) {
    EACH_WORKERS(w) {
        for (int round = 0; round < 40; round++) {
            place p[DEEP] = { { 0 } };
            int n_ended = 0;
            volt_rt *rt = create_on(w);
            for (int i = 0; i < DEEP; i++) {
                RT_SPAWN(rt, NULL, blocker_run,
                         (blocker){ .mine = &p[i], .n_ended = &n_ended });
                UNTIL(READ(p[i].n_in) == 1);
            }
            for (int n = 0; n < DEEP;) {
                int i = (int)RANDOM_BELOW(DEEP);
                n += !READ(p[i].is_open);
                WRITE(p[i].is_open, 1);
            }
            UNTIL(READ(n_ended) == DEEP);
            destroy(rt);
        }
    }
}
static int nothing(void *arg) {
    COUNT(*(int *)arg);
    return 0;
}
static int yield_some(void *arg) {
    for (uint64_t n = RANDOM_BELOW(20); n > 0; n--) sched_yield();
    COUNT(*(int *)arg);
    return 0;
}
typedef struct {
    volt_frame frame;
    int *n_calls, *n_ended;
    int i, n, rc;
} mixer;
static volt_poll mixer_run(volt_cx *cx, void *arg) {
    mixer *m = (mixer *)arg;
    VOLT_BEGIN(cx, m);
    for (m->i = 0; m->i < m->n; m->i++) {
        int (*fn)(void *) = RANDOM_BELOW(2) ? nothing : yield_some;
        CHECK_EQ(volt_block_in_place(cx, fn, m->n_calls), 0);
        if (m->i % 3 == 0) VOLT_AWAIT(m->rc, volt_yield(cx));
        if (m->i % 17 == 0) VOLT_AWAIT(m->rc, volt_sleep(cx, VOLT_MS(1)));
    }
    COUNT(*m->n_ended);
    VOLT_END(0);
}
TEST_OF_THREADS(block_in_place_makes_each_call_of_many_tasks_once) {
    enum { TASKS = 12, CALLS = 100 };
    EACH_WORKERS(w) {
        int n_calls = 0, n_ended = 0;
        volt_rt *rt = create_on(w);
        for (int i = 0; i < TASKS; i++)
            RT_SPAWN(rt, NULL, mixer_run,
                     (mixer){ .n_calls = &n_calls, .n_ended = &n_ended, .n = CALLS });
        UNTIL(READ(n_ended) == TASKS);
        CHECK_EQ(READ(n_calls), TASKS * CALLS);
        destroy(rt);
    }
}
// A wait that blocks in its second poll, the last try of its time limit, until the worker has
// polled another task.
typedef struct {
    volt_frame frame;
    volt_timer timer;
    volt_rt *rt;
    int n_polls;
    int64_t rc;
} last_try;
static int run_another(void *rt) {
    volt_handle h = { NULL };
    RT_SPAWN((volt_rt *)rt, &h, giver_run, (giver){ .value = 0 });
    return volt_join_sync(&h, VOLT_NEVER, NULL);
}
static volt_poll blocks_in_last_try(volt_cx *cx, last_try *t) {
    if (++t->n_polls == 2) CHECK_EQ(volt_block_in_place(cx, run_another, t->rt), 0);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
static volt_poll last_try_run(volt_cx *cx, void *arg) {
    last_try *t = (last_try *)arg;
    VOLT_BEGIN(cx, t);
    t->rt = volt_cx_rt(cx);
    VOLT_AWAIT(t->rc, volt_within(cx, &t->timer, VOLT_MS(1), blocks_in_last_try(cx, t)));
    CHECK_EQ(t->rc, -ETIMEDOUT);
    CHECK_EQ(t->n_polls, 3); // the first, the last try, and the cancelled one
    VOLT_END(0);
}
TEST_OF_THREADS(last_try_of_a_time_limit_may_block_in_place) {
    last_try t = { .n_polls = 0 };
    CHECK_EQ(run_on(1, last_try_run, &t), 0);
}
// The root of volt_run is on the application's thread, and stays there.
typedef struct {
    volt_frame frame;
    place place;
    int n_ended, rc;
    long thread;
} main_state;
static volt_poll opener_run(volt_cx *cx, void *arg);
typedef struct {
    volt_frame frame;
    place *place;
    int *n_ended;
    int rc;
} opener;
static volt_poll opener_run(volt_cx *cx, void *arg) {
    opener *o = (opener *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_sleep(cx, VOLT_MS(2)));
    WRITE(o->place->is_open, 1);
    COUNT(*o->n_ended);
    VOLT_END(0);
}
static volt_poll main_run(volt_cx *cx, void *arg) {
    main_state *m = (main_state *)arg;
    VOLT_BEGIN(cx, m);
    if (cx->worker_->index != 0) m->thread = thread_id(); // another worker was quicker
    for (int i = 0; i < 5; i++) {
        m->place.is_open = 0;
        SPAWN(NULL, opener_run, (opener){ .place = &m->place, .n_ended = &m->n_ended });
        CHECK_EQ(volt_block_in_place(cx, wait_for_opening, &m->place), 7);
        CHECK_EQ(thread_id(), m->thread);
    }
    VOLT_END(0);
}
TEST_OF_THREADS(thread_of_volt_run_gets_its_worker_back_after_handoff) {
    for (uint32_t w = 1; w <= 4; w *= 2) {
        main_state m;
        memset(&m, 0, sizeof m);
        m.thread = thread_id();
        CHECK_EQ(run_on(w, main_run, &m), 0);
        CHECK_EQ(READ(m.place.n_done), 5);
    }
}
// Inside the call volt's plain-thread functions work, also on the same runtime.
static int join_another(void *arg) {
    volt_rt *rt = (volt_rt *)arg;
    volt_handle h = { NULL };
    int64_t result = 0;
    giver state = { .value = 5 };
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 37 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    return (int)result + volt_block_on(rt, giver_run, &state);
}
ROOT_TEST(call_in_place_may_wait_for_tasks_of_its_runtime, { int rc; }) {
    VOLT_BEGIN(cx, s);
#ifndef VOLT_SINGLE_THREAD
    s->rc = volt_block_in_place(cx, join_another, volt_cx_rt(cx));
    CHECK_EQ(s->rc, 42);
#else
    (void)join_another;
#endif
    VOLT_END(0);
}
// While a thread is in the call, another carries its worker: that one may not give up, but goes on.
typedef struct {
    volt_frame frame;
    volt_shield shield;
    int *n_ended;
    int rc;
} stubborn;
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *s = (stubborn *)arg;
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(60)));
    volt_shield_end(cx, &s->shield);
    COUNT(*s->n_ended);
    VOLT_END(s->rc);
}
static int join_it(void *arg) { return volt_join_sync((volt_handle *)arg, VOLT_NEVER, NULL); }
typedef struct {
    volt_frame frame;
    volt_handle h;
    int *n_ended;
    int rc;
} joiner;
static volt_poll joiner_run(volt_cx *cx, void *arg) {
    joiner *j = (joiner *)arg;
    VOLT_BEGIN(cx, j);
    SPAWN(&j->h, stubborn_run, (stubborn){ .n_ended = j->n_ended });
    CHECK_EQ(volt_block_in_place(cx, join_it, &j->h), 0);
    COUNT(*j->n_ended);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int *n_ended;
    int rc;
} short_root;
static volt_poll short_root_run(volt_cx *cx, void *arg) {
    short_root *r = (short_root *)arg;
    VOLT_BEGIN(cx, r);
    SPAWN(NULL, joiner_run, (joiner){ .n_ended = r->n_ended });
    VOLT_END(0);
}
TEST_OF_THREADS(expired_drain_does_not_stop_carrier_of_blocked_worker) {
    int n_ended = 0;
    short_root root;
    memset(&root, 0, sizeof root);
    root.n_ended = &n_ended;
    volt_config c = test_config(1);
    c.drain_timeout = VOLT_MS(20);
    int rc = volt_run(&c, short_root_run, &root);
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    CHECK_EQ(READ(n_ended), 2);
    test_pass_and_exit();
}
// Without a thread it blocks its worker: others take what they can.
TEST_OF_THREADS(other_workers_go_on_while_one_blocks_without_handoff) {
    place p = { 0 };
    int n_ended = 0, n_given = 0;
    volt_rt *rt = create_pool(2, 0);
    fail_threads(1000);
    RT_SPAWN(rt, NULL, blocker_run, (blocker){ .mine = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1);
    CHECK_EQ(stats_of(rt).handoffs, 0);
    FILE *out = tmpfile();
    char line[128];
    CHECK(out);
    CHECK_EQ(volt_dump(rt, fileno(out), 0), 0);
    rewind(out);
    int n_blocked = 0;
    while (fgets(line, sizeof line, out)) n_blocked += strstr(line, ": blocked, queued ") != NULL;
    fclose(out);
    CHECK_EQ(n_blocked, 1);
    for (int i = 0; i < 50; i++) RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &n_given });
    UNTIL(READ(n_given) == 50);
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 1);
    for (uint32_t i = 0; i < 2; i++)
        CHECK(volt__worker_load(rt, i) < UINT32_MAX); // may be chosen again
    destroy(rt);
}
// With no other thread to take over, either, it just blocks.
TEST_OF_THREADS(single_worker_blocks_in_place_without_handoff) {
    place p = { 0 };
    int n_ended = 0;
    volt_rt *rt = create_pool(1, 0);
    fail_threads(1000);
    WRITE(p.is_open, 1);
    RT_SPAWN(rt, NULL, blocker_run, (blocker){ .mine = &p, .n_ended = &n_ended });
    UNTIL(READ(n_ended) == 1);
    CHECK_EQ(stats_of(rt).handoffs, 0);
    destroy(rt);
}
// A worker that is queued up with tasks when it blocks.
typedef struct {
    volt_frame frame;
    place *place;
    int *n_given, *n_ended;
} busy;
static volt_poll busy_run(volt_cx *cx, void *arg) {
    busy *b = (busy *)arg;
    VOLT_BEGIN(cx, b);
    for (int i = 0; i < 20; i++) SPAWN(NULL, giver_run, (giver){ .n_ended = b->n_given });
    volt_block_in_place(cx, wait_for_opening, b->place);
    COUNT(*b->n_ended);
    VOLT_END(0);
}
TEST_OF_THREADS(tasks_queued_at_worker_run_while_it_blocks) {
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        place p = { 0 };
        int n_ended = 0, n_given = 0;
        fail_threads(0);
        volt_rt *rt = create_pool(has_threads ? 1 : 2, 0);
        fail_threads(has_threads ? 0 : 1000);
        RT_SPAWN(rt, NULL, busy_run,
                 (busy){ .place = &p, .n_given = &n_given, .n_ended = &n_ended });
        UNTIL(READ(n_given) == 20);
        WRITE(p.is_open, 1);
        UNTIL(READ(n_ended) == 1);
        destroy(rt);
    }
}
TEST_OF_THREADS(shutdown_waits_for_task_that_blocks_in_place) {
    EACH_WORKERS(w) {
        place p = { 0 };
        int n_ended = 0;
        volt_rt *rt = create_pool(w, 0);
        RT_SPAWN(rt, NULL, blocker_run, (blocker){ .mine = &p, .n_ended = &n_ended });
        UNTIL(READ(p.n_in) == 1);
        CHECK_EQ(volt_shutdown(rt, VOLT_MS(10)), 1);
        CHECK_EQ(volt_destroy(rt), -EBUSY);
        WRITE(p.is_open, 1);
        destroy(rt);
        CHECK_EQ(n_ended, 1);
    }
}
TEST_OF_THREADS(guest_blocks_in_its_own_thread) {
    int n_calls = 0, n_ended = 0;
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, NULL, mixer_run, (mixer){ .n_calls = &n_calls, .n_ended = &n_ended, .n = 3 });
    while (READ(n_ended) == 0) CHECK(volt_rt_step(rt, 0) >= 0);
    CHECK_EQ(n_calls, 3);
    CHECK_EQ(stats_of(rt).blocking_threads, 0);
    CHECK_EQ(stats_of(rt).handoffs, 0);
    destroy(rt);
}
// Also beside other workers, which take what waits there by themselves: it stays at its worker.
static int join_in_vain(void *arg) {
    volt_handle h = { NULL };
    giver state = { .value = 5 };
    RT_SPAWN((volt_rt *)arg, &h, giver_run, (giver){ .value = 37 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), -EDEADLK);
    volt_detach(&h);
    return volt_block_on((volt_rt *)arg, giver_run, &state);
}
typedef struct {
    volt_frame frame;
    int *n_ended;
} vain;
static volt_poll vain_run(volt_cx *cx, void *arg) {
    vain *v = (vain *)arg;
    VOLT_BEGIN(cx, v);
    CHECK_EQ(cx->worker_->index, 0);
    CHECK_EQ(volt_block_in_place(cx, join_in_vain, volt_cx_rt(cx)), -EDEADLK);
    COUNT(*v->n_ended);
    VOLT_END(0);
}
// Holds its worker inside its poll.
static volt_poll hold_run(volt_cx *cx, void *arg) {
    blocker *b = (blocker *)arg;
    VOLT_BEGIN(cx, b);
    (void)wait_for_opening(b->mine);
    COUNT(*b->n_ended);
    VOLT_END(0);
}
TEST_OF_THREADS(guest_that_blocks_in_place_may_not_wait_for_tasks) {
    place p = { 0 };
    int n_ended = 0;
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    c.start_all_workers = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, NULL, hold_run, (blocker){ .mine = &p, .n_ended = &n_ended });
    UNTIL(READ(p.n_in) == 1); // by the other worker, as no thread has stepped
    RT_SPAWN(rt, NULL, vain_run, (vain){ .n_ended = &n_ended });
    while (READ(n_ended) == 0) CHECK(volt_rt_step(rt, 0) >= 0);
    WRITE(p.is_open, 1);
    UNTIL(READ(n_ended) == 2);
    CHECK_EQ(stats_of(rt).handoffs, 0);
    destroy(rt);
}
TEST_DIES(job_for_two_calls_at_once_is_caught, "volt_job is in use by another call") {
    place p = { 0 };
    volt_rt *rt = create_on(1);
    asker *a = (asker *)volt_task_create(rt, asker_run, sizeof *a);
    CHECK(a);
    a->place = &p;
    a->job.state_ = 1;
    volt_task_start(a, NULL);
    UNTIL(READ(p.n_in));
}

// ---- calls that may be left

static int n_dropped;
static void drop_place(void *arg) {
    place *p = (place *)arg;
    COUNT(n_dropped);
    free(p);
}
static place *make_place(void) {
    place *p = (place *)calloc(1, sizeof *p);
    CHECK(p);
    return p;
}
typedef struct {
    volt_frame frame;
    volt_detached_job errand;
    volt_timer limit;
    volt_arm call, begins;
    awaiter looks;
    place *place;
    volt_time at_most;
    int rc, *n_ended;
} leaver;
// Leaves as soon as it has begun.
static volt_poll leaves_run(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc,
               VOLT_SELECT(VOLT_ARM(&l->call,
                                    volt_blocking_detach(cx, &l->errand, wait_for_opening,
                                                         l->place, drop_place)),
                           VOLT_ARM(&l->begins, until_reaches(cx, &l->looks, &l->place->n_in, 1))));
    CHECK(l->rc == 1 && l->call.value == -ECANCELED && !l->errand.impl_);
    if (l->n_ended) COUNT(*l->n_ended);
    VOLT_END(0);
}
static volt_poll leaver_run(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_within(cx, &l->limit, l->at_most,
                                  volt_blocking_detach(cx, &l->errand, wait_for_opening,
                                                       l->place, drop_place)));
    CHECK(!l->errand.impl_);
    if (l->rc == 7 || l->rc == -EAGAIN || l->rc == -ENOMEM) free(l->place); // still ours
    if (l->n_ended) COUNT(*l->n_ended);
    VOLT_END(l->rc);
}
#define TO_LEAVE(place_, at_most_, n_ended_) \
    (leaver){ .place = (place_), .at_most = (at_most_), .n_ended = (n_ended_) }
TEST_OF_THREADS(detached_job_drops_argument_only_if_wait_is_cancelled) {
    EACH_WORKERS(w) {
        int n_ended = 0;
        int64_t rc;
        volt_handle h = { NULL };
        volt_rt *rt = create_pool(w, 1);
        WRITE(n_dropped, 0);
        // to its end
        place *p = make_place();
        WRITE(p->is_open, 1);
        RT_SPAWN(rt, &h, leaver_run, TO_LEAVE(p, VOLT_NEVER, &n_ended));
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 7);
        CHECK_EQ(READ(n_dropped), 0);
        // left in the middle: at once, and dropped when it has returned
        p = make_place();
        RT_SPAWN(rt, &h, leaves_run, TO_LEAVE(p, 0, &n_ended));
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 0);
        CHECK_EQ(READ(p->n_in), 1);
        CHECK_EQ(READ(n_dropped), 0);
        // behind it, taken back before it has begun
        RT_SPAWN(rt, &h, leaver_run, TO_LEAVE(make_place(), VOLT_MS(5), &n_ended));
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, -ETIMEDOUT);
        CHECK_EQ(READ(n_dropped), 1);
        // or before it asks, if the cancellation is that early
        RT_SPAWN(rt, &h, leaver_run, TO_LEAVE(make_place(), -1, &n_ended));
        volt_cancel(&h);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
        CHECK(rc == -ECANCELED || rc == -ETIMEDOUT);
        CHECK_EQ(READ(n_dropped), 2);
        CHECK_EQ(stats_of(rt).blocking_queued, 0);
        WRITE(p->is_open, 1);
        UNTIL(READ(n_dropped) == 3);
        destroy(rt);
    }
}
// The wait is cancelled when the function has returned already, and its task has not run since.
typedef struct {
    volt_frame frame;
    volt_handle h;
    awaiter looks;
    place *place;
    int64_t rc;
} late_canceller;
static int has_ended(volt_rt *rt, const leaver *l) {
    volt__lock(&rt->pool.lock);
    int is_done = l->errand.impl_->is_done;
    volt__unlock(&rt->pool.lock);
    return is_done;
}
static volt_poll late_canceller_run(volt_cx *cx, void *arg) {
    late_canceller *c = (late_canceller *)arg;
    VOLT_BEGIN(cx, c);
    SPAWN(&c->h, leaver_run, TO_LEAVE(c->place, VOLT_NEVER, NULL));
    VOLT_AWAIT(until_reaches(cx, &c->looks, &c->place->n_in, 1));
    WRITE(c->place->is_open, 1);
    UNTIL(has_ended(volt_cx_rt(cx), (leaver *)volt__task_state(c->h.task_)));
    volt_cancel(&c->h); // this task holds the only worker
    VOLT_AWAIT(c->rc, volt_join(cx, &c->h));
    VOLT_END(c->rc);
}
TEST_OF_THREADS(detached_job_that_has_ended_gives_its_result_despite_cancel) {
    static late_canceller c;
    volt_rt *rt = create_pool(1, 1);
    WRITE(n_dropped, 0);
    c.place = make_place();
    CHECK_EQ(volt_block_on(rt, late_canceller_run, &c), 7);
    CHECK_EQ(READ(n_dropped), 0); // it is the caller's still
    destroy(rt);
}
// Nothing is to be dropped: it is left in the middle, and before it has begun.
static volt_poll forgets_run(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc,
               volt_blocking_detach(cx, &l->errand, wait_for_opening, l->place, NULL));
    VOLT_END(l->rc);
}
TEST_OF_THREADS(detached_job_needs_no_drop_function) {
    static place runs, waits;
    int64_t rc;
    volt_handle h = { NULL };
    volt_rt *rt = create_pool(1, 1);
    RT_SPAWN(rt, &h, forgets_run, TO_LEAVE(&runs, 0, NULL));
    UNTIL(READ(runs.n_in) == 1);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, -ECANCELED);
    RT_SPAWN(rt, &h, forgets_run, TO_LEAVE(&waits, 0, NULL));
    UNTIL(stats_of(rt).blocking_queued == 1);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, -ECANCELED);
    CHECK_EQ(stats_of(rt).blocking_queued, 0);
    WRITE(runs.is_open, 1);
    destroy(rt);
    CHECK_EQ(runs.n_done, 1);
    CHECK_EQ(waits.n_in + waits.n_done, 0);
}
TEST_OF_THREADS(detached_job_that_cannot_start_is_not_dropped) {
    int n_ended = 0;
    int64_t rc;
    volt_handle h = { NULL };
    volt_rt *rt = create_pool(1, 1);
    WRITE(n_dropped, 0);
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 1 }); // slabs are there
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    fail_threads(1000);
    RT_SPAWN(rt, &h, leaver_run, TO_LEAVE(make_place(), VOLT_NEVER, &n_ended));
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, -EAGAIN);
    fail_threads(0);
    test_heap.is_sticky = 1;
    test_heap.fail_at = READ(test_heap.n_allocs) + 1;
    RT_SPAWN(rt, &h, leaver_run, TO_LEAVE(make_place(), VOLT_NEVER, &n_ended));
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, -ENOMEM);
    test_heap.fail_at = 0;
    CHECK_EQ(READ(n_dropped), 0);
    destroy(rt);
}
TEST_OF_THREADS(shutdown_counts_detached_jobs_that_run) {
    int n_ended = 0;
    volt_rt *rt = create_pool(1, 2);
    WRITE(n_dropped, 0);
    place *p = make_place();
    RT_SPAWN(rt, NULL, leaves_run, TO_LEAVE(p, 0, &n_ended));
    UNTIL(READ(n_ended) == 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(20)), 1); // it runs on
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    WRITE(p->is_open, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(READ(n_dropped), 1);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}
TEST_OF_THREADS(run_gives_up_on_detached_job_after_drain_timeout) {
    leaver l;
    memset(&l, 0, sizeof l);
    l.place = make_place();
    volt_config c = test_config(1);
    c.drain_timeout = VOLT_MS(20);
    CHECK_EQ(volt_run(&c, leaves_run, &l), -ETIMEDOUT);
    test_pass_and_exit(); // the runtime is leaked, as the contract says
}
static volt_poll two_at_once(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    l->errand.impl_ = (struct volt__detached_job *)l; // as if another call had it
    VOLT_AWAIT(l->rc, volt_blocking_detach(cx, &l->errand, wait_for_opening, l->place, NULL));
    VOLT_END(0);
}
TEST_DIES(detached_job_for_two_calls_at_once_is_caught,
          "volt_detached_job is in use by another call") {
    leaver l;
    memset(&l, 0, sizeof l);
    (void)run_on(1, two_at_once, &l);
}
// Cancelled, and calls all the same, of each kind more often than a budget has units.
enum { DEAF_CALLS = 300 };
typedef struct {
    volt_frame frame;
    volt_job job;
    volt_detached_job errand;
    int i, rc;
} deaf;
static volt_poll deaf_run(volt_cx *cx, void *arg) {
    deaf *s = (deaf *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep_forever(cx));
    for (s->i = 0; s->i < DEAF_CALLS; s->i++) {
        VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, tell_thread, NULL));
        CHECK_EQ(s->rc, -ECANCELED);
    }
    for (s->i = 0; s->i < DEAF_CALLS; s->i++) {
        VOLT_AWAIT(s->rc, volt_blocking_detach(cx, &s->errand, tell_thread, NULL, NULL));
        CHECK_EQ(s->rc, -ECANCELED);
    }
    VOLT_END(s->i);
}
TEST(cancelled_blocking_call_costs_budget) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    int64_t rc;
    RT_SPAWN(rt, &h, deaf_run, (deaf){ .i = 0 });
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, DEAF_CALLS);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(stats_of(rt).polls > 2 * DEAF_CALLS / 128); // a budget is 128
    destroy(rt);
}
