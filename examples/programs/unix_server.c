// SPDX-License-Identifier: MIT OR 0BSD
// A file server on a unix socket, and its client. Teaches: a listener with a mode, on a path that a
// crashed server has left behind, or with an abstract name; the credentials of a peer; descriptors
// that are passed in both directions, between the lines of a volt_reader.
//
//     cc -O2 -I. -pthread examples/programs/unix_server.c -o files
//     ./files serve unix:/tmp/files.sock /tmp/files
//     ./files ask unix:/tmp/files.sock 'put notes' notes.txt more.txt
//     ./files ask unix:/tmp/files.sock 'get notes'
//
//   line of a client   answer
//   whoami             ok process P user U group G, as the kernel tells the server
//   get NAME           ok, with an open descriptor of the file
//   put NAME           ok N bytes; the descriptors that come with the line are read one after the
//                      other, and become the content of the file
//   anything else      error ...
// Descriptors belong to the last line of the message that brings them. Those that its command does
// not take are closed. With -p after the first word, on both sides, the socket is a SOCK_SEQPACKET:
// each packet is a line.
//
// Access: a path has the mode 0660, so that its group may connect. An abstract name has no mode:
// only the user of the server and root may connect there. Only these two may use `put`, and pass
// descriptors at all: the server waits for the peer's files, which may be slow, or pipes.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "server.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 512, NAME = 100, PATH = 1024, FDS_MAX = 253, CLIENTS_MAX = 64 };
enum { FILE_MAX = 1 << 20, IDLE_SECONDS = 60, INPUT_SECONDS = 30, WRITE_SECONDS = 5 };
enum { ANSWER_SECONDS = 120, DRAIN_SECONDS = 5 };

// ---- lines, and the descriptors that come with them

typedef struct {
    volt_frame frame;
    int fd, type;
    int64_t rc;
    volt_span text;
    unsigned n_fds, fds_max, is_surplus; // surplus: more than fds_max have come, and are closed
    volt_fds_info info;
    volt_reader in; // of a SOCK_STREAM
    char buf[LINE + 2], line[LINE + 1];
    int fds[FDS_MAX];
} conn;

// A read of the socket by volt_read would drop the descriptors, so the reader has this stream
// below it. It has no state of its own: each poll of an await evaluates all of it.
static volt_poll conn_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    conn *c = (conn *)s.self;
    volt_poll p = volt_recv_fds(cx, c->fd, buf, len, c->fds + c->n_fds, c->fds_max - c->n_fds,
                                &c->info);
    if (volt_is_pending(p)) return p;
    c->n_fds += c->info.n;
    c->is_surplus |= c->info.is_surplus;
    return p;
}
static volt_stream conn_stream(conn *c) {
    static const volt_stream_ops ops = { .read = conn_read };
    volt_stream s = { .ops = &ops, .self = c, .fd = -1 };
    return s;
}
static void conn_init(conn *c, unsigned fds_max) {
    c->fds_max = fds_max;
    volt_reader_init(&c->in, conn_stream(c), c->buf, sizeof c->buf, VOLT_LONG_SKIP);
}
static void conn_drop_fds(volt_cx *cx, conn *c) {
    while (c->n_fds > 0) volt_close(cx, c->fds[--c->n_fds]);
    c->is_surplus = 0;
}
// The kernel ends a read behind the bytes that bring descriptors. So these belong to the last line
// in the buffer, not to one with others behind it.
static int conn_has_fds(const conn *c) {
    return c->type != SOCK_STREAM || volt_buffered(&c->in).len == 0;
}
// Waits for the next line.
//   returns: 1 with the line in c->line | 0 at the end | -EMSGSIZE: too long | -errno
static volt_poll conn_next(volt_cx *cx, conn *c) {
    VOLT_BEGIN(cx, c);
    if (c->type == SOCK_STREAM) {
        VOLT_AWAIT(c->rc, volt_read_line(cx, &c->in, &c->text));
        if (c->rc == 2) c->rc = 0; // half a command is none
    } else {
        VOLT_AWAIT(c->rc, conn_read(cx, conn_stream(c), c->buf, sizeof c->buf));
        c->text.data = c->buf;
        c->text.len = c->rc > 0 ? (size_t)c->rc : 0;
        if (c->text.len > 0 && c->buf[c->text.len - 1] == '\n') c->text.len--;
        if (c->rc > 0) c->rc = c->info.is_cut || c->text.len > LINE ? -EMSGSIZE : 1;
    }
    if (c->rc == 1) snprintf(c->line, sizeof c->line, "%.*s", VOLT_SPAN(c->text));
    VOLT_END(c->rc);
}

// A line to be sent, with n descriptors, which stay the caller's.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    size_t len, n_sent;
    int64_t rc;
    char text[LINE + 2];
} message;
static void message_put(message *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void message_put(message *m, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(m->text, LINE + 1, format, list);
    va_end(list);
    m->len = strlen(m->text);
    m->text[m->len++] = '\n';
}
//   returns: 0 | -ETIMEDOUT if the peer does not read | -errno
static volt_poll message_send(volt_cx *cx, message *m, int fd, const int *fds, unsigned n) {
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, volt_within(cx, &m->limit, VOLT_S(WRITE_SECONDS),
                                  volt_send_fds(cx, fd, m->text, m->len, fds, n)));
    if (m->rc < 0 || (size_t)m->rc == m->len) VOLT_RETURN(m->rc < 0 ? m->rc : 0);
    m->n_sent = (size_t)m->rc; // a stream may take only a part; the descriptors went with it
    VOLT_AWAIT(m->rc, volt_within(cx, &m->limit, VOLT_S(WRITE_SECONDS),
                                  volt_write_all(cx, fd, m->text + m->n_sent,
                                                 m->len - m->n_sent)));
    VOLT_END(m->rc < 0 ? m->rc : 0);
}

// ---- the server: commands

typedef struct {
    server s;
    const char *dir;
    int type, is_abstract;
} file_server;
typedef struct {
    volt_frame frame;
    int64_t rc;
} step;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer limit;
    file_server *owner;
    volt_cred peer;
    int is_privileged, file;
    int64_t rc;
    conn c;
    message answer;
    // of the command that runs
    step command, put, get, append;
    volt_file_op op;
    struct stat st;
    unsigned i;
    size_t len;
    int64_t at, n;
    char *content;
    char path[PATH];
} session;

// The answer brings the descriptor, which the session closes then.
static volt_poll get_run(volt_cx *cx, session *s) {
    step *w = &s->get;
    VOLT_BEGIN(cx, w);
    // O_NONBLOCK: the open of a FIFO would wait for its other end
    VOLT_AWAIT(s->file, volt_file_open(cx, &s->op, s->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (s->file < 0) VOLT_RETURN(s->file);
    VOLT_AWAIT(w->rc, volt_file_fstat(cx, &s->op, s->file, &s->st));
    if (w->rc == 0 && !S_ISREG(s->st.st_mode)) w->rc = -EACCES;
    if (w->rc < 0) {
        volt_close(cx, s->file);
        s->file = -1;
    }
    message_put(&s->answer, "ok %lld bytes", (long long)s->st.st_size);
    VOLT_END(w->rc);
}
// Appends a file from its beginning, or a pipe or socket to its end, to the content. The pipe
// becomes non-blocking for the client, too.
//   returns: 0 | -EFBIG | -EACCES for another kind, whose reading may have effects | -errno
static volt_poll append_run(volt_cx *cx, session *s, int fd) {
    step *w = &s->append;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_file_fstat(cx, &s->op, fd, &s->st));
    if (w->rc < 0) VOLT_RETURN(w->rc);
    for (s->at = 0;; s->at += s->n, s->len += (size_t)s->n) {
        if (S_ISREG(s->st.st_mode))
            VOLT_AWAIT(s->n, volt_file_pread(cx, &s->op, fd, s->content + s->len,
                                             FILE_MAX + 1 - s->len, s->at));
        else if (S_ISFIFO(s->st.st_mode) || S_ISSOCK(s->st.st_mode))
            VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(INPUT_SECONDS),
                                         volt_read(cx, fd, s->content + s->len,
                                                   FILE_MAX + 1 - s->len)));
        else VOLT_RETURN(-EACCES);
        if (s->n <= 0) VOLT_RETURN(s->n);
        if (s->len + (size_t)s->n > FILE_MAX) VOLT_RETURN(-EFBIG);
    }
    VOLT_END(0);
}
static volt_poll put_run(volt_cx *cx, session *s) {
    step *w = &s->put;
    VOLT_BEGIN(cx, w);
    s->content = (char *)malloc(FILE_MAX + 1); // one byte more shows that there are more
    w->rc = s->content ? 0 : -ENOMEM;
    s->len = 0;
    for (s->i = 0; w->rc == 0 && s->i < s->c.n_fds; s->i++)
        VOLT_AWAIT(w->rc, append_run(cx, s, s->c.fds[s->i]));
    if (w->rc == 0)
        VOLT_AWAIT(w->rc, volt_file_replace(cx, &s->op, s->path, s->content, s->len, 0640));
    free(s->content);
    message_put(&s->answer, "ok %zu bytes", s->len);
    VOLT_END(w->rc);
}
// A name has no slash, does not begin with a dot, and needs no quoting in a terminal.
static int name_is_legal(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-");
    return n > 0 && n <= NAME && name[n] == 0 && name[0] != '.';
}
// Executes the line.
//   returns: 0 with the answer in s->answer, and perhaps a descriptor in s->file | -errno
static volt_poll command_run(volt_cx *cx, session *s) {
    step *w = &s->command;
    const char *const line = s->c.line;
    const int is_get = strncmp(line, "get ", 4) == 0, is_put = strncmp(line, "put ", 4) == 0;
    VOLT_BEGIN(cx, w);
    if (strcmp(line, "whoami") == 0) {
        message_put(&s->answer, "ok process %d user %u group %u", s->peer.pid, s->peer.uid,
                    s->peer.gid);
        VOLT_RETURN(0);
    }
    if (is_put && !s->is_privileged) VOLT_RETURN(-EPERM);
    if ((!is_get && !is_put) || !name_is_legal(line + 4) ||
        (is_put && (s->c.n_fds == 0 || !conn_has_fds(&s->c)))) {
        message_put(&s->answer, "error usage: whoami, get NAME, put NAME with descriptors");
        VOLT_RETURN(0);
    }
    w->rc = snprintf(s->path, sizeof s->path, "%s/%s", s->owner->dir, line + 4);
    if (w->rc >= (int)sizeof s->path) VOLT_RETURN(-ENAMETOOLONG);
    if (is_get) VOLT_AWAIT(w->rc, get_run(cx, s));
    else VOLT_AWAIT(w->rc, put_run(cx, s));
    VOLT_END(w->rc < 0 ? w->rc : 0);
}

// ---- the server: connections

// Learns the peer.
//   returns: 0 | -EACCES if it may not use the server | -errno
static int session_begin(session *s) {
    int rc = volt_peer_cred(s->c.fd, &s->peer);
    s->is_privileged = rc == 0 && (s->peer.uid == 0 || s->peer.uid == geteuid());
    conn_init(&s->c, s->is_privileged ? FDS_MAX : 0);
    return rc == 0 && s->owner->is_abstract && !s->is_privileged ? -EACCES : rc;
}
static volt_poll session_run(volt_cx *cx, void *arg) {
    session *s = (session *)arg;
    VOLT_BEGIN(cx, s);
    s->rc = session_begin(s);
    while (s->rc >= 0) {
        VOLT_AWAIT(s->rc, volt_with_token(cx, &s->stop, &s->owner->s.stop,
                                          volt_within(cx, &s->limit, VOLT_S(IDLE_SECONDS),
                                                      conn_next(cx, &s->c))));
        if (s->rc <= 0 && s->rc != -EMSGSIZE) break; // the end, silence, or a stop
        s->file = -1;
        if (s->c.is_surplus && conn_has_fds(&s->c))
            message_put(&s->answer, "error more descriptors than are taken from this user");
        else if (s->rc == 1) VOLT_AWAIT(s->rc, command_run(cx, s));
        if (s->rc < 0) message_put(&s->answer, "error %s", volt_strerror((int)s->rc));
        VOLT_AWAIT(s->rc, message_send(cx, &s->answer, s->c.fd, &s->file, s->file >= 0));
        if (s->file >= 0) volt_close(cx, s->file); // the client has its own by now
        if (conn_has_fds(&s->c)) conn_drop_fds(cx, &s->c);
    }
    conn_drop_fds(cx, &s->c);
    volt_close(cx, s->c.fd);
    VOLT_END(0);
}

static int client_came(volt_cx *cx, server *s, int fd) {
    session new_one = { .owner = (file_server *)s };
    new_one.c.fd = fd;
    new_one.c.type = new_one.owner->type;
    return VOLT_GROUP_SPAWN(cx, &s->clients, session_run, new_one);
}
// Returns 0 or -errno.
static int serve(const char *where, const volt_addr *at, int type, const char *dir) {
    const volt_listen_options options = { .type = type, .mode = 0660, .is_replacing = 1 };
    static file_server f;
    f.dir = dir;
    f.type = type;
    f.is_abstract = strncmp(where, "unix:@", 6) == 0;
    f.s.n_max = CLIENTS_MAX;
    f.s.grace = VOLT_S(DRAIN_SECONDS);
    f.s.client_came = client_came;
    int rc = server_open(&f.s, at, &options);
    return rc < 0 ? rc : volt_run(NULL, server_run, &f.s);
}

// ---- the client

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_addr at;
    volt_cred peer;
    message question;
    conn c;
    volt_copier copy;
    int fds[FDS_MAX];
    unsigned n_fds;
    int64_t rc;
} client;

// An abstract name may belong to any process: the server must be of this user, or of root.
static int client_check(client *c) {
    int rc = volt_peer_cred(c->c.fd, &c->peer);
    return rc < 0 ? rc : c->peer.uid == 0 || c->peer.uid == geteuid() ? 0 : -EACCES;
}
// Sends the question and prints the answer; a file that it brings is copied to standard output.
//   returns: 0, or 1 if the answer is an error | -errno
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    conn_init(&c->c, 1);
    VOLT_AWAIT(c->rc, volt_connect_on(cx, c->c.fd, &c->at));
    if (c->rc == 0) c->rc = client_check(c);
    if (c->rc == 0) VOLT_AWAIT(c->rc, message_send(cx, &c->question, c->c.fd, c->fds, c->n_fds));
    if (c->rc == 0)
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, VOLT_S(ANSWER_SECONDS), conn_next(cx, &c->c)));
    if (c->rc <= 0) VOLT_RETURN(c->rc == 0 ? -EPIPE : c->rc);
    fprintf(stderr, "%s\n", c->c.line);
    c->rc = strncmp(c->c.line, "ok", 2) != 0;
    if (c->c.n_fds == 0) VOLT_RETURN(c->rc);
    volt_copier_init(&c->copy, volt_stream_of(c->c.fds[0]), volt_stream_of(STDOUT_FILENO), NULL, 0);
    VOLT_AWAIT(c->rc, volt_copy(cx, &c->copy, VOLT_ALL));
    volt_copier_close(cx, &c->copy);
    VOLT_END(c->rc);
}
// The end of the process closes the descriptors. Returns 0, 1 if the answer is an error, or -errno.
static int ask(const volt_addr *at, int type, int n, char **words) {
    static client c;
    c.at = *at;
    c.c.type = type;
    c.c.fd = volt_sock_open(AF_UNIX, type, 0);
    if (c.c.fd < 0) return c.c.fd;
    message_put(&c.question, "%s", words[0]);
    for (int i = 1; i < n; i++) {
        if (c.n_fds == FDS_MAX) return -E2BIG;
        c.fds[c.n_fds] = open(words[i], O_RDONLY | O_CLOEXEC);
        if (c.fds[c.n_fds++] < 0) return -errno;
    }
    return volt_run(NULL, client_run, &c);
}

int main(int argc, char **argv) {
    const int is_packets = argc > 2 && strcmp(argv[2], "-p") == 0;
    const int type = is_packets ? SOCK_SEQPACKET : SOCK_STREAM;
    char **const words = argv + 2 + is_packets;
    const int n = argc - 2 - is_packets;
    const int is_server = n == 2 && strcmp(argv[1], "serve") == 0;
    volt_addr at;
    if (n < 2 || (!is_server && strcmp(argv[1], "ask") != 0) ||
        volt_addr_parse(&at, words[0]) < 0 || volt_addr_family(&at) != AF_UNIX) {
        fprintf(stderr, "usage: %s serve [-p] ADDR DIRECTORY\n"
                        "       %s ask [-p] ADDR LINE [FILE...]\n"
                        "ADDR is unix:/path or unix:@name. -p: SOCK_SEQPACKET, on both sides.\n",
                argv[0], argv[0]);
        return 2;
    }
    int rc = is_server ? serve(words[0], &at, type, words[1]) : ask(&at, type, n - 1, words + 1);
    if (rc < 0) fprintf(stderr, "%s: %s\n", words[0], volt_strerror(rc));
    return rc != 0;
}
