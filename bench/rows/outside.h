// SPDX-License-Identifier: MIT OR 0BSD
// Measures a row whose work comes from threads that are not workers: the main thread makes a
// runtime, does the row once to warm up and then once per repetition, and ends it. Start and end of
// runtime and threads do not count. Include it after rows.h, whose checks are made here, too: of
// completed operations, and, where the row is `bounded`, of allocations in a repetition with one
// worker. A lost task would be awaited without end, so after five minutes the program ends.
#ifndef BENCH_OUTSIDE_H
#define BENCH_OUTSIDE_H

#include "latency.h"
#include "rows.h"
#include <signal.h>
#include <unistd.h>

static volt_rt *outside_rt;
static uint32_t outside_workers;

typedef struct outside_row {
    const char *id, *what;
    uint64_t ops; // per repetition, as the tally must find it
    int (*run)(uint32_t arg);
    uint32_t arg;
    // before the warm-up and after the last repetition; NULL: nothing. Remaining tasks are
    // cancelled
    void (*begin)(uint32_t arg), (*end)(uint32_t arg);
    // no more tasks are alive than in the warm-up, and the row takes less than seconds, after which
    // unused memory is returned
    int is_bounded;
} outside_row;

enum { OUTSIDE_SECONDS = 300 }; // for one repetition
static void outside_is_stuck(int signal) {
    static const char text[] = "a task or a wake-up was lost\n";
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(3);
    _exit(2);
}

static inline void outside_repeat(const outside_row *r, bench_row *figures, int is_searching) {
    const uint64_t before = tally_sum();
    alarm(OUTSIDE_SECONDS);
    bench_start(figures);
    const int rc = r->run(r->arg);
    if (is_searching) bench_stop(figures);
    if (rc < 0) bench_die("%s: %s", r->id, volt_strerror(rc));
    if (tally_sum() - before != r->ops) bench_die("%s: operations were lost or done twice", r->id);
}

static inline void outside_measure(const outside_row *r, uint32_t workers, int reps) {
    bench_row figures = { .id = r->id, .what = r->what, .workers = workers, .ops = r->ops };
    const volt_config config = rows_config(workers);
    const int rc = volt_create(&config, &outside_rt);
    if (rc < 0) bench_die("volt_create: %s", volt_strerror(rc));
    row_timed = &figures;
    outside_workers = workers;
    (void)signal(SIGALRM, outside_is_stuck);
    if (r->begin) r->begin(r->arg);
    outside_repeat(r, &figures, 0);
    const uint64_t allocated = rows_n_allocated();
    for (int i = 0; i < reps; i++) outside_repeat(r, &figures, 1);
    const uint64_t more = rows_n_allocated() - allocated;
    if (more && r->is_bounded && workers == 1)
        bench_die("%s: %" PRIu64 " allocations after the warm-up", r->id, more);
    if (r->end) r->end(r->arg);
    if (volt_shutdown(outside_rt, VOLT_S(10)) != 0 || volt_destroy(outside_rt) != 0)
        bench_die("%s: the runtime does not end", r->id);
    alarm(0);
    bench_print(&figures);
}

// Command line: [ROW...] [--workers N] [--reps N], or --list, which names the rows
static inline int outside_main(int argc, char **argv, const outside_row *rows, size_t n_rows) {
    double workers = 1, reps = 9;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < n_rows; i++) puts(rows[i].id);
        return 0;
    }
    const bench_option options[] = {
        { "--workers", &workers, 1, 64 },
        { "--reps", &reps, 1, BENCH_REPS_MAX },
    };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    int measured = 0;
    bench_print_header();
    for (size_t i = 0; i < n_rows; i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        outside_measure(&rows[i], (uint32_t)workers, (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}

// ---- a mailbox: a thread sends numbers, one more each time, by a store and a wake-up; a task
// waits for them by hand, as the manual says under `waiting for something of your own`

static struct mailbox {
    _Alignas(TALLY_LINE) uint64_t sent; // by the thread
    volt_waker task;                    // the task to wake; released by itself
    _Alignas(TALLY_LINE) uint64_t seen; // by the task, after everything else
    int64_t seen_at;
    _Alignas(TALLY_LINE) volt_event is_open; // there is a waker
    volt_notify answer;
} mailbox;

typedef struct receiver {
    volt_frame frame;
    void (*see)(uint64_t sent); // called at each wake-up, with the newest number
    int rc;
} receiver;

static inline uint64_t mailbox_sent(void) {
    return __atomic_load_n(&mailbox.sent, __ATOMIC_ACQUIRE);
}

static inline volt_poll mailbox_wait(volt_cx *cx) {
    if (mailbox_sent() != mailbox.seen) return volt_ready(0);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}

static inline volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    mailbox.task = volt_waker_retain(cx);
    volt_event_set(&mailbox.is_open);
    for (;;) {
        VOLT_AWAIT(r->rc, mailbox_wait(cx));
        if (r->rc < 0) break;
        r->see(mailbox_sent());
    }
    volt_waker_release(mailbox.task);
    VOLT_END(r->rc);
}

static inline void mailbox_open(void (*see)(uint64_t sent)) {
    memset(&mailbox, 0, sizeof mailbox);
    int rc = VOLT_RT_SPAWN(outside_rt, NULL, receiver_run, (receiver){ .see = see });
    if (rc == 0) rc = volt_event_wait_sync(&mailbox.is_open, VOLT_S(OUTSIDE_SECONDS));
    if (rc < 0) bench_die("no receiver: %s", volt_strerror(rc));
}

// Returns the number.
static inline uint64_t mailbox_send(void) {
    const uint64_t n = mailbox.sent + 1;
    __atomic_store_n(&mailbox.sent, n, __ATOMIC_RELEASE);
    volt_wake(mailbox.task);
    return n;
}

// By the task: all operations up to this one are done.
static inline void mailbox_done(uint64_t n) {
    tally_add(n - mailbox.seen);
    __atomic_store_n(&mailbox.seen, n, __ATOMIC_RELEASE);
}

#endif // BENCH_OUTSIDE_H
