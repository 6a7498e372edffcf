// SPDX-License-Identifier: MIT OR 0BSD
// uloop, the event loop of OpenWrt, with volt as a guest. Include it behind volt.h and link with
// -lubox. For use, see uloop.c:
//
//     const volt_config config = { .workers = 1, .is_guest = 1 };
//     static volt_uloop u; // zeroed, and in its place until volt_uloop_detach
//     uloop_init();
//     volt_create(&config, &rt);
//     volt_uloop_attach(&u, rt, 64);
//     uloop_run(); // tasks run in here, between the callbacks
//     volt_uloop_detach(&u);
//     volt_shutdown(rt, VOLT_S(1));
//     volt_destroy(rt);
//     uloop_done();
//
// With one worker all tasks and all callbacks run in the thread of the loop. They may share data
// without locks, and tasks may call uloop, ubus and all that is built on it. While no task is due,
// the loop sleeps. A uloop is one per process, and has no descriptor that a task could wait for, so
// that volt is always the guest.
//
// A callback of uloop is on a plain thread: it may spawn tasks (VOLT_RT_SPAWN), cancel them, and end
// their waits by volt_notify_one, volt_oneshot_send, volt_token_cancel and the like. It must not
// call volt_block_on and volt_join_sync, for which the loop would have to run. Other threads may
// call all of these: they wake the loop. Of uloop they must not call anything.
//
// Some calls, such as ubus_invoke, run the loop within themselves. In a callback, tasks go on
// meanwhile; in a task, all tasks stand still until it has returned.
//
// By default uloop takes the end of every child of the process. Those of volt_process_start then
// end with -ECHILD. If tasks have children, set uloop_handle_sigchld = false before uloop_init, and
// use no uloop_process.
//
// SIGINT and SIGTERM end uloop_run, and nothing else; so does a task that calls uloop_end. An end
// that does not block the loop: volt_shutdown in a task, or volt_shutdown(rt, 0) in a callback,
// which also logs the tasks that are left. All tasks are cancelled, and clean up while the loop runs
// on. After the last one `on_end` is called, and from then on volt_shutdown returns 0 at once.
#ifndef VOLT_ULOOP_H
#define VOLT_ULOOP_H

#include <errno.h>
#ifdef __cplusplus
extern "C" {
#endif
#include <libubox/uloop.h>
#ifdef __cplusplus
}
#endif

// A guest of the loop. Zero-valid; the program may set on_end and user.
typedef struct volt_uloop {
    struct uloop_fd fd; // must be first
    volt_rt *rt; // NULL if detached
    uint32_t max_polls;
    int is_inside; // a step is in progress
    void (*on_end)(struct volt_uloop *u); // all tasks have ended; it may destroy the runtime
    void *user;
} volt_uloop;

// ULOOP_BLOCKING: no fcntl for a descriptor that is never read.
static inline int volt_uloop__add(volt_uloop *u) {
    return uloop_fd_add(&u->fd, ULOOP_READ | ULOOP_BLOCKING) == 0 ? 0 : -errno;
}
static inline void volt_uloop__step(struct uloop_fd *fd, unsigned events) {
    volt_uloop *u = (volt_uloop *)(void *)fd;
    (void)events;
    if (u->is_inside) { // a task runs the loop, which would come here again and again
        uloop_fd_delete(fd);
        return;
    }
    u->is_inside = 1;
    int n = volt_rt_step(u->rt, u->max_polls);
    u->is_inside = 0;
    if (n == -ESHUTDOWN) uloop_fd_delete(fd);
    else if (u->rt && !fd->registered) (void)volt_uloop__add(u);
    if (n == -ESHUTDOWN && u->on_end) u->on_end(u);
}
// Attaches a runtime with .is_guest to the loop. max_polls bounds the polls of tasks between two
// callbacks of other descriptors; 0 is no bound.
//   where  : plain thread: that of the loop, behind uloop_init. It is that of worker 0 from then on
//   returns: 0 | -EINVAL without .is_guest | -EBADF before uloop_init | -ENOMEM, -ENOSPC of epoll
//   wakes  : the loop, when a task, a timer or a descriptor of volt is due
//   memory : none. *u is the program's, and must stay until volt_uloop_detach. The descriptor is
//            the runtime's
static inline int volt_uloop_attach(volt_uloop *u, volt_rt *rt, uint32_t max_polls) {
    int fd = volt_rt_fd(rt);
    if (fd < 0) return fd;
    u->rt = rt;
    u->max_polls = max_polls;
    u->fd.cb = volt_uloop__step;
    u->fd.fd = fd;
    return volt_uloop__add(u);
}
// Removes the runtime from the loop, if it is there. Must come before volt_destroy. Tasks stand
// still from then on, until volt_shutdown or a further volt_uloop_attach.
//   where  : plain thread: that of the loop, not in a task. Also in a callback of the loop
static inline void volt_uloop_detach(volt_uloop *u) {
    uloop_fd_delete(&u->fd);
    u->rt = NULL;
}
#endif
