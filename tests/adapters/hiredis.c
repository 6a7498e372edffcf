// SPDX-License-Identifier: MIT OR 0BSD
// Tests of examples/adapters/volt_hiredis.h with a Redis server, which tests/adapters/hiredis.sh
// starts. From the environment: REDIS_SOCKET and REDIS_PORT, where it listens; REDIS_DIRECTORY, for
// the files of a server that a test starts itself.
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1
#endif
#include "full.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_hiredis.h"
#include "cancel.h"
#include "pace.h"
#include "tests/lib/test.h"
#include "log.h"

#include <sys/resource.h>

enum { BIG = 3 << 20, MUCH = 10000, MANY = 1000 };

// A connection with the replies that it waits for. The callbacks join their texts in `text`, or
// check that a reply is a large one.
typedef struct {
    volt_hiredis at;
    int n_owed, n_lost; // n_lost: callbacks without a reply
    size_t n_text;
    char text[32768];
} connection;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_arm left, right;
    cancel_point at;
    volt_handle handles[20], relay;
    volt_counters before, after;
    connection one, two;
    int i, rc, listener, fd, port;
    char big[64];
} test;

static void run_with(volt_fn *fn, uint32_t workers) {
    static test s;
    volt_config config = { .workers = workers, .log = { .fn = on_log } };
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(volt_run(&config, fn, &s), 0);
}
static void run(volt_fn *fn) { run_with(fn, 0); }

static void on_reply(redisAsyncContext *ac, void *reply, void *user) {
    const redisReply *y = (const redisReply *)reply;
    connection *c = (connection *)ac->data;
    (void)user;
    c->n_owed--;
    c->n_lost += y == NULL;
    if (y && y->type == REDIS_REPLY_ARRAY && y->elements > 0) y = y->element[y->elements - 1];
    if (!y || c->n_text + 40 > sizeof c->text) return;
    char *to = c->text + c->n_text;
    int n = y->type == REDIS_REPLY_INTEGER ? snprintf(to, 40, "%lld ", y->integer)
            : y->str && y->len < 30        ? snprintf(to, 40, "%s ", y->str)
                                           : snprintf(to, 40, "%d:%zu ", y->type, (size_t)y->len);
    c->n_text += (size_t)n;
}
static int ask(connection *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int rc = c->at.ac ? redisvAsyncCommand(c->at.ac, on_reply, NULL, format, ap) : REDIS_ERR;
    va_end(ap);
    if (rc == REDIS_OK) c->n_owed++;
    return rc;
}
static int take(connection *c, redisAsyncContext *ac) {
    c->n_owed = c->n_lost = 0;
    c->n_text = 0;
    c->text[0] = 0;
    int rc = volt_hiredis_open(&c->at, ac);
    if (rc == 0) ac->data = c;
    return rc;
}
static void open_one(connection *c) {
    CHECK_EQ(take(c, redisAsyncConnectUnix(getenv("REDIS_SOCKET"))), 0);
}
static VOLT_POLL replies(volt_cx *cx, connection *c) {
    return volt_hiredis_run(cx, &c->at, &c->n_owed);
}
static void expect(connection *c, const char *want) {
    CHECK_STR(c->text, want);
    c->n_text = 0;
    c->text[0] = 0;
}

// ---- commands

static volt_poll pipeline(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    ask(&s->one, "SET n 0");
    for (s->i = 0; s->i < MANY; s->i++) ask(&s->one, "INCR n");
    ask(&s->one, "NONSENSE");
    ask(&s->one, "DEL n");
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->one.n_owed, 0);
    {
        const char *at = s->one.text;
        CHECK(strncmp(at, "OK ", 3) == 0);
        at += 3;
        for (int i = 1; i <= MANY; i++) CHECK_EQ(strtol(at, (char **)(uintptr_t)&at, 10), i);
        CHECK(strncmp(at, " 6:", 3) == 0); // an error of a command is a reply
        CHECK(strcmp(strrchr(s->one.text, '1'), "1 ") == 0);
    }
    VOLT_AWAIT(s->rc, replies(cx, &s->one)); // nothing is owed
    CHECK_EQ(s->rc, 0);
    volt_hiredis_close(cx, &s->one.at);
    VOLT_END(0);
}
TEST(thousand_commands_are_sent_at_once_and_answered_in_order) { run(pipeline); }

static char *big_value(void) {
    char *value = (char *)malloc(BIG);
    for (size_t i = 0; i < BIG; i++) value[i] = (char)('a' + i % 23);
    return value;
}
static void set(connection *c, const char *key, size_t size) {
    char *value = big_value();
    CHECK_EQ(ask(c, "SET %s %b", key, value, size), REDIS_OK);
    free(value);
}
static volt_poll big(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(take(&s->one, redisAsyncConnect("127.0.0.1", atoi(getenv("REDIS_PORT")))), 0);
    set(&s->one, "big", BIG);
    ask(&s->one, "GET big");
    ask(&s->one, "DEL big");
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, 0);
    snprintf(s->big, sizeof s->big, "OK 1:%d 1 ", BIG);
    expect(&s->one, s->big);
    volt_hiredis_close(cx, &s->one.at);
    VOLT_END(0);
}
TEST(large_value_passes_over_tcp_in_parts) { run(big); }

static volt_poll given_up(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    open_one(&s->two);
    ask(&s->one, "BLPOP queue 0");
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(20), replies(cx, &s->one)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(s->one.n_owed, 1);
    volt_hiredis_close(cx, &s->one.at);
    CHECK_EQ(s->one.n_lost, 1);
    ask(&s->two, "RPUSH queue job"); // the command that was given up must not take it
    ask(&s->two, "LLEN queue");
    ask(&s->two, "DEL queue");
    VOLT_AWAIT(s->rc, replies(cx, &s->two));
    CHECK_EQ(s->rc, 0);
    expect(&s->two, "1 1 1 ");
    volt_hiredis_close(cx, &s->two.at);
    VOLT_END(0);
}
TEST(blocking_command_is_given_up_with_its_connection) { run(given_up); }

static volt_poll asleep(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    ask(&s->one, "BLPOP nothing 0");
    volt_stats(volt_cx_rt(cx), &s->before);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(200), replies(cx, &s->one)));
    volt_stats(volt_cx_rt(cx), &s->after);
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(s->after.polls - s->before.polls <= 6);
    volt_hiredis_close(cx, &s->one.at);
    VOLT_END(0);
}
TEST(wait_for_a_reply_costs_a_few_polls) { run_with(asleep, 1); }

static volt_poll served(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    open_one(&s->two);
    ask(&s->one, "BLPOP jobs 0");
    ask(&s->two, "RPUSH jobs job");
    VOLT_AWAIT(s->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&s->left, replies(cx, &s->one)),
                                        VOLT_ARM(&s->right, replies(cx, &s->two))));
    CHECK_EQ(s->rc, 0);
    expect(&s->one, "job ");
    volt_hiredis_close(cx, &s->one.at);
    volt_hiredis_close(cx, &s->two.at);
    VOLT_END(0);
}
TEST(blocking_command_is_served_by_another_connection) { run(served); }

static volt_poll subscribe(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    open_one(&s->two);
    ask(&s->one, "SUBSCRIBE news");
    VOLT_AWAIT(s->rc, replies(cx, &s->one)); // the confirmation
    CHECK_EQ(s->rc, 0);
    expect(&s->one, "1 ");
    for (s->i = 0; s->i < 100; s->i++) ask(&s->two, "PUBLISH news %d", s->i);
    VOLT_AWAIT(s->rc, replies(cx, &s->two));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 100; s->i += s->rc == 0) { // a wait that ends early loses no message
        s->one.n_owed = 1;
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 0, replies(cx, &s->one)));
        if (s->rc == -ETIMEDOUT) VOLT_AWAIT(s->rc, replies(cx, &s->one));
        CHECK_EQ(s->rc, 0);
        CHECK(s->one.n_owed <= 0); // the callback is called for each message that has come
        s->i += -s->one.n_owed;
    }
    {
        const char *at = s->one.text;
        for (int i = 0; i < 100; i++) CHECK_EQ(strtol(at, (char **)(uintptr_t)&at, 10), i);
        CHECK_STR(at, " ");
    }
    volt_hiredis_close(cx, &s->one.at); // calls the callback of the subscription once more
    CHECK_EQ(s->one.n_lost, 1);
    volt_hiredis_close(cx, &s->two.at);
    VOLT_END(0);
}
TEST(subscriber_gets_each_message_in_order) { run(subscribe); }

// ---- connections that end

static volt_poll refused(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(take(&s->one, redisAsyncConnectUnix("/nonexistent/redis")), -ECONNREFUSED);
    CHECK_STR(s->one.at.why, "No such file or directory");
    CHECK(!s->one.at.ac);
    CHECK_EQ(volt_hiredis_open(&s->one.at, NULL), -ENOMEM);
    volt_hiredis_close(cx, &s->one.at); // does nothing
    s->rc = take(&s->one, redisAsyncConnect("127.0.0.1", 1));
    if (s->rc == 0) { // the kernel may tell it later
        ask(&s->one, "PING");
        VOLT_AWAIT(s->rc, replies(cx, &s->one));
        CHECK_EQ(s->one.n_lost, 1);
        CHECK_EQ(ask(&s->one, "PING"), REDIS_ERR);
        volt_hiredis_close(cx, &s->one.at);
    }
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK_STR(s->one.at.why, "Connection refused");
    VOLT_END(0);
}
TEST(refused_connection_is_an_error_with_a_text) { run(refused); }

static volt_poll no_descriptor(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    struct rlimit was, none, one; // no await below
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = one = was;
    none.rlim_cur = (rlim_t)dup(0);
    one.rlim_cur = none.rlim_cur + 1;
    close((int)none.rlim_cur);
    for (s->i = 0; s->i < 3; s->i++) { // the last time for the poll set
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, s->i < 2 ? &none : &one), 0);
        s->rc = take(&s->one, s->i == 0 ? redisAsyncConnect("127.0.0.1", 1)
                                        : redisAsyncConnectUnix(getenv("REDIS_SOCKET")));
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
        CHECK_EQ(s->rc, -EMFILE);
        CHECK(!s->one.at.ac);
    }
    s->rc = take(&s->one, redisAsyncConnectUnix("/nonexistent/socket"));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK_STR(s->one.at.why, "No such file or directory");
    VOLT_END(0);
}
TEST(connection_without_a_descriptor_is_an_error_of_its_own) { run_with(no_descriptor, 1); }

static volt_poll killed(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    open_one(&s->two);
    ask(&s->one, "BLPOP nothing 0");
    ask(&s->one, "PING");
    ask(&s->two, "CLIENT KILL SKIPME yes TYPE normal");
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->left, replies(cx, &s->one)),
                                    VOLT_ARM(&s->right, replies(cx, &s->two))));
    CHECK_EQ(s->left.value, -ECONNRESET);
    CHECK_STR(s->one.at.why, "Server closed the connection");
    CHECK_EQ(s->one.n_lost, 2);
    CHECK_EQ(s->one.n_owed, 0);
    CHECK(!s->one.at.ac);
    CHECK_EQ(s->right.value, 0);
    s->one.n_owed = 1;
    VOLT_AWAIT(s->rc, replies(cx, &s->one)); // still
    CHECK_EQ(s->rc, -ECONNRESET);
    volt_hiredis_close(cx, &s->one.at);
    open_one(&s->one);
    ask(&s->one, "PING");
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, 0);
    expect(&s->one, "PONG ");
    volt_hiredis_close(cx, &s->one.at);
    volt_hiredis_close(cx, &s->two.at);
    VOLT_END(0);
}
TEST(connection_that_the_server_ends_gives_each_callback_and_an_error) { run(killed); }

static volt_poll parted(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->one);
    ask(&s->one, "ECHO 1");
    ask(&s->one, "ECHO 2");
    redisAsyncDisconnect(s->one.at.ac); // behind the replies
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, 0);
    expect(&s->one, "1 2 ");
    s->one.n_owed = 1;
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, s->one.at.ac ? 0 : -ENOTCONN);
    CHECK(!s->one.at.ac);
    volt_hiredis_close(cx, &s->one.at);
    VOLT_END(0);
}
TEST(disconnect_of_hiredis_waits_for_the_replies) { run(parted); }

// A server that speaks something else, and one that ends in the middle of a reply.
static volt_poll no_redis(volt_cx *cx, void *arg) {
    static const char *const says[] = { "HTTP/1.1 400 Bad Request\r\n\r\n", "$100\r\nonly a part" };
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    s->listener = volt_listen("127.0.0.1", 0, NULL);
    for (s->i = 0; s->i < 2; s->i++) {
        volt_addr here;
        CHECK_EQ(volt_local_addr(s->listener, &here), 0);
        CHECK_EQ(take(&s->one, redisAsyncConnect("127.0.0.1", volt_addr_port(&here))), 0);
        ask(&s->one, "PING");
        VOLT_AWAIT(s->fd, volt_accept(cx, s->listener));
        CHECK(s->fd >= 0);
        VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, says[s->i], strlen(says[s->i])));
        volt_close(cx, s->fd);
        VOLT_AWAIT(s->rc, replies(cx, &s->one));
        CHECK_EQ(s->rc, s->i == 0 ? -EPROTO : -ECONNRESET);
        CHECK_EQ(s->one.n_lost, 1);
        volt_hiredis_close(cx, &s->one.at);
    }
    volt_close(cx, s->listener);
    VOLT_END(0);
}
TEST(server_that_is_not_redis_or_ends_in_a_reply_is_an_error) { run(no_redis); }


// ---- a server that is started again

typedef struct {
    volt_frame frame;
    volt_process process;
    volt_process_options options;
    const char *argv[10];
    volt_reader out;
    volt_span line;
    char text[1024], path[108];
    int rc;
} server;
// Starts a server of the test, and waits until it says that it is ready.
static volt_poll server_start(volt_cx *cx, server *s) {
    static const char *const argv[] = { "redis-server", "--port", "0", "--save", "",
                                        "--daemonize", "no", "--unixsocket" };
    VOLT_BEGIN(cx, s);
    memcpy(s->argv, argv, sizeof argv);
    snprintf(s->path, sizeof s->path, "%s/own", getenv("REDIS_DIRECTORY"));
    s->argv[8] = s->path;
    s->options.argv = s->argv;
    s->options.dir_or_null = getenv("REDIS_DIRECTORY");
    s->options.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->process, &s->options));
    CHECK_EQ(s->rc, 0);
    volt_reader_init(&s->out, volt_stream_of(s->process.out), s->text, sizeof s->text,
                     VOLT_LONG_SKIP);
    do {
        VOLT_AWAIT(s->rc, volt_read_line(cx, &s->out, &s->line));
        CHECK_EQ(s->rc, 1);
    } while (!memmem(s->line.data, s->line.len, "eady to accept connections", 26));
    VOLT_END(0);
}
static volt_poll server_kill(volt_cx *cx, server *s) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_process_signal(&s->process, SIGKILL), 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->process, NULL));
    CHECK_EQ(s->rc, 0);
    volt_process_close(cx, &s->process);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_arm left, right;
    volt_timer limit;
    server server;
    connection one;
    int i, rc;
} restart;
static volt_poll restarts(volt_cx *cx, void *arg) {
    restart *s = (restart *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(server_start(cx, &s->server));
        CHECK_EQ(take(&s->one, redisAsyncConnectUnix(s->server.path)), 0);
        ask(&s->one, "DBSIZE");
        VOLT_AWAIT(s->rc, replies(cx, &s->one));
        CHECK_EQ(s->rc, 0);
        expect(&s->one, "0 ");
        ask(&s->one, "BLPOP nothing 0");
        VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->left, replies(cx, &s->one)),
                                 VOLT_ARM(&s->right, server_kill(cx, &s->server))));
        CHECK_EQ(s->left.value, -ECONNRESET);
        CHECK_EQ(s->one.n_lost, 1);
        volt_hiredis_close(cx, &s->one.at);
        CHECK_EQ(take(&s->one, redisAsyncConnectUnix(s->server.path)), -ECONNREFUSED);
    }
    VOLT_END(0);
}
TEST(server_that_is_killed_and_started_again_is_served_by_the_next_connection) {
    static restart s;
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(volt_run(NULL, restarts, &s), 0);
}

// ---- cancelled at each poll

// Commands whose replies arrive in many parts, through a relay with a pace.
static void ask_much(connection *c) {
    set(c, "much", MUCH);
    ask(c, "GET much");
    ask(c, "INCR times");
    ask(c, "DEL much times");
}
static const char *much(test *s) {
    snprintf(s->big, sizeof s->big, "OK 1:%d 1 2 ", MUCH);
    return s->big;
}
static int start_pacer(volt_cx *cx, volt_handle *h) { // returns its port
    volt_addr to;
    CHECK_EQ(volt_addr_make(&to, "127.0.0.1", (unsigned)atoi(getenv("REDIS_PORT"))), 0);
    int port = pacer_start(cx, h, &to);
    CHECK(port > 0);
    return port;
}
static volt_poll cancel_and_go_on(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(take(&s->one, redisAsyncConnect("127.0.0.1", start_pacer(cx, &s->relay))), 0);
    ask(&s->one, "DEL much times"); // of a connection that was closed
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    s->one.n_text = 0;
    while (cancel_next(&s->at)) {
        ask_much(&s->one);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, replies(cx, &s->one)));
        CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 0);
        if (s->rc == 0) break;
        VOLT_AWAIT(s->rc, replies(cx, &s->one));
        CHECK_EQ(s->rc, 0);
        expect(&s->one, much(s));
        s->i++;
    }
    expect(&s->one, much(s));
    CHECK(s->i >= 6);
    volt_hiredis_close(cx, &s->one.at);
    volt_cancel(&s->relay);
    VOLT_AWAIT(volt_join(cx, &s->relay));
    VOLT_END(0);
}
TEST(commands_that_are_cancelled_at_any_poll_are_answered_later) { run_with(cancel_and_go_on, 1); }

// The harness finds descriptors that a round has left.
static volt_poll cancel_and_close(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    s->port = start_pacer(cx, &s->relay);
    while (cancel_next(&s->at)) {
        CHECK_EQ(take(&s->one, redisAsyncConnect("127.0.0.1", s->port)), 0);
        ask_much(&s->one);
        VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, replies(cx, &s->one)));
        volt_hiredis_close(cx, &s->one.at);
        CHECK_EQ(s->rc, cancel_came(&s->at) ? -ECANCELED : 0);
        CHECK_EQ(s->one.n_owed, 0); // each callback was called
        CHECK((s->rc == 0) == (s->one.n_lost == 0));
        s->i++;
    }
    CHECK(s->i >= 6);
    volt_cancel(&s->relay);
    VOLT_AWAIT(volt_join(cx, &s->relay));
    VOLT_END(0);
}
TEST(connection_that_is_closed_at_any_poll_leaves_nothing) { run_with(cancel_and_close, 1); }

// ---- no room in epoll

static volt_poll no_room(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 1;; s->i++) {
        full_at = (unsigned)s->i;
        open_one(&s->one);
        ask(&s->one, "PING");
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(5), replies(cx, &s->one)));
        volt_hiredis_close(cx, &s->one.at);
        if (full_at > 0) break; // it was not reached
        CHECK_EQ(s->rc, -ENOSPC);
    }
    full_at = 0;
    CHECK_EQ(s->rc, 0);
    CHECK(s->i > 1);
    VOLT_END(0);
}
TEST(socket_that_cannot_be_waited_for_is_an_error) { run_with(no_room, 1); }

// ---- many connections on several workers

typedef struct {
    volt_frame frame;
    connection c;
    int i, rc;
} client;
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *s = (client *)arg;
    VOLT_BEGIN(cx, s);
    open_one(&s->c);
    for (s->i = 0; s->i < 50; s->i++) {
        for (int i = 0; i < 5; i++) ask(&s->c, "INCRBY sum 3");
        VOLT_AWAIT(s->rc, replies(cx, &s->c));
        CHECK_EQ(s->rc, 0);
        s->c.n_text = 0;
    }
    volt_hiredis_close(cx, &s->c.at);
    VOLT_END(0);
}
static volt_poll crowd(volt_cx *cx, void *arg) {
    test *s = (test *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 20; s->i++) {
        client *c = (client *)volt_task_create(volt_cx_rt(cx), client_run, sizeof(client));
        CHECK(c);
        volt_task_start(c, &s->handles[s->i]);
    }
    for (s->i = 0; s->i < 20; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->handles[s->i]));
        CHECK_EQ(s->rc, 0);
    }
    open_one(&s->one);
    ask(&s->one, "GET sum");
    ask(&s->one, "DEL sum");
    VOLT_AWAIT(s->rc, replies(cx, &s->one));
    CHECK_EQ(s->rc, 0);
    expect(&s->one, "15000 1 ");
    volt_hiredis_close(cx, &s->one.at);
    VOLT_END(0);
}
TEST(connections_of_tasks_on_several_workers_do_not_disturb_each_other) { run_with(crowd, 4); }
