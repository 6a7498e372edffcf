// SPDX-License-Identifier: MIT OR 0BSD
// Feeds saved inputs to a fuzzer, without libFuzzer: each earlier finding is checked by `make
// test`.
//   build/fuzz/replay_<name> <directory or file>...
// Names each input before it runs: if the process dies, the last one is the cause. The last line:
// "<program>: N passed, N failed, N skipped".
#include "fuzz.h"
#include <dirent.h>
#include <sys/stat.h>

enum { INPUT_MAX = 4096 };
static int n_passed;

static void replay_file(const char *path) {
    static uint8_t data[INPUT_MAX];
    printf("  %s\n", path);
    fflush(stdout);
    FILE *in = fopen(path, "rb");
    MUST(in);
    size_t n = fread(data, 1, sizeof data, in);
    fclose(in);
    uint8_t *exact = malloc(n ? n : 1); // so that a checker sees a read past the end
    MUST(exact);
    memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    n_passed++;
}
static int is_input(const struct dirent *e) { return e->d_name[0] != '.'; }
static void replay(const char *path) {
    struct stat st;
    struct dirent **names;
    MUST(stat(path, &st) == 0);
    if (!S_ISDIR(st.st_mode)) {
        replay_file(path);
        return;
    }
    int n = scandir(path, &names, is_input, alphasort);
    for (int i = 0; i < n; i++) {
        char file[512];
        MUST(snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name) < (int)sizeof file);
        replay_file(file);
        free(names[i]);
    }
    MUST(n > 0);
    free(names);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%s: %d passed, 0 failed, 0 skipped\n", argv[0], n_passed);
    return n_passed == 0;
}
