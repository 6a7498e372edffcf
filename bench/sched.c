// SPDX-License-Identifier: MIT OR 0BSD
// Scheduler rows: what spawning, chaining, handing over and yielding cost.
//
//   sched [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//
//   S1  spawn          detached empty tasks, 200 at a time; the root yields until they have run
//   S2  spawn_many     the root spawns 10,000 tasks at a time; the last one to run wakes it
//   S6  chained_spawn  each task spawns the next, 1000 deep; the last one wakes the root
//   S7  ping_pong      1000 tasks at a time each spawn a task, hand it a number with its state, and
//                      get it back by volt_join; one operation is both spawns and the hand-over
//   S8  yield_many     200 tasks yield 1000 times each
//
// S2, S6 and S8 have the shape of the benchmarks of the same names in Tokio's tree. S7 has too, but
// for two one-shot channels: here spawn carries the value there and join brings it back.
// Every task counts its operations. ns are per operation; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rows.h"

enum { S1_TASKS = 200, S2_TASKS = 10000, S6_DEPTH = 1000, S7_TASKS = 1000, S8_TASKS = 200 };
enum { MILLION = 1000000 / SHRINK, THOUSAND = 1000 / SHRINK };
enum { HUNDRED = 100 / SHRINK, FIVE = 5 / SHRINK };

// ---- S1: no latch; the root yields

typedef struct yielding {
    volt_frame frame;
    uint64_t target; // of the tally
    uint32_t i;
    int rc;
} yielding;

static volt_poll bare_run(volt_cx *cx, void *arg) {
    empty *e = arg;
    VOLT_BEGIN(cx, e);
    tally_add(1);
    VOLT_END(0);
}

static int spawn_bare(volt_cx *cx, uint32_t n) {
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = VOLT_SPAWN(cx, NULL, bare_run, no_empty);
    return rc;
}

static volt_poll yielding_run(volt_cx *cx, void *arg) {
    yielding *y = arg;
    VOLT_BEGIN(cx, y);
    y->target = tally_sum();
    for (y->i = 0; y->i < MILLION / S1_TASKS; y->i++) {
        y->rc = spawn_bare(cx, S1_TASKS);
        if (y->rc < 0) VOLT_RETURN(y->rc);
        y->target += S1_TASKS;
        do VOLT_AWAIT(volt_yield(cx));
        while (tally_sum() < y->target);
    }
    VOLT_END(0);
}

// ---- S6

typedef struct chain_link {
    volt_frame frame;
    uint32_t left;
} chain_link;

static volt_poll link_run(volt_cx *cx, void *arg) {
    chain_link *l = arg;
    VOLT_BEGIN(cx, l);
    tally_add(1);
    if (l->left == 0 || VOLT_SPAWN(cx, NULL, link_run, (chain_link){ .left = l->left - 1 }) < 0)
        latch_hit(1);
    VOLT_END(0);
}

// ---- S7

typedef struct pong {
    volt_frame frame;
    int64_t value;
} pong;

typedef struct ping {
    volt_frame frame;
    volt_handle pong;
    int64_t value;
    int rc;
} ping;

static volt_poll pong_run(volt_cx *cx, void *arg) {
    pong *p = arg;
    VOLT_BEGIN(cx, p);
    VOLT_END(p->value + 1);
}

static volt_poll ping_run(volt_cx *cx, void *arg) {
    ping *p = arg;
    VOLT_BEGIN(cx, p);
    p->value = (int64_t)((uintptr_t)p % 1000003); // some number of its own
    p->rc = VOLT_SPAWN(cx, &p->pong, pong_run, (pong){ .value = p->value });
    if (p->rc == 0) {
        VOLT_AWAIT(p->rc, volt_join(cx, &p->pong));
        if (p->rc == p->value + 1) tally_add(1);
    }
    latch_hit(1);
    VOLT_END(0);
}

// ---- main

static const ping no_ping;
static const chain_link first_link = { .left = S6_DEPTH - 1 };

static yielding s1;
static batches s2 = { .times = HUNDRED, .n = S2_TASKS, BATCH_OF(empty_run, no_empty) };
static batches s6 = { .times = THOUSAND, .n = 1, BATCH_OF(link_run, first_link) };
static batches s7 = { .times = HUNDRED, .n = S7_TASKS, BATCH_OF(ping_run, no_ping) };
static batches s8 = { .times = FIVE, .n = S8_TASKS, BATCH_OF(yielder_run, no_yielder) };

static const row rows[] = {
    { "S1", "spawn, 200 at a time", MILLION, yielding_run, &s1 },
    { "S2", "spawn, 10,000 at a time", HUNDRED * S2_TASKS, batches_run, &s2 },
    { "S6", "chained spawn, depth 1000", THOUSAND * S6_DEPTH, batches_run, &s6 },
    { "S7", "ping-pong: two spawns, hand-over, join", HUNDRED * S7_TASKS, batches_run, &s7 },
    { "S8", "yield, 200 tasks", FIVE * S8_TASKS * YIELDS, batches_run, &s8 },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
