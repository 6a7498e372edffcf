// SPDX-License-Identifier: MIT OR 0BSD
// Rows about synchronisation between tasks: locks, semaphores, once, notify, barrier.
//
//   sync [ROW...] [--workers N] [--reps N]         default: all rows, 1 worker, 9 repetitions
//
//   C1   without contention, lock and unlock: a mutex, b rwlock read, c write, d semaphore of 10;
//        t: by the function that never waits, w: by the one that is awaited
//   C2   a: reading a once that is done and its value; b: a new once, begun, set and ended
//   C3   a: a new notify, notified and waited for; b: a new barrier of 1; c: a barrier of 8 tasks
//   C9   10,000 operations, 100 times: a 4 tasks at a mutex, b 4 readers and 2 writers at an
//        rwlock, c 8 tasks at a semaphore of 2; d 4 tasks at a mutex that each holds over a yield;
//        e the same with a mutex that is strictly FIFO
//   C10  N tasks wait: a, b all are notified, N = 10, 500; c, d one, which notifies the next one
//   C9w  instead of times: the longest wait of a task in 0.2 s, and the least and the largest
//        share of the operations that a task got; 1: an equal share. Only when it is asked for
//
// C1t, C2, C3a, C3b and C9a to C9c are the workloads of a published comparison with Tokio, C9 and
// C10 are after Tokio's own benchmarks. A lock guards a plain number, whose final value is checked.
// ns are per operation, in C3c per round of all 8; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"

enum { MILLION = 1000000 / SHRINK };

static volt_mutex mutex;
static volt_mutex mutex_fifo = VOLT_MUTEX_FIFO;
static volt_rwlock rwlock;
static volt_sem sem;
static volt_once once;
static uint64_t guarded; // by the lock that the row is about

// A row that never waits.
typedef struct plain {
    volt_frame frame;
    int (*fn)(void);
} plain;

static volt_poll plain_run(volt_cx *cx, void *arg) {
    plain *p = arg;
    VOLT_BEGIN(cx, p);
    VOLT_END(p->fn());
}

// A row that awaits in a loop.
typedef struct loop {
    volt_frame frame;
    uint32_t i;
    int rc;
    uint64_t sum;
    volt_notify notify;
    volt_barrier barrier;
} loop;

// ---- C1: tried

static int try_mutex(void) {
    guarded = 0;
    for (int i = 0; i < MILLION; i++) {
        if (volt_mutex_try_lock(&mutex) < 0) return -EBADMSG;
        guarded++;
        volt_mutex_unlock(&mutex);
    }
    tally_add(guarded);
    return 0;
}

static int try_read(void) {
    uint64_t sum = 0;
    guarded = 1;
    for (int i = 0; i < MILLION; i++) {
        if (volt_rwlock_try_read(&rwlock) < 0) return -EBADMSG;
        sum += guarded;
        volt_rwlock_unlock(&rwlock);
    }
    tally_add(sum);
    return 0;
}

static int try_write(void) {
    guarded = 0;
    for (int i = 0; i < MILLION; i++) {
        if (volt_rwlock_try_write(&rwlock) < 0) return -EBADMSG;
        guarded++;
        volt_rwlock_unlock(&rwlock);
    }
    tally_add(guarded);
    return 0;
}

static int try_sem(void) {
    sem = (volt_sem)VOLT_SEM_INIT(10);
    guarded = 0;
    for (int i = 0; i < MILLION; i++) {
        if (volt_sem_try_acquire(&sem, 1) < 0) return -EBADMSG;
        guarded++;
        volt_sem_release(&sem, 1);
    }
    tally_add(volt_sem_available(&sem) == 10 ? guarded : 0);
    return 0;
}

// ---- C1: awaited

static volt_poll mutex_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    guarded = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        VOLT_AWAIT(l->rc, volt_mutex_lock(cx, &mutex));
        if (l->rc < 0) VOLT_RETURN(l->rc);
        guarded++;
        volt_mutex_unlock(&mutex);
    }
    tally_add(guarded);
    VOLT_END(0);
}

static volt_poll read_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    guarded = 1;
    for (l->i = 0; l->i < MILLION; l->i++) {
        VOLT_AWAIT(l->rc, volt_rwlock_read(cx, &rwlock));
        if (l->rc < 0) VOLT_RETURN(l->rc);
        l->sum += guarded;
        volt_rwlock_unlock(&rwlock);
    }
    tally_add(l->sum);
    VOLT_END(0);
}

static volt_poll write_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    guarded = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        VOLT_AWAIT(l->rc, volt_rwlock_write(cx, &rwlock));
        if (l->rc < 0) VOLT_RETURN(l->rc);
        guarded++;
        volt_rwlock_unlock(&rwlock);
    }
    tally_add(guarded);
    VOLT_END(0);
}

static volt_poll sem_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    sem = (volt_sem)VOLT_SEM_INIT(10);
    guarded = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        VOLT_AWAIT(l->rc, volt_sem_acquire(cx, &sem, 1));
        if (l->rc < 0) VOLT_RETURN(l->rc);
        guarded++;
        volt_sem_release(&sem, 1);
    }
    tally_add(volt_sem_available(&sem) == 10 ? guarded : 0);
    VOLT_END(0);
}

// ---- C2

static inline uint64_t once_look(void) { return volt_once_is_done(&once) ? guarded : 0; }
// A read takes a cycle: two sums and an unrolled loop, as other compilers make them by themselves,
// so that neither limits the measurement.
static int once_get(void) {
    uint64_t even = 0, odd = 0;
    once = (volt_once)VOLT_ONCE_INIT;
    if (volt_once_try_begin(&once) != 1) return -EBADMSG;
    guarded = 1;
    volt_once_end(&once, 1);
#pragma GCC unroll 4
    for (int i = 0; i < MILLION; i += 2) even += once_look(), odd += once_look();
    tally_add(even + odd);
    return 0;
}

static int once_set(void) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < MILLION; i++) {
        once = (volt_once)VOLT_ONCE_INIT;
        if (volt_once_try_begin(&once) != 1) return -EBADMSG;
        guarded = i;
        volt_once_end(&once, 1);
        n += volt_once_is_done(&once) && guarded == i;
    }
    tally_add(n);
    return 0;
}

// ---- C3

static volt_poll notify_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        l->notify = (volt_notify)VOLT_NOTIFY_INIT;
        volt_notify_one(&l->notify);
        VOLT_AWAIT(l->rc, volt_notify_wait(cx, &l->notify));
        l->sum += l->rc == 0;
    }
    tally_add(l->sum);
    VOLT_END(0);
}

static volt_poll barrier_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        l->barrier = (volt_barrier)VOLT_BARRIER_INIT(1);
        VOLT_AWAIT(l->rc, volt_barrier_wait(cx, &l->barrier));
        l->sum += l->rc == 1;
    }
    tally_add(l->sum);
    VOLT_END(0);
}

enum { PARTIES = 8, MEETINGS = 20000 / SHRINK };
static volt_barrier meeting = VOLT_BARRIER_INIT(PARTIES);

// One of them is told that it came last; that task counts the round.
static volt_poll party_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    for (l->i = 0; l->i < MEETINGS; l->i++) {
        VOLT_AWAIT(l->rc, volt_barrier_wait(cx, &meeting));
        l->sum += l->rc == 1;
    }
    tally_add(l->sum);
    latch_hit(1);
    VOLT_END(0);
}

// ---- C9

enum { C9_OPS = 10000, C9_TIMES = 100, YIELD_TIMES = 20 };
enum { LOCKERS = 4, READERS = 4, WRITERS = 2, ACQUIRERS = 8, PERMITS = 2 };

typedef struct contender {
    volt_frame frame;
    uint32_t i, id;
    int rc;
    uint64_t seen;
    int64_t since, longest; // C9w
} contender;
static uint32_t n_contenders; // that have begun

static uint32_t contender_number(void) {
    return __atomic_fetch_add(&n_contenders, 1, __ATOMIC_RELAXED);
}

static volt_poll locker_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < C9_OPS / LOCKERS; c->i++) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &mutex));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        guarded++;
        volt_mutex_unlock(&mutex);
    }
    tally_add(c->i);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll holder_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < C9_OPS / LOCKERS; c->i++) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &mutex));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        c->seen = guarded;
        VOLT_AWAIT(volt_yield(cx));
        guarded = c->seen + 1; // the lock excludes other writers since `seen`
        volt_mutex_unlock(&mutex);
    }
    tally_add(c->i);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll in_turn_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < C9_OPS / LOCKERS; c->i++) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &mutex_fifo));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        c->seen = guarded;
        VOLT_AWAIT(volt_yield(cx));
        guarded = c->seen + 1; // the lock excludes other writers since `seen`
        volt_mutex_unlock(&mutex_fifo);
    }
    tally_add(c->i);
    latch_hit(1);
    VOLT_END(0);
}

static int reader_or_writer(uint32_t id) { return id % (READERS + WRITERS) < READERS; }
static volt_poll rwlock_take(volt_cx *cx, uint32_t id) {
    return reader_or_writer(id) ? volt_rwlock_read(cx, &rwlock) : volt_rwlock_write(cx, &rwlock);
}

static volt_poll reader_writer_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    c->id = contender_number();
    for (c->i = 0; c->i < C9_OPS / (READERS + WRITERS); c->i++) {
        VOLT_AWAIT(c->rc, rwlock_take(cx, c->id));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        if (!reader_or_writer(c->id)) guarded++;
        volt_rwlock_unlock(&rwlock);
    }
    tally_add(c->i);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll acquirer_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < C9_OPS / ACQUIRERS; c->i++) {
        VOLT_AWAIT(c->rc, volt_sem_acquire(cx, &sem, 1));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        volt_sem_release(&sem, 1);
    }
    tally_add(c->i);
    latch_hit(1);
    VOLT_END(0);
}

// Begins with everything unlocked, and checks at the end that it is unlocked and its number right.
typedef struct contention {
    volt_frame frame;
    batches all;
    uint64_t writes; // of the guarded number
    int rc;
} contention;

static int contention_is_over(const contention *c) {
    if (guarded != c->writes || volt_sem_available(&sem) != PERMITS) return 0;
    if (volt_mutex_try_lock(&mutex) < 0 || volt_rwlock_try_write(&rwlock) < 0) return 0;
    volt_mutex_unlock(&mutex);
    volt_rwlock_unlock(&rwlock);
    return 1;
}

static volt_poll contention_run(volt_cx *cx, void *arg) {
    contention *c = arg;
    VOLT_BEGIN(cx, c);
    guarded = n_contenders = 0;
    sem = (volt_sem)VOLT_SEM_INIT(PERMITS);
    VOLT_AWAIT(c->rc, batches_run(cx, &c->all));
    if (c->rc == 0 && !contention_is_over(c)) VOLT_RETURN(-EBADMSG);
    VOLT_END(c->rc);
}

// ---- C9w

static struct share {
    _Alignas(TALLY_LINE) uint64_t n; // operations
    int64_t longest;                 // of their waits
} shares[ACQUIRERS];
static int64_t waits_end;

typedef volt_poll take_fn(volt_cx *cx, uint32_t id);
typedef void give_fn(uint32_t id);
typedef struct contest {
    const char *what;
    uint32_t n; // tasks
    take_fn *take;
    give_fn *give;
    int yields; // while it holds the lock
} contest;
static const contest *contest_now;

static volt_poll take_mutex(volt_cx *cx, uint32_t id) {
    (void)id;
    return volt_mutex_lock(cx, &mutex);
}
static volt_poll take_fifo(volt_cx *cx, uint32_t id) {
    (void)id;
    return volt_mutex_lock(cx, &mutex_fifo);
}
static volt_poll take_sem(volt_cx *cx, uint32_t id) {
    (void)id;
    return volt_sem_acquire(cx, &sem, 1);
}
static void give_mutex(uint32_t id) {
    (void)id;
    volt_mutex_unlock(&mutex);
}
static void give_fifo(uint32_t id) {
    (void)id;
    volt_mutex_unlock(&mutex_fifo);
}
static void give_rwlock(uint32_t id) {
    (void)id;
    volt_rwlock_unlock(&rwlock);
}
static void give_sem(uint32_t id) {
    (void)id;
    volt_sem_release(&sem, 1);
}

static volt_poll contestant_run(volt_cx *cx, void *arg) {
    contender *c = arg;
    VOLT_BEGIN(cx, c);
    c->id = contender_number();
    for (c->i = 0;; c->i++) {
        c->since = bench_now();
        if (c->since > waits_end) break;
        VOLT_AWAIT(c->rc, contest_now->take(cx, c->id));
        if (c->rc < 0) VOLT_RETURN(c->rc);
        c->since = bench_now() - c->since;
        if (c->since > c->longest) c->longest = c->since;
        if (contest_now->yields) VOLT_AWAIT(volt_yield(cx));
        contest_now->give(c->id);
    }
    shares[c->id].n = c->i;
    shares[c->id].longest = c->longest;
    latch_hit(1);
    VOLT_END(0);
}

static const contender no_contender;
static const contest contests[] = {
    { "mutex", LOCKERS, take_mutex, give_mutex, 0 },
    { "rwlock", READERS + WRITERS, rwlock_take, give_rwlock, 0 },
    { "semaphore", ACQUIRERS, take_sem, give_sem, 0 },
    { "mutex+yield", LOCKERS, take_mutex, give_mutex, 1 },
    { "fifo+yield", LOCKERS, take_fifo, give_fifo, 1 },
    { "rwlock+yield", READERS + WRITERS, rwlock_take, give_rwlock, 1 },
    { "semaphore+yield", ACQUIRERS, take_sem, give_sem, 1 },
};

static void contest_print(const contest *k, uint32_t workers, double seconds) {
    uint64_t n = 0, least = UINT64_MAX, most = 0;
    int64_t longest = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        n += shares[i].n;
        if (shares[i].n < least) least = shares[i].n;
        if (shares[i].n > most) most = shares[i].n;
        if (shares[i].longest > longest) longest = shares[i].longest;
    }
    if (n == 0) bench_die("C9w: nothing was done");
    const double fair = (double)n / (double)k->n;
    printf("%-12s %7" PRIu32 " %-16s %12.0f %10.1f %8.2f %8.2f\n", "C9w", workers, k->what,
           (double)n / seconds, (double)longest / 1000, (double)least / fair, (double)most / fair);
    fflush(stdout);
}

static void contests_hold(uint32_t workers) {
    printf("%-12s %7s %-16s %12s %10s %8s %8s\n", "row", "workers", "contest", "ops/s",
           "longest us", "least", "most");
    for (size_t i = 0; i < BENCH_COUNT(contests); i++) {
        contention c = { .all = { .times = 1, BATCH_OF(contestant_run, no_contender) } };
        const volt_config config = rows_config(workers);
        const int64_t start = bench_now();
        contest_now = &contests[i];
        c.all.n = contest_now->n;
        waits_end = start + 200000000;
        const int rc = volt_run(&config, contention_run, &c);
        if (rc < 0) bench_die("C9w: %s", volt_strerror(rc));
        contest_print(contest_now, workers, (double)(bench_now() - start) / 1e9);
    }
}

// ---- C10

enum { C10_OPS = 200000 };
static volt_notify bell;
typedef struct waiter {
    volt_frame frame;
    uint32_t i, seen, rounds;
    int rc;
} waiter;

// Reports its arrival once it will see the next notification.
static volt_poll all_waiter_run(volt_cx *cx, void *arg) {
    waiter *w = arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < w->rounds; w->i++) {
        w->seen = volt_notify_count(&bell);
        latch_hit(1);
        VOLT_AWAIT(w->rc, volt_notify_wait_past(cx, &bell, w->seen));
        if (w->rc < 0) VOLT_RETURN(w->rc);
    }
    tally_add(w->i);
    latch_hit(1);
    VOLT_END(0);
}

// The root begins when all tasks, except perhaps the last, wait: a task does not notify itself.
static volt_poll one_waiter_run(volt_cx *cx, void *arg) {
    waiter *w = arg;
    VOLT_BEGIN(cx, w);
    latch_hit(1);
    for (w->i = 0; w->i < w->rounds; w->i++) {
        VOLT_AWAIT(w->rc, volt_notify_wait(cx, &bell));
        if (w->rc < 0) VOLT_RETURN(w->rc);
        volt_notify_one(&bell);
    }
    tally_add(w->i);
    latch_hit(1);
    VOLT_END(0);
}

typedef struct fan_out {
    volt_frame frame;
    uint32_t n; // tasks
    uint32_t i;
    int rc;
} fan_out;

static int fan_out_spawn(volt_cx *cx, const fan_out *f, volt_fn *fn) {
    const waiter first = { .rounds = C10_OPS / f->n };
    return batch_spawn(cx, &(batches){ .n = f->n, BATCH_OF(fn, first) });
}

static volt_poll notify_all_run(volt_cx *cx, void *arg) {
    fan_out *f = arg;
    VOLT_BEGIN(cx, f);
    f->rc = fan_out_spawn(cx, f, all_waiter_run);
    if (f->rc < 0) VOLT_RETURN(f->rc);
    VOLT_AWAIT(latch_wait());
    for (f->i = 0; f->i < C10_OPS / f->n; f->i++) {
        latch_set(cx, f->n);
        volt_notify_all(&bell);
        VOLT_AWAIT(latch_wait());
    }
    VOLT_END(0);
}

static volt_poll notify_one_run(volt_cx *cx, void *arg) {
    fan_out *f = arg;
    VOLT_BEGIN(cx, f);
    bell = (volt_notify)VOLT_NOTIFY_INIT;
    f->rc = fan_out_spawn(cx, f, one_waiter_run);
    if (f->rc < 0) VOLT_RETURN(f->rc);
    VOLT_AWAIT(latch_wait());
    latch_set(cx, f->n);
    volt_notify_one(&bell);
    VOLT_AWAIT(latch_wait());
    VOLT_END(0);
}

// ---- main

static plain c1at = { .fn = try_mutex }, c1bt = { .fn = try_read }, c1ct = { .fn = try_write };
static plain c1dt = { .fn = try_sem }, c2a = { .fn = once_get }, c2b = { .fn = once_set };
static loop awaiting;
static const loop no_loop;
static batches c3c = { .times = 1, .n = PARTIES, BATCH_OF(party_run, no_loop) };
static contention c9a = {
    .all = { .times = C9_TIMES, .n = LOCKERS, BATCH_OF(locker_run, no_contender) },
    .writes = C9_TIMES * C9_OPS,
};
static contention c9b = {
    .all = { .times = C9_TIMES, .n = READERS + WRITERS, BATCH_OF(reader_writer_run, no_contender) },
    .writes = C9_TIMES * WRITERS * (C9_OPS / (READERS + WRITERS)),
};
static contention c9c = {
    .all = { .times = C9_TIMES, .n = ACQUIRERS, BATCH_OF(acquirer_run, no_contender) },
};
static contention c9d = {
    .all = { .times = YIELD_TIMES, .n = LOCKERS, BATCH_OF(holder_run, no_contender) },
    .writes = YIELD_TIMES * C9_OPS,
};
static contention c9e = {
    .all = { .times = YIELD_TIMES, .n = LOCKERS, BATCH_OF(in_turn_run, no_contender) },
    .writes = YIELD_TIMES * C9_OPS,
};
static fan_out c10a = { .n = 10 }, c10b = { .n = 500 };

static const row rows[] = {
    { "C1at", "mutex: try_lock, unlock", MILLION, plain_run, &c1at },
    { "C1aw", "mutex: lock, unlock", MILLION, mutex_run, &awaiting },
    { "C1bt", "rwlock: try_read, unlock", MILLION, plain_run, &c1bt },
    { "C1bw", "rwlock: read, unlock", MILLION, read_run, &awaiting },
    { "C1ct", "rwlock: try_write, unlock", MILLION, plain_run, &c1ct },
    { "C1cw", "rwlock: write, unlock", MILLION, write_run, &awaiting },
    { "C1dt", "semaphore: try_acquire, release", MILLION, plain_run, &c1dt },
    { "C1dw", "semaphore: acquire, release", MILLION, sem_run, &awaiting },
    { "C2a", "once: is done, value", MILLION, plain_run, &c2a },
    { "C2b", "once: new, begin, set, end", MILLION, plain_run, &c2b },
    { "C3a", "notify: new, notify_one, wait", MILLION, notify_run, &awaiting },
    { "C3b", "barrier of 1: new, wait", MILLION, barrier_run, &awaiting },
    { "C3c", "barrier of 8 tasks: a round", MEETINGS, batches_run, &c3c },
    { "C9a", "mutex, 4 tasks", C9_TIMES * C9_OPS, contention_run, &c9a },
    { "C9b", "rwlock, 4 readers, 2 writers",
      C9_TIMES * (READERS + WRITERS) * (C9_OPS / (READERS + WRITERS)), contention_run, &c9b },
    { "C9c", "semaphore of 2, 8 tasks", C9_TIMES * C9_OPS, contention_run, &c9c },
    { "C9d", "mutex over a yield, 4 tasks", YIELD_TIMES * C9_OPS, contention_run, &c9d },
    { "C9e", "the same, in turn", YIELD_TIMES * C9_OPS, contention_run, &c9e },
    { "C10a", "notify_all, 10 tasks: one woken", C10_OPS, notify_all_run, &c10a },
    { "C10b", "notify_all, 500 tasks: one woken", C10_OPS, notify_all_run, &c10b },
    { "C10c", "notify_one around 10 tasks", C10_OPS, notify_one_run, &c10a },
    { "C10d", "notify_one around 500 tasks", C10_OPS, notify_one_run, &c10b },
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "C9w") == 0) {
        double workers = 1;
        const bench_option options[] = { { "--workers", &workers, 1, 64 } };
        if (bench_options(argc, argv, options, BENCH_COUNT(options)) > 1)
            bench_die("C9w runs alone");
        contests_hold((uint32_t)workers);
        return 0;
    }
    return rows_main(argc, argv, rows, BENCH_COUNT(rows));
}
