// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the result is returned without VOLT_RETURN.
// gcc: called object.* is not a function
// clang: called object type 'char' is not a function
// g++: 'volt_ready' cannot be used as a function
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_RETURN(-5);
#else
    if (c->fd < 0) return volt_ready(-5);
#endif
    VOLT_END(0);
}
