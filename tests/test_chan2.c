// SPDX-License-Identifier: MIT OR 0BSD
// Channels of the other kinds: queue, oneshot, broadcast, watch. In a release build, where a wrong
// size is a result instead of being a misuse, but with volt's own assertions.
#define VOLT_DEBUG 0
#define VOLT_ASSERT(c_) VOLT__REQUIRE(c_, "assertion failed: " #c_)
#define VOLT_IMPLEMENTATION
// At one atomic operation of many, the other side does all that it does.
static void meddle(void);
#define __atomic_load_n(p_, order_)                                                                \
    __extension__({                                                                                \
        __typeof__(*(p_) + 0) loaded_ = __atomic_load_n(p_, order_);                               \
        meddle();                                                                                  \
        loaded_;                                                                                   \
    })
#define __atomic_compare_exchange_n(...) (meddle(), __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_store_n(...) (meddle(), __atomic_store_n(__VA_ARGS__))
#define __atomic_fetch_add(...) (meddle(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (meddle(), __atomic_fetch_sub(__VA_ARGS__))
#include "../volt.h"
#undef __atomic_load_n
#undef __atomic_compare_exchange_n
#undef __atomic_store_n
#undef __atomic_fetch_add
#undef __atomic_fetch_sub
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

// Calls fn(arg) with a meddler at its n-th atomic operation. 0: it has fewer.
static __thread int meddle_at;
static __thread void (*meddler)(void *);
static __thread void *meddler_arg;
static void meddle(void) {
    if (meddle_at > 0 && --meddle_at == 0) meddler(meddler_arg);
}
static int meddled_at(int n, void (*fn)(void *), void (*by)(void *), void *arg) {
    meddler = by;
    meddler_arg = arg;
    meddle_at = n;
    fn(arg);
    int was_there = meddle_at == 0;
    meddle_at = 0;
    return was_there;
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
TEST(queue_step_by_step) {
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
TEST_OF_THREADS(queue_closed_by_two_at_once) {
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

enum { PUSHERS = 4, PUSHES = TEST__IS_SANITIZED ? 200 : 1000 };
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
        if (RANDOM_BELOW(8) == 0) sched_yield();
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
    volt_link link;
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
        VOLT_AWAIT(p->rc, volt_unless(cx, &p->link, p->stop,
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
ROOT_TEST(queue_every_message_once_and_in_order, {
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
        for (s->n = (int)RANDOM_BELOW(100), s->i = 0; s->i < s->n; s->i++)
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
static int is_awaited(void *const *word) { return volt__word_waits(READ(*word)); }
// Cancelled before the push and after it, before it could run: the message is for the next one.
ROOT_TEST_1(queue_receiver_cancelled, {
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
        while (!is_awaited(&s->q.word_)) VOLT_AWAIT(volt_yield(cx));
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
    while (!is_awaited(&s->q.word_)) VOLT_AWAIT(volt_yield(cx));
    volt_queue_close(&s->q);
    volt_queue_close(&s->q);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_queue_push(&s->q, &s->a.node), -EPIPE);
    VOLT_END(0);
}

// ---- oneshot

TEST(oneshot_without_a_wait) {
    for (int i = 0; i < 2; i++) {
        volt_oneshot o = VOLT_ONESHOT_INIT;
        int64_t value = 5;
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EAGAIN);
        CHECK_EQ(volt_oneshot_send(&o, -7), 0);
        CHECK_EQ(volt_oneshot_is_closed(&o), 0);
        CHECK_EQ(volt_oneshot_send(&o, 8), -EPIPE); // once
        if (i == 1) volt_oneshot_close(&o); // by the receiver: what was sent is lost
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), i ? -EPIPE : 0);
        CHECK_EQ(value, i ? 5 : -7);
        CHECK_EQ(volt_oneshot_try_recv(&o, &value), -EPIPE);
        CHECK_EQ(volt_oneshot_send(&o, 9), -EPIPE);
    }
}
TEST(oneshot_closed_is_closed) {
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
ROOT_TEST(oneshot_waits, { volt_oneshot o; volt_timer t; volt_handle h; int64_t value; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_oneshot_recv(cx, &s->o)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    for (s->i = 0; s->i < 200; s->i++) {
        s->o = (volt_oneshot)VOLT_ONESHOT_INIT;
        SPAWN(&s->h, expecting_run, (expecting){ .o = &s->o });
        if (s->i & 1) while (!is_awaited(&s->o.word_)) VOLT_AWAIT(volt_yield(cx));
        if (s->i & 2) CHECK_EQ(volt_oneshot_send(&s->o, s->i), 0);
        else volt_oneshot_close(&s->o);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, s->i & 2 ? s->i : -EPIPE);
    }
    VOLT_END(0);
}
ROOT_TEST_1(oneshot_receiver_cancelled, { volt_oneshot o; volt_handle h; int i, rc; int64_t value; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        s->o = (volt_oneshot)VOLT_ONESHOT_INIT;
        SPAWN(&s->h, expecting_run, (expecting){ .o = &s->o });
        while (!is_awaited(&s->o.word_)) VOLT_AWAIT(volt_yield(cx));
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
TEST_OF_THREADS(oneshot_freed_by_the_receiver) {
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
// The sender may stay inside its call for as long as it likes, wherever it is: the runtime of who
// has the value already ends all the same, and nothing is left of it.
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
    void **word = k->is_queue ? &k->q.word_ : &k->o.word_;
    UNTIL(volt__word_waits(READ(*word)) || READ(k->has_given_up));
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
TEST_OF_THREADS(word_sender_stays_inside_its_call) {
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

// The queue itself is in the last message's way: who has seen the end frees it.
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
TEST_OF_THREADS(queue_freed_by_the_receiver) {
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
