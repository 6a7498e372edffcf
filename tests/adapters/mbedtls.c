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
#include "tests/adapters/tls.h"
