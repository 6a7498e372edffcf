// SPDX-License-Identifier: MIT OR 0BSD
// Tokens ([C1]) and what waits for them: a waiter that links itself while the token is cancelled is
// woken or sees it; a waiter that was told of the cancellation may free the token at once; a task
// that finds it cancelled sees what the canceller wrote before. Tasks are polled by the real poll
// on real workers.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { WRITTEN = 7 };
static volt_token *token;
static uint32_t message; // plain
typedef struct waiter {
    volt_frame frame;
    volt_token_link link;
    int64_t rc, is_over;
} waiter;
static waiter state;
static volt_handle handle;

static void cancel_token(void *arg) {
    (void)arg;
    message = WRITTEN;
    volt_token_cancel(token);
}
static void see_cancelled(void) {
    VMC_ASSERT(message == WRITTEN);
    vmc_free(token);
}
// Result of the task, once all threads have ended.
static int64_t result(void) {
    int64_t value = 0;
    for (uint32_t i = 0; i < rt->started; i++) drain(workers[i]);
    act_as(NULL);
    VMC_ASSERT(volt_try_join(&handle, &value) == 0); // it was woken
    finish();
    return value;
}

// ---- wait

static volt_poll wait_and_free(volt_cx *cx, void *arg) {
    waiter *w = arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_token_wait(cx, token));
    see_cancelled();
    VOLT_END(w->rc);
}
SCENARIO(token_wait_cancel) {
    token = vmc_alloc(sizeof *token);
    make_runtime(2, UINT32_MAX);
    spawn_on(workers[0], &handle, wait_and_free, &state);
    int t = vmc_spawn(drain, workers[0]);
    cancel_token(NULL);
    vmc_join(t);
    VMC_ASSERT(result() == 0);
}

// ---- unless: the token is looked at without its lock; the barrier is taken afterwards

static volt_poll never_unless(volt_cx *cx, void *arg) {
    waiter *w = arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_with_token(cx, &w->link, token, volt_sleep_forever(cx)));
    see_cancelled();
    VOLT_END(w->rc);
}
SCENARIO(token_unless_cancel) {
    token = vmc_alloc(sizeof *token);
    make_runtime(2, UINT32_MAX);
    spawn_on(workers[0], &handle, never_unless, &state);
    int t = vmc_spawn(drain, workers[0]);
    cancel_token(NULL);
    vmc_join(t);
    VMC_ASSERT(result() == -ECANCELED);
}

// ---- is_cancelled: a flag that hands over what the canceller did

SCENARIO(token_is_cancelled) {
    vmc_must_happen("seen");
    token = vmc_alloc(sizeof *token);
    int t = vmc_spawn(cancel_token, NULL);
    if (volt_token_is_cancelled(token)) {
        VMC_ASSERT(message == WRITTEN);
        vmc_reached("seen");
    }
    vmc_join(t);
    vmc_free(token);
}

// ---- a child token made while the parent is cancelled is cancelled, now or at birth

static volt_token child;
static void make_child(void *arg) {
    (void)arg;
    volt_token_init(&child, token);
}
SCENARIO(token_child_cancel) {
    token = vmc_alloc(sizeof *token);
    int t = vmc_spawn(make_child, NULL);
    cancel_token(NULL);
    vmc_join(t);
    VMC_ASSERT(volt_token_is_cancelled(&child));
    volt_token_deinit(&child);
    vmc_free(token);
}

// Children come and go beside each other: all are in one list, also one that stays.
static void use_child(void *token_) {
    volt_token_init(token_, token);
    volt_token_deinit(token_);
}
SCENARIO(token_two_children) {
    volt_token other;
    token = vmc_alloc(sizeof *token);
    volt_token_init(&child, token);
    int t = vmc_spawn(use_child, &other);
    volt_token mine;
    use_child(&mine);
    vmc_join(t);
    VMC_ASSERT(token->child_ == &child && !child.prev_ && !child.next_);
    volt_token_deinit(&child);
    vmc_free(token);
}

// ---- the wait is cancelled, with its task, while the token is

static void cancel_task(void *arg) {
    (void)arg;
    volt_cancel(&handle);
}
static volt_poll wait_only(volt_cx *cx, void *arg) {
    waiter *w = arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_token_wait(cx, token));
    VOLT_END(w->rc);
}
SCENARIO(token_cancel_task_cancel) {
    vmc_must_happen("completed");
    vmc_must_happen("cancelled");
    token = vmc_alloc(sizeof *token);
    make_runtime(2, UINT32_MAX);
    spawn_on(workers[0], &handle, wait_only, &state);
    drain(workers[0]);
    int t = vmc_spawn(cancel_task, NULL);
    act_as(workers[0]); // a task of this worker cancels the token, and then the woken one runs
    cancel_token(NULL);
    drain(workers[0]);
    act_as(NULL);
    vmc_join(t);
    int64_t rc = result();
    VMC_ASSERT(rc == 0 || rc == -ECANCELED);
    vmc_reached(rc ? "cancelled" : "completed");
    vmc_free(token);
}

// ---- hooks: called once or never, and nothing of them is touched once they are taken off

typedef struct called {
    volt_hook hook;
    int n; // plain
} called;
static void count_call(void *arg) {
    VMC_ASSERT(message == WRITTEN);
    ((called *)arg)->n++;
}
static called *hook_on(void) {
    called *c = vmc_alloc(sizeof *c);
    VMC_ASSERT(volt_token_hook(token, &c->hook, count_call, c) == 0);
    return c;
}
// Gives whether it was called, frees it at once.
static int unhook(called *c) {
    int rc = volt_token_unhook(&c->hook);
    VMC_ASSERT(c->n == !rc);
    vmc_free(c);
    return !rc;
}
SCENARIO(token_unhook_beside_cancel) {
    vmc_must_happen("called");
    vmc_must_happen("not called");
    token = vmc_alloc(sizeof *token);
    called *c = hook_on();
    int t = vmc_spawn(cancel_token, NULL), was_called = unhook(c);
    if (was_called) vmc_free(token); // its canceller has let go of it
    vmc_join(t);
    if (!was_called) vmc_free(token);
    vmc_reached(was_called ? "called" : "not called");
}
SCENARIO(token_unhook_two_beside_cancel) {
    token = vmc_alloc(sizeof *token);
    called *first = hook_on(), *second = hook_on();
    int t = vmc_spawn(cancel_token, NULL);
    (void)unhook(second);
    (void)unhook(first);
    vmc_join(t);
    vmc_free(token);
}
SCENARIO(token_hook_beside_cancel) {
    vmc_must_happen("in time");
    vmc_must_happen("too late");
    token = vmc_alloc(sizeof *token);
    called *c = vmc_alloc(sizeof *c);
    int t = vmc_spawn(cancel_token, NULL);
    int rc = volt_token_hook(token, &c->hook, count_call, c);
    vmc_reached(rc ? "too late" : "in time");
    vmc_join(t);
    VMC_ASSERT(c->n == !rc && volt_token_unhook(&c->hook) == 0);
    vmc_free(c);
    vmc_free(token);
}
