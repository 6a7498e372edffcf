// SPDX-License-Identifier: MIT OR 0BSD
// A seam whose kernel, clock and other threads the test plays, and the implementation on it. No
// thread runs but the test's own, so that a test sees what stands where before and after each step.
#ifndef VOLT_TEST_SCRIPTED_SEAM_H
#define VOLT_TEST_SCRIPTED_SEAM_H
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

// ---- the seam: calls named by a HOOK_ go to a function of this header

#define HOOK_close ~, seam_close
#define HOOK_epoll_create1 ~, seam_epoll_create1
#define HOOK_epoll_ctl ~, seam_epoll_ctl
#define HOOK_eventfd ~, seam_eventfd
#define HOOK_getsockopt ~, seam_getsockopt
#define HOOK_pthread_attr_destroy ~, seam_attr_destroy
#define HOOK_pthread_attr_init ~, seam_attr_init
#define HOOK_pthread_setname_np ~, seam_setname
#define HOOK_read ~, seam_read
#define HOOK_timerfd_settime ~, seam_timerfd_settime
#define HOOK_write ~, seam_write
#include "hook.h"

static int64_t clock_now = INT64_C(1000000000000), clock_step;
#define VOLT_NOW_NS() (clock_now += clock_step)

// A sleep on a futex is over when the step that the test has for it was taken.
static struct {
    int n_waits, n_wakes, n, rc; // n: threads to be woken; rc: of a wait
    uint32_t *word, value;       // of the last call; what stood in the word
    uint32_t expect;
    int64_t deadline;
    void (*step)(void);
} futex;
static int seam_futex_wait(uint32_t *word, uint32_t expect, int64_t deadline) {
    futex.n_waits++;
    futex.word = word;
    futex.value = *word;
    futex.expect = expect;
    futex.deadline = deadline;
    if (futex.step) futex.step();
    return futex.rc;
}
static void seam_futex_wake(uint32_t *word, int n) {
    futex.n_wakes++;
    futex.word = word;
    futex.n = n;
}
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_) seam_futex_wait(word_, expect_, deadline_)
#define VOLT_FUTEX_WAKE(word_, n_) seam_futex_wake(word_, n_)

static int n_relaxed;
static void (*at_relax)(void);
static void seam_relax(void) {
    n_relaxed++;
    if (at_relax) at_relax();
}
#define VOLT_CPU_RELAX() seam_relax()

static jmp_buf panic_exit;
static char panic_text[600];
__attribute__((noreturn)) static void seam_panic(const char *text);
static int is_panic_expected;
#define VOLT_PANIC(text_) seam_panic(text_)

// A worker does not sleep here: it asks, and is answered at once.

static struct {
    int n_calls, ep, max, is_played, n, error;
    int64_t timeout;
    struct epoll_event ev[8];
    void (*step)(void); // while it sleeps
} polls;
static int seam_epoll_wait(int ep, struct epoll_event *ev, int max, int64_t timeout);
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) seam_epoll_wait(ep_, ev_, n_, timeout_)

// The next errors of a call, one after the other; 0: the kernel's own answer.
typedef struct {
    int n_calls, error[8];
} answers;
static int fails(answers *a) {
    int n = a->n_calls++;
    if (n >= 8 || !a->error[n]) return 0;
    errno = a->error[n];
    return 1;
}
static struct {
    answers answers;
    int ep, op, fd;
    struct epoll_event ev;
} ctl;
static int seam_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    ctl.ep = ep;
    ctl.op = op;
    ctl.fd = fd;
    ctl.ev = *ev;
    return fails(&ctl.answers) ? -1 : epoll_ctl(ep, op, fd, ev);
}
static answers of_close, of_create1, of_eventfd, of_read, of_write, of_sockopt;
static int seam_close(int fd) {
    int is_failing = fails(&of_close), error = errno, rc = close(fd);
    errno = error;
    return is_failing ? -1 : rc;
}
// Descriptor 0 is a number like any other, in a program that has closed its own.
static int is_zero; // 1: the epoll, 2: the eventfd gets it
static int give_zero(int fd, int which) {
    if (fd < 0 || is_zero != which) return fd;
    dup2(fd, 0);
    close(fd);
    return 0;
}
static int seam_epoll_create1(int flags) {
    return fails(&of_create1) ? -1 : give_zero(epoll_create1(flags), 1);
}
static int seam_eventfd(unsigned n, int flags) {
    return fails(&of_eventfd) ? -1 : give_zero(eventfd(n, flags), 2);
}
static int seam_getsockopt(int fd, int at, int name, void *v, socklen_t *n) {
    return fails(&of_sockopt) ? -1 : getsockopt(fd, at, name, v, n);
}
static ssize_t seam_read(int fd, void *buf, size_t n) {
    return fails(&of_read) ? -1 : read(fd, buf, n);
}
static ssize_t seam_write(int fd, const void *buf, size_t n) {
    return fails(&of_write) ? -1 : write(fd, buf, n);
}
static char thread_name[32];
static int seam_setname(pthread_t t, const char *name) {
    (void)t;
    snprintf(thread_name, sizeof thread_name, "%s", name);
    return 0;
}
static struct {
    int n_calls, fd, flags;
    struct itimerspec t;
} settime;
static int seam_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                                struct itimerspec *old) {
    (void)old;
    settime.n_calls++;
    settime.fd = fd;
    settime.flags = flags;
    settime.t = *t;
    return 0;
}
static int attr_error, n_attrs;
static int seam_attr_init(pthread_attr_t *a) {
    n_attrs += !attr_error;
    return attr_error ? attr_error : pthread_attr_init(a);
}
static int seam_attr_destroy(pthread_attr_t *a) {
    n_attrs--;
    return pthread_attr_destroy(a);
}
// Threads that are created do not begin.
static struct {
    int n_creates, error, fail_at;
    size_t stack;
    void *(*fn)(void *);
    void *arg;
    sigset_t mask;
} created;
static int seam_thread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    (void)t;
    created.n_creates++;
    pthread_attr_getstacksize(attr, &created.stack);
    pthread_sigmask(SIG_BLOCK, NULL, &created.mask);
    created.fn = fn;
    created.arg = arg;
    return created.n_creates == created.fail_at ? created.error : 0;
}
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) seam_thread_create(thread_, attr_, fn_, arg_)
static int seam_thread_join(pthread_t t) { return (void)t, 0; }
#define VOLT_THREAD_JOIN(thread_) seam_thread_join(thread_)

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include "slab.h"

static void seam_panic(const char *text) {
    if (!is_panic_expected) test_fail(__FILE__, __LINE__, "%s", text);
    snprintf(panic_text, sizeof panic_text, "%s", text);
    is_panic_expected = 2;
    longjmp(panic_exit, 1);
}
static int seam_epoll_wait(int ep, struct epoll_event *ev, int max, int64_t timeout) {
    polls.n_calls++;
    polls.ep = ep;
    polls.max = max;
    polls.timeout = timeout;
    if (polls.step) polls.step();
    if (polls.error) return -polls.error;
    if (!polls.is_played) return volt__sys_epoll_wait(ep, ev, max, 0);
    CHECK(polls.n <= max);
    for (int i = 0; i < polls.n; i++) ev[i] = polls.ev[i];
    return polls.n;
}
static volt_rt *rt;
static volt__worker *w, *v; // the first two workers
static void begin(uint32_t n_workers) {
    rt = still_rt(n_workers);
    w = rt->workers[0];
    v = n_workers > 1 ? rt->workers[1] : NULL;
}
static void end(void) {
    VOLT_TLS_SET(NULL);
    still_end(rt);
}
static __attribute__((unused)) volt__chain no_chain(void) {
    volt__chain c;
    volt__chain_init(&c);
    return c;
}
static __attribute__((unused)) uint32_t ring_len(void) { return volt__ring_len(&w->ring); }
static __attribute__((unused)) void empty(volt__worker *of) {
    volt__store_rlx(&of->lifo, (volt__task *)NULL);
    while (volt__ring_pop(&of->ring)) {}
    volt__chain c = no_chain();
    while (volt__injector_pop(&rt->injector, 1, UINT32_MAX, &c) > 0) {}
    of->lifo_run = 0;
}
// The second worker sleeps; whether it has been claimed and unparked since.
static __attribute__((unused)) void park_v(void) { (void)volt__idle_park(&rt->idle, 1, 0); }
static __attribute__((unused)) int was_v_woken(void) {
    uint64_t n;
    if (volt__idle_is_parked(&rt->idle, 1)) return 0;
    CHECK_EQ(rt->idle.searching, 1);
    CHECK_EQ(read(v->reactor.evfd, &n, sizeof n), sizeof n);
    CHECK_EQ(n, 1);
    rt->idle.searching = 0;
    park_v();
    return 1;
}
static __attribute__((unused)) void place_at(volt__worker *at, volt__task *t) {
    volt__chain c = no_chain();
    volt__chain_push(&c, t);
    volt__injector_push(at ? &at->inbox : &rt->injector, &c);
}
#endif
