// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the function is called instead of spawned.
// gcc: incompatible type for argument 3 of 'volt_spawn_at'
// clang: passing 'volt_poll' .* incompatible type 'volt_fn
// g++: no matching function for call to 'volt__spawn_cxx
// clang++: no matching function for call to 'volt__spawn_cxx'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_SPAWN(cx, NULL, run, *c);
#else
    c->rc = VOLT_SPAWN(cx, NULL, run(cx, c), *c);
#endif
    VOLT_END(0);
}
