// SPDX-License-Identifier: MIT OR 0BSD
// Defects that were in volt.h once, each replayed step by step: where the defect was an
// interleaving, the test takes the steps of both sides itself, in the order that did harm. Two of
// them lie between two neighbouring reads, where no thread can be held: there two threads race
// until the window was met many times.
#define VOLT_IMPLEMENTATION
// A test that holds a lock must see which threads wait for it.
static void note_wait(const void *word);
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_)                                                 \
    (note_wait(word_), volt__sys_futex_wait(word_, expect_, deadline_))
#define VOLT_FUTEX_WAKE(word_, n_) volt__sys_futex_wake(word_, n_)
// And the threads that go to sleep against the rules.
static void about_to_sleep(long long timeout);
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_)                                                    \
    (about_to_sleep(timeout_), volt__sys_epoll_wait(ep_, ev_, n_, timeout_))
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include "slab.h"
#include <sys/mman.h>
#include <sys/socket.h>

static const void *watched_word;
static int n_waits; // for watched_word
static void note_wait(const void *word) {
    if (word == READ(watched_word)) COUNT(n_waits);
}
static int is_sleep_forbidden;
static void about_to_sleep(long long timeout) {
    CHECK(timeout == 0 || !READ(is_sleep_forbidden));
}

// ---- a token that was cancelled before the first poll raised the level inside the inner shields

typedef struct {
    volt_frame frame;
    volt_shield grace;
    int rc;
} cleaner;
static volt_poll cleaner_run(volt_cx *cx, void *arg) {
    cleaner *c = arg;
    VOLT_BEGIN(cx, c);
    volt_shield_begin(cx, &c->grace, VOLT_NEVER);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(2)));
    volt_shield_end(cx, &c->grace);
    VOLT_END(c->rc);
}
ROOT_TEST(token_cancelled_beforehand_spares_shields, {
    cleaner in;
    volt_token stop;
    volt_token_link link;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, &s->stop, cleaner_run(cx, &s->in)));
    CHECK_EQ(s->in.rc, 0);
    CHECK_EQ(s->rc, 0); // a value wins
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, &s->stop, volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}

// ---- volt_run gave up waiting only when its queue was empty

typedef struct {
    volt_frame frame;
} stubborn;
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *b = arg;
    VOLT_BEGIN(cx, b);
    for (;;) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
} parent;
static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = arg;
    VOLT_BEGIN(cx, p);
    SPAWN(NULL, stubborn_run, (stubborn){ .frame = { { 0 } } });
    VOLT_END(7);
}
TEST(volt_run_gives_up_on_tasks_that_never_sleep) {
    volt_config c = { .workers = 1, .drain_timeout = VOLT_MS(20) };
    static parent p;
    CHECK_EQ(volt_run(&c, parent_run, &p), -ETIMEDOUT);
    test_pass_and_exit(); // the runtime is leaked, as the contract says
}

// ---- a negative time overflowed into "no limit"

TEST(join_sync_treats_negative_timeout_as_0) {
    volt_rt *rt = create_on(2);
    volt_handle h = { NULL };
    int64_t value = 0;
    RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_S(100) });
    CHECK_EQ(volt_join_sync(&h, -1, &value), -ETIMEDOUT);
    CHECK_EQ(volt_join_sync(&h, INT64_MIN, &value), -ETIMEDOUT);
    volt_cancel(&h);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    CHECK_EQ(value, -ECANCELED);
    destroy(rt);
}

// ---- every accepted socket was taken for a stream, whose short reads mean "empty"

typedef struct {
    volt_frame frame;
    int fd, n;
    int64_t rc;
    volt_timer limit;
    char buf[64];
} packets;
static volt_poll packets_run(volt_cx *cx, void *arg) {
    packets *p = arg;
    VOLT_BEGIN(cx, p);
    for (p->n = 0; p->n < 2; p->n++) {
        VOLT_AWAIT(p->rc, volt_within(cx, &p->limit, VOLT_S(10),
                                      volt_read(cx, p->fd, p->buf, sizeof p->buf)));
        CHECK_EQ(p->rc, 3);
    }
    volt_close(cx, p->fd);
    VOLT_END(0);
}
ROOT_TEST(accepted_packet_socket_is_not_a_stream, {
    packets in;
    volt_handle h;
    int lfd, cfd;
    int64_t rc;
    volt_addr addr;
    char path[64];
}) {
    VOLT_BEGIN(cx, s);
    snprintf(s->path, sizeof s->path, "unix:/tmp/volt-packets-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&s->addr, s->path), 0);
    unlink(s->path + 5);
    s->lfd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(s->lfd, (struct sockaddr *)(void *)s->addr.sa_, s->addr.len_), 0);
    CHECK_EQ(listen(s->lfd, 4), 0);
    s->cfd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(s->cfd, (struct sockaddr *)(void *)s->addr.sa_, s->addr.len_), 0);
    unlink(s->path + 5);
    VOLT_AWAIT(s->rc, volt_accept(cx, s->lfd));
    CHECK(s->rc >= 0);
    SPAWN(&s->h, packets_run, (packets){ .fd = (int)s->rc });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2))); // it waits; both messages come with one edge
    CHECK_EQ(send(s->cfd, "one", 3, 0), 3);
    CHECK_EQ(send(s->cfd, "two", 3, 0), 3);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h)); // closing now would be an event of its own
    CHECK_EQ(s->rc, 0);
    close(s->cfd);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// ---- a read that stopped short of urgent data was taken to have emptied the buffer

typedef struct {
    volt_frame frame;
    int fd;
    int64_t n, sum;
    volt_timer limit;
    char buf[64];
} summer;
static volt_poll summer_run(volt_cx *cx, void *arg) {
    summer *r = arg;
    VOLT_BEGIN(cx, r);
    while (r->sum < 5) {
        VOLT_AWAIT(r->n, volt_within(cx, &r->limit, VOLT_S(10),
                                     volt_read(cx, r->fd, r->buf, sizeof r->buf)));
        CHECK(r->n > 0);
        r->sum += r->n;
    }
    VOLT_END(r->sum);
}
static void send_with_urgent(int fd) {
    CHECK_EQ(send(fd, "aa", 2, 0), 2);
    CHECK_EQ(send(fd, "!", 1, MSG_OOB), 1);
    CHECK_EQ(send(fd, "bbb", 3, 0), 3);
}
ROOT_TEST(urgent_data_does_not_hide_data_behind_it, {
    volt_handle h;
    int lfd, cfd, fd;
    int64_t rc;
    volt_addr addr;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK_EQ(volt_local_addr(s->lfd, &s->addr), 0);
    s->cfd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(s->cfd, (struct sockaddr *)(void *)s->addr.sa_, s->addr.len_), 0);
    VOLT_AWAIT(s->fd, volt_accept(cx, s->lfd));
    CHECK(s->fd >= 0);
    SPAWN(&s->h, summer_run, (summer){ .fd = s->fd });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2))); // it waits
    send_with_urgent(s->cfd);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    close(s->cfd);
    volt_close(cx, s->fd);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// ---- the same at a message that carries a descriptor over a unix socket

static void send_with_fd(int fd, const char *text, size_t len) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = len };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
                        .msg_controllen = sizeof control.space };
    memset(&control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    CHECK_EQ(sendmsg(fd, &m, 0), (ssize_t)len);
}
ROOT_TEST(passed_fd_does_not_hide_data_behind_it, { volt_handle h; int fd[2]; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fd), 0);
    SPAWN(&s->h, summer_run, (summer){ .fd = s->fd[0] });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2))); // it waits
    send_with_fd(s->fd[1], "aa", 2);
    CHECK_EQ(send(s->fd[1], "bbb", 3, 0), 3);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 5);
    volt_close(cx, s->fd[0]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}

// ---- an operation that had waited read from the next owner of its number, or probed it and then
// took the number for one whose file it knows

ROOT_TEST_1(operation_does_not_follow_reused_number, { int fd[2], other[2]; char byte; }) {
    VOLT_BEGIN(cx, s);
    volt__io io;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s->fd), 0);
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, s->fd[0]);
    volt__io_init(&io, VOLT__OP_READ, s->fd[0], &s->byte, 1, 0);
    CHECK_EQ(volt__io_try(cx, e, &io), -EAGAIN);
    volt_close(cx, s->fd[0]); // between the try and the wait
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->other), 0);
    CHECK_EQ(s->other[0], s->fd[0]);
    CHECK_EQ(write(s->other[1], "x", 1), 1);
    volt__node n;
    memset(&n, 0, sizeof n);
    CHECK_EQ(volt__fd_wait(&cx->rt_->fds, e, io.fd, 0, io.dir, io.dir, io.snapshot,
                           &n, cx->task_), -EBADF);
    CHECK_EQ(volt__io_try(cx, e, &io), -EBADF);
    CHECK_EQ(READ(e->pins), 0);
    CHECK_EQ(READ(e->flags), 0);
    CHECK(!(fcntl(s->other[0], F_GETFL) & O_NONBLOCK));
    volt_close(cx, s->other[0]);
    volt_close(cx, s->other[1]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
// Nor does a question for readiness that was put off, where the next file has its events already.
ROOT_TEST_1(readiness_wait_does_not_follow_reused_number, {
    volt__io io;
    volt_timer limit;
    int fd[2], other[2], rc;
    char byte;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fd), 0);
    volt__io_init(&s->io, VOLT__OP_READ, s->fd[0], NULL, 0, 0);
    s->io.snapshot = volt__fd_take_snapshot(volt__fd_lookup(&cx->rt_->fds, s->fd[0]));
    s->io.has_gen = 1; // as it is when the budget is used up
    volt_close(cx, s->fd[0]);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->other), 0);
    CHECK_EQ(s->other[0], s->fd[0]);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1),
                                  volt_read(cx, s->other[0], &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(volt__fd_lookup(&cx->rt_->fds, s->fd[0])->mode, VOLT__MODE_EDGE);
    CHECK_EQ(write(s->other[1], "x", 1), 1);
    {
        volt__node n;
        memset(&n, 0, sizeof n);
        CHECK_EQ(volt__ready_step(cx, &s->io, &n), -EBADF);
    }
    volt_close(cx, s->other[0]);
    CHECK_EQ(close(s->other[1]) | close(s->fd[1]), 0);
    VOLT_END(0);
}

// ---- a refused spawn wiped the reference of a walker that had just met the task

typedef struct {
    volt_frame frame;
} idler;
ROOT_TEST_1(refused_task_is_freed_once, { idler state; int round; }) {
    VOLT_BEGIN(cx, s);
    for (s->round = 0; s->round < 2; s->round++) {
        volt__worker *w = cx->worker_;
        volt__task *t = volt__task_alloc(w->rt, w, sizeof s->state, 0);
        volt__slab *slab = volt__slab_of(t);
        uint32_t used = slab_used(slab);
        volt__task_fill(t, giver_run, 0, "refused");
        volt__task_publish(t, 2);
        if (s->round) {
            CHECK(volt__task_try_retain(t)); // the walker
            volt__task_refuse(t, 2);
            CHECK_EQ(slab_used(slab), used); // still the walker's
            CHECK(volt__task_release(t));
            volt__task_free(t);
        } else {
            volt__task_refuse(t, 2);
        }
        CHECK_EQ(slab_used(slab), used - 1);
    }
    VOLT_END(0);
}

// ---- the runtime was freed under a thread that had just given up what kept it alive

static void *destroyer(void *arg) {
    volt_rt *rt = arg;
    CHECK_EQ(volt_destroy(rt), 0);
    return NULL;
}
TEST(destroy_waits_until_runtime_is_unpinned) {
    volt_rt *rt = create_on(2);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt__rt_pin(rt); // as every wake, release and spawn from outside does
    pthread_t t = start_thread(destroyer, rt);
    UNTIL(READ(rt->pins) == 3);
    CHECK(READ(test_heap.live_blocks) > 0);
    volt__rt_unpin(rt);
    join_thread(t);
    test_check_heap();
}

// ---- a back-off of accept that ended between two looks at it was taken for a wait on the socket

// Fires the timers of a worker, once in each round.
typedef struct {
    volt__worker *w;
    int n_wanted, n_fired; // rounds
} firer;
enum { BACK_OFFS = 3000, BEYOND_MS = 600 }; // longer than any back-off
static uint64_t fire_until(volt__worker *w, uint64_t tick) {
    volt__chain c;
    volt__chain_init(&c);
    uint64_t n = volt__wheel_fire(&w->wheel, tick, &c);
    CHECK(!c.head); // the task is owned already
    return n;
}
static void *firer_main(void *arg) {
    firer *f = arg;
    uint64_t tick = volt__tick_floor(f->w->rt, volt_now());
    for (int round = 1; round <= BACK_OFFS; round++) {
        UNTIL(READ(f->n_wanted) >= round);
        if (READ(f->n_wanted) > BACK_OFFS) break;
        CHECK_EQ(fire_until(f->w, tick += VOLT_MS(BEYOND_MS) / VOLT_TICK_NS), 1);
        WRITE(f->n_fired, round);
    }
    return NULL;
}
TEST(accept_back_off_may_end_at_any_moment) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    volt__task *t = still_task(w);
    volt_frame frame;
    firer f = { w, 0, 0 };
    memset(&frame, 0, sizeof frame);
    int fd = volt_listen("127.0.0.1", 0, NULL);
    volt_rt_close(rt, fd); // so that the number has a generation, as a timer has not
    CHECK_EQ(volt_listen("127.0.0.1", 0, NULL), fd);
    pthread_t thread = start_thread(firer_main, &f);
    rlim_t limit = set_fd_limit(0);
    // Each round takes two switches of threads: on a busy machine not as many.
    int round = 1;
    for (volt_time end = volt_now() + VOLT_S(4); round <= BACK_OFFS && volt_now() < end; round++) {
        CHECK(volt_is_pending(volt_accept(still_cx(w, t, &frame), fd))); // backs off
        WRITE(f.n_wanted, round);
        while (READ(f.n_fired) < round) // and tries again, out of descriptors as before
            CHECK(volt_is_pending(volt_accept(still_cx(w, t, &frame), fd)));
    }
    WRITE(f.n_wanted, BACK_OFFS + 1);
    join_thread(thread);
    CHECK(round > 50);
    set_fd_limit(limit);
    fire_until(w, UINT32_MAX);
    CHECK(volt_is_pending(volt_accept(still_cx(w, t, &frame), fd)));
    CHECK(frame.node_.source_ == volt__fd_lookup(&rt->fds, fd)); // now it waits for a connection
    volt_rt_close(rt, fd);
    CHECK_EQ(volt_value(volt_accept(still_cx(w, t, &frame), fd)), -EBADF);
    still_end(rt);
}

// ---- a rescue threw the expiry of the watchdog away: no worker armed it again

TEST(rescue_keeps_watchdog_expiry_that_it_meets) {
    volt_rt *rt = still_rt(2);
    volt__worker *looker = rt->workers[0], *stuck = rt->workers[1];
    volt__watchdog_arm(stuck);
    still_wait_readable(rt->watchdog.fd);
    CHECK_EQ(volt__drive_events(looker, 0, 0), 1); // the scanning worker has taken the expiry
    volt__watchdog_arm(stuck);                     // meanwhile a worker leaves the parked set
    still_wait_readable(rt->watchdog.fd);
    CHECK_EQ(stuck->event_polls, stuck->event_polls_seen);
    volt__watchdog_scan(looker); // and its expiry is met in the epoll of the stuck one
    CHECK_EQ(looker->is_searching, 1);
    CHECK_EQ(rt->watchdog.is_armed, 0);
    uint64_t n;
    CHECK_EQ(read(rt->watchdog.fd, &n, sizeof n), sizeof n);
    volt__searching_done(looker);
    CHECK_EQ(rt->watchdog.is_armed, 1);
    still_wait_readable(rt->watchdog.fd); // it runs
    still_end(rt);
}

// ---- with a full ring one event was asked for, and got, and not taken for a full batch

static void fill_ring(volt__worker *w) {
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w));
}
TEST(full_ring_hides_neither_events_nor_watchdog) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    volt__task *reader = still_task(w);
    volt__node node;
    int fd[2];
    memset(&node, 0, sizeof node);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    volt__fd *e = volt__fd_lookup(&rt->fds, fd[0]);
    CHECK_EQ(volt__fd_wait(&rt->fds, e, fd[0], 0, VOLT__RD, VOLT__RD,
                           volt__fd_take_snapshot(e), &node, reader), 1);
    CHECK(!(volt__task_begin(reader) & VOLT__CANCELLED));
    CHECK(volt__task_suspend(reader) == 0); // it sleeps
    fill_ring(w);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK(volt__watchdog_claim(&rt->watchdog)); // it may expire at any moment, behind that event
    rt->watchdog.armed_at = (uint32_t)((VOLT_NOW_NS() - rt->watchdog.period) >> 12) - 1;
    CHECK_EQ(volt__drive_events(w, 0, 0), 1);
    CHECK_EQ(rt->watchdog.is_armed, 0);
    CHECK(rt->injector.head == reader); // where there is room
    CHECK_EQ(volt__node_state(&node), VOLT__FIRED);
    volt_rt_close(rt, fd[0]);
    close(fd[1]);
    still_end(rt);
}

// ---- sleepers were counted in two steps, so that one claimed in between counted twice

enum { LOOKS = 1000000, CLAIMS = 1000000 };
typedef struct {
    volt__idle *idle;
    int n_claims, is_over;
} claimer;
static void *claimer_main(void *arg) {
    claimer *c = arg;
    while (!READ(c->is_over)) {
        volt__idle_park(c->idle, 0, 0);
        CHECK_EQ(volt__idle_claim_bit(c->idle, VOLT__ANY_WORKER), 0);
        COUNT(c->n_claims);
    }
    return NULL;
}
TEST(claim_makes_no_other_worker_look_parked) {
    volt_rt *rt = still_rt(2);
    claimer c = { &rt->idle, 0, 0 };
    rt->idle.n_words = VOLT__IDLE_WORDS; // as many as there can be: the count takes its time
    pthread_t t = start_thread(claimer_main, &c);
    for (int i = 0; i < LOOKS || READ(c.n_claims) < CLAIMS; i++)
        CHECK(volt__others_awake(rt->workers[0])); // worker 1 is
    WRITE(c.is_over, 1);
    join_thread(t);
    still_end(rt);
}

// ---- a wrapper that saw the flag of its token went on before the canceller had let go of it

typedef struct {
    volt_frame frame;
    volt_token *stop;
    volt_token_link link;
    int *n_ended;
    int64_t rc;
} bracket;
static volt_poll bracket_run(volt_cx *cx, void *arg) {
    bracket *b = arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(b->rc, volt_with_token(cx, &b->link, b->stop, volt_sleep(cx, VOLT_S(100))));
    COUNT(*b->n_ended);
    VOLT_END(b->rc);
}
TEST(wrapper_waits_for_canceller_to_let_go_of_token) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    volt_token stop;
    int n_ended = 0;
    int64_t rc = 0;
    memset(&stop, 0, sizeof stop);
    volt__lock(&stop.lock_); // the canceller has come as far as
    WRITE(stop.cancelled_, 1);
    WRITE(watched_word, &stop.lock_);
    RT_SPAWN(rt, &h, bracket_run, (bracket){ .stop = &stop, .n_ended = &n_ended });
    UNTIL(READ(n_waits) || READ(n_ended));
    CHECK_EQ(READ(n_ended), 0);
    volt__unlock(&stop.lock_);
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &rc), 0);
    CHECK_EQ(rc, -ECANCELED);
    destroy(rt);
}

// ---- a backlog that grew past its mark by two at once woke no worker

static void sleep_helper(volt_rt *rt, int is_searching) {
    (void)volt__idle_park(&rt->idle, 1, is_searching);
}
// Whether worker 1 was claimed and unparked; it then sleeps again.
static int was_helper_woken(volt_rt *rt) {
    if (volt__idle_is_parked(&rt->idle, 1)) return 0;
    still_wait_readable(rt->workers[1]->reactor.evfd);
    volt__reactor_acknowledge(&rt->workers[1]->reactor);
    sleep_helper(rt, 1);
    return 1;
}
static void empty_queues(volt__worker *w) {
    (void)volt__lifo_take(w);
    while (volt__ring_pop(&w->ring)) {}
}
TEST(backlog_that_skips_its_wake_mark_wakes_a_worker) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    volt__chain c;
    sleep_helper(rt, 0);
    w->wake_at = 2;

    volt__chain_init(&c); // an event wakes three tasks
    for (int i = 0; i < 3; i++) volt__chain_push(&c, still_task(w));
    volt__push_batch(w, &c);
    CHECK(was_helper_woken(rt));
    empty_queues(w);

    volt__push_ring(w, still_task(w)); // one, then two by way of the LIFO slot, then three
    volt__push_lifo(w, still_task(w));
    CHECK(!was_helper_woken(rt));
    volt__push_ring(w, still_task(w));
    CHECK(was_helper_woken(rt));
    empty_queues(w);

    volt__push_ring(w, still_task(w)); // two, and no push follows: the next maintenance sees it
    volt__push_lifo(w, still_task(w));
    volt__maintain(w);
    CHECK(was_helper_woken(rt));
    still_end(rt);
}

// ---- the listing of unfinished tasks at a deadline took references to tasks whose workers go on

TEST(listing_of_unfinished_tasks_does_not_write_to_them) {
    volt_rt *rt = still_rt(1);
    volt__task *t = still_task(rt->workers[0]);
    void *slab = volt__slab_of(t);
    volt__unfinished s;
    CHECK(volt__task_begin_private(t, 0)); // it runs, and no other thread may write
    CHECK_EQ(mprotect(slab, VOLT_SLAB_SIZE, PROT_READ), 0);
    volt__unfinished_find(rt, &s);
    CHECK_EQ(mprotect(slab, VOLT_SLAB_SIZE, PROT_READ | PROT_WRITE), 0);
    CHECK_EQ(s.n, 1);
    CHECK_EQ(s.n_held, 0);
    still_end(rt);
}

// ---- a task woken by the allocator's hook, right before its worker slept, was left in its queue

static volt__task *woken_by_hook;
static void waking_free(void *user, void *block, size_t size) {
    volt__task *t = READ(woken_by_hook);
    test_free(user, block, size);
    WRITE(woken_by_hook, NULL);
    if (t) volt__schedule(t);
}
TEST(hook_that_wakes_a_task_keeps_worker_awake) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    volt__task *t = still_task(w), *large = volt__heap_alloc(&w->heap, VOLT_SLAB_SIZE, 0);
    CHECK(large);
    volt__heap_free_remote(large); // its worker frees it when it tidies up before it sleeps
    rt->slabs.alloc.free = waking_free;
    VOLT_TLS_SET(w);
    WRITE(woken_by_hook, t);
    WRITE(is_sleep_forbidden, 1);
    volt__park(w);
    CHECK(volt__next_local(w) == t);
    WRITE(is_sleep_forbidden, 0);
    VOLT_TLS_SET(NULL);
    still_end(rt);
}

// ---- large tasks that others had ended stayed in memory until a worker tidied up

typedef struct {
    volt_frame frame;
    char bulk[VOLT_SLAB_SIZE];
} bulky;
// By a worker, or from outside (NULL); it ends somewhere else.
static void spawn_and_end(volt_rt *rt, volt__worker *w) {
    volt__task *t = volt__task_alloc(rt, w, sizeof(bulky), 0);
    CHECK(t);
    volt__heap_free_remote(t);
}
TEST(large_tasks_do_not_pile_up) {
    volt_rt *rt = still_rt(2);
    for (int i = 0; i < 2; i++) {
        volt__worker *w = i ? rt->workers[0] : NULL;
        intptr_t before = READ(test_heap.live_blocks);
        for (int k = 0; k < 10; k++) spawn_and_end(rt, w);
        CHECK_EQ(READ(test_heap.live_blocks), before + 1);
    }
    still_end(rt);
}

// ---- the end of a select cancels its losers: no sign of a task that ignores its cancellation

enum { N_SELECTS = 1000 }; // the budget runs out in every phase of a select
typedef struct {
    volt_frame frame;
    volt_arm in, late;
    int fd[2], i, rc;
    int64_t n;
    char c;
} selector;
static volt_poll selector_run(volt_cx *cx, void *arg) {
    selector *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < N_SELECTS; s->i++) {
        VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->in, s->n, volt_read(cx, s->fd[0], &s->c, 1)),
                                      VOLT_ARM(&s->late, volt_sleep(cx, VOLT_S(5)))));
        CHECK(s->in.fired && s->n == 1);
    }
    volt_close(cx, s->fd[0]);
    VOLT_END(0);
}
TEST(select_losers_are_not_logged_as_ignoring_cancellation) {
    static const char bytes[N_SELECTS];
    selector s = { .i = 0 };
    CHECK_EQ(pipe(s.fd), 0);
    CHECK_EQ(write(s.fd[1], bytes, sizeof bytes), sizeof bytes);
    CHECK_EQ(run_on(1, selector_run, &s), 0);
    CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], 0);
    CHECK_EQ(close(s.fd[1]), 0);
}

// ---- volt_run ended while another thread's volt_block_on was about to give its task back: leaked

enum { N_RUNS = 300 };
static volt_rt *rt_of_run;
static void *blocks_on_it(void *arg) {
    napper n = { .d = VOLT_NEVER };
    CHECK_EQ(volt_block_on(READ(rt_of_run), napper_run, &n), -ECANCELED);
    return arg;
}
typedef struct {
    volt_frame frame;
    pthread_t thread;
    int rc;
} host;
static volt_poll host_run(volt_cx *cx, void *arg) {
    host *h = arg;
    VOLT_BEGIN(cx, h);
    WRITE(rt_of_run, volt_cx_rt(cx));
    h->thread = start_thread(blocks_on_it, NULL);
    while (volt__count_alive(rt_of_run) < 2) VOLT_AWAIT(h->rc, volt_yield(cx));
    VOLT_END(0);
}
TEST(run_waits_for_block_on_of_other_threads) {
    for (int i = 0; i < N_RUNS; i++) {
        host h = { .rc = 0 };
        CHECK_EQ(run_on(1 + (uint32_t)i % 2, host_run, &h), 0);
        join_thread(h.thread);
    }
    CHECK_EQ(test_log.n[VOLT_LOG_HANDLE_LEAKED], 0);
}

// ---- a local that an await had lost still had its value where nothing had used that stack since

#if VOLT_STACK_FILL > 0 && !defined(VOLT__ASAN) // which keeps locals elsewhere
#  ifdef __clang__
#    pragma clang diagnostic ignored "-Wconditional-uninitialized"
#  else
#    pragma GCC diagnostic ignored "-Wjump-misses-init"
#  endif
enum { N_LOST = 256 };
typedef struct {
    volt_frame frame;
    int n_kept, rc;
} loser;
// As far down as the pattern goes: what a yield calls uses less.
static volt_poll loser_run(volt_cx *cx, void *arg) {
    loser *s = arg;
    VOLT_BEGIN(cx, s);
    volatile int lost[N_LOST];
    for (int i = 0; i < N_LOST; i++) lost[i] = 42;
    VOLT_AWAIT(s->rc, volt_yield(cx));
    for (int i = 0; i < N_LOST; i++) s->n_kept += lost[i] == 42;
    VOLT_END(0);
}
TEST(lost_locals_far_down_the_stack_are_overwritten) {
    loser s;
    memset(&s, 0, sizeof s);
    CHECK_EQ(run_on(1, loser_run, &s), 0);
    CHECK_EQ(s.n_kept, 0);
}
#endif
