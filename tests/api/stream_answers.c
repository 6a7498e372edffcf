// SPDX-License-Identifier: MIT OR 0BSD
// Answers of system calls that real ones give rarely, to copies, processes and signals.
#define HOOK_fcntl ~, answer_fcntl
#define HOOK_pthread_sigmask ~, answer_sigmask
#define HOOK_read ~, answer_read
#define HOOK_splice ~, answer_splice
#include "hook.h"
#define VOLT_START_CHILD(child_) START_BY_FORK(child_)
#define _GNU_SOURCE 1 // before the first libc header
#include "start_by_fork.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The next reads of `len` bytes, by one thread: each has an errno, or 0 for an end; then the
// kernel's own answers. The other threads read other lengths.
static struct {
    size_t len; // atomic
    int n, n_left, error[4];
} reads;
static ssize_t answer_read(int fd, void *buf, size_t len) {
    if (len != __atomic_load_n(&reads.len, __ATOMIC_ACQUIRE) || reads.n_left == 0)
        return read(fd, buf, len);
    errno = reads.error[reads.n - reads.n_left--];
    return errno ? -1 : 0;
}
static void set_reads(size_t len, int n, const int *error) {
    reads.n = reads.n_left = n;
    for (int i = 0; i < n; i++) reads.error[i] = error[i];
    __atomic_store_n(&reads.len, len, __ATOMIC_RELEASE);
}
// Bytes go into the pipe, but not out of it: as where the target was opened for appending.
static ssize_t answer_splice(int from, const void *at, int to, const void *to_at, size_t len,
                             unsigned flags) {
    char buf[64];
    (void)at, (void)to_at, (void)flags;
    if (fcntl(to, F_GETPIPE_SZ) < 0) {
        errno = EINVAL;
        return -1;
    }
    ssize_t n = read(from, buf, len < sizeof buf ? len : sizeof buf);
    return n <= 0 ? n : write(to, buf, (size_t)n);
}
enum { SET_PIPE_SIZE = 1031 };
static int n_sizes; // requests of a large pipe, of which none is granted
static int answer_fcntl(int fd, int op, int value) {
    if (op != SET_PIPE_SIZE) return fcntl(fd, op, value);
    n_sizes++;
    errno = EPERM;
    return -1;
}
static int mask_error; // atomic: of the next change of the mask
static int answer_sigmask(int how, const sigset_t *set, sigset_t *before) {
    int rc = __atomic_exchange_n(&mask_error, 0, __ATOMIC_ACQ_REL);
    return rc ? rc : pthread_sigmask(how, set, before);
}

// volt.h calls fcntl with two arguments, too
#define answer_fcntl(...) answer_fcntl(FIRST_3(__VA_ARGS__, 0, 0))
#define FIRST_3(a_, b_, c_, ...) a_, b_, c_
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- copies

// A file in a pipe, which goes by way of a buffer from there on.
ROOT_TEST_1(copy_goes_on_after_a_failed_read_of_its_pipe, {
    int in[2], out[2], i;
    volt_copier c;
    char buf[13], text[64];
    int64_t rc;
}) {
    static const struct {
        int n, error[2], rc;
    } cases[] = { { 2, { EINTR, EINTR }, 0 }, { 2, { EINTR, EIO }, -EIO }, { 1, { 0 }, -EIO },
                  { 1, { ENOMEM }, -ENOMEM } };
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        CHECK_EQ(volt_pipe(s->in), 0);
        CHECK_EQ(volt_socketpair(SOCK_STREAM, s->out), 0);
        CHECK_EQ(write(s->in[1], "the bytes in the pipe", 21), 21);
        volt_close(cx, s->in[1]);
        volt_copier_init(&s->c, volt_stream_of(s->in[0]), volt_stream_of(s->out[0]), s->buf,
                         sizeof s->buf);
        set_reads(sizeof s->buf, cases[s->i].n, cases[s->i].error);
        VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
        CHECK_EQ(s->rc, cases[s->i].rc);
        CHECK_EQ(reads.n_left, 0);
        CHECK_EQ(volt_copy_failed_at(&s->c), s->rc < 0 ? VOLT_OUT : 0);
        CHECK_EQ(volt_copied(&s->c), s->rc < 0 ? 0 : 21);
        if (s->rc < 0) { // the bytes are where they were
            VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
            CHECK_EQ(s->rc, 0);
        }
        CHECK_EQ(volt_copied(&s->c), 21);
        CHECK_EQ(read(s->out[1], s->text, sizeof s->text), 21);
        CHECK_EQ(memcmp(s->text, "the bytes in the pipe", 21), 0);
        volt_copier_close(cx, &s->c);
        volt_close(cx, s->in[0]);
        for (int i = 0; i < 2; i++) volt_close(cx, s->out[i]);
    }
    VOLT_END(0);
}
// Each refusal counts as a large pipe, so that the kernel is not asked without end.
ROOT_TEST_1(large_pipes_that_are_refused_are_not_asked_for_again, {
    volt_copier c;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt__pipe_take(cx->rt_, &s->c), 0);
    for (int i = 0; i < VOLT__BIG_PIPES + 4; i++) {
        volt__pipe_enlarge(cx->rt_, &s->c);
        CHECK_EQ(s->c.has_big_pipe_, 0);
    }
    CHECK_EQ(n_sizes, VOLT__BIG_PIPES);
    volt__pipe_give(cx->rt_, &s->c, 0);
    CHECK_EQ(cx->rt_->n_big_pipes, VOLT__BIG_PIPES);
    VOLT_END(0);
}

// ---- processes and signals

// A pool thread that is interrupted while it waits for the report of the child.
ROOT_TEST_1(interrupted_start_of_a_process_waits_for_the_report, {
    volt_process p;
    volt_process_options o;
    int64_t rc;
}) {
    static const char *const none[] = { "/no/such/program", NULL };
    static const char *const some[] = { "true", NULL };
    VOLT_BEGIN(cx, s);
    s->o.argv = none;
    set_reads(sizeof(int), 3, (const int[]){ EINTR, EINTR, EINTR });
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, -ENOENT);
    CHECK_EQ(reads.n_left, 0);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    s->o.argv = some;
    set_reads(sizeof(int), 1, (const int[]){ EIO }); // a report that cannot be read is no error
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK(s->rc == 0 && reads.n_left == 0);
    VOLT_AWAIT(s->rc, volt_process_wait(cx, &s->p, NULL));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST(signals_that_cannot_be_blocked_are_not_opened) {
    int n_fds = test_count_fds();
    mask_error = EINVAL;
    CHECK_EQ(volt_signals_open((const int[]){ SIGHUP }, 1), -EINVAL);
    CHECK_EQ(mask_error, 0);
    CHECK_EQ(test_count_fds(), n_fds);
}
