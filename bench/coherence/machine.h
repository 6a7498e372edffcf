// SPDX-License-Identifier: MIT OR 0BSD
// A machine of up to 80 processors with caches, for benchmark programs: the number of cache lines
// that move per operation, their names, and the number of atomic operations on a line that another
// processor holds.
// A program of rows is compiled with -fsanitize=thread, so that each access to memory calls a
// function (tests/model/tsan.c), and is linked with this machine in place of the sanitizer. Each
// thread is a processor of its own: a fiber. The fiber with the lowest clock runs, for 1 to `slice`
// accesses. Accesses and calls advance the clocks (the costs are below), so that processors run
// side by side as real ones do; volt.h reads these clocks.
//
// A line has holders. A read adds a holder; a write or an atomic operation leaves one holder:
//   transfer      a processor that does not hold the line gets it from a holder
//   invalidation  a holder loses the line to a writer
//   shared rmw    an atomic read-modify-write of a line that another processor holds
// Nothing is ever evicted, the first access to a line costs nothing, and a line with one holder may
// be clean or dirty: MESI without the traffic to memory. Accesses of the C library and of the
// kernel are not seen, and memory is sequentially consistent.
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
#define NEVER INT64_MAX

// ---- caches and processors (machine.c)

enum { READ, WRITE, RMW };
enum { LINE_SHIFT = 6 };
void access_word(uintptr_t addr, int kind); // called before an access of the running processor
void access_fence(void);

// Sleeps on an object until a wake-up or the deadline. 0: the deadline has passed.
int sleep_on(const void *object, int64_t deadline);
// Wakes up to n sleepers of an object, in the order of their numbers; returns their number.
int wake_on(const void *object, int n);
int64_t clock_of_this(void);
void spend(int64_t ns);

// ---- kernel (kernel.c)

int64_t kernel_alarm(void); // when the next timer expires; NEVER
void kernel_ring(void);     // it expires

#endif // COHERENCE_MACHINE_H
