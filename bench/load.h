// SPDX-License-Identifier: MIT OR 0BSD
// A load client for echo servers, neutral between them: plain C, edge-triggered epoll, no volt.h.
// Include it after _GNU_SOURCE is set, and set load_options before load_run.
//
// Every connection to 127.0.0.1:port keeps `pipeline` messages of `size` bytes under way for the
// given time. Their bytes depend on connection and sequence number, and every byte that comes back
// is compared. Then the client waits for what is still under way, at most 1 s.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

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

enum { LOAD_RECEIVE = 65536, LOAD_EVENTS = 256, LOAD_GRACE_MS = 1000 };

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
    const uint64_t key = load_mix((uint64_t)id << 40 ^ sequence);
    for (size_t at = 0; at < size; at += sizeof key) {
        const uint64_t word = load_mix(key + at);
        memcpy(to + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

// ---- connections

typedef struct load_conn {
    int fd; // -1: failed or never opened
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
    size_t n_conns, n_open, size, pipeline;
    uint64_t under_way, bytes, errors;
    int64_t start, last, stop, give_up; // stop: no new messages
    int epoll, is_stopping;
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
    w->n_open--;
    close(c->fd);
    c->fd = -1;
}

static void load_start(load_thread *w, load_conn *c) {
    const int one = 1;
    struct sockaddr_in to = { .sin_family = AF_INET };
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data = { .ptr = c } };
    to.sin_port = htons((uint16_t)load_options.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->out = load_allocate(w->pipeline, w->size);
    c->sent_at = load_allocate(w->pipeline, sizeof *c->sent_at);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) bench_die("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    w->n_open++;
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        load_fail(w, c, strerror(errno));
    else if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
        bench_die("epoll_ctl: %s", strerror(errno));
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

// Brings the messages under way up to `pipeline`, as far as there is room behind unsent ones.
static const char *load_send_more(load_thread *w, load_conn *c, int64_t now) {
    while (!w->is_stopping && c->sent - c->received < w->pipeline &&
           c->out_to + w->size <= w->pipeline * w->size) {
        load_fill(c->out + c->out_to, w->size, c->id, c->sent);
        c->sent_at[c->sent++ % w->pipeline] = now;
        c->out_to += w->size;
        w->under_way++;
    }
    return load_flush(c);
}

static int load_check(load_thread *w, load_conn *c, const char *in, size_t n, int64_t now) {
    while (n > 0) {
        const size_t missing = w->size - c->checked, k = n < missing ? n : missing;
        if (c->received == c->sent) return 0; // nobody asked for this
        load_fill(w->expected, w->size, c->id, c->received);
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
static const char *load_serve(load_thread *w, load_conn *c) {
    const char *wrong = c->sent ? load_flush(c) : load_send_more(w, c, bench_now());
    while (!wrong) {
        const ssize_t n = recv(c->fd, w->in, sizeof w->in, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? NULL : strerror(errno);
        if (n == 0) return "closed by the server";
        const int64_t now = bench_now();
        if (!load_check(w, c, w->in, (size_t)n, now)) return "wrong reply";
        wrong = load_send_more(w, c, now);
        if (n < LOAD_RECEIVE) break;
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

static void *load_main(void *arg) {
    load_thread *w = arg;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0) bench_die("epoll_create1: %s", strerror(errno));
    w->expected = load_allocate(1, w->size);
    for (size_t i = 0; i < w->n_conns; i++) load_start(w, &w->conns[i]);
    for (int64_t now = w->start; w->n_open && now < w->give_up; now = bench_now()) {
        w->is_stopping = now >= w->stop;
        if (w->is_stopping && !w->under_way) break;
        load_handle_events(w, w->is_stopping ? w->give_up : w->stop);
    }
    w->errors += w->under_way; // never came back
    for (size_t i = 0; i < w->n_conns; i++) {
        load_conn *c = &w->conns[i];
        if (c->fd >= 0 && !c->sent) load_fail(w, c, "not connected in time");
        if (c->fd >= 0) close(c->fd);
        free(c->out), free(c->sent_at);
    }
    free(w->expected);
    close(w->epoll);
    return NULL;
}

// Gives the threads, which have ended; to be freed.
static load_thread *load_run(size_t n, load_conn *conns, size_t n_conns) {
    load_thread *workers = load_allocate(n, sizeof *workers);
    const int64_t now = bench_now(), stop = now + (int64_t)(load_options.seconds * 1e9);
    for (size_t i = 0, first = 0; i < n; i++) {
        load_thread *w = &workers[i];
        w->size = (size_t)load_options.size;
        w->pipeline = (size_t)load_options.pipeline;
        w->start = w->last = now;
        w->stop = stop;
        w->give_up = stop + (int64_t)LOAD_GRACE_MS * 1000000;
        w->conns = conns + first;
        w->n_conns = n_conns * (i + 1) / n - first;
        first += w->n_conns;
        if (pthread_create(&w->thread, NULL, load_main, w) != 0) bench_die("pthread_create");
    }
    for (size_t i = 0; i < n; i++) pthread_join(workers[i].thread, NULL);
    return workers;
}

// Adds everything up in the first one.
static load_thread *load_sum(load_thread *workers, size_t n) {
    load_thread *sum = &workers[0];
    for (size_t i = 1; i < n; i++) {
        histogram_merge(&sum->latency, &workers[i].latency);
        sum->bytes += workers[i].bytes;
        sum->errors += workers[i].errors;
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
