// SPDX-License-Identifier: MIT OR 0BSD
// A supervisor: starts the processes of a configuration file, logs their output line by line, and
// starts again those that end.
//
//     cc -O2 -I. -pthread examples/programs/supervisor.c -o supervisor
//     ./supervisor services.conf
//
// A line of the file is a service: a name, options, and a command with its arguments. '...' and
// "..." keep blanks in a word. Lines that begin with # are comments.
//
//     web /usr/sbin/httpd -f -p 8080
//     job limit=600 grace=2 sh -c 'make report; sleep 60'
//     batch runs=10 ./one_part
//
//   limit=S   a run is stopped after S seconds; default: never
//   grace=S   seconds from SIGTERM to SIGKILL when a run is stopped; default 10
//   runs=N    the service is done after N runs with status 0, which follow each other at once
//
// A run that ends is followed by the next one after a pause, which doubles with each run that was
// shorter than STABLE_SECONDS. After CRASHES_MAX such runs in a row the service is down until the
// next SIGHUP. A process that a service has left behind in its process group is ended with it.
//
// The log is standard output: "web | text" is a line of a service, of its stdout or stderr, and
// "web : text" is a message of the supervisor. While the log takes nothing, services wait with
// their output, and messages are dropped.
//   SIGHUP           reads the file again. Services that were removed or changed are stopped; those
//                    that were added or changed, or are down, are started; the others run on
//   SIGTERM, SIGINT  stops all; a second one stops them by SIGKILL at once
// The supervisor ends when no service runs, with 1 if one of them is down.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_SECONDS = 10, STABLE_SECONDS = 10, CRASHES_MAX = 8, NOTE_SECONDS = 1 };
enum { PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 30000, LINGER_MS = 500, NUMBER_MAX = 1000000000 };
enum { LINE_BYTES = 2048, NAME_BYTES = 32, NOTE_BYTES = 256, WORDS_MAX = 64, FILE_BYTES = 65536 };

// ---- the log

static struct {
    volt_mutex lock; // held by the task that writes a line
    volt_writer out;
    char buf[LINE_BYTES + NAME_BYTES + 4];
} book;

typedef struct {
    volt_frame frame;
    int rc;
} log_state;

// Writes a line. If it is cancelled in the middle, the next call writes the rest first.
static volt_poll log_line(volt_cx *cx, log_state *l, const char *name, char mark, const char *text,
                          size_t len) {
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_mutex_lock(cx, &book.lock));
    if (l->rc < 0) VOLT_RETURN(l->rc);
    VOLT_AWAIT(l->rc, volt_flush(cx, &book.out));
    if (l->rc == 0) l->rc = volt_putf(&book.out, "%s %c ", name, mark);
    if (l->rc == 0) l->rc = volt_put(&book.out, text, len);
    if (l->rc == 0) l->rc = volt_put(&book.out, "\n", 1);
    if (l->rc == 0) VOLT_AWAIT(l->rc, volt_flush(cx, &book.out));
    volt_mutex_unlock(&book.lock);
    VOLT_END(l->rc);
}

typedef struct {
    log_state log;
    volt_timer limit;
    char text[NOTE_BYTES];
} message;

// Logs m->text as a message of the supervisor, which must not wait for the log.
static volt_poll note(volt_cx *cx, message *m, const char *name) {
    return volt_within(cx, &m->limit, VOLT_S(NOTE_SECONDS),
                       log_line(cx, &m->log, name, ':', m->text, strlen(m->text)));
}

// ---- the configuration

enum { RUNNING, STOPPING, DOWN, DONE };
typedef struct service service;
struct service {
    // of the supervisor
    service *next, *successor; // successor: takes its place when it has ended; NULL: none
    uint64_t id;               // the number of its task in the group
    int state;
    // constant, except for the token
    volt_token stop;
    long limit, grace, runs; // 0: no limit
    const char *name;
    const char *const *argv;
    const char *words[WORDS_MAX + 1];
    char text[]; // the line, then a copy of it that holds the words
};

// Splits a text in place.
//   returns: the number of words | -EINVAL for a quote without an end | -E2BIG
static int words_split(char *text, const char **words, int most) {
    for (int n = 0;;) {
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

// Takes an option, such as "limit=60".
//   returns: 1 | 0 if the word is no option | -EINVAL
static int option_take(service *s, const char *word) {
    static const char *const names[] = { "limit=", "grace=", "runs=" };
    long *const values[] = { &s->limit, &s->grace, &s->runs };
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(names[i]);
        char *end;
        if (strncmp(word, names[i], n) != 0) continue;
        *values[i] = strtol(word + n, &end, 10);
        return *end || *values[i] < 1 || *values[i] > NUMBER_MAX ? -EINVAL : 1;
    }
    return 0;
}

// Fills in a service whose text is set.
//   returns: NULL | the text of an error, "" for a line without a service
static const char *service_parse(service *s, char *copy) {
    int n = words_split(copy, s->words, WORDS_MAX), rc = 0;
    if (n < 0) return n == -E2BIG ? "too many words" : "a quote has no end";
    if (n == 0 || s->words[0][0] == '#') return "";
    s->name = s->words[0];
    s->grace = GRACE_SECONDS;
    s->argv = s->words + 1;
    while (*s->argv && (rc = option_take(s, *s->argv)) > 0) s->argv++;
    if (rc < 0) return "an option is not a number in its range";
    if (!*s->argv) return "there is no command";
    return strlen(s->name) < NAME_BYTES ? NULL : "the name is too long";
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

// Appends the services of a text to an empty list. After an error *line is its line, and the list
// holds those before it.
//   returns: NULL | the text of the error
static const char *config_parse(const char *text, service **list, int *line) {
    for (*line = 1; *text; ++*line) {
        size_t len = strcspn(text, "\n");
        service *s = (service *)calloc(1, sizeof *s + 2 * (len + 1)), **at = list;
        if (!s) return "out of memory";
        memcpy(s->text, text, len);
        memcpy(s->text + len + 1, text, len);
        const char *error = service_parse(s, s->text + len + 1);
        if (!error && *(at = service_find(list, s->name))) error = "the name occurs twice";
        if (!error) *at = s;
        else free(s);
        if (error && *error) return error;
        text += len + (text[len] == '\n');
    }
    return NULL;
}

// ---- one run of a service

typedef struct {
    volt_frame frame;
    const char *name;
    int fd, rc;
    volt_reader in;
    volt_span text;
    log_state log;
    char buf[LINE_BYTES];
} output;

// Logs the lines that come from the pipe of a process. A line that is too long is left out.
static volt_poll output_run(volt_cx *cx, void *arg) {
    output *o = (output *)arg;
    VOLT_BEGIN(cx, o);
    volt_reader_init(&o->in, volt_stream_of(o->fd), o->buf, sizeof o->buf, VOLT_LONG_SKIP);
    for (;;) {
        VOLT_AWAIT(o->rc, volt_read_line(cx, &o->in, &o->text));
        if (o->rc == -EMSGSIZE) {
            static char too_long[] = "(a line that is too long)";
            o->text = (volt_span){ too_long, sizeof too_long - 1 };
        } else if (o->rc <= 0) {
            break;
        }
        VOLT_AWAIT(o->rc, log_line(cx, &o->log, o->name, '|', o->text.data, o->text.len));
        if (o->rc == -ECANCELED) break; // after another error the service runs on without its log
    }
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_token_link link;
    volt_group outputs;
    volt_process process;
    volt_process_options options;
    volt_exit_status end;
    const service *of;
    volt_token *stop, *kill; // kill: cuts the grace
    message note;
    int reason, rc;
} run;

static void run_describe_end(run *r) {
    char text[40];
    volt_exit_text(&r->end, text, sizeof text);
    snprintf(r->note.text, NOTE_BYTES, "%s: %s",
             r->reason == 0            ? "has ended"
             : r->reason == -ETIMEDOUT ? "was stopped at its time limit"
                                       : "was stopped",
             text);
}

// Starts the process and waits for its end, which comes by itself, at the time limit, or by a stop.
//   returns: 0 if it has ended with status 0 | 1 after another end | -errno if there was no process
static volt_poll run_once(volt_cx *cx, run *r) {
    VOLT_BEGIN(cx, r);
    r->options = (volt_process_options){ .argv = r->of->argv, .in = VOLT_STDIO_NULL,
                                         .out = VOLT_STDIO_PIPE, .err = VOLT_STDIO_STDOUT,
                                         .is_group = 1, .ends_group = 1 };
    VOLT_AWAIT(r->rc, volt_process_start(cx, &r->process, &r->options));
    if (r->rc < 0) {
        snprintf(r->note.text, NOTE_BYTES, "cannot start: %s", volt_strerror(r->rc));
        VOLT_AWAIT(note(cx, &r->note, r->of->name));
        VOLT_RETURN(r->rc);
    }
    snprintf(r->note.text, NOTE_BYTES, "runs as process %d", r->process.pid);
    VOLT_AWAIT(note(cx, &r->note, r->of->name));
    r->reason = VOLT_GROUP_SPAWN(cx, &r->outputs, output_run,
                                 (output){ .name = r->of->name, .fd = r->process.out });
    if (r->reason == 0)
        VOLT_AWAIT(r->reason, volt_with_token(cx, &r->link, r->stop,
            volt_within(cx, &r->limit, r->of->limit ? VOLT_S(r->of->limit) : VOLT_NEVER,
                        volt_process_wait(cx, &r->process, &r->end))));
    if (r->reason < 0)
        VOLT_AWAIT(volt_with_token(cx, &r->link, r->kill,
            volt_process_end(cx, &r->process, VOLT_S(r->of->grace), &r->end)));
    // A process that has left the group may have the pipe open.
    VOLT_AWAIT(volt_within(cx, &r->limit, VOLT_MS(LINGER_MS), volt_group_wait(cx, &r->outputs)));
    VOLT_AWAIT(volt_group_close(cx, &r->outputs));
    volt_process_close(cx, &r->process);
    run_describe_end(r);
    VOLT_AWAIT(note(cx, &r->note, r->of->name));
    VOLT_END(r->end.code != 0);
}

// ---- a service

typedef struct {
    volt_frame frame;
    volt_token_link link;
    run once;
    volt_time began;
    long pause_ms, n_done;
    int n_crashes, rc;
} keeper;

// Runs a service again and again.
//   returns: DONE if it is stopped, or done | DOWN if it has crashed too often
static volt_poll keeper_run(volt_cx *cx, void *arg) {
    keeper *k = (keeper *)arg;
    VOLT_BEGIN(cx, k);
    k->pause_ms = PAUSE_MIN_MS;
    for (;;) {
        k->began = volt_now();
        VOLT_AWAIT(k->rc, run_once(cx, &k->once));
        if (volt_token_is_cancelled(k->once.stop) || volt_is_cancelled(cx)) break;
        if (k->rc == 0 && k->once.of->runs > 0) {
            if (++k->n_done == k->once.of->runs) break;
            continue;
        }
        if (volt_now() - k->began >= VOLT_S(STABLE_SECONDS)) {
            k->n_crashes = 0;
            k->pause_ms = PAUSE_MIN_MS;
        } else if (++k->n_crashes == CRASHES_MAX) {
            snprintf(k->once.note.text, NOTE_BYTES, "is down: %d runs in a row were short",
                     CRASHES_MAX);
            VOLT_AWAIT(note(cx, &k->once.note, k->once.of->name));
            VOLT_RETURN(DOWN);
        }
        VOLT_AWAIT(k->rc, volt_with_token(cx, &k->link, k->once.stop,
                                          volt_sleep(cx, VOLT_MS(k->pause_ms))));
        if (k->rc < 0) break;
        k->pause_ms *= 2;
        if (k->pause_ms > PAUSE_MAX_MS) k->pause_ms = PAUSE_MAX_MS;
    }
    VOLT_END(DONE);
}

// ---- the supervisor

typedef struct {
    volt_frame frame;
    volt_file_op file;
    int rc, line;
    char text[FILE_BYTES + 1];
} loader;

typedef struct {
    volt_frame frame;
    volt_arm signalled, ended;
    volt_group keepers;
    volt_token kill;
    const char *path;
    service *services, *fresh; // fresh: those that were loaded
    uint64_t id, n_started;
    int n_running, is_stopping, signals, signal, rc;
    message note;
    loader load;
} supervisor;

// Reads the file into m->fresh. An error is logged.
//   returns: 0 | -errno
static volt_poll config_load(volt_cx *cx, supervisor *m) {
    loader *const l = &m->load;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_file_load(cx, &l->file, m->path, l->text, FILE_BYTES));
    if (l->rc < 0) {
        snprintf(m->note.text, NOTE_BYTES, "%s: %s", m->path, volt_strerror(l->rc));
    } else {
        l->text[l->rc] = 0;
        const char *error = config_parse(l->text, &m->fresh, &l->line);
        l->rc = error ? -EINVAL : 0;
        if (error) snprintf(m->note.text, NOTE_BYTES, "%s, line %d: %s", m->path, l->line, error);
    }
    if (l->rc < 0) {
        services_free(m->fresh);
        m->fresh = NULL;
        VOLT_AWAIT(note(cx, &m->note, "supervisor"));
    }
    VOLT_END(l->rc);
}

static void service_start(volt_cx *cx, supervisor *m, service *s) {
    keeper k = { .once = { .of = s, .stop = &s->stop, .kill = &m->kill } };
    int rc = VOLT_GROUP_SPAWN(cx, &m->keepers, keeper_run, k);
    if (rc < 0) fprintf(stderr, "%s is down: %s\n", s->name, volt_strerror(rc));
    s->state = rc < 0 ? DOWN : RUNNING;
    s->next = m->services;
    m->services = s;
    if (rc == 0) s->id = m->n_started++, m->n_running++;
}

// Removes a service that has no task, and starts its successor.
static void service_remove(volt_cx *cx, supervisor *m, service *s) {
    service **at = service_find(&m->services, s->name), *successor = s->successor;
    *at = s->next;
    free(s);
    if (successor) service_start(cx, m, successor);
}

static void service_stop(volt_cx *cx, supervisor *m, service *s, service *successor_or_null) {
    free(s->successor);
    s->successor = successor_or_null;
    if (s->state == DOWN || s->state == DONE) {
        service_remove(cx, m, s);
    } else {
        s->state = STOPPING;
        volt_token_cancel(&s->stop);
    }
}

// The task of a service has ended, with `state`.
static void service_ended(volt_cx *cx, supervisor *m, int state) {
    service *s = m->services;
    while (s->state == DOWN || s->state == DONE || s->id != m->id) s = s->next;
    m->n_running--;
    if (s->state == STOPPING) service_remove(cx, m, s);
    else s->state = state;
}

// Brings the services in line with those that were loaded.
static void services_update(volt_cx *cx, supervisor *m) {
    for (service *s = m->services, *next; s; s = next) {
        next = s->next; // a successor is put before it
        service **at = service_find(&m->fresh, s->name), *f = *at;
        if (f) *at = f->next;
        if (f && (s->state == RUNNING || s->state == DONE) && strcmp(f->text, s->text) == 0)
            free(f);
        else
            service_stop(cx, m, s, f);
    }
    while (m->fresh) {
        service *next = m->fresh->next;
        service_start(cx, m, m->fresh);
        m->fresh = next;
    }
}

static void services_stop(volt_cx *cx, supervisor *m) {
    m->is_stopping = 1;
    for (service *s = m->services, *next; s; s = next) {
        next = s->next;
        if (s->state == RUNNING || s->state == STOPPING) service_stop(cx, m, s, NULL);
    }
}

static int services_are_down(const supervisor *m) {
    const service *s = m->services;
    while (s && s->state != DOWN) s = s->next;
    return s != NULL;
}

static volt_poll supervisor_run(volt_cx *cx, void *arg) {
    supervisor *m = (supervisor *)arg;
    VOLT_BEGIN(cx, m);
    volt_writer_init(&book.out, volt_stream_of(STDOUT_FILENO), book.buf, sizeof book.buf);
    volt_group_collect(&m->keepers);
    VOLT_AWAIT(m->rc, config_load(cx, m));
    if (m->rc == 0) services_update(cx, m);
    while (m->n_running > 0) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&m->signalled, m->signal, volt_signals_next(cx, m->signals, NULL)),
            VOLT_ARM(&m->ended, volt_group_next(cx, &m->keepers, &m->id))));
        if (m->ended.fired) {
            service_ended(cx, m, (int)m->ended.value);
        } else if (!m->signalled.fired || m->signal < 0) {
            break;
        } else if (m->signal != SIGHUP) {
            if (m->is_stopping) volt_token_cancel(&m->kill);
            else services_stop(cx, m);
        } else if (!m->is_stopping) {
            VOLT_AWAIT(m->rc, config_load(cx, m));
            if (m->rc == 0) services_update(cx, m);
            m->rc = 0; // after an error the services run on
        }
    }
    VOLT_AWAIT(volt_group_close(cx, &m->keepers));
    if (m->rc == 0) m->rc = services_are_down(m);
    services_free(m->services);
    volt_close(cx, m->signals);
    VOLT_END(m->rc);
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    static supervisor m; // too large for the stack
    volt_config config = { .log = { .fn = volt_log_stderr } };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    m.path = argv[1];
    m.signals = volt_signals_open(signals, 3);
    int rc = m.signals < 0 ? m.signals : volt_run(&config, supervisor_run, &m);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc != 0;
}
