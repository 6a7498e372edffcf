// SPDX-License-Identifier: MIT OR 0BSD
// File rows: reads of a file that is in the page cache.
//
//   files [ROW...] [--workers N] [--reps N]        default: all rows, 1 worker, 9 repetitions
//   files --list                                   the names of the rows
//
//   F1   a task reads 4 KiB 20,000 times, by volt_file_pread at random offsets
//   F2   64 KiB, 4,000 times
//
// ns are per read; for the columns see bench.h.
#define VOLT_IMPLEMENTATION
#include "calls.h"
#include "volt.h"
#include "rows.h"
#include "files.h"

typedef struct reading {
    volt_frame frame;
    size_t len, times, i;
    volt_file_op op;
    int fd;
    uint64_t random, page;
    int64_t n;
    char *buf;
} reading;

static void reading_open(reading *r) {
    static int fd = -1;
    if (fd < 0) fd = file_open();
    r->fd = fd;
    r->buf = malloc(r->len);
    if (!r->buf) bench_die("out of memory");
}

static volt_poll reading_run(volt_cx *cx, void *arg) {
    reading *r = arg;
    VOLT_BEGIN(cx, r);
    if (!r->buf) reading_open(r);
    for (r->i = 0; r->i < r->times; r->i++) {
        r->page = file_next(&r->random, r->len);
        VOLT_AWAIT(r->n, volt_file_pread(cx, &r->op, r->fd, r->buf, r->len,
                                         (int64_t)r->page * FILE_PAGE));
        if (r->n < 0) VOLT_RETURN(r->n);
        tally_add(r->n == (int64_t)r->len && file_is_right(r->buf, r->page));
    }
    VOLT_END(0);
}

static reading pages = { .len = FILE_PAGE, .times = FILE_READS };
static reading parts = { .len = FILE_PART, .times = FILE_PARTS };
static const row rows[] = {
    { "F1", "read 4 KiB that are cached", FILE_READS, reading_run, &pages },
    { "F2", "read 64 KiB that are cached", FILE_PARTS, reading_run, &parts },
};

int main(int argc, char **argv) { return rows_main(argc, argv, rows, BENCH_COUNT(rows)); }
