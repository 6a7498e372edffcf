// SPDX-License-Identifier: MIT OR 0BSD
// The backend of ae.c with a runtime of volt as its guest. It is ae_epoll.h with one descriptor
// more, that of the guest: when it is readable, aeApiPoll makes a step, in which tasks run, before
// the callbacks of the round. A step is bounded, so that tasks do not hold up the loop.
//
// Tasks may create and delete events of the loop, and callbacks may spawn tasks by VOLT_RT_SPAWN.
#include "volt.h"
#define aeApiCreate aeEpollCreate
#define aeApiFree aeEpollFree
#define aeApiPoll aeEpollPoll
#define aeApiName aeEpollName
#include "ae_epoll.h"
#undef aeApiCreate
#undef aeApiFree
#undef aeApiPoll
#undef aeApiName

#ifndef AE_GUEST_STARTED // a program that cannot change its calls starts its tasks here
#  define AE_GUEST_STARTED(rt_) ((void)0)
#endif
enum { AE_STEP_POLLS = 64, AE_DRAIN_S = 10 };

typedef struct {
    aeApiState epoll; // the first member: the functions of ae_epoll.h use it
    volt_rt *rt;
    int fd; // of the guest
} aeGuest;

static int aeApiCreate(aeEventLoop *loop) {
    static const volt_config config = { .workers = 1, .is_guest = 1, .guest_is_asked = 1 };
    aeGuest *g = (aeGuest *)calloc(1, sizeof *g);
    if (!g || aeEpollCreate(loop) < 0) return free(g), -1;
    g->epoll = *(aeApiState *)loop->apidata;
    free(loop->apidata);
    loop->apidata = g;
    int rc = volt_create(&config, &g->rt);
    g->fd = rc < 0 ? -1 : volt_rt_fd(g->rt);
    if (rc == 0 && aeApiSet(loop, EPOLL_CTL_ADD, g->fd, AE_READABLE) == 0) {
        AE_GUEST_STARTED(g->rt);
        return 0;
    }
    if (rc == 0) (void)volt_shutdown(g->rt, 0), (void)volt_destroy(g->rt);
    else errno = -rc;
    return aeEpollFree(loop), -1;
}
// Cancels the tasks, and waits until they have ended; those that do not are leaked.
static void aeApiFree(aeEventLoop *loop) {
    volt_rt *rt = ((aeGuest *)loop->apidata)->rt;
    if (volt_shutdown(rt, VOLT_S(AE_DRAIN_S)) == 0) (void)volt_destroy(rt);
    aeEpollFree(loop);
}
// Polls, and takes the descriptor of the guest out of the fired events. Returns their number.
static int aeGuestPoll(aeEventLoop *loop, struct timeval *tvp, int *is_due) {
    int n = aeEpollPoll(loop, tvp);
    for (int i = 0; i < n; i++)
        if (loop->fired[i].fd == ((aeGuest *)loop->apidata)->fd) {
            loop->fired[i] = loop->fired[--n];
            *is_due = 1;
            break;
        }
    return n;
}
// The events are those behind the step, since a task may have used up what had fired, also by a
// round of its own; in that, no other task runs (-EDEADLK).
static int aeApiPoll(aeEventLoop *loop, struct timeval *tvp) {
    struct timeval now = { .tv_sec = 0, .tv_usec = 0 };
    volt_rt *rt = ((aeGuest *)loop->apidata)->rt;
    // Tasks that callbacks have made runnable are due although the descriptor is not readable.
    int is_due = volt_rt_deadline(rt) == 0, n = aeGuestPoll(loop, is_due ? &now : tvp, &is_due);
    if (!is_due) return n;
    (void)volt_rt_step(rt, AE_STEP_POLLS);
    is_due = 0; // it may be again, and has the next round
    return aeGuestPoll(loop, &now, &is_due);
}
static inline const char *aeApiName(void) { return "epoll, with volt as a guest"; }
