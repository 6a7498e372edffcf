// SPDX-License-Identifier: MIT OR 0BSD
// An echo server with volt.h: one task per connection, which reads and writes back until the end.
//
//   echo_server [PORT] [WORKERS] [SECONDS] [TRACE]
//
// Listens on 127.0.0.1:PORT (default 0: any) with WORKERS threads (default 0: one per CPU), prints
// "port N", and serves until SIGTERM or, lest it be forgotten, is killed after SECONDS (default
// 300). Prints at its end, one per line:
//   requests  reads that brought data; messages, if these are short and not pipelined
//   bytes     sent back
//   cpu_us    user and system time of the process since it began to listen
//   and the counters of volt_stats, each with its meaning
// Built with VOLT_TRACE=1 it leaves in the file TRACE what its workers did last before the signal.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>

typedef struct server {
    volt_frame frame;
    volt_arm stop, next;
    volt_group clients;
    int listener, signals;
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
    char buf[4096];
} connection;

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = arg;
    VOLT_BEGIN(cx, c);
    for (;;) {
        VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
        if (c->n <= 0) break;
        VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->buf, (size_t)c->n));
        if (c->n < 0) break;
        c->requests++;
        c->bytes += (uint64_t)c->n;
    }
    volt_close(cx, c->fd);
    __atomic_fetch_add(&c->server->requests, c->requests, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->server->bytes, c->bytes, __ATOMIC_RELAXED);
    VOLT_END(0);
}

static void write_trace(volt_rt *rt, const char *path) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const int rc = fd < 0 ? -errno : volt_trace(rt, fd);
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

static void print_counters(const volt_counters *c) {
#define PRINT(name_, text_) printf(#name_ " %" PRIu64 " %s\n", c->name_, text_);
    VOLT__COUNTERS(PRINT)
#undef PRINT
    printf("workers %" PRIu64 " configured\n", c->workers);
    printf("workers_started %" PRIu64 " of these, with a thread\n", c->workers_started);
}

static int signal_descriptor(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    const double port = n > 0 ? bench_number("PORT", argv[1], 0, 65535) : 0;
    const double workers = n > 1 ? bench_number("WORKERS", argv[2], 0, 64) : 0;
    const double seconds = n > 2 ? bench_number("SECONDS", argv[3], 1, 86400) : 300;
    const volt_config config = { .workers = (uint32_t)workers };
    server s = { .signals = signal_descriptor(SIGTERM), .trace = n > 3 ? argv[4] : NULL };
    volt_addr at;
    alarm((unsigned)seconds);
    s.listener = volt_listen("127.0.0.1", (unsigned)port, NULL);
    if (s.listener < 0) bench_die("listen: %s", volt_strerror(s.listener));
    if (volt_local_addr(s.listener, &at) < 0) bench_die("no address");
    printf("port %d\n", volt_addr_port(&at));
    fflush(stdout);
    const int64_t start = bench_cpu();
    const int rc = volt_run(&config, server_run, &s);
    if (rc < 0) bench_die("%s", volt_strerror(rc));
    printf("requests %" PRIu64 "\nbytes %" PRIu64 "\ncpu_us %" PRId64 "\n", s.requests, s.bytes,
           (bench_cpu() - start) / 1000);
    print_counters(&s.counters);
    return 0;
}
