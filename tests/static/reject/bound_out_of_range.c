// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a bound that the implementation cannot keep.
// gcc: VOLT_EVENTS: one array of events
// clang: VOLT_EVENTS: one array of events
#ifndef FIXED
#    define VOLT_EVENTS 0
#endif
#define VOLT_IMPLEMENTATION
#include "../../../volt.h"
