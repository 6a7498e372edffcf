// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the arguments of VOLT_BEGIN are exchanged.
// gcc: 'volt_cx'.* has no member named 'frame'
// clang: no member named 'frame' in 'volt_cx'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
#ifdef FIXED
    VOLT_BEGIN(cx, c);
#else
    VOLT_BEGIN(c, cx);
#endif
    VOLT_END(0);
}
