// SPDX-License-Identifier: MIT OR 0BSD
// Waits of all kinds while CLOCK_MONOTONIC passes a count at which some number comes round. Run by
// tests/platform/clocks.sh in a time namespace; the environment says what the clock shows there:
//   CLOCK_FROM    seconds: the least that the clock shows when the program begins
//   CLOCK_ACROSS  milliseconds: the number that it passes while the program runs
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

enum { SLEEPERS = 64, DEADLINES = 64, WORKERS = 2 };
#define BEHIND VOLT_MS(400) // all goes on for so long behind the count
#define LATE VOLT_S(5)      // on a machine that does other things, too

static volt_time count; // the one to pass

static volt_time number_of(const char *name) {
    const char *text = getenv(name);
    if (!text) test_fail(__FILE__, __LINE__, "%s is not set, see the head of this file", name);
    return strtoll(text, NULL, 10);
}
static int is_over(void) { return volt_now() > count + BEHIND; }
static void check_waited(volt_time since, volt_time at_least) {
    volt_time waited = volt_now() - since;
    if (waited < at_least || waited > at_least + LATE)
        test_fail(__FILE__, __LINE__, "%" PRId64 " ns after the count: waited %" PRId64
                  " ns instead of %" PRId64, since - count, waited, at_least);
}

// Naps of a random length, one after the other.
typedef struct {
    volt_frame frame;
    volt_time since, d;
    int rc;
} dozer;
static volt_poll dozer_run(volt_cx *cx, void *arg) {
    dozer *s = arg;
    VOLT_BEGIN(cx, s);
    while (!is_over()) {
        s->d = VOLT_US(1 + RANDOM_BELOW(80000));
        s->since = volt_now();
        VOLT_AWAIT(s->rc, volt_sleep(cx, s->d));
        CHECK_EQ(s->rc, 0);
        check_waited(s->since, s->d);
    }
    VOLT_END(0);
}
// One sleep, from the beginning to a moment near the count.
typedef struct {
    volt_frame frame;
    volt_time since, at;
    int rc;
} riser;
static volt_poll riser_run(volt_cx *cx, void *arg) {
    riser *s = arg;
    VOLT_BEGIN(cx, s);
    s->since = volt_now();
    VOLT_AWAIT(s->rc, volt_sleep_until(cx, s->at));
    CHECK_EQ(s->rc, 0);
    check_waited(s->since, s->at > s->since ? s->at - s->since : 0);
    VOLT_END(0);
}
// Limits that expire, and limits that do not.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_time since;
    int rc;
} limiter;
static volt_poll limiter_run(volt_cx *cx, void *arg) {
    limiter *s = arg;
    VOLT_BEGIN(cx, s);
    while (!is_over()) {
        s->since = volt_now();
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(30), volt_sleep_forever(cx)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        check_waited(s->since, VOLT_MS(30));
        s->since = volt_now();
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, LATE, volt_sleep(cx, VOLT_MS(3))));
        CHECK_EQ(s->rc, 0);
        check_waited(s->since, VOLT_MS(3));
    }
    s->since = volt_now(); // a month ahead: on a high level of the wheel
    VOLT_AWAIT(s->rc, volt_before(cx, &s->limit, s->since + VOLT_S(86400 * 30),
                                  volt_sleep(cx, VOLT_MS(3))));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
// A steady pace: what is missed is counted, nothing comes early.
typedef struct {
    volt_frame frame;
    volt_interval pace;
    volt_time began;
    int64_t n, got;
} walker;
static volt_poll walker_run(volt_cx *cx, void *arg) {
    walker *s = arg;
    VOLT_BEGIN(cx, s);
    s->began = volt_now();
    volt_interval_init(&s->pace, VOLT_MS(10));
    while (!is_over()) {
        VOLT_AWAIT(s->got, volt_interval_next(cx, &s->pace));
        CHECK(s->got >= 0);
        s->n++;
        CHECK(volt_now() >= s->began + s->n * VOLT_MS(10));
    }
    VOLT_END(0);
}
// Never ends by itself.
typedef struct {
    volt_frame frame;
    int rc;
} hermit;
static volt_poll hermit_run(volt_cx *cx, void *arg) {
    hermit *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(86400 * 400)));
    VOLT_END(s->rc);
}

TEST(clock_shows_the_time_that_was_set) {
    CHECK(volt_now() >= VOLT_S(number_of("CLOCK_FROM")));
    CHECK(volt_now() < VOLT_MS(number_of("CLOCK_ACROSS")));
}

// The thread's own waits: short ones, then, by `at`, one that began before the count.
static void join_in_vain(volt_handle *h, volt_time at_most) {
    int64_t result;
    volt_time since = volt_now();
    CHECK_EQ(volt_join_sync(h, at_most, &result), -ETIMEDOUT);
    check_waited(since, at_most);
}
static void *join_once(void *arg) {
    join_in_vain((volt_handle *)arg, count + BEHIND / 2 - volt_now());
    return NULL;
}
static void join_often(volt_handle *h) {
    while (!is_over()) join_in_vain(h, VOLT_MS(20));
}
static void end_hermit(volt_handle *h) {
    int64_t result;
    volt_cancel(h);
    CHECK_EQ(volt_join_sync(h, LATE, &result), 0);
    CHECK_EQ(result, -ECANCELED);
}
static void start_tasks(volt_rt *rt) {
    for (int i = 0; i < SLEEPERS; i++) RT_SPAWN(rt, NULL, dozer_run, (dozer){ .rc = 0 });
    for (int i = 0; i < DEADLINES; i++)
        RT_SPAWN(rt, NULL, riser_run, (riser){ .at = count + VOLT_MS((i - DEADLINES / 2) * 10) });
    RT_SPAWN(rt, NULL, limiter_run, (limiter){ .rc = 0 });
    RT_SPAWN(rt, NULL, walker_run, (walker){ .n = 0 });
}
static void wait_for_tasks(volt_rt *rt) {
    volt_counters n;
    do {
        volt_stats(rt, &n);
        sched_yield();
    } while (n.spawned != n.completed);
}
TEST(waits_end_across_a_wrap_of_the_count) {
    volt_handle near, far;
    count = VOLT_MS(number_of("CLOCK_ACROSS"));
    volt_rt *rt = create_on(WORKERS);
    CHECK(volt_now() < count);
    start_tasks(rt);
    RT_SPAWN(rt, &near, hermit_run, (hermit){ .rc = 0 });
    RT_SPAWN(rt, &far, hermit_run, (hermit){ .rc = 0 });
    pthread_t thread = start_thread(join_once, &far);
    join_often(&near);
    join_thread(thread);
    CHECK(is_over());
    end_hermit(&near);
    end_hermit(&far);
    wait_for_tasks(rt);
    destroy(rt);
}
