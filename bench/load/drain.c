// SPDX-License-Identifier: MIT OR 0BSD
// The server behind the relays of bench/tools/net_ratio.sh, neutral between them: plain C, a thread
// for each connection, blocking calls.
//
//   drain [SECONDS]
//
// Listens on a free port of 127.0.0.1, prints "port N", and serves until SIGTERM, or is killed
// after SECONDS (default 300), in case it is left behind. Compares each connection with the bytes
// that bulk.c sends, and at its end answers with their number, in 8 bytes; 0 if any byte was wrong.
#define _GNU_SOURCE 1
#include "../rows/bench.h"
#include "pattern.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *pattern;

static void *drain(void *arg) {
    const int fd = (int)(intptr_t)arg;
    char *in = malloc(PATTERN_CHUNK);
    uint64_t n = 0;
    int is_right = in != NULL;
    ssize_t got = 0;
    while (is_right && (got = recv(fd, in, PATTERN_CHUNK, 0)) > 0) {
        is_right = memcmp(in, pattern + n % PATTERN_BLOCK, (size_t)got) == 0;
        n += (uint64_t)got;
    }
    if (!is_right || got < 0) n = 0;
    (void)!send(fd, &n, sizeof n, MSG_NOSIGNAL);
    close(fd);
    free(in);
    return NULL;
}

static void on_term(int number) {
    (void)number;
    _exit(0);
}

int main(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pattern = pattern_new();
    signal(SIGTERM, on_term);
    alarm(n > 0 ? (unsigned)bench_number("SECONDS", argv[1], 1, 86400) : 300);
    if (!pattern || fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
        listen(fd, 64) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        bench_die("listen: %s", strerror(errno));
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        const int client = accept(fd, NULL, NULL);
        if (client < 0) continue;
        if (pthread_create(&thread, NULL, drain, (void *)(intptr_t)client) != 0)
            bench_die("pthread_create");
        pthread_detach(thread);
    }
}
