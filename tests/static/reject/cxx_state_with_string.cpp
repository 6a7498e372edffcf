// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a state that cannot be copied byte by byte.
// gcc: task state: a plain struct; reach C\+\+ objects by pointer
// clang: task state: a plain struct; reach C\+\+ objects by pointer
#include "reject.h"
#include <string>

struct named {
    volt_frame frame;
#ifdef FIXED
    const std::string *name;
#else
    std::string name;
#endif
};
int start(volt_cx *cx);
int start(volt_cx *cx) {
    named n{};
    return VOLT_SPAWN(cx, nullptr, run, n);
}
