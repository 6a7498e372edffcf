// SPDX-License-Identifier: MIT OR 0BSD
// Messages and datagrams, on loopback addresses and unix sockets; sockets of the program's own.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "full_listener.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int udp_on(const char *host, const volt_udp_options *options, volt_addr *a) {
    CHECK_EQ(volt_addr_make(a, host, 0), 0);
    int fd = volt_udp_open(a, options);
    CHECK(fd >= 0);
    CHECK_EQ(volt_local_addr(fd, a), 0);
    return fd;
}

// ---- one message

typedef struct {
    volt_frame frame;
    int fd, n;
    volt_addr from;
    char buf[100];
    int64_t rc;
} echoer;
static volt_poll echoer_run(volt_cx *cx, void *arg) {
    echoer *e = (echoer *)arg;
    VOLT_BEGIN(cx, e);
    for (;;) {
        VOLT_AWAIT(e->rc, volt_recvfrom(cx, e->fd, e->buf, sizeof e->buf, 0, &e->from));
        if (e->rc < 0) VOLT_RETURN(e->rc);
        VOLT_AWAIT(e->rc, volt_sendto(cx, e->fd, e->buf, (size_t)e->rc, 0, &e->from));
        CHECK(e->rc >= 0);
    }
    VOLT_END(0);
}
ROOT_TEST(datagram_is_received_once_and_answered, {
    int server, client, i, k;
    volt_addr to, here, from;
    volt_handle h;
    char buf[100];
    int64_t rc;
}) {
    static const char *const hosts[] = { "127.0.0.1", "::1" };
    VOLT_BEGIN(cx, s);
    for (s->k = 0; s->k < 2; s->k++) {
        s->server = udp_on(hosts[s->k], NULL, &s->to);
        s->client = udp_on(hosts[s->k], NULL, &s->here);
        SPAWN(&s->h, echoer_run, ((echoer){ .fd = s->server }));
        for (s->i = 0; s->i < 50; s->i++) { // also of no bytes
            memset(s->buf, s->i, sizeof s->buf);
            VOLT_AWAIT(s->rc, volt_sendto(cx, s->client, s->buf, (size_t)s->i, 0, &s->to));
            CHECK_EQ(s->rc, s->i);
            memset(s->buf, 0xff, sizeof s->buf);
            VOLT_AWAIT(s->rc, volt_recvfrom(cx, s->client, s->buf, sizeof s->buf, 0, &s->from));
            CHECK_EQ(s->rc, s->i);
            CHECK_EQ(memcmp(&s->from, &s->to, sizeof s->to), 0); // to the last byte
            for (int j = 0; j < s->i; j++) CHECK_EQ(s->buf[j], s->i);
        }
        volt_cancel(&s->h);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, -ECANCELED);
        volt_close(cx, s->server);
        volt_close(cx, s->client);
    }
    VOLT_END(0);
}
ROOT_TEST_1(datagram_that_is_too_long_is_an_error_or_its_length, {
    int fd;
    volt_addr a;
    char big[200], buf[100];
    struct iovec part;
    struct msghdr m;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->a);
    for (s->i = 0; s->i < 4; s->i++) {
        memset(s->big, 7, sizeof s->big);
        VOLT_AWAIT(s->rc, volt_sendto(cx, s->fd, s->big, sizeof s->big, 0, &s->a));
        CHECK_EQ(s->rc, sizeof s->big);
    }
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd, s->buf, sizeof s->buf, 0));
    CHECK_EQ(s->rc, -EMSGSIZE);
    CHECK_EQ(s->buf[99], 7); // its beginning
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd, s->buf, sizeof s->buf, MSG_TRUNC | MSG_PEEK));
    CHECK_EQ(s->rc, sizeof s->big);
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd, s->buf, sizeof s->buf, MSG_TRUNC));
    CHECK_EQ(s->rc, sizeof s->big);
    s->part = (struct iovec){ s->buf, sizeof s->buf };
    s->m.msg_iov = &s->part;
    s->m.msg_iovlen = 1;
    VOLT_AWAIT(s->rc, volt_recvmsg(cx, s->fd, &s->m, 0));
    CHECK_EQ(s->rc, sizeof s->buf);
    CHECK(s->m.msg_flags & MSG_TRUNC);
    VOLT_AWAIT(s->rc, volt_sendmsg(cx, s->fd, &s->m, 0));
    CHECK_EQ(s->rc, -EDESTADDRREQ);
    s->m.msg_name = s->buf; // too short for any family
    s->m.msg_namelen = 1;
    VOLT_AWAIT(s->rc, volt_sendmsg(cx, s->fd, &s->m, 0));
    CHECK_EQ(s->rc, -EINVAL);
    volt_close(cx, s->fd);
    VOLT_AWAIT(s->rc, volt_recv(cx, -1, s->buf, 1, 0));
    CHECK_EQ(s->rc, -EBADF);
    VOLT_END(0);
}
ROOT_TEST_1(refused_datagram_is_reported_once, {
    int fd, other;
    volt_addr a, gone, from;
    char c;
    int64_t rc;
    int i;
}) {
    VOLT_BEGIN(cx, s);
    s->other = udp_on("127.0.0.1", NULL, &s->gone);
    volt_close(cx, s->other);
    s->fd = udp_on("127.0.0.1", NULL, &s->a);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->gone));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_send(cx, s->fd, "x", 1, 0));
    CHECK_EQ(s->rc, 1);
    s->from = s->a;
    VOLT_AWAIT(s->rc, volt_recvfrom(cx, s->fd, &s->c, 1, 0, &s->from));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK(volt_addr_equal(&s->from, &s->a)); // none was received: unchanged
    VOLT_AWAIT(s->rc, volt_send(cx, s->fd, "x", 1, 0));
    CHECK_EQ(s->rc, 1);
    s->rc = 0;
    for (s->i = 0; s->i < 1000 && s->rc == 0; s->i++) s->rc = volt_sock_error(s->fd);
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK_EQ(volt_sock_error(s->fd), 0);
    CHECK_EQ(volt_sock_error(-1), -EBADF);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
// The error queue and the data of a socket are two things, although epoll reports both as readable.
// Each question comes when the server has found both empty.
typedef struct {
    volt_frame frame;
    int fd;
    volt_arm data, error;
    char buf[16], error_buf[16];
    struct msghdr m;
    struct iovec part;
    volt_addr from;
    int64_t rc;
} error_aware;
static volt_poll error_aware_run(volt_cx *cx, void *arg) {
    error_aware *e = (error_aware *)arg;
    VOLT_BEGIN(cx, e);
    for (;;) {
        e->part = (struct iovec){ e->error_buf, sizeof e->error_buf };
        e->m = (struct msghdr){ .msg_iov = &e->part, .msg_iovlen = 1 };
        VOLT_AWAIT(e->rc, VOLT_SELECT(
            VOLT_ARM(&e->data, volt_recvfrom(cx, e->fd, e->buf, sizeof e->buf, 0, &e->from)),
            VOLT_ARM(&e->error, volt_recvmsg(cx, e->fd, &e->m, MSG_ERRQUEUE))));
        if (e->rc < 0) VOLT_RETURN(e->rc);
        CHECK(e->data.fired && e->data.value == 5);
        VOLT_AWAIT(e->rc, volt_sendto(cx, e->fd, e->buf, 5, 0, &e->from));
        CHECK_EQ(e->rc, 5);
    }
    VOLT_END(0);
}
ROOT_TEST_1(data_is_received_beside_a_wait_for_the_error_queue, {
    int server, client, i;
    volt_addr to, here;
    volt_handle h;
    volt_timer limit;
    char buf[16];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->server = udp_on("127.0.0.1", NULL, &s->to);
    s->client = udp_on("127.0.0.1", NULL, &s->here);
    SPAWN(&s->h, error_aware_run, ((error_aware){ .fd = s->server }));
    for (s->i = 0; s->i < 20; s->i++) { // whichever arm is polled first
        VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1),
                                      volt_recv(cx, s->client, s->buf, sizeof s->buf, 0)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        VOLT_AWAIT(s->rc, volt_sendto(cx, s->client, "hello", 5, 0, &s->to));
        VOLT_AWAIT(s->rc, volt_recv(cx, s->client, s->buf, sizeof s->buf, 0));
        CHECK_EQ(s->rc, 5);
    }
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_close(cx, s->server);
    volt_close(cx, s->client);
    VOLT_END(0);
}
ROOT_TEST_1(error_queue_is_read_although_there_is_no_data, {
    int fd, one;
    volt_addr nowhere, here;
    char buf[64], control[512];
    struct msghdr m;
    struct iovec part;
    volt_timer limit;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->nowhere);
    volt_close(cx, s->fd); // a port without a socket
    s->fd = udp_on("127.0.0.1", NULL, &s->here);
    s->one = 1;
    CHECK_EQ(setsockopt(s->fd, IPPROTO_IP, IP_RECVERR, &s->one, sizeof s->one), 0);
    VOLT_AWAIT(s->rc, volt_sendto(cx, s->fd, "hello", 5, 0, &s->nowhere));
    CHECK_EQ(s->rc, 5);
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd, s->buf, sizeof s->buf, 0));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->limit, VOLT_MS(1),
                                  volt_recv(cx, s->fd, s->buf, sizeof s->buf, 0)));
    CHECK_EQ(s->rc, -ETIMEDOUT); // nothing is there, and the event is used up
    s->part = (struct iovec){ s->buf, sizeof s->buf };
    s->m = (struct msghdr){ .msg_iov = &s->part, .msg_iovlen = 1, .msg_control = s->control,
                            .msg_controllen = sizeof s->control };
    VOLT_AWAIT(s->rc, volt_recvmsg(cx, s->fd, &s->m, MSG_ERRQUEUE));
    CHECK(s->rc == 5 && s->m.msg_flags & MSG_ERRQUEUE);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
ROOT_TEST_1(message_on_a_file_that_is_no_socket_gives_enotsock, {
    int fd[2];
    char c;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[0], &s->c, 1, 0));
    CHECK_EQ(s->rc, -ENOTSOCK);
    VOLT_AWAIT(s->rc, volt_send(cx, s->fd[1], &s->c, 1, 0));
    CHECK_EQ(s->rc, -ENOTSOCK);
    CHECK_EQ(fcntl(s->fd[0], F_GETFL) & O_NONBLOCK, 0); // its mode is not changed
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// The kinds of unix sockets; a closed peer ends the wait of a connection, and raises no signal.
ROOT_TEST_1(messages_go_through_unix_sockets, {
    int fd[2], i;
    char buf[10];
    int64_t rc;
}) {
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        CHECK_EQ(socketpair(AF_UNIX, types[s->i] | SOCK_CLOEXEC, 0, s->fd), 0); // blocking
        VOLT_AWAIT(s->rc, volt_send(cx, s->fd[0], "abc", 3, 0));
        CHECK_EQ(s->rc, 3);
        VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[1], s->buf, sizeof s->buf, MSG_PEEK));
        CHECK_EQ(s->rc, 3);
        VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[1], s->buf, 2, 0));
        CHECK_EQ(s->rc, types[s->i] == SOCK_STREAM ? 2 : -EMSGSIZE);
        CHECK_EQ(fcntl(s->fd[1], F_GETFL) & O_NONBLOCK, 0); // each call alone does not block
        volt_close(cx, s->fd[1]);
        VOLT_AWAIT(s->rc, volt_send(cx, s->fd[0], "abc", 3, 0));
        CHECK_EQ(s->rc, types[s->i] == SOCK_DGRAM ? -ECONNREFUSED : -EPIPE);
        volt_close(cx, s->fd[0]);
    }
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int fd, is_send;
    char buf[1000];
    int64_t rc;
} waiting;
static volt_poll waiting_run(volt_cx *cx, void *arg) {
    waiting *w = (waiting *)arg;
    VOLT_BEGIN(cx, w);
    do VOLT_AWAIT(w->rc, w->is_send ? volt_send(cx, w->fd, w->buf, sizeof w->buf, 0)
                                    : volt_recv(cx, w->fd, w->buf, sizeof w->buf, 0));
    while (w->is_send && w->rc > 0);
    VOLT_END(w->rc);
}
ROOT_TEST(messages_that_wait_end_when_cancelled_or_closed, {
    int fd[2], k, i;
    volt_handle h[2];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    for (s->k = 0; s->k < 2; s->k++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->fd), 0);
        for (int i = 0; i < 2; i++)
            SPAWN(&s->h[i], waiting_run, ((waiting){ .fd = s->fd[0], .is_send = s->k }));
        for (s->i = 0; s->i < 1000; s->i++) VOLT_AWAIT(volt_yield(cx));
        volt_cancel(&s->h[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
        CHECK_EQ(s->rc, -ECANCELED);
        volt_close(cx, s->fd[0]);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
        CHECK_EQ(s->rc, -EBADF);
        volt_close(cx, s->fd[1]);
    }
    VOLT_END(0);
}

// ---- several messages

enum { MANY = 20 };
typedef struct batch {
    struct mmsghdr v[MANY];
    struct iovec part[MANY];
    char buf[MANY][16];
} batch;
static void batch_init(batch *b) {
    memset(b, 0, sizeof *b);
    for (int i = 0; i < MANY; i++) {
        memset(b->buf[i], i, sizeof b->buf[i]);
        b->part[i] = (struct iovec){ b->buf[i], (size_t)(i % 16) };
        b->v[i].msg_hdr.msg_iov = &b->part[i];
        b->v[i].msg_hdr.msg_iovlen = 1;
    }
}
ROOT_TEST_1(several_messages_move_at_once, {
    int fd, other, n;
    volt_addr a, b;
    batch out, in;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->a);
    s->other = udp_on("127.0.0.1", NULL, &s->b);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->b));
    VOLT_AWAIT(s->rc, volt_recvmmsg(cx, s->other, s->in.v, 0, 0));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_sendmmsg(cx, s->other, s->in.v, 0, 0));
    CHECK_EQ(s->rc, 0);
    batch_init(&s->out);
    VOLT_AWAIT(s->rc, volt_sendmmsg(cx, s->fd, s->out.v, MANY, 0));
    CHECK_EQ(s->rc, MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(s->out.v[i].msg_len, i % 16);
    while (s->n < MANY) {
        batch_init(&s->in);
        for (int i = 0; i < MANY; i++) s->in.part[i].iov_len = 16;
        VOLT_AWAIT(s->rc, volt_recvmmsg(cx, s->other, s->in.v, MANY, 0));
        CHECK(s->rc > 0 && s->rc <= MANY - s->n);
        for (int i = 0; i < s->rc; i++, s->n++) {
            CHECK_EQ(s->in.v[i].msg_len, s->n % 16);
            for (int j = 0; j < s->n % 16; j++) CHECK_EQ(s->in.buf[i][j], s->n);
        }
    }
    volt_close(cx, s->other);
    volt_close(cx, s->fd);
    VOLT_END(0);
}

// ---- what a datagram carries beside its bytes

typedef struct carrier {
    struct msghdr m;
    struct iovec part;
    volt_addr peer;
    char buf[16];
    volt_msg_control control;
} carrier;
static struct msghdr *carrier_init(carrier *c, size_t len) {
    memset(&c->m, 0, sizeof c->m);
    c->part = (struct iovec){ c->buf, len };
    c->m.msg_iov = &c->part;
    c->m.msg_iovlen = 1;
    c->m.msg_control = c->control.bytes;
    c->m.msg_controllen = sizeof c->control;
    c->m.msg_name = c->peer.sa_;
    c->m.msg_namelen = sizeof c->peer.sa_;
    return &c->m;
}
ROOT_TEST_1(message_carries_its_local_address_and_options, {
    int fd, client, k;
    volt_addr a, to, here;
    carrier in, out;
    volt_msg_info info;
    int64_t rc;
}) {
    // a wildcard socket, asked at different addresses; of a client of either family
    static const char *const hosts[] = { "127.0.0.1", "127.0.0.9", "::1" };
    VOLT_BEGIN(cx, s);
    s->fd = volt_udp_open(NULL, &(volt_udp_options){ .has_info = 1 });
    CHECK(s->fd >= 0);
    CHECK_EQ(volt_local_addr(s->fd, &s->a), 0);
    for (s->k = 0; s->k < 3; s->k++) {
        s->client = udp_on(s->k < 2 ? "127.0.0.1" : "::1", NULL, &s->here);
        CHECK_EQ(volt_addr_make(&s->to, hosts[s->k], (unsigned)volt_addr_port(&s->a)), 0);
        CHECK_EQ(volt_set_tos(s->client, 0x2c), 0);
        CHECK_EQ(volt_set_ttl(s->client, 33), 0);
        VOLT_AWAIT(s->rc, volt_sendto(cx, s->client, "hello", 5, 0, &s->to));
        VOLT_AWAIT(s->rc, volt_recvmsg(cx, s->fd, carrier_init(&s->in, 16), 0));
        CHECK_EQ(s->rc, 5);
        CHECK_EQ(s->in.m.msg_flags & MSG_CTRUNC, 0);
        volt_msg_info_get(&s->in.m, &s->info);
        CHECK_EQ(s->info.has, VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE | VOLT_MSG_TOS | VOLT_MSG_TTL);
        CHECK_EQ(s->info.if_index, if_nametoindex("lo"));
        CHECK_EQ(volt_addr_make(&s->to, hosts[s->k], 0), 0);
        CHECK(volt_addr_equal(&s->info.local, &s->to)); // mapped or not
        CHECK_EQ(s->info.tos, 0x2c);
        CHECK_EQ(s->info.ttl, 33);
        // the answer comes from the address that was asked
        volt_msg_info answer;
        volt_msg_info_reply(&s->info, &answer);
        s->out.peer = s->in.peer;
        carrier_init(&s->out, 5);
        s->out.m.msg_namelen = s->in.m.msg_namelen;
        CHECK_EQ(volt_msg_info_put(&s->out.m, &s->out.control, &answer), 0);
        VOLT_AWAIT(s->rc, volt_sendmsg(cx, s->fd, &s->out.m, 0));
        CHECK_EQ(s->rc, 5);
        VOLT_AWAIT(s->rc, volt_recvfrom(cx, s->client, s->in.buf, 16, 0, &s->here));
        CHECK_EQ(s->rc, 5);
        CHECK_EQ(volt_addr_make(&s->to, hosts[s->k], (unsigned)volt_addr_port(&s->a)), 0);
        CHECK(volt_addr_equal(&s->here, &s->to));
        volt_close(cx, s->client);
    }
    volt_close(cx, s->fd);
    VOLT_END(0);
}
TEST(message_control_data_is_as_said) {
    static const char *const hosts[] = { "::1", "127.0.0.1", NULL };
    carrier c;
    for (int i = 0; i < 3; i++) {
        volt_msg_info info = { .has = VOLT_MSG_INTERFACE | VOLT_MSG_TOS | VOLT_MSG_TTL |
                                      VOLT_MSG_SEGMENT, .if_index = 1, .tos = 3, .ttl = 4 };
        if (hosts[i]) info.has |= VOLT_MSG_LOCAL;
        if (hosts[i]) CHECK_EQ(volt_addr_make(&info.local, hosts[i], 0), 0);
        CHECK_EQ(volt_msg_info_put(carrier_init(&c, 0), &c.control, &info), 0);
        CHECK(c.m.msg_controllen > 0 && c.m.msg_controllen <= sizeof c.control);
    }
    volt_msg_info none = { 0 }, bad = { .has = VOLT_MSG_LOCAL };
    CHECK_EQ(volt_msg_info_put(carrier_init(&c, 0), &c.control, &none), 0);
    CHECK(c.m.msg_controllen == 0 && c.m.msg_control == NULL);
    CHECK_EQ(volt_addr_parse(&bad.local, "unix:/tmp/x"), 0);
    CHECK_EQ(volt_msg_info_put(carrier_init(&c, 0), &c.control, &bad), -EINVAL);
}

// The address that a client has asked tells which interface it belongs to, where that matters.
TEST(local_address_has_a_scope_where_it_needs_one) {
    static const struct {
        const char *host;
        uint32_t has, scope;
    } cases[] = { { "fe80::1", VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE, 3 },
                  { "::1", VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE, 0 },
                  { "ff02::1", VOLT_MSG_INTERFACE, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        carrier c;
        struct in6_pktinfo asked = { .ipi6_ifindex = 3 };
        volt_msg_info info, answer;
        carrier_init(&c, 0);
        CHECK_EQ(inet_pton(AF_INET6, cases[i].host, &asked.ipi6_addr), 1);
        struct cmsghdr *item = CMSG_FIRSTHDR(&c.m);
        CHECK(item);
        item->cmsg_level = IPPROTO_IPV6;
        item->cmsg_type = IPV6_PKTINFO;
        item->cmsg_len = CMSG_LEN(sizeof asked);
        memcpy(CMSG_DATA(item), &asked, sizeof asked);
        c.m.msg_controllen = CMSG_SPACE(sizeof asked);
        volt_msg_info_get(&c.m, &info);
        CHECK_EQ(info.has, cases[i].has);
        CHECK_EQ(info.if_index, 3);
        volt_msg_info_reply(&info, &answer);
        CHECK_EQ(answer.has, cases[i].has & (cases[i].scope ? ~0u : ~(uint32_t)VOLT_MSG_INTERFACE));
        if (!(info.has & VOLT_MSG_LOCAL)) continue;
        struct sockaddr_in6 local;
        memcpy(&local, info.local.sa_, sizeof local);
        CHECK_EQ(local.sin6_scope_id, cases[i].scope);
    }
}

// The interface is for an address that belongs to it alone; without one, the route decides.
TEST(reply_names_interface_only_if_it_is_known_and_needed) {
    static const char *const hosts[] = { "fe80::1%1", "::1", "127.0.0.1" };
    for (int i = 0; i < 6; i++) {
        volt_msg_info info = { .has = VOLT_MSG_LOCAL | VOLT_MSG_TOS, .if_index = 7, .tos = 1 };
        volt_msg_info answer;
        int is_known = i < 3;
        if (is_known) info.has |= VOLT_MSG_INTERFACE;
        CHECK_EQ(volt_addr_make(&info.local, hosts[i % 3], 0), 0);
        memset(&answer, 0xff, sizeof answer);
        volt_msg_info_reply(&info, &answer);
        uint32_t has = i == 0 ? VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE : VOLT_MSG_LOCAL;
        CHECK_EQ(answer.has, has);
        CHECK_EQ(answer.if_index, i == 0 ? 7 : 0);
        CHECK_EQ(answer.tos, 0);
        CHECK(volt_addr_equal(&answer.local, &info.local));
    }
}
// An item that is shorter than its own head would be the next one of itself.
TEST(control_data_ends_at_item_without_room_for_its_head) {
    for (size_t len = 0; len <= CMSG_LEN(sizeof(int)); len++) {
        const int value = 5;
        carrier c;
        volt_msg_info info;
        carrier_init(&c, 0);
        struct cmsghdr *item = CMSG_FIRSTHDR(&c.m);
        for (int k = 0; k < 2; k++) {
            item->cmsg_level = IPPROTO_IP;
            item->cmsg_type = k ? IP_TTL : IP_TOS;
            item->cmsg_len = CMSG_LEN(sizeof value);
            memcpy(CMSG_DATA(item), &value, sizeof value);
            item = (struct cmsghdr *)(void *)((char *)item + CMSG_SPACE(sizeof value));
        }
        c.m.msg_controllen = 2 * CMSG_SPACE(sizeof value);
        CMSG_FIRSTHDR(&c.m)->cmsg_len = (__typeof__(item->cmsg_len))len;
        volt_msg_info_get(&c.m, &info);
        if (len < sizeof *item) CHECK_EQ(info.has, 0);
        if (len == CMSG_LEN(sizeof value)) CHECK_EQ(info.has, VOLT_MSG_TOS | VOLT_MSG_TTL);
    }
}

// Items of the same number mean something else at another level.
TEST(control_data_of_other_kinds_is_skipped) {
    static const struct {
        int level, type;
        uint32_t has;
    } items[] = { { IPPROTO_IP, IP_TTL, VOLT_MSG_TTL },
                  { IPPROTO_IPV6, IPV6_HOPLIMIT, VOLT_MSG_TTL },
                  { IPPROTO_IP, IP_TOS, VOLT_MSG_TOS },
                  { IPPROTO_IPV6, IPV6_TCLASS, VOLT_MSG_TOS },
                  { IPPROTO_UDP, 104, VOLT_MSG_SEGMENT }, // UDP_GRO
                  { IPPROTO_UDP, 103, 0 },
                  { IPPROTO_IP, 104, 0 },
                  { IPPROTO_IPV6, IP_TTL, 0 },
                  { IPPROTO_IPV6, IP_TOS, 0 },
                  { IPPROTO_IPV6, IP_PKTINFO, 0 },
                  { IPPROTO_IP, IPV6_HOPLIMIT, 0 },
                  { IPPROTO_IP, IPV6_TCLASS, 0 },
                  { IPPROTO_IP, IPV6_PKTINFO, 0 },
                  { SOL_SOCKET, IP_TTL, 0 },
                  { SOL_SOCKET, IP_TOS, 0 },
                  { SOL_SOCKET, 104, 0 },
                  { SOL_SOCKET, -1, 0 } }; // without data
    enum { N_ITEMS = sizeof items / sizeof items[0] };
    for (size_t i = 0; i < 2 * N_ITEMS; i++) {
        carrier c;
        volt_msg_info info;
        const int values[2] = { 7, 5 };
        uint32_t has = items[i % N_ITEMS].has;
        int is_last = i < N_ITEMS; // or one that is known follows
        carrier_init(&c, 0);
        struct cmsghdr *item = CMSG_FIRSTHDR(&c.m);
        for (int k = 0; k < 2; k++) {
            item->cmsg_level = k ? IPPROTO_IP : items[i % N_ITEMS].level;
            item->cmsg_type = k ? IP_TTL : items[i % N_ITEMS].type;
            size_t n = item->cmsg_type < 0 ? 0 : sizeof values[k];
            item->cmsg_len = (socklen_t)CMSG_LEN(n);
            memcpy(CMSG_DATA(item), &values[k], n);
            item = (struct cmsghdr *)(void *)((char *)item + CMSG_SPACE(n));
            if (k == !is_last) c.m.msg_controllen = (socklen_t)((char *)item - (char *)&c.control);
        }
        volt_msg_info_get(&c.m, &info);
        CHECK_EQ(info.has, is_last ? has : has | VOLT_MSG_TTL);
        CHECK_EQ(info.ttl, !is_last ? 5 : has == VOLT_MSG_TTL ? 7 : 0);
        CHECK_EQ(info.tos, has == VOLT_MSG_TOS ? 7 : 0);
        CHECK_EQ(info.segment, has == VOLT_MSG_SEGMENT ? 7 : 0);
    }
}

// The kernel cuts the last item where the room ends: it says nothing then.
TEST(control_data_that_is_cut_is_not_read) {
    volt_addr a;
    unsigned len;
    int fd = udp_on("127.0.0.1", &(volt_udp_options){ .has_info = 1 }, &a);
    const struct sockaddr *sa = volt_addr_sockaddr(&a, &len);
    for (size_t n = 0; n < 100; n++) {
        char byte, *room = (char *)malloc(n); // so that a read beyond it is found
        struct iovec part = { &byte, 1 };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
                            .msg_controllen = (socklen_t)n };
        volt_msg_info info;
        CHECK_EQ(sendto(fd, "x", 1, 0, sa, len), 1);
        CHECK_EQ(recvmsg(fd, &m, 0), 1);
        volt_msg_info_get(&m, &info);
        uint32_t want = 0; // the kernel's order: address, TTL, TOS
        if (n >= CMSG_LEN(sizeof(struct in_pktinfo))) want |= VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE;
        size_t at = CMSG_SPACE(sizeof(struct in_pktinfo));
        if (n >= at + CMSG_LEN(sizeof(int))) want |= VOLT_MSG_TTL;
        at += CMSG_SPACE(sizeof(int));
        if (n >= at + CMSG_LEN(1)) want |= VOLT_MSG_TOS;
        else want |= VOLT_MSG_INFO_IS_CUT;
        CHECK_EQ(info.has, want);
        free(room);
    }
    close(fd);
}

// ---- segments

enum { BULK = 100000, SEGMENT = 1200 };
typedef struct {
    volt_frame frame;
    int fd;
    size_t n, n_calls, n_messages, segment;
    volt_addr from;
    unsigned char *buf;
    int64_t rc;
} bulk_receiver;
static unsigned char pattern(size_t at) { return (unsigned char)((at * 31) >> 3 ^ at >> 11); }
static volt_poll bulk_receiver_run(volt_cx *cx, void *arg) {
    bulk_receiver *r = (bulk_receiver *)arg;
    VOLT_BEGIN(cx, r);
    while (r->n < BULK) {
        VOLT_AWAIT(r->rc, volt_recv_segments(cx, r->fd, r->buf, 65536, &r->segment, &r->from,
                                             NULL));
        CHECK(r->rc > 0);
        CHECK(r->segment == SEGMENT || (int64_t)r->segment == r->rc);
        for (size_t i = 0; i < (size_t)r->rc; i++) CHECK_EQ(r->buf[i], pattern(r->n + i));
        r->n_messages += ((size_t)r->rc + r->segment - 1) / r->segment;
        r->n += (size_t)r->rc;
        r->n_calls++;
    }
    CHECK_EQ(r->n_messages, (BULK + SEGMENT - 1) / SEGMENT);
    VOLT_END((int64_t)r->n_calls);
}
ROOT_TEST_1(segments_arrive_as_datagrams, {
    int fd, client, is_joined;
    volt_addr to, here;
    volt_handle h;
    unsigned char *data, *room;
    size_t at, n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->data = (unsigned char *)malloc(BULK);
    s->room = (unsigned char *)malloc(65536);
    for (size_t i = 0; i < BULK; i++) s->data[i] = pattern(i);
    for (s->is_joined = 0; s->is_joined < 2; s->is_joined++) {
        volt_udp_options options = { .is_joined = (unsigned)s->is_joined,
                                     .receive_bytes = 1 << 20 };
        s->fd = udp_on("127.0.0.1", &options, &s->to);
        s->client = udp_on("127.0.0.1", NULL, &s->here);
        SPAWN(&s->h, bulk_receiver_run, ((bulk_receiver){ .fd = s->fd, .buf = s->room }));
        for (s->at = 0; s->at < BULK; s->at += (size_t)s->rc) {
            s->n = BULK - s->at < 50 * SEGMENT ? BULK - s->at : 50 * SEGMENT;
            VOLT_AWAIT(s->rc, volt_send_segments(cx, s->client, s->data + s->at, s->n, SEGMENT,
                                                 &s->to));
            CHECK(s->rc > 0 && (s->rc % SEGMENT == 0 || s->at + (size_t)s->rc == BULK));
        }
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK(s->rc > 0);
        volt_close(cx, s->fd);
        volt_close(cx, s->client);
    }
    free(s->data);
    free(s->room);
    VOLT_END(0);
}
// A unix socket skips the control data of UDP_SEGMENT, whatever a UDP socket has shown before.
ROOT_TEST_1(segments_of_a_unix_socket_are_datagrams, {
    int fd[2], udp, i;
    volt_addr a;
    char out[300], in[400];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->udp = udp_on("127.0.0.1", NULL, &s->a);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->udp, s->out, 300, 100, &s->a));
    CHECK_EQ(s->rc, 300);
    CHECK_EQ(volt_socketpair(SOCK_DGRAM, s->fd), 0);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd[0], s->out, 300, 100, NULL));
    CHECK_EQ(s->rc, 300);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[1], s->in, sizeof s->in, 0));
        CHECK_EQ(s->rc, 100);
    }
    volt_close(cx, s->udp);
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(0);
}
// The receiver's buffer is full soon, and the kernel drops the rest: only the bound ends the poll.
ROOT_TEST_1(one_call_sends_a_bounded_number_of_segments, {
    int fd, client;
    volt_addr to, here;
    char *data;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->to);
    s->client = udp_on("127.0.0.1", NULL, &s->here);
    s->data = (char *)calloc(1, 5000);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->client, s->data, 5000, 1, &s->to));
    CHECK(s->rc == 16 * 64 || s->rc <= 16 * 16); // joined or apart
    CHECK(s->rc > 0);
    free(s->data);
    volt_close(cx, s->fd);
    volt_close(cx, s->client);
    VOLT_END(0);
}
ROOT_TEST_1(segments_of_a_bad_size_are_refused, {
    int fd;
    volt_addr a;
    char *data;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->a);
    s->data = (char *)calloc(1, 70000);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd, s->data, 100, 0, &s->a));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd, s->data, 70000, 70000, &s->a));
    CHECK_EQ(s->rc, -EMSGSIZE);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd, s->data, 70000, 65530, &s->a));
    CHECK_EQ(s->rc, -EMSGSIZE);
    free(s->data);
    volt_close(cx, s->fd);
    VOLT_END(0);
}
ROOT_TEST_1(buffer_of_no_bytes_is_sent_as_an_empty_datagram, {
    int fd;
    volt_addr a, from;
    size_t segment;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", NULL, &s->a);
    VOLT_AWAIT(s->rc, volt_send_segments(cx, s->fd, NULL, 0, 10, &s->a));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_recv_segments(cx, s->fd, s->buf, sizeof s->buf, &s->segment, &s->from,
                                         NULL));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->segment, 1);
    CHECK(volt_addr_equal(&s->from, &s->a));
    volt_close(cx, s->fd);
    VOLT_END(0);
}

ROOT_TEST_1(segments_are_received_with_their_information, {
    int fd, i;
    volt_addr a, from, here;
    size_t segment;
    volt_msg_info info;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->fd = udp_on("127.0.0.1", &(volt_udp_options){ .has_info = 1 }, &s->a);
    for (s->i = 0; s->i < 2; s->i++) {
        VOLT_AWAIT(s->rc, volt_sendto(cx, s->fd, "hello", 5, 0, &s->a));
        CHECK_EQ(s->rc, 5);
        memset(&s->info, 0xff, sizeof s->info);
        VOLT_AWAIT(s->rc, volt_recv_segments(cx, s->fd, s->buf, sizeof s->buf, &s->segment,
                                             &s->from, s->i ? &s->info : NULL));
        CHECK_EQ(s->rc, 5);
        CHECK_EQ(s->segment, 5);
    }
    CHECK_EQ(s->info.has, VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE | VOLT_MSG_TOS | VOLT_MSG_TTL);
    CHECK_EQ(volt_addr_make(&s->here, "127.0.0.1", 0), 0);
    CHECK(volt_addr_equal(&s->info.local, &s->here));
    CHECK_EQ(s->info.if_index, if_nametoindex("lo"));
    volt_close(cx, s->fd);
    VOLT_AWAIT(s->rc, volt_recv_segments(cx, s->fd, s->buf, sizeof s->buf, &s->segment, NULL,
                                         &s->info));
    CHECK(s->rc < 0);
    CHECK_EQ(s->info.has, 0); // not those of before
    VOLT_END(0);
}

// ---- options

static int option_of(int fd, int level, int name) {
    int value = -1;
    socklen_t len = sizeof value;
    CHECK_EQ(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}
TEST(udp_options_are_set) {
    volt_addr a;
    volt_udp_options o = { .is_reuseport = 1, .is_reuseaddr = 1, .is_broadcast = 1,
                           .send_bytes = 50000, .receive_bytes = 60000, .device = "lo" };
    int fd = udp_on("127.0.0.1", &o, &a);
    CHECK_EQ(option_of(fd, SOL_SOCKET, SO_REUSEPORT), 1);
    CHECK_EQ(option_of(fd, SOL_SOCKET, SO_REUSEADDR), 1);
    CHECK_EQ(option_of(fd, SOL_SOCKET, SO_BROADCAST), 1);
    CHECK_EQ(option_of(fd, SOL_SOCKET, SO_SNDBUF), 100000); // the kernel doubles it
    CHECK_EQ(option_of(fd, SOL_SOCKET, SO_RCVBUF), 120000);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    int other = volt_udp_open(&a, &o); // shares the port
    CHECK(other >= 0);
    close(other);
    CHECK_EQ(volt_udp_open(&a, NULL), -EADDRINUSE);
    other = udp_on("127.0.0.1", NULL, &a); // none is set that was not asked for
    CHECK_EQ(option_of(other, SOL_SOCKET, SO_REUSEPORT), 0);
    CHECK_EQ(option_of(other, SOL_SOCKET, SO_REUSEADDR), 0);
    CHECK_EQ(option_of(other, SOL_SOCKET, SO_BROADCAST), 0);
    CHECK_EQ(option_of(other, IPPROTO_IP, IP_PKTINFO), 0);
    CHECK_EQ(option_of(other, IPPROTO_IP, IP_RECVTTL), 0);
    CHECK_EQ(option_of(other, IPPROTO_IP, IP_RECVTOS), 0);
    close(other);
    CHECK_EQ(volt_addr_parse(&a, "unix:/tmp/x"), 0);
    CHECK_EQ(volt_udp_open(&a, NULL), -EAFNOSUPPORT);
    close(fd);
}
TEST(udp_sockets_without_an_address_get_different_ports) {
    volt_addr a, b;
    int fd = volt_udp_open(NULL, NULL), other = volt_udp_open(NULL, NULL);
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    CHECK_EQ(volt_local_addr(other, &b), 0);
    CHECK(volt_addr_port(&a) != volt_addr_port(&b));
    close(fd);
    close(other);
}
TEST(multicast_is_joined_left_and_limited) {
    static const char *const hosts[] = { "127.0.0.1", "::1" };
    static const char *const groups[] = { "239.1.2.3", "ff05::1234" };
    unsigned lo = if_nametoindex("lo");
    CHECK(lo > 0);
    for (int i = 0; i < 2; i++) {
        volt_addr a, group;
        int fd = udp_on(hosts[i], NULL, &a);
        CHECK_EQ(volt_addr_make(&group, groups[i], 0), 0);
        CHECK_EQ(volt_mcast_join(fd, &group, lo, NULL), 0);
        CHECK_EQ(volt_mcast_join(fd, &group, lo, NULL), -EADDRINUSE);
        CHECK_EQ(volt_mcast_leave(fd, &group, lo, NULL), 0);
        CHECK_EQ(volt_mcast_leave(fd, &group, lo, NULL), -EADDRNOTAVAIL);
        CHECK_EQ(volt_mcast_join(fd, &group, lo, &a), 0);
        CHECK_EQ(volt_mcast_leave(fd, &group, lo, &a), 0);
        CHECK_EQ(volt_set_mcast(fd, lo, 7, 1), 0);
        CHECK_EQ(option_of(fd, i ? IPPROTO_IPV6 : IPPROTO_IP,
                           i ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL), 7);
        CHECK_EQ(volt_mcast_join(fd, &group, 987654, NULL), -ENODEV);
        CHECK_EQ(volt_mcast_join(fd, &a, lo, &a), -EINVAL); // not the address of a group
        // the first option that fails is the last one that is set
        CHECK(volt_set_mcast(fd, 987654, 9, 0) < 0);
        CHECK_EQ(option_of(fd, i ? IPPROTO_IPV6 : IPPROTO_IP,
                           i ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL), 7);
        CHECK_EQ(volt_set_mcast(fd, lo, 256, 0), -EINVAL);
        CHECK_EQ(option_of(fd, i ? IPPROTO_IPV6 : IPPROTO_IP,
                           i ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP), 1);
        CHECK_EQ(volt_set_mcast(fd, lo, 9, 0), 0);
        CHECK_EQ(option_of(fd, i ? IPPROTO_IPV6 : IPPROTO_IP,
                           i ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP), 0);
        close(fd);
    }
    volt_addr a;
    CHECK_EQ(volt_addr_parse(&a, "unix:@x"), 0);
    CHECK_EQ(volt_mcast_join(0, &a, 0, NULL), -EAFNOSUPPORT);
}

// ---- sockets of the program's own

// A kernel without SO_PROTOCOL does not say so: there a socket stays in an attempt that is over.
static int is_known_as_tcp(volt_cx *cx, int fd) {
    return (volt__fd_lookup(&cx->rt_->fds, fd)->flags & VOLT__FD_STREAM) != 0;
}
ROOT_TEST(connect_on_and_from_use_the_given_socket_and_address, {
    int lfd, fd, got;
    volt_addr a, from, here, peer;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // blocking
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->got, volt_accept_from(cx, s->lfd, &s->peer));
    CHECK(s->got >= 0);
    CHECK_EQ(volt_local_addr(s->fd, &s->here), 0);
    CHECK(volt_addr_equal(&s->here, &s->peer));
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a));
    if (is_known_as_tcp(cx, s->fd)) CHECK_EQ(s->rc, -EISCONN);
    volt_close(cx, s->got);
    volt_close(cx, s->fd);
    CHECK_EQ(volt_addr_make(&s->from, "127.0.0.77", 0), 0);
    VOLT_AWAIT(s->fd, volt_connect_from(cx, &s->a, &s->from));
    CHECK(s->fd >= 0);
    VOLT_AWAIT(s->got, volt_accept_from(cx, s->lfd, &s->peer));
    CHECK_EQ(volt_addr_set_port(&s->from, (unsigned)volt_addr_port(&s->peer)), 0);
    CHECK(volt_addr_equal(&s->from, &s->peer));
    volt_close(cx, s->got);
    volt_close(cx, s->fd);
    volt_close(cx, s->lfd);
    // refused: the own socket stays open
    s->fd = volt_sock_open(AF_INET, SOCK_STREAM, 0);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a));
    CHECK_EQ(s->rc, -ECONNREFUSED);
    CHECK(fcntl(s->fd, F_GETFD) >= 0);
    // and the next attempt is a new one
    s->lfd = volt_listen_addr(&s->a, NULL);
    CHECK(s->lfd >= 0);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a));
    if (is_known_as_tcp(cx, s->fd)) CHECK_EQ(s->rc, 0);
    volt_close(cx, s->lfd);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, s->fd, &s->a)); // no listener any more
    if (is_known_as_tcp(cx, s->fd)) CHECK_EQ(s->rc, -EISCONN);
    volt_close(cx, s->fd);
    CHECK_EQ(volt_addr_make(&s->from, "::1", 0), 0);
    VOLT_AWAIT(s->rc, volt_connect_from(cx, &s->a, &s->from));
    CHECK(s->rc < 0);
    VOLT_AWAIT(s->rc, volt_connect_on(cx, -1, &s->a));
    CHECK_EQ(s->rc, -EBADF);
    VOLT_END(0);
}

// An event of an earlier attempt does not end the wait for a connection.
typedef struct {
    volt_frame frame;
    int fd;
    volt_addr to;
    int64_t rc;
} connector;
static volt_poll connector_run(volt_cx *cx, void *arg) {
    connector *c = (connector *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, volt_connect_on(cx, c->fd, &c->to));
    VOLT_END(c->rc);
}
static void fire_as_writable(volt_cx *cx, int fd) {
    volt__chain c;
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, fd);
    volt__chain_init(&c);
    volt__lock(&e->lock);
    volt__fd_fire_all(e, &e->wr, VOLT__FIRED, &c);
    volt__unlock(&e->lock);
    volt__schedule_chain(&c);
}
ROOT_TEST_1(connect_on_waits_on_after_the_event_of_an_earlier_attempt, {
    int fd;
    full_listener listener;
    volt_handle h;
    struct pollfd p;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    full_listener_open(&s->listener);
    s->fd = volt_sock_open(AF_INET, SOCK_STREAM, 0);
    SPAWN(&s->h, connector_run, ((connector){ .fd = s->fd, .to = s->listener.at }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
    s->p = (struct pollfd){ .fd = s->fd, .events = POLLOUT };
    CHECK_EQ(poll(&s->p, 1, 0), 0); // not yet
    fire_as_writable(cx, s->fd);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(volt_try_join(&s->h, &s->rc), -EAGAIN);
    volt_cancel(&s->h);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_close(cx, s->fd);
    full_listener_close(&s->listener);
    VOLT_END(0);
}
// The port may be one of a connection that has ended, or of another socket that shares it.
ROOT_TEST_1(connect_from_uses_port_that_another_socket_shares, {
    int lfd, fd, other, got;
    volt_addr a, from, peer;
    int64_t rc;
}) {
    static const int on = 1;
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    s->other = volt_sock_open(AF_INET, SOCK_STREAM, 0);
    CHECK(s->other >= 0);
    CHECK_EQ(setsockopt(s->other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    CHECK_EQ(volt_addr_make(&s->from, "127.0.0.78", 0), 0);
    CHECK_EQ(volt_sock_bind(s->other, &s->from), 0);
    CHECK_EQ(volt_local_addr(s->other, &s->from), 0);
    VOLT_AWAIT(s->fd, volt_connect_from(cx, &s->a, &s->from));
    CHECK(s->fd >= 0);
    VOLT_AWAIT(s->got, volt_accept_from(cx, s->lfd, &s->peer));
    CHECK(s->got >= 0);
    CHECK(volt_addr_equal(&s->from, &s->peer));
    volt_close(cx, s->got);
    volt_close(cx, s->fd);
    volt_close(cx, s->other);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// ---- addresses

// Of the prefix ::ffff:0:0 each bit counts.
TEST(only_mapped_address_is_unmapped) {
    static const char *const others[] = { "1::ffff:1.2.3.4", "0:1::ffff:1.2.3.4",
                                          "0:0:1::ffff:1.2.3.4", "::1:0:ffff:1.2.3.4",
                                          "::1:ffff:1.2.3.4", "::fffe:1.2.3.4", "::1.2.3.4" };
    volt_addr a, b;
    CHECK_EQ(volt_addr_make(&b, "1.2.3.4", 5), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK_EQ(volt_addr_make(&a, others[i], 5), 0);
        CHECK(!volt_addr_equal(&a, &b));
        volt_addr_unmap(&a);
        CHECK_EQ(volt_addr_family(&a), AF_INET6);
    }
    CHECK_EQ(volt_addr_make(&a, "::ffff:1.2.3.4", 5), 0);
    CHECK(volt_addr_equal(&a, &b));
    volt_addr_unmap(&a);
    CHECK_EQ(volt_addr_family(&a), AF_INET);
    CHECK(volt_addr_equal(&a, &b));
}
TEST(address_without_ip_or_path_is_compared_by_its_bytes) {
    struct sockaddr_un unnamed = { .sun_family = AF_UNIX };
    struct sockaddr_storage other = { .ss_family = AF_APPLETALK };
    volt_addr a[6];
    memset(a, 0, sizeof a); // a[0] stays without any
    CHECK_EQ(volt_addr_from(&a[1], (struct sockaddr *)(void *)&unnamed, sizeof(sa_family_t)), 0);
    CHECK_EQ(volt_addr_from(&a[2], (struct sockaddr *)(void *)&other, 16), 0);
    ((char *)&other)[15] = 1; // a 0 before it does not end the address
    CHECK_EQ(volt_addr_from(&a[3], (struct sockaddr *)(void *)&other, 16), 0);
    CHECK_EQ(volt_addr_from(&a[4], (struct sockaddr *)(void *)&other, 15), 0);
    CHECK_EQ(volt_addr_parse(&a[5], "unix:@x"), 0);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 6; k++) {
            volt_addr same = a[k];
            CHECK_EQ(volt_addr_equal(&a[i], &same), i == k);
            if (i == k) CHECK_EQ(volt_addr_hash(&a[i]), volt_addr_hash(&same));
        }
    }
    CHECK(volt_addr_hash(&a[2]) != volt_addr_hash(&a[3]));
}
TEST(addresses_are_parsed_and_formatted) {
    static const char *const same[] = { "127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:9", "unix:/tmp/x",
                                        "unix:@name", "0.0.0.0:0", "[::ffff:1.2.3.4]:65535",
                                        "239.1.2.3:4", "[ff02::1%lo]:5", "[::]:6", "127.0.0.2:80",
                                        "[::2]:80", "unix:/tmp/y", "unix:@other" };
    static const char *const bad[] = { "127.0.0.1%lo:5", "127.0.0.1%0:5", "no-address%no-thing:5",
                                       "unix:@", "unix:", "[::1%]:80", "[fe80::1%lo:9",
                                       "1.2.3.4:65536" };
    volt_addr a, b;
    char text[VOLT_ADDR_TEXT];
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CHECK_EQ(volt_addr_parse(&a, same[i]), 0);
        CHECK_EQ(volt_addr_format(&a, text, sizeof text), (int)strlen(same[i]));
        CHECK_STR(text, same[i]);
        CHECK_EQ(volt_addr_format(&a, text, strlen(same[i])), -ENOSPC);
        unsigned len;
        const struct sockaddr *sa = volt_addr_sockaddr(&a, &len);
        CHECK_EQ(volt_addr_from(&b, sa, len), 0);
        CHECK(volt_addr_equal(&a, &b));
        CHECK_EQ(volt_addr_hash(&a), volt_addr_hash(&b));
        for (size_t j = 0; j < i; j++) {
            CHECK_EQ(volt_addr_parse(&b, same[j]), 0);
            CHECK(!volt_addr_equal(&a, &b));
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(volt_addr_parse(&a, bad[i]), -EINVAL);
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%no-such-thing]:9"), -ENODEV);
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%+1]:9"), -ENODEV); // a name, and no number
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%1:]:9"), -ENODEV);
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%1]:9"), 0);
    CHECK_EQ(volt_addr_parse(&b, "[fe80::1%16777217]:9"), 0); // differs in one byte of the scope
    CHECK(!volt_addr_equal(&a, &b));
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%4294967289]:9"), 0);
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%4294967296]:9"), -ENODEV); // no number of 32 bits
    CHECK_EQ(volt_addr_parse(&a, "[fe80::1%42949672950]:9"), -ENODEV);
    CHECK_EQ(volt_addr_parse(&a, "*:80"), 0);
    CHECK(volt_addr_is_any(&a) && volt_addr_port(&a) == 80);
    CHECK_EQ(volt_addr_parse(&a, "[*]:80"), -EINVAL);
    CHECK_EQ(volt_addr_parse(&a, "*"), -EINVAL);
    CHECK_EQ(volt_addr_from(&a, (struct sockaddr *)(void *)a.sa_, 1), -EINVAL);
    CHECK_EQ(volt_addr_from(&a, (struct sockaddr *)(void *)a.sa_, 121), -EINVAL);
    CHECK_EQ(volt_addr_from(&b, (struct sockaddr *)(void *)a.sa_, 120), 0);
    CHECK_EQ(volt_addr_parse(&a, "unix:/tmp/x"), 0);
    CHECK_EQ(volt_addr_set_port(&a, 1), -EAFNOSUPPORT);
    struct sockaddr_un whole = { .sun_family = AF_UNIX, .sun_path = "/tmp/x" }; // with what follows
    CHECK_EQ(volt_addr_from(&b, (struct sockaddr *)(void *)&whole, sizeof whole), 0);
    CHECK(volt_addr_equal(&a, &b) && volt_addr_hash(&a) == volt_addr_hash(&b));
    snprintf(text, sizeof text, "unix:@%0107d", 1); // the longest abstract name; then one more
    char again[VOLT_ADDR_TEXT];
    CHECK_EQ(volt_addr_parse(&a, text), 0);
    CHECK_EQ(volt_addr_format(&a, again, sizeof again), (int)strlen(text));
    CHECK_STR(again, text);
    snprintf(text, sizeof text, "unix:@%0108d", 1);
    CHECK_EQ(volt_addr_parse(&a, text), -EINVAL);
    snprintf(text, sizeof text, "fe80::1%%%055d", 1); // the longest host; then one more
    CHECK_EQ(strlen(text), 63);
    CHECK_EQ(volt_addr_make(&a, text, 0), 0);
    snprintf(text, sizeof text, "fe80::1%%%056d", 1);
    CHECK_EQ(volt_addr_make(&a, text, 0), -EINVAL);
    CHECK_EQ(volt_addr_make(&a, NULL, 7), 0);
    CHECK_EQ(volt_addr_set_port(&a, 65536), -EINVAL);
    CHECK_EQ(volt_addr_port(&a), 7);
    CHECK_EQ(volt_addr_family(&(volt_addr){ 0 }), AF_UNSPEC);
    CHECK_EQ(volt_addr_parse(&a, "[::ffff:127.0.0.1]:9"), 0);
    CHECK_EQ(volt_addr_parse(&b, "127.0.0.1:9"), 0);
    CHECK(volt_addr_equal(&a, &b) && volt_addr_hash(&a) == volt_addr_hash(&b));
    volt_addr_unmap(&a);
    CHECK_EQ(volt_addr_family(&a), AF_INET);
    CHECK_EQ(volt_addr_port(&a), 9);
    volt_addr_unmap(&b);
    CHECK_EQ(volt_addr_family(&b), AF_INET);
    static const struct {
        const char *text;
        int is_loopback, is_any, is_multicast;
    } kinds[] = { { "127.9.9.9:1", 1, 0, 0 },       { "[::1]:1", 1, 0, 0 },
                  { "[::ffff:127.0.0.1]:1", 1, 0, 0 }, { "0.0.0.0:1", 0, 1, 0 },
                  { "[::]:1", 0, 1, 0 },            { "[::ffff:0.0.0.0]:1", 0, 1, 0 },
                  { "224.0.0.1:1", 0, 0, 1 },       { "[ff05::2]:1", 0, 0, 1 },
                  { "10.0.0.1:1", 0, 0, 0 },        { "unix:/tmp/x", 0, 0, 0 } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        CHECK_EQ(volt_addr_parse(&a, kinds[i].text), 0);
        CHECK_EQ(volt_addr_is_loopback(&a), kinds[i].is_loopback);
        CHECK_EQ(volt_addr_is_any(&a), kinds[i].is_any);
        CHECK_EQ(volt_addr_is_multicast(&a), kinds[i].is_multicast);
    }
}
