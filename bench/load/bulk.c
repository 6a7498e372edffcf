// SPDX-License-Identifier: MIT OR 0BSD
// Sends streams through a relay to drain.c: plain C, a thread for each connection, blocking calls.
//
//   bulk --port P [--conns 4] [--seconds 1] [--wrong 0]
//
// --wrong 1: sends a wrong byte, which drain.c must notice.
// Each connection sends until the time is over, ends its direction, and waits for the number of
// bytes that were right at the other end. It prints:
//   requests        MiB that arrived, a part of one included
//   per_second      MiB / time from the first byte to the last answer
//   bytes_checked   compared at the other end
//   cpu_us          CPU time of the client
//   errors          connections refused or broken, or whose bytes were wrong or missing
// Exit status 0 only if there were bytes and no errors.
#define _GNU_SOURCE 1
#include "../rows/bench.h"
#include "pattern.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNS_MAX = 64, GRACE = 8 };

typedef struct sender {
    pthread_t thread;
    uint64_t sent, arrived;
} sender;

static double port, conns = 4, seconds = 1, wrong;
static char *pattern;
static int64_t stop;

static int sender_connect(void) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        bench_die("connect: %s", strerror(errno));
    return fd;
}

static void *sender_run(void *arg) {
    sender *s = arg;
    const int fd = sender_connect();
    while (bench_now() < stop) {
        const ssize_t n = send(fd, pattern + s->sent % PATTERN_BLOCK, PATTERN_CHUNK, MSG_NOSIGNAL);
        if (n < 0) break;
        s->sent += (uint64_t)n;
    }
    if (shutdown(fd, SHUT_WR) < 0 ||
        recv(fd, &s->arrived, sizeof s->arrived, MSG_WAITALL) != sizeof s->arrived)
        s->arrived = 0;
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    static sender senders[CONNS_MAX];
    const bench_option table[] = {
        { "--port", &port, 1, 65535 },
        { "--conns", &conns, 1, CONNS_MAX },
        { "--seconds", &seconds, 0.01, 60 },
        { "--wrong", &wrong, 0, 1 },
    };
    uint64_t bytes = 0, errors = 0;
    if (bench_options(argc, argv, table, BENCH_COUNT(table)) > 0 || port < 1)
        bench_die("usage: bulk --port P [--conns, --seconds, --wrong N]");
    pattern = pattern_new();
    if (!pattern) bench_die("out of memory");
    pattern[PATTERN_CHUNK / 3] ^= (char)wrong;
    alarm((unsigned)seconds + GRACE);
    const int64_t start = bench_now();
    stop = start + (int64_t)(seconds * 1e9);
    for (int i = 0; i < (int)conns; i++)
        if (pthread_create(&senders[i].thread, NULL, sender_run, &senders[i]) != 0)
            bench_die("pthread_create");
    for (int i = 0; i < (int)conns; i++) {
        pthread_join(senders[i].thread, NULL);
        errors += senders[i].arrived != senders[i].sent || senders[i].sent == 0;
        bytes += senders[i].arrived;
    }
    const double mib = (double)bytes / (1 << 20);
    printf("requests %.3f\nper_second %.1f\n", mib, mib * 1e9 / (double)(bench_now() - start));
    printf("bytes_checked %" PRIu64 "\ncpu_us %" PRId64 "\nerrors %" PRIu64 "\n", bytes,
           bench_cpu() / 1000, errors);
    return bytes == 0 || errors > 0;
}
