// SPDX-License-Identifier: MIT OR 0BSD
// The simulated machine: threads as fibers, the virtual clock, the seeded schedule, faults,
// failures. Part of sim.h; read it before kernel.h. One OS thread runs all, so memory is
// sequentially consistent here: the model checker covers weak memory.
//
// A *point* is a place where the running thread may lose the processor: each call through the seam
// and, in a fine run, each atomic operation. The seed decides at each point whether to switch. The
// number of points until the next switch is drawn in advance (sim_left), so that a point costs a
// decrement.
#ifndef VOLT_SIM_MACHINE_H
#define VOLT_SIM_MACHINE_H

#include "fiber.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIM_FN static __attribute__((unused))
#define SIM_NEVER INT64_MAX
#define SIM_US(n_) ((int64_t)(n_)*1000)
#define SIM_MS(n_) ((int64_t)(n_)*1000000)
#define SIM_S(n_) ((int64_t)(n_)*1000000000)

enum {
    SIM_THREADS = 128,
    SIM_STACK = 256 * 1024,
    SIM_STRIDE = SIM_STACK + 64 * 1024, // volt picks a heap by bits 16 and 17 of a stack address
    SIM_AHEAD = 65536,
    SIM_UNIT = 64 * 1024, // memory is handed out in these
    SIM_UNITS = 2048,
    SIM_MAX_TRACE = 200000 // lines
};

// ---- faults: each class has a rate per run, half of them are off

#define SIM_FAULTS(X_)                                                                             \
    X_(EINTR, "interrupted calls")                                                                 \
    X_(AGAIN, "EAGAIN although ready")                                                             \
    X_(SHORT, "short reads and writes")                                                            \
    X_(NOMEM, "out of memory")                                                                     \
    X_(NOFILE, "out of descriptors")                                                               \
    X_(THREAD, "threads not created")                                                              \
    X_(FUTEX, "futex waits that return for nothing")                                               \
    X_(DELAY, "threads woken late")                                                                \
    X_(PHANTOM, "epoll events for nothing")                                                        \
    X_(LATENCY, "network delays")                                                                  \
    X_(RESET, "connections reset")                                                                 \
    X_(ABORTED, "connections aborted before accept")                                               \
    X_(CONTROL, "epoll_ctl out of memory")                                                         \
    X_(JITTER, "clock read late")                                                                  \
    X_(LEAP, "clock leaps, 1 ms to 400 days")                                                      \
    X_(DISK, "files that fail")                                                                    \
    X_(NAMES, "names that are not found")                                                          \
    X_(DROP, "datagrams lost")                                                                     \
    X_(TWICE, "datagrams that arrive twice")                                                       \
    X_(LATE, "datagrams overtaken by others")
enum {
#define SIM_FAULT_ENUM(name_, text_) SIM_##name_,
    SIM_FAULTS(SIM_FAULT_ENUM) SIM_N_FAULTS
};
static const char *const sim_fault_names[] = {
#define SIM_FAULT_NAME(name_, text_) text_,
    SIM_FAULTS(SIM_FAULT_NAME)};

// ---- input and output of a run

#define SIM_POLICIES(X_) X_(WALK) X_(ROUND) X_(PCT) X_(STARVE) X_(SLOW)
enum {
#define SIM_POLICY_ENUM(name_) SIM_##name_,
    SIM_POLICIES(SIM_POLICY_ENUM) SIM_N_POLICIES
};

typedef struct sim_options { // zero: all is drawn from the seed
    uint32_t faults_off;     // bit per class: never
    int is_calm;             // no faults at all
    int is_fair;             // only policies under which each thread gets its turns
    int is_steady;           // the clock starts early and never leaps
    uint64_t most_points;    // 0: 30 million; beyond it the run has failed
    uint64_t calm_after;     // points until faults end and the schedule turns fair; 0: drawn
    uint64_t trace_from;     // print calls and switches from this point on
    int is_traced;
} sim_options;

typedef struct sim_report {
    char failure[512]; // empty: none
    uint64_t hash;     // of all decisions and all results of calls
    uint64_t points, switches, calls;
    uint64_t faults[SIM_N_FAULTS];
    int64_t virtual_ns;
    int policy, is_fine;
} sim_report;

// ---- state

typedef struct sim_thread {
    fiber_context context;
    char *stack;
    int id, state, error, is_timed_out, run_at;
    void *tls;       // the worker that it carries
    const char *why; // the reason of its sleep
    const void *on;
    uint32_t sleep;    // counts sleeps: a timer of an earlier one is void
    uint64_t priority; // PCT
    void *(*fn)(void *);
    void *arg;
} sim_thread;
enum { SIM_FREE, SIM_READY, SIM_ASLEEP, SIM_WAKING, SIM_ENDED };

typedef void sim_action(void *object, uint64_t arg);
typedef struct sim_event {
    int64_t at;
    uint64_t order; // of two at one time the older comes first
    sim_action *act;
    void *object;
    uint64_t arg;
} sim_event;

static struct sim__machine {
    sim_options opt;
    sim_report report;
    uint64_t random;
    int64_t now, started_at, step_ns; // step: the cost of a point
    int64_t drift;                    // how far steps have moved the clock
    uint64_t drawn;                   // points drawn in all; those passed: drawn - sim_left
    uint64_t charged, calm_at;
    int is_calm, is_running, is_failed, n_traced;
    void (*on_calm)(void);  // the kernel's part of it
    void (*on_quiet)(void); // all threads sleep: the program's checks at that time
    // schedule
    int policy, victim;
    uint32_t mean;                // points between two switches, on average
    uint64_t lowest, next_change; // PCT: below all priorities so far; point of the next change
    int changes;                  // PCT: left
    fiber_context main;
    sim_thread *current, *run[SIM_THREADS], threads[SIM_THREADS];
    int n_run, n_threads;
    // clock
    sim_event events[SIM_AHEAD];
    int n_events, crowded; // crowded: enough to check for void ones
    uint64_t n_ordered;
    // faults, in 1 / 65536
    uint32_t rate[SIM_N_FAULTS];
    // memory
    char *memory, *stacks;
    int unit_len[SIM_UNITS]; // at the first unit of a block: its units
    int n_units;             // handed out so far
    int free_one[SIM_UNITS], n_free_one, n_live;
} sim;
static int64_t sim_left = INT64_MAX; // points until the next decision
static int sim_fine;                 // atomics are points too

// ---- random numbers

static inline uint64_t sim_mix(uint64_t x) { // splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static inline uint64_t sim_next(uint64_t *state) { return sim_mix(*state += 0x9e3779b97f4a7c15u); }
static inline uint64_t sim_random(void) { return sim_next(&sim.random); }
static inline uint32_t sim_below(uint32_t n) {
    return (uint32_t)(((sim_random() >> 32) * n) >> 32);
}
static inline void sim__hash(uint64_t x) {
    uint64_t h = (sim.report.hash ^ x) * 0x9e3779b97f4a7c15u;
    sim.report.hash = h ^ (h >> 29);
}
static inline uint64_t sim_points(void) { return sim.drawn - (uint64_t)sim_left; }

// ---- failures and traces

__attribute__((format(printf, 1, 2))) SIM_FN void sim__trace(const char *format, ...) {
    if (!sim.opt.is_traced || sim_points() < sim.opt.trace_from) return;
    if (sim.n_traced++ >= SIM_MAX_TRACE) return;
    va_list ap;
    printf("%12" PRIu64 " %15.6f ms  %2d  ", sim_points(), (double)(sim.now - sim.started_at) / 1e6,
           sim.current ? sim.current->id : -1);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
}
// Ends the run. Does not return inside one.
__attribute__((format(printf, 1, 2))) SIM_FN void sim_fail(const char *format, ...) {
    va_list ap;
    if (!sim.is_failed) {
        va_start(ap, format);
        vsnprintf(sim.report.failure, sizeof sim.report.failure, format, ap);
        va_end(ap);
        for (char *c = sim.report.failure; *c; c++)
            if (*c == '\n') *c = ' ';
    }
    sim.is_failed = 1;
    sim__trace("failure: %s", sim.report.failure);
    if (!sim.is_running) return;
    fiber_context lost;
    fiber_switch(&lost, &sim.main);
}
#define SIM_CHECK(c_) ((c_) ? (void)0 : sim_fail("%s:%d: SIM_CHECK(%s)", __FILE__, __LINE__, #c_))

SIM_FN int sim_fault(int class_) {
    uint32_t rate = sim.rate[class_];
    if (rate == 0 || (sim_random() & 0xffff) >= rate) return 0;
    sim.report.faults[class_]++;
    return 1;
}

// ---- the clock: a heap of events, the next one first

static inline int sim__is_before(const sim_event *a, const sim_event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}
static void sim__push_event(sim_event e) {
    int i = sim.n_events++;
    for (; i > 0 && sim__is_before(&e, &sim.events[(i - 1) / 2]); i = (i - 1) / 2)
        sim.events[i] = sim.events[(i - 1) / 2];
    sim.events[i] = e;
}
static sim_event sim__pop_event(void) {
    sim_event first = sim.events[0], last = sim.events[--sim.n_events];
    int i = 0;
    for (int c; (c = 2 * i + 1) < sim.n_events; i = c) {
        if (c + 1 < sim.n_events && sim__is_before(&sim.events[c + 1], &sim.events[c])) c++;
        if (!sim__is_before(&sim.events[c], &last)) break;
        sim.events[i] = sim.events[c];
    }
    sim.events[i] = last;
    return first;
}
static void sim__time_out(void *object, uint64_t sleep);
// Time limits of sleeps that have ended otherwise would pile up.
static void sim__drop_void_events(void) {
    int n = sim.n_events;
    sim.n_events = 0;
    for (int i = 0; i < n; i++) {
        sim_event e = sim.events[i];
        const sim_thread *t = e.object;
        if (e.act == sim__time_out && t->sleep != (uint32_t)e.arg) continue;
        sim__push_event(e); // behind the entries already read: the heap grows from the front
    }
    sim.crowded = sim.n_events * 2 > 256 ? sim.n_events * 2 : 256;
}
SIM_FN void sim__at(int64_t when, sim_action *act, void *object, uint64_t arg) {
    sim_event e = {when, sim.n_ordered++, act, object, arg};
    if (sim.n_events >= sim.crowded) sim__drop_void_events();
    if (sim.n_events < SIM_AHEAD)
        sim__push_event(e);
    else
        sim_fail("simulation: more than %d events ahead", SIM_AHEAD);
}
static void sim__fire_due(void) {
    while (sim.n_events > 0 && sim.events[0].at <= sim.now) {
        sim_event e = sim__pop_event();
        e.act(e.object, e.arg);
    }
}
static int64_t sim__leap(void) {
    static const int64_t leaps[] = {SIM_MS(1),      SIM_MS(70),     SIM_S(5),
                                    SIM_S(3600),    SIM_S(1036800), SIM_S(2142720),
                                    SIM_S(4294080), SIM_S(34560000)};
    uint32_t n = sizeof leaps / sizeof leaps[0];
#ifdef VOLT_TEST_SMALL // its wheel spans 4 s: 400 days are ten million turns of it
    n = 4;
#endif
    return leaps[sim_below(n)];
}
static void sim__print_sleepers(char *out, size_t cap) {
    size_t at = 0;
    for (int i = 0; i < sim.n_threads && at < cap; i++) {
        const sim_thread *t = &sim.threads[i];
        if (t->state != SIM_ASLEEP) continue;
        int n = snprintf(out + at, cap - at, "%s%d in %s", at ? ", " : "", t->id, t->why);
        at += n > 0 ? (size_t)n : 0;
    }
}
// The checks read with volt's own functions, whose atomics must not be points here.
static void sim__look_quiet(void) {
    int fine = sim_fine;
    if (!sim.on_quiet) return;
    sim_fine = 0;
    sim.on_quiet();
    sim_fine = fine;
}
// Every thread sleeps: time advances to the next event. None: nothing will ever happen again.
static void sim__advance(void) {
    if (sim.n_events == 0) {
        char who[300] = "";
        sim__print_sleepers(who, sizeof who);
        sim_fail("lost wake-up: all threads sleep and nothing is to come: %s", who);
    }
    sim__look_quiet();
    if (sim.events[0].at > sim.now) sim.now = sim.events[0].at;
    if (sim_fault(SIM_JITTER)) sim.now += sim_below(3000000);
    if (sim.now < INT64_MAX / 4 && sim_fault(SIM_LEAP)) sim.now += sim__leap();
    sim__fire_due();
}

// ---- the schedule

static void sim__make_ready(sim_thread *t) {
    t->state = SIM_READY;
    t->run_at = sim.n_run;
    sim.run[sim.n_run++] = t;
    // under PCT a more important thread runs at once
    if (sim.policy == SIM_PCT && sim.current && t->priority > sim.current->priority &&
        sim_left > 1) {
        sim.drawn -= (uint64_t)(sim_left - 1);
        sim_left = 1;
    }
}
static void sim__unready(sim_thread *t) {
    sim_thread *last = sim.run[--sim.n_run];
    sim.run[t->run_at] = last;
    last->run_at = t->run_at;
}
static int64_t sim__draw(const sim_thread *t) {
    switch (sim.policy) {
    case SIM_ROUND: return sim.mean;
    case SIM_PCT:
        return sim.next_change > sim.charged ? (int64_t)(sim.next_change - sim.charged) : 1;
    case SIM_SLOW:
        if (t->id == sim.victim) return 1;
        break;
    default: break;
    }
    return 1 + sim_below(sim.mean * 2);
}
static sim_thread *sim__most_important(void) {
    sim_thread *best = sim.run[0];
    for (int i = 1; i < sim.n_run; i++)
        if (sim.run[i]->priority > best->priority) best = sim.run[i];
    return best;
}
// PCT: the most important thread runs, and at a few drawn points it becomes the least important.
// Later it still does so at intervals, so that a spin ends.
static void sim__change_priority(void) {
    sim.current->priority = sim.lowest--;
    sim.next_change = sim.charged + (sim.changes > 0 ? 1 + sim_below(4000) : 20000);
    sim.changes -= sim.changes > 0;
}
// The victim of a run gets a turn only now and then, unless it is alone.
static sim_thread *sim__pick_any(uint32_t every) {
    sim_thread *t = sim.run[sim_below((uint32_t)sim.n_run)];
    while (t->id == sim.victim && sim.n_run > 1 && sim_below(every) != 0)
        t = sim.run[sim_below((uint32_t)sim.n_run)];
    return t;
}
static sim_thread *sim__pick(void) {
    if (sim.n_run == 1) return sim.run[0];
    switch (sim.policy) {
    case SIM_ROUND: {
        int at = sim.current->state == SIM_READY ? sim.current->run_at : 0;
        return sim.run[(at + 1) % sim.n_run];
    }
    case SIM_PCT:
        if (sim.charged >= sim.next_change) sim__change_priority();
        return sim__most_important();
    case SIM_STARVE: return sim__pick_any(1000);
    case SIM_SLOW: return sim__pick_any(8);
    default: return sim.run[sim_below((uint32_t)sim.n_run)];
    }
}
static void sim__calm_down(void) {
    sim.is_calm = 1;
    if (sim.on_calm) sim.on_calm();
    memset(sim.rate, 0, sizeof sim.rate);
    sim.policy = SIM_WALK;
    sim__trace("faults end");
}
// Charges the time since the last decision, and checks the limits of the run.
static void sim__charge(void) {
    uint64_t points = sim_points();
    int64_t passed = (int64_t)(points - sim.charged) * sim.step_ns;
    sim.now += passed;
    sim.drift += passed;
    sim.charged = points;
    if (!sim.is_calm && points > sim.calm_at) sim__calm_down();
    if (points > sim.opt.most_points) sim_fail("no end after %" PRIu64 " decisions", points);
}
static void sim__run(sim_thread *t) {
    sim_thread *from = sim.current;
    sim.drawn -= (uint64_t)sim_left; // of the old draw: not passed
    sim_left = sim__draw(t);
    sim.drawn += (uint64_t)sim_left;
    if (t == from) return;
    sim.report.switches++;
    sim__hash(sim.charged << 8 | (uint64_t)t->id);
    from->error = errno;
    sim.current = t;
    sim__trace("runs");
    fiber_switch(&from->context, &t->context);
    errno = sim.current->error;
}
// The running thread has been preempted, or has gone to sleep.
static __attribute__((noinline)) void sim__decide(void) {
    sim__charge();
    sim__fire_due();
    while (sim.n_run == 0) sim__advance();
    sim__run(sim__pick());
}
static inline void sim_point(void) {
    if (__builtin_expect(--sim_left <= 0, 0)) sim__decide();
}
static inline void sim_atomic_point(void) {
    if (sim_fine) sim_point();
}
// A thread that spins yields the processor: the thread it waits for may have less priority.
SIM_FN void sim_relax(void) {
    sim.now += 50;
    sim.drift += 50;
    sim.current->priority = sim.lowest--;
    sim__decide();
}

// ---- sleep and wake

static void sim__time_out(void *object, uint64_t sleep) {
    sim_thread *t = object;
    if (t->sleep != (uint32_t)sleep || t->state != SIM_ASLEEP) return;
    t->is_timed_out = 1;
    sim__make_ready(t);
}
static void sim__wake_late(void *object, uint64_t sleep) {
    sim_thread *t = object;
    if (t->sleep == (uint32_t)sleep && t->state == SIM_WAKING) sim__make_ready(t);
}
// 0: woken. 1: timed out.
static int sim__sleep(const char *why, const void *on, int64_t deadline) {
    sim_thread *t = sim.current;
    t->why = why;
    t->on = on;
    t->sleep++;
    t->is_timed_out = 0;
    t->state = SIM_ASLEEP;
    sim__unready(t);
    if (deadline != SIM_NEVER) sim__at(deadline, sim__time_out, t, t->sleep);
    sim__decide();
    t->why = NULL;
    t->on = NULL;
    return t->is_timed_out;
}
static void sim__wake(sim_thread *t) {
    if (t->state != SIM_ASLEEP) return;
    if (!sim_fault(SIM_DELAY)) {
        sim__make_ready(t);
        return;
    }
    t->state = SIM_WAKING;
    sim__at(sim.now + 1 + (int64_t)sim_below(1u << (10 + sim_below(13))), sim__wake_late, t,
            t->sleep);
}
// Wakes at most n threads that sleep on this; returns how many.
static int sim__wake_on(const void *on, int n) {
    int woken = 0, first = (int)sim_below((uint32_t)sim.n_threads);
    for (int i = 0; i < sim.n_threads && woken < n; i++) {
        sim_thread *t = &sim.threads[(first + i) % sim.n_threads];
        if (t->state != SIM_ASLEEP || t->on != on) continue;
        sim__wake(t);
        woken++;
    }
    return woken;
}

// ---- threads

static void sim__thread_main(void) {
    sim_thread *t = sim.current;
    t->fn(t->arg);
    t = sim.current; // the same value; need not be kept over fn
    t->state = SIM_ENDED;
    sim__unready(t);
    if (t->id == 0) {
        sim.is_running = 0;
        fiber_switch(&t->context, &sim.main);
    }
    sim__wake_on(t, 1);
    sim__decide();
}
static sim_thread *sim__thread_create(void *(*fn)(void *), void *arg) {
    int i = 0;
    while (i < sim.n_threads && sim.threads[i].state != SIM_FREE) i++;
    if (i == SIM_THREADS) return NULL;
    if (i == sim.n_threads) sim.n_threads++;
    sim_thread *t = &sim.threads[i];
    uint32_t sleep = t->sleep;
    memset(t, 0, sizeof *t);
    t->sleep = sleep + 1;
    t->id = i;
    t->stack = sim.stacks + (size_t)i * SIM_STRIDE;
    t->fn = fn;
    t->arg = arg;
    t->priority = (UINT64_C(1) << 40) + sim_below(1u << 30);
    fiber_init(&t->context, t->stack, SIM_STACK, sim__thread_main);
    sim__make_ready(t);
    return t;
}
static void sim__thread_join(sim_thread *t) {
    while (t->state != SIM_ENDED) sim__sleep("thread join", t, SIM_NEVER);
    t->state = SIM_FREE;
}

// ---- memory: whole units at aligned addresses, poisoned when given back

#ifdef __SANITIZE_ADDRESS__
#    include <sanitizer/asan_interface.h>
#    define SIM_POISON(p_, n_) __asan_poison_memory_region(p_, n_)
#    define SIM_UNPOISON(p_, n_) __asan_unpoison_memory_region(p_, n_)
#else
#    define SIM_POISON(p_, n_) ((void)0)
#    define SIM_UNPOISON(p_, n_) ((void)0)
#endif
static void *sim__alloc(size_t bytes) {
    int n = (int)((bytes + SIM_UNIT - 1) / SIM_UNIT), at;
    if (n == 1 && sim.n_free_one > 0) {
        at = sim.free_one[--sim.n_free_one];
    } else {
        if (sim.n_units + n > SIM_UNITS) return NULL;
        at = sim.n_units;
        sim.n_units += n;
    }
    sim.unit_len[at] = n;
    sim.n_live += n;
    SIM_UNPOISON(sim.memory + (size_t)at * SIM_UNIT, bytes);
    return sim.memory + (size_t)at * SIM_UNIT;
}
static void sim__free(void *p, size_t bytes) {
    size_t offset = (size_t)((char *)p - sim.memory);
    int at = (int)(offset / SIM_UNIT), n = (int)((bytes + SIM_UNIT - 1) / SIM_UNIT);
    if (offset % SIM_UNIT || at < 0 || at >= SIM_UNITS || sim.unit_len[at] != n) {
        sim_fail("munmap of what was not mapped");
        return;
    }
    memset(p, 0xdd, bytes);
    SIM_POISON(p, bytes);
    sim.unit_len[at] = 0;
    sim.n_live -= n;
    if (n == 1) sim.free_one[sim.n_free_one++] = at;
}
static void *sim__reserve(size_t bytes) {
    size_t align = 1 << 20;
    char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    return p + (align - (uintptr_t)p % align) % align;
}

// ---- a run

static void sim__draw_schedule(void) {
    static const uint32_t means[] = {2, 4, 8, 32, 128, 1000};
    static const int64_t steps[] = {1, 1, 1, 10, 100};
    sim.policy = (int)sim_below(2 * SIM_N_POLICIES); // half of the runs: a random walk
    if (sim.policy >= SIM_N_POLICIES) sim.policy = SIM_WALK;
    if (sim.opt.is_fair) sim.policy = sim.policy == SIM_ROUND ? SIM_ROUND : SIM_WALK;
    sim.mean = means[sim_below(6)];
    sim.victim = (int)sim_below(5);
    sim.step_ns = steps[sim_below(5)];
    sim_fine = sim_below(4) != 0;
    sim.lowest = UINT64_C(1) << 39;
    sim.changes = (int)sim_below(5);
    sim.next_change = 1 + sim_below(4000);
    sim.calm_at = sim.opt.calm_after ? sim.opt.calm_after : 2000u << sim_below(8);
}
static void sim__draw_faults(void) {
    static const int64_t starts[] = {SIM_S(1),       SIM_S(1),       SIM_S(1036790),
                                     SIM_S(2147482), SIM_S(4294966), INT64_C(1) << 48};
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        uint32_t rate = 65536u >> (2 + sim_below(8));
        if (i == SIM_LEAP || i == SIM_RESET) rate >>= 3;
        if (sim_below(2) || sim.opt.is_calm || (sim.opt.faults_off >> i & 1)) rate = 0;
        if (sim.opt.is_steady && (i == SIM_LEAP || i == SIM_JITTER)) rate = 0;
        sim.rate[i] = rate;
    }
    int start = (int)sim_below(6); // drawn in any case, so that options do not shift later draws
    sim.now = sim.started_at = starts[sim.opt.is_steady ? 0 : start];
}
static void sim__machine_reset(uint64_t seed, const sim_options *opt) {
    char *memory = sim.memory, *stacks = sim.stacks;
    if (memory) SIM_UNPOISON(memory, (size_t)sim.n_units * SIM_UNIT);
    memset(&sim, 0, sizeof sim);
    sim.memory = memory ? memory : sim__reserve((size_t)SIM_UNITS * SIM_UNIT);
    sim.stacks = stacks ? stacks : sim__reserve((size_t)SIM_THREADS * SIM_STRIDE);
    if (opt) sim.opt = *opt;
    if (sim.opt.most_points == 0) sim.opt.most_points = 30000000;
    sim.random = sim_mix(seed + 1);
    sim.report.hash = seed;
    sim.crowded = 256;
    sim__draw_schedule();
    sim__draw_faults();
    sim_left = sim.mean;
    sim.drawn = sim.mean;
}
static void sim__machine_run(void *(*fn)(void *), void *arg) {
    sim.current = sim__thread_create(fn, arg);
    sim.is_running = 1;
    fiber_switch(&sim.main, &sim.current->context);
    sim.is_running = 0;
    sim__charge();
    sim.report.points = sim_points();
    sim.report.virtual_ns = sim.now - sim.started_at;
    sim.report.policy = sim.policy;
    sim.report.is_fine = sim_fine;
    for (int i = 0; i < sim.n_threads && !sim.is_failed; i++)
        if (sim.threads[i].state != SIM_FREE && i > 0)
            sim_fail("thread %d left behind, %s", i,
                     sim.threads[i].why ? sim.threads[i].why : "running or never joined");
    if (sim.n_live > 0 && !sim.is_failed) sim_fail("%d blocks of memory not freed", sim.n_live);
    sim_left = INT64_MAX;
}

#endif // VOLT_SIM_MACHINE_H
