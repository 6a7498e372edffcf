// SPDX-License-Identifier: MIT OR 0BSD
// Refuses to add one more descriptor to an epoll instance, when a test wants it, as the kernel does
// at the limit of fs.epoll.max_user_watches. Include it before volt.h.
#ifndef TEST_FULL_H
#define TEST_FULL_H

#include <errno.h>
#include <sys/epoll.h>

static unsigned full_at; // the call that fails, counted from 1; 0: none

static inline int full_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event) {
    if (op == EPOLL_CTL_ADD && __atomic_load_n(&full_at, __ATOMIC_RELAXED) > 0 &&
        __atomic_sub_fetch(&full_at, 1, __ATOMIC_RELAXED) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return epoll_ctl(epfd, op, fd, event);
}
#define epoll_ctl full_epoll_ctl
#endif
