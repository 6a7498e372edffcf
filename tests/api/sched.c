// SPDX-License-Identifier: MIT OR 0BSD
// The scheduler: which task gets a turn and when, which worker is woken, which threads are started.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION

// The seam for threads: creation fails where a test says so.
#include <pthread.h>
static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg);
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) test_thread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) pthread_join(thread_, NULL)

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

enum { MOST_WORKERS = 128 };

static int n_creates, fail_from, fail_count, fail_errno; // creations `fail_from` .. fail, from 1 on
static int test_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    int n = COUNT(n_creates), from = READ(fail_from);
    if (from && n >= from && n < from + READ(fail_count)) return fail_errno;
    return pthread_create(thread, attr, fn, arg);
}

static volt_rt *create_with(const volt_config *c) {
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(c, &rt), 0);
    CHECK(rt);
    return rt;
}
static volt_counters stats_of(volt_rt *rt) {
    volt_counters s;
    volt_stats(rt, &s);
    return s;
}
static int64_t thread_cpu_ns(pthread_t t) {
    clockid_t clock;
    struct timespec ts;
    CHECK_EQ(pthread_getcpuclockid(t, &clock), 0);
    CHECK_EQ(clock_gettime(clock, &ts), 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
static int index_of(const volt_cx *cx) { return (int)cx->worker_->index; }
static uint32_t count_parked(volt_rt *rt) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rt->n_workers; i++) n += volt__idle_is_parked(&rt->idle, i) != 0;
    return n;
}
// All workers asleep: each has its bit set, and stays so, since nothing is going on.
static void wait_until_parked(volt_rt *rt, uint32_t n) { UNTIL(count_parked(rt) == n); }

// ---- load that never stops by itself, in three kinds: yielding, waking itself, waking each other

typedef struct {
    int stop, n_begun, n_over;
    int n_polls[MOST_WORKERS]; // by all tasks of the load, per worker
    volt_time busy;            // per poll
} load;
static void load_poll(load *l, const volt_cx *cx) {
    COUNT(l->n_polls[index_of(cx)]);
    if (l->busy) burn(l->busy);
}

typedef struct {
    volt_frame frame;
    load *load;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    VOLT_BEGIN(cx, y);
    COUNT(y->load->n_begun);
    while (!READ(y->load->stop)) {
        load_poll(y->load, cx);
        VOLT_AWAIT(volt_yield(cx));
    }
    COUNT(y->load->n_over);
    VOLT_END(0);
}

// Written by hand: its waker is its own.
typedef struct {
    volt_frame frame;
    load *load;
    volt_waker waker;
} self_waker;
static volt_poll self_waker_run(volt_cx *cx, void *arg) {
    self_waker *s = arg;
    if (!s->waker.task_) {
        s->waker = volt_waker_retain(cx);
        COUNT(s->load->n_begun);
    }
    load_poll(s->load, cx);
    if (!READ(s->load->stop)) {
        volt_wake(s->waker);
        return volt_pending();
    }
    volt_waker_release(s->waker);
    COUNT(s->load->n_over);
    return volt_ready(0);
}

// Two that wake each other through the LIFO slot.
typedef struct {
    volt_waker waker[2];
    int is_set[2], n_done;
} pair;
typedef struct {
    volt_frame frame;
    load *load;
    pair *pair;
    int me;
} half;
static volt_poll half_run(volt_cx *cx, void *arg) {
    half *h = arg;
    pair *p = h->pair;
    int other = 1 - h->me;
    if (!READ(p->is_set[h->me])) {
        p->waker[h->me] = volt_waker_retain(cx);
        WRITE(p->is_set[h->me], 1);
        COUNT(h->load->n_begun);
    }
    load_poll(h->load, cx);
    int is_over = READ(h->load->stop);
    if (READ(p->is_set[other])) volt_wake(p->waker[other]);
    if (!is_over || !READ(p->is_set[other])) return volt_pending();
    if (COUNT(p->n_done) == 2) // neither wakes the other any more
        for (int i = 0; i < 2; i++) volt_waker_release(p->waker[i]);
    COUNT(h->load->n_over);
    return volt_ready(0);
}

enum { YIELDING, WAKING_ITSELF, IN_PAIRS, LOAD_KINDS };
enum { LOAD_TASKS = 4 }; // the smallest ring holds them: the injector is the guests' alone
static pair pairs[LOAD_TASKS / 2];
static void start_load(volt_rt *rt, load *l, int kind) {
    memset(pairs, 0, sizeof pairs);
    for (int i = 0; i < LOAD_TASKS; i++) {
        if (kind == YIELDING) RT_SPAWN(rt, NULL, yielder_run, (yielder){ .load = l });
        if (kind == WAKING_ITSELF) RT_SPAWN(rt, NULL, self_waker_run, (self_waker){ .load = l });
        if (kind == IN_PAIRS)
            RT_SPAWN(rt, NULL, half_run, (half){ .load = l, .pair = &pairs[i / 2], .me = i % 2 });
    }
    UNTIL(READ(l->n_begun) == LOAD_TASKS);
}
static int polls_of(const load *l) {
    int sum = 0;
    for (int i = 0; i < MOST_WORKERS; i++) sum += READ(l->n_polls[i]);
    return sum;
}
static void stop_load(load *l) {
    WRITE(l->stop, 1);
    UNTIL(READ(l->n_over) == LOAD_TASKS);
}

// A task spawned from outside: records the worker that runs it, and how far that worker had got.
typedef struct {
    volt_frame frame;
    const load *load;
    int *polls_then, *ran_on;
} guest;
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest *g = arg;
    VOLT_BEGIN(cx, g);
    *g->polls_then = READ(g->load->n_polls[index_of(cx)]);
    WRITE(*g->ran_on, 1 + index_of(cx));
    VOLT_END(0);
}
// Polls that its worker made between the return of the spawn and the first poll of the guest. (The
// other worker may make more: the one that has taken the guest may be preempted.)
static int guest_waits(volt_rt *rt, const load *l) {
    int after[MOST_WORKERS], then = 0, ran_on = 0;
    RT_SPAWN(rt, NULL, guest_run, (guest){ .load = l, .polls_then = &then, .ran_on = &ran_on });
    for (int i = 0; i < MOST_WORKERS; i++) after[i] = READ(l->n_polls[i]);
    UNTIL(READ(ran_on));
    return then - after[ran_on - 1];
}
static void check_guests(uint32_t workers, int kind, volt_time busy, int n_guests, int limit) {
    volt_rt *rt = create_on(workers);
    load l;
    int most = 0;
    memset(&l, 0, sizeof l);
    l.busy = busy;
    start_load(rt, &l, kind);
    UNTIL(polls_of(&l) > 300); // the average is no longer the assumed one
    for (int i = 0; i < n_guests; i++) {
        int n = guest_waits(rt, &l);
        if (n > most) most = n;
    }
    printf("%u workers, load %d: at most %d polls\n", workers, kind, most);
    CHECK(most <= limit);
    stop_load(&l);
    destroy(rt);
}

TEST(spawn_from_outside_waits_at_most_inject_max_polls) {
    for (int kind = 0; kind < LOAD_KINDS; kind++)
        for (uint32_t w = 1; w <= 2; w++) check_guests(w, kind, 0, 40, VOLT_INJECT_MAX);
}
// Polls of half a millisecond: looking at every 255th would take an eighth of a second.
TEST(worker_checks_injector_more_often_when_polls_are_long) {
    for (uint32_t w = 1; w <= 2; w++) check_guests(w, WAKING_ITSELF, VOLT_US(500), 10, 8);
}

// ---- LIFO slot

// Polls of the pair between two turns of a third task: never more than both may have in the slot
// and the ring together.
typedef struct {
    volt_frame frame;
    load *load;
    int n_turns, n_left, last, most;
    int *out;
} third;
static volt_poll third_run(volt_cx *cx, void *arg) {
    third *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->n_left = t->n_turns; t->n_left > 0; t->n_left--) {
        int now = polls_of(t->load);
        if (now - t->last > t->most && t->n_left < t->n_turns) t->most = now - t->last;
        t->last = now;
        VOLT_AWAIT(volt_yield(cx));
    }
    WRITE(*t->out, t->most);
    WRITE(t->load->stop, 1);
    VOLT_END(0);
}
TEST(pair_in_lifo_slot_does_not_starve_third_task) {
    load l;
    int most = -1;
    memset(&l, 0, sizeof l);
    memset(pairs, 0, sizeof pairs);
    volt_rt *rt = create_on(1);
    for (int i = 0; i < 2; i++)
        RT_SPAWN(rt, NULL, half_run, (half){ .load = &l, .pair = &pairs[0], .me = i });
    UNTIL(polls_of(&l) > 1000); // they are at it
    RT_SPAWN(rt, NULL, third_run, (third){ .load = &l, .n_turns = 2000, .out = &most });
    UNTIL(READ(l.n_over) == 2);
    printf("at most %d polls of the pair between two turns\n", most);
    CHECK(most > 0 && most <= 4 * (VOLT_LIFO_MAX + 1));
    destroy(rt);
}

// One of many tasks that do nothing but spawn tasks of their kind.
enum { MOST_SPAWNERS = 3000, MOST_POLLS = 700000 };
static volt_poll spawner_run(volt_cx *cx, void *arg) {
    yielder *y = arg;
    load *const l = y->load;
    VOLT_BEGIN(cx, y);
    load_poll(l, cx);
    for (int i = 0; i < 3 && l->n_begun - l->n_over < MOST_SPAWNERS && !READ(l->stop); i++) {
        COUNT(l->n_begun);
        SPAWN(NULL, spawner_run, (yielder){ .load = l });
    }
    COUNT(l->n_over);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    load *load;
    int *most;
} opener;
static volt_poll opener_run(volt_cx *cx, void *arg) {
    opener *o = arg;
    VOLT_BEGIN(cx, o);
    COUNT(o->load->n_begun);
    SPAWN(NULL, third_run, (third){ .load = o->load, .n_turns = 100, .out = o->most });
    SPAWN(NULL, spawner_run, (yielder){ .load = o->load });
    VOLT_END(0);
}
// All of them may be before it in the shared queue, once. It neither waits in the overflow queue,
// which keeps them for 8 ms per 128, nor is it put behind them again before its turn.
TEST(task_that_yields_gets_its_turn_beside_tasks_that_spawn) {
    load l = { .n_begun = 0 };
    int most = -1;
    volt_rt *rt = create_on(1);
    RT_SPAWN(rt, NULL, opener_run, (opener){ .load = &l, .most = &most });
    UNTIL(READ(l.stop));
    printf("at most %d polls of the spawners between two turns\n", most);
    CHECK(most > 0 && most <= MOST_POLLS);
    destroy(rt);
}

// A poll that goes on for long with a task in its LIFO slot.
typedef struct {
    volt_frame frame;
    volt_time d;
    int *is_in, *n_ended;
} hog;
static volt_poll hog_run(volt_cx *cx, void *arg) {
    hog *h = arg;
    VOLT_BEGIN(cx, h);
    SPAWN(NULL, giver_run, (giver){ .n_ended = h->n_ended });
    WRITE(*h->is_in, 1 + index_of(cx));
    burn(h->d);
    VOLT_END(0);
}
// CPU time of all workers but the one with the hog, in percent of the poll's length.
static double others_cpu(uint32_t workers, uint32_t watch_us, volt_counters *end) {
    volt_config c = test_config(workers);
    int is_in = 0, n_ended = 0;
    int64_t before[MOST_WORKERS], sum = 0;
    c.start_all_workers = 1;
    c.watchdog_us = watch_us;
    volt_rt *rt = create_with(&c);
    wait_until_parked(rt, workers);
    for (uint32_t i = 0; i < workers; i++) before[i] = thread_cpu_ns(rt->workers[i]->thread);
    RT_SPAWN(rt, NULL, hog_run, (hog){ .d = VOLT_MS(300), .is_in = &is_in, .n_ended = &n_ended });
    UNTIL(READ(is_in));
    volt__unpark_all(rt); // woken for nothing they look around, and must go back to sleep
    wait_until_parked(rt, workers);
    for (int i = 0; i < (int)workers; i++)
        if (i != is_in - 1) sum += thread_cpu_ns(rt->workers[i]->thread) - before[i];
    UNTIL(READ(n_ended) == 1);
    *end = stats_of(rt);
    destroy(rt);
    return (double)sum / 3e6;
}
TEST(task_in_lifo_slot_of_long_poll_keeps_no_worker_awake) {
    volt_counters s;
    double off = others_cpu(8, UINT32_MAX, &s);
    CHECK_EQ(s.watchdog_scans, 0); // and no worker took the task
    CHECK_EQ(s.rescued, 0);
    double on = others_cpu(8, 0, &s);
    printf("seven others use %.2f %% of a CPU without the watch, %.2f %% with it\n", off, on);
    CHECK(off < 2);
    CHECK(on < 30);
    CHECK(s.watchdog_scans > 0);
}

// ---- work spreads

enum { FAN = 1000, SMALL_FAN = 100 }; // more than a ring holds, and less
typedef struct {
    int n, n_waiting, n_ended, n_on[MOST_WORKERS];
    volt_token start;
} fan;
typedef struct {
    volt_frame frame;
    fan *fan;
} blade;
static volt_poll blade_run(volt_cx *cx, void *arg) {
    blade *b = arg;
    VOLT_BEGIN(cx, b);
    COUNT(b->fan->n_waiting);
    VOLT_AWAIT(volt_token_wait(cx, &b->fan->start));
    COUNT(b->fan->n_on[index_of(cx)]);
    burn(b->fan->n == FAN ? VOLT_US(50) : VOLT_US(200));
    COUNT(b->fan->n_ended);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    fan *fan;
} blower;
static volt_poll blower_run(volt_cx *cx, void *arg) {
    blower *b = arg;
    VOLT_BEGIN(cx, b);
    volt_token_cancel(&b->fan->start); // all wakes in one poll
    VOLT_END(0);
}
// Tasks that ran elsewhere than on the busiest worker.
static int fan_out(volt_rt *rt, int n) {
    fan f;
    int most = 0;
    memset(&f, 0, sizeof f);
    f.n = n;
    for (int i = 0; i < n; i++) RT_SPAWN(rt, NULL, blade_run, (blade){ .fan = &f });
    UNTIL(READ(f.n_waiting) == n);
    RT_SPAWN(rt, NULL, blower_run, (blower){ .fan = &f });
    UNTIL(READ(f.n_ended) == n);
    for (int i = 0; i < MOST_WORKERS; i++)
        if (f.n_on[i] > most) most = f.n_on[i];
    return n - most;
}
// Without the watchdog, which would take the tasks of a worker that is long in coming.
static void check_fan(int n) {
    for (uint32_t w = 2; w <= 4; w *= 2) {
        volt_config c = test_config(w);
        int best = 0;
        c.watchdog_us = UINT32_MAX;
        volt_rt *rt = create_with(&c);
        for (int i = 0; i < 15 && best < n / 5; i++) { // the machine may be short of CPUs
            int elsewhere = fan_out(rt, n);
            if (elsewhere > best) best = elsewhere;
        }
        printf("%u workers: %d of %d ran elsewhere\n", w, best, n);
        CHECK(best >= n / 20);
        destroy(rt);
    }
}
TEST(thousand_wakes_of_one_poll_spread_over_workers) { check_fan(FAN); }
TEST(hundred_wakes_of_one_poll_spread_over_workers) { check_fan(SMALL_FAN); }

// As many tasks as workers meet inside their polls: none can go on before every worker has one.
typedef struct {
    volt_frame frame;
    pthread_barrier_t *all;
    int *n_ended;
} meeter;
static volt_poll meeter_run(volt_cx *cx, void *arg) {
    meeter *m = arg;
    VOLT_BEGIN(cx, m);
    pthread_barrier_wait(m->all);
    // The last to arrive has a short poll. A worker with short polls keeps its tasks from thieves,
    // and only the watchdog, which is off, would take them: so no poll is short.
    for (volt_time start = volt_now(); volt_now() - start < VOLT_US(50);) {}
    COUNT(*m->n_ended);
    VOLT_END(0);
}
static void meet(volt_rt *rt, uint32_t n) {
    pthread_barrier_t all;
    int n_ended = 0;
    CHECK_EQ(pthread_barrier_init(&all, NULL, n), 0);
    for (uint32_t i = 0; i < n; i++)
        RT_SPAWN(rt, NULL, meeter_run, (meeter){ .all = &all, .n_ended = &n_ended });
    UNTIL(READ(n_ended) == (int)n);
    pthread_barrier_destroy(&all);
}
static void check_meetings(uint32_t workers, int start_all, int n_runtimes) {
    volt_config c = test_config(workers);
    c.start_all_workers = (uint32_t)start_all;
    // With the watchdog a wake-up that was lost would only be late.
    c.watchdog_us = UINT32_MAX;
    for (int i = 0; i < n_runtimes; i++) {
        volt_rt *rt = create_with(&c);
        for (int k = 0; k < 20; k++) meet(rt, workers);
        CHECK_EQ(stats_of(rt).workers_started, workers);
        destroy(rt);
    }
}
TEST(worker_gets_work_while_all_other_workers_are_stuck) {
    for (uint32_t w = 1; w <= 8; w *= 2) check_meetings(w, 1, 10);
}
// A worker that finds no worker asleep starts the next thread, also in its very first poll.
TEST(threads_are_started_while_all_workers_are_stuck) {
    for (uint32_t w = 2; w <= 8; w *= 2) check_meetings(w, 0, 20);
}
TEST(all_of_128_workers_get_work) {
    check_meetings(128, 1, 1);
    check_meetings(128, 0, 1);
}

// ---- spawns from outside, with workers that park in between

typedef struct {
    volt_rt *rt;
    int size, n_ended;
    size_t sum; // modulo a word
} flood;
typedef struct {
    volt_frame frame;
    flood *flood;
    size_t value;
} drop;
static volt_poll drop_run(volt_cx *cx, void *arg) {
    drop *d = arg;
    VOLT_BEGIN(cx, d);
    __atomic_add_fetch(&d->flood->sum, d->value, __ATOMIC_RELAXED);
    COUNT(d->flood->n_ended);
    VOLT_END(0);
}
// Mostly one by one, each when the last one has ended, so that it meets a worker that is about to
// park; a few large bursts make up the number.
static void *flooder(void *arg) {
    flood *f = arg;
    for (int n = 0; n < f->size;) {
        int burst = 1 << (RANDOM_BELOW(64) ? RANDOM_BELOW(3) : 10);
        for (; burst > 0 && n < f->size; burst--, n++)
            RT_SPAWN(f->rt, NULL, drop_run, (drop){ .flood = f, .value = (size_t)n });
        for (uint64_t spin = RANDOM_BELOW(400); spin > 0; spin--) VOLT_CPU_RELAX();
        UNTIL(READ(f->n_ended) == n);
    }
    return NULL;
}
static void check_flood(uint32_t workers, uint32_t watch_us) {
    volt_config c = test_config(workers);
    c.watchdog_us = watch_us;
    const int size = test_is_long() ? 200000 : 50000;
    flood f = { .rt = create_with(&c), .size = size };
    join_thread(start_thread(flooder, &f));
    UNTIL(READ(f.n_ended) == size);
    CHECK_EQ(f.sum, (size_t)((uint64_t)size * (uint64_t)(size - 1) / 2)); // each once
    CHECK(stats_of(f.rt).parks > 10);
    destroy(f.rt);
}
TEST(one_worker_runs_each_spawn_from_outside_once) { check_flood(1, 0); }
TEST(two_workers_run_each_spawn_from_outside_once) { check_flood(2, 0); }
TEST(spawn_from_outside_is_not_lost_without_watchdog) { check_flood(2, UINT32_MAX); }

// ---- a crowd from outside beside tasks that always yield

enum { CROWD = 1000 };
typedef struct {
    const load *load;
    int is_held, may_go, n_ended, first, last; // polls of the load at the first and the last one
} crowd;
typedef struct {
    volt_frame frame;
    crowd *crowd;
} visitor;
static volt_poll holder_run(volt_cx *cx, void *arg) { // until all have come
    visitor *v = arg;
    VOLT_BEGIN(cx, v);
    WRITE(v->crowd->is_held, 1);
    UNTIL(READ(v->crowd->may_go));
    VOLT_END(0);
}
static volt_poll visitor_run(volt_cx *cx, void *arg) {
    visitor *v = arg;
    VOLT_BEGIN(cx, v);
    if (v->crowd->n_ended == 0) v->crowd->first = polls_of(v->crowd->load);
    v->crowd->last = polls_of(v->crowd->load);
    COUNT(v->crowd->n_ended);
    VOLT_END(0);
}
// A busy worker takes many of them at a look, not one.
TEST(busy_worker_takes_many_tasks_from_injector_at_once) {
    volt_rt *rt = create_on(1);
    load l;
    crowd c = { .load = &l };
    memset(&l, 0, sizeof l);
    start_load(rt, &l, YIELDING);
    RT_SPAWN(rt, NULL, holder_run, (visitor){ .crowd = &c });
    UNTIL(READ(c.is_held));
    for (int i = 0; i < CROWD; i++) RT_SPAWN(rt, NULL, visitor_run, (visitor){ .crowd = &c });
    WRITE(c.may_go, 1);
    UNTIL(READ(c.n_ended) == CROWD);
    printf("%d polls of the load beside them\n", c.last - c.first);
    int share = VOLT_RING_CAP < VOLT_INJECT_BATCH ? 1 : 16; // a small ring has room for one
    CHECK(c.last - c.first < CROWD * VOLT_INJECT_MAX / share);
    stop_load(&l);
    destroy(rt);
}

// ---- which threads are started

// By name: the sanitizers run threads of their own.
static int count_workers(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        int fd = open(path, O_RDONLY);
        if (fd < 0) continue;
        n += read(fd, name, sizeof name - 1) > 0 && strncmp(name, "volt-", 5) == 0;
        close(fd);
    }
    closedir(d);
    return n;
}
TEST(workers_beyond_the_second_start_on_demand) {
    volt_config c = test_config(4);
    c.start_all_workers = 0;
    volt_rt *rt = create_with(&c);
    wait_until_parked(rt, 2);
    CHECK_EQ(count_workers(), 2); // one to work, and a spare
    CHECK_EQ(stats_of(rt).workers_started, 2);
    meet(rt, 4);
    CHECK_EQ(count_workers(), 4);
    CHECK_EQ(stats_of(rt).workers_started, 4);
    destroy(rt);
}
TEST(start_all_workers_starts_every_thread) {
    volt_config c = test_config(4);
    c.start_all_workers = 1;
    volt_rt *rt = create_with(&c);
    wait_until_parked(rt, 4);
    CHECK_EQ(count_workers(), 4);
    destroy(rt);
}

static void fail_threads(int from, int count, int error) {
    n_creates = 0;
    fail_from = from;
    fail_count = count;
    fail_errno = error;
    memset(&test_log, 0, sizeof test_log);
}
static int all_creates_fail(uint32_t workers) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    int n_fds = test_count_fds(), rc = volt_create(&c, &rt);
    CHECK(!rt);
    CHECK_EQ(test_count_fds(), n_fds);
    test_check_heap();
    return rc;
}
TEST(create_fails_without_any_thread_and_run_does_not) {
    fail_threads(1, 1000, EAGAIN);
    CHECK_EQ(all_creates_fail(1), -EAGAIN);
    CHECK_EQ(all_creates_fail(4), -EAGAIN);
    // volt_run has its caller's thread
    giver g = { .value = 5 };
    CHECK_EQ(run_on(4, giver_run, &g), 5);
    CHECK(test_log.n[VOLT_LOG_THREAD_START] > 0);
}
TEST(create_goes_on_with_the_threads_that_start) {
    static const int errors[] = { EAGAIN, EPERM, ENOMEM };
    for (int e = 0; e < 3; e++)
        for (int from = 2; from <= 5; from++) {
            volt_config c = test_config(8);
            c.start_all_workers = 1;
            fail_threads(from, 1000, errors[e]);
            volt_rt *rt = create_with(&c);
            CHECK_EQ(stats_of(rt).workers_started, from - 1);
            CHECK(test_log.n[VOLT_LOG_THREAD_START] >= 1);
            meet(rt, (uint32_t)from - 1);
            CHECK_EQ(stats_of(rt).workers_started, from - 1);
            destroy(rt);
        }
}
// The third thread fails when it is wanted: it goes on with two. Each worker tries again after a
// second, not before.
TEST(failed_thread_start_is_retried_after_a_second) {
    volt_config c = test_config(4);
    volt_time start = volt_now();
    c.start_all_workers = 0;
    fail_threads(3, 1000, EAGAIN);
    volt_rt *rt = create_with(&c);
    do meet(rt, 2);
    while (READ(n_creates) < 3);
    for (int i = 0; i < 50; i++) meet(rt, 2);
    CHECK_EQ(stats_of(rt).workers_started, 2);
    CHECK(READ(test_log.n[VOLT_LOG_THREAD_START]) > 0);
    CHECK(READ(n_creates) - 2 <= 2 * (1 + (volt_now() - start) / VOLT_S(1)));
    WRITE(fail_count, 0);
    while (stats_of(rt).workers_started < 3) meet(rt, 2);
    meet(rt, 3);
    destroy(rt);
}

// ---- budget

typedef struct {
    volt_frame frame;
    int n_left, in_poll, most, n_polls;
    int *most_out, *polls_out;
} spender;
static volt_poll spender_body(volt_cx *cx, spender *s) {
    VOLT_BEGIN(cx, s);
    for (; s->n_left > 0; s->n_left--) {
        VOLT_AWAIT(volt_sleep(cx, 0)); // ready at once
        if (++s->in_poll > s->most) s->most = s->in_poll;
    }
    WRITE(*s->polls_out, s->n_polls);
    WRITE(*s->most_out, s->most);
    VOLT_END(0);
}
static volt_poll spender_run(volt_cx *cx, void *arg) {
    spender *s = arg;
    s->in_poll = 0;
    s->n_polls++;
    return spender_body(cx, s);
}
TEST(poll_completes_as_many_leaves_as_its_budget) {
    static const uint32_t budgets[] = { 0, 1, 7, 1000 };
    for (int i = 0; i < 4; i++) {
        volt_config c = test_config(1);
        int most = 0, polls = 0, want = budgets[i] ? (int)budgets[i] : 128;
        spender s = { .n_left = 10000, .most_out = &most, .polls_out = &polls };
        c.budget = budgets[i];
        CHECK_EQ(volt_run(&c, spender_run, &s), 0);
        test_check_heap();
        CHECK_EQ(most, want);
        CHECK_EQ(polls, (10000 + want - 1) / want);
    }
}

// ---- overflow

enum { BURST = 5000 };
typedef struct {
    volt_frame frame;
    int *n_ended;
    int *is_done; // by number; a byte cannot be added to everywhere
    int id;
} sprout;
static volt_poll sprout_run(volt_cx *cx, void *arg) {
    sprout *s = arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(__atomic_fetch_add(&s->is_done[s->id], 1, __ATOMIC_ACQ_REL), 0);
    COUNT(*s->n_ended);
    VOLT_END(0);
}
ROOT_TEST(full_ring_overflows_and_loses_no_task,
          { int is_done[BURST]; int n_ended, n_bursts; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    do { // again: thieves may keep the ring from filling, and counters are told now and then
        memset(s->is_done, 0, sizeof s->is_done);
        for (int i = 0; i < BURST; i++)
            SPAWN(NULL, sprout_run,
                  (sprout){ .n_ended = &s->n_ended, .is_done = s->is_done, .id = i });
        s->n_bursts++;
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_ended, s->n_bursts * BURST));
    } while (stats_of(cx->rt_).overflows == 0);
    VOLT_END(0);
}

// A tree, walked in depth: a hundred thousand leaves. In breadth 30,000 tasks are there at a time.
// No task goes to the injector by its age here, however long the walk takes on a busy machine. A
// queue with room for two batches, which soon are one, is not checked.
enum { BRANCHES = 10, TREE_LEAVES = 100000, TREE_ALIVE = 12000, WALKS = 5 };
typedef struct tree {
    int n_alive, most_alive, n_leaves;
} tree;
typedef struct branch {
    volt_frame frame;
    tree *tree;
    struct branch *parent;
    volt_wait_group children;
    int leaves, rc;
} branch;
static volt_poll branch_run(volt_cx *cx, void *arg) {
    branch *b = arg;
    VOLT_BEGIN(cx, b);
    cx->worker_->overflow_ms = cx->worker_->ms; // the oldest batch is not old enough
    if (b->leaves == 1) {
        b->tree->n_leaves++;
    } else {
        CHECK_EQ(volt_wait_group_add(&b->children, BRANCHES), 0);
        for (int i = 0; i < BRANCHES; i++)
            SPAWN(NULL, branch_run,
                  (branch){ .tree = b->tree, .parent = b, .leaves = b->leaves / BRANCHES });
        b->tree->n_alive += BRANCHES;
        if (b->tree->n_alive > b->tree->most_alive) b->tree->most_alive = b->tree->n_alive;
        VOLT_AWAIT(b->rc, volt_wait_group_wait(cx, &b->children));
        CHECK_EQ(b->rc, 0);
    }
    b->tree->n_alive--;
    if (b->parent) volt_wait_group_done(&b->parent->children);
    VOLT_END(0);
}
ROOT_TEST_1(tree_of_tasks_runs_depth_first,
            { tree tree; branch root; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < WALKS; s->i++) {
        s->tree = (tree){ .n_alive = 1 };
        s->root = (branch){ .tree = &s->tree, .leaves = TREE_LEAVES };
        VOLT_AWAIT(s->rc, branch_run(cx, &s->root));
        CHECK(s->rc == 0 && s->tree.n_alive == 0 && s->tree.n_leaves == TREE_LEAVES);
        if (VOLT_OVERFLOW_CAP >= 64) CHECK(s->tree.most_alive < TREE_ALIVE);
    }
    VOLT_END(0);
}
// Those whose turn would never come while another one spawns more than can be run.
enum { WAVE = VOLT_RING_CAP + VOLT_RING_CAP / 2, MOST_WAVES = 30000 };
ROOT_TEST_1(overflow_queue_does_not_starve_its_oldest_batch,
            { int n_first, n_more, i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; READ(s->n_first) < WAVE; s->i++) {
        CHECK(s->i < MOST_WAVES);
        for (int k = 0; k < WAVE; k++)
            SPAWN(NULL, giver_run, (giver){ .n_ended = s->i ? &s->n_more : &s->n_first });
        VOLT_AWAIT(s->rc, volt_yield(cx));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}

// ---- watch off, one reactor

typedef struct {
    volt_frame frame;
    int fd, i;
    int64_t rc;
    char c;
} echoer;
static volt_poll echoer_run(volt_cx *cx, void *arg) {
    echoer *e = arg;
    VOLT_BEGIN(cx, e);
    for (;;) {
        VOLT_AWAIT(e->rc, volt_read(cx, e->fd, &e->c, 1));
        if (e->rc <= 0) break;
        VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd, &e->c, 1));
    }
    volt_close(cx, e->fd);
    VOLT_END(e->rc);
}
static volt_poll caller_run(volt_cx *cx, void *arg) {
    echoer *e = arg;
    VOLT_BEGIN(cx, e);
    for (e->i = 0; e->i < 200; e->i++) {
        e->c = (char)e->i;
        VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd, &e->c, 1));
        CHECK_EQ(e->rc, 1);
        VOLT_AWAIT(e->rc, volt_read(cx, e->fd, &e->c, 1));
        CHECK_EQ(e->rc, 1);
        CHECK_EQ(e->c, (char)e->i);
    }
    volt_close(cx, e->fd);
    VOLT_END(0);
}
static int home_of(volt_rt *rt, int fd) {
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    volt__lock(&e->lock);
    int home = e->mode == VOLT__MODE_NONE ? -1 : e->reactor;
    volt__unlock(&e->lock);
    return home;
}
enum { PAIRS = 8 };
// Echoes over socketpairs, which stay at the reactors `homes` (bits).
static void check_echoes(const volt_config *c, uint32_t homes) {
    volt_rt *rt = create_with(c);
    volt_handle h[2 * PAIRS];
    int fd[PAIRS][2];
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]), 0);
        RT_SPAWN(rt, &h[2 * i], echoer_run, (echoer){ .fd = fd[i][0] });
    }
    for (int i = 0; i < PAIRS; i++) {
        UNTIL(home_of(rt, fd[i][0]) >= 0);
        CHECK(homes >> home_of(rt, fd[i][0]) & 1);
        RT_SPAWN(rt, &h[2 * i + 1], caller_run, (echoer){ .fd = fd[i][1] });
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        int64_t rc = -1;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 0);
    }
    destroy(rt);
}
TEST(two_workers_may_share_one_reactor) {
    for (int i = 0; i < 10; i++) {
        volt_config c = test_config(2);
        c.reactors = 1;
        check_echoes(&c, 1);
        c.reactors = 2;
        check_echoes(&c, 3);
    }
}
TEST(watchdog_off_opens_no_timer_and_scans_nothing) {
    volt_config c = test_config(2);
    int n_fds = test_count_fds();
    c.start_all_workers = 1;
    volt_rt *rt = create_with(&c);
    CHECK_EQ(test_count_fds() - n_fds, 5); // two each, and the watch's timer
    destroy(rt);
    c.watchdog_us = UINT32_MAX;
    rt = create_with(&c);
    CHECK_EQ(test_count_fds() - n_fds, 4);
    meet(rt, 2);
    CHECK_EQ(stats_of(rt).watchdog_scans, 0);
    destroy(rt);
    check_echoes(&c, 3);
}

// ---- seed

static void victims_of(uint64_t seed, uint32_t worker, uint32_t *out, int n) {
    volt__random r;
    volt__random_seed(&r, seed, worker);
    for (int i = 0; i < n; i++) out[i] = volt__random_below(&r, 8);
}
TEST(victims_follow_the_seed) {
    uint32_t a[64], b[64], hits[8] = { 0 };
    for (uint64_t seed = 1; seed < 100; seed++)
        for (uint32_t w = 0; w < 4; w++) {
            victims_of(seed, w, a, 64);
            victims_of(seed, w, b, 64);
            CHECK_EQ(memcmp(a, b, sizeof a), 0);
            for (int i = 0; i < 64; i++) hits[a[i]]++;
            victims_of(seed, w + 1, b, 64);
            CHECK(memcmp(a, b, sizeof a) != 0);
            victims_of(seed + 1, w, b, 64);
            CHECK(memcmp(a, b, sizeof a) != 0);
        }
    for (int i = 0; i < 8; i++) // 3168 each, give or take
        CHECK(hits[i] > 2850 && hits[i] < 3500);
}

// Seen from outside: which of four ready arms a select takes.
typedef struct {
    volt_frame frame;
    volt_arm arm[4];
    int i, rc;
    char *winners;
} chooser;
static volt_poll chooser_run(volt_cx *cx, void *arg) {
    chooser *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < 64; c->i++) {
        VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->arm[0], volt_sleep(cx, 0)),
                                      VOLT_ARM(&c->arm[1], volt_sleep(cx, 0)),
                                      VOLT_ARM(&c->arm[2], volt_sleep(cx, 0)),
                                      VOLT_ARM(&c->arm[3], volt_sleep(cx, 0))));
        c->winners[c->i] = (char)('0' + c->rc);
    }
    VOLT_END(0);
}
static void choices(uint64_t seed, char *out) {
    volt_config c = test_config(1);
    chooser s = { .winners = out };
    c.seed = seed;
    CHECK_EQ(volt_run(&c, chooser_run, &s), 0);
}
TEST(select_choices_repeat_with_the_same_seed) {
    char a[65] = "", b[65] = "";
    choices(42, a);
    choices(42, b);
    CHECK_STR(a, b);
    choices(43, b);
    CHECK(strcmp(a, b) != 0);
    for (char c = '0'; c <= '3'; c++) CHECK(strchr(a, c));
}
