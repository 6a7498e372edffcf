// SPDX-License-Identifier: MIT OR 0BSD
// The model of the world, checked: small programs over futexes, timed waits, eventfd, epoll and
// timers are explored with and without reduction, and both must see the same graphs. The comments
// give the kernel's rule that each outcome shows.
#include "vmc.h"
#include "world.h"
#include <errno.h>

static uint32_t word;
static int ep[2], ev[2], timer;
static const uint64_t one = 1;

#define COMPARED .class = VMC_EXHAUSTIVE, .is_compared = 1

// ---- futex

static void wait_without_end(void *arg) {
    (void)arg;
    vmc_outcome("T%d %d", vmc_self(), vmc_futex_wait(&word, 0, INT64_MAX));
}
static void wait_10_ns(void *arg) {
    (void)arg;
    int64_t start = vmc_now();
    int rc = vmc_futex_wait(&word, 0, start + 10);
    VMC_ASSERT(rc != -ETIMEDOUT || vmc_now() >= start + 10);
    vmc_outcome("T%d %d", vmc_self(), rc);
}
static void set_and_wake(int n) {
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    vmc_futex_wake(&word, n);
}
SCENARIO(world_futex, COMPARED) {
    int a = vmc_spawn(wait_without_end, NULL), b = vmc_spawn(wait_without_end, NULL);
    set_and_wake(1);
    vmc_futex_wake(&word, 1);
    vmc_join(a);
    vmc_join(b);
}
SCENARIO(world_futex_timed, COMPARED) {
    int a = vmc_spawn(wait_10_ns, NULL), b = vmc_spawn(wait_10_ns, NULL);
    set_and_wake(1);
    vmc_join(a);
    vmc_join(b);
}
SCENARIO(world_futex_spurious, COMPARED, .spurious = 1) {
    int a = vmc_spawn(wait_without_end, NULL), b = vmc_spawn(wait_10_ns, NULL);
    set_and_wake(2);
    vmc_join(a);
    vmc_join(b);
}
SCENARIO(world_futex_bounded, .class = VMC_BOUNDED, .preemptions = 2, .is_compared = 1) {
    int a = vmc_spawn(wait_10_ns, NULL), b = vmc_spawn(wait_10_ns, NULL);
    set_and_wake(1);
    vmc_join(a);
    vmc_join(b);
}
// A wake that comes before the wait is lost, unless the word has changed.
SCENARIO(world_futex_lost_wake, .class = VMC_EXHAUSTIVE, .must_fail = "deadlock") {
    int a = vmc_spawn(wait_without_end, NULL);
    vmc_futex_wake(&word, 1);
    vmc_join(a);
}
// Being woken orders nothing: what the waker wrote is read through the word.
static int plain;
static void wait_and_read(void *arg) {
    (void)arg;
    if (vmc_futex_wait(&word, 0, INT64_MAX) == 0) vmc_outcome("%d", plain);
}
SCENARIO(world_futex_no_order, .class = VMC_EXHAUSTIVE, .must_fail = "data race") {
    int a = vmc_spawn(wait_and_read, NULL);
    plain = 1;
    set_and_wake(1);
    vmc_join(a);
}

// ---- a loop that yields

static void wait_for_word(void *arg) {
    (void)arg;
    while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE)) vmc_yield();
}
SCENARIO(world_yield, COMPARED, .max_repeats = 2) {
    int a = vmc_spawn(wait_for_word, NULL);
    __atomic_store_n(&ep[0], 1, __ATOMIC_RELEASE);
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    vmc_join(a);
}

// ---- eventfd, epoll, timerfd

static void add(int to, int fd, uint32_t events) {
    struct epoll_event e;
    memset(&e, 0, sizeof e);
    e.events = events;
    e.data.fd = fd;
    VMC_ASSERT(vmc_sys_epoll_ctl(to, EPOLL_CTL_ADD, fd, &e) == 0);
}
static void create(int n, int with_timer) {
    if (with_timer) timer = vmc_sys_timerfd_create(0, 0);
    for (int i = 0; i < n; i++) {
        ep[i] = vmc_sys_epoll_create1(0);
        ev[i] = vmc_sys_eventfd(0, 0);
        add(ep[i], ev[i], EPOLLIN);
        if (with_timer) add(ep[i], timer, (uint32_t)(EPOLLIN | EPOLLET) | EPOLLEXCLUSIVE);
    }
}
static void arm(void) {
    struct itimerspec t;
    memset(&t, 0, sizeof t);
    t.it_value.tv_nsec = 1;
    VMC_ASSERT(vmc_sys_timerfd_settime(timer, 0, &t, NULL) == 0);
}
static void poke(int i) { VMC_ASSERT(vmc_sys_write(ev[i], &one, sizeof one) == sizeof one); }

// Read, an eventfd hands over what its writers knew.
static void sleep_and_read(void *arg) {
    struct epoll_event e[2];
    uint64_t n;
    int i = (int)(intptr_t)arg;
    VMC_ASSERT(vmc_epoll_wait(ep[i], e, 2, -1) == 1);
    VMC_ASSERT(vmc_sys_read(ev[i], &n, sizeof n) == sizeof n);
    vmc_outcome("eventfd %d, plain %d", (int)n, plain);
}
static void poke_both(void *arg) {
    (void)arg;
    poke(0);
    poke(1);
}
SCENARIO(world_eventfd, COMPARED) {
    create(2, 0);
    plain = 5; // before both: the other poker learns of it at its start
    int a = vmc_spawn(sleep_and_read, NULL), b = vmc_spawn(poke_both, NULL);
    poke(0);
    vmc_join(a);
    vmc_join(b);
}
static void only_sleep(void *arg) {
    struct epoll_event e[2];
    (void)arg;
    VMC_ASSERT(vmc_epoll_wait(ep[0], e, 2, -1) == 1);
    vmc_outcome("%d", plain);
}
SCENARIO(world_epoll_no_order, .class = VMC_EXHAUSTIVE, .must_fail = "data race") {
    create(1, 0);
    int a = vmc_spawn(only_sleep, NULL);
    plain = 1;
    poke(0);
    vmc_join(a);
}

// Level-triggered events are reported again, edges once. One expiry wakes one sleeper; an epoll in
// which no thread sleeps finds it at its next look.
static void look_twice(void *arg) {
    struct epoll_event e[2];
    int i = (int)(intptr_t)arg;
    int first = vmc_epoll_wait(ep[i], e, 2, i ? 0 : 1000), second = vmc_epoll_wait(ep[i], e, 2, 0);
    vmc_outcome("epoll %d: %d %d", i, first, second);
}
static void look_beside_timer(void) {
    create(2, 1);
    int a = vmc_spawn(look_twice, NULL), b = vmc_spawn(look_twice, (void *)(intptr_t)1);
    arm();
    poke(1);
    vmc_join(a);
    vmc_join(b);
}
SCENARIO(world_timer, COMPARED) { look_beside_timer(); }
SCENARIO(world_timer_bounded, .class = VMC_BOUNDED, .preemptions = 2, .is_compared = 1) {
    look_beside_timer();
}
// Armed again before it has expired, it expires once.
SCENARIO(world_timer_again, COMPARED, .early_timers = 2) {
    create(1, 1);
    int a = vmc_spawn(look_twice, NULL);
    arm();
    arm();
    vmc_join(a);
}
static void sleep_for_edge(void *arg) {
    struct epoll_event e[1];
    (void)arg;
    VMC_ASSERT(vmc_epoll_wait(ep[0], e, 1, -1) == 1);
    vmc_outcome("events %#x", e[0].events);
}
SCENARIO(world_edges, COMPARED) {
    ep[0] = vmc_sys_epoll_create1(0);
    int fd = vmc_fd();
    add(ep[0], fd, (uint32_t)(EPOLLIN | EPOLLOUT | EPOLLET));
    int a = vmc_spawn(sleep_for_edge, NULL);
    vmc_fd_raise(fd, EPOLLIN);
    vmc_fd_raise(fd, EPOLLOUT);
    vmc_join(a);
}

// ---- bounded: a lock that is soon taken again hides what its user does without it

static int guarded, is_coming;
static void locked(void) {
    uint32_t expected;
    do expected = 0;
    while (!__atomic_compare_exchange_n(&word, &expected, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED) &&
           vmc_futex_wait(&word, 1, INT64_MAX) != -ETIMEDOUT);
    guarded++;
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    vmc_futex_wake(&word, 1);
}
static void come(void *unused) {
    (void)unused;
    __atomic_store_n(&is_coming, 1, __ATOMIC_RELAXED);
    locked();
}
static void touch_late(void) {
    int t = vmc_spawn(come, NULL);
    if (__atomic_load_n(&is_coming, __ATOMIC_RELAXED)) {
        locked();
        guarded++; // without the lock
        locked();
    }
    vmc_join(t);
}
SCENARIO(world_bound_hides_a_race, .class = VMC_BOUNDED, .preemptions = 2, .is_compared = 1) {
    touch_late();
}
SCENARIO(world_contest_shows_the_race, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1,
         .must_fail = "data race") {
    touch_late();
}
