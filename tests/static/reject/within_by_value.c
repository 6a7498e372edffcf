// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the timer of volt_within is given by value.
// gcc: incompatible type for argument 2 of 'volt__within_begin'
// clang: passing 'volt_timer' .* incompatible type 'volt_timer \*'
// g++: cannot convert 'volt_timer' to 'volt_timer\*'
// clang++: no matching function for call to 'volt__within_begin'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n,
               volt_within(cx, &c->timer, VOLT_S(1), volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#else
    VOLT_AWAIT(c->n,
               volt_within(cx, c->timer, VOLT_S(1), volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#endif
    VOLT_END(0);
}
