// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a function that cannot wait calls one that may.
// gcc: incompatible types when returning type 'volt_poll'
// clang: returning 'volt_poll' .* incompatible result type 'int'
// g++: cannot convert 'volt_poll' to 'int' in return
// clang++: no viable conversion from returned value of type 'volt_poll'
#include "reject.h"

#ifdef FIXED
volt_poll misuse(volt_cx *cx, conn *c) { return volt_sleep(cx, VOLT_MS(c->fd)); }
#else
int misuse_int(volt_cx *cx, conn *c);
int misuse_int(volt_cx *cx, conn *c) { return volt_sleep(cx, VOLT_MS(c->fd)); }
#endif
