// SPDX-License-Identifier: MIT OR 0BSD
// Synchronisation at random: tasks and threads in any order, many of them cancelled or late. The
// invariants are counted in plain words, for the thread sanitizer as well; all must end, so that a
// wake-up that is lost is a test that takes too long.
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "sync.h"

enum { N_TASKS = 6, N_THREADS = 2, N_TURNS = 400 };

// ---- what all share
typedef struct {
    object o;
    volt_token stop;
    volt_barrier barrier;
    volt_cond not_full, not_empty;
    int n_inside, n_turns;         // plain: one at a time
    int n_done;                    // atomic: turns that are over
    int one, other;                // plain: equal, except during a write
    int n_readers, n_taken;        // atomic
    int n_items, n_given, n_eaten; // atomic; of conds plain, under the mutex
    int is_over;                   // atomic
    int n_players, n_eaters;       // before the start
    int cell[16];                  // plain, each one's own
    int n_came[16], n_leaders[64]; // atomic
} field;
static field f; // of one test, which has a process of its own

// One at a time.
static void come_in(void) { CHECK_EQ(f.n_inside++, 0); }
static void go_out(void) {
    CHECK_EQ(--f.n_inside, 0);
    f.n_turns++;
    COUNT(f.n_done);
}
static int count_down(int *word) { return __atomic_sub_fetch(word, 1, __ATOMIC_ACQ_REL); }
// Takes one of what is there.
static int take_one(int *word) {
    int n = READ(*word);
    while (n > 0)
        if (__atomic_compare_exchange_n(word, &n, n - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
    return 0;
}
static int has_failed(int64_t rc) {
    CHECK(rc >= 0 || rc == -ECANCELED || rc == -ETIMEDOUT || rc == -EAGAIN);
    return rc < 0;
}
static volt_time a_moment(void) { return VOLT_US(1 + (int)RANDOM_BELOW(2) * 1000); }

enum { OBJECT, READ_IT, WRITE_IT, TAKE, MEET, NOT_FULL, NOT_EMPTY }; // the object of the wait
typedef struct {
    volt_frame frame;
    int what, way;
    uint32_t n;
    volt_timer timer;
    volt_token_link link;
    volt_arm a, b;
    int64_t rc;
} attempt;
typedef struct {
    volt_frame frame;
    attempt wait;
    int id, i;
    int64_t rc;
} player;

static volt_poll wait_for(volt_cx *cx, const attempt *t) {
    switch (t->what) {
    case READ_IT: return volt_rwlock_read(cx, &f.o.rwlock);
    case WRITE_IT: return volt_rwlock_write(cx, &f.o.rwlock);
    case TAKE: return volt_sem_acquire(cx, &f.o.sem, t->n);
    case MEET: return volt_barrier_wait(cx, &f.barrier);
    case NOT_FULL: return volt_cond_wait(cx, &f.not_full, &f.o.mutex);
    case NOT_EMPTY: return volt_cond_wait(cx, &f.not_empty, &f.o.mutex);
    default: return object_wait(cx, &f.o);
    }
}
static int wait_for_sync(int what, uint32_t n, volt_time at_most) {
    switch (what) {
    case READ_IT: return volt_rwlock_read_sync(&f.o.rwlock, at_most);
    case WRITE_IT: return volt_rwlock_write_sync(&f.o.rwlock, at_most);
    case TAKE: return volt_sem_acquire_sync(&f.o.sem, n, at_most);
    case MEET: return volt_barrier_wait_sync(&f.barrier, at_most);
    case NOT_FULL: return volt_cond_wait_sync(&f.not_full, &f.o.mutex, at_most);
    case NOT_EMPTY: return volt_cond_wait_sync(&f.not_empty, &f.o.mutex, at_most);
    default: return object_wait_sync(&f.o, at_most);
    }
}
// For good, for a moment, under a token that may be cancelled, or until something else is first.
static volt_poll any_wait(volt_cx *cx, attempt *t, int what, uint32_t n) {
    VOLT_BEGIN(cx, t);
    t->what = what;
    t->n = n;
    t->way = (int)RANDOM_BELOW(5);
    if (t->way == 0) {
        VOLT_AWAIT(t->rc, volt_within(cx, &t->timer, a_moment(), wait_for(cx, t)));
    } else if (t->way == 1) {
        VOLT_AWAIT(t->rc, volt_with_token(cx, &t->link, &f.stop, wait_for(cx, t)));
    } else if (t->way == 2) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&t->a, wait_for(cx, t)),
                               VOLT_ARM(&t->b, volt_yield(cx))));
        t->rc = t->a.value;
    } else {
        VOLT_AWAIT(t->rc, wait_for(cx, t));
    }
    VOLT_END(t->rc);
}
static int any_wait_sync(int what, uint32_t n) {
    int is_bounded = (int)RANDOM_BELOW(2);
    return wait_for_sync(what, n, is_bounded ? VOLT_US((int)RANDOM_BELOW(80)) : VOLT_NEVER);
}

// ---- N_TASKS tasks and N_THREADS threads, to their end
static void run_game(uint32_t workers, volt_fn *fn, void *(*thread)(void *)) {
    volt_handle h[N_TASKS];
    pthread_t t[N_THREADS];
    int n_threads = 0;
    volt_rt *rt = create_on(workers);
    for (int i = 0; i < N_TASKS; i++) RT_SPAWN(rt, &h[i], fn, (player){ .id = i });
#ifndef VOLT_SINGLE_THREAD
    static int ids[N_THREADS];
    for (; n_threads < N_THREADS; n_threads++) {
        ids[n_threads] = N_TASKS + n_threads;
        t[n_threads] = start_thread(thread, &ids[n_threads]);
    }
#endif
    (void)thread;
    for (int i = 0; i < N_TASKS; i++) {
        int64_t rc;
        if (i == N_TASKS / 2) volt_token_cancel(&f.stop);
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &rc), 0);
        CHECK_EQ(rc, 0);
    }
    for (int i = 0; i < n_threads; i++) join_thread(t[i]);
    CHECK_EQ(n_waiting(&f.o), 0);
    destroy(rt);
}
static void set_up(int kind) {
    memset(&f, 0, sizeof f);
    object_init(&f.o, kind);
}

// ---- one at a time

static volt_poll one_at_a_time(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < N_TURNS; p->i++) {
        VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, OBJECT, 0));
        if (has_failed(p->rc)) continue;
        come_in();
        if (RANDOM_BELOW(4) == 0) VOLT_AWAIT(volt_yield(cx));
        go_out();
        object_pass(&f.o);
    }
    VOLT_END(0);
}
static void *one_at_a_time_sync(void *arg) {
    for (int i = 0; i < N_TURNS; i++) {
        int rc = RANDOM_BELOW(3) ? any_wait_sync(OBJECT, 0) : object_try(&f.o);
        if (has_failed(rc)) continue;
        come_in();
        go_out();
        object_pass(&f.o);
    }
    return arg;
}
static void play_one_at_a_time(int kind) {
    EACH_WORKERS(w) {
        set_up(kind);
        object_open(&f.o);
        run_game(w, one_at_a_time, one_at_a_time_sync);
        CHECK_EQ(f.n_turns, f.n_done);
        CHECK(f.n_turns > 0);
        CHECK_EQ(object_try(&f.o), object_gives(kind));
    }
}
TEST(mutex_admits_one_at_a_time) { play_one_at_a_time(MUTEX); }
TEST(fifo_mutex_admits_one_at_a_time) { play_one_at_a_time(FIFO); }
TEST(rwlock_write_admits_one_at_a_time) { play_one_at_a_time(WRITING); }
TEST(once_admits_one_at_a_time) { play_one_at_a_time(ONCE); }
TEST(sem_of_one_permit_admits_one_at_a_time) { play_one_at_a_time(SEM); }
TEST(notify_permit_admits_one_at_a_time) { play_one_at_a_time(NOTIFY); }

// ---- readers and writers

static void start_reading(void) {
    COUNT(f.n_readers);
    CHECK_EQ(f.one, f.other);
}
static void stop_reading(void) {
    CHECK_EQ(f.one, f.other);
    count_down(&f.n_readers);
    volt_rwlock_unlock(&f.o.rwlock);
}
static void start_writing(void) {
    CHECK_EQ(READ(f.n_readers), 0);
    come_in();
    f.one++;
}
static void stop_writing(void) { // and goes on reading, at times
    f.other++;
    go_out();
    if (RANDOM_BELOW(2)) {
        volt_rwlock_downgrade(&f.o.rwlock);
        start_reading();
        stop_reading();
    } else {
        volt_rwlock_unlock(&f.o.rwlock);
    }
}
static volt_poll reads_and_writes(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < N_TURNS; p->i++) {
        VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, p->i % 3 ? READ_IT : WRITE_IT, 0));
        if (has_failed(p->rc)) continue;
        if (p->i % 3) start_reading();
        else start_writing();
        if (RANDOM_BELOW(3) == 0) VOLT_AWAIT(volt_yield(cx));
        if (p->i % 3) stop_reading();
        else stop_writing();
    }
    VOLT_END(0);
}
static void *reads_and_writes_sync(void *arg) {
    for (int i = 0; i < N_TURNS; i++) {
        if (has_failed(any_wait_sync(i % 3 ? READ_IT : WRITE_IT, 0))) continue;
        if (i % 3) start_reading(), stop_reading();
        else start_writing(), stop_writing();
    }
    return arg;
}
TEST(rwlock_writer_excludes_readers_and_writers) {
    EACH_WORKERS(w) {
        set_up(WRITING);
        object_open(&f.o);
        run_game(w, reads_and_writes, reads_and_writes_sync);
        CHECK_EQ(f.one, f.n_done);
        CHECK_EQ(f.one, f.other);
        CHECK_EQ(volt_rwlock_try_write(&f.o.rwlock), 0);
    }
}

// ---- permits, several at once

enum { N_PERMITS = 5 };
static void take(uint32_t n) {
    CHECK(__atomic_add_fetch(&f.n_taken, (int)n, __ATOMIC_ACQ_REL) <= N_PERMITS);
}
static void give_back(uint32_t n) {
    __atomic_sub_fetch(&f.n_taken, (int)n, __ATOMIC_ACQ_REL);
    CHECK_EQ(volt_sem_release(&f.o.sem, n), 0);
}
static volt_poll takes_permits(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < N_TURNS; p->i++) {
        VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, TAKE, 1 + (uint32_t)RANDOM_BELOW(N_PERMITS)));
        if (has_failed(p->rc)) continue;
        take(p->wait.n);
        if (RANDOM_BELOW(2)) VOLT_AWAIT(volt_yield(cx));
        give_back(p->wait.n);
    }
    VOLT_END(0);
}
static void *takes_permits_sync(void *arg) {
    for (int i = 0; i < N_TURNS; i++) {
        uint32_t n = 1 + (uint32_t)RANDOM_BELOW(N_PERMITS);
        if (has_failed(i % 3 ? any_wait_sync(TAKE, n) : volt_sem_try_acquire(&f.o.sem, n)))
            continue;
        take(n);
        give_back(n);
        uint32_t lost = volt_sem_forget(&f.o.sem, 1); // and there again
        CHECK_EQ(volt_sem_release(&f.o.sem, lost), 0);
    }
    return arg;
}
TEST(sem_never_grants_more_than_its_permits) {
    EACH_WORKERS(w) {
        set_up(SEM);
        CHECK_EQ(volt_sem_release(&f.o.sem, N_PERMITS), 0);
        run_game(w, takes_permits, takes_permits_sync);
        CHECK_EQ(volt_sem_available(&f.o.sem), N_PERMITS);
    }
}

// ---- items that are told of: by a notify for each, or by an event for any number

// One cooks, and waits with the next item until this one has been eaten; one or all others eat, but
// only when they were told, not when they have given up: a permit that is lost starves them all.
static int is_any_of(int id, int n) { return id > 0 && id <= n; }
static void eat(void) {
    while (take_one(&f.n_items)) COUNT(f.n_eaten);
}
static volt_poll cooks_or_eats(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->id == 0 && p->i < N_TURNS; p->i++) {
        COUNT(f.n_items);
        if (RANDOM_BELOW(2)) volt_notify_one(&f.o.notify);
        else volt_notify_last(&f.o.notify);
        while (READ(f.n_items)) VOLT_AWAIT(volt_yield(cx));
    }
    if (p->id == 0) WRITE(f.is_over, 1);
    while (p->id == 0 && READ(f.n_done) < f.n_players - 1) {
        volt_notify_all(&f.o.notify);
        VOLT_AWAIT(volt_yield(cx));
    }
    while (is_any_of(p->id, f.n_eaters) && !READ(f.is_over)) {
        VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, OBJECT, 0));
        if (!has_failed(p->rc)) eat();
    }
    COUNT(f.n_done);
    VOLT_END(0);
}
static void *eats_sync(void *arg) {
    while (is_any_of(*(int *)arg, f.n_eaters) && !READ(f.is_over))
        if (!has_failed(any_wait_sync(OBJECT, 0))) eat();
    COUNT(f.n_done);
    return arg;
}
TEST(notify_loses_nothing) {
    EACH_WORKERS(w) for (int i = 0; i < 2; i++) {
        set_up(NOTIFY);
        f.n_players = N_TASKS + (TEST_MOST_WORKERS > 1 ? N_THREADS : 0);
        f.n_eaters = i == 0 ? 1 : f.n_players - 1;
        run_game(w, cooks_or_eats, eats_sync);
        CHECK_EQ(f.n_eaten, N_TURNS);
    }
}
// One eats: takes the event down, looks, and waits. All others cook.
static volt_poll eats_alone(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->id > 0 && p->i < N_TURNS; p->i++) {
        __atomic_add_fetch(&f.n_items, 1, __ATOMIC_RELAXED);
        volt_event_set(&f.o.event);
        if (RANDOM_BELOW(3) == 0) VOLT_AWAIT(volt_yield(cx));
    }
    while (p->id == 0 && f.n_eaten < (N_TASKS - 1) * N_TURNS) {
        VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, OBJECT, 0));
        if (has_failed(p->rc)) continue;
        volt_event_reset(&f.o.event);
        f.n_eaten += __atomic_exchange_n(&f.n_items, 0, __ATOMIC_RELAXED);
    }
    VOLT_END(0);
}
static void *only_looks(void *arg) {
    for (int i = 0; i < N_TURNS; i++) (void)has_failed(wait_for_sync(OBJECT, 0, VOLT_US(i)));
    return arg;
}
TEST(event_loses_nothing) {
    EACH_WORKERS(w) {
        set_up(EVENT);
        run_game(w, eats_alone, only_looks);
    }
}
// Numbers: look at the number, at the condition, and wait past the number.
static volt_poll waits_past(volt_cx *cx, attempt *t, uint32_t n) {
    VOLT_BEGIN(cx, t);
    t->n = n;
    if (RANDOM_BELOW(3)) {
        VOLT_AWAIT(t->rc, volt_notify_wait_past(cx, &f.o.notify, t->n));
    } else {
        VOLT_AWAIT(t->rc, volt_within(cx, &t->timer, a_moment(),
                                      volt_notify_wait_past(cx, &f.o.notify, t->n)));
    }
    VOLT_END(t->rc);
}
static volt_poll follows(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    while ((p->i = (int)volt_notify_count(&f.o.notify), READ(f.n_items)) < N_TURNS) {
        if (p->id == 0) {
            COUNT(f.n_items);
            volt_notify_all(&f.o.notify);
            VOLT_AWAIT(volt_yield(cx));
        } else {
            VOLT_AWAIT(p->rc, waits_past(cx, &p->wait, (uint32_t)p->i));
            (void)has_failed(p->rc);
        }
    }
    VOLT_END(0);
}
static void *follows_sync(void *arg) {
    uint32_t n;
    while (n = volt_notify_count(&f.o.notify), READ(f.n_items) < N_TURNS)
        (void)has_failed(volt_notify_wait_past_sync(&f.o.notify, n, VOLT_NEVER));
    return arg;
}
TEST(notify_past_loses_nothing) {
    EACH_WORKERS(w) {
        set_up(PAST);
        run_game(w, follows, follows_sync);
    }
}

// ---- wait group, tracker: what was done before is seen

static volt_poll works(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    if (RANDOM_BELOW(2)) VOLT_AWAIT(volt_yield(cx));
    if (p->id > 0) {
        f.cell[p->id]++;
        volt_wait_group_done(&f.o.group);
        VOLT_RETURN(0);
    }
    do VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, OBJECT, 0));
    while (has_failed(p->rc));
    for (int i = 1; i < N_TASKS; i++) CHECK_EQ(f.cell[i], 1);
    VOLT_END(0);
}
static void *works_sync(void *arg) {
    while (has_failed(any_wait_sync(OBJECT, 0))) {}
    for (int i = 1; i < N_TASKS; i++) CHECK_EQ(f.cell[i], 1);
    return arg;
}
TEST(wait_group_wait_sees_writes_before_done) {
    EACH_WORKERS(w) for (int i = 0; i < 30; i++) {
        set_up(GROUP);
        CHECK_EQ(volt_wait_group_add(&f.o.group, N_TASKS - 2), 0);
        run_game(w, works, works_sync);
    }
}
static volt_poll comes_and_goes(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    while (p->id > 0 && volt_tracker_enter(&f.o.tracker) == 0) {
        f.cell[p->id]++;
        VOLT_AWAIT(volt_yield(cx));
        f.cell[p->id]++;
        volt_tracker_leave(&f.o.tracker);
    }
    if (p->id > 0) VOLT_RETURN(0);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(300)));
    object_open(&f.o);
    do VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, OBJECT, 0));
    while (has_failed(p->rc));
    for (int i = 1; i < N_TASKS; i++) CHECK_EQ(f.cell[i] % 2, 0);
    VOLT_END(0);
}
static void *waits_for_the_drain(void *arg) {
    while (has_failed(any_wait_sync(OBJECT, 0))) {}
    for (int i = 1; i < N_TASKS; i++) CHECK_EQ(f.cell[i] % 2, 0);
    return arg;
}
TEST(tracker_wait_sees_writes_before_leave) {
    EACH_WORKERS(w) for (int i = 0; i < 10; i++) {
        set_up(TRACKER);
        run_game(w, comes_and_goes, waits_for_the_drain);
    }
}

// ---- barrier: no task is a round ahead, one leads

enum { N_MEETINGS = 40 };
static void has_met(int id, int round, int64_t rc) {
    CHECK(rc == 0 || rc == 1);
    if (rc == 1) COUNT(f.n_leaders[round]);
    for (uint32_t i = 0; i < f.barrier.n_; i++) {
        int n = READ(f.n_came[i]);
        CHECK(n == round + 1 || n == round + 2);
    }
    CHECK_EQ(READ(f.n_came[id]), round + 1);
}
static volt_poll meets(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < N_MEETINGS; p->i++) {
        COUNT(f.n_came[p->id]);
        do VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, MEET, 0));
        while (has_failed(p->rc));
        has_met(p->id, p->i, p->rc);
    }
    VOLT_END(0);
}
static void *meets_sync(void *arg) {
    int id = *(int *)arg, rc;
    for (int i = 0; i < N_MEETINGS; i++) {
        COUNT(f.n_came[id]);
        do rc = any_wait_sync(MEET, 0);
        while (has_failed(rc));
        has_met(id, i, rc);
    }
    return arg;
}
TEST(barrier_keeps_all_in_the_same_round) {
    EACH_WORKERS(w) {
        set_up(EVENT);
        f.barrier.n_ = TEST_MOST_WORKERS > 1 ? N_TASKS + N_THREADS : N_TASKS;
        run_game(w, meets, meets_sync);
        for (int i = 0; i < N_MEETINGS; i++) CHECK_EQ(f.n_leaders[i], 1);
        CHECK_EQ(f.barrier.arrived_, 0);
    }
}

// ---- condition variables: a buffer that is full or empty

enum { N_ROOM = 3, N_ITEMS = N_TASKS / 2 * N_TURNS };
static void put(void) {
    come_in();
    CHECK(f.n_items++ < N_ROOM);
    go_out();
    f.n_given++;
    volt_cond_signal(&f.not_empty);
}
static void get(void) {
    come_in();
    CHECK(f.n_items-- > 0);
    go_out();
    if (++f.n_eaten == N_ITEMS) volt_cond_broadcast(&f.not_empty); // there will be no more
    volt_cond_signal(&f.not_full);
}
static volt_poll puts_or_gets(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_mutex_lock(cx, &f.o.mutex));
    while (p->id % 2 == 0 && p->i < N_TURNS) {
        while (f.n_items == N_ROOM) VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, NOT_FULL, 0));
        put();
        p->i++;
    }
    while (p->id % 2 && f.n_eaten < N_ITEMS) {
        if (f.n_items > 0) get();
        else VOLT_AWAIT(p->rc, any_wait(cx, &p->wait, NOT_EMPTY, 0));
    }
    volt_mutex_unlock(&f.o.mutex);
    VOLT_END(0);
}
static void *gets_sync(void *arg) {
    CHECK_EQ(volt_mutex_lock_sync(&f.o.mutex, VOLT_NEVER), 0);
    while (f.n_eaten < N_ITEMS) {
        if (f.n_items > 0) get();
        else (void)has_failed(any_wait_sync(NOT_EMPTY, 0));
    }
    volt_mutex_unlock(&f.o.mutex);
    return arg;
}
TEST(cond_loses_nothing) {
    EACH_WORKERS(w) {
        set_up(COND);
        run_game(w, puts_or_gets, gets_sync);
        CHECK_EQ(f.n_eaten, N_ITEMS);
        CHECK_EQ(f.n_given, N_ITEMS);
    }
}
