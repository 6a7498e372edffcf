// SPDX-License-Identifier: MIT OR 0BSD
// M4: what a runtime does that has nothing to do.
//
//   idle [--workers N] [--seconds S]        default: 2 workers, 60 s
//
//   All workers are started, run 10,000 short tasks and 100 timers, and are left alone. Printed are
//   the voluntary context switches of all their threads during the time asked for, and how often
//   they parked or looked around: all must be 0, else the exit status is 1. That no system
//   call is made either shows `strace -f build/bench/idle`: nothing between "idle" and "awake".
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <dirent.h>
#include <stdio.h>

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
// Of all threads but the one that asks.
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

int main(int argc, char **argv) {
    volt_config c = { .workers = 2, .start_all = 1 };
    volt_counters before, after;
    unsigned seconds = 60;
    volt_rt *rt = NULL;
    busy b = { .rc = 0 };
    int n_threads = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--workers") == 0) c.workers = (uint32_t)atoi(argv[i + 1]);
        if (strcmp(argv[i], "--seconds") == 0) seconds = (unsigned)atoi(argv[i + 1]);
    }
    if (volt_create(&c, &rt) < 0 || volt_block_on(rt, busy_run, &b) < 0) return 1;
    pause_for(1); // the watch expires once more after the last worker has parked
    volt_stats(rt, &before);
    long n = switches(&n_threads);
    if (write(1, "idle\n", 5) < 0) return 1;
    pause_for(seconds);
    if (write(1, "awake\n", 6) < 0) return 1;
    n = switches(&n_threads) - n;
    volt_stats(rt, &after);
    uint64_t looks = after.parks - before.parks + after.maintenances - before.maintenances;
    printf(
        "M4 %3u workers, %d threads, %u s: %ld voluntary context switches, %llu parks and looks\n",
        c.workers, n_threads, seconds, n, (unsigned long long)looks);
    if (volt_shutdown(rt, VOLT_S(5)) != 0 || volt_destroy(rt) != 0) return 1;
    return n != 0 || looks != 0;
}
