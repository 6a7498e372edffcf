// SPDX-License-Identifier: MIT OR 0BSD
// Descriptors through unix sockets, credentials, pipes, terminals, serial lines.
#ifndef _GNU_SOURCE // before the first libc header
#  define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
// The seam: what runs right before a socket listens, and right after it is bound; the number of
// messages that were sent or refused; and a receiver that has no room.
static void (*before_listen)(void), (*after_bind)(void);
static int watched_listen(int fd, int backlog) {
    if (before_listen) before_listen();
    return listen(fd, backlog);
}
static int watched_bind(int fd, const struct sockaddr *a, socklen_t len) {
    int rc = bind(fd, a, len);
    if (after_bind) after_bind();
    return rc;
}
static int n_sendmsg;
static const void *full_name;
static socklen_t full_namelen;
static ssize_t counted_sendmsg(int fd, const struct msghdr *m, int flags) {
    n_sendmsg++;
    if (full_name && m->msg_namelen == full_namelen &&
        memcmp(m->msg_name, full_name, full_namelen) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return sendmsg(fd, m, flags);
}
#define listen watched_listen
#define bind watched_bind
#define sendmsg counted_sendmsg
#define VOLT_IMPLEMENTATION
#include "volt.h"
#undef listen
#undef bind
#undef sendmsg
#include "test.h"
#include "tasks.h"
#include <pty.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

static int count_open(void) {
    int n = 0;
    for (int fd = 0; fd < 400; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
static int is_same(int a, int b) {
    struct stat s, t;
    return fstat(a, &s) == 0 && fstat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

ROOT_TEST_1(pairs_and_pipes_carry_data_and_close_on_exec, {
    int fd[2], k;
    char buf[8];
    int64_t rc;
}) {
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, -1 };
    VOLT_BEGIN(cx, s);
    for (s->k = 0; s->k < 4; s->k++) {
        CHECK_EQ(types[s->k] < 0 ? volt_pipe(s->fd) : volt_socketpair(types[s->k], s->fd), 0);
        for (int i = 0; i < 2; i++) {
            CHECK(fcntl(s->fd[i], F_GETFD) & FD_CLOEXEC);
            CHECK(fcntl(s->fd[i], F_GETFL) & O_NONBLOCK);
        }
        VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "abc", 3));
        CHECK_EQ(s->rc, 3);
        VOLT_AWAIT(s->rc, volt_read(cx, s->fd[0], s->buf, sizeof s->buf));
        CHECK_EQ(s->rc, 3);
        for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    }
    CHECK_EQ(volt_socketpair(15, s->fd), -EINVAL); // no type has that number
    VOLT_END(0);
}

// ---- descriptors through a socket

enum { MOST = 253 };
#if defined(__GLIBC__) || SIZE_MAX == UINT32_MAX
enum { MOST_OF_LIBC = MOST };
#else
enum { MOST_OF_LIBC = MOST - 1 }; // musl copies what sendmsg is given, and has 1024 bytes for it
#endif
ROOT_TEST_1(descriptors_are_received_with_their_message, {
    int fd[2], out[MOST + 1], in[MOST + 1], k, before;
    volt_fds_info info;
    char buf[8];
    int64_t rc;
}) {
    static const unsigned counts[] = { 0, 1, 3, MOST_OF_LIBC };
    VOLT_BEGIN(cx, s);
    struct rlimit limit = { 1024, 1024 };
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_EQ(volt_socketpair(SOCK_SEQPACKET, s->fd), 0);
    for (int i = 0; i < MOST + 1; i++) s->out[i] = s->fd[i % 2];
    s->before = count_open();
    for (s->k = 0; s->k < 4; s->k++) {
        VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "hello", 5, s->out, counts[s->k]));
        CHECK_EQ(s->rc, 5);
        VOLT_AWAIT(s->rc, volt_recv_fds(cx, s->fd[1], s->buf, sizeof s->buf, s->in, MOST,
                                        &s->info));
        CHECK_EQ(s->rc, 5);
        CHECK_EQ(s->info.n, counts[s->k]);
        CHECK(!s->info.is_surplus && !s->info.is_cut);
        for (unsigned i = 0; i < s->info.n; i++) {
            CHECK(is_same(s->in[i], s->out[i]));
            CHECK(fcntl(s->in[i], F_GETFD) & FD_CLOEXEC);
            close(s->in[i]);
        }
    }
    VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "x", 1, s->out, MOST + 1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "x", 0, s->out, 1));
    CHECK_EQ(s->rc, -EINVAL);
    s->out[1] = 999;
    VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "x", 1, s->out, 2));
    CHECK_EQ(s->rc, -EBADF);
    CHECK_EQ(count_open(), s->before);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    s->info.n = 4;
    VOLT_AWAIT(s->rc, volt_recv_fds(cx, -1, s->buf, 1, s->in, 4, &s->info));
    CHECK_EQ(s->rc, -EBADF);
    CHECK_EQ(s->info.n, 0);
    VOLT_END(0);
}
// A peer that sends more than was asked for fills no table: the surplus is closed.
ROOT_TEST_1(surplus_descriptors_are_closed, {
    int fd[2], out[10], in[10], before;
    unsigned k;
    volt_fds_info info;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    for (int i = 0; i < 10; i++) s->out[i] = s->fd[0];
    s->before = count_open();
    for (s->k = 0; s->k < 10; s->k++) {
        VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "x", 1, s->out, 10));
        VOLT_AWAIT(s->rc, volt_recv_fds(cx, s->fd[1], s->buf, sizeof s->buf, s->in, s->k,
                                        &s->info));
        CHECK_EQ(s->rc, 1);
        CHECK_EQ(s->info.n, s->k);
        CHECK(s->info.is_surplus && !s->info.is_cut);
        for (unsigned i = 0; i < s->info.n; i++) close(s->in[i]);
        CHECK_EQ(count_open(), s->before);
    }
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
ROOT_TEST_1(message_that_is_cut_keeps_its_descriptors, {
    int fd[2], out, in[4];
    volt_fds_info info;
    char buf[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_SEQPACKET, s->fd), 0);
    s->out = s->fd[0];
    VOLT_AWAIT(s->rc, volt_send_fds(cx, s->fd[0], "long", 4, &s->out, 1));
    VOLT_AWAIT(s->rc, volt_recv_fds(cx, s->fd[1], s->buf, sizeof s->buf, s->in, 4, &s->info));
    CHECK_EQ(s->rc, 2);
    CHECK_EQ(s->info.n, 1);
    CHECK(s->info.is_cut && !s->info.is_surplus);
    close(s->in[0]);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
TEST(peer_of_a_unix_socket_is_this_process) {
    int fd[2], other[2];
    volt_cred cred;
    CHECK_EQ(volt_socketpair(SOCK_STREAM, fd), 0);
    CHECK_EQ(volt_peer_cred(fd[0], &cred), 0);
    CHECK_EQ(cred.pid, getpid());
    CHECK_EQ(cred.uid, getuid());
    CHECK_EQ(cred.gid, getgid());
    int pidfd = volt_peer_pidfd(fd[0]);
    CHECK(pidfd >= 0 || pidfd == -ENOPROTOOPT);
    if (pidfd >= 0) close(pidfd);
    CHECK_EQ(volt_pipe(other), 0);
    CHECK_EQ(volt_peer_cred(other[0], &cred), -ENOTSOCK);
    CHECK(cred.pid == 0 && cred.uid == 0 && cred.gid == 0); // not those of before
    CHECK_EQ(volt_peer_pidfd(other[0]), -ENOTSOCK);
    for (int i = 0; i < 2; i++) close(fd[i]), close(other[i]);
}
TEST(socket_without_a_unix_peer_has_no_credentials) {
    volt_cred cred;
    for (int i = 0; i < 2; i++) {
        int fd = volt_sock_open(i ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
        CHECK_EQ(volt_peer_cred(fd, &cred), -ENOTCONN);
        CHECK(cred.pid == 0 && cred.uid == 0 && cred.gid == 0);
        close(fd);
    }
}

// ---- terminals

static void open_terminal(int *master, char *name) {
    int slave;
    CHECK_EQ(openpty(master, &slave, name, NULL, NULL), 0);
    close(slave);
}
TEST(raw_terminal_is_restored_once) {
    int master, slave, fd[2];
    struct termios before, raw, after;
    volt_tty t;
    CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
    CHECK_EQ(tcgetattr(slave, &before), 0);
    CHECK_EQ(volt_tty_raw(&t, slave), 0);
    CHECK_EQ(tcgetattr(slave, &raw), 0);
    CHECK_EQ(raw.c_lflag & (ECHO | ICANON | ISIG), 0);
    CHECK_EQ(raw.c_oflag & OPOST, 0);
    CHECK(raw.c_cc[VMIN] == 1 && raw.c_cc[VTIME] == 0); // a read waits for one byte, and no longer
    volt_tty_restore(&t);
    CHECK_EQ(tcgetattr(slave, &after), 0);
    CHECK_EQ(after.c_lflag, before.c_lflag);
    CHECK_EQ(after.c_iflag, before.c_iflag);
    CHECK_EQ(after.c_oflag, before.c_oflag);
    CHECK_EQ(tcsetattr(slave, TCSANOW, &raw), 0);
    volt_tty_restore(&t); // does nothing
    CHECK_EQ(tcgetattr(slave, &after), 0);
    CHECK_EQ(after.c_lflag, raw.c_lflag);
    CHECK_EQ(volt_pipe(fd), 0);
    CHECK_EQ(volt_tty_raw(&t, fd[0]), -ENOTTY);
    volt_tty_restore(&t);
    for (int i = 0; i < 2; i++) close(fd[i]);
    close(master);
    close(slave);
}
ROOT_TEST_1(serial_line_carries_bytes_unchanged, {
    int master, line, i;
    char name[64], out[256], in[256];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    open_terminal(&s->master, s->name);
    s->line = volt_serial_open(s->name, &(volt_serial_options){ .baud = 115200 }, NULL);
    CHECK(s->line >= 0);
    CHECK(fcntl(s->line, F_GETFD) & FD_CLOEXEC);
    for (int i = 0; i < 256; i++) s->out[i] = (char)i; // control characters as well
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_write_all(cx, s->i ? s->line : s->master, s->out, sizeof s->out));
        CHECK_EQ(s->rc, 256);
        VOLT_AWAIT(s->rc, volt_read_exact(cx, s->i ? s->master : s->line, s->in, sizeof s->in));
        CHECK_EQ(s->rc, 256);
        CHECK_EQ(memcmp(s->in, s->out, sizeof s->in), 0);
    }
    // its mode is this program's own: neither a second description nor a change at each call
    CHECK_EQ(volt__fd_lookup(&cx->rt_->fds, s->line)->flags &
             (VOLT__FD_REOPENED | VOLT__FD_TOGGLED), 0);
    volt_close(cx, s->line);
    volt_close(cx, s->master);
    VOLT_END(0);
}
TEST(serial_options_are_set_or_refused) {
    static const volt_serial_options bad[] = { { .baud = 12345 }, { .data_bits = 9 },
                                               { .data_bits = 4 }, { .stop_bits = 3 },
                                               { .parity = 'X' } };
    int master;
    char name[64];
    struct termios t;
    open_terminal(&master, name);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(volt_serial_open(name, &bad[i], NULL), -EINVAL);
    int fd = volt_serial_open(name, NULL, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(tcgetattr(fd, &t), 0);
    CHECK_EQ(cfgetospeed(&t), B9600);
    CHECK_EQ(t.c_cflag & (CSIZE | CSTOPB | CRTSCTS), CS8);
    CHECK_EQ(t.c_iflag & (IXON | IXOFF | INPCK), 0);
    close(fd);
    volt_serial_options o = { .baud = 19200, .stop_bits = 2, .has_rtscts = 1, .has_xonxoff = 1,
                              .is_exclusive = 1 };
    fd = volt_serial_open(name, &o, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(tcgetattr(fd, &t), 0);
    CHECK_EQ(cfgetospeed(&t), B19200);
    CHECK_EQ(t.c_cflag & (CSTOPB | CRTSCTS), CSTOPB | CRTSCTS);
    CHECK_EQ(t.c_iflag & (IXON | IXOFF), IXON | IXOFF);
    CHECK_EQ(volt_serial_open(name, &o, NULL), -EBUSY);
    close(fd);
    for (const char *parity = "NEON"; *parity; parity++) { // none in between clears the others
        o = (volt_serial_options){ .parity = *parity };
        fd = volt_serial_open(name, &o, NULL);
        CHECK(fd >= 0);
        CHECK_EQ(tcgetattr(fd, &t), 0);
        CHECK_EQ((t.c_iflag & INPCK) != 0, *parity != 'N');
        CHECK_EQ((t.c_cflag & PARODD) != 0, *parity == 'O');
        CHECK_EQ(volt__serial_format(&t, &o), 0); // a pseudo-terminal has no parity bit
        CHECK_EQ((t.c_cflag & PARENB) != 0, *parity != 'N');
        close(fd);
    }
    CHECK_EQ(volt_serial_open("/dev/null", NULL, NULL), -ENOTTY);
    CHECK_EQ(volt_serial_open("/dev/no-such-line", NULL, NULL), -ENOENT);
    close(master);
}
TEST(serial_line_has_each_usual_speed) {
    static const struct {
        unsigned baud;
        speed_t speed;
    } speeds[] = { { 50, B50 }, { 75, B75 }, { 110, B110 }, { 134, B134 }, { 150, B150 },
                   { 200, B200 }, { 300, B300 }, { 600, B600 }, { 1200, B1200 }, { 1800, B1800 },
                   { 2400, B2400 }, { 4800, B4800 }, { 9600, B9600 }, { 19200, B19200 },
                   { 38400, B38400 }, { 57600, B57600 }, { 115200, B115200 }, { 230400, B230400 },
                   { 460800, B460800 }, { 500000, B500000 }, { 576000, B576000 },
                   { 921600, B921600 }, { 1000000, B1000000 }, { 1152000, B1152000 },
                   { 1500000, B1500000 }, { 2000000, B2000000 }, { 2500000, B2500000 },
                   { 3000000, B3000000 }, { 3500000, B3500000 }, { 4000000, B4000000 } };
    int master;
    char name[64];
    open_terminal(&master, name);
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
        struct termios t;
        volt_serial_options o = { .baud = speeds[i].baud };
        int fd = volt_serial_open(name, &o, NULL);
        CHECK(fd >= 0);
        CHECK_EQ(tcgetattr(fd, &t), 0);
        CHECK(cfgetospeed(&t) == speeds[i].speed && cfgetispeed(&t) == speeds[i].speed);
        close(fd);
    }
    close(master);
}

// Nothing is left to be restored: the number may belong to another file by then.
TEST(refused_serial_line_is_not_restored_later) {
    static const volt_serial_options bad = { .baud = 12345 };
    int master, slave;
    char name[64];
    volt_tty saved, raw;
    struct termios t;
    CHECK_EQ(openpty(&master, &slave, name, NULL, NULL), 0);
    CHECK_EQ(volt_serial_open(name, &bad, &saved), -EINVAL);
    int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK_EQ(fd, slave + 1); // the number that was tried
    CHECK_EQ(volt_tty_raw(&raw, fd), 0);
    volt_tty_restore(&saved);
    CHECK_EQ(tcgetattr(fd, &t), 0);
    CHECK_EQ(t.c_lflag & (ECHO | ICANON), 0);
    close(fd);
    close(slave);
    close(master);
}
TEST(serial_line_gets_its_settings_back) {
    int master;
    char name[64];
    struct termios before, after;
    volt_tty saved;
    int slave;
    CHECK_EQ(openpty(&master, &slave, name, NULL, NULL), 0);
    CHECK_EQ(tcgetattr(slave, &before), 0);
    int fd = volt_serial_open(name, &(volt_serial_options){ .baud = 4800 }, &saved);
    CHECK(fd >= 0);
    CHECK_EQ(tcgetattr(slave, &after), 0);
    CHECK_EQ(cfgetospeed(&after), B4800);
    volt_tty_restore(&saved);
    CHECK_EQ(tcgetattr(slave, &after), 0);
    CHECK_EQ(cfgetospeed(&after), cfgetospeed(&before));
    CHECK_EQ(after.c_lflag, before.c_lflag);
    close(fd);
    close(slave);
    close(master);
}
// The request is of an unsigned type in the kernel, and of different ones in C libraries.
static int is_exclusive(int fd) {
    int is_on = 0;
    CHECK_EQ(syscall(SYS_ioctl, fd, (unsigned long)TIOCGEXCL, &is_on), 0);
    return is_on;
}
// The other descriptor stands for another process: the exclusive mode lasts while it is open.
TEST(exclusive_serial_line_is_free_once_restored) {
    volt_serial_options o = { .is_exclusive = 1 };
    int master, slave;
    char name[64];
    volt_tty saved;
    CHECK_EQ(openpty(&master, &slave, name, NULL, NULL), 0);
    int fd = volt_serial_open(name, &o, &saved);
    CHECK(fd >= 0);
    CHECK(is_exclusive(slave));
    CHECK_EQ(volt_serial_open(name, &o, NULL), -EBUSY);
    volt_tty_restore(&saved);
    CHECK(!is_exclusive(slave));
    close(fd);
    o.baud = 12345;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(volt_serial_open(name, &o, i ? &saved : NULL), -EINVAL);
        CHECK(!is_exclusive(slave));
    }
    close(slave);
    close(master);
}

// ---- paths

static char dir[] = "/tmp/volt-unix-XXXXXX";
static volt_addr addr_in_dir(const char *name) {
    volt_addr a;
    char text[100];
    snprintf(text, sizeof text, "unix:%s/%s", dir, name);
    CHECK_EQ(volt_addr_parse(&a, text), 0);
    return a;
}
static const char *path_of(const volt_addr *a) { return (const char *)a->sa_ + 2; }
TEST(unix_listener_sets_mode_and_replaces_what_is_stale) {
    static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
    struct stat st;
    CHECK(mkdtemp(dir));
    volt_addr a = addr_in_dir("s");
    for (int i = 0; i < 2; i++) {
        volt_listen_options o = { .type = types[i], .mode = 0640, .has_owner = 1, .uid = getuid(),
                                  .gid = getgid() };
        int fd = volt_listen_addr(&a, &o);
        CHECK(fd >= 0);
        CHECK_EQ(stat(path_of(&a), &st), 0);
        CHECK_EQ(st.st_mode & 0777, 0640);
        CHECK_EQ(volt_listen_addr(&a, &o), -EADDRINUSE);
        o.is_replacing = 1;
        CHECK_EQ(volt_listen_addr(&a, &o), -EADDRINUSE); // there is a server
        close(fd);                                       // and it leaves its path behind
        o.is_replacing = 0;
        CHECK_EQ(volt_listen_addr(&a, &o), -EADDRINUSE);
        o.is_replacing = 1;
        fd = volt_listen_addr(&a, &o);
        CHECK(fd >= 0);
        CHECK_EQ(volt_unix_unlink(fd), 0);
        CHECK_EQ(stat(path_of(&a), &st), -1);
        CHECK_EQ(volt_unix_unlink(fd), -ENOENT);
        close(fd);
    }
    // another file is never removed
    volt_listen_options o = { .is_replacing = 1 };
    close(open(path_of(&a), O_CREAT | O_WRONLY, 0600));
    CHECK_EQ(volt_listen_addr(&a, &o), -EADDRINUSE);
    CHECK_EQ(volt_unix_open(&a, &o), -EADDRINUSE);
    CHECK_EQ(stat(path_of(&a), &st), 0);
    CHECK(S_ISREG(st.st_mode));
    unlink(path_of(&a));
    int old = volt_unix_open(&a, NULL);
    CHECK(old >= 0);
    unlink(path_of(&a));
    close(open(path_of(&a), O_CREAT | O_WRONLY, 0600));
    CHECK_EQ(volt_unix_unlink(old), -ENOENT);
    CHECK_EQ(stat(path_of(&a), &st), 0);
    CHECK(S_ISREG(st.st_mode));
    unlink(path_of(&a));
    close(old);
    // a second server that replaces at the same time is refused
    int lock = open(dir, O_RDONLY | O_DIRECTORY);
    CHECK_EQ(flock(lock, LOCK_EX), 0);
    CHECK_EQ(volt_listen_addr(&a, &o), -EADDRINUSE);
    close(lock);
    volt_addr none = addr_in_dir("none/s");
    CHECK_EQ(volt_listen_addr(&none, &o), -ENOENT);
    o.mode = 0600;
    int fd = volt_unix_open(&a, &o);
    CHECK(fd >= 0);
    CHECK_EQ(volt_unix_open(&a, &o), -EADDRINUSE);
    CHECK_EQ(volt_unix_unlink(fd), 0);
    close(fd);
    fd = volt_unix_open(NULL, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(volt_unix_unlink(fd), 0); // it has none
    close(fd);
    fd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(volt_unix_unlink(fd), 0); // nor has a socket of another family
    close(fd);
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:1"), 0);
    CHECK_EQ(volt_unix_open(&a, NULL), -EAFNOSUPPORT);
    rmdir(dir);
}
static volt_addr contended;
static int second_server;
static void start_a_second_server(void) {
    volt_listen_options o = { .is_replacing = 1 };
    before_listen = NULL;
    second_server = volt_listen_addr(&contended, &o);
}
TEST(second_server_does_not_replace_one_that_is_about_to_listen) {
    volt_listen_options o = { .is_replacing = 1 };
    CHECK(mkdtemp(dir));
    contended = addr_in_dir("s");
    before_listen = start_a_second_server;
    int fd = volt_listen_addr(&contended, &o);
    CHECK(fd >= 0);
    CHECK_EQ(second_server, -EADDRINUSE);
    CHECK_EQ(volt_unix_unlink(fd), 0);
    close(fd);
    o.type = SOCK_DGRAM;
    CHECK_EQ(volt_listen_addr(&contended, &o), -EOPNOTSUPP);
    rmdir(dir);
}
static unsigned mode_at_bind;
static void note_mode(void) {
    struct stat st;
    CHECK_EQ(stat(path_of(&contended), &st), 0);
    mode_at_bind = st.st_mode & 0777;
}
TEST(datagram_socket_has_its_mode_from_the_bind_on) {
    volt_listen_options o = { .mode = 0640 };
    CHECK(mkdtemp(dir));
    umask(0);
    contended = addr_in_dir("s");
    after_bind = note_mode;
    int fd = volt_unix_open(&contended, &o);
    CHECK(fd >= 0);
    CHECK_EQ(mode_at_bind, 0640);
    CHECK_EQ(volt_unix_unlink(fd), 0);
    close(fd);
    rmdir(dir);
}
// Each attempt that fails is followed by an event of the sender's own socket.
typedef struct {
    volt_frame frame;
    volt_addr to;
    int rx, tx;
    char byte;
} full_receiver;
static volt_poll drain_later(volt_cx *cx, full_receiver *r) {
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(60)));
    char byte;
    while (volt_try_read(cx, r->rx, &byte, 1) == 1) {}
    VOLT_END(0);
}
ROOT_TEST_1(send_by_path_to_a_full_receiver_does_not_spin, {
    full_receiver full;
    volt_arm arm[2];
}) {
    full_receiver *const r = &s->full;
    VOLT_BEGIN(cx, s);
    char name[64];
    snprintf(name, sizeof name, "unix:@volt-full-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&r->to, name), 0);
    r->rx = volt_unix_open(&r->to, NULL);
    r->tx = volt_unix_open(NULL, NULL);
    int other = volt_unix_open(NULL, NULL); // leaves the sender's own buffer empty
    struct sockaddr *to = (struct sockaddr *)(void *)r->to.sa_;
    while (sendto(other, &r->byte, 1, MSG_DONTWAIT, to, r->to.len_) == 1) {}
    close(other);
    n_sendmsg = 0;
    VOLT_AWAIT(VOLT_JOIN_ALL(
        VOLT_ARM(&s->arm[0], volt_sendto(cx, r->tx, &r->byte, 1, 0, &r->to)),
        VOLT_ARM(&s->arm[1], drain_later(cx, r))));
    CHECK_EQ(s->arm[0].value, 1);
    CHECK(n_sendmsg >= 2 && n_sendmsg <= 10); // after 0, 1, 3, 7, 15, 31, 47 and 63 ms
    volt_close(cx, r->rx);
    volt_close(cx, r->tx);
    VOLT_END(0);
}
// The sender's socket is in epoll, since a task has waited for its messages. No event follows an
// attempt that fails: the kernel sends one only while most of the sender's own buffer is free.
static int64_t has_no_room(int fd, void *arg) {
    (void)fd, (void)arg;
    return -EAGAIN;
}
ROOT_TEST_1(full_receiver_keeps_no_message_from_another, {
    volt_addr full, free;
    volt_timer limit;
    int tx, rx, i;
    char byte;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    char name[64];
    snprintf(name, sizeof name, "unix:@volt-a-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&s->full, name), 0);
    snprintf(name, sizeof name, "unix:@volt-b-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&s->free, name), 0);
    s->rx = volt_unix_open(&s->free, NULL);
    s->tx = volt_unix_open(NULL, NULL);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, 1, volt_recv(cx, s->tx, &s->byte, 1, 0)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    for (s->i = 0; s->i < 2; s->i++) {
        full_name = s->full.sa_;
        full_namelen = s->full.len_;
        n_sendmsg = 0;
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(5),
                                      volt_sendto(cx, s->tx, "a", 1, 0, &s->full)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        CHECK(n_sendmsg >= 2);
        VOLT_AWAIT(s->rc, volt_write_ready(cx, s->tx));
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(volt_try_io(cx, s->tx, VOLT_OUT, has_no_room, NULL), -EAGAIN);
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(10),
                                      volt_sendto(cx, s->tx, "b", 1, 0, &s->free)));
        CHECK_EQ(s->rc, 1);
        VOLT_AWAIT(s->rc, volt_read(cx, s->rx, &s->byte, 1));
        CHECK_EQ(s->rc, 1);
    }
    full_name = NULL;
    volt_close(cx, s->tx);
    volt_close(cx, s->rx);
    VOLT_END(0);
}
ROOT_TEST_1(connect_from_a_path_that_fails_removes_the_path, {
    char dir[64], text[100];
    volt_addr from, to;
    int lfd;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    snprintf(s->dir, sizeof s->dir, "/tmp/volt-from-XXXXXX");
    CHECK(mkdtemp(s->dir));
    snprintf(s->text, sizeof s->text, "unix:%s/client", s->dir);
    CHECK_EQ(volt_addr_parse(&s->from, s->text), 0);
    snprintf(s->text, sizeof s->text, "unix:%s/server", s->dir);
    CHECK_EQ(volt_addr_parse(&s->to, s->text), 0);
    VOLT_AWAIT(s->rc, volt_connect_from(cx, &s->to, &s->from));
    CHECK_EQ(s->rc, -ENOENT);
    s->lfd = volt_listen_addr(&s->to, NULL);
    VOLT_AWAIT(s->rc, volt_connect_from(cx, &s->to, &s->from));
    CHECK(s->rc >= 0);
    CHECK_EQ(volt_unix_unlink((int)s->rc), 0); // that of a connection is the caller's
    volt_close(cx, (int)s->rc);
    CHECK_EQ(volt_unix_unlink(s->lfd), 0);
    volt_close(cx, s->lfd);
    CHECK_EQ(rmdir(s->dir), 0);
    VOLT_END(0);
}
ROOT_TEST_1(abstract_names_connect_seqpackets, {
    volt_addr a;
    volt_listen_options o;
    int lfd, fd, got;
    char buf[8], name[64];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    snprintf(s->name, sizeof s->name, "unix:@volt-test-%d", (int)getpid());
    CHECK_EQ(volt_addr_parse(&s->a, s->name), 0);
    s->o = (volt_listen_options){ .type = SOCK_SEQPACKET, .is_replacing = 1, .mode = 0600 };
    s->lfd = volt_listen_addr(&s->a, &s->o);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_listen_addr(&s->a, &s->o), -EADDRINUSE);
    s->fd = volt_sock_open(AF_UNIX, SOCK_SEQPACKET, 0);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->got, volt_accept(cx, s->lfd));
    VOLT_AWAIT(s->rc, volt_send(cx, s->fd, "abc", 3, 0));
    VOLT_AWAIT(s->rc, volt_recv(cx, s->got, s->buf, sizeof s->buf, 0));
    CHECK_EQ(s->rc, 3);
    CHECK_EQ(volt_unix_unlink(s->lfd), 0);
    volt_close(cx, s->fd);
    volt_close(cx, s->got);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}
