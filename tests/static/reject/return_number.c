// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an error returned as a number.
// gcc: incompatible types when returning type 'int'
// clang: returning 'int' .* incompatible result type 'volt_poll'
// g++: could not convert .* from 'int' to 'volt_poll'
// clang++: no viable conversion from returned value of type 'int'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    if (c->fd < 0) VOLT_RETURN(-5);
#else
    if (c->fd < 0) return -5;
#endif
    VOLT_END(0);
}
