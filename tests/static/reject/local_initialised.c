// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an initialised local that is used behind an await.
// gcc: switch jumps over variable initialization
// clang: variable 'x' may be uninitialized when used here
// g++: jump to case label
// clang++: cannot jump from switch statement to this case label
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->i = compute(c->fd);
    VOLT_AWAIT(volt_yield(cx));
    c->rc = c->i;
#else
    int x = compute(c->fd);
    VOLT_AWAIT(volt_yield(cx));
    c->rc = x;
#endif
    VOLT_END(0);
}
