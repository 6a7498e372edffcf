// SPDX-License-Identifier: MIT OR 0BSD
// For who counts, and does not time: with BENCH_COUNTED a clock that goes on by 10 ns at each look,
// so that workers look at events at the same polls again, numbers by chance that are always the
// same, and a fifth of the operations. Include it before volt.h; rows divide by SHRINK.
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#ifdef BENCH_COUNTED
enum { SHRINK = 5 };
#  define BENCH_CALLS_H // without calls.h: what it adds where volt.h calls the kernel counts, too
static inline long calls_sum(void) { return -1; }
#else
enum { SHRINK = 1 };
#endif

#if defined(BENCH_COUNTED) && !defined(VOLT_NOW_NS) // else there is another clock that repeats
static inline long long counted_now(void) { // before the first system header
    static long long now = 1000000000;
    return now += 10;
}
#  define VOLT_NOW_NS() counted_now()
#  define VOLT_RANDOM() 88172645463325252ull
#endif

#endif // BENCH_COUNTED_H
