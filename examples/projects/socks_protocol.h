// SPDX-License-Identifier: MIT OR 0BSD
// SOCKS5 (RFC 1928) and its login (RFC 1929) as functions of bytes, without input or output: common
// to socks_threads.c and socks.c.
#ifndef EXAMPLE_SOCKS_PROTOCOL_H
#define EXAMPLE_SOCKS_PROTOCOL_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { SOCKS_MESSAGE_MAX = 513, SOCKS_ANSWER_MAX = 22 }; // the longest message is a login
enum { SOCKS_OPEN = 0, SOCKS_LOGIN = 2, SOCKS_NO_METHOD = 255 }; // methods
typedef enum {
    SOCKS_OK, SOCKS_FAILED, SOCKS_NOT_ALLOWED, SOCKS_NO_NETWORK, SOCKS_NO_HOST, SOCKS_REFUSED,
    SOCKS_EXPIRED, SOCKS_NO_COMMAND, SOCKS_NO_ADDRESS_TYPE
} socks_code;
typedef struct {
    char host[256], service[6]; // an address or a name, and the number of a port
} socks_target;

// ---- messages of the client: their lengths, as far as the first n bytes tell. A message is
// complete when it has that many bytes. A message of another version counts as complete.
typedef size_t socks_length(const unsigned char *m, size_t n);

static size_t socks_greeting_length(const unsigned char *m, size_t n) {
    return n < 2 || m[0] != 5 ? 2 : 2u + m[1];
}
static size_t socks_login_length(const unsigned char *m, size_t n) {
    if (n < 2 || m[0] != 1) return 2;
    return n < 3u + m[1] ? 3u + m[1] : 3u + m[1] + m[2 + m[1]];
}
static size_t socks_request_length(const unsigned char *m, size_t n) {
    if (n < 5 || m[0] != 5) return 5;
    return m[3] == 1 ? 10 : m[3] == 3 ? 7u + m[4] : m[3] == 4 ? 22 : 5;
}

// ---- complete messages

// Returns the method of the answer, or -1 if the client speaks another version.
static int socks_method(const unsigned char *m, int wants_login) {
    int method = wants_login ? SOCKS_LOGIN : SOCKS_OPEN;
    if (m[0] != 5) return -1;
    return m[1] > 0 && memchr(m + 2, method, m[1]) ? method : SOCKS_NO_METHOD;
}
// Compares a text that has its length before it. Takes as long for each text of that length.
static int socks_is(const unsigned char *text, const char *wanted) {
    unsigned difference = 0;
    if (text[0] != strlen(wanted)) return 0;
    for (unsigned i = 0; i < text[0]; i++) difference |= text[1 + i] ^ (unsigned char)wanted[i];
    return difference == 0;
}
static int socks_login_is(const unsigned char *m, const char *user, const char *password) {
    int is_user = m[0] == 1 && socks_is(m + 1, user);
    return m[0] == 1 && socks_is(m + 2 + m[1], password) && is_user;
}
// Returns SOCKS_OK with the target, the code to refuse with, or -1 for another version.
static int socks_request(const unsigned char *m, socks_target *t) {
    const unsigned char *port = m + socks_request_length(m, 5) - 2;
    if (m[0] != 5) return -1;
    if (m[1] != 1) return SOCKS_NO_COMMAND; // BIND, UDP ASSOCIATE
    if (m[3] == 1) inet_ntop(AF_INET, m + 4, t->host, sizeof t->host);
    else if (m[3] == 4) inet_ntop(AF_INET6, m + 4, t->host, sizeof t->host);
    else if (m[3] == 3) {
        if (m[4] == 0 || memchr(m + 5, 0, m[4])) return SOCKS_FAILED;
        memcpy(t->host, m + 5, m[4]);
        t->host[m[4]] = 0;
    } else return SOCKS_NO_ADDRESS_TYPE;
    snprintf(t->service, sizeof t->service, "%d", port[0] << 8 | port[1]);
    return SOCKS_OK;
}

// ---- answers

// Writes an answer with the address that the connection comes from; NULL: none.
//   returns: its length
static size_t socks_answer(unsigned char *m, int code, const struct sockaddr *from_or_null) {
    const int is_v6 = from_or_null && from_or_null->sa_family == AF_INET6;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from_or_null;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from_or_null;
    memset(m, 0, SOCKS_ANSWER_MAX);
    m[0] = 5;
    m[1] = (unsigned char)code;
    m[3] = is_v6 ? 4 : 1;
    if (is_v6) memcpy(m + 4, &v6->sin6_addr, 16), memcpy(m + 20, &v6->sin6_port, 2);
    else if (v4) memcpy(m + 4, &v4->sin_addr, 4), memcpy(m + 8, &v4->sin_port, 2);
    return is_v6 ? 22 : 10;
}
// The code for an error of a connection. error: -errno; -ENOENT for a name without an address.
static int socks_code_of(int error) {
    switch (error) {
    case -ECONNREFUSED: return SOCKS_REFUSED;
    case -ENETUNREACH: return SOCKS_NO_NETWORK;
    case -EHOSTUNREACH: return SOCKS_NO_HOST;
    case -ENOENT: return SOCKS_NO_HOST;
    case -ETIMEDOUT: return SOCKS_EXPIRED;
    case -EACCES: return SOCKS_NOT_ALLOWED;
    case -EPERM: return SOCKS_NOT_ALLOWED; // a firewall
    default: return SOCKS_FAILED;
    }
}
#endif
