// SPDX-License-Identifier: MIT OR 0BSD
// Bytes become a program of tasks on a real runtime with one worker. See fuzz.h for how to run it.
//
// Each task is an actor. All actors take their next step from one stream of bytes: an operation
// (its number in `steps`, modulo) and its arguments. Time is virtual: it jumps to the next timer
// when nothing is ready, so that a run is quick and an input always has the same effect.
//
// Checked: each accepted task is polled and ends exactly once; a join returns the result of its
// task; a sleep is never early; -ECANCELED comes only in a cancelled scope; a socket delivers the
// bytes sent, in order, and a cancelled read has taken nothing; the worker never parks while
// nothing can wake it (each wait is bounded); at the end no memory and no descriptor is held.
#define _GNU_SOURCE 1 // volt.h needs it before the first libc header
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) wait_virtually(ep_, ev_, n_, timeout_)
#define VOLT_NOW_NS() read_clock()
#define VOLT_SLAB_SIZE 16384u // a run has few tasks, and there are many runs
#include <stdint.h>
struct epoll_event;
static int wait_virtually(int ep, struct epoll_event *ev, int n, int64_t timeout);
static int64_t read_clock(void);
#define VOLT_IMPLEMENTATION
#include "../../volt.h"
#include "fuzz.h"

enum { N_HANDLES = 4, N_TOKENS = 4, N_WAKERS = 3, N_PAIRS = 2, STREAM_MAX = 600 };

typedef struct pair {
    int fd[2]; // -1: closed
    uint32_t generation;
    uint8_t sent[2], received[2]; // by end: the next byte to write, to be read
} pair;

static struct {
    const uint8_t *at, *end;
    volt_rt *rt;
    volt_time now;
    int64_t live_bytes;
    int first_fd;
    int n_accepted, n_started, n_ended, next_id;
    int is_over, is_shut; // no more steps; volt_shutdown was called
    volt_handle handles[N_HANDLES];
    int ids[N_HANDLES];          // of the tasks behind the handles
    volt_token tokens[N_TOKENS]; // 1 below 0, 2 below 1; 3 alone
    volt_waker wakers[N_WAKERS];
    pair pairs[N_PAIRS];
} w;

// ---- the environment: clock, memory, log, descriptors

static int64_t read_clock(void) { return w.now += 100; }
static int wait_virtually(int ep, struct epoll_event *ev, int n, int64_t timeout) {
    int got = VOLT_SYS(epoll_wait, ep, ev, n, 0);
    if (got != 0) return got < 0 ? -errno : got;
    MUST(timeout >= 0); // otherwise nothing could wake this worker
    w.now += timeout;
    return 0;
}
static void *count_alloc(void *user, size_t size, size_t align) {
    void *p = NULL;
    (void)user;
    MUST(posix_memalign(&p, align < sizeof p ? sizeof p : align, size) == 0);
    memset(p, 0xa5, size < 1024 ? size : 1024); // the rest is large tables: filling them takes time
    w.live_bytes += (int64_t)size;
    return p;
}
static void count_free(void *user, void *block, size_t size) {
    (void)user;
    if (block) w.live_bytes -= (int64_t)size;
    free(block);
}
static void refuse_log(void *user, int item, const char *text) {
    (void)user;
    if (item == VOLT_LOG_IGNORES_CANCEL) return;
    fprintf(stderr, "log: %s\n", text);
    abort();
}
static int lowest_free_fd(void) {
    int fd = dup(STDERR_FILENO);
    MUST(fd >= 0 && close(fd) == 0);
    return fd;
}
static void open_pair(pair *p) {
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fd) == 0);
    memset(p->sent, 0, sizeof p->sent);
    memset(p->received, 0, sizeof p->received);
    p->generation++;
}
static void close_end(volt_cx *cx, pair *p, int end) {
    if (p->fd[end] >= 0) volt_close(cx, p->fd[end]);
    p->fd[end] = -1;
    if (p->fd[0] < 0 && p->fd[1] < 0 && !w.is_over) open_pair(p);
}

// ---- the stream

static int has_more(void) { return !w.is_over && w.at < w.end; }
static unsigned next(void) { return w.at < w.end ? *w.at++ : 0; }
static volt_time next_ms(void) { return VOLT_MS(next() % 16); }

// ---- actors and their steps

typedef struct step {
    volt_frame frame;
    volt_shield shield;
    volt_timer timer;
    volt_token_link link;
    volt_arm arms[3];
    volt_interval interval;
    volt_handle handle;
    volt_group *group; // the actor's
    volt_time at_most, until;
    volt_token *token;
    pair *pair;
    int64_t rc;
    uint64_t id;
    uint32_t generation;
    int self, end, result; // self: id of the actor
    size_t len;
    uint8_t buf[16];
} step;
typedef struct actor {
    volt_frame frame;
    volt_group group;
    step step;
    int id, is_root;
    unsigned code;
    int64_t rc;
} actor;
static volt_poll actor_run(volt_cx *cx, void *arg);

// -ECANCELED must have a reason.
static int64_t note(volt_cx *cx, int64_t rc) {
    MUST(rc != -ECANCELED || volt_is_cancelled(cx));
    return rc;
}
// A bounded wait that timed out must have done so in time.
static int64_t note_within(volt_cx *cx, step *s, int64_t rc) {
    MUST(rc != -ETIMEDOUT || w.now >= s->until);
    return note(cx, rc);
}
static void bound(step *s) {
    s->at_most = next_ms();
    s->until = w.now + s->at_most;
}

static volt_poll step_yield(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_yield(cx));
    VOLT_END(note(cx, s->rc));
}
static volt_poll step_sleep(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    bound(s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->at_most));
    MUST(s->rc < 0 || w.now >= s->until);
    VOLT_END(note(cx, s->rc));
}
static volt_poll step_interval(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    volt_interval_init(&s->interval, VOLT_MS(1 + next() % 8));
    s->interval.missed = (volt_missed)(next() % 3);
    for (s->len = 0; s->len < 3; s->len++) {
        VOLT_AWAIT(s->rc, volt_interval_next(cx, &s->interval));
        if (s->rc < 0) VOLT_RETURN(note(cx, s->rc));
        MUST(s->rc >= 1);
    }
    VOLT_END(0);
}

// ---- spawning and handles

static int is_accepted(int rc) {
    MUST(rc == 0 || (rc == -ESHUTDOWN && (w.is_shut || w.is_over)));
    w.n_accepted += rc == 0;
    return rc == 0;
}
static volt_handle *free_handle(unsigned k, int id) {
    if (w.is_over || volt_handle_is_set(&w.handles[k])) return NULL;
    w.ids[k] = id;
    return &w.handles[k];
}
static volt_poll step_spawn(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    actor child;
    memset(&child, 0, sizeof child);
    child.id = ++w.next_id;
    unsigned k = next();
    volt_handle *h = k & 64 ? NULL : free_handle(k % N_HANDLES, child.id);
    if (k & 128)
        is_accepted(VOLT_RT_SPAWN(w.rt, h, actor_run, child));
    else
        is_accepted(VOLT_SPAWN(cx, h, actor_run, child));
    VOLT_END(0);
}
static volt_poll step_create(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    unsigned k = next();
    actor *child = (actor *)volt_task_create(w.rt, actor_run, sizeof(actor));
    MUST(child || w.is_shut);
    if (child && k & 128) {
        volt_task_destroy(child);
    } else if (child) {
        w.n_accepted++;
        child->id = ++w.next_id;
        volt_task_start(child, free_handle(k % N_HANDLES, child->id));
    }
    VOLT_END(0);
}
static volt_poll step_cancel(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    volt_cancel(&w.handles[next() % N_HANDLES]);
    VOLT_END(0);
}
static volt_poll step_detach(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    volt_detach(&w.handles[next() % N_HANDLES]);
    VOLT_END(0);
}
static volt_poll step_try_join(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    unsigned k = next() % N_HANDLES;
    int was_set = volt_handle_is_set(&w.handles[k]);
    int64_t result = 0;
    int rc = volt_try_join(&w.handles[k], &result);
    MUST(was_set ? rc == 0 || rc == -EAGAIN : rc == -EINVAL);
    MUST(rc != 0 || result == w.ids[k]);
    MUST(volt_handle_is_set(&w.handles[k]) == (rc == -EAGAIN));
    VOLT_END(0);
}
// The handle is taken out of the table first: two tasks must not wait for one.
static volt_poll step_join(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    unsigned k = next() % N_HANDLES;
    bound(s);
    s->result = w.ids[k];
    if (!volt_handle_is_set(&w.handles[k]) || s->result == s->self) VOLT_RETURN(0);
    s->handle = w.handles[k];
    w.handles[k].task_ = NULL;
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, s->at_most, volt_join(cx, &s->handle)));
    MUST(s->rc >= 0 ? s->rc == s->result : s->rc == -ECANCELED || s->rc == -ETIMEDOUT);
    MUST(volt_handle_is_set(&s->handle) == (s->rc < 0));
    volt_detach(&s->handle);
    VOLT_END(note_within(cx, s, s->rc));
}

// ---- groups

static volt_poll step_group_spawn(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    actor child;
    memset(&child, 0, sizeof child);
    child.id = ++w.next_id;
    is_accepted(VOLT_GROUP_SPAWN(cx, s->group, actor_run, child));
    VOLT_END(0);
}
static volt_poll step_group_wait(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    bound(s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, s->at_most, volt_group_wait(cx, s->group)));
    MUST(s->rc == 0 || s->rc == -ECANCELED || s->rc == -ETIMEDOUT);
    VOLT_END(note_within(cx, s, s->rc));
}
static volt_poll step_group_next(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    bound(s);
    VOLT_AWAIT(s->rc,
               volt_within(cx, &s->timer, s->at_most, volt_group_next(cx, s->group, &s->id)));
    MUST(s->rc > 0 || s->rc == -ECANCELED || s->rc == -ETIMEDOUT || s->rc == -ENOENT ||
         s->rc == -EINVAL);
    VOLT_END(note_within(cx, s, s->rc));
}
static volt_poll step_group_cancel(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    volt_group_cancel(s->group);
    VOLT_END(0);
}
static volt_poll step_group_close(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_group_close(cx, s->group));
    MUST(s->rc == 0);
    VOLT_END(0);
}

// ---- tokens, shields, arms, wakers

static volt_poll step_token_cancel(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&w.tokens[next() % N_TOKENS]);
    VOLT_END(0);
}
static volt_poll step_token_wait(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->token = &w.tokens[next() % N_TOKENS];
    bound(s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, s->at_most, volt_token_wait(cx, s->token)));
    MUST(s->rc != 0 || volt_token_is_cancelled(s->token));
    VOLT_END(note_within(cx, s, s->rc));
}
static volt_poll step_unless(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->token = &w.tokens[next() % N_TOKENS];
    bound(s);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, s->token, volt_sleep(cx, s->at_most)));
    MUST(s->rc == 0 || s->rc == -ECANCELED);
    MUST(s->rc < 0 || w.now >= s->until);
    if (volt_token_is_cancelled(s->token) && !volt_is_cancelled(cx)) VOLT_RETURN(0);
    VOLT_END(note(cx, s->rc));
}
// Under the shield a sleep that ends before its bound works, cancelled or not.
static volt_poll step_shield(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    bound(s);
    s->len = next() % 8;
    volt_shield_begin(cx, &s->shield, s->at_most + VOLT_MS((int64_t)s->len) - VOLT_MS(2));
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->at_most));
    MUST(s->rc == 0 || s->rc == -ECANCELED);
    MUST(s->rc == 0 || s->len < 4); // else its time, rounded up, was sufficient
    volt_shield_end(cx, &s->shield);
    VOLT_END(0);
}
static void take(step *s, int64_t n);
static volt_poll step_select(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->token = &w.tokens[next() % N_TOKENS];
    s->pair = &w.pairs[next() % N_PAIRS];
    s->end = next() % 2;
    s->generation = s->pair->generation;
    bound(s);
    s->rc = 0;
    VOLT_AWAIT(s->result, VOLT_SELECT(VOLT_ARM(&s->arms[0], volt_sleep(cx, s->at_most)),
                                      VOLT_ARM(&s->arms[1], volt_token_wait(cx, s->token)),
                                      VOLT_ARM(&s->arms[2], s->rc,
                                               volt_read(cx, s->pair->fd[s->end], s->buf, 5))));
    MUST(s->result >= 0 ? s->result < 3 : s->result == -ECANCELED);
    MUST(s->result != 0 || w.now >= s->until);
    MUST(s->result != 1 || volt_token_is_cancelled(s->token));
    take(s, s->rc);
    VOLT_END(note(cx, s->result));
}
static volt_poll step_join_all(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->token = &w.tokens[next() % N_TOKENS];
    bound(s);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(
                          VOLT_ARM(&s->arms[0], volt_yield(cx)),
                          VOLT_ARM(&s->arms[1], volt_within(cx, &s->timer, s->at_most,
                                                            volt_token_wait(cx, s->token)))));
    MUST(s->rc == 0 || s->rc == -ECANCELED);
    VOLT_END(note(cx, s->rc));
}
static volt_poll step_waker(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    unsigned k = next();
    volt_waker *waker = &w.wakers[k % N_WAKERS];
    if (!waker->task_) {
        if (!w.is_over) *waker = volt_waker_retain(cx);
    } else if (k & 128) {
        volt_waker_release(*waker);
        waker->task_ = NULL;
    } else {
        volt_wake(*waker);
    }
    VOLT_END(0);
}

// ---- descriptors: the bytes of a direction count up

// Notes n bytes read into buf; they belong to the generation that the read began with.
static void take(step *s, int64_t n) {
    if (n <= 0) return;
    MUST(s->generation == s->pair->generation);
    for (int64_t i = 0; i < n; i++) MUST(s->buf[i] == s->pair->received[s->end]++);
}
static int aim(step *s) {
    s->pair = &w.pairs[next() % N_PAIRS];
    s->end = next() % 2;
    s->len = 1 + next() % sizeof s->buf;
    s->generation = s->pair->generation;
    bound(s);
    return s->pair->fd[s->end];
}
static volt_poll step_read(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->result = aim(s);
    if (s->result < 0) VOLT_RETURN(0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, s->at_most,
                                  volt_read(cx, s->result, s->buf, s->len)));
    MUST(s->rc <= (int64_t)s->len);
    take(s, s->rc);
    VOLT_END(note_within(cx, s, s->rc));
}
// One at a time for each direction: the bytes of two writes that wait would change places.
static volt_poll step_write(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    s->result = aim(s);
    if (s->result < 0) VOLT_RETURN(0);
    for (size_t i = 0; i < s->len; i++) s->buf[i] = (uint8_t)(s->pair->sent[s->end] + i);
    s->pair->sent[s->end] = (uint8_t)(s->pair->sent[s->end] + s->len);
    VOLT_AWAIT(s->rc, volt_write(cx, s->result, s->buf, s->len));
    MUST(s->rc == (int64_t)s->len || s->rc == -EPIPE || s->rc == -ECANCELED || s->rc == -EBADF);
    if (s->rc == -ECANCELED && s->generation == s->pair->generation)
        s->pair->sent[s->end] = (uint8_t)(s->pair->sent[s->end] - s->len);
    VOLT_END(note(cx, s->rc));
}
static volt_poll step_close(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    unsigned k = next();
    close_end(cx, &w.pairs[k % N_PAIRS], (int)(k >> 7));
    VOLT_END(0);
}
static volt_poll step_shutdown(volt_cx *cx, step *s) {
    VOLT_BEGIN(cx, s);
    if (next() >= 8) VOLT_RETURN(0); // rare, as it ends most other activity
    w.is_shut = 1;
    MUST(volt_shutdown(w.rt, VOLT_NEVER) == -EINPROGRESS);
    VOLT_END(0);
}

typedef volt_poll step_fn(volt_cx *cx, step *s);
static step_fn *const steps[] = {
    step_yield,        step_sleep,      step_interval,   step_spawn,        step_spawn,
    step_create,       step_cancel,     step_detach,     step_try_join,     step_join,
    step_group_spawn,  step_group_wait, step_group_next, step_group_cancel, step_group_close,
    step_token_cancel, step_token_wait, step_unless,     step_shield,       step_select,
    step_join_all,     step_waker,      step_read,       step_write,        step_close,
    step_shutdown,
};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

// Ends everything that others might wait for.
static void end_program(volt_cx *cx) {
    w.is_over = 1;
    for (int i = 0; i < N_TOKENS; i++) volt_token_cancel(&w.tokens[i]);
    for (int i = 0; i < N_HANDLES; i++) volt_detach(&w.handles[i]);
    for (int i = 0; i < N_WAKERS; i++) {
        if (w.wakers[i].task_) volt_waker_release(w.wakers[i]);
        w.wakers[i].task_ = NULL;
    }
    for (int i = 0; i < N_PAIRS; i++)
        for (int end = 0; end < 2; end++) close_end(cx, &w.pairs[i], end);
}
static volt_poll actor_run(volt_cx *cx, void *arg) {
    actor *a = (actor *)arg;
    VOLT_BEGIN(cx, a);
    w.n_started++;
    w.rt = volt_cx_rt(cx);
    if (next() & 1) volt_group_collect(&a->group);
    for (a->rc = 0; a->rc != -ECANCELED && has_more();) {
        a->code = next() % N_STEPS;
        a->step.group = &a->group;
        a->step.self = a->id;
        VOLT_AWAIT(a->rc, steps[a->code](cx, &a->step));
    }
    if (a->is_root) end_program(cx);
    VOLT_AWAIT(volt_group_close(cx, &a->group));
    w.n_ended++;
    VOLT_END(a->id);
}

static void set_up(const uint8_t *data, size_t size) {
    memset(&w, 0, sizeof w);
    w.at = data;
    w.end = data + (size < STREAM_MAX ? size : STREAM_MAX);
    w.now = VOLT_S(1000);
    w.first_fd = lowest_free_fd();
    for (int i = 1; i < N_TOKENS - 1; i++) volt_token_init(&w.tokens[i], &w.tokens[i - 1]);
    for (int i = 0; i < N_PAIRS; i++) open_pair(&w.pairs[i]);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    actor root;
    volt_config c;
    set_up(data, size);
    memset(&root, 0, sizeof root);
    memset(&c, 0, sizeof c);
    root.is_root = 1;
    c.workers = 1;
    c.seed = 1;
    c.alloc.alloc = count_alloc;
    c.alloc.free = count_free;
    c.log.fn = refuse_log;
    w.n_accepted = 1;
    MUST(volt_run(&c, actor_run, &root) == 0);
    MUST(w.n_started == w.n_accepted && w.n_ended == w.n_accepted);
    MUST(w.live_bytes == 0);
    for (int i = N_TOKENS - 2; i > 0; i--) volt_token_deinit(&w.tokens[i]);
    MUST(lowest_free_fd() == w.first_fd);
    return 0;
}
