// SPDX-License-Identifier: MIT OR 0BSD
// Datagrams between two tasks, with sequence numbers: over UDP, where the seed loses, repeats and
// reorders them, and over a unix pair, where none may be missing, and which has an end if it is of
// SOCK_SEQPACKET. Each of the calls of >>messages is used, and each may be cut short by a time
// limit. Part of grammar.h.
//
// Checked
//   a received datagram was sent, and is whole                        packet_got
//   ... once, and in order, unless a fault repeats or delays          packet_got
//   ... from the address of its sender                                take_name
//   ... with the control data that it was sent with                   take_info
//   one that is cut is reported                                       take_cut
//   one that was peeked at is received next                           take_run
//   a send that is cancelled or has failed has sent nothing           give_undo
//   a receive that is cancelled has taken nothing, in a pair          packets_run
//   the end of a pair comes behind the last packet, and when closed   packet_ended
#ifndef VOLT_SIM_PACKETS_H
#define VOLT_SIM_PACKETS_H

#include "turns.h"

enum { FLOWS = 24, FLOW_PACKETS = 40, FLOW_BATCH = 3, HEAD_BYTES = 12, BODY_BYTES = 60 };
enum { PACKET_BYTES = HEAD_BYTES + BODY_BYTES };

// ---- what is known of one direction

typedef struct packet_way {
    int n_sent, n_got, newest;
    int n_empty_sent, n_empty_got;
    uint8_t sent[FLOW_PACKETS], got[FLOW_PACKETS], len[FLOW_PACKETS];
    // as sent: the last bytes of the addresses, 127.0.0.x
    uint8_t tos[FLOW_PACKETS], ttl[FLOW_PACKETS], from[FLOW_PACKETS], to[FLOW_PACKETS];
} packet_way;
typedef struct flow_side {
    int fd, port, is_closed;
    unsigned char in[FLOW_BATCH][PACKET_BYTES], out[FLOW_BATCH][PACKET_BYTES];
    size_t out_len[FLOW_BATCH];
    int out_seq[FLOW_BATCH], n_out;
    struct iovec in_part[FLOW_BATCH][2], out_part[FLOW_BATCH][2];
    struct mmsghdr in_msg[FLOW_BATCH], out_msg[FLOW_BATCH];
    struct sockaddr_in name[FLOW_BATCH];
    volt_addr from, to, asked; // asked: with another address of the same machine
    volt_msg_info info, reply;
    volt_msg_control out_control, in_control[FLOW_BATCH];
} flow_side;
// Side i sends in way[i]. Both tasks use it, the child also after the end of its parent.
typedef struct flow {
    int n_users, is_pair, is_seq, is_connected, is_over;
    int has_info; // of UDP: the control data says what each packet was sent with
    int n_turns; // the sides take turns, without limits; 0: they do not
    uint32_t id;
    packet_way way[2];
    flow_side side[2];
} flow;
static flow flows[FLOWS];

static flow *flow_take(void) {
    for (int i = 0; i < FLOWS; i++) {
        if (flows[i].n_users) continue;
        memset(&flows[i], 0, sizeof flows[i]);
        flows[i].n_users = 1;
        flows[i].id = prog_below(1u << 30);
        flows[i].way[0].newest = flows[i].way[1].newest = -1;
        return &flows[i];
    }
    return NULL;
}
static uint64_t packet_stream(const flow *f, int side) {
    return (uint64_t)f->id * 2 + (uint64_t)side;
}
// When faults have ended, packets of before may still be under way.
static int may_repeat(const flow *f) {
    return !f->is_pair && (sim.rate[SIM_TWICE] || sim.is_calm);
}
static uint32_t packet_field(const unsigned char *p, int i) {
    uint32_t x;
    memcpy(&x, p + 4 * i, sizeof x);
    return x;
}

// ---- sending

// Chooses the next packets of a side, at most n. One in eight is empty, if that is not the end.
static void give_fill(flow *f, int s, int n) {
    flow_side *me = &f->side[s];
    packet_way *w = &f->way[s];
    me->n_out = 0;
    while (me->n_out < n && w->n_sent < FLOW_PACKETS) {
        int i = me->n_out++, seq = w->n_sent;
        me->out_seq[i] = -1;
        me->out_len[i] = 0;
        w->n_empty_sent++;
        if (prog_below(8) == 0 && !f->is_seq) continue;
        w->n_empty_sent--;
        w->n_sent++;
        w->sent[seq] = w->from[seq] = w->to[seq] = 1;
        w->tos[seq] = 0;
        w->ttl[seq] = SIM_TTL;
        w->len[seq] = (uint8_t)prog_below(BODY_BYTES + 1);
        const uint32_t head[] = {f->id, (uint32_t)s << 16 | (uint32_t)seq, w->len[seq]};
        memcpy(me->out[i], head, sizeof head);
        fill_bytes(me->out[i] + HEAD_BYTES, w->len[seq], packet_stream(f, s), (uint64_t)seq * 100);
        me->out_seq[i] = seq;
        me->out_len[i] = HEAD_BYTES + (size_t)w->len[seq];
    }
}
// The packets from the first one on have not been sent.
static void give_undo(flow *f, int s, int first) {
    flow_side *me = &f->side[s];
    packet_way *w = &f->way[s];
    for (int i = me->n_out - 1; i >= first; i--) {
        if (me->out_seq[i] < 0) {
            w->n_empty_sent--;
            if (!may_repeat(f)) SIM_CHECK(w->n_empty_got <= w->n_empty_sent);
            continue;
        }
        SIM_CHECK(me->out_seq[i] == w->n_sent - 1 && w->got[me->out_seq[i]] == 0);
        w->n_sent--;
    }
}
static void give_headers(flow *f, int s) {
    flow_side *me = &f->side[s];
    for (int i = 0; i < me->n_out; i++) {
        size_t cut = me->out_len[i] / 3;
        struct msghdr *m = &me->out_msg[i].msg_hdr;
        memset(&me->out_msg[i], 0, sizeof me->out_msg[i]);
        me->out_part[i][0].iov_base = me->out[i];
        me->out_part[i][0].iov_len = cut;
        me->out_part[i][1].iov_base = me->out[i] + cut;
        me->out_part[i][1].iov_len = me->out_len[i] - cut;
        m->msg_iov = me->out_part[i];
        m->msg_iovlen = 2;
        if (f->is_connected) continue;
        m->msg_name = me->to.sa_;
        m->msg_namelen = me->to.len_;
    }
}
static void make_address(volt_addr *a, int last, int port) {
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%d:%d", last, port);
    SIM_CHECK(volt_addr_parse(a, text) == 0);
}
static int last_of_address(const volt_addr *a) {
    struct sockaddr_in in;
    unsigned len;
    memcpy(&in, volt_addr_sockaddr(a, &len), sizeof in);
    SIM_CHECK(len == sizeof in && in.sin_family == AF_INET);
    SIM_CHECK((ntohl(in.sin_addr.s_addr) & 0xffffff00u) == 0x7f000000u);
    return (int)(ntohl(in.sin_addr.s_addr) & 0xff);
}
// Adds control data to the first packet: each item may be missing. An answer is sent from the
// address that was asked.
static void give_info(flow *f, int s) {
    flow_side *me = &f->side[s];
    packet_way *w = &f->way[s];
    int seq = me->out_seq[0];
    struct msghdr *m = &me->out_msg[0].msg_hdr;
    memset(&me->info, 0, sizeof me->info);
    if (prog_below(2)) me->info = me->reply;
    else if (prog_below(2)) {
        make_address(&me->info.local, 1 + (int)prog_below(250), 0);
        me->info.has = VOLT_MSG_LOCAL;
    }
    if (prog_below(2)) me->info.has |= VOLT_MSG_TOS;
    if (prog_below(2)) me->info.has |= VOLT_MSG_TTL;
    me->info.tos = (int)prog_below(256);
    me->info.ttl = 1 + (int)prog_below(255);
    SIM_CHECK(volt_msg_info_put(m, &me->out_control, &me->info) == 0);
    make_address(&me->asked, 1 + (int)prog_below(250), f->side[1 - s].port);
    if (!f->is_connected) m->msg_name = me->asked.sa_;
    if (seq < 0) return;
    if (me->info.has & VOLT_MSG_LOCAL) w->from[seq] = (uint8_t)last_of_address(&me->info.local);
    if (!f->is_connected) w->to[seq] = (uint8_t)last_of_address(&me->asked);
    if (me->info.has & VOLT_MSG_TOS) w->tos[seq] = (uint8_t)me->info.tos;
    if (me->info.has & VOLT_MSG_TTL) w->ttl[seq] = (uint8_t)me->info.ttl;
}
enum { GIVE_ONE, GIVE_WRITE, GIVE_MSG, GIVE_MANY, N_GIVES };
typedef struct packet_op {
    volt_frame frame;
    volt_timer timer;
    int how;
    unsigned n;
    int64_t limit, rc, again;
} packet_op;
static volt_poll give_once(volt_cx *cx, flow *f, int s, const packet_op *o) {
    flow_side *me = &f->side[s];
    const volt_addr *to = f->is_connected ? NULL : &me->to;
    switch (o->how) {
    case GIVE_WRITE: return volt_write(cx, me->fd, me->out[0], me->out_len[0]);
    case GIVE_MSG: return volt_sendmsg(cx, me->fd, &me->out_msg[0].msg_hdr, 0);
    case GIVE_MANY: return volt_sendmmsg(cx, me->fd, me->out_msg, o->n, 0);
    default: return volt_sendto(cx, me->fd, me->out[0], me->out_len[0], 0, to);
    }
}
// The errors of datagram sockets.
static void packet_failed(const flow *f, int64_t rc) {
    if (rc == -ECANCELED || rc == -ETIMEDOUT) return;
    // the other side has closed
    if (rc == (f->is_seq ? -EPIPE : -ECONNREFUSED) && f->is_connected) return;
    SIM_CHECK(prog.may_fail && (rc == -ENOMEM || rc == -ENOSPC || rc == -ENOBUFS));
}
static int64_t draw_limit(void) {
    return prog_below(4) ? 1000 + prog_below(1u << 21) : prog_below(2000);
}
static volt_poll give_run(volt_cx *cx, packet_op *o, flow *f, int s) {
    VOLT_BEGIN(cx, o);
    o->how = (int)prog_below(N_GIVES);
    give_fill(f, s, o->how == GIVE_MANY && !f->n_turns ? 1 + (int)prog_below(FLOW_BATCH) : 1);
    o->n = (unsigned)f->side[s].n_out;
    if (o->n == 0) VOLT_RETURN(0);
    // a write of nothing does not make a call, and a write has no address
    if (o->how == GIVE_WRITE && (!f->is_connected || f->side[s].out_seq[0] < 0)) o->how = GIVE_ONE;
    give_headers(f, s);
    if (f->has_info && o->how == GIVE_MSG) give_info(f, s);
    o->limit = f->n_turns ? VOLT_NEVER : draw_limit();
    VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, give_once(cx, f, s, o)));
    sim__trace("packets on %d: give %d gives %d", f->side[s].fd, o->how, (int)o->rc);
    if (o->rc < 0) packet_failed(f, o->rc);
    else if (o->how == GIVE_MANY) SIM_CHECK(o->rc >= 1 && o->rc <= o->n);
    else SIM_CHECK(o->rc == (int64_t)f->side[s].out_len[0]);
    give_undo(f, s, o->rc < 0 ? 0 : o->how == GIVE_MANY ? (int)o->rc : 1);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- receiving

enum {
    TAKE_ONE,
    TAKE_FROM,
    TAKE_READ,
    TAKE_PEEK,
    TAKE_CUT, // into a buffer that is too short
    TAKE_LEN, // the same with MSG_TRUNC
    TAKE_MSG,
    TAKE_MANY,
    N_TAKES
};

static int way_is_empty(const flow *f, int s) {
    const packet_way *w = &f->way[1 - s];
    return !f->is_pair || w->n_got == w->n_sent + w->n_empty_sent;
}
static void packet_ended(const flow *f, int s) {
    SIM_CHECK(f->side[1 - s].is_closed && way_is_empty(f, s));
}
// A packet that side s has received, of n bytes, all of them in the buffer unless is_cut.
static void packet_got(flow *f, int s, const unsigned char *p, size_t n, int is_cut) {
    packet_way *w = &f->way[1 - s];
    if (n == 0 && f->is_seq) {
        packet_ended(f, s);
        return;
    }
    w->n_got++;
    if (n == 0) {
        w->n_empty_got++;
        SIM_CHECK(w->n_empty_got <= w->n_empty_sent || may_repeat(f));
        return;
    }
    SIM_CHECK(n >= HEAD_BYTES && packet_field(p, 0) == f->id);
    int seq = (int)(packet_field(p, 1) & 0xffff);
    SIM_CHECK((int)(packet_field(p, 1) >> 16) == 1 - s && seq < w->n_sent && w->sent[seq]);
    SIM_CHECK(packet_field(p, 2) == w->len[seq]);
    SIM_CHECK(is_cut || n == HEAD_BYTES + (size_t)w->len[seq]);
    if (!is_cut)
        check_bytes(p + HEAD_BYTES, n - HEAD_BYTES, packet_stream(f, 1 - s), (uint64_t)seq * 100);
    SIM_CHECK(++w->got[seq] <= 1 + may_repeat(f));
    if (f->is_pair) SIM_CHECK(seq == w->newest + 1);
    if (!sim.rate[SIM_LATE] && !may_repeat(f)) SIM_CHECK(seq > w->newest);
    w->newest = seq;
}
static void take_prepare(flow_side *me, const packet_op *o) {
    memset(me->in, 0xaa, sizeof me->in);
    memset(me->in_msg, 0, sizeof me->in_msg);
    for (int i = 0; i < FLOW_BATCH; i++) {
        size_t cut = (size_t)o->limit % PACKET_BYTES;
        struct msghdr *m = &me->in_msg[i].msg_hdr;
        me->in_part[i][0].iov_base = me->in[i];
        me->in_part[i][0].iov_len = cut;
        me->in_part[i][1].iov_base = me->in[i] + cut;
        me->in_part[i][1].iov_len = PACKET_BYTES - cut;
        m->msg_iov = me->in_part[i];
        m->msg_iovlen = 2;
        m->msg_name = &me->name[i];
        m->msg_namelen = sizeof me->name[i];
        m->msg_control = me->in_control[i].bytes;
        m->msg_controllen = sizeof me->in_control[i].bytes;
    }
}
static volt_poll take_once(volt_cx *cx, flow_side *me, const packet_op *o) {
    unsigned char *buf = me->in[0];
    switch (o->how) {
    case TAKE_FROM: return volt_recvfrom(cx, me->fd, buf, PACKET_BYTES, 0, &me->from);
    case TAKE_READ: return volt_read(cx, me->fd, buf, PACKET_BYTES);
    case TAKE_PEEK: return volt_recv(cx, me->fd, buf, PACKET_BYTES, MSG_PEEK);
    case TAKE_CUT: return volt_recv(cx, me->fd, buf, HEAD_BYTES, 0);
    case TAKE_LEN: return volt_recv(cx, me->fd, buf, HEAD_BYTES, MSG_TRUNC);
    case TAKE_MSG: return volt_recvmsg(cx, me->fd, &me->in_msg[0].msg_hdr, 0);
    case TAKE_MANY: return volt_recvmmsg(cx, me->fd, me->in_msg, o->n, 0);
    default: return volt_recv(cx, me->fd, buf, PACKET_BYTES, 0);
    }
}
// seq: of the packet; -1: it is empty.
static void take_name(const flow *f, int s, const struct msghdr *m, int seq) {
    volt_addr from;
    if (f->is_pair) return;
    SIM_CHECK(volt_addr_from(&from, m->msg_name, m->msg_namelen) == 0);
    SIM_CHECK(volt_addr_port(&from) == f->side[1 - s].port);
    if (seq >= 0) SIM_CHECK(last_of_address(&from) == f->way[1 - s].from[seq]);
}
static void take_info(flow *f, int s, const struct msghdr *m, int seq) {
    const packet_way *w = &f->way[1 - s];
    volt_msg_info info;
    volt_msg_info_get(m, &info);
    if (!f->has_info) SIM_CHECK(info.has == 0);
    if (!f->has_info) return;
    SIM_CHECK(info.has == (VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE | VOLT_MSG_TOS | VOLT_MSG_TTL));
    SIM_CHECK(info.if_index == SIM_IF_INDEX);
    volt_msg_info_reply(&info, &f->side[s].reply);
    SIM_CHECK(f->side[s].reply.has == VOLT_MSG_LOCAL);
    if (seq < 0) return;
    SIM_CHECK(last_of_address(&info.local) == w->to[seq]);
    SIM_CHECK(info.tos == w->tos[seq] && info.ttl == w->ttl[seq]);
}
// The true length is in the header, or is the result.
static void take_cut(flow *f, int s, const packet_op *o) {
    const unsigned char *p = f->side[s].in[0];
    if (o->rc == 0) {
        packet_got(f, s, p, 0, 0);
        return;
    }
    size_t n = HEAD_BYTES + (size_t)packet_field(p, 2);
    SIM_CHECK(o->rc == (n == HEAD_BYTES || o->how == TAKE_LEN ? (int64_t)n : -EMSGSIZE));
    packet_got(f, s, p, n, 1);
}
static void take_messages(flow *f, int s, const packet_op *o) {
    flow_side *me = &f->side[s];
    int n = o->how == TAKE_MANY ? (int)o->rc : 1;
    SIM_CHECK(n >= 1 && n <= (int)o->n);
    if (o->how == TAKE_MSG) me->in_msg[0].msg_len = (unsigned)o->rc;
    for (int i = 0; i < n; i++) {
        SIM_CHECK(me->in_msg[i].msg_hdr.msg_flags == 0);
        packet_got(f, s, me->in[i], me->in_msg[i].msg_len, 0);
        if (me->in_msg[i].msg_len == 0 && f->is_seq) continue;
        int seq = me->in_msg[i].msg_len ? f->way[1 - s].newest : -1;
        take_name(f, s, &me->in_msg[i].msg_hdr, seq);
        take_info(f, s, &me->in_msg[i].msg_hdr, seq);
    }
}
static void take_settle(flow *f, int s, const packet_op *o) {
    flow_side *me = &f->side[s];
    if (o->how == TAKE_CUT && o->rc == -EMSGSIZE) {
        take_cut(f, s, o);
        return;
    }
    if (o->rc < 0) {
        packet_failed(f, o->rc);
        return;
    }
    if (o->how == TAKE_FROM && !f->is_pair)
        SIM_CHECK(volt_addr_port(&me->from) == f->side[1 - s].port);
    if (o->how == TAKE_MSG || o->how == TAKE_MANY) take_messages(f, s, o);
    else if (o->how == TAKE_CUT || o->how == TAKE_LEN) take_cut(f, s, o);
    else packet_got(f, s, me->in[0], (size_t)o->rc, 0);
}
static volt_poll take_run(volt_cx *cx, packet_op *o, flow *f, int s) {
    VOLT_BEGIN(cx, o);
    o->how = (int)prog_below(N_TAKES);
    o->n = o->how == TAKE_MANY ? 1 + prog_below(FLOW_BATCH) : 1;
    o->limit = f->n_turns ? VOLT_NEVER : draw_limit();
    take_prepare(&f->side[s], o);
    VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, take_once(cx, &f->side[s], o)));
    if (o->how == TAKE_PEEK && o->rc >= 0) {
        memcpy(f->side[s].in[1], f->side[s].in[0], PACKET_BYTES);
        o->how = TAKE_ONE;
        o->again = o->rc;
        if (!f->n_turns) o->limit = VOLT_MS(5);
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit, take_once(cx, &f->side[s], o)));
        if (o->rc >= 0) SIM_CHECK(o->rc == o->again);
        if (o->rc >= 0) SIM_CHECK(!memcmp(f->side[s].in[1], f->side[s].in[0], (size_t)o->rc));
    }
    sim__trace("packets on %d: take %d gives %d", f->side[s].fd, o->how, (int)o->rc);
    take_settle(f, s, o);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- one side: draws what it does until the flow is over

typedef struct packet_side {
    volt_frame frame;
    packet_op op;
    int left;
    int64_t rc;
} packet_side;
// side 0 ends after some rounds; side 1 when that has set is_over. Then each takes what is left.
static volt_poll side_run(volt_cx *cx, packet_side *o, flow *f, int s) {
    VOLT_BEGIN(cx, o);
    for (o->left = 2 * f->n_turns; o->left > 0; o->left--) {
        if (o->left % 2 == s) VOLT_AWAIT(o->rc, give_run(cx, &o->op, f, s));
        else VOLT_AWAIT(o->rc, take_run(cx, &o->op, f, s));
        if (o->rc < 0) VOLT_RETURN(o->rc);
    }
    if (f->n_turns) VOLT_RETURN(0);
    for (o->left = 4 + (int)prog_below(20); s == 1 ? !f->is_over : o->left > 0; o->left--) {
        if (prog_below(2)) VOLT_AWAIT(o->rc, give_run(cx, &o->op, f, s));
        else VOLT_AWAIT(o->rc, take_run(cx, &o->op, f, s));
        if (o->rc < 0) VOLT_RETURN(o->rc);
    }
    while (s == 1 && !way_is_empty(f, s)) {
        VOLT_AWAIT(o->rc, take_run(cx, &o->op, f, s));
        if (o->rc < 0) VOLT_RETURN(o->rc);
    }
    VOLT_END(0);
}
typedef struct packet_child {
    volt_frame frame;
    packet_side side;
    flow *flow;
    int id;
    int64_t rc;
} packet_child;
static volt_poll packet_child_body(volt_cx *cx, packet_child *c) {
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, side_run(cx, &c->side, c->flow, 1));
    if (c->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(c->id));
    c->flow->side[1].is_closed = 1;
    volt_close(cx, c->flow->side[1].fd);
    c->flow->n_users--;
    VOLT_END(c->id);
}
static volt_poll packet_child_run(volt_cx *cx, void *arg) {
    packet_child *c = (packet_child *)arg;
    int id = c->id;
    note_poll_begin(id);
    volt_poll p = packet_child_body(cx, c);
    note_poll_end(id, p);
    return p;
}

// ---- the operation

typedef struct op_packets {
    volt_frame frame;
    volt_handle h;
    int child;
    volt_arm a, b;
    packet_side side;
    flow *flow;
    int fd[2];
    int64_t rc, i;
} op_packets;
static int packets_open_udp(volt_cx *cx, op_packets *o) {
    flow *f = o->flow;
    volt_addr any;
    volt_udp_options options;
    SIM_CHECK(volt_addr_parse(&any, "127.0.0.1:0") == 0);
    memset(&options, 0, sizeof options);
    f->has_info = (int)prog_below(2);
    options.has_info = (unsigned)f->has_info;
    for (int i = 0; i < 2; i++) {
        volt_addr mine;
        o->fd[i] = volt_udp_open(&any, &options);
        if (o->fd[i] < 0) {
            SIM_CHECK(prog.may_fail);
            if (i) volt_close(cx, o->fd[0]);
            return 0;
        }
        SIM_CHECK(volt_local_addr(o->fd[i], &mine) == 0);
        f->side[i].port = volt_addr_port(&mine);
        f->side[1 - i].to = mine;
    }
    return 1;
}
static int packets_open(volt_cx *cx, op_packets *o) {
    o->flow = flow_take();
    if (!o->flow) return 0;
    o->flow->is_pair = o->flow->is_connected = prog_below(3) == 0;
    o->flow->is_seq = o->flow->is_pair && prog_below(2);
    int type = o->flow->is_seq ? SOCK_SEQPACKET : SOCK_DGRAM;
    int is_open = o->flow->is_pair && volt_socketpair(type, o->fd) == 0;
    if (!o->flow->is_pair) is_open = packets_open_udp(cx, o);
    for (int i = 0; i < 2; i++) o->flow->side[i].fd = o->fd[i];
    if (!is_open) o->flow->n_users = 0;
    return is_open;
}
static int packets_spawn(volt_cx *cx, op_packets *o) {
    packet_child c;
    int id = o->child = note_task();
    if (id < 0) return 0;
    memset(&c, 0, sizeof c);
    c.id = id;
    c.flow = o->flow;
    // a packet that is lost, or a side that fails, would leave the other one waiting
    if (!prog.may_fail && !sim.rate[SIM_DROP] && !sim.rate[SIM_TWICE])
        o->flow->n_turns = (int)prog_below(10);
    prog.note[id].spawned_at = prog.n_polls;
    o->flow->n_users++;
    int rc = VOLT_SPAWN(cx, &o->h, packet_child_run, c);
    if (rc < 0) o->flow->n_users--;
    note_spawned(id, rc);
    return rc == 0;
}
// Closes the descriptor while the other arm waits on it.
static volt_poll packets_close(volt_cx *cx, op_packets *o) {
    VOLT_BEGIN(cx, &o->side);
    if (o->flow->id % 2) VOLT_AWAIT(volt_sleep(cx, 1000));
    o->flow->side[0].is_closed = 1;
    volt_close(cx, o->fd[0]);
    o->fd[0] = -1;
    VOLT_END(0);
}
static volt_poll packets_last(volt_cx *cx, flow *f) {
    return volt_recv(cx, f->side[0].fd, f->side[0].in[0], 8, MSG_TRUNC);
}
// In a pair all that the child has sent arrives, also after the end of the child.
static volt_poll packets_run(volt_cx *cx, op_packets *o, int id) {
    VOLT_BEGIN(cx, o);
    if (!packets_open(cx, o)) VOLT_RETURN(0);
    if (!o->flow->is_pair && prog_below(2)) {
        o->flow->is_connected = 1;
        for (o->i = 0; o->i < 2; o->i++) {
            VOLT_AWAIT(o->rc, volt_connect_on(cx, o->fd[o->i], &o->flow->side[o->i].to));
            if (o->rc < 0) break;
        }
    }
    if (o->rc < 0 || !packets_spawn(cx, o)) {
        if (o->rc < 0) packet_failed(o->flow, o->rc);
        if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
        volt_close(cx, o->fd[0]);
        volt_close(cx, o->fd[1]);
        o->flow->n_users--;
        VOLT_RETURN(o->rc == -ECANCELED ? o->rc : 0);
    }
    VOLT_AWAIT(o->rc, side_run(cx, &o->side, o->flow, 0));
    o->flow->is_over = 1;
    if (o->rc < 0 && o->flow->n_turns) {
        note_cancel(o->child);
        volt_cancel(&o->h);
    }
    if (o->rc >= 0) VOLT_AWAIT(o->rc, volt_join(cx, &o->h));
    while (o->rc >= 0 && !way_is_empty(o->flow, 0))
        VOLT_AWAIT(o->rc, take_run(cx, &o->side.op, o->flow, 0));
    if (o->rc >= 0) {
        VOLT_AWAIT(o->rc, VOLT_JOIN_ALL(VOLT_ARM(&o->a, packets_last(cx, o->flow)),
                                        VOLT_ARM(&o->b, packets_close(cx, o))));
        if (o->flow->is_pair && o->rc == 0)
            SIM_CHECK(o->a.value == -EBADF || prog.may_fail || (o->flow->is_seq && !o->a.value));
    }
    o->flow->side[0].is_closed = 1;
    if (o->fd[0] >= 0) volt_close(cx, o->fd[0]);
    volt_detach(&o->h);
    o->flow->n_users--;
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

#endif // VOLT_SIM_PACKETS_H
