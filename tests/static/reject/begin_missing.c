// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_END without VOLT_BEGIN.
// gcc: 'volt__cx' undeclared
// clang: undeclared identifier 'volt__cx'
// g++: 'volt__cx' was not declared
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
#ifdef FIXED
    VOLT_BEGIN(cx, c);
#endif
    use(c->buf);
    VOLT_END(0);
}
