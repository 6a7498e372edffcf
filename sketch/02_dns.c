// SPDX-License-Identifier: MIT OR 0BSD
// A caching DNS forwarder for the programs of one machine, over UDP and TCP.
//   - The cache is bounded in bytes. An answer lives as long as the smallest TTL of its answer
//     section; a negative one as long as its SOA record says; a failure for two seconds.
//   - Equal queries that arrive during a look-up share it.
//   - Each attempt at an upstream server has a socket of its own: the kernel chooses its port at
//     random, takes datagrams from that server only, and reports an ICMP error at once. The id of
//     the query is random, too. After a time limit or an error the next server is asked.
//   - An answer that does not fit into a datagram is fetched over TCP. A client whose answer does
//     not fit gets the TC bit, and asks again over TCP.
//   - On a wildcard address each answer is sent from the address that was asked.
//   - Malformed packets are dropped. SIGUSR1 prints the counters; SIGINT and SIGTERM end the
//     program when the look-ups under way have ended, after two seconds at most.
// Clients and servers are loopback addresses: other clients are ignored, so that the forwarder
// cannot be used to attack other machines.
//
//     cc -I. -pthread sketch/02_dns.c -o dns && ./dns 127.0.0.1:5300 127.0.0.53:53
//     dig @127.0.0.1 -p 5300 example.org
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/uio.h>

enum { // bounds
    CACHE_BYTES = 16 << 20,
    CACHE_BUCKETS = 8192,
    FLIGHT_BUCKETS = 512,
    FLIGHTS_MAX = 1024, // look-ups at once
    WAITERS_MAX = 4096, // clients of look-ups over UDP at once
    STREAMS_MAX = 64,   // clients over TCP at once
    UPSTREAMS_MAX = 8,
    ROUNDS = 2,       // attempts at each upstream server
    STRANGERS_MAX = 16, // datagrams of one attempt that do not answer its query
    BATCH = 32,       // datagrams of one system call
};
enum { // limits, in ms
    FIRST_TRY_MS = 700,
    LATER_TRY_MS = 1500,
    STREAM_TRY_MS = 3000,
    FLIGHT_MS = 6000, // a whole look-up
    STREAM_IDLE_MS = 10000,
    SEND_MS = 1000,
    GRACE_MS = 2000,
};
enum { TTL_MAX = 86400, TTL_NEGATIVE_MAX = 3600, TTL_FAILURE = 2 }; // seconds in the cache

// ---- messages: RFC 1035, and EDNS of RFC 6891

enum {
    HEAD = 12,
    NAME_BYTES = 255,
    QUESTION_BYTES = NAME_BYTES + 4,
    RECORD_BYTES = 10, // type, class, TTL and length of a record
    OPT_BYTES = 1 + RECORD_BYTES,
    QUERY_BYTES = HEAD + QUESTION_BYTES + OPT_BYTES,
    MESSAGE_BYTES = 65535,
    DATAGRAM_BYTES = 1232,     // the most that is sent or asked for: no path fragments it
    PLAIN_DATAGRAM_BYTES = 512 // the same without EDNS
};
enum { TYPE_SOA = 6, TYPE_OPT = 41, TYPE_TSIG = 250, TYPE_IXFR, TYPE_AXFR, TYPE_ANY = 255 };
enum { CLASS_IN = 1 };
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

// Returns the offset behind the name at an offset, or 0 if it is malformed. A compression pointer
// must point backwards, behind the header.
static size_t name_skip(const unsigned char *m, size_t len, size_t at) {
    const size_t start = at;
    while (at < len && at - start < NAME_BYTES) {
        unsigned n = m[at];
        if (n == 0) return at + 1;
        if (n >= 0xc0) {
            if (len - at < 2) return 0;
            size_t to = get16(m + at) & 0x3fff;
            return to >= HEAD && to < start ? at + 2 : 0;
        }
        if (n >= 0x40) return 0;
        at += n + 1;
    }
    return 0;
}

typedef struct {
    size_t fixed, data, end; // offsets of the type, of the data and of the next record
    unsigned type;
    uint32_t ttl;
} record;

// Reads the record at an offset. Returns 1, or 0 if it is malformed.
static int record_read(const unsigned char *m, size_t len, size_t at, record *r) {
    r->fixed = name_skip(m, len, at);
    if (r->fixed == 0 || len - r->fixed < RECORD_BYTES) return 0;
    r->data = r->fixed + RECORD_BYTES;
    r->type = get16(m + r->fixed);
    r->ttl = get32(m + r->fixed + 4);
    r->end = r->data + get16(m + r->fixed + 8);
    return r->end <= len;
}

// Subtracts an age from all TTLs of a message that response_read has accepted.
static void records_age(unsigned char *m, size_t len, uint32_t age) {
    record r;
    for (size_t at = name_skip(m, len, HEAD) + 4; at < len; at = r.end) {
        if (!record_read(m, len, at, &r)) return;
        put32(m + r.fixed + 4, r.ttl > age ? r.ttl - age : 0);
    }
}

// Appends an OPT record to a message. Returns the new length.
static size_t opt_append(unsigned char *m, size_t len, unsigned rcode, int is_dnssec) {
    unsigned char *p = m + len;
    p[0] = 0; // the root
    put16(p + 1, TYPE_OPT);
    put16(p + 3, DATAGRAM_BYTES);
    put32(p + 5, (uint32_t)(rcode >> 4) << 24 | (is_dnssec ? EDNS_DNSSEC : 0u));
    put16(p + 9, 0);
    put16(m + 10, get16(m + 10) + 1);
    return len + OPT_BYTES;
}

// Two queries are equal in these: the question in lower case, and the flags that change an answer.
typedef struct {
    uint32_t hash;
    uint16_t n_question, type;
    unsigned char bytes[QUESTION_BYTES + 1];
} key;

static unsigned char lower(unsigned char c) {
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}
static void key_make(key *k, uint32_t seed, const unsigned char *question, size_t n,
                     int is_dnssec, int is_unchecked) {
    k->n_question = (uint16_t)n;
    k->type = (uint16_t)get16(question + n - 4);
    for (size_t i = 0; i < n - 4; i++) k->bytes[i] = lower(question[i]); // lengths are below 'A'
    memcpy(k->bytes + n - 4, question + n - 4, 4);
    k->bytes[n] = (unsigned char)((is_dnssec ? 1 : 0) | (is_unchecked ? 2 : 0));
    k->hash = seed; // a random one, so that a client cannot choose names of one bucket
    for (size_t i = 0; i <= n; i++) k->hash = (k->hash ^ k->bytes[i]) * 16777619u;
    k->hash ^= k->hash >> 15;
}
static int key_equal(const key *a, const key *b) {
    return a->hash == b->hash && a->n_question == b->n_question &&
           memcmp(a->bytes, b->bytes, a->n_question + 1u) == 0;
}
static int key_is_dnssec(const key *k) { return k->bytes[k->n_question] & 1; }
static int key_is_unchecked(const key *k) { return k->bytes[k->n_question] & 2; }

// A query of a client.
typedef struct {
    uint16_t id, flags, n_question;
    uint16_t most;     // bytes of the largest answer over UDP
    uint8_t has_edns, is_dnssec;
    uint8_t rcode;     // not OK: the error that answers it
    unsigned char question[QUESTION_BYTES]; // in the client's mixture of upper and lower case
    key k;
} request;

// Reads a query. Returns 1, or 0 if it is malformed or no query at all.
static int request_read(request *r, uint32_t seed, const unsigned char *m, size_t len) {
    record extra;
    if (len < HEAD) return 0;
    r->id = (uint16_t)get16(m);
    r->flags = (uint16_t)get16(m + 2);
    if (r->flags & FLAG_ANSWER || get16(m + 4) != 1 || get32(m + 6) != 0) return 0;
    size_t at = name_skip(m, len, HEAD);
    if (at == 0 || len - at < 4) return 0;
    at += 4;
    r->n_question = (uint16_t)(at - HEAD);
    memcpy(r->question, m + HEAD, r->n_question);
    r->most = PLAIN_DATAGRAM_BYTES;
    r->has_edns = r->is_dnssec = 0;
    r->rcode = OK;
    for (unsigned n = get16(m + 10); n > 0; n--, at = extra.end) {
        if (!record_read(m, len, at, &extra)) return 0;
        if (extra.type == TYPE_TSIG) r->rcode = NOTIMP; // its signature would not survive
        if (extra.type != TYPE_OPT) continue;
        if (m[at] != 0 || r->has_edns) return 0;
        unsigned most = get16(m + extra.fixed + 2);
        r->has_edns = 1;
        r->is_dnssec = (extra.ttl & EDNS_DNSSEC) != 0;
        r->most = (uint16_t)(most < PLAIN_DATAGRAM_BYTES ? PLAIN_DATAGRAM_BYTES
                             : most > DATAGRAM_BYTES     ? DATAGRAM_BYTES
                                                         : most);
        if ((extra.ttl >> 16 & 0xff) != 0) r->rcode = BADVERS;
    }
    if (at != len) return 0;
    key_make(&r->k, seed, r->question, r->n_question, r->is_dnssec,
             (r->flags & FLAG_UNCHECKED) != 0);
    if (r->rcode != OK) return 1;
    if (r->flags & FLAGS_OPCODE || r->k.type == TYPE_AXFR || r->k.type == TYPE_IXFR)
        r->rcode = NOTIMP;
    else if (get16(r->question + r->n_question - 2) != CLASS_IN)
        r->rcode = REFUSED;
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
    int has_wanted = 0;
    *out = (response){ .len = 0 };
    if (len < HEAD || get16(m) != id) return 0;
    unsigned flags = get16(m + 2);
    out->rcode = flags & FLAGS_RCODE;
    if (!(flags & FLAG_ANSWER) || flags & FLAGS_OPCODE) return 0;
    // a server that does not know EDNS may answer with its header alone
    if (get16(m + 4) == 0 && len == HEAD) return out->rcode == FORMERR || out->rcode == NOTIMP;
    size_t at = get16(m + 4) == 1 ? name_skip(m, len, HEAD) : 0;
    if (at == 0 || len - at < 4) return 0;
    at += 4;
    key_make(&asked, 0, m + HEAD, at - HEAD, 0, 0);
    if (asked.n_question != k->n_question || memcmp(asked.bytes, k->bytes, k->n_question) != 0)
        return 0;
    out->is_cut = (flags & FLAG_CUT) != 0;
    if (out->is_cut) return 1;
    for (unsigned section = 0; section < 3; section++) {
        for (unsigned n = get16(m + 6 + 2 * section); n > 0; n--, at = r.end) {
            if (!record_read(m, len, at, &r)) return 0;
            if (r.ttl > INT32_MAX && r.type != TYPE_OPT) r.ttl = 0;
            if (section == 0) {
                if (r.ttl < ttl) ttl = r.ttl;
                has_wanted |= r.type == k->type || k->type == TYPE_ANY;
            } else if (section == 1 && r.type == TYPE_SOA) {
                if (r.end - r.data < 22) return 0;
                uint32_t least = get32(m + r.end - 4); // the last of its five numbers
                soa_ttl = least < r.ttl ? least : r.ttl;
            } else if (section == 2 && r.type == TYPE_OPT && m[at] == 0) {
                // pointers into records behind it would be wrong without it: they are left out
                out->rcode |= r.ttl >> 24 << 4;
                section = 3;
                break;
            } else if (section == 2) {
                out->n_additional++;
            }
        }
    }
    out->len = at;
    if (out->rcode == OK && has_wanted) {
        out->ttl = ttl;
    } else if (out->rcode == OK || out->rcode == NXDOMAIN) {
        if (ttl > soa_ttl) ttl = soa_ttl; // without an SOA record: 0
        out->ttl = ttl < TTL_NEGATIVE_MAX ? ttl : TTL_NEGATIVE_MAX;
    }
    return 1;
}

// ---- answers, the cache, look-ups in flight

// A message that several clients are sent. Only its number of references changes.
typedef struct {
    unsigned refs;
    volt_time stored;
    size_t len;
    unsigned char msg[];
} answer;

static answer *answer_new(const unsigned char *m, size_t len, unsigned n_additional) {
    answer *a = (answer *)malloc(sizeof *a + len);
    if (!a) return NULL;
    a->refs = 1;
    a->stored = volt_now();
    a->len = len;
    memcpy(a->msg, m, len);
    put16(a->msg + 10, n_additional);
    return a;
}
static answer *answer_retain(answer *a) {
    if (a) __atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}
static void answer_release(answer *a) {
    if (a && __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) == 0) free(a);
}

typedef struct entry {
    struct entry *next;          // in the bucket
    struct entry *newer, *older; // by the last use
    answer *a;
    volt_time expires;
    key k;
} entry;

// A look-up that a task of its own makes, and that any number of tasks wait for.
typedef struct flight {
    struct flight *next; // in the bucket
    unsigned refs;       // that of its task, and one of each waiter
    volt_event landed;
    answer *result; // once it has landed; NULL: none
    key k;
} flight;

typedef struct {
    pthread_mutex_t lock; // of all members; held for a few steps, and never across an await
    entry *entries[CACHE_BUCKETS];
    entry *newest, *oldest;
    size_t n_bytes, n_entries;
    flight *flights[FLIGHT_BUCKETS];
    unsigned n_flights;
} table;

static size_t entry_bytes(const entry *e) { return sizeof *e + sizeof *e->a + e->a->len; }

static void entry_unlink(table *t, entry *e) { // from the order of use
    *(e->newer ? &e->newer->older : &t->newest) = e->older;
    *(e->older ? &e->older->newer : &t->oldest) = e->newer;
}
static void entry_link(table *t, entry *e) {
    e->newer = NULL;
    e->older = t->newest;
    *(e->older ? &e->older->newer : &t->oldest) = e;
    t->newest = e;
}
static void entry_remove(table *t, entry *e) {
    entry **at = &t->entries[e->k.hash % CACHE_BUCKETS];
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    entry_unlink(t, e);
    t->n_bytes -= entry_bytes(e);
    t->n_entries--;
    answer_release(e->a);
    free(e);
}
static entry *entry_find(table *t, const key *k) {
    entry *e = t->entries[k->hash % CACHE_BUCKETS];
    while (e && !key_equal(&e->k, k)) e = e->next;
    return e;
}
static void entry_put(table *t, const key *k, answer *a, volt_time expires) {
    entry *e = entry_find(t, k);
    if (e) entry_remove(t, e);
    e = (entry *)malloc(sizeof *e);
    if (!e) return; // the answer is not cached
    *e = (entry){ .a = answer_retain(a), .expires = expires, .k = *k };
    e->next = t->entries[k->hash % CACHE_BUCKETS];
    t->entries[k->hash % CACHE_BUCKETS] = e;
    entry_link(t, e);
    t->n_entries++;
    t->n_bytes += entry_bytes(e);
    while (t->n_bytes > CACHE_BYTES) entry_remove(t, t->oldest);
}

static void flight_release(flight *f) {
    if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    answer_release(f->result);
    free(f);
}

enum { FOUND_ANSWER, FOUND_FLIGHT, FOUND_NOTHING, FOUND_ERROR, FOUND_NO_ROOM };

// Finds the answer to a query, or the look-up in flight that will have it. Otherwise it adds a new
// look-up if may_add is 1, whose task the caller must start. The caller releases *a or *f.
//   returns: FOUND_ANSWER with *a | FOUND_FLIGHT with *f | FOUND_NOTHING with the new look-up in *f
//            if may_add is 1 | FOUND_NO_ROOM
static int table_find(table *t, const key *k, int may_add, answer **a, flight **f) {
    flight **bucket = &t->flights[k->hash % FLIGHT_BUCKETS];
    int found = FOUND_NOTHING;
    pthread_mutex_lock(&t->lock);
    entry *e = entry_find(t, k);
    if (e && e->expires <= volt_now()) {
        entry_remove(t, e);
        e = NULL;
    }
    if (e) {
        entry_unlink(t, e);
        entry_link(t, e);
        *a = answer_retain(e->a);
        found = FOUND_ANSWER;
        goto out;
    }
    for (*f = *bucket; *f; *f = (*f)->next) {
        if (!key_equal(&(*f)->k, k)) continue;
        __atomic_add_fetch(&(*f)->refs, 1, __ATOMIC_RELAXED);
        found = FOUND_FLIGHT;
        goto out;
    }
    if (!may_add) goto out;
    if (t->n_flights < FLIGHTS_MAX) *f = (flight *)calloc(1, sizeof **f);
    if (!*f) {
        found = FOUND_NO_ROOM;
        goto out;
    }
    (*f)->refs = 2; // the task's and the caller's
    (*f)->k = *k;
    (*f)->next = *bucket;
    *bucket = *f;
    t->n_flights++;
out:
    pthread_mutex_unlock(&t->lock);
    return found;
}
// Ends a look-up: its answer is cached for `ttl` seconds, and the waiters go on. a NULL: it has
// failed without an answer.
static void table_land(table *t, flight *f, answer *a, uint32_t ttl) {
    pthread_mutex_lock(&t->lock);
    flight **at = &t->flights[f->k.hash % FLIGHT_BUCKETS];
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    t->n_flights--;
    if (a && ttl > 0) entry_put(t, &f->k, a, a->stored + VOLT_S(ttl));
    pthread_mutex_unlock(&t->lock);
    f->result = a;
    volt_event_set(&f->landed);
    flight_release(f);
}

// ---- the server, its counters

#define COUNTERS(X_)                                      \
    X_(QUERIES, "queries")                                \
    X_(STREAM_QUERIES, "of these over TCP")               \
    X_(HITS, "answered from the cache")                   \
    X_(SHARED, "joined to a look-up under way")           \
    X_(LOOKUPS, "look-ups")                               \
    X_(REPLIES, "answers sent")                           \
    X_(CUT, "of these with the TC bit")                   \
    X_(ERRORS, "of these refused or not implemented")     \
    X_(FAILURES, "look-ups without an answer")            \
    X_(ATTEMPTS, "attempts at upstream servers")          \
    X_(STREAM_ATTEMPTS, "of these repeated over TCP")     \
    X_(TIMEOUTS, "attempts that timed out")               \
    X_(UNREACHABLE, "attempts that had an error")         \
    X_(UNWILLING, "attempts that a server has refused")   \
    X_(STRANGERS, "upstream datagrams that did not fit")  \
    X_(MALFORMED, "malformed queries, dropped")           \
    X_(FOREIGN, "queries of other machines, dropped")     \
    X_(OVERLOAD, "queries dropped for want of room")      \
    X_(SEND_ERRORS, "answers that could not be sent")
enum {
#define COUNTER_ENUM(name_, text_) N_##name_,
    COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
    N_COUNTERS
};
static const char *const counter_texts[] = {
#define COUNTER_TEXT(name_, text_) text_,
    COUNTERS(COUNTER_TEXT)
#undef COUNTER_TEXT
};

typedef struct {
    volt_addr at;
    char text[80];
} upstream;

typedef struct {
    volt_token stop;    // ends the receiving of queries, but no look-up
    volt_group tasks;   // of all tasks; its owner is app_run
    volt_sem waiters, streams; // places for clients
    table t;
    uint32_t seed;
    upstream up[UPSTREAMS_MAX];
    unsigned n_up, preferred;
    int udp, tcp;
    int error; // that has ended the server, or 0
    uint64_t n[N_COUNTERS];
} server;

static void count(server *s, int what, unsigned n) {
    __atomic_add_fetch(&s->n[what], n, __ATOMIC_RELAXED);
}

static void server_print(server *s) {
    pthread_mutex_lock(&s->t.lock);
    size_t n_entries = s->t.n_entries, n_bytes = s->t.n_bytes;
    unsigned n_flights = s->t.n_flights;
    pthread_mutex_unlock(&s->t.lock);
    fprintf(stderr, "%12zu entries in the cache, %zu bytes\n", n_entries, n_bytes);
    fprintf(stderr, "%12u look-ups under way\n", n_flights);
    for (int i = 0; i < N_COUNTERS; i++)
        fprintf(stderr, "%12llu %s\n",
                (unsigned long long)__atomic_load_n(&s->n[i], __ATOMIC_RELAXED), counter_texts[i]);
}

// Ends the program because one of its parts cannot go on.
static void server_fail(server *s, int rc) {
    int none = 0;
    __atomic_compare_exchange_n(&s->error, &none, rc, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    volt_token_cancel(&s->stop);
}

// Returns 1 for an address of this machine's loopback interface: 127.0.0.0/8, the same mapped to
// IPv6, or ::1.
static int is_loopback(const struct sockaddr *sa) {
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (sa->sa_family != AF_INET6) return 0;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}
static int addr_is_loopback(const volt_addr *a) {
    socklen_t len;
    return is_loopback(volt_addr_sockaddr(a, &len));
}
static int addr_is_any(const volt_addr *a) {
    socklen_t len;
    const void *sa = volt_addr_sockaddr(a, &len);
    if (volt_addr_family(a) == AF_INET)
        return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
    return volt_addr_family(a) == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

// Writes the answer to a query: the id, the flags and the spelling of the query, and the TTLs of
// now. Where it is longer than `room`, only the question is left, with the TC bit. Returns the
// length.
static size_t reply_write(server *s, unsigned char *out, size_t room, const request *r,
                          const answer *a) {
    size_t edns = r->has_edns ? OPT_BYTES : 0;
    int is_cut = a->len + edns > room;
    size_t len = is_cut ? HEAD + (size_t)r->n_question : a->len;
    unsigned kept = FLAGS_RCODE;
    if (r->is_dnssec || r->flags & FLAG_AUTHENTIC) kept |= FLAG_AUTHENTIC;
    memcpy(out, a->msg, len);
    put16(out, r->id);
    put16(out + 2, (get16(a->msg + 2) & kept) | FLAG_ANSWER | FLAG_RECURSES |
                       (r->flags & (FLAG_RECURSE | FLAG_UNCHECKED)) | (is_cut ? FLAG_CUT : 0u));
    memcpy(out + HEAD, r->question, r->n_question);
    if (is_cut) memset(out + 6, 0, 6);
    else records_age(out, len, (uint32_t)((volt_now() - a->stored) / VOLT_S(1)));
    if (is_cut) count(s, N_CUT, 1);
    return r->has_edns ? opt_append(out, len, OK, r->is_dnssec) : len;
}
static size_t reply_write_error(server *s, unsigned char *out, const request *r) {
    size_t len = HEAD + (size_t)r->n_question;
    memset(out, 0, HEAD);
    put16(out, r->id);
    put16(out + 2, FLAG_ANSWER | FLAG_RECURSES | (r->flags & (FLAGS_OPCODE | FLAG_RECURSE)) |
                       (r->rcode & FLAGS_RCODE));
    put16(out + 4, 1);
    memcpy(out + HEAD, r->question, r->n_question);
    count(s, N_ERRORS, 1);
    return r->has_edns ? opt_append(out, len, r->rcode, r->is_dnssec) : len;
}

// ---- one attempt at an upstream server

typedef struct ask ask;
typedef struct {
    volt_frame frame;
    volt_timer limit;
    ask *a;
    int fd, n_strange;
    int64_t n;
} ask_udp;
typedef struct {
    volt_frame frame;
    ask *a;
    volt_reader in;
    volt_span record;
    int fd;
    int64_t n;
} ask_tcp;
struct ask {
    volt_frame frame;
    volt_timer limit;
    server *srv; // set by the caller, as the next members
    const key *k;
    const upstream *up;
    volt_time udp_until, tcp_until;
    response got; // results: what the answer says, and its bytes
    const unsigned char *msg;
    unsigned char *stream; // the buffer of an answer over TCP; freed by the caller
    int is_plain;          // without EDNS
    int64_t rc;
    unsigned id;
    size_t n_query;
    unsigned char query[2 + QUERY_BYTES]; // begins with its length, as TCP needs it
    unsigned char datagram[DATAGRAM_BYTES];
    ask_udp udp;
    ask_tcp tcp;
};

static const volt_record_format dns_record = { .width = 2, .most = MESSAGE_BYTES };
enum { STREAM_BUFFER = 2 + MESSAGE_BYTES };

// Writes the query, with a new id. Returns 0, or -errno of the random numbers.
static int query_write(ask *a) {
    unsigned char *q = a->query + 2;
    uint16_t id;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) return -errno;
    a->id = id;
    memset(q, 0, HEAD);
    put16(q, a->id);
    put16(q + 2, FLAG_RECURSE | FLAG_AUTHENTIC | (key_is_unchecked(a->k) ? FLAG_UNCHECKED : 0u));
    put16(q + 4, 1);
    memcpy(q + HEAD, a->k->bytes, a->k->n_question);
    a->n_query = HEAD + (size_t)a->k->n_question;
    if (!a->is_plain) a->n_query = opt_append(q, a->n_query, OK, key_is_dnssec(a->k));
    put16(a->query, (unsigned)a->n_query);
    return 0;
}

// Takes a datagram. Returns 1 if it is the answer. Of one that is longer than the buffer the
// beginning is there, and it counts as one with the TC bit.
static int ask_take(ask *a, int64_t n) {
    a->msg = a->datagram;
    if (n == -EMSGSIZE) {
        n = sizeof a->datagram;
        a->datagram[2] |= FLAG_CUT >> 8;
    }
    if (response_read(&a->got, a->k, a->id, a->datagram, (size_t)n)) return 1;
    count(a->srv, N_STRANGERS, 1);
    return 0;
}
//   returns: 1 with the answer in a->datagram | -EBADMSG after too many that do not fit | -errno,
//            of an ICMP message, too
static volt_poll ask_udp_run(volt_cx *cx, ask_udp *u) {
    ask *const a = u->a;
    VOLT_BEGIN(cx, u);
    u->fd = volt_sock_open(volt_addr_family(&a->up->at), SOCK_DGRAM, 0);
    if (u->fd < 0) VOLT_RETURN(u->fd);
    VOLT_AWAIT(u->n, volt_connect_on(cx, u->fd, &a->up->at)); // chooses a port
    if (u->n < 0) goto out;
    VOLT_AWAIT(u->n, volt_before(cx, &u->limit, a->udp_until,
                                 volt_send(cx, u->fd, a->query + 2, a->n_query, 0)));
    if (u->n < 0) goto out;
    for (u->n_strange = 0; u->n_strange < STRANGERS_MAX; u->n_strange++) {
        VOLT_AWAIT(u->n, volt_before(cx, &u->limit, a->udp_until,
                                     volt_recv(cx, u->fd, a->datagram, sizeof a->datagram, 0)));
        if (u->n < 0 && u->n != -EMSGSIZE) goto out;
        if (ask_take(a, u->n)) { // a datagram without bytes is none
            u->n = 1;
            goto out;
        }
    }
    u->n = -EBADMSG;
out:
    volt_close(cx, u->fd);
    VOLT_END(u->n);
}

//   returns: 1 with the answer in a->stream | -EPIPE at an early end | -EBADMSG | -errno
static volt_poll ask_tcp_run(volt_cx *cx, ask_tcp *p) {
    ask *const a = p->a;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->fd, volt_connect(cx, &a->up->at));
    if (p->fd < 0) VOLT_RETURN(p->fd);
    VOLT_AWAIT(p->n, volt_write_all(cx, p->fd, a->query, 2 + a->n_query));
    if (p->n < 0) goto out;
    volt_reader_init(&p->in, volt_stream_of(p->fd), a->stream, STREAM_BUFFER);
    VOLT_AWAIT(p->n, volt_read_record(cx, &p->in, &dns_record, &p->record));
    if (p->n < 0) goto out;
    a->msg = (const unsigned char *)p->record.data; // stays valid: the reader is not used again
    if (p->n == 0) p->n = -EPIPE;
    else if (!response_read(&a->got, a->k, a->id, a->msg, p->record.len) || a->got.is_cut)
        p->n = -EBADMSG;
out:
    volt_close(cx, p->fd);
    VOLT_END(p->n);
}

// Asks one server, over TCP if the datagram was too short, and without EDNS if the server does not
// know it.
//   returns: 1 with the answer in a->got and a->msg | -errno
static volt_poll ask_run(volt_cx *cx, ask *a) {
    VOLT_BEGIN(cx, a);
    a->udp.a = a->tcp.a = a;
    for (a->is_plain = 0;; a->is_plain = 1) {
        a->rc = query_write(a);
        if (a->rc < 0) VOLT_RETURN(a->rc);
        count(a->srv, N_ATTEMPTS, 1);
        VOLT_AWAIT(a->rc, ask_udp_run(cx, &a->udp));
        if (a->rc == 1 && a->got.is_cut) {
            count(a->srv, N_STREAM_ATTEMPTS, 1);
            if (!a->stream) a->stream = (unsigned char *)malloc(STREAM_BUFFER);
            if (!a->stream) VOLT_RETURN(-ENOMEM);
            VOLT_AWAIT(a->rc, volt_before(cx, &a->limit, a->tcp_until, ask_tcp_run(cx, &a->tcp)));
        }
        if (a->rc < 0 || a->is_plain || key_is_dnssec(a->k)) break;
        if (a->got.rcode != FORMERR && a->got.rcode != NOTIMP) break;
    }
    VOLT_END(a->rc);
}

// ---- a look-up

typedef struct {
    volt_frame frame;
    server *srv;
    flight *f;
    volt_time until;
    unsigned first, n_tries;
    int64_t rc;
    ask a;
} lookup;

static void lookup_choose(lookup *l) {
    volt_time now = volt_now();
    volt_time limit = l->n_tries < l->srv->n_up ? VOLT_MS(FIRST_TRY_MS) : VOLT_MS(LATER_TRY_MS);
    l->a.srv = l->srv;
    l->a.k = &l->f->k;
    l->a.up = &l->srv->up[(l->first + l->n_tries) % l->srv->n_up];
    l->a.udp_until = now + limit < l->until ? now + limit : l->until;
    limit += VOLT_MS(STREAM_TRY_MS);
    l->a.tcp_until = now + limit < l->until ? now + limit : l->until;
}
// Returns 1 if the look-up has its answer. Otherwise the next server has its turn, in later
// look-ups as well.
static int lookup_judge(lookup *l) {
    server *s = l->srv;
    if (l->rc == 1 && (l->a.got.rcode == OK || l->a.got.rcode == NXDOMAIN)) return 1;
    count(s, l->rc == 1 ? N_UNWILLING : l->rc == -ETIMEDOUT ? N_TIMEOUTS : N_UNREACHABLE, 1);
    if (l->rc == -EMFILE || l->rc == -ENFILE || l->rc == -ENOMEM) return 0; // not of the server
    unsigned failed = (l->first + l->n_tries) % s->n_up;
    __atomic_compare_exchange_n(&s->preferred, &failed, (failed + 1) % s->n_up, 0,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return 0;
}
static void lookup_land(lookup *l, int has_answer) {
    const key *k = &l->f->k;
    answer *a = NULL;
    uint32_t ttl = TTL_FAILURE;
    if (has_answer) {
        a = answer_new(l->a.msg, l->a.got.len, l->a.got.n_additional);
        ttl = l->a.got.ttl;
    } else if (l->rc != -ECANCELED) {
        unsigned char m[HEAD + QUESTION_BYTES] = { 0 };
        put16(m + 2, FLAG_ANSWER | SERVFAIL);
        put16(m + 4, 1);
        memcpy(m + HEAD, k->bytes, k->n_question);
        a = answer_new(m, HEAD + (size_t)k->n_question, 0);
        count(l->srv, N_FAILURES, 1);
    }
    free(l->a.stream);
    table_land(&l->srv->t, l->f, a, ttl);
}
static volt_poll lookup_run(volt_cx *cx, void *arg) {
    lookup *l = (lookup *)arg;
    VOLT_BEGIN(cx, l);
    l->until = volt_now() + VOLT_MS(FLIGHT_MS);
    l->first = __atomic_load_n(&l->srv->preferred, __ATOMIC_RELAXED);
    l->rc = -ETIMEDOUT;
    for (l->n_tries = 0; l->n_tries < ROUNDS * l->srv->n_up; l->n_tries++) {
        if (volt_now() >= l->until) break;
        lookup_choose(l);
        VOLT_AWAIT(l->rc, ask_run(cx, &l->a));
        if (l->rc == -ECANCELED) break;
        if (lookup_judge(l)) {
            lookup_land(l, 1);
            VOLT_RETURN(0);
        }
    }
    lookup_land(l, 0);
    VOLT_END(0);
}

// Finds the answer to a query, or starts a look-up. The caller releases *a, or waits for *f and
// releases that.
//   returns: FOUND_ANSWER with *a | FOUND_FLIGHT with *f | FOUND_ERROR: r->rcode is the answer |
//            FOUND_NO_ROOM
static int lookup_begin(volt_cx *cx, server *s, request *r, answer **a, flight **f) {
    int may_look = (r->flags & FLAG_RECURSE) != 0;
    if (r->rcode != OK) return FOUND_ERROR;
    int found = table_find(&s->t, &r->k, may_look, a, f);
    if (found == FOUND_ANSWER) count(s, N_HITS, 1);
    if (found == FOUND_FLIGHT) count(s, N_SHARED, 1);
    if (found == FOUND_NO_ROOM) count(s, N_OVERLOAD, 1);
    if (found != FOUND_NOTHING) return found;
    if (!may_look) {
        r->rcode = REFUSED;
        return FOUND_ERROR;
    }
    count(s, N_LOOKUPS, 1);
    if (VOLT_GROUP_SPAWN(cx, &s->tasks, lookup_run, (lookup){ .srv = s, .f = *f }) == 0)
        return FOUND_FLIGHT;
    table_land(&s->t, *f, NULL, 0);
    flight_release(*f);
    count(s, N_OVERLOAD, 1);
    return FOUND_NO_ROOM;
}

// ---- clients over UDP

// The control data of one message, aligned as the macros of the C library need it.
typedef union {
    size_t alignment; // as a cmsghdr begins
    unsigned char bytes[VOLT_MSG_INFO_BYTES];
} control;

// Fills in a message to a client: from the address that the client has asked.
static void message_to(struct msghdr *m, struct iovec *iov, control *c,
                       const volt_msg_info *asked) {
    volt_msg_info from = { .has = asked->has & VOLT_MSG_LOCAL,
                           .local = asked->local,
                           .interface = asked->interface };
    m->msg_iov = iov;
    m->msg_iovlen = 1;
    m->msg_control = c;
    m->msg_controllen = 0;
    if (from.has && volt_msg_info_put(m, sizeof *c, &from) == 0) return;
    m->msg_control = NULL;
    m->msg_controllen = 0;
}

// A client whose answer is being looked up.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    server *srv;
    flight *f;
    int64_t rc;
    volt_addr from;
    volt_msg_info asked;
    struct msghdr m;
    struct iovec iov;
    control c;
    request r;
    unsigned char out[DATAGRAM_BYTES];
} waiter;

static void waiter_prepare(waiter *w) {
    socklen_t len;
    const struct sockaddr *to = volt_addr_sockaddr(&w->from, &len);
    w->iov.iov_base = w->out;
    w->iov.iov_len = reply_write(w->srv, w->out, w->r.most, &w->r, w->f->result);
    w->m.msg_name = (void *)(uintptr_t)to;
    w->m.msg_namelen = len;
    message_to(&w->m, &w->iov, &w->c, &w->asked);
}
static volt_poll waiter_run(volt_cx *cx, void *arg) {
    waiter *w = (waiter *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_event_wait(cx, &w->f->landed));
    if (w->rc < 0 || !w->f->result) goto out;
    waiter_prepare(w);
    VOLT_AWAIT(w->rc, volt_within(cx, &w->limit, VOLT_MS(SEND_MS),
                                  volt_sendmsg(cx, w->srv->udp, &w->m, 0)));
    count(w->srv, w->rc < 0 ? N_SEND_ERRORS : N_REPLIES, 1);
out:
    flight_release(w->f);
    volt_sem_release(&w->srv->waiters, 1);
    VOLT_END(0);
}

// The buffers of one received query, and of its answer if that is there at once.
typedef struct {
    struct sockaddr_storage from;
    struct iovec in_iov, out_iov;
    control in_control, out_control;
    unsigned char in[DATAGRAM_BYTES], out[DATAGRAM_BYTES];
} slot;
typedef struct {
    struct mmsghdr in[BATCH], out[BATCH];
    slot slots[BATCH];
    unsigned n_out;
} batch;

// The kernel has written into the headers of the batch before: each receive needs them anew.
static void batch_reset(batch *b) {
    b->n_out = 0;
    for (unsigned i = 0; i < BATCH; i++) {
        slot *s = &b->slots[i];
        s->in_iov = (struct iovec){ .iov_base = s->in, .iov_len = sizeof s->in };
        b->in[i].msg_len = 0;
        b->in[i].msg_hdr = (struct msghdr){ .msg_name = &s->from,
                                            .msg_namelen = sizeof s->from,
                                            .msg_iov = &s->in_iov,
                                            .msg_iovlen = 1,
                                            .msg_control = &s->in_control,
                                            .msg_controllen = sizeof s->in_control };
    }
}
static void batch_answer(batch *b, unsigned i, size_t len, const volt_msg_info *asked) {
    slot *s = &b->slots[i];
    struct mmsghdr *out = &b->out[b->n_out++];
    s->out_iov = (struct iovec){ .iov_base = s->out, .iov_len = len };
    *out = (struct mmsghdr){ .msg_len = 0 };
    out->msg_hdr.msg_name = &s->from;
    out->msg_hdr.msg_namelen = b->in[i].msg_hdr.msg_namelen;
    message_to(&out->msg_hdr, &s->out_iov, &s->out_control, asked);
}

// Starts a task for a query whose answer is being looked up.
static void waiter_start(volt_cx *cx, server *s, const request *r, flight *f,
                         const struct msghdr *m, const volt_msg_info *asked) {
    waiter w = { .srv = s, .f = f, .asked = *asked, .r = *r };
    if (volt_addr_from(&w.from, (const struct sockaddr *)m->msg_name, m->msg_namelen) == 0 &&
        volt_sem_try_acquire(&s->waiters, 1) == 0) {
        if (VOLT_GROUP_SPAWN(cx, &s->tasks, waiter_run, w) == 0) return;
        volt_sem_release(&s->waiters, 1);
    }
    flight_release(f);
    count(s, N_OVERLOAD, 1);
}
// Takes query i of the batch: its answer is appended to the batch, or a task waits for it.
static void batch_take(volt_cx *cx, server *s, batch *b, unsigned i) {
    const struct msghdr *m = &b->in[i].msg_hdr;
    slot *at = &b->slots[i];
    volt_msg_info asked = { .has = 0 };
    request r;
    answer *a = NULL;
    flight *f = NULL;
    if (!is_loopback((const struct sockaddr *)&at->from)) {
        count(s, N_FOREIGN, 1);
        return;
    }
    if (m->msg_flags & MSG_TRUNC || !request_read(&r, s->seed, at->in, b->in[i].msg_len)) {
        count(s, N_MALFORMED, 1);
        return;
    }
    count(s, N_QUERIES, 1);
    volt_msg_info_get(m, &asked);
    int found = lookup_begin(cx, s, &r, &a, &f);
    if (found == FOUND_FLIGHT) waiter_start(cx, s, &r, f, m, &asked);
    if (found == FOUND_ERROR) batch_answer(b, i, reply_write_error(s, at->out, &r), &asked);
    if (found == FOUND_ANSWER) {
        batch_answer(b, i, reply_write(s, at->out, r.most, &r, a), &asked);
        answer_release(a);
    }
}

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer limit;
    server *srv;
    batch *b;
    int64_t n;
    unsigned n_sent;
} receiver;

static volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *r = (receiver *)arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        batch_reset(r->b);
        VOLT_AWAIT(r->n, volt_with_token(cx, &r->stop, &r->srv->stop,
                                         volt_recvmmsg(cx, r->srv->udp, r->b->in, BATCH, 0)));
        if (r->n == -ECANCELED || r->n == -EBADF) break;
        if (r->n == -EMSGSIZE) count(r->srv, N_MALFORMED, 1); // one datagram, longer than a query
        else if (r->n < 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(10))); // memory is short, for example
        for (int64_t i = 0; i < r->n; i++) batch_take(cx, r->srv, r->b, (unsigned)i);
        for (r->n_sent = 0; r->n_sent < r->b->n_out;) {
            VOLT_AWAIT(r->n, volt_within(cx, &r->limit, VOLT_MS(SEND_MS),
                                         volt_sendmmsg(cx, r->srv->udp, r->b->out + r->n_sent,
                                                       r->b->n_out - r->n_sent, 0)));
            if (r->n == -ECANCELED || r->n == -EBADF) break;
            if (r->n < 0) { // of the first of them, which is left out
                count(r->srv, N_SEND_ERRORS, 1);
                r->n = 1;
            } else {
                count(r->srv, N_REPLIES, (unsigned)r->n);
            }
            r->n_sent += (unsigned)r->n;
        }
    }
    free(r->b);
    if (!volt_token_is_cancelled(&r->srv->stop)) server_fail(r->srv, (int)r->n);
    VOLT_END(0);
}

// ---- clients over TCP: one query after the other on each connection

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer limit;
    server *srv;
    int fd;
    int64_t n;
    volt_reader in;
    volt_span record;
    answer *a;
    flight *f;
    request r;
    struct iovec iov[2];
    unsigned char length[2], error[QUERY_BYTES], buf[1024];
    unsigned char *out;
} stream_client;

// Takes a query.
//   returns: 0: the answer or the error is there | 1: it will be in c->f | -EBADMSG | -ENOBUFS
static int stream_take(volt_cx *cx, stream_client *c) {
    server *s = c->srv;
    c->a = NULL;
    c->f = NULL;
    if (!request_read(&c->r, s->seed, (const unsigned char *)c->record.data, c->record.len)) {
        count(s, N_MALFORMED, 1);
        return -EBADMSG;
    }
    count(s, N_QUERIES, 1);
    count(s, N_STREAM_QUERIES, 1);
    int found = lookup_begin(cx, s, &c->r, &c->a, &c->f);
    return found == FOUND_NO_ROOM ? -ENOBUFS : found == FOUND_FLIGHT;
}
// Prepares the answer, or an error. Returns 0, or -ENOMEM.
static int stream_answer(stream_client *c) {
    size_t n;
    if (c->a) {
        size_t room = c->a->len + OPT_BYTES < MESSAGE_BYTES ? c->a->len + OPT_BYTES : MESSAGE_BYTES;
        c->out = (unsigned char *)malloc(room);
        if (!c->out) return -ENOMEM;
        n = reply_write(c->srv, c->out, room, &c->r, c->a);
    } else {
        n = reply_write_error(c->srv, c->error, &c->r);
    }
    put16(c->length, (unsigned)n);
    c->iov[0] = (struct iovec){ .iov_base = c->length, .iov_len = sizeof c->length };
    c->iov[1] = (struct iovec){ .iov_base = c->a ? c->out : c->error, .iov_len = n };
    return 0;
}
static volt_poll stream_client_run(volt_cx *cx, void *arg) {
    stream_client *c = (stream_client *)arg;
    VOLT_BEGIN(cx, c);
    volt_reader_init(&c->in, volt_stream_of(c->fd), c->buf, sizeof c->buf);
    for (;;) {
        VOLT_AWAIT(c->n, volt_with_token(
                             cx, &c->stop, &c->srv->stop,
                             volt_within(cx, &c->limit, VOLT_MS(STREAM_IDLE_MS),
                                         volt_read_record(cx, &c->in, &dns_record, &c->record))));
        if (c->n <= 0) break; // 0: the end; -EMSGSIZE: longer than a query
        c->n = stream_take(cx, c);
        if (c->n < 0) break;
        if (c->n == 1) {
            VOLT_AWAIT(c->n, volt_event_wait(cx, &c->f->landed));
            if (c->n == 0) c->a = answer_retain(c->f->result);
            flight_release(c->f);
            if (!c->a) break; // cancelled, or out of memory
        }
        c->n = stream_answer(c);
        if (c->n == 0)
            VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_MS(SEND_MS),
                                         volt_writev_all(cx, c->fd, c->iov, 2)));
        answer_release(c->a);
        free(c->out);
        c->out = NULL;
        count(c->srv, c->n < 0 ? N_SEND_ERRORS : N_REPLIES, 1);
        if (c->n < 0) break;
    }
    volt_close(cx, c->fd);
    volt_sem_release(&c->srv->streams, 1);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    server *srv;
    volt_addr from;
    int64_t rc;
    int fd;
} acceptor;

static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    acceptor *a = (acceptor *)arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->rc, volt_with_token(cx, &a->stop, &a->srv->stop,
                                          volt_sem_acquire(cx, &a->srv->streams, 1)));
        if (a->rc < 0) break;
        VOLT_AWAIT(a->fd, volt_with_token(cx, &a->stop, &a->srv->stop,
                                          volt_accept_from(cx, a->srv->tcp, &a->from)));
        if (a->fd >= 0 && addr_is_loopback(&a->from)) {
            if (VOLT_GROUP_SPAWN(cx, &a->srv->tasks, stream_client_run,
                                 (stream_client){ .srv = a->srv, .fd = a->fd }) == 0)
                continue; // the task has the descriptor and the place
            count(a->srv, N_OVERLOAD, 1);
        } else if (a->fd >= 0) {
            count(a->srv, N_FOREIGN, 1);
        }
        volt_sem_release(&a->srv->streams, 1);
        if (a->fd >= 0) volt_close(cx, a->fd);
        a->rc = a->fd < 0 ? a->fd : 0;
        if (a->rc == -ECANCELED || a->rc == -EBADF || a->rc == -EINVAL) break;
        if (a->rc < 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100))); // a firewall refuses, for example
    }
    if (!volt_token_is_cancelled(&a->srv->stop)) server_fail(a->srv, (int)a->rc);
    VOLT_END(0);
}

// ---- the program

typedef struct {
    volt_frame frame;
    volt_arm signalled, failed;
    volt_timer grace;
    server srv;
    int sigfd, rc;
} app;

static int app_start(volt_cx *cx, server *s) {
    batch *b = (batch *)calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    int rc = VOLT_GROUP_SPAWN(cx, &s->tasks, receiver_run, (receiver){ .srv = s, .b = b });
    if (rc < 0) free(b);
    return rc < 0 ? rc : VOLT_GROUP_SPAWN(cx, &s->tasks, acceptor_run, (acceptor){ .srv = s });
}
static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = app_start(cx, &m->srv);
    while (m->rc >= 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&m->signalled, m->rc, volt_signals_next(cx, m->sigfd, NULL)),
            VOLT_ARM(&m->failed, m->rc, volt_token_wait(cx, &m->srv.stop))));
        if (!m->signalled.fired || m->rc != SIGUSR1) break;
        server_print(&m->srv);
    }
    volt_token_cancel(&m->srv.stop);
    VOLT_AWAIT(volt_within(cx, &m->grace, VOLT_MS(GRACE_MS), volt_group_wait(cx, &m->srv.tasks)));
    VOLT_AWAIT(volt_group_close(cx, &m->srv.tasks)); // cancels what is left
    volt_close(cx, m->srv.udp);
    volt_close(cx, m->srv.tcp);
    volt_close(cx, m->sigfd);
    server_print(&m->srv);
    VOLT_END(m->srv.error ? m->srv.error : m->rc < 0 ? m->rc : 0);
}

// Opens the UDP socket, and the listener with the same port. *at becomes the address in use.
static int server_open(server *s, volt_addr *at) {
    volt_udp_options options = { .has_info = 1, .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
    s->udp = volt_udp_open(at, &options);
    if (s->udp < 0) return s->udp;
    int rc = volt_local_addr(s->udp, at);
    if (rc == 0) rc = s->tcp = volt_listen_addr(at, NULL);
    return rc < 0 ? rc : 0;
}
static int upstream_add(server *s, const char *text, const volt_addr *listen_at) {
    upstream *u = &s->up[s->n_up];
    if (volt_addr_parse(&u->at, text) < 0 || volt_addr_port(&u->at) == 0) return -EINVAL;
    if (!addr_is_loopback(&u->at)) return -EACCES;
    if (volt_addr_equal(&u->at, listen_at) ||
        (addr_is_any(listen_at) && volt_addr_port(&u->at) == volt_addr_port(listen_at)))
        return -ELOOP;
    if (volt_addr_format(&u->at, u->text, sizeof u->text) < 0) return -EINVAL;
    s->n_up++;
    return 0;
}
static int server_setup(server *s, int argc, char **argv) {
    volt_addr at;
    char text[80];
    int rc = volt_addr_parse(&at, argv[1]);
    if (rc == 0 && !addr_is_any(&at) && !addr_is_loopback(&at)) rc = -EACCES;
    if (rc == 0) rc = server_open(s, &at);
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], volt_strerror(rc));
        return rc;
    }
    for (int i = 2; i < argc; i++) {
        rc = upstream_add(s, argv[i], &at);
        if (rc == 0) continue;
        fprintf(stderr, "%s: %s\n", argv[i], volt_strerror(rc));
        return rc;
    }
    if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed) return -errno;
    pthread_mutex_init(&s->t.lock, NULL);
    volt_sem_release(&s->waiters, WAITERS_MAX);
    volt_sem_release(&s->streams, STREAMS_MAX);
    if (volt_addr_format(&at, text, sizeof text) > 0) fprintf(stderr, "listening on %s\n", text);
    return 0;
}

// Each attempt has a descriptor of its own.
static void fd_limit_raise(void) {
    struct rlimit limit;
    const rlim_t wanted = FLIGHTS_MAX + STREAMS_MAX + 128;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted) return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) perror("setrlimit");
}

int main(int argc, char **argv) {
    static app m;
    volt_config config = { .log = { .fn = volt_log_stderr } };
    if (argc < 3 || argc - 2 > UPSTREAMS_MAX) {
        fprintf(stderr, "usage: %s LISTEN_ADDR UPSTREAM_ADDR...   at most %d, for example\n"
                        "       %s 127.0.0.1:5300 127.0.0.53:53\n",
                argv[0], UPSTREAMS_MAX, argv[0]);
        return 2;
    }
    fd_limit_raise();
    if (server_setup(&m.srv, argc, argv) < 0) return 1;
    m.sigfd = VOLT_SIGNALS(SIGINT, SIGTERM, SIGUSR1); // before the runtime has threads
    int rc = m.sigfd < 0 ? m.sigfd : volt_run(&config, app_run, &m);
    while (m.srv.t.oldest) entry_remove(&m.srv.t, m.srv.t.oldest);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
