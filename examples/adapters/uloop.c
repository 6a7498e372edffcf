// SPDX-License-Identifier: MIT OR 0BSD
// Tasks in uloop, the event loop of OpenWrt, by volt_uloop.h: timeouts, ubus and descriptors go on
// as before. Everything here runs in the thread of the loop, so tasks may call uloop, and callbacks
// may spawn.
//
//     cc -O2 -I. -pthread examples/adapters/uloop.c -o uloop -lubox && ./uloop
//
// Expected output:
// timeout: spawns a task
// task: reads "ping" that a callback has written
// task: 3 naps, then a timeout of uloop
// timeout: wakes the task
// task: has asked for the end
// task: cancelled
// loop: all tasks have ended
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_uloop.h"
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    volt_uloop loop;
    struct uloop_timeout start, later;
    volt_notify wake;
    int ends[2]; // of a socket pair: the task's, the callback's
} app;
static app a; // tasks and callbacks use it without a lock

// ---- a task

typedef struct {
    volt_frame frame;
    char text[5];
    int n;
} worker;
static volt_poll worker_run(volt_cx *cx, void *arg) {
    worker *w = (worker *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->n, volt_read_exact(cx, a.ends[0], w->text, 4));
    if (w->n == 4) printf("task: reads \"%s\" that a callback has written\n", w->text);
    for (w->n = 0; w->n < 3; w->n++) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    printf("task: %d naps, then a timeout of uloop\n", w->n);
    uloop_timeout_set(&a.later, 5);
    VOLT_AWAIT(w->n, volt_notify_wait(cx, &a.wake));
    printf("task: has asked for the end\n");
    (void)volt_shutdown(volt_cx_rt(cx), 0); // begins it
    VOLT_AWAIT(w->n, volt_sleep_forever(cx));
    if (w->n == -ECANCELED) printf("task: cancelled\n");
    volt_close(cx, a.ends[0]);
    VOLT_END(0);
}

// ---- callbacks of uloop

static void on_start(struct uloop_timeout *t) {
    (void)t;
    printf("timeout: spawns a task\n");
    if (VOLT_RT_SPAWN(a.loop.rt, NULL, worker_run, (worker){ .n = 0 }) < 0) uloop_end();
    if (write(a.ends[1], "ping", 4) != 4) uloop_end();
}
static void on_later(struct uloop_timeout *t) {
    (void)t;
    printf("timeout: wakes the task\n");
    volt_notify_one(&a.wake);
}
static void on_end(volt_uloop *u) {
    (void)u;
    printf("loop: all tasks have ended\n");
    uloop_end();
}

int main(void) {
    const volt_config config = { .workers = 1, .is_guest = 1 };
    volt_rt *rt;
    if (uloop_init() < 0 || volt_socketpair(SOCK_STREAM, a.ends) < 0) return 1;
    int rc = volt_create(&config, &rt);
    if (rc < 0) return 1;
    a.loop.on_end = on_end;
    a.start.cb = on_start;
    a.later.cb = on_later;
    rc = volt_uloop_attach(&a.loop, rt, 64);
    uloop_timeout_set(&a.start, 1);
    if (rc == 0) uloop_run();
    else fprintf(stderr, "uloop: %s\n", volt_strerror(rc));
    volt_uloop_detach(&a.loop);
    if (volt_shutdown(rt, VOLT_S(1)) == 0) volt_destroy(rt);
    uloop_done();
    close(a.ends[1]);
    return rc < 0;
}
