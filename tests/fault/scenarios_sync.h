// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios of locks, channels and hooks, between tasks and blocking threads. Their only system
// call is the futex of a waiting thread, so most failures happen around them.
#ifndef VOLT_FAULT_SCENARIOS_SYNC_H
#define VOLT_FAULT_SCENARIOS_SYNC_H

// ---- a mutex that is held over a sleep, and a condition that comes later

typedef struct shelf {
    volt_mutex lock;
    volt_cond filled;
    volt_event is_held;
    int n; // under the lock
} shelf;
STATE(filler, shelf *shelf;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->shelf->lock));
    CHECK_EQ(s->rc, 0);
    volt_event_set(&s->shelf->is_held);
    KEEP_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    volt_mutex_unlock(&s->shelf->lock);
    KEEP_AWAIT(volt_sleep(cx, VOLT_US(300)));
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &s->shelf->lock));
    CHECK_EQ(s->rc, 0);
    s->shelf->n++;
    volt_cond_signal(&s->shelf->filled);
    volt_mutex_unlock(&s->shelf->lock);
    VOLT_END(s->first);
}
// The first limit passes while the lock is held; the mutex is held again whatever ends the other
// wait.
static int waits_at_a_shelf(volt_rt *rt) {
    shelf at;
    volt_handle h = { NULL };
    int64_t value = 0, first = 0;
    memset(&at, 0, sizeof at);
    int rc = VOLT_RT_SPAWN(rt, &h, filler_run, (filler_state){ .shelf = &at });
    if (rc < 0) return rc;
    CHECK_EQ(volt_event_wait_sync(&at.is_held, VOLT_NEVER), 0);
    rc = volt_mutex_lock_sync(&at.lock, VOLT_US(200));
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    if (rc < 0) CHECK_EQ(volt_mutex_lock_sync(&at.lock, VOLT_NEVER), 0);
    while (at.n == 0) {
        rc = volt_cond_wait_sync(&at.filled, &at.lock, FAR_AWAY);
        CHECK_EQ(volt_mutex_try_lock(&at.lock), -EAGAIN);
        first = worse(first, rc);
    }
    volt_mutex_unlock(&at.lock);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(volt_mutex_try_lock(&at.lock), 0);
    return (int)worse(first, value);
}

// ---- numbers from a task to this thread, and back, through one channel each

enum { N_NUMBERS = 6 };
STATE(counter, volt_chan *to; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < N_NUMBERS; s->i++)
        KEEP_AWAIT(volt_chan_send(cx, s->to, &s->i, sizeof(int)));
    volt_chan_close(s->to);
    VOLT_END(s->first);
}
STATE(checker, volt_chan *from; int i, n;) {
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_chan_recv(cx, s->from, &s->i, sizeof(int)));
        if (s->rc <= 0) break;
        CHECK_EQ(s->i, s->n++);
    }
    KEEP(s->rc);
    CHECK_EQ(s->n, N_NUMBERS);
    VOLT_END(s->first);
}
// A wait that has timed out has neither sent nor received.
static int64_t pass_on(volt_chan *from, volt_chan *to) {
    int64_t first = 0;
    for (int n = 0, i = -1; n <= N_NUMBERS; n++) {
        int rc = volt_chan_recv_sync(from, &i, sizeof i, FAR_AWAY);
        first = worse(first, rc);
        if (rc < 0) rc = volt_chan_recv_sync(from, &i, sizeof i, VOLT_NEVER);
        CHECK_EQ(rc, n < N_NUMBERS);
        if (rc == 0) break;
        CHECK_EQ(i, n);
        rc = volt_chan_send_sync(to, &i, sizeof i, FAR_AWAY);
        first = worse(first, rc);
        if (rc < 0) CHECK_EQ(volt_chan_send_sync(to, &i, sizeof i, VOLT_NEVER), 0);
    }
    volt_chan_close(to);
    return first;
}
static int64_t join_if_set(volt_handle *h) {
    int64_t value = 0;
    if (volt_handle_is_set(h)) CHECK_EQ(volt_join_sync(h, VOLT_NEVER, &value), 0);
    return value;
}
static int64_t pass_through(volt_rt *rt, volt_chan *from, volt_chan *to) {
    volt_handle h[2] = { { NULL } };
    int64_t first = VOLT_RT_SPAWN(rt, &h[0], checker_run, (checker_state){ .from = to });
    if (first < 0) return first;
    first = VOLT_RT_SPAWN(rt, &h[1], counter_run, (counter_state){ .to = from });
    if (first == 0) first = pass_on(from, to);
    else volt_cancel(&h[0]);
    if (!volt_handle_is_set(&h[1])) { // the other one has nothing to check
        volt_detach(&h[0]);
        return first;
    }
    for (int i = 0; i < 2; i++) first = worse(first, join_if_set(&h[i]));
    return first;
}
// The second channel is a rendezvous.
static int passes_numbers(volt_rt *rt) {
    volt_chan from, to;
    int64_t first = volt_chan_create(rt, &from, sizeof(int), 2);
    if (first < 0) return (int)first;
    first = volt_chan_create(rt, &to, sizeof(int), 0);
    if (first == 0) {
        first = pass_through(rt, &from, &to);
        volt_chan_destroy(&to);
    }
    volt_chan_destroy(&from);
    return (int)first;
}

// ---- a queue: nothing comes in time, then all messages in order

typedef struct slip {
    volt_queue_node node;
    int n;
} slip;
STATE(pusher, volt_queue *q; slip *slips; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < N_NUMBERS; s->i++) {
        if (s->i % 2) KEEP_AWAIT(volt_sleep(cx, VOLT_US(100)));
        s->slips[s->i].n = s->i;
        CHECK_EQ(volt_queue_push(s->q, &s->slips[s->i].node), 0);
    }
    volt_queue_close(s->q);
    VOLT_END(s->first);
}
STATE(pops, volt_queue q; slip slips[N_NUMBERS]; volt_queue_node *node; volt_timer timer;
      volt_handle h; int i;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_MS(1), volt_queue_pop(cx, &s->q, &s->node)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    KEEP(VOLT_SPAWN(cx, &s->h, pusher_run, (pusher_state){ .q = &s->q, .slips = s->slips }));
    if (s->first < 0) VOLT_RETURN(s->first);
    for (s->i = 0;; s->i++) {
        VOLT_AWAIT(s->rc, volt_queue_pop(cx, &s->q, &s->node));
        if (s->rc <= 0) break;
        CHECK_EQ(VOLT__CONTAINER(slip, node, s->node)->n, s->i);
    }
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->i, N_NUMBERS);
    KEEP_AWAIT(volt_join(cx, &s->h));
    VOLT_END(s->first);
}
// The same by a thread.
static int pops_by_a_thread(volt_rt *rt) {
    volt_queue q = VOLT_QUEUE_INIT;
    volt_queue_node *node;
    slip slips[N_NUMBERS];
    volt_handle h = { NULL };
    int64_t first = 0;
    int n = 0, rc = volt_queue_pop_sync(&q, &node, VOLT_US(200));
    CHECK_EQ(rc, -ETIMEDOUT);
    rc = VOLT_RT_SPAWN(rt, &h, pusher_run, (pusher_state){ .q = &q, .slips = slips });
    if (rc < 0) return rc;
    while ((rc = volt_queue_pop_sync(&q, &node, FAR_AWAY)) != 0) {
        first = worse(first, rc);
        if (rc > 0) CHECK_EQ(VOLT__CONTAINER(slip, node, node)->n, n++);
    }
    CHECK_EQ(n, N_NUMBERS);
    return (int)worse(first, join_if_set(&h));
}

// ---- a token whose hook cancels a group

static void cancel_group(void *arg) { volt_group_cancel((volt_group *)arg); }
STATE(hooks, volt_token token, quiet; volt_hook hook; volt_group group, cancellers; int i;) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_token_hook(&s->quiet, &s->hook, cancel_group, &s->group), 0);
    CHECK_EQ(volt_token_unhook(&s->hook), 1);
    CHECK_EQ(volt_token_hook(&s->token, &s->hook, cancel_group, &s->group), 0);
    for (s->i = 0; s->i < 3; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, napper_run, (napper_state){ .d = FAR_AWAY }));
    s->rc = VOLT_GROUP_SPAWN(cx, &s->cancellers, canceller_run,
                             (canceller_state){ .token = &s->token });
    KEEP(s->rc);
    if (s->rc < 0) volt_token_cancel(&s->token);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->group)); // -ECANCELED, from the children
    KEEP_AWAIT(volt_group_wait(cx, &s->cancellers));
    CHECK_EQ(volt_token_unhook(&s->hook), 0);
    CHECK_EQ(volt_token_hook(&s->token, &s->hook, cancel_group, &s->group), -ECANCELED);
    VOLT_END(s->first);
}

// ---- three tasks that meet, and share two of a resource; a slow subscriber

enum { N_GUESTS = 3 };
typedef struct party {
    volt_barrier all;
    volt_sem chairs;
    volt_once toast;
    volt_bcast news;
    volt_sub sub;
    int buf[2];
    int n_seated, n_toasts, n_first;
} party;
STATE(guest, party *party; int news;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_barrier_wait(cx, &s->party->all));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    add(&s->party->n_first, (int)s->rc);
    KEEP_AWAIT(volt_sem_acquire(cx, &s->party->chairs, 1));
    CHECK(add(&s->party->n_seated, 1) <= 2);
    VOLT_AWAIT(s->rc, volt_once_begin(cx, &s->party->toast));
    if (s->rc == 1) {
        KEEP_AWAIT(volt_sleep(cx, VOLT_US(100)));
        add(&s->party->n_toasts, 1);
        volt_once_end(&s->party->toast, 1);
    }
    CHECK_EQ(get(&s->party->n_toasts), 1);
    add(&s->party->n_seated, -1);
    CHECK_EQ(volt_sem_release(&s->party->chairs, 1), 0);
    s->news = 5;
    CHECK_EQ(volt_bcast_send(&s->party->news, &s->news, sizeof(int)), 1);
    VOLT_END(s->first);
}
static void party_init(party *p) {
    p->all = (volt_barrier)VOLT_BARRIER_INIT(N_GUESTS);
    p->chairs = (volt_sem)VOLT_SEM_INIT(2);
    p->news = (volt_bcast)VOLT_BCAST_INIT(p->buf);
    volt_sub_open(&p->sub, &p->news);
}
STATE(meets, party party; volt_group group; int i, news;) {
    VOLT_BEGIN(cx, s);
    party_init(&s->party);
    for (s->i = 0; s->i < N_GUESTS; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, guest_run, (guest_state){ .party = &s->party }));
    if (s->first < 0) { // a task is missing
        VOLT_AWAIT(volt_group_close(cx, &s->group));
        VOLT_RETURN(s->first);
    }
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    CHECK_EQ(s->party.n_first, 1);
    VOLT_AWAIT(s->rc, volt_sub_recv(cx, &s->party.sub, &s->news, sizeof(int)));
    CHECK_EQ(s->rc, -EOVERFLOW);
    CHECK_EQ(volt_sub_lost(&s->party.sub), N_GUESTS - 2);
    VOLT_AWAIT(s->rc, volt_sub_recv(cx, &s->party.sub, &s->news, sizeof(int)));
    CHECK_EQ(s->rc + s->news, 1 + 5);
    volt_sub_close(&s->party.sub);
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_SYNC_H
