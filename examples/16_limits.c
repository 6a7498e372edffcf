// SPDX-License-Identifier: MIT OR 0BSD
// Limits: a bucket of permits that bounds a rate, and retries with a growing pause.
//   volt_sem            a bucket: each request takes a permit, and does not return it
//   volt_interval       refills the bucket at a steady pace
//   volt_sleep          the pause between two attempts; it grows to a limit, and is randomised, so
//                       that many clients that failed together do not come back together
//
//     cc -I. -pthread examples/16_limits.c -o limits && ./limits
//     cc -DVOLT_TEST_CLOCK=1 -I. -pthread examples/16_limits.c -o limits && ./limits # no real time
//
// Expected output:
// 6 requests: 3 that the bucket held, the others at its pace
// attempt 1 failed, pause up to 10 ms
// attempt 2 failed, pause up to 20 ms
// attempt 3 failed, pause up to 40 ms
// attempt 4 succeeded
// attempt 1 failed, pause up to 10 ms
// attempt 2 failed, pause up to 20 ms
// attempt 3 failed, pause up to 40 ms
// attempt 4 failed, pause up to 80 ms
// attempt 5 failed: given up
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>

// ---- a rate: 100 requests a second, 3 at once at most

enum { BURST = 3 };
typedef struct {
    volt_frame frame;
    volt_interval tick;
    volt_sem *bucket;
    int *n_refilled;
    int64_t n;
} refill;
static volt_poll refill_run(volt_cx *cx, void *arg) {
    refill *r = (refill *)arg;
    VOLT_BEGIN(cx, r);
    volt_interval_init(&r->tick, VOLT_MS(10));
    r->tick.missed = VOLT_MISSED_SKIP; // after a stall one result counts all ticks
    for (;;) {
        VOLT_AWAIT(r->n, volt_interval_next(cx, &r->tick));
        if (r->n < 0) break; // cancelled
        int64_t room = BURST - (int64_t)volt_sem_available(r->bucket);
        if (room > r->n) room = r->n;
        if (room <= 0) continue; // a full bucket stays full
        // before the release, which lets the other task read it
        __atomic_fetch_add(r->n_refilled, (int)room, __ATOMIC_RELAXED);
        volt_sem_release(r->bucket, (uint32_t)room);
    }
    VOLT_END(r->n);
}
typedef struct {
    volt_frame frame;
    volt_sem *bucket;
    int rc;
} request;
static volt_poll request_run(volt_cx *cx, void *arg) {
    request *r = (request *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_sem_acquire(cx, r->bucket, 1));
    if (r->rc < 0) VOLT_RETURN(r->rc);
    // ... the request ...
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_sem bucket;
    volt_group refilling; // its task uses this state, so it ends before the function does
    request current;
    int i, n_refilled, rc;
} rate;
static int rate_start(volt_cx *cx, rate *r) {
    refill f = { .bucket = &r->bucket, .n_refilled = &r->n_refilled };
    volt_sem_release(&r->bucket, BURST); // full
    return VOLT_GROUP_SPAWN(cx, &r->refilling, refill_run, f);
}
static volt_poll rate_run(volt_cx *cx, void *arg) {
    rate *r = (rate *)arg;
    VOLT_BEGIN(cx, r);
    r->rc = rate_start(cx, r);
    if (r->rc < 0) VOLT_RETURN(r->rc);
    for (r->i = 0; r->i < 2 * BURST; r->i++) {
        r->current = (request){ .bucket = &r->bucket };
        VOLT_AWAIT(r->rc, request_run(cx, &r->current));
        if (r->rc < 0) break;
    }
    if (r->i <= BURST + __atomic_load_n(&r->n_refilled, __ATOMIC_RELAXED))
        printf("%d requests: %d that the bucket held, the others at its pace\n", r->i, BURST);
    VOLT_AWAIT(volt_group_close(cx, &r->refilling));
    VOLT_END(r->rc);
}

// ---- retries

// The operation to retry: it is refused n_refusals times.
typedef struct {
    volt_frame frame;
    int *n_refusals;
} attempt;
static volt_poll attempt_run(volt_cx *cx, void *arg) {
    attempt *a = (attempt *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(volt_yield(cx)); // a connection, a request and its answer
    VOLT_END(--*a->n_refusals >= 0 ? -ECONNREFUSED : 0);
}
enum { ATTEMPTS = 5 };
static const volt_time first_pause = VOLT_MS(10), longest_pause = VOLT_MS(100);
typedef struct {
    volt_frame frame;
    attempt current;
    volt_time pause, jittered;
    uint64_t random; // any number
    int n_refusals, n, rc;
} retry;
// Returns a random time of half to all of `pause`.
static volt_time jittered(retry *r, volt_time pause) {
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return pause / 2 + (volt_time)(r->random >> 33) % (pause / 2 + 1);
}
static volt_poll retry_run(volt_cx *cx, void *arg) {
    retry *r = (retry *)arg;
    VOLT_BEGIN(cx, r);
    r->pause = first_pause;
    for (r->n = 1; r->n <= ATTEMPTS; r->n++) {
        r->current = (attempt){ .n_refusals = &r->n_refusals };
        VOLT_AWAIT(r->rc, attempt_run(cx, &r->current));
        // a real program retries only errors that may pass
        if (r->rc >= 0 || r->rc == -ECANCELED) VOLT_RETURN(r->rc);
        if (r->n == ATTEMPTS) break;
        printf("attempt %d failed, pause up to %d ms\n", r->n, (int)(r->pause / VOLT_MS(1)));
        r->jittered = jittered(r, r->pause); // not in the await, whose arguments are polled too
        VOLT_AWAIT(r->rc, volt_sleep(cx, r->jittered));
        if (r->rc < 0) VOLT_RETURN(r->rc); // cancelled
        r->pause = r->pause < longest_pause / 2 ? 2 * r->pause : longest_pause;
    }
    VOLT_END(r->rc);
}

typedef struct {
    volt_frame frame;
    rate limited;
    retry retried;
    int rc;
} root;
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, rate_run(cx, &r->limited));
    if (r->rc < 0) VOLT_RETURN(r->rc);
    r->retried = (retry){ .random = (uint64_t)volt_now(), .n_refusals = 3 };
    VOLT_AWAIT(r->rc, retry_run(cx, &r->retried));
    if (r->rc == 0) printf("attempt %d succeeded\n", r->retried.n);
    r->retried = (retry){ .random = (uint64_t)volt_now(), .n_refusals = 100 };
    VOLT_AWAIT(r->rc, retry_run(cx, &r->retried));
    if (r->rc == -ECONNREFUSED) printf("attempt %d failed: given up\n", r->retried.n);
    VOLT_END(0);
}
int main(void) {
    root r = { .rc = 0 };
    return volt_run(NULL, root_run, &r);
}
