// SPDX-License-Identifier: MIT OR 0BSD
// Common to the servers of this folder: accepts clients up to a limit, each with a task of its own,
// and lets them end in order after a signal. Include volt.h first.
#ifndef EXAMPLE_PROGRAMS_SERVER_H
#define EXAMPLE_PROGRAMS_SERVER_H

#include <signal.h>
#include <stdio.h>

typedef struct server server;
struct server {
    volt_frame frame;
    // set by the program
    unsigned n_max;  // further clients wait in the queue of the kernel
    volt_time grace; // for the clients, after the stop has begun
    // Spawns the task of a client into s->clients: 0, or -errno, and then the client is dropped.
    int (*client_came)(volt_cx *cx, server *s, int fd);
    void (*stopping_or_null)(server *s); // called when the stop begins
    // for the tasks
    volt_token stop; // cancelled by the first signal; a task may cancel it, too
    volt_group clients;
    // private
    volt_arm came, left, stopped, signalled;
    volt_timer limit;
    volt_time deadline;
    unsigned n;
    int listener, signals, fd, rc, result;
};

// Opens the listener, and says where it is. To be called before any thread starts: each must have
// the signals blocked.
//   returns: 0 | -errno
static int server_open(server *s, const volt_addr *at, const volt_listen_options *options) {
    static const int stops[] = { SIGINT, SIGTERM };
    volt_addr here;
    int rc = s->signals = volt_signals_open(stops, 2);
    if (rc >= 0) rc = s->listener = volt_listen_addr(at, options);
    if (rc >= 0) rc = volt_local_addr(s->listener, &here);
    if (rc < 0) return rc;
    printf("port %d\n", volt_addr_port(&here)); // 0 of a unix socket
    fflush(stdout);
    return 0;
}
static void server_stop(volt_cx *cx, server *s) {
    volt_unix_unlink(s->listener); // does nothing for TCP
    volt_close(cx, s->listener);
    s->listener = -1;
    s->deadline = volt_now() + s->grace;
    volt_token_cancel(&s->stop);
    if (s->stopping_or_null) s->stopping_or_null(s);
}
// Serves until the stop, and then until all clients have left, the grace is over, or a second
// signal comes.
//   returns: 0 | -errno if no more clients could be accepted
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->clients);
    s->deadline = VOLT_NEVER;
    while (s->listener >= 0 || s->n > 0) {
        VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, s->deadline, VOLT_SELECT(
            VOLT_ARM(&s->came, s->fd, s->listener >= 0 && s->n < s->n_max
                                          ? volt_accept(cx, s->listener)
                                          : volt_sleep_forever(cx)),
            VOLT_ARM(&s->left, s->n > 0 ? volt_group_next(cx, &s->clients, NULL)
                                        : volt_sleep_forever(cx)),
            VOLT_ARM(&s->stopped, s->listener >= 0 ? volt_token_wait(cx, &s->stop)
                                                   : volt_sleep_forever(cx)),
            VOLT_ARM(&s->signalled, volt_signals_next(cx, s->signals, NULL)))));
        if (s->rc < 0 || (s->signalled.fired && s->listener < 0)) break;
        if (s->left.fired) {
            s->n--;
        } else if (s->came.fired && s->fd >= 0) {
            if (s->client_came(cx, s, s->fd) == 0) s->n++;
            else volt_close(cx, s->fd);
        } else {
            if (s->came.fired) s->result = s->fd;
            server_stop(cx, s);
        }
    }
    VOLT_AWAIT(volt_group_close(cx, &s->clients)); // cancels those that are left
    volt_close(cx, s->signals);
    VOLT_END(s->result);
}
#endif
