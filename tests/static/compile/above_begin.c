// SPDX-License-Identifier: MIT OR 0BSD
// Locals above VOLT_BEGIN: tests/static/above_begin.sh must report the lines with `reported`, and no
// others. `make check` compares them, and compiles this file.
#include "volt.h"

typedef struct state {
    volt_frame frame;
    int n, rc;
} state;
typedef struct wide {
    volt_frame frame;
    state inner;
} wide;
int add(int a, int b);
int add(int a, int b) { return a + b; }

static volt_poll number(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    int total = 0; // reported
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    total += s->n;
    VOLT_END(total);
}

static volt_poll without_a_value(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    int rc; // reported
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(rc, volt_yield(cx));
    VOLT_END(rc);
}

static volt_poll pointer_beside_the_state(volt_cx *cx, void *arg) {
    wide *w = (wide *)arg;
    const state *s = &w->inner; // reported
    const state *const t = &w->inner;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(s->n + t->n);
}

static volt_poll several_of_one_type(volt_cx *cx, state *s) {
    const int a = add(1, 2), *p = &a; // reported
    unsigned long long b = 3, // reported
        c = 4;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(a + *p + (int)(b + c));
}

static volt_poll arrays_and_structs(volt_cx *cx, state *s) {
    int list[] = { 1, 2, 3 };              // reported
    struct { int x, y; } point = { 1, 2 }; // reported
    state copy = *s;                       // reported
    const int table[2] = { 4, 5 };
    const struct { int x; } fixed = { 6 };
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(list[0] + point.x + copy.n + table[0] + fixed.x);
}

static volt_poll pointer_to_a_function(volt_cx *cx, state *s) {
    int (*fn)(int, int) = add; // reported
    int (*const fixed)(int, int) = add;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(fn(1, 2) + fixed(1, 2));
}

static volt_poll behind_a_branch(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    if (s->n > 3) {
        int scratch = s->n; // a block of its own ends above VOLT_BEGIN
        s->n = scratch - 1;
    }
    for (int i = 0; i < 2; i++) s->n += i;
    s->rc = add(s->n, 1);
    (void)arg;
    short last = 1; // reported
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(last);
}

static volt_poll constants(volt_cx *cx, void *arg) {
    static int calls;
    enum { FEW = 3 };
    typedef int number_of;
    state *const s = (state *)arg;
    const number_of few = FEW, more = few + 1;
    VOLT_BEGIN(cx, s);
    calls++;
    number_of below;
    VOLT_AWAIT(s->rc, volt_yield(cx));
    below = s->rc; // scratch between two awaits
    VOLT_END(few + more + below + calls);
}

#define BODY(name_, what_)                                                                         \
    static volt_poll name_(volt_cx *cx, void *arg) {                                               \
        state *s = (state *)arg;                                                                   \
        int what_ = s->n; /* reported */                                                           \
        VOLT_BEGIN(cx, s);                                                                         \
        VOLT_AWAIT(volt_yield(cx));                                                                \
        VOLT_END(what_);                                                                           \
    }
BODY(made_by_a_macro, n)

#define START(s_) VOLT_BEGIN(cx, s_)
static volt_poll begun_by_a_macro(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    int late = 0; // reported
    START(s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(late);
}
