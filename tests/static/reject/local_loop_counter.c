// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a loop counts its awaits in a local.
// gcc: switch jumps over variable initialization
// clang: variable 'i' may be uninitialized when used here
// g++: jump to case label
// clang++: cannot jump from switch statement to this case label
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    for (c->i = 0; c->i < c->fd; c->i++) VOLT_AWAIT(volt_yield(cx));
#else
    for (int i = 0; i < c->fd; i++) VOLT_AWAIT(volt_yield(cx));
#endif
    VOLT_END(0);
}
