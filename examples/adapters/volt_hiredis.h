// SPDX-License-Identifier: MIT OR 0BSD
// hiredis: its asynchronous Redis client on a poll set. Include it behind volt.h and link with
// -lhiredis (0.14 or later). For use, see examples/adapters/hiredis.c:
//
//     volt_hiredis h = { .ac = NULL }; // in the state of the task
//     rc = volt_hiredis_open(&h, redisAsyncConnect("127.0.0.1", 6379));
//     redisAsyncCommand(h.ac, on_reply, &user, "GET key"); n_owed++; // on_reply: n_owed--
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(5), volt_hiredis_run(cx, &h, &n_owed)));
//     volt_hiredis_close(cx, &h);
//
// Commands are queued by the functions of hiredis, as many as wanted, and are sent by
// volt_hiredis_run, which calls the callbacks of the replies. For a subscription it is called once
// for each message: on_message counts down, too. h.ac is NULL once the connection has ended, which
// must be checked before a command.
//
// hiredis requests reads and writes by callbacks, frees its context and closes its descriptor by
// itself, and is not safe for two tasks at once: one task owns a connection. A command that was
// sent cannot be withdrawn: a connection whose blocking command was given up can only be closed.
// hiredis writes without MSG_NOSIGNAL, so the program must ignore SIGPIPE. redisAsyncConnect blocks
// while it looks up a name: pass an address, such as one from volt_resolve. hiredis trusts its
// server: version 0.14 aborts the program on a reply for which no command was sent.
#ifndef VOLT_HIREDIS_H
#define VOLT_HIREDIS_H

#include <errno.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

// A connection, in the state of its task. Zeroed: not open.
typedef struct volt_hiredis {
    volt_frame frame;      // of volt_hiredis_run
    redisAsyncContext *ac; // NULL: not connected. Its member `data` is the program's
    volt_pollset set;
    volt_pollev ev;
    uint32_t want; // the events that hiredis has asked for
    int n;
    int rc;        // the error that has ended the connection, or 0
    char why[128]; // its text from hiredis, or ""
} volt_hiredis;

static inline void volt_hiredis__want(void *at, uint32_t events) {
    volt_hiredis *h = (volt_hiredis *)at;
    if (events == h->want) return; // hiredis repeats itself after each read
    int rc = volt_pollset_set(&h->set, h->ac->c.fd, events);
    h->want = events;
    if (rc < 0 && h->rc == 0) h->rc = rc;
}
static inline void volt_hiredis__add_read(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want | VOLT_IN);
}
static inline void volt_hiredis__del_read(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want & ~(uint32_t)VOLT_IN);
}
static inline void volt_hiredis__add_write(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want | VOLT_OUT);
}
static inline void volt_hiredis__del_write(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want & ~(uint32_t)VOLT_OUT);
}
static inline int volt_hiredis__error(const redisAsyncContext *ac) {
    switch (ac->c.err) {
    case REDIS_ERR_PROTOCOL: return -EPROTO;
    case REDIS_ERR_OOM: return -ENOMEM;
    default: return ac->c.flags & REDIS_CONNECTED ? -ECONNRESET : -ECONNREFUSED;
    }
}
// The error of a redisAsyncConnect... Of a lack of descriptors the context has only the text.
static inline int volt_hiredis__refusal(const redisAsyncContext *ac) {
    if (strstr(ac->c.errstr, strerror(EMFILE))) return -EMFILE;
    if (strstr(ac->c.errstr, strerror(ENFILE))) return -ENFILE;
    return volt_hiredis__error(ac);
}
// Inside a call of hiredis, which frees the context next.
static inline void volt_hiredis__cleanup(void *at) {
    volt_hiredis *h = (volt_hiredis *)at;
    volt_hiredis__want(h, 0);
    if (h->rc == 0 && h->ac->c.err) h->rc = volt_hiredis__error(h->ac);
    snprintf(h->why, sizeof h->why, "%s", h->ac->c.errstr);
    h->ac = NULL;
}

// Takes the context of a redisAsyncConnect...; NULL: hiredis is out of memory. *h is zeroed, or was
// closed.
//   where  : any thread
//   returns: 0: the connection is being established | -ECONNREFUSED: it cannot be, see h->why |
//            -ENOMEM | -EMFILE, -ENFILE
//   memory : *h must not be moved. The context is the adapter's, and is freed after an error
static inline int volt_hiredis_open(volt_hiredis *h, redisAsyncContext *ac) {
    int rc = !ac ? -ENOMEM : ac->err ? volt_hiredis__refusal(ac) : volt_pollset_open(&h->set);
    h->rc = rc;
    snprintf(h->why, sizeof h->why, "%s", ac ? ac->c.errstr : "");
    if (rc < 0 && ac) redisAsyncFree(ac);
    if (rc < 0) return rc;
    h->ac = ac;
    ac->ev.data = h;
    ac->ev.addRead = volt_hiredis__add_read, ac->ev.delRead = volt_hiredis__del_read;
    ac->ev.addWrite = volt_hiredis__add_write, ac->ev.delWrite = volt_hiredis__del_write;
    ac->ev.cleanup = volt_hiredis__cleanup;
    return 0;
}
// Sends commands and calls the callbacks of their replies, until *n_owed is 0 or less, which the
// callbacks count down.
//   where  : inside the task of the connection
//   returns: 0 | -ECANCELED: nothing is lost, and the replies are still outstanding | an error that
//            has ended the connection, after the callbacks of all outstanding commands, which have
//            no reply: -ECONNREFUSED if it was not established yet, -ECONNRESET, or -EPROTO if the
//            server is not Redis; h->why has the text | -ENOTCONN: the program has closed it |
//            -ENOMEM, -ENOSPC: the socket cannot be waited for; volt_hiredis_close comes next
//   wakes  : when the server has sent something, or has room for a command
//   memory : hiredis allocates the replies, which are valid inside their callbacks only
static inline VOLT_POLL volt_hiredis_run(volt_cx *cx, volt_hiredis *h, const int *n_owed) {
    VOLT_BEGIN(cx, h);
    while (h->ac && h->rc == 0 && *n_owed > 0) {
        VOLT_AWAIT(h->n, volt_pollset_wait(cx, &h->set, &h->ev, 1));
        if (h->n < 0) VOLT_RETURN(h->n);
        if (h->ev.events & ~(uint32_t)VOLT_OUT) redisAsyncHandleRead(h->ac);
        if (h->ac && (h->ev.events & VOLT_OUT)) redisAsyncHandleWrite(h->ac);
    }
    VOLT_END(h->rc < 0 || *n_owed <= 0 ? h->rc : -ENOTCONN);
}
// Closes the connection, if it is open. Callbacks of outstanding commands are called, without a
// reply. A command of these callbacks is refused by hiredis.
//   where  : inside the task of the connection
static inline void volt_hiredis_close(volt_cx *cx, volt_hiredis *h) {
    if (h->ac) redisAsyncFree(h->ac);
    volt_pollset_close(cx, &h->set);
}
#endif
