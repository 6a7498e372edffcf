// SPDX-License-Identifier: MIT OR 0BSD
// Timer rows: the cost of a timeout that does not expire; many timers at once; their lateness.
//
//   timer [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//   timer --list                                   the names of the rows
//
//   T1   100 tasks do 10,000 operations each:
//        a  volt_within(1 s) over a poll that is ready at once: no timer is needed
//        b  volt_sleep(1 s) that a select arms and, having a ready second arm, cancels at once
//        c  volt_within(1 s) over volt_yield: arms, suspends, is polled again, disarms
//   T2   1,000,000 tasks sleep 10 s, from the first spawn until all have ended. Wall time is the
//        excess over the 10 s. Without warm-up, in a new runtime each time, 1 repetition unless
//        --reps is given
//   T3a  1,000,000 timers with deadlines spread over 0 to 999 ms from the start, armed and fired;
//        so the wall time is not much less than 1000 ns, and cpu is the figure to compare
//   T3b  1,000,000 live timers with deadlines spread over the hour after the next; a random one is
//        disarmed and armed again with another deadline, 1,000,000 times
//   T5a T5b  the same by one task with a delay queue (volt_delays): the deadlines are added, and
//        taken as they come; and a random one of 1,000,000 is moved to another time
//   T4   1000 tasks sleep 100 us (a), 1 ms (b) 50 times, 15 ms (c) 20 times each. min and median
//        are of the p99 of their lateness in a repetition; volt's timers have ticks of 1/16 ms,
//        rounded up
//
// volt.h has no timer without a task: one task may wait for 65,535 things at once, and checks all
// of them when one has come. A program with a million timers has a task for each, as here: in T3a a
// task with 56 bytes of state, which sleeps until its deadline. In T3b the task waits, with that
// deadline, for a change of it (volt_before, and a poll by hand); the changing side stores the new
// deadline and wakes the task.
//
// Arming reads the clock each time. ns are per operation; for the columns see bench.h, for wall
// figures that are not times latency.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"
#include "latency.h"

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

// ---- T2

enum { MILLION = 1000000 };

typedef struct sleeper {
    volt_frame frame;
    int rc;
} sleeper;
static const sleeper no_sleeper;

static volt_poll t2_sleep(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(10)));
    tally_add(s->rc == 0);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll t2_run(volt_cx *cx, void *arg) {
    batches *b = arg;
    VOLT_BEGIN(cx, b);
    bench_start(row_timed);
    b->rc = batch_spawn(cx, b);
    VOLT_AWAIT(latch_wait());
    row_timed->wall_start += VOLT_S(10);
    bench_stop(row_timed);
    VOLT_END(b->rc);
}

static void t2_measure(uint32_t workers, int reps) {
    bench_row figures = { .id = "T2", .what = "sleep 10 s: what is over it", .workers = workers };
    const volt_config config = { .workers = workers };
    figures.ops = MILLION;
    row_timed = &figures;
    for (int i = 0; i < reps; i++) {
        batches b = { .n = MILLION, BATCH_OF(t2_sleep, no_sleeper) };
        const uint64_t before = tally_sum();
        const int rc = volt_run(&config, t2_run, &b);
        if (rc < 0) bench_die("T2: %s", volt_strerror(rc));
        if (tally_sum() - before != MILLION) bench_die("T2: sleeps were lost or done twice");
    }
    bench_print(&figures);
}

// ---- T3a

static uint64_t chance = 1;
static uint32_t random_below(uint32_t n) {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((chance >> 32) * n >> 32);
}

typedef struct alarmed {
    volt_frame frame;
    volt_time at;
} alarmed;

typedef struct alarms {
    volt_frame frame;
    int rc;
} alarms;

static volt_poll alarmed_run(volt_cx *cx, void *arg) {
    alarmed *a = arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(volt_sleep_until(cx, a->at));
    tally_add(!volt_is_cancelled(cx));
    latch_hit(1);
    VOLT_END(0);
}

// As batch_spawn, each with a deadline of its own.
static int alarms_spawn(volt_cx *cx) {
    const int64_t start = bench_now();
    uint32_t i = 0;
    int rc = 0;
    latch_set(cx, MILLION);
    for (; i < MILLION && rc == 0; i += rc == 0) {
        const alarmed a = { .at = start + VOLT_MS(random_below(1000)) };
        rc = VOLT_SPAWN(cx, NULL, alarmed_run, a);
    }
    if (i < MILLION) latch_hit(MILLION - i);
    return rc;
}

static volt_poll t3a_run(volt_cx *cx, void *arg) {
    alarms *a = arg;
    VOLT_BEGIN(cx, a);
    a->rc = alarms_spawn(cx);
    VOLT_AWAIT(latch_wait());
    VOLT_END(a->rc);
}

// ---- T3b

typedef struct live { // a timer; it lives until the runtime ends
    volt_frame frame;
    volt_timer timer;
    volt_time at;             // any; by the changing side, before n_asked
    uint32_t n_asked, n_seen; // any; changes of the deadline; the first one is its begin
    uint32_t index;
    int rc;
} live;

typedef struct rearming {
    volt_frame frame;
    uint32_t i;
    int64_t hour; // the next one
    int is_set_up, rc;
} rearming;

enum { REARMED_AT_ONCE = 200 };
static struct {
    live *state;
    volt_waker task;
} lives[MILLION];

static volt_poll live_changed(volt_cx *cx, const live *l) {
    if (__atomic_load_n(&l->n_asked, __ATOMIC_ACQUIRE) != l->n_seen) return volt_ready(1);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}

static volt_time live_deadline(const live *l) { return __atomic_load_n(&l->at, __ATOMIC_RELAXED); }

static volt_poll live_run(volt_cx *cx, void *arg) {
    live *l = arg;
    VOLT_BEGIN(cx, l);
    lives[l->index].state = l;
    lives[l->index].task = volt_waker_retain(cx);
    for (;;) {
        VOLT_AWAIT(l->rc, volt_before(cx, &l->timer, live_deadline(l), live_changed(cx, l)));
        if (l->rc < 0) break;
        tally_add(l->n_seen > 0);
        __atomic_store_n(&l->n_seen, l->n_seen + 1, __ATOMIC_RELEASE);
        latch_hit(1);
    }
    volt_waker_release(lives[l->index].task);
    VOLT_END(l->rc);
}

static int lives_spawn(volt_cx *cx, const rearming *r) {
    uint32_t i = 0;
    int rc = 0;
    latch_set(cx, MILLION);
    for (; i < MILLION && rc == 0; i += rc == 0) {
        live l = { .at = r->hour + VOLT_MS(random_below(3600000)), .n_asked = 1 };
        l.index = i;
        rc = VOLT_SPAWN(cx, NULL, live_run, l);
    }
    if (i < MILLION) latch_hit(MILLION - i);
    return rc;
}

// A random one that has been armed since its last change.
static uint32_t live_by_chance(void) {
    for (;;) {
        const uint32_t i = random_below(MILLION);
        const live *l = lives[i].state;
        if (__atomic_load_n(&l->n_seen, __ATOMIC_ACQUIRE) == l->n_asked) return i;
    }
}

static void live_change(uint32_t i, volt_time at) {
    live *l = lives[i].state;
    __atomic_store_n(&l->at, at, __ATOMIC_RELAXED);
    __atomic_store_n(&l->n_asked, l->n_asked + 1, __ATOMIC_RELEASE);
    volt_wake(lives[i].task);
}

static void lives_change(volt_cx *cx, const rearming *r) {
    latch_set(cx, REARMED_AT_ONCE);
    for (int i = 0; i < REARMED_AT_ONCE; i++)
        live_change(live_by_chance(), r->hour + VOLT_MS(random_below(3600000)));
}

static volt_poll t3b_run(volt_cx *cx, void *arg) {
    rearming *r = arg;
    VOLT_BEGIN(cx, r);
    if (!r->is_set_up) { // in the warm-up
        r->is_set_up = 1;
        r->hour = bench_now() + VOLT_S(3600);
        r->rc = lives_spawn(cx, r);
        VOLT_AWAIT(latch_wait());
        if (r->rc < 0) VOLT_RETURN(r->rc);
    }
    for (r->i = 0; r->i < MILLION / REARMED_AT_ONCE; r->i++) {
        lives_change(cx, r);
        VOLT_AWAIT(latch_wait());
    }
    VOLT_END(0);
}

// ---- T5

static volt_delays queue;
static volt_delay delays[MILLION];

typedef struct draining {
    volt_frame frame;
    uint32_t n;
} draining;

static void delays_add(volt_time from, uint32_t ms) {
    for (uint32_t i = 0; i < MILLION; i++)
        volt_delays_set(&queue, &delays[i], from + VOLT_MS(random_below(ms)));
}

static volt_poll t5a_run(volt_cx *cx, void *arg) {
    draining *d = arg;
    VOLT_BEGIN(cx, d);
    delays_add(bench_now(), 1000);
    for (d->n = 0; volt_delays_next(&queue) != VOLT_NEVER;) {
        VOLT_AWAIT(volt_sleep_until(cx, volt_delays_next(&queue)));
        for (volt_time now = volt_now(); volt_delays_take(&queue, now);) d->n++;
    }
    tally_add(d->n);
    VOLT_END(0);
}

static volt_poll t5b_run(volt_cx *cx, void *arg) {
    static volt_time hour;
    draining *d = arg;
    VOLT_BEGIN(cx, d);
    if (hour == 0) { // in the warm-up
        hour = bench_now() + VOLT_S(3600);
        delays_add(hour, 3600000);
    }
    for (d->n = 0; d->n < MILLION; d->n++)
        volt_delays_set(&queue, &delays[random_below(MILLION)],
                        hour + VOLT_MS(random_below(3600000)));
    tally_add(volt_delays_len(&queue) == MILLION ? d->n : 0);
    VOLT_END(0);
}

// ---- T4

enum { LATE_TASKS = 1000, LATE_TIMES_MOST = 50 };
static double samples[LATE_TASKS * LATE_TIMES_MOST]; // one for each sleep
static uint32_t late_next;                           // start of the next task's samples

typedef struct late {
    volt_frame frame;
    volt_time d;
    uint32_t times, i, n_good;
    int64_t due;
    double *samples;
    int rc;
} late;

static volt_poll late_run(volt_cx *cx, void *arg) {
    late *l = arg;
    VOLT_BEGIN(cx, l);
    l->samples = &samples[__atomic_fetch_add(&late_next, l->times, __ATOMIC_RELAXED)];
    for (l->i = 0; l->i < l->times; l->i++) {
        l->due = bench_now() + l->d;
        VOLT_AWAIT(l->rc, volt_sleep(cx, l->d));
        l->samples[l->i] = (double)(bench_now() - l->due);
        l->n_good += l->rc == 0 && l->samples[l->i] >= 0;
    }
    tally_add(l->n_good);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll t4_run(volt_cx *cx, void *arg) {
    batches *b = arg;
    VOLT_BEGIN(cx, b);
    late_next = 0;
    b->rc = batch_spawn(cx, b);
    VOLT_AWAIT(latch_wait());
    bench_wall_of(row_timed, samples, (size_t)row_timed->ops, 0.99);
    VOLT_END(b->rc);
}

// ---- main

static const timed no_timed;
static const raced no_raced;
static const late late_us = { .d = VOLT_US(100), .times = 50 };
static const late late_ms = { .d = VOLT_MS(1), .times = 50 };
static const late late_15_ms = { .d = VOLT_MS(15), .times = 20 };
static batches t1a = { .times = 1, .n = TASKS, BATCH_OF(t1a_run, no_timed) };
static batches t1b = { .times = 1, .n = TASKS, BATCH_OF(t1b_run, no_raced) };
static batches t1c = { .times = 1, .n = TASKS, BATCH_OF(t1c_run, no_timed) };
static alarms t3a;
static rearming t3b;
static draining t5a, t5b;
static batches t4a = { .n = LATE_TASKS, BATCH_OF(late_run, late_us) };
static batches t4b = { .n = LATE_TASKS, BATCH_OF(late_run, late_ms) };
static batches t4c = { .n = LATE_TASKS, BATCH_OF(late_run, late_15_ms) };

static const row rows[] = {
    { "T1a", "timeout over a ready poll", TASKS * OPS, batches_run, &t1a },
    { "T1b", "sleep armed and cancelled by a select", TASKS * OPS, batches_run, &t1b },
    { "T1c", "timeout over a yield: arm, requeue, disarm", TASKS * OPS, batches_run, &t1c },
    { "T3a", "timer of 0 to 999 ms, a task each", MILLION, t3a_run, &t3a },
    { "T3b", "re-arm one of 1,000,000, by a wake-up", MILLION, t3b_run, &t3b },
    { "T5a", "delay queue: add, take when due", MILLION, t5a_run, &t5a },
    { "T5b", "delay queue of 1,000,000: move one", MILLION, t5b_run, &t5b },
    { "T4a", "sleep 100 us, 1000 tasks: p99 lateness", LATE_TASKS * 50, t4_run, &t4a },
    { "T4b", "sleep 1 ms, 1000 tasks: p99 lateness", LATE_TASKS * 50, t4_run, &t4b },
    { "T4c", "sleep 15 ms, 1000 tasks: p99 lateness", LATE_TASKS * 20, t4_run, &t4c },
};

// The number behind an option; `other` if it is missing.
static int option(int argc, char **argv, const char *name, int most, int other) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return (int)bench_number(name, argv[i + 1], 1, most);
    return other;
}

// Removes T2 from the named rows, if it is among them; returns the number of the others.
static int take_t2(int *argc, char **argv, int *has_t2) {
    int kept = 1, others = 0;
    for (int i = 1; i < *argc; i++) {
        const int is_row = argv[i][0] != '-' && argv[i - 1][0] != '-'; // options have a number each
        if (is_row && strcmp(argv[i], "T2") == 0) {
            *has_t2 = 1;
        } else {
            others += is_row;
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return others;
}

// T2, which is measured in another way, comes last.
int main(int argc, char **argv) {
    int has_t2 = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return rows_main(argc, argv, rows, BENCH_COUNT(rows)) || puts("T2") < 0;
    const int workers = option(argc, argv, "--workers", 64, 1);
    const int reps = option(argc, argv, "--reps", BENCH_REPS_MAX, 1);
    const int others = take_t2(&argc, argv, &has_t2);
    const int is_all = others == 0 && !has_t2;
    if (others > 0 || is_all) (void)rows_main(argc, argv, rows, BENCH_COUNT(rows));
    else bench_print_header();
    if (has_t2 || is_all) t2_measure((uint32_t)workers, reps);
    return 0;
}
