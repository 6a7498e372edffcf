// SPDX-License-Identifier: MIT OR 0BSD Defects that were in volt.h once, each replayed step by
// step: where the defect was an interleaving, the test takes the steps of both sides itself, in the
// order that did harm.
#define VOLT_IMPLEMENTATION
#include "../volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

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
ROOT_TEST(a_token_cancelled_beforehand_spares_shields, {
    cleaner in;
    volt_token stop;
    volt_link link;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(s->rc, volt_unless(cx, &s->link, &s->stop, cleaner_run(cx, &s->in)));
    CHECK_EQ(s->in.rc, 0);
    CHECK_EQ(s->rc, 0); // a value wins
    VOLT_AWAIT(s->rc, volt_unless(cx, &s->link, &s->stop, volt_sleep(cx, VOLT_S(100))));
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
    volt_config c = { .workers = 1, .drain = VOLT_MS(20) };
    static parent p;
    CHECK_EQ(volt_run(&c, parent_run, &p), -ETIMEDOUT);
    test_pass_and_exit(); // the runtime is leaked, as the contract says
}

// ---- a negative time overflowed into "for ever"

TEST(a_negative_time_to_join_is_none) {
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
ROOT_TEST(accepted_packet_sockets_are_no_streams, {
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
ROOT_TEST(urgent_data_hides_nothing_behind_it, {
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
ROOT_TEST(passed_descriptors_hide_nothing_behind_them, { volt_handle h; int fd[2]; int64_t rc; }) {
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

// ---- an operation that had waited read from the next owner of its number

ROOT_TEST_1(an_operation_does_not_follow_its_number, { int fd[2], other[2]; char byte; }) {
    volt__io io;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s->fd), 0);
    volt__fd *e = volt__fd_get(&cx->rt_->fds, s->fd[0]);
    volt__io_init(&io, VOLT__OP_READ, s->fd[0], &s->byte, 1, 0);
    CHECK_EQ(volt__io_try(cx, e, &io), -EAGAIN);
    volt_close(cx, s->fd[0]); // between the try and the wait
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s->other), 0);
    CHECK_EQ(s->other[0], s->fd[0]);
    CHECK_EQ(write(s->other[1], "x", 1), 1);
    volt__node n;
    memset(&n, 0, sizeof n);
    CHECK_EQ(volt__fd_wait(&cx->rt_->fds, e, io.fd, 0, io.dir, io.seen, &n, cx->task_), -EBADF);
    CHECK_EQ(volt__io_try(cx, e, &io), -EBADF);
    CHECK_EQ(READ(e->use), 0);
    volt_close(cx, s->other[0]);
    volt_close(cx, s->other[1]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}

// ---- a refused spawn wiped the reference of a walker that had just met the task

typedef struct {
    volt_frame frame;
} idler;
ROOT_TEST_1(a_refused_task_is_freed_once, { idler state; int round; }) {
    VOLT_BEGIN(cx, s);
    for (s->round = 0; s->round < 2; s->round++) {
        volt__worker *w = cx->worker_;
        volt__task *t = volt__task_alloc(w->rt, w, sizeof s->state, 0);
        volt__slab *slab = volt__slab_of(t);
        uint32_t used = slab->used;
        volt__task_fill(t, giver_run, 0, "refused");
        volt__task_publish(t, 2);
        if (s->round) {
            CHECK(volt__task_try_retain(t)); // the walker
            volt__task_refuse(t, 2);
            CHECK_EQ(slab->used, used); // still the walker's
            CHECK(volt__task_release(t));
            volt__task_free(t);
        } else {
            volt__task_refuse(t, 2);
        }
        CHECK_EQ(slab->used, used - 1);
    }
    VOLT_END(0);
}

// ---- the runtime was freed under a thread that had just given up what kept it alive

static void *destroyer(void *arg) {
    volt_rt *rt = arg;
    CHECK_EQ(volt_destroy(rt), 0);
    return NULL;
}
TEST(destroy_waits_for_who_is_still_inside) {
    volt_rt *rt = create_on(2);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt__visit(rt); // as every wake, release and spawn from outside does
    pthread_t t = start_thread(destroyer, rt);
    UNTIL(READ(rt->visitors) == 3);
    CHECK(READ(test_heap.live_blocks) > 0);
    volt__unvisit(rt);
    join_thread(t);
    test_check_heap();
}
