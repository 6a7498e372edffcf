// SPDX-License-Identifier: MIT OR 0BSD
// An echo server with volt.h: one task per connection, which reads and writes back until the end.
// The buffer is on the stack of the poll, so a connection has none; only a rest that the socket has
// no room for is kept. Include it after the implementation of volt.h.
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include "../rows/bench.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

typedef struct server {
    volt_frame frame;
    volt_arm stop, next;
    volt_group clients;
    int listener, signals; // the latter: readable when the server must end
    int fd, rc;
    const char *trace;        // a file to write, or NULL
    uint64_t requests, bytes; // added up by connections as they end
    volt_counters counters;
} server;

typedef struct connection {
    volt_frame frame;
    server *server;
    int fd;
    int64_t n;
    uint64_t requests, bytes;
    char *rest; // or NULL
    size_t n_rest;
} connection;

// Sends back the bytes that are there.  returns: their number | 0 at the end | -EAGAIN, -errno
static int64_t connection_echo(volt_cx *cx, connection *c) {
    char buf[4096];
    const int64_t n = volt_try_read(cx, c->fd, buf, sizeof buf);
    if (n <= 0) return n;
    const int64_t sent = volt_try_write(cx, c->fd, buf, (size_t)n);
    if (sent < 0 && sent != -EAGAIN) return sent;
    c->requests++;
    c->bytes += (uint64_t)n;
    if (sent == n) return n;
    c->n_rest = (size_t)(sent < 0 ? n : n - sent);
    c->rest = malloc(c->n_rest);
    if (!c->rest) bench_die("out of memory");
    memcpy(c->rest, buf + n - c->n_rest, c->n_rest);
    return n;
}
static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = arg;
    VOLT_BEGIN(cx, c);
    do {
        VOLT_AWAIT(c->n, volt_read_ready(cx, c->fd));
        if (c->n < 0) break;
        c->n = connection_echo(cx, c);
        if (!c->rest) continue;
        VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->rest, c->n_rest));
        free(c->rest);
        c->rest = NULL;
    } while (c->n > 0 || c->n == -EAGAIN);
    volt_close(cx, c->fd);
    __atomic_fetch_add(&c->server->requests, c->requests, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->server->bytes, c->bytes, __ATOMIC_RELAXED);
    VOLT_END(0);
}

static void write_trace(volt_rt *of, const char *path) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const int rc = fd < 0 ? -errno : volt_trace(of, fd);
    if (rc < 0) bench_die("%s: %s", path, volt_strerror(rc));
    close(fd);
}
// Accepts until the signal comes; then ends every connection.
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc,
                   VOLT_SELECT(VOLT_ARM(&s->stop, volt_readable(cx, s->signals)),
                               VOLT_ARM(&s->next, s->fd, volt_accept(cx, s->listener))));
        if (s->rc != 1 || s->fd < 0) break;
        s->rc = VOLT_GROUP_SPAWN(cx, &s->clients, connection_run,
                                 (connection){ .server = s, .fd = s->fd });
        if (s->rc < 0) volt_close(cx, s->fd); // nothing was taken: it is still ours
    }
    if (s->trace) write_trace(volt_cx_rt(cx), s->trace);
    volt_close(cx, s->listener);
    volt_close(cx, s->signals);
    VOLT_AWAIT(volt_group_close(cx, &s->clients));
    volt_stats(volt_cx_rt(cx), &s->counters);
    VOLT_END(s->rc == 1 ? s->fd : s->rc);
}

#endif // BENCH_ECHO_H
