// SPDX-License-Identifier: MIT OR 0BSD
// Relays in raw_epoll.c: two connections and a pipe for each direction, through which splice(2)
// moves the bytes; the pipes are larger than usual, so that a call moves more of them. Both sockets
// are watched edge-triggered, and each event tries both directions.
#ifndef BENCH_RAW_RELAY_H
#define BENCH_RAW_RELAY_H

#include "serve.h"
#include <fcntl.h>
#include <netinet/tcp.h>

enum { RAW_PIPE = 1 << 20 };

typedef struct raw_way {
    int from, to, pipe[2];
    size_t held; // bytes in the pipe
    int is_ended, is_shut;
} raw_way;

typedef struct raw_relay {
    raw_way ways[2];
    struct raw_relay *next; // of those that are over
    int is_over;
} raw_relay;

static raw_relay *raw_relay_open(int client, unsigned port) {
    const int one = 1;
    const struct sockaddr_in to = serve_address(port);
    raw_relay *r = calloc(1, sizeof *r);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!r || fd < 0) bench_die("no relay: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        bench_die("connect: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        r->ways[i].from = i ? fd : client;
        r->ways[i].to = i ? client : fd;
        if (pipe2(r->ways[i].pipe, O_NONBLOCK | O_CLOEXEC) < 0)
            bench_die("pipe: %s", strerror(errno));
        (void)fcntl(r->ways[i].pipe[0], F_SETPIPE_SZ, RAW_PIPE); // else it has 64 KiB
    }
    return r;
}

static void raw_relay_close(raw_relay *r) {
    for (int i = 0; i < 2; i++) {
        close(r->ways[i].pipe[0]);
        close(r->ways[i].pipe[1]);
        close(r->ways[i].from);
    }
    free(r);
}

// Moves bytes until a socket has none, or takes none.  returns: 0 | -1 the connection broke
static int raw_way_move(raw_way *w) {
    const unsigned flags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;
    for (;;) {
        while (w->held > 0) {
            const ssize_t n = splice(w->pipe[0], NULL, w->to, NULL, w->held, flags);
            if (n < 0) return errno == EAGAIN ? 0 : -1;
            w->held -= (size_t)n;
        }
        if (w->is_ended) break;
        const ssize_t n = splice(w->from, NULL, w->pipe[1], NULL, RAW_PIPE, flags);
        if (n < 0) return errno == EAGAIN || errno == ENOTCONN ? 0 : -1;
        w->is_ended = n == 0;
        w->held = (size_t)n;
    }
    if (!w->is_shut) shutdown(w->to, SHUT_WR);
    w->is_shut = 1;
    return 0;
}

// Handles an event on either socket.  returns: 1 | 0 both directions have ended, or one broke
static int raw_relay_move(raw_relay *r) {
    for (int i = 0; i < 2; i++)
        if (raw_way_move(&r->ways[i]) < 0) return 0;
    return !r->ways[0].is_shut || !r->ways[1].is_shut;
}

#endif // BENCH_RAW_RELAY_H
