// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a `continue` outside of a loop.
// gcc: continue statement not within a loop
// clang: 'continue' statement not in loop
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_RETURN(0);
    VOLT_AWAIT(volt_yield(cx));
#else
    if (c->fd < 0) continue;
    VOLT_AWAIT(volt_yield(cx));
#endif
    VOLT_END(0);
}
