// SPDX-License-Identifier: MIT OR 0BSD
// The weak-memory model checker: its interface for scenarios. Include this file instead of the
// system's headers, then volt.h:
//
//     #include "vmc.h"
//     #define VOLT_IMPLEMENTATION
//     #include "volt.h"
//
//     SCENARIO(one_thief, .class = VMC_EXHAUSTIVE) {     // runs once per execution, as thread 0
//         volt__ring *r = vmc_alloc(sizeof *r);          // zeroed; must be freed, or it is a leak
//         int t = vmc_spawn(thief, r);                   // void thief(void *)
//         VMC_ASSERT(volt__ring_push(r, task));
//         vmc_join(t);
//         vmc_free(r);
//     }
//
// The file is compiled with -fsanitize=thread; every access of the compiled code then calls the
// checker (tsan.c) instead of the sanitizer. A scenario is executed repeatedly, each time with
// another order of its threads or another store for a load to read from, until all have been seen
// (search.c; memory.c names the executions of C++20's model that are left out). Each execution
// begins with the same memory: statics as they were at program start, an empty heap. Statics may
// therefore be used freely; only the notes of vmc_outcome and vmc_reached survive an execution.
//
// Found in any execution and reported with a string that replays it: a failed VMC_ASSERT or
// VOLT_ASSERT, a data race on plain memory, use after free or return, access outside a block,
// double free, leak, deadlock (a lost wake-up is one: parks have no time limit), too many steps, a
// crash, a scenario that behaves differently when replayed.
//
// Rules for scenarios: threads share memory only through volt.h's functions, the __atomic built-ins
// or plain accesses ordered by them; no libc calls with state; at most VMC_THREADS threads at once
// in total; a loop that waits for another thread must block (vmc_join, vmc_futex_wait) or call
// vmc_yield. Keep it to 2 or 3 threads with about 8 atomic operations each.
#ifndef VMC_H
#define VMC_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>

enum { VMC_THREADS = 7 }; // per execution, the first included

// ---- declaring scenarios

typedef enum vmc_class {
    VMC_EXHAUSTIVE, // every execution that the memory model of memory.c allows
    VMC_BOUNDED,    // those with at most .preemptions switches away from a runnable thread
    VMC_SAMPLED     // .samples random ones
} vmc_class;

enum { VMC_OUTCOMES = 512, VMC_OUTCOME_TEXT = 40 };
typedef struct vmc_result {
    uint64_t n_executions, n_graphs;
    int n_outcomes;
    struct {
        char text[VMC_OUTCOME_TEXT];
        uint64_t count;
    } outcomes[VMC_OUTCOMES]; // sorted
} vmc_result;

typedef struct vmc_scenario {
    const char *name;
    void (*run)(void);
    vmc_class class;
    int preemptions;  // BOUNDED
    int contests;     // BOUNDED: the number of further switches where two threads are about to
                      // compare and swap the same word, mostly a lock: see search.c. At most 255
    uint64_t samples; // SAMPLED
    int stale_reads;  // the most loads that do not read the newest store; 0: no limit;
                      // VMC_NO_STALE: none, which is sequential consistency
    int mo_insert;    // 0 or 1: a store may enter modification order before one executed
                      // earlier, as C11 allows. VMC_MO_APPENDS: it may not; cheaper, and so it
                      // is with VMC_NO_STALE in any case
    int spurious;     // how often per execution a weak cas or a futex wait may fail for nothing
    int max_repeats;  // > 0: the limit of reads in a row of one stale store by a thread;
                      // needed for, and only for, loops that wait with vmc_yield
    int early_timers; // the number of timers that may expire while threads could still move; 0: 1
    int max_steps;    // per execution; more is an error. 0: 2000
    int is_long;      // 1: only in `make model-full`
    int is_silent;    // prints its line only if it fails
    int is_compared;  // explored once more without reduction; both must see the same graphs
    const char *must_fail; // not NULL: passes iff the checker reports an error with this text
    // Not NULL: judges the result in place of expected.txt; returns NULL or an error.
    const char *(*judge)(const struct vmc_scenario *s, const struct vmc_result *r);
    const void *arg;
    struct vmc_scenario *next;
} vmc_scenario;
enum { VMC_NO_STALE = -1, VMC_MO_APPENDS = -1 };

void vmc_register(vmc_scenario *s);
#define SCENARIO(name_, ...)                                                                       \
    static void scenario_##name_(void);                                                            \
    static vmc_scenario vmc__##name_ = {.name = #name_, .run = scenario_##name_, __VA_ARGS__};     \
    __attribute__((constructor)) static void vmc__register_##name_(void) {                         \
        vmc_register(&vmc__##name_);                                                               \
    }                                                                                              \
    static void scenario_##name_(void)

// ---- in a scenario

int vmc_spawn(void (*fn)(void *), void *arg); // returns the thread's number: 1, 2, ...
void vmc_join(int thread);
int vmc_self(void);
void vmc_yield(void); // continues only after another thread has moved, or when no other can

// Ends an execution of no interest without a verdict. Makes a scenario smaller; hidden executions
// are not checked.
void vmc_assume(int condition);

void *vmc_alloc(size_t size);                       // zeroed
void *vmc_alloc_aligned(size_t size, size_t align); // filled with 0xa5
void vmc_free(void *block);

__attribute__((format(printf, 1, 2), noreturn)) void vmc_fail(const char *format, ...);
#define VMC_ASSERT(...)                                                                            \
    ((__VA_ARGS__) ? (void)0 : vmc_fail("%s:%d: VMC_ASSERT(%s)", __FILE__, __LINE__, #__VA_ARGS__))

// Notes the outcome of an execution; outcomes are printed with their counts.
__attribute__((format(printf, 1, 2))) void vmc_outcome(const char *format, ...);
const vmc_scenario *vmc_current(void);
// "Some execution succeeds": the scenario fails if no execution reaches this line.
void vmc_reached(const char *what);
// Called first in the scenario: names a text that vmc_reached must note.
void vmc_must_happen(const char *what);

// ---- the environment of volt.h (world.c, kernel.c)

int vmc_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline);
void vmc_futex_wake(uint32_t *word, int n);
int vmc_membarrier(int command); // registers, or has every thread pass a full fence
int64_t vmc_now(void); // stands still, except for timed waits: one that times out moves it there
int vmc_thread_create(uintptr_t *thread, void *(*fn)(void *), void *arg);
int vmc_thread_join(uintptr_t thread);
void *vmc_tls_get(void);
void vmc_tls_set(void *value);
struct epoll_event;
int vmc_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout_ns);

// A volt_allocator over the checker's heap: { vmc_volt_alloc, vmc_volt_free, NULL }.
void *vmc_volt_alloc(void *user, size_t size, size_t align);
void vmc_volt_free(void *user, void *block, size_t size);

// ---- volt.h's seam

#define VOLT_MODEL 1
#define VOLT_STATIC 1
#ifndef VOLT_DEBUG // 0: the shipped form; no assertion there acquires in place of the code
#    define VOLT_DEBUG 1
#endif
#define VOLT_SYS(name_, ...) vmc_sys_##name_(__VA_ARGS__)
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_)                                              \
    ((void)(attr_), vmc_thread_create((uintptr_t *)(thread_), fn_, arg_))
#define VOLT_THREAD_JOIN(thread_) vmc_thread_join((uintptr_t)(thread_))
#define VOLT_TLS_GET() ((volt__worker *)vmc_tls_get())
#define VOLT_TLS_SET(w_) vmc_tls_set(w_)
#define VOLT_TLS_MARK() ((uintptr_t)1) // no guest is asked here
#define VOLT_FORK_WORD() NULL
#define VOLT_GETPID() 1
#define VOLT_NOW_NS() vmc_now()
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_) vmc_futex_wait(word_, expect_, deadline_)
#define VOLT_FUTEX_WAKE(word_, n_) vmc_futex_wake(word_, n_)
#define VOLT_MEMBARRIER(command_) vmc_membarrier(command_)
// In this form each unlock is an exchange, and the light fence of a biased lock is a full fence.
// That is quick to explore, but orders more than the form that runs where membarrier(2) works. A
// file defines MODEL_BARRIER for that form if its scenarios would miss a missing order otherwise.
#ifndef MODEL_BARRIER
#  define VOLT_NO_MEMBARRIER
#endif
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) vmc_epoll_wait(ep_, ev_, n_, timeout_)
#define VOLT_RANDOM() UINT64_C(88172645463325252)
#define VOLT_PANIC(text_) vmc_fail("%s", text_)
#define VOLT_CPU_RELAX() ((void)0)

// Small enough to be explored. A scenario may define others before it includes this file.
#ifndef VOLT_RING_CAP
#    define VOLT_RING_CAP 4u
#endif
#ifndef VOLT_OVERFLOW_CAP
#    define VOLT_OVERFLOW_CAP 2u
#endif
#ifndef VOLT_RING_INDEX_BITS
#    define VOLT_RING_INDEX_BITS 5
#endif
#ifndef VOLT_WHEEL_BITS
#    define VOLT_WHEEL_BITS 2
#endif
#ifndef VOLT_WHEEL_LEVELS
#    define VOLT_WHEEL_LEVELS 2
#endif
#ifndef VOLT_EVENTS
#    define VOLT_EVENTS 4
#endif
#ifndef VOLT_MAX_WORKERS
#    define VOLT_MAX_WORKERS 4u
#endif
#ifndef VOLT_SLAB_SIZE
#    define VOLT_SLAB_SIZE 16384u
#endif
#ifndef VOLT_LOCK_TRIES
#    define VOLT_LOCK_TRIES 1
#endif
#ifndef VOLT_REMOTE_BATCH
#    define VOLT_REMOTE_BATCH 2
#endif

// Weaker than any that volt.h has: for the defects of mutants.txt.
#define volt__cas_rlx(p_, old_, new_) \
    __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define volt__xchg_rlx(p_, v_) __atomic_exchange_n((p_), (v_), __ATOMIC_RELAXED)
#define volt__sub_rlx(p_, v_) __atomic_fetch_sub((p_), (v_), __ATOMIC_RELAXED)
#define volt__and_rlx(p_, v_) __atomic_fetch_and((p_), (v_), __ATOMIC_RELAXED)
#define volt__or_rlx(p_, v_) __atomic_fetch_or((p_), (v_), __ATOMIC_RELAXED)

#include "world.h" // the system calls: vmc_sys_*

#endif // VMC_H
