// SPDX-License-Identifier: MIT OR 0BSD
// The echo server of echo.h as a program.
//
//   echo_server [PORT] [WORKERS] [SECONDS] [TRACE]
//
// Listens on 127.0.0.1:PORT (default 0: any) with WORKERS threads (default 0: one per CPU), prints
// "port N", and serves until SIGTERM, or is killed after SECONDS (default 300), in case it is left
// behind. Prints at its end, one per line:
//   requests  reads that brought data; messages, if these are short and not pipelined
//   bytes     sent back
//   cpu_us    user and system time of the process since it began to listen
//   and the counters of volt_stats, each with its meaning
// Built with VOLT_TRACE=1 it writes the last events of its workers before the signal to the file
// TRACE.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "../rows/bench.h"
#include "echo.h"
#include <errno.h>
#include <signal.h>

static void print_counters(const volt_counters *c) {
#define PRINT(name_, text_) printf(#name_ " %" PRIu64 " %s\n", c->name_, text_);
    VOLT__COUNTERS(PRINT)
#undef PRINT
    printf("workers %" PRIu64 " configured\n", c->workers);
    printf("workers_started %" PRIu64 " of these, with a thread\n", c->workers_started);
}

int main(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    const double port = n > 0 ? bench_number("PORT", argv[1], 0, 65535) : 0;
    const double workers = n > 1 ? bench_number("WORKERS", argv[2], 0, 64) : 0;
    const double seconds = n > 2 ? bench_number("SECONDS", argv[3], 1, 86400) : 300;
    const volt_config config = { .workers = (uint32_t)workers };
    const int stop = SIGTERM;
    server s = { .signals = volt_signals_open(&stop, 1), .trace = n > 3 ? argv[4] : NULL };
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
