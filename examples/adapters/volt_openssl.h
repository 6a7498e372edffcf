// SPDX-License-Identifier: MIT OR 0BSD
// TLS over a connected socket as a volt_stream, by OpenSSL 1.1.1 or later. Include it behind volt.h
// and link with -lssl -lcrypto. For use, see examples/programs/tls_echo.c:
//
//     volt_tls_context x;  // one for all clients
//     volt_tls_context_init(&x, 0, &(volt_tls_options){ .alpn = "http/1.1" });
//     volt_tls *t;         // in the state of the task
//     volt_tls_open(&t, &x, fd, "example.org");
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(10), volt_tls_handshake(cx, t)));
//     VOLT_AWAIT(n, volt_stream_write(cx, volt_tls_stream(t), buf, len));
//
// Readers, writers, copies and relays of volt.h use the stream. One read and one write may be in
// progress at the same time, in two tasks or in two arms. Time limits are the caller's; the
// handshake needs one, too, since the peer may be silent.
//
// Versions below TLS 1.2 and renegotiation are refused. A client checks the certificate of the
// server, and that it is for the name; both sides must agree on a protocol (ALPN). Other choices
// are made by OpenSSL's functions on x.ctx, before the first volt_tls_open.
//
// Results beside those of the socket; t->why has the text of the error:
//   -ECONNABORTED     the peer has ended the connection without a close_notify: data may be
//                     missing. A close_notify is the clean end, a read of 0
//   -EKEYREJECTED     the certificate of the peer is not trusted, or not for this name
//   -EPROTONOSUPPORT  there is no common protocol
//   -EPROTO           another error of TLS, such as an alert of the peer
//
// The design:
//   - A call of OpenSSL precedes each wait, so that no wait misses records which OpenSSL has read
//     ahead. Its BIO reads by volt_try_read, and the wait is that of volt_read_ready.
//   - Output goes to a buffer, `out`, with room for a whole record, and from there to the socket by
//     volt_try_write, which raises no SIGPIPE. A write begins a record only when `out` is empty,
//     and waits until it is empty again. So OpenSSL never keeps half a record, for which the call
//     would have to be repeated with the same bytes: a cancelled write has taken nothing, or
//     returns the number of bytes that it has taken.
//   - A read may have output, such as the answer to a key update, and a write may need input. So
//     each wait is for what the call has asked for, and for room in the socket while `out` has
//     bytes. A write that is cancelled wakes the read, which then sends the rest; and a read wakes
//     a write whose input it may have taken.
//   - An SSL object is for one thread at a time: `lock` is held during each call of OpenSSL, and
//     not while a task waits for the socket.
#ifndef VOLT_OPENSSL_H
#define VOLT_OPENSSL_H

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The most bytes of a record; of its header, padding and tag; of the names of protocols.
enum { VOLT_TLS_RECORD = 16384, VOLT_TLS_EXTRA = 512, VOLT_TLS_ALPN = 128 };

typedef struct volt_tls_options {
    const char *chain, *key; // files in PEM: the own certificate with its chain, and its key. A
                             // server must have both
    const char *authorities; // a file in PEM. NULL: a client trusts those of the system, and a
                             // server asks for no certificate
    const char *alpn;        // the protocols, the preferred one first: "h2,http/1.1". "": without
                             // ALPN
} volt_tls_options;

// The common part of connections, for any number of threads once it is made. Must not be moved.
typedef struct volt_tls_context {
    SSL_CTX *ctx;
    BIO_METHOD *bio;
    int is_server;
    unsigned n_alpn;
    unsigned char alpn[VOLT_TLS_ALPN]; // a length before each name
} volt_tls_context;

// The kinds of operations. Those from HANDSHAKE on wait until their output is sent; those from
// WRITE on make their call only when `out` is empty.
typedef enum volt_tls__kind {
    VOLT_TLS__READ,
    VOLT_TLS__READY,
    VOLT_TLS__HANDSHAKE,
    VOLT_TLS__WRITE,
    VOLT_TLS__END
} volt_tls__kind;
// The state of an operation.
typedef struct volt_tls__op {
    volt_frame frame;
    volt_arm in, out, woken;
    uint32_t wants; // VOLT_IN, VOLT_OUT: what its wait is for
    uint32_t seen;  // the count of `wake` at the last call
    int64_t n;      // the result of the call; -EAGAIN: there is none yet
    int64_t rc;     // the result of the wait
} volt_tls__op;

// A connection.
typedef struct volt_tls {
    SSL *ssl;
    volt_tls_context *context;
    int fd;
    char protocol[VOLT_TLS_ALPN]; // that was agreed on, set by the handshake; "": none
    volt_mutex lock;
    volt_notify wake;     // the other operation must look again
    volt_tls__op reading; // of the one read
    volt_tls__op writing; // of the one write, end or handshake
    // under lock
    volt_cx *cx;    // of the poll in which a call of OpenSSL is made
    int is_cut;     // the socket has given an end, and no close_notify came before it
    int in_rc;      // the error of the socket that ended reading, or 0
    int out_rc;     // the error of the socket that ended writing, or 0
    int rc;         // the error that ended the connection, or 0
    char why[160];  // its text, which may be read while no operation is in progress; or ""
    size_t from, to; // the bytes in `out` that are not sent
    unsigned char out[VOLT_TLS_RECORD + VOLT_TLS_EXTRA];
} volt_tls;

// ---- the BIO: called by OpenSSL during a call, under the lock

static inline int volt_tls__bio_read(BIO *bio, char *buf, int len) {
    volt_tls *t = (volt_tls *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) return 0;
    int64_t n = volt_try_read(t->cx, t->fd, buf, (size_t)len);
    if (n == -EAGAIN) BIO_set_retry_read(bio);
    else if (n < 0) t->in_rc = (int)n;
    else if (n == 0) t->is_cut = 1;
    return n < 0 ? -1 : (int)n;
}
// Sends from `out` as much as the socket takes. After an error, which the next write returns, the
// peer reads nothing any more, and output is dropped: what the peer has sent before can be read.
static inline void volt_tls__send(volt_tls *t) {
    while (t->from < t->to && t->out_rc == 0) {
        int64_t n = volt_try_write(t->cx, t->fd, t->out + t->from, t->to - t->from);
        if (n == -EAGAIN) return;
        if (n < 0) t->out_rc = (int)n;
        else t->from += (size_t)n;
    }
    t->from = t->to = 0;
}
static inline int volt_tls__bio_write(BIO *bio, const char *data, int len) {
    volt_tls *t = (volt_tls *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) return 0;
    if (t->to == sizeof t->out) volt_tls__send(t);
    size_t room = sizeof t->out - t->to, n = (size_t)len < room ? (size_t)len : room;
    if (n == 0) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(t->out + t->to, data, n);
    t->to += n;
    return (int)n;
}
static inline long volt_tls__bio_ctrl(BIO *bio, int command, long number, void *arg) {
    (void)bio, (void)number, (void)arg;
    return command == BIO_CTRL_FLUSH; // each call is followed by a send
}

// ---- calls of OpenSSL, under the lock

// Ends the connection. The first error counts.
static inline int volt_tls__fail(volt_tls *t, int rc, const char *why) {
    if (t->rc == 0) snprintf(t->why, sizeof t->why, "%s", why ? why : volt_strerror(rc));
    return t->rc == 0 ? t->rc = rc : t->rc;
}
// The result of a call that has failed. The queue of errors belongs to the thread, and is read in
// the poll of the call.
static inline int volt_tls__error(volt_tls *t, volt_tls__op *op, volt_tls__kind kind, int result) {
    int error = SSL_get_error(t->ssl, result), is_read = kind < VOLT_TLS__HANDSHAKE;
    long verified = SSL_get_verify_result(t->ssl);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        op->wants |= error == SSL_ERROR_WANT_READ ? VOLT_IN : VOLT_OUT;
        return -EAGAIN;
    }
    if (error == SSL_ERROR_ZERO_RETURN && is_read) return 0;
    if (t->in_rc < 0) return volt_tls__fail(t, t->in_rc, NULL);
    if (t->is_cut || error == SSL_ERROR_ZERO_RETURN)
        return volt_tls__fail(t, -ECONNABORTED, is_read ? "the peer ended without a close_notify"
                                                        : "the peer has ended the connection");
    if (verified != X509_V_OK && kind == VOLT_TLS__HANDSHAKE)
        return volt_tls__fail(t, -EKEYREJECTED, X509_verify_cert_error_string(verified));
    return volt_tls__fail(t, -EPROTO, ERR_reason_error_string(ERR_peek_error()));
}
// Keeps the protocol of a complete handshake. A peer may have chosen one that was not offered.
static inline int volt_tls__agree(volt_tls *t) {
    const volt_tls_context *x = t->context;
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(t->ssl, &name, &len);
    for (unsigned i = 0; i < x->n_alpn; i += 1u + x->alpn[i])
        if (len == x->alpn[i] && memcmp(name, x->alpn + i + 1, len) == 0)
            memcpy(t->protocol, name, len);
    if (x->n_alpn == 0 || t->protocol[0]) return 0;
    return volt_tls__fail(t, -EPROTONOSUPPORT, "no protocol was agreed on");
}
static inline int64_t volt_tls__call(volt_tls *t, volt_tls__op *op, volt_tls__kind kind, void *buf,
                                     size_t len) {
    size_t n = 0, most = VOLT_TLS_RECORD;
    int result = 1;
    char byte;
    if (t->rc < 0) return t->rc; // OpenSSL forbids calls after an error
    if (len == 0 && (kind == VOLT_TLS__READ || kind == VOLT_TLS__WRITE)) return 0;
    if (t->out_rc < 0 && kind >= VOLT_TLS__WRITE) return t->out_rc;
    ERR_clear_error();
    if (kind == VOLT_TLS__HANDSHAKE) result = SSL_do_handshake(t->ssl);
    else if (kind == VOLT_TLS__READ) result = SSL_read_ex(t->ssl, buf, len, &n);
    else if (kind == VOLT_TLS__READY) result = SSL_peek_ex(t->ssl, &byte, 1, &n), n = 0;
    else if (kind == VOLT_TLS__WRITE)
        result = SSL_write_ex(t->ssl, buf, len < most ? len : most, &n);
    else if (SSL_is_init_finished(t->ssl) && !(SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN))
        result = SSL_shutdown(t->ssl); // 0: sent
    if (result < 0 || (result == 0 && kind != VOLT_TLS__END))
        return volt_tls__error(t, op, kind, result);
    return kind == VOLT_TLS__HANDSHAKE ? volt_tls__agree(t) : (int64_t)n;
}
// Makes the call, unless it has its result, and sends.
//   returns: 1 if the operation is complete | 0 if it has to wait
static inline int volt_tls__step(volt_cx *cx, volt_tls *t, volt_tls__op *op, volt_tls__kind kind,
                                 void *buf, size_t len) {
    t->cx = cx;
    op->wants = 0;
    volt_tls__send(t);
    if (op->n == -EAGAIN && (kind < VOLT_TLS__WRITE || t->to == 0)) {
        op->n = volt_tls__call(t, op, kind, buf, len);
        volt_tls__send(t);
        if (op == &t->reading && t->writing.wants & VOLT_IN) volt_notify_all(&t->wake);
    }
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
    VOLT_END(op->n == -EAGAIN ? op->rc : op->n);
}
static inline VOLT_POLL volt_tls__read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return volt_tls__run(cx, (volt_tls *)s.self, VOLT_TLS__READ, buf, len);
}
static inline VOLT_POLL volt_tls__stream_ready(volt_cx *cx, volt_stream s) {
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

// ---- contexts

static inline int volt_tls__choose(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                                   const unsigned char *in, unsigned n_in, void *context) {
    const volt_tls_context *x = (const volt_tls_context *)context;
    unsigned char *name;
    (void)ssl;
    if (SSL_select_next_proto(&name, n_out, x->alpn, x->n_alpn, in, n_in) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = name;
    return SSL_TLSEXT_ERR_OK;
}
static inline int volt_tls__set_protocols(volt_tls_context *x, const char *list) {
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == 0 || x->n_alpn + 1 + n > sizeof x->alpn) return 0;
        x->alpn[x->n_alpn++] = (unsigned char)n;
        memcpy(x->alpn + x->n_alpn, list, n);
        x->n_alpn += (unsigned)n;
        list += n + (list[n] == ',');
    }
    return 1;
}
static inline int volt_tls__set_files(volt_tls_context *x, const volt_tls_options *o) {
    if (o->chain && !(SSL_CTX_use_certificate_chain_file(x->ctx, o->chain) &&
                      SSL_CTX_use_PrivateKey_file(x->ctx, o->key, SSL_FILETYPE_PEM) &&
                      SSL_CTX_check_private_key(x->ctx)))
        return 0;
    if (!o->authorities) return x->is_server || SSL_CTX_set_default_verify_paths(x->ctx);
    return SSL_CTX_load_verify_locations(x->ctx, o->authorities, NULL);
}
static inline int volt_tls__set_all(volt_tls_context *x, const volt_tls_options *o) {
    x->ctx = SSL_CTX_new(x->is_server ? TLS_server_method() : TLS_client_method());
    x->bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "volt");
    if (!x->ctx || !x->bio) return 0;
    BIO_meth_set_read(x->bio, volt_tls__bio_read);
    BIO_meth_set_write(x->bio, volt_tls__bio_write);
    BIO_meth_set_ctrl(x->bio, volt_tls__bio_ctrl);
    SSL_CTX_set_mode(x->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(x->ctx, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_read_ahead(x->ctx, 1); // one system call for a record
    if (!x->is_server || o->authorities)
        SSL_CTX_set_verify(x->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (x->is_server) SSL_CTX_set_alpn_select_cb(x->ctx, volt_tls__choose, x);
    return volt_tls__set_protocols(x, o->alpn) && volt_tls__set_files(x, o) &&
           SSL_CTX_set_min_proto_version(x->ctx, TLS1_2_VERSION) &&
           SSL_CTX_set_session_id_context(x->ctx, (const unsigned char *)"volt", 4) &&
           (x->is_server || SSL_CTX_set_alpn_protos(x->ctx, x->alpn, x->n_alpn) == 0);
}
// Frees a context whose connections are closed. Does nothing for a zeroed one.
static inline void volt_tls_context_free(volt_tls_context *x) {
    SSL_CTX_free(x->ctx);
    BIO_meth_free(x->bio);
    x->ctx = NULL, x->bio = NULL;
}
// Makes the context of servers or of clients. Reads the files at once: call it before volt_run.
//   where  : any thread
//   returns: 0 | -EINVAL: ERR_print_errors_fp prints the reason, such as a file that cannot be read
//   memory : allocates until volt_tls_context_free. After an error there is nothing to be freed
static inline int volt_tls_context_init(volt_tls_context *x, int is_server,
                                        const volt_tls_options *o) {
    memset(x, 0, sizeof *x);
    x->is_server = is_server;
    ERR_clear_error();
    if (o->alpn && !o->chain == !o->key && (o->chain || !is_server) && volt_tls__set_all(x, o))
        return 0;
    volt_tls_context_free(x);
    return -EINVAL;
}

// ---- connections

// Requires that the certificate is for this address or name; a name is sent as well (SNI).
static inline int volt_tls__expect_name(SSL *ssl, const char *name) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name)) return 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}
// Makes a connection over a connected socket. name_or_null: a client gives the name of the server,
// or its address; a server gives NULL.
//   returns: 0 | -EINVAL without a name, or for one that cannot be | -ENOMEM
//   memory : allocates about 17 KiB and what OpenSSL takes, until volt_tls_close. The descriptor
//            is the connection's, unless there was an error
static inline int volt_tls_open(volt_tls **out, volt_tls_context *x, int fd,
                                const char *name_or_null) {
    if ((name_or_null == NULL) != x->is_server) return -EINVAL;
    volt_tls *t = (volt_tls *)calloc(1, sizeof *t);
    SSL *ssl = SSL_new(x->ctx);
    BIO *bio = BIO_new(x->bio);
    int rc = !t || !ssl || !bio ? -ENOMEM
             : name_or_null && !volt_tls__expect_name(ssl, name_or_null) ? -EINVAL : 0;
    if (rc < 0) {
        BIO_free(bio);
        SSL_free(ssl);
        free(t);
        return rc;
    }
    t->ssl = ssl;
    t->context = x;
    t->fd = fd;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (x->is_server) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    *out = t;
    return 0;
}
// Makes the handshake, before all reads and writes. It may be cancelled and repeated.
//   returns: 0 | the errors above | those of volt_read
static inline VOLT_POLL volt_tls_handshake(volt_cx *cx, volt_tls *t) {
    return volt_tls__run(cx, t, VOLT_TLS__HANDSHAKE, NULL, 0);
}
// The connection as a stream, whose operations give the errors above, and those of volt_read and
// volt_write. A write takes at most one record. volt_stream_end sends a close_notify and ends the
// writing side of the socket; reads go on until the peer has ended its own side.
//   where  : any thread; may stand in an await
static inline volt_stream volt_tls_stream(volt_tls *t) {
    static const volt_stream_ops ops = { volt_tls__read, volt_tls__write, volt_tls__end,
                                         volt_tls__stream_ready };
    volt_stream s = { &ops, t, -1 };
    return s;
}
// Frees a connection that no operation uses, and closes its descriptor. Sends nothing: if no
// volt_stream_end came before, the peer sees a connection that was cut.
static inline void volt_tls_close(volt_cx *cx, volt_tls *t) {
    volt_close(cx, t->fd);
    SSL_free(t->ssl);
    free(t);
}
#endif
