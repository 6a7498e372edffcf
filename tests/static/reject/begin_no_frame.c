// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a state struct without a frame.
// gcc: 'other' has no member named 'frame'
// clang: no member named 'frame'
// g++: 'struct other' has no member named 'frame'
#include "reject.h"

typedef struct {
#ifdef FIXED
    volt_frame frame;
#endif
    int fd;
} other;
volt_poll other_run(volt_cx *cx, other *o);
volt_poll other_run(volt_cx *cx, other *o) {
    VOLT_BEGIN(cx, o);
    VOLT_END(o->fd);
}
