// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_sd.h with libsystemd: sources of sd-event and tasks of volt in
// both forms, and two sd_bus objects that call each other.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <systemd/sd-event.h>
static int dispatch_error; // of the next sd_event_dispatch of volt_sd_run, or 0
static int dispatch(sd_event *event) {
    return dispatch_error < 0 ? dispatch_error : sd_event_dispatch(event);
}
static int n_busy; // steps of the loop during one of another thread
static int rt_step(volt_rt *rt, uint32_t max_polls) {
    int n = volt_rt_step(rt, max_polls);
    __atomic_add_fetch(&n_busy, n == -EBUSY, __ATOMIC_RELAXED);
    return n;
}
#define sd_event_dispatch dispatch
#define volt_rt_step rt_step
#include "examples/adapters/volt_sd.h"
#undef volt_rt_step
#include "cancel.h"
#include "tests/lib/test.h"
#include "log.h"
#include <sys/resource.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm loop, other;
    volt_group group;
    cancel_point at;
    volt_sd sd;
    volt_notify notify;
    sd_event_source *source;
    uint64_t deadline;
    volt_time began;
    int fds[2], n_timers, n_io, n_signals, n_children, n_defers, n_polls, i, rc;
    long n;
} test;
// Runs the function in the main thread alone, or with more workers.
static void run(volt_fn *fn, uint32_t workers) {
    static test s;
    volt_config config = { .workers = workers, .log = { .fn = on_log } };
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}
static uint64_t now_usec(void) { return (uint64_t)volt_now() / 1000; }

// ---- sources

static int on_timer(sd_event_source *source, uint64_t usec, void *user) {
    test *s = (test *)user;
    CHECK(now_usec() >= usec);
    s->n_timers++;
    CHECK(sd_event_source_set_time(source, now_usec() + 5000) >= 0);
    CHECK(sd_event_source_set_enabled(source, s->n_timers < 5 ? SD_EVENT_ONESHOT : SD_EVENT_OFF) >=
          0);
    return 0;
}
static int on_io(sd_event_source *source, int fd, uint32_t events, void *user) {
    test *s = (test *)user;
    char text[8];
    CHECK(events & EPOLLIN);
    CHECK_EQ(read(fd, text, sizeof text), 3);
    s->n_io++;
    (void)source;
    volt_notify_one(&s->notify);
    return 0;
}
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *user) {
    test *s = (test *)user;
    CHECK_EQ(info->ssi_signo, SIGUSR1);
    s->n_signals++;
    (void)source;
    return 0;
}
static int on_child(sd_event_source *source, const siginfo_t *info, void *user) {
    test *s = (test *)user;
    CHECK_EQ(info->si_status, 7);
    s->n_children++;
    (void)source;
    return 0;
}
static int on_defer(sd_event_source *source, void *user) {
    (void)source;
    ((test *)user)->n_defers++;
    return 0;
}
static int on_end(sd_event_source *source, uint64_t usec, void *user) {
    test *s = (test *)user;
    (void)usec;
    if (s->n_timers < 5 || s->n_io < 3 || s->n_signals < 1 || s->n_children < 1) {
        CHECK(sd_event_source_set_time(source, now_usec() + 1000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
    return sd_event_exit(sd_event_source_get_event(source), 42);
}
// Adds one source of each kind.
static void add_sources(test *s) {
    sd_event *e = s->sd.event;
    uint64_t now = now_usec();
    CHECK(sd_event_add_time(e, NULL, CLOCK_MONOTONIC, now + 5000, 1, on_timer, s) >= 0);
    CHECK(sd_event_add_io(e, NULL, s->fds[0], EPOLLIN, on_io, s) >= 0);
    CHECK(sd_event_add_signal(e, NULL, SIGUSR1, on_signal, s) >= 0);
    CHECK(sd_event_add_defer(e, NULL, on_defer, s) >= 0);
    CHECK(sd_event_add_time(e, NULL, CLOCK_MONOTONIC, now + 20000, 1, on_end, s) >= 0);
    int pid = fork();
    if (pid == 0) _exit(7);
    CHECK(sd_event_add_child(e, NULL, pid, WEXITED, on_child, s) >= 0);
}
// Feeds the sources, and is woken by their callbacks.
static volt_poll feeder(volt_cx *cx, test *s) {
    static struct {
        volt_frame frame;
    } f;
    VOLT_BEGIN(cx, &f);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    for (s->i = 0; s->i < 3; s->i++) {
        CHECK_EQ(write(s->fds[1], "abc", 3), 3);
        VOLT_AWAIT(s->rc, volt_notify_wait(cx, &s->notify));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
static volt_poll sources(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK_EQ(pipe2(s->fds, O_CLOEXEC | O_NONBLOCK), 0);
    add_sources(s);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->loop, volt_sd_run(cx, &s->sd)),
                             VOLT_ARM(&s->other, feeder(cx, s))));
    CHECK_EQ(s->loop.value, 42);
    CHECK_EQ(s->n_timers, 5);
    CHECK_EQ(s->n_io, 3);
    CHECK_EQ(s->n_signals, 1);
    CHECK_EQ(s->n_children, 1);
    CHECK_EQ(s->n_defers, 1);
    VOLT_AWAIT(s->rc, volt_sd_run(cx, &s->sd));
    CHECK_EQ(s->rc, -ESTALE); // it has finished
    sd_event_unref(s->sd.event);
    close(s->fds[0]);
    close(s->fds[1]);
    VOLT_END(0);
}
TEST(timers_files_signals_and_children_in_one_thread) { run(sources, 1); }
TEST(timers_files_signals_and_children_on_all_workers) { run(sources, 4); }

// ---- fairness, exit codes, other tasks

static int on_always(sd_event_source *source, void *user) {
    test *s = (test *)user;
    s->n_defers++;
    if (s->n_polls > 1000) return sd_event_exit(sd_event_source_get_event(source), -EIO);
    return 0;
}
static volt_poll counter(volt_cx *cx, test *s) {
    static struct {
        volt_frame frame;
        int rc;
    } f;
    VOLT_BEGIN(cx, &f);
    do {
        VOLT_AWAIT(f.rc, volt_yield(cx));
        s->n_polls++;
    } while (f.rc == 0);
    VOLT_END(0);
}
static volt_poll always(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK(sd_event_add_defer(s->sd.event, &s->source, on_always, s) >= 0);
    CHECK(sd_event_source_set_enabled(s->source, SD_EVENT_ON) >= 0);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->loop, volt_sd_run(cx, &s->sd)),
                           VOLT_ARM(&s->other, counter(cx, s))));
    CHECK(s->loop.fired);
    CHECK_EQ(s->loop.value, -EIO); // the exit code
    CHECK(s->n_defers > 100);
    sd_event_source_unref(s->source);
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(source_that_is_always_due_leaves_time_for_others) { run(always, 1); }

static volt_poll fails(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK(sd_event_add_defer(s->sd.event, NULL, on_defer, s) >= 0);
    dispatch_error = -ENOMEM;
    VOLT_AWAIT(s->rc, volt_sd_run(cx, &s->sd));
    CHECK_EQ(s->rc, -ENOMEM);
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(error_of_the_loop_is_passed_on) { run(fails, 1); }

// Another task, perhaps on another worker, adds sources while the loop sleeps.
typedef struct {
    volt_frame frame;
    test *of;
    int i, rc;
} adder;
static volt_poll adder_run(volt_cx *cx, void *arg) {
    adder *a = (adder *)arg;
    VOLT_BEGIN(cx, a);
    for (a->i = 0; a->i < 50; a->i++) {
        volt_sd_lock(&a->of->sd);
        CHECK(sd_event_add_defer(a->of->sd.event, NULL, on_defer, a->of) >= 0);
        CHECK(sd_event_add_time(a->of->sd.event, NULL, CLOCK_MONOTONIC, now_usec() + 100, 1,
                                on_timer, a->of) >= 0);
        volt_sd_unlock(&a->of->sd);
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    }
    VOLT_END(0);
}
static volt_poll ender_run(volt_cx *cx, void *arg) {
    adder *a = (adder *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_sleep(cx, VOLT_MS(50)));
    do {
        VOLT_AWAIT(a->rc, volt_sleep(cx, VOLT_MS(1)));
        volt_sd_lock(&a->of->sd);
        a->i = a->of->n_defers;
        if (a->i == 200) sd_event_exit(a->of->sd.event, 5);
        volt_sd_unlock(&a->of->sd);
    } while (a->i < 200);
    VOLT_END(0);
}
static volt_poll others(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    for (s->i = 0; s->i < 4; s->i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->group, adder_run, (adder){ .of = s }), 0);
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->group, ender_run, (adder){ .of = s }), 0);
    VOLT_AWAIT(s->rc, volt_sd_run(cx, &s->sd));
    CHECK_EQ(s->rc, 5);
    CHECK_EQ(s->n_defers, 200);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->group));
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(other_tasks_change_the_sources_under_the_lock) { run(others, 4); }

// ---- sd-bus

typedef struct {
    volt_oneshot answer;
    char text[32];
} call;
static int on_call(sd_bus_message *m, void *user, sd_bus_error *error) {
    const char *text;
    char back[64];
    (void)user, (void)error;
    CHECK(sd_bus_message_read(m, "s", &text) >= 0);
    snprintf(back, sizeof back, "<%s>", text);
    return sd_bus_reply_method_return(m, "s", back);
}
static int on_answer(sd_bus_message *m, void *user, sd_bus_error *error) {
    call *c = (call *)user;
    const char *text = "";
    (void)error;
    CHECK(!sd_bus_message_is_method_error(m, NULL));
    CHECK(sd_bus_message_read(m, "s", &text) >= 0);
    snprintf(c->text, sizeof c->text, "%s", text);
    return volt_oneshot_send(&c->answer, 1);
}
typedef struct {
    volt_frame frame;
    test *of;
    sd_bus *bus;
    call call;
    int number, i;
    int64_t n;
    char text[32];
} caller;
static volt_poll caller_run(volt_cx *cx, void *arg) {
    caller *c = (caller *)arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < 20; c->i++) {
        memset(&c->call, 0, sizeof c->call);
        snprintf(c->text, sizeof c->text, "%d", c->number * 100 + c->i);
        volt_sd_lock(&c->of->sd);
        CHECK(sd_bus_call_method_async(c->bus, NULL, NULL, "/o", "test.I", "Echo", on_answer,
                                       &c->call, "s", c->text) >= 0);
        volt_sd_unlock(&c->of->sd);
        VOLT_AWAIT(c->n, volt_oneshot_recv(cx, &c->call.answer));
        CHECK_EQ(c->n, 1);
        snprintf(c->text, sizeof c->text, "<%d>", c->number * 100 + c->i);
        CHECK_STR(c->call.text, c->text);
    }
    VOLT_END(0);
}
static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Echo", "s", "s", on_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};
static sd_bus *bus_new(sd_event *event, int fd, int is_server) {
    sd_bus *bus = NULL;
    sd_id128_t id = { .bytes = { 1, 2, 3 } };
    CHECK(sd_bus_new(&bus) >= 0);
    CHECK(sd_bus_set_fd(bus, fd, fd) >= 0);
    if (is_server) CHECK(sd_bus_set_server(bus, 1, id) >= 0);
    if (is_server) CHECK(sd_bus_set_anonymous(bus, 1) >= 0);
    CHECK(sd_bus_start(bus) >= 0);
    CHECK(sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
    if (is_server)
        CHECK(sd_bus_add_object_vtable(bus, NULL, "/o", "test.I", vtable, NULL) >= 0);
    return bus;
}
static volt_poll ends_loop(volt_cx *cx, test *s) {
    static struct {
        volt_frame frame;
    } f;
    VOLT_BEGIN(cx, &f);
    VOLT_AWAIT(volt_group_wait(cx, &s->group));
    volt_sd_lock(&s->sd);
    sd_event_exit(s->sd.event, 0);
    volt_sd_unlock(&s->sd);
    VOLT_END(0);
}
static volt_poll buses(volt_cx *cx, void *arg) {
    static sd_bus *bus[2];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->fds), 0);
    bus[0] = bus_new(s->sd.event, s->fds[0], 1);
    bus[1] = bus_new(s->sd.event, s->fds[1], 0);
    for (s->i = 0; s->i < 10; s->i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->group, caller_run,
                                  (caller){ .of = s, .bus = bus[1], .number = s->i }), 0);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->loop, volt_sd_run(cx, &s->sd)),
                             VOLT_ARM(&s->other, ends_loop(cx, s))));
    CHECK_EQ(s->loop.value, 0);
    sd_bus_close_unref(bus[0]);
    sd_bus_close_unref(bus[1]);
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(tasks_call_methods_over_sd_bus) { run(buses, 4); }

// ---- cancelled at each poll

static volt_poll cancelled(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    while (cancel_next(&s->at)) {
        s->n_timers = 0;
        s->n++;
        volt_sd_lock(&s->sd);
        CHECK(sd_event_add_time(s->sd.event, &s->source, CLOCK_MONOTONIC, now_usec() + 1000, 1,
                                on_timer, s) >= 0);
        CHECK(sd_event_add_defer(s->sd.event, NULL, on_defer, s) >= 0);
        if (s->n > 9) CHECK(sd_event_exit(s->sd.event, 9) >= 0);
        volt_sd_unlock(&s->sd);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_sd_run(cx, &s->sd)));
        if (s->n == 1) CHECK_EQ(s->n_defers, 0); // cancelled before its first poll
        CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 9);
        s->source = sd_event_source_unref(s->source);
    }
    CHECK(s->n > 9);
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(loop_is_cancelled_at_each_poll_and_goes_on) { run(cancelled, 1); }

static volt_poll cancelled_at_the_end(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    while (cancel_next(&s->at)) {
        CHECK(sd_event_new(&s->sd.event) >= 0);
        CHECK(sd_event_add_exit(s->sd.event, NULL, on_defer, s) >= 0);
        CHECK(sd_event_exit(s->sd.event, 9) >= 0);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_sd_run(cx, &s->sd)));
        if (s->rc == -ECANCELED) {
            CHECK(cancel_came(&s->at));
            VOLT_AWAIT(s->rc, volt_sd_run(cx, &s->sd));
        }
        CHECK_EQ(s->rc, 9);
        CHECK_EQ(s->n_defers, ++s->n);
        sd_event_unref(s->sd.event);
    }
    CHECK(s->n > 2);
    VOLT_END(0);
}
TEST(cancellation_does_not_take_the_place_of_the_exit_code) { run(cancelled_at_the_end, 1); }

// ---- no wake-ups without need

// A sanitizer has a thread of its own, and valgrind lets threads take turns.
static int is_watched(void) { return TEST__IS_SANITIZED || getenv("SD_UNDER_VALGRIND"); }
static long switches(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw + use.ru_nivcsw;
}
static int on_far(sd_event_source *source, uint64_t usec, void *user) {
    test *s = (test *)user;
    (void)usec;
    s->n = switches() - s->n;
    return sd_event_exit(sd_event_source_get_event(source), 0);
}
static volt_poll idle(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK(sd_event_add_time(s->sd.event, NULL, CLOCK_MONOTONIC, now_usec() + 500000, 1, on_far,
                            s) >= 0);
    s->n = switches();
    VOLT_AWAIT(s->rc, volt_sd_run(cx, &s->sd));
    CHECK_EQ(s->rc, 0);
    CHECK(s->n < 20); // of the whole process: it slept for half a second, apart from preemptions
    sd_event_unref(s->sd.event);
    VOLT_END(0);
}
TEST(idle_loop_sleeps) {
    if (is_watched()) SKIP("the tool wakes up by itself");
    run(idle, 1);
}

// ---- a guest of sd_event_loop

typedef struct {
    volt_frame frame;
    test *of;
    pthread_t thread;
    int i, rc;
} guest_task;
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest_task *g = (guest_task *)arg;
    VOLT_BEGIN(cx, g);
    for (g->i = 0; g->i < 20; g->i++) {
        CHECK(pthread_equal(pthread_self(), g->thread));
        VOLT_AWAIT(g->rc, volt_sleep(cx, VOLT_MS(1)));
        CHECK_EQ(g->rc, 0);
        CHECK_EQ(write(g->of->fds[1], "abc", 3), 3); // answered by a source of the loop
        VOLT_AWAIT(g->rc, volt_notify_wait(cx, &g->of->notify));
        CHECK_EQ(g->rc, 0);
    }
    CHECK(sd_event_exit(g->of->sd.event, 6) >= 0);
    VOLT_END(0);
}

typedef struct {
    volt_rt *rt;
    test *of;
    pthread_t thread;
} spawner;
static void *spawner_main(void *arg) { // another thread, which wakes the loop
    spawner *s = (spawner *)arg;
    CHECK_EQ(VOLT_RT_SPAWN(s->rt, NULL, guest_run,
                           (guest_task){ .of = s->of, .thread = s->thread }), 0);
    return NULL;
}
static volt_rt *guest_open_with(test *s, volt_logger log) {
    const volt_config config = { .workers = 1, .is_guest = 1, .log = log };
    volt_rt *rt;
    CHECK_EQ(volt_create(&config, &rt), 0);
    CHECK(sd_event_new(&s->sd.event) >= 0);
    CHECK_EQ(volt_sd_attach(s->sd.event, rt, &s->source), 0);
    return rt;
}
static volt_rt *guest_open(test *s) { return guest_open_with(s, (volt_logger){ .fn = on_log }); }
static void guest_close(test *s, volt_rt *rt) {
    sd_event_source_unref(s->source);
    sd_event_unref(s->sd.event);
    CHECK_EQ(volt_shutdown(rt, VOLT_S(5)), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}
TEST(guest_and_the_sources_of_the_loop_take_turns) {
    static test s;
    pthread_t other;
    spawner spawn = { guest_open(&s), &s, pthread_self() };
    CHECK_EQ(pipe2(s.fds, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK(sd_event_add_io(s.sd.event, NULL, s.fds[0], EPOLLIN, on_io, &s) >= 0);
    CHECK(sd_event_add_time(s.sd.event, NULL, CLOCK_MONOTONIC, now_usec() + 1000, 1, on_timer,
                            &s) >= 0);
    CHECK_EQ(pthread_create(&other, NULL, spawner_main, &spawn), 0);
    CHECK_EQ(sd_event_loop(s.sd.event), 6);
    pthread_join(other, NULL);
    CHECK_EQ(s.n_io, 20);
    CHECK(s.n_timers > 0);
    guest_close(&s, spawn.rt);
    close(s.fds[0]);
    close(s.fds[1]);
}

static volt_poll forever_run(volt_cx *cx, void *arg) {
    guest_task *g = (guest_task *)arg;
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(g->rc, volt_sleep_forever(cx));
    VOLT_END(0);
}
static int on_stop(sd_event_source *source, uint64_t usec, void *rt) {
    (void)usec;
    CHECK_EQ(volt_shutdown((volt_rt *)rt, VOLT_S(5)), 0);
    CHECK(sd_event_source_set_time(source, now_usec() + 20000) >= 0);
    CHECK(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0);
    static int n;
    return ++n == 2 ? sd_event_exit(sd_event_source_get_event(source), 0) : 0;
}
TEST(guest_that_was_shut_down_leaves_the_loop_alone) {
    static test s;
    volt_rt *rt = guest_open(&s);
    int enabled = 9;
    CHECK_EQ(VOLT_RT_SPAWN(rt, NULL, forever_run, (guest_task){ .of = &s }), 0);
    CHECK(sd_event_add_time(s.sd.event, NULL, CLOCK_MONOTONIC, now_usec() + 10000, 1, on_stop,
                            rt) >= 0);
    CHECK_EQ(sd_event_loop(s.sd.event), 0);
    CHECK(sd_event_source_get_enabled(s.source, &enabled) >= 0);
    CHECK_EQ(enabled, SD_EVENT_OFF);
    guest_close(&s, rt);
}

// Tasks that have more to do when they are cancelled. Their polls take long, so that the loop comes
// during those that volt_shutdown makes in another thread.
enum { CLEANUPS = 8 };
typedef struct {
    volt_frame frame;
    volt_shield shield;
    int *n_begun, *n_ended, rc;
} cleanup;
static void spend(volt_time time) {
    for (volt_time end = volt_now() + time; volt_now() < end;) {}
}
static volt_poll cleanup_run(volt_cx *cx, void *arg) {
    cleanup *c = (cleanup *)arg;
    VOLT_BEGIN(cx, c);
    __atomic_add_fetch(c->n_begun, 1, __ATOMIC_RELAXED);
    VOLT_AWAIT(c->rc, volt_sleep_forever(cx));
    volt_shield_begin(cx, &c->shield, VOLT_NEVER);
    while (__atomic_load_n(&n_busy, __ATOMIC_RELAXED) == 0) {
        spend(VOLT_US(500));
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(500)));
    }
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100))); // beyond the limit of the shutdown
    volt_shield_end(cx, &c->shield);
    __atomic_add_fetch(c->n_ended, 1, __ATOMIC_RELAXED);
    VOLT_END(0);
}
typedef struct {
    volt_rt *rt;
    sd_event_source *source;
    volt_time deadline;
    int n_begun, n_ended;
} ending;
static void *shutdown_main(void *arg) {
    ending *e = (ending *)arg;
    while (__atomic_load_n(&e->n_begun, __ATOMIC_RELAXED) < CLEANUPS) sched_yield();
    do volt_shutdown(e->rt, VOLT_MS(20));
    while (__atomic_load_n(&n_busy, __ATOMIC_RELAXED) == 0);
    return NULL;
}
// The shutdown with its short limit logs the tasks that it leaves.
static void on_alive(void *user, int item, const char *text) {
    (void)user;
    if (item != VOLT_LOG_STILL_ALIVE) on_log(user, item, text);
}
// Ends the loop behind the last task, or when that takes too long.
static int on_check(sd_event_source *source, uint64_t usec, void *user) {
    ending *e = (ending *)user;
    sd_event *event = sd_event_source_get_event(source);
    int is_over = __atomic_load_n(&e->n_ended, __ATOMIC_RELAXED) == CLEANUPS;
    if (is_over || volt_now() > e->deadline) return sd_event_exit(event, is_over ? 0 : -ETIMEDOUT);
    CHECK(sd_event_source_set_time(source, usec + 1000) >= 0);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}
TEST(loop_goes_on_with_tasks_that_a_shutdown_of_another_thread_has_left) {
    static test s;
    static ending e;
    pthread_t other;
    e.rt = guest_open_with(&s, (volt_logger){ .fn = on_alive });
    e.deadline = volt_now() + VOLT_S(10);
    for (int i = 0; i < CLEANUPS; i++)
        CHECK_EQ(VOLT_RT_SPAWN(e.rt, NULL, cleanup_run,
                               (cleanup){ .n_begun = &e.n_begun, .n_ended = &e.n_ended }), 0);
    CHECK(sd_event_add_time(s.sd.event, NULL, CLOCK_MONOTONIC, now_usec(), 1, on_check, &e) >= 0);
    CHECK_EQ(pthread_create(&other, NULL, shutdown_main, &e), 0);
    CHECK_EQ(sd_event_loop(s.sd.event), 0);
    pthread_join(other, NULL);
    guest_close(&s, e.rt);
}

static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    guest_task *g = (guest_task *)arg;
    VOLT_BEGIN(cx, g);
    g->of->n = switches();
    VOLT_AWAIT(g->rc, volt_sleep(cx, VOLT_MS(500)));
    g->of->n = switches() - g->of->n;
    CHECK(sd_event_exit(g->of->sd.event, 0) >= 0);
    VOLT_END(0);
}
TEST(idle_guest_sleeps) {
    static test s;
    if (is_watched()) SKIP("the tool wakes up by itself");
    volt_rt *rt = guest_open(&s);
    CHECK_EQ(VOLT_RT_SPAWN(rt, NULL, sleeper_run, (guest_task){ .of = &s }), 0);
    CHECK_EQ(sd_event_loop(s.sd.event), 0);
    CHECK(s.n < 20);
    guest_close(&s, rt);
}

TEST(runtime_that_is_no_guest_is_refused) {
    const volt_config config = { .workers = 1 };
    volt_rt *rt;
    sd_event *event;
    sd_event_source *source = NULL;
    CHECK_EQ(volt_create(&config, &rt), 0);
    CHECK(sd_event_new(&event) >= 0);
    CHECK_EQ(volt_sd_attach(event, rt, &source), -EINVAL);
    CHECK(source == NULL);
    sd_event_unref(event);
    CHECK_EQ(volt_shutdown(rt, VOLT_S(5)), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}
