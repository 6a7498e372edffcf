// SPDX-License-Identifier: MIT OR 0BSD
// Channels of the other kinds: queue, oneshot, broadcast, watch. In a release build, where a wrong
// size is a result instead of being a misuse, but with volt's own assertions.
#define VOLT_DEBUG 0
#define VOLT_ASSERT(c_) VOLT__REQUIRE(c_, "assertion failed: " #c_)
#define VOLT_IMPLEMENTATION
#include "interleave.h"
#include "test.h"
#include "tasks.h"

// Races are run for a while: on a loaded machine a round may take a time slice.
enum { RACE_MS = 200 };
static int goes_on(volt_time start) { return volt_now() - start < VOLT_MS(RACE_MS); }

// A thread that is there for every round of a race. Both go off at the same time.
typedef struct {
    pthread_t thread;
    void (*fn)(void *);
    void *arg;
    int go, done, quit;
} rival;
static void *rival_main(void *arg) {
    rival *r = (rival *)arg;
    for (int round = 1;; round++) {
        UNTIL(READ(r->go) >= round || READ(r->quit));
        if (READ(r->go) < round) return NULL;
        r->fn(r->arg);
        WRITE(r->done, round);
    }
}
static void rival_start(rival *r, void (*fn)(void *), void *arg) {
    memset(r, 0, sizeof *r);
    r->fn = fn;
    r->arg = arg;
    r->thread = start_thread(rival_main, r);
}
static void rival_go(rival *r) { COUNT(r->go); }
static void rival_wait(rival *r) { UNTIL(READ(r->done) == r->go); }
static void rival_stop(rival *r) {
    WRITE(r->quit, 1);
    join_thread(r->thread);
}

// So that all offsets of the two sides come about.
static void dawdle(void) {
    for (uint64_t n = RANDOM_BELOW(200); n > 0; n--) VOLT_CPU_RELAX();
}

// ---- queue

typedef struct {
    volt_queue_node node; // first, so that a node is its note
    int from, seq;
} note;
static note *note_of(volt_queue_node *n) { return (note *)(void *)n; }

typedef struct {
    volt_queue q;
    note n[3];
    int n_pushed, n_popped;
} few;
// Each once, those of one pusher in order. Gives 0 or -EAGAIN.
static int pop_all(few *f) {
    volt_queue_node *n;
    int rc;
    while ((rc = volt_queue_try_pop(&f->q, &n)) == 1) {
        CHECK_EQ(note_of(n)->seq, 0);
        note_of(n)->seq = 1;
        f->n_popped++;
    }
    return rc;
}
static void pop_few(void *arg) { (void)pop_all((few *)arg); }
static void close_few(void *arg) { volt_queue_close(&((few *)arg)->q); }
static void push_and_close(void *arg) {
    few *f = (few *)arg;
    for (int i = 0; i < 3; i++) f->n_pushed += volt_queue_push(&f->q, &f->n[i].node) == 0;
    volt_queue_close(&f->q);
}
static void push_close_pop(void *arg) {
    push_and_close(arg);
    CHECK_EQ(pop_all((few *)arg), 0);
}
// Whatever comes between the steps of whatever else: what was pushed is popped, once, and only then
// is it closed.
TEST(queue_pops_each_push_once_at_each_step) {
    void (*const pairs[][2])(void *) = {
        { pop_few, push_and_close },       { pop_few, close_few },
        { close_few, push_and_close },     { close_few, push_close_pop },
        { push_and_close, pop_few },       { push_and_close, close_few },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int n = 1, is_there = 1; is_there; n++) {
            few f;
            memset(&f, 0, sizeof f);
            is_there = meddled_at(n, pairs[i][0], pairs[i][1], &f);
            volt_queue_close(&f.q);
            CHECK_EQ(pop_all(&f), 0);
            CHECK_EQ(f.n_popped, f.n_pushed);
        }
}

TEST(queue_pops_several_at_once_and_in_order) {
    volt_queue q = VOLT_QUEUE_INIT;
    volt_queue_node *out[4];
    note n[5];
    CHECK_EQ(volt_queue_try_pop_n(&q, out, 4), -EAGAIN);
    CHECK_EQ(volt_queue_try_pop_n(&q, out, 0), -EINVAL);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(volt_queue_len(&q), i);
        CHECK_EQ(volt_queue_push(&q, &n[i].node), 0);
    }
    CHECK_EQ(volt_queue_try_pop_n(&q, out, 3), 3);
    for (int i = 0; i < 3; i++) CHECK(note_of(out[i]) == &n[i]);
    CHECK_EQ(volt_queue_len(&q), 2);
    CHECK_EQ(volt_queue_push(&q, &n[0].node), 0);
    CHECK_EQ(volt_queue_len(&q), 3); // taken from the stack already, and not
    CHECK_EQ(volt_queue_is_closed(&q), 0);
    volt_queue_close(&q);
    CHECK_EQ(volt_queue_is_closed(&q), 1);
    CHECK_EQ(volt_queue_len(&q), 3);
    CHECK_EQ(volt_queue_try_pop_n(&q, out, 4), 3);
    CHECK(note_of(out[0]) == &n[3] && note_of(out[1]) == &n[4] && note_of(out[2]) == &n[0]);
    CHECK_EQ(volt_queue_try_pop_n(&q, out, 4), 0);
}
typedef struct {
    volt_frame frame;
    volt_queue *q;
    volt_queue_node *out[4];
    int64_t n;
} gatherer;
static volt_poll gatherer_run(volt_cx *cx, void *arg) {
    gatherer *t = (gatherer *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->n, volt_queue_pop_n(cx, t->q, t->out, 4));
    VOLT_END(t->n);
}
// All messages that are pushed before the receiver runs are received at once.
ROOT_TEST_1(queue_pop_of_several_waits_for_the_first, {
    volt_queue q;
    note n[6];
    volt_handle h;
    volt_queue_node *out;
    int i, rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_queue_pop_n(cx, &s->q, &s->out, 0));
    CHECK_EQ(s->rc, -EINVAL);
    SPAWN(&s->h, gatherer_run, (gatherer){ .q = &s->q });
    while (count_waiting(&s->q.lock_, &s->q.waiters_) == 0) VOLT_AWAIT(volt_yield(cx));
    for (s->i = 0; s->i < 6; s->i++) CHECK_EQ(volt_queue_push(&s->q, &s->n[s->i].node), 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 4);
    CHECK_EQ(volt_queue_len(&s->q), 2);
    volt_queue_close(&s->q);
    VOLT_AWAIT(s->rc, volt_queue_pop_n(cx, &s->q, &s->out, 1));
    CHECK_EQ(s->rc, 1);
    VOLT_END(0);
}
TEST_OF_THREADS(queue_pop_of_several_by_a_thread_has_a_limit) {
    volt_queue q = VOLT_QUEUE_INIT;
    volt_queue_node *out[2];
    note n[2];
    CHECK_EQ(volt_queue_pop_n_sync(&q, out, 2, 0), -ETIMEDOUT);
    CHECK_EQ(volt_queue_pop_n_sync(&q, out, 0, 0), -EINVAL);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_queue_push(&q, &n[i].node), 0);
    CHECK_EQ(volt_queue_pop_n_sync(&q, out, 2, VOLT_NEVER), 2);
}

// The last of several senders closes the queue behind all that they have pushed.
typedef struct {
    volt_queue q;
    note n[4];
    int next;
} shared_queue;
static void *push_and_release(void *arg) {
    shared_queue *s = (shared_queue *)arg;
    dawdle();
    CHECK_EQ(volt_queue_push(&s->q, &s->n[COUNT(s->next) - 1].node), 0);
    volt_queue_release(&s->q);
    return NULL;
}
TEST_OF_THREADS(queue_closes_at_the_release_of_its_last_sender) {
    for (volt_time start = volt_now(); goes_on(start);) {
        pthread_t t[4];
        volt_queue_node *out;
        shared_queue s;
        int n = 0;
        memset(&s, 0, sizeof s);
        for (int i = 0; i < 4; i++) volt_queue_retain(&s.q);
        for (int i = 0; i < 4; i++) t[i] = start_thread(push_and_release, &s);
        while (volt_queue_pop_sync(&s.q, &out, VOLT_NEVER) == 1) n++;
        CHECK_EQ(n, 4);
        for (int i = 0; i < 4; i++) join_thread(t[i]);
    }
}
TEST(queue_is_retained_again_only_while_it_has_senders) {
    volt_queue q = VOLT_QUEUE_INIT;
    CHECK_EQ(volt_queue_try_retain(&q), -EPIPE);
    volt_queue_retain(&q);
    CHECK_EQ(volt_queue_try_retain(&q), 0);
    volt_queue_release(&q);
    CHECK_EQ(volt_queue_is_closed(&q), 0);
    volt_queue_release(&q);
    CHECK_EQ(volt_queue_is_closed(&q), 1);
    CHECK_EQ(volt_queue_try_retain(&q), -EPIPE);
    q = (volt_queue)VOLT_QUEUE_INIT;
    volt_queue_retain(&q);
    volt_queue_close(&q);
    CHECK_EQ(volt_queue_try_retain(&q), -EPIPE);
    CHECK_EQ(q.n_senders_, 1);
}
TEST_DIES(queue_release_without_retain_is_misuse, "volt_queue_release: no sender is retained") {
    volt_queue q = VOLT_QUEUE_INIT;
    volt_queue_release(&q);
}

static void race_to_push_and_close(void *arg) {
    dawdle();
    push_and_close(arg);
}
static void race_to_close(void *arg) {
    dawdle();
    close_few(arg);
}
static void pop_until_closed(few *f) {
    for (;;) {
        for (int i = 0; i < 300; i++)
            if (pop_all(f) == 0) return;
        sched_yield(); // the other side may need this processor
    }
}
TEST_OF_THREADS(queue_is_drained_before_it_is_closed) {
    few f;
    rival r;
    rival_start(&r, race_to_push_and_close, &f);
    for (volt_time start = volt_now(); goes_on(start);) {
        memset(&f, 0, sizeof f);
        rival_go(&r);
        pop_until_closed(&f);
        rival_wait(&r);
        CHECK_EQ(f.n_popped, 3);
    }
    rival_stop(&r);
}
// Both sides may close it, at the same time too.
TEST_OF_THREADS(queue_close_by_two_threads_loses_no_push) {
    few f;
    rival r[2];
    rival_start(&r[0], race_to_push_and_close, &f);
    rival_start(&r[1], race_to_close, &f);
    for (volt_time start = volt_now(); goes_on(start);) {
        memset(&f, 0, sizeof f);
        for (int k = 0; k < 2; k++) rival_go(&r[k]);
        pop_until_closed(&f);
        for (int k = 0; k < 2; k++) rival_wait(&r[k]);
        CHECK_EQ(pop_all(&f), 0);
        CHECK_EQ(f.n_popped, f.n_pushed);
    }
    for (int k = 0; k < 2; k++) rival_stop(&r[k]);
}

enum { PUSHERS = 4, PUSHES = TEST__IS_SANITIZED ? 100 : 300 };
typedef struct {
    volt_queue q;
    note notes[PUSHERS][PUSHES];
    int n_pushers, last[PUSHERS];
} letterbox;
static void push_note(letterbox *b, int from, int seq) {
    note *n = &b->notes[from][seq];
    n->from = from;
    n->seq = seq;
    CHECK_EQ(volt_queue_push(&b->q, &n->node), 0);
}
static void pusher_leaves(letterbox *b) {
    if (__atomic_sub_fetch(&b->n_pushers, 1, __ATOMIC_ACQ_REL) == 0) volt_queue_close(&b->q);
}
static void check_note(letterbox *b, volt_queue_node *n) {
    CHECK_EQ(note_of(n)->seq, b->last[note_of(n)->from]++);
}
typedef struct {
    volt_frame frame;
    letterbox *b;
    int from, i;
} pusher;
static volt_poll pusher_run(volt_cx *cx, void *arg) {
    pusher *p = (pusher *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < PUSHES; p->i++) {
        push_note(p->b, p->from, p->i);
        if (RANDOM_BELOW(8) == 0) VOLT_AWAIT(volt_yield(cx));
    }
    pusher_leaves(p->b);
    VOLT_END(0);
}
static void *push_from_thread(void *arg) {
    letterbox *b = (letterbox *)arg;
    for (int i = 0; i < PUSHES; i++) {
        push_note(b, 0, i);
        if (RANDOM_BELOW(8) == 0) dawdle();
    }
    pusher_leaves(b);
    return NULL;
}
// The receiver gives up now and then, in each way; nothing is lost.
typedef struct {
    volt_frame frame;
    letterbox *b;
    volt_timer t;
    volt_arm in, out;
    volt_token_link link;
    volt_token *stop;
    volt_queue_node *n;
    int rc, way;
} popping;
static volt_poll pop_somehow(volt_cx *cx, void *arg) {
    popping *p = (popping *)arg;
    VOLT_BEGIN(cx, p);
    p->way = (int)RANDOM_BELOW(5);
    p->n = NULL;
    if (p->way == 0) VOLT_AWAIT(p->rc, volt_queue_pop(cx, &p->b->q, &p->n));
    if (p->way == 1)
        VOLT_AWAIT(p->rc, volt_within(cx, &p->t, VOLT_US(200),
                                      volt_queue_pop(cx, &p->b->q, &p->n)));
    if (p->way == 2) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&p->in, volt_queue_pop(cx, &p->b->q, &p->n)),
                               VOLT_ARM(&p->out, volt_yield(cx))));
        p->rc = (int)p->in.value;
    }
    if (p->way == 3) p->rc = volt_queue_try_pop(&p->b->q, &p->n);
    if (p->way == 4)
        VOLT_AWAIT(p->rc, volt_with_token(cx, &p->link, p->stop,
                                          volt_queue_pop(cx, &p->b->q, &p->n)));
    CHECK(p->rc >= 0 || p->rc == -ECANCELED || p->rc == (p->way == 1 ? -ETIMEDOUT : -EAGAIN));
    VOLT_END(p->rc);
}
typedef struct {
    volt_frame frame;
    letterbox *b;
    popping k;
    volt_token stop;
    int rc, n_popped;
} popper;
// Its result: how many it has had; and one million when it has seen the end.
enum { SAW_THE_END = 1000000 };
static volt_poll popper_run(volt_cx *cx, void *arg) {
    popper *p = (popper *)arg;
    VOLT_BEGIN(cx, p);
    p->k.b = p->b;
    p->k.stop = &p->stop;
    for (;;) {
        if (RANDOM_BELOW(100) == 0) volt_token_cancel(&p->stop);
        VOLT_AWAIT(p->rc, pop_somehow(cx, &p->k));
        if (p->rc == 1) check_note(p->b, p->k.n), p->n_popped++;
        if (p->rc == 0) VOLT_RETURN(SAW_THE_END + p->n_popped);
        if (p->rc < 0 && volt_is_cancelled(cx)) break;
        if (p->rc == -EAGAIN) VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(p->n_popped);
}
// Receivers come one after the other, each cancelled somewhere; tasks push, and where there are
// threads, one of them.
ROOT_TEST(queue_delivers_each_message_once_in_order, {
    letterbox b;
    volt_group g;
    volt_handle h;
    pthread_t thread;
    int i, n, rc, n_popped;
}) {
    VOLT_BEGIN(cx, s);
    s->b.n_pushers = PUSHERS;
    if (TEST_MOST_WORKERS > 1) s->thread = start_thread(push_from_thread, &s->b);
    else push_from_thread(&s->b);
    for (s->i = 1; s->i < PUSHERS; s->i++)
        GROUP_SPAWN(&s->g, pusher_run, (pusher){ .b = &s->b, .from = s->i });
    for (;;) {
        SPAWN(&s->h, popper_run, (popper){ .b = &s->b });
        for (s->n = (int)RANDOM_BELOW(200), s->i = 0; s->i < s->n; s->i++)
            VOLT_AWAIT(volt_yield(cx));
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK(s->rc >= 0);
        s->n_popped += s->rc % SAW_THE_END;
        if (s->rc >= SAW_THE_END) break;
    }
    CHECK_EQ(s->n_popped, PUSHERS * PUSHES);
    if (TEST_MOST_WORKERS > 1) join_thread(s->thread);
    VOLT_AWAIT(volt_group_wait(cx, &s->g));
    VOLT_END(0);
}


typedef struct {
    volt_frame frame;
    volt_queue *q;
    volt_queue_node **out;
    int64_t rc;
} taker;
static volt_poll taker_run(volt_cx *cx, void *arg) {
    taker *t = (taker *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, volt_queue_pop(cx, t->q, t->out));
    VOLT_END(t->rc);
}
static int is_awaited(volt_queue *q) { return count_waiting(&q->lock_, &q->waiters_) > 0; }
// Cancelled before the push and after it, before it could run: the message is for the next one.
ROOT_TEST_1(queue_cancelled_receiver_takes_nothing, {
    volt_queue q;
    note a;
    volt_queue_node *n;
    volt_handle h;
    int i, rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        s->n = NULL;
        SPAWN(&s->h, taker_run, (taker){ .q = &s->q, .out = &s->n });
        while (!is_awaited(&s->q)) VOLT_AWAIT(volt_yield(cx));
        if (s->i == 0) CHECK_EQ(volt_queue_push(&s->q, &s->a.node), 0);
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -ECANCELED);
        CHECK(!s->n);
        if (s->i == 1) CHECK_EQ(volt_queue_push(&s->q, &s->a.node), 0);
        CHECK_EQ(volt_queue_try_pop(&s->q, &s->n), 1);
        CHECK(s->n == &s->a.node);
    }
    SPAWN(&s->h, taker_run, (taker){ .q = &s->q, .out = &s->n });
    while (!is_awaited(&s->q)) VOLT_AWAIT(volt_yield(cx));
    volt_queue_close(&s->q);
    volt_queue_close(&s->q);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    s->a.from = 5;
    CHECK_EQ(volt_queue_push(&s->q, &s->a.node), -EPIPE); // still the caller's
    CHECK_EQ(volt_queue_try_pop(&s->q, &s->n), 0);
    CHECK_EQ(s->a.from, 5);
    VOLT_END(0);
}

// ---- oneshot

TEST(oneshot_takes_one_send_and_one_receive) {
    for (int i = 0; i < 2; i++) {
        volt_oneshot o = VOLT_ONESHOT_INIT;
        int64_t value = 5;
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EAGAIN);
        CHECK_EQ(volt_oneshot_send(&o, -7), 0);
        CHECK_EQ(volt_oneshot_is_closed(&o), 0);
        CHECK_EQ(volt_oneshot_send(&o, 8), -EPIPE); // once
        if (i == 1) volt_oneshot_close(&o); // the value sent before is still there
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), 0);
        CHECK_EQ(value, -7);
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EPIPE);
        CHECK_EQ(volt_oneshot_send(&o, 9), -EPIPE);
    }
}
// Two that receive, one in the middle of the other: one of them gets the value.
typedef struct {
    volt_oneshot o;
    int n_got;
} contest;
static void receive(void *arg) {
    contest *c = (contest *)arg;
    int64_t value = 0;
    int rc = volt_oneshot_try_recv(&c->o, &value);
    CHECK_EQ(rc, value == 7 ? 0 : -EPIPE);
    c->n_got += rc == 0;
}
TEST_OF_THREADS(oneshot_is_received_once) {
    for (int n = 1, is_there = 1; is_there; n++) {
        contest c;
        memset(&c, 0, sizeof c);
        CHECK_EQ(volt_oneshot_send(&c.o, 7), 0);
        is_there = meddled_at(n, receive, receive, &c);
        CHECK_EQ(c.n_got, 1);
        CHECK(is_there || n > 1);
    }
}
TEST(oneshot_has_its_value_until_it_is_received) {
    volt_oneshot o = VOLT_ONESHOT_INIT;
    int64_t value = 0;
    CHECK_EQ(volt_oneshot_has_value(&o), 0);
    CHECK_EQ(volt_oneshot_send(&o, 7), 0);
    CHECK_EQ(volt_oneshot_has_value(&o), 1);
    volt_oneshot_close(&o);
    CHECK_EQ(volt_oneshot_has_value(&o), 1);
    CHECK_EQ(volt_oneshot_try_recv(&o, &value), 0);
    CHECK_EQ(volt_oneshot_has_value(&o), 0);
}
TEST(oneshot_close_ends_send_and_receive) {
    volt_oneshot o = VOLT_ONESHOT_INIT;
    int64_t value = 5;
    CHECK_EQ(volt_oneshot_is_closed(&o), 0);
    CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EAGAIN);
    volt_oneshot_close(&o);
    CHECK_EQ(volt_oneshot_is_closed(&o), 1);
    CHECK_EQ(volt_oneshot_send(&o, 1), -EPIPE);
    CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EPIPE);
    CHECK_EQ(value, 5);
}

typedef struct {
    volt_frame frame;
    volt_oneshot *o;
    volt_timer t;
    int64_t rc;
} expecting;
static volt_poll expecting_run(volt_cx *cx, void *arg) {
    expecting *e = (expecting *)arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, volt_oneshot_recv(cx, e->o));
    VOLT_END(e->rc);
}
static int is_expected(volt_oneshot *o) {
    return count_waiting(&o->waitword_.lock_, &o->waitword_.waiters_) > 0;
}
ROOT_TEST(oneshot_recv_waits_for_send_or_close,
          { volt_oneshot o; volt_timer t; volt_handle h; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_oneshot_recv(cx, &s->o)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    for (s->i = 0; s->i < 200; s->i++) {
        s->o = (volt_oneshot)VOLT_ONESHOT_INIT;
        SPAWN(&s->h, expecting_run, (expecting){ .o = &s->o });
        if (s->i & 1) while (!is_expected(&s->o)) VOLT_AWAIT(volt_yield(cx));
        if (s->i & 2) CHECK_EQ(volt_oneshot_send(&s->o, s->i), 0);
        else volt_oneshot_close(&s->o);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->i & 2 ? s->i : -EPIPE);
    }
    VOLT_END(0);
}
ROOT_TEST(oneshot_passes_negative_value_unchanged, { volt_oneshot o; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_oneshot_send(&s->o, -ECANCELED), 0);
    VOLT_AWAIT(s->rc, volt_oneshot_recv(cx, &s->o));
    CHECK_EQ(s->rc, -ECANCELED); // looks like an error,
    VOLT_AWAIT(s->rc, volt_oneshot_recv(cx, &s->o));
    CHECK_EQ(s->rc, -EPIPE); // and is received
    s->o = (volt_oneshot)VOLT_ONESHOT_INIT;
    CHECK_EQ(volt_oneshot_send(&s->o, INT64_MIN), 0);
    VOLT_AWAIT(s->rc, volt_oneshot_recv(cx, &s->o));
    CHECK_EQ(s->rc, INT64_MIN);
    VOLT_END(0);
}
ROOT_TEST_1(oneshot_cancelled_receiver_takes_nothing, {
    volt_oneshot o;
    volt_handle h;
    int i, rc;
    int64_t value;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        s->o = (volt_oneshot)VOLT_ONESHOT_INIT;
        SPAWN(&s->h, expecting_run, (expecting){ .o = &s->o });
        while (!is_expected(&s->o)) VOLT_AWAIT(volt_yield(cx));
        if (s->i) CHECK_EQ(volt_oneshot_send(&s->o, 6), 0);
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -ECANCELED);
        CHECK_EQ(volt_oneshot_try_recv(&s->o, &s->value), s->i ? 0 : -EAGAIN);
        CHECK_EQ(volt_oneshot_send(&s->o, 6), s->i ? -EPIPE : 0);
    }
    VOLT_END(0);
}
// One thread sends, another one frees it as soon as it has the value.
typedef struct {
    volt_frame frame;
    volt_oneshot **o;
    int i;
    int64_t rc;
} opener;
enum { LETTERS = TEST__IS_SANITIZED ? 300 : 1000 };
static volt_poll opener_run(volt_cx *cx, void *arg) {
    opener *k = (opener *)arg;
    VOLT_BEGIN(cx, k);
    for (k->i = 0; k->i < LETTERS; k->i++) {
        VOLT_AWAIT(k->rc, volt_oneshot_recv(cx, k->o[k->i]));
        CHECK_EQ(k->rc, k->i % 4 ? k->i : -EPIPE);
        free(k->o[k->i]);
    }
    VOLT_END(0);
}
static void *send_letters(void *arg) {
    volt_oneshot **o = (volt_oneshot **)arg;
    for (int i = 0; i < LETTERS; i++) {
        if (i % 4 == 0) volt_oneshot_close(o[i]);
        else CHECK_EQ(volt_oneshot_send(o[i], i), 0);
        if (RANDOM_BELOW(4) == 0) dawdle();
    }
    return NULL;
}
TEST_OF_THREADS(oneshot_may_be_freed_by_its_receiver) {
    EACH_WORKERS(w) {
        static volt_oneshot *o[LETTERS];
        static opener k;
        memset(&k, 0, sizeof k);
        k.o = o;
        for (int i = 0; i < LETTERS; i++) {
            o[i] = (volt_oneshot *)calloc(1, sizeof *o[i]);
            CHECK(o[i]);
        }
        pthread_t t = start_thread(send_letters, o);
        CHECK_EQ(run_on(w, opener_run, &k), 0);
        join_thread(t);
    }
}
// The sender may stay inside its call for any time, at any point of it: the runtime of the
// task that has the value already ends all the same, and nothing is left of it.
typedef struct {
    volt_oneshot o;
    volt_queue q;
    note n;
    int at, is_queue, is_there, has_given_up;
} slow_sender;
static void take_your_time(void *arg) {
    struct timespec t = { .tv_nsec = 2000000 };
    (void)arg;
    nanosleep(&t, NULL);
}
static void send_either(void *arg) {
    slow_sender *k = (slow_sender *)arg;
    if (k->is_queue) CHECK_EQ(volt_queue_push(&k->q, &k->n.node), 0);
    else CHECK_EQ(volt_oneshot_send(&k->o, 1), 0);
}
static void *send_slowly(void *arg) {
    slow_sender *k = (slow_sender *)arg;
    UNTIL((k->is_queue ? is_awaited(&k->q) : is_expected(&k->o)) || READ(k->has_given_up));
    k->is_there = meddled_at(k->at, send_either, take_your_time, k);
    return NULL;
}
typedef struct {
    volt_frame frame;
    slow_sender *k;
    volt_queue_node *n;
    volt_timer t;
    int rc;
} patient;
static volt_poll patient_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    if (p->k->is_queue) VOLT_AWAIT(p->rc, volt_queue_pop(cx, &p->k->q, &p->n));
    else VOLT_AWAIT(p->rc, volt_oneshot_recv(cx, &p->k->o));
    VOLT_END(p->rc);
}
// The same, but it gives up: the sender may have found it there.
static volt_poll impatient_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_within(cx, &p->t, VOLT_US(300), p->k->is_queue
                                                               ? volt_queue_pop(cx, &p->k->q, &p->n)
                                                               : volt_oneshot_recv(cx, &p->k->o)));
    WRITE(p->k->has_given_up, 1);
    VOLT_END(p->rc == -ETIMEDOUT ? 1 : p->rc);
}
TEST_OF_THREADS(runtime_ends_while_sender_is_inside_its_call) {
    for (int i = 0; i < 4; i++)
        for (int at = 1, is_there = 1; is_there; at++) {
            slow_sender k;
            patient p;
            memset(&k, 0, sizeof k);
            memset(&p, 0, sizeof p);
            k.at = at;
            k.is_queue = i & 1;
            p.k = &k;
            pthread_t t = start_thread(send_slowly, &k);
            CHECK_EQ(run_on(2, i & 2 ? impatient_run : patient_run, &p), 1);
            join_thread(t);
            is_there = k.is_there;
        }
}

// The last push or close may still be inside the queue when the task that saw its effect frees it.
typedef struct {
    volt_queue q;
    note n;
} satchel;
typedef struct {
    volt_frame frame;
    satchel **all;
    volt_queue_node *n;
    int i, rc;
} emptier;
static volt_poll emptier_run(volt_cx *cx, void *arg) {
    emptier *k = (emptier *)arg;
    VOLT_BEGIN(cx, k);
    for (k->i = 0; k->i < LETTERS; k->i++) {
        VOLT_AWAIT(k->rc, volt_queue_pop(cx, &k->all[k->i]->q, &k->n));
        CHECK_EQ(k->rc, k->i % 4 != 0);
        free(k->all[k->i]);
    }
    VOLT_END(0);
}
static void *fill_satchels(void *arg) {
    satchel **all = (satchel **)arg;
    for (int i = 0; i < LETTERS; i++) {
        if (i % 4 == 0) volt_queue_close(&all[i]->q);
        else CHECK_EQ(volt_queue_push(&all[i]->q, &all[i]->n.node), 0);
        if (RANDOM_BELOW(4) == 0) dawdle();
    }
    return NULL;
}
TEST_OF_THREADS(queue_may_be_freed_by_its_receiver) {
    EACH_WORKERS(w) {
        static satchel *all[LETTERS];
        static emptier k;
        memset(&k, 0, sizeof k);
        k.all = all;
        for (int i = 0; i < LETTERS; i++) {
            all[i] = (satchel *)calloc(1, sizeof *all[i]);
            CHECK(all[i]);
        }
        pthread_t t = start_thread(fill_satchels, all);
        CHECK_EQ(run_on(w, emptier_run, &k), 0);
        join_thread(t);
    }
}

// ---- broadcast

static int send_int(volt_bcast *b, int v) { return volt_bcast_send(b, &v, sizeof v); }
// The message, or what try_recv gave, less 1000.
static int recv_int(volt_sub *s) {
    int v = 0, rc = volt_sub_try_recv(s, &v, sizeof v);
    return rc == 1 ? v : rc - 1000;
}
enum { NOTHING = -EAGAIN - 1000, ENDED = -1000, LAGS = -EOVERFLOW - 1000 };

TEST(bcast_delivers_to_each_open_subscriber) {
    int buf[4];
    char small;
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_sub s[3];
    CHECK_EQ(send_int(&b, 1), 0); // there is no subscriber
    for (int i = 0; i < 2; i++) volt_sub_open(&s[i], &b);
    CHECK_EQ(recv_int(&s[0]), NOTHING); // receives only later messages
    CHECK_EQ(send_int(&b, 2), 2);
    volt_sub_open(&s[2], &b);
    CHECK_EQ(send_int(&b, 3), 3);
    for (int i = 0; i < 2; i++) CHECK_EQ(recv_int(&s[i]), 2);
    for (int i = 0; i < 3; i++) CHECK_EQ(recv_int(&s[i]), 3);
    for (int i = 0; i < 3; i++) CHECK_EQ(recv_int(&s[i]), NOTHING);
    volt_sub_close(&s[1]);
    volt_sub_close(&s[1]); // again: nothing
    CHECK_EQ(send_int(&b, 4), 2);
    CHECK_EQ(volt_bcast_send(&b, &small, sizeof small), -EINVAL);
    CHECK_EQ(volt_sub_try_recv(&s[0], &small, sizeof small), -EINVAL);
    volt_sub_open(&s[1], &b);
    volt_bcast_close(&b);
    volt_bcast_close(&b);
    CHECK_EQ(send_int(&b, 5), -EPIPE);
    CHECK_EQ(recv_int(&s[0]), 4); // is drained first
    CHECK_EQ(recv_int(&s[0]), ENDED);
    CHECK_EQ(recv_int(&s[0]), ENDED);
    CHECK_EQ(recv_int(&s[1]), ENDED);
    for (int i = 0; i < 3; i++) volt_sub_close(&s[i]);
    volt_sub_open(&s[0], &b);
    CHECK_EQ(recv_int(&s[0]), ENDED);
}

// A subscriber that lags is told, exactly by how much, and goes on with the oldest that is left.
TEST(bcast_counts_lost_messages_exactly) {
    for (int cap = 1; cap <= 5; cap++)
        for (int n_sent = 0; n_sent <= 12; n_sent++)
            for (int n_read = 0; n_read <= cap && n_read <= n_sent; n_read++) {
                int buf[5], v = 0, lost = n_sent - n_read - cap;
                volt_bcast b = VOLT_BCAST_INIT(buf);
                volt_sub s;
                b.cap_ = (uint32_t)cap;
                volt_sub_open(&s, &b);
                for (int i = 0; i < n_read; i++) CHECK_EQ(send_int(&b, i), 1);
                for (int i = 0; i < n_read; i++) CHECK_EQ(recv_int(&s), i);
                for (int i = n_read; i < n_sent; i++) CHECK_EQ(send_int(&b, i), 1);
                if (lost > 0) CHECK_EQ(recv_int(&s), LAGS);
                CHECK_EQ(volt_sub_lost(&s), lost > 0 ? lost : 0);
                CHECK_EQ(volt_sub_lost(&s), 0);
                if (lost > 0 && n_sent % 2) { // again, before it has looked
                    CHECK_EQ(send_int(&b, n_sent), 1);
                    CHECK_EQ(volt_sub_try_recv(&s, &v, sizeof v), -EOVERFLOW);
                    CHECK_EQ(volt_sub_lost(&s), 1);
                    CHECK_EQ(recv_int(&s), n_sent + 1 - cap);
                    continue;
                }
                for (int i = n_read + (lost > 0 ? lost : 0); i < n_sent; i++)
                    CHECK_EQ(recv_int(&s), i);
                CHECK_EQ(recv_int(&s), NOTHING);
            }
}

enum { LISTENERS = 4, CALLS = TEST__IS_SANITIZED ? 200 : 500 };
typedef struct {
    volt_bcast b;
    int buf[8];
    int n_open;
} hall;
typedef struct {
    volt_frame frame;
    hall *hall;
    volt_sub s;
    volt_timer t;
    volt_arm a, b;
    int id, v, next, rc, way;
    uint64_t n_lost;
    int n_got;
} listener;
static volt_poll listener_run(volt_cx *cx, void *arg) {
    listener *l = (listener *)arg;
    VOLT_BEGIN(cx, l);
    volt_sub_open(&l->s, &l->hall->b);
    COUNT(l->hall->n_open);
    for (;;) {
        l->way = (int)RANDOM_BELOW(4);
        if (l->way == 0) VOLT_AWAIT(l->rc, volt_sub_recv(cx, &l->s, &l->v, sizeof l->v));
        if (l->way == 1)
            VOLT_AWAIT(l->rc, volt_within(cx, &l->t, VOLT_US(100),
                                          volt_sub_recv(cx, &l->s, &l->v, sizeof l->v)));
        if (l->way == 2) {
            VOLT_AWAIT(VOLT_SELECT(
                VOLT_ARM(&l->a, volt_sub_recv(cx, &l->s, &l->v, sizeof l->v)),
                VOLT_ARM(&l->b, volt_yield(cx))));
            l->rc = (int)l->a.value;
        }
        if (l->way == 3) l->rc = volt_sub_try_recv(&l->s, &l->v, sizeof l->v);
        if (l->rc == 0) break;
        if (l->rc == -EOVERFLOW) {
            uint64_t lost = volt_sub_lost(&l->s);
            CHECK(lost > 0);
            l->n_lost += lost;
            l->next += (int)lost;
        } else if (l->rc == 1) {
            CHECK_EQ(l->v, l->next); // none is skipped that is not counted
            l->next++;
            l->n_got++;
        } else {
            CHECK(l->rc == -EAGAIN || l->rc == -ETIMEDOUT || l->rc == -ECANCELED);
            if (l->rc == -EAGAIN) VOLT_AWAIT(volt_yield(cx));
        }
    }
    CHECK_EQ((uint64_t)l->n_got + l->n_lost, CALLS);
    volt_sub_close(&l->s);
    VOLT_END(0);
}
static void *call_out(void *arg) {
    hall *h = (hall *)arg;
    UNTIL(READ(h->n_open) == LISTENERS);
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(send_int(&h->b, i), LISTENERS);
        if (RANDOM_BELOW(8) == 0) dawdle();
    }
    volt_bcast_close(&h->b);
    return NULL;
}
TEST_OF_THREADS(bcast_lost_plus_received_equal_sent) {
    EACH_WORKERS(w) {
        static hall h;
        h = (hall){ .b = VOLT_BCAST_INIT(h.buf) };
        volt_rt *rt = create_on(w);
        volt_handle task[LISTENERS];
        for (int i = 0; i < LISTENERS; i++)
            RT_SPAWN(rt, &task[i], listener_run, (listener){ .hall = &h });
        pthread_t t = start_thread(call_out, &h);
        for (int i = 0; i < LISTENERS; i++) {
            int64_t rc;
            CHECK_EQ(volt_join_sync(&task[i], VOLT_NEVER, &rc), 0);
        }
        join_thread(t);
        CHECK_EQ(h.b.n_subs_, 0);
        destroy(rt);
    }
}

// A subscriber that is cancelled when it has been woken has received nothing.
typedef struct {
    volt_frame frame;
    volt_sub *s;
    volt_watcher *w;
    int *v;
    int rc;
} hearer;
static volt_poll hearer_run(volt_cx *cx, void *arg) {
    hearer *k = (hearer *)arg;
    VOLT_BEGIN(cx, k);
    if (k->s) VOLT_AWAIT(k->rc, volt_sub_recv(cx, k->s, k->v, sizeof *k->v));
    else VOLT_AWAIT(k->rc, volt_watcher_next(cx, k->w, k->v, sizeof *k->v));
    VOLT_END(k->rc);
}
ROOT_TEST_1(bcast_cancelled_subscriber_takes_nothing, {
    volt_bcast b;
    volt_sub sub;
    volt_handle h;
    int buf[2], i, v, rc;
    size_t before;
}) {
    VOLT_BEGIN(cx, s);
    s->b = (volt_bcast)VOLT_BCAST_INIT(s->buf);
    volt_sub_open(&s->sub, &s->b);
    for (s->i = 0; s->i < 2; s->i++) {
        SPAWN(&s->h, hearer_run, (hearer){ .s = &s->sub, .v = &s->v });
        while (count_waiting(&s->b.lock_, &s->b.waiters_) < 1) VOLT_AWAIT(volt_yield(cx));
        s->before = READ(test_heap.n_allocs);
        if (s->i) CHECK_EQ(send_int(&s->b, 5), 1);
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -ECANCELED);
        CHECK_EQ(s->v, 0);
        CHECK(!s->b.waiters_);
        CHECK_EQ(recv_int(&s->sub), s->i ? 5 : NOTHING);
        CHECK_EQ(READ(test_heap.n_allocs), s->before);
    }
    VOLT_AWAIT(s->rc, volt_sub_recv(cx, &s->sub, &s->v, 1));
    CHECK_EQ(s->rc, -EINVAL);
    SPAWN(&s->h, hearer_run, (hearer){ .s = &s->sub, .v = &s->v });
    while (count_waiting(&s->b.lock_, &s->b.waiters_) < 1) VOLT_AWAIT(volt_yield(cx));
    volt_bcast_close(&s->b);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// A subscription that lags has more to receive than the broadcast keeps.
TEST(bcast_counts_subscriptions_and_what_they_have_not_received) {
    int buf[2];
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_sub s[2];
    CHECK_EQ(volt_bcast_subs(&b), 0);
    for (int i = 0; i < 2; i++) volt_sub_open(&s[i], &b);
    CHECK_EQ(volt_bcast_subs(&b), 2);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(send_int(&b, i), 2);
        CHECK_EQ(volt_sub_len(&s[0]), i);
    }
    CHECK_EQ(recv_int(&s[0]), LAGS);
    CHECK_EQ(volt_sub_len(&s[0]), 2); // the lost one is counted no more
    CHECK_EQ(recv_int(&s[0]), 2);
    CHECK_EQ(volt_sub_len(&s[0]), 1);
    volt_sub_close(&s[1]);
    CHECK_EQ(volt_bcast_subs(&b), 1);
    volt_sub_close(&s[0]);
    CHECK_EQ(volt_bcast_subs(&b), 0);
}
TEST_DIES(bcast_len_of_closed_subscription_is_misuse,
          "volt_sub_len: the subscription is not open") {
    volt_sub s = { .bcast_ = NULL };
    (void)volt_sub_len(&s);
}
TEST(bcast_closes_at_the_release_of_its_last_sender) {
    int buf[2];
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_sub s;
    volt_sub_open(&s, &b);
    for (int i = 0; i < 2; i++) volt_bcast_retain(&b);
    volt_bcast_release(&b);
    CHECK_EQ(volt_bcast_is_closed(&b), 0);
    CHECK_EQ(send_int(&b, 1), 1);
    volt_bcast_release(&b);
    CHECK_EQ(volt_bcast_is_closed(&b), 1);
    CHECK_EQ(send_int(&b, 2), -EPIPE);
    CHECK_EQ(recv_int(&s), 1);
    CHECK_EQ(recv_int(&s), ENDED);
}
TEST(bcast_is_retained_again_only_while_it_has_senders) {
    int buf[1];
    volt_bcast b = VOLT_BCAST_INIT(buf);
    CHECK_EQ(volt_bcast_try_retain(&b), -EPIPE);
    volt_bcast_retain(&b);
    CHECK_EQ(volt_bcast_try_retain(&b), 0);
    volt_bcast_release(&b);
    CHECK_EQ(volt_bcast_is_closed(&b), 0);
    CHECK_EQ(volt_bcast_try_retain(&b), 0);
    volt_bcast_close(&b);
    CHECK_EQ(volt_bcast_try_retain(&b), -EPIPE);
    CHECK_EQ(b.n_senders_, 2);
}
TEST_DIES(bcast_release_without_retain_is_misuse, "volt_bcast_release: no sender is retained") {
    int buf[1];
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_bcast_release(&b);
}
typedef struct {
    volt_frame frame;
    volt_bcast *b;
    volt_watch *w;
    int64_t rc;
} lone;
static volt_poll lone_run(volt_cx *cx, void *arg) {
    lone *l = (lone *)arg;
    VOLT_BEGIN(cx, l);
    if (l->b) VOLT_AWAIT(l->rc, volt_bcast_wait_no_subs(cx, l->b));
    else VOLT_AWAIT(l->rc, volt_watch_wait_closed(cx, l->w));
    VOLT_END(l->rc);
}
// Neither the close of the broadcast nor that of one subscription ends the wait.
ROOT_TEST(bcast_wait_for_no_subscriptions_ends_with_the_last,
          { volt_bcast b; volt_sub sub[2]; volt_handle h; volt_timer t; int buf[1], i, rc; }) {
    VOLT_BEGIN(cx, s);
    s->b = (volt_bcast)VOLT_BCAST_INIT(s->buf);
    VOLT_AWAIT(s->rc, volt_bcast_wait_no_subs(cx, &s->b)); // there was none
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 2; s->i++) volt_sub_open(&s->sub[s->i], &s->b);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_bcast_wait_no_subs(cx, &s->b)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    SPAWN(&s->h, lone_run, (lone){ .b = &s->b });
    while (count_waiting(&s->b.lock_, &s->b.watchers_) == 0) VOLT_AWAIT(volt_yield(cx));
    volt_bcast_close(&s->b);
    volt_sub_close(&s->sub[0]);
    CHECK_EQ(count_waiting(&s->b.lock_, &s->b.watchers_), 1);
    volt_sub_close(&s->sub[1]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST_OF_THREADS(bcast_wait_of_a_thread_for_no_subscriptions_has_a_limit) {
    int buf[1];
    volt_bcast b = VOLT_BCAST_INIT(buf);
    volt_sub s;
    volt_sub_open(&s, &b);
    CHECK_EQ(volt_bcast_wait_no_subs_sync(&b, 0), -ETIMEDOUT);
    volt_sub_close(&s);
    CHECK_EQ(volt_bcast_wait_no_subs_sync(&b, VOLT_NEVER), 0);
}

// ---- watch

static int look_int(volt_watcher *r) {
    int v = 0, rc = volt_watcher_try_next(r, &v, sizeof v);
    return rc == 1 ? v : rc - 1000;
}
TEST(watch_gives_newest_unseen_value) {
    int value = 7, v = 8;
    uint32_t seen, later;
    volt_watch w = VOLT_WATCH_INIT(value);
    volt_watcher r[2];
    volt_watcher_open(&r[0], &w);
    CHECK_EQ(look_int(&r[0]), NOTHING); // the first value counts as seen
    CHECK_EQ(volt_watch_get(&w, &v, sizeof v, &seen), 0);
    CHECK_EQ(v, 7);
    for (v = 1; v <= 3; v++) CHECK_EQ(volt_watch_set(&w, &v, sizeof v), 0);
    CHECK_EQ(value, 3);
    volt_watcher_open(&r[1], &w);
    CHECK_EQ(look_int(&r[0]), 3); // the newest
    CHECK_EQ(look_int(&r[0]), NOTHING);
    CHECK_EQ(look_int(&r[1]), NOTHING);
    v = 9;
    CHECK_EQ(volt_watch_set_if(&w, &v, sizeof v, seen), -EAGAIN);
    CHECK_EQ(volt_watch_get(&w, &v, sizeof v, &seen), 0);
    CHECK_EQ(v, 3);
    v = 9;
    CHECK_EQ(volt_watch_set_if(&w, &v, sizeof v, seen), 0);
    CHECK_EQ(volt_watch_set_if(&w, &v, sizeof v, seen), -EAGAIN);
    CHECK_EQ(volt_watch_get(&w, &v, sizeof v, &later), 0);
    CHECK(v == 9 && later != seen);
    CHECK_EQ(volt_watch_get(&w, &v, sizeof v, NULL), 0);
    CHECK_EQ(volt_watch_set(&w, &v, sizeof v + 1), -EINVAL);
    CHECK_EQ(volt_watch_set_if(&w, &v, 1, later), -EINVAL);
    CHECK_EQ(volt_watch_get(&w, &v, 1, NULL), -EINVAL);
    CHECK_EQ(volt_watcher_try_next(&r[0], &v, 1), -EINVAL);
    volt_watch_close(&w);
    volt_watch_close(&w);
    CHECK_EQ(volt_watch_set(&w, &v, sizeof v), -EPIPE);
    CHECK_EQ(volt_watch_set_if(&w, &v, sizeof v, later), -EPIPE);
    CHECK_EQ(volt_watch_get(&w, &v, sizeof v, NULL), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(look_int(&r[i]), 9); // the new value first
        CHECK_EQ(look_int(&r[i]), ENDED);
    }
}
ROOT_TEST_1(watch_cancelled_watcher_sees_nothing, {
    volt_watch w;
    volt_watcher r;
    volt_handle h;
    int value, v, i, rc;
    size_t before;
}) {
    VOLT_BEGIN(cx, s);
    s->w = (volt_watch)VOLT_WATCH_INIT(s->value);
    volt_watcher_open(&s->r, &s->w);
    for (s->i = 0; s->i < 2; s->i++) {
        SPAWN(&s->h, hearer_run, (hearer){ .w = &s->r, .v = &s->v });
        while (count_waiting(&s->w.lock_, &s->w.waiters_) < 1) VOLT_AWAIT(volt_yield(cx));
        s->before = READ(test_heap.n_allocs);
        const int five = 5;
        if (s->i) CHECK_EQ(volt_watch_set(&s->w, &five, sizeof five), 0);
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -ECANCELED);
        CHECK_EQ(s->v, 0);
        CHECK(!s->w.waiters_);
        CHECK_EQ(look_int(&s->r), s->i ? 5 : NOTHING); // it has not seen it
        CHECK_EQ(READ(test_heap.n_allocs), s->before);
    }
    VOLT_AWAIT(s->rc, volt_watcher_next(cx, &s->r, &s->v, 1));
    CHECK_EQ(s->rc, -EINVAL);
    SPAWN(&s->h, hearer_run, (hearer){ .w = &s->r, .v = &s->v });
    while (count_waiting(&s->w.lock_, &s->w.waiters_) < 1) VOLT_AWAIT(volt_yield(cx));
    volt_watch_close(&s->w);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// Several threads change one value by set_if; no change is lost, and no watcher sees it go back,
// sees a torn value, or misses the last one.
enum { CHANGERS = 3, CHANGES = TEST__IS_SANITIZED ? 100 : 300 };
typedef struct {
    int a, b;
} pair;
typedef struct {
    volt_watch w;
    pair value;
    int n_changers, n_open;
} board;
static void change(board *b) {
    uint32_t seen;
    pair p;
    do {
        CHECK_EQ(volt_watch_get(&b->w, &p, sizeof p, &seen), 0);
        CHECK_EQ(p.a, p.b);
        p.a = ++p.b;
    } while (volt_watch_set_if(&b->w, &p, sizeof p, seen) == -EAGAIN);
}
static void changer_leaves(board *b) {
    if (__atomic_sub_fetch(&b->n_changers, 1, __ATOMIC_ACQ_REL) == 0) volt_watch_close(&b->w);
}
static void *change_from_thread(void *arg) {
    board *b = (board *)arg;
    UNTIL(READ(b->n_open) == LISTENERS);
    for (int i = 0; i < CHANGES; i++) change(b);
    changer_leaves(b);
    return NULL;
}
typedef struct {
    volt_frame frame;
    board *b;
    volt_watcher r;
    volt_timer t;
    pair p;
    int i, rc, last;
} reader;
static volt_poll changer_run(volt_cx *cx, void *arg) {
    reader *k = (reader *)arg;
    VOLT_BEGIN(cx, k);
    while (READ(k->b->n_open) < LISTENERS) VOLT_AWAIT(volt_yield(cx));
    for (k->i = 0; k->i < CHANGES; k->i++) {
        change(k->b);
        VOLT_AWAIT(volt_yield(cx));
    }
    changer_leaves(k->b);
    VOLT_END(0);
}
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *k = (reader *)arg;
    VOLT_BEGIN(cx, k);
    volt_watcher_open(&k->r, &k->b->w);
    COUNT(k->b->n_open);
    for (;;) {
        VOLT_AWAIT(k->rc, volt_within(cx, &k->t, VOLT_US(500),
                                      volt_watcher_next(cx, &k->r, &k->p, sizeof k->p)));
        if (k->rc == 0) break;
        if (k->rc == -ETIMEDOUT) continue;
        CHECK_EQ(k->rc, 1);
        CHECK(k->p.a == k->p.b && k->p.a > k->last);
        k->last = k->p.a;
    }
    VOLT_END(k->last);
}
TEST_OF_THREADS(watch_set_if_loses_no_change) {
    EACH_WORKERS(w) {
        static board b;
        b = (board){ .w = VOLT_WATCH_INIT(b.value), .n_changers = CHANGERS };
        volt_rt *rt = create_on(w);
        volt_handle h[LISTENERS];
        for (int i = 0; i < LISTENERS; i++) RT_SPAWN(rt, &h[i], reader_run, (reader){ .b = &b });
        for (int i = 1; i < CHANGERS; i++) RT_SPAWN(rt, NULL, changer_run, (reader){ .b = &b });
        pthread_t t = start_thread(change_from_thread, &b);
        for (int i = 0; i < LISTENERS; i++) {
            int64_t last;
            CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &last), 0);
            CHECK_EQ(last, CHANGERS * CHANGES);
        }
        join_thread(t);
        destroy(rt);
    }
}

TEST(watch_tells_whether_its_value_is_new) {
    int value = 1, v = 2;
    volt_watch w = VOLT_WATCH_INIT(value);
    volt_watcher r;
    volt_watcher_open(&r, &w);
    CHECK_EQ(volt_watcher_has_new(&r), 0);
    CHECK_EQ(volt_watch_set(&w, &v, sizeof v), 0);
    CHECK_EQ(volt_watcher_has_new(&r), 1);
    CHECK_EQ(volt_watcher_has_new(&r), 1); // asking is not seeing
    volt_watch_close(&w);
    CHECK_EQ(volt_watcher_has_new(&r), 1); // the last value can still be received
    CHECK_EQ(look_int(&r), 2);
    CHECK_EQ(volt_watcher_has_new(&r), -EPIPE);
}
TEST_DIES(watch_has_new_of_closed_watcher_is_misuse,
          "volt_watcher_has_new: the watcher is not open") {
    volt_watcher r = { .watch_ = NULL };
    (void)volt_watcher_has_new(&r);
}
TEST(watch_closes_at_the_last_release_of_either_side) {
    for (int side = VOLT_CHAN_SENDER; side <= VOLT_CHAN_RECEIVER; side++) {
        int value = 1;
        volt_watch w = VOLT_WATCH_INIT(value);
        volt_watch_retain(&w, VOLT_CHAN_SENDER | VOLT_CHAN_RECEIVER);
        volt_watch_retain(&w, side);
        volt_watch_release(&w, side);
        CHECK_EQ(volt_watch_is_closed(&w), 0);
        CHECK_EQ(volt_watch_set(&w, &value, sizeof value), 0);
        volt_watch_release(&w, side);
        CHECK_EQ(volt_watch_is_closed(&w), 1);
        CHECK_EQ(volt_watch_set(&w, &value, sizeof value), -EPIPE);
    }
}
TEST(watch_is_retained_again_only_while_both_sides_have_users) {
    const int both = VOLT_CHAN_SENDER | VOLT_CHAN_RECEIVER;
    int value = 1;
    volt_watch w = VOLT_WATCH_INIT(value);
    CHECK_EQ(volt_watch_try_retain(&w, VOLT_CHAN_SENDER), -EPIPE);
    volt_watch_retain(&w, VOLT_CHAN_SENDER);
    CHECK_EQ(volt_watch_try_retain(&w, both), -EPIPE);
    CHECK_EQ(volt_watch_try_retain(&w, VOLT_CHAN_RECEIVER), -EPIPE);
    CHECK_EQ(volt_watch_try_retain(&w, VOLT_CHAN_SENDER), 0);
    CHECK_EQ(w.n_senders_, 2);
    volt_watch_retain(&w, VOLT_CHAN_RECEIVER);
    CHECK_EQ(volt_watch_try_retain(&w, both), 0);
    CHECK_EQ(w.n_senders_, 3);
    CHECK_EQ(w.n_receivers_, 2);
    volt_watch_close(&w);
    CHECK_EQ(volt_watch_try_retain(&w, both), -EPIPE);
    CHECK_EQ(w.n_senders_, 3);
}
TEST_DIES(watch_release_without_retain_is_misuse, "volt_watch_release: no receiver is retained") {
    int value = 1;
    volt_watch w = VOLT_WATCH_INIT(value);
    volt_watch_release(&w, VOLT_CHAN_RECEIVER);
}
ROOT_TEST(watch_close_ends_the_waits_for_it,
          { volt_watch w; volt_handle h; volt_timer t; int value, rc; }) {
    VOLT_BEGIN(cx, s);
    s->w = (volt_watch)VOLT_WATCH_INIT(s->value);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_watch_wait_closed(cx, &s->w)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    SPAWN(&s->h, lone_run, (lone){ .w = &s->w });
    while (count_waiting(&s->w.lock_, &s->w.watchers_) == 0) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_watch_set(&s->w, &s->rc, sizeof s->rc), 0); // a set does not end it
    CHECK_EQ(count_waiting(&s->w.lock_, &s->w.watchers_), 1);
    volt_watch_close(&s->w);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_watch_wait_closed(cx, &s->w));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST_OF_THREADS(watch_wait_of_a_thread_for_the_close_has_a_limit) {
    int value = 1;
    volt_watch w = VOLT_WATCH_INIT(value);
    CHECK_EQ(volt_watch_wait_closed_sync(&w, 0), -ETIMEDOUT);
    volt_watch_close(&w);
    CHECK_EQ(volt_watch_wait_closed_sync(&w, VOLT_NEVER), 0);
}

TEST(chan_is_retained_again_only_while_both_sides_have_users) {
    int buf[1];
    const int both = VOLT_CHAN_SENDER | VOLT_CHAN_RECEIVER;
    volt_chan c = VOLT_CHAN_INIT(buf);
    CHECK_EQ(volt_chan_try_retain(&c, VOLT_CHAN_SENDER), -EPIPE);
    volt_chan_retain(&c, VOLT_CHAN_SENDER);
    CHECK_EQ(volt_chan_try_retain(&c, both), -EPIPE);
    CHECK_EQ(volt_chan_try_retain(&c, VOLT_CHAN_RECEIVER), -EPIPE);
    CHECK_EQ(volt_chan_try_retain(&c, VOLT_CHAN_SENDER), 0);
    CHECK_EQ(c.n_senders_, 2);
    volt_chan_retain(&c, VOLT_CHAN_RECEIVER);
    CHECK_EQ(volt_chan_try_retain(&c, both), 0);
    CHECK_EQ(c.n_senders_, 3);
    CHECK_EQ(c.n_receivers_, 2);
    volt_chan_close(&c);
    CHECK_EQ(volt_chan_try_retain(&c, both), -EPIPE);
    CHECK_EQ(c.n_senders_, 3);
}

// ---- a send that makes room

TEST(chan_send_over_drops_the_oldest_message_if_it_has_to) {
    int buf[2], v, old = 0, got = 0;
    volt_chan c = VOLT_CHAN_INIT(buf);
    for (v = 1; v <= 2; v++) CHECK_EQ(volt_chan_force_send(&c, &v, sizeof v, &old), 0);
    CHECK_EQ(volt_chan_force_send(&c, &v, sizeof v, &old), 1);
    CHECK_EQ(old, 1);
    v = 4;
    CHECK_EQ(volt_chan_force_send(&c, &v, sizeof v, NULL), 1);
    CHECK_EQ(volt_chan_force_send(&c, &v, 1, NULL), -EINVAL);
    for (v = 3; v <= 4; v++) {
        CHECK_EQ(volt_chan_try_recv(&c, &got, sizeof got), 1);
        CHECK_EQ(got, v);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_chan_try_reserve(&c), 0);
    CHECK_EQ(volt_chan_force_send(&c, &v, sizeof v, NULL), -EAGAIN);
    volt_chan_close(&c);
    CHECK_EQ(volt_chan_force_send(&c, &v, sizeof v, NULL), -EPIPE);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
    int v;
    int64_t rc;
} end;
static volt_poll sender_run(volt_cx *cx, void *arg) {
    end *e = (end *)arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, volt_chan_send(cx, e->c, &e->v, sizeof e->v));
    VOLT_END(e->rc);
}
static volt_poll receiver_run(volt_cx *cx, void *arg) {
    end *e = (end *)arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, volt_chan_recv(cx, e->c, &e->v, sizeof e->v));
    VOLT_END(e->rc == 1 ? e->v : e->rc);
}
// A message that was granted to a receiver stays, until that receiver has run.
ROOT_TEST_1(chan_send_over_takes_no_message_from_a_receiver,
            { volt_chan c; volt_handle h; int buf[1], v; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->c = (volt_chan)VOLT_CHAN_INIT(s->buf);
    SPAWN(&s->h, receiver_run, (end){ .c = &s->c });
    while (!s->c.receivers_) VOLT_AWAIT(volt_yield(cx));
    s->v = 1;
    CHECK_EQ(volt_chan_force_send(&s->c, &s->v, sizeof s->v, NULL), 0);
    s->v = 2;
    CHECK_EQ(volt_chan_force_send(&s->c, &s->v, sizeof s->v, NULL), -EAGAIN);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 1);
    VOLT_END(0);
}
// A send that waits keeps its turn.
ROOT_TEST_1(chan_send_over_leaves_waiting_sends_alone,
            { volt_chan c; volt_handle h; int buf[1], v, old, i; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->c = (volt_chan)VOLT_CHAN_INIT(s->buf);
    s->v = 1;
    CHECK_EQ(volt_chan_try_send(&s->c, &s->v, sizeof s->v), 0);
    SPAWN(&s->h, sender_run, (end){ .c = &s->c, .v = 3 });
    while (!s->c.senders_) VOLT_AWAIT(volt_yield(cx));
    s->v = 2;
    CHECK_EQ(volt_chan_force_send(&s->c, &s->v, sizeof s->v, &s->old), 1);
    CHECK_EQ(s->old, 1);
    for (s->i = 2; s->i <= 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_chan_recv(cx, &s->c, &s->v, sizeof s->v));
        CHECK_EQ(s->v, s->i);
    }
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST_1(chan_send_over_meets_a_receiver_that_waits,
            { volt_chan c; volt_handle h; int buf[1], v; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->c = (volt_chan)VOLT_CHAN_RENDEZVOUS(s->buf);
    s->v = 5;
    CHECK_EQ(volt_chan_force_send(&s->c, &s->v, sizeof s->v, NULL), -EAGAIN);
    SPAWN(&s->h, receiver_run, (end){ .c = &s->c });
    while (!s->c.receivers_) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(volt_chan_force_send(&s->c, &s->v, sizeof s->v, NULL), 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    VOLT_END(0);
}

// ---- sizes that are awaited, in a release build

ROOT_TEST(chan_await_of_another_size_gives_einval, { volt_chan c; int buf[2], v, rc; }) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 2);
    VOLT_AWAIT(s->rc, volt_chan_send(cx, &s->c, &s->v, 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_chan_recv(cx, &s->c, &s->v, sizeof s->v + 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_chan_send_n(cx, &s->c, &s->v, 1, 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_chan_recv_n(cx, &s->c, &s->v, 1, 1));
    CHECK_EQ(s->rc, -EINVAL);
    CHECK_EQ(volt_chan_len(&s->c), 0);
    VOLT_END(0);
}
