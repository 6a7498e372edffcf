// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the result of the spawn from outside is ignored.
// gcc: ignoring return value of 'volt_rt_spawn_at'
// clang: ignoring return value
// g++: ignoring return value of 'int volt__spawn_cxx
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_RT_SPAWN(volt_cx_rt(cx), NULL, run, *c);
#else
    VOLT_RT_SPAWN(volt_cx_rt(cx), NULL, run, *c);
#endif
    VOLT_END(0);
}
