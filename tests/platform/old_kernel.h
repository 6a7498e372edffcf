// SPDX-License-Identifier: MIT OR 0BSD
// Old kernels and filters: included by `-include` in the programs of tests/. The calls of volt.h
// that the environment names are refused:
//
//     OLD_KERNEL='epoll_pwait2=ENOSYS accept4=EPERM' build/kernels/test_net
//
// At the end of its output the program prints how often it met each of them. These calls are
// optional for volt.h; the table lists the kernels and filters that refuse them:
//
//   OLD_KERNEL         came with          refused before by       later by
//   accept4            2.6.28 (x86),      ENOSYS                  filters
//                      2.6.36 (ARM)
//   eventfd            2.6.27: its flags  ENOSYS, libc's EINVAL   filters
//   FUTEX_WAIT_BITSET  2.6.25             ENOSYS                  filters
//   getrandom          3.17               ENOSYS                  filters
//   MADV_WIPEONFORK    4.14               EINVAL                  filters; without ADVISE_SYSCALLS
//                                                                 ENOSYS
//   EPOLLEXCLUSIVE     4.5                IGNORE: it wakes all    EINVAL of emulations of Linux
//   epoll_pwait2       5.11               ENOSYS                  filters
//   membarrier         4.14 (the command) EINVAL, older ENOSYS    filters
//   SO_PROTOCOL        2.6.32             ENOPROTOOPT
//   recvmmsg           2.6.33             ENOSYS                  filters
//   sendmmsg           3.0                ENOSYS                  filters
//   pidfd_open         5.3                ENOSYS                  filters
//   pidfd_send_signal  5.1                ENOSYS                  filters
//   SO_PEERPIDFD       6.5                ENOPROTOOPT
//   preadv2            4.6; its RWF_NOWAIT ENOSYS, EOPNOTSUPP     filters; EOPNOTSUPP of some file
//                      4.14                                       systems
//   splice             2.6.17             ENOSYS                  filters; EINVAL of some files
//   UDP_SEGMENT        4.18               IGNORE: as one datagram EIO, EINVAL of a route or device
//   UDP_GRO            5.0                ENOPROTOOPT
//
// A filter (seccomp) answers with the error that its author chose: mostly EPERM, and ENOSYS to
// calls that are newer than the filter; EINVAL stands for the rest. The flags of epoll_ctl lie
// behind a pointer, where no filter sees them: only an emulation of Linux could return ENOSYS or
// EPERM. Without epoll_create1, timerfd_create and the flags of socket (all of 2.6.27) nothing
// works, and functions that need them return the error.
//
// Calls are replaced by their names and not by VOLT_SYS, which some tests define for themselves:
// calls that these pass on to the kernel come here, too.
#ifndef VOLT_TEST_OLD_KERNEL_H
#define VOLT_TEST_OLD_KERNEL_H

#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define OLD_CALLS(X_)                                                                              \
    X_(accept4) X_(eventfd) X_(FUTEX_WAIT_BITSET) X_(getrandom) X_(MADV_WIPEONFORK)                \
    X_(EPOLLEXCLUSIVE) X_(epoll_pwait2) X_(membarrier) X_(SO_PROTOCOL) X_(recvmmsg) X_(sendmmsg)   \
    X_(pidfd_open) X_(pidfd_send_signal) X_(SO_PEERPIDFD) X_(preadv2) X_(splice) X_(UDP_SEGMENT)   \
    X_(UDP_GRO)
enum {
#define OLD_ENUM(name_) OLD_##name_,
    OLD_CALLS(OLD_ENUM)
    OLD_N
};
static const char *const old_names[] = {
#define OLD_NAME(name_) #name_,
    OLD_CALLS(OLD_NAME)
};

enum { OLD_IGNORE = -1 };
enum { OLD_OPTION_SEGMENT = 103, OLD_OPTION_GRO = 104, OLD_CONTROL = 2048 };
static const struct {
    const char *name;
    int error;
} old_answers[] = { { "ENOSYS", ENOSYS },
                    { "EPERM", EPERM },
                    { "EINVAL", EINVAL },
                    { "ENOPROTOOPT", ENOPROTOOPT },
                    { "EOPNOTSUPP", EOPNOTSUPP },
                    { "EIO", EIO },
                    { "IGNORE", OLD_IGNORE } };
enum { OLD_N_ANSWERS = sizeof old_answers / sizeof old_answers[0] };

static int old_answer[OLD_N]; // the answer of each call, index into old_answers + 1; 0: unchanged
static unsigned *old_met; // number of refusals; shared with the processes that the tests run in
static pid_t old_pid;

// Sets errno. 0: the kernel's own answer stands.
static inline int old_refuses(int call) {
    if (!old_answer[call]) return 0;
    __atomic_add_fetch(&old_met[call], 1, __ATOMIC_RELAXED);
    errno = old_answers[old_answer[call] - 1].error;
    return 1;
}
static inline int old_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags) {
    return old_refuses(OLD_accept4) ? -1 : accept4(fd, sa, len, flags);
}
static inline int old_eventfd(unsigned n, int flags) {
    return flags && old_refuses(OLD_eventfd) ? -1 : eventfd(n, flags);
}
static inline int old_madvise(void *p, size_t size, int advice) {
    int is_wipe = advice == 18; // MADV_WIPEONFORK, also where libc does not know it
    return is_wipe && old_refuses(OLD_MADV_WIPEONFORK) ? -1 : madvise(p, size, advice);
}
static inline int old_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    int is_protocol = level == SOL_SOCKET && name == SO_PROTOCOL;
    int is_peer_pidfd = level == SOL_SOCKET && name == 77; // SO_PEERPIDFD
    int is_segment = level == IPPROTO_UDP && name == OLD_OPTION_SEGMENT;
    if (is_protocol && old_refuses(OLD_SO_PROTOCOL)) return -1;
    int type;
    socklen_t type_len = sizeof type;
    if (is_peer_pidfd && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0) return -1;
    if (is_peer_pidfd && old_refuses(OLD_SO_PEERPIDFD)) return -1;
    if (is_segment && old_refuses(OLD_UDP_SEGMENT)) {
        if (errno != OLD_IGNORE) return getsockopt(fd, level, name, value, len); // it is known
        errno = ENOPROTOOPT;
        return -1;
    }
    return getsockopt(fd, level, name, value, len);
}
static inline int old_setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    int is_gro = level == IPPROTO_UDP && name == OLD_OPTION_GRO;
    return is_gro && old_refuses(OLD_UDP_GRO) ? -1 : setsockopt(fd, level, name, value, len);
}
// Copies the control data of a message without the item of UDP_SEGMENT, at most OLD_CONTROL bytes.
// Returns 0 if it has none.
static inline int old_drop_segment(const struct msghdr *from, struct msghdr *to, char *room) {
    int is_found = 0;
    *to = *from;
    to->msg_control = room;
    to->msg_controllen = 0;
    for (size_t at = 0, step; at + CMSG_LEN(0) <= from->msg_controllen; at += step) {
        struct cmsghdr head;
        const char *item = (const char *)from->msg_control + at;
        memcpy(&head, item, sizeof head);
        step = CMSG_SPACE(head.cmsg_len - CMSG_LEN(0));
        if (head.cmsg_len < CMSG_LEN(0) || from->msg_controllen - at < head.cmsg_len) break;
        if (head.cmsg_level == IPPROTO_UDP && head.cmsg_type == OLD_OPTION_SEGMENT) {
            is_found = 1;
            continue;
        }
        if (to->msg_controllen + step > OLD_CONTROL) abort();
        memcpy(room + to->msg_controllen, item, head.cmsg_len);
        to->msg_controllen += step;
    }
    if (to->msg_controllen == 0) to->msg_control = NULL;
    return is_found;
}
static inline ssize_t old_sendmsg(int fd, const struct msghdr *m, int flags) {
    struct msghdr plain;
    char room[OLD_CONTROL] __attribute__((aligned(16)));
    if (!old_drop_segment(m, &plain, room) || !old_refuses(OLD_UDP_SEGMENT))
        return sendmsg(fd, m, flags);
    return errno == OLD_IGNORE ? sendmsg(fd, &plain, flags) : -1;
}
#define old_recvmmsg(...) (old_refuses(OLD_recvmmsg) ? -1 : (recvmmsg)(__VA_ARGS__))
#define old_sendmmsg(...) (old_refuses(OLD_sendmmsg) ? -1 : (sendmmsg)(__VA_ARGS__))
#define old_preadv2(...) (old_refuses(OLD_preadv2) ? -1 : (preadv2)(__VA_ARGS__))
#define old_splice(...) (old_refuses(OLD_splice) ? -1 : (splice)(__VA_ARGS__))
static inline int old_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    if (!(ev->events & EPOLLEXCLUSIVE) || !old_refuses(OLD_EPOLLEXCLUSIVE))
        return epoll_ctl(ep, op, fd, ev);
    if (errno != OLD_IGNORE) return -1;
    struct epoll_event plain = *ev;
    plain.events &= ~(uint32_t)EPOLLEXCLUSIVE;
    return epoll_ctl(ep, op, fd, &plain);
}
// A futex call has its operation after the word.
static inline int old_refuses_syscall(long number, ...) {
    enum { WAIT_BITSET = 9, OPERATION = 127 };
    va_list ap;
    va_start(ap, number);
    uint32_t *word = number == SYS_futex ? va_arg(ap, uint32_t *) : NULL;
    int op = word ? va_arg(ap, int) : 0;
    va_end(ap);
    if ((op & OPERATION) == WAIT_BITSET) return old_refuses(OLD_FUTEX_WAIT_BITSET);
    if (number == SYS_getrandom) return old_refuses(OLD_getrandom);
    if (number == SYS_membarrier) return old_refuses(OLD_membarrier);
    if (number == SYS_pidfd_open) return old_refuses(OLD_pidfd_open);
    if (number == SYS_pidfd_send_signal) return old_refuses(OLD_pidfd_send_signal);
    return number == SYS_epoll_pwait2 && old_refuses(OLD_epoll_pwait2);
}

// From here to test.h, which ends it: covers volt.h, and the wrappers of a test around the kernel.
#define accept4(...) old_accept4(__VA_ARGS__)
#define eventfd(...) old_eventfd(__VA_ARGS__)
#define madvise(...) old_madvise(__VA_ARGS__)
#define getsockopt(...) old_getsockopt(__VA_ARGS__)
#define setsockopt(...) old_setsockopt(__VA_ARGS__)
#define epoll_ctl(...) old_epoll_ctl(__VA_ARGS__)
#define sendmsg(...) old_sendmsg(__VA_ARGS__)
#define recvmmsg(...) old_recvmmsg(__VA_ARGS__)
#define sendmmsg(...) old_sendmmsg(__VA_ARGS__)
#define preadv2(...) old_preadv2(__VA_ARGS__)
#define splice(...) old_splice(__VA_ARGS__)
#define syscall(...) (old_refuses_syscall(__VA_ARGS__) ? -1 : (syscall)(__VA_ARGS__))

static inline int old_find_call(const char *name, size_t n) {
    for (int i = 0; i < OLD_N; i++)
        if (strlen(old_names[i]) == n && strncmp(old_names[i], name, n) == 0) return i;
    fprintf(stderr, "OLD_KERNEL: no call %.*s\n", (int)n, name);
    exit(2);
}
static inline int old_find_answer(const char *name, size_t n) {
    for (int i = 0; i < OLD_N_ANSWERS; i++)
        if (strlen(old_answers[i].name) == n && strncmp(old_answers[i].name, name, n) == 0)
            return i + 1;
    fprintf(stderr, "OLD_KERNEL: no answer %.*s\n", (int)n, name);
    exit(2);
}
__attribute__((constructor)) static void old_read_environment(void) {
    const char *s = getenv("OLD_KERNEL");
    old_pid = getpid();
    old_met = (unsigned *)mmap(NULL, OLD_N * sizeof *old_met, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (old_met == MAP_FAILED) abort();
    for (s = s ? s : ""; *(s += strspn(s, " ")); s += strcspn(s, " ")) {
        size_t n = strcspn(s, "= "), end = strcspn(s, " ");
        int call = old_find_call(s, n);
        old_answer[call] = old_find_answer(s + n + (n < end), end - n - (n < end));
    }
}
// Processes of the tests may end here or in other ways.
__attribute__((destructor)) static void old_report(void) {
    for (int i = 0; i < OLD_N && getpid() == old_pid; i++)
        if (old_answer[i])
            printf("OLD_KERNEL %s=%s met %u times\n", old_names[i],
                   old_answers[old_answer[i] - 1].name, old_met[i]);
}

#endif // VOLT_TEST_OLD_KERNEL_H
