// SPDX-License-Identifier: MIT OR 0BSD
// The effect of dumps and counters on the observed program: the echo server of echo.h under the
// load of load.h, in a process with 100,000 more tasks that sleep, with and without a plain thread
// that looks.
//
//   dump [LOOK...] [--pairs 21] [--seconds 1] [--every 1] [--tasks 100000] [--workers 1]
//        [--conns 50]
//
// Default: all looks. Looks:
//   text, json   volt_dump to /dev/null, as text and as JSON
//   stats        volt_stats
//   trace        volt_trace to /dev/null; in a build with VOLT_TRACE
//   spin         no look: the thread computes for as long as a `text` takes. Its effect is that of
//                one more thread, not of a look
// With :all after its name a look is repeated without a pause; `spin:all` never stops.
//
// A pair is two runs of the load, of --seconds each, with looks and without; the order alternates
// from pair to pair. A look is taken every --every seconds, in the middle of the interval. Printed
// are the number of looks, wall time and CPU time of one (medians), and of the load, in lines:
//   p50, p99   of a request, in us
//   rate       requests a second
//   cpu        CPU time per request of all threads of client and server except the looking one, in
//              us: the cost of looks for the threads that they take no CPU from
// without, with: medians of the runs. ratio: with / without, the median of the pairs' ratios, and
// an interval that holds it at 95 %, from the order of the ratios alone (of six pairs or more). On
// a machine whose CPUs are all busy a look takes their time, and p99 shows that, too; see `spin`.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "../servers/echo.h"
#include "../load/load.h"
#include <fcntl.h>
#include <sys/eventfd.h>

enum { LOOKS_MAX = 65536 };

static struct {
    double pairs, seconds, every, tasks, workers, conns;
} options = {
    .pairs = 21, .seconds = 1, .every = 1, .tasks = 100000, .workers = 1, .conns = 50
};

// ---- the observed program

typedef struct sleeper {
    volt_frame frame;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, VOLT_S(86400)));
    VOLT_END(0);
}

typedef struct spawner { // a task, so that the sleepers belong to a worker like others
    volt_frame frame;
    uint32_t n;
    int rc;
} spawner;
static volt_poll spawner_run(volt_cx *cx, void *arg) {
    spawner *s = arg;
    VOLT_BEGIN(cx, s);
    for (; s->n > 0 && s->rc == 0; s->n--) {
        s->rc = VOLT_SPAWN(cx, NULL, sleeper_run, (sleeper){ .frame = { { 0 } } });
        if (s->n % 256 == 0) VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(s->rc);
}

static volt_rt *rt;

static void serve(server *s) {
    volt_addr at;
    const volt_config c = { .workers = (uint32_t)options.workers, .start_all_workers = 1 };
    spawner sp = { .n = (uint32_t)options.tasks };
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    s->signals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->listener < 0 || s->signals < 0 || volt_local_addr(s->listener, &at) < 0)
        bench_die("no socket");
    load_options.port = volt_addr_port(&at);
    int rc = volt_create(&c, &rt);
    if (rc == 0) rc = volt_block_on(rt, spawner_run, &sp);
    if (rc == 0) rc = VOLT_RT_SPAWN(rt, NULL, server_run, *s);
    if (rc < 0) bench_die("%s", volt_strerror(rc));
}

// ---- the looking thread

typedef struct look {
    const char *id;
    int (*fn)(void);
} look;
static int null_fd;
static uint64_t seen_lines; // of the last text
static double spin_ns;      // as long as a text takes

static int look_text(void) { return volt_dump(rt, null_fd, 0); }
static int look_json(void) { return volt_dump(rt, null_fd, VOLT_DUMP_JSON); }
static int look_trace(void) { return volt_trace(rt, null_fd); }
static int look_stats(void) {
    volt_counters c;
    volt_stats(rt, &c);
    return c.spawned >= (uint64_t)options.tasks ? 0 : -EBADMSG;
}
static int look_spin(void) {
    const int64_t end = bench_now() + (int64_t)spin_ns;
    while (bench_now() < end) {}
    return 0;
}
static const look looks[] = {
    { "text", look_text },   { "json", look_json }, { "stats", look_stats },
    { "trace", look_trace }, { "spin", look_spin },
};

typedef struct looker {
    pthread_t thread;
    const look *look;
    int is_always, is_over; // over: any
    double ms[LOOKS_MAX], cpu_ms[LOOKS_MAX];
    size_t n_ms;
    int64_t cpu; // of its thread; when it has ended
    uint64_t n;
} looker;

static int64_t thread_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static void looker_look(looker *l) {
    const int64_t start = bench_now(), cpu = thread_cpu();
    const int rc = l->look->fn();
    if (rc < 0) bench_die("%s: %s", l->look->id, volt_strerror(rc));
    l->n++;
    if (l->n_ms == LOOKS_MAX) return;
    l->ms[l->n_ms] = (double)(bench_now() - start) / 1e6;
    l->cpu_ms[l->n_ms++] = (double)(thread_cpu() - cpu) / 1e6;
}
static void *looker_main(void *arg) {
    looker *l = arg;
    const int64_t every = (int64_t)(options.every * 1e9);
    int64_t due = bench_now() + every / 2;
    while (!__atomic_load_n(&l->is_over, __ATOMIC_ACQUIRE)) {
        const struct timespec t = { .tv_sec = due / 1000000000, .tv_nsec = due % 1000000000 };
        if (!l->is_always) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        due += every;
        if (!__atomic_load_n(&l->is_over, __ATOMIC_ACQUIRE)) looker_look(l);
    }
    l->cpu = thread_cpu();
    return NULL;
}

// A text must have a line for each task.
static int count_lines(void *user, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) *(uint64_t *)user += text[i] == '\n';
    return 0;
}
static void check_text(void) {
    seen_lines = 0;
    const int rc = volt_dump_to(rt, count_lines, &seen_lines, 0);
    if (rc < 0 || seen_lines < (uint64_t)options.tasks + 1) bench_die("a dump lacks tasks");
}

// ---- pairs

enum { P50, P99, RATE, CPU, FIGURES };
static const char *const figure_names[FIGURES] = { "p50", "p99", "rate", "cpu" };
typedef struct figures {
    double of[FIGURES];
    uint64_t requests;
} figures;

static figures run_load(void) {
    const size_t n = (size_t)options.conns;
    load_conn *conns = load_connections(n);
    load_thread *w = load_sum(load_run(1, conns, n), 1);
    const double seconds = (double)(w->last - w->start) / 1e9;
    figures f = { .requests = w->latency.n };
    f.of[P50] = histogram_ns(&w->latency, 0.5) / 1000;
    f.of[P99] = histogram_ns(&w->latency, 0.99) / 1000;
    f.of[RATE] = (double)f.requests / (seconds > 0 ? seconds : 1);
    if (w->errors || !w->latency.n) bench_die("the load found errors");
    free(w);
    free(conns);
    return f;
}
// l: NULL: no looks.
static figures run(looker *l) {
    const int64_t cpu = bench_cpu();
    if (l) {
        l->is_over = 0;
        if (pthread_create(&l->thread, NULL, looker_main, l) != 0) bench_die("pthread_create");
    }
    figures f = run_load();
    if (l) {
        __atomic_store_n(&l->is_over, 1, __ATOMIC_RELEASE);
        pthread_join(l->thread, NULL);
    }
    f.of[CPU] = (double)(bench_cpu() - cpu - (l ? l->cpu : 0)) / 1000 / (double)f.requests;
    return f;
}

typedef struct pairs {
    double without[FIGURES][BENCH_REPS_MAX], with[FIGURES][BENCH_REPS_MAX];
    double ratio[FIGURES][BENCH_REPS_MAX];
    size_t n;
} pairs;
static void pairs_add(pairs *p, const figures *without, const figures *with) {
    for (int k = 0; k < FIGURES; k++) {
        p->without[k][p->n] = without->of[k];
        p->with[k][p->n] = with->of[k];
        p->ratio[k][p->n] = with->of[k] / without->of[k];
    }
    p->n++;
}
static void print_figure(const char *id, pairs *p, int k) {
    const double without = bench_median(p->without[k], p->n), with = bench_median(p->with[k], p->n);
    const double ratio = bench_median(p->ratio[k], p->n);
    const size_t rank = bench_rank(p->n);
    const double low = rank ? p->ratio[k][rank - 1] : 0;
    const double high = rank ? p->ratio[k][p->n - rank] : 0;
    printf("%-10s %-6s %10.1f %10.1f %8.3f", id, figure_names[k], without, with, ratio);
    if (rank) printf("  %.3f to %.3f", low, high);
    printf("\n");
    if (getenv("BENCH_JSON"))
        printf("{\"look\":\"%s\",\"figure\":\"%s\",\"pairs\":%zu,\"without\":%.2f,\"with\":%.2f,"
               "\"ratio\":%.4f,\"low\":%.4f,\"high\":%.4f}\n",
               id, figure_names[k], p->n, without, with, ratio, low, high);
}

static void measure(const look *what, int is_always) {
    static pairs p;
    static looker l;
    char id[32];
    figures with, without;
    p.n = 0;
    l = (looker){ .look = what, .is_always = is_always };
    while (p.n < (size_t)options.pairs) {
        if (p.n % 2) with = run(&l), without = run(NULL);
        else without = run(NULL), with = run(&l);
        pairs_add(&p, &without, &with);
    }
    if (l.n == 0)
        bench_die("%s: none was taken: --seconds must be more than half of --every", what->id);
    snprintf(id, sizeof id, "%s%s", what->id, is_always ? ":all" : "");
    const double ms = bench_median(l.ms, l.n_ms), cpu_ms = bench_median(l.cpu_ms, l.n_ms);
    printf("%-10s %" PRIu64 " looks, %.4f ms each, CPU time %.4f ms\n", id, l.n, ms, cpu_ms);
    for (int k = 0; k < FIGURES; k++) print_figure(id, &p, k);
    fflush(stdout);
}

// ---- main

static const look *look_of(const char *id, int *is_always) {
    const char *end = strchr(id, ':');
    const size_t len = end ? (size_t)(end - id) : strlen(id);
    *is_always = end != NULL;
    for (size_t i = 0; i < BENCH_COUNT(looks) && (!end || strcmp(end, ":all") == 0); i++)
        if (strlen(looks[i].id) == len && memcmp(looks[i].id, id, len) == 0) return &looks[i];
    bench_die("%s: text, json, stats, trace or spin, with :all or without", id);
}
static void calibrate(void) {
    double ms[5];
    for (size_t i = 0; i < BENCH_COUNT(ms); i++) {
        const int64_t start = bench_now();
        if (look_text() < 0) bench_die("no dump");
        ms[i] = (double)(bench_now() - start);
    }
    spin_ns = bench_median(ms, BENCH_COUNT(ms));
}

int main(int argc, char **argv) {
    const bench_option list[] = {
        { "--pairs", &options.pairs, 1, BENCH_REPS_MAX },
        { "--seconds", &options.seconds, 0.1, 60 },
        { "--every", &options.every, 0.1, 60 },
        { "--tasks", &options.tasks, 0, 1e7 },
        { "--workers", &options.workers, 1, 64 },
        { "--conns", &options.conns, 1, 10000 },
    };
    const int n = bench_options(argc, argv, list, BENCH_COUNT(list));
    server s = { .listener = -1 };
    int is_always = 0;
    for (int i = 1; i <= n; i++) (void)look_of(argv[i], &is_always);
    load_options.seconds = options.seconds;
    null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    serve(&s);
    check_text();
    calibrate();
    (void)run_load(); // warm-up
    printf("%-10s %-6s %10s %10s %8s  interval\n", "look", "figure", "without", "with", "ratio");
    for (int i = 1; i <= n; i++) {
        const look *l = look_of(argv[i], &is_always);
        measure(l, is_always);
    }
    for (size_t i = 0; n == 0 && i < BENCH_COUNT(looks); i++)
        if (VOLT_TRACE || looks[i].fn != look_trace) measure(&looks[i], 0);
    check_text();
    if (volt_shutdown(rt, VOLT_S(20)) != 0 || volt_destroy(rt) != 0) bench_die("it does not end");
    return 0;
}
