// SPDX-License-Identifier: MIT OR 0BSD
// A SOCKS5 proxy with a task for each connection, made from socks_threads.c. What it has in
// addition: limits of time for the handshake, the connection and a silent relay, a limit of
// clients, half-closed connections, a stop that lets the clients end.
//
//     cc -O2 -I. -pthread examples/projects/socks.c -o socks && ./socks 127.0.0.1:1080
//     curl --socks5-hostname 127.0.0.1:1080 http://localhost/
//
//   -u USER -P PASSWORD  clients must log in    -w SECONDS  limit for a handshake, default 10
//   -c CLIENTS  at a time, default 10000        -t SECONDS  limit for silence, default 900
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "../programs/server.h"
#include "socks_protocol.h"
#include <getopt.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { CONNECT_S = 20, LINGER_S = 2, DRAIN_S = 30 };
enum { CLIENT_FDS = 7 }; // two sockets, two pipes while bytes are in them, and a reserve

typedef struct {
    server s;
    const char *user, *password; // or NULL
    volt_time handshake, silence;
} proxy;
typedef struct {
    volt_frame frame;
    size_t n;
    int64_t rc;
} step;
typedef struct {
    step read, run;
    int method, is_right, is_address;
    volt_addr at;
    volt_dial dial;
    socks_target to;
    unsigned char m[SOCKS_MESSAGE_MAX];
} handshake;
typedef struct {
    volt_frame frame;
    volt_timer limit;
    const proxy *owner;
    int fd, target, code;
    int64_t rc;
    union { // one after the other
        handshake shake;
        volt_relayer relay;
    } u;
} client;

// Returns the length of a complete message, or -errno.
static volt_poll message_read(volt_cx *cx, client *c, socks_length *length) {
    handshake *const h = &c->u.shake;
    step *const r = &h->read;
    VOLT_BEGIN(cx, r);
    for (r->n = 0; r->n < length(h->m, r->n); r->n += (size_t)r->rc) {
        VOLT_AWAIT(r->rc, volt_read(cx, c->fd, h->m + r->n, length(h->m, r->n) - r->n));
        if (r->rc <= 0) VOLT_RETURN(r->rc < 0 ? r->rc : -EPIPE);
    }
    VOLT_END((int64_t)r->n);
}
// Returns SOCKS_OK with the target, a code to refuse with, or a negative number: no answer.
static volt_poll handshake_run(volt_cx *cx, client *c) {
    handshake *const h = &c->u.shake;
    step *const r = &h->run;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, message_read(cx, c, socks_greeting_length));
    if (r->rc < 0) VOLT_RETURN(r->rc);
    h->method = socks_method(h->m, c->owner->user != NULL);
    if (h->method < 0) VOLT_RETURN(-EPROTO);
    h->m[0] = 5, h->m[1] = (unsigned char)h->method;
    VOLT_AWAIT(r->rc, volt_write_all(cx, c->fd, h->m, 2));
    if (r->rc < 0 || h->method == SOCKS_NO_METHOD) VOLT_RETURN(-EACCES);
    if (h->method == SOCKS_LOGIN) {
        VOLT_AWAIT(r->rc, message_read(cx, c, socks_login_length));
        if (r->rc < 0) VOLT_RETURN(r->rc);
        h->is_right = socks_login_is(h->m, c->owner->user, c->owner->password);
        h->m[0] = 1, h->m[1] = !h->is_right;
        VOLT_AWAIT(r->rc, volt_write_all(cx, c->fd, h->m, 2));
        if (r->rc < 0 || !h->is_right) VOLT_RETURN(-EACCES);
    }
    VOLT_AWAIT(r->rc, message_read(cx, c, socks_request_length));
    VOLT_END(r->rc < 0 ? r->rc : socks_request(h->m, &h->to));
}
// Returns a descriptor, or -errno. A name is looked up by a thread of the pool.
static volt_poll target_connect(volt_cx *cx, client *c) {
    handshake *const h = &c->u.shake;
    return h->is_address ? volt_connect(cx, &h->at)
                         : volt_tcp_connect(cx, &h->dial, h->to.host, h->to.service);
}
static void answer_make(client *c) {
    handshake *const h = &c->u.shake;
    unsigned len;
    if (c->target >= 0 && volt_local_addr(c->target, &h->at) < 0) c->code = SOCKS_FAILED;
    h->read.n = socks_answer(h->m, c->code,
                             c->code == SOCKS_OK ? volt_addr_sockaddr(&h->at, &len) : NULL);
}
// Lets the client read a refusal: a close with unread bytes would reset the connection.
static volt_poll linger_run(volt_cx *cx, client *c) {
    handshake *const h = &c->u.shake;
    step *const r = &h->run;
    VOLT_BEGIN(cx, r);
    volt_sock_shutdown(c->fd, SHUT_WR);
    do VOLT_AWAIT(r->rc, volt_read(cx, c->fd, h->m, sizeof h->m));
    while (r->rc > 0);
    VOLT_END(r->rc);
}
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    c->target = -1;
    VOLT_AWAIT(c->code, volt_within(cx, &c->limit, c->owner->handshake, handshake_run(cx, c)));
    if (c->code == SOCKS_OK) {
        c->u.shake.is_address = volt_addr_make(&c->u.shake.at, c->u.shake.to.host,
                                               (unsigned)atoi(c->u.shake.to.service)) == 0;
        VOLT_AWAIT(c->target,
                   volt_within(cx, &c->limit, VOLT_S(CONNECT_S), target_connect(cx, c)));
        if (c->target < 0) c->code = socks_code_of(c->target);
    }
    c->rc = 0;
    if (c->code >= 0) {
        answer_make(c);
        VOLT_AWAIT(c->rc, volt_within(cx, &c->limit, c->owner->handshake,
                                      volt_write_all(cx, c->fd, c->u.shake.m, c->u.shake.read.n)));
    }
    if (c->rc > 0 && c->code == SOCKS_OK) {
        volt_relayer_init(&c->u.relay, volt_stream_of(c->fd), volt_stream_of(c->target),
                          c->owner->silence);
        VOLT_AWAIT(c->rc, volt_relay(cx, &c->u.relay));
    } else VOLT_AWAIT(volt_within(cx, &c->limit, VOLT_S(LINGER_S), linger_run(cx, c)));
    // After an error both sides are reset, so that a cut stream does not look like a complete one.
    (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->fd);
    if (c->target >= 0) (c->rc < 0 ? volt_close_reset : volt_close)(cx, c->target);
    VOLT_END(0);
}

static int client_came(volt_cx *cx, server *s, int fd) {
    return VOLT_GROUP_SPAWN(cx, &s->clients, client_run,
                            (client){ .owner = (const proxy *)s, .fd = fd });
}
// Returns the number of clients for which there are descriptors, at most n.
static unsigned clients_possible(unsigned n) {
    struct rlimit fds;
    if (getrlimit(RLIMIT_NOFILE, &fds) < 0) return n;
    fds.rlim_cur = fds.rlim_max; // the default is too low
    setrlimit(RLIMIT_NOFILE, &fds);
    return fds.rlim_max / CLIENT_FDS < n ? (unsigned)fds.rlim_max / CLIENT_FDS : n;
}
int main(int argc, char **argv) {
    static proxy p;
    const volt_config config = { .log = { .fn = volt_log_stderr } };
    unsigned n_max = 10000;
    volt_addr at;
    p.handshake = VOLT_S(10);
    p.silence = VOLT_S(900);
    for (int o; (o = getopt(argc, argv, "u:P:w:t:c:")) != -1;) {
        if (o == 'u') p.user = optarg;
        else if (o == 'P') p.password = optarg;
        else if (o == 'w') p.handshake = VOLT_S(atoi(optarg));
        else if (o == 't') p.silence = VOLT_S(atoi(optarg));
        else if (o == 'c') n_max = (unsigned)atoi(optarg);
        else return 2;
    }
    if (optind + 1 != argc || !p.user != !p.password || volt_addr_parse(&at, argv[optind]) < 0)
        return fprintf(stderr, "usage: %s [-u USER -P PASSWORD] [-w SECONDS] [-t SECONDS] "
                               "[-c CLIENTS] ADDRESS:PORT\n", argv[0]), 2;
    p.s.n_max = clients_possible(n_max);
    p.s.grace = VOLT_S(DRAIN_S);
    p.s.client_came = client_came;
    int rc = server_open(&p.s, &at, NULL);
    if (rc >= 0) rc = volt_run(&config, server_run, &p.s);
    if (rc < 0) fprintf(stderr, "%s: %s\n", argv[0], volt_strerror(rc));
    return rc < 0;
}
