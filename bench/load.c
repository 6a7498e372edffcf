// SPDX-License-Identifier: MIT OR 0BSD
// The load of load.h as a program.
//
//   load --port P [--conns 200] [--seconds 4] [--size 64] [--pipeline 1] [--threads 1]
//
// It prints:
//   requests        messages that came back as they were sent
//   per_second      requests / time from the first connect to the last reply
//   p50_us ...      from handing a message to the kernel to having read all of it, in us; within
//                   1.6 % (log-linear histogram); with a pipeline it includes the queueing
//   bytes_checked   compared
//   cpu_us          CPU time of the client: near the wall time, the client was the limit
//   errors          connections refused or broken, replies that were wrong or missing
// Exit status 0 only if there were requests and no errors.
#define _GNU_SOURCE 1
#include "load.h"

static int report(const load_thread *sum) {
    const uint64_t requests = sum->latency.n;
    const double seconds = (double)(sum->last - sum->start) / 1e9;
    printf("requests %" PRIu64 "\nper_second %.0f\n", requests,
           seconds > 0 ? (double)requests / seconds : 0);
    printf("p50_us %.1f\np99_us %.1f\np99.9_us %.1f\n", histogram_ns(&sum->latency, 0.5) / 1000,
           histogram_ns(&sum->latency, 0.99) / 1000, histogram_ns(&sum->latency, 0.999) / 1000);
    printf("bytes_checked %" PRIu64 "\ncpu_us %" PRId64 "\nerrors %" PRIu64 "\n", sum->bytes,
           bench_cpu() / 1000, sum->errors);
    return requests == 0 || sum->errors > 0;
}

int main(int argc, char **argv) {
    const bench_option table[] = {
        { "--port", &load_options.port, 1, 65535 },
        { "--conns", &load_options.conns, 1, 20000 },
        { "--seconds", &load_options.seconds, 0.01, 60 },
        { "--size", &load_options.size, 1, 1 << 20 },
        { "--pipeline", &load_options.pipeline, 1, 1024 },
        { "--threads", &load_options.threads, 1, 64 },
    };
    if (bench_options(argc, argv, table, BENCH_COUNT(table)) > 0 || load_options.port < 1)
        bench_die("usage: load --port P [--conns, --seconds, --size, --pipeline, --threads N]");
    const size_t n_conns = (size_t)load_options.conns;
    load_conn *conns = load_connections(n_conns);
    alarm((unsigned)load_options.seconds + 2); // if all else fails
    load_thread *workers = load_run((size_t)load_options.threads, conns, n_conns);
    const int rc = report(load_sum(workers, (size_t)load_options.threads));
    free(workers);
    free(conns);
    return rc;
}
