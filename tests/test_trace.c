// SPDX-License-Identifier: MIT OR 0BSD
// The trace of what happened, histograms, and the report of slow polls: builds with VOLT_TRACE.
#define VOLT_IMPLEMENTATION
#define VOLT_TRACE 1
#include "../volt.h"
#include "test.h"
#include "tasks.h"
#include "json.h"

static void trace(volt_rt *rt, sink *s) {
    free(s->text);
    memset(s, 0, sizeof *s);
    CHECK_EQ(volt_trace_to(rt, put, s), 0);
}
static uint64_t sum(const uint64_t *n) {
    uint64_t all = 0;
    for (int i = 0; i < VOLT_HISTOGRAM; i++) all += n[i];
    return all;
}
typedef struct {
    volt_frame frame;
    int n, rc;
} yields;
static volt_poll yields_run(volt_cx *cx, void *arg) {
    yields *y = (yields *)arg;
    VOLT_BEGIN(cx, y);
    for (; y->n > 0; y->n--) VOLT_AWAIT(y->rc, volt_yield(cx));
    VOLT_END(0);
}
TEST_OF_THREADS(every_poll_begins_and_ends) {
    EACH_WORKERS(w) {
        enum { TASKS = 10, YIELDS = 20, NAPS = 10 };
        volt_rt *rt = create_on(w);
        int n_ended = 0;
        for (int i = 0; i < TASKS; i++) {
            volt_handle h = { NULL };
            RT_SPAWN(rt, &h, yields_run, (yields){ .n = YIELDS });
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        }
        for (int i = 0; i < NAPS; i++)
            RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(1), .n_ended = &n_ended });
        UNTIL(READ(n_ended) == NAPS);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        sink s = { NULL };
        trace(rt, &s);
        read_json(&s);
        int polls = TASKS * (YIELDS + 1);
        CHECK_EQ(count(&s, "\"name\":\"yields_run\""), polls);
        int naps = count(&s, "\"name\":\"napper_run\"");
        CHECK(naps >= NAPS && naps <= 3 * NAPS);
        CHECK_EQ(count(&s, "\"ph\":\"B\""), count(&s, "\"ph\":\"E\""));
        CHECK_EQ(count(&s, "\"ph\":\"f\""), polls + naps); // one arrow ends at each poll
        CHECK_EQ(count(&s, "\"ph\":\"s\""), polls + naps); // and starts at its wake-up
        CHECK(count(&s, "\"name\":\"asleep\"") > 0);
        volt_counters c;
        volt_stats(rt, &c);
        CHECK_EQ(count(&s, "thread_name"), c.workers_started + 1);
        volt_histograms_of h;
        CHECK_EQ(volt_histograms(rt, &h), 0);
        CHECK_EQ(sum(h.poll), polls + naps);
        CHECK_EQ(sum(h.wait), polls + naps);
        drop(&s);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
TEST_OF_THREADS(old_events_give_way) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    RT_SPAWN(rt, &h, yields_run, (yields){ .n = 3 * VOLT_TRACE_CAP });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    sink s = { NULL };
    trace(rt, &s);
    read_json(&s);
    int n = count(&s, "\"ph\":\"B\"");
    CHECK(n > (int)VOLT_TRACE_CAP / 4 && n <= (int)VOLT_TRACE_CAP);
    CHECK_EQ(n, count(&s, "\"ph\":\"E\""));
    drop(&s);
    CHECK_EQ(volt_destroy(rt), 0);
}
typedef struct {
    volt_frame frame;
    volt_time busy;
    int rc;
} burner;
static volt_poll burner_run(volt_cx *cx, void *arg) {
    burner *b = (burner *)arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(b->rc, volt_yield(cx)); // the line that is told
    for (volt_time end = volt_now() + b->busy; volt_now() < end;) {}
    VOLT_END(__LINE__ - 2);
}
TEST_OF_THREADS(slow_polls_are_told_with_their_await) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    char want[64];
    int64_t line;
    volt_handle h = { NULL };
    memset(&test_log, 0, sizeof test_log);
    c.slow_poll = VOLT_S(1);
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, &h, burner_run, (burner){ .busy = 0 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_SLOW_POLL], 0);
    CHECK_EQ(volt_destroy(rt), 0);
    c.slow_poll = VOLT_MS(2);
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, &h, burner_run, (burner){ .busy = VOLT_MS(5) });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &line), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(test_log.n[VOLT_LOG_SLOW_POLL] >= 1);
    snprintf(want, sizeof want, "test_trace.c:%d: poll longer", (int)line);
    CHECK(strstr(test_log.text[VOLT_LOG_SLOW_POLL], want));
    volt_histograms_of hist;
    CHECK_EQ(volt_histograms(rt, &hist), 0);
    uint64_t slow = 0;
    for (uint32_t i = volt__histogram_slot(VOLT_MS(5)); i < VOLT_HISTOGRAM; i++)
        slow += hist.poll[i];
    CHECK(slow >= 1);
    CHECK_EQ(volt_destroy(rt), 0);
}
TEST(durations_by_powers_of_two) {
    CHECK_EQ(volt__histogram_slot(-5), 0);
    CHECK_EQ(volt__histogram_slot(0), 0);
    for (uint32_t i = 1; i < VOLT_HISTOGRAM; i++) {
        CHECK_EQ(volt__histogram_slot(INT64_C(1) << (i - 1)), i);
        CHECK_EQ(volt__histogram_slot((INT64_C(1) << i) - 1), i);
    }
    CHECK_EQ(volt__histogram_slot(INT64_MAX), VOLT_HISTOGRAM - 1);
}
