// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the state to spawn into a group is given by pointer.
// gcc: 'c' is a pointer
// clang: member reference type 'conn \*' .* is a pointer
// g++: request for member 'frame' in .* of pointer type
// clang++: offsetof requires struct, union, or class type
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_GROUP_SPAWN(cx, &c->group, run, *c);
#else
    c->rc = VOLT_GROUP_SPAWN(cx, &c->group, run, c);
#endif
    VOLT_END(0);
}
