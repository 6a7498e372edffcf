// SPDX-License-Identifier: MIT OR 0BSD
// Fixed programs, each with its promises: servers, a proxy, a pipeline, a client that retries,
// tickers, a chat, and those about scheduling: silence, stuck workers, fairness, threads outside
// that spawn all at once or place their work, workers that are handed off.
#ifndef VOLT_SIM_APPS_H
#define VOLT_SIM_APPS_H

#include "turns.h"

// The result of an application: may be an error where faults may have caused it.
static void check_app(int rc) { SIM_CHECK(rc == 0 || prog.may_fail); }
static int net_failed(int64_t rc) { // a peer may be gone, or memory short
    if (rc < 0) SIM_CHECK(prog.may_fail || rc == -ECANCELED);
    return rc < 0;
}
static int app_listen(int *port) {
    volt_addr a;
    int fd = volt_listen("127.0.0.1", 0, NULL);
    if (fd >= 0 && volt_local_addr(fd, &a) == 0)
        *port = volt_addr_port(&a);
    else
        SIM_CHECK(prog.may_fail);
    return fd;
}
static volt_addr app_addr(int port) {
    char text[32];
    volt_addr a;
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    SIM_CHECK(volt_addr_parse(&a, text) == 0);
    return a;
}

// ---- a pump copies one descriptor to another until the end, and passes the end on
typedef struct pump {
    volt_frame frame;
    int from, to;
    int64_t n, total;
    unsigned char mask;
    unsigned char buf[96];
} pump;
static volt_poll pump_run(volt_cx *cx, pump *p) {
    VOLT_BEGIN(cx, p);
    for (;;) {
        VOLT_AWAIT(p->n, volt_read(cx, p->from, p->buf, sizeof p->buf));
        if (p->n <= 0) break;
        for (int64_t i = 0; i < p->n; i++) p->buf[i] ^= p->mask;
        p->total += p->n;
        VOLT_AWAIT(p->n, volt_write_all(cx, p->to, p->buf, (size_t)p->n));
        if (p->n < 0) break;
    }
    volt_sock_shutdown(p->to, SHUT_WR);
    VOLT_END(p->n < 0 ? p->n : p->total);
}

// ---- a stream: a sender and a receiver at once over one descriptor, more than buffers hold
typedef struct sender {
    volt_frame frame;
    int fd;
    uint64_t id, at, total;
    size_t n;
    int64_t rc;
    unsigned char buf[200];
} sender;
static volt_poll sender_run(volt_cx *cx, sender *s) {
    VOLT_BEGIN(cx, s);
    while (s->at < s->total) {
        s->n = 1 + prog_below(sizeof s->buf);
        if (s->n > s->total - s->at) s->n = (size_t)(s->total - s->at);
        fill_bytes(s->buf, s->n, s->id, s->at);
        VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, s->buf, s->n));
        if (s->rc < 0) VOLT_RETURN(s->rc);
        s->at += s->n;
    }
    volt_sock_shutdown(s->fd, SHUT_WR);
    VOLT_END(0);
}
typedef struct receiver {
    volt_frame frame;
    int fd;
    uint64_t id, at;
    unsigned char mask;
    int64_t n;
    unsigned char buf[150];
} receiver;
static volt_poll receiver_run(volt_cx *cx, receiver *r) {
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->n, volt_read(cx, r->fd, r->buf, sizeof r->buf));
        if (r->n <= 0) break;
        for (int64_t i = 0; i < r->n; i++) r->buf[i] ^= r->mask;
        check_bytes(r->buf, (size_t)r->n, r->id, r->at);
        r->at += (uint64_t)r->n;
    }
    VOLT_END(r->n);
}
typedef struct duplex {
    volt_frame frame;
    volt_arm a, b;
    sender s;
    receiver r;
    int64_t rc;
} duplex;
static volt_poll duplex_run(volt_cx *cx, duplex *d, int fd, uint64_t id, uint64_t total) {
    VOLT_BEGIN(cx, d);
    memset(&d->s, 0, sizeof d->s);
    memset(&d->r, 0, sizeof d->r);
    d->s.fd = d->r.fd = fd;
    d->s.id = d->r.id = id;
    d->s.total = total;
    VOLT_AWAIT(d->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&d->a, sender_run(cx, &d->s)),
                                        VOLT_ARM(&d->b, receiver_run(cx, &d->r))));
    if (!net_failed(d->rc)) SIM_CHECK(d->r.at == total || prog.may_fail);
    VOLT_END(d->rc);
}

// ---- echo: clients against a server; proxy: with a pump each way in between
typedef struct link_task { // of a server: its work with one connection
    volt_frame frame;
    volt_arm a, b;
    volt_addr to;
    pump there, back;
    int fd, other, port;
    int64_t rc;
} link_task;
static volt_poll link_run(volt_cx *cx, void *arg) {
    link_task *l = (link_task *)arg;
    VOLT_BEGIN(cx, l);
    if (l->port) {
        l->to = app_addr(l->port);
        VOLT_AWAIT(l->other, volt_connect(cx, &l->to));
    } else {
        l->other = l->fd;
    }
    if (!net_failed(l->other)) {
        l->there.from = l->back.to = l->fd;
        l->there.to = l->back.from = l->other;
        if (l->port)
            VOLT_AWAIT(l->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&l->a, pump_run(cx, &l->there)),
                                                VOLT_ARM(&l->b, pump_run(cx, &l->back))));
        else
            VOLT_AWAIT(l->rc, pump_run(cx, &l->there));
        net_failed(l->rc);
        if (l->port) volt_close(cx, l->other);
    }
    volt_close(cx, l->fd);
    VOLT_END(0);
}
typedef struct listener {
    volt_frame frame;
    volt_group links;
    int lfd, to_port, fd;
} listener;
static void listener_take(volt_cx *cx, listener *l) {
    link_task t;
    memset(&t, 0, sizeof t);
    t.fd = l->fd;
    t.port = l->to_port;
    if (VOLT_GROUP_SPAWN(cx, &l->links, link_run, t) == 0) return;
    SIM_CHECK(prog.may_fail);
    volt_close(cx, l->fd);
}
static volt_poll listener_run(volt_cx *cx, void *arg) {
    listener *l = (listener *)arg;
    VOLT_BEGIN(cx, l);
    for (;;) {
        VOLT_AWAIT(l->fd, volt_accept(cx, l->lfd));
        if (l->fd == -ECANCELED) break;
        if (l->fd >= 0)
            listener_take(cx, l);
        else
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    VOLT_AWAIT(volt_group_close(cx, &l->links));
    volt_close(cx, l->lfd);
    VOLT_END(0);
}
static int listener_spawn(volt_cx *cx, volt_handle *h, int to_port) {
    listener l;
    int port = 0;
    memset(&l, 0, sizeof l);
    l.lfd = app_listen(&port);
    l.to_port = to_port;
    if (l.lfd < 0) return 0;
    if (VOLT_SPAWN(cx, h, listener_run, l) == 0) return port;
    volt_close(cx, l.lfd);
    return 0;
}
typedef struct client {
    volt_frame frame;
    volt_addr to;
    duplex d;
    uint64_t id, total;
    int port, fd;
    int64_t rc;
} client;
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    c->to = app_addr(c->port);
    VOLT_AWAIT(c->fd, volt_connect(cx, &c->to));
    if (net_failed(c->fd)) VOLT_RETURN(0);
    VOLT_AWAIT(c->rc, duplex_run(cx, &c->d, c->fd, c->id, c->total));
    volt_close(cx, c->fd);
    VOLT_END(0);
}
typedef struct net_root {
    volt_frame frame;
    volt_group clients;
    volt_handle server, proxy;
    int port, has_proxy, n;
    int64_t rc;
} net_root;
static volt_poll net_root_run(volt_cx *cx, void *arg) {
    net_root *r = (net_root *)arg;
    VOLT_BEGIN(cx, r);
    r->port = listener_spawn(cx, &r->server, 0);
    if (r->port && r->has_proxy) r->port = listener_spawn(cx, &r->proxy, r->port);
    for (int i = 0; i < r->n && r->port; i++) {
        client c;
        memset(&c, 0, sizeof c);
        c.id = (uint64_t)i;
        c.total = prog_below(3000);
        c.port = r->port;
        if (VOLT_GROUP_SPAWN(cx, &r->clients, client_run, c) < 0) SIM_CHECK(prog.may_fail);
    }
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->clients));
    SIM_CHECK(r->rc == 0);
    volt_cancel(&r->proxy);
    volt_cancel(&r->server);
    if (volt_handle_is_set(&r->proxy)) VOLT_AWAIT(volt_join(cx, &r->proxy));
    if (volt_handle_is_set(&r->server)) VOLT_AWAIT(volt_join(cx, &r->server));
    VOLT_END(0);
}
static void run_net(int has_proxy) {
    volt_config c = draw_config();
    net_root r;
    memset(&r, 0, sizeof r);
    r.has_proxy = has_proxy;
    r.n = 1 + (int)prog_below(8);
    check_app(volt_run(&c, net_root_run, &r));
}
static void app_echo(void) { run_net(0); }
static void app_proxy(void) { run_net(1); }

// ---- pipeline: stages over socket pairs, each changes every byte
enum { STAGES = 5 };
typedef struct stage {
    volt_frame frame;
    pump p;
    int64_t rc;
} stage;
static volt_poll stage_run(volt_cx *cx, void *arg) {
    stage *s = (stage *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, pump_run(cx, &s->p));
    net_failed(s->rc);
    volt_close(cx, s->p.from);
    volt_close(cx, s->p.to);
    VOLT_END(0);
}
typedef struct pipeline {
    volt_frame frame;
    volt_group g;
    volt_arm a, b;
    sender s;
    receiver r;
    int first, last, n;
    uint64_t total;
    int64_t rc;
} pipeline;
// A pair for each joint; a stage owns the end that it reads and the one that it writes.
static int pipeline_build(volt_cx *cx, pipeline *p) {
    int joint[2], rd;
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, joint) < 0) return 0;
    p->first = joint[0];
    rd = joint[1];
    for (p->n = 0; p->n < STAGES; p->n++) {
        stage s;
        memset(&s, 0, sizeof s);
        if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, joint) < 0) break;
        s.p.from = rd;
        s.p.to = joint[0];
        s.p.mask = (unsigned char)(1 << p->n);
        rd = joint[1];
        if (VOLT_GROUP_SPAWN(cx, &p->g, stage_run, s) < 0) {
            volt_close(cx, s.p.from);
            volt_close(cx, s.p.to);
            break;
        }
    }
    p->last = rd;
    return p->n == STAGES;
}
static volt_poll pipeline_run(volt_cx *cx, void *arg) {
    pipeline *p = (pipeline *)arg;
    VOLT_BEGIN(cx, p);
    p->first = p->last = -1;
    p->total = prog_below(4000);
    if (pipeline_build(cx, p)) {
        p->s.fd = p->first;
        p->r.fd = p->last;
        p->s.total = p->total;
        p->r.mask = (1 << STAGES) - 1;
        VOLT_AWAIT(p->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&p->a, sender_run(cx, &p->s)),
                                            VOLT_ARM(&p->b, receiver_run(cx, &p->r))));
        net_failed(p->rc);
        SIM_CHECK(p->r.at == p->total || prog.may_fail);
    }
    if (p->first >= 0) volt_close(cx, p->first);
    if (p->last >= 0) volt_close(cx, p->last);
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->g));
    SIM_CHECK(p->rc == 0);
    VOLT_END(0);
}
static void app_pipeline(void) {
    volt_config c = draw_config();
    pipeline p;
    memset(&p, 0, sizeof p);
    check_app(volt_run(&c, pipeline_run, &p));
}

// ---- retry: the server comes and goes; the client has a time limit and retries until it succeeds
typedef struct flaky {
    volt_frame frame;
    int lfd, fd;
    unsigned char byte;
    int64_t rc;
} flaky;
static int flaky_listen(int port) {
    volt_addr a = app_addr(port);
    return volt_listen_addr(&a, NULL);
}
static volt_poll flaky_serve(volt_cx *cx, flaky *f) {
    VOLT_BEGIN(cx, f);
    for (;;) {
        VOLT_AWAIT(f->fd, volt_accept(cx, f->lfd));
        if (f->fd < 0) VOLT_RETURN(f->fd);
        VOLT_AWAIT(f->rc, volt_read(cx, f->fd, &f->byte, 1));
        if (f->rc == 1) VOLT_AWAIT(f->rc, volt_write(cx, f->fd, &f->byte, 1));
        volt_close(cx, f->fd);
    }
    VOLT_END(0);
}
typedef struct flaky_server {
    volt_frame frame;
    flaky serve;
    volt_timer t;
    int64_t rc;
} flaky_server;
static volt_poll flaky_server_run(volt_cx *cx, void *arg) {
    flaky_server *s = (flaky_server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        s->serve.lfd = flaky_listen(4000);
        if (s->serve.lfd >= 0) {
            VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(30), flaky_serve(cx, &s->serve)));
            volt_close(cx, s->serve.lfd);
            if (s->rc == -ECANCELED) break;
        }
        VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(20)));
        if (s->rc == -ECANCELED) break;
    }
    VOLT_END(0);
}
typedef struct try_once {
    volt_frame frame;
    volt_addr to;
    int fd;
    int64_t rc;
    unsigned char byte;
} try_once;
static volt_poll try_once_run(volt_cx *cx, try_once *t) {
    VOLT_BEGIN(cx, t);
    t->to = app_addr(4000);
    t->byte = 77;
    VOLT_AWAIT(t->fd, volt_connect(cx, &t->to));
    if (t->fd < 0) VOLT_RETURN(t->fd);
    VOLT_AWAIT(t->rc, volt_write(cx, t->fd, &t->byte, 1));
    t->byte = 0;
    if (t->rc == 1) VOLT_AWAIT(t->rc, volt_read(cx, t->fd, &t->byte, 1));
    volt_close(cx, t->fd);
    SIM_CHECK(t->rc != 1 || t->byte == 77);
    VOLT_END(t->rc);
}
typedef struct retrier {
    volt_frame frame;
    volt_handle server;
    volt_timer t;
    try_once once;
    int done;
    int64_t rc, start;
} retrier;
static int retrier_start(volt_cx *cx, retrier *r) {
    flaky_server s;
    memset(&s, 0, sizeof s);
    return VOLT_SPAWN(cx, &r->server, flaky_server_run, s) == 0;
}
static volt_poll retrier_run(volt_cx *cx, void *arg) {
    retrier *r = (retrier *)arg;
    VOLT_BEGIN(cx, r);
    if (!retrier_start(cx, r)) VOLT_RETURN(0);
    while (r->done < 5) {
        r->start = sim_now();
        VOLT_AWAIT(r->rc, volt_within(cx, &r->t, VOLT_MS(25), try_once_run(cx, &r->once)));
        SIM_CHECK(r->rc != -ECANCELED);
        SIM_CHECK(r->rc != -ETIMEDOUT || sim_now() >= r->start + VOLT_MS(25));
        if (r->rc == 1)
            r->done++;
        else
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1 + prog_below(15))));
    }
    volt_cancel(&r->server);
    VOLT_AWAIT(volt_join(cx, &r->server));
    VOLT_END(0);
}
static void app_retry(void) {
    volt_config c = draw_config();
    retrier r;
    memset(&r, 0, sizeof r);
    check_app(volt_run(&c, retrier_run, &r));
}

// ---- ticker: intervals of several periods for a virtual minute; none lost, none early
typedef struct ticker {
    volt_frame frame;
    volt_interval every;
    int64_t period, start, n, rc;
} ticker;
static volt_poll ticker_run(volt_cx *cx, void *arg) {
    ticker *t = (ticker *)arg;
    VOLT_BEGIN(cx, t);
    t->start = sim_now();
    volt_interval_init(&t->every, t->period);
    while (t->n < 60) {
        VOLT_AWAIT(t->rc, volt_interval_next(cx, &t->every));
        SIM_CHECK(t->rc == 1);
        t->n += t->rc;
        SIM_CHECK(sim_now() - t->start >= t->n * t->period);
        if (prog.is_punctual)
            SIM_CHECK(sim_now() - t->start < t->n * t->period + SIM_MS(3) + sim.drift);
    }
    VOLT_END(0);
}
typedef struct tickers {
    volt_frame frame;
    volt_group g;
    int64_t rc;
} tickers;
static volt_poll tickers_run(volt_cx *cx, void *arg) {
    tickers *r = (tickers *)arg;
    VOLT_BEGIN(cx, r);
    for (int i = 0; i < 20; i++) {
        ticker t;
        memset(&t, 0, sizeof t);
        t.period = SIM_MS(1 + prog_below(100)) + prog_below(1000000);
        if (VOLT_GROUP_SPAWN(cx, &r->g, ticker_run, t) < 0) SIM_CHECK(prog.may_fail);
    }
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->g));
    SIM_CHECK(r->rc == 0);
    VOLT_END(0);
}
static void app_ticker(void) {
    volt_config c = draw_config();
    tickers r;
    memset(&r, 0, sizeof r);
    check_app(volt_run(&c, tickers_run, &r));
}

// ---- chat: all members receive the words of each, in the sender's order
enum { MEMBERS = 5, WORDS = 12 };
typedef struct room {
    volt_group *guests;
    int n, fd[MEMBERS], is_broken;
    uint32_t heard[MEMBERS][MEMBERS]; // [listener][speaker]
} room;
// After a failure the others would wait without end for its words.
static void leave_room(room *r, int64_t rc) {
    if (rc < 0 && rc != -ECANCELED) SIM_CHECK(prog.may_fail);
    if (rc >= 0) return;
    r->is_broken = 1;
    volt_group_cancel(r->guests);
}
typedef struct member { // the room's side of one member: passes its words on to all
    volt_frame frame;
    room *room;
    int i, to;
    int64_t rc;
    unsigned char word; // one byte: several members write to one descriptor
} member;
static volt_poll member_run(volt_cx *cx, void *arg) {
    member *m = (member *)arg;
    VOLT_BEGIN(cx, m);
    for (;;) {
        VOLT_AWAIT(m->rc, volt_read_exact(cx, m->room->fd[m->i], &m->word, 1));
        if (m->rc < 0) break;
        for (m->to = 0; m->to < m->room->n; m->to++) {
            VOLT_AWAIT(m->rc, volt_write_all(cx, m->room->fd[m->to], &m->word, 1));
            if (m->rc < 0) break;
        }
        if (m->rc < 0) break;
    }
    leave_room(m->room, m->rc);
    VOLT_END(0);
}
typedef struct talker {
    volt_frame frame;
    int fd, i, at;
    int64_t rc;
    unsigned char word;
} talker;
static volt_poll talker_run(volt_cx *cx, talker *t) {
    VOLT_BEGIN(cx, t);
    for (t->at = 0; t->at < WORDS; t->at++) {
        t->word = (unsigned char)(t->i << 4 | t->at);
        VOLT_AWAIT(t->rc, volt_write_all(cx, t->fd, &t->word, 1));
        if (t->rc < 0) VOLT_RETURN(t->rc);
        if (prog_below(3) == 0) VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    }
    VOLT_END(0);
}
typedef struct ears {
    volt_frame frame;
    room *room;
    int fd, i, n;
    int64_t rc;
    unsigned char word;
} ears;
static volt_poll ears_run(volt_cx *cx, ears *e) {
    VOLT_BEGIN(cx, e);
    while (e->n < WORDS * e->room->n) {
        VOLT_AWAIT(e->rc, volt_read_exact(cx, e->fd, &e->word, 1));
        if (e->rc < 0) VOLT_RETURN(e->rc);
        SIM_CHECK(e->word >> 4 < MEMBERS);
        SIM_CHECK(e->room->heard[e->i][e->word >> 4]++ == (e->word & 15u));
        e->n++;
    }
    VOLT_END(0);
}
typedef struct guest {
    volt_frame frame;
    room *room;
    volt_arm a, b;
    talker t;
    ears e;
    int64_t rc;
} guest;
static volt_poll guest_run(volt_cx *cx, void *arg) {
    guest *g = (guest *)arg;
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(g->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&g->a, talker_run(cx, &g->t)),
                                        VOLT_ARM(&g->b, ears_run(cx, &g->e))));
    leave_room(g->room, g->rc);
    VOLT_END(0);
}
typedef struct chat {
    volt_frame frame;
    volt_group members, guests;
    room room;
    int end[MEMBERS];
    int64_t rc;
} chat;
static int chat_open(volt_cx *cx, chat *c) {
    c->room.guests = &c->guests;
    for (int i = 0; i < MEMBERS; i++) {
        int fd[2];
        if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) break;
        c->room.fd[i] = fd[0];
        c->end[i] = fd[1];
        c->room.n++;
    }
    for (int i = 0; i < c->room.n; i++) {
        member m;
        guest g;
        memset(&m, 0, sizeof m);
        memset(&g, 0, sizeof g);
        m.room = g.room = g.e.room = &c->room;
        m.i = g.t.i = g.e.i = i;
        g.t.fd = g.e.fd = c->end[i];
        if (VOLT_GROUP_SPAWN(cx, &c->members, member_run, m) < 0) return 0;
        if (VOLT_GROUP_SPAWN(cx, &c->guests, guest_run, g) < 0) return 0;
    }
    return 1;
}
static volt_poll chat_run(volt_cx *cx, void *arg) {
    chat *c = (chat *)arg;
    VOLT_BEGIN(cx, c);
    if (!chat_open(cx, c)) leave_room(&c->room, -ENOMEM);
    if (c->room.is_broken) volt_group_cancel(&c->guests); // including those that came later
    VOLT_AWAIT(c->rc, volt_group_wait(cx, &c->guests));
    SIM_CHECK(c->rc == 0);
    VOLT_AWAIT(volt_group_close(cx, &c->members));
    for (int i = 0; i < c->room.n; i++) {
        volt_close(cx, c->room.fd[i]);
        volt_close(cx, c->end[i]);
    }
    VOLT_END(0);
}
static void app_chat(void) {
    volt_config cfg = draw_config();
    static chat c;
    if (kernel.cap < 512) kernel.cap = 512; // members write to each other: buffers must hold all
    memset(&c, 0, sizeof c);
    check_app(volt_run(&cfg, chat_run, &c));
}

// ---- silence: while all wait, no thread makes a step, however long
typedef struct watcher {
    int64_t settle, quiet;
    uint64_t steps;
} watcher;
static void watch_silence(void *arg) {
    watcher *w = (watcher *)arg;
    sim_nap(w->settle);
    w->steps = sim_points();
    sim_nap(w->quiet);
    w->steps = sim_points() - w->steps;
}
typedef struct quiet_root {
    volt_frame frame;
    volt_group g;
    int64_t d, rc;
} quiet_root;
static volt_poll napper_run(volt_cx *cx, void *arg) {
    quiet_root *n = (quiet_root *)arg;
    VOLT_BEGIN(cx, n);
    VOLT_AWAIT(n->rc, volt_sleep(cx, n->d));
    VOLT_END(0);
}
static volt_poll quiet_run(volt_cx *cx, void *arg) {
    quiet_root *r = (quiet_root *)arg;
    VOLT_BEGIN(cx, r);
    for (int i = 0; i < 20; i++) {
        quiet_root n;
        memset(&n, 0, sizeof n);
        n.d = i < 10 ? 1 + (int64_t)prog_below(50000000) : r->d;
        if (n.d < 1000) n.d = 1000;
        if (VOLT_GROUP_SPAWN(cx, &r->g, napper_run, n) < 0) SIM_CHECK(prog.may_fail);
    }
    VOLT_AWAIT(r->rc, volt_sleep(cx, r->d));
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->g));
    VOLT_END(0);
}
static void app_silence(void) {
    volt_config c = draw_config();
    quiet_root r;
    int bits = VOLT_WHEEL_BITS * VOLT_WHEEL_LEVELS;
    watcher w = {SIM_MS(200), 0, 0};
    memset(&r, 0, sizeof r);
    r.d = bits < 30 ? SIM_MS(1 << (bits - 1)) : SIM_S(86400);
    w.quiet = r.d - SIM_MS(1000);
    sim.rate[SIM_LEAP] = 0; // a leap could carry the watcher past the end
    sim_thread *t = sim_start(watch_silence, &w);
    check_app(volt_run(&c, quiet_run, &r));
    sim_join(t);
    if (w.steps != 0) sim_fail("%" PRIu64 " steps while there was nothing to do", w.steps);
}

// ---- rescue: one task computes for long; other workers serve the tasks of its worker within 2 ms,
// whether they were asleep, or busy with a task that yields
typedef struct hog {
    volt_frame frame;
    int left;
    int ms; // 0: 20
} hog;
static volt_poll hog_run(volt_cx *cx, void *arg) {
    hog *h = (hog *)arg;
    VOLT_BEGIN(cx, h);
    for (h->left = 4; h->left > 0; h->left--) {
        sim_compute(SIM_MS(h->ms ? h->ms : 20));
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(3)));
    }
    VOLT_END(0);
}
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    hog *h = (hog *)arg;
    VOLT_BEGIN(cx, h);
    for (h->left = 4000; h->left > 0; h->left--) {
        sim_compute(SIM_US(20));
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
typedef struct patient {
    volt_frame frame;
    int left;
    int64_t rc, due;
} patient;
// A tick, two periods of the watchdog, and one more tick where the kernel counts in milliseconds. A
// busy worker takes only half of the stuck one's ring in each period.
static int64_t soon;
static void check_served(int64_t due, const char *what) {
    int64_t late = sim_now() - due;
    if (prog.is_punctual && late > soon + sim.drift)
        sim_fail("%s of a stuck worker: %" PRId64 " ns late", what, late);
}
static volt_poll patient_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    for (p->left = 40; p->left > 0; p->left--) {
        p->due = sim_now() + SIM_MS(2);
        VOLT_AWAIT(p->rc, volt_sleep(cx, VOLT_MS(2)));
        SIM_CHECK(p->rc == 0 && sim_now() >= p->due);
        check_served(p->due, "timer");
    }
    VOLT_END(0);
}
typedef struct letter {
    int fd[2];
    int64_t sent;
} letter;
static letter post;
static void post_letters(void *arg) {
    (void)arg;
    for (int i = 0; i < 20; i++) {
        sim_nap(SIM_MS(3) + sim_below(1000000));
        post.sent = sim_now();
        while (sim_write(post.fd[1], "x", 1) < 0 && errno == EINTR) {}
    }
    sim_close(post.fd[1]);
}
static volt_poll reader_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    for (;;) {
        static char byte;
        VOLT_AWAIT(p->rc, volt_read(cx, post.fd[0], &byte, 1));
        if (p->rc <= 0) break;
        check_served(post.sent, "descriptor");
    }
    if (p->rc < 0) SIM_CHECK(prog.may_fail);
    volt_close(cx, post.fd[0]);
    VOLT_END(0);
}
typedef struct ward {
    volt_frame frame;
    volt_group g;
    int has_yielder;
    int64_t rc;
} ward;
static volt_poll ward_run(volt_cx *cx, void *arg) {
    ward *w = (ward *)arg;
    VOLT_BEGIN(cx, w);
    patient p;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < 5; i++)
        if (VOLT_GROUP_SPAWN(cx, &w->g, patient_run, p) < 0) SIM_CHECK(prog.may_fail);
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, post.fd) == 0) {
        if (VOLT_GROUP_SPAWN(cx, &w->g, reader_run, p) < 0) volt_close(cx, post.fd[0]);
        start_thread(post_letters, NULL);
    }
    hog h;
    memset(&h, 0, sizeof h);
    if (VOLT_GROUP_SPAWN(cx, &w->g, hog_run, h) < 0) SIM_CHECK(prog.may_fail);
    if (w->has_yielder && VOLT_GROUP_SPAWN(cx, &w->g, yielder_run, h) < 0) SIM_CHECK(prog.may_fail);
    VOLT_AWAIT(w->rc, volt_group_wait(cx, &w->g));
    SIM_CHECK(w->rc == 0);
    VOLT_END(0);
}
static void app_rescue(void) {
    volt_config c = draw_config();
    ward w;
    memset(&w, 0, sizeof w);
    w.has_yielder = (int)prog_below(2);
    c.workers = 3 - (uint32_t)w.has_yielder;
    soon = w.has_yielder ? SIM_MS(7) : SIM_MS(4);
    c.reactors = c.watchdog_us = 0;
    if (prog_below(4))
        program_on_time();
    else
        prog.is_punctual = 0;
    check_app(volt_run(&c, ward_run, &w));
    join_threads();
}

// ---- fairness: two tasks that wake each other all the time must not starve a third
typedef struct duel {
    volt_waker w[2];
    int n_ready, is_over, turn;
} duel;
typedef struct duelist {
    volt_frame frame;
    duel *d;
    int me;
    int64_t rc;
} duelist;
static volt_poll duel_wait(duel *d, int me) {
    return d->is_over || (d->n_ready == 2 && d->turn == me) ? volt_ready(0) : volt_pending();
}
static volt_poll duelist_run(volt_cx *cx, void *arg) {
    duelist *p = (duelist *)arg;
    VOLT_BEGIN(cx, p);
    p->d->w[p->me] = volt_waker_retain(cx);
    p->d->n_ready++;
    if (p->d->n_ready == 2) volt_wake(p->d->w[0]);
    while (!p->d->is_over) {
        VOLT_AWAIT(p->rc, duel_wait(p->d, p->me));
        p->d->turn = !p->me;
        volt_wake(p->d->w[!p->me]);
    }
    VOLT_END(0); // the root releases the wakers: until then the others may use them
}
static volt_poll umpire_run(volt_cx *cx, void *arg) {
    duelist *p = (duelist *)arg;
    VOLT_BEGIN(cx, p);
    while (p->d->n_ready < 2) VOLT_AWAIT(volt_yield(cx));
    for (p->me = 0; p->me < 20; p->me++) VOLT_AWAIT(volt_yield(cx));
    p->d->is_over = 1;
    volt_wake(p->d->w[0]);
    volt_wake(p->d->w[1]);
    VOLT_END(0);
}
typedef struct duel_root {
    volt_frame frame;
    volt_group g;
    duel d;
    int64_t rc;
} duel_root;
static volt_poll duel_root_run(volt_cx *cx, void *arg) {
    duel_root *r = (duel_root *)arg;
    VOLT_BEGIN(cx, r);
    for (int i = 0; i < 3; i++) {
        duelist p;
        memset(&p, 0, sizeof p);
        p.d = &r->d;
        p.me = i;
        SIM_CHECK(VOLT_GROUP_SPAWN(cx, &r->g, i == 2 ? umpire_run : duelist_run, p) == 0);
    }
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->g));
    for (int i = 0; i < 2; i++) volt_waker_release(r->d.w[i]);
    VOLT_END(0);
}
static void app_fairness(void) {
    volt_config c = draw_config();
    duel_root r;
    memset(&r, 0, sizeof r);
    c.workers = 1; // so that plain words suffice between the tasks
    c.reactors = 0;
    sim.rate[SIM_NOMEM] = 0;
    check_app(volt_run(&c, duel_root_run, &r));
}

// ---- volley: threads outside spawn at the same moments and wait, with no other activity that
// could hide a lost wake-up; the watchdog is off for the same reason, and rounds are few. On a
// machine without delays each task starts at once, as a worker sleeps: also while others compute,
// and while a descriptor wakes them.
typedef struct shot {
    volt_frame frame;
    int n, i, is_prompt;
    int64_t at, drift; // the time of its spawn
    volt_group g;
} shot;
static volt_poll pellet_run(volt_cx *cx, void *arg) {
    shot *s = (shot *)arg;
    VOLT_BEGIN(cx, s);
    if (s->n & 1) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(s->n);
}
// A worker whose polls were all short keeps its tasks and wakes no other one; the watchdog, which
// is off here, would end that when a poll takes long.
static void shot_starts(const shot *s) {
    int64_t late = sim_now() - s->at - (sim.drift - s->drift);
    if (volt__refuses_steal(VOLT_TLS_GET())) return;
    if (late > SIM_US(50)) sim_fail("a task started %" PRId64 " ns late; a worker slept", late);
    sim_compute(SIM_US(500));
}
static volt_poll shot_run(volt_cx *cx, void *arg) {
    shot *s = (shot *)arg;
    VOLT_BEGIN(cx, s);
    if (s->is_prompt) {
        shot_starts(s);
        VOLT_RETURN(s->n);
    }
    for (s->i = 0; s->i < s->n; s->i++) {
        shot pellet;
        memset(&pellet, 0, sizeof pellet);
        pellet.n = s->i;
        if (VOLT_GROUP_SPAWN(cx, &s->g, pellet_run, pellet) < 0) SIM_CHECK(prog.may_fail);
    }
    VOLT_AWAIT(volt_group_wait(cx, &s->g));
    VOLT_END(s->n);
}
static void volley(void *arg) {
    volt_handle h = {NULL};
    int64_t result;
    for (int i = 1 + (int)prog_below(3); i > 0; i--) {
        shot s;
        memset(&s, 0, sizeof s);
        s.n = (int)prog_below(4);
        s.is_prompt = arg != NULL;
        s.at = sim_now();
        s.drift = sim.drift;
        if (VOLT_RT_SPAWN(prog.rt, &h, shot_run, s) < 0) {
            SIM_CHECK(prog.may_fail);
            continue;
        }
        SIM_CHECK(volt_join_sync(&h, VOLT_NEVER, &result) == 0 && result == s.n);
    }
}
// Wakes a worker through a descriptor, now and then.
typedef struct listening {
    volt_frame frame;
    int fd;
    int64_t n;
    char byte;
} listening;
static volt_poll listening_run(volt_cx *cx, void *arg) {
    listening *l = (listening *)arg;
    VOLT_BEGIN(cx, l);
    do VOLT_AWAIT(l->n, volt_read(cx, l->fd, &l->byte, 1));
    while (l->n == 1);
    volt_close(cx, l->fd);
    VOLT_END(0);
}
static void tapping(void *arg) {
    int fd = (int)(intptr_t)arg;
    for (int i = 1 + (int)prog_below(3); i > 0; i--) {
        if (prog_below(3) == 0) sim_nap(SIM_US(500 * prog_below(3)));
        sim_write(fd, "x", 1);
    }
    sim_close(fd);
}
static void start_tapping(void) {
    int fd[2];
    listening l;
    memset(&l, 0, sizeof l);
    SIM_CHECK(sim_socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    l.fd = fd[0];
    SIM_CHECK(VOLT_RT_SPAWN(prog.rt, NULL, listening_run, l) == 0);
    start_thread(tapping, (void *)(intptr_t)fd[1]);
}
static void app_volley(void) {
    volt_config c = draw_config();
    int is_prompt = prog_below(2) != 0, n = 1 + (int)prog_below(3);
    int has_faults = !is_prompt && prog_below(2);
    if (!has_faults) program_without_faults();
    c.watchdog_us = UINT32_MAX;
    c.workers = is_prompt ? (uint32_t)n + 1 + prog_below(2) : 1 + prog_below(3);
    c.reactors = 0;
    c.start_all_workers = 1;
    int rc = volt_create(&c, &prog.rt);
    check_app(rc);
    if (rc < 0) return;
    sim.on_quiet = look_at_queues;
    if (!has_faults && prog_below(2)) start_tapping();
    while (n-- > 0) start_thread(volley, is_prompt ? &prog : NULL);
    join_threads();
    SIM_CHECK(volt_shutdown(prog.rt, VOLT_NEVER) == 0);
    sim.on_quiet = NULL;
    SIM_CHECK(volt_destroy(prog.rt) == 0);
}

// ---- lending: a task that blocks in place hands its worker off, even the only one; the timers of
// all others fire in time, and their jobs on the pool complete
typedef struct lender {
    volt_frame frame;
    int left;
    int64_t d, ended;
} lender;
static int block_for(void *arg) {
    lender *l = (lender *)arg;
    sim_compute(l->d);
    l->ended = sim_now();
    return 5;
}
static volt_poll lender_run(volt_cx *cx, void *arg) {
    lender *l = (lender *)arg;
    VOLT_BEGIN(cx, l);
    for (l->left = 4; l->left > 0; l->left--) {
        SIM_CHECK(volt_block_in_place(cx, block_for, l) == 5);
        check_served(l->ended, "poll");
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(100 * l->left)));
    }
    VOLT_END(0);
}
typedef struct depositor {
    volt_frame frame;
    volt_job job;
    lender what;
    int left;
    int64_t rc, at;
} depositor;
static volt_poll depositor_run(volt_cx *cx, void *arg) {
    depositor *p = (depositor *)arg;
    VOLT_BEGIN(cx, p);
    for (p->left = 6; p->left > 0; p->left--) {
        p->what.d = SIM_US(300);
        p->at = sim_now() + p->what.d;
        VOLT_AWAIT(p->rc, volt_blocking(cx, &p->job, block_for, &p->what));
        SIM_CHECK(p->rc == 5 || (prog.may_fail && (p->rc == -EAGAIN || p->rc == -ENOMEM)));
        check_served(p->at, "job");
    }
    VOLT_END(0);
}
typedef struct bank {
    volt_frame frame;
    volt_group g;
    int n_lenders, has_yielder;
    int64_t rc;
} bank;
static volt_poll bank_run(volt_cx *cx, void *arg) {
    bank *b = (bank *)arg;
    VOLT_BEGIN(cx, b);
    patient p;
    lender l;
    depositor d;
    memset(&p, 0, sizeof p);
    memset(&l, 0, sizeof l);
    memset(&d, 0, sizeof d);
    for (int i = 0; i < 4; i++)
        if (VOLT_GROUP_SPAWN(cx, &b->g, patient_run, p) < 0) SIM_CHECK(prog.may_fail);
    for (int i = 0; i < b->n_lenders; i++) {
        l.d = SIM_MS(1 + prog_below(20));
        if (VOLT_GROUP_SPAWN(cx, &b->g, lender_run, l) < 0) SIM_CHECK(prog.may_fail);
    }
    for (int i = 0; i < 2; i++)
        if (VOLT_GROUP_SPAWN(cx, &b->g, depositor_run, d) < 0) SIM_CHECK(prog.may_fail);
    hog h;
    memset(&h, 0, sizeof h);
    if (b->has_yielder && VOLT_GROUP_SPAWN(cx, &b->g, yielder_run, h) < 0) SIM_CHECK(prog.may_fail);
    VOLT_AWAIT(b->rc, volt_group_wait(cx, &b->g));
    SIM_CHECK(b->rc == 0);
    VOLT_END(0);
}
static void app_lending(void) {
    volt_config c = draw_config();
    bank b;
    memset(&b, 0, sizeof b);
    b.n_lenders = 1 + (int)prog_below(3);
    c.workers = 1 + prog_below(2);
    c.reactors = 0;
    c.max_blocking_threads = 2;
    b.has_yielder = prog_below(3) == 0;
    if (prog_below(2)) {
        program_on_time();
    } else {
        prog.is_punctual = 0;
        c.max_blocking_threads = 1; // so that jobs wait for each other
    }
    soon = SIM_MS(kernel.is_old ? 2 : 1) + SIM_US(50);
    if (b.has_yielder) soon += SIM_MS(1); // between two event polls of a busy worker
    check_app(volt_run(&c, bank_run, &b));
}

// ---- refused: a call in place waits for a task that is queued at its own worker. No thread can be
// started for that worker, and there is no watchdog; so its tasks must go to another worker
typedef struct waits_for {
    volt_frame frame;
    volt_handle child;
    int left;
} waits_for;
static int wait_for_child(void *arg) {
    int64_t result;
    return volt_join_sync(&((waits_for *)arg)->child, VOLT_NEVER, &result);
}
static volt_poll refused_run(volt_cx *cx, void *arg) {
    waits_for *f = (waits_for *)arg;
    VOLT_BEGIN(cx, f);
    sim.rate[SIM_THREAD] = 65536;
    for (f->left = 5; f->left > 0; f->left--) {
        quiet_root n;
        memset(&n, 0, sizeof n);
        n.d = 1000;
        SIM_CHECK(VOLT_SPAWN(cx, &f->child, napper_run, n) == 0);
        SIM_CHECK(volt_block_in_place(cx, wait_for_child, f) == 0);
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
static void app_refused(void) {
    volt_config c = draw_config();
    waits_for f;
    memset(&f, 0, sizeof f);
    program_without_faults();
    sim.calm_at = UINT64_MAX; // no thread until the end
    c.workers = 2 + prog_below(2);
    c.reactors = 0;
    c.start_all_workers = 1;
    c.watchdog_us = UINT32_MAX;
    SIM_CHECK(volt_run(&c, refused_run, &f) == 0);
}

// ---- dialling: connections by name over a slow network, by a worker that is often busy: several
// attempts are under way at once, and two may succeed in one poll
typedef struct dialler {
    volt_frame frame;
    volt_dial dial;
    char port[8];
    int left;
    int64_t rc;
} dialler;
static volt_poll dialler_run(volt_cx *cx, void *arg) {
    static const char *const hosts[] = {"11", "011", "1110", "1"};
    dialler *d = (dialler *)arg;
    VOLT_BEGIN(cx, d);
    for (d->left = 3; d->left > 0; d->left--) {
        VOLT_AWAIT(d->rc, volt_tcp_connect(cx, &d->dial, hosts[d->left], d->port));
        if (d->rc >= 0) volt_close(cx, (int)d->rc);
        else SIM_CHECK(prog.may_fail);
    }
    VOLT_END(0);
}
typedef struct exchange {
    volt_frame frame;
    volt_group g;
    volt_handle server;
    int64_t rc;
} exchange;
static volt_poll exchange_run(volt_cx *cx, void *arg) {
    exchange *x = (exchange *)arg;
    VOLT_BEGIN(cx, x);
    dialler d;
    memset(&d, 0, sizeof d);
    int port = listener_spawn(cx, &x->server, 0);
    snprintf(d.port, sizeof d.port, "%d", port);
    for (int i = 0; i < 5 && port; i++)
        if (VOLT_GROUP_SPAWN(cx, &x->g, dialler_run, d) < 0) SIM_CHECK(prog.may_fail);
    hog h;
    memset(&h, 0, sizeof h);
    h.ms = 200;
    if (VOLT_GROUP_SPAWN(cx, &x->g, hog_run, h) < 0) SIM_CHECK(prog.may_fail);
    VOLT_AWAIT(x->rc, volt_group_wait(cx, &x->g));
    SIM_CHECK(x->rc == 0);
    volt_cancel(&x->server);
    if (volt_handle_is_set(&x->server)) VOLT_AWAIT(volt_join(cx, &x->server));
    VOLT_END(0);
}
static void app_dialling(void) {
    volt_config c = draw_config();
    exchange x;
    memset(&x, 0, sizeof x);
    c.workers = 1;
    c.reactors = 0;
    kernel.latency_bits = 30;
    sim.rate[SIM_LATENCY] = 65536 * 3 / 4;
    check_app(volt_run(&c, exchange_run, &x));
}

// ---- placing: threads outside spawn and wake tasks that compute, each into some worker's inbox.
// No task waits while a worker sleeps, loads are the numbers of tasks (calls.h), and all are run;
// also when a shutdown comes in between
typedef struct parcel {
    volt_frame frame;
    volt_token *token;
    int64_t work, rc;
} parcel;
static struct {
    int n_accepted, n_ended;
    volt_token token;
} deliveries;
static volt_poll parcel_run(volt_cx *cx, void *arg) {
    parcel *p = (parcel *)arg;
    VOLT_BEGIN(cx, p);
    if (p->work) sim_compute(p->work);
    if (p->token) VOLT_AWAIT(p->rc, volt_token_wait(cx, p->token));
    deliveries.n_ended++;
    VOLT_END(0);
}
static void deliver(void *arg) {
    (void)arg;
    for (int i = 5 + (int)prog_below(20); i > 0; i--) {
        parcel p;
        memset(&p, 0, sizeof p);
        if (prog_below(2)) p.work = prog_below(400000);
        if (prog_below(4) == 0) p.token = &deliveries.token;
        if (prog_below(3) == 0) sim_nap(prog_below(300000));
        int rc = VOLT_RT_SPAWN(prog.rt, NULL, parcel_run, p);
        SIM_CHECK(rc == 0 || (rc == -ENOMEM && prog.may_fail) ||
                  (rc == -ESHUTDOWN && prog.is_ending));
        deliveries.n_accepted += rc == 0;
    }
}
static void app_placing(void) {
    volt_config c = draw_config();
    volt_counters n;
    memset(&deliveries, 0, sizeof deliveries);
    if (prog_below(2)) program_without_faults();
    c.watchdog_us = UINT32_MAX;
    c.workers = 2 + prog_below(3);
    c.reactors = 0;
    c.start_all_workers = 1;
    c.placement = prog_below(2) ? VOLT_PLACE_TWO : VOLT_PLACE_LEAST;
    int rc = volt_create(&c, &prog.rt);
    check_app(rc);
    if (rc < 0) return;
    sim.on_quiet = look_at_queues;
    for (int i = 1 + (int)prog_below(3); i > 0; i--) start_thread(deliver, NULL);
    if (prog_below(2)) {
        sim_nap(prog_below(2000000));
        volt_token_cancel(&deliveries.token); // wakes several at once
    }
    if (prog_below(3) == 0) join_threads();
    prog.is_ending = 1;
    SIM_CHECK(volt_shutdown(prog.rt, VOLT_NEVER) == 0);
    join_threads();
    sim.on_quiet = NULL;
    volt_stats(prog.rt, &n);
    SIM_CHECK(deliveries.n_ended == deliveries.n_accepted);
    SIM_CHECK(n.spawned == n.completed && n.completed == (uint64_t)deliveries.n_ended);
    SIM_CHECK(volt_destroy(prog.rt) == 0);
}

// ---- turns: tasks and threads that only take turns at a few kinds of shared objects; some of them
// are cancelled
typedef struct player {
    volt_frame frame;
    op_turns turns;
    int id, left;
    int64_t rc;
} player;
static volt_poll player_body(volt_cx *cx, player *p) {
    VOLT_BEGIN(cx, p);
    for (; p->left > 0; p->left--) {
        memset(&p->turns, 0, sizeof p->turns);
        VOLT_AWAIT(p->rc, turns_run(cx, &p->turns, p->id));
        if (p->rc < 0) break;
    }
    VOLT_END(0);
}
static volt_poll player_run(volt_cx *cx, void *arg) {
    player *p = (player *)arg;
    int id = p->id;
    note_poll_begin(id);
    volt_poll rc = player_body(cx, p);
    note_poll_end(id, rc);
    return rc;
}
static int player_spawn(volt_handle *h) {
    player p;
    memset(&p, 0, sizeof p);
    p.id = note_task();
    p.left = 1 + (int)prog_below(12);
    prog.note[p.id].spawned_at = prog.n_polls;
    int rc = VOLT_RT_SPAWN(prog.rt, h, player_run, p);
    note_spawned(p.id, rc);
    return p.id;
}
// Of all kinds, or of three at most: then many meet. Operations on channels belong together; an
// object that ends with its wait is best alone.
static void draw_turns(void) {
    turns_init();
    if (prog_below(5) == 0) return;
    uint32_t on = 0;
    for (int i = (int)prog_below(3); i >= 0; i--) on |= 1u << prog_below(N_TURNS);
    if (on & chan_turns) on |= chan_turns;
    if (prog_below(5) == 0) on = 1u << T_loan;
    turns_off = ~on;
}
enum { MOST_PLAYERS = 16 };
static void app_turns(void) {
    volt_config c = draw_config();
    volt_handle h[MOST_PLAYERS] = {{NULL}};
    int id[MOST_PLAYERS], n = 2 + (int)prog_below(MOST_PLAYERS - 1);
    int64_t result;
    prog.most_tasks = MOST_TASKS;
    draw_turns();
    int rc = volt_create(&c, &prog.rt);
    check_app(rc);
    if (rc < 0) return;
    sim.on_quiet = look_at_turns;
    for (int i = (int)prog_below(4); i > 0; i--)
        start_thread(thread_turns, (void *)(intptr_t)(1 + prog_below(8)));
    for (int i = 0; i < n; i++) id[i] = player_spawn(&h[i]);
    for (int i = 0; i < n; i++) {
        if (prog_below(3)) continue;
        sim_nap(1 + prog_below(3000000));
        note_cancel(id[i]);
        volt_cancel(&h[i]);
    }
    for (int i = 0; i < n; i++)
        if (volt_handle_is_set(&h[i])) SIM_CHECK(volt_join_sync(&h[i], VOLT_NEVER, &result) == 0);
    prog.is_ending = 1;
    SIM_CHECK(volt_shutdown(prog.rt, VOLT_NEVER) == 0);
    join_threads();
    sim.on_quiet = NULL;
    SIM_CHECK(volt_destroy(prog.rt) == 0);
    check_all_ended();
    check_turns();
}

// ----
#define APPS(X_)                                                                                   \
    X_(echo) X_(proxy) X_(pipeline) X_(retry) X_(ticker) X_(chat) X_(silence) X_(rescue)           \
    X_(fairness) X_(volley) X_(lending) X_(refused) X_(dialling) X_(placing)                       \
    X_(turns) X_(pongs)

#endif // VOLT_SIM_APPS_H
