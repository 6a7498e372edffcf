// SPDX-License-Identifier: MIT OR 0BSD
// A guest: worker 0 sleeps by leaving, and a thread that waits for its descriptor, without a time
// limit, carries it next. A task that is spawned meanwhile must make the descriptor readable.
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

typedef struct item {
    volt_frame frame;
    uint32_t n_yields;
} item;
static uint32_t n_ran;
static volt_poll run_item(volt_cx *cx, void *arg) {
    item *i = arg;
    VOLT_BEGIN(cx, i);
    for (; i->n_yields > 0; i->n_yields--) VOLT_AWAIT(volt_yield(cx));
    __atomic_fetch_add(&n_ran, 1, __ATOMIC_RELAXED);
    VOLT_END(0);
}
static uint32_t ran(void) { return __atomic_load_n(&n_ran, __ATOMIC_RELAXED); }
static void spawn(void *arg) { VMC_ASSERT(VOLT_RT_SPAWN(rt, NULL, run_item, *(item *)arg) == 0); }

static void make_guest(void) {
    volt_config cfg;
    memset(&cfg, 0, sizeof cfg);
    cfg.workers = cfg.is_guest = 1;
    cfg.alloc.alloc = vmc_volt_alloc;
    cfg.alloc.free = vmc_volt_free;
    VMC_ASSERT(volt_create(&cfg, &rt) == 0);
    workers[0] = rt->workers[0];
}
static void end_guest(void) {
    VMC_ASSERT(volt__count_alive(rt) == 0);
    free_runtime();
}
static void wait_readable(void) {
    struct epoll_event ev;
    VMC_ASSERT(VOLT_EPOLL_WAIT(volt_rt_fd(rt), &ev, 1, -1) == 1);
}
static void step_until(uint32_t n, uint32_t max_polls) {
    while (ran() < n) {
        wait_readable();
        VMC_ASSERT(volt_rt_step(rt, max_polls) >= 0);
    }
}

// It comes and goes while something is spawned.
SCENARIO(guest_spawn) {
    static item i;
    make_guest();
    int t = vmc_spawn(spawn, &i);
    VMC_ASSERT(volt_rt_step(rt, 0) >= 0);
    step_until(1, 0);
    vmc_join(t);
    end_guest();
}
// Steps of one poll, of two tasks in turn: each does that one, or was woken for nothing, once by
// each spawn; what is left keeps the descriptor readable, and the last poll leaves it quiet.
SCENARIO(guest_quota) {
    enum { N_POLLS = 5 };
    static item i = { .n_yields = 2 }, j = { .n_yields = 1 };
    struct epoll_event ev;
    int n_polls = 0, n_idle_steps = 0;
    make_guest();
    spawn(&j);
    int t = vmc_spawn(spawn, &i);
    while (n_polls < N_POLLS) {
        wait_readable();
        int n = volt_rt_step(rt, 1);
        VMC_ASSERT(n == 0 || n == 1);
        n_polls += n;
        n_idle_steps += n == 0;
        VMC_ASSERT((ran() == 2) == (n_polls == N_POLLS));
    }
    vmc_join(t);
    while (VOLT_EPOLL_WAIT(volt_rt_fd(rt), &ev, 1, 0) == 1) {
        VMC_ASSERT(volt_rt_step(rt, 1) == 0);
        n_idle_steps++;
    }
    VMC_ASSERT(n_idle_steps <= 2);
    end_guest();
}
SCENARIO(guest_two_spawns, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    static item i, j;
    make_guest();
    int t = vmc_spawn(spawn, &i), u = vmc_spawn(spawn, &j);
    step_until(2, 0);
    vmc_join(t);
    vmc_join(u);
    end_guest();
}
// Two threads that carry it in turn: what one left in it the other finds.
static void step_once(void *arg) {
    int rc = volt_rt_step(rt, 1);
    (void)arg;
    VMC_ASSERT(rc >= 0 || rc == -EBUSY || rc == -ESHUTDOWN);
}
SCENARIO(guest_changes_hands) {
    static item i = { .n_yields = 1 };
    make_guest();
    spawn(&i);
    int t = vmc_spawn(step_once, NULL);
    step_once(NULL);
    vmc_join(t);
    step_until(1, 1);
    end_guest();
}
// All has ended, but the thread whose step ended it may still be inside.
static void step_to_the_end(void *unused) {
    (void)unused;
    while (volt_rt_step(rt, 0) != -ESHUTDOWN) wait_readable();
}
SCENARIO(guest_destroyed_beside_a_step) {
    vmc_must_happen("it is still inside");
    vmc_must_happen("it has left");
    make_guest();
    int t = vmc_spawn(step_to_the_end, NULL);
    volt__shutdown_begin(rt);
    vmc_assume(volt__is_stopped(rt));
    VMC_ASSERT(volt_shutdown(rt, 0) == 0);
    int rc = volt_destroy(rt);
    VMC_ASSERT(rc == 0 || rc == -EBUSY);
    vmc_reached(rc < 0 ? "it is still inside" : "it has left");
    vmc_join(t);
    if (rc < 0) VMC_ASSERT(volt_destroy(rt) == 0);
}
// A thread that shuts down while another one is inside takes over when that one leaves.
SCENARIO(guest_shut_down_beside_a_step) {
    static item i;
    make_guest();
    spawn(&i);
    int t = vmc_spawn(step_once, NULL);
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0);
    VMC_ASSERT(ran() == 1);
    vmc_join(t);
    end_guest();
}
// The application asks for the time of its next step, and waits for the descriptor if there is
// none, while another thread shuts down: it gets to know the end.
static void ask_to_the_end(void *unused) {
    struct epoll_event ev;
    (void)unused;
    for (int rc = 0; rc != -ESHUTDOWN;) {
        volt_time at = volt_rt_deadline(rt);
        VMC_ASSERT(at == 0 || at == VOLT_NEVER);
        // 0 if the other thread has taken the event
        if (at == VOLT_NEVER) VMC_ASSERT(VOLT_EPOLL_WAIT(volt_rt_fd(rt), &ev, 1, -1) >= 0);
        rc = volt_rt_step(rt, 0);
        vmc_assume(rc != -EBUSY); // the other thread is about to leave
    }
}
SCENARIO(guest_asked_beside_a_shutdown, .class = VMC_BOUNDED, .preemptions = 2) {
    static item i;
    make_guest();
    rt->cfg.guest_is_asked = 1;
    spawn(&i);
    int t = vmc_spawn(ask_to_the_end, NULL);
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0);
    vmc_join(t);
    VMC_ASSERT(volt_destroy(rt) == 0);
}
