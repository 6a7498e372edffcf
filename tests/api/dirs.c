// SPDX-License-Identifier: MIT OR 0BSD
// Files that are replaced, renamed, extended; directories; reads of what is cached.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// The seam: calls named by a HOOK_ go to a function of this file; the nth call of a name fails.
static struct {
    const char *name;
    int nth, error; // counted from 1
    int n;          // of its calls so far
} failing;
static int n_cached; // calls of preadv2
static int fails(const char *name) {
    if (!failing.name || strcmp(name, failing.name) != 0 || ++failing.n != failing.nth) return 0;
    errno = failing.error;
    return 1;
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
static ssize_t seam_preadv2(int fd, const struct iovec *part, int n, off_t at, int flags) {
    n_cached++;
    return fails("preadv2") ? -1 : preadv2(fd, part, n, at, flags);
}
#endif
#define HOOK_openat ~, seam_openat
#define HOOK_pwrite ~, seam_pwrite
#define HOOK_fsync ~, seam_fsync
#define HOOK_close ~, seam_close
#define HOOK_rename ~, seam_rename
#define HOOK_preadv2 ~, seam_preadv2
#define SECOND(a_, b_, ...) b_
#define PICK(...) SECOND(__VA_ARGS__)
#define VOLT_SYS(name_, ...) PICK(HOOK_##name_, name_, ~)(__VA_ARGS__)
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <dirent.h>
#include <sys/stat.h>

static void fail_at(const char *name, int nth, int error) {
    failing.name = name;
    failing.nth = nth;
    failing.error = error;
    failing.n = 0;
}

static char dir[] = "/tmp/volt-dirs-XXXXXX";
static void make_dir(void) { CHECK(mkdtemp(dir)); }
static const char *in_dir(const char *name) {
    static char paths[8][80];
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
        failing.name = NULL;
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
    drop_dir();
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
    VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->buf, 4, -1));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
    drop_dir();
    VOLT_END(0);
}
