// SPDX-License-Identifier: MIT OR 0BSD
// File rows by libuv, whose reads of files run on its threads. See ../../rows/files.h for the file.
//
//   files [ROW...] [--reps N]        default: all rows, 9 repetitions
//
//   F1   uv_fs_read of 4 KiB at random offsets, 20,000 times one after the other
//   F2   of 64 KiB, 4,000 times
//   F1:uring, F2:uring   by the io_uring of the loop, with a thread of the kernel that polls it:
//        libuv has it off by default
//
// For the columns see ../../rows/bench.h.
#include "../peer.h"
#include "../../rows/files.h"
#include <uv.h>

static struct {
    uv_loop_t loop;
    uv_fs_t request;
    uv_buf_t buf;
    uint64_t random, page;
    size_t len, left;
    int fd;
    char bytes[FILE_PART];
} reading;

static void must(int rc) {
    if (rc < 0) bench_die("libuv: %s", uv_strerror(rc));
}

static void on_read(uv_fs_t *request);

static void read_next(void) {
    if (reading.left-- == 0) return;
    reading.page = file_next(&reading.random, reading.len);
    reading.buf = uv_buf_init(reading.bytes, (unsigned)reading.len);
    must(uv_fs_read(&reading.loop, &reading.request, reading.fd, &reading.buf, 1,
                    (int64_t)reading.page * FILE_PAGE, on_read));
}

static void on_read(uv_fs_t *request) {
    peer_done += request->result == (ssize_t)reading.len &&
                 file_is_right(reading.bytes, reading.page);
    uv_fs_req_cleanup(request);
    read_next();
}

static void run(size_t len, size_t times) {
    reading.len = len;
    reading.left = times;
    read_next();
    must(uv_run(&reading.loop, UV_RUN_DEFAULT));
}
static void f1_run(void) { run(FILE_PAGE, FILE_READS); }
static void f2_run(void) { run(FILE_PART, FILE_PARTS); }

static void open_file(void) {
    must(uv_loop_init(&reading.loop));
    reading.fd = file_open();
}
static void open_ring(void) {
#if UV_VERSION_HEX >= 0x013100
    setenv("UV_USE_IO_URING", "1", 1); // libuv has it off by default
    open_file();
    must(uv_loop_configure(&reading.loop, UV_LOOP_USE_IO_URING_SQPOLL));
#else
    bench_die("this libuv has none");
#endif
}
static void end(void) {
    close(reading.fd);
    must(uv_loop_close(&reading.loop));
}

static const row rows[] = {
    { "F1", "uv_fs_read of 4 KiB", FILE_READS, f1_run, open_file, end },
    { "F2", "uv_fs_read of 64 KiB", FILE_PARTS, f2_run, open_file, end },
    { "F1:uring", "uv_fs_read of 4 KiB by io_uring", FILE_READS, f1_run, open_ring, end },
    { "F2:uring", "uv_fs_read of 64 KiB by io_uring", FILE_PARTS, f2_run, open_ring, end },
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
