// SPDX-License-Identifier: MIT OR 0BSD
// Rows of work from outside: threads that are not workers spawn and wake tasks.
//
//   outside [ROW...] [--workers N] [--reps N]      default: all rows, 1 worker, 9 repetitions
//   outside --list                                 the names of the rows
//
//   S3    the runtime has nothing to do; a thread spawns 10,000 tasks and keeps their handles, then
//         waits for all by volt_join_sync; 20 times
//   S4a   beside 2 tasks for each worker that always stall 10 us and yield, a thread spawns 10,000
//         detached tasks and waits until a wait group has counted all
//   S4b   beside 4 tasks that stall 10 us and respawn themselves, 1,000 tasks; 5 times
//   S5p1 S5p2 S5p4 S5p8   1, 2, 4, 8 threads spawn 12,800 detached tasks in total, a wait group
//         counts them; 20 times. Wall time is from the first spawn until a thread that waits for
//         all continues
//   S12a S12b S12c   a thread wakes a task, which stores the time at which it runs; then nothing
//         for 3, 30, 300 us. min and median are of the median latency of a repetition
//   S12d S12e   100 tickers of 1 kHz, in absolute time, beside 2 tasks for each worker that always
//         stall 10 us and yield; 1 s. min and median are of the p50 (d) or p99 (e) of the lateness
//         of ticks in a repetition; volt's timers have ticks of 1/16 ms, rounded up
//
// S3 to S5 have the shape of the remote_spawn benchmarks in Tokio's tree. To stall is to read the
// clock in a loop. The thread of S12a to S12c stalls for the gaps, too, and yields its CPU while it
// waits for the answer; cpu includes all of that, and the work of the other tasks in S4 and S12d,
// S12e. ns are per operation; for the columns see bench.h, for wall figures that are not times
// latency.h.
#define VOLT_IMPLEMENTATION
#include "counted.h"
#include "calls.h"
#include "volt.h"
#include "rows.h"
#include "outside.h"
#include <pthread.h>
#include <sched.h>

enum { S3_TASKS = 10000, S3_TIMES = 20 / SHRINK, S4B_TASKS = 1000, S4B_TIMES = 5 / SHRINK };
enum { S5_TASKS = 12800, S5_TIMES = 20 / SHRINK, S5_THREADS = 8 };
enum { S12_WAKES = 2000 / SHRINK, S12C_WAKES = 500 / SHRINK };
enum { TICKERS = 100, TICKS = SHRINK == 1 ? 1000 : 20 };

static double samples[TICKERS * TICKS]; // latencies: one for each operation

static void stall(int64_t ns) {
    const int64_t start = bench_now();
    while (bench_now() - start < ns) {}
}

static void spawn(volt_fn *fn, const void *state, size_t size) {
    const int rc = volt_rt_spawn(outside_rt, NULL, fn, state, size);
    if (rc < 0) bench_die("volt_rt_spawn: %s", volt_strerror(rc));
}

// ---- other tasks that keep the workers busy, until the runtime ends

enum { STALL_NS = 10000 };

typedef struct hog {
    volt_frame frame;
    int rc;
} hog;
static const hog no_hog;

static volt_poll hog_run(volt_cx *cx, void *arg) {
    hog *h = arg;
    VOLT_BEGIN(cx, h);
    do {
        stall(STALL_NS);
        VOLT_AWAIT(h->rc, volt_yield(cx));
    } while (h->rc == 0);
    VOLT_END(0);
}

static volt_poll respawned_run(volt_cx *cx, void *arg) {
    hog *h = arg;
    VOLT_BEGIN(cx, h);
    stall(STALL_NS);
    h->rc = VOLT_SPAWN(cx, NULL, respawned_run, no_hog);
    VOLT_END(h->rc);
}

static void hogs_begin(uint32_t unused) {
    (void)unused;
    for (uint32_t i = 0; i < 2 * outside_workers; i++) spawn(hog_run, &no_hog, sizeof no_hog);
}

static void respawned_begin(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) spawn(respawned_run, &no_hog, sizeof no_hog);
}

// ---- S3: one thread spawns and waits by handles

static volt_handle handles[S3_TASKS];

static volt_poll kept_run(volt_cx *cx, void *arg) {
    empty *e = arg;
    VOLT_BEGIN(cx, e);
    tally_add(1);
    VOLT_END(1);
}

static int spawn_and_join(uint32_t n) {
    int64_t result = 0;
    uint64_t sum = 0;
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) {
        rc = VOLT_RT_SPAWN(outside_rt, &handles[i], kept_run, no_empty);
        if (rc < 0) return rc;
    }
    for (uint32_t i = 0; i < n; i++) {
        rc = volt_join_sync(&handles[i], VOLT_NEVER, &result);
        if (rc < 0) return rc;
        sum += (uint64_t)result;
    }
    return sum == n ? 0 : -EBADMSG;
}

static int s3_run(uint32_t unused) {
    int rc = 0;
    (void)unused;
    for (int i = 0; i < S3_TIMES && rc == 0; i++) rc = spawn_and_join(S3_TASKS);
    return rc;
}

// ---- S4: a wait group counts ended tasks, so that one wake-up is enough

static volt_wait_group spawned;

static volt_poll detached_run(volt_cx *cx, void *arg) {
    empty *e = arg;
    VOLT_BEGIN(cx, e);
    tally_add(1);
    volt_wait_group_done(&spawned);
    VOLT_END(0);
}

static int spawn_and_wait(uint32_t n) {
    int rc = volt_wait_group_add(&spawned, n);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < n; i++) spawn(detached_run, &no_empty, sizeof no_empty);
    return volt_wait_group_wait_sync(&spawned, VOLT_NEVER);
}

static int s4a_run(uint32_t unused) {
    (void)unused;
    return spawn_and_wait(S3_TASKS);
}

static int s4b_run(uint32_t unused) {
    int rc = 0;
    (void)unused;
    for (int i = 0; i < S4B_TIMES && rc == 0; i++) rc = spawn_and_wait(S4B_TASKS);
    return rc;
}

// ---- S5: several threads spawn; all are started before

typedef struct producer {
    _Alignas(TALLY_LINE) int64_t begun; // its first spawn of this batch
    pthread_t thread;
    uint32_t n; // tasks in each batch
} producer;
static producer producers[S5_THREADS];
static pthread_barrier_t gate; // of the producers and the waiting thread
static int gate_is_closed;

static void *produce(void *arg) {
    producer *p = arg;
    for (;;) {
        pthread_barrier_wait(&gate);
        if (gate_is_closed) return NULL;
        p->begun = bench_now();
        for (uint32_t i = 0; i < p->n; i++) spawn(detached_run, &no_empty, sizeof no_empty);
    }
}

static void s5_begin(uint32_t n_threads) {
    gate_is_closed = 0;
    if (pthread_barrier_init(&gate, NULL, n_threads + 1) != 0) bench_die("no barrier");
    for (uint32_t i = 0; i < n_threads; i++) {
        producers[i].n = S5_TASKS / n_threads;
        if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
            bench_die("no thread");
    }
}

static void s5_end(uint32_t n_threads) {
    gate_is_closed = 1;
    pthread_barrier_wait(&gate);
    for (uint32_t i = 0; i < n_threads; i++) pthread_join(producers[i].thread, NULL);
    pthread_barrier_destroy(&gate);
}

static int64_t first_spawn(uint32_t n_threads) {
    int64_t first = producers[0].begun;
    for (uint32_t i = 1; i < n_threads; i++)
        if (producers[i].begun < first) first = producers[i].begun;
    return first;
}

static int s5_run(uint32_t n_threads) {
    int64_t wall = 0;
    int rc = 0;
    for (int i = 0; i < S5_TIMES && rc == 0; i++) {
        rc = volt_wait_group_add(&spawned, S5_TASKS);
        pthread_barrier_wait(&gate);
        if (rc == 0) rc = volt_wait_group_wait_sync(&spawned, VOLT_NEVER);
        wall += bench_now() - first_spawn(n_threads);
    }
    bench_wall_is(row_timed, (double)wall / (double)row_timed->ops);
    return rc;
}

// ---- S12a to S12c: from a wake-up to the poll

static void stamp(uint64_t sent) {
    mailbox.seen_at = bench_now();
    mailbox_done(sent);
}

static void s12_begin(uint32_t unused) {
    (void)unused;
    mailbox_open(stamp);
}

static int s12_run(uint32_t gap_us) {
    const size_t n = (size_t)row_timed->ops;
    for (size_t i = 0; i < n; i++) {
        stall((int64_t)gap_us * 1000);
        const int64_t sent_at = bench_now();
        const uint64_t sent = mailbox_send();
        while (__atomic_load_n(&mailbox.seen, __ATOMIC_ACQUIRE) != sent) sched_yield();
        samples[i] = (double)(mailbox.seen_at - sent_at);
    }
    bench_wall_of(row_timed, samples, n, 0.5);
    return 0;
}

// ---- S12d, S12e: timers beside tasks that leave the workers no rest

typedef struct ticker {
    volt_frame frame;
    int64_t due;
    double *late;
    uint32_t i, n_good;
    int rc;
} ticker;

static volt_poll ticker_run(volt_cx *cx, void *arg) {
    ticker *t = arg;
    VOLT_BEGIN(cx, t);
    t->due = bench_now();
    for (t->i = 0; t->i < TICKS; t->i++) {
        t->due += VOLT_MS(1);
        VOLT_AWAIT(t->rc, volt_sleep_until(cx, t->due));
        t->late[t->i] = (double)(bench_now() - t->due);
        t->n_good += t->rc == 0 && t->late[t->i] >= 0;
    }
    tally_add(t->n_good);
    VOLT_END(0);
}

static int tickers_run(uint32_t percent) {
    int rc = 0;
    for (int i = 0; i < TICKERS && rc == 0; i++) {
        const ticker t = { .late = &samples[i * TICKS] };
        rc = VOLT_RT_SPAWN(outside_rt, &handles[i], ticker_run, t);
    }
    for (int i = 0; i < TICKERS && rc == 0; i++) rc = volt_join_sync(&handles[i], VOLT_NEVER, NULL);
    bench_wall_of(row_timed, samples, BENCH_COUNT(samples), percent / 100.0);
    return rc;
}

// ---- main

static const outside_row rows[] = {
    { "S3", "spawn from a thread, idle workers; join", S3_TIMES * S3_TASKS, s3_run,
      .is_bounded = 1 },
    { "S4a", "the same beside tasks that stall and yield", S3_TASKS, s4a_run, .begin = hogs_begin },
    { "S4b", "beside tasks that stall and respawn", S4B_TIMES * S4B_TASKS, s4b_run,
      .begin = respawned_begin },
#define S5(n_) S5_TIMES * S5_TASKS, s5_run, n_, s5_begin, s5_end
    { "S5p1", "spawn from 1 thread, detached", S5(1), 0 },
    { "S5p2", "spawn from 2 threads", S5(2), 0 },
    { "S5p4", "spawn from 4 threads", S5(4), 0 },
    { "S5p8", "spawn from 8 threads", S5(8), 0 },
    { "S12a", "wake from a thread after 3 us: p50 latency", S12_WAKES, s12_run, 3, s12_begin,
      .is_bounded = 1 },
    { "S12b", "wake from a thread after 30 us: p50 latency", S12_WAKES, s12_run, 30, s12_begin,
      .is_bounded = 1 },
    { "S12c", "wake from a thread after 300 us: p50 latency", S12C_WAKES, s12_run, 300, s12_begin,
      .is_bounded = 1 },
    { "S12d", "ticks of 1 ms beside busy tasks: p50 lateness", TICKERS * TICKS, tickers_run, 50,
      hogs_begin, .is_bounded = 1 },
    { "S12e", "ticks of 1 ms beside busy tasks: p99 lateness", TICKERS * TICKS, tickers_run, 99,
      hogs_begin, .is_bounded = 1 },
};

int main(int argc, char **argv) { return outside_main(argc, argv, rows, BENCH_COUNT(rows)); }
