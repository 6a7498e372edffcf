// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the result of the spawn into a group is ignored.
// gcc: ignoring return value of 'volt__group_spawn'
// clang: ignoring return value
// g++: ignoring return value of 'int volt__spawn_cxx
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_GROUP_SPAWN(cx, &c->group, run, *c);
#else
    VOLT_GROUP_SPAWN(cx, &c->group, run, *c);
#endif
    VOLT_END(0);
}
