// SPDX-License-Identifier: MIT OR 0BSD
// Calls of the program (volt_io, volt_try_io), readiness (volt_read_ready, volt_write_ready), and
// reads and writes that do not wait.
static int n_calls, n_polls, n_controls; // on descriptors, of poll(2), of epoll_ctl(2)
#define VOLT_SYS(name_, ...) (count_call(#name_), name_(__VA_ARGS__))
static void count_call(const char *name);
#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include <sys/uio.h>
static int endless_fd = -1; // takes any number of bytes, and looks at none
static ssize_t write_parts(int fd, const struct iovec *iov, int n) {
    ssize_t sum = 0;
    if (fd != endless_fd) return writev(fd, iov, n);
    for (int i = 0; i < n && sum < 1 << 30; i++) sum += (ssize_t)iov[i].iov_len;
    return sum;
}
#define writev(fd_, iov_, n_) write_parts(fd_, iov_, n_)
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static void count_call(const char *name) {
    static const char *const transfers[] = { "recv", "send", "recvmsg", "sendmsg", "read", "readv",
                                             "write", "writev" };
    for (size_t i = 0; i < sizeof transfers / sizeof transfers[0]; i++)
        if (strcmp(name, transfers[i]) == 0) COUNT(n_calls);
    if (strcmp(name, "poll") == 0) COUNT(n_polls);
    if (strcmp(name, "epoll_ctl") == 0) COUNT(n_controls);
}

// ---- volt_io

typedef struct counted_call {
    int n_calls, n_left; // left: answers of -EINTR, before the call is made
    uint64_t value;
} counted_call;
static int64_t take_event(int fd, void *arg) {
    counted_call *c = (counted_call *)arg;
    c->n_calls++;
    if (c->n_left-- > 0) return -EINTR;
    return read(fd, &c->value, sizeof c->value) < 0 ? -errno : 0;
}
static int64_t put_event(int fd, void *arg) {
    counted_call *c = (counted_call *)arg;
    c->n_calls++;
    return write(fd, &c->value, sizeof c->value) < 0 ? -errno : 0;
}
typedef struct {
    volt_frame frame;
    int fd;
    counted_call call;
    int64_t rc;
    int n_ended;
} event_taker;
static volt_poll event_taker_run(volt_cx *cx, void *arg) {
    event_taker *t = (event_taker *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, volt_io(cx, t->fd, VOLT_IN, take_event, &t->call));
    VOLT_END(t->rc < 0 ? t->rc : (int64_t)t->call.value);
}

ROOT_TEST_1(io_calls_again_when_the_descriptor_is_ready, {
    int fd;
    volt_handle h;
    counted_call call;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC); // it becomes non-blocking
    CHECK(s->fd >= 0);
    SPAWN(&s->h, event_taker_run, ((event_taker){ .fd = s->fd }));
    for (s->rc = 0; s->rc < 20; s->rc++) VOLT_AWAIT(volt_yield(cx));
    CHECK(fcntl(s->fd, F_GETFL) & O_NONBLOCK);
    s->call.value = 7;
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_OUT, put_event, &s->call));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->call.n_calls, 1);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 7);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
ROOT_TEST_1(io_waits_until_a_write_is_possible, {
    int fd;
    volt_handle h;
    counted_call call;
    event_taker other;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->call.value = UINT64_MAX - 1; // the most that an eventfd holds
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_OUT, put_event, &s->call));
    CHECK_EQ(s->rc, 0);
    SPAWN(&s->h, event_taker_run, ((event_taker){ .fd = s->fd }));
    s->call.value = 5;
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_OUT, put_event, &s->call));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ((uint64_t)s->rc, UINT64_MAX - 1);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
ROOT_TEST_1(io_repeats_a_call_that_was_interrupted, {
    event_taker taker;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->taker.fd = eventfd(3, EFD_CLOEXEC | EFD_NONBLOCK);
    s->taker.call.n_left = 2;
    VOLT_AWAIT(s->rc, event_taker_run(cx, &s->taker));
    CHECK_EQ(s->rc, 3);
    CHECK_EQ(s->taker.call.n_calls, 3);
    volt_close(cx, s->taker.fd);
    VOLT_END(0);
}
ROOT_TEST_1(io_refuses_other_events, {
    counted_call call;
    int64_t rc;
    int fd;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(3, EFD_CLOEXEC | EFD_NONBLOCK);
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, 0, take_event, &s->call));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_IN | VOLT_OUT, take_event, &s->call));
    CHECK_EQ(s->rc, -EINVAL);
    CHECK_EQ(volt_try_io(cx, s->fd, VOLT_PRI, take_event, &s->call), -EINVAL);
    CHECK_EQ(s->call.n_calls, 0);
    VOLT_AWAIT(s->rc, volt_io(cx, -1, VOLT_IN, take_event, &s->call));
    CHECK_EQ(s->rc, -EBADF);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
// A cancelled call is not made again; a close during the wait ends it.
ROOT_TEST(io_ends_when_cancelled_or_closed, {
    int fd;
    volt_handle h[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < 2; i++) SPAWN(&s->h[i], event_taker_run, ((event_taker){ .fd = s->fd }));
    for (s->rc = 0; s->rc < 20; s->rc++) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&s->h[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_close(cx, s->fd);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    CHECK_EQ(s->rc, -EBADF);
    VOLT_END(0);
}
// An error of the call is its result, -ENOTSOCK on a file that is no socket as well.
static int64_t not_a_socket(int fd, void *arg) {
    char c;
    ++*(int *)arg;
    return recv(fd, &c, 1, MSG_DONTWAIT) < 0 ? -errno : 0;
}
ROOT_TEST_1(io_returns_the_error_of_its_call, {
    int fd, n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC);
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_IN, not_a_socket, &s->n));
    CHECK_EQ(s->rc, -ENOTSOCK);
    CHECK_EQ(s->n, 1);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
// The same of a socket, if the call concerns another descriptor: the number is no other file's.
static int64_t another_is_no_socket(int fd, void *arg) {
    (void)fd;
    ++*(int *)arg;
    return -ENOTSOCK;
}
typedef struct {
    volt_frame frame;
    int fd;
    char c;
    int64_t rc;
} byte_reader;
static volt_poll byte_reader_run(volt_cx *cx, void *arg) {
    byte_reader *r = (byte_reader *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_read(cx, r->fd, &r->c, 1));
    VOLT_END(r->rc);
}
ROOT_TEST_1(io_returns_enotsock_of_another_descriptor, {
    int fd[2], n;
    volt_handle h;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    SPAWN(&s->h, byte_reader_run, ((byte_reader){ .fd = s->fd[0] }));
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd[0], VOLT_IN, another_is_no_socket, &s->n));
    CHECK_EQ(s->rc, -ENOTSOCK);
    CHECK_EQ(volt_try_io(cx, s->fd[0], VOLT_IN, another_is_no_socket, &s->n), -ENOTSOCK);
    CHECK_EQ(s->n, 2);
    VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "x", 1));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h)); // its wait was not disturbed
    CHECK_EQ(s->rc, 1);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// The number of a socket is that of a pipe by now: a call that refuses it is made again, as of a
// new file.
static int64_t is_no_socket(int fd, void *arg) {
    char c;
    ++*(int *)arg;
    return recv(fd, &c, 1, MSG_DONTWAIT) < 0 ? -errno : 0;
}
ROOT_TEST_1(io_of_a_number_that_is_no_socket_any_more_starts_over, {
    int fd[2], other[2], n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    CHECK_EQ(volt_try_io(cx, s->fd[0], VOLT_IN, is_no_socket, &s->n), -EAGAIN);
    CHECK_EQ(pipe(s->other), 0);
    CHECK_EQ(dup2(s->other[0], s->fd[0]), s->fd[0]); // and not volt_close
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd[0], VOLT_IN, is_no_socket, &s->n));
    CHECK_EQ(s->rc, -ENOTSOCK);
    CHECK(s->n >= 2);
    for (int i = 0; i < 2; i++) close(s->other[i]), volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// The -EAGAIN of one function says nothing about another one, nor about a read.
static int64_t take_if_x(int fd, void *arg) {
    char *c = (char *)arg;
    int64_t n = recv(fd, c, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1 && *c == 'x') return recv(fd, c, 1, MSG_DONTWAIT);
    return n < 0 ? -errno : -EAGAIN;
}
ROOT_TEST_1(functions_of_one_descriptor_wait_for_different_things, {
    int fd[2], n;
    char c;
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "abx", 3));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(5),
                                  volt_io(cx, s->fd[0], VOLT_IN, take_if_x, &s->c)));
    CHECK_EQ(s->rc, -ETIMEDOUT); // the event is used up; the bytes are there
    VOLT_AWAIT(s->rc, volt_read(cx, s->fd[0], &s->c, 1));
    CHECK(s->rc == 1 && s->c == 'a');
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[0], &s->c, 1, 0));
    CHECK(s->rc == 1 && s->c == 'b');
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd[0], VOLT_IN, take_if_x, &s->c));
    CHECK(s->rc == 1 && s->c == 'x');
    // and the other way: a read has found nothing, and no event comes
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(5), volt_read(cx, s->fd[0], &s->c, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd[0], VOLT_IN, another_is_no_socket, &s->n));
    CHECK_EQ(s->rc, -ENOTSOCK);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// A kernel interface of which volt knows nothing: the interfaces of the system, by netlink.
// Not every C library comes with <linux/netlink.h>.
enum { GET_LINK = 18, NEW_LINK = 16, IS_DUMP_REQUEST = 0x301 };
typedef struct {
    uint32_t len;
    uint16_t type, flags;
    uint32_t number, pid;
} netlink_head;
typedef struct {
    char buf[8192];
    ssize_t n;
} answer;
static int64_t ask_links(int fd, void *arg) {
    struct {
        netlink_head head;
        char info[16]; // of an interface: all
    } ask;
    (void)arg;
    memset(&ask, 0, sizeof ask);
    ask.head.len = sizeof ask;
    ask.head.type = GET_LINK;
    ask.head.flags = IS_DUMP_REQUEST;
    return send(fd, &ask, sizeof ask, 0) < 0 ? -errno : 0;
}
static int64_t take_answer(int fd, void *arg) {
    answer *a = (answer *)arg;
    a->n = recv(fd, a->buf, sizeof a->buf, 0);
    return a->n < 0 ? -errno : (int64_t)a->n;
}
ROOT_TEST_1(io_awaits_netlink, {
    int fd;
    answer a;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0); // blocking so far
    if (s->fd < 0) SKIP("the system has no netlink");
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_OUT, ask_links, NULL));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_io(cx, s->fd, VOLT_IN, take_answer, &s->a));
    CHECK(s->rc >= (int64_t)sizeof(netlink_head));
    CHECK_EQ(((netlink_head *)(void *)s->a.buf)->type, NEW_LINK);
    CHECK(fcntl(s->fd, F_GETFL) & O_NONBLOCK);
    volt_close(cx, s->fd);
    VOLT_END(0);
}

// ---- readiness, and attempts that do not wait

typedef struct {
    volt_frame frame;
    int fd, n_ready;
    int64_t rc, n;
} drain;
// Echoes nothing: reads what comes, into its stack, until the end.
static volt_poll drain_run(volt_cx *cx, void *arg) {
    drain *d = (drain *)arg;
    VOLT_BEGIN(cx, d);
    for (;;) {
        VOLT_AWAIT(d->rc, volt_read_ready(cx, d->fd));
        if (d->rc < 0) VOLT_RETURN(d->rc);
        d->n_ready++;
        char buf[64];
        d->rc = volt_try_read(cx, d->fd, buf, sizeof buf);
        if (d->rc == -EAGAIN) continue;
        if (d->rc <= 0) break;
        d->n += d->rc;
    }
    VOLT_END(d->rc < 0 ? d->rc : d->n);
}
static void make_pair(int fd[2], int is_tcp) {
    if (!is_tcp) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        return;
    }
    volt_addr a;
    int lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(lfd >= 0 && volt_local_addr(lfd, &a) == 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fd[0], (struct sockaddr *)(void *)a.sa_, a.len_), 0);
    CHECK_EQ(fcntl(lfd, F_SETFL, 0), 0);
    fd[1] = accept(lfd, NULL, NULL);
    CHECK(fd[1] >= 0);
    close(lfd);
}
ROOT_TEST_1(read_ready_waits_without_system_calls, {
    int fd[2], i, is_tcp;
    volt_handle h;
    int64_t rc;
    char out[100];
    int n_before;
}) {
    VOLT_BEGIN(cx, s);
    for (s->is_tcp = 0; s->is_tcp < 2; s->is_tcp++) {
        make_pair(s->fd, s->is_tcp);
        SPAWN(&s->h, drain_run, ((drain){ .fd = s->fd[0] }));
        for (s->i = 0; s->i < 20; s->i++) VOLT_AWAIT(volt_yield(cx));
        CHECK_EQ(n_calls, s->n_before); // nothing was read while nothing had come
        n_polls = n_controls = 0;
        for (s->i = 0; s->i < 10; s->i++) {
            CHECK_EQ(send(s->fd[1], s->out, sizeof s->out, 0), (ssize_t)sizeof s->out);
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
        }
        CHECK_EQ(n_polls, 0);
        if (!VOLT_DEBUG) CHECK_EQ(n_controls, 0); // a debug build asks whether the file is the same
        // 100 bytes are two reads; the one that finds the socket empty is saved in TCP
        if (s->is_tcp) CHECK(n_calls - s->n_before <= 20);
        else CHECK(n_calls - s->n_before <= 30);
        volt_close(cx, s->fd[1]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, 1000);
        volt_close(cx, s->fd[0]);
        s->n_before = n_calls;
    }
    VOLT_END(0);
}
ROOT_TEST_1(read_ready_ends_at_once_while_data_is_left, {
    int fd[2];
    char c[4];
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, 1), -EAGAIN);
    CHECK_EQ(send(s->fd[1], "abc", 3, 0), 3);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_read_ready(cx, s->fd[0]));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, 1), 1);
        CHECK_EQ(s->c[0], "abc"[s->i]);
    }
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, 1), -EAGAIN);
    n_calls = 0;
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, 1), -EAGAIN);
    CHECK_EQ(n_calls, 0); // known to be empty
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// The readiness is that of the entry: an event that comes between the attempt and the wait is kept.
ROOT_TEST(read_ready_loses_no_event, {
    int fd[2], i;
    volt_handle h;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    SPAWN(&s->h, drain_run, ((drain){ .fd = s->fd[0] }));
    for (s->i = 0; s->i < 2000; s->i++) {
        CHECK_EQ(send(s->fd[1], "x", 1, 0), 1);
        if (s->i % 7 == 0) VOLT_AWAIT(volt_yield(cx));
    }
    volt_close(cx, s->fd[1]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 2000);
    volt_close(cx, s->fd[0]);
    VOLT_END(0);
}
ROOT_TEST_1(write_ready_waits_for_room, {
    int fd[2];
    volt_handle h;
    int64_t rc, n;
    char block[4096];
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    while ((s->rc = volt_try_write(cx, s->fd[0], s->block, sizeof s->block)) > 0) s->n += s->rc;
    CHECK_EQ(s->rc, -EAGAIN);
    SPAWN(&s->h, drain_run, ((drain){ .fd = s->fd[1] }));
    VOLT_AWAIT(s->rc, volt_write_ready(cx, s->fd[0]));
    CHECK_EQ(s->rc, 0);
    s->rc = volt_try_write(cx, s->fd[0], s->block, 16);
    CHECK_EQ(s->rc, 16);
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, s->n + 16);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
ROOT_TEST(read_ready_ends_when_cancelled_or_closed, {
    int fd[2];
    volt_handle h[2];
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    for (int i = 0; i < 2; i++) SPAWN(&s->h[i], drain_run, ((drain){ .fd = s->fd[0] }));
    for (s->i = 0; s->i < 20; s->i++) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&s->h[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    CHECK_EQ(s->rc, -EBADF);
    volt_close(cx, s->fd[1]);
    VOLT_AWAIT(s->rc, volt_read_ready(cx, -1));
    CHECK_EQ(s->rc, -EBADF);
    CHECK_EQ(volt_try_read(cx, -1, NULL, 1), -EBADF);
    VOLT_END(0);
}
ROOT_TEST_1(read_ready_respects_a_time_limit, {
    int fd[2];
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1), volt_read_ready(cx, s->fd[0])));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(send(s->fd[1], "x", 1, 0), 1);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 0, volt_read_ready(cx, s->fd[0])));
    CHECK_EQ(s->rc, 0); // it came in time
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
ROOT_TEST_1(read_ready_of_a_disk_file_ends_at_once, {
    int fd;
    char c[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    char name[] = "/tmp/volt-test-XXXXXX";
    s->fd = mkstemp(name);
    CHECK(s->fd >= 0);
    unlink(name);
    CHECK_EQ(volt_try_write(cx, s->fd, "abc", 3), 3);
    lseek(s->fd, 0, SEEK_SET);
    VOLT_AWAIT(s->rc, volt_read_ready(cx, s->fd));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_try_read(cx, s->fd, s->c, sizeof s->c), 3);
    CHECK_EQ(volt_try_read(cx, s->fd, s->c, sizeof s->c), 0);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
ROOT_TEST_1(try_read_finds_the_end_and_the_next_file_of_a_number, {
    int fd[2], next[2];
    char c[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, sizeof s->c), -EAGAIN);
    shutdown(s->fd[1], SHUT_WR);
    VOLT_AWAIT(s->rc, volt_read_ready(cx, s->fd[0]));
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, sizeof s->c), 0);
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, 0), 0);
    CHECK_EQ(volt_try_readv(cx, s->fd[0], NULL, -1), -EINVAL);
    // closed without volt_close: the number is now a pipe's
    CHECK_EQ(pipe(s->next), 0);
    CHECK_EQ(dup2(s->next[0], s->fd[0]), s->fd[0]);
    CHECK_EQ(write(s->next[1], "new", 3), 3);
    CHECK_EQ(volt_try_read(cx, s->fd[0], s->c, sizeof s->c), 3);
    for (int i = 0; i < 2; i++) close(s->next[i]);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
ROOT_TEST_1(try_writev_writes_what_there_is_room_for, {
    int fd[2];
    char in[8];
    char *data;
    struct iovec part[3];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    s->data = (char *)calloc(1, 1 << 20);
    s->part[0] = (struct iovec){ "ab", 2 };
    s->part[1] = (struct iovec){ s->data, 0 };
    s->part[2] = (struct iovec){ "cde", 3 };
    CHECK_EQ(volt_try_writev(cx, s->fd[0], s->part, 3), 5);
    CHECK_EQ(volt_try_read(cx, s->fd[1], s->in, sizeof s->in), 5);
    CHECK_EQ(memcmp(s->in, "abcde", 5), 0);
    CHECK_EQ(volt_try_writev(cx, s->fd[0], s->part, 0), 0);
    CHECK_EQ(volt_try_writev(cx, s->fd[0], s->part, -1), -EINVAL);
    s->part[0] = s->part[2] = (struct iovec){ s->data, 1 << 20 };
    do s->rc = volt_try_writev(cx, s->fd[0], s->part, 3);
    while (s->rc > 0);
    CHECK_EQ(s->rc, -EAGAIN); // it does not wait
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    CHECK_EQ(volt_try_writev(cx, -1, s->part, 3), -EBADF);
    free(s->data);
    VOLT_END(0);
}
ROOT_TEST_1(try_io_calls_once, {
    int fd;
    counted_call call;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC);
    CHECK_EQ(volt_try_io(cx, s->fd, VOLT_IN, take_event, &s->call), -EAGAIN);
    CHECK_EQ(s->call.n_calls, 1);
    s->call.value = 9;
    CHECK_EQ(volt_try_io(cx, s->fd, VOLT_OUT, put_event, &s->call), 0);
    CHECK_EQ(volt_try_io(cx, s->fd, VOLT_IN, take_event, &s->call), 0);
    CHECK_EQ(s->call.value, 9);
    volt_close(cx, s->fd);
    VOLT_END(0);
}

// ---- volt_writev_all

enum { PARTS = 40, BYTES = 300000 };
static unsigned char pattern(size_t at) { return (unsigned char)((at * 31) >> 3 ^ at >> 11); }
typedef struct {
    volt_frame frame;
    int fd;
    size_t n;
    int64_t rc;
    unsigned char buf[1000];
} checker;
static volt_poll checker_run(volt_cx *cx, void *arg) {
    checker *k = (checker *)arg;
    VOLT_BEGIN(cx, k);
    for (;;) {
        VOLT_AWAIT(k->rc, volt_read(cx, k->fd, k->buf, sizeof k->buf));
        if (k->rc <= 0) break;
        for (int64_t i = 0; i < k->rc; i++) CHECK_EQ(k->buf[i], pattern(k->n + (size_t)i));
        k->n += (size_t)k->rc;
    }
    VOLT_END((int64_t)k->n);
}
ROOT_TEST_1(writev_all_writes_all_parts_in_order, {
    int fd[2], i;
    volt_handle h;
    unsigned char *data;
    struct iovec part[PARTS];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    s->data = (unsigned char *)malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) s->data[i] = pattern(i);
    for (size_t i = 0, at = 0; i < PARTS; i++) { // of different lengths, some of them 0
        size_t n = i == PARTS - 1 ? BYTES - at : i % 5 == 0 ? 0 : i * 331;
        s->part[i].iov_base = s->data + at;
        s->part[i].iov_len = n;
        at += n;
    }
    SPAWN(&s->h, checker_run, ((checker){ .fd = s->fd[1] }));
    VOLT_AWAIT(s->rc, volt_writev_all(cx, s->fd[0], s->part, PARTS));
    CHECK_EQ(s->rc, BYTES);
    VOLT_AWAIT(s->rc, volt_writev_all(cx, s->fd[0], s->part, 0));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_writev_all(cx, s->fd[0], NULL, 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_writev_all(cx, s->fd[0], s->part, -1));
    CHECK_EQ(s->rc, -EINVAL);
#if SIZE_MAX > UINT32_MAX // more than any memory holds; a sum that overflows would be 1000
    s->part[0].iov_len = s->part[1].iov_len = SIZE_MAX / 2 + 1;
    s->part[2].iov_len = 1000;
    VOLT_AWAIT(s->rc, volt_writev_all(cx, s->fd[0], s->part, 3));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd[0], s->data, SIZE_MAX / 2 + 1));
    CHECK_EQ(s->rc, -EINVAL);
#endif
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, BYTES);
    volt_close(cx, s->fd[1]);
    free(s->data);
    VOLT_END(0);
}
// The sum of parts that repeat memory is not bound by the size of memory.
ROOT_TEST_1(writev_all_writes_more_than_32_bits_count, {
    struct iovec part[20];
    int64_t rc;
}) {
    enum { PART = 1 << 28 };
    VOLT_BEGIN(cx, s);
    endless_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 20; i++) s->part[i] = (struct iovec){ s, PART };
    VOLT_AWAIT(s->rc, volt_writev_all(cx, endless_fd, s->part, 20));
    CHECK_EQ(s->rc, 20 * (int64_t)PART);
    volt_close(cx, endless_fd);
    endless_fd = -1;
    VOLT_END(0);
}
ROOT_TEST_1(writev_all_that_fails_tells_its_progress, {
    int fd[2];
    unsigned char *data;
    struct iovec part[2];
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_pair(s->fd, 0);
    s->data = (unsigned char *)calloc(1, BYTES);
    s->part[0] = (struct iovec){ s->data, 1000 };
    s->part[1] = (struct iovec){ s->data, BYTES };
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1),
                                  volt_writev_all(cx, s->fd[0], s->part, 2)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    s->rc = volt_progress(&s->frame);
    CHECK(s->rc > 1000 && s->rc < BYTES);
    int pending = 0;
    CHECK_EQ(ioctl(s->fd[1], FIONREAD, &pending), 0);
    CHECK_EQ(pending, s->rc);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    free(s->data);
    VOLT_END(0);
}

// ---- wake-ups of a guest

// Returns the reads and writes that three wake-ups by the thread of the steps cost.
static int calls_of_wakeups(uint32_t is_asked) {
    volt_config c = test_config(1);
    volt_rt *rt = NULL;
    c.is_guest = 1;
    c.guest_is_asked = is_asked;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK_EQ(volt_rt_step(rt, 0), 0);
    CHECK_EQ(volt_rt_deadline(rt), VOLT_NEVER);
    n_calls = n_controls = 0;
    for (int i = 0, n_ended = 0; i < 3; i++) {
        RT_SPAWN(rt, NULL, giver_run, (giver){ .n_ended = &n_ended });
        CHECK_EQ(volt_rt_deadline(rt), 0);
        CHECK_EQ(volt_rt_step(rt, 0), 1);
        CHECK_EQ(n_ended, i + 1);
    }
    int n = n_calls + n_controls;
    destroy(rt);
    return n;
}
TEST(guest_that_is_asked_reads_and_writes_nothing_for_its_own_wakeups) {
    CHECK(calls_of_wakeups(0) > 0);
    CHECK_EQ(calls_of_wakeups(1), 0);
}
