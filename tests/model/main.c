// SPDX-License-Identifier: MIT OR 0BSD
// The runner: executes scenarios until their search has ended and compares what it found with
// expected.txt. One program per scenario file.
//
//   build/model/<cc>/model_x [-l] [-e expected.txt] [scenario...]
//   build/model/<cc>/model_x -r 'scenario:choices'    executes once and prints every event
//     -l  also those marked is_long      -s seed   of SAMPLED scenarios
//     -n  explores each once more without reduction, and fails unless both saw the same graphs
//     -f  stops at the first that fails
//     -q  one line of verdict only: for mutants
// Each line: name, class, executions (of them cut off as equal to others), distinct execution
// graphs, seconds of processor time. The last line: "<program>: N passed, N failed".
#include "internal.h"
#include <stdarg.h>
#include <sys/time.h>
#include <time.h>

enum { MAX_WHAT = 8, SECONDS_MAX = 80, SECONDS_MAX_LONG = 4000, PROGRESS_SECONDS = 20 };
static const uint64_t graphs_max = UINT64_C(1) << 25;

const vmc_scenario *scenario;
static vmc_scenario *scenarios, **last = &scenarios;
static struct {
    const char *expected, *replay;
    uint64_t seed;
    int is_long, is_quiet, is_compared, stops_at_first;
} options = {.seed = 1};

typedef struct tally {
    vmc_result result;
    uint64_t n_pruned, n_dismissed;
    uint64_t graph_sum; // of the hashes: differs if the set differs
    double seconds;
    const char *what[MAX_WHAT]; // must happen
    uint8_t has_happened[MAX_WHAT];
    int n_what;
} tally;
static tally now;

void vmc_register(vmc_scenario *s) {
    *last = s;
    last = &s->next;
}
const vmc_scenario *vmc_current(void) { return scenario; }
void vmc_outcome(const char *format, ...) {
    vmc_result *r = &now.result;
    char text[VMC_OUTCOME_TEXT];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    int at = 0, order = 1;
    while (at < r->n_outcomes && (order = strcmp(r->outcomes[at].text, text)) < 0) at++;
    if (at == r->n_outcomes || order != 0) {
        if (r->n_outcomes == VMC_OUTCOMES) vmc_fail("limit: more than %d outcomes", VMC_OUTCOMES);
        memmove(&r->outcomes[at + 1], &r->outcomes[at],
                (size_t)(r->n_outcomes++ - at) * sizeof r->outcomes[0]);
        memcpy(r->outcomes[at].text, text, sizeof text);
        r->outcomes[at].count = 0;
    }
    r->outcomes[at].count++;
}
void vmc_must_happen(const char *what) {
    for (int i = 0; i < now.n_what; i++)
        if (!strcmp(now.what[i], what)) return;
    if (now.n_what == MAX_WHAT) vmc_fail("limit: more than %d VMC_MUST_HAPPEN", MAX_WHAT);
    now.what[now.n_what++] = what;
}
void vmc_reached(const char *what) {
    for (int i = 0; i < now.n_what; i++)
        if (!strcmp(now.what[i], what)) now.has_happened[i] = 1;
}

// ---- the set of execution graphs seen, as 64-bit hashes

static uint64_t *graphs, graphs_cap;
static int graph_add(uint64_t h) {
    uint64_t at = mix(h, 3) & (graphs_cap - 1);
    for (; graphs[at]; at = (at + 1) & (graphs_cap - 1))
        if (graphs[at] == h) return 0;
    graphs[at] = h;
    return 1;
}
static void graphs_resize(uint64_t cap) {
    uint64_t *old = graphs, old_cap = graphs_cap;
    graphs = calloc(cap, sizeof *graphs);
    graphs_cap = cap;
    if (!graphs) {
        perror("calloc");
        exit(2);
    }
    for (uint64_t i = 0; i < old_cap; i++)
        if (old[i]) graph_add(old[i]);
    free(old);
}
static void graph_note(void) {
    uint64_t h = memory_hash() | 1;
    if (graph_add(h)) {
        now.result.n_graphs++;
        now.graph_sum += mix(h, 4);
    }
    if (now.result.n_graphs * 2 > graphs_cap) graphs_resize(graphs_cap * 2);
}

// ---- one execution

static void body(void *arg) {
    (void)arg;
    scenario->run();
}
static void execute(void) {
    vm.execution++;
    memory_reset();
    shadow_reset();
    world_reset();
    search_reset();
    thread_start(body, NULL);
    vm.is_running = 1;
    vm.verdict = RUNNING;
    schedule_first();
    vm.is_running = 0;
}
static double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // others may be using the machine, too
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// ---- one scenario

// After `seconds` seconds of processor time without another call of this, SIGVTALRM: report.c.
static void watch_progress(int seconds) {
    struct itimerval t = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_VIRTUAL, &t, NULL);
}
static int has_failed(const char *why) {
    snprintf(failure_text, sizeof failure_text, "%s", why);
    return 1;
}
// All executions. 1: an error was found, its text is in `failure_text`.
static int explore(void) {
    double start = clock_seconds();
    memset(&now, 0, sizeof now);
    memset(graphs, 0, graphs_cap * sizeof *graphs);
    search_start(options.seed);
    world_hit_timer_bound = 0;
    for (;;) {
        if (now.result.n_executions % 4096 == 0) {
            watch_progress(PROGRESS_SECONDS);
            now.seconds = clock_seconds() - start;
            if (now.seconds > (options.is_long ? SECONDS_MAX_LONG : SECONDS_MAX))
                return has_failed("limit: took too long");
        }
        execute();
        now.result.n_executions++;
        if (vm.verdict == FAILED) return 1;
        if (vm.verdict == COMPLETE) graph_note();
        now.n_pruned += vm.verdict == PRUNED;
        now.n_dismissed += vm.verdict == DISMISSED;
        if (now.result.n_graphs > graphs_max) return has_failed("limit: too many execution graphs");
        if (scenario->class == VMC_SAMPLED && now.result.n_executions >= scenario->samples) break;
        if (!search_next()) break;
    }
    now.seconds = clock_seconds() - start;
    for (int i = 0; i < now.n_what; i++)
        if (!now.has_happened[i]) {
            snprintf(failure_text, sizeof failure_text, "never happens: %s", now.what[i]);
            return 1;
        }
    return 0;
}

static const char *class_text(const vmc_scenario *s, char *text, size_t size) {
    char bounds[60] = "";
    if (s->stale_reads)
        snprintf(bounds, sizeof bounds, ",stale %d", s->stale_reads < 0 ? 0 : s->stale_reads);
    if (s->mo_insert == VMC_MO_APPENDS)
        snprintf(bounds + strlen(bounds), sizeof bounds - strlen(bounds), ",mo appends");
    if (s->max_repeats)
        snprintf(bounds + strlen(bounds), sizeof bounds - strlen(bounds), ",repeats %d",
                 s->max_repeats);
    if (world_hit_timer_bound)
        snprintf(bounds + strlen(bounds), sizeof bounds - strlen(bounds), ",timers %d",
                 s->early_timers ? s->early_timers : 1);
    if (s->class == VMC_BOUNDED && s->contests > 0)
        snprintf(text, size, "BOUNDED(%d,contests %d%s)", s->preemptions, s->contests, bounds);
    else if (s->class == VMC_BOUNDED)
        snprintf(text, size, "BOUNDED(%d%s)", s->preemptions, bounds);
    else if (s->class == VMC_SAMPLED)
        snprintf(text, size, "SAMPLED(%llu%s)", (unsigned long long)s->samples, bounds);
    else
        snprintf(text, size, "EXHAUSTIVE%s%s%s", *bounds ? "(" : "", *bounds ? bounds + 1 : "",
                 *bounds ? ")" : "");
    return text;
}
// A line of expected.txt is "name class graphs". 0: as expected.
static int differs_from_expected(const char *class) {
    char line[200], name[100], want_class[60];
    unsigned long long want = 0;
    FILE *in = options.expected ? fopen(options.expected, "r") : NULL;
    if (!options.expected || scenario->must_fail) return 0;
    int found = 0;
    while (in && !found && fgets(line, sizeof line, in))
        if (sscanf(line, "%99s %59[^\t] %llu", name, want_class, &want) == 3)
            found = !strcmp(name, scenario->name);
    if (in) fclose(in);
    if (!found) {
        snprintf(failure_text, sizeof failure_text, "%s has no line for it: %s\t%s\t%llu",
                 options.expected, scenario->name, class, (unsigned long long)now.result.n_graphs);
    } else if (strcmp(class, want_class) != 0 || want != now.result.n_graphs) {
        snprintf(failure_text, sizeof failure_text, "%s expects %s with %llu graphs",
                 options.expected, want_class, want);
    } else {
        return 0;
    }
    return 1;
}
static void print_outcomes(void) {
    for (int i = 0; i < now.result.n_outcomes; i++)
        printf("%s%s: %llu%s", i % 6 ? "   " : "        ", now.result.outcomes[i].text,
               (unsigned long long)now.result.outcomes[i].count,
               i % 6 == 5 || i + 1 == now.result.n_outcomes ? "\n" : "");
}
// Executes the failing path once more, now with a trace; it must fail alike.
static void explain(void) {
    char first[sizeof failure_text];
    memcpy(first, failure_text, sizeof first);
    if (vm.verdict != FAILED) {
        printf("  %s\n", failure_text);
        return;
    }
    search_again();
    is_tracing = 1;
    execute();
    is_tracing = 0;
    if (strcmp(first, failure_text) != 0) printf("  first: %s\n", first);
    is_tracing = 1;
    report_failure();
    is_tracing = 0;
}
// Without reduction the same graphs must be seen.
static int differs_from_naive(void) {
    static tally reduced;
    reduced = now;
    search_is_naive = 1;
    int is_bad = explore();
    search_is_naive = 0;
    if (!is_bad &&
        (reduced.result.n_graphs != now.result.n_graphs || reduced.graph_sum != now.graph_sum)) {
        snprintf(failure_text, sizeof failure_text, "%llu graphs, without reduction %llu",
                 (unsigned long long)reduced.result.n_graphs,
                 (unsigned long long)now.result.n_graphs);
        is_bad = 1;
    }
    now = reduced;
    return is_bad;
}
static int judge(const vmc_scenario *s, char *class, size_t size) {
    int is_bad = explore();
    watch_progress(0);
    class_text(s, class, size);
    const char *complaint = s->judge && !is_bad ? s->judge(s, &now.result) : NULL;
    if (s->must_fail) {
        if (is_bad && strstr(failure_text, s->must_fail)) return 0;
        printf("  must fail with \"%s\"\n", s->must_fail);
        if (!is_bad) snprintf(failure_text, sizeof failure_text, "does not");
        return 1;
    }
    if (complaint) return has_failed(complaint);
    if (is_bad || (!s->judge && !s->is_compared && differs_from_expected(class))) return 1;
    return (s->is_compared || options.is_compared) && differs_from_naive();
}
static int check(const vmc_scenario *s) {
    char class[80];
    scenario = s;
    vm.verdict = RUNNING;
    int is_bad = judge(s, class, sizeof class);
    if (!is_bad && s->is_silent) return 0;
    printf("%-4s %-34s %-18s %10llu executions (%llu cut) %9llu graphs %7.2f s\n",
           is_bad ? "FAIL" : "ok", s->name, s->must_fail ? "fails as it must" : class,
           (unsigned long long)now.result.n_executions,
           (unsigned long long)(now.n_pruned + now.n_dismissed),
           (unsigned long long)now.result.n_graphs, now.seconds);
    if (is_bad && options.is_quiet)
        printf("  %s\n", failure_text);
    else if (is_bad)
        explain();
    print_outcomes();
    fflush(stdout);
    return is_bad;
}
static int replay(const char *string) {
    const char *colon = strchr(string, ':');
    for (vmc_scenario *s = scenarios; s && colon; s = s->next) {
        if (strlen(s->name) != (size_t)(colon - string) ||
            strncmp(s->name, string, strlen(s->name)))
            continue;
        scenario = s;
        search_start(options.seed);
        if (!search_replay(colon + 1)) break;
        is_tracing = 1;
        execute();
        if (vm.verdict != FAILED)
            snprintf(failure_text, sizeof failure_text, "ends without an error");
        report_failure();
        return vm.verdict == FAILED;
    }
    return -1; // not ours
}

static int is_named(const char *name, int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return argc == 0;
}
int main(int argc, char **argv) {
    int at = 1, n_failed = 0, n_passed = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *value = at + 1 < argc ? argv[at + 1] : "";
        switch (argv[at][1]) {
        case 'l': options.is_long = 1; break;
        case 'n': options.is_compared = 1; break;
        case 'f': options.stops_at_first = 1; break;
        case 'q': options.is_quiet = 1; break;
        case 'e': options.expected = value, at++; break;
        case 'r': options.replay = value, at++; break;
        case 's': options.seed = strtoull(value, NULL, 0), at++; break;
        default: fprintf(stderr, "see the top of tests/model/main.c\n"); return 2;
        }
    }
    shadow_init();
    graphs_resize(1 << 12);
    report_install_signals();
    if (options.replay) return replay(options.replay) > 0;
    for (vmc_scenario *s = scenarios; s; s = s->next) {
        if (!is_named(s->name, argc - at, argv + at) || (s->is_long && !options.is_long)) continue;
        if (check(s))
            n_failed++;
        else
            n_passed++;
        if (n_failed && options.stops_at_first) break;
    }
    const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    if (n_passed + n_failed > 0) printf("%s: %d passed, %d failed\n", program, n_passed, n_failed);
    return n_failed != 0;
}
