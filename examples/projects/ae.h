// SPDX-License-Identifier: MIT OR 0BSD
// An event loop with the interface of ae, the loop of Redis and Valkey: callbacks for descriptors
// and for times. Its backend is chosen when ae.c is compiled:
//   none given      ae_epoll.h: epoll(7), without volt
//   -DAE_POLLSET    ae_pollset.h: a poll set of volt. aeMain runs in a plain thread, and aeMainTask
//                   is the same loop as a task
//   -DAE_GUEST      ae_guest.h: epoll(7), with a runtime of volt as its guest: tasks run between
//                   the callbacks, in the thread of the loop
// The backends use only what the original has, so that they fit into ae.c of Valkey, too.
//
// A loop, with its callbacks, is for one thread at a time, in the last form of aeMain for one task.
#ifndef EXAMPLE_AE_H
#define EXAMPLE_AE_H

#if defined(AE_POLLSET) || defined(AE_GUEST)
#  include "volt.h"
#endif
#include <stdint.h>

#define AE_OK 0
#define AE_ERR (-1) // and errno is set
// events of a descriptor
#define AE_NONE 0
#define AE_READABLE 1
#define AE_WRITABLE 2
#define AE_BARRIER 4 // with AE_WRITABLE: in a round, that callback comes before the one for reading
// flags of aeProcessEvents
#define AE_FILE_EVENTS 1
#define AE_TIME_EVENTS 2
#define AE_ALL_EVENTS (AE_FILE_EVENTS | AE_TIME_EVENTS)
#define AE_DONT_WAIT 4
#define AE_CALL_BEFORE_SLEEP 8
#define AE_CALL_AFTER_SLEEP 16
#define AE_NOMORE (-1) // the result of a callback for a time that does not come again

typedef struct aeEventLoop aeEventLoop;
typedef void aeFileProc(aeEventLoop *loop, int fd, void *data, int mask);
// Returns the ms until it is called again, or AE_NOMORE.
typedef long long aeTimeProc(aeEventLoop *loop, long long id, void *data);
typedef void aeEventFinalizerProc(aeEventLoop *loop, void *data);
typedef void aeBeforeSleepProc(aeEventLoop *loop);
typedef void aeAfterSleepProc(aeEventLoop *loop, int n_events);

typedef struct {
    int mask; // AE_NONE: no callback
    aeFileProc *on_readable, *on_writable;
    void *data;
} aeFileEvent;
typedef struct {
    int fd, mask;
} aeFiredEvent;
typedef struct aeTimeEvent {
    struct aeTimeEvent *next; // later, or as late and newer
    long long id;
    int64_t when; // ns
    aeTimeProc *proc;
    aeEventFinalizerProc *finalizer; // or NULL
    void *data;
} aeTimeEvent;
struct aeEventLoop {
    int setsize, maxfd; // descriptors below setsize; the highest with a callback, or -1
    int stop;
    unsigned round; // counts those that have begun to call back
    aeFileEvent *events; // by descriptor
    aeFiredEvent *fired; // set by the backend
    aeTimeEvent *timers, *due, *running; // in their order; taken for this round; being called
    long long next_id;
    void *apidata; // the backend's
    aeBeforeSleepProc *before_sleep;
    aeAfterSleepProc *after_sleep;
};

aeEventLoop *aeCreateEventLoop(int setsize); // NULL: errno is set
// Calls the finalizers. The descriptors stay open.
void aeDeleteEventLoop(aeEventLoop *loop);
void aeStop(aeEventLoop *loop); // aeMain returns when the callbacks of this round have returned
// Adds the events of the mask. AE_ERR: ERANGE if fd >= setsize, EBADF, EPERM for a file on a disk.
int aeCreateFileEvent(aeEventLoop *loop, int fd, int mask, aeFileProc *proc, void *data);
// Removes the events of the mask. To be called before the descriptor is closed.
void aeDeleteFileEvent(aeEventLoop *loop, int fd, int mask);
int aeGetFileEvents(aeEventLoop *loop, int fd);
long long aeCreateTimeEvent(aeEventLoop *loop, long long ms, aeTimeProc *proc, void *data,
                            aeEventFinalizerProc *finalizer_or_null); // its id, or AE_ERR
int aeDeleteTimeEvent(aeEventLoop *loop, long long id); // AE_ERR: there is none
// Makes one round: waits for events, unless AE_DONT_WAIT, and calls back. Returns the callbacks'
// events.
int aeProcessEvents(aeEventLoop *loop, int flags);
void aeMain(aeEventLoop *loop); // rounds, until aeStop
const char *aeGetApiName(void);
void aeSetBeforeSleepProc(aeEventLoop *loop, aeBeforeSleepProc *proc);
void aeSetAfterSleepProc(aeEventLoop *loop, aeAfterSleepProc *proc);
int aeGetSetSize(const aeEventLoop *loop);
int aeResizeSetSize(aeEventLoop *loop, int setsize); // AE_ERR: a descriptor in use is above

#ifdef AE_POLLSET
// aeMain as a task, whose callbacks may spawn tasks. At its end it closes the poll set; after that,
// only aeDeleteEventLoop may be called. In its callbacks aeProcessEvents has no file events, since
// a worker must not block.
//   returns: 0 after aeStop | -ECANCELED | the errors of volt_pollset_wait
typedef struct {
    volt_frame frame;
    volt_timer limit;
    aeEventLoop *loop;
    volt_time deadline;
    int rc;
} aeTask;
volt_poll aeMainTask(volt_cx *cx, void *task);
#endif
#ifdef AE_GUEST
volt_rt *aeGetVolt(aeEventLoop *loop); // ends with the loop, which cancels its tasks
#endif
#endif
