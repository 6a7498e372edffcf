// SPDX-License-Identifier: MIT OR 0BSD
// Bugs that I/O libraries have had in public, each as a test that fails when volt.h has it; see
// history.c for those of runtimes. owner/name#N is https://github.com/owner/name/issues/N.
//
//     the bug                                    reported as
//  1  recvmmsg: messages out of order, one lost  libuv/libuv#2806
//  2  a signal meets the next user of a number   libuv/libuv#4016
//  3  a line without an end fills the memory     tokio-rs/tokio#186
//  4  preadv2 gives 0 in the middle of a file    tokio-rs/tokio#3803
//     and an error that the disk has not         scylladb/scylladb#3996
//  5  spawn takes the program's SIGCHLD handler  netdata/netdata#9107
//  6  one descriptor for two streams of a child  joyent/libuv#763
//  7  a child of a program without stdin         joyent/libuv#1162
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

static int preadv2_error = -1; // the answer of the next preadv2: 0: no bytes; above: an errno
static int n_kills;
#ifdef RWF_NOWAIT
static ssize_t seam_preadv2(int fd, const struct iovec *part, int n, off_t at, int flags) {
    int error = preadv2_error;
    preadv2_error = -1;
    errno = error;
    return error < 0 ? preadv2(fd, part, n, at, flags) : error == 0 ? 0 : -1;
}
#endif
static int seam_kill(pid_t pid, int number) {
    n_kills++;
    return kill(pid, number);
}
#define HOOK_preadv2 ~, seam_preadv2
#define HOOK_kill ~, seam_kill
#include "hook.h"
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

// ---- 1: each message has its own bytes, length and sender, in the order of their arrival

enum { MESSAGES = 40, BATCH = 7 };
ROOT_TEST_1(many_messages_keep_order, {
    struct mmsghdr m[BATCH];
    struct iovec part[BATCH];
    struct sockaddr_in name[BATCH];
    volt_addr to, from[2];
    char buf[BATCH][64];
    int fd, sender[2], n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_addr_parse(&s->to, "127.0.0.1:0"), 0);
    s->fd = volt_udp_open(&s->to, NULL);
    for (int i = 0; i < 2; i++) s->sender[i] = volt_udp_open(&s->to, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_local_addr(s->sender[i], &s->from[i]), 0);
    CHECK_EQ(volt_local_addr(s->fd, &s->to), 0);
    for (s->n = 0; s->n < MESSAGES; s->n++) {
        memset(s->buf[0], s->n, sizeof s->buf[0]);
        VOLT_AWAIT(s->rc, volt_sendto(cx, s->sender[s->n % 2], s->buf[0], (size_t)s->n, 0, &s->to));
        CHECK_EQ(s->rc, s->n);
    }
    for (s->n = 0; s->n < MESSAGES; s->n += (int)s->rc) {
        for (int i = 0; i < BATCH; i++) {
            s->part[i] = (struct iovec){ s->buf[i], sizeof s->buf[i] };
            s->m[i].msg_hdr = (struct msghdr){ .msg_name = &s->name[i],
                                               .msg_namelen = sizeof s->name[i],
                                               .msg_iov = &s->part[i], .msg_iovlen = 1 };
        }
        VOLT_AWAIT(s->rc, volt_recvmmsg(cx, s->fd, s->m, BATCH, 0));
        CHECK(s->rc > 0);
        for (int i = 0; i < (int)s->rc; i++) {
            volt_addr a;
            const struct msghdr *m = &s->m[i].msg_hdr;
            CHECK_EQ(volt_addr_from(&a, (const struct sockaddr *)m->msg_name, m->msg_namelen), 0);
            CHECK(volt_addr_equal(&a, &s->from[(s->n + i) % 2]));
            CHECK_EQ(s->m[i].msg_len, s->n + i);
            for (int k = 0; k < s->n + i; k++) CHECK_EQ(s->buf[i][k], s->n + i);
        }
    }
    CHECK_EQ(s->n, MESSAGES);
    volt_close(cx, s->fd);
    for (int i = 0; i < 2; i++) volt_close(cx, s->sender[i]);
    VOLT_END(0);
}

// ---- 2: the number belongs to any process once the child was collected

static const char *const *shell(const char *text) {
    static const char *args[4] = { "sh", "-c" };
    args[2] = text;
    return args;
}
ROOT_TEST_1(collected_child_gets_no_signal, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->o.argv = shell("exit 3");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    n_kills = 0;
    CHECK_EQ(volt_process_signal(&s->p, SIGTERM), -ESRCH);
    VOLT_AWAIT(s->rc, volt_process_end(cx, &s->p, VOLT_S(1), NULL));
    CHECK_EQ(s->rc, -ECHILD);
    CHECK_EQ(n_kills, 0);
    VOLT_END(0);
}

// ---- 3: a peer that sends no end of line gets an error, and the reader no more memory

ROOT_TEST_1(endless_line_is_bounded, {
    volt_reader r;
    volt_span line;
    char buf[64], flood[4096];
    int fd[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    memset(s->flood, 'x', sizeof s->flood);
    CHECK_EQ(write(s->fd[1], s->flood, sizeof s->flood), sizeof s->flood);
    volt_reader_init(&s->r, volt_stream_of(s->fd[0]), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->line));
    CHECK_EQ(s->rc, -EMSGSIZE);
    VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->line));
    CHECK_EQ(s->rc, -EMSGSIZE);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}

// ---- 4: the pool is asked when a read that does not wait gives no bytes

ROOT_TEST_1(empty_cached_read_is_no_end, {
    volt_file_op op;
    char buf[8];
    int fd, i;
    int64_t rc;
}) {
    static const int answers[] = { 0, EIO, EAGAIN };
    VOLT_BEGIN(cx, s);
    s->fd = memfd_create("file", MFD_CLOEXEC);
    CHECK_EQ(write(s->fd, "0123456789", 10), 10);
    for (s->i = 0; s->i < 3; s->i++) {
        preadv2_error = answers[s->i];
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 4, 2));
        CHECK_EQ(s->rc, 4);
        CHECK_EQ(memcmp(s->buf, "2345", 4), 0);
    }
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    VOLT_END(0);
}

// ---- 5: no handler of volt's own, and no child of others that is collected

static int n_sigchld; // atomic
static void count_sigchld(int number) {
    (void)number;
    COUNT(n_sigchld);
}
ROOT_TEST_1(sigchld_of_program_stays, {
    volt_process p;
    volt_process_options o;
    pid_t other;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    struct sigaction act = { .sa_handler = count_sigchld, .sa_flags = SA_RESTART }, now;
    CHECK_EQ(sigaction(SIGCHLD, &act, NULL), 0);
    s->other = fork();
    if (s->other == 0) _exit(7);
    s->o.argv = shell("exit 0");
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(sigaction(SIGCHLD, NULL, &now), 0);
    CHECK(now.sa_handler == count_sigchld);
    int status;
    CHECK_EQ(waitpid(s->other, &status, 0), s->other); // it is left to the program
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(READ(n_sigchld) > 0);
    CHECK_EQ(sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL), 0);
    VOLT_END(0);
}

// ---- 6, 7: the streams of a child

typedef struct {
    volt_frame frame;
    volt_process p;
    volt_process_options o;
    volt_exit_status end;
    char out[32];
    int64_t rc;
} child;
// Runs a process whose output is one word, and reads that.
static volt_poll child_run(volt_cx *cx, child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_process_start(cx, &c->p, &c->o));
    CHECK_EQ(c->rc, 0);
    memset(c->out, 0, sizeof c->out);
    VOLT_AWAIT(c->rc, volt_read_exact(cx, c->p.out, c->out, sizeof c->out - 1));
    VOLT_AWAIT(c->rc, volt_process_wait(cx, &c->p, &c->end));
    volt_process_close(cx, &c->p);
    VOLT_END(c->end.code);
}
ROOT_TEST_1(stream_of_child_serves_two, {
    child c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->c.o.argv = shell("printf a; printf b >&2");
    s->c.o.out = VOLT_STDIO_PIPE;
    s->c.o.err = VOLT_STDIO_STDOUT;
    VOLT_AWAIT(s->rc, child_run(cx, &s->c));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(strcmp(s->c.out, "ab"), 0);
    VOLT_END(0);
}
ROOT_TEST_1(child_of_closed_stdin_has_streams, {
    child c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(close(STDIN_FILENO), 0);
    s->c.o.argv = shell("read line; printf \"$line\"; exit 4");
    s->c.o.in = VOLT_STDIO_NULL;
    s->c.o.out = VOLT_STDIO_PIPE;
    VOLT_AWAIT(s->rc, child_run(cx, &s->c));
    CHECK_EQ(s->rc, 4);
    CHECK_EQ(s->c.out[0], 0);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
    VOLT_END(0);
}
