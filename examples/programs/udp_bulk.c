// SPDX-License-Identifier: MIT OR 0BSD
// Sends a file over UDP, and receives it. One call sends or receives many datagrams, which the
// kernel divides (UDP_SEGMENT) and joins (UDP_GRO).
//
//     cc -O2 -I. -pthread examples/programs/udp_bulk.c -o udp_bulk
//     ./udp_bulk recv 127.0.0.1:9000 copy &
//     ./udp_bulk send file 127.0.0.1:9000
//
//   - The datagrams of the file have numbers. The receiver acknowledges each batch by the number of
//     the first datagram that it lacks, and by a bit for each one behind it.
//   - A datagram counts as lost if one that was sent REORDER datagrams later has arrived, or if no
//     acknowledgement comes in time. It is read from the file once more, and sent again.
//   - The sender has a window as TCP has: it grows by what arrives, and is halved by a loss.
//   - Both sides add a checksum of each datagram, in any order. The copy is written beside its
//     name, and gets that name once the sums are equal.
//   - A side that hears nothing from the other one ends with an error.
// The receiver takes one file, from the first sender. Its option -d N drops one datagram in N, to
// show that losses are repaired.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD = 24,
    CONTENT = 1400,          // bytes of the file in a datagram, less in the last one
    SEGMENT = HEAD + CONTENT,
    RUN_MAX = 44,            // datagrams of one call
    SPAN = 2048,             // numbers that are under way at most
    ACK_BYTES = HEAD + SPAN / 8,
    JOINED_BYTES = 65536,    // the most that one receive gives
    SOCKET_BYTES = 4 << 20,  // of the kernel's buffers, as far as the system allows
    WINDOW_FIRST = 64,
    WINDOW_LEAST = 32,
    REORDER = 8
};
enum { ASK_TRIES = 10, ASK_MS = 300, ACK_MS = 100, ACK_MAX_MS = 1000, IDLE_S = 4 };
enum { RESULTS = 10, RESULT_MS = 100 }; // the result is sent so often, at that pace

// ---- datagrams: a head, and then a part of the file, or the bits of an acknowledgement

enum kind { HELLO = 1, READY, DATA, ACK, DONE, RESULT };
static const uint64_t magic = 0x564255u;

typedef struct {
    unsigned kind;
    uint64_t session; // a random number of the sender
    uint64_t value;   // HELLO: bytes of the file; DATA, ACK: a number; DONE: the checksum; RESULT:
                      // 1 if it is that of the receiver
} head;

static void put64(unsigned char *p, uint64_t v) {
    for (int i = 7; i >= 0; i--, v >>= 8) p[i] = (unsigned char)v;
}
static uint64_t get64(const unsigned char *p) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | p[i];
    return v;
}
static void head_write(unsigned char *p, unsigned kind, uint64_t session, uint64_t value) {
    put64(p, magic << 32 | kind);
    put64(p + 8, session);
    put64(p + 16, value);
}
// Returns 1, or 0 if it is no datagram of this program.
static int head_read(head *h, const unsigned char *p, size_t len) {
    if (len < HEAD || get64(p) >> 32 != magic) return 0;
    h->kind = (unsigned)get64(p) & 0xff;
    h->session = get64(p + 8);
    h->value = get64(p + 16);
    return 1;
}

// The content of a datagram in a checksum. The sum over all datagrams does not depend on the order.
static uint64_t sum_of(uint64_t seq, const unsigned char *p, size_t len) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t sum = (seq + 1) * odd;
    for (; len >= 8; p += 8, len -= 8) {
        sum = (sum ^ get64(p)) * odd;
        sum ^= sum >> 32;
    }
    for (; len > 0; p++, len--) sum = (sum ^ *p) * odd;
    return sum;
}
static uint64_t datagrams_of(uint64_t size) { return (size + CONTENT - 1) / CONTENT; }
static size_t content_of(uint64_t size, uint64_t seq) {
    uint64_t left = size - seq * CONTENT;
    return left < CONTENT ? (size_t)left : (size_t)CONTENT;
}

typedef struct { // the frame of a part of a task, whose other state is that of the task
    volt_frame frame;
} part;

// ---- the sender

#define ACKED UINT64_MAX
typedef struct {
    part work, sending, receiving, asking;
    volt_arm sent, received;
    volt_timer limit;
    volt_file_op op;
    volt_notify heard;
    volt_addr to;
    const char *path;
    int fd, file;
    uint64_t session, size, n, sum;
    // Numbers below `base` have arrived; those from `next` on were never sent. tx has, for each
    // number between them, the count of datagrams at its last sending, 0 if it is lost, or ACKED.
    uint64_t base, next, tx[SPAN];
    uint64_t n_tx, newest, cut; // newest: of those that have arrived; cut: at the last loss
    unsigned in_flight, n_lost;
    unsigned window, threshold, n_grown; // n_grown: arrivals that have not widened the window yet
    volt_time start, heard_at, patience;
    uint64_t first, n_again, n_silences;
    unsigned n_run;
    size_t n_out;
    int error; // the last one of the socket
    int64_t rc, n_in;
    unsigned tries, answer;
    head in_head;
    struct stat st;
    unsigned char in[ACK_BYTES], ask[HEAD];
    unsigned char content[RUN_MAX * CONTENT], out[RUN_MAX * SEGMENT];
} sender;

static uint64_t *tx_of(sender *s, uint64_t seq) { return &s->tx[seq % SPAN]; }
static int is_in_flight(uint64_t tx) { return tx != 0 && tx != ACKED; }

// Chooses the next run of datagrams: those that are lost, or new ones. Returns their number, 0 if
// the window is full.
static unsigned run_choose(sender *s) {
    unsigned n = 0, room = s->window > s->in_flight ? s->window - s->in_flight : 0;
    if (room > RUN_MAX) room = RUN_MAX;
    s->first = s->next;
    if (s->n_lost > 0) {
        for (s->first = s->base; *tx_of(s, s->first) != 0;) s->first++;
        while (n < room && s->first + n < s->next && *tx_of(s, s->first + n) == 0) n++;
    } else {
        while (n < room && s->first + n < s->n && s->first + n < s->base + SPAN) n++;
    }
    return n;
}
static void run_write(sender *s) {
    s->n_out = 0;
    for (unsigned i = 0; i < s->n_run; i++) {
        size_t len = content_of(s->size, s->first + i);
        head_write(s->out + s->n_out, DATA, s->session, s->first + i);
        memcpy(s->out + s->n_out + HEAD, s->content + i * CONTENT, len);
        s->n_out += HEAD + len;
    }
}
// Counts the datagrams of a run that were sent. An acknowledgement may have come in the meantime.
static void run_sent(sender *s, unsigned n) {
    for (uint64_t seq = s->first; seq < s->first + n; seq++) {
        if (seq >= s->next) {
            s->next = seq + 1;
            s->sum += sum_of(seq, s->content + (seq - s->first) * CONTENT,
                             content_of(s->size, seq));
        } else if (seq >= s->base && *tx_of(s, seq) == 0) {
            s->n_lost--;
            s->n_again++;
        } else continue;
        *tx_of(s, seq) = ++s->n_tx;
        s->in_flight++;
    }
}

static void lose(sender *s, uint64_t seq) {
    *tx_of(s, seq) = 0;
    s->in_flight--;
    s->n_lost++;
}
// Everything that is older than the newest arrival by REORDER is lost. The window is halved once
// for all that was under way at that time.
static void losses_find(sender *s) {
    int is_new = 0;
    for (uint64_t seq = s->base; seq < s->next; seq++) {
        uint64_t tx = *tx_of(s, seq);
        if (!is_in_flight(tx) || tx + REORDER > s->newest) continue;
        is_new |= tx > s->cut;
        lose(s, seq);
    }
    if (!is_new) return;
    s->cut = s->n_tx;
    s->window /= 2;
    if (s->window < WINDOW_LEAST) s->window = WINDOW_LEAST;
    s->threshold = s->window;
}
// The window grows by each arrival below the threshold, and above it by one for a whole window.
static void window_widen(sender *s, unsigned n) {
    if (s->window < s->threshold) s->window += n;
    else s->n_grown += n;
    for (; s->n_grown >= s->window; s->window++) s->n_grown -= s->window;
    if (s->window > SPAN) s->window = SPAN;
}
static void ack_take(sender *s, uint64_t lacks, const unsigned char *bits, size_t n_bits) {
    unsigned n = 0;
    if (lacks > s->next) return; // of no datagram of this sender
    for (uint64_t seq = s->base; seq < s->next; seq++) {
        uint64_t *tx = tx_of(s, seq), at = seq - lacks;
        if (*tx == ACKED || (seq >= lacks && (at >= n_bits || !(bits[at / 8] >> at % 8 & 1))))
            continue;
        if (*tx == 0) s->n_lost--;
        else s->in_flight--;
        if (*tx > s->newest) s->newest = *tx;
        *tx = ACKED;
        n++;
    }
    while (s->base < s->next && *tx_of(s, s->base) == ACKED) s->base++;
    window_widen(s, n);
    losses_find(s);
    s->patience = VOLT_MS(ACK_MS);
    s->heard_at = volt_now();
    volt_notify_one(&s->heard);
}
// Takes a time without an acknowledgement: all that is under way is lost. Returns 0, or the error
// that ends the transfer.
static int silence_take(sender *s) {
    for (uint64_t seq = s->base; seq < s->next; seq++)
        if (is_in_flight(*tx_of(s, seq))) lose(s, seq);
    s->n_silences++;
    s->threshold = s->window / 2;
    s->window = WINDOW_LEAST;
    s->cut = s->n_tx;
    if (s->patience < VOLT_MS(ACK_MAX_MS)) s->patience *= 2;
    if (volt_now() - s->heard_at < VOLT_S(IDLE_S)) return 0;
    return s->error;
}

static volt_poll sending_run(volt_cx *cx, part *p, sender *s) {
    VOLT_BEGIN(cx, p);
    while (s->base < s->n) {
        s->n_run = run_choose(s);
        if (s->n_run == 0) {
            VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, s->patience,
                                          volt_notify_wait(cx, &s->heard)));
            if (s->rc == -ETIMEDOUT) s->rc = silence_take(s);
            if (s->rc < 0) VOLT_RETURN(s->rc);
            continue;
        }
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->file, s->content, s->n_run * CONTENT,
                                          (int64_t)(s->first * CONTENT)));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        run_write(s);
        if ((uint64_t)s->rc + s->n_run * (uint64_t)HEAD < s->n_out) VOLT_RETURN(-EIO); // truncated
        VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd, s->out, s->n_out, SEGMENT, NULL));
        if (s->rc == -ECANCELED) VOLT_RETURN(s->rc);
        if (s->rc < 0) { // as if the network had lost them: a lasting error leads to a silence
            s->error = (int)s->rc;
            s->rc = (int64_t)s->n_out;
        }
        run_sent(s, (unsigned)((s->rc + SEGMENT - 1) / SEGMENT));
    }
    VOLT_END(0);
}
static volt_poll receiving_acks_run(volt_cx *cx, part *p, sender *s) {
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(s->n_in, volt_recv(cx, s->fd, s->in, sizeof s->in, 0));
        if (s->n_in == -ECANCELED || s->n_in == -EBADF) break;
        if (s->n_in < 0) s->error = (int)s->n_in; // of a datagram that was sent
        else if (head_read(&s->in_head, s->in, (size_t)s->n_in) && s->in_head.kind == ACK &&
                 s->in_head.session == s->session)
            ack_take(s, s->in_head.value, s->in + HEAD, ((size_t)s->n_in - HEAD) * 8);
    }
    VOLT_END(s->n_in);
}

// Sends s->ask until an answer of a kind comes.
//   returns: 0 with the answer in s->in_head | -ETIMEDOUT | the last error of the socket
static volt_poll asking_run(volt_cx *cx, part *p, sender *s) {
    VOLT_BEGIN(cx, p);
    s->error = -ETIMEDOUT;
    for (s->tries = 0; s->tries < ASK_TRIES; s->tries++) {
        s->start = volt_now();
        VOLT_AWAIT(s->rc, volt_send(cx, s->fd, s->ask, sizeof s->ask, 0));
        while (s->rc >= 0 || s->rc == -EMSGSIZE) { // an acknowledgement may come late
            VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, s->start + VOLT_MS(ASK_MS),
                                          volt_recv(cx, s->fd, s->in, sizeof s->in, 0)));
            if (s->rc >= 0 && head_read(&s->in_head, s->in, (size_t)s->rc) &&
                s->in_head.kind == s->answer && s->in_head.session == s->session)
                VOLT_RETURN(0);
        }
        if (s->rc == -ECANCELED) VOLT_RETURN(s->rc);
        if (s->rc != -ETIMEDOUT) s->error = (int)s->rc;
        VOLT_AWAIT(volt_sleep_until(cx, s->start + VOLT_MS(ASK_MS)));
    }
    VOLT_END(s->error);
}

static void sender_print(const sender *s) {
    double seconds = (double)(volt_now() - s->start) / 1e9;
    printf("sent %llu bytes in %.2f s, %.0f MB/s\nagain %llu of %llu datagrams\nsilences %llu\n",
           (unsigned long long)s->size, seconds, (double)s->size / 1e6 / seconds,
           (unsigned long long)s->n_again, (unsigned long long)s->n,
           (unsigned long long)s->n_silences);
}
static volt_poll sender_run(volt_cx *cx, part *p, sender *s) {
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(s->file, volt_file_open(cx, &s->op, s->path, O_RDONLY, 0));
    if (s->file < 0) VOLT_RETURN(s->file);
    VOLT_AWAIT(s->rc, volt_file_fstat(cx, &s->op, s->file, &s->st));
    if (s->rc < 0) goto out;
    s->size = (uint64_t)s->st.st_size;
    s->n = datagrams_of(s->size);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->to)); // ICMP errors are reported from here on
    if (s->rc < 0) goto out;
    head_write(s->ask, HELLO, s->session, s->size);
    s->answer = READY;
    VOLT_AWAIT(s->rc, asking_run(cx, &s->asking, s));
    if (s->rc < 0) goto out;

    s->error = -ETIMEDOUT; // unless the socket reports another one
    s->start = s->heard_at = volt_now();
    s->patience = VOLT_MS(ACK_MS);
    s->window = WINDOW_FIRST;
    s->threshold = SPAN;
    VOLT_AWAIT(VOLT_SELECT(
        VOLT_ARM(&s->sent, sending_run(cx, &s->sending, s)),
        VOLT_ARM(&s->received, receiving_acks_run(cx, &s->receiving, s))));
    s->rc = s->sent.fired ? s->sent.value : s->received.value;
    if (s->rc < 0) goto out;
    sender_print(s);

    head_write(s->ask, DONE, s->session, s->sum);
    s->answer = RESULT;
    VOLT_AWAIT(s->rc, asking_run(cx, &s->asking, s));
    if (s->rc == 0 && s->in_head.value != 1) s->rc = -EBADMSG;
out:
    volt_close(cx, s->file);
    VOLT_END(s->rc);
}

// ---- the receiver

typedef struct {
    part work, receiving;
    volt_timer limit;
    volt_file_op op;
    const char *path;
    char path_beside[4096];
    int fd, file, drop_one_in, is_complete, n_results;
    uint64_t session, size, n, sum; // session 0: there is no sender yet
    uint64_t next, end;             // the first number that is lacking; behind the highest one
    uint64_t seen[SPAN / 64];       // a bit for each of the SPAN numbers from `next` on
    uint64_t n_dropped, n_twice;
    uint32_t random;
    // one receive: datagrams of the same length
    volt_addr from;
    size_t segment, at;
    int64_t n_in, rc;
    unsigned answer; // the kind of the datagram that answers them; 0: none
    uint64_t run_first;
    size_t n_run, n_out; // bytes of the file, gathered from datagrams with adjacent numbers
    unsigned char run[JOINED_BYTES], in[JOINED_BYTES], out[ACK_BYTES];
} receiver;

static uint64_t bit_of(uint64_t seq) { return (uint64_t)1 << seq % 64; }
static uint64_t *word_of(receiver *r, uint64_t seq) { return &r->seen[seq % SPAN / 64]; }
static int is_seen(receiver *r, uint64_t seq) { return (*word_of(r, seq) & bit_of(seq)) != 0; }

static int is_dropped(receiver *r) {
    r->random = r->random * 1664525u + 1013904223u;
    if (r->drop_one_in == 0 || (r->random >> 8) % (unsigned)r->drop_one_in != 0) return 0;
    r->n_dropped++;
    return 1;
}
// Begins the transfer if a datagram is a greeting. Returns 1 if it has begun.
static int hello_take(receiver *r) {
    head h;
    if (r->n_in < HEAD || !head_read(&h, r->in, HEAD) || h.kind != HELLO || h.session == 0 ||
        h.value > INT64_MAX - CONTENT)
        return 0;
    r->session = h.session;
    r->size = h.value;
    r->n = datagrams_of(h.value);
    return 1;
}
// Takes a part of the file. Returns 0 if it begins another run than the one that is gathered.
static int data_take(receiver *r, uint64_t seq, const unsigned char *content, size_t len) {
    r->answer = ACK;
    if (seq >= r->n || seq >= r->next + SPAN || len != content_of(r->size, seq)) return 1;
    if (seq < r->next || is_seen(r, seq)) {
        r->n_twice++; // its acknowledgement was lost, or too late
        return 1;
    }
    if (r->n_run == 0) r->run_first = seq;
    else if (seq * CONTENT != r->run_first * CONTENT + r->n_run) return 0;
    memcpy(r->run + r->n_run, content, len);
    r->n_run += len;
    r->sum += sum_of(seq, content, len);
    *word_of(r, seq) |= bit_of(seq);
    if (seq >= r->end) r->end = seq + 1;
    for (; is_seen(r, r->next); r->next++) *word_of(r, r->next) &= ~bit_of(r->next);
    return 1;
}
// Takes the next datagrams of those that were received, until a run of the file is complete.
static void run_take(receiver *r) {
    head h;
    for (r->n_run = 0; r->at < (size_t)r->n_in; r->at += r->segment) {
        const unsigned char *p = r->in + r->at;
        size_t left = (size_t)r->n_in - r->at, len = left < r->segment ? left : r->segment;
        if (!head_read(&h, p, len) || h.session != r->session || is_dropped(r)) continue;
        if (h.kind == DATA && !data_take(r, h.value, p + HEAD, len - HEAD)) return;
        if (h.kind == HELLO) r->answer = READY;
        if (h.kind == DONE && r->next == r->n) {
            r->answer = RESULT;
            if (h.value != r->sum) r->rc = -EBADMSG;
        }
    }
}
static void answer_write(receiver *r) {
    uint64_t value = r->answer == ACK ? r->next : r->answer == RESULT ? r->rc == 0 : 0;
    head_write(r->out, r->answer, r->session, value);
    r->n_out = HEAD;
    if (r->answer != ACK) return;
    for (uint64_t i = 0; r->next + i < r->end; i++) {
        if (i % 8 == 0) r->out[r->n_out++] = 0;
        if (is_seen(r, r->next + i)) r->out[HEAD + i / 8] |= (unsigned char)(1 << i % 8);
    }
}
static volt_time receiver_patience(const receiver *r) {
    if (r->session == 0) return VOLT_NEVER;
    return r->is_complete ? VOLT_MS(RESULT_MS) : VOLT_S(IDLE_S);
}
// Ends with 0 when the file is complete and the sender knows it: an ICMP message reports that the
// sender has closed its socket. Until then the result is repeated, a few times.
static volt_poll receiving_run(volt_cx *cx, part *p, receiver *r) {
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(r->n_in, volt_within(cx, &r->limit, receiver_patience(r),
                                        volt_recv_segments(cx, r->fd, r->in, sizeof r->in,
                                                           &r->segment, &r->from, NULL)));
        r->answer = 0;
        if (r->is_complete && r->n_in == -ETIMEDOUT && ++r->n_results < RESULTS) {
            r->answer = RESULT;
            r->n_in = 0;
        }
        if (r->is_complete && r->n_in < 0) VOLT_RETURN(0);
        if (r->n_in == -ECONNREFUSED) continue; // of an answer; the silence that follows counts
        if (r->n_in < 0) VOLT_RETURN(r->n_in);
        if (r->session == 0) {
            if (!hello_take(r)) continue;
            VOLT_AWAIT(r->rc, volt_connect_on(cx, r->fd, &r->from)); // no other sender from now on
            if (r->rc < 0) VOLT_RETURN(r->rc);
        }
        r->rc = 0;
        for (r->at = 0; r->at < (size_t)r->n_in && r->rc >= 0;) {
            run_take(r);
            if (r->n_run > 0)
                VOLT_AWAIT(r->rc, volt_file_pwrite(cx, &r->op, r->file, r->run, r->n_run,
                                                   (int64_t)(r->run_first * CONTENT)));
        }
        if (r->rc < 0 && r->rc != -EBADMSG) VOLT_RETURN(r->rc);
        if (r->answer == RESULT && r->rc >= 0 && !r->is_complete) {
            VOLT_AWAIT(r->rc, volt_file_rename(cx, &r->op, r->path_beside, r->path));
            if (r->rc < 0) VOLT_RETURN(r->rc);
            r->is_complete = 1;
        }
        if (r->answer == 0) continue;
        answer_write(r);
        VOLT_AWAIT(r->n_in, volt_send(cx, r->fd, r->out, r->n_out, 0)); // an error: as one lost
        if (r->rc == -EBADMSG || r->n_in == -ECANCELED) VOLT_RETURN(r->rc < 0 ? r->rc : r->n_in);
    }
    VOLT_END(0);
}
static volt_poll receiver_run(volt_cx *cx, part *p, receiver *r) {
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(r->file, volt_file_open(cx, &r->op, r->path_beside, O_WRONLY | O_CREAT | O_TRUNC,
                                       0666));
    if (r->file < 0) VOLT_RETURN(r->file);
    VOLT_AWAIT(r->rc, receiving_run(cx, &r->receiving, r));
    volt_close(cx, r->file);
    if (!r->is_complete) unlink(r->path_beside); // works in a cancelled scope, too
    printf("received %llu of %llu datagrams\ndropped %llu\ntwice %llu\n",
           (unsigned long long)r->next, (unsigned long long)r->n,
           (unsigned long long)r->n_dropped, (unsigned long long)r->n_twice);
    VOLT_END(r->rc);
}

// ---- the program

typedef struct {
    volt_frame frame;
    volt_arm worked, signalled;
    int is_send, signals;
    sender s;
    receiver r;
} program;

static volt_poll program_run(volt_cx *cx, void *arg) {
    program *p = (program *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(VOLT_SELECT(
        VOLT_ARM(&p->worked, p->is_send ? sender_run(cx, &p->s.work, &p->s)
                                        : receiver_run(cx, &p->r.work, &p->r)),
        VOLT_ARM(&p->signalled, volt_signals_next(cx, p->signals, NULL))));
    volt_close(cx, p->is_send ? p->s.fd : p->r.fd);
    volt_close(cx, p->signals);
    VOLT_END(p->worked.value); // -ECANCELED after a signal
}

static int receiver_open(receiver *r, const char *address, const char *path) {
    const volt_udp_options options = { .is_joined = 1, .receive_bytes = SOCKET_BYTES };
    volt_addr at;
    int rc = volt_addr_parse(&at, address);
    if (rc == 0 && volt_addr_is_any(&at)) rc = -EINVAL; // answers must have the address asked
    size_t room = sizeof r->path_beside;
    r->path = path;
    if (rc == 0 && (size_t)snprintf(r->path_beside, room, "%s.part", path) >= room)
        rc = -ENAMETOOLONG;
    if (rc == 0) rc = r->fd = volt_udp_open(&at, &options);
    if (rc >= 0) rc = volt_local_addr(r->fd, &at);
    if (rc < 0) return rc;
    printf("port %d\n", volt_addr_port(&at));
    fflush(stdout);
    return 0;
}
static int sender_open(sender *s, const char *path, const char *address) {
    s->path = path;
    int rc = volt_addr_parse(&s->to, address);
    if (rc < 0) return rc;
    if (getrandom(&s->session, sizeof s->session, 0) != (ssize_t)sizeof s->session) return -EIO;
    s->session |= 1; // not 0
    s->fd = volt_sock_open(volt_addr_family(&s->to), SOCK_DGRAM, 0);
    return s->fd < 0 ? s->fd : volt_set_buffers(s->fd, SOCKET_BYTES, SOCKET_BYTES);
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM };
    static program p;
    const volt_config config = { .workers = 1, .log = { .fn = volt_log_stderr } };
    const char *name = argv[0];
    int option, rc;
    p.is_send = argc > 1 && strcmp(argv[1], "send") == 0;
    if (p.is_send || (argc > 1 && strcmp(argv[1], "recv") == 0)) argc--, argv++;
    else argc = 0;
    while (argc > 0 && (option = getopt(argc, argv, p.is_send ? "" : "d:")) != -1)
        if (option == '?' || (p.r.drop_one_in = atoi(optarg)) < 2) argc = 0;
    if (argc - optind != 2) {
        fprintf(stderr, "usage: %s recv [-d ONE_IN] ADDR FILE\n       %s send FILE ADDR\n", name,
                name);
        return 2;
    }
    p.signals = volt_signals_open(signals, 2); // before the runtime has threads
    if (p.signals < 0) rc = p.signals;
    else if (p.is_send) rc = sender_open(&p.s, argv[optind], argv[optind + 1]);
    else rc = receiver_open(&p.r, argv[optind], argv[optind + 1]);
    if (rc >= 0) rc = volt_run(&config, program_run, &p);
    if (rc < 0) fprintf(stderr, "%s: %s\n", name, volt_strerror(rc));
    return rc < 0;
}
