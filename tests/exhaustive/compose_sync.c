// SPDX-License-Identifier: MIT OR 0BSD
// Every wait of synchronisation and of channels, in every composition, with every end: it
// completes, its time is up, it is cancelled before its turn or when that has come. Two wait for
// one thing, the first in the composition. Whatever becomes of it, nothing is lost: what came back
// is had by the second, messages are received once, and then all may be freed.
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "sync.h"

// ---- what is waited for: the kinds of sync.h, and these. _1, _4: its capacity

enum {
    BARRIER = N_KINDS,
    SEND_1,
    SEND_4,
    SEND_N,
    RECV_1,
    RECV_4,
    RECV_N,
    RESERVE_1,
    RESERVE_4,
    CLOSED,
    HAND_SEND, // of a rendezvous
    HAND_RECV,
    HAND_RESERVE,
    POP,
    ONESHOT,
    SUB_1,
    SUB_4,
    WATCHER,
    N_THINGS
};
// Messages: a waiter sends its number, from 0 on; the others are put in, or were there before.
enum { N_SEATS = 4, FROM_OTHERS = N_SEATS, N_GIVEN = 8, THERE = FROM_OTHERS + N_GIVEN,
       N_VALUES = THERE + 4, NO_VALUE = -1 };
typedef struct {
    volt_queue_node node; // first, so that a node is its note
    int value;
} note;
typedef struct {
    object o;
    volt_barrier barrier;
    volt_chan chan;
    volt_queue queue;
    volt_oneshot oneshot;
    volt_bcast bcast;
    volt_watch watch;
    int buf[4], value;
    note notes[N_GIVEN];
    int n_given, got[N_VALUES]; // how often each was received
    int was_told;               // plain: a task that is let through sees all earlier writes
} thing;
typedef struct { // state of one waiter
    int id;
    volt_sub sub;
    volt_watcher watcher;
    int v[2];
    volt_queue_node *node;
} seat;

static int is_any(int kind, int first, int last) { return kind >= first && kind <= last; }
static int sends(int kind) { return is_any(kind, SEND_1, SEND_N) || kind == HAND_SEND; }
static int receives(int kind) {
    return is_any(kind, RECV_1, RECV_N) || kind == HAND_RECV || kind >= POP;
}
static int reserves(int kind) {
    return is_any(kind, RESERVE_1, RESERVE_4) || kind == HAND_RESERVE;
}
static int is_hand(int kind) { return is_any(kind, HAND_SEND, HAND_RESERVE); }
// One at a time may wait for it; of a barrier all that are missing are let through together.
static int is_for_one(int kind) { return kind == BARRIER || kind == POP || kind == ONESHOT; }
// A task that is let through lets the next one through.
static int is_passed_on(int kind) {
    return (kind < N_PASSED && kind != READING) || kind == RESERVE_1;
}
// Once it is open it lets all through.
static int is_for_all(int kind) {
    return kind == READING || is_any(kind, EVENT, PAST) || kind == CLOSED || kind >= SUB_1;
}
// The task that opens it waits for the waiter.
static int is_met(int kind) {
    return kind == BARRIER || kind == HAND_SEND || kind == HAND_RESERVE;
}
static int64_t gives(int kind) {
    if (kind == SEND_N || receives(kind)) return 1;
    return kind < N_KINDS ? object_gives(kind) : 0;
}

static void thing_init(thing *t, int kind) {
    uint32_t cap = kind == SEND_1 || kind == RECV_1 || kind == RESERVE_1 ? 1 : 4;
    if (is_hand(kind)) cap = 0;
    memset(t, 0, sizeof *t);
    if (kind < N_KINDS) object_init(&t->o, kind);
    t->o.kind = kind;
    t->barrier = (volt_barrier)VOLT_BARRIER_INIT(2);
    volt_chan_init(&t->chan, t->buf, sizeof t->buf[0], cap);
    if (!is_any(kind, SEND_1, SEND_N) && !is_any(kind, RESERVE_1, RESERVE_4)) cap = 0;
    for (int v = THERE; cap > 0; cap--, v++)
        CHECK_EQ(volt_chan_try_send(&t->chan, &v, sizeof v), 0);
    t->bcast = (volt_bcast)VOLT_BCAST_INIT(t->buf);
    if (kind == SUB_1) t->bcast.cap_ = 1;
    t->watch = (volt_watch)VOLT_WATCH_INIT(t->value);
}
static void seat_take(seat *s, thing *t, int id) {
    memset(s, 0, sizeof *s);
    s->id = id;
    s->v[0] = sends(t->o.kind) || reserves(t->o.kind) ? id : NO_VALUE;
    s->v[1] = NO_VALUE;
    if (t->o.kind == SUB_1 || t->o.kind == SUB_4) volt_sub_open(&s->sub, &t->bcast);
    if (t->o.kind == WATCHER) volt_watcher_open(&s->watcher, &t->watch);
}

static volt_poll thing_wait(volt_cx *cx, thing *t, seat *s) {
    size_t size = sizeof s->v[0];
    switch (t->o.kind) {
    case BARRIER: return volt_barrier_wait(cx, &t->barrier);
    case SEND_1:
    case SEND_4:
    case HAND_SEND: return volt_chan_send(cx, &t->chan, s->v, size);
    case SEND_N: return volt_chan_send_n(cx, &t->chan, s->v, size, 2);
    case RECV_1:
    case RECV_4:
    case HAND_RECV: return volt_chan_recv(cx, &t->chan, s->v, size);
    case RECV_N: return volt_chan_recv_n(cx, &t->chan, s->v, size, 2);
    case RESERVE_1:
    case RESERVE_4:
    case HAND_RESERVE: return volt_chan_reserve(cx, &t->chan);
    case CLOSED: return volt_chan_wait_closed(cx, &t->chan);
    case POP: return volt_queue_pop(cx, &t->queue, &s->node);
    case ONESHOT: return volt_oneshot_recv(cx, &t->oneshot);
    case SUB_1:
    case SUB_4: return volt_sub_recv(cx, &s->sub, s->v, size);
    case WATCHER: return volt_watcher_next(cx, &s->watcher, s->v, size);
    default: return object_wait(cx, &t->o);
    }
}
static int thing_wait_sync(thing *t, seat *s, volt_time at_most) {
    int64_t value = 0;
    int rc;
    switch (t->o.kind) {
    case BARRIER: return volt_barrier_wait_sync(&t->barrier, at_most);
    case SEND_1:
    case SEND_4:
    case HAND_SEND: return volt_chan_send_sync(&t->chan, s->v, sizeof s->v[0], at_most);
    case RECV_1:
    case RECV_4:
    case HAND_RECV: return volt_chan_recv_sync(&t->chan, s->v, sizeof s->v[0], at_most);
    case POP: return volt_queue_pop_sync(&t->queue, &s->node, at_most);
    case ONESHOT:
        rc = volt_oneshot_recv_sync(&t->oneshot, at_most, &value);
        return rc < 0 ? rc : (int)value;
    default: return object_wait_sync(&t->o, at_most);
    }
}

// ---- by the others
static void received(thing *t, int v) {
    CHECK(v >= 0 && v < N_VALUES);
    CHECK_EQ(COUNT(t->got[v]), 1);
}
static void take_out(thing *t) {
    int v = NO_VALUE;
    CHECK_EQ(volt_chan_try_recv(&t->chan, &v, sizeof v), 1);
    received(t, v);
}
static void put_in(thing *t) {
    int n = t->n_given++, v = FROM_OTHERS + n;
    CHECK(n < N_GIVEN);
    t->notes[n].value = v;
    switch (t->o.kind) {
    case POP: CHECK_EQ(volt_queue_push(&t->queue, &t->notes[n].node), 0); break;
    case ONESHOT: CHECK_EQ(volt_oneshot_send(&t->oneshot, 1), 0); break;
    case SUB_1:
    case SUB_4: CHECK(volt_bcast_send(&t->bcast, &v, sizeof v) > 0); break;
    case WATCHER: CHECK_EQ(volt_watch_set(&t->watch, &v, sizeof v), 0); break;
    default: CHECK_EQ(volt_chan_try_send(&t->chan, &v, sizeof v), 0); break;
    }
}
static void tell(thing *t) {
    if (!t->was_told) t->was_told = 1;
}
// Lets one through, or all; not for kinds where both sides must meet.
static void thing_open(thing *t) {
    tell(t);
    if (t->o.kind < N_KINDS) object_open(&t->o);
    else if (t->o.kind == CLOSED) volt_chan_close(&t->chan);
    else if (receives(t->o.kind)) put_in(t);
    else take_out(t);
}
static volt_poll thing_meet(volt_cx *cx, thing *t, int *v) {
    if (t->o.kind == BARRIER) return volt_barrier_wait(cx, &t->barrier);
    return volt_chan_recv(cx, &t->chan, v, sizeof *v);
}
// By a task that was let through.
static void thing_pass(thing *t, seat *s) {
    CHECK_EQ(t->was_told, 1);
    if (t->o.kind < N_KINDS) object_pass(&t->o);
    else if (t->o.kind == RESERVE_1) volt_chan_unreserve(&t->chan);
    else if (reserves(t->o.kind))
        CHECK_EQ(volt_chan_send_reserved(&t->chan, s->v, sizeof s->v[0]), 0);
    else if (t->o.kind == POP) received(t, ((note *)(void *)s->node)->value);
    else if (is_any(t->o.kind, RECV_1, RECV_N) || t->o.kind == HAND_RECV) received(t, s->v[0]);
    else if (t->o.kind >= SUB_1) CHECK_EQ(s->v[0], FROM_OTHERS);
}
// By a task that was not: it has nothing.
static void thing_left(thing *t, seat *s) {
    if (t->o.kind == COND) volt_mutex_unlock(&t->o.mutex);
    CHECK_EQ(s->v[0], sends(t->o.kind) || reserves(t->o.kind) ? s->id : NO_VALUE);
    CHECK(!s->node);
}
// Of one side of a rendezvous. An arm can be met only when the poll of its select has ended: until
// then the other side passes it over.
static int n_to_be_met(volt_chan *c, volt__node *const *list) {
    int n = 0;
    volt__lock(&c->lock_);
    volt__node *node = *list;
    if (node) {
        do {
            volt__node *select = volt__select_of(node);
            n += !select || __atomic_load_n(&select->next_, __ATOMIC_ACQUIRE) !=
                                VOLT__SELECT_POLLING;
            node = node->next_;
        } while (node != *list);
    }
    volt__unlock(&c->lock_);
    return n;
}
static int n_waiting_for(thing *t) {
    volt_chan *c = &t->chan;
    if (t->o.kind < N_KINDS) return n_waiting(&t->o);
    return WAITING(t->barrier) + n_to_be_met(c, &c->senders_) + n_to_be_met(c, &c->receivers_) +
           count_waiting(&c->lock_, &c->watchers_) +
           WAITING(t->queue) + WAITING(t->oneshot.waitword_) + WAITING(t->bcast) +
           WAITING(t->watch);
}

// ---- what is left when all have gone

static int was_sent(const thing *t, int v, const int *is_through) {
    if (v < N_SEATS) return (sends(t->o.kind) || (reserves(t->o.kind) && t->o.kind != RESERVE_1)) &&
                            is_through[v];
    return v >= THERE || v - FROM_OTHERS < t->n_given;
}
// Each message was received once.
static void check_messages(thing *t, const int *is_through) {
    int v;
    volt_queue_node *n;
    uint32_t there = t->chan.cap_;
    if (!is_any(t->o.kind, SEND_1, SEND_N) && !is_any(t->o.kind, RESERVE_1, RESERVE_4)) there = 0;
    CHECK_EQ(t->chan.n_slots_granted_, 0);
    CHECK_EQ(t->chan.n_msgs_granted_, 0);
    while (volt_chan_try_recv(&t->chan, &v, sizeof v) == 1) received(t, v);
    while (volt_queue_try_pop(&t->queue, &n) == 1) received(t, ((note *)(void *)n)->value);
    if (t->o.kind == ONESHOT || t->o.kind >= SUB_1) return;
    for (v = 0; v < THERE + (int)there; v++) CHECK_EQ(t->got[v], was_sent(t, v, is_through));
}
// A receiver that was not let through has the message still before it; the others have had it.
static void check_seat(thing *t, seat *s, int is_through) {
    int v = NO_VALUE, kind = t->o.kind;
    if (kind == SUB_1 || kind == SUB_4) {
        CHECK_EQ(volt_sub_try_recv(&s->sub, &v, sizeof v), is_through ? -EAGAIN : 1);
        volt_sub_close(&s->sub);
    } else if (kind == WATCHER) {
        CHECK_EQ(volt_watcher_try_next(&s->watcher, &v, sizeof v), is_through ? -EAGAIN : 1);
    }
    CHECK_EQ(v, kind >= SUB_1 && !is_through ? FROM_OTHERS : NO_VALUE);
}
static void check_left(thing *t, const int *is_through) {
    CHECK_EQ(n_waiting_for(t), 0);
    CHECK_EQ(t->barrier.arrived_, 0);
    if (t->o.kind < N_PASSED) CHECK_EQ(object_try(&t->o), object_gives(t->o.kind));
    if (t->o.kind == RESERVE_1) {
        CHECK_EQ(volt_chan_try_reserve(&t->chan), 0);
        CHECK_EQ(volt_chan_try_reserve(&t->chan), -EAGAIN);
        volt_chan_unreserve(&t->chan);
    }
    check_messages(t, is_through);
    if (t->o.kind == SUB_1 || t->o.kind == SUB_4) CHECK_EQ(t->bcast.n_subs_, 0);
}

// ---- the compositions

enum {
    PLAIN,
    SELECT,
    SELECT_FIRST, // biased: the wait is the first arm
    SELECT_LAST,
    JOIN,
    TRY_JOIN,
    JOIN_ARRAY,
    TRY_JOIN_ARRAY,
    JOIN_ANY,
    WITHIN,
    BEFORE,
    UNLESS,
    UNLESS_CHILD, // of the token that is cancelled
    CHILD_OF_GROUP,
    SHIELDED,
    NESTED,
    N_WAYS
};
enum { COMPLETES, IS_LATE, IS_CANCELLED, LOSES_ITS_TURN, N_ENDS };

typedef struct {
    thing *t;
    int kind, way, end, is_alone; // alone: the second one comes when the first has gone
    volt_token stop[2];     // [1] is a child of [0]
    int partner_rc;         // result of the other arm or child once stop[0] is cancelled
    volt_group *group;      // of the way of that name
    int n_gone, rc[N_SEATS], is_through[N_SEATS];
    int n_back, place[N_SEATS]; // in which their waits ended, from 1 on
    seat seats[N_SEATS];
} scene;
typedef struct {
    volt_frame frame;
    scene *sc;
    seat *s; // NULL: the partner
    int64_t rc;
} half;
// The wait, or what is beside it, as a function.
static volt_poll half_run(volt_cx *cx, void *arg) {
    half *h = (half *)arg;
    VOLT_BEGIN(cx, h);
    if (h->s) VOLT_AWAIT(h->rc, thing_wait(cx, h->sc->t, h->s));
    else VOLT_AWAIT(h->rc, volt_token_wait(cx, &h->sc->stop[0]));
    VOLT_END(h->s || h->rc < 0 ? h->rc : h->sc->partner_rc);
}

typedef struct composed composed;
struct composed {
    volt_frame frame;
    scene *sc;
    seat *s;
    int way;
    volt_timer timer;
    volt_token_link link;
    volt_shield shield;
    volt_arm a, b;
    half halves[2];
    composed *inner;
    int64_t rc, value; // of the wait; of the whole
};
static volt_time limit_of(const scene *sc) {
    return sc->end == IS_LATE || sc->end == LOSES_ITS_TURN ? VOLT_MS(1) : VOLT_S(100);
}
static volt_poll wait_in(volt_cx *cx, const composed *c) {
    return thing_wait(cx, c->sc->t, c->s);
}
static volt_poll in_an_array(volt_cx *cx, composed *c) {
    switch (c->way) {
    case JOIN_ARRAY: return volt_join_all(cx, VOLT_EACH(half_run, c->halves));
    case TRY_JOIN_ARRAY: return volt_try_join_all(cx, VOLT_EACH(half_run, c->halves));
    default: return volt_join_any(cx, VOLT_EACH(half_run, c->halves));
    }
}
static volt_poll in_a_bracket(volt_cx *cx, composed *c) {
    volt_token *stop = c->sc->stop;
    switch (c->way) {
    case WITHIN: return volt_within(cx, &c->timer, limit_of(c->sc), wait_in(cx, c));
    case BEFORE: return volt_before(cx, &c->timer, c->value, wait_in(cx, c));
    case UNLESS: return volt_with_token(cx, &c->link, &stop[0], wait_in(cx, c));
    case UNLESS_CHILD: return volt_with_token(cx, &c->link, &stop[1], wait_in(cx, c));
    default: return wait_in(cx, c);
    }
}
static volt_poll in_arms(volt_cx *cx, composed *c) {
    VOLT_BEGIN(cx, c);
    if (c->way == SELECT)
        VOLT_AWAIT(c->value, VOLT_SELECT(VOLT_ARM(&c->a, wait_in(cx, c)),
                                         VOLT_ARM(&c->b, half_run(cx, &c->halves[1]))));
    if (c->way == SELECT_FIRST)
        VOLT_AWAIT(c->value, VOLT_SELECT_BIASED(VOLT_ARM(&c->a, wait_in(cx, c)),
                                                VOLT_ARM(&c->b, half_run(cx, &c->halves[1]))));
    if (c->way == SELECT_LAST)
        VOLT_AWAIT(c->value, VOLT_SELECT_BIASED(VOLT_ARM(&c->b, half_run(cx, &c->halves[1])),
                                                VOLT_ARM(&c->a, wait_in(cx, c))));
    if (c->way == JOIN)
        VOLT_AWAIT(c->value, VOLT_JOIN_ALL(VOLT_ARM(&c->a, wait_in(cx, c)),
                                           VOLT_ARM(&c->b, half_run(cx, &c->halves[1]))));
    if (c->way == TRY_JOIN)
        VOLT_AWAIT(c->value, VOLT_TRY_JOIN_ALL(VOLT_ARM(&c->a, wait_in(cx, c)),
                                               VOLT_ARM(&c->b, half_run(cx, &c->halves[1]))));
    VOLT_END(c->a.value);
}
static volt_poll composed_run(volt_cx *cx, composed *c) {
    VOLT_BEGIN(cx, c);
    c->halves[0].sc = c->halves[1].sc = c->sc;
    c->halves[0].s = c->s;
    c->value = volt_now() + limit_of(c->sc);
    if (c->way >= JOIN_ARRAY && c->way <= JOIN_ANY) {
        VOLT_AWAIT(c->value, in_an_array(cx, c));
        c->rc = volt_result(&c->halves[0].frame);
    } else if (c->way == SHIELDED) {
        volt_shield_begin(cx, &c->shield, VOLT_NEVER);
        VOLT_AWAIT(c->rc, wait_in(cx, c));
        volt_shield_end(cx, &c->shield);
    } else if (c->way == NESTED) {
        c->inner->sc = c->sc;
        c->inner->s = c->s;
        c->inner->way = SELECT;
        VOLT_AWAIT(c->rc, volt_within(cx, &c->timer, VOLT_S(100),
                                      volt_with_token(cx, &c->link, &c->sc->stop[1],
                                                      composed_run(cx, c->inner))));
    } else if (c->way <= TRY_JOIN && c->way != PLAIN) {
        *c->inner = *c;
        memset(c->inner, 0, sizeof c->inner->frame);
        VOLT_AWAIT(c->rc, in_arms(cx, c->inner));
    } else {
        VOLT_AWAIT(c->rc, in_a_bracket(cx, c));
    }
    VOLT_END(c->rc);
}

// ---- the waiters
typedef struct {
    volt_frame frame;
    scene *sc;
    seat *s;
    int way;
    composed c, inner[2];
    volt_timer timer;
    volt_group group;
    int64_t rc;
} user;
static int has_own_limit(int way) { return way == WITHIN || way == BEFORE; }
static void came_back(scene *sc, seat *s, int64_t rc) {
    sc->place[s->id] = COUNT(sc->n_back); // before the next one can
    if (rc == gives(sc->kind)) {
        sc->is_through[s->id] = 1;
        thing_pass(sc->t, s);
    } else {
        thing_left(sc->t, s);
    }
    sc->rc[s->id] = (int)rc;
    COUNT(sc->n_gone);
}
static volt_poll waits(volt_cx *cx, user *u) {
    VOLT_BEGIN(cx, u);
    if (u->sc->kind == COND) {
        while (volt_mutex_try_lock(&u->sc->t->o.mutex) < 0) VOLT_AWAIT(volt_yield(cx));
    }
    u->inner[0].inner = &u->inner[1];
    u->c.sc = u->sc;
    u->c.s = u->s;
    u->c.way = u->way;
    u->c.inner = &u->inner[0];
    if (u->sc->end == IS_LATE && u->s->id == 0 && !has_own_limit(u->way))
        VOLT_AWAIT(u->rc, volt_within(cx, &u->timer, VOLT_MS(1), composed_run(cx, &u->c)));
    else VOLT_AWAIT(u->rc, composed_run(cx, &u->c));
    came_back(u->sc, u->s, u->c.rc);
    VOLT_END(0);
}
static volt_poll waits_run(volt_cx *cx, void *arg) { return waits(cx, (user *)arg); }
static volt_poll owns_a_child_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    u->sc->group = &u->group; // before the child can be there, and struck
    GROUP_SPAWN(&u->group, waits_run, (user){ .sc = u->sc, .s = u->s, .way = PLAIN });
    if (u->sc->end == IS_LATE) {
        VOLT_AWAIT(u->rc, volt_within(cx, &u->timer, VOLT_MS(1), volt_group_wait(cx, &u->group)));
        CHECK(u->rc == -ETIMEDOUT || READ(u->sc->n_gone) > 0);
        VOLT_AWAIT(u->rc, volt_group_close(cx, &u->group));
    } else {
        VOLT_AWAIT(u->rc, volt_group_wait(cx, &u->group));
    }
    VOLT_END(0);
}

// ---- the scene

typedef struct {
    volt_frame frame;
    scene sc;
    volt_handle h[2];
    awaiter aw;
    volt_arm a, b;
    int64_t rc;
    int v, i;
} stage;
// Tasks that have come: they wait or have left. One leaving meanwhile is counted once, or not yet.
static int n_there(scene *sc) {
    int n_gone = READ(sc->n_gone);
    return n_gone + n_waiting_for(sc->t);
}
static volt_poll until_there(volt_cx *cx, awaiter *a, scene *sc, int n) {
    VOLT_BEGIN(cx, a);
    while (n_there(sc) < n) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}
static void strike(stage *st) {
    volt_time due = volt_now() + VOLT_MS(3);
    switch (st->sc.way) {
    case SELECT:
    case SELECT_FIRST:
    case SELECT_LAST:
    case TRY_JOIN:
    case TRY_JOIN_ARRAY:
    case JOIN_ANY:
    case UNLESS:
    case UNLESS_CHILD:
    case NESTED: volt_token_cancel(&st->sc.stop[0]); break;
    case CHILD_OF_GROUP: volt_group_cancel(st->sc.group); break;
    default: volt_cancel(&st->h[0]); break;
    }
    if (st->sc.end == LOSES_ITS_TURN && has_own_limit(st->sc.way)) // late in this way, too
        while (volt_now() < due) {}
}
// An arm beside the one that opens: it strikes after that, before any other task can run.
static volt_poll then_strike(stage *st) {
    if (st->sc.end == LOSES_ITS_TURN) strike(st);
    return volt_ready(0);
}
// Opens it for one, and maybe strikes the first.
static volt_poll opens(volt_cx *cx, stage *st) {
    VOLT_BEGIN(cx, st);
    st->v = NO_VALUE;
    if (is_met(st->sc.kind)) {
        tell(st->sc.t);
        VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&st->a, thing_meet(cx, st->sc.t, &st->v)),
                                 VOLT_ARM(&st->b, then_strike(st))));
        CHECK_EQ(st->a.value, 1);
        if (st->sc.kind != BARRIER) received(st->sc.t, st->v);
    } else {
        thing_open(st->sc.t);
        if (st->sc.end == LOSES_ITS_TURN) strike(st);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int64_t rc;
} waiting_for_all;
// Also waits that begin later.
static volt_poll all_go_on(volt_cx *cx, waiting_for_all *w, scene *sc) {
    VOLT_BEGIN(cx, w);
    if (sc->kind >= EVENT && sc->kind <= CLOSED && is_for_all(sc->kind)) {
        VOLT_AWAIT(w->rc, thing_wait(cx, sc->t, &sc->seats[0]));
        CHECK_EQ(w->rc, 0);
    }
    VOLT_END(0);
}

// Checks the outcome of the first one, where only one is possible.
static void judge(const stage *st, int is_alone) {
    const scene *sc = &st->sc;
    int rc = sc->rc[0], won = (int)gives(sc->kind), kind = sc->kind;
    int lost = sc->end != IS_CANCELLED && has_own_limit(sc->way) ? -ETIMEDOUT : -ECANCELED;
    if (sc->end == COMPLETES || sc->way == SHIELDED) {
        CHECK_EQ(rc, won);
    } else if (sc->end != LOSES_ITS_TURN) {
        CHECK_EQ(rc, lost);
    } else {
        int loses = sc->way == PLAIN || sc->way == JOIN || sc->way == UNLESS ||
                    sc->way == UNLESS_CHILD || sc->way == CHILD_OF_GROUP || sc->way == SELECT_LAST;
        CHECK(rc == won || rc == -ECANCELED || rc == lost);
        // of a barrier it has come, of a rendezvous it has met
        int stays = kind == BARRIER || kind == HAND_SEND || kind == HAND_RECV;
        if (is_alone && loses) CHECK_EQ(rc, stays ? won : lost);
        if (is_alone && sc->way == SELECT_FIRST) CHECK_EQ(rc, won);
    }
}
// A signal that was granted is not for a later waiter.
static int is_forgotten(const scene *sc) { return sc->kind == COND && sc->is_alone; }
// Of a join, which is to complete.
static void let_partner_go(scene *sc) {
    int is_joined = sc->way == JOIN || sc->way == TRY_JOIN || sc->way == JOIN_ARRAY ||
                    sc->way == TRY_JOIN_ARRAY;
    if (sc->end == COMPLETES && is_joined) volt_token_cancel(&sc->stop[0]);
}
typedef struct {
    volt_frame frame;
    stage st;
    waiting_for_all w;
    int64_t rc;
    int n_lets, is_first;
} play;
static void scene_init(scene *sc, int kind, int way, int end, int is_alone) {
    memset(sc, 0, sizeof *sc);
    sc->kind = kind;
    sc->is_alone = is_for_one(kind) || (is_alone && !is_hand(kind));
    sc->way = way;
    sc->end = end;
    sc->partner_rc = end == COMPLETES ? 0 : -EIO;
    sc->t = (thing *)malloc(sizeof *sc->t); // to detect an access after its end
    CHECK(sc->t);
    thing_init(sc->t, kind);
    volt_token_init(&sc->stop[1], &sc->stop[0]);
    for (int i = 0; i < 2; i++) seat_take(&sc->seats[i], sc->t, i);
}
static void scene_end(scene *sc) {
    for (int i = 0; i < 2; i++) check_seat(sc->t, &sc->seats[i], sc->is_through[i]);
    check_left(sc->t, sc->is_through);
    volt_token_deinit(&sc->stop[1]);
    free(sc->t);
}
#define OPEN()                                             \
    do {                                                   \
        memset(&st->frame, 0, sizeof st->frame);           \
        VOLT_AWAIT(opens(cx, st));                         \
    } while (0)
#define JOINED(i_)                                         \
    do {                                                   \
        VOLT_AWAIT(p->rc, volt_join(cx, &st->h[i_]));      \
        CHECK_EQ(p->rc, 0);                                \
    } while (0)
static volt_poll play_run(volt_cx *cx, play *p) {
    stage *const st = &p->st;
    scene *const sc = &st->sc;
    VOLT_BEGIN(cx, p);
    SPAWN(&st->h[0], sc->way == CHILD_OF_GROUP ? owns_a_child_run : waits_run,
          (user){ .sc = sc, .s = &sc->seats[0], .way = sc->way });
    VOLT_AWAIT(until_there(cx, &st->aw, sc, 1));
    if (!sc->is_alone) {
        SPAWN(&st->h[1], waits_run, (user){ .sc = sc, .s = &sc->seats[1], .way = PLAIN });
        VOLT_AWAIT(until_there(cx, &st->aw, sc, 2));
    }
    p->n_lets = 0;
    if (sc->end == IS_CANCELLED) strike(st);
    if ((sc->end == IS_LATE || sc->end == IS_CANCELLED) && sc->way == SHIELDED) {
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
        CHECK_EQ(READ(sc->n_gone), 0);
    } else if (sc->end == IS_LATE || sc->end == IS_CANCELLED) {
        JOINED(0);
    }
    if (volt_handle_is_set(&st->h[0]) && (sc->kind != BARRIER || n_waiting_for(sc->t) == 1)) {
        // a waiter that is met may need the step behind the join
        p->is_first = is_met(sc->kind) || RANDOM_BELOW(2);
        if (p->is_first) let_partner_go(sc);
        OPEN();
        p->n_lets = 1;
        if (!p->is_first) let_partner_go(sc);
    }
    if (volt_handle_is_set(&st->h[0])) JOINED(0);
    judge(st, cx->rt_->n_workers == 1);
    sc->end = COMPLETES; // no task is struck any more
    if (sc->kind == ONESHOT && sc->is_through[0]) { // it has been used up
        CHECK_EQ(volt_oneshot_try_recv(&sc->t->oneshot, &p->rc), -EPIPE);
        sc->t->oneshot = (volt_oneshot)VOLT_ONESHOT_INIT;
    }
    if (is_forgotten(sc)) p->n_lets = 0;
    if (sc->is_alone) {
        SPAWN(&st->h[1], waits_run, (user){ .sc = sc, .s = &sc->seats[1], .way = PLAIN });
        if (p->n_lets == sc->is_through[0] || is_forgotten(sc))
            VOLT_AWAIT(until_there(cx, &st->aw, sc, 2));
    }
    if (p->n_lets == 0 || (sc->is_through[0] && !is_passed_on(sc->kind) && !is_for_all(sc->kind)))
        OPEN();
    JOINED(1);
    CHECK_EQ(sc->rc[1], gives(sc->kind));
    VOLT_AWAIT(all_go_on(cx, &p->w, sc));
    scene_end(sc);
    VOLT_END(0);
}

// ---- a thread in the place of the first one
typedef struct {
    scene *sc;
    volt_time at_most;
} visitor;
static void *visitor_run(void *arg) {
    visitor *v = (visitor *)arg;
    thing *t = v->sc->t;
    if (t->o.kind == COND) CHECK_EQ(volt_mutex_lock_sync(&t->o.mutex, VOLT_NEVER), 0);
    came_back(v->sc, &v->sc->seats[0], thing_wait_sync(t, &v->sc->seats[0], v->at_most));
    return NULL;
}
static void open_sync(thing *t) {
    int v = NO_VALUE;
    tell(t);
    if (t->o.kind == BARRIER) {
        CHECK_EQ(volt_barrier_wait_sync(&t->barrier, VOLT_NEVER), 1);
    } else if (is_met(t->o.kind)) {
        CHECK_EQ(volt_chan_recv_sync(&t->chan, &v, sizeof v, VOLT_NEVER), 1);
        received(t, v);
    } else {
        thing_open(t);
    }
}
#define UNTIL_THERE(n_) UNTIL(n_there(sc) >= (n_))
#define SECOND_COMES() \
    RT_SPAWN(rt, &h, waits_run, (user){ .sc = sc, .s = &sc->seats[1], .way = PLAIN })
// LOSES_ITS_TURN: its time is up just when it comes.
static void play_with_a_thread(volt_rt *rt, int kind, int end) {
    static scene of;
    scene *sc = &of;
    volt_time at_most = end == COMPLETES ? VOLT_NEVER : end == IS_LATE ? VOLT_MS(1) : 0;
    volt_handle h;
    int64_t rc;
    scene_init(sc, kind, PLAIN, end, 0);
    if (end == LOSES_ITS_TURN) at_most = VOLT_US((int)RANDOM_BELOW(150));
    visitor v = { sc, at_most };
    pthread_t t = start_thread(visitor_run, &v);
    UNTIL_THERE(1);
    if (!sc->is_alone) {
        SECOND_COMES();
        UNTIL_THERE(2);
    }
    if (end != IS_LATE) open_sync(sc->t);
    join_thread(t);
    CHECK_EQ(sc->is_through[0], sc->rc[0] == gives(kind));
    if (!sc->is_through[0]) CHECK_EQ(sc->rc[0], -ETIMEDOUT);
    if (end != LOSES_ITS_TURN) CHECK_EQ(sc->is_through[0], end == COMPLETES);
    if (kind == ONESHOT && sc->is_through[0]) sc->t->oneshot = (volt_oneshot)VOLT_ONESHOT_INIT;
    if (sc->is_alone) SECOND_COMES();
    if (sc->is_alone && (end == IS_LATE || sc->is_through[0])) UNTIL_THERE(2);
    if (end == IS_LATE || (sc->is_through[0] && !is_passed_on(kind) && !is_for_all(kind)))
        open_sync(sc->t);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(sc->rc[1], gives(kind));
    scene_end(sc);
}
static void run_with_a_thread(int kind) {
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        for (int i = 0; i < 24; i++) {
            int end = i < 2 ? COMPLETES : i < 4 ? IS_LATE : LOSES_ITS_TURN;
            // a task at a barrier would hang where one of the others has left
            if (kind == BARRIER && end == LOSES_ITS_TURN) end = COMPLETES;
            play_with_a_thread(rt, kind, end);
        }
        destroy(rt);
    }
}
static void run_late_on_a_thread(int kind) {
    static scene of;
    scene_init(&of, kind, PLAIN, IS_LATE, 0);
    if (kind == COND) CHECK_EQ(volt_mutex_try_lock(&of.t->o.mutex), 0);
    for (int i = 2; i >= -1; i--) {
        volt_time start = volt_now();
        CHECK_EQ(thing_wait_sync(of.t, &of.seats[0], i * VOLT_MS(1)), -ETIMEDOUT);
        CHECK(volt_now() - start >= i * VOLT_MS(1));
        CHECK_EQ(n_waiting_for(of.t), 0);
    }
    thing_left(of.t, &of.seats[0]);
    free(of.t);
}

// ---- all of them

typedef struct {
    volt_frame frame;
    play p;
    int kind, i, rc, n_rounds;
    size_t n_allocs;
} festival;
static volt_poll in_each_way(volt_cx *cx, festival *f) {
    VOLT_BEGIN(cx, f);
    for (f->i = 0; f->i < 2 * N_WAYS * N_ENDS; f->i++) {
        int way = f->i / 2 / N_ENDS, end = f->i / 2 % N_ENDS;
        // while it spins here others may let the first one of a barrier go
        if (f->kind == BARRIER && end == LOSES_ITS_TURN && has_own_limit(way) &&
            cx->rt_->n_workers > 1)
            continue;
        memset(&f->p, 0, sizeof f->p);
        scene_init(&f->p.st.sc, f->kind, way, end, f->i % 2);
        VOLT_AWAIT(f->rc, play_run(cx, &f->p));
        if (f->n_allocs) CHECK_EQ(READ(test_heap.n_allocs), f->n_allocs);
    }
    VOLT_END(0);
}

// Once the memory for the tasks is there.
static volt_poll in_each_way_again(volt_cx *cx, festival *f) {
    festival *const again = f + 1;
    VOLT_BEGIN(cx, f);
    again->kind = f[2].kind = f->kind;
    VOLT_AWAIT(in_each_way(cx, again));
    f[2].n_allocs = READ(test_heap.n_allocs);
    VOLT_AWAIT(in_each_way(cx, f + 2));
    VOLT_END(0);
}

// Four in a line, let through one after the other.
typedef struct {
    volt_frame frame;
    stage st;
    volt_handle h[N_SEATS];
    int kind, i;
    int64_t rc;
} queueing;
static volt_poll in_a_line(volt_cx *cx, queueing *q) {
    stage *const st = &q->st;
    scene *const sc = &st->sc;
    VOLT_BEGIN(cx, q);
    scene_init(sc, q->kind, PLAIN, COMPLETES, 0);
    for (q->i = 0; q->i < N_SEATS; q->i++) {
        if (q->i >= 2) seat_take(&sc->seats[q->i], sc->t, q->i);
        SPAWN(&q->h[q->i], waits_run, (user){ .sc = sc, .s = &sc->seats[q->i], .way = PLAIN });
        VOLT_AWAIT(until_there(cx, &st->aw, sc, q->i + 1));
    }
    for (q->i = 0; q->i < N_SEATS; q->i++) {
        if (q->i == 0 || !(is_passed_on(q->kind) || is_for_all(q->kind))) OPEN();
        VOLT_AWAIT(until_reaches(cx, &st->aw, &sc->n_gone, q->i + 1));
    }
    for (q->i = 0; q->i < N_SEATS; q->i++) {
        VOLT_AWAIT(q->rc, volt_join(cx, &q->h[q->i]));
        CHECK_EQ(sc->rc[q->i], gives(q->kind));
        if (!is_for_all(q->kind)) CHECK_EQ(sc->place[q->i], q->i + 1);
        if (q->i >= 2) check_seat(sc->t, &sc->seats[q->i], 1);
    }
    scene_end(sc);
    VOLT_END(0);
}

// Two arms of one select wait for the same, and both may have been let through when one wins.
typedef struct {
    volt_frame frame;
    scene *sc;
    volt_arm a, b;
} torn;
static volt_poll torn_run(volt_cx *cx, void *arg) {
    torn *k = (torn *)arg;
    seat *const seats = k->sc->seats;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&k->a, thing_wait(cx, k->sc->t, &seats[0])),
                           VOLT_ARM(&k->b, thing_wait(cx, k->sc->t, &seats[2]))));
    CHECK_EQ(k->a.fired + k->b.fired, 1);
    CHECK_EQ(k->a.fired ? k->b.value : k->a.value, -ECANCELED);
    // of a notify the winner keeps what it has, so that the second one needs the loser's
    if (k->sc->kind != NOTIFY || !k->a.fired) came_back(k->sc, &seats[0], k->a.value);
    if (k->sc->kind != NOTIFY || !k->b.fired) came_back(k->sc, &seats[2], k->b.value);
    VOLT_END(0);
}
static int has_room_for_two(int kind) {
    return kind == SEM || kind == NOTIFY || kind == SEND_4 || kind == SEND_N || kind == RECV_4 ||
           kind == RECV_N || kind == RESERVE_4;
}
static volt_poll twice_in_a_select(volt_cx *cx, queueing *q) {
    stage *const st = &q->st;
    scene *const sc = &st->sc;
    VOLT_BEGIN(cx, q);
    memset(st, 0, sizeof *st);
    scene_init(sc, q->kind, PLAIN, COMPLETES, 0);
    seat_take(&sc->seats[2], sc->t, 2);
    SPAWN(&q->h[0], torn_run, (torn){ .sc = sc });
    VOLT_AWAIT(until_there(cx, &st->aw, sc, 2));
    SPAWN(&q->h[1], waits_run, (user){ .sc = sc, .s = &sc->seats[1], .way = PLAIN });
    VOLT_AWAIT(until_there(cx, &st->aw, sc, 3));
    q->i = 1 + (has_room_for_two(q->kind) && RANDOM_BELOW(2));
    for (int i = 0; i < q->i; i++) thing_open(sc->t);
    VOLT_AWAIT(q->rc, volt_join(cx, &q->h[0]));
    if (q->i == 1 && (!is_passed_on(q->kind) || q->kind == NOTIFY) && !is_for_all(q->kind))
        thing_open(sc->t);
    VOLT_AWAIT(q->rc, volt_join(cx, &q->h[1]));
    CHECK_EQ(sc->rc[1], gives(q->kind));
    if (q->kind == SEM) CHECK_EQ(volt_sem_available(&sc->t->o.sem), q->i);
    check_seat(sc->t, &sc->seats[2], sc->is_through[2]);
    scene_end(sc);
    VOLT_END(0);
}
static volt_poll twice_in_each_select(volt_cx *cx, queueing *q) { // round by round
    queueing *const each = q + 1;
    VOLT_BEGIN(cx, q);
    for (q->i = 0; q->i < 20; q->i++) {
        each->kind = q->kind;
        VOLT_AWAIT(q->rc, twice_in_a_select(cx, each));
    }
    VOLT_END(0);
}

// It is open, and a task is cancelled before it looks: it takes nothing.
static volt_poll when_cancelled(volt_cx *cx, queueing *q) {
    stage *const st = &q->st;
    scene *const sc = &st->sc;
    VOLT_BEGIN(cx, q);
    scene_init(sc, q->kind, PLAIN, COMPLETES, 0);
    thing_open(sc->t);
    for (q->i = 0; q->i < 2; q->i++) {
        SPAWN(&q->h[q->i], waits_run, (user){ .sc = sc, .s = &sc->seats[q->i], .way = PLAIN });
        if (q->i == 0) volt_cancel(&q->h[0]);
        VOLT_AWAIT(q->rc, volt_join(cx, &q->h[q->i]));
        if (q->i == 1) break;
        if (cx->rt_->n_workers == 1) CHECK_EQ(sc->rc[0], -ECANCELED); // else it may have been quick
        CHECK(sc->rc[0] == -ECANCELED || sc->is_through[0]);
        if (!sc->is_through[0]) continue;
        if (q->kind == ONESHOT) sc->t->oneshot = (volt_oneshot)VOLT_ONESHOT_INIT;
        if (!is_passed_on(q->kind) && !is_for_all(q->kind)) thing_open(sc->t);
    }
    CHECK_EQ(sc->rc[1], gives(q->kind));
    scene_end(sc);
    VOLT_END(0);
}

#define THING_TESTS(name_, kind_)                                                                  \
    ROOT_TEST(name_##_loses_nothing_in_each_composition, { festival f; }) {                        \
        VOLT_BEGIN(cx, s);                                                                         \
        s->f.kind = kind_;                                                                         \
        VOLT_AWAIT(in_each_way(cx, &s->f));                                                        \
        VOLT_END(0);                                                                               \
    }                                                                                              \
    ROOT_TEST_1(name_##_allocates_nothing, { festival f[3]; }) {                                   \
        VOLT_BEGIN(cx, s);                                                                         \
        s->f[0].kind = kind_;                                                                      \
        VOLT_AWAIT(in_each_way_again(cx, s->f));                                                   \
        VOLT_END(0);                                                                               \
    }
#define LINE_TESTS(name_, kind_)                                           \
    ROOT_TEST(name_##_waiters_are_served_in_order, { queueing q; }) {      \
        VOLT_BEGIN(cx, s);                                                 \
        s->q.kind = kind_;                                                 \
        VOLT_AWAIT(in_a_line(cx, &s->q));                                  \
        VOLT_END(0);                                                       \
    }
#define TWICE_TESTS(name_, kind_)                                                                  \
    ROOT_TEST(name_##_in_two_arms_of_a_select_loses_nothing, { queueing q[2]; }) {                 \
        VOLT_BEGIN(cx, s);                                                                         \
        s->q[0].kind = kind_;                                                                      \
        VOLT_AWAIT(twice_in_each_select(cx, s->q));                                                \
        VOLT_END(0);                                                                               \
    }
#define FREE_TESTS(name_, kind_)                                                                   \
    ROOT_TEST(name_##_wait_in_cancelled_task_takes_nothing, { queueing q; }) {                     \
        VOLT_BEGIN(cx, s);                                                                         \
        s->q.kind = kind_;                                                                         \
        VOLT_AWAIT(when_cancelled(cx, &s->q));                                                     \
        VOLT_END(0);                                                                               \
    }
#define WITH_TESTS(name_, kind_) \
    TEST_OF_THREADS(name_##_of_thread_and_task_loses_nothing) { run_with_a_thread(kind_); }
#define SYNC_TESTS(name_, kind_)                                                                   \
    WITH_TESTS(name_, kind_)                                                                       \
    TEST_OF_THREADS(name_##_sync_wait_ends_at_time_limit) { run_late_on_a_thread(kind_); }         \
    ROOT_TEST(name_##_blocks_no_worker, { scene sc; }) {                                           \
        VOLT_BEGIN(cx, s);                                                                         \
        scene_init(&s->sc, kind_, PLAIN, COMPLETES, 0);                                            \
        CHECK_EQ(thing_wait_sync(s->sc.t, &s->sc.seats[0], VOLT_NEVER), -EDEADLK);                 \
        CHECK_EQ(thing_wait_sync(s->sc.t, &s->sc.seats[0], 0), -EDEADLK);                          \
        CHECK_EQ(n_waiting_for(s->sc.t), 0);                                                       \
        free(s->sc.t);                                                                             \
        VOLT_END(0);                                                                               \
    }
// A debug build sees the address of a local.
#define STACK_TESTS(name_, kind_)                                                            \
    ROOT_DIES_OF_A_LOCAL(name_##_on_the_stack_is_misuse, { int64_t rc; }) {                  \
        VOLT_BEGIN(cx, s);                                                                   \
        thing t;                                                                             \
        seat mine;                                                                           \
        thing_init(&t, kind_);                                                               \
        seat_take(&mine, &t, 0);                                                             \
        VOLT_AWAIT(s->rc, thing_wait(cx, &t, &mine));                                        \
        VOLT_END(0);                                                                         \
    }

THING_TESTS(mutex, MUTEX)
THING_TESTS(fifo_mutex, FIFO)
THING_TESTS(rwlock_read, READING)
THING_TESTS(rwlock_write, WRITING)
THING_TESTS(sem, SEM)
THING_TESTS(once, ONCE)
THING_TESTS(notify, NOTIFY)
THING_TESTS(cond, COND)
THING_TESTS(event, EVENT)
THING_TESTS(wait_group, GROUP)
THING_TESTS(tracker, TRACKER)
THING_TESTS(notify_past, PAST)
THING_TESTS(barrier, BARRIER)
THING_TESTS(send_1, SEND_1)
THING_TESTS(send_4, SEND_4)
THING_TESTS(send_n, SEND_N)
THING_TESTS(recv_1, RECV_1)
THING_TESTS(recv_4, RECV_4)
THING_TESTS(recv_n, RECV_N)
THING_TESTS(reserve_1, RESERVE_1)
THING_TESTS(reserve_4, RESERVE_4)
THING_TESTS(closed, CLOSED)
THING_TESTS(hand_send, HAND_SEND)
THING_TESTS(hand_recv, HAND_RECV)
THING_TESTS(hand_reserve, HAND_RESERVE)
THING_TESTS(pop, POP)
THING_TESTS(oneshot, ONESHOT)
THING_TESTS(sub_1, SUB_1)
THING_TESTS(sub_4, SUB_4)
THING_TESTS(watcher, WATCHER)
LINE_TESTS(send_1, SEND_1)
LINE_TESTS(send_4, SEND_4)
LINE_TESTS(send_n, SEND_N)
LINE_TESTS(recv_1, RECV_1)
LINE_TESTS(recv_4, RECV_4)
LINE_TESTS(recv_n, RECV_N)
LINE_TESTS(reserve_1, RESERVE_1)
LINE_TESTS(reserve_4, RESERVE_4)
LINE_TESTS(hand_send, HAND_SEND)
LINE_TESTS(hand_recv, HAND_RECV)
LINE_TESTS(hand_reserve, HAND_RESERVE)
LINE_TESTS(sub_1, SUB_1)
LINE_TESTS(sub_4, SUB_4)
LINE_TESTS(watcher, WATCHER)
TWICE_TESTS(mutex, MUTEX)
TWICE_TESTS(fifo_mutex, FIFO)
TWICE_TESTS(rwlock_read, READING)
TWICE_TESTS(rwlock_write, WRITING)
TWICE_TESTS(sem, SEM)
TWICE_TESTS(once, ONCE)
TWICE_TESTS(notify, NOTIFY)
TWICE_TESTS(event, EVENT)
TWICE_TESTS(send_1, SEND_1)
TWICE_TESTS(send_4, SEND_4)
TWICE_TESTS(send_n, SEND_N)
TWICE_TESTS(recv_1, RECV_1)
TWICE_TESTS(recv_4, RECV_4)
TWICE_TESTS(recv_n, RECV_N)
TWICE_TESTS(reserve_1, RESERVE_1)
TWICE_TESTS(reserve_4, RESERVE_4)
TWICE_TESTS(hand_recv, HAND_RECV)
TWICE_TESTS(sub_4, SUB_4)
TWICE_TESTS(watcher, WATCHER)
FREE_TESTS(send_1, SEND_1)
FREE_TESTS(send_4, SEND_4)
FREE_TESTS(send_n, SEND_N)
FREE_TESTS(recv_1, RECV_1)
FREE_TESTS(recv_4, RECV_4)
FREE_TESTS(recv_n, RECV_N)
FREE_TESTS(reserve_1, RESERVE_1)
FREE_TESTS(reserve_4, RESERVE_4)
FREE_TESTS(closed, CLOSED)
FREE_TESTS(pop, POP)
FREE_TESTS(oneshot, ONESHOT)
FREE_TESTS(sub_1, SUB_1)
FREE_TESTS(sub_4, SUB_4)
FREE_TESTS(watcher, WATCHER)
WITH_TESTS(mutex, MUTEX)
WITH_TESTS(fifo_mutex, FIFO)
WITH_TESTS(rwlock_read, READING)
WITH_TESTS(rwlock_write, WRITING)
WITH_TESTS(sem, SEM)
WITH_TESTS(once, ONCE)
WITH_TESTS(notify, NOTIFY)
WITH_TESTS(cond, COND)
WITH_TESTS(event, EVENT)
WITH_TESTS(wait_group, GROUP)
WITH_TESTS(tracker, TRACKER)
WITH_TESTS(notify_past, PAST)
SYNC_TESTS(barrier, BARRIER)
SYNC_TESTS(send_1, SEND_1)
SYNC_TESTS(send_4, SEND_4)
SYNC_TESTS(recv_1, RECV_1)
SYNC_TESTS(recv_4, RECV_4)
SYNC_TESTS(hand_send, HAND_SEND)
SYNC_TESTS(hand_recv, HAND_RECV)
SYNC_TESTS(pop, POP)
SYNC_TESTS(oneshot, ONESHOT)
STACK_TESTS(barrier, BARRIER)
STACK_TESTS(send, SEND_1)
STACK_TESTS(send_n, SEND_N)
STACK_TESTS(recv, RECV_1)
STACK_TESTS(recv_n, RECV_N)
STACK_TESTS(reserve, RESERVE_1)
STACK_TESTS(closed, CLOSED)
STACK_TESTS(pop, POP)
STACK_TESTS(oneshot, ONESHOT)
STACK_TESTS(sub, SUB_1)
STACK_TESTS(watcher, WATCHER)
