// SPDX-License-Identifier: MIT OR 0BSD
// Channels that a program's tasks and threads share, with the model of each; for turns.h. Every
// message is identified by its writer and number, from before it is sent until the end.
#ifndef VOLT_SIM_MAIL_H
#define VOLT_SIM_MAIL_H

#include "locks.h"

enum { N_CHANS = 4, MOST_CAP = 3, N_QUEUES = 4, N_CARDS = 1024, N_ONESHOTS = 8 };
enum { MOST_WRITERS = 2048 };
enum { IS_NEW, IS_SENT, IS_UNSENT };
typedef struct card { // of a queue
    volt_queue_node node;
    int is_sent, n_got, before; // before: pushed earlier by the same writer; -1: none
} card;
static struct mail {
    struct {
        volt_chan c;
        message buf[MOST_CAP];
        int n_in, n_reserved; // sent and not received; reserved slots
        uint64_t n_used;      // reservations that were used, or given up
        int is_closing;
        uint64_t closed_at;
    } chan[N_CHANS]; // the last one: a rendezvous
    struct {
        uint8_t is_sent[MOST_MESSAGES], n_got[MOST_MESSAGES];
        uint32_t last; // the latest arrival: its number + 1, and its time
        uint64_t last_at;
    } writer[MOST_WRITERS];
    uint32_t n_writers;
    struct {
        volt_queue q;
        int is_taken, is_closing, n_in;
    } queue[N_QUEUES];
    card card[N_CARDS];
    int n_cards;
    struct {
        volt_oneshot o;
        int has_sender, has_receiver, is_sent, is_closing;
    } oneshot[N_ONESHOTS];
    struct {
        volt_bcast b;
        uint64_t buf[MOST_CAP];
        uint64_t n_begun, n_sent; // the k-th message is k
        int is_sending, is_closing, n_open, n_changing; // subscribers; those that join or leave now
        uint64_t n_changes;                             // begun so far
    } news;
    struct {
        volt_watch w;
        uint64_t value;
        uint64_t n_begun, n_set;
        int is_setting, is_closing;
    } board;
} mail;

static void mail_init(void) {
    memset(&mail, 0, sizeof mail);
    for (int i = 0; i < N_CHANS; i++) {
        size_t cap = i == N_CHANS - 1 ? 0 : 1 + prog_below(MOST_CAP);
        volt_chan_init(&mail.chan[i].c, mail.chan[i].buf, sizeof(message), cap);
    }
    mail.news.b = (volt_bcast)VOLT_BCAST_INIT(mail.news.buf);
    mail.news.b.cap_ = 1 + prog_below(MOST_CAP);
    mail.board.w = (volt_watch)VOLT_WATCH_INIT(mail.board.value);
}

// ---- messages

static void messages_write(turn *t, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        t->messages[k].from = t->from;
        t->messages[k].nth = k;
    }
    t->n = n;
}
static void message_sent(int i, const message *l, int is_sent) {
    mail.writer[l->from].is_sent[l->nth] = is_sent ? IS_SENT : IS_UNSENT;
    if (is_sent) mail.chan[i].n_in++;
    else SIM_CHECK(mail.writer[l->from].n_got[l->nth] == 0);
}
// began_at: of the receive. Later arrivals were not there before it.
static void message_got(int i, const message *l, uint64_t began_at) {
    SIM_CHECK(l->from < mail.n_writers && l->nth < MOST_MESSAGES);
    SIM_CHECK(mail.writer[l->from].n_got[l->nth]++ == 0);
    SIM_CHECK(mail.writer[l->from].is_sent[l->nth] != IS_UNSENT);
    mail.chan[i].n_in--;
    if (mail.writer[l->from].last > l->nth + 1)
        SIM_CHECK(mail.writer[l->from].last_at > began_at);
    else
        mail.writer[l->from].last = l->nth + 1, mail.writer[l->from].last_at = stamp();
}
static void chan_closed_for(const waiting *w) { SIM_CHECK(mail.chan[w->i].is_closing); }
static void check_open(const waiting *w) {
    if (mail.chan[w->i].closed_at) SIM_CHECK(mail.chan[w->i].closed_at > w->began_at);
}
static void send_result(const waiting *w) {
    const message *l = (const message *)w->data;
    uint32_t n_sent = w->rc < 0 ? 0 : w->n > 1 ? (uint32_t)w->rc : 1;
    SIM_CHECK(w->n > 1 ? w->rc != 0 && w->rc <= (int64_t)w->n : w->rc <= 0);
    for (uint32_t k = 0; k < w->n; k++) message_sent(w->i, &l[k], k < n_sent);
    if (w->rc >= 0) {
        check_open(w);
        check_order(w);
    }
    if (w->rc == -EPIPE) chan_closed_for(w);
}
static void recv_result(const waiting *w) {
    const message *l = (const message *)w->data;
    SIM_CHECK(w->rc <= (int64_t)w->n);
    for (int64_t k = 0; k < w->rc; k++) {
        for (int64_t j = 0; j < k; j++) SIM_CHECK(l[j].from != l[k].from || l[j].nth < l[k].nth);
        message_got(w->i, &l[k], w->began_at);
    }
    if (w->rc > 0) check_order(w);
    if (w->rc != 0) return;
    chan_closed_for(w);
    // a reservation is still to be used
    SIM_CHECK(!w->was_open || mail.chan[w->i].n_used > w->n_told);
}
static void reserve_result(const waiting *w) {
    if (w->rc == 0) {
        mail.chan[w->i].n_reserved++;
        check_open(w);
        check_order(w);
    } else if (w->rc == -EPIPE) {
        chan_closed_for(w);
    }
}
// Of several concurrent releases the last one closes it.
static void chan_close(int i) {
    int side = prog_below(2) ? VOLT_CHAN_SENDER : VOLT_CHAN_RECEIVER;
    mail.chan[i].is_closing = 1;
    if (prog_below(3) == 0) {
        volt_chan_retain(&mail.chan[i].c, side);
        volt_chan_release(&mail.chan[i].c, side);
    } else {
        volt_chan_close(&mail.chan[i].c);
        if (!mail.chan[i].closed_at) mail.chan[i].closed_at = stamp();
    }
}

// ---- cards

// Popped by one task at a time: strictly in order.
static void card_got(int i, volt_queue_node *node) {
    card *c = VOLT__CONTAINER(card, node, node);
    SIM_CHECK(c >= mail.card && c < mail.card + mail.n_cards);
    SIM_CHECK(c->is_sent != IS_UNSENT && c->n_got++ == 0);
    if (c->before >= 0 && mail.card[c->before].is_sent == IS_SENT)
        SIM_CHECK(mail.card[c->before].n_got == 1);
    mail.queue[i].n_in--;
}
static void queue_result(const waiting *w) {
    if (w->rc == 1) card_got(w->i, *(volt_queue_node **)w->data);
    if (w->rc == 0) SIM_CHECK(mail.queue[w->i].is_closing && mail.queue[w->i].n_in <= 0);
}
static int card_push(int i, int before) {
    if (mail.n_cards == N_CARDS) return -1;
    int k = mail.n_cards++;
    card *c = &mail.card[k];
    c->before = before;
    int rc = volt_queue_push(&mail.queue[i].q, &c->node);
    c->is_sent = rc == 0 ? IS_SENT : IS_UNSENT;
    mail.queue[i].n_in += rc == 0;
    if (rc < 0) SIM_CHECK(rc == -EPIPE && mail.queue[i].is_closing && c->n_got == 0);
    return k;
}

// ---- a oneshot

static void oneshot_result(const waiting *w) {
    if (w->rc >= 0) SIM_CHECK(w->rc == 1000 + w->i && mail.oneshot[w->i].has_sender);
    else SIM_CHECK(w->rc != -EPIPE || mail.oneshot[w->i].is_closing);
}

// ---- news: every message to all subscribers; only messages without room in the ring are lost

static uint64_t n_lost_at(uint64_t n_sent, uint64_t next) {
    uint64_t oldest = n_sent > mail.news.b.cap_ ? n_sent - mail.news.b.cap_ : 0;
    return oldest > next ? oldest - next : 0;
}
// w->n_told: messages that had been sent at its begin; t->next: the number of the one it wants, if
// t->low: at least that.
static void sub_result(turn *t) {
    const waiting *w = &t->w;
    if (w->rc == 1) {
        SIM_CHECK(t->low ? t->value >= t->next && t->value <= t->n : t->value == t->next);
        SIM_CHECK(t->value < mail.news.n_begun && n_lost_at(w->n_told, t->value) == 0);
        t->next = t->value + 1;
        t->low = 0;
    } else if (w->rc == -EOVERFLOW) {
        uint64_t n = volt_sub_lost(&t->sub);
        if (!t->low) SIM_CHECK(n <= n_lost_at(mail.news.n_begun, t->next));
        if (!t->low) SIM_CHECK(n >= n_lost_at(w->n_told, t->next));
        SIM_CHECK(n > 0 && volt_sub_lost(&t->sub) == 0);
        t->next += n;
        t->n += (uint32_t)n;
    } else if (w->rc == 0) {
        SIM_CHECK(mail.news.is_closing && (t->low || t->next >= mail.news.n_sent));
    }
}
static void news_send(void) {
    if (mail.news.is_sending) return; // one at a time, so that numbers are known
    mail.news.is_sending = 1;
    uint64_t k = mail.news.n_begun++;
    uint64_t n_changes = mail.news.n_changes;
    int is_steady = !mail.news.n_changing;
    int rc = volt_bcast_send(&mail.news.b, &k, sizeof k);
    if (rc < 0) {
        SIM_CHECK(rc == -EPIPE && mail.news.is_closing);
        mail.news.n_begun--;
    } else if (is_steady && n_changes == mail.news.n_changes) {
        SIM_CHECK(rc == mail.news.n_open);
    }
    mail.news.n_sent = mail.news.n_begun;
    mail.news.is_sending = 0;
}

static void news_changes(volt_sub *s, int is_open) {
    mail.news.n_changing++;
    mail.news.n_changes++;
    if (is_open) volt_sub_open(s, &mail.news.b);
    else volt_sub_close(s);
    mail.news.n_changing--;
    mail.news.n_open += is_open ? 1 : -1;
}

// ---- the board: only the newest counts

static void watch_result(turn *t) {
    const waiting *w = &t->w;
    if (w->rc == 1) {
        SIM_CHECK(t->value > t->next && t->value >= w->n_told && t->value <= mail.board.n_begun);
        t->next = t->value;
    } else if (w->rc == 0) {
        SIM_CHECK(mail.board.is_closing && w->n_told <= t->n);
    }
}
static void board_set(void) {
    uint32_t seen = 0;
    uint64_t k = 0;
    if (mail.board.is_setting) return;
    mail.board.is_setting = 1;
    SIM_CHECK(volt_watch_get(&mail.board.w, &k, sizeof k, &seen) == 0 && k == mail.board.n_set);
    k = ++mail.board.n_begun;
    int rc = prog_below(2) ? volt_watch_set(&mail.board.w, &k, sizeof k)
                           : volt_watch_set_if(&mail.board.w, &k, sizeof k, seen);
    if (rc < 0) SIM_CHECK(rc == -EPIPE && mail.board.is_closing);
    if (rc < 0) mail.board.n_begun--;
    else SIM_CHECK(volt_watch_set_if(&mail.board.w, &k, sizeof k, seen) < 0);
    mail.board.n_set = mail.board.n_begun;
    mail.board.is_setting = 0;
}

// ---- the result of a wait

static void mail_begins(waiting *w) {
    if (w->kind == W_RECV) {
        w->was_open = mail.chan[w->i].n_reserved > 0;
        w->n_told = mail.chan[w->i].n_used;
    }
    if (w->kind == W_SUB) w->n_told = mail.news.n_sent;
    if (w->kind == W_WATCH) w->n_told = mail.board.n_set;
}
static turn *turn_of(waiting *w) { return VOLT__CONTAINER(turn, w, w); }
static void mail_got(waiting *w) {
    switch (w->kind) {
    case W_SEND: send_result(w); break;
    case W_RECV: recv_result(w); break;
    case W_RESERVE: reserve_result(w); break;
    case W_CLOSED:
        if (w->rc == 0) chan_closed_for(w);
        break;
    case W_QUEUE: queue_result(w); break;
    case W_ONESHOT: oneshot_result(w); break;
    case W_SUB: sub_result(turn_of(w)); break;
    default: watch_result(turn_of(w));
    }
}

// ---- at rest

static int chan_is_open(const waiting *w) {
    int n_in = mail.chan[w->i].n_in, n_used = n_in + mail.chan[w->i].n_reserved;
    int is_closing = mail.chan[w->i].is_closing, cap = (int)mail.chan[w->i].c.cap_;
    if (cap == 0) cap = count_waits(W_RECV, w->i) > 0;
    switch (w->kind) {
    case W_RECV: return n_in > 0 || (is_closing && n_used == 0);
    case W_CLOSED: return is_closing;
    default: return is_closing || n_used < cap;
    }
}
static int mail_is_open(waiting *w) {
    switch (w->kind) {
    case W_QUEUE: return mail.queue[w->i].n_in > 0 || mail.queue[w->i].is_closing;
    case W_ONESHOT: return mail.oneshot[w->i].is_sent || mail.oneshot[w->i].is_closing;
    case W_SUB:
        return mail.news.is_closing || (turn_of(w)->low ? mail.news.n_sent > turn_of(w)->n
                                                        : mail.news.n_sent > turn_of(w)->next);
    case W_WATCH: return mail.board.is_closing || mail.board.n_set > turn_of(w)->n;
    default: return chan_is_open(w);
    }
}
static void check_mail(void) {
    for (int i = 0; i < N_CHANS; i++) {
        volt_chan *c = &mail.chan[i].c;
        SIM_CHECK(volt_chan_len(c) == (uint32_t)mail.chan[i].n_in);
        SIM_CHECK(volt_chan_len(c) + (uint32_t)mail.chan[i].n_reserved <= c->slots_);
        SIM_CHECK(volt_chan_is_closed(c) == mail.chan[i].is_closing);
    }
}
// At the end: the remaining messages are there, and then all sent ones have arrived.
static void drain_mail(void) {
    message l;
    volt_queue_node *node;
    for (int i = 0; i < N_CHANS; i++)
        while (volt_chan_try_recv(&mail.chan[i].c, &l, sizeof l) > 0) message_got(i, &l, stamp());
    for (int i = 0; i < N_QUEUES; i++)
        while (volt_queue_try_pop(&mail.queue[i].q, &node) > 0) card_got(i, node);
}
static void check_mail_left(void) {
    check_mail();
    drain_mail();
    for (int i = 0; i < N_CHANS; i++) SIM_CHECK(mail.chan[i].n_reserved == 0);
    for (uint32_t i = 0; i < mail.n_writers; i++)
        for (int k = 0; k < MOST_MESSAGES; k++)
            SIM_CHECK(mail.writer[i].n_got[k] == (mail.writer[i].is_sent[k] == IS_SENT));
    for (int i = 0; i < mail.n_cards; i++)
        SIM_CHECK(mail.card[i].n_got == (mail.card[i].is_sent == IS_SENT));
}

// ---- turns

static int send_turn(turn *t) {
    switch (t->step++) {
    case 0:
        if (mail.n_writers == MOST_WRITERS) return TURN_ENDS;
        t->from = mail.n_writers++;
        t->i = (int)prog_below(N_CHANS);
        messages_write(t, 1 + prog_below(MOST_MESSAGES));
        t->left = (int)t->n; // one by one, or all at once
        if (t->n > 1 && prog_below(3) == 0) t->left = 0;
        break;
    default:
        if (t->w.rc < 0) return TURN_ENDS;
    }
    if (t->step == 1 && t->left == 0) {
        turn_waits(t, W_SEND, t->i, t->n, 0);
        t->w.data = t->messages;
        return TURN_WAITS;
    }
    if (t->left <= 0) return TURN_ENDS;
    turn_waits(t, W_SEND, t->i, 1, 0);
    t->w.data = &t->messages[t->n - (uint32_t)t->left--];
    return TURN_WAITS;
}
static int recv_turn(turn *t) {
    if (t->step++ == 0) {
        t->i = (int)prog_below(N_CHANS);
        t->left = 1 + (int)prog_below(4);
    } else if (t->w.rc <= 0) {
        return TURN_ENDS;
    }
    if (t->left-- == 0) {
        if (prog_below(20) == 0) chan_close(t->i);
        return TURN_ENDS;
    }
    turn_waits(t, W_RECV, t->i, prog_below(3) ? 1 : 1 + prog_below(MOST_MESSAGES), 0);
    t->w.data = t->messages;
    return TURN_WAITS;
}
static int reserve_turn(turn *t) {
    switch (t->step++) {
    case 0:
        if (mail.n_writers == MOST_WRITERS) return TURN_ENDS;
        t->from = mail.n_writers++;
        messages_write(t, 1);
        return turn_waits(t, W_RESERVE, (int)prog_below(N_CHANS), 1, 0);
    case 1: return t->w.rc < 0 ? TURN_ENDS : TURN_HOLDS;
    default: break;
    }
    mail.chan[t->w.i].n_reserved--;
    mail.chan[t->w.i].n_used++;
    if (prog_below(3) == 0) {
        volt_chan_unreserve(&mail.chan[t->w.i].c);
        return TURN_ENDS;
    }
    int rc = volt_chan_send_reserved(&mail.chan[t->w.i].c, &t->messages[0], sizeof(message));
    SIM_CHECK(rc == 0);
    message_sent(t->w.i, &t->messages[0], 1);
    return TURN_ENDS;
}
static int closed_turn(turn *t) {
    if (t->step++ > 0) return TURN_ENDS;
    int i = (int)prog_below(N_CHANS);
    if (prog_below(3)) return turn_waits(t, W_CLOSED, i, 1, 0);
    if (prog_below(6) == 0) chan_close(i);
    return TURN_ENDS;
}
static void queue_close(int i) {
    mail.queue[i].is_closing = 1;
    volt_queue_close(&mail.queue[i].q);
}
static int queue_turn(turn *t) {
    switch (t->step++) {
    case 0:
        t->i = (int)prog_below(N_QUEUES);
        t->left = 3;
        if (prog_below(2)) break;
        for (int n = 1 + (int)prog_below(3), before = -1; n > 0; n--)
            before = card_push(t->i, before);
        if (t->i > 0 && prog_below(10) == 0) queue_close(t->i);
        return TURN_ENDS;
    default:
        mail.queue[t->i].is_taken = 0;
        if (t->w.rc <= 0) return TURN_ENDS;
    }
    if (mail.queue[t->i].is_taken || t->left-- == 0) return TURN_ENDS;
    mail.queue[t->i].is_taken = 1;
    turn_waits(t, W_QUEUE, t->i, 1, 0);
    t->w.data = &t->node;
    return TURN_WAITS;
}
static void oneshot_send(int i) {
    if (mail.oneshot[i].has_sender) return;
    mail.oneshot[i].has_sender = 1;
    if (prog_below(4) == 0) {
        mail.oneshot[i].is_closing = 1;
        volt_oneshot_close(&mail.oneshot[i].o);
        return;
    }
    int rc = volt_oneshot_send(&mail.oneshot[i].o, 1000 + i);
    mail.oneshot[i].is_sent = rc == 0;
    if (rc < 0) SIM_CHECK(rc == -EPIPE && mail.oneshot[i].is_closing);
}
static int oneshot_turn(turn *t) {
    switch (t->step++) {
    case 0:
        t->i = (int)prog_below(N_ONESHOTS);
        if (prog_below(2) == 0) {
            oneshot_send(t->i);
            return TURN_ENDS;
        }
        if (mail.oneshot[t->i].has_receiver) return TURN_ENDS;
        mail.oneshot[t->i].has_receiver = 1;
        return turn_waits(t, W_ONESHOT, t->i, 1, 0);
    default: break;
    }
    if (t->w.rc >= 0 || t->w.rc == -EPIPE) return TURN_ENDS; // for good
    if (prog_below(2)) {
        mail.oneshot[t->i].is_closing = 1; // it wants no more messages
        volt_oneshot_close(&mail.oneshot[t->i].o);
    } else {
        mail.oneshot[t->i].has_receiver = 0; // another one may try
    }
    return TURN_ENDS;
}
static int sub_turn(turn *t) {
    if (t->step++ == 0) {
        if (prog_below(2)) {
            for (int n = 1 + (int)prog_below(4); n > 0; n--) news_send();
            if (prog_below(30) == 0) {
                mail.news.is_closing = 1;
                volt_bcast_close(&mail.news.b);
            }
            return TURN_ENDS;
        }
        t->left = 1 + (int)prog_below(5);
        t->next = mail.news.n_sent;
        news_changes(&t->sub, 1);
        t->n = (uint32_t)mail.news.n_begun;
        t->low = t->next != t->n; // one was under way
    } else if (t->w.rc <= 0 && t->w.rc != -EOVERFLOW) {
        t->left = 0;
    }
    if (t->left-- == 0) {
        news_changes(&t->sub, 0);
        return TURN_ENDS;
    }
    turn_waits(t, W_SUB, 0, 1, 0);
    t->w.data = &t->value;
    return TURN_WAITS;
}
static int watch_turn(turn *t) {
    if (t->step++ == 0) {
        if (prog_below(2)) {
            board_set();
            if (prog_below(60) == 0) {
                mail.board.is_closing = 1;
                volt_watch_close(&mail.board.w);
            }
            return TURN_ENDS;
        }
        t->left = 1 + (int)prog_below(3);
        t->next = mail.board.n_set;
        volt_watcher_open(&t->watcher, &mail.board.w);
        t->n = (uint32_t)mail.board.n_begun;
    } else if (t->w.rc <= 0) {
        return TURN_ENDS;
    } else {
        t->n = (uint32_t)t->next;
    }
    if (t->left-- == 0) return TURN_ENDS;
    turn_waits(t, W_WATCH, 0, 1, 0);
    t->w.data = &t->value;
    return TURN_WAITS;
}

// ---- the waits themselves

static volt_poll mail_poll(volt_cx *cx, waiting *w) {
    switch (w->kind) {
    case W_SEND:
        if (w->n == 1) return volt_chan_send(cx, &mail.chan[w->i].c, w->data, sizeof(message));
        return volt_chan_send_n(cx, &mail.chan[w->i].c, w->data, sizeof(message), w->n);
    case W_RECV:
        if (w->n == 1) return volt_chan_recv(cx, &mail.chan[w->i].c, w->data, sizeof(message));
        return volt_chan_recv_n(cx, &mail.chan[w->i].c, w->data, sizeof(message), w->n);
    case W_RESERVE: return volt_chan_reserve(cx, &mail.chan[w->i].c);
    case W_CLOSED: return volt_chan_wait_closed(cx, &mail.chan[w->i].c);
    case W_QUEUE: return volt_queue_pop(cx, &mail.queue[w->i].q, (volt_queue_node **)w->data);
    case W_ONESHOT: return volt_oneshot_recv(cx, &mail.oneshot[w->i].o);
    case W_SUB: return volt_sub_recv(cx, &turn_of(w)->sub, w->data, sizeof(uint64_t));
    default: return volt_watcher_next(cx, &turn_of(w)->watcher, w->data, sizeof(uint64_t));
    }
}
// -ENOSYS: it has no such form.
static int mail_sync(waiting *w, int64_t at_most) {
    int64_t value = 0;
    int rc;
    switch (w->kind) {
    case W_SEND:
        if (w->n > 1) return -ENOSYS;
        return volt_chan_send_sync(&mail.chan[w->i].c, w->data, sizeof(message), at_most);
    case W_RECV:
        if (w->n > 1) return -ENOSYS;
        return volt_chan_recv_sync(&mail.chan[w->i].c, w->data, sizeof(message), at_most);
    case W_QUEUE:
        return volt_queue_pop_sync(&mail.queue[w->i].q, (volt_queue_node **)w->data, at_most);
    case W_ONESHOT:
        rc = volt_oneshot_recv_sync(&mail.oneshot[w->i].o, at_most, &value);
        return rc < 0 ? rc : (int)value;
    default: return -ENOSYS;
    }
}
static int mail_try(waiting *w) {
    int64_t value = 0;
    int rc;
    switch (w->kind) {
    case W_SEND:
        if (w->n > 1) return -ENOSYS;
        return volt_chan_try_send(&mail.chan[w->i].c, w->data, sizeof(message));
    case W_RECV:
        if (w->n > 1) return -ENOSYS;
        return volt_chan_try_recv(&mail.chan[w->i].c, w->data, sizeof(message));
    case W_RESERVE: return volt_chan_try_reserve(&mail.chan[w->i].c);
    case W_QUEUE: return volt_queue_try_pop(&mail.queue[w->i].q, (volt_queue_node **)w->data);
    case W_ONESHOT:
        rc = volt_oneshot_try_recv(&mail.oneshot[w->i].o, &value);
        return rc < 0 ? rc : (int)value;
    case W_SUB: return volt_sub_try_recv(&turn_of(w)->sub, w->data, sizeof(uint64_t));
    case W_WATCH:
        return volt_watcher_try_next(&turn_of(w)->watcher, w->data, sizeof(uint64_t));
    default: return -ENOSYS;
    }
}

#endif // VOLT_SIM_MAIL_H
