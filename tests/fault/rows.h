// SPDX-License-Identifier: MIT OR 0BSD
// The possible failures of each call, by its manual page, and their permitted effects on a program.
// Each value of a row is tried at the k-th call, for each k: once, and as many times in a row as
// `persist` says. Errors that only a bug in volt.h could cause are left out: EFAULT, and EINVAL or
// EBADF where no other thread and no filter of system calls can bring them about.
#ifndef VOLT_FAULT_ROWS_H
#define VOLT_FAULT_ROWS_H

// 1: leaves out the checks that the present volt.h does not pass.
#ifndef KNOWN_DEFECTS
#  define KNOWN_DEFECTS 0
#endif

// HARMLESS: the program succeeds all the same.
// LOUD: the caller gets the error; a program that keeps its first error does not succeed. With one
//       worker only: the memory and the thread of a further worker are requested by no caller.
// LATE: a time limit of the program may pass.
enum { HARMLESS = 1, LOUD = 2, LATE = 4 };
typedef struct row {
    int call, effect, persist;
    int flags;
    int gives;      // the error that the program gets instead of the call's own; 0: the same
    int values[20]; // errno, EAI_..., bytes or ms; ends with 0
} row;

#define ROW(call_, effect_, persist_, flags_, ...)                                                 \
    { C_##call_, effect_, persist_, flags_, 0, { __VA_ARGS__ } }
#define GIVES(call_, effect_, persist_, flags_, gives_, ...)                                       \
    { C_##call_, effect_, persist_, flags_, gives_, { __VA_ARGS__ } }

// ms: 23 days; less where a wheel spans only 4 s, as it goes through all its turns on the way.
#ifdef VOLT_TEST_SMALL
#  define FAR_JUMP 2000000
#else
#  define FAR_JUMP 2000000000
#endif

// Where a call that always fails would keep a run from its end, `persist` is STORM: 60 in a row,
// then the call works again. These are EINTR and EAGAIN, which mean "again"; epoll_wait and
// futexes, whose failure blocks all events; and connections that end before they are accepted.
static const row rows[] = {
    // memory and threads
    ROW(alloc, FAIL, ALWAYS, LOUD, ENOMEM),
    GIVES(mmap, FAIL, ALWAYS, LOUD, ENOMEM, ENOMEM, EAGAIN, EPERM, ENFILE),
    ROW(munmap, FAIL, ALWAYS, HARMLESS, ENOMEM, EINVAL),
    ROW(pthread_create, FAIL, ALWAYS, 0, EAGAIN, EPERM, ENOMEM),
    ROW(pthread_attr_init, FAIL, ALWAYS, 0, ENOMEM),
    ROW(pthread_attr_setstacksize, FAIL, ALWAYS, HARMLESS, EINVAL),
    ROW(pthread_setname_np, FAIL, ALWAYS, HARMLESS, ERANGE, ENOENT),

    // needed by a worker
    ROW(epoll_create1, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENOMEM),
    ROW(eventfd, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENODEV, ENOMEM),
    ROW(timerfd_create, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENODEV, ENOMEM, EPERM),
    ROW(epoll_own, FAIL, ALWAYS, LOUD, ENOMEM, ENOSPC),
    ROW(epoll_watch, FAIL, ALWAYS, 0, ENOMEM, ENOSPC),
    ROW(read_event, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(write_event, FAIL, STORM, HARMLESS, EINTR),
    ROW(write_event, FAIL, ALWAYS, HARMLESS, EAGAIN),
    ROW(epoll_wait, FAIL, STORM, HARMLESS, EINTR),
    ROW(epoll_wait, ZERO, STORM, HARMLESS, 1),
    ROW(epoll_wait, BITS, ALWAYS, HARMLESS, 1),
    ROW(epoll_wait, HUPS, ALWAYS, HARMLESS, 1),
    ROW(epoll_pwait2, FAIL, STORM, HARMLESS, EINTR),
    ROW(epoll_pwait2, ZERO, STORM, HARMLESS, 1),
    ROW(epoll_pwait2, BITS, ALWAYS, HARMLESS, 1),
    ROW(epoll_pwait2, HUPS, ALWAYS, HARMLESS, 1),
    ROW(futex_wait, FAIL, STORM, HARMLESS, EAGAIN, EINTR),
    ROW(futex_wait, ZERO, STORM, HARMLESS, 1),
    ROW(futex_timed, FAIL, STORM, HARMLESS, EAGAIN, EINTR),
    ROW(futex_timed, ZERO, STORM, HARMLESS, 1),
    ROW(futex_timed, FAIL, 0, LATE, ETIMEDOUT),
    ROW(clock, JUMP, 0, LATE, 30, 3000, FAR_JUMP),
    ROW(clock, DIP, STORM, HARMLESS, 20),

    // older kernels, and filters that do not know a call
    ROW(epoll_pwait2, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(epoll_watch, FAIL, ALWAYS, HARMLESS, EINVAL), // EPOLLEXCLUSIVE is of Linux 4.5
    ROW(getrandom, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EAGAIN, EINTR),
    ROW(sched_getaffinity, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL, ESRCH),
    ROW(sysconf, FAIL, ALWAYS, HARMLESS, EINVAL),
    ROW(getsockopt, FAIL, ALWAYS, HARMLESS, ENOPROTOOPT, EPERM, ENOSYS),
    ROW(timerfd_settime, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM),
    ROW(timerfd_settime_at, FAIL, ALWAYS, LOUD, ENOSYS, EPERM),
    ROW(epoll_create1, FAIL, ALWAYS, LOUD, ENOSYS, EPERM),
    ROW(epoll_first, FAIL, ALWAYS, LOUD, ENOSYS, EPERM), // otherwise a run could not end
    ROW(eventfd, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(timerfd_create, FAIL, ALWAYS, LOUD, ENOSYS),
    ROW(accept4, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(futex_wait, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL), // FUTEX_WAIT_BITSET
    ROW(futex_timed, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(open, FAIL, ALWAYS, HARMLESS, ENOENT, EACCES, EMFILE, ENFILE, ENOMEM, EINTR, EPERM),
    ROW(reopen, FAIL, ALWAYS, HARMLESS, ENOENT, EACCES, EMFILE, ENFILE, ENOMEM, EBUSY, ENXIO, EIO),
    ROW(reopen, FAIL, STORM, HARMLESS, EINTR),
    ROW(read_file, FAIL, ALWAYS, HARMLESS, EIO, EINTR, EISDIR),
    ROW(read_file, ZERO, ALWAYS, HARMLESS, 1),
    ROW(read_file, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 5),

    // descriptors
    ROW(nofile, LIMIT, 0, LATE, EMFILE),
    ROW(close, FAIL, ALWAYS, HARMLESS, EINTR, EIO, ENOSPC, EDQUOT),
    ROW(epoll_add, FAIL, ALWAYS, 0, ENOMEM, ENOSPC, ELOOP),
    ROW(epoll_add, FAIL, ALWAYS, HARMLESS, EEXIST),
    ROW(epoll_mod, FAIL, ALWAYS, HARMLESS, ENOENT),
    ROW(epoll_mod, FAIL, ALWAYS, 0, ENOMEM),
    ROW(epoll_del, FAIL, ALWAYS, HARMLESS, ENOENT, EBADF, EPERM, ENOMEM),
    ROW(fcntl_get, FAIL, ALWAYS, LOUD, EBADF),
    ROW(fcntl_stored, FAIL, ALWAYS, HARMLESS, EBADF), // then a thread reads
    ROW(fcntl_set, FAIL, ALWAYS, LOUD, EPERM, EACCES),
    ROW(fcntl_pipe, FAIL, ALWAYS, HARMLESS, EPERM, EBUSY, ENOMEM),
    ROW(poll, FAIL, ALWAYS, LOUD, ENOMEM),
    ROW(poll, FAIL, STORM, HARMLESS, EINTR),
    ROW(read_data, FAIL, ALWAYS, LOUD, ECONNRESET, ETIMEDOUT, EIO, ENOMEM, ENOTCONN, EISDIR),
    ROW(read_data, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(read_data, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    GIVES(read_data, ZERO, 0, 0, EPIPE, 1),
    ROW(readv, FAIL, ALWAYS, LOUD, ECONNRESET, ETIMEDOUT, EIO, ENOMEM, EINVAL),
    ROW(readv, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(readv, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    ROW(write_data, FAIL, ALWAYS, LOUD, EPIPE, EIO, ENOSPC, EDQUOT, EFBIG, ENOMEM),
    ROW(write_data, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(write_data, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    ROW(writev, FAIL, ALWAYS, LOUD, EPIPE, EIO, ENOSPC, EDQUOT, EFBIG, EINVAL),
    ROW(writev, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(writev, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    ROW(send, FAIL, ALWAYS, LOUD, EPIPE, ECONNRESET, ENOBUFS, ENOMEM, ETIMEDOUT, EACCES, ENOTCONN),
    ROW(send, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(send, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    ROW(sendmsg, FAIL, ALWAYS, LOUD, EPIPE, ECONNRESET, ENOBUFS, ENOMEM, EMSGSIZE, ENOTCONN),
    ROW(sendmsg, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(sendmsg, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 99),
    ROW(pipe2, FAIL, ALWAYS, 0, EMFILE, ENFILE, ENOMEM), // a copy then goes through a buffer
#if !KNOWN_DEFECTS
    ROW(read_pipe, FAIL, STORM, HARMLESS, EINTR),
#endif
    ROW(read_pipe, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 50, 99),
    ROW(splice, FAIL, ALWAYS, LOUD, ENOMEM, EPIPE, ECONNRESET, EIO, ENOSPC),
    ROW(splice, FAIL, ALWAYS, HARMLESS, EINVAL, ENOSYS, EPERM),
    ROW(splice, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(splice, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 50, 99),
    ROW(sendfile, FAIL, ALWAYS, LOUD, EINVAL, EIO, ENOMEM, EPIPE, ECONNRESET, EOVERFLOW),
    ROW(sendfile, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(sendfile, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 50, 99),
    ROW(sigtimedwait, FAIL, STORM, HARMLESS, EINTR),
    ROW(sigtimedwait, FAIL, ALWAYS, HARMLESS, EAGAIN),

    // sockets
    ROW(socket, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES, EAFNOSUPPORT, EINVAL,
        EPROTONOSUPPORT),
    ROW(bind, FAIL, ALWAYS, LOUD, EADDRINUSE, EACCES, EADDRNOTAVAIL, EINVAL, ENOMEM, ENOENT, EROFS,
        ELOOP, ENAMETOOLONG, ENOTDIR),
    ROW(listen, FAIL, ALWAYS, LOUD, EADDRINUSE, EOPNOTSUPP),
    ROW(accept4, FAIL, 0, HARMLESS, EMFILE, ENFILE, ENOBUFS, ENOMEM),
    GIVES(accept4, FAIL, ALWAYS, 0, ETIMEDOUT, EMFILE, ENFILE, ENOBUFS, ENOMEM),
    ROW(accept4, FAIL, STORM, HARMLESS, EINTR, EAGAIN, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT,
        EHOSTDOWN, ENONET, EHOSTUNREACH, ENETUNREACH),
    ROW(accept4, FAIL, ALWAYS, LOUD, EOPNOTSUPP),
    ROW(connect, FAIL, ALWAYS, LOUD, ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH, ETIMEDOUT, EACCES,
        EPERM, EADDRINUSE, EAFNOSUPPORT, EAGAIN, ENOENT, EPROTOTYPE),
    ROW(connect, FAIL, ALWAYS, HARMLESS, EINTR),
    ROW(getsockopt_error, FAIL, ALWAYS, LOUD, ENOPROTOOPT, ENOBUFS, ENOMEM),
    ROW(setsockopt, FAIL, ALWAYS, 0, ENOPROTOOPT, EINVAL, ENOMEM, ENOBUFS),
    ROW(getsockname, FAIL, ALWAYS, LOUD, ENOBUFS),
    ROW(getpeername, FAIL, ALWAYS, LOUD, ENOBUFS, ENOTCONN),
    ROW(shutdown, FAIL, ALWAYS, LOUD, ENOTSOCK, ENOBUFS),
    ROW(shutdown, FAIL, ALWAYS, HARMLESS, ENOTCONN),

    ROW(socketpair, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, EAFNOSUPPORT, EOPNOTSUPP, EPROTONOSUPPORT),
    ROW(getsockopt_cred, FAIL, ALWAYS, LOUD, ENOPROTOOPT),
    ROW(getsockopt_domain, FAIL, ALWAYS, LOUD, ENOPROTOOPT),
    ROW(getsockopt_pidfd, FAIL, ALWAYS, LOUD, ENOPROTOOPT, ENODATA, ESRCH, EINVAL, EMFILE, ENFILE,
        ENOMEM),
    ROW(fchmod, FAIL, ALWAYS, HARMLESS, EPERM, EIO, EROFS), // only the time is narrowed by it
    ROW(chmod, FAIL, ALWAYS, LOUD, EACCES, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EPERM,
        EROFS),
    ROW(chown, FAIL, ALWAYS, LOUD, EACCES, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EPERM,
        EROFS),
    ROW(open_dir, FAIL, ALWAYS, LOUD, EACCES, EINTR, ELOOP, EMFILE, ENFILE, ENOENT, ENOMEM,
        ENOTDIR),
    ROW(if_nametoindex, FAIL, ALWAYS, LOUD, ENODEV, EMFILE, ENFILE, ENOMEM),
    ROW(if_indextoname, FAIL, ALWAYS, HARMLESS, ENXIO, EMFILE), // the number stands in its place

    // messages: the next datagram, or an ICMP message, may bring the error of an earlier one
    ROW(recv_message, FAIL, ALWAYS, LOUD, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOMEM,
        ENOTCONN, ECONNRESET, ENETDOWN),
    ROW(recv_message, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(recv_message, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 50),
    ROW(send_message, FAIL, ALWAYS, LOUD, EPIPE, ECONNRESET, ECONNREFUSED, ENOBUFS, ENOMEM,
        EMSGSIZE, ENOTCONN, EACCES, EPERM, EHOSTUNREACH, ENETUNREACH, EDESTADDRREQ, ETOOMANYREFS),
    ROW(send_message, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(send_message, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 50),
    ROW(send_joined, FAIL, ALWAYS, LOUD, ECONNREFUSED, ENOBUFS, ENOMEM, EACCES, EPERM,
        EHOSTUNREACH, ENETUNREACH),
    ROW(send_joined, FAIL, ALWAYS, HARMLESS, EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT, EMSGSIZE),
    ROW(send_joined, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(recvmmsg, FAIL, ALWAYS, LOUD, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOMEM, ENETDOWN),
    ROW(recvmmsg, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(recvmmsg, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(recvmmsg, SHORT, ALWAYS, HARMLESS, 1, 2),
    ROW(sendmmsg, FAIL, ALWAYS, LOUD, ECONNREFUSED, ENOBUFS, ENOMEM, EMSGSIZE, EACCES,
        EHOSTUNREACH, ENETUNREACH),
    ROW(sendmmsg, FAIL, ALWAYS, HARMLESS, ENOSYS, EPERM, EINVAL),
    ROW(sendmmsg, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(sendmmsg, SHORT, ALWAYS, HARMLESS, 1, 2),

    // signals, processes, serial lines
    ROW(signalfd, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENODEV, ENOMEM),
    ROW(read_signal, FAIL, STORM, HARMLESS, EINTR, EAGAIN),
    ROW(pipe2_child, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENOMEM),
    ROW(read_report, FAIL, STORM, HARMLESS, EINTR),
    ROW(fork, FAIL, ALWAYS, LOUD, EAGAIN, ENOMEM),
    ROW(pidfd_send, FAIL, ALWAYS, 0, EPERM, ESRCH, ENOSYS),
    ROW(pidfd_open, FAIL, ALWAYS, HARMLESS, EMFILE, ENFILE, ENODEV, ENOMEM, ENOSYS, EPERM),
    ROW(waitid, FAIL, ALWAYS, LOUD, ECHILD),
    ROW(waitpid, FAIL, STORM, HARMLESS, EINTR),
    ROW(waitpid, FAIL, ALWAYS, HARMLESS, ECHILD),
    ROW(kill, FAIL, ALWAYS, 0, EPERM, ESRCH),
    ROW(kill_group, FAIL, ALWAYS, HARMLESS, EPERM, ESRCH),
    ROW(open_device, FAIL, ALWAYS, LOUD, ENOENT, EACCES, EMFILE, ENFILE, ENOMEM, EINTR, ENXIO,
        ENODEV, EIO, EBUSY, ELOOP, EPERM),
    ROW(tcgetattr, FAIL, ALWAYS, LOUD, ENOTTY, EIO),
    ROW(tcsetattr, FAIL, ALWAYS, 0, ENOTTY, EIO), // volt_tty_restore has no result
    ROW(tcsetattr, FAIL, STORM, HARMLESS, EINTR),
    GIVES(flock, FAIL, ALWAYS, 0, EBUSY, EAGAIN), // of a path: EADDRINUSE
    ROW(flock, FAIL, ALWAYS, LOUD, EINTR, ENOLCK),
    ROW(ioctl, FAIL, ALWAYS, LOUD, ENOTTY, EIO),
    ROW(ioctl_nxcl, FAIL, ALWAYS, HARMLESS, ENOTTY, EIO),

    // files
    ROW(openat, FAIL, ALWAYS, LOUD, ENOENT, EACCES, EMFILE, ENFILE, ENOMEM, EINTR, EISDIR, ELOOP,
        ENAMETOOLONG, ENOSPC, EROFS, EDQUOT),
    ROW(openat_new, FAIL, STORM, HARMLESS, EEXIST),
    ROW(ftruncate, FAIL, ALWAYS, LOUD, EFBIG, EINTR, EINVAL, EIO, EPERM, EROFS, ENOSPC, EDQUOT),
    ROW(rename, FAIL, ALWAYS, LOUD, EACCES, EBUSY, EDQUOT, EISDIR, ELOOP, EMLINK, ENAMETOOLONG,
        ENOENT, ENOMEM, ENOSPC, ENOTDIR, EPERM, EROFS, EXDEV),
    ROW(unlink, FAIL, ALWAYS, LOUD, EACCES, EBUSY, EIO, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM,
        ENOTDIR, EPERM, EROFS),
    ROW(mkdir, FAIL, ALWAYS, LOUD, EACCES, EDQUOT, EEXIST, ELOOP, EMLINK, ENAMETOOLONG, ENOENT,
        ENOMEM, ENOSPC, ENOTDIR, EPERM, EROFS),
    ROW(rmdir, FAIL, ALWAYS, LOUD, EACCES, EBUSY, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR,
        ENOTEMPTY, EPERM, EROFS),
    ROW(dirents, FAIL, ALWAYS, LOUD, ENOENT, EIO, EINTR),
    ROW(preadv2, FAIL, ALWAYS, HARMLESS, EAGAIN, EOPNOTSUPP, ENOSYS, EINVAL, EPERM, EIO,
        ENOMEM),
    ROW(preadv2, FAIL, STORM, HARMLESS, EINTR),
    ROW(preadv2, ZERO, ALWAYS, HARMLESS, 1),
    ROW(preadv2, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 7, 50),
    ROW(pread, FAIL, ALWAYS, LOUD, EIO, EISDIR, ENOMEM),
    ROW(pread, FAIL, STORM, HARMLESS, EINTR),
    ROW(pread, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 7, 50),
    GIVES(pread, ZERO, 0, 0, EPIPE, 1),
    ROW(pwrite, FAIL, ALWAYS, LOUD, EIO, ENOSPC, EDQUOT, EFBIG),
    ROW(pwrite, FAIL, STORM, HARMLESS, EINTR),
    GIVES(pwrite, ZERO, ALWAYS, LOUD, EIO, 1),
    ROW(pwrite, SHORT, ALWAYS, HARMLESS, 1, 2, 3, 7, 50),
    ROW(fsync, FAIL, ALWAYS, LOUD, EIO, ENOSPC, EDQUOT, EROFS, EINTR),
    ROW(fdatasync, FAIL, ALWAYS, LOUD, EIO, ENOSPC, EDQUOT, EROFS, EINTR),
    ROW(stat, FAIL, ALWAYS, LOUD, ENOENT, EACCES, ENOMEM, ELOOP, ENAMETOOLONG, ENOTDIR),
    ROW(close_file, FAIL, ALWAYS, 0, EINTR, EIO, ENOSPC, EDQUOT), // a reader is not told

    // names
    GIVES(getaddrinfo, FAIL, ALWAYS, LOUD, ENOENT, EAI_NONAME, EAI_SERVICE, EAI_NODATA,
          EAI_ADDRFAMILY),
    GIVES(getaddrinfo, FAIL, ALWAYS, LOUD, EAGAIN, EAI_AGAIN),
    GIVES(getaddrinfo, FAIL, ALWAYS, LOUD, ENOMEM, EAI_MEMORY),
    GIVES(getaddrinfo, FAIL, ALWAYS, LOUD, EIO, EAI_FAIL, EAI_FAMILY, EAI_BADFLAGS, EAI_SOCKTYPE),
    GIVES(getaddrinfo, ZERO, ALWAYS, LOUD, ENOENT, 1), // a list without addresses
    ROW(getaddrinfo_system, FAIL, ALWAYS, LOUD, EMFILE, ENFILE, ENOMEM, EACCES),
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

#endif // VOLT_FAULT_ROWS_H
