// SPDX-License-Identifier: MIT OR 0BSD
// A log shipper: follows the files of a directory, and sends each new line as a record over TCP to
// a collector, which is the other mode of this program.
//
//     cc -I. -pthread sketch/07_shipper.c -o shipper
//     ./shipper collect -o /tmp/all.log
//     ./shipper ship /var/log/app /var/lib/shipper.state
//
//   ship DIR STATE   -c ADDR     address of the collector, on the loopback interface
//                    -m PATTERN  names of the files; default *.log
//   collect          -l ADDR     address to listen on, of the loopback interface
//                    -o FILE     file that lines are appended to, as "name<TAB>line"
//                    -s          syncs the file before lines are acknowledged
//                    -n N        most connections at a time; default 100
// ADDR is 127.0.0.1:7007 by default.
//
// Delivery is at least once. Each record has the offset behind its line, and the collector sends
// that offset back when the line is in its file. Only acknowledged offsets go to the state file.
// After a lost connection, and after a new start, each file is read again from that offset.
//
// A file is known by its device and inode, not by its name:
//   rename      the file is followed under its old descriptor until nothing has come for
//               ROTATED_SECONDS and all of it is acknowledged; the new file of that name is added
//   truncation  found when a read gives nothing and the file is shorter than what was read: it is
//               read from the start, as a stream of its own, so that late acknowledgements of the
//               old one are not taken for it
//   inode in use again   the state file has a hash of the beginning of each file: if it differs,
//               the file is a new one
// inotify says what to look at. After an overflow of its queue, and every RESCAN_SECONDS, the whole
// directory is looked at. A line longer than LINE_BYTES is sent in pieces. The collector writes
// each as a line; the name in front of all but the last has a `+` behind it.
//
// The socket sets the pace: a file is read only after all that was read before is in the socket.
// Memory does not depend on how far the collector is behind.
//
// `ship` is one task, whose arms share its state without locks:
//   follow    reads inotify, lists the directory, adds files to the table
//   connect   connects, waits longer after each failure; during a connection two arms,
//               deliver   reads files and writes records, and removes finished files
//               confirm   reads the acknowledgements
//   keep      writes the state file, once a second at most
//   obey      waits for SIGTERM or SIGINT: what was read is sent and acknowledged, for
//             GRACE_SECONDS at most or until a second signal
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 256, NAME_BYTES = NAME_MAX, HEAD_BYTES = 256 };
enum { LINE_BYTES = 16384, CHUNK_BYTES = 65536, OUT_BYTES = 65536, ACK_BYTES = 4096 };
enum { RESCAN_SECONDS = 10, ROTATED_SECONDS = 30, SAVE_SECONDS = 1, GRACE_SECONDS = 10 };
enum { CONNECT_SECONDS = 10, WRITE_SECONDS = 30, ACK_SECONDS = 30 };
enum { PAUSE_LEAST_MS = 100, PAUSE_MOST_MS = 10000 };
enum { STATE_LINE = 128 + NAME_BYTES, STATE_BYTES = 64 + FILES_MAX * STATE_LINE };
static const char state_title[] = "shipper state 1\n";

//==================================================================================================
// Records
//==================================================================================================
// A record is its length in 4 bytes, a head of HEAD_LEN bytes, the name and the line. All numbers
// are big-endian. An acknowledgement has no name and no line.

enum { RECORD_LINE = 1, RECORD_ACK = 2 };  // kind
enum { RECORD_GOES_ON = 1 };               // flag: the next record of this stream goes on
enum { HEAD_LEN = 20, RECORD_BYTES = HEAD_LEN + NAME_BYTES + LINE_BYTES };
static const volt_record_format record_format = { .most = RECORD_BYTES };

typedef struct {
    unsigned kind, flags, n_name;
    uint64_t stream; // of one file, until it is truncated or the shipper ends
    int64_t offset;  // behind the line, and its line feed
} record_head;

static void put_number(unsigned char *at, uint64_t number, size_t width) {
    for (; width > 0; number >>= 8) at[--width] = (unsigned char)number;
}
static uint64_t get_number(const unsigned char *at, size_t width) {
    uint64_t number = 0;
    for (size_t i = 0; i < width; i++) number = number << 8 | at[i];
    return number;
}
static void record_head_put(unsigned char *at, const record_head *h) {
    at[0] = (unsigned char)h->kind;
    at[1] = (unsigned char)h->flags;
    put_number(at + 2, h->n_name, 2);
    put_number(at + 4, h->stream, 8);
    put_number(at + 12, (uint64_t)h->offset, 8);
}
// gives : 0 | -EBADMSG
static int record_head_get(volt_span record, unsigned kind, record_head *h) {
    const unsigned char *at = (const unsigned char *)record.data;
    if (record.len < HEAD_LEN) return -EBADMSG;
    h->kind = at[0];
    h->flags = at[1];
    h->n_name = (unsigned)get_number(at + 2, 2);
    h->stream = get_number(at + 4, 8);
    h->offset = (int64_t)get_number(at + 12, 8);
    return h->kind == kind && h->n_name <= record.len - HEAD_LEN && h->offset >= 0 ? 0 : -EBADMSG;
}

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "shipper: %s\n", line);
}

//==================================================================================================
// The shipper: its table of files
//==================================================================================================

typedef struct {
    int fd;
    unsigned is_used; // 0: the place is free
    unsigned n_head;
    uint64_t dev, inode;
    uint64_t stream;
    int64_t sent, acked;
    int64_t known;      // the end of what was read, which may be part of a line
    volt_time changed;  // when `known` grew, the name was lost, or a read failed
    unsigned is_dirty;  // there may be something to read
    unsigned is_seen;   // by the listing that is being read
    unsigned is_gone;   // no name of the directory that matches the pattern refers to it
    char name[NAME_BYTES + 1]; // the first one, under which its lines are sent
    char head[HEAD_BYTES];     // the first n_head bytes of the file
} followed;

// A line of the state file of the last run.
typedef struct {
    uint64_t dev, inode;
    int64_t offset;
    unsigned n_head;
    uint32_t hash;
} remembered;

typedef struct {
    volt_frame frame;
    volt_file_op op;
    struct stat st;
    const char *name;
    remembered *was;
    followed *f;
    int64_t fd, n;
    char path[PATH_MAX];
} adding;
typedef struct {
    volt_frame frame;
    volt_file_op op;
    adding adding;
    volt_dir_entry entry;
    size_t at;
    int64_t fd, n;
    int rc;
    _Alignas(16) char buf[32768];
} listing;
typedef struct {
    volt_frame frame;
    volt_timer period;
    volt_token_link stop;
    listing listing;
    int64_t n;
    unsigned must_list;
    _Alignas(struct inotify_event) char buf[16384];
} following;
typedef struct {
    volt_frame frame;
    volt_timer late;
    int64_t n;
} flushing;
typedef struct {
    volt_frame frame;
    volt_file_op op;
    struct stat st;
    flushing flushing;
    followed *f;
    int64_t n, n_flushed;
    size_t at, n_piece;
    unsigned is_finishing, goes_on;
    unsigned char record[RECORD_BYTES];
    char chunk[CHUNK_BYTES];
} reading;
typedef struct {
    volt_frame frame;
    volt_timer look;
    volt_token_link stop;
    reading reading;
    flushing flushing;
    followed *f;
    unsigned turn;
    int64_t n;
} delivering;
typedef struct {
    volt_frame frame;
    volt_timer look;
    volt_reader in;
    volt_span record; // in `buf`, until the next call
    int64_t n;
    char buf[ACK_BYTES];
} confirming;
typedef struct {
    volt_frame frame;
    volt_arm delivers, confirms;
    volt_timer limit;
    volt_token_link stop, abort;
    delivering delivering;
    confirming confirming;
    volt_time pause;
    int64_t fd;
    int rc;
} connecting;
typedef struct {
    volt_frame frame;
    volt_file_op op;
    size_t n_text;
    int rc;
    char text[STATE_BYTES];
} saving;
typedef struct {
    volt_frame frame;
    volt_interval tick;
    volt_token_link stop;
    int rc;
} keeping;
typedef struct {
    volt_frame frame;
    volt_arm ended, late, again;
    int rc;
} obeying;

typedef struct {
    volt_frame frame;
    volt_arm follows, connects, keeps, obeys;
    volt_shield shield;
    volt_file_op op;
    int64_t rc;
    // set before the start
    const char *dir, *pattern, *state_path;
    volt_addr to;
    int inotify, sigfd;
    // shared by the arms
    volt_token stop;  // no more is read; what was read is sent
    volt_token abort; // the connection ends at once
    volt_notify work; // for `deliver`: a file is dirty, or may be finished
    followed files[FILES_MAX];
    remembered last_run[FILES_MAX];
    unsigned n_last_run;
    unsigned has_listed, has_changed, is_full; // has_changed: the state file is out of date
    uint64_t n_streams, n_lines;
    volt_stream to_collector; // of the connection
    volt_writer out;
    volt_time progress; // of acknowledgements: when the last one came, or the wait for it began
    unsigned has_acked; // in this connection
    following following;
    connecting connecting;
    keeping keeping;
    saving saving;
    obeying obeying;
    char out_buf[OUT_BYTES];
} shipper;

static uint32_t hash_of(const char *text, size_t len) { // FNV-1a
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}
static followed *file_by_inode(shipper *a, uint64_t inode) {
    for (int i = 0; i < FILES_MAX; i++)
        if (a->files[i].is_used && a->files[i].inode == inode) return &a->files[i];
    return NULL;
}
static followed *file_by_name(shipper *a, const char *name) {
    for (int i = 0; i < FILES_MAX; i++)
        if (a->files[i].is_used && !a->files[i].is_gone && strcmp(a->files[i].name, name) == 0)
            return &a->files[i];
    return NULL;
}
static followed *file_place(shipper *a) {
    for (int i = 0; i < FILES_MAX; i++)
        if (!a->files[i].is_used) return &a->files[i];
    return NULL;
}
static void file_mark(shipper *a, followed *f) {
    f->is_dirty = 1;
    volt_notify_one(&a->work);
}
static void files_mark(shipper *a, int only_gone) {
    for (int i = 0; i < FILES_MAX; i++)
        if (a->files[i].is_used && (a->files[i].is_gone || !only_gone)) file_mark(a, &a->files[i]);
}
static int has_unacked(const shipper *a) {
    for (int i = 0; i < FILES_MAX; i++)
        if (a->files[i].is_used && a->files[i].acked < a->files[i].sent) return 1;
    return 0;
}
// A name that can stand in the state file and in a record.
static int is_wanted(const shipper *a, const char *name) {
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return 0;
    return fnmatch(a->pattern, name, FNM_PERIOD) == 0;
}

// ---- follow: inotify and listings

static int is_remembered(const adding *d) {
    return d->n >= d->was->n_head && d->st.st_size >= d->was->offset &&
           hash_of(d->f->head, d->was->n_head) == d->was->hash;
}
// Opens a file and adds it to the table, unless it is there under another name.
//   gives : 0 | -errno of the system, which is not that of this file alone
static volt_poll file_add(volt_cx *cx, shipper *a, const char *name) {
    adding *d = &a->following.listing.adding;
    VOLT_BEGIN(cx, d);
    d->name = name;
    d->f = file_place(a);
    if (!d->f) {
        if (!a->is_full) note("%s: not followed, %d files are", name, FILES_MAX);
        a->is_full = 1;
        VOLT_RETURN(0);
    }
    a->is_full = 0;
    if (snprintf(d->path, sizeof d->path, "%s/%s", a->dir, name) >= (int)sizeof d->path)
        VOLT_RETURN(-ENAMETOOLONG);
    VOLT_AWAIT(d->fd, volt_file_open(cx, &d->op, d->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (d->fd == -ENOENT || d->fd == -ELOOP || d->fd == -EACCES || d->fd == -ENXIO)
        VOLT_RETURN(0); // gone again, or no regular file
    if (d->fd < 0) VOLT_RETURN(d->fd);
    VOLT_AWAIT(d->n, volt_file_fstat(cx, &d->op, (int)d->fd, &d->st));
    if (d->n < 0 || !S_ISREG(d->st.st_mode)) goto out;
    for (int i = 0; i < FILES_MAX; i++) // a listing may show another number than fstat(2)
        if (a->files[i].is_used && a->files[i].inode == d->st.st_ino &&
            a->files[i].dev == d->st.st_dev) {
            a->files[i].is_seen = 1;
            goto out;
        }
    *d->f = (followed){ .dev = d->st.st_dev, .inode = d->st.st_ino, .is_seen = 1 };
    strcpy(d->f->name, name);
    d->was = NULL;
    for (unsigned i = 0; i < a->n_last_run; i++)
        if (a->last_run[i].dev == d->st.st_dev && a->last_run[i].inode == d->st.st_ino)
            d->was = &a->last_run[i];
    if (d->was) {
        VOLT_AWAIT(d->n, volt_file_pread(cx, &d->op, (int)d->fd, d->f->head, HEAD_BYTES, 0));
        if (d->n < 0) goto out;
        d->f->n_head = (unsigned)d->n;
        if (is_remembered(d)) d->f->sent = d->f->acked = d->was->offset;
        d->was->dev = d->was->inode = 0; // belongs to this file alone
    }
    d->f->stream = ++a->n_streams;
    d->f->changed = volt_now();
    d->f->fd = (int)d->fd;
    d->f->is_used = 1; // from here on the table owns the descriptor
    a->has_changed = 1;
    file_mark(a, d->f);
    note("%s: followed from offset %" PRId64, name, d->f->sent);
    VOLT_RETURN(0);
out:
    VOLT_AWAIT(volt_file_close(cx, &d->op, (int)d->fd));
    VOLT_END(d->n < 0 ? d->n : 0);
}
// Lists the directory: adds new files, and finds those that have lost their name.
static volt_poll list_files(volt_cx *cx, shipper *a) {
    listing *l = &a->following.listing;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->fd, volt_file_open(cx, &l->op, a->dir, O_RDONLY | O_DIRECTORY, 0));
    if (l->fd < 0) VOLT_RETURN(l->fd);
    for (int i = 0; i < FILES_MAX; i++) a->files[i].is_seen = 0;
    for (;;) {
        VOLT_AWAIT(l->n, volt_dir_read(cx, &l->op, (int)l->fd, l->buf, sizeof l->buf));
        if (l->n <= 0) break;
        l->at = 0;
        while (volt_dir_next(l->buf, (size_t)l->n, &l->at, &l->entry)) {
            if (l->entry.type != DT_REG && l->entry.type != DT_UNKNOWN) continue;
            if (!is_wanted(a, l->entry.name)) continue;
            if (file_by_inode(a, l->entry.inode)) {
                file_by_inode(a, l->entry.inode)->is_seen = 1;
                continue;
            }
            VOLT_AWAIT(l->rc, file_add(cx, a, l->entry.name)); // the name stays in `buf`
            if (l->rc == -ECANCELED) break; // the next await gives that, too
            if (l->rc < 0) note("%s: %s", l->entry.name, volt_strerror(l->rc));
        }
    }
    VOLT_AWAIT(volt_file_close(cx, &l->op, (int)l->fd));
    if (l->n < 0) VOLT_RETURN(l->n);
    for (int i = 0; i < FILES_MAX; i++) {
        followed *f = &a->files[i];
        if (!f->is_used || f->is_gone == !f->is_seen) continue;
        f->is_gone = !f->is_seen;
        f->changed = volt_now();
        file_mark(a, f);
    }
    a->has_listed = 1;
    VOLT_END(0);
}
// Marks what the events are about.
//   gives : 0 | -ENOENT: the directory itself is gone
static int take_events(shipper *a, following *w) {
    const struct inotify_event *e;
    for (size_t at = 0; at + sizeof *e <= (size_t)w->n; at += sizeof *e + e->len) {
        e = (const struct inotify_event *)(const void *)(w->buf + at);
        if (e->mask & (IN_IGNORED | IN_UNMOUNT | IN_MOVE_SELF)) return -ENOENT;
        followed *f = e->len > 0 ? file_by_name(a, e->name) : NULL;
        if (e->mask & IN_Q_OVERFLOW) {
            note("events were lost: the directory is listed");
            files_mark(a, 0);
            w->must_list = 1;
        } else if (e->mask & (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) {
            if (f || is_wanted(a, e->name)) w->must_list = 1;
        } else if (f) {
            file_mark(a, f);
        } else {
            files_mark(a, 1); // one that was renamed is still written to
        }
    }
    return 0;
}
static volt_poll follow(volt_cx *cx, shipper *a) {
    following *w = &a->following;
    VOLT_BEGIN(cx, w);
    w->must_list = 1; // inotify was opened before: no file is missed
    for (;;) {
        if (w->must_list) {
            w->must_list = 0;
            VOLT_AWAIT(w->n, list_files(cx, a));
            if (w->n < 0) break;
        }
        VOLT_AWAIT(w->n, volt_with_token(cx, &w->stop, &a->stop,
                                         volt_within(cx, &w->period, VOLT_S(RESCAN_SECONDS),
                                                     volt_read(cx, a->inotify, w->buf,
                                                               sizeof w->buf))));
        if (w->n == -ETIMEDOUT) {
            w->must_list = 1;
            files_mark(a, 1); // a file without any name gives no events
            continue;
        }
        if (w->n > 0) w->n = take_events(a, w);
        if (w->n < 0) break;
    }
    if (!volt_token_is_cancelled(&a->stop)) note("%s: %s", a->dir, volt_strerror((int)w->n));
    volt_token_cancel(&a->stop);
    VOLT_END(w->n == -ECANCELED ? 0 : w->n);
}

// ---- deliver: from files to the socket

static volt_poll flush_out(volt_cx *cx, shipper *a, flushing *s) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_within(cx, &s->late, VOLT_S(WRITE_SECONDS), volt_flush(cx, &a->out)));
    VOLT_END(s->n);
}
// Finds the next piece of the chunk at r->at: a line, or LINE_BYTES of a longer one. The rest of a
// file that is being finished counts as a line.
//   gives : 1 with its length in r->n_piece, line feed included | 0: the rest is no whole line
static int piece_next(reading *r) {
    size_t left = (size_t)r->n - r->at, most = left < LINE_BYTES ? left : LINE_BYTES;
    const char *from = r->chunk + r->at;
    const char *end = most > 0 ? (const char *)memchr(from, '\n', most) : NULL;
    r->goes_on = !end && left >= LINE_BYTES;
    r->n_piece = end ? (size_t)(end - from) + 1 : r->goes_on ? LINE_BYTES : left;
    return end || r->goes_on || (r->is_finishing && left > 0);
}
// gives : 0: the piece is in the writer | -ENOBUFS
static int piece_put(shipper *a, reading *r) {
    followed *f = r->f;
    const char *from = r->chunk + r->at;
    size_t n_name = strlen(f->name), n_line = r->n_piece - (from[r->n_piece - 1] == '\n');
    record_head h = { .kind = RECORD_LINE, .flags = r->goes_on ? RECORD_GOES_ON : 0,
                      .n_name = (unsigned)n_name, .stream = f->stream,
                      .offset = f->sent + (int64_t)r->n_piece };
    record_head_put(r->record, &h);
    memcpy(r->record + HEAD_LEN, f->name, n_name);
    memcpy(r->record + HEAD_LEN + n_name, from, n_line);
    int rc = volt_put_record(&a->out, &record_format, r->record, HEAD_LEN + n_name + n_line);
    if (rc < 0) return rc;
    if (f->acked == f->sent && !has_unacked(a)) a->progress = volt_now();
    f->sent = h.offset;
    r->at += r->n_piece;
    a->n_lines += !r->goes_on;
    return 0;
}
static void head_learn(followed *f, const char *chunk, int64_t n) {
    while (f->n_head < HEAD_BYTES && f->n_head >= f->sent && f->n_head - f->sent < n) {
        f->head[f->n_head] = chunk[f->n_head - f->sent];
        f->n_head++;
    }
}
// Reads one chunk of r->f and puts its lines.
//   gives : 0 | the errors of the socket
static volt_poll read_some(volt_cx *cx, shipper *a, followed *next) {
    reading *r = &a->connecting.delivering.reading;
    VOLT_BEGIN(cx, r);
    r->f = next;
    r->is_finishing = !next->is_dirty;
    next->is_dirty = 0; // before the read: an event during the read marks it again
    VOLT_AWAIT(r->n, volt_file_pread(cx, &r->op, r->f->fd, r->chunk, sizeof r->chunk, r->f->sent));
    if (r->n > 0) {
        head_learn(r->f, r->chunk, r->n);
        if (r->f->sent + r->n > r->f->known) {
            r->f->known = r->f->sent + r->n;
            r->f->changed = volt_now();
        }
        for (r->at = 0; piece_next(r);) {
            while (piece_put(a, r) == -ENOBUFS) {
                VOLT_AWAIT(r->n_flushed, flush_out(cx, a, &r->flushing));
                if (r->n_flushed < 0) VOLT_RETURN(r->n_flushed);
            }
        }
        if (r->at > 0) r->f->is_dirty = 1; // there may be more
        VOLT_RETURN(0);
    }
    if (r->n == 0) VOLT_AWAIT(r->n, volt_file_fstat(cx, &r->op, r->f->fd, &r->st));
    if (r->n == -ECANCELED) VOLT_RETURN(r->n);
    if (r->n == 0 && r->st.st_size < r->f->sent) {
        note("%s: truncated, read from its start", r->f->name);
        r->f->sent = r->f->acked = r->f->known = 0;
        r->f->n_head = 0;
        r->f->stream = ++a->n_streams;
        r->f->is_dirty = a->has_changed = 1;
        VOLT_RETURN(0);
    }
    if (r->n < 0) { // it stays in the table: an event or a listing has it tried again
        note("%s: %s", r->f->name, volt_strerror((int)r->n));
        r->f->changed = volt_now();
        VOLT_RETURN(0);
    }
    if (!r->is_finishing) VOLT_RETURN(0);
    note("%s: finished at offset %" PRId64, r->f->name, r->f->sent);
    VOLT_AWAIT(volt_file_close(cx, &r->op, r->f->fd));
    r->f->is_used = 0;
    a->has_changed = 1;
    VOLT_END(0);
}
// The next file that may have something to read, in turn; or one that can be finished: it has lost
// its name, nothing has come for some time, and all of it is acknowledged.
static followed *file_next(shipper *a, unsigned *turn) {
    volt_time now = volt_now();
    for (unsigned i = 0; i < FILES_MAX; i++) {
        followed *f = &a->files[++*turn % FILES_MAX];
        if (f->is_used && f->is_dirty) return f;
    }
    for (unsigned i = 0; i < FILES_MAX; i++) {
        followed *f = &a->files[i];
        if (f->is_used && f->is_gone && f->acked == f->sent &&
            now - f->changed >= VOLT_S(ROTATED_SECONDS))
            return f;
    }
    return NULL;
}
static volt_poll deliver(volt_cx *cx, shipper *a) {
    delivering *d = &a->connecting.delivering;
    VOLT_BEGIN(cx, d);
    while (!volt_token_is_cancelled(&a->stop)) {
        d->f = file_next(a, &d->turn);
        if (d->f) {
            VOLT_AWAIT(d->n, read_some(cx, a, d->f));
            if (d->n < 0) VOLT_RETURN(d->n);
            continue;
        }
        VOLT_AWAIT(d->n, flush_out(cx, a, &d->flushing));
        if (d->n < 0) VOLT_RETURN(d->n);
        VOLT_AWAIT(d->n, volt_with_token(cx, &d->stop, &a->stop,
                                         volt_within(cx, &d->look, VOLT_S(RESCAN_SECONDS),
                                                     volt_notify_wait(cx, &a->work))));
        if (d->n < 0 && d->n != -ETIMEDOUT && !volt_token_is_cancelled(&a->stop))
            VOLT_RETURN(d->n);
    }
    VOLT_AWAIT(d->n, flush_out(cx, a, &d->flushing));
    if (d->n < 0) VOLT_RETURN(d->n);
    VOLT_AWAIT(d->n, volt_stream_end(cx, a->to_collector));
    VOLT_END(d->n);
}

// ---- confirm, connect, keep, obey

// gives : 1 | -EBADMSG
static int take_ack(shipper *a, volt_span record) {
    record_head h;
    int rc = record_head_get(record, RECORD_ACK, &h);
    if (rc < 0) return rc;
    a->progress = volt_now();
    a->has_acked = 1;
    for (int i = 0; i < FILES_MAX; i++) {
        followed *f = &a->files[i];
        if (!f->is_used || f->stream != h.stream) continue;
        if (h.offset > f->acked && h.offset <= f->sent) f->acked = h.offset;
        a->has_changed = 1;
        if (f->is_gone && f->acked == f->sent) volt_notify_one(&a->work);
    }
    return 1;
}
// gives : 0: the collector has ended the stream after this side has | -ETIMEDOUT | -errno
static volt_poll confirm(volt_cx *cx, shipper *a) {
    confirming *c = &a->connecting.confirming;
    VOLT_BEGIN(cx, c);
    volt_reader_init(&c->in, a->to_collector, c->buf, sizeof c->buf);
    for (;;) {
        VOLT_AWAIT(c->n, volt_within(cx, &c->look, VOLT_S(1),
                                     volt_read_record(cx, &c->in, &record_format, &c->record)));
        if (c->n == 1) c->n = take_ack(a, c->record);
        if (c->n == 1) continue;
        if (c->n != -ETIMEDOUT || !volt_timer_fired(&c->look)) break;
        if (has_unacked(a) && volt_now() - a->progress > VOLT_S(ACK_SECONDS)) break;
    }
    VOLT_END(c->n == 0 && !volt_token_is_cancelled(&a->stop) ? -EPIPE : c->n);
}
static void session_begin(shipper *a, int fd) {
    volt_set_keepalive(fd, 30, 10, 3);
    a->to_collector = volt_stream_of(fd);
    volt_writer_init(&a->out, a->to_collector, a->out_buf, sizeof a->out_buf);
    a->has_acked = 0;
    a->progress = volt_now();
    for (int i = 0; i < FILES_MAX; i++) a->files[i].sent = a->files[i].acked;
    files_mark(a, 0);
}
static volt_time with_jitter(volt_time pause) { // half of it to all of it
    return pause / 2 + (volt_time)((uint64_t)random() % (uint64_t)(pause / 2));
}
static volt_poll connect_run(volt_cx *cx, shipper *a) {
    connecting *c = &a->connecting;
    VOLT_BEGIN(cx, c);
    c->pause = VOLT_MS(PAUSE_LEAST_MS);
    while (!volt_token_is_cancelled(&a->stop)) {
        VOLT_AWAIT(c->fd, volt_with_token(cx, &c->stop, &a->stop,
                                          volt_within(cx, &c->limit, VOLT_S(CONNECT_SECONDS),
                                                      volt_connect(cx, &a->to))));
        c->rc = (int)c->fd;
        if (c->fd >= 0) {
            note("connected");
            session_begin(a, (int)c->fd);
            VOLT_AWAIT(c->rc, volt_with_token(cx, &c->abort, &a->abort,
                                              VOLT_TRY_JOIN_ALL(
                                                  VOLT_ARM(&c->delivers, deliver(cx, a)),
                                                  VOLT_ARM(&c->confirms, confirm(cx, a)))));
            volt_close(cx, (int)c->fd);
            if (a->has_acked) c->pause = VOLT_MS(PAUSE_LEAST_MS);
        }
        if (volt_token_is_cancelled(&a->stop) || volt_is_cancelled(cx)) break;
        note("%s; next try in %d ms at most", volt_strerror(c->rc), (int)(c->pause / VOLT_MS(1)));
        VOLT_AWAIT(volt_with_token(cx, &c->stop, &a->stop, volt_sleep(cx, with_jitter(c->pause))));
        c->pause = 2 * c->pause < VOLT_MS(PAUSE_MOST_MS) ? 2 * c->pause : VOLT_MS(PAUSE_MOST_MS);
    }
    volt_token_cancel(&a->stop);
    volt_token_cancel(&a->abort); // ends `obey`
    VOLT_END(c->rc);
}

// Writes the state as text. The offset is that of the last acknowledged line.
static size_t state_format(const shipper *a, char *text, size_t room) {
    size_t len = (size_t)snprintf(text, room, "%s", state_title);
    for (int i = 0; i < FILES_MAX; i++) {
        const followed *f = &a->files[i];
        if (!f->is_used) continue;
        unsigned n_head = f->n_head < f->acked ? f->n_head : (unsigned)f->acked;
        len += (size_t)snprintf(text + len, room - len,
                                "%" PRIu64 " %" PRIu64 " %" PRId64 " %u %08" PRIx32 " %s\n", f->dev,
                                f->inode, f->acked, n_head, hash_of(f->head, n_head), f->name);
    }
    return len;
}
// gives : 0 | -EBADMSG: this program has not written it
static int state_parse(shipper *a, char *text) {
    if (strncmp(text, state_title, sizeof state_title - 1) != 0) return -EBADMSG;
    char *rest = text + sizeof state_title - 1, *line;
    while (a->n_last_run < FILES_MAX && (line = strsep(&rest, "\n")) != NULL && *line) {
        remembered *r = &a->last_run[a->n_last_run];
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %u %" SCNx32, &r->dev, &r->inode,
                   &r->offset, &r->n_head, &r->hash) != 5 ||
            r->offset < 0 || r->n_head > HEAD_BYTES)
            return -EBADMSG;
        a->n_last_run++;
    }
    return 0;
}
static volt_poll state_save(volt_cx *cx, shipper *a) {
    saving *k = &a->saving;
    VOLT_BEGIN(cx, k);
    a->has_changed = 0;
    k->n_text = state_format(a, k->text, sizeof k->text);
    VOLT_AWAIT(k->rc, volt_file_replace(cx, &k->op, a->state_path, k->text, k->n_text, 0600));
    if (k->rc < 0) {
        note("%s: %s", a->state_path, volt_strerror(k->rc));
        a->has_changed = 1; // the next tick tries again
    }
    VOLT_END(k->rc);
}
static volt_poll keep(volt_cx *cx, shipper *a) {
    keeping *k = &a->keeping;
    VOLT_BEGIN(cx, k);
    volt_interval_init(&k->tick, VOLT_S(SAVE_SECONDS));
    k->tick.missed = VOLT_MISSED_DELAY;
    for (;;) {
        VOLT_AWAIT(k->rc,
                   volt_with_token(cx, &k->stop, &a->stop, volt_interval_next(cx, &k->tick)));
        if (k->rc < 0) break;
        // Before the first listing the state of the last run is not in the table yet.
        if (a->has_listed && a->has_changed) VOLT_AWAIT(state_save(cx, a));
    }
    VOLT_END(0);
}

static volt_poll obey(volt_cx *cx, shipper *a) {
    obeying *o = &a->obeying;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&o->ended, volt_token_wait(cx, &a->stop)),
                           VOLT_ARM(&o->again, o->rc, volt_signals_next(cx, a->sigfd, NULL))));
    volt_token_cancel(&a->stop);
    note("stopping");
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&o->ended, volt_token_wait(cx, &a->abort)),
                           VOLT_ARM(&o->late, volt_sleep(cx, VOLT_S(GRACE_SECONDS))),
                           VOLT_ARM(&o->again, o->rc, volt_signals_next(cx, a->sigfd, NULL))));
    volt_token_cancel(&a->abort);
    VOLT_END(0);
}

static volt_poll shipper_run(volt_cx *cx, void *arg) {
    shipper *a = (shipper *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_file_load(cx, &a->op, a->state_path, a->saving.text,
                                     sizeof a->saving.text - 1));
    if (a->rc >= 0) {
        a->saving.text[a->rc] = '\0';
        a->rc = state_parse(a, a->saving.text);
    }
    if (a->rc < 0 && a->rc != -ENOENT) { // without it, all lines would be sent again
        note("%s: %s", a->state_path, volt_strerror((int)a->rc));
        VOLT_RETURN(a->rc);
    }
    VOLT_AWAIT(a->rc, VOLT_JOIN_ALL(VOLT_ARM(&a->follows, follow(cx, a)),
                                    VOLT_ARM(&a->connects, connect_run(cx, a)),
                                    VOLT_ARM(&a->keeps, keep(cx, a)),
                                    VOLT_ARM(&a->obeys, obey(cx, a))));
    volt_shield_begin(cx, &a->shield, VOLT_S(SAVE_SECONDS)); // also if the task was cancelled
    if (a->has_listed && a->has_changed) VOLT_AWAIT(state_save(cx, a));
    volt_shield_end(cx, &a->shield);
    printf("sent %" PRIu64 " lines%s\n", a->n_lines,
           has_unacked(a) ? "; the last ones were not acknowledged and will be sent again" : "");
    VOLT_END(a->follows.value < 0 ? a->follows.value : a->rc);
}

//==================================================================================================
// The collector
//==================================================================================================

enum { TEXT_BYTES = 131072, STREAMS_MAX = 128, REPLY_BYTES = STREAMS_MAX * (4 + HEAD_LEN) };

typedef struct {
    volt_token stop;
    volt_sem places;
    volt_mutex lock; // held while lines are appended: those of one batch stay together
    int file;
    unsigned is_synced;
} collector;

typedef struct {
    volt_frame frame;
    volt_file_op op;
    volt_timer late;
    int64_t n;
} storing;
// The buffers of a connection are allocated apart: a large task would have a mapping of its own.
typedef struct {
    size_t n_text;
    unsigned n_acks;
    record_head acks[STREAMS_MAX]; // the last line of each stream in `text`
    char in[4 + RECORD_BYTES + 16384], out[REPLY_BYTES], text[TEXT_BYTES];
} batch;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    storing storing;
    collector *srv;
    batch *b;
    volt_reader in;
    volt_writer out;
    volt_span record; // in b->in, until the next call on the reader
    int64_t n;
    int fd;
    char peer[64];
} arrival;

static int batch_has_room(const batch *b) {
    return b->n_acks < STREAMS_MAX && b->n_text + RECORD_BYTES <= sizeof b->text;
}
// Adds the line of a record to a batch with room.
//   gives : 0 | -EBADMSG
static int batch_add(batch *b, volt_span record) {
    record_head h;
    unsigned i = 0;
    int rc = record_head_get(record, RECORD_LINE, &h);
    if (rc < 0) return rc;
    char *at = mempcpy(b->text + b->n_text, record.data + HEAD_LEN, h.n_name);
    if (h.flags & RECORD_GOES_ON) *at++ = '+';
    *at++ = '\t';
    at = mempcpy(at, record.data + HEAD_LEN + h.n_name, record.len - HEAD_LEN - h.n_name);
    *at++ = '\n';
    b->n_text = (size_t)(at - b->text);
    while (i < b->n_acks && b->acks[i].stream != h.stream) i++;
    if (i == b->n_acks) b->n_acks++;
    b->acks[i] = (record_head){ .kind = RECORD_ACK, .stream = h.stream, .offset = h.offset };
    return 0;
}
// gives : 0 | -ENOBUFS, which the size of the buffer rules out
static int batch_confirm(batch *b, volt_writer *out) {
    unsigned char head[HEAD_LEN];
    int rc = 0;
    for (unsigned i = 0; i < b->n_acks && rc == 0; i++) {
        record_head_put(head, &b->acks[i]);
        rc = volt_put_record(out, &record_format, head, sizeof head);
    }
    b->n_text = b->n_acks = 0;
    return rc;
}
// Appends the batch to the file, then acknowledges it.
static volt_poll store(volt_cx *cx, arrival *k) {
    storing *s = &k->storing;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_mutex_lock(cx, &k->srv->lock));
    if (s->n < 0) VOLT_RETURN(s->n);
    VOLT_AWAIT(s->n, volt_file_append(cx, &s->op, k->srv->file, k->b->text, k->b->n_text));
    if (s->n >= 0 && k->srv->is_synced)
        VOLT_AWAIT(s->n, volt_file_sync(cx, &s->op, k->srv->file, 1));
    volt_mutex_unlock(&k->srv->lock);
    if (s->n >= 0) s->n = batch_confirm(k->b, &k->out);
    if (s->n < 0) VOLT_RETURN(s->n);
    VOLT_AWAIT(s->n, volt_within(cx, &s->late, VOLT_S(WRITE_SECONDS), volt_flush(cx, &k->out)));
    VOLT_END(s->n);
}
// Returns 1 if the next record can be read without a wait.
static int record_is_here(const volt_reader *in) {
    volt_span s = volt_buffered(in);
    return s.len >= 4 && s.len - 4 >= get_number((const unsigned char *)s.data, 4);
}
static volt_poll arrival_run(volt_cx *cx, void *arg) {
    arrival *k = (arrival *)arg;
    VOLT_BEGIN(cx, k);
    volt_reader_init(&k->in, volt_stream_of(k->fd), k->b->in, sizeof k->b->in);
    volt_writer_init(&k->out, volt_stream_of(k->fd), k->b->out, sizeof k->b->out);
    for (;;) {
        if (k->b->n_text > 0 && !record_is_here(&k->in)) {
            VOLT_AWAIT(k->n, store(cx, k));
            if (k->n < 0) break;
        }
        VOLT_AWAIT(k->n, volt_with_token(cx, &k->stop, &k->srv->stop,
                                         volt_read_record(cx, &k->in, &record_format,
                                                          &k->record)));
        if (k->n != 1) break;
        if (!batch_has_room(k->b)) { // the record stays where it is: `store` does not read
            VOLT_AWAIT(k->n, store(cx, k));
            if (k->n < 0) break;
        }
        k->n = batch_add(k->b, k->record);
        if (k->n < 0) break;
    }
    if (k->n < 0 && k->n != -ECANCELED) note("%s: %s", k->peer, volt_strerror((int)k->n));
    if (k->n == -ECANCELED && k->b->n_text > 0) VOLT_AWAIT(store(cx, k)); // a stop
    volt_close(cx, k->fd);
    free(k->b);
    volt_sem_release(&k->srv->places, 1);
    VOLT_END(0);
}

enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all
typedef struct {
    volt_frame frame;
    int64_t rc;
    int n_failed;
} accepting;
typedef struct {
    volt_frame frame;
    volt_arm come, signal, drained;
    volt_timer grace;
    volt_group arrivals;
    volt_file_op op;
    accepting accepting;
    volt_addr peer;
    const char *path;
    int lfd, sigfd, fd, rc;
    collector srv;
} collecting;

// The next connection, which has a place. Further ones wait in the queue of the kernel.
//   gives : a descriptor | -ECANCELED | the error of the last of ACCEPT_RETRIES. With an error no
//           place is taken
static volt_poll accept_next(volt_cx *cx, collecting *m) {
    accepting *a = &m->accepting;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_sem_acquire(cx, &m->srv.places, 1));
    if (a->rc < 0) VOLT_RETURN(a->rc);
    for (a->n_failed = 0;; a->n_failed++) {
        VOLT_AWAIT(a->rc, volt_accept_from(cx, m->lfd, &m->peer));
        if (a->rc >= 0) VOLT_RETURN(a->rc);
        if (a->rc == -ECANCELED || a->n_failed == ACCEPT_RETRIES) break;
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ACCEPT_PAUSE_MS << a->n_failed)));
    }
    volt_sem_release(&m->srv.places, 1);
    VOLT_END(a->rc);
}
static void admit(volt_cx *cx, collecting *m) {
    arrival k = { .srv = &m->srv, .b = calloc(1, sizeof *k.b), .fd = m->fd };
    int rc = -ENOMEM;
    volt_set_keepalive(m->fd, 30, 10, 3);
    if (volt_addr_format(&m->peer, k.peer, sizeof k.peer) < 0) strcpy(k.peer, "a connection");
    if (k.b) rc = VOLT_GROUP_SPAWN(cx, &m->arrivals, arrival_run, k);
    if (rc == 0) return;
    note("%s was refused: %s", k.peer, volt_strerror(rc));
    free(k.b);
    volt_close(cx, m->fd);
    volt_sem_release(&m->srv.places, 1);
}
static volt_poll collecting_run(volt_cx *cx, void *arg) {
    collecting *m = (collecting *)arg;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->srv.file, volt_file_open(cx, &m->op, m->path,
                                           O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0640));
    if (m->srv.file < 0) {
        note("%s: %s", m->path, volt_strerror(m->srv.file));
        VOLT_RETURN(m->srv.file);
    }
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->come, m->fd, accept_next(cx, m)),
                               VOLT_ARM(&m->signal, m->rc,
                                        volt_signals_next(cx, m->sigfd, NULL))));
        if (!m->come.fired || m->fd < 0) break;
        admit(cx, m);
    }
    volt_close(cx, m->lfd);
    note("stopping");
    volt_token_cancel(&m->srv.stop);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->drained,
                                    volt_within(cx, &m->grace, VOLT_S(GRACE_SECONDS),
                                                volt_group_wait(cx, &m->arrivals))),
                           VOLT_ARM(&m->signal, volt_signals_next(cx, m->sigfd, NULL))));
    VOLT_AWAIT(volt_group_close(cx, &m->arrivals)); // cancels the connections that are left
    VOLT_AWAIT(m->rc, volt_file_sync(cx, &m->op, m->srv.file, 0));
    VOLT_AWAIT(volt_file_close(cx, &m->op, m->srv.file));
    VOLT_END(m->come.fired ? m->fd : m->rc == -ECANCELED ? 0 : m->rc);
}

//==================================================================================================
// The command line
//==================================================================================================

static void usage(void) {
    fprintf(stderr, "usage: shipper ship [-c ADDR] [-m PATTERN] DIR STATE\n"
                    "       shipper collect [-l ADDR] [-s] [-n N] -o FILE\n"
                    "ADDR is of the loopback interface, as 127.0.0.1:7007\n");
    exit(2);
}
static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least || n > most) usage();
    return n;
}
static int is_loopback(const volt_addr *a) {
    socklen_t len;
    const struct sockaddr *sa = volt_addr_sockaddr(a, &len);
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (sa->sa_family != AF_INET6) return 0;
    memcpy(&v6, sa, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}
// gives : 0 | -EINVAL | -EADDRNOTAVAIL
static int parse_loopback(volt_addr *a, const char *text) {
    int rc = volt_addr_parse(a, text);
    return rc < 0 ? rc : is_loopback(a) ? 0 : -EADDRNOTAVAIL;
}

static int ship(shipper *a, const char *where) {
    const uint32_t events = IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO |
                            IN_MOVE_SELF | IN_ONLYDIR;
    int rc = parse_loopback(&a->to, where);
    if (rc >= 0) rc = a->sigfd = VOLT_SIGNALS(SIGTERM, SIGINT);
    if (rc < 0) return rc;
    a->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (a->inotify < 0 || inotify_add_watch(a->inotify, a->dir, events) < 0) return -errno;
    srandom((unsigned)getpid() ^ (unsigned)volt_now());
    return volt_run(NULL, shipper_run, a);
}
static int collect(collecting *m, const char *where, long n_places) {
    char text[64];
    volt_addr at;
    int rc = parse_loopback(&at, where);
    volt_sem_release(&m->srv.places, (uint32_t)n_places);
    if (rc >= 0) rc = m->sigfd = VOLT_SIGNALS(SIGTERM, SIGINT);
    if (rc >= 0) rc = m->lfd = volt_listen_addr(&at, NULL);
    if (rc >= 0) rc = volt_local_addr(m->lfd, &at);
    if (rc >= 0) rc = volt_addr_format(&at, text, sizeof text);
    if (rc < 0) return rc;
    printf("listening on %s\n", text);
    fflush(stdout);
    return volt_run(NULL, collecting_run, m);
}

int main(int argc, char **argv) {
    static shipper a; // large for a stack
    collecting m = { .path = NULL };
    const char *where = "127.0.0.1:7007";
    long n_places = 100;
    int option, rc, is_shipper = argc > 1 && strcmp(argv[1], "ship") == 0;
    if (!is_shipper && (argc < 2 || strcmp(argv[1], "collect") != 0)) usage();
    a.pattern = "*.log";
    optind = 2;
    while ((option = getopt(argc, argv, is_shipper ? "c:m:" : "l:o:sn:")) != -1) {
        if (option == 'c' || option == 'l') where = optarg;
        else if (option == 'm') a.pattern = optarg;
        else if (option == 'o') m.path = optarg;
        else if (option == 's') m.srv.is_synced = 1;
        else if (option == 'n') n_places = number(optarg, 1, 100000);
        else usage();
    }
    if (argc - optind != (is_shipper ? 2 : 0) || (!is_shipper && !m.path)) usage();
    if (is_shipper) {
        a.dir = argv[optind];
        a.state_path = argv[optind + 1];
    }
    rc = is_shipper ? ship(&a, where) : collect(&m, where, n_places);
    if (rc < 0) fprintf(stderr, "shipper: %s\n", volt_strerror(rc));
    return rc < 0;
}
