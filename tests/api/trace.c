// SPDX-License-Identifier: MIT OR 0BSD
// The trace of what happened, histograms, and the report of slow polls: builds with VOLT_TRACE.
#define VOLT_IMPLEMENTATION
#define VOLT_TRACE 1
#include "volt.h"
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
TEST_OF_THREADS(trace_has_beginning_and_end_of_every_poll) {
    EACH_WORKERS(w) {
        enum { TASKS = 10, YIELDS = 20, NAPS = 10 };
        volt_rt *rt = create_on(w);
        int n_ended = 0;
        for (int i = 0; i < TASKS; i++) {
            volt_handle h = { NULL };
            volt_spawn_options o = { .tag = 77 };
            CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, &h, yields_run, (yields){ .n = YIELDS }), 0);
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        }
        for (int i = 0; i < NAPS; i++)
            RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_MS(1), .n_ended = &n_ended });
        UNTIL(READ(n_ended) == NAPS);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        sink s = { .text = NULL };
        trace(rt, &s);
        read_json(&s);
        int polls = TASKS * (YIELDS + 1);
        CHECK_EQ(count(&s, "\"name\":\"yields_run\""), polls);
        CHECK_EQ(count(&s, "\"tag\":77"), polls);
        int naps = count(&s, "\"name\":\"napper_run\"");
        CHECK(naps >= NAPS && naps <= 3 * NAPS);
        CHECK_EQ(count(&s, "\"ph\":\"B\""), count(&s, "\"ph\":\"E\""));
        CHECK_EQ(count(&s, "\"ph\":\"f\""), polls + naps); // one arrow ends at each poll
        CHECK_EQ(count(&s, "\"ph\":\"s\""), polls + naps); // and starts at its wake-up
        CHECK(count(&s, "\"name\":\"asleep\"") > 0);
        volt_counters c;
        volt_stats(rt, &c);
        CHECK_EQ(count(&s, "thread_name"), c.workers_started + 1);
        volt_latency_histograms h;
        CHECK_EQ(volt_histograms(rt, &h), 0);
        CHECK_EQ(sum(h.poll), polls + naps);
        CHECK_EQ(sum(h.wait), polls + naps);
        drop(&s);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
TEST_OF_THREADS(trace_overwrites_its_oldest_events) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    RT_SPAWN(rt, &h, yields_run, (yields){ .n = 3 * VOLT_TRACE_CAP });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    sink s = { .text = NULL };
    trace(rt, &s);
    read_json(&s);
    int n = count(&s, "\"ph\":\"B\"");
    CHECK(n > (int)VOLT_TRACE_CAP / 4 && n <= (int)VOLT_TRACE_CAP);
    CHECK_EQ(n, count(&s, "\"ph\":\"E\""));
    drop(&s);
    CHECK_EQ(volt_destroy(rt), 0);
}
// An end whose beginning has been overwritten is left out, wherever the oldest event is.
TEST_OF_THREADS(trace_omits_end_without_its_beginning) {
    static volt__trace r, copy;
    static const volt_trace_kind kinds[] = { VOLT_TRACE_POLL, VOLT_TRACE_PENDING, VOLT_TRACE_PARK,
                                             VOLT_TRACE_UNPARK };
    volt_trace_event e;
    memset(&e, 0, sizeof e);
    e.name = "a task";
    for (int i = 0; i < 2 * (int)VOLT_TRACE_CAP; i++) {
        volt__out o;
        sink s = { .text = NULL };
        e.kind = kinds[i % 4];
        volt__trace_append(&r, &e);
        if (i < 2 * (int)VOLT_TRACE_CAP - 8) continue;
        memset(&o, 0, sizeof o);
        o.put = put;
        o.user = &s;
        o.is_json = 1;
        volt__trace_json_track(&o, &r, &copy, 0, "worker");
        volt__out_flush(&o);
        int n = count(&s, "\"ph\":\"B\"");
        CHECK_EQ(n, VOLT_TRACE_CAP / 2);
        CHECK_EQ(count(&s, "\"ph\":\"E\""), n - (i % 2 == 0));
        drop(&s);
    }
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
    burn(b->busy);
    VOLT_END(__LINE__ - 2);
}
static volt_poll named_burner_run(volt_cx *cx, void *arg) {
    burner *b = (burner *)arg;
    VOLT_BEGIN(cx, b);
    volt_name(cx, "client 7");
    burn(b->busy);
    VOLT_END(0);
}
TEST_OF_THREADS(slow_first_poll_is_logged_with_the_line_of_its_spawn) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    char want[64];
    c.slow_poll = VOLT_MS(2);
    CHECK_EQ(volt_create(&c, &rt), 0);
    RT_SPAWN(rt, NULL, named_burner_run, (burner){ .busy = VOLT_MS(5) });
    snprintf(want, sizeof want, "trace.c:%d: poll took longer", __LINE__ - 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_SLOW_POLL], 1);
    CHECK(strstr(test_log.text[VOLT_LOG_SLOW_POLL], want));
    CHECK_EQ(volt_destroy(rt), 0);
}
TEST_OF_THREADS(slow_poll_is_logged_with_its_await) {
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
    volt_time start = volt_now();
    volt_spawn_options o = { .tag = 99 };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(rt, &o, &h, burner_run, (burner){ .busy = VOLT_MS(5) }), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &line), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK(test_log.n[VOLT_LOG_SLOW_POLL] >= 1);
    snprintf(want, sizeof want, "trace.c:%d: poll took longer", (int)line);
    CHECK(strstr(test_log.text[VOLT_LOG_SLOW_POLL], want));
    volt_time took = volt_now() - start; // how long it was stands at the end
    long us = 0;
    const char *number = strrchr(test_log.text[VOLT_LOG_SLOW_POLL], ':');
    int len = 0;
    CHECK(number && sscanf(number, ": %ld us (task %*d.%*d, tag 99)%n", &us, &len) == 1 && len > 0);
    CHECK(!number[len]);
    CHECK(us >= 5000 && us <= took / 1000);
    volt_latency_histograms hist;
    CHECK_EQ(volt_histograms(rt, &hist), 0);
    uint64_t slow = 0;
    for (uint32_t i = volt__histogram_slot(VOLT_MS(5)); i < VOLT_HISTOGRAM; i++)
        slow += hist.poll[i];
    CHECK(slow >= 1);
    CHECK_EQ(volt_destroy(rt), 0);
}
// ---- traces into descriptors: as dumps, in outside.c

TEST_OF_THREADS(trace_into_a_pipe_without_a_reader_raises_no_signal) {
    volt_rt *rt = create_on(1);
    check_broken_pipe(rt, volt_trace);
    destroy(rt);
}
TEST_OF_THREADS(trace_into_a_full_descriptor_waits_for_room) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    RT_SPAWN(rt, &h, yields_run, (yields){ .n = VOLT_TRACE_CAP });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    check_full_pipe(rt, volt_trace);
    destroy(rt);
}
static volt_poll named_run(volt_cx *cx, void *arg) {
    yields *y = (yields *)arg;
    VOLT_BEGIN(cx, y);
    volt_name(cx, "a\xff\xc3(\xe2\x82\xac\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\x01\"");
    VOLT_AWAIT(y->rc, volt_yield(cx));
    VOLT_END(0);
}
TEST_OF_THREADS(trace_replaces_invalid_utf8) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    RT_SPAWN(rt, &h, named_run, (yields){ .n = 0 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    sink s = { .text = NULL };
    trace(rt, &s);
    read_json(&s);
    CHECK(strstr(s.text, "\"a\\ufffd\\ufffd(\xe2\x82\xac\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"
                         "\\ufffd\\ufffd\\ufffd\\ufffd\\u0001\\\"\""));
    drop(&s);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}
TEST(histogram_slots_are_powers_of_two) {
    CHECK_EQ(volt__histogram_slot(-5), 0);
    CHECK_EQ(volt__histogram_slot(0), 0);
    for (uint32_t i = 1; i < VOLT_HISTOGRAM; i++) {
        CHECK_EQ(volt__histogram_slot(INT64_C(1) << (i - 1)), i);
        CHECK_EQ(volt__histogram_slot((INT64_C(1) << i) - 1), i);
    }
    CHECK_EQ(volt__histogram_slot(INT64_MAX), VOLT_HISTOGRAM - 1);
}

// ---- the tracer

enum { MOST_TOLD = 4096 };
typedef struct {
    uint32_t lock, n;
    volt_trace_event event[MOST_TOLD];
} told;
static void tell(void *user, const volt_trace_event *e) {
    told *t = (told *)user;
    volt__lock(&t->lock);
    CHECK(t->n < MOST_TOLD);
    t->event[t->n++] = *e;
    volt__unlock(&t->lock);
}
static volt_rt *create_told(uint32_t workers, told *t) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    memset(t, 0, sizeof *t);
    c.tracer.fn = tell;
    c.tracer.user = t;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
static uint32_t count_told(const told *t, uint32_t kind, const char *name) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const volt_trace_event *e = &t->event[i];
        n += e->kind == kind && (!name || (e->name && strcmp(e->name, name) == 0));
    }
    return n;
}
TEST_OF_THREADS(tracer_gets_each_event) {
    EACH_WORKERS(w) {
        enum { YIELDS = 20 };
        static told t;
        volt_rt *rt = create_told(w, &t);
        volt_handle h = { NULL };
        volt_counters c;
        RT_SPAWN(rt, &h, yields_run, (yields){ .n = YIELDS });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &c);
        CHECK_EQ(count_told(&t, VOLT_TRACE_POLL, "yields_run"), YIELDS + 1);
        CHECK_EQ(count_told(&t, VOLT_TRACE_PENDING, "yields_run"), YIELDS);
        CHECK_EQ(count_told(&t, VOLT_TRACE_END, "yields_run"), 1);
        CHECK_EQ(count_told(&t, VOLT_TRACE_WAKE, "yields_run"), YIELDS + 1);
        CHECK_EQ(count_told(&t, VOLT_TRACE_PARK, NULL), c.parks);
        CHECK_EQ(count_told(&t, VOLT_TRACE_UNPARK, NULL), c.parks);
        CHECK_EQ(count_told(&t, VOLT_TRACE_STEAL, NULL), c.steals);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
TEST_OF_THREADS(events_name_task_await_and_worker) {
    static told t;
    volt_rt *rt = create_told(1, &t);
    volt_handle h = { NULL };
    uint64_t task = 0;
    RT_SPAWN(rt, &h, yields_run, (yields){ .n = 2 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    int n_polls = 0;
    volt__lock(&t.lock);
    volt_time last = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        const volt_trace_event *e = &t.event[i];
        CHECK(e->at > 0);
        if (e->worker == 0) {
            CHECK(e->at >= last); // one thread, one clock
            last = e->at;
        }
        if (e->kind == VOLT_TRACE_PARK || e->kind == VOLT_TRACE_UNPARK) {
            CHECK(!e->name && !e->site && e->task == 0 && e->worker == 0);
            continue;
        }
        CHECK(e->name && strcmp(e->name, "yields_run") == 0);
        CHECK(e->task >> 16 > 0);
        if (!task) task = e->task;
        CHECK_EQ(e->task, task);
        if (e->kind == VOLT_TRACE_POLL) {
            CHECK_EQ(e->worker, 0);
            CHECK_EQ(!e->site, n_polls++ == 0); // none before the first wait
            CHECK(!e->site || strstr(e->site, "trace.c:"));
            CHECK(!e->site || !strchr(e->site, '\t'));
        }
        if (e->kind == VOLT_TRACE_PENDING) CHECK(e->site && strstr(e->site, "trace.c:"));
        if (e->kind == VOLT_TRACE_WAKE) // the first by a thread outside, by itself then
            CHECK_EQ(e->worker, n_polls == 0 ? UINT32_MAX : 0);
    }
    CHECK_EQ(n_polls, 3);
    for (uint32_t i = 0; i + 1 < t.n; i++) // a wake-up and the poll behind it have one number
        if (t.event[i].kind == VOLT_TRACE_WAKE && t.event[i + 1].kind == VOLT_TRACE_POLL)
            CHECK_EQ(t.event[i].n, t.event[i + 1].n);
    volt__unlock(&t.lock);
    destroy(rt);
}
TEST_OF_THREADS(trace_events_and_dumps_number_tasks_alike) {
    static told t;
    volt_rt *rt = create_told(1, &t);
    sink s = { .text = NULL };
    char want[64];
    int n_ended = 0, n_named = 0;
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(1000), .n_ended = &n_ended });
    do dump(rt, &s, 0);
    while (count(&s, ": waiting at ") < 1);
    volt__lock(&t.lock);
    for (uint32_t i = 0; i < t.n; i++) {
        uint64_t task = t.event[i].task;
        if (!t.event[i].name) continue;
        snprintf(want, sizeof want, "task %u.%u napper_run,", (unsigned)(task >> 16),
                 (unsigned)task & 0xffff);
        CHECK_EQ(count(&s, want), 1);
        n_named++;
    }
    volt__unlock(&t.lock);
    CHECK(n_named >= 2); // its spawn and its poll at least
    drop(&s);
    destroy(rt);
}

// Buckets count all that is below their bound: the last one counts everything.
static void check_buckets(const sink *s, const char *name, const uint64_t *counts) {
    char bucket[80];
    uint64_t n = 0, before = 0;
    for (int i = 0; i < VOLT_HISTOGRAM; i++) {
        n += counts[i];
        if (i < 10 || i > 34) continue;
        snprintf(bucket, sizeof bucket, "%s_bucket{le=\"%.9f\"}", name,
                 (double)(UINT64_C(1) << i) / 1e9);
        CHECK_EQ((uint64_t)sample(s, bucket), n);
        CHECK(n >= before);
        before = n;
    }
    snprintf(bucket, sizeof bucket, "%s_bucket{le=\"+Inf\"}", name);
    CHECK_EQ((uint64_t)sample(s, bucket), n);
}
TEST_OF_THREADS(metrics_have_histograms_and_health) {
    volt_rt *rt = create_on(1);
    volt_latency_histograms h;
    sink s = { .text = NULL };
    volt_handle task = { NULL };
    RT_SPAWN(rt, &task, yields_run, (yields){ .n = 100 });
    CHECK_EQ(volt_join_sync(&task, VOLT_NEVER, NULL), 0);
    do { // until the last poll is counted
        CHECK_EQ(volt_histograms(rt, &h), 0);
    } while (sum(h.poll) < 101);
    h.poll[2]++; // shorter and longer ones are in the first and in the last bucket
    h.poll[40]++;
    volt__lock(&rt->workers[0]->trace.lock);
    rt->workers[0]->trace.histograms.poll[2]++;
    rt->workers[0]->trace.histograms.poll[40]++;
    volt__unlock(&rt->workers[0]->trace.lock);
    dump(rt, &s, VOLT_DUMP_METRICS);
    check_buckets(&s, "volt_poll_seconds", h.poll);
    check_buckets(&s, "volt_wait_seconds", h.wait);
    CHECK_EQ((int)sample(&s, "volt_longest_poll_seconds"), 0);
    CHECK_EQ((int)sample(&s, "volt_oldest_runnable_seconds"), 0);
    drop(&s);
    destroy(rt);
}

// ---- health

typedef struct {
    volt_frame frame;
    int *step;
    int rc;
} sticky;
static volt_poll sticky_run(volt_cx *cx, void *arg) {
    sticky *b = (sticky *)arg;
    VOLT_BEGIN(cx, b);
    COUNT(*b->step);
    while (READ(*b->step) == 1) sched_yield();
    VOLT_AWAIT(b->rc, volt_yield(cx)); // the line that is told
    COUNT(*b->step);
    while (READ(*b->step) == 3) sched_yield();
    VOLT_END(__LINE__ - 3);
}
static void is_healthy(volt_rt *rt) {
    volt_health_report h;
    CHECK_EQ(volt_health(rt, &h), 0);
    CHECK(h.longest_poll == 0 && h.oldest_runnable == 0 && !h.site);
}
TEST_OF_THREADS(health_reports_longest_poll_and_oldest_runnable) {
    volt_rt *rt = create_on(1);
    volt_health_report h;
    volt_handle stuck = { NULL }, behind = { NULL };
    int64_t line;
    int step = 0;
    char want[64];
    is_healthy(rt);
    RT_SPAWN(rt, &stuck, sticky_run, (sticky){ .step = &step });
    UNTIL(READ(step) == 1);
    volt_time since = volt_now();
    UNTIL((CHECK_EQ(volt_health(rt, &h), 0), h.longest_poll > VOLT_MS(5)));
    CHECK(!h.site); // its first poll
    CHECK_EQ(h.oldest_runnable, 0);
    RT_SPAWN(rt, &behind, giver_run, (giver){ .value = 1 });
    UNTIL((CHECK_EQ(volt_health(rt, &h), 0), h.oldest_runnable > VOLT_MS(5)));
    volt_handle younger = { NULL };
    RT_SPAWN(rt, &younger, giver_run, (giver){ .value = 1 });
    volt_time before = h.oldest_runnable;
    CHECK_EQ(volt_health(rt, &h), 0);
    CHECK(h.oldest_runnable >= before); // the older one of the two
    CHECK(h.oldest_runnable <= volt_now() - since);
    CHECK(h.longest_poll >= h.oldest_runnable);
    WRITE(step, 2);
    UNTIL(READ(step) == 3);
    CHECK_EQ(volt_join_sync(&behind, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_join_sync(&younger, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_health(rt, &h), 0);
    CHECK(h.site);
    CHECK_EQ(h.oldest_runnable, 0);
    const char *site = h.site;
    WRITE(step, 4);
    CHECK_EQ(volt_join_sync(&stuck, VOLT_NEVER, &line), 0);
    snprintf(want, sizeof want, "trace.c:%d", (int)line);
    CHECK(strstr(site, want));
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    is_healthy(rt);
    CHECK_EQ(volt_destroy(rt), 0);
}
// Each of two workers is in a poll, one for longer: that one is told, whichever of the two it is.
// A task that is created is not runnable before it is started, whatever its slot was used for.
TEST_OF_THREADS(health_does_not_count_tasks_that_are_not_started) {
    enum { MANY = 64 };
    void *states[MANY];
    volt_health_report h;
    volt_rt *rt = create_on(1);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < MANY; i++)
            CHECK((states[i] = volt_task_create(rt, giver_run, sizeof(giver))) != NULL);
        volt_time since = volt_now();
        while (volt_now() == since) {}
        CHECK_EQ(volt_health(rt, &h), 0);
        CHECK_EQ(h.oldest_runnable, 0);
        volt_handle last[MANY];
        for (int i = 0; i < MANY; i++) volt_task_start(states[i], &last[i]);
        for (int i = 0; i < MANY; i++) CHECK_EQ(volt_join_sync(&last[i], VOLT_NEVER, NULL), 0);
    }
    destroy(rt);
}
// The root has no place of a spawn to name.
static volt_poll asking_root(volt_cx *cx, void *arg) {
    volt_health_report h;
    CHECK_EQ(volt_health(volt_cx_rt(cx), &h), 0);
    CHECK(!h.site);
    (void)arg;
    return volt_ready(0);
}
TEST(health_names_no_line_in_first_poll_of_root) {
    giver g = { .value = 0 };
    CHECK_EQ(run_on(1, asking_root, &g), 0);
}
TEST_OF_THREADS(health_names_no_line_in_first_poll_of_spawn_with_a_line) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    giver g = { .value = 0 };
    CHECK_EQ(volt_rt_spawn_at(rt, &h, asking_root, &g, sizeof g, "bind.py:7"), 0);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    volt_rt *rt;
    volt_handle other;
} blocking;
static int join_other(void *arg) {
    blocking *b = (blocking *)arg;
    volt_counters c;
    CHECK_EQ(volt_join_sync(&b->other, VOLT_NEVER, NULL), 0);
    UNTIL((volt_stats(b->rt, &c), c.completed == 1));
    is_healthy(b->rt); // the poll that blocks does not count: its worker is free
    return 0;
}
static volt_poll blocking_run(volt_cx *cx, void *arg) {
    blocking *b = (blocking *)arg;
    VOLT_BEGIN(cx, b);
    b->rt = volt_cx_rt(cx);
    SPAWN(&b->other, yields_run, (yields){ .n = 3 });
    volt_time since = volt_now();
    CHECK_EQ(volt_block_in_place(cx, join_other, b), 0);
    volt_time now = volt_now();
    volt_health_report h;
    CHECK_EQ(volt_health(b->rt, &h), 0);
    CHECK(h.longest_poll >= now - since && !h.site);
    VOLT_END(0);
}
TEST_OF_THREADS(health_counts_a_poll_that_has_blocked_in_place) {
    blocking b = { .rt = NULL };
    CHECK_EQ(run_on(1, blocking_run, &b), 0);
}
TEST_OF_THREADS(health_reports_longest_of_several_polls) {
    enum { MANY = 3 };
    volt_handle h[MANY];
    int step[MANY] = { 0 };
    test_starts_all = 1;
    volt_rt *rt = create_on(2);
    UNTIL(volt__started(rt) == 2);
    volt_time since = 0, next = 0;
    for (int i = 0; i < MANY; i++) { // one takes the place of the last but one
        volt_health_report health;
        if (i >= 2) {
            WRITE(step[i - 2], 2);
            UNTIL(READ(step[i - 2]) == 3);
            WRITE(step[i - 2], 4);
            CHECK_EQ(volt_join_sync(&h[i - 2], VOLT_NEVER, NULL), 0);
        }
        RT_SPAWN(rt, &h[i], sticky_run, (sticky){ .step = &step[i] });
        UNTIL(READ(step[i]) == 1);
        since = next;
        next = volt_now(); // it runs by then
        if (i == 0) continue;
        volt_time now = volt_now();
        CHECK_EQ(volt_health(rt, &health), 0);
        CHECK(health.longest_poll >= now - since);
    }
    for (int i = 1; i < MANY; i++) {
        WRITE(step[i], 4);
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
    }
    destroy(rt);
}
// Between being woken and being stamped it has no age yet.
TEST_OF_THREADS(health_ignores_task_that_is_just_being_woken) {
    volt_rt *rt = create_on(1);
    volt_handle stuck = { NULL }, woken = { NULL };
    volt_health_report h;
    int step = 0;
    RT_SPAWN(rt, &stuck, sticky_run, (sticky){ .step = &step });
    UNTIL(READ(step) == 1);
    RT_SPAWN(rt, &woken, giver_run, (giver){ .value = 1 });
    uint32_t stamp = READ(woken.task_->wait_ms);
    WRITE(woken.task_->wait_ms, stamp & ~1u);
    UNTIL((CHECK_EQ(volt_health(rt, &h), 0), h.longest_poll > VOLT_MS(5)));
    CHECK_EQ(h.oldest_runnable, 0);
    WRITE(woken.task_->wait_ms, stamp);
    CHECK_EQ(volt_health(rt, &h), 0);
    CHECK(h.oldest_runnable > 0);
    WRITE(step, 4);
    CHECK_EQ(volt_join_sync(&woken, VOLT_NEVER, NULL), 0);
    volt_detach(&stuck);
    destroy(rt);
}
// A task that waits is not runnable, for how long it may be.
TEST_OF_THREADS(health_ignores_tasks_that_wait) {
    volt_rt *rt = create_on(2);
    volt_counters c;
    int n_ended = 0;
    RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(1000), .n_ended = &n_ended });
    UNTIL((volt_stats(rt, &c), c.polls > 0));
    for (uint32_t i = 0; i < c.workers_started; i++) UNTIL(volt__idle_is_parked(&rt->idle, i));
    is_healthy(rt);
    destroy(rt);
}

// ---- steals; without memory

static volt_poll spread_run(volt_cx *cx, void *arg) { // leaves tasks behind that others must take
    sticky *b = (sticky *)arg;
    VOLT_BEGIN(cx, b);
    for (int i = 0; i < 8; i++) SPAWN(NULL, yields_run, (yields){ .n = 1 });
    volt_time end = volt_now() + VOLT_S(10);
    volt_counters c;
    do volt_stats(volt_cx_rt(cx), &c);
    while (c.steals + c.rescued == 0 && volt_now() < end);
    VOLT_END(0);
}
TEST_OF_THREADS(tracer_and_trace_show_every_steal) {
    volt_counters c;
    sink s = { .text = NULL };
    for (int tries = 0;; tries++) { // the watchdog may be quicker
        CHECK(tries < 100);
        static told t;
        volt_rt *rt = create_told(2, &t);
        volt_handle h = { NULL };
        RT_SPAWN(rt, &h, spread_run, (sticky){ .rc = 0 });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &c);
        CHECK_EQ(count_told(&t, VOLT_TRACE_STEAL, NULL), c.steals);
        uint64_t n = 0;
        for (uint32_t i = 0; i < t.n; i++)
            if (t.event[i].kind == VOLT_TRACE_STEAL) n += t.event[i].n;
        CHECK_EQ(n, c.stolen);
        trace(rt, &s);
        read_json(&s);
        CHECK_EQ(count(&s, "\"name\":\"steal\""), c.steals);
        test_heap.is_sticky = 1;
        test_heap.fail_at = test_heap.n_allocs + 1;
        CHECK_EQ(volt_trace_to(rt, put, &s), -ENOMEM);
        test_heap.fail_at = 0;
        CHECK_EQ(volt_destroy(rt), 0);
        if (c.steals > 0) break;
    }
    drop(&s);
}

// ---- every poll has its wake-up: also where the watchdog fires timers of a stuck worker, and
// where a shutdown wakes all

static void every_poll_was_woken(const told *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->event[i].kind != VOLT_TRACE_POLL) continue;
        int is_woken = 0;
        for (uint32_t k = 0; k < i; k++)
            is_woken |= t->event[k].kind == VOLT_TRACE_WAKE && t->event[k].n == t->event[i].n &&
                        t->event[k].task == t->event[i].task;
        CHECK(is_woken);
    }
}
typedef struct {
    volt_frame frame;
    int *n_ended, i, rc;
} stuck;
static volt_poll stuck_run(volt_cx *cx, void *arg) { // until its worker's timers have been fired
    stuck *b = (stuck *)arg;
    VOLT_BEGIN(cx, b);
    volt_counters c;
    for (int i = 0; i < 3; i++)
        SPAWN(NULL, napper_run, (napper){ .d = VOLT_MS(2), .n_ended = b->n_ended });
    for (b->i = 0; b->i < 3; b->i++) VOLT_AWAIT(b->rc, volt_yield(cx));
    do volt_stats(volt_cx_rt(cx), &c);
    while (READ(*b->n_ended) < 3 && c.steals == 0);
    VOLT_END(0);
}
TEST_OF_THREADS(trace_has_wake_for_every_poll_of_rescued_tasks) {
    volt_latency_histograms h;
    for (int tries = 0;; tries++) { // a thief may be quicker
        CHECK(tries < 100);
        static told t;
        int n_ended = 0;
        volt_counters c;
        volt_rt *rt = create_told(2, &t);
        volt_handle h1 = { NULL };
        RT_SPAWN(rt, &h1, stuck_run, (stuck){ .n_ended = &n_ended });
        CHECK_EQ(volt_join_sync(&h1, VOLT_NEVER, NULL), 0);
        RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(1000), .n_ended = &n_ended });
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &c);
        every_poll_was_woken(&t);
        CHECK_EQ(volt_histograms(rt, &h), 0);
        for (uint32_t i = volt__histogram_slot(VOLT_S(60)); i < VOLT_HISTOGRAM; i++)
            CHECK_EQ(h.wait[i], 0);
        CHECK_EQ(volt_destroy(rt), 0);
        if (c.rescued > 0) break;
    }
}

// ---- a task ends once, also one that has left a group open

typedef struct {
    volt_frame frame;
    volt_group group;
    int *n_ended;
} careless;
static volt_poll careless_run(volt_cx *cx, void *arg) {
    careless *c = (careless *)arg;
    VOLT_BEGIN(cx, c);
    volt_group_collect(&c->group);
    GROUP_SPAWN(&c->group, napper_run, (napper){ .d = 0, .n_ended = c->n_ended });
    VOLT_AWAIT(volt_group_wait(cx, &c->group)); // ended, but its result is still there
    VOLT_END(0);
}
TEST_OF_THREADS(task_with_open_group_is_traced_as_ended_once) {
    static told t;
    int n_ended = 0;
    volt_handle h = { NULL };
    volt_rt *rt = create_told(1, &t);
    RT_SPAWN(rt, &h, careless_run, (careless){ .n_ended = &n_ended });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    uint32_t polls = count_told(&t, VOLT_TRACE_POLL, "careless_run");
    uint32_t pending = count_told(&t, VOLT_TRACE_PENDING, "careless_run");
    CHECK_EQ(count_told(&t, VOLT_TRACE_END, "careless_run"), 1);
    CHECK_EQ(polls, pending + 1);
    CHECK_EQ(volt_destroy(rt), 0);
}
