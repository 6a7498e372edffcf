// SPDX-License-Identifier: MIT OR 0BSD
// Latencies in a log-linear histogram: 64 buckets for each power of two, so within 1.6 %.
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB = 64,
    HISTOGRAM_SUB_BITS = 6,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB
};

typedef struct histogram {
    uint64_t n, max, count[HISTOGRAM_BUCKETS];
} histogram;

static inline void histogram_add(histogram *h, uint64_t ns) {
    const size_t top = 63u - (size_t)__builtin_clzll(ns | HISTOGRAM_SUB); // highest bit, at least 6
    const size_t shift = top - HISTOGRAM_SUB_BITS;
    h->count[shift * HISTOGRAM_SUB + (ns >> shift)]++;
    h->n++;
    if (ns > h->max) h->max = ns;
}

static inline void histogram_merge(histogram *into, const histogram *from) {
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) into->count[i] += from->count[i];
    into->n += from->n;
    if (from->max > into->max) into->max = from->max;
}

// The upper end of the bucket in which the fraction is reached, in ns.
static inline double histogram_ns(const histogram *h, double fraction) {
    const double rank = fraction * (double)h->n;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->count[i];
        if (!seen || (double)seen < rank) continue;
        const size_t shift = i < 2 * HISTOGRAM_SUB ? 0 : i / HISTOGRAM_SUB - 1;
        return (double)((i - shift * HISTOGRAM_SUB + 1) << shift);
    }
    return 0;
}

#endif // BENCH_HISTOGRAM_H
