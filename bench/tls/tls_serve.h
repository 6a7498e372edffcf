// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the TLS echo servers of bench/tools/tls_ratio.sh: command line and figures. Include it
// after _GNU_SOURCE is set.
//
//   SERVER CHAIN KEY [SECONDS]
//
// Listens on a free port of 127.0.0.1, prints "port N", and sends back what comes, on one thread,
// until SIGTERM, or is killed after SECONDS (default 300), in case it is left behind. Prints at its
// end what serve.h names. TLS 1.2 and 1.3, with the ciphers and tickets of the library.
#ifndef BENCH_TLS_SERVE_H
#define BENCH_TLS_SERVE_H

#include "../servers/serve.h"

enum { TLS_CHUNK = 16384 }; // of a connection: a record

static inline serve_options tls_parse(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    if (n < 2 || n > 3) bench_die("usage: %s CHAIN KEY [SECONDS]", argv[0]);
    alarm(n > 2 ? (unsigned)bench_number("SECONDS", argv[3], 1, 86400) : 300);
    return (serve_options){ .mode = SERVE_ECHO, .workers = 1 };
}
#endif
