// SPDX-License-Identifier: MIT OR 0BSD
// TLS over a descriptor as a volt_stream, by OpenSSL; with an echo server and a client on it.
//
//     openssl req -x509 -newkey ed25519 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost
//             -addext subjectAltName=DNS:localhost,IP:127.0.0.1        (all on one line)
//     cc -I. -pthread sketch/06_tls.c -o tls -lssl -lcrypto
//     ./tls serve -C cert.pem -K key.pem
//     ./tls client -A cert.pem -N localhost
//
//   serve   -l ADDR      address to listen on, of the loopback interface; default 127.0.0.1:7006
//           -C, -K FILE  certificate chain and key, in PEM
//           -A FILE      certificates of authorities: clients must have a certificate of one
//           -n N, -i S   most clients, default 1000; most idle seconds, default 60
//   client  -c ADDR      address of the server, on the loopback interface; default 127.0.0.1:7006
//           -N NAME      host name or address in the certificate of the server; default localhost
//           -A FILE      certificates of authorities; default: those of the system
//           -C, -K FILE  certificate chain and key of the client
// The client sends its standard input, and writes the echo to its standard output.
//
// The adapter, from `tls_new` to `tls_free`:
//   - Try first, wait afterwards. A call of OpenSSL precedes each wait, so what OpenSSL has read
//     ahead is never waited for. A read takes all records that SSL_pending announces.
//   - OpenSSL reads the descriptor by a BIO over volt_try_read. The runtime so sees each -EAGAIN,
//     its answer to the last event, and no SIGPIPE is raised: volt_try_write suppresses it.
//   - What OpenSSL writes goes to a buffer, `out`, which has room for a whole record. A write so
//     never stops in the middle of a record, and can be cancelled: nothing was taken, or the result
//     is the number of bytes taken.
//   - Any call may produce output, a read as well (an alert, an answer to a key update): each call
//     sends from `out`, and each wait of the connection also waits for room while `out` is not
//     empty. Any call may want input, a write as well (a handshake): then the input can be taken by
//     the read of another task, which is announced by `moved`.
//   - One read and one write, or end, may wait at the same time, in two tasks. An SSL object is for
//     one thread at a time: `lock` is held during each call of OpenSSL, and never across an await.
//   - The error queue of OpenSSL belongs to the thread. It is cleared before each call and read
//     after it, in the same poll.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_BYTES = 16384, RECORD_EXTRA = 512 }; // plain text; header, padding and tag at most
enum { BUFFER_BYTES = 3072, COPY_BYTES = 16384 };
enum { HANDSHAKE_SECONDS = 10, WRITE_SECONDS = 10, LINGER_SECONDS = 2, GRACE_SECONDS = 5 };
enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all

static const unsigned char alpn[] = "\x06" "echo/1"; // a length, and as many characters
enum { ALPN_BYTES = sizeof alpn - 1 };

//==================================================================================================
// The adapter
//==================================================================================================

typedef enum { TLS_HANDSHAKE, TLS_READ, TLS_WRITE, TLS_END } tls_call;

// The state of one operation that waits, and of its wait.
typedef struct {
    volt_frame frame;
    volt_arm in, out, moved;
    int winner, rc_in, rc_out;
} tls_wait_state;
typedef struct {
    volt_frame frame;
    tls_wait_state wait;
    uint32_t wants; // VOLT_IN, VOLT_OUT: what the last call waits for
    uint32_t seen;  // count of `moved` after that call
    int64_t n;
    int rc;
} tls_op;

// A connection. Zeroed by tls_new; must not be moved.
typedef struct {
    SSL *ssl;
    int fd;
    pthread_mutex_t lock;
    volt_notify moved; // a call has taken input, or made room in `out`
    tls_op reading;    // of the one read
    tls_op writing;    // of the one write, end or handshake
    // under lock
    volt_cx *cx;  // during a call of OpenSSL: that of the poll, for the BIO
    int has_moved; // during a call
    int is_eof;   // the peer has closed without a close_notify
    int in_rc;    // the error of the descriptor that ended reading, or 0
    int out_rc;   // the error that ended writing, or 0
    int rc;       // the error that ended the connection, or 0
    char why[160]; // text of `rc`
    size_t from, to; // of the bytes in `out` that are not sent
    unsigned char out[RECORD_BYTES + RECORD_EXTRA];
} tls;

static BIO_METHOD *tls_bio; // made once, by tls_init

// ---- the BIO: called by OpenSSL inside a call, under the lock of the connection

// Sends from `out` what the descriptor takes. An error drops the rest: the peer does not read.
static void tls_send(volt_cx *cx, tls *t) {
    while (t->from < t->to) {
        int64_t n = volt_try_write(cx, t->fd, t->out + t->from, t->to - t->from);
        if (n == -EAGAIN) return;
        if (n < 0) t->out_rc = (int)n, t->from = t->to;
        else t->from += (size_t)n, t->has_moved = 1;
    }
    t->from = t->to = 0;
}
static int tls_bio_read(BIO *bio, char *buf, int len) {
    tls *t = (tls *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) return 0;
    int64_t n = volt_try_read(t->cx, t->fd, buf, (size_t)len);
    if (n > 0) t->has_moved = 1;
    else if (n == 0) t->is_eof = 1;
    else if (n == -EAGAIN) BIO_set_retry_read(bio);
    else t->in_rc = (int)n;
    return n < 0 ? -1 : (int)n;
}
static int tls_bio_write(BIO *bio, const char *buf, int len) {
    tls *t = (tls *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) return 0;
    if (t->to == sizeof t->out) tls_send(t->cx, t);
    if (t->out_rc < 0) return -1;
    if (t->to == sizeof t->out && t->from > 0) { // makes room by moving what is left
        t->to -= t->from;
        memmove(t->out, t->out + t->from, t->to);
        t->from = 0;
    }
    size_t room = sizeof t->out - t->to, n = (size_t)len < room ? (size_t)len : room;
    if (n == 0) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(t->out + t->to, buf, n);
    t->to += n;
    return (int)n;
}
static long tls_bio_ctrl(BIO *bio, int command, long number, void *arg) {
    const tls *t = (const tls *)BIO_get_data(bio);
    (void)number, (void)arg;
    if (command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP) return 1; // each call sends
    if (command == BIO_CTRL_EOF) return t && t->is_eof;
    return 0;
}
// gives : 0 | -ENOMEM
static int tls_init(void) {
    int index = BIO_get_new_index();
    tls_bio = index < 0 ? NULL : BIO_meth_new(index | BIO_TYPE_SOURCE_SINK, "volt");
    if (!tls_bio) return -ENOMEM;
    BIO_meth_set_read(tls_bio, tls_bio_read);
    BIO_meth_set_write(tls_bio, tls_bio_write);
    BIO_meth_set_ctrl(tls_bio, tls_bio_ctrl);
    return 0;
}

// ---- calls of OpenSSL: under the lock

// Keeps the first error of the connection, with a text.
static int tls_fail(tls *t, int rc, const char *why) {
    if (t->rc == 0) {
        t->rc = rc;
        snprintf(t->why, sizeof t->why, "%s", why);
    }
    return t->rc;
}
// The result of a call that has failed, from the error queue of this thread.
//   gives : 0: the peer has sent a close_notify | -EAGAIN: wait for op->wants | the error of the
//           descriptor | -ECONNABORTED: cut off, without a close_notify | -EACCES: the certificate
//           of the peer is not accepted | -EPROTO
static int tls_error(tls *t, tls_op *op, int result) {
    char why[160];
    int what = SSL_get_error(t->ssl, result);
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    if (what == SSL_ERROR_ZERO_RETURN) return 0;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
        op->wants |= what == SSL_ERROR_WANT_READ ? VOLT_IN : VOLT_OUT;
        return -EAGAIN;
    }
    if (what == SSL_ERROR_SYSCALL && (t->in_rc < 0 || t->out_rc < 0)) {
        int rc = t->in_rc < 0 ? t->in_rc : t->out_rc;
        return tls_fail(t, rc, volt_strerror(rc));
    }
    if (what == SSL_ERROR_SYSCALL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return tls_fail(t, -ECONNABORTED, "ended without a close_notify");
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tls_fail(t, -EACCES, X509_verify_cert_error_string(SSL_get_verify_result(t->ssl)));
    ERR_error_string_n(error, why, sizeof why);
    return tls_fail(t, -EPROTO, why);
}
static int64_t tls_call_read(tls *t, tls_op *op, void *buf, size_t len) {
    size_t n = 0, more = 0;
    int ok = SSL_read_ex(t->ssl, buf, len, &n);
    if (ok <= 0) return tls_error(t, op, ok);
    // Further records that OpenSSL has read. Their error, if any, is that of the next call.
    while (n < len && SSL_pending(t->ssl) > 0) {
        ok = SSL_read_ex(t->ssl, (char *)buf + n, len - n, &more);
        if (ok <= 0) {
            (void)tls_error(t, op, ok);
            break;
        }
        n += more;
    }
    return (int64_t)n;
}
static int64_t tls_call_write(tls *t, tls_op *op, const void *buf, size_t len) {
    size_t n = 0;
    if (t->out_rc < 0) return t->out_rc;
    if (t->from < t->to) return -EAGAIN; // a record has room only in the empty buffer
    int ok = SSL_write_ex(t->ssl, buf, len < RECORD_BYTES ? len : RECORD_BYTES, &n);
    return ok > 0 ? (int64_t)n : tls_error(t, op, ok);
}
static int64_t tls_call_end(tls *t, tls_op *op) {
    if (t->out_rc < 0) return t->out_rc;
    if (t->from < t->to) return -EAGAIN;
    if (!SSL_is_init_finished(t->ssl) || SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN) return 0;
    int result = SSL_shutdown(t->ssl); // 0: sent; that of the peer has not come yet
    return result >= 0 ? 0 : tls_error(t, op, result);
}
static int64_t tls_call_handshake(tls *t, tls_op *op) {
    int ok = SSL_do_handshake(t->ssl), rc = ok > 0 ? 0 : tls_error(t, op, ok);
    return ok <= 0 && rc == 0 ? tls_fail(t, -ECONNABORTED, "closed during the handshake") : rc;
}
static int64_t tls_call_one(tls *t, tls_op *op, tls_call call, void *buf, size_t len) {
    if (t->rc < 0) return t->rc; // OpenSSL forbids further calls after an error
    ERR_clear_error();
    if (call == TLS_HANDSHAKE) return tls_call_handshake(t, op);
    if (call == TLS_READ) return tls_call_read(t, op, buf, len);
    return call == TLS_WRITE ? tls_call_write(t, op, buf, len) : tls_call_end(t, op);
}
// Makes a call, and sends what it has produced, and what was left before.
//   gives : the result of the call | -EAGAIN: wait for op->wants, which is not 0
static int64_t tls_try(volt_cx *cx, tls *t, tls_op *op, tls_call call, void *buf, size_t len) {
    int64_t n;
    pthread_mutex_lock(&t->lock);
    t->cx = cx;
    t->has_moved = 0;
    tls_send(cx, t);
    do { // again if the call wanted `out` to be empty, and it is so now
        op->wants = 0;
        n = tls_call_one(t, op, call, buf, len);
        tls_send(cx, t);
        if (t->from < t->to) op->wants |= VOLT_OUT;
    } while (n == -EAGAIN && op->wants == 0);
    // The count is taken after the notification: an operation does not wake itself.
    if (t->has_moved) volt_notify_all(&t->moved);
    op->seen = volt_notify_count(&t->moved);
    t->cx = NULL;
    pthread_mutex_unlock(&t->lock);
    return n;
}

// ---- operations

// Waits until the operation may go on.
//   gives : 0 | -errno
static volt_poll tls_wait(volt_cx *cx, tls *t, tls_op *op) {
    tls_wait_state *w = &op->wait;
    VOLT_BEGIN(cx, w);
    w->rc_in = w->rc_out = 0;
    VOLT_AWAIT(w->winner,
               VOLT_SELECT(VOLT_ARM(&w->in, w->rc_in,
                                    op->wants & VOLT_IN ? volt_read_ready(cx, t->fd)
                                                        : volt_sleep_forever(cx)),
                           VOLT_ARM(&w->out, w->rc_out,
                                    op->wants & VOLT_OUT ? volt_write_ready(cx, t->fd)
                                                         : volt_sleep_forever(cx)),
                           VOLT_ARM(&w->moved, volt_notify_wait_past(cx, &t->moved, op->seen))));
    if (w->winner < 0) VOLT_RETURN(w->winner); // -ECANCELED: no arm has fired
    VOLT_END(w->rc_in < 0 ? w->rc_in : w->rc_out);
}
// Waits until `out` is sent. If it ends before that, a read that waits sends the rest.
//   gives : 0 | -errno
static volt_poll tls_sent(volt_cx *cx, tls *t, tls_op *op) {
    tls_wait_state *w = &op->wait;
    VOLT_BEGIN(cx, w);
    for (;;) {
        pthread_mutex_lock(&t->lock);
        t->has_moved = 0;
        tls_send(cx, t);
        if (t->has_moved) volt_notify_all(&t->moved);
        w->rc_out = t->out_rc < 0 ? t->out_rc : t->from < t->to;
        pthread_mutex_unlock(&t->lock);
        if (w->rc_out <= 0) VOLT_RETURN(w->rc_out);
        VOLT_AWAIT(w->rc_out, volt_write_ready(cx, t->fd));
        if (w->rc_out < 0) break;
    }
    volt_notify_all(&t->moved);
    VOLT_END(w->rc_out);
}

// The rest of `out` after a read goes out with the next call, or with the next wait.
static volt_poll tls_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    tls *const t = (tls *)s.self;
    tls_op *const op = &t->reading;
    VOLT_BEGIN(cx, op);
    if (len == 0) VOLT_RETURN(0);
    while ((op->n = tls_try(cx, t, op, TLS_READ, buf, len)) == -EAGAIN) {
        VOLT_AWAIT(op->rc, tls_wait(cx, t, op));
        if (op->rc < 0) VOLT_RETURN(op->rc);
    }
    VOLT_END(op->n);
}
// Once a record is in `out` its bytes count as written. The wait until it is sent holds up the
// caller; if that wait is cancelled or fails, another operation sends the record or has the error.
static volt_poll tls_write(volt_cx *cx, volt_stream s, const void *buf, size_t len) {
    tls *const t = (tls *)s.self;
    tls_op *const op = &t->writing;
    VOLT_BEGIN(cx, op);
    if (len == 0) VOLT_RETURN(0);
    while ((op->n = tls_try(cx, t, op, TLS_WRITE, (void *)(uintptr_t)buf, len)) == -EAGAIN) {
        VOLT_AWAIT(op->rc, tls_wait(cx, t, op));
        if (op->rc < 0) VOLT_RETURN(op->rc);
    }
    if (op->n > 0) VOLT_AWAIT(op->rc, tls_sent(cx, t, op));
    VOLT_END(op->n);
}
// Sends a close_notify, and ends the writing side of the socket. Reads go on until the peer ends.
static volt_poll tls_end(volt_cx *cx, volt_stream s) {
    tls *const t = (tls *)s.self;
    tls_op *const op = &t->writing;
    VOLT_BEGIN(cx, op);
    while ((op->n = tls_try(cx, t, op, TLS_END, NULL, 0)) == -EAGAIN) {
        VOLT_AWAIT(op->rc, tls_wait(cx, t, op));
        if (op->rc < 0) VOLT_RETURN(op->rc);
    }
    if (op->n < 0) VOLT_RETURN(op->n);
    VOLT_AWAIT(op->rc, tls_sent(cx, t, op));
    if (op->rc < 0) VOLT_RETURN(op->rc);
    VOLT_END(volt_sock_shutdown(t->fd, 0, 1));
}
static const volt_stream_ops tls_ops = { .read = tls_read, .write = tls_write, .end = tls_end };

// Makes the handshake. Must be awaited once, before the first read or write; t->why has the text of
// an error. The result is that of the certificate check, too.
//   gives : 0 | -errno as tls_error
static volt_poll tls_handshake(volt_cx *cx, tls *t) {
    tls_op *op = &t->writing;
    VOLT_BEGIN(cx, op);
    while ((op->n = tls_try(cx, t, op, TLS_HANDSHAKE, NULL, 0)) == -EAGAIN) {
        VOLT_AWAIT(op->rc, tls_wait(cx, t, op));
        if (op->rc < 0) VOLT_RETURN(op->rc);
    }
    if (op->n < 0) VOLT_RETURN(op->n);
    VOLT_AWAIT(op->rc, tls_sent(cx, t, op));
    VOLT_END(op->rc);
}

static volt_stream tls_stream(tls *t) {
    return (volt_stream){ .ops = &tls_ops, .self = t, .fd = -1 };
}
// Requires the certificate of the peer to be for this name or address, and sends a name (SNI).
static int tls_expect_name(SSL *ssl, const char *name) {
    struct in6_addr a;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, name, &a) == 1 || inet_pton(AF_INET6, name, &a) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, name, 0) &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}
// Makes a connection over a descriptor, which tls_free closes. name NULL: the side of the server.
//   gives : the connection | NULL: out of memory, or OpenSSL refuses the name. The descriptor is
//           then the caller's
static tls *tls_new(SSL_CTX *ctx, int fd, const char *name_or_null) {
    tls *t = calloc(1, sizeof *t);
    BIO *bio = BIO_new(tls_bio);
    SSL *ssl = SSL_new(ctx);
    if (!t || !bio || !ssl || (name_or_null && !tls_expect_name(ssl, name_or_null))) {
        BIO_free(bio);
        SSL_free(ssl);
        free(t);
        return NULL;
    }
    t->ssl = ssl;
    t->fd = fd;
    pthread_mutex_init(&t->lock, NULL);
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); // takes the one reference of both
    if (name_or_null) SSL_set_connect_state(ssl);
    else SSL_set_accept_state(ssl);
    return t;
}
// Frees a connection that no task uses, and closes its descriptor. Sends nothing: that is done by
// volt_stream_end.
static void tls_free(volt_cx *cx, tls *t) {
    if (!t) return;
    volt_close(cx, t->fd);
    SSL_free(t->ssl);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
static int tls_has_alpn(const tls *t) {
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(t->ssl, &name, &len);
    return len == ALPN_BYTES - 1 && memcmp(name, alpn + 1, len) == 0;
}

// ---- contexts

static int tls_choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                           const unsigned char *in, unsigned n_in, void *arg) {
    unsigned char *chosen;
    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, n_out, alpn, ALPN_BYTES, in, n_in) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}
typedef struct {
    const char *chain, *key, *authorities; // files, or NULL
} credentials;
// gives : a context for servers or clients | NULL, with the reason in the error queue
static SSL_CTX *tls_context(int is_server, const credentials *c) {
    static const unsigned char session_id[] = "echo";
    SSL_CTX *ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    int ok = ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    if (ok) {
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_read_ahead(ctx, 1);
    }
    if (ok && c->chain) ok = SSL_CTX_use_certificate_chain_file(ctx, c->chain);
    if (ok && c->key) ok = SSL_CTX_use_PrivateKey_file(ctx, c->key, SSL_FILETYPE_PEM);
    if (ok && (c->chain || c->key)) ok = SSL_CTX_check_private_key(ctx);
    if (ok && c->authorities) ok = SSL_CTX_load_verify_locations(ctx, c->authorities, NULL);
    else if (ok && !is_server) ok = SSL_CTX_set_default_verify_paths(ctx);
    if (ok && (!is_server || c->authorities)) // a server asks for certificates only with -A
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (ok && is_server) {
        ok = SSL_CTX_set_session_id_context(ctx, session_id, sizeof session_id - 1);
        SSL_CTX_set_alpn_select_cb(ctx, tls_choose_alpn, NULL);
    } else if (ok) {
        ok = SSL_CTX_set_alpn_protos(ctx, alpn, ALPN_BYTES) == 0;
    }
    if (ok) return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

//==================================================================================================
// The echo server
//==================================================================================================

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...) {
    char line[320];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "tls: %s\n", line);
}

typedef struct {
    SSL_CTX *ctx;
    volt_time idle;
    volt_token stop;
    volt_sem places;
} server;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    int64_t n;
} parting;
typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link stop;
    parting parting;
    server *srv;
    tls *t;
    volt_reader in;
    volt_writer out;
    volt_span got; // in the buffer of the reader, until its next call
    int64_t n;
    char peer[64];
    char in_buf[BUFFER_BYTES], out_buf[BUFFER_BYTES];
} session;

// Sends back all that comes.
//   gives : 0: the client has ended its side | -ETIMEDOUT | -ECANCELED: stop | -errno
static volt_poll session_echo(volt_cx *cx, void *arg) {
    session *c = (session *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(HANDSHAKE_SECONDS),
                                 tls_handshake(cx, c->t)));
    if (c->n < 0) VOLT_RETURN(c->n);
    if (!tls_has_alpn(c->t)) VOLT_RETURN(-EPROTONOSUPPORT);
    volt_reader_init(&c->in, tls_stream(c->t), c->in_buf, sizeof c->in_buf);
    volt_writer_init(&c->out, tls_stream(c->t), c->out_buf, sizeof c->out_buf);
    for (;;) {
        VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop,
                                         volt_within(cx, &c->limit, c->srv->idle,
                                                     volt_fill(cx, &c->in, 1, &c->got))));
        if (c->n <= 0) break;
        VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(WRITE_SECONDS),
                                     volt_put_wait(cx, &c->out, c->got.data, c->got.len)));
        if (c->n < 0) break;
        volt_consume(&c->in, c->got.len);
        VOLT_AWAIT(c->n, volt_within(cx, &c->limit, VOLT_S(WRITE_SECONDS),
                                     volt_flush(cx, &c->out)));
        if (c->n < 0) break;
    }
    VOLT_END(c->n);
}
// Ends the writing side, then reads until the client has ended its own: a close with unread input
// would reset the connection, and destroy the close_notify on its way.
static volt_poll session_part(volt_cx *cx, session *c) {
    parting *p = &c->parting;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->n, volt_stream_end(cx, tls_stream(c->t)));
    while (p->n >= 0) {
        VOLT_AWAIT(p->n, volt_stream_read(cx, tls_stream(c->t), c->in_buf, sizeof c->in_buf));
        if (p->n == 0) break;
    }
    VOLT_END(p->n);
}
typedef struct {
    volt_frame frame;
    volt_timer limit;
    int64_t n;
    session session;
} connection;
static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *k = (connection *)arg;
    session *const c = &k->session;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->n, session_echo(cx, c));
    if (k->n < 0 && k->n != -ECANCELED)
        note("%s: %s", c->peer, c->t->rc < 0 ? c->t->why : volt_strerror((int)k->n));
    // After an error of the connection nothing can be sent; of an idle client the end can.
    if (c->t->rc == 0)
        VOLT_AWAIT(volt_within(cx, &k->limit, VOLT_S(LINGER_SECONDS), session_part(cx, c)));
    tls_free(cx, c->t);
    volt_sem_release(&c->srv->places, 1);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    int64_t rc;
    int n_failed;
} accepting;
typedef struct {
    volt_frame frame;
    volt_arm come, signal, drained;
    volt_timer grace;
    volt_group clients;
    accepting accepting;
    volt_addr peer;
    int lfd, sigfd, fd, rc;
    server srv;
} serving;

// The next client, which has a place. Further ones wait in the queue of the kernel.
//   gives : a descriptor | -ECANCELED | the error of the last of ACCEPT_RETRIES. With an error no
//           place is taken
static volt_poll accept_client(volt_cx *cx, serving *m) {
    accepting *a = &m->accepting;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_sem_acquire(cx, &m->srv.places, 1));
    if (a->rc < 0) VOLT_RETURN(a->rc);
    for (a->n_failed = 0;; a->n_failed++) {
        VOLT_AWAIT(a->rc, volt_accept_from(cx, m->lfd, &m->peer));
        if (a->rc >= 0) VOLT_RETURN(a->rc);
        if (a->rc == -ECANCELED || a->n_failed == ACCEPT_RETRIES) break;
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ACCEPT_PAUSE_MS << a->n_failed)));
    }
    volt_sem_release(&m->srv.places, 1);
    VOLT_END(a->rc);
}
static void admit(volt_cx *cx, serving *m) {
    connection k = { .session = { .srv = &m->srv, .t = tls_new(m->srv.ctx, m->fd, NULL) } };
    int rc = -ENOMEM;
    if (volt_addr_format(&m->peer, k.session.peer, sizeof k.session.peer) < 0)
        strcpy(k.session.peer, "a client");
    if (k.session.t) rc = VOLT_GROUP_SPAWN(cx, &m->clients, connection_run, k);
    if (rc == 0) return;
    note("%s was refused: %s", k.session.peer, volt_strerror(rc));
    if (k.session.t) tls_free(cx, k.session.t);
    else volt_close(cx, m->fd);
    volt_sem_release(&m->srv.places, 1);
}
static volt_poll serving_run(volt_cx *cx, void *arg) {
    serving *m = (serving *)arg;
    VOLT_BEGIN(cx, m);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->come, m->fd, accept_client(cx, m)),
                               VOLT_ARM(&m->signal, m->rc,
                                        volt_signals_next(cx, m->sigfd, NULL))));
        if (!m->come.fired || m->fd < 0) break;
        admit(cx, m);
    }
    volt_close(cx, m->lfd);
    note("stopping");
    volt_token_cancel(&m->srv.stop);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->drained,
                                    volt_within(cx, &m->grace, VOLT_S(GRACE_SECONDS),
                                                volt_group_wait(cx, &m->clients))),
                           VOLT_ARM(&m->signal, volt_signals_next(cx, m->sigfd, NULL))));
    VOLT_AWAIT(volt_group_close(cx, &m->clients)); // cancels the clients that are left
    VOLT_END(m->come.fired ? m->fd : 0);
}

//==================================================================================================
// The client
//==================================================================================================

typedef struct {
    volt_frame frame;
    volt_token_link link;
    volt_copier copy;
    int64_t n;
} sending;
typedef struct {
    volt_frame frame;
    volt_copier copy;
    int64_t n;
} receiving;
typedef struct {
    volt_frame frame;
    volt_arm sends, receives;
    volt_timer limit;
    volt_token over; // the server has ended its side
    SSL_CTX *ctx;
    const char *name;
    volt_addr to;
    tls *t;
    int rc;
    sending sending;
    receiving receiving;
    char up[COPY_BYTES], down[COPY_BYTES];
} talking;

// Sends the standard input, then the end.
//   gives : 0 | -errno
static volt_poll send_input(volt_cx *cx, talking *k) {
    sending *s = &k->sending;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_with_token(cx, &s->link, &k->over,
                                     volt_copy(cx, &s->copy, volt_stream_of(STDIN_FILENO),
                                               tls_stream(k->t), VOLT_ALL, k->up, sizeof k->up)));
    if (s->n < 0 && !volt_token_is_cancelled(&k->over)) VOLT_RETURN(s->n);
    VOLT_AWAIT(s->n, volt_stream_end(cx, tls_stream(k->t)));
    VOLT_END(s->n);
}
static volt_poll receive_output(volt_cx *cx, talking *k) {
    receiving *r = &k->receiving;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->n, volt_copy(cx, &r->copy, tls_stream(k->t), volt_stream_of(STDOUT_FILENO),
                               VOLT_ALL, k->down, sizeof k->down));
    volt_token_cancel(&k->over);
    VOLT_END(r->n < 0 ? r->n : 0);
}
static volt_poll talking_run(volt_cx *cx, void *arg) {
    talking *k = (talking *)arg;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  volt_connect(cx, &k->to)));
    if (k->rc < 0) VOLT_RETURN(k->rc);
    k->t = tls_new(k->ctx, k->rc, k->name);
    if (!k->t) {
        volt_close(cx, k->rc);
        VOLT_RETURN(-ENOMEM);
    }
    VOLT_AWAIT(k->rc, volt_within(cx, &k->limit, VOLT_S(HANDSHAKE_SECONDS),
                                  tls_handshake(cx, k->t)));
    if (k->rc == 0 && !tls_has_alpn(k->t)) k->rc = -EPROTONOSUPPORT;
    if (k->rc == 0) {
        VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&k->sends, send_input(cx, k)),
                                 VOLT_ARM(&k->receives, receive_output(cx, k))));
        k->rc = (int)(k->receives.value < 0 ? k->receives.value : k->sends.value);
    }
    if (k->t->rc < 0) note("%s", k->t->why);
    tls_free(cx, k->t);
    VOLT_END(k->rc);
}

//==================================================================================================
// The command line
//==================================================================================================

static void usage(void) {
    fprintf(stderr, "usage: tls serve [-l ADDR] -C CHAIN -K KEY [-A FILE] [-n N] [-i S]\n"
                    "       tls client [-c ADDR] [-N NAME] [-A FILE] [-C CHAIN -K KEY]\n"
                    "ADDR is of the loopback interface, as 127.0.0.1:7006\n");
    exit(2);
}
static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least || n > most) usage();
    return n;
}
static int is_loopback(const volt_addr *a) {
    socklen_t len;
    const struct sockaddr *sa = volt_addr_sockaddr(a, &len);
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (sa->sa_family != AF_INET6) return 0;
    memcpy(&v6, sa, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}
// gives : 0 | -EINVAL | -EADDRNOTAVAIL
static int parse_loopback(volt_addr *a, const char *text) {
    int rc = volt_addr_parse(a, text);
    return rc < 0 ? rc : is_loopback(a) ? 0 : -EADDRNOTAVAIL;
}

static int serve(const char *where, SSL_CTX *ctx, long n_places, long idle) {
    serving m = { .srv = { .ctx = ctx, .idle = VOLT_S(idle) } };
    char text[64];
    volt_addr at;
    int rc = parse_loopback(&at, where);
    volt_sem_release(&m.srv.places, (uint32_t)n_places);
    if (rc >= 0) rc = m.sigfd = VOLT_SIGNALS(SIGTERM, SIGINT);
    if (rc >= 0) rc = m.lfd = volt_listen_addr(&at, NULL);
    if (rc >= 0) rc = volt_local_addr(m.lfd, &at);
    if (rc >= 0) rc = volt_addr_format(&at, text, sizeof text);
    if (rc < 0) return rc;
    printf("listening on %s\n", text);
    fflush(stdout);
    return volt_run(NULL, serving_run, &m);
}
static int talk(const char *where, SSL_CTX *ctx, const char *name) {
    static talking k; // the buffers are large for a stack
    k.ctx = ctx;
    k.name = name;
    int rc = parse_loopback(&k.to, where);
    return rc < 0 ? rc : volt_run(NULL, talking_run, &k);
}

int main(int argc, char **argv) {
    credentials c = { NULL, NULL, NULL };
    const char *where = "127.0.0.1:7006", *name = "localhost";
    long n_places = 1000, idle = 60;
    int option, rc, is_server = argc > 1 && strcmp(argv[1], "serve") == 0;
    if (!is_server && (argc < 2 || strcmp(argv[1], "client") != 0)) usage();
    optind = 2;
    while ((option = getopt(argc, argv, is_server ? "l:C:K:A:n:i:" : "c:N:A:C:K:")) != -1) {
        if (option == 'l' || option == 'c') where = optarg;
        else if (option == 'C') c.chain = optarg;
        else if (option == 'K') c.key = optarg;
        else if (option == 'A') c.authorities = optarg;
        else if (option == 'N') name = optarg;
        else if (option == 'n') n_places = number(optarg, 1, 1000000);
        else if (option == 'i') idle = number(optarg, 1, 1000000);
        else usage();
    }
    if (optind < argc || !c.chain != !c.key || (is_server && !c.chain)) usage();
    SSL_CTX *ctx = tls_init() == 0 ? tls_context(is_server, &c) : NULL;
    if (!ctx) {
        ERR_print_errors_fp(stderr);
        return 1;
    }
    rc = is_server ? serve(where, ctx, n_places, idle) : talk(where, ctx, name);
    if (rc < 0) fprintf(stderr, "tls: %s\n", volt_strerror(rc));
    SSL_CTX_free(ctx);
    BIO_meth_free(tls_bio);
    return rc < 0;
}
