// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a poll is compared as if it were its result.
// gcc: invalid operands to binary <
// clang: invalid operands to binary expression
// g++: no match for 'operator<'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
    if (c->n < 0) VOLT_RETURN(-1);
#else
    if (volt_read(cx, c->fd, c->buf, sizeof c->buf) < 0) VOLT_RETURN(-1);
#endif
    VOLT_END(0);
}
