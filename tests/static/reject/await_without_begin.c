// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an await in a function without VOLT_BEGIN.
// gcc: 'volt__frame' undeclared
// clang: undeclared identifier 'volt__frame'
// g++: 'volt__frame' was not declared
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
#ifdef FIXED
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
#else
    VOLT_AWAIT(volt_yield(cx));
    return volt_ready(c->n);
#endif
}
