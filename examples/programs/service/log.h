// SPDX-License-Identifier: MIT OR 0BSD
// A structured log on standard error: a line for each event, as key=value. Any thread logs, and
// none waits: lines go to a queue, from which a task writes them. While the reader of the log takes
// nothing and the queue is full, lines are dropped and counted. Include volt.h first.
//
// Under systemd a line begins with its priority, such as <6>, which journald takes off; elsewhere
// with the time.
#ifndef EXAMPLE_SERVICE_LOG_H
#define EXAMPLE_SERVICE_LOG_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOG_LINE = 512, LOG_QUEUE = 64, LOG_FLUSH_MS = 1000 };
// The priorities of syslog that are used.
typedef enum log_level {
    LOG_ERROR = 3,
    LOG_WARN = 4,
    LOG_NOTICE = 5,
    LOG_NEWS = 6,
    LOG_DETAIL = 7
} log_level;

typedef struct log_text {
    char text[LOG_LINE];
} log_text;
static struct {
    int level, is_journal, is_running; // is_running: the queue is in use, until it is closed
    uint64_t n_dropped;
    volt_chan queue;
    log_text slots[LOG_QUEUE];
} log_state = { .level = LOG_NEWS, .queue = VOLT_CHAN_INIT(log_state.slots) };

// The text of a number, for log_event; it lives as long as the expression.
static log_text log_number(long long n) {
    log_text t;
    snprintf(t.text, sizeof t.text, "%lld", n);
    return t;
}
// Appends a value: as it is if it is one word, else in quotes, with escapes.
static size_t log_put_value(char *out, size_t n, size_t cap, const char *value) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_.:/@[]*%+-";
    int is_word = *value && !value[strspn(value, plain)];
    if (!is_word) out[n++] = '"';
    for (; *value && n + 8 < cap; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\') out[n++] = '\\';
        if (c < ' ' || c == 127) n += (size_t)sprintf(out + n, "\\x%02x", c);
        else out[n++] = (char)c;
    }
    if (!is_word) out[n++] = '"';
    return n;
}
static void log_put(log_text *line, log_level level, const char *event, va_list pairs) {
    char *out = line->text;
    struct timespec now;
    struct tm utc;
    size_t n;
    if (log_state.is_journal) {
        n = (size_t)sprintf(out, "<%d>", (int)level);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        n = strftime(out, LOG_LINE, "time=%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
        n += (size_t)sprintf(out + n, ".%03dZ level=%d ", (int)(now.tv_nsec / 1000000), (int)level);
    }
    n += (size_t)snprintf(out + n, 64, "event=%.50s", event);
    for (const char *key; (key = va_arg(pairs, const char *)) != NULL;) {
        const char *value = va_arg(pairs, const char *);
        if (n + strlen(key) + 16 > LOG_LINE) break;
        n += (size_t)sprintf(out + n, " %s=", key);
        n = log_put_value(out, n, LOG_LINE - 2, value);
    }
    out[n++] = '\n';
    out[n] = 0;
}
// Logs an event. Pairs of a key and a value follow, all of them texts, and then NULL.
//   where  : any thread
__attribute__((sentinel)) static void log_event(log_level level, const char *event, ...) {
    log_text line;
    va_list pairs;
    if ((int)level > __atomic_load_n(&log_state.level, __ATOMIC_RELAXED)) return;
    va_start(pairs, event);
    log_put(&line, level, event, pairs);
    va_end(pairs);
    int rc = -EPIPE; // no task writes yet, or none does any more
    if (__atomic_load_n(&log_state.is_running, __ATOMIC_ACQUIRE))
        rc = volt_chan_try_send(&log_state.queue, &line, sizeof line);
    if (rc == -EPIPE && write(STDERR_FILENO, line.text, strlen(line.text)) < 0) return;
    if (rc == -EAGAIN) __atomic_add_fetch(&log_state.n_dropped, 1, __ATOMIC_RELAXED);
}
// For .log of a volt_config.
static void log_volt(void *user, int item, const char *text) {
    (void)user;
    log_event(LOG_WARN, "runtime", "item", log_number(item).text, "text", text, NULL);
}

typedef struct log_writer {
    volt_frame frame;
    volt_shield shield;
    log_text line;
    size_t from; // of the line, what is not written
    int64_t n;
} log_writer;
// Writes the rest of the line. A line of which writing fails is dropped.
static volt_poll log_write(volt_cx *cx, log_writer *w) {
    return volt_write_all(cx, STDERR_FILENO, w->line.text + w->from,
                          strlen(w->line.text + w->from));
}
// Writes the lines, until it is cancelled; then what is left, for a second at most.
static volt_poll log_run(volt_cx *cx, void *arg) {
    log_writer *w = (log_writer *)arg;
    VOLT_BEGIN(cx, w);
    for (;;) {
        VOLT_AWAIT(w->n, volt_chan_recv(cx, &log_state.queue, &w->line, sizeof w->line));
        if (w->n < 0) break;
        w->from = 0;
        VOLT_AWAIT(w->n, log_write(cx, w));
        w->from = w->n == -ECANCELED ? (size_t)volt_progress(&w->frame) : strlen(w->line.text);
    }
    volt_chan_close(&log_state.queue); // a later line is written by its own thread
    volt_shield_begin(cx, &w->shield, VOLT_MS(LOG_FLUSH_MS));
    do {
        VOLT_AWAIT(w->n, log_write(cx, w));
        w->from = 0;
    } while (w->n >= 0 && volt_chan_try_recv(&log_state.queue, &w->line, sizeof w->line) > 0);
    volt_shield_end(cx, &w->shield);
    VOLT_END(0);
}
// Finds out whether standard error is the journal. Call it before the first event.
static void log_open(void) {
    const char *stream = getenv("JOURNAL_STREAM"); // "device:inode"
    unsigned long long device, inode;
    struct stat here;
    log_state.is_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                           fstat(STDERR_FILENO, &here) == 0 && here.st_dev == device &&
                           here.st_ino == inode;
}
// Lines go through the queue from now on, to a log_run that was started.
static void log_begin(void) { __atomic_store_n(&log_state.is_running, 1, __ATOMIC_RELEASE); }
#endif
