// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_uloop.h in uloop, or in its stand-in, see uloop/. From the
// environment: IDLE_MS, the length of a sleep during which uloop.sh counts system calls.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_uloop.h"
#include "cancel.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <sys/socket.h>

// A callback after `ms`, and again after each further `ms` while it returns 1.
typedef struct {
    struct uloop_timeout timeout;
    int ms;
    int (*fn)(void);
} timer;
typedef struct {
    volt_uloop loop;
    volt_rt *rt;
    timer timers[2];
    int n_timers;
    pthread_t thread; // of the loop
    int n_shared;     // no atomic: tasks and callbacks are in one thread
    int n_ends, n_steps, is_beating;
    volt_event event;
} home;
static home h;

static int n_alive; // tasks that a shutdown has logged
static void on_log(void *user, int item, const char *text) {
    (void)user;
    n_alive += item == VOLT_LOG_STILL_ALIVE;
    if (item != VOLT_LOG_STILL_ALIVE) test_fail(__FILE__, __LINE__, "log item %d: %s", item, text);
}
static volt_rt *guest(uint32_t workers) {
    volt_config config = { .workers = workers, .is_guest = 1, .log = { .fn = on_log } };
    volt_rt *rt;
    CHECK_EQ(volt_create(&config, &rt), 0);
    return rt;
}
static void counting_step(struct uloop_fd *fd, unsigned events) {
    h.n_steps++;
    volt_uloop__step(fd, events);
}
static void open_home(uint32_t workers, uint32_t max_polls) {
    CHECK_EQ(uloop_init(), 0);
    h.rt = guest(workers);
    h.thread = pthread_self();
    CHECK_EQ(volt_uloop_attach(&h.loop, h.rt, max_polls), 0);
    h.loop.fd.cb = counting_step;
}
static void close_home(void) {
    volt_uloop_detach(&h.loop);
    uloop_done();
    CHECK_EQ(n_alive, 0);
    CHECK_EQ(volt_shutdown(h.rt, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(h.rt), 0);
}
static void on_timer(struct uloop_timeout *timeout) {
    timer *t = (timer *)(void *)timeout;
    if (t->fn()) uloop_timeout_set(timeout, t->ms);
}
static void after(int ms, int (*fn)(void)) {
    timer *t = &h.timers[h.n_timers++];
    t->timeout.cb = on_timer;
    t->ms = ms;
    t->fn = fn;
    CHECK_EQ(uloop_timeout_set(&t->timeout, ms), 0);
}
static int quit(void) {
    uloop_end();
    return 0;
}

// ---- one thread

typedef struct {
    volt_frame frame;
    int n, rc;
} counter;
static volt_poll count_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    for (c->n = 0; c->n < 50; c->n++) {
        CHECK(pthread_equal(pthread_self(), h.thread));
        if (++h.n_shared == 150) uloop_end();
        VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(1)));
        if (c->rc < 0) break;
    }
    VOLT_END(0);
}
static int count(void) {
    CHECK(pthread_equal(pthread_self(), h.thread));
    if (++h.n_shared == 150) uloop_end();
    return ++h.n_ends < 50;
}
TEST(tasks_and_callbacks_take_turns_in_one_thread) {
    open_home(1, 64);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, count_run, (counter){ .n = 0 }), 0);
    after(1, count);
    uloop_run();
    CHECK_EQ(h.n_shared, 150);
    close_home();
}

static volt_poll spin_run(volt_cx *cx, void *arg) {
    counter *s = (counter *)arg;
    VOLT_BEGIN(cx, s);
    do VOLT_AWAIT(s->rc, volt_yield(cx));
    while (s->rc == 0);
    VOLT_END(s->rc);
}
TEST(task_that_never_waits_does_not_starve_the_loop) {
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, spin_run, (counter){ .n = 0 }), 0);
    after(20, quit);
    uloop_run();
    close_home();
}

// A task that calls a function which runs the loop until an answer has come, while a descriptor of
// another task is readable.
static int is_answered, ends[2];
static int answer(void) {
    is_answered = 1;
    return 0;
}
static volt_poll invoke_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(2))); // the other task waits from now on
    CHECK_EQ(write(ends[1], "a", 1), 1);
    after(30, answer);
    for (h.n_steps = 0; !is_answered;) uloop_run_timeout(5);
    CHECK_EQ(h.n_steps, 1); // no more than one try
    CHECK_EQ(h.n_shared, 0);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(2)));
    CHECK_EQ(h.n_shared, 1); // the other task has gone on since
    uloop_end();
    VOLT_END(0);
}
static volt_poll receive_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_readable(cx, ends[0]));
    if (c->rc >= 0) h.n_shared++;
    volt_close(cx, ends[0]);
    VOLT_END(c->rc);
}
TEST(loop_inside_a_task_sleeps_while_other_tasks_are_due) {
    open_home(1, 64);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, ends), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, receive_run, (counter){ .n = 0 }), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, invoke_run, (counter){ .n = 0 }), 0);
    uloop_run();
    close(ends[1]);
    close_home();
}
static int detach(void) {
    volt_uloop_detach(&h.loop);
    return is_answered = 1, 0;
}
static volt_poll detached_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    after(0, detach);
    while (!is_answered) uloop_run_timeout(5);
    h.n_steps = 0;
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(1)));
    h.n_shared = c->rc == -ECANCELED ? 1 : -1; // by the shutdown, and not before
    VOLT_END(0);
}
TEST(guest_that_is_detached_inside_a_task_stays_so) {
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, detached_run, (counter){ .n = 0 }), 0);
    uloop_run_timeout(1000);
    CHECK(is_answered);
    after(20, quit);
    uloop_run();
    CHECK_EQ(h.n_steps, 0);
    close_home();
    CHECK_EQ(h.n_shared, 1);
}
static int run_inside(void) {
    after(20, answer);
    while (!is_answered) uloop_run_timeout(5);
    CHECK(h.n_shared > 0);
    uloop_end();
    return 0;
}
TEST(loop_inside_a_callback_runs_the_tasks) {
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, count_run, (counter){ .n = 0 }), 0);
    after(0, run_inside);
    uloop_run();
    close_home();
}

// ---- waits that the other side ends

typedef struct {
    volt_frame frame;
    int fd, rc;
    char byte;
} reader;
static volt_poll read_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->rc, volt_read(cx, r->fd, &r->byte, 1));
        if (r->rc <= 0) break;
        r->byte++;
        VOLT_AWAIT(r->rc, volt_write_all(cx, r->fd, &r->byte, 1));
        CHECK_EQ(r->rc, 1);
    }
    volt_close(cx, r->fd);
    uloop_end();
    VOLT_END(r->rc);
}
static void on_readable(struct uloop_fd *u, unsigned events) {
    char byte;
    (void)events;
    CHECK_EQ(read(u->fd, &byte, 1), 1);
    if (byte == 'z') shutdown(u->fd, SHUT_WR);
    else CHECK_EQ(write(u->fd, &byte, 1), 1);
}
TEST(callback_answers_a_task_over_a_socket) {
    open_home(1, 64);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, ends), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, read_run, (reader){ .fd = ends[0] }), 0);
    static struct uloop_fd peer;
    peer.cb = on_readable;
    peer.fd = ends[1];
    CHECK_EQ(uloop_fd_add(&peer, ULOOP_READ), 0);
    CHECK_EQ(write(ends[1], "a", 1), 1);
    uloop_run();
    CHECK_EQ(uloop_fd_delete(&peer), 0);
    close(ends[1]);
    close_home();
}

static volt_poll wait_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->n, volt_event_wait(cx, &h.event));
    CHECK(pthread_equal(pthread_self(), h.thread));
    h.n_shared += c->n == 0;
    if (c->n == 0) uloop_end();
    VOLT_END(c->n);
}
// Sets the event once the loop sleeps, which has no time limit of its own.
static void *other_thread(void *user) {
    (void)user;
    UNTIL(test_state_of(getpid()) == 'S');
    volt_event_set(&h.event);
    return NULL;
}
TEST(another_thread_ends_a_wait_and_wakes_the_loop) {
    pthread_t other;
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, wait_run, (counter){ .n = 0 }), 0);
    CHECK_EQ(pthread_create(&other, NULL, other_thread, NULL), 0);
    uloop_run();
    pthread_join(other, NULL);
    close_home();
}
static void *spawning_thread(void *user) {
    volt_handle handle = { 0 };
    int64_t result;
    (void)user;
    UNTIL(test_state_of(getpid()) == 'S');
    volt_event_set(&h.event);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, &handle, wait_run, (counter){ .n = 0 }), 0);
    CHECK_EQ(volt_join_sync(&handle, VOLT_S(10), &result), 0);
    return NULL;
}
TEST(another_thread_spawns_and_wakes_the_loop) {
    pthread_t other;
    open_home(1, 64);
    CHECK_EQ(pthread_create(&other, NULL, spawning_thread, NULL), 0);
    uloop_run();
    pthread_join(other, NULL);
    close_home();
}

// ---- no idle wake-ups

static volt_poll idle_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    const char *const ms = getenv("IDLE_MS");
    VOLT_BEGIN(cx, c);
    h.n_steps = 0;
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ms ? atoi(ms) : 300)));
    uloop_end();
    VOLT_END(0);
}
TEST(loop_sleeps_while_tasks_sleep) {
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, idle_run, (counter){ .n = 0 }), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, wait_run, (counter){ .n = 0 }), 0); // until the end
    uloop_run();
    CHECK(h.n_steps <= 3);
    close_home();
}

// ---- the end

typedef struct {
    volt_frame frame;
    volt_shield shield;
    int rc;
} slow_end;
static volt_poll slow_end_run(volt_cx *cx, void *arg) {
    slow_end *s = (slow_end *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep_forever(cx));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    if (h.is_beating) VOLT_AWAIT(s->rc, volt_event_wait(cx, &h.event));
    else VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(30)));
    CHECK_EQ(s->rc, 0);
    h.n_shared++;
    VOLT_END(0);
}
// Ends the cleanup of the tasks, which must not keep the loop from calling it.
static int beat(void) {
    if (h.is_beating && ++h.n_ends == 5) volt_event_set(&h.event);
    return 1;
}
static int begin_shutdown(void) {
    h.is_beating = 1;
    CHECK_EQ(volt_shutdown(h.rt, 0), 3);
    n_alive -= 3; // it logs them
    return 0;
}
static int n_called;
static void on_end(volt_uloop *u) {
    CHECK_EQ(h.n_shared, 3); // the cleanup of each task is complete
    CHECK(u == &h.loop);
    n_called++;
    h.timers[1].fn = quit; // a guest that stays would be called again until then
    uloop_timeout_set(&h.timers[1].timeout, 20);
}
TEST(shutdown_ends_the_guest_once_and_does_not_block_the_loop) {
    open_home(1, 64);
    h.loop.on_end = on_end;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, slow_end_run, (slow_end){ .rc = 0 }), 0);
    after(2, beat);
    after(5, begin_shutdown);
    uloop_run();
    CHECK_EQ(n_called, 1);
    close_home();
}
static void on_end_destroy(volt_uloop *u) {
    CHECK_EQ(volt_shutdown(u->rt, 0), 0);
    CHECK_EQ(volt_destroy(u->rt), 0);
    memset(u, 0x5a, sizeof *u);
    uloop_end();
}
static int begin_end(void) {
    // There is no task. The step that the call makes stops the guest, or a later one does.
    int left = volt_shutdown(h.rt, 0);
    CHECK(left == 0 || left == 1);
    return 0;
}
TEST(runtime_and_guest_may_be_gone_when_the_last_call_returns) {
    open_home(1, 64);
    h.loop.on_end = on_end_destroy;
    after(1, begin_end);
    uloop_run();
    uloop_done();
}
TEST(shutdown_without_the_loop_completes_the_tasks) {
    open_home(1, 64);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, slow_end_run, (slow_end){ .rc = 0 }), 0);
    after(5, quit);
    uloop_run();
    close_home();
    CHECK_EQ(h.n_shared, 3);
}
TEST(runtime_that_is_no_guest_is_refused) {
    volt_rt *rt;
    CHECK_EQ(uloop_init(), 0);
    CHECK_EQ(volt_create(NULL, &rt), 0);
    CHECK_EQ(volt_uloop_attach(&h.loop, rt, 64), -EINVAL);
    volt_uloop_detach(&h.loop); // does nothing
    CHECK_EQ(volt_shutdown(rt, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    uloop_done();
}
TEST(loop_that_is_not_open_is_refused) {
    volt_rt *rt = guest(1);
    CHECK_EQ(volt_uloop_attach(&h.loop, rt, 64), -EBADF);
    CHECK_EQ(volt_shutdown(rt, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}

// ---- guests that come and go, several guests, workers

TEST(tasks_stand_still_while_their_runtime_is_detached) {
    open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, wait_run, (counter){ .n = 0 }), 0);
    after(2, quit);
    uloop_run(); // the task waits
    volt_uloop_detach(&h.loop);
    volt_event_set(&h.event); // no callback sees it
    uloop_timeout_set(&h.timers[0].timeout, 2);
    uloop_run();
    CHECK_EQ(h.n_shared, 0);
    CHECK_EQ(volt_uloop_attach(&h.loop, h.rt, 1), 0);
    uloop_run();
    CHECK_EQ(h.n_shared, 1);
    close_home();
}
TEST(two_runtimes_share_a_loop) {
    static volt_uloop other;
    open_home(1, 64);
    volt_rt *second = guest(1);
    CHECK_EQ(volt_uloop_attach(&other, second, 64), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, count_run, (counter){ .n = 0 }), 0);
    CHECK_EQ(VOLT_RT_SPAWN(second, NULL, count_run, (counter){ .n = 0 }), 0);
    after(1, count);
    uloop_run();
    CHECK_EQ(h.n_shared, 150);
    volt_uloop_detach(&other);
    CHECK_EQ(volt_shutdown(second, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(second), 0);
    close_home();
}

typedef struct {
    volt_frame frame;
    volt_wait_group *left;
    int n;
} roamer;
static volt_poll roam_run(volt_cx *cx, void *arg) {
    roamer *r = (roamer *)arg;
    VOLT_BEGIN(cx, r);
    for (r->n = 0; r->n < 20; r->n++) {
        VOLT_AWAIT(volt_yield(cx));
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    }
    volt_wait_group_done(r->left);
    VOLT_END(0);
}
static volt_wait_group left;
static int quit_if_done(void) {
    if (volt_wait_group_wait_sync(&left, 0) == 0) uloop_end();
    return 1;
}
TEST(guest_with_workers_of_its_own_shares_its_tasks_with_them) {
    open_home(3, 8);
    const roamer r = { .left = &left };
    CHECK_EQ(volt_wait_group_add(&left, 100), 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, roam_run, r), 0);
    after(1, quit_if_done);
    uloop_run();
    close_home();
}

// ---- cancelled at each poll, in a loop that runs

typedef struct {
    volt_frame frame;
    int rc;
} several;
static volt_poll several_waits(volt_cx *cx, several *s) {
    VOLT_BEGIN(cx, s);
    volt_event_reset(&h.event);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_event_wait(cx, &h.event));
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_yield(cx));
    VOLT_END(s->rc);
}
typedef struct {
    volt_frame frame;
    cancel_point at;
    several inner;
    int rc, n_cancelled;
} canceller;
static volt_poll cancel_run(volt_cx *cx, void *arg) {
    canceller *c = (canceller *)arg;
    VOLT_BEGIN(cx, c);
    while (cancel_next(&c->at)) {
        VOLT_AWAIT(c->rc, CANCEL_AT(cx, &c->at, several_waits(cx, &c->inner)));
        CHECK_EQ(c->rc, cancel_came(&c->at) ? -ECANCELED : 0);
        c->n_cancelled += cancel_came(&c->at);
    }
    CHECK(c->n_cancelled >= 3);
    uloop_end();
    VOLT_END(0);
}
static int set_event(void) {
    volt_event_set(&h.event);
    return 1;
}
TEST(task_is_cancelled_at_each_of_its_waits_for_the_loop) {
    open_home(1, 64);
    after(2, set_event);
    CHECK_EQ(VOLT_RT_SPAWN(h.rt, NULL, cancel_run, (canceller){ .rc = 0 }), 0);
    uloop_run();
    close_home();
}
