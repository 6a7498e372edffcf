// SPDX-License-Identifier: MIT OR 0BSD
// Runs a part of a test in a forked child.
#ifndef VOLT_TEST_IN_CHILD_H
#define VOLT_TEST_IN_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

// Runs `fn` in a child, which must end by itself, without a failure.
static inline void in_child(void (*fn)(void *), void *arg) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fn(arg);
        TEST_BEFORE_EXIT();
        _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    CHECK_EQ(status, 0);
}

#endif
