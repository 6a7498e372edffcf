// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a child of one's own as an arm, without VOLT_ARM, before others. Of all but the last one
// the compiler sees only that a poll is dropped. As C11, gcc knows no such attribute of a type:
// every build finds it at run time.
// gcc: silent
// clang: ignoring return value
// g++: ignoring returned value of type 'volt_poll'
#include "reject.h"

static conn kid;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, child(cx, &kid)),
                                  VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1)))));
#else
    VOLT_AWAIT(c->rc, VOLT_SELECT(child(cx, &kid), VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1)))));
#endif
    VOLT_END(0);
}
