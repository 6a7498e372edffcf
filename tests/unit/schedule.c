// SPDX-License-Identifier: MIT OR 0BSD
// Queues of a worker, parked workers, work that is due: the scheduler's parts, each alone.
#include "scripted_seam.h"
#include "scripted_fd.h"

// ---- queues

TEST(injector_takes_chain_and_gives_it_in_shares) {
    volt__injector q;
    volt__task t[3];
    memset(&q, 0, sizeof q);
    memset(t, 0xa5, sizeof t);
    volt__chain c = no_chain();
    volt__injector_push(&q, &c);
    CHECK(!q.head && q.len == 0);
    for (int i = 0; i < 3; i++) volt__chain_push(&c, &t[i]);
    CHECK(c.head == &t[0] && c.tail == &t[2] && !t[2].next);
    CHECK_EQ(c.len, 3);
    volt__injector_push(&q, &c);
    CHECK(q.head == &t[0] && q.tail == &t[2]);
    CHECK_EQ(q.lock, 0);
    c = no_chain();
    CHECK_EQ(volt__injector_pop(&q, 3, 9, &c), 2); // 3 / 3 + 1
    CHECK_EQ(volt__injector_pop(&q, 1, 0, &c), 0);
    CHECK_EQ(q.lock, 0);
    CHECK_EQ(volt__injector_pop(&q, 1, 9, &c), 1);
    CHECK(!q.head && !q.tail && c.head == &t[0] && c.tail == &t[2]);
}
TEST(ring_that_overflowed_can_be_filled_again) {
    static volt__task t[2 * VOLT_RING_CAP];
    for (uint32_t from = 0; from <= 2 * VOLT_RING_CAP; from += VOLT_RING_CAP / 2) {
        volt__ring r;
        volt__chain c = no_chain();
        memset(&r, 0, sizeof r);
        r.head = volt__head_make(from, 0);
        r.tail = r.limit = from & VOLT__RING_INDEX_MASK;
        CHECK_EQ(volt__ring_overflow(&r, &c), 0); // not full
        CHECK(volt__head_index(r.head) == (from & VOLT__RING_INDEX_MASK) && !c.head);
        for (uint32_t i = 0; i < VOLT_RING_CAP; i++) CHECK(volt__ring_push(&r, &t[i]));
        CHECK(!volt__ring_push(&r, &t[VOLT_RING_CAP]));
        r.head |= 1; // a thief is at work
        CHECK_EQ(volt__ring_overflow(&r, &c), 0);
        r.head &= ~(uintptr_t)1;
        CHECK_EQ(volt__ring_overflow(&r, &c), 1);
        CHECK_EQ(volt__head_distance(r.head), 0);
        CHECK_EQ(volt__ring_len(&r), VOLT_RING_CAP / 2);
        CHECK_EQ(r.limit, r.tail); // looks for room before the next push
        for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
            CHECK(volt__chain_pop(&c) == &t[i]);
        CHECK(!c.head && c.len == 0);
        for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
            CHECK(volt__ring_push(&r, &t[i + VOLT_RING_CAP / 2]));
        CHECK(!volt__ring_push(&r, &t[0]));
        for (uint32_t i = 0; i < VOLT_RING_CAP; i++)
            CHECK(volt__ring_pop(&r) == &t[i < VOLT_RING_CAP / 2 ? i : i + VOLT_RING_CAP / 2]);
        CHECK(!volt__ring_pop(&r));
    }
}

// ---- parked workers

TEST(parked_workers_are_counted_and_claimed_once) {
    volt__idle s;
    for (uint32_t n = 1; n <= VOLT_MAX_WORKERS; n = n == 130 ? VOLT_MAX_WORKERS : n + 1) {
        memset(&s, 0xa5, sizeof s);
        volt__idle_init(&s, n);
        CHECK_EQ(s.n_words, (n + VOLT__IDLE_BITS - 1) / VOLT__IDLE_BITS);
        CHECK_EQ(s.searching, 0);
        CHECK(!volt__idle_has_parked(&s) && volt__idle_claim(&s, VOLT__ANY_WORKER) == -1);
        CHECK_EQ(s.searching, 0);
        for (uint32_t i = 0; i < n; i++) { // the i-th alone, then with the first and the last
            CHECK(!volt__idle_is_parked(&s, i));
            CHECK_EQ(volt__idle_park(&s, i, 0), 0);
            CHECK(volt__idle_is_parked(&s, i) && volt__idle_has_parked(&s));
            CHECK_EQ(volt__idle_count_others(&s, i, 0), 0);
            CHECK_EQ(volt__idle_count_others(&s, i ? 0 : n, 0), 1);
            CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), i);
            CHECK_EQ(s.searching, 1);
            CHECK(!volt__idle_is_parked(&s, i) && !volt__idle_has_parked(&s));
            CHECK_EQ(volt__idle_unpark(&s, i), 1); // claimed
            CHECK_EQ(volt__idle_end_search(&s), 1);
            CHECK_EQ(volt__idle_park(&s, i, 0), 0);
            CHECK_EQ(volt__idle_unpark(&s, i), 0);
            CHECK(!volt__idle_is_parked(&s, i));
            CHECK_EQ(s.searching, 0);
        }
        for (uint32_t i = 0; i < n; i++) (void)volt__idle_park(&s, i, 0);
        for (uint32_t i = 0; i < n; i++) CHECK_EQ(volt__idle_count_others(&s, i, 0), n - 1);
        for (uint32_t i = 0; i < n; i++)
            CHECK_EQ(volt__idle_claim_bit(&s, VOLT__ANY_WORKER), n - 1 - i);
        CHECK_EQ(volt__idle_claim_bit(&s, VOLT__ANY_WORKER), -1);
    }
}
TEST(idle_find_wraps_round_to_first_parked_worker) {
    volt__idle s;
    static const uint32_t sizes[] = { 1, 2, 31, 32, 33, 63, 64, 65, 128, 130 };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && sizes[k] <= VOLT_MAX_WORKERS; k++) {
        uint32_t n = sizes[k];
        volt__idle_init(&s, n);
        for (uint32_t from = 0; from < n; from++) CHECK_EQ(volt__idle_find(&s, from), -1);
        for (uint32_t i = 0; i < n; i++) { // one alone
            (void)volt__idle_park(&s, i, 0);
            for (uint32_t from = 0; from < n; from++) CHECK_EQ(volt__idle_find(&s, from), i);
            CHECK_EQ(volt__idle_unpark(&s, i), 0);
        }
        for (uint32_t i = 0; i < n; i += 3) (void)volt__idle_park(&s, i, 0);
        for (uint32_t from = 0; from < n; from++) { // the next one, or the first
            uint32_t next = (from + 2) / 3 * 3;
            CHECK_EQ(volt__idle_find(&s, from), next < n ? next : 0);
        }
    }
}
TEST(claim_prefers_named_worker) {
    volt__idle s;
    volt__idle_init(&s, 3);
    for (uint32_t i = 0; i < 3; i++) (void)volt__idle_park(&s, i, 0);
    CHECK_EQ(volt__idle_claim(&s, 1), 1);
    CHECK_EQ(s.searching, 1);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 1), 2); // it is awake: any other
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 0), 0);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 0), -1);
    CHECK_EQ(s.searching, 0);
}
// It is not counted as searching: its thread comes when the application lets it.
TEST(claim_takes_guest_if_it_is_named_or_the_only_one) {
    volt__idle s;
    volt__idle_init(&s, 3);
    s.guest = 1;
    for (uint32_t i = 0; i < 3; i++) (void)volt__idle_park(&s, i, 0);
    CHECK_EQ(volt__idle_claim(&s, 0), 0);
    CHECK_EQ(s.searching, 0);
    CHECK_EQ(volt__idle_claim(&s, 0), 2); // it is awake: any other
    s.searching = 0;
    (void)volt__idle_park(&s, 0, 0);
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), 1);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), 0);
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), -1);
    CHECK_EQ(s.searching, 0);
}
TEST(searching_workers_are_counted_and_limited) {
    volt__idle s;
    volt__idle_init(&s, 8);
    for (uint32_t n = 0; n < 12; n++)
        for (uint32_t started = 0; started < 20; started++) {
            s.searching = n;
            CHECK_EQ(volt__idle_begin_search(&s, started), 2 * n < started);
            CHECK_EQ(s.searching, n + (2 * n < started));
        }
    s.searching = 5;
    volt__idle_begin_search_always(&s);
    CHECK_EQ(s.searching, 6);
    CHECK_EQ(volt__idle_park(&s, 1, 1), 5);
    CHECK_EQ(s.searching, 5);
    CHECK_EQ(volt__idle_park(&s, 2, 0), 5);
    CHECK_EQ(s.searching, 5);
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), -1); // one that searches will see to it
    CHECK(volt__idle_is_parked(&s, 1) && s.searching == 5);
    CHECK_EQ(volt__idle_end_search(&s), 0);
    CHECK_EQ(s.searching, 4);
    volt__idle_unpark_searching(&s, 1); // no worker has claimed it: it counts itself
    CHECK_EQ(s.searching, 5);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), 2);
    volt__idle_unpark_searching(&s, 2); // the claim has counted it
    CHECK_EQ(s.searching, 1);
}
// The one exception: another thread, which begins and ends a search all the time.
static int is_search_over;
static void *searching_main(void *arg) {
    volt__idle *s = (volt__idle *)arg;
    while (!READ(is_search_over)) {
        volt__idle_begin_search_always(s);
        volt__fence_sc(&s->searching);
        volt__load_rlx(&s->searching);
        (void)__atomic_fetch_sub(&s->searching, 1, __ATOMIC_ACQ_REL);
    }
    return NULL;
}
TEST(failed_claim_leaves_count_of_searching_unchanged) {
    volt__idle s;
    volt__idle_init(&s, 2);
    (void)volt__idle_park(&s, 1, 0);
    pthread_t t = start_thread(searching_main, &s);
    for (int i = 0; i < 300000; i++) {
        int claimed = volt__idle_claim(&s, VOLT__ANY_WORKER);
        CHECK(claimed == 1 || claimed < 0); // the first does not sleep
        if (claimed < 0) continue;
        (void)volt__idle_park(&s, 1, 1);
    }
    WRITE(is_search_over, 1);
    join_thread(t);
    CHECK_EQ(s.searching, 0);
}
TEST(watchdog_is_claimed_once_until_taken) {
    volt__watchdog watch;
    memset(&watch, 0xa5, sizeof watch);
    CHECK_EQ(volt__watchdog_init(&watch, 750), 0);
    CHECK(watch.fd >= 0 && watch.is_armed == 0 && watch.period == 750000);
    CHECK(fcntl(watch.fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(watch.fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(volt__watchdog_take(&watch), 0);
    CHECK_EQ(volt__watchdog_claim(&watch), 1);
    CHECK_EQ(watch.is_armed, 1);
    CHECK_EQ(volt__watchdog_claim(&watch), 0);
    CHECK_EQ(watch.is_armed, 1);
    CHECK_EQ(volt__watchdog_take(&watch), 1);
    CHECK_EQ(watch.is_armed, 0);
    CHECK_EQ(volt__watchdog_take(&watch), 0);
    watch.period = 3000000001;
    memset(&settime, 0xa5, sizeof settime);
    volt__timer_fd_set(watch.fd, watch.period);
    CHECK(settime.fd == watch.fd && settime.flags == 0);
    CHECK(settime.t.it_value.tv_sec == 3 && settime.t.it_value.tv_nsec == 1);
    CHECK(settime.t.it_interval.tv_sec == 0 && settime.t.it_interval.tv_nsec == 0);
    watch.period = 999999999;
    volt__timer_fd_set(watch.fd, watch.period);
    CHECK(settime.t.it_value.tv_sec == 0 && settime.t.it_value.tv_nsec == 999999999);
    for (int64_t left = -1; left < 3; left++) { // 0 is as soon as may be, and less is never
        volt__timer_fd_set(watch.fd, left);
        CHECK_EQ(settime.t.it_value.tv_sec, 0);
        CHECK_EQ(settime.t.it_value.tv_nsec, left < 0 ? 0 : left == 0 ? 1 : left);
    }
    close(watch.fd);
}

// ---- a worker: time

TEST(ticks_are_rounded_down_for_now_and_up_for_deadlines) {
    begin(1);
    const int64_t tick = VOLT_TICK_NS;
    static const struct {
        int64_t ns;
        uint64_t floor, ceil;
    } rows[] = { { -5, 0, 0 },       { -VOLT_TICK_NS, 0, 0 },  { 0, 0, 0 },
                 { 1, 0, 1 },        { VOLT_TICK_NS - 1, 0, 1 }, { VOLT_TICK_NS, 1, 1 },
                 { VOLT_TICK_NS + 1, 1, 2 }, { 7 * (int64_t)VOLT_TICK_NS, 7, 7 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(volt__tick_floor(rt, rt->epoch + rows[i].ns), rows[i].floor);
        CHECK_EQ(volt__tick_ceil(rt, rt->epoch + rows[i].ns), rows[i].ceil);
    }
    // until the next timer, or until the run gives up
    clock_now = rt->epoch;
    CHECK(volt__time_left(volt__sleep_deadline(w)) == -1);
    task = still_task(w);
    memset(node, 0, sizeof node);
    volt__timer_arm(&w->wheel, node, task, 3);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 3 * tick);
    clock_now += 3 * tick - 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 1);
    clock_now += 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    clock_now += 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    w->drain_deadline = clock_now + 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    clock_now = rt->epoch;
    w->drain_deadline = clock_now + tick;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), tick);
    w->drain_deadline = clock_now + 4 * tick;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 3 * tick);
    volt__timer_disarm(node, task);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 4 * tick);
    CHECK(!volt__drain_expired(w));
    w->drain_deadline = clock_now;
    CHECK(!volt__drain_expired(w)); // no task is left
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), VOLT_MS(1));
    w->is_guest = 1;
    CHECK(volt__drain_expired(w));
    w->is_guest = 0;
    rt->injector.spawned = 1;
    CHECK(volt__drain_expired(w));
    w->drain_deadline = clock_now - 1;
    CHECK(volt__drain_expired(w));
    w->drain_deadline = clock_now + 1;
    CHECK(!volt__drain_expired(w));
    w->drain_deadline = VOLT_NEVER;
    clock_now = VOLT_NEVER;
    CHECK(!volt__drain_expired(w));
    clock_now = rt->epoch;
    // a tick that lies behind the end of time is none
    uint64_t last = (uint64_t)(VOLT_NEVER - rt->epoch) / VOLT_TICK_NS;
    w->wheel.elapsed = last - 2;
    volt__timer_arm(&w->wheel, node, task, last - 1);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), (int64_t)(last - 1) * tick);
    volt__timer_disarm(node, task);
    volt__timer_arm(&w->wheel, node, task, last);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), -1);
    end();
}

// ---- queues of a worker

TEST(push_past_wake_mark_wakes_parked_worker) {
    begin(2);
    park_v();
    volt__wake_worker(rt);
    CHECK(was_v_woken());
    (void)volt__idle_park(&rt->idle, 0, 0);
    volt__wake_worker(rt); // of both the upper one
    CHECK(was_v_woken());
    CHECK_EQ(volt__idle_unpark(&rt->idle, 0), 0);
    volt__chain c = no_chain();
    volt__chain_push(&c, still_task(w));
    volt__inject(rt, &c);
    CHECK(was_v_woken() && rt->injector.len == 1);
    CHECK(volt__current_worker(rt) == NULL);
    VOLT_TLS_SET(w);
    CHECK(volt__current_worker(rt) == w);
    VOLT_TLS_SET(NULL);
    empty(w);
    for (uint32_t mark = 2; mark < 4; mark++) {
        for (uint32_t n = 0; n <= mark + 3 && n < VOLT_RING_CAP; n++) {
            w->wake_at = VOLT_RING_CAP * 2;
            for (uint32_t i = 0; i < n; i++) volt__push_ring(w, still_task(w));
            CHECK(!was_v_woken());
            w->wake_at = mark;
            volt__push_ring(w, still_task(w));
            CHECK_EQ(was_v_woken(), n + 1 == mark || n + 1 == mark + 1);
            CHECK_EQ(volt__backlog(w), n + 1);
            empty(w);
        }
        for (uint32_t n = 1; n <= mark + 1 && n < VOLT_RING_CAP; n++) {
            c = no_chain();
            for (uint32_t i = 0; i < n; i++) volt__chain_push(&c, still_task(w));
            volt__push_batch(w, &c);
            CHECK_EQ(was_v_woken(), n >= mark);
            CHECK(ring_len() == n && !c.head);
            empty(w);
        }
    }
    w->is_solo = 1; // no worker looks
    w->wake_at = 1;
    volt__push_ring(w, still_task(w));
    c = no_chain();
    volt__push_batch(w, &c);
    volt__chain_push(&c, still_task(w));
    volt__push_batch(w, &c);
    CHECK(!was_v_woken() && ring_len() == 2);
    w->is_solo = 0;
    empty(w);
    c = no_chain();
    volt__push_ring(w, still_task(w));
    (void)was_v_woken();
    volt__push_batch(w, &c); // nothing came: no worker is told
    CHECK(!was_v_woken());
    empty(w);
    // full: what there is no room for goes on in order
    while (volt__ring_room(&w->ring) > 1) volt__ring_push(&w->ring, still_task(w));
    volt__task *t[3];
    for (int i = 0; i < 3; i++) volt__chain_push(&c, t[i] = still_task(w));
    volt__push_batch(w, &c);
    CHECK(was_v_woken() && rt->injector.len == 2 && rt->injector.head == t[1]);
    uint64_t before = w->stats.overflows;
    volt__push_ring(w, t[0] = still_task(w));
    CHECK(was_v_woken() && ring_len() == VOLT_RING_CAP / 2);
    CHECK(rt->injector.tail == t[0] && rt->injector.len == 2 + VOLT_RING_CAP / 2 + 1);
    CHECK_EQ(w->stats.overflows - before, 1);
    end();
}
TEST(lifo_slot_runs_before_ring_up_to_its_limit) {
    for (uint32_t n = 1; n <= 2; n++) {
        begin(n);
        w->wake_at = VOLT_RING_CAP * 2;
        volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
        CHECK(!volt__lifo_take(w) && !volt__lifo_is_full(w) && volt__backlog(w) == 0);
        volt__push_lifo(w, a);
        CHECK(w->lifo == a && volt__lifo_is_full(w) && volt__backlog(w) == 1);
        volt__push_lifo(w, b);
        CHECK(w->lifo == b && ring_len() == 1 && volt__backlog(w) == 2);
        CHECK(volt__lifo_take(w) == b && !w->lifo);
        w->lifo_run = VOLT_LIFO_MAX - 1;
        volt__push_lifo(w, b);
        CHECK(w->lifo == b && ring_len() == 1);
        w->lifo_run = VOLT_LIFO_MAX;
        volt__push_lifo(w, c);
        CHECK(w->lifo == b && ring_len() == 2);
        // VOLT_LIFO_MAX times from the slot, then the ring, then the slot again
        w->lifo_run = VOLT_LIFO_MAX - 1;
        CHECK(volt__next_local(w) == b && w->lifo_run == VOLT_LIFO_MAX);
        w->lifo = b;
        CHECK(volt__next_local(w) == a && w->lifo == b && w->lifo_run == 0);
        CHECK_EQ(w->stats.lifo_polls, VOLT_LIFO_MAX);
        w->lifo = NULL;
        w->lifo_run = 1;
        CHECK(volt__next_local(w) == c && w->stats.lifo_polls == VOLT_LIFO_MAX + 1 && !w->lifo_run);
        w->stats.lifo_polls--;
        CHECK(!volt__next_local(w));
        w->lifo_run = VOLT_LIFO_MAX;
        w->lifo = b;
        CHECK(volt__next_local(w) == b && w->lifo_run == 0); // the ring is empty
        CHECK_EQ(w->stats.lifo_polls, 2 * VOLT_LIFO_MAX);
        volt__chain one = no_chain();
        volt__chain_push(&one, a);
        volt__injector_push(&rt->injector, &one);
        CHECK(volt__next_local(w) == a && w->stats.wakes_remote == 1);
        end();
    }
}
TEST(refill_takes_fair_share_of_injector) {
    begin(2);
    CHECK_EQ(volt__refill(w), 0);
    CHECK(!volt__next_from_refill(w) && !volt__pop_due_source(w));
    volt__task *t[3];
    volt__chain c = no_chain();
    for (int i = 0; i < 3; i++) volt__chain_push(&c, t[i] = still_task(w));
    volt__injector_push(&rt->injector, &c);
    CHECK_EQ(volt__refill(w), 2); // 3 / 2 + 1
    CHECK(w->stats.wakes_remote == 2 && ring_len() == 2);
    CHECK(volt__pop_due_source(w) == t[2] && w->stats.wakes_remote == 3);
    CHECK(rt->injector.len == 0 && !volt__pop_due_source(w) && w->stats.wakes_remote == 3);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1]);
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__injector_push(&rt->injector, &c);
    CHECK(volt__pop_due_source(w) == t[0] && rt->injector.len == 0); // 2 / 2 + 1
    CHECK(volt__pop_ring(w) == t[1] && w->stats.wakes_remote == 5);
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__injector_push(&rt->injector, &c);
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w));
    CHECK_EQ(volt__refill(w), 0);
    CHECK(volt__pop_due_source(w) == t[0] && rt->injector.len == 1); // one: the ring is full
    CHECK(volt__ring_room(&w->ring) == 0);
    end();
}
TEST(due_source_alternates_between_inbox_and_injector) {
    volt__task *placed[4], *injected[4];
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    for (int i = 0; i < 4; i++) {
        place_at(w, placed[i] = still_task(w));
        place_at(NULL, injected[i] = still_task(w));
    }
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w)); // one each
    CHECK(volt__pop_due_source(w) == placed[0] && volt__pop_due_source(w) == injected[0]);
    CHECK(volt__pop_due_source(w) == placed[1] && volt__pop_due_source(w) == injected[1]);
    while (ring_len() > 0) volt__pop_ring(w);
    CHECK(w->stats.inbox_tasks == 2 && w->stats.wakes_remote == 2);
    CHECK_EQ(volt__refill(w), 2); // idle: what was placed here comes first, and all of it
    CHECK(volt__pop_ring(w) == placed[2] && volt__pop_ring(w) == placed[3]);
    CHECK_EQ(volt__refill(w), 2); // 2 / 2 + 1
    CHECK(volt__pop_ring(w) == injected[2] && volt__pop_ring(w) == injected[3]);
    CHECK(w->stats.inbox_tasks == 4 && w->stats.wakes_remote == 4);
    for (int i = 0; i < 3; i++) { // where one is empty the other is asked
        place_at(w, placed[i]);
        CHECK(volt__pop_due_source(w) == placed[i]);
        place_at(NULL, injected[i]);
        CHECK(volt__pop_due_source(w) == injected[i]);
        place_at(NULL, injected[i]);
        CHECK(volt__pop_due_source(w) == injected[i]);
    }
    CHECK(!volt__pop_due_source(w) && !volt__refill(w));
    end();
}
// A full ring, and one more of those that a poll spawns: half of it, and that one.
enum { SPILT = VOLT_RING_CAP / 2 + 1 };
static void fill_ring(void) {
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w));
}
static volt__task *spill_half(void) {
    volt__task *t = still_task(w);
    fill_ring();
    volt__push_tail(w, t, 1);
    return t;
}
// A reader takes two words while the owner moves both: the second may be ahead of the first.
TEST(claimed_tasks_count_as_queued_and_torn_count_as_none) {
    begin(2);
    uint32_t first = w->ring.next;
    CHECK_EQ(w->ring.claimed, first);
    w->ring.claimed = first + VOLT_CLAIM_MAX;
    CHECK_EQ(volt__queued_at(w), VOLT_CLAIM_MAX);
    w->ring.next = w->ring.claimed + 1;
    CHECK_EQ(volt__queued_at(w), 0);
    w->ring.next = w->ring.claimed = first;
    end();
}
TEST(spawns_overflow_locally_and_wakes_to_injector) {
    begin(2);
    w->wake_at = UINT32_MAX;
    park_v();
    w->inject_batch = 99;
    volt__task *t = spill_half();
    CHECK(w->overflow.len == SPILT && rt->injector.len == 0);
    CHECK(volt__overflow_batch(&w->overflow, 0)->tail == t);
    CHECK(was_v_woken() && ring_len() == VOLT_RING_CAP / 2 && volt__has_stealable_work(rt));
    CHECK(w->stats.overflows == 1 && w->inject_batch == VOLT_INJECT_BATCH_MIN);
    CHECK_EQ(volt__queued_at(w), VOLT_RING_CAP + 1);
    // a spawn displaces a task of the same poll; a task displaced by a wake-up goes to all
    volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
    volt__push_runnext(w, a, 1);
    fill_ring();
    volt__push_runnext(w, b, 1);
    CHECK(w->overflow.n == 2 && volt__overflow_batch(&w->overflow, 1)->tail == a);
    fill_ring();
    volt__push_lifo(w, c);
    CHECK(w->overflow.n == 2 && rt->injector.len == SPILT && rt->injector.tail == b);
    // past the slot: what comes from one poll after the first
    w->lifo_run = VOLT_LIFO_MAX;
    w->lifo_bypass_at = w->countdown + 1;
    for (int i = 0; i < 3; i++) {
        fill_ring();
        volt__push_runnext(w, still_task(w), i < 2);
        CHECK_EQ(w->overflow.len, (i == 0 ? 2 : 3) * SPILT);
        CHECK_EQ(rt->injector.len, (i == 2 ? 3 : 2) * SPILT);
    }
    fill_ring();
    volt__push_ring(w, still_task(w)); // it yields
    CHECK(w->overflow.len == 3 * SPILT && rt->injector.len == 4 * SPILT);
    end();
}
TEST(task_that_has_run_never_goes_to_overflow_queue) {
    for (int n_run = 0; n_run <= 2; n_run++) { // the displaced one, and the last in the ring
        begin(2);
        w->wake_at = UINT32_MAX;
        w->ring.steal_floor = VOLT__NO_STEAL;
        park_v();
        fill_ring();
        volt__task *t = still_task(w), *last = w->ring.slot[(w->ring.tail - 1) % VOLT_RING_CAP];
        if (n_run >= 1) t->wait_site = "here";
        if (n_run == 2) last->wait_site = "here";
        volt__push_tail(w, t, 1);
        CHECK_EQ(w->overflow.len, SPILT - n_run);
        CHECK_EQ(rt->injector.len, n_run);
        if (n_run == 2) CHECK(rt->injector.head == last && rt->injector.tail == t);
        CHECK_EQ(was_v_woken(), n_run > 0); // for the injector alone
        end();
    }
}
TEST(owner_takes_newest_overflow_and_thief_oldest) {
    begin(2);
    spill_half();
    volt__task *oldest = volt__overflow_batch(&w->overflow, 0)->head;
    spill_half();
    volt__task *newest = volt__overflow_batch(&w->overflow, 1)->head;
    // behind a ring without room there is one at least: see volt__next_from_overflow
    fill_ring();
    volt__task *second = newest->next;
    CHECK(volt__next_from_refill(w) == newest && w->overflow.len == 2 * SPILT - 1);
    while (ring_len() > 0) volt__pop_ring(w);
    // idle: the newest come first, in their order
    uint32_t share = volt__min32(VOLT_INJECT_BATCH_MIN + 1, volt__min32(SPILT - 1, VOLT_RING_CAP));
    CHECK(volt__next_from_refill(w) == second && ring_len() == share - 1);
    CHECK(w->overflow.len == 2 * SPILT - 1 - share && w->inject_batch == VOLT_INJECT_BATCH_MIN + 2);
    share = volt__min32(SPILT, VOLT_INJECT_BATCH);
    CHECK_EQ(volt__steal(v, w), share); // others begin with the oldest
    CHECK(volt__pop_ring(v) == oldest);
    end();
}
TEST(due_source_takes_inbox_injector_and_overflow_in_turn) {
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    volt__task *placed[2], *injected[2], *spilt[3];
    for (int i = 0; i < 2; i++) {
        place_at(w, placed[i] = still_task(w));
        place_at(NULL, injected[i] = still_task(w));
    }
    spill_half();
    fill_ring(); // one each
    spilt[0] = volt__overflow_batch(&w->overflow, 0)->head;
    for (int i = 0; i < 2; i++) spilt[i + 1] = spilt[i]->next;
    CHECK(volt__pop_due_source(w) == placed[0] && volt__pop_due_source(w) == injected[0]);
    CHECK(volt__pop_due_source(w) == spilt[0] && volt__pop_due_source(w) == placed[1]);
    CHECK(volt__pop_due_source(w) == injected[1] && volt__pop_due_source(w) == spilt[1]);
    CHECK(!volt__overflow_is_empty(&w->overflow) && !volt__has_injected(w));
    CHECK(volt__pop_due_source(w) == spilt[2]); // nothing else is there
    end();
}
TEST(ring_that_overflowed_takes_queued_tasks_into_its_older_half_only) {
    for (int has_overflowed = 0; has_overflowed < 2; has_overflowed++) {
        begin(1);
        w->inject_batch = has_overflowed ? VOLT_INJECT_BATCH - 1 : VOLT_INJECT_BATCH;
        volt__chain c = no_chain();
        for (int i = 0; i < 2 * VOLT_INJECT_BATCH; i++) volt__chain_push(&c, still_task(w));
        volt__injector_push(&rt->injector, &c);
        while (ring_len() < VOLT_RING_CAP / 2 - 1) volt__ring_push(&w->ring, still_task(w));
        CHECK(volt__pop_due_source(w));
        if (has_overflowed) CHECK_EQ(ring_len(), VOLT_RING_CAP / 2);
        else CHECK(ring_len() > VOLT_RING_CAP / 2);
        uint32_t len = ring_len();
        if (has_overflowed) w->inject_batch = VOLT_INJECT_BATCH_MIN; // the batch has grown
        CHECK(volt__pop_due_source(w));
        if (has_overflowed) CHECK_EQ(ring_len(), len); // one, which is polled at once
        w->inject_every = 255;
        w->inject_batch = has_overflowed ? VOLT_INJECT_BATCH - 1 : VOLT_INJECT_BATCH;
        CHECK_EQ(volt__due_again(w), 1 + (has_overflowed ? ring_len() / 4 : ring_len()));
        end();
    }
}
TEST(overflow_queue_alone_is_due_after_a_whole_round) {
    begin(1);
    w->inject_batch = VOLT_INJECT_BATCH - 1; // of a ring that has overflowed
    w->inject_every = 255;
    spill_half();
    volt__ring_push(&w->ring, still_task(w));
    CHECK(volt__has_overflowed(w) && !volt__overflow_is_empty(&w->overflow));
    CHECK_EQ(volt__due_again(w), 1 + ring_len());
    volt__chain c = no_chain();
    volt__chain_push(&c, still_task(w));
    volt__injector_push(&rt->injector, &c);
    CHECK_EQ(volt__due_again(w), 1 + ring_len() / 4);
    end();
}
TEST(aged_overflow_moves_to_injector_oldest_first) {
    begin(1);
    volt__pop_due_source(w);
    spill_half();
    volt__task *oldest = volt__overflow_batch(&w->overflow, 0)->head;
    spill_half();
    fill_ring(); // one at a time
    uint64_t since = w->overflow_ms;
    w->ms = since + VOLT_OVERFLOW_MS - 1;
    volt__overflow_age(w);
    CHECK(w->overflow.len == 2 * SPILT && rt->injector.len == 0);
    w->ms++;
    uint32_t n = volt__min32(SPILT, VOLT_INJECT_BATCH);
    volt__overflow_age(w);
    CHECK(w->overflow.len == 2 * SPILT - n && rt->injector.len == n && rt->injector.head == oldest);
    volt__overflow_age(w);
    CHECK(w->overflow_ms == since + VOLT_OVERFLOW_MS && rt->injector.len == n);
    // it counts from when it was last seen empty
    volt__chain c = no_chain();
    volt__overflow_pop_all(&w->overflow, &c);
    w->ms += 3 * VOLT_OVERFLOW_MS;
    volt__overflow_age(w);
    spill_half();
    volt__overflow_age(w);
    CHECK(w->overflow.len == SPILT && rt->injector.len == n);
    end();
}
TEST(rescue_takes_overflow_queue) {
    begin(2);
    spill_half();
    spill_half();
    volt__worker *stuck = w;
    v->is_searching = 1;
    rt->idle.searching = 1;
    volt__rescue(v, stuck);
    CHECK(stuck->overflow.len == 0 && v->stats.rescued >= 2 * SPILT);
    CHECK(volt__ring_len(&v->ring) + rt->injector.len == v->stats.rescued);
    end();
}
TEST(evict_moves_overflow_queue_and_ring_to_injector) {
    begin(2);
    spill_half();
    volt__evict_local_tasks(w);
    CHECK(w->overflow.len == 0 && ring_len() == 0 && rt->injector.len == VOLT_RING_CAP + 1);
    end();
}
TEST(thief_takes_half_of_inbox_when_ring_is_empty) {
    volt__task *t[5];
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt));
    for (int i = 0; i < 3; i++) place_at(v, t[i] = still_task(w));
    CHECK(volt__has_stealable_work(rt));
    CHECK_EQ(volt__steal(w, v), 2); // 3 / 2 + 1
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1]);
    for (int i = 3; i < 5; i++) volt__ring_push(&v->ring, t[i] = still_task(w));
    CHECK_EQ(volt__steal(w, v), 1); // the ring first
    CHECK(volt__pop_ring(w) == t[3] && volt__ring_pop(&v->ring) == t[4]);
    rt->cfg.placement = VOLT_PLACE_SHARED; // inboxes are ignored
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt) && v->inbox.len == 1);
    end();
}
TEST(overflow_of_worker_that_refuses_steals_wakes_no_thief) {
    begin(2);
    park_v();
    w->wake_at = VOLT__NO_STEAL;
    w->ring.steal_floor = VOLT__NO_STEAL;
    spill_half();
    CHECK(w->overflow.len == SPILT && !was_v_woken() && !volt__has_stealable_work(rt));
    CHECK(!volt__steal(v, w) && w->overflow.len == SPILT && ring_len() == VOLT_RING_CAP / 2);
    fill_ring();
    volt__push_tail(w, still_task(w), 0); // a task displaced by a wake-up goes to all
    CHECK(was_v_woken() && rt->injector.len == SPILT && w->overflow.len == SPILT);
    w->polls_since = 0;
    volt__maintain(w);
    CHECK(!was_v_woken());
    w->ring.steal_floor = 0;
    volt__maintain(w);
    CHECK(was_v_woken() && volt__steal(v, w) > 0 && w->overflow.len < SPILT);
    w->ring.steal_floor = VOLT__NO_STEAL;
    w->event_polls = w->event_polls_seen; // it is stuck
    volt__watchdog_scan(v);
    CHECK(w->overflow.len == 0);
    end();
}
TEST(ring_is_not_stolen_from_below_its_steal_floor) {
    begin(2);
    v->ring.steal_floor = 2;
    for (int i = 0; i < 2; i++) volt__ring_push(&v->ring, still_task(w));
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt) && volt__ring_len(&v->ring) == 2);
    volt__ring_push(&v->ring, still_task(w));
    CHECK(volt__has_stealable_work(rt));
    CHECK_EQ(volt__steal(w, v), 2);
    CHECK(!volt__steal(w, v) && volt__ring_len(&v->ring) == 1);
    v->event_polls = v->event_polls_seen; // it is stuck
    volt__watchdog_scan(w);
    CHECK_EQ(w->stats.rescued, 1);
    CHECK_EQ(volt__ring_len(&v->ring), 0);
    end();
}
TEST(load_of_worker_counts_its_queued_tasks) {
    begin(2);
    CHECK_EQ(volt__worker_load(rt, 1), 1); // it is awake
    park_v();
    CHECK_EQ(volt__worker_load(rt, 1), 0);
    for (uint32_t n = 1; n < 4; n++) {
        place_at(v, still_task(w));
        volt__ring_push(&v->ring, still_task(w));
        CHECK_EQ(volt__worker_load(rt, 1), 2 * n);
    }
    v->lifo = still_task(w);
    CHECK_EQ(volt__worker_load(rt, 1), 7);
    CHECK_EQ(volt__worker_load(rt, 0), 1);
    (void)volt__ring_steal(&v->ring, &w->ring);
    CHECK_EQ(volt__worker_load(rt, 1), 5);
    CHECK_EQ(volt__worker_load(rt, 0), 3);
    v->is_blocked = 1;
    CHECK_EQ(volt__worker_load(rt, 1), UINT32_MAX);
    end();
}
TEST(woken_task_goes_to_waking_worker_or_injector) {
    begin(2);
    w->wake_at = VOLT_RING_CAP * 2;
    volt__task *t[4];
    volt_rt *mine = rt;
    volt_rt *other = still_rt(1);
    for (int i = 0; i < 4; i++) t[i] = still_task(i == 2 ? other->workers[0] : w);
    VOLT_TLS_SET(w);
    volt__schedule(t[0]);
    CHECK(w->lifo == t[0] && w->stats.wakes_local == 1 && rt->injector.len == 0);
    volt__schedule(t[2]);
    CHECK(other->injector.head == t[2] && w->stats.wakes_local == 1 && other->pins == 0);
    volt__chain c = no_chain();
    (void)volt__lifo_take(w);
    volt__chain_push(&c, t[0]);
    volt__schedule_chain(&c); // one alone is next in turn
    CHECK(w->lifo == t[0] && !c.head && ring_len() == 0 && w->stats.wakes_local == 2);
    (void)volt__lifo_take(w);
    (void)volt__injector_pop(&other->injector, 1, 9, &c);
    c = no_chain();
    for (int i = 0; i < 4; i++) volt__chain_push(&c, t[i]);
    volt__schedule_chain(&c); // two here, one there, one here
    CHECK(!c.head && ring_len() == 3 && !w->lifo && w->stats.wakes_local == 5);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1] && volt__pop_ring(w) == t[3]);
    CHECK(other->injector.len == 1 && other->injector.head == t[2] && rt->injector.len == 0);
    VOLT_TLS_SET(NULL); // from outside
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__schedule_chain(&c);
    CHECK(rt->injector.len == 2 && ring_len() == 0 && rt->pins == 0);
    volt__schedule(t[3]);
    CHECK(rt->injector.len == 3 && rt->injector.tail == t[3] && rt->pins == 0);
    CHECK_EQ(w->stats.wakes_local, 5);
    volt__schedule_chain(&c); // nothing
    volt__rt_free(other);
    rt = mine;
    end();
}
TEST(last_unpin_wakes_waiting_teardown) {
    begin(1);
    volt__rt_pin(rt);
    CHECK_EQ(rt->pins, 2);
    volt__rt_pin(rt);
    volt__rt_unpin(rt);
    CHECK_EQ(rt->pins, 2);
    rt->pins |= 1; // the teardown waits
    volt__rt_pin(rt);
    futex.n_wakes = 0;
    volt__rt_unpin(rt);
    CHECK_EQ(futex.n_wakes, 0);
    volt__rt_unpin(rt);
    CHECK(futex.n_wakes == 1 && futex.n == 1 && futex.word == &rt->pins);
    CHECK_EQ(rt->pins, 1);
    rt->pins = 2;
    volt__rt_unpin(rt);
    CHECK_EQ(futex.n_wakes, 1);
    end();
}
TEST(unpark_all_unparks_every_worker) {
    uint64_t n;
    begin(2);
    volt__unpark_all(rt);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(read(rt->workers[i]->reactor.evfd, &n, sizeof n), sizeof n);
        CHECK_EQ(n, 1);
    }
    end();
}

// ---- the pace of polls, at its bounds

TEST(average_poll_time_resists_outliers_and_clock_steps) {
    static const struct {
        int64_t avg, ns, then;
    } rows[] = { { 1000, 7500, 1000 + 6500 * 26 / 256 },
                 { 1000, 8500, 1000 + 7000 * 26 / 256 }, // taken for eight times as long
                 { 1, -9, 1 } };                         // 0 would be divided by
    begin(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w->avg_ns = rows[i].avg;
        w->polls_since = 1;
        w->last_event_poll = clock_now;
        volt__measure(w, clock_now + rows[i].ns);
        CHECK_EQ(w->avg_ns, rows[i].then);
    }
    end();
}
