// SPDX-License-Identifier: MIT OR 0BSD
// M4: the activity of an idle runtime.
//
//   idle [--workers N] [--seconds S]        default: 2 workers, 60 s
//
//   All workers are started, run 10,000 short tasks and 100 timers, and are left alone. Printed are
//   the voluntary context switches of all their threads during the given time, and the numbers of
//   parks and event polls: all must be 0, else the exit status is 1. CPU time is that of all
//   threads, including the one that waits for the time to pass. `strace -f build/bench/idle` shows
//   that no system call is made either: nothing between "idle" and "awake".
//   With BENCH_JSON set in the environment, a line of JSON with the same figures follows.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "bench.h"
#include <dirent.h>

enum { TASKS = 10000, TIMERS = 100 };

typedef struct {
    volt_frame frame;
    volt_time d;
} chore;
static volt_poll chore_run(volt_cx *cx, void *arg) {
    chore *c = arg;
    VOLT_BEGIN(cx, c);
    if (c->d) VOLT_AWAIT(volt_sleep(cx, c->d));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    int i, rc;
} busy;
static volt_poll busy_run(volt_cx *cx, void *arg) {
    busy *b = arg;
    VOLT_BEGIN(cx, b);
    for (b->i = 0; b->i < TASKS && b->rc == 0; b->i++) {
        volt_time d = b->i < TIMERS ? VOLT_MS(1 + b->i % 20) : 0;
        b->rc = VOLT_GROUP_SPAWN(cx, &b->group, chore_run, (chore){ .d = d });
    }
    VOLT_AWAIT(volt_group_close(cx, &b->group));
    VOLT_END(b->rc);
}

// Of one thread of this process, from its status file.
static long switches_of(const char *thread) {
    char path[300], line[200];
    long n = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1) break;
    }
    if (f) fclose(f);
    return n;
}
// Of all threads except the calling one.
static long switches(int *n_threads) {
    long sum = 0;
    DIR *d = opendir("/proc/self/task");
    *n_threads = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || atoi(e->d_name) == getpid()) continue;
        sum += switches_of(e->d_name);
        ++*n_threads;
    }
    if (d) closedir(d);
    return sum;
}
static void pause_for(unsigned seconds) {
    struct timespec t = { .tv_sec = (time_t)seconds };
    while (nanosleep(&t, &t) < 0 && errno == EINTR) {}
}

// Activity during the idle time.
typedef struct figures {
    unsigned workers, seconds;
    int n_threads;
    long switches; // voluntary
    uint64_t looks;
    int64_t cpu; // ns
} figures;

static void print(const figures *f) {
    const double seconds = f->seconds;
    printf("M4 %3u workers, %d threads, %u s: %ld voluntary context switches, %.2f/s; %" PRIu64
           " parks and looks; CPU %.1f us/s\n",
           f->workers, f->n_threads, f->seconds, f->switches, (double)f->switches / seconds,
           f->looks, (double)f->cpu / 1000 / seconds);
    if (getenv("BENCH_JSON"))
        printf("{\"row\":\"M4\",\"workers\":%u,\"seconds\":%u,\"switches_per_s\":%.3f,"
               "\"parks_and_looks\":%" PRIu64 ",\"cpu_us_per_s\":%.3f}\n",
               f->workers, f->seconds, (double)f->switches / seconds, f->looks,
               (double)f->cpu / 1000 / seconds);
}

int main(int argc, char **argv) {
    volt_config c = { .workers = 2, .start_all_workers = 1 };
    volt_counters before, after;
    double workers = 2, seconds = 60;
    volt_rt *rt = NULL;
    busy b = { .rc = 0 };
    figures f = { .switches = 0 };
    const bench_option options[] = {
        { "--workers", &workers, 1, 64 },
        { "--seconds", &seconds, 1, 86400 },
    };
    if (bench_options(argc, argv, options, BENCH_COUNT(options)) > 0) bench_die("no such row");
    c.workers = f.workers = (unsigned)workers;
    f.seconds = (unsigned)seconds;
    if (volt_create(&c, &rt) < 0 || volt_block_on(rt, busy_run, &b) < 0) return 1;
    pause_for(1); // the watchdog expires once more after the last worker has parked
    volt_stats(rt, &before);
    const long switched = switches(&f.n_threads);
    if (write(1, "idle\n", 5) < 0) return 1;
    f.cpu = bench_cpu();
    pause_for(f.seconds);
    f.cpu = bench_cpu() - f.cpu;
    if (write(1, "awake\n", 6) < 0) return 1;
    f.switches = switches(&f.n_threads) - switched;
    volt_stats(rt, &after);
    f.looks = after.parks - before.parks + after.event_polls - before.event_polls;
    print(&f);
    if (volt_shutdown(rt, VOLT_S(5)) != 0 || volt_destroy(rt) != 0) return 1;
    return f.switches != 0 || f.looks != 0;
}
