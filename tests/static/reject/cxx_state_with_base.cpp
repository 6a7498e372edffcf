// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a state that derives from another struct: its layout is not that of C.
// gcc: task state: a plain struct; reach C\+\+ objects by pointer
// clang: task state: a plain struct; reach C\+\+ objects by pointer
#include "reject.h"

struct base {
    volt_frame frame;
};
#ifdef FIXED
struct state {
    volt_frame frame;
    int fd;
};
#else
struct state : base {
    int fd;
};
#endif
int start(volt_cx *cx);
int start(volt_cx *cx) {
    state s{};
    return VOLT_SPAWN(cx, nullptr, run, s);
}
