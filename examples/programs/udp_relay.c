// SPDX-License-Identifier: MIT OR 0BSD
// Relays the datagrams that come to a port to another address, and the answers back. Connections to
// the same port are relayed, too: some protocols, such as that of iperf3, use both.
//
//     cc -O2 -I. -pthread examples/programs/udp_relay.c -o relay && ./relay 127.0.0.1:7000 TARGET
//
// Each client of UDP has a socket of its own to the target, so that an answer leads to its client,
// until it has been idle for a while. A datagram that cannot be sent is lost, as in a network.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS_MAX = 500, BUCKETS = 256, DATAGRAM_BYTES = 65536, IDLE_S = 30, CONNECT_S = 5 };

typedef struct session { // of a client of UDP
    struct session *next; // in its bucket
    volt_addr client;
    int fd;
    volt_time last; // datagram, in either direction
    unsigned char buf[DATAGRAM_BYTES];
} session;
typedef struct {
    volt_frame frame;
    volt_arm datagram, came, signalled;
    volt_group tasks;   // one for each client
    unsigned n_clients; // of UDP and TCP
    volt_addr target, from;
    volt_time idle; // limit for a client
    int udp, tcp, signals, fd;
    session *buckets[BUCKETS];
    unsigned char buf[DATAGRAM_BYTES];
} relay;
typedef struct { volt_frame frame; volt_timer limit; relay *owner; session *s; int64_t n; } answers;
typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_relayer both;
    relay *owner;
    int client, target, rc;
} connection;

static session **session_find(relay *r, const volt_addr *client) {
    session **at = &r->buckets[volt_addr_hash(client) % BUCKETS];
    while (*at && !volt_addr_equal(&(*at)->client, client)) at = &(*at)->next;
    return at;
}
// Passes the answers of the target to a client.
static volt_poll answers_run(volt_cx *cx, void *arg) {
    answers *a = (answers *)arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(a->n, volt_connect_on(cx, a->s->fd, &a->owner->target)); // no other sender
    while (a->n >= 0) {
        VOLT_AWAIT(a->n, volt_before(cx, &a->limit, a->s->last + a->owner->idle,
                                     volt_recv(cx, a->s->fd, a->s->buf, DATAGRAM_BYTES, 0)));
        if (a->n >= 0) {
            a->s->last = volt_now();
            VOLT_AWAIT(a->n, volt_sendto(cx, a->owner->udp, a->s->buf, (size_t)a->n, 0,
                                         &a->s->client));
        }
        // An error of the network is that of one datagram, and each of them moves the limit.
        if (a->n != -ECANCELED && volt_now() - a->s->last < a->owner->idle) a->n = 0;
    }
    *session_find(a->owner, &a->s->client) = a->s->next;
    volt_close(cx, a->s->fd);
    free(a->s);
    a->owner->n_clients--;
    VOLT_END(0);
}
// Returns the socket to the target for the datagram that has come, or -1.
static int session_fd(volt_cx *cx, relay *r) {
    session **at = session_find(r, &r->from), *s = *at;
    if (!s) s = r->n_clients < CLIENTS_MAX ? (session *)calloc(1, sizeof *s) : NULL;
    if (!s) return -1;
    s->last = volt_now();
    if (*at) return s->fd;
    answers a = { .owner = r, .s = s };
    s->client = r->from;
    s->fd = volt_sock_open(volt_addr_family(&r->target), SOCK_DGRAM, 0);
    if (s->fd >= 0 && volt_set_buffers(s->fd, 0, 1 << 20) == 0 &&
        VOLT_GROUP_SPAWN(cx, &r->tasks, answers_run, a) == 0) {
        r->n_clients++;
        *at = s;
        return s->fd;
    }
    if (s->fd >= 0) volt_close(cx, s->fd);
    free(s);
    return -1;
}

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = (connection *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->target, volt_within(cx, &c->limit, VOLT_S(CONNECT_S),
                                      volt_connect(cx, &c->owner->target)));
    c->rc = c->target;
    volt_relayer_init(&c->both, volt_stream_of(c->client), volt_stream_of(c->target),
                      c->owner->idle);
    if (c->target >= 0) VOLT_AWAIT(c->rc, volt_relay(cx, &c->both));
    (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->client);
    if (c->target >= 0) (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->target);
    c->owner->n_clients--;
    VOLT_END(0);
}
static volt_poll relay_run(volt_cx *cx, void *arg) {
    relay *r = (relay *)arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(
            VOLT_ARM(&r->datagram, volt_recvfrom(cx, r->udp, r->buf, DATAGRAM_BYTES, 0, &r->from)),
            VOLT_ARM(&r->came, r->fd, volt_accept(cx, r->tcp)),
            VOLT_ARM(&r->signalled, volt_signals_next(cx, r->signals, NULL))));
        if (r->came.fired && r->fd >= 0) {
            connection c = { .owner = r, .client = r->fd };
            if (r->n_clients < CLIENTS_MAX &&
                VOLT_GROUP_SPAWN(cx, &r->tasks, connection_run, c) == 0) r->n_clients++;
            else volt_close_reset(cx, r->fd);
        } else if (r->datagram.fired && r->datagram.value >= 0) {
            r->fd = session_fd(cx, r);
            if (r->fd >= 0)
                VOLT_AWAIT(volt_sendto(cx, r->fd, r->buf, (size_t)r->datagram.value, 0,
                                       &r->target));
        } else break; // a signal, or a socket that fails for good
    }
    VOLT_AWAIT(volt_group_close(cx, &r->tasks)); // then the program ends, which closes the sockets
    VOLT_END(r->signalled.fired ? 0 : r->came.fired ? r->fd : r->datagram.value);
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM };
    static relay r;
    const volt_config config = { .workers = 1, .log = { .fn = volt_log_stderr } };
    const volt_udp_options options = { .receive_bytes = 1 << 20 };
    volt_addr at;
    // An answer must come from the address that was asked, so that is not a wildcard.
    r.idle = VOLT_S(argc == 4 ? atoi(argv[3]) : IDLE_S);
    if (argc < 3 || argc > 4 || r.idle <= 0 || volt_addr_parse(&at, argv[1]) < 0 ||
        volt_addr_is_any(&at) || volt_addr_parse(&r.target, argv[2]) < 0)
        return fprintf(stderr, "usage: %s LISTEN_ADDR TARGET_ADDR [IDLE_S]\n", argv[0]), 2;
    int rc = r.signals = volt_signals_open(signals, 2); // before the runtime has threads
    if (rc >= 0) rc = r.tcp = volt_listen_addr(&at, NULL);
    if (rc >= 0) rc = volt_local_addr(r.tcp, &at);
    if (rc >= 0) rc = r.udp = volt_udp_open(&at, &options); // the same port
    if (rc >= 0) printf("port %d\n", volt_addr_port(&at)), fflush(stdout);
    if (rc >= 0) rc = volt_run(&config, relay_run, &r);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
