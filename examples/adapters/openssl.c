// SPDX-License-Identifier: MIT OR 0BSD
// tls_echo.h by OpenSSL: an echo server and its client.
//
//     openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem
//             -out cert.pem -subj /CN=localhost
//             -addext subjectAltName=DNS:localhost            (all on one line)
//     cc -O2 -I. -pthread examples/adapters/openssl.c -o tls_echo -lssl -lcrypto
//     ./tls_echo serve 7006 cert.pem key.pem echo
//     ./tls_echo client 127.0.0.1:7006 localhost cert.pem echo
//
// "echo" is the list of protocols (ALPN). A further argument of the client is the file of its
// session.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "examples/adapters/volt_openssl.h"
#include "examples/adapters/tls_echo.h"

int main(int argc, char **argv) { return tls_echo(argc, argv, volt_openssl_init); }
