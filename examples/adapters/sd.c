// SPDX-License-Identifier: MIT OR 0BSD
// volt_sd.h, both forms: an sd_event in a task of volt, and a volt runtime in an sd_event_loop.
//
//     cc -O2 -I. -pthread examples/adapters/sd.c -lsystemd -o sd && ./sd
//
// Expected output:
// volt runs the loop:
// sd-event: a timer
// task: woken by the timer
// sd-event: a child has ended with 7
// the loop has ended with 3
// the loop runs volt:
// task: slept 3 times
// sd-event: the task has ended
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_sd.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ---- an sd_event in a task

typedef struct {
    volt_frame frame;
    volt_group group;
    volt_notify ticked;
    volt_sd sd;
    int rc;
} app;
static int on_timer(sd_event_source *source, uint64_t usec, void *user) {
    (void)source, (void)usec;
    printf("sd-event: a timer\n");
    volt_notify_one(&((app *)user)->ticked);
    return 0;
}
static int on_child(sd_event_source *source, const siginfo_t *info, void *user) {
    (void)user;
    printf("sd-event: a child has ended with %d\n", info->si_status);
    return sd_event_exit(sd_event_source_get_event(source), 3);
}
typedef struct {
    volt_frame frame;
    app *of;
    int rc, pid;
} waiter;
static volt_poll waiter_run(volt_cx *cx, void *arg) { // another task, which uses the loop as well
    waiter *w = (waiter *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_notify_wait(cx, &w->of->ticked));
    if (w->rc < 0) VOLT_RETURN(w->rc);
    printf("task: woken by the timer\n");
    w->pid = fork();
    if (w->pid == 0) _exit(7);
    volt_sd_lock(&w->of->sd);
    w->rc = sd_event_add_child(w->of->sd.event, NULL, w->pid, WEXITED, on_child, NULL);
    volt_sd_unlock(&w->of->sd);
    VOLT_END(w->rc);
}
static volt_poll app_run(volt_cx *cx, void *arg) {
    app *a = (app *)arg;
    VOLT_BEGIN(cx, a);
    a->rc = sd_event_new(&a->sd.event);
    if (a->rc >= 0)
        a->rc = sd_event_add_time_relative(a->sd.event, NULL, CLOCK_MONOTONIC, 10000, 0, on_timer,
                                           a);
    if (a->rc >= 0)
        a->rc = VOLT_GROUP_SPAWN(cx, &a->group, waiter_run, (waiter){ .of = a });
    if (a->rc >= 0) VOLT_AWAIT(a->rc, volt_sd_run(cx, &a->sd));
    printf("the loop has ended with %d\n", a->rc);
    VOLT_AWAIT(volt_group_close(cx, &a->group));
    sd_event_unref(a->sd.event);
    VOLT_END(0);
}

// ---- a runtime in an sd_event_loop, all in one thread

typedef struct {
    volt_frame frame;
    sd_event *event;
    int n;
} napper;
static int on_end(sd_event_source *source, void *user) {
    (void)user;
    printf("sd-event: the task has ended\n");
    sd_event_exit(sd_event_source_get_event(source), 0);
    sd_event_source_unref(source);
    return 0;
}
static volt_poll napper_run(volt_cx *cx, void *arg) {
    napper *s = (napper *)arg;
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < 3; s->n++) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    printf("task: slept %d times\n", s->n);
    sd_event_source *end; // the task may call libsystemd, since it runs in the thread of the loop
    VOLT_END(sd_event_add_defer(s->event, &end, on_end, NULL));
}
static int guest_main(void) {
    const volt_config config = { .workers = 1, .is_guest = 1 };
    sd_event *event = NULL;
    sd_event_source *source = NULL;
    volt_rt *rt = NULL;
    int rc = volt_create(&config, &rt);
    if (rc == 0) rc = sd_event_new(&event);
    if (rc >= 0) rc = volt_sd_attach(event, rt, &source);
    if (rc >= 0) rc = VOLT_RT_SPAWN(rt, NULL, napper_run, (napper){ .event = event });
    if (rc >= 0) rc = sd_event_loop(event);
    sd_event_source_unref(source);
    sd_event_unref(event);
    if (rt && volt_shutdown(rt, VOLT_S(1)) == 0) volt_destroy(rt);
    return rc;
}

int main(void) {
    static app a;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, NULL); // sd_event_add_child wants it
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("volt runs the loop:\n");
    if (volt_run(NULL, app_run, &a) < 0) return 1;
    printf("the loop runs volt:\n");
    return guest_main() < 0;
}
