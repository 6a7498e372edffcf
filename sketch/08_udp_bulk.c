// SPDX-License-Identifier: MIT OR 0BSD
// Sends and receives bulk data over UDP, and measures: throughput once a second, datagrams that
// were lost, came late or came twice. One call sends or receives many datagrams, which the kernel
// or the device divides (UDP_SEGMENT) and gathers (UDP_GRO).
//   - A sender begins with a greeting and ends with a farewell, which the receiver answers: the
//     farewell by what it has counted. Between them it only sends.
//   - A token bucket keeps the sender to its rate: in bursts of a millisecond at most.
//   - An ICMP error, such as that of a receiver that has gone, ends the sender after two seconds;
//     errors that pass are counted.
//   - With -i the receiver also counts marks of congestion (ECN) and service classes (DSCP).
// Both sides use loopback addresses; the receiver ignores datagrams of other machines.
//
//     cc -I. -pthread sketch/08_udp_bulk.c -o bulk
//     ./bulk recv 127.0.0.1:9000
//     ./bulk send 127.0.0.1:9000 1000 2000        1000 megabytes at 2000 Mbit/s
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    RECEIVE_BYTES = 65536, // the most that one receive gives
    SEND_BYTES = 61440,    // the most that one send is given
    SEGMENT_DEFAULT = 1400,
    SEGMENT_MAX = 9000,
    SOCKET_BYTES = 4 << 20, // of the kernel's buffers
    PEERS_MAX = 64,
    WINDOW = 4096 // sequence numbers in which a receiver recognises a datagram that came twice
};
enum { EXCHANGE_TRIES = 10, EXCHANGE_MS = 300, ERROR_GAP_MS = 500, ERROR_S = 2, PEER_IDLE_S = 30 };

// ---- datagrams: a head, and in a report the counts of the receiver

enum kind { HELLO = 1, READY, DATA, BYE, REPORT };
enum { MAGIC = 0x56424c4b, HEAD = 24, N_COUNTS = 5, REPORT_BYTES = HEAD + 8 * N_COUNTS };
#define SEQ_END ((uint64_t)1 << 48)

typedef struct {
    int kind;
    uint64_t session; // a random number of the sender
    uint64_t seq;     // DATA: from 0 on; HELLO: the number of datagrams planned; BYE: those sent
} head;

static void put64(unsigned char *p, uint64_t v) {
    for (int i = 7; i >= 0; i--, v >>= 8) p[i] = (unsigned char)v;
}
static uint64_t get64(const unsigned char *p) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | p[i];
    return v;
}
static void head_write(unsigned char *p, const head *h) {
    put64(p, (uint64_t)MAGIC << 32 | (uint64_t)(unsigned)h->kind);
    put64(p + 8, h->session);
    put64(p + 16, h->seq);
}
// Returns 1, or 0 if it is no datagram of this program.
static int head_read(head *h, const unsigned char *p, size_t len) {
    if (len < HEAD || get64(p) >> 32 != MAGIC) return 0;
    h->kind = (int)(get64(p) & 0xff);
    h->session = get64(p + 8);
    h->seq = get64(p + 16);
    return h->kind >= HELLO && h->kind <= REPORT && h->seq < SEQ_END;
}

// Returns 1 for an address of the loopback interface: 127.0.0.0/8, the same mapped to IPv6, or ::1.
static int addr_is_loopback(const volt_addr *a) {
    socklen_t len;
    const void *sa = volt_addr_sockaddr(a, &len);
    if (volt_addr_family(a) == AF_INET)
        return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
    if (volt_addr_family(a) != AF_INET6) return 0;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}
static int addr_is_any(const volt_addr *a) {
    socklen_t len;
    const void *sa = volt_addr_sockaddr(a, &len);
    if (volt_addr_family(a) == AF_INET)
        return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
    return volt_addr_family(a) == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

// Calls print(arg, seconds since the start) once a second. It is an arm beside the work, so that
// both are polled by one task and may use the same counters.
typedef struct {
    volt_frame frame;
    volt_interval tick;
    volt_time start;
    int64_t n;
} ticking;
static volt_poll ticking_run(volt_cx *cx, ticking *t, void (*print)(void *arg, double at),
                             void *arg) {
    VOLT_BEGIN(cx, t);
    t->start = volt_now();
    volt_interval_init(&t->tick, VOLT_S(1));
    t->tick.missed = VOLT_MISSED_SKIP;
    for (;;) {
        VOLT_AWAIT(t->n, volt_interval_next(cx, &t->tick));
        if (t->n < 0) break;
        print(arg, (double)(volt_now() - t->start) / 1e9);
    }
    VOLT_END(t->n);
}

// ---- the sender

// A bucket of bytes that may be sent. It fills at a steady rate up to its depth.
typedef struct {
    double rate;          // bytes in a nanosecond; 0: no limit
    double level, depth;  // bytes; a level below 0 is a debt
    volt_time filled;     // when the level was computed
} bucket;

// Takes bytes from the bucket. Returns the time from which on they may be sent.
static volt_time bucket_take(bucket *b, size_t bytes, volt_time now) {
    if (b->rate <= 0) return now;
    b->level += (double)(now - b->filled) * b->rate;
    if (b->level > b->depth) b->level = b->depth;
    b->filled = now;
    b->level -= (double)bytes;
    return b->level >= 0 ? now : now + (volt_time)(-b->level / b->rate) + 1;
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    head out_head, in_head;
    int want;
    unsigned n_tries;
    volt_time until;
    int64_t n;
    unsigned char out[HEAD], in[REPORT_BYTES];
} exchange;
typedef struct {
    volt_frame frame;
    size_t len, n_sent;
    volt_time at;
    int64_t n;
} sending;
typedef struct {
    volt_frame frame;
    volt_arm sent, ticked, signalled;
    volt_addr to;
    int fd, sigfd;
    size_t segment, batch; // bytes of a datagram, and of a call
    bucket pace;
    uint64_t session, seq, n_planned;
    uint64_t n_bytes, n_calls, n_errors;
    uint64_t n_bytes_before;                // at the last tick
    volt_time first_error, last_error;      // of a row of errors
    volt_time start, end;
    int64_t rc;
    exchange ex;
    sending send;
    ticking tick;
    unsigned char *buf;
} sender;

// Returns 1 if a datagram is the answer that the exchange waits for.
static int exchange_take(exchange *x) {
    return x->n >= 0 && head_read(&x->in_head, x->in, (size_t)x->n) &&
           x->in_head.kind == x->want && x->in_head.session == x->out_head.session &&
           (x->want != REPORT || x->n == REPORT_BYTES);
}
// Sends a datagram until its answer comes.
//   returns: 1 with the answer in x->in | -ETIMEDOUT if none has come | -errno, of an ICMP message
//            of the last try, too
static volt_poll exchange_run(volt_cx *cx, exchange *x, const sender *s) {
    VOLT_BEGIN(cx, x);
    head_write(x->out, &x->out_head);
    for (x->n_tries = 0; x->n_tries < EXCHANGE_TRIES; x->n_tries++) {
        x->until = volt_now() + VOLT_MS(EXCHANGE_MS);
        VOLT_AWAIT(x->n, volt_before(cx, &x->limit, x->until,
                                     volt_send(cx, s->fd, x->out, sizeof x->out, 0)));
        while (x->n >= 0 || x->n == -EMSGSIZE) { // a datagram may be old, empty or too long
            VOLT_AWAIT(x->n, volt_before(cx, &x->limit, x->until,
                                         volt_recv(cx, s->fd, x->in, sizeof x->in, 0)));
            if (exchange_take(x)) VOLT_RETURN(1);
        }
        if (x->n == -ECANCELED) break;
        if (x->n != -ETIMEDOUT) VOLT_AWAIT(volt_sleep_until(cx, x->until)); // an ICMP error
    }
    VOLT_END(x->n);
}

// Writes the heads of the next datagrams, at most a batch. Returns their bytes.
static size_t batch_fill(sender *s) {
    head h = { .kind = DATA, .session = s->session, .seq = s->seq };
    size_t len = 0;
    for (; len < s->batch && h.seq < s->n_planned; len += s->segment, h.seq++)
        head_write(s->buf + len, &h);
    return len;
}
// Judges an error of a send. Returns 0 if the send is to be repeated, or the error. A datagram to a
// port without a receiver is sent without an error: it is the next call that fails, and the one
// after it succeeds again. So a success does not end a row of errors, but a time without any does.
static int64_t send_judge(sender *s, int64_t rc) {
    volt_time now = volt_now();
    if (rc == -EMSGSIZE || rc == -EINVAL || rc == -EBADF || rc == -ECANCELED) return rc;
    if (now - s->last_error > VOLT_MS(ERROR_GAP_MS)) s->first_error = now;
    s->last_error = now;
    s->n_errors++;
    return now - s->first_error > VOLT_S(ERROR_S) ? rc : 0;
}
//   returns: 0 | -EMSGSIZE if the path takes no datagrams of this size | -errno
static volt_poll sending_run(volt_cx *cx, sending *p, sender *s) {
    VOLT_BEGIN(cx, p);
    while (s->seq < s->n_planned) {
        p->len = batch_fill(s);
        p->at = bucket_take(&s->pace, p->len, volt_now());
        if (p->at > volt_now()) VOLT_AWAIT(volt_sleep_until(cx, p->at));
        for (p->n_sent = 0; p->n_sent < p->len;) {
            VOLT_AWAIT(p->n, volt_send_segments(cx, s->fd, s->buf + p->n_sent, p->len - p->n_sent,
                                                s->segment, NULL));
            if (p->n >= 0) { // whole datagrams, perhaps not all
                p->n_sent += (size_t)p->n;
                s->seq += (uint64_t)p->n / s->segment;
                s->n_bytes += (uint64_t)p->n;
                s->n_calls++;
                continue;
            }
            p->n = send_judge(s, p->n);
            if (p->n < 0) VOLT_RETURN(p->n);
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
        }
    }
    VOLT_END(0);
}

static void sender_print(void *arg, double at) {
    sender *s = (sender *)arg;
    printf("%8.1f s %10.1f Mbit/s %12llu datagrams sent, %llu errors\n", at,
           (double)(s->n_bytes - s->n_bytes_before) * 8 / 1e6, (unsigned long long)s->seq,
           (unsigned long long)s->n_errors);
    fflush(stdout);
    s->n_bytes_before = s->n_bytes;
}
static void sender_print_end(const sender *s) {
    double seconds = (double)(s->end - s->start) / 1e9;
    printf("sent %llu datagrams, %llu bytes in %.2f s, %.1f Mbit/s, %.1f datagrams in a call, %llu "
           "errors\n",
           (unsigned long long)s->seq, (unsigned long long)s->n_bytes, seconds,
           seconds > 0 ? (double)s->n_bytes * 8 / 1e6 / seconds : 0,
           s->n_calls ? (double)s->seq / (double)s->n_calls : 0, (unsigned long long)s->n_errors);
}
static void report_print(const unsigned char *counts) {
    static const char *const texts[N_COUNTS] = { "received", "bytes", "lost", "late", "twice" };
    printf("the receiver says:");
    for (int i = 0; i < N_COUNTS; i++)
        printf(" %s %llu%s", texts[i], (unsigned long long)get64(counts + 8 * i),
               i < N_COUNTS - 1 ? "," : "\n");
}

static volt_poll sender_run(volt_cx *cx, void *arg) {
    sender *s = (sender *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->to)); // from here on ICMP errors are reported
    if (s->rc < 0) goto out;
    s->ex.out_head = (head){ .kind = HELLO, .session = s->session, .seq = s->n_planned };
    s->ex.want = READY;
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->sent, s->rc, exchange_run(cx, &s->ex, s)),
                           VOLT_ARM(&s->signalled, volt_signals_next(cx, s->sigfd, NULL))));
    if (!s->sent.fired) s->rc = -ECANCELED;
    if (s->rc < 0) goto out;

    s->start = s->pace.filled = volt_now();
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->sent, s->rc, sending_run(cx, &s->send, s)),
                           VOLT_ARM(&s->ticked, ticking_run(cx, &s->tick, sender_print, s)),
                           VOLT_ARM(&s->signalled, volt_signals_next(cx, s->sigfd, NULL))));
    s->end = volt_now();
    sender_print_end(s);
    if (!s->sent.fired) s->rc = 0; // stopped: what was sent is reported nevertheless
    if (s->rc < 0) goto out;

    s->ex.out_head = (head){ .kind = BYE, .session = s->session, .seq = s->seq };
    s->ex.want = REPORT;
    VOLT_AWAIT(s->rc, exchange_run(cx, &s->ex, s));
    if (s->rc == 1) report_print(s->ex.in + HEAD);
out:
    volt_close(cx, s->fd);
    volt_close(cx, s->sigfd);
    VOLT_END(s->rc < 0 ? s->rc : 0);
}

// ---- the receiver

// The datagrams that were received in one session of a sender.
typedef struct {
    volt_addr from;
    uint32_t hash;
    int is_used, has_ended;
    uint64_t session;
    uint64_t n_planned, next;                // next: behind the highest number so far
    uint64_t n_received, n_late, n_twice;    // n_received: without those that came twice
    uint64_t n_bytes;
    volt_time last;
    uint64_t seen[WINDOW / 64]; // a bit for each of the last numbers below `next`
} peer;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    int64_t n;
} receiving;
typedef struct {
    volt_frame frame;
    volt_arm received, ticked, signalled;
    int fd, sigfd, has_info;
    int64_t rc;
    peer *peers, *last_peer;
    // totals
    uint64_t n_bytes, n_datagrams, n_batches, n_strangers, n_foreign, n_errors;
    uint64_t n_bytes_before, n_datagrams_before, n_batches_before; // at the last tick
    uint64_t ecn[4], dscp[64];
    // one receive
    volt_addr from;
    size_t segment;
    volt_msg_info info;
    struct msghdr in;
    struct iovec in_iov;
    struct sockaddr_storage name;
    union {
        size_t alignment; // as a cmsghdr begins
        unsigned char bytes[VOLT_MSG_INFO_BYTES];
    } in_control, out_control;
    unsigned char *buf;
    // its answer
    struct msghdr out;
    struct iovec out_iov;
    size_t n_out;
    unsigned char answer[REPORT_BYTES];
    receiving receive;
    ticking tick;
} receiver;

static uint64_t bit_of(uint64_t seq) { return (uint64_t)1 << seq % 64; }
static uint64_t *word_of(peer *p, uint64_t seq) { return &p->seen[seq % WINDOW / 64]; }

static void peer_take(peer *p, uint64_t seq, size_t len) {
    int is_new = 1;
    if (seq >= p->next) {
        if (seq - p->next >= WINDOW) memset(p->seen, 0, sizeof p->seen);
        else
            for (uint64_t i = p->next; i < seq; i++) *word_of(p, i) &= ~bit_of(i);
        p->next = seq + 1;
    } else {
        // one that is older than the window counts as late, although it may have come before
        is_new = p->next - seq > WINDOW || !(*word_of(p, seq) & bit_of(seq));
        p->n_late += is_new ? 1 : 0;
    }
    if (p->next - seq <= WINDOW) *word_of(p, seq) |= bit_of(seq);
    p->n_received += is_new ? 1 : 0;
    p->n_twice += is_new ? 0 : 1;
    p->n_bytes += is_new ? len : 0;
}
static uint64_t peer_lost(const peer *p) {
    return p->next > p->n_received ? p->next - p->n_received : 0;
}

// Finds the session of a datagram; a greeting begins a new one. NULL: there is none, or no room.
static peer *peer_find(receiver *r, const head *h) {
    uint32_t hash = volt_addr_hash(&r->from);
    volt_time now = volt_now();
    peer *at = r->last_peer, *free_place = NULL;
    if (at && at->session == h->session && volt_addr_equal(&at->from, &r->from)) return at;
    for (at = r->peers; at < r->peers + PEERS_MAX; at++) {
        if (at->is_used && at->session == h->session && at->hash == hash &&
            volt_addr_equal(&at->from, &r->from))
            return r->last_peer = at;
        if (!at->is_used || now - at->last > VOLT_S(PEER_IDLE_S)) free_place = at;
    }
    if (h->kind != HELLO || !free_place) return NULL;
    *free_place = (peer){ .from = r->from,
                          .hash = hash,
                          .is_used = 1,
                          .session = h->session,
                          .n_planned = h->seq,
                          .last = now };
    return r->last_peer = free_place;
}
static void peer_print_end(const peer *p) {
    char text[80];
    if (volt_addr_format(&p->from, text, sizeof text) < 0) snprintf(text, sizeof text, "?");
    printf("%s has ended: received %llu, lost %llu, late %llu, twice %llu\n", text,
           (unsigned long long)p->n_received, (unsigned long long)peer_lost(p),
           (unsigned long long)p->n_late, (unsigned long long)p->n_twice);
    fflush(stdout);
}

// Prepares the answer to a greeting or a farewell; of several in a batch the last one counts.
static void answer_prepare(receiver *r, peer *p, const head *asked) {
    const head h = { .kind = asked->kind == HELLO ? READY : REPORT, .session = p->session };
    head_write(r->answer, &h);
    r->n_out = HEAD;
    if (h.kind == READY) return;
    if (p->next < asked->seq) p->next = asked->seq; // the last ones were lost
    const uint64_t counts[N_COUNTS] = { p->n_received, p->n_bytes, peer_lost(p), p->n_late,
                                        p->n_twice };
    for (int i = 0; i < N_COUNTS; i++) put64(r->answer + HEAD + 8 * i, counts[i]);
    r->n_out = REPORT_BYTES;
    if (!p->has_ended) peer_print_end(p);
    p->has_ended = 1; // a farewell that is repeated is answered again
}
static void datagram_take(receiver *r, const unsigned char *data, size_t len) {
    head h;
    peer *p = head_read(&h, data, len) ? peer_find(r, &h) : NULL;
    r->n_datagrams++;
    if (!p || h.kind == READY || h.kind == REPORT || h.seq > p->n_planned) {
        r->n_strangers++;
    } else if (h.kind == DATA) {
        r->n_bytes += len;
        if (!p->has_ended) peer_take(p, h.seq, len);
    } else {
        answer_prepare(r, p, &h);
    }
}
// Takes all datagrams of one receive. They have one sender and one service class.
static void batch_take(receiver *r, size_t len) {
    if (r->has_info) {
        if (volt_addr_from(&r->from, (const struct sockaddr *)&r->name, r->in.msg_namelen) < 0)
            return;
        volt_msg_info_get(&r->in, &r->info);
        r->segment = r->info.has & VOLT_MSG_SEGMENT ? r->info.segment : len;
    }
    if (!addr_is_loopback(&r->from)) {
        r->n_foreign++;
        return;
    }
    r->n_batches++;
    if (len == 0 || r->segment == 0) { // a datagram without bytes
        r->n_datagrams++;
        r->n_strangers++;
        return;
    }
    const uint64_t n_before = r->n_datagrams;
    for (size_t at = 0; at < len; at += r->segment)
        datagram_take(r, r->buf + at, len - at < r->segment ? len - at : r->segment);
    if (r->last_peer) r->last_peer->last = volt_now();
    if (r->has_info && r->info.has & VOLT_MSG_TOS) {
        r->ecn[r->info.tos & 3] += r->n_datagrams - n_before;
        r->dscp[r->info.tos >> 2 & 63] += r->n_datagrams - n_before;
    }
}

// The kernel has written into the header of the message before: each receive needs it anew.
static void in_reset(receiver *r) {
    r->n_out = 0;
    r->info.has = 0;
    r->in_iov = (struct iovec){ .iov_base = r->buf, .iov_len = RECEIVE_BYTES };
    r->in = (struct msghdr){ .msg_name = &r->name,
                             .msg_namelen = sizeof r->name,
                             .msg_iov = &r->in_iov,
                             .msg_iovlen = 1,
                             .msg_control = &r->in_control,
                             .msg_controllen = sizeof r->in_control };
}
// The answer goes out from the address to which the datagram was sent, if that is known.
static void out_prepare(receiver *r) {
    socklen_t len;
    const struct sockaddr *to = volt_addr_sockaddr(&r->from, &len);
    volt_msg_info from = { .has = r->info.has & VOLT_MSG_LOCAL,
                           .local = r->info.local,
                           .interface = r->info.interface };
    r->out_iov = (struct iovec){ .iov_base = r->answer, .iov_len = r->n_out };
    r->out = (struct msghdr){ .msg_name = (void *)(uintptr_t)to,
                              .msg_namelen = len,
                              .msg_iov = &r->out_iov,
                              .msg_iovlen = 1,
                              .msg_control = &r->out_control };
    if (from.has && volt_msg_info_put(&r->out, sizeof r->out_control, &from) == 0) return;
    r->out.msg_control = NULL;
    r->out.msg_controllen = 0;
}

//   returns: -ECANCELED | -EBADF
static volt_poll receiving_run(volt_cx *cx, receiving *p, receiver *r) {
    VOLT_BEGIN(cx, p);
    for (;;) {
        in_reset(r);
        VOLT_AWAIT(p->n, r->has_info ? volt_recvmsg(cx, r->fd, &r->in, 0)
                                     : volt_recv_segments(cx, r->fd, r->buf, RECEIVE_BYTES,
                                                          &r->segment, &r->from));
        if (p->n == -ECANCELED || p->n == -EBADF) break;
        if (p->n < 0) { // memory is short, or the error of an answer that was sent before
            r->n_errors++;
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
            continue;
        }
        batch_take(r, (size_t)p->n);
        if (r->n_out == 0) continue;
        out_prepare(r);
        VOLT_AWAIT(p->n, volt_within(cx, &p->limit, VOLT_S(1),
                                     volt_sendmsg(cx, r->fd, &r->out, 0)));
        if (p->n < 0) r->n_errors++; // the sender repeats its question
    }
    VOLT_END(p->n);
}

static void receiver_print(void *arg, double at) {
    receiver *r = (receiver *)arg;
    uint64_t datagrams = r->n_datagrams - r->n_datagrams_before;
    uint64_t batches = r->n_batches - r->n_batches_before, lost = 0, late = 0, twice = 0;
    if (datagrams == 0) return;
    for (const peer *p = r->peers; p < r->peers + PEERS_MAX; p++) {
        if (!p->is_used || p->has_ended) continue;
        lost += peer_lost(p);
        late += p->n_late;
        twice += p->n_twice;
    }
    printf("%8.1f s %10.1f Mbit/s %10llu datagrams, %5.1f in a call, lost %llu, late %llu, "
           "twice %llu\n",
           at, (double)(r->n_bytes - r->n_bytes_before) * 8 / 1e6, (unsigned long long)datagrams,
           batches ? (double)datagrams / (double)batches : 0, (unsigned long long)lost,
           (unsigned long long)late, (unsigned long long)twice);
    fflush(stdout);
    r->n_bytes_before = r->n_bytes;
    r->n_datagrams_before = r->n_datagrams;
    r->n_batches_before = r->n_batches;
}
static void receiver_print_end(const receiver *r) {
    printf("received %llu datagrams, %llu bytes; %llu of them unknown, %llu batches from other "
           "machines, %llu errors\n",
           (unsigned long long)r->n_datagrams, (unsigned long long)r->n_bytes,
           (unsigned long long)r->n_strangers, (unsigned long long)r->n_foreign,
           (unsigned long long)r->n_errors);
    if (!r->has_info) return;
    printf("ECN: none %llu, ECT(1) %llu, ECT(0) %llu, CE %llu; DSCP:",
           (unsigned long long)r->ecn[0], (unsigned long long)r->ecn[1],
           (unsigned long long)r->ecn[2], (unsigned long long)r->ecn[3]);
    for (int i = 0; i < 64; i++)
        if (r->dscp[i]) printf(" %d: %llu", i, (unsigned long long)r->dscp[i]);
    printf("\n");
}

static volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *r = (receiver *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&r->received, r->rc, receiving_run(cx, &r->receive, r)),
                           VOLT_ARM(&r->ticked, ticking_run(cx, &r->tick, receiver_print, r)),
                           VOLT_ARM(&r->signalled, volt_signals_next(cx, r->sigfd, NULL))));
    receiver_print_end(r);
    volt_close(cx, r->fd);
    volt_close(cx, r->sigfd);
    VOLT_END(r->received.fired ? r->rc : 0);
}

// ---- the program

static int usage(const char *program) {
    fprintf(stderr,
            "usage: %s recv [-i] ADDR\n"
            "       %s send [-s BYTES] [-t TOS] ADDR MEGABYTES [RATE]\n"
            "ADDR: 127.0.0.1:PORT, [::1]:PORT or 0.0.0.0:PORT\n"
            "-i: counts ECN and DSCP. -s: of a datagram, %d to %d. -t: DSCP and ECN, 0 to 255\n"
            "RATE: Mbit/s; without it as fast as the machine can\n",
            program, program, HEAD, SEGMENT_MAX);
    return 2;
}
// Returns the number, or -1 if the text is none or out of range.
static double number(const char *text, double least, double most) {
    char *end;
    double v = strtod(text, &end);
    return end != text && *end == 0 && v >= least && v <= most ? v : -1;
}

static int receive(int has_info, const char *address) {
    static receiver r;
    volt_addr at;
    char text[80];
    volt_udp_options options = { .is_segmented = 1, .receive_bytes = SOCKET_BYTES };
    const volt_config config = { .workers = 1, .log = { .fn = volt_log_stderr } };
    int rc = volt_addr_parse(&at, address);
    if (rc < 0) return rc;
    if (!addr_is_loopback(&at) && !addr_is_any(&at)) return -EACCES;
    // on a wildcard address only the control data tell which address an answer comes from
    options.has_info = (unsigned)(r.has_info = has_info || addr_is_any(&at));
    r.sigfd = VOLT_SIGNALS(SIGINT, SIGTERM);
    if (r.sigfd < 0) return r.sigfd;
    r.fd = volt_udp_open(&at, &options);
    if (r.fd < 0) return r.fd;
    r.peers = (peer *)calloc(PEERS_MAX, sizeof *r.peers);
    r.buf = (unsigned char *)malloc(RECEIVE_BYTES);
    rc = r.peers && r.buf ? volt_local_addr(r.fd, &at) : -ENOMEM;
    if (rc == 0 && volt_addr_format(&at, text, sizeof text) > 0)
        printf("receiving on %s\n", text), fflush(stdout);
    if (rc == 0) rc = volt_run(&config, receiver_run, &r);
    free(r.peers);
    free(r.buf);
    return rc;
}

static int sender_setup(sender *s, const char *address, int segment, int tos, double megabytes,
                        double mbits) {
    volt_udp_options options = { .send_bytes = SOCKET_BYTES };
    volt_addr from;
    int rc = volt_addr_parse(&s->to, address);
    if (rc < 0) return rc;
    if (!addr_is_loopback(&s->to)) return -EACCES;
    s->segment = (size_t)segment;
    s->n_planned = ((uint64_t)(megabytes * 1e6) + s->segment - 1) / s->segment;
    s->pace.rate = mbits * 1e6 / 8 / 1e9;
    s->batch = SEND_BYTES - SEND_BYTES % s->segment;
    if (mbits > 0) { // a millisecond's worth, in whole datagrams
        size_t most = (size_t)(s->pace.rate * 1e6) / s->segment * s->segment;
        s->batch = most < s->segment ? s->segment : most < s->batch ? most : s->batch;
    }
    s->pace.depth = (double)s->batch;
    if (getrandom(&s->session, sizeof s->session, 0) != (ssize_t)sizeof s->session) return -errno;
    s->buf = (unsigned char *)calloc(1, SEND_BYTES);
    if (!s->buf) return -ENOMEM;
    // of the family of the peer, and bound to loopback: nothing leaves the machine
    rc = volt_addr_make(&from, volt_addr_family(&s->to) == AF_INET6 ? "::1" : "127.0.0.1", 0);
    if (rc < 0) return rc;
    s->fd = volt_udp_open(&from, &options);
    if (s->fd < 0) return s->fd;
    return tos ? volt_set_tos(s->fd, tos) : 0;
}
static int send_bulk(const char *address, int segment, int tos, double megabytes, double mbits) {
    static sender s;
    const volt_config config = { .workers = 1, .log = { .fn = volt_log_stderr } };
    s.sigfd = VOLT_SIGNALS(SIGINT, SIGTERM);
    int rc = s.sigfd < 0 ? s.sigfd : sender_setup(&s, address, segment, tos, megabytes, mbits);
    if (rc == 0) rc = volt_run(&config, sender_run, &s);
    free(s.buf);
    if (rc == -EMSGSIZE) fprintf(stderr, "datagrams of %d bytes do not fit: see -s\n", segment);
    if (rc == -ETIMEDOUT || rc == -ECONNREFUSED) fprintf(stderr, "no receiver answers\n");
    return rc;
}

int main(int argc, char **argv) {
    int option, has_info = 0, rc;
    double segment = SEGMENT_DEFAULT, tos = 0;
    if (argc < 2) return usage(argv[0]);
    const int is_send = strcmp(argv[1], "send") == 0;
    if (!is_send && strcmp(argv[1], "recv") != 0) return usage(argv[0]);
    optind = 2;
    while ((option = getopt(argc, argv, is_send ? "s:t:" : "i")) != -1) {
        if (option == 'i') has_info = 1;
        else if (option == 's') segment = number(optarg, HEAD, SEGMENT_MAX);
        else if (option == 't') tos = number(optarg, 0, 255);
        else return usage(argv[0]);
    }
    const int n = argc - optind;
    if (segment < 0 || tos < 0 || (is_send ? n != 2 && n != 3 : n != 1)) return usage(argv[0]);
    if (is_send) {
        double megabytes = number(argv[optind + 1], 0.001, 1e9);
        double mbits = n == 3 ? number(argv[optind + 2], 0.001, 1e6) : 0;
        if (megabytes < 0 || mbits < 0) return usage(argv[0]);
        rc = send_bulk(argv[optind], (int)segment, (int)tos, megabytes, mbits);
    } else {
        rc = receive(has_info, argv[optind]);
    }
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[optind], volt_strerror(rc));
    return rc < 0;
}
