// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a number is spawned as state.
// gcc: request for member 'frame' in something not a structure
// clang: member reference base type 'int' is not a structure
// g++: request for member 'frame' in .* of non-class type 'int'
// clang++: offsetof requires struct, union, or class type
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_SPAWN(cx, NULL, run, *c);
#else
    c->rc = VOLT_SPAWN(cx, NULL, run, c->fd);
#endif
    VOLT_END(0);
}
