// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_pq.h with a PostgreSQL server, which tests/adapters/pq.sh starts.
// From the environment: PGHOST, the directory of its socket, and PGPORT; PQ_RESTART, a command that
// restarts it; PQ_CERTIFICATE, the file of its certificate; PQ_UNDER_VALGRIND, if that runs it.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <libpq-fe.h>
#include <poll.h>
// Those of an older libpq, for the adapter alone: a part of what comes by TLS stays in OpenSSL, and
// the next call takes it.
static int test_is_old, test_hides_rest;
static int test_consume(PGconn *conn) {
    struct pollfd p = { PQsocket(conn), POLLIN, 0 };
    if (test_is_old) test_hides_rest = poll(&p, 1, 0) > 0;
    return PQconsumeInput(conn);
}
static int test_is_busy(PGconn *conn) {
    return (test_is_old && test_hides_rest) || PQisBusy(conn);
}
#define PQconsumeInput test_consume
#define PQisBusy test_is_busy
#include "examples/adapters/volt_pq.h"
#undef PQconsumeInput
#undef PQisBusy
#include "cancel.h"
#include "tests/lib/test.h"
#include "log.h"

#include <sys/resource.h>

static const char *const names[] = { "dbname", NULL };
static const char *const nothing[] = { "", NULL }; // all from the environment

typedef struct {
    volt_frame frame;
    volt_timer limit;
    cancel_point at;
    volt_pq *db;
    PGresult *result;
    const char *text;
    int n, rc;
} sub; // of the functions below

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm left, right;
    volt_group group;
    cancel_point at;
    volt_pq db, second;
    volt_pq_canceller canceller;
    volt_capture capture;
    volt_process_options options;
    PGresult *result;
    PGnotify *note;
    sub sub, other;
    char *piece, text[256], out[4096];
    const char *values[2];
    volt_addr here;
    volt_time began;
    long long sum;
    long rows, memory;
    int i, n, rc, listener, bytes;
} test;

static void run(volt_fn *fn) {
    static test s;
    volt_config config = { .log = { .fn = on_log } };
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}

// Connects by the options in the environment.
static VOLT_POLL open_db(volt_cx *cx, volt_pq *q) {
    return volt_pq_connect(cx, q, names, nothing);
}
// Expects that a query gives one row with this text.
static volt_poll expect(volt_cx *cx, sub *s, volt_pq *db, const char *command, const char *want) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_pq_query(cx, db, &s->result, command, 0, NULL));
    CHECK_EQ(s->rc, 0);
    CHECK_STR(PQgetvalue(s->result, 0, 0), want);
    PQclear(s->result);
    VOLT_END(0);
}
// Runs a command whose result does not matter.
static volt_poll command(volt_cx *cx, sub *s, volt_pq *db, const char *text) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_pq_query(cx, db, &s->result, text, 0, NULL));
    if (s->rc < 0) printf("%s: %s\n", text, PQresultErrorMessage(s->result));
    CHECK_EQ(s->rc, 0);
    PQclear(s->result);
    VOLT_END(0);
}
// Waits until the server runs the sleep of another connection, which `db` is not.
static volt_poll until_it_sleeps(volt_cx *cx, sub *s, volt_pq *db) {
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n == 0;) {
        VOLT_AWAIT(s->rc, volt_pq_query(cx, db, &s->result,
                                        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
                                        "'PgSleep'", 0, NULL));
        CHECK_EQ(s->rc, 0);
        s->n = atoi(PQgetvalue(s->result, 0, 0));
        PQclear(s->result);
    }
    VOLT_END(0);
}
// Waits until the process of another connection has ended.
static volt_poll until_it_is_gone(volt_cx *cx, sub *s, volt_pq *db, int pid) {
    VOLT_BEGIN(cx, s);
    for (s->n = 1; s->n > 0;) {
        char text[80];
        snprintf(text, sizeof text, "SELECT count(*) FROM pg_stat_activity WHERE pid = %d", pid);
        CHECK_EQ(volt_pq_send(db, text, 0, NULL, 0), 0);
        VOLT_AWAIT(s->rc, volt_pq_next(cx, db, &s->result));
        CHECK_EQ(s->rc, 1);
        s->n = atoi(PQgetvalue(s->result, 0, 0));
        PQclear(s->result);
        VOLT_AWAIT(s->rc, volt_pq_next(cx, db, &s->result));
    }
    VOLT_END(0);
}
static const char *state_of(const PGresult *result) {
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state ? state : "";
}

// ---- queries

static volt_poll parameters(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    {
        static const char *const values[] = { "it's \"quoted\"; \xc3\xbc", NULL, "7" };
        VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result,
                                        "SELECT $1::text, $2::text, $3::int * 6", 3, values));
        CHECK_EQ(s->rc, 0);
        CHECK_STR(PQgetvalue(s->result, 0, 0), values[0]);
    }
    CHECK(PQgetisnull(s->result, 0, 1));
    CHECK_STR(PQgetvalue(s->result, 0, 2), "42");
    PQclear(s->result);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(parameters_are_texts_and_may_be_null) { run(parameters); }

static volt_poll refused(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT nonsense", 0, NULL));
    CHECK_EQ(s->rc, -EREMOTEIO);
    CHECK_STR(state_of(s->result), "42703");
    PQclear(s->result);
    // of several commands, the error of the second one
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT 1; SELECT 1 / 0; SELECT 2", 0,
                                    NULL));
    CHECK_EQ(s->rc, -EREMOTEIO);
    CHECK_STR(state_of(s->result), "22012");
    PQclear(s->result);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 1; SELECT 2", "2"));
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(refused_command_leaves_a_usable_connection) { run(refused); }

static volt_poll misuse(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT 1", 0, NULL));
    CHECK_EQ(s->rc, -ENOTCONN);
    CHECK(s->result == NULL);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, -ENOTCONN);
    VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
    CHECK_EQ(s->rc, -ENOTCONN);
    VOLT_AWAIT(s->rc, volt_pq_cancel(cx, &s->canceller, &s->db));
    CHECK_EQ(s->rc, -ENOTCONN);
    volt_pq_close(cx, &s->db);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    CHECK_EQ(s->rc, -EISCONN);
    CHECK_EQ(volt_pq_send(&s->db, "SELECT 1", 0, NULL, 0), 0);
    CHECK_EQ(volt_pq_send(&s->db, "SELECT 2", 0, NULL, 0), -EBUSY);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 1);
    CHECK_STR(PQgetvalue(s->result, 0, 0), "1");
    PQclear(s->result);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, "x\n", 2));
    CHECK_EQ(s->rc, -EPIPE);
    VOLT_AWAIT(s->rc, volt_pq_copy_get(cx, &s->db, &s->piece));
    CHECK_EQ(s->rc, -EPIPE);
    VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 3", "3"));
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(calls_at_the_wrong_time_are_errors) { run(misuse); }

static long memory_kib(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}
// Tools take memory of their own.
static int is_measured(void) { return !TEST__IS_SANITIZED && !getenv("PQ_UNDER_VALGRIND"); }
enum { ROWS = 200000 };
static volt_poll by_rows(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    s->memory = memory_kib();
    CHECK_EQ(volt_pq_send(&s->db, "SELECT i, repeat('x', 100) FROM generate_series(1, 200000) i", 0,
                          NULL, 1), 0);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
        CHECK(s->rc >= 0);
        if (s->rc == 0) break;
        if (PQresultStatus(s->result) == PGRES_SINGLE_TUPLE) {
            s->sum += atoi(PQgetvalue(s->result, 0, 0));
            s->rows++;
        } else {
            CHECK_EQ(PQresultStatus(s->result), PGRES_TUPLES_OK);
            CHECK_EQ(PQntuples(s->result), 0);
        }
        PQclear(s->result);
    }
    CHECK_EQ(s->rows, ROWS);
    CHECK_EQ(s->sum, ROWS * (ROWS + 1LL) / 2);
    if (is_measured()) CHECK(memory_kib() - s->memory < 8192); // of 20 MB and more
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(query_by_rows_gives_one_row_at_a_time) { run(by_rows); }


// With one worker: what libpq has already, and what it takes at once, does not hold up the worker.
static int n_others; // polls of another task
typedef struct {
    volt_frame frame;
    volt_fn *fn;
    volt_arm first, others;
    test first_state;
    sub others_state;
    int rc;
} beside;
static volt_poll count_polls(volt_cx *cx, sub *s) {
    VOLT_BEGIN(cx, s);
    do {
        VOLT_AWAIT(s->rc, volt_yield(cx));
        n_others++;
    } while (s->rc == 0);
    VOLT_END(s->rc);
}
static volt_poll beside_run(volt_cx *cx, void *arg) {
    beside *b = (beside *)arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(b->rc, VOLT_SELECT(VOLT_ARM(&b->first, b->fn(cx, &b->first_state)),
                                  VOLT_ARM(&b->others, count_polls(cx, &b->others_state))));
    CHECK(b->first.fired && b->first.value == 0);
    VOLT_END(0);
}
static void run_beside(volt_fn *fn) {
    static beside b;
    volt_config one = { .workers = 1, .budget = 8 };
    b.fn = fn;
    CHECK_EQ(volt_run(&one, beside_run, &b), 0);
    CHECK(n_others > 20);
}
TEST(other_tasks_run_beside_a_stream_of_rows) { run_beside(by_rows); }

static volt_poll small_pieces(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "CREATE TEMP TABLE numbers(n int)"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers FROM STDIN", 0, NULL));
    PQclear(s->result);
    n_others = 0;
    for (s->i = 0; s->i < 200; s->i++) { // the socket has room for all
        VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, "1\n", 2));
        CHECK_EQ(s->rc, 0);
    }
    CHECK(n_others > 20);
    VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(other_tasks_run_beside_a_copy_of_small_pieces) { run_beside(small_pieces); }

static volt_poll large(volt_cx *cx, void *arg) {
    static char text[8 << 20];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    memset(text, 'x', sizeof text - 1);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    s->values[0] = text;
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT length($1), $1", 1, s->values));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(atoi(PQgetvalue(s->result, 0, 0)), sizeof text - 1);
    CHECK_EQ(PQgetlength(s->result, 0, 1), sizeof text - 1);
    PQclear(s->result);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(large_parameter_is_sent_and_received_whole) { run(large); }

// ---- notifications

static volt_poll notifications(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "LISTEN a"));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(50),
                                  volt_pq_notified(cx, &s->db, &s->note)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(
        VOLT_ARM(&s->left, volt_pq_notified(cx, &s->db, &s->note)),
        VOLT_ARM(&s->right, command(cx, &s->sub, &s->second, "NOTIFY a, 'while it waits'"))));
    CHECK_EQ(s->left.value, 1);
    CHECK_STR(s->note->relname, "a");
    CHECK_STR(s->note->extra, "while it waits");
    PQfreemem(s->note);
    // two at once, one of them while a command runs
    VOLT_AWAIT(command(cx, &s->sub, &s->second, "NOTIFY a, '1'"));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "NOTIFY a, '2'"));
    for (s->i = 1; s->i <= 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_pq_notified(cx, &s->db, &s->note));
        CHECK_EQ(s->rc, 1);
        CHECK_EQ(atoi(s->note->extra), s->i);
        PQfreemem(s->note);
    }
    // the server ends the connection that waits
    snprintf(s->text, sizeof s->text, "SELECT pg_terminate_backend(%d)", PQbackendPID(s->db.conn));
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(
        VOLT_ARM(&s->left, volt_pq_notified(cx, &s->db, &s->note)),
        VOLT_ARM(&s->right, command(cx, &s->sub, &s->second, s->text))));
    CHECK_EQ(s->left.value, -ECONNRESET);
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_END(0);
}
TEST(notifications_keep_their_order_idle_or_busy) { run(notifications); }

// ---- cancelling

static volt_poll sleeper(volt_cx *cx, sub *s, volt_pq *db) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_pq_query(cx, db, &s->result, "SELECT pg_sleep(60)", 0, NULL));
    VOLT_END(s->rc);
}
static volt_poll canceller(volt_cx *cx, sub *s, test *t) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(until_it_sleeps(cx, &t->sub, &t->second));
    VOLT_AWAIT(s->rc, volt_pq_cancel(cx, &t->canceller, &t->db));
    VOLT_END(s->rc);
}
static volt_poll cancelled_by_another(volt_cx *cx, void *arg) {
    static sub one, two;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, sleeper(cx, &one, &s->db)),
                             VOLT_ARM(&s->right, canceller(cx, &two, s))));
    CHECK_EQ(s->right.value, 0);
    CHECK_EQ(s->left.value, -EREMOTEIO);
    CHECK_STR(state_of(one.result), "57014");
    PQclear(one.result);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 4", "4"));
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_END(0);
}
TEST(another_task_cancels_a_command) { run(cancelled_by_another); }

static volt_poll stopped(volt_cx *cx, void *arg) {
    static const char *const commands[] = { "SELECT pg_sleep(60)",
                                            "SELECT 1; SELECT pg_sleep(60); SELECT 2",
                                            "COPY copied FROM STDIN",
                                            "COPY (SELECT generate_series(1, 9999999)) TO STDOUT",
                                            "SELECT generate_series(1, 9999999)" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "CREATE TEMP TABLE copied(t text)"));
    for (s->i = 0; s->i < 5; s->i++) {
        CHECK_EQ(volt_pq_send(&s->db, commands[s->i], 0, NULL, s->i == 4), 0);
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, s->i < 2 ? VOLT_MS(50) : VOLT_NEVER,
                                      volt_pq_next(cx, &s->db, &s->result)));
        if (s->i != 1) CHECK_EQ(s->rc, s->i == 0 ? -ETIMEDOUT : 1); // else: as the server likes
        if (s->rc == 1) PQclear(s->result);
        s->began = volt_now();
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
        CHECK_EQ(s->rc, 0);
        CHECK(volt_now() - s->began < VOLT_S(55)); // else the sleep has ended by itself
        VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT count(*) FROM copied", "0"));
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(stop_ends_any_command_and_drops_its_results) { run(stopped); }

// The first request comes before the server has the whole command, and is ignored there. The rows
// would come for longer than a test may take.
static volt_poll stopped_early(volt_cx *cx, void *arg) {
    static const char *const commands[] = { "SELECT generate_series(1, 2000000000)",
                                            "COPY (SELECT generate_series(1, 2000000000)) TO "
                                            "STDOUT" };
    static char text[4 << 20];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    for (s->i = 0; s->i < 2; s->i++) {
        snprintf(text, sizeof text, "%*s%s", (int)sizeof text - 100, "", commands[s->i]);
        CHECK_EQ(volt_pq_send(&s->db, text, 0, NULL, 1), 0);
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 10", "10"));
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(stop_repeats_its_request_while_rows_come) { run(stopped_early); }

static volt_poll late(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(50),
                                  volt_pq_query(cx, &s->db, &s->result, "SELECT pg_sleep(60)", 0,
                                                NULL)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(s->result == NULL);
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT 1", 0, NULL));
    CHECK_EQ(s->rc, -EBUSY); // it says so, and does not mix up results
    volt_pq_close(cx, &s->db); // a busy connection may be closed
    VOLT_END(0);
}
TEST(connection_is_busy_after_a_time_limit) { run(late); }

// ---- connecting

static volt_poll wrong_password(volt_cx *cx, void *arg) {
    static const char *const keys[] = { "user", "password", NULL };
    static const char *const wrong[] = { "guarded", "close sesame", NULL };
    static const char *const missing[] = { "guarded", NULL, NULL };
    static const char *const right[] = { "guarded", "open sesame", NULL };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_pq_connect(cx, &s->db, keys, wrong));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK(strstr(PQerrorMessage(s->db.conn), "password authentication failed"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT 1", 0, NULL));
    CHECK_EQ(s->rc, -ECONNRESET);
    volt_pq_close(cx, &s->db);
    VOLT_AWAIT(s->rc, volt_pq_connect(cx, &s->db, keys, missing));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK(PQconnectionNeedsPassword(s->db.conn));
    volt_pq_close(cx, &s->db);
    VOLT_AWAIT(s->rc, volt_pq_connect(cx, &s->db, keys, right));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT current_user::text", "guarded"));
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(wrong_password_is_refused_and_a_right_one_not) { run(wrong_password); }

static volt_poll no_server(volt_cx *cx, void *arg) {
    static const char *const bad[] = { "host=/nonexistent", "hostaddr=127.0.0.1 port=1",
                                       "dbname=no_such_database", "host=", "port=none", "=" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 6; s->i++) {
        if (s->i == 3) s->i++; // "host=" is the default
        s->values[0] = bad[s->i];
        s->values[1] = NULL;
        VOLT_AWAIT(s->rc, volt_pq_connect(cx, &s->db, names, s->values));
        CHECK_EQ(s->rc, -ECONNREFUSED);
        CHECK(strlen(PQerrorMessage(s->db.conn)) > 0);
        volt_pq_close(cx, &s->db);
    }
    VOLT_END(0);
}
TEST(server_or_database_that_is_missing_is_refused) { run(no_server); }

// libpq closes the socket of the first address; that of the next one gets the same number.
static volt_poll next_host(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    snprintf(s->text, sizeof s->text,
             "host=/nonexistent,a,b hostaddr=,127.0.0.1,127.0.0.1 port=1,1,%s sslmode=require",
             getenv("PGPORT"));
    s->values[0] = s->text;
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(50),
                                  volt_pq_connect(cx, &s->db, names, s->values)));
    if (s->rc < 0) printf("%s", PQerrorMessage(s->db.conn));
    CHECK_EQ(s->rc, 0);
    CHECK(PQsslInUse(s->db.conn));
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 5", "5"));
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(next_host_is_tried) { run(next_host); }

// A server that accepts; `text` is sent, and the connection closed if `i` is 1.
static volt_poll bad_server(volt_cx *cx, void *arg) {
    sub *s = (sub *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_accept(cx, s->n));
    CHECK(s->rc >= 0);
    if (s->text) VOLT_AWAIT(volt_write_all(cx, s->rc, s->text, strlen(s->text)));
    if (s->at.k == 0) VOLT_AWAIT(volt_sleep_forever(cx)); // until it is cancelled
    volt_close(cx, s->rc);
    VOLT_END(0);
}
static volt_poll bad_servers(volt_cx *cx, void *arg) {
    static const char *const texts[] = { NULL, "N", "R\0\0\0\x40", NULL, "S",
                                         "\x01\x02\x03garbage" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK((s->listener = volt_listen("127.0.0.1", 0, NULL)) >= 0);
    CHECK_EQ(volt_local_addr(s->listener, &s->here), 0);
    for (s->i = 0; s->i < 6; s->i++) { // the first three say nothing more
        sub server = { .n = s->listener, .text = texts[s->i], .at = { .k = s->i >= 3 } };
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->group, bad_server, server), 0);
        snprintf(s->text, sizeof s->text, "hostaddr=127.0.0.1 port=%d sslmode=%s",
                 volt_addr_port(&s->here), s->i == 1 || s->i == 4 ? "require" : "disable");
        s->values[0] = s->text;
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, s->i == 0 || s->i == 2 ? VOLT_MS(200)
                                                                            : VOLT_S(50),
                                      volt_pq_connect(cx, &s->db, names, s->values)));
        if (s->i == 0 || s->i == 2) CHECK_EQ(s->rc, -ETIMEDOUT);
        else CHECK_EQ(s->rc, -ECONNREFUSED);
        volt_pq_close(cx, &s->db);
        volt_group_cancel(&s->group);
        VOLT_AWAIT(s->rc, volt_group_close(cx, &s->group));
    }
    volt_close(cx, s->listener);
    VOLT_END(0);
}
TEST(server_that_says_nothing_or_nonsense_is_left) { run(bad_servers); }

// ---- a server that goes away

static volt_poll restart(volt_cx *cx, sub *s, test *t) {
    static const char *argv[] = { "/bin/sh", "-c", NULL, NULL };
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(until_it_sleeps(cx, &t->sub, &t->second));
    argv[2] = getenv("PQ_RESTART");
    t->options.argv = argv;
    t->capture.out = t->out;
    t->capture.out_cap = sizeof t->out;
    t->options.err = VOLT_STDIO_STDOUT;
    VOLT_AWAIT(s->rc, volt_capture_run(cx, &t->capture, &t->options));
    if (s->rc < 0 || t->capture.end.code != 0)
        printf("%.*s\n", (int)t->capture.n_out, t->capture.out);
    VOLT_END(s->rc < 0 ? s->rc : t->capture.end.code);
}
static volt_poll restarted(volt_cx *cx, void *arg) {
    static sub one, two;
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, sleeper(cx, &one, &s->db)),
                             VOLT_ARM(&s->right, restart(cx, &two, s))));
    CHECK_EQ(s->right.value, 0);
    CHECK_EQ(s->left.value, -ECONNRESET);
    CHECK_STR(state_of(one.result), "57P01"); // the server has said why
    PQclear(one.result);
    // a connection that was idle learns it by its next command
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->second, &s->result, "SELECT 1", 0, NULL));
    CHECK_EQ(s->rc, -ECONNRESET);
    PQclear(s->result);
    VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->second));
    CHECK_EQ(s->rc, -ECONNRESET);
    VOLT_AWAIT(s->rc, volt_pq_cancel(cx, &s->canceller, &s->second));
    CHECK_EQ(s->rc, 0); // the server ignores it
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 6", "6"));
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(restart_during_a_command_ends_the_connection) { run(restarted); }

// ---- COPY

enum { PIECES = 2000, PIECE = 6000 }; // each piece is 1000 lines of 5 characters
static volt_poll copies(volt_cx *cx, void *arg) {
    static char piece[PIECE + 1];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 1000; s->i++) sprintf(piece + 6 * s->i, "%05d\n", s->i);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "CREATE TEMP TABLE numbers(n int)"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers FROM STDIN", 0, NULL));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(PQresultStatus(s->result), PGRES_COPY_IN);
    PQclear(s->result);
    for (s->i = 0; s->i < PIECES; s->i++) {
        VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, piece, PIECE));
        CHECK_EQ(s->rc, 0);
    }
    CHECK_EQ(PQputCopyEnd(s->db.conn, NULL), 1);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 1);
    CHECK_STR(PQcmdTuples(s->result), "2000000");
    PQclear(s->result);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT sum(n)::text FROM numbers", "999000000"));
    // and out again
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers TO STDOUT", 0, NULL));
    CHECK_EQ(PQresultStatus(s->result), PGRES_COPY_OUT);
    PQclear(s->result);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_pq_copy_get(cx, &s->db, &s->piece));
        if (s->rc <= 0) break;
        CHECK_EQ(s->piece[s->rc - 1], '\n');
        s->sum += atoi(s->piece);
        s->rows++;
        PQfreemem(s->piece);
    }
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->rows, 2000000);
    CHECK_EQ(s->sum, 999000000);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(PQresultStatus(s->result), PGRES_COMMAND_OK);
    PQclear(s->result);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(s->rc, 0);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(copy_moves_a_table_in_and_out) { run(copies); }

static volt_poll copy_refused(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "CREATE TEMP TABLE numbers(n int)"));
    for (s->n = 0; s->n < 2; s->n++) {
        VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers FROM STDIN", 0,
                                        NULL));
        PQclear(s->result);
        for (s->i = 0; s->i < 100; s->i++) { // the server refuses the first row
            VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, s->n == 0 ? "none\n" : "1\n",
                                               s->n == 0 ? 5 : 2));
            CHECK_EQ(s->rc, 0);
        }
        CHECK_EQ(PQputCopyEnd(s->db.conn, s->n == 0 ? NULL : "no more"), 1);
        VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
        CHECK_EQ(s->rc, 1);
        CHECK_STR(state_of(s->result), s->n == 0 ? "22P02" : "57014");
        PQclear(s->result);
        VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT count(*) FROM numbers", "0"));
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(copy_that_fails_says_why) { run(copy_refused); }

// A replication: a status of the client that asks for an answer, and the message that answers.
static volt_poll replication(volt_cx *cx, void *arg) {
    static const char asks[34] = { 'r', [33] = 1 };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    s->values[0] = "replication=database";
    VOLT_AWAIT(s->rc, volt_pq_connect(cx, &s->db, names, s->values));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 2; s->i++) { // the connection is ready for the next one
        VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "IDENTIFY_SYSTEM", 0, NULL));
        CHECK_EQ(s->rc, 0);
        snprintf(s->text, sizeof s->text, "START_REPLICATION PHYSICAL %s",
                 PQgetvalue(s->result, 0, 2));
        PQclear(s->result);
        VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, s->text, 0, NULL));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(PQresultStatus(s->result), PGRES_COPY_BOTH);
        PQclear(s->result);
        VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, asks, sizeof asks));
        CHECK_EQ(s->rc, 0);
        for (s->n = 0; s->n != 'k';) { // behind what the server has logged meanwhile
            VOLT_AWAIT(s->rc, volt_pq_copy_get(cx, &s->db, &s->piece));
            CHECK(s->rc > 0);
            s->n = s->piece[0];
            PQfreemem(s->piece);
        }
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
        CHECK_EQ(s->rc, 0);
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(replication_is_a_copy_in_both_directions_until_it_is_stopped) { run(replication); }

// The first row waits in the server for a lock of the other connection.
enum { BLOCK = 600000, MOST_BYTES = 64 << 20 }; // a block is more than the socket takes
static volt_poll slow_server(volt_cx *cx, void *arg) {
    static char piece[BLOCK];
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < BLOCK; s->i += 6) memcpy(piece + s->i, "12345\n", 6);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    VOLT_AWAIT(command(cx, &s->sub, &s->db,
                       "DROP TABLE IF EXISTS held; DROP FUNCTION IF EXISTS hold;"
                       "CREATE TABLE held(n int);"
                       "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
                       "'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END';"
                       "CREATE TRIGGER hold BEFORE INSERT ON held FOR ROW "
                       "EXECUTE FUNCTION hold()"));
    VOLT_AWAIT(command(cx, &s->sub, &s->second, "SELECT pg_advisory_lock(7)"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY held FROM STDIN", 0, NULL));
    PQclear(s->result);
    s->memory = memory_kib();
    for (s->bytes = 0; s->bytes < MOST_BYTES; s->bytes += BLOCK) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(300),
                                      volt_pq_copy_put(cx, &s->db, piece, BLOCK)));
        if (s->rc < 0) break;
    }
    CHECK_EQ(s->rc, -ETIMEDOUT); // the server takes no more, and that piece was not taken
    CHECK(s->bytes < MOST_BYTES / 4);
    if (is_measured()) CHECK(memory_kib() - s->memory < 2048);
    VOLT_AWAIT(command(cx, &s->sub, &s->second, "SELECT pg_advisory_unlock(7)"));
    VOLT_AWAIT(s->rc, volt_pq_copy_put(cx, &s->db, piece, BLOCK));
    CHECK_EQ(s->rc, 0);
    s->bytes += BLOCK;
    CHECK_EQ(PQputCopyEnd(s->db.conn, NULL), 1);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    CHECK_EQ(atoi(PQcmdTuples(s->result)), s->bytes / 6);
    PQclear(s->result);
    VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "DROP TABLE held; DROP FUNCTION hold"));
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_END(0);
}
TEST(copy_waits_for_a_slow_server) { run(slow_server); }

// ---- TLS

static volt_poll open_tls(volt_cx *cx, sub *s, test *t) {
    VOLT_BEGIN(cx, s);
    snprintf(t->text, sizeof t->text,
             "host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=%s",
             getenv("PQ_CERTIFICATE"));
    t->values[0] = t->text;
    VOLT_AWAIT(s->rc, volt_pq_connect(cx, &t->db, names, t->values));
    if (s->rc < 0) printf("%s", PQerrorMessage(t->db.conn));
    CHECK_EQ(s->rc, 0);
    CHECK(PQsslInUse(t->db.conn));
    VOLT_END(0);
}
static volt_poll tls(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(open_tls(cx, &s->sub, s));
    // rows of all sizes: none stays behind in a record that libpq has read only in part
    CHECK_EQ(volt_pq_send(&s->db, "SELECT repeat('x', (i * 37) % 20011) FROM generate_series(0, "
                          "1999) i", 0, NULL, 1), 0);
    for (s->i = 0;; s->i++) {
        VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
        CHECK(s->rc >= 0);
        if (s->rc == 0) break;
        if (s->i < 2000) CHECK_EQ(PQgetlength(s->result, 0, 0), s->i * 37 % 20011);
        PQclear(s->result);
    }
    CHECK_EQ(s->i, 2001);
    // a write into a connection that the server has ended raises no signal
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    snprintf(s->text, sizeof s->text, "SELECT pg_terminate_backend(%d)", PQbackendPID(s->db.conn));
    VOLT_AWAIT(command(cx, &s->sub, &s->second, s->text));
    VOLT_AWAIT(until_it_is_gone(cx, &s->sub, &s->second, PQbackendPID(s->db.conn)));
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "SELECT 1", 0, NULL));
        CHECK_EQ(s->rc, -ECONNRESET);
        PQclear(s->result);
    }
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_END(0);
}
TEST(tls_loses_no_row_and_raises_no_signal) { run(tls); }

static volt_poll tls_in_parts(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(open_tls(cx, &s->sub, s));
    test_is_old = 1;
    for (s->i = 0; s->i < 10; s->i++) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(10),
                                      volt_pq_query(cx, &s->db, &s->result, "SELECT 1", 0, NULL)));
        CHECK_EQ(s->rc, 0);
        CHECK_STR(PQgetvalue(s->result, 0, 0), "1");
        PQclear(s->result);
    }
    test_is_old = 0;
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(rest_of_a_record_that_openssl_has_does_not_wait_for_the_server) { run(tls_in_parts); }

// ---- cancelled at each poll

static volt_poll cancel_connect(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    // By the unix socket, and by TLS; again, if the server was so fast that no connect had a wait.
    // A connect without a wait has two rounds.
    for (s->n = 0; s->n < 2 || s->i <= 2 * s->n; s->n++) {
        snprintf(s->text, sizeof s->text, s->n % 2 ? "hostaddr=127.0.0.1 sslmode=require" : "");
        s->values[0] = s->text;
        while (cancel_next(&s->at)) {
            VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_connect(cx, &s->db, names, s->values)));
            CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 0);
            if (s->rc == 0) VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 7", "7"));
            volt_pq_close(cx, &s->db);
            s->i++;
        }
    }
    VOLT_END(0);
}
TEST(connect_is_cancelled_at_each_poll) { run(cancel_connect); }

static volt_poll cancel_query(volt_cx *cx, void *arg) {
    static const char *const text = "SELECT count(*) FROM generate_series(1, 100000)";
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    while (cancel_next(&s->at)) {
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_query(cx, &s->db, &s->result, text, 0,
                                                              NULL)));
        CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 0);
        PQclear(s->result);
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 8", "8"));
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(query_is_cancelled_at_each_poll) { run(cancel_query); }

// Each wait for a row is cancelled at each of its polls, and goes on: no row is lost.
static volt_poll cancel_rows(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    CHECK_EQ(volt_pq_send(&s->db, "SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i", 0,
                          NULL, 1), 0);
    for (s->rc = 1; s->rc != 0;) {
        while (cancel_next(&s->at)) {
            VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_next(cx, &s->db, &s->result)));
            s->n += s->rc == -ECANCELED;
            if (s->rc == -ECANCELED) continue;
            CHECK(s->rc >= 0);
            if (s->rc == 0) continue;
            if (PQresultStatus(s->result) == PGRES_SINGLE_TUPLE)
                CHECK_EQ(atoi(PQgetvalue(s->result, 0, 0)), ++s->i);
            PQclear(s->result);
        }
    }
    CHECK_EQ(s->i, 2000);
    CHECK(s->n > 2000);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(cancelled_wait_for_a_row_loses_none) { run(cancel_rows); }

static volt_poll cancel_stop(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    while (cancel_next(&s->at)) {
        CHECK_EQ(volt_pq_send(&s->db, "SELECT pg_sleep(60)", 0, NULL, 0), 0);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_stop(cx, &s->db)));
        CHECK(s->rc == 0 || (cancel_came(&s->at) && s->rc == -ECANCELED));
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db)); // a second one completes it
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT 9", "9"));
    }
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(stop_is_cancelled_at_each_poll) { run(cancel_stop); }

static volt_poll cancel_notified(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(s->rc, open_db(cx, &s->second));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "LISTEN b"));
    for (s->i = 1; s->i <= 2; s->i++) {
        while (cancel_next(&s->at)) {
            snprintf(s->text, sizeof s->text, "NOTIFY b, '%d'", ++s->n);
            VOLT_AWAIT(VOLT_JOIN_ALL(
                VOLT_ARM(&s->left,
                         CANCEL_AT(cx, &s->at, volt_pq_notified(cx, &s->db, &s->note))),
                VOLT_ARM(&s->right, command(cx, &s->sub, &s->second, s->text))));
            if (s->left.value == -ECANCELED)
                VOLT_AWAIT(s->left.value, volt_pq_notified(cx, &s->db, &s->note));
            CHECK_EQ(s->left.value, 1);
            CHECK_EQ(atoi(s->note->extra), s->n);
            PQfreemem(s->note);
        }
    }
    volt_pq_close(cx, &s->db);
    volt_pq_close(cx, &s->second);
    VOLT_END(0);
}
TEST(cancelled_wait_loses_no_notification) { run(cancel_notified); }

static volt_poll cancel_copies(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    VOLT_AWAIT(command(cx, &s->sub, &s->db, "CREATE TEMP TABLE numbers(n int)"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers FROM STDIN", 0, NULL));
    PQclear(s->result);
    for (s->i = 0; s->i < 50; s->i++) { // a piece that was cancelled is given again
        snprintf(s->text, sizeof s->text, "%d\n", s->i);
        while (cancel_next(&s->at)) {
            VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_copy_put(cx, &s->db, s->text,
                                                                     (int)strlen(s->text))));
            CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 0);
        }
    }
    CHECK_EQ(PQputCopyEnd(s->db.conn, NULL), 1);
    for (s->rc = 1; s->rc > 0;) {
        VOLT_AWAIT(s->rc, volt_pq_next(cx, &s->db, &s->result));
        CHECK(s->rc >= 0);
        if (s->rc == 1) CHECK_EQ(PQresultStatus(s->result), PGRES_COMMAND_OK);
        if (s->rc == 1) PQclear(s->result);
    }
    VOLT_AWAIT(expect(cx, &s->sub, &s->db, "SELECT count(*) FROM numbers", "50"));
    VOLT_AWAIT(s->rc, volt_pq_query(cx, &s->db, &s->result, "COPY numbers TO STDOUT", 0, NULL));
    PQclear(s->result);
    for (s->i = 0, s->rc = 1; s->rc != 0;) {
        while (cancel_next(&s->at)) {
            VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_copy_get(cx, &s->db, &s->piece)));
            if (s->rc <= 0) continue;
            CHECK_EQ(atoi(s->piece), s->i++);
            PQfreemem(s->piece);
        }
    }
    CHECK_EQ(s->i, 50);
    VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
    CHECK_EQ(s->rc, 0);
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(cancelled_copy_loses_and_repeats_nothing) { run(cancel_copies); }

// A cancelled request may be on its way. The connection stays usable, and nothing leaks.
static volt_poll cancel_cancel(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, open_db(cx, &s->db));
    while (cancel_next(&s->at)) {
        CHECK_EQ(volt_pq_send(&s->db, "SELECT pg_sleep(60)", 0, NULL, 0), 0);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_pq_cancel(cx, &s->canceller, &s->db)));
        CHECK(s->rc == 0 || (cancel_came(&s->at) && s->rc == -ECANCELED));
        VOLT_AWAIT(s->rc, volt_pq_stop(cx, &s->db));
        CHECK_EQ(s->rc, 0);
    }
    // closed while a request is on its way
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 0, volt_pq_cancel(cx, &s->canceller, &s->db)));
    volt_pq_close(cx, &s->db);
    VOLT_END(0);
}
TEST(cancelled_request_leaks_nothing) { run(cancel_cancel); }

// ---- many tasks

enum { TASKS = 40, CONNECTIONS = 8 };
typedef struct {
    volt_frame frame;
    volt_chan *pool;
    volt_pq *db;
    PGresult *result;
    char text[16], other[64];
    const char *values[2];
    int number, i, rc;
} user;
static volt_poll user_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    for (u->i = 0; u->i < 10; u->i++) {
        VOLT_AWAIT(u->rc, volt_chan_recv(cx, u->pool, &u->db, sizeof u->db));
        snprintf(u->text, sizeof u->text, "%d", u->number * 1000 + u->i);
        u->values[0] = u->text;
        VOLT_AWAIT(u->rc, volt_pq_query(cx, u->db, &u->result, "SELECT $1", 1, u->values));
        CHECK_EQ(u->rc, 0);
        CHECK_STR(PQgetvalue(u->result, 0, 0), u->text);
        PQclear(u->result);
        CHECK_EQ(volt_chan_try_send(u->pool, &u->db, sizeof u->db), 0);
    }
    VOLT_END(0);
}
static volt_poll many(volt_cx *cx, void *arg) {
    static volt_pq dbs[CONNECTIONS];
    static volt_pq *slots[CONNECTIONS];
    static volt_chan pool = VOLT_CHAN_INIT(slots);
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < CONNECTIONS; s->i++) {
        VOLT_AWAIT(s->rc, open_db(cx, &dbs[s->i]));
        CHECK_EQ(s->rc, 0);
        volt_pq *db = &dbs[s->i];
        CHECK_EQ(volt_chan_try_send(&pool, &db, sizeof db), 0);
    }
    for (s->i = 0; s->i < TASKS; s->i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &s->group, user_run, (user){ .pool = &pool, .number = s->i }),
                 0);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->group));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < CONNECTIONS; s->i++) volt_pq_close(cx, &dbs[s->i]);
    VOLT_END(0);
}
TEST(many_tasks_share_a_pool_on_all_workers) { run(many); }
