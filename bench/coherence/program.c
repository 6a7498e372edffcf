// SPDX-License-Identifier: MIT OR 0BSD
// A program of rows, -DPROGRAM='"../rows/chan.c"', for simulated processors (machine.h), and the
// names of the objects in the memory of its runtime.
#ifndef BENCH_COUNTED
#  define BENCH_COUNTED
#endif
#include "seam.h"
#include "../rows/counted.h"
#define VOLT_IMPLEMENTATION
#include "../../volt.h"

// In place of clocks: accesses are counted while a repetition is measured.
#define bench_start clock_start
#define bench_pause clock_pause
#define bench_resume clock_resume
#define bench_stop clock_stop
#define bench_print clock_print
#define bench_print_header clock_print_header
#define bench_now clock_now
#include "../rows/bench.h"
#undef bench_start
#undef bench_pause
#undef bench_resume
#undef bench_stop
#undef bench_print
#undef bench_print_header
#undef bench_now
#define bench_now coherence_now
static void bench_start(bench_row *r) { (void)r, coherence_begin(); }
static void bench_pause(bench_row *r) { (void)r; }
static void bench_resume(bench_row *r) { (void)r; }
static void bench_stop(bench_row *r) { coherence_end(r->id, r->workers, r->ops); }
static void bench_print(bench_row *r) { (void)r; }
static void bench_print_header(void) {}

// ---- threads that are not workers: processors, too

typedef struct program_gate {
    uint32_t n, n_there, turn;
} program_gate;
__attribute__((unused)) static int program_gate_init(program_gate *g, uint32_t n) {
    *g = (program_gate){ .n = n };
    return 0;
}
__attribute__((unused)) static void program_gate_wait(program_gate *g) {
    const uint32_t turn = __atomic_load_n(&g->turn, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&g->n_there, 1, __ATOMIC_ACQ_REL) < g->n) {
        while (__atomic_load_n(&g->turn, __ATOMIC_ACQUIRE) == turn)
            (void)coherence_futex_wait(&g->turn, turn, INT64_MAX);
        return;
    }
    g->n_there = 0;
    __atomic_store_n(&g->turn, turn + 1, __ATOMIC_RELEASE);
    coherence_futex_wake(&g->turn, INT32_MAX);
}
#include <pthread.h>
#include <sched.h>
#define pthread_create(thread_, attr_, fn_, arg_) coherence_thread_create(thread_, fn_, arg_)
#define pthread_join(thread_, result_) coherence_thread_join(thread_)
#define pthread_barrier_t program_gate
#define pthread_barrier_init(gate_, attr_, n_) program_gate_init(gate_, n_)
#define pthread_barrier_wait(gate_) program_gate_wait(gate_)
#define pthread_barrier_destroy(gate_) ((void)(gate_))
#define sched_yield() coherence_relax()

#ifndef PROGRAM
#  define PROGRAM "../rows/sched.c"
#endif
#define main bench_main
#include PROGRAM
#undef main

// ---- thread-local storage: one word of rows.h

// Not an access of a processor.
__attribute__((no_sanitize("thread"))) void program_switch(int from, int to) {
    static tally_cell *cells[PROCESSORS];
    if (from < 0) coherence_ignore(&tally_mine);
    else cells[from] = tally_mine;
    tally_mine = cells[to];
}

// ---- names

typedef struct field {
    size_t at;
    const char *name; // up to the next field
} field;
#define FIELD(type_, member_) { offsetof(type_, member_), #member_ }
static const field worker_fields[] = {
    { 0, "own" },
    FIELD(volt__worker, spawned),
    FIELD(volt__worker, ring.head),
    FIELD(volt__worker, ring.tail),
    FIELD(volt__worker, ring.slot),
    FIELD(volt__worker, lifo),
    FIELD(volt__worker, event_polls),
    FIELD(volt__worker, carrier_ticket),
    FIELD(volt__worker, is_blocked),
    FIELD(volt__worker, inbox),
    FIELD(volt__worker, event_polls_seen),
    FIELD(volt__worker, stats_lock),
    FIELD(volt__worker, reactor),
    FIELD(volt__worker, thread),
    FIELD(volt__worker, heap),
    FIELD(volt__worker, heap.remote),
    FIELD(volt__worker, wheel),
};
static const field rt_fields[] = {
    { 0, "config" },
    FIELD(volt_rt, started),
    FIELD(volt_rt, is_closed),
    FIELD(volt_rt, watchdog),
    FIELD(volt_rt, start_lock),
    FIELD(volt_rt, acks),
    { offsetof(volt_rt, pins) & ~(size_t)7, "pins" }, // a name is that of 8 bytes
    FIELD(volt_rt, n_placements),
    FIELD(volt_rt, n_blocked),
    FIELD(volt_rt, idle.searching),
    FIELD(volt_rt, idle.parked),
    FIELD(volt_rt, injector.lock),
    FIELD(volt_rt, injector.len),
    FIELD(volt_rt, injector.head),
    FIELD(volt_rt, slabs),
    FIELD(volt_rt, pool),
    FIELD(volt_rt, names_lock),
    FIELD(volt_rt, fds),
    FIELD(volt_rt, outside_heaps),
};
static const field task_fields[] = {
    FIELD(volt__task, word),      FIELD(volt__task, next),      FIELD(volt__task, u),
    FIELD(volt__task, join),      FIELD(volt__task, spawn_site), FIELD(volt__task, wait_site),
    FIELD(volt__task, wait),      FIELD(volt__task, spawn_ms),  { sizeof(volt__task), "state" },
};
#define NAME_OF(what_, fields_, at_) \
    snprintf(text, size, "%s.%s", what_, field_at(fields_, BENCH_COUNT(fields_), at_))

static const char *field_at(const field *fields, size_t n, size_t at) {
    size_t i = n - 1;
    while (i > 0 && fields[i].at > at) i--;
    return fields[i].name;
}
static int is_within(uintptr_t addr, const void *start, size_t size) {
    return addr - (uintptr_t)start < size;
}
static int slab_name(const volt_rt *rt, uintptr_t addr, char *text, size_t size) {
    for (const volt__slab *s = rt->slabs.first; s; s = s->all_next) {
        if (!is_within(addr, s, s->bytes)) continue;
        const size_t at = addr - (uintptr_t)s;
        if (at < VOLT__SLAB_HEAD) snprintf(text, size, "slab");
        else NAME_OF("task", task_fields, (at - VOLT__SLAB_HEAD) % s->slot_size);
        return 1;
    }
    return 0;
}
static int rt_name(const volt_rt *rt, uintptr_t addr, char *text, size_t size) {
    if (is_within(addr, rt, sizeof *rt)) {
        NAME_OF("rt", rt_fields, addr - (uintptr_t)rt);
        return 1;
    }
    for (uint32_t i = 0; i < rt->started; i++) {
        if (!is_within(addr, rt->workers[i], sizeof *rt->workers[i])) continue;
        NAME_OF("worker", worker_fields, addr - (uintptr_t)rt->workers[i]);
        return 1;
    }
    return slab_name(rt, addr, text, size);
}
int program_name(uintptr_t addr, char *text, size_t size) {
    extern char __executable_start, _end; // the linker's
    const volt__worker *w = VOLT_TLS_GET();
    const volt_rt *rt = w ? w->rt : NULL;
#ifdef BENCH_OUTSIDE_H
    rt = outside_rt;
#endif
    if (rt && rt_name(rt, addr, text, size)) return 1;
    if (is_within(addr, &__executable_start, (size_t)(&_end - &__executable_start))) {
        static_name(addr, text, size);
        return 0;
    }
    snprintf(text, size, "heap, stacks");
    return 1;
}
