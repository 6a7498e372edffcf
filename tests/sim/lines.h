// SPDX-License-Identifier: MIT OR 0BSD
// Lines, records and bytes from a writer in one task to a reader in another one, through a pipe or
// a pair of sockets that move a few bytes at a time; each wait may be cut short by a time limit or
// a cancellation, and goes on afterwards. Part of grammar.h.
//
// Checked
//   each line, record or byte arrives once, whole and in order        unit_got, text_bytes
//   one that is too long is skipped, or comes in pieces               text_settle
//   the end of the stream comes behind the last one                   text_end
//   one that the end has cut is not taken for a whole one             text_settle
//   a wait that ends early has lost nothing                           text_end
#ifndef VOLT_SIM_LINES_H
#define VOLT_SIM_LINES_H

#include "copies.h"

enum { TEXTS = 24, READER_BYTES = 24, WRITER_BYTES = 64, UNIT_BYTES = 50, LONGEST_UNIT = 40 };
enum { TEXT_LINES, TEXT_CUT, TEXT_SKIP, TEXT_UNTIL, TEXT_RECORDS, TEXT_SKIP_RECORDS, TEXT_BYTES,
       N_TEXTS };
static const volt_record_format text_formats[] = {
    {0},
    {.width = 1},
    {.offset = 1, .width = 2, .is_little = 1, .header = 5, .adjust = -5},
    {.width = 2, .header = 4, .keeps_header = 1}};

// ---- a text that two tasks know: the i-th unit of it follows from its number

typedef struct line_text {
    int n_users, kind, n_units, n_put, n_got, is_ended, is_whole; // whole: all is written
    uint32_t id;
    uint64_t got, put; // bytes, of TEXT_BYTES
    const volt_record_format *format;
} line_text;
static line_text texts[TEXTS];

static line_text *text_take(void) {
    for (int i = 0; i < TEXTS; i++) {
        line_text *t = &texts[i];
        if (t->n_users) continue;
        memset(t, 0, sizeof *t);
        t->n_users = 1;
        t->id = prog_below(1u << 30);
        t->kind = (int)prog_below(N_TEXTS);
        t->n_units = (int)prog_below(20);
        t->format = &text_formats[prog_below(4)];
        return t;
    }
    return NULL;
}
static int is_record(const line_text *t) {
    return t->kind == TEXT_RECORDS || t->kind == TEXT_SKIP_RECORDS;
}
static const char *unit_end(const line_text *t, int i) {
    if (t->kind == TEXT_UNTIL) return "ab";
    return i % 3 == 0 && t->kind != TEXT_CUT ? "\r\n" : "\n";
}
static size_t record_head(const line_text *t) {
    const volt_record_format *f = t->format;
    return f->header ? f->header : f->offset + (f->width ? f->width : 4);
}
// Writes the unit without its end or header; it contains no end. Returns its length.
static size_t unit_fill(const line_text *t, int i, char *out) {
    size_t most = READER_BYTES - (is_record(t) ? record_head(t) : 2);
    if (t->kind == TEXT_CUT || t->kind == TEXT_SKIP || t->kind == TEXT_SKIP_RECORDS)
        most = LONGEST_UNIT;
    size_t n = sim_mix((uint64_t)t->id * 1000 + (uint64_t)i) % (most + 1);
    for (size_t k = 0; k < n; k++)
        out[k] = sim_mix((uint64_t)t->id * 77 + (uint64_t)i * 64 + k) % 2 ? 'a' : 'c';
    return n;
}
static int unit_fits(const line_text *t, int i, size_t len) {
    return len + (is_record(t) ? record_head(t) : strlen(unit_end(t, i))) <= READER_BYTES;
}

// ---- the writer

typedef struct text_out {
    volt_frame frame;
    volt_timer timer;
    volt_writer w;
    line_text *t;
    int fd, has_limits;
    size_t n, at; // of the unit in `unit`
    int64_t limit, rc;
    char buf[WRITER_BYTES], unit[UNIT_BYTES];
} text_out;
// A record that keeps its header is put as one part, with room for the length.
static int record_put(text_out *o) {
    struct iovec part[2];
    char whole[UNIT_BYTES + 8] = "";
    size_t cut = o->n / 2, head = record_head(o->t);
    part[0].iov_base = o->unit;
    part[0].iov_len = cut;
    part[1].iov_base = o->unit + cut;
    part[1].iov_len = o->n - cut;
    if (!o->t->format->keeps_header) return volt_put_record(&o->w, o->t->format, part, 2);
    memcpy(whole + head, o->unit, o->n);
    part[0].iov_base = whole;
    part[0].iov_len = head + o->n;
    return volt_put_record(&o->w, o->t->format, part, 1);
}
static int line_put(text_out *o) {
    const char *end = unit_end(o->t, o->t->n_put);
    struct iovec part[2];
    part[0].iov_base = o->unit;
    part[0].iov_len = o->n;
    part[1].iov_base = (void *)(uintptr_t)end;
    part[1].iov_len = strlen(end);
    switch (prog_below(3)) {
    case 0: return volt_putf(&o->w, "%.*s%s", (int)o->n, o->unit, end);
    case 1: memcpy(o->unit + o->n, end, strlen(end));
            return volt_put(&o->w, o->unit, o->n + strlen(end));
    default: return volt_putv(&o->w, part, 2);
    }
}
static volt_poll text_flush(volt_cx *cx, text_out *o) {
    if (o->t->kind != TEXT_BYTES || o->at == o->n) return volt_flush(cx, &o->w);
    return volt_put_wait(cx, &o->w, o->unit + o->at, o->n - o->at);
}
// Puts the next unit. Returns 0 if it must be flushed before.
static int text_put(text_out *o) {
    line_text *t = o->t;
    if (t->kind == TEXT_BYTES) {
        o->n = prog_below(UNIT_BYTES);
        o->at = 0;
        fill_bytes((unsigned char *)o->unit, o->n, t->id, t->put);
        t->put += o->n;
        t->n_put++;
        return 0;
    }
    o->n = unit_fill(t, t->n_put, o->unit);
    o->rc = is_record(t) ? record_put(o) : line_put(o);
    if (o->rc == -ENOBUFS) SIM_CHECK(volt_unflushed(&o->w) > 0);
    else SIM_CHECK(o->rc == 0);
    t->n_put += o->rc == 0;
    return o->rc == 0 && prog_below(3) != 0;
}
static volt_poll text_out_run(volt_cx *cx, text_out *o) {
    VOLT_BEGIN(cx, o);
    volt_writer_init(&o->w, volt_stream_of(o->fd), o->buf, sizeof o->buf);
    while (o->t->n_put < o->t->n_units || volt_unflushed(&o->w) > 0 || o->at < o->n) {
        if (o->t->n_put < o->t->n_units && o->at == o->n && text_put(o)) {
            o->n = o->at = 0;
            continue;
        }
        if (o->t->kind != TEXT_BYTES) o->n = o->at = 0;
        o->limit = o->has_limits ? draw_limit() : VOLT_NEVER;
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, text_flush(cx, o)));
        if (o->t->kind == TEXT_BYTES && o->at < o->n) {
            SIM_CHECK(volt_writer_moved(&o->w) <= o->n - o->at);
            o->at += volt_writer_moved(&o->w);
            if (o->rc == 0) SIM_CHECK(o->at == o->n);
        } else if (o->rc == 0) {
            SIM_CHECK(volt_unflushed(&o->w) == 0);
        }
        if (o->rc < 0 && o->rc != -ETIMEDOUT) VOLT_RETURN(o->rc);
    }
    o->t->is_whole = 1;
    VOLT_END(0);
}

// ---- the reader

typedef struct text_in {
    volt_frame frame;
    volt_timer timer;
    volt_reader r;
    line_text *t;
    int fd, has_limits, how;
    size_t n, at; // at: of a unit that comes in pieces
    int64_t limit, rc;
    volt_span span;
    char buf[READER_BYTES], unit[UNIT_BYTES], bytes[UNIT_BYTES];
} text_in;
static int text_try(text_in *o) {
    if (is_record(o->t)) return volt_try_read_record(&o->r, o->t->format, &o->span);
    if (o->t->kind == TEXT_UNTIL) return volt_try_read_until(&o->r, "ab", 2, &o->span);
    return volt_try_read_line(&o->r, &o->span);
}
enum { BYTES_READ, BYTES_EXACT, BYTES_FILL, N_BYTES };
static volt_poll text_wait(volt_cx *cx, text_in *o) {
    if (o->t->kind == TEXT_BYTES && o->how == BYTES_READ)
        return volt_reader_read(cx, &o->r, o->bytes, o->n);
    if (o->t->kind == TEXT_BYTES && o->how == BYTES_EXACT)
        return volt_reader_read_exact(cx, &o->r, o->bytes, o->n);
    if (o->t->kind == TEXT_BYTES) return volt_fill(cx, &o->r, o->n % READER_BYTES, &o->span);
    if (is_record(o->t)) return volt_read_record(cx, &o->r, o->t->format, &o->span);
    if (o->t->kind == TEXT_UNTIL) return volt_read_until(cx, &o->r, "ab", 2, &o->span);
    return volt_read_line(cx, &o->r, &o->span);
}
// The next unit, or a part of it at the end of the stream.
static void unit_got(text_in *o, int is_part) {
    line_text *t = o->t;
    const char *data = o->span.data;
    size_t len = unit_fill(t, t->n_got, o->unit), n = o->span.len;
    if (is_record(t) && t->format->keeps_header) {
        data += record_head(t);
        n -= record_head(t);
    }
    SIM_CHECK(t->n_got < t->n_put);
    if (is_part) memcpy(o->unit + len, unit_end(t, t->n_got), 2);
    SIM_CHECK(is_part ? o->at + n <= len + 1 : o->at + n == len);
    SIM_CHECK(n == 0 || memcmp(data, o->unit + o->at, n) == 0);
    o->at += n;
    if (is_part) return;
    o->at = 0;
    t->n_got++;
}
static void text_bytes(text_in *o) {
    line_text *t = o->t;
    size_t n = o->rc > 0 ? (size_t)o->rc : 0;
    const char *from = o->how == BYTES_FILL ? o->span.data : o->bytes;
    if (o->how == BYTES_EXACT && o->rc < 0) n = volt_reader_moved(&o->r);
    if (o->how == BYTES_FILL && n > 0) n = 1 + prog_below((uint32_t)n);
    check_bytes((const unsigned char *)from, n, t->id, t->got);
    t->got += n;
    if (o->how == BYTES_FILL) volt_consume(&o->r, n);
}
// Returns 1 at the end.
static int text_settle(text_in *o, int id) {
    line_text *t = o->t;
    sim__trace("text on %d: kind %d, unit %d gives %d", o->fd, t->kind, t->n_got, (int)o->rc);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    if (t->kind == TEXT_BYTES) {
        text_bytes(o);
        if (o->rc < 0) return o->rc != -ETIMEDOUT;
        if (o->how == BYTES_FILL) return t->is_ended && t->got == t->put && t->is_whole;
        return o->rc == 0 && o->n > 0;
    }
    if (o->rc == -ETIMEDOUT) return 0;
    if (o->rc == -EMSGSIZE) {
        SIM_CHECK(t->kind == TEXT_SKIP || t->kind == TEXT_SKIP_RECORDS);
        SIM_CHECK(!unit_fits(t, t->n_got, unit_fill(t, t->n_got, o->unit)));
        t->n_got++;
        return 0;
    }
    if (o->rc <= 0) return 1;
    SIM_CHECK(o->rc == 1 || t->kind == TEXT_CUT || (o->rc == 2 && !is_record(t)));
    if (t->kind != TEXT_CUT && o->rc == 1)
        SIM_CHECK(unit_fits(t, t->n_got, unit_fill(t, t->n_got, o->unit)));
    unit_got(o, o->rc == 2);
    return 0;
}
static void text_end(const text_in *o) {
    const line_text *t = o->t;
    if (o->rc == -ECANCELED) return;
    if (o->rc != 0 && o->rc != -EPIPE && t->kind != TEXT_BYTES) SIM_CHECK(prog.may_fail);
    if (o->rc < 0 && o->rc != -EPIPE) return;
    SIM_CHECK(t->is_ended);
    if (!t->is_whole) return;
    if (t->kind == TEXT_BYTES) SIM_CHECK(t->got == t->put);
    else SIM_CHECK(o->rc == 0 && t->n_got == t->n_put && o->at == 0);
}
static volt_poll text_in_run(volt_cx *cx, text_in *o, int id) {
    VOLT_BEGIN(cx, o);
    volt_reader_init(&o->r, volt_stream_of(o->fd), o->buf, sizeof o->buf,
                     o->t->kind == TEXT_CUT ? VOLT_LONG_CUT
                     : o->t->kind == TEXT_SKIP || o->t->kind == TEXT_SKIP_RECORDS ? VOLT_LONG_SKIP
                                                                                  : VOLT_LONG_STOP);
    do {
        o->how = (int)prog_below(N_BYTES);
        o->n = 1 + prog_below(UNIT_BYTES - 1);
        if (o->how == BYTES_FILL && o->n % READER_BYTES == 0) o->n = 1;
        o->limit = o->has_limits ? draw_limit() : VOLT_NEVER;
        o->rc = -EAGAIN;
        if (o->t->kind != TEXT_BYTES && prog_below(2)) o->rc = text_try(o);
        if (o->rc == -EAGAIN)
            VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, text_wait(cx, o)));
    } while (!text_settle(o, id) && !(o->t->kind == TEXT_BYTES && o->r.is_end_ && !o->rc));
    text_end(o);
    VOLT_END(o->rc);
}

// ---- the child writes, or reads; the task is at the other end

typedef struct text_child {
    volt_frame frame;
    text_out out;
    int id;
    int64_t rc;
} text_child;
static volt_poll text_child_body(volt_cx *cx, text_child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, text_out_run(cx, &c->out));
    if (c->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(c->id));
    else if (c->rc < 0) SIM_CHECK(c->rc == -EPIPE || prog.may_fail);
    c->out.t->is_ended = 1;
    volt_close(cx, c->out.fd);
    c->out.t->n_users--;
    VOLT_END(c->id);
}
static volt_poll text_child_run(volt_cx *cx, void *arg) {
    text_child *c = (text_child *)arg;
    int id = c->id;
    note_poll_begin(id);
    volt_poll p = text_child_body(cx, c);
    note_poll_end(id, p);
    return p;
}
typedef struct op_lines {
    volt_frame frame;
    volt_handle h;
    text_in in;
    int64_t rc;
} op_lines;
static int lines_spawn(volt_cx *cx, op_lines *o, int fd) {
    text_child c;
    memset(&c, 0, sizeof c);
    c.out.t = o->in.t;
    c.out.fd = fd;
    c.out.has_limits = (int)prog_below(2);
    c.id = note_task();
    if (c.id < 0) return 0;
    c.out.t->n_users++;
    prog.note[c.id].spawned_at = prog.n_polls;
    int rc = VOLT_SPAWN(cx, &o->h, text_child_run, c);
    note_spawned(c.id, rc);
    if (rc < 0) c.out.t->n_users--;
    if (rc == 0 && prog_below(6) == 0) {
        note_cancel(c.id);
        volt_cancel(&o->h);
    }
    return rc == 0;
}
static int lines_open(volt_cx *cx, op_lines *o) {
    int fd[2];
    if (copy_pipe(fd) < 0) return 0;
    o->in.t = text_take();
    o->in.fd = fd[0];
    o->in.has_limits = (int)prog_below(2);
    if (o->in.t && lines_spawn(cx, o, fd[1])) return 1;
    volt_close(cx, fd[0]);
    volt_close(cx, fd[1]);
    if (o->in.t) o->in.t->n_users--;
    return 0;
}
static volt_poll lines_run(volt_cx *cx, op_lines *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!lines_open(cx, o)) VOLT_RETURN(0);
    VOLT_AWAIT(o->rc, text_in_run(cx, &o->in, id));
    volt_close(cx, o->in.fd);
    o->in.t->n_users--;
    volt_detach(&o->h);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

#endif // VOLT_SIM_LINES_H
