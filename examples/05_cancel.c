// SPDX-License-Identifier: MIT OR 0BSD
// Ordered shutdown: four sessions of a server, and four ways to end one.
//
// Cancellation is a request: from then on each wait of the cancelled task returns -ECANCELED, until
// its function returns; nothing is aborted. The means:
//   handle  cancels one task; keeps the task's result until the join
//   token   a stop flag; ends the waits that volt_with_token ties to it, and no others. Tokens form
//           a tree: cancelling one cancels those below
//   group   owns tasks; closing it cancels them and waits until the last one has ended
//   shield  protects cleanup that takes time: between begin and end waits work as usual, within
//           the time limit of the shield
//
//     cc -I. -pthread examples/05_cancel.c -o cancel && ./cancel
//
// Expected output:
// session 1: cancelled, work saved
// joined: cancelled
// session 2: leaves between two jobs
// left: 0
// session 3: leaves between two jobs
// grace: timed out
// session 4: cancelled, saving took too long
// closed
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>

typedef struct {
    volt_frame frame;
    volt_token_link link;
    volt_shield shield;
    int id;
    volt_token *stop; // of the whole program, or of this session alone
    volt_time job, save;
    int rc;
} session;

// The token never interrupts a job: only the wait for the next one is tied to it.
static volt_poll session_run(volt_cx *cx, void *arg) {
    session *s = (session *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_sleep(cx, s->job));
        if (s->rc < 0) break; // the task itself is cancelled
        VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, s->stop, volt_sleep(cx, VOLT_MS(1))));
        if (s->rc < 0) break; // the task, or the token
    }
    if (!volt_is_cancelled(cx)) {
        printf("session %d: leaves between two jobs\n", s->id);
        VOLT_RETURN(0);
    }
    volt_shield_begin(cx, &s->shield, VOLT_MS(500));
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->save)); // without the shield: -ECANCELED at once
    volt_shield_end(cx, &s->shield);
    printf("session %d: cancelled, %s\n", s->id, s->rc < 0 ? "saving took too long" : "work saved");
    VOLT_END(-ECANCELED);
}

typedef struct {
    volt_frame frame;
    volt_token stop, second, third; // the latter two hang below `stop`
    volt_group sessions; // children that must not outlive this task; a bare handle lets them
    volt_handle first;
    volt_timer grace;
    int rc;
} app;

static int start(volt_cx *cx, app *m) {
    session s = { .id = 1, .stop = &m->stop, .job = VOLT_NEVER, .save = VOLT_MS(5) };
    volt_token_init(&m->second, &m->stop);
    volt_token_init(&m->third, &m->stop);
    volt_group_collect(&m->sessions); // keeps results for volt_group_next
    int rc = VOLT_SPAWN(cx, &m->first, session_run, s);
    s = (session){ .id = 2, .stop = &m->second, .job = VOLT_MS(1) };
    if (rc == 0) rc = VOLT_GROUP_SPAWN(cx, &m->sessions, session_run, s);
    s = (session){ .id = 3, .stop = &m->third, .job = VOLT_MS(1) };
    if (rc == 0) rc = VOLT_GROUP_SPAWN(cx, &m->sessions, session_run, s);
    s = (session){ .id = 4, .stop = &m->stop, .job = VOLT_NEVER, .save = VOLT_NEVER };
    if (rc == 0) rc = VOLT_GROUP_SPAWN(cx, &m->sessions, session_run, s);
    return rc;
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = start(cx, m);
    if (m->rc < 0) goto out;

    volt_cancel(&m->first);
    VOLT_AWAIT(m->rc, volt_join(cx, &m->first));
    printf("joined: %s\n", m->rc == -ECANCELED ? "cancelled" : "?");

    volt_token_cancel(&m->second);
    VOLT_AWAIT(m->rc, volt_group_next(cx, &m->sessions, NULL));
    printf("left: %d\n", m->rc);

    volt_token_cancel(&m->stop);
    VOLT_AWAIT(m->rc, volt_within(cx, &m->grace, VOLT_MS(500), volt_group_wait(cx, &m->sessions)));
    printf("grace: %s\n", m->rc == -ETIMEDOUT ? "timed out" : "?");
out:
    volt_detach(&m->first); // does nothing after a join
    VOLT_AWAIT(volt_group_close(cx, &m->sessions));
    volt_token_deinit(&m->second);
    volt_token_deinit(&m->third);
    printf("closed\n");
    VOLT_END(m->rc == -ETIMEDOUT ? 0 : m->rc);
}

int main(void) {
    app m = { .rc = 0 };
    return volt_run(NULL, app_run, &m) < 0;
}
