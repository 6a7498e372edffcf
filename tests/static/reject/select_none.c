// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a select over nothing.
// gcc: expected expression before '\)'
// clang: expected expression
// g++: expected primary-expression before '\)'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf)),
                                  VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1)))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT());
#endif
    VOLT_END(0);
}
