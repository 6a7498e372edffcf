// SPDX-License-Identifier: MIT OR 0BSD
// Scheduler rows: the cost of spawning, chaining, handing over and yielding.
//
//   sched [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//
//   S1  spawn          detached empty tasks, 200 at a time; the root yields until they have run
//   S2  spawn_many     the root spawns 10,000 tasks at a time; the last one to run wakes it
//   S6  chained_spawn  each task spawns the next, 1000 deep; the last one wakes the root
//   S7  ping_pong      1000 tasks at a time each spawn a task, hand it a number with its state, and
//                      get it back by volt_join; one operation is both spawns and the hand-over
//   S7o ping_pong      the same through two oneshots: the number is sent when the task has started
//   S8  yield_many     200 tasks yield 1000 times each
//   S9  there and back pairs of tasks and two channels of capacity 1: a number is sent, comes back
//                      one larger; a one pair, b as many as workers, c 200
//   S10 skynet         a tree of tasks, ten children each, down to a million leaves, which return
//                      their ordinals; the others spawn their children and add up the results
//
// S2, S6, S7o and S8 have the shape of the benchmarks of the same names in Tokio's tree. S7 is S7o
// in the form that volt.h suggests: spawn carries the value there and join brings it back. In S10
// children leave their sum with their parent, which waits for all by a wait group: joining one
// after the other would wake it ten times, and takes twice as long. Every task counts its
// operations. ns are per operation; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
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
    p->value = (int64_t)((uintptr_t)p % 1000003); // a number that depends on the task
    p->rc = VOLT_SPAWN(cx, &p->pong, pong_run, (pong){ .value = p->value });
    if (p->rc == 0) {
        VOLT_AWAIT(p->rc, volt_join(cx, &p->pong));
        if (p->rc == p->value + 1) tally_add(1);
    }
    latch_hit(1);
    VOLT_END(0);
}

// ---- S7o

typedef struct sent_pong {
    volt_frame frame;
    volt_oneshot *there, *back;
    int64_t value;
} sent_pong;

typedef struct sent_ping {
    volt_frame frame;
    volt_oneshot there, back;
    int64_t value, got;
    int rc;
} sent_ping;

static volt_poll sent_pong_run(volt_cx *cx, void *arg) {
    sent_pong *p = arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->value, volt_oneshot_recv(cx, p->there));
    // the task and its state are gone once it is received
    VOLT_END(volt_oneshot_send(p->back, p->value + 1));
}

static volt_poll sent_ping_run(volt_cx *cx, void *arg) {
    sent_ping *p = arg;
    VOLT_BEGIN(cx, p);
    p->value = (int64_t)((uintptr_t)p % 1000003);
    p->rc = VOLT_SPAWN(cx, NULL, sent_pong_run,
                       (sent_pong){ .there = &p->there, .back = &p->back });
    if (p->rc == 0 && volt_oneshot_send(&p->there, p->value) == 0) {
        VOLT_AWAIT(p->got, volt_oneshot_recv(cx, &p->back));
        if (p->got == p->value + 1) tally_add(1);
    }
    latch_hit(1);
    VOLT_END(0);
}

// ---- S9

typedef struct returner {
    volt_frame frame;
    volt_chan *there, *back;
    uint64_t value;
    int rc;
} returner;

typedef struct traveller {
    volt_frame frame;
    volt_chan there, back;
    uint64_t there_buf, back_buf, value, n_good;
    volt_handle returner;
    uint32_t trips, i;
    int rc;
} traveller;

static volt_poll returner_run(volt_cx *cx, void *arg) {
    returner *r = arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->rc, volt_chan_recv(cx, r->there, &r->value, sizeof r->value));
        if (r->rc != 1) break;
        r->value++;
        VOLT_AWAIT(r->rc, volt_chan_send(cx, r->back, &r->value, sizeof r->value));
        if (r->rc < 0) break;
    }
    VOLT_END(r->rc);
}

static int travel_begin(volt_cx *cx, traveller *t) {
    volt_chan_init(&t->there, &t->there_buf, sizeof t->there_buf, 1);
    volt_chan_init(&t->back, &t->back_buf, sizeof t->back_buf, 1);
    return VOLT_SPAWN(cx, &t->returner, returner_run,
                      (returner){ .there = &t->there, .back = &t->back });
}

static volt_poll traveller_run(volt_cx *cx, void *arg) {
    traveller *t = arg;
    VOLT_BEGIN(cx, t);
    t->rc = travel_begin(cx, t);
    for (t->i = 0; t->rc >= 0 && t->i < t->trips; t->i++) {
        t->value = t->i;
        VOLT_AWAIT(t->rc, volt_chan_send(cx, &t->there, &t->value, sizeof t->value));
        if (t->rc < 0) break;
        VOLT_AWAIT(t->rc, volt_chan_recv(cx, &t->back, &t->value, sizeof t->value));
        t->n_good += t->rc == 1 && t->value == (uint64_t)t->i + 1;
    }
    volt_chan_close(&t->there);
    VOLT_AWAIT(t->rc, volt_join(cx, &t->returner));
    tally_add(t->n_good);
    latch_hit(1);
    VOLT_END(t->rc);
}

// ---- S10

enum { CHILDREN = 10, LEAVES = SHRINK == 1 ? 1000000 : 100000 };

typedef struct inner {
    volt_frame frame;
    struct inner *parent; // NULL: the root
    volt_wait_group children;
    int64_t first, leaves; // ordinal of the first leaf, and their number
    int64_t sums[CHILDREN];
    int rc;
} inner;
typedef struct leaf {
    volt_frame frame;
    inner *parent;
    int64_t ordinal;
} leaf;

static void give(inner *parent, int64_t index, int64_t sum) {
    parent->sums[index % CHILDREN] = sum;
    volt_wait_group_done(&parent->children);
}
static volt_poll leaf_run(volt_cx *cx, void *arg) {
    leaf *l = arg;
    VOLT_BEGIN(cx, l);
    tally_add(1);
    give(l->parent, l->ordinal, l->ordinal);
    VOLT_END(0);
}

static volt_poll inner_run(volt_cx *cx, void *arg);

static int spawn_child(volt_cx *cx, inner *n, int64_t first, int64_t leaves) {
    if (leaves == 1) return VOLT_SPAWN(cx, NULL, leaf_run, (leaf){ .parent = n, .ordinal = first });
    return VOLT_SPAWN(cx, NULL, inner_run,
                      (inner){ .parent = n, .first = first, .leaves = leaves });
}
// A failed start adds nothing, which the sum shows.
static void spawn_children(volt_cx *cx, inner *n) {
    const int64_t leaves = n->leaves / CHILDREN;
    (void)volt_wait_group_add(&n->children, CHILDREN);
    for (int64_t i = 0; i < CHILDREN; i++)
        if (spawn_child(cx, n, n->first + i * leaves, leaves) < 0) give(n, i, -1);
}
static volt_poll inner_run(volt_cx *cx, void *arg) {
    inner *n = arg;
    VOLT_BEGIN(cx, n);
    int64_t sum;
    spawn_children(cx, n);
    VOLT_AWAIT(n->rc, volt_wait_group_wait(cx, &n->children));
    sum = 0;
    for (int i = 0; i < CHILDREN; i++) sum += n->sums[i];
    if (n->parent) give(n->parent, n->first / n->leaves, sum);
    VOLT_END(n->rc < 0 ? n->rc : sum);
}

typedef struct skynet {
    volt_frame frame;
    inner top;
    int64_t sum;
} skynet;

static volt_poll skynet_run(volt_cx *cx, void *arg) {
    skynet *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->sum, inner_run(cx, &s->top));
    VOLT_END(s->sum == (int64_t)LEAVES * (LEAVES - 1) / 2 ? 0 : -EBADMSG);
}

// ---- main

static const ping no_ping;
static const sent_ping no_sent_ping;
static const chain_link first_link = { .left = S6_DEPTH - 1 };

static yielding s1;
static batches s2 = { .times = HUNDRED, .n = S2_TASKS, BATCH_OF(empty_run, no_empty) };
static batches s6 = { .times = THOUSAND, .n = 1, BATCH_OF(link_run, first_link) };
static batches s7 = { .times = HUNDRED, .n = S7_TASKS, BATCH_OF(ping_run, no_ping) };
static batches s7o = { .times = HUNDRED, .n = S7_TASKS, BATCH_OF(sent_ping_run, no_sent_ping) };
static batches s8 = { .times = FIVE, .n = S8_TASKS, BATCH_OF(yielder_run, no_yielder) };

enum { S9_TRIPS = 200000 / SHRINK, S9C_PAIRS = 200 };
static const traveller all_trips = { .trips = S9_TRIPS };
static const traveller some_trips = { .trips = S9_TRIPS / S9C_PAIRS };
static traveller even_trips;
static batches s9a = { .times = 1, .n = 1, BATCH_OF(traveller_run, all_trips) };
static batches s9b = { .times = 1, BATCH_OF(traveller_run, even_trips) };
static batches s9c = { .times = 1, .n = S9C_PAIRS, BATCH_OF(traveller_run, some_trips) };

static volt_poll s9b_run(volt_cx *cx, void *arg) {
    s9b.n = row_workers;
    even_trips.trips = S9_TRIPS / row_workers;
    return batches_run(cx, arg);
}

static skynet s10 = { .top = { .leaves = LEAVES } };

static const row rows[] = {
    { "S1", "spawn, 200 at a time", MILLION, yielding_run, &s1 },
    { "S2", "spawn, 10,000 at a time", HUNDRED * S2_TASKS, batches_run, &s2 },
    { "S6", "chained spawn, depth 1000", THOUSAND * S6_DEPTH, batches_run, &s6 },
    { "S7", "ping-pong: two spawns, hand-over, join", HUNDRED * S7_TASKS, batches_run, &s7 },
    { "S7o", "ping-pong by two oneshots", HUNDRED * S7_TASKS, batches_run, &s7o },
    { "S8", "yield, 200 tasks", FIVE * S8_TASKS * YIELDS, batches_run, &s8 },
    { "S9a", "there and back, one pair", S9_TRIPS, batches_run, &s9a },
    { "S9b", "there and back, a pair per worker", S9_TRIPS | ROW_EVEN, s9b_run, &s9b },
    { "S9c", "there and back, 200 pairs", S9_TRIPS, batches_run, &s9c },
    { "S10", "skynet: a tree of tasks, per leaf", LEAVES | ROW_CROWD, skynet_run, &s10 },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
