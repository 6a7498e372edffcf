// SPDX-License-Identifier: MIT OR 0BSD
// The budget of a poll and the measured length of polls: an operation that finds no budget left is
// tried again in the next poll, and nothing else changes.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

// ---- no budget left: the wait is put off to the next poll, and nothing else changes

// The code between two awaits runs once, so only the first poll of the next one finds no budget.
static void spend_budget(volt_cx *cx) { cx->budget_ = 0; }

ROOT_TEST_1(group_waits_complete_without_budget, {
    volt_group g;
    giver giver;
    int64_t rc;
    uint64_t id;
}) {
    VOLT_BEGIN(cx, s);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    volt_group_collect(&s->g);
    s->giver.value = 7;
    CHECK_EQ(volt_group_spawn(cx, &s->g, giver_run, &s->giver, sizeof s->giver), 0);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, NULL));
    CHECK_EQ(s->rc, 7);
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST_1(sleep_forever_without_budget_can_time_out, {
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_END(0);
}
// The limit is over from the beginning: its last try is left to the next poll.
ROOT_TEST_1(last_try_without_budget_is_made_later, {
    volt_timer t;
    volt_token done;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_before(cx, &s->t, 0, volt_token_wait(cx, &s->done)));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST_1(connect_and_accept_complete_without_budget, {
    volt_addr a;
    int lfd, fd, peer;
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    spend_budget(cx);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->a));
    CHECK(s->fd >= 0);
    spend_budget(cx);
    VOLT_AWAIT(s->peer, volt_accept(cx, s->lfd));
    CHECK(s->peer >= 0);
    volt_close(cx, s->fd);
    volt_close(cx, s->peer);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// The frame notes of which file a read was that went round; the next read is of another one.
ROOT_TEST_1(next_read_is_not_bound_to_file_of_requeued_read, {
    int a[2], b[2], number;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->b), 0);
    s->number = s->b[0];
    CHECK_EQ(write(s->b[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_read(cx, s->b[0], s->buf, 1));
    CHECK_EQ(s->rc, 1);
    volt_close(cx, s->b[0]);
    close(s->b[1]);
    CHECK_EQ(pipe(s->b), 0);
    CHECK_EQ(s->b[0], s->number); // the second file of this number
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s->a), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(write(s->a[1], "half", 4), 4);
    cx->budget_ = 1;
    VOLT_AWAIT(s->rc, volt_read_exact(cx, s->a[0], s->buf, 8));
    CHECK_EQ(s->rc, 8);
    CHECK_EQ(write(s->b[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_read(cx, s->b[0], s->buf, 1));
    CHECK_EQ(s->rc, 1);
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}

// A wait that is polled again by the wake-up of another one stays linked.
typedef struct {
    volt_frame frame;
    volt_arm slept, waited, next;
    volt_group waits, collects;
    int64_t rc, value;
} linked;
ROOT_TEST_1(group_wait_polled_again_stays_linked, { linked l; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->l.collects);
    GROUP_SPAWN(&s->l.waits, napper_run, (napper){.d = VOLT_MS(30)});
    GROUP_SPAWN(&s->l.collects, napper_run, (napper){.d = VOLT_MS(30), .value = 9});
    VOLT_AWAIT(s->l.rc, VOLT_JOIN_ALL(VOLT_ARM(&s->l.slept, volt_sleep(cx, VOLT_MS(1))),
                                      VOLT_ARM(&s->l.waited, volt_group_wait(cx, &s->l.waits)),
                                      VOLT_ARM(&s->l.next, s->l.value,
                                               volt_group_next(cx, &s->l.collects, NULL))));
    CHECK_EQ(s->l.rc, 0);
    CHECK_EQ(s->l.value, 9);
    GROUP_SPAWN(&s->l.collects, giver_run, (giver){.value = 4});
    VOLT_AWAIT(s->l.rc, volt_group_wait(cx, &s->l.collects)); // its result is kept
    CHECK_EQ(s->l.rc, 0);
    VOLT_AWAIT(s->l.rc, volt_group_next(cx, &s->l.collects, NULL));
    CHECK_EQ(s->l.rc, 4);
    VOLT_END(0);
}

// A task that ignores its cancellation must not own its worker, whatever it waits for: a yield that
// gives -ECANCELED does not put it into the queue, but costs a unit of the budget, at whose end the
// next task has its turn.
typedef struct {
    volt_frame frame;
    int n, *n_polls, *n_cancelled;
    int64_t rc;
} stubborn;
static volt_poll yield_stubbornly(volt_cx *cx, stubborn *s) {
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < 2 * VOLT_BUDGET; s->n++) {
        VOLT_AWAIT(s->rc, volt_yield(cx));
        if (s->rc == -ECANCELED) COUNT(*s->n_cancelled);
    }
    VOLT_END(0);
}
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *s = (stubborn *)arg;
    int before = *s->n_cancelled, *n_cancelled = s->n_cancelled;
    COUNT(*s->n_polls);
    volt_poll p = yield_stubbornly(cx, s);
    CHECK(*n_cancelled - before <= VOLT_BUDGET);
    return p;
}
ROOT_TEST_1(cancelled_yield_costs_budget, {
    volt_handle h;
    int n_polls, n_cancelled;
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, stubborn_run,
          (stubborn){.n_polls = &s->n_polls, .n_cancelled = &s->n_cancelled});
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_polls, 1));
    volt_cancel(&s->h);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_polls, 2));
    CHECK_EQ(s->n_cancelled, VOLT_BUDGET); // this task's turn has come
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->n_cancelled, 2 * VOLT_BUDGET); // also the first one, which was waiting
    CHECK_EQ(s->n_polls, 3);
    VOLT_END(0);
}

// ---- how long polls take, and how often a worker looks around

TEST(weight_of_average_follows_number_of_polls) {
    double rest = 1; // 0.9^n
    for (uint32_t n = 0; n <= 20; n++, rest *= 0.9)
        CHECK_EQ(volt__ewma_weight(n), (int)(256 * (1 - rest) + 0.5));
    CHECK_EQ(volt__ewma_weight(21), 225);
    CHECK_EQ(volt__ewma_weight(UINT32_MAX), 225);
}
// From an average of `avg`, polls that took `ns` together.
static int64_t measured(volt__worker *w, int64_t avg, uint32_t polls, int64_t ns) {
    w->avg_ns = avg;
    w->polls_since = polls;
    w->last_event_poll = 5000;
    volt__measure(w, 5000 + ns);
    CHECK_EQ(w->polls_since, 0);
    CHECK_EQ(w->last_event_poll, 5000 + ns);
    return w->avg_ns;
}
TEST(average_poll_time_follows_measured_polls) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    CHECK_EQ(measured(w, 1000, 1, 2000), 1000 + 1000 * 26 / 256);
    CHECK_EQ(measured(w, 1000, 2, 4000), 1000 + 1000 * 49 / 256);
    CHECK_EQ(measured(w, 1000, 2, 1000), 1000 - 500 * 49 / 256);
    CHECK_EQ(measured(w, 1000, 1, 8000), 1000 + 7000 * 26 / 256);
    CHECK_EQ(measured(w, 1000, 1, 9999999), 1000 + 7000 * 26 / 256); // an outlier
    CHECK_EQ(measured(w, 1000, 1, -9999999), 1); // a clock that went back
    CHECK_EQ(measured(w, 1000, 0, 9999999), 1000); // nothing ran
    still_end(rt);
}
TEST(average_poll_time_sets_the_intervals) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    rt->cfg.event_interval = 50;
    const int64_t paces[] = { 1, 999, 2000, 2001, 99999, 100000, 100001, 499999, 500001, 9999999 };
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        int64_t ns = paces[i], often = VOLT_EVENT_NS / ns, inject = VOLT_INJECT_NS / ns,
                wake = VOLT_WAKE_COST_NS / ns;
        w->event_every = 50;
        CHECK_EQ(measured(w, ns, 1, ns), ns);
        CHECK_EQ(w->event_every, often < 1 ? 1 : often > 50 ? 50 : often);
        CHECK_EQ(w->inject_every, inject < VOLT_INJECT_MIN   ? VOLT_INJECT_MIN
                                  : inject > VOLT_INJECT_MAX ? VOLT_INJECT_MAX
                                                             : inject);
        CHECK_EQ(w->wake_at, wake < 2 ? 2 : wake > VOLT_RING_CAP - 1 ? VOLT_RING_CAP - 1 : wake);
    }
    still_end(rt);
}
// The interval after one of `from` polls that took `ns` together, and were short.
static uint32_t interval_after(volt__worker *w, uint32_t from, int64_t ns) {
    w->event_every = from;
    measured(w, 1, from, ns);
    return w->event_every;
}
TEST(burst_of_short_polls_leaves_event_interval_short) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    rt->cfg.event_interval = 50;
    CHECK_EQ(interval_after(w, 10, -5), 11);
    CHECK_EQ(interval_after(w, 10, 0), 11);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS / 10 - 1), 11);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS / 10), 12);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS - 1), 20);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS), 21);
    CHECK_EQ(interval_after(w, 10, INT64_C(1000) * VOLT_EVENT_NS), 21);
    CHECK_EQ(interval_after(w, 40, VOLT_EVENT_NS), 50);
    CHECK_EQ(interval_after(w, 50, 0), 50);
    CHECK_EQ(interval_after(w, 1, VOLT_EVENT_NS), 3);
    still_end(rt);
}
// The number of tasks kept from thieves after polls of that pace, with tasks ended and spawned.
static uint32_t kept_after(volt__worker *w, int64_t ns, uint32_t polls, uint32_t ended,
                           uint32_t spawned) {
    w->completed = w->completed_then + ended;
    w->spawned = w->spawned_then + spawned;
    measured(w, ns, polls, ns * polls);
    CHECK(w->completed_then == w->completed && w->spawned_then == w->spawned);
    CHECK_EQ(w->ring.steal_floor == VOLT__NO_STEAL, w->wake_at == VOLT__NO_STEAL);
    return w->ring.steal_floor;
}
TEST(short_tasks_that_end_are_not_stolen) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    const int64_t ns = VOLT_STEAL_COST_NS - 1;
    CHECK_EQ(w->ring.steal_floor, 0);
    uint32_t ring = volt__clamp32(VOLT_WAKE_COST_NS / ns, 2, VOLT_RING_CAP - 1) - 2;
    CHECK(ring > 0);
    for (uint32_t polls = 8; polls < 10; polls++) {
        CHECK_EQ(kept_after(w, ns, polls, 5, 0), VOLT__NO_STEAL);
        CHECK_EQ(kept_after(w, ns, polls, 5, 4), VOLT__NO_STEAL);
        CHECK_EQ(kept_after(w, ns, polls, 5, 5), ring); // they spawn others
        CHECK_EQ(kept_after(w, ns, polls, 4, 0), 0);    // not most of them
    }
    CHECK_EQ(kept_after(w, ns + 1, 8, 8, 8), 0); // long enough
    CHECK_EQ(kept_after(w, 1, 8, 8, 8), VOLT_RING_CAP - 3);
    measured(w, ns, 0, 1000); // nothing ran, nothing learned
    CHECK_EQ(w->ring.steal_floor, VOLT_RING_CAP - 3);
    CHECK_EQ(w->trial_at, 0);
    w->is_guest = 1;
    CHECK_EQ(kept_after(w, ns, 8, 8, 0), 0);
    w->is_guest = 0;
    w->is_solo = 1;
    CHECK_EQ(kept_after(w, ns, 8, 8, 0), 0);
    w->is_solo = 0;
    still_end(rt);
}
// So long that each may have waited for as many others as there are. An interval of few polls
// counts for its share of a whole one.
TEST(worker_probes_regularly_whether_tasks_are_short) {
    static const uint32_t polls[] = { 4 * VOLT__TRIAL_POLLS, VOLT__TRIAL_POLLS, 8, 1 };
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    const int64_t ns = 4 * VOLT_STEAL_COST_NS * 2;
    for (int k = 0; k < 4; k++) {
        uint32_t n = polls[k], share = n < VOLT__TRIAL_POLLS ? VOLT__TRIAL_POLLS / n : 1;
        w->trial_at = 0;
        for (uint32_t i = 0; i < 2 * share * VOLT__TRIAL_EVERY; i++) {
            CHECK_EQ(kept_after(w, ns, n, n, 0), 0); // too long
            CHECK_EQ(kept_after(w, ns - 1, n, n, n), 0); // not the last of them
            int is_tried = i / share % VOLT__TRIAL_EVERY < VOLT__TRIAL;
            CHECK_EQ(kept_after(w, ns - 1, n, n, 0), is_tried ? VOLT__NO_STEAL : 0);
        }
    }
    still_end(rt);
}
