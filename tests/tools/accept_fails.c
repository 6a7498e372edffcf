// SPDX-License-Identifier: MIT OR 0BSD
// Preloaded into a server by tests/tools/servers.py: the first ACCEPT_FAILS calls of accept4 fail,
// with an error that volt_accept passes on to its caller.
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags) {
    static int n_calls;
    const char *fails = getenv("ACCEPT_FAILS");
    if (fails && __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED) < atoi(fails)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, addr, len, flags);
}
