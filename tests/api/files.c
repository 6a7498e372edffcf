// SPDX-License-Identifier: MIT OR 0BSD
// Files, on the thread pool.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

// The seam: interrupted, a little at a time, an error at a single byte, a disk that takes nothing,
// and an error at the close.
static int interrupts, most_at_once, byte_error, takes_nothing, close_error;
static ssize_t test_pread(int fd, void *buf, size_t len, off_t at);
static ssize_t test_pwrite(int fd, const void *buf, size_t len, off_t at);
static int test_close(int fd);
#include <sys/stat.h>
#include <sys/uio.h>
// Reads in place: their number, the most bytes of one, and whether the file is a block device.
static int n_in_place, most_in_place, is_block;
#ifdef RWF_NOWAIT
static ssize_t test_preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags);
#endif
static int test_fstat(int fd, struct stat *st);
#undef preadv2 // of tests/platform/old_kernel.h: here the kernel is played in another way
#define pread test_pread
#define pwrite test_pwrite
#define close test_close
#define preadv2 test_preadv2
#define fstat test_fstat
#include "volt.h"
#undef pread
#undef pwrite
#undef close
#undef preadv2
#undef fstat
#include "test.h"
#include "tasks.h"

static int is_interrupted(void) {
    if (interrupts == 0) return 0;
    interrupts--;
    errno = EINTR;
    return 1;
}
static size_t some(size_t len) {
    return most_at_once && len > (size_t)most_at_once ? (size_t)most_at_once : len;
}
// A single byte is what volt_file_load asks for behind a file; an interrupted one works then.
static ssize_t test_pread(int fd, void *buf, size_t len, off_t at) {
    if (len == 1 && byte_error) {
        errno = byte_error;
        if (byte_error == EINTR) byte_error = 0;
        return -1;
    }
    return is_interrupted() ? -1 : pread(fd, buf, some(len), at);
}
static ssize_t test_pwrite(int fd, const void *buf, size_t len, off_t at) {
    if (takes_nothing) return 0;
    return is_interrupted() ? -1 : pwrite(fd, buf, some(len), at);
}
// The kernel itself gives the bytes, so that each of them counts as cached.
#ifdef RWF_NOWAIT
static ssize_t test_preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags) {
    size_t len = iov[0].iov_len;
    (void)n, (void)flags;
    n_in_place++;
    if (most_in_place && len > (size_t)most_in_place) len = (size_t)most_in_place;
    return pread(fd, iov[0].iov_base, len, at);
}
#endif
static int test_fstat(int fd, struct stat *st) {
    int rc = fstat(fd, st);
    if (is_block) {
        st->st_mode = S_IFBLK | 0600;
        st->st_size = 0;
    }
    return rc;
}
static int test_close(int fd) {
    int rc = close(fd);
    if (close_error == 0) return rc;
    errno = close_error;
    return -1;
}

static char dir[] = "/tmp/volt-files-XXXXXX", path[64], missing[64];
static void make_dir(void) {
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(missing, sizeof missing, "%s/none/file", dir);
}
static void remove_dir(void) {
    unlink(path);
    CHECK_EQ(rmdir(dir), 0);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
}

enum { SIZE = 100000 };
typedef struct {
    volt_frame frame;
    volt_file_op op;
    struct stat st;
    int fd;
    int64_t rc;
    char to[SIZE + 1], from[SIZE + 1];
} filer;
static volt_poll filer_run(volt_cx *cx, void *arg) {
    filer *f = (filer *)arg;
    VOLT_BEGIN(cx, f);
    for (int i = 0; i < SIZE; i++) f->to[i] = (char)(i * 7 + i / 251);
    VOLT_AWAIT(f->rc, volt_file_open(cx, &f->op, missing, O_RDONLY, 0));
    CHECK_EQ(f->rc, -ENOENT);
    VOLT_AWAIT(f->fd, volt_file_open(cx, &f->op, path, O_RDWR | O_CREAT | O_EXCL, 0640));
    CHECK(f->fd >= 0 && (fcntl(f->fd, F_GETFD) & FD_CLOEXEC));
    VOLT_AWAIT(f->rc, volt_file_pwrite(cx, &f->op, f->fd, f->to, SIZE, 0));
    CHECK_EQ(f->rc, SIZE);
    VOLT_AWAIT(f->rc, volt_file_fsync(cx, &f->op, f->fd, 0));
    CHECK_EQ(f->rc, 0);
    VOLT_AWAIT(f->rc, volt_file_fsync(cx, &f->op, f->fd, 1));
    CHECK_EQ(f->rc, 0);
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 100, 1000));
    CHECK(f->rc == 100 && memcmp(f->from, f->to + 1000, 100) == 0);
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 100, SIZE - 30));
    CHECK(f->rc == 30 && memcmp(f->from, f->to + SIZE - 30, 30) == 0);
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 100, SIZE));
    CHECK_EQ(f->rc, 0);
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 1, -1));
    CHECK_EQ(f->rc, -EINVAL);
    VOLT_AWAIT(f->rc, volt_file_stat(cx, &f->op, path, &f->st));
    CHECK(f->rc == 0 && f->st.st_size == SIZE && (f->st.st_mode & 0777) == 0640);
    VOLT_AWAIT(f->rc, volt_file_stat(cx, &f->op, missing, &f->st));
    CHECK_EQ(f->rc, -ENOENT);
    VOLT_AWAIT(f->rc, volt_file_close(cx, &f->op, f->fd));
    CHECK_EQ(f->rc, 0);
    VOLT_AWAIT(f->rc, volt_file_close(cx, &f->op, -1)); // not fd: another worker's by now, maybe
    CHECK_EQ(f->rc, -EBADF);
    // whole files
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, path, f->from, SIZE));
    CHECK(f->rc == SIZE && memcmp(f->from, f->to, SIZE) == 0);
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, path, f->from, SIZE + 1));
    CHECK_EQ(f->rc, SIZE);
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, path, f->from, SIZE - 1));
    CHECK_EQ(f->rc, -EFBIG);
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, missing, f->from, SIZE));
    CHECK_EQ(f->rc, -ENOENT);
    VOLT_AWAIT(f->rc, volt_file_save(cx, &f->op, path, "hello", 5, 0600));
    CHECK_EQ(f->rc, 5);
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, path, f->from, SIZE));
    CHECK(f->rc == 5 && memcmp(f->from, "hello", 5) == 0);
    VOLT_AWAIT(f->rc, volt_file_save(cx, &f->op, path, "hello", (size_t)VOLT__FILE_MAX + 1, 0600));
    CHECK_EQ(f->rc, -EINVAL);
    VOLT_AWAIT(f->rc, volt_file_load(cx, &f->op, path, f->from, SIZE));
    CHECK_EQ(f->rc, 5); // the old file is still there
    VOLT_AWAIT(f->rc, volt_file_save(cx, &f->op, missing, "hello", 5, 0600));
    CHECK_EQ(f->rc, -ENOENT);
    VOLT_AWAIT(f->rc, volt_file_save(cx, &f->op, "/dev/full", "hello", 5, 0600));
    CHECK_EQ(f->rc, -ENOSPC);
    VOLT_END(0);
}
TEST(files_are_written_and_read) {
    EACH_WORKERS(w) {
        static filer f;
        memset(&f, 0, sizeof f);
        make_dir();
        CHECK_EQ(run_on(w, filer_run, &f), 0);
        remove_dir();
    }
}

typedef struct {
    volt_frame frame;
    volt_file_op op;
    int fd;
    int64_t rc;
    char to[100], from[100];
} rarer;
static volt_poll rarer_run(volt_cx *cx, void *arg) {
    rarer *r = (rarer *)arg;
    VOLT_BEGIN(cx, r);
    for (int i = 0; i < 100; i++) r->to[i] = (char)i;
    interrupts = 3;
    most_at_once = 7;
    VOLT_AWAIT(r->rc, volt_file_save(cx, &r->op, path, r->to, 100, 0600));
    CHECK_EQ(r->rc, 100);
    interrupts = 3;
    VOLT_AWAIT(r->rc, volt_file_load(cx, &r->op, path, r->from, 100));
    CHECK(r->rc == 100 && memcmp(r->from, r->to, 100) == 0);
    CHECK_EQ(interrupts, 0);
    most_at_once = 0;
    byte_error = EINTR;
    VOLT_AWAIT(r->rc, volt_file_load(cx, &r->op, path, r->from, 100));
    CHECK_EQ(r->rc, 100);
    CHECK_EQ(byte_error, 0);
    byte_error = EINTR;
    VOLT_AWAIT(r->rc, volt_file_load(cx, &r->op, path, r->from, 99));
    CHECK_EQ(r->rc, -EFBIG); // it is asked for again
    byte_error = EIO;
    VOLT_AWAIT(r->rc, volt_file_load(cx, &r->op, path, r->from, 100));
    CHECK_EQ(r->rc, -EIO); // whether there is more is not known
    byte_error = 0;
    takes_nothing = 1;
    VOLT_AWAIT(r->rc, volt_file_save(cx, &r->op, path, r->to, 100, 0600));
    CHECK_EQ(r->rc, -EIO); // and no endless loop
    takes_nothing = 0;
    close_error = EIO;
    VOLT_AWAIT(r->rc, volt_file_save(cx, &r->op, path, r->to, 100, 0600));
    CHECK_EQ(r->rc, -EIO); // the data may not be there
    VOLT_AWAIT(r->rc, volt_file_save(cx, &r->op, "/dev/full", r->to, 100, 0600));
    CHECK_EQ(r->rc, -ENOSPC); // the first error is told
    close_error = 0;
    VOLT_AWAIT(r->rc, volt_file_load(cx, &r->op, dir, r->from, 100));
    CHECK_EQ(r->rc, -EISDIR);
    VOLT_AWAIT(r->fd, volt_file_open(cx, &r->op, path, O_RDWR, 0));
    CHECK(r->fd >= 0);
    VOLT_AWAIT(r->rc, volt_file_pread(cx, &r->op, r->fd, r->from, ((size_t)1 << 30) + 1, 0));
    CHECK_EQ(r->rc, -EINVAL);
    VOLT_AWAIT(r->rc, volt_file_pwrite(cx, &r->op, r->fd, r->to, 1, INT64_MAX));
    CHECK_EQ(r->rc, -EOVERFLOW);
    VOLT_AWAIT(r->rc, volt_file_pread(cx, &r->op, r->fd, r->from, 100, INT32_MAX - 50));
    CHECK_EQ(r->rc, sizeof(off_t) > 4 ? 0 : -EOVERFLOW); // far behind the end of the file
    VOLT_AWAIT(r->rc, volt_file_pread(cx, &r->op, -1, r->from, 1, 0));
    CHECK_EQ(r->rc, -EBADF);
    VOLT_AWAIT(r->rc, volt_file_close(cx, &r->op, r->fd));
    CHECK_EQ(r->rc, 0);
    VOLT_END(0);
}
TEST(file_calls_retry_short_transfers_and_give_late_errors) {
    rarer r;
    memset(&r, 0, sizeof r);
    make_dir();
    CHECK_EQ(run_on(1, rarer_run, &r), 0);
    remove_dir();
}

// ---- reads in place

typedef struct {
    volt_frame frame;
    volt_file_op op, other;
    volt_handle h;
    int fd, direct_fd, n;
    int64_t rc;
    char *to, *from;
} cached;
enum { LONG = 3 << 20 };
static int rounds_of_other, reader_has_ended;
typedef struct {
    volt_frame frame;
} yielder;
static volt_poll other_run(volt_cx *cx, void *arg) {
    yielder *y = (yielder *)arg;
    VOLT_BEGIN(cx, y);
    while (!reader_has_ended) {
        rounds_of_other++;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
#ifdef RWF_NOWAIT
enum { HAS_READS_IN_PLACE = 1 };
#else
enum { HAS_READS_IN_PLACE = 0 };
#endif
static volt_poll cached_run(volt_cx *cx, void *arg) {
    cached *f = (cached *)arg;
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(f->fd, volt_file_open(cx, &f->op, path, O_RDWR | O_CREAT | O_EXCL, 0640));
    for (int i = 0; i < LONG; i++) f->to[i] = (char)(i * 7 + i / 251);
    VOLT_AWAIT(f->rc, volt_file_pwrite(cx, &f->op, f->fd, f->to, LONG, 0));
    CHECK_EQ(f->rc, LONG);
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 4096, 100));
    CHECK(f->rc == 4096 && memcmp(f->from, f->to + 100, 4096) == 0);
    CHECK_EQ(n_in_place, HAS_READS_IN_PLACE);
    // of more than 1 MiB: the copy alone would keep the worker too long
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, LONG, 0));
    CHECK(f->rc == LONG && memcmp(f->from, f->to, LONG) == 0);
    CHECK_EQ(n_in_place, HAS_READS_IN_PLACE);
    // cached to the middle only, and the size of a block device is 0
    most_in_place = 4096;
    for (is_block = 0; is_block < 2; is_block++) {
        VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 10000, 100));
        CHECK(f->rc == 10000 && memcmp(f->from, f->to + 100, 10000) == 0);
    }
    is_block = most_in_place = 0;
    // with O_DIRECT a read in place would wait for the disk; another descriptor of the same op not
    n_in_place = 0;
    f->direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (f->direct_fd >= 0) {
        VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->direct_fd, f->from, 4096, 4096));
        CHECK(f->rc == 4096 && memcmp(f->from, f->to + 4096, 4096) == 0);
        CHECK_EQ(n_in_place, 0);
        VOLT_AWAIT(f->rc, volt_file_close(cx, &f->other, f->direct_fd));
    }
    VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 4096, 4096));
    CHECK_EQ(f->rc, 4096);
    CHECK_EQ(n_in_place, HAS_READS_IN_PLACE);
    // each takes a unit of the budget, and none needs a job because no unit is left
    n_in_place = 0;
    SPAWN(NULL, other_run, ((yielder){ { { 0 } } }));
    for (f->n = 0; f->n < 2000; f->n++) {
        VOLT_AWAIT(f->rc, volt_file_pread(cx, &f->op, f->fd, f->from, 16, f->n));
        CHECK_EQ(f->rc, 16);
    }
    reader_has_ended = 1;
    CHECK(rounds_of_other >= 2000 / 256);
    CHECK_EQ(n_in_place, HAS_READS_IN_PLACE * 2000);
    VOLT_AWAIT(f->rc, volt_file_close(cx, &f->op, f->fd));
    VOLT_END(0);
}
TEST(cached_data_is_read_in_place_where_that_neither_waits_nor_lasts) {
    cached f;
    memset(&f, 0, sizeof f);
    f.to = aligned_alloc(4096, LONG);
    f.from = aligned_alloc(4096, LONG);
    make_dir();
    CHECK_EQ(run_on(1, cached_run, &f), 0);
    remove_dir();
    free(f.to);
    free(f.from);
}
ROOT_TEST_1(write_to_a_pipe_without_reader_raises_no_signal, {
    volt_file_op op;
    int fd[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    close(s->fd[0]);
    VOLT_AWAIT(s->rc, volt_file_append(cx, &s->op, s->fd[1], "x", 1));
    CHECK_EQ(s->rc, -EPIPE);
    close(s->fd[1]);
    VOLT_END(0);
}

#ifndef VOLT_SINGLE_THREAD
static volt_poll shared_op_run(volt_cx *cx, void *arg) {
    rarer *r = (rarer *)arg;
    VOLT_BEGIN(cx, r);
    r->op.job_.state_ = 1; // as if another call had it
    VOLT_AWAIT(r->rc, volt_file_close(cx, &r->op, -1));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_file_op op;
    struct stat st;
    char buf[4];
    int64_t n;
} pathless;
static volt_poll pathless_run(volt_cx *cx, void *arg) {
    pathless *s = arg;
    const char *const none = NULL;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_file_open(cx, &s->op, none, O_RDONLY, 0));
    CHECK_EQ(s->n, -EFAULT);
    VOLT_AWAIT(s->n, volt_file_stat(cx, &s->op, none, &s->st));
    CHECK_EQ(s->n, -EFAULT);
    VOLT_AWAIT(s->n, volt_file_load(cx, &s->op, none, s->buf, sizeof s->buf));
    CHECK_EQ(s->n, -EFAULT);
    VOLT_AWAIT(s->n, volt_file_save(cx, &s->op, none, s->buf, sizeof s->buf, 0600));
    CHECK_EQ(s->n, -EFAULT);
    VOLT_END(0);
}
TEST(file_without_a_path_gives_an_error) {
    static pathless s;
    CHECK_EQ(run_on(1, pathless_run, &s), 0);
}
TEST_DIES(file_op_for_two_calls_at_once_is_caught, "volt_file_op is in use by another call") {
    rarer r;
    memset(&r, 0, sizeof r);
    (void)run_on(1, shared_op_run, &r);
}
#endif
