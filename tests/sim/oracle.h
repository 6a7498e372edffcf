// SPDX-License-Identifier: MIT OR 0BSD
// Invariants of every simulated program; the checks of its tasks and of its end.
//
// Checked                                                           where
//   all threads sleep, nothing is to come, the program has not ended  sim__advance  (machine.h)
//   the program ends, at the latest when faults have ended            sim__charge   (machine.h)
//   no thread, descriptor or memory is left; the same seed, the same  sim_run, main.c
//   a task is polled by one worker at a time, and not after its end   note_poll_begin
//   ... for a reason: a sleeping task once, when its time has come    sleep_run     (grammar.h)
//   ... soon: within a number of other polls; at once if one sleeps   note_poll_begin, volley
//   each spawned task ends once, also after a shutdown                check_all_ended
//   a task is cancelled only by a cancellation of the program         may_be_cancelled
//   timers are never early, and late by their tick                    check_sleep, rescue (apps.h)
//   bytes arrive once, in order, at the right file                    check_bytes
//   while all wait no thread makes a step                             silence       (apps.h)
//   blocking calls, and queues while all threads sleep                calls.h
//   locks, channels and hooks that tasks and threads share            waits.h
//   datagrams; readiness; copies, relays; lines, records; children    packets.h, ready.h, copies.h,
//                                                                     lines.h, processes.h
#ifndef VOLT_SIM_ORACLE_H
#define VOLT_SIM_ORACLE_H

#include "sim.h"

// A task moved from a full ring to the injector waits for one turn in VOLT_INJECT_MAX polls, behind
// all others there.
enum { MOST_TASKS = 512, MOST_THREADS = 24, LATEST_POLLS = VOLT_INJECT_MAX + 10 };

typedef struct task_note { // the state of a task, known outside volt
    int is_spawned, is_polling, n_ended;
    int is_cancelled;             // it, or its owner, is being cancelled
    int has_waker;                // may be polled without a reason
    int has_yielded;              // a yield that lost a select: its task may be queued once more
    uint32_t bound_to;            // 1 + the worker that it is bound to
    uint64_t n_polls, spawned_at; // at: polls of all tasks before
} task_note;

static struct program {
    uint64_t random; // of the program's draws: separate from the schedule's, which faults shift
    int has_options; // spawns draw options
    task_note note[MOST_TASKS];
    int n_notes, most_tasks, n_spawned; // spawned: also those without a note
    uint64_t n_polls;                   // of all tasks
    int is_ending;   // a shutdown has begun: every task may be cancelled
    int may_fail;    // faults that operations report
    int is_interrupted; // EINTR, which only operations on files report
    int is_punctual; // only its tick delays a timer
    int is_fair;     // every thread gets its turns
    int computes;    // polls may take milliseconds
    sim_thread *thread[SIM_THREADS];
    int n_threads;
    int port; // of the echo server; 0: none
    volt_rt *rt, *other;
    uint32_t budget;
} prog;

static uint32_t prog_below(uint32_t n) {
    return (uint32_t)(((sim_next(&prog.random) >> 32) * n) >> 32);
}
// Sets the flags that the faults of this run allow.
static void program_look(void) {
    const int failing[] = {SIM_NOMEM,   SIM_NOFILE, SIM_RESET, SIM_ABORTED,
                           SIM_CONTROL, SIM_THREAD, SIM_DISK,  SIM_NAMES};
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++)
        prog.may_fail |= sim.rate[failing[i]] != 0;
    prog.may_fail |= kernel.fd_limit < SIM_FDS;
    prog.is_interrupted = sim.rate[SIM_EINTR] != 0;
    prog.is_fair = sim.policy == SIM_WALK || sim.policy == SIM_ROUND;
    prog.is_punctual = prog.is_fair && !sim.rate[SIM_DELAY] && !sim.rate[SIM_JITTER] &&
                       !sim.rate[SIM_LEAP] && !sim.rate[SIM_NOMEM];
}
static void program_without_faults(void) {
    memset(sim.rate, 0, sizeof sim.rate);
    kernel.fd_limit = SIM_FDS;
    prog.may_fail = 0;
    program_look();
}
// For programs with timing promises: a machine without delays.
static void program_on_time(void) {
    sim.policy = SIM_WALK;
    program_without_faults();
}
static void program_init(uint64_t seed) {
    memset(&prog, 0, sizeof prog);
    prog.random = sim_mix(seed ^ UINT64_C(0x5eed));
    program_look();
}

// ---- the log of the runtime

static void note_log(void *user, int item, const char *text) {
    (void)user;
    if (item == VOLT_LOG_FD_REUSED || item == VOLT_LOG_NEVER_WAKES ||
        item == VOLT_LOG_HANDLE_LEAKED)
        sim_fail("log: %s", text);
}
static volt_config draw_config(void) {
    static const uint32_t workers[] = {1, 2, 2, 3, 3, 4, 4, 8};
    volt_config c;
    memset(&c, 0, sizeof c);
    c.workers = workers[prog_below(8)];
    c.start_all_workers = prog_below(2);
    c.reactors = prog_below(4) ? 0 : 1 + prog_below(c.workers);
    c.budget = prog_below(4) ? 0 : 1 + prog_below(8);
    c.event_interval = prog_below(4) ? 0 : 1 + prog_below(8);
    c.watchdog_us = prog_below(8) ? 0 : UINT32_MAX;
    c.placement = (volt_placement)prog_below(3);
    c.max_blocking_threads = prog_below(3) ? 1 + prog_below(3) : 0;
    prog.has_options = (int)prog_below(2);
    c.spin_us = prog_below(8) ? 0 : 1; // a step takes some ns
    c.seed = sim_next(&prog.random) | 1;
    c.log.fn = note_log;
    return c;
}

// ---- the life of a task

// The number of a new task; -1: the limit is reached.
static int note_task(void) {
    if (prog.n_notes >= prog.most_tasks) return -1;
    return prog.n_notes++;
}
static void note_spawned(int id, int rc) {
    task_note *n = &prog.note[id];
    SIM_CHECK(rc == 0 || prog.may_fail || prog.is_ending);
    if (rc != 0) SIM_CHECK(n->n_polls == 0);
    n->is_spawned = rc == 0;
    prog.n_spawned++;
}
static void note_cancel(int id) { prog.note[id].is_cancelled = 1; }
static int may_be_cancelled(int id) { return prog.is_ending || prog.note[id].is_cancelled; }

// Options for a task of rt: in half of the programs some are bound, urgent or have a tag.
static volt_spawn_options draw_options(volt_rt *rt, int id) {
    volt_spawn_options o;
    memset(&o, 0, sizeof o);
    uint32_t kind = prog.has_options ? prog_below(4) : 3;
    o.is_bound = kind == 0;
    if (o.is_bound) o.worker = prog_below(volt__started(rt));
    o.is_urgent = kind == 1;
    o.tag = kind < 3 ? (uintptr_t)id + 1 : 0;
    if (o.is_bound) prog.note[id].bound_to = 1 + o.worker;
    return o;
}
static void check_options(const volt_cx *cx, int id) {
    uint32_t bound_to = prog.note[id].bound_to;
    SIM_CHECK(bound_to == 0 || cx->worker_->index == bound_to - 1);
}
// Around each poll of a task: one at a time, none after its end, and the first one soon.
static void note_poll_begin(int id) {
    task_note *n = &prog.note[id];
    SIM_CHECK(!n->is_polling);
    SIM_CHECK(n->n_ended == 0);
    n->is_polling = 1;
    prog.n_polls++;
    if (n->n_polls++ == 0 && prog.is_fair && !prog.computes)
        SIM_CHECK(prog.n_polls - n->spawned_at < LATEST_POLLS * (64 + (uint64_t)prog.n_spawned));
}
static void note_poll_end(int id, volt_poll p) {
    task_note *n = &prog.note[id];
    n->is_polling = 0;
    if (!volt_is_pending(p)) n->n_ended++;
}
// When all runtimes have ended: each accepted task has been polled, and has ended, once.
static void check_all_ended(void) {
    for (int i = 0; i < prog.n_notes; i++) {
        const task_note *n = &prog.note[i];
        SIM_CHECK(!n->is_polling);
        if (n->is_spawned && n->n_ended != 1) sim_fail("task %d ended %d times", i, n->n_ended);
    }
}

// ---- time

typedef struct time_note {
    int64_t start, due, drift;
} time_note;
static void note_sleep(time_note *t, int64_t d) {
    t->start = sim_now();
    t->due = d > SIM_NEVER - t->start ? SIM_NEVER : t->start + d;
    t->drift = sim.drift;
}
// Never early; late by a tick, and by one more where the kernel counts in milliseconds.
static void check_sleep(const time_note *t) {
    int64_t now = sim_now(), most = SIM_MS(kernel.is_old ? 2 : 1);
    if (now < t->due) sim_fail("a timer fired %" PRId64 " ns early", t->due - now);
    if (!prog.is_punctual || prog.computes) return;
    most += sim.drift - t->drift;
    if (now - t->due > most) sim_fail("a timer fired %" PRId64 " ns late", now - t->due);
}

// ---- bytes: the byte of stream `id` at offset `at`
static unsigned char stream_byte(uint64_t id, uint64_t at) {
    return (unsigned char)sim_mix(id * 1000003 + at);
}
static void fill_bytes(unsigned char *buf, size_t n, uint64_t id, uint64_t at) {
    for (size_t i = 0; i < n; i++) buf[i] = stream_byte(id, at + i);
}
static void check_bytes(const unsigned char *buf, size_t n, uint64_t id, uint64_t at) {
    for (size_t i = 0; i < n; i++)
        if (buf[i] != stream_byte(id, at + i))
            sim_fail("stream %" PRIu64 ": wrong byte at %" PRIu64, id, at + i);
}

// ---- foreign threads, joined when the runtimes have ended
static int may_start_thread(void) { return prog.n_threads < MOST_THREADS; }
static void start_thread(void (*fn)(void *), void *arg) {
    prog.thread[prog.n_threads++] = sim_start(fn, arg);
}
static void join_threads(void) {
    for (int i = 0; i < prog.n_threads; i++) sim_join(prog.thread[i]);
    prog.n_threads = 0;
}

#endif // VOLT_SIM_ORACLE_H
