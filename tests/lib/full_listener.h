// SPDX-License-Identifier: MIT OR 0BSD
// A listener on loopback whose queue is full, so that the next connection waits for an answer.
#ifndef VOLT_TEST_FULL_LISTENER_H
#define VOLT_TEST_FULL_LISTENER_H

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct full_listener {
    int fd, filling[8];
    volt_addr at;
} full_listener;
static inline void full_listener_open(full_listener *l) {
    static const volt_listen_options o = { .backlog = 1 };
    l->fd = volt_listen("127.0.0.1", 0, &o);
    CHECK_EQ(volt_local_addr(l->fd, &l->at), 0);
    for (int i = 0; i < 8; i++) {
        l->filling[i] = volt_sock_open(AF_INET, SOCK_STREAM, 0);
        (void)connect(l->filling[i], (const void *)l->at.sa_, l->at.len_);
        struct pollfd p = { .fd = l->filling[i], .events = POLLOUT };
        if (i < 2) CHECK_EQ(poll(&p, 1, -1), 1); // there is room for two
    }
}
static inline void full_listener_close(full_listener *l) {
    for (int i = 0; i < 8; i++) close(l->filling[i]);
    close(l->fd);
}

#endif
