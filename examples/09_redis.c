// SPDX-License-Identifier: MIT OR 0BSD
// hiredis, the asynchronous Redis client, on a poll set. The upper half of the file is the adapter.
//
// hiredis requests reads and writes by callbacks, frees its context and closes its descriptor by
// itself, and is not safe for two tasks at once. Here one task owns its connections; `replies` is
// an async function that waits for all answers, so it can be limited in time, and joined with that
// of another connection. A command that was sent cannot be withdrawn: a connection whose blocking
// command was given up can only be closed.
//
//     cc -I. -pthread examples/09_redis.c -lhiredis -o redis && ./redis /run/redis/redis.sock
//
// Expected output:
// pipelined: OK 41 42 1
// blpop: job, pushed by the other connection
// blpop: timed out; the answer: none
// connected again: PONG
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <hiredis/async.h>
#include <signal.h>
#include <stdio.h>

typedef struct {
    volt_frame frame;      // of `replies`
    redisAsyncContext *ac; // NULL: not connected
    volt_pollset set;
    volt_pollev ev;
    uint32_t want;
    int n_owed, n; // n_owed: outstanding answers
} redis;

static void want(void *at, uint32_t events) {
    redis *r = (redis *)at;
    r->want = events;
    (void)volt_pollset_set(&r->set, r->ac->c.fd, events);
}
static void add_read(void *r) { want(r, ((redis *)r)->want | VOLT_IN); }
static void del_read(void *r) { want(r, ((redis *)r)->want & ~(uint32_t)VOLT_IN); }
static void add_write(void *r) { want(r, ((redis *)r)->want | VOLT_OUT); }
static void del_write(void *r) { want(r, ((redis *)r)->want & ~(uint32_t)VOLT_OUT); }
static void cleanup(void *r) { // inside any call of hiredis; the context is freed next
    want(r, 0);
    ((redis *)r)->ac = NULL;
}

static int redis_open(redis *r, const char *path) {
    redisAsyncContext *ac = redisAsyncConnectUnix(path);
    if (!ac || ac->err) return ac ? redisAsyncFree(ac), -ECONNREFUSED : -ENOMEM;
    ac->data = ac->ev.data = r;
    ac->ev.addRead = add_read, ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write, ac->ev.delWrite = del_write;
    ac->ev.cleanup = cleanup;
    r->ac = ac;
    return volt_pollset_open(&r->set);
}
static void redis_close(volt_cx *cx, redis *r) {
    if (r->ac) redisAsyncFree(r->ac); // passes outstanding answers to on_reply, without a reply
    volt_pollset_close(cx, &r->set);
}

typedef struct {
    char text[32];
} answer;

static void on_reply(redisAsyncContext *ac, void *reply, void *user) {
    const redisReply *y = (const redisReply *)reply; // NULL: the connection is being closed
    answer *a = (answer *)user;
    ((redis *)ac->data)->n_owed--;
    if (y && y->type == REDIS_REPLY_ARRAY && y->elements) y = y->element[y->elements - 1];
    if (y && y->type == REDIS_REPLY_INTEGER)
        snprintf(a->text, sizeof a->text, "%lld", y->integer);
    else
        snprintf(a->text, sizeof a->text, "%s", y && y->str ? y->str : "none");
}

static void ask(redis *r, answer *a, const char *command) {
    if (r->ac && redisAsyncCommand(r->ac, on_reply, a, command) == REDIS_OK) r->n_owed++;
}

static volt_poll replies(volt_cx *cx, redis *r) {
    VOLT_BEGIN(cx, r);
    while (r->ac && r->n_owed > 0) {
        VOLT_AWAIT(r->n, volt_pollset_wait(cx, &r->set, &r->ev, 1));
        if (r->n < 0) VOLT_RETURN(r->n); // cancelled; the answers are still outstanding
        if (r->ev.events & ~(uint32_t)VOLT_OUT) redisAsyncHandleRead(r->ac);
        if (r->ac && (r->ev.events & VOLT_OUT)) redisAsyncHandleWrite(r->ac);
    }
    VOLT_END(r->ac ? 0 : -ECONNRESET);
}

typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_timer late;
    redis one, two;
    answer a[4];
    const char *path;
    int rc;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = redis_open(&m->one, m->path);
    if (m->rc == 0) m->rc = redis_open(&m->two, m->path);
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
    redis_close(cx, &m->one);
    printf("blpop: %s; the answer: %s\n", m->rc == -ETIMEDOUT ? "timed out" : "?", m->a[0].text);

    m->rc = redis_open(&m->one, m->path);
    if (m->rc < 0) goto out;
    ask(&m->one, &m->a[0], "PING");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5), replies(cx, &m->one)));
    if (m->rc == 0) printf("connected again: %s\n", m->a[0].text);
out:
    redis_close(cx, &m->one);
    redis_close(cx, &m->two);
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    static app m;
    m.path = argc > 1 ? argv[1] : "redis.sock";
    signal(SIGPIPE, SIG_IGN); // hiredis writes without MSG_NOSIGNAL
    int rc = volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
