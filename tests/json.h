// SPDX-License-Identifier: MIT OR 0BSD
// A place for a dump or a trace, and a strict reader of JSON. Include after volt.h and test.h.
#ifndef VOLT_TEST_JSON_H
#define VOLT_TEST_JSON_H

#include <ctype.h>

typedef struct {
    char *text;
    size_t len, cap;
    int n_puts, fail_at, rc;
} sink;
static inline int put(void *user, const char *text, size_t len) {
    sink *s = (sink *)user;
    CHECK(len > 0 && len <= 1024);
    if (++s->n_puts == s->fail_at) return s->rc;
    if (s->len + len + 1 > s->cap) {
        s->cap = 2 * (s->len + len + 1);
        s->text = (char *)realloc(s->text, s->cap);
        CHECK(s->text);
    }
    memcpy(s->text + s->len, text, len);
    s->text[s->len += len] = 0;
    return 0;
}
static inline void dump(volt_rt *rt, sink *s, unsigned flags) {
    free(s->text);
    memset(s, 0, sizeof *s);
    CHECK_EQ(volt_dump_to(rt, put, s, flags), 0);
    CHECK(s->text);
}
static inline void drop(sink *s) { free(s->text); }
static inline int count(const sink *s, const char *what) {
    int n = 0;
    for (const char *c = s->text; (c = strstr(c, what)) != NULL; c += strlen(what)) n++;
    return n;
}
// The line of the text form that has this in it.
static inline void line_of(const sink *s, const char *what, char *line, size_t cap) {
    const char *at = strstr(s->text, what), *from = at;
    CHECK(at);
    while (from > s->text && from[-1] != '\n') from--;
    size_t n = strcspn(from, "\n");
    CHECK(n < cap);
    memcpy(line, from, n);
    line[n] = 0;
}

// A strict reader of JSON: the number of objects in all lists of the outermost one.
typedef struct {
    const char *at;
    int n_objects;
} reader;
static inline void skip_blank(reader *r) {
    while (*r->at == ' ' || *r->at == '\n') r->at++;
}
static inline void expect(reader *r, char c) {
    skip_blank(r);
    if (*r->at != c) test_fail(__FILE__, __LINE__, "JSON: %c expected at: %.40s", c, r->at);
    r->at++;
}
static inline void read_string(reader *r) {
    expect(r, '"');
    for (; *r->at != '"'; r->at++) {
        CHECK((unsigned char)*r->at >= 32);
        if (*r->at != '\\') continue;
        r->at++;
        CHECK(*r->at == '"' || *r->at == '\\' || *r->at == 'u');
        for (int i = 0; *r->at == 'u' && i < 4; i++) CHECK(isxdigit((unsigned char)r->at[1 + i]));
    }
    r->at++;
}
static inline void read_value(reader *r) {
    skip_blank(r);
    if (*r->at == '"') {
        read_string(r);
    } else if (*r->at == '[') {
        expect(r, '[');
        for (skip_blank(r); *r->at != ']'; skip_blank(r)) {
            read_value(r);
            skip_blank(r);
            if (*r->at != ']') expect(r, ',');
        }
        expect(r, ']');
    } else if (*r->at == '{') {
        r->n_objects++;
        expect(r, '{');
        for (skip_blank(r); *r->at != '}'; skip_blank(r)) {
            read_string(r);
            expect(r, ':');
            read_value(r);
            skip_blank(r);
            if (*r->at != '}') expect(r, ',');
        }
        expect(r, '}');
    } else {
        CHECK(isdigit((unsigned char)*r->at));
        while (isdigit((unsigned char)*r->at) || *r->at == '.') r->at++;
    }
}
static inline int read_json(const sink *s) {
    reader r = { s->text, 0 };
    read_value(&r);
    skip_blank(&r);
    CHECK(*r.at == 0);
    return r.n_objects - 1;
}

#endif // VOLT_TEST_JSON_H
