// SPDX-License-Identifier: MIT OR 0BSD
// Counts the system calls that volt.h makes, for the column `calls` of bench.h. Include it before
// volt.h, in the file with the implementation: it sits at the seam through which all of them go. A
// C library function that makes several calls counts as one: starting a thread, looking up a name.
// Work of the C library that the seam does not see is not counted: the clock, which it reads
// without the kernel, attributes of threads, and its allocator, which rows.h watches.
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

// No header here: volt.h must be the first to include one.
enum { CALLS_CELLS = 4096, CALLS_LINE = 128 };
typedef struct calls_cell {
    _Alignas(CALLS_LINE) unsigned long n; // written by one thread, the last one by all others
} calls_cell;
static calls_cell calls_cells[CALLS_CELLS];
static unsigned calls_used;
static _Thread_local calls_cell *calls_mine;

static __attribute__((noinline, cold)) void calls_register(void) {
    const unsigned i = __atomic_fetch_add(&calls_used, 1, __ATOMIC_RELAXED);
    calls_mine = &calls_cells[i < CALLS_CELLS ? i : CALLS_CELLS - 1];
}

// Not inline: inlining would enlarge volt.h's callers and change their layout.
static __attribute__((noinline)) void calls_add(void) {
    if (__builtin_expect(!calls_mine, 0)) calls_register();
    if (__builtin_expect(calls_mine == &calls_cells[CALLS_CELLS - 1], 0))
        __atomic_fetch_add(&calls_mine->n, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&calls_mine->n, calls_mine->n + 1, __ATOMIC_RELAXED);
}

static inline long calls_sum(void) {
    unsigned used = __atomic_load_n(&calls_used, __ATOMIC_RELAXED);
    unsigned long sum = 0;
    if (used > CALLS_CELLS) used = CALLS_CELLS;
    for (unsigned i = 0; i < used; i++) sum += __atomic_load_n(&calls_cells[i].n, __ATOMIC_RELAXED);
    return (long)sum;
}

// The second of two or more words: `(void)0` for these names, calls_add() for others.
#define CALLS_SECOND(a_, b_, ...) b_
#define CALLS_PICK(...) CALLS_SECOND(__VA_ARGS__, calls_add(), ~)
#define CALLS_NOT_clock_gettime ~, (void)0
#define CALLS_NOT_sysconf ~, (void)0
#define CALLS_NOT_pthread_attr_init ~, (void)0
#define CALLS_NOT_pthread_attr_setstacksize ~, (void)0
#define CALLS_NOT_pthread_attr_destroy ~, (void)0
#define CALLS_NOT_freeaddrinfo ~, (void)0

#define VOLT_SYS(name_, ...) (CALLS_PICK(CALLS_NOT_##name_), name_(__VA_ARGS__))
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) \
    (calls_add(), pthread_create(thread_, attr_, fn_, arg_))
#define VOLT_THREAD_JOIN(thread_) (calls_add(), pthread_join(thread_, (void *)0))
#define VOLT_FORK_WORD() volt__sys_fork_word()
#define VOLT_GETPID() (calls_add(), getpid())

#endif // BENCH_CALLS_H
