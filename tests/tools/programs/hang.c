// SPDX-License-Identifier: MIT OR 0BSD
// Preloaded into a service by service.py: a send of data that begins with HANG blocks its thread as
// long as the file HANG_FILE exists.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t send(int fd, const void *data, size_t len, int flags) {
    const char *file = getenv("HANG_FILE");
    if (file && len >= 4 && memcmp(data, "HANG", 4) == 0)
        while (access(file, F_OK) == 0) usleep(1000);
    return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}
