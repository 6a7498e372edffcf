// SPDX-License-Identifier: MIT OR 0BSD
// Rows about messages between tasks: bounded channels, queues, oneshots, broadcasts, watches.
//
//   chan [ROW...] [--workers N] [--reps N]         default: all rows, 1 worker, 9 repetitions
//
//   C4   one task, 8 bytes: a fills a channel of 100,000, b drains it, c one message through a
//        channel of 1; t: by the functions that never wait, w: by those that are awaited
//   C5   a: a new oneshot, sent and received, t and w as above; b: a task spawned and joined
//   C6   a: a broadcast fills a ring of 100,000, 4 subscribers drain it: one send, four receives;
//        b: a watch set and read
//   C7   4 tasks send, 4 receive: a 10,000 messages through a channel of 1000, 100 times;
//        b a million through 1000; c through 1; d through a channel that is never full
//   C8   5 tasks send 1000 messages each to the root, 200 times: through a channel of a million, of
//        which it takes a one, c many at a time; b, d the same through a channel of 100;
//        e through a queue
//   C10  one message to N tasks that wait: e, f broadcast, N = 10, 1000; g watch, N = 1000
//
// C4t, C5at, C6 and C7a are the workloads of a published comparison with Tokio, C7b is a tenth of
// another one, C8 and C10 are after Tokio's own benchmarks. All messages are added up. ns are per
// message, in C10 per message received; for the columns see bench.h.
#include "counted.h"
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"

enum { MILLION = 1000000 / SHRINK, FULL = 100000 / SHRINK, FILLS = 10 };

static uint64_t room[MILLION]; // of whatever channel the row is about
static volt_chan chan;

static uint64_t sum_below(uint64_t n) { return n * (n - 1) / 2; }
// Tallies n messages, if their sum is that of all numbers below n.
static void tally_messages(uint64_t n, uint64_t sum) { tally_add(sum == sum_below(n) ? n : 0); }

typedef struct loop {
    volt_frame frame;
    uint32_t i, k;
    int rc;
    uint64_t value, sum;
    volt_oneshot oneshot;
    volt_handle handle;
} loop;

typedef struct plain {
    volt_frame frame;
    int (*fn)(void);
} plain;

static volt_poll plain_run(volt_cx *cx, void *arg) {
    plain *p = arg;
    VOLT_BEGIN(cx, p);
    VOLT_END(p->fn());
}

// ---- C4: tried

static int fill(void) {
    for (uint64_t i = 0; i < FULL; i++)
        if (volt_chan_try_send(&chan, &i, sizeof i) < 0) return -EBADMSG;
    return 0;
}

static int drain(uint64_t *sum) {
    uint64_t value = 0;
    for (int i = 0; i < FULL; i++) {
        if (volt_chan_try_recv(&chan, &value, sizeof value) != 1) return -EBADMSG;
        *sum += value;
    }
    return 0;
}

static int chan_fill(void) {
    for (int i = 0; i < FILLS; i++) {
        uint64_t sum = 0;
        row_pause();
        volt_chan_init(&chan, room, sizeof room[0], FULL);
        row_resume();
        if (fill() < 0) return -EBADMSG;
        row_pause();
        if (drain(&sum) < 0) return -EBADMSG;
        tally_messages(FULL, sum);
        row_resume();
    }
    return 0;
}

static int chan_drain(void) {
    for (int i = 0; i < FILLS; i++) {
        uint64_t sum = 0;
        row_pause();
        volt_chan_init(&chan, room, sizeof room[0], FULL);
        if (fill() < 0) return -EBADMSG;
        row_resume();
        if (drain(&sum) < 0) return -EBADMSG;
        tally_messages(FULL, sum);
    }
    return 0;
}

static int chan_one(void) {
    uint64_t sum = 0, value = 0;
    volt_chan_init(&chan, room, sizeof room[0], 1);
    for (uint64_t i = 0; i < MILLION; i++) {
        if (volt_chan_try_send(&chan, &i, sizeof i) < 0) return -EBADMSG;
        if (volt_chan_try_recv(&chan, &value, sizeof value) != 1) return -EBADMSG;
        sum += value;
    }
    tally_messages(MILLION, sum);
    return 0;
}

// ---- C4: awaited

static volt_poll filler_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    for (l->value = 0; l->value < FULL; l->value++) {
        VOLT_AWAIT(l->rc, volt_chan_send(cx, &chan, &l->value, sizeof l->value));
        if (l->rc < 0) VOLT_RETURN(l->rc);
    }
    VOLT_END(0);
}

static volt_poll drainer_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    for (l->i = 0; l->i < FULL; l->i++) {
        VOLT_AWAIT(l->rc, volt_chan_recv(cx, &chan, &l->value, sizeof l->value));
        if (l->rc != 1) VOLT_RETURN(-EBADMSG);
        l->sum += l->value;
    }
    tally_messages(FULL, l->sum);
    VOLT_END(0);
}

typedef struct halves {
    volt_frame frame;
    loop fill, drain;
    int i, rc, is_drain_timed;
} halves;

static volt_poll halves_run(volt_cx *cx, void *arg) {
    halves *h = arg;
    VOLT_BEGIN(cx, h);
    for (h->i = 0; h->i < FILLS; h->i++) {
        row_pause();
        volt_chan_init(&chan, room, sizeof room[0], FULL);
        if (!h->is_drain_timed) row_resume();
        VOLT_AWAIT(h->rc, filler_run(cx, &h->fill));
        if (h->rc < 0) VOLT_RETURN(h->rc);
        if (h->is_drain_timed) row_resume();
        else row_pause();
        VOLT_AWAIT(h->rc, drainer_run(cx, &h->drain));
        if (h->rc < 0) VOLT_RETURN(h->rc);
        if (!h->is_drain_timed) row_resume();
    }
    VOLT_END(0);
}

static volt_poll one_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    volt_chan_init(&chan, room, sizeof room[0], 1);
    l->sum = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        l->value = l->i;
        VOLT_AWAIT(l->rc, volt_chan_send(cx, &chan, &l->value, sizeof l->value));
        if (l->rc < 0) VOLT_RETURN(l->rc);
        VOLT_AWAIT(l->rc, volt_chan_recv(cx, &chan, &l->value, sizeof l->value));
        if (l->rc != 1) VOLT_RETURN(-EBADMSG);
        l->sum += l->value;
    }
    tally_messages(MILLION, l->sum);
    VOLT_END(0);
}

// ---- C5

static volt_oneshot oneshot;

static int oneshot_try(void) {
    uint64_t sum = 0;
    int64_t value = 0;
    for (int64_t i = 0; i < MILLION; i++) {
        oneshot = (volt_oneshot)VOLT_ONESHOT_INIT;
        if (volt_oneshot_send(&oneshot, i) < 0) return -EBADMSG;
        if (volt_oneshot_try_recv(&oneshot, &value) < 0) return -EBADMSG;
        sum += (uint64_t)value;
    }
    tally_messages(MILLION, sum);
    return 0;
}

static volt_poll oneshot_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        l->oneshot = (volt_oneshot)VOLT_ONESHOT_INIT;
        if (volt_oneshot_send(&l->oneshot, l->i) < 0) VOLT_RETURN(-EBADMSG);
        VOLT_AWAIT(l->value, volt_oneshot_recv(cx, &l->oneshot));
        l->sum += l->value;
    }
    tally_messages(MILLION, l->sum);
    VOLT_END(0);
}

typedef struct answer {
    volt_frame frame;
    uint32_t value;
} answer;

static volt_poll answer_run(volt_cx *cx, void *arg) {
    answer *a = arg;
    VOLT_BEGIN(cx, a);
    VOLT_END(a->value);
}

static volt_poll join_run(volt_cx *cx, void *arg) {
    loop *l = arg;
    VOLT_BEGIN(cx, l);
    l->sum = 0;
    for (l->i = 0; l->i < MILLION; l->i++) {
        l->rc = VOLT_SPAWN(cx, &l->handle, answer_run, (answer){ .value = l->i });
        if (l->rc < 0) VOLT_RETURN(l->rc);
        VOLT_AWAIT(l->value, volt_join(cx, &l->handle));
        l->sum += l->value;
    }
    tally_messages(MILLION, l->sum);
    VOLT_END(0);
}

// ---- C6

enum { SUBSCRIBERS = 4 };
static volt_bcast bcast;
static volt_sub subs[SUBSCRIBERS];

static void bcast_init(uint32_t cap) {
    bcast = (volt_bcast)VOLT_BCAST_INIT(room);
    bcast.cap_ = cap;
}

static int bcast_drain(volt_sub *s) {
    uint64_t sum = 0, value = 0;
    for (int i = 0; i < FULL; i++) {
        if (volt_sub_try_recv(s, &value, sizeof value) != 1) return -EBADMSG;
        sum += value;
    }
    return sum == sum_below(FULL) ? 0 : -EBADMSG;
}

static int bcast_fill_drain(void) {
    for (int k = 0; k < FILLS; k++) {
        bcast_init(FULL);
        for (int i = 0; i < SUBSCRIBERS; i++) volt_sub_open(&subs[i], &bcast);
        for (uint64_t i = 0; i < FULL; i++)
            if (volt_bcast_send(&bcast, &i, sizeof i) != SUBSCRIBERS) return -EBADMSG;
        for (int i = 0; i < SUBSCRIBERS; i++) {
            if (bcast_drain(&subs[i]) < 0) return -EBADMSG;
            volt_sub_close(&subs[i]);
        }
        tally_add(FULL);
    }
    return 0;
}

static uint64_t watched;
static volt_watch watch;

static int watch_set_get(void) {
    uint64_t sum = 0, value = 0;
    watch = (volt_watch)VOLT_WATCH_INIT(watched);
    for (uint64_t i = 0; i < MILLION; i++) {
        if (volt_watch_set(&watch, &i, sizeof i) < 0) return -EBADMSG;
        if (volt_watch_get(&watch, &value, sizeof value, NULL) < 0) return -EBADMSG;
        sum += value;
    }
    tally_messages(MILLION, sum);
    return 0;
}

// ---- C7

enum { SENDERS = 4, RECEIVERS = 4 };

// Messages and capacity, in the state of each task; the order in which they start assigns the
// roles.
typedef struct many {
    volt_frame frame;
    uint32_t n, cap, i, id;
    int rc;
    uint64_t value, sum, count;
} many;
static uint32_t n_many;          // tasks that have begun
static uint64_t n_received, sum; // of all receivers

static volt_poll many_send(volt_cx *cx, void *arg) {
    many *m = arg;
    VOLT_BEGIN(cx, m);
    for (m->i = 0; m->i < m->n / SENDERS; m->i++) {
        m->value = m->id * (m->n / SENDERS) + m->i;
        VOLT_AWAIT(m->rc, volt_chan_send(cx, &chan, &m->value, sizeof m->value));
        if (m->rc < 0) break;
    }
    volt_chan_release(&chan, VOLT_CHAN_SENDER);
    VOLT_END(m->rc);
}

static volt_poll many_recv(volt_cx *cx, void *arg) {
    many *m = arg;
    VOLT_BEGIN(cx, m);
    for (;;) {
        VOLT_AWAIT(m->rc, volt_chan_recv(cx, &chan, &m->value, sizeof m->value));
        if (m->rc != 1) break;
        m->sum += m->value;
        m->count++;
    }
    tally_add(m->count);
    __atomic_fetch_add(&n_received, m->count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum, m->sum, __ATOMIC_RELAXED);
    VOLT_END(m->rc);
}

typedef struct member {
    volt_frame frame;
    many as;
} member;

static volt_poll member_run(volt_cx *cx, void *arg) {
    member *m = arg;
    VOLT_BEGIN(cx, m);
    m->as.id = __atomic_fetch_add(&n_many, 1, __ATOMIC_RELAXED);
    if (m->as.id < SENDERS) VOLT_AWAIT(many_send(cx, &m->as));
    else VOLT_AWAIT(many_recv(cx, &m->as));
    latch_hit(1);
    VOLT_END(0);
}

typedef struct exchange {
    volt_frame frame;
    uint32_t n, cap, times, i;
    int rc;
} exchange;

static int exchange_begin(volt_cx *cx, const exchange *e) {
    const member first = { .as = { .n = e->n } };
    n_many = 0;
    n_received = sum = 0;
    volt_chan_init(&chan, room, sizeof room[0], e->cap);
    for (int i = 0; i < SENDERS; i++) volt_chan_retain(&chan, VOLT_CHAN_SENDER);
    return batch_spawn(cx, &(batches){ .n = SENDERS + RECEIVERS, BATCH_OF(member_run, first) });
}

static volt_poll exchange_run(volt_cx *cx, void *arg) {
    exchange *e = arg;
    VOLT_BEGIN(cx, e);
    for (e->i = 0; e->i < e->times; e->i++) {
        e->rc = exchange_begin(cx, e);
        VOLT_AWAIT(latch_wait());
        if (e->rc < 0) VOLT_RETURN(e->rc);
        if (n_received != e->n || sum != sum_below(e->n)) VOLT_RETURN(-EBADMSG);
    }
    VOLT_END(0);
}

// ---- C8

enum { C8_SENDERS = 5, C8_EACH = 1000, C8_ALL = C8_SENDERS * C8_EACH, C8_TIMES = 200 };
typedef struct sender {
    volt_frame frame;
    uint32_t i, id;
    int rc;
    uint64_t value;
} sender;
static const sender no_sender;
static uint64_t taken[C8_ALL]; // at a time
static volt_queue queue;
static struct letter {
    volt_queue_node node;
    uint64_t value;
} letters[C8_ALL];

static volt_poll sender_run(volt_cx *cx, void *arg) {
    sender *s = arg;
    VOLT_BEGIN(cx, s);
    s->id = __atomic_fetch_add(&n_many, 1, __ATOMIC_RELAXED);
    for (s->i = 0; s->i < C8_EACH; s->i++) {
        s->value = s->id * C8_EACH + s->i;
        VOLT_AWAIT(s->rc, volt_chan_send(cx, &chan, &s->value, sizeof s->value));
        if (s->rc < 0) break;
    }
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll pusher_run(volt_cx *cx, void *arg) {
    sender *s = arg;
    VOLT_BEGIN(cx, s);
    s->id = __atomic_fetch_add(&n_many, 1, __ATOMIC_RELAXED);
    for (s->i = s->id * C8_EACH; s->i < (s->id + 1) * C8_EACH; s->i++) {
        letters[s->i].value = s->i;
        if (volt_queue_push(&queue, &letters[s->i].node) < 0) break;
    }
    latch_hit(1);
    VOLT_END(0);
}

typedef struct collection {
    volt_frame frame;
    volt_fn *from;
    uint32_t cap, most, k, n; // most: at a time; n: so far
    int rc;
    uint64_t sum;
    volt_queue_node *node;
} collection;

static int collection_begin(volt_cx *cx, collection *c) {
    n_many = 0;
    c->n = 0;
    c->sum = 0;
    if (c->cap > 0) volt_chan_init(&chan, room, sizeof room[0], c->cap);
    queue = (volt_queue)VOLT_QUEUE_INIT;
    return batch_spawn(cx, &(batches){ .n = C8_SENDERS, BATCH_OF(c->from, no_sender) });
}

static void collection_add(collection *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) c->sum += taken[i];
    c->n += n;
}

static volt_poll collect_run(volt_cx *cx, void *arg) {
    collection *c = arg;
    VOLT_BEGIN(cx, c);
    while (c->n < C8_ALL) {
        VOLT_AWAIT(c->rc, volt_chan_recv_n(cx, &chan, taken, sizeof taken[0], c->most));
        if (c->rc < 1) VOLT_RETURN(-EBADMSG);
        collection_add(c, (uint32_t)c->rc);
    }
    VOLT_END(0);
}

static volt_poll collect_one_run(volt_cx *cx, void *arg) {
    collection *c = arg;
    VOLT_BEGIN(cx, c);
    while (c->n < C8_ALL) {
        VOLT_AWAIT(c->rc, volt_chan_recv(cx, &chan, taken, sizeof taken[0]));
        if (c->rc != 1) VOLT_RETURN(-EBADMSG);
        collection_add(c, 1);
    }
    VOLT_END(0);
}

static volt_poll collect_queue_run(volt_cx *cx, void *arg) {
    collection *c = arg;
    VOLT_BEGIN(cx, c);
    while (c->n < C8_ALL) {
        VOLT_AWAIT(c->rc, volt_queue_pop(cx, &queue, &c->node));
        if (c->rc != 1) VOLT_RETURN(-EBADMSG);
        c->sum += ((const struct letter *)c->node)->value;
        c->n++;
    }
    VOLT_END(0);
}

static volt_poll collect(volt_cx *cx, collection *c) {
    return c->cap == 0 ? collect_queue_run(cx, c)
           : c->most > 1 ? collect_run(cx, c)
                         : collect_one_run(cx, c);
}

typedef struct collections {
    volt_frame frame;
    collection each;
    int i, rc;
} collections;

static volt_poll collections_run(volt_cx *cx, void *arg) {
    collections *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < C8_TIMES; c->i++) {
        c->rc = collection_begin(cx, &c->each);
        if (c->rc < 0) VOLT_RETURN(c->rc);
        VOLT_AWAIT(c->rc, collect(cx, &c->each));
        if (c->rc < 0 || c->each.sum != sum_below(C8_ALL)) VOLT_RETURN(-EBADMSG);
        tally_add(C8_ALL);
        VOLT_AWAIT(latch_wait()); // no task is inside a channel that is reinitialized
    }
    VOLT_END(0);
}

// ---- C10

enum { C10_OPS = 200000, C10_ROOM = 16 };
typedef struct listener {
    volt_frame frame;
    uint32_t rounds, i;
    int rc;
    uint64_t value, sum;
    volt_sub sub;
    volt_watcher watcher;
} listener;

static volt_poll listener_run(volt_cx *cx, void *arg) {
    listener *l = arg;
    VOLT_BEGIN(cx, l);
    volt_sub_open(&l->sub, &bcast);
    latch_hit(1);
    for (l->i = 0; l->i < l->rounds; l->i++) {
        VOLT_AWAIT(l->rc, volt_sub_recv(cx, &l->sub, &l->value, sizeof l->value));
        if (l->rc == 1) l->sum += l->value;
        latch_hit(1);
    }
    tally_messages(l->rounds, l->sum);
    volt_sub_close(&l->sub);
    latch_hit(1);
    VOLT_END(0);
}

static volt_poll watcher_run(volt_cx *cx, void *arg) {
    listener *l = arg;
    VOLT_BEGIN(cx, l);
    volt_watcher_open(&l->watcher, &watch);
    latch_hit(1);
    for (l->i = 0; l->i < l->rounds; l->i++) {
        VOLT_AWAIT(l->rc, volt_watcher_next(cx, &l->watcher, &l->value, sizeof l->value));
        if (l->rc == 1) l->sum += l->value;
        latch_hit(1);
    }
    tally_messages(l->rounds, l->sum);
    latch_hit(1);
    VOLT_END(0);
}

typedef struct fan_out {
    volt_frame frame;
    volt_fn *to;
    uint32_t n, i, rounds;
    int rc;
    uint64_t value;
} fan_out;

static int fan_out_begin(volt_cx *cx, fan_out *f) {
    const listener first = { .rounds = f->rounds = C10_OPS / f->n };
    bcast_init(C10_ROOM);
    watch = (volt_watch)VOLT_WATCH_INIT(watched);
    return batch_spawn(cx, &(batches){ .n = f->n, BATCH_OF(f->to, first) });
}

static int fan_out_send(const fan_out *f) {
    const uint64_t value = f->i;
    if (f->to == watcher_run) return volt_watch_set(&watch, &value, sizeof value);
    return volt_bcast_send(&bcast, &value, sizeof value);
}

static volt_poll fan_out_run(volt_cx *cx, void *arg) {
    fan_out *f = arg;
    VOLT_BEGIN(cx, f);
    f->rc = fan_out_begin(cx, f);
    if (f->rc < 0) VOLT_RETURN(f->rc);
    VOLT_AWAIT(latch_wait());
    for (f->i = 0; f->i < f->rounds; f->i++) {
        latch_set(cx, f->n + (f->i + 1 == f->rounds ? f->n : 0)); // and when they end
        if (fan_out_send(f) < 0) VOLT_RETURN(-EBADMSG);
        VOLT_AWAIT(latch_wait());
    }
    VOLT_END(0);
}

// ---- main

static plain c4at = { .fn = chan_fill }, c4bt = { .fn = chan_drain }, c4ct = { .fn = chan_one };
static plain c5at = { .fn = oneshot_try };
static plain c6a = { .fn = bcast_fill_drain }, c6b = { .fn = watch_set_get };
static halves c4aw, c4bw = { .is_drain_timed = 1 };
static loop awaiting;
static exchange c7a = { .n = 10000, .cap = 1000, .times = 100 / SHRINK };
static exchange c7b = { .n = MILLION, .cap = 1000, .times = 1 };
static exchange c7c = { .n = MILLION, .cap = 1, .times = 1 };
static exchange c7d = { .n = MILLION, .cap = MILLION, .times = 1 };
static collections c8a = { .each = { .from = sender_run, .cap = MILLION, .most = 1 } };
static collections c8b = { .each = { .from = sender_run, .cap = 100, .most = 1 } };
static collections c8c = { .each = { .from = sender_run, .cap = MILLION, .most = C8_ALL } };
static collections c8d = { .each = { .from = sender_run, .cap = 100, .most = C8_ALL } };
static collections c8e = { .each = { .from = pusher_run } };
static fan_out c10e = { .to = listener_run, .n = 10 };
static fan_out c10f = { .to = listener_run, .n = 1000 };
static fan_out c10g = { .to = watcher_run, .n = 1000 };

static const row rows[] = {
    { "C4at", "channel: fill, try_send", FILLS * FULL, plain_run, &c4at },
    { "C4aw", "channel: fill, send", FILLS * FULL, halves_run, &c4aw },
    { "C4bt", "channel: drain, try_recv", FILLS * FULL, plain_run, &c4bt },
    { "C4bw", "channel: drain, recv", FILLS * FULL, halves_run, &c4bw },
    { "C4ct", "channel of 1: try_send, try_recv", MILLION, plain_run, &c4ct },
    { "C4cw", "channel of 1: send, recv", MILLION, one_run, &awaiting },
    { "C5at", "oneshot: new, send, try_recv", MILLION, plain_run, &c5at },
    { "C5aw", "oneshot: new, send, recv", MILLION, oneshot_run, &awaiting },
    { "C5b", "task: spawn, join", MILLION, join_run, &awaiting },
    { "C6a", "broadcast: send, 4 try_recv", FILLS * FULL, plain_run, &c6a },
    { "C6b", "watch: set, get", MILLION, plain_run, &c6b },
    { "C7a", "4 to 4 tasks, 10k through 1000", MILLION, exchange_run, &c7a },
    { "C7b", "4 to 4 tasks, 1M through 1000", MILLION, exchange_run, &c7b },
    { "C7c", "4 to 4 tasks, 1M through 1", MILLION, exchange_run, &c7c },
    { "C7d", "4 to 4 tasks, 1M, never full", MILLION, exchange_run, &c7d },
    { "C8a", "5 to 1 task through 1M", C8_TIMES * C8_ALL, collections_run, &c8a },
    { "C8b", "5 to 1 task through 100", C8_TIMES * C8_ALL, collections_run, &c8b },
    { "C8c", "5 to 1 task through 1M, recv_n", C8_TIMES * C8_ALL, collections_run, &c8c },
    { "C8d", "5 to 1 task through 100, recv_n", C8_TIMES * C8_ALL, collections_run, &c8d },
    { "C8e", "5 to 1 task through a queue", C8_TIMES * C8_ALL, collections_run, &c8e },
    { "C10e", "broadcast, 10 tasks: one woken", C10_OPS, fan_out_run, &c10e },
    { "C10f", "broadcast, 1000 tasks: one woken", C10_OPS, fan_out_run, &c10f },
    { "C10g", "watch, 1000 tasks: one woken", C10_OPS, fan_out_run, &c10g },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
