// SPDX-License-Identifier: MIT OR 0BSD
// For VOLT_START_CHILD: starts a child process by fork, as vfork does in some emulators. The child
// has memory of its own, so the error of its exec comes through the pipe. Include it before volt.h.
#ifndef VOLT_TEST_START_BY_FORK_H
#define VOLT_TEST_START_BY_FORK_H

#define START_BY_FORK(child_)                                                                      \
    __extension__({                                                                                \
        (void)volt__sys_start_child;                                                               \
        int pid_ = fork();                                                                         \
        if (pid_ == 0) volt__child_run(child_);                                                    \
        pid_ < 0 ? -errno : pid_;                                                                  \
    })

#endif
