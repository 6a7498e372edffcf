// SPDX-License-Identifier: MIT OR 0BSD
// Random programs with an oracle: every task ends exactly once, with the result that it said it
// would give; what it waited for is true; nothing is left. To repeat one: TEST_SEED.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

// ---- the oracle: what each task did

enum { MOST_TASKS = 60000 };
typedef struct {
    int state;      // 0 not spawned, 1 spawned, 2 ended; 3: ended twice
    int n_delivered;
    int may_cancel; // a cancel may have hit it, or one that it belongs to
    int64_t result; // as it said before it ended
} record;
typedef struct {
    record task[MOST_TASKS];
    int n_tasks, n_spawned, n_ended;
    int is_closing; // from here on all may be cancelled, and spawns be refused
} world;
static world now;

static int64_t plain_result(int id) { return (int64_t)id * 7 + 3; }
static int new_id(void) {
    int id = __atomic_fetch_add(&now.n_tasks, 1, __ATOMIC_ACQ_REL);
    return id < MOST_TASKS ? id : -1;
}
static void note_spawn(int id, int rc) {
    if (rc == 0) {
        COUNT(now.n_spawned);
    } else {
        CHECK_EQ(rc, -ESHUTDOWN); // the only way that a spawn fails here
        CHECK(READ(now.is_closing));
        WRITE(now.task[id].state, 0);
    }
}
static int64_t note_end(int id, int64_t result) {
    record *r = &now.task[id];
    CHECK(result == plain_result(id) || result == -ECANCELED);
    if (result == -ECANCELED) CHECK(READ(r->may_cancel) || READ(now.is_closing));
    r->result = result;
    CHECK_EQ(__atomic_fetch_add(&r->state, 1, __ATOMIC_ACQ_REL), 1);
    COUNT(now.n_ended);
    return result;
}
// A join, or a group, has given the result of this task.
static void note_result(int id, int64_t result) {
    record *r = &now.task[id];
    CHECK_EQ(READ(r->state), 2);
    CHECK_EQ(result, r->result);
    CHECK_EQ(COUNT(r->n_delivered), 1);
}

// ---- a foreign thread that wakes and spawns

enum { MAILS = 256 };
typedef struct {
    pthread_mutex_t lock;
    volt_waker waker[MAILS];
    int *flag[MAILS];
    int n, stop;
} post;
static post office = { .lock = PTHREAD_MUTEX_INITIALIZER };

// 0: full. The office owns the waker from here on.
static int post_send(volt_waker w, int *flag) {
    pthread_mutex_lock(&office.lock);
    int ok = office.n < MAILS && !office.stop;
    if (ok) {
        office.waker[office.n] = w;
        office.flag[office.n++] = flag;
    }
    pthread_mutex_unlock(&office.lock);
    return ok;
}
static int post_deliver(void) {
    volt_waker w = { NULL };
    int *flag = NULL;
    pthread_mutex_lock(&office.lock);
    if (office.n > 0) {
        int i = (int)RANDOM_BELOW(office.n);
        w = office.waker[i];
        flag = office.flag[i];
        office.waker[i] = office.waker[--office.n];
        office.flag[i] = office.flag[office.n];
    }
    pthread_mutex_unlock(&office.lock);
    if (!flag) return 0;
    if (RANDOM_BELOW(4) == 0) volt_wake(w); // for nothing
    WRITE(*flag, 1);                        // LAST TOUCH of it: the task may end
    volt_wake(w);
    volt_waker_release(w);
    return 1;
}

// ---- actors: tasks that do random things

typedef struct actor actor;
enum { KIDS = 4 };
typedef struct {
    volt_frame frame;
    int64_t rc;
} inner; // a child function of an actor
struct actor {
    volt_frame frame;
    int id, depth, steps, kind, k, n_kids;
    uint64_t random, spawn_id;
    volt_time d;
    int64_t rc;
    volt_handle h;
    volt_group group;
    volt_token token;
    volt_timer timer;
    volt_token_link link;
    volt_shield shield;
    inner step, wait;
    int fd[2], kid, kids[KIDS], *flag;
    char buf[8];
};
static volt_poll actor_run(volt_cx *cx, void *arg);

// The task's own numbers: what it does depends on the seed alone.
static uint64_t draw(actor *a, uint64_t n) {
    a->random = test__mix(a->random);
    return a->random % n;
}
// A child inherits that its parent may be cancelled.
static int make_child(actor *a, actor *child, int may_cancel) {
    memset(child, 0, sizeof *child);
    int id = a->depth > 0 ? new_id() : -1;
    if (id < 0) return 0;
    child->id = id;
    child->depth = a->depth - 1;
    child->steps = 1 + (int)draw(a, 4);
    child->random = draw(a, UINT64_MAX);
    WRITE(now.task[id].may_cancel, may_cancel || READ(now.task[a->id].may_cancel));
    WRITE(now.task[id].state, 1);
    a->kid = id;
    return 1;
}
static volt_time some_time(actor *a) { return VOLT_US(1 + draw(a, 3000)); }

// Each step gives 0, or -ECANCELED when the actor was cancelled in it, having cleaned up.
static int spawn_one(volt_cx *cx, actor *a, volt_handle *h, int may_cancel) {
    actor child;
    if (!make_child(a, &child, may_cancel)) return 0;
    int rc = VOLT_SPAWN(cx, h, actor_run, child);
    note_spawn(a->kid, rc);
    return rc == 0;
}
static volt_poll join_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    if (!spawn_one(cx, a, &a->h, 0)) VOLT_RETURN(0);
    VOLT_AWAIT(f->rc, volt_join(cx, &a->h));
    if (volt_handle_is_set(&a->h)) { // it was us
        CHECK_EQ(f->rc, -ECANCELED);
        volt_detach(&a->h);
        VOLT_RETURN(-ECANCELED);
    }
    note_result(a->kid, f->rc);
    VOLT_END(0);
}
static volt_poll cancel_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    if (!spawn_one(cx, a, &a->h, 1)) VOLT_RETURN(0);
    if (draw(a, 2)) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&a->h);
    volt_shield_begin(cx, &a->shield, VOLT_NEVER); // joins also while cancelled
    VOLT_AWAIT(f->rc, volt_join(cx, &a->h));
    volt_shield_end(cx, &a->shield);
    CHECK(!volt_handle_is_set(&a->h));
    note_result(a->kid, f->rc);
    VOLT_END(0);
}
// A group of children that is waited for, cancelled, drained or closed.
static int fill_group(volt_cx *cx, actor *a, int may_cancel) {
    int n = 1 + (int)draw(a, KIDS);
    for (a->n_kids = 0; a->n_kids < n;) {
        actor child;
        if (!make_child(a, &child, may_cancel)) break;
        int rc = VOLT_GROUP_SPAWN(cx, &a->group, actor_run, child);
        note_spawn(a->kid, rc);
        if (rc < 0) break;
        a->kids[a->n_kids++] = a->kid;
    }
    return a->n_kids;
}
static volt_poll group_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    memset(&a->group, 0, sizeof a->group);
    if (!fill_group(cx, a, 1)) VOLT_RETURN(0); // closing it may cancel them
    if (draw(a, 2)) VOLT_AWAIT(f->rc, volt_group_wait(cx, &a->group));
    else volt_group_cancel(&a->group);
    VOLT_AWAIT(volt_group_close(cx, &a->group));
    for (int i = 0; i < a->n_kids; i++) CHECK_EQ(READ(now.task[a->kids[i]].state), 2);
    VOLT_END(f->rc == -ECANCELED && volt_is_cancelled(cx) ? -ECANCELED : 0);
}
static volt_poll collect_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    memset(&a->group, 0, sizeof a->group);
    volt_group_collect(&a->group);
    if (!fill_group(cx, a, 1)) VOLT_RETURN(0);
    for (a->k = 0; a->k < a->n_kids; a->k++) {
        VOLT_AWAIT(f->rc, volt_group_next(cx, &a->group, &a->spawn_id));
        if (f->rc == -ECANCELED && volt_is_cancelled(cx)) break; // ours, or a child's: no matter
        CHECK(a->spawn_id < (uint64_t)a->n_kids);
        note_result(a->kids[a->spawn_id], f->rc);
    }
    VOLT_AWAIT(volt_group_close(cx, &a->group));
    for (int i = 0; i < a->n_kids; i++) CHECK_EQ(READ(now.task[a->kids[i]].state), 2);
    VOLT_END(volt_is_cancelled(cx) ? -ECANCELED : 0);
}
// A within around a wait that never ends, or ends earlier.
static volt_poll long_wait(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    if (draw(a, 2)) VOLT_AWAIT(f->rc, volt_token_wait(cx, &a->token));
    else VOLT_AWAIT(f->rc, volt_sleep(cx, a->d));
    CHECK(f->rc == 0 || f->rc == -ECANCELED);
    VOLT_END(f->rc);
}
typedef struct {
    volt_frame frame;
    volt_token *token;
} canceller;
static volt_poll canceller_run(volt_cx *cx, void *arg) {
    canceller *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    volt_token_cancel(c->token);
    VOLT_END(0);
}
static volt_poll within_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    memset(&a->token, 0, sizeof a->token);
    a->d = some_time(a);
    VOLT_AWAIT(f->rc, volt_within(cx, &a->timer, VOLT_MS(1), long_wait(cx, a, &a->wait)));
    CHECK(f->rc == 0 || f->rc == -ETIMEDOUT || f->rc == -ECANCELED);
    VOLT_END(f->rc == -ECANCELED ? -ECANCELED : 0);
}
// The canceller is a child in a group: it ends before the token does.
static volt_poll token_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    memset(&a->token, 0, sizeof a->token);
    memset(&a->group, 0, sizeof a->group);
    if (VOLT_GROUP_SPAWN(cx, &a->group, canceller_run, (canceller){ .token = &a->token }) < 0)
        VOLT_RETURN(0);
    if (draw(a, 2)) VOLT_AWAIT(f->rc, volt_token_wait(cx, &a->token));
    else VOLT_AWAIT(f->rc, volt_with_token(cx, &a->link, &a->token, volt_sleep_forever(cx)));
    if (!volt_is_cancelled(cx)) CHECK(volt_token_is_cancelled(&a->token));
    VOLT_AWAIT(volt_group_close(cx, &a->group));
    VOLT_END(volt_is_cancelled(cx) ? -ECANCELED : 0);
}
// Bytes to and fro between this task and a child of its own on the other end.
typedef struct {
    volt_frame frame;
    int fd;
    int64_t rc;
    char buf[8];
} echoer;
static volt_poll echoer_run(volt_cx *cx, void *arg) {
    echoer *e = arg;
    VOLT_BEGIN(cx, e);
    for (;;) {
        VOLT_AWAIT(e->rc, volt_read(cx, e->fd, e->buf, sizeof e->buf));
        if (e->rc <= 0) break;
        VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd, e->buf, (size_t)e->rc));
        if (e->rc < 0) break;
    }
    volt_close(cx, e->fd);
    VOLT_END(0);
}
static volt_poll socket_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, a->fd) < 0) VOLT_RETURN(0);
    if (VOLT_SPAWN(cx, NULL, echoer_run, (echoer){ .fd = a->fd[1] }) < 0) {
        close(a->fd[0]);
        close(a->fd[1]);
        VOLT_RETURN(0);
    }
    for (a->k = 0; a->k < 3; a->k++) {
        memset(a->buf, 'a' + a->k, sizeof a->buf);
        VOLT_AWAIT(f->rc, volt_write_all(cx, a->fd[0], a->buf, sizeof a->buf));
        if (f->rc < 0) break;
        memset(a->buf, 0, sizeof a->buf);
        VOLT_AWAIT(f->rc, volt_read_exact(cx, a->fd[0], a->buf, sizeof a->buf));
        if (f->rc < 0) break;
        for (size_t i = 0; i < sizeof a->buf; i++) CHECK_EQ(a->buf[i], 'a' + a->k);
    }
    volt_close(cx, a->fd[0]);
    // at the end the echo may have been cancelled and gone first
    if (f->rc < 0 && f->rc != -ECANCELED) CHECK(READ(now.is_closing));
    VOLT_END(f->rc < 0 ? -ECANCELED : 0);
}
// Waits for a flag that the foreign thread sets; it may do so after the task has been cancelled.
static volt_poll flag_wait(volt_cx *cx, actor *a) {
    if (READ(*a->flag)) return volt_ready(0);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
static int flags[MOST_TASKS];
static int send_flag(const volt_cx *cx, int *flag) {
    volt_waker w = volt_waker_retain(cx);
    int ok = post_send(w, flag);
    if (!ok) volt_waker_release(w);
    return ok;
}
static volt_poll waker_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    a->flag = &flags[a->id];
    WRITE(*a->flag, 0);
    if (!send_flag(cx, a->flag)) VOLT_RETURN(0);
    VOLT_AWAIT(f->rc, flag_wait(cx, a));
    VOLT_END(f->rc);
}
static volt_poll shield_step(volt_cx *cx, actor *a, inner *f) {
    VOLT_BEGIN(cx, f);
    volt_shield_begin(cx, &a->shield, VOLT_S(30));
    VOLT_AWAIT(f->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(f->rc, 0);
    volt_shield_end(cx, &a->shield);
    VOLT_END(volt_is_cancelled(cx) ? -ECANCELED : 0);
}


enum {
    YIELD, SLEEP, JOIN, CANCEL, DETACH, GROUP, COLLECT, WITHIN, TOKEN, SOCKET, WAKER, SHIELD,
    KINDS
};
static volt_poll perform(volt_cx *cx, actor *a) {
    inner *f = &a->step;
    switch (a->kind) {
    case YIELD: return volt_yield(cx);
    case SLEEP: return volt_sleep(cx, a->d);
    case JOIN: return join_step(cx, a, f);
    case CANCEL: return cancel_step(cx, a, f);
    case GROUP: return group_step(cx, a, f);
    case COLLECT: return collect_step(cx, a, f);
    case WITHIN: return within_step(cx, a, f);
    case TOKEN: return token_step(cx, a, f);
    case SOCKET: return socket_step(cx, a, f);
    case WAKER: return waker_step(cx, a, f);
    default: return shield_step(cx, a, f);
    }
}
static volt_poll actor_run(volt_cx *cx, void *arg) {
    actor *a = arg;
    VOLT_BEGIN(cx, a);
    for (; a->steps > 0; a->steps--) {
        a->kind = (int)draw(a, KINDS);
        a->d = some_time(a);
        a->step.rc = a->rc = 0;
        if (a->kind == DETACH) spawn_one(cx, a, NULL, 0);
        else VOLT_AWAIT(a->rc, perform(cx, a));
        if (a->rc == -ECANCELED) break;
        CHECK_EQ(a->rc, 0);
    }
    VOLT_END(note_end(a->id, a->rc == -ECANCELED ? -ECANCELED : plain_result(a->id)));
}

// ---- a program: a root that joins its actors, and a thread that wakes and spawns

enum { TOP = 200, DEPTH = 4 };
typedef struct {
    volt_frame frame;
    volt_handle h[TOP];
    int id[TOP], i;
    int64_t rc;
} program;
static int top_actor(actor *a) {
    memset(a, 0, sizeof *a);
    a->id = new_id();
    if (a->id < 0) return 0;
    a->depth = DEPTH;
    a->steps = 4;
    a->random = RANDOM();
    WRITE(now.task[a->id].state, 1);
    return 1;
}
static void start_top(volt_cx *cx, program *p, int i) {
    actor a;
    CHECK(top_actor(&a));
    p->id[i] = a.id;
    int rc = VOLT_SPAWN(cx, &p->h[i], actor_run, a);
    note_spawn(a.id, rc);
    CHECK_EQ(rc, 0);
}
static volt_poll program_run(volt_cx *cx, void *arg) {
    program *p = arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < TOP; p->i++) start_top(cx, p, p->i);
    for (p->i = 0; p->i < TOP; p->i++) {
        VOLT_AWAIT(p->rc, volt_join(cx, &p->h[p->i]));
        CHECK_EQ(p->rc, plain_result(p->id[p->i])); // these are not cancelled
        note_result(p->id[p->i], p->rc);
    }
    VOLT_END(77);
}

typedef struct {
    volt_rt *rt;
    int stop;
} stranger;
// One actor from outside, joined from outside.
static void spawn_stranger(volt_rt *rt, int is_joined) {
    actor a;
    volt_handle h = { NULL };
    int64_t result = 0;
    if (!top_actor(&a)) return;
    int rc = VOLT_RT_SPAWN(rt, is_joined ? &h : NULL, actor_run, a);
    note_spawn(a.id, rc);
    if (rc < 0 || !is_joined) return;
    while (volt_join_sync(&h, VOLT_MS(1), &result) == -ETIMEDOUT) post_deliver();
    note_result(a.id, result);
}
static void *stranger_run(void *arg) {
    stranger *s = arg;
    while (!READ(s->stop)) {
        if (RANDOM_BELOW(64) == 0) spawn_stranger(s->rt, (int)RANDOM_BELOW(2));
        if (!post_deliver()) sched_yield();
    }
    while (post_deliver()) {}
    return NULL;
}

static void check_world(void) {
    int n = now.n_tasks < MOST_TASKS ? now.n_tasks : MOST_TASKS, n_ended = 0;
    for (int i = 0; i < n; i++) {
        CHECK(now.task[i].state == 0 || now.task[i].state == 2);
        CHECK(now.task[i].n_delivered <= 1);
        n_ended += now.task[i].state == 2;
    }
    CHECK_EQ(now.n_spawned, now.n_ended);
    CHECK_EQ(now.n_spawned, n_ended);
    CHECK_EQ(office.n, 0);
}
static int run_program(uint32_t workers) {
    program p;
    memset(&now, 0, sizeof now);
    memset(&p, 0, sizeof p);
    volt_config c = test_config(workers);
    c.budget = 1 + (uint32_t)RANDOM_BELOW(130);
    c.event_interval = 1 + (uint32_t)RANDOM_BELOW(61);
    c.reactors = 1 + (uint32_t)RANDOM_BELOW(workers);
    stranger s = { .stop = 0 };
    CHECK_EQ(volt_create(&c, &s.rt), 0);
    pthread_t t = start_thread(stranger_run, &s);
    CHECK_EQ(volt_block_on(s.rt, program_run, &p), 77);
    WRITE(now.is_closing, 1);
    CHECK_EQ(volt_shutdown(s.rt, VOLT_NEVER), 0);
    WRITE(s.stop, 1);
    join_thread(t);
    check_world();
    CHECK_EQ(volt_destroy(s.rt), 0);
    test_check_heap();
    return now.n_ended;
}
static void check_programs(uint32_t workers) {
    volt_time end = volt_now() + VOLT_MS(700);
    int n = 0, n_tasks = 0;
    do n_tasks += run_program(workers), n++;
    while (volt_now() < end);
    printf("%d programs, %d tasks\n", n, n_tasks);
    CHECK(n_tasks >= TOP);
}
TEST(random_programs_match_oracle_on_one_worker) { check_programs(1); }
TEST(random_programs_match_oracle_on_two_workers) { check_programs(2); }
TEST(random_programs_match_oracle_on_three_workers) { check_programs(3); }
TEST(random_programs_match_oracle_on_eight_workers) { check_programs(8); }

// ---- two runtimes whose tasks wake each other: by wakers, and by a token of both

enum { COUPLES = 8, TURNS = 1500 };
typedef struct {
    volt_waker waker[2];
    int is_known[2], turn; // the one to move
} couple;
typedef struct {
    volt_frame frame;
    couple *c;
    volt_token *stop;
    volt_rt *home;
    int me, i, *n_stopped;
    int64_t rc;
} partner;
static volt_poll my_turn(const couple *c, int me) {
    return READ(c->turn) % 2 == me ? volt_ready(0) : volt_pending();
}
static volt_poll partner_run(volt_cx *cx, void *arg) {
    partner *p = arg;
    couple *const c = p->c;
    VOLT_BEGIN(cx, p);
    c->waker[p->me] = volt_waker_retain(cx);
    WRITE(c->is_known[p->me], 1);
    while (!READ(c->is_known[1 - p->me])) VOLT_AWAIT(volt_yield(cx));
    for (p->i = 0; p->i < TURNS; p->i++) {
        VOLT_AWAIT(my_turn(c, p->me));
        CHECK(volt_cx_rt(cx) == p->home && cx->worker_->rt == p->home);
        COUNT(c->turn);
        volt_wake(c->waker[1 - p->me]); // of the other runtime
    }
    VOLT_AWAIT(p->rc, volt_token_wait(cx, p->stop));
    CHECK_EQ(p->rc, 0);
    volt_waker_release(c->waker[1 - p->me]);
    COUNT(*p->n_stopped);
    VOLT_END(0);
}
static void check_two_runtimes(uint32_t workers) {
    volt_rt *rt[2] = { create_on(workers), create_on(workers) };
    couple c[COUPLES];
    volt_token stop;
    int n_stopped = 0;
    memset(c, 0, sizeof c);
    memset(&stop, 0, sizeof stop);
    for (int i = 0; i < 2 * COUPLES; i++) {
        partner p = { .c = &c[i / 2], .stop = &stop, .me = i % 2, .n_stopped = &n_stopped };
        p.home = rt[i % 2];
        RT_SPAWN(p.home, NULL, partner_run, p);
    }
    for (int i = 0; i < COUPLES; i++) UNTIL(READ(c[i].turn) == 2 * TURNS);
    volt_token_cancel(&stop); // waiters of both in one list
    UNTIL(READ(n_stopped) == 2 * COUPLES);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_shutdown(rt[i], VOLT_NEVER), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_destroy(rt[i]), 0);
    test_check_heap();
}
TEST(tasks_of_two_runtimes_wake_each_other) {
    EACH_WORKERS(w) check_two_runtimes(w);
}

// ---- runtimes that come and go under traffic

enum { LIVES = 150, GUESTS = 2 };
typedef struct {
    volt_rt *rt;
    int n_spawned, n_ended, n_refused;
} life;
typedef struct {
    volt_frame frame;
    int *n_ended, kind;
    int64_t rc;
} guest;
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest *g = arg;
    VOLT_BEGIN(cx, g);
    if (g->kind == 0) VOLT_AWAIT(volt_yield(cx));
    if (g->kind == 1) VOLT_AWAIT(g->rc, volt_sleep(cx, VOLT_S(1000)));
    if (g->kind == 2) VOLT_AWAIT(g->rc, volt_sleep_forever(cx));
    COUNT(*g->n_ended);
    VOLT_END(0);
}
// Spawns, cancels and detaches until the runtime refuses.
static void *guest_thread(void *arg) {
    life *l = arg;
    for (;;) {
        volt_handle h = { NULL };
        guest g = { .n_ended = &l->n_ended, .kind = (int)RANDOM_BELOW(4) };
        int rc = VOLT_RT_SPAWN(l->rt, &h, guest_run, g);
        if (rc == -ESHUTDOWN) break;
        CHECK_EQ(rc, 0);
        COUNT(l->n_spawned);
        if (RANDOM_BELOW(2)) volt_cancel(&h);
        if (g.kind == 0 || g.kind == 3) CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        else volt_detach(&h);
    }
    COUNT(l->n_refused);
    return NULL;
}
static void live(uint32_t workers) {
    life l = { .rt = create_on(workers) };
    pthread_t t[GUESTS];
    int want = (int)RANDOM_BELOW(60);
    for (int i = 0; i < GUESTS; i++) t[i] = start_thread(guest_thread, &l);
    UNTIL(READ(l.n_spawned) >= want);
    CHECK_EQ(volt_shutdown(l.rt, VOLT_NEVER), 0);
    for (int i = 0; i < GUESTS; i++) join_thread(t[i]);
    CHECK_EQ(l.n_ended, l.n_spawned);
    CHECK_EQ(l.n_refused, GUESTS);
    CHECK_EQ(volt_destroy(l.rt), 0);
    test_check_heap();
}
TEST(shutdown_under_traffic_ends_each_spawned_task) {
    for (int i = 0; i < LIVES; i++) live(1 + (uint32_t)RANDOM_BELOW(5));
}
