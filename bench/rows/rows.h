// SPDX-License-Identifier: MIT OR 0BSD
// Measures a row of volt.h: its workload is an async function that a root task awaits, once to warm
// up and then once per repetition, so that start and end of the runtime do not count. Every
// operation is counted where it happens; a wrong sum ends the program. So does an allocation in a
// repetition with one worker: a row keeps the memory of its warm-up.
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench.h"
#include <errno.h>

// ---- tally: completed operations, summed over threads that share no cache line for it

enum { TALLY_CELLS = 1024, TALLY_LINE = 128 };
typedef struct tally_cell {
    _Alignas(TALLY_LINE) uint64_t n; // written by one thread only
} tally_cell;
static tally_cell tally_cells[TALLY_CELLS];
static uint32_t tally_used;
static _Thread_local tally_cell *tally_mine;

static __attribute__((noinline, cold)) void tally_register(void) {
    const uint32_t i = __atomic_fetch_add(&tally_used, 1, __ATOMIC_RELAXED);
    if (i >= TALLY_CELLS) bench_die("too many threads in one run: choose fewer rows");
    tally_mine = &tally_cells[i];
}

static inline void tally_add(uint64_t n) {
    if (!tally_mine) tally_register();
    __atomic_store_n(&tally_mine->n, tally_mine->n + n, __ATOMIC_RELEASE);
}

static inline uint64_t tally_sum(void) {
    uint32_t used = __atomic_load_n(&tally_used, __ATOMIC_RELAXED);
    uint64_t sum = 0;
    if (used > TALLY_CELLS) used = TALLY_CELLS;
    for (uint32_t i = 0; i < used; i++) sum += __atomic_load_n(&tally_cells[i].n, __ATOMIC_ACQUIRE);
    return sum;
}

// ---- batches: a workload that spawns n tasks, waits until the last has ended, and repeats

// Wakes the root at the last hit; replaces the channel of other runtimes' benchmarks.
static struct latch {
    uint32_t left;
    volt_waker root; // released by the last hit
} latch;

static inline void latch_hit(uint32_t n) {
    const volt_waker root = latch.root; // at 0 the latch may be set again
    if (__atomic_fetch_sub(&latch.left, n, __ATOMIC_ACQ_REL) != n) return;
    volt_wake(root);
    volt_waker_release(root);
}

static inline void latch_set(volt_cx *cx, uint32_t n) {
    latch.root = volt_waker_retain(cx);
    __atomic_store_n(&latch.left, n, __ATOMIC_RELEASE);
}

static inline volt_poll latch_wait(void) {
    return __atomic_load_n(&latch.left, __ATOMIC_ACQUIRE) == 0 ? volt_ready(0) : volt_pending();
}

typedef struct batches {
    volt_frame frame;
    volt_fn *fn;       // of the tasks; each hits the latch at its end
    const void *state; // the initial state of each
    size_t size;
    uint32_t n, times, i;
    int rc;
} batches;
#define BATCH_OF(fn_, state_) .fn = (fn_), .state = &(state_), .size = sizeof(state_)

// A failed start counts as an end, so that the latch opens all the same.
static inline int batch_spawn(volt_cx *cx, const batches *b) {
    uint32_t i = 0;
    int rc = 0;
    latch_set(cx, b->n);
    while (i < b->n && (rc = volt_spawn(cx, NULL, b->fn, b->state, b->size)) == 0) i++;
    if (i < b->n) latch_hit(b->n - i);
    return rc;
}

static inline volt_poll batches_run(volt_cx *cx, void *arg) {
    batches *b = arg;
    VOLT_BEGIN(cx, b);
    for (b->i = 0; b->i < b->times; b->i++) {
        b->rc = batch_spawn(cx, b);
        VOLT_AWAIT(latch_wait());
        if (b->rc < 0) VOLT_RETURN(b->rc);
    }
    VOLT_END(0);
}

// Two tasks for batches: one does nothing, one yields.
typedef struct empty {
    volt_frame frame;
} empty;
static const empty no_empty;

static inline volt_poll empty_run(volt_cx *cx, void *arg) {
    empty *e = arg;
    VOLT_BEGIN(cx, e);
    tally_add(1);
    latch_hit(1);
    VOLT_END(0);
}

enum { YIELDS = 1000 };
typedef struct yielder {
    volt_frame frame;
    uint32_t i;
} yielder;
static const yielder no_yielder;

static inline volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    VOLT_BEGIN(cx, y);
    for (y->i = 0; y->i < YIELDS; y->i++) VOLT_AWAIT(volt_yield(cx));
    tally_add(y->i);
    latch_hit(1);
    VOLT_END(0);
}

// ---- rows

typedef struct row {
    const char *id, *what;
    uint64_t ops; // per repetition, as the tally must find it
    volt_fn *run;
    void *state; // of run; starts with a volt_frame
} row;

static uint32_t row_workers; // of the row that is being measured
// Flags, with .ops. EVEN: as many as there are workers share them evenly; the remainder is not
// done. CROWD: the number of tasks at once depends on the clock, so any repetition may reach a new
// maximum, and memory that is unused for a second is returned. So slabs, of hundreds of tasks each,
// are allowed: one for 100 operations.
#define ROW_EVEN ((uint64_t)1 << 63)
#define ROW_CROWD ((uint64_t)1 << 62)

static inline uint64_t row_ops(const row *r) {
    const uint64_t n = r->ops & ~(ROW_EVEN | ROW_CROWD);
    return r->ops & ROW_EVEN ? n - n % row_workers : n;
}

static inline int64_t row_may_allocate(const row *r, int reps) {
    return r->ops & ROW_CROWD ? (int64_t)(row_ops(r) / 100) * reps : 0;
}

typedef struct measurement {
    volt_frame frame;
    const row *row;
    bench_row figures;
    uint64_t before, allocated; // tally and calls of the allocator so far
    int i, reps, rc;
} measurement;

static bench_row *row_timed; // the row that is being measured
static inline void row_pause(void) { bench_pause(row_timed); }
static inline void row_resume(void) { bench_resume(row_timed); }

static uint64_t rows_allocated; // calls so far
static void *rows_alloc(void *user, size_t size, size_t align) {
    void *block = NULL;
    (void)user;
    __atomic_fetch_add(&rows_allocated, 1, __ATOMIC_RELAXED);
    return posix_memalign(&block, align < sizeof block ? sizeof block : align, size) ? NULL : block;
}
static void rows_free(void *user, void *block, size_t size) {
    (void)user, (void)size;
    free(block);
}
static inline volt_config rows_config(uint32_t workers) {
    return (volt_config){ .workers = workers, .spin_us = bench_spin_us(),
                          .alloc = { rows_alloc, rows_free, NULL } };
}
static inline uint64_t rows_n_allocated(void) {
    return __atomic_load_n(&rows_allocated, __ATOMIC_RELAXED);
}

static volt_poll measure_run(volt_cx *cx, void *arg) {
    measurement *m = arg;
    VOLT_BEGIN(cx, m);
    for (m->i = -1; m->i < m->reps; m->i++) {
        m->before = tally_sum();
        bench_start(&m->figures);
        VOLT_AWAIT(m->rc, m->row->run(cx, m->row->state));
        if (m->i >= 0) bench_stop(&m->figures);
        if (m->rc < 0) VOLT_RETURN(m->rc);
        if (tally_sum() - m->before != m->figures.ops) VOLT_RETURN(-EBADMSG);
        if (m->i < 0) m->allocated = rows_n_allocated();
    }
    VOLT_END((int64_t)(rows_n_allocated() - m->allocated));
}

static inline void row_measure(const row *r, uint32_t workers, int reps) {
    measurement m = { .row = r, .reps = reps };
    row_workers = workers;
    m.figures = (bench_row){ .id = r->id, .what = r->what, .workers = workers, .ops = row_ops(r) };
    row_timed = &m.figures;
    const volt_config config = rows_config(workers);
    const int rc = volt_run(&config, measure_run, &m);
    if (rc > row_may_allocate(r, reps) && workers == 1)
        bench_die("%s: %d allocations after the warm-up", r->id, rc);
    if (rc == -EBADMSG) bench_die("%s: operations were lost or done twice", r->id);
    if (rc < 0) bench_die("%s: %s", r->id, volt_strerror(rc));
    bench_print(&m.figures);
}

// Command line: [ROW...] [--workers N] [--reps N], or --list, which names the rows
static inline int rows_main(int argc, char **argv, const row *rows, size_t n_rows) {
    double workers = 1, reps = 9;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < n_rows; i++) puts(rows[i].id);
        return 0;
    }
    const bench_option options[] = {
        { "--workers", &workers, 1, 64 },
        { "--reps", &reps, 1, BENCH_REPS_MAX },
    };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    int measured = 0;
    bench_print_header();
    for (size_t i = 0; i < n_rows; i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        row_measure(&rows[i], (uint32_t)workers, (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}

#endif // BENCH_ROWS_H
