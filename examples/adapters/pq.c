// SPDX-License-Identifier: MIT OR 0BSD
// volt_pq.h: a query, rows one by one, a refused command, a time limit, a notification, and a pool
// of connections.
//
//     cc -O2 -I. -pthread examples/adapters/pq.c $(pkg-config --cflags --libs libpq) -o pq
//     ./pq 'host=/run/postgresql dbname=postgres'
//
// Expected output:
// query: 41 + 1 = 42
// rows: 100000, their sum is 5000050000
// refused: 22012, division by zero
// late: ended after 100 ms; the next query: 1
// notified: job 7
// pool: 8 queries by 2 connections
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_pq.h"
#include <stdio.h>

static const char *const names[] = { "dbname", NULL };
static const char *values[] = { "", NULL };

// ---- a pool is a channel of open connections

enum { POOL = 2, QUERIES = 8 };
typedef struct {
    volt_frame frame;
    volt_chan *pool;
    volt_pq *db;
    PGresult *result;
    int rc;
} pooled;
static volt_poll pooled_run(volt_cx *cx, void *arg) {
    pooled *p = (pooled *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_chan_recv(cx, p->pool, &p->db, sizeof p->db));
    if (p->rc < 0) VOLT_RETURN(p->rc);
    VOLT_AWAIT(p->rc, volt_pq_query(cx, p->db, &p->result, "SELECT pg_sleep(0.01)", 0, NULL));
    PQclear(p->result);
    // A program that goes on after an error connects again here, or stops the command.
    if (volt_chan_try_send(p->pool, &p->db, sizeof p->db) < 0) p->rc = -EPIPE; // there is room
    VOLT_END(p->rc);
}

// ---- one connection

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_pq db, other[POOL];
    PGresult *result;
    PGnotify *note;
    long long sum;
    volt_pq *slots[POOL];
    volt_chan pool;
    pooled users[QUERIES];
    int i, rc;
} app;

static volt_poll one_connection(volt_cx *cx, app *m) {
    VOLT_BEGIN(cx, m);
    {
        static const char *const parameters[] = { "41" };
        VOLT_AWAIT(m->rc, volt_pq_query(cx, &m->db, &m->result, "SELECT $1::int + 1", 1,
                                        parameters));
    }
    if (m->rc == 0) printf("query: 41 + 1 = %s\n", PQgetvalue(m->result, 0, 0));
    PQclear(m->result);
    if (m->rc < 0) VOLT_RETURN(m->rc);

    m->rc = volt_pq_send(&m->db, "SELECT generate_series(1, 100000)", 0, NULL, 1);
    for (m->i = 0; m->rc >= 0;) {
        VOLT_AWAIT(m->rc, volt_pq_next(cx, &m->db, &m->result));
        if (m->rc <= 0) break;
        if (PQresultStatus(m->result) == PGRES_SINGLE_TUPLE)
            m->i++, m->sum += atoll(PQgetvalue(m->result, 0, 0));
        PQclear(m->result);
    }
    if (m->rc < 0) VOLT_RETURN(m->rc);
    printf("rows: %d, their sum is %lld\n", m->i, m->sum);

    VOLT_AWAIT(m->rc, volt_pq_query(cx, &m->db, &m->result, "SELECT 1 / 0", 0, NULL));
    if (m->rc == -EREMOTEIO)
        printf("refused: %s, %s\n", PQresultErrorField(m->result, PG_DIAG_SQLSTATE),
               PQresultErrorField(m->result, PG_DIAG_MESSAGE_PRIMARY));
    PQclear(m->result);

    VOLT_AWAIT(m->rc, volt_within(cx, &m->limit, VOLT_MS(100),
                                  volt_pq_query(cx, &m->db, &m->result, "SELECT pg_sleep(60)", 0,
                                                NULL)));
    PQclear(m->result);
    if (m->rc == -ETIMEDOUT) VOLT_AWAIT(m->rc, volt_pq_stop(cx, &m->db)); // or it stays busy
    if (m->rc == 0)
        VOLT_AWAIT(m->rc, volt_pq_query(cx, &m->db, &m->result, "SELECT 1", 0, NULL));
    if (m->rc < 0) VOLT_RETURN(m->rc);
    printf("late: ended after 100 ms; the next query: %s\n", PQgetvalue(m->result, 0, 0));
    PQclear(m->result);

    VOLT_AWAIT(m->rc, volt_pq_query(cx, &m->db, &m->result, "LISTEN jobs; NOTIFY jobs, 'job 7'", 0,
                                    NULL));
    PQclear(m->result);
    if (m->rc == 0) VOLT_AWAIT(m->rc, volt_pq_notified(cx, &m->db, &m->note));
    if (m->rc < 0) VOLT_RETURN(m->rc);
    printf("notified: %s\n", m->note->extra);
    PQfreemem(m->note);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    app m;
    int rc;
} root;
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    app *const m = &r->m;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_within(cx, &r->limit, VOLT_S(5),
                                  volt_pq_connect(cx, &m->db, names, values)));
    if (r->rc == 0) VOLT_AWAIT(r->rc, one_connection(cx, m));
    if (r->rc < 0) fprintf(stderr, "%s: %s\n", volt_strerror(r->rc), PQerrorMessage(m->db.conn));
    volt_pq_close(cx, &m->db);

    (void)volt_chan_init(&m->pool, m->slots, sizeof m->slots[0], POOL);
    for (m->i = 0; m->i < POOL && r->rc == 0; m->i++) {
        VOLT_AWAIT(r->rc, volt_pq_connect(cx, &m->other[m->i], names, values));
        volt_pq *db = &m->other[m->i];
        if (r->rc == 0) r->rc = volt_chan_try_send(&m->pool, &db, sizeof db);
    }
    for (m->i = 0; m->i < QUERIES; m->i++) m->users[m->i].pool = &m->pool;
    if (r->rc == 0) VOLT_AWAIT(r->rc, volt_try_join_all(cx, VOLT_EACH(pooled_run, m->users)));
    if (r->rc == 0) printf("pool: %d queries by %d connections\n", QUERIES, POOL);
    for (m->i = 0; m->i < POOL; m->i++) volt_pq_close(cx, &m->other[m->i]);
    VOLT_END(r->rc);
}

int main(int argc, char **argv) {
    static root r;
    if (argc > 1) values[0] = argv[1];
    return volt_run(NULL, root_run, &r) < 0;
}
