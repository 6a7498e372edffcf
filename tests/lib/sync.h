// SPDX-License-Identifier: MIT OR 0BSD
// Objects that can be waited for, of all kinds: shared by the tests of synchronisation. Include
// after tasks.h.
#ifndef VOLT_TEST_SYNC_H
#define VOLT_TEST_SYNC_H

// A root on one worker that stops the program.
#define ROOT_DIES(name_, says_, ...)                                                               \
    typedef struct {                                                                               \
        volt_frame frame;                                                                          \
        struct __VA_ARGS__;                                                                        \
    } name_##_state;                                                                               \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s);                                  \
    static volt_poll name_##_root(volt_cx *cx, void *arg) {                                        \
        return name_##_body(cx, (name_##_state *)arg);                                             \
    }                                                                                              \
    TEST_DIES(name_, says_) {                                                                      \
        static name_##_state s;                                                                    \
        run_on(1, name_##_root, &s);                                                               \
    }                                                                                              \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s)

// A root that stops it because of an object on the stack; the address sanitizer keeps locals
// elsewhere.
#ifndef VOLT__ASAN
#  define ROOT_DIES_OF_A_LOCAL(name_, ...) \
      ROOT_DIES(name_, "object on the stack: move it to the state struct", __VA_ARGS__)
#else // compiled, but no test
#  define ROOT_DIES_OF_A_LOCAL(name_, ...)                                                         \
      typedef struct {                                                                             \
          volt_frame frame;                                                                        \
          struct __VA_ARGS__;                                                                      \
      } name_##_state;                                                                             \
      __attribute__((unused)) static volt_poll name_##_body(volt_cx *cx, name_##_state *s)
#endif

enum {
    MUTEX,
    FIFO,    // a strictly FIFO mutex
    READING, // a read of an rwlock
    WRITING,
    SEM,
    ONCE,
    NOTIFY,
    COND,
    N_PASSED, // kinds before this pass one waiter, which passes the next; the others pass all
    EVENT = N_PASSED,
    GROUP,
    TRACKER,
    PAST, // a notify's wait_past
    N_KINDS
};

typedef struct object {
    int kind;
    volt_mutex mutex;
    volt_rwlock rwlock;
    volt_sem sem;
    volt_once once;
    volt_notify notify;
    volt_cond cond;
    volt_event event;
    volt_wait_group group;
    volt_tracker tracker;
} object;

// Prepared so that the next wait has to wait.
static inline void object_init(object *o, int kind) {
    memset(o, 0, sizeof *o);
    o->kind = kind;
    if (kind == FIFO) o->mutex = (volt_mutex)VOLT_MUTEX_FIFO;
    switch (kind) {
    case MUTEX:
    case FIFO: CHECK_EQ(volt_mutex_try_lock(&o->mutex), 0); break;
    case READING: CHECK_EQ(volt_rwlock_try_write(&o->rwlock), 0); break;
    case WRITING: CHECK_EQ(volt_rwlock_try_read(&o->rwlock), 0); break;
    case ONCE: CHECK_EQ(volt_once_try_begin(&o->once), 1); break;
    case GROUP: CHECK_EQ(volt_wait_group_add(&o->group, 1), 0); break;
    case TRACKER: CHECK_EQ(volt_tracker_enter(&o->tracker), 0); break;
    default: break;
    }
}
// By the holder: passes one waiter, or all.
static inline void object_open(object *o) {
    switch (o->kind) {
    case MUTEX:
    case FIFO: volt_mutex_unlock(&o->mutex); break;
    case READING:
    case WRITING: volt_rwlock_unlock(&o->rwlock); break;
    case SEM: CHECK_EQ(volt_sem_release(&o->sem, 1), 0); break;
    case ONCE: volt_once_end(&o->once, 0); break;
    case NOTIFY: volt_notify_one(&o->notify); break;
    case COND: volt_cond_signal(&o->cond); break;
    case EVENT: volt_event_set(&o->event); break;
    case GROUP: volt_wait_group_done(&o->group); break;
    case TRACKER:
        volt_tracker_leave(&o->tracker);
        volt_tracker_close(&o->tracker);
        break;
    default: volt_notify_all(&o->notify); break;
    }
}
// The last step of a granted waiter.
static inline void object_pass(object *o) {
    int kind = o->kind; // the granted waiter may free it
    if (kind < N_PASSED) object_open(o);
    if (kind == COND) volt_mutex_unlock(&o->mutex);
}
static inline int64_t object_gives(int kind) { return kind == ONCE; }

// The wait itself; of a cond the mutex must be locked before, and is locked after.
static inline volt_poll object_wait(volt_cx *cx, object *o) {
    switch (o->kind) {
    case MUTEX:
    case FIFO: return volt_mutex_lock(cx, &o->mutex);
    case READING: return volt_rwlock_read(cx, &o->rwlock);
    case WRITING: return volt_rwlock_write(cx, &o->rwlock);
    case SEM: return volt_sem_acquire(cx, &o->sem, 1);
    case ONCE: return volt_once_begin(cx, &o->once);
    case NOTIFY: return volt_notify_wait(cx, &o->notify);
    case COND: return volt_cond_wait(cx, &o->cond, &o->mutex);
    case EVENT: return volt_event_wait(cx, &o->event);
    case GROUP: return volt_wait_group_wait(cx, &o->group);
    case TRACKER: return volt_tracker_wait(cx, &o->tracker);
    default: return volt_notify_wait_past(cx, &o->notify, 0);
    }
}
static inline int object_wait_sync(object *o, volt_time at_most) {
    switch (o->kind) {
    case MUTEX:
    case FIFO: return volt_mutex_lock_sync(&o->mutex, at_most);
    case READING: return volt_rwlock_read_sync(&o->rwlock, at_most);
    case WRITING: return volt_rwlock_write_sync(&o->rwlock, at_most);
    case SEM: return volt_sem_acquire_sync(&o->sem, 1, at_most);
    case ONCE: return volt_once_begin_sync(&o->once, at_most);
    case NOTIFY: return volt_notify_wait_sync(&o->notify, at_most);
    case COND: return volt_cond_wait_sync(&o->cond, &o->mutex, at_most);
    case EVENT: return volt_event_wait_sync(&o->event, at_most);
    case GROUP: return volt_wait_group_wait_sync(&o->group, at_most);
    case TRACKER: return volt_tracker_wait_sync(&o->tracker, at_most);
    default: return volt_notify_wait_past_sync(&o->notify, 0, at_most);
    }
}
// Of kinds that have such a form; a cond has its mutex.
static inline int object_try(object *o) {
    switch (o->kind) {
    case MUTEX:
    case FIFO:
    case COND: return volt_mutex_try_lock(&o->mutex);
    case READING: return volt_rwlock_try_read(&o->rwlock);
    case WRITING: return volt_rwlock_try_write(&o->rwlock);
    case SEM: return volt_sem_try_acquire(&o->sem, 1);
    case ONCE: return volt_once_try_begin(&o->once);
    default: return volt_notify_try_wait(&o->notify);
    }
}

// ---- waiters
static inline int n_waiting(object *o) {
    switch (o->kind) {
    case MUTEX:
    case FIFO: return WAITING(o->mutex.sema_);
    case READING:
    case WRITING: return WAITING(o->rwlock.sema_);
    case SEM: return WAITING(o->sem.sema_);
    case ONCE: return WAITING(o->once.sema_);
    case NOTIFY: return WAITING(o->notify);
    case COND: return WAITING(o->cond);
    case EVENT: return WAITING(o->event.waitword_);
    case GROUP: return WAITING(o->group.waitword_);
    case TRACKER: return WAITING(o->tracker.waitword_);
    default: return count_waiting(&o->notify.lock_, &o->notify.watchers_);
    }
}
// Yields until n waiters are linked.
static inline volt_poll until_waiting(volt_cx *cx, awaiter *a, object *o, int n) {
    VOLT_BEGIN(cx, a);
    while (n_waiting(o) != n) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}

#endif // VOLT_TEST_SYNC_H
