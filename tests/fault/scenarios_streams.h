// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios with readers, writers, copies and relays.
#ifndef VOLT_FAULT_SCENARIOS_STREAMS_H
#define VOLT_FAULT_SCENARIOS_STREAMS_H

// ---- a reader and a writer over a socket

enum { N_LINES = 12 };
// Answers each line by a record with the same text, and ends with the stream.
STATE(line_server, int fd; volt_reader in; volt_writer out; volt_record_format format;
      struct iovec iov[1]; volt_span line; char in_buf[32], out_buf[24];) {
    VOLT_BEGIN(cx, s);
    volt_reader_init(&s->in, volt_stream_of(s->fd), s->in_buf, sizeof s->in_buf, VOLT_LONG_STOP);
    volt_writer_init(&s->out, volt_stream_of(s->fd), s->out_buf, sizeof s->out_buf);
    for (;;) {
        s->rc = volt_try_read_line(&s->in, &s->line);
        if (s->rc == -EAGAIN) { // it waits now, so the answers must go before
            KEEP_AWAIT(volt_flush(cx, &s->out));
            if (s->rc == 0) KEEP_AWAIT(volt_read_line(cx, &s->in, &s->line));
        }
        if (s->rc != 1) break;
        s->iov[0] = (struct iovec){ s->line.data, s->line.len };
        s->rc = volt_put_record(&s->out, &s->format, s->iov, 1);
        if (s->rc == -ENOBUFS) {
            KEEP_AWAIT(volt_flush(cx, &s->out));
            if (s->rc == 0) s->rc = volt_put_record(&s->out, &s->format, s->iov, 1);
        }
        KEEP(s->rc);
        if (s->first < 0) break;
    }
    if (s->rc == 2) KEEP(-EPIPE); // a part of a line
    if (s->first == 0) KEEP_AWAIT(volt_flush(cx, &s->out));
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}
STATE(lines_and_records, volt_group group; int fd[2], i; volt_reader in; volt_writer out;
      volt_record_format format; volt_span record; char in_buf[64], out_buf[16], text[24];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    s->rc = VOLT_GROUP_SPAWN(cx, &s->group, line_server_run, (line_server_state){ .fd = s->fd[1] });
    if (s->rc < 0) drop(s->fd[1]);
    KEEP(s->rc);
    volt_reader_init(&s->in, volt_stream_of(s->fd[0]), s->in_buf, sizeof s->in_buf, VOLT_LONG_STOP);
    volt_writer_init(&s->out, volt_stream_of(s->fd[0]), s->out_buf, sizeof s->out_buf);
    for (s->i = 0; s->first == 0 && s->i < N_LINES; s->i++) {
        snprintf(s->text, sizeof s->text, "line %d\n", s->i);
        KEEP_AWAIT(volt_put_wait(cx, &s->out, s->text, strlen(s->text)));
    }
    if (s->first == 0) KEEP_AWAIT(volt_flush(cx, &s->out));
    for (s->i = 0; s->first == 0 && s->i < N_LINES; s->i++) {
        KEEP_AWAIT(volt_reader_ready(cx, &s->in));
        if (s->first == 0) KEEP_AWAIT(volt_read_record(cx, &s->in, &s->format, &s->record));
        if (s->first == 0 && s->rc == 0) KEEP(-EPIPE); // an early end
        if (s->first < 0) break;
        snprintf(s->text, sizeof s->text, "line %d", s->i);
        CHECK_EQ(s->record.len, strlen(s->text));
        CHECK(memcmp(s->record.data, s->text, s->record.len) == 0);
    }
    volt_close(cx, s->fd[0]);
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// ---- copies

enum { COPIED = 200 }; // also byte by byte they fit into the buffer of a socket
static void fill_text(char *text, int n) {
    for (int i = 0; i < n; i++) text[i] = (char)(i * 7);
}
// An early end loses the rest without an error.
static int64_t unless_cut(uint64_t n) { return n == COPIED ? 0 : -EPIPE; }
STATE(copy_rest, volt_copier *copier;) {
    VOLT_BEGIN(cx, s);
    KEEP_AWAIT(volt_copy(cx, s->copier, VOLT_ALL));
    if (s->rc < 0 && s->rc != -ECANCELED) CHECK(volt_copy_failed_at(s->copier) != 0);
    if (s->first == 0) KEEP(unless_cut(volt_copied(s->copier)));
    VOLT_END(s->first);
}
// From a pipe: to a socket by splice; by a buffer behind a reader; from a socket to a pipe.
STATE(copies, volt_copier copier; volt_reader reader; copy_rest_state rest; volt_arm copy, read;
      int from[2], to[2], i; char out[COPIED], in[COPIED], head[16];) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->from[0] = s->from[1] = s->to[0] = s->to[1] = -1;
        KEEP(s->i == 2 ? make_pair(s->from) : make_pipe(s->from));
        if (s->first == 0) KEEP(s->i == 2 ? make_pipe(s->to) : make_pair(s->to));
        if (s->first < 0) {
            close_two(cx, s->from);
            break;
        }
        fill_text(s->out, COPIED);
        CHECK_EQ(write(s->from[1], s->out, COPIED), COPIED);
        drop(s->from[1]);
        volt_reader_init(&s->reader, volt_stream_of(s->from[0]), s->head, sizeof s->head,
                         VOLT_LONG_STOP);
        volt_copier_init(&s->copier,
                         s->i == 1 ? volt_reader_stream(&s->reader) : volt_stream_of(s->from[0]),
                         volt_stream_of(s->to[1]), NULL, 0);
        KEEP_AWAIT(volt_copy(cx, &s->copier, 10)); // in two parts
        s->rest = (copy_rest_state){ .copier = &s->copier };
        if (s->first == 0)
            KEEP_AWAIT(VOLT_TRY_JOIN_ALL(
                VOLT_ARM(&s->copy, copy_rest_run(cx, &s->rest)),
                VOLT_ARM(&s->read, volt_read_exact(cx, s->to[0], s->in, COPIED))));
        volt_copier_close(cx, &s->copier);
        if (s->first == 0) CHECK(memcmp(s->in, s->out, COPIED) == 0);
        volt_close(cx, s->from[0]);
        close_two(cx, s->to);
    }
    VOLT_END(s->first);
}
// A file that was opened for appending refuses splice when the bytes are in the pipe already. The
// buffer is smaller than they are.
STATE(copies_to_a_log, volt_copier copier; int from[2], log;
      char out[COPIED], in[COPIED], buf[64];) {
    VOLT_BEGIN(cx, s);
    s->log = opened(memfd_create("volt-fault", MFD_CLOEXEC), FD_DATA);
    if (s->log < 0) VOLT_RETURN(-EMFILE);
    CHECK_EQ(fcntl(s->log, F_SETFL, O_APPEND), 0);
    KEEP(make_pipe(s->from));
    if (s->first == 0) {
        fill_text(s->out, COPIED);
        CHECK_EQ(write(s->from[1], s->out, COPIED), COPIED);
        drop(s->from[1]);
        volt_copier_init(&s->copier, volt_stream_of(s->from[0]), volt_stream_of(s->log), s->buf,
                         sizeof s->buf);
        KEEP_AWAIT(volt_copy(cx, &s->copier, VOLT_ALL));
        if (s->first == 0) KEEP(unless_cut(volt_copied(&s->copier)));
        if (s->first == 0) {
            CHECK_EQ(pread(s->log, s->in, COPIED, 0), COPIED);
            CHECK(memcmp(s->in, s->out, COPIED) == 0);
        }
        volt_copier_close(cx, &s->copier);
        volt_close(cx, s->from[0]);
    }
    volt_close(cx, s->log);
    VOLT_END(s->first);
}

// ---- relays: of the traffic between a caller and an echo

// A stream over a descriptor, without its number, so that it is not spliced.
static volt_poll plain_read(volt_cx *cx, volt_stream st, void *buf, size_t len) {
    return volt_read(cx, *(const int *)st.self, buf, len);
}
static volt_poll plain_write(volt_cx *cx, volt_stream st, const void *buf, size_t len) {
    return volt_write(cx, *(const int *)st.self, buf, len);
}
static volt_poll plain_end(volt_cx *cx, volt_stream st) {
    return volt_stream_end(cx, volt_stream_of(*(const int *)st.self));
}
static const volt_stream_ops plain_ops = { plain_read, plain_write, plain_end, NULL };
STATE(relay, volt_group group; caller_state caller; echo_state echo; volt_relayer relayer;
      int near[2], far[2], is_plain;) {
    VOLT_BEGIN(cx, s);
    s->far[0] = s->far[1] = -1;
    KEEP(make_pair(s->near));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(make_pair(s->far));
    if (s->first < 0) {
        close_two(cx, s->near);
        VOLT_RETURN(s->first);
    }
    s->caller.fd = s->near[0];
    s->rc = VOLT_GROUP_SPAWN(cx, &s->group, caller_run, s->caller);
    if (s->rc < 0) drop(s->near[0]);
    KEEP(s->rc);
    s->echo.fd = s->far[1];
    s->rc = VOLT_GROUP_SPAWN(cx, &s->group, echo_run, s->echo);
    if (s->rc < 0) drop(s->far[1]);
    KEEP(s->rc);
    volt_relayer_init(&s->relayer,
                      s->is_plain ? (volt_stream){ &plain_ops, &s->near[1], -1 }
                                  : volt_stream_of(s->near[1]),
                      volt_stream_of(s->far[0]),
                      inject.f.call == C_shutdown ? VOLT_MS(100) : FAR_AWAY);
    KEEP_AWAIT(volt_relay(cx, &s->relayer));
    if (volt_relay_is_idle(&s->relayer)) CHECK_EQ(s->rc, -ETIMEDOUT);
    if (!is_hit())
        for (int i = 0; i < 2; i++)
            CHECK_EQ(volt_copied(volt_relay_way(&s->relayer, i)), PAYLOAD);
    volt_close(cx, s->near[1]);
    volt_close(cx, s->far[0]);
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}
STATE(relays, relay_state relay;) {
    VOLT_BEGIN(cx, s);
    KEEP_AWAIT(relay_run(cx, &s->relay));
    VOLT_END(s->first);
}
STATE(relays_by_a_buffer, relay_state relay;) {
    VOLT_BEGIN(cx, s);
    s->relay.is_plain = 1;
    KEEP_AWAIT(relay_run(cx, &s->relay));
    VOLT_END(s->first);
}

// ---- files to sockets

STATE(sends_a_file, int file, fd[2]; int64_t offset; char out[COPIED], in[COPIED];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    s->file = opened(memfd_create("volt-fault", MFD_CLOEXEC), FD_DATA);
    if (s->file < 0) KEEP(-EMFILE);
    if (s->file >= 0) {
        fill_text(s->out, COPIED);
        CHECK_EQ(write(s->file, s->out, COPIED), COPIED);
        for (s->offset = 10; s->first == 0;) {
            KEEP_AWAIT(volt_sendfile(cx, s->fd[1], s->file, &s->offset, 100));
            if (s->rc <= 0) break;
        }
        if (s->first == 0) CHECK_EQ(s->offset, COPIED);
        if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->fd[0], s->in, COPIED - 10));
        if (s->first == 0) CHECK(memcmp(s->in, s->out + 10, COPIED - 10) == 0);
        volt_close(cx, s->file);
    }
    close_two(cx, s->fd);
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_STREAMS_H
