// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: polls are joined as if they were an array of children.
// gcc: incompatible type for argument 2 of 'volt_join_all'
// clang: too few arguments to function call
// g++: cannot convert 'volt_poll' to 'volt_poll \(\*\)
// clang++: no matching function for call to 'volt_join_all'
#include "reject.h"

static conn kids[3];
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(run, kids)));
#else
    VOLT_AWAIT(volt_join_all(cx, volt_read(cx, c->fd, c->buf, sizeof c->buf), volt_yield(cx)));
#endif
    VOLT_END(0);
}
