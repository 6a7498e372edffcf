// SPDX-License-Identifier: MIT OR 0BSD
// Replaces single calls of VOLT_SYS: with HOOK_read defined as `~, f`, a call of read by VOLT_SYS
// is one of f, a function or a macro with arguments. All others stay. Include it before volt.h.
#ifndef VOLT_TEST_HOOK_H
#define VOLT_TEST_HOOK_H

#define HOOK_SECOND(a_, b_, ...) b_
#define HOOK_PICK(...) HOOK_SECOND(__VA_ARGS__)
#define VOLT_SYS(name_, ...) HOOK_PICK(HOOK_##name_, name_, ~)(__VA_ARGS__)

#endif
