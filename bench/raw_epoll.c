// SPDX-License-Identifier: MIT OR 0BSD
// The limit for echo_server.c: the same service by hand, one thread, one edge-triggered epoll.
//
//   raw_epoll [PORT] [SECONDS]
//
// Listens on 127.0.0.1:PORT (default 0: any), prints "port N", and sends back what arrives: read up
// to 4 KiB, write it, again until a read is short. Ends on SIGTERM or, lest it be forgotten, is
// killed after SECONDS (default 300). Prints at its end:
//   requests  reads that brought data; messages, if these are short and not pipelined
//   bytes     sent back
//   cpu_us    user and system time of the process since it began to listen
#define _GNU_SOURCE 1
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 4096, EVENTS = 256 };

typedef struct connection {
    int fd;
    size_t from, to; // bytes of buf that are read and not yet written
    char buf[BUFFER];
} connection;

static struct {
    int epoll, listener, signals;
    uint64_t requests, bytes;
} server;

static void watch(int fd, uint32_t events, void *who) {
    struct epoll_event e = { .events = events, .data = { .ptr = who } };
    if (epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        bench_die("epoll_ctl: %s", strerror(errno));
}

static int listen_on(uint16_t port) {
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        bench_die("listen: %s", strerror(errno));
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static void accept_all(void) {
    const int one = 1;
    for (;;) {
        const int fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) return;
        connection *c = malloc(sizeof *c);
        if (!c) bench_die("out of memory");
        c->fd = fd;
        c->from = c->to = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c);
    }
}

// Writes what is pending.  gives: 1 all written | 0 the socket is full | -1 the connection broke
static int flush(connection *c) {
    while (c->from < c->to) {
        const ssize_t n = send(c->fd, c->buf + c->from, c->to - c->from, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        c->from += (size_t)n;
        server.bytes += (uint64_t)n;
    }
    return 1;
}

// Echoes until there is nothing left to read or no room to write. A short read empties the socket,
// but no further edge follows if the end of the file came with the data.  gives: 0 | -1 close it
static int echo(connection *c, uint32_t events) {
    const int is_ending = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    for (;;) {
        const int flushed = flush(c);
        if (flushed <= 0) return flushed;
        const ssize_t n = recv(c->fd, c->buf, sizeof c->buf, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) return -1;
        server.requests++;
        c->from = 0;
        c->to = (size_t)n;
        if (c->to < sizeof c->buf && !is_ending) return flush(c) < 0 ? -1 : 0;
    }
}

static void serve(void) {
    struct epoll_event events[EVENTS];
    for (;;) {
        const int n = epoll_wait(server.epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            void *who = events[i].data.ptr;
            if (who == &server.signals) return;
            if (who == &server.listener) {
                accept_all();
            } else if (echo(who, events[i].events) < 0) {
                close(((connection *)who)->fd);
                free(who);
            }
        }
    }
}

int main(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    sigset_t term;
    const double port = n > 0 ? bench_number("PORT", argv[1], 0, 65535) : 0;
    alarm(n > 1 ? (unsigned)bench_number("SECONDS", argv[2], 1, 86400) : 300);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    server.signals = signalfd(-1, &term, SFD_CLOEXEC);
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    server.listener = listen_on((uint16_t)port);
    watch(server.signals, EPOLLIN, &server.signals);
    watch(server.listener, EPOLLIN | EPOLLET, &server.listener);
    const int64_t start = bench_cpu();
    serve();
    printf("requests %" PRIu64 "\nbytes %" PRIu64 "\ncpu_us %" PRId64 "\n", server.requests,
           server.bytes, (bench_cpu() - start) / 1000);
    return 0;
}
