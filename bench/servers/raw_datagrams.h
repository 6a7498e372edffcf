// SPDX-License-Identifier: MIT OR 0BSD
// Datagrams in raw_epoll.c. Each function works off a ready socket until its call would wait, and
// returns the number of requests: datagrams, or bursts.
#ifndef BENCH_RAW_DATAGRAMS_H
#define BENCH_RAW_DATAGRAMS_H

#include "serve.h"

// One system call for each datagram.
static uint64_t raw_datagrams(int fd, uint64_t *bytes) {
    char in[SERVE_DATAGRAM];
    uint64_t n = 0;
    while (n < SERVE_DATAGRAMS) {
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        const ssize_t size = recvfrom(fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from,
                                      &len);
        if (size < 0) break;
        if (sendto(fd, in, (size_t)size, MSG_DONTWAIT, (struct sockaddr *)&from, len) != size)
            break; // lost, as datagrams may be; the client sees it
        *bytes += (uint64_t)size;
        n++;
    }
    return n;
}

// One system call for as many as have come. If these are fewer than the room, the socket is empty.
static uint64_t raw_batches(int fd, uint64_t *bytes) {
    static serve_batch *b;
    uint64_t n = 0;
    if (!b) b = serve_batch_new();
    for (int got = SERVE_DATAGRAMS; got == SERVE_DATAGRAMS;) {
        got = recvmmsg(fd, b->v, SERVE_DATAGRAMS, MSG_DONTWAIT, NULL);
        if (got < 0) break;
        *bytes += serve_batch_turn(b, (size_t)got);
        if (sendmmsg(fd, b->v, (unsigned)got, MSG_DONTWAIT) != got)
            bench_die("sendmmsg: %s", strerror(errno));
        serve_batch_clear(b, (size_t)got);
        n += (uint64_t)got;
    }
    return n;
}

// Sends a burst by one call, whose control data tells the kernel the length of a datagram.
static int raw_send_burst(int fd, serve_burst *b, struct sockaddr_in *to) {
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr align;
    } control;
    const uint16_t segment = BURST_DATAGRAM;
    struct iovec part = { b->joined, BURST_BYTES };
    struct msghdr m = { .msg_name = to, .msg_namelen = sizeof *to, .msg_iov = &part,
                        .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(c), &segment, sizeof segment);
    return sendmsg(fd, &m, MSG_DONTWAIT) == BURST_BYTES;
}

static uint64_t raw_send_bursts(int fd, uint64_t *bytes) {
    static serve_burst *b;
    uint64_t n = 0;
    if (!b) b = serve_burst_new();
    for (;; n++) {
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        if (recvfrom(fd, &b->number, sizeof b->number, MSG_DONTWAIT, (struct sockaddr *)&from,
                     &len) < 0)
            return n;
        burst_number(b->joined, b->number);
        if (!raw_send_burst(fd, b, &from)) bench_die("sendmsg: %s", strerror(errno));
        *bytes += BURST_BYTES;
    }
}

static size_t raw_segment_of(struct msghdr *m, size_t otherwise) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int segment;
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
        memcpy(&segment, CMSG_DATA(c), sizeof segment);
        return (size_t)segment;
    }
    return otherwise;
}

static uint64_t raw_receive_bursts(int fd, uint64_t *bytes) {
    static serve_burst *b;
    if (!b) b = serve_burst_new();
    for (uint64_t n = 0;;) {
        char control[64] __attribute__((aligned(16)));
        struct sockaddr_in from;
        struct iovec part = { b->joined, sizeof b->joined };
        struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part,
                            .msg_iovlen = 1, .msg_control = control,
                            .msg_controllen = sizeof control };
        const ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
        if (got < 0) return n;
        if (!burst_add(&b->receipt, b->joined, (size_t)got, raw_segment_of(&m, (size_t)got)))
            continue;
        if (sendto(fd, &b->receipt, sizeof b->receipt, MSG_DONTWAIT, (struct sockaddr *)&from,
                   sizeof from) < 0)
            bench_die("sendto: %s", strerror(errno));
        *bytes += sizeof b->receipt;
        n++;
    }
}

static uint64_t raw_answer_datagrams(serve_mode mode, int fd, uint64_t *bytes) {
    switch (mode) {
    case SERVE_UDP_MANY: return raw_batches(fd, bytes);
    case SERVE_UDP_SEND: return raw_send_bursts(fd, bytes);
    case SERVE_UDP_RECEIVE: return raw_receive_bursts(fd, bytes);
    default: return raw_datagrams(fd, bytes);
    }
}

#endif // BENCH_RAW_DATAGRAMS_H
