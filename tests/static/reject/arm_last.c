// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: arm and poll are exchanged.
// gcc: incompatible type for argument 2 of 'volt__arm_poll_begin'
// clang: passing 'volt_poll' .* incompatible type 'volt_arm \*'
// g++: cannot convert 'volt_poll' to 'volt_arm\*'
// clang++: no matching function for call to 'volt__arm_poll_begin'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(volt_read(cx, c->fd, c->buf, sizeof c->buf), &c->in)));
#endif
    VOLT_END(0);
}
