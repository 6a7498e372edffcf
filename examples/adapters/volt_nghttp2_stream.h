// SPDX-License-Identifier: MIT OR 0BSD
// A stream of a volt_nghttp2 session: the fields that have come, and its two bodies as a
// volt_stream. Part of volt_nghttp2_http.h, which makes the streams.
//
// nghttp2 and the user of the stream, a task, hold a reference each: a stream may be closed while
// its task still works, and its body may be on the way when the task has ended. A body that is
// received goes to a buffer of the size of its window, which is granted again as the user reads. A
// body to be sent goes to a buffer of 16 KiB, from which nghttp2 takes it for frames.
#ifndef VOLT_NGHTTP2_STREAM_H
#define VOLT_NGHTTP2_STREAM_H

#include "volt_nghttp2.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// The most bytes of fields that are received; the most fields that are sent.
enum { VOLT_NGHTTP2_HEAD = 16384, VOLT_NGHTTP2_FIELDS = 64, VOLT_NGHTTP2_WINDOW = 65535 };

typedef struct volt_nghttp2_conn volt_nghttp2_conn;
typedef struct volt_nghttp2_stream volt_nghttp2_stream;
typedef struct volt_nghttp2__room {
    unsigned char *buf;
    size_t from, to;
} volt_nghttp2__room;
typedef struct volt_nghttp2__op {
    volt_frame frame;
    uint32_t seen;
    int64_t n;
} volt_nghttp2__op;
// A request with its answer. The state of the handler follows, for which malloc(3) aligns.
struct __attribute__((aligned(__alignof__(max_align_t)))) volt_nghttp2_stream {
    volt_nghttp2_conn *conn;
    volt_nghttp2 *h;
    void *state; // of the handler
    volt_token gone;
    volt_notify wake;
    volt_nghttp2__op reading, writing;
    // under the lock
    volt_nghttp2_stream *next, **at; // in the list of those that nghttp2 knows
    int32_t id;
    unsigned refs;          // of nghttp2, and of the user
    int is_headed, has_all; // of the peer: the fields, and the whole body, have come
    int is_answered, is_ended, is_closed;
    char *head; // pairs of texts
    size_t n_head;
    volt_nghttp2__room in, out;
};

// ---- streams, under the lock

// Puts bytes in. Returns their number, fewer than len if there is no room for more, or -ENOMEM.
static inline int64_t volt_nghttp2__put(volt_nghttp2__room *b, size_t cap, const void *data,
                                        size_t len) {
    if (!b->buf && !(b->buf = (unsigned char *)malloc(cap))) return -ENOMEM;
    memmove(b->buf, b->buf + b->from, b->to - b->from);
    b->to -= b->from, b->from = 0;
    if (len > cap - b->to) len = cap - b->to;
    memcpy(b->buf + b->to, data, len);
    b->to += len;
    return (int64_t)len;
}
static inline size_t volt_nghttp2__take(volt_nghttp2__room *b, void *data, size_t len) {
    if (len > b->to - b->from) len = b->to - b->from;
    if (len > 0) memcpy(data, b->buf + b->from, len);
    b->from += len;
    return len;
}
static inline void volt_nghttp2__release(volt_nghttp2_stream *r) {
    if (--r->refs == 0) free(r->head), free(r->in.buf), free(r->out.buf), free(r);
}
// nghttp2 does not know the stream any more.
static inline void volt_nghttp2__closed(volt_nghttp2_stream *r) {
    if (r->next) r->next->at = r->at;
    *r->at = r->next, r->is_closed = 1;
    (void)nghttp2_session_consume_connection(r->h->session, r->in.to - r->in.from);
    if (!r->has_all || !r->is_ended) volt_token_cancel(&r->gone);
    volt_notify_all(&r->wake);
    volt_nghttp2__release(r);
}
// Copies the next bytes of a body into a frame.
static inline ssize_t volt_nghttp2__send_body(nghttp2_session *s, int32_t id, uint8_t *buf,
                                              size_t len, uint32_t *flags,
                                              nghttp2_data_source *source, void *conn) {
    volt_nghttp2_stream *r = (volt_nghttp2_stream *)source->ptr;
    size_t n = volt_nghttp2__take(&r->out, buf, len);
    (void)s, (void)id, (void)conn;
    volt_notify_all(&r->wake);
    if (r->is_ended && r->out.from == r->out.to) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return n > 0 || r->is_ended ? (ssize_t)n : (ssize_t)NGHTTP2_ERR_DEFERRED;
}
// Submits the fields of a request or, with a status, of an answer.
static inline int volt_nghttp2__submit(volt_nghttp2_stream *r, const char *status_or_null,
                                       const char *const *fields, int is_last) {
    const char *const status[] = { ":status", status_or_null, NULL };
    const char *const *at = status_or_null ? status : fields;
    nghttp2_session *s = r->h->session;
    nghttp2_nv nv[VOLT_NGHTTP2_FIELDS];
    nghttp2_data_provider source, *body = is_last ? NULL : &source;
    int n = 0, rc;
    memset(nv, 0, sizeof nv);
    source.source.ptr = r, source.read_callback = volt_nghttp2__send_body;
    for (; n < VOLT_NGHTTP2_FIELDS && at && *at; at = n == 1 && status_or_null ? fields : at + 2) {
        nv[n].name = (uint8_t *)(uintptr_t)at[0], nv[n].namelen = strlen(at[0]);
        nv[n].value = (uint8_t *)(uintptr_t)at[1], nv[n++].valuelen = strlen(at[1]);
    }
    if (at && *at) return -E2BIG;
    rc = status_or_null ? nghttp2_submit_response(s, r->id, nv, (size_t)n, body)
                        : nghttp2_submit_request(s, NULL, nv, (size_t)n, body, r);
    if (rc < 0) return rc == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EINVAL;
    if (!status_or_null) r->id = rc;
    r->is_answered = 1, r->is_ended = is_last;
    return 0;
}

// ---- fields and bodies

// The first value of a field of the peer, such as ":path", or NULL.
//   where  : a server: in the handler. A client: after volt_nghttp2_status
static inline const char *volt_nghttp2_field(const volt_nghttp2_stream *r, const char *name) {
    const char *at = r->head, *const end = at + r->n_head;
    for (; at < end; at += strlen(at) + 1) {
        int is_it = strcmp(at, name) == 0;
        at += strlen(at) + 1;
        if (is_it) return at;
    }
    return NULL;
}
enum { VOLT_NGHTTP2__STATUS, VOLT_NGHTTP2__READY, VOLT_NGHTTP2__READ, VOLT_NGHTTP2__WRITE };
// Under the lock. Returns the result, or -EAGAIN.
static inline int64_t volt_nghttp2__step(volt_nghttp2_stream *r, int kind, void *buf, size_t len) {
    nghttp2_session *s = r->h->session;
    int is_read = kind == VOLT_NGHTTP2__READ || kind == VOLT_NGHTTP2__READY;
    int64_t n = 0;
    if (kind == VOLT_NGHTTP2__STATUS && r->is_headed)
        return atoi(volt_nghttp2_field(r, ":status"));
    if (is_read && r->in.from < r->in.to) {
        if (kind == VOLT_NGHTTP2__READ) n = (int64_t)volt_nghttp2__take(&r->in, buf, len);
        if (!r->is_closed) (void)nghttp2_session_consume(s, r->id, (size_t)n);
        return n;
    }
    if (is_read && r->has_all) return 0;
    if (kind == VOLT_NGHTTP2__WRITE && (!r->is_answered || r->is_ended)) return -EPIPE;
    if (r->is_closed) return -ECONNRESET;
    if (kind != VOLT_NGHTTP2__WRITE) return -EAGAIN;
    n = volt_nghttp2__put(&r->out, VOLT_NGHTTP2_ROOM, buf, len);
    if (n > 0) (void)nghttp2_session_resume_data(s, r->id);
    return n == 0 && len > 0 ? -EAGAIN : n;
}
static inline VOLT_POLL volt_nghttp2__run(volt_cx *cx, volt_nghttp2_stream *r, int kind, void *buf,
                                          size_t len) {
    volt_nghttp2__op *const op = kind == VOLT_NGHTTP2__WRITE ? &r->writing : &r->reading;
    VOLT_BEGIN(cx, op);
    op->n = volt_is_cancelled(cx) ? -ECANCELED : 0;
    while (op->n == 0) {
        volt_nghttp2_lock(r->h);
        op->seen = volt_notify_count(&r->wake);
        op->n = volt_nghttp2__step(r, kind, buf, len);
        if (op->n == -EAGAIN) pthread_mutex_unlock(&r->h->lock); // there is nothing to send
        else volt_nghttp2_unlock(r->h);
        if (op->n != -EAGAIN) break;
        VOLT_AWAIT(op->n, volt_notify_wait_past(cx, &r->wake, op->seen));
    }
    VOLT_END(op->n);
}
static inline volt_poll volt_nghttp2__read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return volt_nghttp2__run(cx, (volt_nghttp2_stream *)s.self, VOLT_NGHTTP2__READ, buf, len);
}
static inline volt_poll volt_nghttp2__write(volt_cx *cx, volt_stream s, const void *p, size_t len) {
    return volt_nghttp2__run(cx, (volt_nghttp2_stream *)s.self, VOLT_NGHTTP2__WRITE,
                             (void *)(uintptr_t)p, len);
}
static inline volt_poll volt_nghttp2__ready(volt_cx *cx, volt_stream s) {
    return volt_nghttp2__run(cx, (volt_nghttp2_stream *)s.self, VOLT_NGHTTP2__READY, NULL, 0);
}
static inline volt_poll volt_nghttp2__end(volt_cx *cx, volt_stream s) {
    volt_nghttp2_stream *r = (volt_nghttp2_stream *)s.self;
    (void)cx;
    volt_nghttp2_lock(r->h);
    int rc = r->is_ended ? 0 : r->is_closed ? -ECONNRESET : r->is_answered ? 0 : -EPIPE;
    r->is_ended |= rc == 0;
    if (!r->is_closed) (void)nghttp2_session_resume_data(r->h->session, r->id);
    volt_nghttp2_unlock(r->h);
    return volt_ready(rc);
}
// The body of the peer for reads, and the own one for writes, after the answer or the request. A
// write takes at most 16 KiB. volt_stream_end completes the own body, without a wait.
//   where  : any thread; may stand in an await
static inline volt_stream volt_nghttp2_body(volt_nghttp2_stream *r) {
    static const volt_stream_ops ops = { volt_nghttp2__read, volt_nghttp2__write,
                                         volt_nghttp2__end, volt_nghttp2__ready };
    volt_stream s = { &ops, r, -1 };
    return s;
}
// Waits for the fields of an answer.
//   returns: the status | -ECONNRESET
static inline VOLT_POLL volt_nghttp2_status(volt_cx *cx, volt_nghttp2_stream *r) {
    return volt_nghttp2__run(cx, r, VOLT_NGHTTP2__STATUS, NULL, 0);
}
#endif
