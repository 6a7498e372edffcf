// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the poll of one's own async function is stored in a number.
// gcc: incompatible types when assigning to type 'int64_t'
// clang: assigning to 'int64_t' .* from incompatible type 'volt_poll'
// g++: cannot convert 'volt_poll' to 'int64_t'
#include "reject.h"

static conn kid;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, child(cx, &kid));
#else
    c->n = child(cx, &kid);
#endif
    VOLT_END(0);
}
