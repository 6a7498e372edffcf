// SPDX-License-Identifier: MIT OR 0BSD
// A pipeline: one task makes items, three work on them, one takes the results. Bounded channels
// between them provide backpressure: a task that finds the next channel full waits, and so do the
// tasks before it.
//
// The end travels in both directions. After the last item the maker closes its channel: receivers
// get the remaining items, then 0. A receiver that wants no more closes it too: senders get -EPIPE.
// With several tasks on one side, volt_chan_retain and volt_chan_release count them, and the last
// one closes.
//
//     cc -I. -pthread examples/11_pipeline.c -o pipeline && ./pipeline
//
// Expected output:
// made 100, taken 100, sum of the squares 338350
// the maker was never more than 12 ahead
// taken 20: enough
// the maker has stopped
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <stdio.h>

enum { WORKERS = 3, CAP = 4, ITEMS = 100 };
enum { MOST_AHEAD = 1 + CAP + WORKERS + CAP }; // in hands, in channels

typedef struct {
    int n, square;
} work;

typedef struct {
    volt_chan raw, done;
    work raw_buf[CAP], done_buf[CAP];
    int n_made, n_wanted; // n_made: by one task, read by another
} belt;

typedef struct {
    volt_frame frame;
    belt *line;
    work item;
    int rc;
} stage;

static volt_poll maker_run(volt_cx *cx, void *arg) {
    stage *s = (stage *)arg;
    VOLT_BEGIN(cx, s);
    for (s->item.n = 1; s->item.n <= ITEMS; s->item.n++) {
        __atomic_store_n(&s->line->n_made, s->item.n, __ATOMIC_RELAXED);
        VOLT_AWAIT(s->rc, volt_chan_send(cx, &s->line->raw, &s->item, sizeof s->item));
        if (s->rc < 0) break; // -EPIPE: no worker is left
    }
    volt_chan_close(&s->line->raw);
    VOLT_END(s->rc);
}

static volt_poll worker_run(volt_cx *cx, void *arg) {
    stage *s = (stage *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_chan_recv(cx, &s->line->raw, &s->item, sizeof s->item));
        if (s->rc <= 0) break; // 0: closed and drained
        s->item.square = s->item.n * s->item.n;
        VOLT_AWAIT(s->rc, volt_chan_send(cx, &s->line->done, &s->item, sizeof s->item));
        if (s->rc < 0) break;
    }
    volt_chan_release(&s->line->raw, VOLT_CHAN_RECEIVER); // the last of them closes it
    volt_chan_release(&s->line->done, VOLT_CHAN_SENDER);
    VOLT_END(s->rc < 0 && s->rc != -EPIPE ? s->rc : 0);
}

typedef struct {
    volt_frame frame;
    volt_group stages;
    volt_handle maker;
    belt line;
    work item;
    int n_taken, sum, most_ahead, rc, maker_rc;
} taker;

static int start(volt_cx *cx, taker *t) {
    volt_chan_init(&t->line.raw, t->line.raw_buf, sizeof t->line.raw_buf[0], CAP);
    volt_chan_init(&t->line.done, t->line.done_buf, sizeof t->line.done_buf[0], CAP);
    int rc = VOLT_SPAWN(cx, &t->maker, maker_run, (stage){ .line = &t->line });
    for (int i = 0; i < WORKERS && rc == 0; i++) { // counted before the first of them can leave
        volt_chan_retain(&t->line.raw, VOLT_CHAN_RECEIVER);
        volt_chan_retain(&t->line.done, VOLT_CHAN_SENDER);
    }
    for (int i = 0; i < WORKERS && rc == 0; i++)
        rc = VOLT_GROUP_SPAWN(cx, &t->stages, worker_run, (stage){ .line = &t->line });
    return rc;
}

static void take(taker *t) {
    int ahead = __atomic_load_n(&t->line.n_made, __ATOMIC_RELAXED) - t->n_taken;
    if (ahead > t->most_ahead) t->most_ahead = ahead;
    t->sum += t->item.square;
    t->n_taken++;
}

// Takes at most n_wanted items; returns the maker's result.
static volt_poll taker_run(volt_cx *cx, void *arg) {
    taker *t = (taker *)arg;
    VOLT_BEGIN(cx, t);
    t->rc = start(cx, t);
    while (t->rc == 0 && t->n_taken < t->line.n_wanted) {
        VOLT_AWAIT(t->rc, volt_chan_recv(cx, &t->line.done, &t->item, sizeof t->item));
        if (t->rc <= 0) break;
        take(t);
        t->rc = 0;
    }
    volt_chan_close(&t->line.done); // the workers leave, then the maker
    volt_chan_close(&t->line.raw);
    VOLT_AWAIT(volt_group_close(cx, &t->stages));
    VOLT_AWAIT(t->maker_rc, volt_join(cx, &t->maker));
    volt_detach(&t->maker); // does nothing after a join
    VOLT_END(t->rc < 0 ? t->rc : t->maker_rc);
}

int main(void) {
    taker all = { .line = { .n_wanted = ITEMS } }, few = { .line = { .n_wanted = 20 } };
    int rc = volt_run(NULL, taker_run, &all);
    printf("made %d, taken %d, sum of the squares %d\n", all.line.n_made, all.n_taken, all.sum);
    if (all.most_ahead <= MOST_AHEAD)
        printf("the maker was never more than %d ahead\n", MOST_AHEAD);
    if (rc < 0) return 1;
    rc = volt_run(NULL, taker_run, &few);
    printf("taken %d: enough\n", few.n_taken);
    printf("the maker has %s\n", rc == -EPIPE ? "stopped" : "gone on");
    return few.line.n_made == ITEMS;
}
