// SPDX-License-Identifier: MIT OR 0BSD
// An HTTP/2 session of nghttp2 over any volt_stream, such as a descriptor or a TLS connection.
// Include it behind volt.h and link with -lnghttp2. volt_nghttp2_http.h builds on it: a task for
// each request, and bodies as streams. A program that has callbacks of its own needs this alone:
//
//     volt_nghttp2 h = { .limit = VOLT_S(60) }; // in the state of the task of the connection
//     nghttp2_session_server_new2(&h.session, callbacks, user, option);
//     nghttp2_submit_settings(h.session, NGHTTP2_FLAG_NONE, settings, n);
//     VOLT_AWAIT(rc, volt_nghttp2_run(cx, &h, peer));
//     nghttp2_session_del(h.session);
//
// The session reads and writes at the same time. The frames of nghttp2 go to a buffer of 17 KiB,
// and from there to the stream; while the stream takes nothing, nghttp2 is asked for nothing. So it
// takes bodies from their sources only as fast as the peer reads. A peer that makes a server answer
// again and again, and does not read, is left: when 1000 answers to pings or settings wait, or
// VOLT_NGHTTP2_WAITING frames other than bodies, such as resets of streams that are refused. While
// a peer has more to be read, other tasks have their turns in between.
//
// nghttp2 has no locks. The session has one, which it holds during each call of nghttp2 and in no
// wait: callbacks run under it. Other tasks take it by volt_nghttp2_lock, submit something or
// resume a body, and give it back by volt_nghttp2_unlock, which has the session send that.
#ifndef VOLT_NGHTTP2_H
#define VOLT_NGHTTP2_H

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <string.h>

// The most bytes of a body in a frame, and of its header and others with it.
enum { VOLT_NGHTTP2_ROOM = 16384, VOLT_NGHTTP2_EXTRA = 1024 };
// Must be well above the streams at once, each of which may have a few.
#ifndef VOLT_NGHTTP2_WAITING
#  define VOLT_NGHTTP2_WAITING 10000
#endif
// The bytes of the peer between two turns of other tasks: header blocks that are made to be slow
// take some 25 ns for each, which is 3 ms.
enum { VOLT_NGHTTP2__TURN = 131072 };

typedef struct volt_nghttp2__way {
    volt_frame frame;
    volt_timer limit;
    size_t from, to; // reading: 0, and the bytes since the last turn of other tasks
    int64_t n;
    unsigned char buf[VOLT_NGHTTP2_ROOM + VOLT_NGHTTP2_EXTRA];
} volt_nghttp2__way;
// A session. Zero-valid. Must not be moved while it runs.
typedef struct volt_nghttp2 {
    volt_frame frame;
    // set by the program
    nghttp2_session *session;
    volt_time limit; // for a peer that takes nothing, or is silent while n_busy is 0; 0: no limit
    unsigned n_busy; // under the lock: requests in progress, for example
    // for callbacks: the poll in which they are called, so that they can spawn
    volt_cx *cx;
    // private
    volt_stream peer;
    pthread_mutex_t lock;
    volt_notify wake; // there may be something to send
    volt_arm in, out;
    volt_nghttp2__way reading, writing;
    const uint8_t *chunk; // of nghttp2_session_mem_send: n_chunk bytes that are not in the buffer
    size_t n_chunk;
    int is_stopping, is_cut; // is_cut: the stream takes no more
    int64_t rc;
} volt_nghttp2;

// Takes the lock of the session, and gives it back.
//   where  : any thread, with no await between the two
static inline void volt_nghttp2_lock(volt_nghttp2 *h) { pthread_mutex_lock(&h->lock); }
static inline void volt_nghttp2_unlock(volt_nghttp2 *h) {
    pthread_mutex_unlock(&h->lock);
    volt_notify_one(&h->wake);
}
static inline void volt_nghttp2__goaway(volt_nghttp2 *h) {
    (void)nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(h->session),
                                NGHTTP2_NO_ERROR, NULL, 0);
    h->is_stopping = 1;
}
// Ends the session in order: the peer may open no more streams, and volt_nghttp2_run returns when
// those that are open are closed.
//   where  : any thread, while the session exists
static inline void volt_nghttp2_stop(volt_nghttp2 *h) {
    volt_nghttp2_lock(h);
    volt_nghttp2__goaway(h);
    volt_nghttp2_unlock(h);
}
static inline int volt_nghttp2__errno(ssize_t rc) {
    return rc >= 0 ? 0 : rc == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
}
// Ends a session whose peer is silent. Returns -ETIMEDOUT if that has been done in vain.
static inline int volt_nghttp2__silent(volt_nghttp2 *h) {
    volt_nghttp2_lock(h);
    int is_idle = h->n_busy == 0, rc = is_idle && h->is_stopping ? -ETIMEDOUT : 0;
    if (is_idle) volt_nghttp2__goaway(h);
    volt_nghttp2_unlock(h);
    return rc;
}
// Passes bytes of the peer on, under the lock. The requests of a client may wait in any number.
static inline int volt_nghttp2__recv(volt_nghttp2 *h, const unsigned char *bytes, size_t n) {
    int rc = volt_nghttp2__errno(nghttp2_session_mem_recv(h->session, bytes, n));
    int is_flood = nghttp2_session_check_server_session(h->session) &&
                   nghttp2_session_get_outbound_queue_size(h->session) > VOLT_NGHTTP2_WAITING;
    return rc == 0 && is_flood ? -EPROTO : rc;
}
static inline volt_poll volt_nghttp2__read_all(volt_cx *cx, volt_nghttp2 *h) {
    volt_nghttp2__way *const w = &h->reading;
    VOLT_BEGIN(cx, w);
    w->to = 0;
    do {
        VOLT_AWAIT(w->n, volt_within(cx, &w->limit, h->limit > 0 ? h->limit : VOLT_NEVER,
                                     volt_stream_read(cx, h->peer, w->buf, sizeof w->buf)));
        if (w->n > 0) {
            w->to += (size_t)w->n;
            volt_nghttp2_lock(h);
            h->cx = cx;
            w->n = volt_nghttp2__recv(h, w->buf, (size_t)w->n);
            volt_nghttp2_unlock(h);
            if (w->n == 0 && w->to >= VOLT_NGHTTP2__TURN) {
                w->to = 0;
                VOLT_AWAIT(w->n, volt_yield(cx));
            }
        } else if (w->n == -ETIMEDOUT && volt_timer_fired(&w->limit)) {
            w->n = volt_nghttp2__silent(h);
        } else if (w->n == 0) {
            break;
        }
    } while (w->n == 0);
    VOLT_END(w->n);
}
// Fills the buffer, under the lock.
//   returns: 0 | 1: the session is complete | -errno
static inline int volt_nghttp2__fill(volt_nghttp2 *h, volt_nghttp2__way *w) {
    for (w->from = w->to = 0; w->to < sizeof w->buf;) {
        size_t n = sizeof w->buf - w->to;
        if (h->n_chunk == 0) {
            ssize_t len = nghttp2_session_mem_send(h->session, &h->chunk);
            if (len < 0) return volt_nghttp2__errno(len);
            if (len == 0) break;
            h->n_chunk = (size_t)len;
        }
        if (n > h->n_chunk) n = h->n_chunk;
        memcpy(w->buf + w->to, h->chunk, n);
        w->to += n, h->chunk += n, h->n_chunk -= n;
    }
    return w->to == 0 && !nghttp2_session_want_read(h->session);
}
static inline volt_poll volt_nghttp2__write_all(volt_cx *cx, volt_nghttp2 *h) {
    volt_nghttp2__way *const w = &h->writing;
    VOLT_BEGIN(cx, w);
    for (;;) {
        volt_nghttp2_lock(h);
        h->cx = cx;
        w->n = volt_nghttp2__fill(h, w);
        pthread_mutex_unlock(&h->lock);
        if (w->n != 0) break;
        if (w->to == 0) VOLT_AWAIT(w->n, volt_notify_wait(cx, &h->wake));
        while (w->n >= 0 && w->from < w->to) {
            VOLT_AWAIT(w->n, volt_within(cx, &w->limit, h->limit > 0 ? h->limit : VOLT_NEVER,
                                         volt_stream_write(cx, h->peer, w->buf + w->from,
                                                           w->to - w->from)));
            if (w->n > 0) w->from += (size_t)w->n;
        }
        h->is_cut = w->n < 0 && w->n != -ETIMEDOUT;
        if (w->n < 0) break;
    }
    VOLT_END(w->n < 0 ? w->n : 0);
}
// Serves the session until it has ended, or the peer has ended the stream, which stays open.
// Callbacks of nghttp2 are called in this task alone, and under the lock.
//   returns: 0 if the session has ended in order, or the peer has ended the stream | -EPROTO: the
//            peer has broken the protocol beyond an answer | -ETIMEDOUT: the peer has taken nothing
//            for the limit, or has not ended after a stop | -ENOMEM | the errors of the stream
//   memory : 34 KiB of buffers are in *h
static inline VOLT_POLL volt_nghttp2_run(volt_cx *cx, volt_nghttp2 *h, volt_stream peer) {
    VOLT_BEGIN(cx, h);
    h->peer = peer;
    VOLT_AWAIT(h->rc, VOLT_SELECT(VOLT_ARM(&h->in, volt_nghttp2__read_all(cx, h)),
                                  VOLT_ARM(&h->out, volt_nghttp2__write_all(cx, h))));
    if (h->rc >= 0) h->rc = h->in.fired ? h->in.value : h->out.value;
    // Input that came before the peer has closed its end can be read, such as an early answer.
    if (h->is_cut && !h->in.fired)
        VOLT_AWAIT(volt_within(cx, &h->writing.limit, 0, volt_nghttp2__read_all(cx, h)));
    VOLT_END(h->rc);
}
#endif
