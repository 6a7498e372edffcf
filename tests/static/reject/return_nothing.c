// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a task returns without a result.
// gcc: 'return' with no value
// clang: non-void function 'misuse' should return a value
// g++: return-statement with no value
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_RETURN(0);
#else
    if (c->fd < 0) return;
#endif
    VOLT_END(0);
}
