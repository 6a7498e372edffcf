// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a child is given the state of another.
// gcc: argument 2 of 'child' from incompatible pointer type
// clang: incompatible pointer types passing
// g++: cannot convert .* to 'conn\*'
// clang++: no matching function for call to 'child'
#include "reject.h"

static struct {
    volt_frame frame;
    conn inner;
} o;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, child(cx, &o.inner));
#else
    VOLT_AWAIT(c->n, child(cx, &o));
#endif
    VOLT_END(0);
}
