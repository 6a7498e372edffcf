// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the handle stands in the place of the options.
// gcc: passing argument 2 of 'volt_spawn_with' from incompatible pointer type
// clang: incompatible pointer types passing 'volt_handle \*' .* to parameter of type 'const volt_spawn_options \*'
// g++: invalid 'static_cast' from type 'volt_spawn_options\*'
// clang++: static_cast from 'volt_spawn_options \*' to 'volt_handle \*'.* is not allowed
#include <string.h>
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
    volt_spawn_options options;
    memset(&options, 0, sizeof options);
#ifdef FIXED
    c->rc = VOLT_SPAWN_WITH(cx, &options, &c->handle, run, *c);
#else
    c->rc = VOLT_SPAWN_WITH(cx, &c->handle, &options, run, *c);
#endif
    VOLT_END(0);
}
