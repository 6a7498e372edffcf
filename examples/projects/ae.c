// SPDX-License-Identifier: MIT OR 0BSD
// An event loop with the interface of ae; see ae.h.
#include "ae.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#ifdef AE_POLLSET
#  include "ae_pollset.h"
#elif defined(AE_GUEST)
#  include "ae_guest.h"
#else
#  include "ae_epoll.h"
#endif

static int64_t aeNow(void) { // ns
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---- loops

aeEventLoop *aeCreateEventLoop(int setsize) {
    aeEventLoop *loop = (aeEventLoop *)calloc(1, sizeof *loop);
    if (!loop) return NULL;
    loop->setsize = setsize;
    loop->maxfd = -1;
    loop->events = (aeFileEvent *)calloc((size_t)setsize, sizeof *loop->events);
    loop->fired = (aeFiredEvent *)calloc((size_t)setsize, sizeof *loop->fired);
    if (loop->events && loop->fired && aeApiCreate(loop) == 0) return loop;
    free(loop->events);
    free(loop->fired);
    free(loop);
    return NULL;
}
static void aeTimeFree(aeEventLoop *loop, aeTimeEvent *t) {
    if (t->finalizer) t->finalizer(loop, t->data);
    free(t);
}
void aeDeleteEventLoop(aeEventLoop *loop) {
    aeApiFree(loop);
    for (aeTimeEvent *t; (t = loop->due ? loop->due : loop->timers);) {
        *(loop->due ? &loop->due : &loop->timers) = t->next;
        aeTimeFree(loop, t);
    }
    free(loop->events);
    free(loop->fired);
    free(loop);
}
int aeGetSetSize(const aeEventLoop *loop) { return loop->setsize; }
int aeResizeSetSize(aeEventLoop *loop, int setsize) {
    if (loop->maxfd >= setsize) return errno = ERANGE, AE_ERR;
    void *events = realloc(loop->events, (size_t)setsize * sizeof *loop->events);
    if (events) loop->events = (aeFileEvent *)events;
    void *fired = realloc(loop->fired, (size_t)setsize * sizeof *loop->fired);
    if (fired) loop->fired = (aeFiredEvent *)fired;
    if (!events || !fired || aeApiResize(loop, setsize) < 0) {
        if (setsize < loop->setsize) loop->setsize = setsize; // one of the tables may be shorter
        return AE_ERR;
    }
    for (int fd = loop->setsize; fd < setsize; fd++) loop->events[fd].mask = AE_NONE;
    loop->setsize = setsize;
    return AE_OK;
}
void aeStop(aeEventLoop *loop) { loop->stop = 1; }
const char *aeGetApiName(void) { return aeApiName(); }
void aeSetBeforeSleepProc(aeEventLoop *loop, aeBeforeSleepProc *proc) { loop->before_sleep = proc; }
void aeSetAfterSleepProc(aeEventLoop *loop, aeAfterSleepProc *proc) { loop->after_sleep = proc; }

// ---- descriptors

int aeCreateFileEvent(aeEventLoop *loop, int fd, int mask, aeFileProc *proc, void *data) {
    if (fd < 0 || fd >= loop->setsize) return errno = fd < 0 ? EBADF : ERANGE, AE_ERR;
    aeFileEvent *e = &loop->events[fd];
    if (aeApiAddEvent(loop, fd, mask) < 0) return AE_ERR;
    e->mask |= mask;
    e->data = data;
    if (mask & AE_READABLE) e->on_readable = proc;
    if (mask & AE_WRITABLE) e->on_writable = proc;
    if (fd > loop->maxfd) loop->maxfd = fd;
    return AE_OK;
}
void aeDeleteFileEvent(aeEventLoop *loop, int fd, int mask) {
    if (fd < 0 || fd >= loop->setsize || loop->events[fd].mask == AE_NONE) return;
    loop->events[fd].mask &= ~(mask & AE_WRITABLE ? mask | AE_BARRIER : mask);
    aeApiDelEvent(loop, fd, mask);
    while (loop->maxfd >= 0 && loop->events[loop->maxfd].mask == AE_NONE) loop->maxfd--;
}
int aeGetFileEvents(aeEventLoop *loop, int fd) {
    return fd < 0 || fd >= loop->setsize ? AE_NONE : loop->events[fd].mask;
}
// Calls back for the events that have fired and are still wanted. A callback may change everything,
// also the size of the tables. One that is registered for both is called once.
static void aeFileCall(aeEventLoop *loop, aeFiredEvent fired) {
    aeFileProc *called = NULL;
    int is_barrier = fired.fd < loop->setsize && loop->events[fired.fd].mask & AE_BARRIER;
    for (int i = 0; i < 2 && fired.fd < loop->setsize; i++) {
        int which = (i == 0) == !is_barrier ? AE_READABLE : AE_WRITABLE;
        const aeFileEvent *e = &loop->events[fired.fd];
        aeFileProc *proc = which == AE_READABLE ? e->on_readable : e->on_writable;
        if (!(fired.mask & e->mask & which) || proc == called) continue;
        called = proc;
        proc(loop, fired.fd, e->data, fired.mask);
    }
}

// ---- times

static void aeTimeInsert(aeEventLoop *loop, aeTimeEvent *t, long long ms) {
    aeTimeEvent **at = &loop->timers;
    t->when = aeNow() + ms * 1000000;
    while (*at && (*at)->when <= t->when) at = &(*at)->next;
    t->next = *at;
    *at = t;
}
long long aeCreateTimeEvent(aeEventLoop *loop, long long ms, aeTimeProc *proc, void *data,
                            aeEventFinalizerProc *finalizer_or_null) {
    aeTimeEvent *t = (aeTimeEvent *)calloc(1, sizeof *t);
    if (!t) return AE_ERR;
    t->id = loop->next_id++;
    t->proc = proc;
    t->data = data;
    t->finalizer = finalizer_or_null;
    aeTimeInsert(loop, t, ms);
    return t->id;
}
// Takes an event out of a list. NULL: it is not there.
static aeTimeEvent *aeTimeTake(aeTimeEvent **at, long long id) {
    while (*at && (*at)->id != id) at = &(*at)->next;
    aeTimeEvent *t = *at;
    if (t) *at = t->next;
    return t;
}
int aeDeleteTimeEvent(aeEventLoop *loop, long long id) {
    for (aeTimeEvent *t = loop->running; t; t = t->next)
        if (t->id == id) return t->id = AE_NOMORE, AE_OK; // freed when its callback has returned
    aeTimeEvent *t = aeTimeTake(&loop->timers, id);
    if (!t) t = aeTimeTake(&loop->due, id);
    if (!t) return AE_ERR;
    aeTimeFree(loop, t);
    return AE_OK;
}
// Calls back for the times that have come. Those that the callbacks set have the next round.
static int aeTimeCall(aeEventLoop *loop) {
    aeTimeEvent **end = &loop->due, *t;
    int64_t now = aeNow();
    int n = 0;
    while (*end) end = &(*end)->next; // below a callback that calls aeProcessEvents, some are left
    *end = loop->timers;
    while (*end && (*end)->when <= now) end = &(*end)->next;
    loop->timers = *end;
    *end = NULL;
    for (; (t = loop->due); n++) {
        loop->due = t->next;
        t->next = loop->running;
        loop->running = t;
        long long ms = t->proc(loop, t->id, t->data);
        loop->running = t->next;
        if (ms < 0 || t->id == AE_NOMORE) aeTimeFree(loop, t);
        else aeTimeInsert(loop, t, ms);
    }
    return n;
}

// ---- rounds, in two parts: before the wait and behind it

// Returns the ns that the wait may take: 0, or -1 for no limit.
static int64_t aeRoundBegin(aeEventLoop *loop, int flags) {
    if (loop->before_sleep && flags & AE_CALL_BEFORE_SLEEP) loop->before_sleep(loop);
    if (flags & AE_DONT_WAIT) return 0;
    if (!(flags & AE_TIME_EVENTS) || !loop->timers) return -1;
    int64_t left = loop->timers->when - aeNow();
    return left > 0 ? left : 0;
}
static int aeRoundEnd(aeEventLoop *loop, int flags, int n_fired) {
    int n = flags & AE_FILE_EVENTS ? n_fired : 0;
    if (loop->after_sleep && flags & AE_CALL_AFTER_SLEEP) loop->after_sleep(loop, n);
    // A callback that calls aeProcessEvents has served the others, or the next round does.
    unsigned round = ++loop->round;
    for (int i = 0; i < n && i < loop->setsize && loop->round == round; i++)
        aeFileCall(loop, loop->fired[i]);
    return flags & AE_TIME_EVENTS ? n + aeTimeCall(loop) : n;
}
int aeProcessEvents(aeEventLoop *loop, int flags) {
    if (!(flags & AE_ALL_EVENTS)) return 0;
    int64_t ns = aeRoundBegin(loop, flags), us = (ns + 999) / 1000;
    struct timeval tv = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
    return aeRoundEnd(loop, flags, aeApiPoll(loop, ns < 0 ? NULL : &tv));
}
enum { AE_MAIN = AE_ALL_EVENTS | AE_CALL_BEFORE_SLEEP | AE_CALL_AFTER_SLEEP };
void aeMain(aeEventLoop *loop) {
    loop->stop = 0;
    while (!loop->stop) (void)aeProcessEvents(loop, AE_MAIN);
}

#ifdef AE_POLLSET
static volt_time aeDeadline(int64_t ns) { return ns < 0 ? VOLT_NEVER : volt_now() + ns; }
volt_poll aeMainTask(volt_cx *cx, void *task) {
    aeTask *t = (aeTask *)task;
    VOLT_BEGIN(cx, t);
    for (t->rc = t->loop->stop = 0; !t->loop->stop; (void)aeRoundEnd(t->loop, AE_MAIN, t->rc)) {
        t->deadline = aeDeadline(aeRoundBegin(t->loop, AE_MAIN));
        VOLT_AWAIT(t->rc, volt_before(cx, &t->limit, t->deadline, aeApiWait(cx, t->loop)));
        if (t->rc < 0 && t->rc != -ETIMEDOUT) break;
        t->rc = aeApiFired(t->loop, t->rc);
    }
    aeApiClose(cx, (aeApiState *)t->loop->apidata);
    VOLT_END(t->rc < 0 ? t->rc : 0);
}
#endif
#ifdef AE_GUEST
volt_rt *aeGetVolt(aeEventLoop *loop) { return ((aeGuest *)loop->apidata)->rt; }
#endif
