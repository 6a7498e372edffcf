// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an await in a `switch` of one's own. Seen by the width of the labels, which is that of a
// plain int with NDEBUG: there it compiles.
// gcc: NO_AWAIT_IN_SWITCH
// clang: overflow converting case value to switch condition type
// clang++: case value .* cannot be narrowed to type 'int'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->rc == 1) VOLT_AWAIT(volt_yield(cx));
#else
    switch (c->rc) {
    case 1: VOLT_AWAIT(volt_yield(cx)); break;
    default: break;
    }
#endif
    VOLT_END(0);
}
