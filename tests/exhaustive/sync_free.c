// SPDX-License-Identifier: MIT OR 0BSD
// Synchronisation: an object may be freed by the task that is let through last, while the call that
// let it through has not returned. First with threads held at the points where that goes wrong,
// then with objects that are freed for good.
static void lock_point(const char *condition);
static void relax_point(void);
// In volt__unlock an assertion stands before the last access; a thread waiting for a lock relaxes.
#define VOLT_ASSERT(c_) (lock_point(#c_), VOLT__EXPECT(c_, "assertion failed: " #c_))
#define VOLT_CPU_RELAX() relax_point()
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "sync.h"

// ---- a thread that is held with the lock, right before it gives it back; others stop for a while,
// at any assertion
static __thread int is_to_be_held, is_looking;
static int is_held, may_go, is_at_lock, is_unsteady;
static void spin(int n) {
    for (volatile int i = 0; i < n; i++) {}
}
static void lock_point(const char *condition) {
    if (READ(is_unsteady) && RANDOM_BELOW(16) == 0) spin(500);
    if (!is_to_be_held || strcmp(condition, "volt__load_rlx(lock) != 0") != 0) return;
    is_to_be_held = 0;
    WRITE(is_held, 1);
    UNTIL(READ(may_go));
}
static void relax_point(void) {
    if (is_looking) WRITE(is_at_lock, 1);
}

// ---- the opener saw a waiter, which left before the opener had the lock
typedef struct {
    volt_event event;
    volt_wait_group group;
    volt_tracker tracker;
    volt_notify notify;
    volt_sem sem;
    volt_once once;
    void (*open)(void *arg); // lets through
    int (*pass)(void *arg);  // is let through
    int rc, has_passed;
} door;
static void *opener(void *arg) {
    door *d = (door *)arg;
    is_to_be_held = 1;
    d->open(d);
    return NULL;
}
static void *passer(void *arg) {
    door *d = (door *)arg;
    is_looking = 1;
    d->rc = d->pass(d);
    WRITE(d->has_passed, 1);
    return NULL;
}
static void wait_and_leave_behind(door *d, volt__wait_op *a, pthread_t *o) {
    volt__thread_waiter b;
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__thread_waiter_init(&b);
    CHECK_EQ(volt__wait_op_step(a, &b.node, 0), VOLT__PENDING);
    volt__lock(a->lock);
    *o = start_thread(opener, d);
    UNTIL(READ(*a->lock) == 2); // it waits for the lock
    volt__list_remove(a->waiters, &b.node);
    volt__node_set(&b.node, VOLT__IDLE);
    CHECK_EQ(a->abandon(a, &b.node, VOLT__LINKED, &wakes), -ECANCELED);
    volt__unlock(a->lock);
}
// While the opener has the lock no thread gets past it.
static void check_door(door *d, volt__wait_op *a, void (*open)(void *), int (*pass)(void *)) {
    pthread_t o, p;
    d->open = open;
    d->pass = pass;
    wait_and_leave_behind(d, a, &o);
    UNTIL(READ(is_held));
    p = start_thread(passer, d);
    UNTIL(READ(d->has_passed) || READ(is_at_lock));
    CHECK(!READ(d->has_passed));
    WRITE(may_go, 1);
    join_thread(o);
    join_thread(p);
}

static void event_open(void *arg) { volt_event_set(&((door *)arg)->event); }
static int event_pass(void *arg) { return volt_event_wait_sync(&((door *)arg)->event, VOLT_NEVER); }
static void group_open(void *arg) { volt_wait_group_done(&((door *)arg)->group); }
static int group_pass(void *arg) {
    return volt_wait_group_wait_sync(&((door *)arg)->group, VOLT_NEVER);
}
static void tracker_leaves(void *arg) { volt_tracker_leave(&((door *)arg)->tracker); }
static void tracker_closes(void *arg) { volt_tracker_close(&((door *)arg)->tracker); }
static int tracker_pass(void *arg) {
    return volt_tracker_wait_sync(&((door *)arg)->tracker, VOLT_NEVER);
}
static void notify_opens(void *arg) { volt_notify_one(&((door *)arg)->notify); }
static void notify_opens_all(void *arg) { volt_notify_all(&((door *)arg)->notify); }
static int notify_pass(void *arg) {
    return volt_notify_wait_sync(&((door *)arg)->notify, VOLT_NEVER);
}
static int notify_pass_past(void *arg) {
    return volt_notify_wait_past_sync(&((door *)arg)->notify, 0, VOLT_NEVER);
}
static void sem_opens(void *arg) { CHECK_EQ(volt_sem_release(&((door *)arg)->sem, 1), 0); }
static void sem_closes(void *arg) { volt_sem_close(&((door *)arg)->sem); }
static int sem_pass(void *arg) {
    return volt_sem_acquire_sync(&((door *)arg)->sem, 1, VOLT_NEVER);
}
static void once_fails(void *arg) { volt_once_end(&((door *)arg)->once, 0); }
static void once_succeeds(void *arg) { volt_once_end(&((door *)arg)->once, 1); }
static int once_pass(void *arg) { return volt_once_begin_sync(&((door *)arg)->once, VOLT_NEVER); }

static door the_door;
#define DOOR_TEST(name_, ask_, open_, pass_, rc_)                                                  \
    TEST_OF_THREADS(name_) {                                                                       \
        door *d = &the_door;                                                                       \
        volt__wait_op a;                                                                           \
        ask_;                                                                                      \
        check_door(d, &a, open_, pass_);                                                           \
        CHECK_EQ(d->rc, rc_);                                                                      \
    }
DOOR_TEST(event_set_lets_through_only_after_unlock,
          volt__waitword_wait_op(&a, &d->event.waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG),
          event_open, event_pass, 0)
DOOR_TEST(wait_group_done_lets_through_only_after_unlock,
          (volt_wait_group_add(&d->group, 1),
           volt__waitword_wait_op(&a, &d->group.waitword_, VOLT__WAITWORD_ALL, 0)),
          group_open, group_pass, 0)
DOOR_TEST(tracker_leave_lets_through_only_after_unlock,
          (CHECK_EQ(volt_tracker_enter(&d->tracker), 0), volt_tracker_close(&d->tracker),
           volt__waitword_wait_op(&a, &d->tracker.waitword_, VOLT__WAITWORD_ALL,
                                  VOLT__WAITWORD_FLAG)), tracker_leaves, tracker_pass, 0)
DOOR_TEST(tracker_close_lets_through_only_after_unlock,
          volt__waitword_wait_op(&a, &d->tracker.waitword_, VOLT__WAITWORD_ALL,
                                 VOLT__WAITWORD_FLAG), tracker_closes, tracker_pass, 0)
DOOR_TEST(notify_all_lets_through_only_after_unlock, volt__notify_past_wait_op(&a, &d->notify, 0),
          notify_opens_all, notify_pass_past, 0)
DOOR_TEST(notify_one_lets_through_only_after_unlock,
          volt__notify_wait_op(&a, &d->notify), notify_opens,
          notify_pass, 0)
DOOR_TEST(sem_close_lets_through_only_after_unlock,
          volt__sema_wait_op(&a, &d->sem.sema_, 0, 1), sem_closes,
          sem_pass, -EPIPE)
DOOR_TEST(sem_release_lets_through_only_after_unlock,
          volt__sema_wait_op(&a, &d->sem.sema_, 0, 1), sem_opens,
          sem_pass, 0)
DOOR_TEST(once_end_lets_through_only_after_unlock,
          (CHECK_EQ(volt_once_try_begin(&d->once), 1),
           volt__sema_wait_op(&a, &d->once.sema_, VOLT__SEMA_ONE, 1)),
          once_succeeds, once_pass, 0)
DOOR_TEST(once_failing_end_lets_through_only_after_unlock,
          (CHECK_EQ(volt_once_try_begin(&d->once), 1),
           volt__sema_wait_op(&a, &d->once.sema_, VOLT__SEMA_ONE, 1)),
          once_fails, once_pass, 1)

// ---- objects that are freed: by the last one that is let through

enum { N_ROUNDS = 60, N_TASKS = 3, N_THREADS = 2 };
typedef struct {
    object o;
    int n_left, is_ready; // ready: what a cond tells
} shared;
static shared *rounds[N_ROUNDS]; // of each its object, ...
static volt_event announced[N_ROUNDS]; // ... and that it is there
static volt_sem freed;
static int kind_now, is_closing; // closing: the opener closes it, for all
static int n_freed;

static int has_come_through(int64_t rc) {
    if (is_closing) return rc == (kind_now == SEM ? -EPIPE : 0);
    return rc == object_gives(kind_now);
}
// A holder counts itself out before it gives the object back: the next one may be the last, and
// frees it while that call has not returned.
static void leave(shared *s) {
    int is_alone = kind_now < N_PASSED && kind_now != READING && !is_closing;
    if (kind_now == READING) object_pass(&s->o);
    int n_left = __atomic_sub_fetch(&s->n_left, 1, __ATOMIC_ACQ_REL);
    if (is_alone) object_pass(&s->o);
    if (n_left > 0) return;
    memset(s, 0xdd, sizeof *s);
    free(s);
    COUNT(n_freed);
    CHECK_EQ(volt_sem_release(&freed, 1), 0);
}
static void open_round(int r) {
    shared *s = (shared *)malloc(sizeof *s);
    CHECK(s);
    s->is_ready = 0;
    s->n_left = N_TASKS + N_THREADS;
    object_init(&s->o, kind_now);
    rounds[r] = s;
    volt_event_set(&announced[r]);
    spin((int)RANDOM_BELOW(20000));
    if (is_closing && kind_now == SEM) volt_sem_close(&s->o.sem);
    else if (is_closing) volt_once_end(&s->o.once, 1);
    else if (kind_now != COND) object_open(&s->o);
    if (kind_now != COND) return;
    CHECK_EQ(volt_mutex_lock_sync(&s->o.mutex, VOLT_NEVER), 0);
    s->is_ready = 1;
    volt_cond_signal(&s->o.cond);
    volt_mutex_unlock(&s->o.mutex);
}
static void *opener_of_rounds(void *arg) {
    for (int r = 0; r < N_ROUNDS; r++) {
        open_round(r);
        if (r > 0) CHECK_EQ(volt_sem_acquire_sync(&freed, 1, VOLT_NEVER), 0); // one of those before
    }
    return arg;
}
// Hasty at first, so that the object is left and come back to while it is opened.
static volt_time patience(int i) { return i < 4 ? VOLT_US((int)RANDOM_BELOW(50)) : VOLT_NEVER; }
static void pass_round(int r) {
    shared *s;
    int rc = 0;
    CHECK_EQ(volt_event_wait_sync(&announced[r], VOLT_NEVER), 0);
    s = rounds[r];
    if (kind_now == COND) {
        CHECK_EQ(volt_mutex_lock_sync(&s->o.mutex, VOLT_NEVER), 0);
        for (int i = 0; !s->is_ready; i++) rc = object_wait_sync(&s->o, patience(i));
        CHECK(rc == 0 || rc == -ETIMEDOUT);
    } else {
        for (int i = 0; (rc = object_wait_sync(&s->o, patience(i))) == -ETIMEDOUT; i++) {}
        CHECK(has_come_through(rc));
    }
    leave(s);
}
static void *passer_of_rounds(void *arg) {
    for (int r = 0; r < N_ROUNDS; r++) pass_round(r);
    return arg;
}

typedef struct {
    volt_frame frame;
    shared *s;
    volt_timer timer;
    volt_arm a, b;
    int64_t rc;
    int n_tries;
} guest;
static volt_poll hasty_wait(volt_cx *cx, guest *g) {
    return volt_within(cx, &g->timer, VOLT_US(1), object_wait(cx, &g->s->o));
}
// One try: for good, for a moment, or until something else is first.
static volt_poll try_round(volt_cx *cx, guest *g) {
    VOLT_BEGIN(cx, g);
    if (++g->n_tries > 4) {
        VOLT_AWAIT(g->rc, object_wait(cx, &g->s->o));
    } else if (RANDOM_BELOW(2)) {
        VOLT_AWAIT(g->rc, hasty_wait(cx, g));
    } else {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&g->a, object_wait(cx, &g->s->o)),
                               VOLT_ARM(&g->b, volt_yield(cx))));
        g->rc = g->a.value;
    }
    VOLT_END(g->rc);
}
typedef struct {
    volt_frame frame;
    guest g;
    int r;
    int64_t rc;
} guest_task;
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest_task *t = (guest_task *)arg;
    VOLT_BEGIN(cx, t);
    for (t->r = 0; t->r < N_ROUNDS; t->r++) {
        VOLT_AWAIT(t->rc, volt_event_wait(cx, &announced[t->r]));
        CHECK_EQ(t->rc, 0);
        t->g.s = rounds[t->r];
        t->g.n_tries = 0;
        if (kind_now == COND) {
            VOLT_AWAIT(t->rc, volt_mutex_lock(cx, &t->g.s->o.mutex));
            while (!t->g.s->is_ready) VOLT_AWAIT(t->rc, try_round(cx, &t->g));
        } else {
            do VOLT_AWAIT(t->rc, try_round(cx, &t->g));
            while (t->rc == -ECANCELED || t->rc == -ETIMEDOUT);
            CHECK(has_come_through(t->rc));
        }
        leave(t->g.s);
    }
    VOLT_END(0);
}
static void run_rounds(int kind, int closing, uint32_t workers) {
    pthread_t opener_thread, t[N_THREADS];
    volt_handle h[N_TASKS];
    volt_rt *rt = create_on(workers);
    kind_now = kind;
    is_closing = closing;
    n_freed = 0;
    memset(announced, 0, sizeof announced);
    memset(&freed, 0, sizeof freed);
    WRITE(is_unsteady, 1);
    for (int i = 0; i < N_TASKS; i++) RT_SPAWN(rt, &h[i], guest_run, (guest_task){ .r = 0 });
    for (int i = 0; i < N_THREADS; i++) t[i] = start_thread(passer_of_rounds, NULL);
    opener_thread = start_thread(opener_of_rounds, NULL);
    for (int i = 0; i < N_TASKS; i++) {
        int64_t rc;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 0);
    }
    for (int i = 0; i < N_THREADS; i++) join_thread(t[i]);
    join_thread(opener_thread);
    WRITE(is_unsteady, 0);
    CHECK_EQ(n_freed, N_ROUNDS);
    destroy(rt);
}
#define FREE_TEST(name_, kind_, closing_) \
    TEST_OF_THREADS(name_##_may_be_freed_by_last_waiter) {                                         \
        EACH_WORKERS(w) run_rounds(kind_, closing_, w);                                            \
    }
FREE_TEST(mutex, MUTEX, 0)
FREE_TEST(fifo_mutex, FIFO, 0)
FREE_TEST(rwlock_read, READING, 0)
FREE_TEST(rwlock_write, WRITING, 0)
FREE_TEST(sem, SEM, 0)
FREE_TEST(sem_closed, SEM, 1)
FREE_TEST(once, ONCE, 0)
FREE_TEST(once_done, ONCE, 1)
FREE_TEST(notify, NOTIFY, 0)
FREE_TEST(cond, COND, 0)
FREE_TEST(event, EVENT, 0)
FREE_TEST(wait_group, GROUP, 0)
FREE_TEST(tracker, TRACKER, 0)
FREE_TEST(notify_past, PAST, 0)
