// SPDX-License-Identifier: MIT OR 0BSD
// Gates, latches, notifies, queues and oneshots: two calls at once, one of them between any two
// steps of the other. Their results and the state they leave are those of one call after the other.
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "interleave.h"
#include "test.h"
#include "tasks.h"

// ---- one object of each kind, and two waiters that may wait for it, as blocked threads do; all of
// them are played by the test
typedef struct {
    volt__wait_op a;
    volt__thread_waiter b;
    int is_waiting;
} waiting;
typedef struct scene {
    volt_mutex mutex;
    volt_sem sem;
    volt_event event;
    volt_wait_group group;
    volt_tracker tracker;
    volt_notify notify;
    volt_oneshot oneshot;
    volt_queue queue;
    volt_queue_node nodes[2], *popped;
    waiting w[2];
    uint32_t *lock; // of the object that is played with
    int (*is_queued)(struct scene *s); // 1: what is given comes to the lock
} scene;

static int64_t wait_step(waiting *w, int is_off) {
    int64_t rc = volt__wait_op_step(&w->a, &w->b.node, is_off);
    w->is_waiting = rc == VOLT__PENDING;
    return rc;
}
static int64_t wait_begins(waiting *w) {
    volt__thread_waiter_init(&w->b);
    return wait_step(w, 0);
}

// ---- what can be done to it. A call that needs the lock is not made while the other one has it:
// it would wait there, so it is made behind it.
enum { LOCK_FREE, GIVES, LOCKS }; // GIVES: comes to the lock if there is a waiter
typedef struct {
    int64_t (*fn)(scene *s);
    int way, waiter; // waiter: 1 or 2, the one that acts; each does one thing at a time
} call;

static int64_t begins_0(scene *s) { return wait_begins(&s->w[0]); }
static int64_t begins_1(scene *s) { return wait_begins(&s->w[1]); }
static int64_t leaves_0(scene *s) { return wait_step(&s->w[0], 1); }
static int64_t leaves_1(scene *s) { return wait_step(&s->w[1], 1); }
static int64_t goes_on_0(scene *s) { return wait_step(&s->w[0], 0); }
#define BEGINS { begins_0, LOCKS, 1 }
#define LEAVES { leaves_0, LOCKS, 1 }
#define GOES_ON { goes_on_0, LOCKS, 1 }

enum { N_SEEN = 8 };
typedef struct {
    void (*set)(scene *s);
    void (*look)(scene *s, int64_t *seen); // state of the object
    call calls[6];
} play;

// ---- both in a row, and one in the midst of the other
typedef struct {
    scene s;
    const play *p;
    const call *op, *by;
    int64_t rc_op, rc_by;
    int has_come; // the meddler
} act;
static void act_op(void *arg) {
    act *a = (act *)arg;
    a->rc_op = a->op->fn(&a->s);
}
static void act_by(act *a) {
    a->rc_by = a->by->fn(&a->s);
    a->has_come = 1;
}
static void act_meddle(void *arg) {
    act *a = (act *)arg;
    scene *s = &a->s;
    if (*s->lock && (a->by->way == LOCKS || (a->by->way == GIVES && s->is_queued(s)))) return;
    act_by(a);
}
static void act_begin(act *a, const play *p, const call *op, const call *by) {
    memset(a, 0, sizeof *a);
    a->p = p;
    a->op = op;
    a->by = by;
    p->set(&a->s);
}
// Results of both calls, the state of each node that still waits, and the result it goes on with.
static void act_end(act *a, int64_t *seen) {
    memset(seen, 0, N_SEEN * sizeof *seen);
    seen[0] = a->rc_op;
    seen[1] = a->rc_by;
    for (int i = 0; i < 2; i++) {
        waiting *w = &a->s.w[i];
        if (!w->is_waiting) continue;
        seen[2 + i] = volt__node_state(&w->b.node);
        seen[4 + i] = seen[2 + i] == VOLT__LINKED ? wait_step(w, 1) : wait_step(w, 0);
        if (w->is_waiting) CHECK_EQ(wait_step(w, 1), -ECANCELED);
    }
    CHECK_EQ(*a->s.lock, 0);
    CHECK_EQ(a->s.is_queued(&a->s), 0);
    a->p->look(&a->s, seen + 6);
}
// Gives how many steps the first one has.
static int play_pair(const play *p, const call *op, const call *by) {
    int64_t before[N_SEEN], behind[N_SEEN], seen[N_SEEN];
    act a;
    act_begin(&a, p, op, by);
    act_by(&a);
    act_op(&a);
    act_end(&a, before);
    act_begin(&a, p, op, by);
    act_op(&a);
    act_by(&a);
    act_end(&a, behind);
    for (int n = 1;; n++) {
        act_begin(&a, p, op, by);
        int is_there = meddled_at(n, act_op, act_meddle, &a);
        if (!is_there) return n - 1;
        if (!a.has_come) act_by(&a);
        act_end(&a, seen);
        CHECK(memcmp(seen, before, sizeof seen) == 0 || memcmp(seen, behind, sizeof seen) == 0);
    }
}
static void play_all(const play *p, size_t n_plays) {
    for (size_t i = 0; i < n_plays; i++, p++)
        for (const call *op = p->calls; op->fn; op++)
            for (const call *by = p->calls; by->fn; by++)
                if (!op->waiter || op->waiter != by->waiter) CHECK(play_pair(p, op, by) > 0);
}
#define PLAY_ALL(plays_) play_all(plays_, sizeof(plays_) / sizeof(plays_)[0])

// ---- the core of mutex, rwlock, semaphore and once
static int gate_is_queued(volt__sema *g) { return (g->word_ & VOLT__SEMA_QUEUED) != 0; }

static int sem_is_queued(scene *s) { return gate_is_queued(&s->sem.sema_); }
static int64_t sem_take(scene *s) { return volt_sem_try_acquire(&s->sem, 1); }
static int64_t sem_give(scene *s) { return volt_sem_release(&s->sem, 1); }
static int64_t sem_forget(scene *s) { return volt_sem_forget(&s->sem, 1); }
static int64_t sem_close(scene *s) {
    volt_sem_close(&s->sem);
    return 0;
}
static void sem_look(scene *s, int64_t *seen) {
    seen[0] = volt_sem_available(&s->sem);
    seen[1] = volt_sem_try_acquire(&s->sem, 0);
}
static void sem_of(scene *s, uint32_t n, uint32_t wanted) {
    s->sem = (volt_sem)VOLT_SEM_INIT(n);
    s->lock = &s->sem.sema_.lock_;
    s->is_queued = sem_is_queued;
    volt__sema_wait_op(&s->w[0].a, &s->sem.sema_, 0, wanted);
}
static void sem_two(scene *s) { sem_of(s, 2, 3); }
static void sem_waited_for(scene *s) {
    sem_of(s, 2, 3);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void sem_granted(scene *s) {
    sem_waited_for(s);
    CHECK_EQ(sem_give(s), 0);
}
static void sem_full(scene *s) { sem_of(s, VOLT_SEM_MAX, 1); }

#define TAKE { sem_take, LOCK_FREE, 0 }
#define GIVE { sem_give, GIVES, 0 }
#define FORGET { sem_forget, LOCK_FREE, 0 }
#define CLOSE { sem_close, GIVES, 0 }
TEST_OF_THREADS(sem_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { sem_two, sem_look, { TAKE, GIVE, FORGET, CLOSE, BEGINS } },
        { sem_waited_for, sem_look, { TAKE, GIVE, FORGET, CLOSE, LEAVES } },
        { sem_granted, sem_look, { TAKE, GIVE, FORGET, CLOSE, LEAVES } },
        { sem_granted, sem_look, { TAKE, GIVE, FORGET, CLOSE, GOES_ON } },
        { sem_full, sem_look, { TAKE, GIVE, FORGET, CLOSE, BEGINS } },
    };
    PLAY_ALL(plays);
}

static int mutex_is_queued(scene *s) { return gate_is_queued(&s->mutex.sema_); }
static int64_t mutex_try(scene *s) { return volt_mutex_try_lock(&s->mutex); }
static int64_t mutex_unlock(scene *s) {
    volt_mutex_unlock(&s->mutex);
    return 0;
}
static void mutex_look(scene *s, int64_t *seen) { seen[0] = mutex_try(s); }
static void mutex_locked(scene *s) {
    s->lock = &s->mutex.sema_.lock_;
    s->is_queued = mutex_is_queued;
    for (int i = 0; i < 2; i++)
        volt__sema_wait_op(&s->w[i].a, &s->mutex.sema_, VOLT__SEMA_ONE, 1);
    CHECK_EQ(mutex_try(s), 0);
}
static void mutex_free(scene *s) {
    mutex_locked(s);
    mutex_unlock(s);
}
static void mutex_waited_for(scene *s) {
    mutex_locked(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void mutex_in_turn(scene *s) {
    mutex_waited_for(s);
    mutex_unlock(s);
    CHECK_EQ(volt__node_state(&s->w[0].b.node), VOLT__RETRY);
}
static void mutex_in_turn_of_two(scene *s) {
    mutex_waited_for(s);
    CHECK_EQ(begins_1(s), VOLT__PENDING);
    mutex_unlock(s);
}
static void mutex_taken_in_turn(scene *s) {
    mutex_in_turn_of_two(s);
    CHECK_EQ(mutex_try(s), 0);
}

#define TRY { mutex_try, LOCK_FREE, 0 }
#define UNLOCK { mutex_unlock, GIVES, 3 } // once
TEST_OF_THREADS(mutex_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { mutex_free, mutex_look, { TRY, BEGINS } },
        { mutex_locked, mutex_look, { TRY, UNLOCK, BEGINS } },
        { mutex_waited_for, mutex_look, { TRY, UNLOCK, LEAVES, { begins_1, LOCKS, 2 } } },
        { mutex_in_turn, mutex_look, { TRY, LEAVES, { begins_1, LOCKS, 2 } } },
        { mutex_in_turn, mutex_look, { TRY, GOES_ON, { begins_1, LOCKS, 2 } } },
        { mutex_in_turn_of_two, mutex_look, { TRY, LEAVES, { leaves_1, LOCKS, 2 } } },
        { mutex_in_turn_of_two, mutex_look, { TRY, GOES_ON, { leaves_1, LOCKS, 2 } } },
        { mutex_taken_in_turn, mutex_look, { UNLOCK, LEAVES, { leaves_1, LOCKS, 2 } } },
        { mutex_taken_in_turn, mutex_look, { UNLOCK, GOES_ON, { leaves_1, LOCKS, 2 } } },
    };
    PLAY_ALL(plays);
}

// ---- waitwords
static int latch_is_queued(const volt__waitword *l) {
    return (l->word_ & VOLT__WAITWORD_QUEUED) != 0;
}

static int event_is_queued(scene *s) { return latch_is_queued(&s->event.waitword_); }
static int64_t event_set(scene *s) {
    volt_event_set(&s->event);
    return 0;
}
static int64_t event_reset(scene *s) {
    volt_event_reset(&s->event);
    return 0;
}
static void event_look(scene *s, int64_t *seen) { seen[0] = volt_event_is_set(&s->event); }
static void event_down(scene *s) {
    s->lock = &s->event.waitword_.lock_;
    s->is_queued = event_is_queued;
    volt__waitword_wait_op(&s->w[0].a, &s->event.waitword_, VOLT__WAITWORD_ALL,
                           VOLT__WAITWORD_FLAG);
}
static void event_up(scene *s) {
    event_down(s);
    event_set(s);
}
static void event_waited_for(scene *s) {
    event_down(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void event_told(scene *s) {
    event_waited_for(s);
    event_set(s);
}
#define SET { event_set, GIVES, 0 }
#define RESET { event_reset, LOCK_FREE, 0 }
TEST_OF_THREADS(event_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { event_down, event_look, { SET, RESET, BEGINS } },
        { event_up, event_look, { SET, RESET, BEGINS } },
        { event_waited_for, event_look, { SET, RESET, LEAVES } },
        { event_told, event_look, { SET, RESET, LEAVES } },
        { event_told, event_look, { SET, RESET, GOES_ON } },
    };
    PLAY_ALL(plays);
}

static int group_is_queued(scene *s) { return latch_is_queued(&s->group.waitword_); }
static int64_t group_add(scene *s) { return volt_wait_group_add(&s->group, 1); }
static int64_t group_done(scene *s) {
    volt_wait_group_done(&s->group);
    return 0;
}
static void group_look(scene *s, int64_t *seen) { seen[0] = s->group.waitword_.word_; }
static void group_of_one(scene *s) {
    s->lock = &s->group.waitword_.lock_;
    s->is_queued = group_is_queued;
    volt__waitword_wait_op(&s->w[0].a, &s->group.waitword_, VOLT__WAITWORD_ALL, 0);
    CHECK_EQ(group_add(s), 0);
}
static void group_waited_for(scene *s) {
    group_of_one(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void group_of_two_waited_for(scene *s) {
    group_waited_for(s);
    CHECK_EQ(group_add(s), 0);
}
#define ADD { group_add, LOCK_FREE, 0 }
TEST_OF_THREADS(wait_group_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { group_of_one, group_look, { ADD, { group_done, GIVES, 3 }, BEGINS } },
        { group_waited_for, group_look, { ADD, { group_done, GIVES, 3 }, LEAVES } },
        { group_of_two_waited_for, group_look, { ADD, { group_done, GIVES, 0 }, LEAVES } },
    };
    PLAY_ALL(plays);
}

static int tracker_is_queued(scene *s) { return latch_is_queued(&s->tracker.waitword_); }
static int64_t tracker_enter(scene *s) { return volt_tracker_enter(&s->tracker); }
static int64_t tracker_leave(scene *s) {
    volt_tracker_leave(&s->tracker);
    return 0;
}
static int64_t tracker_close(scene *s) {
    volt_tracker_close(&s->tracker);
    return 0;
}
static void tracker_look(scene *s, int64_t *seen) { seen[0] = s->tracker.waitword_.word_; }
static void tracker_empty(scene *s) {
    s->lock = &s->tracker.waitword_.lock_;
    s->is_queued = tracker_is_queued;
    volt__waitword_wait_op(&s->w[0].a, &s->tracker.waitword_, VOLT__WAITWORD_ALL,
                           VOLT__WAITWORD_FLAG);
}
static void tracker_waited_for(scene *s) {
    tracker_empty(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void tracker_of_one(scene *s) {
    tracker_waited_for(s);
    CHECK_EQ(tracker_enter(s), 0);
}
#define ENTERS { tracker_enter, GIVES, 0 } // where it is closed and empty it is a change to that
#define EXITS { tracker_leave, GIVES, 3 }
#define SHUTS { tracker_close, GIVES, 0 }
TEST_OF_THREADS(tracker_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { tracker_empty, tracker_look, { ENTERS, SHUTS, BEGINS } },
        { tracker_waited_for, tracker_look, { ENTERS, SHUTS, LEAVES } },
        { tracker_of_one, tracker_look, { ENTERS, EXITS, SHUTS, LEAVES } },
    };
    PLAY_ALL(plays);
}

// ---- notify: one waits for a permit, the other one for a number
static int notify_is_queued(scene *s) { return (s->notify.word_ & VOLT__NOTIFY_QUEUED) != 0; }
static int64_t notify_one(scene *s) {
    volt_notify_one(&s->notify);
    return 0;
}
static int64_t notify_all(scene *s) {
    volt_notify_all(&s->notify);
    return 0;
}
static int64_t notify_try(scene *s) { return volt_notify_try_wait(&s->notify); }
static void notify_look(scene *s, int64_t *seen) {
    seen[0] = volt_notify_count(&s->notify);
    seen[1] = notify_try(s);
}
static void notify_silent(scene *s) {
    s->lock = &s->notify.lock_;
    s->is_queued = notify_is_queued;
    volt__notify_wait_op(&s->w[0].a, &s->notify);
    volt__notify_past_wait_op(&s->w[1].a, &s->notify, 0);
}
static void notify_permit(scene *s) {
    notify_silent(s);
    notify_one(s);
}
static void notify_waited_for(scene *s) {
    notify_silent(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void notify_watched(scene *s) {
    notify_silent(s);
    CHECK_EQ(begins_1(s), VOLT__PENDING);
}
static void notify_both(scene *s) {
    notify_watched(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void notify_watched_with_permit(scene *s) {
    notify_watched(s);
    notify_one(s);
}
static void notify_granted(scene *s) {
    notify_both(s);
    notify_one(s);
}
static void notify_told(scene *s) {
    notify_both(s);
    notify_all(s);
}
#define ONE { notify_one, GIVES, 0 }
#define ALL { notify_all, GIVES, 0 }
#define PERMIT { notify_try, LOCK_FREE, 0 }
#define WATCHES { begins_1, LOCKS, 2 }
#define LOOKS_AWAY { leaves_1, LOCKS, 2 }
TEST_OF_THREADS(notify_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { notify_silent, notify_look, { ONE, ALL, PERMIT, BEGINS, WATCHES } },
        { notify_permit, notify_look, { ONE, ALL, PERMIT, BEGINS, WATCHES } },
        { notify_waited_for, notify_look, { ONE, ALL, PERMIT, LEAVES, WATCHES } },
        { notify_watched, notify_look, { ONE, ALL, PERMIT, BEGINS, LOOKS_AWAY } },
        { notify_watched_with_permit, notify_look, { ONE, ALL, PERMIT, BEGINS, LOOKS_AWAY } },
        { notify_both, notify_look, { ONE, ALL, PERMIT, LEAVES, LOOKS_AWAY } },
        { notify_granted, notify_look, { ONE, ALL, PERMIT, LEAVES, LOOKS_AWAY } },
        { notify_granted, notify_look, { ONE, ALL, PERMIT, GOES_ON, LOOKS_AWAY } },
        { notify_told, notify_look, { ONE, ALL, PERMIT, LEAVES, LOOKS_AWAY } },
    };
    PLAY_ALL(plays);
}

// ---- oneshot
static int oneshot_is_queued(scene *s) { return latch_is_queued(&s->oneshot.waitword_); }
static int64_t oneshot_send(scene *s) { return volt_oneshot_send(&s->oneshot, 5); }
static int64_t oneshot_close(scene *s) {
    volt_oneshot_close(&s->oneshot);
    return 0;
}
static int64_t oneshot_try(scene *s) {
    int64_t value = 0;
    int rc = volt_oneshot_try_recv(&s->oneshot, &value);
    return rc < 0 ? rc : value;
}
static void oneshot_look(scene *s, int64_t *seen) {
    seen[0] = volt_oneshot_is_closed(&s->oneshot);
    seen[1] = oneshot_try(s);
}
static void oneshot_open(scene *s) {
    s->lock = &s->oneshot.waitword_.lock_;
    s->is_queued = oneshot_is_queued;
    volt__waitword_wait_op(&s->w[0].a, &s->oneshot.waitword_, VOLT__ONESHOT_ENDED,
                           VOLT__ONESHOT_ENDED);
}
static void oneshot_sent(scene *s) {
    oneshot_open(s);
    CHECK_EQ(oneshot_send(s), 0);
}
static void oneshot_waited_for(scene *s) {
    oneshot_open(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
#define SEND { oneshot_send, GIVES, 3 } // there is one sender
#define END { oneshot_close, GIVES, 0 }
#define RECV { oneshot_try, LOCK_FREE, 1 }
TEST_OF_THREADS(oneshot_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { oneshot_open, oneshot_look, { SEND, END, RECV, BEGINS } },
        { oneshot_sent, oneshot_look, { SEND, END, RECV, BEGINS } },
        { oneshot_waited_for, oneshot_look, { SEND, END, LEAVES } },
    };
    PLAY_ALL(plays);
}

// ---- queue
static int queue_is_queued(scene *s) {
    return volt__queue_has(s->queue.word_, VOLT__QUEUE_WAITING);
}
static int64_t queue_push_0(scene *s) { return volt_queue_push(&s->queue, &s->nodes[0]); }
static int64_t queue_push_1(scene *s) { return volt_queue_push(&s->queue, &s->nodes[1]); }
static int64_t queue_close(scene *s) {
    volt_queue_close(&s->queue);
    return 0;
}
// Which one, or what try_pop gave.
static int64_t queue_pop(scene *s) {
    int rc = volt_queue_try_pop(&s->queue, &s->popped);
    return rc == 1 ? 1 + (s->popped - s->nodes) : rc;
}
static void queue_look(scene *s, int64_t *seen) {
    int64_t n;
    while ((n = queue_pop(s)) > 0) seen[0] = 10 * seen[0] + n; // in this order
    seen[1] = n;
}
static void queue_empty(scene *s) {
    s->lock = &s->queue.lock_;
    s->is_queued = queue_is_queued;
    volt__queue_wait_op(&s->w[0].a, &s->queue, &s->popped, 1);
}
static void queue_of_one(scene *s) {
    queue_empty(s);
    CHECK_EQ(queue_push_1(s), 0);
}
static void queue_waited_for(scene *s) {
    queue_empty(s);
    CHECK_EQ(begins_0(s), VOLT__PENDING);
}
static void queue_told(scene *s) {
    queue_waited_for(s);
    CHECK_EQ(queue_push_1(s), 0);
}
#define PUSH { queue_push_0, GIVES, 3 }
#define PUSH_TOO { queue_push_1, GIVES, 4 }
#define SHUT { queue_close, GIVES, 0 }
#define POP { queue_pop, LOCK_FREE, 1 }
TEST_OF_THREADS(queue_calls_at_once_equal_calls_in_a_row) {
    static const play plays[] = {
        { queue_empty, queue_look, { PUSH, PUSH_TOO, SHUT, POP, BEGINS } },
        { queue_of_one, queue_look, { PUSH, SHUT, POP, BEGINS } },
        { queue_waited_for, queue_look, { PUSH, PUSH_TOO, SHUT, LEAVES } },
        { queue_told, queue_look, { PUSH, SHUT, LEAVES } },
        { queue_told, queue_look, { PUSH, SHUT, GOES_ON } },
    };
    PLAY_ALL(plays);
}
