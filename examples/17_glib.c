// SPDX-License-Identifier: MIT OR 0BSD
// A guest of GLib's main loop: the GUI, D-Bus and other sources there are unaffected, and volt is
// one source among them. Needs libglib2.0-dev.
//
// g_unix_fd_add watches volt's descriptor; its callback runs one bounded step. Everything here runs
// in the thread of the main loop (one worker), so tasks may call GLib, and callbacks may spawn.
// Another thread spawns as well: that makes the descriptor readable and thereby wakes the loop.
//
//     cc -I. -pthread examples/17_glib.c $(pkg-config --cflags --libs glib-2.0) -o glib && ./glib
//
// Expected output:
// callback: spawns a task
// task: in the main loop's thread
// thread: 20 + 22 = 42
// task: 3 naps, quits the main loop
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <glib-unix.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>

typedef struct {
    volt_rt *rt;
    GMainLoop *loop;
    pthread_t thread; // of the main loop
    volt_token sum_is_known;
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
    if (pthread_equal(pthread_self(), n->home->thread)) printf("task: in the main loop's thread\n");
    for (n->n = 0; n->n < 3; n->n++) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    VOLT_AWAIT(volt_token_wait(cx, &n->home->sum_is_known));
    printf("task: %d naps, quits the main loop\n", n->n);
    g_main_loop_quit(n->home->loop);
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

static gboolean on_volt(gint fd, GIOCondition condition, gpointer user) {
    app *a = (app *)user;
    (void)fd, (void)condition;
    return volt_rt_step(a->rt, 64) < 0 ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}
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
    volt_token_cancel(&a->sum_is_known);
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
    int rc = volt_create(&config, &a.rt);
    if (rc < 0) return 1;
    guint source = g_unix_fd_add(volt_rt_fd(a.rt), G_IO_IN, on_volt, &a);
    g_timeout_add(1, on_timeout, &a);
    if (pthread_create(&asker, NULL, asker_main, &a) != 0) return 1;
    g_main_loop_run(a.loop);
    pthread_join(asker, NULL);
    g_source_remove(source);
    g_main_loop_unref(a.loop);
    rc = volt_shutdown(a.rt, VOLT_S(1));
    return rc == 0 ? volt_destroy(a.rt) : 1;
}
