// SPDX-License-Identifier: MIT OR 0BSD
// Bugs that runtimes of this kind have had in public, each as a test that fails when volt.h has it.
// Above each test stands a change of volt.h that makes it fail. To read: the table first, then the
// seam, by which the tests see and hold what volt.h does; the tests follow the table.
//
// owner/name#N is https://github.com/owner/name/issues/N, and bzN is
// https://sourceware.org/bugzilla/show_bug.cgi?id=N. "model": a matter for a model checker, as it
// depends on the order in which memory is seen; no run on real hardware shows that for certain.
// "no such part": volt.h switches no stacks, and frees no messages, which are plain bytes.
//
//     the bug                                   reported as                 the test
//  1  last searcher parks, pusher relies on it  tokio-rs/tokio#1768         last_searcher_rechecks
//  2  a sleeper is missed before it registers   tokio-rs/tokio#525          model
//  3  woken past the protocol, counted wrongly  tokio-rs/tokio#8372         unpark_is_not_a_claim
//  4  a wake-up publishes nothing               tokio-rs/tokio#7622         model
//  5  blocking pool: its last thread leaves     tokio-rs/tokio#8056         test_blocking (f)
//  6  16-bit indices wrap under a thief         tokio-rs/tokio#5041         model
//  7  a queue's counter overflows               tokio-rs/tokio#2361         test_ring_caps
//  8  a thief reads a swapped buffer            crossbeam-rs/crossbeam#726  test_queues (a)
//  9  a pair in the LIFO slot starves the queue tokio-rs/tokio#5686         test_sched (b)
// 10  the store of "done" frees the waiter      rayon-rs/rayon#739          model
// 11  oneshot: both sides take the value        tokio-rs/tokio#4225         model
// 12  accept spins when out of descriptors      oven-sh/bun#32705           accept_does_not_spin
// 13  a stale event meets the next owner        golang/go#59545             stale_event_is_ignored
//     a copy keeps the registration alive       joyent/libuv#1099           close_ends_registration
// 14  abort on an error of epoll_ctl            libuv/libuv#5130            wait_survives_ctl_error
// 15  readiness cleared over a newer event      tokio-rs/tokio#6133         fd_seq_survives_wrap
//     an event of the other direction counts    tokio-rs/tokio#8221         ready_is_per_direction
// 16  a deadline not after the wheel's time     tokio-rs/tokio#2473         test_timers (c)
// 17  timers lost at an uptime of 12 days       tokio-rs/tokio#8334         uptime_loses_no_timer
// 18  a timer's memory freed while it fires     tokio-rs/tokio#3229         disarm_waits_for_fire
// 19  a timer set again by what it woke         golang/go#38070             timer_set_again_fires
// 20  24.8 days become a negative number        tokio-rs/mio#1948           timeout_is_clamped
// 21  the clock goes backwards                  rust-lang/rust#86470        clock_may_go_back
// 22  a cancelled waiter keeps its wake-up      tokio-rs/tokio#1898         cancel_loses_no_event
// 23  permits come back, the receiver sleeps    tokio-rs/tokio#8260         model
// 24  user code called under an internal lock   tokio-rs/tokio#5429         hooks_may_call_volt
// 25  a waker is replaced while it is called    rust-lang/futures-rs#868    model
// 26  shutdown meets descriptors in use         tokio-rs/tokio#2903         test_steps (d)
// 27  a closed channel frees messages twice     crossbeam-rs/crossbeam#1187 no such part
// 28  descriptors shared with a child process   systemd/systemd#72          fds_are_cloexec (e)
// 29  SIGPIPE kills the process                 libuv/libuv#5087            write_raises_no_sigpipe
// 30  close is retried after EINTR              libuv/libuv#2236            close_is_not_retried
// 31  a reference count overflows               rust-lang/rust#108706       ref_overflow_panics
// 32  a thread-local's address is kept          llvm/llvm-project#49257     no such part
// 33  a signal is stolen by a newer waiter      bz25847                     model
// 34  a count drops before work is visible      golang/go#61454             model
// 35  the thread with the poller is stuck       tokio-rs/tokio#4730         stuck_worker_is_served
//
// (a) ring_gives_each_task_once_with_one_thief, also with two and with three thieves
// (b) pair_in_lifo_slot_does_not_starve_third_task
// (c) deadline_in_the_past_fires_on_the_next_tick
// (d) shutdown_at_any_step_ends_peers
// (e) what exec passes on; a forked child must not call volt
// (f) job_does_not_wait_for_a_thread_that_ends
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#define VOLT_REF_BITS 8
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- the seam: calls named by a HOOK_ go to a function of this file

#define HOOK_accept4 ~, seam_accept4
#define HOOK_close ~, seam_close
#define HOOK_epoll_wait ~, seam_epoll_wait_ms
#define HOOK_open ~, seam_open
#define HOOK_syscall ~, seam_syscall
#include "hook.h"
#define VOLT_NOW_NS() seam_now()
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) seam_epoll_wait(ep_, ev_, n_, timeout_)
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_)                                                 \
    (note_wait(word_), volt__sys_futex_wait(word_, expect_, deadline_))
#define VOLT_FUTEX_WAKE(word_, n_) volt__sys_futex_wake(word_, n_)

static int64_t seam_now(void);
static void note_wait(const void *word);
static int seam_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
static int seam_close(int fd);
static int seam_open(const char *path, int flags);
static int seam_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout);
static int seam_epoll_wait_ms(int ep, struct epoll_event *ev, int n, int ms);
static int is_unknown_call(long number);
// A function, not a condition in the macro: a condition of volt.h shall be its own.
#define seam_syscall(...) seam_syscall_with(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define seam_syscall_with(number_, a_, b_, c_, d_, e_, f_, ...)                                    \
    seam_syscall6(number_, (intptr_t)(a_), (intptr_t)(b_), (intptr_t)(c_), (intptr_t)(d_),         \
                  (intptr_t)(e_), (intptr_t)(f_))
static long seam_syscall6(long number, intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e,
                          intptr_t f) {
    return is_unknown_call(number) ? -1 : syscall(number, a, b, c, d, e, f);
}

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include <sys/uio.h>

// Threads share a pointer to the offset: 64 bits are not atomic everywhere.
enum { MOST_OFFSETS = 16 };
static int64_t clock_offsets[MOST_OFFSETS], *clock_offset = clock_offsets;
static int64_t seam_now(void) { return volt__sys_now() + *READ(clock_offset); }
static void set_clock(int64_t offset) {
    int64_t *next = clock_offset + 1;
    CHECK(next < clock_offsets + MOST_OFFSETS);
    *next = offset;
    WRITE(clock_offset, next);
}

static const void *watched_word;
static int n_waits; // for watched_word
static void note_wait(const void *word) {
    if (word == READ(watched_word)) COUNT(n_waits);
}

static int must_not_sleep, n_sleeps; // waits of workers that are not over at once
static int64_t most_timeout;         // that a test expects
static int is_last_timeout_good;
static int seam_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout) {
    if (timeout != 0) {
        CHECK(!must_not_sleep);
        WRITE(is_last_timeout_good, timeout > 0 && timeout <= most_timeout);
        COUNT(n_sleeps);
    }
    return volt__sys_epoll_wait(ep, ev, n, timeout);
}

// ---- steps of a runtime without threads

static void inject(volt_rt *rt, volt__task *t) {
    volt__chain c;
    volt__chain_init(&c);
    volt__chain_push(&c, t);
    volt__inject(rt, &c);
}
static void sleep_in(volt_rt *rt, uint32_t worker) {
    volt__worker *w = rt->workers[worker];
    (void)volt__idle_park(&rt->idle, worker, w->is_searching);
    w->is_searching = 0;
}
// Links a node of `t`, for the direction, as an operation does that found nothing.
static int wait_in(volt_rt *rt, int fd, int dir, volt__node *n, volt__task *t) {
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    return volt__fd_wait(&rt->fds, e, fd, 0, dir, dir, volt__fd_take_snapshot(e), n, t);
}
static void open_pair(int fd[2]) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}
static void send_byte(int fd) { CHECK_EQ(write(fd, "x", 1), 1); }

// ---- 1 and 3: which worker is woken

// Fails without "left == 0 && volt__has_stealable_work(rt)" in volt__park, or without the same
// look in volt__end_search.
TEST(last_searcher_rechecks) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    volt__task *t = still_task(w);
    sleep_in(rt, 1);
    CHECK_EQ(volt__idle_begin_search(&rt->idle, 2), 1);
    w->is_searching = 1; // it looks everywhere and finds nothing;
    inject(rt, t);       // now there is something, and no worker is woken, as one is searching
    CHECK(volt__idle_is_parked(&rt->idle, 1));
    must_not_sleep = 1;
    volt__park(w);
    CHECK(volt__next_local(w) == t);
    inject(rt, still_task(w)); // once more; now it leaves the search with work in its hands
    CHECK(volt__idle_is_parked(&rt->idle, 1));
    volt__end_search(w);
    CHECK(!volt__idle_is_parked(&rt->idle, 1));
    still_end(rt);
}

// Fails when volt__drive_events calls every worker counted that comes out of its sleep.
TEST(unpark_is_not_a_claim) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[1];
    for (int i = 0; i < 3; i++) {
        sleep_in(rt, 1);
        volt__unpark_all(rt); // claims no worker
        (void)volt__drive_events(w, 1, 0);
        CHECK_EQ(w->is_searching, 0);
        CHECK_EQ(rt->idle.searching, 0);
    }
    sleep_in(rt, 1);
    inject(rt, still_task(w));
    CHECK(!volt__idle_is_parked(&rt->idle, 1));
    (void)volt__drive_events(w, 1, 0);
    CHECK_EQ(w->is_searching, 1);
    still_end(rt);
}

// ---- 12: out of descriptors

enum { TRIES = 5 };
static struct {
    int n;        // calls so far
    rlim_t limit; // 0: no shortage
    volt_time at[TRIES];
} shortage;
static int seam_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags) {
    if (shortage.limit && shortage.n < TRIES) {
        shortage.at[shortage.n++] = volt_now();
        if (shortage.n == TRIES) (void)set_fd_limit(shortage.limit);
    }
    return accept4(fd, sa, len, flags);
}
static int connect_to(int lfd) { // blocking, past volt
    volt_addr a;
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)(void *)a.sa_, a.len_), 0);
    return fd;
}
// Fails when volt_accept goes on ("continue") after a shortage instead of backing off.
ROOT_TEST_1(accept_does_not_spin, { int lfd, cfd; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    s->cfd = connect_to(s->lfd); // it is there all the time, and the listener readable
    shortage.limit = set_fd_limit(0);
    VOLT_AWAIT(s->rc, volt_accept(cx, s->lfd));
    CHECK(s->rc >= 0);
    CHECK_EQ(shortage.n, TRIES);
    for (int i = 1; i < TRIES; i++)
        CHECK(shortage.at[i] - shortage.at[i - 1] >= VOLT_MS(5 << (i - 1)));
    volt_close(cx, (int)s->rc);
    volt_close(cx, s->lfd);
    close(s->cfd);
    VOLT_END(0);
}

// ---- 13: numbers that are used again

typedef struct {
    volt_frame frame;
    int fd;
    int64_t rc;
    char byte;
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_read(cx, r->fd, &r->byte, 1));
    VOLT_END(r->rc);
}
// Fails when volt__fd_event does not compare the generation.
ROOT_TEST_1(stale_event_is_ignored, {
    int a[2], b[2];
    volt_handle h;
    int64_t rc;
    volt__fd *e;
    struct epoll_event ev;
}) {
    VOLT_BEGIN(cx, s);
    volt__chain c;
    open_pair(s->a);
    s->e = volt__fd_lookup(&cx->rt_->fds, s->a[0]);
    SPAWN(&s->h, reader_run, (reader){ .fd = s->a[0] });
    VOLT_AWAIT(volt_yield(cx));
    CHECK(s->e->rd); // it waits
    send_byte(s->a[1]);
    CHECK_EQ(epoll_wait(cx->worker_->reactor.epfd, &s->ev, 1, 0), 1); // a poller fetches the event
    volt_close(cx, s->a[0]); // and before it gets to it the number changes hands
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EBADF);
    close(s->a[1]);
    open_pair(s->b);
    CHECK_EQ(s->b[0], s->a[0]);
    SPAWN(&s->h, reader_run, (reader){ .fd = s->b[0] });
    VOLT_AWAIT(volt_yield(cx));
    CHECK(s->e->rd);
    volt__chain_init(&c);
    volt__fd_event(&cx->rt_->fds, s->ev.data.u64, s->ev.events, &c);
    CHECK(!c.head && s->e->rd); // not the new owner's event
    send_byte(s->b[1]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 1);
    volt_close(cx, s->b[0]);
    close(s->b[1]);
    VOLT_END(0);
}

// Fails without the EPOLL_CTL_DEL in volt__fd_retire.
ROOT_TEST_1(close_ends_registration, { int fd[2], copy; volt_handle h; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    struct epoll_event ev;
    open_pair(s->fd);
    SPAWN(&s->h, reader_run, (reader){ .fd = s->fd[0] });
    VOLT_AWAIT(volt_yield(cx));
    s->copy = dup(s->fd[0]); // keeps the file open, and all that is registered for it
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EBADF);
    send_byte(s->fd[1]);
    CHECK_EQ(epoll_wait(cx->worker_->reactor.epfd, &ev, 1, 0), 0);
    close(s->copy);
    close(s->fd[1]);
    VOLT_END(0);
}

// ---- 14: what epoll_ctl says when descriptors are closed behind its back

// Waits on a number that is closed: EBADF is the caller's error and leaves nothing behind.
static void check_add_ebadf(volt_rt *rt, volt__task *t) {
    volt__node n;
    int fd[2];
    memset(&n, 0, sizeof n);
    open_pair(fd);
    close(fd[0]);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &n, t), -EBADF);
    CHECK_EQ(volt__fd_lookup(&rt->fds, fd[0])->mode, VOLT__MODE_NONE);
    CHECK_EQ(volt__node_state(&n), VOLT__IDLE);
    CHECK_EQ(t->n_armed, 0);
    close(fd[1]);
}
static void check_del_ebadf(volt_rt *rt, volt__task *t) {
    volt__node n;
    int fd[2];
    memset(&n, 0, sizeof n);
    open_pair(fd);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &n, t), 1);
    close(fd[0]);
    volt_rt_close(rt, fd[0]);
    CHECK_EQ(volt__fd_end_wait(&n, t, VOLT__RD), VOLT__CLOSED);
    close(fd[1]);
}
static void check_wakes(volt_rt *rt, int fd, volt__node *n, volt__task *t) {
    send_byte(fd);
    (void)volt__drive_events(rt->workers[0], 0, 0);
    CHECK_EQ(volt__fd_end_wait(n, t, VOLT__RD), VOLT__FIRED);
}
// A library closes its descriptor and gets the number again: MOD gives ENOENT, then it is ADD.
static void check_mod_enoent(volt_rt *rt, volt__task *t) {
    volt__node n;
    int fd[2], other[2];
    memset(&n, 0, sizeof n);
    open_pair(fd);
    volt__fd *e = volt__fd_lookup(&rt->fds, fd[0]);
    CHECK_EQ(volt__fd_wait_foreign(&rt->fds, e, fd[0], 0, VOLT__RD, NULL, &n, t), 1);
    check_wakes(rt, fd[1], &n, t);
    close(fd[0]);
    open_pair(other);
    CHECK_EQ(other[0], fd[0]);
    CHECK_EQ(volt__fd_wait_foreign(&rt->fds, e, fd[0], 0, VOLT__RD, NULL, &n, t), 1);
    check_wakes(rt, other[1], &n, t);
    volt_rt_close(rt, fd[0]);
    close(fd[1]);
    close(other[1]);
}
// Closed while a copy keeps the file, forgotten, and back at its number: ADD gives EEXIST.
static void check_add_eexist(volt_rt *rt, volt__task *t) {
    volt__node n;
    volt__chain c;
    int fd[2];
    memset(&n, 0, sizeof n);
    volt__chain_init(&c);
    open_pair(fd);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &n, t), 1);
    int copy = dup(fd[0]);
    close(fd[0]);
    volt__fd_retire(&rt->fds, volt__fd_lookup(&rt->fds, fd[0]), fd[0], 0, &c);
    CHECK_EQ(volt__fd_end_wait(&n, t, VOLT__RD), VOLT__CLOSED);
    CHECK_EQ(dup2(copy, fd[0]), fd[0]);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &n, t), 1);
    check_wakes(rt, fd[1], &n, t);
    volt_rt_close(rt, fd[0]);
    close(copy);
    close(fd[1]);
}
// Fails when volt__fd_control falls back to no other operation, and when it asserts that epoll_ctl
// gave 0.
TEST(wait_survives_ctl_error) {
    volt_rt *rt = still_rt(1);
    volt__task *t = still_task(rt->workers[0]);
    check_add_ebadf(rt, t);
    check_del_ebadf(rt, t);
    check_mod_enoent(rt, t);
    check_add_eexist(rt, t);
    still_end(rt);
}

// ---- 15: an event between the try and the wait

// Fails when volt__fd_wait compares less than the whole of seq, or by order.
TEST(fd_seq_survives_wrap) {
    static const uint32_t events[] = { 1, 2, 256, 65536, UINT32_MAX };
    volt_rt *rt = still_rt(1);
    volt__task *t = still_task(rt->workers[0]);
    volt__node n;
    int fd[2];
    memset(&n, 0, sizeof n);
    open_pair(fd);
    volt__fd *e = volt__fd_lookup(&rt->fds, fd[0]);
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), 0);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        e->seq = UINT32_MAX;
        volt__fd_snapshot seen = volt__fd_take_snapshot(e); // a read starts and finds nothing
        e->seq += events[i] - 1;
        send_byte(fd[1]); // the last of events[i] events
        (void)volt__drive_events(rt->workers[0], 0, 0);
        CHECK_EQ(e->seq, UINT32_MAX + events[i]);
        CHECK_EQ(volt__fd_wait(&rt->fds, e, fd[0], 0, VOLT__RD, VOLT__RD, seen, &n, t), 0); // again
        // no more does a short read clear it
        volt__fd_mark_empty(e, &rt->workers[0]->mapped, VOLT__RD, seen.seq, "", 1, 1);
        CHECK(!volt__fd_is_known_empty(e, VOLT__RD));
    }
    volt_rt_close(rt, fd[0]);
    close(fd[1]);
    still_end(rt);
}

static void fill_socket(int fd) {
    char text[4096];
    memset(text, 0, sizeof text);
    while (write(fd, text, sizeof text) > 0) {}
    CHECK_EQ(errno, EAGAIN);
}
static void drain_socket(int fd) {
    char text[4096];
    while (read(fd, text, sizeof text) > 0) {}
    CHECK_EQ(errno, EAGAIN);
}
// Readers are not affected by events for writing. Fails when volt__fd_wait clears `ready` as a
// whole, and when volt__fd_event takes every event for one of both directions.
TEST(ready_is_per_direction) {
    volt_rt *rt = still_rt(1);
    volt__task *t = still_task(rt->workers[0]);
    volt__node rd, wr;
    int fd[2];
    memset(&rd, 0, sizeof rd);
    memset(&wr, 0, sizeof wr);
    open_pair(fd);
    volt__fd *e = volt__fd_lookup(&rt->fds, fd[0]);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &rd, t), 1);
    CHECK(volt__fd_is_known_empty(e, VOLT__RD) && !volt__fd_is_known_empty(e, VOLT__WR));
    fill_socket(fd[0]);
    (void)volt__drive_events(rt->workers[0], 0, 0); // "writable" from when it was registered
    CHECK_EQ(wait_in(rt, fd[0], VOLT__WR, &wr, t), 1);
    drain_socket(fd[1]);
    (void)volt__drive_events(rt->workers[0], 0, 0);
    CHECK_EQ(volt__node_state(&wr), VOLT__FIRED);
    CHECK_EQ(volt__node_state(&rd), VOLT__LINKED);
    send_byte(fd[1]);
    (void)volt__drive_events(rt->workers[0], 0, 0);
    CHECK_EQ(volt__node_state(&rd), VOLT__FIRED);
    CHECK_EQ(volt__fd_end_wait(&rd, t, VOLT__RD), VOLT__FIRED);
    drain_socket(fd[0]);
    // nothing to read; then there is room to write
    volt__fd_snapshot seen = volt__fd_take_snapshot(e);
    fill_socket(fd[0]);
    drain_socket(fd[1]);
    (void)volt__drive_events(rt->workers[0], 0, 0);
    // one try more, not without end
    CHECK_EQ(volt__fd_wait(&rt->fds, e, fd[0], 0, VOLT__RD, VOLT__RD, seen, &rd, t), 0);
    CHECK_EQ(wait_in(rt, fd[0], VOLT__RD, &rd, t), 1);
    volt_rt_close(rt, fd[0]);
    close(fd[1]);
    still_end(rt);
}

// ---- 17: uptime

// Sleeps in its first poll and says how much too early it was polled again.
typedef struct {
    volt_frame frame;
    volt_time deadline;
    int *n_armed, *n_ended;
} dated;
static volt_poll dated_run(volt_cx *cx, void *arg) {
    dated *d = arg;
    VOLT_BEGIN(cx, d);
    COUNT(*d->n_armed);
    VOLT_AWAIT(volt_sleep_until(cx, d->deadline));
    CHECK(volt_now() >= d->deadline);
    COUNT(*d->n_ended);
    VOLT_END(0);
}
enum { DATED = 40 };
static int n_armed, n_dated_ended;
// Deadlines from `around` on, one a millisecond.
static void spawn_dated(volt_rt *rt, volt_time around) {
    int before = READ(n_armed);
    for (int i = 0; i < DATED; i++)
        RT_SPAWN(rt, NULL, dated_run,
                 (dated){ .deadline = around + VOLT_MS(i), .n_armed = &n_armed,
                          .n_ended = &n_dated_ended });
    UNTIL(READ(n_armed) == before + DATED);
}
static void jump_to(volt_rt *rt, volt_time now) {
    set_clock(now - volt__sys_now());
    volt__unpark_all(rt); // a sleeping worker has asked for a time of the old clock
}
// A runtime that runs for so long: timers of all ages come due around that time.
static void check_uptime(volt_time uptime) {
    volt_rt *rt = create_on(2);
    volt_time start = volt_now(), end = start + uptime;
    n_armed = n_dated_ended = 0;
    spawn_dated(rt, end);
    jump_to(rt, start + uptime / 2);
    spawn_dated(rt, end);
    jump_to(rt, end - VOLT_MS(DATED / 2));
    spawn_dated(rt, end - VOLT_MS(DATED / 2));
    UNTIL(READ(n_dated_ended) == 3 * DATED);
    destroy(rt);
    set_clock(0);
}
// Fails when volt__wheel_next sees only the slots ahead of the present one ("if (!ahead) continue")
// and when ticks are kept in 32 bits.
TEST(uptime_loses_no_timer) {
    check_uptime(VOLT_MS((int64_t)1 << 30)); // 12.4 days
#ifdef VOLT_TEST_SMALL // there a turn of the wheel is four seconds
    if (!test_is_long()) return;
#endif
    check_uptime(VOLT_MS((int64_t)1 << 31)); // 24.8 days
    check_uptime(VOLT_MS((int64_t)1 << 32)); // 49.7 days
#ifndef VOLT_TEST_SMALL
    check_uptime(VOLT_S(86400) * 365 * 10);
#endif
}

// ---- 18: a cancelled sleep must not end before the thread that fires its timer has let go of it

typedef struct {
    volt__worker *w;
    volt__task *t;
    volt_frame *frame;
    int is_over;
} canceller;
static void *canceller_main(void *arg) {
    canceller *c = arg;
    volt_cx *cx = still_cx(c->w, c->t, c->frame);
    cx->cancel_level_ = 1;
    CHECK_EQ(volt_value(volt_sleep(cx, VOLT_S(1))), -ECANCELED);
    WRITE(c->is_over, 1);
    return NULL;
}
// The firing thread holds the wheel's lock; the timer may have left the wheel already or not yet.
static void check_cancel(volt_rt *rt, int is_fired_before) {
    volt__worker *w = rt->workers[0];
    volt_frame frame;
    volt__chain c;
    canceller who = { w, still_task(w), &frame, 0 };
    memset(&frame, 0, sizeof frame);
    volt__chain_init(&c);
    CHECK(volt_is_pending(volt_sleep(still_cx(w, who.t, &frame), VOLT_S(1))));
    volt__lock(&w->wheel.lock);
    WRITE(n_waits, 0);
    WRITE(watched_word, &w->wheel.lock);
    if (is_fired_before) volt__wheel_remove(&w->wheel, &frame.node_);
    if (is_fired_before) volt__node_fire(&frame.node_, VOLT__FIRED, &c);
    pthread_t thread = start_thread(canceller_main, &who);
    UNTIL(READ(n_waits) || READ(who.is_over));
    CHECK_EQ(READ(who.is_over), 0);
    if (!is_fired_before) volt__wheel_remove(&w->wheel, &frame.node_);
    if (!is_fired_before) volt__node_fire(&frame.node_, VOLT__FIRED, &c);
    volt__unlock(&w->wheel.lock);
    join_thread(thread);
    CHECK_EQ(volt__node_state(&frame.node_), VOLT__IDLE);
    CHECK_EQ(who.t->n_armed, 0);
}
// Fails when volt__timer_disarm takes no lock for a node that has fired.
TEST(disarm_waits_for_fire) {
    volt_rt *rt = still_rt(1);
    check_cancel(rt, 0);
    check_cancel(rt, 1);
    still_end(rt);
}

// ---- 19: timers set again by the tasks that they woke

// Fails when volt__timeout_end does not wake its task for a deadline that has passed, and when
// volt__sleep_poll does not stop the timer that has fired.
ROOT_TEST(timer_set_again_fires, { volt_timer limit; int64_t rc; int i; volt_time due; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 30; s->i++) {
        s->due = volt_now() + VOLT_MS(1);
        VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->due)); // and at once, in the poll that it woke:
        VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->due)); // the same deadline,
        VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, s->due, volt_sleep_forever(cx)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        s->due = volt_now() + 1; // the tick that is being handled,
        VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, s->due, volt_sleep_forever(cx)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        // and no time at all
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 0, volt_sleep_forever(cx)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
    }
    VOLT_END(0);
}

// ---- 20: long timeouts

static int is_old_kernel, last_ms; // without epoll_pwait2
static int is_unknown_call(long number) {
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2 && READ(is_old_kernel)) {
        errno = ENOSYS;
        return 1;
    }
#endif
    (void)number;
    return 0;
}
static int seam_epoll_wait_ms(int ep, struct epoll_event *ev, int n, int ms) {
    if (ms != 0) WRITE(last_ms, ms);
    return epoll_wait(ep, ev, n, ms);
}
typedef struct {
    volt_frame frame;
    volt_time d;
    int *n_sleeps_then;
} long_sleeper;
static volt_poll long_sleeper_run(volt_cx *cx, void *arg) {
    long_sleeper *l = arg;
    VOLT_BEGIN(cx, l);
    WRITE(*l->n_sleeps_then, READ(n_sleeps));
    VOLT_AWAIT(volt_sleep(cx, l->d));
    VOLT_END(0);
}
// The timeout that a worker gives to epoll while its only task sleeps for that time.
static void ask_for(volt_time d) {
    volt_rt *rt = create_on(1);
    int n_before = INT_MAX;
    RT_SPAWN(rt, NULL, long_sleeper_run, (long_sleeper){ .d = d, .n_sleeps_then = &n_before });
    UNTIL(READ(n_sleeps) > READ(n_before));
    UNTIL(!READ(is_old_kernel) || READ(last_ms) != 0);
    destroy(rt);
}
// Fails when volt__epoll_ms does not clamp to INT_MAX.
TEST(timeout_is_clamped) {
    static const volt_time days[] = { 1, 24, 25, 50, 365, 100000 };
    CHECK_EQ(volt__epoll_ms(-1), -1);
    CHECK_EQ(volt__epoll_ms(1), 1);
    CHECK_EQ(volt__epoll_ms(VOLT_MS(INT_MAX)), INT_MAX);
    CHECK_EQ(volt__epoll_ms(VOLT_MS(INT_MAX) + 1), INT_MAX);
    CHECK_EQ(volt__epoll_ms(VOLT_NEVER - VOLT_MS(1)), INT_MAX);
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++)
        for (int is_old = 0; is_old < 2; is_old++) {
            volt_time d = VOLT_S(86400) * days[i];
            WRITE(is_old_kernel, is_old);
            WRITE(last_ms, 0);
            most_timeout = d + VOLT_TICK_NS;
            ask_for(d);
            CHECK(READ(is_last_timeout_good));
            CHECK(!is_old || last_ms > 0);
        }
}

// ---- 21: a clock that goes back

// Measures by the real clock: by the one that was set back it would be no use.
typedef struct {
    volt_frame frame;
    volt_time d, start;
    int *n_ended;
} measured;
static volt_poll measured_run(volt_cx *cx, void *arg) {
    measured *m = arg;
    VOLT_BEGIN(cx, m);
    m->start = volt__sys_now();
    VOLT_AWAIT(volt_sleep(cx, m->d));
    CHECK(volt__sys_now() - m->start >= m->d);
    COUNT(*m->n_ended);
    VOLT_END(0);
}
enum { STEPS_BACK = 6, STEP_MS = 70, PER_STEP = 12 };
// Fails when volt__tick_floor takes a time before the epoch for one far ahead.
TEST(clock_may_go_back) {
    volt_rt *rt = create_on(2);
    int n_ended = 0;
    for (int k = 0; k < STEPS_BACK; k++) { // the first goes back before the runtime's start
        set_clock(*clock_offset - VOLT_MS(STEP_MS));
        for (int i = 0; i < PER_STEP; i++)
            RT_SPAWN(rt, NULL, measured_run,
                     (measured){ .d = VOLT_MS(1 + i), .n_ended = &n_ended });
        UNTIL(READ(n_ended) >= k * PER_STEP); // some of this step are still asleep
    }
    UNTIL(READ(n_ended) == STEPS_BACK * PER_STEP);
    destroy(rt);
}

// ---- 22: cancelled waiters

// Both wait for one byte. The first is cancelled before or after the event has woken it: the byte
// is the other's. Fails when volt__fd_fire_all wakes only the first.
ROOT_TEST_1(cancel_loses_no_event, { int fd[2], i; volt_handle h[2]; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        open_pair(s->fd);
        SPAWN(&s->h[0], reader_run, (reader){ .fd = s->fd[0] });
        VOLT_AWAIT(volt_yield(cx));
        SPAWN(&s->h[1], reader_run, (reader){ .fd = s->fd[0] });
        VOLT_AWAIT(volt_yield(cx));
        if (s->i == 0) volt_cancel(&s->h[0]);
        send_byte(s->fd[1]);
        (void)volt__drive_events(cx->worker_, 0, 0);
        if (s->i == 1) volt_cancel(&s->h[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
        CHECK_EQ(s->rc, -ECANCELED);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
        CHECK_EQ(s->rc, 1);
        volt_close(cx, s->fd[0]);
        close(s->fd[1]);
    }
    VOLT_END(0);
}

// ---- 24: hooks that call back

enum { CALLS_BACK = 300, BULK = VOLT_SLAB_SIZE / 4 };
typedef struct {
    volt_frame frame;
    char bulk[BULK]; // so large that it has a slab of its own
} bulky;
static volt_poll bulky_run(volt_cx *cx, void *arg) {
    bulky *b = arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
// Ends when it may; till then it can be woken.
static volt_waker callee_waker;
static int may_callee_end;
typedef struct {
    volt_frame frame;
    int has_waker;
} callee;
static volt_poll callee_run(volt_cx *cx, void *arg) {
    callee *c = arg;
    if (!c->has_waker) WRITE(callee_waker.task_, volt_waker_retain(cx).task_);
    c->has_waker = 1;
    return READ(may_callee_end) ? volt_ready(0) : volt_pending();
}
static volt_rt *called_rt; // NULL: hooks do not call back
static int n_calls_back;
static int n_inside; // hooks that may call back; sequentially consistent with called_rt
static __thread int is_inside;
static void use_runtime(volt_rt *rt) {
    static bulky zero;
    volt_counters counters;
    volt_stats(rt, &counters);
    volt_wake(callee_waker);
    int rc = volt_rt_spawn(rt, NULL, bulky_run, &zero, sizeof zero);
    CHECK(rc == 0 || rc == -ESHUTDOWN);
    COUNT(n_calls_back);
}
static void call_back(void) {
    if (is_inside) return;
    is_inside = 1;
    __atomic_add_fetch(&n_inside, 1, __ATOMIC_SEQ_CST);
    volt_rt *rt = __atomic_load_n(&called_rt, __ATOMIC_SEQ_CST);
    if (rt && READ(n_calls_back) < CALLS_BACK) use_runtime(rt);
    __atomic_sub_fetch(&n_inside, 1, __ATOMIC_SEQ_CST);
    is_inside = 0;
}
static void *calling_alloc(void *user, size_t size, size_t align) {
    call_back();
    return test_alloc(user, size, align);
}
static void calling_free(void *user, void *block, size_t size) {
    test_free(user, block, size);
    call_back();
}
static void calling_log(void *user, int item, const char *text) {
    test_write_log(user, item, text);
    call_back();
}
typedef struct {
    volt_frame frame;
    volt_handle h;
    bulky child;
} breeder;
static volt_poll breeder_run(volt_cx *cx, void *arg) {
    breeder *b = arg;
    VOLT_BEGIN(cx, b);
    while (READ(n_calls_back) < CALLS_BACK) {
        SPAWN(&b->h, bulky_run, b->child); // the hooks are called for it, and for theirs, and so on
        VOLT_AWAIT(volt_join(cx, &b->h));
    }
    VOLT_END(0);
}
static volt_rt *create_calling(void) {
    volt_config c = test_config(2);
    volt_rt *rt = NULL;
    c.alloc.alloc = calling_alloc;
    c.alloc.free = calling_free;
    c.log.fn = calling_log;
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, NULL, callee_run, (callee){ .has_waker = 0 });
    UNTIL(READ(callee_waker.task_));
    return rt;
}
// Fails when volt__slab_destroy calls the hook before it has unlocked.
TEST(hooks_may_call_volt) {
    static breeder b;
    volt_rt *rt = create_calling();
    WRITE(called_rt, rt);
    CHECK_EQ(volt_block_on(rt, breeder_run, &b), 0);
    WRITE(n_calls_back, CALLS_BACK - 1);
    CHECK(volt_shutdown(rt, 0) > 0); // the log calls back
    CHECK(test_log.n[VOLT_LOG_STILL_ALIVE] > 0);
    UNTIL(READ(n_calls_back) >= CALLS_BACK);
    __atomic_store_n(&called_rt, NULL, __ATOMIC_SEQ_CST);
    UNTIL(__atomic_load_n(&n_inside, __ATOMIC_SEQ_CST) == 0);
    WRITE(may_callee_end, 1);
    volt_wake(callee_waker);
    volt_waker_release(callee_waker);
    destroy(rt);
}

// ---- 28: what a child process inherits

static int seam_open(const char *path, int flags) {
    CHECK(flags & O_CLOEXEC);
    return open(path, flags);
}
enum { MOST_FDS = 64 };
static int count_fds_and_check(void) {
    int n = 0;
    for (int fd = STDERR_FILENO + 1; fd < MOST_FDS; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0) CHECK(flags & FD_CLOEXEC);
        n += flags >= 0;
    }
    return n;
}
// Fails when any of volt's descriptors is opened without its CLOEXEC flag.
ROOT_TEST_ALL(fds_are_cloexec, { volt_pollset set; volt_addr a; int lfd, cfd, fd; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    VOLT_AWAIT(s->cfd, volt_connect(cx, &s->a));
    VOLT_AWAIT(s->fd, volt_accept(cx, s->lfd));
    CHECK(s->cfd >= 0 && s->fd >= 0);
    CHECK(count_fds_and_check() >= 4 + 2 * (int)cx->rt_->n_workers);
    (void)volt__cpu_count(); // reads files
    volt_close(cx, s->fd);
    volt_close(cx, s->cfd);
    volt_close(cx, s->lfd);
    volt_pollset_close(cx, &s->set);
    VOLT_END(0);
}

// ---- 29: writes without a reader

enum { A_PIPE, A_UNIX_SOCKET, A_TCP_SOCKET, N_KINDS };
enum { BY_WRITE, BY_WRITEV, BY_WRITE_ALL, N_WAYS };
static int open_broken_tcp(void) {
    struct linger reset = { 1, 0 };
    int lfd = volt_listen("127.0.0.1", 0, NULL), peer_fd = connect_to(lfd);
    int fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK_EQ(setsockopt(peer_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(peer_fd);
    close(lfd);
    return fd;
}
static int open_broken(int kind) {
    int fd[2];
    if (kind == A_TCP_SOCKET) return open_broken_tcp();
    if (kind == A_PIPE) CHECK_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    else open_pair(fd);
    close(fd[0]);
    return fd[1];
}
static volt_poll write_by(volt_cx *cx, int way, int fd, const struct iovec *iov) {
    if (way == BY_WRITE) return volt_write(cx, fd, iov->iov_base, iov->iov_len);
    if (way == BY_WRITEV) return volt_writev(cx, fd, iov, 1);
    return volt_write_all(cx, fd, iov->iov_base, iov->iov_len);
}
typedef struct {
    volt_frame frame;
    int i, fd;
    struct iovec iov;
    int64_t rc;
    char text[4];
} writer;
static volt_poll writer_run(volt_cx *cx, void *arg) {
    writer *w = arg;
    VOLT_BEGIN(cx, w);
    w->iov.iov_base = w->text;
    w->iov.iov_len = sizeof w->text;
    for (w->i = 0; w->i < N_KINDS * N_WAYS; w->i++) {
        w->fd = open_broken(w->i % N_KINDS);
        VOLT_AWAIT(w->rc, write_by(cx, w->i / N_KINDS, w->fd, &w->iov));
        CHECK(w->rc == -EPIPE || w->rc == -ECONNRESET);
        VOLT_AWAIT(w->rc, write_by(cx, w->i / N_KINDS, w->fd, &w->iov));
        CHECK_EQ(w->rc, -EPIPE);
        volt_close(cx, w->fd);
    }
    VOLT_END(0);
}
// Fails without MSG_NOSIGNAL in either branch of volt__send, and when volt__write_nosignal holds no
// signal back.
TEST(write_raises_no_sigpipe) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
    EACH_WORKERS(n) {
        writer w;
        memset(&w, 0, sizeof w);
        CHECK_EQ(run_on(n, writer_run, &w), 0);
    }
}

// ---- 30: close is interrupted, and has closed all the same

static int is_interrupting;
static int seam_close(int fd) {
    int rc = close(fd);
    if (!READ(is_interrupting)) return rc;
    CHECK_EQ(rc, 0); // a second close would hit no file, or another one
    errno = EINTR;
    return -1;
}
// Fails when volt__fd_retire closes again after EINTR.
// All at once: a worker that starts later takes the number, which then is no socket.
ROOT_TEST_ALL(close_is_not_retried, { int fd[2], i; volt_handle h; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    WRITE(is_interrupting, 1);
    for (s->i = 0; s->i < 50; s->i++) {
        open_pair(s->fd);
        SPAWN(&s->h, reader_run, (reader){ .fd = s->fd[0] });
        VOLT_AWAIT(volt_yield(cx));
        volt_close(cx, s->fd[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -EBADF);
        volt_close(cx, s->fd[1]);
    }
    VOLT_END(0);
}

// ---- 31: references

typedef struct {
    volt_frame frame;
} hoarder;
static volt_poll hoarder_run(volt_cx *cx, void *arg) {
    hoarder *h = arg;
    VOLT_BEGIN(cx, h);
    for (int i = 0; i < 1 << VOLT_REF_BITS; i++) (void)volt_waker_retain(cx);
    VOLT_END(0);
}
// Fails without the limit in volt__task_retain.
TEST_DIES(ref_overflow_panics, "too many references") {
    hoarder h;
    memset(&h, 0, sizeof h);
    (void)run_on(1, hoarder_run, &h);
}

// ---- 35: the worker that has the timer and the descriptor is stuck

typedef struct {
    volt_frame frame;
    int is_timer, fd[2];
    int *n_served, *n_over;
    int64_t rc;
    char byte;
} handed;
static volt_poll holder_run(volt_cx *cx, void *arg) {
    handed *h = arg;
    VOLT_BEGIN(cx, h);
    if (!h->is_timer) send_byte(h->fd[1]);
    while (!READ(*h->n_served)) {} // without end, unless another worker serves it
    COUNT(*h->n_over);
    VOLT_END(0);
}
// Waits on this worker and leaves the holder in its LIFO slot.
static volt_poll handed_run(volt_cx *cx, void *arg) {
    handed *h = arg;
    VOLT_BEGIN(cx, h);
    SPAWN(NULL, holder_run,
          (handed){ .is_timer = h->is_timer, .fd = { h->fd[0], h->fd[1] },
                    .n_served = h->n_served, .n_over = h->n_over });
    if (h->is_timer) VOLT_AWAIT(h->rc, volt_sleep(cx, VOLT_MS(2)));
    else VOLT_AWAIT(h->rc, volt_read(cx, h->fd[0], &h->byte, 1));
    COUNT(*h->n_served);
    COUNT(*h->n_over);
    VOLT_END(0);
}
// Fails when volt__rescue looks at no timers, or at no descriptors.
TEST(stuck_worker_is_served) {
    volt_rt *rt = create_on(2);
    for (int round = 0; round < 10; round++) {
        int n_served = 0, n_over = 0;
        handed h = { .is_timer = round % 2, .n_served = &n_served, .n_over = &n_over };
        open_pair(h.fd);
        RT_SPAWN(rt, NULL, handed_run, h);
        UNTIL(READ(n_over) == 2);
        volt_rt_close(rt, h.fd[0]);
        close(h.fd[1]);
    }
    destroy(rt);
}
