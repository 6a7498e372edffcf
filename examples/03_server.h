// SPDX-License-Identifier: MIT OR 0BSD
// Common to the servers in examples/: a door that limits the number of clients at a time and
// outlives an accept that fails; and the signals that stop a server.
#ifndef EXAMPLE_SERVER_H
#define EXAMPLE_SERVER_H

#include <errno.h>
#include <signal.h>

enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all

typedef struct {
    volt_frame frame;
    volt_sem places; // a permit for each client that may still come
    int64_t rc;
    int lfd, n_failed;
    int signals; // volt_signals_next: SIGINT or SIGTERM
} doorway;

// Call it in main: each thread that starts later blocks the signals, too.
//   gives : the port that it listens on | -errno
static int door_open(doorway *d, const char *host, unsigned port, unsigned clients_max) {
    static const int stop[] = { SIGINT, SIGTERM };
    volt_addr at;
    volt_sem_release(&d->places, clients_max);
    d->lfd = volt_listen(host, port, NULL);
    if (d->lfd < 0) return d->lfd;
    d->signals = volt_signals_open(stop, 2);
    int rc = d->signals < 0 ? d->signals : volt_local_addr(d->lfd, &at);
    return rc < 0 ? rc : volt_addr_port(&at);
}

// The next client. While all places are taken it waits in the kernel's queue; door_leave gives its
// place back. An accept that fails for longer than the retries take ends the server, by design:
// a lasting cause (a shut-down listener, a firewall) is not mended by waiting, and the supervisor
// of the program sees the end and its reason. (Out of descriptors volt_accept waits by itself.)
//   gives : fd | -ECANCELED | what volt_accept gave at the last retry. With an error no place is
//           taken
static volt_poll door_accept(volt_cx *cx, doorway *d) {
    VOLT_BEGIN(cx, d);
    VOLT_AWAIT(d->rc, volt_sem_acquire(cx, &d->places, 1));
    if (d->rc < 0) VOLT_RETURN(d->rc);
    for (d->n_failed = 0;; d->n_failed++) {
        VOLT_AWAIT(d->rc, volt_accept(cx, d->lfd));
        if (d->rc >= 0) VOLT_RETURN(d->rc);
        if (d->rc == -ECANCELED || d->n_failed == ACCEPT_RETRIES) break;
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ACCEPT_PAUSE_MS << d->n_failed)));
    }
    volt_sem_release(&d->places, 1);
    VOLT_END(d->rc);
}

static void door_leave(volt_cx *cx, doorway *d, int fd) {
    volt_close(cx, fd);
    volt_sem_release(&d->places, 1);
}
#endif
