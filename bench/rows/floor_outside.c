// SPDX-License-Identifier: MIT OR 0BSD
// Floors of work from outside, and of many timers: the operations of outside.c, timer.c and wake.c
// by the least code that can do them, without volt.h. A row of volt.h is compared with the floor of
// the same name.
//
//   floor_outside [ROW...] [--reps N]
//   floor_outside --list                           the names of the rows
//
//   S3    a thread pushes 10,000 tasks onto an atomic list; another one, which sleeps on a futex
//         while that is empty, takes all at once and calls each; the first one waits for the last,
//         on a futex, and reads the result of each; 20 times
//   S5p1 S5p2 S5p4 S5p8   1, 2, 4, 8 threads push 12,800 tasks in total; 20 times. Wall time is
//         from the first push until a thread that waits for all continues
//   S12a S12b S12c   a thread writes to an eventfd; another one, in epoll_wait for that, reads it
//         and stores the time; then nothing for 3, 30, 300 us. min and median are of the median
//         latency of a repetition
//   T2    1,000,000 nodes into a timer wheel 10 s ahead, and fired when the wheel's own time, which
//         is not the clock's, gets there
//   T3a   1,000,000 nodes into a wheel, 0 to 999 ms ahead, and fired at their time on the clock: a
//         sleep until the next tick of 1 ms, over and over
//   T3b   1,000,000 nodes in a wheel, one to two hours ahead; a random one is taken out and put in
//         elsewhere, 1,000,000 times
//   N7a   1,000,000 writes to an eventfd; another thread, in epoll_wait for that, reads and adds up
//   N7b   a write to an eventfd, which the other thread answers by one to another eventfd; 20,000
//
// "+rmw": each task has the size of a small one of volt.h, comes from a list under a lock, and is
// given back by the thread that is done with it, 32 at once by the other thread; its state word is
// changed by a read-modify-write when it is called, when it has ended, and in S3 when the first
// thread takes the result. "+clock": the deadline is computed from the clock. "+flag": a write only
// if the other thread has read since the last one. Threads and descriptors exist before a
// repetition. For the figures see bench.h.
#define _GNU_SOURCE 1
#include "latency.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MILLION = 1000000, LINE = 128 };

static bench_row *timed;
static uint64_t tally; // operations that were carried out; by one thread at a time

static void stall(int64_t ns) {
    const int64_t start = bench_now();
    while (bench_now() - start < ns) {}
}

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg) {
    if (pthread_create(thread, NULL, fn, arg) != 0) bench_die("no thread");
}

// ---- a word that one thread waits for until it is not 0; a futex

typedef struct word {
    _Alignas(LINE) uint32_t is_set;
} word;

static void word_set(word *w) {
    __atomic_store_n(&w->is_set, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &w->is_set, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void word_wait(word *w) {
    while (!__atomic_load_n(&w->is_set, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &w->is_set, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    w->is_set = 0;
}

// ---- S3, S5: a list that threads push to and one thread takes whole

typedef struct task {
    struct task *next;
    void (*run)(struct task *);
    uint64_t result;
} task;
enum { S3_TASKS = 10000, S5_TASKS = 12800, TIMES = 20, THREADS = 8 };

static task tasks[S5_TASKS];
static task asleep, over; // in place of a list: its taker sleeps; must end
static struct {
    _Alignas(LINE) task *head; // any
    word awake;                // set by a push to a taker that sleeps
    _Alignas(LINE) uint32_t left; // by the taker: tasks to run before the waiting thread continues
    word all_done;
    pthread_t taker;
} list;

static void push(task *t) {
    task *head = __atomic_load_n(&list.head, __ATOMIC_RELAXED);
    do t->next = head == &asleep ? NULL : head;
    while (!__atomic_compare_exchange_n(&list.head, &head, t, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
    if (head == &asleep) word_set(&list.awake);
}

static task *take_all(void) {
    for (;;) {
        task *t = __atomic_exchange_n(&list.head, NULL, __ATOMIC_ACQUIRE);
        if (t) return t;
        if (__atomic_compare_exchange_n(&list.head, &t, &asleep, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            word_wait(&list.awake);
    }
}

static __attribute__((noinline)) void run_task(task *t) {
    t->result = 1;
    tally++;
}

static void *taker(void *unused) {
    for (;;) {
        for (task *t = take_all(), *next; t; t = next) {
            next = t->next; // once it has run it may be pushed again
            if (t == &over) return unused;
            t->run(t);
            if (--list.left == 0) word_set(&list.all_done);
        }
    }
}

static void push_new(task *t) {
    t->run = run_task;
    t->result = 0;
    push(t);
}

// Tasks of "+rmw".
typedef struct whole_task {
    task task;
    uint64_t word;
    uint64_t rest[10]; // written by push_whole, as the rest of a header and of a state
} whole_task;
enum { SPARE = 64, GIVEN_BACK = 32, STARTED = 1, ENDED = 2, TAKEN = 4 };

static whole_task whole_tasks[S5_TASKS + SPARE];
static struct {
    _Alignas(LINE) pthread_mutex_t lock;
    task *free;
    _Alignas(LINE) task *returned;            // any: given back by the taker
    _Alignas(LINE) task *kept, **kept_end;    // by the taker: not given back yet
    uint32_t n_kept;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void pool_fill(void) {
    pool.free = pool.returned = pool.kept = NULL;
    pool.n_kept = 0;
    for (size_t i = 0; i < BENCH_COUNT(whole_tasks); i++) {
        whole_tasks[i].task.next = pool.free;
        pool.free = &whole_tasks[i].task;
    }
}

static whole_task *pool_take(void) {
    pthread_mutex_lock(&pool.lock);
    if (!pool.free) pool.free = __atomic_exchange_n(&pool.returned, NULL, __ATOMIC_ACQUIRE);
    task *t = pool.free;
    if (!t) bench_die("no task is free");
    pool.free = t->next;
    pthread_mutex_unlock(&pool.lock);
    return (whole_task *)(void *)t;
}

static void pool_put(task *t) {
    pthread_mutex_lock(&pool.lock);
    t->next = pool.free;
    pool.free = t;
    pthread_mutex_unlock(&pool.lock);
}

static void pool_return(task *t) {
    if (!pool.kept) pool.kept_end = &t->next;
    t->next = pool.kept;
    pool.kept = t;
    if (++pool.n_kept < GIVEN_BACK) return;
    task *head = __atomic_load_n(&pool.returned, __ATOMIC_RELAXED);
    do *pool.kept_end = head;
    while (!__atomic_compare_exchange_n(&pool.returned, &head, pool.kept, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
    pool.kept = NULL;
    pool.n_kept = 0;
}

static void run_whole(task *t) {
    whole_task *whole = (whole_task *)(void *)t;
    __atomic_fetch_or(&whole->word, STARTED, __ATOMIC_ACQ_REL);
    run_task(t);
    __atomic_fetch_or(&whole->word, ENDED, __ATOMIC_ACQ_REL);
}

static void run_whole_detached(task *t) {
    run_whole(t);
    pool_return(t);
}

static task *push_whole(void (*run)(task *)) {
    whole_task *whole = pool_take();
    whole->task.run = run;
    whole->task.result = 0;
    whole->word = 0;
    for (size_t i = 0; i < BENCH_COUNT(whole->rest); i++) whole->rest[i] = i;
    push(&whole->task);
    return &whole->task;
}

static uint64_t take_result(task *t) {
    uint64_t result = t->result;
    __atomic_fetch_or(&((whole_task *)(void *)t)->word, TAKEN, __ATOMIC_ACQ_REL);
    pool_put(t);
    return result;
}

static void taker_begin(uint32_t unused) {
    (void)unused;
    memset(&list, 0, sizeof list);
    pool_fill();
    start_thread(&list.taker, taker, NULL);
}

static void taker_end(uint32_t unused) {
    (void)unused;
    push(&over);
    pthread_join(list.taker, NULL);
}

static void s3(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < TIMES; i++) {
        uint64_t sum = 0;
        list.left = S3_TASKS;
        for (int k = 0; k < S3_TASKS; k++) push_new(&tasks[k]);
        word_wait(&list.all_done);
        for (int k = 0; k < S3_TASKS; k++) sum += tasks[k].result;
        if (sum != S3_TASKS) bench_die("S3: results are missing");
    }
}

static void s3_rmw(uint32_t unused) {
    static task *pushed[S3_TASKS];
    (void)unused;
    for (int i = 0; i < TIMES; i++) {
        uint64_t sum = 0;
        list.left = S3_TASKS;
        for (int k = 0; k < S3_TASKS; k++) pushed[k] = push_whole(run_whole);
        word_wait(&list.all_done);
        for (int k = 0; k < S3_TASKS; k++) sum += take_result(pushed[k]);
        if (sum != S3_TASKS) bench_die("S3+rmw: results are missing");
    }
}

static struct producer {
    _Alignas(LINE) int64_t begun; // the first push of this batch
    pthread_t thread;
    task *first; // NULL: tasks of "+rmw"
    uint32_t n;
} producers[THREADS];
static pthread_barrier_t gate; // of the producers and the waiting thread
static int gate_is_closed;

static void *produce(void *arg) {
    struct producer *p = arg;
    for (;;) {
        pthread_barrier_wait(&gate);
        if (gate_is_closed) return NULL;
        p->begun = bench_now();
        for (uint32_t i = 0; i < p->n; i++)
            if (p->first) push_new(&p->first[i]);
            else push_whole(run_whole_detached);
    }
}

static void producers_begin(uint32_t n_threads, int is_whole) {
    taker_begin(0);
    gate_is_closed = 0;
    if (pthread_barrier_init(&gate, NULL, n_threads + 1) != 0) bench_die("no barrier");
    for (uint32_t i = 0; i < n_threads; i++) {
        struct producer *p = &producers[i];
        p->n = S5_TASKS / n_threads;
        p->first = is_whole ? NULL : &tasks[i * p->n];
        start_thread(&p->thread, produce, p);
    }
}

static void s5_begin(uint32_t n_threads) { producers_begin(n_threads, 0); }
static void s5_rmw_begin(uint32_t n_threads) { producers_begin(n_threads, 1); }

static void s5_end(uint32_t n_threads) {
    gate_is_closed = 1;
    pthread_barrier_wait(&gate);
    for (uint32_t i = 0; i < n_threads; i++) pthread_join(producers[i].thread, NULL);
    pthread_barrier_destroy(&gate);
    taker_end(0);
}

static void s5(uint32_t n_threads) {
    int64_t wall = 0;
    for (int i = 0; i < TIMES; i++) {
        list.left = S5_TASKS;
        pthread_barrier_wait(&gate);
        word_wait(&list.all_done);
        int64_t first = producers[0].begun;
        for (uint32_t k = 1; k < n_threads; k++)
            if (producers[k].begun < first) first = producers[k].begun;
        wall += bench_now() - first;
    }
    bench_wall_is(timed, (double)wall / (double)timed->ops);
}

// ---- S12, N7: a thread in epoll_wait, woken by an eventfd

enum { S12_WAKES = 2000, S12C_WAKES = 500, N7B_TRIPS = 20000 };
typedef enum answer { BY_TIME, AT_THE_LAST, AT_THE_LAST_FLAGGED, BY_EVENTFD } answer;

static double samples[S12_WAKES];
static struct {
    int epoll, wake, answer; // descriptors
    answer how;
    pthread_t thread;
    _Alignas(LINE) uint64_t sent; // "+flag": by the writer
    uint64_t last;                // of N7a: the last sum that was answered
    _Alignas(LINE) uint32_t is_written; // "+flag": any
    _Alignas(LINE) uint64_t seen; // by the thread: the sum of the values read
    int64_t seen_at;
} loop;
static const uint64_t is_over = (uint64_t)1 << 40; // more than any sum

static void fd_add(int fd, uint64_t n) {
    if (write(fd, &n, sizeof n) != sizeof n) bench_die("eventfd: write");
}

static uint64_t fd_take(int fd) {
    uint64_t n = 0;
    if (read(fd, &n, sizeof n) != sizeof n) bench_die("eventfd: read");
    return n;
}

static uint64_t loop_take(void) {
    const uint64_t n = fd_take(loop.wake);
    if (loop.how != AT_THE_LAST_FLAGGED || n >= is_over) return n;
    (void)__atomic_exchange_n(&loop.is_written, 0, __ATOMIC_ACQ_REL);
    return __atomic_load_n(&loop.sent, __ATOMIC_ACQUIRE) - loop.seen;
}

static void loop_see(uint64_t n) {
    if (loop.how == BY_TIME) loop.seen_at = bench_now();
    tally += n;
    __atomic_store_n(&loop.seen, loop.seen + n, __ATOMIC_RELEASE);
    const int is_last = n > 0 && loop.seen == loop.last;
    if (loop.how == BY_EVENTFD || (loop.how != BY_TIME && is_last)) fd_add(loop.answer, 1);
}

static void *loop_run(void *unused) {
    struct epoll_event e;
    for (;;) {
        if (epoll_wait(loop.epoll, &e, 1, -1) < 1) continue;
        const uint64_t n = loop_take();
        if (n >= is_over) return unused;
        loop_see(n);
    }
}

static void loop_begin(answer how) {
    struct epoll_event e = { .events = EPOLLIN };
    memset(&loop, 0, sizeof loop);
    loop.how = how;
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    loop.wake = eventfd(0, EFD_CLOEXEC);
    loop.answer = eventfd(0, EFD_CLOEXEC);
    if (loop.epoll < 0 || loop.wake < 0 || loop.answer < 0) bench_die("no descriptors");
    if (epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.wake, &e) < 0) bench_die("epoll_ctl");
    start_thread(&loop.thread, loop_run, NULL);
}

static void loop_end(uint32_t unused) {
    (void)unused;
    fd_add(loop.wake, is_over);
    pthread_join(loop.thread, NULL);
    close(loop.epoll);
    close(loop.wake);
    close(loop.answer);
}

static void s12_begin(uint32_t unused) {
    (void)unused;
    loop_begin(BY_TIME);
}

static void s12(uint32_t gap_us) {
    const size_t n = (size_t)timed->ops;
    for (size_t i = 0; i < n; i++) {
        const uint64_t sent = loop.seen + 1;
        stall((int64_t)gap_us * 1000);
        const int64_t sent_at = bench_now();
        fd_add(loop.wake, 1);
        while (__atomic_load_n(&loop.seen, __ATOMIC_ACQUIRE) != sent) sched_yield();
        samples[i] = (double)(loop.seen_at - sent_at);
    }
    bench_wall_of(timed, samples, n, 0.5);
}

static void n7a_begin(uint32_t is_flagged) {
    loop_begin(is_flagged ? AT_THE_LAST_FLAGGED : AT_THE_LAST);
}

static void n7b_begin(uint32_t unused) {
    (void)unused;
    loop_begin(BY_EVENTFD);
}

static void send_flagged(void) {
    __atomic_store_n(&loop.sent, loop.sent + 1, __ATOMIC_RELEASE);
    if (!__atomic_exchange_n(&loop.is_written, 1, __ATOMIC_ACQ_REL)) fd_add(loop.wake, 1);
}

static void n7a(uint32_t is_flagged) {
    loop.last += MILLION;
    for (int i = 0; i < MILLION; i++) {
        if (is_flagged) send_flagged();
        else fd_add(loop.wake, 1);
    }
    (void)fd_take(loop.answer);
}

static void n7b(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < N7B_TRIPS; i++) {
        fd_add(loop.wake, 1);
        (void)fd_take(loop.answer);
    }
}

// ---- T2, T3: a wheel as in floor.c, whose time advances tick by tick

typedef struct timer {
    struct timer *next, **link; // link: the pointer to this timer
    uint64_t tick;
    void (*fire)(struct timer *);
} timer;
enum { LEVELS = 6, SLOTS = 64, TICK_NS = 1000000, HOUR = 3600000 }; // HOUR: in ticks

static timer timers[MILLION];
static struct {
    uint64_t now;
    timer *slots[LEVELS][SLOTS];
} wheel;

static inline unsigned slot_of(uint64_t tick, unsigned level) {
    return (unsigned)(tick >> (6 * level)) % SLOTS;
}

static inline void timer_insert(timer *t, uint64_t tick) {
    const uint64_t differs = (wheel.now ^ tick) | (SLOTS - 1); // the highest bit gives the level
    const unsigned level = (63u - (unsigned)__builtin_clzll(differs)) / 6;
    timer **list_of = &wheel.slots[level][slot_of(tick, level)];
    t->tick = tick;
    t->next = *list_of;
    t->link = list_of;
    if (t->next) t->next->link = &t->next;
    *list_of = t;
}

static inline void timer_remove(timer *t) {
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
}

static timer *slot_empty(unsigned level) {
    timer **slot = &wheel.slots[level][slot_of(wheel.now, level)], *first = *slot;
    *slot = NULL;
    return first;
}

static __attribute__((noinline)) void timer_fired(timer *t) { tally += t->tick == wheel.now; }

static void wheel_advance(uint64_t to) {
    while (wheel.now < to) {
        wheel.now++;
        unsigned level = 0; // the highest whose slot begins now: it and lower ones are spread
        while (level + 1 < LEVELS && slot_of(wheel.now, level) == 0) level++;
        for (; level > 0; level--)
            for (timer *t = slot_empty(level), *next; t; t = next) {
                next = t->next;
                timer_insert(t, t->tick);
            }
        for (timer *t = slot_empty(0), *next; t; t = next) {
            next = t->next;
            t->fire(t);
        }
    }
}

static uint64_t chance = 1;
static uint32_t random_below(uint32_t n) {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((chance >> 32) * n >> 32);
}

static uint64_t tick_after(int64_t ns) { return (uint64_t)ns / TICK_NS + 1; }

static void wheel_begin(uint64_t now) {
    memset(&wheel, 0, sizeof wheel);
    wheel.now = now;
    for (int i = 0; i < MILLION; i++) timers[i].fire = timer_fired;
}

static void t2(uint32_t by_clock) {
    const int64_t sleep_ns = (int64_t)10000 * TICK_NS;
    uint64_t last = tick_after(bench_now() + sleep_ns);
    bench_pause(timed);
    wheel_begin((uint64_t)bench_now() / TICK_NS);
    bench_resume(timed);
    for (int i = 0; i < MILLION; i++) {
        if (by_clock) last = tick_after(bench_now() + sleep_ns);
        timer_insert(&timers[i], last);
    }
    wheel_advance(last);
}

static void sleep_until(int64_t ns) {
    const struct timespec t = { ns / 1000000000, ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {}
}

static void t3a(uint32_t unused) {
    (void)unused;
    bench_pause(timed);
    wheel_begin((uint64_t)bench_now() / TICK_NS);
    bench_resume(timed);
    const int64_t start = bench_now();
    const uint64_t last = tick_after(start + (int64_t)999 * TICK_NS);
    for (int i = 0; i < MILLION; i++)
        timer_insert(&timers[i], tick_after(start + (int64_t)random_below(1000) * TICK_NS));
    while (wheel.now < last) {
        sleep_until((int64_t)(wheel.now + 1) * TICK_NS);
        wheel_advance((uint64_t)bench_now() / TICK_NS);
    }
}

static uint64_t in_an_hour(void) { return wheel.now + HOUR + random_below(HOUR); }

static void t3b_begin(uint32_t unused) {
    (void)unused;
    wheel_begin(0);
    for (int i = 0; i < MILLION; i++) timer_insert(&timers[i], in_an_hour());
}

static void t3b(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < MILLION; i++) {
        timer *t = &timers[random_below(MILLION)];
        timer_remove(t);
        timer_insert(t, in_an_hour());
        tally++;
    }
}

// All are still in the wheel, each at its time.
static void t3b_end(uint32_t unused) {
    (void)unused;
    tally = 0;
    wheel_advance(2 * HOUR);
    if (tally != MILLION) bench_die("T3b: %" PRIu64 " timers are left", tally);
}

// ---- main

static const struct row {
    const char *id;
    uint64_t ops;
    void (*run)(uint32_t arg);
    uint32_t arg;
    void (*begin)(uint32_t arg), (*end)(uint32_t arg); // not timed; NULL: nothing
    const char *what;
} rows[] = {
    { "S3", TIMES * S3_TASKS, s3, 0, taker_begin, taker_end, "list from one thread to another" },
    { "S3+rmw", TIMES * S3_TASKS, s3_rmw, 0, taker_begin, taker_end, "  of whole tasks" },
    { "S5p1", TIMES * S5_TASKS, s5, 1, s5_begin, s5_end, "list from 1 thread to another" },
    { "S5p1+rmw", TIMES * S5_TASKS, s5, 1, s5_rmw_begin, s5_end, "  of whole tasks" },
    { "S5p2", TIMES * S5_TASKS, s5, 2, s5_begin, s5_end, "list from 2 threads to another" },
    { "S5p2+rmw", TIMES * S5_TASKS, s5, 2, s5_rmw_begin, s5_end, "  of whole tasks" },
    { "S5p4", TIMES * S5_TASKS, s5, 4, s5_begin, s5_end, "list from 4 threads to another" },
    { "S5p4+rmw", TIMES * S5_TASKS, s5, 4, s5_rmw_begin, s5_end, "  of whole tasks" },
    { "S5p8", TIMES * S5_TASKS, s5, 8, s5_begin, s5_end, "list from 8 threads to another" },
    { "S5p8+rmw", TIMES * S5_TASKS, s5, 8, s5_rmw_begin, s5_end, "  of whole tasks" },
    { "S12a", S12_WAKES, s12, 3, s12_begin, loop_end, "eventfd after 3 us: p50 latency" },
    { "S12b", S12_WAKES, s12, 30, s12_begin, loop_end, "eventfd after 30 us: p50 latency" },
    { "S12c", S12C_WAKES, s12, 300, s12_begin, loop_end, "eventfd after 300 us: p50 latency" },
    { "T2", MILLION, t2, 0, NULL, NULL, "timer wheel: insert, fire" },
    { "T2+clock", MILLION, t2, 1, NULL, NULL, "  and one clock_gettime" },
    { "T3a", MILLION, t3a, 0, NULL, NULL, "timer wheel: insert, sleep, fire" },
    { "T3b", MILLION, t3b, 0, t3b_begin, t3b_end, "timer wheel: remove, insert" },
    { "N7a", MILLION, n7a, 0, n7a_begin, loop_end, "write an eventfd" },
    { "N7a+flag", MILLION, n7a, 1, n7a_begin, loop_end, "  if the last was read" },
    { "N7b", N7B_TRIPS, n7b, 0, n7b_begin, loop_end, "write an eventfd, read another one" },
};

static void measure(const struct row *r, int reps) {
    bench_row figures = { .id = r->id, .what = r->what, .workers = 1, .ops = r->ops };
    timed = &figures;
    if (r->begin) r->begin(r->arg);
    for (int i = -1; i < reps; i++) { // the first one warms up
        tally = 0;
        bench_start(&figures);
        r->run(r->arg);
        if (i >= 0) bench_stop(&figures);
        if (tally != r->ops) bench_die("%s: %" PRIu64 " operations were done", r->id, tally);
    }
    if (r->end) r->end(r->arg);
    bench_print(&figures);
}

int main(int argc, char **argv) {
    double reps = 15;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < BENCH_COUNT(rows); i++) puts(rows[i].id);
        return 0;
    }
    const bench_option options[] = { { "--reps", &reps, 1, BENCH_REPS_MAX } };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    int measured = 0;
    bench_print_header();
    for (size_t i = 0; i < BENCH_COUNT(rows); i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        measure(&rows[i], (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}
