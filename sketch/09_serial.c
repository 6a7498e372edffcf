// SPDX-License-Identifier: MIT OR 0BSD
// A serial gateway: what comes from a serial line goes to all TCP clients; what one of the clients
// sends goes to the line. The bytes are passed on as they are, in both directions.
//
//     cc -I. -pthread sketch/09_serial.c -o serial
//     ./serial -b 115200 /dev/ttyUSB0
//     nc 127.0.0.1 7009
// On a pair of terminals, without a serial line:
//     socat pty,raw,echo=0,link=/tmp/device pty,raw,echo=0,link=/tmp/line
//     ./serial /tmp/line                 then read and write /tmp/device
//
//   -l ADDR    address to listen on, of the loopback interface; default 127.0.0.1:7009
//   -b BAUD    speed; default 9600
//   -f FORMAT  data bits 5 to 8, parity N, E or O, stop bits 1 or 2; default 8N1
//   -r, -x     flow control by RTS and CTS, or by XON and XOFF
//   -s         shared: other processes may open the line as well; without it they get EBUSY
//   -n N       most clients; default 32. A further one is disconnected at once
//
// The client that has been connected longest writes. When it leaves, the next one does. What the
// others send is read and dropped, so it does not reach the line later, out of context. A client
// that ends its sending side is disconnected. A client that does not read as fast as the line sends
// loses its connection, never single bytes: KEPT chunks and the buffers of its socket are its
// reserve.
//
// If the device vanishes, the gateway opens it again every RETRY_MS until it is back; clients stay
// connected, and what they send until then is dropped. At SIGTERM or SIGINT no more is read from
// clients, what they have sent is written, and the settings that the line had when it was opened
// are restored.
//
// Only the task of the line uses its descriptor: the number may belong to another file once the
// device has vanished and was closed. Clients and line are connected by two channels: `heard`, a
// broadcast, and `said`, bounded, so that the writing client is read only as fast as the line
// takes its bytes.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "sketch/volt_next.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { CHUNK_BYTES = 252, KEPT = 1024, SAID = 16, OUT_BYTES = 4096 };
enum { RETRY_MS = 500, DRAIN_STEP_MS = 10, DRAIN_STEPS = 100 };
enum { WRITE_SECONDS = 10, GRACE_SECONDS = 5 };
enum { ACCEPT_RETRIES = 8, ACCEPT_PAUSE_MS = 5 }; // pauses double: 1.3 s in all

typedef struct {
    unsigned len;
    char data[CHUNK_BYTES];
} chunk;

typedef struct {
    // set before the start
    const char *device;
    volt_serial_options options;
    // for all tasks
    volt_token stop;  // no more is read from clients
    volt_bcast heard; // from the line; closed when the line is given up
    volt_chan said;   // to the line; closed when the last sender has left, in a stop
    volt_mutex pen;   // held by the client that writes; waiters get it in order of arrival
    volt_sem places;
    chunk kept[KEPT], queue[SAID];
} gateway;

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "serial: %s\n", line);
}

// ---- the line

typedef struct {
    volt_frame frame;
    chunk got;
    int64_t n;
} hearing;
typedef struct {
    volt_frame frame;
    chunk next;
    int64_t n;
} saying;
typedef struct {
    volt_frame frame;
    volt_arm hears, says;
    volt_token_link stop;
    volt_job job;
    hearing hearing;
    saying saying;
    gateway *g;
    struct termios before; // the settings of the line when it was opened
    int fd, rc, error;     // error: that of the last try to open it
    unsigned was_open, n_steps;
} line;

// Opens the line on a pool thread: a driver may take its time. The settings are read by another
// descriptor, before volt_serial_open changes them. It is closed last: the modem lines drop when no
// descriptor is left.
static int line_open(void *arg) {
    line *l = (line *)arg;
    int fd = open(l->g->device, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -errno;
    int rc = tcgetattr(fd, &l->before) < 0 ? -errno
                                           : volt_serial_open(l->g->device, &l->g->options);
    close(fd);
    return rc;
}
// Passes on what comes, until the device vanishes.
//   gives : -ENODEV: hung up | -EIO, or another -errno
static volt_poll line_hear(volt_cx *cx, line *l) {
    hearing *h = &l->hearing;
    VOLT_BEGIN(cx, h);
    for (;;) {
        VOLT_AWAIT(h->n, volt_read(cx, l->fd, h->got.data, sizeof h->got.data));
        if (h->n <= 0) break;
        h->got.len = (unsigned)h->n;
        volt_bcast_send(&l->g->heard, &h->got, sizeof h->got); // never waits
    }
    VOLT_END(h->n == 0 ? -ENODEV : h->n);
}
// Writes what clients have said.
//   gives : 0: `said` is closed, and all of it is written | -errno
static volt_poll line_say(volt_cx *cx, line *l) {
    saying *s = &l->saying;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->n, volt_chan_recv(cx, &l->g->said, &s->next, sizeof s->next));
        if (s->n <= 0) break;
        VOLT_AWAIT(s->n, volt_write_all(cx, l->fd, s->next.data, s->next.len));
        if (s->n < 0) break;
    }
    VOLT_END(s->n);
}
// Bytes that were sent to a device that has vanished are not for the one that comes back.
static void line_forget(line *l) {
    int n = 0;
    while (volt_chan_try_recv(&l->g->said, &l->saying.next, sizeof l->saying.next) == 1) n++;
    if (n > 0) note("%d chunks for the line were dropped", n);
}
static int line_unsent(int fd) {
    int n = 0;
    return ioctl(fd, TIOCOUTQ, &n) < 0 ? 0 : n;
}
// Restores the settings and closes. What the driver has not sent is dropped: close(2) would wait
// for it, and hold up the worker.
static void line_close(volt_cx *cx, line *l) {
    tcflush(l->fd, TCOFLUSH);
    if (tcsetattr(l->fd, TCSANOW, &l->before) < 0 && l->rc == 0)
        note("%s: settings not restored: %s", l->g->device, strerror(errno));
    volt_close(cx, l->fd);
}
// The errors that another try may not give. The first try must succeed, so that a wrong name or
// option is reported at once; only a device that does not exist yet is waited for.
static int line_is_lost(const line *l) {
    return l->fd != -ECANCELED && (l->fd == -ENOENT || l->was_open);
}
static volt_poll line_run(volt_cx *cx, void *arg) {
    line *l = (line *)arg;
    VOLT_BEGIN(cx, l);
    l->rc = 0;
    for (;;) {
        VOLT_AWAIT(l->fd, volt_blocking(cx, &l->job, line_open, l));
        if (l->fd < 0) {
            l->rc = l->fd;
            if (!line_is_lost(l)) break;
            if (l->error != l->fd) note("%s: %s", l->g->device, volt_strerror(l->fd));
            l->error = l->fd;
        } else {
            note("%s is open", l->g->device);
            l->was_open = 1;
            l->error = 0;
            VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&l->hears, l->rc, line_hear(cx, l)),
                                   VOLT_ARM(&l->says, l->rc, line_say(cx, l))));
            if (l->says.fired && l->rc == 0) { // a stop: waits until the driver has sent the rest
                for (l->n_steps = 0; l->n_steps < DRAIN_STEPS && line_unsent(l->fd) > 0;
                     l->n_steps++)
                    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(DRAIN_STEP_MS)));
            } else if (!l->hears.fired && !l->says.fired) {
                l->rc = -ECANCELED;
            }
            line_close(cx, l);
            if (l->rc == 0 || l->rc == -ECANCELED) break;
            note("%s is lost: %s", l->g->device, volt_strerror(l->rc));
        }
        VOLT_AWAIT(l->rc, volt_with_token(cx, &l->stop, &l->g->stop,
                                          volt_sleep(cx, VOLT_MS(RETRY_MS))));
        if (l->rc < 0) break; // a stop without a line
        line_forget(l);
    }
    volt_chan_close(&l->g->said);
    volt_bcast_close(&l->g->heard); // the clients send what they have received, and leave
    if (l->rc == -ECANCELED) l->rc = 0;
    VOLT_END(l->rc);
}

// ---- clients

typedef struct {
    volt_frame frame;
    int rc;
} holding;
typedef struct {
    volt_frame frame;
    volt_token_link stop;
    chunk said;
    int64_t n;
} reading;
typedef struct {
    volt_frame frame;
    volt_timer late;
    chunk heard;
    int rc, rc_flush;
} writing;
typedef struct {
    volt_frame frame;
    volt_arm holds, reads, writes;
    holding holding;
    reading reading;
    writing writing;
    gateway *g;
    volt_sub sub;
    volt_writer out;
    int fd;
    unsigned is_writer;
    uint64_t n_dropped;
    char peer[64];
    char out_buf[OUT_BYTES];
} client;

// Waits for the pen, then keeps it until the client leaves.
static volt_poll client_hold(volt_cx *cx, client *c) {
    holding *h = &c->holding;
    VOLT_BEGIN(cx, h);
    VOLT_AWAIT(h->rc, volt_mutex_lock(cx, &c->g->pen));
    if (h->rc < 0) VOLT_RETURN(h->rc);
    note("%s writes to the line", c->peer);
    c->is_writer = 1;
    VOLT_AWAIT(volt_sleep_forever(cx));
    c->is_writer = 0;
    volt_mutex_unlock(&c->g->pen);
    VOLT_END(-ECANCELED);
}
static volt_poll client_read(volt_cx *cx, client *c) {
    reading *r = &c->reading;
    VOLT_BEGIN(cx, r);
    volt_chan_retain(&c->g->said, VOLT_CHAN_SENDER);
    for (;;) {
        VOLT_AWAIT(r->n, volt_with_token(cx, &r->stop, &c->g->stop,
                                         volt_read(cx, c->fd, r->said.data, sizeof r->said.data)));
        if (r->n <= 0) break;
        if (!c->is_writer) {
            c->n_dropped += (uint64_t)r->n;
            continue;
        }
        r->said.len = (unsigned)r->n;
        VOLT_AWAIT(r->n, volt_chan_send(cx, &c->g->said, &r->said, sizeof r->said));
        if (r->n < 0) break;
    }
    volt_chan_release(&c->g->said, VOLT_CHAN_SENDER);
    // In a stop the client receives what the line still sends; the end of that ends this wait.
    if (volt_token_is_cancelled(&c->g->stop)) VOLT_AWAIT(volt_sleep_forever(cx));
    VOLT_END(r->n);
}
// Sends what the line says; several chunks at once if there are.
//   gives : 0: the line was given up, and all was sent | -EOVERFLOW, -ETIMEDOUT: too slow | -errno
static volt_poll client_write(volt_cx *cx, client *c) {
    writing *w = &c->writing;
    VOLT_BEGIN(cx, w);
    w->rc = -EAGAIN;
    for (;;) { // w->rc: 1: w->heard is to be put | 0: that was all | -EAGAIN: no more for now
        while (w->rc == 1 && volt_put(&c->out, w->heard.data, w->heard.len) == 0)
            w->rc = volt_sub_try_recv(&c->sub, &w->heard, sizeof w->heard);
        if (w->rc < 0 && w->rc != -EAGAIN) VOLT_RETURN(w->rc);
        if (volt_unflushed(&c->out) > 0) {
            VOLT_AWAIT(w->rc_flush, volt_within(cx, &w->late, VOLT_S(WRITE_SECONDS),
                                                volt_flush(cx, &c->out)));
            if (w->rc_flush < 0) VOLT_RETURN(w->rc_flush);
            continue;
        }
        if (w->rc == 0) break;
        VOLT_AWAIT(w->rc, volt_sub_recv(cx, &c->sub, &w->heard, sizeof w->heard));
    }
    VOLT_AWAIT(w->rc, volt_stream_end(cx, volt_stream_of(c->fd)));
    VOLT_END(w->rc);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    volt_sub_open(&c->sub, &c->g->heard);
    volt_writer_init(&c->out, volt_stream_of(c->fd), c->out_buf, sizeof c->out_buf);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&c->holds, client_hold(cx, c)),
                           VOLT_ARM(&c->reads, client_read(cx, c)),
                           VOLT_ARM(&c->writes, client_write(cx, c))));
    if (c->writes.fired && (c->writes.value == -EOVERFLOW || c->writes.value == -ETIMEDOUT))
        note("%s is too slow: disconnected", c->peer);
    if (c->n_dropped > 0)
        note("%s: dropped %llu bytes, as it was not its turn to write", c->peer,
             (unsigned long long)c->n_dropped);
    volt_sub_close(&c->sub);
    volt_close(cx, c->fd);
    volt_sem_release(&c->g->places, 1);
    VOLT_END(0);
}

// ---- the gateway

typedef struct {
    volt_frame frame;
    int rc;
} draining;
typedef struct {
    volt_frame frame;
    volt_arm comes, signal, ended, drained;
    volt_timer grace;
    volt_group clients;
    volt_handle line;
    draining draining;
    volt_addr peer;
    int lfd, sigfd, fd, rc, n_failed;
    int64_t line_rc;
    gateway g;
} app;

static void admit(volt_cx *cx, app *m) {
    client c = { .g = &m->g, .fd = m->fd };
    if (volt_addr_format(&m->peer, c.peer, sizeof c.peer) < 0) strcpy(c.peer, "a client");
    int rc = volt_sem_try_acquire(&m->g.places, 1);
    if (rc == 0) {
        volt_set_keepalive(m->fd, 30, 10, 3);
        rc = VOLT_GROUP_SPAWN(cx, &m->clients, client_run, c);
        if (rc == 0) return;
        volt_sem_release(&m->g.places, 1);
    }
    note("%s was refused: %s", c.peer, rc == -EAGAIN ? "too many clients" : volt_strerror(rc));
    volt_close(cx, m->fd);
}
static volt_poll drain(volt_cx *cx, app *m) {
    draining *d = &m->draining;
    VOLT_BEGIN(cx, d);
    if (volt_handle_is_set(&m->line)) {
        VOLT_AWAIT(m->line_rc, volt_join(cx, &m->line));
        if (volt_handle_is_set(&m->line)) VOLT_RETURN(-ECANCELED);
    }
    VOLT_AWAIT(d->rc, volt_group_wait(cx, &m->clients));
    VOLT_END(d->rc);
}
static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->g.heard = (volt_bcast)VOLT_BCAST_INIT(m->g.kept);
    m->g.said = (volt_chan)VOLT_CHAN_INIT(m->g.queue);
    m->g.pen = (volt_mutex)VOLT_MUTEX_FIFO;
    volt_chan_retain(&m->g.said, VOLT_CHAN_SENDER); // keeps it open while there is no client
    m->rc = VOLT_SPAWN(cx, &m->line, line_run, (line){ .g = &m->g });
    if (m->rc < 0) VOLT_RETURN(m->rc);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->comes, m->fd,
                                        volt_accept_from(cx, m->lfd, &m->peer)),
                               VOLT_ARM(&m->signal, volt_signals_next(cx, m->sigfd, NULL)),
                               VOLT_ARM(&m->ended, m->line_rc, volt_join(cx, &m->line))));
        if (!m->comes.fired) break;
        if (m->fd >= 0) {
            m->n_failed = 0;
            admit(cx, m);
        } else { // a lasting cause, such as a firewall, is left to the supervisor of the program
            if (m->n_failed == ACCEPT_RETRIES) break;
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(ACCEPT_PAUSE_MS << m->n_failed)));
            m->n_failed++;
        }
    }
    note("stopping");
    volt_close(cx, m->lfd);
    volt_token_cancel(&m->g.stop);
    volt_chan_release(&m->g.said, VOLT_CHAN_SENDER);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&m->drained,
                                    volt_within(cx, &m->grace, VOLT_S(GRACE_SECONDS),
                                                drain(cx, m))),
                           VOLT_ARM(&m->signal, volt_signals_next(cx, m->sigfd, NULL))));
    volt_cancel(&m->line); // nothing, if it has ended
    VOLT_AWAIT(volt_group_close(cx, &m->clients));
    if (volt_handle_is_set(&m->line)) VOLT_AWAIT(m->line_rc, volt_join(cx, &m->line));
    volt_detach(&m->line);
    if (m->comes.fired) VOLT_RETURN(m->fd); // accept kept failing
    VOLT_END(m->line_rc == -ECANCELED ? 0 : m->line_rc);
}

// ---- the command line

static void usage(void) {
    fprintf(stderr, "usage: serial [-l ADDR] [-b BAUD] [-f FORMAT] [-r | -x] [-s] [-n N] DEVICE\n"
                    "ADDR is of the loopback interface, as 127.0.0.1:7009; FORMAT is as 8N1\n");
    exit(2);
}
static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least || n > most) usage();
    return n;
}
static void parse_format(volt_serial_options *o, const char *text) {
    if (strlen(text) != 3 || !strchr("5678", text[0]) || !strchr("NEO", text[1]) ||
        !strchr("12", text[2]))
        usage();
    o->data_bits = (unsigned)(text[0] - '0');
    o->parity = text[1];
    o->stop_bits = (unsigned)(text[2] - '0');
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
// gives : a listener; its address with the port in *a | -errno
static int listen_on(const char *text, volt_addr *a) {
    int rc = volt_addr_parse(a, text);
    if (rc < 0) return rc;
    if (!is_loopback(a)) return -EADDRNOTAVAIL;
    int fd = volt_listen_addr(a, NULL);
    if (fd < 0) return fd;
    rc = volt_local_addr(fd, a);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}

int main(int argc, char **argv) {
    static app m; // the root state, with the kept chunks, is large for a stack
    volt_serial_options *o = &m.g.options;
    const char *where = "127.0.0.1:7009";
    volt_addr at;
    char text[64];
    long n_places = 32;
    int option;
    *o = (volt_serial_options){ .baud = 9600, .is_exclusive = 1 };
    while ((option = getopt(argc, argv, "l:b:f:rxsn:")) != -1) {
        if (option == 'l') where = optarg;
        else if (option == 'b') o->baud = (unsigned)number(optarg, 50, 20000000);
        else if (option == 'f') parse_format(o, optarg);
        else if (option == 'r') o->has_rtscts = 1;
        else if (option == 'x') o->has_xonxoff = 1;
        else if (option == 's') o->is_exclusive = 0;
        else if (option == 'n') n_places = number(optarg, 1, 10000);
        else usage();
    }
    if (argc - optind != 1 || (o->has_rtscts && o->has_xonxoff)) usage();
    m.g.device = argv[optind];
    volt_sem_release(&m.g.places, (uint32_t)n_places);

    int rc = m.sigfd = VOLT_SIGNALS(SIGTERM, SIGINT);
    if (rc >= 0) rc = m.lfd = listen_on(where, &at);
    if (rc >= 0) rc = volt_addr_format(&at, text, sizeof text);
    if (rc >= 0) {
        printf("listening on %s\n", text);
        fflush(stdout);
        rc = volt_run(NULL, app_run, &m);
    }
    if (rc < 0) fprintf(stderr, "serial: %s\n", volt_strerror(rc));
    return rc < 0;
}
