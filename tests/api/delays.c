// SPDX-License-Identifier: MIT OR 0BSD
// Delay queues, and times that are moved to coincide.
#define VOLT_TEST_CLOCK 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- beside an array that is searched

enum { ENTRIES = 60 };
typedef struct {
    volt_delays q;
    volt_delay d[ENTRIES];
    volt_time due[ENTRIES]; // 0: not queued
} both;
static int first_of(const both *b) {
    int first = -1;
    for (int i = 0; i < ENTRIES; i++)
        if (b->due[i] && (first < 0 || b->due[i] < b->due[first])) first = i;
    return first;
}
static void set_one(both *b, int i, volt_time due) {
    volt_delays_set(&b->q, &b->d[i], due);
    b->due[i] = due;
}
static void remove_one(both *b, int i) {
    volt_delays_remove(&b->q, &b->d[i]);
    b->due[i] = 0;
}
static void check_len(const both *b) {
    uint32_t n = 0;
    for (int i = 0; i < ENTRIES; i++) {
        CHECK_EQ(volt_delay_is_queued(&b->d[i]), b->due[i] != 0);
        n += b->due[i] != 0;
    }
    CHECK_EQ(volt_delays_len(&b->q), n);
}
// Takes all that are due, in the order of their times.
static void take_due(both *b, volt_time now) {
    volt_delay *d;
    while ((d = volt_delays_take(&b->q, now)) != NULL) {
        int i = (int)(d - b->d), first = first_of(b);
        CHECK(b->due[i] && b->due[i] <= now);
        CHECK_EQ(b->due[i], b->due[first]);
        b->due[i] = 0;
    }
    int first = first_of(b);
    CHECK(first < 0 || b->due[first] > now);
}
TEST(delay_queue_agrees_with_a_searched_array) {
    static both b;
    volt_time now = 1;
    for (int step = 0; step < 20000; step++) {
        int i = (int)RANDOM_BELOW(ENTRIES);
        volt_time span = (volt_time)RANDOM_BELOW(3) ? 100 : 100000;
        switch (RANDOM_BELOW(8)) {
        case 0: remove_one(&b, i); break;
        case 1: now += (volt_time)RANDOM_BELOW(200); break;
        case 2: take_due(&b, now); break;
        case 3: {
            int first = first_of(&b);
            volt_time next = volt_delays_next(&b.q);
            CHECK(first < 0 ? next == VOLT_NEVER : next <= b.due[first]);
            break;
        }
        default: set_one(&b, i, now + 1 + (volt_time)RANDOM_BELOW((uint64_t)span)); break;
        }
        if (step % 16 == 0) check_len(&b);
    }
    take_due(&b, VOLT_NEVER);
    CHECK_EQ(volt_delays_len(&b.q), 0);
    CHECK_EQ(volt_delays_next(&b.q), VOLT_NEVER);
}
// A deadline that traffic pushes back is not moved until it comes up.
TEST(later_deadline_leaves_its_entry_in_place) {
    volt_delays q;
    volt_delay a, b;
    memset(&q, 0, sizeof q);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    volt_delays_set(&q, &a, 100);
    volt_delays_set(&q, &b, 200);
    for (volt_time t = 101; t < 1000; t++) volt_delays_set(&q, &a, t);
    CHECK_EQ(a.at_, 100);
    CHECK(volt_delays_take(&q, 150) == NULL);
    CHECK(volt_delays_take(&q, 200) == &b);
    CHECK(volt_delays_next(&q) <= 999);
    CHECK(volt_delays_take(&q, 998) == NULL);
    CHECK(volt_delays_take(&q, 999) == &a);
    volt_delays_set(&q, &a, 2000);
    volt_delays_set(&q, &a, 50); // has passed
    CHECK(volt_delays_next(&q) <= 50);
    CHECK(volt_delays_take(&q, 999) == &a);
    volt_delays_set(&q, &a, 3000);
    volt_delays_set(&q, &b, 3000);
    volt_delay *first = volt_delays_take(&q, 3000), *other = first == &a ? &b : &a;
    CHECK(first != NULL);
    volt_delays_set(&q, other, 4000); // while it is due
    CHECK(volt_delays_take(&q, 3999) == NULL);
    CHECK(volt_delays_take(&q, 4000) == other);
    volt_delays_set(&q, &a, 5000);
    volt_delays_remove(&q, &a);
    volt_delays_remove(&q, &a);
    CHECK_EQ(volt_delays_len(&q), 0);
    CHECK_EQ(volt_delays_next(&q), VOLT_NEVER);
}

// Many deadlines in one slot: all that have passed are taken, in the order of their times.
static int by_time(const void *x, const void *y) {
    const volt_time a = *(const volt_time *)x, b = *(const volt_time *)y;
    return (a > b) - (a < b);
}
TEST(thousands_of_near_deadlines_are_taken_in_order) {
    enum { N = 3000 };
    static volt_delays q;
    static volt_delay d[N];
    static volt_time times[N];
    for (int round = 0; round < 20; round++) {
        int n = 0;
        volt_time now = VOLT_S(round), span = (volt_time)1 << (10 + round);
        memset(&q, 0, sizeof q);
        memset(d, 0, sizeof d);
        CHECK(volt_delays_take(&q, now) == NULL);
        for (int i = 0; i < N; i++) {
            times[i] = now + 1 + (volt_time)RANDOM_BELOW((uint32_t)span);
            volt_delays_set(&q, &d[i], times[i]);
        }
        qsort(times, N, sizeof times[0], by_time);
        while (n < N) {
            now += 1 + (volt_time)RANDOM_BELOW((uint32_t)span / 50);
            for (volt_delay *got; (got = volt_delays_take(&q, now)) != NULL; n++)
                CHECK_EQ(got->due_, times[n]);
            CHECK(n == N || times[n] > now);
        }
        CHECK_EQ(volt_delays_len(&q), 0);
    }
}
// Deadlines that have passed when they are set come first.
TEST(delay_set_to_a_past_time_is_due_at_once) {
    static volt_delays q;
    volt_delay d[4];
    memset(d, 0, sizeof d);
    memset(&q, 0, sizeof q);
    CHECK(volt_delays_take(&q, 100) == NULL);
    volt_delays_set(&q, &d[2], 150);
    volt_delays_set(&q, &d[0], 50);
    volt_delays_set(&q, &d[3], 100);
    volt_delays_set(&q, &d[1], 80);
    CHECK(volt_delays_next(&q) <= 100);
    int seen[4] = { 0 };
    for (int i = 0; i < 3; i++) {
        volt_delay *got = volt_delays_take(&q, 100);
        CHECK(got != NULL);
        seen[got - d]++;
    }
    CHECK(seen[0] == 1 && seen[1] == 1 && seen[3] == 1);
    CHECK(volt_delays_take(&q, 149) == NULL);
    CHECK(volt_delays_take(&q, 150) == &d[2]);
}
// Of few deadlines none is ever reported early.
TEST(next_time_of_few_deadlines_is_that_of_the_first) {
    enum { N = 30 };
    static volt_delays q;
    static volt_delay d[N];
    for (int round = 0; round < 1000; round++) {
        memset(&q, 0, sizeof q);
        memset(d, 0, sizeof d);
        volt_time first = VOLT_NEVER, now = (volt_time)(RANDOM() >> (2 + RANDOM_BELOW(60)));
        CHECK(volt_delays_take(&q, now) == NULL);
        for (int i = 0; i < N; i++) {
            volt_time due = now + 1 + (volt_time)(RANDOM() >> (2 + RANDOM_BELOW(60)));
            volt_delays_set(&q, &d[i], due);
            if (due < first) first = due;
            CHECK_EQ(volt_delays_next(&q), first);
        }
        while (volt_delays_len(&q) > 0) {
            CHECK_EQ(volt_delays_next(&q), first);
            const volt_delay *got = volt_delays_take(&q, first);
            CHECK(got && got->due_ == first);
            first = VOLT_NEVER;
            for (int i = 0; i < N; i++)
                if (d[i].link_ && d[i].due_ < first) first = d[i].due_;
        }
    }
}
// Of many volt_delays_next is early at most once for each digit of the deadline.
TEST(delay_queue_is_early_at_most_once_per_level) {
    static volt_delays q;
    volt_delay d;
    memset(&d, 0, sizeof d);
    for (int i = 0; i < 1000; i++) {
        int n = 0;
        volt_time now = (volt_time)(RANDOM() >> (2 + RANDOM_BELOW(60)));
        volt_time due = now + 1 + (volt_time)(RANDOM() >> (2 + RANDOM_BELOW(60)));
        memset(&q, 0, sizeof q);
        CHECK(volt_delays_take(&q, now) == NULL);
        volt_delays_set(&q, &d, due);
        for (volt_time last = -1; volt_delays_take(&q, now) == NULL; n++) {
            now = volt_delays_next(&q);
            CHECK(now > last && now <= due);
            last = now;
        }
        CHECK_EQ(now, due);
        CHECK(n <= 16);
        CHECK_EQ(volt_delays_next(&q), VOLT_NEVER);
    }
}

// ---- the task of examples/README.md: sessions that end when they were idle for a while

enum { SESSIONS = 40 };
typedef struct {
    volt_delay limit; // first: a pointer to it is one to the session
    volt_time last, ended;
} session;
typedef struct {
    volt_frame frame;
    volt_delays limits;
    session sessions[SESSIONS];
    volt_time next_use, wake;
    int n_ended;
    int rc;
} keeper;
static void use(keeper *k) {
    session *s = &k->sessions[RANDOM_BELOW(SESSIONS)];
    if (s->ended) return;
    s->last = volt_now();
    volt_delays_set(&k->limits, &s->limit, s->last + VOLT_S(60));
}
static volt_poll keeper_run(volt_cx *cx, void *arg) {
    keeper *k = (keeper *)arg;
    VOLT_BEGIN(cx, k);
    for (int i = 0; i < SESSIONS; i++) {
        k->sessions[i].last = volt_now();
        volt_delays_set(&k->limits, &k->sessions[i].limit, volt_now() + VOLT_S(60));
    }
    k->next_use = volt_now() + VOLT_S(1);
    while (volt_delays_len(&k->limits) > 0) {
        k->wake = volt_delays_next(&k->limits);
        if (k->wake > k->next_use) k->wake = k->next_use;
        VOLT_AWAIT(k->rc, volt_sleep_until(cx, k->wake));
        CHECK_EQ(k->rc, 0);
        for (volt_delay *d; (d = volt_delays_take(&k->limits, volt_now())) != NULL;) {
            session *s = VOLT__CONTAINER(session, limit, d);
            s->ended = volt_now();
            CHECK(s->ended - s->last >= VOLT_S(60));
            CHECK(s->ended - s->last <= VOLT_S(60) + VOLT_MS(1));
            k->n_ended++;
        }
        if (volt_now() < k->next_use) continue;
        use(k);
        k->next_use += VOLT_S(1);
    }
    CHECK_EQ(k->n_ended, SESSIONS);
    VOLT_END(0);
}
TEST(sessions_end_when_they_were_idle_for_a_minute) {
    static keeper k;
    CHECK_EQ(run_on(1, keeper_run, &k), 0);
}

// ---- coincidence

TEST(coalesced_time_is_later_by_at_most_the_slack) {
    for (int i = 0; i < 100000; i++) {
        volt_time until = (volt_time)(RANDOM() >> (1 + RANDOM_BELOW(62)));
        volt_time slack = (volt_time)(RANDOM() >> (1 + RANDOM_BELOW(62)));
        volt_time at = volt_coalesce(until, slack);
        CHECK(at >= until && at - until <= slack);
        CHECK_EQ(volt_coalesce(at, slack), at);
    }
    CHECK_EQ(volt_coalesce(VOLT_NEVER, VOLT_S(1)), VOLT_NEVER);
    CHECK_EQ(volt_coalesce(7, 0), 7);
    CHECK_EQ(volt_coalesce(-7, 100), -7);
    CHECK_EQ(volt_coalesce(1001, 999), 1024);
}
typedef struct {
    volt_frame frame;
    volt_time at;
    int rc;
} sloth;
static volt_poll sloth_run(volt_cx *cx, void *arg) {
    sloth *s = (sloth *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->at));
    VOLT_END(s->rc);
}
static uint64_t parks_of_sleepers(volt_time slack) {
    volt_counters before, s;
    volt_rt *rt = create_on(1);
    volt_handle h[200];
    CHECK_EQ(volt_test_hold(rt, 1), 0);
    for (int i = 0; i < 200; i++) {
        volt_time at = volt_now() + VOLT_S(5) + (volt_time)RANDOM_BELOW(1000000000);
        RT_SPAWN(rt, &h[i], sloth_run, (sloth){ .at = volt_coalesce(at, slack) });
    }
    UNTIL(volt__idle_is_parked(&rt->idle, 0)); // all tasks sleep
    volt_stats(rt, &before);
    CHECK_EQ(volt_test_hold(rt, 0), 0);
    for (int i = 0; i < 200; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
    volt_stats(rt, &s);
    destroy(rt);
    return s.parks - before.parks;
}
TEST_OF_THREADS(coalesced_sleeps_share_their_wake_ups) {
    uint64_t apart = parks_of_sleepers(0), together = parks_of_sleepers(VOLT_S(1));
    CHECK(together * 5 < apart);
}
