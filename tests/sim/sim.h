// SPDX-License-Identifier: MIT OR 0BSD
// Deterministic simulation of programs that use volt: the real volt.h on a simulated machine, where
// one seed decides everything (the schedule, the network, the calls that fail) and the clock is
// virtual. The same seed gives the same run, to the last step.
//
//     #define VOLT_IMPLEMENTATION
//     #include "tests/sim/sim.h" // instead of volt.h, before every other header; needs no -pthread
//
//     static void program(void *arg) { // thread 0: may use all of volt, and all below
//         volt_config c = { .workers = 3 };
//         int rc = volt_run(&c, my_root, arg);
//         SIM_CHECK(rc == 0 || rc == -ENOMEM); // and other results of faults
//     }
//     int main(void) {
//         for (uint64_t seed = 1; seed <= 10000; seed++) {
//             sim_report r;
//             if (sim_run(seed, NULL, program, NULL, &r) < 0) {
//                 printf("seed %" PRIu64 ": %s\n", seed, r.failure);
//                 sim_replay(seed, NULL, program, NULL); // once more, printing the last steps
//                 return 1;
//             }
//         }
//     }
//
// A run has failed when all threads sleep with nothing to come (a lost wake-up), when it has no
// end, when a check or an assertion fails, or when a thread, a descriptor or memory is left behind.
// A program must use time, randomness, threads and descriptors only through this file:
//   sim_now()                               volt_now() is the same
//   sim_below(n), sim_random()              by the seed
//   sim_start(fn, arg), sim_join(thread)    foreign threads: plain functions, void fn(void *)
//   sim_nap(ns)                             a foreign thread sleeps
//   sim_compute(ns)                         the calling thread, also a worker, is busy that long
//   sim_pipe2, sim_socketpair, sim_read, sim_write, sim_close, sim_dup ... as the system calls
//   sim_stop_faults()                       from now on nothing fails and the schedule is fair
//   SIM_CHECK(condition)                    in place of assert
// Faults reach the program as errors of volt's calls (-ENOMEM, -EMFILE, -ECONNRESET ...): it must
// handle them, or switch them off in sim_options. volt_config.alloc and .log must be left alone or
// behave equally for equal seeds. Only one run at a time, on one OS thread.
#ifndef VOLT_SIM_H
#define VOLT_SIM_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE 1
#endif
#include "kernel.h"

_Static_assert(sizeof(long) == 8, "the simulation is for 64-bit machines");

// ---- the seam of volt.h

static _Noreturn void sim__panic(const char *text) {
    sim_fail("%s", text);
    abort(); // outside a run
}
#define VOLT_SYS(name_, ...) sim_##name_(__VA_ARGS__)
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) sim_pthread_create(thread_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) sim_pthread_join(thread_)
#define VOLT_FORK_WORD() NULL
#define VOLT_GETPID() 1
#define VOLT_START_CHILD(child_)                                                                   \
    ((void)volt__sys_start_child, sim_start_child((child_)->options->argv[1], (child_)->report_fd, \
                                                  &(child_)->fd[0].here, (child_)->n_fds))
#define VOLT_TLS_GET() ((volt__worker *)sim.current->tls)
#define VOLT_TLS_SET(w_) (sim.current->tls = (w_))
#define VOLT_TLS_MARK() ((uintptr_t)&sim.current->tls)
#define VOLT_PANIC(text_) sim__panic(text_)
#define VOLT_CPU_RELAX() sim_relax()
#define VOLT_LOCK_SPIN 1u // each spin yields the processor

// Each atomic operation of volt is a point: a macro does not expand its own name again, so the
// builtin remains.
#define __atomic_load_n(...)                                                                       \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_load_n(__VA_ARGS__);                                                              \
    })
#define __atomic_store_n(...)                                                                      \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_store_n(__VA_ARGS__);                                                             \
    })
#define __atomic_exchange_n(...)                                                                   \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_exchange_n(__VA_ARGS__);                                                          \
    })
#define __atomic_fetch_add(...)                                                                    \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_fetch_add(__VA_ARGS__);                                                           \
    })
#define __atomic_fetch_sub(...)                                                                    \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_fetch_sub(__VA_ARGS__);                                                           \
    })
#define __atomic_fetch_and(...)                                                                    \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_fetch_and(__VA_ARGS__);                                                           \
    })
#define __atomic_fetch_or(...)                                                                     \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_fetch_or(__VA_ARGS__);                                                            \
    })
#define __atomic_fetch_xor(...)                                                                    \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_fetch_xor(__VA_ARGS__);                                                           \
    })
#define __atomic_compare_exchange_n(...)                                                           \
    __extension__({                                                                                \
        sim_atomic_point();                                                                        \
        __atomic_compare_exchange_n(__VA_ARGS__);                                                  \
    })
#ifndef SIM_VOLT // another copy of the header, with a defect put in
#    define SIM_VOLT "../../volt.h"
#endif
#include SIM_VOLT
#undef __atomic_load_n
#undef __atomic_store_n
#undef __atomic_exchange_n
#undef __atomic_fetch_add
#undef __atomic_fetch_sub
#undef __atomic_fetch_and
#undef __atomic_fetch_or
#undef __atomic_fetch_xor
#undef __atomic_compare_exchange_n

// ---- for programs

SIM_FN int64_t sim_now(void) { return sim.now; }

typedef struct sim_starter {
    void (*fn)(void *arg);
    void *arg;
} sim_starter;
static void *sim__start_main(void *arg) {
    sim_starter s = *(sim_starter *)arg;
    sim__free(arg, SIM_UNIT);
    s.fn(s.arg);
    return NULL;
}
// Never fails: foreign threads are the test's own.
SIM_FN sim_thread *sim_start(void (*fn)(void *arg), void *arg) {
    sim_starter *s = (sim_starter *)sim__alloc(SIM_UNIT);
    sim_thread *t = NULL;
    if (s) {
        s->fn = fn;
        s->arg = arg;
        t = sim__thread_create(sim__start_main, s);
    }
    if (!t) sim_fail("simulation: out of threads");
    return t;
}
SIM_FN void sim_join(sim_thread *t) { sim__thread_join(t); }
SIM_FN void sim_nap(int64_t ns) { sim__sleep("nap", &sim.n_events, sim.now + ns); }
SIM_FN void sim_compute(int64_t ns) { sim__sleep("computation", &sim.n_events, sim.now + ns); }
SIM_FN void sim_stop_faults(void) {
    if (!sim.is_calm) sim__calm_down();
}

// ---- running

typedef struct sim_program {
    void (*fn)(void *arg);
    void *arg;
} sim_program;
static void *sim__program_main(void *arg) {
    sim_program *p = (sim_program *)arg;
    p->fn(p->arg);
    return NULL;
}
// 0, or -1 and report->failure.
SIM_FN int sim_run(uint64_t seed, const sim_options *or_null, void (*fn)(void *arg), void *arg,
                   sim_report *report) {
    sim_program p = {fn, arg};
    sim__machine_reset(seed, or_null);
    sim__kernel_reset();
    sim__machine_run(sim__program_main, &p);
    sim__kernel_check();
    *report = sim.report;
    return sim.is_failed ? -1 : 0;
}
// Runs a seed again and prints its last `or_steps` points, by default 2000, and how it ended.
SIM_FN void sim_replay_last(uint64_t seed, const sim_options *or_null, void (*fn)(void *arg),
                            void *arg, uint64_t or_steps) {
    sim_options o = {0};
    sim_report r;
    if (or_null) o = *or_null;
    sim_run(seed, &o, fn, arg, &r);
    uint64_t steps = or_steps ? or_steps : 2000;
    o.trace_from = r.points > steps ? r.points - steps : 0;
    o.is_traced = 1;
    sim_run(seed, &o, fn, arg, &r);
}
SIM_FN void sim_replay(uint64_t seed, const sim_options *or_null, void (*fn)(void *arg),
                       void *arg) {
    sim_replay_last(seed, or_null, fn, arg, 0);
}

#endif // VOLT_SIM_H
