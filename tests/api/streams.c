// SPDX-License-Identifier: MIT OR 0BSD
// Streams, readers, writers, copies and relays. A scripted stream cuts its bytes anywhere, and
// waits are cancelled at each point: nothing is lost, and the next call goes on.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

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
