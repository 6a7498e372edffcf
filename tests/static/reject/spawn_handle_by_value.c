// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the handle is given by value.
// gcc: incompatible type for argument 2 of 'volt_spawn_at'
// clang: passing 'volt_handle' .* incompatible type 'volt_handle \*'
// g++: invalid 'static_cast' from type 'volt_handle'
// clang++: cannot cast from type 'volt_handle' to pointer type
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_SPAWN(cx, &c->handle, run, *c);
#else
    c->rc = VOLT_SPAWN(cx, c->handle, run, *c);
#endif
    VOLT_END(0);
}
