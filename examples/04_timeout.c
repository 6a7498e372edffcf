// SPDX-License-Identifier: MIT OR 0BSD
// Timeouts: four ways to put a limit on a wait.
//   volt_within    a duration; wraps any wait, also a child function, and returns only when the
//                  cancelled wait has ended
//   volt_before    the same with a point in time: one limit for several steps
//   VOLT_SELECT    the first of several waits, a sleep among them; a join that loses costs nothing:
//                  its task goes on
//   volt_interval  a steady pace; `missed` selects the treatment of missed ticks
//
//     cc -I. -pthread examples/04_timeout.c -o timeout && ./timeout
//
// Expected output:
// quick job: 7
// job: cancelled, cleaning up
// endless job: timed out
// step 1: in time
// step 2: timed out
// step 3: timed out
// still waiting (1)
// still waiting (2)
// job: cancelled, cleaning up
// burst: 1 1 1
// skip: several at once
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>

typedef struct {
    volt_frame frame;
    volt_time length;
    int rc;
} job;

static volt_poll job_run(volt_cx *cx, void *arg) {
    job *j = (job *)arg;
    VOLT_BEGIN(cx, j);
    VOLT_AWAIT(j->rc, volt_sleep(cx, j->length));
    if (j->rc < 0) printf("job: cancelled, cleaning up\n");
    VOLT_END(j->rc < 0 ? j->rc : 7);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_time deadline;
    // a child function: its state is a member of this state, and it is awaited like any wait
    job child;
    int rc, step;
} limits;

static const char *verdict(int rc) { return rc == -ETIMEDOUT ? "timed out" : "in time"; }

static volt_poll limits_run(volt_cx *cx, void *arg) {
    limits *l = (limits *)arg;
    VOLT_BEGIN(cx, l);
    l->child.length = VOLT_MS(1);
    VOLT_AWAIT(l->rc, volt_within(cx, &l->limit, VOLT_S(10), job_run(cx, &l->child)));
    printf("quick job: %d\n", l->rc);
    l->child.length = VOLT_NEVER;
    VOLT_AWAIT(l->rc, volt_within(cx, &l->limit, VOLT_MS(20), job_run(cx, &l->child)));
    printf("endless job: %s\n", verdict(l->rc));
    l->deadline = volt_now() + VOLT_MS(400);
    for (l->step = 1; l->step <= 3; l->step++) { // the second step uses up the time of the third
        l->child.length = l->step == 2 ? VOLT_NEVER : VOLT_MS(1);
        VOLT_AWAIT(l->rc, volt_before(cx, &l->limit, l->deadline, volt_sleep(cx, l->child.length)));
        printf("step %d: %s\n", l->step, verdict(l->rc));
    }
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_arm ended, late;
    volt_handle task;
    int rc, n_late;
} patience;

static volt_poll patience_run(volt_cx *cx, void *arg) {
    patience *p = (patience *)arg;
    VOLT_BEGIN(cx, p);
    p->rc = VOLT_SPAWN(cx, &p->task, job_run, (job){ .length = VOLT_NEVER });
    if (p->rc < 0) VOLT_RETURN(p->rc);
    while (p->n_late < 2) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&p->ended, p->rc, volt_join(cx, &p->task)),
                               VOLT_ARM(&p->late, volt_sleep(cx, VOLT_MS(10)))));
        if (!p->late.fired) break; // it has ended, or this function is cancelled
        printf("still waiting (%d)\n", ++p->n_late);
    }
    volt_cancel(&p->task);
    VOLT_AWAIT(p->rc, volt_join(cx, &p->task));
    volt_detach(&p->task); // if this function is cancelled, the join does not wait
    VOLT_END(p->rc == -ECANCELED ? 0 : -1);
}

typedef struct {
    volt_frame frame;
    volt_interval every;
    int n[3], i;
} pace;

static volt_poll pace_run(volt_cx *cx, void *arg) {
    pace *p = (pace *)arg;
    VOLT_BEGIN(cx, p);
    volt_interval_init(&p->every, VOLT_MS(10)); // VOLT_MISSED_BURST: each tick has its own result
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(30)));    // three are missed
    for (p->i = 0; p->i < 3; p->i++) VOLT_AWAIT(p->n[p->i], volt_interval_next(cx, &p->every));
    printf("burst: %d %d %d\n", p->n[0], p->n[1], p->n[2]);
    p->every.missed = VOLT_MISSED_SKIP; // one result that counts the ticks; the phase stays
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(30)));
    VOLT_AWAIT(p->n[0], volt_interval_next(cx, &p->every));
    printf("skip: %s at once\n", p->n[0] > 1 ? "several" : "one");
    VOLT_END(0);
}

int main(void) {
    static limits l;
    static patience p;
    static pace q;
    return volt_run(NULL, limits_run, &l) < 0 || volt_run(NULL, patience_run, &p) < 0 ||
           volt_run(NULL, pace_run, &q) < 0;
}
