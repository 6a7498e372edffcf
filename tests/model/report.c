// SPDX-License-Identifier: MIT OR 0BSD
// Errors and traces. The first error ends a scenario; the execution that met it is then replayed
// with every event printed: number, thread, place in the source, operation, order, value, and which
// store a load read. Output is bounded: the last TRACE_LINES events are kept.
#include "internal.h"
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

enum { TRACE_LINES = 100, LINE = 200, ADDR2LINE_MAX = 2 * TRACE_LINES };
static struct line {
    int tid;
    const void *pc, *caller;
    char text[LINE];
} lines[TRACE_LINES];
static unsigned n_lines;
int is_tracing;
char failure_text[400];

const char *order_name(int order) {
    static const char *const names[] = {"rlx", "con", "acq", "rel", "acq_rel", "sc"};
    return order >= 0 && order <= 5 ? names[order] : "?";
}
const char *op_name(int kind) {
    static const char *const names[] = {"start",      "load",   "store", "rmw",        "cas",
                                        "fence",      "join",   "spawn", "yield",      "futex wait",
                                        "futex wake", "asleep", "clock", "system call"};
    return names[kind];
}

void vmc_fail(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(failure_text, sizeof failure_text, format, ap);
    va_end(ap);
    for (char *c = failure_text; *c; c++)
        if (*c == '\n') *c = ' ';
    if (!vm.is_running) {
        fprintf(stderr, "%s\n", failure_text);
        exit(2);
    }
    TRACE("ERROR %s", failure_text);
    end_execution(FAILED);
}
void trace(const char *format, ...) {
    struct line *l = &lines[n_lines++ % TRACE_LINES];
    va_list ap;
    va_start(ap, format);
    vsnprintf(l->text, sizeof l->text, format, ap);
    va_end(ap);
    const thread *t = self();
    l->tid = vm.current;
    l->pc = vm.pc;
    l->caller = t->depth > 0 && t->depth <= CALL_DEPTH ? t->call[t->depth - 1] : NULL;
}

// ---- where in the source, through addr2line, once for the whole trace

static char places[ADDR2LINE_MAX][80];
static void find_places(unsigned first) {
    char command[64 + ADDR2LINE_MAX * 20], function[160], at[300];
    char exe[200] = "";
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) return;
    int n = snprintf(command, sizeof command, "addr2line -f -e %s", exe);
    for (unsigned i = first; i < n_lines; i++) // one less: the call, not where it returns to
        n += snprintf(command + n, sizeof command - (size_t)n, " %#lx",
                      (unsigned long)((uintptr_t)lines[i % TRACE_LINES].pc - 1));
    FILE *in = popen(command, "r");
    if (!in) return;
    for (unsigned i = first; i < n_lines; i++) {
        if (!fgets(function, sizeof function, in) || !fgets(at, sizeof at, in)) break;
        function[strcspn(function, "\n")] = 0;
        const char *file = strrchr(at, '/') ? strrchr(at, '/') + 1 : at;
        snprintf(places[i - first], sizeof places[0], "%.*s %.40s", (int)strcspn(file, " \n"), file,
                 function);
    }
    pclose(in);
}
static void print_trace(void) {
    unsigned first = n_lines > TRACE_LINES ? n_lines - TRACE_LINES : 0;
    find_places(first);
    if (first) printf("    (%u earlier events)\n", first);
    for (unsigned i = first; i < n_lines; i++) {
        const struct line *l = &lines[i % TRACE_LINES];
        if (l->tid == ENVIRONMENT)
            printf("    %4u  clock", i);
        else
            printf("    %4u  T%d   ", i, l->tid);
        printf("  %-44s  %s\n", places[i - first], l->text);
    }
}
static void print_threads(void) {
    for (int i = 0; i < vm.n_threads; i++) {
        const thread *t = &vm.threads[i];
        char place[80] = "";
        if (t->next.addr) describe_address(place, sizeof place, (uintptr_t)t->next.addr);
        printf("    T%d: %s %s\n", i, t->state == ENDED ? "has ended" : op_name(t->next.kind),
               place);
    }
}
void report_failure(void) {
    printf("  %s\n", failure_text);
    if (is_tracing) print_trace();
    print_threads();
    printf("  replay: make model REPLAY='%s:", scenario->name);
    search_print_path(stdout);
    printf("'\n");
    fflush(stdout);
}

// ---- crashes of the code under test, and loops without an operation

static void on_signal(int number) {
    if (vm.is_running && number != SIGVTALRM) vmc_fail("signal %d: %s", number, strsignal(number));
    printf("%s: %s\n", scenario ? scenario->name : "",
           number == SIGVTALRM ? "no progress: a loop without atomic operations?" : "crash");
    if (scenario) {
        printf("  replay: make model REPLAY='%s:", scenario->name);
        search_print_path(stdout);
        printf("'\n");
    }
    fflush(stdout);
    _exit(2);
}
void report_install_signals(void) {
    static char stack[1 << 16];
    stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaltstack(&s, NULL);
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    sigaction(SIGFPE, &a, NULL);
    sigaction(SIGILL, &a, NULL);
    sigaction(SIGABRT, &a, NULL);
    sigaction(SIGVTALRM, &a, NULL);
}
