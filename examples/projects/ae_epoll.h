// SPDX-License-Identifier: MIT OR 0BSD
// The backend of ae.c that the other two were made from: epoll(7).
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct {
    int epfd;
    struct epoll_event *ready;
} aeApiState;

static int aeApiCreate(aeEventLoop *loop) {
    aeApiState *s = (aeApiState *)calloc(1, sizeof *s);
    if (!s) return -1;
    s->ready = (struct epoll_event *)calloc((size_t)loop->setsize, sizeof *s->ready);
    s->epfd = s->ready ? epoll_create1(EPOLL_CLOEXEC) : -1;
    if (s->epfd >= 0) return loop->apidata = s, 0;
    free(s->ready);
    free(s);
    return -1;
}
static int aeApiResize(aeEventLoop *loop, int setsize) {
    aeApiState *s = (aeApiState *)loop->apidata;
    void *ready = realloc(s->ready, (size_t)setsize * sizeof *s->ready);
    if (!ready) return -1;
    s->ready = (struct epoll_event *)ready;
    return 0;
}
static void aeApiFree(aeEventLoop *loop) {
    aeApiState *s = (aeApiState *)loop->apidata;
    close(s->epfd);
    free(s->ready);
    free(s);
}
static int aeApiSet(aeEventLoop *loop, int operation, int fd, int mask) {
    struct epoll_event e = { .data = { .fd = fd } };
    if (mask & AE_READABLE) e.events |= EPOLLIN;
    if (mask & AE_WRITABLE) e.events |= EPOLLOUT;
    return epoll_ctl(((aeApiState *)loop->apidata)->epfd, operation, fd, &e);
}
// The mask of the loop is changed after the call.
static int aeApiAddEvent(aeEventLoop *loop, int fd, int mask) {
    int before = loop->events[fd].mask;
    return aeApiSet(loop, before == AE_NONE ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, before | mask);
}
// The mask of the loop has been changed.
static void aeApiDelEvent(aeEventLoop *loop, int fd, int mask) {
    int left = loop->events[fd].mask;
    (void)mask;
    aeApiSet(loop, left == AE_NONE ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, left);
}
// tvp NULL: no limit. Returns the number of fired events.
static int aeApiPoll(aeEventLoop *loop, struct timeval *tvp) {
    aeApiState *s = (aeApiState *)loop->apidata;
    int64_t ms = tvp ? (int64_t)tvp->tv_sec * 1000 + (tvp->tv_usec + 999) / 1000 : -1;
    int n = epoll_wait(s->epfd, s->ready, loop->setsize, ms > 1000000000 ? 1000000000 : (int)ms);
    for (int i = 0; i < n; i++) {
        uint32_t e = s->ready[i].events;
        int is_over = (e & (EPOLLERR | EPOLLHUP)) != 0; // both callbacks shall see that
        loop->fired[i].fd = s->ready[i].data.fd;
        loop->fired[i].mask = (e & EPOLLIN || is_over ? AE_READABLE : 0) |
                              (e & EPOLLOUT || is_over ? AE_WRITABLE : 0);
    }
    if (n < 0 && errno != EINTR) abort();
    return n < 0 ? 0 : n;
}
static inline const char *aeApiName(void) { return "epoll"; }
