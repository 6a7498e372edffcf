// SPDX-License-Identifier: MIT OR 0BSD
// A load client for echo servers, neutral between them: plain C, edge-triggered epoll, no volt.h.
//
//   load --port P [--conns 200] [--seconds 4] [--size 64] [--pipeline 1] [--threads 1]
//
// Every connection to 127.0.0.1:P keeps `pipeline` messages of `size` bytes under way for the given
// time. Their bytes depend on connection and sequence number, and every byte that comes back is
// compared. Then the client waits for what is still under way, at most 1 s. It prints:
//   requests        messages that came back as they were sent
//   per_second      requests / time from the first connect to the last reply
//   p50_us ...      from handing a message to the kernel to having read all of it, in us; within
//                   1.6 % (log-linear histogram); with a pipeline it includes the queueing
//   bytes_checked   compared
//   cpu_us          CPU time of the client: near the wall time, the client was the limit
//   errors          connections refused or broken, replies that were wrong or missing
// Exit status 0 only if there were requests and no errors.
#define _GNU_SOURCE 1
#include "bench.h"
#include "histogram.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE = 65536, EVENTS = 256, GRACE_MS = 1000 };

static struct {
    double port, conns, seconds, size, pipeline, threads;
} options = { .conns = 200, .seconds = 4, .size = 64, .pipeline = 1, .threads = 1 };

// ---- messages

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void fill(char *to, size_t size, uint32_t id, uint64_t sequence) {
    const uint64_t key = mix((uint64_t)id << 40 ^ sequence);
    for (size_t at = 0; at < size; at += sizeof key) {
        const uint64_t word = mix(key + at);
        memcpy(to + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

// ---- connections

typedef struct connection {
    int fd; // -1: failed or never opened
    uint32_t id;
    uint64_t sent, received; // messages
    size_t checked;          // bytes of the message that is arriving
    char *out;               // messages that the socket had no room for yet
    size_t out_from, out_to;
    int64_t *sent_at; // by sequence number modulo `pipeline`
} connection;

typedef struct worker { // one thread
    pthread_t thread;
    connection *conns;
    size_t n_conns, n_open, size, pipeline;
    uint64_t under_way, bytes, errors;
    int64_t start, last, stop, give_up; // stop: no new messages
    int epoll, is_stopping;
    char *expected; // the message that is arriving on the connection at hand
    char in[RECEIVE];
    histogram latency;
} worker;

static void *allocate(size_t n, size_t size) {
    void *p = calloc(n, size);
    if (!p) bench_die("out of memory");
    return p;
}

static void fail(worker *w, connection *c, const char *what) {
    if (w->errors++ == 0)
        fprintf(stderr, "connection %u, message %" PRIu64 ": %s\n", c->id, c->received, what);
    w->under_way -= c->sent - c->received;
    w->n_open--;
    close(c->fd);
    c->fd = -1;
}

static void start(worker *w, connection *c) {
    const int one = 1;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)options.port) };
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data = { .ptr = c } };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->out = allocate(w->pipeline, w->size);
    c->sent_at = allocate(w->pipeline, sizeof *c->sent_at);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) bench_die("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    w->n_open++;
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        fail(w, c, strerror(errno));
    else if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
        bench_die("epoll_ctl: %s", strerror(errno));
}

static const char *flush(connection *c) {
    while (c->out_from < c->out_to) {
        const size_t len = c->out_to - c->out_from;
        const ssize_t n = send(c->fd, c->out + c->out_from, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return NULL;
        if (n < 0 && errno != EINTR) return strerror(errno);
        if (n > 0) c->out_from += (size_t)n;
    }
    c->out_from = c->out_to = 0;
    return NULL;
}

// Brings the messages under way up to `pipeline`, as far as there is room behind unsent ones.
static const char *send_more(worker *w, connection *c, int64_t now) {
    while (!w->is_stopping && c->sent - c->received < w->pipeline &&
           c->out_to + w->size <= w->pipeline * w->size) {
        fill(c->out + c->out_to, w->size, c->id, c->sent);
        c->sent_at[c->sent++ % w->pipeline] = now;
        c->out_to += w->size;
        w->under_way++;
    }
    return flush(c);
}

static int check(worker *w, connection *c, const char *in, size_t n, int64_t now) {
    while (n > 0) {
        const size_t missing = w->size - c->checked, k = n < missing ? n : missing;
        if (c->received == c->sent) return 0; // nobody asked for this
        fill(w->expected, w->size, c->id, c->received);
        if (memcmp(in, w->expected + c->checked, k) != 0) return 0;
        in += k, n -= k, c->checked += k, w->bytes += k;
        if (c->checked < w->size) break;
        histogram_add(&w->latency, (uint64_t)(now - c->sent_at[c->received % w->pipeline]));
        c->checked = 0;
        c->received++;
        w->under_way--;
    }
    w->last = now;
    return 1;
}

// The socket is ready for something.  gives: what is wrong, or NULL
static const char *serve(worker *w, connection *c) {
    const char *wrong = c->sent ? flush(c) : send_more(w, c, bench_now());
    while (!wrong) {
        const ssize_t n = recv(c->fd, w->in, sizeof w->in, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? NULL : strerror(errno);
        if (n == 0) return "closed by the server";
        const int64_t now = bench_now();
        if (!check(w, c, w->in, (size_t)n, now)) return "wrong reply";
        wrong = send_more(w, c, now);
        if (n < RECEIVE) break;
    }
    return wrong;
}

// ---- threads

static void handle_events(worker *w, int64_t until) {
    struct epoll_event events[EVENTS];
    const int64_t left_ms = (until - bench_now()) / 1000000 + 1;
    const int n = epoll_wait(w->epoll, events, EVENTS, left_ms > 0 ? (int)left_ms : 0);
    for (int i = 0; i < n; i++) {
        connection *c = events[i].data.ptr;
        const char *wrong = c->fd < 0 ? NULL : serve(w, c);
        if (wrong) fail(w, c, wrong);
    }
}

static void *worker_main(void *arg) {
    worker *w = arg;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0) bench_die("epoll_create1: %s", strerror(errno));
    w->expected = allocate(1, w->size);
    for (size_t i = 0; i < w->n_conns; i++) start(w, &w->conns[i]);
    for (int64_t now = w->start; w->n_open && now < w->give_up; now = bench_now()) {
        w->is_stopping = now >= w->stop;
        if (w->is_stopping && !w->under_way) break;
        handle_events(w, w->is_stopping ? w->give_up : w->stop);
    }
    w->errors += w->under_way; // never came back
    for (size_t i = 0; i < w->n_conns; i++) {
        connection *c = &w->conns[i];
        if (c->fd >= 0 && !c->sent) fail(w, c, "not connected in time");
        if (c->fd >= 0) close(c->fd);
        free(c->out), free(c->sent_at);
    }
    free(w->expected);
    close(w->epoll);
    return NULL;
}

static worker *workers_run(size_t n, connection *conns, size_t n_conns) {
    worker *workers = allocate(n, sizeof *workers);
    const int64_t now = bench_now(), stop = now + (int64_t)(options.seconds * 1e9);
    for (size_t i = 0, first = 0; i < n; i++) {
        worker *w = &workers[i];
        w->size = (size_t)options.size;
        w->pipeline = (size_t)options.pipeline;
        w->start = w->last = now;
        w->stop = stop;
        w->give_up = stop + (int64_t)GRACE_MS * 1000000;
        w->conns = conns + first;
        w->n_conns = n_conns * (i + 1) / n - first;
        first += w->n_conns;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) bench_die("pthread_create");
    }
    for (size_t i = 0; i < n; i++) pthread_join(workers[i].thread, NULL);
    return workers;
}

// Adds everything up in the first one and prints it.
static int report(worker *workers, size_t n) {
    worker *sum = &workers[0];
    for (size_t i = 1; i < n; i++) {
        histogram_merge(&sum->latency, &workers[i].latency);
        sum->bytes += workers[i].bytes;
        sum->errors += workers[i].errors;
        if (workers[i].last > sum->last) sum->last = workers[i].last;
    }
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
        { "--port", &options.port, 1, 65535 },        { "--conns", &options.conns, 1, 20000 },
        { "--seconds", &options.seconds, 0.01, 60 },  { "--size", &options.size, 1, 1 << 20 },
        { "--pipeline", &options.pipeline, 1, 1024 }, { "--threads", &options.threads, 1, 64 },
    };
    if (bench_options(argc, argv, table, BENCH_COUNT(table)) > 0 || options.port < 1)
        bench_die("usage: load --port P [--conns, --seconds, --size, --pipeline, --threads N]");
    const size_t n_conns = (size_t)options.conns;
    connection *conns = allocate(n_conns, sizeof *conns);
    for (size_t i = 0; i < n_conns; i++) conns[i].fd = -1, conns[i].id = (uint32_t)i;
    alarm((unsigned)options.seconds + 2); // if all else fails
    worker *workers = workers_run((size_t)options.threads, conns, n_conns);
    const int rc = report(workers, (size_t)options.threads);
    free(workers);
    free(conns);
    return rc;
}
