// SPDX-License-Identifier: MIT OR 0BSD
// The log of a runtime in which no item is expected: each one fails the test. Include it behind
// volt.h and tests/lib/test.h.
#ifndef TEST_LOG_H
#define TEST_LOG_H

static void on_log(void *user, int item, const char *text) {
    (void)user;
    test_fail(__FILE__, __LINE__, "log item %d: %s", item, text);
}
#endif
