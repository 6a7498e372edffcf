// SPDX-License-Identifier: MIT OR 0BSD
// hiredis, the asynchronous Redis client, on a poll set. Include it behind volt.h and link with
// -lhiredis. For use, see tests/adapters/hiredis.c:
//
//     volt_hiredis h = { .ac = NULL }; // in the state of the task
//     rc = volt_hiredis_open(&h, redisAsyncConnect("127.0.0.1", 6379));
//     redisAsyncCommand(h.ac, on_reply, &user, "GET key"); n_owed++; // on_reply: n_owed--
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(5), volt_hiredis_run(cx, &h, &n_owed)));
//     volt_hiredis_close(cx, &h);
//
// hiredis requests reads and writes by callbacks, frees its context and closes its descriptor by
// itself, and is not safe for two tasks at once: one task owns a connection. A command that was
// sent cannot be withdrawn: a connection whose blocking command was given up can only be closed.
// hiredis writes without MSG_NOSIGNAL, so the program must ignore SIGPIPE.
#ifndef VOLT_HIREDIS_H
#define VOLT_HIREDIS_H

#include <errno.h>
#include <hiredis/async.h>

typedef struct volt_hiredis {
    volt_frame frame;      // of volt_hiredis_run
    redisAsyncContext *ac; // NULL: not connected. Its member `data` is the program's
    volt_pollset set;
    volt_pollev ev;
    uint32_t want;
    int n;
} volt_hiredis;

static void volt_hiredis__want(void *at, uint32_t events) {
    volt_hiredis *h = (volt_hiredis *)at;
    h->want = events;
    (void)volt_pollset_set(&h->set, h->ac->c.fd, events);
}
static void volt_hiredis__add_read(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want | VOLT_IN);
}
static void volt_hiredis__del_read(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want & ~(uint32_t)VOLT_IN);
}
static void volt_hiredis__add_write(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want | VOLT_OUT);
}
static void volt_hiredis__del_write(void *h) {
    volt_hiredis__want(h, ((volt_hiredis *)h)->want & ~(uint32_t)VOLT_OUT);
}
static void volt_hiredis__cleanup(void *h) { // inside a call of hiredis; the context is freed next
    volt_hiredis__want(h, 0);
    ((volt_hiredis *)h)->ac = NULL;
}

// Takes the context of a redisAsyncConnect...; NULL: hiredis is out of memory.
//   where  : any thread
//   returns: 0 | -ECONNREFUSED, -ENOMEM, -EMFILE: the context is freed
static int volt_hiredis_open(volt_hiredis *h, redisAsyncContext *ac) {
    int rc = !ac ? -ENOMEM : ac->err ? -ECONNREFUSED : volt_pollset_open(&h->set);
    if (rc < 0 && ac) redisAsyncFree(ac);
    if (rc < 0) return rc;
    h->ac = ac;
    ac->ev.data = h;
    ac->ev.addRead = volt_hiredis__add_read, ac->ev.delRead = volt_hiredis__del_read;
    ac->ev.addWrite = volt_hiredis__add_write, ac->ev.delWrite = volt_hiredis__del_write;
    ac->ev.cleanup = volt_hiredis__cleanup;
    return 0;
}
// Sends commands and calls the callbacks of their replies, until *n_owed is 0, which the callbacks
// count down. A cancellation loses nothing: the replies are still outstanding.
//   returns: 0 | -ECONNRESET if the connection has ended
static VOLT_POLL volt_hiredis_run(volt_cx *cx, volt_hiredis *h, const int *n_owed) {
    VOLT_BEGIN(cx, h);
    while (h->ac && *n_owed > 0) {
        VOLT_AWAIT(h->n, volt_pollset_wait(cx, &h->set, &h->ev, 1));
        if (h->n < 0) VOLT_RETURN(h->n);
        if (h->ev.events & ~(uint32_t)VOLT_OUT) redisAsyncHandleRead(h->ac);
        if (h->ac && (h->ev.events & VOLT_OUT)) redisAsyncHandleWrite(h->ac);
    }
    VOLT_END(h->ac ? 0 : -ECONNRESET);
}
// Closes the connection. Callbacks of outstanding replies are called, without a reply.
static void volt_hiredis_close(volt_cx *cx, volt_hiredis *h) {
    if (h->ac) redisAsyncFree(h->ac);
    volt_pollset_close(cx, &h->set);
}

#endif // VOLT_HIREDIS_H
