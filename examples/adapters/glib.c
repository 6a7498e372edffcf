// SPDX-License-Identifier: MIT OR 0BSD
// Tasks in GLib's main loop, by volt_glib.h: timeouts, D-Bus or a GUI go on as before. Everything
// here runs in the thread of the loop, so tasks may call GLib, and callbacks may spawn. Another
// thread spawns as well, which wakes the loop.
//
//     cc -O2 -I. -pthread examples/adapters/glib.c -o glib $(pkg-config --cflags --libs glib-2.0)
//     ./glib
//
// Expected output:
// callback: spawns a task
// task: in the thread of the loop
// thread: 20 + 22 = 42
// task: 3 naps and a signal of GLib, then the shutdown
// task: cancelled
// loop: all tasks have ended
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_glib.h"
#include <pthread.h>
#include <stdio.h>

typedef struct {
    volt_rt *rt;
    GMainLoop *loop;
    pthread_t thread; // of the loop
    volt_event sum_is_known;
    int64_t sum;
} app;

// ---- tasks

typedef struct {
    volt_frame frame;
    app *home;
    int n;
} napper;
static volt_poll napper_run(volt_cx *cx, void *arg) {
    napper *n = (napper *)arg;
    VOLT_BEGIN(cx, n);
    if (pthread_equal(pthread_self(), n->home->thread)) printf("task: in the thread of the loop\n");
    for (n->n = 0; n->n < 3; n->n++) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    VOLT_AWAIT(volt_event_wait(cx, &n->home->sum_is_known)); // a callback of GLib sets it
    printf("task: %d naps and a signal of GLib, then the shutdown\n", n->n);
    (void)volt_shutdown(n->home->rt, 0); // begins it
    VOLT_AWAIT(n->n, volt_sleep_forever(cx));
    printf("task: %s\n", n->n == -ECANCELED ? "cancelled" : "?");
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int a, b;
} sum;
static volt_poll sum_run(volt_cx *cx, void *arg) {
    sum *s = (sum *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(s->a + s->b);
}

// ---- callbacks of GLib

static gboolean on_timeout(gpointer user) {
    app *a = (app *)user;
    printf("callback: spawns a task\n");
    int rc = VOLT_RT_SPAWN(a->rt, NULL, napper_run, (napper){ .home = a });
    if (rc < 0) g_main_loop_quit(a->loop);
    return G_SOURCE_REMOVE;
}
static gboolean on_sum(gpointer user) { // sent by the other thread
    app *a = (app *)user;
    printf("thread: 20 + 22 = %d\n", (int)a->sum);
    volt_event_set(&a->sum_is_known);
    return G_SOURCE_REMOVE;
}
static gboolean on_end(gpointer user) { // of the runtime
    printf("loop: all tasks have ended\n");
    g_main_loop_quit(((app *)user)->loop);
    return G_SOURCE_REMOVE;
}

// ---- another thread

static void *asker_main(void *arg) {
    app *a = (app *)arg;
    volt_handle h = { 0 };
    int rc = VOLT_RT_SPAWN(a->rt, &h, sum_run, (sum){ .a = 20, .b = 22 });
    if (rc == 0) rc = volt_join_sync(&h, VOLT_S(10), &a->sum);
    if (rc == 0) g_timeout_add(30, on_sum, a);
    return NULL;
}

int main(void) {
    const volt_config config = { .workers = 1, .is_guest = 1 };
    app a = { .loop = g_main_loop_new(NULL, FALSE), .thread = pthread_self() };
    pthread_t asker;
    if (volt_create(&config, &a.rt) < 0) return 1;
    GSource *source = volt_glib_attach(a.rt, NULL, 64);
    g_source_set_callback(source, on_end, &a, NULL);
    g_timeout_add(1, on_timeout, &a);
    if (pthread_create(&asker, NULL, asker_main, &a) != 0) return 1;
    g_main_loop_run(a.loop);
    pthread_join(asker, NULL);
    volt_glib_detach(source);
    g_main_loop_unref(a.loop);
    int rc = volt_shutdown(a.rt, VOLT_S(1)); // there is nothing left to wait for
    return rc == 0 ? volt_destroy(a.rt) : 1;
}
