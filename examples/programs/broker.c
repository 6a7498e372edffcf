// SPDX-License-Identifier: MIT OR 0BSD
// A publish/subscribe broker by lines over TCP. Teaches: a volt_bcast for each topic, whose ring is
// the only memory for messages; volt_reader and volt_writer; several tasks that share a connection;
// a drain in order.
//
//     cc -O2 -I. -pthread examples/programs/broker.c -o broker && ./broker 127.0.0.1:7003
//     nc 127.0.0.1 7003
//
//   line of a client     reply
//   sub TOPIC            ok              from now on `msg TOPIC text` comes for each pub
//   unsub TOPIC          ok
//   pub TOPIC text       ok N            N: the number of subscribers
//   anything else        err ...         also a line above LINE bytes, which is skipped
// A topic has 1 to NAME printable characters without a space. The messages of a topic come in
// order; two topics have no common order.
//
// Slow readers: a topic keeps its last KEPT messages. A subscriber that is further behind loses the
// oldest of them, and is told how many by `lost TOPIC N`. No publisher waits for a subscriber. A
// client that does not take OUT bytes within WRITE_SECONDS is disconnected.
//
// Memory, however slow the clients are: 33 KiB for each of at most TOPICS_MAX topics; for a client
// 7 KiB, SEND_BYTES in the kernel, and 1 KiB for each of at most SUBS_MAX subscriptions.
//
// SIGTERM or SIGINT: no more lines are taken. Each subscriber gets the messages that are left and
// the end of its stream, within DRAIN_SECONDS. A second signal cuts that short.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "server.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { NAME = 64, TEXT = 512, LINE = NAME + TEXT + 16, OUT = 4096, SEND_BYTES = 65536 };
enum { KEPT = 64, TOPICS_MAX = 256, SUBS_MAX = 16, CLIENTS_MAX = 1000 };
enum { WRITE_SECONDS = 5, DRAIN_SECONDS = 10, LINGER_SECONDS = 1 };

typedef struct {
    unsigned len;
    char text[TEXT];
} message;
typedef struct {
    volt_bcast messages;
    unsigned n_subs; // under the lock of the broker
    char name[NAME + 1];
    message kept[KEPT];
} topic;
typedef struct {
    server s;
    pthread_mutex_t lock; // never held across an await
    unsigned is_closed;   // under lock, with the next one
    topic *topics[TOPICS_MAX];
} broker;

typedef struct client client;
// A place for a subscription, which has a task of its own.
typedef struct {
    volt_handle task;
    volt_token stop;
    volt_sub sub;
    topic *of; // NULL: the place is free
} place;
typedef struct {
    volt_frame frame;
    volt_timer late;
    int rc;
} flushing;
typedef struct {
    volt_frame frame;
    int64_t rc;
} saying;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    flushing flush;
    client *to;
    place *from;
    message m;
    int rc, locked;
} subscription;
struct client {
    volt_frame frame;
    volt_token_link stop;
    volt_timer linger;
    volt_shield shield;
    flushing flush;
    saying say;
    broker *b;
    int fd, rc;
    unsigned i;
    volt_span line; // in in_buf, until the next wait for a line
    char reply[64];
    place *leaving; // by an unsub
    place places[SUBS_MAX];
    volt_mutex pen; // held by the task that uses `out`
    volt_reader in;
    volt_writer out;
    char in_buf[LINE], out_buf[OUT];
};

// ---- topics: under the lock

static topic **topic_find(broker *b, volt_span name) {
    for (int i = 0; i < TOPICS_MAX; i++)
        if (b->topics[i] && strncmp(b->topics[i]->name, name.data, name.len) == 0 &&
            b->topics[i]->name[name.len] == 0)
            return &b->topics[i];
    return NULL;
}
// The topic, which is created if it does not exist, with one more subscriber; or NULL.
static topic *topic_enter(broker *b, volt_span name) {
    topic **at = topic_find(b, name);
    for (int i = 0; i < TOPICS_MAX && !at; i++)
        if (!b->topics[i]) at = &b->topics[i];
    if (!at || b->is_closed || (!*at && !(*at = (topic *)calloc(1, sizeof **at)))) return NULL;
    if ((*at)->n_subs++ > 0) return *at;
    memcpy((*at)->name, name.data, name.len);
    (*at)->messages = (volt_bcast)VOLT_BCAST_INIT((*at)->kept);
    return *at;
}
static void topic_leave(broker *b, topic *t) {
    if (--t->n_subs > 0) return;
    for (int i = 0; i < TOPICS_MAX; i++)
        if (b->topics[i] == t) b->topics[i] = NULL;
    free(t);
}

// ---- subscriptions

// Sends the content of the writer, and gives the pen back. A client that does not read loses its
// connection, which its own task then sees.
static volt_poll client_flush(volt_cx *cx, client *c, flushing *f) {
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(f->rc, volt_within(cx, &f->late, VOLT_S(WRITE_SECONDS), volt_flush(cx, &c->out)));
    if (f->rc < 0 && f->rc != -ECANCELED) volt_sock_shutdown(c->fd, SHUT_RDWR);
    volt_mutex_unlock(&c->pen);
    VOLT_END(f->rc);
}
// The text may contain any byte, also a 0.
static int message_put(volt_writer *out, const char *name, const message *m) {
    struct iovec part[] = { { (void *)(uintptr_t)"msg ", 4 },
                            { (void *)(uintptr_t)name, strlen(name) },
                            { (void *)(uintptr_t)" ", 1 },
                            { (void *)(uintptr_t)m->text, m->len },
                            { (void *)(uintptr_t)"\n", 1 } };
    return volt_putv(out, part, 5);
}
// Puts the result of the receive, and all that can be received and put now. The writer is empty at
// first.
static void subscription_put(subscription *s) {
    volt_writer *out = &s->to->out;
    const char *name = s->from->of->name;
    int rc = 0;
    while (rc == 0 && (s->rc == 1 || s->rc == -EOVERFLOW)) {
        rc = s->rc == 1 ? message_put(out, name, &s->m)
                        : volt_putf(out, "lost %s %llu\n", name,
                                    (unsigned long long)volt_sub_lost(&s->from->sub));
        if (volt_writer_room(out) < LINE) break;
        s->rc = volt_sub_try_recv(&s->from->sub, &s->m, sizeof s->m);
    }
}
static volt_poll subscription_run(volt_cx *cx, void *arg) {
    subscription *s = (subscription *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        // The token ends this wait alone, so that no line is cut.
        VOLT_AWAIT(s->rc, volt_with_token(cx, &s->stop, &s->from->stop,
                                          volt_sub_recv(cx, &s->from->sub, &s->m, sizeof s->m)));
        if (s->rc == 0 || s->rc == -ECANCELED) break;
        VOLT_AWAIT(s->locked, volt_mutex_lock(cx, &s->to->pen));
        if (s->locked < 0) break;
        subscription_put(s);
        VOLT_AWAIT(s->rc, client_flush(cx, s->to, &s->flush));
        if (s->rc < 0) break;
    }
    VOLT_END(0);
}
static place *place_find(client *c, volt_span name) {
    for (int i = 0; i < SUBS_MAX; i++)
        if (c->places[i].of && strlen(c->places[i].of->name) == name.len &&
            memcmp(c->places[i].of->name, name.data, name.len) == 0)
            return &c->places[i];
    return NULL;
}
// The task of the place has ended, or was not started.
static void place_free(client *c, place *p) {
    pthread_mutex_lock(&c->b->lock);
    volt_sub_close(&p->sub);
    topic_leave(c->b, p->of);
    pthread_mutex_unlock(&c->b->lock);
    p->of = NULL;
}

// ---- commands

static const char *subscribe(volt_cx *cx, client *c, volt_span name) {
    place *p = c->places;
    if (place_find(c, name)) return "ok";
    while (p < c->places + SUBS_MAX && p->of) p++;
    if (p == c->places + SUBS_MAX) return "err too many subscriptions";
    memset(p, 0, sizeof *p);
    pthread_mutex_lock(&c->b->lock);
    p->of = topic_enter(c->b, name);
    if (p->of) volt_sub_open(&p->sub, &p->of->messages); // the messages behind the reply come
    pthread_mutex_unlock(&c->b->lock);
    if (!p->of) return "err no room for another topic";
    if (VOLT_SPAWN(cx, &p->task, subscription_run, (subscription){ .to = c, .from = p }) == 0)
        return "ok";
    place_free(c, p);
    return "err out of memory";
}
// Returns the number of subscribers, or -EPIPE in a stop.
static int publish(broker *b, volt_span name, volt_span text) {
    message m;
    m.len = (unsigned)text.len;
    memcpy(m.text, text.data, text.len);
    pthread_mutex_lock(&b->lock);
    topic **at = topic_find(b, name);
    int rc = b->is_closed ? -EPIPE : at ? volt_bcast_send(&(*at)->messages, &m, sizeof m) : 0;
    pthread_mutex_unlock(&b->lock);
    return rc;
}
// Takes the first word of *rest, and one space behind it.
static volt_span take_word(volt_span *rest) {
    const char *space = (const char *)memchr(rest->data, ' ', rest->len);
    volt_span word = { rest->data, space ? (size_t)(space - rest->data) : rest->len };
    rest->data += word.len + (space != NULL);
    rest->len -= word.len + (space != NULL);
    return word;
}
static int is_word(volt_span word, const char *text) {
    return word.len == strlen(text) && memcmp(word.data, text, word.len) == 0;
}
static int is_topic(volt_span name) {
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] <= ' ' || name.data[i] == 0x7f) return 0;
    return name.len > 0 && name.len <= NAME;
}
// Executes a line. The reply is in c->reply; an unsub is completed by the caller.
static void execute(volt_cx *cx, client *c, volt_span line) {
    const char *reply = "ok";
    volt_span verb = take_word(&line), name = take_word(&line);
    int n = -1;
    int is_pub = is_word(verb, "pub"), is_sub = is_word(verb, "sub");
    if (!is_pub && !is_sub && !is_word(verb, "unsub")) reply = "err unknown command";
    else if (!is_topic(name)) reply = "err a topic has 1 to 64 printable characters";
    else if (is_sub) reply = subscribe(cx, c, name);
    else if (!is_pub) c->leaving = place_find(c, name);
    else if (line.len > TEXT) reply = "err text too long";
    else if ((n = publish(c->b, name, line)) < 0) reply = "err the broker stops";
    if (n < 0) snprintf(c->reply, sizeof c->reply, "%s\n", reply);
    else snprintf(c->reply, sizeof c->reply, "ok %d\n", n);
}

// ---- clients

static volt_poll client_reply(volt_cx *cx, client *c) {
    saying *s = &c->say;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &c->pen));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    s->rc = volt_put(&c->out, c->reply, strlen(c->reply));
    VOLT_AWAIT(s->rc, client_flush(cx, c, &c->flush));
    VOLT_END(s->rc);
}
// Ends the stream, then reads until the client does the same: a close with unread input would
// reset the connection, and the client would lose its last messages.
static volt_poll client_part(volt_cx *cx, client *c) {
    saying *s = &c->say;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_stream_of(c->fd)));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    do VOLT_AWAIT(s->rc, volt_read(cx, c->fd, c->in_buf, sizeof c->in_buf));
    while (s->rc > 0);
    VOLT_END(s->rc);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    volt_reader_init(&c->in, volt_stream_of(c->fd), c->in_buf, sizeof c->in_buf, VOLT_LONG_SKIP);
    volt_writer_init(&c->out, volt_stream_of(c->fd), c->out_buf, sizeof c->out_buf);
    volt_set_buffers(c->fd, SEND_BYTES, 0);
    volt_set_keepalive(c->fd, 60, 10, 3); // a subscriber may be silent, but not gone
    for (;;) {
        VOLT_AWAIT(c->rc, volt_with_token(cx, &c->stop, &c->b->s.stop,
                                          volt_read_line(cx, &c->in, &c->line)));
        c->leaving = NULL;
        if (c->rc == 1) execute(cx, c, c->line);
        else if (c->rc == -EMSGSIZE) strcpy(c->reply, "err line too long\n");
        else break; // also 2: half a line is no command
        if (c->leaving) {
            volt_token_cancel(&c->leaving->stop);
            VOLT_AWAIT(c->rc, volt_join(cx, &c->leaving->task));
            if (c->rc < 0) break;
            place_free(c, c->leaving);
        }
        VOLT_AWAIT(c->rc, client_reply(cx, c));
        if (c->rc < 0) break;
    }
    if (volt_token_is_cancelled(&c->b->s.stop)) // the topics are closed: the subscriptions will end
        for (c->i = 0; c->i < SUBS_MAX; c->i++)
            if (c->places[c->i].of) VOLT_AWAIT(volt_join(cx, &c->places[c->i].task));
    volt_shield_begin(cx, &c->shield, VOLT_NEVER); // their tasks use this state
    for (c->i = 0; c->i < SUBS_MAX; c->i++) {
        volt_cancel(&c->places[c->i].task); // does nothing once it has ended
        if (c->places[c->i].of) VOLT_AWAIT(volt_join(cx, &c->places[c->i].task));
        if (c->places[c->i].of) place_free(c, &c->places[c->i]);
    }
    volt_shield_end(cx, &c->shield);
    VOLT_AWAIT(volt_within(cx, &c->linger, VOLT_S(LINGER_SECONDS), client_part(cx, c)));
    volt_close(cx, c->fd);
    VOLT_END(0);
}

// ---- the broker

static int client_came(volt_cx *cx, server *s, int fd) {
    client c = { .b = (broker *)s, .fd = fd };
    return VOLT_GROUP_SPAWN(cx, &s->clients, client_run, c);
}
static void topics_close(server *s) {
    broker *b = (broker *)s;
    pthread_mutex_lock(&b->lock);
    b->is_closed = 1;
    for (int i = 0; i < TOPICS_MAX; i++)
        if (b->topics[i]) volt_bcast_close(&b->topics[i]->messages);
    pthread_mutex_unlock(&b->lock);
}
int main(int argc, char **argv) {
    static broker b;
    volt_addr at;
    if (argc != 2 || volt_addr_parse(&at, argv[1]) < 0)
        return fprintf(stderr, "usage: %s LISTEN_ADDR\n", argv[0]), 2;
    pthread_mutex_init(&b.lock, NULL);
    b.s.n_max = CLIENTS_MAX;
    b.s.grace = VOLT_S(DRAIN_SECONDS);
    b.s.client_came = client_came;
    b.s.stopping_or_null = topics_close;
    int rc = server_open(&b.s, &at, NULL);
    if (rc == 0) rc = volt_run(NULL, server_run, &b.s);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
