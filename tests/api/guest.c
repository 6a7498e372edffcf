// SPDX-License-Identifier: MIT OR 0BSD
// Guest mode: the runtime as one descriptor in a loop that is not its own.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/epoll.h>
#include <sys/select.h>

static volt_rt *guest_on(uint32_t workers) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK(volt_rt_fd(rt) >= 0);
    return rt;
}
// Waits as an application's loop would, at most ms milliseconds (-1: no limit). 1: readable.
static int is_readable(volt_rt *rt, int ms) {
    struct pollfd p = { .fd = volt_rt_fd(rt), .events = POLLIN };
    int n;
    while ((n = poll(&p, 1, ms)) < 0 && errno == EINTR) {}
    CHECK(n == 0 || (n == 1 && p.revents == POLLIN));
    return n;
}
// The loop of an application that does nothing else, until a word has reached a value.
static void step_until(volt_rt *rt, const int *word, int value) {
    while (READ(*word) < value) {
        CHECK_EQ(is_readable(rt, -1), 1);
        CHECK(volt_rt_step(rt, 0) >= 0);
    }
}
static uint64_t parks_of(volt_rt *rt) {
    volt_counters s;
    volt_stats(rt, &s);
    return s.parks;
}

// ---- alone

TEST(idle_guest_is_not_readable) {
    volt_rt *rt = guest_on(1);
    CHECK_EQ(is_readable(rt, 20), 0);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    CHECK_EQ(volt_rt_step(rt, 0), 0); // for nothing, and it stays so
    CHECK_EQ(is_readable(rt, 20), 0);
    destroy(rt);
}
// A guest that is asked: a task that the thread of the steps makes runnable is due, but does not
// make the descriptor readable; one that another thread makes runnable does.
static volt_rt *asked_guest_on(uint32_t workers) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.is_guest = c.guest_is_asked = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK_EQ(volt_rt_step(rt, 0), 0);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    return rt;
}
static void *spawn_outside(void *arg) {
    RT_SPAWN((volt_rt *)arg, NULL, giver_run, (giver){ .value = 7 });
    return NULL;
}
TEST(guest_that_is_asked_is_due_without_being_readable) {
    volt_rt *rt = asked_guest_on(1);
    int n_ended = 0;
    for (int i = 1; i <= 3; i++) {
        RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 7, .n_ended = &n_ended });
        CHECK_EQ(is_readable(rt, 0), 0);
        CHECK_EQ(volt_rt_deadline(rt), 0);
        CHECK_EQ(volt_rt_step(rt, 0), 1);
        CHECK_EQ(n_ended, i);
        CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    }
    for (int i = 0; i < 2; i++) RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 7 });
    CHECK_EQ(volt_rt_step(rt, 1), 1); // one is left
    CHECK_EQ(is_readable(rt, 0), 0);
    CHECK_EQ(volt_rt_deadline(rt), 0);
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    destroy(rt);
}
TEST_OF_THREADS(guest_that_is_asked_is_readable_for_other_threads) {
    volt_rt *rt = asked_guest_on(1);
    join_thread(start_thread(spawn_outside, rt));
    CHECK_EQ(is_readable(rt, 0), 1);
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK_EQ(is_readable(rt, 0), 0);
    destroy(rt);
}
// The thread that shuts down may be another one: it waits for what the first one has left.
static void *destroy_outside(void *arg) {
    destroy((volt_rt *)arg);
    return NULL;
}
TEST_OF_THREADS(guest_that_is_asked_may_be_shut_down_by_another_thread) {
    volt_rt *rt = asked_guest_on(1);
    int n_ended = 0;
    RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 7, .n_ended = &n_ended });
    join_thread(start_thread(destroy_outside, rt));
    CHECK_EQ(n_ended, 1);
}
TEST(guest_is_asked_without_guest_is_refused) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.guest_is_asked = 1;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
}
TEST(spawn_makes_guest_readable) {
    volt_rt *rt = guest_on(1);
    volt_handle h = { 0 };
    int n_ended = 0;
    int64_t result = 0;
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 7, .n_ended = &n_ended });
    CHECK_EQ(READ(n_ended), 0); // only a step runs it
    CHECK_EQ(is_readable(rt, 0), 1);
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK_EQ(volt_try_join(&h, &result), 0);
    CHECK_EQ(result, 7);
    CHECK_EQ(is_readable(rt, 0), 0);
    destroy(rt);
}
// A loop that waits with a time limit, and not for the descriptor, must not miss it.
TEST(spawn_makes_a_step_due_by_the_deadline) {
    volt_rt *rt = guest_on(1);
    int n_ended = 0;
    CHECK_EQ(volt_rt_step(rt, 0), 0);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &n_ended });
    CHECK_EQ(volt_rt_deadline(rt), 0);
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    destroy(rt);
}
TEST_OF_THREADS(spawn_of_a_bound_task_makes_a_step_due_by_the_deadline) {
    volt_rt *rt = guest_on(2);
    volt_spawn_options bound = { .is_bound = 1, .worker = 0 };
    int n_ended = 0;
    while (volt_rt_step(rt, 0) > 0 || volt_rt_deadline(rt) != VOLT_NEVER) {}
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &bound, NULL, giver_run, (giver){ .n_ended = &n_ended }), 0);
    CHECK_EQ(volt_rt_deadline(rt), 0);
    UNTIL((volt_rt_step(rt, 0), READ(n_ended)));
    destroy(rt);
}
TEST(due_timer_makes_guest_readable) {
    volt_rt *rt = guest_on(1);
    int n_ended = 0;
    for (int ms = 5; ms <= 25; ms += 10) {
        volt_time before = volt_now(), due;
        int is_last = ms == 25;
        RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(ms), .n_ended = &n_ended });
        // A later timer does not delay it, and one that is gone wakes no thread.
        if (is_last) RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(100) });
        CHECK_EQ(volt_rt_step(rt, 0), 1 + is_last);
        due = volt_rt_deadline(rt);
        CHECK(due >= before + VOLT_MS(ms) && due <= volt_now() + VOLT_MS(ms + 1));
        CHECK_EQ(is_readable(rt, -1), 1);
        CHECK(volt_now() >= due);
        CHECK_EQ(volt_rt_step(rt, 0), 1);
        CHECK_EQ(READ(n_ended), ms / 10 + 1);
        CHECK_EQ(is_readable(rt, 0), 0);
    }
    CHECK(volt_rt_deadline(rt) > volt_now());
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    volt_timer late;
    int fd;
    int64_t *n;
    char buf[8];
} pipe_reader;
static volt_poll pipe_reader_run(volt_cx *cx, void *arg) {
    pipe_reader *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(*r->n, volt_within(cx, &r->late, VOLT_S(100),
                                  volt_read(cx, r->fd, r->buf, sizeof r->buf)));
    volt_close(cx, r->fd);
    VOLT_END(0);
}
TEST(descriptor_event_makes_guest_readable) {
    volt_rt *rt = guest_on(1);
    int64_t n = -1;
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    RT_SPAWN(rt, NULL, pipe_reader_run, (pipe_reader){ .fd = fd[0], .n = &n });
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK_EQ(is_readable(rt, 20), 0);
    CHECK_EQ(write(fd[1], "abc", 3), 3);
    CHECK_EQ(is_readable(rt, 0), 1);
    CHECK_EQ(is_readable(rt, 0), 1); // asking takes nothing away
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK_EQ(n, 3);
    CHECK_EQ(is_readable(rt, 20), 0); // nor does the timer that is not needed any more
    CHECK_EQ(close(fd[1]), 0);
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    int *n;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    VOLT_BEGIN(cx, y);
    int rc;
    for (;;) {
        COUNT(*y->n);
        VOLT_AWAIT(rc, volt_yield(cx));
        if (rc < 0) break;
    }
    VOLT_END(rc);
}
TEST(guest_step_runs_no_more_polls_than_asked) {
    static const uint32_t most[] = { 1, 2, 3, 64, 1000 };
    for (uint32_t n_tasks = 1; n_tasks <= 3; n_tasks++) {
        volt_rt *rt = guest_on(1);
        int n = 0;
        for (uint32_t i = 0; i < n_tasks; i++)
            RT_SPAWN(rt, NULL, yielder_run, (yielder){ .n = &n });
        for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
            int before = n;
            CHECK_EQ(volt_rt_step(rt, most[i]), most[i]);
            CHECK_EQ(n - before, most[i]);
            CHECK_EQ(volt_rt_deadline(rt), 0);
            CHECK_EQ(is_readable(rt, 0), 1); // more is due
        }
        destroy(rt);
    }
}
TEST(events_and_timers_are_served_between_short_steps) {
    volt_rt *rt = guest_on(1);
    int n = 0, n_ended = 0;
    int64_t got = -1;
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    RT_SPAWN(rt, NULL, yielder_run, (yielder){ .n = &n });
    RT_SPAWN(rt, NULL, pipe_reader_run, (pipe_reader){ .fd = fd[0], .n = &got });
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(5), .n_ended = &n_ended });
    while (READ(n_ended) == 0) CHECK_EQ(volt_rt_step(rt, 2), 2);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    while (got < 0) CHECK_EQ(volt_rt_step(rt, 2), 2);
    CHECK_EQ(close(fd[1]), 0);
    destroy(rt);
}
TEST(guest_steps_of_one_poll_serve_the_injector) {
    enum { STEPS = 2000 };
    volt_rt *rt = guest_on(1);
    int n = 0, n_ended = 0, i;
    RT_SPAWN(rt, NULL, yielder_run, (yielder){ .n = &n });
    for (i = 0; i < STEPS; i++) CHECK_EQ(volt_rt_step(rt, 1), 1);
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = 0, .n_ended = &n_ended });
    for (i = 0; i < STEPS && READ(n_ended) == 0; i++) CHECK_EQ(volt_rt_step(rt, 1), 1);
    CHECK_EQ(READ(n_ended), 1);
    destroy(rt);
}
// Two of them wake each other by turns.
typedef struct {
    volt_frame frame;
    volt_notify *mine, *other;
} waker;
static volt_poll waker_run(volt_cx *cx, void *arg) {
    waker *t = arg;
    VOLT_BEGIN(cx, t);
    int64_t rc;
    do {
        volt_notify_one(t->other);
        VOLT_AWAIT(rc, volt_notify_wait(cx, t->mine));
    } while (rc == 0);
    VOLT_END(0);
}
TEST(pair_in_lifo_slot_starves_no_task_of_short_steps) {
    enum { STEPS = 300 };
    for (uint32_t most = 1; most <= VOLT_LIFO_MAX + 1; most++) {
        static volt_notify notify[2];
        volt_rt *rt = guest_on(1);
        int n = 0;
        memset(notify, 0, sizeof notify);
        for (int i = 0; i < 2; i++)
            RT_SPAWN(rt, NULL, waker_run, (waker){ .mine = &notify[i], .other = &notify[1 - i] });
        RT_SPAWN(rt, NULL, yielder_run, (yielder){ .n = &n });
        for (int i = 0; i < STEPS; i++) CHECK_EQ(volt_rt_step(rt, most), most);
        CHECK(n >= STEPS / (2 * (VOLT_LIFO_MAX + 1)));
        destroy(rt);
    }
}
// Only the length of polls decides when it looks for events: time between two steps is no poll.
TEST(time_between_guest_steps_does_not_count_as_poll_time) {
    volt_rt *rt = guest_on(1);
    int n = 0;
    RT_SPAWN(rt, NULL, yielder_run, (yielder){ .n = &n });
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(volt_rt_step(rt, 3), 3);
        poll(NULL, 0, 3);
    }
    CHECK_EQ(volt_rt_step(rt, 1), 1);
    CHECK(rt->workers[0]->avg_ns < VOLT_MS(1));
    destroy(rt);
}
TEST(guest_is_waited_for_by_epoll_select_or_deadline) {
    volt_rt *rt = guest_on(1);
    int n_ended = 0, ep = epoll_create1(EPOLL_CLOEXEC), fd = volt_rt_fd(rt);
    struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };
    CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(5), .n_ended = &n_ended });
    while (READ(n_ended) < 1) {
        CHECK_EQ(epoll_wait(ep, &ev, 1, -1), 1);
        CHECK(volt_rt_step(rt, 0) >= 0);
    }
    CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(5), .n_ended = &n_ended });
    while (READ(n_ended) < 2) {
        fd_set set;
        unsigned bit = (unsigned)fd; // a C library's macro may shift by it
        FD_ZERO(&set);
        FD_SET(bit, &set);
        CHECK_EQ(select(fd + 1, &set, NULL, NULL, NULL), 1);
        CHECK(volt_rt_step(rt, 0) >= 0);
    }
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(5), .n_ended = &n_ended });
    while (READ(n_ended) < 3) { // one that knows nothing but a time limit
        CHECK(volt_rt_step(rt, 0) >= 0);
        volt_time due = volt_rt_deadline(rt), now = volt_now();
        if (due != VOLT_NEVER && due > now) poll(NULL, 0, (int)((due - now) / VOLT_MS(1)) + 1);
    }
    CHECK_EQ(close(ep), 0);
    destroy(rt);
}
TEST(guest_step_accepts_any_number_of_polls) {
    static const uint32_t most[] = { INT32_MAX - 1u, INT32_MAX, INT32_MAX + 1u, UINT32_MAX };
    volt_rt *rt = guest_on(1);
    for (int i = 0; i < 4; i++) {
        RT_SPAWN(rt, NULL, giver_run, (giver){ .value = 1 });
        CHECK_EQ(volt_rt_step(rt, most[i]), 1);
    }
    destroy(rt);
}
TEST(destroy_is_refused_during_guest_step) {
    volt_rt *rt = guest_on(1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt__lock_kept(&rt->guest_lock); // as a thread does that is in a step
    CHECK_EQ(volt_destroy(rt), -EBUSY);
    volt__unlock_kept(&rt->guest_lock);
    destroy(rt);
}
TEST(one_loop_steps_several_guests) {
    volt_rt *rt[3];
    int n_ended = 0;
    for (int i = 0; i < 3; i++) {
        rt[i] = guest_on(1);
        RT_SPAWN(rt[i], NULL, napper_run, (napper){ .d = VOLT_MS(3 + i), .n_ended = &n_ended });
    }
    while (READ(n_ended) < 3) {
        struct pollfd p[3];
        for (int i = 0; i < 3; i++) p[i] = (struct pollfd){ volt_rt_fd(rt[i]), POLLIN, 0 };
        CHECK(poll(p, 3, -1) > 0);
        for (int i = 0; i < 3; i++)
            if (p[i].revents) CHECK(volt_rt_step(rt[i], 1) >= 0);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(volt_shutdown(rt[i], VOLT_NEVER), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(volt_destroy(rt[i]), 0);
    test_check_heap();
}

// ---- with threads

enum { N_FOREIGN = 3, N_EACH = 400 };
typedef struct {
    volt_rt *rt;
    int *n_ended;
} spawner;
static void *spawner_main(void *arg) {
    spawner *s = arg;
    for (int i = 0; i < N_EACH; i++) {
        volt_handle h = { 0 };
        int64_t result = 0;
        RT_SPAWN(s->rt, &h, giver_run, (giver){ .value = i, .n_ended = s->n_ended });
        if (i % 16 == 0) {
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
            CHECK_EQ(result, i);
        } else {
            volt_detach(&h);
        }
    }
    return NULL;
}
TEST_OF_THREADS(guest_serves_spawns_and_joins_of_foreign_threads) {
    EACH_WORKERS(w) {
        volt_rt *rt = guest_on(w);
        int n_ended = 0;
        spawner s = { rt, &n_ended };
        pthread_t t[N_FOREIGN];
        for (int i = 0; i < N_FOREIGN; i++) t[i] = start_thread(spawner_main, &s);
        while (READ(n_ended) < N_FOREIGN * N_EACH)
            if (is_readable(rt, 1)) CHECK(volt_rt_step(rt, 16) >= 0);
        for (int i = 0; i < N_FOREIGN; i++) join_thread(t[i]);
        destroy(rt);
    }
}
// One guest, no other worker: every spawn must make the descriptor readable, without a time limit.
TEST_OF_THREADS(each_spawn_of_foreign_threads_makes_guest_readable) {
    volt_rt *rt = guest_on(1);
    int n_ended = 0;
    spawner s = { rt, &n_ended };
    pthread_t t[N_FOREIGN];
    for (int i = 0; i < N_FOREIGN; i++) t[i] = start_thread(spawner_main, &s);
    step_until(rt, &n_ended, N_FOREIGN * N_EACH);
    for (int i = 0; i < N_FOREIGN; i++) join_thread(t[i]);
    destroy(rt);
}
// The application is busy with something else: the other workers do not wait for it.
TEST_OF_THREADS(other_workers_run_while_guest_is_not_stepped) {
    volt_rt *rt = guest_on(3);
    int n_ended = 0;
    for (int i = 0; i < 100; i++) {
        volt_handle h = { 0 };
        int64_t result = 0;
        RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_US(10), .value = i, .n_ended = &n_ended });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
        CHECK_EQ(result, i);
    }
    CHECK_EQ(READ(n_ended), 100);
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    int n_children, *n_ended;
    int rc;
} parent;
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = arg;
    VOLT_BEGIN(cx, p);
    for (int i = 0; i < p->n_children; i++)
        SPAWN(NULL, giver_run, (giver){ .n_ended = p->n_ended });
    VOLT_AWAIT(p->rc, volt_yield(cx));
    COUNT(*p->n_ended);
    VOLT_END(0);
}
// A step that ends by its quota leaves tasks behind: others take them while the guest is away.
TEST_OF_THREADS(workers_steal_tasks_that_guest_step_leaves) {
    volt_rt *rt = guest_on(2);
    int n_ended = 0, n_left = 0;
    for (int tries = 0; tries < 200 && n_left == 0; tries++) {
        int before = READ(n_ended);
        RT_SPAWN(rt, NULL, parent_run, (parent){ .n_children = 50, .n_ended = &n_ended });
        while (READ(n_ended) < before + 51)
            if (volt_rt_step(rt, 1) > 0 && volt_rt_deadline(rt) == 0) n_left++;
    }
    CHECK(n_left > 0);
    // and now with an application that does not come back at all
    int all = READ(n_ended) + 51;
    RT_SPAWN(rt, NULL, parent_run, (parent){ .n_children = 50, .n_ended = &n_ended });
    (void)volt_rt_step(rt, 1);
    while (READ(n_ended) < all) sched_yield();
    destroy(rt);
}
TEST_OF_THREADS(idle_guest_with_other_workers_is_silent) {
    volt_rt *rt = guest_on(3);
    int n_ended = 0;
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(2), .n_ended = &n_ended });
    while (READ(n_ended) < 1)
        if (is_readable(rt, 1)) CHECK(volt_rt_step(rt, 0) >= 0);
    for (;;) { // the watchdog may expire once more
        uint64_t before = parks_of(rt);
        if (!is_readable(rt, 50) && parks_of(rt) == before) break;
        CHECK(volt_rt_step(rt, 0) >= 0);
    }
    uint64_t before = parks_of(rt);
    CHECK_EQ(is_readable(rt, 200), 0);
    CHECK_EQ(parks_of(rt), before);
    destroy(rt);
}

// ---- the end

// Cleans up for a while when it is cancelled.
typedef struct {
    volt_frame frame;
    volt_shield shield;
    volt_time cleanup;
    int *n_cleaned;
} cleaner;
static volt_poll cleaner_run(volt_cx *cx, void *arg) {
    cleaner *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_sleep_forever(cx));
    volt_shield_begin(cx, &c->shield, VOLT_NEVER);
    VOLT_AWAIT(volt_sleep(cx, c->cleanup));
    volt_shield_end(cx, &c->shield);
    COUNT(*c->n_cleaned);
    VOLT_END(0);
}
// The guest was claimed, by a push that found the other worker busy. While its application makes no
// step, the other worker must not look after it again and again.
static volt_poll claims_the_guest_run(volt_cx *cx, void *arg) {
    giver *g = (giver *)arg;
    VOLT_BEGIN(cx, g);
    UNTIL(!volt__idle_is_parked(&cx->rt_->idle, 0));
    VOLT_END(0);
}
TEST_OF_THREADS(worker_beside_a_claimed_guest_that_is_away_is_silent) {
    volt_config c = test_config(2);
    volt_counters before, after;
    volt_rt *rt;
    int n_ended = 0;
    c.is_guest = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, NULL, claims_the_guest_run, (giver){ .value = 0 });
    while (volt__idle_is_parked(&rt->idle, 0))
        RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &n_ended });
    UNTIL((volt_stats(rt, &before), before.completed == before.spawned));
    UNTIL(volt__idle_is_parked(&rt->idle, 1));
    volt_stats(rt, &before);
    usleep(50000);
    volt_stats(rt, &after);
    CHECK(after.parks - before.parks <= 4); // the last expiry of the watchdog
    while (volt_rt_step(rt, 0) > 0) {}
    destroy(rt);
}
TEST(guest_shutdown_steps_until_tasks_have_cleaned_up) {
    EACH_WORKERS(w) {
        volt_rt *rt = guest_on(w);
        int n = 0;
        for (int i = 0; i < 10; i++)
            RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(i), .n_cleaned = &n });
        if (RANDOM_BELOW(2)) CHECK(volt_rt_step(rt, 3) >= 0);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(n, 10);
        CHECK_EQ(volt_rt_step(rt, 0), -ESHUTDOWN);
        CHECK_EQ(volt_rt_step(rt, 1), -ESHUTDOWN);
        volt_handle h = { 0 };
        CHECK_EQ(VOLT_RT_SPAWN(rt, &h, giver_run, (giver){ .value = 1 }), -ESHUTDOWN);
        destroy(rt);
    }
}
TEST(guest_shutdown_sleeps_while_tasks_clean_up) {
    volt_rt *rt = guest_on(1);
    int n = 0;
    RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(50), .n_cleaned = &n });
    uint64_t before = parks_of(rt);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(parks_of(rt) - before < 10);
    destroy(rt);
}
// Of a timer that expires before the shutdown, and of one that would expire while tasks clean up.
TEST(expiry_of_guest_timer_keeps_no_shutdown_awake) {
    for (int is_due = 0; is_due < 2; is_due++) {
        volt_rt *rt = guest_on(1);
        int n = 0;
        RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(60), .n_cleaned = &n });
        RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(is_due ? 1 : 20) });
        CHECK_EQ(volt_rt_step(rt, 0), 2);
        if (is_due) CHECK_EQ(is_readable(rt, -1), 1);
        uint64_t before = parks_of(rt);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK(parks_of(rt) - before < 10);
        CHECK_EQ(n, 1);
        destroy(rt);
    }
}
// An application may ask again and again whether the shutdown is complete, and waits in between.
TEST(shutdown_without_a_step_leaves_the_timer_of_a_guest) {
    volt_rt *rt = guest_on(1);
    int n = 0;
    RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(20), .n_cleaned = &n });
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    while (volt_shutdown(rt, 0) != 0) {
        CHECK_EQ(is_readable(rt, 5000), 1);
        CHECK(volt_rt_step(rt, 0) >= 0);
    }
    CHECK_EQ(n, 1);
    destroy(rt);
}
// Waits for a token whatever happens.
typedef struct {
    volt_frame frame;
    volt_shield shield;
    volt_token *go;
    int *n_ended;
} stubborn;
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *s = arg;
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    VOLT_AWAIT(volt_token_wait(cx, s->go));
    volt_shield_end(cx, &s->shield);
    COUNT(*s->n_ended);
    VOLT_END(0);
}
static void *shut_down_outside(void *rt) {
    CHECK_EQ(volt_shutdown((volt_rt *)rt, VOLT_NEVER), 0);
    return NULL;
}
TEST_OF_THREADS(guest_that_another_thread_drains_is_never_due) {
    volt_rt *rt = asked_guest_on(1);
    volt_token go = { 0 };
    int n_ended = 0;
    RT_SPAWN(rt, NULL, stubborn_run, (stubborn){ .go = &go, .n_ended = &n_ended });
    pthread_t t = start_thread(shut_down_outside, rt);
    UNTIL(volt_rt_step(rt, 0) == -EBUSY); // it stays inside
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    CHECK_EQ(volt_rt_step(rt, 0), -EBUSY);
    volt_token_cancel(&go);
    CHECK_EQ(is_readable(rt, -1), 1);
    join_thread(t);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}
// Each call makes one step of at most 1 ms, which a slow machine may not end in time.
TEST(shutdown_without_time_ends_a_guest_without_tasks) {
    volt_rt *rt = guest_on(1);
    UNTIL(volt_shutdown(rt, 0) == 0);
    CHECK_EQ(volt_destroy(rt), 0);
}
// Its time is bounded by the deadline, also if tasks poll for long and never end.
typedef struct {
    volt_frame frame;
    volt_shield shield;
    int is_over;
} stubborn_poller;
static int n_long_polls;
static volt_poll stubborn_poller_run(volt_cx *cx, void *arg) {
    stubborn_poller *s = (stubborn_poller *)arg;
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    while (!READ(s->is_over)) {
        volt_time until = volt_now() + VOLT_MS(2);
        COUNT(n_long_polls);
        while (volt_now() < until) {}
        VOLT_AWAIT(volt_yield(cx));
    }
    volt_shield_end(cx, &s->shield);
    VOLT_END(0);
}
TEST(shutdown_of_a_guest_keeps_to_its_time_beside_long_polls) {
    volt_rt *rt = guest_on(1);
    stubborn_poller *s = (stubborn_poller *)volt_task_create(rt, stubborn_poller_run, sizeof *s);
    volt_task_start(s, NULL);
    CHECK_EQ(volt_rt_step(rt, 1), 1);
    for (int ms = 0; ms <= 10; ms += 10) {
        n_long_polls = 0;
        CHECK_EQ(volt_shutdown(rt, VOLT_MS(ms)), 1);
        CHECK(n_long_polls <= 40); // of 2 ms each
    }
    s->is_over = 1;
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}
TEST(guest_steps_go_on_after_shutdown_that_timed_out) {
    volt_rt *rt = guest_on(1);
    volt_token go = { 0 };
    int n_ended = 0;
    RT_SPAWN(rt, NULL, stubborn_run, (stubborn){ .go = &go, .n_ended = &n_ended });
    CHECK_EQ(volt_shutdown(rt, 0), 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), 1);
    CHECK_EQ(volt_rt_step(rt, 0), 0); // neither blocks nor gives up
    CHECK_EQ(is_readable(rt, 0), 0);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    volt_token_cancel(&go);
    step_until(rt, &n_ended, 1);
    destroy(rt);
}
TEST(guest_shutdown_ends_at_its_deadline_and_may_go_on) {
    EACH_WORKERS(w) {
        volt_rt *rt = guest_on(w);
        int n = 0;
        RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(30), .n_cleaned = &n });
        CHECK_EQ(volt_shutdown(rt, 0), 1);
        CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), 1);
        CHECK_EQ(volt_destroy(rt), -EBUSY);
        while (READ(n) == 0) { // by steps again
            CHECK_EQ(is_readable(rt, w == 1 ? -1 : 1) || w > 1, 1);
            CHECK(volt_rt_step(rt, 1) >= -ESHUTDOWN);
        }
        destroy(rt);
    }
}
typedef struct {
    volt_frame frame;
    int rc, step, n_ended;
} stopper;
static volt_poll stopper_run(volt_cx *cx, void *arg) {
    stopper *s = arg;
    VOLT_BEGIN(cx, s);
    s->step = volt_rt_step(volt_cx_rt(cx), 0);
    s->rc = volt_shutdown(volt_cx_rt(cx), VOLT_NEVER);
    CHECK_EQ(s->step, -EDEADLK);
    CHECK_EQ(s->rc, -EINPROGRESS);
    VOLT_END(0);
}
// A loop that waits for the deadline alone knows no other sign of a shutdown.
static void step_by_the_deadline_to_the_end(volt_rt *rt) {
    int rc;
    while ((rc = volt_rt_step(rt, 0)) != -ESHUTDOWN) {
        CHECK(rc >= 0);
        CHECK(volt_rt_deadline(rt) <= volt_now());
    }
}
static volt_rt *guest_that_may_be_asked(int is_asked) {
    volt_rt *rt = is_asked ? asked_guest_on(1) : guest_on(1);
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(3600) });
    CHECK_EQ(volt_rt_step(rt, 0), 1);
    CHECK(volt_rt_deadline(rt) > volt_now());
    return rt;
}
TEST(shutdown_by_a_task_makes_a_step_due_by_the_deadline) {
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        volt_rt *rt = guest_that_may_be_asked(is_asked);
        RT_SPAWN(rt, NULL, stopper_run, (stopper){ .rc = 0 });
        step_by_the_deadline_to_the_end(rt);
        destroy(rt);
    }
}
TEST(end_of_a_created_task_after_a_shutdown_makes_a_step_due_by_the_deadline) {
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        volt_rt *rt = guest_that_may_be_asked(is_asked);
        void *created = volt_task_create(rt, giver_run, sizeof(giver));
        CHECK(created);
        RT_SPAWN(rt, NULL, stopper_run, (stopper){ .rc = 0 });
        while (volt_rt_deadline(rt) <= volt_now()) CHECK(volt_rt_step(rt, 0) >= 0);
        volt_task_destroy(created);
        step_by_the_deadline_to_the_end(rt);
        destroy(rt);
    }
}
TEST(task_may_shut_down_its_guest) {
    EACH_WORKERS(w) {
        volt_rt *rt = guest_on(w);
        int rc = 0;
        RT_SPAWN(rt, NULL, stopper_run, (stopper){ .rc = 0 });
        while (rc >= 0) {
            CHECK_EQ(is_readable(rt, -1), 1);
            rc = volt_rt_step(rt, 0);
        }
        CHECK_EQ(rc, -ESHUTDOWN);
        destroy(rt);
    }
}
static void *shutdown_main(void *arg) {
    volt_rt *rt = arg;
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    return NULL;
}
TEST_OF_THREADS(foreign_thread_may_shut_down_guest) {
    EACH_WORKERS(w) {
        volt_rt *rt = guest_on(w);
        int n = 0, rc = 0;
        for (int i = 0; i < 5; i++)
            RT_SPAWN(rt, NULL, cleaner_run, (cleaner){ .cleanup = VOLT_MS(i), .n_cleaned = &n });
        pthread_t t = start_thread(shutdown_main, rt);
        while (rc >= 0 || rc == -EBUSY) rc = volt_rt_step(rt, 2);
        CHECK_EQ(rc, -ESHUTDOWN);
        join_thread(t);
        CHECK_EQ(n, 5);
        destroy(rt);
    }
}

// ---- what is refused

typedef struct {
    volt_frame frame;
    volt_rt *rt;
    int is_inside, may_go;
} holder;
static volt_poll holder_run(volt_cx *cx, void *arg) {
    holder *h = *(holder **)((volt_frame *)arg + 1);
    (void)cx;
    WRITE(h->is_inside, 1);
    while (!READ(h->may_go)) sched_yield();
    return volt_ready(0);
}
static void *holder_main(void *arg) {
    holder *h = arg;
    while (!READ(h->is_inside)) CHECK(volt_rt_step(h->rt, 0) >= 0);
    return NULL;
}
// The step must be left in order: its lock, and the worker.
static int steps_of;
static void *steps_cancelled(void *rt) {
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    CHECK(volt_rt_step(rt, (uint32_t)steps_of) >= 0);
    pthread_testcancel();
    return NULL;
}
TEST_OF_THREADS(pthread_cancel_waits_for_the_end_of_a_step) {
    for (steps_of = 0; steps_of < 2; steps_of++) { // 1: the step leaves tasks, and says so
        volt_rt *rt = guest_on(1);
        pthread_t t;
        void *result = NULL;
        int n_ended = 0;
        for (int i = 0; i < 2; i++)
            RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &n_ended });
        CHECK_EQ(pthread_create(&t, NULL, steps_cancelled, rt), 0);
        CHECK_EQ(pthread_join(t, &result), 0);
        CHECK(result == PTHREAD_CANCELED && n_ended == 2 - steps_of);
        CHECK_EQ(volt_rt_step(rt, 0), steps_of);
        destroy(rt);
    }
}
TEST_OF_THREADS(guest_step_is_refused_while_another_thread_steps) {
    typedef struct {
        volt_frame frame;
        holder *h;
    } holding;
    holder h = { .rt = guest_on(1) };
    RT_SPAWN(h.rt, NULL, holder_run, (holding){ .h = &h });
    pthread_t t = start_thread(holder_main, &h);
    while (!READ(h.is_inside)) sched_yield();
    CHECK_EQ(volt_rt_step(h.rt, 0), -EBUSY);
    CHECK_EQ(volt_shutdown(h.rt, VOLT_MS(1)), 1); // waits for the thread that steps
    WRITE(h.may_go, 1);
    join_thread(t);
    destroy(h.rt);
}
TEST_OF_THREADS(guest_calls_are_refused_without_guest_mode) {
    static giver g;
    volt_config c = test_config(1);
    volt_rt *rt = create_on(1);
    CHECK_EQ(volt_rt_fd(rt), -EINVAL);
    CHECK_EQ(volt_rt_step(rt, 0), -EINVAL);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    destroy(rt);
    c.is_guest = 1;
    CHECK_EQ(volt_run(&c, giver_run, &g), -EINVAL);
    c.is_guest = 2;
    CHECK_EQ(volt_create(&c, &rt), -EINVAL);
    test_check_heap();
}
TEST(guest_create_without_descriptors_gives_emfile) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    for (rlim_t n = 3; rt == NULL; n++) {
        CHECK(n < 20);
        rlim_t before = set_fd_limit(n);
        int rc = volt_create(&c, &rt);
        (void)set_fd_limit(before);
        CHECK_EQ(rc, rt ? 0 : -EMFILE);
        if (rc < 0) test_check_heap();
    }
    destroy(rt);
}
