// SPDX-License-Identifier: MIT OR 0BSD
// Scheduler rows by GNU Pth: tasks with stacks of their own (64 KiB, its default) on one thread,
// which its scheduler, itself on such a stack, passes on. The root is its main task.
//
//   sched [ROW...] [--reps N]        default: all rows, 9 repetitions
//
//   S1        detached empty tasks, 200 at a time; the root yields until these have run
//   S6        each task spawns the next, 1000 deep; the last one wakes the root
//   S8        200 tasks yield 1000 times each
//   S9a S9c   1 and 200 pairs of tasks, two channels of capacity 1 each, which Pth lacks: a place
//             for a number, with a mutex and two conditions
//
// At each switch the scheduler checks every waiting task for readiness, so S9c is long.
// For the columns see ../../rows/bench.h.
#include "../peer.h"
#include <pth.h>

enum { S1_TASKS = 200, S6_DEPTH = 1000, S8_TASKS = 200, YIELDS = 1000, PAIRS_MAX = 200 };
enum { THOUSAND = 1000, FIVE = 5, MILLION = 1000000, TRIPS = 200000 };

static pth_attr_t detached;

static void start(void) {
    if (!detached && !pth_init()) bench_die("Pth cannot be started");
    if (!detached) detached = pth_attr_new();
    pth_attr_set(detached, PTH_ATTR_JOINABLE, FALSE);
}

static void spawn(void *(*task)(void *), void *arg) {
    if (!pth_spawn(detached, task, arg)) bench_die("no memory");
}

// ---- the root waits for the last one of n

static struct latch {
    pth_mutex_t lock;
    pth_cond_t opened;
    uint32_t left;
} latch = { PTH_MUTEX_INIT, PTH_COND_INIT, 0 };

static void latch_hit(void) {
    if (--latch.left == 0) pth_cond_notify(&latch.opened, FALSE);
}

static void latch_wait(void) {
    pth_mutex_acquire(&latch.lock, FALSE, NULL);
    while (latch.left > 0) pth_cond_await(&latch.opened, &latch.lock, NULL);
    pth_mutex_release(&latch.lock);
}

// ---- S1

static void *empty_run(void *arg) {
    peer_done++;
    return arg;
}

static void s1_run(void) {
    for (int i = 0; i < MILLION / S1_TASKS; i++) {
        const uint64_t target = peer_done + S1_TASKS;
        for (int k = 0; k < S1_TASKS; k++) spawn(empty_run, NULL);
        while (peer_done < target) pth_yield(NULL);
    }
}

// ---- S6

static void *link_run(void *arg) {
    const uintptr_t deeper = (uintptr_t)arg;
    peer_done++;
    if (deeper > 0) spawn(link_run, (void *)(deeper - 1));
    else latch_hit();
    return NULL;
}

static void s6_run(void) {
    for (int i = 0; i < THOUSAND; i++) {
        latch.left = 1;
        spawn(link_run, (void *)(uintptr_t)(S6_DEPTH - 1));
        latch_wait();
    }
}

// ---- S8

static void *yielder_run(void *arg) {
    uint64_t i = 0;
    for (; i < YIELDS; i++) pth_yield(NULL);
    peer_done += i;
    latch_hit();
    return arg;
}

static void s8_run(void) {
    for (int i = 0; i < FIVE; i++) {
        latch.left = S8_TASKS;
        for (int k = 0; k < S8_TASKS; k++) spawn(yielder_run, NULL);
        latch_wait();
    }
}

// ---- S9

typedef struct channel {
    pth_mutex_t lock;
    pth_cond_t filled, emptied;
    uint64_t value;
    int is_full;
} channel;

static void channel_send(channel *c, uint64_t value) {
    pth_mutex_acquire(&c->lock, FALSE, NULL);
    while (c->is_full) pth_cond_await(&c->emptied, &c->lock, NULL);
    c->value = value;
    c->is_full = 1;
    pth_mutex_release(&c->lock);
    pth_cond_notify(&c->filled, FALSE);
}

static uint64_t channel_receive(channel *c) {
    pth_mutex_acquire(&c->lock, FALSE, NULL);
    while (!c->is_full) pth_cond_await(&c->filled, &c->lock, NULL);
    const uint64_t value = c->value;
    c->is_full = 0;
    pth_mutex_release(&c->lock);
    pth_cond_notify(&c->emptied, FALSE);
    return value;
}

static struct pair {
    channel there, back;
    uint64_t trips;
} pairs[PAIRS_MAX];

static void *ping_run(void *arg) {
    struct pair *p = arg;
    for (uint64_t i = 0; i < p->trips; i++) {
        channel_send(&p->there, i);
        if (channel_receive(&p->back) != i + 1) bench_die("a wrong answer");
        peer_done++;
    }
    latch_hit();
    return NULL;
}

static void *pong_run(void *arg) {
    struct pair *p = arg;
    for (uint64_t i = 0; i < p->trips; i++)
        channel_send(&p->back, channel_receive(&p->there) + 1);
    latch_hit();
    return NULL;
}

static void channel_init(channel *c) {
    pth_mutex_init(&c->lock);
    pth_cond_init(&c->filled);
    pth_cond_init(&c->emptied);
}

static void meet(uint32_t n) {
    latch.left = 2 * n;
    for (uint32_t i = 0; i < n; i++) {
        pairs[i].trips = TRIPS / n;
        channel_init(&pairs[i].there);
        channel_init(&pairs[i].back);
        spawn(pong_run, &pairs[i]);
        spawn(ping_run, &pairs[i]);
    }
    latch_wait();
}
static void s9a_run(void) { meet(1); }
static void s9c_run(void) { meet(PAIRS_MAX); }

// ---- main

static const row rows[] = {
    { "S1", "spawn, 200 at a time", MILLION, s1_run, start, NULL },
    { "S6", "chained spawn, depth 1000", THOUSAND * S6_DEPTH, s6_run, start, NULL },
    { "S8", "yield, 200 tasks", FIVE * S8_TASKS * YIELDS, s8_run, start, NULL },
    { "S9a", "round trip, one pair: mutex and conditions", TRIPS, s9a_run, start, NULL },
    { "S9c", "round trip, 200 pairs: mutex and conditions", TRIPS, s9c_run, start, NULL },
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
