// SPDX-License-Identifier: MIT OR 0BSD
// Memory rows: the cost of a waiting task, and the absence of allocations in a warm runtime.
//
//   memory [ROW...] [--workers N]                  default: both rows, 1 worker
//
//   M1  N tasks without state of their own sleep, N = 1, 10k, 100k, 1M, each in a new process.
//       base: resident size in KiB before they are spawned; resident: when all sleep;
//       bytes/task: the difference, from /proc/self/statm, hence in whole pages; peak: the most
//       ever, in KiB, when the runtime has ended
//   M2  calls of the allocator hook while a workload runs for the second time in a runtime:
//       spawning, yielding, sleeping (1000 tasks at once, 1 ms), echo over a new TCP connection.
//       Any call makes the exit status 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rows.h"
#include <sys/wait.h>
#include <unistd.h>

// ---- M1

typedef struct sleeper {
    volt_frame frame;
} sleeper;

static const sleeper no_sleeper;

static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    tally_add(1);
    latch_hit(1);
    VOLT_AWAIT(volt_sleep(cx, VOLT_S(3600))); // until the runtime ends
    tally_add(1);
    VOLT_END(0);
}

typedef struct crowd {
    volt_frame frame;
    batches all;
    int64_t base, resident; // bytes
    int rc;
} crowd;

static int64_t resident_size(void) {
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2) bench_die("no /proc/self/statm");
    fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static volt_poll crowd_run(volt_cx *cx, void *arg) {
    crowd *c = arg;
    VOLT_BEGIN(cx, c);
    (void)resident_size(); // allocates the buffers of the reading itself
    c->base = resident_size();
    c->rc = batch_spawn(cx, &c->all);
    VOLT_AWAIT(latch_wait());
    c->resident = resident_size();
    VOLT_END(c->rc);
}

// In KiB. The kernel's own peak may lag by some pages.
static int64_t peak_size(int64_t seen) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return seen / 1024 > used.ru_maxrss ? seen / 1024 : used.ru_maxrss;
}

static int crowd_measure(uint32_t n, uint32_t workers) {
    crowd c = { .all = { .n = n, BATCH_OF(sleeper_run, no_sleeper) } };
    const int rc = volt_run(&(volt_config){ .workers = workers }, crowd_run, &c);
    if (rc < 0) bench_die("M1: %s", volt_strerror(rc));
    if (tally_sum() != 2 * (uint64_t)n) bench_die("M1: not every task began to sleep and ended");
    const double per_task = (double)(c.resident - c.base) / (double)n;
    const int64_t base = c.base / 1024, resident = c.resident / 1024;
    const int64_t peak = peak_size(c.resident);
    printf("%-4s %10" PRIu32 " %12.1f %12" PRId64 " %12" PRId64 " %12" PRId64 "\n", "M1", n,
           per_task, base, resident, peak);
    if (getenv("BENCH_JSON"))
        printf("{\"row\":\"M1\",\"tasks\":%" PRIu32 ",\"bytes_per_task\":%.1f,\"base_kib\":%" PRId64
               ",\"resident_kib\":%" PRId64 ",\"peak_kib\":%" PRId64 "}\n",
               n, per_task, base, resident, peak);
    return 0;
}

static int m1(uint32_t workers) {
    static const uint32_t counts[] = { 1, 10000, 100000, 1000000 };
    int failed = 0;
    printf("%-4s %10s %12s %12s %12s %12s\n", "row", "tasks", "bytes/task", "base", "resident",
           "peak");
    for (size_t i = 0; i < BENCH_COUNT(counts) && !failed; i++) {
        int status = 1;
        fflush(stdout);
        const pid_t child = fork();
        if (child < 0) bench_die("fork: %s", strerror(errno));
        if (child == 0) exit(crowd_measure(counts[i], workers));
        failed = waitpid(child, &status, 0) != child || status != 0;
    }
    return failed;
}

// ---- M2

static volt_poll napper_run(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    tally_add(1);
    latch_hit(1);
    VOLT_END(0);
}

enum { ROUNDS = 10000, MESSAGE = 64 };
typedef struct echo {
    volt_frame frame;
    volt_handle server;
    volt_addr at;
    int listener, fd, rc;
    uint32_t i;
    char out[MESSAGE], in[MESSAGE];
} echo;

typedef struct echo_server {
    volt_frame frame;
    int listener, fd;
    int64_t n;
    char buf[MESSAGE];
} echo_server;

static volt_poll echo_server_run(volt_cx *cx, void *arg) {
    echo_server *e = arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->fd, volt_accept(cx, e->listener));
    if (e->fd < 0) VOLT_RETURN(e->fd);
    for (;;) {
        VOLT_AWAIT(e->n, volt_read(cx, e->fd, e->buf, sizeof e->buf));
        if (e->n <= 0) break;
        VOLT_AWAIT(e->n, volt_write_all(cx, e->fd, e->buf, (size_t)e->n));
        if (e->n < 0) break;
    }
    volt_close(cx, e->fd);
    VOLT_END(e->n);
}

static int echo_listen(volt_cx *cx, echo *e) {
    e->listener = volt_listen("127.0.0.1", 0, NULL);
    if (e->listener < 0) return e->listener;
    const int rc = volt_local_addr(e->listener, &e->at);
    if (rc < 0) return rc;
    return VOLT_SPAWN(cx, &e->server, echo_server_run, (echo_server){ .listener = e->listener });
}

static volt_poll echo_run(volt_cx *cx, void *arg) {
    echo *e = arg;
    VOLT_BEGIN(cx, e);
    e->rc = echo_listen(cx, e);
    if (e->rc < 0) VOLT_RETURN(e->rc);
    VOLT_AWAIT(e->fd, volt_connect(cx, &e->at));
    for (e->i = 0; e->fd >= 0 && e->i < ROUNDS; e->i++) {
        memset(e->out, (int)(e->i % 251), sizeof e->out);
        VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd, e->out, sizeof e->out));
        if (e->rc < 0) break;
        VOLT_AWAIT(e->rc, volt_read_exact(cx, e->fd, e->in, sizeof e->in));
        if (e->rc < 0) break;
        tally_add(memcmp(e->in, e->out, sizeof e->in) == 0);
    }
    if (e->fd >= 0) volt_close(cx, e->fd);
    VOLT_AWAIT(e->rc, volt_join(cx, &e->server));
    volt_close(cx, e->listener);
    VOLT_END(e->rc);
}

static batches spawning = { .times = 1000, .n = 200, BATCH_OF(empty_run, no_empty) };
static batches yielding = { .times = 1, .n = 200, BATCH_OF(yielder_run, no_yielder) };
static batches sleeping = { .times = 20, .n = 1000, BATCH_OF(napper_run, no_sleeper) };
static echo echoing;
static const row workloads[] = {
    { "M2", "spawn", 200000, batches_run, &spawning },
    { "M2", "yield", 200 * YIELDS, batches_run, &yielding },
    { "M2", "sleep", 20000, batches_run, &sleeping },
    { "M2", "echo", ROUNDS, echo_run, &echoing },
};

typedef struct twice {
    volt_frame frame;
    const row *row;
    uint64_t before; // allocations of the first run
    int i, rc;
} twice;

static volt_poll twice_run(volt_cx *cx, void *arg) {
    twice *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < 2; t->i++) {
        t->before = rows_n_allocated();
        VOLT_AWAIT(t->rc, t->row->run(cx, t->row->state));
        if (t->rc < 0) VOLT_RETURN(t->rc);
    }
    VOLT_END((int64_t)(rows_n_allocated() - t->before));
}

static int m2_measure(const row *r, uint32_t workers) {
    const volt_config config = rows_config(workers);
    const uint64_t before = tally_sum();
    twice t = { .row = r };
    const int rc = volt_run(&config, twice_run, &t);
    if (rc < 0) bench_die("M2 %s: %s", r->what, volt_strerror(rc));
    if (tally_sum() - before != 2 * r->ops) bench_die("M2 %s: operations were lost", r->what);
    printf("%-4s %10s %12" PRIu64 " %12d\n", r->id, r->what, r->ops, rc);
    if (getenv("BENCH_JSON"))
        printf("{\"row\":\"M2\",\"workload\":\"%s\",\"ops\":%" PRIu64 ",\"allocations\":%d}\n",
               r->what, r->ops, rc);
    return rc > 0;
}

static int m2(uint32_t workers) {
    int failed = 0;
    printf("%-4s %10s %12s %12s\n", "row", "workload", "operations", "allocations");
    for (size_t i = 0; i < BENCH_COUNT(workloads); i++)
        failed |= m2_measure(&workloads[i], workers);
    return failed;
}

int main(int argc, char **argv) {
    double workers = 1;
    const bench_option options[] = { { "--workers", &workers, 1, 64 } };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    const int is_m1 = bench_is_wanted("M1", argv, n), is_m2 = bench_is_wanted("M2", argv, n);
    int failed = 0;
    if (n > is_m1 + is_m2) bench_die("no such row");
    if (is_m1) failed |= m1((uint32_t)workers);
    if (is_m2) failed |= m2((uint32_t)workers);
    return failed;
}
