// SPDX-License-Identifier: MIT OR 0BSD
// Runs volt under simulation, seed after seed: random programs (grammar.h) and fixed ones (apps.h).
//
//   make sim                       about half a minute from seed 0 on; FROM=n: from another one
//   make sim FULL=1 SECONDS=3600   for a given time, from a seed that the clock gives
//   make sim SEED=n [TRACE=1]      one seed again; with a trace of its calls, switches and tasks
//
// Even seeds run the header as it is, odd ones the small build (rings of 4 tasks, wheels of 4
// slots). PROGRAM=name runs that one only. A failing seed is run again with fewer tasks and faults
// as long as it fails; the smallest case is printed as a command. Arguments of the program itself:
// name=number, see main below.
#define VOLT_IMPLEMENTATION
#include "apps.h"
#include "grammar.h"
#include <time.h>

enum { MOST_FAILURES = 3, TWICE_EVERY = 8, LAST_STEPS = 1500, HANG_SECONDS = 30 };

typedef struct case_ { // the parameters of a run
    uint64_t seed;
    int most_tasks;
    int app; // -1: a random program
    sim_options opt;
} case_;

typedef struct totals {
    uint64_t seeds, twice, failures, points, switches, calls, faults[SIM_N_FAULTS];
    double virtual_s;
    uint64_t n_app[32], n_policy[SIM_N_POLICIES], n_fine;
} totals;

// ---- programs

typedef struct app {
    const char *name;
    void (*fn)(void);
} app;
static const app apps[] = {
#define APP_ROW(name_) {#name_, app_##name_},
    APPS(APP_ROW)};
enum { N_APPS = sizeof apps / sizeof apps[0] };

static const char *app_name(int i) { return i < 0 ? "random" : apps[i].name; }
static void run_program(void *arg) {
    const case_ *c = (const case_ *)arg;
    if (c->app < 0) {
        random_program(c->seed, c->most_tasks);
        return;
    }
    program_init(c->seed);
    apps[c->app].fn();
}
static int run_case(case_ *c, sim_report *r) {
    alarm(HANG_SECONDS);
    return sim_run(c->seed, &c->opt, run_program, c, r);
}
// One seed in three runs an application, unless one is asked for.
static int only_app = N_APPS;
static int draw_app(uint64_t seed) {
    if (only_app < N_APPS) return only_app;
    uint32_t x = (uint32_t)(sim_mix(seed ^ UINT64_C(0xa99)) >> 33) % (N_APPS * 3);
    return x < N_APPS ? (int)x : -1;
}

// ---- a run that never reaches a point again, or crashes

static uint64_t seed_now, n_tried;
static void on_signal(int sig) {
    char text[160];
    int n = snprintf(text, sizeof text,
                     "FAILED: seed %" PRIu64 ": signal %d%s\nfound after %" PRIu64 " seeds\n",
                     seed_now, sig, sig == SIGALRM ? ": hangs" : "", n_tried);
    if (write(STDOUT_FILENO, text, (size_t)n) < 0) _exit(4);
    _exit(3);
}
static void catch_signals(void) {
    static char stack[65536];
    const stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = SA_ONSTACK;
    sigaltstack(&alt, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) sigaction(signals[i], &a, NULL);
}

// ---- shrinking: leaves out all that the failure does not need

static int still_fails(const case_ *c) {
    case_ copy = *c;
    sim_report r;
    return run_case(&copy, &r) < 0;
}
static void shrink(case_ *c) {
    for (case_ less = *c; c->app < 0 && less.most_tasks > 1;) {
        less.most_tasks /= 2;
        if (!still_fails(&less)) break;
        *c = less;
    }
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        case_ less = *c;
        less.opt.faults_off |= 1u << i;
        if (still_fails(&less)) *c = less;
    }
    for (int i = 0; i < 16; i++) {
        case_ less = *c;
        less.opt.calm_after = 65536u >> i;
        if (!still_fails(&less)) break;
        *c = less;
    }
}
static void print_again(const case_ *c) {
    printf("  again: make sim SEED=%" PRIu64 " TRACE=1", c->seed);
    if (c->most_tasks != MOST_TASKS) printf(" TASKS=%d", c->most_tasks);
    if (c->opt.faults_off) printf(" OFF=%u", c->opt.faults_off);
    if (only_app < N_APPS) printf(" PROGRAM=%s", app_name(only_app));
    if (c->opt.calm_after) printf(" CALM=%" PRIu64, c->opt.calm_after);
    printf("\n");
}
static void print_last_steps(const case_ *c) {
    case_ copy = *c;
    sim_report r;
    run_case(&copy, &r);
    copy.opt.is_traced = 1;
    copy.opt.trace_from = r.points > LAST_STEPS ? r.points - LAST_STEPS : 0;
    printf("  its last steps: decisions, time, thread\n");
    run_case(&copy, &r);
}
static void report_failure(const case_ *c, const sim_report *r, int is_brief) {
    case_ least = *c;
    printf("FAILED: seed %" PRIu64 " (%s): %s\n", c->seed, app_name(c->app), r->failure);
    print_again(c);
    if (is_brief) return;
    shrink(&least);
    printf("  shrunk:\n");
    print_again(&least);
    print_last_steps(&least);
}

// ---- many seeds

static double seconds_now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static void add_up(totals *t, const case_ *c, const sim_report *r) {
    t->points += r->points;
    t->switches += r->switches;
    t->calls += r->calls;
    t->virtual_s += (double)r->virtual_ns / 1e9;
    t->n_app[c->app + 1]++;
    t->n_policy[r->policy]++;
    t->n_fine += (uint64_t)r->is_fine;
    for (int i = 0; i < SIM_N_FAULTS; i++) t->faults[i] += r->faults[i];
}
// The same seed must give the same run.
static void check_twice(totals *t, case_ *c, sim_report *r) {
    sim_report again;
    t->twice++;
    int rc = run_case(c, &again);
    add_up(t, c, &again);
    if (rc == 0 && again.hash == r->hash) return;
    snprintf(r->failure, sizeof r->failure, "the second run differs: hashes %" PRIx64 ", %" PRIx64,
             r->hash, again.hash);
    t->failures++;
    report_failure(c, r, 1);
}
static void run_seed(totals *t, case_ *c, int is_brief) {
    sim_report r;
    seed_now = c->seed;
    n_tried++;
    c->app = draw_app(c->seed);
    t->seeds++;
    int rc = run_case(c, &r);
    add_up(t, c, &r);
    if (rc < 0) {
        t->failures++;
        report_failure(c, &r, is_brief);
    } else if (t->seeds % TWICE_EVERY == 1) {
        check_twice(t, c, &r);
    }
}
// Rates are per second of processor time: the machine may be shared.
static void print_totals(const totals *t, double wall, double s, const char *build) {
    static const char *const policies[] = {
#define POLICY_NAME(name_) #name_,
        SIM_POLICIES(POLICY_NAME)};
    printf("%s build: %" PRIu64 " seeds in %.1f s, %" PRIu64 " of them twice; failures: %" PRIu64
           "\n",
           build, t->seeds, wall, t->twice, t->failures);
    printf("  decisions      %13" PRIu64 "  %.1f million a second\n", t->points,
           (double)t->points / s / 1e6);
    printf("  switches       %13" PRIu64 "  %.1f million a second\n", t->switches,
           (double)t->switches / s / 1e6);
    printf("  kernel calls   %13" PRIu64 "\n", t->calls);
    printf("  virtual time   %13.2f  years\n", t->virtual_s / 86400 / 365.25);
    printf("  schedules     ");
    for (int i = 0; i < SIM_N_POLICIES; i++) printf(" %s %" PRIu64, policies[i], t->n_policy[i]);
    printf("; switching at atomics %" PRIu64 "\n  programs      ", t->n_fine);
    for (int i = -1; i < N_APPS; i++) printf(" %s %" PRIu64, app_name(i), t->n_app[i + 1]);
    printf("\n  faults\n");
    for (int i = 0; i < SIM_N_FAULTS; i++)
        printf("    %-34s %11" PRIu64 "\n", sim_fault_names[i], t->faults[i]);
}

// ---- arguments

typedef struct arguments {
    uint64_t seed, from, seconds, trace, tasks, off, calm, brief, seeds;
    int has_seed;
} arguments;
static int find_app(const char *name) {
    for (int i = -1; i < N_APPS; i++)
        if (strcmp(name, app_name(i)) == 0) return i;
    fprintf(stderr, "sim: %s: no such program\n", name);
    exit(2);
}
static void parse(arguments *a, int argc, char **argv) {
    struct {
        const char *name;
        uint64_t *value;
    } all[] = {{"seed=", &a->seed},   {"from=", &a->from},   {"seconds=", &a->seconds},
               {"trace=", &a->trace}, {"tasks=", &a->tasks}, {"off=", &a->off},
               {"calm=", &a->calm},   {"brief=", &a->brief}, {"seeds=", &a->seeds}};
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "program=", 8) == 0) {
            only_app = find_app(argv[i] + 8);
            continue;
        }
        size_t k = 0, n = sizeof all / sizeof all[0];
        while (k < n && strncmp(argv[i], all[k].name, strlen(all[k].name)) != 0) k++;
        if (k == n) {
            fprintf(stderr, "sim: %s: unknown argument\n", argv[i]);
            exit(2);
        }
        *all[k].value = strtoull(argv[i] + strlen(all[k].name), NULL, 0);
        if (k == 0) a->has_seed = 1;
    }
}
static case_ make_case(const arguments *a, uint64_t seed) {
    case_ c;
    memset(&c, 0, sizeof c);
    c.seed = seed;
    c.most_tasks = a->tasks > 0 && a->tasks < MOST_TASKS ? (int)a->tasks : MOST_TASKS;
    c.opt.faults_off = (uint32_t)a->off;
    c.opt.calm_after = a->calm;
    c.opt.is_traced = a->trace != 0;
    return c;
}
static int run_one(const arguments *a) {
    case_ c = make_case(a, a->seed);
    sim_report r;
    seed_now = a->seed;
    c.app = draw_app(a->seed);
    int rc = run_case(&c, &r);
    printf("seed %" PRIu64 " (%s): %s; %" PRIu64 " decisions, hash %016" PRIx64 "\n", a->seed,
           app_name(c.app), rc < 0 ? r.failure : "passed", r.points, r.hash);
    return rc < 0;
}
int main(int argc, char **argv) {
    arguments a;
    totals t;
    memset(&a, 0, sizeof a);
    memset(&t, 0, sizeof t);
    a.seconds = 15;
    parse(&a, argc, argv);
    catch_signals();
    if (a.has_seed) return run_one(&a);
#ifdef VOLT_TEST_SMALL
    const char *build = "small";
    uint64_t seed = a.from | 1;
#else
    const char *build = "normal";
    uint64_t seed = a.from + (a.from & 1);
#endif
    clockid_t clock = a.brief ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double start = seconds_now(clock), end = start + (double)a.seconds;
    while (seconds_now(clock) < end && t.failures < MOST_FAILURES &&
           (!a.seeds || t.seeds < a.seeds)) {
        case_ c = make_case(&a, seed);
        run_seed(&t, &c, (int)a.brief);
        if (a.brief && t.failures) break;
        seed += 2;
    }
    if (!a.brief)
        print_totals(&t, seconds_now(clock) - start, seconds_now(CLOCK_PROCESS_CPUTIME_ID), build);
    else
        printf("%s after %" PRIu64 " seeds\n", t.failures ? "found" : "not found", t.seeds);
    return t.failures != 0;
}
