// SPDX-License-Identifier: MIT OR 0BSD
// Measures a row of a peer in C: see ../rows/bench.h for the columns. One thread runs tasks.
// Every operation is counted where it happens; a wrong sum ends the program.
#ifndef PEER_H
#define PEER_H

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "../rows/bench.h"

typedef struct row {
    const char *id, *what;
    uint64_t ops;             // in one repetition, as peer_done must find it
    void (*run)(void);        // a repetition
    void (*set_up)(void);     // NULL or before the warm-up
    void (*tear_down)(void);  // NULL or after the last repetition
} row;

static uint64_t peer_done;    // operations; added to by the thread that runs tasks
static bench_row *peer_timed; // the row that is being measured

static inline void peer_repeat(const row *r, bench_row *figures) {
    const uint64_t before = peer_done;
    bench_start(figures);
    r->run();
    bench_stop(figures);
    if (peer_done - before != r->ops) bench_die("%s: operations were lost or done twice", r->id);
}

static inline void peer_measure(const row *r, int reps) {
    bench_row figures = { .id = r->id, .what = r->what, .workers = 1, .ops = r->ops };
    peer_timed = &figures;
    if (r->set_up) r->set_up();
    peer_repeat(r, &figures);
    figures.n = 0; // the warm-up
    for (int i = 0; i < reps; i++) peer_repeat(r, &figures);
    if (r->tear_down) r->tear_down();
    bench_print(&figures);
}

// Command line: [ROW...] [--workers 1] [--reps N], or --list, which names the rows
static inline int peer_main(int argc, char **argv, const row *rows, size_t n_rows) {
    double workers = 1, reps = 9;
    int measured = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < n_rows; i++) puts(rows[i].id);
        return 0;
    }
    const bench_option options[] = {
        { "--workers", &workers, 1, 1 },
        { "--reps", &reps, 1, BENCH_REPS_MAX },
    };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    bench_print_header();
    for (size_t i = 0; i < n_rows; i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        peer_measure(&rows[i], (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}

#endif // PEER_H
