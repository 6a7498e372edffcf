// SPDX-License-Identifier: MIT OR 0BSD
// Synchronisation: an object may be freed by who is let through last, while the call that let him
// through has not returned. First with threads held at the points where that goes wrong, then with
// objects that are freed for good.
static void lock_point(const char *condition);
static void relax_point(void);
// In volt__unlock an assertion stands before the last access; who waits for a lock relaxes.
#define VOLT_ASSERT(c_) (lock_point(#c_), VOLT__EXPECT(c_, "assertion failed: " #c_))
#define VOLT_CPU_RELAX() relax_point()
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "../volt.h"
#include "test.h"
#include "tasks.h"

// ---- a thread that is held with the lock, right before it gives it back
static __thread int is_to_be_held, is_looking;
static int is_held, may_go, is_at_lock;
static void lock_point(const char *condition) {
    if (!is_to_be_held || strcmp(condition, "volt__load_rlx(lock) != 0") != 0) return;
    is_to_be_held = 0;
    WRITE(is_held, 1);
    UNTIL(READ(may_go));
}
static void relax_point(void) {
    if (is_looking) WRITE(is_at_lock, 1);
    sched_yield();
}

// ---- who opens saw that somebody waits, who then left before it had the lock
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
static void wait_and_leave_behind(door *d, volt__wait *a, pthread_t *o) {
    volt__blocked b;
    volt__wakes wakes;
    volt__wakes_init(&wakes);
    volt__blocked_init(&b);
    CHECK_EQ(volt__wait_step(a, &b.node, 0), VOLT__PENDING);
    volt__lock(a->lock);
    *o = start_thread(opener, d);
    UNTIL(READ(*a->lock) == 2); // it waits for the lock
    volt__list_remove(a->waiters, &b.node);
    volt__node_set(&b.node, VOLT__IDLE);
    CHECK_EQ(a->leave(a, &b.node, VOLT__LINKED, &wakes), -ECANCELED);
    volt__unlock(a->lock);
}
// While the opener has the lock nobody gets past it.
static void check_door(door *d, volt__wait *a, void (*open)(void *), int (*pass)(void *)) {
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
        volt__wait a;                                                                              \
        ask_;                                                                                      \
        check_door(d, &a, open_, pass_);                                                           \
        CHECK_EQ(d->rc, rc_);                                                                      \
    }
DOOR_TEST(event_set_behind_one_who_left,
          volt__latch_wait(&a, &d->event.latch_, VOLT__LATCH_FLAG), event_open, event_pass, 0)
DOOR_TEST(wait_group_done_behind_one_who_left,
          (volt_wait_group_add(&d->group, 1), volt__latch_wait(&a, &d->group.latch_, 0)),
          group_open, group_pass, 0)
DOOR_TEST(tracker_left_behind_one_who_left,
          (CHECK_EQ(volt_tracker_enter(&d->tracker), 0), volt_tracker_close(&d->tracker),
           volt__latch_wait(&a, &d->tracker.latch_, VOLT__LATCH_FLAG)),
          tracker_leaves, tracker_pass, 0)
DOOR_TEST(tracker_closed_behind_one_who_left,
          volt__latch_wait(&a, &d->tracker.latch_, VOLT__LATCH_FLAG), tracker_closes, tracker_pass,
          0)
DOOR_TEST(notify_all_behind_one_who_left, volt__bell_wait_past(&a, &d->notify, 0),
          notify_opens_all, notify_pass_past, 0)
DOOR_TEST(notify_one_behind_one_who_left, volt__bell_wait(&a, &d->notify), notify_opens,
          notify_pass, 0)
DOOR_TEST(sem_closed_behind_one_who_left, volt__gate_wait(&a, &d->sem.gate_, 0, 1), sem_closes,
          sem_pass, -EPIPE)
DOOR_TEST(sem_released_behind_one_who_left, volt__gate_wait(&a, &d->sem.gate_, 0, 1), sem_opens,
          sem_pass, 0)
DOOR_TEST(once_done_behind_one_who_left,
          (CHECK_EQ(volt_once_try_begin(&d->once), 1),
           volt__gate_wait(&a, &d->once.gate_, VOLT__GATE_ONE, 1)),
          once_succeeds, once_pass, 0)
DOOR_TEST(once_failed_behind_one_who_left,
          (CHECK_EQ(volt_once_try_begin(&d->once), 1),
           volt__gate_wait(&a, &d->once.gate_, VOLT__GATE_ONE, 1)),
          once_fails, once_pass, 1)
