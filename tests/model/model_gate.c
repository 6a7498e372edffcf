// SPDX-License-Identifier: MIT OR 0BSD
// Gates ([G1]): mutex, read-write lock, semaphore, once. Guarded data is touched only from inside;
// a waiter goes on when there is room, also when another one that was let through leaves; permits
// are neither lost nor made; the last one to be let through may free the object at once, while
// those before it are still on their way out of the call that let it through.
// Run: make model ONE=sema_mutex_two (or another name from below).
#define VOLT_LOCK_TRIES 0
#define VOLT_MUTEX_BARGES 1
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

enum { FIFO = 1 };

// ---- mutex: its last user frees it

typedef struct shared {
    volt_mutex mutex;
    int n_uses; // plain, under the mutex: how many are still to come
} shared;
static shared *s;

static void share(int n_uses, int is_fifo) {
    volt_mutex fifo = VOLT_MUTEX_FIFO;
    s = vmc_alloc(sizeof *s);
    if (is_fifo) s->mutex = fifo;
    s->n_uses = n_uses;
}
// Inside. The user that sees that it is the last one frees the mutex as soon as it is out.
static void use_and_unlock(void) {
    int is_last = --s->n_uses == 0;
    volt_mutex_unlock(&s->mutex);
    if (is_last) vmc_free(s);
}
static void lock_and_use(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_mutex_lock_sync(&s->mutex, VOLT_NEVER) == 0);
    use_and_unlock();
}
static void mutex_wait_begin(waiter *w) {
    volt__sema_wait_op(&w->a, &s->mutex.sema_, VOLT__SEMA_ONE, 1);
    wait_begin(w);
}
static void mutex_wait_and_use(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    use_and_unlock();
}
static void mutex_two(int is_fifo) {
    share(2, is_fifo);
    int t = vmc_spawn(lock_and_use, NULL);
    lock_and_use(NULL);
    vmc_join(t);
}
SCENARIO(sema_mutex_two) { mutex_two(0); }
SCENARIO(sema_mutex_two_fifo) { mutex_two(FIFO); }

// One is inside, one waits, a third one comes.
static void mutex_three(int is_fifo) {
    share(3, is_fifo);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    int t1 = vmc_spawn(mutex_wait_and_use, &w1), t2 = vmc_spawn(lock_and_use, NULL);
    use_and_unlock();
    vmc_join(t1);
    vmc_join(t2);
}
SCENARIO(sema_mutex_three, .class = VMC_BOUNDED, .preemptions = 2) { mutex_three(0); }
SCENARIO(sema_mutex_three_fifo, .class = VMC_BOUNDED, .preemptions = 2) { mutex_three(FIFO); }

// The holder unlocks and locks again before the waiter has come, and once more: then it is passed.
static void mutex_again(int n, int is_fifo) {
    share(n + 2, is_fifo);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    int t = vmc_spawn(mutex_wait_and_use, &w1);
    use_and_unlock();
    while (n-- > 0) lock_and_use(NULL);
    vmc_join(t);
}
SCENARIO(sema_mutex_again) { mutex_again(1, 0); }
SCENARIO(sema_mutex_again_twice, .class = VMC_BOUNDED, .preemptions = 2) { mutex_again(2, 0); }
SCENARIO(sema_mutex_again_fifo) { mutex_again(1, FIFO); }
// The same with a thread that comes meanwhile, and goes back to wait.
SCENARIO(sema_mutex_again_fresh, .class = VMC_BOUNDED, .preemptions = 2) {
    share(3, 0);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    int t = vmc_spawn(lock_and_use, NULL);
    use_and_unlock();
    lock_and_use(NULL);
    vmc_join(t);
}

// A wait is left while it is let through, and another one behind it must go on.
static void mutex_leave(int is_fifo) {
    share(3, is_fifo);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    mutex_wait_begin(&w2);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(mutex_wait_and_use, &w2);
    use_and_unlock();
    vmc_join(t1);
    vmc_join(t2);
    lock_and_use(NULL);
}
SCENARIO(sema_mutex_leave) { mutex_leave(0); }
SCENARIO(sema_mutex_leave_fifo) { mutex_leave(FIFO); }

// The same while a third one locks and unlocks.
SCENARIO(sema_mutex_leave_again, .class = VMC_BOUNDED, .preemptions = 2) {
    share(4, 0);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    mutex_wait_begin(&w2);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(mutex_wait_and_use, &w2);
    use_and_unlock();
    lock_and_use(NULL);
    vmc_join(t1);
    vmc_join(t2);
    lock_and_use(NULL);
}

// The only waiter leaves: no other one is let through, and the mutex stays free.
static void mutex_leave_alone(int is_fifo) {
    share(2, is_fifo);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    int t = vmc_spawn(wait_leave, &w1);
    use_and_unlock();
    vmc_join(t);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    use_and_unlock();
}
SCENARIO(sema_mutex_leave_alone) { mutex_leave_alone(0); }
SCENARIO(sema_mutex_leave_alone_fifo) { mutex_leave_alone(FIFO); }

// The only one that waits leaves with what it was given: it brings what was written before.
static void try_and_use(void *has_got) {
    *(int *)has_got = volt_mutex_try_lock(&s->mutex) == 0;
    if (*(int *)has_got) use_and_unlock();
}
SCENARIO(sema_mutex_leave_beside_try) {
    int has_got = 0;
    vmc_must_happen("from a caller that has left");
    share(3, FIFO);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(try_and_use, &has_got);
    use_and_unlock();
    vmc_join(t1);
    vmc_join(t2);
    if (has_got) vmc_reached("from a caller that has left");
    VMC_ASSERT(s->n_uses == 2 - has_got);
    s->n_uses = 1;
    lock_and_use(NULL);
}

// A waiter that has been passed over as often as it may be is next, and no other gets before it.
SCENARIO(sema_mutex_passed_over) {
    share(5, 0);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    mutex_wait_begin(&w1);
    mutex_wait_begin(&w2);
    volt_mutex_unlock(&s->mutex);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0); // before the first one, which has its turn
    VMC_ASSERT(volt__wait_op_step(&w1.a, &w1.b.node, 0) == VOLT__PENDING);
    volt_mutex_unlock(&s->mutex);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == -EAGAIN);
    VMC_ASSERT(volt__wait_op_step(&w1.a, &w1.b.node, 0) == 0);
    volt_mutex_unlock(&s->mutex);
    VMC_ASSERT(volt__wait_op_step(&w2.a, &w2.b.node, 0) == 0);
    volt_mutex_unlock(&s->mutex);
    VMC_ASSERT(s->mutex.sema_.word_ == 0);
    vmc_free(s);
}

// A wait with a time limit, which may be over when it is let through.
static void lock_in_time(void *rc_) {
    int *rc = rc_;
    *rc = volt_mutex_lock_sync(&s->mutex, VOLT_MS(1));
    VMC_ASSERT(*rc == 0 || *rc == -ETIMEDOUT);
    if (*rc == 0) use_and_unlock();
}
SCENARIO(sema_mutex_timeout) {
    int rc;
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    share(3, 0);
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    int t = vmc_spawn(lock_in_time, &rc);
    use_and_unlock();
    vmc_join(t);
    vmc_reached(rc ? "too late" : "in time");
    VMC_ASSERT(volt_mutex_try_lock(&s->mutex) == 0);
    s->n_uses = 1;
    use_and_unlock();
}

// A try fails only while another one is inside.
SCENARIO(sema_mutex_try_two) {
    int has_got[2] = { 0, 0 };
    share(3, 0);
    int t = vmc_spawn(try_and_use, &has_got[0]);
    try_and_use(&has_got[1]);
    vmc_join(t);
    VMC_ASSERT(has_got[0] + has_got[1] == 3 - s->n_uses && s->n_uses < 3);
    vmc_free(s);
}

// ---- semaphore

static volt_sem *sem;
static uint32_t n_to_come; // of those that are let through: atomic
static int written[2];     // plain: handed over by permits

static void make_sem(uint32_t n_permits, uint32_t n_users) {
    volt_sem init = VOLT_SEM_INIT(n_permits);
    sem = vmc_alloc(sizeof *sem);
    *sem = init;
    n_to_come = n_users;
}
static void sem_wait_begin(waiter *w, uint32_t n) {
    volt__sema_wait_op(&w->a, &sem->sema_, 0, n);
    wait_begin(w);
}
// Let through: the last one to be frees it.
static void sem_passed(void) {
    if (__atomic_sub_fetch(&n_to_come, 1, __ATOMIC_ACQ_REL) == 0) vmc_free(sem);
}
static void sem_wait_and_free(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    sem_passed();
}
static void acquire_and_free(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_sem_acquire_sync(sem, 1, VOLT_NEVER) == 0);
    sem_passed();
}
static void release(void *i) {
    written[(intptr_t)i] = 7;
    VMC_ASSERT(volt_sem_release(sem, 1) == 0);
}
SCENARIO(sema_sem_signal) {
    make_sem(0, 1);
    int t = vmc_spawn(release, (void *)0);
    VMC_ASSERT(volt_sem_acquire_sync(sem, 1, VOLT_NEVER) == 0);
    VMC_ASSERT(written[0] == 7);
    sem_passed();
    vmc_join(t);
}
// It needs two permits, from two others.
static void acquire_two(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    VMC_ASSERT(written[0] == 7 && written[1] == 7);
    sem_passed();
}
SCENARIO(sema_sem_two_releases) {
    make_sem(0, 1);
    sem_wait_begin(&w1, 2);
    int t1 = vmc_spawn(release, (void *)0), t2 = vmc_spawn(acquire_two, &w1);
    release((void *)1);
    vmc_join(t1);
    vmc_join(t2);
}
SCENARIO(sema_sem_two_releases_fresh, .class = VMC_BOUNDED, .preemptions = 2) { // no waiter yet
    make_sem(0, 1);
    int t1 = vmc_spawn(release, (void *)0), t2 = vmc_spawn(release, (void *)1);
    VMC_ASSERT(volt_sem_acquire_sync(sem, 2, VOLT_NEVER) == 0);
    VMC_ASSERT(written[0] == 7 && written[1] == 7);
    sem_passed();
    vmc_join(t1);
    vmc_join(t2);
}
// Two at once: one is granted to the waiter, one is free for the thread that comes.
SCENARIO(sema_sem_grant_and_rest, .class = VMC_BOUNDED, .preemptions = 2) {
    make_sem(0, 2);
    sem_wait_begin(&w1, 1);
    int t1 = vmc_spawn(sem_wait_and_free, &w1), t2 = vmc_spawn(acquire_and_free, NULL);
    VMC_ASSERT(volt_sem_release(sem, 2) == 0);
    vmc_join(t1);
    vmc_join(t2);
}
// The first has one of the two that it needs, and leaves while the other one comes.
static void sem_wait_through(void *w) { VMC_ASSERT(wait_end(w) == 0); }
SCENARIO(sema_sem_leave_with_part) {
    make_sem(1, 0);
    sem_wait_begin(&w1, 2);
    sem_wait_begin(&w2, 1);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(sem_wait_through, &w2);
    release((void *)0);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_sem_available(sem) == 1 && volt_sem_try_acquire(sem, 1) == 0);
    vmc_free(sem);
}
// The same by a time limit.
static void acquire_two_in_time(void *rc) {
    *(int *)rc = volt_sem_acquire_sync(sem, 2, VOLT_MS(1));
}
SCENARIO(sema_sem_timeout_with_part) {
    int rc;
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    make_sem(1, 0);
    int t = vmc_spawn(acquire_two_in_time, &rc);
    release((void *)0);
    vmc_join(t);
    VMC_ASSERT(volt_sem_available(sem) == (rc ? 2 : 0) && (rc == 0 || rc == -ETIMEDOUT));
    vmc_reached(rc ? "too late" : "in time");
    vmc_free(sem);
}
// A thread that comes must not overtake a waiter for more; no permit is lost between them.
static void try_and_release(void *unused) {
    (void)unused;
    if (volt_sem_try_acquire(sem, 1) == 0) release((void *)1);
}
SCENARIO(sema_sem_try_beside_wait) {
    make_sem(1, 0);
    sem_wait_begin(&w1, 2);
    int t1 = vmc_spawn(sem_wait_through, &w1), t2 = vmc_spawn(try_and_release, NULL);
    release((void *)0);
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_sem_available(sem) == 0);
    VMC_ASSERT(written[1] == 0); // the try has failed
    vmc_free(sem);
}
static uint32_t n_forgotten;
static void forget(void *unused) {
    (void)unused;
    n_forgotten = volt_sem_forget(sem, 2);
}
SCENARIO(sema_sem_forget) {
    make_sem(1, 0);
    int t = vmc_spawn(forget, NULL);
    int rc = volt_sem_try_acquire(sem, 1);
    VMC_ASSERT(rc == 0 || rc == -EAGAIN);
    release((void *)0);
    vmc_join(t);
    VMC_ASSERT(n_forgotten + (rc == 0) + volt_sem_available(sem) == 2);
    vmc_free(sem);
}
static void close_sem(void *unused) {
    (void)unused;
    volt_sem_close(sem);
}
// The waiter learns that it is closed, and frees it.
SCENARIO(sema_sem_close_wait) {
    make_sem(0, 0);
    int t = vmc_spawn(close_sem, NULL);
    VMC_ASSERT(volt_sem_acquire_sync(sem, 1, VOLT_NEVER) == -EPIPE);
    vmc_free(sem);
    vmc_join(t);
}
// A permit and the end at once: one of them.
SCENARIO(sema_sem_close_release) {
    vmc_must_happen("a permit");
    vmc_must_happen("closed");
    make_sem(0, 0);
    sem_wait_begin(&w1, 1);
    int t1 = vmc_spawn(close_sem, NULL), t2 = vmc_spawn(release, (void *)0);
    int64_t rc = wait_end(&w1);
    VMC_ASSERT(rc == 0 || rc == -EPIPE);
    if (rc == 0) VMC_ASSERT(written[0] == 7);
    vmc_reached(rc ? "closed" : "a permit");
    vmc_join(t1);
    vmc_join(t2);
    VMC_ASSERT(volt_sem_available(sem) == (rc != 0) && volt_sem_try_acquire(sem, 1) == -EPIPE);
    vmc_free(sem);
}
// A waiter that was told that it is closed does not get a permit that comes later.
SCENARIO(sema_sem_closed_for_good) {
    make_sem(0, 0);
    sem_wait_begin(&w1, 1);
    volt_sem_close(sem);
    VMC_ASSERT(volt_sem_release(sem, 1) == 0);
    VMC_ASSERT(wait_end(&w1) == -EPIPE);
    VMC_ASSERT(volt_sem_acquire_sync(sem, 1, VOLT_NEVER) == -EPIPE);
    vmc_free(sem);
}

// ---- read-write lock

typedef struct book {
    volt_rwlock lock;
    int content; // plain, under the lock
} book;
static book *b;

static void rw_wait_begin(waiter *w, uint32_t n) {
    volt__sema_wait_op(&w->a, &b->lock.sema_, VOLT__SEMA_ALL, n);
    wait_begin(w);
}
// At most one write has been made, which a reader sees whole or not at all.
static void reads(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_rwlock_read_sync(&b->lock, VOLT_NEVER) == 0);
    VMC_ASSERT(b->content <= 1);
    volt_rwlock_unlock(&b->lock);
}
static void writes(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_rwlock_write_sync(&b->lock, VOLT_NEVER) == 0);
    b->content++;
    volt_rwlock_unlock(&b->lock);
}
static void rw_end(int content) {
    VMC_ASSERT(b->content == content);
    VMC_ASSERT(volt_rwlock_try_write(&b->lock) == 0);
    vmc_free(b);
}
SCENARIO(sema_rwlock_two_writers) {
    b = vmc_alloc(sizeof *b);
    int t = vmc_spawn(writes, NULL);
    writes(NULL);
    vmc_join(t);
    rw_end(2);
}
SCENARIO(sema_rwlock_reader_writer) {
    b = vmc_alloc(sizeof *b);
    int t = vmc_spawn(writes, NULL);
    reads(NULL);
    vmc_join(t);
    rw_end(1);
}
// A writer behind two readers.
static void unlock_read(void *unused) {
    (void)unused;
    VMC_ASSERT(b->content == 0);
    volt_rwlock_unlock(&b->lock);
}
static void write_through(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    b->lock.is_writing_ = 1;
    b->content++;
    volt_rwlock_unlock(&b->lock);
}
SCENARIO(sema_rwlock_writer_behind_two) {
    b = vmc_alloc(sizeof *b);
    VMC_ASSERT(volt_rwlock_try_read(&b->lock) == 0 && volt_rwlock_try_read(&b->lock) == 0);
    rw_wait_begin(&w1, VOLT__READERS);
    int t1 = vmc_spawn(write_through, &w1), t2 = vmc_spawn(unlock_read, NULL);
    unlock_read(NULL);
    vmc_join(t1);
    vmc_join(t2);
    rw_end(1);
}
// The writer gives up, while the reader before it leaves: the reader behind it must go on.
static void read_through(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    unlock_read(NULL);
}
SCENARIO(sema_rwlock_writer_leaves) {
    b = vmc_alloc(sizeof *b);
    VMC_ASSERT(volt_rwlock_try_read(&b->lock) == 0);
    rw_wait_begin(&w1, VOLT__READERS);
    rw_wait_begin(&w2, 1);
    int t1 = vmc_spawn(wait_leave, &w1), t2 = vmc_spawn(read_through, &w2);
    unlock_read(NULL);
    vmc_join(t1);
    vmc_join(t2);
    rw_end(0);
}
// Others read after the downgrade, but none writes before the former writer is out.
static void read_what_was_written(void *w) {
    VMC_ASSERT(wait_end(w) == 0);
    VMC_ASSERT(b->content == 1);
    volt_rwlock_unlock(&b->lock);
}
SCENARIO(sema_rwlock_downgrade) {
    b = vmc_alloc(sizeof *b);
    VMC_ASSERT(volt_rwlock_try_write(&b->lock) == 0);
    rw_wait_begin(&w1, 1);
    rw_wait_begin(&w2, VOLT__READERS);
    int t1 = vmc_spawn(read_what_was_written, &w1), t2 = vmc_spawn(write_through, &w2);
    b->content = 1;
    volt_rwlock_downgrade(&b->lock);
    VMC_ASSERT(b->content == 1);
    volt_rwlock_unlock(&b->lock);
    vmc_join(t1);
    vmc_join(t2);
    rw_end(2);
}

// ---- once

static volt_once *once;
static int made; // plain: what is done once

static void once_wait_begin(waiter *w) {
    volt__sema_wait_op(&w->a, &once->sema_, VOLT__SEMA_ONE, 1);
    wait_begin(w);
}
static void make_once(void *unused) {
    (void)unused;
    int rc = volt_once_begin_sync(once, VOLT_NEVER);
    VMC_ASSERT(rc == 0 || rc == 1);
    if (rc == 1) {
        made++;
        volt_once_end(once, 1);
    }
    VMC_ASSERT(made == 1);
}
SCENARIO(sema_once_two) {
    once = vmc_alloc(sizeof *once);
    int t = vmc_spawn(make_once, NULL);
    make_once(NULL);
    vmc_join(t);
    VMC_ASSERT(volt_once_is_done(once));
    vmc_free(once);
}
// The first one fails: one of those that wait does it.
static void make_through(void *w) {
    int64_t rc = wait_end(w);
    if (rc == 0) {
        made++;
        volt_once_end(once, 1);
    } else {
        VMC_ASSERT(rc == -EPIPE);
    }
    VMC_ASSERT(made == 1);
}
SCENARIO(sema_once_fails) {
    once = vmc_alloc(sizeof *once);
    VMC_ASSERT(volt_once_try_begin(once) == 1);
    once_wait_begin(&w1);
    once_wait_begin(&w2);
    int t1 = vmc_spawn(make_through, &w1), t2 = vmc_spawn(make_through, &w2);
    volt_once_end(once, 0);
    vmc_join(t1);
    vmc_join(t2);
    vmc_free(once);
}
// A thread that finds it done sees what was done.
static void look_whether_done(void) {
    if (!volt_once_is_done(once)) return;
    VMC_ASSERT(made == 1);
    vmc_reached("done");
}
SCENARIO(sema_once_is_done) {
    vmc_must_happen("done");
    once = vmc_alloc(sizeof *once);
    int t = vmc_spawn(make_once, NULL);
    look_whether_done();
    if (volt_once_try_begin(once) == 1) volt_once_end(once, 0);
    vmc_join(t);
    vmc_free(once);
}
static void make_and_end(void *unused) {
    (void)unused;
    made++;
    volt_once_end(once, 1);
}
SCENARIO(sema_once_is_done_with_a_wait) {
    vmc_must_happen("done");
    once = vmc_alloc(sizeof *once);
    VMC_ASSERT(volt_once_try_begin(once) == 1);
    once_wait_begin(&w1);
    int t = vmc_spawn(make_and_end, NULL);
    look_whether_done();
    vmc_join(t);
    VMC_ASSERT(wait_end(&w1) == -EPIPE);
    vmc_free(once);
}
// The waiter gives up, looks again, finds it done without the lock, and frees it.
static void leave_and_look(void *is_freed) {
    wait_leave(&w1);
    if (volt_once_try_begin(once) != 0) return;
    vmc_reached("freed by the caller that has seen it done");
    vmc_free(once);
    *(int *)is_freed = 1;
}
SCENARIO(sema_once_freed_by_its_reader) {
    int is_freed = 0;
    vmc_must_happen("freed by the caller that has seen it done");
    once = vmc_alloc(sizeof *once);
    VMC_ASSERT(volt_once_try_begin(once) == 1);
    once_wait_begin(&w1);
    int t = vmc_spawn(leave_and_look, &is_freed);
    volt_once_end(once, 1);
    vmc_join(t);
    if (!is_freed) vmc_free(once);
}
// One that waits is told, and one that comes finds it done: the last of them frees it.
static void once_passed(void) {
    if (__atomic_sub_fetch(&n_to_come, 1, __ATOMIC_ACQ_REL) == 0) vmc_free(once);
}
static void once_wait_and_free(void *w) {
    VMC_ASSERT(wait_end(w) == -EPIPE);
    once_passed();
}
static void once_look_and_free(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_once_begin_sync(once, VOLT_NEVER) == 0);
    once_passed();
}
SCENARIO(sema_once_freed_by_the_last, .class = VMC_BOUNDED, .preemptions = 2) {
    n_to_come = 2;
    once = vmc_alloc(sizeof *once);
    VMC_ASSERT(volt_once_try_begin(once) == 1);
    once_wait_begin(&w1);
    int t1 = vmc_spawn(once_wait_and_free, &w1), t2 = vmc_spawn(once_look_and_free, NULL);
    volt_once_end(once, 1);
    vmc_join(t1);
    vmc_join(t2);
}
