// SPDX-License-Identifier: MIT OR 0BSD
// A name server for 16_cares.c: UDP in a volt task. volt_readable says when there is something to
// receive; the calls themselves are recvfrom and sendto, on a socket that does not block.
//
// It knows every host: the address is 10.0.0.n, where n is the length of the first label. But names
// in `n` do not exist, those in `s` are never answered, and the first query for one in `l` is lost.
#ifndef EXAMPLE_NAME_SERVER_H
#define EXAMPLE_NAME_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { NS_HEAD = 12 }; // bytes before the question

typedef struct {
    volt_frame frame;
    int fd, rc, n_lost;
    unsigned char msg[512];
} name_server;

// Turns a query into its answer, which has the same head and question. Gives the length; 0: none.
static size_t name_server_answer(name_server *s, size_t len) {
    unsigned char *name = s->msg + NS_HEAD, label = name[0], letter = name[1];
    unsigned char record[] = { 0xc0, NS_HEAD, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 0, 0, label };
    size_t end = NS_HEAD + strnlen((char *)name, len - NS_HEAD) + 5; // the 0, type and class
    if (end > len || end + sizeof record > sizeof s->msg) return 0;
    if (letter == 's' || (letter == 'l' && s->n_lost++ == 0)) return 0;
    s->msg[2] |= 0x84; // is an answer, with authority
    s->msg[3] = letter == 'n' ? 3 : 0;
    memset(s->msg + 6, 0, 6); // no records
    if (letter == 'n') return end;
    s->msg[7] = 1; // but one: the name again, type A, class IN, address
    memcpy(s->msg + end, record, sizeof record);
    return end + sizeof record;
}

static void name_server_serve(name_server *s) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t n = recvfrom(s->fd, s->msg, sizeof s->msg, 0, (struct sockaddr *)&from, &size);
    size_t len = n > NS_HEAD ? name_server_answer(s, (size_t)n) : 0;
    if (len) sendto(s->fd, s->msg, len, 0, (struct sockaddr *)&from, size);
}

static volt_poll name_server_run(volt_cx *cx, void *arg) {
    name_server *s = (name_server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_readable(cx, s->fd));
        if (s->rc < 0) break; // -ECANCELED
        name_server_serve(s);
    }
    volt_close(cx, s->fd);
    VOLT_END(0);
}

static int name_server_open(struct sockaddr_in *addr) { // UDP, on loopback; gives its port in *addr
    socklen_t size = sizeof *addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *addr = (struct sockaddr_in){ .sin_family = AF_INET };
    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)addr, size) < 0) return -errno;
    return getsockname(fd, (struct sockaddr *)addr, &size) < 0 ? -errno : fd;
}
#endif
