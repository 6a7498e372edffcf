// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a local with a destructor in the scope of an await.
// g++: jump to case label
// clang++: cannot jump from switch statement to this case label
#include "reject.h"

#include <string>

static std::string name;
volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(volt_yield(cx));
    std::string().swap(name);
    use(name.data());
#else
    std::string s;
    VOLT_AWAIT(volt_yield(cx));
    use(s.data());
#endif
    VOLT_END(0);
}
