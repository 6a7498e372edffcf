// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a timer where an arm is wanted.
// gcc: argument 2 of 'volt__arm_poll_begin' from incompatible pointer type
// clang: incompatible pointer types passing 'volt_timer \*'
// g++: cannot convert 'volt_timer\*' to 'volt_arm\*'
// clang++: no matching function for call to 'volt__arm_poll_begin'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc,
               VOLT_SELECT(VOLT_ARM(&c->timer, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#endif
    VOLT_END(0);
}
