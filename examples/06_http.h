// SPDX-License-Identifier: MIT OR 0BSD
// As much of HTTP/1.1 (RFC 9112) as the examples need: reads a request from a stream, makes an
// answer, and closes a connection without losing it. The parser neither waits nor keeps state: when
// there are more bytes in the reader, http_parse is asked again. Needs volt.h, and _GNU_SOURCE
// (memmem), which its implementation defines.
#ifndef EXAMPLE_HTTP_H
#define EXAMPLE_HTTP_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

typedef struct http_text { // a part of the buffer, not terminated
    const char *at;
    size_t len;
} http_text;

typedef struct http_request { // .at NULL: the request has no such part
    http_text method, path, body;
    http_text authority;      // of a target in absolute form: scheme://authority/path
    http_text host;           // the authority, or else the field; empty if there is neither
    http_text origin, site;   // fields Origin and Sec-Fetch-Site
    http_text content_length;
    const char *scheme; // that the stream stands for: "http", or "https" on TLS
    size_t len;   // of a whole request in the buffer, and of empty lines before it; else 0
    int minor;    // of the version: HTTP/1.minor
    int is_begun; // there is more than empty lines
    int is_last;  // the client wants the connection closed behind the answer
} http_request;

enum { HTTP_MORE = 0, HTTP_OK = 200 }; // http_parse gives one of these, or the status of a refusal

static int http_is(http_text t, const char *word) {
    return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}
static int http_is_like(http_text t, const char *word) { // case does not count
    return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

// Cuts off what stands before `mark`, and the mark. 0: there is none, nothing has changed.
static int http_cut(http_text *rest, const char *mark, http_text *part) {
    size_t n = strlen(mark);
    const char *end = (const char *)memmem(rest->at, rest->len, mark, n);
    if (!end) return 0;
    *part = (http_text){ rest->at, (size_t)(end - rest->at) };
    rest->at = end + n;
    rest->len -= part->len + n;
    return 1;
}

static http_text http_trim(http_text t) {
    while (t.len && (t.at[0] == ' ' || t.at[0] == '\t')) t.at++, t.len--;
    while (t.len && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t')) t.len--;
    return t;
}

static int http_list_has(http_text list, const char *word) {
    http_text item;
    while (http_cut(&list, ",", &item))
        if (http_is_like(http_trim(item), word)) return 1;
    return http_is_like(http_trim(list), word);
}

// No control characters, and of blanks only those named. A line that two servers read in different
// ways is how a request gets smuggled past one of them.
static int http_is_clean(http_text t, const char *blanks) {
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if ((c <= ' ' && !memchr(blanks, c, strlen(blanks))) || c == 0x7f) return 0;
    }
    return 1;
}
// Letters and digits of ASCII and the marks named, at least one.
static int http_is_made_of(http_text t, const char *marks) {
    for (size_t i = 0; i < t.len; i++) {
        char c = t.at[i], lower = (char)(c | 0x20);
        int is_alnum = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
        if (!is_alnum && !memchr(marks, c, strlen(marks))) return 0;
    }
    return t.len > 0;
}
static int http_is_token(http_text t) { return http_is_made_of(t, "!#$%&'*+-.^_`|~"); }

static int http_length(http_text digits, size_t *out) {
    *out = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9') return 400;
        if (*out > 100000000) return 413;
        *out = *out * 10 + (size_t)(digits.at[i] - '0');
    }
    return digits.len ? HTTP_OK : 400;
}

// ---- hosts: a name, an IPv4 address, or an IPv6 address in brackets; then a port, or none

static int http_is_v6(http_text t) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    if (t.len >= sizeof text) return 0;
    snprintf(text, sizeof text, "%.*s", (int)t.len, t.at);
    return inet_pton(AF_INET6, text, &addr) == 1;
}
static int http_is_name(http_text t) {
    for (size_t i = 0; i < t.len; i++)
        if (t.at[i] == '%' && (i + 2 >= t.len || !isxdigit((unsigned char)t.at[i + 1]) ||
                               !isxdigit((unsigned char)t.at[i + 2])))
            return 0;
    return http_is_made_of(t, "-._~!$&'()*+,;=%");
}
static int http_is_host(http_text t) {
    http_text name = t, port = { t.at, 0 };
    size_t n;
    int is_v6 = t.len && t.at[0] == '[';
    if (is_v6) {
        t.at++, t.len--;
        if (!http_cut(&t, "]", &name)) return 0;
        if (t.len && (!http_cut(&t, ":", &port) || port.len)) return 0;
        port = t;
    } else if (http_cut(&t, ":", &name)) {
        port = t;
    }
    if (port.len && (http_length(port, &n) != HTTP_OK || n > 65535)) return 0;
    return is_v6 ? http_is_v6(name) : http_is_name(name);
}

// ---- the parts of a request. Each gives HTTP_OK or the status of a refusal.

// A field that a request must not have twice.
static int http_once(http_text *field, http_text value) {
    if (field->at) return 400;
    *field = value;
    return HTTP_OK;
}

static int http_header(http_text line, http_request *r) {
    http_text name;
    if (!http_cut(&line, ":", &name)) return 400;
    if (!http_is_token(name) || !http_is_clean(line, " \t")) return 400;
    http_text value = http_trim(line);
    if (http_is_like(name, "Transfer-Encoding")) return 501;
    if (http_is_like(name, "Expect")) return 417; // curl and others then send the body at once
    if (http_is_like(name, "Host"))
        return value.len && !http_is_host(value) ? 400 : http_once(&r->host, value);
    if (http_is_like(name, "Origin")) return http_once(&r->origin, value);
    if (http_is_like(name, "Sec-Fetch-Site")) return http_once(&r->site, value);
    if (http_is_like(name, "Connection") && http_list_has(value, "close")) r->is_last = 1;
    if (!http_is_like(name, "Content-Length")) return HTTP_OK;
    int status = http_once(&r->content_length, value);
    return status != HTTP_OK ? status : http_length(value, &r->body.len);
}

// /path?query, scheme://host/path?query, or the * of OPTIONS.
static int http_target(http_text t, http_request *r) {
    int is_star = http_is(t, "*") && http_is(r->method, "OPTIONS");
    if (t.at[0] != '/' && !is_star) {
        http_text scheme;
        if (!http_cut(&t, "://", &scheme) || !http_is_like(scheme, r->scheme)) return 400;
        r->authority.at = t.at;
        while (t.len && t.at[0] != '/' && t.at[0] != '?') t.at++, t.len--;
        r->authority.len = (size_t)(t.at - r->authority.at);
        if (!http_is_host(r->authority)) return 400;
    }
    if (!http_cut(&t, "?", &r->path)) r->path = t;
    if (!r->path.len) r->path = (http_text){ "/", 1 };
    return HTTP_OK;
}

static int http_request_line(http_text line, http_request *r) {
    http_text target;
    if (!http_is_clean(line, " ") || !http_cut(&line, " ", &r->method)) return 400;
    if (!http_is_token(r->method)) return 400;
    if (!http_cut(&line, " ", &target) || !target.len) return 400;
    if (line.len != 8 || memcmp(line.at, "HTTP/", 5) != 0 || line.at[6] != '.') return 400;
    if (!isdigit((unsigned char)line.at[5]) || !isdigit((unsigned char)line.at[7])) return 400;
    if (line.at[5] != '1') return 505;
    r->minor = line.at[7] - '0';
    r->is_last = r->minor == 0; // it can ask for keep-alive, too; not here
    return http_target(target, r);
}

// `cap` is the size of the buffer: a request that does not fit is refused. r->scheme is set before.
static int http_parse(volt_span bytes, size_t cap, http_request *r) {
    size_t blank = 0; // empty lines, which some clients send behind a body
    *r = (http_request){ .scheme = r->scheme };
    while (bytes.len - blank >= 2 && memcmp(bytes.data + blank, "\r\n", 2) == 0) blank += 2;
    r->is_begun = bytes.len > blank;
    http_text rest = { bytes.data + blank, bytes.len - blank }, head, line;
    if (!http_cut(&rest, "\r\n\r\n", &head)) return bytes.len < cap ? HTTP_MORE : 431;
    size_t head_len = blank + head.len + 4;
    head.len += 2; // each line ends in CRLF
    if (!http_cut(&head, "\r\n", &line)) return 400;
    int status = http_request_line(line, r);
    while (status == HTTP_OK && http_cut(&head, "\r\n", &line)) status = http_header(line, r);
    if (status != HTTP_OK) return status;
    if (!r->host.at && r->minor > 0) return 400;
    if (!r->host.at) r->host.at = "";
    if (r->authority.at) r->host = r->authority;
    if (r->body.len > cap - head_len) return 413;
    r->body.at = bytes.data + head_len;
    if (bytes.len < head_len + r->body.len) return HTTP_MORE;
    r->len = head_len + r->body.len;
    return HTTP_OK;
}

// ---- connections

// A request and its answer, on the heap: an idle connection has none. The buffer of the reader, of
// `cap` bytes, follows behind it.
enum { HTTP_HEAD_CAP = 1024 };
typedef struct http_exchange {
    volt_frame frame;
    volt_reader in;
    http_request req;
    volt_span bytes;
    size_t cap, n_before;
    int64_t n;
    int status;
    struct iovec answer[2]; // head and body, for volt_writev_all
    char head[HTTP_HEAD_CAP];
} http_exchange;

static http_exchange *http_begin(volt_stream in, size_t cap) {
    http_exchange *x = (http_exchange *)malloc(sizeof *x + cap);
    if (!x) return NULL;
    memset(&x->frame, 0, sizeof x->frame);
    x->req.scheme = "http";
    volt_reader_init(&x->in, in, x + 1, x->cap = cap, VOLT_LONG_STOP);
    return x;
}
// Drops the request. Keeps the exchange, and returns it, if there are bytes of the next one.
static http_exchange *http_end(http_exchange *x) {
    volt_consume(&x->in, x->req.len);
    if (volt_buffered(&x->in).len > 0) return x;
    free(x);
    return NULL;
}

// Reads until the buffer begins with a whole request.
//   gives : HTTP_OK | the status of a refusal | 0 at the end of the stream | -errno
static volt_poll http_read(volt_cx *cx, http_exchange *x) {
    VOLT_BEGIN(cx, x);
    while ((x->status = http_parse(volt_buffered(&x->in), x->cap, &x->req)) == HTTP_MORE) {
        x->n_before = volt_buffered(&x->in).len;
        VOLT_AWAIT(x->n, volt_fill(cx, &x->in, x->n_before + 1, &x->bytes));
        if (x->n <= (int64_t)x->n_before) VOLT_RETURN(x->n < 0 ? x->n : 0);
    }
    VOLT_END(x->status);
}

// For volt_io, behind the last answer: drops what comes, *left bytes at most. A close with bytes
// unread would reset the connection, and the answer may be lost.
static inline int64_t http_drop(int fd, void *left) {
    int64_t n = 0, *most = (int64_t *)left;
    while (*most > 0) {
        n = recv(fd, NULL, (size_t)*most, MSG_TRUNC | MSG_DONTWAIT); // TCP needs no buffer for it
        if (n <= 0) return n < 0 ? -errno : 0;
        *most -= n;
    }
    return 0;
}

// ---- answers

static const char *http_reason(int status) {
    switch (status) {
    case 200: return "OK";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

// A line of the head. Its names of days and months are English as long as the program does not call
// setlocale.
enum { HTTP_DATE_CAP = 40 };
static size_t http_date(char *out) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    return strftime(out, HTTP_DATE_CAP, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
}

// `fields`: further lines of the head, 800 bytes at most. With is_head the body is left out.
static void http_answer(http_exchange *x, int status, const char *fields, http_text body,
                        int is_head, int is_last) {
    size_t n = (size_t)sprintf(x->head, "HTTP/1.1 %d %s\r\n", status, http_reason(status));
    n += http_date(x->head + n);
    n += (size_t)sprintf(x->head + n, "%sContent-Length: %zu\r\n%s\r\n", fields, body.len,
                         is_last ? "Connection: close\r\n" : "");
    x->answer[0].iov_base = x->head, x->answer[0].iov_len = n;
    x->answer[1].iov_base = (void *)(uintptr_t)body.at; // only read
    x->answer[1].iov_len = is_head ? 0 : body.len;
}
#endif
