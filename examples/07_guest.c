// SPDX-License-Identifier: MIT OR 0BSD
// A program with a loop of its own: volt is one more descriptor in it, and worker 0 runs inside
// that loop. Threads unknown to volt spawn tasks and wait for them.
//
// With .is_guest volt_create starts no thread for worker 0. Its descriptor is readable when a task
// can run, a timer is due or a descriptor is ready; then the loop calls volt_rt_step, which runs
// the pending work and never blocks. The second argument bounds the number of polls, so that the
// loop's own work does not wait for long; remaining work keeps the descriptor readable. If the
// thread of the loop often starts or wakes tasks, .guest_is_asked saves a system call for each.
//
//     cc -I. -pthread examples/07_guest.c -o guest && ./guest
//
// Expected output:
// task: tick 1
// task: tick 2
// task: tick 3
// thread: 12 * 12 = 144
// loop: 5 ticks of its own
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

// ---- tasks, as in any other program

typedef struct {
    volt_frame frame;
    volt_interval every;
    int n;
} ticker;
static volt_poll ticker_run(volt_cx *cx, void *arg) {
    ticker *t = (ticker *)arg;
    VOLT_BEGIN(cx, t);
    volt_interval_init(&t->every, VOLT_MS(10));
    for (t->n = 1; t->n <= 3; t->n++) {
        VOLT_AWAIT(volt_interval_next(cx, &t->every));
        printf("task: tick %d\n", t->n);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int x;
} square;
static volt_poll square_run(volt_cx *cx, void *arg) {
    square *s = (square *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    VOLT_END(s->x * s->x);
}

// ---- a thread of the application

typedef struct {
    volt_rt *rt;
    int rc;
    int64_t result;
} asker;
static void *asker_main(void *arg) {
    asker *a = (asker *)arg;
    volt_handle h = { 0 };
    a->rc = VOLT_RT_SPAWN(a->rt, &h, square_run, (square){ .x = 12 });
    if (a->rc == 0) a->rc = volt_join_sync(&h, VOLT_S(5), &a->result); // blocks this thread alone
    return NULL;
}

// ---- the loop

static int watch(int ep, int fd) {
    struct epoll_event ev = { .events = EPOLLIN, .data = { .fd = fd } };
    return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}
// Runs until the loop's own timer has expired n_ticks times and the task has ended. < 0: an error
// of volt.
static int run_loop(volt_rt *rt, int ep, int timer, int n_ticks, volt_handle *task) {
    int rc = 0;
    while (rc >= 0 && (n_ticks > 0 || volt_try_join(task, NULL) == -EAGAIN)) {
        struct epoll_event ev;
        uint64_t n;
        if (epoll_wait(ep, &ev, 1, -1) != 1) continue;
        if (ev.data.fd == volt_rt_fd(rt)) rc = volt_rt_step(rt, 64);
        else if (read(timer, &n, sizeof n) == sizeof n) n_ticks--;
    }
    return rc;
}

int main(void) {
    const struct timespec period = { .tv_sec = 0, .tv_nsec = 20000000 };
    const struct itimerspec every = { .it_interval = period, .it_value = period };
    const volt_config config = { .workers = 1, .is_guest = 1 };
    volt_rt *rt;
    volt_handle task = { 0 };
    pthread_t thread;
    int ep = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int rc = volt_create(&config, &rt);
    if (rc < 0 || watch(ep, timer) < 0 || watch(ep, volt_rt_fd(rt)) < 0) return 1;
    asker a = { .rt = rt };
    if (pthread_create(&thread, NULL, asker_main, &a) != 0) return 1;
    rc = VOLT_RT_SPAWN(rt, &task, ticker_run, (ticker){ .n = 0 });
    if (rc == 0 && timerfd_settime(timer, 0, &every, NULL) == 0)
        rc = run_loop(rt, ep, timer, 5, &task);
    pthread_join(thread, NULL);
    if (a.rc == 0) printf("thread: 12 * 12 = %d\n", (int)a.result);
    if (rc >= 0) printf("loop: 5 ticks of its own\n");
    volt_detach(&task);
    rc = volt_shutdown(rt, VOLT_S(1)); // runs the remaining cleanup in this thread
    if (rc == 0) rc = volt_destroy(rt);
    close(timer);
    close(ep);
    return rc == 0 && a.rc == 0 ? 0 : 1;
}
