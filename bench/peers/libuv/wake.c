// SPDX-License-Identifier: MIT OR 0BSD
// Wakes of a loop of libuv by another thread.
//
//   wake [ROW...] [--reps N]        default: all rows, 9 repetitions
//
//   N7a  a thread increments a number and calls uv_async_send, 1,000,000 times, without waiting; at
//        each wake-up the loop reads the number, until it has seen the last one
//   N7b  a thread calls uv_async_send and waits on a semaphore for the answer; 20,000 times
//
// For the columns see ../../rows/bench.h.
#include "loop.h"

enum { MILLION = 1000000, ANSWERS = 20000 };

static loop looped;
static uv_sem_t answered;
static uint64_t sent, target; // by the thread, in all; the end of this repetition
static uint64_t seen;         // by the loop

// ---- N7a

static void on_many(uv_async_t *wake) {
    const uint64_t now = __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
    (void)wake;
    if (now == seen) return;
    peer_done += now - seen;
    seen = now;
    if (now == target) uv_sem_post(&answered);
}

static void n7a_run(void) {
    target = sent + MILLION;
    for (uint64_t i = sent + 1; i <= target; i++) {
        __atomic_store_n(&sent, i, __ATOMIC_RELEASE);
        uv_async_send(&looped.wake);
    }
    uv_sem_wait(&answered);
}

// ---- N7b

static void on_one(uv_async_t *wake) {
    (void)wake;
    peer_done++;
    uv_sem_post(&answered);
}

static void n7b_run(void) {
    for (int i = 0; i < ANSWERS; i++) {
        uv_async_send(&looped.wake);
        uv_sem_wait(&answered);
    }
}

// ---- main

static void start(uv_async_cb on_wake) {
    loop_must(uv_sem_init(&answered, 0));
    loop_start(&looped, on_wake);
}
static void n7a_set_up(void) { start(on_many); }
static void n7b_set_up(void) { start(on_one); }

static void end(void) {
    loop_end(&looped);
    uv_sem_destroy(&answered);
}

static const row rows[] = {
    { "N7a", "uv_async_send, 1,000,000 without waiting", MILLION, n7a_run, n7a_set_up, end },
    { "N7b", "uv_async_send and back by a semaphore", ANSWERS, n7b_run, n7b_set_up, end },
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
