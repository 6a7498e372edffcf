// SPDX-License-Identifier: MIT OR 0BSD
// Waiting for several channels at once: a desk that takes urgent messages first, then orders, and
// notices when there are none.
//   - a receive that loses a select has received nothing: the message is left for the next one
//   - VOLT_SELECT_BIASED polls its arms in the order of the text, so that the first have priority;
//     VOLT_SELECT begins anywhere, so that none of several busy arms starves
//   - a disabled arm waits for volt_sleep_forever; a channel that is closed and drained returns 0
//     at once and would win every time
//   - a time limit is one more arm, and so is an answer: a oneshot, which is sent once
//
//     cc -I. -pthread examples/12_select.c -o select && ./select
//
// Expected output:
// urgent 1
// order 1
// order 2
// idle
// order 3
// urgent 2
// closed
// the answer: 5 messages
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <stdio.h>

typedef struct {
    volt_chan urgent, orders;
    int urgent_buf[4], orders_buf[4];
    volt_oneshot idle, answer;
} office;

typedef struct {
    volt_frame frame;
    volt_arm urgent, order, idle;
    office *house;
    int id, rc, has_urgent, has_orders, n_taken;
} desk;

static volt_poll desk_run(volt_cx *cx, void *arg) {
    desk *d = (desk *)arg;
    office *const h = d->house;
    VOLT_BEGIN(cx, d);
    d->has_urgent = d->has_orders = 1;
    while (d->has_urgent || d->has_orders) {
        VOLT_AWAIT(VOLT_SELECT_BIASED(
            VOLT_ARM(&d->urgent, d->rc,
                     d->has_urgent ? volt_chan_recv(cx, &h->urgent, &d->id, sizeof d->id)
                                   : volt_sleep_forever(cx)),
            VOLT_ARM(&d->order, d->rc,
                     d->has_orders ? volt_chan_recv(cx, &h->orders, &d->id, sizeof d->id)
                                   : volt_sleep_forever(cx)),
            VOLT_ARM(&d->idle, d->rc, volt_sleep(cx, VOLT_MS(50)))));
        if (d->idle.fired) {
            printf("idle\n");
            volt_oneshot_send(&h->idle, 1);
        } else if (d->urgent.fired || d->order.fired) {
            if (d->rc == 1) printf("%s %d\n", d->urgent.fired ? "urgent" : "order", d->id);
            if (d->rc == 1) d->n_taken++;
            else if (d->urgent.fired) d->has_urgent = 0; // closed and drained
            else d->has_orders = 0;
        } else {
            break; // none: this task was cancelled
        }
    }
    printf("closed\n");
    volt_oneshot_send(&h->answer, d->n_taken);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_handle desk;
    office house;
    int id, rc;
} app;

// The channels have room for all messages: no send has to wait.
static int put(volt_chan *c, int id) { return volt_chan_try_send(c, &id, sizeof id); }

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    office *const h = &m->house;
    VOLT_BEGIN(cx, m);
    h->urgent = (volt_chan)VOLT_CHAN_INIT(h->urgent_buf);
    h->orders = (volt_chan)VOLT_CHAN_INIT(h->orders_buf);
    m->rc = put(&h->orders, 1) || put(&h->orders, 2) || put(&h->urgent, 1);
    if (m->rc == 0) m->rc = VOLT_SPAWN(cx, &m->desk, desk_run, (desk){ .house = h });
    if (m->rc < 0) VOLT_RETURN(m->rc);
    VOLT_AWAIT(m->rc, volt_oneshot_recv(cx, &h->idle)); // an answer has been sent by now
    m->id = 3;
    VOLT_AWAIT(m->rc, volt_chan_send(cx, &h->orders, &m->id, sizeof m->id));
    volt_chan_close(&h->orders);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(10))); // the desk has one arm less, and waits
    m->id = 2;
    VOLT_AWAIT(m->rc, volt_chan_send(cx, &h->urgent, &m->id, sizeof m->id));
    volt_chan_close(&h->urgent);
    VOLT_AWAIT(m->rc, volt_oneshot_recv(cx, &h->answer));
    printf("the answer: %d messages\n", m->rc);
    VOLT_AWAIT(volt_join(cx, &m->desk));
    VOLT_END(m->rc);
}

int main(void) {
    app m = { .rc = 0 };
    return volt_run(NULL, app_run, &m) != 5;
}
