// SPDX-License-Identifier: MIT OR 0BSD
// Misuse: an arm is awaited without a select.
// gcc: invalid initializer
// clang: initializing 'const volt_poll' .* incompatible type 'volt__arm_status'
// g++: conversion from 'volt__arm_status' to non-scalar type 'const volt_poll'
// clang++: no viable conversion from 'volt__arm_status' to 'const volt_poll'
#include "reject.h"

volt_poll misuse(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
#ifdef FIXED
    VOLT_AWAIT(c->rc, VOLT_SELECT(VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf))));
#else
    VOLT_AWAIT(c->rc, VOLT_ARM(&c->in, volt_read(cx, c->fd, c->buf, sizeof c->buf)));
#endif
    VOLT_END(0);
}
