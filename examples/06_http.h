// SPDX-License-Identifier: MIT OR 0BSD
// As much of HTTP/1.1 (RFC 9112) as the examples need: finds one request at the start of a buffer,
// and writes an answer. Nothing here waits, allocates or keeps state: when there are more bytes,
// http_parse is asked again. Needs _GNU_SOURCE (memmem), which volt.h's implementation defines.
#ifndef EXAMPLE_HTTP_H
#define EXAMPLE_HTTP_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct http_text { // a part of the buffer, not terminated
    const char *at;
    size_t len;
} http_text;

typedef struct http_request {
    http_text method, path, body;
    http_text host, origin; // origin.at NULL: there was none
    size_t len;  // of a whole request in the buffer, else 0
    int minor;   // of the version: HTTP/1.minor
    int is_last; // the client wants the connection closed behind the answer
    unsigned n_hosts, n_lengths;
} http_request;

enum { HTTP_MORE = 0, HTTP_OK = 200 }; // what http_parse gives, beside the status of a refusal

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

// No control characters, and of blanks only those named. What two servers read in different ways is
// how a request gets smuggled past one of them.
static int http_is_clean(http_text t, const char *blanks) {
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if ((c <= ' ' && !memchr(blanks, c, strlen(blanks))) || c == 0x7f) return 0;
    }
    return 1;
}

static int http_length(http_text digits, size_t *out) {
    *out = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9') return 400;
        if (*out > 100000000) return 413;
        *out = *out * 10 + (size_t)(digits.at[i] - '0');
    }
    return digits.len ? HTTP_OK : 400;
}

static int http_header(http_text line, http_request *r) {
    http_text name;
    if (!http_cut(&line, ":", &name) || !name.len) return 400;
    if (!http_is_clean(name, "") || !http_is_clean(line, " \t")) return 400;
    http_text value = http_trim(line);
    if (http_is_like(name, "Transfer-Encoding")) return 501;
    if (http_is_like(name, "Host")) r->n_hosts++, r->host = value;
    if (http_is_like(name, "Origin")) r->origin = value;
    if (http_is_like(name, "Connection") && http_list_has(value, "close")) r->is_last = 1;
    if (http_is_like(name, "Expect")) return 417; // curl and others then send the body at once
    if (!http_is_like(name, "Content-Length")) return HTTP_OK;
    return r->n_lengths++ ? 400 : http_length(value, &r->body.len);
}

static int http_request_line(http_text line, http_request *r) {
    http_text target;
    if (!http_is_clean(line, " ") || !http_cut(&line, " ", &r->method) || !r->method.len)
        return 400;
    if (!http_cut(&line, " ", &target) || !target.len) return 400;
    if (!http_cut(&target, "?", &r->path)) r->path = target;
    if (line.len != 8 || memcmp(line.at, "HTTP/1.", 7) != 0) return 400;
    if (line.at[7] != '0' && line.at[7] != '1') return 400;
    r->minor = line.at[7] - '0';
    r->is_last = r->minor == 0; // it can ask for keep-alive, too; not here
    return HTTP_OK;
}

// `cap` is the size of the buffer: a request that does not fit is refused.
static int http_parse(const char *buf, size_t have, size_t cap, http_request *r) {
    http_text rest = { buf, have }, head, line;
    *r = (http_request){ .len = 0 };
    if (!http_cut(&rest, "\r\n\r\n", &head)) return have < cap ? HTTP_MORE : 431;
    size_t head_len = head.len + 4;
    head.len += 2; // each line ends in CRLF
    if (!http_cut(&head, "\r\n", &line)) return 400;
    int status = http_request_line(line, r);
    while (status == HTTP_OK && http_cut(&head, "\r\n", &line)) status = http_header(line, r);
    if (status != HTTP_OK) return status;
    if (r->minor == 1 && r->n_hosts != 1) return 400;
    if (r->body.len > cap - head_len) return 413;
    r->body.at = buf + head_len;
    if (have < head_len + r->body.len) return HTTP_MORE;
    r->len = head_len + r->body.len;
    return HTTP_OK;
}

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
    default: return "Bad Request";
    }
}

// `fields`: further lines of the head. Gives the length. `out` has room for them, the body and 256
// bytes more; with is_head the body is left out.
static size_t http_answer(char *out, int status, const char *fields, http_text body, int is_head,
                          int is_last) {
    int n = sprintf(out, "HTTP/1.1 %d %s\r\n%sContent-Length: %zu\r\n%s\r\n", status,
                    http_reason(status), fields, body.len, is_last ? "Connection: close\r\n" : "");
    if (is_head) return (size_t)n;
    memcpy(out + n, body.at, body.len);
    return (size_t)n + body.len;
}
#endif
