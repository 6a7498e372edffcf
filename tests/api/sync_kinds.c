// SPDX-License-Identifier: MIT OR 0BSD
// Synchronisation, what each kind promises beside what all have in common (sync.c).
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "sync.h"

// Yields until n wait for an object with a lock and a list.
static volt_poll until_waits(volt_cx *cx, awaiter *a, uint32_t *lock, volt__node *const *list,
                             int n) {
    VOLT_BEGIN(cx, a);
    while (count_waiting(lock, list) != n) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}
#define UNTIL_WAITING(o_, n_) \
    VOLT_AWAIT(until_waits(cx, &s->a, &(o_).lock_, &(o_).waiters_, (n_)))

// ---- users of one object: each waits, is in until it is told to go, and gives back

enum { LOCK, READ_LOCK, WRITE_LOCK, ACQUIRE, BEGIN, WAIT_BARRIER, WAIT_NOTIFY, WAIT_PAST,
       WAIT_EVENT, WAIT_COND };
enum { N_USERS = 8, HAS_LEFT = 2 };
typedef struct {
    volt_mutex m;
    volt_rwlock l;
    volt_sem s;
    volt_once o;
    volt_barrier b;
    volt_notify n;
    volt_event e;
    volt_cond c;
    volt_event go[N_USERS];
    int in[N_USERS], n_in; // 1: inside, HAS_LEFT
    int64_t rc[N_USERS];
    int order[N_USERS]; // the how manyth it was, from 1 on
    volt_handle h[N_USERS];
} place;
typedef struct {
    volt_frame frame;
    place *p;
    int id, op;
    uint32_t n;
    int64_t rc;
} user;
static volt_poll user_wait(volt_cx *cx, user *u) {
    place *p = u->p;
    switch (u->op) {
    case LOCK: return volt_mutex_lock(cx, &p->m);
    case READ_LOCK: return volt_rwlock_read(cx, &p->l);
    case WRITE_LOCK: return volt_rwlock_write(cx, &p->l);
    case ACQUIRE: return volt_sem_acquire(cx, &p->s, u->n);
    case BEGIN: return volt_once_begin(cx, &p->o);
    case WAIT_BARRIER: return volt_barrier_wait(cx, &p->b);
    case WAIT_NOTIFY: return volt_notify_wait(cx, &p->n);
    case WAIT_PAST: return volt_notify_wait_past(cx, &p->n, u->n);
    case WAIT_EVENT: return volt_event_wait(cx, &p->e);
    default: return volt_cond_wait(cx, &p->c, &p->m);
    }
}
static void user_gives_back(user *u) {
    place *p = u->p;
    switch (u->op) {
    case LOCK:
    case WAIT_COND: volt_mutex_unlock(&p->m); break;
    case READ_LOCK:
    case WRITE_LOCK: volt_rwlock_unlock(&p->l); break;
    case ACQUIRE: CHECK_EQ(volt_sem_release(&p->s, u->n), 0); break;
    default: break;
    }
}
static volt_poll user_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    if (u->op == WAIT_COND) {
        VOLT_AWAIT(u->rc, volt_mutex_lock(cx, &u->p->m));
        CHECK_EQ(u->rc, 0);
    }
    VOLT_AWAIT(u->rc, user_wait(cx, u));
    u->p->rc[u->id] = u->rc;
    u->p->order[u->id] = COUNT(u->p->n_in);
    WRITE(u->p->in[u->id], 1);
    if (u->rc >= 0) {
        VOLT_AWAIT(u->rc, volt_event_wait(cx, &u->p->go[u->id]));
        CHECK(u->rc == 0 || volt_is_cancelled(cx));
        user_gives_back(u);
    } else if (u->op == WAIT_COND) {
        volt_mutex_unlock(&u->p->m);
    }
    WRITE(u->p->in[u->id], HAS_LEFT);
    VOLT_END(u->p->rc[u->id]);
}
#define ENTER(id_, op_, n_) \
    SPAWN(&s->p.h[id_], user_run, (user){ .p = &s->p, .id = (id_), .op = (op_), .n = (n_) })
#define IS_IN(id_) VOLT_AWAIT(until_reaches(cx, &s->a, &s->p.in[id_], 1))
#define GO(id_) volt_event_set(&s->p.go[id_])
#define ENDED(id_, rc_)                                      \
    do {                                                     \
        VOLT_AWAIT(s->rc, volt_join(cx, &s->p.h[id_]));      \
        CHECK_EQ(s->rc, (rc_));                              \
    } while (0)

// Zeroes do as well.
TEST(sync_initialisers_are_zeroes) {
    static const union {
        char bytes[sizeof(volt_mutex) + sizeof(volt_notify)];
        void *aligned;
    } zero;
#define IS_ZERO(type_, init_)                              \
    do {                                                   \
        static type_ one = init_;                          \
        CHECK(sizeof one <= sizeof zero.bytes);            \
        CHECK_EQ(memcmp(&one, &zero, sizeof one), 0);      \
    } while (0)
    IS_ZERO(volt_mutex, VOLT_MUTEX_INIT);
    IS_ZERO(volt_rwlock, VOLT_RWLOCK_INIT);
    IS_ZERO(volt_sem, VOLT_SEM_INIT(0));
    IS_ZERO(volt_once, VOLT_ONCE_INIT);
    IS_ZERO(volt_event, VOLT_EVENT_INIT);
    IS_ZERO(volt_wait_group, VOLT_WAIT_GROUP_INIT);
    IS_ZERO(volt_tracker, VOLT_TRACKER_INIT);
    IS_ZERO(volt_notify, VOLT_NOTIFY_INIT);
    IS_ZERO(volt_barrier, VOLT_BARRIER_INIT(0));
    IS_ZERO(volt_cond, VOLT_COND_INIT);
    IS_ZERO(volt_queue, VOLT_QUEUE_INIT);
    IS_ZERO(volt_oneshot, VOLT_ONESHOT_INIT);
}

// ---- mutex

// An await between lock and unlock is cancelled as any other one; the lock stays with the task.
ROOT_TEST(mutex_stays_locked_over_cancelled_await, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, LOCK, 0);
    IS_IN(0);
    ENTER(1, LOCK, 0);
    UNTIL_WAITING(s->p.m.sema_, 1);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), -EAGAIN);
    volt_cancel(&s->p.h[0]); // inside: its await ends, it unlocks and leaves
    ENDED(0, 0);
    IS_IN(1);
    GO(1);
    ENDED(1, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}

// The one that unlocks locks again before the one that waits has run: only so often.
ROOT_TEST_1(mutex_is_barged_a_bounded_number_of_times, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    for (s->i = 0; s->i < 2; s->i++) {
        ENTER(s->i, LOCK, 0);
        UNTIL_WAITING(s->p.m.sema_, s->i + 1);
    }
    for (s->i = 0; s->i < VOLT_MUTEX_BARGES; s->i++) {
        volt_mutex_unlock(&s->p.m);
        CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
        CHECK_EQ(WAITING(s->p.m.sema_), 1); // the first is on its way,
        volt_mutex_unlock(&s->p.m);         // which does not wake the second
        CHECK_EQ(WAITING(s->p.m.sema_), 1);
        CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
        UNTIL_WAITING(s->p.m.sema_, 2); // it has found it taken, and waits again
    }
    volt_mutex_unlock(&s->p.m);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), -EAGAIN); // it is given it
    CHECK_EQ(s->p.in[0], 0);
    IS_IN(0);
    CHECK_EQ(WAITING(s->p.m.sema_), 1);
    GO(0);
    IS_IN(1);
    GO(1);
    ENDED(0, 0);
    ENDED(1, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
// The task that unlocks it comes last.
ROOT_TEST(fifo_mutex_is_not_barged, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    s->p.m = (volt_mutex)VOLT_MUTEX_FIFO;
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, LOCK, 0);
        UNTIL_WAITING(s->p.m.sema_, s->i + 1);
        GO(s->i);
    }
    volt_mutex_unlock(&s->p.m);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 4; s->i++) {
        CHECK_EQ(s->p.order[s->i], s->i + 1); // all before us
        ENDED(s->i, 0);
    }
    volt_mutex_unlock(&s->p.m);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
ROOT_TEST_1(fifo_mutex_unlock_grants_it_to_waiter, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->p.m = (volt_mutex)VOLT_MUTEX_FIFO;
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    ENTER(0, LOCK, 0);
    UNTIL_WAITING(s->p.m.sema_, 1);
    volt_mutex_unlock(&s->p.m);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), -EAGAIN);
    CHECK_EQ(s->p.in[0], 0);
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
// Functions of one task, as arms, wait for each other as tasks do.
typedef struct {
    volt_frame frame;
    volt_mutex *m;
    int *n_inside, rc;
} holder;
static volt_poll holder_run(volt_cx *cx, holder *h) {
    VOLT_BEGIN(cx, h);
    VOLT_AWAIT(h->rc, volt_mutex_lock(cx, h->m));
    CHECK_EQ(h->rc, 0);
    CHECK_EQ((*h->n_inside)++, 0);
    VOLT_AWAIT(h->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(--*h->n_inside, 0);
    volt_mutex_unlock(h->m);
    VOLT_END(h->rc);
}
ROOT_TEST(mutex_excludes_arms_of_one_task, {
    volt_mutex m;
    holder one, two;
    volt_arm a, b;
    int n_inside, rc;
}) {
    VOLT_BEGIN(cx, s);
    s->one.m = s->two.m = &s->m;
    s->one.n_inside = s->two.n_inside = &s->n_inside;
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->a, holder_run(cx, &s->one)),
                                    VOLT_ARM(&s->b, holder_run(cx, &s->two))));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_DIES(mutex_unlock_by_another_task_is_misuse, "volt_mutex_unlock: another task holds it",
          { place p; awaiter a; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, LOCK, 0);
    IS_IN(0);
    volt_mutex_unlock(&s->p.m);
    VOLT_END(0);
}
ROOT_DIES(mutex_unlock_twice_is_misuse, "volt_mutex_unlock: it is not locked", { place p; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    volt_mutex_unlock(&s->p.m);
    volt_mutex_unlock(&s->p.m);
    VOLT_END(0);
}
ROOT_DIES(mutex_lock_twice_is_misuse,
          "volt_mutex_lock: the task holds it already", { place p; int rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    VOLT_END(0);
}
static volt_poll locker_run(volt_cx *cx, holder *h) {
    VOLT_BEGIN(cx, h);
    VOLT_AWAIT(h->rc, volt_mutex_lock(cx, h->m));
    VOLT_END(h->rc);
}
ROOT_DIES(mutex_lock_again_by_child_is_misuse, "volt_mutex_lock: the task holds it already",
          { volt_mutex m; holder child; int rc; }) {
    VOLT_BEGIN(cx, s);
    s->child.m = &s->m;
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->m));
    VOLT_AWAIT(s->rc, locker_run(cx, &s->child));
    VOLT_END(0);
}
TEST_DIES(mutex_unlock_of_free_mutex_is_misuse, "volt_mutex_unlock: it is not locked") {
    static volt_mutex m;
    volt_mutex_unlock(&m);
}
// A thread may give back what a task has locked, and the other way round.
static void *unlocks(void *arg) {
    volt_mutex_unlock((volt_mutex *)arg);
    return NULL;
}
ROOT_TEST(mutex_of_a_task_may_be_unlocked_by_thread, { volt_mutex m; int rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->m));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->m), -EAGAIN);
    join_thread(start_thread(unlocks, &s->m));
    CHECK_EQ(volt_mutex_try_lock(&s->m), 0);
    volt_mutex_unlock(&s->m);
    VOLT_END(0);
}

// ---- rwlock

ROOT_TEST(rwlock_admits_readers_together, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, READ_LOCK, 0);
        IS_IN(s->i);
    }
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), -EAGAIN);
    CHECK_EQ(volt_rwlock_try_read(&s->p.l), 0);
    volt_rwlock_unlock(&s->p.l);
    for (s->i = 0; s->i < 4; s->i++) {
        CHECK_EQ(volt_rwlock_try_write(&s->p.l), -EAGAIN);
        GO(s->i);
        ENDED(s->i, 0);
    }
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), 0);
    CHECK_EQ(volt_rwlock_try_read(&s->p.l), -EAGAIN);
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), -EAGAIN);
    volt_rwlock_unlock(&s->p.l);
    VOLT_END(0);
}
// R W R R W: in turn, readers next to each other together.
ROOT_TEST(rwlock_reader_waits_behind_waiting_writer, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, READ_LOCK, 0);
    IS_IN(0);
    ENTER(1, WRITE_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 1);
    CHECK_EQ(volt_rwlock_try_read(&s->p.l), -EAGAIN); // a writer waits
    ENTER(2, READ_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 2);
    ENTER(3, READ_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 3);
    ENTER(4, WRITE_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 4);
    GO(0);
    IS_IN(1);
    CHECK_EQ(WAITING(s->p.l.sema_), 3);
    GO(1);
    IS_IN(2);
    IS_IN(3);
    CHECK_EQ(WAITING(s->p.l.sema_), 1);
    GO(3);
    ENDED(3, 0);
    CHECK_EQ(WAITING(s->p.l.sema_), 1);
    GO(2);
    IS_IN(4);
    GO(4);
    ENDED(4, 0);
    ENDED(2, 0);
    ENDED(1, 0);
    ENDED(0, 0);
    VOLT_END(0);
}
// The permits that a writer had collected go to the tasks behind it.
ROOT_TEST(rwlock_cancelled_writer_passes_permits_on, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, READ_LOCK, 0);
    IS_IN(0);
    ENTER(1, READ_LOCK, 0);
    IS_IN(1);
    ENTER(2, WRITE_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 1);
    ENTER(3, READ_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 2);
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(WAITING(s->p.l.sema_), 2);
    volt_cancel(&s->p.h[2]);
    ENDED(2, -ECANCELED);
    IS_IN(3);
    GO(1);
    ENDED(1, 0);
    GO(3);
    ENDED(3, 0);
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), 0); // all is there again
    VOLT_END(0);
}
ROOT_TEST(rwlock_downgrade_admits_no_other_writer, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), 0);
    ENTER(0, READ_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 1);
    ENTER(1, WRITE_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 2);
    ENTER(2, READ_LOCK, 0);
    UNTIL_WAITING(s->p.l.sema_, 3);
    volt_rwlock_downgrade(&s->p.l);
    IS_IN(0);
    CHECK_EQ(WAITING(s->p.l.sema_), 2); // the other writer, and the reader that is behind it
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(READ(s->p.in[1]), 0);
    volt_rwlock_unlock(&s->p.l);
    IS_IN(1);
    CHECK_EQ(READ(s->p.in[2]), 0);
    GO(1);
    IS_IN(2);
    GO(2);
    ENDED(1, 0);
    ENDED(2, 0);
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), 0);
    volt_rwlock_downgrade(&s->p.l); // there is no waiter
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), -EAGAIN);
    CHECK_EQ(volt_rwlock_try_read(&s->p.l), 0);
    volt_rwlock_unlock(&s->p.l);
    volt_rwlock_unlock(&s->p.l);
    CHECK_EQ(volt_rwlock_try_write(&s->p.l), 0);
    VOLT_END(0);
}
TEST_DIES(rwlock_unlock_twice_is_misuse, "volt_rwlock_unlock: it is not locked") {
    static volt_rwlock l;
    CHECK_EQ(volt_rwlock_try_write(&l), 0);
    volt_rwlock_unlock(&l);
    volt_rwlock_unlock(&l);
}
TEST_DIES(rwlock_downgrade_by_reader_is_misuse,
          "volt_rwlock_downgrade: it is not locked for writing") {
    static volt_rwlock l;
    CHECK_EQ(volt_rwlock_try_read(&l), 0);
    volt_rwlock_downgrade(&l);
}

// ---- semaphore

TEST(sem_counts_acquired_and_released_permits) {
    static volt_sem s = VOLT_SEM_INIT(3), none, full = VOLT_SEM_INIT(VOLT_SEM_MAX);
    CHECK_EQ(volt_sem_available(&s), 3);
    CHECK_EQ(volt_sem_try_acquire(&s, 4), -EAGAIN);
    CHECK_EQ(volt_sem_try_acquire(&s, 2), 0);
    CHECK_EQ(volt_sem_try_acquire(&s, 2), -EAGAIN);
    CHECK_EQ(volt_sem_acquire_sync(&s, 1, 0), 0);
    CHECK_EQ(volt_sem_acquire_sync(&s, 1, 0), -ETIMEDOUT);
    CHECK_EQ(volt_sem_release(&s, 5), 0);
    CHECK_EQ(volt_sem_forget(&s, 2), 2);
    CHECK_EQ(volt_sem_available(&s), 3);
    CHECK_EQ(volt_sem_forget(&s, 9), 3);
    CHECK_EQ(volt_sem_forget(&s, 1), 0);
    CHECK_EQ(volt_sem_available(&none), 0);
    CHECK_EQ(volt_sem_try_acquire(&none, 0), 0);
    CHECK_EQ(volt_sem_release(&none, 0), 0);
    CHECK_EQ(volt_sem_available(&full), VOLT_SEM_MAX);
    CHECK_EQ(volt_sem_try_acquire(&full, VOLT_SEM_MAX), 0);
    CHECK_EQ(volt_sem_release(&full, VOLT_SEM_MAX), 0);
}
ROOT_TEST(sem_refuses_more_permits_than_its_maximum, { volt_sem s; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->s, VOLT_SEM_MAX + 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->s, UINT32_MAX));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->s, 0));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_sem_try_acquire(&s->s, VOLT_SEM_MAX + 1), -EINVAL);
    CHECK_EQ(volt_sem_acquire_sync(&s->s, VOLT_SEM_MAX + 1, 0), -EINVAL);
    CHECK_EQ(volt_sem_release(&s->s, UINT32_MAX), -EOVERFLOW);
    CHECK_EQ(volt_sem_release(&s->s, VOLT_SEM_MAX + 1), -EOVERFLOW);
    CHECK_EQ(volt_sem_release(&s->s, VOLT_SEM_MAX), 0);
    CHECK_EQ(volt_sem_release(&s->s, 1), -EOVERFLOW);
    CHECK_EQ(volt_sem_available(&s->s), VOLT_SEM_MAX); // nothing was done
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->s, VOLT_SEM_MAX));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// At most three readers beside each other, or one writer alone.
enum { MOST_READERS = 3 };
typedef struct {
    volt_frame frame;
    volt_sem *gate;
    int *n_readers, *n_writers;
    uint32_t n; // permits: 1 of a reader, all of a writer
    int i, rc;
} visitor;
static volt_poll visitor_run(volt_cx *cx, void *arg) {
    visitor *v = (visitor *)arg;
    VOLT_BEGIN(cx, v);
    for (v->i = 0; v->i < 50; v->i++) {
        VOLT_AWAIT(v->rc, volt_sem_acquire(cx, v->gate, v->n));
        CHECK_EQ(v->rc, 0);
        int *mine = v->n == 1 ? v->n_readers : v->n_writers;
        CHECK(COUNT(*mine) <= (v->n == 1 ? MOST_READERS : 1));
        CHECK_EQ(READ(*(v->n == 1 ? v->n_writers : v->n_readers)), 0);
        VOLT_AWAIT(volt_yield(cx));
        mine = v->n == 1 ? v->n_readers : v->n_writers;
        __atomic_sub_fetch(mine, 1, __ATOMIC_ACQ_REL);
        CHECK_EQ(volt_sem_release(v->gate, v->n), 0);
    }
    VOLT_END(0);
}
ROOT_TEST(sem_limits_readers_beside_each_other_and_lets_a_writer_in_alone,
          { volt_sem gate; volt_group g; int n_readers, n_writers, i, rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_sem_release(&s->gate, MOST_READERS), 0);
    for (s->i = 0; s->i < 8; s->i++)
        GROUP_SPAWN(&s->g, visitor_run,
                    ((visitor){ .gate = &s->gate, .n_readers = &s->n_readers,
                                .n_writers = &s->n_writers, .n = s->i < 6 ? 1 : MOST_READERS }));
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_sem_available(&s->gate), MOST_READERS);
    VOLT_END(0);
}
// 5, then 1: the second could go on before, and does not.
ROOT_TEST(sem_large_request_is_not_overtaken, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_sem_release(&s->p.s, 2), 0);
    ENTER(0, ACQUIRE, 5);
    UNTIL_WAITING(s->p.s.sema_, 1);
    ENTER(1, ACQUIRE, 1);
    UNTIL_WAITING(s->p.s.sema_, 2);
    CHECK_EQ(volt_sem_try_acquire(&s->p.s, 1), -EAGAIN);
    CHECK_EQ(volt_sem_try_acquire(&s->p.s, 0), 0); // no permit, so there is nothing to wait for
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->p.s, 0));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 2; s->i++) {
        CHECK_EQ(volt_sem_release(&s->p.s, 1), 0);
        CHECK_EQ(volt_sem_available(&s->p.s), 0); // it has them
        CHECK_EQ(WAITING(s->p.s.sema_), 2);
    }
    CHECK_EQ(volt_sem_release(&s->p.s, 3), 0); // one for it, one for the next, and one
    IS_IN(0);
    IS_IN(1);
    CHECK_EQ(volt_sem_available(&s->p.s), 1);
    GO(0);
    GO(1);
    ENDED(0, 0);
    ENDED(1, 0);
    CHECK_EQ(volt_sem_available(&s->p.s), 7);
    VOLT_END(0);
}
// The permits it had collected serve the requests behind it, and the rest is there.
ROOT_TEST(sem_cancelled_request_passes_permits_on, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_sem_release(&s->p.s, 4), 0);
    ENTER(0, ACQUIRE, 5);
    UNTIL_WAITING(s->p.s.sema_, 1);
    ENTER(1, ACQUIRE, 2);
    UNTIL_WAITING(s->p.s.sema_, 2);
    ENTER(2, ACQUIRE, 1);
    UNTIL_WAITING(s->p.s.sema_, 3);
    ENTER(3, ACQUIRE, 2);
    UNTIL_WAITING(s->p.s.sema_, 4);
    volt_cancel(&s->p.h[0]);
    IS_IN(1);
    IS_IN(2);
    CHECK_EQ(WAITING(s->p.s.sema_), 1);
    ENDED(0, -ECANCELED);
    CHECK_EQ(volt_sem_available(&s->p.s), 0); // the fourth one's
    volt_cancel(&s->p.h[3]);
    ENDED(3, -ECANCELED);
    CHECK_EQ(volt_sem_available(&s->p.s), 1);
    GO(1);
    GO(2);
    ENDED(1, 0);
    ENDED(2, 0);
    CHECK_EQ(volt_sem_available(&s->p.s), 4);
    VOLT_END(0);
}
// Full, while a grant is on its way that is not taken: it comes back, and no permit is lost.
ROOT_TEST_1(sem_stays_at_maximum_when_a_grant_returns, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, ACQUIRE, 5);
    UNTIL_WAITING(s->p.s.sema_, 1);
    CHECK_EQ(volt_sem_release(&s->p.s, 5), 0);
    CHECK_EQ(volt_sem_release(&s->p.s, VOLT_SEM_MAX), 0);
    volt_cancel(&s->p.h[0]);
    ENDED(0, -ECANCELED);
    CHECK_EQ(volt_sem_available(&s->p.s), VOLT_SEM_MAX);
    VOLT_END(0);
}
ROOT_TEST(sem_close_ends_every_wait, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_sem_release(&s->p.s, 3), 0);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, ACQUIRE, 5);
        UNTIL_WAITING(s->p.s.sema_, s->i + 1);
    }
    volt_sem_close(&s->p.s);
    for (s->i = 0; s->i < 4; s->i++) ENDED(s->i, -EPIPE);
    CHECK_EQ(volt_sem_try_acquire(&s->p.s, 1), -EPIPE);
    CHECK_EQ(volt_sem_acquire_sync(&s->p.s, 1, 0), -EDEADLK);
    VOLT_AWAIT(s->rc, volt_sem_acquire(cx, &s->p.s, 1));
    CHECK_EQ(s->rc, -EPIPE);
    volt_sem_close(&s->p.s);
    CHECK_EQ(volt_sem_available(&s->p.s), 3); // the permits that the first waiter had collected
    CHECK_EQ(volt_sem_release(&s->p.s, 2), 0);
    CHECK_EQ(volt_sem_forget(&s->p.s, 9), 5);
    VOLT_END(0);
}
TEST(sem_tells_whether_it_is_closed) {
    volt_sem m = VOLT_SEM_INIT(1);
    CHECK_EQ(volt_sem_is_closed(&m), 0);
    CHECK_EQ(volt_sem_try_acquire(&m, 1), 0);
    CHECK_EQ(volt_sem_is_closed(&m), 0);
    volt_sem_close(&m);
    CHECK_EQ(volt_sem_is_closed(&m), 1);
    CHECK_EQ(volt_sem_release(&m, 1), 0);
    CHECK_EQ(volt_sem_is_closed(&m), 1);
}
// Closed when there is no waiter; on a thread.
TEST(sem_close_without_waiters_refuses_acquires) {
    static volt_sem s = VOLT_SEM_INIT(1);
    volt_sem_close(&s);
    CHECK_EQ(volt_sem_try_acquire(&s, 1), -EPIPE);
    CHECK_EQ(volt_sem_acquire_sync(&s, 1, VOLT_NEVER), -EPIPE);
}

// Takes free permits only: not those that a waiter has collected.
ROOT_TEST(sem_forget_takes_only_free_permits, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_sem_release(&s->p.s, 3), 0);
    ENTER(0, ACQUIRE, 5);
    UNTIL_WAITING(s->p.s.sema_, 1);
    CHECK_EQ(volt_sem_forget(&s->p.s, 3), 0);
    CHECK_EQ(volt_sem_release(&s->p.s, 2), 0);
    IS_IN(0);
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(volt_sem_forget(&s->p.s, 4), 4); // for good
    CHECK_EQ(volt_sem_available(&s->p.s), 1);
    VOLT_END(0);
}

// ---- once

// The preparation is visible to all that get 0, tasks and threads; for the thread sanitizer.
static struct {
    volt_once o;
    int value;
} prepared;
static void *prepares(void *arg) {
    int rc = volt_once_begin_sync(&prepared.o, VOLT_NEVER);
    if (rc == 1) prepared.value = 7;
    if (rc == 1) volt_once_end(&prepared.o, 1);
    CHECK_EQ(prepared.value, 7);
    return arg;
}
ROOT_TEST(once_end_makes_its_writes_visible,
          { place p; awaiter a; int64_t rc; int i; pthread_t t[2]; }) {
    VOLT_BEGIN(cx, s);
    memset(&prepared, 0, sizeof prepared);
    for (s->i = 0; s->i < 2 && TEST_MOST_WORKERS > 1; s->i++)
        s->t[s->i] = start_thread(prepares, NULL);
    VOLT_AWAIT(s->rc, volt_once_begin(cx, &prepared.o));
    if (s->rc == 1) {
        VOLT_AWAIT(volt_yield(cx));
        prepared.value = 7;
        volt_once_end(&prepared.o, 1);
    }
    CHECK_EQ(prepared.value, 7);
    CHECK_EQ(volt_once_try_begin(&prepared.o), 0);
    for (s->i = 0; s->i < 2 && TEST_MOST_WORKERS > 1; s->i++) join_thread(s->t[s->i]);
    VOLT_END(0);
}
ROOT_TEST(once_failure_lets_the_next_waiter_begin, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    CHECK(!volt_once_is_done(&s->p.o));
    VOLT_AWAIT(s->rc, volt_once_begin(cx, &s->p.o));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(volt_once_try_begin(&s->p.o), -EAGAIN);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, BEGIN, 0);
        UNTIL_WAITING(s->p.o.sema_, s->i + 1);
        GO(s->i);
    }
    CHECK(!volt_once_is_done(&s->p.o));
    volt_once_end(&s->p.o, 0); // failed: the next one does it
    IS_IN(0);
    ENDED(0, 1);
    CHECK_EQ(WAITING(s->p.o.sema_), 3);
    CHECK(!volt_once_is_done(&s->p.o));
    volt_once_end(&s->p.o, 1);
    for (s->i = 1; s->i < 4; s->i++) ENDED(s->i, 0);
    CHECK(volt_once_is_done(&s->p.o));
    CHECK_EQ(volt_once_try_begin(&s->p.o), 0);
    VOLT_AWAIT(s->rc, volt_once_begin(cx, &s->p.o));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST_DIES(once_failing_end_before_begin_is_misuse, "volt_once_end: no work has begun") {
    static volt_once o;
    volt_once_end(&o, 0);
}

TEST_DIES(once_end_after_the_end_is_misuse, "volt_once_end: no work has begun") {
    static volt_once o;
    if (volt_once_try_begin(&o) != 1) return;
    volt_once_end(&o, 1);
    volt_once_end(&o, 0);
}
TEST_DIES(once_end_before_begin_is_misuse, "volt_once_end: no work has begun") {
    static volt_once o;
    volt_once_end(&o, 1);
}

// A task counts its waits in 16 bits.
enum { TOO_MANY = 65536 };
typedef struct {
    volt_frame frame;
    volt_sem *s;
} acquirer;
static volt_poll acquirer_run(volt_cx *cx, void *arg) {
    acquirer *a = (acquirer *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(volt_sem_acquire(cx, a->s, 1));
    VOLT_END(0);
}
static acquirer too_many[TOO_MANY];
typedef struct {
    volt_frame frame;
    volt_sem none;
} acquirers;
static volt_poll acquirers_run(volt_cx *cx, void *arg) {
    acquirers *a = (acquirers *)arg;
    VOLT_BEGIN(cx, a);
    for (int i = 0; i < TOO_MANY; i++) too_many[i].s = &a->none;
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(acquirer_run, too_many)));
    VOLT_END(0);
}
TEST_DIES(task_with_more_than_65535_waits_is_misuse, "more than 65535 waits at once in one task") {
    static acquirers a;
    run_on(1, acquirers_run, &a);
}

// A failing request costs as much as one that succeeds: other tasks of the worker run in between.
typedef struct {
    volt_frame frame;
    volt_sem *s;
    int rc, n, *n_run;
} asker;
static volt_poll asker_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    for (a->n = 0; a->n < 100000 && READ(*a->n_run) < 2; a->n++) {
        VOLT_AWAIT(a->rc, volt_sem_acquire(cx, a->s, VOLT_SEM_MAX + 1));
        CHECK_EQ(a->rc, -EINVAL);
        if (a->n == 0) COUNT(*a->n_run);
    }
    VOLT_END(a->n < 100000);
}
ROOT_TEST_1(sem_oversized_acquire_spends_budget, {
    volt_sem sem;
    volt_handle h[2];
    int n_run;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++)
        SPAWN(&s->h[i], asker_run, (asker){ .s = &s->sem, .n_run = &s->n_run });
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, 1);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    CHECK_EQ(s->rc, 1);
    VOLT_END(0);
}

static volt_poll greedy_run(volt_cx *cx, void *arg) {
    asker *a = (asker *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_sem_acquire(cx, a->s, VOLT_SEM_MAX + 1));
    VOLT_END(a->rc);
}
ROOT_TEST_1(sem_oversized_acquire_in_cancelled_task_is_cancelled, {
    volt_sem sem;
    volt_handle h;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, greedy_run, (asker){ .s = &s->sem });
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}

// ---- event

ROOT_TEST(event_stays_set_until_reset, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK(!volt_event_is_set(&s->p.e));
    volt_event_reset(&s->p.e);
    ENTER(0, WAIT_EVENT, 0);
    UNTIL_WAITING(s->p.e.waitword_, 1);
    volt_event_set(&s->p.e);
    CHECK(volt_event_is_set(&s->p.e));
    IS_IN(0);
    VOLT_AWAIT(s->rc, volt_event_wait(cx, &s->p.e));
    CHECK_EQ(s->rc, 0);
    volt_event_set(&s->p.e);
    volt_event_reset(&s->p.e); // once, however often it was set
    CHECK(!volt_event_is_set(&s->p.e));
    ENTER(1, WAIT_EVENT, 0);
    UNTIL_WAITING(s->p.e.waitword_, 1);
    volt_event_set(&s->p.e);
    GO(0);
    GO(1);
    ENDED(1, 0);
    ENDED(0, 0);
    VOLT_END(0);
}
// Reset before the waiters have run: they go on all the same, a task that comes later does not.
ROOT_TEST_1(event_set_wakes_all_waiters_despite_reset, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, WAIT_EVENT, 0);
        UNTIL_WAITING(s->p.e.waitword_, s->i + 1);
        GO(s->i);
    }
    volt_event_set(&s->p.e);
    volt_event_reset(&s->p.e);
    ENTER(4, WAIT_EVENT, 0);
    for (s->i = 0; s->i < 4; s->i++) {
        ENDED(s->i, 0);
        CHECK_EQ(s->p.order[s->i], s->i + 1);
    }
    UNTIL_WAITING(s->p.e.waitword_, 1);
    volt_event_set(&s->p.e);
    GO(4);
    ENDED(4, 0);
    VOLT_END(0);
}
// Set by a thread that finds it set: that thread's writes are visible, too. For ThreadSanitizer.
static struct {
    volt_event e;
    int by_first, by_second;
    int n_set;
} twice;
static void *set_first(void *arg) {
    twice.by_first = 1;
    volt_event_set(&twice.e);
    __atomic_store_n(&twice.n_set, 1, __ATOMIC_RELAXED);
    return arg;
}
static void *set_again(void *arg) {
    UNTIL(__atomic_load_n(&twice.n_set, __ATOMIC_RELAXED) == 1);
    twice.by_second = 1;
    volt_event_set(&twice.e);
    __atomic_store_n(&twice.n_set, 2, __ATOMIC_RELAXED);
    return arg;
}
TEST_OF_THREADS(event_second_set_makes_writes_visible) {
    pthread_t one = start_thread(set_first, NULL), two = start_thread(set_again, NULL);
    UNTIL(__atomic_load_n(&twice.n_set, __ATOMIC_RELAXED) == 2);
    CHECK_EQ(volt_event_wait_sync(&twice.e, VOLT_NEVER), 0);
    CHECK_EQ(twice.by_first, 1);
    CHECK_EQ(twice.by_second, 1);
    join_thread(one);
    join_thread(two);
}

// ---- wait group

ROOT_TEST(wait_group_counts_up_to_int32_max, { volt_wait_group g; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_wait_group_wait(cx, &s->g)); // none
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_wait_group_add(&s->g, 0), 0);
    CHECK_EQ(volt_wait_group_add(&s->g, 2), 0);
    CHECK_EQ(volt_wait_group_add(&s->g, INT32_MAX - 2), 0);
    CHECK_EQ(volt_wait_group_add(&s->g, 1), -EOVERFLOW);
    CHECK_EQ(volt_wait_group_add(&s->g, UINT32_MAX), -EOVERFLOW);
    CHECK_EQ(volt_wait_group_add(&s->g, 0), 0);
    volt_wait_group_done(&s->g);
    CHECK_EQ(volt_wait_group_add(&s->g, 2), -EOVERFLOW);
    CHECK_EQ(volt_wait_group_add(&s->g, 1), 0);
    memset(&s->g, 0, sizeof s->g);
    for (s->i = 1; s->i < 5; s->i++) { // again and again
        CHECK_EQ(volt_wait_group_add(&s->g, (uint32_t)s->i), 0);
        for (int i = 0; i < s->i; i++) volt_wait_group_done(&s->g);
        VOLT_AWAIT(s->rc, volt_wait_group_wait(cx, &s->g));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
// Only the last done opens it; also with the bit for waiters at the largest count.
typedef struct {
    volt_frame frame;
    object *o;
    int *n_ended, rc;
} onlooker;
static volt_poll onlooker_run(volt_cx *cx, void *arg) {
    onlooker *l = (onlooker *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, object_wait(cx, l->o));
    COUNT(*l->n_ended);
    VOLT_END(l->rc);
}
ROOT_TEST(wait_group_opens_at_the_last_done, {
    object o;
    volt_handle h;
    awaiter a;
    int n_ended;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    object_init(&s->o, GROUP);
    CHECK_EQ(volt_wait_group_add(&s->o.group, 2), 0);
    SPAWN(&s->h, onlooker_run, (onlooker){ .o = &s->o, .n_ended = &s->n_ended });
    UNTIL_WAITING(s->o.group.waitword_, 1);
    CHECK_EQ(volt_wait_group_add(&s->o.group, INT32_MAX - 3), 0);
    CHECK_EQ(volt_wait_group_add(&s->o.group, 1), -EOVERFLOW);
    s->o.group.waitword_.word_ -= 2u * (INT32_MAX - 3);
    volt_wait_group_done(&s->o.group);
    volt_wait_group_done(&s->o.group);
    CHECK_EQ(WAITING(s->o.group.waitword_), 1);
    volt_wait_group_done(&s->o.group);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST_DIES(wait_group_done_too_often_is_misuse, "volt_wait_group_done: the count is 0 already") {
    static volt_wait_group g;
    CHECK_EQ(volt_wait_group_add(&g, 1), 0);
    volt_wait_group_done(&g);
    volt_wait_group_done(&g);
}

// ---- tracker

ROOT_TEST(tracker_wait_ends_when_closed_and_empty, {
    object o;
    volt_handle h;
    awaiter a;
    int n_ended;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    object_init(&s->o, TRACKER);
    CHECK_EQ(volt_tracker_enter(&s->o.tracker), 0);
    SPAWN(&s->h, onlooker_run, (onlooker){ .o = &s->o, .n_ended = &s->n_ended });
    UNTIL_WAITING(s->o.tracker.waitword_, 1);
    volt_tracker_leave(&s->o.tracker);
    volt_tracker_leave(&s->o.tracker); // empty, but not closed
    CHECK_EQ(WAITING(s->o.tracker.waitword_), 1);
    CHECK_EQ(volt_tracker_enter(&s->o.tracker), 0);
    volt_tracker_close(&s->o.tracker); // closed, but not empty
    CHECK_EQ(WAITING(s->o.tracker.waitword_), 1);
    CHECK_EQ(volt_tracker_enter(&s->o.tracker), -EPIPE);
    volt_tracker_leave(&s->o.tracker);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    volt_tracker_close(&s->o.tracker);
    CHECK_EQ(volt_tracker_enter(&s->o.tracker), -EPIPE);
    VOLT_AWAIT(s->rc, volt_tracker_wait(cx, &s->o.tracker));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST(tracker_may_be_opened_again, { volt_tracker t; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_tracker_enter(&s->t), 0);
    CHECK_EQ(volt_tracker_enter(&s->t), 0);
    CHECK_EQ(volt_tracker_len(&s->t), 2);
    CHECK_EQ(volt_tracker_is_closed(&s->t), 0);
    volt_tracker_close(&s->t);
    CHECK_EQ(volt_tracker_is_closed(&s->t), 1);
    CHECK_EQ(volt_tracker_enter(&s->t), -EPIPE);
    CHECK_EQ(volt_tracker_len(&s->t), 2);
    volt_tracker_reopen(&s->t);
    CHECK_EQ(volt_tracker_is_closed(&s->t), 0);
    CHECK_EQ(volt_tracker_enter(&s->t), 0);
    for (int i = 0; i < 3; i++) volt_tracker_leave(&s->t);
    CHECK_EQ(volt_tracker_len(&s->t), 0);
    volt_tracker_close(&s->t);
    VOLT_AWAIT(s->rc, volt_tracker_wait(cx, &s->t));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// A wait that the close has let through is over, whatever comes then.
ROOT_TEST_1(tracker_wait_that_is_over_is_not_undone_by_opening,
            { object o; volt_handle h; int n_ended; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    object_init(&s->o, TRACKER);
    SPAWN(&s->h, onlooker_run, (onlooker){ .o = &s->o, .n_ended = &s->n_ended });
    while (WAITING(s->o.tracker.waitword_) == 0) VOLT_AWAIT(volt_yield(cx));
    object_open(&s->o);
    volt_tracker_reopen(&s->o.tracker);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST(tracker_enter_refuses_overflow) {
    static volt_tracker t;
    CHECK_EQ(volt_tracker_enter(&t), 0);
    t.waitword_.word_ *= (1u << 30) - 2;
    CHECK_EQ(volt_tracker_enter(&t), 0);
    CHECK_EQ(volt_tracker_enter(&t), -EOVERFLOW);
    CHECK_EQ(volt_tracker_wait_sync(&t, 0), -ETIMEDOUT);
    volt_tracker_leave(&t);
    CHECK_EQ(volt_tracker_enter(&t), 0);
    CHECK_EQ(volt_tracker_enter(&t), -EOVERFLOW);
    volt_tracker_close(&t);
    CHECK_EQ(volt_tracker_enter(&t), -EPIPE);
}
TEST_DIES(tracker_leave_too_often_is_misuse, "volt_tracker_leave: no volt_tracker_enter is left") {
    static volt_tracker t;
    volt_tracker_close(&t);
    volt_tracker_leave(&t);
}

// ---- notify

ROOT_TEST(notify_keeps_one_permit, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    volt_notify_one(&s->p.n);
    volt_notify_last(&s->p.n);
    VOLT_AWAIT(s->rc, volt_notify_wait(cx, &s->p.n));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN); // one for both
    volt_notify_all(&s->p.n);                         // keeps none
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    volt_notify_one(&s->p.n);
    volt_notify_all(&s->p.n); // takes none away
    CHECK_EQ(volt_notify_try_wait(&s->p.n), 0);
    ENTER(0, WAIT_NOTIFY, 0);
    UNTIL_WAITING(s->p.n, 1);
    volt_notify_one(&s->p.n);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN); // it is the waiter's
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    VOLT_END(0);
}
ROOT_TEST(notify_wakes_oldest_newest_or_all, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 6; s->i++) {
        ENTER(s->i, WAIT_NOTIFY, 0);
        UNTIL_WAITING(s->p.n, s->i + 1);
    }
    volt_notify_one(&s->p.n);
    IS_IN(0);
    volt_notify_last(&s->p.n);
    IS_IN(5);
    volt_notify_last(&s->p.n);
    IS_IN(4);
    volt_notify_one(&s->p.n);
    IS_IN(1);
    CHECK_EQ(WAITING(s->p.n), 2);
    volt_notify_all(&s->p.n);
    for (s->i = 0; s->i < 6; s->i++) {
        GO(s->i);
        ENDED(s->i, 0);
    }
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    VOLT_END(0);
}
// A notification that a cancelled wait gives back goes on from the same end of the line.
ROOT_TEST_1(notify_last_cancelled_serves_last_but_one, {
    place p;
    awaiter a;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 4; s->i++) {
        ENTER(s->i, WAIT_NOTIFY, 0);
        UNTIL_WAITING(s->p.n, s->i + 1);
    }
    volt_notify_last(&s->p.n);
    volt_cancel(&s->p.h[3]);
    ENDED(3, -ECANCELED);
    IS_IN(2);
    GO(2);
    ENDED(2, 0);
    volt_notify_one(&s->p.n);
    volt_cancel(&s->p.h[0]);
    ENDED(0, -ECANCELED);
    IS_IN(1);
    GO(1);
    ENDED(1, 0);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    VOLT_END(0);
}
// All present waiters, in order, and no later one.
ROOT_TEST_1(notify_all_wakes_no_later_waiter, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        ENTER(s->i, WAIT_NOTIFY, 0);
        UNTIL_WAITING(s->p.n, s->i + 1);
        GO(s->i);
    }
    volt_notify_all(&s->p.n);
    ENTER(3, WAIT_NOTIFY, 0);
    UNTIL_WAITING(s->p.n, 1);
    for (s->i = 0; s->i < 3; s->i++) {
        ENDED(s->i, 0);
        CHECK_EQ(s->p.order[s->i], s->i + 1);
    }
    CHECK_EQ(WAITING(s->p.n), 1);
    volt_cancel(&s->p.h[3]);
    ENDED(3, -ECANCELED);
    VOLT_END(0);
}
// A permit that comes back when there is no other waiter is kept; a notification of all is not.
ROOT_TEST_1(notify_keeps_permit_of_cancelled_wait, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, WAIT_NOTIFY, 0);
    UNTIL_WAITING(s->p.n, 1);
    volt_notify_all(&s->p.n);
    volt_cancel(&s->p.h[0]);
    ENDED(0, -ECANCELED);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    ENTER(1, WAIT_NOTIFY, 0);
    UNTIL_WAITING(s->p.n, 1);
    volt_notify_one(&s->p.n);
    volt_cancel(&s->p.h[1]);
    ENDED(1, -ECANCELED);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), 0);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    VOLT_END(0);
}
ROOT_TEST(notify_wait_past_ends_after_notify_all, { place p; awaiter a; uint32_t n; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->n = volt_notify_count(&s->p.n);
    volt_notify_one(&s->p.n);
    CHECK_EQ(volt_notify_count(&s->p.n), s->n); // tells one
    ENTER(0, WAIT_PAST, s->n);
    VOLT_AWAIT(until_waits(cx, &s->a, &s->p.n.lock_, &s->p.n.watchers_, 1));
    CHECK_EQ(volt_notify_try_wait(&s->p.n), 0); // no waiter has taken it
    volt_notify_one(&s->p.n);                   // beside a task that waits for all
    CHECK_EQ(count_waiting(&s->p.n.lock_, &s->p.n.watchers_), 1);
    volt_notify_last(&s->p.n);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), 0);
    CHECK_EQ(volt_notify_try_wait(&s->p.n), -EAGAIN);
    volt_notify_all(&s->p.n);
    GO(0);
    ENDED(0, 0);
    CHECK_EQ(volt_notify_count(&s->p.n), s->n + 1);
    VOLT_AWAIT(s->rc, volt_notify_wait_past(cx, &s->p.n, s->n)); // at once
    CHECK_EQ(s->rc, 0);
    volt_notify_one(&s->p.n);
    VOLT_AWAIT(s->rc, volt_notify_wait_past(cx, &s->p.n, s->n));
    CHECK_EQ(volt_notify_try_wait(&s->p.n), 0); // takes no permit
    VOLT_END(0);
}
// Numbers wrap around, beside a permit and waiters.
ROOT_TEST(notify_count_wraps_around, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        memset(&s->p, 0, sizeof s->p);
        s->p.n.word_ = ((1u << 30) - 1) << 2;
        CHECK_EQ(volt_notify_count(&s->p.n), (1 << 30) - 1);
        if (s->i == 1) {
            ENTER(0, WAIT_PAST, (1u << 30) - 1);
            VOLT_AWAIT(until_waits(cx, &s->a, &s->p.n.lock_, &s->p.n.watchers_, 1));
            GO(0);
        }
        volt_notify_one(&s->p.n);
        volt_notify_all(&s->p.n);
        CHECK_EQ(volt_notify_count(&s->p.n), 0);
        if (s->i == 1) ENDED(0, 0);
        VOLT_AWAIT(s->rc, volt_notify_wait_past(cx, &s->p.n, (1u << 30) - 1));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(volt_notify_try_wait(&s->p.n), 0);
    }
    VOLT_END(0);
}

// ---- barrier

ROOT_TEST(barrier_elects_one_leader_per_round,
          { place p; awaiter a; int64_t rc; int i, j, n_leaders; }) {
    VOLT_BEGIN(cx, s);
    s->p.b = (volt_barrier)VOLT_BARRIER_INIT(5);
    for (s->j = 0; s->j < 3; s->j++) {
        for (s->i = 0; s->i < 4; s->i++) {
            ENTER(s->i, WAIT_BARRIER, 0);
            UNTIL_WAITING(s->p.b, s->i + 1);
            volt_event_set(&s->p.go[s->i]);
        }
        VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->p.b));
        CHECK(s->rc == 0 || s->rc == 1);
        s->n_leaders = (int)s->rc;
        for (s->i = 0; s->i < 4; s->i++) {
            VOLT_AWAIT(s->rc, volt_join(cx, &s->p.h[s->i]));
            CHECK(s->rc == 0 || s->rc == 1);
            s->n_leaders += (int)s->rc;
        }
        CHECK_EQ(s->n_leaders, 1);
        CHECK_EQ(WAITING(s->p.b), 0);
    }
    VOLT_END(0);
}
ROOT_TEST(barrier_of_one_or_none_never_waits, { volt_barrier one, none; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    s->one = (volt_barrier)VOLT_BARRIER_INIT(1);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->one));
        CHECK_EQ(s->rc, 1);
        VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->none));
        CHECK_EQ(s->rc, 1);
    }
    CHECK_EQ(volt_barrier_wait_sync(&s->one, VOLT_NEVER), -EDEADLK);
    VOLT_END(0);
}
// Cancelled before: has not come, the others wait for one more. In time: has come, and is told so.
ROOT_TEST_1(barrier_cancelled_wait_does_not_count,
            { place p; awaiter a; int64_t rc; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    s->p.b = (volt_barrier)VOLT_BARRIER_INIT(3);
    ENTER(0, WAIT_BARRIER, 0);
    UNTIL_WAITING(s->p.b, 1);
    ENTER(1, WAIT_BARRIER, 0);
    UNTIL_WAITING(s->p.b, 2);
    volt_cancel(&s->p.h[0]);
    ENDED(0, -ECANCELED);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_barrier_wait(cx, &s->p.b)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(WAITING(s->p.b), 1);
    CHECK_EQ(s->p.in[1], 0);
    ENTER(2, WAIT_BARRIER, 0);
    UNTIL_WAITING(s->p.b, 2);
    GO(2);
    VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->p.b));
    CHECK_EQ(s->rc, 1);
    ENDED(2, 0);
    GO(1);
    ENDED(1, 0);
    VOLT_END(0);
}
ROOT_TEST_1(barrier_cancel_after_round_has_no_effect, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    s->p.b = (volt_barrier)VOLT_BARRIER_INIT(3);
    ENTER(0, WAIT_BARRIER, 0);
    UNTIL_WAITING(s->p.b, 1);
    ENTER(1, WAIT_BARRIER, 0);
    UNTIL_WAITING(s->p.b, 2);
    VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->p.b));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->p.in[0], 0);
    volt_cancel(&s->p.h[0]); // has come already
    IS_IN(0);
    CHECK_EQ(s->p.rc[0], 0);
    GO(1);
    ENDED(1, 0);
    ENDED(0, 0);
    VOLT_END(0);
}
typedef struct {
    volt_barrier *b;
    volt_time at_most;
    int rc;
} arrival;
static void *arrives(void *arg) {
    arrival *a = (arrival *)arg;
    a->rc = volt_barrier_wait_sync(a->b, a->at_most);
    return NULL;
}
TEST_OF_THREADS(barrier_thread_that_times_out_does_not_count) {
    static volt_barrier b = VOLT_BARRIER_INIT(4);
    arrival a[5];
    pthread_t t[5];
    CHECK_EQ(volt_barrier_wait_sync(&b, VOLT_MS(1)), -ETIMEDOUT); // has not come
    for (int i = 0; i < 4; i++) {
        a[i] = (arrival){ &b, i == 1 ? VOLT_MS(2) : VOLT_NEVER, 7 };
        t[i] = start_thread(arrives, &a[i]);
        if (i == 1) join_thread(t[i]);
        else UNTIL(WAITING(b) == (i < 2 ? 1 : i));
    }
    CHECK_EQ(a[1].rc, -ETIMEDOUT);
    CHECK_EQ(volt_barrier_wait_sync(&b, 0), 1);
    for (int i = 0; i < 4; i++) {
        if (i == 1) continue;
        join_thread(t[i]);
        CHECK_EQ(a[i].rc, 0);
    }
}

// ---- condition variable

ROOT_TEST(cond_signal_wakes_one_broadcast_wakes_all, { place p; awaiter a; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    volt_cond_signal(&s->p.c); // there is no waiter: nothing is kept
    volt_cond_broadcast(&s->p.c);
    for (s->i = 0; s->i < 5; s->i++) {
        ENTER(s->i, WAIT_COND, 0);
        UNTIL_WAITING(s->p.c, s->i + 1);
        VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m)); // unlocked, though perhaps not yet
        volt_mutex_unlock(&s->p.m);
    }
    volt_cond_signal(&s->p.c);
    IS_IN(0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), -EAGAIN); // locked again
    CHECK_EQ(WAITING(s->p.c), 4);
    GO(0);
    ENDED(0, 0);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    volt_cond_signal(&s->p.c); // with the mutex
    UNTIL_WAITING(s->p.m.sema_, 1);
    volt_mutex_unlock(&s->p.m);
    IS_IN(1);
    volt_cond_broadcast(&s->p.c);
    UNTIL_WAITING(s->p.m.sema_, 3);
    for (int i = 1; i < 5; i++) GO(i); // they may have come to the mutex in any order
    for (s->i = 1; s->i < 5; s->i++) ENDED(s->i, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
// Without the mutex, by a thread.
static void *signals(void *arg) {
    volt_cond_signal((volt_cond *)arg);
    return NULL;
}
static void *broadcasts(void *arg) {
    volt_cond_broadcast((volt_cond *)arg);
    return NULL;
}
TEST_OF_THREADS(cond_signal_from_thread_needs_no_mutex) {
    static place p;
    EACH_WORKERS(w) {
        volt_handle h[3];
        int64_t rc;
        memset(&p, 0, sizeof p);
        volt_rt *rt = create_on(w);
        for (int i = 0; i < 3; i++) {
            volt_event_set(&p.go[i]);
            RT_SPAWN(rt, &h[i], user_run, (user){ .p = &p, .id = i, .op = WAIT_COND });
            UNTIL(WAITING(p.c) == i + 1);
        }
        join_thread(start_thread(signals, &p.c));
        CHECK_EQ(volt_join_sync(&h[0], VOLT_NEVER, &rc), 0);
        CHECK_EQ(WAITING(p.c), 2);
        join_thread(start_thread(broadcasts, &p.c));
        for (int i = 1; i < 3; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        for (int i = 0; i < 3; i++) CHECK_EQ(p.rc[i], 0);
        destroy(rt);
    }
}
// Cancelled while it waits to lock again: it waits on, has the mutex, and the signal is taken.
ROOT_TEST(cond_cancel_during_relock_has_no_effect, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, WAIT_COND, 0);
    UNTIL_WAITING(s->p.c, 1);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    volt_cond_signal(&s->p.c);
    UNTIL_WAITING(s->p.m.sema_, 1);
    volt_cancel(&s->p.h[0]);
    VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(WAITING(s->p.m.sema_), 1);
    CHECK_EQ(READ(s->p.in[0]), 0);
    volt_mutex_unlock(&s->p.m);
    ENDED(0, 0);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
// Cancelled while another one has the mutex: it comes back with it, later.
ROOT_TEST(cond_cancelled_wait_relocks_its_mutex, { place p; awaiter a; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    ENTER(0, WAIT_COND, 0);
    UNTIL_WAITING(s->p.c, 1);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->p.m));
    volt_cancel(&s->p.h[0]);
    UNTIL_WAITING(s->p.m.sema_, 1);
    CHECK_EQ(WAITING(s->p.c), 0);
    CHECK_EQ(READ(s->p.in[0]), 0);
    volt_mutex_unlock(&s->p.m);
    ENDED(0, -ECANCELED);
    CHECK_EQ(volt_mutex_try_lock(&s->p.m), 0);
    VOLT_END(0);
}
ROOT_TEST(cond_wait_that_times_out_relocks_its_mutex,
          { volt_mutex m; volt_cond c; volt_timer t; volt_arm a, b; int rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_mutex_try_lock(&s->m), 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_cond_wait(cx, &s->c, &s->m)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(volt_mutex_try_lock(&s->m), -EAGAIN); // has it again
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_cond_wait(cx, &s->c, &s->m)),
                                  VOLT_ARM(&s->b, volt_sleep(cx, VOLT_MS(1)))));
    CHECK_EQ(s->rc, 1);
    CHECK_EQ(s->a.value, -ECANCELED);
    CHECK_EQ(volt_mutex_try_lock(&s->m), -EAGAIN);
    volt_mutex_unlock(&s->m);
    CHECK_EQ(volt_cond_wait_sync(&s->c, &s->m, VOLT_NEVER), -EDEADLK);
    VOLT_END(0);
}
#ifdef VOLT_SINGLE_THREAD
// No other thread could signal, or give the mutex back: it is kept, although a task waits for it.
TEST(cond_keeps_its_mutex_in_a_single_thread) {
    static place p;
    volt_handle h;
    int64_t rc;
    memset(&p, 0, sizeof p);
    p.m = (volt_mutex)VOLT_MUTEX_FIFO;
    volt_rt *rt = create_on(1);
    CHECK_EQ(volt_mutex_try_lock(&p.m), 0);
    RT_SPAWN(rt, &h, user_run, (user){ .p = &p, .op = LOCK });
    while (WAITING(p.m.sema_) == 0) CHECK(volt_rt_step(rt, 0) >= 0);
    CHECK_EQ(volt_cond_wait_sync(&p.c, &p.m, VOLT_MS(1)), -ETIMEDOUT);
    CHECK(volt_rt_step(rt, 0) >= 0);
    CHECK_EQ(p.in[0], 0);
    CHECK_EQ(volt_mutex_try_lock(&p.m), -EAGAIN);
    volt_mutex_unlock(&p.m);
    volt_event_set(&p.go[0]);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    destroy(rt);
}
#endif
ROOT_DIES_OF_A_LOCAL(cond_mutex_on_the_stack_is_misuse, { volt_cond c; int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_mutex m;
    m = (volt_mutex)VOLT_MUTEX_INIT;
    CHECK_EQ(volt_mutex_try_lock(&m), 0);
    VOLT_AWAIT(s->rc, volt_cond_wait(cx, &s->c, &m));
    VOLT_END(0);
}
ROOT_DIES(cond_wait_without_its_mutex_is_misuse, "volt_mutex_unlock: it is not locked",
          { volt_mutex m; volt_cond c; int rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_cond_wait(cx, &s->c, &s->m));
    VOLT_END(0);
}
