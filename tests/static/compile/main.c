// SPDX-License-Identifier: MIT OR 0BSD
// Runs two units at once, each on a thread; see programs.sh. Exit status 0: both went well.
#include "unit.h"
#include <pthread.h>
#include <stdio.h>

static void *run_first(void *rc) {
    *(int *)rc = first();
    return NULL;
}

int main(void) {
    pthread_t thread;
    int rc = -1;
    if (pthread_create(&thread, NULL, run_first, &rc) != 0) return 1;
    int rc2 = second();
    pthread_join(thread, NULL);
    if (rc || rc2) printf("first: %d, second: %d\n", rc, rc2);
    return rc || rc2;
}
