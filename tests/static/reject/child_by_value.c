// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the state of a child is given by value.
// gcc: incompatible type for argument 2 of 'child'
// clang: passing 'conn' .* incompatible type 'conn \*'
// g++: cannot convert 'conn' to 'conn\*'
// clang++: no matching function for call to 'child'
#include "reject.h"

static conn kid;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, child(cx, &kid));
#else
    VOLT_AWAIT(c->n, child(cx, kid));
#endif
    VOLT_END(0);
}
