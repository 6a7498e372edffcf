// SPDX-License-Identifier: MIT OR 0BSD
// The forms of a channel's waits that are no await: try_ and _sync, of one message and of several;
// and what a watcher wants.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

static const volt_time A_MOMENT = VOLT_MS(5);

// A thread that does one call, which has begun to wait when it is seen in the list.
typedef struct {
    int (*fn)(void *on);
    void *on;
    int rc;
    pthread_t thread;
} caller;
static void *caller_main(void *arg) {
    caller *c = (caller *)arg;
    c->rc = c->fn(c->on);
    return NULL;
}
static void caller_start(caller *c, int (*fn)(void *), void *on, uint32_t *lock,
                         volt__node *const *list) {
    c->fn = fn;
    c->on = on;
    c->thread = start_thread(caller_main, c);
    UNTIL(count_waiting(lock, list) == 1);
}
static int caller_end(caller *c) {
    join_thread(c->thread);
    return c->rc;
}

// ---- bounded

enum { CAP = 3 };
typedef struct {
    volt_chan c;
    int buf[CAP], in[CAP], out[CAP];
} box;
static void box_init(box *b) {
    memset(b, 0, sizeof *b);
    volt_chan_init(&b->c, b->buf, sizeof(int), CAP);
    for (int i = 0; i < CAP; i++) b->in[i] = i + 1;
}
static int send_three(void *arg) {
    box *b = (box *)arg;
    return volt_chan_send_n_sync(&b->c, b->in, sizeof(int), 3, VOLT_NEVER);
}
static int recv_three(void *arg) {
    box *b = (box *)arg;
    return volt_chan_recv_n_sync(&b->c, b->out, sizeof(int), 3, VOLT_NEVER);
}
static int reserve_one(void *arg) {
    return volt_chan_reserve_sync(&((box *)arg)->c, VOLT_NEVER);
}
static int await_close(void *arg) {
    return volt_chan_wait_closed_sync(&((box *)arg)->c, VOLT_NEVER);
}

TEST(chan_try_send_n_and_try_recv_n_move_what_fits) {
    box b;
    box_init(&b);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 2), -EAGAIN);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 2), 2);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 3), 1); // as many as fit
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 1), -EAGAIN);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 2), 2);
    CHECK(b.out[0] == 1 && b.out[1] == 2);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 1), 1);
    CHECK_EQ(b.out[0], 1);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 1), 1);
    volt_chan_close(&b.c);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 2), -EPIPE);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 3), 1);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 3), 0);
}
TEST(chan_n_forms_refuse_another_size) {
    box b;
    box_init(&b);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, 2, 1), -EINVAL);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 0), -EINVAL);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, 2, 1), -EINVAL);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 0), -EINVAL);
    CHECK_EQ(volt_chan_send_n_sync(&b.c, b.in, 2, 1, 0), -EINVAL);
    CHECK_EQ(volt_chan_send_n_sync(&b.c, b.in, sizeof(int), 0, 0), -EINVAL);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, 2, 1, 0), -EINVAL);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, sizeof(int), 0, 0), -EINVAL);
    CHECK_EQ(volt_chan_len(&b.c), 0);
}
TEST(chan_sync_forms_end_at_their_time_limit) {
    box b;
    box_init(&b);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, sizeof(int), 2, A_MOMENT), -ETIMEDOUT);
    CHECK_EQ(volt_chan_wait_closed_sync(&b.c, A_MOMENT), -ETIMEDOUT);
    CHECK_EQ(volt_chan_send_n_sync(&b.c, b.in, sizeof(int), 3, 0), 3);
    CHECK_EQ(volt_chan_send_n_sync(&b.c, b.in, sizeof(int), 3, A_MOMENT), -ETIMEDOUT);
    CHECK_EQ(volt_chan_reserve_sync(&b.c, A_MOMENT), -ETIMEDOUT);
    CHECK(!b.c.senders_ && !b.c.receivers_ && !b.c.watchers_);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, sizeof(int), 3, 0), 3);
    CHECK_EQ(volt_chan_reserve_sync(&b.c, 0), 0);
    CHECK_EQ(volt_chan_send_reserved(&b.c, &b.in[2], sizeof(int)), 0);
    volt_chan_close(&b.c);
    CHECK_EQ(volt_chan_wait_closed_sync(&b.c, 0), 0);
    CHECK_EQ(volt_chan_reserve_sync(&b.c, 0), -EPIPE);
    CHECK_EQ(volt_chan_send_n_sync(&b.c, b.in, sizeof(int), 3, 0), -EPIPE);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, sizeof(int), 3, 0), 1);
    CHECK_EQ(b.out[0], 3);
    CHECK_EQ(volt_chan_recv_n_sync(&b.c, b.out, sizeof(int), 3, 0), 0);
}
TEST_OF_THREADS(chan_wakes_thread_in_each_sync_form) {
    box b;
    caller c;
    box_init(&b);
    caller_start(&c, recv_three, &b, &b.c.lock_, &b.c.receivers_);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 2), 2);
    int n = caller_end(&c); // woken by the first; the second is there when it looks
    CHECK_EQ(n, 2);
    CHECK(b.out[0] == 1 && b.out[1] == 2);

    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 3), 3);
    caller_start(&c, reserve_one, &b, &b.c.lock_, &b.c.senders_);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 3), 3);
    CHECK_EQ(caller_end(&c), 0);
    volt_chan_unreserve(&b.c);

    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 3), 3);
    caller_start(&c, send_three, &b, &b.c.lock_, &b.c.senders_);
    CHECK_EQ(volt_chan_try_recv_n(&b.c, b.out, sizeof(int), 2), 2);
    CHECK_EQ(caller_end(&c), 2);
    CHECK_EQ(volt_chan_len(&b.c), 3);

    caller_start(&c, await_close, &b, &b.c.lock_, &b.c.watchers_);
    volt_chan_close(&b.c);
    CHECK_EQ(caller_end(&c), 0);
}
TEST_OF_THREADS(chan_close_wakes_threads) {
    box b;
    caller c;
    box_init(&b);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 3), 3);
    caller_start(&c, send_three, &b, &b.c.lock_, &b.c.senders_);
    volt_chan_close(&b.c);
    CHECK_EQ(caller_end(&c), -EPIPE);
    box_init(&b);
    caller_start(&c, recv_three, &b, &b.c.lock_, &b.c.receivers_);
    volt_chan_close(&b.c);
    CHECK_EQ(caller_end(&c), 0);
    box_init(&b);
    CHECK_EQ(volt_chan_try_send_n(&b.c, b.in, sizeof(int), 3), 3);
    caller_start(&c, reserve_one, &b, &b.c.lock_, &b.c.senders_);
    volt_chan_close(&b.c);
    CHECK_EQ(caller_end(&c), -EPIPE);
}

// ---- oneshot

static int await_disinterest(void *arg) {
    return volt_oneshot_wait_closed_sync((volt_oneshot *)arg, VOLT_NEVER);
}
TEST_OF_THREADS(oneshot_close_wakes_thread_in_wait_closed) {
    volt_oneshot o = VOLT_ONESHOT_INIT;
    caller c;
    CHECK_EQ(volt_oneshot_wait_closed_sync(&o, A_MOMENT), -ETIMEDOUT);
    caller_start(&c, await_disinterest, &o, &o.waitword_.lock_, &o.waitword_.waiters_);
    volt_oneshot_close(&o);
    CHECK_EQ(caller_end(&c), 0);
    CHECK_EQ(volt_oneshot_wait_closed_sync(&o, 0), 0);
    CHECK_EQ(volt_oneshot_send(&o, 1), -EPIPE);
}
typedef struct {
    volt_frame frame;
    volt_arm closed, work;
    volt_oneshot *o;
    int64_t rc;
    int *is_done;
} worker;
static volt_poll worker_run(volt_cx *cx, void *arg) {
    worker *w = (worker *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, VOLT_SELECT(VOLT_ARM(&w->closed, volt_oneshot_wait_closed(cx, w->o)),
                                  VOLT_ARM(&w->work, volt_sleep_forever(cx))));
    CHECK(w->rc == 0 && w->closed.value == 0);
    WRITE(*w->is_done, 1);
    VOLT_END(0);
}
TEST_OF_THREADS(oneshot_close_ends_work_of_its_sender) {
    volt_oneshot o = VOLT_ONESHOT_INIT;
    int is_done = 0;
    volt_rt *rt = create_on(1);
    RT_SPAWN(rt, NULL, worker_run, (worker){ .o = &o, .is_done = &is_done });
    UNTIL(count_waiting(&o.waitword_.lock_, &o.waitword_.waiters_) == 1);
    volt_oneshot_close(&o);
    UNTIL(READ(is_done));
    destroy(rt);
}

// ---- broadcast

typedef struct {
    volt_bcast b;
    volt_sub s;
    int buf[2], got;
} radio;
static void radio_init(radio *r) {
    volt_bcast b = VOLT_BCAST_INIT(r->buf);
    memset(r, 0, sizeof *r);
    r->b = b;
    volt_sub_open(&r->s, &r->b);
}
static int listen_to(void *arg) {
    radio *r = (radio *)arg;
    return volt_sub_recv_sync(&r->s, &r->got, sizeof r->got, VOLT_NEVER);
}
TEST_OF_THREADS(bcast_send_and_close_wake_waiting_thread) {
    radio r;
    caller c;
    int v = 5;
    radio_init(&r);
    CHECK_EQ(volt_sub_recv_sync(&r.s, &r.got, sizeof r.got, A_MOMENT), -ETIMEDOUT);
    CHECK_EQ(volt_sub_recv_sync(&r.s, &r.got, 1, 0), -EINVAL);
    caller_start(&c, listen_to, &r, &r.b.lock_, &r.b.waiters_);
    CHECK_EQ(volt_bcast_send(&r.b, &v, sizeof v), 1);
    CHECK_EQ(caller_end(&c), 1);
    CHECK_EQ(r.got, 5);
    for (v = 6; v < 9; v++) CHECK_EQ(volt_bcast_send(&r.b, &v, sizeof v), 1);
    CHECK_EQ(volt_sub_recv_sync(&r.s, &r.got, sizeof r.got, 0), -EOVERFLOW);
    CHECK_EQ(volt_sub_recv_sync(&r.s, &r.got, sizeof r.got, 0), 1);
    CHECK_EQ(r.got, 7);
    CHECK_EQ(volt_sub_recv_sync(&r.s, &r.got, sizeof r.got, 0), 1);
    caller_start(&c, listen_to, &r, &r.b.lock_, &r.b.waiters_);
    volt_bcast_close(&r.b);
    CHECK_EQ(caller_end(&c), 0);
    volt_sub_close(&r.s);
}

// ---- watch

typedef struct {
    volt_watch w;
    volt_watcher r;
    int value, got, least, n_asked;
} gauge;
static void gauge_init(gauge *g) {
    volt_watch w = VOLT_WATCH_INIT(g->value);
    memset(g, 0, sizeof *g);
    g->w = w;
    volt_watcher_open(&g->r, &g->w);
}
static int is_enough(const void *v, void *arg) {
    gauge *g = (gauge *)arg;
    COUNT(g->n_asked);
    return *(const int *)v >= g->least;
}
static int set_gauge(gauge *g, int v) { return volt_watch_set(&g->w, &v, sizeof v); }
static int await_new(void *arg) {
    gauge *g = (gauge *)arg;
    return volt_watcher_next_sync(&g->r, &g->got, sizeof g->got, VOLT_NEVER);
}
static int await_enough(void *arg) {
    gauge *g = (gauge *)arg;
    return volt_watcher_until_sync(&g->r, is_enough, g, &g->got, sizeof g->got, VOLT_NEVER);
}
TEST_OF_THREADS(watch_set_and_close_wake_waiting_thread) {
    gauge g;
    caller c;
    gauge_init(&g);
    CHECK_EQ(volt_watcher_next_sync(&g.r, &g.got, sizeof g.got, A_MOMENT), -ETIMEDOUT);
    CHECK_EQ(volt_watcher_next_sync(&g.r, &g.got, 1, 0), -EINVAL);
    caller_start(&c, await_new, &g, &g.w.lock_, &g.w.waiters_);
    CHECK_EQ(set_gauge(&g, 3), 0);
    CHECK_EQ(caller_end(&c), 1);
    CHECK_EQ(g.got, 3);
    caller_start(&c, await_new, &g, &g.w.lock_, &g.w.waiters_);
    volt_watch_close(&g.w);
    CHECK_EQ(caller_end(&c), 0);
}
// A value that is there counts, seen or not; then each new one until one is accepted. Every value
// that was tested is seen.
TEST_OF_THREADS(watch_until_sync_waits_for_accepted_value) {
    gauge g;
    caller c;
    gauge_init(&g);
    CHECK_EQ(volt_watcher_until_sync(&g.r, is_enough, &g, &g.got, sizeof g.got, 0), 1);
    CHECK_EQ(g.got, 0);
    g.least = 10;
    CHECK_EQ(volt_watcher_until_sync(&g.r, is_enough, &g, &g.got, sizeof g.got, A_MOMENT),
             -ETIMEDOUT);
    caller_start(&c, await_enough, &g, &g.w.lock_, &g.w.waiters_);
    int n_asked = READ(g.n_asked);
    CHECK_EQ(set_gauge(&g, 9), 0);
    UNTIL(READ(g.n_asked) > n_asked && count_waiting(&g.w.lock_, &g.w.waiters_) == 1);
    CHECK_EQ(set_gauge(&g, 10), 0);
    CHECK_EQ(caller_end(&c), 1);
    CHECK_EQ(g.got, 10);
    CHECK_EQ(volt_watcher_try_next(&g.r, &g.got, sizeof g.got), -EAGAIN);
    g.least = 11;
    caller_start(&c, await_enough, &g, &g.w.lock_, &g.w.waiters_);
    volt_watch_close(&g.w);
    CHECK_EQ(caller_end(&c), 0);
    g.least = 10; // closed, but it is there
    CHECK_EQ(volt_watcher_until_sync(&g.r, is_enough, &g, &g.got, sizeof g.got, 0), 1);
}
typedef struct {
    volt_frame frame;
    volt_timer limit;
    gauge *g;
    int rc, *is_done;
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    gauge *const g = r->g;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc,
               volt_within(cx, &r->limit, A_MOMENT,
                           volt_watcher_until(cx, &g->r, is_enough, g, &g->got, sizeof g->got)));
    CHECK_EQ(r->rc, -ETIMEDOUT);
    WRITE(*r->is_done, 1);
    VOLT_AWAIT(r->rc, volt_watcher_until(cx, &g->r, is_enough, g, &g->got, sizeof g->got));
    CHECK_EQ(r->rc, 1);
    CHECK_EQ(g->got, 12);
    WRITE(*r->is_done, 2);
    VOLT_END(0);
}
TEST_OF_THREADS(watch_until_waits_for_accepted_value) {
    gauge g;
    int is_done = 0;
    gauge_init(&g);
    g.least = 12;
    volt_rt *rt = create_on(1);
    RT_SPAWN(rt, NULL, reader_run, (reader){ .g = &g, .is_done = &is_done });
    UNTIL(READ(is_done) == 1 && count_waiting(&g.w.lock_, &g.w.waiters_) == 1);
    CHECK_EQ(set_gauge(&g, 11), 0);
    CHECK_EQ(set_gauge(&g, 12), 0);
    UNTIL(READ(is_done) == 2);
    destroy(rt);
}

// ---- on a worker

static volt_poll worker_blocks(volt_cx *cx, void *arg) {
    volt_frame *f = (volt_frame *)arg;
    static int buf[1], v;
    volt_chan c = VOLT_CHAN_INIT(buf);
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_watch w = VOLT_WATCH_INIT(v);
    volt_oneshot o = VOLT_ONESHOT_INIT;
    volt_sub s;
    volt_watcher r;
    (void)cx, (void)f;
    volt_sub_open(&s, &b);
    volt_watcher_open(&r, &w);
    CHECK_EQ(volt_chan_send_n_sync(&c, &v, sizeof v, 1, 0), -EDEADLK);
    CHECK_EQ(volt_chan_recv_n_sync(&c, &v, sizeof v, 1, 0), -EDEADLK);
    CHECK_EQ(volt_chan_reserve_sync(&c, 0), -EDEADLK);
    CHECK_EQ(volt_chan_wait_closed_sync(&c, 0), -EDEADLK);
    CHECK_EQ(volt_oneshot_wait_closed_sync(&o, 0), -EDEADLK);
    CHECK_EQ(volt_sub_recv_sync(&s, &v, sizeof v, 0), -EDEADLK);
    CHECK_EQ(volt_watcher_next_sync(&r, &v, sizeof v, 0), -EDEADLK);
    volt_sub_close(&s);
    return volt_ready(0);
}
TEST(chan_sync_forms_give_edeadlk_on_worker) {
    volt_frame f;
    memset(&f, 0, sizeof f);
    CHECK_EQ(volt_run(NULL, worker_blocks, &f), 0);
}

// ---- the first of several channels

enum { CHANNELS = 3 };
typedef struct {
    volt_chan c[CHANNELS];
    int buf[CHANNELS][2];
} boxes;
static void boxes_init(boxes *b) {
    for (int i = 0; i < CHANNELS; i++) volt_chan_init(&b->c[i], b->buf[i], sizeof(int), 2);
}
// Returns the sum of the messages that are left.
static int drain(boxes *b) {
    int v, sum = 0;
    for (int i = 0; i < CHANNELS; i++)
        while (volt_chan_try_recv(&b->c[i], &v, sizeof v) == 1) sum += v;
    return sum;
}
typedef struct {
    volt_frame frame;
    boxes *b;
    volt_arm arm[CHANNELS];
    int v[CHANNELS], rc;
} chooser;
static volt_poll chooser_run(volt_cx *cx, void *arg) {
    chooser *c = (chooser *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, VOLT_SELECT(
        VOLT_ARM(&c->arm[0], volt_chan_recv(cx, &c->b->c[0], &c->v[0], sizeof c->v[0])),
        VOLT_ARM(&c->arm[1], volt_chan_recv(cx, &c->b->c[1], &c->v[1], sizeof c->v[1])),
        VOLT_ARM(&c->arm[2], volt_chan_recv(cx, &c->b->c[2], &c->v[2], sizeof c->v[2]))));
    VOLT_END(0);
}
static int fired_of(const chooser *c) {
    int at = -1;
    for (int i = 0; i < CHANNELS; i++) {
        if (!c->arm[i].fired) continue;
        CHECK_EQ(at, -1);
        CHECK_EQ(c->arm[i].value, 1);
        at = i;
    }
    return at;
}
// Sends to one channel, once the other thread waits at the last of them.
typedef struct {
    boxes *b;
    int to;
} sender;
static void *sender_main(void *arg) {
    sender *s = (sender *)arg;
    volt_chan *last = &s->b->c[CHANNELS - 1];
    int v = 10 + s->to;
    UNTIL(count_waiting(&last->lock_, &last->receivers_) == 1);
    CHECK_EQ(volt_chan_try_send(&s->b->c[s->to], &v, sizeof v), 0);
    return NULL;
}
TEST_OF_THREADS(plain_thread_receives_from_the_first_of_several_channels) {
    boxes b;
    volt_rt *rt = create_on(1);
    boxes_init(&b);
    for (int i = 0; i < CHANNELS; i++) {
        sender s = { &b, i };
        chooser c;
        memset(&c, 0, sizeof c);
        c.b = &b;
        pthread_t thread = start_thread(sender_main, &s);
        CHECK_EQ(volt_block_on(rt, chooser_run, &c), 0);
        join_thread(thread);
        CHECK_EQ(fired_of(&c), i);
        CHECK_EQ(c.v[i], 10 + i);
        CHECK_EQ(drain(&b), 0);
    }
    destroy(rt);
}
TEST_OF_THREADS(plain_thread_leaves_the_messages_of_other_channels) {
    boxes b;
    volt_rt *rt = create_on(1);
    boxes_init(&b);
    for (int round = 0; round < 30; round++) {
        chooser c;
        memset(&c, 0, sizeof c);
        c.b = &b;
        for (int i = 0, v = 1; i < CHANNELS; i++, v *= 10)
            CHECK_EQ(volt_chan_try_send(&b.c[i], &v, sizeof v), 0);
        CHECK_EQ(volt_block_on(rt, chooser_run, &c), 0);
        CHECK_EQ(c.v[fired_of(&c)] + drain(&b), 111);
    }
    destroy(rt);
}
// The same with children, whose number need not be known when the program is compiled.
typedef struct {
    volt_frame frame;
    volt_chan *c;
    int v, rc;
} receiver;
static volt_poll receiver_run(volt_cx *cx, void *arg) {
    receiver *r = (receiver *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_chan_recv(cx, r->c, &r->v, sizeof r->v));
    VOLT_END(r->rc);
}
ROOT_TEST_1(first_of_n_channels_leaves_the_messages_of_the_others,
            { boxes b; receiver r[CHANNELS]; int round; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    boxes_init(&s->b);
    for (s->round = 0; s->round < 30; s->round++) {
        for (int i = 0, v = 1; i < CHANNELS; i++, v *= 10) {
            s->r[i] = (receiver){ .c = &s->b.c[i] };
            if (i >= s->round % CHANNELS)
                CHECK_EQ(volt_chan_try_send(&s->b.c[i], &v, sizeof v), 0);
        }
        VOLT_AWAIT(s->rc, volt_join_any(cx, VOLT_EACH(receiver_run, s->r)));
        static const int sent[] = { 111, 110, 100 };
        int sum = drain(&s->b);
        CHECK(s->rc >= s->round % CHANNELS && s->rc < CHANNELS);
        CHECK_EQ(volt_result(&s->r[s->rc].frame), 1);
        for (int i = 0; i < CHANNELS; i++)
            if (volt_result(&s->r[i].frame) == 1) sum += s->r[i].v;
        CHECK_EQ(sum, sent[s->round % CHANNELS]);
    }
    VOLT_END(0);
}
