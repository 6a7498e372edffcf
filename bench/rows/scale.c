// SPDX-License-Identifier: MIT OR 0BSD
// A row for bench/tools/scale.sh: tasks that work, so that more workers have more to do at once.
//
//   scale [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//
//   S8w  S8 with work: 200 tasks do 750 multiplications, each with the result of the one before,
//        and yield, 100 times. That is 3000 cycles where one takes 4 with its addition: 1 us at
//        3 GHz, and the same work regardless of the clock and of other processes
//
// ns are per yield; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"

enum { TASKS = 200, TURNS = 100, TIMES = 10 / SHRINK, STEPS = 750 };

typedef struct worker_task {
    volt_frame frame;
    uint32_t i;
    uint64_t x;
} worker_task;
static const worker_task no_worker_task;

// All tasks begin with 0, and reach the same result.
static uint64_t work(uint64_t x) {
    for (int i = 0; i < STEPS; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        __asm__("" : "+r"(x)); // one after the other, and all
    }
    return x;
}

static uint64_t worked; // the expected result of a task

static volt_poll working_run(volt_cx *cx, void *arg) {
    worker_task *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < TURNS; t->i++) {
        t->x = work(t->x);
        VOLT_AWAIT(volt_yield(cx));
    }
    if (t->x == worked) tally_add(t->i);
    latch_hit(1);
    VOLT_END(0);
}

static batches s8w = { .times = TIMES, .n = TASKS, BATCH_OF(working_run, no_worker_task) };

static const row rows[] = {
    { "S8w", "1 us of work and a yield, 200 tasks", TIMES * TASKS * TURNS, batches_run, &s8w },
};

int main(int argc, char **argv) {
    for (int i = 0; i < TURNS; i++) worked = work(worked);
    return rows_main(argc, argv, rows, BENCH_COUNT(rows));
}
