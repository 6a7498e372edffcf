// SPDX-License-Identifier: MIT OR 0BSD
// Rows whose wall figure is not the time of a repetition / its operations, but one that the row
// finds by itself: a latency, say.
//
// bench_stop divides what has passed since bench_start. So at the end of a repetition the row sets
// the start of the wall clock back, or forward, to where this division gives its figure; cpu stays
// what the whole repetition took. Between the two lie less than 1 us, divided by the operations.
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "bench.h"

// The last thing that a repetition does.
static inline void bench_wall_is(bench_row *r, double ns) {
    r->wall_start = bench_now() - (int64_t)(ns * (double)r->ops);
}

// The same with the sample that the fraction of all is not above. Sorts them, outside both clocks.
static inline void bench_wall_of(bench_row *r, double *samples, size_t n, double fraction) {
    bench_pause(r);
    qsort(samples, n, sizeof *samples, bench_compare);
    size_t rank = (size_t)(fraction * (double)n);
    if (rank >= n) rank = n - 1;
    bench_resume(r);
    bench_wall_is(r, samples[rank]);
}

#endif // BENCH_LATENCY_H
