// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: what is awaited is a comparison.
// gcc: invalid operands to binary >
// clang: invalid operands to binary expression
// g++: no match for 'operator>'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
#else
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf) > 0);
#endif
    VOLT_END(0);
}
