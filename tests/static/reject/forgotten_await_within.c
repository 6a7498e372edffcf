// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a wait with a time limit that is not awaited.
// gcc: ignoring return value of 'volt__within_end'
// clang: ignoring return value
// g++: ignoring returned value of type 'volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n,
               volt_within(cx, &c->timer, VOLT_S(1), volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#else
    volt_within(cx, &c->timer, VOLT_S(1), volt_read(cx, c->fd, c->buf, sizeof c->buf));
#endif
    VOLT_END(0);
}
