// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a struct is spawned whose alignment a task's block does not have.
// gcc: size of unnamed array is negative
// g++: task state: aligned too far
// clang: array size is negative
// clang++: task state: aligned too far
#include "reject.h"

typedef struct {
    volt_frame frame;
#ifndef FIXED
    __attribute__((aligned(128)))
#endif
    char page[256];
} other;
static other o;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
    c->rc = VOLT_GROUP_SPAWN(cx, &c->group, run, o);
    VOLT_END(c->rc);
}
