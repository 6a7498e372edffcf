// SPDX-License-Identifier: MIT OR 0BSD
// Oneshot and queue ([O1]): one word, in which a receiver that waits leaves its task. A message
// is received once, with all that was written before, or the sender is told; a waiter is woken; the
// task is held exactly as long as it is in the word or in the hands of the thread that took it out;
// and the last receiver may free the object at once.
// Run: make model ONE=queue_push_close (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "rt.h"

enum { VALUE = 42 };
typedef struct receiver {
    volt_frame frame;
    volt_queue_node *node;
    int64_t rc;
} receiver;
static volt_handle handle;
static volt_waker waker;
static int64_t result; // of the receiver
static int n_ended;    // plain, like result: handed over with the task

// ---- a task on worker 0 receives, what is sent comes from worker 1

static void spawn_receiver(volt_fn *fn, volt_handle *or_null) {
    receiver r;
    memset(&r, 0, sizeof r);
    VMC_ASSERT(volt__spawn(rt, w0, or_null, fn, &r, sizeof r, "receiver") == 0);
}
static void start(volt_fn *fn) {
    rt_make(2);
    spawn_receiver(fn, &handle);
}
static void let_it_wait(void) {
    rt_carry(w0);
    rt_run_all(w0);
    rt_carry(NULL);
}
// Beside what worker 1 does. It must have been woken.
static void receive_to_the_end(int t) {
    rt_run_all(w0);
    vmc_join(t);
    while (rt_run_one(w0) || rt_steal_and_run(w0, w1)) {}
    VMC_ASSERT(n_ended == 1);
    if (volt_handle_is_set(&handle)) volt_detach(&handle);
    rt_end();
}
static void receive_beside(void (*fn)(void *), void *arg, void (*beside)(void)) {
    int t = vmc_spawn(fn, arg);
    rt_carry(w0);
    if (beside) beside();
    receive_to_the_end(t);
}
static void cancel_receiver(void) { volt_cancel(&handle); }
static void wake_receiver(void) {
    volt_wake(waker);
    volt_waker_release(waker);
}

// ---- oneshot

static volt_oneshot *oneshot;
static int written; // plain: by the sender
static int rc_send;
static volt_poll receives(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_oneshot_recv(cx, oneshot));
    if (r->rc == VALUE) VMC_ASSERT(written == 7);
    if (r->rc != -ECANCELED) vmc_free(oneshot); // the sender is done with it
    result = r->rc;
    n_ended++;
    VOLT_END(0);
}
static void send_one(void *unused) {
    (void)unused;
    rt_carry(w1);
    written = 7;
    rc_send = volt_oneshot_send(oneshot, VALUE);
    rt_run_all(w1);
}
static void close_one(void *unused) {
    (void)unused;
    rt_carry(w1);
    volt_oneshot_close(oneshot);
    rt_run_all(w1);
}
static void oneshot_start(volt_fn *fn) {
    oneshot = vmc_alloc(sizeof *oneshot);
    start(fn);
}
SCENARIO(oneshot_send_recv, .class = VMC_BOUNDED, .preemptions = 2) {
    oneshot_start(receives);
    receive_beside(send_one, NULL, NULL);
    VMC_ASSERT(result == VALUE && rc_send == 0);
}
// The sender has never seen the task, which nothing else holds, nor its memory.
SCENARIO(oneshot_new_task, .class = VMC_BOUNDED, .preemptions = 2) {
    oneshot = vmc_alloc(sizeof *oneshot);
    rt_make(2);
    int t = vmc_spawn(send_one, NULL);
    rt_carry(w0);
    spawn_receiver(receives, NULL);
    receive_to_the_end(t);
    VMC_ASSERT(result == VALUE && rc_send == 0);
}
SCENARIO(oneshot_close_recv, .class = VMC_BOUNDED, .preemptions = 2) { // by the sender
    oneshot_start(receives);
    receive_beside(close_one, NULL, NULL);
    VMC_ASSERT(result == -EPIPE);
}
// It is woken for another reason: it waits on, or has it.
static volt_poll receives_woken(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    waker = volt_waker_retain(cx);
    VOLT_AWAIT(r->rc, volt_oneshot_recv(cx, oneshot));
    VMC_ASSERT(r->rc == VALUE && written == 7);
    vmc_free(oneshot);
    n_ended++;
    VOLT_END(0);
}
SCENARIO(oneshot_woken_for_nothing, .class = VMC_BOUNDED, .preemptions = 2) {
    oneshot_start(receives_woken);
    let_it_wait();
    receive_beside(send_one, NULL, wake_receiver);
}
// The wait is cancelled: the value stays there.
SCENARIO(oneshot_cancel) {
    vmc_must_happen("received");
    vmc_must_happen("cancelled");
    oneshot_start(receives);
    let_it_wait();
    receive_beside(send_one, NULL, cancel_receiver);
    VMC_ASSERT(result == VALUE || result == -ECANCELED);
    if (result == -ECANCELED) {
        int64_t value = 0;
        VMC_ASSERT(volt_oneshot_try_recv(oneshot, &value) == 0 && value == VALUE);
        VMC_ASSERT(volt_oneshot_try_recv(oneshot, &value) == -EPIPE);
        vmc_free(oneshot);
    }
    vmc_reached(result == VALUE ? "received" : "cancelled");
}
// The wait is cancelled, and then it waits again, shielded.
static volt_poll receives_again(volt_cx *cx, void *arg) {
    receiver *r = arg;
    static volt_shield shield;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_oneshot_recv(cx, oneshot));
    if (r->rc == -ECANCELED) {
        vmc_reached("cancelled");
        volt_shield_begin(cx, &shield, VOLT_NEVER);
        VOLT_AWAIT(r->rc, volt_oneshot_recv(cx, oneshot));
        volt_shield_end(cx, &shield);
    }
    VMC_ASSERT(r->rc == VALUE && written == 7);
    vmc_free(oneshot);
    n_ended++;
    VOLT_END(0);
}
SCENARIO(oneshot_cancel_again, .class = VMC_BOUNDED, .preemptions = 2) {
    vmc_must_happen("cancelled");
    oneshot_start(receives_again);
    let_it_wait();
    receive_beside(send_one, NULL, cancel_receiver);
}
// Without a task: a thread that finds the value has it, and may free the object.
static void send_outside(void *unused) {
    (void)unused;
    written = 7;
    rc_send = volt_oneshot_send(oneshot, VALUE);
}
SCENARIO(oneshot_try) {
    int64_t value = 0;
    vmc_must_happen("sent");
    oneshot = vmc_alloc(sizeof *oneshot);
    int t = vmc_spawn(send_outside, NULL), rc = volt_oneshot_try_recv(oneshot, &value);
    if (rc == 0) {
        VMC_ASSERT(value == VALUE && written == 7);
        vmc_reached("sent");
        vmc_free(oneshot);
    }
    vmc_join(t);
    if (rc == 0) return;
    VMC_ASSERT(rc == -EAGAIN && volt_oneshot_try_recv(oneshot, &value) == 0);
    vmc_free(oneshot);
}
// The receiver wants none: the sender is told, and may free it, or was first.
static void close_outside(void *unused) {
    (void)unused;
    written = 7;
    volt_oneshot_close(oneshot);
}
SCENARIO(oneshot_close_send) {
    vmc_must_happen("too late");
    oneshot = vmc_alloc(sizeof *oneshot);
    int t = vmc_spawn(close_outside, NULL), rc = volt_oneshot_send(oneshot, VALUE);
    VMC_ASSERT(rc == 0 || rc == -EPIPE);
    if (rc == -EPIPE) {
        VMC_ASSERT(written == 7 && volt_oneshot_is_closed(oneshot));
        vmc_reached("too late");
        vmc_free(oneshot);
    }
    vmc_join(t);
    if (rc == -EPIPE) return;
    int64_t value = 0;
    VMC_ASSERT(volt_oneshot_try_recv(oneshot, &value) == 0 && value == VALUE); // it is there
    VMC_ASSERT(volt_oneshot_is_closed(oneshot));
    vmc_free(oneshot);
}
SCENARIO(oneshot_is_closed) {
    vmc_must_happen("closed");
    oneshot = vmc_alloc(sizeof *oneshot);
    int t = vmc_spawn(close_outside, NULL);
    if (volt_oneshot_is_closed(oneshot)) {
        VMC_ASSERT(written == 7);
        vmc_reached("closed");
    }
    vmc_join(t);
    vmc_free(oneshot);
}

// ---- queue

typedef struct message {
    volt_queue_node node;
    int content; // plain
} message;
static volt_queue *queue;

static message *pop(int *rc) {
    volt_queue_node *n = NULL;
    *rc = volt_queue_try_pop(queue, &n);
    return (message *)(void *)n;
}
static message *make_message(int content) {
    message *m = vmc_alloc(sizeof *m);
    m->content = content;
    return m;
}
static void push(int content) {
    VMC_ASSERT(volt_queue_push(queue, &make_message(content)->node) == 0);
}
// Takes what it must get in this order, then the end, and frees all.
static volt_poll takes_until_the_end(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    for (result = 0;;) {
        VOLT_AWAIT(r->rc, volt_queue_pop(cx, queue, &r->node));
        if (r->rc != 1) break;
        message *m = (message *)(void *)r->node;
        VMC_ASSERT(m->content == ++result);
        vmc_free(m);
    }
    VMC_ASSERT(r->rc == 0);
    vmc_free(queue);
    n_ended++;
    VOLT_END(0);
}
static void queue_start(volt_fn *fn) {
    queue = vmc_alloc(sizeof *queue);
    start(fn);
}
static void push_and_close(void *n) {
    rt_carry(w1);
    for (int i = 1; i <= (intptr_t)n; i++) push(i);
    volt_queue_close(queue);
    rt_run_all(w1);
}
SCENARIO(queue_pop_close, .class = VMC_BOUNDED, .preemptions = 2) {
    queue_start(takes_until_the_end);
    receive_beside(push_and_close, (void *)0, NULL);
    VMC_ASSERT(result == 0);
}
SCENARIO(queue_pop_push_close, .class = VMC_BOUNDED, .preemptions = 2) {
    queue_start(takes_until_the_end);
    receive_beside(push_and_close, (void *)1, NULL);
    VMC_ASSERT(result == 1);
}
SCENARIO(queue_pop_two_push_close, .class = VMC_BOUNDED, .preemptions = 2) {
    queue_start(takes_until_the_end);
    receive_beside(push_and_close, (void *)2, NULL);
    VMC_ASSERT(result == 2);
}
// Two push; the one that finds the receiver waiting wakes it, once.
static volt_poll takes_two(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    for (result = 0; result < 3;) {
        VOLT_AWAIT(r->rc, volt_queue_pop(cx, queue, &r->node));
        VMC_ASSERT(r->rc == 1);
        message *m = (message *)(void *)r->node;
        result += m->content;
        vmc_free(m);
    }
    vmc_free(queue);
    n_ended++;
    VOLT_END(0);
}
static void push_inside(void *content) {
    rt_carry(w1);
    push((int)(intptr_t)content);
    rt_run_all(w1);
}
static void push_two(void) { push(2); }
SCENARIO(queue_pop_two_push, .class = VMC_BOUNDED, .preemptions = 2) {
    queue_start(takes_two);
    let_it_wait();
    receive_beside(push_inside, (void *)1, push_two);
}
// The wait is cancelled while something is pushed, which stays there, or is received.
static volt_poll takes_one(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_queue_pop(cx, queue, &r->node));
    result = r->rc;
    if (result == 1) vmc_free(r->node);
    n_ended++;
    VOLT_END(0);
}
SCENARIO(queue_pop_cancel, .class = VMC_BOUNDED, .preemptions = 2) {
    int rc;
    vmc_must_happen("received");
    vmc_must_happen("cancelled");
    queue_start(takes_one);
    let_it_wait();
    receive_beside(push_inside, (void *)1, cancel_receiver);
    message *m = pop(&rc);
    VMC_ASSERT(result == 1 ? !m && rc == -EAGAIN : result == -ECANCELED && m && rc == 1);
    vmc_reached(m ? "cancelled" : "received");
    if (m) vmc_free(m);
    vmc_free(queue);
}
// It is woken for another reason: it waits on, or has it.
static volt_poll takes_one_woken(volt_cx *cx, void *arg) {
    receiver *r = arg;
    VOLT_BEGIN(cx, r);
    waker = volt_waker_retain(cx);
    VOLT_AWAIT(r->rc, volt_queue_pop(cx, queue, &r->node));
    VMC_ASSERT(r->rc == 1);
    vmc_free(r->node);
    vmc_free(queue);
    n_ended++;
    VOLT_END(0);
}
SCENARIO(queue_pop_woken_for_nothing, .class = VMC_BOUNDED, .preemptions = 2) {
    queue_start(takes_one_woken);
    let_it_wait();
    receive_beside(push_inside, (void *)1, wake_receiver);
}

// ---- queue, without a task

static void push_close_outside(void *n) {
    for (int i = 1; i <= (intptr_t)n; i++) push(i);
    volt_queue_close(queue);
}
// All items pushed before the close are received, in order, before the end is told.
SCENARIO(queue_push_close) {
    int rc = 0, t;
    vmc_must_happen("the end, beside the close");
    queue = vmc_alloc(sizeof *queue);
    t = vmc_spawn(push_close_outside, (void *)3);
    for (int i = 1; i <= 3;) {
        message *m = pop(&rc);
        if (rc == 1) VMC_ASSERT(m->content == i++);
        if (rc == 1) vmc_free(m);
        else VMC_ASSERT(rc == -EAGAIN);
        if (rc != 1 && t) vmc_join(t);
        if (rc != 1) t = 0;
    }
    VMC_ASSERT(!pop(&rc) && (rc == 0 || (t && rc == -EAGAIN)));
    if (rc == 0) vmc_free(queue);
    if (rc == 0 && t) vmc_reached("the end, beside the close");
    if (t) vmc_join(t);
    if (rc != 0) vmc_free(queue);
}
static void push_outside(void *content) { push((int)(intptr_t)content); }
// Two push: both are received, each once.
SCENARIO(queue_two_push) {
    int rc = 0, seen = 0, n = 0, is_joined = 0;
    queue = vmc_alloc(sizeof *queue);
    int t1 = vmc_spawn(push_outside, (void *)1), t2 = vmc_spawn(push_outside, (void *)2);
    while (n < 2) {
        message *m = pop(&rc);
        if (rc == 1) {
            n++;
            seen += m->content;
            vmc_free(m);
        } else {
            VMC_ASSERT(rc == -EAGAIN && !is_joined);
            is_joined = 1;
            vmc_join(t1);
            vmc_join(t2);
        }
    }
    VMC_ASSERT(seen == 3);
    if (!is_joined) {
        vmc_join(t1);
        vmc_join(t2);
    }
    vmc_free(queue);
}
// Two that are counted push: the release of the last closes the queue behind both messages, and is
// the last use of it.
static void push_and_release(void *content) {
    push((int)(intptr_t)content);
    volt_queue_release(queue);
}
SCENARIO(queue_two_release) {
    int rc = 0, seen = 0, is_joined = 0;
    vmc_must_happen("the end, beside the releases");
    queue = vmc_alloc(sizeof *queue);
    for (int i = 0; i < 2; i++) volt_queue_retain(queue);
    int t1 = vmc_spawn(push_and_release, (void *)1), t2 = vmc_spawn(push_and_release, (void *)2);
    for (;;) {
        message *m = pop(&rc);
        if (rc == 0) break;
        if (rc == 1) {
            seen += m->content;
            vmc_free(m);
        } else {
            VMC_ASSERT(rc == -EAGAIN && !is_joined);
            is_joined = 1;
            vmc_join(t1);
            vmc_join(t2);
        }
    }
    VMC_ASSERT(seen == 3);
    vmc_free(queue);
    if (is_joined) return;
    vmc_reached("the end, beside the releases");
    vmc_join(t1);
    vmc_join(t2);
}
// A holder that is not counted becomes a sender, or finds the queue closed by the last one.
static void retain_and_push(void *unused) {
    (void)unused;
    int rc = volt_queue_try_retain(queue);
    vmc_reached(rc == 0 ? "retained" : "too late");
    if (rc == 0) push_and_release((void *)2);
    else VMC_ASSERT(rc == -EPIPE);
}
SCENARIO(queue_release_beside_try_retain) {
    int rc, seen = 0;
    vmc_must_happen("retained");
    vmc_must_happen("too late");
    queue = vmc_alloc(sizeof *queue);
    volt_queue_retain(queue);
    int t = vmc_spawn(retain_and_push, NULL);
    push_and_release((void *)1);
    vmc_join(t);
    for (message *m; (m = pop(&rc)) != NULL; vmc_free(m)) seen += m->content;
    VMC_ASSERT(rc == 0 && (seen == 1 || seen == 3));
    vmc_free(queue);
}
// One pushes, one closes: received, or the pusher is told.
static int rc_push;
static void push_or_not(void *m) { rc_push = volt_queue_push(queue, &((message *)m)->node); }
SCENARIO(queue_push_beside_close) {
    int rc;
    vmc_must_happen("pushed");
    vmc_must_happen("too late");
    queue = vmc_alloc(sizeof *queue);
    message *m = make_message(1);
    int t = vmc_spawn(push_or_not, m);
    volt_queue_close(queue);
    vmc_join(t);
    VMC_ASSERT(pop(&rc) == (rc_push ? NULL : m) && rc == (rc_push == 0));
    vmc_reached(rc_push ? "too late" : "pushed");
    vmc_free(m);
    VMC_ASSERT(!pop(&rc) && rc == 0);
    vmc_free(queue);
}
static void close_queue(void *unused) {
    (void)unused;
    volt_queue_close(queue);
}
SCENARIO(queue_two_close) {
    int rc;
    queue = vmc_alloc(sizeof *queue);
    push(1);
    int t = vmc_spawn(close_queue, NULL);
    volt_queue_close(queue);
    message *m = pop(&rc);
    VMC_ASSERT(m && rc == 1);
    vmc_free(m);
    VMC_ASSERT(!pop(&rc) && rc == 0);
    vmc_join(t);
    vmc_free(queue);
}
