// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_BEGIN of a state that is still a `void *`.
// gcc: request for member 'frame' in something not a structure
// clang: member reference base type 'void' is not a structure
// g++: 'void\*' is not a pointer-to-object type
// clang++: offsetof requires struct, union, or class type
#include "reject.h"

volt_poll run(volt_cx *cx, void *state) {
#ifdef FIXED
    conn *c = (conn *)state;
    VOLT_BEGIN(cx, c);
#else
    VOLT_BEGIN(cx, state);
#endif
    VOLT_END(0);
}
