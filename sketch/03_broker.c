// SPDX-License-Identifier: MIT OR 0BSD
// A publish/subscribe broker by lines over TCP. Subjects: volt_reader with lines that are too long,
// volt_writer behind a bounded queue, three policies for slow readers, a drain in order.
//
//     cc -I. -pthread sketch/03_broker.c -o broker && ./broker -l 127.0.0.1:7003 -p block
//     nc 127.0.0.1 7003
//
//   line of a client      reply            effect
//   sub TOPIC             ok               `msg TOPIC text` arrives for each later pub
//   unsub TOPIC           ok
//   pub TOPIC text        ok               sent to the subscribers of TOPIC
//   ping                  ok               keeps the connection from being idle
//   quit                  bye              the broker closes the connection
//   a line too long       err ...          is skipped
// A topic has 1 to 64 printable characters without a space. The broker also sends `lost N` to a
// subscriber: N messages were not delivered since the last such line.
//
//   -l ADDR     address to listen on, of the loopback interface; default 127.0.0.1:7003
//   -p POLICY   what happens if the queue of a subscriber is full:
//                 oldest   its oldest message is dropped, and counted for `lost` (the default)
//                 client   the subscriber is disconnected
//                 block    the publisher waits for room, for -b ms at most over all subscribers of
//                          one message; after that the message is dropped where there is no room
//   -b MS       limit of that wait; default 1000
//   -q KIB      most bytes in the queue of a client; default 64
//   -n N        most clients; default 1000. A further one is told so and disconnected
//   -i S        most seconds in which no line comes and none is sent; 0: no limit; default 300
//   -g S        most seconds for the drain at SIGTERM or SIGINT; default 5. A second signal ends it
//
// Memory of a client: its task (7 KiB with both buffers), its queue (2 KiB and the bytes of -q) and
// at most SUBS_MAX subscriptions. A message is stored once for all its subscribers.
//
// Each client is one task with two functions: `reading` executes lines, `writing` sends what is in
// the queue. Only `writing` touches the volt_writer. One pthread mutex guards topics, queues and
// reference counts. It is held while pointers are moved, and never across an await.
//
// The drain: no more connections and no more lines are taken. When the last line under way has
// been executed, the queues are closed; each client is then sent the rest of its queue and an end
// of stream.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, TOPIC_BYTES = 64, OUT_BYTES = 4096, QUEUE_MESSAGES = 256 };
enum { SUBS_MAX = 64, BUCKETS = 1024, WRITE_SECONDS = 10, LINGER_SECONDS = 1 };
enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all
_Static_assert(sizeof "msg  \n" + TOPIC_BYTES + LINE_BYTES <= OUT_BYTES,
               "the longest message fits into an empty writer");

typedef enum { DROP_OLDEST, DROP_CLIENT, BLOCK_PUBLISHER } slow_policy;

// A line for one or more queues. `refs` is guarded by the lock of the broker.
typedef struct {
    uint32_t refs, len;
    unsigned is_reply; // is never dropped
    const char *text;  // in `storage`, or a literal
    char storage[];
} message;

// The queue of one client. All but the tokens and notifications is guarded by the lock.
typedef struct {
    uint32_t refs; // the client, and each publisher that waits for room
    uint32_t first, n;
    size_t bytes;
    uint64_t n_lost;    // messages dropped since the client was told
    unsigned is_closed; // takes no more messages; those in the ring are still sent
    volt_token cut;     // cancelled: the client is dropped at once
    volt_notify filled; // for `writing`: a message, a close
    volt_notify room;   // for all that wait for room: some was made, or none will be
    message *ring[QUEUE_MESSAGES];
} outbox;

typedef struct topic topic;
typedef struct subscription {
    struct subscription *next, *prev; // of the topic, in order of `id`
    struct subscription *sibling;     // the next one of the client
    topic *of;
    outbox *to;
    uint64_t id;
} subscription;
struct topic {
    topic *next; // in its bucket
    subscription *first, *last;
    uint32_t hash, len;
    char name[TOPIC_BYTES];
};

typedef struct {
    // set before the start
    slow_policy policy;
    size_t queue_bytes;
    volt_time block, idle, grace;
    // for all tasks
    volt_token stop;       // takes no more lines
    volt_tracker speakers; // clients whose `reading` runs
    volt_event quiet;      // after `stop`: no line is being executed any more
    volt_sem places;
    pthread_mutex_t lock;
    // under lock
    uint64_t last_id, n_published, n_dropped, n_cut;
    topic *buckets[BUCKETS];
} broker;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    message *m;
    outbox *full; // referred to while its room is awaited
    volt_time deadline;
    uint64_t last, upto; // ids of subscriptions: the last one that is done, the last one of all
    uint32_t seen;       // count of `room`
    unsigned is_late, n_topic;
    int rc;
    char topic[TOPIC_BYTES];
} publishing;

typedef struct {
    volt_frame frame;
    message *m;
    uint32_t seen; // count of `room`
    int rc;
} answering;

typedef struct {
    volt_frame frame;
    volt_timer idle;
    volt_token_link leave;
    volt_time last, deadline; // `last`: when a line came
    volt_span line; // in the buffer of the reader, until its next call
    int rc, is_idle;
} listening;

typedef struct {
    volt_frame frame;
    message *reply;
    int rc;
    listening listening;
    publishing publishing;
    answering answering;
} reading;

typedef struct {
    volt_frame frame;
    volt_timer late;
    volt_token_link cut;
    int rc;
} writing;

typedef struct {
    volt_frame frame;
    int64_t n;
} parting;

typedef struct {
    volt_frame frame;
    volt_arm reads, writes;
    volt_timer linger;
    volt_token leave; // below broker.stop; also cancelled when `writing` has ended
    broker *broker;
    outbox *box;
    subscription *subs;
    unsigned n_subs;
    int fd;
    volt_time last_sent;
    reading reading;
    writing writing;
    parting parting;
    volt_reader in;
    volt_writer out;
    char peer[64];
    char in_buf[LINE_BYTES], out_buf[OUT_BYTES];
} client;

// Replies are shared by all clients; the first reference is never given back.
#define REPLY(name_, text_) \
    static message name_ = { .refs = 1, .len = sizeof text_ - 1, .is_reply = 1, .text = text_ }
REPLY(reply_ok, "ok\n");
REPLY(reply_bye, "bye\n");
REPLY(reply_unknown, "err unknown command\n");
REPLY(reply_topic, "err a topic has 1 to 64 printable characters\n");
REPLY(reply_too_long, "err line too long\n");
REPLY(reply_too_many, "err too many topics\n");
REPLY(reply_no_memory, "err out of memory\n");
REPLY(reply_idle, "err idle for too long\n");

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "broker: %s\n", line);
}

// ---- messages and queues: under the lock

static void message_release(message *m) {
    if (--m->refs == 0) free(m);
}
static message *message_make(volt_span topic_name, volt_span text) {
    size_t len = sizeof "msg " - 1 + topic_name.len + 1 + text.len + 1;
    message *m = malloc(sizeof *m + len + 1);
    if (!m) return NULL;
    *m = (message){ .refs = 1, .len = (uint32_t)len, .text = m->storage };
    char *at = mempcpy(m->storage, "msg ", 4);
    at = mempcpy(at, topic_name.data, topic_name.len);
    *at++ = ' ';
    at = mempcpy(at, text.data, text.len);
    *at = '\n';
    return m;
}

static int outbox_is_cut(const outbox *o) { return volt_token_is_cancelled(&o->cut); }
// gives : 0 | -EAGAIN: no room | -EPIPE: takes no more
static int outbox_push(const broker *b, outbox *o, message *m) {
    if (o->is_closed || outbox_is_cut(o)) return -EPIPE;
    if (o->n == QUEUE_MESSAGES || (o->n > 0 && o->bytes + m->len > b->queue_bytes)) return -EAGAIN;
    o->ring[(o->first + o->n++) % QUEUE_MESSAGES] = m;
    o->bytes += m->len;
    m->refs++;
    volt_notify_one(&o->filled);
    return 0;
}
static message *outbox_pop(outbox *o) {
    message *m = o->ring[o->first];
    o->first = (o->first + 1) % QUEUE_MESSAGES;
    o->n--;
    o->bytes -= m->len;
    return m;
}
// Drops the oldest message that is not a reply: the replies before it move up by one place.
// gives : 1 | 0 if there is none
static int outbox_drop_oldest(broker *b, outbox *o) {
    uint32_t i = 0;
    while (i < o->n && o->ring[(o->first + i) % QUEUE_MESSAGES]->is_reply) i++;
    if (i == o->n) return 0;
    message *m = o->ring[(o->first + i) % QUEUE_MESSAGES];
    for (; i > 0; i--)
        o->ring[(o->first + i) % QUEUE_MESSAGES] = o->ring[(o->first + i - 1) % QUEUE_MESSAGES];
    o->ring[o->first] = m;
    message_release(outbox_pop(o));
    o->n_lost++;
    b->n_dropped++;
    return 1;
}
static void outbox_wake(outbox *o) {
    volt_notify_one(&o->filled);
    volt_notify_all(&o->room);
}
static void outbox_release(outbox *o) {
    if (--o->refs > 0) return;
    while (o->n > 0) message_release(outbox_pop(o));
    free(o);
}

// Queues a message by the policy for slow readers.
// gives : 0: queued, or dropped by policy | -EAGAIN: the publisher is to wait | -EPIPE
static int deliver(broker *b, outbox *o, message *m, int is_late) {
    int rc = outbox_push(b, o, m);
    if (rc != -EAGAIN) return rc;
    if (b->policy == BLOCK_PUBLISHER && !is_late) return rc;
    if (b->policy == DROP_CLIENT) {
        volt_token_cancel(&o->cut);
        outbox_wake(o);
        b->n_cut++;
        return -EPIPE;
    }
    if (b->policy == DROP_OLDEST)
        while (rc == -EAGAIN && outbox_drop_oldest(b, o)) rc = outbox_push(b, o, m);
    if (rc == -EAGAIN) { // only replies are left, or the limit of the publisher is over
        o->n_lost++;
        b->n_dropped++;
        volt_notify_one(&o->filled);
    }
    return rc == -EAGAIN ? 0 : rc;
}

// ---- topics: under the lock

static uint32_t topic_hash(const char *name, size_t len) { // FNV-1a
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h;
}
static topic *topic_find(broker *b, const char *name, size_t len) {
    uint32_t hash = topic_hash(name, len);
    topic *t = b->buckets[hash % BUCKETS];
    while (t && (t->hash != hash || t->len != len || memcmp(t->name, name, len) != 0)) t = t->next;
    return t;
}
static topic *topic_get(broker *b, const char *name, size_t len) {
    topic *t = topic_find(b, name, len);
    if (t || !(t = calloc(1, sizeof *t))) return t;
    t->hash = topic_hash(name, len);
    t->len = (uint32_t)len;
    memcpy(t->name, name, len);
    t->next = b->buckets[t->hash % BUCKETS];
    b->buckets[t->hash % BUCKETS] = t;
    return t;
}
static void topic_drop_if_unused(broker *b, topic *t) {
    if (t->first) return;
    topic **at = &b->buckets[t->hash % BUCKETS];
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    free(t);
}
// Frees the subscription that *at points to, and removes it from its topic and client.
static void subscription_end(broker *b, subscription **at) {
    subscription *s = *at;
    topic *t = s->of;
    *at = s->sibling;
    *(s->prev ? &s->prev->next : &t->first) = s->next;
    *(s->next ? &s->next->prev : &t->last) = s->prev;
    free(s);
    topic_drop_if_unused(b, t);
}
static subscription **subscription_of(client *c, volt_span name) {
    subscription **at = &c->subs;
    while (*at && ((*at)->of->len != name.len || memcmp((*at)->of->name, name.data, name.len) != 0))
        at = &(*at)->sibling;
    return at;
}

// ---- commands: each takes the lock itself

static message *subscribe(client *c, volt_span name) {
    broker *b = c->broker;
    message *reply = &reply_ok;
    subscription *s = calloc(1, sizeof *s);
    pthread_mutex_lock(&b->lock);
    topic *t = NULL;
    if (*subscription_of(c, name)) goto out; // it exists already
    reply = c->n_subs == SUBS_MAX ? &reply_too_many : &reply_no_memory;
    if (c->n_subs == SUBS_MAX || !s || !(t = topic_get(b, name.data, name.len))) goto out;
    *s = (subscription){ .prev = t->last, .sibling = c->subs, .of = t, .to = c->box,
                         .id = ++b->last_id };
    *(t->last ? &t->last->next : &t->first) = s;
    t->last = c->subs = s;
    c->n_subs++;
    s = NULL;
    reply = &reply_ok;
out:
    pthread_mutex_unlock(&b->lock);
    free(s);
    return reply;
}
static message *unsubscribe(client *c, volt_span name) {
    pthread_mutex_lock(&c->broker->lock);
    subscription **at = subscription_of(c, name);
    if (*at) subscription_end(c->broker, at), c->n_subs--;
    pthread_mutex_unlock(&c->broker->lock);
    return &reply_ok;
}

// The first word of *rest, which becomes what is behind it and one space.
static volt_span take_word(volt_span *rest) {
    char *space = memchr(rest->data, ' ', rest->len);
    volt_span word = { rest->data, space ? (size_t)(space - rest->data) : rest->len };
    size_t used = space ? word.len + 1 : word.len;
    rest->data += used;
    rest->len -= used;
    return word;
}
static int is_word(volt_span word, const char *text) {
    return word.len == strlen(text) && memcmp(word.data, text, word.len) == 0;
}
static int is_topic(volt_span name) {
    if (name.len == 0 || name.len > TOPIC_BYTES) return 0;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] <= ' ' || name.data[i] == 0x7f) return 0;
    return 1;
}
// Executes a line. The span must not be used after the first await behind this call, so a publish
// copies what it needs.
// gives : the reply | NULL: `publish` is to be awaited
static message *execute(client *c, volt_span line) {
    publishing *p = &c->reading.publishing;
    volt_span verb = take_word(&line);
    if (is_word(verb, "ping")) return &reply_ok;
    if (is_word(verb, "quit")) return &reply_bye;
    int is_pub = is_word(verb, "pub"), is_sub = is_word(verb, "sub");
    if (!is_pub && !is_sub && !is_word(verb, "unsub")) return &reply_unknown;
    volt_span name = take_word(&line);
    if (!is_topic(name)) return &reply_topic;
    if (!is_pub) return is_sub ? subscribe(c, name) : unsubscribe(c, name);
    p->m = message_make(name, line);
    if (!p->m) return &reply_no_memory;
    memcpy(p->topic, name.data, name.len);
    p->n_topic = (unsigned)name.len;
    return NULL;
}

// ---- publishing

// Delivers to the subscriptions behind p->last. A subscription that ends while the publisher waits
// is skipped, and one that begins in the meantime does not get the message.
// gives : 1: done | 0: p->full has no room, and is referred to
static int publish_some(broker *b, publishing *p) {
    int is_done = 1;
    pthread_mutex_lock(&b->lock);
    if (p->upto == 0) p->upto = b->last_id, b->n_published++;
    topic *t = topic_find(b, p->topic, p->n_topic);
    for (subscription *s = t ? t->first : NULL; s && s->id <= p->upto; s = s->next) {
        if (s->id <= p->last) continue;
        if (deliver(b, s->to, p->m, (int)p->is_late) == -EAGAIN) {
            p->full = s->to;
            p->full->refs++;
            p->seen = volt_notify_count(&p->full->room);
            is_done = 0;
            break;
        }
        p->last = s->id;
    }
    if (is_done) message_release(p->m), p->m = NULL;
    pthread_mutex_unlock(&b->lock);
    return is_done;
}
static void publish_waited(broker *b, publishing *p) {
    pthread_mutex_lock(&b->lock);
    outbox_release(p->full);
    p->full = NULL;
    if (p->rc < 0 && p->rc != -ETIMEDOUT) message_release(p->m), p->m = NULL; // gives up
    pthread_mutex_unlock(&b->lock);
}
// Delivers p->m, and releases it.
static volt_poll publish(volt_cx *cx, client *c) {
    publishing *p = &c->reading.publishing;
    broker *const b = c->broker;
    VOLT_BEGIN(cx, p);
    p->deadline = volt_now() + b->block;
    p->last = p->upto = 0;
    p->is_late = 0;
    while (!publish_some(b, p)) {
        VOLT_AWAIT(p->rc, volt_before(cx, &p->limit, p->deadline,
                                      volt_notify_wait_past(cx, &p->full->room, p->seen)));
        publish_waited(b, p);
        if (p->rc == -ETIMEDOUT) p->is_late = 1;
        else if (p->rc < 0) VOLT_RETURN(p->rc);
    }
    VOLT_END(0);
}

// ---- the two functions of a client

static int answer_try(client *c, answering *a) {
    pthread_mutex_lock(&c->broker->lock);
    a->seen = volt_notify_count(&c->box->room);
    int rc = outbox_push(c->broker, c->box, a->m);
    pthread_mutex_unlock(&c->broker->lock);
    return rc;
}
// Queues the reply for this client. If there is no room the client does not read, and its lines
// wait; `writing` ends that wait when it has sent something or has given up.
static volt_poll answer(volt_cx *cx, client *c, message *m) {
    answering *a = &c->reading.answering;
    VOLT_BEGIN(cx, a);
    a->m = m;
    while ((a->rc = answer_try(c, a)) == -EAGAIN) {
        VOLT_AWAIT(a->rc, volt_notify_wait_past(cx, &c->box->room, a->seen));
        if (a->rc < 0) break;
    }
    VOLT_END(a->rc);
}

static volt_time idle_deadline(const client *c) {
    const listening *l = &c->reading.listening;
    volt_time last = l->last > c->last_sent ? l->last : c->last_sent;
    return c->broker->idle == VOLT_NEVER ? VOLT_NEVER : last + c->broker->idle;
}
// Waits for the next line. Data that is sent to the client moves the idle limit; part of a line
// does not.
//   gives : 1 | 0: end of stream | -EMSGSIZE | -ETIMEDOUT: idle | -ECANCELED: `leave` | -errno
static volt_poll listen_for_line(volt_cx *cx, client *c) {
    listening *l = &c->reading.listening;
    VOLT_BEGIN(cx, l);
    do {
        l->deadline = idle_deadline(c); // `writing` moves it in the meantime
        VOLT_AWAIT(l->rc, volt_with_token(cx, &l->leave, &c->leave,
                                          volt_before(cx, &l->idle, l->deadline,
                                                      volt_read_line(cx, &c->in, &l->line))));
        l->is_idle = l->rc == -ETIMEDOUT && volt_timer_fired(&l->idle);
    } while (l->is_idle && idle_deadline(c) > volt_now());
    l->last = volt_now();
    VOLT_END(l->rc);
}

static void outbox_close(client *c) {
    pthread_mutex_lock(&c->broker->lock);
    c->box->is_closed = 1;
    outbox_wake(c->box);
    pthread_mutex_unlock(&c->broker->lock);
}
static volt_poll read_run(volt_cx *cx, client *c) {
    reading *r = &c->reading;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->rc, listen_for_line(cx, c));
        if (r->rc == -EMSGSIZE) r->reply = &reply_too_long;
        else if (r->rc == -ETIMEDOUT && r->listening.is_idle) r->reply = &reply_idle;
        else if (r->rc <= 0) break;
        else r->reply = execute(c, r->listening.line);
        if (!r->reply) {
            VOLT_AWAIT(r->rc, publish(cx, c));
            if (r->rc < 0) break;
            r->reply = &reply_ok;
        }
        VOLT_AWAIT(r->rc, answer(cx, c, r->reply));
        if (r->rc < 0 || r->reply == &reply_idle || r->reply == &reply_bye) break;
    }
    volt_tracker_leave(&c->broker->speakers);
    // In a drain, others may still publish to this client: its queue stays open for them.
    if (volt_token_is_cancelled(&c->broker->stop))
        VOLT_AWAIT(volt_event_wait(cx, &c->broker->quiet));
    outbox_close(c);
    VOLT_END(r->rc);
}

// Moves messages from the queue into the writer, as many as fit.
// gives : 0 | 1: the queue is closed and all of it was sent | -ECONNABORTED: it is cut
static int outbox_take(client *c) {
    outbox *o = c->box;
    int rc = 0, has_taken = 0;
    pthread_mutex_lock(&c->broker->lock);
    if (outbox_is_cut(o)) rc = -ECONNABORTED;
    if (rc == 0 && o->n_lost > 0 && volt_putf(&c->out, "lost %" PRIu64 "\n", o->n_lost) == 0)
        o->n_lost = 0;
    while (rc == 0 && o->n > 0) {
        const message *m = o->ring[o->first];
        if (volt_put(&c->out, m->text, m->len) < 0) break; // -ENOBUFS: after the next flush
        message_release(outbox_pop(o));
        has_taken = 1;
    }
    if (rc == 0 && o->is_closed && volt_unflushed(&c->out) == 0) rc = 1;
    if (has_taken) volt_notify_all(&o->room);
    pthread_mutex_unlock(&c->broker->lock);
    return rc;
}
static volt_poll write_run(volt_cx *cx, client *c) {
    writing *w = &c->writing;
    VOLT_BEGIN(cx, w);
    for (;;) {
        w->rc = outbox_take(c);
        if (w->rc != 0) break;
        if (volt_unflushed(&c->out) == 0) {
            VOLT_AWAIT(w->rc, volt_notify_wait(cx, &c->box->filled));
            if (w->rc < 0) break;
            continue;
        }
        VOLT_AWAIT(w->rc, volt_with_token(cx, &w->cut, &c->box->cut,
                                          volt_within(cx, &w->late, VOLT_S(WRITE_SECONDS),
                                                      volt_flush(cx, &c->out))));
        if (w->rc < 0) break;
        c->last_sent = volt_now();
    }
    if (outbox_is_cut(c->box)) note("%s dropped: its queue is full", c->peer);
    else if (w->rc == -ETIMEDOUT) note("%s dropped: it does not read", c->peer);
    outbox_close(c); // wakes `reading` if it waits for room
    volt_token_cancel(&c->leave);
    VOLT_END(w->rc == 1 ? 0 : w->rc);
}

// Ends the stream, then reads until the client does the same. A close with unread input would reset
// the connection, and the client would lose what was sent last.
static volt_poll part(volt_cx *cx, client *c) {
    parting *p = &c->parting;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->n, volt_stream_end(cx, volt_stream_of(c->fd)));
    if (p->n < 0) VOLT_RETURN(p->n);
    do VOLT_AWAIT(p->n, volt_read(cx, c->fd, c->in_buf, sizeof c->in_buf));
    while (p->n > 0);
    VOLT_END(p->n);
}

static void client_forget(client *c) {
    broker *b = c->broker;
    pthread_mutex_lock(&b->lock);
    while (c->subs) subscription_end(b, &c->subs);
    outbox_release(c->box);
    pthread_mutex_unlock(&b->lock);
    volt_token_deinit(&c->leave);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    // Members with the address of this state are set here: the spawn has copied the state.
    volt_token_init(&c->leave, &c->broker->stop);
    volt_reader_init(&c->in, volt_stream_of(c->fd), c->in_buf, sizeof c->in_buf);
    volt_writer_init(&c->out, volt_stream_of(c->fd), c->out_buf, sizeof c->out_buf);
    c->in.too_long = VOLT_LONG_SKIP;
    c->last_sent = c->reading.listening.last = volt_now();
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&c->reads, read_run(cx, c)),
                             VOLT_ARM(&c->writes, write_run(cx, c))));
    if (c->writes.value == 0)
        VOLT_AWAIT(volt_within(cx, &c->linger, VOLT_S(LINGER_SECONDS), part(cx, c)));
    client_forget(c);
    volt_close(cx, c->fd);
    volt_sem_release(&c->broker->places, 1);
    VOLT_END(0);
}

// ---- the broker

typedef struct {
    volt_frame frame;
    int rc;
} draining;
typedef struct {
    volt_frame frame;
    volt_arm come, signal, drained;
    volt_timer limit;
    volt_group clients;
    draining draining;
    volt_addr peer;
    int lfd, sigfd, fd, rc, n_failed;
    unsigned n_clients;
    broker broker;
} app;

// Starts a client on m->fd.
//   gives : 0 | -EAGAIN: no place | -errno: nothing was taken
static int admit(volt_cx *cx, app *m) {
    broker *b = &m->broker;
    client c = { .broker = b, .fd = m->fd };
    int rc = volt_sem_try_acquire(&b->places, 1);
    if (rc < 0) return rc;
    rc = volt_tracker_enter(&b->speakers);
    if (rc < 0) goto no_speaker;
    c.box = calloc(1, sizeof *c.box);
    rc = -ENOMEM;
    if (!c.box) goto no_box;
    c.box->refs = 1;
    if (volt_addr_format(&m->peer, c.peer, sizeof c.peer) < 0) strcpy(c.peer, "a client");
    rc = VOLT_GROUP_SPAWN(cx, &m->clients, client_run, c);
    if (rc == 0) return 0;
    free(c.box);
no_box:
    volt_tracker_leave(&b->speakers);
no_speaker:
    volt_sem_release(&b->places, 1);
    return rc;
}
// Tells a client why it is not admitted. The socket is new and has room for a line; what it does
// not take is not sent.
static void refuse(volt_cx *cx, int fd, int rc) {
    static const char full[] = "err too many clients\n", failed[] = "err out of resources\n";
    int64_t n = rc == -EAGAIN ? volt_try_write(cx, fd, full, sizeof full - 1)
                              : volt_try_write(cx, fd, failed, sizeof failed - 1);
    if (n < 0 || rc != -EAGAIN) note("a client was refused: %s", volt_strerror(rc));
    volt_close(cx, fd);
}

static volt_poll drain(volt_cx *cx, app *m) {
    draining *d = &m->draining;
    VOLT_BEGIN(cx, d);
    VOLT_AWAIT(d->rc, volt_tracker_wait(cx, &m->broker.speakers));
    if (d->rc < 0) VOLT_RETURN(d->rc);
    volt_event_set(&m->broker.quiet);
    VOLT_AWAIT(d->rc, volt_group_wait(cx, &m->clients));
    VOLT_END(d->rc);
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->come, m->fd, volt_accept_from(cx, m->lfd, &m->peer)),
                               VOLT_ARM(&m->signal, m->rc,
                                        volt_signals_next(cx, m->sigfd, NULL))));
        if (!m->come.fired) break;
        if (m->fd >= 0) {
            m->n_failed = 0;
            m->rc = admit(cx, m);
            if (m->rc < 0) refuse(cx, m->fd, m->rc);
        } else { // a lasting cause, such as a firewall, is left to the supervisor of the program
            if (m->n_failed == ACCEPT_RETRIES) break;
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ACCEPT_PAUSE_MS << m->n_failed)));
            m->n_failed++;
        }
    }
    if (m->come.fired) note("accept: %s", volt_strerror(m->fd));
    note("draining");
    volt_close(cx, m->lfd);
    volt_token_cancel(&m->broker.stop);
    volt_tracker_close(&m->broker.speakers);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->drained, m->rc,
                                    volt_within(cx, &m->limit, m->broker.grace, drain(cx, m))),
                           VOLT_ARM(&m->signal, volt_signals_next(cx, m->sigfd, NULL))));
    if (!m->drained.fired || m->rc < 0) note("the drain was cut short");
    VOLT_AWAIT(volt_group_close(cx, &m->clients)); // cancels the clients that are left
    VOLT_END(m->come.fired ? m->fd : 0);
}

// ---- the command line

static int is_loopback(const volt_addr *a) {
    socklen_t len;
    const struct sockaddr *sa = volt_addr_sockaddr(a, &len);
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (sa->sa_family != AF_INET6) return 0;
    memcpy(&v6, sa, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}
// gives : a listener; its address with the port in *a | -errno
static int listen_on(const char *text, volt_addr *a) {
    int rc = volt_addr_parse(a, text);
    if (rc < 0) return rc;
    if (!is_loopback(a)) return -EADDRNOTAVAIL;
    int fd = volt_listen_addr(a, NULL);
    if (fd < 0) return fd;
    rc = volt_local_addr(fd, a);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}
static void usage(void) {
    fprintf(stderr, "usage: broker [-l ADDR] [-p oldest|client|block] [-b MS] [-q KIB] [-n N] "
                    "[-i S] [-g S]\nADDR is of the loopback interface, as 127.0.0.1:7003\n");
    exit(2);
}
static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least || n > most) usage();
    return n;
}
static slow_policy policy_of(const char *name) {
    static const char *const names[] = { "oldest", "client", "block" };
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) return (slow_policy)i;
    usage();
    return DROP_OLDEST;
}

int main(int argc, char **argv) {
    static app m; // the root state, with the table of topics, is large for a stack
    broker *b = &m.broker;
    const char *where = "127.0.0.1:7003";
    volt_addr at;
    char text[64];
    long n_places = 1000, idle = 300;
    int option;
    b->block = VOLT_MS(1000);
    b->grace = VOLT_S(5);
    b->queue_bytes = 64 << 10;
    while ((option = getopt(argc, argv, "l:p:b:q:n:i:g:")) != -1) {
        if (option == 'l') where = optarg;
        else if (option == 'p') b->policy = policy_of(optarg);
        else if (option == 'b') b->block = VOLT_MS(number(optarg, 0, 3600000));
        else if (option == 'q') b->queue_bytes = (size_t)number(optarg, 1, 1 << 20) << 10;
        else if (option == 'n') n_places = number(optarg, 1, 1000000);
        else if (option == 'i') idle = number(optarg, 0, 1000000);
        else if (option == 'g') b->grace = VOLT_S(number(optarg, 0, 3600));
        else usage();
    }
    if (optind < argc) usage();
    b->idle = idle == 0 ? VOLT_NEVER : VOLT_S(idle);
    volt_sem_release(&b->places, (uint32_t)n_places);
    pthread_mutex_init(&b->lock, NULL);

    int rc = m.sigfd = VOLT_SIGNALS(SIGTERM, SIGINT);
    if (rc >= 0) rc = m.lfd = listen_on(where, &at);
    if (rc >= 0) rc = volt_addr_format(&at, text, sizeof text);
    if (rc >= 0) {
        printf("listening on %s\n", text);
        fflush(stdout);
        rc = volt_run(NULL, app_run, &m);
    }
    if (rc >= 0)
        printf("served %u clients: %" PRIu64 " messages, %" PRIu64 " dropped, %" PRIu64
               " clients dropped\n",
               m.n_clients, b->n_published, b->n_dropped, b->n_cut);
    if (rc < 0) fprintf(stderr, "broker: %s\n", volt_strerror(rc));
    return rc < 0;
}
