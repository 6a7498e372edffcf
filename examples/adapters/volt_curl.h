// SPDX-License-Identifier: MIT OR 0BSD
// libcurl: a task awaits a transfer, and tasks share connections. Include it behind volt.h and link
// with -lcurl (7.62 or later). For use, see examples/adapters/curl.c:
//
//     volt_curl c;          // one for all tasks of a runtime
//     volt_curl_open(&c);
//     volt_curl_transfer t; // in the state of a task
//     curl_easy_setopt(easy, CURLOPT_URL, "https://example.org/");
//     VOLT_AWAIT(rc, volt_within(cx, &limit, VOLT_S(30), volt_curl_perform(cx, &c, &t, easy)));
//     volt_curl_close(cx, &c);
//
// Transfers over HTTP/2 with CURLOPT_PIPEWAIT share one connection; others take connections that
// earlier transfers have left open.
//
// The callbacks of a transfer, such as CURLOPT_WRITEFUNCTION, are called by any worker, one at a
// time, while the task of the transfer waits: they may use the state of that task. They must not
// wait. One that has no room for a body returns CURL_WRITEFUNC_PAUSE, and another task or arm calls
// volt_curl_resume when there is room.
//
// The adapter sets CURLOPT_PRIVATE, and CURLOPT_NOSIGNAL, since libcurl must not touch signals in
// a program with threads. Its TLS libraries may raise SIGPIPE: the program must ignore that signal.
//
// Without c-ares libcurl starts a thread for each look-up of a name, and a transfer that ends
// during its look-up waits until that thread has ended, as late as the resolver of the system does.
// If the transfer is given up, by a volt_within for example, other tasks of the worker go on, and
// transfers of the same volt_curl wait. If a time limit of libcurl ends it, the worker waits. An
// address from volt_cares.h, set by CURLOPT_RESOLVE, avoids both.
//
// The design:
//   - libcurl reports its waits by callbacks: sockets by on_socket, which go into a poll set, and a
//     deadline by on_timer. One of the waiting tasks, the leader, waits for these, and calls
//     libcurl for all transfers; it holds `lead`. When its own transfer has ended or is given up,
//     the next task gets `lead`. So the adapter has no task and no thread of its own, and when no
//     transfer is awaited, nothing runs.
//   - libcurl is for one thread at a time: `lock` is held during each call of it, and never while a
//     task waits for a socket.
#ifndef VOLT_CURL_H
#define VOLT_CURL_H

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

enum { VOLT_CURL_EVENTS = 16 }; // that one wait fetches

// The common part of transfers. Must not be moved while it is open.
typedef struct volt_curl {
    volt_frame frame; // of the leader, as all down to `until`
    volt_arm ready, late, changed_arm;
    volt_pollev events[VOLT_CURL_EVENTS];
    int n, rc;
    uint32_t seen;    // the count of `changed` when `until` was read
    volt_time until;  // `due`, as the leader knows it
    CURLM *multi;
    volt_pollset set;
    volt_mutex lead, lock; // see above
    volt_notify changed;   // another task may have moved `due`
    // under lock
    volt_time due; // libcurl wants to be called
    int error;     // of a socket that could not be waited for, or 0
    struct volt_curl_transfer *first; // of the transfers in progress
} volt_curl;

// One transfer, in the state of its task. An awaited transfer must not be moved.
typedef struct volt_curl_transfer {
    volt_frame frame;
    volt_arm ended_arm, lead_arm;
    volt_shield shield;
    volt_event ended;
    volt_curl *home;
    struct volt_curl_transfer *next, **link; // under lock; link: the pointer to this one
    CURL *easy;
    CURLcode code; // the result of libcurl, if volt_curl_perform has not returned -ECANCELED,
                   // -ETIMEDOUT of a volt_within, or -EINVAL; for curl_easy_strerror
    int is_ended;  // under lock: libcurl does not have it
    int result, rc;
} volt_curl_transfer;

// ---- called by libcurl, under the lock

static inline int volt_curl__on_socket(CURL *easy, curl_socket_t fd, int action, void *user,
                                       void *of_socket) {
    volt_curl *c = (volt_curl *)user;
    static const uint32_t want[] = { 0, VOLT_IN, VOLT_OUT, VOLT_IN | VOLT_OUT, 0 /* remove */ };
    int rc = volt_pollset_set(&c->set, fd, want[action]);
    (void)easy, (void)of_socket;
    if (rc < 0) c->error = rc;
    return 0; // after -1 libcurl 7.88 would use handles that were freed
}
static inline int volt_curl__on_timer(CURLM *multi, long ms, void *user) {
    volt_curl *c = (volt_curl *)user;
    (void)multi;
    c->due = ms < 0 ? VOLT_NEVER : volt_now() + VOLT_MS(ms); // also for 0: libcurl is in a call
    volt_notify_all(&c->changed);
    return 0;
}

// ---- calls of libcurl, under the lock

static inline int volt_curl__error(CURL *easy, CURLcode code) {
    long os_error = 0;
    switch ((int)code) {
    case CURLE_OK: return 0;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ISSUER_ERROR: return -EKEYREJECTED;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_RECV_ERROR: return -ECONNABORTED;
    case CURLE_OPERATION_TIMEDOUT: return -ETIMEDOUT;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST: return -ENOENT;
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
        return os_error > 0 ? -(int)os_error : -ECONNREFUSED;
    case CURLE_OUT_OF_MEMORY: return -ENOMEM;
    case CURLE_UNSUPPORTED_PROTOCOL: return -EPROTONOSUPPORT;
    case CURLE_URL_MALFORMAT:
    case CURLE_BAD_FUNCTION_ARGUMENT: return -EINVAL;
    default: return -EIO;
    }
}
static inline int volt_curl__add(volt_curl *c, volt_curl_transfer *t, CURL *easy) {
    CURLMcode rc = curl_multi_add_handle(c->multi, easy); // calls on_timer
    if (rc != CURLM_OK) return rc == CURLM_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t); // after a handle in use was refused
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    t->easy = easy;
    t->is_ended = 0;
    memset(&t->ended, 0, sizeof t->ended);
    t->next = c->first;
    t->link = &c->first;
    if (c->first) c->first->link = &t->next;
    c->first = t;
    return 0;
}
// Takes a transfer out. Blocks during its look-up, until the thread of libcurl has ended.
static inline int volt_curl__remove(void *transfer) {
    volt_curl_transfer *t = (volt_curl_transfer *)transfer;
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
    curl_multi_remove_handle(t->home->multi, t->easy);
    t->is_ended = 1;
    return 0;
}
static inline void volt_curl__end(volt_curl_transfer *t, CURLcode code, int result) {
    volt_curl__remove(t);
    t->code = code;
    t->result = result;
    volt_event_set(&t->ended); // *t may be gone from here on
}
// Passes events and a deadline that has passed to libcurl, and ends transfers. By the leader.
static inline void volt_curl__act(volt_curl *c) {
    int left;
    for (int i = 0; i < c->n; i++) {
        uint32_t e = c->events[i].events;
        int in = e & ~(uint32_t)VOLT_OUT ? CURL_CSELECT_IN : 0; // also for an error
        curl_multi_socket_action(c->multi, c->events[i].fd,
                                 in | (e & VOLT_OUT ? CURL_CSELECT_OUT : 0), &left);
    }
    if (c->due <= volt_now()) {
        c->due = VOLT_NEVER;
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &left);
    }
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;) {
        volt_curl_transfer *t = NULL;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)(void *)&t);
        volt_curl__end(t, code, volt_curl__error(t->easy, code));
    }
    // It may belong to any of them.
    while (c->error < 0 && c->first) volt_curl__end(c->first, CURLE_COULDNT_CONNECT, c->error);
    c->error = 0;
    c->seen = volt_notify_count(&c->changed);
    c->until = c->due;
}

// ---- the leader

// Drives all transfers until that of *t has ended.
//   returns: 0 | -ECANCELED | the errors of volt_pollset_wait
static inline VOLT_POLL volt_curl__lead(volt_cx *cx, volt_curl *c, volt_curl_transfer *t) {
    VOLT_BEGIN(cx, c);
    for (c->n = 0;; c->n = c->ready.fired ? c->n : 0) {
        VOLT_AWAIT(c->rc, volt_mutex_lock(cx, &c->lock));
        if (c->rc < 0) break; // the events come again, since the poll set is level-triggered
        volt_curl__act(c);
        c->rc = t->is_ended; // under the lock: a volt_curl_resume may end it
        volt_mutex_unlock(&c->lock);
        if (c->rc) break;
        VOLT_AWAIT(c->rc, VOLT_SELECT(
            VOLT_ARM(&c->ready, c->n,
                     volt_pollset_wait(cx, &c->set, c->events, VOLT_CURL_EVENTS)),
            VOLT_ARM(&c->late, volt_sleep_until(cx, c->until)),
            VOLT_ARM(&c->changed_arm, volt_notify_wait_past(cx, &c->changed, c->seen))));
        if (c->rc >= 0 && c->ready.fired && c->n < 0) c->rc = c->n;
        if (c->rc < 0) break;
    }
    VOLT_END(c->rc < 0 ? c->rc : 0);
}

// ---- functions for programs

// Makes the common part.
//   where  : any thread; before libcurl 7.84 not while another thread makes its first call of it
//   returns: 0 | -ENOMEM | -EMFILE, -ENFILE
//   memory : libcurl allocates until volt_curl_close. After an error there is nothing to be freed
static inline int volt_curl_open(volt_curl *c) {
    memset(c, 0, sizeof *c);
    c->due = VOLT_NEVER;
    if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK) return -ENOMEM;
    c->multi = curl_multi_init();
    int rc = c->multi ? volt_pollset_open(&c->set) : -ENOMEM;
    if (rc < 0) {
        if (c->multi) curl_multi_cleanup(c->multi);
        curl_global_cleanup();
        return rc;
    }
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, volt_curl__on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, volt_curl__on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    return 0;
}
// Closes the common part and the connections that transfers have left open. No transfer may be in
// progress: their tasks have ended before.
//   where  : inside a task. May block for a moment: libcurl sends a last command to some servers
static inline void volt_curl_close(volt_cx *cx, volt_curl *c) {
    curl_multi_cleanup(c->multi); // calls on_socket
    volt_pollset_close(cx, &c->set);
    curl_global_cleanup();
}

// Makes the transfer of an easy handle, whose options are set. Afterwards the handle is the
// caller's again: for curl_easy_getinfo, a further transfer or curl_easy_cleanup.
//   where  : inside a task. A transfer is one task's; each has a volt_curl_transfer of its own
//   returns: 0: complete. The status of HTTP is not judged, unless CURLOPT_FAILONERROR says so. Or
//            an error, with that of libcurl in t->code:
//            -EKEYREJECTED   the certificate of the server is not trusted, or not for this name
//            -ECONNABORTED   the server has ended the connection in the middle
//            -ECONNREFUSED, or another -errno of connect(2)
//            -ENOENT         no such host
//            -ETIMEDOUT      a time limit that was set as an option of the handle
//            -EPROTONOSUPPORT    a scheme that libcurl does not know, or an answer without HTTP
//            -EINVAL         a URL or handle that is none, or one that is in use
//            -ENOMEM, -ENOSPC    a socket could not be waited for; all transfers end so
//            -EIO            another error of libcurl
//            -ECANCELED      given up; a part of the body may have been received
//   wakes  : when the transfer has ended, and, to lead, when sockets or the deadline are due
//   memory : libcurl allocates for the transfer, and for the connection, which stays open
static inline VOLT_POLL volt_curl_perform(volt_cx *cx, volt_curl *c, volt_curl_transfer *t,
                                          CURL *easy) {
    VOLT_BEGIN(cx, t);
    t->home = c;
    t->is_ended = 1;
    VOLT_AWAIT(t->rc, volt_mutex_lock(cx, &c->lock));
    if (t->rc < 0) VOLT_RETURN(t->rc);
    t->rc = volt_curl__add(c, t, easy);
    volt_mutex_unlock(&c->lock);
    if (t->rc < 0) VOLT_RETURN(t->rc);
    VOLT_AWAIT(t->rc, VOLT_SELECT(VOLT_ARM(&t->ended_arm, volt_event_wait(cx, &t->ended)),
                                  VOLT_ARM(&t->lead_arm, volt_mutex_lock(cx, &c->lead))));
    if (t->lead_arm.fired) {
        VOLT_AWAIT(t->rc, volt_curl__lead(cx, c, t));
        volt_mutex_unlock(&c->lead);
    }
    if (t->rc >= 0) VOLT_RETURN(t->result);
    volt_shield_begin(cx, &t->shield, VOLT_NEVER); // a bounded wait: `lock` is held for calls only
    VOLT_AWAIT(volt_mutex_lock(cx, &c->lock));
    if (t->is_ended) t->rc = t->result;
    else volt_block_in_place(cx, volt_curl__remove, t);
    volt_mutex_unlock(&c->lock);
    VOLT_END(t->rc);
}

typedef struct volt_curl_resumer { // the state of one volt_curl_resume
    volt_frame frame;
    int rc;
} volt_curl_resumer;
// Goes on with a transfer whose callback has returned CURL_WRITEFUNC_PAUSE or CURL_READFUNC_PAUSE,
// and may call it at once: its error ends the transfer. Others, and ended ones, are left alone.
//   where  : inside a task, while *t exists, after its volt_curl_perform has begun
//   returns: 0
static inline VOLT_POLL volt_curl_resume(volt_cx *cx, volt_curl_resumer *r, volt_curl_transfer *t) {
    volt_curl *const c = t->home; // *t may be gone when it has ended
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_mutex_lock(cx, &c->lock));
    if (r->rc < 0) VOLT_RETURN(r->rc);
    CURLcode code = t->is_ended ? CURLE_OK : curl_easy_pause(t->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK && code != CURLE_BAD_FUNCTION_ARGUMENT) // the latter: not connected yet
        volt_curl__end(t, code, volt_curl__error(t->easy, code));
    volt_notify_all(&c->changed); // the leader may have to see an error, or the end of its transfer
    volt_mutex_unlock(&c->lock);
    VOLT_END(0);
}
#endif
