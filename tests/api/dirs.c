// SPDX-License-Identifier: MIT OR 0BSD
// Files that are replaced, renamed, extended; directories; reads of what is cached.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// The seam: calls named by a HOOK_ go to a function of this file; those from the nth to the last
// one of a name fail.
static struct {
    const char *name;
    int nth, last, error; // counted from 1
    int n;                // of its calls so far
} failing[2];
static int n_cached, n_read; // calls of preadv2 and pread
static int fails(const char *name) {
    for (int i = 0; i < 2; i++) {
        if (!failing[i].name || strcmp(name, failing[i].name) != 0) continue;
        int n = ++failing[i].n;
        if (n < failing[i].nth || n > failing[i].last) continue;
        errno = failing[i].error;
        return 1;
    }
    return 0;
}
// A file of the root directory stands for one of the directory that the test is in. The directory
// that is opened is noted; it is the current one in each case.
static char opened_dir[80];
static const char *here(const char *path) { return strncmp(path, "/~", 2) ? path : path + 1; }
static int seam_openat(int at, const char *path, int flags, mode_t mode) {
    if (fails("openat")) return -1;
    if (flags & O_DIRECTORY) snprintf(opened_dir, sizeof opened_dir, "%s", path);
    return openat(at, here(path), flags, mode);
}
static int seam_fstat(int fd, struct stat *st) { return fails("fstat") ? -1 : fstat(fd, st); }
static ssize_t seam_pread(int fd, void *buf, size_t len, off_t at) {
    n_read++;
    return pread(fd, buf, len, at);
}
static size_t asked_len; // of the last getdents64
static long seam_call(long nr, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                      uintptr_t f) {
    if (nr == SYS_getdents64) {
        asked_len = c;
        if (c > 512) c = 512; // the room that there is
    }
    return syscall(nr, a, b, c, d, e, f);
}
#define seam_syscall(...) seam_syscall_of(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define seam_syscall_of(nr_, a_, b_, c_, d_, e_, f_, ...)                                          \
    seam_call(nr_, (uintptr_t)(a_), (uintptr_t)(b_), (uintptr_t)(c_), (uintptr_t)(d_),             \
              (uintptr_t)(e_), (uintptr_t)(f_))
static ssize_t seam_pwrite(int fd, const void *buf, size_t len, off_t at) {
    return fails("pwrite") ? -1 : pwrite(fd, buf, len, at);
}
static int seam_fsync(int fd) { return fails("fsync") ? -1 : fsync(fd); }
static int seam_close(int fd) {
    int rc = close(fd); // as the kernel does it, also if it reports an error
    return fails("close") ? -1 : rc;
}
static int seam_rename(const char *from, const char *to) {
    if (!to) abort(); // the C library may not expect it
    return fails("rename") ? -1 : rename(here(from), here(to));
}
#ifdef RWF_NOWAIT
static int is_cached; // everything: reads in place always work
static ssize_t seam_preadv2(int fd, const struct iovec *part, int n, off_t at, int flags) {
    n_cached++;
    if (is_cached) return pread(fd, part->iov_base, part->iov_len, at);
    return fails("preadv2") ? -1 : preadv2(fd, part, n, at, flags);
}
#endif
#define HOOK_openat ~, seam_openat
#define HOOK_pwrite ~, seam_pwrite
#define HOOK_fsync ~, seam_fsync
#define HOOK_fstat ~, seam_fstat
#define HOOK_pread ~, seam_pread
#define HOOK_close ~, seam_close
#define HOOK_rename ~, seam_rename
#define HOOK_preadv2 ~, seam_preadv2
#define HOOK_syscall ~, seam_syscall
#include "hook.h"
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <dirent.h>

static void fail_at(const char *name, int nth, int error) {
    memset(failing, 0, sizeof failing);
    failing[0].name = name;
    failing[0].nth = failing[0].last = nth;
    failing[0].error = error;
}
static void fail_never(void) { memset(failing, 0, sizeof failing); }

// An offset of a directory has 64 bits on some file systems, also where off_t has 32.
#ifdef __GLIBC__
#  define dirent dirent64
#  define readdir readdir64
#endif
static char dir[] = "/tmp/volt-dirs-XXXXXX";
static void make_dir(void) { CHECK(mkdtemp(dir)); }
static const char *in_dir(const char *name) {
    static char paths[8][300];
    static int i;
    snprintf(paths[i %= 8], sizeof paths[0], "%s/%s", dir, name);
    return paths[i++];
}
static void drop_dir(void) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        unlink(in_dir(e->d_name));
        rmdir(in_dir(e->d_name));
    }
    closedir(d);
    CHECK_EQ(rmdir(dir), 0);
}
static int count_entries(void) {
    int n = 0;
    DIR *d = opendir(dir);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}
static void must_hold(const char *name, const char *text) {
    char buf[200];
    FILE *in = fopen(in_dir(name), "r");
    CHECK(in);
    buf[fread(buf, 1, sizeof buf - 1, in)] = 0;
    fclose(in);
    CHECK_STR(buf, text);
}

ROOT_TEST_1(replaced_file_has_the_new_content_and_nothing_is_left, {
    volt_file_op op;
    struct stat st;
    int64_t rc;
    char out[200];
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    umask(022);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "first", 5, 0664));
    CHECK_EQ(s->rc, 5);
    must_hold("a", "first");
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "2nd", 3, 0600));
    CHECK_EQ(s->rc, 3);
    must_hold("a", "2nd");
    VOLT_AWAIT(s->rc, volt_file_stat(cx, &s->op, in_dir("a"), &s->st));
    CHECK_EQ(s->st.st_mode & 0777, 0600);
    CHECK_EQ(count_entries(), 1);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("none/a"), "x", 1, 0600));
    CHECK_EQ(s->rc, -ENOENT);
    memset(s->out, 'x', sizeof s->out);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, NULL, "x", 1, 0600));
    CHECK_EQ(s->rc, -EFAULT);
    drop_dir();
    VOLT_END(0);
}
// Whichever call fails, a reader finds the old file or the new one, and no other file is left.
ROOT_TEST_1(replacing_that_fails_keeps_the_old_file, {
    volt_file_op op;
    int64_t rc;
    int i;
}) {
    static const struct {
        const char *name;
        int nth, error, is_new; // new: the new content is in place, only its safety is not
    } cases[] = {
        { "openat", 1, EMFILE, 0 }, { "openat", 1, ENOSPC, 0 }, { "pwrite", 1, ENOSPC, 0 },
        { "pwrite", 1, EIO, 0 },    { "fsync", 1, EIO, 0 },     { "close", 1, EDQUOT, 0 },
        { "rename", 1, EACCES, 0 }, { "openat", 2, EMFILE, 1 }, { "fsync", 2, EIO, 1 },
    };
    VOLT_BEGIN(cx, s);
    make_dir();
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "old", 3, 0600));
        CHECK_EQ(s->rc, 3);
        fail_at(cases[s->i].name, cases[s->i].nth, cases[s->i].error);
        VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "new", 3, 0600));
        fail_never();
        CHECK_EQ(s->rc, -cases[s->i].error);
        must_hold("a", cases[s->i].is_new ? "new" : "old");
        CHECK_EQ(count_entries(), 1);
    }
    fail_at("fsync", 2, EINVAL); // a directory that cannot be waited for is no error
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "new", 3, 0600));
    CHECK_EQ(s->rc, 3);
    for (s->i = 0; s->i < 2; s->i++) { // of a file without content
        fail_at(s->i ? "close" : "fsync", 1, EIO);
        VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "", 0, 0600));
        CHECK_EQ(s->rc, -EIO);
        must_hold("a", "new");
    }
    fail_at("openat", 1, EEXIST); // another name is tried
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "new2", 4, 0600));
    CHECK_EQ(s->rc, 4);
    must_hold("a", "new2");
    fail_at("fsync", 1, EIO);
    failing[1] = failing[0];
    failing[1].name = "close";
    failing[1].error = EDQUOT;
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "new3", 4, 0600));
    CHECK_EQ(s->rc, -EIO); // the first error is told
    CHECK_EQ(failing[1].n, 1);
    must_hold("a", "new2");
    CHECK_EQ(count_entries(), 1);
    fail_never();
    drop_dir();
    VOLT_END(0);
}
ROOT_TEST_1(replacing_gives_up_after_100_names_that_exist, {
    volt_file_op op;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    fail_at("openat", 1, EEXIST);
    failing[0].last = 99;
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "old", 3, 0600));
    CHECK_EQ(s->rc, 3); // by the last name
    must_hold("a", "old");
    fail_at("openat", 1, EEXIST);
    failing[0].last = 100;
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "new", 3, 0600));
    CHECK_EQ(s->rc, -EEXIST);
    CHECK_EQ(failing[0].n, 100);
    must_hold("a", "old");
    CHECK_EQ(count_entries(), 1);
    fail_never();
    drop_dir();
    VOLT_END(0);
}
// The name of the new file is 17 bytes longer, and all of it is kept on a stack.
ROOT_TEST_1(replacing_refuses_path_without_room_for_a_new_name, {
    volt_file_op op;
    int64_t rc;
    size_t len;
    char path[PATH_MAX + 100];
}) {
    VOLT_BEGIN(cx, s);
    for (s->len = PATH_MAX - 19; s->len < PATH_MAX + 99; s->len++) {
        memset(s->path, '/', sizeof s->path - 1); // the root directory, which is no file
        s->path[s->len] = 0;
        fail_at("openat", 1, EMFILE); // a name that fits in is opened
        VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, s->path, "x", 1, 0600));
        CHECK_EQ(s->rc, s->len + 18 > PATH_MAX ? -ENAMETOOLONG : -EMFILE);
        CHECK_EQ(failing[0].n, s->rc == -EMFILE);
    }
    fail_never();
    VOLT_END(0);
}
ROOT_TEST_1(replaced_file_is_synced_in_its_own_directory, {
    volt_file_op op;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    CHECK_EQ(chdir(dir), 0);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, in_dir("a"), "1", 1, 0600));
    CHECK_EQ(s->rc, 1);
    CHECK_STR(opened_dir, dir);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, "a", "22", 2, 0600));
    CHECK_EQ(s->rc, 2);
    CHECK_STR(opened_dir, ".");
    must_hold("a", "22");
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &s->op, "/~a", "333", 3, 0600));
    CHECK_EQ(s->rc, 3);
    CHECK_STR(opened_dir, "/");
    must_hold("~a", "333");
    CHECK_EQ(chdir("/"), 0);
    drop_dir();
    VOLT_END(0);
}
ROOT_TEST_1(file_is_extended_cut_renamed_and_removed, {
    volt_file_op op;
    struct stat st;
    int64_t rc;
    int fd, i;
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, in_dir("log"), O_WRONLY | O_CREAT | O_APPEND,
                                     0600));
    CHECK(s->fd >= 0);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_file_append(cx, &s->op, s->fd, "line\n", 5));
        CHECK_EQ(s->rc, 5);
    }
    must_hold("log", "line\nline\nline\n");
    VOLT_AWAIT(s->rc, volt_file_truncate(cx, &s->op, s->fd, 7));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_file_fstat(cx, &s->op, s->fd, &s->st));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->st.st_size, 7);
    VOLT_AWAIT(s->rc, volt_file_truncate(cx, &s->op, s->fd, -1));
    CHECK_EQ(s->rc, -EINVAL);
    if (sizeof(off_t) == 4) { // a length of 4 GiB and 7 bytes, whose lower half is valid
        VOLT_AWAIT(s->rc, volt_file_truncate(cx, &s->op, s->fd, ((int64_t)1 << 32) + 7));
        CHECK_EQ(s->rc, -EOVERFLOW);
    }
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    VOLT_AWAIT(s->rc, volt_file_fstat(cx, &s->op, s->fd, &s->st));
    CHECK_EQ(s->rc, -EBADF);
    VOLT_AWAIT(s->rc, volt_file_rename(cx, &s->op, in_dir("log"), in_dir("log.1")));
    CHECK_EQ(s->rc, 0);
    must_hold("log.1", "line\nli");
    VOLT_AWAIT(s->rc, volt_file_rename(cx, &s->op, in_dir("log"), in_dir("log.2")));
    CHECK_EQ(s->rc, -ENOENT);
    VOLT_AWAIT(s->rc, volt_file_rename(cx, &s->op, in_dir("log.1"), NULL));
    CHECK_EQ(s->rc, -EFAULT);
    VOLT_AWAIT(s->rc, volt_file_unlink(cx, &s->op, in_dir("log.1")));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_file_unlink(cx, &s->op, in_dir("log.1")));
    CHECK_EQ(s->rc, -ENOENT);
    drop_dir();
    VOLT_END(0);
}

enum { ENTRIES = 50 };
// Names that begin with dots are entries as others, but for "." and "..".
static const char *entry_name(int i) {
    static const char *const names[] = { "x", ".x", "..x", "...", "xy", "..xyz" };
    static char name[20];
    if (i < (int)(sizeof names / sizeof names[0])) return names[i];
    snprintf(name, sizeof name, "file%d", i);
    return name;
}
ROOT_TEST_1(directory_is_listed_once_in_batches, {
    volt_file_op op;
    int fd, i, n_batches, seen[ENTRIES];
    size_t at;
    volt_dir_entry e;
    int64_t rc;
    uint64_t buf[512 / 8];
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    for (int i = 0; i < ENTRIES; i++) {
        if (i % 2 == 0) close(open(in_dir(entry_name(i)), O_CREAT | O_WRONLY, 0600));
        else CHECK_EQ(mkdir(in_dir(entry_name(i)), 0700), 0);
    }
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, dir, O_RDONLY | O_DIRECTORY, 0));
    CHECK(s->fd >= 0);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_dir_read(cx, &s->op, s->fd, s->buf, sizeof s->buf));
        CHECK(s->rc >= 0);
        if (s->rc == 0) break;
        s->n_batches++;
        s->at = 0;
        for (;;) {
            s->e.type = -1;
            s->e.inode = 0;
            if (!volt_dir_next(s->buf, (size_t)s->rc, &s->at, &s->e)) break;
            for (s->i = 0; strcmp(s->e.name, entry_name(s->i)) != 0;) CHECK(++s->i < ENTRIES);
            CHECK_EQ(s->seen[s->i]++, 0);
            CHECK(s->e.inode != 0);
            CHECK(s->e.type == (s->i % 2 ? DT_DIR : DT_REG) || s->e.type == DT_UNKNOWN);
        }
    }
    CHECK(s->n_batches > 1);
    for (int i = 0; i < ENTRIES; i++) CHECK_EQ(s->seen[i], 1);
    for (size_t len = 0; len < 20; len++) { // less than the head of an entry, and a name
        s->at = 0;
        CHECK_EQ(volt_dir_next(s->buf, len, &s->at, &s->e), 0);
    }
    VOLT_AWAIT(s->rc, volt_dir_read(cx, &s->op, s->fd, s->buf, 8));
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    VOLT_AWAIT(s->rc, volt_dir_make(cx, &s->op, in_dir("new"), 0700));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_dir_make(cx, &s->op, in_dir("new"), 0700));
    CHECK_EQ(s->rc, -EEXIST);
    VOLT_AWAIT(s->rc, volt_dir_remove(cx, &s->op, in_dir("new")));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_dir_remove(cx, &s->op, in_dir("new")));
    CHECK_EQ(s->rc, -ENOENT);
    VOLT_AWAIT(s->rc, volt_dir_remove(cx, &s->op, dir));
    CHECK_EQ(s->rc, -ENOTEMPTY);
    drop_dir();
    VOLT_END(0);
}

// The kernel takes the number of bytes as an unsigned int: 4 GiB would be none.
ROOT_TEST_1(directory_is_read_into_at_most_1_gib, {
    volt_file_op op;
    int fd, i;
    int64_t rc;
    uint64_t buf[512 / 8];
}) {
    static const size_t caps[] = { 512, 1 << 30, (1u << 30) + 1, SIZE_MAX };
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, "/", O_RDONLY | O_DIRECTORY, 0));
    CHECK(s->fd >= 0);
    for (s->i = 0; s->i < 4; s->i++) {
        CHECK_EQ(lseek(s->fd, 0, SEEK_SET), 0);
        VOLT_AWAIT(s->rc, volt_dir_read(cx, &s->op, s->fd, s->buf, caps[s->i]));
        CHECK(s->rc > 0);
        CHECK_EQ(asked_len, s->i == 0 ? 512 : 1 << 30);
    }
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    VOLT_END(0);
}

// A read of what is cached needs no job; neither does one that ends at the end of the file. Where
// the kernel has no such reads, it is asked once.
ROOT_TEST_1(cached_read_needs_no_thread, {
    volt_file_op op;
    int fd, i, k;
    char buf[100];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    VOLT_AWAIT(s->rc, volt_file_save(cx, &s->op, in_dir("a"), "0123456789", 10, 0600));
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, in_dir("a"), O_RDONLY, 0));
    n_cached = 0;
    for (s->i = 0; s->i < 12; s->i++) {
        memset(s->buf, 0, sizeof s->buf);
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 4, s->i));
        CHECK_EQ(s->rc, s->i < 6 ? 4 : s->i < 10 ? 10 - s->i : 0);
        CHECK_EQ(strncmp(s->buf, &"0123456789"[s->i < 10 ? s->i : 10], (size_t)s->rc), 0);
    }
#ifdef RWF_NOWAIT
    CHECK(s->op.waits_ || n_cached == 12);
#endif
    for (s->k = 0; s->k < 4; s->k++) { // of the file system, of the kernel, of a filter
        static const int errors[] = { EOPNOTSUPP, ENOSYS, EINVAL, EPERM };
        s->op.waits_ = 0;
        fail_at("preadv2", 1, errors[s->k]);
        n_cached = 0;
        for (s->i = 0; s->i < 3; s->i++) {
            VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 4, 0));
            CHECK_EQ(s->rc, 4);
        }
        CHECK(n_cached <= 1);
    }
    fail_never();
    s->op.waits_ = 0;
    n_cached = 0;
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 4, -1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 0, 0));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, SIZE_MAX, 0));
    CHECK_EQ(s->rc, -EINVAL);
    CHECK_EQ(n_cached, 0); // a job tells the error
#ifdef RWF_NOWAIT
    is_cached = 1;
    for (s->i = 0; s->i < 2; s->i++) { // a short read is the end only if the size says so
        if (s->i) fail_at("fstat", 1, EIO);
        n_read = 0;
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 8, 5));
        CHECK_EQ(s->rc, 5);
        CHECK_EQ(n_read > 0, s->i); // by a job
    }
    is_cached = 0;
    fail_never();
#endif
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    drop_dir();
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_file_op op;
    int fd;
    char byte;
    int64_t rc;
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_file_pread(cx, &r->op, r->fd, &r->byte, 1, 0));
    CHECK_EQ(r->rc, -ECANCELED);
    CHECK_EQ(r->byte, 0);
    VOLT_END(0);
}
ROOT_TEST_1(cancelled_read_takes_nothing_from_the_cache, {
    volt_file_op op;
    volt_handle h;
    int fd;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    make_dir();
    VOLT_AWAIT(s->rc, volt_file_save(cx, &s->op, in_dir("a"), "x", 1, 0600));
    CHECK_EQ(s->rc, 1);
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, in_dir("a"), O_RDONLY, 0));
    n_cached = 0;
    SPAWN(&s->h, reader_run, ((reader){ .fd = s->fd }));
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(n_cached, 0);
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    drop_dir();
    VOLT_END(0);
}
static volt_poll frameless_run(volt_cx *cx, void *arg) {
    reader *r = (reader *)arg;
    return volt_file_pread(cx, &r->op, r->fd, &r->byte, 1, 0);
}
TEST_DIES(file_read_without_begin_is_caught, "wait called") {
    static reader r;
    (void)run_on(1, frameless_run, &r);
}
