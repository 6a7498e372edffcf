// SPDX-License-Identifier: MIT OR 0BSD
// The effect of .placement: tasks that come from threads outside the workers, by each policy.
//
//   placement [WORKLOAD [POLICY [WORKERS]]] [--seconds S] [--rate R] [--load PERCENT]
//
// Default: all workloads but the two capacities, all policies, as many workers as there are CPUs
// but 4 at most; 1 s each. The policies are shared, two and least, as in enum volt_placement.
//
//   burst              1,000 tasks of about 1 us each from one thread, which waits until all ran
//   mixed              1 in 100 takes 1 ms, the others 1 us; one thread spawns them at a fixed rate
//   blocked            1 us each, at a fixed rate, while one worker is held inside a poll
//   producers1 2 4 8   1, 2, 4, 8 threads spawn tasks of 1 us as fast as they can, 1,024 of each
//                      under way at most
//   mixed-capacity, blocked-capacity
//                      the same tasks as fast as they run: the base of a relative rate
//
// A rate is R tasks a second, or PERCENT (70) of the capacity of the workload, measured under
// `shared` in a run before. The loop is open: every 200 us a batch of tasks is due, as many as make
// the rate, whatever became of earlier ones. In between the producer sleeps, as spinning would take
// a CPU away from the workers. Columns, all for one run after a warm-up:
//   p50 ... max   ns from when a task was due (open loop) or its spawn began to its first poll
//   spread        of the workers' loads, highest less lowest, mean of samples that the first
//                 producer takes at every 32nd spawn; a load is volt__worker_load's: the tasks
//                 queued at a worker, plus one if it is awake
//   asleep        share of these samples in which a worker slept while tasks were queued anywhere
//   cpu           user and system time of all threads / tasks, in ns
//   wakes, steals workers woken through their eventfd, and successful steals, / tasks
// A line of JSON follows with these and more; run_ns is the latency from the spawn on. Every task
// is counted where it runs; a wrong sum ends the program.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "bench.h"
#include "histogram.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { MAX_WORKERS = 64, MAX_PRODUCERS = 8, SAMPLE_EVERY = 32, LONG_US = 1000, LINE = 128 };
enum { TICK_NS = 200000 }; // of an open loop

typedef struct workload {
    const char *id;
    // closed loop: at a time, and the limit under way when the next comes
    uint32_t producers, batch, bound;
    uint32_t one_long_in;             // one in this many takes LONG_US; 0: none
    int is_held;
    const char *capacity; // open loop: the workload that measures the capacity
} workload;
static const workload workloads[] = {
    { "burst", 1, 1000, 0, 0, 0, NULL },
    { "mixed", 1, 0, 0, 100, 0, "mixed-capacity" },
    { "blocked", 1, 0, 0, 0, 1, "blocked-capacity" },
    { "producers1", 1, 64, 1024 - 64, 0, 0, NULL },
    { "producers2", 2, 64, 1024 - 64, 0, 0, NULL },
    { "producers4", 4, 64, 1024 - 64, 0, 0, NULL },
    { "producers8", 8, 64, 1024 - 64, 0, 0, NULL },
    // only by name
    { "mixed-capacity", 1, 64, 1024 - 64, 100, 0, NULL },
    { "blocked-capacity", 1, 64, 1024 - 64, 0, 1, NULL },
};
static const char *const policies[] = { "shared", "two", "least" }; // by volt_placement

static struct {
    double seconds, rate, load, workers;
} options = { .seconds = 1, .load = 70 };

// ---- a task

// Counters of the tasks on one worker; written by that worker only.
typedef struct record {
    _Alignas(LINE) uint64_t n, sum;
    histogram due, run; // latency from when it was due, and from its spawn
} record;
static record records[MAX_WORKERS];

typedef struct producer {
    _Alignas(LINE) uint64_t done, wanted; // any; tasks that ran, and at which the producer wakes
    sem_t wake;
    _Alignas(LINE) volt_rt *rt; // from here on the producer's own
    const workload *w;
    uint32_t index;
    uint64_t n, sum, random;
    double rate, seconds;
    uint64_t samples, spread, spread_max, asleep;
} producer;

typedef struct task {
    volt_frame frame;
    producer *from;
    int64_t due, called;
    uint64_t id;
    uint32_t us;
} task;

static uint64_t steps_per_us;

// A chain of multiplications: it takes CPU time, not clock time, so that preemption does not
// shorten it.
static __attribute__((noinline)) void compute(uint64_t steps) {
    uint64_t x = steps;
    while (steps-- > 0) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

static void calibrate(void) {
    enum { TRIES = 200, STEPS = 10000 };
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const int64_t start = bench_now();
        compute(STEPS);
        const int64_t took = bench_now() - start;
        if (took < best) best = took;
    }
    steps_per_us = (uint64_t)(STEPS * 1000 / (best > 0 ? best : 1)) + 1;
}

static uint64_t positive(int64_t ns) { return ns > 0 ? (uint64_t)ns : 0; }

static volt_poll task_run(volt_cx *cx, void *arg) {
    task *t = arg;
    VOLT_BEGIN(cx, t);
    record *r = &records[cx->worker_->index];
    const int64_t now = bench_now();
    histogram_add(&r->due, positive(now - t->due));
    if (t->from->w->capacity) histogram_add(&r->run, positive(now - t->called));
    r->n++;
    r->sum += t->id;
    compute(t->us * steps_per_us);
    producer *p = t->from;
    // with producer_wait: each side writes, then reads, so that one of them sees the other's write
    const uint64_t done = __atomic_add_fetch(&p->done, 1, __ATOMIC_SEQ_CST);
    if (done == __atomic_load_n(&p->wanted, __ATOMIC_SEQ_CST)) sem_post(&p->wake);
    VOLT_END(0);
}

// ---- a producer

// Waits until at most `under_way` of its tasks are under way.
static void producer_wait(producer *p, uint64_t under_way) {
    if (p->n <= under_way) return;
    __atomic_store_n(&p->wanted, p->n - under_way, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->done, __ATOMIC_SEQ_CST) < p->n - under_way) sem_wait(&p->wake);
}

static void producer_sample(producer *p) {
    uint64_t most = 0, least = UINT32_MAX, queued = volt__load_acq(&p->rt->injector.len);
    int n_asleep = 0;
    for (uint32_t i = 0; i < p->rt->n_workers; i++) {
        const int sleeps = volt__idle_is_parked(&p->rt->idle, i);
        const uint64_t load = volt__worker_load(p->rt, i);
        if (load == UINT32_MAX) continue; // the runtime knows that the worker is blocked
        if (load > most) most = load;
        if (load < least) least = load;
        n_asleep += sleeps;
        if (sleeps) queued += load;
        else if (load > 1) queued += load - 1;
    }
    if (n_asleep && queued) p->asleep++;
    const uint64_t spread = most > least ? most - least : 0;
    p->samples++;
    p->spread += spread;
    if (spread > p->spread_max) p->spread_max = spread;
}

static uint32_t producer_length(producer *p) {
    if (!p->w->one_long_in) return 1;
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (p->random >> 33) % p->w->one_long_in ? 1 : LONG_US;
}

static void producer_spawn(producer *p, int64_t due, int64_t now) {
    task t = { .from = p, .due = due, .called = now, .us = producer_length(p) };
    t.id = p->n * p->w->producers + p->index;
    const int rc = VOLT_RT_SPAWN(p->rt, NULL, task_run, t);
    if (rc < 0) bench_die("%s: %s", p->w->id, volt_strerror(rc));
    p->n++;
    p->sum += t.id;
    if (p->index == 0 && p->n % SAMPLE_EVERY == 0) producer_sample(p);
}

static void produce_closed(producer *p, int64_t end) {
    while (bench_now() < end) {
        for (uint32_t i = 0; i < p->w->batch; i++) {
            const int64_t now = bench_now();
            producer_spawn(p, now, now);
        }
        producer_wait(p, p->w->bound);
    }
}

// All tasks of a tick are due at its begin.
static void produce_paced(producer *p, int64_t start, int64_t end) {
    const double per_tick = p->rate * TICK_NS / 1e9;
    prctl(PR_SET_TIMERSLACK, 1);
    for (int64_t tick = 1;; tick++) {
        const int64_t due = start + tick * TICK_NS;
        const struct timespec t = { due / 1000000000, due % 1000000000 };
        if (due >= end) return;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        while ((double)p->n < (double)tick * per_tick) producer_spawn(p, due, bench_now());
    }
}

static void *produce(void *arg) {
    producer *p = arg;
    const int64_t start = bench_now();
    const int64_t end = start + (int64_t)(p->seconds * 1e9);
    if (p->w->capacity) produce_paced(p, start, end);
    else produce_closed(p, end);
    producer_wait(p, 0);
    return NULL;
}

// ---- a run

typedef struct run {
    const workload *w;
    volt_placement policy;
    uint32_t workers;
    double rate, seconds; // the rate: 0 in a closed loop
    // figures
    uint64_t n, sum, samples, spread, spread_max, asleep;
    int64_t wall, cpu;
    volt_counters before, after;
    record all;
} run;

static producer producers[MAX_PRODUCERS];

// Starts the producers and waits until all spawned tasks have run.
static void run_phase(run *r, volt_rt *rt, double seconds) {
    pthread_t threads[MAX_PRODUCERS];
    r->n = r->sum = r->samples = r->spread = r->spread_max = r->asleep = 0;
    memset(producers, 0, sizeof producers);
    memset(records, 0, sizeof records);
    r->cpu = bench_cpu();
    r->wall = bench_now();
    for (uint32_t i = 0; i < r->w->producers; i++) {
        producer *p = &producers[i];
        *p = (producer){ .rt = rt, .w = r->w, .index = i, .random = i };
        p->rate = r->rate;
        p->seconds = seconds;
        sem_init(&p->wake, 0, 0);
        if (pthread_create(&threads[i], NULL, produce, p) != 0) bench_die("no thread");
    }
    for (uint32_t i = 0; i < r->w->producers; i++) pthread_join(threads[i], NULL);
    r->wall = bench_now() - r->wall;
    r->cpu = bench_cpu() - r->cpu;
}

static int is_asleep(const volt_rt *rt) {
    for (uint32_t i = 0; i < rt->n_workers; i++)
        if (volt__started(rt) <= i || !volt__idle_is_parked(&rt->idle, i)) return 0;
    return 1;
}
// Waits until all workers sleep: their counters are then published, and no thread uses a record.
static void settle(volt_rt *rt) {
    const struct timespec ms = { .tv_nsec = 1000000 };
    const int64_t limit = bench_now() + VOLT_S(20);
    while (!is_asleep(rt)) {
        if (bench_now() > limit) bench_die("the workers do not come to rest");
        nanosleep(&ms, NULL);
    }
}

static void run_collect(run *r) {
    memset(&r->all, 0, sizeof r->all);
    for (uint32_t i = 0; i < r->workers; i++) {
        r->all.n += records[i].n;
        r->all.sum += records[i].sum;
        histogram_merge(&r->all.due, &records[i].due);
        histogram_merge(&r->all.run, &records[i].run);
    }
    for (uint32_t i = 0; i < r->w->producers; i++) {
        const producer *p = &producers[i];
        r->n += p->n;
        r->sum += p->sum;
        r->samples += p->samples;
        r->spread += p->spread;
        r->asleep += p->asleep;
        if (p->spread_max > r->spread_max) r->spread_max = p->spread_max;
        if (p->done != p->n) bench_die("%s: a producer misses tasks", r->w->id);
    }
    const uint64_t spawned = r->after.spawned - r->before.spawned;
    const uint64_t completed = r->after.completed - r->before.completed;
    const uint64_t held = r->w->is_held ? 1 : 0;
    if (r->all.n != r->n || r->all.sum != r->sum || r->all.due.n != r->n ||
        spawned != r->n + held || completed != r->n + held)
        bench_die("%s: tasks were lost or run twice", r->w->id);
}

// Holds its worker inside one poll, as a blocking call does; the runtime is not told.
typedef struct holder {
    volt_frame frame;
    sem_t *is_held, *may_go;
} holder;
static volt_poll holder_run(volt_cx *cx, void *arg) {
    holder *h = arg;
    VOLT_BEGIN(cx, h);
    sem_post(h->is_held);
    while (sem_wait(h->may_go) < 0) {}
    VOLT_END(0);
}

static void run_held(run *r, volt_rt *rt) {
    sem_t is_held, may_go;
    sem_init(&is_held, 0, 0);
    sem_init(&may_go, 0, 0);
    const holder h = { .is_held = &is_held, .may_go = &may_go };
    if (VOLT_RT_SPAWN(rt, NULL, holder_run, h) < 0) bench_die("no memory");
    while (sem_wait(&is_held) < 0) {}
    run_phase(r, rt, r->seconds);
    sem_post(&may_go);
    settle(rt);
    sem_destroy(&is_held);
    sem_destroy(&may_go);
}

static void run_once(run *r) {
    volt_rt *rt = NULL;
    const volt_config c = { .workers = r->workers, .start_all_workers = 1, .placement = r->policy };
    int rc = volt_create(&c, &rt);
    if (rc < 0) bench_die("volt_create: %s", volt_strerror(rc));
    settle(rt);
    run_phase(r, rt, r->seconds / 4); // warm-up
    settle(rt);
    volt_stats(rt, &r->before);
    if (r->w->is_held) {
        run_held(r, rt);
    } else {
        run_phase(r, rt, r->seconds);
        settle(rt);
    }
    volt_stats(rt, &r->after);
    run_collect(r);
    if (volt_shutdown(rt, VOLT_S(20)) != 0 || volt_destroy(rt) != 0)
        bench_die("%s: the runtime does not end", r->w->id);
}

// ---- output

static void print_header(void) {
    printf("%-16s %-7s %2s %9s %10s %10s %10s %10s %8s %6s %6s %8s %8s\n", "workload", "policy",
           "w", "tasks/s", "p50", "p99", "p99.9", "max", "spread", "asleep", "cpu", "wakes",
           "steals");
}

static double per_task(const run *r, uint64_t n) { return r->n ? (double)n / (double)r->n : 0; }
#define DELTA(r_, counter_) ((r_)->after.counter_ - (r_)->before.counter_)

static void print_json(const run *r, double per_s, double spread, double asleep) {
    const histogram *h = &r->all.due, *from_spawn = r->w->capacity ? &r->all.run : h;
    printf("{\"workload\":\"%s\",\"policy\":\"%s\",\"workers\":%u,\"tasks\":%" PRIu64
           ",\"rate\":%.0f,\"per_s\":%.0f",
           r->w->id, policies[r->policy], r->workers, r->n, r->rate, per_s);
    printf(",\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"p999_ns\":%.0f,\"max_ns\":%" PRIu64
           ",\"run_p50_ns\":%.0f,\"run_p99_ns\":%.0f",
           histogram_ns(h, 0.5), histogram_ns(h, 0.99), histogram_ns(h, 0.999), h->max,
           histogram_ns(from_spawn, 0.5), histogram_ns(from_spawn, 0.99));
    printf(",\"spread\":%.2f,\"spread_max\":%" PRIu64 ",\"asleep\":%.3f,\"cpu_ns\":%.1f", spread,
           r->spread_max, asleep, per_task(r, (uint64_t)r->cpu));
#define COUNTER(name_) \
    printf(",\"" #name_ "\":%.6f", per_task(r, DELTA(r, name_)))
    COUNTER(unparks);
    COUNTER(spurious_unparks);
    COUNTER(parks);
    COUNTER(searches);
    COUNTER(steals);
    COUNTER(stolen);
    COUNTER(inbox_tasks);
    COUNTER(wakes_remote);
    COUNTER(rescued);
#undef COUNTER
    printf("}\n");
}

static void print(const run *r) {
    const histogram *h = &r->all.due;
    const double per_s = (double)r->n * 1e9 / (double)r->wall;
    const double spread = r->samples ? (double)r->spread / (double)r->samples : 0;
    const double asleep = r->samples ? (double)r->asleep / (double)r->samples : 0;
    printf("%-16s %-7s %2u %9.0f %10.0f %10.0f %10.0f %10" PRIu64, r->w->id, policies[r->policy],
           r->workers, per_s, histogram_ns(h, 0.5), histogram_ns(h, 0.99), histogram_ns(h, 0.999),
           h->max);
    printf(" %8.1f %6.2f %6.0f %8.5f %8.5f\n", spread, asleep, per_task(r, (uint64_t)r->cpu),
           per_task(r, DELTA(r, unparks)), per_task(r, DELTA(r, steals)));
    print_json(r, per_s, spread, asleep);
    fflush(stdout);
}

// ---- main

static const workload *workload_of(const char *id) {
    for (size_t i = 0; i < BENCH_COUNT(workloads); i++)
        if (strcmp(workloads[i].id, id) == 0) return &workloads[i];
    bench_die("%s: no such workload", id);
}

static double rate_of(const workload *w, uint32_t workers) {
    static run r; // too large for a stack
    if (!w->capacity) return 0;
    if (options.rate > 0) return options.rate;
    r = (run){ .w = workload_of(w->capacity), .workers = workers, .seconds = options.seconds / 2 };
    run_once(&r);
    return (double)r.n * 1e9 / (double)r.wall * options.load / 100;
}

static void measure(const workload *w, const char *policy_or_null, uint32_t workers) {
    static run r;
    if (w->is_held && workers < 2) bench_die("%s: no worker is left to run tasks", w->id);
    const double rate = rate_of(w, workers);
    for (size_t i = 0; i < BENCH_COUNT(policies); i++) {
        if (policy_or_null && strcmp(policy_or_null, policies[i]) != 0) continue;
        r = (run){ .w = w, .policy = (volt_placement)i, .workers = workers };
        r.rate = rate;
        r.seconds = options.seconds;
        run_once(&r);
        print(&r);
    }
}

static uint32_t default_workers(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0) return 1;
    const int n = CPU_COUNT(&set);
    return n < 4 ? (uint32_t)n : 4;
}

int main(int argc, char **argv) {
    const bench_option list[] = {
        { "--seconds", &options.seconds, 0.01, 3600 },
        { "--rate", &options.rate, 0, 1e9 },
        { "--load", &options.load, 1, 1000 },
    };
    const int n = bench_options(argc, argv, list, BENCH_COUNT(list));
    const workload *one = n >= 1 && strcmp(argv[1], "all") != 0 ? workload_of(argv[1]) : NULL;
    const char *policy = n >= 2 && strcmp(argv[2], "all") != 0 ? argv[2] : NULL;
    const uint32_t workers =
        n >= 3 ? (uint32_t)bench_number("workers", argv[3], 1, MAX_WORKERS) : default_workers();
    size_t known = 0;
    while (policy && known < BENCH_COUNT(policies) && strcmp(policy, policies[known]) != 0) known++;
    if (known == BENCH_COUNT(policies)) bench_die("%s: shared, two, least or all", policy);
    calibrate();
    print_header();
    if (one) measure(one, policy, workers);
    for (size_t i = 0; !one && i < BENCH_COUNT(workloads); i++) {
        if (workloads[i].is_held && workers < 2) continue;
        if (!strstr(workloads[i].id, "capacity")) measure(&workloads[i], policy, workers);
    }
    return 0;
}
