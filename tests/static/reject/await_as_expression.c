// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an await is a statement, its destination comes first.
// gcc: expected expression before 'do'
// clang: expected expression
// g++: expected primary-expression before 'do'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
#else
    c->n = VOLT_AWAIT(volt_read(cx, c->fd, c->buf, sizeof c->buf));
#endif
    VOLT_END(0);
}
