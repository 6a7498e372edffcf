// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: what is awaited cannot wait.
// gcc: invalid initializer
// clang: initializing 'const volt_poll' .* incompatible type 'int'
// g++: conversion from 'int' to non-scalar type 'const volt_poll'
// clang++: no viable conversion from 'int' to 'const volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_join(cx, &c->handle));
#else
    VOLT_AWAIT(c->rc, volt_try_join(&c->handle, &c->n));
#endif
    VOLT_END(0);
}
