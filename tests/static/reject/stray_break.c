// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a `break` that leaves no loop but the task.
// gcc: `break` outside a loop
// clang: `break` outside a loop
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_RETURN(0);
    VOLT_AWAIT(volt_yield(cx));
#else
    if (c->fd < 0) break;
    VOLT_AWAIT(volt_yield(cx));
#endif
    VOLT_END(0);
}
