// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a struct without a frame is spawned.
// gcc: 'struct plain' has no member named 'frame'
// clang: no member named 'frame' in '(struct )?plain'
#include "reject.h"

struct plain {
    int x;
};
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    c->rc = VOLT_SPAWN(cx, NULL, run, *c);
#else
    struct plain s;
    s.x = 1;
    c->rc = VOLT_SPAWN(cx, NULL, run, s);
#endif
    VOLT_END(0);
}
