// SPDX-License-Identifier: MIT OR 0BSD
// Included before every other line of a program by `make odds` (-include): every system call, futex
// and assertion of volt.h may first yield the processor, sleep a moment, or for long. Assertions
// stand between the steps of every protocol, so threads stall at unusual points. Each thread draws
// from a stream of its own, started by the seed of the test.
#ifndef VOLT_TEST_ODDS_H
#define VOLT_TEST_ODDS_H

#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#define VOLT_SYS(name_, ...) (odds_point(), name_(__VA_ARGS__))
#define VOLT_ASSERT(c_) (odds_point(), VOLT__EXPECT(c_, "assertion failed: " #c_))

static inline uint64_t test_random(void); // of test.h

static inline void odds_sleep(long ns) {
    struct timespec t = { 0, ns };
    int error = errno; // an assertion may stand between a call and the check of its error
    nanosleep(&t, NULL);
    errno = error;
}
static inline void odds_point(void) {
    static __thread uint64_t x;
    if (x == 0) x = test_random() | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    if ((x & 0xff) == 0) sched_yield();
    if ((x & 0xfff) == 1) odds_sleep((long)(x >> 44) % 50000);
    // long enough for a scan of the watchdog
    if ((x & 0x3ffff) == 2) odds_sleep((long)(x >> 40) % 8000000);
}

#endif // VOLT_TEST_ODDS_H
