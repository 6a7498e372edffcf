// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: duration and timer of volt_within are exchanged.
// gcc: argument 2 of 'volt__within_begin' makes pointer from integer
// clang: incompatible integer to pointer conversion
// g++: invalid conversion from 'volt_time' .* to 'volt_timer\*'
// clang++: no matching function for call to 'volt__within_begin'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n,
               volt_within(cx, &c->timer, VOLT_S(1), volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#else
    VOLT_AWAIT(c->n,
               volt_within(cx, VOLT_S(1), &c->timer, volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#endif
    VOLT_END(0);
}
