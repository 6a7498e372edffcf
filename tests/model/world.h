// SPDX-License-Identifier: MIT OR 0BSD
// The system calls that volt.h makes through VOLT_SYS(name, ...), as kernel.c models them. A call
// that is not modelled ends the scenario with an error that names it.
#ifndef VMC_WORLD_H
#define VMC_WORLD_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int vmc_unmodelled(const char *call, ...);
int vmc_no_effect(const char *call, ...); // 0

// ---- modelled: eventfd, one-shot timerfd, epoll, pages, and calls about one thread alone
int vmc_sys_eventfd(unsigned initial, int flags);
int vmc_sys_epoll_create1(int flags);
int vmc_sys_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev);
int vmc_sys_timerfd_create(int clock, int flags);
int vmc_sys_timerfd_settime(int fd, int flags, const struct itimerspec *new_,
                            struct itimerspec *old);
ssize_t vmc_sys_read(int fd, void *buf, size_t n);
ssize_t vmc_sys_write(int fd, const void *buf, size_t n);
int vmc_sys_close(int fd);
int vmc_sys_poll(struct pollfd *p, nfds_t n, int timeout); // of one eventfd, without waiting
void *vmc_sys_mmap(void *at, size_t size, int protection, int flags, int fd, long offset);
int vmc_sys_munmap(void *at, size_t size);
#define vmc_sys_sysconf(which_) ((void)(which_), 4096L)
#define vmc_sys_pthread_attr_init(...) vmc_no_effect("pthread_attr_init", __VA_ARGS__)
#define vmc_sys_pthread_attr_setstacksize(...)                                                     \
    vmc_no_effect("pthread_attr_setstacksize", __VA_ARGS__)
#define vmc_sys_pthread_attr_destroy(...) vmc_no_effect("pthread_attr_destroy", __VA_ARGS__)
#define vmc_sys_pthread_setname_np(...) vmc_no_effect("pthread_setname_np", __VA_ARGS__)
#define vmc_sys_pthread_setcancelstate(...) vmc_no_effect("pthread_setcancelstate", __VA_ARGS__)
#define vmc_sys_pthread_sigmask(...) vmc_no_effect("pthread_sigmask", __VA_ARGS__)

// ---- for scenarios: a descriptor that epoll can watch, made ready by the scenario
int vmc_fd(void);
void vmc_fd_raise(int fd, uint32_t events); // an edge: EPOLLIN, EPOLLOUT, ...

// ---- not modelled
#define vmc_sys_clock_gettime(...) vmc_unmodelled("clock_gettime", __VA_ARGS__)
#define vmc_sys_epoll_wait(...) vmc_unmodelled("epoll_wait", __VA_ARGS__)
#define vmc_sys_syscall(...) vmc_unmodelled("syscall", __VA_ARGS__)
#define vmc_sys_socket(...) vmc_unmodelled("socket", __VA_ARGS__)
#define vmc_sys_bind(...) vmc_unmodelled("bind", __VA_ARGS__)
#define vmc_sys_listen(...) vmc_unmodelled("listen", __VA_ARGS__)
#define vmc_sys_connect(...) vmc_unmodelled("connect", __VA_ARGS__)
#define vmc_sys_accept(...) vmc_unmodelled("accept", __VA_ARGS__)
#define vmc_sys_accept4(...) vmc_unmodelled("accept4", __VA_ARGS__)
#define vmc_sys_shutdown(...) vmc_unmodelled("shutdown", __VA_ARGS__)
#define vmc_sys_getsockopt(...) vmc_unmodelled("getsockopt", __VA_ARGS__)
#define vmc_sys_setsockopt(...) vmc_unmodelled("setsockopt", __VA_ARGS__)
#define vmc_sys_getsockname(...) vmc_unmodelled("getsockname", __VA_ARGS__)
#define vmc_sys_getpeername(...) vmc_unmodelled("getpeername", __VA_ARGS__)
#define vmc_sys_send(...) vmc_unmodelled("send", __VA_ARGS__)
#define vmc_sys_sendmsg(...) vmc_unmodelled("sendmsg", __VA_ARGS__)
#define vmc_sys_recv(...) vmc_unmodelled("recv", __VA_ARGS__)
#define vmc_sys_recvmsg(...) vmc_unmodelled("recvmsg", __VA_ARGS__)
#define vmc_sys_fstat(...) vmc_unmodelled("fstat", __VA_ARGS__)
#define vmc_sys_ioctl(...) vmc_unmodelled("ioctl", __VA_ARGS__)
#define vmc_sys_isatty(...) vmc_unmodelled("isatty", __VA_ARGS__)
#define vmc_sys_mincore(...) vmc_unmodelled("mincore", __VA_ARGS__)
#define vmc_sys_readv(...) vmc_unmodelled("readv", __VA_ARGS__)
#define vmc_sys_writev(...) vmc_unmodelled("writev", __VA_ARGS__)
#define vmc_sys_fcntl(...) vmc_unmodelled("fcntl", __VA_ARGS__)
#define vmc_sys_open(...) vmc_unmodelled("open", __VA_ARGS__)
#define vmc_sys_madvise(...) vmc_unmodelled("madvise", __VA_ARGS__)
#define vmc_sys_sched_getaffinity(...) vmc_unmodelled("sched_getaffinity", __VA_ARGS__)
#define vmc_sys_sigtimedwait(...) vmc_unmodelled("sigtimedwait", __VA_ARGS__)
#define vmc_sys_openat(...) vmc_unmodelled("openat", __VA_ARGS__)
#define vmc_sys_pread(...) vmc_unmodelled("pread", __VA_ARGS__)
#define vmc_sys_pwrite(...) vmc_unmodelled("pwrite", __VA_ARGS__)
#define vmc_sys_fsync(...) vmc_unmodelled("fsync", __VA_ARGS__)
#define vmc_sys_fdatasync(...) vmc_unmodelled("fdatasync", __VA_ARGS__)
#define vmc_sys_stat(...) vmc_unmodelled("stat", __VA_ARGS__)
#define vmc_sys_getaddrinfo(...) vmc_unmodelled("getaddrinfo", __VA_ARGS__)
#define vmc_sys_freeaddrinfo(...) vmc_unmodelled("freeaddrinfo", __VA_ARGS__)
#define vmc_sys_cfgetospeed(...) vmc_unmodelled("cfgetospeed", __VA_ARGS__)
#define vmc_sys_cfsetispeed(...) vmc_unmodelled("cfsetispeed", __VA_ARGS__)
#define vmc_sys_cfsetospeed(...) vmc_unmodelled("cfsetospeed", __VA_ARGS__)
#define vmc_sys_chmod(...) vmc_unmodelled("chmod", __VA_ARGS__)
#define vmc_sys_fchmod(...) vmc_unmodelled("fchmod", __VA_ARGS__)
#define vmc_sys_prctl(...) vmc_unmodelled("prctl", __VA_ARGS__)
#define vmc_sys_chown(...) vmc_unmodelled("chown", __VA_ARGS__)
#define vmc_sys_flock(...) vmc_unmodelled("flock", __VA_ARGS__)
#define vmc_sys_ftruncate(...) vmc_unmodelled("ftruncate", __VA_ARGS__)
#define vmc_sys_if_indextoname(...) vmc_unmodelled("if_indextoname", __VA_ARGS__)
#define vmc_sys_if_nametoindex(...) (unsigned)vmc_unmodelled("if_nametoindex", __VA_ARGS__)
#define vmc_sys_kill(...) vmc_unmodelled("kill", __VA_ARGS__)
#define vmc_sys_mkdir(...) vmc_unmodelled("mkdir", __VA_ARGS__)
#define vmc_sys_pipe2(...) vmc_unmodelled("pipe2", __VA_ARGS__)
#define vmc_sys_preadv2(...) vmc_unmodelled("preadv2", __VA_ARGS__)
#define vmc_sys_recvmmsg(...) vmc_unmodelled("recvmmsg", __VA_ARGS__)
#define vmc_sys_rename(...) vmc_unmodelled("rename", __VA_ARGS__)
#define vmc_sys_rmdir(...) vmc_unmodelled("rmdir", __VA_ARGS__)
#define vmc_sys_sendfile(...) vmc_unmodelled("sendfile", __VA_ARGS__)
#define vmc_sys_sendmmsg(...) vmc_unmodelled("sendmmsg", __VA_ARGS__)
#define vmc_sys_signalfd(...) vmc_unmodelled("signalfd", __VA_ARGS__)
#define vmc_sys_sigprocmask(...) vmc_unmodelled("sigprocmask", __VA_ARGS__)
#define vmc_sys_socketpair(...) vmc_unmodelled("socketpair", __VA_ARGS__)
#define vmc_sys_splice(...) vmc_unmodelled("splice", __VA_ARGS__)
#define vmc_sys_tcgetattr(...) vmc_unmodelled("tcgetattr", __VA_ARGS__)
#define vmc_sys_tcsetattr(...) vmc_unmodelled("tcsetattr", __VA_ARGS__)
#define vmc_sys_timerfd_gettime(...) vmc_unmodelled("timerfd_gettime", __VA_ARGS__)
#define vmc_sys_unlink(...) vmc_unmodelled("unlink", __VA_ARGS__)
#define vmc_sys_waitid(...) vmc_unmodelled("waitid", __VA_ARGS__)
#define vmc_sys_waitpid(...) vmc_unmodelled("waitpid", __VA_ARGS__)

#endif // VMC_WORLD_H
