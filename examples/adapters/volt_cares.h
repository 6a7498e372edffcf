// SPDX-License-Identifier: MIT OR 0BSD
// c-ares: a task awaits the addresses of a name, and no thread is needed. Include it behind volt.h
// and link with -lcares (1.16 or later). For use, see examples/adapters/cares.c:
//
//     volt_cares c;       // one for all tasks of a runtime
//     volt_cares_open(&c, NULL, 0);
//     volt_cares_query q; // in the state of a task, as is the volt_addr at[8]
//     VOLT_AWAIT(n, volt_within(cx, &limit, VOLT_S(5),
//                               volt_cares_resolve(cx, &c, &q, "example.org", "80", at, 8)));
//     volt_cares_close(cx, &c);
//
// The results are those of volt_resolve. The differences: the servers, time limits and tries are
// chosen by ares_options, any number of queries may be in progress, and none takes a thread. Other
// modules of the system (NSS), such as mDNS, are not asked. volt_cares_open reads /etc/resolv.conf,
// and a query may read /etc/hosts (unless options.lookups is "b") and /etc/services, in place.
//
// The design:
//   - c-ares reports its sockets by a callback, and they go into a poll set; ares_timeout gives the
//     time at which it must be called. One of the waiting tasks, the leader, waits for these, and
//     calls c-ares for all queries; it holds `lead`. When its own answer has come, or its query is
//     given up, the next task gets `lead`. So the adapter has no task of its own, and when no
//     answer is awaited, nothing runs.
//   - c-ares is for one thread at a time: `lock` is held during each call of it, and never while a
//     task waits for a socket.
//   - c-ares cannot take back a single query. It refers to a block of the heap, which outlives a
//     query that is given up. When none is awaited any more, all are cancelled.
#ifndef VOLT_CARES_H
#define VOLT_CARES_H

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VOLT_CARES_EVENTS = 16 }; // that one wait fetches

// The common part of queries. Must not be moved while it is open.
typedef struct volt_cares {
    volt_frame frame; // of the leader, as all down to `until`
    volt_arm ready, late, changed_arm;
    volt_pollev events[VOLT_CARES_EVENTS];
    int n, rc;
    uint32_t seen;   // the count of `changed` when `until` was read
    volt_time until; // when c-ares must be called
    ares_channel channel;
    volt_pollset set;
    volt_mutex lead, lock; // see above
    volt_notify changed;   // another task has begun or given up a query
    // under lock
    unsigned n_waiting; // queries that are awaited
    int error;          // of a socket that could not be waited for, or 0
} volt_cares;

struct volt_cares__block;
// One query, in the state of its task.
typedef struct volt_cares_query {
    volt_frame frame;
    volt_arm ended_arm, lead_arm;
    volt_shield shield;
    volt_event ended;
    struct volt_cares__block *block; // NULL: c-ares has no reference to it
    volt_addr *out;
    size_t cap;
    int status;   // that of c-ares, for ares_strerror, if volt_cares_resolve has not returned
                  // -ECANCELED, or -ETIMEDOUT of a volt_within
    int is_ended; // under lock; set by a leader, or by a call that has begun a query
    int result, rc;
} volt_cares_query;

// The reference of c-ares to a query.
typedef struct volt_cares__block {
    volt_cares *home;
    volt_cares_query *query; // under lock. NULL: given up
} volt_cares__block;

// ---- called by c-ares, under the lock

static inline void volt_cares__on_socket(void *user, ares_socket_t fd, int is_read, int is_write) {
    volt_cares *c = (volt_cares *)user;
    int events = (is_read ? (int)VOLT_IN : 0) | (is_write ? (int)VOLT_OUT : 0); // 0: it is closed
    int rc = volt_pollset_set(&c->set, fd, (uint32_t)events);
    if (rc < 0) c->error = rc;
}
static inline int volt_cares__error(const volt_cares *c, int status) {
    switch (status) {
    case ARES_SUCCESS: return 0;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
    case ARES_ESERVICE: return -ENOENT;
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
    case ARES_ECONNREFUSED:
    case ARES_ETIMEOUT: return -EAGAIN;
    case ARES_ENOMEM: return -ENOMEM;
    case ARES_EBADNAME:
    case ARES_EBADFAMILY:
    case ARES_EBADHINTS:
    case ARES_EBADSTR:
    case ARES_EBADFLAGS: return -EINVAL;
    case ARES_ECANCELLED: return c->error < 0 ? c->error : -ECANCELED;
    default: return -EIO;
    }
}
// Copies the addresses into the state of the waiting task.
static inline int volt_cares__copy(volt_cares_query *q, const struct ares_addrinfo *list) {
    size_t n = 0;
    for (const struct ares_addrinfo_node *node = list->nodes; node; node = node->ai_next)
        if (n < q->cap && volt_addr_from(&q->out[n], node->ai_addr, (size_t)node->ai_addrlen) == 0)
            n++;
    return n > 0 || q->cap == 0 ? (int)n : -ENOENT;
}
static inline void volt_cares__on_answer(void *block, int status, int timeouts,
                                         struct ares_addrinfo *list) {
    volt_cares__block *b = (volt_cares__block *)block;
    volt_cares_query *q = b->query;
    (void)timeouts;
    if (q) {
        q->block = NULL;
        q->status = status;
        q->result = volt_cares__error(b->home, status);
        if (q->result == 0) q->result = volt_cares__copy(q, list);
        q->is_ended = 1;
        b->home->n_waiting--;
        volt_event_set(&q->ended); // *q may be gone from here on
    }
    if (list) ares_freeaddrinfo(list);
    free(b);
}

// ---- calls of c-ares, under the lock

// Ends all queries if a socket could not be waited for, since no answer would come; and those that
// were given up, if no other one is awaited.
static inline void volt_cares__check(volt_cares *c) {
    if (c->error < 0 || c->n_waiting == 0) ares_cancel(c->channel);
    c->error = 0;
}
static inline int volt_cares__ask(volt_cares *c, volt_cares_query *q, const char *host,
                                  const char *service) {
    volt_cares__block *b = (volt_cares__block *)malloc(sizeof *b);
    if (!b) return -ENOMEM;
    b->home = c;
    b->query = q;
    q->block = b;
    q->is_ended = q->result = 0;
    memset(&q->ended, 0, sizeof q->ended);
    c->n_waiting++;
    while (service[0] == '0' && service[1]) service++; // which c-ares would take as octal
    ares_getaddrinfo(c->channel, host, service, NULL, volt_cares__on_answer, b);
    volt_cares__check(c);
    volt_notify_all(&c->changed);
    return 0;
}
static inline void volt_cares__abandon(volt_cares *c, volt_cares_query *q) {
    q->block->query = NULL;
    c->n_waiting--;
    volt_cares__check(c); // may free the block
    volt_notify_all(&c->changed);
}
// Passes events, and queries whose time is up, to c-ares. By the leader.
static inline void volt_cares__act(volt_cares *c) {
    struct timeval tv, *left;
    for (int i = 0; i < c->n; i++) {
        uint32_t e = c->events[i].events;
        ares_process_fd(c->channel, e & ~(uint32_t)VOLT_OUT ? c->events[i].fd : ARES_SOCKET_BAD,
                        e & VOLT_OUT ? c->events[i].fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(c->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    volt_cares__check(c);
    left = ares_timeout(c->channel, NULL, &tv);
    // c-ares may have rounded down to a millisecond: at that time it would have nothing to do.
    c->until = left ? volt_now() + VOLT_S(left->tv_sec) + VOLT_US(left->tv_usec) + VOLT_MS(1)
                    : VOLT_NEVER;
    c->seen = volt_notify_count(&c->changed);
}

// ---- the leader

// Drives all queries until that of *q has ended.
//   returns: 0 | -ECANCELED | the errors of volt_pollset_wait
static inline VOLT_POLL volt_cares__lead(volt_cx *cx, volt_cares *c, volt_cares_query *q) {
    VOLT_BEGIN(cx, c);
    for (c->n = 0;; c->n = c->ready.fired ? c->n : 0) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &c->lock));
        if (c->rc < 0) break; // the events come again, since the poll set is level-triggered
        volt_cares__act(c);
        c->rc = q->is_ended; // under the lock: the call that begins another query may end this one
        volt_mutex_unlock(&c->lock);
        if (c->rc) break;
        VOLT_AWAIT(c->rc, VOLT_SELECT(
            VOLT_ARM(&c->ready, c->n,
                     volt_pollset_wait(cx, &c->set, c->events, VOLT_CARES_EVENTS)),
            VOLT_ARM(&c->late, volt_sleep_until(cx, c->until)),
            VOLT_ARM(&c->changed_arm, volt_notify_wait_past(cx, &c->changed, c->seen))));
        if (c->rc >= 0 && c->ready.fired && c->n < 0) c->rc = c->n;
        if (c->rc < 0) break;
    }
    VOLT_END(c->rc < 0 ? c->rc : 0);
}

// Returns 1 if c-ares could take `service` as a port that it does not name: it reads the number that
// a text begins with, in the bases of C, modulo 65536.
static inline int volt_cares__refuses(const char *service) {
    unsigned long port = 0;
    const char *at = service;
    for (; *at >= '0' && *at <= '9' && port <= 65535; at++)
        port = port * 10 + (unsigned long)(*at - '0');
    return port > 65535 || (*at && at > service) || strchr("+- \t\n\v\f\r", *service) != NULL;
}

// ---- functions for programs

// Makes the common part. options_or_null: for ares_init_options, with its mask; not
// ARES_OPT_SOCK_STATE_CB, which the adapter sets. Servers may be set on c->channel afterwards, by
// ares_set_servers_ports_csv, before the first query.
//   where  : any thread, but not while another thread opens or closes one
//   returns: 0 | -ENOMEM | -EMFILE, -ENFILE | -EINVAL: options that c-ares refuses | -EIO: it
//            cannot read a file
//   memory : c-ares allocates until volt_cares_close. After an error there is nothing to be freed
static inline int volt_cares_open(volt_cares *c, const struct ares_options *options_or_null,
                                  int mask) {
    struct ares_options options;
    memset(c, 0, sizeof *c);
    memset(&options, 0, sizeof options);
    if (options_or_null) options = *options_or_null;
    options.sock_state_cb = volt_cares__on_socket;
    options.sock_state_cb_data = c;
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status != ARES_SUCCESS) return -ENOMEM;
    status = ares_init_options(&c->channel, &options, mask | ARES_OPT_SOCK_STATE_CB);
    int rc = status == ARES_SUCCESS ? volt_pollset_open(&c->set)
             : status == ARES_ENOMEM ? -ENOMEM
             : status == ARES_EFILE ? -EIO : -EINVAL;
    if (rc == 0) return 0;
    if (status == ARES_SUCCESS) ares_destroy(c->channel);
    ares_library_cleanup();
    return rc;
}
// Closes the common part. No query may be in progress: their tasks have ended before.
//   where  : inside a task, as volt_cares_open
static inline void volt_cares_close(volt_cx *cx, volt_cares *c) {
    ares_destroy(c->channel); // calls on_socket
    volt_pollset_close(cx, &c->set);
    ares_library_cleanup();
}

// Looks up the addresses of a host: of a name, or of a numeric address. service: the number of a
// port, or its name, if that does not begin with a digit.
//   where  : inside a task. A query is one task's; each has a volt_cares_query of its own
//   returns: the number of addresses in `out`, at most `cap`, in the order of RFC 6724 | -ENOENT if
//            there is no such host or service | -EAGAIN if no server answers in time, or they have
//            answered SERVFAIL or REFUSED | -ENOMEM | -EINVAL: no name can be so, or one is NULL |
//            -ENOSPC: a socket could not be waited for | -EIO: other errors of c-ares. q->status
//            has that of c-ares
//   wakes  : when the answer has come, and, to lead, when sockets or time limits are due
//   memory : allocates 16 bytes and the memory of c-ares, until the answer has come, or until no
//            query is awaited
static inline VOLT_POLL volt_cares_resolve(volt_cx *cx, volt_cares *c, volt_cares_query *q,
                                           const char *host, const char *service, volt_addr *out,
                                           size_t cap) {
    VOLT_BEGIN(cx, q);
    if (!host || !service) VOLT_RETURN(-EINVAL);
    if (volt_cares__refuses(service)) {
        q->status = ARES_ESERVICE;
        VOLT_RETURN(-ENOENT);
    }
    q->out = out;
    q->cap = cap;
    VOLT_AWAIT(q->rc, volt_mutex_lock(cx, &c->lock));
    if (q->rc < 0) VOLT_RETURN(q->rc);
    q->rc = volt_cares__ask(c, q, host, service);
    volt_mutex_unlock(&c->lock);
    if (q->rc < 0) VOLT_RETURN(q->rc);
    VOLT_AWAIT(q->rc, VOLT_SELECT(VOLT_ARM(&q->ended_arm, volt_event_wait(cx, &q->ended)),
                                  VOLT_ARM(&q->lead_arm, volt_mutex_lock(cx, &c->lead))));
    if (q->lead_arm.fired) {
        VOLT_AWAIT(q->rc, volt_cares__lead(cx, c, q));
        volt_mutex_unlock(&c->lead);
    }
    if (q->rc >= 0) VOLT_RETURN(q->result);
    volt_shield_begin(cx, &q->shield, VOLT_NEVER); // a bounded wait: `lock` is held for calls only
    VOLT_AWAIT(volt_mutex_lock(cx, &c->lock));
    if (q->is_ended) q->rc = q->result;
    else volt_cares__abandon(c, q);
    volt_mutex_unlock(&c->lock);
    VOLT_END(q->rc);
}
#endif
