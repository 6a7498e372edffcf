// SPDX-License-Identifier: MIT OR 0BSD
// Timer rows by libuv, whose timers are a heap and count in ms of the time that the loop has read.
//
//   timer [ROW...] [--reps N]        default: all rows, 9 repetitions
//
//   T1b  100 timers are each started for 1 s and stopped at once, 10,000 times. There is no task:
//        one callback does it all, and nothing reads the clock
//   T3a  1,000,000 timers with deadlines spread over 0..999 ms: started, fired, closed
//   T3b  1,000,000 live timers, an hour away: each operation stops one and starts it again
//
// For the columns see ../../rows/bench.h.
#include "../peer.h"
#include <uv.h>

enum { TASKS = 100, EACH = 10000, MILLION = 1000000, HOUR = 3600000 };

static uv_loop_t loop;
static uv_timer_t *timers;
static uint64_t *deadlines;

static uint64_t next_number(void) { // pseudo-random
    static uint64_t x = 88172645463325252;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static void make_timers(void) {
    timers = calloc(MILLION, sizeof *timers);
    deadlines = calloc(MILLION, sizeof *deadlines);
    if (!timers || !deadlines || uv_loop_init(&loop) < 0) bench_die("no memory");
}

static void end_timers(void) {
    uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) < 0) bench_die("a timer is left");
    free(timers);
    free(deadlines);
}

static void on_early(uv_timer_t *timer) {
    (void)timer;
    bench_die("a timer has fired");
}

// ---- T1b

static void start_and_stop(uv_timer_t *timer) {
    uv_timer_start(timer, on_early, 1000, 0);
    peer_done += (uint64_t)uv_is_active((uv_handle_t *)timer);
    uv_timer_stop(timer);
    peer_done -= (uint64_t)uv_is_active((uv_handle_t *)timer);
}

static void on_idle(uv_idle_t *idle) {
    uv_idle_stop(idle);
    for (int i = 0; i < TASKS; i++)
        for (int k = 0; k < EACH; k++) start_and_stop(&timers[i]);
}

static void t1b_set_up(void) {
    make_timers();
    for (int i = 0; i < TASKS; i++) uv_timer_init(&loop, &timers[i]);
}

static void t1b_run(void) {
    uv_idle_t idle;
    uv_idle_init(&loop, &idle);
    uv_idle_start(&idle, on_idle);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&idle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void close_timers(int n) {
    for (int i = 0; i < n; i++) uv_close((uv_handle_t *)&timers[i], NULL);
    end_timers();
}
static void t1b_tear_down(void) { close_timers(TASKS); }

// ---- T3a

static void on_close(uv_handle_t *timer) {
    (void)timer;
    peer_done++;
}

static void on_fire(uv_timer_t *timer) {
    if (uv_now(&loop) < deadlines[timer - timers]) on_early(timer);
    uv_close((uv_handle_t *)timer, on_close);
}

static void t3a_run(void) {
    uv_update_time(&loop);
    for (int i = 0; i < MILLION; i++) {
        const uint64_t ms = next_number() % 1000;
        deadlines[i] = uv_now(&loop) + ms;
        uv_timer_init(&loop, &timers[i]);
        uv_timer_start(&timers[i], on_fire, ms, 0);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
}

// ---- T3b

static void arm_late(uv_timer_t *timer) {
    uv_timer_start(timer, on_early, HOUR + next_number() % HOUR, 0);
}

static void t3b_set_up(void) {
    make_timers();
    for (int i = 0; i < MILLION; i++) {
        uv_timer_init(&loop, &timers[i]);
        arm_late(&timers[i]);
    }
}

static void t3b_run(void) {
    for (int i = 0; i < MILLION; i++) {
        uv_timer_t *timer = &timers[next_number() % MILLION];
        uv_timer_stop(timer);
        arm_late(timer);
        peer_done += (uint64_t)uv_is_active((uv_handle_t *)timer);
    }
}

static void t3b_tear_down(void) { close_timers(MILLION); }

// ---- main

static const row rows[] = {
    { "T1b", "uv_timer_start and uv_timer_stop, no task", TASKS * EACH, t1b_run, t1b_set_up,
      t1b_tear_down },
    { "T3a", "timers of 0..999 ms: started, fired, closed", MILLION, t3a_run, make_timers,
      end_timers },
    { "T3b", "re-arm one of 1,000,000 timers: stop, start", MILLION, t3b_run, t3b_set_up,
      t3b_tear_down },
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
