// SPDX-License-Identifier: MIT OR 0BSD
// A buffer for a dump or a trace, and a strict reader of JSON. Include after volt.h and test.h.
#ifndef VOLT_TEST_JSON_H
#define VOLT_TEST_JSON_H

#include <ctype.h>
#include <pthread.h>

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
// The line of the text form that contains this.
static inline void line_of(const sink *s, const char *what, char *line, size_t cap) {
    const char *at = strstr(s->text, what), *from = at;
    CHECK(at);
    while (from > s->text && from[-1] != '\n') from--;
    size_t n = strcspn(from, "\n");
    CHECK(n < cap);
    memcpy(line, from, n);
    line[n] = 0;
}
// The value of a sample of the metrics, which has a line of its own; or -1.
static inline double sample(const sink *s, const char *name) {
    size_t n = strlen(name);
    for (const char *line = s->text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ' ') return strtod(line + n + 1, NULL);
    }
    return -1;
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

// ---- volt_dump and volt_trace into descriptors

typedef int tell_fn(volt_rt *rt, int fd);

// A pipe without a reader is an error, raises no signal, and leaves the caller's signals as they
// were, including a pending SIGPIPE.
static inline void check_broken_pipe(volt_rt *rt, tell_fn *tell) {
    for (int i = 0; i < 3; i++) {
        int p[2], is_blocked = i > 0, is_pending = i == 2;
        sigset_t before, mask, pending;
        CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
        close(p[0]);
        sigemptyset(&before);
        sigaddset(&before, SIGUSR2);
        if (is_blocked) sigaddset(&before, SIGPIPE);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
        if (is_pending) CHECK_EQ(raise(SIGPIPE), 0);
        CHECK_EQ(tell(rt, p[1]), -EPIPE);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
        CHECK_EQ(sigpending(&pending), 0);
        for (int k = 1; k < 32; k++) {
            CHECK_EQ(sigismember(&mask, k), sigismember(&before, k));
            CHECK_EQ(sigismember(&pending, k), is_pending && k == SIGPIPE);
        }
        close(p[1]);
    }
}
static inline void *drain_slowly(void *fd) {
    char buf[512];
    static size_t n_read;
    n_read = 0;
    for (ssize_t n; (n = read(*(int *)fd, buf, sizeof buf)) > 0; n_read += (size_t)n) sched_yield();
    return &n_read;
}
// A non-blocking pipe that is too small for the output, and one that takes nothing.
static inline void check_full_pipe(volt_rt *rt, tell_fn *tell) {
    int p[2];
    static char block[4096];
    void *n_read = NULL;
    CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    int holds = fcntl(p[1], F_SETPIPE_SZ, (int)sizeof block);
    CHECK(holds > 0);
    CHECK_EQ(fcntl(p[0], F_SETFL, 0), 0);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, drain_slowly, &p[0]), 0);
    CHECK_EQ(tell(rt, p[1]), 0);
    close(p[1]);
    CHECK_EQ(pthread_join(t, &n_read), 0);
    CHECK(*(size_t *)n_read > (size_t)holds);
    close(p[0]);
    CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(p[1], block, sizeof block) > 0) {}
    CHECK_EQ(tell(rt, p[1]), -EAGAIN); // nothing is taken
    close(p[0]);
    close(p[1]);
}

#endif // VOLT_TEST_JSON_H
