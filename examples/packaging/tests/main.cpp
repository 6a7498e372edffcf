// SPDX-License-Identifier: MIT OR 0BSD
#include "main.c"
