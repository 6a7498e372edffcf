// SPDX-License-Identifier: MIT OR 0BSD
// Waits on the objects of >>sema, >>waitword and >>chan, by threads without a worker, step by step:
// the operations of a task's polls, without the poll. A scenario sets up the waits before its
// threads begin, and a wait may be abandoned at any moment, also after it was granted, as that of a
// cancelled task is. Include it after volt.h.
#ifndef VMC_WAITS_H
#define VMC_WAITS_H

typedef struct waiter {
    volt__thread_waiter b;
    volt__wait_op a;
} waiter;
static waiter w1, w2; // static: a granting thread may unpark its parker after it has left

static __attribute__((unused)) void wait_begin(waiter *w) {
    volt__thread_waiter_init(&w->b);
    VMC_ASSERT(volt__wait_op_step(&w->a, &w->b.node, 0) == VOLT__PENDING);
}
static __attribute__((unused)) int64_t wait_end(waiter *w) {
    int64_t value;
    do {
        VMC_ASSERT(volt__parker_wait(&w->b.parker, VOLT_NEVER) == 0);
        w->b.parker.is_set = 0;
        value = volt__wait_op_step(&w->a, &w->b.node, 0);
    } while (value == VOLT__PENDING);
    return value;
}
static __attribute__((unused)) void wait_leave(void *waiter_) {
    waiter *w = waiter_;
    VMC_ASSERT(volt__wait_op_step(&w->a, &w->b.node, 1) == -ECANCELED);
}

#endif // VMC_WAITS_H
