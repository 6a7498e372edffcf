// SPDX-License-Identifier: MIT OR 0BSD
// Cancels an operation at its k-th poll, for k = 1, 2, ... until the operation completes before its
// k-th poll. So it is cancelled once at each of its awaits. Include it behind volt.h:
//
//     cancel_point at; // in the state of the test's task, zeroed
//     ...
//     while (cancel_next(&s->at)) {
//         VOLT_AWAIT(s->rc, CANCEL_AT(cx, &s->at, volt_NAME_get(cx, &s->x)));
//         if (cancel_came(&s->at)) ... // s->rc is -ECANCELED, or a result that could not be undone
//         else ...                     // s->rc is the result; the loop ends
//     }
//
// The cancellation is that of a token around the operation alone: the task goes on, and can use the
// adapter again. It is seen at the beginning of the poll. The event that has caused the poll may be
// there, and must not be lost.
#ifndef TEST_CANCEL_H
#define TEST_CANCEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The most rounds, and polls of an operation behind its cancellation. More of them are an operation
// that never completes, or a loop that ignores -ECANCELED.
enum { CANCEL_ROUNDS = 10000, CANCEL_POLLS = 1000 };

typedef struct cancel_point {
    volt_token token;
    volt_token_link link;
    unsigned k, n_polls; // the operation is cancelled at its k-th poll; n_polls: in this round
} cancel_point;

static inline void cancel__check(const cancel_point *p, int is_right, const char *why) {
    if (is_right) return;
    printf("cancelled at poll %u: %s, after %u polls\n", p->k, why, p->n_polls);
    fflush(stdout);
    abort();
}

// Returns 1 if the operation was cancelled in this round: it has lasted to its k-th poll.
static inline int cancel_came(const cancel_point *p) { return p->n_polls >= p->k; }

// Prepares the next round. Returns 0, and zeroes *p, if the last round was not cancelled.
static inline int cancel_next(cancel_point *p) {
    unsigned k = p->k == 0 || cancel_came(p) ? p->k + 1 : 0;
    cancel__check(p, p->k == 0 || p->n_polls > 0, "the operation was not polled");
    cancel__check(p, k <= CANCEL_ROUNDS, "the operation never completes");
    memset(p, 0, sizeof *p);
    p->k = k;
    return k > 0;
}

// Part of CANCEL_AT: counts a poll.
static inline void cancel__count(cancel_point *p) {
    p->n_polls++;
    cancel__check(p, p->n_polls < p->k + CANCEL_POLLS, "the operation does not end");
    if (p->n_polls == p->k) volt_token_cancel(&p->token);
}

// The operation as a poll, which is cancelled at its k-th. For VOLT_AWAIT or VOLT_ARM.
#define CANCEL_AT(cx_, p_, inner_)                                                                 \
    (cancel__count(p_), volt_with_token((cx_), &(p_)->link, &(p_)->token, (inner_)))
#endif
