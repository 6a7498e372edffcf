// SPDX-License-Identifier: MIT OR 0BSD
// Included before every other line of a program by `make msan` (-include): reports to the memory
// sanitizer the data that the kernel writes in calls that it does not know, as they use syscall().
#ifndef VOLT_TEST_MSAN_H
#define VOLT_TEST_MSAN_H

#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include <sanitizer/msan_interface.h>
#include <stdint.h>
#include <sys/random.h>

#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_)                                                    \
    msan_told(volt__sys_epoll_wait(ep_, ev_, n_, timeout_), ev_, sizeof *(ev_))
#define VOLT_RANDOM() msan_random()

static inline int msan_told(int n, void *events, size_t size) {
    if (n > 0) __msan_unpoison(events, (size_t)n * size);
    return n;
}
static inline uint64_t msan_random(void) {
    uint64_t r = 0;
    return getrandom(&r, sizeof r, 0) == sizeof r ? r : 1;
}

#endif // VOLT_TEST_MSAN_H
