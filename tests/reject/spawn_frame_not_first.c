// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a struct is spawned whose frame is not the first member.
// In C it is VOLT_BEGIN of the right function that sees it, not the spawn.
// gcc: silent
// g++: `volt_frame frame` must be the first member
// clang: silent
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
