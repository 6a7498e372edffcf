// SPDX-License-Identifier: MIT OR 0BSD
// The smallest volt program: one task, one sleep.
//
// A task is a function and a struct that begins with a `volt_frame`. The function runs from
// VOLT_BEGIN to a wait, gives its thread back, and goes on behind the wait when that is over. What
// must survive the wait lives in the struct.
//
//     cc -I. -pthread examples/01_hello.c -o hello && ./hello
//
// Expected output:
// hello
// and good bye, 20 ms later
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <stdio.h>

typedef struct {
    volt_frame frame;
    volt_time start;
} hello;

static volt_poll hello_run(volt_cx *cx, void *arg) {
    hello *h = (hello *)arg;
    VOLT_BEGIN(cx, h);
    h->start = volt_now();
    printf("hello\n");
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(20)));
    if (volt_now() - h->start < VOLT_MS(20)) VOLT_RETURN(-1); // a sleep is never early
    printf("and good bye, 20 ms later\n");
    VOLT_END(0);
}

int main(void) {
    hello h = { .start = 0 };
    return volt_run(NULL, hello_run, &h) < 0;
}
