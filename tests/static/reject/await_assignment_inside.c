// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the result is assigned inside of the await.
// gcc: incompatible types when assigning to type 'int64_t'
// clang: assigning to 'int64_t' .* from incompatible type 'volt_poll'
// g++: cannot convert 'volt_poll' to 'int64_t'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
#else
    VOLT_AWAIT(c->n = volt_read(cx, c->fd, c->buf, sizeof c->buf));
#endif
    VOLT_END(0);
}
