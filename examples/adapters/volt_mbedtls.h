// SPDX-License-Identifier: MIT OR 0BSD
// TLS by mbedTLS 2.28 or 3, as a volt_stream. Include it behind volt.h and link with
// -lmbedtls -lmbedx509 -lmbedcrypto. volt_tls.h, which it includes, describes the calls; here is
// the init of a context. Choices beyond the options are made by mbedTLS's functions, on
// volt_mbedtls_conf(&x) before the first volt_tls_open, and on the mbedtls_ssl_context of a
// connection, t->impl, before its handshake.
//
// Sessions: servers send tickets, which a context accepts for a day. A connection has the buffers
// of the library, 33 KiB unless it is compiled with smaller ones. A certificate is checked for a
// name; for an address only from mbedTLS 3.5 on. mbedTLS knows no authorities of the system: a
// client without a file takes that of VOLT_MBEDTLS_AUTHORITIES.
#ifndef VOLT_MBEDTLS_H
#define VOLT_MBEDTLS_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>
#include "volt_tls.h"

#ifndef VOLT_MBEDTLS_AUTHORITIES
#  define VOLT_MBEDTLS_AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"
#endif
#if !defined(MBEDTLS_THREADING_C) && !defined(VOLT_SINGLE_THREAD)
#  error "a context is for all workers: compile mbedTLS with MBEDTLS_THREADING_C"
#endif
#if MBEDTLS_VERSION_MAJOR < 3
#  define MBEDTLS_PRIVATE(member_) member_
#  define VOLT_MBEDTLS__RANDOM(x_)
#else
#  include <psa/crypto.h>
#  define VOLT_MBEDTLS__RANDOM(x_) , mbedtls_ctr_drbg_random, &(x_)->random
#endif

enum { VOLT_MBEDTLS__TICKET_SECONDS = 86400 };
typedef struct volt_mbedtls__context {
    mbedtls_ssl_config conf;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt chain, authorities;
    mbedtls_pk_context key;
    mbedtls_ssl_ticket_context tickets;
    char alpn[VOLT_TLS_ALPN];
    const char *names[VOLT_TLS_ALPN / 2 + 1]; // in `alpn`, up to NULL
} volt_mbedtls__context;

static inline mbedtls_ssl_config *volt_mbedtls_conf(const volt_tls_context *x) {
    return &((volt_mbedtls__context *)x->impl)->conf;
}

// ---- input and output: called by mbedTLS during a call

static inline int volt_mbedtls__recv(void *t, unsigned char *buf, size_t len) {
    int64_t n = volt_tls__get((volt_tls *)t, buf, len);
    if (n == -EAGAIN) return MBEDTLS_ERR_SSL_WANT_READ;
    // not MBEDTLS_ERR_SSL_CONN_EOF, which mbedtls_ssl_read would return as 0
    return n > 0 ? (int)n : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}
static inline int volt_mbedtls__send(void *t, const unsigned char *data, size_t len) {
    volt_tls__put((volt_tls *)t, data, len);
    return (int)len;
}

// ---- calls

// The result of a call that has failed.
static inline int64_t volt_mbedtls__error(volt_tls *t, volt_tls__kind kind, int error) {
    const mbedtls_ssl_context *ssl = (const mbedtls_ssl_context *)t->impl;
    if (error == MBEDTLS_ERR_SSL_WANT_READ || error == MBEDTLS_ERR_SSL_WANT_WRITE) return -EAGAIN;
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
    if (error == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) return -EAGAIN;
#endif
    if (error == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY && kind < VOLT_TLS__HANDSHAKE)
        return t->is_over = 1, 0;
    if (error == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) return t->in_rc = -ECONNABORTED;
    if (error != MBEDTLS_ERR_X509_CERT_VERIFY_FAILED)
        return mbedtls_strerror(error, t->why, sizeof t->why), -EPROTO;
    mbedtls_x509_crt_verify_info(t->why, sizeof t->why, "", mbedtls_ssl_get_verify_result(ssl));
    t->why[strcspn(t->why, "\n")] = 0; // a line for each reason
    return -EKEYREJECTED;
}
// A handshake that resumes a session has no certificate.
static inline int volt_mbedtls__handshake(volt_tls *t) {
    mbedtls_ssl_context *ssl = (mbedtls_ssl_context *)t->impl;
    int rc = 0;
    while (rc == 0 && ssl->MBEDTLS_PRIVATE(state) != MBEDTLS_SSL_HANDSHAKE_OVER) {
        if (ssl->MBEDTLS_PRIVATE(state) == MBEDTLS_SSL_SERVER_CERTIFICATE) t->is_resumed = 0;
        rc = mbedtls_ssl_handshake_step(ssl);
    }
    const char *name = rc == 0 ? mbedtls_ssl_get_alpn_protocol(ssl) : NULL;
    if (name) snprintf(t->protocol, sizeof t->protocol, "%s", name);
    return rc;
}
static inline int64_t volt_mbedtls__call(volt_tls *t, volt_tls__kind kind, void *buf, size_t len) {
    mbedtls_ssl_context *ssl = (mbedtls_ssl_context *)t->impl;
    unsigned char *bytes = (unsigned char *)buf;
    int n = 0;
    switch (kind) {
    case VOLT_TLS__READ: n = mbedtls_ssl_read(ssl, bytes, len); break;
    case VOLT_TLS__READY: n = mbedtls_ssl_read(ssl, NULL, 0); break;
    case VOLT_TLS__WRITE: n = mbedtls_ssl_write(ssl, bytes, len); break;
    case VOLT_TLS__END: n = mbedtls_ssl_close_notify(ssl); break;
    case VOLT_TLS__HANDSHAKE: n = volt_mbedtls__handshake(t); break;
    }
    if (n < 0) return volt_mbedtls__error(t, kind, n);
    int is_empty = n == 0 && mbedtls_ssl_get_bytes_avail(ssl) == 0; // a record without data
    return is_empty && kind < VOLT_TLS__HANDSHAKE ? -EAGAIN : n;
}

// ---- sessions

static inline int64_t volt_mbedtls__save(volt_tls *t, void *buf, size_t cap) {
    mbedtls_ssl_session session;
    size_t n = 0;
    mbedtls_ssl_session_init(&session);
    int rc = mbedtls_ssl_get_session((mbedtls_ssl_context *)t->impl, &session);
    if (rc == 0) rc = mbedtls_ssl_session_save(&session, (unsigned char *)buf, cap, &n);
    mbedtls_ssl_session_free(&session);
    if (rc == MBEDTLS_ERR_SSL_BUFFER_TOO_SMALL) return -EMSGSIZE;
    return rc == 0 ? (int64_t)n : -EAGAIN;
}
static inline int volt_mbedtls__resume(volt_tls *t, const void *buf, size_t len) {
    mbedtls_ssl_session session;
    mbedtls_ssl_session_init(&session);
    int rc = mbedtls_ssl_session_load(&session, (const unsigned char *)buf, len);
    if (rc == 0) rc = mbedtls_ssl_set_session((mbedtls_ssl_context *)t->impl, &session);
    mbedtls_ssl_session_free(&session);
    return rc == 0 ? 0 : -EINVAL;
}

// ---- connections

static inline void volt_mbedtls__close(volt_tls *t) {
    mbedtls_ssl_free((mbedtls_ssl_context *)t->impl);
    free(t->impl);
}
static inline int volt_mbedtls__open(volt_tls *t) {
    mbedtls_ssl_context *ssl = (mbedtls_ssl_context *)calloc(1, sizeof *ssl);
    if (!ssl) return -ENOMEM;
    t->impl = ssl;
    t->is_resumed = 1; // until there is a certificate
    mbedtls_ssl_init(ssl);
    int rc = mbedtls_ssl_setup(ssl, volt_mbedtls_conf(t->context));
    if (rc == 0 && !t->context->is_server) rc = mbedtls_ssl_set_hostname(ssl, t->name);
    if (rc == 0) mbedtls_ssl_set_bio(ssl, t, volt_mbedtls__send, volt_mbedtls__recv, NULL);
    else volt_mbedtls__close(t);
    return rc == MBEDTLS_ERR_SSL_ALLOC_FAILED ? -ENOMEM : rc < 0 ? -EINVAL : 0;
}

// ---- contexts

static inline int volt_mbedtls__set_files(volt_mbedtls__context *x, const volt_tls_options *o) {
    const char *file = o->authorities ? o->authorities : o->is_server ? NULL
                                                       : VOLT_MBEDTLS_AUTHORITIES;
    int rc = file ? mbedtls_x509_crt_parse_file(&x->authorities, file) : 0;
    if (rc > 0 && !o->authorities) rc = 0; // of those of the system some may be unknown
    if (rc != 0 || !o->chain) return rc;
    rc = mbedtls_x509_crt_parse_file(&x->chain, o->chain);
    if (rc == 0) rc = mbedtls_pk_parse_keyfile(&x->key, o->key, NULL VOLT_MBEDTLS__RANDOM(x));
    if (rc == 0) rc = mbedtls_pk_check_pair(&x->chain.pk, &x->key VOLT_MBEDTLS__RANDOM(x));
    return rc == 0 ? mbedtls_ssl_conf_own_cert(&x->conf, &x->chain, &x->key) : rc;
}
static inline int volt_mbedtls__set_alpn(volt_mbedtls__context *x, const char *list) {
    size_t n = 0;
    if (!list[0]) return 0;
    memcpy(x->alpn, list, strlen(list));
    for (char *at = x->alpn; at; at = strchr(at, ',')) {
        if (n > 0) *at++ = 0;
        x->names[n++] = at;
    }
    return mbedtls_ssl_conf_alpn_protocols(&x->conf, x->names);
}
static inline int volt_mbedtls__set_all(volt_mbedtls__context *x, const volt_tls_options *o) {
    int end = o->is_server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT;
    int rc = mbedtls_ctr_drbg_seed(&x->random, mbedtls_entropy_func, &x->entropy, NULL, 0);
#if MBEDTLS_VERSION_MAJOR >= 3
    if (rc == 0) rc = psa_crypto_init();
#endif
    if (rc == 0) rc = mbedtls_ssl_config_defaults(&x->conf, end, MBEDTLS_SSL_TRANSPORT_STREAM,
                                                  MBEDTLS_SSL_PRESET_DEFAULT);
    if (rc == 0) rc = volt_mbedtls__set_files(x, o);
    if (rc == 0) rc = volt_mbedtls__set_alpn(x, o->alpn);
    if (rc == 0) rc = mbedtls_ssl_ticket_setup(&x->tickets, mbedtls_ctr_drbg_random, &x->random,
                                               MBEDTLS_CIPHER_AES_256_GCM,
                                               VOLT_MBEDTLS__TICKET_SECONDS);
    if (rc != 0) return rc;
    mbedtls_ssl_conf_rng(&x->conf, mbedtls_ctr_drbg_random, &x->random);
    mbedtls_ssl_conf_ca_chain(&x->conf, &x->authorities, NULL);
    mbedtls_ssl_conf_authmode(&x->conf, o->is_server && !o->authorities
                                            ? MBEDTLS_SSL_VERIFY_NONE
                                            : MBEDTLS_SSL_VERIFY_REQUIRED);
#if MBEDTLS_VERSION_MAJOR < 3 // from 3 on there is nothing below TLS 1.2
    mbedtls_ssl_conf_min_version(&x->conf, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
#endif
#ifdef MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED
    mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
        &x->conf, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
    if (o->is_server) mbedtls_ssl_conf_session_tickets_cb(&x->conf, mbedtls_ssl_ticket_write,
                                                          mbedtls_ssl_ticket_parse, &x->tickets);
    return 0;
}
static inline void volt_mbedtls__free(void *impl) {
    volt_mbedtls__context *x = (volt_mbedtls__context *)impl;
    mbedtls_ssl_config_free(&x->conf);
    mbedtls_ssl_ticket_free(&x->tickets);
    mbedtls_pk_free(&x->key);
    mbedtls_x509_crt_free(&x->chain);
    mbedtls_x509_crt_free(&x->authorities);
    mbedtls_ctr_drbg_free(&x->random);
    mbedtls_entropy_free(&x->entropy);
    free(x);
}
// Makes the context of servers or of clients. Reads the files at once: call it before volt_run.
//   where  : any thread
//   returns: 0 | -EINVAL: x->why has the reason, such as a file that cannot be read | -ENOMEM
//   memory : allocates until volt_tls_context_free. After an error there is nothing to be freed
static inline int volt_mbedtls_init(volt_tls_context *x, const volt_tls_options *o) {
    static const volt_tls_library library = { volt_mbedtls__open,  volt_mbedtls__call,
                                              volt_mbedtls__save,  volt_mbedtls__resume,
                                              volt_mbedtls__close, volt_mbedtls__free };
    int rc = volt_tls__begin(x, o, &library, sizeof(volt_mbedtls__context));
    if (rc < 0) return rc;
    volt_mbedtls__context *m = (volt_mbedtls__context *)x->impl;
    mbedtls_ssl_config_init(&m->conf);
    mbedtls_ssl_ticket_init(&m->tickets);
    mbedtls_pk_init(&m->key);
    mbedtls_x509_crt_init(&m->chain);
    mbedtls_x509_crt_init(&m->authorities);
    mbedtls_ctr_drbg_init(&m->random);
    mbedtls_entropy_init(&m->entropy);
    rc = volt_mbedtls__set_all(m, o);
    if (rc == 0) return 0;
    if (rc < 0) mbedtls_strerror(rc, x->why, sizeof x->why);
    else snprintf(x->why, sizeof x->why, "%d certificates of a file cannot be read", rc);
    volt_tls_context_free(x);
    return -EINVAL;
}
#endif
