// SPDX-License-Identifier: MIT OR 0BSD
// The backend of ae.c over a poll set of volt. A plain thread waits by volt_pollset_wait_sync, and
// needs no runtime for it; a task awaits volt_pollset_wait, see aeMainTask.
//
// A round has at most 64 descriptors; the others have the next one. A signal does not end a wait:
// give the loop a signalfd instead.
#include "volt.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>

enum { AE_ROUND = 64 };
typedef struct {
    volt_pollset set;
    int is_open;
    volt_pollev ready[AE_ROUND];
} aeApiState;

static int aeApiCreate(aeEventLoop *loop) {
    aeApiState *s = (aeApiState *)calloc(1, sizeof *s);
    int rc = s ? volt_pollset_open(&s->set) : -ENOMEM;
    if (rc == 0) return s->is_open = 1, loop->apidata = s, 0;
    free(s);
    errno = -rc;
    return -1;
}
static int aeApiResize(aeEventLoop *loop, int setsize) { return (void)loop, (void)setsize, 0; }
static void aeApiClose(volt_cx *cx, aeApiState *s) {
    volt_pollset_close(cx, &s->set);
    s->is_open = 0;
}
typedef struct {
    volt_frame frame;
    aeApiState *state;
} aeCloser;
static volt_poll aeCloser_run(volt_cx *cx, void *arg) {
    aeCloser *c = (aeCloser *)arg;
    VOLT_BEGIN(cx, c);
    aeApiClose(cx, c->state);
    VOLT_END(0);
}
// A poll set is closed by a task.
static void aeApiFree(aeEventLoop *loop) {
    const volt_config one = { .workers = 1 };
    aeCloser c = { .state = (aeApiState *)loop->apidata };
    if (c.state->is_open) (void)volt_run(&one, aeCloser_run, &c);
    free(loop->apidata);
}
static int aeApiSet(aeEventLoop *loop, int fd, int mask) {
    int rc = volt_pollset_set(&((aeApiState *)loop->apidata)->set, fd,
                              (mask & AE_READABLE ? (uint32_t)VOLT_IN : 0) |
                                  (mask & AE_WRITABLE ? (uint32_t)VOLT_OUT : 0));
    if (rc < 0) errno = -rc;
    return rc < 0 ? -1 : 0;
}
static int aeApiAddEvent(aeEventLoop *loop, int fd, int mask) {
    return aeApiSet(loop, fd, loop->events[fd].mask | mask);
}
static void aeApiDelEvent(aeEventLoop *loop, int fd, int mask) {
    (void)mask;
    aeApiSet(loop, fd, loop->events[fd].mask);
}
static size_t aeApiMost(const aeEventLoop *loop) { // as many as there is room for in `fired`
    return (size_t)(loop->setsize < AE_ROUND ? loop->setsize : (int)AE_ROUND);
}
static inline VOLT_POLL aeApiWait(volt_cx *cx, aeEventLoop *loop) {
    aeApiState *s = (aeApiState *)loop->apidata;
    return volt_pollset_wait(cx, &s->set, s->ready, aeApiMost(loop));
}
// Stores the events of a wait, whose result is n. Returns the number of fired events.
static int aeApiFired(aeEventLoop *loop, int n) {
    const volt_pollev *ready = ((aeApiState *)loop->apidata)->ready;
    for (int i = 0; i < n; i++) {
        uint32_t e = ready[i].events;
        int is_over = (e & (VOLT_ERR | VOLT_HUP)) != 0; // both callbacks shall see that
        loop->fired[i].fd = ready[i].fd;
        loop->fired[i].mask = (e & VOLT_IN || is_over ? AE_READABLE : 0) |
                              (e & VOLT_OUT || is_over ? AE_WRITABLE : 0);
    }
    return n < 0 ? 0 : n;
}
// On a worker the wait gives -EDEADLK, and there are no events.
static int aeApiPoll(aeEventLoop *loop, struct timeval *tvp) {
    aeApiState *s = (aeApiState *)loop->apidata;
    volt_time at_most = tvp ? VOLT_S(tvp->tv_sec) + VOLT_US(tvp->tv_usec) : VOLT_NEVER;
    return aeApiFired(loop, volt_pollset_wait_sync(&s->set, s->ready, aeApiMost(loop), at_most));
}
static inline const char *aeApiName(void) { return "volt_pollset"; }
