// SPDX-License-Identifier: MIT OR 0BSD
#define VOLT_IMPLEMENTATION
#include <volt.h>
