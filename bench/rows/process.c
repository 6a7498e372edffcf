// SPDX-License-Identifier: MIT OR 0BSD
// Process rows: starts of child processes that end at once.
//
//   process [ROW...] [--workers N] [--reps N]      default: all rows, 1 worker, 9 repetitions
//   process --list                                 the names of the rows
//
//   P1   a task starts true(1) and waits for its end, 100 times
//   P2   8 tasks at once do so 25 times each
//
// ns are per process; for the columns see bench.h. The CPU time is that of this program alone. The
// pool starts a thread when none is idle, so how many it has depends on the clock.
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"

enum { ONE_BY_ONE = 100, AT_ONCE = 8, EACH = 25 };
static const char *const argv_true[] = { "/bin/true", NULL };
static const volt_process_options options_true = { .argv = argv_true };

typedef struct starter {
    volt_frame frame;
    uint32_t times, i;
    volt_process p;
    volt_exit_status end;
    int rc;
} starter;
static volt_poll starter_run(volt_cx *cx, void *arg) {
    starter *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < s->times; s->i++) {
        VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &options_true));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, &s->end));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        tally_add(s->end.code == 0);
    }
    VOLT_END(0);
}
typedef struct starters {
    volt_frame frame;
    starter each[AT_ONCE];
    int i;
} starters;
static volt_poll starters_run(volt_cx *cx, void *arg) {
    starters *s = arg;
    VOLT_BEGIN(cx, s);
    memset(s->each, 0, sizeof s->each);
    for (s->i = 0; s->i < AT_ONCE; s->i++) s->each[s->i].times = EACH;
    VOLT_AWAIT(s->i, volt_join_all(cx, VOLT_EACH(starter_run, s->each)));
    VOLT_END(s->i);
}

static starter one = { .times = ONE_BY_ONE };
static starters several;
static const row rows[] = {
    { "P1", "true(1), one at a time", ONE_BY_ONE | ROW_CROWD, starter_run, &one },
    { "P2", "true(1), 8 at a time", (AT_ONCE * EACH) | ROW_CROWD, starters_run, &several },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
