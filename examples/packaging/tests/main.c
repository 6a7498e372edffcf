// SPDX-License-Identifier: MIT OR 0BSD
// A program that awaits, for the checks of the packages. The implementation is another file of it.
#include <stdio.h>
#include <volt.h>

typedef struct {
    volt_frame frame;
    int left;
} countdown;

static volt_poll countdown_run(volt_cx *cx, void *arg) {
    countdown *c = (countdown *)arg;
    VOLT_BEGIN(cx, c);
    for (c->left = 3; c->left > 0; c->left--) {
        printf("%d\n", c->left);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    VOLT_END(0);
}

int main(void) {
    static countdown c;
    return volt_run(NULL, countdown_run, &c);
}
