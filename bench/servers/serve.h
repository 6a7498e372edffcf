// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the C servers of bench/tools/net_ratio.sh, so that all do the same work beside their
// system calls: modes, command line, requests and answers, figures. Include it after _GNU_SOURCE is
// set.
//
//   echo   sends back the received bytes
//   http   HTTP/1.1: any GET without a body gets "Hello, World!"; keep-alive, pipelining
//   resp   Redis' protocol: PING, SET and GET on a table in memory
//   idle   as echo; a connection holds a buffer only while its peer takes no more bytes
//   relay  passes bytes on to the server at PORT, and back, one connection for each
//   udp    sends back each datagram, one for each system call
//   udp-many     the same, many for each system call
//   udp-send     answers each datagram, the number of a burst, with that burst: see bursts.h
//   udp-receive  receives bursts, and sends a receipt for each
//   liar   as echo, but the last bit of each read is wrong: a test of the client
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

#include "../rows/bench.h"
#include "bursts.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

// ---- command line: MODE WORKERS [SECONDS [PORT]]

#define SERVE_MODES "echo|http|resp|idle|relay|udp|udp-many|udp-send|udp-receive|liar"
typedef enum serve_mode {
    SERVE_ECHO,
    SERVE_HTTP,
    SERVE_RESP,
    SERVE_IDLE,
    SERVE_RELAY,
    SERVE_UDP, // this mode and the next three are of datagrams
    SERVE_UDP_MANY,
    SERVE_UDP_SEND,
    SERVE_UDP_RECEIVE,
    SERVE_LIAR
} serve_mode;

typedef struct serve_options {
    serve_mode mode;
    unsigned workers, port; // port: of the server that a relay connects to
    int64_t cpu_start;
} serve_options;

static inline int serve_is_udp(serve_mode mode) { return mode >= SERVE_UDP && mode < SERVE_LIAR; }

// Returns the number of the mode, -1 if there is none of that name.
static inline int serve_mode_of(const char *name) {
    static const char all[] = SERVE_MODES;
    const size_t len = strlen(name);
    int mode = 0;
    for (const char *at = all; at; at = strchr(at, '|'), mode++) {
        at += *at == '|';
        if (len > 0 && strncmp(at, name, len) == 0 && (at[len] == '|' || !at[len])) return mode;
    }
    return -1;
}

// SIGALRM ends the program after SECONDS (default 300), in case it is left behind.
static inline serve_options serve_parse(int argc, char **argv) {
    const int n = bench_options(argc, argv, NULL, 0);
    const int mode = n >= 2 ? serve_mode_of(argv[1]) : -1;
    if (mode < 0 || n != (mode == SERVE_RELAY ? 4 : n > 2 ? 3 : 2))
        bench_die("usage: %s " SERVE_MODES " WORKERS [SECONDS [PORT of relay]]", argv[0]);
    alarm(n > 2 ? (unsigned)bench_number("SECONDS", argv[3], 1, 86400) : 300);
    return (serve_options){
        .mode = (serve_mode)mode,
        .workers = (unsigned)bench_number("WORKERS", argv[2], 1, 64),
        .port = n > 3 ? (unsigned)bench_number("PORT", argv[4], 1, 65535) : 0,
    };
}

// Readable when the program must end.
static inline int serve_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static inline struct sockaddr_in serve_address(unsigned port) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

// Sets the options that bursts need.
static inline void serve_set_bursts(int fd, serve_mode mode) {
    burst_buffers(fd);
    if (mode == SERVE_UDP_RECEIVE && burst_set(fd, UDP_GRO, 1) < 0)
        bench_die("UDP_GRO: %s", strerror(errno));
}

// A socket at a free port of 127.0.0.1; a stream's listens.
static inline int serve_socket(serve_mode mode) {
    const int type = serve_is_udp(mode) ? SOCK_DGRAM : SOCK_STREAM;
    const int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const struct sockaddr_in at = serve_address(0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
        (type == SOCK_STREAM && listen(fd, 1024) < 0))
        bench_die("listen: %s", strerror(errno));
    if (serve_is_udp(mode)) serve_set_bursts(fd, mode);
    return fd;
}

static inline void serve_begin(serve_options *o, int fd) {
    struct sockaddr_in at = { .sin_port = 0 };
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        bench_die("getsockname: %s", strerror(errno));
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    o->cpu_start = bench_cpu();
}

static inline void serve_report(const serve_options *o, uint64_t requests, uint64_t bytes) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("requests %" PRIu64 "\nbytes %" PRIu64 "\ncpu_us %" PRId64 "\nwakes %ld\n", requests,
           bytes, (bench_cpu() - o->cpu_start) / 1000, u.ru_nvcsw);
}

// ---- HTTP. Each parser looks for one request in n bytes, writes its answer, and returns the
// length of the request, SERVE_MORE or SERVE_BROKEN.

enum { SERVE_MORE = -1, SERVE_BROKEN = -2 };
enum { SERVE_IN = 4096, SERVE_OUT = 2560, SERVE_ANSWER_MAX = 128 };

// Returns the length of a line with its end, 0 if that has not come; *len: without it.
static inline size_t serve_line(const char *at, size_t n, size_t *len) {
    const char *end = memchr(at, '\n', n);
    if (!end) return 0;
    *len = (size_t)(end - at) - (end > at && end[-1] == '\r');
    return (size_t)(end - at) + 1;
}

static inline int serve_is_field(const char *at, size_t n) {
    static const char length[] = "content-length:", coding[] = "transfer-encoding:";
    if (n >= sizeof length - 1 && strncasecmp(at, length, sizeof length - 1) == 0) return 0;
    if (n >= sizeof coding - 1 && strncasecmp(at, coding, sizeof coding - 1) == 0) return 0;
    return memchr(at, ':', n) != NULL;
}

static inline ptrdiff_t serve_http(const char *in, size_t n, char *out, size_t *out_len) {
    static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                "Content-Length: 13\r\n\r\nHello, World!";
    static const char version[] = " HTTP/1.1";
    size_t len = 0, at = 0, whole = serve_line(in, n, &len);
    if (whole == 0) return SERVE_MORE;
    if (len < 4 + sizeof version || memcmp(in, "GET /", 5) != 0 ||
        memcmp(in + len + 1 - sizeof version, version, sizeof version - 1) != 0)
        return SERVE_BROKEN;
    for (;;) {
        at += whole;
        whole = serve_line(in + at, n - at, &len);
        if (whole == 0) return SERVE_MORE;
        if (len == 0) break;
        if (!serve_is_field(in + at, len)) return SERVE_BROKEN;
    }
    memcpy(out, hello, sizeof hello - 1);
    *out_len = sizeof hello - 1;
    return (ptrdiff_t)(at + whole);
}

// ---- RESP

enum { SERVE_SLOTS = 4096, SERVE_KEY = 32, SERVE_VALUE = 64, SERVE_WORDS = 3 };

typedef struct serve_text {
    const char *at;
    size_t len;
} serve_text;

typedef struct serve_slot {
    size_t key_len, value_len; // 0: free
    char key[SERVE_KEY], value[SERVE_VALUE];
} serve_slot;

static struct {
    pthread_mutex_t lock;
    serve_slot slots[SERVE_SLOTS];
} serve_table = { .lock = PTHREAD_MUTEX_INITIALIZER };

// The slot of a key, or a free one; NULL if there is neither.
static inline serve_slot *serve_find(serve_text key) {
    uint32_t hash = 2166136261; // FNV-1a
    for (size_t i = 0; i < key.len; i++) hash = (hash ^ (unsigned char)key.at[i]) * 16777619;
    for (size_t i = 0; i < SERVE_SLOTS; i++) {
        serve_slot *s = &serve_table.slots[(hash + i) % SERVE_SLOTS];
        if (s->key_len == 0) return s;
        if (s->key_len == key.len && memcmp(s->key, key.at, key.len) == 0) return s;
    }
    return NULL;
}

static inline size_t serve_say(char *out, const char *text) {
    const size_t n = strlen(text);
    memcpy(out, text, n);
    return n;
}

static inline size_t serve_set(serve_text key, serve_text value, char *out) {
    if (key.len == 0 || key.len > SERVE_KEY || value.len > SERVE_VALUE)
        return serve_say(out, "-ERR too long\r\n");
    pthread_mutex_lock(&serve_table.lock);
    serve_slot *s = serve_find(key);
    if (s) {
        memcpy(s->key, key.at, key.len);
        memcpy(s->value, value.at, value.len);
        s->key_len = key.len;
        s->value_len = value.len;
    }
    pthread_mutex_unlock(&serve_table.lock);
    return serve_say(out, s ? "+OK\r\n" : "-ERR full\r\n");
}

static inline size_t serve_get(serve_text key, char *out) {
    char value[SERVE_VALUE];
    size_t len = 0;
    pthread_mutex_lock(&serve_table.lock);
    const serve_slot *s = serve_find(key);
    const int is_there = s && s->key_len;
    if (is_there) memcpy(value, s->value, len = s->value_len);
    pthread_mutex_unlock(&serve_table.lock);
    if (!is_there) return serve_say(out, "$-1\r\n");
    const size_t head = (size_t)snprintf(out, SERVE_ANSWER_MAX, "$%zu\r\n", len);
    memcpy(out + head, value, len);
    memcpy(out + head + len, "\r\n", 2);
    return head + len + 2;
}

static inline int serve_is(serve_text word, const char *name) {
    return word.len == strlen(name) && strncasecmp(word.at, name, word.len) == 0;
}

static inline size_t serve_command(const serve_text *word, ptrdiff_t n, char *out) {
    if (n == 1 && serve_is(word[0], "PING")) return serve_say(out, "+PONG\r\n");
    if (n == 2 && serve_is(word[0], "GET")) return serve_get(word[1], out);
    if (n == 3 && serve_is(word[0], "SET")) return serve_set(word[1], word[2], out);
    return serve_say(out, "-ERR unknown command\r\n");
}

// "*3\r\n" or "$5\r\n" at *at, which is moved past it.  returns: the number, or an error
static inline ptrdiff_t serve_number(const char *in, size_t n, size_t *at, char mark) {
    size_t i = *at;
    ptrdiff_t number = 0;
    if (i < n && in[i] != mark) return SERVE_BROKEN;
    for (i++; i < n && in[i] >= '0' && in[i] <= '9'; i++) {
        if (number > SERVE_IN) return SERVE_BROKEN;
        number = number * 10 + (in[i] - '0');
    }
    if (i + 2 > n) return SERVE_MORE;
    if (in[i] != '\r' || in[i + 1] != '\n') return SERVE_BROKEN;
    *at = i + 2;
    return number;
}

static inline ptrdiff_t serve_resp(const char *in, size_t n, char *out, size_t *out_len) {
    serve_text word[SERVE_WORDS];
    size_t at = 0;
    const ptrdiff_t count = serve_number(in, n, &at, '*');
    if (count < 0) return count;
    if (count == 0 || count > SERVE_WORDS) return SERVE_BROKEN;
    for (ptrdiff_t i = 0; i < count; i++) {
        const ptrdiff_t len = serve_number(in, n, &at, '$');
        if (len < 0) return len;
        word[i] = (serve_text){ in + at, (size_t)len };
        at += (size_t)len + 2;
        if (at > n) return SERVE_MORE;
        if (in[at - 2] != '\r' || in[at - 1] != '\n') return SERVE_BROKEN;
    }
    *out_len = serve_command(word, count, out);
    return (ptrdiff_t)at;
}

// ---- connections. The server reads to serve_at, reports it by serve_read, and writes answers as
// long as serve_answer returns 1; then it reads on, unless the connection is broken.

typedef struct serve_io {
    serve_mode mode;
    int is_broken;
    size_t have;        // bytes of `in` that are not answered
    const char *answer; // the pending answer
    size_t len;
    uint64_t requests, bytes;
    char in[SERVE_IN], out[SERVE_OUT];
} serve_io;

static inline void serve_reset(serve_io *io, serve_mode mode) {
    memset(io, 0, offsetof(serve_io, in));
    io->mode = mode;
}
static inline serve_io *serve_open(serve_mode mode) {
    serve_io *io = malloc(sizeof *io);
    if (!io) bench_die("out of memory");
    serve_reset(io, mode);
    return io;
}
// A copy on the heap, of one on the stack that has bytes left.
static inline serve_io *serve_keep(const serve_io *io) {
    serve_io *kept = malloc(sizeof *kept);
    if (!kept) bench_die("out of memory");
    memcpy(kept, io, sizeof *kept);
    if (io->answer) kept->answer = (const char *)kept + (io->answer - (const char *)io);
    return kept;
}

static inline char *serve_at(serve_io *io) { return io->in + io->have; }
static inline size_t serve_room(const serve_io *io) { return SERVE_IN - io->have; }
static inline void serve_read(serve_io *io, size_t n) { io->have += n; }

static inline void serve_answer_echo(serve_io *io) {
    io->answer = io->in;
    io->len = io->have;
    io->have = 0;
    io->requests += io->len > 0; // a read: one message, if these are short and not pipelined
}

static inline void serve_answer_all(serve_io *io) {
    size_t at = 0, len = 0;
    io->answer = io->out;
    while (at < io->have && io->len + SERVE_ANSWER_MAX <= SERVE_OUT) {
        const ptrdiff_t n =
            (io->mode == SERVE_HTTP ? serve_http : serve_resp)(io->in + at, io->have - at,
                                                              io->out + io->len, &len);
        if (n == SERVE_BROKEN || (n == SERVE_MORE && io->have - at == SERVE_IN)) io->is_broken = 1;
        if (n < 0) break;
        at += (size_t)n;
        io->len += len;
        io->requests++;
    }
    io->have -= at;
    if (io->have > 0 && at > 0) memmove(io->in, io->in + at, io->have);
}

// Returns 1 if there is an answer to write: all of it, before the next call.
static inline int serve_answer(serve_io *io) {
    io->len = 0;
    if (io->mode == SERVE_LIAR && io->have > 0) io->in[io->have - 1] ^= 1;
    if (io->mode == SERVE_ECHO || io->mode == SERVE_LIAR) serve_answer_echo(io);
    else if (!io->is_broken) serve_answer_all(io);
    io->bytes += io->len;
    return io->len > 0;
}

// ---- datagrams

enum { SERVE_DATAGRAMS = 32, SERVE_DATAGRAM = 1500, SERVE_JOINED = 65536 };

// Many datagrams in one call, which are sent back as they have come.
typedef struct serve_batch {
    struct mmsghdr v[SERVE_DATAGRAMS];
    struct iovec part[SERVE_DATAGRAMS];
    struct sockaddr_in from[SERVE_DATAGRAMS];
    char in[SERVE_DATAGRAMS][SERVE_DATAGRAM];
} serve_batch;

// Prepares the first n for a receive.
static inline void serve_batch_clear(serve_batch *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        b->part[i] = (struct iovec){ b->in[i], sizeof b->in[i] };
        b->v[i].msg_hdr = (struct msghdr){ .msg_name = &b->from[i],
                                           .msg_namelen = sizeof b->from[i],
                                           .msg_iov = &b->part[i],
                                           .msg_iovlen = 1 };
    }
}

static inline serve_batch *serve_batch_new(void) {
    serve_batch *b = calloc(1, sizeof *b);
    if (!b) bench_die("out of memory");
    serve_batch_clear(b, SERVE_DATAGRAMS);
    return b;
}

// Prepares the first n for their way back.
static inline uint64_t serve_batch_turn(serve_batch *b, size_t n) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += b->part[i].iov_len = b->v[i].msg_len;
    return bytes;
}

// The state of a server of bursts: a burst to be sent, or room for joined datagrams.
typedef struct serve_burst {
    burst_receipt receipt;
    uint64_t number;
    char joined[SERVE_JOINED];
} serve_burst;

static inline serve_burst *serve_burst_new(void) {
    serve_burst *b = calloc(1, sizeof *b);
    if (!b) bench_die("out of memory");
    burst_clear(b->joined);
    return b;
}

#endif // BENCH_SERVE_H
