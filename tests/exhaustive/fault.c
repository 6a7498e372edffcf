// SPDX-License-Identifier: MIT OR 0BSD
// Every system call of some small programs fails, with every error that it may give: the k-th one,
// for each k. Nothing crashes, hangs or leaks, and the program succeeds or gives the error.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// ---- the plan: which call fails, when and how. Calls that mean several things are told apart.

#define CALLS(X_)                                                                                  \
    X_(accept4) X_(bind) X_(close) X_(connect) X_(epoll_create1) X_(epoll_add) X_(epoll_watch)     \
    X_(epoll_mod) X_(epoll_del) X_(epoll_wait) X_(epoll_pwait2) X_(eventfd) X_(fcntl)              \
    X_(futex_wait) X_(getpeername) X_(getrandom) X_(getsockname) X_(getsockopt) X_(listen)         \
    X_(mmap) X_(munmap) X_(open) X_(poll) X_(pthread_attr_init) X_(pthread_attr_setstacksize)      \
    X_(pthread_create) X_(pthread_setname_np) X_(read_data) X_(read_event) X_(read_file)           \
    X_(readv) X_(sched_getaffinity) X_(send) X_(sendmsg) X_(setsockopt) X_(shutdown)               \
    X_(sigtimedwait) X_(socket) X_(sysconf) X_(timerfd_create) X_(write_data) X_(write_event)      \
    X_(writev)
enum {
#define CALL_ENUM(name_) C_##name_,
    CALLS(CALL_ENUM)
    N_CALLS
};
static const char *const call_names[] = {
#define CALL_NAME(name_) #name_,
    CALLS(CALL_NAME)
};

enum { ONCE = 1, STORM = 60, ALWAYS = 1 << 30 }; // how many calls in a row, from the k-th on
enum { PASS, FAIL, ZERO, SHORT }; // FAIL with an error, or return 0, or move one byte
typedef struct {
    int call, what, error, count;
    int is_harmless; // the program must succeed all the same
} fault;
static struct {
    fault f;
    int k, n_calls, n_hits;
    int refused_waits; // beside it: the error of each wait for events, whatever the call; 0: none
    intptr_t mapped;   // bytes
} plan;

static int fails(int call) {
    const fault *f = &plan.f;
    if (plan.refused_waits && (call == C_epoll_wait || call == C_epoll_pwait2)) {
        __atomic_add_fetch(&plan.n_hits, 1, __ATOMIC_ACQ_REL);
        errno = plan.refused_waits;
        return FAIL;
    }
    if (call != f->call || f->what == PASS) return PASS;
    int n = __atomic_add_fetch(&plan.n_calls, 1, __ATOMIC_ACQ_REL);
    if (n < plan.k || n - plan.k >= f->count) return PASS;
    __atomic_add_fetch(&plan.n_hits, 1, __ATOMIC_ACQ_REL);
    errno = f->error;
    return f->what;
}

// ---- the seam: one wrapper for each call

#define VOLT_FORK_WORD() NULL // as before Linux 4.14
#define fault_madvise madvise
#define fault_fdatasync fdatasync
#define fault_freeaddrinfo freeaddrinfo
#define fault_fsync fsync
#define fault_getaddrinfo getaddrinfo
#define fault_openat openat
#define fault_pread pread
#define fault_pwrite pwrite
#define fault_fstat fstat
#define fault_ioctl ioctl
#define fault_isatty isatty
#define fault_mincore mincore
#define fault_pthread_setcancelstate pthread_setcancelstate
#define fault_stat stat
#define fault_cfgetospeed cfgetospeed
#define fault_cfsetispeed cfsetispeed
#define fault_cfsetospeed cfsetospeed
#define fault_chmod chmod
#define fault_chown chown
#define fault_fchmod fchmod
#define fault_prctl prctl
#define fault_flock flock
#define fault_ftruncate ftruncate
#define fault_if_indextoname if_indextoname
#define fault_if_nametoindex if_nametoindex
#define fault_kill kill
#define fault_mkdir mkdir
#define fault_pipe2 pipe2
#define fault_preadv2 preadv2
#define fault_recvmmsg recvmmsg
#define fault_rename rename
#define fault_rmdir rmdir
#define fault_sendfile sendfile
#define fault_sendmmsg sendmmsg
#define fault_signalfd signalfd
#define fault_sigprocmask sigprocmask
#define fault_socketpair socketpair
#define fault_splice splice
#define fault_tcgetattr tcgetattr
#define fault_tcsetattr tcsetattr
#define fault_unlink unlink
#define fault_waitid waitid
#define fault_waitpid waitpid
#define VOLT_GETPID() getpid()
#define VOLT_SYS(name_, ...) fault_##name_(__VA_ARGS__)
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_)                                              \
    fault_pthread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) pthread_join(thread_, NULL)

// Functions, not conditions in the macro: a condition of volt.h shall be its own.
#define FAULTY(type_, call_, params_, ...)                                                         \
    static type_ fault_##call_ params_ { return fails(C_##call_) ? -1 : call_(__VA_ARGS__); }
FAULTY(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), fd, a, n, flags)
#define fault_accept accept
FAULTY(int, bind, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
FAULTY(int, epoll_create1, (int flags), flags)
FAULTY(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), fd, a, n)
FAULTY(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), fd, a, n)
FAULTY(int, getsockopt, (int fd, int at, int name, void *v, socklen_t *n), fd, at, name, v, n)
FAULTY(int, listen, (int fd, int backlog), fd, backlog)
FAULTY(int, poll, (struct pollfd *p, nfds_t n, int ms), p, n, ms)
FAULTY(ssize_t, readv, (int fd, const struct iovec *v, int n), fd, v, n)
FAULTY(int, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *set), pid, n, set)
FAULTY(ssize_t, send, (int fd, const void *buf, size_t n, int flags), fd, buf, n, flags)
FAULTY(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), fd, m, flags)
FAULTY(int, setsockopt, (int fd, int at, int name, const void *v, socklen_t n), fd, at, name, v, n)
FAULTY(int, shutdown, (int fd, int how), fd, how)
FAULTY(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *t), set,
       info, t)
FAULTY(int, socket, (int family, int type, int protocol), family, type, protocol)
FAULTY(long, sysconf, (int name), name)
FAULTY(int, timerfd_create, (int clock, int flags), clock, flags)
FAULTY(ssize_t, writev, (int fd, const struct iovec *v, int n), fd, v, n)
#define fault_fcntl(fd_, ...) fault_fcntl_with(fd_, __VA_ARGS__, 0, 0)
#define fault_fcntl_with(fd_, op_, arg_, ...) fault_fcntl3(fd_, op_, arg_)
static int fault_fcntl3(int fd, int op, int arg) {
    return fails(C_fcntl) ? -1 : fcntl(fd, op, arg);
}

// These give the error itself.
static int fault_pthread_attr_init(pthread_attr_t *a) {
    return fails(C_pthread_attr_init) ? plan.f.error : pthread_attr_init(a);
}
static int fault_pthread_attr_setstacksize(pthread_attr_t *a, size_t n) {
    return fails(C_pthread_attr_setstacksize) ? plan.f.error : pthread_attr_setstacksize(a, n);
}
static int fault_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *),
                                void *arg) {
    return fails(C_pthread_create) ? plan.f.error : pthread_create(t, a, fn, arg);
}
static int fault_pthread_setname_np(pthread_t t, const char *name) {
    return fails(C_pthread_setname_np) ? plan.f.error : pthread_setname_np(t, name);
}
// These do not fail.
#define fault_pthread_attr_destroy(a_) pthread_attr_destroy(a_)
#define fault_pthread_sigmask(how_, set_, old_) pthread_sigmask(how_, set_, old_)
#define fault_clock_gettime(clock_, t_) clock_gettime(clock_, t_)
#define fault_timerfd_gettime(fd_, left_) timerfd_gettime(fd_, left_)
#define fault_timerfd_settime(fd_, flags_, new_, old_) timerfd_settime(fd_, flags_, new_, old_)

static __thread long fault_value;
static int fails_syscall(long number, intptr_t second) {
    int call = N_CALLS;
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) call = C_epoll_pwait2;
#endif
    if (number == SYS_getrandom) call = C_getrandom;
    if (number == SYS_futex && second == 137) call = C_futex_wait; // as volt.h spells it
    int what = fails(call);
    fault_value = what == ZERO ? 0 : -1;
    return what;
}
#define fault_syscall(number_, ...) fault_syscall_with(number_, __VA_ARGS__, 0, 0, 0, 0, 0)
#define fault_syscall_with(number_, a_, b_, c_, d_, e_, f_, ...)                                   \
    fault_syscall6(number_, (intptr_t)(a_), (intptr_t)(b_), (intptr_t)(c_), (intptr_t)(d_),        \
                   (intptr_t)(e_), (intptr_t)(f_))
static long fault_syscall6(long number, intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e,
                           intptr_t f) {
    return fails_syscall(number, b) ? fault_value : syscall(number, a, b, c, d, e, f);
}

// Descriptors that volt reads for itself.
enum { FD_DATA, FD_EVENT, FD_FILE, MOST_FDS = 1024 };
static unsigned char fd_kind[MOST_FDS];
static int note_fd(int fd, int kind) {
    if (fd >= 0 && fd < MOST_FDS)
        __atomic_store_n(&fd_kind[fd], (unsigned char)kind, __ATOMIC_RELAXED);
    return fd;
}
static int kind_of(int fd) {
    return fd >= 0 && fd < MOST_FDS ? __atomic_load_n(&fd_kind[fd], __ATOMIC_RELAXED) : FD_DATA;
}
// Not for sockets: there, says epoll(7), a short count means that the buffer is empty, or full.
static size_t shorten(int fd, size_t n) {
    int type;
    socklen_t len = sizeof type;
    return n > 1 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ? 1 : n;
}
static int fault_eventfd(unsigned n, int flags) {
    return fails(C_eventfd) ? -1 : note_fd(eventfd(n, flags), FD_EVENT);
}
static int fault_open(const char *path, int flags) {
    return fails(C_open) ? -1 : note_fd(open(path, flags), FD_FILE);
}
static ssize_t fault_read(int fd, void *buf, size_t n) {
    int kind = kind_of(fd);
    int what = fails(kind == FD_EVENT ? C_read_event : kind == FD_FILE ? C_read_file : C_read_data);
    if (what == SHORT) n = shorten(fd, n);
    return what == FAIL ? -1 : read(fd, buf, n);
}
// Sockets are read by these two, and counted as what they stand for.
static ssize_t fault_recv(int fd, void *buf, size_t n, int flags) {
    int what = fails(C_read_data);
    if (what == SHORT) n = shorten(fd, n);
    return what == FAIL ? -1 : recv(fd, buf, n, flags);
}
static ssize_t fault_recvmsg(int fd, struct msghdr *m, int flags) {
    return fails(C_readv) ? -1 : recvmsg(fd, m, flags);
}
// EAGAIN on an eventfd means that its counter is full: make it so.
static ssize_t fault_write(int fd, const void *buf, size_t n) {
    int is_event = kind_of(fd) == FD_EVENT, what = fails(is_event ? C_write_event : C_write_data);
    if (what == SHORT) n = shorten(fd, n);
    if (what != FAIL) return write(fd, buf, n);
    uint64_t full = UINT64_MAX - 1;
    if (is_event && plan.f.error == EAGAIN && write(fd, &full, sizeof full) < 0 && errno != EAGAIN)
        abort();
    errno = plan.f.error;
    return -1;
}
// EEXIST, ENOENT: make it so.
static int fault_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    int call = op == EPOLL_CTL_ADD ? C_epoll_add : op == EPOLL_CTL_MOD ? C_epoll_mod : C_epoll_del;
    if (call == C_epoll_add && (ev->events & EPOLLEXCLUSIVE)) call = C_epoll_watch;
    if (!fails(call)) return epoll_ctl(ep, op, fd, ev);
    if (plan.f.error == EEXIST) epoll_ctl(ep, EPOLL_CTL_ADD, fd, ev);
    if (plan.f.error == ENOENT) epoll_ctl(ep, EPOLL_CTL_DEL, fd, ev);
    errno = plan.f.error;
    return -1;
}
static int fault_epoll_wait(int ep, struct epoll_event *ev, int n, int ms) {
    int what = fails(C_epoll_wait);
    return what == PASS ? epoll_wait(ep, ev, n, ms) : what == ZERO ? 0 : -1;
}
// Interrupted, it goes on all the same.
static int fault_connect(int fd, const struct sockaddr *sa, socklen_t len) {
    if (!fails(C_connect)) return connect(fd, sa, len);
    if (plan.f.error == EINTR) connect(fd, sa, len);
    errno = plan.f.error;
    return -1;
}
// Whatever it gives, the descriptor is gone.
static int fault_close(int fd) {
    note_fd(fd, FD_DATA);
    int is_failing = fails(C_close), error = errno, rc = close(fd);
    if (!is_failing) return rc;
    errno = error;
    return -1;
}
static void *fault_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    if (fails(C_mmap)) return MAP_FAILED;
    void *p = mmap(at, n, prot, flags, fd, offset);
    if (p != MAP_FAILED) __atomic_add_fetch(&plan.mapped, (intptr_t)n, __ATOMIC_ACQ_REL);
    return p;
}
static int fault_munmap(void *p, size_t n) {
    __atomic_sub_fetch(&plan.mapped, (intptr_t)n, __ATOMIC_ACQ_REL);
    return fails(C_munmap) ? -1 : munmap(p, n);
}

#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- what each call may give

#define ERRORS(call_, count_, ...)                                                                 \
    { C_##call_, count_, 0, FAIL, { __VA_ARGS__ } }
#define HARMLESS(call_, count_, ...)                                                               \
    { C_##call_, count_, 1, FAIL, { __VA_ARGS__ } }
#define SPURIOUS(call_, what_, count_)                                                             \
    { C_##call_, count_, 1, what_, { -1 } }
static const struct {
    int call, count, is_harmless, what, errors[8];
} rows[] = {
    HARMLESS(accept4, ONCE, EMFILE, ENFILE, ENOBUFS, ENOMEM), // the server tries again
    HARMLESS(accept4, ONCE, ECONNABORTED, EPROTO, EINTR, ENETDOWN, EHOSTUNREACH),
    HARMLESS(accept4, STORM, EINTR, ECONNABORTED),
    ERRORS(accept4, ALWAYS, EMFILE, ENFILE, ENOBUFS, ENOMEM),
    HARMLESS(accept4, ALWAYS, ENOSYS, EPERM, EINVAL), // a filter that knows accept alone
    ERRORS(bind, ONCE, EADDRINUSE, EACCES, ENOMEM),
    HARMLESS(close, ALWAYS, EINTR, EIO),
    ERRORS(connect, ONCE, ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH, ETIMEDOUT),
    HARMLESS(connect, ONCE, EINTR),
    ERRORS(epoll_create1, ONCE, EMFILE, ENFILE, ENOMEM),
    ERRORS(epoll_create1, ALWAYS, EMFILE, ENFILE, ENOMEM),
    ERRORS(epoll_add, ONCE, ENOMEM, ENOSPC),
    ERRORS(epoll_add, ALWAYS, ENOMEM, ENOSPC),
    HARMLESS(epoll_watch, ALWAYS, EINVAL), // a kernel without EPOLLEXCLUSIVE
    ERRORS(epoll_watch, ONCE, ENOMEM, ENOSPC),
    HARMLESS(epoll_mod, ONCE, ENOENT),
    HARMLESS(epoll_del, ALWAYS, ENOENT, EBADF, EPERM),
    HARMLESS(epoll_wait, STORM, EINTR),
    SPURIOUS(epoll_wait, ZERO, STORM),
    HARMLESS(epoll_pwait2, ALWAYS, ENOSYS, EPERM, EINVAL),
    HARMLESS(epoll_pwait2, ONCE, ENOSYS, EPERM, EINVAL, EINTR),
    HARMLESS(epoll_pwait2, STORM, EINTR),
    SPURIOUS(epoll_pwait2, ZERO, STORM),
    ERRORS(eventfd, ONCE, EMFILE, ENFILE, ENOMEM),
    ERRORS(eventfd, ALWAYS, EMFILE, ENFILE, ENOMEM),
    HARMLESS(futex_wait, STORM, EAGAIN, EINTR),
    SPURIOUS(futex_wait, ZERO, STORM),
    HARMLESS(getrandom, ALWAYS, ENOSYS, EAGAIN, EINTR),
    ERRORS(getsockname, ONCE, ENOBUFS),
    ERRORS(getpeername, ONCE, ENOBUFS, ENOTCONN),
    ERRORS(getsockopt, ONCE, ENOBUFS, ENOMEM),
    ERRORS(listen, ONCE, EADDRINUSE),
    ERRORS(mmap, ONCE, ENOMEM),
    ERRORS(mmap, ALWAYS, ENOMEM),
    HARMLESS(munmap, ONCE, ENOMEM),
    HARMLESS(open, ALWAYS, ENOENT, EACCES, EMFILE),
    HARMLESS(open, ONCE, ENOENT, EINTR),
    HARMLESS(poll, STORM, EINTR),
    ERRORS(poll, ONCE, ENOMEM),
    ERRORS(pthread_attr_init, ONCE, ENOMEM),
    HARMLESS(pthread_attr_setstacksize, ALWAYS, EINVAL),
    ERRORS(pthread_create, ONCE, EAGAIN, EPERM, ENOMEM),
    ERRORS(pthread_create, ALWAYS, EAGAIN, EPERM, ENOMEM),
    HARMLESS(pthread_setname_np, ALWAYS, ERANGE, ENOMEM),
    ERRORS(read_data, ONCE, ECONNRESET, ETIMEDOUT, EIO, ENOMEM),
    ERRORS(read_data, ALWAYS, ECONNRESET),
    HARMLESS(read_data, STORM, EINTR),
    SPURIOUS(read_data, SHORT, STORM),
    HARMLESS(read_event, STORM, EINTR),
    HARMLESS(read_event, ONCE, EAGAIN),
    HARMLESS(read_file, ALWAYS, EIO, EINTR),
    ERRORS(readv, ONCE, ECONNRESET, EIO),
    HARMLESS(readv, STORM, EINTR),
    HARMLESS(sched_getaffinity, ALWAYS, EINVAL, ENOSYS),
    ERRORS(send, ONCE, EPIPE, ECONNRESET, ENOBUFS, ETIMEDOUT, ENOMEM),
    ERRORS(send, ALWAYS, EPIPE, ENOBUFS),
    HARMLESS(send, STORM, EINTR),
    ERRORS(sendmsg, ONCE, EPIPE, ECONNRESET, ENOBUFS),
    HARMLESS(sendmsg, STORM, EINTR),
    ERRORS(setsockopt, ONCE, ENOBUFS, ENOMEM, ENOPROTOOPT),
    ERRORS(shutdown, ONCE, ENOTCONN),
    HARMLESS(sigtimedwait, STORM, EINTR),
    ERRORS(socket, ONCE, EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES, EAFNOSUPPORT),
    HARMLESS(sysconf, ALWAYS, EINVAL),
    ERRORS(timerfd_create, ONCE, EMFILE, ENFILE, ENOMEM, ENODEV),
    ERRORS(write_data, ONCE, EPIPE, EIO, ENOMEM),
    HARMLESS(write_data, STORM, EINTR),
    SPURIOUS(write_data, SHORT, STORM),
    HARMLESS(write_event, STORM, EINTR),
    HARMLESS(write_event, ALWAYS, EAGAIN),
    ERRORS(writev, ONCE, EPIPE, EIO),
    HARMLESS(writev, STORM, EINTR),
};

// ---- a scenario is run with each fault; it gives 0 or -errno

typedef int scenario(void);

static const char *doing; // for the report of a hang
static void still_running(int signal_number) {
    char text[200];
    int n = snprintf(text, sizeof text, "hangs: %s, %s, error %d, %d times from call %d on\n",
                     doing, call_names[plan.f.call], plan.f.error, plan.f.count, plan.k);
    if (write(STDOUT_FILENO, text, (size_t)n) < 0) abort();
    (void)signal_number;
    abort();
}
static void watch_over(int seconds) {
    const char *factor = getenv("TEST_TIMEOUT_FACTOR");
    struct itimerval t;
    memset(&t, 0, sizeof t);
    t.it_value.tv_sec = (time_t)(seconds * (factor ? atof(factor) : 1));
    signal(SIGALRM, still_running);
    setitimer(ITIMER_REAL, &t, NULL);
}

// Errors that the rest of a program gives after an error in one of its parts.
static int is_consequence(int rc) {
    static const int codes[] = { EPIPE, ECONNRESET, ETIMEDOUT, ECANCELED, ECONNREFUSED };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (rc == -codes[i]) return 1;
    return 0;
}
static void check_run(scenario *run, int fds) {
    watch_over(8);
    int rc = run();
    const fault *f = &plan.f;
    int may_fail = plan.n_hits && !f->is_harmless;
    int is_ok = rc == 0 || (may_fail && (rc == -f->error || is_consequence(rc)));
    if (!is_ok)
        test_fail(__FILE__, __LINE__, "%s, %s: error %d, %d times from call %d on: gave %d", doing,
                  call_names[f->call], f->error, f->count, plan.k, rc);
    plan.f.what = PASS;
    if (test_count_fds() != fds)
        test_fail(__FILE__, __LINE__, "%s, %s: error %d, from call %d on: %d descriptors, not %d",
                  doing, call_names[f->call], f->error, plan.k, test_count_fds(), fds);
    CHECK_EQ(plan.mapped, 0);
    test_check_heap();
}
// All k until the call is not reached any more. Returns how many there were.
static int try_fault(scenario *run, fault f) {
    int fds = test_count_fds();
    for (int k = 1;; k++) {
        memset(&plan, 0, sizeof plan);
        plan.f = f;
        plan.k = k;
        check_run(run, fds);
        if (!plan.n_hits) return k - 1;
    }
}
static void try_all(const char *name, scenario *run) {
    int n_triples = 0, n_faults = 0;
    doing = name;
    plan.f.what = PASS;
    CHECK_EQ(run(), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int e = 0; e < 8 && rows[i].errors[e]; e++) {
            fault f = { .call = rows[i].call, .what = rows[i].what, .count = rows[i].count };
            f.error = rows[i].errors[e] > 0 ? rows[i].errors[e] : 0;
            f.is_harmless = rows[i].is_harmless;
            int n = try_fault(run, f);
            n_triples += n;
            n_faults += n > 0;
        }
    printf("%s: %d faults, %d triples of call, number and error\n", name, n_faults, n_triples);
    watch_over(0);
    CHECK(n_triples > 20);
}

// ---- scenarios

// Memory from the kernel, the seed too.
static int create_and_destroy_with(uint32_t workers) {
    volt_config c;
    volt_rt *rt = NULL;
    memset(&c, 0, sizeof c);
    c.workers = workers;
    int rc = volt_create(&c, &rt);
    if (rc < 0) {
        CHECK(!rt);
        return rc;
    }
    giver g = { .value = 0 };
    rc = volt_block_on(rt, giver_run, &g);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    return rc;
}
static int create_and_destroy(void) { return create_and_destroy_with(2); }
static int create_with_defaults(void) { return create_and_destroy_with(0); }

// The first error of a program is what it gives.
static int64_t worse(int64_t so_far, int64_t rc) { return so_far < 0 || rc >= 0 ? so_far : rc; }

typedef struct {
    volt_frame frame;
    volt_group group;
    int i;
    int64_t rc, first;
} timers;
static volt_poll timers_run(volt_cx *cx, void *arg) {
    timers *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < 3; t->i++) {
        t->first = worse(t->first, VOLT_GROUP_SPAWN(cx, &t->group, napper_run,
                                                    (napper){ .d = VOLT_US(300 * (t->i + 1)) }));
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    }
    VOLT_AWAIT(t->rc, volt_group_close(cx, &t->group));
    VOLT_END(worse(t->first, t->rc));
}
static int run_with_timers(void) {
    volt_config c;
    timers t;
    memset(&c, 0, sizeof c);
    memset(&t, 0, sizeof t);
    c.workers = 2;
    return volt_run(&c, timers_run, &t);
}

// Echo: the payload does not fit the socket's buffer, so that both sides have to wait, and writes
// are short.
enum { PAYLOAD = 20000 };
typedef struct {
    volt_frame frame;
    volt_arm write, read;
    int fd;
    int64_t rc;
    char out[PAYLOAD], in[PAYLOAD];
} caller;
static volt_poll caller_run(volt_cx *cx, void *arg) {
    caller *c = arg;
    VOLT_BEGIN(cx, c);
    for (int i = 0; i < PAYLOAD; i++) c->out[i] = (char)(i * 7);
    VOLT_AWAIT(c->rc, VOLT_TRY_JOIN_ALL(
                          VOLT_ARM(&c->write, volt_write_all(cx, c->fd, c->out, PAYLOAD)),
                          VOLT_ARM(&c->read, volt_read_exact(cx, c->fd, c->in, PAYLOAD))));
    if (c->rc >= 0) CHECK(memcmp(c->in, c->out, PAYLOAD) == 0);
    volt_close(cx, c->fd);
    VOLT_END(c->rc < 0 ? c->rc : 0);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    caller caller;
    int fd[2];
    int64_t rc, first;
} pair_echo;
static volt_poll pair_echo_run(volt_cx *cx, void *arg) {
    pair_echo *p = arg;
    VOLT_BEGIN(cx, p);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
    for (int i = 0; i < 2; i++) p->first = worse(p->first, volt_set_buffers(p->fd[i], 1, 0));
    p->caller.fd = p->fd[0];
    p->rc = VOLT_GROUP_SPAWN(cx, &p->group, mirror_run,
                             (mirror){ .fd = p->fd[1], .cap = MIRROR_MOST });
    if (p->rc < 0) close(p->fd[1]);
    p->first = worse(p->first, p->rc);
    VOLT_AWAIT(p->rc, caller_run(cx, &p->caller));
    p->first = worse(p->first, p->rc);
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->group));
    p->first = worse(p->first, p->rc);
    VOLT_END(p->first);
}
static int run_two(volt_fn *fn, void *state) {
    volt_config c = test_config(2);
    return volt_run(&c, fn, state);
}
static int echo_over_a_socketpair(void) {
    static pair_echo p;
    memset(&p, 0, sizeof p);
    return run_two(pair_echo_run, &p);
}

// The same over TCP.
typedef struct {
    volt_frame frame;
    volt_timer timer;
    int fd, tries;
    int64_t rc;
    mirror mirror;
} server;
static volt_time patience(void) { // an accept that can never succeed is given up
    return plan.f.call == C_accept4 && plan.f.count == ALWAYS ? VOLT_MS(30) : VOLT_S(100);
}
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->tries = 0; s->tries < 3; s->tries++) { // EPERM is of the connection, says accept(2)
        VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, patience(), volt_accept(cx, s->fd)));
        if (s->rc != -EPERM) break;
    }
    volt_close(cx, s->fd);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    s->mirror.fd = (int)s->rc;
    s->mirror.cap = MIRROR_MOST;
    VOLT_AWAIT(s->rc, mirror_run(cx, &s->mirror));
    VOLT_END(s->rc);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    caller caller;
    volt_addr addr, peer;
    int fd;
    int64_t rc, first;
} tcp_echo;
static int tcp_listen(tcp_echo *t) {
    t->fd = volt_listen("127.0.0.1", 0, NULL);
    if (t->fd < 0) return t->fd;
    int rc = volt_local_addr(t->fd, &t->addr);
    if (rc < 0) close(t->fd);
    return rc;
}
static volt_poll tcp_echo_run(volt_cx *cx, void *arg) {
    tcp_echo *t = arg;
    VOLT_BEGIN(cx, t);
    t->first = tcp_listen(t);
    if (t->first < 0) VOLT_RETURN(t->first);
    t->first = VOLT_GROUP_SPAWN(cx, &t->group, server_run, (server){ .fd = t->fd });
    if (t->first < 0) close(t->fd);
    VOLT_AWAIT(t->rc, volt_connect(cx, &t->addr));
    t->first = worse(t->first, t->rc);
    if (t->rc < 0) {
        VOLT_AWAIT(volt_group_close(cx, &t->group));
        VOLT_RETURN(t->first);
    }
    t->caller.fd = (int)t->rc;
    t->first = worse(t->first, volt_peer_addr(t->caller.fd, &t->peer));
    VOLT_AWAIT(t->rc, caller_run(cx, &t->caller));
    t->first = worse(t->first, t->rc);
    VOLT_AWAIT(t->rc, volt_group_wait(cx, &t->group));
    VOLT_END(worse(t->first, t->rc));
}
static int echo_over_tcp(void) {
    static tcp_echo t;
    memset(&t, 0, sizeof t);
    return run_two(tcp_echo_run, &t);
}

// Readiness of descriptors of others: alone, and in a set.
typedef struct {
    volt_frame frame;
    int fd;
} poker;
static volt_poll poker_run(volt_cx *cx, void *arg) {
    poker *p = arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(write(p->fd, "x", 1), 1);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(write(p->fd, "y", 1), 1);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    volt_pollset set;
    volt_pollev ev[2];
    int fd[2];
    int64_t rc, first;
    char c[4];
} watcher;
static volt_poll watcher_run(volt_cx *cx, void *arg) {
    watcher *w = arg;
    VOLT_BEGIN(cx, w);
    w->first = VOLT_GROUP_SPAWN(cx, &w->group, poker_run, (poker){ .fd = w->fd[1] });
    if (w->first < 0) VOLT_RETURN(w->first);
    VOLT_AWAIT(w->rc, volt_writable(cx, w->fd[0]));
    w->first = worse(w->first, w->rc);
    VOLT_AWAIT(w->rc, volt_readable(cx, w->fd[0]));
    w->first = worse(w->first, w->rc);
    if (w->rc == 0) CHECK_EQ(read(w->fd[0], w->c, 1), 1);
    w->rc = volt_pollset_open(&w->set);
    if (w->rc == 0) w->rc = volt_pollset_set(&w->set, w->fd[0], VOLT_IN);
    if (w->rc == 0) VOLT_AWAIT(w->rc, volt_pollset_wait(cx, &w->set, w->ev, 2));
    if (w->rc >= 0) CHECK(w->rc == 1 && w->ev[0].fd == w->fd[0] && w->ev[0].events == VOLT_IN);
    w->first = worse(w->first, w->rc);
    volt_pollset_close(cx, &w->set);
    volt_fd_release(cx, w->fd[0]);
    VOLT_AWAIT(w->rc, volt_group_close(cx, &w->group));
    VOLT_END(w->first);
}
static int readiness_and_a_poll_set(void) {
    static watcher w;
    memset(&w, 0, sizeof w);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w.fd), 0);
    int rc = run_two(watcher_run, &w);
    close(w.fd[0]);
    close(w.fd[1]);
    return rc;
}

// A pipe and vectors: write, writev and readv instead of send; sendmsg on a socket.
typedef struct {
    volt_frame frame;
    int fd;
    size_t left;
    struct iovec iov[2];
    char buf[200];
    int64_t rc;
} drain;
static volt_poll drain_run(volt_cx *cx, void *arg) {
    drain *d = arg;
    VOLT_BEGIN(cx, d);
    while (d->left > 0) {
        d->iov[0].iov_base = d->buf;
        d->iov[0].iov_len = 100;
        d->iov[1].iov_base = d->buf + 100;
        d->iov[1].iov_len = 100;
        VOLT_AWAIT(d->rc, volt_readv(cx, d->fd, d->iov, 2));
        if (d->rc <= 0) break;
        d->left -= (size_t)d->rc;
    }
    volt_close(cx, d->fd);
    VOLT_END(d->rc < 0 ? d->rc : 0);
}
enum { PIPED = 400 };
typedef struct {
    volt_frame frame;
    volt_group group;
    struct iovec iov[2];
    int fd[2], is_socket;
    int64_t rc, first;
    char buf[PIPED];
} flow;
static volt_poll flow_run(volt_cx *cx, void *arg) {
    flow *f = arg;
    VOLT_BEGIN(cx, f);
    if (f->is_socket) CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, f->fd), 0);
    else CHECK_EQ(pipe(f->fd), 0);
    f->first = VOLT_GROUP_SPAWN(cx, &f->group, drain_run,
                                (drain){ .fd = f->fd[0], .left = PIPED + 200 });
    if (f->first < 0) close(f->fd[0]);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100))); // the reader waits first
    VOLT_AWAIT(f->rc, volt_write_all(cx, f->fd[1], f->buf, PIPED));
    f->first = worse(f->first, f->rc);
    f->iov[0].iov_base = f->iov[1].iov_base = f->buf;
    f->iov[0].iov_len = f->iov[1].iov_len = 100;
    VOLT_AWAIT(f->rc, volt_writev(cx, f->fd[1], f->iov, 2));
    f->first = worse(f->first, f->rc);
    if (f->is_socket) f->first = worse(f->first, volt_sock_shutdown(f->fd[1], SHUT_WR));
    volt_close(cx, f->fd[1]);
    VOLT_AWAIT(f->rc, volt_group_wait(cx, &f->group));
    VOLT_END(worse(f->first, f->rc));
}
static int flow_over(int is_socket) {
    static flow f;
    memset(&f, 0, sizeof f);
    f.is_socket = is_socket;
    return run_two(flow_run, &f);
}
static int pipe_and_vectors(void) { return flow_over(0); }
static int socket_and_vectors(void) { return flow_over(1); }

#define FAULT_TEST(name_) TEST(fault_is_reported_or_harmless_in_##name_) { try_all(#name_, name_); }
FAULT_TEST(create_and_destroy)
FAULT_TEST(create_with_defaults)
FAULT_TEST(run_with_timers)
FAULT_TEST(echo_over_a_socketpair)
FAULT_TEST(echo_over_tcp)
FAULT_TEST(readiness_and_a_poll_set)
FAULT_TEST(pipe_and_vectors)
FAULT_TEST(socket_and_vectors)

// ---- exact results

// Each resource of the first worker missing: its error, and nothing else is left.
static int create_without(int which, int k, int error) {
    memset(&plan, 0, sizeof plan);
    plan.f = (fault){ .call = which, .what = FAIL, .error = error, .count = ONCE };
    plan.k = k;
    int rc = create_and_destroy_with(2);
    CHECK_EQ(plan.n_hits, 1);
    return rc;
}
TEST(create_gives_error_of_failed_start) {
    static const int errors[] = { EMFILE, ENFILE, ENOMEM };
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(create_without(C_epoll_create1, 1, errors[i]), -errors[i]);
        CHECK_EQ(create_without(C_eventfd, 1, errors[i]), -errors[i]);
        CHECK_EQ(create_without(C_timerfd_create, 1, errors[i]), -errors[i]);
        CHECK_EQ(create_without(C_epoll_add, 1, errors[i]), -errors[i]);
        CHECK_EQ(create_without(C_epoll_watch, 1, errors[i]), -errors[i]);
        // the second worker's: it goes on with one
        CHECK_EQ(create_without(C_epoll_create1, 2, errors[i]), 0);
        CHECK_EQ(create_without(C_eventfd, 2, errors[i]), 0);
        CHECK_EQ(create_without(C_epoll_add, 2, errors[i]), 0);
        CHECK_EQ(create_without(C_epoll_watch, 2, errors[i]), 0);
    }
    // a filter's refusal shows at the start, not by workers that spin or hang
    CHECK_EQ(create_without(C_epoll_wait, 1, EPERM), -EPERM);
    CHECK_EQ(create_without(C_epoll_wait, 1, ENOSYS), -ENOSYS);
    CHECK_EQ(create_without(C_epoll_wait, 1, EINTR), 0);
}

// A filter may refuse every wait for events: no worker could live by then, and none is started.
static int start_where_waits_are_refused(int how, uint32_t workers, int error) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    giver g = { .value = 0 };
    memset(&plan, 0, sizeof plan);
    plan.refused_waits = error;
    watch_over(8);
    if (how == 0) return create_and_destroy_with(workers);
    if (how == 1) return volt_run(&c, giver_run, &g);
    c.is_guest = 1;
    int rc = volt_create(&c, &rt);
    CHECK(!rt);
    return rc;
}
TEST(start_without_any_wait_for_events_gives_its_error) {
    static const int errors[] = { EPERM, ENOSYS };
    int fds = test_count_fds(), threads = test_count_threads();
    doing = "start_without_any_wait_for_events_gives_its_error";
    for (int i = 0; i < 2; i++)
        for (int how = 0; how < 3; how++)
            for (uint32_t workers = 0; workers <= 2; workers++) { // 0: as many as there are CPUs
                CHECK_EQ(start_where_waits_are_refused(how, workers, errors[i]), -errors[i]);
                CHECK(plan.n_hits > 0);
                CHECK_EQ(plan.mapped, 0);
                test_check_heap();
                test__check_left_over(fds, threads);
            }
    watch_over(0);
}

// Without epoll_pwait2 a sleep is rounded up to whole milliseconds, not down to a spin.
typedef struct {
    volt_frame frame;
    int i;
    volt_time start, slept;
    volt_counters end;
} nap;
static volt_poll nap_run(volt_cx *cx, void *arg) {
    nap *n = arg;
    VOLT_BEGIN(cx, n);
    n->start = volt_now();
    for (n->i = 0; n->i < 20; n->i++) VOLT_AWAIT(volt_sleep(cx, VOLT_US(1300)));
    n->slept = volt_now() - n->start;
    volt_stats(cx->rt_, &n->end);
    VOLT_END(0);
}
TEST(timers_round_up_to_milliseconds_without_epoll_pwait2) {
    static const int errors[] = { ENOSYS, EPERM, EINVAL };
    for (int i = 0; i < 3; i++) {
        nap n;
        memset(&plan, 0, sizeof plan);
        memset(&n, 0, sizeof n);
        plan.f = (fault){ .call = C_epoll_pwait2, .what = FAIL, .count = ALWAYS };
        plan.f.error = errors[i];
        plan.k = 1;
        CHECK_EQ(run_on(1, nap_run, &n), 0);
        CHECK(n.slept >= 20 * VOLT_US(1300));
        CHECK(plan.n_hits > 0);
        CHECK(n.end.parks <= 20 * 3 + 5);
    }
}
