// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: destination and poll of an await are exchanged.
// gcc: invalid initializer
// clang: initializing 'const volt_poll' .* incompatible type
// g++: conversion from 'int64_t' .* to non-scalar type 'const volt_poll'
// clang++: no viable conversion from 'int64_t' .* to 'const volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->buf, sizeof c->buf));
#else
    VOLT_AWAIT(volt_read(cx, c->fd, c->buf, sizeof c->buf), c->n);
#endif
    VOLT_END(0);
}
