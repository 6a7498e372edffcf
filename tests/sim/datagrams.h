// SPDX-License-Identifier: MIT OR 0BSD
// Datagram sockets of the simulated kernel. Part of kernel.h.
//
// A UDP socket sends packets, which arrive at once, late, twice, in another order or not at all, as
// the seed decides. A packet finds its receiver by the port when it arrives; without one, a
// connected sender gets ECONNREFUSED. A full queue drops packets. A sender has room for some
// packets that are under way. Each address of this machine is that of every socket: the port alone
// decides, and control data tells which one was asked, and from which one a packet is sent. The
// packets of a unix pair arrive at once and in order, and a full queue lets the sender wait; one of
// SOCK_SEQPACKET has an end. Left out: broadcast, multicast, UDP_SEGMENT.
#ifndef VOLT_SIM_DATAGRAMS_H
#define VOLT_SIM_DATAGRAMS_H

// ---- packets

static sim_packet *sim__packet_take(void) {
    sim_packet *p = kernel.free_packet;
    if (p) kernel.free_packet = p->next;
    return p;
}
static void sim__packet_free(sim_packet *p) {
    p->next = kernel.free_packet;
    kernel.free_packet = p;
}
static void sim__packet_push(sim_file *to, sim_packet *p) {
    p->next = NULL;
    *to->packets_end = p;
    to->packets_end = &p->next;
    to->n_packets++;
    sim__wake_file(to, EPOLLIN);
}
static sim_packet *sim__packet_pop(sim_file *f) {
    sim_packet *p = f->packets;
    f->packets = p->next;
    if (!p->next) f->packets_end = &f->packets;
    f->n_packets--;
    return p;
}
static size_t sim__iov_bytes(const struct msghdr *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) n += m->msg_iov[i].iov_len;
    return n;
}
static void sim__packet_fill(sim_packet *p, const struct msghdr *m) {
    p->len = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) {
        if (m->msg_iov[i].iov_len == 0) continue;
        memcpy(p->byte + p->len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
        p->len += (uint32_t)m->msg_iov[i].iov_len;
    }
}
// Returns the number of bytes that had room.
static size_t sim__packet_copy_out(const sim_packet *p, struct msghdr *m) {
    size_t done = 0;
    for (size_t i = 0; i < m->msg_iovlen && done < p->len; i++) {
        size_t n = m->msg_iov[i].iov_len, left = p->len - done;
        if (n > left) n = left;
        if (n > 0) memcpy(m->msg_iov[i].iov_base, p->byte + done, n);
        done += n;
    }
    return done;
}

// ---- the way of a packet

static sim_file *sim__udp_at(uint16_t port) {
    for (int i = 0; i < kernel.n_files; i++) {
        sim_file *f = &kernel.files[i];
        if (f->kind == SIM_DGRAM && f->port == port && !f->is_pair) return f;
    }
    return NULL;
}
static void sim__udp_bind_any(sim_file *f) {
    if (!f->port) f->port = kernel.next_port++;
}
static uint32_t sim__dgram_poll(const sim_file *f) {
    uint32_t m = f->packets ? EPOLLIN : 0;
    if (f->is_seq && !f->peer) m |= EPOLLIN | EPOLLRDHUP | EPOLLHUP;
    if (f->error) m |= EPOLLERR;
    if (f->is_pair ? !f->peer || f->peer->n_packets < kernel.most_packets
                   : f->n_out * 2 < kernel.most_out || f->n_out == 0)
        m |= EPOLLOUT;
    return m;
}
static void sim__packet_arrives(void *object, uint64_t arg) {
    sim_packet *p = object;
    sim_file *from = p->from, *to = sim__udp_at(p->to_port);
    int is_there = from->gen == p->from_gen && from->kind == SIM_DGRAM;
    (void)arg;
    if (is_there && --from->n_out * 2 <= kernel.most_out) sim__wake_file(from, EPOLLOUT);
    if (to && to->peer_port && to->peer_port != p->from_port) to = NULL;
    if (to && to->n_packets < kernel.most_packets) {
        sim__packet_push(to, p);
        return;
    }
    kernel.n_dropped++;
    if (!to && is_there && from->peer_port == p->to_port) {
        from->error = ECONNREFUSED;
        sim__wake_file(from, EPOLLERR);
    }
    sim__packet_free(p);
}
static void sim__packet_send(sim_packet *p) {
    sim_file *f = p->from;
    int64_t at = sim.now;
    int is_late = sim_fault(SIM_LATE);
    f->n_out++;
    if (sim_fault(SIM_LATENCY)) at += 1 + (int64_t)sim_below(1u << (10 + sim_below(14)));
    if (is_late) at += 1 + (int64_t)sim_below(1u << (8 + sim_below(15)));
    if (!is_late && at == sim.now && f->last_arrival < at) {
        sim__packet_arrives(p, 0);
        return;
    }
    if (!is_late && at < f->last_arrival) at = f->last_arrival;
    if (!is_late) f->last_arrival = at;
    sim__at(at, sim__packet_arrives, p, 0);
}

// ---- calls

static const int sim__info_options[3] = {IP_PKTINFO, IP_RECVTTL, IP_RECVTOS};
// 0, or -1 with errno. Stores in *p where the message is for.
static int sim__udp_target(const sim_file *f, const struct msghdr *m, sim_packet *p) {
    struct sockaddr_in in;
    p->to_port = f->peer_port;
    p->to_address = INADDR_LOOPBACK;
    if (!m->msg_name) return p->to_port ? 0 : sim__error(EDESTADDRREQ);
    if (m->msg_namelen < sizeof in) return sim__error(EINVAL);
    memcpy(&in, m->msg_name, sizeof in);
    if (in.sin_family != AF_INET) return sim__error(EAFNOSUPPORT);
    p->to_port = ntohs(in.sin_port);
    p->to_address = ntohl(in.sin_addr.s_addr);
    return p->to_port ? 0 : sim__error(EINVAL);
}
// 0, or -1 with errno. Stores in *p what the control data asks for. That of IPv6 is skipped.
static int sim__udp_control(const struct msghdr *m, sim_packet *p) {
    struct in_pktinfo info;
    struct msghdr head = *m; // CMSG_NXTHDR takes no const
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&head); c; c = CMSG_NXTHDR(&head, c)) {
        if (c->cmsg_level == IPPROTO_IPV6) continue;
        if (c->cmsg_level != IPPROTO_IP) return sim__error(EINVAL);
        if (c->cmsg_type == IP_PKTINFO && c->cmsg_len == CMSG_LEN(sizeof info)) {
            memcpy(&info, CMSG_DATA(c), sizeof info);
            if (info.ipi_spec_dst.s_addr) p->from_address = ntohl(info.ipi_spec_dst.s_addr);
        } else if (c->cmsg_type == IP_TOS && c->cmsg_len == CMSG_LEN(sizeof p->tos)) {
            memcpy(&p->tos, CMSG_DATA(c), sizeof p->tos);
        } else if (c->cmsg_type == IP_TTL && c->cmsg_len == CMSG_LEN(sizeof p->ttl)) {
            memcpy(&p->ttl, CMSG_DATA(c), sizeof p->ttl);
        } else {
            return sim__error(EINVAL);
        }
    }
    return p->ttl >= 1 && p->ttl <= 255 && p->tos >= 0 && p->tos <= 255 ? 0 : sim__error(EINVAL);
}
static int64_t sim__udp_send(sim_file *f, const struct msghdr *m, size_t len) {
    sim_packet to;
    memset(&to, 0, offsetof(sim_packet, byte));
    to.from_address = INADDR_LOOPBACK;
    to.tos = f->tos;
    to.ttl = f->ttl;
    if (sim__udp_target(f, m, &to) < 0 || sim__udp_control(m, &to) < 0) return -1;
    if (f->n_out >= kernel.most_out || sim__says_again(f, EPOLLOUT)) return sim__error(EAGAIN);
    sim__udp_bind_any(f);
    for (int n = 1 + sim_fault(SIM_TWICE); n > 0; n--) {
        sim_packet *p = sim_fault(SIM_DROP) ? NULL : sim__packet_take();
        if (!p) {
            kernel.n_dropped++;
            continue;
        }
        memcpy(p, &to, offsetof(sim_packet, byte));
        p->from = f;
        p->from_gen = f->gen;
        p->from_port = f->port;
        sim__packet_fill(p, m);
        sim__packet_send(p);
    }
    return (int64_t)len;
}
static int64_t sim__pair_send(sim_file *f, const struct msghdr *m, size_t len) {
    if (m->msg_name) return sim__error(EISCONN);
    if (!f->peer) return sim__error(f->is_seq ? EPIPE : ECONNREFUSED);
    int is_full = f->peer->n_packets >= kernel.most_packets;
    if (is_full) f->wants_room = 1;
    if (is_full || sim__says_again(f, EPOLLOUT)) return sim__error(EAGAIN);
    sim_packet *p = sim__packet_take();
    if (!p) return sim__error(ENOBUFS);
    p->from_port = 0;
    sim__packet_fill(p, m);
    sim__packet_push(f->peer, p);
    return (int64_t)len;
}
static int64_t sim__dgram_send(sim_file *f, const struct msghdr *m) {
    size_t len = sim__iov_bytes(m);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    if (f->error) {
        int error = f->error;
        f->error = 0;
        return sim__error(error);
    }
    if (len > SIM_PACKET_BYTES) return sim__error(EMSGSIZE);
    return f->is_pair ? sim__pair_send(f, m, len) : sim__udp_send(f, m, len);
}
static void sim__dgram_name(const sim_packet *p, struct msghdr *m) {
    struct sockaddr_in in;
    memset(&in, 0, sizeof in);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(p->from_address);
    in.sin_port = htons(p->from_port);
    socklen_t n = p->from_port ? sizeof in : 0;
    if (m->msg_name) memcpy(m->msg_name, &in, n < m->msg_namelen ? n : m->msg_namelen);
    m->msg_namelen = n;
}
// Appends one item as far as there is room: the kernel cuts the last one.
static void sim__control_add(struct msghdr *m, size_t room, int type, const void *data, size_t n) {
    size_t at = m->msg_controllen, len = CMSG_LEN(n);
    struct cmsghdr head;
    if (room < at + sizeof head) {
        m->msg_flags |= MSG_CTRUNC;
        return;
    }
    if (len > room - at) {
        m->msg_flags |= MSG_CTRUNC;
        len = room - at;
    }
    memset(&head, 0, sizeof head);
    head.cmsg_len = len;
    head.cmsg_level = IPPROTO_IP;
    head.cmsg_type = type;
    memcpy((char *)m->msg_control + at, &head, sizeof head);
    memcpy((char *)m->msg_control + at + CMSG_LEN(0), data, len - CMSG_LEN(0));
    m->msg_controllen = at + CMSG_SPACE(n) < room ? at + CMSG_SPACE(n) : room;
}
static void sim__dgram_control(const sim_file *f, const sim_packet *p, struct msghdr *m) {
    size_t room = m->msg_control ? m->msg_controllen : 0;
    struct in_pktinfo info;
    unsigned char tos = (unsigned char)p->tos;
    memset(&info, 0, sizeof info);
    info.ipi_ifindex = SIM_IF_INDEX;
    info.ipi_spec_dst.s_addr = info.ipi_addr.s_addr = htonl(p->to_address);
    m->msg_controllen = 0;
    if (f->wants_info[0]) sim__control_add(m, room, IP_PKTINFO, &info, sizeof info);
    if (f->wants_info[1]) sim__control_add(m, room, IP_TTL, &p->ttl, sizeof p->ttl);
    if (f->wants_info[2]) sim__control_add(m, room, IP_TOS, &tos, sizeof tos);
}
static int64_t sim__dgram_recv(sim_file *f, struct msghdr *m, int flags) {
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    if (f->error) {
        int error = f->error;
        f->error = 0;
        return sim__error(error);
    }
    if (!f->packets && f->is_seq && !f->peer) {
        m->msg_namelen = 0;
        m->msg_controllen = 0;
        m->msg_flags = 0;
        return 0;
    }
    if (!f->packets || sim__says_again(f, EPOLLIN)) return sim__error(EAGAIN);
    sim_packet *p = f->packets;
    size_t len = p->len, n = sim__packet_copy_out(p, m);
    sim__dgram_name(p, m);
    m->msg_flags = n < len ? MSG_TRUNC : 0;
    sim__dgram_control(f, p, m);
    if (!(flags & MSG_PEEK)) {
        sim__packet_free(sim__packet_pop(f));
        if (f->peer && f->peer->wants_room) {
            f->peer->wants_room = 0;
            sim__wake_file(f->peer, EPOLLOUT);
        }
    }
    return (int64_t)(flags & MSG_TRUNC ? len : n);
}
static int64_t sim__dgram_read(sim_file *f, void *buf, size_t len, int flags) {
    struct iovec part = {buf, len};
    struct msghdr m;
    memset(&m, 0, sizeof m);
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    return sim__dgram_recv(f, &m, flags);
}
static int64_t sim__dgram_write(sim_file *f, const void *buf, size_t len) {
    struct iovec part = {(void *)(uintptr_t)buf, len};
    struct msghdr m;
    memset(&m, 0, sizeof m);
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    return sim__dgram_send(f, &m);
}
static int sim__udp_bind(sim_file *f, const struct sockaddr_in *in) {
    uint16_t port = ntohs(in->sin_port);
    if (f->port) return sim__error(EINVAL);
    if (port && sim__udp_at(port)) return sim__error(EADDRINUSE);
    f->port = port;
    sim__udp_bind_any(f);
    return 0;
}
static int sim__udp_connect(sim_file *f, const struct sockaddr_in *in) {
    if (f->is_pair) return sim__error(EISCONN);
    f->peer_port = in->sin_family == AF_UNSPEC ? 0 : ntohs(in->sin_port);
    sim__udp_bind_any(f);
    return 0;
}
static void sim__dgram_close(sim_file *f) {
    while (f->packets) sim__packet_free(sim__packet_pop(f));
    if (f->peer) {
        f->peer->peer = NULL;
        sim__wake_file(f->peer, f->is_seq ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP : EPOLLOUT);
    }
}

#endif // VOLT_SIM_DATAGRAMS_H
