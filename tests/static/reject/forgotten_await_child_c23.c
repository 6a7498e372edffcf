// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an async function of one's own that is not awaited.
// From C23 on, gcc sees it as well.
// c: c2x
// gcc: ignoring return value of type 'volt_poll'
// clang: ignoring return value
// g++: ignoring returned value of type 'volt_poll'
#include "reject.h"

static conn kid;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(child(cx, &kid));
#else
    child(cx, &kid);
#endif
    VOLT_END(0);
}
