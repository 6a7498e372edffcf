// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: the frame is not the first member of the state struct.
// gcc: `volt_frame frame` must be the first member
// clang: `volt_frame frame` must be the first member
#include "reject.h"

typedef struct {
#ifdef FIXED
    volt_frame frame;
    int fd;
#else
    int fd;
    volt_frame frame;
#endif
} other;
volt_poll other_run(volt_cx *cx, other *o);
volt_poll other_run(volt_cx *cx, other *o) {
    VOLT_BEGIN(cx, o);
    VOLT_END(o->fd);
}
