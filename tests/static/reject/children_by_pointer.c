// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: VOLT_EACH of a pointer, whose length it cannot know.
// gcc: does not compute the number of array elements
// clang: will return the size of the pointer
#include "reject.h"

static conn kids[3];
volt_poll misuse(volt_cx *cx, conn *c) {
    conn *const some = kids;
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(run, kids)));
    use(some);
#else
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(run, some)));
#endif
    VOLT_END(0);
}
