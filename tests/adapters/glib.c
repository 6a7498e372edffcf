// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_glib.h in main loops of GLib. From the environment: IDLE_MS, the
// length of a sleep during which tests/adapters/glib.sh counts system calls.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_glib.h"
#include "cancel.h"
#include "tests/lib/test.h"

#include <glib-unix.h>
#include <pthread.h>
#include <sys/socket.h>

typedef struct {
    volt_rt *rt;
    GMainContext *context; // one of its own, so that each test begins with no source
    GMainLoop *loop;
    GSource *source;
    pthread_t thread; // of the loop
    int n_shared;     // no atomic: tasks and callbacks are in one thread
    int n_ends, n_polls, is_beating;
    volt_event event;
} home;

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
static home *open_home(uint32_t workers, unsigned max_polls) {
    static home h;
    h.rt = guest(workers);
    h.context = g_main_context_new();
    h.loop = g_main_loop_new(h.context, FALSE);
    h.thread = pthread_self();
    h.source = volt_glib_attach(h.rt, h.context, max_polls);
    CHECK(h.source);
    return &h;
}
static void close_home(home *h) {
    volt_glib_detach(h->source);
    g_main_loop_unref(h->loop);
    g_main_context_unref(h->context);
    CHECK_EQ(n_alive, 0);
    CHECK_EQ(volt_shutdown(h->rt, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(h->rt), 0);
}
// Calls fn(h) in the loop after `ms`, and, if it returns TRUE, again after each further `ms`.
static void after(home *h, guint ms, GSourceFunc fn) {
    GSource *source = g_timeout_source_new(ms);
    g_source_set_callback(source, fn, h, NULL);
    g_source_attach(source, h->context);
    g_source_unref(source);
}
static gboolean quit(gpointer user) {
    g_main_loop_quit(((home *)user)->loop);
    return G_SOURCE_REMOVE;
}

// ---- one thread

typedef struct {
    volt_frame frame;
    home *home;
    int n, rc;
} counter;
static volt_poll count_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    for (c->n = 0; c->n < 50; c->n++) {
        CHECK(pthread_equal(pthread_self(), c->home->thread));
        if (++c->home->n_shared == 150) g_main_loop_quit(c->home->loop);
        VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(1)));
        if (c->rc < 0) break;
    }
    VOLT_END(0);
}
static gboolean count(gpointer user) {
    home *h = (home *)user;
    CHECK(pthread_equal(pthread_self(), h->thread));
    if (++h->n_shared == 150) g_main_loop_quit(h->loop);
    return ++h->n_ends < 50;
}
TEST(tasks_and_sources_take_turns_in_one_thread) {
    home *h = open_home(1, 64);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, count_run, (counter){ .home = h }), 0);
    after(h, 1, count);
    g_main_loop_run(h->loop);
    CHECK_EQ(h->n_shared, 150);
    close_home(h);
}

// A task that always has something to do, and a loop with other things to do.
typedef struct {
    volt_frame frame;
    int rc;
} spinner;
static volt_poll spin_run(volt_cx *cx, void *arg) {
    spinner *s = (spinner *)arg;
    VOLT_BEGIN(cx, s);
    do VOLT_AWAIT(s->rc, volt_yield(cx));
    while (s->rc == 0);
    VOLT_END(s->rc);
}
TEST(task_that_never_waits_does_not_starve_the_loop) {
    home *h = open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, spin_run, (spinner){ .rc = 0 }), 0);
    after(h, 20, quit);
    g_main_loop_run(h->loop);
    close_home(h);
}

// ---- waits that the other side ends

typedef struct {
    volt_frame frame;
    home *home;
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
    g_main_loop_quit(r->home->loop);
    VOLT_END(r->rc);
}
static gboolean on_readable(gint fd, GIOCondition condition, gpointer user) {
    char byte;
    (void)condition, (void)user;
    CHECK_EQ(read(fd, &byte, 1), 1);
    if (byte == 'z') shutdown(fd, SHUT_WR);
    else CHECK_EQ(write(fd, &byte, 1), 1);
    return G_SOURCE_CONTINUE;
}
TEST(source_answers_a_task_over_a_socket) {
    home *h = open_home(1, 64);
    int ends[2];
    CHECK_EQ(volt_socketpair(SOCK_STREAM, ends), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, read_run, (reader){ .home = h, .fd = ends[0] }), 0);
    GSource *source = g_unix_fd_source_new(ends[1], G_IO_IN);
    g_source_set_callback(source, G_SOURCE_FUNC(on_readable), h, NULL);
    g_source_attach(source, h->context);
    CHECK_EQ(write(ends[1], "a", 1), 1);
    g_main_loop_run(h->loop);
    g_source_destroy(source);
    g_source_unref(source);
    close(ends[1]);
    close_home(h);
}

static volt_poll wait_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->n, volt_event_wait(cx, &c->home->event));
    CHECK(pthread_equal(pthread_self(), c->home->thread));
    c->home->n_shared += c->n == 0;
    if (c->n == 0) g_main_loop_quit(c->home->loop);
    VOLT_END(c->n);
}
// Sets the event once the loop sleeps, which has no time limit of its own.
static void *other_thread(void *user) {
    home *h = (home *)user;
    UNTIL(test_state_of(getpid()) == 'S');
    volt_event_set(&h->event);
    return NULL;
}
TEST(another_thread_ends_a_wait_and_wakes_the_loop) {
    home *h = open_home(1, 64);
    pthread_t other;
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, wait_run, (counter){ .home = h }), 0);
    CHECK_EQ(pthread_create(&other, NULL, other_thread, h), 0);
    g_main_loop_run(h->loop);
    pthread_join(other, NULL);
    close_home(h);
}
static void *spawning_thread(void *user) {
    home *h = (home *)user;
    volt_handle handle = { 0 };
    int64_t result;
    UNTIL(test_state_of(getpid()) == 'S');
    volt_event_set(&h->event);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, &handle, wait_run, (counter){ .home = h }), 0);
    CHECK_EQ(volt_join_sync(&handle, VOLT_S(10), &result), 0);
    return NULL;
}
TEST(another_thread_spawns_and_wakes_the_loop) {
    home *h = open_home(1, 64);
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, spawning_thread, h), 0);
    g_main_loop_run(h->loop);
    pthread_join(other, NULL);
    close_home(h);
}

// ---- no idle wake-ups

static home *polled;
static gint counting_poll(GPollFD *fds, guint n, gint ms) {
    polled->n_polls++;
    return g_poll(fds, n, ms);
}
static volt_poll idle_run(volt_cx *cx, void *arg) {
    counter *c = (counter *)arg;
    const char *const ms = getenv("IDLE_MS");
    VOLT_BEGIN(cx, c);
    c->home->n_polls = 0;
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ms ? atoi(ms) : 300)));
    g_main_loop_quit(c->home->loop);
    VOLT_END(0);
}
TEST(loop_sleeps_while_tasks_sleep) {
    home *h = polled = open_home(1, 64);
    g_main_context_set_poll_func(h->context, counting_poll);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, idle_run, (counter){ .home = h }), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, wait_run, (counter){ .home = h }), 0); // until the end
    g_main_loop_run(h->loop);
    CHECK(h->n_polls <= 3);
    close_home(h);
}

// ---- the end

typedef struct {
    volt_frame frame;
    volt_shield shield;
    home *home;
    int rc;
} slow_end;
static volt_poll slow_end_run(volt_cx *cx, void *arg) {
    slow_end *s = (slow_end *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep_forever(cx));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    if (s->home->is_beating) VOLT_AWAIT(s->rc, volt_event_wait(cx, &s->home->event));
    else VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(30)));
    CHECK_EQ(s->rc, 0);
    s->home->n_shared++;
    VOLT_END(0);
}
// Ends the cleanup of the tasks, which must not keep the loop from calling it.
static gboolean beat(gpointer user) {
    home *h = (home *)user;
    if (h->is_beating && ++h->n_ends == 5) volt_event_set(&h->event);
    return G_SOURCE_CONTINUE;
}
static gboolean begin_shutdown(gpointer user) {
    home *h = (home *)user;
    h->is_beating = 1;
    CHECK_EQ(volt_shutdown(h->rt, 0), 3);
    n_alive -= 3; // it logs them
    return G_SOURCE_REMOVE;
}
static gboolean on_end(gpointer user) {
    home *h = (home *)user;
    CHECK_EQ(h->n_shared, 3); // the cleanup of each task is complete
    h->n_polls++;
    after(h, 20, quit); // a source that stays would be called again until then
    return G_SOURCE_CONTINUE;
}
TEST(shutdown_ends_the_source_once_and_does_not_block_the_loop) {
    home *h = open_home(1, 64);
    g_source_set_callback(h->source, on_end, h, NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, slow_end_run, (slow_end){ .home = h }), 0);
    after(h, 2, beat);
    after(h, 5, begin_shutdown);
    g_main_loop_run(h->loop);
    CHECK_EQ(h->n_polls, 1);
    close_home(h);
}
TEST(shutdown_without_the_loop_completes_the_tasks) {
    home *h = open_home(1, 64);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, slow_end_run, (slow_end){ .home = h }), 0);
    after(h, 5, quit);
    g_main_loop_run(h->loop);
    close_home(h);
    CHECK_EQ(h->n_shared, 3);
}
TEST(runtime_that_is_no_guest_is_refused) {
    volt_rt *rt;
    CHECK_EQ(volt_create(NULL, &rt), 0);
    CHECK(!volt_glib_attach(rt, NULL, 64));
    CHECK_EQ(volt_shutdown(rt, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}

// ---- contexts, runtimes, workers

static gboolean move_to_a_new_context(gpointer user) {
    home *h = (home *)user;
    volt_glib_detach(h->source);
    h->source = NULL;
    g_main_loop_quit(h->loop);
    return G_SOURCE_REMOVE;
}
TEST(tasks_follow_their_runtime_to_another_context) {
    home *h = open_home(1, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, wait_run, (counter){ .home = h }), 0);
    after(h, 2, move_to_a_new_context);
    g_main_loop_run(h->loop);
    volt_event_set(&h->event); // no source sees it
    while (g_main_context_iteration(h->context, FALSE)) {}
    CHECK_EQ(h->n_shared, 0);
    g_main_loop_unref(h->loop);
    g_main_context_unref(h->context);
    h->context = g_main_context_new();
    h->loop = g_main_loop_new(h->context, FALSE);
    h->source = volt_glib_attach(h->rt, h->context, 1);
    g_main_loop_run(h->loop);
    CHECK_EQ(h->n_shared, 1);
    close_home(h);
}
TEST(two_runtimes_share_a_loop) {
    home *h = open_home(1, 64);
    volt_rt *second = guest(1);
    GSource *source = volt_glib_attach(second, h->context, 64);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, count_run, (counter){ .home = h }), 0);
    CHECK_EQ(VOLT_RT_SPAWN(second, NULL, count_run, (counter){ .home = h }), 0);
    after(h, 1, count);
    g_main_loop_run(h->loop);
    CHECK_EQ(h->n_shared, 150);
    volt_glib_detach(source);
    CHECK_EQ(volt_shutdown(second, VOLT_S(10)), 0);
    CHECK_EQ(volt_destroy(second), 0);
    close_home(h);
}

typedef struct {
    volt_frame frame;
    home *home;
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
static volt_poll gather_run(volt_cx *cx, void *arg) {
    roamer *r = (roamer *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(volt_wait_group_wait(cx, r->left));
    g_main_loop_quit(r->home->loop); // any thread may call it
    VOLT_END(0);
}
TEST(guest_with_workers_of_its_own_shares_its_tasks_with_them) {
    static volt_wait_group left;
    home *h = open_home(3, 8);
    const roamer r = { .home = h, .left = &left };
    CHECK_EQ(volt_wait_group_add(&left, 100), 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, roam_run, r), 0);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, gather_run, r), 0);
    g_main_loop_run(h->loop);
    close_home(h);
}

// ---- cancelled at each poll, in a loop that runs

typedef struct {
    volt_frame frame;
    home *home;
    int rc;
} several;
static volt_poll several_waits(volt_cx *cx, several *s) {
    VOLT_BEGIN(cx, s);
    volt_event_reset(&s->home->event);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_event_wait(cx, &s->home->event));
    if (s->rc == 0) VOLT_AWAIT(s->rc, volt_yield(cx));
    VOLT_END(s->rc);
}
typedef struct {
    volt_frame frame;
    home *home;
    cancel_point at;
    several inner;
    int rc, n_cancelled;
} canceller;
static volt_poll cancel_run(volt_cx *cx, void *arg) {
    canceller *c = (canceller *)arg;
    VOLT_BEGIN(cx, c);
    while (cancel_next(&c->at)) {
        c->inner.home = c->home;
        VOLT_AWAIT(c->rc, CANCEL_AT(cx, &c->at, several_waits(cx, &c->inner)));
        CHECK_EQ(c->rc, cancel_came(&c->at) ? -ECANCELED : 0);
        c->n_cancelled += cancel_came(&c->at);
    }
    CHECK(c->n_cancelled >= 3);
    g_main_loop_quit(c->home->loop);
    VOLT_END(0);
}
static gboolean set_event(gpointer user) {
    volt_event_set(&((home *)user)->event);
    return G_SOURCE_CONTINUE;
}
TEST(task_is_cancelled_at_each_of_its_waits_for_the_loop) {
    home *h = open_home(1, 64);
    after(h, 2, set_event);
    CHECK_EQ(VOLT_RT_SPAWN(h->rt, NULL, cancel_run, (canceller){ .home = h }), 0);
    g_main_loop_run(h->loop);
    close_home(h);
}
