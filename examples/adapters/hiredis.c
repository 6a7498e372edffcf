// SPDX-License-Identifier: MIT OR 0BSD
// A Redis client by volt_hiredis.h: pipelined commands, two connections at once, a command that is
// given up, and a connection after that. 09_redis.c does the same without hiredis.
//
//     cc -O2 -I. -pthread examples/adapters/hiredis.c -o hiredis -lhiredis
//     ./hiredis SOCKET      a unix socket, such as /run/redis/redis-server.sock
//
// Expected output:
// pipelined: OK 41 42 1
// blpop: job, pushed by the other connection
// blpop: timed out; the answer: none
// connected again: PONG
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_hiredis.h"
#include <signal.h>
#include <stdio.h>

typedef struct {
    int *n_owed;
    char text[32];
} answer;

static void on_reply(redisAsyncContext *ac, void *reply, void *user) {
    const redisReply *y = (const redisReply *)reply; // NULL: the connection is being closed
    answer *a = (answer *)user;
    (void)ac;
    --*a->n_owed;
    if (y && y->type == REDIS_REPLY_ARRAY && y->elements) y = y->element[y->elements - 1];
    if (y && y->type == REDIS_REPLY_INTEGER)
        snprintf(a->text, sizeof a->text, "%lld", y->integer);
    else
        snprintf(a->text, sizeof a->text, "%s", y && y->str ? y->str : "none");
}

typedef struct {
    volt_hiredis at;
    int n_owed;
} connection;

static void ask(connection *c, answer *a, const char *command) {
    a->n_owed = &c->n_owed;
    if (c->at.ac && redisAsyncCommand(c->at.ac, on_reply, a, command) == REDIS_OK) c->n_owed++;
}

typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_timer late;
    connection one, two;
    answer a[4];
    const char *path;
    int rc;
} app;

static volt_poll replies(volt_cx *cx, connection *c) {
    return volt_hiredis_run(cx, &c->at, &c->n_owed);
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = volt_hiredis_open(&m->one.at, redisAsyncConnectUnix(m->path));
    if (m->rc == 0) m->rc = volt_hiredis_open(&m->two.at, redisAsyncConnectUnix(m->path));
    if (m->rc < 0) goto out;
    ask(&m->one, &m->a[0], "SET volt:n 41"); // all are sent before the first answer
    ask(&m->one, &m->a[1], "GET volt:n");
    ask(&m->one, &m->a[2], "INCR volt:n");
    ask(&m->one, &m->a[3], "DEL volt:n");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5), replies(cx, &m->one)));
    if (m->rc < 0) goto out;
    printf("pipelined: %s %s %s %s\n", m->a[0].text, m->a[1].text, m->a[2].text, m->a[3].text);

    ask(&m->one, &m->a[0], "BLPOP volt:queue 0"); // 0: no time limit
    ask(&m->two, &m->a[1], "RPUSH volt:queue job");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5),
                                  VOLT_JOIN_ALL(VOLT_ARM(&m->left, replies(cx, &m->one)),
                                                VOLT_ARM(&m->right, replies(cx, &m->two)))));
    if (m->rc < 0) goto out;
    printf("blpop: %s, pushed by the other connection\n", m->a[0].text);

    ask(&m->one, &m->a[0], "BLPOP volt:queue 0");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_MS(50), replies(cx, &m->one)));
    volt_hiredis_close(cx, &m->one.at);
    printf("blpop: %s; the answer: %s\n", m->rc == -ETIMEDOUT ? "timed out" : "?", m->a[0].text);

    m->rc = volt_hiredis_open(&m->one.at, redisAsyncConnectUnix(m->path));
    if (m->rc < 0) goto out;
    ask(&m->one, &m->a[0], "PING");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5), replies(cx, &m->one)));
    if (m->rc == 0) printf("connected again: %s\n", m->a[0].text);
out:
    volt_hiredis_close(cx, &m->one.at);
    volt_hiredis_close(cx, &m->two.at);
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    static app m;
    m.path = argc > 1 ? argv[1] : "redis.sock";
    signal(SIGPIPE, SIG_IGN);
    int rc = volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
