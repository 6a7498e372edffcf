// SPDX-License-Identifier: MIT OR 0BSD
// The test of examples/adapters/volt_openssl.h: the tests of tls.h, and those of this library alone.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "tests/lib/test.h"
// For the adapter alone.
static int test_has_no_memory;
static void *test_realloc(void *p, size_t n) { return test_has_no_memory ? NULL : realloc(p, n); }
#define realloc test_realloc
#include "examples/adapters/volt_openssl.h"
#undef realloc

#define TLS_INIT volt_openssl_init
#define TLS_SAYS_EXPIRED "certificate has expired"
#define TLS_SAYS_UNKNOWN "self-signed certificate"
#define TLS_SAYS_OTHER_HOST "ostname mismatch"
#define TLS_SAYS_OTHER_ADDRESS "IP address mismatch"
#include "tests/adapters/tls.h"
