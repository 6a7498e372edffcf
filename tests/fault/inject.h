// SPDX-License-Identifier: MIT OR 0BSD
// The injector: a wrapper for each call that volt.h makes through its seam. One plan at a time says
// which call fails, when and how; a ledger counts open descriptors, mappings, allocations and
// threads, so that a leak or a second close of one descriptor shows at once. Include it before
// volt.h. A call fails as in the kernel: where an error implies a state of a descriptor, the
// wrapper brings that state about.
#ifndef VOLT_FAULT_INJECT_H
#define VOLT_FAULT_INJECT_H

#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include "start_by_fork.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// ---- the kinds of calls. Calls with several uses are distinguished.
//   alloc: the allocator hook   clock: a reading   *_event: eventfds   *_file: below /proc and /sys
//   epoll_own: the ADD of an eventfd, or of a guest's timer; epoll_watch: of the watchdog's timer
//   epoll_first: the first epoll_wait on an epoll instance, which also counts as epoll_wait
//   fcntl_set: F_SETFL; fcntl_pipe: F_SETPIPE_SZ   getsockopt_error: SO_ERROR
//   fcntl_get, fcntl_stored: F_GETFL, the second of volt_file_open's descriptors
//   futex_timed: a wait with a deadline            nofile: RLIMIT_NOFILE
//   close_file: of a descriptor from openat        getaddrinfo_system: EAI_SYSTEM, with an errno
//   dirents: getdents64                            fork: VOLT_START_CHILD
//   kill_group: of a negative number               openat_new: with O_EXCL, which counts as openat
//   open_device: below /dev                        open_dir: with O_DIRECTORY
//   reopen: below /proc/self/fd
//   pipe2_child: without O_NONBLOCK                read_report: from such a pipe
//   read_pipe: from another pipe of pipe2          timerfd_settime_at: to an absolute time
//   read_signal: from a signalfd, or from the timer of a volt_sleep_on
//   recv_message, send_message: with an address, with control data, or of a datagram
//   send_joined: with UDP_SEGMENT
#define CALLS(X_)                                                                                  \
    X_(accept4) X_(alloc) X_(bind) X_(chmod) X_(chown) X_(clock) X_(close) X_(close_file)          \
    X_(connect) X_(dirents) X_(epoll_add) X_(epoll_create1) X_(epoll_del) X_(epoll_first)          \
    X_(epoll_mod) X_(epoll_own) X_(epoll_pwait2) X_(epoll_wait) X_(epoll_watch) X_(eventfd)        \
    X_(fchmod) X_(fcntl_stored)                                                                    \
    X_(fcntl_get) X_(fcntl_pipe) X_(fcntl_set) X_(fdatasync) X_(flock) X_(fork) X_(fsync)          \
    X_(ftruncate)                                                                                  \
    X_(futex_timed) X_(futex_wait) X_(getaddrinfo) X_(getaddrinfo_system) X_(getpeername)          \
    X_(getrandom) X_(getsockname) X_(getsockopt) X_(getsockopt_cred) X_(getsockopt_domain)         \
    X_(getsockopt_error) X_(getsockopt_pidfd) X_(if_indextoname) X_(if_nametoindex) X_(ioctl)      \
    X_(ioctl_nxcl)                                                                                 \
    X_(kill) X_(kill_group) X_(listen) X_(mkdir) X_(mmap) X_(munmap) X_(nofile) X_(open)           \
    X_(open_device) X_(open_dir) X_(openat) X_(openat_new) X_(pidfd_open) X_(pidfd_send) X_(pipe2) \
    X_(pipe2_child) X_(poll) X_(pread) X_(preadv2) X_(pthread_attr_init)                           \
    X_(pthread_attr_setstacksize) X_(pthread_create) X_(pthread_setname_np) X_(pwrite)             \
    X_(read_data) X_(read_event) X_(read_file) X_(read_pipe) X_(read_report) X_(read_signal)       \
    X_(readv) X_(recv_message) X_(recvmmsg) X_(rename) X_(reopen) X_(rmdir) X_(sched_getaffinity)  \
    X_(send) X_(send_joined) X_(send_message) X_(sendfile) X_(sendmmsg) X_(sendmsg) X_(setsockopt) \
    X_(shutdown) X_(signalfd) X_(sigtimedwait) X_(socket) X_(socketpair) X_(splice) X_(stat)       \
    X_(sysconf) X_(tcgetattr) X_(tcsetattr) X_(timerfd_create) X_(timerfd_settime)                 \
    X_(timerfd_settime_at) X_(unlink) X_(waitid) X_(waitpid) X_(write_data) X_(write_event)        \
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

// PASS: unchanged. FAIL with an error. ZERO: 0 at once. SHORT: moves at most `value` bytes. BITS
// and HUPS: the result has more events than the kernel reported. JUMP: from then on the clock is
// ahead by `value` ms. DIP: this one reading is `value` ms behind. LIMIT: only k - 1 descriptors
// more can be opened.
enum { PASS, FAIL, ZERO, SHORT, BITS, HUPS, JUMP, DIP, LIMIT };
enum { ONCE = 1, STORM = 60, ALWAYS = 1 << 30 }; // number of calls in a row, from the k-th on
typedef struct fault {
    int call, effect, value, count; // value: errno, bytes or ms
} fault;

// FD_CHILD: an end of a pipe that is not non-blocking yet: of a child, or of its report.
// FD_PIPE: of another pipe of pipe2, which volt_copy reads only while it has bytes.
enum {
    FD_FREE,
    FD_DATA,
    FD_EVENT,
    FD_FILE,
    FD_STORED,
    FD_CHILD,
    FD_PIPE,
    FD_SIGNAL,
    FD_EPOLL_NEW,
    MOST_FDS = 1024
};
static struct {
    fault f;
    int k;
    int is_on;          // calls count, and fail, only while it is set
    int n[N_CALLS];     // calls so far
    int n_hits;         // of these, the failed ones
    int n_all;          // calls of all kinds, also while it is off: a spin shows here
    int n_open;         // descriptors
    int n_threads;      // started and not joined
    int n_children;     // started and not collected
    int n_lists;        // address lists from getaddrinfo that are not freed
    int64_t mapped;     // bytes
    int64_t n_blocks, n_bytes; // of the allocator hook
    int64_t clock_offset;      // ns
    int n_forbidden;           // > 0: an allocation is an error
    int n_short_accepts;       // accepts still to fail with EMFILE, regardless of the plan
} inject;
static unsigned char fd_kind[MOST_FDS];
static struct {
    int ep;
    struct epoll_event ev;
} fd_interest[MOST_FDS];
static int fd_original[MOST_FDS]; // of a terminal that was opened once more: the first descriptor
static pthread_mutex_t fd_lock = PTHREAD_MUTEX_INITIALIZER;

// Of one run: more is a spin. Byte by byte the longest run makes some 45000.
enum { MOST_CALLS = 20000, MOST_SHORT_CALLS = 200000 };

// Ends the process; the driver prints the text.
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...);
#define CHECK(c_) ((c_) ? (void)0 : fail("%s:%d: CHECK(%s)", __FILE__, __LINE__, #c_))
#define CHECK_EQ(a_, b_)                                                                           \
    check_equal(__FILE__, __LINE__, #a_ " == " #b_, (int64_t)(a_), (int64_t)(b_))
static void check_equal(const char *file, int line, const char *what, int64_t a, int64_t b) {
    if (a != b) fail("%s:%d: %s: %" PRId64 " and %" PRId64, file, line, what, a, b);
}

static int add(int *word, int n) { return __atomic_add_fetch(word, n, __ATOMIC_ACQ_REL); }
static void add64(int64_t *word, int64_t n) { __atomic_add_fetch(word, n, __ATOMIC_ACQ_REL); }
static int get(const int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static void set(int *word, int n) { __atomic_store_n(word, n, __ATOMIC_RELEASE); }

static int is_hit(void) { return get(&inject.n_hits) > 0; } // has any call failed so far?

// Decides the result of this call. Sets errno if it fails.
static int fails(int call) {
    const fault *f = &inject.f;
    // A guest's timer that has expired and cannot be set again stays readable, so the guest's loop
    // spins until the next deadline.
    int is_long = f->effect == SHORT || (f->call == C_timerfd_settime && f->count == ALWAYS);
    int most = is_long ? MOST_SHORT_CALLS : MOST_CALLS;
    if (add(&inject.n_all, 1) > most) fail("spins: %d calls", most);
    if (!get(&inject.is_on)) return PASS;
    int n = add(&inject.n[call], 1);
    if (call != f->call || f->effect == PASS || n < inject.k || n - inject.k >= f->count)
        return PASS;
    add(&inject.n_hits, 1);
    errno = f->value;
    return f->effect;
}

// ---- descriptors

// Called after a failure that the limit of descriptors may have caused.
static void note_limit(int error) {
    if (error == EMFILE && inject.f.effect == LIMIT) add(&inject.n_hits, 1);
}
static int opened(int fd, int kind) {
    if (fd < 0) note_limit(errno);
    if (fd < 0) return fd;
    CHECK(fd < MOST_FDS);
    set(&fd_original[fd], fd);
    __atomic_store_n(&fd_kind[fd], (unsigned char)kind, __ATOMIC_RELEASE);
    add(&inject.n_open, 1);
    return fd;
}
static int opened_two(int rc, const int fd[2], int kind) {
    opened(rc < 0 ? -1 : fd[0], kind);
    if (rc == 0) opened(fd[1], kind);
    return rc;
}
static int kind_of(int fd) {
    return fd >= 0 && fd < MOST_FDS ? __atomic_load_n(&fd_kind[fd], __ATOMIC_ACQUIRE) : FD_FREE;
}
// Called before close(2): from then on the number may belong to another thread.
static void closing(int fd) {
    if (fd < 0 || fd >= MOST_FDS || kind_of(fd) == FD_FREE)
        fail("close of %d, which is not open", fd);
    __atomic_store_n(&fd_kind[fd], (unsigned char)FD_FREE, __ATOMIC_RELEASE);
    add(&inject.n_open, -1);
}
static int socket_option(int fd, int name) {
    int value = 0, error = errno;
    socklen_t len = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0) value = -1;
    errno = error;
    return value;
}
static int is_inet(int fd) {
    int domain = socket_option(fd, SO_DOMAIN);
    return domain == AF_INET || domain == AF_INET6;
}
static void note_interest(int ep, int op, int fd, const struct epoll_event *ev) {
    if (fd < 0 || fd >= MOST_FDS) return;
    pthread_mutex_lock(&fd_lock);
    fd_interest[fd].ep = op == EPOLL_CTL_DEL ? -1 : ep;
    if (op != EPOLL_CTL_DEL) fd_interest[fd].ev = *ev;
    pthread_mutex_unlock(&fd_lock);
}
// EAGAIN makes an edge-triggered reader wait for the next edge, so one must follow.
static void make_an_edge(int fd) {
    int error = errno;
    if (fd < 0 || fd >= MOST_FDS) return;
    fd = get(&fd_original[fd]);
    pthread_mutex_lock(&fd_lock);
    struct epoll_event ev = fd_interest[fd].ev;
    if (fd_interest[fd].ep > 0 && (ev.events & EPOLLET))
        epoll_ctl(fd_interest[fd].ep, EPOLL_CTL_MOD, fd, &ev);
    pthread_mutex_unlock(&fd_lock);
    errno = error;
}

// ---- the seam: one wrapper for each call

#define VOLT_SYS(name_, ...) fault_##name_(__VA_ARGS__)
#define VOLT_PANIC(text_) fail("%s", text_)
#define VOLT_PIPE_MANY 2 // so that the copies of the scenarios ask for a larger pipe
#define VOLT_FORK_WORD() NULL // as before Linux 4.14
#define fault_prctl prctl
#define fault_cfgetospeed cfgetospeed
#define fault_cfsetispeed cfsetispeed
#define fault_cfsetospeed cfsetospeed
#define fault_fstat fstat
#define fault_isatty isatty
#define fault_madvise madvise
#define fault_mincore mincore
#define fault_pthread_setcancelstate pthread_setcancelstate
#define VOLT_GETPID() getpid()

// These and the following are functions, so that a line of volt.h has the same branches here as
// elsewhere: see make coverage.
#define FAULTY(type_, call_, parameters_, arguments_)                                              \
    static type_ fault_##call_ parameters_ {                                                       \
        return fails(C_##call_) ? -1 : call_ arguments_;                                           \
    }
FAULTY(int, bind, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len))
FAULTY(int, flock, (int fd, int how), (fd, how))
FAULTY(int, getpeername, (int fd, struct sockaddr *a, socklen_t *len), (fd, a, len))
FAULTY(int, getsockname, (int fd, struct sockaddr *a, socklen_t *len), (fd, a, len))
#define fault_ioctl(fd_, ...) fault_ioctl_with(fd_, __VA_ARGS__, NULL, 0)
#define fault_ioctl_with(fd_, request_, arg_, ...) fault_ioctl3(fd_, request_, arg_)
static int fault_ioctl3(int fd, unsigned long request, void *arg) {
    return fails(request == TIOCNXCL ? C_ioctl_nxcl : C_ioctl) ? -1 : ioctl(fd, request, arg);
}
FAULTY(int, listen, (int fd, int backlog), (fd, backlog))
FAULTY(int, poll, (struct pollfd *p, nfds_t n, int ms), (p, n, ms))
FAULTY(int, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *set), (pid, n, set))
FAULTY(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
       (fd, level, name, value, len))
FAULTY(long, sysconf, (int name), (name))
FAULTY(int, tcgetattr, (int fd, struct termios *t), (fd, t))
FAULTY(int, tcsetattr, (int fd, int when, const struct termios *t), (fd, when, t))
static int fault_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                                 struct itimerspec *old) {
    int call = flags & TFD_TIMER_ABSTIME ? C_timerfd_settime_at : C_timerfd_settime;
    return fails(call) ? -1 : timerfd_settime(fd, flags, t, old);
}
#define fault_timerfd_gettime timerfd_gettime

#define OPENS(call_, kind_, parameters_, arguments_)                                               \
    static int fault_##call_ parameters_ {                                                         \
        return fails(C_##call_) ? -1 : opened(call_ arguments_, kind_);                            \
    }
OPENS(epoll_create1, FD_EPOLL_NEW, (int flags), (flags))
// The flags fail: an older kernel has the call without them.
static int fault_eventfd(unsigned n, int flags) {
    return flags && fails(C_eventfd) ? -1 : opened(eventfd(n, flags), FD_EVENT);
}
static int fault_open(const char *path, int flags) {
    int call = strncmp(path, "/proc/self/fd/", 14) == 0 ? C_reopen
             : strncmp(path, "/dev/", 5) == 0           ? C_open_device
             : flags & O_DIRECTORY                      ? C_open_dir
                                                        : C_open;
    int fd = fails(call) ? -1 : opened(open(path, flags), call == C_open ? FD_FILE : FD_DATA);
    if (call == C_reopen && fd >= 0) set(&fd_original[fd], atoi(path + 14));
    return fd;
}
OPENS(signalfd, FD_SIGNAL, (int fd, const sigset_t *set, int flags), (fd, set, flags))
OPENS(socket, FD_DATA, (int domain, int type, int protocol), (domain, type, protocol))
OPENS(timerfd_create, clock == CLOCK_MONOTONIC ? FD_DATA : FD_SIGNAL,
      (clockid_t clock, int flags), (clock, flags))

static int fault_pipe2(int fd[2], int flags) {
    int is_child = !(flags & O_NONBLOCK);
    if (fails(is_child ? C_pipe2_child : C_pipe2)) return -1;
    return opened_two(pipe2(fd, flags), fd, is_child ? FD_CHILD : FD_PIPE);
}
static int fault_socketpair(int domain, int type, int protocol, int fd[2]) {
    if (fails(C_socketpair)) return -1;
    return opened_two(socketpair(domain, type, protocol, fd), fd, FD_DATA);
}

// These return 0, or NULL, if they fail.
static unsigned fault_if_nametoindex(const char *name) {
    return fails(C_if_nametoindex) ? 0 : if_nametoindex(name);
}
static char *fault_if_indextoname(unsigned index, char *name) {
    return fails(C_if_indextoname) ? NULL : if_indextoname(index, name);
}

// These return the error itself.
static int fault_pthread_attr_init(pthread_attr_t *a) {
    return fails(C_pthread_attr_init) ? inject.f.value : pthread_attr_init(a);
}
static int fault_pthread_attr_setstacksize(pthread_attr_t *a, size_t n) {
    return fails(C_pthread_attr_setstacksize) ? inject.f.value : pthread_attr_setstacksize(a, n);
}
static int fault_pthread_setname_np(pthread_t t, const char *name) {
    return fails(C_pthread_setname_np) ? inject.f.value : pthread_setname_np(t, name);
}
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) fault_thread(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) (add(&inject.n_threads, -1), pthread_join(thread_, NULL))
static int fault_thread(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg) {
    if (fails(C_pthread_create)) {
        usleep(50); // time for others to queue behind it
        return inject.f.value;
    }
    CHECK(!get(&inject.n_forbidden));
    add(&inject.n_threads, 1); // before the start: the thread may be the one that ends the runtime
    int rc = pthread_create(t, a, fn, arg);
    if (rc != 0) add(&inject.n_threads, -1);
    return rc;
}
// These do not fail.
#define fault_pthread_attr_destroy(a_) pthread_attr_destroy(a_)
#define fault_pthread_sigmask(how_, set_, old_) pthread_sigmask(how_, set_, old_)
#define fault_clock_gettime(clock_, t_) clock_gettime(clock_, t_)

// EAGAIN: the signal is no longer pending.
static int fault_sigtimedwait(const sigset_t *which, siginfo_t *info, const struct timespec *t) {
    if (fails(C_sigtimedwait) == PASS) return sigtimedwait(which, info, t);
    if (inject.f.value == EAGAIN) sigtimedwait(which, info, t);
    errno = inject.f.value;
    return -1;
}

// ---- time, futex, the calls without a wrapper in libc

static int64_t real_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
// Not counted in n_all: reading the clock is cheap, and busy tasks do so often.
static int64_t fault_now(void) {
    int error = errno, what = fails(C_clock);
    int64_t ms = (int64_t)inject.f.value * 1000000;
    add(&inject.n_all, -1);
    errno = error;
    if (what == JUMP) add64(&inject.clock_offset, ms);
    int64_t offset = __atomic_load_n(&inject.clock_offset, __ATOMIC_ACQUIRE);
    return real_now() + offset - (what == DIP ? ms : 0);
}
#define VOLT_NOW_NS() fault_now()

#define VOLT_FUTEX_WAIT(word_, expect_, deadline_) fault_futex_wait(word_, expect_, deadline_)
#define VOLT_FUTEX_WAKE(word_, n_) volt__sys_futex_wake(word_, n_)
static __thread int futex_error, futex_refusal;
// ENOSYS, EPERM, EINVAL: of a kernel, or a filter, without FUTEX_WAIT_BITSET.
static int futex_fails(int is_timed) {
    int what = fails(is_timed ? C_futex_timed : C_futex_wait), error = inject.f.value;
    int is_refused = what == FAIL && (error == ENOSYS || error == EPERM || error == EINVAL);
    futex_refusal = is_refused ? error : 0;
    futex_error = what == FAIL ? -error : 0;
    return what != PASS && !is_refused;
}
static int is_futex_refused(long number, long op) {
    if (number != SYS_futex || (int)op != 137 || !futex_refusal) return 0;
    errno = futex_refusal;
    futex_refusal = 0;
    return 1;
}
// The jump of the clock is unknown to the kernel.
static int64_t futex_deadline(int64_t deadline) {
    return deadline == INT64_MAX
               ? deadline
               : deadline - __atomic_load_n(&inject.clock_offset, __ATOMIC_ACQUIRE);
}
static int volt__sys_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline);
static int fault_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline) {
    if (futex_fails(deadline != INT64_MAX)) return futex_error;
    return volt__sys_futex_wait(word, expected, futex_deadline(deadline));
}

static __thread long syscall_value;
static __thread int syscall_effect, syscall_opens;
static int syscall_fails(long number, long second) {
    int call = N_CALLS;
    syscall_value = -1;
    if (is_futex_refused(number, second)) return 1;
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) call = C_epoll_pwait2;
#endif
    if (number == SYS_getrandom) call = C_getrandom;
    if (number == SYS_getdents64) call = C_dirents;
    if (number == SYS_pidfd_open) call = C_pidfd_open;
    if (number == SYS_pidfd_send_signal) call = C_pidfd_send;
    syscall_opens = call == C_pidfd_open;
    syscall_effect = call == N_CALLS ? PASS : fails(call);
    syscall_value = syscall_effect == ZERO ? 0 : -1;
    return syscall_effect == FAIL || syscall_effect == ZERO;
}
// Bits that no kernel reports today; or a false error and hang-up, on descriptors of tasks. Not
// inline: gcc would warn at calls whose second argument is a number.
static __attribute__((noinline)) long say_more(int what, struct epoll_event *ev, long n) {
    for (long i = 0; i < n; i++) {
        int is_own = ev[i].data.u64 >= UINT64_MAX - 1; // eventfd and watchdog
        if (what == BITS) ev[i].events |= 0x07f00000u;
        if (what == HUPS && !is_own) ev[i].events |= (uint32_t)(EPOLLHUP | EPOLLERR);
    }
    return n;
}
static long after_syscall(void *b, long value) {
    int what = syscall_effect;
    if (syscall_opens) return opened((int)value, FD_DATA);
    return what == BITS || what == HUPS ? say_more(what, (struct epoll_event *)b, value) : value;
}
// The zeros are read as the arguments that a call does not have.
#define fault_syscall(...) fault_syscall_of(__VA_ARGS__, 0L, 0L, 0L, 0L, 0L, 0L)
static long fault_syscall_of(long number, ...) {
    enum { MOST = 6 };
    long a[MOST];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < MOST; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    if (syscall_fails(number, a[1])) return syscall_value;
    return after_syscall((void *)(intptr_t)a[1],
                         syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
// The first wait of an instance: at its start a runtime checks there that the call is available.
static int first_wait_fails(int ep) {
    if (kind_of(ep) != FD_EPOLL_NEW) return 0;
    __atomic_store_n(&fd_kind[ep], (unsigned char)FD_DATA, __ATOMIC_RELEASE);
    return fails(C_epoll_first);
}
static int fault_epoll_wait(int ep, struct epoll_event *ev, int n, int ms) {
    if (first_wait_fails(ep)) return -1;
    int what = fails(C_epoll_wait);
    if (what == FAIL || what == ZERO) return what == ZERO ? 0 : -1;
    return (int)say_more(what, ev, epoll_wait(ep, ev, n, ms));
}

// ---- reading and writing

// Not for TCP: by epoll(7), a short count there means that the buffer is empty, or full. Not for
// messages, which are not moved in part.
static size_t shorten(int fd, size_t n) {
    size_t most = (size_t)inject.f.value;
    int type = socket_option(fd, SO_TYPE);
    return n > most && !is_inet(fd) && (type < 0 || type == SOCK_STREAM) ? most : n;
}
static int read_call(int kind) {
    return kind == FD_EVENT    ? C_read_event
         : kind == FD_FILE     ? C_read_file
         : kind == FD_CHILD    ? C_read_report
         : kind == FD_SIGNAL   ? C_read_signal
         : kind == FD_PIPE     ? C_read_pipe
                               : C_read_data;
}
static ssize_t fault_read(int fd, void *buf, size_t n) {
    int call = read_call(kind_of(fd)), what = fails(call);
    if (what == PASS || what == SHORT) {
        ssize_t rc = read(fd, buf, what == SHORT ? shorten(fd, n) : n);
        if (call == C_read_report && rc > 0) note_limit(*(const int *)buf); // of the child
        return rc;
    }
    if (what == ZERO) return 0;
    uint64_t taken = 0; // EAGAIN of an eventfd: the counter is 0
    if (call == C_read_event && inject.f.value == EAGAIN && read(fd, &taken, sizeof taken) < 0)
        CHECK_EQ(errno, EAGAIN);
    if (call != C_read_event && inject.f.value == EAGAIN) make_an_edge(fd);
    errno = inject.f.value;
    return -1;
}
// Sockets are read by these two, which count as read and write.
static ssize_t fault_recv(int fd, void *buf, size_t n, int flags) {
    int what = fails(C_read_data);
    CHECK(flags & MSG_DONTWAIT);
    if (what == PASS || what == SHORT)
        return recv(fd, buf, what == SHORT ? shorten(fd, n) : n, flags);
    if (what == ZERO) return 0;
    if (inject.f.value == EAGAIN) make_an_edge(fd);
    errno = inject.f.value;
    return -1;
}
// An append to a file counts as pwrite.
static ssize_t fault_write(int fd, const void *buf, size_t n) {
    int kind = kind_of(fd), is_event = kind == FD_EVENT;
    int what = fails(is_event ? C_write_event : kind == FD_STORED ? C_pwrite : C_write_data);
    if (what == ZERO) return 0;
    if (what == PASS || what == SHORT) return write(fd, buf, what == SHORT ? shorten(fd, n) : n);
    uint64_t full = UINT64_MAX - 1; // EAGAIN of an eventfd: the counter is full
    if (is_event && inject.f.value == EAGAIN && write(fd, &full, sizeof full) < 0)
        CHECK_EQ(errno, EAGAIN);
    if (!is_event && inject.f.value == EAGAIN) make_an_edge(fd);
    errno = inject.f.value;
    return -1;
}
// As fails(); an edge follows EAGAIN.
static int fails_with_edge(int call, int fd) {
    int what = fails(call);
    if (what == FAIL && inject.f.value == EAGAIN) make_an_edge(fd);
    return what;
}
static ssize_t fault_send(int fd, const void *buf, size_t n, int flags) {
    int what = fails_with_edge(C_send, fd);
    CHECK(flags & MSG_NOSIGNAL);
    return what == FAIL ? -1 : send(fd, buf, what == SHORT ? shorten(fd, n) : n, flags);
}
static ssize_t fault_readv(int fd, const struct iovec *iov, int n) {
    int what = fails_with_edge(C_readv, fd);
    if (what == SHORT) return read(fd, iov->iov_base, shorten(fd, iov->iov_len));
    return what == PASS ? readv(fd, iov, n) : -1;
}
// The messages of recvmsg and sendmsg; without control data or address, on a stream, they count as
// readv, and as the sendmsg of volt_writev.
static int is_message(int fd, const struct msghdr *m) {
    return m->msg_name || m->msg_control || socket_option(fd, SO_TYPE) != SOCK_STREAM;
}
static int is_joined(const struct msghdr *m) {
    const struct cmsghdr *c = CMSG_FIRSTHDR(m);
    return c && c->cmsg_level == IPPROTO_UDP && c->cmsg_type == 103; // UDP_SEGMENT
}
// Received descriptors are open from now on; the kernel closes those that exceed the limit.
static void note_received(int fd, struct msghdr *m) {
    int is_cut = m->msg_flags & MSG_CTRUNC && socket_option(fd, SO_DOMAIN) == AF_UNIX;
    if (is_cut && inject.f.effect == LIMIT) add(&inject.n_hits, 1);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int got;
            memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
            opened(got, FD_DATA);
        }
    }
}
// The first part, or less.
static struct msghdr shorten_message(int fd, const struct msghdr *m, struct iovec *part) {
    struct msghdr one = *m;
    *part = m->msg_iov[0];
    part->iov_len = shorten(fd, part->iov_len);
    one.msg_iov = part;
    if (part->iov_len < m->msg_iov[0].iov_len) one.msg_iovlen = 1;
    else one.msg_iov = m->msg_iov;
    return one;
}
static ssize_t fault_recvmsg(int fd, struct msghdr *m, int flags) {
    int what = fails_with_edge(is_message(fd, m) ? C_recv_message : C_readv, fd);
    struct iovec part;
    CHECK(flags & MSG_DONTWAIT);
    if (what != PASS && what != SHORT) return -1;
    struct msghdr one = what == SHORT ? shorten_message(fd, m, &part) : *m;
    ssize_t n = recvmsg(fd, &one, flags);
    if (n < 0) return n;
    m->msg_namelen = one.msg_namelen;
    m->msg_controllen = one.msg_controllen;
    m->msg_flags = one.msg_flags;
    note_received(fd, m);
    return n;
}
// SHORT: fewer messages.
static int fault_recvmmsg(int fd, struct mmsghdr *v, unsigned n, int flags, struct timespec *t) {
    int what = fails_with_edge(C_recvmmsg, fd);
    CHECK(flags & MSG_DONTWAIT);
    if (what == SHORT && n > (unsigned)inject.f.value) n = (unsigned)inject.f.value;
    return what == FAIL ? -1 : recvmmsg(fd, v, n, flags, t);
}
static int fault_sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags) {
    int what = fails_with_edge(C_sendmmsg, fd);
    CHECK(flags & MSG_NOSIGNAL);
    if (what == SHORT && n > (unsigned)inject.f.value) n = (unsigned)inject.f.value;
    return what == FAIL ? -1 : sendmmsg(fd, v, n, flags);
}
static ssize_t fault_writev(int fd, const struct iovec *iov, int n) {
    int what = fails_with_edge(C_writev, fd);
    if (what == SHORT) return write(fd, iov->iov_base, shorten(fd, iov->iov_len));
    return what == PASS ? writev(fd, iov, n) : -1;
}
static ssize_t fault_sendmsg(int fd, const struct msghdr *m, int flags) {
    int call = is_joined(m) ? C_send_joined : is_message(fd, m) ? C_send_message : C_sendmsg;
    int what = fails_with_edge(call, fd);
    struct iovec part;
    CHECK(flags & MSG_NOSIGNAL);
    if (what != PASS && what != SHORT) return -1;
    struct msghdr one = what == SHORT ? shorten_message(fd, m, &part) : *m;
    return sendmsg(fd, &one, flags);
}
// One of both is a pipe; the other may be waited for.
static ssize_t fault_splice(int from, off_t *at, int to, off_t *there, size_t n, unsigned flags) {
    int what = fails_with_edge(C_splice, from);
    if (what == FAIL && inject.f.value == EAGAIN) make_an_edge(to);
    if (what == SHORT && n > (size_t)inject.f.value) n = (size_t)inject.f.value;
    return what == FAIL ? -1 : splice(from, at, to, there, n, flags);
}
static ssize_t fault_sendfile(int fd, int file, off_t *at, size_t n) {
    int what = fails_with_edge(C_sendfile, fd);
    if (what == SHORT && n > (size_t)inject.f.value) n = (size_t)inject.f.value;
    return what == FAIL ? -1 : sendfile(fd, file, at, n);
}

// ---- opening and closing// ---- opening and closing

static int accept_with(int fd, struct sockaddr *sa, socklen_t *len, int flags) {
    if (get(&inject.n_short_accepts) > 0 && add(&inject.n_short_accepts, -1) >= 0) {
        errno = EMFILE;
        return -1;
    }
    return opened(accept4(fd, sa, len, flags), FD_DATA);
}
static int fault_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags) {
    return fails_with_edge(C_accept4, fd) ? -1 : accept_with(fd, sa, len, flags);
}
// Called where accept4 is refused.
static int fault_accept(int fd, struct sockaddr *sa, socklen_t *len) {
    return accept_with(fd, sa, len, 0);
}
// ENOTCONN: the connection has ended.
static int fault_shutdown(int fd, int how) {
    int what = fails(C_shutdown), error = errno;
    if (what == FAIL && error != ENOTCONN) return -1;
    int rc = shutdown(fd, how);
    if (what == FAIL) errno = error;
    return what == FAIL ? -1 : rc;
}
// An interrupted connect continues. One that was to report a failed attempt leaves the error.
static int fault_connect(int fd, const struct sockaddr *sa, socklen_t len) {
    if (!fails(C_connect)) return connect(fd, sa, len);
    struct pollfd p = {fd, 0, 0};
    if (inject.f.value == EINTR && (poll(&p, 1, 0) != 1 || !(p.revents & POLLERR)))
        connect(fd, sa, len);
    errno = inject.f.value;
    return -1;
}
// Closes the descriptor, whatever the result.
static int fault_close(int fd) {
    int call = kind_of(fd) == FD_STORED ? C_close_file : C_close;
    closing(fd);
    int what = fails(call), error = errno, rc = close(fd);
    if (rc < 0) fail("close of %d: %s", fd, strerror(errno));
    if (what == PASS) return rc;
    errno = error;
    return -1;
}
static int fault_fcntl(int fd, int op, ...) {
    va_list ap;
    va_start(ap, op);
    int flags = op == F_GETFL || op == F_GETFD ? 0 : va_arg(ap, int);
    va_end(ap);
    if (op == F_GETFD) return fcntl(fd, op);
    if (op == F_DUPFD_CLOEXEC) return opened(fcntl(fd, op, flags), FD_DATA);
    if (fails(op == F_GETFL        ? kind_of(fd) == FD_STORED ? C_fcntl_stored : C_fcntl_get
              : op == F_SETPIPE_SZ ? C_fcntl_pipe
                                   : C_fcntl_set))
        return -1;
    if (kind_of(fd) == FD_CHILD && op == F_SETFL && flags & O_NONBLOCK) // of this process
        __atomic_store_n(&fd_kind[fd], (unsigned char)FD_DATA, __ATOMIC_RELEASE);
    return fcntl(fd, op, flags);
}
enum { PEERPIDFD = 77 }; // SO_PEERPIDFD, which older headers lack
static int fault_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    int is_pidfd = level == SOL_SOCKET && name == PEERPIDFD;
    int call = name == SO_ERROR    ? C_getsockopt_error
             : name == SO_PEERCRED ? C_getsockopt_cred
             : name == SO_DOMAIN   ? C_getsockopt_domain
             : is_pidfd            ? C_getsockopt_pidfd
                                   : C_getsockopt;
    int rc = fails(call) ? -1 : getsockopt(fd, level, name, value, len);
    if (is_pidfd) opened(rc < 0 ? -1 : *(int *)value, FD_DATA);
    return rc;
}
static int epoll_call(int op, const struct epoll_event *ev) {
    if (op != EPOLL_CTL_ADD) return op == EPOLL_CTL_MOD ? C_epoll_mod : C_epoll_del;
    if (ev->events == 0) return C_epoll_add; // only asks whether it is registered
    if (ev->data.u64 == UINT64_MAX || ev->data.u64 == UINT64_MAX - 2) return C_epoll_own;
    return ev->data.u64 == UINT64_MAX - 1 ? C_epoll_watch : C_epoll_add;
}
// EEXIST, ENOENT: brought about. EINVAL is for a flag that the kernel does not know.
static int fault_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    int call = epoll_call(op, ev), is_known = !(ev->events & EPOLLEXCLUSIVE);
    if (!fails(call) || (inject.f.value == EINVAL && is_known)) {
        int rc = epoll_ctl(ep, op, fd, ev);
        if (rc == 0) note_interest(ep, op, fd, ev);
        return rc;
    }
    if (inject.f.value == EEXIST) epoll_ctl(ep, EPOLL_CTL_ADD, fd, ev);
    if (inject.f.value == ENOENT) epoll_ctl(ep, EPOLL_CTL_DEL, fd, ev);
    errno = inject.f.value;
    return -1;
}

// ---- files

FAULTY(int, fdatasync, (int fd), (fd))
FAULTY(int, fsync, (int fd), (fd))
FAULTY(int, chmod, (const char *path, mode_t mode), (path, mode))
FAULTY(int, chown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid))
FAULTY(int, fchmod, (int fd, mode_t mode), (fd, mode))
FAULTY(int, ftruncate, (int fd, off_t len), (fd, len))
FAULTY(int, mkdir, (const char *path, mode_t mode), (path, mode))
FAULTY(int, rename, (const char *from, const char *to), (from, to))
FAULTY(int, rmdir, (const char *path), (path))
FAULTY(int, stat, (const char *path, struct stat *st), (path, st))
FAULTY(int, unlink, (const char *path), (path))
static int fault_openat(int dir, const char *path, int flags, unsigned mode) {
    if (flags & O_EXCL && fails(C_openat_new)) return -1;
    return fails(C_openat) ? -1 : opened(openat(dir, path, flags, mode), FD_STORED);
}
static ssize_t fault_preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags) {
    int what = fails(C_preadv2);
    struct iovec part = iov[0];
    if (what == ZERO) return 0;
    if (what != SHORT) return what == FAIL ? -1 : preadv2(fd, iov, n, at, flags);
    part.iov_len = shorten(fd, part.iov_len);
    return preadv2(fd, &part, 1, at, flags);
}
static ssize_t fault_pread(int fd, void *buf, size_t n, off_t at) {
    int what = fails(C_pread);
    if (what == ZERO) return 0;
    return what == FAIL ? -1 : pread(fd, buf, what == SHORT ? shorten(fd, n) : n, at);
}
static ssize_t fault_pwrite(int fd, const void *buf, size_t n, off_t at) {
    int what = fails(C_pwrite);
    if (what == ZERO) return 0;
    return what == FAIL ? -1 : pwrite(fd, buf, what == SHORT ? shorten(fd, n) : n, at);
}

// ---- child processes

// By fork, so that the calls on the pipe of the report may fail, too.
#define VOLT_START_CHILD(child_)                                                                   \
    (fails(C_fork) ? -inject.f.value : started_child(START_BY_FORK(child_)))
static int started_child(int pid) {
    if (pid > 0) add(&inject.n_children, 1);
    return pid;
}
// ECHILD: another part of the program has ended and collected the child.
static void steal_child(pid_t pid) {
    int error = errno;
    kill(pid, SIGKILL);
    if (waitpid(pid, NULL, 0) == pid) add(&inject.n_children, -1);
    errno = error;
}
static pid_t fault_waitpid(pid_t pid, int *status, int flags) {
    int what = fails(C_waitpid);
    if (what == FAIL && inject.f.value == ECHILD) steal_child(pid);
    pid_t rc = what == FAIL ? -1 : waitpid(pid, status, flags);
    if (rc > 0) add(&inject.n_children, -1);
    return rc;
}
static int fault_waitid(idtype_t type, id_t id, siginfo_t *info, int flags) {
    int what = fails(C_waitid);
    if (what == FAIL && inject.f.value == ECHILD) steal_child((pid_t)id);
    int rc = what == FAIL ? -1 : waitid(type, id, info, flags);
    if (rc == 0 && info->si_pid > 0 && !(flags & WNOWAIT)) add(&inject.n_children, -1);
    return rc;
}
static int fault_kill(pid_t pid, int signal) {
    return fails(pid < 0 ? C_kill_group : C_kill) ? -1 : kill(pid, signal);
}

// ---- names: hosts are defined here. "3.test" has three addresses, "dial.test" those of the ports
// that the scenario sets, "held.test" has an answer as soon as it is released.

enum { MOST_PORTS = 8 };
static struct {
    int n_calls, n_in, is_open; // since the scenario began; held now; released
    int port[MOST_PORTS], n_ports;
} names;
typedef struct named {
    struct addrinfo info;
    struct sockaddr_in sa;
} named;
static void fault_freeaddrinfo(struct addrinfo *list) {
    if (list) add(&inject.n_lists, -1);
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list); // the first member of a `named`
        list = next;
    }
}
static struct addrinfo *list_ports(const int *port, int n) {
    struct addrinfo *list = NULL;
    while (n-- > 0) {
        named *one = calloc(1, sizeof *one);
        if (!one) abort();
        one->sa.sin_family = AF_INET;
        one->sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        one->sa.sin_port = htons((uint16_t)port[n]);
        one->info.ai_addr = (struct sockaddr *)&one->sa;
        one->info.ai_addrlen = sizeof one->sa;
        one->info.ai_next = list;
        list = &one->info;
    }
    if (list) add(&inject.n_lists, 1);
    return list;
}
static int fault_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                             struct addrinfo **list) {
    int port[MOST_PORTS];
    CHECK_EQ(hints->ai_socktype, SOCK_STREAM);
    *list = NULL;
    if (fails(C_getaddrinfo_system)) return EAI_SYSTEM; // errno is set
    int what = fails(C_getaddrinfo);
    if (what != PASS) return what == ZERO ? 0 : inject.f.value;
    add(&names.n_calls, 1);
    if (strcmp(host, "held.test") == 0) {
        add(&names.n_in, 1);
        while (!get(&names.is_open)) usleep(20);
        add(&names.n_in, -1);
    }
    for (int i = 0; i < MOST_PORTS; i++) port[i] = atoi(service);
    *list = strcmp(host, "dial.test") == 0 ? list_ports(names.port, names.n_ports)
                                           : list_ports(port, 3);
    return 0;
}

// ---- memory

static void *fault_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    if (fails(C_mmap)) return MAP_FAILED;
    CHECK(!get(&inject.n_forbidden));
    void *p = mmap(at, n, prot, flags, fd, offset);
    if (p != MAP_FAILED) add64(&inject.mapped, (int64_t)n);
    return p;
}
static int fault_munmap(void *p, size_t n) {
    int what = fails(C_munmap), error = errno;
    add64(&inject.mapped, -(int64_t)n);
    munmap(p, n); // otherwise the next runs would lack memory
    errno = error;
    return what == PASS ? 0 : -1;
}
// The allocator hook: poisons new and freed memory.
static void *fault_alloc(void *user, size_t size, size_t align) {
    (void)user;
    if (fails(C_alloc)) return NULL;
    if (get(&inject.n_forbidden)) fail("an allocation of %zu bytes where none may be", size);
    CHECK(size > 0 && align && (align & (align - 1)) == 0);
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size) != 0) return NULL;
    memset(p, 0xa5, size);
    add64(&inject.n_bytes, (int64_t)size);
    add64(&inject.n_blocks, 1);
    return p;
}
static void fault_free(void *user, void *block, size_t size) {
    (void)user;
    if (!block) return;
    memset(block, 0xdd, size); // wrong sizes show under the address sanitizer
    add64(&inject.n_bytes, -(int64_t)size);
    add64(&inject.n_blocks, -1);
    free(block);
}

#endif // VOLT_FAULT_INJECT_H
