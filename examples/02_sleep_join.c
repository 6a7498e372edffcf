// SPDX-License-Identifier: MIT OR 0BSD
// Two tasks sleep at the same time; their parent joins both and adds up their results.
//
// VOLT_SPAWN copies the state into the new task and returns a handle; volt_join waits for the task
// and returns its result. A result is >= 0 on success and -errno on failure, also for a spawn: one
// that failed has taken nothing and left the handle empty.
//
//     cc -I. -pthread examples/02_sleep_join.c -o sleep_join && ./sleep_join
//
// Expected output:
// nap 2 done
// nap 1 done
// 60 + 20 = 80
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <stdio.h>

typedef struct {
    volt_frame frame;
    int id, ms;
} nap;

static volt_poll nap_run(volt_cx *cx, void *arg) {
    nap *n = (nap *)arg;
    VOLT_BEGIN(cx, n);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(n->ms)));
    printf("nap %d done\n", n->id);
    VOLT_END(n->ms);
}

typedef struct {
    volt_frame frame;
    volt_handle first, second;
    int a, b;
} parent;

static volt_poll parent_run(volt_cx *cx, void *arg) {
    parent *p = (parent *)arg;
    VOLT_BEGIN(cx, p);
    p->a = VOLT_SPAWN(cx, &p->first, nap_run, (nap){ .id = 1, .ms = 60 });
    p->b = VOLT_SPAWN(cx, &p->second, nap_run, (nap){ .id = 2, .ms = 20 });
    if (p->a == 0) VOLT_AWAIT(p->a, volt_join(cx, &p->first));
    if (p->b == 0) VOLT_AWAIT(p->b, volt_join(cx, &p->second));
    if (p->a < 0 || p->b < 0) VOLT_RETURN(p->a < 0 ? p->a : p->b);
    printf("%d + %d = %d\n", p->a, p->b, p->a + p->b);
    VOLT_END(p->a + p->b);
}

int main(void) {
    parent p = { .a = 0 };
    int rc = volt_run(NULL, parent_run, &p);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
