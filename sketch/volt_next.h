// SPDX-License-Identifier: MIT OR 0BSD
// Draft of the I/O library: declarations only, for programs that settle its names and shapes. Each
// one moves into volt.h when it is implemented. Contracts have the form of volt.h's.
//
// Async functions have a state struct, whose first member is a frame. All other functions with a
// volt_cx that return VOLT_POLL are leaves, or polls without a state of their own: the awaiting
// frame is enough. "State" objects are members of the caller's state struct.
#ifndef VOLT_NEXT_H
#define VOLT_NEXT_H
#include "volt.h"
#include <stdarg.h>
#include <sys/socket.h>
#ifdef __cplusplus
extern "C" {
#endif

// ---- one operation

// Calls try_once(fd, arg), one system call that does not block, until it returns something else
// than -EAGAIN. Between the calls it waits until the descriptor may be ready for `events`: VOLT_IN
// or VOLT_OUT. Opens every kernel interface that has a descriptor: netlink, CAN, tun, TLS
// libraries, drivers. try_once runs on the worker during a poll; it must not block nor await.
//   returns: the result of try_once | -EBADF if the descriptor is closed during the wait
typedef int64_t volt_io_fn(int fd, void *arg);
VOLT_API VOLT_POLL volt_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once, void *arg);

// Waits until a read or a write of the descriptor is likely to succeed. Unlike volt_readable it is
// for descriptors that volt reads and writes: no system call, and it ends at once after an event
// that no -EAGAIN has answered yet. A server can so wait without a buffer, and read into the stack.
//   returns: 0, possibly without need: a volt_try_ call then gives -EAGAIN | -EBADF
VOLT_API VOLT_POLL volt_read_ready(volt_cx *cx, int fd);
VOLT_API VOLT_POLL volt_write_ready(volt_cx *cx, int fd);
// Reads or writes once, without waiting.
//   where  : inside a task
//   returns: the number of bytes | volt_try_read, volt_try_readv: 0 at the end of the file |
//            -EAGAIN: await volt_read_ready or volt_write_ready next | another -errno
VOLT_API VOLT__MUST int64_t volt_try_read(volt_cx *cx, int fd, void *buf, size_t len);
VOLT_API VOLT__MUST int64_t volt_try_readv(volt_cx *cx, int fd, const struct iovec *iov, int n);
VOLT_API VOLT__MUST int64_t volt_try_write(volt_cx *cx, int fd, const void *buf, size_t len);
VOLT_API VOLT__MUST int64_t volt_try_writev(volt_cx *cx, int fd, const struct iovec *iov, int n);
// The same for a system call of the caller's, as in volt_io: -EAGAIN clears the readiness.
VOLT_API VOLT__MUST int64_t volt_try_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once,
                                        void *arg);
// Writes all of the vector. After an error, volt_progress(&s->frame) bytes have been written.
//   returns: the sum of the lengths | as volt_write_all
VOLT_API VOLT_POLL volt_writev_all(volt_cx *cx, int fd, const struct iovec *iov, int n);

// ---- addresses

// Copies any socket address of at most 120 bytes, or returns the address to be passed to a system
// call, with its length in *len.
//   returns: volt_addr_from 0 | -EINVAL if `len` is 0 or above 120
VOLT_API int volt_addr_from(volt_addr *a, const struct sockaddr *sa, socklen_t len);
VOLT_API const struct sockaddr *volt_addr_sockaddr(const volt_addr *a, socklen_t *len);
// The address of a numeric host, or of all addresses if it is NULL (IPv6 and IPv4), with a port.
//   returns: 0 | -EINVAL
VOLT_API int volt_addr_make(volt_addr *a, const char *host_or_null, unsigned port);
VOLT_API int volt_addr_set_port(volt_addr *a, unsigned port); // 0 | -EAFNOSUPPORT
// Returns 1 if both are the same address with the same port, else 0.
VOLT_API int volt_addr_equal(const volt_addr *a, const volt_addr *b);
// A hash of what volt_addr_equal compares, for tables of peers.
VOLT_API uint32_t volt_addr_hash(const volt_addr *a);
VOLT_API int volt_addr_family(const volt_addr *a); // AF_INET, AF_INET6, AF_UNIX, ...
// volt_addr_parse and volt_addr_format also know "unix:@name" (abstract) and "[fe80::1%eth0]:80".

// ---- sockets

// socket(2) with SOCK_CLOEXEC and SOCK_NONBLOCK. For options that are set before volt_sock_bind,
// volt_connect_on or listen(2).
//   returns: a descriptor | -errno
VOLT_API int volt_sock_open(int family, int type, int protocol);
VOLT_API int volt_sock_bind(int fd, const volt_addr *a);
// Connects a socket of one's own, of any type. It stays open after an error. For a datagram socket
// this sets the peer, and never waits.
//   returns: 0 | as volt_connect
VOLT_API VOLT_POLL volt_connect_on(volt_cx *cx, int fd, const volt_addr *to);
// As volt_connect, from the local address `from`, whose port may be 0.
VOLT_API VOLT_POLL volt_connect_from(volt_cx *cx, const volt_addr *to, const volt_addr *from);
// As volt_accept; the peer's address in *peer.
VOLT_API VOLT_POLL volt_accept_from(volt_cx *cx, int fd, volt_addr *peer);
// Takes the error that the socket has stored: SO_ERROR. 0 | -errno
VOLT_API int volt_sock_error(int fd);

// Of recv(2), send(2) and their relatives, on sockets of any type. A length of 0 is a datagram.
// MSG_DONTWAIT and MSG_NOSIGNAL are added to `flags`. Without MSG_TRUNC in `flags`, a datagram
// that is longer than the buffer gives -EMSGSIZE, with its beginning in the buffer; with MSG_TRUNC
// its true length, which is above `len`. MSG_PEEK leaves the data in the socket.
//   returns: the number of bytes, or messages | 0 at the end of a stream | -EMSGSIZE |
//            -ECONNREFUSED, -EHOSTUNREACH of an ICMP message to a connected socket | -errno
VOLT_API VOLT_POLL volt_recv(volt_cx *cx, int fd, void *buf, size_t len, int flags);
VOLT_API VOLT_POLL volt_send(volt_cx *cx, int fd, const void *buf, size_t len, int flags);
VOLT_API VOLT_POLL volt_recvfrom(volt_cx *cx, int fd, void *buf, size_t len, int flags,
                                 volt_addr *from_or_null);
VOLT_API VOLT_POLL volt_sendto(volt_cx *cx, int fd, const void *buf, size_t len, int flags,
                               const volt_addr *to);
VOLT_API VOLT_POLL volt_recvmsg(volt_cx *cx, int fd, struct msghdr *m, int flags);
VOLT_API VOLT_POLL volt_sendmsg(volt_cx *cx, int fd, const struct msghdr *m, int flags);
// At least one message, and as many more as there are without waiting. The result is their number.
// An error after the first message is returned by the next call.
VOLT_API VOLT_POLL volt_recvmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags);
VOLT_API VOLT_POLL volt_sendmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags);

// ---- datagrams

typedef struct volt_udp_options { // zeroed memory is the default
    unsigned is_reuseport, is_reuseaddr, is_broadcast, is_v6only;
    unsigned has_info;       // received messages carry what volt_msg_info has
    unsigned is_segmented;   // UDP_GRO: for volt_recv_segments
    int send_bytes, receive_bytes; // of the kernel's buffers; 0: the system's default
    const char *device;      // SO_BINDTODEVICE; NULL: any
} volt_udp_options;
// Opens a UDP socket bound to *a; NULL: any free port, for IPv6 and IPv4.
//   returns: a descriptor, non-blocking and close-on-exec | as volt_listen_addr
VOLT_API int volt_udp_open(const volt_addr *a_or_null, const volt_udp_options *options_or_null);
// Joins or leaves a multicast group on an interface, 0: that of the default route; source NULL: any
// source.
//   returns: 0 | -errno
VOLT_API int volt_mcast_join(int fd, const volt_addr *group, unsigned interface,
                             const volt_addr *source_or_null);
VOLT_API int volt_mcast_leave(int fd, const volt_addr *group, unsigned interface,
                              const volt_addr *source_or_null);
VOLT_API int volt_set_mcast(int fd, unsigned interface, int ttl, int is_loop);
VOLT_API int volt_set_ttl(int fd, int ttl);
VOLT_API int volt_set_tos(int fd, int tos); // the six bits of DSCP and the two of ECN

// The properties of a datagram beside its bytes. A member is used if its bit is in `has`.
enum { VOLT_MSG_LOCAL = 1, VOLT_MSG_TOS = 2, VOLT_MSG_TTL = 4, VOLT_MSG_SEGMENT = 8 };
typedef struct volt_msg_info {
    uint32_t has;
    volt_addr local;    // the address that it was sent to, or is to be sent from; without port
    unsigned interface; // of the system, with LOCAL
    int tos, ttl;
    unsigned segment; // bytes in each datagram of a batch
} volt_msg_info;
enum { VOLT_MSG_INFO_BYTES = 128 }; // room for the control data of one message
// Reads the control data of a received message, or writes that of a message to be sent: `room`
// bytes at m->msg_control, VOLT_MSG_INFO_BYTES are enough.
//   returns: volt_msg_info_put 0 | -ENOSPC
VOLT_API void volt_msg_info_get(const struct msghdr *m, volt_msg_info *out);
VOLT_API int volt_msg_info_put(struct msghdr *m, size_t room, const volt_msg_info *info);

// Sends `len` bytes as datagrams of `segment` bytes each, the last one possibly shorter: by
// UDP_SEGMENT, or by sendmmsg where the kernel or the device lacks that. to NULL: the connected
// peer. Waits until at least one datagram is sent, and returns the bytes sent: a multiple of
// `segment`, or `len`.
//   returns: the number of bytes | -EINVAL if `segment` is 0 | -EMSGSIZE | as volt_sendto
VOLT_API VOLT_POLL volt_send_segments(volt_cx *cx, int fd, const void *buf, size_t len,
                                      size_t segment, const volt_addr *to_or_null);
// Receives one or more datagrams of one sender: all have *segment bytes, the last one possibly
// less. Give it 64 KiB. Without UDP_GRO it is one datagram.
//   returns: the number of bytes | as volt_recvfrom
VOLT_API VOLT_POLL volt_recv_segments(volt_cx *cx, int fd, void *buf, size_t len, size_t *segment,
                                      volt_addr *from_or_null);

// ---- unix sockets, pipes, terminals

// Further members of volt_listen_options, for the path of a unix socket:
typedef struct volt_unix_options {
    int type;    // SOCK_STREAM if 0, SOCK_SEQPACKET, SOCK_DGRAM
    int backlog; // 0: 1024
    unsigned mode;           // of the path; 0: as the umask gives it
    unsigned has_owner;      // 1: the path belongs to uid and gid
    uid_t uid;
    gid_t gid;
    unsigned is_replacing;   // 1: a path whose server is gone is removed first
} volt_unix_options;
// Opens a unix socket at an address, listening if the type has connections. address NULL: a
// datagram socket without a name.
//   returns: a descriptor | -EADDRINUSE if a server answers there | -errno
VOLT_API int volt_unix_open(const volt_addr *a_or_null, const volt_unix_options *options_or_null);
// Removes the path of a socket that this process has opened, if it is still that socket.
VOLT_API int volt_unix_unlink(int fd);
// Both descriptors are close-on-exec and non-blocking. fd[0] of a pipe is the end that reads.
VOLT_API int volt_socketpair(int type, int fd[2]);
VOLT_API int volt_pipe(int fd[2]);
// Sends or receives descriptors with at least one byte of data. Received ones are close-on-exec. *n
// has room for that many, and is set to their number; surplus ones are closed.
//   returns: the number of bytes | volt_recv_fds: -EMSGSIZE if descriptors were surplus, with
//            all *n that fit | -errno
VOLT_API VOLT_POLL volt_send_fds(volt_cx *cx, int fd, const void *buf, size_t len, const int *fds,
                                 int n);
VOLT_API VOLT_POLL volt_recv_fds(volt_cx *cx, int fd, void *buf, size_t len, int *fds, int *n);
typedef struct volt_cred {
    pid_t pid;
    uid_t uid;
    gid_t gid;
} volt_cred;
// The process that has connected, as of that time.
VOLT_API int volt_peer_cred(int fd, volt_cred *out); // 0 | -errno
VOLT_API int volt_peer_pidfd(int fd); // a descriptor | -ENOPROTOOPT before Linux 6.5 | -errno

// Sets a terminal to raw mode and keeps its state, or puts that back.
typedef struct volt_tty {
    int fd_, is_saved_;
    unsigned char state_[64];
} volt_tty;
VOLT_API int volt_tty_raw(volt_tty *t, int fd); // 0 | -ENOTTY | -errno
VOLT_API void volt_tty_restore(volt_tty *t);    // from any thread or a signal handler; idempotent
typedef struct volt_serial_options { // zeroed memory: 9600 baud, 8N1, no flow control
    unsigned baud, data_bits, stop_bits;
    char parity;          // 'N' or 0, 'E', 'O'
    unsigned has_rtscts, has_xonxoff;
    unsigned is_exclusive; // TIOCEXCL and a lock: another process gets -EBUSY
} volt_serial_options;
// Opens a serial line in raw mode, for volt_read and volt_write.
//   returns: a descriptor | -EBUSY | -EINVAL: a speed that the driver lacks | -errno
VOLT_API int volt_serial_open(const char *path, const volt_serial_options *options_or_null);

// ---- streams, readers, writers

// A stream of bytes in two directions: a descriptor, a TLS connection, a script of a test. Copied
// by value; what `self` points at must outlive it. One read and one write may wait at once.
typedef struct volt_stream volt_stream;
typedef struct volt_stream_ops {
    // as volt_read, volt_write
    volt_poll (*read)(volt_cx *cx, volt_stream s, void *buf, size_t len);
    volt_poll (*write)(volt_cx *cx, volt_stream s, const void *buf, size_t len);
    // no more writes will come: shutdown(2), close_notify; NULL: nothing to do
    volt_poll (*end)(volt_cx *cx, volt_stream s);
} volt_stream_ops;
struct volt_stream {
    const volt_stream_ops *ops;
    void *self;
    int fd; // -1 if the stream is no descriptor alone
};
VOLT_API volt_stream volt_stream_of(int fd); // a descriptor as a stream
VOLT_API VOLT_POLL volt_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len);
VOLT_API VOLT_POLL volt_stream_write(volt_cx *cx, volt_stream s, const void *buf, size_t len);
VOLT_API VOLT_POLL volt_stream_write_all(volt_cx *cx, volt_stream s, const void *buf, size_t len);
VOLT_API VOLT_POLL volt_stream_end(volt_cx *cx, volt_stream s);

// Bytes in the buffer of a reader, valid until the next call on that reader.
typedef struct volt_span {
    char *data;
    size_t len;
} volt_span;
enum { VOLT_LONG_STOP, VOLT_LONG_SKIP };
typedef struct volt_reader {
    volt_stream in_;
    char *buf_;
    uint32_t cap_, from_, to_, state_;
    int too_long; // VOLT_LONG_STOP, or VOLT_LONG_SKIP: may be set at any time
} volt_reader;
// Reads through a buffer of the caller's. A call that is cancelled or times out has lost nothing:
// the next one goes on. All calls below by one task at a time.
VOLT_API void volt_reader_init(volt_reader *r, volt_stream in, void *buf, size_t cap);
// Waits until at least n bytes are in the buffer. All bytes that are there: *out.
//   returns: their number, n or more | less than n at the end of the stream | -EMSGSIZE if n is
//            above the buffer's size | the errors of the stream
VOLT_API VOLT_POLL volt_fill(volt_cx *cx, volt_reader *r, size_t n, volt_span *out);
VOLT_API volt_span volt_buffered(const volt_reader *r); // without waiting
VOLT_API void volt_consume(volt_reader *r, size_t n);   // n bytes of the buffer have been used
// As volt_read and volt_read_exact, through the buffer.
VOLT_API VOLT_POLL volt_reader_read(volt_cx *cx, volt_reader *r, void *buf, size_t len);
VOLT_API VOLT_POLL volt_reader_read_exact(volt_cx *cx, volt_reader *r, void *buf, size_t len);
// Takes the next line, without "\n" or "\r\n", or what is before the next delimiter of n bytes. The
// last line needs no end: volt_is_cut tells.
//   returns: 1 with the line in *out | 0 at the end of the stream | -EMSGSIZE if the line does not
//            fit into the buffer: with VOLT_LONG_STOP each later call returns that as well, with
//            VOLT_LONG_SKIP the next call returns the line after it | the errors of the stream
VOLT_API VOLT_POLL volt_read_line(volt_cx *cx, volt_reader *r, volt_span *out);
VOLT_API VOLT_POLL volt_read_until(volt_cx *cx, volt_reader *r, const void *delimiter, size_t n,
                                   volt_span *out);
VOLT_API int volt_is_cut(const volt_reader *r); // 1: the last line had no end
// Takes the next record: a header that has its length, and that many bytes.
typedef struct volt_record_format {
    unsigned offset, width;  // of the length field, in bytes: width 1 to 8; 0: 4
    unsigned is_little;      // 1: little-endian
    unsigned header;         // bytes of the whole header; 0: offset + width
    int64_t adjust;          // added to the field: -4 if it counts itself, for example
    uint64_t most;           // the longest record without its header; 0: what fits into the buffer
    unsigned keeps_header;   // 1: *out begins with the header
} volt_record_format;
//   returns: 1 with the record in *out | 0 at the end of the stream, between records | -EMSGSIZE
//            as a line | -EBADMSG if `adjust` makes the length negative | -EPIPE if the stream
//            ended inside a record
VOLT_API VOLT_POLL volt_read_record(volt_cx *cx, volt_reader *r, const volt_record_format *f,
                                    volt_span *out);
// Reads up to the end of the stream, at most `cap` bytes.
//   returns: the number of bytes | -EMSGSIZE if there are more
VOLT_API VOLT_POLL volt_read_to_end(volt_cx *cx, volt_reader *r, void *buf, size_t cap);

typedef struct volt_writer {
    volt_stream out_;
    char *buf_;
    uint32_t cap_, from_, to_;
} volt_writer;
// Writes through a buffer of the caller's. The calls that do not wait are for any place where the
// writer may be touched; volt_flush or volt_put_wait moves the bytes.
VOLT_API void volt_writer_init(volt_writer *w, volt_stream out, void *buf, size_t cap);
//   returns: 0 | -ENOBUFS if there is no room for all of it: nothing is put
VOLT_API int volt_put(volt_writer *w, const void *p, size_t n);
VOLT_API int volt_putf(volt_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
VOLT_API int volt_put_record(volt_writer *w, const volt_record_format *f, const void *p, size_t n);
VOLT_API size_t volt_unflushed(const volt_writer *w); // bytes in the buffer
// Puts all of it, of any length, and writes when the buffer is full. Cancelled, it has put
// volt_progress(&s->frame) bytes.
VOLT_API VOLT_POLL volt_put_wait(volt_cx *cx, volt_writer *w, const void *p, size_t n);
// Writes all that is in the buffer. Cancelled, the rest stays in it.
//   returns: 0 | the errors of the stream
VOLT_API VOLT_POLL volt_flush(volt_cx *cx, volt_writer *w);

// ---- copying

// Copies from one stream to another until the first ends or at_most bytes are copied; VOLT_ALL: no
// limit. By splice(2) if both are descriptors that can, else through `buf` (which may then be NULL
// for descriptors).
//   returns: the number of bytes, also after a cancellation: s->n_copied | errors of either side
typedef struct volt_copier {
    volt_frame frame;
    uint64_t n_copied; // so far
    int pipe_[2];
    uint32_t in_pipe_, state_;
    char *buf_;
    size_t cap_;
} volt_copier;
#define VOLT_ALL UINT64_MAX
VOLT_API VOLT_POLL volt_copy(volt_cx *cx, volt_copier *s, volt_stream from, volt_stream to,
                             uint64_t at_most, void *buf_or_null, size_t cap);
// Copies both ways between two streams until both directions have ended. The end of one is passed
// on as an end of writing. If no byte moves in either direction for `idle`, it ends.
//   returns: 0 | -ETIMEDOUT | the first error of either stream
//   memory : two pipes where splice(2) is used; else buf of 2 * cap bytes
typedef struct volt_relay_state {
    volt_frame frame;
    volt_copier way[2];  // [0]: a to b; [1]: b to a. n_copied may be read by any thread
    volt_timer limit_;
    volt_arm arm_[2];
    int64_t rc_;
} volt_relay_state;
VOLT_API VOLT_POLL volt_relay(volt_cx *cx, volt_relay_state *s, volt_stream a, volt_stream b,
                              volt_time idle, void *buf_or_null, size_t cap);
// Sends at most `len` bytes of a file from *offset on, which advances. Waits until some are sent.
//   returns: the number of bytes | 0 at the end of the file | -errno
VOLT_API VOLT_POLL volt_sendfile(volt_cx *cx, int fd, int file, int64_t *offset, size_t len);

// ---- processes

enum { // the standard streams of a child
    VOLT_STDIO_INHERIT, // that of this process
    VOLT_STDIO_NULL,    // /dev/null
    VOLT_STDIO_PIPE,    // a pipe, whose other end is in the volt_process
    VOLT_STDIO_FD,      // .fd of the volt_stdio, which stays open here
    VOLT_STDIO_STDOUT   // stderr alone: the same as stdout
};
typedef struct volt_stdio {
    int kind, fd;
} volt_stdio;
typedef struct volt_fd_pair {
    int here, there; // `here` becomes descriptor `there` of the child
} volt_fd_pair;
typedef struct volt_process_options {
    const char *const *argv;         // argv[0] is looked up in PATH, unless it has a slash
    const char *const *envp_or_null; // NULL: the environment of this process
    const char *dir_or_null;
    volt_stdio in, out, err;
    const volt_fd_pair *fds;
    int n_fds;
    unsigned is_session;   // 1: setsid
    unsigned is_group;     // 1: a process group of its own, which volt_process_signal then means
    unsigned has_ids;      // 1: uid, gid, and no supplementary groups
    uid_t uid;
    gid_t gid;
    unsigned dies_with_us; // 1: PR_SET_PDEATHSIG with SIGKILL
    volt_time grace;       // of volt_process_end
} volt_process_options;
typedef struct volt_process {
    pid_t pid;       // 0: not started, or the end was collected
    int in, out, err; // this end of each pipe, else -1; the owner's, to be closed by volt_close
    int pidfd_;
    volt_job job_;
    volt_time grace_;
    uint32_t state_;
} volt_process;
typedef struct volt_exit {
    int code;   // of exit(3), or -1
    int signal; // that ended it, or 0
    unsigned has_core;
} volt_exit;
// Starts a process. Its signal mask is empty and all its signals have their default action. The
// call waits on a pool thread until the exec has succeeded or failed.
//   returns: 0 | -ENOENT, -EACCES, -ENOEXEC of exec | -ENOTDIR of dir | -EMFILE | -EAGAIN | -errno
VOLT_API VOLT_POLL volt_process_start(volt_cx *cx, volt_process *p,
                                      const volt_process_options *options);
// Waits for its end. May be cancelled and repeated.
//   returns: 0 with the end in *out | -ECHILD if another part of the program has collected it
VOLT_API VOLT_POLL volt_process_wait(volt_cx *cx, volt_process *p, volt_exit *out);
// Sends a signal, never to another process that has got the number.
//   returns: 0 | -ESRCH if it has ended | -EPERM
VOLT_API int volt_process_signal(volt_process *p, int signal);
// Ends it: SIGTERM, then after `grace` SIGKILL, and collects it. Not cancelled by the scope.
VOLT_API VOLT_POLL volt_process_end(volt_cx *cx, volt_process *p, volt_exit *out);
// Forgets it: a pool thread or a later wait collects its end, so that no zombie stays.
VOLT_API void volt_process_detach(volt_cx *cx, volt_process *p);
// Runs a process to its end with `input` as its stdin, and keeps the beginning of its stdout and
// stderr. Cancelled, or over its bound, it is ended as by volt_process_end.
//   returns: 0, also if the process failed: see .end | -EMSGSIZE if an output did not fit | as
//            volt_process_start
typedef struct volt_output {
    volt_frame frame;
    const void *input; // set by the caller, as the next members
    size_t n_input;
    char *out, *err;   // err NULL: not collected
    size_t out_cap, err_cap;
    size_t n_out, n_err; // results
    volt_exit end;
    volt_process process_;
    volt_arm arm_[4];
} volt_output;
VOLT_API VOLT_POLL volt_process_output(volt_cx *cx, volt_output *s,
                                       const volt_process_options *options);
// Waits for a child that another library has started.
//   returns: 0 | -ECHILD
VOLT_API VOLT_POLL volt_pid_wait(volt_cx *cx, volt_job *job, pid_t pid, volt_exit *out);

// ---- signals

typedef struct volt_signal_info {
    int number, code;
    pid_t pid; // of the sender, with the next one
    uid_t uid;
    int64_t value; // of sigqueue(3)
} volt_signal_info;
// Blocks the signals in the calling thread and opens a descriptor for them. Call it in the main
// thread before any other thread starts: these inherit the mask.
//   returns: a descriptor, to be closed by volt_close | -EINVAL | -EMFILE
VOLT_API int volt_signals_open(const int *list, int n);
#define VOLT_SIGNALS(...) \
    volt_signals_open((const int[]){ __VA_ARGS__ }, (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))
// Waits for the next signal.
//   returns: its number | -EBADF
VOLT_API VOLT_POLL volt_signals_next(volt_cx *cx, int fd, volt_signal_info *out_or_null);

// ---- files: one volt_blocking call each, as the other volt_file_ functions

VOLT_API VOLT_POLL volt_file_append(volt_cx *cx, volt_file_op *op, int fd, const void *buf,
                                    size_t len);
VOLT_API VOLT_POLL volt_file_truncate(volt_cx *cx, volt_file_op *op, int fd, int64_t len);
VOLT_API VOLT_POLL volt_file_fstat(volt_cx *cx, volt_file_op *op, int fd, struct stat *out);
// Replaces a whole file: a reader sees the old or the new one, also after a loss of power.
VOLT_API VOLT_POLL volt_file_replace(volt_cx *cx, volt_file_op *op, const char *path,
                                     const void *buf, size_t len, unsigned mode);
VOLT_API VOLT_POLL volt_file_rename(volt_cx *cx, volt_file_op *op, const char *from,
                                    const char *to);
VOLT_API VOLT_POLL volt_file_unlink(volt_cx *cx, volt_file_op *op, const char *path);
VOLT_API VOLT_POLL volt_dir_make(volt_cx *cx, volt_file_op *op, const char *path, unsigned mode);
VOLT_API VOLT_POLL volt_dir_remove(volt_cx *cx, volt_file_op *op, const char *path);
// Lists a directory, of volt_file_open with O_DIRECTORY, in batches: names and kinds of the next
// entries in `buf`, without "." and "..".
//   returns: the number of bytes used by entries | 0 at the end
typedef struct volt_dir_entry {
    const char *name; // in the buffer
    uint64_t inode;
    int type; // DT_REG, DT_DIR ... DT_UNKNOWN
} volt_dir_entry;
VOLT_API VOLT_POLL volt_dir_read(volt_cx *cx, volt_file_op *op, int fd, void *buf, size_t cap);
// The next entry of the buffer; *at begins with 0.
//   returns: 1 | 0 at its end
VOLT_API int volt_dir_next(const void *buf, size_t len, size_t *at, volt_dir_entry *out);

#ifdef __cplusplus
} // extern "C"
#endif
#endif // VOLT_NEXT_H
