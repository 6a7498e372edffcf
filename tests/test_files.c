// SPDX-License-Identifier: MIT OR 0BSD
// Files, on the thread pool.
#define VOLT_IMPLEMENTATION
#include "../volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/stat.h>

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
    VOLT_AWAIT(f->rc, volt_file_sync(cx, &f->op, f->fd, 0));
    CHECK_EQ(f->rc, 0);
    VOLT_AWAIT(f->rc, volt_file_sync(cx, &f->op, f->fd, 1));
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
    VOLT_AWAIT(f->rc, volt_file_close(cx, &f->op, f->fd));
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
