// SPDX-License-Identifier: MIT OR 0BSD
// A SOCKS5 proxy with a thread for each connection, in the manner of microsocks: the program that
// socks.c was made from. It does not use volt.h.
//
//     cc -O2 -pthread examples/projects/socks_threads.c -o socks && ./socks 127.0.0.1 1080
//     curl --socks5-hostname 127.0.0.1:1080 http://localhost/
#define _GNU_SOURCE
#include "socks_protocol.h"
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STACK_BYTES = 65536, BUFFER_BYTES = 16384, IDLE_MS = 15 * 60 * 1000 };

static const char *user, *password; // or NULL

// Returns 0 with a complete message, or -errno.
static int message_read(int fd, unsigned char *m, socks_length *length) {
    for (size_t n = 0; n < length(m, n);) {
        ssize_t rc = recv(fd, m + n, length(m, n) - n, 0);
        if (rc <= 0) return rc < 0 ? -errno : -EPIPE;
        n += (size_t)rc;
    }
    return 0;
}
// Returns 0 or -errno.
static int write_all(int fd, const void *buf, size_t len) {
    for (size_t n = 0; n < len;) {
        ssize_t rc = send(fd, (const char *)buf + n, len - n, MSG_NOSIGNAL);
        if (rc < 0) return -errno;
        n += (size_t)rc;
    }
    return 0;
}
// Returns SOCKS_OK with the target, a code to refuse with, or a negative number: no answer.
static int handshake(int fd, socks_target *to) {
    unsigned char m[SOCKS_MESSAGE_MAX];
    int rc = message_read(fd, m, socks_greeting_length);
    if (rc < 0) return rc;
    int method = socks_method(m, user != NULL);
    if (method < 0) return -EPROTO;
    m[0] = 5, m[1] = (unsigned char)method;
    rc = write_all(fd, m, 2);
    if (rc < 0 || method == SOCKS_NO_METHOD) return -EACCES;
    if (method == SOCKS_LOGIN) {
        rc = message_read(fd, m, socks_login_length);
        if (rc < 0) return rc;
        int is_right = socks_login_is(m, user, password);
        m[0] = 1, m[1] = !is_right;
        rc = write_all(fd, m, 2);
        if (rc < 0 || !is_right) return -EACCES;
    }
    rc = message_read(fd, m, socks_request_length);
    return rc < 0 ? rc : socks_request(m, to);
}
// Returns a descriptor, or -errno.
static int target_connect(const socks_target *to) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
    if (getaddrinfo(to->host, to->service, &hints, &list) != 0) return -ENOENT;
    int fd = -1, rc = -ENOENT;
    for (struct addrinfo *a = list; a && rc < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        rc = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : -errno;
        if (rc < 0 && fd >= 0) close(fd);
    }
    freeaddrinfo(list);
    return rc < 0 ? rc : fd;
}
// Copies both ways, until one side has ended or nothing has moved for a while.
static void relay(int a, int b) {
    struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
    char buf[BUFFER_BYTES];
    while (poll(p, 2, IDLE_MS) > 0) {
        int i = p[0].revents == 0;
        ssize_t n = recv(p[i].fd, buf, sizeof buf, 0);
        if (n <= 0 || write_all(p[!i].fd, buf, (size_t)n) < 0) return;
    }
}
static void *client_main(void *arg) {
    int fd = (int)(intptr_t)arg, target = -1;
    socks_target to;
    unsigned char m[SOCKS_ANSWER_MAX];
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int code = handshake(fd, &to);
    if (code == SOCKS_OK) {
        target = target_connect(&to);
        if (target < 0 || getsockname(target, (struct sockaddr *)&from, &len) < 0)
            code = socks_code_of(target);
    }
    if (code >= 0) {
        const struct sockaddr *at = code == SOCKS_OK ? (struct sockaddr *)&from : NULL;
        if (write_all(fd, m, socks_answer(m, code, at)) == 0 && code == SOCKS_OK)
            relay(fd, target);
    }
    if (target >= 0) close(target);
    close(fd);
    return NULL;
}

// Opens a listener and says where it is.
static int listen_at(const char *host, const char *service) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *a;
    struct sockaddr_in6 at; // the port is at the same place in a sockaddr_in
    socklen_t len = sizeof at;
    int one = 1;
    if (getaddrinfo(host, service, &hints, &a) != 0) return -1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return -1;
    freeaddrinfo(a);
    printf("port %d\n", ntohs(at.sin6_port)), fflush(stdout);
    return fd;
}
int main(int argc, char **argv) {
    pthread_attr_t attr;
    pthread_t thread;
    if (argc != 3 && argc != 5)
        return fprintf(stderr, "usage: %s ADDRESS PORT [USER PASSWORD]\n", argv[0]), 2;
    if (argc == 5) user = argv[3], password = argv[4];
    int listener = listen_at(argv[1], argv[2]);
    if (listener < 0) return perror(argv[1]), 1;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) usleep(1000); // out of descriptors, for example
        else if (pthread_create(&thread, &attr, client_main, (void *)(intptr_t)fd) != 0) close(fd);
    }
}
