// SPDX-License-Identifier: MIT OR 0BSD
// Included before every other line of a program by `make coverage` (-include): the counts are
// written where a process ends without returning from main(), and always_inline is void, as each
// copy of such a function would count as branches of its own.
#ifndef VOLT_TEST_COVERAGE_H
#define VOLT_TEST_COVERAGE_H

#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#define always_inline unused

#include <signal.h>

void __gcov_dump(void);

#define TEST_BEFORE_EXIT() __gcov_dump()

static void coverage_on_abort(int sig) {
    (void)sig;
    __gcov_dump(); // then abort() ends the process by the default action
}
__attribute__((constructor)) static void coverage_catch_abort(void) {
    signal(SIGABRT, coverage_on_abort);
}

#endif // VOLT_TEST_COVERAGE_H
