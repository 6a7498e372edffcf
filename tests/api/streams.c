// SPDX-License-Identifier: MIT OR 0BSD
// Streams, readers, writers, copies and relays. A scripted stream cuts its bytes anywhere, and
// waits are cancelled at each point: nothing is lost, and the next call goes on.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>
#include <wchar.h>

// ---- a stream by script: gives and takes `piece` bytes at a time, and yields before each

typedef struct script {
    volt_frame frame; // of a read or a write: only one is used at a time here
    const char *in;
    size_t n_in, at, n_out, most, piece;
    char *out;
    int n_polls, is_ended;
    int64_t error; // of the next operation
} script;
static volt_poll script_read(volt_cx *cx, volt_stream st, void *buf, size_t len) {
    script *s = (script *)st.self;
    VOLT_BEGIN(cx, s);
    s->n_polls++;
    int64_t rc;
    VOLT_AWAIT(rc, volt_yield(cx));
    if (rc < 0) VOLT_RETURN(rc);
    if (s->error) VOLT_RETURN(s->error);
    size_t n = s->n_in - s->at < s->piece ? s->n_in - s->at : s->piece;
    if (n > len) n = len;
    memcpy(buf, s->in + s->at, n);
    s->at += n;
    VOLT_END((int64_t)n);
}
static volt_poll script_write(volt_cx *cx, volt_stream st, const void *buf, size_t len) {
    script *s = (script *)st.self;
    VOLT_BEGIN(cx, s);
    s->n_polls++;
    int64_t rc;
    VOLT_AWAIT(rc, volt_yield(cx));
    if (rc < 0) VOLT_RETURN(rc);
    if (s->error) VOLT_RETURN(s->error);
    size_t n = len < s->piece ? len : s->piece;
    CHECK(s->n_out + n <= s->most);
    memcpy(s->out + s->n_out, buf, n);
    s->n_out += n;
    VOLT_END((int64_t)n);
}
static volt_poll script_end(volt_cx *cx, volt_stream st) {
    (void)cx;
    ((script *)st.self)->is_ended++;
    return volt_ready(0);
}
static const volt_stream_ops script_ops = { script_read, script_write, script_end, NULL };
static volt_stream stream_of(script *s) { return (volt_stream){ &script_ops, s, -1 }; }

// Fails where the script ends, in place of an end.
static volt_poll cut_read(volt_cx *cx, volt_stream st, void *buf, size_t len) {
    script *s = (script *)st.self;
    return s->at == s->n_in ? volt_ready(-ECONNRESET) : script_read(cx, st, buf, len);
}
static const volt_stream_ops cut_ops = { cut_read, NULL, NULL, NULL };
static volt_stream cut_stream_of(script *s) { return (volt_stream){ &cut_ops, s, -1 }; }

ROOT_TEST_1(streams_call_their_operations, {
    script io;
    int fd[2], i;
    char out[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 3 };
    VOLT_AWAIT(s->rc, volt_stream_write(cx, stream_of(&s->io), "12345", 5));
    CHECK(s->rc == 3 && s->io.n_out == 3 && memcmp(s->out, "123", 3) == 0);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, stream_of(&s->io)));
    CHECK(s->rc == 0 && s->io.is_ended == 1);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, cut_stream_of(&s->io)));
    CHECK(s->rc == 0 && s->io.is_ended == 1); // it has no such operation
    // a file that is no socket, and a socket without a shutdown
    CHECK_EQ(volt_pipe(s->fd), 0);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_stream_of(s->fd[1])));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 2; s->i++) volt_close(cx, s->fd[s->i]);
    s->fd[0] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_stream_of(s->fd[0])));
    CHECK_EQ(s->rc, s->fd[0] < 0 ? -EBADF : 0);
    if (s->fd[0] >= 0) volt_close(cx, s->fd[0]);
    VOLT_END(0);
}

// ---- lines

typedef struct {
    volt_frame frame;
    volt_reader *r;
    const char *delimiter; // NULL: lines
    volt_span span;
    int64_t rc;
} line_taker;
static volt_poll line_taker_run(volt_cx *cx, void *arg) {
    line_taker *t = (line_taker *)arg;
    VOLT_BEGIN(cx, t);
    VOLT_AWAIT(t->rc, t->delimiter ? volt_read_until(cx, t->r, t->delimiter, strlen(t->delimiter),
                                                     &t->span)
                                   : volt_read_line(cx, t->r, &t->span));
    VOLT_END(t->rc);
}
typedef struct {
    volt_frame frame;
    int n, k;
} countdown;
static volt_poll countdown_run(volt_cx *cx, countdown *c) {
    VOLT_BEGIN(cx, c);
    for (c->n = 0; c->n < c->k; c->n++) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_reader *r;
    const char *delimiter;
    volt_span span;
    volt_arm arm[2];
    countdown limit;
    line_taker taker;
    int k;
    int64_t rc;
} insistent;
static volt_poll insistent_line(volt_cx *cx, insistent *s) {
    VOLT_BEGIN(cx, s);
    for (s->k = 0;; s->k++) { // the limit wins until the line comes before it
        s->limit.k = s->k % 7;
        s->taker.r = s->r;
        s->taker.delimiter = s->delimiter;
        VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->arm[0], line_taker_run(cx, &s->taker)),
                                             VOLT_ARM(&s->arm[1], countdown_run(cx, &s->limit))));
        if (s->arm[0].fired || s->arm[0].value != -ECANCELED) break;
        CHECK(s->k < 100000);
    }
    s->span = s->taker.span;
    VOLT_END(s->arm[0].value);
}
ROOT_TEST_1(lines_are_taken_at_every_cut_and_after_cancellations, {
    script in;
    volt_reader r;
    insistent next;
    char buf[16];
    int64_t rc;
    size_t piece;
    int i;
}) {
    static const char text[] = "one\ntwo\r\n\n\r\nlonger line\nx\ry\nlast";
    static const struct {
        int rc;
        const char *line;
    } want[] = { { 1, "one" }, { 1, "two" }, { 1, "" },     { 1, "" }, { 1, "longer line" },
                 { 1, "x\ry" }, { 2, "last" }, { 0, NULL }, { 0, NULL } };
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 40; s->piece++) {
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        for (s->i = 0; s->i < (int)(sizeof want / sizeof want[0]); s->i++) {
            s->next.r = &s->r;
            VOLT_AWAIT(s->rc, insistent_line(cx, &s->next));
            CHECK_EQ(s->rc, want[s->i].rc);
            if (!want[s->i].line) continue;
            CHECK_EQ(s->next.span.len, strlen(want[s->i].line));
            CHECK_EQ(memcmp(s->next.span.data, want[s->i].line, s->next.span.len), 0);
        }
    }
    VOLT_END(0);
}
ROOT_TEST_1(delimiters_of_several_bytes_are_found_at_every_cut, {
    script in;
    volt_reader r;
    insistent next;
    char buf[20];
    int64_t rc;
    size_t piece;
    int i;
}) {
    static const char text[] = "a--b-c----d-e---";
    static const char *const want[] = { "a", "b-c", "", "d-e" };
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 18; s->piece++) {
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        for (s->i = 0; s->i < 4; s->i++) {
            s->next.r = &s->r;
            s->next.delimiter = "--";
            VOLT_AWAIT(s->rc, insistent_line(cx, &s->next));
            CHECK_EQ(s->rc, 1);
            CHECK_EQ(s->next.span.len, strlen(want[s->i]));
            CHECK_EQ(memcmp(s->next.span.data, want[s->i], s->next.span.len), 0);
        }
        VOLT_AWAIT(s->rc, insistent_line(cx, &s->next));
        CHECK_EQ(s->rc, 2);
        CHECK(s->next.span.len == 1 && s->next.span.data[0] == '-');
        CHECK_EQ(volt_try_read_until(&s->r, "", 0, &s->next.span), -EINVAL);
    }
    VOLT_END(0);
}
// A search that has found nothing does not count for another delimiter.
ROOT_TEST_1(delimiters_may_change_between_two_calls, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[20];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->in = (script){ .in = "key:value", .n_in = 9, .piece = 9 };
    volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, 1, &s->span));
    CHECK_EQ(volt_try_read_line(&s->r, &s->span), -EAGAIN);
    CHECK_EQ(volt_try_read_until(&s->r, ":", 1, &s->span), 1);
    CHECK(s->span.len == 3 && memcmp(s->span.data, "key", 3) == 0);
    VOLT_END(0);
}
// A reader remembers delimiters of up to 8 bytes: longer ones are sought from the beginning.
ROOT_TEST_1(long_delimiters_are_found_at_every_cut, {
    script in;
    volt_reader r;
    volt_span span;
    insistent next;
    char buf[24];
    int64_t rc;
    size_t piece;
    int i;
}) {
    static const char text[] = "a=========bc=========d========";
    static const char *const want[] = { "a", "bc", "d========" };
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 32; s->piece++) {
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        for (s->i = 0; s->i < 3; s->i++) {
            CHECK_EQ(volt_try_read_until(&s->r, "---------", 9, &s->span), -EAGAIN);
            s->next.r = &s->r;
            s->next.delimiter = "=========";
            VOLT_AWAIT(s->rc, insistent_line(cx, &s->next));
            CHECK_EQ(s->rc, s->i < 2 ? 1 : 2);
            CHECK_EQ(s->next.span.len, strlen(want[s->i]));
            CHECK_EQ(memcmp(s->next.span.data, want[s->i], s->next.span.len), 0);
        }
        // a delimiter that is longer than the buffer is never found, and not cut either
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, 8, VOLT_LONG_CUT);
        VOLT_AWAIT(s->rc, volt_read_until(cx, &s->r, "=========", 9, &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        CHECK_EQ(volt_buffered(&s->r).len, 8);
        // nor while a line is skipped
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, 8, VOLT_LONG_SKIP);
        VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        VOLT_AWAIT(s->rc, volt_read_until(cx, &s->r, "=========", 9, &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
    }
    VOLT_END(0);
}
// The delimiter is written into the part of the buffer that has been scanned: to scan that part
// again would find it. So bytes that come one by one cost no square of their number.
typedef struct {
    volt_frame frame;
    char *buf;
    script *in;
} forger;
static volt_poll forge_when_scanned(volt_cx *cx, forger *f) {
    VOLT_BEGIN(cx, f);
    while (f->in->at < 30) VOLT_AWAIT(volt_yield(cx));
    memcpy(f->buf, "--boundary", 10);
    VOLT_END(0);
}
ROOT_TEST_1(bytes_are_scanned_once_for_a_long_delimiter, {
    script in;
    volt_reader r;
    char buf[64];
    volt_arm arm[2];
    line_taker taker;
    forger forge;
}) {
    static const char text[] = "----------------------------------------boundary";
    VOLT_BEGIN(cx, s);
    s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = 1 };
    volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    s->taker = (line_taker){ .r = &s->r, .delimiter = "--boundary" };
    s->forge = (forger){ .buf = s->buf, .in = &s->in };
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], line_taker_run(cx, &s->taker)),
                             VOLT_ARM(&s->arm[1], forge_when_scanned(cx, &s->forge))));
    CHECK_EQ(s->taker.rc, 1);
    CHECK_EQ(s->taker.span.len, 38);
    VOLT_END(0);
}
// The part of a line that is skipped is not taken for a last line.
ROOT_TEST_1(skipped_line_may_be_the_last, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[8];
    int64_t rc;
    size_t piece;
    int i;
}) {
    static const char text[] = "abcdefghijklmnop-";
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 18; s->piece++) {
        for (s->i = 1; s->i <= 2; s->i++) { // bytes of the delimiter: one of them may be kept
            s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
            volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_SKIP);
            VOLT_AWAIT(s->rc, volt_read_until(cx, &s->r, s->i == 1 ? "\n" : "--", (size_t)s->i,
                                              &s->span));
            CHECK_EQ(s->rc, -EMSGSIZE);
            VOLT_AWAIT(s->rc, volt_read_until(cx, &s->r, s->i == 1 ? "\n" : "--", (size_t)s->i,
                                              &s->span));
            CHECK_EQ(s->rc, 0);
            CHECK_EQ(volt_buffered(&s->r).len, 0);
        }
    }
    VOLT_END(0);
}
ROOT_TEST_1(long_lines_stop_are_skipped_or_cut, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[8], all[40];
    int64_t rc;
    size_t piece, n;
    int i;
}) {
    static const char text[] = "1234567\nabcdefghijklmnop\n12345678\nend\n";
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 40; s->piece++) {
        // STOP: the first line just fits; the second never does
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
        CHECK(s->rc == 1 && s->span.len == 7);
        for (s->i = 0; s->i < 3; s->i++) {
            VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
            CHECK_EQ(s->rc, -EMSGSIZE);
        }
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_SKIP);
        for (s->i = 0; s->i < 5; s->i++) {
            static const int want[] = { 1, -EMSGSIZE, -EMSGSIZE, 1, 0 };
            VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
            CHECK_EQ(s->rc, want[s->i]);
            if (s->i == 3) CHECK(s->span.len == 3 && memcmp(s->span.data, "end", 3) == 0);
        }
        s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_CUT);
        s->n = 0;
        for (;;) {
            VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
            CHECK(s->rc >= 0 && s->rc <= 2);
            if (s->rc == 0) break;
            CHECK(s->n + s->span.len < sizeof s->all);
            memcpy(s->all + s->n, s->span.data, s->span.len);
            s->n += s->span.len;
            if (s->rc == 1) s->all[s->n++] = '\n';
        }
        CHECK_EQ(s->n, sizeof text - 1);
        CHECK_EQ(memcmp(s->all, text, s->n), 0);
    }
    VOLT_END(0);
}
// A "\r" at the end of a piece comes with the next one, or belongs to the end of the line.
ROOT_TEST_1(piece_does_not_end_with_a_part_of_the_line_end, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[8], all[40];
    int64_t rc;
    size_t piece, cap, n;
}) {
    static const char text[] = "abc\r\nab\rcdef\r\n\r\n123456\r\rx\r";
    static const char want[] = "abc\nab\rcdef\n\n123456\r\rx\r";
    VOLT_BEGIN(cx, s);
    for (s->cap = 2; s->cap <= sizeof s->buf; s->cap++) {
        for (s->piece = 1; s->piece < sizeof text; s->piece++) {
            s->in = (script){ .in = text, .n_in = sizeof text - 1, .piece = s->piece };
            volt_reader_init(&s->r, stream_of(&s->in), s->buf, s->cap, VOLT_LONG_CUT);
            s->n = 0;
            for (;;) {
                VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
                CHECK(s->rc >= 0 && s->rc <= 2);
                if (s->rc == 0) break;
                CHECK(s->span.len > 0 || s->rc == 1);
                memcpy(s->all + s->n, s->span.data, s->span.len);
                s->n += s->span.len;
                if (s->rc == 1) s->all[s->n++] = '\n';
            }
            CHECK_EQ(s->n, sizeof want - 1);
            CHECK_EQ(memcmp(s->all, want, s->n), 0);
        }
    }
    VOLT_END(0);
}
ROOT_TEST_1(reader_fills_reads_and_gives_the_rest_as_a_stream, {
    script in;
    volt_reader r;
    volt_span span;
    volt_stream rest;
    char buf[8], out[32];
    int64_t rc;
    size_t piece;
}) {
    static const char text[] = "0123456789abcdefghijklmnop";
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 30; s->piece++) {
        s->in = (script){ .in = text, .n_in = 26, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, 5, &s->span));
        CHECK(s->rc >= 5 && memcmp(s->span.data, text, 5) == 0);
        VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, 9, &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        volt_consume(&s->r, 3);
        CHECK_EQ(volt_buffered(&s->r).data[0], '3');
        VOLT_AWAIT(s->rc, volt_reader_ready(cx, &s->r));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_reader_read_exact(cx, &s->r, s->out, 12));
        CHECK_EQ(s->rc, 12);
        CHECK_EQ(memcmp(s->out, text + 3, 12), 0);
        s->rest = volt_reader_stream(&s->r);
        VOLT_AWAIT(s->rc, volt_stream_read(cx, s->rest, s->out, 1));
        CHECK(s->rc == 1 && s->out[0] == text[15]);
        VOLT_AWAIT(s->rc, volt_read_to_end(cx, &s->r, s->out, 10));
        CHECK_EQ(s->rc, 10);
        CHECK_EQ(memcmp(s->out, text + 16, 10), 0);
        VOLT_AWAIT(s->rc, volt_reader_read_exact(cx, &s->r, s->out, 1));
        CHECK_EQ(s->rc, -EPIPE);
        CHECK_EQ(volt_reader_moved(&s->r), 0);
        VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, 1, &s->span));
        CHECK_EQ(s->rc, 0);
        s->in = (script){ .in = text, .n_in = 26, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_to_end(cx, &s->r, s->out, 25));
        CHECK_EQ(s->rc, -EMSGSIZE);
        // a whole buffer; a short read goes by way of it, and a long one past it
        s->in = (script){ .in = text, .n_in = 26, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, sizeof s->buf, &s->span));
        CHECK(s->rc == 8 && memcmp(s->span.data, text, 8) == 0);
        volt_consume(&s->r, 8);
        VOLT_AWAIT(s->rc, volt_reader_read(cx, &s->r, s->out, 1));
        CHECK(s->rc == 1 && s->out[0] == text[8]);
        CHECK_EQ(volt_buffered(&s->r).len, (s->piece < 8 ? s->piece : 8) - 1);
        volt_consume(&s->r, volt_buffered(&s->r).len);
        VOLT_AWAIT(s->rc, volt_reader_read(cx, &s->r, s->out, 10));
        CHECK_EQ(s->rc, s->piece < 10 ? s->piece : 10);
        s->in.error = -ECONNRESET;
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_line(cx, &s->r, &s->span));
        CHECK_EQ(s->rc, -ECONNRESET);
        VOLT_AWAIT(s->rc, volt_reader_ready(cx, &s->r));
        CHECK_EQ(s->rc, -EOPNOTSUPP);
    }
    VOLT_END(0);
}
// A call that fails tells how far it has come, and the next one begins with a count of its own.
ROOT_TEST_1(failed_reads_count_what_they_have_moved, {
    script in;
    volt_reader r;
    char buf[4], out[12];
    int64_t rc;
    size_t piece;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 8; s->piece++) {
        s->in = (script){ .in = "abcdef", .n_in = 6, .piece = s->piece };
        volt_reader_init(&s->r, cut_stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        for (s->i = 0; s->i < 3; s->i++) { // the last one fails when there is no room left
            memset(s->out, 0, sizeof s->out);
            s->in.at = 0;
            if (s->i == 0) {
                VOLT_AWAIT(s->rc, volt_reader_read_exact(cx, &s->r, s->out, 7));
            } else {
                VOLT_AWAIT(s->rc, volt_read_to_end(cx, &s->r, s->out, s->i == 1 ? 7 : 6));
            }
            CHECK_EQ(s->rc, -ECONNRESET);
            CHECK_EQ(volt_reader_moved(&s->r), 6);
            CHECK_EQ(memcmp(s->out, "abcdef", 7), 0);
        }
        s->in.at = 0;
        VOLT_AWAIT(s->rc, volt_reader_read_exact(cx, &s->r, s->out, 3));
        CHECK(s->rc == 3 && memcmp(s->out, "abc", 3) == 0);
    }
    VOLT_END(0);
}
// A reader that has found the end, with bytes in its buffer or without: its stream is read no more.
ROOT_TEST_1(reader_at_the_end_does_not_read_on, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[8], out[8];
    int64_t rc;
    int n_polls, i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        static const size_t caps[] = { 5, 6, 8 };
        s->in = (script){ .in = "abcdef", .n_in = 6, .piece = 8 };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_reader_ready(cx, &s->r));
        CHECK_EQ(s->rc, -EOPNOTSUPP);
        VOLT_AWAIT(s->rc, volt_reader_read(cx, &s->r, s->out, 0));
        CHECK(s->rc == 0 && s->in.n_polls == 0);
        VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, sizeof s->buf, &s->span));
        CHECK_EQ(s->rc, 6);
        s->n_polls = s->in.n_polls;
        VOLT_AWAIT(s->rc, volt_read_to_end(cx, &s->r, s->out, caps[s->i]));
        CHECK_EQ(s->rc, s->i == 0 ? -EMSGSIZE : 6);
        CHECK_EQ(volt_buffered(&s->r).len, s->i == 0);
        volt_consume(&s->r, volt_buffered(&s->r).len);
        VOLT_AWAIT(s->rc, volt_reader_read(cx, &s->r, s->out, sizeof s->out));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_reader_ready(cx, &s->r));
        CHECK_EQ(s->rc, 0); // although the stream has no such wait
        CHECK_EQ(s->in.n_polls, s->n_polls);
    }
    VOLT_END(0);
}
ROOT_TEST_1(reader_as_a_stream_passes_on_writes_and_the_end, {
    script io;
    volt_reader r;
    volt_span span;
    char buf[8], out[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .in = "ab", .n_in = 2, .out = s->out, .most = sizeof s->out, .piece = 8 };
    volt_reader_init(&s->r, stream_of(&s->io), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    VOLT_AWAIT(s->rc, volt_stream_ready(cx, volt_reader_stream(&s->r)));
    CHECK_EQ(s->rc, -EOPNOTSUPP);
    VOLT_AWAIT(s->rc, volt_fill(cx, &s->r, 1, &s->span));
    VOLT_AWAIT(s->rc, volt_stream_ready(cx, volt_reader_stream(&s->r)));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_stream_write(cx, volt_reader_stream(&s->r), "xyz", 3));
    CHECK(s->rc == 3 && s->io.n_out == 3 && memcmp(s->out, "xyz", 3) == 0);
    CHECK_EQ(volt_buffered(&s->r).len, 2);
    VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_reader_stream(&s->r)));
    CHECK(s->rc == 0 && s->io.is_ended == 1);
    VOLT_END(0);
}

// ---- records

enum { FORMATS = 6 };
static const volt_record_format formats[FORMATS] = {
    { 0 }, { .width = 1 }, { .width = 2, .is_little = 1 }, { .offset = 3, .width = 2, .header = 8 },
    { .width = 4, .adjust = -4 }, { .width = 8, .keeps_header = 1 }
};
ROOT_TEST_1(records_go_through_a_writer_and_a_reader, {
    script io;
    volt_writer w;
    volt_reader r;
    volt_span span;
    char out[200], wire[4000], back[100], body[100];
    struct iovec part[2];
    int64_t rc;
    size_t piece;
    int f, i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->f = 0; s->f < FORMATS; s->f++) {
        for (s->piece = 1; s->piece < 60; s->piece += 3) {
            s->io = (script){ .out = s->wire, .most = sizeof s->wire, .piece = s->piece };
            volt_writer_init(&s->w, stream_of(&s->io), s->out, sizeof s->out);
            for (s->i = 0; s->i < 20; s->i++) {
                memset(s->body, s->i, sizeof s->body);
                // keeps_header: the first 8 bytes are the header's
                size_t n = (size_t)s->i * 3 + (formats[s->f].keeps_header ? 8 : 0);
                s->part[0] = (struct iovec){ s->body, n / 2 };
                s->part[1] = (struct iovec){ s->body + n / 2, n - n / 2 };
                while ((s->rc = volt_put_record(&s->w, &formats[s->f], s->part, 2)) == -ENOBUFS)
                    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
                CHECK_EQ(s->rc, 0);
            }
            VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
            CHECK_EQ(s->rc, 0);
            s->io.in = s->wire;
            s->io.n_in = s->io.n_out;
            volt_reader_init(&s->r, stream_of(&s->io), s->back, sizeof s->back, VOLT_LONG_STOP);
            for (s->i = 0; s->i < 20; s->i++) {
                VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[s->f], &s->span));
                CHECK_EQ(s->rc, 1);
                size_t head = formats[s->f].keeps_header ? 8 : 0;
                CHECK_EQ(s->span.len, (size_t)s->i * 3 + head);
                for (size_t k = head; k < s->span.len; k++) CHECK_EQ(s->span.data[k], s->i);
            }
            VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[s->f], &s->span));
            CHECK_EQ(s->rc, 0);
        }
    }
    VOLT_END(0);
}
ROOT_TEST_1(bad_records_are_refused, {
    script in;
    volt_reader r;
    volt_span span;
    volt_record_format f;
    char buf[16];
    int64_t rc;
    size_t piece;
}) {
    static const char huge[] = "\xff\xff\xff\xff....", cut[] = "\0\0\0\5abc", small[] = "\0\0\0\1";
    static const char skipped[] = "\0\0\0\x14" "01234567890123456789" "\0\0\0\2ok";
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 9; s->piece++) {
        s->in = (script){ .in = huge, .n_in = 8, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[0], &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        s->in = (script){ .in = cut, .n_in = 7, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[0], &s->span));
        CHECK_EQ(s->rc, -EPIPE);
        s->in = (script){ .in = small, .n_in = 4, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[4], &s->span));
        CHECK_EQ(s->rc, -EBADMSG);
        s->f = (volt_record_format){ .most = 4 };
        s->in = (script){ .in = cut, .n_in = 7, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &s->f, &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        s->in = (script){ .in = skipped, .n_in = sizeof skipped - 1, .piece = s->piece };
        volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_SKIP);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[0], &s->span));
        CHECK_EQ(s->rc, -EMSGSIZE);
        VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &formats[0], &s->span));
        CHECK(s->rc == 1 && s->span.len == 2 && memcmp(s->span.data, "ok", 2) == 0);
    }
    s->f = (volt_record_format){ .width = 9 };
    VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &s->f, &s->span));
    CHECK_EQ(s->rc, -EINVAL);
    s->f = (volt_record_format){ .offset = 4, .width = 4, .header = 6 };
    VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &s->f, &s->span));
    CHECK_EQ(s->rc, -EINVAL);
    // a header that just fits into the buffer, and one that does not
    static const char empty[sizeof s->buf] = "";
    s->in = (script){ .in = empty, .n_in = sizeof empty, .piece = 3 };
    volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    s->f = (volt_record_format){ .header = sizeof s->buf + 1 };
    VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &s->f, &s->span));
    CHECK_EQ(s->rc, -EINVAL);
    s->f.header = sizeof s->buf;
    VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &s->f, &s->span));
    CHECK(s->rc == 1 && s->span.len == 0);
    VOLT_END(0);
}
// Numbers at the limits of 64 bits, limits that a record just meets, and ends inside a record.
ROOT_TEST_1(length_of_a_record_is_checked, {
    script in;
    volt_reader r;
    volt_span span;
    char buf[16];
    int64_t rc;
    size_t piece;
    int i;
}) {
    static const struct {
        const char *wire;
        size_t n;
        volt_record_format f;
        int policy, rc, next;
    } cases[] = {
        { "\xff\xff\xff\xff\xff\xff\xff\xff....", 12, { .width = 8 }, VOLT_LONG_STOP, -EMSGSIZE,
          -EMSGSIZE },
        { "\xff\xff\xff\xff\xff\xff\xff\xff....", 12, { .width = 8 }, VOLT_LONG_SKIP, -EMSGSIZE,
          -EPIPE },
        { "\x7f\xff\xff\xff\xff\xff\xff\xff....", 12, { .width = 8, .adjust = 5 },
          VOLT_LONG_SKIP, -EMSGSIZE, -EPIPE },
        { "\0\0\0\x14" "0123", 8, { 0 }, VOLT_LONG_SKIP, -EMSGSIZE, -EPIPE },
        { "\0\0", 2, { 0 }, VOLT_LONG_STOP, -EPIPE, -EPIPE },
        { "\0\0\0\4" "0123", 8, { .adjust = INT64_MIN }, VOLT_LONG_STOP, -EBADMSG, -EBADMSG },
        { "\0\0\0\4" "0123", 8, { .most = 4 }, VOLT_LONG_STOP, 1, 0 },
        { "\2" "01" "\0" "\1" "0", 6, { .width = 1, .most = 2 }, VOLT_LONG_STOP, 1, 1 }
    };
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        for (s->piece = 1; s->piece < 13; s->piece++) {
            s->in = (script){ .in = cases[s->i].wire, .n_in = cases[s->i].n, .piece = s->piece };
            volt_reader_init(&s->r, stream_of(&s->in), s->buf, sizeof s->buf, cases[s->i].policy);
            VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &cases[s->i].f, &s->span));
            CHECK_EQ(s->rc, cases[s->i].rc);
            VOLT_AWAIT(s->rc, volt_read_record(cx, &s->r, &cases[s->i].f, &s->span));
            CHECK_EQ(s->rc, cases[s->i].next);
        }
    }
    CHECK_EQ(volt_try_read_record(&s->r, &(volt_record_format){ .width = 9 }, &s->span), -EINVAL);
    CHECK_EQ(volt_try_read_record(&s->r, &(volt_record_format){ .header = 17 }, &s->span), -EINVAL);
    VOLT_END(0);
}

// ---- writers

// Whatever their memory held before.
ROOT_TEST_1(readers_writers_and_copiers_begin_empty, {
    script io;
    volt_writer w;
    volt_reader r;
    volt_copier c;
    volt_relayer relay;
    char buf[8], out[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .in = "in", .n_in = 2, .out = s->out, .most = sizeof s->out, .piece = 8 };
    memset(&s->w, 0xa5, sizeof s->w);
    memset(&s->r, 0xa5, sizeof s->r);
    memset(&s->c, 0xa5, sizeof s->c);
    memset(&s->relay, 0xa5, sizeof s->relay);
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    CHECK_EQ(volt_unflushed(&s->w), 0);
    CHECK_EQ(volt_writer_moved(&s->w), 0);
    CHECK_EQ(volt_writer_room(&s->w), sizeof s->buf);
    CHECK_EQ(volt_put(&s->w, "x", 1), 0);
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    CHECK(s->rc == 0 && s->io.n_out == 1 && s->out[0] == 'x');
    volt_reader_init(&s->r, stream_of(&s->io), s->buf, sizeof s->buf, VOLT_LONG_STOP);
    CHECK_EQ(volt_buffered(&s->r).len, 0);
    CHECK_EQ(volt_reader_moved(&s->r), 0);
    VOLT_AWAIT(s->rc, volt_reader_read(cx, &s->r, s->out, sizeof s->out));
    CHECK(s->rc == 2 && memcmp(s->out, "in", 2) == 0);
    volt_relayer_init(&s->relay, stream_of(&s->io), stream_of(&s->io), VOLT_NEVER);
    CHECK_EQ(volt_relay_is_idle(&s->relay), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(volt_copied(volt_relay_way(&s->relay, i)), 0);
    s->io.at = s->io.n_out = 0;
    volt_copier_init(&s->c, stream_of(&s->io), stream_of(&s->io), s->buf, sizeof s->buf);
    CHECK_EQ(volt_copied(&s->c), 0);
    CHECK_EQ(volt_copy_failed_at(&s->c), 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
    CHECK(s->rc == 0 && s->io.n_out == 2 && memcmp(s->out, "in", 2) == 0);
    volt_copier_close(cx, &s->c);
    VOLT_END(0);
}
ROOT_TEST_1(writer_puts_all_or_nothing, {
    script io;
    volt_writer w;
    char buf[8], out[200];
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 3 };
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    CHECK_EQ(volt_put(&s->w, "12345", 5), 0);
    CHECK_EQ(volt_put(&s->w, "6789", 4), -ENOBUFS);
    CHECK_EQ(volt_unflushed(&s->w), 5);
    CHECK_EQ(volt_writer_room(&s->w), 3);
    CHECK_EQ(volt_put(&s->w, "123456789", 9), -EMSGSIZE);
    CHECK_EQ(volt_putf(&s->w, "%d", 67), 0);
    CHECK_EQ(volt_putf(&s->w, "%d", 12), -ENOBUFS);
    CHECK_EQ(volt_putf(&s->w, "%s", "much too long"), -EMSGSIZE);
    static const volt_record_format keeps = { .width = 2, .keeps_header = 1 };
    struct iovec part = { s->out, 1 }; // shorter than its header
    CHECK_EQ(volt_put_record(&s->w, &keeps, &part, 1), -EINVAL);
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(memcmp(s->out, "1234567", 7), 0);
    VOLT_AWAIT(s->rc, volt_put_wait(cx, &s->w, "abcdefghijklmnopqrstuvwxyz", 26));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_writer_moved(&s->w), 26);
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    CHECK_EQ(s->io.n_out, 33);
    CHECK_EQ(memcmp(s->out + 7, "abcdefghijklmnopqrstuvwxyz", 26), 0);
    s->io.error = -EPIPE; // stays
    CHECK_EQ(volt_put(&s->w, "x", 1), 0);
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
        CHECK_EQ(s->rc, -EPIPE);
        s->io.error = 0;
        CHECK_EQ(volt_put(&s->w, "x", 1), -EPIPE);
        VOLT_AWAIT(s->rc, volt_put_wait(cx, &s->w, "x", 1));
        CHECK_EQ(s->rc, -EPIPE);
    }
    VOLT_END(0);
}
ROOT_TEST_1(parts_are_put_all_or_nothing, {
    script io;
    volt_writer w;
    char buf[8], out[16];
    struct iovec part[3];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 16 };
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    s->part[0] = (struct iovec){ (void *)(uintptr_t)"12", 2 };
    s->part[1] = (struct iovec){ NULL, 0 };
    s->part[2] = (struct iovec){ (void *)(uintptr_t)"345", 3 };
    CHECK_EQ(volt_putv(&s->w, s->part, 3), 0);
    CHECK_EQ(volt_putv(&s->w, s->part, 3), -ENOBUFS);
    CHECK_EQ(volt_unflushed(&s->w), 5);
    s->part[1].iov_len = SIZE_MAX - 1; // a sum that wraps would fit
    CHECK_EQ(volt_putv(&s->w, s->part, 3), -EMSGSIZE);
    CHECK_EQ(volt_put_record(&s->w, &(volt_record_format){ 0 }, s->part, 3), -EMSGSIZE);
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    CHECK_EQ(s->rc, 0);
    CHECK(s->io.n_out == 5 && memcmp(s->out, "12345", 5) == 0);
    VOLT_END(0);
}
ROOT_TEST_1(records_that_cannot_be_put_are_refused, {
    script io;
    volt_writer w;
    char buf[300], body[300], out[300];
    int64_t rc;
    int i;
}) {
    static const struct {
        volt_record_format f;
        size_t n;
        int rc;
    } cases[] = { { { .width = 9 }, 1, -EINVAL },
                  { { 0 }, 300, -EMSGSIZE },         // the header does not fit
                  { { .width = 1 }, 256, -EMSGSIZE }, // the number does not fit
                  { { .width = 1, .adjust = 1 }, 256, 0 },
                  { { .adjust = 3 }, 2, -EMSGSIZE }, // the number would be negative
                  { { .adjust = 3 }, 3, 0 },
                  { { .width = 8, .adjust = -4 }, 3, 0 },
                  { { .width = 8, .adjust = INT64_MIN }, 3, -EMSGSIZE },
                  { { .width = 8, .adjust = INT64_MIN + 4 }, 3, 0 },
                  { { .most = 2 }, 3, -EMSGSIZE },
                  { { .most = 3 }, 3, 0 } };
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 300 };
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    for (s->i = 0; s->i < (int)(sizeof cases / sizeof cases[0]); s->i++) {
        struct iovec part = { s->body, cases[s->i].n };
        s->io.n_out = 0;
        CHECK_EQ(volt_put_record(&s->w, &cases[s->i].f, &part, 1), cases[s->i].rc);
        CHECK_EQ(volt_unflushed(&s->w) > 0, cases[s->i].rc == 0);
        VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
        CHECK_EQ(s->rc, 0);
    }
    CHECK_EQ(volt_put(&s->w, "x", 1), 0);
    s->io.error = -EPIPE;
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    for (size_t n = 0; n <= 300; n += 300) { // the error of the stream comes first
        struct iovec part = { s->body, n };
        CHECK_EQ(volt_put_record(&s->w, &(volt_record_format){ 0 }, &part, 1), -EPIPE);
        CHECK_EQ(volt_putv(&s->w, &part, 1), -EPIPE);
    }
    CHECK_EQ(volt_putf(&s->w, "%d", 1), -EPIPE);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_writer *w;
    int64_t rc;
} flusher;
static volt_poll flusher_run(volt_cx *cx, flusher *f) {
    VOLT_BEGIN(cx, f);
    VOLT_AWAIT(f->rc, volt_flush(cx, f->w));
    VOLT_END(f->rc);
}
// The rest of a text that was written in part lies at the end of the buffer, until the room before
// it is needed.
ROOT_TEST_1(text_is_put_behind_the_rest_of_a_cancelled_flush, {
    script io;
    volt_writer w;
    flusher f;
    volt_arm arm[2];
    countdown limit;
    char buf[8], out[16];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 3 };
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    CHECK_EQ(volt_put(&s->w, "1234567", 7), 0);
    CHECK_EQ(volt_putf(&s->w, "%lc", (wint_t)0x7ffffff0), -EINVAL); // it cannot be formatted
    CHECK_EQ(volt_unflushed(&s->w), 7);
    s->f.w = &s->w;
    s->limit.k = 1;
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->arm[0], flusher_run(cx, &s->f)),
                                         VOLT_ARM(&s->arm[1], countdown_run(cx, &s->limit))));
    CHECK_EQ(s->arm[0].value, -ECANCELED);
    CHECK(s->io.n_out == 3 && volt_unflushed(&s->w) == 4);
    CHECK_EQ(volt_putf(&s->w, "%d", 8901), -ENOBUFS);
    CHECK_EQ(volt_putf(&s->w, "%d", 890), 0);
    CHECK_EQ(volt_writer_room(&s->w), 1);
    VOLT_AWAIT(s->rc, volt_flush(cx, &s->w));
    CHECK_EQ(s->rc, 0);
    CHECK(s->io.n_out == 10 && memcmp(s->out, "1234567890", 10) == 0);
    VOLT_END(0);
}
// Puts as much as there is room for, whenever it is polled, until `n` bytes were put.
typedef struct {
    volt_frame frame;
    volt_writer *w;
    char next;
    int n, n_refused;
} filler;
static volt_poll filler_run(volt_cx *cx, filler *f) {
    VOLT_BEGIN(cx, f);
    while (f->n > 0) {
        size_t room = volt_writer_room(f->w);
        while (f->n > 0 && volt_put(f->w, &f->next, 1) == 0) f->next++, f->n--, room--;
        CHECK(f->n == 0 || room == 0);
        f->n_refused += f->n > 0;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
// Flushes until the filler has put all; keeps how much the first flush has written.
typedef struct {
    volt_frame frame;
    volt_writer *w;
    const filler *more;
    const script *io;
    size_t n_first;
    int64_t rc;
} emptier;
static volt_poll emptier_run(volt_cx *cx, emptier *e) {
    VOLT_BEGIN(cx, e);
    do {
        VOLT_AWAIT(e->rc, volt_flush(cx, e->w));
        CHECK_EQ(e->rc, 0);
        if (e->n_first == 0) e->n_first = e->io->n_out;
        VOLT_AWAIT(volt_yield(cx));
    } while (e->more->n > 0 || volt_unflushed(e->w) > 0);
    VOLT_END(0);
}
// Bytes that are put while a flush waits go behind those that are being written, which stay in
// their place. The same flush writes them.
ROOT_TEST_1(flush_writes_what_is_put_while_it_waits, {
    script io;
    volt_writer w;
    emptier e;
    filler more;
    volt_arm arm[2];
    char buf[8], out[40];
    int64_t rc;
    size_t piece;
}) {
    VOLT_BEGIN(cx, s);
    for (s->piece = 1; s->piece < 10; s->piece++) {
        s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = s->piece };
        volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
        CHECK_EQ(volt_put(&s->w, "abcde", 5), 0);
        s->more = (filler){ .w = &s->w, .next = 'f', .n = 20 };
        s->e = (emptier){ .w = &s->w, .more = &s->more, .io = &s->io };
        VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->arm[0], emptier_run(cx, &s->e)),
                                        VOLT_ARM(&s->arm[1], filler_run(cx, &s->more))));
        CHECK(s->more.n_refused > 0);
        CHECK(s->e.n_first >= 8);
        CHECK_EQ(s->io.n_out, 25);
        CHECK_EQ(memcmp(s->out, "abcdefghijklmnopqrstuvwxy", 25), 0);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_writer *w;
    const char *text;
    size_t n, done;
    int64_t rc;
} putter;
static volt_poll putter_run(volt_cx *cx, putter *p) {
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_put_wait(cx, p->w, p->text + p->done, p->n - p->done));
    p->done += volt_writer_moved(p->w);
    if (p->rc < 0) VOLT_RETURN(p->rc);
    VOLT_AWAIT(p->rc, volt_flush(cx, p->w));
    VOLT_END(p->rc);
}
ROOT_TEST_1(cancelled_writes_lose_and_repeat_nothing, {
    script io;
    volt_writer w;
    putter p;
    volt_arm arm[2];
    countdown limit;
    char buf[5], out[100];
    int64_t rc;
    int k;
}) {
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    VOLT_BEGIN(cx, s);
    s->io = (script){ .out = s->out, .most = sizeof s->out, .piece = 2 };
    volt_writer_init(&s->w, stream_of(&s->io), s->buf, sizeof s->buf);
    s->p = (putter){ .w = &s->w, .text = text, .n = sizeof text - 1 };
    for (s->k = 0;; s->k++) {
        s->limit.k = s->k % 5;
        VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->arm[0], putter_run(cx, &s->p)),
                                             VOLT_ARM(&s->arm[1], countdown_run(cx, &s->limit))));
        if (s->arm[0].value != -ECANCELED) break;
        CHECK(s->k < 10000);
    }
    CHECK_EQ(s->arm[0].value, 0);
    CHECK(s->k > 3);
    CHECK_EQ(s->io.n_out, sizeof text - 1);
    CHECK_EQ(memcmp(s->out, text, sizeof text - 1), 0);
    VOLT_END(0);
}
// ---- copies

enum { BULK = 500000 };
static unsigned char pattern(size_t at) { return (unsigned char)((at * 31) >> 3 ^ at >> 11); }
typedef struct {
    volt_frame frame;
    int fd;
    size_t n, at;
    unsigned char buf[3000];
    int64_t rc;
} source;
static volt_poll source_run(volt_cx *cx, void *arg) {
    source *s = (source *)arg;
    VOLT_BEGIN(cx, s);
    for (s->at = 0; s->at < s->n; s->at += (size_t)s->rc) {
        size_t n = s->n - s->at < sizeof s->buf ? s->n - s->at : sizeof s->buf;
        for (size_t i = 0; i < n; i++) s->buf[i] = pattern(s->at + i);
        VOLT_AWAIT(s->rc, volt_write(cx, s->fd, s->buf,
                                     s->n - s->at < sizeof s->buf ? s->n - s->at : sizeof s->buf));
        CHECK(s->rc > 0);
    }
    VOLT_AWAIT(s->rc, volt_stream_end(cx, volt_stream_of(s->fd)));
    VOLT_END(0);
}
static volt_poll sink_run(volt_cx *cx, void *arg) {
    source *s = (source *)arg;
    VOLT_BEGIN(cx, s);
    for (s->at = 0;; s->at += (size_t)s->rc) {
        VOLT_AWAIT(s->rc, volt_read(cx, s->fd, s->buf, sizeof s->buf));
        if (s->rc <= 0) break;
        for (size_t i = 0; i < (size_t)s->rc; i++) CHECK_EQ(s->buf[i], pattern(s->at + i));
    }
    CHECK_EQ(s->rc, 0);
    VOLT_END((int64_t)s->at);
}
typedef struct {
    volt_frame frame;
    volt_copier c;
    volt_arm arm[2];
    countdown limit;
    int64_t rc;
    int k;
} cut_copy;
// A copy that is cancelled again and again, and goes on.
static volt_poll copy_part(volt_cx *cx, cut_copy *c) {
    return volt_copy(cx, &c->c, VOLT_ALL);
}
static volt_poll cut_copy_run(volt_cx *cx, cut_copy *c) {
    VOLT_BEGIN(cx, c);
    for (c->k = 0;; c->k++) {
        c->limit.k = c->k % 11;
        VOLT_AWAIT(c->rc, VOLT_SELECT_BIASED(VOLT_ARM(&c->arm[0], copy_part(cx, c)),
                                             VOLT_ARM(&c->arm[1], countdown_run(cx, &c->limit))));
        if (c->arm[0].value != -ECANCELED) break;
    }
    VOLT_END(c->arm[0].value);
}
// Between sockets and pipes (by splice), and through a reader (by a buffer).
ROOT_TEST(copy_moves_all_bytes_although_it_is_cancelled, {
    int in[2], out[2], way;
    volt_handle h[2];
    volt_reader r;
    cut_copy c;
    char buf[512];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->way = 0; s->way < 4; s->way++) {
        int rc = s->way == 1 ? volt_pipe(s->in) : volt_socketpair(SOCK_STREAM, s->in);
        CHECK_EQ(rc, 0);
        CHECK_EQ(volt_socketpair(SOCK_STREAM, s->out), 0);
        SPAWN(&s->h[0], source_run, ((source){ .fd = s->in[1], .n = BULK }));
        SPAWN(&s->h[1], sink_run, ((source){ .fd = s->out[1] }));
        volt_reader_init(&s->r, volt_stream_of(s->in[0]), s->buf, sizeof s->buf, VOLT_LONG_STOP);
        volt_copier_init(&s->c.c, s->way == 2 ? volt_reader_stream(&s->r)
                                              : volt_stream_of(s->in[0]),
                         volt_stream_of(s->out[0]), NULL, 0);
        if (s->way == 3) s->c.c.has_no_splice_ = 1;
        if (s->way == 1) { // the end of a pipe is its close
            VOLT_AWAIT(volt_yield(cx));
        }
        if (s->way != 1) {
            VOLT_AWAIT(s->rc, cut_copy_run(cx, &s->c));
            CHECK_EQ(s->rc, 0);
        } else {
            VOLT_AWAIT(s->rc, volt_copy(cx, &s->c.c, BULK));
            CHECK_EQ(s->rc, 0);
        }
        CHECK_EQ(volt_copied(&s->c.c), BULK);
        CHECK_EQ(volt_copy_failed_at(&s->c.c), 0);
        volt_copier_close(cx, &s->c.c);
        volt_close(cx, s->out[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
        CHECK_EQ(s->rc, BULK);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
        for (int i = 0; i < 2; i++) volt_close(cx, s->in[i]);
        volt_close(cx, s->out[1]);
    }
    VOLT_END(0);
}
// Copies 3 bytes, or many, between sockets.
typedef struct {
    volt_frame frame;
    int is_much, in[2], out[2];
    volt_handle h[2];
    volt_copier c;
    int64_t rc;
} bulk;
static volt_poll bulk_run(volt_cx *cx, void *arg) {
    bulk *s = (bulk *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->in), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->out), 0);
    SPAWN(&s->h[0], source_run, ((source){ .fd = s->in[1], .n = s->is_much ? 4 * BULK : 3 }));
    SPAWN(&s->h[1], sink_run, ((source){ .fd = s->out[1] }));
    volt_copier_init(&s->c, volt_stream_of(s->in[0]), volt_stream_of(s->out[0]), NULL, 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
    CHECK_EQ(s->rc, 0);
    volt_copier_close(cx, &s->c);
    volt_close(cx, s->out[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    CHECK_EQ(s->rc, s->is_much ? 4 * BULK : 3);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    for (int i = 0; i < 2; i++) volt_close(cx, s->in[i]);
    volt_close(cx, s->out[1]);
    VOLT_END(0);
}
static int pipe_size(volt_rt *rt, int i) { return fcntl(rt->pipes[i].fd[1], F_GETPIPE_SZ); }
ROOT_TEST_1(copy_of_much_enlarges_few_pipes, {
    bulk b;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, bulk_run(cx, &s->b)); // of 3 bytes
    CHECK_EQ(cx->rt_->n_pipes, 1);
    CHECK(pipe_size(cx->rt_, 0) < VOLT__COPY_BYTES);
    cx->rt_->n_big_pipes = VOLT__BIG_PIPES;
    memset(&s->b, 0, sizeof s->b);
    s->b.is_much = 1;
    VOLT_AWAIT(s->rc, bulk_run(cx, &s->b));
    CHECK(pipe_size(cx->rt_, 0) < VOLT__COPY_BYTES);
    cx->rt_->n_big_pipes = VOLT__BIG_PIPES - 1;
    memset(&s->b, 0, sizeof s->b);
    s->b.is_much = 1;
    VOLT_AWAIT(s->rc, bulk_run(cx, &s->b));
    CHECK_EQ(pipe_size(cx->rt_, 0), VOLT__COPY_BYTES);
    CHECK_EQ(cx->rt_->n_big_pipes, VOLT__BIG_PIPES);
    CHECK_EQ(volt__pipe_take(cx->rt_, &s->b.c), 0);
    volt__pipe_give(cx->rt_, &s->b.c, 0); // as if bytes were in it: another one may be large now
    CHECK_EQ(cx->rt_->n_big_pipes, VOLT__BIG_PIPES - 1);
    VOLT_END(0);
}
ROOT_TEST_1(pipes_beyond_those_that_are_kept_are_closed, {
    volt_copier c[VOLT__PIPES + 1];
    int before;
}) {
    VOLT_BEGIN(cx, s);
    s->before = test_count_fds();
    for (int i = 0; i <= VOLT__PIPES; i++) CHECK_EQ(volt__pipe_take(cx->rt_, &s->c[i]), 0);
    for (int i = 0; i <= VOLT__PIPES; i++) volt__pipe_give(cx->rt_, &s->c[i], 1);
    CHECK_EQ(cx->rt_->n_pipes, VOLT__PIPES);
    CHECK_EQ(test_count_fds(), s->before + 2 * VOLT__PIPES);
    VOLT_END(0);
}
// A buffer of no bytes is as none.
ROOT_TEST_1(copy_allocates_in_place_of_an_empty_buffer, {
    script io;
    volt_copier c;
    char buf[1], out[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->io = (script){ .in = "abc", .n_in = 3, .out = s->out, .most = sizeof s->out, .piece = 8 };
    volt_copier_init(&s->c, stream_of(&s->io), stream_of(&s->io), s->buf, 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
    CHECK_EQ(s->rc, 0);
    CHECK(volt_copied(&s->c) == 3 && s->io.n_out == 3 && memcmp(s->out, "abc", 3) == 0);
    volt_copier_close(cx, &s->c);
    VOLT_END(0);
}
// The bytes that were read for a copy of all are written 3 at a time, by the limits of later calls.
ROOT_TEST_1(copy_after_a_cancellation_keeps_to_its_own_limit, {
    int in[2], out[2], way;
    script to;
    char text[16], buf[16];
    cut_copy c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->way = 0; s->way < 2; s->way++) {
        CHECK_EQ(volt_pipe(s->in), 0);
        CHECK_EQ(volt_socketpair(SOCK_STREAM, s->out), 0);
        CHECK_EQ(write(s->in[1], "0123456789", 10), 10);
        s->to = (script){ .out = s->text, .most = sizeof s->text, .piece = 16 };
        volt_copier_init(&s->c.c, volt_stream_of(s->in[0]),
                         s->way == 0 ? stream_of(&s->to) : volt_stream_of(s->out[0]), NULL, 0);
        s->c.limit = (countdown){ .k = 0 };
        while (s->way == 1 && write(s->out[0], "..........", 10) == 10) {} // full: it must wait
        VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->c.arm[0], copy_part(cx, &s->c)),
                                             VOLT_ARM(&s->c.arm[1],
                                                      countdown_run(cx, &s->c.limit))));
        CHECK_EQ(s->c.arm[0].value, -ECANCELED);
        CHECK_EQ(volt_copied(&s->c.c), 0);
        CHECK_EQ(s->c.c.n_ + s->c.c.in_pipe_, 10);
        while (s->way == 1 && recv(s->out[1], s->buf, sizeof s->buf, MSG_DONTWAIT) > 0) {}
        for (s->c.k = 1; s->c.k <= 4; s->c.k++) {
            VOLT_AWAIT(s->rc, volt_copy(cx, &s->c.c, s->c.k < 4 ? 3 : 1));
            CHECK_EQ(s->rc, 0);
            CHECK_EQ(volt_copied(&s->c.c), s->c.k < 4 ? 3 * s->c.k : 10);
        }
        if (s->way == 1) CHECK_EQ(read(s->out[1], s->text, sizeof s->text), 10);
        CHECK_EQ(memcmp(s->text, "0123456789", 10), 0);
        volt_copier_close(cx, &s->c.c);
        for (int i = 0; i < 2; i++) volt_close(cx, s->in[i]);
        for (int i = 0; i < 2; i++) volt_close(cx, s->out[i]);
    }
    VOLT_END(0);
}
// A file that was opened for appending refuses splice(2) when the bytes are in the pipe already.
// The buffer of the caller is smaller than they are.
typedef struct {
    volt_frame frame;
    int in[2], log, is_given;
    volt_copier c;
    char buf[16], text[100];
    int64_t rc;
} appender;
static volt_poll appender_run(volt_cx *cx, void *arg) {
    appender *s = (appender *)arg;
    VOLT_BEGIN(cx, s);
    char name[] = "/tmp/volt-test-XXXXXX";
    s->log = mkstemp(name);
    unlink(name);
    CHECK_EQ(fcntl(s->log, F_SETFL, O_APPEND), 0);
    CHECK_EQ(volt_pipe(s->in), 0);
    for (int i = 0; i < 100; i++) s->text[i] = (char)pattern((size_t)i);
    CHECK_EQ(write(s->in[1], s->text, 100), 100);
    volt_close(cx, s->in[1]);
    volt_copier_init(&s->c, volt_stream_of(s->in[0]), volt_stream_of(s->log),
                     s->is_given ? s->buf : NULL, sizeof s->buf);
    if (!s->is_given) { // there is no memory for one: the bytes stay where they are
        test_heap.fail_at = test_heap.n_allocs + 1;
        VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
        CHECK_EQ(s->rc, -ENOMEM);
        CHECK_EQ(volt_copy_failed_at(&s->c), VOLT_OUT);
        test_heap.fail_at = 0;
    }
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(volt_copied(&s->c), 100);
    memset(s->text, 0, sizeof s->text);
    CHECK_EQ(pread(s->log, s->text, 100, 0), 100);
    for (int i = 0; i < 100; i++) CHECK_EQ((unsigned char)s->text[i], pattern((size_t)i));
    volt_copier_close(cx, &s->c);
    volt_close(cx, s->in[0]);
    volt_close(cx, s->log);
    VOLT_END(0);
}
TEST(copy_to_an_appended_file_goes_through_a_buffer) {
    for (int i = 0; i < 2; i++) {
        appender s;
        memset(&s, 0, sizeof s);
        s.is_given = i;
        CHECK_EQ(run_on(1, appender_run, &s), 0);
    }
}
ROOT_TEST_1(closed_and_reset_connection_has_no_end, {
    int lfd, fd, got;
    volt_addr a;
    char c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->a));
    VOLT_AWAIT(s->got, volt_accept(cx, s->lfd));
    CHECK(s->fd >= 0 && s->got >= 0);
    volt_close_reset(cx, s->fd);
    VOLT_AWAIT(s->rc, volt_read(cx, s->got, &s->c, 1));
    CHECK_EQ(s->rc, -ECONNRESET);
    volt_close(cx, s->got);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}
ROOT_TEST_1(copy_that_fails_tells_its_side, {
    int in[2], out[2];
    volt_copier c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->in), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->out), 0);
    CHECK_EQ(write(s->in[1], "abc", 3), 3);
    volt_close(cx, s->out[1]);
    volt_copier_init(&s->c, volt_stream_of(s->in[0]), volt_stream_of(s->out[0]), NULL, 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL)); // and no SIGPIPE
    CHECK_EQ(s->rc, -EPIPE);
    CHECK_EQ(volt_copy_failed_at(&s->c), VOLT_OUT);
    volt_copier_close(cx, &s->c);
    volt_copier_init(&s->c, volt_stream_of(-1), volt_stream_of(s->out[0]), NULL, 0);
    VOLT_AWAIT(s->rc, volt_copy(cx, &s->c, VOLT_ALL));
    CHECK_EQ(s->rc, -EBADF);
    CHECK_EQ(volt_copy_failed_at(&s->c), VOLT_IN);
    volt_copier_close(cx, &s->c);
    for (int i = 0; i < 2; i++) volt_close(cx, s->in[i]);
    volt_close(cx, s->out[0]);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_relayer r;
    int a, b;
    volt_time idle;
    int64_t rc;
} relay;
static volt_poll relay_run(volt_cx *cx, void *arg) {
    relay *r = (relay *)arg;
    VOLT_BEGIN(cx, r);
    volt_relayer_init(&r->r, volt_stream_of(r->a), volt_stream_of(r->b), r->idle);
    VOLT_AWAIT(r->rc, volt_relay(cx, &r->r));
    CHECK_EQ(volt_relay_is_idle(&r->r), r->rc == -ETIMEDOUT);
    if (r->rc == 0) CHECK_EQ(volt_copied(volt_relay_way(&r->r, 0)), BULK);
    VOLT_END(r->rc);
}
ROOT_TEST(relay_passes_on_both_ends, {
    int a[2], b[2];
    volt_handle h[3];
    int64_t rc;
    char c[8];
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->b), 0);
    SPAWN(&s->h[0], relay_run, ((relay){ .a = s->a[1], .b = s->b[0], .idle = VOLT_NEVER }));
    SPAWN(&s->h[1], source_run, ((source){ .fd = s->a[0], .n = BULK }));
    SPAWN(&s->h[2], sink_run, ((source){ .fd = s->b[1] }));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[2]));
    CHECK_EQ(s->rc, BULK); // the end has arrived, though the other way is open
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->b[1], "answer", 6));
    VOLT_AWAIT(s->rc, volt_read_exact(cx, s->a[0], s->c, 6));
    CHECK_EQ(s->rc, 6);
    CHECK_EQ(memcmp(s->c, "answer", 6), 0);
    volt_close(cx, s->b[1]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, 0);
    volt_close(cx, s->a[0]);
    volt_close(cx, s->a[1]);
    volt_close(cx, s->b[0]);
    VOLT_END(0);
}
// The bytes that were on their way are dropped with their pipe; an empty pipe may be kept.
ROOT_TEST_ALL(cancelled_relay_gives_its_pipes_back, { // a late worker opens descriptors, too
    int a[2], b[2], before;
    volt_handle h;
    char buf[512];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->b), 0);
    while ((s->rc = write(s->b[0], s->buf, sizeof s->buf)) > 0) {} // full: the relay must wait
    CHECK_EQ(write(s->a[0], "x", 1), 1);
    s->before = test_count_fds();
    SPAWN(&s->h, relay_run, ((relay){ .a = s->a[1], .b = s->b[0], .idle = VOLT_NEVER }));
    do { // until it has taken the byte
        VOLT_AWAIT(volt_yield(cx));
    } while (recv(s->a[1], s->buf, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(test_count_fds(), s->before + 2 * (int)cx->rt_->n_pipes);
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}
ROOT_TEST_1(idle_relay_ends_and_traffic_puts_that_off, {
    int a[2], b[2], i;
    volt_handle h;
    int64_t rc;
    char c;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->b), 0);
    SPAWN(&s->h, relay_run, ((relay){ .a = s->a[1], .b = s->b[0], .idle = VOLT_MS(300) }));
    for (s->i = 0; s->i < 6; s->i++) {
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100)));
        VOLT_AWAIT(s->rc, volt_write(cx, s->i % 2 ? s->a[0] : s->b[1], "x", 1));
        CHECK_EQ(s->rc, 1);
        VOLT_AWAIT(s->rc, volt_read(cx, s->i % 2 ? s->b[1] : s->a[0], &s->c, 1));
        CHECK_EQ(s->rc, 1);
    }
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}
ROOT_TEST_1(relay_without_idle_time_goes_on_when_its_budget_is_used_up, {
    int a[2], b[2];
    volt_relayer r;
    int64_t rc;
}) {
    enum { MESSAGES = VOLT_BUDGET + 20 }; // a read and a write each: more than two budgets
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_SEQPACKET, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_SEQPACKET, s->b), 0);
    for (int i = 0; i < MESSAGES; i++) CHECK_EQ(send(s->a[0], "x", 1, 0), 1);
    volt_relayer_init(&s->r, volt_stream_of(s->a[1]), volt_stream_of(s->b[0]), 0);
    VOLT_AWAIT(s->rc, volt_relay(cx, &s->r));
    CHECK(s->rc == -ETIMEDOUT && volt_relay_is_idle(&s->r));
    CHECK_EQ(volt_copied(volt_relay_way(&s->r, 0)), MESSAGES);
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}
ROOT_TEST_1(relay_with_a_negative_idle_time_ends_as_with_0, {
    int a[2], b[2];
    volt_relayer r;
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->b), 0);
    volt_relayer_init(&s->r, volt_stream_of(s->a[1]), volt_stream_of(s->b[0]), INT64_MIN);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(10), volt_relay(cx, &s->r)));
    CHECK(s->rc == -ETIMEDOUT && volt_relay_is_idle(&s->r));
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}
ROOT_TEST_1(relay_that_is_cancelled_is_not_idle, {
    int a[2], b[2];
    volt_relayer r;
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->a), 0);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->b), 0);
    volt_relayer_init(&s->r, volt_stream_of(s->a[1]), volt_stream_of(s->b[0]), VOLT_MS(1));
    VOLT_AWAIT(s->rc, volt_relay(cx, &s->r));
    CHECK(s->rc == -ETIMEDOUT && volt_relay_is_idle(&s->r));
    s->r.limit_ = VOLT_NEVER;
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_relay(cx, &s->r)));
    CHECK(s->rc == -ETIMEDOUT && !volt_relay_is_idle(&s->r));
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}
ROOT_TEST_1(sendfile_sends_a_file_from_its_offset, {
    int fd[2], file;
    int64_t offset, rc;
    volt_handle h;
    unsigned char *data;
}) {
    VOLT_BEGIN(cx, s);
    char name[] = "/tmp/volt-test-XXXXXX";
    s->data = (unsigned char *)malloc(BULK + 10);
    for (size_t i = 0; i < BULK; i++) s->data[10 + i] = pattern(i);
    s->file = mkstemp(name);
    unlink(name);
    CHECK_EQ(write(s->file, s->data, BULK + 10), BULK + 10);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    SPAWN(&s->h, sink_run, ((source){ .fd = s->fd[1] }));
    s->offset = 10;
    do {
        VOLT_AWAIT(s->rc, volt_sendfile(cx, s->fd[0], s->file, &s->offset, 1 << 20));
        CHECK(s->rc >= 0);
    } while (s->rc > 0);
    CHECK_EQ(s->offset, BULK + 10);
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, BULK);
    volt_close(cx, s->fd[1]);
    close(s->file);
    free(s->data);
    VOLT_END(0);
}
ROOT_TEST_1(sendfile_sends_at_most_a_mebibyte_at_once, {
    int null, file;
    int64_t offset, rc;
}) {
    VOLT_BEGIN(cx, s);
    char name[] = "/tmp/volt-test-XXXXXX";
    s->file = mkstemp(name);
    unlink(name);
    CHECK_EQ(ftruncate(s->file, 3 << 20), 0);
    s->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    VOLT_AWAIT(s->rc, volt_sendfile(cx, s->null, s->file, &s->offset, 1 << 30));
    CHECK_EQ(s->rc, 1 << 20);
    CHECK_EQ(s->offset, 1 << 20);
    volt_close(cx, s->null);
    close(s->file);
    VOLT_END(0);
}
// An offset that off_t cannot hold, where it has 32 bits, is refused.
ROOT_TEST_1(sendfile_beyond_the_end_sends_nothing, {
    int fd[2], file;
    int64_t offset, rc;
}) {
    VOLT_BEGIN(cx, s);
    char name[] = "/tmp/volt-test-XXXXXX";
    s->file = mkstemp(name);
    unlink(name);
    CHECK_EQ(write(s->file, "abc", 3), 3);
    CHECK_EQ(volt_socketpair(SOCK_STREAM, s->fd), 0);
    s->offset = INT64_C(1) << 40;
    VOLT_AWAIT(s->rc, volt_sendfile(cx, s->fd[0], s->file, &s->offset, 3));
    CHECK_EQ(s->rc, sizeof(off_t) < sizeof s->offset ? -EOVERFLOW : 0);
    CHECK_EQ(s->offset, INT64_C(1) << 40);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    close(s->file);
    VOLT_END(0);
}

// ---- a stream over a rendezvous, read in an arm: the arm that a sender has met reads on

static volt_poll met_read(volt_cx *cx, volt_stream st, void *buf, size_t len) {
    return volt_chan_recv_n(cx, (volt_chan *)st.self, buf, 1, (uint32_t)len);
}
static const volt_stream_ops met_ops = { met_read, NULL, NULL, NULL };
typedef struct {
    volt_frame frame;
    volt_chan *c;
    const char *text;
    int rc;
} speller;
static volt_poll speller_run(volt_cx *cx, void *arg) {
    speller *s = (speller *)arg;
    VOLT_BEGIN(cx, s);
    for (; *s->text; s->text++) {
        VOLT_AWAIT(volt_yield(cx));
        VOLT_AWAIT(s->rc, volt_chan_send(cx, s->c, s->text, 1));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_event *event;
    volt_reader r;
    volt_span line;
    volt_arm reads, other;
    char buf[16];
    int rc;
} line_selector;
static volt_poll line_selector_run(volt_cx *cx, void *arg) {
    line_selector *s = (line_selector *)arg;
    VOLT_BEGIN(cx, s);
    volt_reader_init(&s->r, (volt_stream){ &met_ops, s->c, -1 }, s->buf, sizeof s->buf,
                     VOLT_LONG_STOP);
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->reads, volt_read_line(cx, &s->r, &s->line)),
                                  VOLT_ARM(&s->other, volt_event_wait(cx, s->event))));
    if (s->reads.fired) CHECK(s->line.len == 5 && memcmp(s->line.data, "hello", 5) == 0);
    VOLT_END(s->rc);
}
ROOT_TEST_1(line_is_read_in_an_arm_over_a_rendezvous, {
    volt_chan c;
    volt_event event;
    volt_handle speller, selector;
    int64_t rc;
    char slot;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_init(&s->c, &s->slot, 1, 0), 0);
    SPAWN(&s->selector, line_selector_run, ((line_selector){ .c = &s->c, .event = &s->event }));
    SPAWN(&s->speller, speller_run, ((speller){ .c = &s->c, .text = "hello\n" }));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->selector));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->speller));
    VOLT_END(0);
}
ROOT_TEST_1(arm_that_was_met_and_reads_on_hides_no_other, {
    volt_chan c;
    volt_event event;
    volt_handle selector;
    int64_t rc;
    char slot;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_init(&s->c, &s->slot, 1, 0), 0);
    SPAWN(&s->selector, line_selector_run, ((line_selector){ .c = &s->c, .event = &s->event }));
    while (volt_chan_try_send(&s->c, "h", 1) != 0) VOLT_AWAIT(volt_yield(cx));
    volt_event_set(&s->event);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->selector));
    CHECK_EQ(s->rc, 1);
    VOLT_END(0);
}
