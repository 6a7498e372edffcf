// SPDX-License-Identifier: MIT OR 0BSD
// The end of a connection that the server decides on while its client may still send. A close with
// bytes unread would reset the connection, and the client may lose what it has not read yet. So the
// sending side ends first; what still comes is dropped until the client closes, too.
#ifndef EXAMPLE_LINGER_H
#define EXAMPLE_LINGER_H

#include <errno.h>
#include <sys/socket.h>

enum { LINGER_MS = 1000 }; // for the limit around it: a client may never close
typedef struct {
    volt_frame frame;
    int64_t n;
} lingering;

// By a buffer on the stack of this poll.
static inline int64_t drop_some(volt_cx *cx, int fd) {
    char dropped[4096];
    return volt_try_read(cx, fd, dropped, sizeof dropped);
}
// The caller closes the socket afterwards.
//   gives : 0 if the client has closed | -errno
static inline volt_poll linger_run(volt_cx *cx, lingering *l, int fd) {
    VOLT_BEGIN(cx, l);
    (void)volt_sock_shutdown(fd, SHUT_WR);
    do {
        VOLT_AWAIT(l->n, volt_read_ready(cx, fd));
        if (l->n >= 0) l->n = drop_some(cx, fd);
    } while (l->n > 0 || l->n == -EAGAIN);
    VOLT_END(l->n);
}

#endif
