// SPDX-License-Identifier: MIT OR 0BSD
// The functions of the seam, each against a kernel that is played here: the calls they make and the
// results they form from its answers.
#define _GNU_SOURCE 1 // before the first libc header
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long played_syscall(long number, ...);
static int played_epoll_wait(int ep, struct epoll_event *ev, int n, int ms);
static void *played_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
static ssize_t played_write(int fd, const void *text, size_t len);
static long played_sysconf(int name);
static int played_madvise(void *p, size_t size, int advice);
static int played_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags);
static int played_eventfd(unsigned n, int flags);
static int played_fcntl(int fd, int op, ...);

#undef accept4 // of tests/platform/old_kernel.h: here the kernel is played in another way
#undef eventfd
#undef madvise
#undef syscall
#define syscall played_syscall
#define epoll_wait played_epoll_wait
#define mmap played_mmap
#define write played_write
#define sysconf played_sysconf
#define madvise played_madvise
#define accept4 played_accept4
#define eventfd played_eventfd
#define fcntl played_fcntl
#define VOLT_IMPLEMENTATION
#include "volt.h"
#undef syscall
#undef epoll_wait
#undef mmap
#undef write
#undef sysconf
#undef madvise
#undef accept4
#undef eventfd
#undef fcntl
#include "test.h"

// A call: what it asked for, and its answer, n or an error.
typedef struct played {
    int n_calls, error, n;
    int first_error; // of the first call alone
    int has_time, op, ms;
    unsigned flags; // of getrandom; of a futex, the wakes that it waits for
    int64_t sec, nsec; // of the deadline or timeout
} played;
static played of_syscall, of_epoll;

static int played_answer(played *p) {
    p->n_calls++;
    if (p->first_error) {
        errno = p->first_error;
        p->first_error = 0;
        return -1;
    }
    errno = p->error ? p->error : ENOSYS; // without an error, errno may not be read
    return p->error ? -1 : p->n;
}
#define RANDOM_BITS UINT64_C(0x123456789abcdef0)
// VOLT__SYS_FUTEX: word, op, value, time, word, bits; SYS_epoll_pwait2: epoll, events, n, time;
// SYS_getrandom: buffer, size, flags.
static long played_syscall(long number, ...) {
    va_list ap;
    va_start(ap, number);
    if (number == VOLT__SYS_FUTEX) {
        (void)va_arg(ap, uint32_t *);
        of_syscall.op = va_arg(ap, int);
        (void)va_arg(ap, uint32_t);
        volt__timespec *t = va_arg(ap, volt__timespec *);
        of_syscall.has_time = t != NULL;
        if (t) of_syscall.sec = t->sec, of_syscall.nsec = t->nsec;
        CHECK(va_arg(ap, uint32_t *) == NULL);
        of_syscall.flags = va_arg(ap, unsigned);
    } else if (number == SYS_getrandom) {
        uint64_t *bits = va_arg(ap, uint64_t *), random = RANDOM_BITS;
        of_syscall.n = (int)va_arg(ap, size_t);
        of_syscall.flags = va_arg(ap, unsigned);
        if (!of_syscall.error) memcpy(bits, &random, sizeof random);
    } else if (number == SYS_membarrier) {
        of_syscall.op = va_arg(ap, int);
    } else {
        (void)va_arg(ap, int);
        (void)va_arg(ap, struct epoll_event *);
        (void)va_arg(ap, int);
        int64_t *t = va_arg(ap, int64_t *);
        of_syscall.sec = t[0];
        of_syscall.nsec = t[1];
    }
    va_end(ap);
    return played_answer(&of_syscall);
}
static int played_epoll_wait(int ep, struct epoll_event *ev, int n, int ms) {
    (void)ep, (void)ev, (void)n;
    of_epoll.ms = ms;
    return played_answer(&of_epoll);
}

// The first mapping lies this far behind a multiple of that.
static size_t map_off, map_align;
static int n_maps;
static void *last_map; // of those that were not moved
static int map_error;
static void *played_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset) {
    if (map_error) return errno = map_error, MAP_FAILED;
    if (n_maps++ || !map_align) return last_map = mmap(at, size, prot, flags, fd, offset);
    size_t room = size + 2 * map_align;
    char *p = (char *)mmap(at, room, prot, flags, fd, offset);
    if (p == MAP_FAILED) return p;
    size_t before = map_align - (uintptr_t)p % map_align + map_off;
    munmap(p, before);
    munmap(p + before + size, room - before - size);
    return p + before;
}

static ssize_t played_write(int fd, const void *text, size_t len) {
    CHECK_EQ(fd, 2);
    return write(fd, text, len);
}
static long page_size; // that the kernel tells; 0: the real one, -1: none
static long played_sysconf(int name) { return page_size ? page_size : sysconf(name); }

static int advice_error;
static int played_madvise(void *p, size_t size, int advice) {
    CHECK(p != NULL);
    if (advice_error) return errno = advice_error, -1;
    return madvise(p, size, advice);
}

// ---- timeouts of epoll

TEST(epoll_ms_rounds_up_and_clamps) {
    CHECK_EQ(volt__epoll_ms(-1), -1);
    CHECK_EQ(volt__epoll_ms(0), 0);
    CHECK_EQ(volt__epoll_ms(1), 1);
    CHECK_EQ(volt__epoll_ms(1000000), 1);
    CHECK_EQ(volt__epoll_ms(1000001), 2);
    CHECK_EQ(volt__epoll_ms((int64_t)INT_MAX * 1000000), INT_MAX);
    CHECK_EQ(volt__epoll_ms((int64_t)INT_MAX * 1000000 + 1), INT_MAX);
    CHECK_EQ(volt__epoll_ms(INT64_MAX / 2), INT_MAX);
}

static int wait_events(int64_t timeout) {
    struct epoll_event ev[4];
    of_syscall.n_calls = of_epoll.n_calls = 0;
    return volt__sys_epoll_wait(3, ev, 4, timeout);
}
TEST(zero_and_infinite_timeout_use_epoll_wait) {
    of_epoll.n = 2;
    CHECK_EQ(wait_events(0), 2);
    CHECK_EQ(of_epoll.ms, 0);
    CHECK_EQ(wait_events(-1), 2);
    CHECK_EQ(of_epoll.ms, -1);
    CHECK_EQ(of_syscall.n_calls, 0);
    of_epoll.n = 0;
    CHECK_EQ(wait_events(0), 0);
    of_epoll.error = EINTR;
    CHECK_EQ(wait_events(0), -EINTR);
}
TEST(finite_timeout_uses_epoll_pwait2_in_nanoseconds) {
#ifndef SYS_epoll_pwait2
    SKIP("no epoll_pwait2");
#endif
    of_syscall.n = 3;
    CHECK_EQ(wait_events(1), 3);
    CHECK_EQ(of_syscall.sec, 0);
    CHECK_EQ(of_syscall.nsec, 1);
    CHECK_EQ(wait_events(7000000005), 3);
    CHECK_EQ(of_syscall.sec, 7);
    CHECK_EQ(of_syscall.nsec, 5);
    of_syscall.n = 0; // no event: not an error
    CHECK_EQ(wait_events(999999999), 0);
    CHECK_EQ(of_syscall.sec, 0);
    CHECK_EQ(of_syscall.nsec, 999999999);
    CHECK_EQ(wait_events(1000000000), 0);
    CHECK_EQ(of_syscall.sec, 1);
    CHECK_EQ(of_syscall.nsec, 0);
    CHECK_EQ(of_epoll.n_calls, 0);
    of_syscall.error = EINTR;
    CHECK_EQ(wait_events(1), -EINTR);
    CHECK_EQ(of_epoll.n_calls, 0);
}
TEST(timeout_falls_back_to_epoll_wait_on_old_kernel) {
#ifndef SYS_epoll_pwait2
    SKIP("no epoll_pwait2");
#endif
    const int errors[] = { ENOSYS, EPERM, EINVAL };
    for (int i = 0; i < 3; i++) {
        of_syscall.error = errors[i];
        of_epoll.n = 1;
        of_epoll.error = 0;
        CHECK_EQ(wait_events(1500000), 1);
        CHECK_EQ(of_epoll.ms, 2);
        of_epoll.n = 0;
        CHECK_EQ(wait_events(1500000), 0);
        of_epoll.error = EINTR;
        CHECK_EQ(wait_events(1500000), -EINTR);
        CHECK_EQ(of_syscall.n_calls, 1);
        CHECK_EQ(of_epoll.n_calls, 1);
    }
}

// ---- futexes

static int wait_word(int64_t deadline) {
    uint32_t word = 5;
    return volt__sys_futex_wait(&word, 5, deadline);
}
TEST(futex_wait_passes_absolute_deadline) {
    CHECK_EQ(wait_word(7000000005), 0);
    CHECK_EQ(of_syscall.op, VOLT__FUTEX_WAIT_BITSET);
    CHECK_EQ(of_syscall.flags, UINT32_MAX); // any
    CHECK_EQ(of_syscall.sec, 7);
    CHECK_EQ(of_syscall.nsec, 5);
    CHECK_EQ(wait_word(999999999), 0);
    CHECK_EQ(of_syscall.sec, 0);
    CHECK_EQ(of_syscall.nsec, 999999999);
    CHECK_EQ(wait_word(INT64_C(1000000000) * 1000000000 + 1), 0); // far enough to tell a divisor
    CHECK_EQ(of_syscall.sec, 1000000000);
    CHECK_EQ(of_syscall.nsec, 1);
    CHECK_EQ(wait_word(1), 0);
    CHECK_EQ(of_syscall.nsec, 1);
    CHECK(of_syscall.has_time);
    volt__timespec t; // may hold fewer seconds than a deadline
    CHECK_EQ(wait_word(INT64_C(5000000000) * 1000000000), 0);
    CHECK_EQ(of_syscall.sec, sizeof t.sec == 4 ? INT32_MAX : INT64_C(5000000000));
}
TEST(futex_wait_clamps_negative_deadline_to_0) {
    const int64_t past[] = { 0, -1, -7000000005 };
    for (int i = 0; i < 3; i++) {
        of_syscall.sec = of_syscall.nsec = 9;
        CHECK_EQ(wait_word(past[i]), 0);
        CHECK_EQ(of_syscall.sec, 0);
        CHECK_EQ(of_syscall.nsec, 0);
    }
}
TEST(futex_wait_without_deadline_passes_no_time) {
    CHECK_EQ(wait_word(VOLT_NEVER), 0);
    CHECK(!of_syscall.has_time);
    of_syscall.error = ETIMEDOUT;
    CHECK_EQ(wait_word(VOLT_NEVER), -ETIMEDOUT);
}

TEST(futex_wait_falls_back_to_relative_time) {
    const int errors[] = { ENOSYS, EPERM, EINVAL };
    for (int i = 0; i < 3; i++) {
        of_syscall.first_error = errors[i];
        CHECK_EQ(wait_word(volt__sys_now() + INT64_C(90500000000)), 0);
        CHECK_EQ(of_syscall.op, VOLT__FUTEX_WAIT);
        CHECK(of_syscall.sec == 90 && of_syscall.has_time);
        of_syscall.first_error = errors[i];
        CHECK_EQ(wait_word(volt__sys_now() - 1000), 0);
        CHECK(of_syscall.sec == 0 && of_syscall.nsec == 0);
        of_syscall.first_error = errors[i];
        CHECK_EQ(wait_word(VOLT_NEVER), 0);
        CHECK(!of_syscall.has_time);
        CHECK_EQ(of_syscall.n_calls, 6 * (i + 1));
    }
    of_syscall.error = ETIMEDOUT;
    CHECK_EQ(wait_word(5), -ETIMEDOUT);
    CHECK_EQ(of_syscall.op, VOLT__FUTEX_WAIT_BITSET);
    of_syscall.first_error = ENOSYS;
    CHECK_EQ(wait_word(5), -ETIMEDOUT);
    CHECK_EQ(of_syscall.op, VOLT__FUTEX_WAIT);
}

// ---- descriptors that cannot be had with their flags

static int flags_error; // of accept4 and eventfd
static int played_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags) {
    if (flags_error) return errno = flags_error, -1;
    return accept4(fd, a, len, flags);
}
static int played_eventfd(unsigned n, int flags) {
    if (flags_error && flags) return errno = flags_error, -1;
    return eventfd(n, flags);
}
static int fcntl_at, fcntl_error; // the how manieth fails; 0: none
static int played_fcntl(int fd, int op, ...) {
    va_list ap;
    va_start(ap, op);
    int value = op == F_GETFL ? 0 : va_arg(ap, int);
    va_end(ap);
    if (fcntl_at && --fcntl_at == 0) return errno = fcntl_error, -1;
    return fcntl(fd, op, value);
}
static void check_flags(int fd) {
    uint64_t count;
    CHECK(fd >= 0);
    CHECK(read(fd, &count, sizeof count) == -1 && errno == EAGAIN); // nothing there yet
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(close(fd), 0);
}
static int open_listener(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK_EQ(listen(fd, 8), 0); // on any port of any address
    return fd;
}
static int connect_to(int listener) {
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&a, len), 0);
    return fd;
}
TEST(eventfd_and_accept_set_flags_on_any_kernel) {
    static const int errors[] = { 0, ENOSYS, EPERM, EINVAL };
    int listener = open_listener();
    for (int i = 0; i < 4; i++) {
        flags_error = errors[i];
        check_flags(volt__sys_eventfd());
        int out = connect_to(listener);
        check_flags(volt__sys_accept(listener, NULL));
        CHECK_EQ(close(out), 0);
    }
    CHECK_EQ(close(listener), 0);
}
TEST(accept_tells_its_peer_on_any_kernel) {
    static const int errors[] = { 0, ENOSYS };
    int listener = open_listener();
    for (int i = 0; i < 2; i++) {
        volt_addr peer, want;
        flags_error = errors[i];
        memset(&peer, 1, sizeof peer);
        memset(&want, 0, sizeof want);
        int out = connect_to(listener);
        socklen_t len = sizeof want.sa_;
        CHECK_EQ(getsockname(out, (struct sockaddr *)(void *)want.sa_, &len), 0);
        want.len_ = len;
        check_flags(volt__sys_accept(listener, &peer));
        CHECK_EQ(memcmp(&peer, &want, sizeof peer), 0); // with no byte of before
        CHECK_EQ(close(out), 0);
        out = volt__sys_accept(-1, &peer);
        CHECK_EQ(out, -EBADF);
        CHECK_EQ(memcmp(&peer, &want, sizeof peer), 0); // unchanged by a failure
    }
    CHECK_EQ(close(listener), 0);
}
TEST(eventfd_and_accept_may_give_descriptor_0) {
    static const int errors[] = { 0, ENOSYS };
    int listener = open_listener(), out[2];
    for (int i = 0; i < 2; i++) {
        flags_error = errors[i];
        out[i] = connect_to(listener);
        CHECK_EQ(close(0), 0);
        errno = ENOSYS; // of a call before
        CHECK_EQ(volt__sys_eventfd(), 0);
        check_flags(0);
        errno = ENOSYS;
        CHECK_EQ(volt__sys_accept(listener, NULL), 0);
        check_flags(0);
        fcntl_at = errors[i] ? 1 : 0; // where flags are set
        fcntl_error = EACCES;
        if (errors[i]) CHECK_EQ(volt__sys_eventfd(), -EACCES);
        CHECK(open("/dev/null", O_RDONLY) == 0); // was closed
        CHECK_EQ(close(out[i]), 0);
    }
    CHECK_EQ(close(listener), 0);
}
TEST(descriptor_is_closed_if_its_flags_cannot_be_set) {
    int listener = open_listener();
    flags_error = ENOSYS;
    for (int i = 1; i <= 3; i++) {
        int out = connect_to(listener), n_open = test_count_fds();
        fcntl_at = i;
        fcntl_error = EACCES;
        CHECK_EQ(volt__sys_accept(listener, NULL), -EACCES);
        fcntl_at = i;
        CHECK_EQ(volt__sys_eventfd(), -EACCES);
        CHECK_EQ(test_count_fds(), n_open);
        CHECK_EQ(close(out), 0);
    }
    CHECK_EQ(close(listener), 0);
    CHECK_EQ(volt__sys_accept(listener, NULL), -EBADF); // the second call says so
    flags_error = EMFILE; // an error of its own: nothing else is tried
    CHECK_EQ(volt__sys_eventfd(), -EMFILE);
    CHECK_EQ(volt__sys_accept(listener, NULL), -EMFILE);
}

// ---- clock, random bits, signals, the end

TEST(now_is_the_monotonic_clock) {
    for (int i = 0; i < 100; i++) {
        struct timespec t[2];
        CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t[0]), 0);
        int64_t now = volt__sys_now();
        CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t[1]), 0);
        CHECK(now >= t[0].tv_sec * INT64_C(1000000000) + t[0].tv_nsec);
        CHECK(now <= t[1].tv_sec * INT64_C(1000000000) + t[1].tv_nsec);
    }
}
TEST(random_bits_come_from_kernel_or_fallback) {
    CHECK(volt__sys_random() == RANDOM_BITS);
    CHECK_EQ(of_syscall.flags, 1); // does not wait for the machine to have enough of them
    of_syscall.error = ENOSYS;
    uint64_t first = volt__sys_random();
    CHECK(first != RANDOM_BITS && first != 0 && first != volt__sys_random());
}
TEST(membarrier_gives_0_or_its_error) {
    CHECK_EQ(volt__sys_membarrier(VOLT__MEMBARRIER), 0);
    CHECK_EQ(of_syscall.op, VOLT__MEMBARRIER);
    of_syscall.error = EPERM;
    CHECK_EQ(volt__sys_membarrier(VOLT__MEMBARRIER), -EPERM);
}
// Light halves of the fence rely on a membarrier that a filter refuses from some moment on.
TEST_DIES(membarrier_refused_later_stops_the_program, "a filter refuses membarrier") {
    uint32_t word = 0;
    volt__membarrier_prepare();
    volt__fence_heavy(&word);
    of_syscall.error = EPERM;
    volt__fence_heavy(&word);
}
TEST(membarrier_refused_before_registration_is_ignored) {
    uint32_t word = 0;
    of_syscall.error = EPERM;
    volt__fence_heavy(&word);
    CHECK_EQ(of_syscall.op, VOLT__MEMBARRIER);
}
// The call came just before the registration by another thread.
TEST(membarrier_refused_once_after_registration_is_repeated) {
    uint32_t word = 0;
    volt__membarrier_prepare();
    of_syscall.first_error = EPERM;
    of_syscall.n_calls = 0;
    volt__fence_heavy(&word);
    CHECK_EQ(of_syscall.n_calls, 2);
    CHECK_EQ(of_syscall.op, VOLT__MEMBARRIER);
}
// Then fences stand where the barrier would have spared them.
TEST_OF_THREADS(biased_lock_works_without_membarrier) {
    volt__biased b = { 0 };
    of_syscall.error = ENOSYS;
    volt__membarrier_prepare();
    CHECK_EQ(of_syscall.op, VOLT__MEMBARRIER_REGISTER);
    CHECK(!volt__has_membarrier());
    volt__biased_lock(&b);
    CHECK_EQ(volt__biased_revoke(&b), 0); // it is held
    volt__biased_unlock(&b);
    CHECK_EQ(volt__biased_revoke(&b), 1);
    CHECK_EQ(volt__biased_revoke(&b), 0); // revoked already
    volt__biased_rebias(&b);
    of_syscall.error = 0;
    volt__membarrier_prepare();
    CHECK(volt__has_membarrier());
    int n = of_syscall.n_calls;
    volt__membarrier_prepare(); // registered once
    CHECK_EQ(of_syscall.n_calls, n);
    volt__biased_lock(&b);
    volt__biased_unlock(&b);
    CHECK_EQ(volt__biased_revoke(&b), 1);
    volt__biased_rebias(&b);
}
TEST(sigpipe_block_blocks_no_other_signal) {
    volt__sigpipe p;
    sigset_t before, held, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    memset(&p, 0xff, sizeof p);
    volt__sys_sigpipe_block(&p);
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &held), 0);
    volt__sys_sigpipe_unblock(&p, 0);
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    for (int i = 1; i < 32; i++) {
        if (i == SIGKILL || i == SIGSTOP) continue;
        CHECK_EQ(sigismember(&held, i), i == SIGUSR1 || i == SIGPIPE);
        CHECK_EQ(sigismember(&after, i), i == SIGUSR1);
    }
}
TEST_DIES(panic_text_goes_to_standard_error, "the end") { volt__sys_panic("the end\n"); }

// ---- memory

TEST(sizes_are_rounded_up_to_pages) {
    const long told[] = { 4096, 65536, -1 };
    for (int i = 0; i < 3; i++) {
        size_t page, is = told[i] < 0 ? 4096 : (size_t)told[i];
        page_size = told[i];
        for (size_t n = 0; n < 3; n++) {
            CHECK_EQ(volt__sys_pages(n * is + 1, &page), (n + 1) * is);
            CHECK_EQ(volt__sys_pages(n * is + is - 1, &page), (n + 1) * is);
            CHECK_EQ(volt__sys_pages(n * is + is, &page), (n + 1) * is);
            CHECK_EQ(page, is);
        }
    }
}

// 1: the byte belongs to a mapping.
static int is_mapped(const char *p) {
    unsigned char seen;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return mincore((void *)((uintptr_t)p & ~(uintptr_t)(page - 1)), page, &seen) == 0;
}
TEST(mapping_is_aligned_and_unmapped_completely) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 3 * page;
    map_align = 16 * page;
    for (map_off = 0; map_off < map_align; map_off += page) {
        n_maps = 0;
        char *p = (char *)volt__sys_map(NULL, size - 1, map_align);
        CHECK(p);
        CHECK_EQ(n_maps, map_off ? 2 : 1);
        CHECK_EQ((uintptr_t)p % map_align, 0);
        memset(p, 1, size);
        volt__sys_unmap(NULL, p, size - 1);
        CHECK(!is_mapped(p));
        CHECK(!is_mapped(p + size - 1));
    }
}
TEST(fork_word_is_0_in_child_only) {
    static const int errors[] = { EINVAL, ENOSYS, EPERM, ENOMEM };
    for (int i = 0; i < 4; i++) { // an old kernel: nothing is left behind
        advice_error = errors[i];
        CHECK(volt__sys_fork_word() == NULL);
        CHECK(!is_mapped((const char *)last_map));
    }
    advice_error = 0;
    map_error = ENOMEM;
    CHECK(volt__sys_fork_word() == NULL);
    map_error = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(p, page, 18) != 0) SKIP("no MADV_WIPEONFORK");
    uint32_t *word = volt__sys_fork_word();
    CHECK(word);
    CHECK_EQ(*word, 1);
    pid_t child = fork();
    if (child == 0) _exit(*word == 0 ? 0 : 1);
    int status = 1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(*word, 1);
}
