// SPDX-License-Identifier: MIT OR 0BSD
// For programs that are counted, not timed. BENCH_COUNTED sets a clock that advances by 10 ns at
// each reading, so that workers run their event polls at the same polls of tasks in every run;
// fixed random numbers; and a fifth of the operations. Include it before volt.h; rows divide by
// SHRINK.
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#ifdef BENCH_COUNTED
enum { SHRINK = 5 };
// without calls.h, which would add instructions to each system call of volt.h
#  define BENCH_CALLS_H
static inline long calls_sum(void) { return -1; }
#else
enum { SHRINK = 1 };
#endif

#if defined(BENCH_COUNTED) && !defined(VOLT_NOW_NS) // otherwise another repeatable clock is set
static inline long long counted_now(void) { // before the first system header
    static long long now = 1000000000;
    return now += 10;
}
#  define VOLT_NOW_NS() counted_now()
#  define VOLT_RANDOM() 88172645463325252ull
#endif

#endif // BENCH_COUNTED_H
