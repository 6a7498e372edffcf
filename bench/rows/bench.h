// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the benchmark programs: clocks, repetitions, one line of figures per row, options.
// Include it after volt.h, which sets _GNU_SOURCE and must therefore precede every system header.
//
// A row is a workload of a fixed number of operations that is repeated in one process. Its line:
//   row      its name                     workers  threads that run tasks
//   min, median  wall time of a repetition / operations in it, in ns: the fastest, and the median
//   cpu      user and system time of all threads / operations, in ns: the median
//   wakes    voluntary context switches of all threads / operations: the median. Each is a thread
//            that slept and was woken
//   calls    system calls of volt.h / operations, where calls.h counts them, else -: the median
//   ops      operations in one repetition
// With BENCH_JSON set in the environment, a line of JSON with the same figures follows.
#ifndef BENCH_H
#define BENCH_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BENCH_COUNT(array_) (sizeof(array_) / sizeof(array_)[0])
enum { BENCH_REPS_MAX = 99 };

// ---- clocks

static inline int64_t bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t bench_timeval_ns(struct timeval t) {
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

// Totals of all threads of the process so far.
typedef struct bench_usage {
    int64_t cpu, wakes, calls; // user and system time in ns
} bench_usage;

static inline bench_usage bench_used(void) {
    struct rusage u;
    bench_usage used;
    getrusage(RUSAGE_SELF, &u);
    used.cpu = bench_timeval_ns(u.ru_utime) + bench_timeval_ns(u.ru_stime);
    used.wakes = u.ru_nvcsw;
#ifdef BENCH_CALLS_H
    used.calls = calls_sum();
#else
    used.calls = -1;
#endif
    return used;
}

static inline int64_t bench_cpu(void) { return bench_used().cpu; }

// ---- rows

typedef struct bench_row {
    const char *id, *what;
    unsigned workers;
    uint64_t ops; // in one repetition
    size_t n;     // repetitions so far
    double wall[BENCH_REPS_MAX], cpu[BENCH_REPS_MAX]; // per operation
    double wakes[BENCH_REPS_MAX], calls[BENCH_REPS_MAX];
    int64_t wall_start, wall_pause;
    bench_usage start, pause;
} bench_row;

static inline void bench_start(bench_row *r) {
    r->start = bench_used();
    r->wall_start = bench_now();
}

// Excludes the time between the two calls: every start value is moved forward by it.
static inline void bench_pause(bench_row *r) {
    r->wall_pause = bench_now();
    r->pause = bench_used();
}

static inline void bench_resume(bench_row *r) {
    const bench_usage now = bench_used();
    r->start.cpu += now.cpu - r->pause.cpu;
    r->start.wakes += now.wakes - r->pause.wakes;
    r->start.calls += now.calls - r->pause.calls;
    r->wall_start += bench_now() - r->wall_pause;
}

static inline void bench_stop(bench_row *r) {
    const int64_t wall = bench_now() - r->wall_start;
    const bench_usage now = bench_used();
    const double ops = (double)r->ops;
    if (r->n == BENCH_REPS_MAX) return;
    r->wall[r->n] = (double)wall / ops;
    r->cpu[r->n] = (double)(now.cpu - r->start.cpu) / ops;
    r->wakes[r->n] = (double)(now.wakes - r->start.wakes) / ops;
    r->calls[r->n] = now.calls < 0 ? -1 : (double)(now.calls - r->start.calls) / ops;
    r->n++;
}

static inline int bench_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the figures; the smallest is then the first.
static inline double bench_median(double *figures, size_t n) {
    if (n == 0) return 0;
    qsort(figures, n, sizeof *figures, bench_compare);
    return n % 2 ? figures[n / 2] : (figures[n / 2 - 1] + figures[n / 2]) / 2;
}

// For n ratios of pairs in ascending order: the median of their population lies between the ratio
// of this rank, counted from 1, and that of the same rank from the end, with a confidence of 95 %
// or more. 0: n is too small.
static inline size_t bench_rank(size_t n) {
    double p = 1, below = 0; // of a binomial distribution
    size_t k = 0;
    for (size_t i = 0; i < n; i++) p /= 2;
    while (below + p <= 0.025) {
        below += p;
        p = p * (double)(n - k) / (double)(k + 1);
        k++;
    }
    return k;
}

static inline void bench_print_header(void) {
    printf("%-12s %7s %10s %10s %10s %9s %9s %10s  %s\n", "row", "workers", "min ns", "median",
           "cpu", "wakes", "calls", "ops", "operation");
}

static inline void bench_print_json(const bench_row *r, double median, double cpu, double wakes,
                                    double calls) {
    printf("{\"row\":\"%s\",\"workers\":%u,\"wall_min_ns\":%.3f,\"wall_median_ns\":%.3f,"
           "\"cpu_median_ns\":%.3f,\"wakes_per_op\":%.6f,",
           r->id, r->workers, r->wall[0], median, cpu, wakes);
    if (calls >= 0) printf("\"calls_per_op\":%.6f,", calls);
    printf("\"ops\":%" PRIu64 ",\"repetitions\":%zu}\n", r->ops, r->n);
}

static inline void bench_print(bench_row *r) {
    const double median = bench_median(r->wall, r->n), cpu = bench_median(r->cpu, r->n);
    const double wakes = bench_median(r->wakes, r->n), calls = bench_median(r->calls, r->n);
    char calls_text[32] = "-";
    if (r->calls[0] >= 0) snprintf(calls_text, sizeof calls_text, "%.5f", calls);
    printf("%-12s %7u %10.2f %10.2f %10.2f %9.5f %9s %10" PRIu64 "  %s\n", r->id, r->workers,
           r->wall[0], median, cpu, wakes, calls_text, r->ops, r->what);
    if (getenv("BENCH_JSON"))
        bench_print_json(r, median, cpu, wakes, r->calls[0] < 0 ? -1 : calls);
    fflush(stdout);
}

// ---- command line

__attribute__((noreturn, format(printf, 1, 2)))
static inline void bench_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

// The number in `text`, which may be NULL; ends the program if there is none or it is out of range.
static inline double bench_number(const char *name, const char *text, double min, double max) {
    char *end = NULL;
    const double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(value >= min && value <= max))
        bench_die("%s: a number from %g to %g", name, min, max);
    return value;
}
// How long an idle worker spins before it sleeps, .spin_us: BENCH_SPIN_US, or 0 without it.
static inline uint32_t bench_spin_us(void) {
    const char *us = getenv("BENCH_SPIN_US");
    return us ? (uint32_t)bench_number("BENCH_SPIN_US", us, 0, 1000000) : 0;
}

typedef struct bench_option {
    const char *name; // with its dashes; always followed by a number
    double *value;    // holds the default
    double min, max;
} bench_option;

// Takes the options out of argv, which keeps the other arguments; returns their number.
static inline int bench_options(int argc, char **argv, const bench_option *options, size_t n) {
    int kept = 0;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < n && strcmp(argv[i], options[k].name) != 0) k++;
        if (k < n) {
            const bench_option *o = &options[k];
            *o->value = bench_number(o->name, argv[++i], o->min, o->max); // argv ends with NULL
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "%s: unknown option %s; there are:", argv[0], argv[i]);
            for (k = 0; k < n; k++) fprintf(stderr, " %s", options[k].name);
            bench_die(" ");
        } else {
            argv[++kept] = argv[i];
        }
    }
    return kept;
}

// 1 if `id` is among the `n` arguments that are left, or if there are none, which means all rows.
static inline int bench_is_wanted(const char *id, char **argv, int n) {
    for (int i = 1; i <= n; i++)
        if (strcmp(argv[i], id) == 0) return 1;
    return n == 0;
}

#endif // BENCH_H
