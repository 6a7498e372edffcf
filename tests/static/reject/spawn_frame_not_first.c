// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a struct is spawned whose frame is not the first member.
// gcc: size of unnamed array is negative
// g++: `volt_frame frame` must be the first member
// clang: array size is negative
// clang++: `volt_frame frame` must be the first member
#include "reject.h"

typedef struct {
#ifdef FIXED
    volt_frame frame;
    int fd;
#else
    int fd;
    volt_frame frame;
#endif
} other;
static other o;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
    c->rc = VOLT_SPAWN(cx, NULL, run, o);
    VOLT_END(c->rc);
}
