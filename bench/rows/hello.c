// SPDX-License-Identifier: MIT OR 0BSD
// M3: the cost of a program with a single short task: start of a runtime, a task, its end.
//
//   hello [M3] [--workers N] [--reps N]            default: 1 worker, 9 repetitions; or --list
//
// A repetition calls volt_run 1000 times with a task that ends at once. With more workers there is
// a second thread, which serves as the watchdog. ns are per volt_run; for the columns see bench.h.
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "bench.h"

enum { RUNS = 1000 };

typedef struct hello {
    volt_frame frame;
    int64_t n;
} hello;

static volt_poll hello_run(volt_cx *cx, void *arg) {
    hello *h = arg;
    VOLT_BEGIN(cx, h);
    h->n++;
    VOLT_END(h->n);
}

// Returns the number of runtimes that have run a task, or -errno.
static int64_t repeat(const volt_config *config) {
    int64_t sum = 0;
    for (int i = 0; i < RUNS; i++) {
        hello h = { .n = 0 };
        const int rc = volt_run(config, hello_run, &h);
        if (rc < 0) return rc;
        sum += rc == 1 && h.n == 1;
    }
    return sum;
}

int main(int argc, char **argv) {
    double workers = 1, reps = 9;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return puts("M3") < 0;
    const bench_option options[] = {
        { "--workers", &workers, 1, 64 },
        { "--reps", &reps, 1, BENCH_REPS_MAX },
    };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    if (!bench_is_wanted("M3", argv, n)) bench_die("no such row");
    const volt_config config = { .workers = (uint32_t)workers };
    bench_row m3 = { .id = "M3", .what = "begin, one task, end", .workers = config.workers,
                     .ops = RUNS };
    bench_print_header();
    for (int i = -1; i < (int)reps; i++) { // the first one warms up
        bench_start(&m3);
        const int64_t sum = repeat(&config);
        if (i >= 0) bench_stop(&m3);
        if (sum < 0) bench_die("M3: %s", volt_strerror((int)sum));
        if (sum != RUNS) bench_die("M3: a task was lost or run twice");
    }
    bench_print(&m3);
    return 0;
}
