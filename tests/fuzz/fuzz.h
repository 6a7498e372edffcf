// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the fuzzers. A fuzzer is one file with LLVMFuzzerTestOneInput; it stops the process at
// the first promise of volt.h that an input breaks. `make fuzz` links it with libFuzzer, and `make
// test` with replay.c, which feeds it the saved inputs of corpus/.
#ifndef VOLT_FUZZ_H
#define VOLT_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond_) ((cond_) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #cond_))
__attribute__((noreturn)) static inline void fuzz_fail(const char *file, int line,
                                                       const char *what) {
    fprintf(stderr, "%s:%d: MUST(%s)\n", file, line, what);
    abort();
}

#endif // VOLT_FUZZ_H
