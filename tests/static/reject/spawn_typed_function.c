// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a spawned function takes its state as `void *`.
// gcc: argument 3 of 'volt_spawn_at' from incompatible pointer type
// clang: incompatible function pointer types passing
// g++: no matching function for call to 'volt__spawn_cxx
// clang++: no matching function for call to 'volt__spawn_cxx'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_SPAWN(cx, NULL, run, *c);
#else
    c->rc = VOLT_SPAWN(cx, NULL, child, *c);
#endif
    VOLT_END(0);
}
