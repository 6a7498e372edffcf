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
#include "../volt.h"
#undef __atomic_load_n
#undef __atomic_compare_exchange_n
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
static int meddle_at;
static void (*meddler)(void *);
static void *meddler_arg;
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

// ---- oneshot

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
