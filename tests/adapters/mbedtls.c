// SPDX-License-Identifier: MIT OR 0BSD
// The test of examples/adapters/volt_mbedtls.h: the tests of tls.h, and those of this library alone.
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
#include "tests/adapters/tls.h"
