// SPDX-License-Identifier: MIT OR 0BSD
// Descriptors that other processes share, and numbers that a program closes or replaces without a
// word to volt: the runtime's own description of a terminal or pipe, and the end of it. Each test
// has a process of its own, whose standard input it uses as such a descriptor.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "full_listener.h"
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>

// ---- a root that does one thing after the other, by a function of each test

typedef struct {
    volt_frame frame;
    int fd, step;
    char buf[64];
    struct iovec iov[2];
    struct pollfd p;
    int64_t n;
    volt_timer limit;
    volt_handle h;
} root;
#define READ_WITHIN(ms_)                                            \
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(ms_),       \
                                 volt_read(cx, s->fd, s->buf, sizeof s->buf)))
#define WRITE_ONE(fd_, len_) VOLT_AWAIT(s->n, volt_write(cx, (fd_), s->buf, (len_)))
#define ROOT(name_)                                           \
    static volt_poll name_##_root(volt_cx *cx, void *arg);    \
    TEST(name_) {                                             \
        static root s;                                        \
        int first = dup(0);                                   \
        close(first);                                         \
        CHECK_EQ(run_on(1, name_##_root, &s), 0);             \
        close_opened(first);                                  \
    }                                                         \
    static volt_poll name_##_root(volt_cx *cx, void *arg)

static int own_of(volt_cx *cx, int fd) { return volt__fd_lookup(&cx->rt_->fds, fd)->reopened_fd; }
static int is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
static void make_pipe_at(int number, int *other, int is_read) {
    int p[2];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(dup2(p[!is_read], number), number);
    close(p[!is_read]);
    *other = p[is_read];
}
// A listener that has one connection waiting, whose other end is *peer.
static int listen_and_connect(int *peer) {
    volt_addr at;
    int fd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(volt_local_addr(fd, &at), 0);
    *peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(*peer, (const void *)at.sa_, at.len_), 0);
    return fd;
}
static void open_terminal(int *master, int *slave) {
    char name[64];
    struct termios t;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0) SKIP("no pseudo terminals");
    CHECK(grantpt(*master) == 0 && unlockpt(*master) == 0);
    CHECK_EQ(ptsname_r(*master, name, sizeof name), 0);
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(*slave >= 0);
    CHECK_EQ(tcgetattr(*slave, &t), 0);
    cfmakeraw(&t);
    CHECK_EQ(tcsetattr(*slave, TCSANOW, &t), 0);
}
// No descriptor more can be opened.
static struct rlimit before_refusal;
static void refuse_more(void) {
    struct rlimit none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before_refusal), 0);
    none = before_refusal;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
}
// The harness counts descriptors: those that a test has opened are of no interest.
static void close_opened(int below) {
    struct stat st;
    for (int fd = 3; fd < 64; fd++)
        if (fd >= below && fstat(fd, &st) == 0) close(fd);
}

// ---- the description's number

static int other_end, second_end;
ROOT(own_description_never_takes_a_standard_number) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    s->fd = dup(1); // the harness writes there
    make_pipe_at(1, &other_end, 0);
    CHECK_EQ(dup2(0, 60), 60);
    close(0);
    WRITE_ONE(1, 5);
    CHECK_EQ(s->n, 5);
    CHECK(!is_open(0));
    CHECK(own_of(cx, 1) > STDERR_FILENO);
    CHECK_EQ(read(other_end, s->buf, sizeof s->buf), 5);
    CHECK(dup2(60, 0) == 0 && dup2(s->fd, 1) == 1);
    VOLT_END(0);
}
ROOT(own_description_keeps_packets_apart) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    {
        int p[2];
        if (pipe2(p, O_CLOEXEC | O_DIRECT) < 0) SKIP("no pipes of packets");
        CHECK_EQ(dup2(p[1], 0), 0);
        other_end = p[0];
    }
    WRITE_ONE(0, 5);
    WRITE_ONE(0, 5);
    CHECK_EQ(read(other_end, s->buf, sizeof s->buf), 5);
    VOLT_END(0);
}

// ---- a number that becomes another file's

ROOT(dup2_over_a_number_is_noticed) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    make_pipe_at(0, &other_end, 0);
    WRITE_ONE(0, 5);
    make_pipe_at(0, &second_end, 0);
    WRITE_ONE(0, 7);
    CHECK_EQ(s->n, 7);
    CHECK_EQ(read(second_end, s->buf, sizeof s->buf), 7);
    CHECK_EQ(read(other_end, s->buf, sizeof s->buf), 5);
    CHECK_EQ(read(other_end, s->buf, sizeof s->buf), 0); // no process holds its other end open
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], 1);
    VOLT_END(0);
}
ROOT(dup2_over_standard_input_is_noticed_after_a_wait) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    make_pipe_at(0, &other_end, 1);
    s->fd = 0;
    READ_WITHIN(1);
    CHECK_EQ(s->n, -ETIMEDOUT);
    make_pipe_at(0, &second_end, 1);
    CHECK_EQ(write(second_end, "hello", 5), 5);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 5);
    CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], 1);
    VOLT_END(0);
}
// A socket that dup2 puts over the number of another one waits for its connection like any other.
ROOT(connect_on_follows_dup2_over_standard_input) {
    static full_listener listener;
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    full_listener_open(&listener);
    for (s->step = 0; s->step < 2; s->step++) {
        int fd = volt_sock_open(AF_INET, SOCK_STREAM, 0);
        CHECK_EQ(dup2(fd, 0), 0);
        close(fd);
        VOLT_AWAIT(s->n,
                   volt_within(cx, &s->limit, VOLT_MS(2), volt_connect_on(cx, 0, &listener.at)));
        CHECK_EQ(s->n, -ETIMEDOUT);
    }
    full_listener_close(&listener);
    VOLT_END(0);
}
ROOT(connection_that_is_accepted_inherits_no_description) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    make_pipe_at(0, &other_end, 1);
    CHECK_EQ(write(other_end, "hello", 5), 5);
    s->fd = 0;
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 5);
    s->fd = listen_and_connect(&second_end);
    close(0); // and not volt_close
    VOLT_AWAIT(s->n, volt_accept(cx, s->fd));
    CHECK_EQ(s->n, 0);
    s->p = (struct pollfd){ .fd = other_end, .events = POLLOUT };
    CHECK_EQ(poll(&s->p, 1, 0), 1);
    CHECK(s->p.revents & POLLERR); // the pipe has no reader left
    CHECK_EQ(write(second_end, "data", 4), 4);
    s->fd = 0;
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 4);
    VOLT_END(0);
}

enum { PIPE, EVENTFD, SOCKETS, FILE_, N_KINDS };
static int open_kind(int kind) {
    int p[2];
    switch (kind) {
    case PIPE: CHECK_EQ(pipe2(p, O_CLOEXEC), 0); break;
    case SOCKETS: CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0); break;
    case EVENTFD: return eventfd(0, EFD_CLOEXEC);
    default: return memfd_create("test", MFD_CLOEXEC);
    }
    other_end = p[1];
    return p[0];
}
static void feed(int kind, int fd) {
    uint64_t one = 1;
    if (kind == FILE_) CHECK_EQ(pwrite(fd, &one, sizeof one, 0), 8);
    else CHECK_EQ(write(kind == EVENTFD ? fd : other_end, &one, sizeof one), 8);
}
#if VOLT_DEBUG
// In a debug build no file holds up the worker in the place of another one, whatever was known of
// that.
static int old_kind, new_kind, is_emptied;
static volt_poll reuser_run(volt_cx *cx, void *arg) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    s->fd = open_kind(old_kind);
    feed(old_kind, s->fd);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 8);
    if (is_emptied) {
        READ_WITHIN(1);
        CHECK_EQ(s->n, old_kind == FILE_ ? 0 : -ETIMEDOUT);
    }
    close(s->fd); // and not volt_close
    s->step = open_kind(new_kind);
    if (s->step != s->fd) { // the pipe's or the pair's other end came first
        CHECK_EQ(dup2(s->step, s->fd), s->fd);
        close(s->step);
    }
    READ_WITHIN(20);
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK(test_log.n[VOLT_LOG_FD_REUSED] >= 1);
    feed(new_kind, s->fd);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 8);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
TEST(reused_number_never_holds_up_a_debug_build) {
    static const int olds[] = { PIPE, EVENTFD, FILE_ };
    int first = dup(0);
    close(first);
    for (size_t i = 0; i < sizeof olds / sizeof olds[0]; i++) {
        for (new_kind = 0; new_kind < FILE_; new_kind++) {
            for (is_emptied = 0; is_emptied < 2; is_emptied++) {
                static root s;
                memset(&s, 0, sizeof s);
                memset(&test_log, 0, sizeof test_log);
                old_kind = olds[i];
                CHECK_EQ(run_on(1, reuser_run, &s), 0);
                close_opened(first);
            }
        }
    }
}
#endif

// ---- terminals

// The worker must not depend on a mode that another process may change.
ROOT(terminal_that_does_not_block_has_its_own_description_too) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    open_terminal(&other_end, &s->fd);
    CHECK_EQ(fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK), 0);
    READ_WITHIN(10);
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) & ~O_NONBLOCK), 0);
    READ_WITHIN(10);
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(write(other_end, "x", 1), 1);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 1);
    VOLT_END(0);
}
ROOT(terminal_of_any_number_has_its_own_description) {
    static const int numbers[] = { 9, 10, 57, 60 };
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    open_terminal(&other_end, &second_end);
    for (s->step = 0; s->step < 4; s->step++) {
        s->fd = numbers[s->step];
        CHECK_EQ(dup2(second_end, s->fd), s->fd);
        CHECK_EQ(write(other_end, "x", 1), 1);
        READ_WITHIN(10000);
        CHECK_EQ(s->n, 1);
        CHECK(own_of(cx, s->fd) > STDERR_FILENO);
        CHECK(!(fcntl(s->fd, F_GETFL) & O_NONBLOCK));
        CHECK_EQ(test_log.n[VOLT_LOG_FD_REUSED], 0); // it is the same file
        volt_close(cx, s->fd);
    }
    VOLT_END(0);
}
// Where no description can be opened, as that of another user's terminal.
ROOT(terminal_without_its_own_description_holds_up_no_worker) {
    root *const s = arg;
    static char big[200000];
    VOLT_BEGIN(cx, s);
    open_terminal(&other_end, &s->fd);
    s->step = fcntl(s->fd, F_GETFL);
    refuse_more();
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(20), // the other side is not read
                                 volt_write_all(cx, s->fd, big, sizeof big)));
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK(own_of(cx, s->fd) == 0);
    CHECK_EQ(fcntl(s->fd, F_GETFL), s->step);
    READ_WITHIN(10);
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(write(other_end, "x", 1), 1);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 1);
    CHECK_EQ(fcntl(s->fd, F_GETFL), s->step);
    CHECK_EQ(fcntl(other_end, F_SETFL, O_NONBLOCK), 0);
    while (read(other_end, big, sizeof big) > 0) {}
    VOLT_AWAIT(s->n, volt_writev(cx, s->fd, NULL, 2));
    CHECK_EQ(s->n, -EFAULT);
    s->iov[1].iov_base = s->buf;
    s->iov[1].iov_len = 3;
    VOLT_AWAIT(s->n, volt_writev(cx, s->fd, s->iov, 2));
    CHECK_EQ(s->n, 3);
    CHECK_EQ(fcntl(s->fd, F_GETFL), s->step);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before_refusal), 0);
    VOLT_END(0);
}
// /dev/tty is another terminal in another session: opened once more it may be a different one.
static volt_poll session_run(volt_cx *cx, void *arg) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(write(other_end, "x", 1), 1);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 1);
    CHECK_EQ(own_of(cx, s->fd), 0);
    CHECK(!(fcntl(s->fd, F_GETFL) & O_NONBLOCK));
    VOLT_END(0);
}
TEST(name_for_the_terminal_of_the_session_is_not_opened_again) {
    static root s;
    open_terminal(&other_end, &s.fd);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) { // a session of its own, which takes the terminal
        if (setsid() < 0 || ioctl(s.fd, TIOCSCTTY, 0) < 0) _exit(1);
        s.fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
        int is_wrong = s.fd >= 0 && run_on(1, session_run, &s) != 0;
        TEST_BEFORE_EXIT();
        _exit(s.fd < 0 ? 1 : is_wrong ? 2 : 0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    close(s.fd);
    close(other_end);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) SKIP("no terminal for a session");
    CHECK_EQ(status, 0);
}
// Its other side opens as another terminal's.
ROOT(master_of_a_terminal_is_not_opened_again) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    open_terminal(&s->fd, &other_end);
    CHECK_EQ(write(other_end, "x", 1), 1);
    READ_WITHIN(10000);
    CHECK_EQ(s->n, 1);
    CHECK_EQ(own_of(cx, s->fd), 0);
    VOLT_END(0);
}

// ---- what the runtime asks about a buffer

// Three bytes into a large mapping: no memory is taken but that of their page.
ROOT(short_read_into_a_large_buffer_makes_nothing_resident) {
    enum { SIZE = 64 << 20 };
    root *const s = arg;
    static unsigned char is_resident[SIZE / 4096];
    static char *map;
    VOLT_BEGIN(cx, s);
    map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    s->fd = listen_and_connect(&other_end);
    VOLT_AWAIT(s->fd, volt_accept(cx, s->fd));
    READ_WITHIN(1); // it is in epoll now
    CHECK_EQ(write(other_end, "abc", 3), 3);
    VOLT_AWAIT(s->n, volt_read(cx, s->fd, map, SIZE));
    CHECK_EQ(s->n, 3);
    CHECK_EQ(mincore(map, SIZE, is_resident), 0);
    s->step = 0;
    for (int i = 0; i < SIZE / 4096; i++) s->step += is_resident[i] & 1;
    CHECK(s->step <= 64);
    VOLT_END(0);
}

// ---- an accept that waits out a shortage

static int listener;
static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_accept(cx, listener));
    VOLT_END(s->n);
}
static void accept_with_another_number(volt_cx *cx, int number, int is_closed) {
    if (is_closed) volt_close(cx, listener);
    listener = number;
}
static int other_number, is_listener_closed;
static volt_poll shortage_run(volt_cx *cx, void *arg) {
    root *const s = arg;
    VOLT_BEGIN(cx, s);
    s->fd = listener = listen_and_connect(&other_end);
    refuse_more();
    SPAWN(&s->h, acceptor_run, (root){ .fd = 0 });
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(volt_yield(cx));
    CHECK(volt__fd_lookup(&cx->rt_->fds, s->fd)->backoff);
    accept_with_another_number(cx, other_number, is_listener_closed);
    VOLT_AWAIT(s->n, volt_join(cx, &s->h));
    CHECK_EQ(s->n, -EBADF);
    if (!is_listener_closed) {
        CHECK(!volt__fd_lookup(&cx->rt_->fds, s->fd)->backoff);
        volt_close(cx, s->fd);
    }
    VOLT_END(0);
}
TEST(accept_that_waits_out_shortage_ends_when_its_number_changes) {
    const int numbers[] = { -1, 0, 3000000 };
    int first = dup(0);
    close(first);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (is_listener_closed = 0; is_listener_closed < 2; is_listener_closed++) {
            static root s;
            memset(&s, 0, sizeof s);
            other_number = numbers[i];
            CHECK_EQ(run_on(1, shortage_run, &s), 0);
            CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before_refusal), 0);
            close_opened(first);
        }
    }
}

// ---- pipes without a reader, or full

TEST(log_on_a_broken_standard_error_raises_no_signal) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        make_pipe_at(2, &other_end, 0);
        close(other_end);
        volt_log_stderr(NULL, 0, "text");
        TEST_BEFORE_EXIT();
        _exit(7);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
static void on_alarm(int number) { (void)number; }
TEST(dump_to_full_descriptor_gives_up_although_signals_come) {
    static const char text[100000];
    struct itimerval every = { { 0, 100000 }, { 0, 100000 } };
    struct sigaction a;
    int p[2];
    memset(&a, 0, sizeof a);
    a.sa_handler = on_alarm; // without SA_RESTART
    CHECK_EQ(sigaction(SIGALRM, &a, NULL), 0);
    CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    CHECK_EQ(volt__dump_write(p[1], text, sizeof text), -EAGAIN);
    close(p[0]);
    close(p[1]);
}
