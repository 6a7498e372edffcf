// SPDX-License-Identifier: MIT OR 0BSD
// Structured concurrency: a function starts tasks, and none of them outlives it, whichever way it
// ends. Here it gathers a number from each of three parts.
//   - the group is a member of its state, and volt_group_close stands before its end: it cancels
//     the remaining tasks, waits for their cleanup, and always completes, even if the function
//     itself has been cancelled. So the parts may use the function's state
//   - volt_group_next returns the results in the order of completion: at the first error the
//     rest is not needed. With volt_group_fail_together the group itself cancels the rest
//   - the deadline is the caller's: volt_before around the call. The function does not depend on
//     it: its awaits return -ECANCELED, it closes its group and returns
//
//     cc -I. -pthread examples/14_group.c -o group && ./group
//
// Expected output:
// quick: the sum is 60
// broken: part 2 says input or output error (EIO)
// broken: 2 parts have cleaned up
// broken: input or output error (EIO)
// slow: 2 parts have cleaned up
// slow: timed out (ETIMEDOUT)
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>

enum { PARTS = 3 };

// The plan of a part: its duration, and its result.
typedef struct {
    volt_time length;
    int result;
} task;
typedef struct {
    const char *name;
    volt_time limit;
    task parts[PARTS];
} story;
static const story scenes[] = {
    { "quick", VOLT_S(10), { { VOLT_MS(3), 10 }, { VOLT_MS(1), 20 }, { VOLT_MS(2), 30 } } },
    { "broken", VOLT_S(10), { { VOLT_NEVER, 0 }, { VOLT_MS(1), -EIO }, { VOLT_NEVER, 0 } } },
    { "slow", VOLT_MS(30), { { VOLT_MS(1), 10 }, { VOLT_NEVER, 0 }, { VOLT_NEVER, 0 } } },
};

typedef struct {
    volt_frame frame;
    volt_shield cleanup;
    task plan;
    int *n_cleaned; // a member of the gathering task's state
    int rc;
} part;

static volt_poll part_run(volt_cx *cx, void *arg) {
    part *p = (part *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_sleep(cx, p->plan.length)); // stands for work that waits
    if (p->rc == 0) VOLT_RETURN(p->plan.result);
    volt_shield_begin(cx, &p->cleanup, VOLT_MS(500));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5))); // stands for, say, a final message to a peer
    volt_shield_end(cx, &p->cleanup);
    __atomic_add_fetch(p->n_cleaned, 1, __ATOMIC_RELAXED);
    VOLT_END(p->rc);
}

typedef struct {
    volt_frame frame;
    volt_group parts;
    const story *scene;
    uint64_t id;
    int rc, sum, n_cleaned;
} gather;

static int gather_start(volt_cx *cx, gather *g) {
    int rc = 0;
    volt_group_collect(&g->parts); // keeps the results for volt_group_next
    for (int i = 0; i < PARTS && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, &g->parts, part_run,
                              (part){ .plan = g->scene->parts[i], .n_cleaned = &g->n_cleaned });
    return rc;
}

// Returns the sum, or the first error.
static volt_poll gather_run(volt_cx *cx, void *arg) {
    gather *g = (gather *)arg;
    VOLT_BEGIN(cx, g);
    g->sum = g->n_cleaned = 0;
    g->rc = gather_start(cx, g);
    while (g->rc >= 0) {
        VOLT_AWAIT(g->rc, volt_group_next(cx, &g->parts, &g->id));
        if (g->rc >= 0) g->sum += g->rc;
    }
    if (g->rc != -ENOENT && g->rc != -ECANCELED)
        printf("%s: part %d says %s\n", g->scene->name, (int)g->id + 1, volt_strerror(g->rc));
    VOLT_AWAIT(volt_group_close(cx, &g->parts)); // from here on none of them runs
    if (g->rc == -ENOENT) VOLT_RETURN(g->sum);   // none is left: all have returned theirs
    printf("%s: %d parts have cleaned up\n", g->scene->name, g->n_cleaned);
    VOLT_END(g->rc);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_time deadline;
    gather g;
    int rc;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->deadline = volt_now() + m->g.scene->limit;
    VOLT_AWAIT(m->rc, volt_before(cx, &m->limit, m->deadline, gather_run(cx, &m->g)));
    if (m->rc >= 0) printf("%s: the sum is %d\n", m->g.scene->name, m->rc);
    else printf("%s: %s\n", m->g.scene->name, volt_strerror(m->rc));
    VOLT_END(0);
}

int main(void) {
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        app m = { .g = { .scene = &scenes[i] } };
        if (volt_run(NULL, app_run, &m) < 0) return 1;
    }
    return 0;
}
