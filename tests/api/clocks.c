// SPDX-License-Identifier: MIT OR 0BSD
// Sleeps by clocks that count suspended time, or that can be set.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

// The seam: a clock that is set, and calls that fail.
static int set_at; // the setting of a timer after which the clock is set: 1 is the first; 0: none
static struct timespec left_then; // the time that the timer then has
static int is_set_early; // 1: before the setting has returned
static int create_error, settime_error, gettime_error;
static int test_timerfd_create(clockid_t clock, int flags);
static int test_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                                struct itimerspec *old);
static int test_timerfd_gettime(int fd, struct itimerspec *left);
static ssize_t test_read(int fd, void *buf, size_t len);
#define HOOK_read ~, test_read
#define HOOK_timerfd_create ~, test_timerfd_create
#define HOOK_timerfd_gettime ~, test_timerfd_gettime
#define HOOK_timerfd_settime ~, test_timerfd_settime
#include "hook.h"
#include "volt.h"
#include "test.h"
#include "tasks.h"

// Of the sleeps alone: the runtime's own timers are of CLOCK_MONOTONIC, and relative.
static int n_created, n_set, last_flags, clock_was_set, last_fd;
static clockid_t last_clock;
static struct itimerspec last_time;
static int gives(int error) {
    errno = error;
    return -1;
}
static int test_timerfd_create(clockid_t clock, int flags) {
    if (clock == CLOCK_MONOTONIC) return timerfd_create(clock, flags);
    n_created++;
    last_clock = clock;
    CHECK_EQ(flags, TFD_CLOEXEC | TFD_NONBLOCK);
    return create_error ? gives(create_error) : timerfd_create(clock, flags);
}
static int test_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                                struct itimerspec *old) {
    static const struct itimerspec soon = { { 0, 0 }, { 0, 1 } };
    if (!(flags & TFD_TIMER_ABSTIME)) return timerfd_settime(fd, flags, t, old);
    last_flags = flags;
    last_time = *t;
    last_fd = fd;
    int n = COUNT(n_set); // a test waits for it
    if (settime_error) return gives(settime_error);
    if (n != set_at) {
        int rc = timerfd_settime(fd, flags, t, old);
        struct pollfd p = { fd, POLLIN, 0 };
        if (t->it_value.tv_sec == 0) CHECK_EQ(poll(&p, 1, -1), 1); // the first read finds it over
        return rc;
    }
    clock_was_set = 1; // the kernel makes the timer readable, and the read fails
    CHECK_EQ(timerfd_settime(fd, 0, &soon, old), 0);
    return is_set_early ? gives(ECANCELED) : 0;
}
static ssize_t test_read(int fd, void *buf, size_t len) {
    ssize_t n = read(fd, buf, len);
    if (n < 0 || !clock_was_set || fd != last_fd) return n;
    clock_was_set = 0;
    return gives(ECANCELED);
}
static int test_timerfd_gettime(int fd, struct itimerspec *left) {
    if (gettime_error) return gives(gettime_error);
    CHECK_EQ(timerfd_gettime(fd, left), 0);
    left->it_value = left_then;
    return 0;
}
static const clockid_t id[] = { CLOCK_BOOTTIME, CLOCK_REALTIME }; // of each volt_clock
#define EACH_CLOCK(c_) for (int c_ = VOLT_CLOCK_BOOT; c_ <= VOLT_CLOCK_WALL; c_++)

// ---- one sleep

typedef struct {
    volt_frame frame;
    volt_clock clock;
    volt_time until;
    volt_timer timer;
    volt_time at_most; // 0: no limit
    int64_t rc;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    VOLT_BEGIN(cx, s);
    if (s->at_most > 0)
        VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, s->at_most,
                                      volt_sleep_on(cx, s->clock, s->until)));
    else VOLT_AWAIT(s->rc, volt_sleep_on(cx, s->clock, s->until));
    VOLT_END(s->rc);
}
static int64_t sleep_once(int clock, volt_time until, volt_time at_most) {
    sleeper s;
    memset(&s, 0, sizeof s);
    s.clock = (volt_clock)clock;
    s.until = until;
    s.at_most = at_most;
    return run_on(1, sleeper_run, &s);
}
static volt_time from_now(int clock, volt_time ns) {
    return volt_clock_now((volt_clock)clock) + ns;
}

TEST(clock_now_is_the_time_of_its_clock) {
    EACH_CLOCK(c) {
        struct timespec t;
        volt_time before = from_now(c, 0);
        CHECK_EQ(clock_gettime(id[c], &t), 0);
        volt_time between = VOLT_S(t.tv_sec) + t.tv_nsec;
        CHECK(before <= between && between <= from_now(c, 0));
    }
}
enum { CANCEL_ON_SET = 2 }; // as in volt.h
TEST(sleep_on_ends_at_the_time_of_its_clock_and_not_before) {
    static const int flags[] = { TFD_TIMER_ABSTIME, TFD_TIMER_ABSTIME | CANCEL_ON_SET };
    EACH_CLOCK(c) {
        volt_time until = from_now(c, VOLT_MS(3));
        CHECK_EQ(sleep_once(c, until, 0), 0);
        CHECK(from_now(c, 0) >= until);
        CHECK_EQ(last_clock, id[c]);
        CHECK_EQ(last_flags, flags[c]);
        CHECK_EQ(VOLT_S(last_time.it_value.tv_sec) + last_time.it_value.tv_nsec, until);
    }
}
TEST(sleep_on_until_a_time_that_has_passed_returns_at_once) {
    EACH_CLOCK(c) {
        CHECK_EQ(sleep_once(c, from_now(c, -VOLT_S(1)), 0), 0);
        CHECK_EQ(sleep_once(c, 0, 0), 0); // 0 and less must not disarm the timer
        CHECK_EQ(sleep_once(c, -VOLT_S(1), 0), 0);
    }
}
TEST(time_limit_ends_sleep_on_and_closes_its_descriptor) {
    EACH_CLOCK(c) {
        int n_fds = test_count_fds();
        CHECK_EQ(sleep_once(c, from_now(c, VOLT_S(3600)), VOLT_MS(1)), -ETIMEDOUT);
        CHECK_EQ(sleep_once(c, VOLT_NEVER, VOLT_MS(1)), -ETIMEDOUT);
        CHECK_EQ(test_count_fds(), n_fds);
        CHECK_EQ(n_created, 2 * (c + 1));
    }
}
// More timers than a budget has units: the leaf is also polled before it has a descriptor.
ROOT_TEST_1(sleep_on_spends_the_budget, { int i, rc; }) {
    VOLT_BEGIN(cx, s);
    n_set = 0;
    for (s->i = 0; s->i < 300; s->i++) {
        VOLT_AWAIT(s->rc, volt_sleep_on(cx, VOLT_CLOCK_WALL, 1));
        CHECK_EQ(s->rc, 0);
    }
    CHECK_EQ(n_set, 300);
    CHECK(cx->worker_->stats.polls + (uint64_t)(cx->worker_->countdown_from -
                                                cx->worker_->countdown) > 1);
    VOLT_END(0);
}
ROOT_TEST(cancelled_sleep_on_opens_no_timer, { volt_token stop; volt_token_link l; int rc; }) {
    VOLT_BEGIN(cx, s);
    n_created = 0;
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->stop, volt_sleep_on(cx, VOLT_CLOCK_BOOT, 1)));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(n_created, 0);
    VOLT_END(0);
}
// No other thread may take the number when it is free.
ROOT_TEST_ALL(cancel_ends_sleep_on_and_closes_its_descriptor, { volt_handle h; int rc; }) {
    VOLT_BEGIN(cx, s);
    n_created = n_set = 0;
    SPAWN(&s->h, sleeper_run, (sleeper){ .clock = VOLT_CLOCK_WALL, .until = VOLT_NEVER });
    while (READ(n_set) == 0) VOLT_AWAIT(volt_yield(cx));
    CHECK(fcntl(last_fd, F_GETFD) >= 0);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK(fcntl(last_fd, F_GETFD) < 0);
    VOLT_END(0);
}

// The timer's number is closed by another part of the program, and is another file's when the sleep
// ends.
ROOT_TEST_1(sleep_on_leaves_a_number_that_was_closed_to_its_next_file,
            { volt_handle h; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        n_set = 0;
        SPAWN(&s->h, sleeper_run, (sleeper){ .clock = VOLT_CLOCK_WALL, .until = VOLT_NEVER });
        while (n_set == 0) VOLT_AWAIT(volt_yield(cx));
        if (s->i == 1) volt_cancel(&s->h);
        volt_close(cx, last_fd);
        CHECK_EQ(dup2(STDERR_FILENO, last_fd), last_fd);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->i == 1 ? -ECANCELED : -EBADF);
        CHECK_EQ(close(last_fd), 0);
    }
    VOLT_END(0);
}

// ---- a clock that is set

TEST(clock_that_is_set_ends_the_sleep_with_1) {
    static const struct timespec left[] = { { 1, 0 }, { 0, 1 } };
    for (int i = 0; i < 4; i++) {
        set_at = n_set + 1;
        left_then = left[i % 2];
        is_set_early = i / 2;
        CHECK_EQ(sleep_once(VOLT_CLOCK_WALL, from_now(VOLT_CLOCK_WALL, VOLT_S(3600)), 0), 1);
        CHECK_EQ(clock_was_set, 0);
    }
}
TEST(clock_that_is_set_beyond_the_time_ends_the_sleep_with_0) {
    set_at = 1;
    CHECK_EQ(sleep_once(VOLT_CLOCK_WALL, from_now(VOLT_CLOCK_WALL, VOLT_S(3600)), 0), 0);
    CHECK_EQ(clock_was_set, 0);
}

// ---- calls that fail

TEST(sleep_on_reports_a_timer_that_cannot_be_made_or_set) {
    int n_fds = test_count_fds();
    create_error = EMFILE;
    CHECK_EQ(sleep_once(VOLT_CLOCK_WALL, VOLT_NEVER, 0), -EMFILE);
    create_error = EINVAL; // CLOCK_BOOTTIME before Linux 3.15
    CHECK_EQ(sleep_once(VOLT_CLOCK_BOOT, VOLT_NEVER, 0), -EINVAL);
    create_error = 0;
    settime_error = EPERM;
    CHECK_EQ(sleep_once(VOLT_CLOCK_WALL, VOLT_NEVER, 0), -EPERM);
    settime_error = 0;
    set_at = n_set + 1;
    gettime_error = EPERM;
    CHECK_EQ(sleep_once(VOLT_CLOCK_WALL, VOLT_NEVER, 0), -EPERM);
    CHECK_EQ(test_count_fds(), n_fds);
}
