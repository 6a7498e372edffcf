// SPDX-License-Identifier: MIT OR 0BSD
// The file of the rows F, which is in the page cache: each program makes one of its own, without a
// name, where disks are. A page begins with its number.
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILE_PAGE = 4096, FILE_PAGES = 4096, FILE_PART = 65536 };
enum { FILE_READS = 20000, FILE_PARTS = 4000 }; // of a page, of a part: in one repetition
#define FILE_NAME "/var/tmp/bench-files.XXXXXX"

// Makes it on a disk: some file systems in memory have no reads that do not wait.
static inline int file_open(void) {
    char name[] = FILE_NAME;
    uint64_t page[FILE_PAGE / sizeof(uint64_t)] = { 0 };
    const int fd = mkstemp(name);
    if (fd < 0 || unlink(name) < 0) bench_die("%s: %s", name, strerror(errno));
    for (page[0] = 0; page[0] < FILE_PAGES; page[0]++)
        if (write(fd, page, sizeof page) != sizeof page)
            bench_die("%s: %s", name, strerror(errno));
    return fd;
}

// The page of the next read of `len` bytes, pseudo-random.
static inline uint64_t file_next(uint64_t *state, size_t len) {
    const uint64_t pages = len / FILE_PAGE;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % (FILE_PAGES / pages) * pages;
}

static inline int file_is_right(const void *at, uint64_t page) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number == page;
}

#endif // BENCH_FILES_H
