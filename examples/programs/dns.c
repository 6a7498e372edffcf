// SPDX-License-Identifier: MIT OR 0BSD
// A caching DNS forwarder for the programs of one machine, over UDP and TCP.
//
//     cc -O2 -I. -pthread examples/programs/dns.c -o dns && ./dns 127.0.0.1:5300 127.0.0.53:53 &
//     dig @127.0.0.1 -p 5300 example.org
//
//   - The cache is bounded in bytes. An answer lives as long as the smallest TTL of its records; a
//     negative one as its SOA record says (RFC 2308); a failure for two seconds.
//   - Equal queries that arrive during a look-up share it.
//   - Each attempt at an upstream server has a socket of its own: the kernel chooses its port at
//     random, takes datagrams from that server only, and reports an ICMP error at once. The id of
//     the query is random, too. After a time limit or an error the next server is asked.
//   - An answer that does not fit into a datagram is fetched over TCP. A client whose answer does
//     not fit gets the TC bit, and asks again over TCP.
//   - On a wildcard address ("*:53") each answer comes from the address that was asked.
//   - Malformed packets are dropped. So are those of other machines: an open forwarder is a means to
//     attack others.
// SIGUSR1 prints the counters. SIGINT and SIGTERM end the program when the look-ups under way have
// ended, after DRAIN_S at most. All tasks run on one worker, so the tables need no locks.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { // bounds
    CACHE_KIB = 16384, // by default
    BUCKETS = 8192,
    LOOKUPS_MAX = 1000, // at once; each has a descriptor
    CLIENTS_MAX = 4000, // over UDP, whose answers are being looked up
    STREAMS_MAX = 64,   // over TCP
    UPSTREAMS_MAX = 8,
    ROUNDS = 2,        // attempts at each upstream server
    STRANGERS_MAX = 16 // datagrams of one attempt that do not answer its query
};
enum { TRY_MS = 800, TRY_TCP_MS = 3000, LOOKUP_MS = 4500, STREAM_IDLE_S = 10, DRAIN_S = 2 };
enum { TTL_MAX = 86400, TTL_NEGATIVE_MAX = 3600, TTL_FAILURE = 2 }; // seconds in the cache

// ---- messages: RFC 1035, and EDNS of RFC 6891

enum {
    HEAD = 12,
    QUESTION_BYTES = 255 + 4, // a name, type and class
    RECORD_BYTES = 10,        // type, class, TTL and length of a record
    OPT_BYTES = 1 + RECORD_BYTES,
    QUERY_BYTES = HEAD + QUESTION_BYTES + OPT_BYTES,
    MESSAGE_BYTES = 65535,
    DATAGRAM_BYTES = 1232, // the most that is sent or asked for: no path fragments it
    DATAGRAM_LEAST = 512   // the most that a client without EDNS takes
};
enum { TYPE_SOA = 6, TYPE_OPT = 41, TYPE_TSIG = 250, TYPE_IXFR, TYPE_AXFR, TYPE_ANY = 255 };
enum {
    FLAG_ANSWER = 0x8000,
    FLAG_CUT = 0x0200,
    FLAG_RECURSE = 0x0100,
    FLAG_RECURSES = 0x0080,
    FLAG_AUTHENTIC = 0x0020,
    FLAG_UNCHECKED = 0x0010,
    FLAGS_OPCODE = 0x7800,
    FLAGS_RCODE = 0x000f,
    EDNS_DNSSEC = 0x8000 // DO, in the lower half of the TTL of an OPT record
};
enum { OK, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 16 };

static unsigned get16(const unsigned char *p) { return (unsigned)p[0] << 8 | p[1]; }
static uint32_t get32(const unsigned char *p) { return (uint32_t)get16(p) << 16 | get16(p + 2); }
static void put16(unsigned char *p, unsigned v) {
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
}
static void put32(unsigned char *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}
static unsigned flag_if(int is_set, unsigned flag) { return is_set ? flag : 0; }

// Returns the offset behind the name at an offset, or 0 if it is malformed. A compression pointer
// must point backwards, behind the head.
static size_t name_end(const unsigned char *m, size_t len, size_t at) {
    const size_t start = at;
    while (at < len && at - start < 255) {
        unsigned n = m[at];
        if (n == 0) return at + 1;
        if (n >= 0xc0) {
            size_t to = len - at < 2 ? 0 : get16(m + at) & 0x3fff;
            return to >= HEAD && to < start ? at + 2 : 0;
        }
        if (n >= 0x40) return 0;
        at += n + 1;
    }
    return 0;
}
// Returns the offset behind the only question of a message, or 0 if it is malformed.
static size_t question_end(const unsigned char *m, size_t len) {
    size_t at = len > HEAD && get16(m + 4) == 1 ? name_end(m, len, HEAD) : 0;
    return at == 0 || len - at < 4 ? 0 : at + 4;
}

typedef struct {
    size_t fixed, end; // offsets of the type and of the next record
    unsigned type;
    uint32_t ttl;
} record;

// Reads the record at an offset. Returns 1, or 0 if it is malformed.
static int record_read(const unsigned char *m, size_t len, size_t at, record *r) {
    r->fixed = name_end(m, len, at);
    if (r->fixed == 0 || len - r->fixed < RECORD_BYTES) return 0;
    r->type = get16(m + r->fixed);
    r->ttl = get32(m + r->fixed + 4);
    r->end = r->fixed + RECORD_BYTES + get16(m + r->fixed + 8);
    return r->end <= len;
}

// Subtracts an age from all TTLs of a message that response_read has accepted.
static void records_age(unsigned char *m, size_t len, uint32_t age) {
    record r;
    for (size_t at = question_end(m, len); at < len && record_read(m, len, at, &r); at = r.end)
        put32(m + r.fixed + 4, r.ttl > age ? r.ttl - age : 0);
}

// Appends an OPT record to a message. Returns the new length.
static size_t opt_append(unsigned char *m, size_t len, unsigned rcode, int is_dnssec) {
    unsigned char *p = m + len;
    p[0] = 0; // the root
    put16(p + 1, TYPE_OPT);
    put16(p + 3, DATAGRAM_BYTES);
    put32(p + 5, (uint32_t)(rcode >> 4) << 24 | flag_if(is_dnssec, EDNS_DNSSEC));
    put16(p + 9, 0);
    put16(m + 10, get16(m + 10) + 1);
    return len + OPT_BYTES;
}

// Two queries are equal in these bytes: the question in lower case, and the flags that change an
// answer.
typedef struct {
    uint32_t hash;
    uint16_t n_question;
    uint8_t is_dnssec, is_unchecked;
    unsigned char question[QUESTION_BYTES];
} key;

// The hash has a random seed, so that a client cannot choose names of one bucket.
static void key_make(key *k, uint32_t seed, const unsigned char *question, size_t n) {
    k->n_question = (uint16_t)n;
    k->is_dnssec = k->is_unchecked = 0;
    k->hash = seed;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = question[i]; // the lengths of labels are below 'A', types may be above
        k->question[i] = c >= 'A' && c <= 'Z' && i + 4 < n ? (unsigned char)(c + 32) : c;
        k->hash = (k->hash ^ k->question[i]) * 16777619u;
    }
    k->hash ^= k->hash >> 15;
}
static int key_has_question_of(const key *a, const key *b) {
    return a->n_question == b->n_question && memcmp(a->question, b->question, a->n_question) == 0;
}
static int key_equal(const key *a, const key *b) {
    return a->hash == b->hash && a->is_dnssec == b->is_dnssec &&
           a->is_unchecked == b->is_unchecked && key_has_question_of(a, b);
}
static unsigned key_type(const key *k) { return get16(k->question + k->n_question - 4); }

// A query of a client.
typedef struct {
    unsigned id, flags;
    size_t room;                            // bytes of the largest answer in a datagram
    unsigned rcode;                         // not OK: the error that answers it
    int has_edns;
    unsigned char question[QUESTION_BYTES]; // in the client's mixture of upper and lower case
    key k;
} query;

// Reads a query. Returns 1, or 0 if it is malformed or no query at all.
static int query_read(query *q, uint32_t seed, const unsigned char *m, size_t len) {
    record r;
    size_t at = question_end(m, len);
    if (at == 0 || get32(m + 6) != 0 || get16(m + 2) & FLAG_ANSWER) return 0;
    q->id = get16(m);
    q->flags = get16(m + 2);
    q->rcode = OK;
    q->room = DATAGRAM_LEAST;
    q->has_edns = 0;
    memcpy(q->question, m + HEAD, at - HEAD);
    key_make(&q->k, seed, q->question, at - HEAD);
    q->k.is_unchecked = (q->flags & FLAG_UNCHECKED) != 0;
    for (unsigned n = get16(m + 10); n > 0; n--, at = r.end) {
        if (!record_read(m, len, at, &r)) return 0;
        if (r.type == TYPE_TSIG) q->rcode = NOTIMP; // the signature would not survive
        if (r.type != TYPE_OPT) continue;
        if (m[at] != 0 || q->has_edns) return 0;
        q->has_edns = 1;
        q->k.is_dnssec = (r.ttl & EDNS_DNSSEC) != 0;
        q->room = get16(m + r.fixed + 2);
        if (q->room < DATAGRAM_LEAST) q->room = DATAGRAM_LEAST;
        if (q->room > DATAGRAM_BYTES) q->room = DATAGRAM_BYTES;
        if (r.ttl >> 16 & 0xff) q->rcode = BADVERS;
    }
    if (at != len) return 0;
    const unsigned type = key_type(&q->k), class_in = 1;
    if (q->rcode != OK) return 1;
    if (q->flags & FLAGS_OPCODE || type == TYPE_AXFR || type == TYPE_IXFR) q->rcode = NOTIMP;
    else if (!(q->flags & FLAG_RECURSE) || get16(q->k.question + q->k.n_question - 2) != class_in)
        q->rcode = REFUSED;
    return 1;
}

// The content of an answer from an upstream server, without its OPT record.
typedef struct {
    size_t len;
    unsigned n_additional, rcode;
    int is_cut;
    uint32_t ttl; // seconds in the cache; 0: none
} response;

// Reads the answer to a query. Returns 1, or 0 if it is malformed or answers another one.
static int response_read(response *out, const key *k, unsigned id, const unsigned char *m,
                         size_t len) {
    key asked;
    record r;
    uint32_t ttl = TTL_MAX, soa_ttl = 0;
    int has_wanted = 0, has_opt = 0;
    memset(out, 0, sizeof *out);
    size_t at = question_end(m, len);
    if (at == 0 || get16(m) != id || (get16(m + 2) & (FLAG_ANSWER | FLAGS_OPCODE)) != FLAG_ANSWER)
        return 0;
    key_make(&asked, 0, m + HEAD, at - HEAD);
    if (!key_has_question_of(&asked, k)) return 0;
    out->rcode = get16(m + 2) & FLAGS_RCODE;
    out->is_cut = (get16(m + 2) & FLAG_CUT) != 0;
    if (out->is_cut) return 1; // its records do not count
    for (int section = 0; section < 3 && !has_opt; section++) {
        for (unsigned n = get16(m + 6 + 2 * section); n > 0; n--) {
            if (!record_read(m, len, at, &r)) return 0;
            has_opt = section == 2 && r.type == TYPE_OPT && m[at] == 0;
            if (has_opt) break; // all behind it is left out, as a name there may point into it
            if (r.ttl > INT32_MAX) r.ttl = 0;
            if (section == 0 && r.ttl < ttl) ttl = r.ttl;
            if (section == 0 && (r.type == key_type(k) || key_type(k) == TYPE_ANY)) has_wanted = 1;
            if (section == 1 && r.type == TYPE_SOA) {
                if (r.end - r.fixed < RECORD_BYTES + 22) return 0;
                soa_ttl = get32(m + r.end - 4); // the last of its five numbers
                if (soa_ttl > r.ttl) soa_ttl = r.ttl;
            }
            if (section == 2) out->n_additional++;
            at = r.end;
        }
    }
    if (has_opt) out->rcode |= r.ttl >> 24 << 4;
    out->len = at;
    out->ttl = ttl;
    if (has_wanted && out->rcode == OK) return 1;
    if (out->ttl > soa_ttl) out->ttl = soa_ttl; // without an SOA record: 0
    if (out->ttl > TTL_NEGATIVE_MAX) out->ttl = TTL_NEGATIVE_MAX;
    return 1;
}

// ---- the cache, with the look-ups under way

typedef struct entry {
    struct entry *next;       // in the bucket
    unsigned refs;            // of the table, of the look-up and of each client that waits
    int was_used;             // since the hand has passed
    volt_event landed;        // the look-up has ended: the members below are set
    volt_time stored, expires;
    unsigned char *msg;       // NULL: the look-up has failed
    size_t len;
    key k;
} entry;

#define COUNTERS(X_)                                                          \
    X_(queries)   /* received, that are well-formed */                        \
    X_(streams)   /* received over TCP */                                     \
    X_(hits)      /* queries that were answered from the cache */             \
    X_(shared)    /* queries that joined a look-up under way */               \
    X_(lookups)                                                               \
    X_(attempts)  /* of these, at a server */                                 \
    X_(fetches)   /* attempts that were repeated over TCP */                  \
    X_(failures)  /* look-ups without an answer */                            \
    X_(malformed) /* queries that were dropped, as those in the next lines */ \
    X_(foreign)   /* of other machines */                                     \
    X_(overload)  /* beyond one of the bounds */
typedef struct {
#define COUNTER(name_) unsigned long long name_;
    COUNTERS(COUNTER)
#undef COUNTER
} counters;

typedef struct {
    volt_token stop;  // ends the receiving of queries, but no look-up
    volt_group tasks; // their owner is the root task
    entry *buckets[BUCKETS];
    size_t n_bytes, n_bytes_max; // of the entries that have landed
    unsigned hand;               // the bucket at which the next eviction begins
    unsigned n_lookups, n_clients, n_streams; // at present
    volt_addr up[UPSTREAMS_MAX];
    unsigned n_up, preferred;
    uint32_t seed;
    int udp, tcp;
    counters n;
} server;

static void server_print(const server *s) {
#define COUNTER(name_) fprintf(stderr, #name_ " %llu ", s->n.name_);
    COUNTERS(COUNTER)
#undef COUNTER
    fprintf(stderr, "bytes %zu\n", s->n_bytes);
}

static void entry_release(entry *e) {
    if (--e->refs > 0) return;
    free(e->msg);
    free(e);
}
static size_t entry_bytes(const entry *e) { return sizeof *e + e->len; }
static void entry_remove(server *s, entry **at) {
    entry *e = *at;
    *at = e->next;
    s->n_bytes -= entry_bytes(e);
    entry_release(e);
}
// Makes room: a hand goes over the buckets and removes the entries that were not used since its
// last visit.
static void cache_evict(server *s) {
    for (; s->n_bytes > s->n_bytes_max; s->hand = (s->hand + 1) % BUCKETS) {
        for (entry **at = &s->buckets[s->hand]; *at;) {
            entry *e = *at;
            if (volt_event_is_set(&e->landed) && !e->was_used) {
                entry_remove(s, at);
                continue;
            }
            e->was_used = 0;
            at = &e->next;
        }
    }
}

static int lookup_start(volt_cx *cx, server *s, entry *e);
// Finds the entry of a query, which may still be under way, or starts its look-up. Returns NULL if
// there is no room for one. The caller releases the entry.
static entry *cache_get(volt_cx *cx, server *s, const key *k) {
    entry **at = &s->buckets[k->hash % BUCKETS];
    while (*at && !key_equal(&(*at)->k, k)) at = &(*at)->next;
    if (*at && volt_event_is_set(&(*at)->landed) && (*at)->expires <= volt_now())
        entry_remove(s, at);
    else if (*at) {
        entry *e = *at;
        if (volt_event_is_set(&e->landed)) s->n.hits++;
        else s->n.shared++;
        e->was_used = 1;
        e->refs++;
        return e;
    }
    entry *e = s->n_lookups < LOOKUPS_MAX ? (entry *)calloc(1, sizeof *e) : NULL;
    if (!e) return NULL;
    e->k = *k;
    e->refs = 3;
    if (lookup_start(cx, s, e) < 0) {
        free(e);
        return NULL;
    }
    at = &s->buckets[k->hash % BUCKETS];
    e->next = *at;
    *at = e;
    return e;
}

// Finds the answer to a query, or starts its look-up. *e becomes NULL if the query has an error.
// Returns 1, or 0 if there is no room. The caller releases *e.
static int query_find(volt_cx *cx, server *s, const query *q, entry **e) {
    s->n.queries++;
    *e = q->rcode == OK ? cache_get(cx, s, &q->k) : NULL;
    return *e || q->rcode != OK;
}

// Writes the answer to a query: the id, the flags and the spelling of the query, and the TTLs of
// now. e NULL: the error of the query. Where the answer is longer than `room`, only the question is
// left, with the TC bit. Returns the length.
static size_t reply_write(unsigned char *out, size_t room, const query *q, const entry *e) {
    const unsigned char *msg = e ? e->msg : NULL;
    unsigned rcode = e && !msg ? (unsigned)SERVFAIL : q->rcode, kept = FLAGS_RCODE;
    unsigned flags = FLAG_ANSWER | FLAG_RECURSES |
                     (q->flags & (FLAGS_OPCODE | FLAG_RECURSE | FLAG_UNCHECKED));
    int is_cut = msg && e->len + (q->has_edns ? OPT_BYTES : 0) > room;
    size_t len = msg && !is_cut ? e->len : (size_t)HEAD + q->k.n_question;
    if (q->k.is_dnssec || q->flags & FLAG_AUTHENTIC) kept |= FLAG_AUTHENTIC;
    if (msg) flags |= get16(msg + 2) & kept;
    memset(out, 0, HEAD);
    if (msg && !is_cut) memcpy(out, msg, len);
    put16(out, q->id);
    put16(out + 2, flags | (rcode & FLAGS_RCODE) | flag_if(is_cut, FLAG_CUT));
    put16(out + 4, 1);
    memcpy(out + HEAD, q->question, q->k.n_question);
    if (msg && !is_cut)
        records_age(out, len, (uint32_t)((volt_now() - e->stored) / VOLT_S(1)));
    return q->has_edns ? opt_append(out, len, rcode, q->k.is_dnssec) : len;
}

// ---- look-ups

static const volt_record_format tcp_record = { .width = 2, .most = MESSAGE_BYTES };

typedef struct { // one attempt at a server
    volt_frame frame;
    int fd, n_strange;
    int64_t rc;
    volt_reader in;
    volt_span record;
} attempt;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    server *owner;
    entry *e;
    unsigned at, n_tries; // at: of the server that is asked
    volt_time end, try_end;
    int64_t rc;
    attempt a;
    response got; // what the answer says, and its bytes
    const unsigned char *msg;
    unsigned char *stream; // the buffer of an answer over TCP
    unsigned id;
    size_t n_query;
    unsigned char query[2 + QUERY_BYTES]; // behind its length, as TCP needs it
    unsigned char datagram[DATAGRAM_BYTES];
} lookup;

// Writes the query, with a new id. Returns 0, or -errno of the random numbers.
static int lookup_write(lookup *l) {
    const key *k = &l->e->k;
    unsigned char *q = l->query + 2, id[2];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) return -EIO;
    l->id = get16(id);
    memset(q, 0, HEAD);
    put16(q, l->id);
    put16(q + 2, FLAG_RECURSE | FLAG_AUTHENTIC | flag_if(k->is_unchecked, FLAG_UNCHECKED));
    put16(q + 4, 1);
    memcpy(q + HEAD, k->question, k->n_question);
    l->n_query = opt_append(q, HEAD + (size_t)k->n_question, OK, k->is_dnssec);
    put16(l->query, (unsigned)l->n_query);
    return 0;
}
// Returns 1 if these bytes are the answer.
static int lookup_take(lookup *l, const void *msg, size_t len) {
    l->msg = (const unsigned char *)msg;
    return response_read(&l->got, &l->e->k, l->id, l->msg, len);
}

//   returns: 0 with the answer | -EBADMSG after too many that do not fit | -errno, of an ICMP
//            message, too
static volt_poll ask_udp(volt_cx *cx, attempt *a, lookup *l) {
    const volt_addr *const to = &l->owner->up[l->at];
    VOLT_BEGIN(cx, a);
    a->fd = volt_sock_open(volt_addr_family(to), SOCK_DGRAM, 0);
    if (a->fd < 0) VOLT_RETURN(a->fd);
    VOLT_AWAIT(a->rc, volt_connect_on(cx, a->fd, to)); // chooses a port
    if (a->rc >= 0) VOLT_AWAIT(a->rc, volt_send(cx, a->fd, l->query + 2, l->n_query, 0));
    for (a->n_strange = 0; a->rc >= 0 && a->n_strange < STRANGERS_MAX; a->n_strange++) {
        VOLT_AWAIT(a->rc, volt_recv(cx, a->fd, l->datagram, sizeof l->datagram, 0));
        if (a->rc == -EMSGSIZE) { // its beginning is there
            l->datagram[2] |= FLAG_CUT >> 8;
            a->rc = sizeof l->datagram;
        }
        if (a->rc < 0 || lookup_take(l, l->datagram, (size_t)a->rc)) break;
    }
    volt_close(cx, a->fd);
    VOLT_END(a->rc < 0 ? a->rc : a->n_strange == STRANGERS_MAX ? -EBADMSG : 0);
}

//   returns: 0 with the answer | -EBADMSG | -errno
static volt_poll ask_tcp(volt_cx *cx, attempt *a, lookup *l) {
    VOLT_BEGIN(cx, a);
    if (!l->stream) l->stream = (unsigned char *)malloc(2 + MESSAGE_BYTES);
    if (!l->stream) VOLT_RETURN(-ENOMEM);
    VOLT_AWAIT(a->fd, volt_connect(cx, &l->owner->up[l->at]));
    if (a->fd < 0) VOLT_RETURN(a->fd);
    volt_reader_init(&a->in, volt_stream_of(a->fd), l->stream, 2 + MESSAGE_BYTES, VOLT_LONG_STOP);
    VOLT_AWAIT(a->rc, volt_write_all(cx, a->fd, l->query, 2 + l->n_query));
    if (a->rc >= 0) VOLT_AWAIT(a->rc, volt_read_record(cx, &a->in, &tcp_record, &a->record));
    if (a->rc >= 0)
        a->rc = a->rc == 1 && lookup_take(l, a->record.data, a->record.len) && !l->got.is_cut
                    ? 0
                    : -EBADMSG;
    volt_close(cx, a->fd);
    VOLT_END(a->rc);
}

static void lookup_limit(lookup *l, volt_time at_most) {
    l->try_end = volt_now() + at_most;
    if (l->try_end > l->end) l->try_end = l->end;
}
// Returns 1 if there is an answer. Otherwise the next server has its turn, in later look-ups, too.
static int lookup_has_answer(lookup *l) {
    server *s = l->owner;
    if (l->rc == 0 && (l->got.rcode == OK || l->got.rcode == NXDOMAIN)) return 1;
    if (s->preferred == l->at) s->preferred = (l->at + 1) % s->n_up;
    l->at = (l->at + 1) % s->n_up;
    return 0;
}
static void lookup_land(lookup *l, int has_answer) {
    server *s = l->owner;
    entry *e = l->e;
    if (has_answer) e->msg = (unsigned char *)malloc(l->got.len);
    if (e->msg) {
        e->len = l->got.len;
        memcpy(e->msg, l->msg, e->len);
        put16(e->msg + 10, l->got.n_additional);
    } else s->n.failures++;
    free(l->stream);
    e->stored = volt_now();
    e->expires = e->stored + VOLT_S(e->msg ? l->got.ttl : (uint32_t)TTL_FAILURE);
    s->n_bytes += entry_bytes(e);
    s->n_lookups--;
    volt_event_set(&e->landed);
    entry_release(e);
    cache_evict(s);
}
static volt_poll lookup_run(volt_cx *cx, void *arg) {
    lookup *l = (lookup *)arg;
    VOLT_BEGIN(cx, l);
    l->end = volt_now() + VOLT_MS(LOOKUP_MS);
    l->at = l->owner->preferred;
    for (; l->n_tries < ROUNDS * l->owner->n_up && volt_now() < l->end; l->n_tries++) {
        l->rc = lookup_write(l);
        if (l->rc < 0) break;
        l->owner->n.attempts++;
        lookup_limit(l, VOLT_MS(TRY_MS));
        VOLT_AWAIT(l->rc, volt_before(cx, &l->limit, l->try_end, ask_udp(cx, &l->a, l)));
        if (l->rc == 0 && l->got.is_cut) {
            l->owner->n.fetches++;
            lookup_limit(l, VOLT_MS(TRY_TCP_MS));
            VOLT_AWAIT(l->rc, volt_before(cx, &l->limit, l->try_end, ask_tcp(cx, &l->a, l)));
        }
        if (l->rc == -ECANCELED) break;
        if (lookup_has_answer(l)) {
            lookup_land(l, 1);
            VOLT_RETURN(0);
        }
    }
    lookup_land(l, 0);
    VOLT_END(0);
}
static int lookup_start(volt_cx *cx, server *s, entry *e) {
    int rc = VOLT_GROUP_SPAWN(cx, &s->tasks, lookup_run, (lookup){ .owner = s, .e = e });
    if (rc < 0) return rc;
    s->n.lookups++;
    s->n_lookups++;
    return 0;
}

// ---- clients over UDP

typedef struct { // a query and its answer
    volt_frame frame;
    server *owner;
    entry *e; // NULL: the query has an error
    query q;
    volt_addr from;
    volt_msg_info asked;
    int64_t rc;
    struct msghdr m;
    struct iovec iov;
    volt_msg_control control;
    unsigned char bytes[DATAGRAM_BYTES];
} exchange;

// Makes the answer a message that comes from the address that was asked.
static void exchange_reply(exchange *x) {
    volt_msg_info info;
    unsigned len;
    memset(&x->m, 0, sizeof x->m);
    x->m.msg_name = (void *)(uintptr_t)volt_addr_sockaddr(&x->from, &len); // is only read
    x->m.msg_namelen = len;
    x->iov.iov_base = x->bytes;
    x->iov.iov_len = reply_write(x->bytes, x->q.room, &x->q, x->e);
    x->m.msg_iov = &x->iov;
    x->m.msg_iovlen = 1;
    volt_msg_info_reply(&x->asked, &info);
    if (volt_msg_info_put(&x->m, &x->control, &info) < 0) x->m.msg_controllen = 0;
}
static volt_poll exchange_run(volt_cx *cx, void *arg) {
    exchange *x = (exchange *)arg;
    VOLT_BEGIN(cx, x);
    if (x->e) VOLT_AWAIT(x->rc, volt_event_wait(cx, &x->e->landed));
    if (x->rc == 0) {
        exchange_reply(x);
        VOLT_AWAIT(x->rc, volt_sendmsg(cx, x->owner->udp, &x->m, 0)); // an error: as one lost
    }
    if (x->e) entry_release(x->e);
    x->owner->n_clients--;
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    int64_t n;
    size_t segment;
    exchange x;
} receiver;

// Takes the query that was received. Returns 1, or 0 if it is dropped.
static int receiver_take(volt_cx *cx, receiver *r) {
    server *s = r->x.owner;
    exchange *x = &r->x;
    memset(&x->frame, 0, sizeof x->frame); // a spawn needs a new one
    x->rc = 0;
    if (!volt_addr_is_loopback(&x->from)) s->n.foreign++;
    else if (r->n == -EMSGSIZE || !query_read(&x->q, s->seed, x->bytes, (size_t)r->n))
        s->n.malformed++;
    else if (s->n_clients == CLIENTS_MAX || !query_find(cx, s, &x->q, &x->e)) s->n.overload++;
    else {
        s->n_clients++;
        return 1;
    }
    return 0;
}
// An answer that is there is sent by this task. A task of its own waits for one that is not.
static volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *r = (receiver *)arg;
    server *const s = r->x.owner;
    VOLT_BEGIN(cx, r);
    for (;;) {
        // one datagram, with its properties: the socket does not join them
        VOLT_AWAIT(r->n, volt_with_token(cx, &r->stop, &s->stop,
                                         volt_recv_segments(cx, s->udp, r->x.bytes,
                                                            sizeof r->x.bytes, &r->segment,
                                                            &r->x.from, &r->x.asked)));
        if (r->n == -ECANCELED || r->n == -EBADF) break;
        if (r->n < 0 && r->n != -EMSGSIZE) {
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(10))); // memory is short, for example
            continue;
        }
        if (!receiver_take(cx, r)) continue;
        if (!r->x.e || volt_event_is_set(&r->x.e->landed)) {
            VOLT_AWAIT(exchange_run(cx, &r->x));
        } else if (VOLT_GROUP_SPAWN(cx, &s->tasks, exchange_run, r->x) < 0) {
            entry_release(r->x.e);
            s->n_clients--;
            s->n.overload++;
        }
    }
    VOLT_END(0);
}

// ---- clients over TCP: one query after the other on each connection

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer limit;
    server *owner;
    int fd;
    int64_t rc;
    entry *e;
    query q;
    volt_reader in;
    volt_span record;
    size_t n_out;
    unsigned char *out; // room for the longest answer
    unsigned char buf[1024];
} stream;

// Takes the query that was received. Returns 1, or 0 if the connection is to be closed.
static int stream_take(volt_cx *cx, stream *c) {
    server *s = c->owner;
    s->n.streams++;
    if (!query_read(&c->q, s->seed, (unsigned char *)c->record.data, c->record.len))
        s->n.malformed++;
    else if (!query_find(cx, s, &c->q, &c->e)) s->n.overload++;
    else return 1;
    return 0;
}
static volt_poll stream_run(volt_cx *cx, void *arg) {
    stream *c = (stream *)arg;
    VOLT_BEGIN(cx, c);
    volt_reader_init(&c->in, volt_stream_of(c->fd), c->buf, sizeof c->buf, VOLT_LONG_STOP);
    c->out = (unsigned char *)malloc(2 + MESSAGE_BYTES);
    while (c->out) {
        VOLT_AWAIT(c->rc, volt_with_token(cx, &c->stop, &c->owner->stop,
                              volt_within(cx, &c->limit, VOLT_S(STREAM_IDLE_S),
                                  volt_read_record(cx, &c->in, &tcp_record, &c->record))));
        if (c->rc != 1 || !stream_take(cx, c)) break; // 0: the end
        if (c->e) VOLT_AWAIT(c->rc, volt_event_wait(cx, &c->e->landed));
        c->n_out = reply_write(c->out + 2, MESSAGE_BYTES, &c->q, c->e);
        if (c->e) entry_release(c->e);
        if (c->rc < 0) break;
        put16(c->out, (unsigned)c->n_out);
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(STREAM_IDLE_S),
                                      volt_write_all(cx, c->fd, c->out, 2 + c->n_out)));
        if (c->rc < 0) break;
    }
    free(c->out);
    volt_close(cx, c->fd);
    c->owner->n_streams--;
    VOLT_END(0);
}

// ---- the program

typedef struct {
    volt_frame frame;
    volt_arm signalled, came;
    volt_timer limit;
    server s;
    volt_addr from;
    int signals, fd;
    int64_t rc;
} program;

static void stream_came(volt_cx *cx, program *p) {
    server *s = &p->s;
    stream c = { .owner = s, .fd = p->fd };
    if (!volt_addr_is_loopback(&p->from)) s->n.foreign++;
    else if (s->n_streams == STREAMS_MAX ||
             VOLT_GROUP_SPAWN(cx, &s->tasks, stream_run, c) < 0) s->n.overload++;
    else {
        s->n_streams++;
        return; // the task has the descriptor
    }
    volt_close(cx, p->fd);
}
static volt_poll program_run(volt_cx *cx, void *arg) {
    program *p = (program *)arg;
    VOLT_BEGIN(cx, p);
    p->rc = VOLT_GROUP_SPAWN(cx, &p->s.tasks, receiver_run, (receiver){ .x = { .owner = &p->s } });
    while (p->rc >= 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&p->signalled, p->rc, volt_signals_next(cx, p->signals, NULL)),
            VOLT_ARM(&p->came, p->fd, volt_accept_from(cx, p->s.tcp, &p->from))));
        if (p->came.fired && p->fd >= 0) stream_came(cx, p);
        else if (p->signalled.fired && p->rc == SIGUSR1) server_print(&p->s);
        else break; // to stop, or the listener fails for good
    }
    if (p->came.fired && p->fd < 0) p->rc = p->fd;
    volt_token_cancel(&p->s.stop);
    volt_close(cx, p->s.tcp);
    VOLT_AWAIT(volt_within(cx, &p->limit, VOLT_S(DRAIN_S), volt_group_wait(cx, &p->s.tasks)));
    VOLT_AWAIT(volt_group_close(cx, &p->s.tasks)); // cancels those that are left
    volt_close(cx, p->s.udp);
    volt_close(cx, p->signals);
    server_print(&p->s);
    VOLT_END(p->rc < 0 ? p->rc : 0);
}

// Opens the UDP socket, and the listener with the same port. A port that the system has chosen for
// one may be in use for the other.
static int server_open(server *s, const volt_addr *at) {
    const volt_udp_options options = { .has_info = 1, .receive_bytes = 1 << 20 };
    for (int tries = 0;; tries++) {
        volt_addr here;
        s->udp = volt_udp_open(at, &options);
        if (s->udp < 0) return s->udp;
        int rc = volt_local_addr(s->udp, &here);
        if (rc == 0) rc = s->tcp = volt_listen_addr(&here, NULL);
        if (rc >= 0) return volt_addr_port(&here);
        close(s->udp);
        if (rc != -EADDRINUSE || volt_addr_port(at) != 0 || tries == 20) return rc;
    }
}
static int usage(const char *name) {
    fprintf(stderr, "usage: %s [-c CACHE_KIB] LISTEN_ADDR UPSTREAM_ADDR...   at most %d upstream\n",
            name, UPSTREAMS_MAX);
    return 2;
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    static program p;
    server *s = &p.s;
    const volt_config config = { .workers = 1, .log = { .fn = volt_log_stderr } };
    struct rlimit fds;
    volt_addr at;
    int option, kib = CACHE_KIB;
    while ((option = getopt(argc, argv, "c:")) == 'c') kib = atoi(optarg);
    if (option != -1 || kib < 1 || kib > 1 << 20 || optind >= argc) return usage(argv[0]);
    if (volt_addr_parse(&at, argv[optind]) < 0) return usage(argv[0]);
    for (int i = optind + 1; i < argc; i++)
        if (s->n_up == UPSTREAMS_MAX || volt_addr_parse(&s->up[s->n_up++], argv[i]) < 0)
            return usage(argv[0]);
    if (s->n_up == 0) return usage(argv[0]);
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0) { // the default may be too low
        fds.rlim_cur = fds.rlim_max;
        setrlimit(RLIMIT_NOFILE, &fds);
    }
    s->n_bytes_max = (size_t)kib << 10;
    if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed) return 1;
    p.signals = volt_signals_open(signals, 3); // before the runtime has threads
    int rc = p.signals < 0 ? p.signals : server_open(s, &at);
    if (rc >= 0) {
        printf("port %d\n", rc);
        fflush(stdout);
        rc = volt_run(&config, program_run, &p);
    }
    for (unsigned i = 0; i < BUCKETS; i++)
        while (s->buckets[i]) entry_remove(s, &s->buckets[i]);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
