// SPDX-License-Identifier: MIT OR 0BSD
// A machine of up to 64 processors with caches, for benchmark programs: how many cache lines move
// per operation, which, and how many atomic operations meet a line that another processor holds.
//
// A program of rows is compiled with -fsanitize=thread, so that each access to memory calls a
// function (tests/model/tsan.c), and linked with this in place of the sanitizer. Each thread is a
// processor of its own: a fiber, of which one runs at a time, always the one whose clock is behind
// all others, for 1 to `slice` accesses. Clocks go on by what accesses and calls take (the costs
// below), so that processors run side by side as they would; the clock that volt.h reads is theirs.
//
// A line has holders. Who reads it becomes one more, who writes it or does an atomic operation
// becomes the only one:
//   transfer      who does not hold the line gets it from one who does
//   invalidation  a holder loses it to a writer
//   shared rmw    an atomic read-modify-write of a line that somebody else holds just then
// Nothing is ever evicted, the first access to a line costs nothing, and a line that one processor
// alone holds may be clean or dirty: MESI without the traffic to memory. Accesses of the C library
// and of the kernel are not seen, and memory is sequentially consistent.
#ifndef COHERENCE_MACHINE_H
#define COHERENCE_MACHINE_H

#include "seam.h"

// Costs in ns: of an atomic access, beyond that of a hit; of a line from another cache; of reading
// the clock; of a system call; from a wake-up until the sleeper runs. HITS_PER_NS stands for the
// overlap of accesses on real processors: with one worker S1, S6, S8 take as long here, +-10 %.
enum {
    HITS_PER_NS = 8,
    COST_RMW = 5,
    COST_TRANSFER = 60,
    COST_CLOCK = 20,
    COST_CALL = 300,
    COST_WAKE = 5000
};
enum { PROCESSORS = 64 };
#define NEVER INT64_MAX

// ---- caches and processors (machine.c)

enum { READ, WRITE, RMW };
enum { LINE_SHIFT = 6 };
void access_word(uintptr_t addr, int kind); // the running processor is about to
void access_fence(void);

// Sleeps on an object until somebody wakes it, or until then. 0: the time is over.
int sleep_on(const void *object, int64_t deadline);
// Wakes up to n of those who sleep on it, in the order of their numbers; gives how many.
int wake_on(const void *object, int n);
int64_t clock_of_this(void);
void spend(int64_t ns);

// ---- kernel (kernel.c)

int64_t kernel_alarm(void); // when the next timer expires; NEVER
void kernel_ring(void);     // it does

#endif // COHERENCE_MACHINE_H
