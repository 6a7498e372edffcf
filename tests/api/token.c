// SPDX-License-Identifier: MIT OR 0BSD
// Hooks of tokens: each is called once, by the thread that cancels, or never.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

static int n_called, order[8];
static void note_call(void *arg) { order[COUNT(n_called) - 1] = *(const int *)arg; }
static const int names[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
#define NAME(i_) ((void *)(uintptr_t)&names[i_])

TEST(hook_is_called_once_by_token_cancel) {
    volt_token t;
    volt_hook h;
    memset(&t, 0, sizeof t);
    CHECK_EQ(volt_token_hook(&t, &h, note_call, NAME(3)), 0);
    CHECK_EQ(n_called, 0);
    volt_token_cancel(&t);
    CHECK_EQ(n_called, 1);
    CHECK_EQ(order[0], 3);
    volt_token_cancel(&t); // once
    CHECK_EQ(n_called, 1);
    CHECK_EQ(volt_token_unhook(&h), 0);
    volt_token_deinit(&t);
}
// Each set of three hooks is taken off, in both directions.
TEST(hook_that_was_unhooked_is_not_called) {
    for (int choice = 0; choice < 16; choice++) {
        volt_token t;
        volt_hook h[3];
        int gone = choice / 2, is_down = choice % 2, called = 0;
        memset(&t, 0, sizeof t);
        n_called = 0;
        for (int i = 0; i < 3; i++) CHECK_EQ(volt_token_hook(&t, &h[i], note_call, NAME(i)), 0);
        for (int k = 0; k < 3; k++) {
            int i = is_down ? 2 - k : k;
            if (gone >> i & 1) CHECK_EQ(volt_token_unhook(&h[i]), 1);
        }
        volt_token_cancel(&t);
        for (int k = 0; k < n_called; k++) called |= 1 << order[k];
        CHECK_EQ(called, 7 - gone);
        CHECK_EQ(n_called, (called & 1) + (called >> 1 & 1) + (called >> 2));
        for (int i = 0; i < 3; i++)
            if (called >> i & 1) CHECK_EQ(volt_token_unhook(&h[i]), 0);
        volt_token_deinit(&t);
    }
}
TEST(hook_on_a_cancelled_token_is_refused) {
    volt_token t;
    volt_hook h;
    memset(&t, 0, sizeof t);
    volt_token_cancel(&t);
    CHECK_EQ(volt_token_hook(&t, &h, note_call, NAME(1)), -ECANCELED);
    CHECK_EQ(volt_token_unhook(&h), 0);
    CHECK_EQ(n_called, 0);
    volt_token_deinit(&t);
}
// Of a whole tree, each once, also where there is none in between.
TEST(hooks_of_a_token_tree_are_called_once) {
    volt_token t[5];
    volt_hook h[5];
    memset(&t[0], 0, sizeof t[0]);
    volt_token_init(&t[1], &t[0]);
    volt_token_init(&t[2], &t[1]); // without a hook
    volt_token_init(&t[3], &t[2]);
    volt_token_init(&t[4], &t[0]);
    for (int i = 0; i < 5; i++)
        if (i != 2) CHECK_EQ(volt_token_hook(&t[i], &h[i], note_call, NAME(i)), 0);
    volt_token_cancel(&t[1]);
    CHECK_EQ(n_called, 2);
    CHECK(order[0] + order[1] == 4 && order[0] != 2); // 1 and 3
    CHECK_EQ(volt_token_unhook(&h[4]), 1);
    volt_token_cancel(&t[0]);
    CHECK_EQ(n_called, 3);
    CHECK_EQ(order[2], 0);
    CHECK_EQ(volt_token_unhook(&h[0]), 0);
    CHECK_EQ(volt_token_unhook(&h[1]), 0);
    CHECK_EQ(volt_token_unhook(&h[3]), 0);
    for (int i = 4; i >= 0; i--) volt_token_deinit(&t[i]);
}
TEST_DIES(token_deinit_with_a_hook_is_misuse, "has waiters, children or hooks") {
    static volt_token t;
    static volt_hook h;
    CHECK_EQ(volt_token_hook(&t, &h, note_call, NAME(1)), 0);
    volt_token_deinit(&t);
}

// ---- a hook wakes, spawns, cancels: under no lock

typedef struct {
    volt_token *other;
    volt_rt *rt;
    int n_ran;
} doer;
typedef struct {
    volt_frame frame;
    int *n_ran;
} ran;
static volt_poll ran_run(volt_cx *cx, void *arg) {
    (void)cx;
    COUNT(*((ran *)arg)->n_ran);
    return volt_ready(0);
}
static void do_things(void *arg) {
    doer *d = (doer *)arg;
    volt_token t;
    volt_hook h;
    memset(&t, 0, sizeof t);
    CHECK_EQ(volt_token_hook(&t, &h, note_call, NAME(1)), 0);
    CHECK_EQ(volt_token_unhook(&h), 1);
    volt_token_cancel(d->other);
    RT_SPAWN(d->rt, NULL, ran_run, (ran){ .n_ran = &d->n_ran });
}
TEST(hook_may_cancel_and_spawn) {
    volt_token t, other;
    volt_hook h, h_other;
    memset(&t, 0, sizeof t);
    memset(&other, 0, sizeof other);
    volt_rt *rt = create_on(1);
    doer d = { .other = &other, .rt = rt };
    CHECK_EQ(volt_token_hook(&t, &h, do_things, &d), 0);
    CHECK_EQ(volt_token_hook(&other, &h_other, note_call, NAME(2)), 0);
    volt_token_cancel(&t);
    CHECK_EQ(n_called, 1);
    UNTIL(READ(d.n_ran) == 1);
    CHECK_EQ(volt_token_unhook(&h), 0);
    CHECK_EQ(volt_token_unhook(&h_other), 0);
    destroy(rt);
}
// A task that waits for the token is woken before its hooks are called.
typedef struct {
    volt_frame frame;
    volt_token *stop;
    int rc, *is_woken;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = (sleeper *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_token_wait(cx, s->stop));
    WRITE(*s->is_woken, 1);
    VOLT_END(s->rc);
}
static void see_it_woken(void *arg) { UNTIL(READ(*(int *)arg)); }
TEST_OF_THREADS(token_cancel_wakes_waiters_before_hooks) {
    volt_token t;
    volt_hook h;
    int is_woken = 0;
    memset(&t, 0, sizeof t);
    volt_rt *rt = create_on(1);
    RT_SPAWN(rt, NULL, sleeper_run, (sleeper){ .stop = &t, .is_woken = &is_woken });
    CHECK_EQ(volt_token_hook(&t, &h, see_it_woken, &is_woken), 0);
    for (int n = 0; n == 0;) { // it waits
        volt__lock(&t.lock_);
        n = t.waiters_ != NULL;
        volt__unlock(&t.lock_);
    }
    volt_token_cancel(&t);
    CHECK_EQ(volt_token_unhook(&h), 0);
    destroy(rt);
}

// ---- two at once

typedef struct {
    volt_token *t;
    volt_hook h;
    int is_inside, may_go, rc, is_back;
} meeting;
static void stay_inside(void *arg) {
    meeting *m = (meeting *)arg;
    WRITE(m->is_inside, 1);
    UNTIL(READ(m->may_go));
}
static void *cancel_main(void *arg) {
    volt_token_cancel(((meeting *)arg)->t);
    return NULL;
}
static void *unhook_main(void *arg) {
    meeting *m = (meeting *)arg;
    m->rc = volt_token_unhook(&m->h);
    WRITE(m->is_back, 1);
    return NULL;
}
// A thread that takes a hook off while it is being called waits for the end of the call.
TEST_OF_THREADS(unhook_waits_for_the_call) {
    volt_token t;
    meeting m = { .t = &t };
    memset(&t, 0, sizeof t);
    CHECK_EQ(volt_token_hook(&t, &m.h, stay_inside, &m), 0);
    pthread_t canceller = start_thread(cancel_main, &m);
    UNTIL(READ(m.is_inside));
    pthread_t other = start_thread(unhook_main, &m);
    for (int i = 0; i < 100; i++) sched_yield(); // it could be back by now
    CHECK_EQ(READ(m.is_back), 0);
    WRITE(m.may_go, 1);
    join_thread(other);
    CHECK_EQ(m.rc, 0);
    join_thread(canceller);
    volt_token_deinit(&t);
}
// One cancels while another one takes off: called, or not, but never after it was taken off.
typedef struct {
    volt_hook h;
    int *n;
} fleeting;
static void count_fleeting(void *arg) { COUNT(*((fleeting *)arg)->n); }
TEST_OF_THREADS(hook_is_not_called_after_racing_unhook) {
    enum { ROUNDS = 300, HOOKS = 4 };
    int n_called_at_all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        volt_token t;
        meeting m = { .t = &t };
        memset(&t, 0, sizeof t);
        fleeting *f[HOOKS];
        int n[HOOKS] = { 0 }, n_at_unhook[HOOKS];
        for (int i = 0; i < HOOKS; i++) {
            f[i] = (fleeting *)calloc(1, sizeof *f[i]);
            CHECK(f[i]);
            f[i]->n = &n[i];
            CHECK_EQ(volt_token_hook(&t, &f[i]->h, count_fleeting, f[i]), 0);
        }
        pthread_t canceller = start_thread(cancel_main, &m);
        for (int i = (int)RANDOM_BELOW(60); i > 0; i--) VOLT_CPU_RELAX();
        for (int i = 0; i < HOOKS; i++) {
            int rc = volt_token_unhook(&f[i]->h);
            n_at_unhook[i] = n[i]; // plain: the call is over
            CHECK_EQ(n[i], rc == 0);
            n_called_at_all += n[i];
            memset(f[i], 0xdd, sizeof *f[i]);
            free(f[i]);
        }
        join_thread(canceller);
        for (int i = 0; i < HOOKS; i++) CHECK_EQ(n[i], n_at_unhook[i]);
        volt_token_deinit(&t);
    }
    printf("%d of %d called\n", n_called_at_all, ROUNDS * HOOKS);
}
