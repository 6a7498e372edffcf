// SPDX-License-Identifier: MIT OR 0BSD
// A serial gateway: the bytes of a serial line go to all TCP clients, and those of one client go to
// the line. Teaches: volt_serial_open; volt_bcast and volt_chan between one task that owns a
// descriptor and many that do not; a device that vanishes and comes back.
//
//     cc -O2 -I. -pthread examples/programs/serial.c -o serial
//     ./serial 127.0.0.1:7009 /dev/ttyUSB0 115200
//     nc 127.0.0.1 7009
//
// Without a serial line, on a pair of terminals:
//     socat pty,raw,echo=0,link=/tmp/device pty,raw,echo=0,link=/tmp/line
//     ./serial 127.0.0.1:7009 /tmp/line      and read and write /tmp/device
//
//   - The first client that sends something has the pen: it writes until it leaves. The bytes that
//     other clients send in that time are dropped, so that they do not reach the line later, out of
//     context. A client that ends its stream is disconnected.
//   - The pen's client is read only as fast as the line takes its bytes.
//   - A client that reads more slowly than the line sends has KEPT chunks and SEND_BYTES of its
//     socket as a reserve. A client that exceeds it, or takes nothing for WRITE_SECONDS, is
//     disconnected: no client misses bytes in between.
//   - If the device vanishes, it is opened again every RETRY_MS. The clients stay connected, and
//     their bytes are dropped until it is back.
//   - SIGTERM or SIGINT: the bytes that the pen's client has sent are written, within
//     GRACE_SECONDS, and the settings that the line had before are restored.
// There is no access control beside the address: do not listen on one that others can reach.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "server.h"
#include "examples/03_linger.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

enum { CHUNK = 252, KEPT = 256, SAID = 16, CLIENTS_MAX = 32, SEND_BYTES = 16384 };
enum { RETRY_MS = 500, DRAIN_STEP_MS = 10, DRAIN_STEPS = 100, WRITE_SECONDS = 5 };
enum { GRACE_SECONDS = 5 };

typedef struct {
    unsigned len;
    char data[CHUNK];
} chunk;

// Only the task of the line uses its descriptor: once the device has vanished and was closed, the
// number may belong to another file.
typedef struct {
    server s;
    const char *device;
    volt_serial_options options;
    volt_bcast heard; // from the line; closed when the line is given up
    volt_chan said;   // to the line; closed when the gateway stops
    volt_mutex pen;
    chunk kept[KEPT], queue[SAID];
} gateway;

// ---- the line

typedef struct {
    volt_frame frame;
    chunk c;
    int64_t n;
} transfer;
typedef struct {
    volt_frame frame;
    volt_arm hears, says;
    volt_timer retry;
    volt_job job;
    volt_tty before;
    transfer in, out;
    gateway *g;
    int fd, rc, step;
    unsigned was_open, is_reported;
} line;

static int line_open(void *arg) {
    line *l = (line *)arg;
    return volt_serial_open(l->g->device, &l->g->options, &l->before);
}
//   returns: -ENODEV if the device has vanished | another -errno
static volt_poll line_hear(volt_cx *cx, line *l) {
    transfer *t = &l->in;
    VOLT_BEGIN(cx, t);
    for (;;) {
        VOLT_AWAIT(t->n, volt_read(cx, l->fd, t->c.data, sizeof t->c.data));
        if (t->n <= 0) break;
        t->c.len = (unsigned)t->n;
        volt_bcast_send(&l->g->heard, &t->c, sizeof t->c); // never waits
    }
    VOLT_END(t->n == 0 ? -ENODEV : t->n);
}
//   returns: 0 if the gateway stops and all is written | -errno
static volt_poll line_say(volt_cx *cx, line *l) {
    transfer *t = &l->out;
    VOLT_BEGIN(cx, t);
    for (;;) {
        VOLT_AWAIT(t->n, volt_chan_recv(cx, &l->g->said, &t->c, sizeof t->c));
        if (t->n <= 0) break;
        VOLT_AWAIT(t->n, volt_write_all(cx, l->fd, t->c.data, t->c.len));
        if (t->n < 0) break;
    }
    VOLT_END(t->n);
}
static int line_unsent(int fd) {
    int n = 0;
    return ioctl(fd, TIOCOUTQ, &n) < 0 ? 0 : n;
}
// Bytes for a device that has vanished are not for the one that comes back.
static void line_forget(line *l) {
    while (volt_chan_try_recv(&l->g->said, &l->out.c, sizeof l->out.c) == 1) {}
}
// The first attempt to open the line must succeed, so that a wrong name or speed is reported at
// once.
static volt_poll line_run(volt_cx *cx, void *arg) {
    line *l = (line *)arg;
    VOLT_BEGIN(cx, l);
    for (;;) {
        VOLT_AWAIT(l->rc, volt_blocking(cx, &l->job, line_open, l)); // a driver may take its time
        l->fd = l->rc;
        if (l->fd >= 0) {
            fprintf(stderr, "%s is open\n", l->g->device);
            l->was_open = 1;
            l->is_reported = 0;
            VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&l->hears, l->rc, line_hear(cx, l)),
                                   VOLT_ARM(&l->says, l->rc, line_say(cx, l))));
            if (!l->hears.fired && !l->says.fired) l->rc = -ECANCELED;
            for (l->step = 0; l->rc == 0 && l->step < DRAIN_STEPS; l->step++) {
                if (line_unsent(l->fd) == 0) break;
                VOLT_AWAIT(volt_sleep(cx, VOLT_MS(DRAIN_STEP_MS)));
            }
            tcflush(l->fd, TCOFLUSH); // restoring and closing would wait for the rest
            volt_tty_restore(&l->before);
            volt_close(cx, l->fd);
        }
        if (l->rc == 0 || l->rc == -ECANCELED || !l->was_open) break;
        if (!l->is_reported) fprintf(stderr, "%s: %s\n", l->g->device, volt_strerror(l->rc));
        l->is_reported = 1;
        VOLT_AWAIT(l->rc, volt_within(cx, &l->retry, VOLT_MS(RETRY_MS),
                                      volt_chan_wait_closed(cx, &l->g->said)));
        if (l->rc != -ETIMEDOUT) break; // the gateway stops
        line_forget(l);
    }
    volt_token_cancel(&l->g->s.stop);
    volt_bcast_close(&l->g->heard); // the clients receive the rest, and leave
    VOLT_END(l->rc == -ECANCELED ? 0 : l->rc);
}

// ---- clients

typedef struct {
    volt_frame frame;
    volt_arm hears, says;
    volt_timer late;
    transfer in, out;
    lingering last;
    volt_sub sub;
    gateway *g;
    int fd;
    unsigned has_pen;
} client;

// Sends the bytes of the line.
//   returns: 0 if the line was given up | -EOVERFLOW, -ETIMEDOUT: too slow | another -errno
static volt_poll client_hear(volt_cx *cx, client *c) {
    transfer *t = &c->out;
    VOLT_BEGIN(cx, t);
    for (;;) {
        VOLT_AWAIT(t->n, volt_sub_recv(cx, &c->sub, &t->c, sizeof t->c));
        if (t->n <= 0) break;
        VOLT_AWAIT(t->n, volt_within(cx, &c->late, VOLT_S(WRITE_SECONDS),
                                     volt_write_all(cx, c->fd, t->c.data, t->c.len)));
        if (t->n < 0) break;
    }
    VOLT_END(t->n);
}
static volt_poll client_say(volt_cx *cx, client *c) {
    transfer *t = &c->in;
    VOLT_BEGIN(cx, t);
    for (;;) {
        VOLT_AWAIT(t->n, volt_read(cx, c->fd, t->c.data, sizeof t->c.data));
        if (t->n <= 0) break;
        if (!c->has_pen) c->has_pen = volt_mutex_try_lock(&c->g->pen) == 0;
        if (!c->has_pen) continue;
        t->c.len = (unsigned)t->n;
        VOLT_AWAIT(t->n, volt_chan_send(cx, &c->g->said, &t->c, sizeof t->c));
        if (t->n == -EPIPE) VOLT_AWAIT(volt_sleep_forever(cx)); // a stop: hears the rest
        if (t->n < 0) break;
    }
    VOLT_END(t->n);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    volt_set_keepalive(c->fd, 30, 10, 3);
    volt_set_buffers(c->fd, SEND_BYTES, 0);
    volt_sub_open(&c->sub, &c->g->heard);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->hears, client_hear(cx, c)),
                           VOLT_ARM(&c->says, client_say(cx, c))));
    volt_sub_close(&c->sub);
    if (c->has_pen) volt_mutex_unlock(&c->g->pen);
    if (c->hears.fired && c->hears.value == 0) // the gateway stops
        VOLT_AWAIT(volt_within(cx, &c->late, VOLT_MS(LINGER_MS),
                               linger_run(cx, &c->last, c->fd)));
    // A reset tells a client that was too slow from one whose line has ended.
    (c->hears.fired && c->hears.value < 0 ? volt_close_reset : volt_close)(cx, c->fd);
    VOLT_END(0);
}

// ---- the gateway

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_handle line;
    gateway g;
    int rc, line_rc;
} app;

static int client_came(volt_cx *cx, server *s, int fd) {
    client c = { .g = (gateway *)s, .fd = fd };
    return VOLT_GROUP_SPAWN(cx, &s->clients, client_run, c);
}
static void gateway_stopping(server *s) { volt_chan_close(&((gateway *)s)->said); }

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *a = (app *)arg;
    VOLT_BEGIN(cx, a);
    a->g.heard = (volt_bcast)VOLT_BCAST_INIT(a->g.kept);
    a->g.said = (volt_chan)VOLT_CHAN_INIT(a->g.queue);
    a->rc = VOLT_SPAWN(cx, &a->line, line_run, (line){ .g = &a->g });
    if (a->rc < 0) VOLT_RETURN(a->rc);
    VOLT_AWAIT(a->rc, server_run(cx, &a->g.s));
    VOLT_AWAIT(a->line_rc, volt_within(cx, &a->limit, VOLT_S(GRACE_SECONDS),
                                       volt_join(cx, &a->line)));
    volt_cancel(&a->line); // does nothing once it has ended
    if (volt_handle_is_set(&a->line)) VOLT_AWAIT(a->line_rc, volt_join(cx, &a->line));
    VOLT_END(a->rc < 0 ? a->rc : a->line_rc);
}

int main(int argc, char **argv) {
    static app a; // with the chunks that are kept: large for a stack
    gateway *g = &a.g;
    volt_addr at;
    if (argc < 3 || argc > 4 || volt_addr_parse(&at, argv[1]) < 0)
        return fprintf(stderr, "usage: %s LISTEN_ADDR DEVICE [BAUD]\n", argv[0]), 2;
    g->device = argv[2];
    g->options.is_exclusive = 1;
    g->options.baud = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 9600;
    g->s.n_max = CLIENTS_MAX;
    g->s.grace = VOLT_S(GRACE_SECONDS);
    g->s.client_came = client_came;
    g->s.stopping_or_null = gateway_stopping;
    int rc = server_open(&g->s, &at, NULL);
    if (rc == 0) rc = volt_run(NULL, app_run, &a);
    if (rc < 0) fprintf(stderr, "%s: %s\n", g->device, volt_strerror(rc));
    return rc < 0;
}
