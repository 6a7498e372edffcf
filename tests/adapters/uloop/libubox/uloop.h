// SPDX-License-Identifier: MIT OR 0BSD
// A stand-in for uloop of libubox, which is no package of most distributions: the part of its
// interface that volt_uloop.h, its program and its test use, over epoll(7). tests/adapters/uloop.sh
// runs both against the real one, too, if it is told where that is.
//
// As in the original, timeouts that are due come first in each round, then the callback of one
// descriptor. Rounds may be nested. A descriptor is watched level-triggered.
#ifndef TEST_LIBUBOX_ULOOP_H
#define TEST_LIBUBOX_ULOOP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ULOOP_READ (1 << 0)
#define ULOOP_WRITE (1 << 1)
#define ULOOP_BLOCKING (1 << 3)

struct uloop_fd {
    void (*cb)(struct uloop_fd *u, unsigned int events);
    int fd;
    bool eof, error, registered;
    uint8_t flags;
};
struct uloop_timeout {
    struct uloop_timeout *next;
    bool pending;
    void (*cb)(struct uloop_timeout *t);
    int64_t at; // milliseconds
};

static bool uloop_cancelled;
static int uloop__epoll = -1;
static struct uloop_timeout *uloop__timeouts; // the earliest one first

static inline int64_t uloop__now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
static inline int uloop_init(void) {
    if (uloop__epoll < 0) uloop__epoll = epoll_create1(EPOLL_CLOEXEC);
    return uloop__epoll < 0 ? -1 : 0;
}
static inline void uloop_done(void) {
    close(uloop__epoll);
    uloop__epoll = -1;
    for (; uloop__timeouts; uloop__timeouts = uloop__timeouts->next)
        uloop__timeouts->pending = false;
}
static inline void uloop_end(void) { uloop_cancelled = true; }

static inline int uloop_fd_delete(struct uloop_fd *u) {
    if (!u->registered) return 0;
    u->registered = false;
    return epoll_ctl(uloop__epoll, EPOLL_CTL_DEL, u->fd, NULL);
}
static inline int uloop_fd_add(struct uloop_fd *u, unsigned int flags) {
    struct epoll_event e;
    e.events = (flags & ULOOP_READ ? (uint32_t)EPOLLIN : 0) |
               (flags & ULOOP_WRITE ? (uint32_t)EPOLLOUT : 0);
    e.data.ptr = u;
    int rc = epoll_ctl(uloop__epoll, u->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, u->fd, &e);
    if (rc == 0) u->registered = true, u->flags = (uint8_t)flags;
    return rc;
}

static inline int uloop_timeout_cancel(struct uloop_timeout *t) {
    struct uloop_timeout **at = &uloop__timeouts;
    if (!t->pending) return -1;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    t->pending = false;
    return 0;
}
static inline int uloop_timeout_set(struct uloop_timeout *t, int ms) {
    struct uloop_timeout **at = &uloop__timeouts;
    (void)uloop_timeout_cancel(t);
    t->at = uloop__now() + ms;
    while (*at && (*at)->at <= t->at) at = &(*at)->next;
    t->next = *at;
    *at = t;
    t->pending = true;
    return 0;
}

static inline int uloop__wait(int ms) { // for one descriptor, whose callback is called
    struct epoll_event e;
    int n = epoll_wait(uloop__epoll, &e, 1, ms);
    if (n <= 0) return n;
    struct uloop_fd *u = (struct uloop_fd *)e.data.ptr;
    u->cb(u, (e.events & EPOLLIN ? ULOOP_READ : 0) | (e.events & EPOLLOUT ? ULOOP_WRITE : 0));
    return 1;
}
static inline int uloop_run_timeout(int timeout) {
    uloop_cancelled = false;
    do {
        int64_t now = uloop__now();
        while (uloop__timeouts && uloop__timeouts->at <= now) {
            struct uloop_timeout *t = uloop__timeouts;
            (void)uloop_timeout_cancel(t);
            t->cb(t);
        }
        if (uloop_cancelled) break;
        int64_t ms = uloop__timeouts ? uloop__timeouts->at - now : -1;
        if (ms > INT_MAX) ms = INT_MAX;
        if (timeout >= 0 && (ms < 0 || timeout < ms)) ms = timeout;
        (void)uloop__wait((int)ms);
    } while (!uloop_cancelled && timeout < 0);
    return 0;
}
static inline int uloop_run(void) { return uloop_run_timeout(-1); }
#endif
