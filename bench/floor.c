// SPDX-License-Identifier: MIT OR 0BSD
// Floors: the same operations as in sched.c and timer.c by the least code that can do them, on one
// thread and without volt.h. A row of volt.h is compared with the floor of the same name.
//
//   floor [ROW...] [--reps N]
//
//   S1   spawn, run and free an empty task: free list, ring of pointers, indirect call
//   S2   the same with 10,000 tasks queued at a time
//   S6   a task spawns the next one through a one-entry slot
//   S7   a task spawns another, waits, is queued again by the other, and ends
//   S8   200 tasks take turns
//   T1a  one indirect call                    T1b  insert into and remove from a timer wheel
//   T1c  insert, one trip through the ring, remove
// "+cas": tasks are taken by compare-and-swap, as a queue that others may steal from needs.
// "+rmw": besides, two read-modify-writes per poll on the task's state word, as wake-ups from other
// threads need. "+clock": the deadline is computed from the clock. For the figures see bench.h.
#define _GNU_SOURCE 1
#include "bench.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

enum { PLAIN = 0, CAS = 1, RMW = 2, CLOCK = 4 }; // how it is done: constant after inlining

// ---- a scheduler without threads

typedef enum verdict { DONE, AGAIN, WAITING } verdict;
typedef struct task {
    uint64_t state; // QUEUED, RUNNING
    verdict (*poll)(struct task *);
    struct task *next;   // in the free list
    struct task *parent; // S7
    uint64_t left;       // S6, S8: times to go on; S7: what the child handed over
    uint64_t body[11];   // 128 bytes in all, like a small task of volt.h
} task;
enum { QUEUED = 1, RUNNING = 2, RING = 16384, TASKS = 16384 };

static task slab[TASKS];
static task *free_list, *slot;
static task *ring[RING];
static uint32_t head, tail, mask = 255;
static uint64_t tally; // operations that were really done

static void reset(uint32_t ring_size) {
    free_list = NULL;
    for (size_t i = TASKS; i-- > 0;) slab[i].next = free_list, free_list = &slab[i];
    head = tail = 0;
    mask = ring_size - 1;
    tally = 0;
}

INLINE task *task_new(verdict (*poll)(task *)) {
    task *t = free_list;
    free_list = t->next;
    __atomic_store_n(&t->state, QUEUED, __ATOMIC_RELAXED);
    t->poll = poll;
    return t;
}

INLINE void push(task *t) {
    ring[tail & mask] = t;
    __atomic_store_n(&tail, tail + 1, __ATOMIC_RELEASE);
}

INLINE task *pop(int how) {
    uint32_t h = __atomic_load_n(&head, __ATOMIC_RELAXED);
    if (!(how & CAS)) {
        if (h == tail) return NULL;
        __atomic_store_n(&head, h + 1, __ATOMIC_RELEASE);
        return ring[h & mask];
    }
    while (h != tail) {
        task *t = ring[h & mask];
        if (__atomic_compare_exchange_n(&head, &h, h + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return t;
    }
    return NULL;
}

INLINE void state_set(task *t, uint64_t state, int how) {
    if (how & RMW)
        (void)__atomic_exchange_n(&t->state, state, __ATOMIC_ACQ_REL);
    else
        __atomic_store_n(&t->state, state, __ATOMIC_RELAXED);
}

INLINE void run(task *t, int how) {
    state_set(t, RUNNING, how);
    const verdict v = t->poll(t);
    state_set(t, v == AGAIN ? QUEUED : 0, how);
    if (v == AGAIN) push(t);
    if (v == DONE) t->next = free_list, free_list = t;
}

INLINE void drain(int how) {
    for (task *t = pop(how); t; t = pop(how)) run(t, how);
}

// ---- tasks

NOINLINE verdict poll_empty(task *t) {
    (void)t;
    tally++;
    return DONE;
}

NOINLINE verdict poll_link(task *t) {
    tally++;
    if (t->left == 0) return DONE;
    task *child = task_new(poll_link);
    child->left = t->left - 1;
    slot = child;
    return DONE;
}

NOINLINE verdict poll_pong(task *t) {
    t->parent->left = 1;
    push(t->parent);
    return DONE;
}

NOINLINE verdict poll_ping(task *t) {
    if (t->left) {
        tally += t->left;
        return DONE;
    }
    task *child = task_new(poll_pong);
    child->parent = t;
    push(child);
    return WAITING;
}

NOINLINE verdict poll_yield(task *t) {
    if (t->left-- == 0) return DONE;
    tally++;
    return AGAIN;
}

// ---- rows: each does its operations once

INLINE void spawn_batches(int batches, int tasks, int how) {
    for (int i = 0; i < batches; i++) {
        for (int k = 0; k < tasks; k++) push(task_new(poll_empty));
        drain(how);
    }
}

INLINE void chains(int how) {
    for (int i = 0; i < 1000; i++) {
        slot = task_new(poll_link);
        slot->left = 999;
        for (;;) {
            task *t = how & CAS ? __atomic_exchange_n(&slot, NULL, __ATOMIC_ACQ_REL) : slot;
            slot = NULL;
            if (!t) break;
            run(t, how);
        }
    }
}

INLINE void ping_pong(int how) {
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 1000; k++) {
            task *t = task_new(poll_ping);
            t->left = 0;
            push(t);
        }
        drain(how);
    }
}

INLINE void yields(int how) {
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 200; k++) {
            task *t = task_new(poll_yield);
            t->left = 1000;
            push(t);
        }
        drain(how);
    }
}

static void s1(void) { spawn_batches(5000, 200, PLAIN); }
static void s1_cas(void) { spawn_batches(5000, 200, CAS); }
static void s1_rmw(void) { spawn_batches(5000, 200, CAS | RMW); }
static void s2(void) { spawn_batches(100, 10000, PLAIN); }
static void s2_rmw(void) { spawn_batches(100, 10000, CAS | RMW); }
static void s6(void) { chains(PLAIN); }
static void s6_rmw(void) { chains(CAS | RMW); }
static void s7(void) { ping_pong(PLAIN); }
static void s7_rmw(void) { ping_pong(CAS | RMW); }
static void s8(void) { yields(PLAIN); }
static void s8_cas(void) { yields(CAS); }
static void s8_rmw(void) { yields(CAS | RMW); }

// ---- timers: 6 levels of 64 slots; the highest bit that differs from `now` gives the level

typedef struct timer {
    struct timer *next, **link; // link: what points to this timer
    uint64_t tick;
} timer;

static struct {
    uint64_t now, occupied[6]; // a bit may be set for an empty slot, never clear for a full one
    timer *slots[6][64];
} wheel;

INLINE void timer_insert(timer *t, uint64_t tick) {
    const uint64_t differs = (wheel.now ^ tick) | 63;
    const unsigned level = (63u - (unsigned)__builtin_clzll(differs)) / 6;
    const unsigned at = (unsigned)(tick >> (6 * level)) & 63;
    timer **list = &wheel.slots[level][at];
    t->tick = tick;
    t->next = *list;
    t->link = list;
    if (t->next) t->next->link = &t->next;
    *list = t;
    wheel.occupied[level] |= (uint64_t)1 << at;
}

INLINE void timer_remove(timer *t) {
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
}

enum { TIMER_OPS = 1000000 };

static void t1a(void) {
    verdict (*volatile poll)(task *) = poll_empty;
    for (int i = 0; i < TIMER_OPS; i++) poll(&slab[0]);
}

INLINE void arm_and_disarm(int how) {
    static timer t;
    for (uint64_t i = 0; i < TIMER_OPS; i++) {
        const uint64_t now = how & CLOCK ? (uint64_t)bench_now() / 1000000 % 64 : i % 64;
        timer_insert(&t, wheel.now + 1000 + now);
        __asm__ volatile("" ::: "memory"); // the timer is really in the wheel
        timer_remove(&t);
        tally++;
    }
}
static void t1b(void) { arm_and_disarm(PLAIN); }
static void t1b_clock(void) { arm_and_disarm(CLOCK); }

static void t1c(void) {
    static timer t;
    task *queued = task_new(poll_empty);
    for (uint64_t i = 0; queued && i < TIMER_OPS; i++) {
        timer_insert(&t, wheel.now + 1000 + i % 64);
        queued->poll(queued);
        push(queued);
        queued = pop(PLAIN);
        timer_remove(&t);
    }
}

// ---- main

static const struct row {
    const char *id;
    uint32_t ring;
    uint64_t ops;
    void (*run)(void);
    const char *what;
} rows[] = {
    { "S1", 256, 1000000, s1, "spawn, run, free; 200 at a time" },
    { "S1+cas", 256, 1000000, s1_cas, "  taken by compare-and-swap" },
    { "S1+rmw", 256, 1000000, s1_rmw, "  and two RMW on the state word" },
    { "S2", RING, 1000000, s2, "spawn, run, free; 10,000 at a time" },
    { "S2+rmw", RING, 1000000, s2_rmw, "  compare-and-swap, two RMW" },
    { "S6", 256, 1000000, s6, "chained spawn through a slot" },
    { "S6+rmw", 256, 1000000, s6_rmw, "  exchange on the slot, two RMW" },
    { "S7", 2048, 100000, s7, "ping-pong: two spawns, one hand-over" },
    { "S7+rmw", 2048, 100000, s7_rmw, "  compare-and-swap, two RMW per poll" },
    { "S8", 256, 1000000, s8, "yield, 200 tasks" },
    { "S8+cas", 256, 1000000, s8_cas, "  taken by compare-and-swap" },
    { "S8+rmw", 256, 1000000, s8_rmw, "  and two RMW on the state word" },
    { "T1a", 256, TIMER_OPS, t1a, "one indirect call" },
    { "T1b", 256, TIMER_OPS, t1b, "timer wheel: insert, remove" },
    { "T1b+clock", 256, TIMER_OPS, t1b_clock, "  and one clock_gettime" },
    { "T1c", 256, TIMER_OPS, t1c, "timer wheel: insert, queue, remove" },
};

static void measure(const struct row *r, int reps) {
    bench_row figures = { .id = r->id, .what = r->what, .workers = 1, .ops = r->ops };
    for (int i = -1; i < reps; i++) { // the first one warms up
        reset(r->ring);
        bench_start(&figures);
        r->run();
        if (i >= 0) bench_stop(&figures);
        if (tally != r->ops) bench_die("%s: %" PRIu64 " operations were done", r->id, tally);
    }
    bench_print(&figures);
}

int main(int argc, char **argv) {
    double reps = 15;
    const bench_option options[] = { { "--reps", &reps, 1, BENCH_REPS_MAX } };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    int measured = 0;
    bench_print_header();
    for (size_t i = 0; i < BENCH_COUNT(rows); i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        measure(&rows[i], (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}
