// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an arm without its node.
// gcc: called object.* is not a function
// clang: called object type 'int' is not a function
// g++: cannot be used as a function
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#endif
    VOLT_END(0);
}
