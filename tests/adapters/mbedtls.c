// SPDX-License-Identifier: MIT OR 0BSD
// The test of examples/adapters/volt_mbedtls.h: that of tls.h, and what is this library's alone.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "tests/lib/test.h"
// For the adapter alone.
static int test_has_no_memory;
static void *test_realloc(void *p, size_t n) { return test_has_no_memory ? NULL : realloc(p, n); }
#define realloc test_realloc
#include "examples/adapters/volt_mbedtls.h"
#undef realloc

#define TLS_INIT volt_mbedtls_init
#define TLS_SAYS_EXPIRED "The certificate validity has expired"
#define TLS_SAYS_UNKNOWN "The certificate is not correctly signed by the trusted CA"
#define TLS_SAYS_OTHER_HOST "The certificate Common Name (CN) does not match"
#define TLS_SAYS_OTHER_ADDRESS "The certificate Common Name (CN) does not match"
#if MBEDTLS_VERSION_MAJOR < 3 // has nothing newer
#  define TLS_ONLY_1_2(x_) ((void)(x_))
#else
#  define TLS_ONLY_1_2(x_)                                                                         \
      mbedtls_ssl_conf_max_tls_version(volt_mbedtls_conf(x_), MBEDTLS_SSL_VERSION_TLS1_2)
#endif
#define TLS_ALLOW_RENEGOTIATION(x_)                                                                \
    mbedtls_ssl_conf_renegotiation(volt_mbedtls_conf(x_), MBEDTLS_SSL_RENEGOTIATION_ENABLED)
#define TLS_RENEGOTIATE(t_)                                                                        \
    CHECK_EQ(mbedtls_ssl_renegotiate((mbedtls_ssl_context *)(t_)->impl), MBEDTLS_ERR_SSL_WANT_READ)
#define TLS_BOUNDS_1_2 0
#define TLS_SAY_NOTHING(t_)                                                                        \
    CHECK_EQ(mbedtls_ssl_send_alert_message((mbedtls_ssl_context *)(t_)->impl,                     \
                                            MBEDTLS_SSL_ALERT_LEVEL_WARNING,                       \
                                            MBEDTLS_SSL_ALERT_MSG_USER_CANCELED), 0)
#include "tests/adapters/tls.h"

// ---- records without data, for which mbedtls_ssl_read returns 0

static volt_poll empty_run(volt_cx *cx, void *arg) {
    state *s = (state *)arg;
    VOLT_BEGIN(cx, s);
    duo_open(&s->d);
    VOLT_AWAIT(s->rc, duo_shake(cx, &s->d));
    s->d.server->cx = cx;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(mbedtls_ssl_write((mbedtls_ssl_context *)s->d.server->impl, (void *)s->buf, 0), 0);
    VOLT_AWAIT(VOLT_JOIN_ALL(
        VOLT_ARM(&s->arm[0], volt_stream_read(cx, of(s->d.client), s->buf, sizeof s->buf)),
        VOLT_ARM(&s->arm[1], volt_stream_write(cx, of(s->d.server), "x", 1))));
    CHECK_EQ(s->arm[0].value, 1);
    CHECK_EQ(s->buf[0], 'x');
    duo_close(cx, &s->d);
    VOLT_END(0);
}
TEST(records_without_data_are_not_the_end) {
    static state s;
    run(1, empty_run, &s);
}
