// SPDX-License-Identifier: MIT OR 0BSD
// Rows of wake-ups from a thread that is not a worker.
//
//   wake [ROW...] [--workers N] [--reps N]         default: all rows, 1 worker, 9 repetitions
//   wake --list                                    the names of the rows
//
//   N7a  1,000,000 stores of a number, each with a volt_wake, without waiting: wake-ups that come
//        before the task has run are one. Ends when the task has reported the last number
//   N7b  one store and volt_wake; the task answers by volt_notify_one, for which the thread waits
//        by volt_notify_wait_sync; 20,000 round trips
//
// One task and one waker for a whole row. The task counts the increase of the number, so that none
// is lost. ns are per operation; for the columns see bench.h.
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"
#include "outside.h"

enum { N7A_WAKES = 1000000, N7B_TRIPS = 20000 };

// The task answers every N7A_WAKES-th number, or each one.
static void answer_last(uint64_t sent) {
    mailbox_done(sent);
    if (sent % N7A_WAKES == 0) volt_notify_one(&mailbox.answer);
}

static void answer_each(uint64_t sent) {
    mailbox_done(sent);
    volt_notify_one(&mailbox.answer);
}

static void n7a_begin(uint32_t unused) {
    (void)unused;
    mailbox_open(answer_last);
}

static void n7b_begin(uint32_t unused) {
    (void)unused;
    mailbox_open(answer_each);
}

static int n7a_run(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < N7A_WAKES; i++) (void)mailbox_send();
    return volt_notify_wait_sync(&mailbox.answer, VOLT_NEVER);
}

static int n7b_run(uint32_t unused) {
    (void)unused;
    for (int i = 0; i < N7B_TRIPS; i++) {
        const uint64_t sent = mailbox_send();
        const int rc = volt_notify_wait_sync(&mailbox.answer, VOLT_NEVER);
        if (rc < 0) return rc;
        if (__atomic_load_n(&mailbox.seen, __ATOMIC_ACQUIRE) != sent) return -EBADMSG;
    }
    return 0;
}

static const outside_row rows[] = {
    { "N7a", "wake-ups from a thread, one after the other", N7A_WAKES, n7a_run,
      .begin = n7a_begin, .is_bounded = 1 },
    { "N7b", "wake-up from a thread and answer to it", N7B_TRIPS, n7b_run, .begin = n7b_begin,
      .is_bounded = 1 },
};

int main(int argc, char **argv) { return outside_main(argc, argv, rows, BENCH_COUNT(rows)); }
