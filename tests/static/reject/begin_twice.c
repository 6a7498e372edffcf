// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_BEGIN twice in a function.
// gcc: expected declaration or statement at end of input
// clang: expected '}'
// g++: expected '}' at end of input
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifndef FIXED
    VOLT_BEGIN(cx, c);
#endif
    VOLT_END(0);
}
