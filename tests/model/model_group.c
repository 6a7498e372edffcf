// SPDX-License-Identifier: MIT OR 0BSD
// Groups: the end of a member against wait, close, cancel, collect and spawn of the owner; and a
// cancel by a thread against a spawn. The owner goes on exactly when the last member has ended, and
// the group's memory may go at once: the member that ends last must not touch it any more. A member
// that is cancelled while it ends stays ended.
//
// Tasks are polled by the real poll on two real workers: the members on worker 1, as if stolen.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { MEMBERS = 2, ERROR = -EIO };
typedef struct member {
    volt_frame frame;
    int64_t rc;
} member;
typedef struct owner {
    volt_frame frame;
    volt_group *group;
    int64_t rc, first, second, third;
} owner;
static owner state;
static volt_group *group;
static volt_handle handle;
static volt_token hold; // members wait for it
static uint32_t n_ended;
static int64_t written[MEMBERS]; // plain: by members, for the owner that waits for them

static void note_end(void) {
    written[__atomic_fetch_add(&n_ended, 1, __ATOMIC_RELAXED)] = 7;
}
static volt_poll end_at_once(volt_cx *cx, void *arg) {
    member *m = arg;
    VOLT_BEGIN(cx, m);
    note_end();
    VOLT_END(m->rc);
}
static volt_poll end_when_told(volt_cx *cx, void *arg) {
    member *m = arg;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, volt_token_wait(cx, &hold));
    note_end();
    VOLT_END(m->rc);
}
static void check_ended(uint32_t n) {
    for (uint32_t i = 0; i < n; i++) VMC_ASSERT(written[i] == 7);
}

// Worker 0 runs the owner until it waits for its members, which worker 1 then has.
static void start(volt_fn *owner_fn) {
    group = vmc_alloc(sizeof *group);
    make_runtime_of_own_rings(2);
    spawn_on(workers[0], &handle, owner_fn, &state);
    act_as(workers[0]);
    workers[0]->needs_watchdog = 0;
    volt__poll_task(workers[0], volt__next_local(workers[0]));
    for (volt__task *t; (t = volt__next_local(workers[0])) != NULL;) volt__push_ring(workers[1], t);
    act_as(NULL);
}
static void run_members(void *arg) {
    (void)arg;
    drain(workers[1]);
}
// Members that wait are polled once, before the other threads start.
static void let_members_wait(void) {
    run_members(NULL);
    act_as(NULL);
}
static int64_t end(void) {
    int64_t value = 0;
    for (uint32_t i = 0; i < rt->started; i++) drain(workers[i]);
    act_as(NULL);
    VMC_ASSERT(volt_try_join(&handle, &value) == 0);
    finish();
    return value;
}
#define MEMBER(fn_, rc_) VMC_ASSERT(VOLT_GROUP_SPAWN(cx, group, fn_, (member){ .rc = (rc_) }) == 0)

// ---- wait: two members end on two workers

static volt_poll wait_for_two(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(end_at_once, 0);
    MEMBER(end_at_once, ERROR);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, group));
    check_ended(2);
    vmc_free(group);
    VOLT_END(o->rc);
}
static void run_one_here(void *arg) {
    act_as(workers[0]);
    volt__poll_task(workers[0], arg);
    drain(workers[0]);
    act_as(NULL);
}
static void end_one_here(volt_fn *fn) {
    start(fn);
    act_as(workers[1]);
    volt__task *one = volt__next_local(workers[1]);
    act_as(NULL);
    int t = vmc_spawn(run_members, NULL);
    run_one_here(one);
    vmc_join(t);
    VMC_ASSERT(end() == ERROR);
}
SCENARIO(group_wait_two_ends) { end_one_here(wait_for_two); }

// ---- the owner, woken for another reason, looks while the member ends

static void cancel_owner(void *arg) {
    (void)arg;
    act_as(workers[0]);
    volt_cancel(&handle);
    drain(workers[0]);
    act_as(NULL);
}
static volt_poll wait_then_close(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(end_at_once, 0);
    VOLT_AWAIT(o->first, volt_group_wait(cx, group));
    VOLT_AWAIT(o->second, volt_group_close(cx, group)); // shields itself
    check_ended(1);
    vmc_free(group);
    VOLT_END(o->first);
}
SCENARIO(group_close_end) {
    vmc_must_happen("cancelled");
    vmc_must_happen("waited");
    start(wait_then_close);
    int t = vmc_spawn(run_members, NULL);
    cancel_owner(NULL);
    vmc_join(t);
    int64_t rc = end();
    VMC_ASSERT(rc == 0 || rc == -ECANCELED);
    vmc_reached(rc ? "cancelled" : "waited");
}
static volt_poll wait_then_close_told(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(end_when_told, 0);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, group));
    VOLT_AWAIT(o->rc, volt_group_close(cx, group));
    vmc_free(group);
    VOLT_END(0);
}
static void tell_members(void *arg) {
    (void)arg;
    act_as(workers[1]);
    volt_token_cancel(&hold);
    drain(workers[1]);
    act_as(NULL);
}
// The member waits; it is cancelled by the close while it is told to end.
SCENARIO(group_cancel_member_ends) {
    start(wait_then_close_told);
    let_members_wait();
    int t = vmc_spawn(tell_members, NULL);
    cancel_owner(NULL);
    vmc_join(t);
    VMC_ASSERT(end() == 0);
    VMC_ASSERT(n_ended == 1);
}

// ---- members that fail together: one waits, or begins to, while the other ends with an error

static volt_poll wait_for_failure(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    volt_group_fail_together(group);
    MEMBER(end_when_told, 0);
    MEMBER(end_at_once, ERROR);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, group));
    check_ended(2);
    vmc_free(group);
    VOLT_END(o->rc);
}
SCENARIO(group_failure_beside_member) { end_one_here(wait_for_failure); }

// ---- collect: each result is taken exactly once

static volt_poll collect_two(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    uint64_t id;
    volt_group_collect(group);
    MEMBER(end_at_once, 1);
    MEMBER(end_at_once, 2);
    VOLT_AWAIT(o->first, volt_group_next(cx, group, &id));
    VMC_ASSERT(o->first == (int64_t)id + 1);
    VOLT_AWAIT(o->second, volt_group_next(cx, group, &id));
    VMC_ASSERT(o->second == (int64_t)id + 1);
    VOLT_AWAIT(o->third, volt_group_next(cx, group, NULL));
    check_ended(2);
    VMC_ASSERT(o->first + o->second == 3 && o->third == -ENOENT);
    vmc_free(group);
    VOLT_END(0);
}
// The owner takes the first result while the second member ends.
static void drain_first(void *arg) {
    (void)arg;
    drain(workers[0]);
    act_as(NULL);
}
SCENARIO(group_collect) {
    start(collect_two);
    act_as(workers[1]);
    workers[1]->needs_watchdog = 0;
    volt__poll_task(workers[1], volt__next_local(workers[1]));
    volt__push_ring(workers[0], volt__lifo_take(workers[1])); // the owner
    act_as(NULL);
    int t = vmc_spawn(run_members, NULL);
    drain_first(NULL);
    vmc_join(t);
    VMC_ASSERT(end() == 0);
}

// ---- spawn: the owner adds a member while the first one ends

static volt_poll spawn_another(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(end_at_once, 0);
    VOLT_AWAIT(volt_yield(cx));
    MEMBER(end_at_once, ERROR);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, group));
    check_ended(2);
    vmc_free(group);
    VOLT_END(o->rc);
}
SCENARIO(group_spawn_end) {
    group = vmc_alloc(sizeof *group);
    make_runtime_of_own_rings(2);
    spawn_on(workers[0], &handle, spawn_another, &state);
    act_as(workers[0]);
    workers[0]->needs_watchdog = 0;
    volt__poll_task(workers[0], volt__next_local(workers[0])); // until it yields
    volt__task *first = volt__lifo_take(workers[0]), *self_ = volt__next_local(workers[0]);
    volt__push_ring(workers[1], first);
    act_as(NULL);
    int t = vmc_spawn(run_members, NULL);
    run_one_here(self_);
    vmc_join(t);
    VMC_ASSERT(end() == ERROR);
}

// ---- close: members that wait forever are cancelled, and end

static volt_poll wait_without_end(volt_cx *cx, void *arg) {
    member *m = arg;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, volt_sleep_forever(cx));
    VMC_ASSERT(m->rc == -ECANCELED);
    note_end();
    VOLT_END(0);
}
static volt_poll close_waiting(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(wait_without_end, 0);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(o->rc, volt_group_close(cx, group));
    check_ended(1);
    vmc_free(group);
    VOLT_END(0);
}
// Worker 0 runs the owner until it yields; worker 1 then has the member, while the owner closes.
static void close_beside_first_poll(volt_fn *owner_fn) {
    group = vmc_alloc(sizeof *group);
    make_runtime_of_own_rings(2);
    spawn_on(workers[0], &handle, owner_fn, &state);
    act_as(workers[0]);
    workers[0]->needs_watchdog = 0;
    volt__poll_task(workers[0], volt__next_local(workers[0])); // until it yields
    volt__push_ring(workers[1], volt__lifo_take(workers[0]));
    act_as(NULL);
    int t = vmc_spawn(run_members, NULL);
    drain_first(NULL);
    vmc_join(t);
    VMC_ASSERT(end() == 0);
}
// The member is polled for the first time while it is cancelled.
SCENARIO(group_close_cancels) { close_beside_first_poll(close_waiting); }

// A member adds another one while the group is closed: it ends before the close does, or is
// refused.
static volt_poll adds_another(volt_cx *cx, void *arg) {
    member *m = arg;
    VOLT_BEGIN(cx, m);
    m->rc = VOLT_GROUP_SPAWN(cx, group, end_at_once, (member){ .rc = 0 });
    VMC_ASSERT(m->rc == 0 || m->rc == -ECANCELED);
    vmc_reached(m->rc == 0 ? "added" : "refused");
    note_end();
    VOLT_END(m->rc);
}
static volt_poll close_beside_spawn(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    MEMBER(adds_another, 0);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(o->rc, volt_group_close(cx, group));
    VMC_ASSERT(__atomic_load_n(&n_ended, __ATOMIC_RELAXED) >= 1);
    check_ended(n_ended);
    vmc_free(group);
    VOLT_END(0);
}
SCENARIO(group_close_spawn, .class = VMC_BOUNDED, .preemptions = 3) {
    vmc_must_happen("added");
    vmc_must_happen("refused");
    close_beside_first_poll(close_beside_spawn);
}

// ---- cancel, by a thread that is no worker, beside a spawn of the owner: a member from before is
// cancelled, one that is added meanwhile is or is not, and each is polled and ends

typedef struct counted {
    volt_frame frame;
    int i;
    int64_t rc;
} counted;
static int64_t ends[MEMBERS]; // of each member
static uint32_t n_first_polls;
static volt_poll wait_until_told(volt_cx *cx, void *arg) {
    counted *m = arg;
    VOLT_BEGIN(cx, m);
    __atomic_fetch_add(&n_first_polls, 1, __ATOMIC_RELAXED);
    VOLT_AWAIT(m->rc, volt_token_wait(cx, &hold));
    ends[m->i] = m->rc;
    VOLT_END(m->rc);
}
#define COUNTED(i_)                                                                                \
    VMC_ASSERT(VOLT_GROUP_SPAWN(cx, group, wait_until_told, (counted){ .i = (i_) }) == 0)
static volt_poll spawn_beside_cancel(volt_cx *cx, void *arg) {
    owner *o = arg;
    VOLT_BEGIN(cx, o);
    COUNTED(0);
    VOLT_AWAIT(volt_yield(cx));
    COUNTED(1);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, group));
    vmc_free(group);
    VOLT_END(o->rc);
}
static void cancel_group(void *unused) {
    (void)unused;
    volt_group_cancel(group);
}
SCENARIO(group_cancel_spawn, .class = VMC_BOUNDED, .preemptions = 3) {
    vmc_must_happen("the new member is cancelled");
    vmc_must_happen("it came later");
    group = vmc_alloc(sizeof *group);
    make_runtime_of_own_rings(1);
    spawn_on(workers[0], &handle, spawn_beside_cancel, &state);
    act_as(workers[0]);
    workers[0]->needs_watchdog = 0;
    volt__poll_task(workers[0], volt__next_local(workers[0])); // until it yields
    volt__poll_task(workers[0], volt__next_local(workers[0])); // the member, until it waits
    act_as(NULL);
    int t = vmc_spawn(cancel_group, NULL);
    drain(workers[0]);
    vmc_join(t);
    drain(workers[0]);
    VMC_ASSERT(ends[0] == -ECANCELED && n_first_polls == 2);
    vmc_reached(ends[1] ? "the new member is cancelled" : "it came later");
    volt_token_cancel(&hold);
    VMC_ASSERT(end() == -ECANCELED);
}
