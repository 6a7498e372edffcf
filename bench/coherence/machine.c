// SPDX-License-Identifier: MIT OR 0BSD
// The simulated machine: processors, caches, counts. See machine.h.
//
//   PROGRAM ROW [--workers N] [--seed S] [--slice K] [--lines L] [--reps N]    PROGRAM --list
//
//   defaults: 4 workers, seed 1, slices of at most 32 accesses, 12 lines, one repetition. The same
//   arguments give the same figures.
//
// One repetition is a warm-up and does not count. Output, per operation except for the names:
//   row workers ops  transfers  invalidations  rmw  shared rmw  the same of the runtime's own lines
// and below it the `lines` places with the most transfers, in the same columns.
#include "machine.h"
#include "../../tests/sim/fiber.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void coherence_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _Exit(2);
}

// ---- randomness

static uint64_t random_state;
uint64_t coherence_random(void) { // splitmix64
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// ---- caches: one table of lines, and the history of each word in them

enum { WORDS = 8, BUCKETS = 1 << 22, LINES = 1 << 20, IGNORED = 8 };
typedef struct counts {
    uint64_t transfers, invalidations, rmws, shared;
} counts;
__extension__ typedef unsigned __int128 set; // of processors
typedef struct line {
    uintptr_t number;
    set holders;
    counts word[WORDS];
} line;
static line *lines;       // 1 ..
static uint32_t *buckets; // numbers of lines; 0: none
static uint32_t n_lines;
static int is_counting;
static uint64_t n_hits;
static uintptr_t ignored[IGNORED];
static int n_ignored;

void coherence_ignore(const void *word) {
    if (n_ignored == IGNORED) coherence_die("more than %d ignored words", IGNORED);
    ignored[n_ignored++] = (uintptr_t)word >> 3;
}
static int is_ignored(uintptr_t addr) {
    for (int i = 0; i < n_ignored; i++)
        if (ignored[i] == addr >> 3) return 1;
    return 0;
}
static unsigned set_size(set s) {
    return (unsigned)(__builtin_popcountll((uint64_t)s) + __builtin_popcountll((uint64_t)(s >> 64)));
}
static void *reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) coherence_die("out of memory");
    return p;
}
static line *line_of(uintptr_t addr) {
    const uintptr_t number = addr >> LINE_SHIFT;
    uint32_t at = (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 42);
    while (buckets[at] && lines[buckets[at]].number != number) at = (at + 1) % BUCKETS;
    if (buckets[at]) return &lines[buckets[at]];
    if (n_lines + 1 == LINES) coherence_die("more than %d lines", LINES);
    buckets[at] = ++n_lines;
    lines[n_lines].number = number;
    return &lines[n_lines];
}
// Returns the cost.
static int64_t line_access(uintptr_t addr, int kind, int processor) {
    line *l = line_of(addr);
    const set me = (set)1 << processor, others = l->holders & ~me;
    const int is_missing = others && !(l->holders & me), is_taken = kind != READ && others;
    l->holders = kind == READ ? l->holders | me : me;
    if (is_counting) {
        counts *c = &l->word[addr >> 3 & (WORDS - 1)];
        c->transfers += (uint64_t)is_missing;
        if (is_taken) c->invalidations += set_size(others);
        c->rmws += kind == RMW;
        c->shared += kind == RMW && others;
    }
    return (++n_hits % HITS_PER_NS == 0) + (kind == RMW ? COST_RMW : 0) +
           (is_missing || is_taken ? COST_TRANSFER : 0);
}

// ---- processors

enum { FIBER_STACK = 1 << 18, FIBER_STRIDE = FIBER_STACK + (1 << 16) };
typedef enum processor_state { UNUSED, RUNS, SLEEPS, STOPPED } processor_state;
typedef struct processor {
    fiber_context context;
    processor_state state;
    int64_t now, until; // its clock; while it sleeps: the latest end of the sleep
    const void *on;     // the object it sleeps on
    void *(*fn)(void *);
    void *arg, *tls;
    int is_woken, error;
} processor;
static processor all[PROCESSORS];
static int current = -1, n_used, left; // left: accesses until another processor may go on
static int is_off = 1;                 // the current code is not part of the program
static unsigned slice = 32;
static char *stacks;
static fiber_context outside;
static int64_t last_look, present; // present: the time of an event that wakes a sleeper

// When each processor continues; NEVER: not before it is woken. A separate array, as each switch
// scans it.
static int64_t due[PROCESSORS];
static void set_due(const processor *p) {
    due[p - all] = p->state == RUNS ? p->now : p->state == SLEEPS ? p->until : NEVER;
}
static int first_due(void) {
    int best = 0;
    for (int i = 1; i < n_used; i++)
        if (due[i] < due[best]) best = i;
    return best;
}
static void go_on(int to) {
    const int from = current;
    processor *p = &all[to];
    if (p->state == SLEEPS) { // its time is over
        p->state = RUNS;
        p->now = p->until > p->now ? p->until : p->now;
    }
    left = 1 + (int)(coherence_random() % slice);
    if (from == to) return;
    program_switch(from, to);
    all[from].error = errno;
    current = to;
    fiber_switch(&all[from].context, &p->context);
    errno = all[current].error;
}
static void decide(void) {
    set_due(&all[current]);
    for (;;) {
        const int best = first_due();
        if (kernel_alarm() < due[best]) {
            present = kernel_alarm();
            kernel_ring();
        } else if (due[best] == NEVER) {
            coherence_die("all processors sleep, and nothing is to come");
        } else {
            go_on(best);
            return;
        }
    }
}
void spend(int64_t ns) { all[current].now += ns; }
int64_t clock_of_this(void) { return all[current].now; }
int sleep_on(const void *object, int64_t deadline) {
    processor *p = &all[current];
    p->on = object;
    p->until = deadline;
    p->is_woken = 0;
    p->state = SLEEPS;
    decide();
    return p->is_woken;
}
int wake_on(const void *object, int n) {
    int woken = 0;
    if (all[current].state == RUNS && present < all[current].now) present = all[current].now;
    for (int i = 0; i < n_used && woken < n; i++) {
        processor *p = &all[i];
        if (p->state != SLEEPS || p->on != object) continue;
        p->state = RUNS;
        p->is_woken = 1;
        p->now = (p->now > present ? p->now : present) + COST_WAKE;
        set_due(p);
        woken++;
    }
    return woken;
}
static void processor_main(void) {
    processor *p = &all[current];
    p->fn(p->arg);
    p->state = STOPPED;
    wake_on(p, PROCESSORS);
    if (p == &all[0]) fiber_switch(&p->context, &outside);
    decide();
}
static void processor_start(int i, void *(*fn)(void *), void *arg) {
    processor *p = &all[i];
    *p = (processor){ .state = RUNS, .fn = fn, .arg = arg };
    p->now = current < 0 ? 1000000000 : all[current].now + COST_WAKE;
    set_due(p);
    fiber_init(&p->context, stacks + (size_t)i * FIBER_STRIDE, FIBER_STACK, processor_main);
    if (i == n_used) n_used++;
}

void access_word(uintptr_t addr, int kind) {
    if (is_off || is_ignored(addr)) return;
    if (--left <= 0) decide();
    all[current].now += line_access(addr, kind, current);
}
void access_fence(void) {
    if (!is_off) spend(COST_RMW);
}

// ---- the seam

int coherence_thread_create(pthread_t *thread, void *(*fn)(void *), void *arg) {
    int i = 0;
    while (i < n_used && all[i].state != UNUSED) i++;
    if (i == PROCESSORS) coherence_die("more than %d threads", PROCESSORS);
    processor_start(i, fn, arg);
    spend(COST_CALL);
    *thread = (pthread_t)i;
    return 0;
}
int coherence_thread_join(pthread_t thread) {
    processor *p = &all[thread];
    while (p->state != STOPPED) sleep_on(p, NEVER);
    p->state = UNUSED;
    return 0;
}
void *coherence_tls_get(void) { return all[current].tls; }
void coherence_tls_set(void *value) { all[current].tls = value; }
int64_t coherence_now(void) { // clocks differ by up to a slice; no thread sees time go back
    spend(COST_CLOCK);
    if (last_look < all[current].now) last_look = all[current].now;
    return last_look;
}
int coherence_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline) {
    spend(COST_CALL);
    if (*word != expected) return -EAGAIN;
    return sleep_on(word, deadline) ? 0 : -ETIMEDOUT;
}
void coherence_futex_wake(uint32_t *word, int n) {
    spend(COST_CALL);
    wake_on(word, n);
}
void coherence_relax(void) {
    spend(1);
    left = 0;
}

// ---- figures

typedef struct place {
    char name[96];
    counts n;
    int is_runtime;
} place;
enum { PLACES = 4096 };
static place places[PLACES];
static size_t n_places;
static int64_t begun; // clock of the measuring thread at the start
static int n_shown = 12;

static void counts_add(counts *to, const counts *n) {
    to->transfers += n->transfers;
    to->invalidations += n->invalidations;
    to->rmws += n->rmws;
    to->shared += n->shared;
}
static void place_add(uintptr_t addr, const counts *n) {
    char name[sizeof places[0].name];
    size_t i = 0;
    const int is_runtime = program_name(addr, name, sizeof name);
    while (i < n_places && strcmp(places[i].name, name) != 0) i++;
    if (i == PLACES) coherence_die("more than %d names", PLACES);
    if (i == n_places) {
        n_places++;
        places[i] = (place){ .is_runtime = is_runtime };
        memcpy(places[i].name, name, sizeof name);
    }
    counts_add(&places[i].n, n);
}
static int places_compare(const void *a, const void *b) {
    const place *x = a, *y = b;
    const uint64_t m = x->n.transfers + x->n.shared, n = y->n.transfers + y->n.shared;
    return m != n ? (m < n ? 1 : -1) : strcmp(x->name, y->name);
}
static void counts_print(const counts *n, uint64_t ops) {
    const double per = 1 / (double)ops;
    printf(" %10.4f %10.4f %10.4f %10.4f", (double)n->transfers * per,
           (double)n->invalidations * per, (double)n->rmws * per, (double)n->shared * per);
}
void coherence_begin(void) {
    for (uint32_t i = 1; i <= n_lines; i++) memset(lines[i].word, 0, sizeof lines[i].word);
    begun = clock_of_this();
    is_counting = 1;
}
void coherence_end(const char *row, unsigned workers, uint64_t ops) {
    counts sum = { 0 };
    uint64_t of_runtime = 0;
    is_off = 1;
    is_counting = 0;
    n_places = 0;
    for (uint32_t i = 1; i <= n_lines; i++)
        for (uintptr_t k = 0; k < WORDS; k++) {
            const counts *n = &lines[i].word[k];
            if (n->transfers || n->invalidations || n->rmws)
                place_add((lines[i].number << LINE_SHIFT) + k * 8, n);
        }
    for (size_t i = 0; i < n_places; i++) {
        counts_add(&sum, &places[i].n);
        if (places[i].is_runtime) of_runtime += places[i].n.shared;
    }
    qsort(places, n_places, sizeof places[0], places_compare);
    printf("%-6s %3u %8" PRIu64, row, workers, ops);
    counts_print(&sum, ops);
    printf(" %10.4f", (double)of_runtime / (double)ops);
    printf(" %10.1f\n", (double)(clock_of_this() - begun) / (double)ops);
    for (size_t i = 0; i < n_places && (int)i < n_shown; i++) {
        if (places[i].n.transfers + places[i].n.shared == 0) break;
        printf("  %-17s", places[i].name);
        counts_print(&places[i].n, ops);
        printf("\n");
    }
    fflush(stdout);
    is_off = 0;
}

// ---- main

typedef struct arguments {
    int n;
    char *text[8];
} arguments;
static int result;
static void *first_main(void *arg) {
    arguments *a = arg;
    result = bench_main(a->n, a->text);
    return NULL;
}
static unsigned long number(const char *text) {
    char *end = NULL;
    const unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (!text || end == text || *end) coherence_die("a number is missing");
    return n;
}
int main(int argc, char **argv) {
    static char workers[] = "--workers", reps[] = "--reps", four[] = "4", one[] = "1";
    arguments a = { 6, { argv[0], NULL, workers, four, reps, one, NULL, NULL } };
    random_state = 1;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return bench_main(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--workers") == 0) a.text[3] = argv[++i];
        else if (strcmp(argv[i], "--reps") == 0) a.text[5] = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0) random_state = number(argv[++i]);
        else if (strcmp(argv[i], "--slice") == 0) slice = (unsigned)number(argv[++i]);
        else if (strcmp(argv[i], "--lines") == 0) n_shown = (int)number(argv[++i]);
        else if (argv[i][0] == '-' || a.text[1]) coherence_die("%s: one row", argv[i]);
        else a.text[1] = argv[i];
    }
    if (!a.text[1] || slice == 0) coherence_die("which row? %s --list", argv[0]);
    lines = reserve((size_t)LINES * sizeof *lines);
    buckets = reserve((size_t)BUCKETS * sizeof *buckets);
    stacks = reserve((size_t)PROCESSORS * FIBER_STRIDE);
    coherence_ignore(&errno);
    processor_start(0, first_main, &a);
    current = 0;
    program_switch(-1, 0);
    is_off = 0;
    fiber_switch(&outside, &all[0].context);
    return result;
}
