// SPDX-License-Identifier: MIT OR 0BSD
// TLS by OpenSSL 1.1.1 or later, as a volt_stream. Include it behind volt.h and link with
// -lssl -lcrypto. volt_tls.h, which it includes, describes the calls; here is the init of a
// context. Choices beyond the options are made by OpenSSL's functions, on volt_openssl_ctx(&x)
// before the first volt_tls_open, and on the SSL of a connection, t->impl, before its handshake.
//
// Sessions: servers send tickets, and also keep sessions for clients of TLS 1.2 without tickets, as
// OpenSSL does by default. The queue of errors belongs to the thread: it is cleared before each
// call, and read in the same poll.
#ifndef VOLT_OPENSSL_H
#define VOLT_OPENSSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "volt_tls.h"

typedef struct volt_openssl__context {
    SSL_CTX *ctx;
    BIO_METHOD *bio;
    unsigned n_alpn;
    unsigned char alpn[VOLT_TLS_ALPN + 1]; // a length before each name
} volt_openssl__context;

static inline SSL_CTX *volt_openssl_ctx(const volt_tls_context *x) {
    return ((volt_openssl__context *)x->impl)->ctx;
}
static inline volt_openssl__context *volt_openssl__of(const volt_tls *t) {
    return (volt_openssl__context *)t->context->impl;
}
static inline int volt_openssl__note(char *why) {
    const char *text = ERR_reason_error_string(ERR_peek_error());
    if (text) snprintf(why, VOLT_TLS_WHY, "%s", text);
    else ERR_error_string_n(ERR_peek_error(), why, VOLT_TLS_WHY); // of the system, in OpenSSL 3
    return -EPROTO;
}

// ---- the BIO: called by OpenSSL during a call

static inline int volt_openssl__bio_read(BIO *bio, char *buf, int len) {
    int64_t n = len > 0 ? volt_tls__get((volt_tls *)BIO_get_data(bio), buf, (size_t)len) : 0;
    BIO_clear_retry_flags(bio);
    if (n == -EAGAIN) BIO_set_retry_read(bio);
    return n < 0 ? -1 : (int)n;
}
static inline int volt_openssl__bio_write(BIO *bio, const char *data, int len) {
    BIO_clear_retry_flags(bio);
    if (len > 0) volt_tls__put((volt_tls *)BIO_get_data(bio), data, (size_t)len);
    return len;
}
static inline long volt_openssl__bio_ctrl(BIO *bio, int command, long number, void *arg) {
    (void)bio, (void)number, (void)arg;
    return command == BIO_CTRL_FLUSH; // each call is followed by a send
}

// ---- calls

// The result of a call that has failed.
static inline int64_t volt_openssl__error(volt_tls *t, volt_tls__kind kind, int result) {
    SSL *ssl = (SSL *)t->impl;
    int error = SSL_get_error(ssl, result);
    long verified = SSL_get_verify_result(ssl);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return -EAGAIN;
    if (error == SSL_ERROR_ZERO_RETURN && kind < VOLT_TLS__HANDSHAKE) return t->is_over = 1, 0;
    if (error == SSL_ERROR_ZERO_RETURN) return t->in_rc = -ECONNABORTED;
    if (verified == X509_V_OK || kind != VOLT_TLS__HANDSHAKE) return volt_openssl__note(t->why);
    snprintf(t->why, sizeof t->why, "%s", X509_verify_cert_error_string(verified));
    return -EKEYREJECTED;
}
// Keeps what a complete handshake has agreed on. Older versions of OpenSSL let a server choose a
// protocol that was not offered.
static inline void volt_openssl__agreed(volt_tls *t) {
    const volt_openssl__context *x = volt_openssl__of(t);
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected((SSL *)t->impl, &name, &len);
    for (unsigned i = 0; i < x->n_alpn; i += 1u + x->alpn[i])
        if (len == x->alpn[i] && memcmp(name, x->alpn + i + 1, len) == 0)
            memcpy(t->protocol, name, len);
    t->is_resumed = SSL_session_reused((SSL *)t->impl);
}
// SSL_shutdown refuses to work while a message behind the handshake, such as a ticket, has come in
// part: the rest is read first, as a write does by itself.
//   returns: > 0: the close_notify is sent | for SSL_get_error
static inline int volt_openssl__end(SSL *ssl) {
    int result = SSL_in_init(ssl) ? SSL_do_handshake(ssl) : 1;
    if (result > 0) result = SSL_shutdown(ssl) >= 0 ? 1 : -1; // 0: that of the peer has not come
    return result;
}
static inline int64_t volt_openssl__call(volt_tls *t, volt_tls__kind kind, void *buf, size_t len) {
    SSL *ssl = (SSL *)t->impl;
    size_t n = 0, most = VOLT_TLS_RECORD;
    int result = 0;
    char byte;
    ERR_clear_error();
    switch (kind) {
    case VOLT_TLS__READ: result = SSL_read_ex(ssl, buf, len, &n); break;
    case VOLT_TLS__READY: result = SSL_peek_ex(ssl, &byte, 1, &n), n = 0; break;
    case VOLT_TLS__WRITE: result = SSL_write_ex(ssl, buf, len < most ? len : most, &n); break;
    case VOLT_TLS__END: result = volt_openssl__end(ssl); break;
    case VOLT_TLS__HANDSHAKE: result = SSL_do_handshake(ssl); break;
    }
    if (result <= 0) return volt_openssl__error(t, kind, result);
    if (kind == VOLT_TLS__HANDSHAKE) volt_openssl__agreed(t);
    return (int64_t)n;
}

// ---- sessions

static inline int64_t volt_openssl__save(volt_tls *t, void *buf, size_t cap) {
    SSL_SESSION *session = SSL_get1_session((SSL *)t->impl);
    int n = session && SSL_SESSION_is_resumable(session) ? i2d_SSL_SESSION(session, NULL) : 0;
    unsigned char *to = (unsigned char *)buf;
    int64_t rc = n <= 0 ? -EAGAIN : (size_t)n > cap ? -EMSGSIZE : i2d_SSL_SESSION(session, &to);
    SSL_SESSION_free(session);
    return rc;
}
static inline int volt_openssl__resume(volt_tls *t, const void *buf, size_t len) {
    const unsigned char *from = (const unsigned char *)buf;
    SSL_SESSION *session = d2i_SSL_SESSION(NULL, &from, (long)len);
    int is_set = session && SSL_set_session((SSL *)t->impl, session);
    SSL_SESSION_free(session);
    return is_set ? 0 : -EINVAL;
}

// ---- connections

// Requires that the certificate is for this address or name; a name is sent as well (SNI).
static inline int volt_openssl__expect_name(SSL *ssl, const char *name) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name)) return 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    void *sent = (void *)(uintptr_t)name; // SSL_set_tlsext_host_name, but for a warning of its cast
    return SSL_set1_host(ssl, name) &&
           SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, sent);
}
static inline int volt_openssl__open(volt_tls *t) {
    SSL *ssl = SSL_new(volt_openssl__of(t)->ctx);
    BIO *bio = BIO_new(volt_openssl__of(t)->bio);
    int is_named = ssl && (t->context->is_server || volt_openssl__expect_name(ssl, t->name));
    if (!bio || !is_named) {
        BIO_free(bio);
        SSL_free(ssl);
        return bio && ssl ? -EINVAL : -ENOMEM;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (t->context->is_server) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    t->impl = ssl;
    return 0;
}
static inline void volt_openssl__close(volt_tls *t) { SSL_free((SSL *)t->impl); }

// ---- contexts

static inline int volt_openssl__choose(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                                       const unsigned char *in, unsigned n_in, void *context) {
    const volt_openssl__context *x = (const volt_openssl__context *)context;
    unsigned char *name;
    (void)ssl;
    if (SSL_select_next_proto(&name, n_out, x->alpn, x->n_alpn, in, n_in) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = name;
    return SSL_TLSEXT_ERR_OK;
}
// Writes the length of each name in place of the comma before it.
static inline int volt_openssl__set_alpn(volt_openssl__context *x, const char *list) {
    size_t n = strlen(list), len;
    if (n == 0) return 1;
    memcpy(x->alpn + 1, list, n);
    for (size_t i = 0; i <= n; i += 1 + len)
        x->alpn[i] = (unsigned char)(len = strcspn((const char *)x->alpn + i + 1, ","));
    x->n_alpn = (unsigned)n + 1;
    SSL_CTX_set_alpn_select_cb(x->ctx, volt_openssl__choose, x);
    return SSL_CTX_set_alpn_protos(x->ctx, x->alpn, x->n_alpn) == 0;
}
// The names of the authorities tell a client of several certificates which one to send.
static inline int volt_openssl__ask(SSL_CTX *ctx, const char *authorities) {
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(authorities);
    if (names) SSL_CTX_set_client_CA_list(ctx, names); // which frees them
    return names != NULL;
}
static inline int volt_openssl__set_files(SSL_CTX *ctx, const volt_tls_options *o) {
    if (!o->authorities && !o->is_server && !SSL_CTX_set_default_verify_paths(ctx)) return 0;
    if (o->authorities && !SSL_CTX_load_verify_locations(ctx, o->authorities, NULL)) return 0;
    if (o->authorities && o->is_server && !volt_openssl__ask(ctx, o->authorities)) return 0;
    return !o->chain || (SSL_CTX_use_certificate_chain_file(ctx, o->chain) &&
                         SSL_CTX_use_PrivateKey_file(ctx, o->key, SSL_FILETYPE_PEM));
}
static inline int volt_openssl__set_all(volt_openssl__context *x, const volt_tls_options *o) {
    x->ctx = SSL_CTX_new(o->is_server ? TLS_server_method() : TLS_client_method());
    x->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "volt");
    if (!x->ctx || !x->bio) return 0;
    BIO_meth_set_read(x->bio, volt_openssl__bio_read);
    BIO_meth_set_write(x->bio, volt_openssl__bio_write);
    BIO_meth_set_ctrl(x->bio, volt_openssl__bio_ctrl);
    SSL_CTX_set_mode(x->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(x->ctx, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_read_ahead(x->ctx, 1); // one system call for a record
    if (!o->is_server || o->authorities)
        SSL_CTX_set_verify(x->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return SSL_CTX_set_min_proto_version(x->ctx, TLS1_2_VERSION) &&
           SSL_CTX_set_session_id_context(x->ctx, (const unsigned char *)"volt", 4) &&
           volt_openssl__set_alpn(x, o->alpn) && volt_openssl__set_files(x->ctx, o);
}
static inline void volt_openssl__free(void *impl) {
    volt_openssl__context *x = (volt_openssl__context *)impl;
    SSL_CTX_free(x->ctx);
    BIO_meth_free(x->bio);
    free(x);
}
// Makes the context of servers or of clients. Reads the files at once: call it before volt_run.
//   where  : any thread
//   returns: 0 | -EINVAL: x->why has the reason, such as a file that cannot be read | -ENOMEM
//   memory : allocates until volt_tls_context_free. After an error there is nothing to be freed
static inline int volt_openssl_init(volt_tls_context *x, const volt_tls_options *o) {
    static const volt_tls_library library = { volt_openssl__open,   volt_openssl__call,
                                              volt_openssl__save,   volt_openssl__resume,
                                              volt_openssl__close,  volt_openssl__free };
    int rc = volt_tls__begin(x, o, &library, sizeof(volt_openssl__context));
    if (rc < 0) return rc;
    ERR_clear_error();
    if (volt_openssl__set_all((volt_openssl__context *)x->impl, o)) return 0;
    volt_openssl__note(x->why);
    volt_tls_context_free(x);
    return -EINVAL;
}
#endif
