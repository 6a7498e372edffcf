// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: two awaits on one line.
// gcc: duplicate label .*volt__one_await_to_a_line_
// clang: redefinition of label .*volt__one_await_to_a_line_
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(volt_yield(cx));
#else
    // clang-format off
    VOLT_AWAIT(volt_yield(cx)); VOLT_AWAIT(volt_yield(cx));
    // clang-format on
#endif
    VOLT_END(0);
}
