// SPDX-License-Identifier: MIT OR 0BSD
// Rows whose wall figure is not the time of a repetition / its operations, but one that the row
// computes itself, such as a latency.
//
// bench_stop divides the time since bench_start by the operations. So at the end of a repetition
// the row moves the start of the wall clock to where this division gives its figure; cpu still
// covers the whole repetition. The error is less than 1 us, divided by the operations.
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "bench.h"

// Called last in a repetition.
static inline void bench_wall_is(bench_row *r, double ns) {
    r->wall_start = bench_now() - (int64_t)(ns * (double)r->ops);
}

// The same with the given quantile of the samples. Sorts them, outside both clocks.
static inline void bench_wall_of(bench_row *r, double *samples, size_t n, double fraction) {
    bench_pause(r);
    qsort(samples, n, sizeof *samples, bench_compare);
    size_t rank = (size_t)(fraction * (double)n);
    if (rank >= n) rank = n - 1;
    bench_resume(r);
    bench_wall_is(r, samples[rank]);
}

#endif // BENCH_LATENCY_H
