// SPDX-License-Identifier: MIT OR 0BSD
// Waits on the objects of >>sync and >>chan, by threads without a worker, step by step: what a task
// does in its polls, without the poll. A scenario sets up who waits before its threads begin, and a
// wait may be left at any moment, also after it was let through, as that of a cancelled task is.
// Include it after volt.h.
#ifndef VMC_WAITS_H
#define VMC_WAITS_H

typedef struct waiter { // in statics: who lets it through may come to its parker after it has left
    volt__blocked b;
    volt__wait a;
} waiter;
static volt__wait *wait_of(waiter *w) { return &w->a; }

// A result, or VOLT__PENDING.
static __attribute__((unused)) int64_t wait_begin(waiter *w) {
    volt__blocked_init(&w->b);
    return volt__wait_step(&w->a, &w->b.node, 0);
}
static __attribute__((unused)) int64_t wait_end(waiter *w) {
    int64_t value;
    do {
        VMC_ASSERT(volt__parker_wait(&w->b.parker, VOLT_NEVER) == 0);
        w->b.parker.is_set = 0;
        value = volt__wait_step(&w->a, &w->b.node, 0);
    } while (value == VOLT__PENDING);
    return value;
}
static __attribute__((unused)) int64_t wait_leave(waiter *w) {
    return volt__wait_step(&w->a, &w->b.node, 1);
}

#endif // VMC_WAITS_H
