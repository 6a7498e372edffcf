// SPDX-License-Identifier: MIT OR 0BSD
// One call from another thread at every step of a small program: a worker is held there until the
// call has returned, or waits for a lock that the worker holds. A step is a system call, a look at
// the clock, an assertion; many of these lie in the middle of what must not be torn apart. Whatever
// the call is and whenever it comes, all tasks end, each once, and nothing is left.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <sys/epoll.h>

// ---- the seam

static void test_step(void);
static void about_to_block(void);
#define VOLT_SYS(name_, ...) (test_step(), name_(__VA_ARGS__))
#define VOLT_ASSERT(c_) (test_step(), VOLT__EXPECT(c_, "assertion failed: " #c_))
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_)                                                 \
    (about_to_block(), volt__sys_futex_wait(word_, expect_, deadline_))
#define VOLT_FUTEX_WAKE(word_, n_) (test_step(), volt__sys_futex_wake(word_, n_))

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

// ---- what all programs have

enum { MOST_TASKS = 2 };
typedef struct {
    volt_rt *rt;
    volt_token gate, stop; // gate: for what the program begins with
    int n_tasks;
    volt_handle h[MOST_TASKS];
    volt_waker waker; // of the first task, once it has begun
    volt_addr addr;
    int lfd, fd; // fd: the server's connection + 1; the task that takes it out closes it
} program;

// The first step of a program's first task.
static volt_poll begin(volt_cx *cx, program *p) {
    if (!READ(p->waker.task_)) WRITE(p->waker.task_, volt_waker_retain(cx).task_);
    return volt_token_wait(cx, &p->gate);
}

// ---- two tasks that talk to each other over TCP; if one fails, the other is stopped

enum { PING = 8 };
typedef struct {
    volt_frame frame;
    program *p;
    volt_timer limit;
    volt_arm arm[2];
    int fd, got;
    int64_t rc;
    char text[PING];
} peer;

static void close_connection(program *p) {
    int fd = __atomic_exchange_n(&p->fd, 0, __ATOMIC_ACQ_REL);
    if (fd) volt_rt_close(p->rt, fd - 1);
}
static volt_poll serve(volt_cx *cx, void *arg) {
    peer *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->fd, volt_accept(cx, s->p->lfd));
    if (s->fd < 0) VOLT_RETURN(s->fd);
    WRITE(s->p->fd, s->fd + 1);
    VOLT_AWAIT(s->got, VOLT_SELECT(VOLT_ARM(&s->arm[0], s->rc,
                                            volt_read_exact(cx, s->fd, s->text, PING)),
                                   VOLT_ARM(&s->arm[1], volt_sleep(cx, VOLT_S(100)))));
    if (s->got == 0 && s->rc == PING) VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, s->text, PING));
    close_connection(s->p);
    VOLT_END(s->got < 0 ? s->got : s->rc);
}
static volt_poll ask(volt_cx *cx, void *arg) {
    peer *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd, volt_connect(cx, &c->p->addr));
    if (c->fd < 0) VOLT_RETURN(c->fd);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_US(100)));
    if (c->rc == 0) VOLT_AWAIT(c->rc, volt_write_all(cx, c->fd, c->text, PING));
    if (c->rc == PING)
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(100),
                                      volt_read_exact(cx, c->fd, c->text, PING)));
    volt_close(cx, c->fd);
    VOLT_END(c->rc);
}
typedef struct {
    volt_frame frame;
    program *p;
    volt_fn *talk;
    volt_token_link link;
    int64_t rc;
    peer peer;
} talker;
static volt_poll talker_run(volt_cx *cx, void *arg) {
    talker *t = arg;
    VOLT_BEGIN(cx, t);
    t->peer.p = t->p;
    if (t->talk == serve) VOLT_AWAIT(begin(cx, t->p));
    else VOLT_AWAIT(volt_token_wait(cx, &t->p->gate));
    VOLT_AWAIT(t->rc, volt_with_token(cx, &t->link, &t->p->stop, t->talk(cx, &t->peer)));
    if (t->rc < 0) volt_token_cancel(&t->p->stop);
    VOLT_END(t->rc);
}
static void spawn_talkers(program *p) {
    RT_SPAWN(p->rt, &p->h[0], talker_run, (talker){ .p = p, .talk = serve });
    RT_SPAWN(p->rt, &p->h[1], talker_run, (talker){ .p = p, .talk = ask });
    p->n_tasks = 2;
}
static int is_talkers_result(int64_t rc) {
    return rc == PING || rc == -ECANCELED || rc == -EBADF || rc == -ECONNRESET ||
           rc == -ECONNREFUSED || rc == -EPIPE;
}

// ---- a task with a group, a child to join, a select, a timeout and a shield

enum { MEMBERS = 3, CHILDS_VALUE = 5 };
typedef struct {
    volt_frame frame;
    program *p;
    volt_token mine; // below p->stop
    volt_group group;
    volt_handle child;
    volt_arm arm[2];
    volt_timer limit;
    volt_shield grace;
    int64_t joined, rc;
} parent;
// Members that wait for the token, and a child that ends at once.
static void spawn_family(volt_cx *cx, parent *f) {
    int rc = VOLT_SPAWN(cx, &f->child, giver_run, (giver){ .value = CHILDS_VALUE });
    for (int i = 0; i < MEMBERS && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, &f->group, waiter_run, (waiter){ .token = &f->mine });
    CHECK(rc == 0 || rc == -ESHUTDOWN);
}
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *f = arg;
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(begin(cx, f->p));
    volt_token_init(&f->mine, &f->p->stop);
    spawn_family(cx, f);
    VOLT_AWAIT(f->joined, volt_join(cx, &f->child));
    VOLT_AWAIT(f->rc, VOLT_SELECT(VOLT_ARM(&f->arm[0], volt_yield(cx)),
                                  VOLT_ARM(&f->arm[1], volt_token_wait(cx, &f->mine))));
    VOLT_AWAIT(f->rc, volt_within(cx, &f->limit, VOLT_US(50), volt_sleep_forever(cx)));
    CHECK(f->rc == -ETIMEDOUT || f->rc == -ECANCELED);
    volt_shield_begin(cx, &f->grace, VOLT_NEVER);
    VOLT_AWAIT(f->rc, volt_yield(cx));
    CHECK_EQ(f->rc, 0);
    volt_shield_end(cx, &f->grace);
    volt_token_cancel(&f->p->stop); // lets the members go
    VOLT_AWAIT(f->rc, volt_group_wait(cx, &f->group));
    VOLT_AWAIT(volt_group_close(cx, &f->group));
    volt_token_deinit(&f->mine);
    volt_detach(&f->child); // if it was not joined
    VOLT_END(f->rc < 0 ? f->rc : f->joined);
}
static void spawn_parent(program *p) {
    RT_SPAWN(p->rt, &p->h[0], parent_run, (parent){ .p = p });
    p->n_tasks = 1;
}
static int is_parents_result(int64_t rc) {
    return rc == CHILDS_VALUE || rc == -ECANCELED || rc == -EINVAL; // shut down: no child to join
}

// ---- what another thread does meanwhile

static void cancel_first(program *p) { volt_cancel(&p->h[0]); }
static void cancel_last(program *p) { volt_cancel(&p->h[p->n_tasks - 1]); }
static void cancel_token(program *p) { volt_token_cancel(&p->stop); }
static void close_listener(program *p) { volt_rt_close(p->rt, p->lfd); }
static void wake_first(program *p) { volt_wake(p->waker); }
static void shut_down(program *p) { (void)volt_shutdown(p->rt, 0); }
static void poke(program *p) { volt__unpark_all(p->rt); }
static void look(program *p) {
    volt_counters c;
    volt_stats(p->rt, &c);
}
static void spawn(program *p) {
    int rc = VOLT_RT_SPAWN(p->rt, NULL, giver_run, (giver){ .value = 1 });
    CHECK(rc == 0 || rc == -ESHUTDOWN);
}

typedef void intruder(program *p);
static struct {
    int is_on, n, at; // steps of the workers so far; the one at which the other thread acts
    int is_go, is_over;
    program *p;
    intruder *act;
} held;
static __thread int is_intruder;

static void test_step(void) {
    if (!READ(held.is_on) || !VOLT_TLS_GET() || COUNT(held.n) != held.at) return;
    WRITE(held.is_go, 1);
    UNTIL(READ(held.is_over));
}
static void about_to_block(void) {
    if (is_intruder) WRITE(held.is_over, 1); // the worker has what it waits for
    else test_step();
}
static void *intruder_main(void *arg) {
    is_intruder = 1;
    UNTIL(READ(held.is_go));
    held.act(held.p);
    WRITE(held.is_over, 1);
    return arg;
}

// ---- one run

typedef struct {
    void (*spawn)(program *p);
    int (*is_result)(int64_t rc);
    int64_t good; // the result when nothing goes wrong
} scene;
static const scene talkers = { spawn_talkers, is_talkers_result, PING };
static const scene family = { spawn_parent, is_parents_result, CHILDS_VALUE };

static void check_end(program *p, const scene *sc, int must_be_good) {
    for (int i = 0; i < p->n_tasks; i++) {
        int64_t rc = 0;
        CHECK_EQ(volt_try_join(&p->h[i], &rc), 0);
        if (must_be_good) CHECK_EQ(rc, sc->good);
        CHECK(sc->is_result(rc));
    }
    CHECK(!p->stop.waiters_ && !p->stop.child_);
}
// At an address of this process alone: a port that is closed may be another's a moment later.
static int listen_apart(void) {
    char host[32];
    unsigned pid = (unsigned)getpid();
    snprintf(host, sizeof host, "127.%u.%u.%u", 64 | (pid >> 16 & 63), pid >> 8 & 255, pid & 255);
    return volt_listen(host, 0, NULL);
}
static void open_program(program *p, const scene *sc, uint32_t workers) {
    memset(p, 0, sizeof *p);
    test_starts_all = 1; // no worker opens descriptors later, and the client has a number below
    p->rt = create_on(workers);
    int hole = dup(STDOUT_FILENO);
    p->lfd = listen_apart();
    close(hole); // so that the listener's is not used again when it is closed
    CHECK_EQ(volt_local_addr(p->lfd, &p->addr), 0);
    RT_SPAWN(p->rt, NULL, napper_run, (napper){ .d = VOLT_S(100) }); // till the shutdown
    sc->spawn(p);
    UNTIL(READ(p->waker.task_));
}
// 1: the step was reached.
static int run_until(const scene *sc, uint32_t workers, int at, intruder *act, int is_harmless) {
    static program p;
    open_program(&p, sc, workers);
    held.n = held.is_go = held.is_over = 0;
    held.at = at;
    held.p = &p;
    held.act = act;
    pthread_t t = start_thread(intruder_main, NULL);
    WRITE(held.is_on, 1);
    volt_token_cancel(&p.gate);
    for (int i = 0; i < p.n_tasks; i++) UNTIL(volt__join_is_done(p.h[i].task_));
    WRITE(held.is_on, 0);
    int is_reached = READ(held.is_go);
    WRITE(held.is_go, 1); // after the end, then
    join_thread(t);
    check_end(&p, sc, is_harmless || !is_reached);
    volt_waker_release(p.waker);
    if (act != close_listener) volt_rt_close(p.rt, p.lfd);
    destroy(p.rt);
    return is_reached;
}
// A sanitizer is given some of the steps only: what it sees does not hang on one step alone.
static void run_all(const scene *sc, intruder *act, int is_harmless) {
    const int stride = test_is_long() && !TEST__IS_SANITIZED ? 1 : 4;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        int at = 1 + (int)RANDOM_BELOW((uint32_t)stride);
        while (run_until(sc, workers, at, act, is_harmless)) at += stride;
        CHECK(at > stride);
        printf("%u workers: %d steps\n", workers, at - stride);
    }
}
// Each was seen to fail when in volt.h
//   shutdown_at_any_step_ends_peers
//       volt__shutdown_begin wakes no task, or _sweep no task
//   shutdown_at_any_step_ends_family
//       volt__stop_if_done does not wait for the acknowledgements
//   client_cancel_at_any_step_ends_peers
//       volt_connect does not close its socket when it is cancelled
//   token_cancel_at_any_step_ends_peers
//       volt__token_add_waiter does not look at the flag
//   server_cancel_at_any_step_ends_peers
//       volt__task_suspend forgets a wake-up
//   spurious_wake_at_any_step_harms_no_peer
//       the same
//   listener_close_at_any_step_ends_peers
//       volt__fd_begin_close marks nothing
//   connection_close_at_any_step_ends_peers
//       the same
//   spurious_unpark_at_any_step_harms_no_peer
//       volt__drive_events does not read the eventfd
//   stats_at_any_step_harm_no_peer
//       volt_stats keeps the lock of a worker
//   spawn_at_any_step_harms_no_peer
//       volt__injector_spawn does not count
//   parent_cancel_at_any_step_ends_family
//       volt__join_cancel_wait drops the reference that the child drops
//   spurious_wake_at_any_step_harms_no_family
//       volt__join_wait registers twice
//   token_cancel_at_any_step_completes_family
//       volt_token_deinit leaves the token with its parent
#define STEPS_TEST(name_, scene_, act_, is_harmless_)                                              \
    TEST(name_) { run_all(&scene_, act_, is_harmless_); }
STEPS_TEST(shutdown_at_any_step_ends_peers, talkers, shut_down, 0)
STEPS_TEST(server_cancel_at_any_step_ends_peers, talkers, cancel_first, 0)
STEPS_TEST(client_cancel_at_any_step_ends_peers, talkers, cancel_last, 0)
STEPS_TEST(token_cancel_at_any_step_ends_peers, talkers, cancel_token, 0)
STEPS_TEST(listener_close_at_any_step_ends_peers, talkers, close_listener, 0)
STEPS_TEST(connection_close_at_any_step_ends_peers, talkers, close_connection, 0)
STEPS_TEST(spurious_wake_at_any_step_harms_no_peer, talkers, wake_first, 1)
STEPS_TEST(spurious_unpark_at_any_step_harms_no_peer, talkers, poke, 1)
STEPS_TEST(stats_at_any_step_harm_no_peer, talkers, look, 1)
STEPS_TEST(spawn_at_any_step_harms_no_peer, talkers, spawn, 1)
STEPS_TEST(shutdown_at_any_step_ends_family, family, shut_down, 0)
STEPS_TEST(parent_cancel_at_any_step_ends_family, family, cancel_first, 0)
STEPS_TEST(token_cancel_at_any_step_completes_family, family, cancel_token, 1)
STEPS_TEST(spurious_wake_at_any_step_harms_no_family, family, wake_first, 1)
