// SPDX-License-Identifier: MIT OR 0BSD
// An HTTP/1.1 server: keep-alive, pipelining, limits on size and time, a graceful end. 06_http.h
// reads requests and makes answers, 03_server.h accepts clients. New: a reader (volt_reader), whose
// buffer a connection has only while a request is in it; one deadline for a whole request, however
// slowly it arrives; an answer of two parts (volt_writev_all); a close that loses no answer, by a
// system call of its own (volt_io). adapters/https.c serves any stream, with TLS or without.
//
//     cc -I. -pthread examples/06_http.c -o http && ./http 8080
//
// Expected output:
// port 8080
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "03_server.h"
#include "06_http.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { CLIENTS_MAX = 128, REQUEST_CAP = 4096 };
enum { REQUEST_SECONDS = 5, GRACE_SECONDS = 5, LINGER_SECONDS = 2, LINGER_CAP = 4 << 20 };
static const char html_field[] = "Content-Type: text/html\r\n";
static const char plain_field[] = "Content-Type: text/plain\r\n";
static const char page[] = "<!doctype html><title>volt</title><h1>It works</h1>\n";

typedef struct {
    volt_frame frame;
    volt_arm in, quit;
    volt_token stop;
    volt_group clients;
    volt_timer grace;
    doorway door;
    int fd;
} server;

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer late;
    volt_time deadline; // for a request
    server *srv;
    http_exchange *x; // NULL: idle
    int64_t n, left; // left: of the bytes that are dropped at the end
    int fd, is_last;
} client;

static void answer(client *c, int status) {
    const http_request *r = &c->x->req;
    int is_head = http_is(r->method, "HEAD"), is_read = is_head || http_is(r->method, "GET");
    int is_echo = http_is(r->path, "/echo") && http_is(r->method, "POST");
    http_text body = is_echo ? r->body : (http_text){ page, sizeof page - 1 };
    c->is_last = status != HTTP_OK || r->is_last || volt_token_is_cancelled(&c->srv->stop);
    if (status == HTTP_OK && !is_echo && !(is_read && http_is(r->path, "/"))) status = 404;
    if (status != HTTP_OK) body.at = http_reason(status), body.len = strlen(body.at);
    const char *type = body.at == page ? html_field : plain_field;
    http_answer(c->x, status, type, body, is_head, c->is_last);
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    while (!c->is_last) {
        c->deadline = volt_now() + VOLT_S(REQUEST_SECONDS);
        if (!c->x) { // the stop ends the wait for a request, but not a request that has begun
            VOLT_AWAIT(c->n, volt_with_token(cx, &c->stop, &c->srv->stop,
                                             volt_before(cx, &c->late, c->deadline,
                                                         volt_read_ready(cx, c->fd))));
            if (c->n < 0 || !(c->x = http_begin(volt_stream_of(c->fd), REQUEST_CAP))) break;
        }
        VOLT_AWAIT(c->n, volt_before(cx, &c->late, c->deadline, http_read(cx, c->x)));
        if (c->n == -ETIMEDOUT && c->x->req.is_begun) c->n = 408;
        if (c->n <= 0) break; // the client has closed or is idle
        answer(c, (int)c->n);
        VOLT_AWAIT(c->n, volt_within(cx, &c->late, VOLT_S(REQUEST_SECONDS),
                                     volt_writev_all(cx, c->fd, c->x->answer, 2)));
        if (c->n < 0) break;
        c->x = http_end(c->x);
    }
    free(c->x);
    volt_sock_shutdown(c->fd, SHUT_WR);
    c->left = LINGER_CAP;
    if (c->is_last && c->n > 0)
        VOLT_AWAIT(volt_within(cx, &c->late, VOLT_S(LINGER_SECONDS),
                               volt_io(cx, c->fd, VOLT_IN, http_drop, &c->left)));
    door_leave(cx, &c->srv->door, c->fd);
    VOLT_END(0);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->in, s->fd, door_accept(cx, &s->door)),
                               VOLT_ARM(&s->quit, volt_signals_next(cx, s->door.signals, NULL))));
        if (!s->in.fired || s->fd < 0) break;
        if (VOLT_GROUP_SPAWN(cx, &s->clients, client_run, (client){ .srv = s, .fd = s->fd }) < 0)
            door_leave(cx, &s->door, s->fd);
    }
    volt_close(cx, s->door.lfd);
    volt_token_cancel(&s->stop);
    VOLT_AWAIT(volt_within(cx, &s->grace, VOLT_S(GRACE_SECONDS), volt_group_wait(cx, &s->clients)));
    VOLT_AWAIT(volt_group_close(cx, &s->clients));
    VOLT_END(s->in.fired ? s->fd : 0);
}

int main(int argc, char **argv) {
    static server s;
    int rc = door_open(&s.door, "127.0.0.1", argc > 1 ? (unsigned)atoi(argv[1]) : 0, CLIENTS_MAX);
    if (rc >= 0) printf("port %d\n", rc), fflush(stdout), rc = volt_run(NULL, server_run, &s);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
