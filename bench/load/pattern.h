// SPDX-License-Identifier: MIT OR 0BSD
// The bytes that bulk.c sends and drain.c compares: a block that repeats.
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BLOCK = 1 << 20, PATTERN_CHUNK = 1 << 17 };

// The block, and behind it its first bytes again: a chunk that begins anywhere in it is in one
// piece.
static inline char *pattern_new(void) {
    char *p = malloc(PATTERN_BLOCK + PATTERN_CHUNK);
    uint64_t word = 88172645463325252;
    for (size_t at = 0; p && at < PATTERN_BLOCK; at += sizeof word) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        memcpy(p + at, &word, sizeof word);
    }
    if (p) memcpy(p + PATTERN_BLOCK, p, PATTERN_CHUNK);
    return p;
}

#endif // BENCH_PATTERN_H
