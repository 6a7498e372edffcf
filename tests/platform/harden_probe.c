// SPDX-License-Identifier: MIT OR 0BSD
// For tests/platform/harden.sh: fills a block whose length only the running program knows, and as
// many bytes more as its argument says. FORTIFY_SOURCE=3 stops that, 2 does not.
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t size = (size_t)argc * 16; // the allocator rounds up: a byte more does no harm
    size_t more = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    char *block = (char *)malloc(size);
    if (!block) return 2;
    memset(block, argc, size + more);
    int is_filled = block[size - 1] == argc;
    free(block);
    return is_filled ? 0 : 1;
}
