// SPDX-License-Identifier: MIT OR 0BSD
// The protocol between a service manager such as systemd and its service, without libsystemd:
// notifications and the watchdog (sd_notify(3), sd_watchdog_enabled(3)), and sockets that the
// manager has opened (sd_listen_fds(3)). Include volt.h first.
#ifndef EXAMPLE_SERVICE_MANAGER_H
#define EXAMPLE_SERVICE_MANAGER_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANAGER_TEXT = 256, MANAGER_NAME = 32, MANAGER_SOCKETS = 8, MANAGER_TELL_MS = 1000 };

typedef struct manager {
    volt_addr at;
    int is_there;
    volt_time watchdog; // the longest time between two "WATCHDOG=1"; 0: none are wanted
    struct {
        int fd; // -1: given away
        char name[MANAGER_NAME];
    } sockets[MANAGER_SOCKETS];
    unsigned n_sockets, n_surplus; // n_surplus: those that were closed for lack of room
} manager;

// A number of a variable that is meant for this process, else 0. `pid_name` may be missing.
static long long manager_number(const char *name, const char *pid_name, int needs_pid) {
    const char *value = getenv(name), *pid = getenv(pid_name);
    if (!value || (!pid && needs_pid) || (pid && strtoll(pid, NULL, 10) != getpid())) return 0;
    return strtoll(value, NULL, 10);
}
// Takes the sockets, which begin at descriptor 3. None may leak into a child: those for which there
// is no room are closed.
static void manager_take_sockets(manager *m) {
    const char *names = getenv("LISTEN_FDNAMES");
    long long n = manager_number("LISTEN_FDS", "LISTEN_PID", 1);
    m->n_sockets = n <= 0 ? 0 : n < MANAGER_SOCKETS ? (unsigned)n : (unsigned)MANAGER_SOCKETS;
    for (unsigned i = 0; i < m->n_sockets; i++) {
        size_t len = names ? strcspn(names, ":") : 0;
        m->sockets[i].fd = (int)i + 3;
        if (fcntl(m->sockets[i].fd, F_SETFD, FD_CLOEXEC) < 0) m->sockets[i].fd = -1;
        snprintf(m->sockets[i].name, MANAGER_NAME, "%.*s", (int)len, names ? names : "");
        if (names) names += len + (names[len] == ':');
    }
    for (int fd = MANAGER_SOCKETS + 3; fd < n + 3 && close(fd) == 0; fd++) m->n_surplus++;
}
// Reads the environment, and removes the variables: children of the service must not act for it.
//   where  : before any other thread starts
//   returns: 0, also without a manager | -EAFNOSUPPORT: its socket is not a unix socket | -EINVAL
static int manager_open(manager *m) {
    static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                         "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES" };
    const char *path = getenv("NOTIFY_SOCKET");
    char text[VOLT_ADDR_TEXT];
    int rc = 0;
    manager_take_sockets(m);
    m->watchdog = VOLT_US(manager_number("WATCHDOG_USEC", "WATCHDOG_PID", 0));
    if (path && path[0] != '/' && path[0] != '@') rc = -EAFNOSUPPORT;
    else if (path && snprintf(text, sizeof text, "unix:%s", path) >= (int)sizeof text) rc = -EINVAL;
    else if (path) rc = volt_addr_parse(&m->at, text);
    m->is_there = path && rc == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
    return rc;
}
// Gives away the socket of that name: a listening stream socket.
//   returns: the descriptor | -1 if there is none
static int manager_socket(manager *m, const char *name) {
    for (unsigned i = 0; i < m->n_sockets; i++) {
        int fd = m->sockets[i].fd, is_listening = 0, type = 0;
        socklen_t n = sizeof(int);
        if (fd < 0 || strcmp(m->sockets[i].name, name) != 0) continue;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) < 0 || !is_listening ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_STREAM)
            continue;
        m->sockets[i].fd = -1;
        return fd;
    }
    return -1;
}
// Closes the sockets that were not given away. Returns their number, with those closed before.
static unsigned manager_close_others(manager *m) {
    unsigned n = m->n_surplus;
    for (unsigned i = 0; i < m->n_sockets; i++)
        if (m->sockets[i].fd >= 0) close(m->sockets[i].fd), n++;
    m->n_sockets = 0;
    return n;
}

// A message to the manager. `text` is set by the caller: lines of the form NAME=VALUE.
typedef struct manager_message {
    volt_frame frame;
    volt_timer limit;
    int fd;
    int64_t n;
    char text[MANAGER_TEXT];
} manager_message;

// Sends the message, by a socket of its own, as the manager may be a new one. It has no answer. A
// manager that takes nothing must not stop its service, so the message is dropped after 1 s.
//   returns: 0, also without a manager | -ETIMEDOUT | -ENOENT, -ECONNREFUSED, or another -errno
static volt_poll manager_tell(volt_cx *cx, const manager *m, manager_message *t) {
    VOLT_BEGIN(cx, t);
    if (!m->is_there) VOLT_RETURN(0);
    t->n = t->fd = volt_sock_open(AF_UNIX, SOCK_DGRAM, 0);
    if (t->fd < 0) VOLT_RETURN(t->fd);
    // Only a connected socket is told when there is room at its peer.
    VOLT_AWAIT(t->n, volt_connect_on(cx, t->fd, &m->at));
    if (t->n == 0)
        VOLT_AWAIT(t->n, volt_within(cx, &t->limit, VOLT_MS(MANAGER_TELL_MS),
                                     volt_send(cx, t->fd, t->text, strlen(t->text), 0)));
    volt_close(cx, t->fd);
    VOLT_END(t->n < 0 ? t->n : 0);
}
#endif
