// SPDX-License-Identifier: MIT OR 0BSD
// The operations of volt_tls.h, which includes it.
//
//   - A call of the library precedes each wait, and is repeated until it has asked the socket for
//     input in vain. So no wait misses records that the library has read ahead.
//   - What the socket does not take goes to a buffer, `out`. A write begins a record only when
//     `out` is empty, and waits until it is empty again. So the library never keeps half a record,
//     for which the call would have to be repeated with the same bytes: a cancelled write has taken
//     nothing, or returns the number of bytes that it has taken.
//   - A read may have output, such as the answer to a key update, and a write may need input. So
//     each wait is for what the call has asked for, and for room in the socket while `out` has
//     bytes. A write that is cancelled wakes the read, which then sends the rest; and an operation
//     that may have taken the input of the other wakes it.
//   - An error wakes the other operation. A write then waits for room no longer; a handshake or an
//     end still does, for its alert.
//   - `lock` is held during each call, and not while a task waits for the socket.
#ifndef VOLT_TLS_RUN_H
#define VOLT_TLS_RUN_H

// The most bytes in `out`; of output that is collected, so that a handshake has few packets. The
// most reads of the socket in a poll, and the most bytes of them, which is a whole record with its
// overhead: a library works through records without data, such as key updates, for as long as there
// are more, and other tasks must have their turn.
enum { VOLT_TLS__OUT_MOST = 262144, VOLT_TLS__COLLECTED = 4096, VOLT_TLS__GETS = 4,
       VOLT_TLS__GOT_MOST = VOLT_TLS_RECORD + 1024 };

// ---- input and output of the library, during a call of it, under the lock

// returns: the number of bytes | -EAGAIN | another error, also at the end: no close_notify came
static inline int64_t volt_tls__get(volt_tls *t, void *buf, size_t len) {
    size_t most = VOLT_TLS__GOT_MOST - t->n_got;
    t->is_spent = ++t->n_gets > VOLT_TLS__GETS || most == 0;
    int64_t n = t->is_spent ? -EAGAIN : volt_try_read(t->cx, t->fd, buf, len < most ? len : most);
    t->is_dry = n == -EAGAIN;
    if (n > 0) t->n_got += (size_t)n;
    if (n <= 0 && n != -EAGAIN) t->in_rc = n < 0 ? (int)n : -ECONNABORTED;
    return n == 0 ? -ECONNABORTED : n;
}
// Sends from `out` as much as the socket takes. After an error, which is the result of all writes,
// output is dropped; what the peer has sent before can be read.
static inline void volt_tls__send(volt_tls *t) {
    while (t->from < t->to && t->out_rc == 0) {
        int64_t n = volt_try_write(t->cx, t->fd, t->out + t->from, t->to - t->from);
        if (n == -EAGAIN) return;
        if (n < 0) t->out_rc = (int)n;
        else t->from += (size_t)n;
    }
    free(t->out);
    t->out = NULL, t->from = t->to = 0;
}
static inline void volt_tls__put(volt_tls *t, const void *data, size_t len) {
    int is_direct = t->to == 0 && len > VOLT_TLS__COLLECTED;
    int64_t n = is_direct ? volt_try_write(t->cx, t->fd, data, len) : 0;
    if (n < 0 && n != -EAGAIN) t->out_rc = (int)n;
    if (n > 0) data = (const char *)data + n, len -= (size_t)n;
    if (t->out_rc < 0 || len == 0) return;
    size_t size = t->to + len;
    void *out = size <= VOLT_TLS__OUT_MOST ? realloc(t->out, size) : NULL;
    if (!out) t->rc = -ENOMEM;
    if (!out) return;
    t->out = (unsigned char *)out;
    memcpy(t->out + t->to, data, len);
    t->to = size;
}

// ---- calls of the library, under the lock

// returns: the result of an operation without a call | 1: a call is necessary
static inline int64_t volt_tls__early(const volt_tls *t, volt_tls__kind kind, size_t len) {
    if (t->rc < 0) return t->rc; // the libraries forbid calls after an error
    if (kind == VOLT_TLS__HANDSHAKE) return !t->is_open;
    if (kind == VOLT_TLS__END) return t->is_open && !t->has_ended;
    if (!t->is_open) return -ENOTCONN;
    if (len == 0 && kind != VOLT_TLS__READY) return 0;
    if (kind != VOLT_TLS__WRITE) return !t->is_over;
    return t->has_ended ? -EPIPE : 1;
}
// An error ends the connection.
static inline int64_t volt_tls__call(volt_tls *t, volt_tls__kind kind, void *buf, size_t len) {
    const char *why = NULL; // the library's, in t->why
    int64_t n = volt_tls__early(t, kind, len);
    if (n != 1) return n;
    do {
        t->is_dry = 0;
        n = t->context->library->call(t, kind, buf, len);
        volt_tls__send(t);
    } while (n == -EAGAIN && !t->is_dry && t->rc == 0);
    if (n == -EAGAIN && t->rc == 0) return n;
    int cause = t->rc < 0 ? t->rc : n < 0 ? t->in_rc : 0; // beneath the library
    if (cause < 0) n = cause, why = volt_strerror(cause);
    if (cause == -ECONNABORTED) why = t->is_open ? "the peer has ended without a close_notify"
                                                 : "the peer has ended in the handshake";
    int is_done = n >= 0 && kind == VOLT_TLS__HANDSHAKE;
    if (is_done && t->context->has_alpn && !t->protocol[0])
        n = -EPROTONOSUPPORT, why = "no protocol was agreed on";
    if (why) snprintf(t->why, sizeof t->why, "%s", why);
    if (n < 0) return t->rc = (int)n;
    t->is_open |= is_done;
    t->has_ended |= kind == VOLT_TLS__END;
    return n;
}
// Makes the call, unless the operation has its result, and sends.
//   returns: 1 if the operation is complete | 0 if it has to wait
static inline int volt_tls__step(volt_cx *cx, volt_tls *t, volt_tls__op *op, volt_tls__kind kind,
                                 void *buf, size_t len) {
    t->cx = cx;
    op->wants = 0;
    t->n_gets = 0, t->n_got = 0, t->is_spent = 0;
    volt_tls__send(t);
    if (op->n == -EAGAIN && (kind < VOLT_TLS__WRITE || t->to == 0)) {
        op->n = volt_tls__call(t, kind, buf, len);
        if (op->n == -EAGAIN && t->is_dry) op->wants = VOLT_IN;
        const volt_tls__op *other = op == &t->reading ? &t->writing : &t->reading;
        int has_taken = other->wants & VOLT_IN && (op == &t->reading || t->n_got > 0);
        if (t->rc < 0 || has_taken) volt_notify_all(&t->wake);
    }
    if (kind >= VOLT_TLS__WRITE && op->n >= 0 && t->out_rc < 0) op->n = t->out_rc;
    int is_in_vain = kind == VOLT_TLS__WRITE && t->to > 0 && t->rc < 0;
    if (is_in_vain) op->n = t->rc;
    if (t->to > 0) op->wants |= VOLT_OUT;
    op->is_cut = op->n == -EAGAIN && t->is_spent;
    op->seen = volt_notify_count(&t->wake);
    return op->n != -EAGAIN && (kind < VOLT_TLS__HANDSHAKE || t->to == 0 || is_in_vain);
}

// ---- operations

static inline VOLT_POLL volt_tls__run(volt_cx *cx, volt_tls *t, volt_tls__kind kind, void *buf,
                                      size_t len) {
    volt_tls__op *const op = kind < VOLT_TLS__HANDSHAKE ? &t->reading : &t->writing;
    VOLT_BEGIN(cx, op);
    op->n = -EAGAIN;
    for (;;) {
        VOLT_AWAIT(op->rc, volt_mutex_lock(cx, &t->lock)); // also counts against the budget
        if (op->rc < 0) break;
        op->rc = volt_tls__step(cx, t, op, kind, buf, len);
        volt_mutex_unlock(&t->lock);
        if (op->rc) VOLT_RETURN(op->n);
        if (op->is_cut) {
            VOLT_AWAIT(op->rc, volt_yield(cx));
            if (op->rc < 0) break;
            continue;
        }
        VOLT_AWAIT(op->rc, VOLT_SELECT(
            VOLT_ARM(&op->in, op->wants & VOLT_IN ? volt_read_ready(cx, t->fd)
                                                  : volt_sleep_forever(cx)),
            VOLT_ARM(&op->out, op->wants & VOLT_OUT ? volt_write_ready(cx, t->fd)
                                                    : volt_sleep_forever(cx)),
            VOLT_ARM(&op->woken, volt_notify_wait_past(cx, &t->wake, op->seen))));
        if (op->rc >= 0) op->rc = op->in.fired ? op->in.value : op->out.fired ? op->out.value : 0;
        if (op->rc < 0) break;
    }
    volt_notify_all(&t->wake);
    // Only a write has taken bytes; a handshake or an end is complete when its output is sent.
    VOLT_END(op->n == -EAGAIN || op->n == 0 ? op->rc : op->n);
}
static inline VOLT_POLL volt_tls__read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return volt_tls__run(cx, (volt_tls *)s.self, VOLT_TLS__READ, buf, len);
}
static inline VOLT_POLL volt_tls__ready(volt_cx *cx, volt_stream s) {
    return volt_tls__run(cx, (volt_tls *)s.self, VOLT_TLS__READY, NULL, 0);
}
static inline VOLT_POLL volt_tls__write(volt_cx *cx, volt_stream s, const void *buf, size_t len) {
    return volt_tls__run(cx, (volt_tls *)s.self, VOLT_TLS__WRITE, (void *)(uintptr_t)buf, len);
}
// The socket is shut down behind the close_notify, which is the last that is written.
static inline VOLT_POLL volt_tls__end(volt_cx *cx, volt_stream s) {
    volt_tls *t = (volt_tls *)s.self;
    volt_poll p = volt_tls__run(cx, t, VOLT_TLS__END, NULL, 0);
    if (!volt_is_pending(p) && volt_value(p) == 0) volt_sock_shutdown(t->fd, SHUT_WR);
    return p;
}
#endif
