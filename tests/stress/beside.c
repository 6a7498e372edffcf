// SPDX-License-Identifier: MIT OR 0BSD
// Two calls that any thread may make, at once on one object; or one of them beside the shutdown of
// the runtime whose tasks wait for it, or beside the end of the object, which the last task that it
// lets through brings about. Here are the pairs that no model of tests/static/any_thread.txt
// explores: each test plays many rounds, and in each both calls begin at moments of chance.
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

// ---- two threads that begin at once

typedef struct {
    void (*left)(void *arg), (*right)(void *arg); // right: by the other thread
    void *arg;
    int round, here, go, n_over, is_end; // shared: numbers of rounds
    pthread_t other;
} pair;

// Short more often than long: calls take from 10 ns to some microseconds.
static void pause_by_chance(void) {
    for (int i = (int)RANDOM_BELOW(1u << RANDOM_BELOW(9)); i > 0; i--) VOLT_CPU_RELAX();
}
// Both are awake and on a processor when they begin, where there are two.
static void watch_for(const int *word, int round) {
    for (int i = 0; READ(*word) != round; i++)
        if (i < 2000) VOLT_CPU_RELAX();
        else sched_yield();
}
static void *right_main(void *arg) {
    pair *p = (pair *)arg;
    for (int round = 1;; round++) {
        watch_for(&p->round, round);
        if (p->is_end) return NULL;
        WRITE(p->here, round);
        watch_for(&p->go, round);
        pause_by_chance();
        p->right(p->arg);
        WRITE(p->n_over, round);
    }
}
static void pair_begin(pair *p) {
    memset(p, 0, sizeof *p);
    p->other = start_thread(right_main, p);
}
static void at_once(pair *p, void (*left)(void *), void (*right)(void *), void *arg) {
    int round = p->round + 1;
    p->left = left;
    p->right = right;
    p->arg = arg;
    WRITE(p->round, round);
    watch_for(&p->here, round);
    WRITE(p->go, round);
    pause_by_chance();
    left(arg);
    watch_for(&p->n_over, round);
}
static void pair_end(pair *p) {
    p->is_end = 1;
    WRITE(p->round, p->round + 1);
    join_thread(p->other);
}
static void nothing(void *arg) { (void)arg; }

// ---- a scene: objects, tasks that wait for one of them, and what a thread does to it

enum { GUESTS = 3, SENT = 2, NO_VALUE = 9 };
typedef struct things { // objects that may be freed by the last task that is let through
    volt_sem sem;
    volt_tracker tracker;
    volt_token token;
    volt_chan chan;
    volt_queue queue;
    volt_oneshot oneshot;
    volt_bcast bcast;
    volt_watch watch;
    int value, room[1], slots[8], ring[8];
} things;
typedef struct message {
    volt_queue_node node;
    int value;
} message;
typedef struct kind kind;
typedef struct scene {
    const kind *kind;
    volt_rt *rt;
    things t;
    volt_sub sub[GUESTS];
    volt_watcher watcher[GUESTS];
    message sent[GUESTS];
    int64_t rc[GUESTS];
    int is_shut, is_to_be_freed, is_shielded;
    int n_through, is_freed; // shared
    int taken, given;        // values, by the bit of each: by a thread
    int shutdown_rc;
} scene;
typedef struct guest {
    volt_frame frame;
    scene *s;
    volt_shield shield;
    int i, value;
    volt_queue_node *node;
    int64_t rc;
} guest;
struct kind {
    int n_guests;
    void (*init)(scene *s); // so that all guests wait
    volt_poll (*wait)(volt_cx *cx, guest *g);
    int (*count)(scene *s);    // how many wait
    void (*act)(void *scene);  // by a thread: lets guests through
    void (*judge)(scene *s);   // when all is over; not of what was freed
    int64_t gives[GUESTS];     // to each that is let through; NO_VALUE: what it received
};

static void poison(scene *s) {
    memset(&s->t, 0xdd, sizeof s->t);
    WRITE(s->is_freed, 1);
}
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest *g = (guest *)arg;
    VOLT_BEGIN(cx, g);
    if (g->s->is_shielded) volt_shield_begin(cx, &g->shield, VOLT_NEVER);
    VOLT_AWAIT(g->rc, g->s->kind->wait(cx, g));
    if (g->rc == 1 && g->node) g->value = ((message *)(void *)g->node)->value;
    if (g->rc == 1) g->rc = g->value;
    g->s->rc[g->i] = g->rc;
    if (COUNT(g->s->n_through) == g->s->kind->n_guests && g->s->is_to_be_freed) poison(g->s);
    VOLT_END(g->rc);
}

static void shut_down(void *arg) {
    scene *s = (scene *)arg;
    s->shutdown_rc = volt_shutdown(s->rt, VOLT_NEVER);
}
static void shut_down_and_destroy(void *arg) {
    scene *s = (scene *)arg;
    shut_down(arg);
    CHECK_EQ(READ(s->n_through), s->kind->n_guests);
    CHECK_EQ(volt_destroy(s->rt), 0);
}
// Each result is what this kind gives, or of a shutdown the cancellation.
static void judge_results(const scene *s) {
    for (int i = 0; i < s->kind->n_guests; i++) {
        if (s->is_shut && s->rc[i] == -ECANCELED) continue;
        if (s->kind->gives[i] != NO_VALUE) CHECK_EQ(s->rc[i], s->kind->gives[i]);
        else CHECK(s->rc[i] > 0 && s->rc[i] < NO_VALUE);
    }
}
static void scene_begin(scene *s, const kind *k, volt_rt *rt) {
    memset(s, 0, sizeof *s);
    s->kind = k;
    s->rt = rt;
    k->init(s);
}
// The guests come, and wait in most rounds; then the thread acts, and beside it `right` is done.
static void scene_play(scene *s, pair *p, void (*right)(void *)) {
    volt_handle h[GUESTS];
    int is_early = RANDOM_BELOW(4) == 0; // drawn once: the loop below spins many times
    for (int i = 0; i < s->kind->n_guests; i++)
        RT_SPAWN(s->rt, &h[i], guest_run, (guest){ .s = s, .i = i });
    UNTIL(is_early || s->kind->count(s) == s->kind->n_guests);
    at_once(p, s->kind->act, right, s);
    for (int i = 0; i < s->kind->n_guests; i++) {
        if (s->is_shut) CHECK_EQ(volt_try_join(&h[i], &s->rc[i]), 0);
        else CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &s->rc[i]), 0);
    }
    judge_results(s);
}

// Beside a shutdown: a runtime for each round.
static void beside_a_shutdown(const kind *k, uint32_t workers) {
    static scene s;
    pair p;
    pair_begin(&p);
    for (int round = 0; round < 12; round++) {
        scene_begin(&s, k, create_on(workers));
        s.is_shut = 1;
        scene_play(&s, &p, shut_down);
        CHECK_EQ(s.shutdown_rc, 0);
        k->judge(&s);
        CHECK_EQ(volt_destroy(s.rt), 0);
        test_check_heap();
    }
    pair_end(&p);
}
// Beside another call.
static void beside(const kind *k, void (*other)(void *), uint32_t workers) {
    static scene s;
    pair p;
    volt_rt *rt = create_on(workers);
    pair_begin(&p);
    for (int round = 0; round < 80; round++) {
        scene_begin(&s, k, rt);
        scene_play(&s, &p, other);
        k->judge(&s);
    }
    pair_end(&p);
    destroy(rt);
}
// Beside the end of its object: the acting thread writes nothing there afterwards.
static void beside_the_end(const kind *k, uint32_t workers) {
    static scene s;
    pair p;
    volt_rt *rt = create_on(workers);
    pair_begin(&p);
    for (int round = 0; round < 80; round++) {
        scene_begin(&s, k, rt);
        s.is_to_be_freed = 1;
        scene_play(&s, &p, nothing);
        CHECK_EQ(READ(s.is_freed), 1);
        const unsigned char *bytes = (const unsigned char *)&s.t;
        for (size_t i = 0; i < sizeof s.t; i++) CHECK_EQ(bytes[i], 0xdd);
    }
    pair_end(&p);
    destroy(rt);
}
// Shielded, so that nothing but the call lets the last task through: the runtime may be gone when
// the call returns.
static void beside_a_destroy(const kind *k, uint32_t workers) {
    static scene s;
    volt_handle h[GUESTS];
    pair p;
    pair_begin(&p);
    for (int round = 0; round < 12; round++) {
        scene_begin(&s, k, create_on(workers));
        s.is_shielded = 1;
        for (int i = 0; i < k->n_guests; i++)
            RT_SPAWN(s.rt, &h[i], guest_run, (guest){ .s = &s, .i = i });
        UNTIL(k->count(&s) == k->n_guests);
        for (int i = 0; i < k->n_guests; i++) volt_detach(&h[i]);
        at_once(&p, k->act, shut_down_and_destroy, &s);
        CHECK_EQ(s.shutdown_rc, 0);
        judge_results(&s);
        k->judge(&s);
        test_check_heap();
    }
    pair_end(&p);
}
#define DESTROY_TEST(kind_)                                                                        \
    TEST_OF_THREADS(kind_##_does_not_touch_destroyed_runtime) {                                    \
        EACH_WORKERS(w) beside_a_destroy(&kind_, w);                                               \
    }
#define SHUTDOWN_TEST(kind_)                                                                       \
    TEST_OF_THREADS(kind_##_beside_shutdown_ends_every_wait) {                                     \
        EACH_WORKERS(w) beside_a_shutdown(&kind_, w);                                              \
    }
#define TWICE_TEST(kind_)                                                                          \
    TEST_OF_THREADS(kind_##_by_two_threads_ends_every_wait) {                                      \
        EACH_WORKERS(w) beside(&kind_, kind_.act, w);                                              \
    }
#define FREED_TEST(kind_)                                                                          \
    TEST_OF_THREADS(kind_##_does_not_touch_freed_object) {                                         \
        EACH_WORKERS(w) beside_the_end(&kind_, w);                                                 \
    }

// ---- what is closed: every wait ends

static scene *of(void *arg) { return (scene *)arg; }
#define GIVES(rc_) { rc_, rc_, rc_ }

static void sem_init(scene *s) { (void)s; }
static volt_poll sem_wait_(volt_cx *cx, guest *g) { return volt_sem_acquire(cx, &g->s->t.sem, 1); }
static int sem_count(scene *s) { return WAITING(s->t.sem.sema_); }
static void sem_act(void *arg) { volt_sem_close(&of(arg)->t.sem); }
static void sem_judge(scene *s) {
    CHECK_EQ(sem_count(s), 0);
    CHECK_EQ(volt_sem_try_acquire(&s->t.sem, 1), -EPIPE);
}
static const kind sem_close = { GUESTS, sem_init, sem_wait_, sem_count, sem_act, sem_judge,
                                GIVES(-EPIPE) };
SHUTDOWN_TEST(sem_close)
DESTROY_TEST(sem_close)
TWICE_TEST(sem_close)

// One is inside, and leaves before it is closed.
static void tracker_init(scene *s) { CHECK_EQ(volt_tracker_enter(&s->t.tracker), 0); }
static volt_poll tracker_wait_(volt_cx *cx, guest *g) {
    return volt_tracker_wait(cx, &g->s->t.tracker);
}
static int tracker_count(scene *s) { return WAITING(s->t.tracker.waitword_); }
static void tracker_act(void *arg) {
    volt_tracker_leave(&of(arg)->t.tracker);
    volt_tracker_close(&of(arg)->t.tracker);
}
static void tracker_closes(void *arg) { volt_tracker_close(&of(arg)->t.tracker); }
static void tracker_judge(scene *s) {
    CHECK_EQ(tracker_count(s), 0);
    CHECK_EQ(volt_tracker_enter(&s->t.tracker), -EPIPE);
}
static const kind tracker_close = { GUESTS, tracker_init, tracker_wait_, tracker_count, tracker_act,
                                    tracker_judge, GIVES(0) };
SHUTDOWN_TEST(tracker_close)
DESTROY_TEST(tracker_close)
TEST_OF_THREADS(tracker_close_by_two_threads_ends_every_wait) {
    EACH_WORKERS(w) beside(&tracker_close, tracker_closes, w);
}

static void token_init(scene *s) { volt_token_init(&s->t.token, NULL); }
static volt_poll token_wait_(volt_cx *cx, guest *g) { return volt_token_wait(cx, &g->s->t.token); }
static int token_count(scene *s) { return WAITING(s->t.token); }
static void token_act(void *arg) { volt_token_cancel(&of(arg)->t.token); }
static void token_judge(scene *s) {
    CHECK_EQ(volt_token_is_cancelled(&s->t.token), 1);
    CHECK_EQ(token_count(s), 0);
    volt_token_deinit(&s->t.token);
}
static const kind token_cancel = { GUESTS, token_init, token_wait_, token_count, token_act,
                                   token_judge, GIVES(0) };
SHUTDOWN_TEST(token_cancel)
DESTROY_TEST(token_cancel)
TWICE_TEST(token_cancel)

// A channel is waited for on each side that a close tells.
static int chan_count(scene *s) {
    volt_chan *c = &s->t.chan;
    return count_waiting(&c->lock_, &c->receivers_) + count_waiting(&c->lock_, &c->senders_) +
           count_waiting(&c->lock_, &c->watchers_);
}
static void chan_init(scene *s) {
    volt_chan_init(&s->t.chan, s->t.slots, sizeof s->t.slots[0], 8);
    volt_chan_retain(&s->t.chan, VOLT_CHAN_SENDER);
}
static volt_poll chan_wait_(volt_cx *cx, guest *g) {
    volt_chan *c = &g->s->t.chan;
    return g->i == 1 ? volt_chan_wait_closed(cx, c)
                     : volt_chan_recv(cx, c, &g->value, sizeof g->value);
}
static void chan_closes(void *arg) { volt_chan_close(&of(arg)->t.chan); }
static void chan_releases(void *arg) { volt_chan_release(&of(arg)->t.chan, VOLT_CHAN_SENDER); }
static void chan_closed_judge(scene *s) {
    int value = 1;
    CHECK_EQ(chan_count(s), 0);
    CHECK_EQ(volt_chan_is_closed(&s->t.chan), 1);
    CHECK_EQ(volt_chan_try_send(&s->t.chan, &value, sizeof value), -EPIPE);
    CHECK_EQ(volt_chan_try_recv(&s->t.chan, &value, sizeof value), 0);
}
static const kind chan_close = { GUESTS, chan_init, chan_wait_, chan_count, chan_closes,
                                 chan_closed_judge, GIVES(0) };
static const kind chan_release = { GUESTS, chan_init, chan_wait_, chan_count, chan_releases,
                                   chan_closed_judge, GIVES(0) };
SHUTDOWN_TEST(chan_close)
DESTROY_TEST(chan_close)
SHUTDOWN_TEST(chan_release)
FREED_TEST(chan_close)
FREED_TEST(chan_release)
TWICE_TEST(chan_close)
TEST_OF_THREADS(chan_close_beside_release_ends_every_wait) {
    EACH_WORKERS(w) beside(&chan_close, chan_releases, w);
}

static void queue_init(scene *s) { (void)s; }
static volt_poll queue_wait_(volt_cx *cx, guest *g) {
    return volt_queue_pop(cx, &g->s->t.queue, &g->node);
}
static int queue_count(scene *s) { return WAITING(s->t.queue); }
static void queue_closes(void *arg) { volt_queue_close(&of(arg)->t.queue); }
static void queue_closed_judge(scene *s) {
    volt_queue_node *node;
    CHECK_EQ(queue_count(s), 0);
    CHECK_EQ(volt_queue_push(&s->t.queue, &s->sent[0].node), -EPIPE);
    CHECK_EQ(volt_queue_try_pop(&s->t.queue, &node), 0);
}
static const kind queue_close = { 1, queue_init, queue_wait_, queue_count, queue_closes,
                                  queue_closed_judge, GIVES(0) };
SHUTDOWN_TEST(queue_close)
DESTROY_TEST(queue_close)
FREED_TEST(queue_close)

// The first guest is the receiver, the others are senders that would give up their work.
static void oneshot_init(scene *s) { (void)s; }
static volt_poll oneshot_wait_(volt_cx *cx, guest *g) {
    return g->i ? volt_oneshot_wait_closed(cx, &g->s->t.oneshot)
                : volt_oneshot_recv(cx, &g->s->t.oneshot);
}
static int oneshot_count(scene *s) { return WAITING(s->t.oneshot.waitword_); }
static void oneshot_closes(void *arg) { volt_oneshot_close(&of(arg)->t.oneshot); }
static void oneshot_closed_judge(scene *s) {
    int64_t value;
    CHECK_EQ(oneshot_count(s), 0);
    CHECK_EQ(volt_oneshot_is_closed(&s->t.oneshot), 1);
    CHECK_EQ(volt_oneshot_send(&s->t.oneshot, 1), -EPIPE);
    CHECK_EQ(volt_oneshot_try_recv(&s->t.oneshot, &value), -EPIPE);
}
static const kind oneshot_close = { GUESTS, oneshot_init, oneshot_wait_, oneshot_count,
                                    oneshot_closes, oneshot_closed_judge, { -EPIPE, 0, 0 } };
SHUTDOWN_TEST(oneshot_close)
DESTROY_TEST(oneshot_close)
FREED_TEST(oneshot_close)

static void bcast_init(scene *s) {
    s->t.bcast = (volt_bcast)VOLT_BCAST_INIT(s->t.ring);
    for (int i = 0; i < GUESTS; i++) volt_sub_open(&s->sub[i], &s->t.bcast);
}
static volt_poll bcast_wait_(volt_cx *cx, guest *g) {
    return volt_sub_recv(cx, &g->s->sub[g->i], &g->value, sizeof g->value);
}
static int bcast_count(scene *s) { return WAITING(s->t.bcast); }
static void bcast_closes(void *arg) { volt_bcast_close(&of(arg)->t.bcast); }
static void bcast_closed_judge(scene *s) {
    int value = 1;
    CHECK_EQ(bcast_count(s), 0);
    CHECK_EQ(volt_bcast_send(&s->t.bcast, &value, sizeof value), -EPIPE);
    for (int i = 0; i < GUESTS; i++)
        CHECK_EQ(volt_sub_try_recv(&s->sub[i], &value, sizeof value), 0);
}
static const kind bcast_close = { GUESTS, bcast_init, bcast_wait_, bcast_count, bcast_closes,
                                  bcast_closed_judge, GIVES(0) };
SHUTDOWN_TEST(bcast_close)
DESTROY_TEST(bcast_close)
FREED_TEST(bcast_close)
TWICE_TEST(bcast_close)

static void watch_init(scene *s) {
    s->t.watch = (volt_watch)VOLT_WATCH_INIT(s->t.value);
    for (int i = 0; i < GUESTS; i++) volt_watcher_open(&s->watcher[i], &s->t.watch);
}
static volt_poll watch_wait_(volt_cx *cx, guest *g) {
    return volt_watcher_next(cx, &g->s->watcher[g->i], &g->value, sizeof g->value);
}
static int watch_count(scene *s) { return WAITING(s->t.watch); }
static void watch_closes(void *arg) { volt_watch_close(&of(arg)->t.watch); }
static void watch_closed_judge(scene *s) {
    int value = 1;
    CHECK_EQ(watch_count(s), 0);
    CHECK_EQ(volt_watch_set(&s->t.watch, &value, sizeof value), -EPIPE);
    for (int i = 0; i < GUESTS; i++)
        CHECK_EQ(volt_watcher_try_next(&s->watcher[i], &value, sizeof value), 0);
}
static const kind watch_close = { GUESTS, watch_init, watch_wait_, watch_count, watch_closes,
                                  watch_closed_judge, GIVES(0) };
SHUTDOWN_TEST(watch_close)
DESTROY_TEST(watch_close)
FREED_TEST(watch_close)
TWICE_TEST(watch_close)

// ---- what is sent: each message is received once, by a task or afterwards

static void note(int *values, int value) {
    CHECK(value > 0 && value < 16 && !(*values & 1 << value));
    *values |= 1 << value;
}
static void note_guests(scene *s) {
    for (int i = 0; i < s->kind->n_guests; i++)
        if (s->rc[i] > 0) note(&s->taken, (int)s->rc[i]);
}

static volt_poll chan_recv_wait(volt_cx *cx, guest *g) {
    return volt_chan_recv(cx, &g->s->t.chan, &g->value, sizeof g->value);
}
// As many messages as guests: the guest that is let through last may free the channel.
static void chan_sends(void *arg) {
    scene *s = of(arg);
    for (int value = 1; value <= s->kind->n_guests; value++) {
        CHECK_EQ(volt_chan_try_send(&s->t.chan, &value, sizeof value), 0);
        note(&s->given, value);
    }
}
static void chan_sent_judge(scene *s) {
    int value, rc;
    note_guests(s);
    while ((rc = volt_chan_try_recv(&s->t.chan, &value, sizeof value)) == 1) note(&s->taken, value);
    CHECK_EQ(rc, -EAGAIN);
    CHECK_EQ(s->taken, s->given);
    CHECK_EQ(volt_chan_len(&s->t.chan), 0);
}
static const kind chan_send = { GUESTS, chan_init, chan_recv_wait, chan_count, chan_sends,
                                chan_sent_judge, GIVES(NO_VALUE) };
SHUTDOWN_TEST(chan_send)

// The channel is full, and the guests send.
static void chan_full_init(scene *s) {
    int value = 8;
    volt_chan_init(&s->t.chan, s->t.room, sizeof s->t.room[0], 1);
    CHECK_EQ(volt_chan_try_send(&s->t.chan, &value, sizeof value), 0);
    s->given = 1 << value;
}
static volt_poll chan_send_wait(volt_cx *cx, guest *g) {
    g->value = g->i + 1;
    return volt_chan_send(cx, &g->s->t.chan, &g->value, sizeof g->value);
}
static void chan_receives(void *arg) {
    scene *s = of(arg);
    int value, rc;
    for (int i = 0; i < SENT; i++) {
        rc = volt_chan_try_recv(&s->t.chan, &value, sizeof value);
        CHECK(rc == 1 || rc == -EAGAIN);
        if (rc == 1) note(&s->taken, value);
    }
}
static void chan_received_judge(scene *s) {
    int value;
    for (int i = 0; i < GUESTS; i++)
        if (s->rc[i] == 0) note(&s->given, i + 1);
    while (volt_chan_try_recv(&s->t.chan, &value, sizeof value) == 1) note(&s->taken, value);
    CHECK_EQ(s->taken, s->given);
    CHECK_EQ(chan_count(s), 0);
}
static const kind chan_recv = { GUESTS, chan_full_init, chan_send_wait, chan_count, chan_receives,
                                chan_received_judge, GIVES(0) };
SHUTDOWN_TEST(chan_recv)

static void queue_pushes(void *arg) {
    scene *s = of(arg);
    for (int i = 0; i < SENT; i++) {
        s->sent[i].value = i + 1;
        CHECK_EQ(volt_queue_push(&s->t.queue, &s->sent[i].node), 0);
        note(&s->given, i + 1);
    }
}
static void queue_drain(scene *s) {
    volt_queue_node *node = NULL;
    int rc;
    while ((rc = volt_queue_try_pop(&s->t.queue, &node)) == 1)
        note(&s->taken, ((message *)(void *)node)->value);
    CHECK_EQ(rc, -EAGAIN);
}
static void queue_pushed_judge(scene *s) {
    note_guests(s);
    queue_drain(s);
    CHECK_EQ(s->taken, s->given);
}
static const kind queue_push = { 1, queue_init, queue_wait_, queue_count, queue_pushes,
                                 queue_pushed_judge, GIVES(NO_VALUE) };
SHUTDOWN_TEST(queue_push)

// The guests push, each at its second poll, if it gets that far; the thread receives.
static volt_poll queue_push_wait(volt_cx *cx, guest *g) {
    message *m = &g->s->sent[g->i];
    volt_poll p = volt_yield(cx);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    m->value = g->i + 1;
    return volt_ready(volt_queue_push(&g->s->t.queue, &m->node));
}
static int queue_pushers(scene *s) { return READ(s->n_through); }
static void queue_pops(void *arg) {
    scene *s = of(arg);
    volt_queue_node *node = NULL;
    for (int i = 0; i < 4; i++)
        if (volt_queue_try_pop(&s->t.queue, &node) == 1)
            note(&s->taken, ((message *)(void *)node)->value);
}
static void queue_popped_judge(scene *s) {
    for (int i = 0; i < GUESTS; i++)
        if (s->rc[i] == 0) note(&s->given, i + 1);
    queue_drain(s);
    CHECK_EQ(s->taken, s->given);
}
static const kind queue_pop = { GUESTS, queue_init, queue_push_wait, queue_pushers, queue_pops,
                                queue_popped_judge, GIVES(0) };
SHUTDOWN_TEST(queue_pop)

static void oneshot_sends(void *arg) {
    CHECK_EQ(volt_oneshot_send(&of(arg)->t.oneshot, 5), 0);
    note(&of(arg)->given, 5);
}
static void oneshot_sent_judge(scene *s) {
    int64_t value;
    if (s->rc[0] > 0) note(&s->taken, (int)s->rc[0]);
    if (volt_oneshot_try_recv(&s->t.oneshot, &value) == 0) note(&s->taken, (int)value);
    CHECK_EQ(s->taken, s->given);
    CHECK_EQ(volt_oneshot_is_closed(&s->t.oneshot), 1);
    CHECK_EQ(oneshot_count(s), 0);
}
static const kind oneshot_send = { GUESTS, oneshot_init, oneshot_wait_, oneshot_count,
                                   oneshot_sends, oneshot_sent_judge, { 5, 0, 0 } };
SHUTDOWN_TEST(oneshot_send)

// The thread is sender and receiver; the guests wait for the end of both.
static volt_poll oneshot_closed_wait(volt_cx *cx, guest *g) {
    return volt_oneshot_wait_closed(cx, &g->s->t.oneshot);
}
static void oneshot_receives(void *arg) {
    int64_t value = 0;
    CHECK_EQ(volt_oneshot_try_recv(&of(arg)->t.oneshot, &value), -EAGAIN);
    oneshot_sends(arg);
    CHECK_EQ(volt_oneshot_try_recv(&of(arg)->t.oneshot, &value), 0);
    note(&of(arg)->taken, (int)value);
}
static const kind oneshot_recv = { GUESTS, oneshot_init, oneshot_closed_wait, oneshot_count,
                                   oneshot_receives, oneshot_sent_judge, GIVES(0) };
SHUTDOWN_TEST(oneshot_recv)

// Each subscriber gets all, in order.
static void bcast_sends(void *arg) {
    for (int value = 1; value <= SENT; value++)
        CHECK_EQ(volt_bcast_send(&of(arg)->t.bcast, &value, sizeof value), GUESTS);
}
static void bcast_sends_one(void *arg) {
    int value = 1;
    CHECK_EQ(volt_bcast_send(&of(arg)->t.bcast, &value, sizeof value), GUESTS);
}
static void bcast_sent_judge(scene *s) {
    int value, rc;
    for (int i = 0; i < GUESTS; i++) {
        int next = 1;
        if (s->rc[i] > 0) CHECK_EQ(s->rc[i], next++);
        while ((rc = volt_sub_try_recv(&s->sub[i], &value, sizeof value)) == 1)
            CHECK_EQ(value, next++);
        CHECK_EQ(rc, -EAGAIN);
        CHECK_EQ(next, SENT + 1);
        CHECK_EQ(volt_sub_lost(&s->sub[i]), 0);
    }
}
static const kind bcast_send = { GUESTS, bcast_init, bcast_wait_, bcast_count, bcast_sends,
                                 bcast_sent_judge, GIVES(1) };
static const kind bcast_send_one = { GUESTS, bcast_init, bcast_wait_, bcast_count, bcast_sends_one,
                                     bcast_sent_judge, GIVES(1) };
SHUTDOWN_TEST(bcast_send)
FREED_TEST(bcast_send_one)

// Another subscriber comes and goes; the last message lets the guests through.
static void bcast_visits(void *arg) {
    scene *s = of(arg);
    volt_sub mine;
    int value = 1;
    for (int i = 0; i < 4; i++) {
        volt_sub_open(&mine, &s->t.bcast);
        CHECK_EQ(volt_sub_try_recv(&mine, &value, sizeof value), -EAGAIN);
        volt_sub_close(&mine);
    }
    CHECK_EQ(volt_bcast_send(&s->t.bcast, &value, sizeof value), GUESTS);
    CHECK_EQ(volt_bcast_send(&s->t.bcast, (value = 2, &value), sizeof value), GUESTS);
}
static const kind bcast_sub = { GUESTS, bcast_init, bcast_wait_, bcast_count, bcast_visits,
                                bcast_sent_judge, GIVES(1) };
SHUTDOWN_TEST(bcast_sub)

// Each watcher sees the newest value, once.
static void watch_sets(void *arg) {
    int value = 7;
    CHECK_EQ(volt_watch_set(&of(arg)->t.watch, &value, sizeof value), 0);
}
static void watch_set_judge(scene *s) {
    int value = 0;
    for (int i = 0; i < GUESTS; i++) {
        if (s->rc[i] == -ECANCELED) {
            CHECK_EQ(volt_watcher_try_next(&s->watcher[i], &value, sizeof value), 1);
            CHECK_EQ(value, 7);
        }
        CHECK_EQ(volt_watcher_try_next(&s->watcher[i], &value, sizeof value), -EAGAIN);
    }
}
static const kind watch_set = { GUESTS, watch_init, watch_wait_, watch_count, watch_sets,
                                watch_set_judge, GIVES(7) };
SHUTDOWN_TEST(watch_set)
FREED_TEST(watch_set)

static void watch_looks(void *arg) {
    scene *s = of(arg);
    volt_watcher mine;
    int value = 0;
    volt_watcher_open(&mine, &s->t.watch);
    CHECK_EQ(volt_watcher_try_next(&mine, &value, sizeof value), -EAGAIN);
    watch_sets(arg);
    CHECK_EQ(volt_watcher_try_next(&mine, &value, sizeof value), 1);
    CHECK_EQ(value, 7);
    volt_watcher_open(&mine, &s->t.watch);
    CHECK_EQ(volt_watcher_try_next(&mine, &value, sizeof value), -EAGAIN);
}
static const kind watch_watcher = { GUESTS, watch_init, watch_wait_, watch_count, watch_looks,
                                    watch_set_judge, GIVES(7) };
SHUTDOWN_TEST(watch_watcher)

// ---- two calls at once on one object that no task waits for

typedef struct {
    volt_chan chan;
    volt_bcast bcast;
    volt_watch watch;
    volt_token root;
    int slots[64], ring[64], value;
    int n_sent[2], seen[2], is_up; // of the left and of the right side
    volt_sub sub;
    volt_watcher watcher[2];
    volt_token child[2][4];
    volt_hook hook[8];
    int n_hooks, n_called;
} desk;
enum { SENDS = 20 };
enum { DESK_ROUNDS = 300 };
static void play_desks(void (*init)(desk *), void (*left)(void *), void (*right)(void *),
                       void (*judge)(desk *)) {
    static desk d;
    pair p;
    pair_begin(&p);
    for (int round = 0; round < DESK_ROUNDS; round++) {
        memset(&d, 0, sizeof d);
        init(&d);
        at_once(&p, left, right, &d);
        judge(&d);
    }
    pair_end(&p);
}
#define DESK_TEST(name_, init_, left_, right_, judge_)                                             \
    TEST_OF_THREADS(name_) { play_desks(init_, left_, right_, judge_); }

// Messages until it is closed; behind that none is taken, but what was reserved before.
static void desk_chan(desk *d) {
    volt_chan_init(&d->chan, d->slots, sizeof d->slots[0], 64);
    volt_chan_retain(&d->chan, VOLT_CHAN_SENDER);
}
static void desk_sends(void *arg) {
    desk *d = (desk *)arg;
    int is_closed = 0, rc;
    for (int i = 1; i <= SENDS; i++) {
        int value = d->n_sent[0] + 1, is_reserved = i % 4 == 0;
        rc = is_reserved ? volt_chan_try_reserve(&d->chan)
                         : volt_chan_try_send(&d->chan, &value, sizeof value);
        CHECK(rc == -EPIPE || (rc == 0 && !is_closed));
        is_closed = rc < 0;
        if (is_closed) CHECK_EQ(volt_chan_is_closed(&d->chan), 1);
        else d->n_sent[0]++;
        if (!is_closed && is_reserved)
            CHECK_EQ(volt_chan_send_reserved(&d->chan, &value, sizeof value), 0);
    }
}
static void desk_closes(void *arg) { volt_chan_close(&((desk *)arg)->chan); }
static void desk_releases(void *arg) { volt_chan_release(&((desk *)arg)->chan, VOLT_CHAN_SENDER); }
static void desk_sent_judge(desk *d) {
    int value, n = 0, rc;
    CHECK_EQ(volt_chan_len(&d->chan), d->n_sent[0]);
    while ((rc = volt_chan_try_recv(&d->chan, &value, sizeof value)) == 1) CHECK_EQ(value, ++n);
    CHECK_EQ(rc, 0); // closed, and drained
    CHECK_EQ(n, d->n_sent[0]);
}
DESK_TEST(chan_send_beside_close_loses_no_message,
          desk_chan, desk_sends, desk_closes, desk_sent_judge)
DESK_TEST(chan_send_beside_release_loses_no_message,
          desk_chan, desk_sends, desk_releases, desk_sent_judge)

// All messages reach the receiver before it is told of the end.
static void desk_full_chan(desk *d) {
    desk_chan(d);
    for (int i = 1; i <= SENDS; i++) CHECK_EQ(volt_chan_try_send(&d->chan, &i, sizeof i), 0);
}
static void desk_receives(void *arg) {
    desk *d = (desk *)arg;
    int value, rc;
    while ((rc = volt_chan_try_recv(&d->chan, &value, sizeof value)) != 0) {
        if (rc == 1) CHECK_EQ(value, ++d->seen[0]);
        else CHECK_EQ(rc, -EAGAIN), sched_yield();
    }
}
static void desk_received_judge(desk *d) { CHECK_EQ(d->seen[0], SENDS); }
DESK_TEST(chan_recv_beside_close_gets_every_message, desk_full_chan, desk_receives, desk_closes,
          desk_received_judge)
DESK_TEST(chan_recv_beside_release_gets_every_message, desk_full_chan, desk_receives, desk_releases,
          desk_received_judge)

// Two senders: the subscriber gets the messages of each in order.
static void desk_bcast(desk *d) {
    d->bcast = (volt_bcast)VOLT_BCAST_INIT(d->ring);
    volt_sub_open(&d->sub, &d->bcast);
}
static void desk_sends_to_all(desk *d, int side) {
    int rc = 0;
    for (int i = 1; i <= SENDS; i++) {
        int value = 2 * i + side, was = rc;
        rc = volt_bcast_send(&d->bcast, &value, sizeof value);
        CHECK(rc == -EPIPE || (rc >= 1 && was >= 0));
        d->n_sent[side] += rc > 0;
    }
}
static void desk_sends_left(void *arg) { desk_sends_to_all((desk *)arg, 0); }
static void desk_sends_right(void *arg) { desk_sends_to_all((desk *)arg, 1); }
static void desk_bcast_closes(void *arg) { volt_bcast_close(&((desk *)arg)->bcast); }
static void desk_heard(desk *d, int end) {
    int value, rc;
    while ((rc = volt_sub_try_recv(&d->sub, &value, sizeof value)) == 1)
        CHECK_EQ(value / 2, ++d->seen[value % 2]);
    CHECK_EQ(rc, end);
    for (int side = 0; side < 2; side++) CHECK_EQ(d->seen[side], d->n_sent[side]);
}
static void desk_heard_all(desk *d) {
    desk_heard(d, -EAGAIN);
    CHECK_EQ(d->seen[0] + d->seen[1], 2 * SENDS);
}
static void desk_heard_the_end(desk *d) { desk_heard(d, 0); }
DESK_TEST(bcast_send_by_two_threads_keeps_their_order,
          desk_bcast, desk_sends_left, desk_sends_right, desk_heard_all)
DESK_TEST(bcast_send_beside_close_loses_no_message, desk_bcast, desk_sends_left, desk_bcast_closes,
          desk_heard_the_end)

// Subscribers come and go: a message tells how many there are, the one that stays and at most two.
static void desk_comes_and_goes(void *arg) {
    desk *d = (desk *)arg;
    int value = 0, n;
    for (int i = 0; i < SENDS / 2; i++) {
        volt_sub mine;
        volt_sub_open(&mine, &d->bcast);
        pause_by_chance();
        n = volt_bcast_send(&d->bcast, &value, sizeof value);
        CHECK(n == 2 || n == 3);
        CHECK_EQ(volt_sub_try_recv(&mine, &value, sizeof value), 1);
        volt_sub_close(&mine);
        n = volt_bcast_send(&d->bcast, &value, sizeof value);
        CHECK(n == 1 || n == 2);
    }
}
static void desk_has_one_sub(desk *d) {
    int value = 1, n = 0;
    CHECK_EQ(volt_bcast_send(&d->bcast, &value, sizeof value), 1);
    while (volt_sub_try_recv(&d->sub, &value, sizeof value) == 1) n++;
    CHECK_EQ(n, 2 * SENDS + 1);
}
static void desk_stays(void *arg) {
    desk *d = (desk *)arg;
    int value, rc;
    volt_sub_close(&d->sub);
    volt_sub_open(&d->sub, &d->bcast);
    while ((rc = volt_sub_try_recv(&d->sub, &value, sizeof value)) == -EAGAIN) sched_yield();
    CHECK_EQ(rc, 0);
}
static void desk_sub_is_told(desk *d) {
    int value;
    CHECK_EQ(volt_sub_try_recv(&d->sub, &value, sizeof value), 0);
    CHECK_EQ(d->bcast.n_subs_, 1);
}
DESK_TEST(bcast_counts_subscribers_of_two_threads,
          desk_bcast, desk_comes_and_goes, desk_comes_and_goes,
          desk_has_one_sub)
DESK_TEST(bcast_sub_open_beside_close_sees_the_end, desk_bcast, desk_stays, desk_bcast_closes,
          desk_sub_is_told)

// The last value that was taken is the one that stays.
static void desk_watch(desk *d) {
    d->watch = (volt_watch)VOLT_WATCH_INIT(d->value);
    for (int i = 0; i < 2; i++) volt_watcher_open(&d->watcher[i], &d->watch);
}
static void desk_sets(void *arg) {
    desk *d = (desk *)arg;
    int rc = 0;
    for (int value = 1; value <= SENDS; value++) {
        int was = rc;
        rc = volt_watch_set(&d->watch, &value, sizeof value);
        CHECK(rc == -EPIPE || (rc == 0 && was == 0));
        if (rc == 0) d->n_sent[0] = value;
    }
}
static void desk_watch_closes(void *arg) { volt_watch_close(&((desk *)arg)->watch); }
static void desk_shows_the_last(desk *d) {
    int value = -1;
    uint32_t version = 0;
    CHECK_EQ(volt_watch_get(&d->watch, &value, sizeof value, &version), 0);
    CHECK_EQ(value, d->n_sent[0]);
    CHECK_EQ(version, d->n_sent[0]);
    if (d->n_sent[0]) CHECK_EQ(volt_watcher_try_next(&d->watcher[0], &value, sizeof value), 1);
    CHECK_EQ(value, d->n_sent[0]);
    CHECK_EQ(volt_watcher_try_next(&d->watcher[0], &value, sizeof value), 0);
}
DESK_TEST(watch_set_beside_close_keeps_the_last_value,
          desk_watch, desk_sets, desk_watch_closes, desk_shows_the_last)

// Each new value is seen once by each, the last one also behind the end.
static void desk_watches(desk *d, int side) {
    int value = 0, rc;
    while ((rc = volt_watcher_try_next(&d->watcher[side], &value, sizeof value)) != 0) {
        if (rc == 1) CHECK(value > d->seen[side]);
        else CHECK_EQ(rc, -EAGAIN), sched_yield();
        if (rc == 1) d->seen[side] = value;
    }
}
static void desk_watches_left(void *arg) { desk_watches((desk *)arg, 0); }
static void desk_watches_right(void *arg) { desk_watches((desk *)arg, 1); }
static void desk_sets_and_closes(void *arg) {
    desk_sets(arg);
    desk_watch_closes(arg);
}
static void desk_left_saw_the_last(desk *d) { CHECK_EQ(d->seen[0], SENDS); }
static void desk_watch_over(desk *d) {
    desk_watch(d);
    desk_sets_and_closes(d);
}
static void desk_both_saw_the_last(desk *d) {
    CHECK_EQ(d->seen[0], SENDS);
    CHECK_EQ(d->seen[1], SENDS);
}
DESK_TEST(watcher_beside_close_sees_the_last_value,
          desk_watch, desk_watches_left, desk_sets_and_closes,
          desk_left_saw_the_last)
DESK_TEST(watchers_of_two_threads_see_the_last_value,
          desk_watch_over, desk_watches_left, desk_watches_right,
          desk_both_saw_the_last)

// Children of one token, made and given up by two threads: those that stay are cancelled with it.
static void desk_root(desk *d) { volt_token_init(&d->root, NULL); }
static void desk_has_children(desk *d, int side) {
    for (int i = 0; i < 4; i++) {
        volt_token grandchild;
        volt_token_init(&d->child[side][i], &d->root);
        volt_token_init(&grandchild, &d->child[side][i]);
        CHECK_EQ(volt_token_is_cancelled(&grandchild), 0);
        volt_token_deinit(&grandchild);
        if (i % 2) volt_token_deinit(&d->child[side][i]);
    }
}
static void desk_children_left(void *arg) { desk_has_children((desk *)arg, 0); }
static void desk_children_right(void *arg) { desk_has_children((desk *)arg, 1); }
static void desk_family_judge(desk *d) {
    volt_token_cancel(&d->root);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(volt_token_is_cancelled(&d->child[i % 2][i / 2]), i / 2 % 2 == 0);
    for (int i = 0; i < 8; i++)
        if (i / 2 % 2 == 0) volt_token_deinit(&d->child[i % 2][i / 2]);
    volt_token_deinit(&d->root); // stops the program if a child is left
}
DESK_TEST(token_cancels_children_made_by_two_threads,
          desk_root, desk_children_left, desk_children_right,
          desk_family_judge)

// A thread that sees it cancelled can add no hook any more; each that was added is called once.
static void count_call(void *arg) { COUNT(((desk *)arg)->n_called); }
static void desk_hooks(void *arg) {
    desk *d = (desk *)arg;
    while (d->n_hooks < 6) {
        CHECK_EQ(volt_token_hook(&d->root, &d->hook[d->n_hooks], count_call, d), 0);
        d->n_hooks++;
    }
    volt_token_cancel(&d->root);
}
static void desk_looks_at_token(void *arg) {
    desk *d = (desk *)arg;
    for (;;) {
        int n_called = READ(d->n_called); // before the look: none is called before the cancel
        if (volt_token_is_cancelled(&d->root)) break;
        CHECK_EQ(n_called, 0);
        sched_yield();
    }
    CHECK_EQ(volt_token_hook(&d->root, &d->hook[7], count_call, d), -ECANCELED);
    CHECK_EQ(volt_token_unhook(&d->hook[7]), 0);
}
static void desk_hooks_judge(desk *d) {
    CHECK_EQ(d->n_called, 6);
    for (int i = 0; i < 6; i++) CHECK_EQ(volt_token_unhook(&d->hook[i]), 0);
    volt_token_deinit(&d->root);
}
DESK_TEST(token_seen_cancelled_takes_no_more_hooks,
          desk_root, desk_hooks, desk_looks_at_token, desk_hooks_judge)

// ---- a condition variable: two signals are two tasks, a broadcast is all

enum { COND_GUESTS = 4 };
typedef struct {
    volt_mutex mutex;
    volt_cond cond;
    int n_through; // shared
} room;
typedef struct {
    volt_frame frame;
    room *r;
    int rc;
} sitter;
static volt_poll sitter_run(volt_cx *cx, void *arg) {
    sitter *s = (sitter *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->r->mutex));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_cond_wait(cx, &s->r->cond, &s->r->mutex));
    COUNT(s->r->n_through);
    volt_mutex_unlock(&s->r->mutex);
    VOLT_END(s->rc);
}
static void room_signals(void *arg) { volt_cond_signal(&((room *)arg)->cond); }
static void room_calls_all(void *arg) { volt_cond_broadcast(&((room *)arg)->cond); }
static void play_rooms(void (*right)(void *), int n_left, uint32_t workers) {
    static room r;
    volt_handle h[COND_GUESTS];
    int64_t rc;
    pair p;
    volt_rt *rt = create_on(workers);
    pair_begin(&p);
    for (int round = 0; round < 60; round++) {
        memset(&r, 0, sizeof r);
        for (int i = 0; i < COND_GUESTS; i++) RT_SPAWN(rt, &h[i], sitter_run, (sitter){ .r = &r });
        UNTIL(WAITING(r.cond) == COND_GUESTS);
        at_once(&p, room_signals, right, &r);
        CHECK_EQ(WAITING(r.cond), n_left);
        UNTIL(READ(r.n_through) == COND_GUESTS - n_left);
        volt_cond_broadcast(&r.cond);
        for (int i = 0; i < COND_GUESTS; i++) {
            CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
            CHECK_EQ(rc, 0);
        }
    }
    pair_end(&p);
    destroy(rt);
}
TEST_OF_THREADS(cond_two_signals_at_once_wake_two) {
    EACH_WORKERS(w) play_rooms(room_signals, COND_GUESTS - 2, w);
}
TEST_OF_THREADS(cond_signal_beside_broadcast_wakes_all) {
    EACH_WORKERS(w) play_rooms(room_calls_all, 0, w);
}

// ---- handles

enum { HELD = 12 };
typedef struct {
    volt_rt *rt;
    volt_handle h[HELD];
    int n_given;  // shared: the number of handles that are the other thread's
    int has_left; // shared: none is held any more
    int n_cancelled, rc;
} holder;
// Each handle is with one thread at a time: the thread that cancels a task hands it on at once, and
// the task ends meanwhile.
static void holder_cancels(void *arg) {
    holder *o = (holder *)arg;
    for (int i = 0; i < HELD; i++) {
        volt_cancel(&o->h[i]);
        WRITE(o->n_given, i + 1);
    }
}
static void give_up(holder *o, int i, int is_joined) {
    int64_t result = 0;
    int rc = 0;
    if (!is_joined) {
        volt_detach(&o->h[i]);
    } else {
        while ((rc = volt_try_join(&o->h[i], &result)) == -EAGAIN) sched_yield();
        CHECK_EQ(rc, 0);
        CHECK(result == -ECANCELED || result == i);
        o->n_cancelled += result == -ECANCELED;
    }
    CHECK(!volt_handle_is_set(&o->h[i]));
}
static void holder_receives(void *arg) {
    holder *o = (holder *)arg;
    for (int i = 0; i < HELD; i++) {
        UNTIL(READ(o->n_given) > i);
        give_up(o, i, i % 4 != 3);
    }
}
static void holder_gives_up(void *arg) {
    for (int i = 0; i < HELD; i++) give_up((holder *)arg, i, i % 4 != 3);
}
static void holder_shuts_down(void *arg) {
    holder *o = (holder *)arg;
    o->rc = volt_shutdown(o->rt, VOLT_NEVER);
}
// Every third one sleeps without end; the others may end before they are cancelled.
static void spawn_held(holder *o) {
    for (int i = 0; i < HELD; i++)
        RT_SPAWN(o->rt, &o->h[i], napper_run,
                 (napper){ .d = i % 3 ? VOLT_US(i) : VOLT_NEVER, .value = i });
}
TEST_OF_THREADS(handle_may_be_handed_from_cancel_to_join) {
    EACH_WORKERS(w) {
        static holder o;
        pair p;
        volt_rt *rt = create_on(w);
        pair_begin(&p);
        for (int round = 0; round < 60; round++) {
            o = (holder){ .rt = rt };
            spawn_held(&o);
            at_once(&p, holder_cancels, holder_receives, &o);
            CHECK(o.n_cancelled >= 3); // 0, 6 and 9; 3 is detached
        }
        pair_end(&p);
        destroy(rt);
    }
}
// The sweep of a shutdown cancels as volt_cancel does, beside the thread that gives the handles up.
TEST_OF_THREADS(handle_may_be_given_up_beside_shutdown) {
    EACH_WORKERS(w) {
        static holder o;
        pair p;
        pair_begin(&p);
        for (int round = 0; round < 12; round++) {
            o = (holder){ .rt = create_on(w) };
            spawn_held(&o);
            at_once(&p, holder_gives_up, holder_shuts_down, &o);
            CHECK_EQ(o.rc, 0);
            CHECK(o.n_cancelled >= 3);
            CHECK_EQ(volt_destroy(o.rt), 0);
            test_check_heap();
        }
        pair_end(&p);
    }
}
// Tasks that have ended are cancelled once more, and given up; the runtime goes with the last one.
static void holder_cancels_and_leaves(void *arg) {
    holder *o = (holder *)arg;
    for (int i = 0; i < HELD; i++) {
        volt_cancel(&o->h[i]);
        if (i == HELD - 1) WRITE(o->has_left, 1);
        if (i % 2) volt_detach(&o->h[i]);
        else give_up(o, i, 1);
    }
}
static void holder_destroys(void *arg) {
    holder *o = (holder *)arg;
    while ((o->rc = volt_destroy(o->rt)) == -EBUSY) {}
    CHECK_EQ(READ(o->has_left), 1);
}
TEST_OF_THREADS(destroy_waits_for_last_handle_of_ended_task) {
    EACH_WORKERS(w) {
        static holder o;
        pair p;
        pair_begin(&p);
        for (int round = 0; round < 12; round++) {
            o = (holder){ .rt = create_on(w) };
            spawn_held(&o);
            CHECK_EQ(volt_shutdown(o.rt, VOLT_NEVER), 0);
            CHECK_EQ(volt_destroy(o.rt), -EBUSY);
            at_once(&p, holder_cancels_and_leaves, holder_destroys, &o);
            CHECK_EQ(o.rc, 0);
            test_check_heap();
        }
        pair_end(&p);
    }
}

// ---- groups: cancelled from two threads, or while all are

enum { CHILDREN = 4 };
typedef struct {
    volt_rt *rt;
    volt_group *group; // shared: the root's, while it is to be cancelled
    volt_event go_on;  // the threads have left the group
    int n_ended, rc;
} nursery;
typedef struct {
    volt_frame frame;
    nursery *n;
    volt_group group;
    volt_shield shield;
    int i;
    int64_t rc;
} parent;
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = (parent *)arg;
    VOLT_BEGIN(cx, p);
    volt_shield_begin(cx, &p->shield, VOLT_NEVER);
    for (p->i = 0; p->i < CHILDREN; p->i++) {
        p->rc = VOLT_GROUP_SPAWN(cx, &p->group, napper_run,
                                 (napper){ .d = VOLT_NEVER, .n_ended = &p->n->n_ended });
        CHECK(p->rc == 0 || p->rc == -ESHUTDOWN);
        if (p->rc < 0) COUNT(p->n->n_ended);
    }
    WRITE(p->n->group, &p->group);
    VOLT_AWAIT(p->rc, volt_event_wait(cx, &p->n->go_on));
    CHECK_EQ(p->rc, 0);
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->group));
    volt_shield_end(cx, &p->shield);
    VOLT_END(p->rc);
}
static void nursery_cancels(void *arg) { volt_group_cancel(((nursery *)arg)->group); }
static void nursery_cancels_and_leaves(void *arg) {
    nursery_cancels(arg);
    volt_event_set(&((nursery *)arg)->go_on);
}
static void nursery_shuts_down(void *arg) {
    nursery *n = (nursery *)arg;
    n->rc = volt_shutdown(n->rt, VOLT_NEVER);
}
TEST_OF_THREADS(group_cancel_by_two_threads_ends_all_children) {
    EACH_WORKERS(w) {
        static nursery n;
        volt_handle h;
        int64_t rc;
        pair p;
        volt_rt *rt = create_on(w);
        pair_begin(&p);
        for (int round = 0; round < 60; round++) {
            n = (nursery){ .rt = rt };
            RT_SPAWN(rt, &h, parent_run, (parent){ .n = &n });
            UNTIL(READ(n.group));
            at_once(&p, nursery_cancels, nursery_cancels, &n);
            volt_event_set(&n.go_on);
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
            CHECK_EQ(rc, -ECANCELED); // of the first child that ended
            CHECK_EQ(n.n_ended, CHILDREN);
        }
        pair_end(&p);
        destroy(rt);
    }
}
TEST_OF_THREADS(group_cancel_beside_shutdown_ends_all_children) {
    EACH_WORKERS(w) {
        static nursery n;
        volt_handle h;
        int64_t rc;
        pair p;
        pair_begin(&p);
        for (int round = 0; round < 12; round++) {
            n = (nursery){ .rt = create_on(w) };
            RT_SPAWN(n.rt, &h, parent_run, (parent){ .n = &n });
            UNTIL(READ(n.group));
            at_once(&p, nursery_cancels_and_leaves, nursery_shuts_down, &n);
            CHECK_EQ(n.rc, 0);
            CHECK_EQ(volt_try_join(&h, &rc), 0);
            CHECK_EQ(rc, -ECANCELED);
            CHECK_EQ(n.n_ended, CHILDREN);
            CHECK_EQ(volt_destroy(n.rt), 0);
            test_check_heap();
        }
        pair_end(&p);
    }
}

// ---- descriptors

enum { LINES = 3 };
typedef struct {
    volt_rt *rt;
    int fd[LINES][2];
    int rc;
} wires;
typedef struct {
    volt_frame frame;
    volt_shield shield;
    int fd, is_shielded, *n_begun;
    int64_t n;
    char byte;
} listener;
static volt_poll listener_run(volt_cx *cx, void *arg) {
    listener *l = (listener *)arg;
    VOLT_BEGIN(cx, l);
    if (l->is_shielded) volt_shield_begin(cx, &l->shield, VOLT_NEVER);
    COUNT(*l->n_begun);
    VOLT_AWAIT(l->n, volt_read(cx, l->fd, &l->byte, 1));
    if (l->is_shielded) volt_shield_end(cx, &l->shield);
    VOLT_END(l->n);
}
// A worker that starts opens descriptors of its own, whose numbers must be no others' here.
static volt_rt *create_all_on(uint32_t workers) {
    test_starts_all = 1;
    volt_rt *rt = create_on(workers);
    UNTIL(volt__started(rt) == workers);
    return rt;
}
static void wires_open(wires *w, volt_handle *h, int is_shielded) {
    static int n_begun;
    int is_early = !is_shielded && RANDOM_BELOW(4) == 0; // drawn once: the loop spins many times
    WRITE(n_begun, 0);
    for (int i = 0; i < LINES; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fd[i]), 0);
        RT_SPAWN(w->rt, &h[i], listener_run,
                 (listener){ .fd = w->fd[i][0], .is_shielded = is_shielded, .n_begun = &n_begun });
    }
    UNTIL(is_early || READ(n_begun) == LINES);
}
static void wires_close_rest(const wires *w) {
    char byte;
    for (int i = 0; i < LINES; i++) {
        CHECK_EQ(fcntl(w->fd[i][0], F_GETFD), -1); // closed,
        CHECK_EQ(read(w->fd[i][1], &byte, 1), 0);  // and the other end is told
        CHECK_EQ(close(w->fd[i][1]), 0);
    }
}
static void wires_first(void *arg) { // the last one is closed by both
    wires *w = (wires *)arg;
    volt_rt_close(w->rt, w->fd[0][0]);
    volt_rt_close(w->rt, w->fd[2][0]);
}
static void wires_second(void *arg) {
    wires *w = (wires *)arg;
    volt_rt_close(w->rt, w->fd[2][0]);
    volt_rt_close(w->rt, w->fd[1][0]);
}
static void wires_all(void *arg) {
    for (int i = 0; i < LINES; i++) volt_rt_close(((wires *)arg)->rt, ((wires *)arg)->fd[i][0]);
}
static void wires_shut_down(void *arg) {
    wires *w = (wires *)arg;
    w->rc = volt_shutdown(w->rt, VOLT_NEVER);
}
static void wires_destroy(void *arg) {
    wires *w = (wires *)arg;
    wires_shut_down(arg);
    if (w->rc == 0) w->rc = volt_destroy(w->rt);
}
// Their numbers are neighbours in the table, and come again in the next round.
TEST_OF_THREADS(fd_close_by_two_threads_ends_every_read) {
    EACH_WORKERS(n_workers) {
        volt_handle h[LINES];
        int64_t rc;
        pair p;
        wires w = { .rt = create_all_on(n_workers) };
        pair_begin(&p);
        for (int round = 0; round < 60; round++) {
            wires_open(&w, h, 0);
            at_once(&p, wires_first, wires_second, &w);
            for (int i = 0; i < LINES; i++) {
                CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
                CHECK_EQ(rc, -EBADF);
            }
            wires_close_rest(&w);
        }
        pair_end(&p);
        destroy(w.rt);
    }
}
TEST_OF_THREADS(fd_close_beside_shutdown_ends_every_read) {
    EACH_WORKERS(n_workers) {
        volt_handle h[LINES];
        int64_t rc;
        pair p;
        pair_begin(&p);
        for (int round = 0; round < 12; round++) {
            wires w = { .rt = create_all_on(n_workers) };
            wires_open(&w, h, 0);
            at_once(&p, wires_all, wires_shut_down, &w);
            CHECK_EQ(w.rc, 0);
            for (int i = 0; i < LINES; i++) {
                CHECK_EQ(volt_try_join(&h[i], &rc), 0);
                CHECK(rc == -EBADF || rc == -ECANCELED);
            }
            wires_close_rest(&w);
            CHECK_EQ(volt_destroy(w.rt), 0);
            test_check_heap();
        }
        pair_end(&p);
    }
}
// Nothing but the close ends the last task, so that the runtime goes while the call returns.
TEST_OF_THREADS(fd_close_does_not_touch_destroyed_runtime) {
    EACH_WORKERS(n_workers) {
        volt_handle h[LINES];
        pair p;
        pair_begin(&p);
        for (int round = 0; round < 12; round++) {
            wires w = { .rt = create_all_on(n_workers) };
            wires_open(&w, h, 1);
            for (int i = 0; i < LINES; i++) volt_detach(&h[i]);
            at_once(&p, wires_all, wires_destroy, &w);
            CHECK_EQ(w.rc, 0);
            wires_close_rest(&w);
            test_check_heap();
        }
        pair_end(&p);
    }
}

// ---- poll sets

typedef struct {
    volt_pollset set;
    int fd[2];
} board;
static void board_set(board *b, int i, uint32_t events) {
    CHECK_EQ(volt_pollset_set(&b->set, b->fd[i], events), 0);
}
static void board_first(void *arg) { board_set((board *)arg, 0, VOLT_IN); }
static void board_second(void *arg) { board_set((board *)arg, 1, VOLT_OUT); }
static void board_first_for_writing(void *arg) { board_set((board *)arg, 0, VOLT_OUT); }
static void board_removes_first(void *arg) { board_set((board *)arg, 0, 0); }
TEST_OF_THREADS(pollset_set_by_two_threads_loses_no_change) {
    board b;
    volt_pollev ev[4];
    pair p;
    pair_begin(&p);
    CHECK_EQ(volt_pollset_open(&b.set), 0);
    for (int i = 0; i < 2; i++) CHECK((b.fd[i] = eventfd(1, EFD_NONBLOCK)) >= 0);
    for (int round = 0; round < 200; round++) {
        at_once(&p, board_first, board_second, &b); // two descriptors
        CHECK_EQ(volt_pollset_wait_sync(&b.set, ev, 4, VOLT_NEVER), 2);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(ev[i].events, ev[i].fd == b.fd[0] ? VOLT_IN : VOLT_OUT);
        board_set(&b, 1, 0);
        board_set(&b, 0, 0);
        at_once(&p, board_first, board_first_for_writing, &b); // one: which comes last stays
        CHECK_EQ(volt_pollset_wait_sync(&b.set, ev, 4, VOLT_NEVER), 1);
        CHECK_EQ(ev[0].fd, b.fd[0]);
        CHECK(ev[0].events == VOLT_IN || ev[0].events == VOLT_OUT);
        at_once(&p, board_removes_first, board_removes_first, &b);
        CHECK_EQ(volt_pollset_wait_sync(&b.set, ev, 4, 0), -ETIMEDOUT);
    }
    pair_end(&p);
    for (int i = 0; i < 2; i++) close(b.fd[i]);
    close(b.set.epfd_ - 1);
}

// ---- looks at a runtime, by two at once, while tasks come and go

enum { STAYING = 8, PASSING = 3000 };
typedef struct {
    volt_rt *rt;
    int n_ended, is_over; // shared
    int n_looks[2];
} window;
typedef struct {
    volt_frame frame;
    window *w;
    int i, rc;
} source;
static volt_poll source_run(volt_cx *cx, void *arg) {
    source *s = (source *)arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < PASSING; s->i++) {
        SPAWN(NULL, giver_run, (giver){ .n_ended = &s->w->n_ended });
        if (s->i % 8 == 0) VOLT_AWAIT(s->rc, volt_yield(cx));
    }
    WRITE(s->w->is_over, 1);
    VOLT_END(0);
}
static volt_poll staying_run(volt_cx *cx, void *arg) {
    napper *n = (napper *)arg;
    VOLT_BEGIN(cx, n);
    volt_name(cx, "it stays");
    COUNT(*n->n_ended);
    VOLT_AWAIT(n->result, volt_sleep(cx, VOLT_NEVER));
    VOLT_END(n->result);
}
// Sums never fall, and a sum of one worker is no more than that of all that is asked for later.
static void look_at_sums(window *w, int side) {
    volt_counters was, now, one;
    memset(&was, 0, sizeof was);
    do {
        CHECK_EQ(volt_worker_stats(w->rt, 0, &one), 0);
        volt_stats(w->rt, &now);
        CHECK(now.spawned >= was.spawned && now.completed >= was.completed);
        CHECK(now.polls >= was.polls && now.parks >= was.parks);
        CHECK(one.polls <= now.polls && one.completed <= now.completed);
        CHECK(now.workers_started <= now.workers && now.workers_started >= was.workers_started);
        was = now;
        w->n_looks[side]++;
    } while (!READ(w->is_over));
}
static void looks_left(void *arg) { look_at_sums((window *)arg, 0); }
static void looks_right(void *arg) { look_at_sums((window *)arg, 1); }
// Of the tasks that stay each is in each dump, once.
static int n_of(const char *text, const char *what) {
    int n = 0;
    while ((text = strstr(text, what)) != NULL) n++, text++;
    return n;
}
typedef struct {
    size_t len;
    char text[1 << 17];
} page;
static page the_page;
static int put_on_page(void *user, const char *text, size_t len) {
    page *p = (page *)user;
    if (p->len + len >= sizeof p->text) return -ENOSPC;
    memcpy(p->text + p->len, text, len);
    p->text[p->len += len] = 0;
    return 0;
}
static void dumps_right(void *arg) {
    window *w = (window *)arg;
    do {
        the_page.len = 0;
        int rc = volt_dump_to(w->rt, put_on_page, &the_page, 0);
        CHECK(rc == 0 || rc == -ENOSPC);
        if (rc == 0) CHECK_EQ(n_of(the_page.text, "it stays"), STAYING);
        w->n_looks[1] += rc == 0;
    } while (!READ(w->is_over));
}
static void look_from_two(void (*right)(void *), uint32_t workers) {
    volt_counters sums;
    pair p;
    int n_here = 0;
    window w = { .rt = create_on(workers) };
    pair_begin(&p);
    for (int i = 0; i < STAYING; i++)
        RT_SPAWN(w.rt, NULL, staying_run, (napper){ .n_ended = &n_here });
    UNTIL(READ(n_here) == STAYING);
    RT_SPAWN(w.rt, NULL, source_run, (source){ .w = &w });
    at_once(&p, looks_left, right, &w);
    CHECK(w.n_looks[0] > 0 && w.n_looks[1] > 0);
    UNTIL(READ(w.n_ended) == PASSING);
    pair_end(&p);
    CHECK_EQ(volt_shutdown(w.rt, VOLT_NEVER), 0);
    volt_stats(w.rt, &sums);
    CHECK_EQ(sums.spawned, PASSING + STAYING + 1);
    CHECK_EQ(sums.completed, PASSING + STAYING + 1);
    CHECK_EQ(volt_destroy(w.rt), 0);
    test_check_heap();
}
TEST_OF_THREADS(counters_read_by_two_threads_never_fall) {
    EACH_WORKERS(w) look_from_two(looks_right, w);
}
TEST_OF_THREADS(dump_beside_stats_shows_each_task_once) {
    EACH_WORKERS(w) look_from_two(dumps_right, w);
}
