// SPDX-License-Identifier: MIT OR 0BSD
// Which of the mutants compiled into a program is switched on: MUTANT in the environment. With -1,
// REACH names a file of a byte for each mutant: 1 for the first one of each place that was reached,
// by whatever process. Compiled without the model checker's hooks, so that asking leaves no trace.
#define _GNU_SOURCE
#include "which.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int volt_mutant;
static unsigned char *reach;

__attribute__((constructor)) static void volt_mutant_choose(void) {
    const char *text = getenv("MUTANT"), *path = getenv("REACH");
    struct stat st;
    int chosen = text ? atoi(text) : 0, fd;
    if (chosen >= 0) {
        volt_mutant = chosen;
        return;
    }
    fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) < 0) abort();
    reach = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (reach == MAP_FAILED) abort();
    close(fd);
    volt_mutant = chosen;
}
static int volt_mutant_reached(int first) {
    reach[first] = 1;
    return 0;
}
int volt_mutant_in_range(int first, int n) {
    if (volt_mutant < 0) return volt_mutant_reached(first);
    return volt_mutant >= first && volt_mutant < first + n;
}
int volt_mutant_is(int number) { return volt_mutant == number; }
