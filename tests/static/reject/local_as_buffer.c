// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a wait is given an initialised local as its buffer. As C, clang warns of values only, not
// of addresses; debug builds find it at run time.
// gcc: switch jumps over variable initialization
// clang: silent
// g++: jump to case label
// clang++: cannot jump from switch statement to this case label
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->i = compute(c->fd);
    VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, &c->i, sizeof c->i));
#else
    int x = compute(c->fd);
    VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, &x, sizeof x));
#endif
    VOLT_END(0);
}
