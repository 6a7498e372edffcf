// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the destination of an await cannot be written.
// gcc: assignment of read-only variable 'n'
// clang: cannot assign to variable 'n' with const-qualified type
// g++: assignment of read-only location 'n'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    static const int64_t n = 0;
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
    use(&n);
#else
    VOLT_AWAIT(n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
#endif
    VOLT_END(0);
}
