// SPDX-License-Identifier: MIT OR 0BSD
// The life of a runtime: configuration, run, create, block_on, shutdown, destroy, hooks.
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
static int ask_stacksize(pthread_attr_t *a, size_t size);
#define pthread_attr_setstacksize ask_stacksize
#define VOLT_IMPLEMENTATION
#include "volt.h"
#undef pthread_attr_setstacksize
#include "test.h"
#include "tasks.h"
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

// ---- configuration

static void expect_refused(volt_config c) {
    int n_threads = test_count_threads(), n_fds = test_count_fds();
    giver g = { .value = 1 };
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    CHECK(!rt);
    CHECK_EQ(volt_run(&c, giver_run, &g), -EINVAL);
    CHECK_EQ(test_count_threads(), n_threads); // nothing was started
    CHECK_EQ(test_count_fds(), n_fds);
    test_check_heap();
}
static void *some_alloc(void *user, size_t size, size_t align) {
    (void)user, (void)size, (void)align;
    return NULL;
}
static void some_free(void *user, void *block, size_t size) { (void)user, (void)block, (void)size; }

TEST(config_out_of_range_is_refused) {
    volt_config c = test_config(2);
    c.workers = 1025;
    expect_refused(c);
    c = test_config(2);
    c.workers = UINT32_MAX;
    expect_refused(c);
    c = test_config(2);
    c.size = sizeof c + 8; // of a later version
    expect_refused(c);
    c = test_config(2);
    c.size = 1;
    expect_refused(c);
    c = test_config(2);
    memset(&c.alloc, 0, sizeof c.alloc);
    c.alloc.alloc = some_alloc; // both or neither
    expect_refused(c);
    c.alloc.alloc = NULL;
    c.alloc.free = some_free;
    expect_refused(c);
    c = test_config(2);
    c.stack_size = 100; // less than a thread can have
    expect_refused(c);
    c = test_config(2);
    c.drain_timeout = -1;
    expect_refused(c);
}

// The last value of each that is taken, and the first that is not.
#define BOUND(field_, last_, beyond_)                                                              \
    do {                                                                                           \
        volt_config in = test_config(2), c;                                                        \
        in.field_ = last_;                                                                         \
        CHECK_EQ(volt__config_resolve(&in, &c), 0);                                                \
        CHECK_EQ(c.field_, last_);                                                                 \
        in.field_ = beyond_;                                                                       \
        CHECK_EQ(volt__config_resolve(&in, &c), -EINVAL);                                          \
    } while (0)
TEST(config_accepts_each_bound_and_refuses_the_next_value) {
    BOUND(workers, VOLT_MAX_WORKERS, VOLT_MAX_WORKERS + 1);
    BOUND(reactors, 1, 3);
    BOUND(reactors, 2, 3);
    BOUND(budget, 1, UINT16_MAX + 1);
    BOUND(budget, UINT16_MAX, UINT16_MAX + 1);
    BOUND(event_interval, 1, 1000001);
    BOUND(event_interval, 1000000, 1000001);
    BOUND(stack_size, 65536, 65535);
    BOUND(watchdog_us, 100, 99);
    BOUND(watchdog_us, UINT32_MAX, 1);
    BOUND(watchdog_us, UINT32_MAX - 1, 99);
    BOUND(spin_us, 1000000, 1000001);
    BOUND(is_guest, 1, 2);
    BOUND(start_all_workers, 1, 2);
    BOUND(start_all_workers, 0, 2);
    BOUND(drain_timeout, 0, -1);
    BOUND(drain_timeout, INT64_MAX, -INT64_MAX);
    BOUND(slow_poll, 0, -1);
    BOUND(slow_poll, INT64_MAX, -INT64_MAX);
    BOUND(placement, VOLT_PLACE_LEAST, (volt_placement)(VOLT_PLACE_LEAST + 1));
    BOUND(placement, VOLT_PLACE_SHARED, (volt_placement)-1);
}
// Refuses stacks that are too small, and notes what was asked for.
static struct {
    size_t least, asked[8];
    int n, is_alone; // alone: what the C library says does not count
} stacks;
static int ask_stacksize(pthread_attr_t *a, size_t size) {
    if (size < stacks.least) CHECK(stacks.n < 8);
    if (stacks.n < 8) stacks.asked[stacks.n++] = size;
    if (size < stacks.least) return EINVAL;
    int rc = pthread_attr_setstacksize(a, size); // may refuse less than 128 KiB
    return stacks.is_alone ? 0 : rc;
}
TEST(refused_stacks_are_doubled) {
    static const size_t least[] = { 0, 65536, 65537, 131073, 262145, SIZE_MAX };
    static const int n_asked[] = { 1, 1, 2, 3, 3, 3 };
    for (int i = 0; i < 6; i++) {
        volt_config c = test_config(1);
        volt_rt *rt = NULL;
        memset(&stacks, 0, sizeof stacks);
        stacks.least = least[i];
        stacks.is_alone = 1;
        c.stack_size = 65536;
        CHECK_EQ(volt_create(&c, &rt), 0);
        CHECK_EQ(stacks.n, n_asked[i]);
        for (int k = 0; k < stacks.n; k++) CHECK_EQ(stacks.asked[k], (size_t)65536 << k);
        destroy(rt);
    }
}
// The smallest stack is less than some C libraries allow (128 KiB on AArch64) or a sanitizer takes:
// it is then what they allow, not the megabytes of their default. They may take a page off it.
typedef struct {
    volt_frame frame;
    size_t stack;
} measurer;
static volt_poll measurer_run(volt_cx *cx, void *arg) {
    measurer *m = arg;
    VOLT_BEGIN(cx, m);
    pthread_attr_t a;
    CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
    CHECK_EQ(pthread_attr_getstacksize(&a, &m->stack), 0);
    CHECK_EQ(pthread_attr_destroy(&a), 0);
    VOLT_END(0);
}
TEST(workers_have_the_stack_that_was_asked_for) {
    static const uint32_t sizes[] = { 65536, 262144, 1048576 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        volt_config c = test_config(2);
        volt_rt *rt = NULL;
        measurer m = { .stack = 0 };
        c.stack_size = sizes[i];
        CHECK_EQ(volt_create(&c, &rt), 0);
        CHECK_EQ(volt_block_on(rt, measurer_run, &m), 0);
        CHECK(m.stack >= sizes[i] - 16384);
        CHECK(m.stack < (TEST__IS_SANITIZED ? 2 * 1048576 : 4 * sizes[i])); // not the default
        destroy(rt);
    }
}
// Without functions what they are given means nothing.
TEST(config_drops_user_of_absent_allocator) {
    volt_config in = test_config(1), c;
    in.alloc.alloc = NULL;
    in.alloc.free = NULL;
    CHECK_EQ(volt__config_resolve(&in, &c), 0);
    CHECK(c.alloc.alloc && c.alloc.free && !c.alloc.user);
}

static void no_tracer(void *user, const volt_trace_event *e) { (void)user, (void)e; }
static void no_hook(void *user, uint32_t worker, int is_start) {
    (void)user, (void)worker, (void)is_start;
}
static void check_effective(const volt_config *given, const volt_config *want) {
    volt_config got;
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(given, &rt), 0);
    memset(&got, 0x5a, sizeof got);
    volt_effective_config(rt, &got);
    CHECK_EQ(got.size, sizeof got);
    CHECK_EQ(got.workers, want->workers);
    CHECK_EQ(got.reactors, want->reactors);
    CHECK_EQ(got.budget, want->budget);
    CHECK_EQ(got.event_interval, want->event_interval);
    CHECK_EQ(got.stack_size, want->stack_size);
    CHECK_EQ(got.watchdog_us, want->watchdog_us);
    CHECK_EQ(got.start_all_workers, want->start_all_workers);
    CHECK_EQ(got.is_guest, want->is_guest);
    CHECK_EQ(got.placement, want->placement);
    CHECK_EQ(got.max_blocking_threads, want->max_blocking_threads);
    CHECK_EQ(got.seed, want->seed);
    CHECK_EQ(got.drain_timeout, want->drain_timeout);
    CHECK_EQ(got.slow_poll, want->slow_poll);
    CHECK(got.alloc.alloc == want->alloc.alloc && got.alloc.free == want->alloc.free);
    CHECK(got.alloc.user == want->alloc.user);
    CHECK(got.log.fn == want->log.fn && got.log.user == want->log.user);
    CHECK(got.tracer.fn == want->tracer.fn && got.tracer.user == want->tracer.user);
    CHECK(got.on_thread.fn == want->on_thread.fn && got.on_thread.user == want->on_thread.user);
    CHECK_EQ(got.spin_us, want->spin_us);
    CHECK_EQ(got.guest_is_asked, want->guest_is_asked);
    // A field behind the last one of these would have to be compared as well.
    size_t end = offsetof(volt_config, guest_is_asked) + sizeof got.guest_is_asked;
    CHECK(sizeof got - end < __alignof__(volt_config));
    destroy(rt);
}
TEST(effective_config_shows_given_values_and_defaults) {
    volt_config given = test_config(3), want;
    static int user[4];
    given.start_all_workers = 0;
    want = given;
    want.reactors = 3; // one per worker
    want.budget = 128;
    want.event_interval = 255;
    want.stack_size = 256 * 1024;
    want.watchdog_us = 750;
    want.max_blocking_threads = 16;
    for (int has_size = 0; has_size < 2; has_size++) {
        given.size = has_size ? sizeof given : 0;
        check_effective(&given, &want);
    }
    given.reactors = 2;
    given.budget = 7;
    given.event_interval = 9;
    given.stack_size = 384 * 1024;
    given.watchdog_us = 5000;
    given.start_all_workers = given.is_guest = given.guest_is_asked = 1;
    given.spin_us = 40;
    given.placement = VOLT_PLACE_LEAST;
    given.max_blocking_threads = 5;
    given.seed = 12345678901234567;
    given.drain_timeout = VOLT_S(11);
    given.slow_poll = VOLT_MS(13);
    given.log.user = &user[1];
    given.log.fn = NULL;
    given.tracer.fn = no_tracer;
    given.tracer.user = &user[2];
    given.on_thread.fn = no_hook;
    given.on_thread.user = &user[3];
    check_effective(&given, &given);
    given.watchdog_us = UINT32_MAX;
    given.workers = given.reactors = 1;
    want = given;
    want.placement = VOLT_PLACE_SHARED; // there is no choice
    check_effective(&given, &want);
}

// The hook runs twice on each thread. The threads of the pool have no index.
enum { WATCHED = 4 };
typedef struct {
    int n_started[WATCHED + 1], n_ended[WATCHED + 1];
} watched;
static __thread int watched_as; // 1 + index
static void watch_thread(void *user, uint32_t worker, int is_start) {
    watched *w = (watched *)user;
    int i = worker == UINT32_MAX ? WATCHED : (int)worker;
    CHECK(i <= WATCHED);
    CHECK_EQ(watched_as, is_start ? 0 : 1 + i);
    watched_as = is_start ? 1 + i : 0;
    if (is_start) COUNT(w->n_started[i]);
    else COUNT(w->n_ended[i]);
}
static int see_pool_thread(void *arg) { return (void)arg, watched_as; }
typedef struct {
    volt_frame frame;
    volt_job job;
    int64_t rc;
} pool_visitor;
static volt_poll pool_visitor_run(volt_cx *cx, void *arg) {
    pool_visitor *v = (pool_visitor *)arg;
    VOLT_BEGIN(cx, v);
    VOLT_AWAIT(v->rc, volt_blocking(cx, &v->job, see_pool_thread, NULL));
    CHECK_EQ(v->rc, 1 + WATCHED);
    VOLT_END(watched_as);
}
TEST_OF_THREADS(thread_hook_is_called_at_the_start_and_the_end_of_each_thread) {
    for (int is_guest = 0; is_guest < 2; is_guest++) {
        watched w;
        memset(&w, 0, sizeof w);
        volt_config c = test_config(WATCHED);
        volt_rt *rt = NULL;
        c.start_all_workers = 1;
        c.is_guest = (uint32_t)is_guest;
        c.on_thread.fn = watch_thread;
        c.on_thread.user = &w;
        CHECK_EQ(volt_create(&c, &rt), 0);
        pool_visitor v = { .rc = 0 };
        if (!is_guest) CHECK(volt_block_on(rt, pool_visitor_run, &v) > 0);
        destroy(rt);
        for (int i = 0; i <= WATCHED; i++) {
            int is_ours = is_guest && (i == 0 || i == WATCHED); // the first worker; no pool
            CHECK_EQ(w.n_started[i], !is_ours);
            CHECK_EQ(w.n_ended[i], !is_ours);
        }
    }
}

TEST(create_without_config_fills_in_defaults) {
    volt_rt *rt = NULL;
    volt_config got;
    CHECK_EQ(volt_create(NULL, &rt), 0);
    volt_effective_config(rt, &got);
    CHECK_EQ(got.size, sizeof got);
    CHECK(got.workers >= 1 && got.workers <= 1024);
    CHECK(got.alloc.alloc && got.alloc.free);
    CHECK(got.seed != 0); // a random one
    CHECK_EQ(got.spin_us, 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}

TEST(workers_follow_the_affinity_mask) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) SKIP("one processor only");
    CPU_ZERO(&one);
    for (size_t i = 0, left = 1; left > 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one), left--;
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    volt_rt *rt = NULL;
    volt_config got;
    CHECK_EQ(volt_create(NULL, &rt), 0);
    volt_effective_config(rt, &got);
    CHECK_EQ(got.workers, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}

// ---- run

TEST(run_gives_result_of_its_root) {
    static const int values[] = { 0, 1, 77, INT_MAX, -EIO, -ECANCELED, -1 };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        EACH_WORKERS(w) {
            giver g = { .value = values[i] };
            CHECK_EQ(run_on(w, giver_run, &g), values[i]);
        }
    }
}

// The state stays the caller's: the root works on it, not on a copy.
typedef struct {
    volt_frame frame;
    const void *self;
    int n;
} inspected;
static volt_poll inspected_run(volt_cx *cx, void *arg) {
    inspected *s = arg;
    VOLT_BEGIN(cx, s);
    CHECK(s->self == s);
    CHECK(volt_cx_rt(cx));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    s->n = 5;
    VOLT_END(0);
}
TEST(root_works_on_the_callers_state) {
    inspected s = { .n = 0 };
    s.self = &s;
    CHECK_EQ(run_on(2, inspected_run, &s), 0);
    CHECK_EQ(s.n, 5);
    volt_rt *rt = create_on(2);
    inspected b = { .n = 0 };
    b.self = &b;
    CHECK_EQ(volt_block_on(rt, inspected_run, &b), 0);
    CHECK_EQ(b.n, 5);
    destroy(rt);
}

// Tasks that the root leaves behind are cancelled and drained before volt_run returns.
typedef struct {
    volt_frame frame;
    int *n_ended;
    volt_shield grace;
    int rc;
} lingerer;
static volt_poll lingerer_run(volt_cx *cx, void *arg) {
    lingerer *l = arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(l->rc, -ECANCELED);
    volt_shield_begin(cx, &l->grace, VOLT_S(100));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    volt_shield_end(cx, &l->grace);
    COUNT(*l->n_ended);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int *n_ended;
} leaves_lingerers;
static volt_poll leaves_lingerers_run(volt_cx *cx, void *arg) {
    leaves_lingerers *s = arg;
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 10; i++)
        SPAWN(NULL, lingerer_run, (lingerer){ .n_ended = s->n_ended });
    VOLT_END(9);
}
TEST(run_drains_what_the_root_left) {
    EACH_WORKERS(w) {
        int n_ended = 0;
        leaves_lingerers s = { .n_ended = &n_ended };
        CHECK_EQ(run_on(w, leaves_lingerers_run, &s), 9);
        CHECK_EQ(n_ended, 10);
    }
}
typedef struct {
    volt_frame frame;
    volt_shield grace;
} holdout;
static volt_poll holdout_run(volt_cx *cx, void *arg) {
    holdout *h = arg;
    VOLT_BEGIN(cx, h);
    volt_shield_begin(cx, &h->grace, VOLT_NEVER);
    VOLT_AWAIT(volt_sleep(cx, VOLT_S(100)));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
} leaves_a_holdout;
static volt_poll leaves_a_holdout_run(volt_cx *cx, void *arg) {
    leaves_a_holdout *s = arg;
    VOLT_BEGIN(cx, s);
    SPAWN(NULL, holdout_run, (holdout){ .frame = { .node_ = { .resume_line_ = 0 } } });
    VOLT_END(9);
}
TEST(run_gives_up_after_drain_timeout) {
    static leaves_a_holdout s;
    volt_config c = test_config(2);
    c.drain_timeout = VOLT_MS(2);
    volt_time start = volt_now();
    CHECK_EQ(volt_run(&c, leaves_a_holdout_run, &s), -ETIMEDOUT);
    CHECK(volt_now() - start >= VOLT_MS(2));
    CHECK_EQ(READ(test_log.n[VOLT_LOG_STILL_ALIVE]), 1);
    CHECK(strstr(test_log.text[VOLT_LOG_STILL_ALIVE], "public.c:"));
    test_pass_and_exit(); // the runtime is leaked, in use
}
// The thread of the second worker starts only after the drain timeout.
static void start_after_timeout(void *root_ended, uint32_t worker, int is_start) {
    if (worker != 1 || !is_start) return;
    UNTIL(READ(*(int *)root_ended));
    volt_time end = volt_now() + VOLT_MS(5);
    UNTIL(volt_now() > end);
}
TEST_OF_THREADS(drain_timeout_counts_only_while_a_task_is_left) {
    int root_ended = 0;
    giver g = { .value = 6, .n_ended = &root_ended };
    volt_config c = test_config(2);
    c.drain_timeout = VOLT_MS(1);
    c.start_all_workers = 1;
    c.on_thread.fn = start_after_timeout;
    c.on_thread.user = &root_ended;
    CHECK_EQ(volt_run(&c, giver_run, &g), 6);
}

ROOT_TEST(run_inside_a_task_is_refused, { giver g; volt_rt *rt; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_run(NULL, giver_run, &s->g), -EDEADLK);
    CHECK_EQ(volt_block_on(volt_cx_rt(cx), giver_run, &s->g), -EDEADLK);
    VOLT_END(0);
}
ROOT_TEST(join_sync_inside_a_task_is_refused, { volt_handle h; int64_t value; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, giver_run, (giver){ .value = 6 });
    CHECK_EQ(volt_join_sync(&s->h, VOLT_S(1), &s->value), -EDEADLK);
    CHECK(volt_handle_is_set(&s->h));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 6);
    VOLT_END(0);
}

// ---- block_on

enum { CALLERS = 6, CALLS = 100 };
static void *caller(void *arg) {
    volt_rt *rt = arg;
    for (int i = 0; i < CALLS; i++) {
        napper n = { .d = i % 10 == 0 ? VOLT_MS(1) : 0, .value = i };
        CHECK_EQ(volt_block_on(rt, napper_run, &n), i);
    }
    return NULL;
}
TEST(block_on_gives_each_of_several_threads_its_result) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        pthread_t t[CALLERS];
        for (int i = 0; i < CALLERS; i++) t[i] = start_thread(caller, rt);
        for (int i = 0; i < CALLERS; i++) join_thread(t[i]);
        destroy(rt);
    }
}

// ---- shutdown and destroy

TEST(spawn_after_shutdown_is_refused) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    giver g = { .value = 1 };
    CHECK_EQ(volt_destroy(rt), -EBUSY); // it runs
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(VOLT_RT_SPAWN(rt, &h, giver_run, g), -ESHUTDOWN);
    CHECK(!volt_handle_is_set(&h));
    CHECK_EQ(volt_block_on(rt, giver_run, &g), -ESHUTDOWN);
    CHECK(!volt_task_create(rt, giver_run, sizeof g));
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0); // callable again
    CHECK_EQ(volt_shutdown(rt, 0), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}

TEST(destroy_needs_every_handle_back) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    int64_t value = 0;
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 3 });
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    CHECK_EQ(volt_try_join(&h, &value), 0);
    CHECK_EQ(value, 3);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}

// volt_run cannot be called again: what is held keeps the runtime's memory, and the log says so.
typedef struct {
    volt_frame frame;
    volt_handle *h;
} hands_out;
static volt_poll hands_out_run(volt_cx *cx, void *arg) {
    hands_out *s = arg;
    VOLT_BEGIN(cx, s);
    SPAWN(s->h, giver_run, (giver){ .value = 3 });
    VOLT_END(0);
}
TEST(handle_that_outlives_run_is_logged_and_stays_valid) {
    volt_handle h = { NULL };
    int64_t value = 0;
    hands_out s = { .h = &h };
    volt_config c = test_config(2);
    CHECK_EQ(volt_run(&c, hands_out_run, &s), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_HANDLE_LEAKED], 2); // how many, and where the one was spawned
    CHECK(strstr(test_log.text[VOLT_LOG_HANDLE_LEAKED], __FILE__));
    CHECK_EQ(volt_try_join(&h, &value), 0); // its memory is still there
    CHECK_EQ(value, 3);
    test_pass_and_exit();
}
// How many are held, and where the first of them were spawned; in lines of their own.
enum { MOST_HELD = 40 };
static char held_log[MOST_HELD][200];
static int n_held_log;
static void keep_log(void *user, int item, const char *text) {
    (void)user;
    if (item != VOLT_LOG_HANDLE_LEAKED) return;
    CHECK(n_held_log < MOST_HELD);
    snprintf(held_log[n_held_log++], sizeof held_log[0], "%s", text);
}
typedef struct {
    volt_frame frame;
    volt_handle *h;
    int n, i;
} hands_out_many;
static volt_poll hands_out_many_run(volt_cx *cx, void *arg) {
    hands_out_many *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < s->n; s->i++) SPAWN(&s->h[s->i], giver_run, (giver){ .value = 3 });
    VOLT_END(0);
}
// A task that a shutdown has left is logged with its tag.
typedef struct {
    volt_frame frame;
    volt_handle *h_or_null; // NULL: leaves a task that does not end, else one that is held
} leaves_tagged;
static volt_poll leaves_tagged_run(volt_cx *cx, void *arg) {
    leaves_tagged *s = arg;
    VOLT_BEGIN(cx, s);
    volt_spawn_options o = { .tag = 4711 };
    holdout held_out = { .frame = { .node_ = { .resume_line_ = 0 } } };
    giver ended = { .value = 3 };
    if (s->h_or_null) CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, s->h_or_null, giver_run, ended), 0);
    else CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, NULL, holdout_run, held_out), 0);
    VOLT_END(0);
}
TEST(task_that_a_shutdown_leaves_is_logged_with_its_tag) {
    leaves_tagged s = { .h_or_null = NULL };
    volt_config c = test_config(1);
    c.drain_timeout = VOLT_MS(2);
    CHECK_EQ(volt_run(&c, leaves_tagged_run, &s), -ETIMEDOUT);
    CHECK_EQ(READ(test_log.n[VOLT_LOG_STILL_ALIVE]), 1);
    CHECK(strstr(test_log.text[VOLT_LOG_STILL_ALIVE], ", tag 4711)"));
    test_pass_and_exit(); // the runtime is leaked, in use
}
TEST(held_task_is_logged_with_its_tag) {
    volt_handle h = { NULL };
    leaves_tagged s = { .h_or_null = &h };
    volt_config c = test_config(1);
    CHECK_EQ(volt_run(&c, leaves_tagged_run, &s), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_HANDLE_LEAKED], 2);
    CHECK(strstr(test_log.text[VOLT_LOG_HANDLE_LEAKED], ", tag 4711)"));
    test_pass_and_exit();
}
TEST(handles_that_outlive_the_run_are_counted) {
    static const int numbers[] = { 1, 2, 37 };
    for (int i = 0; i < 3; i++) {
        volt_handle h[MOST_HELD];
        memset(h, 0, sizeof h);
        char want[200], site[200];
        hands_out_many s = { .h = h, .n = numbers[i] };
        volt_config c = test_config(1);
        c.log = (volt_logger){ keep_log, NULL };
        n_held_log = 0;
        CHECK_EQ(volt_run(&c, hands_out_many_run, &s), 0);
        snprintf(want, sizeof want,
                 "runtime is leaked, because handles or wakers are left: %d tasks are held",
                 numbers[i]);
        snprintf(site, sizeof site, "%s:", __FILE__);
        CHECK_STR(held_log[0], want);
        CHECK_EQ(n_held_log, 1 + (numbers[i] < 16 ? numbers[i] : 16));
        for (int k = 1; k < n_held_log; k++) {
            CHECK_EQ(strncmp(held_log[k], site, strlen(site)), 0);
            CHECK(!strstr(held_log[k], "held")); // one task's: no number
        }
    }
    test_pass_and_exit();
}

// Tasks in every state at once. All are accepted, so all are polled and end.
static int n_polled, n_ended_all;
typedef struct {
    volt_frame frame;
    int kind, fd, rc;
    char byte;
    volt_token token;
} sleeper;
enum { IDLE_TIMED, IDLE_FD, IDLE_TOKEN, IDLE_NEVER, BUSY_YIELDING, N_KINDS };
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    COUNT(n_polled);
    if (s->kind == IDLE_TIMED) VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(100)));
    else if (s->kind == IDLE_FD) VOLT_AWAIT(s->rc, volt_read(cx, s->fd, &s->byte, 1));
    else if (s->kind == IDLE_TOKEN) VOLT_AWAIT(s->rc, volt_token_wait(cx, &s->token));
    else if (s->kind == IDLE_NEVER) VOLT_AWAIT(s->rc, volt_sleep_forever(cx));
    else do VOLT_AWAIT(s->rc, volt_yield(cx));
        while (s->rc == 0);
    CHECK_EQ(s->rc, -ECANCELED);
    COUNT(n_ended_all);
    VOLT_END(s->rc);
}
TEST(shutdown_ends_tasks_in_every_state) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        int fd[2];
        n_polled = n_ended_all = 0;
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        for (int i = 0; i < 100; i++) {
            sleeper s = { .kind = i % N_KINDS, .fd = fd[0] };
            RT_SPAWN(rt, NULL, sleeper_run, s);
            if (i == 50) UNTIL(READ(n_polled) > 20); // the later ones are still queued
        }
        void *created = volt_task_create(rt, sleeper_run, sizeof(sleeper));
        CHECK(created);
        int n_alive;
        while ((n_alive = volt_shutdown(rt, VOLT_MS(20))) > 1) {}
        CHECK_EQ(n_alive, 1); // the one that was only created
        CHECK_EQ(n_polled, 100);
        CHECK_EQ(n_ended_all, 100);
        volt_task_destroy(created);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
        close(fd[0]);
        close(fd[1]);
    }
}
TEST(task_started_after_shutdown_is_polled_cancelled) {
    volt_rt *rt = create_on(2);
    sleeper *s = volt_task_create(rt, sleeper_run, sizeof *s);
    n_polled = n_ended_all = 0;
    CHECK(s);
    s->kind = IDLE_TIMED;
    CHECK_EQ(volt_shutdown(rt, 0), 1);
    volt_task_start(s, NULL); // cannot fail; it is polled, cancelled
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(n_polled == 1 && n_ended_all == 1);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}

// A deadline passes while tasks ignore cancellation; each is named with its place. Callable again.
typedef struct {
    volt_frame frame;
    volt_token *end;
    volt_shield grace;
    int rc;
} unwilling;
static volt_poll unwilling_run(volt_cx *cx, void *arg) {
    unwilling *u = arg;
    VOLT_BEGIN(cx, u);
    volt_shield_begin(cx, &u->grace, VOLT_NEVER);
    VOLT_AWAIT(u->rc, volt_token_wait(cx, u->end));
    volt_shield_end(cx, &u->grace);
    CHECK_EQ(u->rc, 0);
    VOLT_END(0);
}
TEST(shutdown_counts_and_logs_tasks_left_at_its_deadline) {
    EACH_WORKERS(w) {
        volt_token end;
        volt_rt *rt = create_on(w);
        memset(&end, 0, sizeof end);
        memset(&test_log, 0, sizeof test_log);
        for (int i = 0; i < 3; i++)
            RT_SPAWN(rt, NULL, unwilling_run, (unwilling){ .end = &end });
        volt_time start = volt_now();
        CHECK_EQ(volt_shutdown(rt, VOLT_MS(20)), 3);
        CHECK(volt_now() - start >= VOLT_MS(20));
        CHECK_EQ(test_log.n[VOLT_LOG_STILL_ALIVE], 3);
        CHECK(strstr(test_log.text[VOLT_LOG_STILL_ALIVE], "public.c:"));
        CHECK(strstr(test_log.text[VOLT_LOG_STILL_ALIVE], " (task 1."));
        CHECK(!strstr(test_log.text[VOLT_LOG_STILL_ALIVE], "tag"));
        CHECK_EQ(volt_destroy(rt), -EBUSY);
        CHECK_EQ(volt_shutdown(rt, 0), 3);
        volt_token_cancel(&end);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}

// On a worker shutdown only starts; the task that called it is cancelled like the others.
typedef struct {
    volt_frame frame;
    int *n_ended;
    int rc;
    volt_handle h;
} quitter;
static volt_poll quitter_run(volt_cx *cx, void *arg) {
    quitter *q = arg;
    VOLT_BEGIN(cx, q);
    CHECK_EQ(volt_shutdown(volt_cx_rt(cx), VOLT_NEVER), -EINPROGRESS);
    VOLT_AWAIT(q->rc, volt_sleep(cx, VOLT_S(100)));
    CHECK_EQ(q->rc, -ECANCELED);
    CHECK_EQ(VOLT_SPAWN(cx, &q->h, giver_run, (giver){ .value = 1 }), -ESHUTDOWN);
    CHECK(!volt_handle_is_set(&q->h));
    COUNT(*q->n_ended);
    VOLT_END(0);
}
TEST(shutdown_from_task_only_starts_and_cancels_that_task) {
    EACH_WORKERS(w) {
        int n_ended = 0;
        volt_rt *rt = create_on(w);
        RT_SPAWN(rt, NULL, quitter_run, (quitter){ .n_ended = &n_ended });
        UNTIL(READ(n_ended) == 1);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
        quitter q = { .n_ended = &n_ended };
        CHECK_EQ(run_on(w, quitter_run, &q), 0);
    }
}

static void *shut_down(void *arg) {
    CHECK_EQ(volt_shutdown(arg, VOLT_NEVER), 0);
    return NULL;
}
TEST(shutdown_from_several_threads_ends_every_task) {
    for (int round = 0; round < 20; round++) {
        volt_rt *rt = create_on(1 + (uint32_t)RANDOM_BELOW(4));
        pthread_t t[4];
        n_polled = n_ended_all = 0;
        for (int i = 0; i < 20; i++)
            RT_SPAWN(rt, NULL, sleeper_run, (sleeper){ .kind = IDLE_TIMED });
        for (int i = 0; i < 4; i++) t[i] = start_thread(shut_down, rt);
        for (int i = 0; i < 4; i++) join_thread(t[i]);
        CHECK_EQ(n_ended_all, 20);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}

// Threads spawn while another shuts down: each spawn is either refused or its task ends.
typedef struct {
    volt_rt *rt;
    int n_accepted, n_ended;
} race;
static void *spawn_until_refused(void *arg) {
    race *r = arg;
    int rc;
    do {
        rc = VOLT_RT_SPAWN(r->rt, NULL, napper_run,
                           ((napper){ .d = VOLT_S(100), .n_ended = &r->n_ended }));
        CHECK(rc == 0 || rc == -ESHUTDOWN);
        if (rc == 0) COUNT(r->n_accepted);
    } while (rc == 0);
    return NULL;
}
TEST(spawn_that_races_with_shutdown_is_refused_or_ends) {
    for (int round = 0; round < 20; round++) {
        race r = { .rt = create_on(1 + (uint32_t)round % 4) };
        pthread_t t[3];
        for (int i = 0; i < 3; i++) t[i] = start_thread(spawn_until_refused, &r);
        UNTIL(READ(r.n_accepted) > 50);
        CHECK_EQ(volt_shutdown(r.rt, VOLT_NEVER), 0);
        for (int i = 0; i < 3; i++) join_thread(t[i]);
        CHECK_EQ(r.n_ended, r.n_accepted);
        CHECK_EQ(volt_destroy(r.rt), 0);
        test_check_heap();
    }
}

TEST(create_and_destroy_leave_nothing) {
    int n_threads = test_count_threads(), n_fds = test_count_fds();
    for (uint32_t i = 0; i < 40; i++) {
        volt_config c = test_config(1 + i % 5);
        volt_rt *rt = NULL;
        c.start_all_workers = i % 2;
        CHECK_EQ(volt_create(&c, &rt), 0);
        if (i % 3 == 0) RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 1 });
        destroy(rt);
        CHECK_EQ(test_count_fds(), n_fds);
    }
    UNTIL(test_count_threads() <= n_threads + 1); // thread sanitizer has one of its own
}

TEST(failed_create_gives_null) {
    volt_config c = test_config(1);
    volt_rt *rt = create_on(1), *none = rt;
    c.size = 1;
    CHECK_EQ(volt_create(&c, &none), -EINVAL);
    CHECK(!none);
    destroy(rt);
}

// ---- two runtimes

typedef struct {
    volt_frame frame;
    volt_token *mine, *theirs;
    int i, rc;
} partner;
static volt_poll partner_run(volt_cx *cx, void *arg) {
    partner *p = arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < 500; p->i++) {
        volt_token_cancel(&p->theirs[p->i]); // wakes a task of the other runtime
        VOLT_AWAIT(p->rc, volt_token_wait(cx, &p->mine[p->i]));
        CHECK_EQ(p->rc, 0);
    }
    VOLT_END(p->i);
}
TEST(two_runtimes_wake_each_other) {
    EACH_WORKERS(w) {
        static volt_token x[500], y[500];
        volt_rt *a = create_on(w), *b = create_on(3);
        volt_handle h[2];
        int64_t value = 0;
        memset(x, 0, sizeof x);
        memset(y, 0, sizeof y);
        RT_SPAWN(a, &h[0], partner_run, (partner){ .mine = x, .theirs = y });
        RT_SPAWN(b, &h[1], partner_run, (partner){ .mine = y, .theirs = x });
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &value), 0);
            CHECK_EQ(value, 500);
        }
        CHECK_EQ(volt_shutdown(a, VOLT_NEVER), 0);
        CHECK_EQ(volt_shutdown(b, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(a), 0);
        CHECK_EQ(volt_destroy(b), 0);
        test_check_heap();
    }
}

// A task of one runtime joins a task of the other, and spawns into it.
typedef struct {
    volt_frame frame;
    volt_rt *other;
    volt_handle h;
    int i;
    int64_t rc;
} visitor;
static volt_poll visitor_run(volt_cx *cx, void *arg) {
    visitor *v = arg;
    VOLT_BEGIN(cx, v);
    for (v->i = 0; v->i < 100; v->i++) {
        RT_SPAWN(v->other, &v->h, napper_run, (napper){ .d = v->i % 10 ? 0 : VOLT_MS(1),
                 .value = v->i });
        VOLT_AWAIT(v->rc, volt_join(cx, &v->h));
        CHECK_EQ(v->rc, v->i);
    }
    VOLT_END(0);
}
TEST(tasks_join_across_runtimes) {
    volt_rt *a = create_on(2), *b = create_on(2);
    visitor v = { .other = b }, u = { .other = a };
    CHECK_EQ(volt_block_on(a, visitor_run, &v), 0);
    CHECK_EQ(volt_block_on(b, visitor_run, &u), 0);
    CHECK_EQ(volt_shutdown(a, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(a), 0);
    destroy(b);
}

// ---- out of memory

// Each use of memory that the runtime makes; what fails must be reported, never crash or leak.
typedef struct {
    volt_frame frame;
    volt_group g;
    volt_handle h;
    int fd[2], n_spawned, i;
    int64_t rc;
    char buf[4];
} hungry;
static int n_reports; // of missing memory
static int is_memory_or(int64_t rc, int64_t good) {
    if (rc == -ENOMEM) COUNT(n_reports);
    return rc == good || rc == -ENOMEM;
}
static volt_poll hungry_run(volt_cx *cx, void *arg) {
    hungry *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 40; s->i++) {
        s->rc = VOLT_SPAWN(cx, &s->h, giver_run, (giver){ .value = s->i });
        CHECK(is_memory_or(s->rc, 0));
        CHECK_EQ(volt_handle_is_set(&s->h), s->rc == 0);
        if (s->rc < 0) continue;
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->i);
    }
    for (int i = 0; i < 40; i++) {
        int rc = VOLT_GROUP_SPAWN(cx, &s->g, napper_run, (napper){ .d = VOLT_US(100) });
        CHECK(is_memory_or(rc, 0));
    }
    {
        void *big = volt_task_create(volt_cx_rt(cx), giver_run, 300000);
        if (big) volt_task_destroy(big);
        else COUNT(n_reports);
    }
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "abc", 3));
    CHECK(is_memory_or(s->rc, 3));
    if (s->rc == 3) {
        VOLT_AWAIT(s->rc, volt_read(cx, s->fd[0], s->buf, 4));
        CHECK(is_memory_or(s->rc, 3));
    }
    volt_close(cx, s->fd[0]);
    volt_close(cx, s->fd[1]);
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(4);
}
static size_t count_allocations(uint32_t workers) {
    hungry s = { .rc = 0 };
    memset(&test_heap, 0, sizeof test_heap);
    CHECK_EQ(run_on(workers, hungry_run, &s), 4);
    return test_heap.n_allocs;
}
TEST(failed_allocation_is_reported_and_leaks_nothing) {
    for (uint32_t w = 1; w <= 2; w++) {
        for (int is_sticky = 0; is_sticky < 2; is_sticky++) {
            size_t n = count_allocations(w) + 2;
            CHECK(n > 5);
            for (size_t k = 1; k <= n; k++) {
                hungry s = { .rc = 0 };
                memset(&test_heap, 0, sizeof test_heap);
                test_heap.fail_at = k;
                test_heap.is_sticky = is_sticky;
                WRITE(n_reports, 0);
                int n_logged = test_log.n[VOLT_LOG_THREAD_START]; // there may be fewer workers
                CHECK(is_memory_or(run_on(w, hungry_run, &s), 4)); // and nothing is left
                int is_told = n_reports + test_log.n[VOLT_LOG_THREAD_START] - n_logged > 0;
                CHECK_EQ(is_told, test_heap.n_allocs >= k);
            }
        }
    }
}
// Only what was given is given back.
static void free_block(void *user, void *block, size_t size) {
    CHECK(block && size > 0);
    test_free(user, block, size);
}
TEST(create_with_failed_allocation_leaks_nothing) {
    volt_config c = test_config(3);
    int rc = -ENOMEM, n_fds = test_count_fds();
    c.start_all_workers = 1;
    c.alloc.free = free_block;
    for (size_t k = 1; rc != 0; k++) {
        volt_rt *rt = NULL;
        memset(&test_heap, 0, sizeof test_heap);
        test_heap.fail_at = k;
        rc = volt_create(&c, &rt);
        CHECK(is_memory_or(rc, 0));
        if (rc == 0 && test_heap.n_allocs >= k) { // it did without
            destroy(rt);
            rc = -ENOMEM;
        } else if (rc == 0) {
            destroy(rt);
        }
        test_check_heap();
        CHECK_EQ(test_count_fds(), n_fds);
    }
}

// The watchdog exists only where there are other workers to watch; its descriptor may be 0.
TEST(watchdog_is_created_only_for_several_workers) {
    int n_fds = test_count_fds();
    for (uint32_t workers = 1; workers <= 2; workers++)
        for (int is_off = 0; is_off < 2; is_off++) {
            volt_config c = test_config(workers);
            volt_rt *rt = NULL;
            c.watchdog_us = is_off ? UINT32_MAX : 0;
            CHECK_EQ(volt__rt_create(&c, &rt), 0);
            CHECK_EQ(rt->watchdog.fd >= 0, workers > 1 && !is_off);
            volt__rt_free(rt);
            CHECK_EQ(test_count_fds(), n_fds);
        }
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    CHECK_EQ(close(STDIN_FILENO), 0);
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    CHECK_EQ(rt->watchdog.fd, STDIN_FILENO);
    volt__rt_free(rt);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
    test_check_heap();
}

// No descriptors: an error, nothing left.
TEST(create_without_descriptors_fails_and_leaks_nothing) {
    struct rlimit r;
    int n_fds = test_count_fds(), n_ok = 0;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    for (rlim_t limit = 3; limit < 40; limit++) {
        r.rlim_cur = limit;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
        volt_config c = test_config(3);
        volt_rt *rt = NULL;
        int rc = volt_create(&c, &rt);
        CHECK(rc == 0 || rc == -EMFILE);
        if (rc == 0) destroy(rt), n_ok++;
        r.rlim_cur = r.rlim_max < 1000 ? r.rlim_max : 1000;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
        CHECK_EQ(test_count_fds(), n_fds);
        test_check_heap();
    }
    CHECK(n_ok > 0 && n_ok < 37);
}

// ---- the rest

TEST(strerror_has_text_for_every_result) {
    static const int known[] = { 0, 1, -EIO, -ECANCELED, -ETIMEDOUT, -ENOMEM, -EPIPE, -ECONNREFUSED,
                                 -EBADF, -EINVAL, -ESHUTDOWN, -EDEADLK, -EBUSY, -EAGAIN };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *a = volt_strerror(known[i]);
        CHECK(a && *a);
        CHECK(a == volt_strerror(known[i])); // static
        for (size_t k = 0; k < i; k++)
            CHECK(known[i] >= 0 || strcmp(a, volt_strerror(known[k])) != 0);
    }
    for (int rc = -5000; rc <= 10; rc++) CHECK(volt_strerror(rc) && *volt_strerror(rc));
    CHECK(volt_strerror(INT_MIN) && volt_strerror(INT_MAX));
}
// Of all that the C library has a name for, on whatever processor, the text has that name.
TEST(each_errno_has_a_text_with_its_name) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    int n = 0;
    for (int e = 1; e < 4096; e++) {
        char want[64];
        const char *name = strerrorname_np(e), *text = volt_strerror(-e);
        if (!name && e == EDEADLOCK) name = "EDEADLOCK"; // where it is not EDEADLK
        if (!name) {
            CHECK_STR(text, "unknown error");
            continue;
        }
        size_t len = (size_t)snprintf(want, sizeof want, " (%s)", name), all = strlen(text);
        if (all <= len || strcmp(text + all - len, want) != 0)
            test_fail(__FILE__, __LINE__, "%d, %s: \"%s\"", e, name, text);
        n++;
    }
    CHECK(n > 120);
#else
    SKIP("no strerrorname_np");
#endif
}

TEST(counters_add_up) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        volt_counters c;
        int64_t value;
        for (int i = 0; i < 200; i++) {
            volt_handle h = { NULL };
            // long enough not to be over before it is on a wheel
            RT_SPAWN(rt, &h, napper_run, (napper){ .d = i % 20 ? 0 : VOLT_MS(20) });
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        }
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &c);
        CHECK_EQ(c.spawned, 200);
        CHECK_EQ(c.completed, 200);
        CHECK(c.polls >= 210);
        CHECK_EQ(c.timers_fired, 10);
        CHECK_EQ(c.workers, w);
        CHECK(c.workers_started >= 1 && c.workers_started <= w);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}

// Nothing to do: nothing runs. The watchdog may look once more after the last event.
TEST(idle_runtime_is_silent) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        volt_counters before, after;
        volt_handle h = { NULL };
        int64_t value;
        RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_MS(1) });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_S(1000) });
        // Whatever was under way comes to rest; what ticks never gives 300 ms of silence.
        do {
            struct timespec pause = { 0, 300 * 1000000 };
            volt_stats(rt, &before);
            nanosleep(&pause, NULL);
            volt_stats(rt, &after);
        } while (memcmp(&before, &after, sizeof after) != 0);
        volt_cancel(&h);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
        destroy(rt);
    }
}

// Workers block every signal: the application's handlers run on its own threads.
static volatile sig_atomic_t n_signals;
static pthread_t signalled;
static void on_signal(int sig) {
    (void)sig;
    n_signals++;
    signalled = pthread_self();
}
TEST(signals_go_to_the_application) {
    volt_rt *rt = create_on(4);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    for (int i = 0; i < 50; i++) {
        int n = n_signals;
        RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 1 });
        CHECK_EQ(kill(getpid(), SIGUSR1), 0);
        UNTIL(n_signals > n);
        CHECK(pthread_equal(signalled, pthread_self()));
    }
    destroy(rt);
}

// A caller that was built with an older, smaller struct keeps working; a larger one does not.
TEST(smaller_config_of_an_older_header_is_accepted) {
    volt_config c = test_config(1), e;
    volt_rt *rt = NULL;
    c.seed = 77;
    c.drain_timeout = -1; // behind it: not looked at
    c.size = offsetof(volt_config, drain_timeout);
    c.log.fn = NULL;
    CHECK_EQ(volt_create(&c, &rt), 0);
    volt_effective_config(rt, &e);
    CHECK(e.size == sizeof e && e.seed == 77 && e.workers == 1 && e.drain_timeout == 0 &&
          !e.log.fn);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    c.size = 3;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    c.size = sizeof c + 1;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
}
// volt_run refuses guests, and looks no further than the struct reaches for that.
TEST(run_reads_is_guest_only_within_size_of_config) {
    volt_config c = test_config(1);
    giver g = { .value = 5 };
    c.is_guest = 1;
    c.size = offsetof(volt_config, is_guest);
    c.alloc = (volt_allocator){ NULL, NULL, NULL }; // behind it, too
    CHECK_EQ(volt_run(&c, giver_run, &g), 5);
    for (int i = 0; i < 3; i++) { // the first that has it, a later one, the one of today
        static const size_t sizes[] = { offsetof(volt_config, placement),
                                        offsetof(volt_config, drain_timeout), 0 };
        g = (giver){ .value = 5 };
        c.is_guest = 1;
        c.size = (uint32_t)sizes[i];
        CHECK_EQ(volt_run(&c, giver_run, &g), -EINVAL);
        c.is_guest = 0;
        CHECK_EQ(volt_run(&c, giver_run, &g), 5); // it had not begun
    }
}
// Also when the worker has learnt that polls are short, and there is always one to go on with.
enum { ALWAYS_READY = 10, SHORT_POLLS = 300 };
typedef struct {
    volt_frame frame;
    const int *is_over;
} yields_till_told;
static volt_poll yields_till_told_run(volt_cx *cx, void *arg) {
    yields_till_told *y = arg;
    VOLT_BEGIN(cx, y);
    while (!*y->is_over) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_counters before, after;
    int i, is_over;
} yields_beside;
static volt_poll yields_beside_run(volt_cx *cx, void *arg) {
    yields_beside *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < ALWAYS_READY; s->i++)
        SPAWN(NULL, yields_till_told_run, (yields_till_told){ .is_over = &s->is_over });
    for (s->i = 0; s->i < SHORT_POLLS; s->i++) VOLT_AWAIT(volt_yield(cx));
    volt_stats(cx->rt_, &s->before);
    for (s->i = 0; s->i < SHORT_POLLS; s->i++) VOLT_AWAIT(volt_yield(cx));
    volt_stats(cx->rt_, &s->after);
    s->is_over = 1;
    VOLT_END(0);
}
TEST(event_interval_holds_after_many_polls) {
    static const uint32_t intervals[] = { 1, 2, 7, 100 };
    for (int i = 0; i < 4; i++) {
        static yields_beside s;
        memset(&s, 0, sizeof s);
        volt_config c = test_config(1);
        c.event_interval = intervals[i];
        CHECK_EQ(volt_run(&c, yields_beside_run, &s), 0);
        uint64_t n = s.after.polls - s.before.polls;
        // a round of the ring has fewer if it is small and others wait behind it
        CHECK(n >= ALWAYS_READY * SHORT_POLLS / (VOLT_RING_CAP > ALWAYS_READY ? 1 : 2));
        // A task from the queue for all, when its turn is at the same time, goes first.
        CHECK(s.after.event_polls - s.before.event_polls >= n / (intervals[i] + 1) - 1);
    }
}
TEST(event_interval_holds_from_the_start) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    volt__worker *w = NULL;
    c.event_interval = 1;
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    CHECK_EQ(volt__worker_create(rt, 0, &w), 0);
    CHECK(w->event_every == 1 && w->event_due == 1);
    rt->started = 1;
    volt__rt_free(rt);
}
static void spawn_wrongly(volt_cx *cx) {
    giver wrong = { .value = 1 };
    wrong.frame.node_.resume_line_ = 5;
    CHECK_EQ(VOLT_SPAWN(cx, NULL, giver_run, wrong), -EINVAL);
    CHECK(strstr(test_log.text[VOLT_LOG_FRAME_NOT_ZERO], __FILE__ ":"));
    CHECK_EQ(VOLT_RT_SPAWN(cx->rt_, NULL, giver_run, wrong), -EINVAL);
    CHECK_EQ(volt_spawn(cx, NULL, giver_run, &wrong, 3), -EINVAL);
    volt_spawn_options o = { .tag = 1 };
    CHECK_EQ(VOLT_SPAWN_WITH(cx, &o, NULL, giver_run, wrong), -EINVAL);
    CHECK_EQ(test_log.n[VOLT_LOG_FRAME_NOT_ZERO], 4);
}
static volt_poll spawns_wrongly_run(volt_cx *cx, void *arg) {
    giver *s = arg;
    VOLT_BEGIN(cx, s);
    spawn_wrongly(cx);
    VOLT_END(0);
}
TEST(refused_spawn_is_logged_with_its_line) {
    static giver s;
    CHECK_EQ(run_on(1, spawns_wrongly_run, &s), 0);
    s.frame.node_.key_.any_ = 1; // of the last run
    CHECK_EQ(run_on(1, spawns_wrongly_run, &s), -EINVAL);
    CHECK_EQ(test_log.n[VOLT_LOG_FRAME_NOT_ZERO], 5);
}
TEST(test_clock_is_refused_without_it) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK_EQ(volt_test_advance(rt, 1), -ENOSYS);
    CHECK_EQ(volt_test_hold(rt, 1), -ENOSYS);
    destroy(rt);
}
#if VOLT_STACK_FILL > 0
// A local that an await loses does not keep its value by luck: the stack is overwritten before each
// poll of a debug build.
#  ifdef __clang__
#    pragma clang diagnostic ignored "-Wconditional-uninitialized"
#  else
#    pragma GCC diagnostic ignored "-Wjump-misses-init"
#  endif
typedef struct {
    volt_frame frame;
    int seen, rc;
} loses_a_local;
static volt_poll loses_a_local_run(volt_cx *cx, void *arg) {
    loses_a_local *s = arg;
    VOLT_BEGIN(cx, s);
    volatile int lost;
    lost = 42;
    VOLT_AWAIT(s->rc, volt_yield(cx));
    s->seen = lost;
    VOLT_END(s->seen);
}
// The polls of two such tasks follow each other, and their locals have the same place.
ROOT_TEST_1(lost_local_does_not_keep_its_value, { volt_group g; int i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->g);
    for (s->i = 0; s->i < 20; s->i++)
        GROUP_SPAWN(&s->g, loses_a_local_run, (loses_a_local){ .seen = 0 });
    for (s->i = 0; s->i < 20; s->i++) {
        VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, NULL));
        CHECK(s->rc != 42); // the pattern, or what was called since then
    }
    VOLT_END(0);
}
#endif
