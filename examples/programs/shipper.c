// SPDX-License-Identifier: MIT OR 0BSD
// A log shipper: follows the files of a directory, and sends each new line over TCP to a collector,
// which is the other mode of this program. Teaches: inotify by volt_read, with lost events; files
// that are read, written and replaced without blocking a worker; records of a reader and a writer.
//
//     cc -O2 -I. -pthread examples/programs/shipper.c -o shipper
//     ./shipper collect 127.0.0.1:7007 /tmp/all.log
//     ./shipper ship 127.0.0.1:7007 /var/lib/shipper.state /var/log/app '*.log*'
//
// The collector writes "name<TAB>line" for each line of a file that matches the pattern.
//
// Delivery: a record is a line with the offset behind it. The collector appends the records that
// have come to its file, waits until they are on the disk, and sends back the last offset. One
// batch of one file is on its way at a time: so the collector sets the pace, and the shipper needs
// the memory of one batch. The state file has the offsets that came back; it is replaced once a
// second, and at the stop. After a lost connection the batch is sent again, and after a crash the
// lines of the last second: no line is lost, and only those may arrive twice.
//
// Files: a file is known by its device and inode. One that is renamed is followed on, and the new
// file under its name as well; one that has lost its name is followed until nothing came for
// GONE_SECONDS. The state has a hash of the MARK bytes before the offset. If they have changed, the
// file was truncated, or its inode is in use again, and it is read from its start. A line longer
// than LINE is sent in pieces.
//
// SIGTERM or SIGINT: the shipper completes the batch on its way, within BATCH_SECONDS. The
// collector completes those that it has, within STOP_SECONDS; a second signal cuts them. Nothing is
// encrypted or authenticated: both belong into one trusted network.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "server.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { FILES_MAX = 256, LINE = 16384, CHUNK = 65536, MARK = 64, STATE_LINE = NAME_MAX + 100 };
enum { OFFSET = 8, IN = 131072 }; // OFFSET: bytes of an offset, which is big-endian
enum { RESCAN_SECONDS = 10, GONE_SECONDS = 30, SAVE_SECONDS = 1, STOP_SECONDS = 10 };
enum { CONNECT_SECONDS = 10, BATCH_SECONDS = 15, PAUSE_LEAST_MS = 100, PAUSE_MOST_MS = 10000 };
enum { CONNECTIONS_MAX = 100 };
static const volt_record_format format = { .most = OFFSET + NAME_MAX + 1 + LINE };
static const char title[] = "shipper state 1\n";

static void offset_put(unsigned char *at, int64_t offset) {
    for (int i = OFFSET; i-- > 0; offset >>= 8) at[i] = (unsigned char)offset;
}
static int64_t offset_get(const unsigned char *at) {
    uint64_t offset = 0;
    for (int i = 0; i < OFFSET; i++) offset = offset << 8 | at[i];
    return (int64_t)offset;
}

// ---- the shipper: its files

typedef struct {
    int fd;
    unsigned is_used; // 0: the place is free
    unsigned is_seen; // by the listing that is being read
    uint64_t dev, inode;
    int64_t offset;    // behind the last line that the collector has
    unsigned n_mark;   // bytes before the offset
    uint32_t mark;     // their hash
    volt_time gone_at; // when the name was lost, or the last line came after that; 0: has a name
    char name[NAME_MAX + 1]; // the first one, under which its lines are sent
} followed;

// The frame and the result of one of the functions below.
typedef struct {
    volt_frame frame;
    int64_t rc;
} step;
// The functions of the shipper run one at a time, in one task, so they share their variables.
typedef struct {
    volt_frame frame;
    // set before the start
    const char *dir, *pattern, *state_path;
    volt_addr to;
    int inotify, signals;
    // the table, and that of the last run
    followed files[FILES_MAX], last_run[FILES_MAX];
    followed *f, *same, *was;
    volt_time save_at, list_at, until, again, pause;
    unsigned is_stopping, must_list, has_listed, has_changed, has_acked, is_full;
    step list, add, send, save, watch, session;
    volt_arm connected, came, signalled;
    volt_timer wait, batch;
    volt_file_op op;
    struct stat st;
    volt_dir_entry entry;
    int dir_fd, socket;
    unsigned i, n_idle, is_over;
    size_t entry_at, at, piece;
    int64_t rc, n, end;
    uint64_t n_lines;
    volt_writer out;
    unsigned char offset[OFFSET];
    char path[PATH_MAX], chunk[CHUNK], out_buf[CHUNK];
    char state[sizeof title + FILES_MAX * STATE_LINE];
    uint64_t buf[4096]; // entries of the directory, or events
} shipper;

static uint32_t hash_of(const char *text, size_t len) { // FNV-1a
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}
// The file of the table with this device and inode; NULL: any device.
static followed *file_find(followed *files, const dev_t *dev_or_null, uint64_t inode) {
    for (followed *f = files; f < files + FILES_MAX; f++)
        if (f->is_used && f->inode == inode && (!dev_or_null || f->dev == *dev_or_null)) return f;
    return NULL;
}
// Returns 1 if the n bytes begin with those that were before the offset.
static int has_mark(const followed *f, const char *bytes, int64_t n) {
    return n >= f->n_mark && hash_of(bytes, f->n_mark) == f->mark;
}
// Returns 1 for a name that matches, and can stand in the state file and in a line.
static int is_wanted(const shipper *a, const char *name) {
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return 0;
    return fnmatch(a->pattern, name, FNM_PERIOD) == 0;
}
// Adds a file to the table, unless it is there under another name.
static volt_poll file_add(volt_cx *cx, shipper *a, const char *name) {
    step *s = &a->add;
    VOLT_BEGIN(cx, s);
    for (a->f = a->files; a->f < a->files + FILES_MAX && a->f->is_used; a->f++) {}
    if (a->f == a->files + FILES_MAX) {
        if (!a->is_full) fprintf(stderr, "%s: not followed, %d files are\n", name, FILES_MAX);
        a->is_full = 1;
        VOLT_RETURN(0);
    }
    a->is_full = 0;
    s->rc = snprintf(a->path, sizeof a->path, "%s/%s", a->dir, name);
    if (s->rc >= (int)sizeof a->path) VOLT_RETURN(-ENAMETOOLONG);
    // O_NONBLOCK: the open of a FIFO would wait for its other end
    VOLT_AWAIT(a->f->fd, volt_file_open(cx, &a->op, a->path,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (a->f->fd < 0) VOLT_RETURN(a->f->fd);
    VOLT_AWAIT(s->rc, volt_file_fstat(cx, &a->op, a->f->fd, &a->st));
    if (s->rc == 0 && !S_ISREG(a->st.st_mode)) s->rc = -ENOENT;
    a->same = file_find(a->files, &a->st.st_dev, a->st.st_ino);
    a->was = file_find(a->last_run, &a->st.st_dev, a->st.st_ino);
    if (s->rc == 0 && a->same) a->same->is_seen = 1;
    if (s->rc < 0 || a->same) {
        volt_close(cx, a->f->fd);
        VOLT_RETURN(s->rc);
    }
    if (a->was) {
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &a->op, a->f->fd, a->chunk, MARK,
                                          a->was->offset - a->was->n_mark));
        a->was->is_used = 0; // belongs to this file alone
        if (!has_mark(a->was, a->chunk, s->rc)) a->was = NULL; // the inode is in use again
    }
    int fd = a->f->fd;
    if (a->was) *a->f = *a->was;
    else *a->f = (followed){ .dev = a->st.st_dev, .inode = a->st.st_ino, .mark = hash_of("", 0) };
    if (!a->was) strcpy(a->f->name, name);
    a->f->fd = fd;
    a->f->is_used = a->f->is_seen = a->has_changed = 1;
    fprintf(stderr, "%s: followed from offset %" PRId64 "\n", name, a->f->offset);
    VOLT_END(0);
}
static void file_end(volt_cx *cx, shipper *a, followed *f) {
    fprintf(stderr, "%s: has ended at offset %" PRId64 "\n", f->name, f->offset);
    volt_close(cx, f->fd);
    f->is_used = 0;
    a->has_changed = 1;
}
// Lists the directory: adds new files, and finds those that have lost their name.
static volt_poll list_files(volt_cx *cx, shipper *a) {
    step *s = &a->list;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(a->dir_fd, volt_file_open(cx, &a->op, a->dir, O_RDONLY | O_DIRECTORY, 0));
    if (a->dir_fd < 0) VOLT_RETURN(a->dir_fd);
    a->must_list = 0;
    a->list_at = volt_now() + VOLT_S(RESCAN_SECONDS);
    for (int i = 0; i < FILES_MAX; i++) a->files[i].is_seen = 0;
    for (;;) {
        VOLT_AWAIT(a->n, volt_dir_read(cx, &a->op, a->dir_fd, a->buf, sizeof a->buf));
        if (a->n <= 0) break;
        for (a->entry_at = 0; volt_dir_next(a->buf, (size_t)a->n, &a->entry_at, &a->entry);) {
            if (a->entry.type != DT_REG && a->entry.type != DT_UNKNOWN) continue;
            if (!is_wanted(a, a->entry.name)) continue;
            a->f = file_find(a->files, NULL, a->entry.inode); // saves an open
            if (a->f) a->f->is_seen = 1;
            if (a->f) continue;
            VOLT_AWAIT(s->rc, file_add(cx, a, a->entry.name)); // the name stays in a->buf
            if (s->rc < 0 && s->rc != -ENOENT && s->rc != -ECANCELED)
                fprintf(stderr, "%s: %s\n", a->entry.name, volt_strerror((int)s->rc));
        }
    }
    volt_close(cx, a->dir_fd);
    for (int i = 0; i < FILES_MAX && a->n == 0; i++)
        if (a->files[i].is_seen) a->files[i].gone_at = 0;
        else if (a->files[i].gone_at == 0) a->files[i].gone_at = volt_now();
    a->has_listed |= a->n == 0;
    VOLT_END(a->n);
}
// Most events need no more than their coming: each round compares all offsets with their files.
static void take_events(shipper *a) {
    const char *at = (const char *)a->buf, *end = at + a->n;
    for (const struct inotify_event *e; at < end; at += sizeof *e + e->len) {
        e = (const struct inotify_event *)(const void *)at;
        if (e->mask & IN_Q_OVERFLOW) fprintf(stderr, "events were lost: the directory is listed\n");
        if (e->mask & ~(uint32_t)IN_MODIFY) a->must_list = 1;
    }
}
// Waits for events or a signal, until a->until at most.
//   returns: 0 | an error of the directory | -ECANCELED
static volt_poll watch(volt_cx *cx, shipper *a) {
    step *s = &a->watch;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_before(cx, &a->wait, a->until, VOLT_SELECT(
        VOLT_ARM(&a->came, a->n, volt_read(cx, a->inotify, a->buf, sizeof a->buf)),
        VOLT_ARM(&a->signalled, volt_signals_next(cx, a->signals, NULL)))));
    if (s->rc == -ECANCELED) VOLT_RETURN(s->rc);
    if (a->signalled.fired) a->is_stopping = 1;
    if (a->came.fired) take_events(a);
    s->rc = 0;
    if (a->must_list || volt_now() >= a->list_at) VOLT_AWAIT(s->rc, list_files(cx, a));
    VOLT_END(s->rc);
}

// ---- the shipper: batches

// Finds the next piece of the chunk: a line, LINE bytes of a longer one, or the rest of a file that
// is over.
//   returns: 1 with the length in a->piece, line feed included | 0: the rest is no whole line
static int piece_next(shipper *a) {
    size_t left = (size_t)a->n - a->at, most = left < LINE ? left : (size_t)LINE;
    const char *from = a->chunk + a->at, *end = (const char *)memchr(from, '\n', most);
    a->piece = end ? (size_t)(end - from) + 1 : left >= LINE || a->is_over ? most : 0;
    return a->piece > 0;
}
static int piece_put(shipper *a, followed *f) {
    static char tab = '\t';
    char *from = a->chunk + a->at;
    struct iovec parts[] = { { a->offset, OFFSET },
                             { f->name, strlen(f->name) },
                             { &tab, 1 },
                             { from, a->piece - (from[a->piece - 1] == '\n') } };
    a->end = f->offset + (int64_t)(a->at + a->piece - f->n_mark);
    offset_put(a->offset, a->end);
    return volt_put_record(&a->out, &format, parts, 4);
}
// Sends the lines of one chunk of a file, and waits until the collector has them.
//   returns: 1 | 0: there was no whole line | the errors of the socket
static volt_poll send_batch(volt_cx *cx, shipper *a, followed *f) {
    step *s = &a->send;
    VOLT_BEGIN(cx, s);
    a->is_over = f->gone_at > 0 && volt_now() - f->gone_at > VOLT_S(GONE_SECONDS);
    VOLT_AWAIT(a->n, volt_file_pread(cx, &a->op, f->fd, a->chunk, CHUNK, f->offset - f->n_mark));
    if (a->n < 0) fprintf(stderr, "%s: %s\n", f->name, volt_strerror((int)a->n));
    if (a->n < 0) VOLT_RETURN(a->n == -ECANCELED ? a->n : 0);
    if (!has_mark(f, a->chunk, a->n)) {
        fprintf(stderr, "%s: other content than before, read from its start\n", f->name);
        f->offset = f->n_mark = 0;
        f->mark = hash_of("", 0);
        VOLT_RETURN(1);
    }
    for (a->at = f->n_mark; piece_next(a); a->at += a->piece, a->n_lines++) {
        while ((s->rc = piece_put(a, f)) == -ENOBUFS) {
            VOLT_AWAIT(s->rc, volt_flush(cx, &a->out));
            if (s->rc < 0) VOLT_RETURN(s->rc);
        }
    }
    if (a->at == f->n_mark) {
        if (a->is_over) file_end(cx, a, f);
        VOLT_RETURN(0);
    }
    VOLT_AWAIT(s->rc, volt_flush(cx, &a->out));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    do {
        VOLT_AWAIT(s->rc, volt_read_exact(cx, a->socket, a->offset, OFFSET));
        if (s->rc < 0) VOLT_RETURN(s->rc);
    } while (offset_get(a->offset) != a->end);
    f->offset = a->end;
    f->n_mark = a->at < MARK ? (unsigned)a->at : (unsigned)MARK;
    f->mark = hash_of(a->chunk + a->at - f->n_mark, f->n_mark);
    if (f->gone_at > 0) f->gone_at = volt_now();
    a->has_changed = a->has_acked = 1;
    VOLT_END(1);
}

// ---- the shipper: its state, connections

static volt_poll state_save(volt_cx *cx, shipper *a) {
    step *s = &a->save;
    VOLT_BEGIN(cx, s);
    a->has_changed = 0;
    a->at = (size_t)snprintf(a->state, sizeof a->state, "%s", title);
    for (const followed *f = a->files; f < a->files + FILES_MAX; f++)
        if (f->is_used)
            a->at += (size_t)snprintf(a->state + a->at, sizeof a->state - a->at,
                                      "%" PRIu64 " %" PRIu64 " %" PRId64 " %u %" PRIu32 " %s\n",
                                      f->dev, f->inode, f->offset, f->n_mark, f->mark, f->name);
    VOLT_AWAIT(s->rc, volt_file_replace(cx, &a->op, a->state_path, a->state, a->at, 0600));
    if (s->rc < 0) fprintf(stderr, "%s: %s\n", a->state_path, volt_strerror((int)s->rc));
    if (s->rc < 0) a->has_changed = 1; // is tried again
    a->save_at = volt_now() + VOLT_S(SAVE_SECONDS);
    VOLT_END(0);
}
// Parses the state, with a terminating 0. Without it all lines would be sent again.
//   returns: 0 | -EBADMSG: this program has not written it
static int state_parse(shipper *a) {
    char *rest = a->state + sizeof title - 1;
    if (strncmp(a->state, title, sizeof title - 1) != 0) return -EBADMSG;
    for (followed *f = a->last_run; f < a->last_run + FILES_MAX && *rest; f++) {
        const char *line = strsep(&rest, "\n");
        int at = 0;
        if (!rest || sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %u %" SCNu32 " %n", &f->dev,
                            &f->inode, &f->offset, &f->n_mark, &f->mark, &at) != 5 ||
            f->offset < f->n_mark || f->n_mark > MARK || strlen(line + at) > NAME_MAX)
            return -EBADMSG;
        strcpy(f->name, line + at);
        f->is_used = 1;
    }
    return 0;
}
// Sends a batch of each file in turn, and waits when there is none, until a stop.
//   returns: 0 | the errors of the socket, or of the directory
static volt_poll session_run(volt_cx *cx, shipper *a) {
    step *s = &a->session;
    VOLT_BEGIN(cx, s);
    volt_writer_init(&a->out, volt_stream_of(a->socket), a->out_buf, sizeof a->out_buf);
    for (a->i = a->n_idle = 0; !a->is_stopping; a->i = (a->i + 1) % FILES_MAX) {
        s->rc = 0;
        if (a->files[a->i].is_used)
            VOLT_AWAIT(s->rc, volt_within(cx, &a->batch, VOLT_S(BATCH_SECONDS),
                                          send_batch(cx, a, &a->files[a->i])));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        a->n_idle = s->rc > 0 ? 0 : a->n_idle + 1;
        if (a->n_idle > 0 && a->n_idle < FILES_MAX) continue;
        if (a->has_changed && volt_now() >= a->save_at) VOLT_AWAIT(state_save(cx, a));
        a->until = a->n_idle == 0 ? 0 : a->has_changed ? a->save_at : a->list_at;
        a->n_idle = 0;
        VOLT_AWAIT(s->rc, watch(cx, a));
        if (s->rc < 0) VOLT_RETURN(s->rc);
    }
    VOLT_END(0);
}
// Connects, again and again, and waits longer after each failure.
//   returns: 0 after a stop | an error of the state file, or of the directory
static volt_poll shipper_run(volt_cx *cx, void *arg) {
    shipper *a = (shipper *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->rc, volt_file_load(cx, &a->op, a->state_path, a->state, sizeof a->state - 1));
    if (a->rc >= 0) a->rc = state_parse(a);
    if (a->rc < 0 && a->rc != -ENOENT) VOLT_RETURN(a->rc);
    VOLT_AWAIT(a->rc, list_files(cx, a)); // inotify was opened before: no file is missed
    a->pause = VOLT_MS(PAUSE_LEAST_MS);
    while (a->rc >= 0 && !a->is_stopping) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&a->connected, a->socket, volt_within(cx, &a->wait, VOLT_S(CONNECT_SECONDS),
                                                           volt_connect(cx, &a->to))),
            VOLT_ARM(&a->signalled, volt_signals_next(cx, a->signals, NULL))));
        a->is_stopping |= !a->connected.fired;
        if (a->is_stopping) break;
        a->rc = a->socket;
        if (a->socket >= 0) {
            fprintf(stderr, "connected\n");
            a->has_acked = 0;
            VOLT_AWAIT(a->rc, session_run(cx, a));
            volt_close(cx, a->socket);
            if (a->has_acked) a->pause = VOLT_MS(PAUSE_LEAST_MS);
        }
        if (a->is_stopping) break;
        fprintf(stderr, "%s; next try in %d ms\n", volt_strerror((int)a->rc),
                (int)(a->pause / VOLT_MS(1)));
        a->again = volt_now() + a->pause;
        a->pause = 2 * a->pause < VOLT_MS(PAUSE_MOST_MS) ? 2 * a->pause : VOLT_MS(PAUSE_MOST_MS);
        do { // new files are opened also without a collector
            a->until = a->again;
            VOLT_AWAIT(a->rc, watch(cx, a));
        } while (a->rc == 0 && !a->is_stopping && volt_now() < a->again);
    }
    if (a->has_changed && a->has_listed) VOLT_AWAIT(state_save(cx, a));
    printf("sent %" PRIu64 " lines\n", a->n_lines);
    VOLT_END(a->is_stopping ? 0 : a->rc);
}
static int ship(const volt_addr *to, char **words) {
    const uint32_t events = IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO |
                            IN_MOVE_SELF | IN_ONLYDIR;
    static const int stops[] = { SIGINT, SIGTERM };
    static shipper a; // large for a stack
    a.to = *to;
    a.state_path = words[0];
    a.dir = words[1];
    a.pattern = words[2];
    a.signals = volt_signals_open(stops, 2);
    if (a.signals < 0) return a.signals;
    a.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (a.inotify < 0 || inotify_add_watch(a.inotify, a.dir, events) < 0) return -errno;
    return volt_run(NULL, shipper_run, &a);
}

// ---- the collector

typedef struct {
    server s;
    volt_mutex lock; // of the file
    int file;
    int64_t end; // of the file; the bytes of a failed write behind it are overwritten
} collector;
typedef struct {
    volt_frame frame;
    volt_timer late;
    volt_file_op op;
    int64_t rc;
} storing;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    storing store;
    collector *owner;
    volt_reader in;
    volt_span record; // in `buf`, until the next wait for one
    int fd;
    int64_t rc, stored;
    size_t n_text;
    unsigned char offset[OFFSET];
    char *buf, *text; // text: the lines of the records in `buf`, of which each is shorter
} arrival;

// Appends the text to the file, then sends the offset of its last line.
static volt_poll store_text(volt_cx *cx, arrival *k) {
    storing *s = &k->store;
    collector *const c = k->owner;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_mutex_lock(cx, &c->lock));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    VOLT_AWAIT(s->rc, volt_file_pwrite(cx, &s->op, c->file, k->text, k->n_text, c->end));
    if (s->rc >= 0) VOLT_AWAIT(s->rc, volt_file_fsync(cx, &s->op, c->file, 1));
    if (s->rc >= 0) c->end += (int64_t)k->n_text;
    volt_mutex_unlock(&c->lock);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->late, VOLT_S(BATCH_SECONDS),
                                  volt_write_all(cx, k->fd, k->offset, OFFSET)));
    VOLT_END(s->rc);
}
static int text_add(arrival *k) {
    if (k->record.len < OFFSET) return -EBADMSG;
    size_t n = k->record.len - OFFSET;
    memcpy(k->offset, k->record.data, OFFSET);
    memcpy(k->text + k->n_text, k->record.data + OFFSET, n);
    k->text[k->n_text + n] = '\n';
    k->n_text += n + 1;
    return 0;
}
static volt_poll arrival_run(volt_cx *cx, void *arg) {
    arrival *k = (arrival *)arg;
    VOLT_BEGIN(cx, k);
    volt_set_keepalive(k->fd, 30, 10, 3);
    volt_reader_init(&k->in, volt_stream_of(k->fd), k->buf, IN, VOLT_LONG_STOP);
    do {
        VOLT_AWAIT(k->rc, volt_with_token(cx, &k->stop, &k->owner->s.stop,
                                          volt_read_record(cx, &k->in, &format, &k->record)));
        for (k->n_text = 0; k->rc == 1;) {
            k->rc = text_add(k);
            if (k->rc == 0) k->rc = volt_try_read_record(&k->in, &format, &k->record);
        }
        if (k->n_text > 0) VOLT_AWAIT(k->stored, store_text(cx, k));
    } while (k->rc == -EAGAIN && k->stored >= 0); // that is: no further whole record has come
    if (k->rc == -EAGAIN) k->rc = k->stored;
    if (k->rc < 0 && k->rc != -ECANCELED)
        fprintf(stderr, "a connection has failed: %s\n", volt_strerror((int)k->rc));
    volt_close(cx, k->fd);
    free(k->buf);
    VOLT_END(0);
}

static int shipper_came(volt_cx *cx, server *s, int fd) {
    arrival k = { .owner = (collector *)s };
    k.fd = fd;
    k.buf = (char *)malloc(2 * IN); // apart: a large state would have a mapping of its own
    if (!k.buf) return -ENOMEM;
    k.text = k.buf + IN;
    int rc = VOLT_GROUP_SPAWN(cx, &s->clients, arrival_run, k);
    if (rc < 0) free(k.buf);
    return rc;
}
static int collect(const volt_addr *at, const char *path) {
    static collector c;
    struct stat st;
    c.file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    if (c.file < 0 || fstat(c.file, &st) < 0) return -errno;
    c.end = st.st_size;
    c.s.n_max = CONNECTIONS_MAX;
    c.s.grace = VOLT_S(STOP_SECONDS);
    c.s.client_came = shipper_came;
    int rc = server_open(&c.s, at, NULL);
    return rc < 0 ? rc : volt_run(NULL, server_run, &c.s);
}

int main(int argc, char **argv) {
    const int is_collector = argc == 4 && strcmp(argv[1], "collect") == 0;
    volt_addr at;
    if ((!is_collector && (argc != 6 || strcmp(argv[1], "ship") != 0)) ||
        volt_addr_parse(&at, argv[2]) < 0) {
        fprintf(stderr, "usage: %s ship ADDR STATE DIRECTORY PATTERN\n"
                        "       %s collect ADDR FILE\n", argv[0], argv[0]);
        return 2;
    }
    int rc = is_collector ? collect(&at, argv[3]) : ship(&at, argv + 3);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[1], volt_strerror(rc));
    return rc < 0;
}
