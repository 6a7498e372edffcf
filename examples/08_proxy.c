// SPDX-License-Identifier: MIT OR 0BSD
// A TCP proxy: relays each connection to another address, in both directions.
//
//     cc -O2 -I. -pthread examples/08_proxy.c -o proxy && ./proxy 127.0.0.1:7000 127.0.0.1:80
//
// SIGUSR1 prints the statistics, with the bytes of connections that have ended. SIGTERM or SIGINT
// closes the listener; the connections are cut after DRAIN_SECONDS, or by a second signal.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { CONNECT_SECONDS = 5, IDLE_SECONDS = 300, DRAIN_SECONDS = 30, CONNECTIONS_MAX = 10000 };
enum { CONNECTION_FDS = 7 }; // two sockets, two pipes while bytes are in them, and a reserve

typedef struct {
    volt_frame frame;
    volt_arm came, left, signalled;
    volt_timer limit;
    volt_group connections;
    volt_addr target;
    volt_time idle, deadline; // deadline: of the drain
    int n_now, n_max;
    long long n_total, n_bytes;
    int listener, signals, signal, client, rc;
} proxy;

typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_relayer relay;
    const proxy *owner;
    int client, target, rc;
} connection;

// The result is the number of bytes that were relayed.
static volt_poll connection_run(volt_cx *cx, void *arg) {
    connection *c = (connection *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->target, volt_within(cx, &c->limit, VOLT_S(CONNECT_SECONDS),
                                      volt_connect(cx, &c->owner->target)));
    c->rc = c->target;
    volt_relayer_init(&c->relay, volt_stream_of(c->client), volt_stream_of(c->target),
                      c->owner->idle);
    if (c->target >= 0) VOLT_AWAIT(c->rc, volt_relay(cx, &c->relay));
    // After an error both sides are reset, so that a cut stream does not look like a complete one.
    (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->client);
    if (c->target >= 0) (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->target);
    VOLT_END((int64_t)(volt_copied(volt_relay_way(&c->relay, 0)) +
                       volt_copied(volt_relay_way(&c->relay, 1))));
}

static void proxy_print(const proxy *p) {
    fprintf(stderr, "%d connections, %lld in all, %lld bytes\n", p->n_now, p->n_total, p->n_bytes);
}

static volt_poll proxy_run(volt_cx *cx, void *arg) {
    proxy *p = (proxy *)arg;
    VOLT_BEGIN(cx, p);
    volt_group_collect(&p->connections);
    while (p->listener >= 0 || p->n_now > 0) {
        VOLT_AWAIT(p->rc, volt_before(cx, &p->limit, p->deadline, VOLT_SELECT(
            VOLT_ARM(&p->came, p->client, p->listener >= 0 && p->n_now < p->n_max
                                              ? volt_accept(cx, p->listener)
                                              : volt_sleep_forever(cx)),
            VOLT_ARM(&p->left, p->n_now > 0 ? volt_group_next(cx, &p->connections, NULL)
                                            : volt_sleep_forever(cx)),
            VOLT_ARM(&p->signalled, p->signal, volt_signals_next(cx, p->signals, NULL)))));
        if (p->rc < 0) break; // the time for the drain is up
        if (p->left.fired) p->n_now--, p->n_bytes += p->left.value;
        else if (p->came.fired && p->client >= 0) {
            p->rc = VOLT_GROUP_SPAWN(cx, &p->connections, connection_run,
                                     (connection){ .owner = p, .client = p->client });
            if (p->rc < 0) volt_close(cx, p->client);
            else p->n_now++, p->n_total++;
        } else if (p->signalled.fired && p->signal == SIGUSR1) proxy_print(p);
        else if (p->listener >= 0) { // a signal to stop, or no more clients can be accepted
            volt_close(cx, p->listener);
            p->listener = -1;
            p->deadline = volt_now() + VOLT_S(DRAIN_SECONDS);
        } else break;
    }
    VOLT_AWAIT(volt_group_close(cx, &p->connections)); // cuts those that are left
    volt_close(cx, p->signals);
    proxy_print(p);
    VOLT_END(p->client < 0 ? p->client : 0);
}

int main(int argc, char **argv) {
    static const int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    proxy p = { .deadline = VOLT_NEVER };
    struct rlimit fds = { .rlim_max = 0 };
    volt_addr at;
    if (argc < 3 || volt_addr_parse(&at, argv[1]) < 0 || volt_addr_parse(&p.target, argv[2]) < 0)
        return fprintf(stderr, "usage: %s LISTEN_ADDR TARGET_ADDR [IDLE_SECONDS]\n", argv[0]), 2;
    p.idle = VOLT_S(argc > 3 ? atoi(argv[3]) : IDLE_SECONDS);
    getrlimit(RLIMIT_NOFILE, &fds);
    fds.rlim_cur = fds.rlim_max; // the default is too low
    setrlimit(RLIMIT_NOFILE, &fds);
    p.n_max = CONNECTIONS_MAX;
    if (fds.rlim_max / CONNECTION_FDS < CONNECTIONS_MAX)
        p.n_max = (int)(fds.rlim_max / CONNECTION_FDS);
    p.signals = volt_signals_open(signals, 3);
    p.listener = p.signals < 0 ? p.signals : volt_listen_addr(&at, NULL);
    int rc = p.listener < 0 ? p.listener : volt_run(NULL, proxy_run, &p);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
