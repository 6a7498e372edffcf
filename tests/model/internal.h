// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the parts of the model checker. Reading order:
//   memory.c   the memory model: stores, views, which store a load may read
//   shadow.c   plain memory: data races, heap, use after free
//   search.c   which execution comes next: partial-order reduction, bounds, sampling
//   fiber.c    model threads     world.c, kernel.c  futex, threads, clock, epoll
//   tsan.c     the functions that the compiler calls    report.c  errors, traces, replay
//   main.c     the runner: scenarios, their verdicts, expected.txt
// Every size is a limit: exceeding one is an error that names it, never a silent cut.
#ifndef VMC_INTERNAL_H
#define VMC_INTERNAL_H

#include "vmc.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 8,       // model threads and, last, the environment
    ENVIRONMENT = 7,   // fires timers: a thread without code
    MAX_LOCS = 320,    // atomic objects per execution
    MAX_STORES = 3072, // atomic stores per execution
    STORES_PER_LOC = 384,
    MAX_STEPS = 4000,  // of all threads per execution
    MAX_PATH = 12000,  // choices per execution
    MAX_CHOICE = 1024, // ways of one choice
    MAX_BLOCKS = 512,  // heap blocks per execution
    CALL_DEPTH = 64,
    NO_TIME = -1
};

// The deliberate defects of the checker itself: `make model-self` builds it once with each and
// expects a litmus test to fail. Each site is marked MUTANT(name).
#ifndef VMC_MUTANT
#    define VMC_MUTANT 0
#endif
enum {
    NO_VIEW_JOIN = 1, // an acquire load does not take over the view of the releasing thread
    NO_CLOCK_JOIN,    // ... nor its earlier plain accesses
    NO_FLOOR,         // a load may read stores older than the newest that its thread knows
    NO_EPOCH_BUMP,    // plain accesses after a release count as before it
    NO_ADJACENCY,     // an rmw may read a store that another rmw has read
    NO_SC_FLOOR,      // seq_cst accesses do not see each other's order
    NO_SC_FENCE,      // seq_cst fences do not see each other's views
    NO_ACQ_FENCE,     // an acquire fence does nothing
    NO_REL_FENCE,     // a release fence does nothing
    NO_SEQUENCE,      // an rmw does not continue the release sequence that it reads from
    NO_STALE,         // loads always read the newest store
    NO_STALE_CAS,     // a failing cas reads only the newest store
    NO_FAIL_ORDER,    // a failing cas has the order of success
    NO_READ_VIEW,     // a load does not raise its thread's floor
    NO_RACE_CHECK,    // plain writes are not compared with earlier reads
    NO_LOAD_RACE,     // search: a store after a load is not tried before it
    NO_SLEEP_WAKE,    // search: a sleeping thread is never woken
    NO_BLOCK_START,   // search, BOUNDED: no switch is tried where a block of steps began
    N_MUTANTS
};
#define MUTANT(name_) (VMC_MUTANT == (name_))

typedef enum op_kind {
    OP_START,
    OP_LOAD,
    OP_STORE,
    OP_RMW,
    OP_CAS,
    OP_FENCE,
    OP_JOIN,
    OP_SPAWN,
    OP_YIELD,
    OP_FUTEX_WAIT,
    OP_FUTEX_WAKE,
    OP_SLEEP, // asleep in a futex or epoll_wait
    OP_CLOCK,
    OP_KERNEL,
    OP_BARRIER // of all threads
} op_kind;

typedef struct op {      // the next operation of a thread
    uint8_t kind, order; // order: __ATOMIC_...
    uint8_t is_timed;    // SLEEP: may end by itself
    uint8_t is_kernel;   // SLEEP: in epoll_wait, not in a futex
    uint8_t is_post;     // KERNEL: a write to an eventfd; two of them commute
    int arg;             // JOIN: thread
    const void *addr;    // its object; KERNEL: an epoll, NULL: all of them
} op;

// The knowledge of a thread, a store or a fence.
typedef struct view {
    uint16_t clock[THREADS];   // happens-before: the plain accesses of each thread that precede
    uint16_t n_locs;           // entries of `newest` in use; those beyond are 0
    uint16_t newest[MAX_LOCS]; // per location: older stores than this one may not be read any more
} view;

typedef struct store {
    uint64_t value;
    uint16_t loc, pos; // pos: place in modification order
    uint16_t event;    // of its thread: with `tid` the identity of the store in any order
    uint8_t tid;
    uint8_t has_successor; // an rmw read it: nothing may come between the two
    uint8_t is_initial;    // the value in memory before the first atomic access
    view message;          // the view of a thread that acquires it
} store;

typedef struct location {
    uintptr_t addr;
    uint8_t size, is_dead; // dead: overwritten by plain stores, or freed
    uint16_t n;
    uint16_t order[STORES_PER_LOC];           // modification order
    uint16_t read[THREADS], written[THREADS]; // time of each thread's last atomic access
} location;

typedef enum thread_state { NOT_STARTED, ALIVE, ENDED } thread_state;
typedef enum sleep_state { AWAKE, ASLEEP, WOKEN } sleep_state;

typedef struct thread {
    uint8_t state, sleep, has_yielded;
    void *fiber;
    void (*fn)(void *);
    void *arg;
    op next; // runs when the thread is scheduled
    view now, acquirable,
        released; // known; known after an acquire fence; at the last release fence
    uint16_t n_events, n_steps, last_step; // last_step: index + 1
    uint16_t covered;      // search: the current load need not read stores older than this
    uint64_t history;      // hash of its operations and of the values read
    int64_t deadline;      // while asleep
    uint16_t woken_by;     // step, index + 1
    const void *asleep_on; // a futex word; NULL: in `epoll`
    int epoll;
    void *tls;
    int saved_errno;
    uint16_t last_read[MAX_LOCS];
    uint8_t n_repeats[MAX_LOCS];
    uint16_t depth; // calls, for reports
    const void *call[CALL_DEPTH];
} thread;

typedef struct step {    // one move of one thread: its operation and all plain code up to its next
    uint8_t tid, before; // the mover; the mover before
    uint8_t runnable;    // sets of threads
    uint8_t backtrack, done, asleep;
    uint16_t n_preemptions; // up to here, without
    uint8_t n_contests;     // those that were free
    uint16_t n_stores;      // that existed here
    uint16_t covered[THREADS];
    op ops[THREADS];           // the next operations of all threads
    uint8_t has_written;       // the result of the mover's operation
    uint16_t read_from, wrote; // stores; 0: none
    uint16_t woken_by;         // step, index + 1, that ended the sleep in a futex which ends here
    uint16_t nth, previous;    // number among the thread's steps; index + 1 of the one before
    uint16_t past[THREADS];    // the number of steps of each thread that must come before this one
} step;

typedef enum verdict { RUNNING, COMPLETE, PRUNED, DISMISSED, FAILED } verdict;

typedef struct machine { // one execution
    int is_running;      // inside a scenario: hooks check; outside they only act
    int current;         // thread
    int n_threads;
    thread threads[THREADS];
    view sc;              // the agreed view of seq_cst operations
    int n_locs, n_stores; // store 0 is none
    location locs[MAX_LOCS];
    store stores[MAX_STORES];
    uint64_t retired; // hash of dead locations
    int n_spurious, n_stale, has_registered;
    int64_t now_ns;
    uint32_t execution; // number, stamps shadow cells
    step *step;         // the current one
    verdict verdict;
    const void *pc; // of the current access
} machine;
extern machine vm;
extern const vmc_scenario *scenario;

// memory.c
void memory_reset(void);
void view_join(view *to, const view *from);
void view_copy(view *to, const view *from);
uint64_t memory_load(uintptr_t addr, int size, int order);
void memory_store(uintptr_t addr, int size, uint64_t value, int order);
typedef uint64_t rmw_fn(uint64_t old, uint64_t operand);
uint64_t memory_rmw(uintptr_t addr, int size, rmw_fn *fn, uint64_t operand, int order);
int memory_cas(uintptr_t addr, int size, uint64_t *expected, uint64_t desired, int is_weak,
               int success, int failure);
void memory_fence(int order);
void sc_fence(void);                 // the effect alone, for the kernel's fence
void barrier_of_all(void);           // the same for every thread
uint64_t futex_read(uintptr_t addr); // as a relaxed load without a step of its own
void epoch_bump(thread *t);
void note_event(uint64_t what); // into the history of the running thread
void location_retire(int loc);
uint64_t memory_hash(void);
static inline thread *self(void) { return &vm.threads[vm.current]; }
static inline uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

// shadow.c
void shadow_init(void);
void shadow_reset(void);
void plain_access(uintptr_t addr, size_t size, int is_write);
int shadow_location(uintptr_t addr, int size,
                    int is_write); // index of the location, or -1: none yet
void shadow_link(uintptr_t addr, int size, int loc);
void check_leaks(void);
char *stack_of(int tid);
enum { STACK_SIZE = 1 << 17 };
int describe_address(char *text, size_t size, uintptr_t addr);

// search.c
void search_start(uint64_t seed);
void search_reset(void);
unsigned choose(unsigned n); // 0 .. n-1
void schedule(op next);      // the next operation of the running thread
void thread_ended(void);
void schedule_first(void); // runs an execution, to its end
void search_again(void);   // the next execution is the same as the last
void finish_step(void);
int search_next(void);                  // 0: all have been explored
int search_replay(const char *choices); // 0: not a replay string
void search_print_path(FILE *out);
_Noreturn void end_execution(verdict v);
int op_is_sc(const op *o);
extern int search_is_naive; // all interleavings, to compare the reduction with

// fiber.c
void fiber_prepare(int tid, void (*entry)(void));
void fiber_run_execution(void);      // from the runner into thread 0, until fiber_leave
void fiber_switch(int from, int to); // from: -1 if it has ended
_Noreturn void fiber_leave(void);    // back to the runner
int fiber_is_below(uintptr_t addr);  // in a frame that has returned

// world.c
void world_reset(void);
int world_is_runnable(const thread *t);
int environment_is_runnable(int others_are);
void environment_step(int is_early); // early: a thread could have moved
extern int world_hit_timer_bound;    // an expiry was put off: class_text reports it
void kernel_reset(void);
const void *kernel_object(int fd); // a call on fd conflicts over this; NULL: with all others
int thread_start(void (*fn)(void *), void *arg);
void fall_asleep(const void *on, int64_t deadline); // returns when woken, or timed out
void wake(thread *t);

// report.c
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int is_tracing;
extern char failure_text[400];
void report_failure(void);
void report_install_signals(void);
const char *order_name(int order);
const char *op_name(int kind);
#define FROM_SCENARIO() (vm.pc = __builtin_return_address(0)) // in functions that scenarios call
#define TRACE(...) (is_tracing ? trace(__VA_ARGS__) : (void)0)

#endif // VMC_INTERNAL_H
