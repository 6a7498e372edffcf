// SPDX-License-Identifier: MIT OR 0BSD
// The implementation of volt.h as a translation unit of its own, for programs whose files all
// include the header alone. It is compiled with the options of the program, above all with or
// without NDEBUG as the program is.
#define VOLT_IMPLEMENTATION
#include "volt.h"
