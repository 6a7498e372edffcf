// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: a libc header before VOLT_IMPLEMENTATION, without _GNU_SOURCE: it has already hidden
// declarations that the implementation needs. g++ and clang++ always define it.
// gcc: define VOLT_IMPLEMENTATION before the first #include
// g++: silent
// clang: define VOLT_IMPLEMENTATION before the first #include
// clang++: silent
#ifndef FIXED
#    include <stdio.h>
#endif
#define VOLT_IMPLEMENTATION
#include "../../../volt.h"
#include <stdio.h>
