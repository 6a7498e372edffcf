// SPDX-License-Identifier: MIT OR 0BSD
// PostgreSQL by libpq: connections, queries, rows, notifications and COPY as awaits. Include it
// behind volt.h and link with -lpq (pkg-config libpq). For use, see pq.c:
//
//     volt_pq db; // in the state of the task, zeroed
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(5), volt_pq_connect(cx, &db, names, values)));
//     VOLT_AWAIT(rc, volt_pq_query(cx, &db, &result, "SELECT $1::int + 1", 1, parameters));
//     ... PQgetvalue(result, 0, 0) ...
//     PQclear(result);
//     volt_pq_close(cx, &db);
//
// A connection belongs to one task at a time; only volt_pq_cancel may be called by other tasks. The
// functions of libpq that do not wait are called on db.conn between the awaits: PQerrorMessage,
// PQescapeLiteral, PQsendQueryPrepared ... After its PQsend functions volt_pq_next gives results.
//
// A time limit or a cancellation ends the wait and not the command: the connection is busy until
// volt_pq_stop makes it ready for the next one; in a task that was cancelled, under a shield.
//
// The options are those of libpq, but for connect_timeout: the limit is that of the await. The
// system looks up host names, which cannot be cut short: give an address as "hostaddr", as
// volt_resolve finds it, or the directory of a unix socket as "host".
//
// Results beside those of volt_pollset_wait; PQerrorMessage(db.conn) has the text:
//   -ECONNREFUSED  there is no connection: no server, a wrong password, no such database
//   -ECONNRESET    the connection has ended, and can only be closed
//   -EREMOTEIO     the server has refused the command: the result says why
//   -ENOTCONN      the connection is closed
//
// The design: libpq closes its socket by itself and opens others, perhaps of the same number. So
// the socket is in a poll set of the connection, from which the kernel removes what is closed; volt
// itself never knows the number. A call of libpq precedes each wait, since what libpq has read
// ahead makes no socket readable. Neither does the rest of a TLS record of which libpq has taken a
// part: newer versions of libpq take it at once, older ones leave it in OpenSSL, where nothing
// shows it. So over TLS, libpq is asked for it before a wait for a dry socket.
#ifndef VOLT_PQ_H
#define VOLT_PQ_H

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdlib.h>

// The right to cancel commands, which a request on its way to the server also holds.
typedef struct volt_pq__key {
    PGcancel *cancel;
    unsigned refs;
} volt_pq__key;
typedef struct volt_pq_canceller { // the state of one volt_pq_cancel
    volt_frame frame;
    volt_detached_job job;
    volt_pq__key *key;
    int rc;
} volt_pq_canceller;
typedef struct volt_pq__wait {
    volt_frame frame;
    int64_t n;
    int has_waited, is_full; // is_full: not all was sent
} volt_pq__wait;
// A connection. Zero-valid. Must not be moved.
typedef struct volt_pq {
    volt_frame frame;
    PGconn *conn; // NULL: closed
    volt_pollset set;
    volt_pollev ev;
    const char *const *names, *const *values; // of volt_pq_connect
    volt_pq__key *key;
    volt_pq__wait wait, drop;
    volt_pq_canceller canceller;
    volt_timer limit;
    volt_time pause;
    uint32_t watched; // the events that the set waits for; 0: of no socket
    PGresult *result;
    char *piece;
    int64_t n;
} volt_pq;

static inline int volt_pq__is_lost(const volt_pq *q) { return PQstatus(q->conn) == CONNECTION_BAD; }
static inline int volt_pq__watch(volt_pq *q, uint32_t events) {
    int rc = events == q->watched ? 0 : volt_pollset_set(&q->set, PQsocket(q->conn), events);
    q->watched = rc < 0 ? 0 : events;
    return rc;
}
static inline void volt_pq__key_release(void *arg) {
    volt_pq__key *key = (volt_pq__key *)arg;
    if (!key || __atomic_sub_fetch(&key->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    PQfreeCancel(key->cancel);
    free(key);
}

// ---- connecting

// The end of a connect: libpq must not block from here on, and its commands can be cancelled.
static inline int volt_pq__begin(volt_pq *q) {
    q->key = (volt_pq__key *)calloc(1, sizeof *q->key);
    if (q->key) q->key->cancel = PQgetCancel(q->conn), q->key->refs = 1;
    return q->key && q->key->cancel && PQsetnonblocking(q->conn, 1) == 0 ? 0 : -ENOMEM;
}
// Begins a connect, or goes on with it; may block.
//   returns: VOLT_IN or VOLT_OUT, for which the next call has to wait | 0: connected | -errno
static inline int volt_pq__step(void *arg) {
    volt_pq *q = (volt_pq *)arg;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    (void)volt_pq__watch(q, 0); // libpq may close the socket
    if (q->conn) next = PQconnectPoll(q->conn);
    else if (!(q->conn = PQconnectStartParams(q->names, q->values, 1))) return -ENOMEM;
    if (volt_pq__is_lost(q)) return -ECONNREFUSED;
    if (next == PGRES_POLLING_OK) return volt_pq__begin(q);
    return next == PGRES_POLLING_READING ? VOLT_IN : VOLT_OUT;
}
// Connects. `names` and `values` are those of PQconnectStartParams: both end with NULL; "dbname"
// may be a URI or a string of options. After an error or a cancellation the connection can only be
// closed.
//   returns: 0 | -ECONNREFUSED | -EISCONN if it is not closed | -EMFILE, -ENFILE | -ENOMEM
//   memory : what libpq allocates, and two descriptors, until volt_pq_close
static inline VOLT_POLL volt_pq_connect(volt_cx *cx, volt_pq *q, const char *const *names,
                                        const char *const *values) {
    VOLT_BEGIN(cx, q);
    q->n = q->conn ? -EISCONN : volt_pollset_open(&q->set);
    if (q->n < 0) VOLT_RETURN(q->n);
    q->names = names, q->values = values;
    do {
        q->n = volt_block_in_place(cx, volt_pq__step, q);
        if (q->n <= 0) break;
        q->n = volt_pq__watch(q, (uint32_t)q->n);
        if (q->n == 0) VOLT_AWAIT(q->n, volt_pollset_wait(cx, &q->set, &q->ev, 1));
    } while (q->n > 0);
    VOLT_END(q->n);
}
// Closes the connection; does nothing if it is closed. No operation is in progress.
static inline void volt_pq_close(volt_cx *cx, volt_pq *q) {
    volt_pq__key_release(q->key);
    volt_pollset_close(cx, &q->set);
    PQfinish(q->conn);
    q->key = NULL, q->conn = NULL, q->watched = 0;
}

// ---- waits

// FLUSH: until all was sent, with one wait at least, so that a loop of these lets other tasks run.
enum { VOLT_PQ__RESULT, VOLT_PQ__NOTIFY, VOLT_PQ__COPY, VOLT_PQ__FLUSH };
// Takes what libpq has.
//   returns: 1 or more with it in *out | 0: there is no more | -EAGAIN: not yet | -errno
static inline int64_t volt_pq__take(volt_pq *q, int kind, void *out) {
    int n = -1; // as PQgetCopyData: -1: the end, 0: wait
    if (kind == VOLT_PQ__RESULT && !volt_pq__is_lost(q) && PQisBusy(q->conn)) return -EAGAIN;
    if (kind == VOLT_PQ__RESULT && (*(PGresult **)out = PQgetResult(q->conn)) != NULL) return 1;
    if (kind == VOLT_PQ__NOTIFY) n = (*(PGnotify **)out = PQnotifies(q->conn)) != NULL;
    if (kind == VOLT_PQ__COPY) n = PQgetCopyData(q->conn, (char **)out, 1);
    if (kind == VOLT_PQ__FLUSH) n = -!q->wait.is_full;
    if (n > 0) return n;
    return volt_pq__is_lost(q) ? -ECONNRESET : n == 0 ? -EAGAIN : n == -1 ? 0 : -EPIPE;
}
// As volt_pq__take, also of what libpq has left in OpenSSL. If the socket has bytes, the wait ends
// at once, and libpq reads behind it. Otherwise it takes all that OpenSSL has: each call has room
// for 8 KiB at least, and the call before has left no more than that of a record of 16 KiB. A
// record that arrives between the two calls here is the exception: an older libpq may leave a part
// of it, which then waits for what the server sends next.
static inline int64_t volt_pq__take_hidden(volt_pq *q, int kind, void *out) {
    int64_t n = volt_pq__take(q, kind, out);
    if (n != -EAGAIN || !PQsslInUse(q->conn)) return n;
    struct pollfd p = { PQsocket(q->conn), POLLIN, 0 };
    if (poll(&p, 1, 0) != 0) return n;
    (void)PQconsumeInput(q->conn);
    return volt_pq__take(q, kind, out);
}
static inline VOLT_POLL volt_pq__run(volt_cx *cx, volt_pq *q, int kind, void *out) {
    volt_pq__wait *const w = &q->wait;
    VOLT_BEGIN(cx, w);
    if (!q->conn) VOLT_RETURN(-ENOTCONN);
    if (volt_is_cancelled(cx)) VOLT_RETURN(-ECANCELED);
    for (w->has_waited = 0;; w->has_waited = 1) {
        w->is_full = PQflush(q->conn) > 0 || (kind == VOLT_PQ__FLUSH && !w->has_waited);
        w->n = volt_pq__take_hidden(q, kind, out);
        if (w->n != -EAGAIN) break;
        w->n = volt_pq__watch(q, w->is_full ? VOLT_IN | VOLT_OUT : VOLT_IN);
        if (w->n == 0) VOLT_AWAIT(w->n, volt_pollset_wait(cx, &q->set, &q->ev, 1));
        if (w->n < 0) break;
        if (q->ev.events & ~(uint32_t)VOLT_OUT) (void)PQconsumeInput(q->conn);
    }
    VOLT_END(w->n);
}

// ---- commands

// Hands a command to libpq, without a wait: volt_pq_next sends it and gives its results. Parameters
// are texts for $1, $2 ..., NULL for an SQL NULL. Without parameters there may be several commands,
// separated by semicolons. is_by_rows: each row is a result of its own, so that a large table takes
// no memory.
//   returns: 0 | -EBUSY: results of an earlier command are left | -ECONNRESET | -ENOTCONN |
//            -EINVAL: PQerrorMessage says why
//   memory : libpq copies the command and the parameters until they are sent
static inline int volt_pq_send(volt_pq *q, const char *command, int n,
                               const char *const *parameters, int is_by_rows) {
    if (!q->conn) return -ENOTCONN;
    if (PQtransactionStatus(q->conn) == PQTRANS_ACTIVE) return -EBUSY;
    int is_sent = n > 0 ? PQsendQueryParams(q->conn, command, n, NULL, parameters, NULL, NULL, 0)
                        : PQsendQuery(q->conn, command);
    if (is_sent && is_by_rows) (void)PQsetSingleRowMode(q->conn); // legal at this point
    return is_sent ? 0 : volt_pq__is_lost(q) ? -ECONNRESET : -EINVAL;
}
// Waits for the next result. By rows, those of status PGRES_SINGLE_TUPLE are one row each, and the
// last has the status of the command and no row. Results must be taken until there are no more. A
// COPY gives PGRES_COPY_IN or _OUT again and again until it is complete, a replication _BOTH. The
// end of the connection during a command is a result of PGRES_FATAL_ERROR, and -ECONNRESET next.
//   returns: 1 with a result in *out, for PQclear | 0: there are no more | -ECONNRESET | -ENOTCONN.
//            After -ECANCELED the result is left to the next call
//   wakes  : when the server has sent a whole result
static inline VOLT_POLL volt_pq_next(volt_cx *cx, volt_pq *q, PGresult **out) {
    return volt_pq__run(cx, q, VOLT_PQ__RESULT, out);
}
// Sends a command as volt_pq_send does, and waits for all of its results. *out is the last one, or
// that of the error; NULL if there is none. A COPY or a replication goes on with those below.
//   returns: 0 | -EREMOTEIO | -ECONNRESET, *out may have the reason | the errors of volt_pq_send.
//            After -ECANCELED the command may run
//   memory : *out is the caller's in each case, for PQclear
static inline VOLT_POLL volt_pq_query(volt_cx *cx, volt_pq *q, PGresult **out, const char *command,
                                      int n, const char *const *parameters) {
    VOLT_BEGIN(cx, q);
    *out = NULL;
    q->n = volt_is_cancelled(cx) ? -ECANCELED : volt_pq_send(q, command, n, parameters, 0);
    if (q->n < 0) VOLT_RETURN(q->n);
    for (;;) {
        VOLT_AWAIT(q->n, volt_pq_next(cx, q, &q->result));
        if (q->n <= 0) break;
        PGresult *less = *out && PQresultStatus(*out) == PGRES_FATAL_ERROR ? q->result : *out;
        if (less == *out) *out = q->result; // else: the first error counts
        PQclear(less);
        ExecStatusType is = PQresultStatus(*out);
        if (is == PGRES_COPY_IN || is == PGRES_COPY_OUT || is == PGRES_COPY_BOTH) VOLT_RETURN(0);
    }
    VOLT_END(q->n < 0 ? q->n : PQresultStatus(*out) == PGRES_FATAL_ERROR ? -EREMOTEIO : 0);
}

// ---- cancelling

static inline int volt_pq__cancel(void *arg) {
    char why[256];
    return PQcancel(((volt_pq__key *)arg)->cancel, why, sizeof why) ? 0 : -ECONNREFUSED;
}
// Asks the server to end the command of the connection, which then fails with SQLSTATE 57014. libpq
// opens a connection for this, and waits for the server, on a thread of the pool. A cancellation
// leaves that request behind, which may then end the next command.
//   where  : inside any task while the connection is open
//   returns: 0: the server was asked | -ECONNREFUSED | -ENOTCONN | those of volt_blocking_detach
static inline VOLT_POLL volt_pq_cancel(volt_cx *cx, volt_pq_canceller *c, volt_pq *q) {
    VOLT_BEGIN(cx, c);
    if (!q->key) VOLT_RETURN(-ENOTCONN);
    c->key = q->key;
    __atomic_add_fetch(&c->key->refs, 1, __ATOMIC_RELAXED);
    VOLT_AWAIT(c->rc, volt_blocking_detach(cx, &c->job, volt_pq__cancel, c->key,
                                           volt_pq__key_release));
    if (c->rc != -ECANCELED) volt_pq__key_release(c->key);
    VOLT_END(c->rc);
}
// Takes a piece of COPY ... TO STDOUT, which is a row with its line feed.
//   returns: its length, with the text in *out for PQfreemem | 0: complete, volt_pq_next goes on |
//            -EPIPE: there is no such COPY | -ECONNRESET | -ENOTCONN
static inline VOLT_POLL volt_pq_copy_get(volt_cx *cx, volt_pq *q, char **out) {
    return volt_pq__run(cx, q, VOLT_PQ__COPY, out);
}
// Drops a result. Returns 1 if pieces of a COPY have to be dropped, too.
static inline int volt_pq__drop_result(volt_pq *q) {
    ExecStatusType is = PQresultStatus(q->result);
    PQclear(q->result);
    if (is == PGRES_COPY_IN) (void)PQputCopyEnd(q->conn, "the command was stopped");
    if (is == PGRES_COPY_BOTH) (void)PQputCopyEnd(q->conn, NULL); // no error: it is a replication
    return is == PGRES_COPY_OUT || is == PGRES_COPY_BOTH;
}
// Drops all results of the command in progress; after -ECANCELED those that are left.
static inline VOLT_POLL volt_pq__drop_all(volt_cx *cx, volt_pq *q) {
    volt_pq__wait *const d = &q->drop;
    VOLT_BEGIN(cx, d);
    for (;;) {
        VOLT_AWAIT(d->n, volt_pq_next(cx, q, &q->result));
        if (d->n <= 0) break;
        for (d->n = volt_pq__drop_result(q); d->n > 0;) {
            VOLT_AWAIT(d->n, volt_pq_copy_get(cx, q, &q->piece));
            if (d->n > 0) PQfreemem(q->piece);
        }
    }
    VOLT_END(d->n);
}
// Has the server cancel the command in progress, if there is one, and drops its results. A request
// that comes too early is ignored there: it is repeated, after 100 ms and then ever longer pauses.
//   returns: 0: ready for the next command | -ECONNRESET | -ENOTCONN
static inline VOLT_POLL volt_pq_stop(volt_cx *cx, volt_pq *q) {
    VOLT_BEGIN(cx, q);
    for (q->pause = VOLT_MS(100);; q->pause *= 2) {
        if (q->conn && PQtransactionStatus(q->conn) == PQTRANS_ACTIVE)
            VOLT_AWAIT(q->n, volt_pq_cancel(cx, &q->canceller, q));
        VOLT_AWAIT(q->n, volt_within(cx, &q->limit, q->pause, volt_pq__drop_all(cx, q)));
        if (q->n != -ETIMEDOUT || !volt_timer_fired(&q->limit)) break;
    }
    VOLT_END(q->n);
}

// ---- COPY and notifications

// Gives a piece of COPY ... FROM STDIN, cut anywhere. Waits until earlier pieces are sent, so that
// libpq holds at most one. PQputCopyEnd ends the COPY, whose result volt_pq_next gives: libpq does
// not look for an error of the server, such as a bad row, before that.
//   returns: 0 | -EPIPE: there is no such COPY | -ENOMEM | -ECONNRESET | -ENOTCONN. After
//            -ECANCELED nothing was taken
static inline VOLT_POLL volt_pq_copy_put(volt_cx *cx, volt_pq *q, const void *data, int len) {
    VOLT_BEGIN(cx, q);
    VOLT_AWAIT(q->n, volt_pq__run(cx, q, VOLT_PQ__FLUSH, NULL));
    if (q->n < 0) VOLT_RETURN(q->n);
    q->n = PQputCopyData(q->conn, (const char *)data, len);
    VOLT_END(q->n > 0 ? 0 : q->n == 0 ? -ENOMEM : -EPIPE);
}
// Waits for a notification, after a LISTEN. During a command libpq keeps those that come.
//   returns: 1 with it in *out, for PQfreemem | -ECONNRESET | -ENOTCONN
static inline VOLT_POLL volt_pq_notified(volt_cx *cx, volt_pq *q, PGnotify **out) {
    return volt_pq__run(cx, q, VOLT_PQ__NOTIFY, out);
}
#endif
