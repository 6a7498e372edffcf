// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a state with virtual functions.
// gcc: task state: a plain struct; reach C\+\+ objects by pointer
// clang: task state: a plain struct; reach C\+\+ objects by pointer
#include "reject.h"

struct state {
    volt_frame frame;
#ifndef FIXED
    virtual void f() {}
#endif
};
int start(volt_cx *cx);
int start(volt_cx *cx) {
    state s{};
    return VOLT_SPAWN(cx, nullptr, run, s);
}
