// SPDX-License-Identifier: MIT OR 0BSD
// Timer rows: what a timeout that does not strike costs. 100 tasks do 10,000 operations each.
//
//   timer [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//
//   T1a  volt_within(1 s) over a poll that is ready at once: no timer is needed
//   T1b  volt_sleep(1 s) that a select arms and, having a ready second arm, cancels at once
//   T1c  volt_within(1 s) over volt_yield: arms, suspends, is polled again, disarms
//
// Arming reads the clock each time. ns are per operation; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"

enum { TASKS = 100, OPS = 10000 / SHRINK };

typedef struct timed {
    volt_frame frame;
    volt_timer timer;
    uint32_t i, n_good;
    int rc;
} timed;

typedef struct raced {
    volt_frame frame;
    volt_arm sleep, ready;
    uint32_t i, n_good;
    int rc;
} raced;

static __attribute__((noinline)) volt_poll ready_at_once(void) { return volt_ready(1); }

static volt_poll t1a_run(volt_cx *cx, void *arg) {
    timed *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < OPS; t->i++) {
        VOLT_AWAIT(t->rc, volt_within(cx, &t->timer, VOLT_S(1), ready_at_once()));
        t->n_good += t->rc == 1;
    }
    tally_add(t->n_good);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll t1b_run(volt_cx *cx, void *arg) {
    raced *r = arg;
    VOLT_BEGIN(cx, r);
    for (r->i = 0; r->i < OPS; r->i++) {
        VOLT_AWAIT(r->rc, VOLT_SELECT_BIASED(VOLT_ARM(&r->sleep, volt_sleep(cx, VOLT_S(1))),
                                             VOLT_ARM(&r->ready, ready_at_once())));
        r->n_good += r->rc == 1 && r->sleep.value == -ECANCELED;
    }
    tally_add(r->n_good);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll t1c_run(volt_cx *cx, void *arg) {
    timed *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < OPS; t->i++) {
        VOLT_AWAIT(t->rc, volt_within(cx, &t->timer, VOLT_S(1), volt_yield(cx)));
        t->n_good += t->rc == 0;
    }
    tally_add(t->n_good);
    latch_hit(1);
    VOLT_END(0);
}

static const timed no_timed;
static const raced no_raced;
static batches t1a = { .times = 1, .n = TASKS, BATCH_OF(t1a_run, no_timed) };
static batches t1b = { .times = 1, .n = TASKS, BATCH_OF(t1b_run, no_raced) };
static batches t1c = { .times = 1, .n = TASKS, BATCH_OF(t1c_run, no_timed) };

static const row rows[] = {
    { "T1a", "timeout over a ready poll", TASKS * OPS, batches_run, &t1a },
    { "T1b", "sleep armed and cancelled by a select", TASKS * OPS, batches_run, &t1b },
    { "T1c", "timeout over a yield: arm, requeue, disarm", TASKS * OPS, batches_run, &t1c },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
