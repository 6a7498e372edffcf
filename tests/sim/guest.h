// SPDX-License-Identifier: MIT OR 0BSD
// Guests: a runtime whose worker 0 runs inside the loop of an application. The loop waits for the
// runtime's descriptor with an epoll instance of its own, and steps; a loop without a free
// descriptor for that steps at intervals. For grammar.h.
#ifndef VOLT_SIM_GUEST_H
#define VOLT_SIM_GUEST_H

#include "calls.h"

enum { GUEST_TRIES = 20 };
typedef struct guest_loop {
    volt_rt *rt;
    int epfd, bell;       // -1: none
    int n_threads;        // number of stepping threads; 0: the program's own thread
    int is_over;          // the bell has been rung
    int has_limit; // waits until volt_rt_deadline at most, else until the descriptor is ready
    uint32_t most_polls;  // of a step; 0: all
    uint32_t n_idle;      // steps in a row without work
    uint64_t random;      // separate from the program's, whose draws must not depend on guests
} guest_loop;
static guest_loop steps;

static uint32_t guest_below(uint32_t n) {
    return (uint32_t)(((sim_next(&steps.random) >> 32) * n) >> 32);
}
// One program in four has a guest.
static int draw_guest(uint64_t seed) {
    memset(&steps, 0, sizeof steps);
    steps.random = sim_mix(seed ^ UINT64_C(0x90e57));
    steps.epfd = steps.bell = -1;
    return guest_below(4) == 0;
}
static int guest_add(int fd) {
    struct epoll_event ev;
    memset(&ev, 0, sizeof ev);
    ev.events = EPOLLIN;
    ev.data.fd = fd;
    for (int i = 0; i < GUEST_TRIES; i++)
        if (sim_epoll_ctl(steps.epfd, EPOLL_CTL_ADD, fd, &ev) == 0) return 1;
    return 0;
}
static void guest_close(void) {
    if (steps.epfd >= 0) sim_close(steps.epfd);
    if (steps.bell >= 0) sim_close(steps.bell);
    steps.epfd = steps.bell = -1;
}
static void guest_open(volt_rt *rt) {
    steps.rt = rt;
    steps.most_polls = guest_below(2) ? 0 : 1 + guest_below(9);
    steps.n_threads = (int)guest_below(4);
    steps.has_limit = steps.n_threads < 2 && guest_below(2);
    for (int i = 0; i < GUEST_TRIES && steps.epfd < 0; i++) steps.epfd = sim_epoll_create1(0);
    for (int i = 0; i < GUEST_TRIES && steps.bell < 0; i++) steps.bell = sim_eventfd(0, 0);
    int ok = steps.epfd >= 0 && steps.bell >= 0;
    if (ok && guest_add(volt_rt_fd(rt)) && guest_add(steps.bell)) return;
    SIM_CHECK(prog.may_fail);
    guest_close();
}
// The result of a step. Several threads may try at once, and a shutdown steps as well.
static int guest_step(void) {
    int rc = volt_rt_step(steps.rt, steps.most_polls);
    if (rc == -EBUSY) SIM_CHECK(steps.n_threads > 1 || prog.is_ending);
    else if (rc == -ESHUTDOWN) SIM_CHECK(prog.is_ending);
    else SIM_CHECK(rc >= 0);
    if (steps.most_polls && rc > 0) SIM_CHECK((uint32_t)rc <= steps.most_polls);
    steps.n_idle = rc > 0 ? 0 : steps.n_idle + (steps.n_idle < 40);
    return rc;
}
// A loop with other work, or without a descriptor, sometimes steps without need: more rarely the
// more steps found no work, as a task may sleep for a year.
static int64_t guest_pause(void) { return SIM_US(1) << steps.n_idle; }
// `most`: the time limit; < 0: until there is something to do.
static void guest_wait(int64_t most) {
    struct epoll_event ev[2];
    if (steps.has_limit) {
        volt_time deadline = volt_rt_deadline(steps.rt);
        int64_t left = deadline - sim_now();
        if (deadline != VOLT_NEVER && (most < 0 || left < most)) most = left > 0 ? left : 0;
    }
    if (steps.epfd < 0) sim_nap(guest_pause());
    else sim__epoll_wait_ns(steps.epfd, ev, 2, most);
}
static void guest_thread(void *arg) {
    (void)arg;
    while (!steps.is_over) {
        int rc = guest_step();
        if (rc == -ESHUTDOWN) return;
        if (rc == -EBUSY) sim_nap(1000);
        else guest_wait(-1);
    }
}
// The program's own thread steps until a task has ended, and returns its result.
static int64_t guest_steps_until(volt_handle *h) {
    int64_t value = 0;
    int is_alone = steps.rt->n_workers == 1;
    while (volt_try_join(h, &value) == -EAGAIN) {
        int rc = guest_step();
        if (rc == -ESHUTDOWN || rc == -EBUSY) sim_nap(1000);
        else if (volt_try_join(h, &value) != -EAGAIN) return value;
        else guest_wait(is_alone ? -1 : guest_pause()); // others may end it without a wake-up
    }
    return value;
}
static void guest_ends(void) {
    uint64_t one = 1;
    steps.is_over = 1;
    if (steps.bell >= 0)
        while (sim_write(steps.bell, &one, sizeof one) < 0) SIM_CHECK(errno == EINTR);
}

#endif // VOLT_SIM_GUEST_H
