// SPDX-License-Identifier: MIT OR 0BSD
// An HTTP/1.1 server: keep-alive, pipelining, limits on size and time, a graceful end. 06_http.h
// reads requests and writes answers, 03_server.h accepts clients. New: one deadline for a whole
// request, however slowly it arrives; a plain function that returns a poll; a close that loses no
// answer.
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

enum { CLIENTS_MAX = 128, REQUEST_CAP = 4096, REQUEST_SECONDS = 5, GRACE_SECONDS = 5 };
enum { LINGER_SECONDS = 2, LINGER_CAP = 4 << 20 }; // for bytes after the last answer
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
    int fd, sigfd;
} server;

typedef struct {
    volt_frame frame;
    volt_token_link stop;
    volt_timer late;
    volt_time deadline; // for a request, and then for its answer
    server *srv;
    http_request req;
    int64_t n, left; // left: of the bytes read after the last answer
    size_t have, out_len; // bytes in `in` and `out`
    int fd, status, is_last;
    char in[REQUEST_CAP], out[REQUEST_CAP + 256];
} client;

static void answer(client *c) {
    const http_request *r = &c->req;
    int is_head = http_is(r->method, "HEAD"), is_read = is_head || http_is(r->method, "GET");
    int is_echo = http_is(r->path, "/echo") && http_is(r->method, "POST");
    http_text body = is_echo ? r->body : (http_text){ page, sizeof page - 1 };
    c->is_last = c->status != HTTP_OK || r->is_last || volt_token_is_cancelled(&c->srv->stop);
    if (c->status == HTTP_OK && !is_echo && !(is_read && http_is(r->path, "/"))) c->status = 404;
    if (c->status != HTTP_OK) body.at = http_reason(c->status), body.len = strlen(body.at);
    const char *type = body.at == page ? html_field : plain_field;
    c->out_len = http_answer(c->out, c->status, type, body, is_head, c->is_last);
}

static volt_poll receive(volt_cx *cx, client *c) {
    return volt_before(cx, &c->late, c->deadline,
                       volt_read(cx, c->fd, c->in + c->have, sizeof c->in - c->have));
}

static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    while (!c->is_last && c->n >= 0) {
        c->deadline = volt_now() + VOLT_S(REQUEST_SECONDS);
        while ((c->status = http_parse(c->in, c->have, sizeof c->in, &c->req)) == HTTP_MORE) {
            // the stop ends the wait for a request, but not a request that has begun
            VOLT_AWAIT(c->n, c->req.is_begun
                                 ? receive(cx, c)
                                 : volt_with_token(cx, &c->stop, &c->srv->stop, receive(cx, c)));
            if (c->n <= 0) break;
            c->have += (size_t)c->n;
        }
        // the client has closed or is idle
        if (c->status == HTTP_MORE && (c->n != -ETIMEDOUT || !c->req.is_begun)) break;
        if (c->status == HTTP_MORE) c->status = 408;
        answer(c);
        c->deadline = volt_now() + VOLT_S(REQUEST_SECONDS);
        VOLT_AWAIT(c->n, volt_before(cx, &c->late, c->deadline,
                                     volt_write_all(cx, c->fd, c->out, c->out_len)));
        c->have -= c->req.len;
        memmove(c->in, c->in + c->req.len, c->have);
    }
    // A close with bytes unread resets the connection, and the answer may be lost. So the rest is
    // read, within limits.
    volt_sock_shutdown(c->fd, 0, 1);
    c->deadline = volt_now() + VOLT_S(LINGER_SECONDS);
    c->have = 0;
    for (c->left = LINGER_CAP; c->n > 0 && c->left > 0; c->left -= c->n)
        VOLT_AWAIT(c->n, receive(cx, c));
    door_leave(cx, &c->srv->door, c->fd);
    VOLT_END(0);
}

static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->in, s->fd, door_accept(cx, &s->door)),
                               VOLT_ARM(&s->quit, volt_readable(cx, s->sigfd))));
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
    s.sigfd = stop_signals();
    int rc = door_open(&s.door, "127.0.0.1", argc > 1 ? (unsigned)atoi(argv[1]) : 0, CLIENTS_MAX);
    if (rc >= 0) printf("port %d\n", rc), fflush(stdout), rc = volt_run(NULL, server_run, &s);
    if (rc < 0) fprintf(stderr, "%s\n", volt_strerror(rc));
    return rc < 0;
}
