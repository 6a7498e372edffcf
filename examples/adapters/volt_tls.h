// SPDX-License-Identifier: MIT OR 0BSD
// TLS over a connected socket as a volt_stream: the part that is the same with each library. The
// adapter of a library includes it: volt_openssl.h or volt_mbedtls.h. For use, see tls_echo.h:
//
//     volt_tls_context x; // one for all clients. Only the init depends on the library
//     volt_openssl_init(&x, &(volt_tls_options){ .alpn = "http/1.1" });
//     volt_tls *t;        // in the state of the task
//     volt_tls_open(&t, &x, fd, "example.org");
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(10), volt_tls_handshake(cx, t)));
//     VOLT_AWAIT(n, volt_stream_write(cx, volt_tls_stream(t), buf, len));
//     volt_tls_close(cx, t);
//
// Readers, writers, copies and relays of volt.h use the stream. One read and one write may be in
// progress at the same time, in two tasks or in two arms. Functions without a volt_cx may be called
// by any thread, those on one connection by one at a time. Time limits are the caller's; the
// handshake needs one, too, since the peer may be silent. Versions below TLS 1.2 and renegotiation
// are refused. A client checks the certificate of the server, and that it is for the name; both
// sides must agree on a protocol (ALPN).
//
// Results beside those of the socket; t->why has the text. After an error of the handshake or of a
// read the connection gives that error again, and can only be closed.
//   -ECONNABORTED     the peer has ended the connection without a close_notify: data may be
//                     missing. A close_notify is the clean end, a read of 0
//   -EKEYREJECTED     the certificate of the peer is not trusted, or not for this name
//   -EPROTONOSUPPORT  there is no common protocol
//   -EPROTO           another error of TLS, such as an alert of the peer
//   -ENOTCONN         a read or write before the handshake
//   -EPIPE            a write behind the end, or after the peer has closed the socket
//   -ENOMEM           also if a peer makes the library answer again and again, and does not read
//
// The design:
//   - A call of the library precedes each wait, and is repeated until it has asked the socket for
//     input in vain. So no wait misses records that the library has read ahead.
//   - What the socket does not take goes to a buffer, `out`. A write begins a record only when
//     `out` is empty, and waits until it is empty again. So the library never keeps half a record,
//     for which the call would have to be repeated with the same bytes: a cancelled write has taken
//     nothing, or returns the number of bytes that it has taken.
//   - A read may have output, such as the answer to a key update, and a write may need input. So
//     each wait is for what the call has asked for, and for room in the socket while `out` has
//     bytes. A write that is cancelled wakes the read, which then sends the rest; and a read wakes
//     a write whose input it may have taken.
//   - `lock` is held during each call, and not while a task waits for the socket.
#ifndef VOLT_TLS_H
#define VOLT_TLS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The most bytes of a record; of the names of protocols; of the text of an error.
enum { VOLT_TLS_RECORD = 16384, VOLT_TLS_ALPN = 128, VOLT_TLS_WHY = 160 };
// The most bytes in `out`; of output that is collected, so that a handshake has few packets.
enum { VOLT_TLS__OUT_MOST = 262144, VOLT_TLS__COLLECTED = 4096 };

typedef struct volt_tls_options {
    int is_server;
    const char *chain, *key; // PEM files: certificate with its chain, and key. A server has both
    const char *authorities; // PEM file. NULL: a client trusts the system's; a server does not ask
                             // for a certificate
    const char *alpn;        // protocols, the preferred one first: "h2,http/1.1". "": without ALPN
} volt_tls_options;

typedef struct volt_tls volt_tls;
// The kinds of operations. Those from HANDSHAKE on wait until their output is sent; those from
// WRITE on make their call only when `out` is empty.
typedef enum { VOLT_TLS__READ, VOLT_TLS__READY, VOLT_TLS__HANDSHAKE, VOLT_TLS__WRITE,
               VOLT_TLS__END } volt_tls__kind;
// The functions of a library. None waits. `open` makes t->impl; `save` and `resume` are for the
// session of a client; `call` makes one call for an operation:
//   returns: the result | -EAGAIN: it needs input | another error, whose text is in t->why
typedef struct volt_tls_library {
    int (*open)(volt_tls *t);
    int64_t (*call)(volt_tls *t, volt_tls__kind kind, void *buf, size_t len);
    int64_t (*save)(volt_tls *t, void *buf, size_t cap);
    int (*resume)(volt_tls *t, const void *buf, size_t len);
    void (*close)(volt_tls *t);
    void (*free)(void *impl); // of a context
} volt_tls_library;

// The common part of connections, for any number of threads once it is made.
typedef struct volt_tls_context {
    const volt_tls_library *library;
    void *impl; // the library's
    int is_server, has_alpn;
    char why[VOLT_TLS_WHY]; // the reason why it could not be made
} volt_tls_context;

// The state of an operation.
typedef struct volt_tls__op {
    volt_frame frame;
    volt_arm in, out, woken;
    uint32_t wants, seen; // VOLT_IN, VOLT_OUT: what its wait is for; the count of `wake` before it
    int64_t n, rc;        // the result of the call, -EAGAIN: none yet; that of the wait
} volt_tls__op;

// A connection.
struct volt_tls {
    const volt_tls_context *context;
    void *impl; // the library's: an SSL of OpenSSL, an mbedtls_ssl_context
    int fd;
    int is_resumed;               // set by the handshake of a client: volt_tls_resume has worked
    char protocol[VOLT_TLS_ALPN]; // that was agreed on, set by the handshake; "": none
    volt_tls__op reading, writing; // of the one read; of the one write, end or handshake
    volt_notify wake;              // the other operation must look again
    volt_mutex lock;
    // under lock
    volt_cx *cx;            // of the poll in which a call of the library is made
    int is_open;            // the handshake is complete
    int is_dry;             // the last read of the socket gave -EAGAIN
    int has_ended, is_over; // the own end is sent; the end of the peer was read
    int in_rc, out_rc, rc;  // the error that ended reading the socket, writing it, all; or 0
    char why[VOLT_TLS_WHY]; // its text, which may be read while no operation is in progress; or ""
    unsigned char *out;     // NULL if there is nothing to be sent
    size_t from, to;        // the bytes in `out` that are not sent
    char name[];            // of the server; "": this is one
};

// ---- input and output of the library, during a call of it, under the lock

// returns: the number of bytes | -EAGAIN | another error, also at the end: no close_notify came
static inline int64_t volt_tls__get(volt_tls *t, void *buf, size_t len) {
    int64_t n = volt_try_read(t->cx, t->fd, buf, len);
    t->is_dry = n == -EAGAIN;
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
    volt_tls__send(t);
    if (op->n == -EAGAIN && (kind < VOLT_TLS__WRITE || t->to == 0)) {
        op->n = volt_tls__call(t, kind, buf, len);
        if (op->n == -EAGAIN && t->is_dry) op->wants = VOLT_IN;
        if (op == &t->reading && t->writing.wants & VOLT_IN) volt_notify_all(&t->wake);
    }
    if (kind >= VOLT_TLS__WRITE && op->n >= 0 && t->out_rc < 0) op->n = t->out_rc;
    if (t->to > 0) op->wants |= VOLT_OUT;
    op->seen = volt_notify_count(&t->wake);
    return op->n != -EAGAIN && (kind < VOLT_TLS__HANDSHAKE || t->to == 0);
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
    if (!volt_is_pending(p) && volt_value(p) == 0) volt_sock_shutdown(t->fd, 0, 1);
    return p;
}

// ---- connections

// Frees a context whose connections are closed. Does nothing for a zeroed one.
static inline void volt_tls_context_free(volt_tls_context *x) {
    if (x->impl) x->library->free(x->impl);
    x->impl = NULL;
}
// For the init of a library: checks the options, and makes x->impl, zeroed.
static inline int volt_tls__begin(volt_tls_context *x, const volt_tls_options *o,
                                  const volt_tls_library *library, size_t size) {
    const char *a = o->alpn, *end = a ? strrchr(a, ',') : NULL;
    memset(x, 0, sizeof *x);
    x->library = library, x->is_server = o->is_server;
    if (!a || strlen(a) >= VOLT_TLS_ALPN || *a == ',' || strstr(a, ",,") || (end && !end[1]))
        return snprintf(x->why, sizeof x->why, "no list of protocols"), -EINVAL;
    if (!o->chain != !o->key || (o->is_server && !o->chain))
        return snprintf(x->why, sizeof x->why, "a certificate or key is missing"), -EINVAL;
    x->has_alpn = a[0] != 0;
    x->impl = calloc(1, size);
    return x->impl ? 0 : -ENOMEM;
}
// Makes a connection over a connected socket. name_or_null: a client gives the name of the server,
// or its address; a server gives NULL.
//   returns: 0 | -EINVAL without a name, or for one that cannot be | -ENOMEM
//   memory : allocates about 1 KiB and what the library takes, until volt_tls_close. The descriptor
//            is the connection's, unless there was an error. The context must outlive it
static inline int volt_tls_open(volt_tls **out, const volt_tls_context *x, int fd,
                                const char *name_or_null) {
    const char *name = name_or_null ? name_or_null : "";
    size_t len = strlen(name) + 1;
    if (x->is_server == (name[0] != 0)) return -EINVAL;
    volt_tls *t = (volt_tls *)calloc(1, sizeof *t + len);
    if (!t) return -ENOMEM;
    t->context = x;
    t->fd = fd;
    memcpy(t->name, name, len);
    int rc = x->library->open(t);
    if (rc < 0) free(t);
    else *out = t;
    return rc;
}
// Makes the handshake, before all reads and writes. It may be cancelled and repeated.
//   returns: 0 | the errors above | those of volt_read
static inline VOLT_POLL volt_tls_handshake(volt_cx *cx, volt_tls *t) {
    return volt_tls__run(cx, t, VOLT_TLS__HANDSHAKE, NULL, 0);
}
// The connection as a stream, whose operations give the errors above, and those of volt_read and
// volt_write. A write takes at most one record. volt_stream_end sends a close_notify and ends the
// writing side of the socket; reads go on until the peer has ended its own side.
static inline volt_stream volt_tls_stream(volt_tls *t) {
    static const volt_stream_ops ops = { volt_tls__read, volt_tls__write, volt_tls__end,
                                         volt_tls__ready };
    volt_stream s = { &ops, t, -1 };
    return s;
}
// Frees a connection that no operation uses, and closes its descriptor. Sends nothing: if no
// volt_stream_end came before, the peer sees a connection that was cut.
static inline void volt_tls_close(volt_cx *cx, volt_tls *t) {
    t->context->library->close(t);
    volt_close(cx, t->fd);
    free(t->out);
    free(t);
}

// ---- sessions: a client that comes again resumes the one that it has saved, without certificates
// and signatures. A session is bytes, as secret as a key, for the same name and context.

// Copies the session of a client. With TLS 1.3 a server sends it behind the handshake: save it
// after a read, best before volt_tls_close, and while no operation is in progress.
//   returns: the number of bytes, mostly below 4 KiB | -EAGAIN: there is none, or with mbedTLS 3 no
//            new one | -EMSGSIZE: it does not fit | -EINVAL for a server
static inline int64_t volt_tls_save(volt_tls *t, void *buf, size_t cap) {
    size_t len = strlen(t->name) + 1;
    if (t->context->is_server) return -EINVAL;
    if (cap < len) return -EMSGSIZE;
    int64_t n = t->context->library->save(t, (char *)buf + len, cap - len);
    if (n > 0) memcpy(buf, t->name, len);
    return n > 0 ? n + (int64_t)len : n;
}
// Offers a session to the server, before the handshake. A server that does not know it makes a
// handshake as usual: see t->is_resumed.
//   returns: 0 | -EINVAL: this is no session, or not for the name of the connection
static inline int volt_tls_resume(volt_tls *t, const void *buf, size_t len) {
    size_t skip = strlen(t->name) + 1;
    if (t->context->is_server || len <= skip || memcmp(buf, t->name, skip) != 0) return -EINVAL;
    return t->context->library->resume(t, (const char *)buf + skip, len - skip);
}
#endif
