// SPDX-License-Identifier: MIT OR 0BSD
// A load client, neutral between servers: plain C, edge-triggered epoll, no volt.h. Include it
// after _GNU_SOURCE is set, and set load_options and load_kind before load_run.
//
// Once all are open, every connection to 127.0.0.1:port keeps `pipeline` messages under way for the
// given time. load_kind defines the messages and the expected replies: by default `size` bytes that
// depend on connection and sequence number, echoed. Every byte that comes back is compared. Then
// the client waits for the messages under way, at most 4 s.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "../rows/bench.h"
#include "../rows/histogram.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOAD_RECEIVE = 65536, LOAD_EVENTS = 256, LOAD_GRACE_MS = 4000 };
enum { LOAD_CONNECTING = 128, LOAD_CONNECT_MS = 5000 }; // at once: kernels drop excess connections

static struct {
    double port, conns, seconds, size, pipeline, threads;
} load_options = { .conns = 200, .seconds = 4, .size = 64, .pipeline = 1, .threads = 1 };

// ---- messages

static uint64_t load_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void load_fill(char *to, size_t size, uint32_t id, uint64_t sequence) {
    uint64_t word = load_mix((uint64_t)id << 40 ^ sequence);
    for (; size > 0; word += 0x9e3779b97f4a7c15) {
        const size_t n = size < sizeof word ? size : sizeof word;
        memcpy(to, &word, n);
        to += n, size -= n;
    }
}

// Writes message number `sequence` of a connection, or the reply to it, and returns its length.
typedef size_t load_message(char *to, uint32_t id, uint64_t sequence);

static size_t load_echo(char *to, uint32_t id, uint64_t sequence) {
    load_fill(to, (size_t)load_options.size, id, sequence);
    return (size_t)load_options.size;
}

static struct {
    load_message *request, *reply;
    size_t max; // bytes of the longest; 0: load_options.size
    int is_datagrams;
    int is_churn; // a connection for each message; its latency begins before connect
    void (*set_up)(int fd); // NULL or of each socket
    uint64_t most;          // messages of each connection; 0: until the time is over
    void (*hold)(void);     // NULL or called before the connections are closed
} load_kind = { .request = load_echo, .reply = load_echo };

// ---- connections

typedef struct load_conn {
    int fd; // -1: failed, ended or never opened
    int is_connected;
    uint32_t id;
    uint64_t sent, received; // messages
    size_t checked;          // bytes of the message that is arriving
    char *out;               // messages that the socket had no room for yet
    size_t out_from, out_to;
    int64_t *sent_at; // by sequence number modulo `pipeline`
} load_conn;

typedef struct load_thread { // one thread
    pthread_t thread;
    load_conn *conns;
    size_t n_conns, n_started, n_open, n_connecting, size, pipeline;
    uint64_t under_way, bytes, errors;
    int64_t start, last, stop, give_up; // stop: no new messages
    int epoll, is_holding;              // sends nothing new: before its start, or after its stop
    char *expected; // the message that is arriving on the connection at hand
    char in[LOAD_RECEIVE];
    histogram latency;
} load_thread;

static void *load_allocate(size_t n, size_t size) {
    void *p = calloc(n, size);
    if (!p) bench_die("out of memory");
    return p;
}

static void load_fail(load_thread *w, load_conn *c, const char *what) {
    if (w->errors++ == 0)
        fprintf(stderr, "connection %u, message %" PRIu64 ": %s\n", c->id, c->received, what);
    w->under_way -= c->sent - c->received;
    w->n_connecting -= !c->is_connected;
    w->n_open--;
    close(c->fd);
    c->fd = -1;
}

static struct sockaddr_in load_address(uint32_t host, unsigned port) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    a.sin_addr.s_addr = htonl(host);
    return a;
}

static int load_socket(uint32_t id, int flags) {
    const int one = 1, is_tcp = !load_kind.is_datagrams;
    const struct sockaddr_in from = load_address(INADDR_LOOPBACK + 1 + id, 0);
    const int fd = socket(AF_INET, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) bench_die("socket: %s", strerror(errno));
    if (is_tcp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (load_kind.set_up) load_kind.set_up(fd);
    if (!load_kind.is_churn) return fd;
    // one address per client: the ports of a single address might not suffice
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&from, sizeof from) < 0)
        bench_die("bind: %s", strerror(errno));
    return fd;
}

static void load_connect(load_thread *w, load_conn *c) {
    const struct sockaddr_in to = load_address(INADDR_LOOPBACK, (unsigned)load_options.port);
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data = { .ptr = c } };
    c->is_connected = 0;
    c->fd = load_socket(c->id, SOCK_NONBLOCK);
    w->n_open++;
    w->n_connecting++;
    if (load_kind.is_churn) c->sent_at[0] = bench_now();
    if (connect(c->fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        load_fail(w, c, strerror(errno));
    else if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
        bench_die("epoll_ctl: %s", strerror(errno));
}

// The reply has arrived: opens the next connection, or none if it is time to stop.
static void load_reconnect(load_thread *w, load_conn *c) {
    close(c->fd);
    c->fd = -1;
    w->n_open--;
    if (!w->is_holding) load_connect(w, c);
}

static void load_start(load_thread *w, load_conn *c) {
    c->out = load_allocate(w->pipeline, w->size);
    c->sent_at = load_allocate(w->pipeline, sizeof *c->sent_at);
    load_connect(w, c);
}

static const char *load_flush(load_conn *c) {
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

// Brings the messages under way up to `pipeline`, as far as there is room behind unsent ones; a
// datagram waits for none.
static const char *load_send_more(load_thread *w, load_conn *c, int64_t now) {
    const char *wrong = NULL;
    while (!w->is_holding && c->sent - c->received < w->pipeline &&
           (!load_kind.most || c->sent < load_kind.most) &&
           c->out_to + w->size <= w->pipeline * w->size) {
        if (load_kind.is_datagrams && ((wrong = load_flush(c)) || c->out_to)) return wrong;
        c->out_to += load_kind.request(c->out + c->out_to, c->id, c->sent);
        if (!load_kind.is_churn) c->sent_at[c->sent % w->pipeline] = now;
        c->sent++;
        w->under_way++;
    }
    return load_flush(c);
}

static int load_check(load_thread *w, load_conn *c, const char *in, size_t n, int64_t now) {
    while (n > 0) {
        if (c->received == c->sent) return 0; // an unrequested reply
        const size_t size = load_kind.reply(w->expected, c->id, c->received);
        const size_t missing = size - c->checked, k = n < missing ? n : missing;
        if (memcmp(in, w->expected + c->checked, k) != 0) return 0;
        in += k, n -= k, c->checked += k, w->bytes += k;
        if (c->checked < size) break;
        histogram_add(&w->latency, (uint64_t)(now - c->sent_at[c->received % w->pipeline]));
        c->checked = 0;
        c->received++;
        w->under_way--;
    }
    w->last = now;
    return 1;
}

// The socket is ready.  returns: an error text, or NULL
static const char *load_serve(load_thread *w, load_conn *c) {
    const char *wrong = c->is_connected ? load_flush(c) : load_send_more(w, c, bench_now());
    w->n_connecting -= !c->is_connected;
    c->is_connected = 1;
    while (!wrong) {
        const ssize_t n = recv(c->fd, w->in, sizeof w->in, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? NULL : strerror(errno);
        if (n == 0) return "closed by the server";
        const int64_t now = bench_now();
        w->is_holding = now >= w->stop; // before it has begun, too
        if (!load_check(w, c, w->in, (size_t)n, now)) return "wrong reply";
        if (load_kind.is_churn && c->sent == c->received) return load_reconnect(w, c), NULL;
        wrong = load_send_more(w, c, now);
        if (n < LOAD_RECEIVE && !load_kind.is_datagrams) break;
    }
    return wrong;
}

// ---- threads

static void load_handle_events(load_thread *w, int64_t until) {
    struct epoll_event events[LOAD_EVENTS];
    const int64_t left_ms = (until - bench_now()) / 1000000 + 1;
    const int n = epoll_wait(w->epoll, events, LOAD_EVENTS, left_ms > 0 ? (int)left_ms : 0);
    for (int i = 0; i < n; i++) {
        load_conn *c = events[i].data.ptr;
        const char *wrong = c->fd < 0 ? NULL : load_serve(w, c);
        if (wrong) load_fail(w, c, wrong);
    }
}

static void load_connect_all(load_thread *w) {
    const double most_ms = load_kind.most ? load_options.seconds * 1000 : LOAD_CONNECT_MS;
    const int64_t until = bench_now() + (int64_t)(most_ms * 1e6);
    w->is_holding = 1;
    while ((w->n_started < w->n_conns || w->n_connecting > 0) && bench_now() < until) {
        while (w->n_started < w->n_conns && w->n_connecting < LOAD_CONNECTING)
            load_start(w, &w->conns[w->n_started++]);
        load_handle_events(w, until);
    }
}

static void load_begin(load_thread *w) {
    w->start = w->last = bench_now();
    w->stop = w->start + (int64_t)(load_options.seconds * 1e9);
    w->give_up = w->stop + (int64_t)LOAD_GRACE_MS * 1000000;
    w->is_holding = 0;
    while (load_kind.is_churn && w->n_started < w->n_conns)
        load_start(w, &w->conns[w->n_started++]);
    for (size_t i = 0; i < w->n_started; i++) {
        load_conn *c = &w->conns[i];
        const int is_there = c->fd >= 0 && c->is_connected;
        const char *wrong = is_there ? load_send_more(w, c, bench_now()) : NULL;
        if (wrong) load_fail(w, c, wrong);
    }
}

static void load_end(load_thread *w) {
    w->errors += w->under_way + w->n_conns - w->n_started; // unanswered, or never sent
    for (size_t i = 0; i < w->n_conns; i++) {
        load_conn *c = &w->conns[i];
        if (c->fd >= 0 && !c->sent) load_fail(w, c, "not connected in time");
        if (c->fd >= 0) close(c->fd);
        free(c->out), free(c->sent_at);
    }
    free(w->expected);
    close(w->epoll);
}

static void *load_main(void *arg) {
    load_thread *w = arg;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0) bench_die("epoll_create1: %s", strerror(errno));
    w->expected = load_allocate(1, w->size);
    if (!load_kind.is_churn) load_connect_all(w);
    load_begin(w);
    for (int64_t now = w->start; w->n_open && now < w->give_up; now = bench_now()) {
        w->is_holding = now >= w->stop;
        if ((w->is_holding || load_kind.most) && !w->under_way) break;
        load_handle_events(w, w->is_holding ? w->give_up : w->stop);
    }
    if (load_kind.hold) load_kind.hold();
    load_end(w);
    return NULL;
}

// Returns the threads, which have ended; the caller frees them.
static load_thread *load_run(size_t n, load_conn *conns, size_t n_conns) {
    load_thread *workers = load_allocate(n, sizeof *workers);
    for (size_t i = 0, first = 0; i < n; i++) {
        load_thread *w = &workers[i];
        w->size = load_kind.max ? load_kind.max : (size_t)load_options.size;
        w->pipeline = (size_t)load_options.pipeline;
        w->conns = conns + first;
        w->n_conns = n_conns * (i + 1) / n - first;
        first += w->n_conns;
        if (pthread_create(&w->thread, NULL, load_main, w) != 0) bench_die("pthread_create");
    }
    for (size_t i = 0; i < n; i++) pthread_join(workers[i].thread, NULL);
    return workers;
}

// Adds everything up in the first thread.
static load_thread *load_sum(load_thread *workers, size_t n) {
    load_thread *sum = &workers[0];
    for (size_t i = 1; i < n; i++) {
        histogram_merge(&sum->latency, &workers[i].latency);
        sum->bytes += workers[i].bytes;
        sum->errors += workers[i].errors;
        if (workers[i].start < sum->start) sum->start = workers[i].start;
        if (workers[i].last > sum->last) sum->last = workers[i].last;
    }
    return sum;
}

static load_conn *load_connections(size_t n) {
    load_conn *conns = load_allocate(n, sizeof *conns);
    for (size_t i = 0; i < n; i++) conns[i].fd = -1, conns[i].id = (uint32_t)i;
    return conns;
}

#endif // BENCH_LOAD_H
