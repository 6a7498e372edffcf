// SPDX-License-Identifier: MIT OR 0BSD
// c-ares, the asynchronous resolver: several names at once. The name server is a task of this
// program, in 16_name_server.h.
//
// c-ares opens and closes its sockets itself and reports them (on_socket). It must also be called
// when a query times out: ares_timeout returns the time until then, and volt_before waits no
// longer.
//
//     cc -I. -pthread examples/16_cares.c -lcares -o cares && ./cares
//
// Expected output:
// one.test: 10.0.0.3
// three.test: 10.0.0.5
// lossy.test: 10.0.0.5, asked twice
// none.test: no such name
// silent.test: timed out, asked twice
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "16_name_server.h"
#include <ares.h>
#include <netdb.h>
#include <stdio.h>

enum { N_NAMES = 5, TRY_MS = 250 };

typedef struct {
    const char *name;
    char text[64];
    int is_retried, *n_owed; // outstanding answers
} query;

typedef struct {
    volt_frame frame;
    volt_timer late;
    volt_time due;
    volt_pollset set;
    volt_pollev ev[16];
    volt_handle server;
    ares_channel channel;
    query q[N_NAMES];
    int fd, n_owed, n;
} app;

static void on_socket(void *user, ares_socket_t fd, int is_read, int is_write) {
    int events = (is_read ? (int)VOLT_IN : 0) | (is_write ? (int)VOLT_OUT : 0); // 0: to be closed
    (void)volt_pollset_set(&((app *)user)->set, fd, (uint32_t)events);
}

static void on_host(void *user, int status, int timeouts, struct hostent *host) {
    query *q = (query *)user;
    --*q->n_owed;
    q->is_retried = timeouts > 0;
    if (status == ARES_SUCCESS)
        inet_ntop(AF_INET, host->h_addr_list[0], q->text, sizeof q->text);
    else
        snprintf(q->text, sizeof q->text, "%s",
                 status == ARES_ENOTFOUND  ? "no such name"
                 : status == ARES_ETIMEOUT ? "timed out"
                                           : ares_strerror(status));
}

static int resolver_open(app *m, const struct sockaddr_in *at) {
    static char lookups[] = "b"; // DNS only, no /etc/hosts
    struct ares_options o = {
        .flags = ARES_FLAG_NOSEARCH, .timeout = TRY_MS, .tries = 2, .lookups = lookups
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
               ARES_OPT_SOCK_STATE_CB;
    char address[32];
    o.sock_state_cb = on_socket;
    o.sock_state_cb_data = m;
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at->sin_port));
    if (volt_pollset_open(&m->set) < 0) return -1;
    if (ares_library_init(ARES_LIB_INIT_ALL) || ares_init_options(&m->channel, &o, mask)) return -1;
    return ares_set_servers_ports_csv(m->channel, address) ? -1 : 0;
}

static void resolver_ask(app *m) {
    static const char *const names[N_NAMES] = { "one.test", "three.test", "lossy.test", "none.test",
                                                "silent.test" };
    m->n_owed = N_NAMES;
    for (int i = 0; i < N_NAMES; i++) {
        m->q[i] = (query){ .name = names[i], .n_owed = &m->n_owed };
        ares_gethostbyname(m->channel, names[i], AF_INET, on_host, &m->q[i]);
    }
}

static volt_time resolver_due(app *m) {
    struct timeval tv, *left = ares_timeout(m->channel, NULL, &tv);
    return left ? volt_now() + VOLT_S(left->tv_sec) + VOLT_US(left->tv_usec) : VOLT_NEVER;
}

static void resolver_act(app *m) {
    for (int i = 0; i < m->n; i++) {
        int fd = m->ev[i].fd, is_out = m->ev[i].events & VOLT_OUT;
        ares_process_fd(m->channel, m->ev[i].events == VOLT_OUT ? ARES_SOCKET_BAD : fd,
                        is_out ? fd : ARES_SOCKET_BAD);
    }
    // handles queries that have timed out
    ares_process_fd(m->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static volt_poll app_run(volt_cx *cx, void *arg) {
    app *m = (app *)arg;
    VOLT_BEGIN(cx, m);
    m->n = VOLT_SPAWN(cx, &m->server, name_server_run, (name_server){ .fd = m->fd });
    if (m->n < 0) VOLT_RETURN(m->n);
    resolver_ask(m);
    while (m->n_owed > 0) {
        m->due = resolver_due(m);
        VOLT_AWAIT(m->n,
                   volt_before(cx, &m->late, m->due, volt_pollset_wait(cx, &m->set, m->ev, 16)));
        if (m->n < 0 && m->n != -ETIMEDOUT) break; // cancelled
        resolver_act(m);
    }
    ares_destroy(m->channel);
    volt_pollset_close(cx, &m->set);
    volt_cancel(&m->server);
    VOLT_AWAIT(m->n, volt_join(cx, &m->server));
    VOLT_END(m->n);
}

int main(void) {
    static app m;
    struct sockaddr_in addr;
    m.fd = name_server_open(&addr);
    if (m.fd < 0 || resolver_open(&m, &addr) < 0) return 1;
    int rc = volt_run(NULL, app_run, &m);
    for (query *q = m.q; q < m.q + N_NAMES; q++)
        printf("%s: %s%s\n", q->name, q->text, q->is_retried ? ", asked twice" : "");
    ares_library_cleanup();
    return rc < 0;
}
