// SPDX-License-Identifier: MIT OR 0BSD
// A worker from its start to the end of its runtime: polls, maintenance, search, park, watchdog,
// the loop; and the end of a task.
#include "scripted_seam.h"
#include "scripted_fd.h"

// ---- the end of a task

static volt__parker parker;
static void set_parker(void) { parker.is_set = 1; }
TEST(parker_waits_until_it_is_set) {
    futex.rc = 0;
    volt__parker_set(&parker);
    CHECK(parker.is_set == 1 && futex.n_wakes == 1 && futex.word == &parker.is_set);
    CHECK_EQ(futex.n, 1);
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 0);
    parker.is_set = 0;
    futex.rc = -ETIMEDOUT;
    CHECK_EQ(volt__parker_wait(&parker, 5), -ETIMEDOUT);
    CHECK(futex.n_waits == 1 && futex.expect == 0 && futex.deadline == 5);
    CHECK(futex.word == &parker.is_set);
    futex.step = set_parker; // late, and set all the same
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 2);
    parker.is_set = 0;
    futex.rc = -EINTR;
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 3);
}
TEST(join_word_wakes_the_registered_joiner) {
    begin(1);
    volt__task *t = still_task(w), *joiner = still_task(w);
    t->join = NULL;
    CHECK_EQ(volt__join_register(t, joiner), 1);
    CHECK(t->join == joiner && !volt__join_is_done(t));
    CHECK_EQ(volt__join_unregister(t, joiner), 1);
    CHECK(!t->join && !volt__join_unregister(t, joiner));
    volt__join_complete(t, rt); // there is no waiter
    CHECK(volt__join_is_done(t) && t->join == VOLT__JOIN_DONE);
    CHECK_EQ(volt__join_register(t, joiner), 0);
    CHECK(t->join == VOLT__JOIN_DONE);
    t->join = NULL;
    parker.is_set = 0;
    CHECK_EQ(volt__join_register(t, (void *)((uintptr_t)&parker | VOLT__JOIN_PARKER)), 1);
    volt__join_complete(t, rt);
    CHECK(parker.is_set == 1 && futex.n_wakes == 1 && t->join == VOLT__JOIN_DONE);
    t->join = NULL;
    joiner->word = 2 * VOLT__REF; // it sleeps, and has lent a reference
    CHECK_EQ(volt__join_register(t, joiner), 1);
    volt__join_complete(t, rt);
    CHECK_EQ(joiner->word, VOLT__REF | VOLT__NOTIFIED);
    CHECK(rt->injector.head == joiner && rt->injector.len == 1 && rt->pins == 0);
    t->join = NULL;
    joiner->word = 2 * VOLT__REF | VOLT__NOTIFIED; // another thread has woken it
    CHECK_EQ(volt__join_register(t, joiner), 1);
    volt__join_complete(t, rt);
    CHECK(joiner->word == (VOLT__REF | VOLT__NOTIFIED) && rt->injector.len == 1);
    end();
}
static volt__task *freed_by(volt__worker *worker, volt__task *t) {
    volt__task_free_here(worker, t);
    return t;
}
TEST(remote_frees_go_back_in_batches) {
    begin(3);
    volt__worker *u = rt->workers[2];
    volt__task *a = freed_by(w, still_task(v)), *b = freed_by(w, still_task(v));
    CHECK(!v->heap.remote && w->remote_batch.n == 2);
    volt__task *c = freed_by(w, still_task(u)); // of another heap: those of the first go
    CHECK(v->heap.remote == b && b->next == a && !a->next);
    CHECK(!u->heap.remote && w->remote_batch.n == 1);
    for (uint32_t i = 2; i < VOLT_REMOTE_BATCH; i++) freed_by(w, still_task(u));
    CHECK(!u->heap.remote && w->remote_batch.n == VOLT_REMOTE_BATCH - 1);
    freed_by(w, still_task(u)); // as many as there may be
    CHECK_EQ(w->remote_batch.n, 0);
    uint32_t n = 1;
    for (volt__task *t = u->heap.remote; t != c; t = t->next) n++;
    CHECK(n == VOLT_REMOTE_BATCH && !c->next);
    volt__task *large = volt__heap_alloc(&v->heap, VOLT_SLAB_SIZE, 0); // alone in its slab
    freed_by(w, large);
    CHECK(v->heap.remote == large); // at once
    freed_by(w, still_task(v));
    volt__housekeep(w);
    CHECK(w->remote_batch.n == 0 && v->heap.remote != large);
    end();
}
TEST(freed_slot_returns_to_heap_of_its_slab) {
    begin(2);
    volt__task *mine = still_task(w), *other = still_task(v), *dropped = still_task(v);
    volt__task_free_here(w, mine);
    CHECK(volt__slab_of(mine)->free == mine && !w->heap.remote);
    volt__task_free_here(w, other);
    CHECK(!v->heap.remote && w->remote_batch.n == 1); // later, with others
    volt__remote_batch_flush(&w->remote_batch);
    CHECK(v->heap.remote == other && !other->next && !w->heap.remote && w->remote_batch.n == 0);
    volt__remote_batch_flush(&w->remote_batch);
    CHECK(v->heap.remote == other);
    mine = still_task(w);
    volt__task_free_here(NULL, mine);
    CHECK(w->heap.remote == mine);
    VOLT_TLS_SET(v);
    dropped->word = 2 * VOLT__REF;
    volt__task_drop(dropped);
    CHECK(dropped->word == VOLT__REF && volt__slab_of(dropped)->free != dropped);
    volt__task_drop(dropped);
    CHECK(dropped->word < VOLT__REF && volt__slab_of(dropped)->free == dropped);
    VOLT_TLS_SET(NULL);
    volt__heap_drain(&v->heap);
    dropped = still_task(v);
    dropped->word = VOLT__REF;
    volt__task_drop(dropped);
    CHECK(v->heap.remote == dropped && rt->pins == 0);
    end();
}

// ---- the end of a runtime

static void check_poked(int was_unparked) {
    for (uint32_t i = 0; i < rt->started; i++) {
        uint64_t n = 0;
        (void)!read(rt->workers[i]->reactor.evfd, &n, sizeof n);
        CHECK_EQ(n != 0, was_unparked);
    }
}
TEST(last_shutdown_ack_wakes_every_task) {
    begin(2);
    volt__task *t[4];
    for (int i = 0; i < 4; i++) t[i] = still_task(i % 2 ? v : w);
    t[0]->word = VOLT__REF;                  // asleep
    t[1]->word = VOLT__REF | VOLT__RUNNING;  // will see it
    t[2]->word = 2 * VOLT__REF | VOLT__NOTIFIED;
    t[3]->word = VOLT__COMPLETE;             // free
    volt__shutdown_ack(rt, 2);
    CHECK_EQ(rt->acks, 2);
    volt__shutdown_ack(rt, UINT32_MAX);
    CHECK(rt->acks == 1 && rt->injector.len == 0);
    check_poked(0);
    volt__shutdown_ack(rt, UINT32_MAX);
    CHECK(rt->acks == 0 && rt->injector.len == 1 && rt->injector.head == t[0]);
    check_poked(1);
    CHECK_EQ(t[0]->word, VOLT__REF | VOLT__NOTIFIED);
    CHECK_EQ(t[1]->word, VOLT__REF | VOLT__NOTIFIED | VOLT__RUNNING);
    CHECK_EQ(t[2]->word, 2 * VOLT__REF | VOLT__NOTIFIED);
    CHECK_EQ(t[3]->word, VOLT__COMPLETE);
    CHECK_EQ(rt->slabs.lock, 0);
    end();
}
TEST(shutdown_begins_once) {
    for (uint32_t is_starting = 0; is_starting < 2; is_starting++) {
        begin(2);
        rt->is_starting = is_starting;
        for (int i = 0; i < 2; i++) {
            volt__shutdown_begin(rt);
            CHECK(rt->injector.closed == 1 && rt->is_closed == 1 && rt->starts_closed == 1);
            CHECK(rt->acks == 2 + is_starting && rt->injector.lock == 0 && rt->start_lock == 0);
            check_poked(!i);
        }
        rt->is_starting = 0;
        end();
    }
}
TEST(worker_acknowledges_shutdown_once) {
    for (int i = 0; i < 4; i++) {
        begin(2);
        rt->acks = 2;
        rt->cfg.drain_timeout = i & 1 ? 700 : 0;
        w->has_thread = i & 2 ? 1 : 0;
        volt__check_shutdown(w);
        CHECK(!w->is_closing && rt->acks == 2);
        rt->is_closed = 1;
        for (int k = 0; k < 2; k++) {
            volt__check_shutdown(w);
            CHECK(w->is_closing == 1 && rt->acks == 1);
            CHECK(w->drain_deadline == (i == 1 ? clock_now + 700 : VOLT_NEVER));
        }
        end();
    }
    begin(1);
    rt->acks = rt->is_closed = 1;
    rt->cfg.drain_timeout = 1;
    w->has_thread = 0;
    volt__check_shutdown(w);
    CHECK_EQ(w->drain_deadline, clock_now + 1);
    end();
}
TEST(runtime_stops_when_no_task_is_alive) {
    begin(2);
    rt->injector.spawned = 9;
    rt->n_destroyed_outside = 2;
    w->spawned = 4;
    w->completed = 5;
    v->spawned = 1;
    v->completed = 6;
    CHECK_EQ(volt__count_alive(rt), 1);
    rt->acks = 1;
    futex.n_wakes = 0;
    for (int i = 0; i < 3; i++) { // one alive, one to acknowledge, neither
        volt__stop_if_done(rt);
        CHECK(!volt__is_stopped(rt) && futex.n_wakes == 0);
        if (i == 0) v->completed = 7;
        if (i == 1) v->completed = 6, rt->acks = 0;
    }
    check_poked(0);
    v->completed = 7;
    volt__stop_if_done(rt);
    CHECK(volt__is_stopped(rt) && rt->is_stopped == 1 && futex.n_wakes == 1);
    CHECK(futex.word == &rt->is_stopped && futex.n == INT_MAX);
    check_poked(1);
    volt__stop_if_done(rt);
    CHECK_EQ(futex.n_wakes, 1);
    check_poked(0);
    end();
}

// ---- polls

static volt_poll next_poll;
static void *polled_state;
static volt__worker *polled_by;
static uint8_t polled_abort, polled_shield;
static volt_poll answering_run(volt_cx *cx, void *state) {
    polled_state = state;
    polled_by = VOLT_TLS_GET();
    polled_abort = cx->cancel_level_;
    polled_shield = cx->shield_depth_;
    CHECK(!cx->frame_ && cx->wait_ == 0 && cx->budget_ == rt->cfg.budget);
    return next_poll;
}
static volt__task *answering_task(uint8_t flags) {
    volt__task *t = still_task(w);
    t->u.fn = answering_run;
    t->flags = flags;
    w->needs_watchdog = 0;
    return t;
}
TEST(poll_gets_fresh_context_and_settles_its_task) {
    static volt__task *t; // static: it keeps its value over the longjmp
    begin(2);
    t = answering_task(0);
    next_poll = volt_pending();
    w->cx.frame_ = (volt__node *)(void *)t; // of the poll before
    w->cx.wait_ = 99;
    w->cx.cancel_level_ = w->cx.shield_depth_ = 3;
    w->ms = 1234;
    volt__poll_task(w, t); // waits for nothing, which is told
    CHECK(polled_state == volt__task_state(t) && polled_abort == 0 && polled_shield == 0);
    CHECK_EQ(test_log.n[VOLT_LOG_NEVER_WAKES], VOLT_DEBUG);
    CHECK(t->word == VOLT__REF && t->wait == 0 && t->wait_ms == 1234 && ring_len() == 0);
    CHECK(t->wait_site == t->spawn_site);
    t->word |= VOLT__NOTIFIED;
    next_poll = volt_ready(5);
    volt__poll_task(w, t);
    CHECK(w->completed == 1 && t->word == VOLT__COMPLETE && volt__slab_of(t)->free == t);
    CHECK_EQ(rt->is_closed, 0);

    t = answering_task(VOLT__GAVE_WAKER);
    t->shield_depth = 2;
    t->join = NULL;
    rt->root_result = 42;
    t->word |= VOLT__CANCELLED;
    next_poll = volt_pending();
    volt__poll_task(w, t);
    CHECK(polled_abort == 1 && polled_shield == 2 && t->word == (VOLT__REF | VOLT__CANCELLED));
    // a waker is about
    CHECK(t->shield_depth == 2 && test_log.n[VOLT_LOG_NEVER_WAKES] == VOLT_DEBUG);
    t->word |= VOLT__NOTIFIED;
    t->shield_depth = 0;
    t->n_armed = 1;
    next_poll = volt_ready(5);
    is_panic_expected = 1;
    if (!setjmp(panic_exit)) volt__poll_task(w, t);
    CHECK(is_panic_expected == 2); // it did not come back
    is_panic_expected = 0;
    CHECK(strstr(panic_text, "still pending"));
    t->n_armed = 0;
    t->u.fn = answering_run;
    t->word = VOLT__REF | VOLT__NOTIFIED;

    w->is_closing = w->is_careful = 1;
    volt__poll_task(w, t);
    CHECK(polled_abort == 1 && (t->flags & VOLT__IS_SHARED) && w->completed == 2);
    CHECK(rt->root_result == 42 && !t->join && !rt->is_closed); // not the root, and never joined
    w->is_closing = w->is_careful = 0;

    t = answering_task(VOLT__HAS_HANDLE | VOLT__IS_ROOT);
    t->join = NULL;
    t->word = 2 * VOLT__REF | VOLT__NOTIFIED;
    next_poll = volt_ready(-7);
    volt__poll_task(w, t);
    CHECK(t->u.result == -7 && rt->root_result == -7 && volt__join_is_done(t));
    CHECK(t->word == (VOLT__REF | VOLT__COMPLETE) && w->completed == 3);
    CHECK(rt->is_closed == 1 && volt__slab_of(t)->free != t);
    volt__task *external = answering_task(VOLT__EXTERNAL);
    static still_state outside;
    *(void **)volt__task_state(external) = &outside;
    volt__poll_task(w, external);
    CHECK(polled_state == &outside && w->completed == 4);
    end();
}
TEST(yielded_or_woken_task_is_queued_in_ring) {
    begin(2);
    volt__task *t = answering_task(0);
    for (uint8_t shield = 0; shield < 2; shield++) {
        t->word = VOLT__REF | VOLT__RUNNING;
        w->cx.frame_ = NULL;
        w->cx.wait_ = VOLT__REQUEUE;
        w->cx.shield_depth_ = shield;
        volt__poll_pending(w, t);
        CHECK(t->word == (VOLT__REF | VOLT__NOTIFIED) && t->shield_depth == shield);
        CHECK(volt__pop_ring(w) == t);
    }
    volt__node frame;
    w->cx.frame_ = &frame;
    w->cx.site_ = "here";
    w->cx.wait_ = 77;
    w->cx.shield_depth_ = 4;
    t->word = VOLT__REF | VOLT__RUNNING | VOLT__NOTIFIED; // was woken meanwhile
    volt__poll_pending(w, t);
    CHECK(t->wait_site && strcmp(t->wait_site, "here") == 0 && t->wait == 77 &&
          t->shield_depth == 4);
    CHECK(volt__pop_ring(w) == t && t->word == (VOLT__REF | VOLT__NOTIFIED));
    CHECK_EQ(test_log.n[VOLT_LOG_NEVER_WAKES], 0);
    w->cx.wait_ = 0; // for nothing, but it has been woken: or it has an armed node
    t->word = VOLT__REF | VOLT__RUNNING | VOLT__NOTIFIED;
    volt__poll_pending(w, t);
    (void)volt__pop_ring(w);
    t->word = VOLT__REF | VOLT__RUNNING;
    t->n_armed = 1;
    volt__poll_pending(w, t);
    CHECK(ring_len() == 0 && test_log.n[VOLT_LOG_NEVER_WAKES] == 0);
    t->n_armed = 0;
    end();
}
TEST(child_that_ends_leaves_its_group) {
    begin(1);
    for (int collects = 0; collects < 2; collects++)
        for (int order = 0; order < 6; order++) { // of three
            static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                              { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
            volt_group g;
            volt__task *t[3], *waits = still_task(w);
            memset(&g, 0, sizeof g);
            memset(node, 0, sizeof node);
            waits->word = VOLT__REF;
            g.n_live_ = 3;
            g.collects_ = (uint32_t)collects;
            for (int i = 0; i < 3; i++) {
                t[i] = volt__task_alloc(rt, w, sizeof(still_state), sizeof(volt__group_link));
                memset(volt__task_group_link(t[i]), 0, sizeof(volt__group_link));
            }
            g.live_ = t[0];
            for (int i = 0; i < 3; i++) {
                volt__group_link *x = volt__task_group_link(t[i]);
                x->group = &g;
                x->g_next = i < 2 ? t[i + 1] : NULL;
                x->g_prev = i > 0 ? t[i - 1] : NULL;
            }
            volt__node_bind(node, waits, &g);
            volt__list_push(&g.waiters_, node);
            for (int k = 0; k < 3; k++) {
                int at = orders[order][k];
                volt__group_child_ended(t[at], k == 0 ? 5 : -k);
                CHECK(g.n_live_ == (uint32_t)(2 - k) && g.lock_ == 0);
                CHECK_EQ(g.error_, k == 0 ? 0 : -1); // the first one
                int is_told = collects || k == 2, n = 0;
                CHECK_EQ(volt__node_state(node), is_told ? VOLT__FIRED : VOLT__LINKED);
                CHECK_EQ(rt->injector.len, is_told);
                const volt__task *before = NULL;
                for (volt__task *m = g.live_; m; before = m, m = volt__task_group_link(m)->g_next,
                     n++)
                    CHECK(volt__task_group_link(m)->g_prev == before && m != t[at]);
                CHECK_EQ(n, 2 - k);
                if (!collects) continue;
                CHECK(g.done_ == t[orders[order][0]] && g.done_last_ == t[at]);
                CHECK(!volt__task_group_link(t[at])->g_next);
                if (k) CHECK(volt__task_group_link(t[orders[order][k - 1]])->g_next == t[at]);
            }
            if (!collects) CHECK(!g.done_ && !g.done_last_);
            volt__chain c = no_chain();
            (void)volt__injector_pop(&rt->injector, 1, 9, &c);
            CHECK(c.head == waits && c.len == 1);
            volt__node_unbind(node, waits);
        }
    end();
}

// ---- maintenance

TEST(countdown_accounts_for_every_poll) {
    begin(1);
    static const struct {
        uint32_t inject, event, n, inject_then, event_then, due;
    } rows[] = { { 10, 20, 3, 7, 17, 7 }, { 10, 4, 4, 6, 0, 1 }, { 3, 20, 3, 0, 17, 1 },
                 { 2, 9, 5, 0, 4, 1 },    { 9, 2, 5, 4, 0, 1 },  { 1, 1, 0, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t before = w->stats.polls;
        w->inject_due = rows[i].inject;
        w->event_due = rows[i].event;
        w->countdown_from = 50;
        w->countdown = 50 - rows[i].n;
        w->polls_since = 7;
        volt__countdown_settle(w);
        CHECK(w->countdown_from == w->countdown && w->polls_since == 7 + rows[i].n);
        CHECK_EQ(w->stats.polls - before, rows[i].n);
        CHECK(w->inject_due == rows[i].inject_then && w->event_due == rows[i].event_then);
        volt__countdown_settle(w); // nothing since
        CHECK_EQ(w->stats.polls - before, rows[i].n);
        volt__countdown_start(w);
        CHECK(w->countdown == rows[i].due && w->countdown_from == rows[i].due);
    }
    w->spawned = 8;
    w->completed = 6;
    w->stats.spawned = 5;
    w->stats.completed = 4;
    w->stats.searches = 42;
    w->countdown_from = 9;
    w->countdown = 2;
    w->stats.polls = 100;
    volt__publish_stats(w);
    CHECK(w->published.spawned == 8 && w->published.completed == 6 && w->stats_lock == 0);
    CHECK(w->published.searches == 42 && w->published.polls == 107);
    end();
}
// Its own heap a worker trims once a second; the outside heaps are trimmed by the first that comes.
TEST(housekeeping_trims_heaps_once_a_second) {
    for (uint32_t n = 1; n <= 3; n++)
        for (uint32_t i = 0; i < n; i++)
            for (int k = 0; k < 4; k++) {
                int is_late = k & 1, is_first = k >> 1;
                begin(n);
                rt->outside_trimmed = is_first ? 70 : 71;
                volt__worker *x = rt->workers[i];
                uint32_t cls = volt__class_of(200);
                for (int h = 0; h < VOLT__OUTSIDE_HEAPS; h++)
                    rt->outside_heaps[h].cls[cls].n_used_max = 1;
                volt__task *t = still_task(x);
                volt__heap_free_remote(t);
                x->heap.cls[cls].n_used_max = 9;
                x->trim_ms = 1070;
                x->ms = is_late ? 1070 : 1069;
                x->housekeep_due = 5;
                x->stats.watchdog_scans = 4;
                volt__housekeep(x);
                CHECK(x->housekeep_due == 16 && !x->heap.remote &&
                      x->published.watchdog_scans == 4);
                CHECK_EQ(x->trim_ms, is_late ? 2070 : 1070);
                CHECK_EQ(x->heap.cls[cls].n_used_max == 9, !is_late);
                for (uint32_t h = 0; h < VOLT__OUTSIDE_HEAPS; h++)
                    CHECK_EQ(rt->outside_heaps[h].cls[cls].n_used_max, !is_late || !is_first);
                CHECK_EQ(rt->outside_trimmed, is_late && is_first ? 1070 : is_first ? 70 : 71);
                end();
            }
}
// A worker that comes from a long poll has an older time than the one that has just trimmed.
TEST(heaps_that_were_just_trimmed_are_not_trimmed_by_a_late_worker) {
    begin(1);
    uint32_t cls = volt__class_of(200);
    rt->outside_heaps[0].cls[cls].n_used_max = 1;
    rt->outside_trimmed = 2000;
    volt__heap_trim_outside(rt, 1999);
    CHECK(rt->outside_heaps[0].cls[cls].n_used_max == 1 && rt->outside_trimmed == 2000);
    volt__heap_trim_outside(rt, 3000);
    CHECK(rt->outside_heaps[0].cls[cls].n_used_max == 0 && rt->outside_trimmed == 3000);
    // after 30 days the difference seems to be negative
    rt->outside_heaps[0].cls[cls].n_used_max = 1;
    volt__heap_trim_outside(rt, 3000 + 30u * 86400 * 1000);
    CHECK_EQ(rt->outside_heaps[0].cls[cls].n_used_max, 0);
    end();
}
static void claim_w(void) { CHECK_EQ(volt__idle_claim(&rt->idle, VOLT__ANY_WORKER), 0); }
TEST(event_poll_handles_events_timers_and_unparks) {
    begin_fd();
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    w->avg_ns = 1000;
    w->polls_since = w->countdown_from = w->countdown = 0;
    w->event_every = 30;
    w->inject_due = 20;
    w->last_event_poll = clock_now;
    w->countdown_from = 12;
    w->countdown = 2;
    clock_now = rt->epoch + 9 * (int64_t)VOLT_TICK_NS + 5;
    w->last_event_poll = clock_now - 20000; // for 10 polls
    volt__timer_arm(&w->wheel, &node[0], task, 4);
    volt__timer_arm(&w->wheel, &node[1], task, 10);
    e->mode = VOLT__MODE_EDGE;
    polls.n = 1;
    polls.ev[0].data.u64 = (uint64_t)5 << 32 | (uint32_t)fd[0];
    polls.ev[0].events = EPOLLIN;
    uint32_t room = volt__ring_room(&w->ring);
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK_EQ(polls.max, room < VOLT_EVENTS ? room : VOLT_EVENTS);
    CHECK(polls.timeout == 0 && polls.ep == w->reactor.epfd);
    CHECK(w->stats.polls == 10 && w->polls_since == 0 && w->last_event_poll == clock_now &&
          w->avg_ns == 1652);
    CHECK(w->ms == 9 * (uint64_t)VOLT_TICK_NS / 1000000 && w->wheel.elapsed == 9);
    CHECK(w->stats.timers_fired == 1);
    CHECK(w->stats.events == 1 && w->stats.event_polls == 1 && w->event_polls == 1);
    CHECK(w->stats.unparks == 0 && !w->is_searching && !w->is_closing);
    CHECK_EQ(w->event_due, w->event_every);
    CHECK_EQ(w->countdown, w->event_due < 10 ? w->event_due : 10); // 20 - 10 to the injector
    CHECK(volt__pop_ring(w) == task && volt__node_state(&node[1]) == VOLT__LINKED);
    volt__timer_disarm(&node[0], task);
    volt__timer_disarm(&node[1], task);
    // poked; the watchdog, that is not armed, and that is
    polls.n = 2;
    polls.ev[0].data.u64 = VOLT__EPOLL_EVENTFD;
    polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
    volt__reactor_unpark(&w->reactor);
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK(w->stats.unparks == 1 && w->event_polls == 2);
    uint64_t n;
    CHECK(read(w->reactor.evfd, &n, sizeof n) < 0);
    rt->watchdog.is_armed = 1;
    CHECK_EQ(volt__drive_events(w, 0, 0), 1);
    CHECK_EQ(rt->watchdog.is_armed, 0);
    rt->watchdog.is_armed = 1;
    polls.ev[1].data.u64 = VOLT__EPOLL_EVENTFD;
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK_EQ(rt->watchdog.is_armed, 1);
    int watch_fd = rt->watchdog.fd;
    polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
    rt->watchdog.fd = -1;
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    rt->watchdog.fd = 0;
    CHECK_EQ(volt__drive_events(w, 0, 0), 1);
    rt->watchdog.fd = watch_fd;
    // asleep: not claimed, then claimed; the time asleep is not counted as polls
    polls.n = 0;
    for (int is_claimed = 0; is_claimed < 2; is_claimed++) {
        (void)volt__idle_park(&rt->idle, 0, 0);
        polls.step = is_claimed ? claim_w : NULL;
        w->countdown_from = w->countdown + 1;
        w->avg_ns = 1000;
        w->last_event_poll = clock_now - 1000000;
        CHECK_EQ(volt__drive_events(w, 1, 4321), 0);
        CHECK(polls.timeout == 4321 && w->is_searching == is_claimed && w->avg_ns == 1000);
        CHECK(!volt__idle_is_parked(&rt->idle, 0) && w->last_event_poll == clock_now);
    }
    polls.step = NULL;
    rt->acks = 2;
    rt->is_closed = 1;
    (void)volt__drive_events(w, 0, 0);
    CHECK(w->is_closing && rt->acks == 1);
    end_fd();
}

// ---- the watchdog over stuck workers

TEST(watchdog_is_armed_only_with_several_workers) {
    begin(2);
    int watch_fd = rt->watchdog.fd;
    memset(&settime, 0, sizeof settime);
    rt->watchdog.fd = -1;
    volt__watchdog_arm(w);
    rt->watchdog.fd = watch_fd;
    rt->started = 1;
    volt__watchdog_arm(w);
    CHECK(settime.n_calls == 0 && rt->watchdog.is_armed == 0);
    rt->started = 2;
    for (int i = 0; i < 2; i++) {
        volt__watchdog_arm(w);
        CHECK(settime.n_calls == 1 && rt->watchdog.is_armed == 1);
    }
    end();
}
// The time of an event poll is read before another worker may arm the watchdog.
TEST(watchdog_that_was_armed_a_moment_later_is_not_over) {
    begin(2);
    int64_t now = (int64_t)1 << 50; // the low bits of what is stored wrap at 0
    rt->watchdog.armed_at = (uint32_t)(now >> 12) + 1;
    CHECK(!volt__watchdog_is_over(rt, now));
    CHECK(!volt__watchdog_is_over(rt, now + 4096));
    CHECK(!volt__watchdog_is_over(rt, now + rt->watchdog.period - 4096));
    CHECK(volt__watchdog_is_over(rt, now + rt->watchdog.period + 8192));
    end();
}
TEST(rescue_takes_events_timers_lifo_slot_and_half_ring) {
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        begin_fd();
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        volt__task *lifo = still_task(v), *timed = still_task(v), *ringed[3];
        timed->word = VOLT__REF;
        v->lifo = lifo;
        for (int i = 0; i < 3; i++) volt__ring_push(&v->ring, ringed[i] = still_task(v));
        clock_now = rt->epoch + 3 * (int64_t)VOLT_TICK_NS;
        volt__timer_arm(&v->wheel, &node[1], timed, 3);
        e->mode = VOLT__MODE_EDGE;
        volt__node_bind(&node[0], task, e);
        volt__list_push(&e->rd, &node[0]);
        polls.n = 1 + is_watch;
        polls.ev[0].data.u64 = (uint64_t)5 << 32 | (uint32_t)fd[0];
        polls.ev[0].events = EPOLLIN;
        polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = 1;
        w->is_searching = 1;
        w->wake_at = VOLT_RING_CAP * 2;
        rt->idle.searching = 1;
        volt__rescue(w, v);
        CHECK(polls.timeout == 0 && polls.ep == v->reactor.epfd);
        CHECK_EQ(polls.max, VOLT_RING_CAP < VOLT_EVENTS ? VOLT_RING_CAP : VOLT_EVENTS);
        CHECK_EQ(rt->watchdog.is_armed, !is_watch);
        CHECK(volt__pop_ring(w) == task && volt__pop_ring(w) == timed);
        CHECK(volt__pop_ring(w) == lifo && !v->lifo);
        uint32_t n = VOLT_RING_CAP > 4 ? 2 : 1; // half, rounded up, but no more than fit there
        for (uint32_t i = 0; i < n; i++) CHECK(volt__pop_ring(w) == ringed[i]);
        CHECK(!volt__pop_ring(w) && volt__ring_len(&v->ring) == 3 - n);
        CHECK_EQ(w->stats.rescued, 3 + n);
        end_fd();
    }
}
TEST(rescue_takes_inbox) {
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    volt__task *t[2];
    for (int i = 0; i < 2; i++) place_at(v, t[i] = still_task(v));
    w->is_searching = 1;
    rt->idle.searching = 1;
    volt__rescue(w, v);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1] && v->inbox.len == 0);
    CHECK_EQ(w->stats.rescued, 2);
    end();
}
TEST(watchdog_scan_rescues_awake_worker_without_event_poll) {
    for (int i = 0; i < 16; i++) {
        begin(3);
        volt__worker *third = rt->workers[2];
        int is_stuck = i & 1, is_parked = (i >> 1) & 1, was_counted = (i >> 2) & 1;
        int is_third_stuck = (i >> 3) & 1;
        v->event_polls = 5;
        v->event_polls_seen = is_stuck ? 5 : 4;
        third->event_polls = 7;
        third->event_polls_seen = is_third_stuck ? 7 : 8;
        w->event_polls = w->event_polls_seen = 3;
        v->lifo = still_task(v);
        if (is_parked) park_v();
        w->is_searching = (uint8_t)was_counted;
        rt->idle.searching = (uint32_t)was_counted;
        w->needs_watchdog = 0;
        volt__watchdog_scan(w);
        int is_rescued = is_stuck && !is_parked;
        CHECK(w->stats.watchdog_scans == 1 && w->needs_watchdog == 1);
        CHECK_EQ(v->lifo == NULL, is_rescued);
        CHECK_EQ(v->event_polls_seen, is_parked && !is_stuck ? 4 : 5);
        CHECK(third->event_polls_seen == 7 && w->event_polls_seen == 3);
        CHECK_EQ(w->is_searching, was_counted || is_rescued || is_third_stuck);
        CHECK_EQ(rt->idle.searching, w->is_searching);
        CHECK_EQ(w->stats.rescued, is_rescued);
        end();
    }
}

TEST(watchdog_scan_covers_first_worker) {
    begin(2);
    w->lifo = still_task(w);
    w->event_polls = w->event_polls_seen = 4;
    volt__watchdog_scan(v);
    CHECK(!w->lifo && v->stats.rescued == 1);
    end();
}

// ---- search, park, wake up

TEST(awake_workers_and_stealable_work_are_seen) {
    begin(3);
    CHECK(volt__others_awake(w) && volt__others_awake(rt->workers[2]));
    (void)volt__idle_park(&rt->idle, 1, 0);
    CHECK(volt__others_awake(w) && volt__others_awake(v));
    (void)volt__idle_park(&rt->idle, 2, 0);
    CHECK(!volt__others_awake(w) && volt__others_awake(v));
    CHECK(!volt__has_stealable_work(rt));
    for (uint32_t i = 0; i < 3; i++) {
        volt__ring_push(&rt->workers[i]->ring, still_task(w));
        CHECK_EQ(volt__has_stealable_work(rt), 1);
        (void)volt__ring_pop(&rt->workers[i]->ring);
        CHECK_EQ(volt__has_stealable_work(rt), 0);
    }
    volt__chain c = no_chain();
    volt__chain_push(&c, still_task(w));
    volt__injector_push(&rt->injector, &c);
    CHECK_EQ(volt__has_stealable_work(rt), 1);
    end();
}
TEST(last_worker_to_end_search_checks_for_work_again) {
    for (int i = 0; i < 4; i++) {
        begin(2);
        int is_last = i & 1, is_more = i >> 1;
        park_v();
        rt->idle.searching = is_last ? 1 : 2;
        w->is_searching = 1;
        if (is_more) volt__ring_push(&w->ring, still_task(w));
        volt__end_search(w);
        CHECK_EQ(w->is_searching, 0);
        CHECK_EQ(volt__idle_is_parked(&rt->idle, 1), !(is_last && is_more));
        CHECK_EQ(rt->idle.searching, is_last ? is_more : 1);
        end();
    }
}
TEST(search_takes_from_injector_or_other_rings) {
    begin(2);
    park_v();
    CHECK(!volt__search(w) && !w->is_searching && w->stats.searches == 0); // no worker has any work
    CHECK_EQ(rt->idle.searching, 0);
    volt__chain c = no_chain();
    volt__task *t = still_task(w);
    volt__chain_push(&c, t);
    volt__injector_push(&rt->injector, &c);
    rt->idle.searching = 1; // enough are at it
    CHECK(!volt__search(w) && !w->is_searching && w->stats.searches == 0);
    rt->idle.searching = 0;
    CHECK(volt__search(w) == t && w->is_searching == 1 && w->stats.searches == 1);
    CHECK(rt->idle.searching == 1 && w->stats.steals == 0 && w->stats.wakes_remote == 1);
    CHECK(!volt__search(w) && w->stats.searches == 2 && rt->idle.searching == 1);
    (void)volt__idle_unpark(&rt->idle, 1);
    for (int k = 0; k < 20; k++) { // wherever it begins
        for (int i = 0; i < 3; i++) volt__ring_push(&v->ring, still_task(v));
        volt__task *first = v->ring.slot[volt__head_index(v->ring.head) & (VOLT_RING_CAP - 1)];
        CHECK(volt__search(w) == first);
        CHECK(w->stats.steals == (uint64_t)k + 1 && w->stats.stolen == 2 * ((uint64_t)k + 1));
        CHECK(volt__ring_len(&v->ring) == 1 && ring_len() == 1);
        empty(w);
        empty(v);
    }
    w->is_searching = 0;
    rt->idle.searching = 0;
    CHECK(!volt__search(w) && w->is_searching == 1); // one is awake, which may have had something
    end();
}
TEST(watchdog_expiry_ends_sleep_with_a_scan) {
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        polls.n = is_watch;
        polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = 1;
        v->event_polls = v->event_polls_seen + 1;
        w->drain_deadline = clock_now + 99;
        w->needs_watchdog = w->has_slept = 0;
        (void)volt__idle_park(&rt->idle, 0, 0);
        volt__worker_sleep(w);
        CHECK(polls.timeout == 99 && w->stats.parks == 1 && w->has_slept == 1);
        CHECK(w->needs_watchdog == 1 && w->stats.watchdog_scans == (uint64_t)is_watch);
        end();
    }
}
static int n_slept;
static void count_sleep(void) { n_slept++; }
TEST(worker_parks_unless_stopped_or_work_is_left) {
    for (int i = 0; i < 64; i++) {
        int is_stopped = i & 1, is_more = i >> 1 & 1, was_counted = i >> 2 & 1;
        int others_search = i >> 3 & 1, is_v_parked = i >> 4 & 1, needs_watch = i >> 5 & 1;
        begin(2);
        memset(&polls, 0, sizeof polls);
        memset(&settime, 0, sizeof settime);
        polls.is_played = 1;
        polls.step = count_sleep;
        n_slept = 0;
        if (is_v_parked) park_v();
        rt->is_stopped = (uint32_t)is_stopped;
        w->is_searching = (uint8_t)was_counted;
        w->needs_watchdog = (uint8_t)needs_watch;
        w->wants_spare = 0;
        w->housekeep_due = 3;
        rt->idle.searching = (uint32_t)(was_counted + others_search);
        if (is_more) volt__ring_push(&v->ring, still_task(v));
        volt__park(w);
        int stays = is_stopped || (!others_search && is_more);
        CHECK_EQ(n_slept, !stays);
        CHECK_EQ(w->is_searching, stays);
        CHECK_EQ(rt->idle.searching, (uint32_t)(others_search + stays));
        CHECK(!volt__idle_is_parked(&rt->idle, 0) && w->housekeep_due == 16);
        CHECK_EQ(settime.n_calls, !stays && needs_watch && !is_v_parked);
        CHECK(w->needs_watchdog == 1 && w->wants_spare == 1); // it was seen parked
        end();
    }
    polls.step = NULL;
}
TEST(closing_worker_stops_empty_runtime_as_it_parks) {
    for (int is_closing = 0; is_closing < 2; is_closing++) {
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        w->is_closing = (uint32_t)is_closing;
        volt__park(w);
        CHECK_EQ(volt__is_stopped(rt), is_closing);
        CHECK_EQ(w->is_searching, is_closing);
        end();
    }
}
TEST(found_task_ends_search_and_arms_watchdog) {
    for (int i = 0; i < 64; i++) {
        int is_searching = i & 1, needs_watch = i >> 1 & 1, wants_spare = i >> 2 & 1;
        int is_v_parked = i >> 3 & 1, are_more = i >> 4 & 1, is_late = i >> 5 & 1;
        begin(2);
        memset(&settime, 0, sizeof settime);
        memset(&created, 0, sizeof created);
        rt->n_workers = are_more ? 3 : 2;
        if (are_more) rt->started = 1, is_v_parked = 0;
        if (is_v_parked) park_v();
        created.fail_at = 1;
        created.error = EAGAIN;
        w->is_searching = (uint8_t)is_searching;
        rt->idle.searching = 2;
        w->needs_watchdog = (uint8_t)needs_watch;
        w->wants_spare = (uint8_t)wants_spare;
        w->has_slept = 1;
        w->last_event_poll = 1000;
        w->start_retry = is_late ? 1000 : 1001;
        VOLT_TLS_SET(w);
        volt__worker *second = rt->workers[1];
        if (are_more) rt->workers[1] = NULL;
        volt__searching_done(w);
        CHECK_EQ(rt->idle.searching, 2 - is_searching);
        CHECK(!w->is_searching && !w->needs_watchdog);
        CHECK_EQ(settime.n_calls, needs_watch && rt->started == 2);
        CHECK_EQ(w->has_slept, !needs_watch);
        CHECK_EQ(w->wants_spare, wants_spare && (!needs_watch || are_more)); // each start fails
        CHECK_EQ(created.n_creates, needs_watch && wants_spare && are_more && is_late);
        int has_failed = created.n_creates;
        CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], has_failed);
        CHECK_EQ(w->start_retry, has_failed ? 1000 + 1000000000 : is_late ? 1000 : 1001);
        test_log.n[VOLT_LOG_THREAD_START] = 0;
        CHECK(!are_more || !rt->workers[1]);
        rt->workers[1] = second;
        rt->started = 2;
        rt->n_workers = 2;
        end();
    }
}
TEST(worker_is_not_started_while_another_is_parked) {
    begin(3);
    memset(&created, 0, sizeof created);
    rt->started = 2;
    w->needs_watchdog = w->wants_spare = 1;
    w->is_searching = 0;
    park_v();
    VOLT_TLS_SET(w);
    volt__searching_done(w);
    CHECK(created.n_creates == 0 && !w->wants_spare);
    rt->started = 3;
    end();
}
// A guest that is parked is no spare: its thread comes when the application lets it.
TEST(worker_is_started_beside_a_parked_guest) {
    for (int is_guest = 0; is_guest < 2; is_guest++) {
        begin(3);
        memset(&created, 0, sizeof created);
        created.fail_at = 1;
        created.error = EAGAIN;
        rt->started = 2;
        volt__worker *third = rt->workers[2];
        rt->workers[2] = NULL;
        if (is_guest) rt->idle.guest = volt__idle_bit(0);
        (void)volt__idle_park(&rt->idle, 0, 0);
        v->needs_watchdog = v->wants_spare = 1;
        v->is_searching = 0;
        VOLT_TLS_SET(v);
        volt__searching_done(v);
        CHECK_EQ(created.n_creates, is_guest);
        CHECK_EQ(v->wants_spare, is_guest);
        test_log.n[VOLT_LOG_THREAD_START] = 0;
        (void)volt__idle_unpark(&rt->idle, 0);
        rt->idle.guest = 0;
        rt->workers[2] = third;
        rt->started = 3;
        end();
    }
}
// Under constant load no sleep follows in which a start that has failed would be tried again.
TEST(failed_start_is_tried_again_by_a_busy_worker) {
    begin(3);
    memset(&polls, 0, sizeof polls);
    memset(&created, 0, sizeof created);
    polls.is_played = 1;
    created.fail_at = 1;
    created.error = EAGAIN;
    rt->started = 2;
    volt__worker *third = rt->workers[2];
    rt->workers[2] = NULL;
    VOLT_TLS_SET(w);
    w->needs_watchdog = 0;
    w->wants_spare = 1;
    w->start_retry = clock_now + 10;
    for (int i = 0; i < 48; i++) {
        if (i == 17) clock_now += 20; // the time is that of the last event poll
        volt__maintain(w);
        CHECK_EQ(created.n_creates, i < 31 ? 0 : 1);
    }
    CHECK(w->wants_spare && w->start_retry > clock_now);
    test_log.n[VOLT_LOG_THREAD_START] = 0;
    rt->workers[2] = third;
    rt->started = 3;
    end();
}
// A batch that is limited may hide the expiry of the watchdog, but only once its period is over.
TEST(full_batch_of_events_counts_as_expiry_after_the_period) {
    for (int is_over = 0; is_over < 2; is_over++) {
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        polls.n = 1;
        polls.ev[0].data.u64 = VOLT__EPOLL_EVENTFD;
        while (volt__ring_room(&w->ring) > 1) volt__ring_push(&w->ring, still_task(w));
        clock_now = INT64_C(123456789) << 10;
        w->last_event_poll = w->busy_since = clock_now;
        volt__watchdog_arm(w);
        CHECK_EQ(rt->watchdog.is_armed, 1);
        clock_now += rt->watchdog.period - (is_over ? 0 : 8192);
        CHECK_EQ(volt__drive_events(w, 0, 0), is_over);
        CHECK_EQ(rt->watchdog.is_armed, !is_over);
        empty(w);
        end();
    }
}
// A worker whose ring is empty before its events are due, and that always finds some, never parks.
TEST(worker_that_always_finds_events_keeps_house) {
    begin(2);
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    w->needs_watchdog = 0;
    for (int i = 0; i < 40; i++) {
        volt__task *t = still_task(w);
        volt__ring_push(&w->ring, t); // as if by the events
        w->housekeep_due = i % 2 ? 1 : 5;
        CHECK(volt__wait_for_task(w) == t);
        CHECK_EQ(w->housekeep_due, i % 2 ? 16 : 4);
    }
    end();
}
TEST(maintenance_polls_events_and_wakes_worker_for_backlog) {
    for (int i = 0; i < 8; i++) {
        int is_mine = i & 1, is_due = i >> 1 & 1, is_enough = i >> 2;
        begin(2);
        memset(&polls, 0, sizeof polls);
        memset(&settime, 0, sizeof settime);
        polls.is_played = 1;
        polls.n = is_mine;
        polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = (uint32_t)is_mine;
        park_v();
        v->event_polls = v->event_polls_seen + 1;
        w->wake_at = is_enough ? 2 : 3;
        w->lifo = still_task(w);
        volt__ring_push(&w->ring, still_task(w));
        w->housekeep_due = is_due ? 1 : 2;
        w->needs_watchdog = 0;
        w->polls_since = 0;
        volt__maintain(w);
        CHECK_EQ(w->housekeep_due, is_due ? 16 : 1);
        CHECK_EQ(w->stats.event_polls, 1);
        CHECK_EQ(was_v_woken(), is_enough);
        CHECK(w->stats.watchdog_scans == (uint64_t)is_mine && !w->needs_watchdog);
        CHECK_EQ(rt->watchdog.is_armed, is_mine);
        CHECK_EQ(settime.n_calls, is_mine);
        if (is_enough) {
            w->is_solo = 1; // there is no worker to tell
            volt__maintain(w);
            CHECK(!was_v_woken());
        }
        end();
    }
}
// The time of the shutdown is up, with two tasks left.
static void give_up(void) {
    w->drain_deadline = clock_now;
    rt->injector.spawned = 2;
}

// ---- the loop

TEST(due_injector_is_served_before_due_events) {
    for (int i = 0; i < 32; i++) {
        int is_inject_due = i & 1, is_event_due = i >> 1 & 1, is_injected = i >> 2 & 1;
        int has_given_up = i >> 3 & 1, is_more = i >> 4;
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        volt__chain c = no_chain();
        volt__task *first = still_task(w), *t = first;
        if (is_injected) volt__chain_push(&c, first);
        if (is_injected && is_more) volt__chain_push(&c, still_task(w));
        volt__injector_push(&rt->injector, &c);
        w->countdown_from = w->countdown = 9;
        w->inject_due = is_inject_due ? 0 : 5;
        w->inject_every = 30;
        w->event_due = is_event_due ? 0 : 6;
        w->event_every = 40;
        w->polls_since = 0;
        if (has_given_up) give_up();
        int is_given = is_inject_due && is_injected, is_served = is_event_due && !is_given;
        CHECK_EQ(volt__serve_due(w, &t), is_given || (is_served && has_given_up));
        CHECK(t == (is_given ? first : NULL));
        CHECK_EQ(w->stats.event_polls, is_served);
        CHECK_EQ(w->inject_due, is_inject_due ? 30 : 5);
        CHECK_EQ(w->event_due, is_served ? 40 : is_event_due ? 0 : 6);
        if (!is_served || !has_given_up)
            CHECK_EQ(w->countdown, is_event_due && !is_served ? 1
                             : w->inject_due < w->event_due ? w->inject_due : w->event_due);
        end();
    }
}
// A queue that has more is due again when every task in the ring has had a poll.
enum { INJECTED, PLACED, SPILT_OVER, SOURCES };
TEST(source_that_has_more_is_due_again_after_one_round) {
    for (int i = 0; i < 2 * SOURCES; i++) {
        int source = i % SOURCES, is_rare = i >= SOURCES;
        volt__chain c = no_chain();
        begin(2);
        rt->cfg.placement = source == PLACED ? VOLT_PLACE_LEAST : VOLT_PLACE_SHARED;
        for (int k = 0; k < 2; k++) volt__ring_push(&w->ring, still_task(w));
        volt__task *t, *first = still_task(w);
        volt__chain_push(&c, first);
        for (int k = 0; k < 200; k++) volt__chain_push(&c, still_task(w));
        if (source == SPILT_OVER) volt__overflow_push(&w->overflow, &c);
        else volt__injector_push(source == PLACED ? &w->inbox : &rt->injector, &c);
        w->countdown_from = w->countdown = w->inject_due = 0;
        w->inject_every = is_rare ? 2 : 255;
        w->event_due = 256;
        CHECK(volt__serve_due(w, &t) && t == first);
        CHECK(ring_len() > 2);
        CHECK_EQ(w->inject_due, is_rare ? 2 : ring_len() + 1);
        CHECK_EQ(w->countdown, w->inject_due);
        end();
    }
}
static int stop_at; // sleeps after which the runtime is stopped
static volt__task *comes;
static void stop_in_time(void) {
    if (++n_slept == stop_at) rt->is_stopped = 1;
    if (comes) volt__ring_push(&w->ring, comes), comes = NULL;
}
static void begin_loop(uint32_t n_workers) {
    begin(n_workers);
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    polls.step = stop_in_time;
    n_slept = stop_at = 0;
    comes = NULL;
    rt->idle.searching = 0;
}
TEST(worker_waits_until_task_stop_or_drain_deadline) {
    for (uint32_t n = 1; n <= 2; n++) {
        begin_loop(n);
        volt__task *t = still_task(w);
        if (n == 1) comes = t; // while it sleeps: it is not called with something in its queues
        else volt__ring_push(&w->ring, t);
        CHECK(volt__wait_for_task(w) == t && !w->needs_watchdog);
        CHECK(polls.n_calls == 1 && w->stats.parks == (n == 1) && w->stats.spurious_unparks == 0);
        empty(w);
        w->polls_since = 0;
        stop_at = n_slept + 3;
        CHECK(!volt__wait_for_task(w));
        CHECK(rt->is_stopped);
        CHECK(w->stats.spurious_unparks > 0 && w->stats.spurious_unparks <= 3);
        rt->is_stopped = 0;
        give_up();
        uint64_t parks = w->stats.parks;
        CHECK(!volt__wait_for_task(w));
        CHECK_EQ(w->stats.parks, parks);
        end();
    }
    begin_loop(2); // the other one has something
    volt__task *t = still_task(v);
    volt__ring_push(&v->ring, t);
    CHECK(volt__wait_for_task(w) == t && w->stats.steals == 1 && w->stats.parks == 0);
    CHECK(!w->is_searching && rt->idle.searching == 0);
    end();
    begin_loop(2); // the watchdog expires
    polls.n = 1;
    polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
    rt->watchdog.is_armed = 1;
    v->event_polls = v->event_polls_seen + 1;
    volt__ring_push(&w->ring, still_task(w));
    CHECK(volt__wait_for_task(w) && w->stats.watchdog_scans == 1);
    end();
    polls.step = NULL;
}
TEST(tasks_from_outside_go_before_a_lone_task) {
    begin_loop(2);
    volt__task *t = still_task(w), *other = still_task(w);
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 50;
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 1 && ring_len() == 0);
    uint16_t left = w->cx.budget_;
    w->cx.budget_ = 0; // it has not asked for others
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 1 && ring_len() == 0);
    volt__chain c = no_chain();
    volt__chain_push(&c, other);
    volt__injector_push(&rt->injector, &c);
    w->countdown_from = w->countdown = 50;
    CHECK(volt__next_before_lone_task(w, t) == other && ring_len() == 1 &&
          w->stats.event_polls == 1);
    w->cx.budget_ = left;
    CHECK(volt__pop_ring(w) == t);
    w->countdown_from = w->countdown = 50; // the injector's turn, and something comes meanwhile
    w->inject_due = 0;
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 2);
    while (volt__ring_push(&w->ring, still_task(w))) {} // no room for a share: one is served
    c = no_chain();
    volt__chain_push(&c, other);
    volt__injector_push(&rt->injector, &c);
    w->countdown_from = w->countdown = 50;
    w->inject_due = 0;
    CHECK(volt__next_before_lone_task(w, t) == other && w->stats.event_polls == 2);
    empty(w);
    w->countdown_from = w->countdown = 50;
    w->inject_due = 9;
    give_up();
    CHECK(!volt__next_before_lone_task(w, t) && ring_len() == 1 && volt__pop_ring(w) == t);
    end();
    polls.step = NULL;
}
// The injector always has more than the share of this worker, which is a single task.
TEST(due_event_poll_is_not_put_off_by_tasks_from_outside) {
    begin_loop(3);
    volt__task *last = still_task(w);
    volt__chain c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, still_task(w));
    volt__injector_push(&rt->injector, &c);
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 1;
    w->inject_due = w->event_due = 1;
    for (int i = 0; i < 4; i++) {
        last = volt__next_task(w, last);
        CHECK(last != NULL);
        c = no_chain();
        volt__chain_push(&c, still_task(w));
        volt__injector_push(&rt->injector, &c);
    }
    CHECK(w->stats.event_polls > 0);
    empty(w);
    end();
    polls.step = NULL;
}
TEST(next_task_comes_from_due_source_before_ring) {
    begin_loop(2);
    volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
    w->wake_at = VOLT_RING_CAP * 2;
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 3;
    w->inject_due = w->event_due = 3;
    volt__ring_push(&w->ring, a);
    volt__ring_push(&w->ring, b);
    CHECK(volt__next_task(w, c) == a && w->countdown == 2);
    CHECK(volt__next_task(w, a) == b && w->countdown == 1);
    volt__chain one = no_chain();
    volt__chain_push(&one, c);
    volt__injector_push(&rt->injector, &one);
    volt__ring_push(&w->ring, a);
    CHECK(volt__next_task(w, b) == c && w->stats.polls == 3); // is due before what is queued
    w->countdown_from = w->countdown = 9;
    CHECK(volt__next_task(w, a) == a && w->stats.event_polls == 1); // twice in a row
    volt__ring_push(&w->ring, b);
    w->countdown_from = w->countdown = 1;
    w->inject_due = w->event_due = 1;
    give_up();
    CHECK(!volt__next_task(w, a)); // the time is up
    CHECK(volt__pop_ring(w) == b);
    w->drain_deadline = VOLT_NEVER;
    w->countdown_from = w->countdown = 9;
    rt->is_stopped = 1;
    CHECK(!volt__next_task(w, a)); // nothing left
    end();
    polls.step = NULL;
}
TEST(worker_thread_runs_worker_until_runtime_stops) {
    begin_loop(2);
    volt__task *t = answering_task(0);
    next_poll = volt_ready(0);
    w->needs_watchdog = 1;
    w->lifo = t;
    rt->is_stopped = 1;
    w->cx.stack_ = NULL;
    volt__worker_run(w);
    CHECK(w->completed == 1 && !VOLT_TLS_GET() && polled_by == w && w->cx.stack_);
    CHECK(w->published.completed == 1 && w->published.lifo_polls == 1 && w->lifo_run == 0);
    CHECK_EQ(rt->watchdog.is_armed, 1); // first of all it sees to it that it is watched
    end();
    begin_loop(1); // nothing at first
    comes = answering_task(0);
    stop_at = 2;
    CHECK(!volt__thread_main(w) && w->completed == 1 && n_slept == 2);
    end();
    begin_loop(1); // the time is up while it takes from the slot
    w->lifo = answering_task(0);
    w->countdown_from = w->countdown = w->inject_due = w->event_due = 1;
    give_up();
    volt__worker_run(w);
    CHECK(w->completed == 1 && w->published.lifo_polls == 1 && w->published.polls == 1);
    end();
    polls.step = NULL;
}
TEST(worker_threads_are_named_by_index) {
    static const uint32_t numbers[] = { 0,   7,   9,    10, 42, 99, 100, 905,
                                        999, 1000, VOLT_MAX_WORKERS - 1 };
    begin_loop(2);
    rt->is_stopped = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char want[32];
        snprintf(want, sizeof want, "volt-%u", (unsigned)numbers[i]);
        w->index = numbers[i];
        w->carrier_serving = 0; // as from the start
        CHECK(!volt__thread_main(w));
        CHECK_STR(thread_name, want);
    }
    w->index = 0;
    end();
    polls.step = NULL;
}

// ---- starting workers

static volt_rt *bare_rt(uint32_t n_workers) {
    volt_config c = test_config(n_workers);
    memset(&created, 0, sizeof created);
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    return rt;
}
TEST(worker_create_initializes_worker_or_frees_all) {
    for (uint32_t n = 1; n <= 3; n += 2) {
        bare_rt(n);
        clock_now = rt->epoch + 5 * (int64_t)VOLT_TICK_NS + 7;
        volt__worker *x = NULL;
        uint32_t i = n - 1;
        CHECK_EQ(volt__worker_create(rt, i, &x), 0);
        CHECK(x && rt->workers[i] == x && rt->fds.epfd[i] == x->reactor.epfd);
        CHECK(x->rt == rt && x->cx.rt_ == rt && x->cx.worker_ == x && x->index == i);
        CHECK(x->is_solo == (n == 1) && x->avg_ns == VOLT_POLL_NS &&
              x->last_event_poll == clock_now);
        CHECK(x->ms == 5 * (uint64_t)VOLT_TICK_NS / 1000000 && x->wheel.elapsed == 5);
        CHECK(x->inject_due == 20 && x->inject_every == 20); // 1 ms of 50 us each
        CHECK(x->event_due == 2 && x->event_every == 2);
        CHECK(x->countdown == 2 && x->countdown_from == 2 && x->cx.budget_ == VOLT_BUDGET &&
              x->wake_at == 2);
        volt_cx cx = x->cx;
        cx.wait_ = 9;
        cx.budget_ = 0;
        memcpy(&cx.wait_, &x->fresh_cx, sizeof x->fresh_cx);
        CHECK(cx.wait_ == 0 && cx.budget_ == VOLT_BUDGET && !cx.cancel_level_ && !cx.shield_depth_);
        CHECK(x->housekeep_due == 16 && x->trim_ms == x->ms + 1000);
        CHECK(x->drain_deadline == VOLT_NEVER && x->needs_watchdog == 1 && !x->has_slept);
        CHECK(x->heap.slabs == &rt->slabs && x->reactor.index == i);
        CHECK(!x->lifo && !x->is_searching && !x->polls_since && !x->completed && !x->start_retry);
        volt__random r;
        volt__random_seed(&r, rt->cfg.seed, i);
        CHECK(r.a == x->random.a && r.b == x->random.b);
        volt__worker_destroy(rt, x);
        // out of memory, of descriptors
        int n_fds = test_count_fds();
        int64_t bytes = test_heap.live_bytes;
        test_heap.fail_at = test_heap.n_allocs + 1;
        CHECK_EQ(volt__worker_create(rt, i, &x), -ENOMEM);
        of_eventfd.n_calls = 0;
        of_eventfd.error[0] = EMFILE;
        CHECK_EQ(volt__worker_create(rt, i, &x), -EMFILE);
        of_eventfd.error[0] = 0;
        CHECK(test_heap.live_bytes == bytes && test_count_fds() == n_fds);
        end();
    }
}
TEST(worker_thread_starts_with_all_signals_blocked) {
    begin(2);
    sigset_t before;
    memset(&created, 0, sizeof created);
    rt->cfg.stack_size = 131072;
    w->has_slept = 0;
    CHECK_EQ(volt__thread_start(w), 0);
    CHECK(created.n_creates == 1 && created.fn == volt__thread_main && created.arg == w);
    CHECK(created.stack == 131072 && w->has_thread == 1 && w->has_slept == 1);
    CHECK(sigismember(&created.mask, SIGINT) && sigismember(&created.mask, SIGPIPE));
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    CHECK(!sigismember(&before, SIGINT) && !sigismember(&before, SIGPIPE));
    created.fail_at = 2;
    created.error = EAGAIN;
    CHECK_EQ(volt__thread_start(w), -EAGAIN);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    CHECK(!sigismember(&before, SIGINT));
    attr_error = ENOMEM;
    CHECK_EQ(volt__thread_start(w), -ENOMEM);
    CHECK(created.n_creates == 2 && n_attrs == 0);
    end();
}
// One after the other, as far as they are wanted; a wish that comes while one is being started is
// kept for its starter.
TEST(workers_are_started_one_by_one) {
    bare_rt(3);
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 1 && created.n_creates == 1 && created.arg == rt->workers[0]);
    CHECK(rt->start_wanted == 0 && rt->is_starting == 0 && rt->start_lock == 0);
    rt->is_starting = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 1 && rt->start_wanted == 1 && rt->start_lock == 0);
    rt->is_starting = 0;
    created.fail_at = 2;
    created.error = EAGAIN;
    int n_fds = test_count_fds();
    CHECK_EQ(volt__start_next(rt), -EAGAIN);
    CHECK(rt->started == 1 && !rt->workers[1] && test_count_fds() == n_fds);
    CHECK(rt->is_starting == 0 && rt->start_lock == 0 && rt->start_wanted == 0);
    test_heap.fail_at = test_heap.n_allocs + 1;
    CHECK_EQ(volt__start_next(rt), -ENOMEM);
    CHECK(!rt->workers[1] && created.n_creates == 2);
    for (uint32_t n = 2; n <= 3; n++) {
        CHECK_EQ(volt__start_next(rt), 0);
        CHECK(rt->started == n && created.arg == rt->workers[n - 1]);
        CHECK(rt->workers[n - 1]->index == n - 1);
    }
    CHECK_EQ(volt__start_next(rt), 0); // all run
    CHECK(rt->started == 3 && created.n_creates == 4 && rt->start_lock == 0);
    end();
    bare_rt(2);
    rt->starts_closed = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 0 && created.n_creates == 0 && rt->start_lock == 0);
    end();
}
// Something happens while a thread is being created.
static int meanwhile;
static void *meanwhile_alloc(void *user, size_t size, size_t align) {
    int what = meanwhile;
    meanwhile = 0;
    CHECK_EQ(rt->start_lock, 0);
    if (what == 1) CHECK_EQ(volt__start_next(rt), 0); // another one is wanted
    if (what == 2) volt__shutdown_begin(rt);
    return test_alloc(user, size, align);
}
TEST(start_heeds_request_or_shutdown_that_comes_meanwhile) {
    bare_rt(3);
    rt->cfg.alloc.alloc = meanwhile_alloc;
    meanwhile = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 2 && created.n_creates == 2 && rt->start_wanted == 0);
    end();
    for (int has_failed = 0; has_failed < 2; has_failed++) {
        bare_rt(3);
        CHECK_EQ(volt__start_next(rt), 0);
        rt->cfg.alloc.alloc = meanwhile_alloc;
        created.fail_at = has_failed ? 2 : 0;
        created.error = EPERM;
        meanwhile = 2;
        CHECK_EQ(volt__start_next(rt), has_failed ? -EPERM : 0);
        CHECK(rt->starts_closed && rt->started == 2 - (uint32_t)has_failed);
        CHECK_EQ(rt->acks, 2 - (uint32_t)has_failed); // a failed thread owes no acknowledgement
        check_poked(1);                               // a started one has to be told
        CHECK(created.n_creates == 2 && rt->start_lock == 0);
        end();
    }
}
TEST(failed_start_of_spare_worker_is_retried_after_a_second) {
    begin(2);
    rt->n_workers = 3;
    volt__worker **two = rt->workers, *three[3] = { w, v, NULL };
    int *epfd = rt->fds.epfd, epfds[3] = { epfd[0], epfd[1], -1 };
    rt->workers = three;
    rt->fds.epfd = epfds;
    memset(&created, 0, sizeof created);
    created.fail_at = 1;
    created.error = EAGAIN;
    VOLT_TLS_SET(w);
    w->last_event_poll = 5000;
    w->start_retry = 5001;
    CHECK_EQ(volt__start_spare(w), 0);
    CHECK(created.n_creates == 0);
    w->start_retry = 5000;
    CHECK_EQ(volt__start_spare(w), 0);
    CHECK(created.n_creates == 1 && w->start_retry == 5000 + 1000000000);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 1);
    CHECK(strstr(test_log.text[VOLT_LOG_THREAD_START], ": 11 (errno)"));
    w->last_event_poll = w->start_retry;
    CHECK_EQ(volt__start_spare(w), 1);
    CHECK(created.n_creates == 2 && rt->started == 3 && w->start_retry == 5000 + 1000000000);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 1);
    volt__worker_destroy(rt, three[2]);
    rt->workers = two;
    rt->fds.epfd = epfd;
    rt->n_workers = rt->started = 2;
    end();
}
