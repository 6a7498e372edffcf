// SPDX-License-Identifier: MIT OR 0BSD
// GLib: volt as a source of a GMainLoop. Include it behind volt.h, with the flags of
// `pkg-config --cflags --libs glib-2.0` (2.36 or later). For use, see examples/adapters/glib.c:
//
//     volt_config config = { .workers = 1, .is_guest = 1 };
//     volt_create(&config, &rt);
//     GSource *source = volt_glib_attach(rt, NULL, 64);
//     g_main_loop_run(loop); // tasks run in here, between the other sources
//     volt_glib_detach(source);
//     volt_shutdown(rt, VOLT_S(1));
//     volt_destroy(rt);
//
// With one worker all tasks and all callbacks run in the thread of the loop, so that they may share
// data without locks, and tasks may call GTK, for example. While no task is due, the loop sleeps.
//
// A callback of GLib is on a plain thread: it may spawn tasks (VOLT_RT_SPAWN), cancel them, and end
// their waits by volt_notify_one, volt_oneshot_send, volt_token_cancel and the like. It must not
// call volt_block_on and volt_join_sync, for which the loop would have to run. Other threads may
// call all of these: they wake the loop.
//
// A task must not run a loop of its own on the same context, as gtk_dialog_run does: volt stands
// still until that loop has ended.
//
// An end that does not block the loop: volt_shutdown in a task, or volt_shutdown(rt, 0) in a
// callback, which also logs the tasks that are left. All tasks are cancelled, and clean up while
// the loop runs on. After the last one the source calls the function of g_source_set_callback, if
// there is one, and is removed from the loop; from then on volt_shutdown returns 0 at once.
#ifndef VOLT_GLIB_H
#define VOLT_GLIB_H

#include <errno.h>
#include <glib.h>

typedef struct volt_glib__source {
    GSource source; // must be first
    volt_rt *rt;
    guint max_polls;
} volt_glib__source;

// GLib calls it when the descriptor is readable.
static inline gboolean volt_glib__dispatch(GSource *source, GSourceFunc callback, gpointer user) {
    volt_glib__source *s = (volt_glib__source *)(void *)source;
    if (volt_rt_step(s->rt, s->max_polls) != -ESHUTDOWN) return G_SOURCE_CONTINUE;
    if (callback) callback(user);
    return G_SOURCE_REMOVE;
}

// Attaches a guest to a main context. context_or_null: NULL is the default one. max_polls bounds
// the polls of tasks between two passes over the other sources; 0 is no bound. The priority is
// G_PRIORITY_DEFAULT; g_source_set_priority changes it.
//   where  : any thread. From then on the thread that runs the context is that of worker 0, and no
//            other thread calls volt_rt_step
//   returns: the source | NULL if the runtime was made without .is_guest
//   wakes  : the loop, when a task, a timer or a descriptor of volt is due
//   memory : GLib allocates the source until volt_glib_detach. The descriptor is the runtime's
static inline GSource *volt_glib_attach(volt_rt *rt, GMainContext *context_or_null,
                                        unsigned max_polls) {
    // Without functions for it, GLib itself decides by the descriptor whether the source is due.
    static GSourceFuncs funcs = { NULL, NULL, volt_glib__dispatch, NULL, NULL, NULL };
    int fd = volt_rt_fd(rt);
    if (fd < 0) return NULL;
    GSource *source = g_source_new(&funcs, sizeof(volt_glib__source));
    volt_glib__source *s = (volt_glib__source *)(void *)source;
    s->rt = rt;
    s->max_polls = max_polls;
    g_source_set_name(source, "volt");
    g_source_add_unix_fd(source, fd, G_IO_IN);
    g_source_attach(source, context_or_null);
    return source;
}
// Removes the source from its context, if it is there, and frees it. Must come before volt_destroy.
// Tasks stand still from then on, until volt_shutdown or a further volt_glib_attach.
//   where  : any thread, while no thread is inside volt_rt_step. Also in a callback of the loop
static inline void volt_glib_detach(GSource *source) {
    g_source_destroy(source);
    g_source_unref(source);
}
#endif
