// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an await inside of an arm.
// gcc: expected expression before 'do'
// clang: expected expression
// g++: expected primary-expression before 'do'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(
                          &c->in, VOLT_AWAIT(volt_read(cx, c->fd, c->buf, sizeof c->buf)))));
#endif
    VOLT_END(0);
}
