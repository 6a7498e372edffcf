// SPDX-License-Identifier: MIT OR 0BSD
// The effect of a blocking call on the other tasks of its runtime, and the cost of such a call.
//
//   block [WAY...] [--workers N] [--ms 1000] [--reps 3] [--calls 20000]
//
// Default: all ways, with 1 worker and with 2. First table: 16 tasks tick every millisecond while
// another task waits for --ms milliseconds:
//   none       by volt_sleep: the lateness of ticks when nothing blocks
//   poll       by nanosleep in the middle of its poll
//   in_place   by nanosleep inside volt_block_in_place
//   pool       by nanosleep inside volt_blocking
// Columns: ticks that were due meanwhile, in all repetitions; their lateness in us. A missed tick
// counts from its due time.
//
// Second table: one task calls an empty function --calls times:
//   floor           no runtime: a thread wakes another one and waits for its answer, by semaphores
//   in_place        volt_block_in_place, then a yield, so that each call is in a poll of its own;
//                   nothing else to do
//   in_place_busy   the same beside a task that always yields, and is polled meanwhile
//   pool            volt_blocking
//   pool_busy       the same beside a task that always yields
// Columns, for one call: wall time, user and system time of all threads, and context switches of
// all threads, voluntary and not; medians of the repetitions.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "bench.h"
#include "histogram.h"
#include <pthread.h>
#include <semaphore.h>

enum { TICKERS = 16, TICK_NS = 1000000, SETTLE_MS = 20 };

static struct {
    double workers, ms, reps, calls;
} options = { .ms = 1000, .reps = 3, .calls = 20000 };

static void block_for(int64_t ns) {
    struct timespec t = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
    while (nanosleep(&t, &t) < 0 && errno == EINTR) {}
}
static int block_fn(void *ns) {
    block_for(*(int64_t *)ns);
    return 0;
}

// ---- the other tasks

static int64_t window_begin, window_end; // 0: not yet
static histogram late_of[TICKERS];       // by ticker: each has one writer at a time

typedef struct ticker {
    volt_frame frame;
    int64_t due;
    histogram *late;
} ticker;

// 0: after the end.
static int ticker_note(const ticker *t) {
    const int64_t begin = __atomic_load_n(&window_begin, __ATOMIC_ACQUIRE);
    const int64_t end = __atomic_load_n(&window_end, __ATOMIC_ACQUIRE);
    const int64_t late = bench_now() - t->due;
    if (end && t->due >= end) return 0;
    if (begin && t->due >= begin) histogram_add(t->late, late > 0 ? (uint64_t)late : 0);
    return 1;
}
static volt_poll ticker_run(volt_cx *cx, void *arg) {
    ticker *t = arg;
    VOLT_BEGIN(cx, t);
    do {
        t->due += TICK_NS;
        VOLT_AWAIT(volt_sleep_until(cx, t->due));
    } while (ticker_note(t));
    VOLT_END(0);
}

// ---- the blocking task

typedef enum way { WAY_NONE, WAY_POLL, WAY_IN_PLACE, WAY_POOL, WAYS } way;
static const char *const way_names[WAYS] = { "none", "poll", "in_place", "pool" };

typedef struct blocker {
    volt_frame frame;
    volt_job job;
    int64_t ns;
    way way;
    int rc;
} blocker;

static volt_poll blocker_run(volt_cx *cx, void *arg) {
    blocker *b = arg;
    VOLT_BEGIN(cx, b);
    __atomic_store_n(&window_begin, bench_now(), __ATOMIC_RELEASE);
    if (b->way == WAY_NONE) VOLT_AWAIT(b->rc, volt_sleep(cx, b->ns));
    if (b->way == WAY_POLL) b->rc = block_fn(&b->ns);
    if (b->way == WAY_IN_PLACE) b->rc = volt_block_in_place(cx, block_fn, &b->ns);
    if (b->way == WAY_POOL) VOLT_AWAIT(b->rc, volt_blocking(cx, &b->job, block_fn, &b->ns));
    __atomic_store_n(&window_end, bench_now(), __ATOMIC_RELEASE);
    VOLT_END(b->rc);
}

typedef struct scene {
    volt_frame frame;
    volt_group tickers;
    volt_handle blocker;
    way way;
    int reps, rep, i, rc;
} scene;

static int scene_spawn_tickers(volt_cx *cx, scene *s) {
    const int64_t now = bench_now();
    int rc = 0;
    window_begin = window_end = 0;
    for (int i = 0; i < TICKERS && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, &s->tickers, ticker_run,
                              (ticker){ .due = now, .late = &late_of[i] });
    return rc;
}
static volt_poll scene_run(volt_cx *cx, void *arg) {
    scene *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->rep = 0; s->rep < s->reps; s->rep++) {
        s->rc = scene_spawn_tickers(cx, s);
        if (s->rc < 0) VOLT_RETURN(s->rc);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(SETTLE_MS)));
        s->rc = VOLT_SPAWN(cx, &s->blocker, blocker_run,
                           (blocker){ .way = s->way, .ns = (int64_t)(options.ms * 1e6) });
        if (s->rc == 0) VOLT_AWAIT(s->rc, volt_join(cx, &s->blocker));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        VOLT_AWAIT(volt_group_wait(cx, &s->tickers));
    }
    VOLT_END(0);
}

// The end of a bucket may be above the largest sample.
static double histogram_us(const histogram *h, double fraction) {
    const double ns = histogram_ns(h, fraction), max = (double)h->max;
    return (ns < max ? ns : max) / 1000;
}
static void measure_late(way how, uint32_t workers) {
    static histogram all;
    scene s = { .way = how, .reps = (int)options.reps };
    const volt_config c = { .workers = workers, .start_all_workers = 1 };
    memset(late_of, 0, sizeof late_of);
    memset(&all, 0, sizeof all);
    const int rc = volt_run(&c, scene_run, &s);
    if (rc < 0) bench_die("%s: %s", way_names[how], volt_strerror(rc));
    for (int i = 0; i < TICKERS; i++) histogram_merge(&all, &late_of[i]);
    const double expected = options.ms * 1e6 / TICK_NS * TICKERS * options.reps;
    if ((double)all.n < expected * 0.98) bench_die("%s: ticks are missing", way_names[how]);
    const double p50 = histogram_us(&all, 0.5), p99 = histogram_us(&all, 0.99);
    const double max = histogram_us(&all, 1);
    printf("%-14s %7u %9" PRIu64 " %10.0f %10.0f %10.0f\n", way_names[how], workers, all.n, p50,
           p99, max);
    if (getenv("BENCH_JSON"))
        printf("{\"way\":\"%s\",\"workers\":%u,\"ticks\":%" PRIu64
               ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n",
               way_names[how], workers, all.n, p50, p99, max);
    fflush(stdout);
}

// ---- empty calls

typedef struct usage {
    int64_t wall, cpu;
    long voluntary, involuntary;
} usage;
static usage usage_now(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (usage){ bench_now(), bench_timeval_ns(r.ru_utime) + bench_timeval_ns(r.ru_stime),
                    r.ru_nvcsw, r.ru_nivcsw };
}

typedef struct cost { // per call, by repetition
    double wall[BENCH_REPS_MAX], cpu[BENCH_REPS_MAX];
    double voluntary[BENCH_REPS_MAX], involuntary[BENCH_REPS_MAX];
    size_t n;
} cost;
static void cost_add(cost *c, usage from) {
    const usage to = usage_now();
    c->wall[c->n] = (double)(to.wall - from.wall) / options.calls;
    c->cpu[c->n] = (double)(to.cpu - from.cpu) / options.calls;
    c->voluntary[c->n] = (double)(to.voluntary - from.voluntary) / options.calls;
    c->involuntary[c->n] = (double)(to.involuntary - from.involuntary) / options.calls;
    c->n++;
}

static uint64_t n_empty; // calls: changed by one thread at a time, which passes it on with the call
static int empty_fn(void *arg) {
    ++*(uint64_t *)arg;
    return 0;
}

typedef struct caller {
    volt_frame frame;
    volt_job job;
    volt_handle yielder;
    uint32_t i, is_over;
    way way;
    int is_busy, rep, reps, rc;
    usage from;
    cost cost;
} caller;

typedef struct yielder {
    volt_frame frame;
    const uint32_t *is_over;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    VOLT_BEGIN(cx, y);
    while (!__atomic_load_n(y->is_over, __ATOMIC_RELAXED)) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}

// The first repetition is a warm-up: threads start.
static volt_poll caller_run(volt_cx *cx, void *arg) {
    caller *c = arg;
    VOLT_BEGIN(cx, c);
    if (c->is_busy) {
        c->rc = VOLT_SPAWN(cx, &c->yielder, yielder_run, (yielder){ .is_over = &c->is_over });
        if (c->rc < 0) VOLT_RETURN(c->rc);
    }
    for (c->rep = -1; c->rep < c->reps; c->rep++) {
        c->from = usage_now();
        for (c->i = 0; c->i < (uint32_t)options.calls && c->rc == 0; c->i++) {
            if (c->way == WAY_IN_PLACE) {
                c->rc = volt_block_in_place(cx, empty_fn, &n_empty);
                VOLT_AWAIT(volt_yield(cx));
            } else {
                VOLT_AWAIT(c->rc, volt_blocking(cx, &c->job, empty_fn, &n_empty));
            }
        }
        if (c->rep >= 0) cost_add(&c->cost, c->from);
    }
    __atomic_store_n(&c->is_over, 1, __ATOMIC_RELAXED);
    if (c->is_busy) VOLT_AWAIT(volt_join(cx, &c->yielder));
    VOLT_END(c->rc);
}

static void print_cost(const char *name, uint32_t workers, cost *c) {
    const double wall = bench_median(c->wall, c->n), cpu = bench_median(c->cpu, c->n);
    const double voluntary = bench_median(c->voluntary, c->n);
    const double involuntary = bench_median(c->involuntary, c->n);
    printf("%-14s %7u %9.0f %9.0f %10.2f %12.2f\n", name, workers, wall, cpu, voluntary,
           involuntary);
    if (getenv("BENCH_JSON"))
        printf("{\"call\":\"%s\",\"workers\":%u,\"ns\":%.1f,\"cpu_ns\":%.1f,\"voluntary\":%.3f,"
               "\"involuntary\":%.3f}\n",
               name, workers, wall, cpu, voluntary, involuntary);
    fflush(stdout);
}

static void measure_calls(way how, int is_busy, uint32_t workers) {
    static caller c; // too large for a stack
    char name[32];
    c = (caller){ .way = how, .is_busy = is_busy, .reps = (int)options.reps };
    n_empty = 0;
    const volt_config config = { .workers = workers, .start_all_workers = 1 };
    const int rc = volt_run(&config, caller_run, &c);
    if (rc < 0) bench_die("%s: %s", way_names[how], volt_strerror(rc));
    if (n_empty != (uint64_t)options.calls * (uint64_t)(options.reps + 1))
        bench_die("%s: calls were lost or done twice", way_names[how]);
    snprintf(name, sizeof name, "%s%s", way_names[how], is_busy ? "_busy" : "");
    print_cost(name, workers, &c.cost);
}

// ---- the floor of a call: two threads

typedef struct pair {
    sem_t ask, answer;
    uint64_t n;
} pair;
static void *pair_main(void *arg) {
    pair *p = arg;
    while (p->n > 0) {
        while (sem_wait(&p->ask) < 0) {}
        (void)empty_fn(&n_empty);
        p->n--;
        sem_post(&p->answer);
    }
    return NULL;
}
static void measure_floor(void) {
    static cost c;
    static pair p;
    pthread_t thread;
    c.n = 0;
    p.n = (uint64_t)options.calls * (uint64_t)(options.reps + 1);
    sem_init(&p.ask, 0, 0);
    sem_init(&p.answer, 0, 0);
    if (pthread_create(&thread, NULL, pair_main, &p) != 0) bench_die("pthread_create");
    for (int rep = -1; rep < (int)options.reps; rep++) {
        const usage from = usage_now();
        for (uint32_t i = 0; i < (uint32_t)options.calls; i++) {
            sem_post(&p.ask);
            while (sem_wait(&p.answer) < 0) {}
        }
        if (rep >= 0) cost_add(&c, from);
    }
    pthread_join(thread, NULL);
    print_cost("floor", 0, &c);
}

// ---- main

static int is_wanted(way how, char **argv, int n) {
    return bench_is_wanted(way_names[how], argv, n);
}
int main(int argc, char **argv) {
    const bench_option list[] = {
        { "--workers", &options.workers, 1, 64 },
        { "--ms", &options.ms, 10, 60000 },
        { "--reps", &options.reps, 1, BENCH_REPS_MAX },
        { "--calls", &options.calls, 1, 1e8 },
    };
    const int n = bench_options(argc, argv, list, BENCH_COUNT(list));
    const uint32_t one = (uint32_t)options.workers, first = one ? one : 1, last = one ? one : 2;
    for (int i = 1; i <= n; i++) {
        int k = 0;
        while (k < WAYS && strcmp(argv[i], way_names[k]) != 0) k++;
        if (k == WAYS) bench_die("%s: none, poll, in_place or pool", argv[i]);
    }
    printf("%-14s %7s %9s %10s %10s %10s\n", "way", "workers", "ticks", "p50 us", "p99 us",
           "max us");
    for (int k = 0; k < WAYS; k++)
        for (uint32_t w = first; w <= last && is_wanted((way)k, argv, n); w++)
            measure_late((way)k, w);
    printf("\n%-14s %7s %9s %9s %10s %12s\n", "call", "workers", "ns", "cpu ns", "voluntary",
           "involuntary");
    measure_floor();
    for (int k = WAY_IN_PLACE; k < WAYS; k++)
        for (int is_busy = 0; is_busy < 2; is_busy++)
            for (uint32_t w = first; w <= last && is_wanted((way)k, argv, n); w++)
                measure_calls((way)k, is_busy, w);
    return 0;
}
