// SPDX-License-Identifier: MIT OR 0BSD
// sd-event, the event loop of libsystemd, together with volt. Include it behind volt.h and link
// with -lsystemd. A program needs one of two forms. For use, see sd.c.
//
// A volt program that uses sd-bus, sd-device or another library on an sd_event awaits the loop in
// one of its tasks:
//
//     volt_sd sd = { .event = event }; // of sd_event_new, in the state of the task
//     sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
//     VOLT_AWAIT(code, volt_sd_run(cx, &sd)); // until sd_event_exit
//
// The callbacks of the loop are called in that task. They must not wait; they may spawn tasks, by
// sd.cx, and wake others. libsystemd has no locks: other tasks call its functions, and change
// sources, between volt_sd_lock and volt_sd_unlock. sd_event_default is of no use here, since the
// task may change its thread. A signal must be blocked in the main thread before volt_run, for
// sd_event_add_signal as for volt_signals_open; volt's own threads block all.
//
// A program that runs sd_event_loop itself makes a volt runtime one of its sources:
//
//     const volt_config config = { .workers = 1, .is_guest = 1 };
//     volt_create(&config, &rt);
//     volt_sd_attach(event, rt, &source);
//
// Tasks then run in the thread of the loop, unless there are more workers, and may call libsystemd.
// Whether the loop or volt comes first is a matter of sd_event_source_set_priority.
//
// Neither form wakes up without need: each waits for the descriptor of the other, also for timers.
// For notifications and sockets of the service manager no libsystemd is needed, see
// examples/programs/service/manager.h.
#ifndef VOLT_SD_H
#define VOLT_SD_H

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

// An sd_event in a task. Zero-valid, but for `event`, which stays the program's.
typedef struct volt_sd {
    volt_frame frame;
    sd_event *event;
    volt_cx *cx; // in callbacks: of the poll that calls them
    // private
    pthread_mutex_t lock; // during each pass over the sources; never held in a wait
    volt_notify wake;     // a source has changed
    volt_arm ready, woken;
    int fd, is_over, rc;
} volt_sd;

// Takes the lock of the loop, and gives it back, which lets the loop see what has changed.
//   where  : any thread, with no await between the two; not in a callback, which has the lock
static inline void volt_sd_lock(volt_sd *s) { pthread_mutex_lock(&s->lock); }
static inline void volt_sd_unlock(volt_sd *s) {
    pthread_mutex_unlock(&s->lock);
    volt_notify_one(&s->wake);
}
// Dispatches the source that is due next, if there is one.
//   returns: 1 | 0: none is due; the descriptor of the loop reports the next one | -errno
static inline int volt_sd__pass(volt_cx *cx, volt_sd *s) {
    pthread_mutex_lock(&s->lock);
    s->cx = cx;
    int n = sd_event_prepare(s->event);
    if (n == 0) n = sd_event_wait(s->event, 0);
    if (n > 0) {
        n = sd_event_dispatch(s->event);
        if (n == 0) n = 1; // the loop has finished
    }
    s->is_over = sd_event_get_state(s->event) == SD_EVENT_FINISHED;
    pthread_mutex_unlock(&s->lock);
    return n;
}
// Runs the loop until a callback, or another task, has called sd_event_exit, and the exit sources
// have been called. Other tasks have a turn after each source. A cancellation loses nothing: the
// loop may be run again.
//   returns: the exit code, which may be negative | -ESTALE if the loop has finished before |
//            another -errno of sd-event
static inline VOLT_POLL volt_sd_run(volt_cx *cx, volt_sd *s) {
    VOLT_BEGIN(cx, s);
    s->fd = sd_event_get_fd(s->event);
    s->rc = s->fd < 0 ? s->fd : volt_is_cancelled(cx) ? -ECANCELED : 0;
    for (s->is_over = 0; s->rc >= 0;) {
        s->rc = volt_sd__pass(cx, s);
        if (s->is_over) break; // a cancellation of an await would take the place of the exit code
        if (s->rc > 0) {
            VOLT_AWAIT(s->rc, volt_yield(cx));
        } else if (s->rc == 0) {
            VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->ready, volt_readable(cx, s->fd)),
                                          VOLT_ARM(&s->woken, volt_notify_wait(cx, &s->wake))));
            if (s->rc >= 0 && s->ready.fired) s->rc = (int)s->ready.value;
        }
    }
    if (s->fd >= 0) volt_fd_release(cx, s->fd); // sd_event_unref closes it
    if (s->is_over && s->rc >= 0) (void)sd_event_get_exit_code(s->event, &s->rc);
    VOLT_END(s->rc);
}

// One step of the guest, for at most 64 polls: the descriptor stays readable while there is more.
// An error would disable the source. -EBUSY is none: another thread makes a step, in volt_shutdown
// for example, and may leave tasks to this loop.
static inline int volt_sd__step(sd_event_source *source, int fd, uint32_t events, void *rt) {
    int n = volt_rt_step((volt_rt *)rt, 64);
    (void)fd, (void)events;
    if (n == -ESHUTDOWN) return sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return n < 0 && n != -EBUSY ? n : 0;
}
// Makes a runtime with .is_guest a source of the loop, with the normal priority. The source ends
// when the runtime is shut down.
//   where  : plain thread: that of the loop
//   returns: 0 with the source in *out, for sd_event_source_unref before volt_destroy | -EINVAL
//            without .is_guest | -ENOMEM, or another -errno of sd-event
static inline int volt_sd_attach(sd_event *event, volt_rt *rt, sd_event_source **out) {
    int fd = volt_rt_fd(rt);
    if (fd < 0) return fd;
    int rc = sd_event_add_io(event, out, fd, EPOLLIN, volt_sd__step, rt);
    return rc < 0 ? rc : 0;
}
#endif
