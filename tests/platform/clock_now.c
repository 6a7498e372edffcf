// SPDX-License-Identifier: MIT OR 0BSD
// Prints CLOCK_MONOTONIC in milliseconds, for tests/platform/clocks.sh: no tool does.
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

int main(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    printf("%" PRId64 "\n", (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
    return 0;
}
