// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an array of variable length in the scope of an await.
// gcc: switch jumps into scope of identifier with variably modified type
// clang: cannot jump from switch statement to this case label
// g++: jump to case label
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_yield(cx));
    use(c->buf);
#else
    char a[c->fd];
    VOLT_AWAIT(volt_yield(cx));
    use(a);
#endif
    VOLT_END(0);
}
