// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a select that is not awaited.
// gcc: ignoring return value of 'volt__arms_end'
// clang: ignoring return value
// g++: ignoring returned value of type 'volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf)),
                           VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1)))));
#else
    VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf)),
                VOLT_ARM(&c->late, volt_sleep(cx, VOLT_MS(1))));
#endif
    VOLT_END(0);
}
