// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a wait that is not awaited.
// gcc: ignoring return value of 'volt_sleep'
// clang: ignoring return value
// g++: ignoring returned value of type 'volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
#else
    volt_sleep(cx, VOLT_MS(1));
#endif
    VOLT_END(0);
}
