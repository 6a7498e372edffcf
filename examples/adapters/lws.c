// SPDX-License-Identifier: MIT OR 0BSD
// A WebSocket server by libwebsockets, with a task for each client. libwebsockets runs in a
// GMainLoop, and so does volt, by volt_glib.h: all of it is one thread, without locks.
//
//     libs='libwebsockets glib-2.0'
//     cc -O2 -I. -pthread examples/adapters/lws.c -o lws $(pkg-config --cflags --libs $libs)
//     ./lws 7681
//
// A client sends a number of milliseconds as text; its task sleeps for that long and answers, and
// ends with the connection. Port 0 takes any, which is printed. SIGTERM and SIGINT cancel the
// tasks, whose number is printed, and which then say so to their clients. Debian has the part of
// libwebsockets that knows GLib as libwebsockets-evlib-glib.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_glib.h"
#include <glib-unix.h>
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 64, QUEUED = 4 };

// A client. Its callback and its task share it; the one that ends last frees it.
typedef struct {
    struct lws *wsi; // NULL once the connection has ended
    volt_chan asked; // numbers; the callback closes it
    int queue[QUEUED];
    volt_notify changed; // the text was sent, or the connection has ended
    int n_out; // of `out`, behind LWS_PRE bytes of which libwebsockets makes the header
    char out[LWS_PRE + TEXT];
    int has_ended; // the task
} client;
static struct {
    volt_rt *rt;
    GMainLoop *loop;
    GSource *source;
    struct lws_context *context;
    int n_tasks; // of clients
} app;

// ---- the task of a client

// Has the text sent by the next callback that may write. ms below 0: it is the last one.
static void say(client *c, int ms) {
    c->n_out = ms < 0 ? snprintf(c->out + LWS_PRE, TEXT, "the server ends")
                      : snprintf(c->out + LWS_PRE, TEXT, "slept %d ms", ms);
    lws_callback_on_writable(c->wsi);
}
typedef struct {
    volt_frame frame;
    volt_shield shield;
    volt_timer limit;
    client *of;
    int ms, rc;
} session;
// Sleeps, at most until the connection ends. Nothing is being sent meanwhile.
//   returns: -ETIMEDOUT: it has slept | 0: the connection has ended
static volt_poll session_sleep(volt_cx *cx, session *s) {
    return volt_within(cx, &s->limit, VOLT_MS(s->ms), volt_notify_wait(cx, &s->of->changed));
}
static volt_poll session_run(volt_cx *cx, void *arg) {
    session *s = (session *)arg;
    client *const c = s->of;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_chan_recv(cx, &c->asked, &s->ms, sizeof s->ms));
        if (!c->wsi || s->rc < 0) break;
        VOLT_AWAIT(s->rc, session_sleep(cx, s));
        if (!c->wsi || s->rc != -ETIMEDOUT) break;
        say(c, s->ms);
        VOLT_AWAIT(s->rc, volt_notify_wait(cx, &c->changed));
        if (!c->wsi || s->rc < 0) break;
        lws_rx_flow_control(c->wsi, 1); // there is room for one more
    }
    if (c->wsi && c->n_out == 0) say(c, -1); // a shutdown
    volt_shield_begin(cx, &s->shield, VOLT_S(1));
    for (s->rc = 0; c->wsi && c->n_out > 0 && s->rc == 0;)
        VOLT_AWAIT(s->rc, volt_notify_wait(cx, &c->changed));
    volt_shield_end(cx, &s->shield);
    c->has_ended = 1;
    app.n_tasks--;
    if (!c->wsi) free(c);
    VOLT_END(0);
}

// ---- callbacks of libwebsockets

static int on_open(struct lws *wsi, client **at) {
    client *c = (client *)calloc(1, sizeof *c);
    if (!c) return -1;
    c->wsi = wsi;
    volt_chan_init(&c->asked, c->queue, sizeof c->queue[0], QUEUED);
    if (VOLT_RT_SPAWN(app.rt, NULL, session_run, (session){ .of = c }) < 0) return free(c), -1;
    app.n_tasks++;
    *at = c;
    return 0;
}
static int on_text(client *c, const char *text, size_t len) {
    char digits[8] = { 0 };
    if (len == 0 || len >= sizeof digits) return -1;
    memcpy(digits, text, len);
    if (strspn(digits, "0123456789") != len) return -1;
    int ms = (int)strtoul(digits, NULL, 10);
    if (volt_chan_try_send(&c->asked, &ms, sizeof ms) < 0) return -1; // full, against the flow
    if (volt_chan_len(&c->asked) == QUEUED) lws_rx_flow_control(c->wsi, 0);
    return 0;
}
static int on_writable(client *c) {
    if (c->n_out == 0) return 0;
    int n = lws_write(c->wsi, (unsigned char *)c->out + LWS_PRE, (size_t)c->n_out, LWS_WRITE_TEXT);
    c->n_out = 0;
    volt_notify_one(&c->changed);
    return n < 0 ? -1 : 0;
}
static int on_close(client *c) {
    c->wsi = NULL;
    volt_chan_close(&c->asked);
    volt_notify_one(&c->changed);
    if (c->has_ended) free(c);
    return 0;
}
static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len) {
    client **at = (client **)user; // of this connection, zeroed at first
    switch ((int)reason) {
    case LWS_CALLBACK_ESTABLISHED: return on_open(wsi, at);
    case LWS_CALLBACK_RECEIVE: // a message of several fragments is none of ours
        if (!lws_is_first_fragment(wsi) || !lws_is_final_fragment(wsi)) return -1;
        return on_text(*at, (const char *)in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE: return on_writable(*at);
    case LWS_CALLBACK_CLOSED: return *at ? on_close(*at) : 0;
    }
    return 0;
}

// ---- the end

static gboolean on_signal(gpointer user) {
    (void)user;
    printf("tasks %d\n", app.n_tasks);
    (void)volt_shutdown(app.rt, 0); // begins it
    return G_SOURCE_REMOVE;
}
static gboolean on_end(gpointer user) { // of all tasks
    (void)user;
    g_main_loop_quit(app.loop);
    return G_SOURCE_REMOVE;
}

int main(int argc, char **argv) {
    static const struct lws_protocols protocols[] = {
        { "sleep", on_event, sizeof(client *), TEXT, 0, NULL, 0 }, { NULL, NULL, 0, 0, 0, NULL, 0 }
    };
    const volt_config config = { .workers = 1, .is_guest = 1 };
    const char *const address = "127.0.0.1";
    struct lws_context_creation_info info;
    void *loops[1];
    app.loop = g_main_loop_new(NULL, FALSE);
    loops[0] = app.loop;
    memset(&info, 0, sizeof info);
    info.port = argc > 1 ? atoi(argv[1]) : 7681;
    info.iface = address;
    info.protocols = protocols;
    info.options = LWS_SERVER_OPTION_GLIB;
    info.foreign_loops = loops;
    lws_set_log_level(LLL_ERR | LLL_WARN, NULL);
    app.context = lws_create_context(&info);
    if (!app.context || volt_create(&config, &app.rt) < 0) return 1;
    app.source = volt_glib_attach(app.rt, NULL, 64);
    g_source_set_callback(app.source, on_end, NULL, NULL);
    g_unix_signal_add(SIGTERM, on_signal, NULL);
    g_unix_signal_add(SIGINT, on_signal, NULL);
    printf("port %d\n", lws_get_vhost_listen_port(lws_get_vhost_by_name(app.context, "default")));
    fflush(stdout);
    g_main_loop_run(app.loop);
    volt_glib_detach(app.source);
    lws_context_destroy(app.context);
    while (g_main_context_iteration(NULL, FALSE)) {}
    g_main_loop_unref(app.loop);
    return volt_shutdown(app.rt, VOLT_S(1)) == 0 ? volt_destroy(app.rt) : 1;
}
