// SPDX-License-Identifier: MIT OR 0BSD
// VOLT_SINGLE_THREAD: a runtime without threads, whose tasks run while their thread waits for them.
// The other programs of SINGLE_TESTS (tests/test.mk) test the rest in this form.
#ifndef VOLT_SINGLE_THREAD
#  define VOLT_SINGLE_THREAD
#endif
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

static int64_t switches(void) { // how often this thread gave its processor up by itself
    struct rusage u;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &u), 0);
    return u.ru_nvcsw;
}

// ---- threads

typedef struct counter {
    volt_frame frame;
    int n;
} counter;
static volt_poll counter_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    c->n = test_count_threads();
    VOLT_END(c->n);
}
TEST(no_thread_is_started) {
    int before = test_count_threads();
    for (uint32_t workers = 0; workers <= 1; workers++) {
        counter a = { .n = 0 }, b = { .n = 0 };
        CHECK_EQ(run_on(workers, counter_run, &a), before);
        volt_rt *rt = create_on(workers);
        CHECK_EQ(volt_block_on(rt, counter_run, &b), before);
        destroy(rt);
    }
}
TEST(single_thread_config_has_one_worker_in_guest_mode) {
    volt_config c = test_config(2), got;
    counter root = { .n = 0 };
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    CHECK_EQ(volt_run(&c, counter_run, &root), -EINVAL);
    rt = create_on(0);
    volt_effective_config(rt, &got);
    CHECK(got.workers == 1 && got.is_guest == 1);
    CHECK(volt_rt_fd(rt) >= 0);
    destroy(rt);
}

#if VOLT_DEBUG
static void *spawns(void *arg) {
    (void)!VOLT_RT_SPAWN((volt_rt *)arg, NULL, giver_run, (giver){ .value = 1 });
    return NULL;
}
TEST_DIES(spawn_by_another_thread_is_caught, "a runtime belongs to the thread that made it") {
    join_thread(start_thread(spawns, create_on(1)));
}
static void *steps(void *arg) {
    volt_rt_step((volt_rt *)arg, 0);
    return NULL;
}
TEST_DIES(step_by_another_thread_is_caught, "a runtime belongs to the thread that made it") {
    join_thread(start_thread(steps, create_on(1)));
}
#endif
// Release builds have no other locks; see volt__lock_kept.
typedef struct asker {
    volt_frame frame;
    volt_rt *rt;
    volt_time deadline;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    a->deadline = volt_rt_deadline(a->rt);
    VOLT_END(0);
}
TEST(deadline_inside_a_step_is_never) {
    asker a = { .rt = create_on(1) };
    CHECK_EQ(volt_block_on(a.rt, asker_run, &a), 0);
    CHECK_EQ(a.deadline, VOLT_NEVER);
    destroy(a.rt);
}
static int drop_text(void *user, const char *text, size_t len) { // as a volt_put
    (void)user, (void)text, (void)len;
    return 0;
}
TEST(crash_dump_is_refused_while_the_slabs_change) {
    volt_rt *rt = create_on(1);
    CHECK_EQ(volt_dump_to(rt, drop_text, NULL, VOLT_DUMP_CRASH), 0);
    volt__lock_kept(&rt->slabs.lock); // as where a signal stops the thread
    CHECK_EQ(volt_dump_to(rt, drop_text, NULL, VOLT_DUMP_CRASH), -EBUSY);
    volt__unlock_kept(&rt->slabs.lock);
    CHECK_EQ(volt_dump_to(rt, drop_text, NULL, VOLT_DUMP_CRASH), 0);
    destroy(rt);
}
static void *runs_one_of_its_own(void *arg) {
    for (int i = 0; i < 50; i++) {
        volt_rt *rt = create_on(1);
        giver g = { .value = i };
        CHECK_EQ(volt_block_on(rt, giver_run, &g), i);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
    }
    return arg;
}
TEST(each_thread_may_have_its_own_runtime) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) t[i] = start_thread(runs_one_of_its_own, NULL);
    for (int i = 0; i < 3; i++) join_thread(t[i]);
    test_check_heap();
}

// ---- waiting for a task runs it

TEST(block_on_steps_its_runtime) {
    volt_rt *rt = create_on(1);
    for (int i = 0; i < 20; i++) {
        napper n = { .d = i % 3 ? VOLT_MS(i) : 0, .value = i };
        volt_time from = volt_now();
        CHECK_EQ(volt_block_on(rt, napper_run, &n), i);
        CHECK(volt_now() - from >= n.d);
    }
    destroy(rt);
}
static volt_poll spins(volt_cx *cx, void *arg) {
    awaiter *a = (awaiter *)arg;
    VOLT_BEGIN(cx, a);
    do VOLT_AWAIT(a->rc, volt_yield(cx));
    while (a->rc == 0);
    VOLT_END(a->rc);
}
// With .guest_is_asked too, whose thread is the one of the steps.
typedef struct {
    volt_frame frame;
    int i;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = (yielder *)arg;
    VOLT_BEGIN(cx, y);
    for (y->i = 0; y->i < 3000; y->i++) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(y->i);
}
TEST(block_on_steps_a_guest_that_is_asked) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    yielder y = { .i = 0 };
    c.is_guest = c.guest_is_asked = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK_EQ(volt_rt_step(rt, 0), 0);
    CHECK_EQ(volt_block_on(rt, yielder_run, &y), 3000);
    destroy(rt);
}
TEST(block_on_ends_while_another_task_goes_on) {
    volt_rt *rt = create_on(1);
    volt_handle h;
    int64_t result = 0;
    napper n = { .d = VOLT_MS(5), .value = 9 };
    RT_SPAWN(rt, &h, spins, (awaiter){ .rc = 0 });
    CHECK_EQ(volt_block_on(rt, napper_run, &n), 9);
    CHECK_EQ(volt_try_join(&h, &result), -EAGAIN);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_try_join(&h, &result), 0);
    CHECK_EQ(result, -ECANCELED);
    destroy(rt);
}
TEST(join_sync_steps_its_runtime) {
    volt_rt *rt = create_on(1);
    volt_handle h[64];
    int n_ended = 0;
    for (int i = 0; i < 64; i++)
        RT_SPAWN(rt, &h[i], napper_run,
                 (napper){ .d = VOLT_MS(RANDOM_BELOW(8)), .value = i, .n_ended = &n_ended });
    for (int i = 0; i < 64; i++) {
        int64_t result = -1;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_S(10), &result), 0);
        CHECK_EQ(result, i);
    }
    CHECK_EQ(n_ended, 64);
    destroy(rt);
}
TEST(join_sync_time_out_keeps_handle) {
    volt_rt *rt = create_on(1);
    volt_handle h;
    int64_t result = 0;
    volt_time from = volt_now();
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_NEVER });
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(20), &result), -ETIMEDOUT);
    CHECK(volt_now() - from >= VOLT_MS(20));
    CHECK(volt_handle_is_set(&h));
    CHECK_EQ(volt_join_sync(&h, 0, &result), -ETIMEDOUT);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, -ECANCELED);
    destroy(rt);
}
TEST(block_on_waits_without_wake_ups) {
    volt_rt *rt = create_on(1);
    napper n = { .d = VOLT_MS(300) };
    volt_handle h;
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_NEVER });
    int64_t before = switches();
    CHECK_EQ(volt_block_on(rt, napper_run, &n), 0);
    CHECK(switches() - before <= 3);
    volt_detach(&h);
    destroy(rt);
}

typedef struct blocker {
    volt_frame frame;
    napper inner;
} blocker;
static volt_poll blocks(volt_cx *cx, void *arg) {
    blocker *b = (blocker *)arg;
    VOLT_BEGIN(cx, b);
    CHECK_EQ(volt_block_on(volt_cx_rt(cx), napper_run, &b->inner), -EDEADLK);
    CHECK_EQ(volt_rt_step(volt_cx_rt(cx), 0), -EDEADLK);
    CHECK_EQ(volt_shutdown(volt_cx_rt(cx), 0), -EINPROGRESS);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(1);
}
TEST(blocking_call_inside_a_task_is_refused) {
    volt_rt *rt = create_on(1);
    blocker b = { .inner = { .d = 0 } };
    CHECK_EQ(volt_block_on(rt, blocks, &b), 1);
    napper n = { .d = 0 };
    CHECK_EQ(volt_block_on(rt, napper_run, &n), -ESHUTDOWN);
    destroy(rt);
}

// ---- between runtimes, and from outside

typedef struct sleeper {
    volt_frame frame;
    volt_waker *out;
    int is_set, n_polls;
} sleeper;
static volt_poll until_woken(volt_cx *cx, sleeper *s) {
    s->n_polls++;
    return s->is_set ? volt_ready(s->n_polls) : (*s->out = volt_waker_retain(cx), volt_pending());
}
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    VOLT_BEGIN(cx, s);
    int64_t n;
    VOLT_AWAIT(n, until_woken(cx, s));
    VOLT_END(n);
}
typedef struct rouser {
    volt_frame frame;
    sleeper *whom;
} rouser;
static volt_poll rouser_run(volt_cx *cx, void *arg) {
    rouser *r = (rouser *)arg;
    VOLT_BEGIN(cx, r);
    r->whom->is_set = 1;
    volt_wake(*r->whom->out);
    VOLT_END(0);
}
TEST(task_of_one_runtime_wakes_task_of_another) {
    volt_rt *a = create_on(1), *b = create_on(1);
    volt_waker w = { 0 };
    volt_handle h;
    int64_t result = 0;
    sleeper *s = volt_task_create(a, sleeper_run, sizeof *s);
    CHECK(s);
    s->out = &w;
    volt_task_start(s, &h);
    CHECK_EQ(volt_join_sync(&h, 0, &result), -ETIMEDOUT);
    rouser r = { .whom = s };
    CHECK_EQ(volt_block_on(b, rouser_run, &r), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 2);
    volt_waker_release(w);
    CHECK_EQ(volt_shutdown(b, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(b), 0);
    destroy(a);
}
TEST(created_task_may_be_destroyed_after_shutdown) {
    volt_rt *rt = create_on(1);
    giver *g = volt_task_create(rt, giver_run, sizeof *g);
    CHECK(g);
    CHECK_EQ(volt_shutdown(rt, 0), 1);
    volt_task_destroy(g);
    volt_counters c;
    volt_stats(rt, &c);
    CHECK(c.spawned == 1 && c.completed == 1);
    CHECK(volt_task_create(rt, giver_run, sizeof *g) == NULL);
    destroy(rt);
}

// ---- shutdown

typedef struct holdout {
    volt_frame frame;
    volt_shield shield;
    volt_time d;
} holdout;
static volt_poll holdout_run(volt_cx *cx, void *arg) {
    holdout *h = (holdout *)arg;
    VOLT_BEGIN(cx, h);
    volt_shield_begin(cx, &h->shield, VOLT_NEVER);
    VOLT_AWAIT(volt_sleep(cx, h->d));
    volt_shield_end(cx, &h->shield);
    VOLT_END(0);
}
TEST(shutdown_steps_its_runtime_until_its_deadline) {
    volt_rt *rt = create_on(1);
    volt_time from = volt_now();
    for (int i = 0; i < 3; i++) RT_SPAWN(rt, NULL, holdout_run, (holdout){ .d = VOLT_MS(120) });
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(20)), 3);
    CHECK_EQ(test_log.n[VOLT_LOG_STILL_ALIVE], 3);
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(volt_now() - from >= VOLT_MS(120));
    destroy(rt);
}
TEST(calls_in_forked_child_give_echild) {
    volt_rt *rt = create_on(1);
    volt_handle h;
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 4 });
    pid_t pid = fork();
    if (pid == 0) {
        int64_t result;
        giver g = { .value = 1 };
        _exit(volt_block_on(rt, giver_run, &g) != -ECHILD || volt_rt_step(rt, 0) != -ECHILD ||
              volt_join_sync(&h, 0, &result) != -ECHILD || volt_shutdown(rt, 0) != -ECHILD);
    }
    int status, rc;
    int64_t result = 0;
    while ((rc = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {}
    CHECK(rc == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
    CHECK_EQ(result, 4);
    destroy(rt);
}

#ifndef VOLT_NO_IO
// ---- descriptors: what another thread does to a file needs no runtime

typedef struct reader {
    volt_frame frame;
    int fd;
    int64_t n;
    char buf[8];
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->n, volt_read_exact(cx, r->fd, r->buf, 4));
    volt_close(cx, r->fd);
    VOLT_END(r->n);
}
static void *writes(void *arg) {
    for (const char *c = "volt"; *c; c++) {
        CHECK_EQ(write(*(int *)arg, c, 1), 1);
        sched_yield();
    }
    return NULL;
}
TEST(block_on_sees_what_another_thread_writes) {
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    volt_rt *rt = create_on(1);
    reader r = { .fd = fd[0] };
    pthread_t t = start_thread(writes, &fd[1]);
    CHECK_EQ(volt_block_on(rt, reader_run, &r), 4);
    CHECK(memcmp(r.buf, "volt", 4) == 0);
    join_thread(t);
    close(fd[1]);
    destroy(rt);
}
#endif
