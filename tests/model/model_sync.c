// SPDX-License-Identifier: MIT OR 0BSD
// Tasks that wait for a mutex, an event, a notify, a condition variable, a channel, by the real
// polls on two real workers: let through and cancelled at once, each goes on once, what it was
// given is passed on, and what it waited for may be freed. The protocols of the objects: see
// model_gate.c, model_latch.c, model_oneshot.c.
// Run: make model ONE=sync_mutex_cancel (or another name from below).
#define VOLT_LOCK_TRIES 0
#define VOLT_MUTEX_BARGES 1
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

typedef struct state {
    volt_frame frame;
    int64_t rc;
    int n; // which it is
} state;
static volt_handle handles[2];
static int64_t results[2]; // plain: handed over with the tasks

static void start(volt_fn *fn, int n) {
    if (!rt) rt_make(2);
    state s;
    memset(&s, 0, sizeof s);
    s.n = n;
    results[n] = 1;
    VMC_ASSERT(volt__spawn(rt, w0, &handles[n], fn, &s, sizeof s, "waiter") == 0);
}
static void let_them_wait(void) {
    rt_carry(w0);
    rt_run_all(w0);
    rt_carry(NULL);
}
// Worker 0 cancels the first task and runs what it has, worker 1 does `fn`.
static void cancel_beside(void (*fn)(void *), int n_tasks) {
    int t = vmc_spawn(fn, NULL);
    rt_carry(w0);
    volt_cancel(&handles[0]);
    rt_run_all(w0);
    vmc_join(t);
    while (rt_run_one(w0) || rt_steal_and_run(w0, w1)) {}
    for (int i = 0; i < n_tasks; i++) {
        VMC_ASSERT(results[i] <= 0); // it has ended
        volt_detach(&handles[i]);
    }
    rt_end();
}
static void reach_either(void) {
    VMC_ASSERT(results[0] == 0 || results[0] == -ECANCELED);
    vmc_reached(results[0] ? "cancelled" : "let through");
}
static void expect_either(void) {
    vmc_must_happen("cancelled");
    vmc_must_happen("let through");
}

// ---- mutex: two tasks wait for what another one has

static volt_mutex *mutex;
static int n_inside; // plain, under the mutex
static volt_poll locks(volt_cx *cx, void *arg) {
    state *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, mutex));
    if (s->rc == 0) {
        n_inside++;
        volt_mutex_unlock(mutex);
    }
    results[s->n] = s->rc;
    VOLT_END(0);
}
static void unlock_mutex(void *unused) {
    (void)unused;
    rt_carry(w1);
    n_inside++;
    volt_mutex_unlock(mutex);
    rt_run_all(w1);
}
static void mutex_cancel(int n_tasks, int is_fifo) {
    volt_mutex fifo = VOLT_MUTEX_FIFO;
    expect_either();
    mutex = vmc_alloc(sizeof *mutex);
    if (is_fifo) *mutex = fifo;
    VMC_ASSERT(volt_mutex_try_lock(mutex) == 0);
    for (int i = 0; i < n_tasks; i++) start(locks, i);
    let_them_wait();
    cancel_beside(unlock_mutex, n_tasks);
    reach_either();
    VMC_ASSERT(results[1] == 0 && n_inside == n_tasks + (results[0] == 0));
    VMC_ASSERT(volt_mutex_try_lock(mutex) == 0);
    vmc_free(mutex);
}
SCENARIO(sync_mutex_cancel) { mutex_cancel(1, 0); }
SCENARIO(sync_mutex_cancel_fifo) { mutex_cancel(1, 1); }
SCENARIO(sync_mutex_cancel_of_two) { mutex_cancel(2, 0); }
SCENARIO(sync_mutex_cancel_of_two_fifo) { mutex_cancel(2, 1); }

// A task comes while another one is inside, which may be on its way out; the last one frees it.
static int n_uses; // plain, under the mutex
static void use_mutex(void) {
    int is_last = --n_uses == 0;
    volt_mutex_unlock(mutex);
    if (is_last) vmc_free(mutex);
}
static volt_poll locks_and_frees(volt_cx *cx, void *arg) {
    state *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, mutex));
    use_mutex();
    results[s->n] = s->rc;
    VOLT_END(0);
}
static void lock_outside(void *unused) {
    (void)unused;
    VMC_ASSERT(volt_mutex_lock_sync(mutex, VOLT_NEVER) == 0);
    use_mutex();
}
SCENARIO(sync_mutex_task_and_thread) {
    mutex = vmc_alloc(sizeof *mutex);
    n_uses = 2;
    start(locks_and_frees, 0);
    int t = vmc_spawn(lock_outside, NULL);
    rt_carry(w0);
    rt_run_all(w0);
    vmc_join(t);
    rt_run_all(w0);
    VMC_ASSERT(results[0] == 0);
    volt_detach(&handles[0]);
    rt_end();
}

// ---- event

static volt_event *event;
static int written; // plain
static volt_poll waits_and_frees(volt_cx *cx, void *arg) {
    state *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_event_wait(cx, event));
    if (s->rc == 0) {
        VMC_ASSERT(written == 7);
        vmc_free(event);
    }
    results[s->n] = s->rc;
    VOLT_END(0);
}
static void set_event(void *unused) {
    (void)unused;
    rt_carry(w1);
    written = 7;
    volt_event_set(event);
    rt_run_all(w1);
}
SCENARIO(sync_event_cancel) {
    expect_either();
    event = vmc_alloc(sizeof *event);
    start(waits_and_frees, 0);
    let_them_wait();
    cancel_beside(set_event, 1);
    reach_either();
    if (results[0]) vmc_free(event);
}
static void do_nothing(void *unused) { (void)unused; }
SCENARIO(sync_event_cancel_alone) {
    event = vmc_alloc(sizeof *event);
    start(waits_and_frees, 0);
    let_them_wait();
    cancel_beside(do_nothing, 1);
    VMC_ASSERT(results[0] == -ECANCELED);
    vmc_free(event);
}

// ---- notify: two wait, one is notified, one is cancelled: the other one has it

static volt_notify *notify;
static volt_poll waits_for_notify(volt_cx *cx, void *arg) {
    state *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_notify_wait(cx, notify));
    results[s->n] = s->rc;
    VOLT_END(0);
}
static void notify_one(void *unused) {
    (void)unused;
    rt_carry(w1);
    volt_notify_one(notify);
    rt_run_all(w1);
}
SCENARIO(sync_notify_cancel) {
    expect_either();
    notify = vmc_alloc(sizeof *notify);
    start(waits_for_notify, 0);
    let_them_wait();
    cancel_beside(notify_one, 1);
    reach_either();
    VMC_ASSERT(volt_notify_try_wait(notify) == (results[0] ? 0 : -EAGAIN));
    vmc_free(notify);
}

// ---- condition variable: cancelled or told, it has the mutex again

static volt_cond *cond;
static volt_poll waits_for_signal(volt_cx *cx, void *arg) {
    state *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, mutex));
    VOLT_AWAIT(s->rc, volt_cond_wait(cx, cond, mutex));
    n_inside++;
    volt_mutex_unlock(mutex);
    results[s->n] = s->rc;
    VOLT_END(0);
}
static void signal_inside(void *unused) {
    (void)unused;
    rt_carry(w1);
    if (volt_mutex_try_lock(mutex) == 0) {
        n_inside++;
        volt_mutex_unlock(mutex);
    }
    volt_cond_signal(cond);
    rt_run_all(w1);
}
SCENARIO(sync_cond_cancel) {
    expect_either();
    mutex = vmc_alloc(sizeof *mutex);
    cond = vmc_alloc(sizeof *cond);
    start(waits_for_signal, 0);
    let_them_wait();
    cancel_beside(signal_inside, 1);
    reach_either();
    VMC_ASSERT(volt_mutex_try_lock(mutex) == 0 && n_inside > 0);
    vmc_free(mutex);
    vmc_free(cond);
}

// ---- channel: two tasks receive, one message comes, then the end

static volt_chan *chan;
static int n_received; // plain, under the runner's worker: see receive_one
static int buffer[1];
static volt_poll receive_one(volt_cx *cx, void *arg) {
    state *s = arg;
    static int got[2];
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_chan_recv(cx, chan, &got[s->n], sizeof got[0]));
    if (s->rc == 1) {
        VMC_ASSERT(got[s->n] == 7);
        n_received++; // by one of the two only
    }
    results[s->n] = s->rc == 1 ? 0 : s->rc;
    VOLT_END(0);
}
static void send_and_close(void *unused) {
    int message = 7;
    (void)unused;
    rt_carry(w1);
    VMC_ASSERT(volt_chan_try_send(chan, &message, sizeof message) == 0);
    volt_chan_close(chan);
    rt_run_all(w1);
}
static void chan_cancel(size_t cap) {
    expect_either();
    chan = vmc_alloc(sizeof *chan);
    volt_chan_init(chan, buffer, sizeof buffer[0], cap);
    start(receive_one, 0);
    start(receive_one, 1);
    w0->is_solo = w1->is_solo = 1; // no stealing: ring and LIFO slot of each are its own
    let_them_wait();
    cancel_beside(send_and_close, 2);
    reach_either();
    VMC_ASSERT(n_received == 1 && chan->len_ == 0);
    vmc_free(chan);
}
SCENARIO(sync_chan_cancel) { chan_cancel(1); }
SCENARIO(sync_chan_cancel_rendezvous) { chan_cancel(0); }

// Two threads, two messages, room for one or none: the receiver of the last one frees it, a
// rendezvous when the sender has returned, too.
static void send_two(void *unused) {
    (void)unused;
    for (int i = 1; i <= 2; i++) {
        int rc = volt_chan_send_sync(chan, &i, sizeof i, VOLT_NEVER);
        VMC_ASSERT(rc == 0);
    }
}
static void chan_freed(size_t cap) {
    chan = vmc_alloc(sizeof *chan);
    volt_chan_init(chan, buffer, sizeof buffer[0], cap);
    int t = vmc_spawn(send_two, NULL), got = 0;
    for (int i = 1; i <= 2; i++) {
        VMC_ASSERT(volt_chan_recv_sync(chan, &got, sizeof got, VOLT_NEVER) == 1);
        VMC_ASSERT(got == i);
    }
    if (cap == 0) vmc_join(t);
    vmc_free(chan);
    if (cap > 0) vmc_join(t);
}
SCENARIO(sync_chan_freed, .class = VMC_BOUNDED, .preemptions = 2) { chan_freed(1); }
SCENARIO(sync_chan_freed_rendezvous, .class = VMC_BOUNDED, .preemptions = 2) { chan_freed(0); }
