// SPDX-License-Identifier: MIT OR 0BSD
// Bounded channels and the rendezvous. Each message is received once, whichever task is cancelled,
// and in order of each sender; the other kinds are in chan_kinds.c.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

typedef struct {
    int from, seq;
} msg;

static int n_senders(volt_chan *c) { return count_waiting(&c->lock_, &c->senders_); }
static int n_receivers(volt_chan *c) { return count_waiting(&c->lock_, &c->receivers_); }
static int n_watchers(volt_chan *c) { return count_waiting(&c->lock_, &c->watchers_); }

// Yields until n wait there.
static volt_poll until_waiting(volt_cx *cx, awaiter *a, volt_chan *c, int (*count)(volt_chan *),
                               int n) {
    VOLT_BEGIN(cx, a);
    while (count(c) < n) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}

// ---- a task that does one thing to a channel

enum { SEND, RECV, RESERVE, CLOSED };
enum { NOT_YET = 12345 };
static int (*waiters_of(int kind))(volt_chan *) {
    return kind == RECV ? n_receivers : kind == CLOSED ? n_watchers : n_senders;
}
typedef struct {
    int rc, at; // at: place in the order of ending
    msg m;
} result;
typedef struct {
    volt_frame frame;
    volt_chan *c;
    result *out;
    int *n_ended;
    int kind;
    int64_t rc;
} one;
static volt_poll act(volt_cx *cx, one *o) {
    switch (o->kind) {
    case SEND: return volt_chan_send(cx, o->c, &o->out->m, sizeof o->out->m);
    case RECV: return volt_chan_recv(cx, o->c, &o->out->m, sizeof o->out->m);
    case RESERVE: return volt_chan_reserve(cx, o->c);
    default: return volt_chan_wait_closed(cx, o->c);
    }
}
static volt_poll one_run(volt_cx *cx, void *arg) {
    one *o = (one *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, act(cx, o));
    o->out->at = COUNT(*o->n_ended);
    WRITE(o->out->rc, (int)o->rc);
    VOLT_END(o->rc);
}
// The n-th of those that wait there, from 1 on: its turn is known when this has ended.
#define START(h_, kind_, out_, nth_)                                                               \
    do {                                                                                           \
        (out_)->rc = NOT_YET;                                                                      \
        SPAWN(h_, one_run, (one){ .c = &s->c, .kind = (kind_), .out = (out_), .n_ended = &s->n }); \
        VOLT_AWAIT(until_waiting(cx, &s->a, &s->c, waiters_of(kind_), nth_));                      \
    } while (0)
#define MSG(from_, seq_) (msg){ .from = (from_), .seq = (seq_) }
static int try_send(volt_chan *c, int from, int seq) {
    msg m = MSG(from, seq);
    return volt_chan_try_send(c, &m, sizeof m);
}
// The sequence number, or what try_recv gave.
static int try_recv(volt_chan *c) {
    msg m = MSG(0, 0);
    int rc = volt_chan_try_recv(c, &m, sizeof m);
    return rc == 1 ? m.seq : rc;
}

// ---- initialisers

TEST(chan_initialisers_equal_chan_init) {
    msg buf[3], one_slot[1];
    volt_chan a = VOLT_CHAN_INIT(buf), b, r = VOLT_CHAN_RENDEZVOUS(one_slot);
    CHECK_EQ(volt_chan_cap(&a), 3);
    CHECK_EQ(volt_chan_cap(&r), 0);
    volt_chan_init(&b, buf, sizeof buf[0], 3);
    CHECK(a.elem_ == b.elem_ && a.slots_ == b.slots_ && a.cap_ == b.cap_ && a.buf_ == b.buf_);
    volt_chan_init(&b, one_slot, sizeof one_slot[0], 0);
    CHECK(r.elem_ == b.elem_ && r.slots_ == b.slots_ && r.cap_ == b.cap_ && r.buf_ == b.buf_);
    volt_chan *all[] = { &a, &b };
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(volt_chan_len(all[i]), 0);
        CHECK_EQ(volt_chan_is_closed(all[i]), 0);
        CHECK_EQ(try_recv(all[i]), -EAGAIN);
        volt_chan_destroy(all[i]); // not its buffer: nothing
    }
    for (int i = 1; i <= 10; i++) { // around the ring, at each place of its head
        for (int k = 1; k <= 3; k++) CHECK_EQ(try_send(&a, 0, 10 * i + k), 0);
        CHECK_EQ(try_send(&a, 0, 1), -EAGAIN);
        CHECK_EQ(volt_chan_len(&a), 3);
        for (int k = 1; k <= 3; k++) CHECK_EQ(try_recv(&a), 10 * i + k);
        CHECK_EQ(try_recv(&a), -EAGAIN);
        CHECK_EQ(try_send(&a, 0, 1), 0);
        CHECK_EQ(try_recv(&a), 1);
    }
}

TEST(chan_create_allocates_exactly_its_buffer) {
    volt_rt *rt = create_on(1);
    volt_chan c;
    memset(&c, 0x5a, sizeof c);
    CHECK_EQ(volt_chan_create(rt, &c, 0, 4), -EINVAL);
    CHECK_EQ(volt_chan_create(rt, &c, sizeof(msg), SIZE_MAX), -EINVAL);
    CHECK_EQ(volt_chan_create(rt, &c, SIZE_MAX, 1), -EINVAL);
    CHECK_EQ(volt_chan_create(rt, &c, ((size_t)1 << 31) / 8, 9), -EINVAL);
    volt_chan_destroy(&c); // nothing was made
    test_heap.fail_at = READ(test_heap.n_allocs) + 1;
    CHECK_EQ(volt_chan_create(rt, &c, sizeof(msg), 4), -ENOMEM);
    test_heap.fail_at = 0;
    for (uint32_t cap = 0; cap < 9; cap += 4) {
        intptr_t before = READ(test_heap.live_bytes);
        CHECK_EQ(volt_chan_create(rt, &c, sizeof(msg), cap), 0);
        CHECK_EQ(READ(test_heap.live_bytes) - before, (cap ? cap : 1) * sizeof(msg));
        CHECK_EQ(volt_chan_cap(&c), cap);
        for (uint32_t i = 0; i < cap; i++) CHECK_EQ(try_send(&c, 0, (int)i), 0);
        CHECK_EQ(try_send(&c, 0, 0), -EAGAIN);
        volt_chan_destroy(&c);
        volt_chan_destroy(&c); // again: nothing
        CHECK_EQ(READ(test_heap.live_bytes), before);
    }
    destroy(rt);
}

TEST(chan_try_and_sync_calls_refuse_another_size) {
    msg buf[2], v = MSG(1, 2);
    volt_chan c = VOLT_CHAN_INIT(buf);
    CHECK_EQ(volt_chan_try_send(&c, &v, sizeof v - 1), -EINVAL);
    CHECK_EQ(volt_chan_send_sync(&c, &v, sizeof v + 1, 0), -EINVAL);
    CHECK_EQ(volt_chan_try_reserve(&c), 0);
    CHECK_EQ(volt_chan_send_reserved(&c, &v, 1), -EINVAL); // still reserved
    CHECK_EQ(volt_chan_send_reserved(&c, &v, sizeof v), 0);
    CHECK_EQ(volt_chan_send_reserved(&c, &v, sizeof v), -EINVAL); // not any more
    CHECK_EQ(volt_chan_try_recv(&c, &v, sizeof v * 2), -EINVAL);
    CHECK_EQ(volt_chan_recv_sync(&c, &v, 0, 0), -EINVAL);
    CHECK_EQ(volt_chan_len(&c), 1);
}
TEST_DIES(chan_unreserve_without_reserve_is_misuse, "no slot is reserved") {
    msg buf[2];
    volt_chan c = VOLT_CHAN_INIT(buf);
    volt_chan_unreserve(&c);
}
TEST(chan_init_refuses_sizes_that_it_cannot_count) {
    volt_chan c;
    CHECK_EQ(volt_chan_init(&c, NULL, 0, 1), -EINVAL);
    CHECK_EQ(volt_chan_init(&c, NULL, 1, (size_t)UINT32_MAX / 2 + 1), -EINVAL);
#if SIZE_MAX > UINT32_MAX
    CHECK_EQ(volt_chan_init(&c, NULL, (size_t)UINT32_MAX + 1, 1), -EINVAL);
#endif
}
typedef struct {
    volt_frame frame;
    msg buf[2];
    volt_chan c;
} wrong_size;
static volt_poll wrong_size_run(volt_cx *cx, void *arg) {
    wrong_size *w = (wrong_size *)arg;
    VOLT_BEGIN(cx, w);
    volt_chan_init(&w->c, w->buf, sizeof w->buf[0], 2);
    VOLT_AWAIT(volt_chan_recv(cx, &w->c, w->buf, sizeof w->buf));
    VOLT_END(0);
}
TEST_DIES(chan_recv_of_another_size_is_misuse, "that of the channel's elements") {
    static wrong_size w;
    run_on(1, wrong_size_run, &w);
}

static volt_poll wrong_send_run(volt_cx *cx, void *arg) {
    wrong_size *w = (wrong_size *)arg;
    VOLT_BEGIN(cx, w);
    volt_chan_init(&w->c, w->buf, sizeof w->buf[0], 2);
    VOLT_AWAIT(volt_chan_send(cx, &w->c, w->buf, 1));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_queue *q;
    volt_queue_node *n[2];
    volt_sub sub;
    volt_watcher watcher;
    msg m;
    volt_arm a, b;
} two_pop;
static volt_poll two_pop_run(volt_cx *cx, void *arg) {
    two_pop *t = (two_pop *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&t->a, volt_queue_pop(cx, t->q, &t->n[0])),
                             VOLT_ARM(&t->b, volt_queue_pop(cx, t->q, &t->n[1]))));
    VOLT_END(0);
}
static volt_poll closed_sub_run(volt_cx *cx, void *arg) {
    two_pop *t = (two_pop *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(volt_sub_recv(cx, &t->sub, &t->m, sizeof t->m));
    VOLT_END(0);
}
TEST_DIES(chan_send_of_another_size_is_misuse, "that of the channel's elements") {
    static wrong_size w;
    run_on(1, wrong_send_run, &w);
}
static void destroy_awaited(int kind) {
    static volt_chan c;
    static one o = { .c = &c };
    static result out;
    static int n;
    volt_handle h;
    volt_rt *rt = create_on(1);
    CHECK_EQ(volt_chan_create(rt, &c, sizeof(msg), 1), 0);
    if (kind == SEND) CHECK_EQ(try_send(&c, 0, 1), 0);
    o.kind = kind;
    o.out = &out;
    o.n_ended = &n;
    RT_SPAWN(rt, &h, one_run, o);
    static napper r;
    while (waiters_of(kind)(&c) == 0) {
        memset(&r, 0, sizeof r);
        r.d = VOLT_MS(1);
        CHECK_EQ(volt_block_on(rt, napper_run, &r), 0);
    }
    volt_chan_destroy(&c);
}
#define IS_AWAITED "volt_chan_destroy: the channel has waiters"
TEST_DIES(chan_destroy_with_waiting_sender_is_misuse, IS_AWAITED) { destroy_awaited(SEND); }
TEST_DIES(chan_destroy_with_waiting_receiver_is_misuse, IS_AWAITED) { destroy_awaited(RECV); }
TEST_DIES(chan_destroy_with_waiting_watcher_is_misuse, IS_AWAITED) { destroy_awaited(CLOSED); }
TEST_DIES(chan_release_without_sender_is_misuse, "volt_chan_release: no sender is retained") {
    msg buf[1];
    volt_chan c = VOLT_CHAN_INIT(buf);
    volt_chan_retain(&c, VOLT_CHAN_RECEIVER);
    volt_chan_release(&c, VOLT_CHAN_SENDER);
}
TEST_DIES(chan_release_without_receiver_is_misuse, "volt_chan_release: no receiver is retained") {
    msg buf[1];
    volt_chan c = VOLT_CHAN_INIT(buf);
    volt_chan_retain(&c, VOLT_CHAN_RECEIVER);
    volt_chan_release(&c, VOLT_CHAN_RECEIVER);
    volt_chan_release(&c, VOLT_CHAN_RECEIVER);
}
TEST_DIES(queue_pop_by_second_receiver_is_misuse, "volt_queue_pop: another caller waits already") {
    static volt_queue q;
    static two_pop t;
    t.q = &q;
    run_on(1, two_pop_run, &t);
}
TEST(oneshot_send_refuses_minus_4096) {
    volt_oneshot o = VOLT_ONESHOT_INIT;
    int64_t value = 0;
    CHECK_EQ(volt_oneshot_send(&o, -4096), -EINVAL);
    CHECK_EQ(volt_oneshot_send(&o, -4095), 0); // nothing was sent before
    CHECK_EQ(volt_oneshot_try_recv(&o, &value), 0);
    CHECK_EQ(value, -4095);
}
TEST_DIES(bcast_send_of_another_size_is_misuse, "`size` is not that of the broadcast's elements") {
    msg buf[1] = { MSG(0, 0) };
    volt_bcast b = VOLT_BCAST_INIT(buf);
    (void)volt_bcast_send(&b, buf, sizeof buf[0] + 1);
}
TEST(bcast_send_refuses_zeroed_memory) {
    volt_bcast b;
    memset(&b, 0, sizeof b);
    CHECK_EQ(volt_bcast_send(&b, NULL, 0), -EINVAL);
}
TEST_DIES(watch_set_of_another_size_is_misuse, "`size` is not that of the watch's value") {
    msg value = MSG(0, 0);
    volt_watch w = VOLT_WATCH_INIT(value);
    (void)volt_watch_set(&w, &value, 1);
}
TEST_DIES(sub_try_recv_before_open_is_misuse, "volt_sub_try_recv: the subscription is not open") {
    volt_sub sub = { NULL, 0, 0 };
    msg m;
    CHECK_EQ(volt_sub_try_recv(&sub, &m, sizeof m), 1);
}
TEST_DIES(sub_recv_before_open_is_misuse, "volt_sub_recv: the subscription is not open") {
    static two_pop t;
    run_on(1, closed_sub_run, &t);
}

static volt_poll closed_watcher_run(volt_cx *cx, void *arg) {
    two_pop *t = (two_pop *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(volt_watcher_next(cx, &t->watcher, &t->m, sizeof t->m));
    VOLT_END(0);
}
TEST_DIES(watcher_next_before_open_is_misuse, "the watcher is not open") {
    static two_pop t;
    run_on(1, closed_watcher_run, &t);
}
TEST_DIES(watcher_try_next_before_open_is_misuse, "volt_watcher_try_next: the watcher") {
    volt_watcher w = { NULL, 0 };
    msg m;
    CHECK_EQ(volt_watcher_try_next(&w, &m, sizeof m), 1);
}

// ---- elements of each size, and not a byte more

enum { MOST_BYTES = 24, BYTES_CAP = 3, UNTOUCHED = 0x77 };
static void fill_bytes(char *v, size_t len, size_t first) {
    for (size_t i = 0; i < len; i++) v[i] = (char)(first + i);
}
static void check_bytes(const char *v, size_t len, size_t first) {
    for (size_t i = 0; i < len; i++) CHECK_EQ(v[i], (char)(first + i));
    CHECK_EQ(v[len], UNTOUCHED);
}
// A budget is spent also by messages that need not wait, sent and received.
enum { PAID = 3 * VOLT_BUDGET };
typedef struct {
    volt_frame frame;
    volt_chan c;
    msg buf[PAID], m;
    int i, rc, n_polls;
} payer;
static volt_poll payer_run(volt_cx *cx, void *arg) {
    payer *p = (payer *)arg;
    p->n_polls++;
    VOLT_BEGIN(cx, p);
    volt_chan_init(&p->c, p->buf, sizeof p->m, PAID);
    for (p->i = 0; p->i < PAID; p->i++) {
        p->m.seq = p->i;
        VOLT_AWAIT(p->rc, volt_chan_send(cx, &p->c, &p->m, sizeof p->m));
        CHECK_EQ(p->rc, 0);
    }
    CHECK(p->n_polls >= PAID / VOLT_BUDGET);
    for (p->i = 0; p->i < PAID; p->i++) {
        VOLT_AWAIT(p->rc, volt_chan_recv(cx, &p->c, &p->m, sizeof p->m));
        CHECK(p->rc == 1 && p->m.seq == p->i);
    }
    CHECK(p->n_polls >= 2 * PAID / VOLT_BUDGET);
    VOLT_END(0);
}
TEST(chan_ready_send_and_recv_spend_budget) {
    static payer p;
    CHECK_EQ(run_on(1, payer_run, &p), 0);
}

TEST(chan_copies_exactly_the_bytes_of_an_element) {
    for (size_t len = 1; len <= MOST_BYTES; len++) {
        char buf[BYTES_CAP * MOST_BYTES + 1], in[MOST_BYTES], out[MOST_BYTES + 1];
        volt_chan c;
        memset(buf, UNTOUCHED, sizeof buf);
        memset(out, UNTOUCHED, sizeof out);
        volt_chan_init(&c, buf, len, BYTES_CAP);
        for (size_t round = 1; round <= 2 * BYTES_CAP; round++) { // at each place, all of them
            for (size_t k = 0; k < BYTES_CAP; k++) {
                fill_bytes(in, len, 7 * round + k);
                CHECK_EQ(volt_chan_try_send(&c, in, len), 0);
            }
            for (size_t k = 0; k < BYTES_CAP; k++) {
                CHECK_EQ(volt_chan_try_recv(&c, out, len), 1);
                check_bytes(out, len, 7 * round + k);
            }
            CHECK_EQ(volt_chan_try_send(&c, in, len), 0);
            CHECK_EQ(volt_chan_try_recv(&c, out, len), 1);
        }
        CHECK_EQ(buf[BYTES_CAP * len], UNTOUCHED);
    }
}
TEST(bcast_and_watch_copy_exactly_their_element) {
    for (size_t len = 1; len <= MOST_BYTES; len++) {
        char ring[2 * MOST_BYTES + 1], value[MOST_BYTES + 1], in[MOST_BYTES], out[MOST_BYTES + 1];
        volt_bcast b = VOLT_BCAST_INIT(ring);
        volt_watch w = VOLT_WATCH_INIT(value);
        volt_sub sub;
        memset(ring, UNTOUCHED, sizeof ring);
        memset(value, UNTOUCHED, sizeof value);
        memset(out, UNTOUCHED, sizeof out);
        b.elem_ = w.elem_ = (uint32_t)len;
        b.cap_ = 2;
        volt_sub_open(&sub, &b);
        fill_bytes(in, len, len);
        for (int i = 0; i < 2; i++) CHECK_EQ(volt_bcast_send(&b, in, len), 1);
        CHECK_EQ(volt_sub_try_recv(&sub, out, len), 1);
        check_bytes(out, len, len);
        CHECK_EQ(ring[2 * len], UNTOUCHED);
        memset(out, UNTOUCHED, sizeof out);
        CHECK_EQ(volt_watch_set(&w, in, len), 0);
        CHECK_EQ(volt_watch_get(&w, out, len, NULL), 0);
        check_bytes(value, len, len);
        check_bytes(out, len, len);
    }
}

// ---- what is sent is a copy, of the moment at which it is sent

ROOT_TEST(chan_messages_are_copies, {
    volt_chan c;
    volt_bcast b;
    volt_sub sub;
    volt_watch w;
    msg buf[2], in_b[2], in_w, m;
    awaiter a;
    result out;
    int n;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    s->b = (volt_bcast)VOLT_BCAST_INIT(s->in_b);
    s->w = (volt_watch)VOLT_WATCH_INIT(s->in_w);
    volt_sub_open(&s->sub, &s->b);
    for (s->m = MSG(0, 1); s->m.seq <= 2; s->m.seq++)
        CHECK_EQ(volt_chan_try_send(&s->c, &s->m, sizeof s->m), 0);
    CHECK_EQ(volt_bcast_send(&s->b, &s->m, sizeof s->m), 1);
    CHECK_EQ(volt_watch_set(&s->w, &s->m, sizeof s->m), 0);
    s->out.m = MSG(0, 100);
    START(NULL, SEND, &s->out, 1);
    s->out.m.seq = 3; // read when there is room
    s->m.seq = 100;
    CHECK_EQ(try_recv(&s->c), 1);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    s->out.m.seq = 100;
    CHECK_EQ(try_recv(&s->c), 2);
    CHECK_EQ(try_recv(&s->c), 3);
    CHECK_EQ(volt_sub_try_recv(&s->sub, &s->m, sizeof s->m), 1);
    CHECK_EQ(s->m.seq, 3);
    s->m.seq = 100;
    CHECK_EQ(volt_watch_get(&s->w, &s->m, sizeof s->m, NULL), 0);
    CHECK_EQ(s->m.seq, 3);
    VOLT_END(0);
}

// ---- traffic: several senders, several receivers

enum { SENDERS = 5, RECEIVERS = 3, EACH = TEST__IS_SANITIZED ? 100 : 400 };
typedef struct {
    volt_chan c;
    msg buf[64];
    int got[SENDERS][EACH];
    int n_senders;
} road;
typedef struct {
    volt_frame frame;
    road *r;
    int id;
    msg m;
    int rc;
} road_task;
static volt_poll sender_run(volt_cx *cx, void *arg) {
    road_task *t = (road_task *)arg;
    VOLT_BEGIN(cx, t);
    for (t->m = MSG(t->id, 0); t->m.seq < EACH; t->m.seq++) {
        VOLT_AWAIT(t->rc, volt_chan_send(cx, &t->r->c, &t->m, sizeof t->m));
        CHECK_EQ(t->rc, 0);
    }
    if (__atomic_sub_fetch(&t->r->n_senders, 1, __ATOMIC_ACQ_REL) == 0) volt_chan_close(&t->r->c);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    road *r;
    msg m;
    int last[SENDERS], rc, n;
} receiver;
static void note_arrival(road *r, int *last, const msg *m) {
    CHECK(m->from >= 0 && m->from < SENDERS && m->seq >= 0 && m->seq < EACH);
    CHECK(m->seq >= last[m->from]); // one receiver gets the messages of one sender in order
    last[m->from] = m->seq + 1;
    CHECK_EQ(__atomic_fetch_add(&r->got[m->from][m->seq], 1, __ATOMIC_RELAXED), 0);
}
static volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *t = (receiver *)arg;
    VOLT_BEGIN(cx, t);
    for (;;) {
        VOLT_AWAIT(t->rc, volt_chan_recv(cx, &t->r->c, &t->m, sizeof t->m));
        if (t->rc != 1) break;
        note_arrival(t->r, t->last, &t->m);
        t->n++;
    }
    CHECK_EQ(t->rc, 0);
    VOLT_END(t->n);
}
ROOT_TEST(chan_delivers_each_message_once_in_order, {
    volt_group g;
    road r;
    uint64_t id;
    int rc, n, cap;
}) {
    VOLT_BEGIN(cx, s);
    for (s->cap = 0; s->cap <= 64; s->cap = s->cap * 4 + 1) { // 0, 1, 5, 21
        memset(s->r.got, 0, sizeof s->r.got);
        volt_chan_init(&s->r.c, s->r.buf, sizeof s->r.buf[0], (size_t)s->cap);
        s->r.n_senders = SENDERS;
        volt_group_collect(&s->g);
        for (int i = 0; i < RECEIVERS; i++)
            GROUP_SPAWN(&s->g, receiver_run, (receiver){ .r = &s->r });
        for (int i = 0; i < SENDERS; i++)
            GROUP_SPAWN(&s->g, sender_run, (road_task){ .r = &s->r, .id = i });
        for (s->n = 0;; s->n += s->rc) {
            VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
            if (s->rc < 0) break;
        }
        CHECK_EQ(s->rc, -ENOENT);
        CHECK_EQ(s->n, SENDERS * EACH);
        CHECK_EQ(volt_chan_len(&s->r.c), 0);
    }
    VOLT_END(0);
}

// ---- waiters are served in order of arrival

ROOT_TEST_1(chan_waiting_receivers_are_served_in_order, {
    volt_chan c;
    msg buf[2];
    awaiter a;
    result out[5];
    int n, i;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    for (s->i = 0; s->i < 5; s->i++) START(NULL, RECV, &s->out[s->i], s->i + 1);
    for (s->i = 0; s->i < 3; s->i++) {
        CHECK_EQ(try_send(&s->c, 0, s->i + 1), 0);
        CHECK_EQ(try_recv(&s->c), -EAGAIN); // it is in there, and for another
        CHECK_EQ(volt_chan_len(&s->c), 1);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, s->i + 1));
        CHECK_EQ(s->out[s->i].rc, 1);
        CHECK_EQ(s->out[s->i].m.seq, s->i + 1);
    }
    // Two at once are for the two, whichever of them comes first.
    for (int i = 4; i <= 5; i++) CHECK_EQ(try_send(&s->c, 0, i), 0);
    CHECK_EQ(try_send(&s->c, 0, 6), -EAGAIN);
    CHECK_EQ(n_receivers(&s->c), 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 5));
    CHECK_EQ(s->out[3].m.seq + s->out[4].m.seq, 9);
    VOLT_END(0);
}

ROOT_TEST_1(chan_waiting_senders_are_served_in_order, {
    volt_chan c;
    msg buf[2];
    awaiter a;
    result out[5];
    int n, i;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(try_send(&s->c, 0, 1 + i), 0);
    for (s->i = 0; s->i < 5; s->i++) {
        s->out[s->i].m = MSG(1, 3 + s->i);
        START(NULL, SEND, &s->out[s->i], s->i + 1);
    }
    for (s->i = 1; s->i <= 7; s->i++) {
        CHECK_EQ(try_recv(&s->c), s->i);
        if (s->i > 5) continue;
        CHECK_EQ(try_send(&s->c, 0, 100), -EAGAIN); // the room is for the waiters
        CHECK_EQ(volt_chan_try_reserve(&s->c), -EAGAIN);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, s->i));
        CHECK_EQ(s->out[s->i - 1].rc, 0);
    }
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    VOLT_END(0);
}

// ---- cancelled before the grant, and after it

ROOT_TEST_1(chan_cancelled_receiver_takes_nothing, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[3];
    volt_handle h[3];
    int i, n, rc, is_granted;
}) {
    VOLT_BEGIN(cx, s);
    for (s->is_granted = 0; s->is_granted < 2; s->is_granted++) {
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
        s->n = 0;
        for (s->i = 0; s->i < 3; s->i++) START(&s->h[s->i], RECV, &s->out[s->i], s->i + 1);
        if (s->is_granted) CHECK_EQ(try_send(&s->c, 0, 7), 0);
        CHECK_EQ(n_receivers(&s->c), s->is_granted ? 2 : 3);
        volt_cancel(&s->h[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
        CHECK_EQ(s->rc, -ECANCELED);
        if (!s->is_granted) CHECK_EQ(try_send(&s->c, 0, 7), 0);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1])); // it went on to the next
        CHECK_EQ(s->rc, 1);
        CHECK_EQ(s->out[1].m.seq, 7);
        CHECK_EQ(n_receivers(&s->c), 1);
        volt_cancel(&s->h[2]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[2]));
        CHECK_EQ(s->rc, -ECANCELED);
        CHECK_EQ(try_send(&s->c, 0, 8), 0); // no receiver is counted any more
        CHECK_EQ(try_recv(&s->c), 8);
    }
    VOLT_END(0);
}

ROOT_TEST_1(chan_cancelled_sender_sends_nothing, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[3];
    volt_handle h[3];
    int i, n, rc, is_granted;
}) {
    VOLT_BEGIN(cx, s);
    for (s->is_granted = 0; s->is_granted < 2; s->is_granted++) {
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
        s->n = 0;
        CHECK_EQ(try_send(&s->c, 0, 1), 0);
        for (s->i = 0; s->i < 3; s->i++) {
            s->out[s->i].m = MSG(1, s->i + 2);
            START(&s->h[s->i], s->i == 1 ? RESERVE : SEND, &s->out[s->i], s->i + 1);
        }
        if (s->is_granted) CHECK_EQ(try_recv(&s->c), 1);
        CHECK_EQ(n_senders(&s->c), s->is_granted ? 2 : 3);
        volt_cancel(&s->h[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
        CHECK_EQ(s->rc, -ECANCELED);
        if (s->is_granted) CHECK_EQ(n_senders(&s->c), 1); // the room has gone to the reserve
        else CHECK_EQ(try_recv(&s->c), 1);
        volt_cancel(&s->h[1]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
        CHECK_EQ(s->rc, -ECANCELED);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[2]));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(try_recv(&s->c), 4);
        CHECK_EQ(try_recv(&s->c), -EAGAIN);
        CHECK_EQ(try_send(&s->c, 0, 5), 0);
    }
    VOLT_END(0);
}

// In one poll of the root both arms become ready: the one in front wins. A receive that loses has
// received nothing, also where the message was there for it.
typedef struct {
    volt_frame frame;
    volt_arm in, quit;
    volt_chan *c;
    volt_token *stop;
    msg m;
    int is_stop_first, winner, n;
} chooser;
static volt_poll chooser_run(volt_cx *cx, void *arg) {
    chooser *k = (chooser *)arg;
    VOLT_BEGIN(cx, k);
    if (k->is_stop_first)
        VOLT_AWAIT(k->winner, VOLT_SELECT_BIASED(
            VOLT_ARM(&k->quit, volt_token_wait(cx, k->stop)),
            VOLT_ARM(&k->in, k->n, volt_chan_recv(cx, k->c, &k->m, sizeof k->m))));
    else
        VOLT_AWAIT(k->winner, VOLT_SELECT_BIASED(
            VOLT_ARM(&k->in, k->n, volt_chan_recv(cx, k->c, &k->m, sizeof k->m)),
            VOLT_ARM(&k->quit, volt_token_wait(cx, k->stop))));
    if (k->in.fired) CHECK_EQ(k->n, 1);
    else CHECK_EQ(k->in.value, -ECANCELED);
    CHECK_EQ(k->m.seq, k->in.fired ? 7 : 0);
    VOLT_END(k->in.fired);
}
ROOT_TEST_1(chan_recv_that_loses_a_select_takes_nothing, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    volt_token stop[2];
    volt_handle h;
    int i, rc, n;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
        SPAWN(&s->h, chooser_run,
              (chooser){ .c = &s->c, .stop = &s->stop[s->i], .is_stop_first = s->i });
        VOLT_AWAIT(until_waiting(cx, &s->a, &s->c, n_receivers, 1));
        CHECK_EQ(try_send(&s->c, 0, 7), 0);
        volt_token_cancel(&s->stop[s->i]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, !s->i);
        CHECK_EQ(try_recv(&s->c), s->i ? 7 : -EAGAIN);
    }
    VOLT_END(0);
}

// ---- time limits, tokens, joins

ROOT_TEST(chan_waits_end_at_their_time_limit,
          { volt_chan c; msg buf[1], m; volt_timer t; volt_time start; int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
    s->start = volt_now();
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3),
                                  volt_chan_recv(cx, &s->c, &s->m, sizeof s->m)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_now() - s->start >= VOLT_MS(3));
    s->m = MSG(1, 1);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3),
                                  volt_chan_send(cx, &s->c, &s->m, sizeof s->m)));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3),
                                  volt_chan_send(cx, &s->c, &s->m, sizeof s->m)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3), volt_chan_reserve(cx, &s->c)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(3), volt_chan_wait_closed(cx, &s->c)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(volt_chan_len(&s->c), 1);
    CHECK(!s->c.senders_ && !s->c.receivers_ && !s->c.watchers_);
    VOLT_END(0);
}

ROOT_TEST(chan_wait_with_cancelled_token_is_cancelled,
          { volt_chan c; msg buf[1], m; volt_token_link l; volt_token t; int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    SPAWN(NULL, napper_run, (napper){ .d = VOLT_MS(2) });
    volt_token_cancel(&s->t);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t,
                                      volt_chan_recv(cx, &s->c, &s->m, sizeof s->m)));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t,
                                      volt_chan_send(cx, &s->c, &s->m, sizeof s->m)));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK(!s->c.senders_ && !s->c.receivers_);
    VOLT_END(0);
}

// A task may be on both ends at once.
ROOT_TEST(chan_arms_of_one_join_meet_each_other, {
    volt_chan c[2];
    msg buf[2][1], out[2], in[2];
    volt_arm arm[4];
    int i, rc, n[4];
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) volt_chan_init(&s->c[i], s->buf[i], sizeof s->buf[i][0], 0);
    for (s->i = 0; s->i < 100; s->i++) {
        for (int k = 0; k < 2; k++) s->out[k] = MSG(k, s->i);
        VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(
            VOLT_ARM(&s->arm[0], s->n[0], volt_chan_send(cx, &s->c[0], &s->out[0], sizeof(msg))),
            VOLT_ARM(&s->arm[1], s->n[1], volt_chan_recv(cx, &s->c[1], &s->in[1], sizeof(msg))),
            VOLT_ARM(&s->arm[2], s->n[2], volt_chan_recv(cx, &s->c[0], &s->in[0], sizeof(msg))),
            VOLT_ARM(&s->arm[3], s->n[3], volt_chan_send(cx, &s->c[1], &s->out[1], sizeof(msg)))));
        CHECK_EQ(s->rc, 0);
        for (int k = 0; k < 4; k++) CHECK_EQ(s->n[k], k == 1 || k == 2);
        for (int k = 0; k < 2; k++) CHECK(s->in[k].from == k && s->in[k].seq == s->i);
    }
    VOLT_END(0);
}

// ---- close, from either side

ROOT_TEST_1(chan_close_ends_every_wait, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[6];
    int n, i, cap;
}) {
    VOLT_BEGIN(cx, s);
    for (s->cap = 0; s->cap < 2; s->cap++) {
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], (size_t)s->cap);
        s->n = 0;
        for (s->i = 0; s->i < 2; s->i++) START(NULL, CLOSED, &s->out[s->i], s->i + 1);
        for (s->i = 0; s->i < 2; s->i++) START(NULL, RECV, &s->out[2 + s->i], s->i + 1);
        volt_chan_close(&s->c);
        volt_chan_close(&s->c); // again: nothing
        CHECK_EQ(volt_chan_is_closed(&s->c), 1);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 4));
        for (int i = 0; i < 4; i++) CHECK_EQ(s->out[i].rc, 0);
        CHECK_EQ(try_send(&s->c, 0, 1), -EPIPE);
        CHECK_EQ(volt_chan_try_reserve(&s->c), -EPIPE);
        CHECK_EQ(try_recv(&s->c), 0);
        // A task that comes too late does not wait.
        for (s->i = SEND; s->i <= CLOSED; s->i++) START(NULL, s->i, &s->out[s->i], 0);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 8));
        CHECK_EQ(s->out[SEND].rc, -EPIPE);
        CHECK_EQ(s->out[RECV].rc, 0);
        CHECK_EQ(s->out[RESERVE].rc, -EPIPE);
        CHECK_EQ(s->out[CLOSED].rc, 0);
    }
    VOLT_END(0);
}

ROOT_TEST_1(chan_close_keeps_buffered_messages, {
    volt_chan c;
    msg buf[2];
    awaiter a;
    result out[4];
    int n, i;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    for (int i = 1; i <= 2; i++) CHECK_EQ(try_send(&s->c, 0, i), 0);
    START(NULL, SEND, &s->out[0], 1);
    START(NULL, RESERVE, &s->out[1], 2);
    START(NULL, SEND, &s->out[2], 3);
    CHECK_EQ(try_recv(&s->c), 1); // and the first of them is granted a place
    volt_chan_close(&s->c);
    CHECK_EQ(try_recv(&s->c), 2);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 3));
    for (int i = 0; i < 3; i++) CHECK_EQ(s->out[i].rc, -EPIPE); // also the granted one
    CHECK_EQ(try_recv(&s->c), 0);
    VOLT_END(0);
}

// A message that was granted to a receiver, which is then cancelled, is received after the close.
ROOT_TEST_1(chan_close_keeps_granted_message, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[2];
    volt_handle h;
    int n, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
    START(&s->h, RECV, &s->out[0], 1);
    CHECK_EQ(try_send(&s->c, 0, 7), 0);
    volt_chan_close(&s->c);
    CHECK_EQ(try_recv(&s->c), -EAGAIN); // not drained yet
    volt_cancel(&s->h);
    s->out[1].rc = NOT_YET;
    SPAWN(NULL, one_run, (one){ .c = &s->c, .kind = RECV, .out = &s->out[1], .n_ended = &s->n });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
    CHECK_EQ(s->out[1].rc, 1);
    CHECK_EQ(s->out[1].m.seq, 7);
    CHECK_EQ(try_recv(&s->c), 0);
    VOLT_END(0);
}

ROOT_TEST(chan_closes_when_last_of_side_is_released, { volt_chan c; msg buf[2]; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 1; s->i < 4; s->i++) {
        int one_side = s->i == 3 ? VOLT_CHAN_SENDER | VOLT_CHAN_RECEIVER : s->i;
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
        volt_chan_retain(&s->c, VOLT_CHAN_SENDER);
        volt_chan_retain(&s->c, VOLT_CHAN_RECEIVER);
        for (int k = 0; k < 3; k++) volt_chan_retain(&s->c, one_side);
        CHECK_EQ(try_send(&s->c, 0, 1), 0);
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(volt_chan_is_closed(&s->c), 0);
            volt_chan_release(&s->c, one_side);
        }
        CHECK_EQ(volt_chan_is_closed(&s->c), 0);
        CHECK_EQ(try_send(&s->c, 0, 2), 0);
        volt_chan_release(&s->c, one_side);
        CHECK_EQ(volt_chan_is_closed(&s->c), 1);
        CHECK_EQ(try_send(&s->c, 0, 3), -EPIPE);
        for (int k = 1; k < 3; k++) CHECK_EQ(try_recv(&s->c), k); // is still received
        CHECK_EQ(try_recv(&s->c), 0);
    }
    VOLT_END(0);
}

// ---- places that are reserved

ROOT_TEST_1(chan_unreserved_slot_goes_to_next_sender, {
    volt_chan c;
    msg buf[2], m;
    awaiter a;
    result out[3];
    int n, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    VOLT_AWAIT(s->rc, volt_chan_reserve(cx, &s->c));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_chan_try_reserve(&s->c), 0);
    CHECK_EQ(volt_chan_len(&s->c), 0);
    CHECK_EQ(try_send(&s->c, 0, 1), -EAGAIN); // it is full, of nothing
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    START(NULL, RESERVE, &s->out[0], 1);
    s->out[1].m = MSG(0, 2);
    START(NULL, SEND, &s->out[1], 2);
    volt_chan_unreserve(&s->c);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    CHECK_EQ(s->out[0].rc, 0);
    CHECK_EQ(n_senders(&s->c), 1);
    s->m = MSG(0, 1);
    CHECK_EQ(volt_chan_send_reserved(&s->c, &s->m, sizeof s->m), 0);
    CHECK_EQ(n_senders(&s->c), 1);
    volt_chan_unreserve(&s->c);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
    CHECK_EQ(s->out[1].rc, 0);
    for (int i = 1; i < 3; i++) CHECK_EQ(try_recv(&s->c), i);
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    VOLT_END(0);
}

// A slot that is granted to a waiting sender is not reserved for a caller that has reserved none.
ROOT_TEST_1(chan_send_without_reservation_takes_no_grant, {
    volt_chan c;
    msg buf[1], m;
    awaiter a;
    result out[1];
    int n;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
    CHECK_EQ(try_send(&s->c, 0, 1), 0);
    s->out[0].m = MSG(0, 2);
    START(NULL, SEND, &s->out[0], 1);
    CHECK_EQ(try_recv(&s->c), 1); // grants the slot, which the sender has not used yet
    s->m = MSG(0, 3);
    CHECK_EQ(volt_chan_send_reserved(&s->c, &s->m, sizeof s->m), -EINVAL);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    CHECK_EQ(s->out[0].rc, 0);
    CHECK_EQ(try_recv(&s->c), 2);
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    CHECK_EQ(try_send(&s->c, 0, 4), 0); // no slot is lost
    VOLT_END(0);
}
// It is not drained before what was reserved has been sent or given up.
ROOT_TEST_1(chan_reservation_outlasts_close, {
    volt_chan c;
    msg buf[2], m;
    awaiter a;
    result out[2];
    int n, i, cap;
}) {
    VOLT_BEGIN(cx, s);
    for (s->cap = 0; s->cap <= 2; s->cap += 2) {
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], (size_t)s->cap);
        s->n = 0;
        for (s->i = 0; s->i < 2; s->i++) START(NULL, RECV, &s->out[s->i], s->i + 1);
        CHECK_EQ(volt_chan_try_reserve(&s->c), 0);
        CHECK_EQ(volt_chan_try_reserve(&s->c), s->cap ? 0 : -EAGAIN);
        volt_chan_close(&s->c);
        CHECK_EQ(n_receivers(&s->c), 2);
        CHECK_EQ(try_recv(&s->c), -EAGAIN);
        s->m = MSG(0, 9);
        CHECK_EQ(volt_chan_send_reserved(&s->c, &s->m, sizeof s->m), 0);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
        CHECK_EQ(s->out[0].rc, 1);
        CHECK_EQ(s->out[0].m.seq, 9);
        if (s->cap) CHECK_EQ(n_receivers(&s->c), 1);
        if (s->cap) volt_chan_unreserve(&s->c);
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
        CHECK_EQ(s->out[1].rc, 0);
        CHECK_EQ(try_recv(&s->c), 0);
    }
    VOLT_END(0);
}

// A task with a granted place finds the channel closed and has none. Until then it is not drained.
ROOT_TEST_1(chan_close_revokes_granted_slot, {
    volt_chan c;
    msg buf[1], m;
    awaiter a;
    result out;
    int n, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
    CHECK_EQ(try_send(&s->c, 0, 1), 0);
    START(NULL, RESERVE, &s->out, 1);
    CHECK_EQ(try_recv(&s->c), 1);
    CHECK_EQ(n_senders(&s->c), 0); // it has it, but has not run
    volt_chan_close(&s->c);
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    VOLT_AWAIT(s->rc, volt_chan_recv(cx, &s->c, &s->m, sizeof s->m));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->out.rc, -EPIPE);
    CHECK_EQ(try_recv(&s->c), 0);
    VOLT_END(0);
}

// ---- several at once

ROOT_TEST_1(chan_send_n_and_recv_n_move_what_fits, {
    volt_chan c;
    msg buf[4], out[6], in[6];
    awaiter a;
    result one;
    volt_handle h;
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 4);
    for (int i = 0; i < 6; i++) s->out[i] = MSG(0, i + 1);
    VOLT_AWAIT(s->rc, volt_chan_send_n(cx, &s->c, s->out, sizeof(msg), 6));
    CHECK_EQ(s->rc, 4);
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, s->in, sizeof(msg), 3));
    CHECK_EQ(s->rc, 3);
    for (int i = 0; i < 3; i++) CHECK_EQ(s->in[i].seq, i + 1);
    VOLT_AWAIT(s->rc, volt_chan_send_n(cx, &s->c, s->out + 4, sizeof(msg), 2));
    CHECK_EQ(s->rc, 2); // around the end of the buffer
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, s->in, sizeof(msg), 6));
    CHECK_EQ(s->rc, 3);
    for (int i = 0; i < 3; i++) CHECK_EQ(s->in[i].seq, i + 4);
    // Of what is there one is for another.
    START(&s->h, RECV, &s->one, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(try_send(&s->c, 0, i + 1), 0);
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, s->in, sizeof(msg), 6));
    CHECK_EQ(s->rc, 2);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->one.m.seq + s->in[0].seq + s->in[1].seq, 6);
    volt_chan_close(&s->c);
    VOLT_AWAIT(s->rc, volt_chan_send_n(cx, &s->c, s->out, sizeof(msg), 6));
    CHECK_EQ(s->rc, -EPIPE);
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, s->in, sizeof(msg), 6));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, s->in, sizeof(msg), 0));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_chan_send_n(cx, &s->c, s->in, sizeof(msg), 0));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_END(0);
}

// ---- rendezvous

ROOT_TEST_1(chan_rendezvous_send_ends_when_received, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[4];
    volt_handle h[4];
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    CHECK_EQ(try_send(&s->c, 0, 1), -EAGAIN); // there is no receiver
    CHECK_EQ(volt_chan_try_reserve(&s->c), -EAGAIN);
    for (s->i = 0; s->i < 2; s->i++) {
        s->out[s->i].m = MSG(0, 1 + s->i);
        START(&s->h[s->i], SEND, &s->out[s->i], s->i + 1);
    }
    for (s->i = 0; s->i < 50; s->i++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(s->n, 0); // they wait until there is a receiver
    CHECK_EQ(n_senders(&s->c), 2);
    CHECK_EQ(try_recv(&s->c), 1);
    CHECK_EQ(n_senders(&s->c), 1);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    CHECK_EQ(s->out[0].rc, 0);
    CHECK_EQ(s->out[1].rc, NOT_YET); // one each
    START(NULL, RECV, &s->out[2], 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 3));
    CHECK_EQ(s->out[2].rc, 1);
    CHECK_EQ(s->out[2].m.seq, 2);
    CHECK_EQ(s->out[1].rc, 0);
    for (int i = 0; i < 2; i++) volt_detach(&s->h[i]);
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    START(NULL, RECV, &s->out[0], 1);
    CHECK_EQ(try_send(&s->c, 0, 5), 0);
    CHECK_EQ(try_send(&s->c, 0, 6), -EAGAIN);
    CHECK_EQ(volt_chan_len(&s->c), 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 4));
    CHECK_EQ(s->out[0].m.seq, 5);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_event *now;
} meeter;
static volt_poll meeter_run(volt_cx *cx, void *arg) {
    meeter *k = (meeter *)arg;
    VOLT_BEGIN(cx, k);
    while (n_receivers(k->c) == 0) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(try_send(k->c, 0, 7), 0);
    volt_event_set(k->now); // too late
    VOLT_END(0);
}

// The message is in the receiver's memory when the send gives 0: it cannot be cancelled away.
ROOT_TEST_1(chan_rendezvous_that_has_met_outlasts_a_cancel, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[2];
    volt_handle r, t;
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    START(&s->r, RECV, &s->out[0], 1);
    CHECK_EQ(try_send(&s->c, 0, 1), 0);
    volt_cancel(&s->r);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->r));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->out[0].m.seq, 1);
    s->out[1].m = MSG(0, 2);
    START(&s->t, SEND, &s->out[1], 1);
    CHECK_EQ(try_recv(&s->c), 2);
    volt_cancel(&s->t);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->t));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_chan_len(&s->c), 0);
    VOLT_END(0);
}

// A receiver that was reserved for and is cancelled leaves the message to the next one; the sender
// that waits behind goes on waiting until its own is received.
ROOT_TEST_1(chan_rendezvous_keeps_reservation_for_cancelled_receiver, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[4];
    volt_handle r;
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    START(&s->r, RECV, &s->out[0], 1);
    CHECK_EQ(volt_chan_try_reserve(&s->c), 0);
    CHECK_EQ(volt_chan_try_reserve(&s->c), -EAGAIN);
    volt_cancel(&s->r);
    s->out[1].m = MSG(0, 2);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->r));
    CHECK_EQ(s->rc, -ECANCELED);
    START(NULL, SEND, &s->out[1], 1);
    s->out[2].m = MSG(0, 1);
    CHECK_EQ(volt_chan_send_reserved(&s->c, &s->out[2].m, sizeof(msg)), 0);
    for (s->i = 0; s->i < 50; s->i++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(s->out[1].rc, NOT_YET);
    CHECK_EQ(volt_chan_len(&s->c), 1);
    START(NULL, RECV, &s->out[3], 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
    CHECK_EQ(s->out[3].m.seq, 1); // the older one
    CHECK_EQ(volt_chan_len(&s->c), 0);
    CHECK_EQ(try_recv(&s->c), 2);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 3));
    CHECK_EQ(s->out[1].rc, 0);
    VOLT_END(0);
}

// Both sides wait while a message that was reserved for is in the buffer: they meet behind it.
ROOT_TEST_1(chan_rendezvous_meets_behind_reserved_message, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[4];
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    START(NULL, RECV, &s->out[0], 1);
    CHECK_EQ(volt_chan_try_reserve(&s->c), 0);
    s->out[3].m = MSG(0, 1);
    CHECK_EQ(volt_chan_send_reserved(&s->c, &s->out[3].m, sizeof(msg)), 0); // not taken yet
    s->out[1].m = MSG(0, 2);
    SPAWN(NULL, one_run, (one){ .c = &s->c, .kind = RECV, .out = &s->out[2], .n_ended = &s->n });
    SPAWN(NULL, one_run, (one){ .c = &s->c, .kind = SEND, .out = &s->out[1], .n_ended = &s->n });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 3));
    CHECK_EQ(s->out[0].m.seq + s->out[2].m.seq, 3);
    VOLT_END(0);
}

// A sender waits behind another's reservation, and a receiver for both. They meet when the
// reservation is given up.
ROOT_TEST_1(chan_rendezvous_meets_when_a_reservation_is_given_up, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[3];
    int n, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    START(NULL, RECV, &s->out[0], 1);
    CHECK_EQ(volt_chan_try_reserve(&s->c), 0);
    START(NULL, RESERVE, &s->out[1], 1);
    s->out[2].m = MSG(0, 7);
    START(NULL, SEND, &s->out[2], 2);
    volt_chan_unreserve(&s->c); // the next reservation is granted
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    CHECK_EQ(s->out[1].rc, 0);
    CHECK_EQ(n_receivers(&s->c) + n_senders(&s->c), 2);
    volt_chan_unreserve(&s->c);
    CHECK_EQ(n_receivers(&s->c) + n_senders(&s->c), 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 3));
    CHECK_EQ(s->out[0].m.seq, 7);
    CHECK_EQ(s->out[2].rc, 0);
    VOLT_END(0);
}

// A receiver that is polled first meets the sender that waits, and so wins its select.
ROOT_TEST_1(chan_rendezvous_in_a_select_wins_when_it_meets, {
    volt_chan c;
    msg buf[1], m;
    volt_event now;
    volt_arm in, out_of;
    awaiter a;
    result out[2];
    int n, i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    volt_event_set(&s->now);
    for (s->i = 0; s->i < 2; s->i++) {
        s->out[s->i].m = MSG(0, 1 + s->i);
        START(NULL, SEND, &s->out[s->i], s->i + 1);
    }
    VOLT_AWAIT(
        VOLT_SELECT_BIASED(VOLT_ARM(&s->in, volt_chan_recv(cx, &s->c, &s->m, sizeof s->m)),
                           VOLT_ARM(&s->out_of, volt_event_wait(cx, &s->now))));
    CHECK(s->in.fired && !s->out_of.fired);
    CHECK_EQ(s->in.value, 1);
    CHECK_EQ(s->m.seq, 1);
    CHECK_EQ(n_receivers(&s->c), 0);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
    CHECK_EQ(s->out[0].rc, 0);
    CHECK_EQ(s->out[1].rc, NOT_YET);
    CHECK_EQ(volt_chan_try_reserve(&s->c), -EAGAIN);
    CHECK_EQ(try_recv(&s->c), 2);
    CHECK_EQ(try_recv(&s->c), -EAGAIN);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
    VOLT_END(0);
}
// An arm that was met wins although another one, polled before it, is ready by then, too.
ROOT_TEST_1(chan_rendezvous_met_arm_wins_over_ready_arm, {
    volt_chan c;
    msg buf[1];
    volt_event now;
    volt_arm in, other;
    volt_handle h;
    msg m;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    SPAWN(&s->h, meeter_run, (meeter){ .c = &s->c, .now = &s->now });
    VOLT_AWAIT(VOLT_SELECT_BIASED(
        VOLT_ARM(&s->other, volt_event_wait(cx, &s->now)),
        VOLT_ARM(&s->in, volt_chan_recv(cx, &s->c, &s->m, sizeof s->m))));
    CHECK(s->in.fired && !s->other.fired);
    CHECK_EQ(s->m.seq, 7);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// An arm that was met keeps its select, also when its task is cancelled in that moment and has used
// up its budget before that arm's turn.
typedef struct {
    volt_frame frame;
    volt_shield shield;
    volt_event *go;
    int *is_over;
    int rc;
} spender;
static volt_poll spender_run(volt_cx *cx, void *arg) {
    spender *s = arg;
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    do VOLT_AWAIT(s->rc, volt_event_wait(cx, s->go));
    while (!*s->is_over);
    volt_shield_end(cx, &s->shield);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_arm arms[2];
    int got[2], rc;
} pair_chooser;
static volt_poll pair_chooser_run(volt_cx *cx, void *arg) {
    pair_chooser *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(
        s->rc,
        VOLT_SELECT_BIASED(
            VOLT_ARM(&s->arms[0], volt_chan_recv(cx, &s->c[0], &s->got[0], sizeof s->got[0])),
            VOLT_ARM(&s->arms[1], volt_chan_recv(cx, &s->c[1], &s->got[1], sizeof s->got[1]))));
    CHECK_EQ(s->rc, 0);
    CHECK(s->got[0] == 1 && s->got[1] == 0);
    CHECK_EQ(s->arms[1].value, -ECANCELED);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_arm arms[2];
    spender first;
    pair_chooser second;
} spender_and_chooser;
static volt_poll spender_and_chooser_run(volt_cx *cx, void *arg) {
    spender_and_chooser *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arms[0], spender_run(cx, &s->first)),
                             VOLT_ARM(&s->arms[1], pair_chooser_run(cx, &s->second))));
    VOLT_END(0);
}
ROOT_TEST_1(chan_rendezvous_met_arm_returns_without_budget, {
    volt_chan c[2];
    int buf[2], message, is_over, i, rc;
    volt_event go;
    volt_handle h;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_chan_init(&s->c[i], &s->buf[i], sizeof(int), 0), 0);
    SPAWN(&s->h, spender_and_chooser_run,
          ((spender_and_chooser){ .first = { .go = &s->go, .is_over = &s->is_over },
                                  .second = { .c = s->c } }));
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(volt_yield(cx));
    volt_event_set(&s->go);
    volt_cancel(&s->h);
    s->message = 1;
    CHECK_EQ(volt_chan_try_send(&s->c[0], &s->message, sizeof s->message), 0);
    for (s->i = 0; s->i < 5; s->i++) VOLT_AWAIT(volt_yield(cx));
    s->message = 2;
    CHECK_EQ(volt_chan_try_send(&s->c[1], &s->message, sizeof s->message), -EAGAIN);
    s->is_over = 1;
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// An arm that was met, and goes on to receive once more, ends like any other when its task is
// cancelled: no arm stays in a channel. (Such a function without VOLT_BEGIN is against the rules,
// and debug builds do not see it.)
static volt_poll recv_even(volt_cx *cx, volt_chan *c, int *got) {
    volt_poll p = volt_chan_recv(cx, c, got, sizeof *got);
    if (volt_is_pending(p) || volt_value(p) <= 0 || *got % 2 == 0) return p;
    return volt_chan_recv(cx, c, got, sizeof *got);
}
static volt_poll even_chooser_run(volt_cx *cx, void *arg) {
    pair_chooser *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(
        s->rc,
        VOLT_SELECT_BIASED(
            VOLT_ARM(&s->arms[0], recv_even(cx, &s->c[0], &s->got[0])),
            VOLT_ARM(&s->arms[1], volt_chan_recv(cx, &s->c[1], &s->got[1], sizeof s->got[1]))));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(s->arms[1].value, -ECANCELED);
    VOLT_END(0);
}
ROOT_TEST_1(chan_rendezvous_arm_that_receives_again_is_cancelled, {
    volt_chan c[2];
    int buf[2], message, i, rc;
    volt_handle h;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_chan_init(&s->c[i], &s->buf[i], sizeof(int), 0), 0);
    SPAWN(&s->h, even_chooser_run, ((pair_chooser){ .c = s->c }));
    while (n_receivers(&s->c[1]) == 0) VOLT_AWAIT(volt_yield(cx));
    s->message = 1;
    CHECK_EQ(volt_chan_try_send(&s->c[0], &s->message, sizeof s->message), 0);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(n_receivers(&s->c[i]), 0);
    VOLT_END(0);
}
// A sender in a select that could not be met, because its select was being polled just then, keeps
// its place before those that came after it.
typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_event *now;
    int64_t rc, got;
} taker;
static volt_poll taker_run(volt_cx *cx, void *arg) {
    taker *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_event_wait(cx, s->now));
    s->got = try_recv(s->c);
    VOLT_AWAIT(volt_sleep_forever(cx));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
    msg m;
    volt_arm out, in;
    taker take;
    int rc;
} busy_sender;
static volt_poll busy_sender_run(volt_cx *cx, void *arg) {
    busy_sender *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(
                          VOLT_ARM(&s->out, volt_chan_send(cx, s->c, &s->m, sizeof s->m)),
                          VOLT_ARM(&s->in, taker_run(cx, &s->take))));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->take.got, 2);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
    msg m;
    int rc;
} plain_sender;
static volt_poll plain_sender_run(volt_cx *cx, void *arg) {
    plain_sender *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_chan_send(cx, s->c, &s->m, sizeof s->m));
    VOLT_END(s->rc);
}
ROOT_TEST_1(chan_rendezvous_busy_arm_keeps_its_place, {
    volt_chan c;
    msg buf[1], m;
    volt_event now;
    volt_handle h[3];
    int i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    SPAWN(&s->h[0], busy_sender_run,
          ((busy_sender){ .c = &s->c, .m = MSG(1, 1), .take = { .c = &s->c, .now = &s->now } }));
    VOLT_AWAIT(volt_yield(cx));
    for (s->i = 1; s->i < 3; s->i++) {
        SPAWN(&s->h[s->i], plain_sender_run,
              ((plain_sender){ .c = &s->c, .m = MSG(s->i + 1, s->i + 1) }));
        while (n_senders(&s->c) < s->i + 1) VOLT_AWAIT(volt_yield(cx));
    }
    volt_event_set(&s->now);
    while (n_senders(&s->c) > 2) VOLT_AWAIT(volt_yield(cx));
    for (s->i = 0; s->i < 3; s->i++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_chan_try_recv(&s->c, &s->m, sizeof s->m), 1);
    CHECK_EQ(s->m.seq, 1);
    CHECK_EQ(volt_chan_try_recv(&s->c, &s->m, sizeof s->m), 1);
    CHECK_EQ(s->m.seq, 3);
    for (s->i = 0; s->i < 3; s->i++) VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
    VOLT_END(0);
}
// A sender unlinks the arm of a select that was met on another channel: no reservation is granted
// for that arm, ahead of the send.
typedef struct {
    volt_frame frame;
    volt_chan *c, *other;
    volt_arm in, from_other;
    msg m, got;
} either_receiver;
static volt_poll either_receiver_run(volt_cx *cx, void *arg) {
    either_receiver *e = (either_receiver *)arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(VOLT_SELECT(
        VOLT_ARM(&e->in, volt_chan_recv(cx, e->c, &e->m, sizeof e->m)),
        VOLT_ARM(&e->from_other, volt_chan_recv(cx, e->other, &e->got, sizeof e->got))));
    CHECK(!e->in.fired && e->from_other.fired);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
} late_receiver;
static volt_poll late_receiver_run(volt_cx *cx, late_receiver *r) {
    VOLT_BEGIN(cx, r);
    CHECK_EQ(n_senders(r->c), 1);
    CHECK_EQ(n_receivers(r->c), 0);
    CHECK_EQ(volt_chan_try_reserve(r->c), -EAGAIN);
    CHECK_EQ(try_recv(r->c), 1);
    VOLT_END(0);
}
ROOT_TEST_1(chan_rendezvous_reservation_overtakes_no_send, {
    volt_chan c, other;
    msg buf[2], m;
    volt_handle either;
    volt_arm out, in;
    late_receiver late;
    int i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
    volt_chan_init(&s->other, s->buf + 1, sizeof s->buf[0], 0);
    SPAWN(&s->either, either_receiver_run, ((either_receiver){ .c = &s->c, .other = &s->other }));
    while (n_receivers(&s->c) + n_receivers(&s->other) < 2) VOLT_AWAIT(volt_yield(cx));
    s->m = MSG(0, 1);
    s->late.c = &s->c;
    CHECK_EQ(try_send(&s->other, 0, 2), 0); // the select has a winner, and is not polled yet
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->out, volt_chan_send(cx, &s->c, &s->m, sizeof s->m)),
                             VOLT_ARM(&s->in, late_receiver_run(cx, &s->late))));
    CHECK_EQ(s->out.value, 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->either));
    VOLT_END(0);
}
static volt_poll recv_counted(volt_cx *cx, volt_chan *c, msg *m, int *n_polls) {
    (*n_polls)++;
    return volt_chan_recv(cx, c, m, sizeof *m);
}
// Two arms of one select on one channel: they do not meet, and another task meets either. Nor do
// they wake each other: each is polled when the select begins, when its limit is over, and to end.
ROOT_TEST_1(chan_rendezvous_select_never_meets_itself, {
    volt_chan c;
    msg buf[1], m, mine;
    volt_arm in, out, limit;
    int i, rc, n_polls;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 30; s->i++) { // the arms are polled in any order
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
        s->mine = MSG(1, 1);
        s->n_polls = 0;
        VOLT_AWAIT(s->rc,
                   VOLT_SELECT(VOLT_ARM(&s->in, recv_counted(cx, &s->c, &s->m, &s->n_polls)),
                               VOLT_ARM(&s->out, s->i % 3 == 2
                                            ? volt_chan_reserve(cx, &s->c)
                                            : volt_chan_send(cx, &s->c, &s->mine, sizeof s->mine)),
                               VOLT_ARM(&s->limit, volt_sleep(cx, VOLT_US(300)))));
        CHECK_EQ(s->rc, 2);
        CHECK(s->in.value == -ECANCELED && s->out.value == -ECANCELED);
        CHECK(s->n_polls <= 4);
        CHECK_EQ(volt_chan_len(&s->c), 0);
        CHECK_EQ(n_senders(&s->c) + n_receivers(&s->c), 0);
    }
    VOLT_END(0);
}

// Of tasks that select between both directions each meets one other task; so does a plain sender.
enum { BOTH_WAYS = 55 };
typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_arm in, out;
    msg m, got;
    int rc, *n_sent, *n_received;
} both_ways;
static volt_poll both_ways_run(volt_cx *cx, void *arg) {
    both_ways *b = (both_ways *)arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(b->rc, VOLT_SELECT(
        VOLT_ARM(&b->in, volt_chan_recv(cx, b->c, &b->got, sizeof b->got)),
        VOLT_ARM(&b->out, volt_chan_send(cx, b->c, &b->m, sizeof b->m))));
    CHECK_EQ((b->in.fired != 0) + (b->out.fired != 0), 1);
    CHECK_EQ(b->in.fired ? b->in.value : b->out.value, b->in.fired ? 1 : 0);
    CHECK_EQ(b->in.fired ? b->out.value : b->in.value, -ECANCELED);
    if (b->in.fired) CHECK(b->got.seq != b->m.seq); // not its own
    COUNT(*(b->in.fired ? b->n_received : b->n_sent));
    VOLT_END(0);
}
TEST_OF_THREADS(chan_rendezvous_selects_and_a_plain_sender_all_meet) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        volt_handle h[BOTH_WAYS];
        volt_chan c;
        msg buf[1], m = MSG(0, -1);
        int n_sent = 0, n_received = 0;
        int64_t rc = 0;
        CHECK_EQ(volt_chan_init(&c, buf, sizeof buf[0], 0), 0);
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < BOTH_WAYS; i++)
                RT_SPAWN(rt, &h[i], both_ways_run,
                         (both_ways){ .c = &c, .m = MSG(1, i), .n_sent = &n_sent,
                                      .n_received = &n_received });
            CHECK_EQ(volt_chan_send_sync(&c, &m, sizeof m, VOLT_NEVER), 0);
            for (int i = 0; i < BOTH_WAYS; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
            CHECK_EQ(READ(n_received), READ(n_sent) + 1 + round);
            CHECK_EQ(volt_chan_len(&c), 0);
        }
        destroy(rt);
    }
}

// Two senders wait, a receiver comes, and the first sender is cancelled about that time. Either the
// message of the first was received, or it gives -ECANCELED and that of the second was.
enum { ENDED, AFTER, BEFORE, BESIDE, GRANTED, N_TIMES, TIMES_EACH = 20 };
ROOT_TEST(chan_rendezvous_send_gives_0_iff_it_was_received, {
    volt_chan c;
    msg buf[1];
    awaiter a;
    result out[3];
    volt_handle h[3];
    int n, i, k, time, n_yields, n_given[N_TIMES];
    int64_t rc[3];
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < TIMES_EACH * N_TIMES; s->i++) {
        s->time = s->i % N_TIMES;
        s->n = 0;
        volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 0);
        s->out[0].m = MSG(0, 1);
        START(&s->h[0], SEND, &s->out[0], 1);
        s->out[1].m = MSG(0, 2);
        START(&s->h[1], SEND, &s->out[1], 2);
        if (s->time == BEFORE || s->time == ENDED) volt_cancel(&s->h[0]);
        if (s->time == ENDED) VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 1));
        SPAWN(&s->h[2], one_run,
              (one){ .c = &s->c, .kind = RECV, .out = &s->out[2], .n_ended = &s->n });
        if (s->time == AFTER) VOLT_AWAIT(until_reaches(cx, &s->a, &s->n, 2));
        if (s->time == GRANTED) // and maybe not run yet
            while (n_senders(&s->c) == 2) VOLT_AWAIT(volt_yield(cx));
        s->n_yields = s->time == BESIDE ? (int)RANDOM_BELOW(3) : 0;
        for (s->k = 0; s->k < s->n_yields; s->k++) VOLT_AWAIT(volt_yield(cx));
        volt_cancel(&s->h[0]);
        VOLT_AWAIT(s->rc[0], volt_join(cx, &s->h[0]));
        VOLT_AWAIT(s->rc[2], volt_join(cx, &s->h[2]));
        CHECK(s->rc[0] == 0 || s->rc[0] == -ECANCELED);
        CHECK_EQ(s->rc[2], 1);
        CHECK_EQ(s->out[2].m.seq, s->rc[0] == 0 ? 1 : 2);
        volt_chan_close(&s->c);
        VOLT_AWAIT(s->rc[1], volt_join(cx, &s->h[1]));
        CHECK_EQ(s->rc[1], s->rc[0] == 0 ? -EPIPE : 0);
        s->n_given[s->time] += s->rc[0] == 0;
    }
    CHECK_EQ(s->n_given[ENDED], 0);
    CHECK_EQ(s->n_given[AFTER], TIMES_EACH);
    CHECK_EQ(s->n_given[GRANTED], TIMES_EACH);
    VOLT_END(0);
}

// ---- stress: whatever ends a wait, what was sent is received once and nothing else

enum { STORM_TASKS = 4, STORM_EACH = TEST__IS_SANITIZED ? 80 : 200, STORM_THREADS = 2,
       STORM_PARTIES = STORM_TASKS + STORM_THREADS };
typedef struct {
    volt_chan c;
    msg buf[4];
    int sent[STORM_PARTIES][STORM_EACH], got[STORM_PARTIES][STORM_EACH];
    int n_senders, n_started, has_threads;
} storm;
static void storm_sent(storm *t, msg m) {
    CHECK_EQ(__atomic_fetch_add(&t->sent[m.from][m.seq], 1, __ATOMIC_RELAXED), 0);
}
static void storm_got(storm *t, int *last, const msg *m, int n) {
    for (; n > 0; n--, m++) {
        CHECK(m->seq >= last[m->from]);
        last[m->from] = m->seq + 1;
        CHECK_EQ(__atomic_fetch_add(&t->got[m->from][m->seq], 1, __ATOMIC_RELAXED), 0);
    }
}
static void storm_leave(storm *t) {
    if (__atomic_sub_fetch(&t->n_senders, 1, __ATOMIC_ACQ_REL) == 0) volt_chan_close(&t->c);
}

enum { PLAIN, LIMITED, CHOSEN, UNLESS, RESERVED, TRIED, MANY, N_WAYS };
typedef struct {
    volt_frame frame;
    storm *t;
    volt_arm a, b;
    volt_timer limit;
    volt_token_link link;
    volt_token *stop;
    int id, way, rc, last[STORM_PARTIES], winner, n;
    msg m[3];
} stormer;
static volt_poll storm_send(volt_cx *cx, void *arg) {
    stormer *k = (stormer *)arg;
    VOLT_BEGIN(cx, k);
    k->way = (int)RANDOM_BELOW(N_WAYS);
    k->n = 1;
    switch (k->way) {
    case TRIED: k->rc = volt_chan_try_send(&k->t->c, k->m, sizeof k->m[0]); break;
    case MANY: k->n = 3 < STORM_EACH - k->m->seq ? 3 : STORM_EACH - k->m->seq; break;
    }
    for (int i = 1; i < k->n; i++) k->m[i] = MSG(k->id, k->m->seq + i);
    if (k->way == PLAIN)
        VOLT_AWAIT(k->rc, volt_chan_send(cx, &k->t->c, k->m, sizeof k->m[0]));
    if (k->way == LIMITED)
        VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_US(300),
                                      volt_chan_send(cx, &k->t->c, k->m, sizeof k->m[0])));
    if (k->way == UNLESS)
        VOLT_AWAIT(k->rc, volt_with_token(cx, &k->link, k->stop,
                                          volt_chan_send(cx, &k->t->c, k->m, sizeof k->m[0])));
    if (k->way == CHOSEN) {
        VOLT_AWAIT(k->winner, VOLT_SELECT(
            VOLT_ARM(&k->a, volt_chan_send(cx, &k->t->c, k->m, sizeof k->m[0])),
            VOLT_ARM(&k->b, volt_yield(cx))));
        k->rc = (int)k->a.value;
        CHECK(k->winner < 0 || k->a.fired || k->rc == -ECANCELED);
    }
    if (k->way == RESERVED) {
        VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_MS(1),
                                      volt_chan_reserve(cx, &k->t->c)));
        if (k->rc == 0 && RANDOM_BELOW(2)) VOLT_AWAIT(volt_yield(cx));
        if (k->rc == 0 && RANDOM_BELOW(3) > 0)
            k->rc = volt_chan_send_reserved(&k->t->c, k->m, sizeof k->m[0]);
        else if (k->rc == 0) volt_chan_unreserve(&k->t->c), k->rc = -EAGAIN;
    }
    if (k->way == MANY) {
        VOLT_AWAIT(k->rc, volt_chan_send_n(cx, &k->t->c, k->m, sizeof k->m[0], (uint32_t)k->n));
        k->n = k->rc > 0 ? k->rc : 1;
        if (k->rc > 0) k->rc = 0;
    }
    CHECK(k->rc == 0 || k->rc == -EAGAIN || k->rc == -ETIMEDOUT || k->rc == -ECANCELED);
    for (int i = 0; k->rc == 0 && i < k->n; i++) storm_sent(k->t, k->m[i]);
    VOLT_END(k->rc < 0 ? k->rc : k->n);
}
// Gives 0 once it is closed and drained.
static volt_poll storm_recv(volt_cx *cx, void *arg) {
    stormer *k = (stormer *)arg;
    VOLT_BEGIN(cx, k);
    k->way = (int)RANDOM_BELOW(N_WAYS);
    if (k->way == PLAIN || k->way == RESERVED)
        VOLT_AWAIT(k->rc, volt_chan_recv(cx, &k->t->c, k->m, sizeof k->m[0]));
    if (k->way == LIMITED)
        VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_US(300),
                                      volt_chan_recv(cx, &k->t->c, k->m, sizeof k->m[0])));
    if (k->way == UNLESS)
        VOLT_AWAIT(k->rc, volt_with_token(cx, &k->link, k->stop,
                                          volt_chan_recv(cx, &k->t->c, k->m, sizeof k->m[0])));
    if (k->way == CHOSEN) {
        VOLT_AWAIT(k->winner, VOLT_SELECT(
            VOLT_ARM(&k->a, volt_chan_recv(cx, &k->t->c, k->m, sizeof k->m[0])),
            VOLT_ARM(&k->b, volt_yield(cx))));
        k->rc = (int)k->a.value;
        CHECK(k->winner < 0 || k->a.fired || k->rc == -ECANCELED);
    }
    if (k->way == TRIED) k->rc = volt_chan_try_recv(&k->t->c, k->m, sizeof k->m[0]);
    if (k->way == MANY)
        VOLT_AWAIT(k->rc, volt_chan_recv_n(cx, &k->t->c, k->m, sizeof k->m[0], 3));
    if (k->rc > 0) storm_got(k->t, k->last, k->m, k->rc);
    CHECK(k->rc >= 0 || k->rc == -EAGAIN || k->rc == -ETIMEDOUT || k->rc == -ECANCELED);
    VOLT_END(k->rc);
}
typedef struct {
    volt_frame frame;
    stormer k;
    volt_token stop;
    int rc;
} storm_task;
// A message that was not sent is dropped: the next number is next.
static volt_poll storm_sender_run(volt_cx *cx, void *arg) {
    storm_task *t = (storm_task *)arg;
    VOLT_BEGIN(cx, t);
    t->k.stop = &t->stop;
    for (t->k.m[0] = MSG(t->k.id, 0); t->k.m[0].seq < STORM_EACH; t->k.m[0].seq += t->rc) {
        if (t->k.m[0].seq > STORM_EACH / 2) volt_token_cancel(&t->stop);
        VOLT_AWAIT(t->rc, storm_send(cx, &t->k));
        if (t->rc < 0) t->rc = 1;
        if (RANDOM_BELOW(4) == 0) VOLT_AWAIT(volt_yield(cx));
    }
    storm_leave(t->k.t);
    VOLT_END(0);
}
static volt_poll storm_receiver_run(volt_cx *cx, void *arg) {
    storm_task *t = (storm_task *)arg;
    VOLT_BEGIN(cx, t);
    t->k.stop = &t->stop;
    for (;;) {
        VOLT_AWAIT(t->rc, storm_recv(cx, &t->k));
        if (t->rc == 0 || volt_is_cancelled(cx)) break;
        if (RANDOM_BELOW(50) == 0) volt_token_cancel(&t->stop);
        if (RANDOM_BELOW(4) == 0) VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(t->rc);
}
// Receivers that are cancelled, one after the other, somewhere.
typedef struct {
    volt_frame frame;
    storm *t;
    volt_handle h;
    int rc, i, n;
} storm_canceller;
static volt_poll storm_canceller_run(volt_cx *cx, void *arg) {
    storm_canceller *k = (storm_canceller *)arg;
    VOLT_BEGIN(cx, k);
    while (!volt_chan_is_closed(&k->t->c)) {
        SPAWN(&k->h, storm_receiver_run, (storm_task){ .k = { .t = k->t } });
        k->n = (int)RANDOM_BELOW(20);
        for (k->i = 0; k->i < k->n; k->i++) VOLT_AWAIT(volt_yield(cx));
        volt_cancel(&k->h);
        VOLT_AWAIT(k->rc, volt_join(cx, &k->h));
    }
    VOLT_END(0);
}

typedef struct {
    storm *t;
    int id;
} storm_thread;
static void *storm_thread_send(void *arg) {
    storm_thread *k = (storm_thread *)arg;
    for (msg m = MSG(k->id, 0); m.seq < STORM_EACH; m.seq++) {
        volt_chan *c = &k->t->c;
        uint64_t way = RANDOM_BELOW(4);
        volt_time limit = way == 0 ? VOLT_NEVER : (volt_time)RANDOM_BELOW(VOLT_US(200));
        int rc = way < 3 ? volt_chan_send_sync(c, &m, sizeof m, limit)
                         : volt_chan_try_send(c, &m, sizeof m);
        CHECK(rc == 0 || rc == (way < 3 ? -ETIMEDOUT : -EAGAIN));
        if (rc == 0) storm_sent(k->t, m);
    }
    storm_leave(k->t);
    return NULL;
}
static void *storm_thread_recv(void *arg) {
    storm_thread *k = (storm_thread *)arg;
    int last[STORM_PARTIES] = { 0 };
    for (int rc = 1; rc != 0;) {
        msg m;
        uint64_t way = RANDOM_BELOW(4);
        volt_time limit = way == 0 ? VOLT_NEVER : (volt_time)RANDOM_BELOW(VOLT_US(200));
        rc = way < 3 ? volt_chan_recv_sync(&k->t->c, &m, sizeof m, limit)
                     : volt_chan_try_recv(&k->t->c, &m, sizeof m);
        CHECK(rc >= 0 || rc == (way < 3 ? -ETIMEDOUT : -EAGAIN));
        if (rc == 1) storm_got(k->t, last, &m, 1);
    }
    return NULL;
}

static void storm_run(uint32_t workers, uint32_t cap, int has_threads) {
    static storm t;
    storm_thread k[STORM_THREADS];
    pthread_t sends[STORM_THREADS], recvs[STORM_THREADS];
    volt_handle h[2 * STORM_TASKS + 1];
    int n = 0;
    memset(&t, 0, sizeof t);
    volt_chan_init(&t.c, t.buf, sizeof t.buf[0], cap);
    t.n_senders = STORM_TASKS + (has_threads ? STORM_THREADS : 0);
    volt_rt *rt = create_on(workers);
    for (int i = 0; i < STORM_TASKS; i++) {
        RT_SPAWN(rt, &h[n++], storm_sender_run, (storm_task){ .k = { .t = &t, .id = i } });
        RT_SPAWN(rt, &h[n++], storm_receiver_run, (storm_task){ .k = { .t = &t, .id = i } });
    }
    RT_SPAWN(rt, &h[n++], storm_canceller_run, (storm_canceller){ .t = &t });
    for (int i = 0; has_threads && i < STORM_THREADS; i++) {
        k[i] = (storm_thread){ .t = &t, .id = STORM_TASKS + i };
        sends[i] = start_thread(storm_thread_send, &k[i]);
        recvs[i] = start_thread(storm_thread_recv, &k[i]);
    }
    for (int i = 0; i < n; i++) {
        int64_t rc;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
    }
    for (int i = 0; has_threads && i < STORM_THREADS; i++) {
        join_thread(sends[i]);
        join_thread(recvs[i]);
    }
    CHECK_EQ(memcmp(t.sent, t.got, sizeof t.sent), 0);
    CHECK_EQ(t.c.len_ + t.c.n_slots_granted_ + t.c.n_msgs_granted_, 0);
    CHECK(!t.c.senders_ && !t.c.receivers_);
    destroy(rt);
}
TEST(chan_storm_of_tasks_loses_no_message) {
    EACH_WORKERS(w)
    for (uint32_t cap = 0; cap <= 4; cap = cap * 3 + 1) storm_run(w, cap, 0);
}
TEST_OF_THREADS(chan_storm_with_threads_loses_no_message) {
    EACH_WORKERS(w)
    for (uint32_t cap = 0; cap <= 4; cap = cap * 3 + 1) storm_run(w, cap, 1);
}

// ---- threads that block

static void *closes_when_awaited(void *arg) {
    volt_chan *c = (volt_chan *)arg;
    UNTIL(n_receivers(c) + n_senders(c) == 1);
    volt_chan_close(c);
    return NULL;
}
TEST_OF_THREADS(chan_sync_waits_end_at_limit_or_close) {
    msg buf[1], m = MSG(1, 1);
    volt_chan c = VOLT_CHAN_INIT(buf);
    volt_time start = volt_now();
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, VOLT_MS(3)), -ETIMEDOUT);
    CHECK(volt_now() - start >= VOLT_MS(3));
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, 0), -ETIMEDOUT);
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, -1), -ETIMEDOUT);
    CHECK_EQ(volt_chan_send_sync(&c, &m, sizeof m, 0), 0);
    CHECK_EQ(volt_chan_send_sync(&c, &m, sizeof m, VOLT_MS(1)), -ETIMEDOUT);
    pthread_t t = start_thread(closes_when_awaited, &c);
    CHECK_EQ(volt_chan_send_sync(&c, &m, sizeof m, VOLT_NEVER), -EPIPE);
    join_thread(t);
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, VOLT_NEVER), 1);
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, VOLT_NEVER), 0);
    volt_chan_init(&c, buf, sizeof buf[0], 0);
    t = start_thread(closes_when_awaited, &c);
    CHECK_EQ(volt_chan_recv_sync(&c, &m, sizeof m, VOLT_NEVER), 0);
    join_thread(t);
}
ROOT_TEST(chan_blocks_no_worker, { volt_chan c; msg buf[1], m; }) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1);
    CHECK_EQ(volt_chan_recv_sync(&s->c, &s->m, sizeof s->m, 0), -EDEADLK);
    CHECK_EQ(volt_chan_send_sync(&s->c, &s->m, sizeof s->m, 0), -EDEADLK);
    CHECK(!s->c.receivers_ && volt_chan_len(&s->c) == 0);
    VOLT_END(0);
}

// ---- freed by the last receiver, as soon as no other task or thread will touch it

typedef struct {
    volt_chan c;
    msg buf[1];
} parcel;
static parcel *parcel_new(size_t cap) {
    parcel *p = (parcel *)malloc(sizeof *p);
    CHECK(p);
    volt_chan_init(&p->c, p->buf, sizeof p->buf[0], cap);
    return p;
}
// One message: its receiver frees the channel. The sender may still be inside its call.
typedef struct {
    volt_frame frame;
    parcel *p;
    msg m;
    int rc, is_close;
} courier;
static volt_poll courier_send(volt_cx *cx, void *arg) {
    courier *k = (courier *)arg;
    VOLT_BEGIN(cx, k);
    if (k->is_close) volt_chan_close(&k->p->c);
    else VOLT_AWAIT(k->rc, volt_chan_send(cx, &k->p->c, &k->m, sizeof k->m));
    CHECK_EQ(k->rc, 0);
    VOLT_END(0);
}
static volt_poll courier_recv(volt_cx *cx, void *arg) {
    courier *k = (courier *)arg;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->rc, volt_chan_recv(cx, &k->p->c, &k->m, sizeof k->m));
    CHECK_EQ(k->rc, !k->is_close);
    volt_chan_destroy(&k->p->c);
    free(k->p);
    VOLT_END(0);
}
enum { PARCELS = TEST__IS_SANITIZED ? 300 : 2000 };
static void post_parcel(volt_cx *cx, volt_group *g, int i) { // in either order
    courier k = { .p = parcel_new(1), .is_close = i & 2 };
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, g, i & 1 ? courier_recv : courier_send, k), 0);
    CHECK_EQ(VOLT_GROUP_SPAWN(cx, g, i & 1 ? courier_send : courier_recv, k), 0);
}
ROOT_TEST(chan_may_be_freed_by_its_last_receiver, { volt_group g; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < PARCELS; s->i++) {
        post_parcel(cx, &s->g, s->i);
        if (s->i % 50 == 0) VOLT_AWAIT(volt_group_wait(cx, &s->g));
    }
    VOLT_AWAIT(volt_group_wait(cx, &s->g));
    VOLT_END(0);
}

// The same between a thread and tasks: each sends, and frees what it has received from the other.
typedef struct {
    parcel *to_task[PARCELS], *to_thread[PARCELS];
} post;
static void *post_thread(void *arg) {
    post *p = (post *)arg;
    for (int i = 0; i < PARCELS; i++) {
        msg m = MSG(0, i);
        if (i % 3 == 0) volt_chan_close(&p->to_task[i]->c);
        else CHECK_EQ(volt_chan_send_sync(&p->to_task[i]->c, &m, sizeof m, VOLT_NEVER), 0);
        CHECK_EQ(volt_chan_recv_sync(&p->to_thread[i]->c, &m, sizeof m, VOLT_NEVER), i % 5 != 0);
        free(p->to_thread[i]);
    }
    return NULL;
}
typedef struct {
    volt_frame frame;
    post *p;
    int i, rc;
    msg m;
} postman;
static volt_poll postman_run(volt_cx *cx, void *arg) {
    postman *k = (postman *)arg;
    VOLT_BEGIN(cx, k);
    for (k->i = 0; k->i < PARCELS; k->i++) {
        VOLT_AWAIT(k->rc, volt_chan_recv(cx, &k->p->to_task[k->i]->c, &k->m, sizeof k->m));
        CHECK_EQ(k->rc, k->i % 3 != 0);
        free(k->p->to_task[k->i]);
        if (k->i % 5 == 0) volt_chan_close(&k->p->to_thread[k->i]->c);
        else VOLT_AWAIT(k->rc, volt_chan_send(cx, &k->p->to_thread[k->i]->c, &k->m, sizeof k->m));
        CHECK(k->rc >= 0);
    }
    VOLT_END(0);
}
TEST_OF_THREADS(chan_may_be_freed_by_thread_or_task) {
    static post p;
    EACH_WORKERS(w) {
        static postman k;
        memset(&k, 0, sizeof k);
        k.p = &p;
        for (int i = 0; i < PARCELS; i++) {
            p.to_task[i] = parcel_new(1); // of a rendezvous both sides must have returned
            p.to_thread[i] = parcel_new(1);
        }
        pthread_t t = start_thread(post_thread, &p);
        CHECK_EQ(run_on(w, postman_run, &k), 0);
        join_thread(t);
    }
}

// ---- nothing is allocated

typedef struct {
    volt_frame frame;
    volt_chan *in, *out;
    int rc;
    msg m;
} player;
static volt_poll player_run(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(p->rc, volt_chan_recv(cx, p->in, &p->m, sizeof p->m));
        if (p->rc <= 0) break;
        VOLT_AWAIT(p->rc, volt_chan_send(cx, p->out, &p->m, sizeof p->m));
        CHECK_EQ(p->rc, 0);
    }
    VOLT_END(p->rc);
}
ROOT_TEST_ALL(chan_allocates_nothing, {
    volt_chan there, back;
    msg buf[2], m;
    volt_handle h;
    volt_timer t;
    volt_arm a, b;
    size_t before;
    int i, rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->there, &s->buf[0], sizeof s->buf[0], 0);
    volt_chan_init(&s->back, &s->buf[1], sizeof s->buf[0], 1);
    SPAWN(&s->h, player_run, (player){ .in = &s->there, .out = &s->back });
    s->before = READ(test_heap.n_allocs);
    for (s->i = 0; s->i < 500; s->i++) {
        VOLT_AWAIT(s->rc, volt_chan_reserve(cx, &s->there));
        CHECK_EQ(s->rc, 0);
        s->m = MSG(0, s->i);
        CHECK_EQ(volt_chan_send_reserved(&s->there, &s->m, sizeof s->m), 0);
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&s->a, s->rc, volt_chan_recv(cx, &s->back, &s->m, sizeof s->m)),
            VOLT_ARM(&s->b, volt_chan_wait_closed(cx, &s->back))));
        CHECK(s->a.fired && s->rc == 1 && s->m.seq == s->i);
    }
    CHECK_EQ(READ(test_heap.n_allocs), s->before);
    volt_chan_close(&s->there);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
