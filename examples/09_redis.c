// SPDX-License-Identifier: MIT OR 0BSD
// A Redis client: a protocol of lines and of counted bytes. Teaches: a connection to a unix socket,
// or to a port; a writer, to which commands are put without a wait (volt_putf, volt_flush); a
// reader (volt_read_line; volt_fill and volt_consume for a number of bytes); an async function that
// is limited in time, and joined with that of another connection.
//
// A command that was sent cannot be withdrawn: a connection whose blocking command was given up can
// only be closed. Programs with hiredis use adapters/volt_hiredis.h instead.
//
//     cc -I. -pthread examples/09_redis.c -o redis && ./redis unix:/run/redis/redis.sock
//
// Expected output:
// pipelined: OK 41 42 1
// blpop: job, pushed by the other connection
// blpop: timed out; the answer: none
// connected again: PONG
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    char text[32];
} answer;

typedef struct {
    volt_frame frame; // of redis_open and of replies, one at a time
    volt_reader in;
    volt_writer out;
    volt_span part;
    int fd, n_owed, i; // n_owed: outstanding replies
    int64_t n, n_parts, len; // n_parts: of the reply that is being read
    char in_buf[1024], out_buf[256];
} redis;

static volt_poll redis_open(volt_cx *cx, redis *r, const volt_addr *at) {
    VOLT_BEGIN(cx, r);
    r->n_owed = 0;
    VOLT_AWAIT(r->fd, volt_connect(cx, at));
    volt_reader_init(&r->in, volt_stream_of(r->fd), r->in_buf, sizeof r->in_buf, VOLT_LONG_STOP);
    volt_writer_init(&r->out, volt_stream_of(r->fd), r->out_buf, sizeof r->out_buf);
    VOLT_END(r->fd < 0 ? r->fd : 0);
}
static void redis_close(volt_cx *cx, redis *r) {
    if (r->fd >= 0) volt_close(cx, r->fd);
    r->fd = -1;
}

static void ask(redis *r, const char *command) {
    if (volt_putf(&r->out, "%s\r\n", command) == 0) r->n_owed++;
}

// "+OK", "-ERR text" or ":42"; "$5" before 5 bytes and an end of line, "$-1" for nothing; "*2"
// before 2 replies. Returns the number of bytes that follow, or -1.
static int reply_line(redis *r, answer *a) {
    const char *rest = r->part.data + 1; // the end of the line stays behind it
    if (*r->part.data == '*') r->n_parts += atoi(rest) > 0 ? atoi(rest) : 0;
    else if (*r->part.data == '$') return atoi(rest);
    else snprintf(a->text, sizeof a->text, "%.*s", (int)r->part.len - 1, rest);
    return -1;
}
// Sends the commands, and waits for all replies. Of a reply with several parts the last one counts.
static volt_poll replies(volt_cx *cx, redis *r, answer *a) {
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->n, volt_flush(cx, &r->out));
    for (r->i = 0; r->n >= 0 && r->n_owed > 0; r->i++, r->n_owed--) {
        snprintf(a[r->i].text, sizeof a->text, "none");
        for (r->n_parts = 1; r->n_parts > 0; r->n_parts--) {
            VOLT_AWAIT(r->n, volt_read_line(cx, &r->in, &r->part));
            if (r->n != 1 || r->part.len == 0) VOLT_RETURN(r->n < 0 ? r->n : -EPROTO);
            r->len = reply_line(r, &a[r->i]);
            if (r->len < 0) continue;
            VOLT_AWAIT(r->n, volt_fill(cx, &r->in, (size_t)r->len + 2, &r->part));
            if (r->n < r->len + 2) VOLT_RETURN(r->n < 0 ? r->n : -EPROTO);
            snprintf(a[r->i].text, sizeof a->text, "%.*s", (int)r->len, r->part.data);
            volt_consume(&r->in, (size_t)r->len + 2);
        }
    }
    VOLT_END(r->n < 0 ? r->n : 0);
}

typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_timer late;
    volt_addr at;
    redis one, two;
    answer a[4], b[1];
    int rc;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, redis_open(cx, &m->one, &m->at));
    if (m->rc == 0) VOLT_AWAIT(m->rc, redis_open(cx, &m->two, &m->at));
    if (m->rc < 0) goto out;
    ask(&m->one, "SET volt:n 41"); // all are sent before the first answer
    ask(&m->one, "GET volt:n");
    ask(&m->one, "INCR volt:n");
    ask(&m->one, "DEL volt:n");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5), replies(cx, &m->one, m->a)));
    if (m->rc < 0) goto out;
    printf("pipelined: %s %s %s %s\n", m->a[0].text, m->a[1].text, m->a[2].text, m->a[3].text);

    ask(&m->one, "BLPOP volt:queue 0"); // 0: no time limit
    ask(&m->two, "RPUSH volt:queue job");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5),
                                  VOLT_JOIN_ALL(VOLT_ARM(&m->left, replies(cx, &m->one, m->a)),
                                                VOLT_ARM(&m->right, replies(cx, &m->two, m->b)))));
    if (m->rc < 0) goto out;
    printf("blpop: %s, pushed by the other connection\n", m->a[0].text);

    ask(&m->one, "BLPOP volt:queue 0");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_MS(50), replies(cx, &m->one, m->a)));
    redis_close(cx, &m->one);
    printf("blpop: %s; the answer: %s\n", m->rc == -ETIMEDOUT ? "timed out" : "?", m->a[0].text);

    VOLT_AWAIT(m->rc, redis_open(cx, &m->one, &m->at));
    if (m->rc < 0) goto out;
    ask(&m->one, "PING");
    VOLT_AWAIT(m->rc, volt_within(cx, &m->late, VOLT_S(5), replies(cx, &m->one, m->a)));
    if (m->rc == 0) printf("connected again: %s\n", m->a[0].text);
out:
    redis_close(cx, &m->one);
    redis_close(cx, &m->two);
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    static app m;
    m.one.fd = m.two.fd = -1;
    int rc = volt_addr_parse(&m.at, argc > 1 ? argv[1] : "127.0.0.1:6379");
    if (rc == 0) rc = volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
