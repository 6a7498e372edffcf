// SPDX-License-Identifier: MIT OR 0BSD
// A file server on a unix socket, and its client. Descriptors are passed in both directions:
// `open NAME` gives the client an open descriptor of a file in the server's directory, and
// `put NAME`, sent with a descriptor, copies its content into the directory.
//   - The address is a path, or an abstract name that begins with @. A path whose server is gone is
//     taken over; it has the mode 0660, so that its group may connect. An abstract name has no
//     mode: there only the user of the server and root may connect.
//   - The kernel tells the server the user of each client. Only the server's own user and root may
//     use the commands that change something.
//   - A request is one line, and so is an answer: `ok ...` or `error ...`. Lines that begin with
//     "- " may come before it. With -p a packet of SOCK_SEQPACKET takes the place of a line.
//
//     cc -I. -pthread sketch/05_unix.c -o unix
//     ./unix serve /tmp/files.sock /tmp/files
//     ./unix client /tmp/files.sock put notes notes.txt
//     ./unix client /tmp/files.sock open notes
//     ./unix client /tmp/files.sock help
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 512, NAME = 100, PATH = 512, CHUNK = 65536, DIR_CHUNK = 4096 };
enum { FDS_MAX = 4, CLIENTS_MAX = 64 };
enum { IDLE_S = 60, WRITE_S = 5, INPUT_S = 30, CLEANUP_S = 5, GRACE_S = 2, REPLY_S = 120 };
#define PUT_MAX ((int64_t)1 << 30) // bytes of a file
#define TEMP ".put."               // begins the names of files that are not complete

// ---- lines, and the descriptors that come with them

typedef struct {
    int fd, type;
    int fds[FDS_MAX], n_fds; // received descriptors that no command has taken
    int n_more;              // of one call
    volt_reader in;          // of a SOCK_STREAM
    char buf[LINE + 2];
    char line[LINE + 1];     // the last line, without its end
} conn;

// Receives once, and appends the descriptors to those that are there. It has no state of its own:
// each poll of an await evaluates all of it.
static volt_poll conn_recv(volt_cx *cx, conn *c, void *buf, size_t len) {
    c->n_more = FDS_MAX - c->n_fds;
    volt_poll p = volt_recv_fds(cx, c->fd, buf, len, c->fds + c->n_fds, &c->n_more);
    if (volt_is_pending(p)) return p;
    if (volt_value(p) >= 0 || volt_value(p) == -EMSGSIZE) c->n_fds += c->n_more;
    return p;
}
// A plain read of the socket would lose the descriptors, so the reader has this stream below it.
static volt_poll conn_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return conn_recv(cx, (conn *)s.self, buf, len);
}
static volt_poll conn_stream_write(volt_cx *cx, volt_stream s, const void *buf, size_t len) {
    return volt_write(cx, ((conn *)s.self)->fd, buf, len);
}
static const volt_stream_ops conn_ops = { .read = conn_stream_read, .write = conn_stream_write };

// The connection must not move from here on.
static void conn_init(conn *c, int fd, int type) {
    c->fd = fd;
    c->type = type;
    c->n_fds = 0;
    volt_reader_init(&c->in, (volt_stream){ .ops = &conn_ops, .self = c, .fd = -1 }, c->buf,
                     sizeof c->buf);
}
// Takes the oldest descriptor. Returns it, or -1. The caller closes it.
static int conn_take_fd(conn *c) {
    if (c->n_fds == 0) return -1;
    int fd = c->fds[0];
    memmove(c->fds, c->fds + 1, (size_t)--c->n_fds * sizeof c->fds[0]);
    return fd;
}
static void conn_drop_fds(volt_cx *cx, conn *c) {
    while (c->n_fds > 0) volt_close(cx, c->fds[--c->n_fds]);
}
// Called after a command: closes descriptors that it has not taken. The kernel ends a read behind
// the bytes that carry descriptors, so those of a later command come with bytes that are still in
// the buffer.
static void conn_end_command(volt_cx *cx, conn *c) {
    if (c->type != SOCK_STREAM || volt_buffered(&c->in).len == 0) conn_drop_fds(cx, c);
}
static void conn_close(volt_cx *cx, conn *c) {
    conn_drop_fds(cx, c);
    volt_close(cx, c->fd);
}

// Copies a line to c->line. Returns 1, or -EBADMSG if it is too long or has control characters.
static int conn_keep(conn *c, volt_span text) {
    if (text.len > 0 && text.data[text.len - 1] == '\n') text.len--;
    if (text.len > LINE) return -EBADMSG;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ') return -EBADMSG;
    memcpy(c->line, text.data, text.len);
    c->line[text.len] = 0;
    return 1;
}
typedef struct {
    volt_frame frame;
    volt_span text;
    int64_t rc;
} line_wait;
// Waits for the next line.
//   returns: 1 with the line in c->line | 0 at the end | -EMSGSIZE, -EBADMSG: no line, or too many
//            descriptors | -errno
static volt_poll conn_next(volt_cx *cx, line_wait *w, conn *c) {
    VOLT_BEGIN(cx, w);
    if (c->type == SOCK_STREAM) {
        VOLT_AWAIT(w->rc, volt_read_line(cx, &c->in, &w->text));
        if (w->rc == 1 && volt_is_cut(&c->in)) VOLT_RETURN(0); // half a command is none
    } else {
        VOLT_AWAIT(w->rc, conn_recv(cx, c, c->buf, sizeof c->buf));
        w->text.data = c->buf;
        w->text.len = w->rc > 0 ? (size_t)w->rc : 0;
    }
    VOLT_END(w->rc > 0 ? conn_keep(c, w->text) : w->rc);
}

// A line to be sent, with a descriptor if fd is not -1. The descriptor stays the caller's.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    int fd;
    size_t len, n_sent;
    int64_t rc;
    char text[LINE + 2];
} saying;
static void say(saying *s, int fd, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(saying *s, int fd, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(s->text, LINE + 1, format, list);
    va_end(list);
    s->len = n < 0 ? 0 : n > LINE ? LINE : (size_t)n;
    s->text[s->len++] = '\n';
    s->fd = fd;
}
//   returns: 0 | -ETIMEDOUT if the peer does not read | -errno
static volt_poll say_run(volt_cx *cx, saying *s, conn *c) {
    VOLT_BEGIN(cx, s);
    s->n_sent = 0;
    if (s->fd >= 0) { // the descriptor goes with the first byte; a stream may take only a part
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_S(WRITE_S),
                                      volt_send_fds(cx, c->fd, s->text, s->len, &s->fd, 1)));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        s->n_sent = (size_t)s->rc;
    }
    if (s->n_sent == s->len) VOLT_RETURN(0);
    VOLT_AWAIT(s->rc,
               volt_within(cx, &s->limit, VOLT_S(WRITE_S),
                           volt_write_all(cx, c->fd, s->text + s->n_sent, s->len - s->n_sent)));
    VOLT_END(s->rc < 0 ? s->rc : 0);
}

// ---- the server

typedef struct {
    volt_token stop;
    volt_group sessions;
    volt_sem places;
    const char *dir;
    int dir_fd, fd, type, is_abstract;
    unsigned n_puts; // so far: they number the files that are not complete
} server;

typedef struct session session;
typedef struct {
    const char *name, *argument, *text;
    unsigned is_privileged;
    // Returns 0 with the answer in s->say, or -errno, which is the answer then.
    volt_poll (*run)(volt_cx *cx, session *s);
} command;

typedef struct {
    volt_frame frame;
    int64_t n;
} copying;
typedef struct {
    volt_frame frame;
    int64_t rc;
} placing;
// The state of the command that runs: one at a time.
typedef struct {
    volt_frame frame;
    copying copy;
    placing place;
    volt_shield cleanup;
    volt_timer limit;
    volt_file_op op;
    struct stat st;
    int fd, from, is_file, has_temp;
    unsigned i;
    int64_t rc, n, offset;
    size_t at;
    volt_dir_entry entry;
    char *buf;
    char path[PATH], temp[PATH];
} work;
struct session {
    volt_frame frame;
    volt_token_link stop;
    volt_timer limit;
    server *srv;
    int fd, is_privileged, is_over;
    int64_t rc;
    volt_cred peer;
    const command *cmd;
    const char *argument; // in c.line
    line_wait next;
    saying say;
    conn c;
    work w;
};

static const command *command_at(unsigned i); // NULL behind the last one

// A name has no slash, does not begin with a dot, and needs no quoting in a terminal.
static int name_is_legal(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-");
    return n > 0 && n <= NAME && name[n] == 0 && name[0] != '.';
}
static int path_make(session *s, char *path) {
    if (!name_is_legal(s->argument)) return -EINVAL;
    int n = snprintf(path, PATH, "%s/%s", s->srv->dir, s->argument);
    return n < 0 || n >= PATH ? -ENAMETOOLONG : 0;
}

static volt_poll help_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; command_at(w->i); w->i++) {
        say(&s->say, -1, "- %s %s  %s%s", command_at(w->i)->name, command_at(w->i)->argument,
            command_at(w->i)->text, command_at(w->i)->is_privileged ? " (*)" : "");
        VOLT_AWAIT(w->rc, say_run(cx, &s->say, &s->c));
        if (w->rc < 0) VOLT_RETURN(w->rc);
    }
    say(&s->say, -1, "ok (*): only for the user of the server, and root");
    VOLT_END(0);
}

static volt_poll whoami_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    say(&s->say, -1, "ok process %d, user %u, group %u", (int)s->peer.pid, (unsigned)s->peer.uid,
        (unsigned)s->peer.gid);
    VOLT_END(0);
}

static volt_poll list_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    w->buf = (char *)malloc(DIR_CHUNK);
    if (!w->buf) VOLT_RETURN(-ENOMEM);
    VOLT_AWAIT(w->fd, volt_file_open(cx, &w->op, s->srv->dir, O_RDONLY | O_DIRECTORY, 0));
    if (w->fd < 0) {
        free(w->buf);
        VOLT_RETURN(w->fd);
    }
    w->i = 0;
    for (;;) {
        VOLT_AWAIT(w->n, volt_dir_read(cx, &w->op, w->fd, w->buf, DIR_CHUNK));
        if (w->n <= 0) break;
        w->at = 0;
        while (volt_dir_next(w->buf, (size_t)w->n, &w->at, &w->entry)) {
            if (!name_is_legal(w->entry.name)) continue;
            w->i++;
            say(&s->say, -1, "- %s", w->entry.name);
            VOLT_AWAIT(w->rc, say_run(cx, &s->say, &s->c));
            if (w->rc < 0) goto out;
        }
    }
    w->rc = w->n;
out:
    volt_close(cx, w->fd);
    free(w->buf);
    say(&s->say, -1, "ok %u files", w->i);
    VOLT_END(w->rc);
}

// The session sends the descriptor, and closes it.
static volt_poll open_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    w->rc = path_make(s, w->path);
    if (w->rc < 0) VOLT_RETURN(w->rc);
    // O_NONBLOCK: the open of a FIFO would wait for its other end
    VOLT_AWAIT(w->fd, volt_file_open(cx, &w->op, w->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (w->fd < 0) VOLT_RETURN(w->fd);
    VOLT_AWAIT(w->rc, volt_file_fstat(cx, &w->op, w->fd, &w->st));
    if (w->rc == 0 && !S_ISREG(w->st.st_mode)) w->rc = -EACCES;
    if (w->rc < 0) {
        volt_close(cx, w->fd);
        VOLT_RETURN(w->rc);
    }
    say(&s->say, w->fd, "ok %lld bytes", (long long)w->st.st_size);
    VOLT_END(0);
}

// Copies a file from its beginning, or a pipe or socket to its end, into w->fd.
//   returns: 0 with the length in w->offset | -EFBIG | -ETIMEDOUT | -errno
static volt_poll copy_run(volt_cx *cx, copying *c, work *w) {
    VOLT_BEGIN(cx, c);
    for (w->offset = 0;; w->offset += c->n) {
        if (w->is_file)
            VOLT_AWAIT(c->n, volt_file_pread(cx, &w->op, w->from, w->buf, CHUNK, w->offset));
        else
            VOLT_AWAIT(c->n, volt_within(cx, &w->limit, VOLT_S(INPUT_S),
                                         volt_read(cx, w->from, w->buf, CHUNK)));
        if (c->n <= 0) VOLT_RETURN(c->n);
        if (w->offset + c->n > PUT_MAX) VOLT_RETURN(-EFBIG);
        VOLT_AWAIT(c->n, volt_file_pwrite(cx, &w->op, w->fd, w->buf, (size_t)c->n, w->offset));
        if (c->n < 0) VOLT_RETURN(c->n);
    }
    VOLT_END(0);
}
// Puts the complete file in its place: a reader sees the old or the new one, also after a loss of
// power.
static volt_poll place_run(volt_cx *cx, placing *p, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_file_sync(cx, &w->op, w->fd, 0));
    if (p->rc < 0) VOLT_RETURN(p->rc);
    VOLT_AWAIT(p->rc, volt_file_rename(cx, &w->op, w->temp, w->path));
    if (p->rc < 0) VOLT_RETURN(p->rc);
    w->has_temp = 0;
    VOLT_AWAIT(p->rc, volt_file_sync(cx, &w->op, s->srv->dir_fd, 0));
    VOLT_END(p->rc);
}
// Checks the kind of the client's descriptor: reading a device or a terminal has effects. Returns 0,
// or -errno.
static int put_check(work *w) {
    w->is_file = S_ISREG(w->st.st_mode);
    if (w->is_file) return w->st.st_size > PUT_MAX ? -EFBIG : 0;
    return S_ISFIFO(w->st.st_mode) || S_ISSOCK(w->st.st_mode) ? 0 : -EACCES;
}
static int put_name(session *s) {
    unsigned n = __atomic_add_fetch(&s->srv->n_puts, 1, __ATOMIC_RELAXED);
    int len = snprintf(s->w.temp, PATH, "%s/" TEMP "%d.%u", s->srv->dir, (int)getpid(), n);
    return len < 0 || len >= PATH ? -ENAMETOOLONG : path_make(s, s->w.path);
}

static volt_poll put_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    w->fd = -1;
    w->has_temp = 0;
    w->buf = NULL;
    w->from = conn_take_fd(&s->c);
    if (w->from < 0) {
        say(&s->say, -1, "error put needs a descriptor");
        VOLT_RETURN(0);
    }
    w->rc = put_name(s);
    if (w->rc < 0) goto out;
    w->buf = (char *)malloc(CHUNK);
    w->rc = w->buf ? 0 : -ENOMEM;
    if (w->rc < 0) goto out;
    VOLT_AWAIT(w->rc, volt_file_fstat(cx, &w->op, w->from, &w->st));
    if (w->rc == 0) w->rc = put_check(w);
    if (w->rc < 0) goto out;
    VOLT_AWAIT(w->fd, volt_file_open(cx, &w->op, w->temp, O_WRONLY | O_CREAT | O_EXCL, 0640));
    w->rc = w->fd;
    if (w->rc < 0) goto out;
    w->has_temp = 1;
    VOLT_AWAIT(w->rc, copy_run(cx, &w->copy, w));
    if (w->rc == 0) VOLT_AWAIT(w->rc, place_run(cx, &w->place, s));
    say(&s->say, -1, "ok %lld bytes", (long long)w->offset);
out:
    // a cancelled close or unlink would leave the descriptor or the file behind
    volt_shield_begin(cx, &w->cleanup, VOLT_S(CLEANUP_S));
    if (w->fd >= 0) {
        VOLT_AWAIT(w->n, volt_file_close(cx, &w->op, w->fd));
        if (w->n == -ECANCELED || w->n == -EAGAIN) volt_close(cx, w->fd); // it has not begun
    }
    if (w->has_temp) VOLT_AWAIT(volt_file_unlink(cx, &w->op, w->temp));
    volt_shield_end(cx, &w->cleanup);
    volt_close(cx, w->from);
    free(w->buf);
    VOLT_END(w->rc);
}

static volt_poll delete_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    w->rc = path_make(s, w->path);
    if (w->rc < 0) VOLT_RETURN(w->rc);
    VOLT_AWAIT(w->rc, volt_file_unlink(cx, &w->op, w->path));
    say(&s->say, -1, "ok");
    VOLT_END(w->rc);
}

static volt_poll stop_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    volt_token_cancel(&s->srv->stop);
    say(&s->say, -1, "ok stopping");
    VOLT_END(0);
}

static volt_poll quit_run(volt_cx *cx, session *s) {
    work *const w = &s->w;
    VOLT_BEGIN(cx, w);
    s->is_over = 1;
    say(&s->say, -1, "ok");
    VOLT_END(0);
}

static const command commands[] = {
    { "help", "", "lists the commands", 0, help_run },
    { "whoami", "", "tells the user that the server sees", 0, whoami_run },
    { "list", "", "lists the files", 0, list_run },
    { "open", "NAME", "gives a descriptor of a file, for reading", 0, open_run },
    { "put", "NAME", "copies the content of the descriptor that comes with it", 1, put_run },
    { "delete", "NAME", "deletes a file", 1, delete_run },
    { "stop", "", "ends the server", 1, stop_run },
    { "quit", "", "ends the connection", 0, quit_run },
};
static const command *command_at(unsigned i) {
    return i < sizeof commands / sizeof commands[0] ? &commands[i] : NULL;
}
// Finds the command of c.line. Otherwise s->cmd is NULL, and the answer is in s->say.
static void session_parse(session *s) {
    size_t n = strcspn(s->c.line, " ");
    s->argument = s->c.line + n + (s->c.line[n] == ' ');
    s->cmd = NULL;
    for (unsigned i = 0; command_at(i) && !s->cmd; i++)
        if (strlen(commands[i].name) == n && memcmp(commands[i].name, s->c.line, n) == 0)
            s->cmd = &commands[i];
    if (!s->cmd) {
        say(&s->say, -1, "error no such command, see help");
    } else if (s->cmd->is_privileged && !s->is_privileged) {
        say(&s->say, -1, "error %s is not for user %u", s->cmd->name, (unsigned)s->peer.uid);
        s->cmd = NULL;
    } else if ((*s->cmd->argument != 0) != (*s->argument != 0)) {
        say(&s->say, -1, "error usage: %s %s", s->cmd->name, s->cmd->argument);
        s->cmd = NULL;
    }
}
// Learns the user of the client. Returns 0, or -errno if the client may not use the server.
static int session_check(session *s) {
    int rc = volt_peer_cred(s->fd, &s->peer);
    if (rc < 0) return rc;
    s->is_privileged = s->peer.uid == 0 || s->peer.uid == geteuid();
    return s->srv->is_abstract && !s->is_privileged ? -EACCES : 0;
}
static volt_poll session_run(volt_cx *cx, void *arg) {
    session *s = (session *)arg;
    VOLT_BEGIN(cx, s);
    conn_init(&s->c, s->fd, s->srv->type);
    s->rc = session_check(s);
    while (s->rc == 0 && !s->is_over) {
        VOLT_AWAIT(s->rc,
                   volt_with_token(cx, &s->stop, &s->srv->stop,
                                   volt_within(cx, &s->limit, VOLT_S(IDLE_S),
                                               conn_next(cx, &s->next, &s->c))));
        if (s->rc == -EMSGSIZE || s->rc == -EBADMSG) { // the rest of the stream means nothing
            say(&s->say, -1, "error not a line, or too many descriptors");
            s->is_over = 1;
            s->cmd = NULL;
        } else if (s->rc == 1) {
            session_parse(s);
        } else {
            break; // the end, silence, or the end of the server
        }
        s->rc = 0;
        if (s->cmd) VOLT_AWAIT(s->rc, s->cmd->run(cx, s));
        if (s->rc == -ECANCELED) break;
        if (s->rc < 0) say(&s->say, -1, "error %s: %s", s->cmd->name, volt_strerror((int)s->rc));
        VOLT_AWAIT(s->rc, say_run(cx, &s->say, &s->c));
        if (s->say.fd >= 0) volt_close(cx, s->say.fd); // the client has its own by now
        conn_end_command(cx, &s->c);
    }
    conn_close(cx, &s->c);
    volt_sem_release(&s->srv->places, 1);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer grace;
    server *srv;
    int fd;
    int64_t rc;
} acceptor;

static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    acceptor *a = (acceptor *)arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->rc, volt_with_token(cx, &a->stop, &a->srv->stop,
                                          volt_sem_acquire(cx, &a->srv->places, 1)));
        if (a->rc < 0) break;
        VOLT_AWAIT(a->fd, volt_with_token(cx, &a->stop, &a->srv->stop,
                                          volt_accept(cx, a->srv->fd)));
        a->rc = a->fd;
        if (a->fd >= 0) a->rc = VOLT_GROUP_SPAWN(cx, &a->srv->sessions, session_run,
                                                 (session){ .srv = a->srv, .fd = a->fd });
        if (a->rc == 0) continue; // the task has the descriptor and the place
        if (a->fd >= 0) volt_close(cx, a->fd);
        volt_sem_release(&a->srv->places, 1);
        if (a->fd < 0) break;
    }
    VOLT_AWAIT(volt_within(cx, &a->grace, VOLT_S(GRACE_S), volt_group_wait(cx, &a->srv->sessions)));
    VOLT_AWAIT(volt_group_close(cx, &a->srv->sessions)); // cancels what is left
    VOLT_END(volt_token_is_cancelled(&a->srv->stop) ? 0 : a->rc);
}

typedef struct {
    volt_frame frame;
    volt_arm ended, signalled;
    server srv;
    volt_handle h;
    int sigfd;
    int64_t rc;
} serving;

static volt_poll serving_run(volt_cx *cx, void *arg) {
    serving *m = (serving *)arg;
    VOLT_BEGIN(cx, m);
    m->rc = VOLT_SPAWN(cx, &m->h, acceptor_run, (acceptor){ .srv = &m->srv });
    if (m->rc == 0) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->ended, m->rc, volt_join(cx, &m->h)),
                               VOLT_ARM(&m->signalled, volt_signals_next(cx, m->sigfd, NULL))));
        volt_token_cancel(&m->srv.stop);
        if (!m->ended.fired) VOLT_AWAIT(m->rc, volt_join(cx, &m->h));
        volt_detach(&m->h); // does nothing after a join
    }
    (void)volt_unix_unlink(m->srv.fd); // an abstract name has no path
    volt_close(cx, m->srv.fd);
    volt_close(cx, m->sigfd);
    VOLT_END(m->rc);
}

// Takes the directory, which only one server may have, and removes the incomplete files of one that
// has crashed. Returns a descriptor, or -errno.
static int dir_take(const char *dir) {
    char path[PATH];
    struct dirent *e;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) return errno == EWOULDBLOCK ? -EBUSY : -errno;
    DIR *d = opendir(dir);
    if (!d) return -errno;
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, TEMP, sizeof TEMP - 1) != 0) continue;
        int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (n > 0 && n < PATH && unlink(path) < 0) perror(path);
    }
    closedir(d);
    return fd;
}
// Returns 0, 1 after an error that it has printed, or -errno.
static int serve(const volt_addr *at, int type, const char *dir, int is_abstract) {
    static serving m;
    const volt_config config = { .log = { .fn = volt_log_stderr } };
    const volt_unix_options options = { .type = type, .mode = 0660, .is_replacing = 1 };
    m.sigfd = VOLT_SIGNALS(SIGINT, SIGTERM); // before the runtime has threads
    if (m.sigfd < 0) return m.sigfd;
    m.srv.dir_fd = dir_take(dir);
    if (m.srv.dir_fd < 0) {
        fprintf(stderr, "%s: %s\n", dir, volt_strerror(m.srv.dir_fd));
        return 1;
    }
    m.srv.dir = dir;
    m.srv.type = type;
    m.srv.is_abstract = is_abstract;
    m.srv.fd = volt_unix_open(at, &options);
    if (m.srv.fd < 0) return m.srv.fd;
    volt_sem_release(&m.srv.places, CLIENTS_MAX);
    return volt_run(&config, serving_run, &m);
}

// ---- the client

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_addr at;
    const char *file_or_null; // the file of a put; "-": standard input
    int type, fd, file, is_ok;
    unsigned n_tries;
    int64_t rc, offset;
    volt_cred peer;
    line_wait next;
    saying say;
    conn c;
    volt_file_op op;
    char buf[CHUNK];
} client;

// An abstract name may belong to any process: the server must be that of this user, or of root.
static int client_check(client *c) {
    int rc = volt_peer_cred(c->fd, &c->peer);
    return rc < 0 ? rc : c->peer.uid == 0 || c->peer.uid == geteuid() ? 0 : -EACCES;
}
// Prints a line of the answer. Returns 1 if it was the last one.
static int client_print(client *c) {
    const char *line = c->c.line;
    if (strncmp(line, "- ", 2) == 0) {
        printf("%s\n", line + 2);
        return 0;
    }
    c->is_ok = strncmp(line, "ok", 2) == 0;
    fprintf(stderr, "%s\n", line);
    return 1;
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    c->fd = volt_sock_open(AF_UNIX, c->type, 0);
    if (c->fd < 0) VOLT_RETURN(c->fd);
    conn_init(&c->c, c->fd, c->type);
    c->file = -1;
    for (c->n_tries = 0; c->n_tries < 100; c->n_tries++) {
        VOLT_AWAIT(c->rc, volt_connect_on(cx, c->fd, &c->at));
        if (c->rc != -EAGAIN) break; // not: the backlog of the server is full
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(20)));
    }
    if (c->rc == 0) c->rc = client_check(c);
    if (c->rc < 0) goto out;
    if (c->file_or_null && strcmp(c->file_or_null, "-") == 0) {
        c->file = STDIN_FILENO;
    } else if (c->file_or_null) {
        VOLT_AWAIT(c->file, volt_file_open(cx, &c->op, c->file_or_null, O_RDONLY, 0));
        if (c->file < 0) {
            c->rc = c->file;
            goto out;
        }
    }
    c->say.fd = c->file; // goes with the line
    VOLT_AWAIT(c->rc, say_run(cx, &c->say, &c->c));
    while (c->rc == 0) {
        // a put lasts as long as its input does
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, c->file >= 0 ? VOLT_NEVER : VOLT_S(REPLY_S),
                                      conn_next(cx, &c->next, &c->c)));
        if (c->rc == 0) c->rc = -EPIPE; // the end, before the answer
        if (c->rc < 0) goto out;
        c->rc = client_print(c);
    }
    if (c->rc < 0 || c->c.n_fds == 0) goto out;
    for (c->offset = 0;; c->offset += c->rc) { // the file that was opened
        VOLT_AWAIT(c->rc,
                   volt_file_pread(cx, &c->op, c->c.fds[0], c->buf, sizeof c->buf, c->offset));
        if (c->rc <= 0) break;
        VOLT_AWAIT(c->rc, volt_write_all(cx, STDOUT_FILENO, c->buf, (size_t)c->rc));
        if (c->rc < 0) break;
    }
out:
    if (c->file > STDIN_FILENO) volt_close(cx, c->file);
    conn_close(cx, &c->c);
    VOLT_END(c->rc);
}

// Returns 0, 1 if the server has answered with an error, or -errno.
static int ask(const volt_addr *at, int type, int argc, char **argv) {
    static client c;
    const int is_put = strcmp(argv[0], "put") == 0;
    if (is_put && argc != 3) return -EINVAL;
    c.at = *at;
    c.type = type;
    if (is_put) {
        c.file_or_null = argv[2];
        argc = 2;
    }
    say(&c.say, -1, "%s%s%s", argv[0], argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
    int rc = volt_run(NULL, client_run, &c);
    return rc < 0 ? rc : !c.is_ok;
}

static int usage(const char *program) {
    fprintf(stderr,
            "usage: %s serve [-p] ADDR DIRECTORY\n"
            "       %s client [-p] ADDR COMMAND [NAME [FILE]]\n"
            "ADDR is a path, or an abstract name: @NAME. -p: SOCK_SEQPACKET, on both sides.\n"
            "`put NAME FILE` sends a file, `put NAME -` standard input. The command `help` lists\n"
            "the others.\n",
            program, program);
    return 2;
}
int main(int argc, char **argv) {
    char text[128];
    volt_addr at;
    const int is_server = argc > 1 && strcmp(argv[1], "serve") == 0;
    const int is_packets = argc > 2 && strcmp(argv[2], "-p") == 0;
    const int type = is_packets ? SOCK_SEQPACKET : SOCK_STREAM;
    const int first = 2 + is_packets, n = argc - first;
    if (argc < 2 || (!is_server && strcmp(argv[1], "client") != 0)) return usage(argv[0]);
    if (is_server ? n != 2 : n < 2 || n > 4) return usage(argv[0]);
    int len = snprintf(text, sizeof text, "unix:%s", argv[first]);
    int rc = len < (int)sizeof text ? volt_addr_parse(&at, text) : -ENAMETOOLONG;
    if (rc == 0)
        rc = is_server ? serve(&at, type, argv[first + 1], argv[first][0] == '@')
                       : ask(&at, type, n - 1, argv + first + 1);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[first], volt_strerror(rc));
    return rc != 0;
}
