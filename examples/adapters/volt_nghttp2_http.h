// SPDX-License-Identifier: MIT OR 0BSD
// HTTP/2 requests by nghttp2, over any volt_stream: a server has a task for each, a client makes
// them, and bodies are streams. Include it behind volt.h and link with -lnghttp2. For use, see
// nghttp2.c:
//
//     static volt_poll hello(volt_cx *cx, volt_nghttp2_stream *r) {
//         my_state *s = (my_state *)r->state; // zeroed; begins with a frame
//         VOLT_BEGIN(cx, s);
//         s->n = volt_nghttp2_respond(r, 200, fields, 0);
//         VOLT_AWAIT(s->n, volt_stream_write(cx, volt_nghttp2_body(r), "hello\n", 6));
//         VOLT_END(s->n); // the adapter ends the answer, or resets the stream after an error
//     }
//     volt_nghttp2_options o = { .handler = hello, .state_size = sizeof(my_state) };
//     volt_nghttp2_conn *c; // in the state of the task of a connection
//     rc = volt_nghttp2_open(&c, &o);
//     VOLT_AWAIT(rc, volt_nghttp2_serve(cx, c, peer));
//     volt_nghttp2_free(c);
//
// A client gives no handler, and makes requests while another task, or arm, awaits
// volt_nghttp2_serve. Any thread may use a request, with one read and one write of its body in
// progress at a time. The task of a request is cancelled when the peer resets its stream, or the
// session ends.
//
// Back-pressure: a body that is not read holds up its sender by the window of the stream, 64 KiB,
// and 16 such streams hold up the connection. A write waits while 16 KiB of its stream are unsent.
//
// Results: -ECONNRESET: the peer has reset the stream, or the session has ended.
#ifndef VOLT_NGHTTP2_HTTP_H
#define VOLT_NGHTTP2_HTTP_H

#include "volt_nghttp2_stream.h"

enum { VOLT_NGHTTP2_WINDOW_ALL = 16 * VOLT_NGHTTP2_WINDOW }; // of the connection

typedef struct volt_nghttp2_options {
    volt_poll (*handler)(volt_cx *cx, volt_nghttp2_stream *r); // *r is its own until it returns;
    size_t state_size;                                         // NULL: a client
    void *user;       // of the program: r->conn->o.user
    uint32_t streams; // of a server: the most at once; 0: 100
    volt_time limit;  // see volt_nghttp2: silent is a peer without a request
} volt_nghttp2_options;

// A connection.
struct volt_nghttp2_conn {
    volt_frame frame;
    volt_nghttp2_options o;
    volt_nghttp2 h;
    volt_group tasks;
    int64_t rc;
    volt_nghttp2_stream *streams; // under the lock
    int is_over;                  // under the lock
};
typedef struct volt_nghttp2__task {
    volt_frame frame;
    volt_token_link link;
    volt_nghttp2_stream *r;
    int64_t rc;
} volt_nghttp2__task;

// ---- requests and answers

// Under the lock.
static inline volt_nghttp2_stream *volt_nghttp2__stream(volt_nghttp2_conn *c) {
    volt_nghttp2_stream *r = (volt_nghttp2_stream *)calloc(1, sizeof *r + c->o.state_size);
    if (!r) return NULL;
    r->conn = c, r->h = &c->h, r->state = r + 1, r->refs = 1;
    r->next = c->streams, r->at = &c->streams;
    if (r->next) r->next->at = &r->next;
    return c->streams = r;
}

// Answers with fields: pairs of a name in small letters and a value, then NULL. is_last: without a
// body.
//   where  : any thread, once for each request
//   returns: 0 | -E2BIG for more than 63 fields | -EINVAL for a second answer | -ECONNRESET |
//            -ENOMEM
static inline int volt_nghttp2_respond(volt_nghttp2_stream *r, int status,
                                       const char *const *fields_or_null, int is_last) {
    char text[16];
    snprintf(text, sizeof text, "%03d", status);
    volt_nghttp2_lock(r->h);
    int rc = r->is_closed ? -ECONNRESET : r->is_answered ? -EINVAL
             : volt_nghttp2__submit(r, text, fields_or_null, is_last);
    volt_nghttp2_unlock(r->h);
    return rc;
}
// Makes a request of a client. The first fields are :method, :scheme, :authority and :path.
//   where  : any thread
//   returns: 0 with the request in *out, for volt_nghttp2_leave | as volt_nghttp2_respond
static inline int volt_nghttp2_request(volt_nghttp2_conn *c, volt_nghttp2_stream **out,
                                       const char *const *fields, int is_last) {
    volt_nghttp2_lock(&c->h);
    volt_nghttp2_stream *r = c->is_over ? NULL : volt_nghttp2__stream(c);
    int rc = c->is_over ? -ECONNRESET : !r ? -ENOMEM
             : volt_nghttp2__submit(r, NULL, fields, is_last);
    if (rc == 0) r->refs++, c->h.n_busy++, *out = r;
    else if (r) volt_nghttp2__closed(r);
    volt_nghttp2_unlock(&c->h);
    return rc;
}
// Leaves a request of a client. If its answer is not complete, the stream is reset.
//   where  : any thread, before volt_nghttp2_free
static inline void volt_nghttp2_leave(volt_nghttp2_stream *r) {
    volt_nghttp2_conn *c = r->conn;
    volt_nghttp2_lock(&c->h);
    int is_server = c->o.handler != NULL, is_complete = r->is_ended && (is_server || r->has_all);
    if (!r->is_closed && !is_complete)
        (void)nghttp2_submit_rst_stream(c->h.session, NGHTTP2_FLAG_NONE, r->id,
                                        is_server ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_CANCEL);
    if (!r->is_closed) (void)nghttp2_session_consume(c->h.session, r->id, r->in.to - r->in.from);
    r->in.from = r->in.to;
    c->h.n_busy--;
    volt_nghttp2__release(r);
    volt_nghttp2_unlock(&c->h);
}

// ---- callbacks of nghttp2, under the lock

static inline volt_poll volt_nghttp2__serve(volt_cx *cx, void *arg) {
    volt_nghttp2__task *t = (volt_nghttp2__task *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, volt_with_token(cx, &t->link, &t->r->gone, t->r->conn->o.handler(cx, t->r)));
    if (t->rc < 0) (void)volt_nghttp2_respond(t->r, 500, NULL, 1); // unless there is an answer
    else VOLT_AWAIT(volt_stream_end(cx, volt_nghttp2_body(t->r)));
    volt_nghttp2_leave(t->r);
    VOLT_END(0);
}
static inline volt_nghttp2_stream *volt_nghttp2__of(nghttp2_session *s, int32_t id) {
    return (volt_nghttp2_stream *)nghttp2_session_get_stream_user_data(s, id);
}
static inline int volt_nghttp2__header(nghttp2_session *s, const nghttp2_frame *f,
                                       const uint8_t *name, size_t n_name, const uint8_t *value,
                                       size_t n_value, uint8_t flags, void *conn) {
    volt_nghttp2_conn *c = (volt_nghttp2_conn *)conn;
    volt_nghttp2_stream *r = volt_nghttp2__of(s, f->hd.stream_id);
    (void)flags;
    // Tasks whose streams are reset count, too, until they have ended.
    if (!r && f->headers.cat == NGHTTP2_HCAT_REQUEST && c->h.n_busy < 2 * c->o.streams &&
        (r = volt_nghttp2__stream(c)) != NULL)
        r->id = f->hd.stream_id, nghttp2_session_set_stream_user_data(s, r->id, r);
    if (!r) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; // resets the stream
    if (r->is_headed) return 0; // trailers
    size_t n = r->n_head + n_name + n_value + 2;
    char *head = n <= VOLT_NGHTTP2_HEAD ? (char *)realloc(r->head, n) : NULL;
    if (!head) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    memcpy(head + r->n_head, name, n_name + 1); // both texts are terminated
    memcpy(head + r->n_head + n_name + 1, value, n_value + 1);
    r->head = head, r->n_head = n;
    return 0;
}
static inline int volt_nghttp2__data(nghttp2_session *s, uint8_t flags, int32_t id,
                                     const uint8_t *data, size_t len, void *conn) {
    volt_nghttp2_stream *r = volt_nghttp2__of(s, id);
    (void)flags, (void)conn;
    if (!r || r->refs == 1) return nghttp2_session_consume(s, id, len); // without a user
    volt_notify_all(&r->wake);
    // nghttp2 sees to it that there is not more than a window.
    return volt_nghttp2__put(&r->in, VOLT_NGHTTP2_WINDOW, data, len) == (int64_t)len
               ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}
static inline int volt_nghttp2__frame(nghttp2_session *s, const nghttp2_frame *f, void *conn) {
    volt_nghttp2_conn *c = (volt_nghttp2_conn *)conn;
    volt_nghttp2_stream *r = f->hd.stream_id ? volt_nghttp2__of(s, f->hd.stream_id) : NULL;
    volt_nghttp2__task task = { .r = r };
    if (!r || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)) return 0;
    if (f->hd.flags & NGHTTP2_FLAG_END_STREAM) r->has_all = 1;
    volt_notify_all(&r->wake);
    if (f->hd.type == NGHTTP2_DATA || r->is_headed) return 0;
    const char *status = volt_nghttp2_field(r, ":status");
    r->is_headed = c->o.handler || !status || *status != '1';
    if (!r->is_headed) r->n_head = 0; // 1xx: an answer follows
    if (!c->o.handler) return 0;
    if (VOLT_GROUP_SPAWN(c->h.cx, &c->tasks, volt_nghttp2__serve, task) < 0)
        return nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, r->id, NGHTTP2_REFUSED_STREAM);
    r->refs++, c->h.n_busy++;
    return 0;
}
static inline int volt_nghttp2__close(nghttp2_session *s, int32_t id, uint32_t error, void *conn) {
    volt_nghttp2_stream *r = volt_nghttp2__of(s, id);
    (void)error, (void)conn;
    if (r) volt_nghttp2__closed(r);
    return 0;
}

// ---- connections

// Frees a connection; NULL: does nothing. Requests of a client are left before.
static inline void volt_nghttp2_free(volt_nghttp2_conn *c) {
    if (!c) return;
    while (c->streams) volt_nghttp2__closed(c->streams);
    nghttp2_session_del(c->h.session);
    free(c);
}
// Makes a connection.
//   where  : any thread
//   returns: 0 | -ENOMEM
//   memory : about 45 KiB until volt_nghttp2_free; 16 KiB for each body that is sent, 64 KiB for
//            one that is received
static inline int volt_nghttp2_open(volt_nghttp2_conn **out, const volt_nghttp2_options *o) {
    volt_nghttp2_conn *c = (volt_nghttp2_conn *)calloc(1, sizeof *c);
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    nghttp2_settings_entry own = { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 };
    int rc = c ? nghttp2_session_callbacks_new(&calls) | nghttp2_option_new(&option) : -1;
    if (rc == 0) {
        c->o = *o, c->h.limit = o->limit;
        if (o->streams == 0) c->o.streams = 100;
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_session_callbacks_set_on_header_callback(calls, volt_nghttp2__header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, volt_nghttp2__data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(calls, volt_nghttp2__frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(calls, volt_nghttp2__close);
        rc = o->handler ? nghttp2_session_server_new2(&c->h.session, calls, c, option)
                        : nghttp2_session_client_new2(&c->h.session, calls, c, option);
    }
    if (o->handler && rc == 0)
        own.settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, own.value = c->o.streams;
    if (rc == 0) rc = nghttp2_submit_settings(c->h.session, NGHTTP2_FLAG_NONE, &own, 1);
    if (rc == 0)
        rc = nghttp2_session_set_local_window_size(c->h.session, NGHTTP2_FLAG_NONE, 0,
                                                   VOLT_NGHTTP2_WINDOW_ALL);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    if (rc == 0) *out = c;
    else volt_nghttp2_free(c);
    return rc == 0 ? 0 : -ENOMEM;
}
// Serves the connection until the session has ended, and then until the tasks of its requests have.
// volt_nghttp2_stop(&c->h) ends it in order.
//   returns: as volt_nghttp2_run, but -ECONNRESET in place of 0 if there were requests in progress
static inline VOLT_POLL volt_nghttp2_serve(volt_cx *cx, volt_nghttp2_conn *c, volt_stream peer) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_nghttp2_run(cx, &c->h, peer));
    volt_nghttp2_lock(&c->h);
    if (c->rc == 0 && c->streams) c->rc = -ECONNRESET;
    c->is_over = 1;
    while (c->streams) volt_nghttp2__closed(c->streams);
    volt_nghttp2_unlock(&c->h);
    VOLT_AWAIT(volt_group_close(cx, &c->tasks));
    VOLT_END(c->rc);
}
#endif
