// SPDX-License-Identifier: MIT OR 0BSD
// A chat room over TCP: the others read the lines of each client. Teaches: volt_read_line, with a
// line that is too long in pieces; volt_bcast, of which each subscriber gets every message; a slow
// client is told how many messages it has missed, and does not hold up the others. Two waits at
// once in one task: VOLT_SELECT over two functions, one that reads and one that writes; when one of
// them ends, the other is cancelled.
//
//     cc -I. -pthread examples/13_chat.c -o chat && ./chat 7000
//     nc 127.0.0.1 7000      in two terminals
//
// Listens on loopback, or on an address, with an idle limit in seconds: ./chat 7000 :: 3600
//
// Expected output, after a Ctrl-C:
// port 7000
// stopping
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "03_linger.h"
#include "03_server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 200, KEPT = 64, CLIENTS_MAX = 128 };
enum { IDLE_SECONDS = 600, WRITE_SECONDS = 10 };
typedef struct {
    unsigned from; // this client does not receive its own messages
    char text[LINE + 16];
} message;

typedef struct {
    doorway door;
    volt_bcast said;
    message kept[KEPT];
    volt_time idle;
} chat_room;

typedef struct {
    volt_frame frame;
    volt_timer idle;
    volt_reader in;
    volt_span line;
    int rc;
    char buf[LINE];
} speaking; // reads lines
typedef struct {
    volt_frame frame;
    volt_timer late;
    int64_t n;
    message m;
} hearing; // writes the messages of the others
typedef struct {
    volt_frame frame;
    volt_arm speaks, hears;
    chat_room *room;
    volt_sub sub;
    speaking speaker;
    hearing hearer;
    lingering last;
    int fd;
    unsigned id;
} client;

// Removes control characters, which would command the terminals of the others: those of ASCII, and
// U+0080 to U+009F in UTF-8. Returns the remaining length.
static size_t strip_controls(char *text, size_t len) {
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned char last = kept ? (unsigned char)text[kept - 1] : 0;
        if (c >= 0x80 && c < 0xa0 && last == 0xc2) kept--;
        else if (c >= 0xa0 || (c >= 0x80 && last >= 0x80) || (c >= ' ' && c < 0x7f))
            text[kept++] = (char)c;
    }
    return kept;
}

static void say(client *c, volt_span line) {
    message m = { .from = c->id };
    line.len = strip_controls(line.data, line.len);
    snprintf(m.text, sizeof m.text, "%u: %.*s\n", c->id, VOLT_SPAN(line));
    if (line.len > 0) volt_bcast_send(&c->room->said, &m, sizeof m); // never waits
}
static volt_poll speak(volt_cx *cx, client *c) {
    speaking *s = &c->speaker;
    VOLT_BEGIN(cx, s);
    volt_reader_init(&s->in, volt_stream_of(c->fd), s->buf, sizeof s->buf, VOLT_LONG_CUT);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->idle, c->room->idle,
                                      volt_read_line(cx, &s->in, &s->line)));
        if (s->rc <= 0) break;
        say(c, s->line);
    }
    VOLT_END(s->rc);
}

static volt_poll hear(volt_cx *cx, client *c) {
    hearing *h = &c->hearer;
    VOLT_BEGIN(cx, h);
    snprintf(h->m.text, sizeof h->m.text, "* you are %u\n", c->id);
    for (;;) {
        VOLT_AWAIT(h->n, volt_within(cx, &h->late, VOLT_S(WRITE_SECONDS),
                                     volt_write_all(cx, c->fd, h->m.text, strlen(h->m.text))));
        if (h->n < 0) break; // -ETIMEDOUT: this client does not read
        do VOLT_AWAIT(h->n, volt_sub_recv(cx, &c->sub, &h->m, sizeof h->m));
        while (h->n == 1 && h->m.from == c->id);
        if (h->n == 0 || h->n == -ECANCELED) break; // the room is closed, or the speaker has ended
        if (h->n == -EOVERFLOW) // some were lost: continues with the oldest that is left
            snprintf(h->m.text, LINE, "* you have missed %d\n", (int)volt_sub_lost(&c->sub));
    }
    VOLT_END(h->n);
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    // Subscribes to the messages from now on. The others are not told: a join wakes no other
    // client.
    volt_sub_open(&c->sub, &c->room->said);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->speaks, speak(cx, c)), VOLT_ARM(&c->hears, hear(cx, c))));
    volt_sub_close(&c->sub);
    if (c->hears.fired && c->hears.value == 0) // a stop
        VOLT_AWAIT(volt_within(cx, &c->hearer.late, VOLT_MS(LINGER_MS),
                               linger_run(cx, &c->last, c->fd)));
    door_leave(cx, &c->room->door, c->fd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_arm come, stop;
    volt_timer grace;
    volt_group clients;
    chat_room room;
    int fd;
    unsigned n_clients;
} app;

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->room.said = (volt_bcast)VOLT_BCAST_INIT(m->room.kept);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->come, m->fd, door_accept(cx, &m->room.door)),
                               VOLT_ARM(&m->stop,
                                        volt_signals_next(cx, m->room.door.signals, NULL))));
        if (!m->come.fired || m->fd < 0) break;
        client c = { .room = &m->room, .fd = m->fd, .id = ++m->n_clients };
        if (VOLT_GROUP_SPAWN(cx, &m->clients, client_run, c) < 0)
            door_leave(cx, &m->room.door, m->fd);
    }
    printf("stopping\n");
    volt_close(cx, m->room.door.lfd);
    volt_bcast_close(&m->room.said); // the clients receive the pending messages, and leave
    VOLT_AWAIT(volt_within(cx, &m->grace, VOLT_S(2), volt_group_wait(cx, &m->clients)));
    VOLT_AWAIT(volt_group_close(cx, &m->clients)); // clients that do not read are cancelled
    VOLT_END(m->stop.fired ? 0 : m->fd);
}

int main(int argc, char **argv) {
    app m = { .room = { .idle = VOLT_S(argc > 3 ? atoi(argv[3]) : IDLE_SECONDS) } };
    int rc = door_open(&m.room.door, argc > 2 ? argv[2] : "127.0.0.1",
                       argc > 1 ? (unsigned)atoi(argv[1]) : 7000, CLIENTS_MAX);
    if (rc >= 0) printf("port %d\n", rc), fflush(stdout), rc = volt_run(NULL, app_run, &m);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
