// SPDX-License-Identifier: MIT OR 0BSD
// The load of load.h as a program.
//
//   load [KIND] --port P [--conns 200] [--seconds 4] [--size 64] [--pipeline 1] [--threads 1]
//        [--server PID]
//
//   echo    the default: messages of --size bytes, which come back
//   churn   the same, a connection for each message: connect, send, receive, close
//   http    GET requests; the first answer is read with care, all others must be the same
//   ping    Redis' PING
//   set     Redis' SET and GET in turn, of a key for each connection; each counts
//   udp     datagrams of --size bytes, which come back in order; a lost one is an error
//   burst   asks for bursts of 32 datagrams of 1200 bytes each, and receives them joined
//   flood   sends such bursts, each by one call, and receives a receipt for each; --conns 1
//   idle    a message there and back on each connection; then, with all of them open, the memory of
//           the server, PID, for each: server_bytes, without the memory that it had at the first
// It prints:
//   requests        messages that came back as they were sent, or were answered right
//   per_second      requests / time from the first message to the last reply
//   p50_us ...      from handing a message to the kernel to having read all of the reply, in us;
//                   within 1.6 % (log-linear histogram); with a pipeline it includes the queueing,
//                   with churn the connect
//   bytes_checked   compared
//   cpu_us          CPU time of the client: if near the wall time, the client was the limit
//   errors          connections refused or broken, replies that were wrong or missing
//   server_bytes    with idle: bytes of anonymous memory of the server for a connection
// Exit status 0 only if there were requests and no errors.
#define _GNU_SOURCE 1
#include "load.h"
#include "../servers/bursts.h"

// ---- HTTP

static const char http_get[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: load\r\n"
                               "Accept: */*\r\n\r\n";
static const char http_body[] = "Hello, World!";
static char http_answer[1024];
static size_t http_answer_len;

// Returns the length of an answer, 0 while it is incomplete; ends the program if it is wrong.
static size_t http_length(const char *answer, size_t n) {
    const size_t body = sizeof http_body - 1;
    const char *end = strstr(answer, "\r\n\r\n");
    const char *field = strcasestr(answer, "\r\nContent-Length:");
    if (!end) return 0;
    const size_t head = (size_t)(end - answer) + 4;
    if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0 || !field || field > end ||
        strtoul(strchr(field, ':') + 1, NULL, 10) != body)
        bench_die("not the answer that was meant:\n%.*s", (int)head, answer);
    if (n < head + body) return 0;
    if (n > head + body || memcmp(answer + head, http_body, body) != 0) bench_die("wrong body");
    return n;
}

static void http_learn(void) {
    const struct sockaddr_in to = load_address(INADDR_LOOPBACK, (unsigned)load_options.port);
    const int fd = load_socket(0, 0);
    size_t have = 0;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 ||
        send(fd, http_get, sizeof http_get - 1, MSG_NOSIGNAL) < 0)
        bench_die("the first request: %s", strerror(errno));
    while (!http_answer_len) {
        const ssize_t n = recv(fd, http_answer + have, sizeof http_answer - 1 - have, 0);
        if (n <= 0) bench_die("no answer to the first request");
        have += (size_t)n;
        http_answer_len = http_length(http_answer, have);
    }
    close(fd);
}

static size_t http_request(char *to, uint32_t id, uint64_t sequence) {
    (void)id, (void)sequence;
    memcpy(to, http_get, sizeof http_get - 1);
    return sizeof http_get - 1;
}

static size_t http_reply(char *to, uint32_t id, uint64_t sequence) {
    (void)id, (void)sequence;
    memcpy(to, http_answer, http_answer_len);
    return http_answer_len;
}

// ---- RESP

static char *put(char *to, const char *text) { return stpcpy(to, text); }

static char *put_hex(char *to, uint64_t value, int digits) {
    while (--digits >= 0) *to++ = "0123456789abcdef"[value >> 4 * digits & 15];
    return to;
}

static size_t ping_request(char *to, uint32_t id, uint64_t sequence) {
    (void)id, (void)sequence;
    return (size_t)(put(to, "*1\r\n$4\r\nPING\r\n") - to);
}

static size_t ping_reply(char *to, uint32_t id, uint64_t sequence) {
    (void)id, (void)sequence;
    return (size_t)(put(to, "+PONG\r\n") - to);
}

static char *put_value(char *to, uint32_t id, uint64_t sequence) {
    return put(put_hex(put(to, "$16\r\n"), load_mix((uint64_t)id << 40 ^ sequence / 2), 16),
               "\r\n");
}

static size_t set_request(char *to, uint32_t id, uint64_t sequence) {
    const int is_get = sequence % 2;
    char *at = put(to, is_get ? "*2\r\n$3\r\nGET\r\n$8\r\n" : "*3\r\n$3\r\nSET\r\n$8\r\n");
    at = put(put_hex(at, id, 8), "\r\n");
    return (size_t)((is_get ? at : put_value(at, id, sequence)) - to);
}

static size_t set_reply(char *to, uint32_t id, uint64_t sequence) {
    return (size_t)((sequence % 2 ? put_value(to, id, sequence) : put(to, "+OK\r\n")) - to);
}

// ---- bursts: see ../servers/bursts.h

static size_t burst_request(char *to, uint32_t id, uint64_t sequence) {
    (void)id;
    memcpy(to, &sequence, sizeof sequence);
    return sizeof sequence;
}

static size_t burst_whole(char *to, uint32_t id, uint64_t sequence) {
    (void)id;
    burst_clear(to);
    burst_number(to, sequence);
    return BURST_BYTES;
}

static size_t flood_receipt(char *to, uint32_t id, uint64_t sequence) {
    const burst_receipt expected = burst_expected(sequence);
    (void)id;
    memcpy(to, &expected, sizeof expected);
    return sizeof expected;
}

static void burst_set_up(int fd) {
    burst_buffers(fd);
    if (burst_set(fd, UDP_GRO, 1) < 0) bench_die("UDP_GRO: %s", strerror(errno));
}

static void flood_set_up(int fd) {
    burst_buffers(fd);
    if (burst_set(fd, UDP_SEGMENT, BURST_DATAGRAM) < 0)
        bench_die("UDP_SEGMENT: %s", strerror(errno));
}

// ---- the memory of a server

enum { IDLE_SAMPLES = 40, IDLE_MS = 250 };
static double idle_server;              // process
static int64_t idle_before, idle_after; // bytes

// The size of its anonymous pages: heap and stacks, in whichever way they were allocated.
static int64_t idle_bytes(void) {
    char line[256];
    long long kib = -1;
    snprintf(line, sizeof line, "/proc/%.0f/smaps_rollup", idle_server);
    FILE *f = fopen(line, "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) sscanf(line, "Anonymous: %lld", &kib);
    if (kib < 0) bench_die("--server: no smaps_rollup of it");
    fclose(f);
    return kib * 1024;
}

// Samples until the figure stays the same: a garbage collector may still be at work.
static int64_t idle_settled_bytes(void) {
    const struct timespec pause = { .tv_nsec = IDLE_MS * 1000000L };
    int64_t bytes = idle_bytes();
    for (int i = 0, same = 0; i < IDLE_SAMPLES && same < 4; i++) {
        const int64_t was = bytes;
        nanosleep(&pause, NULL);
        bytes = idle_bytes();
        same = bytes == was ? same + 1 : 0;
    }
    return bytes;
}

static void idle_sample(void) { idle_after = idle_settled_bytes(); }

// Opens one connection, which stays open: memory that the server allocates once does not count.
static void idle_begin(void) {
    const struct sockaddr_in to = load_address(INADDR_LOOPBACK, (unsigned)load_options.port);
    const int fd = load_socket(0, 0);
    char text[] = "first";
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 ||
        send(fd, text, sizeof text, MSG_NOSIGNAL) != sizeof text ||
        recv(fd, text, sizeof text, MSG_WAITALL) != sizeof text)
        bench_die("the first connection: %s", strerror(errno));
    idle_before = idle_settled_bytes();
}

// ---- main

enum { REQUEST_MAX = 128 }; // of a fixed form

static void choose(const char *kind) {
    if (strcmp(kind, "http") == 0) {
        http_learn();
        load_kind.request = http_request, load_kind.reply = http_reply;
        load_kind.max = sizeof http_answer;
    } else if (strcmp(kind, "ping") == 0) {
        load_kind.request = ping_request, load_kind.reply = ping_reply;
        load_kind.max = REQUEST_MAX;
    } else if (strcmp(kind, "set") == 0) {
        load_kind.request = set_request, load_kind.reply = set_reply;
        load_kind.max = REQUEST_MAX;
    } else if (strcmp(kind, "udp") == 0) {
        load_kind.is_datagrams = 1;
    } else if (strcmp(kind, "burst") == 0) {
        load_kind.is_datagrams = 1;
        load_kind.request = burst_request, load_kind.reply = burst_whole;
        load_kind.max = BURST_BYTES, load_kind.set_up = burst_set_up;
    } else if (strcmp(kind, "flood") == 0) {
        if (load_options.conns > 1) bench_die("flood: --conns 1, since receipts count all");
        load_kind.is_datagrams = 1;
        load_kind.request = burst_whole, load_kind.reply = flood_receipt;
        load_kind.max = BURST_BYTES, load_kind.set_up = flood_set_up;
    } else if (strcmp(kind, "idle") == 0) {
        if (idle_server < 1 || load_options.threads > 1)
            bench_die("idle: needs --server PID, and one thread");
        load_options.pipeline = 1;
        load_kind.most = 1, load_kind.hold = idle_sample;
        idle_begin();
    } else if (strcmp(kind, "churn") == 0) {
        load_kind.is_churn = 1;
        load_options.pipeline = 1;
    } else if (strcmp(kind, "echo") != 0) {
        bench_die("%s: not echo, churn, http, ping, set, udp, burst, flood or idle", kind);
    }
}

static int report(const load_thread *sum) {
    const uint64_t requests = sum->latency.n;
    const double seconds = (double)(sum->last - sum->start) / 1e9;
    printf("requests %" PRIu64 "\nper_second %.0f\n", requests,
           seconds > 0 ? (double)requests / seconds : 0);
    printf("p50_us %.1f\np99_us %.1f\np99.9_us %.1f\n", histogram_ns(&sum->latency, 0.5) / 1000,
           histogram_ns(&sum->latency, 0.99) / 1000, histogram_ns(&sum->latency, 0.999) / 1000);
    printf("bytes_checked %" PRIu64 "\ncpu_us %" PRId64 "\nerrors %" PRIu64 "\n", sum->bytes,
           bench_cpu() / 1000, sum->errors);
    if (load_kind.hold)
        printf("server_bytes %.1f\n", (double)(idle_after - idle_before) / load_options.conns);
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
        { "--server", &idle_server, 1, 1 << 30 },
    };
    const int n = bench_options(argc, argv, table, BENCH_COUNT(table));
    if (n > 1 || load_options.port < 1)
        bench_die("usage: load [KIND] --port P [--conns, --seconds, --size, --pipeline, "
                  "--threads, --server N]");
    const size_t n_conns = (size_t)load_options.conns;
    load_conn *conns = load_connections(n_conns);
    choose(n > 0 ? argv[1] : "echo");
    alarm((unsigned)load_options.seconds * 2 + 8 + (load_kind.hold ? 30 : 0)); // if all else fails
    load_thread *workers = load_run((size_t)load_options.threads, conns, n_conns);
    const int rc = report(load_sum(workers, (size_t)load_options.threads));
    free(workers);
    free(conns);
    return rc;
}
