// SPDX-License-Identifier: MIT OR 0BSD
// A TCP proxy: relays each connection to another address, in both directions.
//
//     cc -O2 -I. -pthread examples/18_proxy.c -o proxy && ./proxy 127.0.0.1:7000 127.0.0.1:80
//
// SIGUSR1 prints the statistics; the bytes are those of connections that have ended. SIGTERM or
// SIGINT closes the listener and lets the connections end within DRAIN_SECONDS; a SIGINT during
// that time cuts them.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

enum { CONNECT_SECONDS = 5, IDLE_SECONDS = 300, DRAIN_SECONDS = 30, CONNECTIONS_MAX = 10000 };
enum { CONNECTION_FDS = 7 }; // two sockets, two pipes while bytes are in them, and a reserve

typedef struct {
    volt_frame frame;
    volt_arm came, left, signalled;
    volt_timer limit;
    volt_group connections;
    volt_addr target;
    volt_time deadline; // of the drain
    unsigned n_now, n_max;
    unsigned long long n_total, n_bytes[2]; // n_bytes: atomic
    int listener, signals, signal, client, rc;
} proxy;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_relayer relay;
    proxy *owner;
    int client, target, rc;
} connection;

static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = (connection *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->target, volt_within(cx, &c->limit, VOLT_S(CONNECT_SECONDS),
                                      volt_connect(cx, &c->owner->target)));
    c->rc = c->target;
    volt_relayer_init(&c->relay, volt_stream_of(c->client), volt_stream_of(c->target),
                      VOLT_S(IDLE_SECONDS));
    if (c->target >= 0) VOLT_AWAIT(c->rc, volt_relay(cx, &c->relay));
    for (int i = 0; i < 2; i++)
        __atomic_add_fetch(&c->owner->n_bytes[i], volt_copied(volt_relay_way(&c->relay, i)),
                           __ATOMIC_RELAXED);
    // After an error both sides are reset, so that a cut stream does not look like a complete one.
    (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->client);
    if (c->target >= 0) (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->target);
    VOLT_END(0);
}

static void client_came(volt_cx *cx, proxy *p) {
    connection c = { .owner = p, .client = p->client };
    int rc = VOLT_GROUP_SPAWN(cx, &p->connections, connection_run, c);
    if (rc < 0) volt_close(cx, p->client);
    else p->n_now++, p->n_total++;
}

static void proxy_print(const proxy *p) {
    fprintf(stderr, "connections: %u now, %llu in total; bytes: %llu in, %llu out\n", p->n_now,
            p->n_total, __atomic_load_n(&p->n_bytes[0], __ATOMIC_RELAXED),
            __atomic_load_n(&p->n_bytes[1], __ATOMIC_RELAXED));
}

static volt_poll proxy_run(volt_cx *cx, void *arg) {
    proxy *p = (proxy *)arg;
    VOLT_BEGIN(cx, p);
    volt_group_collect(&p->connections);
    p->deadline = VOLT_NEVER;
    while (p->listener >= 0 || p->n_now > 0) {
        VOLT_AWAIT(p->rc, volt_before(cx, &p->limit, p->deadline, VOLT_SELECT(
            VOLT_ARM(&p->came, p->client, p->listener >= 0 && p->n_now < p->n_max
                                              ? volt_accept(cx, p->listener)
                                              : volt_sleep_forever(cx)),
            VOLT_ARM(&p->left, p->n_now > 0 ? volt_group_next(cx, &p->connections, NULL)
                                            : volt_sleep_forever(cx)),
            VOLT_ARM(&p->signalled, p->signal, volt_signals_next(cx, p->signals, NULL)))));
        if (p->rc < 0) break; // the time for the drain is up
        if (p->left.fired) p->n_now--;
        else if (p->came.fired && p->client >= 0) client_came(cx, p);
        else if (p->signalled.fired && p->signal == SIGUSR1) proxy_print(p);
        else if (p->listener >= 0) { // a signal to stop, or no more clients can be accepted
            volt_close(cx, p->listener);
            p->listener = -1;
            p->deadline = volt_now() + VOLT_S(DRAIN_SECONDS);
        } else if (p->signal < 0 || p->signal == SIGINT) break;
    }
    VOLT_AWAIT(volt_group_close(cx, &p->connections)); // cuts those that are left
    p->n_now = 0;
    volt_close(cx, p->signals);
    proxy_print(p);
    VOLT_END(p->client < 0 ? p->client : 0);
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    proxy p = { .listener = -1 };
    volt_config config = { .log = { .fn = volt_log_stderr } };
    struct rlimit fds = { .rlim_max = 0 };
    volt_addr at;
    if (argc != 3 || volt_addr_parse(&at, argv[1]) < 0 || volt_addr_parse(&p.target, argv[2]) < 0)
        return fprintf(stderr, "usage: %s LISTEN_ADDR TARGET_ADDR\n", argv[0]), 2;
    getrlimit(RLIMIT_NOFILE, &fds);
    fds.rlim_cur = fds.rlim_max; // the default is too low
    setrlimit(RLIMIT_NOFILE, &fds);
    p.n_max = fds.rlim_max / CONNECTION_FDS < CONNECTIONS_MAX
                  ? (unsigned)(fds.rlim_max / CONNECTION_FDS)
                  : (unsigned)CONNECTIONS_MAX;
    p.signals = volt_signals_open(signals, 3);
    p.listener = p.signals < 0 ? p.signals : volt_listen_addr(&at, NULL);
    int rc = p.listener < 0 ? p.listener : volt_run(&config, proxy_run, &p);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
