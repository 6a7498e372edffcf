// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the arm is given by value.
// gcc: incompatible type for argument 2 of 'volt__arm_poll_begin'
// clang: passing 'volt_arm' .* incompatible type 'volt_arm \*'
// g++: cannot convert 'volt_arm' to 'volt_arm\*'
// clang++: no matching function for call to 'volt__arm_poll_begin'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#endif
    VOLT_END(0);
}
