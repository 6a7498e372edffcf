// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_BEGIN without VOLT_END.
// gcc: expected declaration or statement at end of input
// clang: expected '}'
// g++: expected '}' at end of input
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_yield(cx));
#ifdef FIXED
    VOLT_END(0);
#endif
}
