// SPDX-License-Identifier: MIT OR 0BSD
// A descriptor is closed, or given back, while a task waits for it, and its number becomes another
// file's. The wait ends with -EBADF and leaves that file alone, and the number works for its next
// owner. Every wait of >>net is played with
//   each way to end it     volt_close, volt_rt_close by a thread, volt_fd_release with close(2) at
//                          once or later, volt_pollset_close
//   each file behind it    none, a socket, a pipe, an eventfd, a listener: quiet, or ready for what
//                          the wait wants, so that a mistake shows as a success
//   each moment            between any two atomic operations of the poll that begins the wait;
//                          linked; fired and not yet polled; between any two atomic operations of
//                          the poll that finds it fired; paused, where the budget ended in the
//                          middle or epoll and the file disagree; before its first unit of budget
// One worker and one task: the end comes inside the wait's own poll, as that of a second worker
// would in that moment. Where the poll holds the entry's lock, the end comes behind it.
// An end that comes before the call has asked the kernel anything about the file may as well have
// come before the call: the result of that call is not judged. volt_fd_release does not wait for a
// system call that is about to be made on the number, so there the number is closed once the wait
// has ended. volt_connect gives its number away at its end only, so it is closed once it waits;
// volt_connect_on has one from the beginning.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_DEBUG 1
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

// ---- the seam: calls about the descriptor that is waited for are seen, and some refused

static int is_refused(int fd, const char *name);
static int seam_close(int fd);
static int seam_socket(int family, int type, int protocol);
static int seam_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout);
#define HOOK_read ~, seam_read
#define HOOK_readv ~, seam_readv
#define HOOK_write ~, seam_write
#define HOOK_writev ~, seam_writev
#define HOOK_send ~, seam_send
#define HOOK_sendmsg ~, seam_sendmsg
#define HOOK_accept4 ~, seam_accept4
#define HOOK_connect ~, seam_connect
#define HOOK_poll ~, seam_poll
#define HOOK_epoll_ctl ~, seam_epoll_ctl
#define HOOK_fcntl ~, seam_fcntl
#define HOOK_getsockopt ~, seam_getsockopt
#define HOOK_close ~, seam_close
#define HOOK_socket ~, seam_socket
// Functions, not conditions in the macro: a condition of volt.h shall be its own.
#define REFUSABLE(type_, call_, what_, params_, fd_, ...)                                          \
    static type_ seam_##call_ params_ {                                                            \
        return is_refused(fd_, what_) ? -1 : call_(fd_, __VA_ARGS__);                              \
    }
REFUSABLE(ssize_t, read, "read", (int fd, void *buf, size_t n), fd, buf, n)
REFUSABLE(ssize_t, readv, "read", (int fd, const struct iovec *v, int n), fd, v, n)
REFUSABLE(ssize_t, write, "write", (int fd, const void *buf, size_t n), fd, buf, n)
REFUSABLE(ssize_t, writev, "write", (int fd, const struct iovec *v, int n), fd, v, n)
REFUSABLE(ssize_t, send, "write", (int fd, const void *buf, size_t n, int flags), fd, buf, n, flags)
REFUSABLE(ssize_t, sendmsg, "write", (int fd, const struct msghdr *m, int flags), fd, m, flags)
REFUSABLE(int, accept4, "accept", (int fd, struct sockaddr *a, socklen_t *n, int flags), fd, a, n,
          flags)
REFUSABLE(int, connect, "connect", (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
REFUSABLE(int, getsockopt, "getsockopt", (int fd, int level, int name, void *v, socklen_t *n), fd,
          level, name, v, n)
static int seam_poll(struct pollfd *p, nfds_t n, int ms) {
    return is_refused(p->fd, "poll") ? -1 : poll(p, n, ms);
}
static int seam_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    return is_refused(fd, "epoll_ctl") ? -1 : epoll_ctl(ep, op, fd, ev);
}
#define seam_fcntl(fd_, ...) seam_fcntl_with(fd_, __VA_ARGS__, 0, 0)
#define seam_fcntl_with(fd_, op_, arg_, ...) seam_fcntl3(fd_, op_, arg_)
static int seam_fcntl3(int fd, int op, int arg) {
    return is_refused(fd, "fcntl") ? -1 : fcntl(fd, op, arg);
}
#include "hook.h"
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) seam_epoll_wait(ep_, ev_, n_, timeout_)

#include "interleave.h"
#include "test.h"
#include "tasks.h"
#include <netinet/in.h>
#include <sys/eventfd.h>

// ---- what a test consists of

enum file_kind {
    NO_FILE, SOCKETS, PIPES, TCP, EVENTFD, LISTENER, SET, HANDSHAKE, CONNECTING, PATH
};
static const char *const file_names[] = {
    "no file",    "a socket",    "a pipe",              "TCP",       "an eventfd", "a listener",
    "a poll set", "a handshake", "a socket of its own", "a sender by path"
};
enum { READS, WRITES }; // the direction of the wait
// Conditions of the first poll. IS_EDGE: the file is registered already, as by an earlier wait.
// IS_ALWAYS: epoll refuses the file, and the file is not ready.
enum { IS_EDGE = 1, IS_ALWAYS = 2, IS_OUT_OF_FILES = 4, IS_ABORTED = 8 };
enum moment { BEGINNING, FIRED, AGAIN, OUT_OF_BUDGET };
static const char *const moment_names[] = { "beginning", "fired", "again", "out of budget" };
enum ending { CLOSE, RT_CLOSE, FORGET, FORGET_FIRST, SET_CLOSE };
static const char *const ending_names[] = { "volt_close", "volt_rt_close", "volt_fd_release",
                                            "volt_fd_release, close(2) later",
                                            "volt_pollset_close" };

typedef struct scene scene;
typedef struct {
    volt_poll (*fn)(volt_cx *cx, scene *s);
    int dir;
    enum file_kind kind;
    int ways; // bits above
} wait_of;

enum { FULL = 1 << 20, MOST_FAILURES = 4 };
struct scene {
    wait_of w;
    enum moment moment;
    enum ending ending;
    enum file_kind next; // the file that has the number next
    int next_is_ready;
    int at;              // which atomic operation of the poll; 0: before it
    int fd, peer;        // the file, and its other end
    int next_fd, next_peer;
    int n_polls;         // of the wait
    int has_asked;       // the kernel about the file
    int is_over;         // the ending has come
    int is_taken;        // the number is the next file's
    int was_begun;       // the call had asked when the ending came
    int is_behind;       // the poll had fewer atomic operations
    int is_fed;          // the next file was made ready for its own wait
    int is_spoilt;       // the next file is taken for another
    volt__fd *e;
    int in_set; // the descriptor in the poll set
    volt_pollset set;
    volt_pollev ev[2];
    volt_addr addr;
    volt_cx *cx;
    volt_timer t;
    volt_token_link link;
    volt_token stop;
    volt__node *node;
    struct iovec iov[2];
    int64_t rc;
    char *buf; // of FULL bytes
    int n_played, n_failures;
};
static scene *playing; // for the seam

// ---- the seam

static int is_refused(int fd, const char *name) {
    scene *s = playing;
    if (!s || fd != s->fd || s->is_taken) return 0;
    s->has_asked = 1;
    int is_first = s->n_polls == 1 && !s->is_over;
    errno = 0;
    if (s->w.ways & IS_ALWAYS && s->n_polls == 1)
        errno = !strcmp(name, "epoll_ctl") ? EPERM
                : strcmp(name, "fcntl") && strcmp(name, "getsockopt") ? EAGAIN : 0;
    if (!strcmp(name, "accept") && is_first)
        errno = s->w.ways & IS_OUT_OF_FILES ? EMFILE : s->w.ways & IS_ABORTED ? ECONNABORTED : 0;
    return errno != 0;
}
// The number goes to the next file as soon as it is free.
static void take_number(scene *s) {
    s->is_taken = 1;
    if (s->next == NO_FILE) return;
    CHECK_EQ(dup2(s->next_fd, s->fd), s->fd);
    close(s->next_fd);
    s->next_fd = s->fd;
}
static int seam_close(int fd) {
    int rc = close(fd);
    if (playing && fd == playing->fd && !playing->is_taken) take_number(playing);
    return rc;
}
static int seam_socket(int family, int type, int protocol) {
    int fd = socket(family, type, protocol);
    if (playing && playing->w.kind == HANDSHAKE && playing->fd < 0) {
        playing->fd = fd;
        playing->e = volt__fd_lookup(&playing->cx->rt_->fds, fd);
    }
    return fd;
}
static int seam_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout) {
    return is_refused(ep, "poll") ? 0 : volt__sys_epoll_wait(ep, ev, n, timeout);
}

// ---- files

static void set_blocking(int fd, int is_blocking) {
    int flags = fcntl(fd, F_GETFL);
    CHECK(flags >= 0);
    CHECK_EQ(fcntl(fd, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK), 0);
}
static int unblock(int fd) { // its flags
    int flags = fcntl(fd, F_GETFL);
    set_blocking(fd, 0);
    return flags;
}
static void fill(int fd, char *buf) {
    int flags = unblock(fd);
    while (write(fd, buf, 65536) > 0) {}
    while (write(fd, buf, 1) > 0) {}
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
}
static void drain(int fd, char *buf) {
    int flags = unblock(fd);
    while (read(fd, buf, FULL) > 0) {}
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
}
static void connect_to(const volt_addr *a) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, volt__addr_sa(a), a->len_), 0);
    close(fd);
}
static void connect_to_listener(int fd) {
    volt_addr a;
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    connect_to(&a);
}
static int open_listener(int backlog) {
    volt_listen_options o = { .backlog = backlog };
    int fd = volt_listen("127.0.0.1", 0, &o);
    CHECK(fd >= 0);
    set_blocking(fd, 1);
    return fd;
}
static void open_tcp(int fd[2]) {
    int lfd = open_listener(0);
    volt_addr a;
    CHECK_EQ(volt_local_addr(lfd, &a), 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd[0] >= 0);
    CHECK_EQ(connect(fd[0], volt__addr_sa(&a), a.len_), 0);
    fd[1] = accept(lfd, NULL, NULL);
    CHECK(fd[1] >= 0);
    close(lfd);
}
// A file of a kind that blocks, and does not let through what goes in the direction.
static void open_file(scene *s, enum file_kind kind, int *fd, int *peer) {
    int two[2] = { -1, -1 };
    uint64_t most = UINT64_MAX - 1;
    switch (kind) {
    case SOCKETS:
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two), 0);
        CHECK_EQ(volt_set_buffers(two[0], 1, 0), 0); // the least: it is filled often
        break;
    case PIPES:
        CHECK_EQ(pipe(two), 0);
        (void)fcntl(two[0], F_SETPIPE_SZ, 4096);
        break;
    case TCP: open_tcp(two); break;
    case EVENTFD: CHECK((two[0] = eventfd(0, EFD_CLOEXEC)) >= 0); break;
    case LISTENER: two[0] = open_listener(0); break;
    case SET:
        CHECK_EQ(volt_pollset_open(&s->set), 0);
        CHECK_EQ(pipe(two), 0);
        CHECK_EQ(volt_pollset_set(&s->set, two[0], VOLT_IN), 0);
        s->in_set = two[0];
        two[0] = s->set.epfd_ - 1;
        break;
    case PATH: { // the receiver's queue is full
        struct sockaddr any = { .sa_family = AF_UNIX };
        CHECK((two[0] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0);
        CHECK((two[1] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0);
        CHECK_EQ(bind(two[1], &any, sizeof any.sa_family), 0);
        CHECK_EQ(volt_local_addr(two[1], &s->addr), 0);
        const struct sockaddr *to = volt__addr_sa(&s->addr);
        while (sendto(two[0], s->buf, 8, MSG_DONTWAIT, to, s->addr.len_) > 0) {}
        break;
    }
    case CONNECTING:
    case HANDSHAKE: // a listener whose backlog is full: no answer comes
        if (kind == CONNECTING) two[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        two[1] = open_listener(1);
        CHECK_EQ(listen(two[1], 0), 0);
        CHECK_EQ(volt_local_addr(two[1], &s->addr), 0);
        connect_to(&s->addr);
        break;
    case NO_FILE: break;
    }
    int is_writer = s->w.dir == WRITES && kind == PIPES; // the write end is the second
    *fd = two[is_writer];
    *peer = two[!is_writer];
    if (s->w.dir == READS || kind == CONNECTING || kind == PATH) return;
    if (kind == EVENTFD) CHECK_EQ(write(*fd, &most, sizeof most), 8);
    else if (*fd >= 0 && *peer >= 0) fill(*fd, s->buf);
}
static void make_ready(scene *s, enum file_kind kind, int fd, int peer) {
    uint64_t one = 1;
    switch (kind) {
    case LISTENER: connect_to_listener(fd); return;
    case EVENTFD:
        if (s->w.dir == READS) CHECK_EQ(write(fd, &one, sizeof one), 8);
        else drain(fd, s->buf);
        return;
    case CONNECTING:
    case HANDSHAKE: {
        volt__chain c;
        volt__chain_init(&c);
        uint64_t token = (uint64_t)s->e->gen << 32 | (uint32_t)fd;
        volt__fd_event(&s->cx->rt_->fds, token, EPOLLOUT, &c);
        volt__schedule_chain(&c);
        return;
    }
    default:
        if (s->w.dir == READS) CHECK_EQ(write(peer, s->buf, 32), 32);
        else drain(peer, s->buf);
    }
}
// Takes what a wait was woken for, before that is polled.
static void make_unready(scene *s) {
    if (s->w.kind == HANDSHAKE || s->w.kind == CONNECTING) return;
    if (s->w.kind == LISTENER) {
        int fd = accept(s->fd, NULL, NULL);
        CHECK(fd >= 0);
        close(fd);
    } else if (s->w.kind == SET) {
        drain(s->in_set, s->buf);
    } else if (s->w.dir == READS) {
        drain(s->fd, s->buf);
    } else {
        fill(s->fd, s->buf);
    }
}

// ---- the ending

static void *close_from_a_thread(void *arg) {
    scene *s = arg;
    volt_rt_close(s->cx->rt_, s->fd);
    return NULL;
}
static void end_it(scene *s) {
    s->is_over = 1;
    s->was_begun = s->has_asked;
    switch (s->ending) {
    case CLOSE: volt_close(s->cx, s->fd); break;
    case RT_CLOSE: join_thread(start_thread(close_from_a_thread, s)); break;
    case SET_CLOSE: volt_pollset_close(s->cx, &s->set); break;
    case FORGET: // and close(2), unless a call on it may be under way
        volt_fd_release(s->cx, s->fd);
        if (__atomic_load_n(&s->e->pins, __ATOMIC_ACQUIRE) >= VOLT__FD_PIN) break;
        close(s->fd);
        take_number(s);
        break;
    case FORGET_FIRST: volt_fd_release(s->cx, s->fd); break;
    }
}
// An ending while the poll holds the entry's lock would wait for that lock.
static void end_between(void *arg) {
    scene *s = arg;
    if (__atomic_load_n(&s->e->lock, __ATOMIC_ACQUIRE)) meddle_at = 1;
    else end_it(s);
}

// The wait, with the ending in the poll that it is for.
static volt_poll play(volt_cx *cx, scene *s) {
    int is_the_one = !s->is_over && ++s->n_polls == (s->moment == FIRED || s->moment == AGAIN) + 1;
    s->cx = cx;
    if (is_the_one && s->moment == FIRED && !(s->w.ways & IS_OUT_OF_FILES)) make_unready(s);
    if (is_the_one && s->at == 0) end_it(s);
    meddler = end_between;
    meddler_arg = s;
    meddle_at = is_the_one && s->at > 0 ? s->at : 0;
    volt_poll p = s->w.fn(cx, s);
    meddle_at = 0;
    if (!volt_is_pending(p)) {
        if (!s->is_over) s->is_behind = 1;
        return p;
    }
    s->node = cx->frame_;
    if (s->n_polls == 1 && s->moment == AGAIN) CHECK(s->node->next_ == s->node);
    if (is_the_one && !s->is_over) { // it waits
        s->is_behind = 1;
        if (s->moment == OUT_OF_BUDGET) s->has_asked = 1; // the call has been made
        end_it(s);
    } else if (s->is_over && !s->was_begun && (s->next != NO_FILE || !s->is_taken)) {
        volt_token_cancel(&s->stop); // it waits for the next file, if it was that late
    } else if (s->n_polls == 1 && s->moment == FIRED) {
        if (s->w.ways & IS_OUT_OF_FILES) return p; // its timer fires
        CHECK_EQ(volt__node_state(s->node), VOLT__LINKED);
        make_ready(s, s->w.kind, s->fd, s->peer);
    }
    return p;
}

// ---- what must be true afterwards

__attribute__((format(printf, 2, 3))) static void fails(scene *s, const char *format, ...) {
    char text[128];
    __builtin_va_list ap;
    __builtin_va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    __builtin_va_end(ap);
    s->n_failures++;
    printf("%s%s, %s%s at %s, operation %d%s; then %s, %s: %s\n", file_names[s->w.kind],
           s->w.dir == READS ? "" : " to write", ending_names[s->ending],
           s->was_begun ? "" : " first", moment_names[s->moment], s->at,
           s->is_behind ? " (behind it)" : "", s->next_is_ready ? "ready" : "quiet",
           file_names[s->next], text);
}
// Is the number known to the worker's epoll instance?
static int is_registered(scene *s) {
    char path[64], line[160];
    int hit = 0, fd;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", s->cx->worker_->reactor.epfd);
    FILE *f = fopen(path, "r");
    CHECK(f);
    while (fgets(line, sizeof line, f)) hit |= sscanf(line, "tfd: %d", &fd) == 1 && fd == s->fd;
    fclose(f);
    return hit;
}
static void check_result(scene *s) {
    if (s->rc == -ETIMEDOUT) fails(s, "it hangs");
    if (s->rc == -EBADF) return;
    if (!s->was_begun && (s->next != NO_FILE || s->ending >= FORGET)) return;
    // a poll set that was closed before any call was made on it is not open
    int is_first = !s->was_begun || s->moment == OUT_OF_BUDGET;
    if (s->ending == SET_CLOSE && s->rc == -EINVAL && is_first) return;
    // it had seen that the file is ready, and asks no more
    if (s->moment == FIRED && s->at > 0 && s->rc == 0) return;
    if (s->rc != -ETIMEDOUT) fails(s, "it gave %d", (int)s->rc);
}
static void check_next_file(scene *s) {
    if (s->rc != -EBADF) return;
    if (s->is_taken && s->next != NO_FILE && fcntl(s->fd, F_GETFL) & O_NONBLOCK)
        fails(s, "made non-blocking");
    if (is_registered(s)) fails(s, "still in epoll");
}
// Of the next owner: one wait, begun while the file is quiet if it is.
static volt_poll next_wait(volt_cx *cx, scene *s) {
    volt_poll p = s->next == LISTENER    ? volt_accept(cx, s->fd)
                  : s->w.dir == READS    ? volt_read(cx, s->fd, s->buf, 8)
                                         : volt_write(cx, s->fd, s->buf, 8);
    // a call that came behind the ending may have taken what was there
    int is_quiet = !s->next_is_ready || !s->was_begun;
    if (volt_is_pending(p) && is_quiet && !s->is_fed) {
        s->is_fed = 1;
        make_ready(s, s->next, s->fd, s->next_peer);
    }
    return p;
}
static void close_rest(scene *s) {
    if (s->peer >= 0) close(s->peer);
    if (s->next_peer >= 0) close(s->next_peer);
    if (s->w.kind == SET) close(s->in_set);
    if (s->e->pins || s->e->lock || s->e->mode != VOLT__MODE_NONE || s->e->flags || s->e->rd ||
        s->e->wr)
        fails(s, "the entry is not as new: use %u, mode %d, flags %d", s->e->pins, s->e->mode,
              s->e->flags);
}
static void set_scene(volt_cx *cx, scene *s) {
    s->n_polls = s->has_asked = s->is_over = s->is_taken = s->was_begun = 0;
    s->is_behind = s->is_fed = 0;
    s->cx = cx;
    memset(&s->stop, 0, sizeof s->stop);
    open_file(s, s->w.kind, &s->fd, &s->peer);
    open_file(s, s->next, &s->next_fd, &s->next_peer);
    if (s->next != NO_FILE && s->next_is_ready) make_ready(s, s->next, s->next_fd, s->next_peer);
    if (s->moment == AGAIN && !(s->w.ways & (IS_ALWAYS | IS_ABORTED))) {
        if (s->w.dir == READS) CHECK_EQ(write(s->peer, s->buf, 8), 8); // a part of it
        else drain(s->peer, s->buf);
    }
    if (s->fd < 0) return; // volt_connect opens it
    s->e = volt__fd_lookup(&cx->rt_->fds, s->fd);
    CHECK(s->e);
    if (!(s->w.ways & IS_EDGE)) return;
    volt__lock(&s->e->lock);
    CHECK_EQ(volt__fd_register(&cx->rt_->fds, s->e, s->fd, 0), 0);
    volt__unlock(&s->e->lock);
}

// ---- all of them

typedef struct {
    enum file_kind kind;
    int is_ready;
} next_file;
static const next_file next_files[] = { { NO_FILE, 0 },  { SOCKETS, 0 },  { SOCKETS, 1 },
                                        { PIPES, 0 },    { PIPES, 1 },    { EVENTFD, 0 },
                                        { EVENTFD, 1 },  { LISTENER, 0 }, { LISTENER, 1 } };
enum { N_NEXT = sizeof next_files / sizeof next_files[0] };
typedef struct {
    volt_frame frame;
    scene s;
    enum moment moment;
    enum ending last;
    int i_next;
} all;
static volt_poll all_run(volt_cx *cx, void *arg) {
    all *a = arg;
    scene *const s = &a->s;
    VOLT_BEGIN(cx, a);
    s->moment = a->moment;
    for (s->ending = s->w.kind == SET ? RT_CLOSE : CLOSE; s->ending <= a->last; s->ending++) {
        for (a->i_next = 0; a->i_next < N_NEXT; a->i_next++) {
            s->at = s->moment == FIRED || s->moment == AGAIN ? 0 : 1;
            if (s->w.kind == HANDSHAKE && s->at > 0) s->at = INT_MAX;
            for (;; s->at++) {
                s->next = next_files[a->i_next].kind;
                s->next_is_ready = next_files[a->i_next].is_ready;
                set_scene(cx, s);
                playing = s;
                VOLT_AWAIT(s->rc, volt_read(cx, s->fd, s->buf, 0)); // a unit of the budget
                if (s->moment != OUT_OF_BUDGET) VOLT_AWAIT(volt_yield(cx)); // and all of it
                VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(1),
                                              volt_with_token(cx, &s->link, &s->stop,
                                                              play(cx, s))));
                s->n_played++;
                CHECK(s->is_over || s->is_behind);
                if (s->w.kind == LISTENER && s->rc > 0) close((int)s->rc); // of the next one
                if (s->is_over) check_result(s);
                else end_it(s);
                playing = NULL;
                check_next_file(s);
                if (!s->is_taken) {
                    CHECK(s->ending == FORGET || s->ending == FORGET_FIRST);
                    if (s->rc == -ECANCELED) volt_fd_release(cx, s->fd); // it began behind that
                    close(s->fd);
                    take_number(s);
                }
                s->is_spoilt = s->rc == -EBADF && s->e->flags; // its own call would block
                if (s->is_spoilt) fails(s, "left the flags %d behind", s->e->flags);
                if (s->next != NO_FILE && !s->is_spoilt &&
                    (s->next != LISTENER || s->w.dir == READS)) {
                    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(1), next_wait(cx, s)));
                    if (s->rc <= 0) fails(s, "its own wait gave %d", (int)s->rc);
                    if (s->rc > 0 && s->next == LISTENER) volt_close(cx, (int)s->rc);
                }
                if (s->next != NO_FILE) volt_close(cx, s->fd);
                close_rest(s);
                if (s->is_behind || s->w.kind == HANDSHAKE) break;
                if (s->n_failures >= MOST_FAILURES) break;
            }
            if (s->n_failures >= MOST_FAILURES) VOLT_RETURN(0);
        }
    }
    VOLT_END(0);
}

static void play_moment(wait_of w, enum moment moment) {
    static all a;
    volt_config c = test_config(1);
    c.budget = moment == AGAIN || moment == OUT_OF_BUDGET;
    memset(&a, 0, sizeof a);
    a.s.w = w;
    a.s.buf = malloc(FULL);
    CHECK(a.s.buf);
    memset(a.s.buf, 1, FULL);
    a.moment = moment;
    a.last = w.kind == SET ? SET_CLOSE : FORGET_FIRST;
    CHECK_EQ(volt_run(&c, all_run, &a), 0);
    free(a.s.buf);
    test_check_heap();
    printf("%s: %d played\n", moment_names[moment], a.s.n_played);
    CHECK_EQ(a.s.n_failures, 0);
}
static void play_wait(wait_of w) {
    play_moment(w, BEGINNING);
    play_moment(w, FIRED);
}

// ---- the waits

static volt_poll waits_read(volt_cx *cx, scene *s) { return volt_read(cx, s->fd, s->buf, 8); }
static volt_poll waits_write(volt_cx *cx, scene *s) { return volt_write(cx, s->fd, s->buf, 8); }
static const struct iovec *two_parts(scene *s) {
    s->iov[0].iov_base = s->buf, s->iov[1].iov_base = s->buf + 4;
    s->iov[0].iov_len = s->iov[1].iov_len = 4;
    return s->iov;
}
static volt_poll waits_readv(volt_cx *cx, scene *s) {
    return volt_readv(cx, s->fd, two_parts(s), 2);
}
static volt_poll waits_writev(volt_cx *cx, scene *s) {
    return volt_writev(cx, s->fd, two_parts(s), 2);
}
static volt_poll waits_read_exact(volt_cx *cx, scene *s) {
    return volt_read_exact(cx, s->fd, s->buf, 64);
}
static volt_poll waits_write_all(volt_cx *cx, scene *s) {
    return volt_write_all(cx, s->fd, s->buf, FULL);
}
static volt_poll waits_readable(volt_cx *cx, scene *s) { return volt_readable(cx, s->fd); }
static volt_poll waits_writable(volt_cx *cx, scene *s) { return volt_writable(cx, s->fd); }
static volt_poll waits_recv(volt_cx *cx, scene *s) { return volt_recv(cx, s->fd, s->buf, 8, 0); }
static volt_poll waits_send(volt_cx *cx, scene *s) { return volt_send(cx, s->fd, s->buf, 8, 0); }
static volt_poll waits_read_ready(volt_cx *cx, scene *s) { return volt_read_ready(cx, s->fd); }
static volt_poll waits_write_ready(volt_cx *cx, scene *s) { return volt_write_ready(cx, s->fd); }
static int64_t read_once(int fd, void *buf) {
    ssize_t n = is_refused(fd, "read") ? -1 : read(fd, buf, 8);
    return n < 0 ? -errno : n;
}
static int64_t write_once(int fd, void *buf) {
    ssize_t n = is_refused(fd, "write") ? -1 : write(fd, buf, 8);
    return n < 0 ? -errno : n;
}
static volt_poll waits_io_in(volt_cx *cx, scene *s) {
    return volt_io(cx, s->fd, VOLT_IN, read_once, s->buf);
}
static volt_poll waits_io_out(volt_cx *cx, scene *s) {
    return volt_io(cx, s->fd, VOLT_OUT, write_once, s->buf);
}
static volt_poll waits_accept(volt_cx *cx, scene *s) { return volt_accept(cx, s->fd); }
static volt_poll waits_accept_from(volt_cx *cx, scene *s) {
    return volt_accept_from(cx, s->fd, &s->addr);
}
static volt_poll waits_connect(volt_cx *cx, scene *s) { return volt_connect(cx, &s->addr); }
static volt_poll waits_connect_on(volt_cx *cx, scene *s) {
    return volt_connect_on(cx, s->fd, &s->addr);
}
static volt_poll waits_sendto(volt_cx *cx, scene *s) {
    return volt_sendto(cx, s->fd, s->buf, 8, 0, &s->addr);
}
static volt_poll waits_pollset(volt_cx *cx, scene *s) {
    return volt_pollset_wait(cx, &s->set, s->ev, 2);
}

// A TCP socket drains at times of the kernel's choice, so none stays full.
#define EACH_READ(k_) for (enum file_kind k_ = SOCKETS; k_ <= TCP; k_++)
#define EACH_WRITTEN(k_) for (enum file_kind k_ = SOCKETS; k_ <= PIPES; k_++)
TEST(closed_number_ends_read) {
    EACH_READ(k) play_wait((wait_of){ waits_read, READS, k, 0 });
    play_moment((wait_of){ waits_read, READS, SOCKETS, IS_ALWAYS }, AGAIN);
}
TEST(closed_number_ends_readv) {
    EACH_READ(k) play_wait((wait_of){ waits_readv, READS, k, 0 });
    play_moment((wait_of){ waits_readv, READS, PIPES, IS_ALWAYS }, AGAIN);
}
TEST(closed_number_ends_write) {
    EACH_WRITTEN(k) play_wait((wait_of){ waits_write, WRITES, k, 0 });
    play_moment((wait_of){ waits_write, WRITES, SOCKETS, IS_ALWAYS }, AGAIN);
}
TEST(closed_number_ends_writev) {
    EACH_WRITTEN(k) play_wait((wait_of){ waits_writev, WRITES, k, 0 });
    play_moment((wait_of){ waits_writev, WRITES, PIPES, IS_ALWAYS }, AGAIN);
}
TEST(closed_number_ends_read_exact) {
    EACH_READ(k) play_wait((wait_of){ waits_read_exact, READS, k, 0 });
    EACH_READ(k) play_moment((wait_of){ waits_read_exact, READS, k, 0 }, AGAIN);
}
TEST(closed_number_ends_write_all) {
    EACH_WRITTEN(k) play_wait((wait_of){ waits_write_all, WRITES, k, 0 });
    EACH_WRITTEN(k) play_moment((wait_of){ waits_write_all, WRITES, k, 0 }, AGAIN);
}
TEST(closed_number_ends_readable) {
    EACH_READ(k) play_wait((wait_of){ waits_readable, READS, k, 0 });
    EACH_READ(k) play_wait((wait_of){ waits_readable, READS, k, IS_EDGE });
}
TEST(closed_number_ends_writable) {
    EACH_WRITTEN(k) play_wait((wait_of){ waits_writable, WRITES, k, 0 });
    EACH_WRITTEN(k) play_wait((wait_of){ waits_writable, WRITES, k, IS_EDGE });
}
TEST(closed_number_ends_recv) {
    play_wait((wait_of){ waits_recv, READS, SOCKETS, 0 });
    play_wait((wait_of){ waits_recv, READS, TCP, 0 });
}
TEST(closed_number_ends_send) {
    play_wait((wait_of){ waits_send, WRITES, SOCKETS, 0 });
    play_moment((wait_of){ waits_send, WRITES, SOCKETS, IS_ALWAYS }, AGAIN);
}
// Not for a file that is registered: there the result is a hint, which may be older than a close.
TEST(closed_number_ends_read_ready) {
    EACH_READ(k) play_wait((wait_of){ waits_read_ready, READS, k, 0 });
}
TEST(closed_number_ends_write_ready) {
    EACH_WRITTEN(k) play_wait((wait_of){ waits_write_ready, WRITES, k, 0 });
}
TEST(closed_number_ends_io) {
    signal(SIGPIPE, SIG_IGN);
    EACH_READ(k) play_wait((wait_of){ waits_io_in, READS, k, 0 });
    EACH_WRITTEN(k) play_wait((wait_of){ waits_io_out, WRITES, k, 0 });
}
TEST(closed_number_ends_accept_from) {
    play_wait((wait_of){ waits_accept_from, READS, LISTENER, 0 });
}
TEST(closed_number_ends_accept) {
    play_wait((wait_of){ waits_accept, READS, LISTENER, 0 });
    play_moment((wait_of){ waits_accept, READS, LISTENER, IS_ABORTED }, AGAIN);
    play_moment((wait_of){ waits_accept, READS, LISTENER, IS_ALWAYS }, AGAIN);
}
TEST(closed_number_ends_accept_out_of_files) {
    play_wait((wait_of){ waits_accept, READS, LISTENER, IS_OUT_OF_FILES });
}
TEST(closed_number_ends_connect) {
    play_wait((wait_of){ waits_connect, WRITES, HANDSHAKE, 0 });
}
TEST(closed_number_ends_connect_on) {
    play_wait((wait_of){ waits_connect_on, WRITES, CONNECTING, 0 });
    play_wait((wait_of){ waits_connect_on, WRITES, CONNECTING, IS_EDGE });
}
TEST(closed_number_ends_send_by_path) {
    play_wait((wait_of){ waits_sendto, WRITES, PATH, IS_OUT_OF_FILES }); // its timer fires, too
}
TEST(closed_number_ends_pollset_wait) {
    play_wait((wait_of){ waits_pollset, READS, SET, 0 });
}
TEST(closed_number_ends_wait_that_is_out_of_budget) {
    play_moment((wait_of){ waits_read, READS, SOCKETS, 0 }, OUT_OF_BUDGET);
    play_moment((wait_of){ waits_write, WRITES, SOCKETS, 0 }, OUT_OF_BUDGET);
    play_moment((wait_of){ waits_accept, READS, LISTENER, 0 }, OUT_OF_BUDGET);
    play_moment((wait_of){ waits_readable, READS, SOCKETS, 0 }, OUT_OF_BUDGET);
    play_moment((wait_of){ waits_pollset, READS, SET, 0 }, OUT_OF_BUDGET);
}
