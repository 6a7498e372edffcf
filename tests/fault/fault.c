// SPDX-License-Identifier: MIT OR 0BSD
// Systematic fault injection. For k = 1, 2, 3 ... the k-th call of each kind fails with each of its
// possible errors (rows.h), in each scenario (scenarios_*.h), once and in a row, until a run meets
// no failure any more. Checked after each run: the documented error, no crash, no hang, no leaked
// descriptor, thread or byte, and success of the same work once nothing fails.
//
//     make fault                  the short form
//     make fault FULL=1           with 1, 2 and 3 workers, and more
//     make fault ONE='tcp_echo/run1 accept4 2 EMFILE once'
//
//     fault [--full] [--jobs N] [--scenario NAME]
//     fault --one SCENARIO/HOST CALL K ERROR MODE
//     fault --list
//
// Each process runs scenarios one after the other; the parent supervises them. A run that fails or
// hangs is reported with the line that repeats it, and another process continues after it.
#include "inject.h"
#include "../../volt.h"
#include "rows.h"
#include "host.h"
#include "scenarios_tasks.h"
#include "scenarios_net.h"
#include "scenarios_messages.h"
#include "scenarios_streams.h"
#include "scenarios_whole.h"
#include "scenarios_pool.h"
#include "scenarios_process.h"
#include "scenarios_sync.h"
#include <sys/prctl.h>

#ifndef TEST_BEFORE_EXIT // coverage: the work of exit(), where a process ends without it
#  define TEST_BEFORE_EXIT() ((void)0)
#endif

// By default the address sanitizer keeps 256 MiB of freed memory. Its page tables would be copied
// by each fork of the process scenarios, which would take most of the time.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=8";
}

static const scenario scenarios[] = {
    TASK(ends_at_once, 0),
    TASK(spawns_of_every_size, 0),
    TASK(spawns_many, 0),
    ON(spawns_from_outside, 0),
    TASK(creates_in_place, 0),
    ON(creates_from_outside, 0),
    TASK(joins, 0),
    ON(joins_with_a_limit, 0),
    TASK(cancels, 0),
    TASK(yields, 0),
    ON(wakes_from_a_thread, 0),
    TASK(sleeps, 0),
    TASK(withins, 0),
    TASK(shields, 0),
    TASK(intervals, LONG),
    TASK(group_waits, 0),
    TASK(group_collects, 0),
    TASK(group_closes, 0),
    TASK(tokens, 0),
    TASK(unlesses, 0),
    TASK(selects, 0),
    TASK(joins_arms, 0),
    TASK(joins_arrays, 0),
    ON(waits_at_a_shelf, 0),
    ON(passes_numbers, 0),
    TASK(pops, 0),
    ON(pops_by_a_thread, 0),
    TASK(hooks, 0),
    TASK(meets, 0),
    TASK(pair_echo, PEERS),
    TASK(tcp_echo, PEERS | QUIET),
    TASK(unix_echo, PEERS | QUIET),
    TASK(crowd, PEERS | QUIET),
    TASK(pipe_flow, PEERS),
    TASK(socket_flow, PEERS),
    TASK(exact_lengths, PEERS),
    TASK(writes_to_closed_reader, QUIET),
    TASK(closes_under_a_reader, QUIET),
    TASK(gives_up, QUIET | LONG),
    TASK(is_refused, QUIET),
    TASK(accept_backs_off, PEERS | QUIET | LONG),
    TASK(looks, 0),
    TASK(looks_at_its_own, 0),
    TASK(looks_both_ways, 0),
    TASK(forgets_under_a_waiter, 0),
    TASK(reads_a_file, 0),
    TASK(sets_options, QUIET),
    TASK(number_comes_back, QUIET | REUSES),
    TASK(races_reads, 0),
    TASK(calls_of_its_own, 0),
    TASK(sleeps_by_other_clocks, QUIET),
    TASK(stops_a_sleep_by_another_clock, QUIET),
    TASK(datagrams, 0),
    TASK(segments, 0),
    TASK(several_messages, 0),
    TASK(names_of_interfaces, 0),
    TASK(passes_descriptors, 0),
    TASK(connects_its_own, PEERS | QUIET),
    TASK(replaces_a_path, QUIET),
    TASK(lines_and_records, PEERS),
    TASK(copies, 0),
    TASK(copies_to_a_log, 0),
    TASK(relays, PEERS | QUIET),
    TASK(relays_by_a_buffer, PEERS | QUIET),
    TASK(sends_a_file, 0),
    ON(blocks_threads, LONG),
    TASK(asks_on_a_worker, 0),
    TASK(jobs, 0),
    TASK(jobs_cancelled, QUIET),
    WHOLE(jobs_at_a_shutdown, QUIET),
    WHOLE(jobs_left_alone, QUIET),
    TASK(in_place, QUIET),
    WHOLE(in_place_at_a_shutdown, QUIET),
    TASK(resolves, QUIET),
    WHOLE(name_left_alone, QUIET),
    TASK(dials, PEERS | QUIET),
    TASK(files, 0),
    TASK(closes_a_file_first, QUIET),
    TASK(directories, 0),
    TASK(reads_cached_data, 0),
    WHOLE(signals, QUIET),
    TASK(runs_a_process, QUIET),
    TASK(refuses_a_process, 0),
    TASK(ends_a_process, QUIET),
    TASK(captures, PEERS | QUIET),
    TASK(serial_line, 0),
    TASK(raw_terminal, 0),
    TASK(dumps, 0),
    WHOLE(places, QUIET),
    WHOLE(defaults, QUIET),
    WHOLE(defaults_of_one, 0),
    WHOLE(two_runtimes, 0),
    WHOLE(shuts_down_with_a_limit, QUIET),
    WHOLE(destroys_while_busy, 0),
    WHOLE(drains, QUIET),
    WHOLE(never_allocates, SPARED),
};
enum { N_SCENARIOS = sizeof scenarios / sizeof scenarios[0], MOST_VARIANTS = N_SCENARIOS * 9 };
static variant variants[MOST_VARIANTS];
static int n_variants;

// ---- names

#define ERRORS(X_)                                                                                 \
    X_(EACCES) X_(EADDRINUSE) X_(EADDRNOTAVAIL) X_(EAFNOSUPPORT) X_(EAGAIN) X_(EBADF) X_(EBUSY)    \
    X_(ECANCELED) X_(ECHILD) X_(ECONNABORTED) X_(ECONNREFUSED) X_(ECONNRESET) X_(EDESTADDRREQ)     \
    X_(EDQUOT) X_(EEXIST) X_(EFBIG) X_(EHOSTDOWN) X_(EHOSTUNREACH) X_(EINTR) X_(EINVAL) X_(EIO)    \
    X_(EISDIR) X_(ELOOP) X_(EMFILE) X_(EMLINK) X_(EMSGSIZE) X_(ENAMETOOLONG) X_(ENETDOWN)          \
    X_(ENETUNREACH) X_(ENFILE) X_(ENOBUFS) X_(ENODATA) X_(ENODEV) X_(ENOENT) X_(ENOLCK) X_(ENOMEM) \
    X_(ENONET) X_(ENOPROTOOPT) X_(ENOSPC) X_(ENOSYS) X_(ENOTCONN) X_(ENOTDIR) X_(ENOTEMPTY)        \
    X_(ENOTSOCK) X_(ENOTTY) X_(ENXIO) X_(EOPNOTSUPP) X_(EOVERFLOW) X_(EPERM) X_(EPIPE) X_(EPROTO)  \
    X_(EPROTONOSUPPORT) X_(EPROTOTYPE) X_(ERANGE) X_(EROFS) X_(ESRCH) X_(ETIMEDOUT)                \
    X_(ETOOMANYREFS) X_(EXDEV)                                                                     \
    X_(EAI_ADDRFAMILY) X_(EAI_AGAIN) X_(EAI_BADFLAGS) X_(EAI_FAIL) X_(EAI_FAMILY) X_(EAI_MEMORY)   \
    X_(EAI_NODATA) X_(EAI_NONAME) X_(EAI_SERVICE) X_(EAI_SOCKTYPE)
static const struct {
    int value;
    const char *name;
} error_names[] = {
#define ERROR_NAME(e_) { e_, #e_ },
    ERRORS(ERROR_NAME)
};
static const char *const effect_names[] = { "pass", "errno", "zero",  "short", "bits",
                                            "hups", "jump",  "dip", "limit" };

static const char *error_name(int value) {
    for (size_t i = 0; i < sizeof error_names / sizeof error_names[0]; i++)
        if (error_names[i].value == value) return error_names[i].name;
    return "unknown";
}
// The third part of a triple: ENOMEM, zero, short=3, jump=30 ...
static const char *fault_name(const fault *f, char *buf, size_t n) {
    if (f->effect == FAIL) return error_name(f->value);
    if (f->effect == SHORT || f->effect == JUMP || f->effect == DIP)
        snprintf(buf, n, "%s=%d", effect_names[f->effect], f->value);
    else snprintf(buf, n, "%s", effect_names[f->effect]);
    return buf;
}
static const char *mode_name(int count) { return count == ONCE ? "once" : "again"; }
static const char *const host_names[] = { "run", "own", "guest", "" };
static const char *variant_name(const variant *v, char *buf, size_t n) {
    if (v->host == ITSELF) snprintf(buf, n, "%s", v->s->name);
    else snprintf(buf, n, "%s/%s%u", v->s->name, host_names[v->host], v->workers);
    return buf;
}

// ---- shared by parent and children

typedef struct position { // of a run: enough to continue after it
    int variant, row, value, is_again, k;
} position;
typedef struct slot {
    pid_t pid;
    position at;
    int is_running;
    int64_t since; // start of the run, ns
    int n_failed;  // of this variant, row and value
    char reason[300];
} slot;
enum { MOST_JOBS = 16 };
static struct {
    int next_variant;
    int most_calls; // the most of any single run
    int n_of_row[N_ROWS]; // runs in which it caused a failure
    int64_t n_runs, n_triples[N_CALLS], n_again[N_CALLS]; // failing once; in a row
    slot slots[MOST_JOBS];
} *shared;
static slot *own; // of this child

static void fail(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(own->reason, sizeof own->reason, format, ap);
    va_end(ap);
    own->reason[strcspn(own->reason, "\n")] = 0;
    syscall(SYS_exit_group, 3); // skips all checks at exit, on any thread
    abort();
}

// ---- one run

static int is_consequence(int rc) {
    static const int codes[] = { EPIPE, ECONNRESET, ECONNREFUSED, ETIMEDOUT, ECANCELED };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (rc == -codes[i]) return 1;
    return 0;
}
static void check_result(const variant *v, const row *r, int rc) {
    const fault *f = &inject.f;
    int may_fail = is_hit() && !(r->flags & HARMLESS);
    int error = r->gives ? r->gives : f->value;
    int is_given_up = is_hopeless() && rc == -ETIMEDOUT; // perhaps before the k-th call
    int is_ok = rc == 0 || is_given_up ||
                (may_fail && (f->effect == FAIL || r->gives) && rc == -error) ||
                (may_fail && f->effect == LIMIT && rc == -EMFILE) ||
                (may_fail && (r->flags & LATE) && rc == -ETIMEDOUT) ||
                (may_fail && (v->s->flags & PEERS) && is_consequence(rc));
    if (!is_ok) fail("gave %d, %s", rc, rc < 0 ? error_name(-rc) : "");
    int is_loud = is_hit() && (r->flags & LOUD) && !(v->s->flags & QUIET) && v->workers == 1;
    if (is_loud && rc == 0) fail("the error was not reported");
}
// At most one accept per back-off, which is 5 ms at least, beside those of a few connections.
static void check_accepts(int64_t start) {
    int64_t backoffs = (real_now() - start) / 5000000;
    int n = inject.n[C_accept4];
    // a firewall may refuse 100 in a row, after those that were accepted before
    int most = inject.f.value == EOPNOTSUPP ? 101 + 16 : 16;
    if (is_hopeless() && n > backoffs + most) fail("%d accepts", n);
}
// Returns the number of failed calls.
static int run_once(const variant *v, const row *r, fault f, int k) {
    memset(&inject, 0, sizeof inject);
    inject.f = f;
    inject.k = k;
    own->at.k = k;
    own->reason[0] = 0;
    __atomic_store_n(&own->since, real_now(), __ATOMIC_RELEASE);
    set(&own->is_running, 1);
    int64_t start = real_now();
    int rc = run_variant(v);
    if (r) check_result(v, r, rc);
    else if (rc != 0) fail("gave %d without any fault", rc);
    check_accepts(start);
    set(&own->is_running, 0);
    if (inject.n_all > get(&shared->most_calls)) set(&shared->most_calls, inject.n_all);
    add64(&shared->n_runs, 1);
    return get(&inject.n_hits);
}

// ---- all runs of a variant

static int n_clean[N_CALLS]; // calls of each kind when nothing fails
static int is_full;

// With more than one worker the number of calls varies, so a run may miss k.
static int misses_in_a_row(const variant *v) { return v->workers > 1 || v->host == ITSELF ? 3 : 1; }

static void try_fault(const variant *v, const row *r, fault f, int k) {
    int64_t *count = f.count == ONCE ? shared->n_triples : shared->n_again;
    if (k == 1) own->n_failed = 0;
    for (int misses = 0; misses < misses_in_a_row(v); k++) {
        if (!run_once(v, r, f, k)) {
            misses++;
            continue;
        }
        misses = 0;
        add64(&count[f.call], 1);
        add(&shared->n_of_row[r - rows], 1);
    }
}
// The calls named here may occur by chance, or only after another failure.
static int is_reached(const scenario *s, const row *r) {
    if (s->flags & SPARED) return 0;
    static const int only_after[] = { C_epoll_wait, C_epoll_add, C_epoll_mod, C_futex_wait,
                                      C_futex_timed, C_nofile };
    for (size_t i = 0; i < sizeof only_after / sizeof only_after[0]; i++)
        if (r->call == only_after[i]) return 1;
    return n_clean[r->call] > 0;
}
// From a position on; the next run is that of `at.k`.
static void try_variant(position at) {
    const variant *v = &variants[at.variant];
    own->at = (position){ .variant = at.variant, .row = -1 };
    run_once(v, NULL, (fault){ .effect = PASS }, 0);
    memcpy(n_clean, inject.n, sizeof n_clean);
    for (own->at = at; own->at.row < N_ROWS; own->at.row++, own->at.value = 0) {
        const row *r = &rows[own->at.row];
        for (; is_reached(v->s, r) && r->values[own->at.value]; own->at.value++) {
            fault f = { r->call, r->effect, r->values[own->at.value], ONCE };
            int k = at.k > 0 ? at.k : 1;
            at.k = 0;
            if (!own->at.is_again) {
                try_fault(v, r, f, k);
                k = 1;
            }
            own->at.is_again = 1;
            f.count = r->persist;
            if (r->persist) try_fault(v, r, f, k);
            own->at.is_again = 0;
        }
    }
}
__attribute__((noreturn)) static void child(slot *s, position at) {
    own = s;
    prctl(PR_SET_PDEATHSIG, SIGKILL); // ends the child with the parent
    for (;;) {
        if (at.variant < 0) at = (position){ .variant = add(&shared->next_variant, 1) - 1 };
        if (at.variant >= n_variants) {
            TEST_BEFORE_EXIT();
            _exit(0);
        }
        try_variant(at);
        at.variant = -1;
    }
}

// ---- the parent

enum { SECONDS = 10, MOST_REPORTS = 60, MOST_IN_ROW = 3 };
static int n_failures;
static int limit_factor = 1; // sanitizers and emulators are slower

static void start_child(slot *s, position at) {
    fflush(stdout);
    set(&s->is_running, 0);
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) child(s, at);
    s->pid = pid;
}
// Prints the line that repeats a run.
static void print_run(const position *at) {
    char name[80], value[32];
    const variant *v = &variants[at->variant];
    printf("%s", variant_name(v, name, sizeof name));
    if (at->row < 0) {
        printf(" - 0 pass once");
        return;
    }
    const row *r = &rows[at->row];
    fault f = { r->call, r->effect, r->values[at->value], at->is_again ? r->persist : ONCE };
    printf(" %s %d %s %s", call_names[r->call], at->k, fault_name(&f, value, sizeof value),
           mode_name(f.count));
}
static void report(const slot *s, int status, int is_hanging) {
    if (n_failures++ >= MOST_REPORTS) return;
    printf("FAIL  make fault ONE='");
    print_run(&s->at);
    printf("'\n      ");
    if (is_hanging) printf("hangs\n");
    else if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
    else printf("%s\n", s->reason[0] ? s->reason : "ended early");
    fflush(stdout);
}
// The position after a failed run. After some failures of one value the next value is tried.
static position behind(slot *s) {
    position at = s->at;
    if (at.row < 0) return (position){ .variant = -1 };
    at.k++;
    if (++s->n_failed < MOST_IN_ROW) return at;
    s->n_failed = 0;
    at.k = 1;
    if (!at.is_again && rows[at.row].persist) {
        at.is_again = 1;
    } else {
        at.is_again = 0;
        at.value++;
    }
    return at;
}
static int is_late(const slot *s) {
    int64_t limit = (int64_t)SECONDS * 1000000000 * limit_factor;
    return get(&s->is_running) && real_now() - __atomic_load_n(&s->since, __ATOMIC_ACQUIRE) > limit;
}
// 1: the slot's child has ended for good.
static int watch(slot *s) {
    int status, is_hanging = 0;
    if (is_late(s)) {
        is_hanging = 1;
        kill(s->pid, SIGKILL);
    }
    if (waitpid(s->pid, &status, is_hanging ? 0 : WNOHANG) != s->pid) return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 1;
    report(s, status, is_hanging);
    start_child(s, behind(s));
    return 0;
}
static void run_all(int jobs) {
    int n_live = jobs;
    for (int i = 0; i < jobs; i++) start_child(&shared->slots[i], (position){ .variant = -1 });
    while (n_live > 0) {
        for (int i = 0; i < jobs; i++) {
            slot *s = &shared->slots[i];
            if (s->pid == 0 || !watch(s)) continue;
            s->pid = 0;
            n_live--;
        }
        usleep(5000);
    }
}

// ---- the summary

static int print_summary(int64_t start) {
    int64_t once = 0, again = 0;
    printf("%-28s %10s %10s\n", "call", "once", "in a row");
    for (int i = 0; i < N_CALLS; i++) {
        if (!shared->n_triples[i] && !shared->n_again[i]) continue;
        printf("%-28s %10" PRId64 " %10" PRId64 "\n", call_names[i], shared->n_triples[i],
               shared->n_again[i]);
        once += shared->n_triples[i];
        again += shared->n_again[i];
    }
    printf("%d scenarios, %d with their hosts, %" PRId64 " runs, ", N_SCENARIOS, n_variants,
           shared->n_runs);
    printf("at most %d calls in one, %" PRId64 " s\n", shared->most_calls,
           (real_now() - start) / 1000000000);
    printf("fault: %" PRId64 " triples (scenario, k, errno) once, %" PRId64
           " in a row, failures %d\n",
           once, again, n_failures);
    return n_failures != 0;
}

// Rows that no scenario reaches test nothing.
static void print_idle_rows(void) {
    for (int i = 0; i < N_ROWS; i++) {
        char buf[32];
        fault f = { rows[i].call, rows[i].effect, rows[i].values[0], ONCE };
        if (shared->n_of_row[i]) continue;
        printf("FAIL  never reached: %s, %s ...\n", call_names[f.call],
               fault_name(&f, buf, sizeof buf));
        n_failures++;
    }
}

// ---- variants

static void add_variant(const scenario *s, int host, uint32_t workers) {
    variants[n_variants++] = (variant){ s, host, workers };
}
static void add_variants(const scenario *s) {
    if (s->whole) {
        add_variant(s, ITSELF, 1);
        return;
    }
    for (uint32_t workers = 1; workers <= (is_full ? 3 : 1); workers++) {
        if (s->task) add_variant(s, RUN, workers);
        if (s->on || is_full) add_variant(s, OWN, workers);
        if (s->task && (is_full || !(s->flags & LONG))) add_variant(s, GUEST, workers);
    }
    if (!is_full && !(s->flags & LONG)) add_variant(s, OWN, 2);
}
static const variant *find_variant(const char *name) {
    char buf[80];
    for (int i = 0; i < n_variants; i++)
        if (strcmp(variant_name(&variants[i], buf, sizeof buf), name) == 0) return &variants[i];
    return NULL;
}

// ---- a single run, given by its line

static int find_row(const char *call, const char *value, int is_again, fault *f) {
    char buf[32];
    for (int i = 0; i < N_ROWS; i++)
        for (int j = 0; rows[i].values[j]; j++) {
            const row *r = &rows[i];
            *f = (fault){ r->call, r->effect, r->values[j], is_again ? r->persist : ONCE };
            if (strcmp(call_names[r->call], call) == 0 && f->count > 0 &&
                strcmp(fault_name(f, buf, sizeof buf), value) == 0)
                return i;
        }
    return -1;
}
// Prints the result; 0: as expected.
static int run_one(char **word) {
    fault f = { .effect = PASS };
    const variant *v = find_variant(word[0]);
    int is_clean = strcmp(word[3], "pass") == 0;
    int i = is_clean ? -1 : find_row(word[1], word[3], strcmp(word[4], "again") == 0, &f);
    if (!v || (i < 0 && !is_clean)) {
        printf("no such run; fault --list names the scenarios\n");
        return 2;
    }
    slot *s = &shared->slots[0];
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        own = s;
        alarm(SECONDS * (unsigned)limit_factor);
        int n = run_once(v, i < 0 ? NULL : &rows[i], f, atoi(word[2]));
        printf("ok, %d calls failed\n", n);
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (WIFSIGNALED(status))
        printf("FAIL  %s\n", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
    else printf("FAIL  %s\n", s->reason);
    return 1;
}

int main(int argc, char **argv) {
    const char *only = NULL;
    char **one = NULL;
    int jobs = 8, is_list = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) is_full = 1;
        else if (strcmp(argv[i], "--list") == 0) is_list = 1;
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--scenario") == 0 && i + 1 < argc) only = argv[++i];
        else if (strcmp(argv[i], "--one") == 0 && i + 5 < argc) one = &argv[i + 1], i += 5;
        else return printf("unknown argument %s\n", argv[i]), 2;
    }
    if (one) is_full = 1;
    if (jobs < 1 || jobs > MOST_JOBS) jobs = MOST_JOBS;
    for (int i = 0; i < N_SCENARIOS; i++)
        if (!only || strcmp(only, scenarios[i].name) == 0) add_variants(&scenarios[i]);
    if (is_list) {
        char buf[80];
        for (int i = 0; i < n_variants; i++)
            printf("%s\n", variant_name(&variants[i], buf, sizeof buf));
        return 0;
    }
    const char *factor = getenv("TEST_TIMEOUT_FACTOR");
    if (factor && atoi(factor) > 0) limit_factor = atoi(factor);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
    if (one) return run_one(one);
    int64_t start = real_now();
    run_all(jobs);
    if (!only) print_idle_rows();
    return print_summary(start);
}
