// SPDX-License-Identifier: MIT OR 0BSD
// TLS over a connected socket as a volt_stream: the part that is the same with each library. The
// adapter of a library includes it: volt_openssl.h or volt_mbedtls.h. The operations themselves are
// in volt_tls_run.h. For use, see tls_echo.h:
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
// Results beside those of the socket; t->why has the text. An error of the handshake or of a read
// ends a write that waits, too. After it the connection gives that error again, and can only be
// closed.
//   -ECONNABORTED     the peer has ended the connection without a close_notify: data may be
//                     missing. A close_notify is the clean end, a read of 0
//   -EKEYREJECTED     the certificate of the peer is not trusted, or not for this name
//   -EPROTONOSUPPORT  the peer takes no part in ALPN, and this side does
//   -EPROTO           another error of TLS, such as an alert of the peer. Also if both sides have
//                     lists of protocols, and none is common
//   -ENOTCONN         a read or write before the handshake
//   -EPIPE            a write behind the end, or after the peer has closed the socket
//   -ENOMEM           also if a peer makes the library answer again and again, and does not read
#ifndef VOLT_TLS_H
#define VOLT_TLS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The most bytes of a record; of the names of protocols; of the text of an error.
enum { VOLT_TLS_RECORD = 16384, VOLT_TLS_ALPN = 128, VOLT_TLS_WHY = 160 };

typedef struct volt_tls_options {
    int is_server;
    const char *chain, *key; // PEM files: certificate with its chain, and key. A server has both
    const char *authorities; // PEM file. A server asks for a certificate of one of them. NULL: a
                             // client trusts the system's; a server does not ask
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
    int is_cut;           // the call has made its most reads: it goes on behind other tasks
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
    int n_gets, is_spent;   // reads of the socket in this poll; it may make no more
    size_t n_got;           // the bytes of these reads
    int has_ended, is_over; // the own end is sent; the end of the peer was read
    int in_rc, out_rc, rc;  // the error that ended reading the socket, writing it, all; or 0
    char why[VOLT_TLS_WHY]; // its text, which may be read while no operation is in progress; or ""
    unsigned char *out;     // NULL if there is nothing to be sent
    size_t from, to;        // the bytes in `out` that are not sent
    char name[];            // of the server; "": this is one
};

#include "volt_tls_run.h"

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
    if (name[0] == '.') return -EINVAL; // OpenSSL would take it for any name that ends like this
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
    if (!t->is_open) return -EAGAIN; // OpenSSL has one in the middle of a handshake
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
