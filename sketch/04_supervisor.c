// SPDX-License-Identifier: MIT OR 0BSD
// A supervisor: starts the processes of a configuration file, logs their output, and starts again
// those that end.
//
//     cc -O2 -I. -pthread sketch/04_supervisor.c -o supervisor && ./supervisor services.conf
//
// A line of the file is a service: a name, a time limit in seconds for each run if wanted, and a
// command. '...' and "..." keep blanks in a word. Lines that begin with # are comments.
//
//     web /usr/sbin/httpd -f -p 8080
//     job limit=600 sh -c 'make report; sleep 60'
//
// The log is standard output: "web | text" is a line of the service's stdout, "web ! text" one of
// its stderr, "web: text" a message of the supervisor. While the log takes nothing, the services
// wait with their output, and nothing is lost but messages.
//
// A service that ends is started again, after a pause that doubles with each run that was shorter
// than STABLE_SECONDS. After CRASHES_MAX such runs in a row it stays down until the next SIGHUP.
//   SIGHUP           reads the file again: services that were removed or changed are stopped, and
//                    those that were added, changed or are down are started; the others run on
//   SIGTERM, SIGINT  stops all: each gets SIGTERM, and SIGKILL after GRACE_SECONDS
//   SIGINT after it  SIGKILL at once
// The supervisor ends when no service is left, with 1 if one of them is down for its crashes.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { GRACE_SECONDS = 10, STABLE_SECONDS = 10, CRASHES_MAX = 8, NOTE_SECONDS = 1 };
enum { PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 30000, LINGER_MS = 500, LOG_END_SECONDS = 2 };
enum { LINE_BYTES = 2048, NAME_BYTES = 32, WORDS_MAX = 64, FILE_BYTES = 65536 };
enum { LOG_LINES = 64, LOG_BATCH = 16, LIMIT_MAX_SECONDS = 1000000000 };

// ---- the log

typedef struct {
    uint32_t len;
    char text[LINE_BYTES + NAME_BYTES + 4];
} log_line;

typedef struct {
    volt_chan lines;
    log_line waiting[LOG_LINES], batch[LOG_BATCH];
    struct iovec iov[LOG_BATCH];
} logbook;

__attribute__((format(printf, 3, 4))) static void line_note(log_line *l, const char *name,
                                                            const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t n = (size_t)snprintf(l->text, sizeof l->text, "%s: ", name);
    n += (size_t)vsnprintf(l->text + n, sizeof l->text - n, format, args);
    va_end(args);
    if (n > sizeof l->text - 1) n = sizeof l->text - 1;
    l->text[n] = '\n';
    l->len = (uint32_t)n + 1;
}

static void line_output(log_line *l, const char *name, char mark, volt_span text) {
    size_t n = (size_t)snprintf(l->text, sizeof l->text, "%s %c ", name, mark);
    memcpy(l->text + n, text.data, text.len); // at most LINE_BYTES
    l->text[n + text.len] = '\n';
    l->len = (uint32_t)(n + text.len + 1);
}

// Logs a message of the supervisor. If the log takes none for a while, the message is dropped.
static volt_poll note(volt_cx *cx, volt_timer *limit, logbook *log, const log_line *l) {
    return volt_within(cx, limit, VOLT_S(NOTE_SECONDS),
                       volt_chan_send(cx, &log->lines, l, sizeof *l));
}

typedef struct {
    volt_frame frame;
    logbook *log;
    int n;
    int64_t rc;
} logger;

// Writes as many lines at once as there are. Lines that cannot be written are dropped, so that the
// services go on without their log.
static volt_poll logger_run(volt_cx *cx, void *arg) {
    logger *l = (logger *)arg;
    VOLT_BEGIN(cx, l);
    for (;;) {
        VOLT_AWAIT(l->n, volt_chan_recv_n(cx, &l->log->lines, l->log->batch,
                                          sizeof l->log->batch[0], LOG_BATCH));
        if (l->n <= 0) break;
        for (int i = 0; i < l->n; i++)
            l->log->iov[i] = (struct iovec){ l->log->batch[i].text, l->log->batch[i].len };
        VOLT_AWAIT(l->rc, volt_writev_all(cx, STDOUT_FILENO, l->log->iov, l->n));
        if (l->rc == -ECANCELED) break;
    }
    VOLT_END(0);
}

// ---- the configuration

typedef struct service service;
struct service {
    service *next, *successor; // the latter takes its place when it has ended; NULL: none
    volt_token stop;
    uint64_t id;              // of its task in the group
    int is_stopping, is_down; // is_down: it has no task
    volt_time limit;
    const char *name;
    const char *const *argv;
    const char *words[WORDS_MAX + 1];
    char text[]; // the line, and a copy of it that holds the words
};

// Splits a text in place.
//   gives : the number of words | -EINVAL for a quote without an end | -E2BIG
static int words_split(char *text, const char **words, int most) {
    int n = 0;
    for (;;) {
        char quote = 0, *end;
        text += strspn(text, " \t\r");
        if (!*text) return n;
        if (n == most) return -E2BIG;
        words[n++] = end = text;
        for (; *text && (quote || !strchr(" \t\r", *text)); text++) {
            if (quote ? *text == quote : *text == '\'' || *text == '"') quote = quote ? 0 : *text;
            else *end++ = *text;
        }
        if (quote) return -EINVAL;
        if (*text) text++;
        *end = 0;
    }
}

// Makes a service of a line of `len` bytes: *out, or NULL if the line has none.
//   gives : NULL | the text of an error
static const char *service_parse(const char *line, size_t len, service **out) {
    service *s = (service *)calloc(1, sizeof *s + 2 * (len + 1));
    const char *error = NULL;
    *out = NULL;
    if (!s) return "out of memory";
    memcpy(s->text, line, len);
    memcpy(s->text + len + 1, line, len);
    int n = words_split(s->text + len + 1, s->words, WORDS_MAX);
    s->name = s->words[0];
    s->argv = s->words + 1;
    s->limit = VOLT_NEVER;
    if (n == -EINVAL) error = "a quote has no end";
    else if (n == -E2BIG) error = "too many words";
    else if (n > 0 && s->name[0] != '#') *out = s;
    if (*out && n > 1 && strncmp(s->words[1], "limit=", 6) == 0) {
        char *end;
        long seconds = strtol(s->words[1] + 6, &end, 10);
        if (*end || seconds < 1 || seconds > LIMIT_MAX_SECONDS) error = "the limit is no time";
        else s->limit = VOLT_S(seconds);
        s->argv++;
    }
    if (*out && strlen(s->name) >= NAME_BYTES) error = "the name is too long";
    if (*out && !s->argv[0]) error = "there is no command";
    if (error) *out = NULL;
    if (!*out) free(s);
    return error;
}

static void services_free(service *s) {
    while (s) {
        service *next = s->next;
        free(s->successor);
        free(s);
        s = next;
    }
}

// Returns the link that leads to the service of that name, or to the end of the list.
static service **service_find(service **list, const char *name) {
    while (*list && strcmp((*list)->name, name) != 0) list = &(*list)->next;
    return list;
}

// Reads all lines. After an error *line_number is that of the line in question.
//   gives : NULL with the services in *out | the text of an error
static const char *config_parse(const char *text, int *line_number, service **out) {
    service *list = NULL, *s;
    for (*line_number = 1; *text; ++*line_number) {
        size_t len = strcspn(text, "\n");
        const char *error = service_parse(text, len, &s);
        service **at = s ? service_find(&list, s->name) : NULL;
        if (at && *at) {
            error = "the name occurs twice";
            free(s);
        } else if (at) {
            *at = s;
        }
        if (error) {
            services_free(list);
            return error;
        }
        text += len + (text[len] == '\n');
    }
    *out = list;
    return NULL;
}

// ---- one run of a service

typedef struct {
    volt_frame frame;
    logbook *log;
    const char *name;
    char mark;
    int fd, rc; // the descriptor is closed by this task
    volt_reader in;
    volt_span text;
    log_line line;
    char buf[LINE_BYTES];
} output;

// Logs the lines that come from one pipe.
static volt_poll output_run(volt_cx *cx, void *arg) {
    output *o = (output *)arg;
    VOLT_BEGIN(cx, o);
    volt_reader_init(&o->in, volt_stream_of(o->fd), o->buf, sizeof o->buf);
    o->in.too_long = VOLT_LONG_SKIP;
    for (;;) {
        VOLT_AWAIT(o->rc, volt_read_line(cx, &o->in, &o->text));
        if (o->rc == 1) line_output(&o->line, o->name, o->mark, o->text);
        else if (o->rc == -EMSGSIZE)
            line_note(&o->line, o->name, "a line of more than %d bytes is left out", LINE_BYTES);
        else break;
        VOLT_AWAIT(o->rc, volt_chan_send(cx, &o->log->lines, &o->line, sizeof o->line));
        if (o->rc < 0) break;
    }
    volt_close(cx, o->fd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link link;
    volt_group outputs;
    volt_process process;
    volt_process_options options;
    volt_exit end;
    logbook *log;
    service *of;
    volt_token *kill; // cuts the grace
    log_line line;
    int reason, rc;
} run;

static int output_start(volt_cx *cx, run *r, int fd, char mark) {
    output o = { .log = r->log, .name = r->of->name, .mark = mark, .fd = fd };
    int rc = VOLT_GROUP_SPAWN(cx, &r->outputs, output_run, o);
    if (rc < 0) volt_close(cx, fd);
    return rc;
}
static int outputs_start(volt_cx *cx, run *r) {
    int out = output_start(cx, r, r->process.out, '|');
    int err = output_start(cx, r, r->process.err, '!');
    return out < 0 ? out : err;
}

static void run_note_end(run *r) {
    line_note(&r->line, r->of->name, "%s, with %s %d",
              r->reason == 0            ? "has ended"
              : r->reason == -ETIMEDOUT ? "was stopped at its time limit"
                                        : "was stopped",
              r->end.signal ? "signal" : "status", r->end.signal ? r->end.signal : r->end.code);
}

// Starts the process and waits for its end, which comes by itself, at the time limit, or by a stop.
//   returns: 0 | -errno if the process could not be started
static volt_poll run_once(volt_cx *cx, run *r) {
    VOLT_BEGIN(cx, r);
    r->options = (volt_process_options){ .argv = r->of->argv,
                                         .in = { .kind = VOLT_STDIO_NULL },
                                         .out = { .kind = VOLT_STDIO_PIPE },
                                         .err = { .kind = VOLT_STDIO_PIPE },
                                         .is_group = 1,
                                         .dies_with_us = 1 };
    VOLT_AWAIT(r->rc, volt_process_start(cx, &r->process, &r->options));
    if (r->rc < 0) {
        line_note(&r->line, r->of->name, "cannot be started: %s", volt_strerror(r->rc));
        VOLT_AWAIT(note(cx, &r->limit, r->log, &r->line));
        VOLT_RETURN(r->rc);
    }
    line_note(&r->line, r->of->name, "runs as process %d", (int)r->process.pid);
    r->reason = outputs_start(cx, r); // an error stops the process
    VOLT_AWAIT(note(cx, &r->limit, r->log, &r->line));
    if (r->reason == 0)
        VOLT_AWAIT(r->reason,
                   volt_with_token(cx, &r->link, &r->of->stop,
                                   volt_within(cx, &r->limit, r->of->limit,
                                               volt_process_wait(cx, &r->process, &r->end))));
    if (r->reason < 0) {
        volt_process_signal(&r->process, SIGTERM);
        VOLT_AWAIT(r->rc,
                   volt_with_token(cx, &r->link, r->kill,
                                   volt_within(cx, &r->limit, VOLT_S(GRACE_SECONDS),
                                               volt_process_wait(cx, &r->process, &r->end))));
        if (r->rc < 0) {
            volt_process_signal(&r->process, SIGKILL);
            VOLT_AWAIT(volt_process_end(cx, &r->process, &r->end)); // even in a cancelled task
        }
    }
    // The pipes may stay open in processes that the service has started and left behind.
    VOLT_AWAIT(volt_within(cx, &r->limit, VOLT_MS(LINGER_MS), volt_group_wait(cx, &r->outputs)));
    VOLT_AWAIT(volt_group_close(cx, &r->outputs));
    run_note_end(r);
    VOLT_AWAIT(note(cx, &r->limit, r->log, &r->line));
    VOLT_END(0);
}

// ---- a service

typedef struct {
    volt_frame frame;
    volt_token_link link;
    run once;
    volt_time began, pause;
    int n_crashes, rc;
} keeper;

// Runs a service again and again, until it is stopped or has crashed too often.
static volt_poll keeper_run(volt_cx *cx, void *arg) {
    keeper *k = (keeper *)arg;
    VOLT_BEGIN(cx, k);
    k->pause = VOLT_MS(PAUSE_MIN_MS);
    while (!volt_token_is_cancelled(&k->once.of->stop) && !volt_is_cancelled(cx)) {
        k->began = volt_now();
        VOLT_AWAIT(run_once(cx, &k->once));
        if (volt_now() - k->began >= VOLT_S(STABLE_SECONDS)) {
            k->n_crashes = 0;
            k->pause = VOLT_MS(PAUSE_MIN_MS);
        } else if (++k->n_crashes == CRASHES_MAX) {
            break;
        }
        VOLT_AWAIT(k->rc,
                   volt_with_token(cx, &k->link, &k->once.of->stop, volt_sleep(cx, k->pause)));
        if (k->rc < 0) break;
        k->pause = k->pause < VOLT_MS(PAUSE_MAX_MS / 2) ? 2 * k->pause : VOLT_MS(PAUSE_MAX_MS);
    }
    VOLT_END(0);
}

// ---- the supervisor

typedef struct {
    volt_frame frame;
    volt_file_op file;
    volt_timer limit;
    log_line line;
    int rc, line_number;
    const char *error;
    service *services;
    char text[FILE_BYTES + 1];
} loader;

typedef struct {
    volt_frame frame;
    volt_arm signalled, ended;
    volt_timer limit;
    volt_group keepers;
    volt_handle logger;
    volt_token kill;
    const char *path;
    service *services; // all that have a task or are down
    uint64_t id, n_started;
    int n_running, is_stopping, signals, signal, rc;
    log_line line;
    logbook log;
    loader load;
} supervisor;

// Reads the file. An error is logged.
//   returns: 0 with the result in load.services | -errno
static volt_poll config_load(volt_cx *cx, supervisor *m) {
    loader *const l = &m->load;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_file_load(cx, &l->file, m->path, l->text, FILE_BYTES));
    if (l->rc < 0) {
        line_note(&l->line, "supervisor", "%s: %s", m->path, volt_strerror(l->rc));
    } else {
        l->text[l->rc] = 0;
        l->error = config_parse(l->text, &l->line_number, &l->services);
        l->rc = l->error ? -EINVAL : 0;
        if (l->error)
            line_note(&l->line, "supervisor", "%s, line %d: %s", m->path, l->line_number, l->error);
    }
    if (l->rc < 0) VOLT_AWAIT(note(cx, &l->limit, &m->log, &l->line));
    VOLT_END(l->rc);
}

static void service_start(volt_cx *cx, supervisor *m, service *s) {
    keeper k = { .once = { .log = &m->log, .of = s, .kill = &m->kill } };
    s->next = m->services;
    m->services = s;
    s->id = m->n_started;
    int rc = VOLT_GROUP_SPAWN(cx, &m->keepers, keeper_run, k);
    s->is_down = rc < 0;
    if (rc < 0) {
        fprintf(stderr, "%s: stays down: %s\n", s->name, volt_strerror(rc));
        return;
    }
    m->n_started++;
    m->n_running++;
}

static void service_stop(service *s, service *successor_or_null) {
    free(s->successor);
    s->successor = successor_or_null;
    s->is_stopping = 1;
    volt_token_cancel(&s->stop);
}

// Removes a service that has no task from the list, and starts its successor.
static void service_replace(volt_cx *cx, supervisor *m, service *s) {
    service **at = &m->services, *successor = s->successor;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    free(s);
    if (successor) service_start(cx, m, successor);
}

// The task of a service has ended: because of a stop, or because it has crashed too often.
//   gives : 1 if m->line is to be logged, else 0
static int service_ended(volt_cx *cx, supervisor *m) {
    service *s = m->services;
    while (s->is_down || s->id != m->id) s = s->next;
    m->n_running--;
    s->is_down = 1;
    if (!s->is_stopping) {
        line_note(&m->line, s->name, "stays down: %d runs in a row were shorter than %d s",
                  CRASHES_MAX, STABLE_SECONDS);
        return 1;
    }
    service_replace(cx, m, s);
    return 0;
}

// Brings the services in line with those that were loaded.
static void services_update(volt_cx *cx, supervisor *m) {
    service *fresh = m->load.services, *next;
    m->load.services = NULL;
    for (service *old = m->services; old; old = next) {
        next = old->next;
        service **at = service_find(&fresh, old->name), *successor = *at;
        if (successor) {
            *at = successor->next;
            successor->next = NULL;
        }
        if (successor && !old->is_down && !old->is_stopping &&
            strcmp(successor->text, old->text) == 0) {
            free(successor);
            continue;
        }
        service_stop(old, successor);
        if (old->is_down) service_replace(cx, m, old);
    }
    while (fresh) {
        next = fresh->next;
        service_start(cx, m, fresh);
        fresh = next;
    }
}

static void services_stop(supervisor *m) {
    m->is_stopping = 1;
    for (service *s = m->services; s; s = s->next) service_stop(s, NULL);
}

static volt_poll supervisor_run(volt_cx *cx, void *arg) {
    supervisor *m = (supervisor *)arg;
    VOLT_BEGIN(cx, m);
    m->log.lines = (volt_chan)VOLT_CHAN_INIT(m->log.waiting);
    volt_group_collect(&m->keepers);
    m->rc = VOLT_SPAWN(cx, &m->logger, logger_run, (logger){ .log = &m->log });
    if (m->rc < 0) VOLT_RETURN(m->rc);
    VOLT_AWAIT(m->rc, config_load(cx, m));
    if (m->rc == 0) services_update(cx, m);
    while (m->n_running > 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&m->signalled, m->signal, volt_signals_next(cx, m->signals, NULL)),
            VOLT_ARM(&m->ended, volt_group_next(cx, &m->keepers, &m->id))));
        if (m->ended.fired) {
            if (service_ended(cx, m)) VOLT_AWAIT(note(cx, &m->limit, &m->log, &m->line));
        } else if (!m->signalled.fired || m->signal < 0) {
            break;
        } else if (m->is_stopping) {
            if (m->signal == SIGINT) volt_token_cancel(&m->kill);
        } else if (m->signal == SIGHUP) {
            VOLT_AWAIT(m->rc, config_load(cx, m));
            if (m->rc == 0) services_update(cx, m);
            m->rc = 0; // after an error the services run on
        } else {
            services_stop(m);
        }
    }
    if (m->rc == 0 && m->services) m->rc = -ECHILD; // services that are down
    if (m->rc == 0 && !m->is_stopping) {
        line_note(&m->line, "supervisor", "%s: no service is left", m->path);
        VOLT_AWAIT(note(cx, &m->limit, &m->log, &m->line));
    }
    VOLT_AWAIT(volt_group_close(cx, &m->keepers));
    volt_chan_close(&m->log.lines); // the logger writes what is left, and ends
    VOLT_AWAIT(volt_within(cx, &m->limit, VOLT_S(LOG_END_SECONDS), volt_join(cx, &m->logger)));
    volt_detach(&m->logger); // does nothing after a join
    services_free(m->services);
    volt_close(cx, m->signals);
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    static supervisor m; // too large for the stack
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    m.path = argv[1];
    m.signals = VOLT_SIGNALS(SIGINT, SIGTERM, SIGHUP);
    volt_config config = { .log = { .fn = volt_log_stderr } };
    int rc = m.signals < 0 ? m.signals : volt_run(&config, supervisor_run, &m);
    if (rc < 0 && rc != -ECHILD) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
