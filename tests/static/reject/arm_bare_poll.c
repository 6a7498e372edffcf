// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a select over polls instead of arms.
// gcc: incompatible type for argument 2 of 'volt__arms_next_pass'
// clang: passing 'volt_poll' .* incompatible type 'volt__arm_status'
// g++: could not convert .* from 'volt_poll' to 'volt__arm_status'
// clang++: no matching function for call to 'volt__arms_next_pass'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf)),
                                  VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1)))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(volt_read(cx, c->fd, c->buf, sizeof c->buf),
                                  volt_sleep(cx, VOLT_MS(1))));
#endif
    VOLT_END(0);
}
