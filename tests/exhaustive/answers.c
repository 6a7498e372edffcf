// SPDX-License-Identifier: MIT OR 0BSD
// Answers that the kernel, the clock or another thread may give at one moment and hardly ever does:
// the seam gives them here, from a list or by a function that is called in the middle. Only the
// test's own thread runs, so that every run takes the same way.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// ---- the seam

enum {
    A_accept, A_accept4, A_bind, A_connect, A_epoll_create1, A_epoll_ctl, A_fcntl, A_fstat, A_getfl,
    A_listen, A_madvise, A_mincore, A_open, A_poll, A_read, A_recv, A_recvmmsg, A_recvmsg,
    A_sendmmsg, A_sendmsg, A_cfsetispeed, A_cfsetospeed, A_setsockopt, A_sigtimedwait, A_socket,
    A_unlink, A_write, N_A
};
static struct {
    int errors[16]; // the next answers; 0: it returns 0. Behind them the kernel's own
    int n, at, n_calls;
    int n_own; // answers of the kernel's own before those
    void (*meanwhile)(void); // called once, before the next answer
    int is_zero;             // which then is 0
} answers[N_A];
static int fails(int call) {
    void (*meanwhile)(void) = answers[call].meanwhile;
    answers[call].meanwhile = NULL;
    if (meanwhile) meanwhile();
    answers[call].n_calls++;
    if (answers[call].n_own > 0) {
        answers[call].n_own--;
        return 0;
    }
    if (answers[call].at == answers[call].n) return 0;
    errno = answers[call].errors[answers[call].at++ % 16];
    if (errno) return -1;
    errno = EPIPE; // of a call before
    return 1;
}
// Functions, not conditions in the macro: a condition of volt.h shall be its own.
#define VOLT_SYS(name_, ...) answer_##name_(__VA_ARGS__)
#define ANSWER(type_, call_, params_, ...)                                                         \
    static type_ answer_##call_ params_ {                                                          \
        int rc = fails(A_##call_);                                                                 \
        return rc ? (rc < 0 ? -1 : 0) : call_(__VA_ARGS__);                                        \
    }
ANSWER(int, accept, (int fd, struct sockaddr *a, socklen_t *n), fd, a, n)
ANSWER(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), fd, a, n, flags)
ANSWER(int, bind, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
ANSWER(int, connect, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
ANSWER(int, epoll_create1, (int flags), flags)
ANSWER(int, madvise, (void *at, size_t n, int advice), at, n, advice)
ANSWER(int, mincore, (void *at, size_t n, unsigned char *is_resident), at, n, is_resident)
static char opened[128]; // the path
static int answer_open(const char *path, int flags) {
    int rc = fails(A_open);
    snprintf(opened, sizeof opened, "%s", path);
    return rc ? (rc < 0 ? -1 : 0) : open(path, flags);
}
static uint32_t asked_events;
static int answer_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    asked_events = op == EPOLL_CTL_DEL ? 0 : ev->events;
    return fails(A_epoll_ctl) ? -1 : epoll_ctl(ep, op, fd, ev);
}
ANSWER(ssize_t, read, (int fd, void *buf, size_t n), fd, buf, n)
ANSWER(ssize_t, recv, (int fd, void *buf, size_t n, int flags), fd, buf, n, flags)
// Control data in place of the kernel's, of one int.
static struct {
    int is_given, level, type, value;
} control;
static ssize_t answer_recvmsg(int fd, struct msghdr *m, int flags) {
    int rc = fails(A_recvmsg);
    if (rc) return rc < 0 ? -1 : 0;
    ssize_t n = recvmsg(fd, m, flags);
    if (n < 0 || !control.is_given) return n;
    m->msg_controllen = CMSG_SPACE(sizeof control.value);
    struct cmsghdr *item = CMSG_FIRSTHDR(m);
    item->cmsg_level = control.level;
    item->cmsg_type = control.type;
    item->cmsg_len = CMSG_LEN(sizeof control.value);
    memcpy(CMSG_DATA(item), &control.value, sizeof control.value);
    return n;
}
#ifdef __GLIBC__
typedef int many_flags;
#else
typedef unsigned many_flags;
#endif
static int answer_recvmmsg(int fd, struct mmsghdr *v, unsigned n, many_flags flags,
                           struct timespec *t) {
    int rc = fails(A_recvmmsg);
    return rc ? (rc < 0 ? -1 : 0) : recvmmsg(fd, v, n, flags, t);
}
static int answer_sendmmsg(int fd, struct mmsghdr *v, unsigned n, many_flags flags) {
    int rc = fails(A_sendmmsg);
    return rc ? (rc < 0 ? -1 : 0) : sendmmsg(fd, v, n, flags);
}
ANSWER(int, cfsetispeed, (struct termios *t, speed_t speed), t, speed)
ANSWER(int, cfsetospeed, (struct termios *t, speed_t speed), t, speed)
ANSWER(int, unlink, (const char *path), path)
// The settings of a serial line that differ from those that were set, each time but the first.
static struct {
    int n_calls;
    tcflag_t other_flags;
    speed_t other_speed; // B0: none
} altered;
static int answer_tcgetattr(int fd, struct termios *t) {
    int rc = tcgetattr(fd, t);
    if (altered.n_calls++ > 0) {
        t->c_cflag ^= altered.other_flags;
        if (altered.other_speed != B0) (void)cfsetospeed(t, altered.other_speed);
    }
    return rc;
}
static ssize_t answer_sendmsg(int fd, const struct msghdr *m, int flags);
ANSWER(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *t), set,
       info, t)
ANSWER(int, socket, (int family, int type, int protocol), family, type, protocol)
ANSWER(ssize_t, write, (int fd, const void *buf, size_t n), fd, buf, n)
static int backlog;
static int answer_listen(int fd, int n) {
    backlog = n;
    return fails(A_listen) ? -1 : listen(fd, n);
}
static char options_set[128]; // that were set
static int answer_setsockopt(int fd, int level, int name, const void *value, socklen_t n) {
    int v = 0;
    memcpy(&v, value, n < sizeof v ? n : sizeof v);
    int rc = fails(A_setsockopt);
    if (rc) return rc < 0 ? -1 : 0;
    const char *text = level == IPPROTO_TCP && name == TCP_NODELAY ? "nodelay"
                       : level == IPPROTO_IPV6                    ? "v6only"
                       : name == SO_REUSEADDR                     ? "reuseaddr"
                       : name == SO_REUSEPORT                     ? "reuseport"
                       : name == SO_KEEPALIVE                     ? "keepalive"
                                                                  : "other";
    size_t at = strlen(options_set);
    snprintf(options_set + at, sizeof options_set - at, "%s %d, ", text, v);
    return setsockopt(fd, level, name, value, n);
}
static int told_protocol; // of each socket; 0: what the kernel says
static int has_no_segments; // as before Linux 4.18: the control data is skipped
static int n_asked_segments;
static int answer_getsockopt(int fd, int level, int name, void *value, socklen_t *n) {
    n_asked_segments += level == IPPROTO_UDP && name == 103;
    if (has_no_segments && level == IPPROTO_UDP && name == 103) {
        errno = ENOPROTOOPT;
        return -1;
    }
    if (!told_protocol || level != SOL_SOCKET || name != SO_PROTOCOL)
        return getsockopt(fd, level, name, value, n);
    memcpy(value, &told_protocol, sizeof told_protocol);
    return 0;
}
static int is_dumping, asked_ms; // asked_ms: how long the last poll was to wait
static int answer_poll(struct pollfd *p, nfds_t n, int ms) {
    if (ms != 0 && !is_dumping) abort(); // a worker does not wait there
    asked_ms = ms;
    int rc = fails(A_poll);
    if (rc) {
        if (errno == EINTR) p->revents = POLLNVAL; // a failed call may leave anything there
        return rc < 0 ? -1 : 0;
    }
    if (!answers[A_poll].is_zero) return poll(p, n, ms);
    answers[A_poll].is_zero = 0;
    return 0;
}
static ssize_t answer_sendmsg(int fd, const struct msghdr *m, int flags) {
    struct msghdr plain = *m;
    int rc = fails(A_sendmsg);
    if (rc) return rc < 0 ? -1 : 0;
    if (has_no_segments) plain.msg_controllen = 0;
    return sendmsg(fd, &plain, flags);
}
// The peer of cut_fd closes in the middle of a transfer: the kernel raises SIGPIPE, and yet returns
// the number of bytes that it has moved.
static int cut_fd = -1;
static ssize_t answer_splice(int in, void *in_at, int out, void *out_at, size_t n, unsigned flags) {
    ssize_t rc = splice(in, in_at, out, out_at, out == cut_fd ? 1 : n, flags);
    if (out == cut_fd && n > 1) raise(SIGPIPE);
    return rc;
}
static ssize_t answer_sendfile(int out, int in, off_t *at, size_t n) {
    ssize_t rc = sendfile(out, in, at, out == cut_fd ? 1 : n);
    if (out == cut_fd && n > 1) raise(SIGPIPE);
    return rc;
}
#define answer_fcntl(fd_, ...) answer_fcntl_with(fd_, __VA_ARGS__, 0, 0)
#define answer_fcntl_with(fd_, op_, arg_, ...) answer_fcntl3(fd_, op_, arg_)
static int answer_fcntl3(int fd, int op, int arg) {
    int rc = op == F_GETFL ? fails(A_getfl) : op == F_SETFL ? fails(A_fcntl) : 0;
    return rc < 0 ? -1 : fcntl(fd, op, arg); // 0: the kernel's own answer
}
// The kind of file that fstat reports for each number, and once another inode for one number.
enum { IN_NOTHING, IN_DEVICE, IN_INODE, IN_KIND_OF_DEVICE };
static struct {
    mode_t kind; // 0: what the kernel says; if it is that of a device, it is a terminal
    dev_t device;
    int other_fd, differs_in;
    unsigned terminals[2], n_asked; // the answers to TIOCGDEV in turn, 0: an error
} told;
static int answer_fstat(int fd, struct stat *st) {
    if (fails(A_fstat) < 0) return -1; // 0: the kernel's own answer
    int rc = fstat(fd, st), differs_in = fd == told.other_fd ? told.differs_in : IN_NOTHING;
    if (told.kind) {
        st->st_mode = told.kind | (st->st_mode & 07777);
        st->st_rdev = (__typeof__(st->st_rdev))told.device; // of 32 bits on MIPS
    }
    st->st_dev += differs_in == IN_DEVICE;
    st->st_ino += differs_in == IN_INODE;
    st->st_rdev += differs_in == IN_KIND_OF_DEVICE;
    if (differs_in) told.differs_in = IN_NOTHING;
    return rc;
}
static int answer_isatty(int fd) { return S_ISCHR(told.kind) || isatty(fd); }
#define answer_ioctl(fd_, ...) answer_ioctl_with(fd_, __VA_ARGS__, NULL, 0)
#define answer_ioctl_with(fd_, request_, arg_, ...) answer_ioctl3(fd_, request_, arg_)
#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request;
#endif
static int answer_ioctl3(int fd, ioctl_request request, void *arg) {
    if (request != (ioctl_request)TIOCGDEV) return ioctl(fd, request);
    unsigned terminal = told.terminals[told.n_asked++ % 2];
    errno = ENOTTY;
    if (terminal == 0) return -1;
    memcpy(arg, &terminal, sizeof terminal);
    return 0;
}
#define answer_clock_gettime clock_gettime
#define answer_close close
#define answer_epoll_wait epoll_wait
#define answer_eventfd eventfd
#define answer_fdatasync fdatasync
#define answer_freeaddrinfo freeaddrinfo
#define answer_fsync fsync
#define answer_getaddrinfo getaddrinfo
#define answer_openat openat
#define answer_pread pread
#define answer_pwrite pwrite
#define answer_pthread_setcancelstate pthread_setcancelstate
#define answer_stat stat
#define answer_getpeername getpeername
#define answer_getsockname getsockname
#define answer_mmap mmap
#define answer_munmap munmap
#define answer_pthread_attr_destroy pthread_attr_destroy
#define answer_pthread_attr_init pthread_attr_init
#define answer_pthread_attr_setstacksize pthread_attr_setstacksize
#define answer_pthread_setname_np pthread_setname_np
#define answer_pthread_sigmask pthread_sigmask
#define answer_readv readv
#define answer_sched_getaffinity sched_getaffinity
#define answer_send send
#define answer_shutdown shutdown
#define answer_syscall syscall
#define answer_sysconf sysconf
#define answer_timerfd_create timerfd_create
#define answer_timerfd_gettime timerfd_gettime
#define answer_timerfd_settime timerfd_settime
#define answer_writev writev
#define answer_cfgetospeed cfgetospeed
#define answer_chmod chmod
#define answer_chown chown
#define answer_fchmod fchmod
#define answer_prctl prctl
#define answer_flock flock
#define answer_ftruncate ftruncate
#define answer_if_indextoname if_indextoname
#define answer_if_nametoindex if_nametoindex
#define answer_kill kill
#define answer_mkdir mkdir
#define answer_pipe2 pipe2
#define answer_preadv2 preadv2
#define answer_rename rename
#define answer_rmdir rmdir
#define answer_signalfd signalfd
#define answer_sigprocmask sigprocmask
#define answer_socketpair socketpair
#define answer_tcsetattr tcsetattr
#define answer_waitid waitid
#define answer_waitpid waitpid

// The clock stands still, unless each look at it moves it on.
static __INT64_TYPE__ clock_now = 1000000000000, clock_step;
static __INT64_TYPE__ look_at_clock(void) { return clock_now += clock_step; }
#define VOLT_NOW_NS() look_at_clock()

// A wait on a futex is over when the step that the test has for it was taken.
static int (*at_futex)(void);
static __UINT32_TYPE__ futex_expects; // of the last wait
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_)                                                 \
    ((void)(word_), (void)(deadline_), futex_expects = (expect_), at_futex())
#define VOLT_FUTEX_WAKE(word_, n_) ((void)(word_), (void)(n_))

static void join_a_thread(void); // no worker has one here
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) pthread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) ((void)(thread_), join_a_thread())

// Another step of the test's at one assertion, told by its text.
static void (*at_assert)(void);
static const char *at_assert_text;
static void note_assert(const char *text);
#define VOLT_ASSERT(c_) (note_assert(#c_), VOLT__EXPECT(c_, "assertion failed: " #c_))

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include "full_listener.h"

static void note_assert(const char *text) {
    void (*step)(void) = at_assert;
    if (!step || strncmp(text, at_assert_text, strlen(at_assert_text)) != 0) return;
    at_assert = NULL;
    step();
}
#define ANSWERS(call_, ...)                                                                        \
    do {                                                                                           \
        const int errors_[] = { __VA_ARGS__ };                                                     \
        memcpy(answers[A_##call_].errors, errors_, sizeof errors_);                                \
        answers[A_##call_].n = sizeof errors_ / sizeof errors_[0];                                 \
        answers[A_##call_].at = answers[A_##call_].n_calls = 0;                                    \
    } while (0)
static void check_all_given(void) {
    for (int i = 0; i < N_A; i++) CHECK_EQ(answers[i].at, answers[i].n);
}

// ---- one task that waits in up to three frames, polled by hand

static volt_rt *rt;
static volt__worker *w;
static volt__task *task;
static volt_frame frame[3];
static char byte;
static volt_cx *cx_of(int i) { return still_cx(w, task, &frame[i]); }
static void begin(void) {
    rt = still_rt(1);
    w = rt->workers[0];
    task = still_task(w);
    for (int i = 0; i < N_A; i++) answers[i].n_calls = 0; // those of a start depend on the kernel
}
static void end(void) {
    CHECK_EQ(task->n_armed, 0);
    check_all_given();
    still_end(rt);
}
#define PENDING(poll_) CHECK(volt_is_pending(poll_))
#define GIVES(poll_, value_) CHECK_EQ(volt_value(poll_), value_)
static volt_cx *cancelled_cx(int i) {
    volt_cx *cx = cx_of(i);
    cx->cancel_level_ = 1;
    return cx;
}
static volt__fd *entry(int fd) {
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    CHECK(e);
    return e;
}
static int look_at_events(void) {
    volt__reactor_events out;
    volt__reactor_poll(&w->reactor, &rt->fds, 16, 0, &out);
    CHECK(!out.chain.head); // the task is the test's
    return (int)out.n_events;
}
// The same where the task that waits is woken.
static int look_at_events_of_task(void) {
    volt__reactor_events out;
    volt__reactor_poll(&w->reactor, &rt->fds, 16, 0, &out);
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    return (int)out.n_events;
}
static void open_pair(int fd[2]) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}
static void close_pair(const int fd[2]) {
    volt_rt_close(rt, fd[0]);
    volt_rt_close(rt, fd[1]);
}
static void open_tcp(int fd[2]) {
    volt_addr a;
    int lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(lfd >= 0);
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fd[0], volt__addr_sa(&a), a.len_), 0);
    fd[1] = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd[1] >= 0);
    CHECK_EQ(close(lfd), 0);
}
static int open_listener(void) {
    int fd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(fd >= 0);
    return fd;
}

static volt_poll never_run(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    CHECK(0);
    return volt_ready(0);
}

// ---- what every wait does: see the leaf contract

static struct {
    int pair[2], listener;
    char byte;
    struct iovec iov;
    volt_addr addr, peer;
    struct msghdr message;
    struct mmsghdr messages;
    volt_pollset set;
    volt_pollev ev;
    volt_token token;
    volt_group group;
    volt_handle handle;
} on;
static volt_poll leaf_never(volt_cx *cx) { return volt_sleep_forever(cx); }
static volt_poll leaf_sleep(volt_cx *cx) { return volt_sleep(cx, VOLT_S(1)); }
static volt_poll leaf_until(volt_cx *cx) { return volt_sleep_until(cx, clock_now + VOLT_S(1)); }
static volt_poll leaf_ever(volt_cx *cx) { return volt_sleep(cx, VOLT_NEVER); }
static volt_poll leaf_join(volt_cx *cx) { return volt_join(cx, &on.handle); }
static volt_poll leaf_token(volt_cx *cx) { return volt_token_wait(cx, &on.token); }
static volt_poll leaf_group(volt_cx *cx) { return volt_group_wait(cx, &on.group); }
static volt_poll leaf_next(volt_cx *cx) { return volt_group_next(cx, &on.group, NULL); }
static volt_poll leaf_read(volt_cx *cx) { return volt_read(cx, on.pair[0], &on.byte, 1); }
static volt_poll leaf_readv(volt_cx *cx) { return volt_readv(cx, on.pair[0], &on.iov, 1); }
static volt_poll leaf_exact(volt_cx *cx) { return volt_read_exact(cx, on.pair[0], &on.byte, 1); }
static volt_poll leaf_write(volt_cx *cx) { return volt_write(cx, on.pair[0], &on.byte, 1); }
static volt_poll leaf_writev(volt_cx *cx) { return volt_writev(cx, on.pair[0], &on.iov, 1); }
static volt_poll leaf_all(volt_cx *cx) { return volt_write_all(cx, on.pair[0], &on.byte, 1); }
static volt_poll leaf_readable(volt_cx *cx) { return volt_readable(cx, on.pair[0]); }
static volt_poll leaf_writable(volt_cx *cx) { return volt_writable(cx, on.pair[0]); }
static volt_poll leaf_recv(volt_cx *cx) { return volt_recv(cx, on.pair[0], &on.byte, 1, 0); }
static volt_poll leaf_send(volt_cx *cx) { return volt_send(cx, on.pair[0], &on.byte, 1, 0); }
static volt_poll leaf_recvmsg(volt_cx *cx) { return volt_recvmsg(cx, on.pair[0], &on.message, 0); }
static volt_poll leaf_sendmsg(volt_cx *cx) { return volt_sendmsg(cx, on.pair[0], &on.message, 0); }
static volt_poll leaf_recvmmsg(volt_cx *cx) {
    return volt_recvmmsg(cx, on.pair[0], &on.messages, 1, 0);
}
static volt_poll leaf_sendmmsg(volt_cx *cx) {
    return volt_sendmmsg(cx, on.pair[0], &on.messages, 1, 0);
}
static volt_poll leaf_read_ready(volt_cx *cx) { return volt_read_ready(cx, on.pair[0]); }
static volt_poll leaf_write_ready(volt_cx *cx) { return volt_write_ready(cx, on.pair[0]); }
static int64_t read_byte(int fd, void *arg) { return read(fd, arg, 1) < 0 ? -errno : 1; }
static int64_t write_byte(int fd, void *arg) { return write(fd, arg, 1) < 0 ? -errno : 1; }
static volt_poll leaf_io_in(volt_cx *cx) {
    return volt_io(cx, on.pair[0], VOLT_IN, read_byte, &on.byte);
}
static volt_poll leaf_io_out(volt_cx *cx) {
    return volt_io(cx, on.pair[0], VOLT_OUT, write_byte, &on.byte);
}
static volt_poll leaf_accept(volt_cx *cx) { return volt_accept(cx, on.listener); }
static volt_poll leaf_accept_from(volt_cx *cx) {
    return volt_accept_from(cx, on.listener, &on.peer);
}
static volt_poll leaf_connect(volt_cx *cx) { return volt_connect(cx, &on.addr); }
static volt_poll leaf_clock(volt_cx *cx) { return volt_sleep_on(cx, VOLT_CLOCK_BOOT, VOLT_NEVER); }
static volt_poll leaf_set(volt_cx *cx) { return volt_pollset_wait(cx, &on.set, &on.ev, 1); }
static const struct leaf {
    volt_poll (*poll)(volt_cx *cx);
    uint32_t kind;
    const int *fd; // NULL: none
    int is_linked;
} leaves[] = {
    { leaf_never, VOLT__LEAF_FOREVER, NULL, 0 },
    { leaf_ever, VOLT__LEAF_TIMER, NULL, 0 },
    { leaf_sleep, VOLT__LEAF_TIMER, NULL, 1 },
    { leaf_until, VOLT__LEAF_TIMER, NULL, 1 },
    { leaf_join, VOLT__LEAF_JOIN, NULL, 1 },
    { leaf_token, VOLT__LEAF_TOKEN, NULL, 1 },
    { leaf_group, VOLT__LEAF_GROUP, NULL, 1 },
    { leaf_next, VOLT__LEAF_GROUP, NULL, 1 },
    { leaf_readable, VOLT__LEAF_RD, &on.pair[0], 1 }, // before it is volt's own
    { leaf_writable, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_read, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_readv, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_exact, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_write, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_writev, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_all, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_readable, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_writable, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_recv, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_send, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_recvmsg, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_sendmsg, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_recvmmsg, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_sendmmsg, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_read_ready, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_write_ready, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_io_in, VOLT__LEAF_RD, &on.pair[0], 1 },
    { leaf_io_out, VOLT__LEAF_WR, &on.pair[0], 1 },
    { leaf_accept, VOLT__LEAF_RD, &on.listener, 1 },
    { leaf_accept_from, VOLT__LEAF_RD, &on.listener, 1 },
    { leaf_connect, VOLT__LEAF_CONNECT, NULL, 1 },
    { leaf_clock, VOLT__LEAF_CLOCK, NULL, 1 },
    { leaf_set, VOLT__LEAF_RD, NULL, 1 },
};
static void hold_locks(void (*hold)(uint32_t *lock)) {
    const int fds[] = { on.pair[0], on.listener, on.set.epfd_ - 1, on.set.epfd_ }; // a connect's
    for (int i = 0; i < 4; i++) hold(&entry(fds[i])->lock);
    hold(&on.token.lock_);
    hold(&on.group.lock_);
    hold(&w->wheel.lock);
}
static void check_leaf(const struct leaf *leaf) {
    uintptr_t word = VOLT__REF | VOLT__RUNNING;
    volt__node *n = &frame[0].node_;
    volt__store_rlx(&task->word, word);
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(leaf->poll(cx)); // without a unit nothing is done, but the task runs again
    CHECK_EQ(task->word, word | VOLT__NOTIFIED);
    CHECK_EQ(task->n_armed, 0);
    CHECK_EQ(cx->budget_, 0);
    volt__store_rlx(&task->word, word);
    uintptr_t linked = word;
    for (int i = 0; i < 3; i++) { // woken for something else
        cx = cx_of(0);
        cx->wait_ = VOLT__REQUEUE | 0x123456; // of another arm
        if (i == 2) hold_locks(volt__lock); // a node that is linked needs none
        PENDING(leaf->poll(cx));
        if (i == 2) hold_locks(volt__unlock);
        CHECK_EQ(cx->budget_, VOLT_BUDGET); // given back
        uint32_t fd = leaf->fd ? (uint32_t)*leaf->fd : 0;
        if (leaf->poll == leaf_connect || leaf->poll == leaf_clock)
            fd = (uint32_t)n->key_.fd_ - 1;
        if (leaf->poll == leaf_set) fd = (uint32_t)on.set.epfd_ - 1;
        CHECK_EQ(cx->wait_, VOLT__REQUEUE | leaf->kind << 24 | fd);
        CHECK_EQ(task->n_armed, leaf->is_linked);
        CHECK_EQ(volt__node_state(n), leaf->is_linked ? VOLT__LINKED : VOLT__IDLE);
        if (i == 0) linked = task->word;
        CHECK_EQ(task->word, linked);
    }
    CHECK_EQ(linked, leaf->kind == VOLT__LEAF_JOIN ? word + VOLT__REF : word);
    if (leaf->kind == VOLT__LEAF_JOIN) CHECK(task->flags & VOLT__IS_SHARED);
    cx = cancelled_cx(0);
    cx->budget_ = 0;
    PENDING(leaf->poll(cx)); // a unit for this, too
    CHECK_EQ(task->n_armed, leaf->is_linked);
    volt__store_rlx(&task->word, linked);
    cx = cancelled_cx(0);
    GIVES(leaf->poll(cx), -ECANCELED);
    CHECK_EQ(cx->budget_, VOLT_BUDGET - 1);
    CHECK_EQ(task->word, word);
    CHECK_EQ(task->n_armed, 0);
    CHECK_EQ(n->kind_, VOLT__FRESH);
}
TEST(every_leaf_keeps_its_contract) {
    static char block[4096];
    begin();
    open_pair(on.pair);
    while (write(on.pair[0], block, sizeof block) > 0) {} // until there is no room
    on.listener = open_listener();
    on.iov.iov_base = &on.byte;
    on.iov.iov_len = 1;
    on.message.msg_iov = on.messages.msg_hdr.msg_iov = &on.iov;
    on.message.msg_iovlen = on.messages.msg_hdr.msg_iovlen = 1;
    CHECK_EQ(volt_addr_parse(&on.addr, "127.0.0.1:1"), 0);
    CHECK_EQ(volt_pollset_open(&on.set), 0);
    CHECK_EQ(volt_pollset_set(&on.set, on.pair[1], VOLT_PRI), 0);
    on.group.n_live_ = on.group.collects_ = 1;
    on.handle.task_ = still_task(w);
    ANSWERS(connect, EINPROGRESS);
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) check_leaf(&leaves[i]);
    volt_pollset_close(cx_of(0), &on.set);
    volt_rt_close(rt, on.listener);
    close_pair(on.pair);
    end();
}
TEST(task_that_ignores_cancellation_is_logged_once) {
    begin();
    int n_needed = VOLT__IGNORING / (int)rt->cfg.budget; // polls in a row
    for (int i = 0; i < n_needed + 5; i++) {
        volt_cx *cx = i < 2 ? cx_of(0) : cancelled_cx(0);
        // Half of the budget at least must have gone since it was cancelled.
        cx->budget_at_cancel_ = (uint16_t)(rt->cfg.budget / 2 - (i == 2));
        cx->budget_ = 0;
        cx->wait_ = 0;
        PENDING(volt_sleep_forever(cx));
        task->wait_site = "x.c:1";
        task->wait = cx->wait_;
        CHECK_EQ(test_log.n[VOLT_LOG_IGNORES_CANCEL], i >= n_needed + 2);
    }
    GIVES(volt_sleep_forever(cancelled_cx(0)), -ECANCELED);
    end();
}
TEST(cancellation_under_shield_takes_effect_after_it) {
    begin();
    volt_cx *cx = cx_of(0);
    cx->shield_depth_ = 1;
    CHECK(!volt_is_cancelled(cx));
    CHECK_EQ(cx->cancel_level_, 0);
    (void)volt__task_cancel(task);
    CHECK(!volt_is_cancelled(cx));
    CHECK_EQ(cx->cancel_level_, 1);
    cx->shield_depth_ = 0;
    CHECK(volt_is_cancelled(cx));
    end();
}

TEST(wait_site_is_that_of_innermost_await) {
    static const uint8_t own[] = { VOLT__LEAF_TIMER, VOLT__ARMS, VOLT__CHILD_ARRAY };
    begin();
    volt_cx *cx = cx_of(0);
    cx->site_ = "inner";
    frame[0].node_.kind_ = VOLT__CHILD;
    PENDING(volt__suspend(cx, &frame[0].node_, "outer"));
    CHECK_STR(cx->site_, "inner");
    for (size_t i = 0; i < sizeof own; i++) {
        cx->site_ = "inner";
        frame[0].node_.kind_ = own[i];
        PENDING(volt__suspend(cx, &frame[0].node_, "outer"));
        CHECK_STR(cx->site_, "outer");
    }
    end();
}

// ---- levels: what a bracket raises it puts back

TEST(timeout_restores_cancel_level_that_it_raised) {
    static const struct {
        uint8_t is_up, before, inside; // is its time up? the level at the second poll
        int64_t inner, gives;
    } rows[] = {
        { 0, 0, 0, 5, 5 },
        { 0, 0, 0, -ECANCELED, -ECANCELED }, // not by this one
        { 0, 3, 3, -ECANCELED, -ECANCELED },
        { 1, 0, 2, 5, 5 },
        { 1, 0, 2, -ECANCELED, -ETIMEDOUT },
        { 1, 1, 2, -ECANCELED, -ETIMEDOUT }, // the outer one cancels less deep
        { 1, 2, 2, -ECANCELED, -ECANCELED }, // as deep
        { 1, 3, 3, -ECANCELED, -ECANCELED },
    };
    begin();
    volt_timer t;
    memset(&t, 0, sizeof t);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        volt_cx *cx = cx_of(0);
        cx->shield_depth_ = 1;
        volt__within_begin(cx, &t);
        CHECK_EQ(cx->cancel_level_, 0);
        PENDING(volt__within_end(cx, &t, rows[i].is_up ? 0 : VOLT_S(1), volt_pending()));
        CHECK_EQ(cx->cancel_level_, 0);
        CHECK_EQ(task->n_armed, 1);
        if (rows[i].is_up) { // the inner one is tried once more
            volt__within_begin(cx, &t);
            CHECK_EQ(cx->cancel_level_, 0);
            CHECK_EQ(cx->last_tries_, 1);
            PENDING(volt__within_end(cx, &t, 0, volt_pending()));
            CHECK(task->word & VOLT__NOTIFIED);
        }
        cx->shield_depth_ = 2; // of the frame that suspended
        cx->cancel_level_ = rows[i].before;
        volt__within_begin(cx, &t);
        CHECK_EQ(cx->last_tries_, 0);
        CHECK_EQ(cx->cancel_level_, rows[i].inside);
        GIVES(volt__within_end(cx, &t, 0, volt_ready(rows[i].inner)), rows[i].gives);
        CHECK_EQ(cx->cancel_level_, rows[i].before);
        CHECK_EQ(t.node_.resume_line_, 0); // as new
        CHECK_EQ(task->n_armed, 0);
    }
    end();
}
TEST(shield_without_time_restores_cancel_level) {
    begin();
    volt_shield s;
    memset(&s, 0, sizeof s);
    for (uint8_t level = 0; level < 5; level++) {
        volt_cx *cx = cx_of(0);
        cx->cancel_level_ = level;
        volt_shield_begin(cx, &s, 0);
        CHECK_EQ(cx->shield_depth_, 1);
        CHECK_EQ(cx->cancel_level_, level < 2 ? 2 : level);
        volt_shield_end(cx, &s);
        CHECK_EQ(cx->shield_depth_, 0);
        CHECK_EQ(cx->cancel_level_, level);
    }
    volt_cx *cx = cx_of(0); // used again, without a bound: it puts nothing back
    volt_shield_begin(cx, &s, VOLT_NEVER);
    CHECK_EQ(task->n_armed, 0);
    CHECK_EQ(cx->cancel_level_, 0);
    cx->cancel_level_ = 1;
    volt_shield_end(cx, &s);
    CHECK_EQ(cx->cancel_level_, 1);
    end();
}
// A cancel that volt_is_cancelled has seen under a shield counts after it, however the shield ends.
TEST(cancel_seen_under_shield_outlasts_it) {
    begin();
    for (int is_left_open = 0; is_left_open < 2; is_left_open++) {
        volt_shield s = { 0 };
        volt_cx *cx = cx_of(0);
        cx->cancel_level_ = 0;
        volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
        volt_shield_begin(cx, &s, VOLT_NEVER);
        volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING | VOLT__CANCELLED);
        CHECK(!volt_is_cancelled(cx)); // it is under the shield
        if (is_left_open) volt__scope_leave(cx, &frame[0].node_);
        else volt_shield_end(cx, &s);
        CHECK(volt__scope_is_cancelled(cx));
    }
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    end();
}
// Groups are scopes of a frame as shields are, and a task may have any number of them open.
TEST(frame_with_many_open_groups_is_entered) {
    enum { MANY = 1000000 };
    begin();
    volt_group *g = calloc(MANY, sizeof *g);
    CHECK(g);
    volt_shield s = { 0 };
    volt_cx *cx = cx_of(0);
    volt_shield_begin(cx, &s, 0);
    for (int i = 0; i < MANY; i++) {
        g[i].scope_.close_ = volt__group_close_unclosed;
        volt__scope_push(&frame[0].node_, &g[i].scope_, task);
    }
    cx->cancel_level_ = 0;
    volt__scope_enter(cx, &frame[0].node_);
    CHECK(volt__scope_is_cancelled(cx)); // the shield below them all has expired
    for (int i = MANY; i-- > 0;) volt__scope_remove(&frame[0].node_, &g[i].scope_);
    volt_shield_end(cx, &s);
    CHECK_EQ(cx->cancel_level_, 0);
    free(g);
    end();
}
// Polled again, the levels are those of the new poll, from the outermost shield on.
TEST(nested_shields_restore_cancel_level) {
    begin();
    for (int is_left_open = 0; is_left_open < 2; is_left_open++) {
        volt_shield s[3];
        memset(s, 0, sizeof s);
        volt_cx *cx = cx_of(0);
        volt_shield_begin(cx, &s[0], VOLT_NEVER);
        volt_shield_begin(cx, &s[1], 0);
        volt_shield_begin(cx, &s[2], VOLT_NEVER);
        for (uint8_t level = 0; level < 5; level++) {
            cx->cancel_level_ = level;
            volt__scope_enter(cx, &frame[0].node_);
            CHECK_EQ(cx->shield_depth_, 3);
            CHECK_EQ(cx->cancel_level_, level < 3 ? 3 : level);
        }
        cx->cancel_level_ = 1;
        volt__scope_enter(cx, &frame[0].node_);
        if (is_left_open) {
            volt__scope_leave(cx, &frame[0].node_);
        } else {
            volt_shield_end(cx, &s[2]);
            CHECK(volt__scope_is_cancelled(cx));
            volt_shield_end(cx, &s[1]);
            CHECK(!volt__scope_is_cancelled(cx));
            volt_shield_end(cx, &s[0]);
        }
        CHECK_EQ(cx->cancel_level_, 1);
        CHECK_EQ(cx->shield_depth_, 0);
        CHECK(!frame[0].node_.waiter_);
        CHECK_EQ(task->n_armed, 0);
        for (int i = 0; i < 3; i++) CHECK(!s[i].open_);
    }
    end();
}

// ---- tokens

// Linked once, woken only when there is something to see.
TEST(wrapper_sees_token_cancelled_during_inner_poll) {
    begin();
    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        volt_token stop;
        volt_token_link l;
        memset(&stop, 0, sizeof stop);
        memset(&l, 0, sizeof l);
        volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
        volt_cx *cx = cx_of(0);
        volt__with_token_begin(cx, &l, &stop);
        if (is_cancelled) volt_token_cancel(&stop);
        PENDING(volt__with_token_end(cx, &l, &stop, volt_pending()));
        CHECK_EQ((task->word & VOLT__NOTIFIED) != 0, is_cancelled);
        CHECK_EQ(stop.waiters_ != NULL, !is_cancelled);
        CHECK_EQ(task->n_armed, !is_cancelled);
        volt__with_token_begin(cx, &l, &stop);
        CHECK_EQ(cx->cancel_level_, is_cancelled);
        GIVES(volt__with_token_end(cx, &l, &stop, volt_ready(3)), 3);
        CHECK_EQ(cx->cancel_level_, 0);
        CHECK(!stop.waiters_);
        CHECK_EQ(task->n_armed, 0);
        volt_token_deinit(&stop);
    }
    end();
}

// ---- groups

static volt_poll left_open(volt_cx *cx) {
    cx->frame_ = NULL;
    return volt__group_close_unclosed(cx, volt__task_state(task));
}
static volt_poll closed(volt_cx *cx) { return volt_group_close(cx, &on.group); }
TEST(group_close_cancels_members_once_and_resets_group) {
    static const still_state state;
    static const volt_group as_new;
    begin();
    for (int is_left = 0; is_left < 2; is_left++) {
        volt_poll (*end_it)(volt_cx *cx) = is_left ? left_open : closed;
        volt_cx *cx = cx_of(0);
        CHECK_EQ(volt_group_spawn(cx, &on.group, never_run, &state, sizeof state), 0);
        CHECK_EQ(volt_group_spawn(cx, &on.group, never_run, &state, sizeof state), 0);
        uintptr_t word = VOLT__REF | VOLT__RUNNING;
        volt__task *member[2] = { on.group.live_, volt__task_group_link(on.group.live_)->g_next };
        for (int i = 0; i < 2; i++) volt__store_rlx(&member[i]->word, word);
        if (!is_left) {
            cx->budget_ = 0;
            PENDING(end_it(cx));
            CHECK_EQ(member[0]->word, word);
        }
        for (int i = 0; i < 3; i++) {
            cx = i == 2 ? cancelled_cx(0) : cx_of(0); // which does not cancel it
            cx->wait_ = 0;
            PENDING(end_it(cx));
            CHECK_EQ(cx->wait_, (uint32_t)VOLT__LEAF_GROUP << 24);
            if (is_left) CHECK(cx->frame_ && strstr(cx->site_, "left open"));
            for (int k = 0; k < 2; k++) {
                CHECK_EQ((member[k]->word & VOLT__CANCELLED) != 0, i == 0);
                volt__store_rlx(&member[k]->word, word);
            }
        }
        CHECK_EQ(task->n_armed, 1);
        volt__group_child_ended(member[0], -EIO);
        PENDING(end_it(cx_of(0)));
        volt__group_child_ended(member[1], 0);
        GIVES(end_it(cx_of(0)), 0);
        // as they lie in the queue
        for (int i = 0; i < 2; i++) volt__store_rlx(&member[i]->word, VOLT__QUEUED);
        on.group.scope_.close_ = NULL; // looked at only while it is owned
        CHECK_EQ(memcmp(&on.group, &as_new, sizeof as_new), 0);
    }
    end();
}

// ---- arms, polled by hand

enum { N_ARMS = 4 };
static volt_arm arm[N_ARMS];
static char polled[64]; // which arms, in order; in capitals: cancelled
// One poll of an await over arms in a frame under one shield; NULL: this arm stays pending.
static volt_poll drive(volt_cx *cx, int mode, const int64_t *const gives[N_ARMS], int n_fired) {
    int at = 0, fired = 0;
    const uint8_t level = cx->cancel_level_;
    cx->shield_depth_ = 1;
    volt__arms_begin(cx, mode);
    do {
        for (int i = 0; i < N_ARMS; i++) {
            if (!volt__arm_poll_begin(cx, &arm[i])) continue;
            CHECK_EQ(cx->shield_depth_, 1);
            CHECK(cx->cancel_level_ == level || cx->cancel_level_ == 2);
            polled[at++] = (char)((volt__scope_is_cancelled(cx) ? 'A' : 'a') + i);
            cx->shield_depth_ = 3; // a shield inside
            fired += volt__arm_poll_end(cx, &arm[i],
                                        gives[i] ? volt_ready(*gives[i]) : volt_pending());
            arm[i].shield_depth_ = 1;
            CHECK_EQ(cx->shield_depth_, 1);
            CHECK_EQ(cx->cancel_level_, level);
        }
    } while (volt__arms_next_pass(cx, volt__arm_done(fired)));
    polled[at] = 0;
    CHECK_EQ(fired, n_fired);
    return volt__arms_end(cx, fired);
}
static const int64_t is_5 = 5, is_error = -EIO, is_cancelled_arm = -ECANCELED;
static const char *in_order = "abcd";
// The order of the first poll: every arm once.
static const char *note_order(void) {
    static char text[N_ARMS + 1];
    CHECK_EQ(strlen(polled), N_ARMS);
    for (int i = 0; i < N_ARMS; i++) CHECK(strchr(polled, in_order[i]));
    memcpy(text, polled, sizeof text);
    return text;
}
static char *in_capitals(const char *text) {
    static char big[2 * N_ARMS + 1];
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++) big[i] = (char)(text[i] ? text[i] - 'a' + 'A' : 0);
    return big;
}
TEST(select_keeps_its_order_of_arms_between_polls) {
    static const int64_t *const none[N_ARMS], *const third[N_ARMS] = { NULL, NULL, &is_5, NULL };
    static const int64_t *const cancelled[N_ARMS] = { &is_cancelled_arm, &is_cancelled_arm,
                                                      &is_cancelled_arm, &is_cancelled_arm };
    int n_starts[N_ARMS] = { 0, 0, 0, 0 };
    begin();
    for (int round = 0; round < 64; round++) {
        int mode = round % 4 ? VOLT__SELECT : VOLT__SELECT_BIASED;
        PENDING(drive(cx_of(0), mode, none, 0));
        const char *order = note_order();
        if (mode == VOLT__SELECT_BIASED) CHECK_STR(order, in_order);
        n_starts[order[0] - 'a']++;
        PENDING(drive(cx_of(0), mode, none, 0));
        CHECK_STR(polled, order);
        if (round & 4) { // the third wins; the others clean up
            PENDING(drive(cx_of(0), mode, third, 1));
            CHECK_EQ(strncmp(polled, order, strcspn(polled, "ABCD")), 0);
            CHECK_STR(polled + strcspn(polled, "ABCD"), "ABD");
            PENDING(drive(cx_of(0), mode, none, 0));
            CHECK_STR(polled, "ABD"); // once
            GIVES(drive(cx_of(0), mode, cancelled, 0), 2);
            CHECK_EQ(arm[2].value, 5);
            CHECK(arm[2].fired && !arm[1].fired);
        } else { // cancelled from outside: no arm wins
            volt_cx *cx = cx_of(0);
            cx->cancel_level_ = 2;
            PENDING(drive(cx, mode, none, 0));
            CHECK_EQ(strncmp(polled, in_capitals(order), N_ARMS), 0); // each has its turn
            CHECK_STR(polled + N_ARMS, "ABCD"); // and once more, as no arm has won
            GIVES(drive(cx, mode, cancelled, 0), -ECANCELED);
            CHECK_STR(polled, in_capitals(order));
        }
        CHECK_EQ(frame[0].node_.kind_, VOLT__FRESH);
    }
    for (int i = 0; i < N_ARMS; i++) CHECK(n_starts[i] > 0);
    end();
}
// Any order of three is drawn as often as any other one: of those that are ready, wherever they
// stand, each wins as often.
TEST(select_draws_every_order_equally_often) {
    enum { ROUNDS = 6000 };
    static const int64_t *const none[N_ARMS];
    int n[256] = { 0 }, n_orders = 0;
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        static const int64_t *const cancelled[N_ARMS] = { &is_cancelled_arm, &is_cancelled_arm,
                                                          &is_cancelled_arm, &is_cancelled_arm };
        volt_cx *cx = cx_of(0);
        PENDING(drive(cx, VOLT__SELECT, none, 0));
        int code = 0;
        for (int i = 0; i < N_ARMS; i++) code = code * 4 + (polled[i] - 'a');
        n[code]++;
        cx->cancel_level_ = 2;
        GIVES(drive(cx, VOLT__SELECT, cancelled, 0), -ECANCELED);
    }
    for (int i = 0; i < 256; i++) {
        n_orders += n[i] > 0;
        if (n[i] > 0) CHECK(n[i] > ROUNDS / 24 * 2 / 3 && n[i] < ROUNDS / 24 * 3 / 2);
    }
    CHECK_EQ(n_orders, 24);
    end();
}
TEST(join_polls_its_pending_arms_in_order) {
    static const int64_t *const none[N_ARMS];
    static const int64_t *const second[N_ARMS] = { NULL, &is_error, NULL, NULL };
    static const int64_t *const all[N_ARMS] = { &is_5, &is_5, &is_5, &is_5 };
    begin();
    for (int round = 0; round < 8; round++) {
        int mode = round % 2 ? VOLT__JOIN_ALL : VOLT__TRY_JOIN_ALL;
        PENDING(drive(cx_of(0), mode, none, 0));
        CHECK_STR(polled, "abcd");
        PENDING(drive(cx_of(0), mode, second, 1));
        CHECK_STR(polled, mode == VOLT__JOIN_ALL ? "abcd" : "abCDACD");
        PENDING(drive(cx_of(0), mode, none, 0));
        CHECK_STR(polled, mode == VOLT__JOIN_ALL ? "acd" : "ACD");
        volt_cx *cx = cx_of(0);
        cx->cancel_level_ = 2; // from outside
        PENDING(drive(cx, mode, none, 0));
        CHECK_STR(polled, "ACD");
        GIVES(drive(cx_of(0), mode, all, 3), mode == VOLT__JOIN_ALL ? 0 : -EIO);
        CHECK_EQ(arm[3].value, 5);
    }
    end();
}
TEST(join_all_completes_with_most_arms_allowed) {
    static volt_arm many[VOLT__ARMS_MAX];
    begin();
    volt_cx *cx = cx_of(0);
    for (int is_over = 0; is_over < 2; is_over++) {
        volt__arms_begin(cx, VOLT__JOIN_ALL);
        do
            for (size_t i = 0; i < VOLT__ARMS_MAX; i++)
                if (volt__arm_poll_begin(cx, &many[i]))
                    volt__arm_poll_end(cx, &many[i], is_over ? volt_ready(0) : volt_pending());
        while (volt__arms_next_pass(cx, volt__arm_done(0)));
        if (is_over) GIVES(volt__arms_end(cx, 0), 0);
        else PENDING(volt__arms_end(cx, 0));
    }
    end();
}
// More arms than have an order of their own: from one of them on, which is drawn, in textual order.
static volt_arm arms_of_many[2 * VOLT__ARMS_ORDERED];
static int orders[4 * VOLT__ARMS_ORDERED], n_polled; // which arms a poll has polled
// One poll of a select over them; those from 0 to n_ended - 1 end with -ECANCELED.
static volt_poll drive_many(volt_cx *cx, int n_ended) {
    enum { N = sizeof arms_of_many / sizeof arms_of_many[0] };
    n_polled = 0;
    volt__arms_begin(cx, VOLT__SELECT);
    do
        for (int i = 0; i < N; i++) {
            if (!volt__arm_poll_begin(cx, &arms_of_many[i])) continue;
            orders[n_polled++] = i;
            volt__arm_poll_end(cx, &arms_of_many[i],
                               i < n_ended ? volt_ready(-ECANCELED) : volt_pending());
        }
    while (volt__arms_next_pass(cx, volt__arm_done(0)));
    return volt__arms_end(cx, 0);
}
TEST(select_over_many_arms_polls_each_once_and_no_ended_one) {
    enum { N = sizeof arms_of_many / sizeof arms_of_many[0], ROUNDS = 64 };
    int is_first[N] = { 0 }, n_first = 0;
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        volt_cx *cx = cx_of(0);
        PENDING(drive_many(cx, 0));
        const int first = orders[0];
        for (int again = 0; again < 2; again++) {
            CHECK_EQ(n_polled, N);
            for (int i = 0; i < N; i++) CHECK_EQ(orders[i], (first + i) % N);
            if (!again) PENDING(drive_many(cx_of(0), 0)); // in the same order
        }
        n_first += !is_first[first];
        is_first[first] = 1;
        cx = cx_of(0);
        cx->cancel_level_ = 1;
        PENDING(drive_many(cx, N / 2)); // one half ends, and none of it wins
        CHECK_EQ(n_polled, N + N / 2); // the others were polled once more, cancelled
        cx = cx_of(0);
        cx->cancel_level_ = 1;
        PENDING(drive_many(cx, 0));
        CHECK_EQ(n_polled, N); // twice each
        for (int i = 0; i < n_polled; i++) CHECK(orders[i] >= N / 2);
        cx = cx_of(0);
        cx->cancel_level_ = 1;
        GIVES(drive_many(cx, N), -ECANCELED);
        CHECK_EQ(n_polled, N / 2);
    }
    CHECK(n_first > N / 2); // it is drawn
    end();
}

// A select of one arm that receives from hand to hand, and one that never ends.
static struct {
    volt_frame frame;
    volt_arm in, other;
    volt_chan c;
    int buf[1], got;
    int64_t rc;
} met;
static volt_poll met_run(volt_cx *cx) {
    VOLT_BEGIN(cx, &met);
    VOLT_AWAIT(met.rc,
               VOLT_SELECT(VOLT_ARM(&met.in, volt_chan_recv(cx, &met.c, &met.got, sizeof met.got)),
                           VOLT_ARM(&met.other, volt_sleep_forever(cx))));
    VOLT_END(met.rc);
}
// The steps of a sender after its claim, while the task of the select waits for the lock.
static int completes_the_meeting(void) {
    static const int message = 7;
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__list_remove(&met.c.receivers_, &met.in.node_);
    memcpy(volt__rendezvous_data(&met.in.node_), &message, sizeof message);
    volt__wake_list_fire(&wakes, &met.in.node_, VOLT__TRANSFERRED);
    at_futex = NULL;
    volt__unlock(&met.c.lock_);
    CHECK(!wakes.chain.head); // the task is running
    return 0;
}
// A sender has claimed the select, and has copied nothing yet, when the task is polled for another
// reason: that poll waits until it has met, and tells.
TEST(claimed_select_ends_in_poll_that_sees_claim) {
    begin();
    for (int round = 0; round < 20; round++) { // in either order of the arms
        CHECK_EQ(volt_chan_init(&met.c, met.buf, sizeof met.buf[0], 0), 0);
        met.got = 0;
        PENDING(met_run(cx_of(0)));
        CHECK_EQ(volt__node_state(&met.in.node_), VOLT__LINKED);
        volt__lock(&met.c.lock_);
        CHECK(volt__select_claim(&met.in.node_));
        at_futex = completes_the_meeting;
        GIVES(met_run(cx_of(0)), 0);
        CHECK(met.in.fired && !met.other.fired);
        CHECK_EQ(met.in.value, 1);
        CHECK_EQ(met.got, 7);
        CHECK(!at_futex);
        volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    }
    end();
}

// A select of two receives from hand to hand. One arm was met, and the other one has not left its
// channel yet when a sender comes to that.
static struct {
    volt_frame frame;
    volt_arm met, other;
    volt_chan first, second;
    int buf[2], got[2], rounds; // messages that the first arm takes
    int64_t rc;
} either;
static int n_refused; // reservations on the second channel, while the select is polled
static volt_poll reader_of_first(volt_cx *cx) {
    volt_poll p = volt_chan_recv(cx, &either.first, &either.got[0], sizeof either.got[0]);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    n_refused += volt_chan_try_reserve(&either.second) == -EAGAIN;
    if (--either.rounds == 0) return p;
    return volt_chan_recv(cx, &either.first, &either.got[0], sizeof either.got[0]);
}
static volt_poll either_run(volt_cx *cx) {
    VOLT_BEGIN(cx, &either);
    VOLT_AWAIT(either.rc,
               VOLT_SELECT(VOLT_ARM(&either.met, reader_of_first(cx)),
                           VOLT_ARM(&either.other,
                                    volt_chan_recv(cx, &either.second, &either.got[1],
                                                   sizeof either.got[1]))));
    VOLT_END(either.rc);
}
static const int seven = 7, eight = 8;
static void begin_either(int rounds) {
    begin();
    memset(&either, 0, sizeof either);
    n_refused = 0;
    either.rounds = rounds;
    CHECK_EQ(volt_chan_init(&either.first, &either.buf[0], sizeof either.buf[0], 0), 0);
    CHECK_EQ(volt_chan_init(&either.second, &either.buf[1], sizeof either.buf[1], 0), 0);
    PENDING(either_run(cx_of(0)));
    CHECK_EQ(volt_chan_try_send(&either.first, &seven, sizeof seven), 0);
    PENDING(volt_chan_send(cx_of(1), &either.second, &eight, sizeof eight));
}
TEST(reservation_overtakes_no_send_while_met_select_is_polled) {
    begin_either(1);
    GIVES(either_run(cx_of(0)), 0);
    CHECK_EQ(n_refused, 1);
    CHECK(either.got[0] == 7 && either.got[1] == 0);
    GIVES(volt_chan_send(cancelled_cx(1), &either.second, &eight, sizeof eight), -ECANCELED);
    end();
}
TEST(sender_meets_select_whose_met_arm_waits_again) {
    begin_either(2);
    GIVES(either_run(cx_of(0)), 1);
    CHECK_EQ(n_refused, 1);
    CHECK(either.got[0] == 7 && either.got[1] == 8);
    GIVES(volt_chan_send(cx_of(1), &either.second, &eight, sizeof eight), 0);
    end();
}

// The other arms of a select that is decided end in their own time. Until then an arm that would
// receive is off its channel, and takes no message.
static volt_arm decides, ends_late;
static volt_poll as_told(const int64_t *gives) {
    return gives ? volt_ready(*gives) : volt_pending();
}
static const int64_t *late_gives, *decides_gives;
static volt_poll decided_run(volt_cx *cx) {
    VOLT_BEGIN(cx, &met);
    VOLT_AWAIT(met.rc, VOLT_SELECT(VOLT_ARM(&met.in, volt_chan_recv(cx, &met.c, &met.got,
                                                                    sizeof met.got)),
                                   VOLT_ARM(&ends_late, as_told(late_gives)),
                                   VOLT_ARM(&decides, as_told(decides_gives))));
    VOLT_END(met.rc);
}
TEST(decided_select_receives_nothing_while_others_end) {
    static const int message = 7;
    begin();
    for (int round = 0; round < 20; round++) { // in every order of the arms
        CHECK_EQ(volt_chan_init(&met.c, met.buf, sizeof met.buf[0], 0), 0);
        late_gives = decides_gives = NULL;
        PENDING(decided_run(cx_of(0)));
        decides_gives = &is_5;
        PENDING(decided_run(cx_of(0)));
        CHECK(decides.fired);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(volt_chan_try_send(&met.c, &message, sizeof message), -EAGAIN);
            PENDING(decided_run(cx_of(0)));
        }
        late_gives = &is_error;
        GIVES(decided_run(cx_of(0)), 2);
        CHECK(!met.in.fired && !ends_late.fired);
        CHECK_EQ(decides.value, 5);
    }
    end();
}
// A select waits to receive and to reserve on one channel of rendezvous: its own receiver is no
// partner of the reservation, wherever it stands; another one is.
static volt_arm reserves;
static volt_poll reserving_run(volt_cx *cx) {
    VOLT_BEGIN(cx, &met);
    VOLT_AWAIT(met.rc, VOLT_SELECT_BIASED(
                           VOLT_ARM(&met.in, volt_chan_recv(cx, &met.c, &met.got, sizeof met.got)),
                           VOLT_ARM(&reserves, volt_chan_reserve(cx, &met.c))));
    VOLT_END(met.rc);
}
TEST(select_reserves_only_for_receiver_of_another_wait) {
    static const int message = 7;
    int got = 0;
    begin();
    CHECK_EQ(volt_chan_init(&met.c, met.buf, sizeof met.buf[0], 0), 0);
    PENDING(reserving_run(cx_of(0)));
    PENDING(reserving_run(cx_of(0)));
    CHECK(!reserves.fired);
    PENDING(volt_chan_recv(cx_of(1), &met.c, &got, sizeof got));
    GIVES(reserving_run(cx_of(0)), 1);
    CHECK(reserves.fired && !met.in.fired);
    CHECK_EQ(volt_chan_send_reserved(&met.c, &message, sizeof message), 0);
    GIVES(volt_chan_recv(cx_of(1), &met.c, &got, sizeof got), 1);
    CHECK_EQ(got, 7);
    end();
}
// A sender behind such a reservation meets the receiver of that select once no reservation is held.
TEST(sender_meets_receiver_of_select_that_also_reserves) {
    static const int message = 7;
    begin();
    CHECK_EQ(volt_chan_init(&met.c, met.buf, sizeof met.buf[0], 0), 0);
    PENDING(reserving_run(cx_of(0)));
    CHECK_EQ(volt_chan_try_reserve(&met.c), 0); // for the receiver
    PENDING(volt_chan_send(cx_of(1), &met.c, &message, sizeof message));
    volt_chan_unreserve(&met.c);
    GIVES(volt_chan_send(cx_of(1), &met.c, &message, sizeof message), 0);
    GIVES(reserving_run(cx_of(0)), 0);
    CHECK(met.in.fired && !reserves.fired);
    CHECK_EQ(met.got, 7);
    end();
}

// ---- connects of a socket of the program's own, whose event concerns an earlier attempt

static full_listener listener;
static int connecting; // the number of the socket
static void begin_to_connect_to(const volt_addr *to) {
    connecting = volt_sock_open(AF_INET, SOCK_STREAM, 0);
    PENDING(volt_connect_on(cx_of(0), connecting, to));
    volt__chain c;
    volt__fd *e = entry(connecting);
    volt__chain_init(&c);
    volt__fd_fire_all(e, &e->wr, VOLT__FIRED, &c);
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
}
static void begin_to_connect(void) {
    begin();
    full_listener_open(&listener);
    begin_to_connect_to(&listener.at);
}
static void end_to_connect(void) {
    volt_rt_close(rt, connecting);
    full_listener_close(&listener);
    end();
}
TEST(interrupted_poll_does_not_end_a_connect) {
    begin_to_connect();
    ANSWERS(poll, EINTR, EINTR);
    PENDING(volt_connect_on(cx_of(0), connecting, &listener.at));
    GIVES(volt_connect_on(cancelled_cx(0), connecting, &listener.at), -ECANCELED);
    end_to_connect();
}
// The socket is writable before it connects, so the first look asks for a result: there is none.
TEST(connect_succeeds_although_another_call_has_received_the_result) {
    volt_addr a;
    begin();
    int lfd = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    told_protocol = IPPROTO_TCP; // also in `make kernels`
    ANSWERS(connect, EINPROGRESS, EALREADY);
    begin_to_connect_to(&a);
    check_all_given();
    told_protocol = 0;
    UNTIL(connect(connecting, volt__addr_sa(&a), a.len_) == 0);
    GIVES(volt_connect_on(cx_of(0), connecting, &a), 0); // the kernel's answer is EISCONN
    volt_rt_close(rt, connecting);
    volt_rt_close(rt, lfd);
    end();
}
static int one_way[2]; // a pipe, whose end for reads never has room
static void reuse_its_number(void) {
    volt_rt_close(rt, connecting);
    CHECK_EQ(dup2(one_way[0], connecting), connecting);
    answers[A_poll].is_zero = 1; // as of a socket that still connects
}
TEST(connect_does_not_follow_its_number_to_another_file) {
    begin_to_connect();
    CHECK_EQ(pipe2(one_way, O_CLOEXEC), 0);
    answers[A_poll].meanwhile = reuse_its_number;
    GIVES(volt_connect_on(cx_of(0), connecting, &listener.at), -EBADF);
    close_pair(one_way);
    end_to_connect();
}

// ---- reads

// A file that epoll has no events for is tried again at once, but only a limited number of times.
TEST(always_ready_file_is_not_read_for_ever_in_one_poll) {
    begin();
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    ANSWERS(read, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN,
            EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN);
    PENDING(volt_read(cx_of(0), fd, &byte, 1));
    CHECK_EQ(answers[A_read].n_calls, 16);
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__IDLE); // woken, not waiting
    GIVES(volt_read(cx_of(0), fd, &byte, 1), 0);
    volt_rt_close(rt, fd);
    end();
}
// The entry says that the number is a socket, and the kernel says each time that it is none.
TEST(read_goes_on_in_next_poll_if_each_attempt_resets_its_entry) {
    int fd[2];
    begin();
    open_pair(fd);
    ANSWERS(recv, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK,
            ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    CHECK_EQ(answers[A_recv].n_calls, 16);
    CHECK(task->word & VOLT__NOTIFIED);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    close_pair(fd);
    end();
}
TEST(try_read_gives_ebadf_if_each_attempt_resets_its_entry) {
    int fd[2];
    begin();
    open_pair(fd);
    ANSWERS(recv, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK,
            ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK, ENOTSOCK);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(volt_try_read(cx_of(0), fd[0], &byte, 1), -EBADF);
    CHECK_EQ(answers[A_recv].n_calls, 16);
    CHECK_EQ(volt_try_read(cx_of(0), fd[0], &byte, 1), 1);
    close_pair(fd);
    end();
}
TEST(read_fails_while_descriptor_stays_blocking) {
    int fd[2];
    begin();
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    ANSWERS(fcntl, EPERM);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EPERM);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // asked again
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    close_pair(fd);
    end();
}
// ---- kinds of files

TEST(read_fails_while_kind_of_file_is_unknown) {
    int fd[2];
    begin();
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    ANSWERS(fstat, EOVERFLOW);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EOVERFLOW);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // asked again
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    close_pair(fd);
    end();
}
TEST(accept_fails_while_listener_stays_blocking) {
    begin();
    int fd = open_listener(), mode = fcntl(fd, F_GETFL) & ~O_NONBLOCK;
    CHECK_EQ(fcntl(fd, F_SETFL, mode), 0);
    ANSWERS(fcntl, EIO);
    GIVES(volt_accept(cx_of(0), fd), -EIO);
    CHECK_EQ(fcntl(fd, F_GETFL), mode);
    PENDING(volt_accept(cx_of(0), fd)); // asked again
    CHECK_EQ(fcntl(fd, F_GETFL), mode | O_NONBLOCK);
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    volt_rt_close(rt, fd);
    end();
}
static int lowest_free(void) {
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && close(fd) == 0);
    return fd;
}
// A file that epoll refuses is read at once, and its mode stays as it is.
TEST(files_directories_and_disks_are_not_made_nonblocking) {
    static const mode_t kinds[] = { S_IFREG, S_IFDIR, S_IFBLK, S_IFIFO };
    begin();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int is_disk = kinds[i] != S_IFIFO, fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        told.kind = kinds[i];
        answers[A_fcntl].n_calls = 0;
        GIVES(volt_read(cx_of(0), fd, &byte, 1), 1);
        CHECK_EQ((entry(fd)->flags & VOLT__FD_DISK) != 0, is_disk);
        CHECK_EQ(answers[A_fcntl].n_calls, !is_disk);
        CHECK_EQ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, !is_disk);
        volt_rt_close(rt, fd);
    }
    told.kind = 0;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    GIVES(volt_read(cx_of(0), fd, &byte, 1), -EISDIR);
    volt_rt_close(rt, fd);
    end();
}
// A pipe as standard input, which other processes share: volt opens it once more.
static int input, input_before; // input: the other end
static void begin_with_piped_input(void) {
    int fd[2];
    begin();
    input_before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(dup2(fd[0], STDIN_FILENO), STDIN_FILENO);
    CHECK_EQ(close(fd[0]), 0);
    input = fd[1];
}
static void end_with_piped_input(void) {
    volt_rt_close(rt, STDIN_FILENO);
    CHECK_EQ(dup2(input_before, STDIN_FILENO), STDIN_FILENO);
    CHECK_EQ(close(input_before) | close(input), 0);
    end();
}
static void read_a_byte_of_input(void) {
    CHECK_EQ(write(input, "x", 1), 1);
    GIVES(volt_read(cx_of(0), STDIN_FILENO, &byte, 1), 1);
}
TEST(standard_input_is_opened_again_after_eintr) {
    begin_with_piped_input();
    ANSWERS(open, EINTR, EINTR);
    read_a_byte_of_input();
    CHECK_EQ(answers[A_open].n_calls, 3);
    CHECK(entry(STDIN_FILENO)->reopened_fd > STDERR_FILENO);
    CHECK(!(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK)); // that of the others
    end_with_piped_input();
}
// A step of another frame in the middle of a poll, while that poll waits for the lock of the entry.
static volt_cx outer; // of the poll that is interrupted
static int reads_meanwhile(void) {
    at_futex = NULL;
    volt__unlock(&entry(STDIN_FILENO)->lock);
    outer = w->cx;
    PENDING(volt_read(cx_of(1), STDIN_FILENO, &byte, 1));
    w->cx = outer;
    return 0;
}
TEST(two_reads_that_begin_at_once_open_standard_input_once) {
    begin_with_piped_input();
    volt__lock(&entry(STDIN_FILENO)->lock);
    at_futex = reads_meanwhile;
    PENDING(volt_read(cx_of(0), STDIN_FILENO, &byte, 1));
    CHECK(!at_futex);
    CHECK_EQ(answers[A_open].n_calls, 1);
    CHECK(entry(STDIN_FILENO)->flags & VOLT__FD_REOPENED);
    CHECK_EQ(write(input, "xy", 2), 2);
    CHECK_EQ(look_at_events_of_task(), 1);
    for (int i = 0; i < 2; i++) GIVES(volt_read(cx_of(i), STDIN_FILENO, &byte, 1), 1);
    end_with_piped_input();
}
static int releases_meanwhile(void) {
    at_futex = NULL;
    volt__unlock(&entry(STDIN_FILENO)->lock);
    volt_fd_release(&w->cx, STDIN_FILENO);
    return 0;
}
TEST(read_gives_ebadf_if_its_description_is_closed_meanwhile) {
    begin_with_piped_input();
    read_a_byte_of_input();
    CHECK_EQ(write(input, "x", 1), 1);
    volt__lock(&entry(STDIN_FILENO)->lock);
    at_futex = releases_meanwhile;
    answers[A_read].n_calls = 0;
    GIVES(volt_read(cx_of(0), STDIN_FILENO, &byte, 1), -EBADF);
    CHECK(!at_futex);
    CHECK_EQ(answers[A_read].n_calls, 0); // neither the description nor the number is read
    end_with_piped_input();
}
// Each look whether the number is still the same file may say that it is not.
TEST(description_is_opened_again_when_number_is_another_file) {
    static const int differences[] = { IN_DEVICE, IN_INODE, IN_KIND_OF_DEVICE };
    begin_with_piped_input();
    read_a_byte_of_input();
    for (int i = 0; i < 5; i++) {
        int n_logged = test_log.n[VOLT_LOG_FD_REUSED];
        if (i == 0) ANSWERS(fstat, EIO);
        else if (i == 1) ANSWERS(fstat, 0, EIO);
        else told.differs_in = differences[i - 2]; // fd 0
        read_a_byte_of_input();
        CHECK_EQ(answers[A_open].n_calls, 2 + i);
        CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], n_logged + 1);
        read_a_byte_of_input(); // the new one is used
        CHECK_EQ(answers[A_open].n_calls, 2 + i);
    }
    end_with_piped_input();
}
// /dev/console and /dev/tty0 may stand for another terminal when they are opened again; /dev/tty is
// not opened, and of the last one it is certain which one is.
TEST(alias_of_terminal_is_opened_again_only_if_it_is_the_same) {
    static const struct {
        unsigned major, minor, terminals[2], is_opened, is_used;
    } cases[] = {
        { 5, 0, { 7, 7 }, 0, 0 }, { 5, 1, { 7, 7 }, 1, 1 }, { 5, 1, { 7, 8 }, 1, 0 },
        { 5, 1, { 0, 7 }, 1, 0 }, { 5, 1, { 7, 0 }, 1, 0 }, { 5, 1, { 0, 0 }, 1, 0 },
        { 4, 0, { 7, 7 }, 1, 1 }, { 4, 0, { 7, 8 }, 1, 0 }, { 4, 64, { 0, 0 }, 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd[2], is_used = (int)cases[i].is_used;
        begin();
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        told.kind = S_IFCHR;
        told.device = makedev(cases[i].major, cases[i].minor);
        memcpy(told.terminals, cases[i].terminals, sizeof told.terminals);
        told.n_asked = 0;
        answers[A_open].n_calls = 0;
        int first_free = lowest_free();
        PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
        CHECK_EQ(answers[A_open].n_calls, cases[i].is_opened);
        CHECK_EQ(lowest_free(), first_free + is_used); // what is not used is closed
        CHECK_EQ(entry(fd[0])->reopened_fd > 0, is_used);
        CHECK_EQ((entry(fd[0])->flags & VOLT__FD_REOPENED) != 0, is_used);
        CHECK_EQ((entry(fd[0])->flags & VOLT__FD_TOGGLED) != 0, !is_used);
        CHECK(!(fcntl(fd[0], F_GETFL) & O_NONBLOCK)); // at most it was during the call
        CHECK_EQ(write(fd[1], "x", 1), 1);
        CHECK_EQ(look_at_events(), 1);
        GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
        told.kind = 0;
        close_pair(fd);
        end();
    }
}
// A mode that is set for each call: without it no call is made, as it might block.
TEST(file_whose_mode_cannot_be_set_is_not_read) {
    int fd[2];
    begin();
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    told.kind = S_IFCHR;
    told.device = makedev(5, 0);
    CHECK_EQ(write(fd[1], "xy", 2), 2);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    CHECK_EQ(answers[A_fcntl].n_calls, 2); // there and back
    CHECK_EQ(answers[A_read].n_calls, 1);
    ANSWERS(getfl, EIO);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EIO);
    check_all_given();
    CHECK_EQ(answers[A_fcntl].n_calls, 2);
    ANSWERS(fcntl, EPERM);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EPERM);
    CHECK_EQ(answers[A_fcntl].n_calls, 1);
    CHECK_EQ(answers[A_read].n_calls, 1);
    int mode = fcntl(fd[0], F_GETFL);
    CHECK(!(mode & O_NONBLOCK));
    CHECK_EQ(fcntl(fd[0], F_SETFL, mode | O_NONBLOCK), 0); // by another process
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    CHECK_EQ(answers[A_fcntl].n_calls, 1);
    CHECK_EQ(fcntl(fd[0], F_GETFL), mode | O_NONBLOCK); // which relies on it
    told.kind = 0;
    close_pair(fd);
    end();
}
#if VOLT_DEBUG
// A debug build looks at the file before each call.
TEST(read_gives_error_of_look_at_its_file) {
    int fd[2], zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    begin();
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    ANSWERS(getfl, 0, EIO); // the first call finds out the kind of the file
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EIO);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    close_pair(fd);
    told.kind = S_IFREG;
    ANSWERS(fstat, 0, EIO);
    GIVES(volt_read(cx_of(0), zero, &byte, 1), -EIO);
    GIVES(volt_read(cx_of(0), zero, &byte, 1), 1);
    told.kind = 0;
    volt_rt_close(rt, zero);
    end();
}
#endif
// The number of a socket that has something to read is that of a pipe by now.
TEST(read_of_former_socket_reads_next_file_of_number) {
    int fd[2], p[2];
    begin();
    open_pair(fd);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    int n_logged = test_log.n[VOLT_LOG_FD_REUSED];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(dup3(p[0], fd[0], O_CLOEXEC), fd[0]);
    CHECK_EQ(close(p[0]), 0);
    CHECK_EQ(write(p[1], "y", 1), 1);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    CHECK_EQ(byte, 'y');
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], n_logged + 1);
    CHECK(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
    close_pair(fd);
    CHECK_EQ(close(p[1]), 0);
    end();
}
TEST(accept_on_former_listener_gives_enotsock) {
    int p[2];
    begin();
    int fd = open_listener();
    PENDING(volt_accept(cx_of(0), fd));
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    volt__fd *e = entry(fd);
    e->ready = VOLT__RD; // a connection has come
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(dup3(p[0], fd, O_CLOEXEC), fd);
    CHECK_EQ(close(p[0]), 0);
    int mode = fcntl(fd, F_GETFL);
    GIVES(volt_accept(cx_of(0), fd), -ENOTSOCK);
    CHECK_EQ(fcntl(fd, F_GETFL), mode);
    volt_rt_close(rt, fd);
    CHECK_EQ(close(p[1]), 0);
    end();
}
TEST(operation_without_budget_and_without_file_fails_later) {
    begin();
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(volt_read(cx, -1, &byte, 1));
    CHECK(task->word & VOLT__NOTIFIED);
    GIVES(volt_read(cx_of(0), -1, &byte, 1), -EBADF);
    end();
}
// Without budget it is tried later, but it belongs to the file that the number had at first.
TEST(operation_that_is_put_off_twice_belongs_to_its_first_file) {
    int fd[2], p[2];
    begin();
    open_pair(fd);
    for (int i = 0; i < 2; i++) {
        volt_cx *cx = cx_of(0);
        cx->budget_ = 0;
        PENDING(volt_read(cx, fd[0], &byte, 1));
        if (i == 1) break;
        volt_rt_close(rt, fd[0]);
        CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
        CHECK_EQ(p[0], fd[0]);
        CHECK_EQ(write(p[1], "x", 1), 1);
    }
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EBADF);
    GIVES(volt_read(cx_of(0), p[0], &byte, 1), 1); // from now on that file's
    close_pair(p);
    volt_rt_close(rt, fd[1]);
    end();
}

// ---- the last try of a poll whose time is up

static volt_cx *last_try_cx(int i) {
    volt_cx *cx = cx_of(i);
    cx->last_tries_ = 1;
    return cx;
}
TEST(last_try_finds_readiness_that_no_event_has_told) {
    int fd[2];
    volt_addr a;
    begin();
    open_pair(fd);
    PENDING(volt_readable(cx_of(0), fd[0]));
    PENDING(volt_readable(last_try_cx(0), fd[0])); // there is nothing
    CHECK_EQ(write(fd[1], "x", 1), 1);
    GIVES(volt_readable(last_try_cx(0), fd[0]), 0);
    close_pair(fd);
    int lfd = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    w->cx.last_tries_ = 0;
    PENDING(volt_connect(cx_of(0), &a));
    volt_poll p = volt_connect(last_try_cx(0), &a);
    CHECK(!volt_is_pending(p) && volt_value(p) > 0);
    volt_rt_close(rt, (int)volt_value(p));
    volt_rt_close(rt, lfd);
    w->cx.last_tries_ = 0;
    end();
}
// Closed behind the back of volt: poll(2) says so at once, but it is no readiness.
TEST(last_try_of_closed_number_reads_nothing) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    CHECK_EQ(close(fd[0]), 0);
    answers[A_recv].n_calls = 0;
    PENDING(volt_read(last_try_cx(0), fd[0], &byte, 1));
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__LINKED);
    CHECK_EQ(answers[A_recv].n_calls, 0);
    w->cx.last_tries_ = 0;
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    volt_fd_release(cx_of(0), fd[0]);
    volt_rt_close(rt, fd[1]);
    end();
}

// ---- descriptors that are closed

// The first close is still in the middle of its work.
TEST(fd_being_closed_refuses_operations) {
    int fd[2];
    begin();
    open_pair(fd);
    volt__fd *e = entry(fd[0]);
    CHECK(volt__fd_pin(e));
    volt__fd_begin_close(e);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EBADF);
    volt_rt_close(rt, fd[0]); // the second to close it
    CHECK_EQ(volt__fd_wait(&rt->fds, e, fd[0], 0, VOLT__RD, VOLT__RD,
                           volt__fd_take_snapshot(e), &frame[0].node_, task), -EBADF);
    CHECK(fcntl(fd[0], F_GETFD) >= 0); // not before the first one is out
    volt__fd_unpin_and_close(rt, e, fd[0]);
    CHECK(fcntl(fd[0], F_GETFD) < 0);
    volt_rt_close(rt, fd[1]);
    end();
}
TEST(read_gives_ebadf_if_fd_closes_after_the_event) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    volt_rt_close(rt, fd[0]);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -EBADF);
    volt__chain c;
    volt__chain_init(&c);
    volt__fd *e = entry(fd[0]);
    uint32_t seq = e->seq;
    volt__fd_event(&rt->fds, (uint64_t)e->gen << 32 | (uint32_t)fd[0], EPOLLIN, &c);
    CHECK_EQ(e->seq, seq); // no task has registered it
    volt_rt_close(rt, fd[1]);
    end();
}
// The byte that the read missed has come meanwhile: it is not lost.
TEST(short_read_keeps_readiness_of_newer_event) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    volt__fd *e = entry(fd[0]);
    volt__fd_snapshot seen = volt__fd_take_snapshot(e);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    CHECK_EQ(e->ready & VOLT__RD, VOLT__RD);
    volt__fd_mark_empty(e, &w->mapped, VOLT__RD, seen.seq, &byte, 1, 2);
    CHECK_EQ(e->ready & VOLT__RD, VOLT__RD);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    close_pair(fd);
    end();
}
TEST(read_gives_error_of_repeated_epoll_ctl) {
    int fd[2];
    begin();
    open_pair(fd);
    ANSWERS(epoll_ctl, EEXIST, ENOMEM); // it must be added, it must not; then there is no memory
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), -ENOMEM);
    close_pair(fd);
    end();
}

// A state that is known is not asked for again.
TEST(read_spares_useless_calls) {
    int fd[2];
    char four[4];
    begin();
    open_tcp(fd);
    PENDING(volt_read(cx_of(0), fd[0], four, 4));
    CHECK_EQ(answers[A_getfl].n_calls, 1);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    answers[A_recv].n_calls = 0;
    GIVES(volt_read(cx_of(0), fd[0], four, 4), 1);
    PENDING(volt_read(cx_of(0), fd[0], four, 4)); // there was no more of it
    CHECK_EQ(answers[A_recv].n_calls, 1);
    CHECK_EQ(answers[A_getfl].n_calls, 1);
    GIVES(volt_write(cx_of(1), fd[0], "y", 1), 1);
    CHECK_EQ(answers[A_write].n_calls, 0); // send, which raises no signal
    CHECK_EQ(read(fd[1], four, 4), 1);
    CHECK_EQ(close(fd[1]), 0);
    (void)look_at_events();
    GIVES(volt_read(cx_of(0), fd[0], four, 4), 0);
    GIVES(volt_read(cx_of(0), fd[0], four, 4), 0); // the end is no lack of data
    volt_rt_close(rt, fd[0]);
    end();
}
// A short read that another one follows, which has nothing: is the kernel asked to find that out?
static int is_asked_after_a_short_read(int fd, int other, int is_vector) {
    char four[4];
    struct iovec v[2] = { { four, 2 }, { four + 2, 2 } };
    int call = is_vector ? A_recvmsg : A_recv;
    CHECK_EQ(write(other, "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    answers[call].n_calls = 0;
    GIVES(is_vector ? volt_readv(cx_of(0), fd, v, 2) : volt_read(cx_of(0), fd, four, 4), 1);
    CHECK_EQ(answers[call].n_calls, 1);
    PENDING(is_vector ? volt_readv(cx_of(0), fd, v, 2) : volt_read(cx_of(0), fd, four, 4));
    GIVES(volt_read(cancelled_cx(0), fd, four, 4), -ECANCELED);
    return answers[call].n_calls == 2;
}
static void check_asked(int is_vector) {
    int fd[2];
    begin();
    open_tcp(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // from now on volt's own
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    for (int i = 0; i < 2; i++) CHECK(is_asked_after_a_short_read(fd[0], fd[1], is_vector));
    close_pair(fd);
    end();
}
// Of records and passed descriptors a read gets less than there is, too: see volt__fd_probe_socket.
TEST(short_read_of_other_than_tcp_does_not_mean_empty) {
    static const int others[] = { 132 /* SCTP */, 262 /* MPTCP */, 1 };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        told_protocol = others[i];
        check_asked(0);
    }
}
TEST(short_readv_does_not_mean_empty) { check_asked(1); }
TEST(short_writev_does_not_mean_full) {
    int fd[2];
    static struct {
        struct iovec v[2]; // as many bytes are mapped behind it as it counts
        char block[1 << 22];
    } much;
    struct iovec *v = much.v;
    int64_t n;
    v[0] = (struct iovec){ much.block, 1 };
    v[1] = (struct iovec){ much.block, sizeof much.block - 1 };
    begin();
    open_tcp(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // from now on volt's own
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    (void)look_at_events();
    do n = volt_value(volt_writev(cx_of(0), fd[0], v, 2));
    while (n == (int64_t)sizeof much.block);
    CHECK(n > 0);
    answers[A_sendmsg].n_calls = 0;
    volt_poll p = volt_writev(cx_of(0), fd[0], v, 2);
    CHECK_EQ(answers[A_sendmsg].n_calls, 1);
    while (!volt_is_pending(p)) p = volt_writev(cx_of(0), fd[0], v, 2); // there was some room
    GIVES(volt_writev(cancelled_cx(0), fd[0], v, 2), -ECANCELED);
    close_pair(fd);
    end();
}
// A kernel that skips the control data of UDP_SEGMENT would send all of them as one datagram.
TEST(segments_are_datagrams_on_a_kernel_without_offload) {
    char out[250], in[300];
    volt_addr to;
    for (int is_old = 0; is_old < 2; is_old++) {
        begin();
        has_no_segments = is_old;
        CHECK_EQ(volt_addr_parse(&to, "127.0.0.1:0"), 0);
        int from = volt_udp_open(&to, NULL), fd = volt_udp_open(&to, NULL);
        CHECK(from >= 0 && fd >= 0);
        CHECK_EQ(volt_local_addr(fd, &to), 0);
        int size = 0;
        socklen_t len = sizeof size;
        int is_joined = !is_old && getsockopt(from, IPPROTO_UDP, 103, &size, &len) == 0;
        n_asked_segments = 0;
        for (int i = 0; i < 250; i++) out[i] = (char)i;
        for (int again = 0; again < 2; again++) {
            answers[A_sendmsg].n_calls = 0;
            GIVES(volt_send_segments(cx_of(0), from, out, sizeof out, 100, &to), sizeof out);
            CHECK_EQ(answers[A_sendmsg].n_calls, is_joined);
            CHECK_EQ(n_asked_segments, again + 1);
            for (int i = 0; i < 3; i++) {
                GIVES(volt_recv(cx_of(0), fd, in, sizeof in, 0), i < 2 ? 100 : 50);
                CHECK_EQ(memcmp(in, out + 100 * i, i < 2 ? 100 : 50), 0);
            }
        }
        volt_rt_close(rt, from);
        volt_rt_close(rt, fd);
        end();
    }
    has_no_segments = 0;
}
// By each call at most 16 datagrams; those that were sent before an error are told.
TEST(segments_that_are_sent_apart_go_by_calls_of_16) {
    static char out[40 * 10], in[20];
    volt_addr to;
    begin();
    has_no_segments = 1;
    CHECK_EQ(volt_addr_parse(&to, "127.0.0.1:0"), 0);
    int from = volt_udp_open(&to, NULL), fd = volt_udp_open(&to, NULL);
    CHECK(from >= 0 && fd >= 0);
    CHECK_EQ(volt_local_addr(fd, &to), 0);
    for (int i = 0; i < 40; i++) memset(out + 10 * i, i, 10);
    for (int n_sent = 0; n_sent < 40; n_sent += 16) {
        ANSWERS(sendmmsg, ENOBUFS);
        answers[A_sendmmsg].n_own = n_sent / 16;
        GIVES(volt_send_segments(cx_of(0), from, out, sizeof out, 10, &to),
              n_sent > 0 ? 10 * n_sent : -ENOBUFS);
        CHECK_EQ(answers[A_sendmmsg].n_calls, n_sent / 16 + 1);
        check_all_given();
        for (int i = 0; i < n_sent; i++) {
            GIVES(volt_recv(cx_of(0), fd, in, sizeof in, 0), 10);
            CHECK_EQ(memcmp(in, out + 10 * i, 10), 0);
        }
    }
    answers[A_sendmmsg].n_calls = 0;
    GIVES(volt_send_segments(cx_of(0), from, out, sizeof out, 10, &to), sizeof out);
    CHECK_EQ(answers[A_sendmmsg].n_calls, 3);
    // of one datagram the kernel is not asked whether it knows more
    for (size_t len = 9; len <= 11; len++) {
        n_asked_segments = 0;
        GIVES(volt_send_segments(cx_of(0), from, out, len, 10, &to), len);
        CHECK_EQ(n_asked_segments, len > 10);
    }
    has_no_segments = 0;
    volt_rt_close(rt, from);
    volt_rt_close(rt, fd);
    end();
}
static struct mmsghdr many[3];
static struct iovec many_parts[3];
static char many_bytes[3];
// The first error ends the call; messages that have moved before it are told.
TEST(messages_go_singly_where_the_kernel_has_no_call_for_several) {
    static const int error = EPERM;
    int fd[2];
    begin();
    CHECK_EQ(volt_socketpair(SOCK_DGRAM, fd), 0);
    for (int n = 0; n <= 3; n++) {
        for (int i = 0; i < 3; i++) {
            many_bytes[i] = (char)('a' + i);
            many_parts[i] = (struct iovec){ &many_bytes[i], 1 };
            many[i] = (struct mmsghdr){ .msg_len = 7 };
            many[i].msg_hdr.msg_iov = &many_parts[i];
            many[i].msg_hdr.msg_iovlen = 1;
        }
        ANSWERS(sendmmsg, ENOSYS);
        if (n < 3) ANSWERS(sendmsg, error);
        answers[A_sendmsg].n_own = answers[A_sendmsg].n_calls = 0;
        if (n < 3) answers[A_sendmsg].n_own = n;
        GIVES(volt_sendmmsg(cx_of(0), fd[0], many, 3, 0), n > 0 ? n : -error);
        CHECK_EQ(answers[A_sendmsg].n_calls, n < 3 ? n + 1 : 3);
        for (int i = 0; i < 3; i++) CHECK_EQ(many[i].msg_len, i < n ? 1 : 7);
        check_all_given();
        memset(many_bytes, 0, sizeof many_bytes);
        for (int i = 0; i < 3; i++) many[i].msg_len = 7;
        ANSWERS(recvmmsg, ENOSYS);
        if (n == 0) {
            ANSWERS(recvmsg, error);
            GIVES(volt_recvmmsg(cx_of(0), fd[1], many, 3, 0), -error);
        } else {
            GIVES(volt_recvmmsg(cx_of(0), fd[1], many, 3, 0), n); // then there is none
        }
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(many[i].msg_len, i < n ? 1 : 7);
            CHECK_EQ(many_bytes[i], i < n ? 'a' + i : 0);
        }
        check_all_given();
    }
    close_pair(fd);
    end();
}
TEST(control_data_is_not_written_beyond_its_room) {
    static size_t room[32]; // aligned as control data is
    const int value = 7;
    size_t whole = CMSG_SPACE(sizeof value);
    for (size_t n = 0; n <= 2 * whole; n++) {
        struct msghdr m = { .msg_control = room };
        memset(room, '#', sizeof room);
        CHECK_EQ(volt__message_control(&m, n, IPPROTO_IP, IP_TTL, &value, sizeof value),
                 n < whole ? -ENOSPC : 0);
        CHECK_EQ(m.msg_controllen, n < whole ? 0 : whole);
        m.msg_controllen = 0;
        memset(room, '#', sizeof room);
        CHECK_EQ(volt__message_control_both(&m, n, IPV6_HOPLIMIT, IP_TTL, value),
                 n < 2 * whole ? -ENOSPC : 0);
        CHECK_EQ(m.msg_controllen, n < whole ? 0 : n < 2 * whole ? whole : 2 * whole);
        for (size_t i = m.msg_controllen; i < sizeof room; i++)
            CHECK_EQ(((char *)room)[i], '#');
    }
    // the local address of no family yet: an item of each family
    static const volt_msg_info info = { .has = VOLT_MSG_INTERFACE, .if_index = 3 };
    size_t v6 = CMSG_SPACE(sizeof(struct in6_pktinfo)), v4 = CMSG_SPACE(sizeof(struct in_pktinfo));
    for (size_t n = 0; n <= v6 + v4; n++) {
        struct msghdr m = { .msg_control = room };
        CHECK_EQ(volt__msg_info_put_local(&m, n, &info), n < v6 + v4 ? -ENOSPC : 0);
        CHECK_EQ(m.msg_controllen, n < v6 ? 0 : n < v6 + v4 ? v6 : v6 + v4); // v4 not alone
    }
}
TEST(only_control_data_of_descriptors_gives_descriptors) {
    static const struct {
        int level, type;
    } rows[] = { { SOL_SOCKET, SCM_RIGHTS }, { SOL_SOCKET, SCM_CREDENTIALS },
                 { IPPROTO_IP, SCM_RIGHTS } };
    int fd[2];
    begin();
    open_pair(fd);
    for (int i = 0; i < 3; i++) {
        for (unsigned cap = 0; cap < 2; cap++) { // with room for it; else it is closed
            volt_fds_info info;
            int in = -1, given = dup(fd[1]), is_right = i == 0;
            control.is_given = 1;
            control.level = rows[i].level;
            control.type = rows[i].type;
            control.value = given;
            CHECK_EQ(write(fd[1], "x", 1), 1);
            GIVES(volt_recv_fds(cx_of(0), fd[0], &byte, 1, &in, cap, &info), 1);
            control.is_given = 0;
            CHECK_EQ(info.n, is_right && cap);
            CHECK_EQ(info.is_surplus, is_right && !cap);
            CHECK_EQ(in, is_right && cap ? given : -1);
            CHECK_EQ(fcntl(given, F_GETFD) >= 0, !is_right || cap);
            if (!is_right || cap) CHECK_EQ(close(given), 0);
        }
    }
    close_pair(fd);
    end();
}
TEST(read_and_write_are_repeated_after_eintr) {
    int fd[2];
    begin();
    CHECK_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    ANSWERS(write, EINTR, EINTR);
    GIVES(volt_write(cx_of(0), fd[1], "x", 1), 1);
    ANSWERS(read, EINTR, EINTR);
    GIVES(volt_read(cx_of(0), fd[0], &byte, 1), 1);
    check_all_given();
    ANSWERS(write, 0); // some device
    GIVES(volt_write(cx_of(0), fd[1], "x", 1), 0);
    CHECK_EQ(answers[A_sigtimedwait].n_calls, 0);
    close_pair(fd);
    end();
}

// A task that is requeued, to let others run, goes on only if the number is the same file's.
static int wait_round(int what, int fd, char *buf) {
    static const int errors[] = { EAGAIN, ECONNABORTED };
    int call = what == 1 ? A_accept4 : A_read;
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    volt_cx *cx = cx_of(0);
    if (what < 2) {
        answers[call].n = what ? VOLT_BUDGET : 16;
        answers[call].at = 0;
        for (int i = 0; i < 16; i++) answers[call].errors[i] = errors[what];
    } else {
        cx->budget_ = 1;
    }
    PENDING(what == 0   ? volt_read(cx, fd, buf, 2)
            : what == 1 ? volt_accept(cx, fd)
                        : volt_read_exact(cx, fd, buf, 2));
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__IDLE);
    CHECK(task->word & VOLT__NOTIFIED);
    check_all_given();
    return fd;
}
static volt_poll go_on(int what, int fd, char *buf) {
    return what == 0   ? volt_read(cx_of(0), fd, buf, 2)
           : what == 1 ? volt_accept(cx_of(0), fd)
                       : volt_read_exact(cx_of(0), fd, buf, 2);
}
TEST(requeued_operation_goes_on_only_with_same_file) {
    begin();
    for (int what = 0; what < 3; what++)
        for (int is_other = 0; is_other < 2; is_other++) {
            int fd[2] = { -1, -1 };
            char two[3] = "##";
            if (what == 0) fd[0] = open("/dev/zero", O_RDWR | O_CLOEXEC);
            else if (what == 1) fd[0] = open_listener();
            else open_pair(fd);
            if (what == 2) CHECK_EQ(write(fd[1], "a", 1), 1);
            wait_round(what, fd[0], two);
            if (is_other) {
                volt_rt_close(rt, fd[0]);
                CHECK_EQ(open("/dev/zero", O_RDONLY | O_CLOEXEC), fd[0]);
                GIVES(go_on(what, fd[0], two), -EBADF);
                GIVES(volt_read(cx_of(0), fd[0], two, 2), 2); // from now on the other's
            } else if (what == 1) {
                PENDING(go_on(what, fd[0], two));
                GIVES(volt_accept(cancelled_cx(0), fd[0]), -ECANCELED);
            } else {
                if (what == 2) CHECK_EQ(write(fd[1], "b", 1), 1);
                GIVES(go_on(what, fd[0], two), 2);
                if (what == 2) CHECK_STR(two, "ab");
            }
            volt_rt_close(rt, fd[0]);
            if (fd[1] >= 0) volt_rt_close(rt, fd[1]);
        }
    end();
}
TEST(read_exact_reads_no_more_than_asked_for) {
    int fd[2];
    char buf[9] = "########";
    begin();
    open_pair(fd);
    CHECK_EQ(write(fd[1], "ab", 2), 2);
    PENDING(volt_read_exact(cx_of(0), fd[0], buf, 4));
    CHECK_EQ(volt_progress(&frame[0]), 2);
    CHECK_EQ(write(fd[1], "cdefgh", 6), 6);
    CHECK_EQ(look_at_events(), 1);
    GIVES(volt_read_exact(cx_of(0), fd[0], buf, 4), 4);
    CHECK_STR(buf, "abcd####");
    volt_cx *cx = cx_of(0);
    cx->budget_ = 1; // enough for what is there
    GIVES(volt_read_exact(cx, fd[0], buf, 4), 4);
    CHECK_STR(buf, "efgh####");
    PENDING(volt_read(cx_of(0), fd[0], buf, 1)); // empty, and known to be
    GIVES(volt_read(cancelled_cx(0), fd[0], buf, 1), -ECANCELED);
    struct iovec v[2] = { { buf, 0 }, { buf, 5 } };
    GIVES(volt_read(cx_of(0), fd[0], buf, 0), 0);
    GIVES(volt_readv(cx_of(0), fd[0], v, 0), 0);
    GIVES(volt_readv(cx_of(0), fd[0], v, 1), 0);
    GIVES(volt_read_exact(cx_of(0), fd[0], buf, 0), 0);
    close_pair(fd);
    end();
}

// ---- readiness

TEST(read_event_of_foreign_fd_keeps_write_wait) {
    int fd[2];
    static char block[4096];
    begin();
    open_pair(fd);
    while (write(fd[0], block, sizeof block) > 0) {} // until there is no room
    for (int round = 0; round < 2; round++) {
        PENDING(volt_readable(cx_of(0), fd[0]));
        PENDING(volt_writable(cx_of(1), fd[0]));
        CHECK_EQ(write(fd[1], "x", 1), 1);
        if (round) ANSWERS(epoll_ctl, ENOMEM);
        CHECK_EQ(look_at_events(), 1);
        GIVES(volt_readable(cx_of(0), fd[0]), 0);
        if (round) break;
        PENDING(volt_writable(cx_of(1), fd[0])); // armed again without being asked
        CHECK_EQ(volt__node_state(&frame[1].node_), VOLT__LINKED);
        CHECK_EQ(read(fd[0], &byte, 1), 1);
        PENDING(volt_readable(cx_of(0), fd[0]));
        GIVES(volt_readable(cancelled_cx(0), fd[0]), -ECANCELED);
    }
    GIVES(volt_writable(cx_of(1), fd[0]), 0); // told, as it can wait no more
    CHECK_EQ(read(fd[0], &byte, 1), 1);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // from now on volt's own
    CHECK_EQ(entry(fd[0])->mode, VOLT__MODE_EDGE);
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    close_pair(fd);
    end();
}
TEST(write_event_of_foreign_fd_keeps_read_wait) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_readable(cx_of(0), fd[0]));
    PENDING(volt_writable(cx_of(1), fd[0]));
    CHECK_EQ(look_at_events(), 1);
    GIVES(volt_writable(cx_of(1), fd[0]), 0);
    PENDING(volt_readable(cx_of(0), fd[0]));
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    GIVES(volt_readable(cx_of(0), fd[0]), 0);
    close_pair(fd);
    end();
}
// The number becomes that of a file which epoll refuses, /dev/null, while one frame waits to read
// and another one to write: no event will come for either.
static void become_null(int fd) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(null >= 0);
    CHECK_EQ(dup3(null, fd, O_CLOEXEC), fd);
    CHECK_EQ(close(null), 0);
}
static void check_both_end(int fd) {
    CHECK_EQ(entry(fd)->mode, VOLT__MODE_ALWAYS);
    CHECK(!entry(fd)->rd && !entry(fd)->wr);
    GIVES(volt_readable(cx_of(0), fd), 0);
    GIVES(volt_writable(cx_of(1), fd), 0);
}
TEST(waits_for_foreign_fd_end_if_an_event_finds_another_file) {
    int fd[2];
    volt__chain c;
    begin();
    open_pair(fd);
    PENDING(volt_readable(cx_of(0), fd[0]));
    PENDING(volt_writable(cx_of(1), fd[0]));
    become_null(fd[0]);
    volt__chain_init(&c);
    volt__fd_event(&rt->fds, (uint64_t)entry(fd[0])->gen << 32 | (uint32_t)fd[0], EPOLLIN, &c);
    check_both_end(fd[0]);
    close_pair(fd);
    end();
}
TEST(waits_for_foreign_fd_end_if_a_later_wait_finds_another_file) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_readable(cx_of(0), fd[0]));
    become_null(fd[0]);
    GIVES(volt_writable(cx_of(2), fd[0]), 0);
    CHECK(task->word & VOLT__NOTIFIED);
    check_both_end(fd[0]);
    close_pair(fd);
    end();
}
TEST(waits_for_foreign_fd_end_if_a_read_finds_another_file) {
    int fd[2];
    begin();
    open_pair(fd);
    PENDING(volt_readable(cx_of(0), fd[0]));
    become_null(fd[0]);
    ANSWERS(read, EAGAIN);
    GIVES(volt_read(cx_of(2), fd[0], &byte, 1), 0);
    CHECK(task->word & VOLT__NOTIFIED);
    check_both_end(fd[0]);
    close_pair(fd);
    end();
}
static int own[2];
static void make_readable(void) {
    CHECK_EQ(write(own[1], "x", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    answers[A_poll].is_zero = 1; // the look was before it
}
TEST(readable_repeats_poll_after_eintr_or_new_event) {
    begin();
    open_pair(own);
    PENDING(volt_read(cx_of(0), own[0], &byte, 1)); // makes it volt's own
    GIVES(volt_read(cancelled_cx(0), own[0], &byte, 1), -ECANCELED);
    ANSWERS(poll, EINTR, EINTR);
    PENDING(volt_readable(cx_of(0), own[0]));
    GIVES(volt_readable(cancelled_cx(0), own[0]), -ECANCELED);
    check_all_given();
    ANSWERS(poll, EINTR, ENOMEM);
    GIVES(volt_readable(cx_of(0), own[0]), -ENOMEM);
    answers[A_poll].meanwhile = make_readable;
    answers[A_poll].n_calls = 0;
    GIVES(volt_readable(cx_of(0), own[0]), 0);
    CHECK_EQ(answers[A_poll].n_calls, 2);
    close_pair(own);
    end();
}
#if VOLT_DEBUG
TEST(readable_starts_over_with_file_of_reused_number) {
    int fd[2], next[2];
    begin();
    int n_logged = test_log.n[VOLT_LOG_FD_REUSED];
    open_pair(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // makes it volt's own
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(volt_readable(cx, fd[0])); // belongs to the file of now, and asks it later
    open_pair(next);
    CHECK_EQ(dup3(next[0], fd[0], O_CLOEXEC), fd[0]);
    CHECK_EQ(close(next[0]), 0);
    PENDING(volt_readable(cx_of(0), fd[0]));
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], n_logged + 1);
    CHECK_EQ(write(next[1], "x", 1), 1);
    (void)look_at_events_of_task();
    GIVES(volt_readable(cx_of(0), fd[0]), 0);
    close_pair(fd);
    CHECK_EQ(close(next[1]), 0);
    end();
}
#endif
TEST(pollset_registers_exactly_the_events_asked_for) {
    volt_pollset p;
    volt_pollev ev[3];
    int fd[2];
    begin();
    ANSWERS(epoll_create1, EMFILE);
    CHECK_EQ(volt_pollset_open(&p), -EMFILE);
    open_pair(fd);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), -EINVAL); // is none
    CHECK_EQ(volt_pollset_open(&p), 0);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    for (uint32_t is = 1; is < 16; is++) {
        static const int stale[] = { ENOENT, EEXIST, EIO };
        for (int i = 0; i < 3; i++) {
            answers[A_epoll_ctl].n_calls = 0;
            errno = stale[i]; // of another call
            CHECK_EQ(volt_pollset_set(&p, fd[0], (is & 1 ? (uint32_t)VOLT_IN : 0) |
                                      (is & 2 ? (uint32_t)VOLT_OUT : 0) |
                                      (is & 4 ? (uint32_t)VOLT_PRI : 0) |
                                      (is & 8 ? (uint32_t)VOLT_RDHUP : 0)), 0);
            CHECK_EQ(asked_events, (is & 1 ? EPOLLIN : 0u) | (is & 2 ? EPOLLOUT : 0u) |
                     (is & 4 ? EPOLLPRI : 0u) | (is & 8 ? EPOLLRDHUP : 0u));
            CHECK_EQ(answers[A_epoll_ctl].n_calls, 1);
        }
    }
    ANSWERS(epoll_ctl, ENOENT, EEXIST, ENOENT); // two others add it and remove it at that moment
    answers[A_epoll_ctl].n_calls = 0;
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    CHECK_EQ(answers[A_epoll_ctl].n_calls, 5);
    ANSWERS(epoll_ctl, ENOENT, ENOSPC);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), -ENOSPC);
    // Only events that are there are given, and nothing more is written.
    static const struct {
        uint32_t asks, gives;
        int is_readable;
    } rows[] = { { VOLT_IN, 0, 0 }, { VOLT_OUT, VOLT_OUT, 0 }, { VOLT_OUT, VOLT_OUT, 1 },
                 { VOLT_IN, VOLT_IN, 1 }, { VOLT_IN | VOLT_OUT, VOLT_IN | VOLT_OUT, 1 },
                 { VOLT_PRI, 0, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(volt_pollset_set(&p, fd[0], rows[i].asks), 0);
        if (rows[i].is_readable) CHECK_EQ(write(fd[1], "x", 1), 1);
        memset(ev, 0xa5, sizeof ev);
        int n = volt__pollset_poll(p.epfd_ - 1, ev, 3, 0);
        CHECK_EQ(n, rows[i].gives != 0);
        if (n) CHECK(ev[0].fd == fd[0] && ev[0].events == rows[i].gives);
        for (int k = n; k < 3; k++) CHECK_EQ((uint32_t)ev[k].fd, 0xa5a5a5a5);
    }
    errno = EIO;
    CHECK_EQ(volt_pollset_set(&p, fd[0], 0), 0);
    CHECK_EQ(volt_pollset_set(&p, fd[0], 0), 0); // is not there any more
    ANSWERS(epoll_ctl, EPERM);
    CHECK_EQ(volt_pollset_set(&p, fd[0], 0), -EPERM);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    CHECK_EQ(close(fd[1]), 0);
    CHECK_EQ(volt__pollset_poll(p.epfd_ - 1, ev, 1, 0), 1);
    CHECK_EQ(ev[0].events, VOLT_IN | VOLT_HUP);
    volt_pollset_close(cx_of(0), &p);
    CHECK_EQ(p.epfd_, 0);
    volt_pollset_close(cx_of(0), &p);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -EINVAL);
    volt_rt_close(rt, fd[0]);
    end();
}
TEST(pollset_gives_at_most_64_events_per_poll) {
    enum { N = 65 }; // one more than it takes at once
    volt_pollset p;
    volt_pollev ev[N];
    int pair[2], fd[N];
    begin();
    CHECK_EQ(volt_pollset_open(&p), 0);
    open_pair(pair);
    CHECK_EQ(write(pair[1], "x", 1), 1);
    for (int i = 0; i < N; i++) {
        CHECK((fd[i] = dup(pair[0])) >= 0);
        CHECK_EQ(volt_pollset_set(&p, fd[i], VOLT_IN), 0);
    }
    CHECK_EQ(volt__pollset_poll(p.epfd_ - 1, ev, N, 0), N - 1);
    for (int i = 0; i < N - 1; i++) CHECK_EQ(ev[i].events, VOLT_IN);
    for (int i = 0; i < N; i++) CHECK_EQ(volt_pollset_set(&p, fd[i], 0) | close(fd[i]), 0);
    close_pair(pair);
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(volt_pollset_set(&p, pair[0], VOLT_IN), 0);
    CHECK_EQ(close(pair[1]), 0);
    CHECK_EQ(volt__pollset_poll(p.epfd_ - 1, ev, 1, 0), 1);
    CHECK_EQ(ev[0].events, VOLT_HUP); // and nothing else
    CHECK_EQ(close(pair[0]), 0);
    volt_pollset_close(cx_of(0), &p);
    end();
}
TEST(pollset_wait_gives_error_of_its_registration) {
    volt_pollset p;
    volt_pollev ev[70];
    int fd[2];
    begin();
    open_pair(fd);
    CHECK_EQ(volt_pollset_open(&p), 0);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    ANSWERS(epoll_ctl, ENOENT, EEXIST); // another thread adds it in between
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_OUT), 0);
    check_all_given();
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 70), 1);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), 1);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    ANSWERS(epoll_ctl, ENOMEM);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 70), -ENOMEM);
    check_all_given();
    ANSWERS(epoll_ctl, EPERM); // says that it is always ready: looks again, and it is not
    PENDING(volt_pollset_wait(cx_of(0), &p, ev, 70));
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__LINKED);
    GIVES(volt_pollset_wait(cancelled_cx(0), &p, ev, 70), -ECANCELED);
    volt_pollset_close(cx_of(0), &p);
    close_pair(fd);
    end();
}

// The task has been woken and has not run since.
TEST(pollset_close_gives_ebadf_to_a_wait_whose_event_has_come) {
    volt_pollset p;
    volt_pollev ev[1];
    int fd[2];
    begin();
    open_pair(fd);
    CHECK_EQ(volt_pollset_open(&p), 0);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_IN), 0);
    PENDING(volt_pollset_wait(cx_of(0), &p, ev, 1));
    CHECK_EQ(write(fd[1], "a", 1), 1);
    CHECK_EQ(look_at_events(), 1);
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__FIRED);
    volt_pollset_close(cx_of(0), &p);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -EBADF);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -EINVAL);
    CHECK_EQ(volt_pollset_open(&p), 0); // the same for one that has used up its budget
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(volt_pollset_wait(cx, &p, ev, 1));
    volt_pollset_close(cx_of(0), &p);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -EBADF);
    close_pair(fd);
    end();
}

TEST(pollset_wait_needs_an_open_set_and_memory) {
    volt_pollset p;
    volt_pollev ev[1];
    int fd[2];
    begin();
    open_pair(fd);
    CHECK_EQ(volt_pollset_open(&p), 0);
    CHECK_EQ(volt_pollset_set(&p, fd[0], VOLT_OUT), 0);
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -ENOMEM);
    test_heap.fail_at = 0;
    test_heap.is_sticky = 0;
    volt__fd *e = entry(p.epfd_ - 1);
    CHECK(volt__fd_pin(e));
    volt__fd_begin_close(e); // by a task that stands in the middle of it
    memset(ev, 0xa5, sizeof ev);
    GIVES(volt_pollset_wait(cx_of(0), &p, ev, 1), -EBADF);
    CHECK_EQ((uint32_t)ev[0].fd, 0xa5a5a5a5); // nothing was fetched
    volt__fd_unpin_and_close(rt, e, p.epfd_ - 1);
    close_pair(fd);
    end();
}

// ---- sockets

TEST(listen_sets_options_and_closes_socket_on_error) {
    static const struct {
        const char *text;
        volt_listen_options opt;
        int has_opt, backlog;
        const char *options;
    } rows[] = {
        { "127.0.0.1:0", { .backlog = 0 }, 0, 1024, "reuseaddr 1, nodelay 1, " },
        { "127.0.0.1:0", { .backlog = 0 }, 1, 1024, "reuseaddr 1, nodelay 1, " },
        { "127.0.0.1:0", { .backlog = -1 }, 1, 1024, "reuseaddr 1, nodelay 1, " },
        { "127.0.0.1:0", { .backlog = 1, .is_delayed = 1 }, 1, 1, "reuseaddr 1, " },
        { "127.0.0.1:0", { .backlog = 7, .is_reuseport = 1, .is_v6only = 1 }, 1, 7,
          "reuseaddr 1, reuseport 1, nodelay 1, " },
        { "[::1]:0", { .backlog = 0 }, 0, 1024, "reuseaddr 1, v6only 0, nodelay 1, " },
        { "[::1]:0", { .is_v6only = 1, .is_delayed = 1 }, 1, 1024, "reuseaddr 1, v6only 1, " },
    };
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        volt_addr a;
        const volt_listen_options *opt = rows[i].has_opt ? &rows[i].opt : NULL;
        CHECK_EQ(volt_addr_parse(&a, rows[i].text), 0);
        int n_fds = test_count_fds(), is_v6 = rows[i].text[0] == '[';
        options_set[0] = 0;
        int fd = volt_listen_addr(&a, opt);
        if (is_v6 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) continue; // a machine without
        CHECK(fd >= 0);
        CHECK_STR(options_set, rows[i].options);
        CHECK_EQ(backlog, rows[i].backlog);
        CHECK_EQ(close(fd), 0);
        CHECK_EQ(test_count_fds(), n_fds);
        int n_options = 0;
        for (const char *c = options_set; *c; c++) n_options += *c == ',';
        answers[A_bind].n_calls = answers[A_listen].n_calls = 0;
        for (int k = 0; k < n_options; k++) { // each of them fails, and nothing comes after it
            ANSWERS(setsockopt, 0, 0, 0, 0);
            answers[A_setsockopt].errors[k] = ENOMEM;
            answers[A_setsockopt].n = k + 1;
            CHECK_EQ(volt_listen_addr(&a, opt), -ENOMEM);
            check_all_given();
            CHECK_EQ(answers[A_setsockopt].n_calls, k + 1);
            CHECK_EQ(test_count_fds(), n_fds);
        }
        CHECK_EQ(answers[A_bind].n_calls, 0);
        ANSWERS(bind, ENOBUFS);
        CHECK_EQ(volt_listen_addr(&a, opt), -ENOBUFS);
        CHECK_EQ(answers[A_listen].n_calls, 0);
        CHECK_EQ(test_count_fds(), n_fds);
        ANSWERS(listen, EADDRINUSE);
        CHECK_EQ(volt_listen_addr(&a, opt), -EADDRINUSE);
        check_all_given();
        CHECK_EQ(test_count_fds(), n_fds);
    }
    volt_addr a; // nothing of this for others
    char path[80];
    snprintf(path, sizeof path, "unix:/tmp/volt-answers-%ld", (long)getpid());
    CHECK_EQ(volt_addr_parse(&a, path), 0);
    options_set[0] = 0;
    int fd = volt_listen_addr(&a, NULL);
    CHECK(fd >= 0);
    CHECK_STR(options_set, "");
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink(path + 5), 0);
    end();
}
// The options of a TCP listener are not for other families; its error is told nevertheless.
TEST(listener_of_other_family_is_bound_without_options) {
    struct sockaddr_storage other = { .ss_family = AF_APPLETALK };
    volt_addr a;
    begin();
    CHECK_EQ(volt_addr_from(&a, (struct sockaddr *)&other, 16), 0);
    options_set[0] = 0;
    ANSWERS(socket, 0); // is standard input, then
    ANSWERS(bind, EADDRNOTAVAIL);
    CHECK_EQ(volt_listen_addr(&a, NULL), -EADDRNOTAVAIL);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO); // was closed
    CHECK_STR(options_set, "");
    CHECK_EQ(answers[A_listen].n_calls, 0);
    end();
}
TEST(listener_that_fails_removes_its_path_if_it_has_one) {
    static const char *const names[] = { "@volt-answers", "/tmp/volt-answers" };
    for (int i = 0; i < 2; i++) {
        char text[80];
        volt_addr a;
        begin();
        snprintf(text, sizeof text, "unix:%s-%ld", names[i], (long)getpid());
        CHECK_EQ(volt_addr_parse(&a, text), 0);
        ANSWERS(listen, ENOMEM);
        CHECK_EQ(volt_listen_addr(&a, NULL), -ENOMEM);
        CHECK_EQ(answers[A_unlink].n_calls, i);
        CHECK_EQ(access(text + 5, F_OK), -1);
        end();
    }
}
// Each option that is set on a UDP socket may fail. On an IPv6 socket those for IPv4 need not work.
TEST(udp_open_gives_error_of_each_option) {
    static const struct {
        const char *text;
        int n, n_v4; // options; n_v4: the first of those for IPv4, of which each second one is
    } rows[] = { { "127.0.0.1:0", 9, 9 }, { "[::1]:0", 13, 4 } };
    const volt_udp_options o = { .is_reuseport = 1, .is_reuseaddr = 1, .is_broadcast = 1,
                                 .has_info = 1, .send_bytes = 50000, .receive_bytes = 50000,
                                 .device = "lo" };
    begin();
    for (int i = 0; i < 2; i++) {
        volt_addr a;
        int n_fds = test_count_fds();
        CHECK_EQ(volt_addr_parse(&a, rows[i].text), 0);
        for (int k = 0; k <= rows[i].n; k++) { // at last: none of them
            int is_needed = k < rows[i].n && !(k >= rows[i].n_v4 && k <= 8 && k % 2 == 0);
            ANSWERS(setsockopt, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            answers[A_setsockopt].n = is_needed ? k + 1 : rows[i].n;
            if (k < rows[i].n) answers[A_setsockopt].errors[k] = ENOMEM;
            answers[A_bind].n_calls = 0;
            int fd = volt_udp_open(&a, &o);
            if (i && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) { // a machine without
                ANSWERS(setsockopt, 0);
                answers[A_setsockopt].n = 0;
                break;
            }
            CHECK_EQ(fd < 0 ? fd : 0, is_needed ? -ENOMEM : 0);
            CHECK_EQ(answers[A_setsockopt].n_calls, is_needed ? k + 1 : rows[i].n);
            CHECK_EQ(answers[A_bind].n_calls, !is_needed);
            if (fd >= 0) CHECK_EQ(close(fd), 0);
            check_all_given();
            CHECK_EQ(test_count_fds(), n_fds);
        }
    }
    end();
}
TEST(udp_open_without_address_falls_back_to_ipv4) {
    volt_addr a;
    char text[64];
    volt_udp_options o = { .is_v6only = 1 };
    begin();
    ANSWERS(socket, EAFNOSUPPORT);
    int fd = volt_udp_open(NULL, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    CHECK(volt_addr_format(&a, text, sizeof text) > 0);
    CHECK_EQ(strncmp(text, "0.0.0.0:", 8), 0);
    CHECK_EQ(close(fd), 0);
    check_all_given();
    ANSWERS(socket, EAFNOSUPPORT);
    CHECK_EQ(volt_udp_open(NULL, &o), -EAFNOSUPPORT); // asked for IPv6
    CHECK_EQ(answers[A_socket].n_calls, 1);
    ANSWERS(socket, EMFILE); // no reason for another family
    CHECK_EQ(volt_udp_open(NULL, NULL), -EMFILE);
    CHECK_EQ(answers[A_socket].n_calls, 1);
    end();
}
// The file of standard input, output or error is another process's, too, whatever its mode is now.
TEST(terminal_is_shared_as_standard_file_or_in_blocking_mode) {
    struct stat st;
    memset(&st, 0, sizeof st);
    st.st_mode = told.kind = S_IFCHR; // hence a terminal
    for (int fd = 0; fd < 6; fd++) {
        CHECK_EQ(volt__fd_is_shared(fd, &st, O_NONBLOCK), fd <= 2);
        CHECK_EQ(volt__fd_is_shared(fd, &st, 0), 1);
    }
}
TEST(commands_are_searched_without_path_variable) {
    CHECK_EQ(setenv("PATH", "/here", 1), 0);
    CHECK_STR(volt__sys_path(), "/here");
    CHECK_EQ(unsetenv("PATH"), 0);
    CHECK_STR(volt__sys_path(), "/usr/local/bin:/bin:/usr/bin");
}

// ---- serial lines

// tcsetattr succeeds if the line took any one of the settings.
TEST(serial_line_that_takes_other_settings_is_refused) {
    static const volt_serial_options o = { .baud = 9600, .stop_bits = 1 };
    static const struct {
        tcflag_t other_flags;
        speed_t other_speed;
        int is_refused;
    } rows[] = { { 0, B0, 0 }, { CSTOPB, B0, 1 }, { PARODD, B0, 1 }, { CRTSCTS, B0, 1 },
                 { 0, B9600, 0 }, { 0, B4800, 1 }, { HUPCL, B0, 0 } };
    begin();
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) SKIP("no pseudo-terminals");
    CHECK_EQ(grantpt(master), 0);
    CHECK_EQ(unlockpt(master), 0);
    const char *name = ptsname(master);
    CHECK(name);
    int n_fds = test_count_fds();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        altered.n_calls = 0;
        altered.other_flags = rows[i].other_flags;
        altered.other_speed = rows[i].other_speed;
        int fd = volt_serial_open(name, &o, NULL);
        CHECK_EQ(fd < 0 ? fd : 0, rows[i].is_refused ? -EINVAL : 0);
        if (fd >= 0) CHECK_EQ(close(fd), 0);
        CHECK_EQ(test_count_fds(), n_fds);
    }
    memset(&altered, 0, sizeof altered);
    ANSWERS(cfsetispeed, EINVAL); // a C library that does not know the speed
    CHECK_EQ(volt_serial_open(name, &o, NULL), -EINVAL);
    ANSWERS(cfsetospeed, EINVAL);
    CHECK_EQ(volt_serial_open(name, &o, NULL), -EINVAL);
    CHECK_EQ(test_count_fds(), n_fds);
    CHECK_EQ(close(master), 0);
    end();
}

// Two servers that replace one path lock the same directory.
TEST(listener_that_replaces_a_path_locks_its_directory) {
    static const struct {
        const char *path, *dir;
    } cases[] = { { "/tmp/volt-none/s", "/tmp/volt-none" }, { "/s", "/" }, { "s", "." } };
    volt_listen_options o = { .is_replacing = 1 };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[80];
        volt_addr a;
        snprintf(text, sizeof text, "unix:%s", cases[i].path);
        CHECK_EQ(volt_addr_parse(&a, text), 0);
        ANSWERS(open, EACCES);
        CHECK_EQ(volt_listen_addr(&a, &o), -EACCES);
        CHECK_STR(opened, cases[i].dir);
        check_all_given();
    }
    end();
}
TEST(keepalive_is_on_from_one_second) {
    begin();
    int fd = open_listener();
    options_set[0] = 0;
    CHECK_EQ(volt_set_keepalive(fd, 1, 1, 1), 0);
    CHECK_EQ(strncmp(options_set, "keepalive 1, ", 13), 0);
    options_set[0] = 0;
    CHECK_EQ(volt_set_keepalive(fd, 0, 1, 1), 0);
    CHECK_STR(options_set, "keepalive 0, ");
    volt_rt_close(rt, fd);
    end();
}
TEST(connect_sets_nodelay_on_tcp_only) {
    volt_addr a;
    char path[80];
    begin();
    int lfd = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    for (int is_unix = 0; is_unix < 2; is_unix++) {
        options_set[0] = 0;
        volt_poll p = volt_connect(cx_of(0), &a);
        (void)look_at_events();
        if (volt_is_pending(p)) p = volt_connect(cx_of(0), &a);
        int fd = (int)volt_value(p);
        CHECK(fd > 0);
        CHECK_STR(options_set, is_unix ? "" : "nodelay 1, ");
        CHECK_EQ(entry(fd)->flags & VOLT__FD_STREAM, is_unix ? 0 : VOLT__FD_STREAM);
        volt_rt_close(rt, fd);
        volt_rt_close(rt, lfd);
        if (is_unix) break;
        snprintf(path, sizeof path, "unix:/tmp/volt-connect-%ld", (long)getpid());
        CHECK_EQ(volt_addr_parse(&a, path), 0);
        lfd = volt_listen_addr(&a, NULL);
        CHECK(lfd >= 0);
    }
    CHECK_EQ(unlink(path + 5), 0);
    end();
}
TEST(cancelled_connect_closes_descriptor_0) {
    volt_addr a;
    begin();
    CHECK_EQ(close(STDIN_FILENO), 0);
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    ANSWERS(connect, EINPROGRESS);
    PENDING(volt_connect(cx_of(0), &a));
    CHECK(fcntl(0, F_GETFD) >= 0);
    PENDING(volt_connect(cx_of(0), &a));
    CHECK_EQ(answers[A_connect].n_calls, 1);
    GIVES(volt_connect(cancelled_cx(0), &a), -ECANCELED);
    CHECK_EQ(open("/dev/null", O_RDONLY), 0); // was closed
    end();
}
TEST(accept_gives_descriptor_0) {
    volt_addr a;
    begin();
    int lfd = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(out, volt__addr_sa(&a), a.len_), 0);
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(0), lfd));
    GIVES(volt_accept(cancelled_cx(0), lfd), -ECANCELED);
    CHECK_EQ(close(STDIN_FILENO), 0);
    GIVES(volt_accept(cx_of(0), lfd), 0);
    volt__fd *e = entry(lfd);
    CHECK_EQ(e->backoff_ms, 0);
    CHECK(e->flags && entry(0)->flags == e->flags);
    volt_rt_close(rt, 0);
    CHECK_EQ(open("/dev/null", O_RDONLY), 0);
    volt_rt_close(rt, lfd);
    CHECK_EQ(close(out), 0);
    end();
}
TEST(close_without_entry_closes_descriptor_0) {
    begin();
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    volt_rt_close(rt, STDIN_FILENO);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
    end();
}
// A task that waits on a number whose file is gone is told when the number comes back as another.
TEST(accept_of_reused_number_ends_waits_on_old_file) {
    volt_addr a;
    begin();
    int lfd = open_listener(), fd[2];
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    CHECK_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    volt__task *other = still_task(w), *mine = task;
    volt__store_rlx(&other->word, VOLT__REF);
    task = other;
    PENDING(volt_read(cx_of(1), fd[0], &byte, 1));
    task = mine;
    CHECK_EQ(close(fd[0]), 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (out == fd[0]) out = dup(out), CHECK_EQ(close(fd[0]), 0); // that number is kept free
    CHECK_EQ(connect(out, volt__addr_sa(&a), a.len_), 0);
    GIVES(volt_accept(cx_of(0), lfd), fd[0]);
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], 1);
    CHECK_EQ(volt__load_rlx(&rt->injector.len), 1); // it is on its way
    task = other;
    GIVES(volt_read(cx_of(1), fd[0], &byte, 1), -EBADF);
    task = mine;
    volt_rt_close(rt, fd[0]);
    volt_rt_close(rt, fd[1]);
    volt_rt_close(rt, lfd);
    CHECK_EQ(close(out), 0);
    end();
}
// While an accept is in its system call, the listener is released, and its number is that of a
// terminal by the time that the connection is there.
static int released;
static void release_listener(void) {
    volt_fd_release(cx_of(1), released);
    entry(released)->flags = VOLT__FD_PROBED | VOLT__FD_TOGGLED;
}
TEST(connection_has_no_flags_of_next_file_of_its_listener) {
    volt_addr a;
    begin();
    int lfd = released = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(out, volt__addr_sa(&a), a.len_), 0);
    answers[A_accept4].meanwhile = release_listener;
    int fd = (int)volt_value(volt_accept(cx_of(0), lfd));
    CHECK(fd >= 0);
    CHECK_EQ(entry(fd)->flags, 0);
    PENDING(volt_read(cx_of(0), fd, &byte, 1));
    CHECK(entry(fd)->flags & VOLT__FD_SOCKET); // asked
    GIVES(volt_read(cancelled_cx(0), fd, &byte, 1), -ECANCELED);
    volt_rt_close(rt, fd);
    volt_rt_close(rt, lfd);
    CHECK_EQ(close(out), 0);
    end();
}
// A number whose accept waits out a shortage, closed by close(2), is that of the next connection.
TEST(accept_that_backs_off_ends_if_its_number_is_given_again) {
    volt_addr a;
    begin();
    int lfd = open_listener(), gone = open_listener();
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(out, volt__addr_sa(&a), a.len_), 0);
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(0), gone));
    CHECK_EQ(close(gone), 0);
    GIVES(volt_accept(cx_of(1), lfd), gone);
    CHECK(!entry(gone)->backoff);
    CHECK(task->word & VOLT__NOTIFIED);
    GIVES(volt_accept(cx_of(0), gone), -EBADF);
    volt_rt_close(rt, gone);
    volt_rt_close(rt, lfd);
    CHECK_EQ(close(out), 0);
    end();
}
// A descriptor may have the number 0.
TEST(listener_and_connection_may_have_descriptor_0) {
    volt_addr a;
    begin();
    CHECK_EQ(close(STDIN_FILENO), 0);
    int lfd = open_listener();
    CHECK_EQ(lfd, 0);
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    PENDING(volt_accept(cx_of(0), lfd));
    volt_poll p = volt_connect(cx_of(1), &a);
    (void)look_at_events();
    if (volt_is_pending(p)) p = volt_connect(cx_of(1), &a);
    CHECK(!volt_is_pending(p) && volt_value(p) > 0);
    (void)look_at_events();
    p = volt_accept(cx_of(0), lfd);
    CHECK(!volt_is_pending(p) && volt_value(p) > 0);
    CHECK_EQ(entry((int)volt_value(p))->flags, entry(lfd)->flags);
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], 0);
    volt_rt_close(rt, (int)volt_value(p));
    PENDING(volt_accept(cx_of(0), lfd));
    GIVES(volt_accept(cancelled_cx(0), lfd), -ECANCELED);
    // The next ones have it.
    int keep = fcntl(lfd, F_DUPFD_CLOEXEC, 3);
    CHECK(keep > 0);
    volt_rt_close(rt, lfd);
    p = volt_connect(cx_of(1), &a);
    (void)look_at_events();
    if (volt_is_pending(p)) p = volt_connect(cx_of(1), &a);
    CHECK_EQ(volt_value(p), 0);
    GIVES(volt_write(cx_of(1), 0, "x", 1), 1);
    volt_rt_close(rt, 0);
    volt_rt_close(rt, keep);
    end();
}

TEST(accept_skips_connections_that_failed) {
    begin();
    int fd = open_listener();
    ANSWERS(accept4, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
            ENETUNREACH);
    PENDING(volt_accept(cx_of(0), fd));
    CHECK_EQ(answers[A_accept4].n_calls, 9); // the ninth says that there is no other connection
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    volt_rt_close(rt, fd);
    end();
}
TEST(accept_stops_at_its_budget_among_aborted_connections) {
    begin();
    int fd = open_listener();
    ANSWERS(accept4, ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED,
            ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED,
            ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED, ECONNABORTED);
    answers[A_accept4].n = VOLT_BUDGET + 1;
    PENDING(volt_accept(cx_of(0), fd));
    CHECK_EQ(answers[A_accept4].n_calls, VOLT_BUDGET);
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__IDLE); // goes on when others have run
    PENDING(volt_accept(cx_of(0), fd));
    CHECK_EQ(answers[A_accept4].n_calls, VOLT_BUDGET + 2);
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__LINKED);
    volt_rt_close(rt, fd);
    GIVES(volt_accept(cx_of(0), fd), -EBADF);
    end();
}
TEST(accept_that_backs_off_can_be_cancelled_and_goes_on) {
    begin();
    int fd = open_listener();
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(0), fd));
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(volt_accept(cx, fd));
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    check_all_given();
    ANSWERS(accept4, EMFILE);
    clock_step = VOLT_S(1); // the back-off is over before its timer is armed
    PENDING(volt_accept(cx_of(0), fd));
    clock_step = 0;
    CHECK_EQ(volt__node_state(&frame[0].node_), VOLT__FIRED);
    PENDING(volt_accept(cx_of(0), fd));
    CHECK(frame[0].node_.source_ == entry(fd)); // no connection: waits for one
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    volt_rt_close(rt, fd);
    end();
}
TEST(back_offs_double_up_to_half_a_second) {
    static const uint32_t ms[] = { 5, 10, 20, 40, 80, 160, 320, 500, 500 };
    static const int errors[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };
    begin();
    int fd = open_listener();
    volt_addr a;
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++) {
            volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
            ANSWERS(accept4, errors[i % 4]);
            PENDING(volt_accept(cx_of(0), fd));
            CHECK_EQ(entry(fd)->backoff_ms, ms[i]);
            int64_t left = volt__time_left(volt__sleep_deadline(w)) - VOLT_MS(ms[i]);
            CHECK(left >= 0 && left <= VOLT_MS(1));
            CHECK(!(task->word & VOLT__NOTIFIED));
            GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
        }
        int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // one that is accepted ends it
        CHECK_EQ(connect(out, volt__addr_sa(&a), a.len_), 0);
        volt_poll p = volt_accept(cx_of(0), fd);
        CHECK(!volt_is_pending(p) && volt_value(p) > 0);
        CHECK_EQ(entry(fd)->backoff_ms, 0);
        volt_rt_close(rt, (int)volt_value(p));
        CHECK_EQ(close(out), 0);
    }
    ANSWERS(accept4, EMFILE);
    clock_step = VOLT_S(1); // over before its timer is armed
    PENDING(volt_accept(cx_of(0), fd));
    clock_step = 0;
    CHECK(task->word & VOLT__NOTIFIED);
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    volt_rt_close(rt, fd);
    end();
}
TEST(accept_without_memory_for_its_entry_does_not_wait) {
    begin();
    int fd = open_listener();
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    GIVES(volt_accept(cx_of(0), fd), -ENOMEM);
    volt_rt_close(rt, fd);
    end();
}
// The number goes to another file while an accept waits out a shortage: it must learn that at once,
// and leave the other file alone.
static void reuse_while_backing_off(int is_forgotten, int is_another_listener) {
    int p[2];
    begin();
    int fd = open_listener();
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(0), fd));
    PENDING(volt_accept(cx_of(0), fd)); // woken for something else
    CHECK_EQ(answers[A_accept4].n_calls, 1);
    CHECK(!(task->word & VOLT__NOTIFIED));
    if (is_forgotten) {
        volt_fd_release(cx_of(1), fd);
        CHECK_EQ(close(fd), 0);
    } else {
        volt_rt_close(rt, fd);
    }
    CHECK(task->word & VOLT__NOTIFIED);
    if (is_another_listener) {
        CHECK_EQ(open_listener(), fd);
    } else {
        CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
        CHECK_EQ(p[0], fd);
    }
    int mode = fcntl(fd, F_GETFL);
    GIVES(volt_accept(cx_of(0), fd), -EBADF);
    CHECK_EQ(answers[A_accept4].n_calls, 1); // nothing was asked of the other file
    CHECK_EQ(fcntl(fd, F_GETFL), mode);
    CHECK(!entry(fd)->backoff);
    volt_rt_close(rt, fd);
    if (!is_another_listener) CHECK_EQ(close(p[1]), 0);
    end();
}
TEST(accept_that_backs_off_learns_that_its_number_is_gone) {
    for (int i = 0; i < 4; i++) reuse_while_backing_off(i & 1, i & 2);
}
// Both come at once, and what the caller has asked for is what it is told.
TEST(cancelled_accept_gives_ecanceled_though_its_number_is_gone) {
    begin();
    int fd = open_listener();
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(0), fd));
    volt_rt_close(rt, fd);
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    end();
}
static int closing;
static void close_behind_another_operation(void) {
    CHECK(volt__fd_pin(entry(closing))); // that one is in its system call
    volt_rt_close(rt, closing);
}
TEST(accept_does_not_back_off_while_its_fd_is_being_closed) {
    begin();
    int fd = closing = open_listener();
    volt__fd *e = entry(fd);
    ANSWERS(accept4, EMFILE);
    answers[A_accept4].meanwhile = close_behind_another_operation;
    GIVES(volt_accept(cx_of(0), fd), -EBADF);
    CHECK(!e->backoff);
    CHECK(fcntl(fd, F_GETFD) >= 0); // not before the other one is out
    volt__fd_unpin_and_close(rt, e, fd);
    CHECK(fcntl(fd, F_GETFD) < 0);
    end();
}
// Of several that accept on one descriptor one waits on a timer; the others wait for it, and go on
// when its wait ends, however that is.
TEST(accepts_behind_one_that_backs_off_go_on_with_it) {
    for (int how = 0; how < 3; how++) {
        begin();
        int fd = open_listener();
        ANSWERS(accept4, EMFILE, EMFILE);
        PENDING(volt_accept(cx_of(0), fd));
        PENDING(volt_accept(cx_of(1), fd));
        CHECK_EQ(volt__node_state(&frame[1].node_), VOLT__LINKED);
        CHECK(entry(fd)->backoff == &frame[0].node_ && entry(fd)->rd == &frame[1].node_);
        PENDING(volt_accept(cx_of(1), fd));
        CHECK_EQ(answers[A_accept4].n_calls, 2);
        if (how == 0) { // its time is over, and there is no connection
            volt__chain c;
            volt__chain_init(&c);
            clock_now += VOLT_MS(6);
            volt__wheel_fire(&w->wheel, volt__tick_floor(rt, clock_now), &c);
            PENDING(volt_accept(cx_of(0), fd));
            CHECK_EQ(answers[A_accept4].n_calls, 3);
            PENDING(volt_accept(cx_of(1), fd)); // the first task's finding holds for both
            CHECK(entry(fd)->rd && entry(fd)->rd->next_ != entry(fd)->rd);
            GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
            GIVES(volt_accept(cancelled_cx(1), fd), -ECANCELED);
        } else if (how == 1) { // it is cancelled
            GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
            PENDING(volt_accept(cx_of(1), fd));
            CHECK_EQ(answers[A_accept4].n_calls, 3); // and has tried itself
            GIVES(volt_accept(cancelled_cx(1), fd), -ECANCELED);
        } else {
            volt_rt_close(rt, fd);
            GIVES(volt_accept(cx_of(1), fd), -EBADF);
            GIVES(volt_accept(cx_of(0), fd), -EBADF);
        }
        CHECK(how == 2 || (!entry(fd)->backoff && !entry(fd)->rd));
        if (how < 2) volt_rt_close(rt, fd);
        end();
    }
}
// A send by path backs off as well: no event reports that the queue of the receiver has room.
static volt_addr receiver_path(void) {
    char text[64];
    volt_addr a;
    snprintf(text, sizeof text, "unix:@volt-answers-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&a, text), 0);
    return a;
}
TEST(send_by_path_backs_off_up_to_16_ms_while_its_receiver_is_full) {
    static const uint32_t ms[] = { 1, 2, 4, 8, 16, 16 };
    begin();
    volt_addr to = receiver_path();
    int receiver = volt_unix_open(&to, NULL), fd = volt_unix_open(NULL, NULL);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++) {
            volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
            ANSWERS(sendmsg, EAGAIN);
            PENDING(volt_sendto(cx_of(0), fd, &byte, 1, 0, &to));
            CHECK_EQ(entry(fd)->backoff_ms, ms[i]);
            int64_t left = volt__time_left(volt__sleep_deadline(w)) - VOLT_MS(ms[i]);
            CHECK(left >= 0 && left <= VOLT_MS(1));
            CHECK(!(task->word & VOLT__NOTIFIED));
            CHECK_EQ(entry(fd)->mode, VOLT__MODE_NONE); // it waits for no event
            GIVES(volt_sendto(cancelled_cx(0), fd, &byte, 1, 0, &to), -ECANCELED);
        }
        GIVES(volt_sendto(cx_of(0), fd, &byte, 1, 0, &to), 1);
        CHECK_EQ(entry(fd)->backoff_ms, 0);
    }
    volt_rt_close(rt, fd);
    volt_rt_close(rt, receiver);
    end();
}
TEST(each_form_of_send_by_path_learns_that_its_socket_is_closed) {
    for (int form = 0; form < 3; form++) {
        begin();
        volt_addr to = receiver_path();
        struct iovec part = { &byte, 1 };
        struct mmsghdr m = { .msg_hdr = { .msg_name = to.sa_, .msg_namelen = to.len_,
                                          .msg_iov = &part, .msg_iovlen = 1 } };
        int fd = volt_unix_open(NULL, NULL);
        if (form == 2) ANSWERS(sendmmsg, EAGAIN);
        else ANSWERS(sendmsg, EAGAIN);
        for (int i = 0; i < 3; i++) {
            if (i == 2) volt_rt_close(rt, fd);
            volt_poll p = form == 0 ? volt_sendto(cx_of(0), fd, &byte, 1, 0, &to)
                        : form == 1 ? volt_sendmsg(cx_of(0), fd, &m.msg_hdr, 0)
                                    : volt_sendmmsg(cx_of(0), fd, &m, 1, 0);
            CHECK_EQ(volt_is_pending(p), i < 2);
            if (i == 2) CHECK_EQ(volt_value(p), -EBADF);
        }
        CHECK_EQ(answers[form == 2 ? A_sendmmsg : A_sendmsg].n_calls, 1);
        end();
    }
}
TEST(send_by_path_behind_one_that_backs_off_goes_on_with_it) {
    for (int how = 0; how < 3; how++) {
        begin();
        volt_addr to = receiver_path();
        int receiver = volt_unix_open(&to, NULL), fd = volt_unix_open(NULL, NULL);
        ANSWERS(sendmsg, EAGAIN, EAGAIN);
        PENDING(volt_sendto(cx_of(0), fd, &byte, 1, 0, &to));
        PENDING(volt_sendto(cx_of(1), fd, &byte, 1, 0, &to));
        CHECK(entry(fd)->backoff == &frame[0].node_ && entry(fd)->rd == &frame[1].node_);
        PENDING(volt_sendto(cx_of(1), fd, &byte, 1, 0, &to));
        CHECK_EQ(answers[A_sendmsg].n_calls, 2);
        if (how == 0) {
            GIVES(volt_sendto(cancelled_cx(1), fd, &byte, 1, 0, &to), -ECANCELED);
            CHECK(!entry(fd)->rd);
            GIVES(volt_sendto(cancelled_cx(0), fd, &byte, 1, 0, &to), -ECANCELED);
        } else if (how == 1) {
            GIVES(volt_sendto(cancelled_cx(0), fd, &byte, 1, 0, &to), -ECANCELED);
            GIVES(volt_sendto(cx_of(1), fd, &byte, 1, 0, &to), 1);
        } else {
            volt_rt_close(rt, fd);
            GIVES(volt_sendto(cx_of(1), fd, &byte, 1, 0, &to), -EBADF);
            GIVES(volt_sendto(cx_of(0), fd, &byte, 1, 0, &to), -EBADF);
        }
        if (how < 2) CHECK(!entry(fd)->backoff && !entry(fd)->rd);
        if (how < 2) volt_rt_close(rt, fd);
        volt_rt_close(rt, receiver);
        end();
    }
}
// The other back-off ends between two looks of an accept at it. The accept takes the lock of the
// entry, that of the timers, and that of the entry again; it is held up at the first two.
static int contended;
static int (*at_timers)(void);
static void contend(void) { volt__lock(&entry(contended)->lock); }
static int goes_on_to_timers(void) {
    volt__unlock(&entry(contended)->lock);
    volt__lock(&w->wheel.lock);
    at_futex = at_timers;
    return 0;
}
static int cancels_the_other(void) {
    at_futex = NULL;
    volt__unlock(&w->wheel.lock);
    outer = w->cx;
    GIVES(volt_accept(cancelled_cx(0), contended), -ECANCELED);
    w->cx = outer;
    return 0;
}
static int gives_number_to_another_listener(void) {
    at_futex = NULL;
    volt__unlock(&w->wheel.lock);
    outer = w->cx;
    volt_rt_close(rt, contended);
    CHECK_EQ(open_listener(), contended);
    ANSWERS(accept4, EMFILE);
    PENDING(volt_accept(cx_of(2), contended)); // backs off, too
    w->cx = outer;
    return 0;
}
TEST(accept_waits_for_no_back_off_that_has_just_ended) {
    for (int is_reused = 0; is_reused < 2; is_reused++) {
        begin();
        int fd = contended = open_listener();
        ANSWERS(accept4, EMFILE, EMFILE);
        PENDING(volt_accept(cx_of(0), fd));
        at_timers = is_reused ? gives_number_to_another_listener : cancels_the_other;
        at_futex = goes_on_to_timers;
        answers[A_accept4].meanwhile = contend;
        volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
        PENDING(volt_accept(cx_of(1), fd));
        CHECK(!at_futex);
        CHECK_EQ(volt__node_state(&frame[1].node_), VOLT__IDLE);
        CHECK(task->word & VOLT__NOTIFIED);
        CHECK(!entry(fd)->rd);
        int n_calls = answers[A_accept4].n_calls;
        if (is_reused) {
            CHECK(entry(fd)->backoff == &frame[2].node_);
            GIVES(volt_accept(cx_of(1), fd), -EBADF);
            CHECK_EQ(answers[A_accept4].n_calls, n_calls); // the other file is left alone
            GIVES(volt_accept(cx_of(0), fd), -EBADF);
            GIVES(volt_accept(cancelled_cx(2), fd), -ECANCELED);
        } else {
            PENDING(volt_accept(cx_of(1), fd));
            CHECK_EQ(answers[A_accept4].n_calls, n_calls + 1); // tries again
            CHECK_EQ(volt__node_state(&frame[1].node_), VOLT__LINKED);
            GIVES(volt_accept(cancelled_cx(1), fd), -ECANCELED);
        }
        volt_rt_close(rt, fd);
        end();
    }
}
// An accept that is refused n times in a row. After EPERM accept(2) is asked, too: a filter may
// know that one alone.
static volt_poll accept_refused(int fd, int error, int n) {
    static const int calls[] = { A_accept4, A_accept };
    for (int k = 0; k <= (error == EPERM); k++) {
        for (int i = 0; i < 16; i++) answers[calls[k]].errors[i] = error;
        answers[calls[k]].n = n;
        answers[calls[k]].at = answers[calls[k]].n_calls = 0;
    }
    volt__store_rlx(&task->word, VOLT__REF | VOLT__RUNNING);
    entry(fd)->ready = VOLT__RD;
    volt_cx *cx = cx_of(0);
    cx->budget_ = 1000;
    return volt_accept(cx, fd);
}
// A firewall's refusal is of one connection; of a hundred in a row it is the listener's.
TEST(accept_goes_on_past_connections_that_are_refused) {
    static const int errors[] = { EOPNOTSUPP, ETIMEDOUT, EPERM };
    begin();
    int fd = open_listener();
    ANSWERS(accept4, EOPNOTSUPP, ETIMEDOUT, EPERM, ECONNABORTED);
    ANSWERS(accept, EPERM);
    PENDING(volt_accept(cx_of(0), fd));
    CHECK_EQ(answers[A_accept4].n_calls, 5);
    CHECK_EQ(frame[0].node_.key_.n_errors_, 0); // counted in a row
    GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
    check_all_given();
    for (int k = 0; k < 3; k++) {
        PENDING(accept_refused(fd, errors[k], 100)); // and then there is no connection
        CHECK_EQ(answers[A_accept4].n_calls, 101);
        GIVES(volt_accept(cancelled_cx(0), fd), -ECANCELED);
        check_all_given();
        GIVES(accept_refused(fd, errors[k], 101), -errors[k]);
        CHECK_EQ(answers[A_accept4].n_calls, 101);
        check_all_given();
    }
    volt_rt_close(rt, fd);
    end();
}
// Memory behind the bytes that came may not be accessible: then a short read tells nothing.
TEST(short_read_at_inaccessible_page_does_not_mean_empty) {
    int fd[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    begin();
    open_tcp(fd);
    char *p = (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                           0);
    CHECK(p != MAP_FAILED);
    CHECK_EQ(munmap(p + 2 * page, page), 0);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    volt__fd *e = entry(fd[0]);
    for (int i = 0; i < 3; i++) {
        size_t len = i == 2 ? 3 * page - 8 : 2 * page - 8;
        e->ready = VOLT__RD;
        volt__fd_mark_empty(e, &w->mapped, VOLT__RD, e->seq, p + 8, page - 8, len);
        CHECK_EQ(e->ready & VOLT__RD, i == 2 ? VOLT__RD : 0);
    }
    // on one page nothing is asked
    volt__fd_mark_empty(e, &w->mapped, VOLT__RD, e->seq, p + 8, 8, 16);
    CHECK_EQ(e->ready & VOLT__RD, 0);
    close_pair(fd);
    CHECK_EQ(munmap(p, 2 * page), 0);
    end();
}
// A read of `done` bytes into len, of an edge-triggered socket that was ready: is it empty?
static int is_empty_after(volt__fd *e, const char *buf, size_t done, size_t len) {
    e->ready = VOLT__RD;
    volt__fd_mark_empty(e, &w->mapped, VOLT__RD, e->seq, buf, done, len);
    return !(e->ready & VOLT__RD);
}
static volt__fd *begin_edge(int fd[2]) {
    begin();
    open_tcp(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1));
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    CHECK_EQ(entry(fd[0])->mode, VOLT__MODE_EDGE);
    return entry(fd[0]);
}
static char *map_pages(size_t n, int protection) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = mmap(NULL, n * (size_t)sysconf(_SC_PAGESIZE), protection, flags, -1, 0);
    return p == MAP_FAILED ? NULL : (char *)p;
}
// Linux before 5.14 does not know MADV_POPULATE_READ, not even for no bytes; a newer one that gives
// this error has met memory without access.
TEST(kernel_without_populate_read_is_asked_what_is_mapped) {
    enum { PAGES = 70 }; // more than are asked for at once
    int fd[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volt__fd *e = begin_edge(fd);
    char *p = map_pages(PAGES + 1, PROT_READ | PROT_WRITE);
    CHECK(p);
    CHECK_EQ(munmap(p + PAGES * page, page), 0);
    ANSWERS(madvise, EINVAL, EINVAL);
    CHECK(is_empty_after(e, p + 8, page - 8, 2 * page - 8));
    CHECK_EQ(answers[A_mincore].n_calls, 1);
    check_all_given();
    ANSWERS(madvise, EINVAL, EINVAL);
    char *last = p + (PAGES - 1) * page;
    CHECK(!is_empty_after(e, last + 8, page - 8, 2 * page - 8)); // ends at what is not mapped
    CHECK_EQ(answers[A_mincore].n_calls, 2);
    check_all_given();
    ANSWERS(madvise, EINVAL, 0);
    CHECK(!is_empty_after(e, p + 16, page - 16, 2 * page - 16));
    ANSWERS(madvise, EFAULT);
    CHECK(!is_empty_after(e, p + 24, page - 24, 2 * page - 24));
    CHECK_EQ(answers[A_mincore].n_calls, 2);
    check_all_given();
    answers[A_mincore].n_calls = 0;
    for (int is_over = 0; is_over < 2; is_over++) {
        ANSWERS(madvise, EINVAL, EINVAL);
        CHECK_EQ(volt__sys_is_mapped(p, (PAGES + (size_t)is_over) * page), !is_over);
        CHECK_EQ(answers[A_mincore].n_calls, 2 * (is_over + 1));
    }
    close_pair(fd);
    CHECK_EQ(munmap(p, PAGES * page), 0);
    end();
}
// The end of the buffer that was looked at last is known, but not how far before it one that is
// longer begins to be accessible.
TEST(longer_buffer_with_same_end_is_looked_at_again) {
    int fd[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volt__fd *e = begin_edge(fd);
    char *p = map_pages(2, PROT_READ | PROT_WRITE), *end_of_it = p + page + 8;
    static const int lens[] = { 32, 32, 24, 64, 48 }, n_calls[] = { 1, 1, 1, 2, 2 };
    CHECK(p);
    ANSWERS(madvise, 0, 0);
    for (int i = 0; i < 5; i++) {
        size_t len = (size_t)lens[i];
        CHECK(is_empty_after(e, end_of_it - len, 8, len));
        CHECK_EQ(answers[A_madvise].n_calls, n_calls[i]);
    }
    close_pair(fd);
    CHECK_EQ(munmap(p, 2 * page), 0);
    end();
}
// All tasks of a worker may read into one buffer on its stack.
TEST(buffer_of_a_worker_is_looked_at_once_for_all_its_sockets) {
    int fd[2], other[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volt__fd *e = begin_edge(fd);
    open_tcp(other);
    PENDING(volt_read(cx_of(0), other[0], &byte, 1));
    GIVES(volt_read(cancelled_cx(0), other[0], &byte, 1), -ECANCELED);
    char *p = map_pages(3, PROT_READ | PROT_WRITE);
    CHECK(p);
    ANSWERS(madvise, 0, EFAULT, EFAULT);
    CHECK(is_empty_after(e, p + 8, 8, 2 * page));
    CHECK(is_empty_after(entry(other[0]), p + 8, 8, 2 * page));
    CHECK(is_empty_after(entry(other[0]), p + 16, 8, 2 * page - 8));
    CHECK_EQ(answers[A_madvise].n_calls, 1);
    // one that was not accessible is looked at each time
    CHECK(!is_empty_after(e, p + page, 8, 2 * page));
    CHECK(!is_empty_after(entry(other[0]), p + page, 8, 2 * page));
    CHECK_EQ(answers[A_madvise].n_calls, 3);
    check_all_given();
    close_pair(other);
    close_pair(fd);
    CHECK_EQ(munmap(p, 3 * page), 0);
    end();
}
// The entry has 32 bits for the length of a buffer: beyond it nothing is known of its rest.
TEST(short_read_into_4_gib_does_not_mean_empty) {
#if SIZE_MAX > UINT32_MAX
    int fd[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = ((size_t)1 << 32) / page + 1;
    char *p = map_pages(n_pages, PROT_NONE);
    if (!p) SKIP("no room for 4 GiB");
    volt__fd *e = begin_edge(fd);
    ANSWERS(madvise, 0);
    answers[A_madvise].at = 1;
    CHECK(!is_empty_after(e, p, UINT32_MAX - 2 * page, (size_t)UINT32_MAX + 1));
    CHECK_EQ(answers[A_madvise].n_calls, 0);
    answers[A_madvise].at = 0;
    CHECK(is_empty_after(e, p, UINT32_MAX - 2 * page, UINT32_MAX)); // one byte less
    CHECK_EQ(answers[A_madvise].n_calls, 1);
    close_pair(fd);
    CHECK_EQ(munmap(p, n_pages * page), 0);
    end();
#else
    SKIP("addresses have 32 bits");
#endif
}
// A number that was closed behind volt's back and is another kind of file by now.
TEST(reused_number_is_noticed_before_it_is_waited_for) {
    for (int kind = 0; kind < 3; kind++) {
        int fd[2], p[2];
        char two[2];
        begin();
        int n_logged = test_log.n[VOLT_LOG_FD_REUSED];
        open_tcp(fd);
        PENDING(volt_read(cx_of(0), fd[0], two, 2)); // registered, and known to be empty
        GIVES(volt_read(cancelled_cx(0), fd[0], two, 2), -ECANCELED);
        CHECK_EQ(close(fd[0]), 0);
        if (kind == 0) {
            open_pair(p);
        } else if (kind == 1) {
            CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
        } else {
            p[0] = eventfd(0, EFD_CLOEXEC);
            p[1] = dup(p[0]);
        }
        int high = fcntl(p[1], F_DUPFD_CLOEXEC, 30);
        CHECK_EQ(close(p[1]), 0);
        p[1] = high;
        if (p[0] != fd[0]) {
            CHECK_EQ(dup2(p[0], fd[0]), fd[0]);
            CHECK_EQ(close(p[0]), 0);
            p[0] = fd[0];
        }
        char data[8];
        PENDING(volt_read(cx_of(0), fd[0], data, sizeof data));
        CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], n_logged + 1);
        CHECK_EQ(write(p[1], "\1\0\0\0\0\0\0\0", 8), 8);
        (void)look_at_events_of_task();
        GIVES(volt_read(cx_of(0), fd[0], data, sizeof data), 8);
        volt_rt_close(rt, p[0]);
        CHECK_EQ(close(p[1]), 0);
        volt_rt_close(rt, fd[1]);
        end();
    }
}
TEST(connect_gives_ebadf_if_its_socket_is_closed) {
    volt_addr a;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    ANSWERS(connect, EINPROGRESS);
    PENDING(volt_connect(cx_of(0), &a));
    PENDING(volt_connect(cx_of(0), &a)); // woken for something else
    CHECK_EQ(answers[A_connect].n_calls, 1);
    int fd = (int)frame[0].node_.key_.fd_ - 1;
    volt_rt_close(rt, fd);
    CHECK_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
    GIVES(volt_connect(cx_of(0), &a), -EBADF);
    CHECK_EQ(close(fd), 0); // another's: was left alone
    check_all_given();
    ANSWERS(socket, EMFILE);
    GIVES(volt_connect(cx_of(0), &a), -EMFILE);
    ANSWERS(connect, EINPROGRESS);
    ANSWERS(epoll_ctl, ENOMEM);
    GIVES(volt_connect(cx_of(0), &a), -ENOMEM);
    check_all_given();
    ANSWERS(connect, EINPROGRESS);
    ANSWERS(epoll_ctl, EPERM); // no events for a socket: nothing to wait for
    GIVES(volt_connect(cx_of(0), &a), -EBADF);
    end();
}
TEST(connect_from_closes_its_socket_if_that_cannot_be_bound) {
    volt_addr a, from;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    CHECK_EQ(volt_addr_parse(&from, "127.0.0.1:9"), 0);
    int n_fds = test_count_fds();
    ANSWERS(setsockopt, 0, ENOMEM); // TCP_NODELAY, SO_REUSEADDR
    GIVES(volt_connect_from(cx_of(0), &a, &from), -ENOMEM);
    CHECK_EQ(answers[A_bind].n_calls, 0);
    CHECK_EQ(test_count_fds(), n_fds);
    ANSWERS(bind, EADDRINUSE);
    GIVES(volt_connect_from(cx_of(0), &a, &from), -EADDRINUSE);
    CHECK_EQ(test_count_fds(), n_fds);
    CHECK_EQ(volt_addr_set_port(&from, 0), 0);
    ANSWERS(setsockopt, 0, ENOPROTOOPT); // IP_BIND_ADDRESS_NO_PORT, which need not work
    ANSWERS(bind, EADDRNOTAVAIL);
    GIVES(volt_connect_from(cx_of(0), &a, &from), -EADDRNOTAVAIL);
    CHECK_EQ(test_count_fds(), n_fds);
    CHECK_EQ(answers[A_connect].n_calls, 0);
    end();
}
// The number of the caller's socket must not become another file's right before its connect(2).
static int connecting_fd, reusing_fd;
static void close_and_reuse(void) {
    volt_rt_close(rt, connecting_fd);
    reusing_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}
TEST(connect_on_leaves_a_socket_alone_that_reuses_its_number) {
    volt_addr a, peer;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:9"), 0);
    connecting_fd = volt_sock_open(AF_INET, SOCK_DGRAM, 0);
    answers[A_connect].meanwhile = close_and_reuse;
    GIVES(volt_connect_on(cx_of(0), connecting_fd, &a), 0);
    CHECK(reusing_fd != connecting_fd);
    CHECK_EQ(volt_peer_addr(reusing_fd, &peer), -ENOTCONN);
    CHECK(fcntl(connecting_fd, F_GETFD) < 0); // closed when the call was over
    CHECK_EQ(close(reusing_fd), 0);
    end();
}
// The error of the attempt is taken by another operation on the socket, before the event is seen.
static void fail_and_take_the_error(void) {
    volt_addr a;
    struct pollfd p = { .fd = connecting_fd, .events = POLLOUT };
    int error = 0;
    socklen_t len = sizeof error;
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    CHECK(connect(connecting_fd, volt__addr_sa(&a), a.len_) < 0);
    CHECK_EQ(poll(&p, 1, 10000), 1);
    CHECK_EQ(getsockopt(connecting_fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
}
TEST(connect_on_fails_although_another_operation_has_received_the_error) {
    volt_addr a;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    connecting_fd = volt_sock_open(AF_INET, SOCK_STREAM, 0);
    ANSWERS(connect, EINPROGRESS);
    answers[A_connect].meanwhile = fail_and_take_the_error;
    volt_poll p = volt_connect_on(cx_of(0), connecting_fd, &a);
    CHECK(!volt_is_pending(p));
    int is_tcp = entry(connecting_fd)->flags & VOLT__FD_STREAM; // not without SO_PROTOCOL
    CHECK(volt_value(p) == -ECONNREFUSED || volt_value(p) == (is_tcp ? -ECONNABORTED : -ENOTCONN));
    volt_rt_close(rt, connecting_fd);
    // and one whose kind is not known to keep the attempt open: it has no peer
    connecting_fd = volt_sock_open(AF_INET, SOCK_DGRAM, 0);
    ANSWERS(connect, EINPROGRESS);
    GIVES(volt_connect_on(cx_of(0), connecting_fd, &a), -ENOTCONN);
    volt_rt_close(rt, connecting_fd);
    end();
}
// The caller's socket is registered, and its event comes between the look at it and the wait.
static void make_connected(void) {
    CHECK_EQ(look_at_events(), 1);
    answers[A_poll].is_zero = 1; // the look was before it
}
TEST(connect_on_looks_again_after_an_event) {
    volt_addr a;
    int fd[2];
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    open_pair(fd);
    PENDING(volt_read(cx_of(0), fd[0], &byte, 1)); // registers it
    GIVES(volt_read(cancelled_cx(0), fd[0], &byte, 1), -ECANCELED);
    ANSWERS(connect, EINPROGRESS);
    answers[A_poll].meanwhile = make_connected;
    answers[A_poll].n_calls = 0;
    GIVES(volt_connect_on(cx_of(0), fd[0], &a), 0);
    CHECK_EQ(answers[A_poll].n_calls, 2);
    close_pair(fd);
    end();
}
// The number of its socket, which was closed meanwhile, is another file's when it is cancelled.
TEST(cancelled_connect_leaves_reused_number_open) {
    volt_addr a;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    ANSWERS(connect, EINPROGRESS);
    PENDING(volt_connect(cx_of(0), &a));
    int fd = (int)frame[0].node_.key_.fd_ - 1;
    volt_rt_close(rt, fd);
    CHECK_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
    GIVES(volt_connect(cancelled_cx(0), &a), -ECANCELED);
    CHECK_EQ(close(fd), 0);
    end();
}
// The number of its timer was closed by another part of the program, and is another file's: while
// the sleep waits, after the timer has expired, and between two tries.
TEST(sleep_on_leaves_reused_number_open) {
    for (int i = 0; i < 6; i++) {
        int is_cancelled = i % 2;
        volt__node *n = &frame[0].node_;
        volt__chain c;
        begin();
        PENDING(volt_sleep_on(cx_of(0), VOLT_CLOCK_BOOT, VOLT_NEVER));
        int fd = (int)n->key_.fd_ - 1;
        volt__fd *e = entry(fd);
        volt__chain_init(&c);
        volt__lock(&e->lock);
        if (i / 2 == 1) volt__fd_fire_all(e, &e->rd, VOLT__FIRED, &c);
        volt__unlock(&e->lock);
        if (i / 2 == 2) {
            (void)volt__fd_end_wait(n, task, VOLT__RD);
            n->prev_ = (volt__node *)(uintptr_t)e->gen; // as volt__io_save_gen
            n->next_ = n;
        }
        volt_rt_close(rt, fd);
        CHECK_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
        GIVES(volt_sleep_on(is_cancelled ? cancelled_cx(0) : cx_of(0), VOLT_CLOCK_BOOT, 0),
              is_cancelled ? -ECANCELED : -EBADF);
        CHECK_EQ(close(fd), 0);
        end();
    }
}
TEST(connect_without_memory_closes_its_socket) {
    volt_addr a;
    begin();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    int n_fds = test_count_fds();
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    GIVES(volt_connect(cx_of(0), &a), -ENOMEM);
    CHECK_EQ(test_count_fds(), n_fds);
    end();
}
TEST(listen_on_any_address_falls_back_to_ipv4) {
    volt_addr a;
    char text[64];
    begin();
    ANSWERS(socket, EAFNOSUPPORT);
    CHECK_EQ(volt_listen("::", 0, NULL), -EAFNOSUPPORT); // asked for by name
    check_all_given();
    ANSWERS(socket, EAFNOSUPPORT);
    int fd = volt_listen(NULL, 0, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    CHECK(volt_addr_format(&a, text, sizeof text) > 0);
    CHECK_EQ(strncmp(text, "0.0.0.0:", 8), 0);
    volt_rt_close(rt, fd);
    check_all_given();
    ANSWERS(socket, EAFNOSUPPORT);
    volt_listen_options o = { .is_v6only = 1 };
    CHECK_EQ(volt_listen(NULL, 0, &o), -EAFNOSUPPORT); // asked for IPv6
    check_all_given();
    o.is_v6only = 0; // options that do not ask for it change nothing
    ANSWERS(socket, EAFNOSUPPORT);
    fd = volt_listen(NULL, 0, &o);
    CHECK(fd >= 0);
    volt_rt_close(rt, fd);
    end();
}

// ---- SIGPIPE: blocked, or pending already, on the thread of volt_run

static int is_sigpipe_pending(void) {
    sigset_t set;
    CHECK_EQ(sigpending(&set), 0);
    return sigismember(&set, SIGPIPE);
}
static void write_to_closed_reader(void) {
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_EQ(close(fd[0]), 0);
    GIVES(volt_write(cx_of(0), fd[1], "x", 1), -EPIPE);
    volt_rt_close(rt, fd[1]);
}
TEST(broken_pipe_leaves_no_sigpipe_pending) {
    begin();
    ANSWERS(sigtimedwait, EINTR);
    write_to_closed_reader();
    CHECK(!is_sigpipe_pending());
    end();
}
TEST(transfer_that_is_cut_leaves_no_sigpipe_pending) {
    static int64_t at;
    static volt_copier c;
    int in[2], out[2], file = memfd_create("file", MFD_CLOEXEC);
    begin();
    CHECK_EQ(volt_socketpair(SOCK_STREAM, in), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, out), 0);
    CHECK_EQ(write(in[1], "abc", 3), 3);
    CHECK_EQ(write(file, "abc", 3), 3);
    cut_fd = out[0];
    GIVES(volt_sendfile(cx_of(0), out[0], file, &at, 3), 1);
    CHECK(!is_sigpipe_pending());
    volt_copier_init(&c, volt_stream_of(in[0]), volt_stream_of(out[0]), NULL, 0);
    GIVES(volt_copy(cx_of(0), &c, 3), 0);
    CHECK_EQ(volt_copied(&c), 3);
    CHECK(!is_sigpipe_pending());
    volt_copier_close(cx_of(0), &c);
    cut_fd = -1;
    for (int i = 0; i < 2; i++) volt_rt_close(rt, in[i]);
    for (int i = 0; i < 2; i++) volt_rt_close(rt, out[i]);
    CHECK_EQ(close(file), 0);
    end();
}
TEST(sigpipe_that_was_pending_stays_pending) {
    sigset_t set, before;
    struct timespec now = { 0, 0 };
    begin();
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    CHECK_EQ(raise(SIGPIPE), 0);
    write_to_closed_reader();
    CHECK(is_sigpipe_pending());
    CHECK_EQ(sigtimedwait(&set, NULL, &now), SIGPIPE);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    end();
}

TEST(log_takes_no_signal_that_its_write_has_not_raised) {
    static const int errors[] = { EIO, EAGAIN, EPIPE };
    begin();
    for (int i = 0; i < 3; i++) {
        ANSWERS(write, errors[i]);
        ANSWERS(sigtimedwait, EAGAIN); // there is none
        answers[A_sigtimedwait].at = i < 2;
        volt_log_stderr(NULL, 0, "text");
        CHECK_EQ(answers[A_sigtimedwait].n_calls, i == 2);
        check_all_given();
    }
    end();
}

// ---- a dump into a descriptor that is full

static int dump_to_full(void) {
    int p[2];
    char text[4096];
    CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    is_dumping = 1;
    int rc = volt_dump(rt, p[1], 0);
    is_dumping = 0;
    clock_step = 0;
    ssize_t n = read(p[0], text, sizeof text);
    if (rc == 0) CHECK(n > 0 && text[n - 1] == '\n'); // all of it
    else CHECK_EQ(n, -1);
    CHECK_EQ(close(p[0]) | close(p[1]), 0);
    return rc;
}
TEST(dump_waits_a_second_at_most_for_room) {
    begin();
    ANSWERS(write, EAGAIN, EINTR, EAGAIN);
    ANSWERS(poll, EINTR, EINTR); // and then there is room, both times
    clock_step = VOLT_MS(100);
    CHECK_EQ(dump_to_full(), 0);
    CHECK_EQ(answers[A_poll].n_calls, 4);
    CHECK_EQ(asked_ms, 900); // each time from the beginning
    check_all_given();
    ANSWERS(write, EAGAIN);
    ANSWERS(poll, 0);
    CHECK_EQ(dump_to_full(), -EAGAIN);
    CHECK_EQ(asked_ms, 1000);
    check_all_given();
    ANSWERS(write, EAGAIN);
    ANSWERS(poll, EINTR, EINTR, EINTR, EINTR); // the time is up at the fourth
    clock_step = VOLT_MS(300);
    CHECK_EQ(dump_to_full(), -EAGAIN);
    CHECK_EQ(asked_ms, 0);
    check_all_given();
    ANSWERS(write, EAGAIN);
    ANSWERS(poll, 0);
    clock_step = VOLT_S(2); // the thread was held up: one look all the same
    CHECK_EQ(dump_to_full(), -EAGAIN);
    CHECK_EQ(asked_ms, 0);
    check_all_given();
    ANSWERS(write, EAGAIN);
    ANSWERS(poll, ENOMEM);
    CHECK_EQ(dump_to_full(), -ENOMEM);
    end();
}

// ---- the clock

TEST(interval_tick_is_due_at_its_very_deadline) {
    volt_interval iv;
    begin();
    volt_interval_init(&iv, VOLT_MS(1));
    iv.missed = VOLT_MISSED_SKIP;
    clock_now = iv.next_;
    GIVES(volt_interval_next(cx_of(0), &iv), 1);
    CHECK_EQ(iv.next_, clock_now + VOLT_MS(1));
    end();
}

TEST(interval_handles_missed_ticks_as_configured) {
    static const struct {
        volt_missed missed;
        int gives, next; // in ms, from the first tick
    } rows[] = { { VOLT_MISSED_BURST, 1, 10 }, { VOLT_MISSED_DELAY, 1, 35 },
                 { VOLT_MISSED_SKIP, 3, 30 } };
    begin();
    for (int i = 0; i < 3; i++) { // late by less than a period: none is missed
        volt_interval iv;
        volt_interval_init(&iv, VOLT_MS(10));
        iv.missed = rows[i].missed;
        volt_time first = iv.next_;
        clock_now = first + VOLT_MS(10) - 1;
        GIVES(volt_interval_next(cx_of(0), &iv), 1);
        CHECK_EQ(iv.next_ - first, VOLT_MS(10));
    }
    for (int i = 0; i < 3; i++) {
        volt_interval iv;
        memset(&iv, 0xa5, sizeof iv);
        volt_interval_init(&iv, VOLT_MS(10));
        CHECK_EQ(iv.missed, VOLT_MISSED_BURST);
        CHECK_EQ(iv.next_, clock_now + VOLT_MS(10));
        iv.missed = rows[i].missed;
        volt_time first = iv.next_;
        clock_now = first + VOLT_MS(25);
        GIVES(volt_interval_next(cx_of(0), &iv), rows[i].gives);
        CHECK_EQ(iv.next_ - first, VOLT_MS(rows[i].next));
    }
    end();
}

TEST(interval_without_period_is_refused_once_there_is_budget) {
    volt_interval iv;
    begin();
    volt_interval_init(&iv, 0);
    volt_cx *cx = cx_of(0);
    cx->budget_ = 0;
    PENDING(volt_interval_next(cx, &iv));
    GIVES(volt_interval_next(cx_of(0), &iv), -EINVAL);
    end();
}
TEST(worker_sleeps_until_next_timer_or_drain_deadline) {
    begin();
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), -1);
    PENDING(volt_sleep(cx_of(0), VOLT_S(2)));
    int64_t until_timer = volt__time_left(volt__sleep_deadline(w));
    CHECK(until_timer >= VOLT_S(2) && until_timer <= VOLT_S(2) + VOLT_MS(1));
    w->drain_deadline = clock_now + VOLT_S(1); // volt_run does
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), VOLT_S(1));
    w->drain_deadline = clock_now - 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), VOLT_MS(1)); // no task is left
    w->spawned++;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    w->spawned--;
    GIVES(volt_sleep(cancelled_cx(0), VOLT_S(2)), -ECANCELED);
    end();
}
TEST(average_poll_time_stays_positive_if_clock_goes_back) {
    begin();
    w->polls_since = 100;
    w->last_event_poll = clock_now;
    volt__measure(w, clock_now - VOLT_S(1));
    CHECK_EQ(w->avg_ns, 1); // is divided by
    end();
}
TEST(futex_wait_tells_changed_word_from_past_deadline) {
    uint32_t word = 1;
    CHECK_EQ(volt__sys_futex_wait(&word, 0, VOLT_NEVER), -EAGAIN);
    CHECK_EQ(volt__sys_futex_wait(&word, 0, 1), -EAGAIN);
    CHECK_EQ(volt__sys_futex_wait(&word, 1, 0), -ETIMEDOUT);
    CHECK_EQ(volt__sys_futex_wait(&word, 1, -1), -ETIMEDOUT);
}
TEST(claim_gives_no_worker_if_none_is_parked) {
    begin();
    CHECK_EQ(volt__idle_claim_bit(&rt->idle, VOLT__ANY_WORKER), -1);
    end();
}

// ---- a join by a plain thread whose time is up just as the task ends

static void *parked;
static int n_waits;
static int completes(void) {
    volt__join_complete(task, rt);
    return -ETIMEDOUT;
}
static int sets_parker(void) {
    n_waits++;
    volt__parker_set((volt__parker *)((uintptr_t)parked - VOLT__JOIN_PARKER));
    return 0;
}
static int completes_halfway(void) {
    parked = volt__xchg_acq_rel(&task->join, VOLT__JOIN_DONE);
    at_futex = sets_parker;
    return -ETIMEDOUT;
}
static void join_while(int (*step)(void)) {
    int64_t result = 0;
    begin();
    task->u.result = 7;
    volt_handle h = { task };
    at_futex = step;
    CHECK_EQ(volt_join_sync(&h, VOLT_MS(1), &result), 0);
    CHECK_EQ(result, 7);
    CHECK(!h.task_);
    still_end(rt);
}
TEST(join_sync_that_timed_out_gives_result_of_ended_task) { join_while(completes); }
TEST(join_sync_that_timed_out_waits_for_its_parker_to_be_set) {
    join_while(completes_halfway);
    CHECK_EQ(n_waits, 1); // not gone before the task was through with the parker
}

static void complete(void) { volt__join_complete(task, rt); }
TEST(join_sees_task_that_ends_while_it_registers) {
    begin();
    volt__task *child = task;
    volt_handle h = { child };
    child->u.result = 5;
    task = still_task(w);
    volt_cx *cx = cx_of(0);
    task = child; // the one that completes
    at_assert = complete;
    at_assert_text = "waiter && waiter";
    GIVES(volt_join(cx, &h), 5); // not done yet, says the first look
    CHECK(!at_assert && !h.task_);
    still_end(rt);
}

// ---- tasks of two runtimes

TEST(tasks_of_other_runtime_go_to_its_injector) {
    volt__chain c;
    begin();
    volt_rt *other = still_rt(1);
    volt__chain_init(&c);
    for (int i = 0; i < 2; i++) volt__chain_push(&c, still_task(other->workers[0]));
    VOLT_TLS_SET(w);
    volt__schedule_chain(&c);
    VOLT_TLS_SET(NULL);
    CHECK_EQ(volt__load_rlx(&other->injector.len), 2);
    CHECK_EQ(w->stats.wakes_local, 0);
    volt__rt_free(other);
    end();
}
// In a batch it might outlive the runtime that it belongs to.
TEST(slot_of_other_runtime_is_freed_at_once) {
    begin();
    volt_rt *other = still_rt(1);
    volt__worker *v = other->workers[0];
    volt__task *t = volt__task_alloc(other, v, sizeof(still_state), 0);
    CHECK(t);
    VOLT_TLS_SET(w);
    volt__task_free(t);
    VOLT_TLS_SET(NULL);
    CHECK_EQ(w->remote_batch.n, 0);
    CHECK(v->heap.remote == t);
    volt__rt_free(other);
    end();
}
TEST(unfinished_tasks_are_listed_up_to_a_limit) {
    volt__unfinished s;
    begin();
    for (int i = 0; i < 20; i++) (void)still_task(w);
    volt__unfinished_find(rt, &s);
    CHECK_EQ(s.n, VOLT__UNFINISHED_MAX);
    end();
}

// ---- what is made

TEST(task_fill_overwrites_fields_of_last_task) {
    static const char site[] = "here";
    volt__task t;
    memset(&t, 0xa5, sizeof t); // of the slot's last task
    volt__task_fill(&t, giver_run, VOLT__EXTERNAL, site);
    CHECK(t.u.fn == giver_run);
    CHECK(t.spawn_site == site && t.wait_site == site);
    CHECK_EQ(t.flags, VOLT__EXTERNAL);
    CHECK_EQ(t.shield_depth, 0);
    CHECK_EQ(t.n_armed, 0);
}
static uint32_t slot_of(volt__task *t) { return volt__slab_of(t)->slot_size; }
TEST(slot_is_of_smallest_class_that_holds_the_task) {
    static const still_state state;
    begin();
    for (size_t size = sizeof(volt_frame); size < 200; size++) {
        size_t least = (sizeof(volt__task) + size + 15) / 16 * 16;
        volt__task *t = volt__task_alloc(rt, w, size, 0);
        CHECK(t);
        CHECK_EQ(slot_of(t), volt__class_size(volt__class_of(least)));
        volt__heap_free_local(&w->heap, t);
    }
    // A frame alone, in every way.
    uint32_t least = (uint32_t)(sizeof(volt__task) + sizeof state);
    volt_handle h = { NULL };
    CHECK_EQ(volt_rt_spawn(rt, &h, never_run, &state, sizeof state), 0);
    CHECK_EQ(slot_of(h.task_), least);
    volt_detach(&h);
    CHECK_EQ(volt_spawn(cx_of(0), &h, never_run, &state, sizeof state), 0);
    CHECK_EQ(slot_of(h.task_), least);
    volt_detach(&h);
    void *made = volt_task_create(rt, never_run, sizeof state);
    CHECK(made);
    CHECK_EQ(slot_of(volt__state_task(made)), least);
    CHECK(!volt_task_create(rt, never_run, sizeof state - 1));
    volt_task_destroy(made);
    still_state root = { .frame = { .node_ = { .resume_line_ = 0 } } };
    CHECK_EQ(volt__spawn_root(rt, NULL, &h, never_run, &root, 0), 0);
    CHECK_EQ(slot_of(h.task_), (sizeof(volt__task) + sizeof(void *) + 15) / 16 * 16);
    volt_detach(&h);
    end();
}
TEST(state_is_copied_behind_zeroed_frame) {
    char from[128], to[128];
    for (size_t size = sizeof(volt_frame); size <= sizeof to; size++) {
        for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i + 1);
        memset(to, '#', sizeof to);
        volt__state_copy(to, from, size);
        for (size_t i = 0; i < sizeof to; i++)
            CHECK_EQ(to[i], i < sizeof(volt_frame) ? 0 : i < size ? from[i] : '#');
    }
}
TEST(refused_task_is_left_to_its_walker) {
    begin();
    for (uint32_t refs = 1; refs <= 2; refs++) {
        volt__task *t = still_task(w);
        CHECK(volt__task_try_retain(t));
        if (refs == 2) volt__task_retain(t);
        volt__task_refuse(t, refs);
        CHECK_EQ(volt__load_rlx(&t->word) / VOLT__REF, 1); // not free
        CHECK(volt__task_release(t));
        volt__heap_free_local(&w->heap, t);
    }
    end();
}
// States of both kinds, zeroed frames and not, before and after a worker closes.
TEST(spawn_refuses_used_frame_and_closing_worker) {
    begin();
    for (int i = 0; i < 8; i++) {
        still_state state[4];
        size_t size = i & 1 ? sizeof state : sizeof state[0];
        volt_handle h = { NULL };
        memset(state, 0, sizeof state);
        state[0].frame.node_.resume_line_ = (i & 2) != 0;
        w->is_closing = w->is_careful = (i & 4) != 0;
        for (int k = 0; k < 2; k++) { // a slot that can be had without a call
            size_t room = k ? sizeof state : sizeof state[0];
            volt__heap_free_local(&w->heap, volt__task_alloc(rt, w, room, 0));
        }
        uint64_t n_spawned = w->spawned;
        int rc = volt_spawn(cx_of(0), &h, never_run, state, size);
        CHECK_EQ(rc, i & 2 ? -EINVAL : i & 4 ? -ESHUTDOWN : 0);
        CHECK_EQ(h.task_ != NULL, rc == 0);
        CHECK_EQ(w->spawned - n_spawned, rc == 0);
        volt_detach(&h);
    }
    end();
}
// Only a task that is queued wakes a sleeper; the end of one that never ran wakes none.
TEST(task_from_outside_wakes_worker_only_once_queued) {
    static const still_state state;
    begin();
    volt__idle_park(&rt->idle, 0, 0);
    void *made = volt_task_create(rt, never_run, sizeof state);
    CHECK(made);
    CHECK(volt__idle_is_parked(&rt->idle, 0));
    volt_task_destroy(made);
    CHECK_EQ(answers[A_write].n_calls, 0);
    CHECK_EQ(volt_rt_spawn(rt, NULL, never_run, &state, sizeof state), 0);
    CHECK(!volt__idle_is_parked(&rt->idle, 0));
    CHECK_EQ(answers[A_write].n_calls, 1);
    volt__idle_end_search(&rt->idle);
    made = volt_task_create(rt, never_run, sizeof state);
    volt__idle_park(&rt->idle, 0, 0);
    volt__shutdown_begin(rt);
    CHECK_EQ(volt_rt_spawn(rt, NULL, never_run, &state, sizeof state), -ESHUTDOWN);
    CHECK(volt__idle_is_parked(&rt->idle, 0));
    int n_calls = answers[A_write].n_calls;
    volt_task_destroy(made); // may have been the last one
    CHECK_EQ(answers[A_write].n_calls, n_calls + 1);
    end();
}
TEST(failed_start_of_worker_is_logged) {
    volt_config c = test_config(2);
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    CHECK_EQ(rt->epoch, clock_now); // ticks count from here
    rt->starts_closed = 1;
    volt__start_more(rt);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 0);
    rt->starts_closed = 0;
    ANSWERS(epoll_create1, EMFILE);
    volt__start_more(rt);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 1);
    CHECK_EQ(volt__started(rt), 0);
    check_all_given();
    still_end(rt);
}

TEST(stats_are_exact_only_for_calling_worker) {
    volt_counters c;
    begin();
    w->stats.steals = 7;
    volt_stats(rt, &c);
    CHECK_EQ(c.steals, 0); // another's are as it has published them
    VOLT_TLS_SET(w);
    volt_stats(rt, &c);
    VOLT_TLS_SET(NULL);
    CHECK_EQ(c.steals, 7);
    CHECK(c.workers == 1 && c.workers_started == 1);
    end();
}

// ---- the end of a runtime

static volt_rt *ending;
static int n_joins;
static void join_a_thread(void) {
    n_joins++;
    CHECK_EQ(ending->join_state, 1); // others wait
    CHECK_EQ(volt_destroy(ending), -EBUSY);
}
static int is_joined(void) {
    n_waits++;
    CHECK_EQ(futex_expects, 1);
    if (n_waits == 2) volt__store_rel(&ending->join_state, 2); // before that: for nothing
    return 0;
}
TEST(worker_threads_are_joined_by_one_caller_only) {
    volt_rt *two = ending = still_rt(2);
    two->workers[1]->has_thread = 1;
    volt__join_threads(two);
    CHECK_EQ(n_joins, 1);
    CHECK_EQ(two->join_state, 2);
    volt__join_threads(two); // nothing to wait for
    two->join_state = 1;
    at_futex = is_joined;
    volt__join_threads(two);
    CHECK_EQ(n_waits, 2);
    CHECK_EQ(n_joins, 1);
    still_end(two);
}
static int is_late(void) { return -ETIMEDOUT; }
static int is_stopped_at_last(void) {
    if (++n_waits == 3) volt__store_rel(&ending->is_stopped, 1);
    return n_waits == 1 ? 0 : -EAGAIN; // woken for nothing
}
static int is_stopped_too_late(void) {
    volt__store_rel(&ending->is_stopped, 1);
    return -ETIMEDOUT;
}
TEST(shutdown_gives_number_of_live_tasks_or_0_if_stopped) {
    begin();
    ending = rt;
    at_futex = is_late;
    for (int n = 0; n < 4; n++) {
        CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), n > 0 ? n : 1); // not stopped is not 0
        w->spawned++;
    }
    at_futex = is_stopped_at_last;
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), 0);
    CHECK_EQ(n_waits, 3);
    rt->is_stopped = 0;
    at_futex = is_stopped_too_late; // but it is
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), 0);
    end();
}
TEST(teardown_gives_ebusy_for_unfinished_or_held_tasks) {
    static const struct {
        uintptr_t word;
        uint32_t n, n_held;
    } rows[] = {
        { VOLT__NOTIFIED, 0, 0 }, // a free slot
        { VOLT__REF, 1, 0 },
        { VOLT__REF | VOLT__RUNNING, 1, 0 },
        { VOLT__REF | VOLT__COMPLETE, 0, 1 },
        { 2 * VOLT__REF | VOLT__COMPLETE | VOLT__NOTIFIED, 0, 1 },
    };
    volt__unfinished s;
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        volt__store_rlx(&task->word, rows[i].word);
        volt__unfinished_find(rt, &s);
        CHECK_EQ(s.n, rows[i].n);
        CHECK_EQ(s.n_held, rows[i].n_held);
        if (s.n + s.n_held > 0) CHECK_EQ(volt__teardown(rt, &s), -EBUSY);
        int n_logged = test_log.n[VOLT_LOG_HANDLE_LEAKED];
        volt__log_held(rt, &s); // their number, and where they were spawned
        CHECK_EQ(test_log.n[VOLT_LOG_HANDLE_LEAKED] - n_logged, rows[i].n_held ? 2 : 0);
    }
    end();
}
static int visitor_leaves(void) {
    CHECK_EQ(futex_expects, 5u - 2u * (uint32_t)n_waits);
    if (++n_waits > 2) return -EAGAIN;
    volt__rt_unpin(ending);
    return 0;
}
TEST(teardown_waits_until_runtime_is_unpinned) {
    for (int n = 0; n < 3; n += 2) {
        volt__unfinished s;
        ending = still_rt(1);
        for (int i = 0; i < n; i++) volt__rt_pin(ending);
        n_waits = 0;
        at_futex = n ? visitor_leaves : NULL;
        CHECK_EQ(volt__teardown(ending, &s), 0);
        CHECK_EQ(n_waits, n);
        test_check_heap();
    }
}
