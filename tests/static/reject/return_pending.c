// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a task says itself that it waits.
// gcc: called object.* is not a function
// clang: called object type 'char' is not a function
// g++: 'volt_pending' cannot be used as a function
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_AWAIT(volt_yield(cx));
#else
    if (c->fd < 0) return volt_pending();
#endif
    VOLT_END(0);
}
