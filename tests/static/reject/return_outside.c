// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_RETURN in a plain function.
// gcc: 'volt__cx' undeclared
// clang: undeclared identifier 'volt__cx'
// g++: 'volt__cx' was not declared
#include "reject.h"

int plain(void);
int plain(void) {
#ifdef FIXED
    return -5;
#else
    VOLT_RETURN(-5);
#endif
}
