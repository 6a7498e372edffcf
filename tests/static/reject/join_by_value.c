// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the handle to join is given by value.
// gcc: incompatible type for argument 2 of 'volt_join'
// clang: passing 'volt_handle' .* incompatible type 'volt_handle \*'
// g++: cannot convert 'volt_handle' to 'volt_handle\*'
// clang++: no matching function for call to 'volt_join'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_join(cx, &c->handle));
#else
    VOLT_AWAIT(c->n, volt_join(cx, c->handle));
#endif
    VOLT_END(0);
}
