// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a poll stands as a condition.
// gcc: used struct type value where scalar is required
// clang: requires expression of scalar type
// g++: could not convert .* from 'volt_poll' to 'bool'
// clang++: not contextually convertible to 'bool'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
    while (c->n > 0) {
        use(c->buf);
        VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
    }
#else
    while (volt_read(cx, c->fd, c->buf, sizeof c->buf)) {
        use(c->buf);
    }
#endif
    VOLT_END(0);
}
