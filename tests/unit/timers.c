// SPDX-License-Identifier: MIT OR 0BSD
// The timer wheel against a plain array of deadlines.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include <pthread.h>

// ---- a wheel with a model of it: nodes in an array, each with a task of its own

enum { MAX_TIMERS = 2048 };
typedef struct timer {
    volt__node node;
    volt__task task;
    uint64_t due; // tick; 0: not armed
    int is_fired;
} timer;
typedef struct model {
    volt__wheel wheel;
    uint64_t now; // the model's elapsed
    int n;
    timer timers[MAX_TIMERS];
} model;

enum { SPAN_BITS = VOLT_WHEEL_BITS * VOLT_WHEEL_LEVELS };
static uint64_t wheel_span(void) { return (uint64_t)1 << SPAN_BITS; }

static void model_start(model *m, uint64_t now, int n) {
    memset(m, 0, sizeof *m);
    m->wheel.elapsed = m->now = now;
    m->n = n;
    for (int i = 0; i < n; i++) m->timers[i].task.word = VOLT__REF;
}
static void model_arm(model *m, int i, uint64_t tick) {
    timer *t = &m->timers[i];
    CHECK(!t->due && !t->is_fired);
    t->due = tick > m->now ? tick : m->now + 1; // the past is the next tick
    volt__timer_arm(&m->wheel, &t->node, &t->task, tick);
    CHECK_EQ(t->task.n_armed, 1);
}
static void model_disarm(model *m, int i) {
    timer *t = &m->timers[i];
    volt__timer_disarm(&t->node, &t->task);
    t->due = 0;
    t->is_fired = 0;
    t->task.word = VOLT__REF; // the task has been polled
    CHECK_EQ(t->task.n_armed, 0);
    CHECK_EQ(volt__node_state(&t->node), VOLT__IDLE);
}
static uint64_t model_next(const model *m) {
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < m->n; i++)
        if (m->timers[i].due && m->timers[i].due < next) next = m->timers[i].due;
    return next;
}
// The timers fired into the chain: each due, none before its time, in the order of the ticks.
static uint64_t model_take(uint64_t now, volt__chain *c, uint64_t last) {
    for (volt__task *task; (task = volt__chain_pop(c));) {
        timer *t = VOLT__CONTAINER(timer, task, task);
        CHECK(t->due && t->due <= now && t->due >= last);
        CHECK_EQ(volt__node_state(&t->node), VOLT__FIRED);
        last = t->due;
        t->due = 0;
        t->is_fired = 1;
    }
    return last;
}
static void model_check_complete(model *m, uint64_t now, uint64_t n_fired, uint64_t n_taken) {
    CHECK_EQ(n_fired, n_taken);
    CHECK(model_next(m) > now);
    if (now > m->now) m->now = now;
    CHECK_EQ(m->wheel.elapsed, m->now);
}
static uint64_t model_fire(model *m, uint64_t now) {
    volt__chain c;
    volt__chain_init(&c);
    uint64_t n = volt__wheel_fire(&m->wheel, now, &c), len = c.len;
    model_take(now, &c, 0);
    model_check_complete(m, now, n, len);
    return n;
}
// A sleep until the expiry must not be too long. It may be short where looking further would take
// long, with more than 32 timers in one slot or beyond the span; then it must still get forward.
enum { SHORT_BETWEEN_HOLDS, SHORT, EXACT };
static void model_check_expiry(model *m, int how) {
    uint64_t expiry = volt__wheel_expiry(&m->wheel), next = model_next(m);
    CHECK(expiry <= next);
    if (how == EXACT) CHECK(expiry == next);
    if (how == SHORT && next > m->now) CHECK(expiry > m->now);
    if (next == UINT64_MAX) CHECK(expiry == UINT64_MAX);
}
static int list_len(const volt__node *first) {
    int n = 0;
    if (!first) return 0;
    const volt__node *v = first;
    do {
        CHECK(v->next_->prev_ == v && v->prev_->next_ == v);
        v = v->next_;
        n++;
    } while (v != first);
    return n;
}
static void model_check_lists(model *m) {
    int n_linked = 0, n_armed = 0;
    for (int l = 0; l < VOLT_WHEEL_LEVELS; l++)
        for (unsigned s = 0; s < VOLT__WHEEL_SLOTS; s++) {
            int len = list_len(m->wheel.slot[l][s]);
            CHECK_EQ(m->wheel.occupied[l] >> s & 1, len != 0);
            n_linked += len;
        }
    for (int i = 0; i < m->n; i++) n_armed += m->timers[i].due != 0;
    CHECK_EQ(n_linked, n_armed);
}

// ---- one timer: every start, deadline and step in a range, and around every power of the wheel

static model one;

static void try_one(uint64_t start, uint64_t deadline, uint64_t step) {
    model *m = &one;
    timer *t = &m->timers[0];
    m->wheel.elapsed = m->now = start;
    model_arm(m, 0, deadline);
    uint64_t due = t->due;
    model_check_expiry(m, due - start < wheel_span() / 2 ? EXACT : SHORT);
    if (step < due) {
        CHECK_EQ(model_fire(m, step), 0);
        model_check_expiry(m, due - start < wheel_span() / 2 ? EXACT : SHORT);
        CHECK_EQ(model_fire(m, due - 1), 0); // never early
    }
    CHECK_EQ(model_fire(m, step < due ? due : step), 1); // never late
    model_check_expiry(m, EXACT);
    model_disarm(m, 0);
    for (int l = 0; l < VOLT_WHEEL_LEVELS; l++) CHECK_EQ(m->wheel.occupied[l], 0);
}

// Offsets 0..dense-1 and those at and beside a quarter, a half and the whole of each level.
static int offsets_of(uint64_t *out, int dense) {
    int n = 0;
    for (int i = 0; i < dense; i++) out[n++] = (uint64_t)i;
    for (uint64_t size = 4; size <= 4 * wheel_span(); size *= 2)
        for (int k = -1; k <= 1; k++)
            if (size + (uint64_t)k >= (uint64_t)dense) out[n++] = size + (uint64_t)k;
    return n;
}
static void try_triples(uint64_t start, int dense) {
    static uint64_t offset[1024];
    int n = offsets_of(offset, dense);
    for (int d = 0; d < n; d++)
        for (int a = 0; a < n; a++) try_one(start, start + offset[d], start + offset[a]);
}

#ifdef VOLT_TEST_SMALL
enum { DENSE = 270, STARTS = 35 }; // four levels and a bit
#else
enum { DENSE = 130, STARTS = 70 };
#endif

TEST(every_deadline_fires_on_its_tick_from_every_start) {
    model_start(&one, 0, 1);
    for (uint64_t s = 0; s < STARTS; s++) try_triples(s, DENSE);
}
TEST(every_deadline_fires_on_its_tick_across_wrap_of_each_level) {
    model_start(&one, 0, 1);
    for (int bits = VOLT_WHEEL_BITS; bits <= SPAN_BITS; bits += VOLT_WHEEL_BITS)
        for (uint64_t back = 1; back <= 6; back++)
            try_triples(((uint64_t)1 << bits) * (2 + back % 3) - back, DENSE / 3);
}
TEST(deadline_in_the_past_fires_on_the_next_tick) {
    model_start(&one, 0, 1);
    for (uint64_t now = 0; now < 5000; now += 7)
        for (uint64_t back = 0; back <= now && back < 100; back += 9)
            try_one(now, now - back, now + back % 3);
}

// ---- many timers, random

static model many;

static const uint64_t uptimes[] = {
    0,
    UINT64_C(12) * 86400000 + 1,  // around 2^30 ms
    UINT64_C(2147483648) - 30,    // 24.8 days: a signed 32-bit count of ms ends
    UINT64_C(4294967296) - 30,    // 49.7 days: an unsigned one does
    UINT64_C(68719476736) - 30,   // 2^36: the wheel has gone round once
    UINT64_C(315360000000) + 123, // 10 years
};

// Of all magnitudes alike, so that every level is used.
static uint64_t random_distance(int max_bits) {
    return RANDOM() & (((uint64_t)1 << RANDOM_BELOW(max_bits + 1)) - 1);
}
static int random_bits(void) {
    return RANDOM_BELOW(50) == 0 ? SPAN_BITS + 4 : 4 + (int)RANDOM_BELOW(12);
}

static void random_step(model *m, int i) {
    timer *t = &m->timers[i];
    switch (RANDOM_BELOW(8)) {
    case 0: case 1: case 2:
        if (t->due || t->is_fired) model_disarm(m, i); // armed, or fired: both are due a disarm
        else model_arm(m, i, m->now + random_distance(random_bits()));
        break;
    case 3: model_disarm(m, i); break; // also what was never armed
    case 4: model_fire(m, m->now + random_distance(3)); break;
    case 5: if (RANDOM_BELOW(8) == 0) model_fire(m, m->now + random_distance(random_bits())); break;
    case 6: if (model_next(m) != UINT64_MAX) model_fire(m, model_next(m) - RANDOM_BELOW(2)); break;
    default: model_check_expiry(m, SHORT); break;
    }
}
static void random_run(uint64_t start, int n_timers, int n_steps) {
    model *m = &many;
    model_start(m, start, n_timers);
    for (int k = 0; k < n_steps; k++) {
        random_step(m, (int)RANDOM_BELOW(n_timers));
        if (k % 256 == 0) model_check_lists(m);
    }
    while (model_next(m) != UINT64_MAX) { // as a worker that always sleeps until the expiry
        model_check_expiry(m, SHORT);
        model_fire(m, volt__wheel_expiry(&m->wheel));
    }
    model_check_lists(m);
    CHECK(volt__wheel_expiry(&m->wheel) == UINT64_MAX);
}
TEST(random_timers_fire_on_their_tick_at_every_uptime) {
    for (size_t u = 0; u < sizeof uptimes / sizeof *uptimes; u++)
        for (int n = 1; n <= 300; n = n * 3 + 1) random_run(uptimes[u], n, 20000);
}

// Jumps of a suspended machine and of a wheel that was not served: everything due, nothing else.
TEST(wheel_fires_exactly_what_is_due_after_a_jump) {
    const uint64_t span = wheel_span(); // 2^36 ticks in the normal build
    const uint64_t jumps[] = { 63, 64, 65, 4096, 100000, span / 64, span - 1, span + 5, 16 * span };
    for (size_t u = 0; u < sizeof uptimes / sizeof *uptimes; u++)
        for (size_t j = 0; j < sizeof jumps / sizeof *jumps; j++) {
            model_start(&many, uptimes[u], 500);
            for (int i = 0; i < 500; i++)
                model_arm(&many, i, many.now + random_distance(SPAN_BITS + 6));
            for (int k = 0; k < 6; k++) {
                model_check_expiry(&many, SHORT);
                model_fire(&many, many.now + jumps[j]);
                model_check_lists(&many);
            }
        }
}

// ---- the expiry

// One far timer must not wake its worker once per level; a crowded slot may.
TEST(wheel_expiry_is_exact_for_slot_of_32_timers) {
    for (uint64_t far = 1; far < wheel_span() / 2; far = far * 2 + far / 3 + 1) {
        model_start(&many, 5, 32);
        for (int i = 0; i < 32; i++) model_arm(&many, i, 5 + far + (uint64_t)i % 2);
        model_check_expiry(&many, EXACT);
    }
}
TEST(wheel_expiry_is_never_late_for_crowded_slot) {
    model_start(&many, 0, MAX_TIMERS);
    for (int i = 0; i < MAX_TIMERS; i++)
        model_arm(&many, i, wheel_span() / 4 + (uint64_t)(MAX_TIMERS - i)); // the first comes last
    while (model_next(&many) != UINT64_MAX) {
        model_check_expiry(&many, SHORT);
        model_fire(&many, volt__wheel_expiry(&many.wheel));
    }
}
// A deadline beyond the span waits in a slot that is not its own: those behind it may be due first.
TEST(deadline_beyond_the_span_hides_no_nearer_one) {
    uint64_t slot = wheel_span() >> VOLT_WHEEL_BITS;
    for (uint64_t turn = 0; turn < 2 * VOLT__WHEEL_SLOTS; turn++) {
        model_start(&many, turn * slot, 2);
        model_arm(&many, 0, many.now + 5 * wheel_span());
        model_fire(&many, many.now + 2 * slot);
        model_arm(&many, 1, many.now + (VOLT__WHEEL_SLOTS - 1) * slot + 1);
        model_check_expiry(&many, SHORT);
        while (many.timers[1].due) {
            CHECK(volt__wheel_expiry(&many.wheel) <= many.timers[1].due);
            model_fire(&many, volt__wheel_expiry(&many.wheel));
        }
    }
}

// ---- holds: at most VOLT_FIRE_MAX timers are touched under one; anything may happen between two

static void remember_places(const model *m, uint8_t *state) {
    for (int i = 0; i < m->n; i++) state[i] = m->timers[i].node.state_;
}
static int count_moves(const model *m, const uint8_t *state) {
    int n = 0;
    for (int i = 0; i < m->n; i++) n += state[i] != m->timers[i].node.state_;
    return n;
}
// One hold, then `between`, until the wheel says that there is no more.
static void fire_by_holds(model *m, uint64_t now, void (*between)(model *m)) {
    static uint8_t places[MAX_TIMERS];
    uint64_t last = 0;
    int more;
    do {
        volt__chain c;
        volt__chain_init(&c);
        uint64_t n = 0;
        remember_places(m, places);
        more = volt__wheel_advance(&m->wheel, now, &c, &n);
        CHECK(count_moves(m, places) <= VOLT_FIRE_MAX);
        CHECK_EQ(n, c.len);
        m->now = m->wheel.elapsed;
        last = model_take(now, &c, last);
        if (more) between(m);
    } while (more);
    model_check_complete(m, now, 0, 0);
}
static void do_nothing(model *m) { model_check_lists(m); }
TEST(wheel_fires_all_timers_in_short_holds_of_its_lock) {
    static const uint64_t distances[] = { 1, 3, 17, 70, 300, 5000, 70000 };
    for (size_t d = 0; d < sizeof distances / sizeof *distances; d++) {
        model_start(&many, 1000, MAX_TIMERS);
        for (int i = 0; i < many.n; i++)
            model_arm(&many, i, 1001 + distances[d] + RANDOM_BELOW(2 + distances[d] / 8));
        fire_by_holds(&many, 1001 + distances[d] / 2, do_nothing);
        fire_by_holds(&many, 1001 + distances[d] * 2, do_nothing);
        CHECK(model_next(&many) == UINT64_MAX);
    }
}
// Tasks that were woken by the first hold run on another worker: they disarm, and arm again.
static void act_between(model *m) {
    model_check_expiry(m, SHORT_BETWEEN_HOLDS); // a sleep may begin in the middle of a slot
    for (int k = 0; k < 10; k++) {
        int i = (int)RANDOM_BELOW(m->n);
        if (m->timers[i].due || m->timers[i].is_fired) model_disarm(m, i);
        else model_arm(m, i, m->now + random_distance(10));
    }
    model_check_lists(m);
}
TEST(timers_may_be_armed_and_disarmed_between_holds) {
    for (int round = 0; round < 300; round++) {
        uint64_t far = 1 + random_distance(10);
        model_start(&many, random_distance(20), 65 + (int)RANDOM_BELOW(100));
        for (int i = 0; i < many.n; i++)
            if (i % 5) model_arm(&many, i, many.now + far + random_distance(6));
        for (int k = 0; k < 12; k++) fire_by_holds(&many, many.now + far / 2 + 1, act_between);
        while (model_next(&many) != UINT64_MAX) model_fire(&many, model_next(&many));
    }
}
// A worker that helps a stuck owner may stop after any hold: the owner must not oversleep the rest.
TEST(wheel_expiry_is_not_late_for_half_spread_slot) {
    for (int left = 1; left <= 40; left++) {
        model_start(&many, 0, VOLT_FIRE_MAX + left);
        uint64_t base = (uint64_t)VOLT__WHEEL_SLOTS * VOLT__WHEEL_SLOTS;
        for (int i = 0; i < many.n; i++)
            model_arm(&many, i, base + (i < VOLT_FIRE_MAX ? 1 : VOLT__WHEEL_SLOTS - 1));
        volt__chain c;
        volt__chain_init(&c);
        uint64_t n = 0;
        CHECK_EQ(volt__wheel_advance(&many.wheel, base, &c, &n), 1);
        CHECK_EQ(n, 0);
        CHECK(volt__wheel_expiry(&many.wheel) <= base + 1);
    }
}

// ---- disarm

TEST(disarm_unlinks_timer_anywhere_in_its_slot) {
    for (int len = 1; len <= 5; len++)
        for (int victim = 0; victim < len; victim++)
            for (uint64_t far = 1; far < 4 * wheel_span(); far *= 2) {
                model_start(&many, 0, len);
                for (int i = 0; i < len; i++) model_arm(&many, i, far);
                model_disarm(&many, victim);
                model_check_lists(&many);
                model_disarm(&many, victim); // nothing, twice
                while (model_next(&many) != UINT64_MAX) model_fire(&many, far);
                CHECK(!many.timers[victim].is_fired);
            }
}
TEST(disarm_of_fired_timer_leaves_wheel_alone) {
    model_start(&many, 0, 2);
    model_arm(&many, 0, 5);
    CHECK_EQ(model_fire(&many, 5), 1);
    CHECK_EQ(many.timers[0].task.n_armed, 1); // still due its disarm
    model_arm(&many, 1, 9);
    model_disarm(&many, 0);
    model_check_lists(&many);
    CHECK_EQ(model_fire(&many, 9), 1);
}

// ---- the wheel of a stuck owner, served by another worker

TEST(wheel_try_fire_gives_up_if_lock_is_held) {
    volt__chain c;
    volt__chain_init(&c);
    model_start(&many, 0, 1);
    model_arm(&many, 0, 1);
    volt__lock(&many.wheel.lock);
    CHECK_EQ(volt__wheel_try_fire(&many.wheel, 10, &c), 0);
    volt__unlock(&many.wheel.lock);
    CHECK(c.head == NULL);
    CHECK_EQ(volt__wheel_try_fire(&many.wheel, 10, &c), 1);
    CHECK(c.head == &many.timers[0].task);
}
TEST(wheel_try_fire_fires_more_timers_than_one_hold) {
    volt__chain c;
    volt__chain_init(&c);
    model_start(&many, 0, MAX_TIMERS);
    for (int i = 0; i < many.n; i++) model_arm(&many, i, 1 + (uint64_t)i % 700);
    CHECK_EQ(volt__wheel_try_fire(&many.wheel, 700, &c), MAX_TIMERS);
    model_take(700, &c, 0);
    model_check_complete(&many, 700, 0, 0);
}
// An owner whose clock is behind the helper's: nothing goes back, nothing fires early.
TEST(clock_behind_the_wheel_does_not_turn_it_back) {
    model_start(&many, 100, 2);
    model_arm(&many, 0, 150);
    CHECK_EQ(model_fire(&many, 140), 0);
    CHECK_EQ(model_fire(&many, 120), 0);
    CHECK_EQ(many.wheel.elapsed, 140);
    model_arm(&many, 1, 130); // its time has passed on the wheel: the next tick
    CHECK_EQ(model_fire(&many, 140), 0);
    CHECK_EQ(model_fire(&many, 141), 1);
    CHECK_EQ(model_fire(&many, 150), 1);
}

// ---- threads: a frame may be reused as soon as disarm has returned

enum { N_SLEEPS = 60000, N_FIRED = 100 };
static volt__wheel shared_wheel;
static size_t shared_clock, n_shared_fired;
static uint32_t is_over;

static void *firing_thread(void *arg) {
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        volt__chain c;
        volt__chain_init(&c);
        uint64_t now = __atomic_add_fetch(&shared_clock, 1, __ATOMIC_RELAXED);
        size_t n = (size_t)volt__wheel_try_fire(&shared_wheel, now, &c);
        __atomic_fetch_add(&n_shared_fired, n, __ATOMIC_RELAXED);
        CHECK(c.head == NULL); // the task is RUNNING all the time: never to be enqueued
    }
    return arg;
}
// spin: WAITS: until a timer has fired, which is by chance otherwise.
enum { WAITS = -1 };
static void sleep_on_the_stack(volt__task *task, int spin) {
    volt__node frame[3];
    memset(frame, 0, sizeof frame);
    size_t n_fired = __atomic_load_n(&n_shared_fired, __ATOMIC_RELAXED);
    uint64_t now = __atomic_load_n(&shared_clock, __ATOMIC_RELAXED);
    for (uint64_t k = 0; k < 3; k++)
        volt__timer_arm(&shared_wheel, &frame[k], task, now + 1 + k * 40);
    for (int k = 0; k < spin; k++) VOLT_CPU_RELAX();
    while (spin == WAITS && __atomic_load_n(&n_shared_fired, __ATOMIC_RELAXED) == n_fired)
        sched_yield();
    for (int k = 0; k < 3; k++) {
        volt__timer_disarm(&frame[k], task);
        memset(&frame[k], 0xff, sizeof frame[k]); // a thread that still holds it gets this
    }
    CHECK_EQ(task->n_armed, 0);
}
TEST_OF_THREADS(frame_may_be_reused_once_disarm_has_returned) {
    pthread_t t[2];
    volt__task task;
    memset(&task, 0, sizeof task);
    task.word = VOLT__REF | VOLT__RUNNING;
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, firing_thread, NULL), 0);
    for (int n = 0; n < N_SLEEPS; n++) sleep_on_the_stack(&task, n % 512 ? n % 8 : WAITS);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK(n_shared_fired >= N_FIRED);
    for (int l = 0; l < VOLT_WHEEL_LEVELS; l++) CHECK_EQ(shared_wheel.occupied[l], 0);
}
TEST(interval_accepts_period_of_one_nanosecond) {
    volt_interval iv;
    volt_interval_init(&iv, 1);
    CHECK_EQ(iv.period_, 1);
}
