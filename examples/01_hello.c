// SPDX-License-Identifier: MIT OR 0BSD
// The smallest volt program: one task that sleeps.
//
// A task is a function and a struct that begins with a `volt_frame`. The function runs from
// VOLT_BEGIN to a wait, returns to its worker, and resumes behind the wait when it is over. Values
// that must survive a wait live in the struct.
//
//     cc -I. -pthread examples/01_hello.c -o hello && ./hello
//
// Expected output:
// 3
// 2
// 1
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <stdio.h>

typedef struct { volt_frame frame; int left; } countdown; // values that survive an await

static volt_poll countdown_run(volt_cx *cx, void *arg) {
    countdown *c = (countdown *)arg;
    VOLT_BEGIN(cx, c);
    for (c->left = 3; c->left > 0; c->left--) {
        printf("%d\n", c->left);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100)));
    }
    VOLT_END(0);
}

int main(void) {
    countdown c = { .left = 0 };
    return volt_run(NULL, countdown_run, &c);
}
