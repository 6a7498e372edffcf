// SPDX-License-Identifier: MIT OR 0BSD
// The simulated kernel: VOLT_SYS(name, ...) calls its sim_name(...). Part of sim.h.
//
// Linux's behaviour is kept where volt may depend on it: descriptors are the lowest free numbers
// and name counted open files (dup); a registration in an epoll belongs to (number, file) and
// outlives the number while the file lives; edges, levels, one-shots; an exclusive registration
// wakes one sleeper and is left ready without one; ready events are checked again when they are
// fetched; a short read of a TCP socket means that it was empty, of any other file nothing. A disk
// and a resolver block the calling thread. Datagrams are in datagrams.h, signals and children in
// children.h. Left out: urgent data, IPv6.
#ifndef VOLT_SIM_KERNEL_H
#define VOLT_SIM_KERNEL_H

#include "machine.h"
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { SIM_PATHS = 32, SIM_PATH_BYTES = 1024 }; // "/0" .. "/31", and the largest size of each
enum { SIM_FDS = 512, SIM_FILES = 768, SIM_ITEMS = 2048, SIM_BUFFER = 4096, SIM_FIRST_FD = 3 };
enum { SIM_CHILDREN = 256, SIM_FIRST_PID = 1000 };
enum { SIM_PACKETS = 4096, SIM_PACKET_BYTES = 256, SIM_TTL = 64, SIM_IF_INDEX = 1 };

typedef struct sim_file sim_file;
typedef struct sim_item { // one registration
    sim_file *file, *epoll;
    int fd;
    uint32_t events;
    uint64_t data;
    int is_ready, is_off; // off: one-shot, and spent
    struct sim_item *next_of_file, *next_of_epoll, *next_ready;
} sim_item;

enum {
    SIM_NOTHING,
    SIM_EPOLL,
    SIM_EVENTFD,
    SIM_TIMERFD,
    SIM_PIPE,
    SIM_STREAM,
    SIM_LISTENER,
    SIM_DGRAM,
    SIM_SIGNALS,
    SIM_PIDFD,
    SIM_STORED,
    SIM_NULL
};
enum { SIM_CHILD_NONE, SIM_CHILD_RUNS, SIM_CHILD_ENDED };
typedef struct sim_child {
    int state, status, signal, error, bytes, ignores;
    sim_file *report, *stream[3];
} sim_child;
typedef struct sim_packet {
    struct sim_packet *next;
    sim_file *from;
    uint32_t from_gen, len;
    uint16_t from_port, to_port;
    uint32_t from_address, to_address; // of this machine, in host order
    int tos, ttl;
    unsigned char byte[SIM_PACKET_BYTES];
} sim_packet;
struct sim_file {
    int kind, refs, flags;
    uint32_t gen; // an event for an earlier file in this place is void
    sim_item *watchers;
    // epoll
    sim_item *items, *ready, **ready_end;
    // eventfd: its counter. timerfd: expiries not read
    uint64_t count;
    uint32_t armed; // timerfd: counts settime
    // pipe, stream
    sim_file *peer;                   // NULL: gone
    unsigned char *buf;               // received: a ring
    uint32_t cap, head, len, arrived; // len: includes bytes under way
    int is_connecting, is_attempt, is_joined; // a connect
    int is_tcp, is_end_sent, is_end_seen, is_lingering_off, error;
    int can_read, can_write; // ends of a pipe
    int is_whole;            // reads give all that is there
    int wants_room;          // a writer met no room: it gets an edge
    int64_t last_arrival;    // into this file: bytes stay in order
    // datagrams; n_out: packets that are under way
    sim_packet *packets, **packets_end;
    uint32_t n_packets, n_out;
    int is_pair, is_seq; // seq: a pair with an end, as of SOCK_SEQPACKET
    int tos, ttl, wants_info[3]; // of a packet; info: its addresses, TTL and TOS
    uint64_t mask; // of signals
    // sockets
    uint16_t port, peer_port;
    sim_file *queue[SIM_FDS];
    int n_queued, backlog;
    int path; // of a disk; of a pidfd: the pid
};
typedef struct sim_path {
    int exists, len;
    unsigned char byte[SIM_PATH_BYTES];
} sim_path;

static struct sim__kernel {
    sim_file *fd[SIM_FDS];
    int fd_limit;
    sim_file *files;
    int n_files; // in use so far
    unsigned char *buffers;
    sim_item items[SIM_ITEMS], *free_item;
    uint32_t cap;          // of streams and pipes, in this run
    uint64_t eventfd_most; // a counter at this value is full
    int somaxconn, is_shuffled;
    int latency_bits; // of a connect, 2^n ns at most
    int is_old; // without epoll_pwait2, accept4, flags of an eventfd
    uint16_t next_port;
    sim_packet packet[SIM_PACKETS], *free_packet;
    uint32_t most_packets, most_out; // of one socket: queued, under way
    uint64_t n_dropped;
    uint64_t pending; // signals
    int n_raised[64];
    sim_child child[SIM_CHILDREN];
    int n_children;
    uint32_t splices_off; // bit 0: from sockets; bit 1: to sockets
    sim_path path[SIM_PATHS];
    int n_resolving, most_resolving, n_lists; // threads inside getaddrinfo; lists not freed
} kernel;

#define SIM_CALLS(X_)                                                                              \
    X_(accept4) X_(bind) X_(close) X_(connect) X_(dup) X_(epoll_create1) X_(epoll_ctl)             \
    X_(epoll_wait) X_(eventfd) X_(fcntl) X_(fsync) X_(ftruncate) X_(futex_wait) X_(futex_wake)     \
    X_(getaddrinfo) X_(getpeername) X_(getsockname) X_(getsockopt) X_(listen) X_(mmap) X_(munmap)  \
    X_(kill) X_(pidfd_open) X_(pidfd_send) X_(signalfd) X_(waitid) X_(waitpid)                     \
    X_(openat) X_(pipe) X_(poll) X_(pread) X_(preadv2) X_(pthread_create) X_(pthread_join)         \
    X_(pwrite) X_(read) X_(recvmmsg) X_(recvmsg) X_(sendfile) X_(sendmmsg) X_(sendmsg)             \
    X_(setsockopt) X_(shutdown) X_(socket) X_(socketpair) X_(splice) X_(stat)                      \
    X_(timerfd_create) X_(timerfd_settime) X_(write)
enum {
#define SIM_CALL_ENUM(name_) SIM_C_##name_,
    SIM_CALLS(SIM_CALL_ENUM) SIM_N_CALLS
};
static const char *const sim__call_names[] = {
#define SIM_CALL_NAME(name_) #name_,
    SIM_CALLS(SIM_CALL_NAME)};

// ---- the way in and out of each call

static inline int sim__error(int error) {
    errno = error;
    return -1;
}
static inline int64_t sim__done(int call, int64_t subject, int64_t rc) {
    int error = rc < 0 ? errno : 0;
    sim.report.calls++;
    sim__hash((uint64_t)call << 56 ^ (uint64_t)(subject + 7) << 32 ^ (uint64_t)rc ^
              (uint64_t)error << 20);
    if (sim.opt.is_traced)
        sim__trace("%s(%" PRId64 ") = %" PRId64 "%s%s", sim__call_names[call], subject, rc,
                   error ? " " : "", error ? strerror(error) : "");
    if (error) errno = error;
    return rc;
}
// The result in a call's own type.
#define SIM__INT(name_, subject_, rc_) ((int)sim__done(SIM_C_##name_, subject_, rc_))

// ---- open files and descriptors

static sim_file *sim__file_at(int fd) { return fd >= 0 && fd < SIM_FDS ? kernel.fd[fd] : NULL; }
static sim_file *sim__file_of(int fd, int kind) {
    sim_file *f = sim__file_at(fd);
    return f && f->kind == kind ? f : NULL;
}
static sim_file *sim__file_open(int kind) {
    sim_file *f = NULL;
    for (int i = 0; i < kernel.n_files && !f; i++)
        if (kernel.files[i].kind == SIM_NOTHING) f = &kernel.files[i];
    if (!f && kernel.n_files < SIM_FILES) f = &kernel.files[kernel.n_files++];
    if (!f) return NULL;
    uint32_t gen = f->gen;
    memset(f, 0, offsetof(sim_file, queue));
    f->n_queued = f->backlog = 0;
    f->gen = gen + 1;
    f->kind = kind;
    f->buf = kernel.buffers + (size_t)(f - kernel.files) * SIM_BUFFER;
    f->cap = kernel.cap;
    f->ready_end = &f->ready;
    f->packets_end = &f->packets;
    return f;
}
// The lowest free number, or -1 with errno.
static int sim__fd_install(sim_file *f) {
    int fd = SIM_FIRST_FD;
    if (!f) return sim__error(ENFILE);
    while (fd < kernel.fd_limit && kernel.fd[fd]) fd++;
    if (fd == kernel.fd_limit || sim_fault(SIM_NOFILE)) {
        if (f->refs == 0) f->kind = SIM_NOTHING;
        return sim__error(EMFILE);
    }
    kernel.fd[fd] = f;
    f->refs++;
    return fd;
}

// ---- readiness of a file

static uint32_t sim__free_room(const sim_file *f) { return f->cap - f->len; }
static uint32_t sim__stream_poll(const sim_file *f) {
    uint32_t m = 0;
    if (f->is_connecting) return 0;
    if (f->can_read && (f->arrived > 0 || f->is_end_seen)) m |= EPOLLIN;
    if (f->kind == SIM_STREAM && f->is_end_seen) m |= EPOLLRDHUP;
    if (f->kind == SIM_PIPE && f->can_read && f->is_end_seen) m |= EPOLLHUP;
    if (f->kind == SIM_STREAM && f->is_end_seen && f->is_end_sent) m |= EPOLLHUP;
    if (f->kind == SIM_PIPE && f->can_write && !f->peer) m |= EPOLLERR;
    if (f->error) m |= EPOLLERR | EPOLLIN | EPOLLOUT;
    if (f->can_write && (!f->peer || sim__free_room(f->peer) * 3 >= f->peer->cap)) m |= EPOLLOUT;
    return m;
}
static uint32_t sim__dgram_poll(const sim_file *f);
static uint32_t sim__pidfd_poll(const sim_file *f);
static int sim__pidfd_open(int pid);
static int sim__pidfd_send(int fd, int signal);
static int64_t sim__signals_read(const sim_file *f, void *buf, size_t len);
static uint32_t sim__poll_file(const sim_file *f) {
    switch (f->kind) {
    case SIM_EPOLL: return f->ready ? EPOLLIN : 0;
    case SIM_EVENTFD:
        return (f->count ? EPOLLIN : 0u) | (f->count < kernel.eventfd_most ? EPOLLOUT : 0u);
    case SIM_TIMERFD: return f->count ? EPOLLIN : 0;
    case SIM_LISTENER: return f->n_queued ? EPOLLIN : 0;
    case SIM_PIPE:
    case SIM_STREAM: return sim__stream_poll(f);
    case SIM_DGRAM: return sim__dgram_poll(f);
    case SIM_SIGNALS: return kernel.pending & f->mask ? EPOLLIN : 0;
    case SIM_PIDFD: return sim__pidfd_poll(f);
    default: return 0;
    }
}

// As sim__poll_file. A file that is polled while it cannot be written gets an edge when it can.
static uint32_t sim__poll_and_note(sim_file *f) {
    uint32_t m = sim__poll_file(f);
    if (!(m & EPOLLOUT)) f->wants_room = 1;
    return m;
}

// ---- epoll: ready lists and waking

static void sim__wake_file(sim_file *f, uint32_t events);

static void sim__ready_push(sim_item *i) {
    if (i->is_ready) return;
    i->is_ready = 1;
    i->next_ready = NULL;
    *i->epoll->ready_end = i;
    i->epoll->ready_end = &i->next_ready;
}
static void sim__ready_remove(sim_item *i) {
    sim_item **at = &i->epoll->ready;
    if (!i->is_ready) return;
    while (*at != i) at = &(*at)->next_ready;
    *at = i->next_ready;
    if (!*at) i->epoll->ready_end = at;
    i->is_ready = 0;
}
// 1: a sleeper was woken.
static int sim__item_fire(sim_item *i) {
    sim__ready_push(i);
    int woken = sim__wake_on(i->epoll, 1);
    if (i->epoll->watchers) sim__wake_file(i->epoll, EPOLLIN);
    return woken;
}
// An event of f: all its registrations that ask for it become ready; of the exclusive ones all up
// to the first that wakes a sleeper.
static void sim__wake_file(sim_file *f, uint32_t events) {
    int is_served = 0;
    for (sim_item *i = f->watchers; i; i = i->next_of_file) {
        int is_exclusive = (i->events & EPOLLEXCLUSIVE) != 0;
        if (i->is_off || !(events & (i->events | EPOLLERR | EPOLLHUP))) continue;
        if (is_exclusive && is_served) continue;
        int woken = sim__item_fire(i);
        if (is_exclusive && woken) is_served = 1;
    }
    sim__wake_on(f, 1); // a thread in a blocking call on it
}
static sim_item *sim__item_find(sim_file *epoll, int fd, const sim_file *f) {
    for (sim_item *i = epoll->items; i; i = i->next_of_epoll)
        if (i->fd == fd && i->file == f) return i;
    return NULL;
}
static void sim__item_free(sim_item *i) {
    sim_item **at = &i->file->watchers;
    sim__ready_remove(i);
    while (*at != i) at = &(*at)->next_of_file;
    *at = i->next_of_file;
    at = &i->epoll->items;
    while (*at != i) at = &(*at)->next_of_epoll;
    *at = i->next_of_epoll;
    i->next_ready = kernel.free_item;
    kernel.free_item = i;
}
static sim_item *sim__item_create(sim_file *epoll, int fd, sim_file *f) {
    sim_item *i = kernel.free_item;
    if (!i) return NULL;
    kernel.free_item = i->next_ready;
    memset(i, 0, sizeof *i);
    i->file = f;
    i->epoll = epoll;
    i->fd = fd;
    i->next_of_epoll = epoll->items;
    epoll->items = i;
    sim_item **at = &f->watchers;
    if (kernel.is_shuffled && sim_below(2))
        at = &f->watchers;
    else
        while (*at) at = &(*at)->next_of_file;
    i->next_of_file = *at;
    *at = i;
    return i;
}
static int sim__epoll_change(sim_file *epoll, int op, int fd, const struct epoll_event *ev) {
    sim_file *f = sim__file_at(fd);
    if (!epoll || epoll->kind != SIM_EPOLL || !f) return sim__error(EBADF);
    sim_item *i = sim__item_find(epoll, fd, f);
    if (op == EPOLL_CTL_ADD && i) return sim__error(EEXIST);
    if (op != EPOLL_CTL_ADD && !i) return sim__error(ENOENT);
    if (op == EPOLL_CTL_DEL) {
        sim__item_free(i);
        return 0;
    }
    if (op == EPOLL_CTL_MOD && (i->events & EPOLLEXCLUSIVE)) return sim__error(EINVAL);
    if (op == EPOLL_CTL_ADD && sim_fault(SIM_CONTROL))
        return sim__error(sim_below(2) ? ENOMEM : ENOSPC);
    if (op == EPOLL_CTL_ADD) i = sim__item_create(epoll, fd, f);
    if (!i) return sim__error(ENOSPC);
    i->events = ev->events;
    i->data = ev->data.u64;
    i->is_off = 0;
    if (sim__poll_and_note(f) & (i->events | EPOLLERR | EPOLLHUP)) sim__item_fire(i);
    return 0;
}
// Takes events that still hold; a level stays on the list, behind the others.
static int sim__epoll_collect(sim_file *epoll, struct epoll_event *out, int max) {
    sim_item *all[SIM_ITEMS / 8], *i;
    int n = 0, got = 0;
    for (i = epoll->ready; i && n < (int)(sizeof all / sizeof all[0]); i = i->next_ready)
        all[n++] = i;
    for (int k = n - 1; k > 0 && kernel.is_shuffled; k--) {
        uint32_t j = sim_below((uint32_t)k + 1);
        i = all[k];
        all[k] = all[j];
        all[j] = i;
    }
    for (int k = 0; k < n && got < max; k++) {
        uint32_t asked = all[k]->events | EPOLLERR | EPOLLHUP, m;
        m = sim__poll_and_note(all[k]->file) & asked;
        if (!all[k]->file->is_connecting && all[k]->file->kind >= SIM_PIPE &&
            sim_fault(SIM_PHANTOM))
            m |= asked & (EPOLLIN | EPOLLOUT);
        sim__ready_remove(all[k]);
        if (!m) continue;
        out[got].events = m;
        out[got++].data.u64 = all[k]->data;
        if (all[k]->events & EPOLLONESHOT)
            all[k]->is_off = 1;
        else if (!(all[k]->events & EPOLLET))
            sim__ready_push(all[k]);
    }
    return got;
}
static int sim__epoll_wait_ns(int ep, struct epoll_event *ev, int max, int64_t timeout) {
    sim_file *f = sim__file_of(ep, SIM_EPOLL);
    int64_t deadline = timeout < 0 || timeout > SIM_NEVER - sim.now ? SIM_NEVER : sim.now + timeout;
    int n;
    sim_point();
    if (!f) return sim__error(EBADF);
    if (timeout != 0 && sim_fault(SIM_EINTR)) return sim__error(EINTR);
    while ((n = sim__epoll_collect(f, ev, max)) == 0 && timeout != 0) {
        int is_late = sim__sleep("epoll_wait", f, deadline);
        if (is_late || sim_fault(SIM_EINTR)) {
            n = sim__epoll_collect(f, ev, max);
            return n == 0 && !is_late ? sim__error(EINTR) : n;
        }
    }
    if (f->ready) sim__wake_on(f, 1); // levels that are left over: Linux wakes the next waiter
    return n;
}

// ---- streams: bytes arrive late and in pieces, but in order

static void sim__arrive(void *object, uint64_t arg) {
    sim_file *f = object;
    if (f->gen != (uint32_t)(arg >> 32) || f->kind == SIM_NOTHING) return;
    f->arrived += (uint32_t)arg;
    sim__wake_file(f, EPOLLIN);
}
static void sim__arrive_end(void *object, uint64_t gen) {
    sim_file *f = object;
    if (f->gen != gen || f->kind == SIM_NOTHING) return;
    f->is_end_seen = 1;
    sim__wake_file(f, EPOLLIN | EPOLLRDHUP | (f->is_end_sent ? EPOLLHUP : 0u));
}
static void sim__arrive_reset(void *object, uint64_t arg) {
    sim_file *f = object;
    if (f->gen != (uint32_t)(arg >> 32) || f->kind != SIM_STREAM) return;
    f->error = (int)(arg & 0xffff);
    f->is_connecting = 0;
    f->is_end_seen = f->is_end_sent = 1;
    f->is_joined = 0;
    if (f->peer) f->peer->peer = NULL;
    f->peer = NULL;
    sim__wake_file(f, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
}
static void sim__nudge(void *object, uint64_t arg) {
    sim_file *f = object;
    if (f->gen == (uint32_t)(arg >> 32) && f->kind != SIM_NOTHING) sim__wake_file(f, (uint32_t)arg);
}
static uint64_t sim__for(const sim_file *f, uint64_t low) { return (uint64_t)f->gen << 32 | low; }
// Delivers now, or later but behind everything under way.
static void sim__deliver(sim_file *to, sim_action *act, uint64_t arg) {
    int64_t at = sim.now;
    if (to->is_tcp && sim_fault(SIM_LATENCY))
        at += 1 + (int64_t)sim_below(1u << (10 + sim_below(17)));
    if (at == sim.now && to->last_arrival < at) {
        act(to, arg);
        return;
    }
    if (at < to->last_arrival) at = to->last_arrival;
    to->last_arrival = at;
    sim__at(at, act, to, arg);
}
// A call returns EAGAIN although it could continue; the edge comes later.
static int sim__says_again(sim_file *f, uint32_t events) {
    if (!sim_fault(SIM_AGAIN)) return 0;
    sim__at(sim.now + 1 + (int64_t)sim_below(1u << (8 + sim_below(14))), sim__nudge, f,
            sim__for(f, events));
    return 1;
}
static void sim__reset_both(sim_file *f, int error) {
    sim_file *peer = f->peer;
    sim__arrive_reset(f, sim__for(f, (uint64_t)error));
    if (peer && peer->kind == SIM_STREAM)
        sim__deliver(peer, sim__arrive_reset, sim__for(peer, (uint64_t)error));
}
static uint32_t sim__pass(sim_file *to, const unsigned char *buf, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) to->buf[(to->head + to->len + i) % to->cap] = buf[i];
    to->len += n;
    for (int i = 3; n > 0; i--) { // segments
        uint32_t part = to->is_tcp && sim.rate[SIM_LATENCY] && i > 0 ? 1 + sim_below(n) : n;
        sim__deliver(to, sim__arrive, sim__for(to, part));
        n -= part;
    }
    return n;
}
static int64_t sim__stream_write(sim_file *f, const void *buf, size_t len) {
    if (!f->can_write) return sim__error(EBADF);
    if (f->is_connecting) return sim__error(f->kind == SIM_STREAM ? EAGAIN : EBADF);
    if (f->error) {
        int error = f->error;
        f->error = 0;
        return sim__error(error);
    }
    if (f->is_end_sent || !f->peer) return sim__error(EPIPE);
    if (f->is_tcp && sim_fault(SIM_RESET)) {
        sim__reset_both(f, ECONNRESET);
        f->error = 0;
        return sim__error(ECONNRESET);
    }
    uint32_t room = sim__free_room(f->peer), n = len < room ? (uint32_t)len : room;
    if (n == 0 || sim__says_again(f, EPOLLOUT)) {
        f->wants_room = 1;
        return sim__error(EAGAIN);
    }
    if (n > 1 && sim_fault(SIM_SHORT)) { // short of memory: an edge follows
        n = 1 + sim_below(n - 1);
        sim__at(sim.now + 1 + (int64_t)sim_below(1u << 20), sim__nudge, f, sim__for(f, EPOLLOUT));
    }
    if (n < len) f->wants_room = 1;
    sim__pass(f->peer, buf, n);
    return n;
}
static void sim__make_room(sim_file *f) {
    sim_file *w = f->peer;
    if (!w || !w->wants_room || sim__free_room(f) * 3 < f->cap) return;
    w->wants_room = 0;
    sim__deliver(w, sim__nudge, sim__for(w, EPOLLOUT));
}
static void sim__stream_drop(sim_file *f, uint32_t n) {
    f->head = (f->head + n) % f->cap;
    f->len -= n;
    f->arrived -= n;
    sim__make_room(f);
}
static int64_t sim__stream_read(sim_file *f, void *buf, size_t len, int flags) {
    if (!f->can_read) return sim__error(EBADF);
    if (f->is_connecting) return sim__error(EAGAIN);
    if (f->arrived == 0 && f->error) {
        int error = f->error;
        f->error = 0;
        return sim__error(error);
    }
    if (f->arrived == 0 && f->is_end_seen) return 0;
    // a pipe that has bytes never gives EAGAIN
    if (f->arrived == 0 || (f->kind != SIM_PIPE && sim__says_again(f, EPOLLIN)))
        return sim__error(EAGAIN);
    uint32_t n = len < f->arrived ? (uint32_t)len : f->arrived;
    if (n > 1 && !f->is_tcp && !f->is_whole && sim_fault(SIM_SHORT)) n = 1 + sim_below(n - 1);
    for (uint32_t i = 0; i < n; i++) ((unsigned char *)buf)[i] = f->buf[(f->head + i) % f->cap];
    if (!(flags & MSG_PEEK)) sim__stream_drop(f, n);
    return n;
}
static void sim__send_end(sim_file *f) {
    if (f->is_end_sent) return;
    f->is_end_sent = 1;
    if (f->peer) sim__deliver(f->peer, sim__arrive_end, f->peer->gen);
}

#include "datagrams.h"

// ---- closing: the last descriptor ends the file

static void sim__file_unref(sim_file *f);
static void sim__stream_close(sim_file *f) {
    sim_file *peer = f->peer;
    if (!peer) return;
    f->peer = NULL;
    peer->peer = NULL;
    if (f->kind == SIM_PIPE) {
        if (f->can_write)
            sim__arrive_end(peer, peer->gen);
        else
            sim__wake_file(peer, EPOLLERR | EPOLLOUT);
    } else if (f->is_tcp && (f->len > 0 || f->is_lingering_off)) {
        sim__deliver(peer, sim__arrive_reset, sim__for(peer, ECONNRESET));
    } else {
        sim__deliver(peer, sim__arrive_end, peer->gen);
        if (!f->is_tcp) sim__wake_file(peer, EPOLLOUT | EPOLLHUP);
    }
}
static void sim__file_free(sim_file *f) {
    while (f->watchers) sim__item_free(f->watchers);
    while (f->items) sim__item_free(f->items);
    if (f->kind == SIM_PIPE || f->kind == SIM_STREAM) sim__stream_close(f);
    if (f->kind == SIM_DGRAM) sim__dgram_close(f);
    while (f->n_queued > 0) sim__file_unref(f->queue[--f->n_queued]);
    f->kind = SIM_NOTHING;
}
static void sim__file_unref(sim_file *f) {
    if (--f->refs == 0) sim__file_free(f);
}
SIM_FN int sim_close(int fd) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    if (!f) return SIM__INT(close, fd, sim__error(EBADF));
    kernel.fd[fd] = NULL;
    sim__file_unref(f);
    return SIM__INT(close, fd, sim_fault(SIM_EINTR) ? sim__error(EINTR) : 0); // closed in any case
}
SIM_FN int sim_dup(int fd) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    return SIM__INT(dup, fd, f ? sim__fd_install(f) : sim__error(EBADF));
}

// ---- reading and writing

static int64_t sim__counter_read(sim_file *f, void *buf, size_t len) {
    if (len < sizeof f->count) return sim__error(EINVAL);
    if (f->count == 0) return sim__error(EAGAIN);
    memcpy(buf, &f->count, sizeof f->count);
    f->count = 0;
    sim__wake_file(f, EPOLLOUT);
    return sizeof f->count;
}
static int64_t sim__eventfd_write(sim_file *f, const void *buf, size_t len) {
    uint64_t n;
    if (len < sizeof n) return sim__error(EINVAL);
    memcpy(&n, buf, sizeof n);
    if (n > kernel.eventfd_most || f->count > kernel.eventfd_most - n) return sim__error(EAGAIN);
    f->count += n;
    sim__wake_file(f, EPOLLIN);
    return sizeof n;
}
static int64_t sim__read_once(sim_file *f, void *buf, size_t len, int flags) {
    if (f->kind == SIM_DGRAM) return sim__dgram_read(f, buf, len, flags);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    switch (f->kind) {
    case SIM_EVENTFD:
    case SIM_TIMERFD: return sim__counter_read(f, buf, len);
    case SIM_SIGNALS: return sim__signals_read(f, buf, len);
    case SIM_PIPE:
    case SIM_STREAM: return sim__stream_read(f, buf, len, flags);
    default: return sim__error(EINVAL);
    }
}
static int64_t sim__write_once(sim_file *f, const void *buf, size_t len) {
    if (f->kind == SIM_DGRAM) return sim__dgram_write(f, buf, len);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    switch (f->kind) {
    case SIM_EVENTFD: return sim__eventfd_write(f, buf, len);
    case SIM_PIPE:
    case SIM_STREAM: return sim__stream_write(f, buf, len);
    default: return sim__error(EINVAL);
    }
}
// A file that is not O_NONBLOCK blocks its thread.
static int sim__may_wait(const sim_file *f) { return errno == EAGAIN && !(f->flags & O_NONBLOCK); }
static ssize_t sim__read_with(int fd, void *buf, size_t len, int flags) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    int64_t rc = f ? sim__read_once(f, buf, len, flags) : sim__error(EBADF);
    while (rc < 0 && f && sim__may_wait(f) && !(flags & MSG_DONTWAIT)) {
        sim__sleep("read", f, SIM_NEVER);
        rc = sim__read_once(f, buf, len, flags);
    }
    return (ssize_t)sim__done(SIM_C_read, fd, rc);
}
SIM_FN ssize_t sim_read(int fd, void *buf, size_t len) { return sim__read_with(fd, buf, len, 0); }
static ssize_t sim__write_with(int fd, const void *buf, size_t len, int flags) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    int64_t rc = f ? sim__write_once(f, buf, len) : sim__error(EBADF);
    while (rc < 0 && f && sim__may_wait(f) && !(flags & MSG_DONTWAIT)) {
        sim__sleep("write", f, SIM_NEVER);
        rc = sim__write_once(f, buf, len);
    }
    return (ssize_t)sim__done(SIM_C_write, fd, rc);
}
SIM_FN ssize_t sim_write(int fd, const void *buf, size_t len) {
    return sim__write_with(fd, buf, len, 0);
}
// Sockets only.
static int sim__is_socket(int fd) {
    const sim_file *f = sim__file_at(fd);
    if (!f || f->kind == SIM_STREAM || f->kind == SIM_LISTENER || f->kind == SIM_DGRAM) return 1;
    errno = ENOTSOCK;
    return 0;
}
// Vectors: the first piece that is not empty; a short count is legal where this is used.
SIM_FN ssize_t sim_readv(int fd, const struct iovec *v, int n) {
    int i = 0;
    while (i + 1 < n && v[i].iov_len == 0) i++;
    return n > 0 ? sim_read(fd, v[i].iov_base, v[i].iov_len) : sim__error(EINVAL);
}
SIM_FN ssize_t sim_writev(int fd, const struct iovec *v, int n) {
    int i = 0;
    while (i + 1 < n && v[i].iov_len == 0) i++;
    return n > 0 ? sim_write(fd, v[i].iov_base, v[i].iov_len) : sim__error(EINVAL);
}
SIM_FN ssize_t sim_send(int fd, const void *buf, size_t len, int flags) {
    if (!(flags & MSG_NOSIGNAL)) sim_fail("send without MSG_NOSIGNAL");
    return sim__is_socket(fd) ? sim__write_with(fd, buf, len, flags) : -1;
}
SIM_FN ssize_t sim_recv(int fd, void *buf, size_t len, int flags) {
    return sim__is_socket(fd) ? sim__read_with(fd, buf, len, flags) : -1;
}
static size_t sim__first_part(const struct msghdr *m) {
    size_t i = 0;
    while (i + 1 < m->msg_iovlen && m->msg_iov[i].iov_len == 0) i++;
    return i;
}
static sim_file *sim__dgram_for(int fd, int flags) {
    sim_file *f = sim__file_of(fd, SIM_DGRAM);
    if (f && !(flags & MSG_DONTWAIT)) sim_fail("simulation: datagrams only with MSG_DONTWAIT");
    return f;
}
SIM_FN ssize_t sim_recvmsg(int fd, struct msghdr *m, int flags) {
    size_t i = sim__first_part(m);
    sim_file *f = sim__dgram_for(fd, flags);
    if (f) {
        sim_point();
        f = sim__file_of(fd, SIM_DGRAM);
        int64_t rc = f ? sim__dgram_recv(f, m, flags) : sim__error(EBADF);
        return (ssize_t)sim__done(SIM_C_recvmsg, fd, rc);
    }
    m->msg_namelen = 0;
    m->msg_controllen = 0;
    m->msg_flags = 0;
    return m->msg_iovlen > 0
               ? sim_recv(fd, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len, flags)
               : sim__error(EINVAL);
}
SIM_FN ssize_t sim_sendmsg(int fd, const struct msghdr *m, int flags) {
    size_t i = sim__first_part(m);
    sim_file *f = sim__dgram_for(fd, flags);
    if (f) {
        sim_point();
        f = sim__file_of(fd, SIM_DGRAM);
        int64_t rc = f ? sim__dgram_send(f, m) : sim__error(EBADF);
        return (ssize_t)sim__done(SIM_C_sendmsg, fd, rc);
    }
    return m->msg_iovlen > 0
               ? sim_send(fd, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len, flags)
               : sim__error(EINVAL);
}
// An error after the first message ends the call with the number of messages. The error itself is
// lost, unless it is found again.
SIM_FN int sim_recvmmsg(int fd, struct mmsghdr *v, unsigned n, int flags, struct timespec *t) {
    unsigned i = 0;
    ssize_t rc = 0;
    if (t) sim_fail("simulation: recvmmsg without a time limit");
    if (kernel.is_old) return SIM__INT(recvmmsg, fd, sim__error(ENOSYS));
    for (; i < n && rc >= 0; i++) {
        rc = sim_recvmsg(fd, &v[i].msg_hdr, flags);
        if (rc < 0) break;
        v[i].msg_len = (unsigned)rc;
    }
    return SIM__INT(recvmmsg, fd, i > 0 || n == 0 ? (int)i : -1);
}
SIM_FN int sim_sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags) {
    unsigned i = 0;
    ssize_t rc = 0;
    if (kernel.is_old) return SIM__INT(sendmmsg, fd, sim__error(ENOSYS));
    for (; i < n && rc >= 0; i++) {
        rc = sim_sendmsg(fd, &v[i].msg_hdr, flags);
        if (rc < 0) break;
        v[i].msg_len = (unsigned)rc;
    }
    return SIM__INT(sendmmsg, fd, i > 0 || n == 0 ? (int)i : -1);
}

// ---- splice, sendfile

static int sim__can_splice(const sim_file *f, int is_write) {
    if (f->kind == SIM_PIPE) return 1;
    return f->kind == SIM_STREAM && !(kernel.splices_off >> is_write & 1);
}
// Takes from one file only what the other one has accepted. A pipe that has bytes, or room, never
// gives EAGAIN.
static int64_t sim__splice_bytes(sim_file *from, sim_file *to, size_t len) {
    unsigned char buf[SIM_BUFFER];
    uint32_t rate = sim.rate[SIM_AGAIN];
    if (from->kind == SIM_STREAM && from->arrived && sim__says_again(from, EPOLLIN))
        return sim__error(EAGAIN);
    if (to->kind == SIM_STREAM && sim__says_again(to, EPOLLOUT)) {
        to->wants_room = 1;
        return sim__error(EAGAIN);
    }
    sim.rate[SIM_AGAIN] = 0;
    int64_t n = sim__stream_read(from, buf, len < sizeof buf ? len : sizeof buf, MSG_PEEK);
    if (n > 0) n = sim__stream_write(to, buf, (size_t)n);
    if (n > 0) sim__stream_drop(from, (uint32_t)n);
    sim.rate[SIM_AGAIN] = rate;
    return n;
}
static int64_t sim__splice(sim_file *from, sim_file *to, size_t len) {
    if (!from || !to) return sim__error(EBADF);
    if (from == to || (from->kind != SIM_PIPE && to->kind != SIM_PIPE)) return sim__error(EINVAL);
    if (!sim__can_splice(from, 0) || !sim__can_splice(to, 1)) return sim__error(EINVAL);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    int64_t n = sim__splice_bytes(from, to, len);
    if (n < 0 && errno == EAGAIN && !(from->flags & to->flags & O_NONBLOCK))
        sim_fail("a splice that blocks");
    return n;
}
SIM_FN ssize_t sim_splice(int from, off_t *from_at, int to, off_t *to_at, size_t len,
                          unsigned flags) {
    sim_point();
    if (from_at || to_at || !(flags & SPLICE_F_NONBLOCK))
        sim_fail("simulation: splice without offsets, and without waiting");
    int64_t rc = sim__splice(sim__file_at(from), sim__file_at(to), len);
    return (ssize_t)sim__done(SIM_C_splice, from, rc);
}
static int64_t sim__sendfile(sim_file *to, const sim_file *file, off_t *at, size_t len) {
    if (!to || !file) return sim__error(EBADF);
    if (file->kind != SIM_STORED || (to->kind != SIM_STREAM && to->kind != SIM_PIPE))
        return sim__error(EINVAL);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    const sim_path *p = &kernel.path[file->path];
    size_t there = *at < p->len ? (size_t)(p->len - *at) : 0;
    if (there == 0 || len == 0) return 0;
    int64_t n = sim__stream_write(to, p->byte + *at, len < there ? len : there);
    if (n > 0) *at += n;
    return n;
}
SIM_FN ssize_t sim_sendfile(int fd, int file, off_t *at, size_t len) {
    sim_point();
    int64_t rc = sim__sendfile(sim__file_at(fd), sim__file_at(file), at, len);
    return (ssize_t)sim__done(SIM_C_sendfile, fd, rc);
}

// ---- making files

SIM_FN int sim_epoll_create1(int flags) {
    (void)flags;
    sim_point();
    return SIM__INT(epoll_create1, 0, sim__fd_install(sim__file_open(SIM_EPOLL)));
}
SIM_FN int sim_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    sim_point();
    return SIM__INT(epoll_ctl, fd, sim__epoll_change(sim__file_at(ep), op, fd, ev));
}
SIM_FN int sim_epoll_wait(int ep, struct epoll_event *ev, int max, int ms) {
    return SIM__INT(epoll_wait, ep, sim__epoll_wait_ns(ep, ev, max, ms < 0 ? -1 : SIM_MS(ms)));
}
SIM_FN int sim_eventfd(unsigned count, int flags) {
    sim_point();
    if (kernel.is_old && flags) return SIM__INT(eventfd, (int)count, sim__error(EINVAL));
    sim_file *f = sim__file_open(SIM_EVENTFD);
    if (f) {
        f->count = count;
        f->flags = flags & EFD_NONBLOCK ? O_NONBLOCK : 0;
    }
    return SIM__INT(eventfd, (int)count, sim__fd_install(f));
}
SIM_FN int sim_timerfd_create(int clock, int flags) {
    sim_point();
    sim_file *f = sim__file_open(SIM_TIMERFD);
    if (f) f->flags = flags & TFD_NONBLOCK ? O_NONBLOCK : 0;
    return SIM__INT(timerfd_create, clock, sim__fd_install(f));
}
static void sim__timer_expires(void *object, uint64_t arg) {
    sim_file *f = object;
    if (f->gen != (uint32_t)(arg >> 32) || f->kind != SIM_TIMERFD || f->armed != (uint32_t)arg)
        return;
    f->count++;
    sim__wake_file(f, EPOLLIN);
}
SIM_FN int sim_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                               struct itimerspec *old) {
    (void)flags;
    (void)old;
    sim_point();
    sim_file *f = sim__file_of(fd, SIM_TIMERFD);
    if (!f) return SIM__INT(timerfd_settime, fd, sim__error(EBADF));
    int64_t in = (int64_t)t->it_value.tv_sec * 1000000000 + t->it_value.tv_nsec;
    f->count = 0;
    f->armed++;
    if (in > 0) sim__at(sim.now + in, sim__timer_expires, f, sim__for(f, f->armed));
    return SIM__INT(timerfd_settime, fd, 0);
}
static void sim__join_ends(sim_file *a, sim_file *b) {
    a->peer = b;
    b->peer = a;
}
// Leaves *out as it is if it fails.
static int sim__open_pair(int kind, int flags, int out[2]) {
    sim_file *a = sim__file_open(kind), *b = a ? sim__file_open(kind) : NULL;
    int first = sim__fd_install(a), second = first < 0 ? -1 : sim__fd_install(b);
    if (second < 0) {
        int error = errno;
        if (b) b->kind = SIM_NOTHING;
        if (first >= 0) {
            kernel.fd[first] = NULL;
            sim__file_unref(a);
        }
        return sim__error(error);
    }
    out[0] = first;
    out[1] = second;
    a->flags = b->flags = flags;
    sim__join_ends(a, b);
    a->can_read = b->can_write = 1;
    a->can_write = b->can_read = kind == SIM_STREAM;
    a->is_pair = b->is_pair = kind == SIM_DGRAM;
    return 0;
}
SIM_FN int sim_pipe2(int out[2], int flags) {
    sim_point();
    return SIM__INT(pipe, 0, sim__open_pair(SIM_PIPE, flags & O_NONBLOCK, out));
}
SIM_FN int sim_socketpair(int family, int type, int protocol, int out[2]) {
    (void)protocol;
    sim_point();
    int flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
    int rc = sim__open_pair((type & 15) == SOCK_STREAM ? SIM_STREAM : SIM_DGRAM, flags, out);
    for (int i = 0; i < 2 && rc == 0; i++)
        kernel.fd[out[i]]->is_seq = (type & 15) == SOCK_SEQPACKET;
    return SIM__INT(socketpair, family, rc);
}

// ---- TCP

SIM_FN int sim_socket(int family, int type, int protocol) {
    (void)protocol;
    sim_point();
    if (family != AF_INET) return SIM__INT(socket, family, sim__error(EAFNOSUPPORT));
    sim_file *f = sim__file_open((type & 15) == SOCK_DGRAM ? SIM_DGRAM : SIM_STREAM);
    if (f) {
        f->flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
        f->is_tcp = f->kind == SIM_STREAM;
        f->ttl = SIM_TTL;
    }
    return SIM__INT(socket, family, sim__fd_install(f));
}
static sim_file *sim__listener_at(uint16_t port) {
    for (int i = 0; i < kernel.n_files; i++)
        if (kernel.files[i].kind == SIM_LISTENER && kernel.files[i].port == port)
            return &kernel.files[i];
    return NULL;
}
// A stream or a datagram socket.
static sim_file *sim__socket_at(int fd) {
    sim_file *f = sim__file_at(fd);
    return f && (f->kind == SIM_STREAM || f->kind == SIM_DGRAM) ? f : NULL;
}
SIM_FN int sim_bind(int fd, const struct sockaddr *sa, socklen_t len) {
    sim_point();
    sim_file *f = sim__socket_at(fd);
    struct sockaddr_in in;
    if (!f || len < sizeof in) return SIM__INT(bind, fd, sim__error(f ? EINVAL : EBADF));
    memcpy(&in, sa, sizeof in);
    if (f->kind == SIM_DGRAM) return SIM__INT(bind, fd, sim__udp_bind(f, &in));
    f->port = ntohs(in.sin_port) ? ntohs(in.sin_port) : kernel.next_port++;
    return SIM__INT(bind, fd, sim__listener_at(f->port) ? sim__error(EADDRINUSE) : 0);
}
SIM_FN int sim_listen(int fd, int backlog) {
    sim_point();
    sim_file *f = sim__file_of(fd, SIM_STREAM);
    if (!f || !f->port) return SIM__INT(listen, fd, sim__error(EINVAL));
    f->kind = SIM_LISTENER;
    f->backlog = backlog < kernel.somaxconn ? backlog : kernel.somaxconn;
    return SIM__INT(listen, fd, 0);
}
// The client's first packet reaches the port. A full queue drops it; it is sent again.
static void sim__arrive_call(void *object, uint64_t arg) {
    sim_file *f = object;
    if (f->gen != (uint32_t)(arg >> 32) || f->kind != SIM_STREAM || !f->is_connecting) return;
    sim_file *l = sim__listener_at(f->peer_port), *s = NULL;
    if (l && l->n_queued >= l->backlog) {
        sim__at(sim.now + SIM_MS(200), sim__arrive_call, f, arg);
        return;
    }
    if (l) s = sim__file_open(SIM_STREAM);
    if (!s) {
        sim__deliver(f, sim__arrive_reset, sim__for(f, ECONNREFUSED));
        return;
    }
    s->is_tcp = s->can_read = s->can_write = f->can_read = f->can_write = 1;
    s->refs = 1; // the queue's
    s->port = l->port;
    s->peer_port = f->port;
    sim__join_ends(s, f);
    s->is_joined = f->is_joined = 1;
    f->is_connecting = 0;
    l->queue[l->n_queued++] = s;
    sim__wake_file(l, EPOLLIN);
    sim__wake_file(f, EPOLLOUT);
}
// A socket stays in its attempt until a second call has returned the result.
static int sim__connect_again(sim_file *f) {
    int error = f->error ? f->error : ECONNABORTED; // another call has received it
    if (f->is_connecting) return sim__error(EALREADY);
    f->is_attempt = 0;
    if (f->is_joined && !f->error) return 0;
    f->error = 0;
    return sim__error(error);
}
SIM_FN int sim_connect(int fd, const struct sockaddr *sa, socklen_t len) {
    sim_point();
    sim_file *f = sim__socket_at(fd);
    struct sockaddr_in in;
    if (!f || len < sizeof in) return SIM__INT(connect, fd, sim__error(f ? EINVAL : EBADF));
    memcpy(&in, sa, sizeof in);
    if (f->kind == SIM_DGRAM) return SIM__INT(connect, fd, sim__udp_connect(f, &in));
    if (f->is_attempt) return SIM__INT(connect, fd, sim__connect_again(f));
    if (f->is_joined) return SIM__INT(connect, fd, sim__error(EISCONN));
    f->peer_port = ntohs(in.sin_port);
    if (!f->port) f->port = kernel.next_port++;
    f->is_connecting = f->is_attempt = 1;
    int64_t delay = sim_fault(SIM_LATENCY) ? 1 + (int64_t)sim_below(1u << kernel.latency_bits)
                    : sim_below(2)         ? 20000
                                           : 0;
    sim__at(sim.now + delay, sim__arrive_call, f, sim__for(f, 0));
    return SIM__INT(connect, fd, sim__error(sim_fault(SIM_EINTR) ? EINTR : EINPROGRESS));
}
static sim_file *sim__dequeue(sim_file *l) {
    sim_file *s = l->queue[0];
    memmove(l->queue, l->queue + 1, (size_t)--l->n_queued * sizeof l->queue[0]);
    return s;
}
static int sim__accept_once(sim_file *l, int flags) {
    if (!l) return sim__error(EBADF);
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    if (l->n_queued == 0 || sim__says_again(l, EPOLLIN)) return sim__error(EAGAIN);
    if (sim_fault(SIM_ABORTED)) {
        sim_file *s = sim__dequeue(l);
        sim__reset_both(s, ECONNRESET);
        sim__file_unref(s);
        return sim__error(ECONNABORTED);
    }
    int fd = sim__fd_install(l->queue[0]);
    if (fd < 0) return fd; // it stays in the queue
    sim_file *s = sim__dequeue(l);
    s->refs--; // the queue's
    s->flags = flags & SOCK_NONBLOCK ? O_NONBLOCK : 0;
    return fd;
}
SIM_FN int sim_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags) {
    (void)sa;
    (void)len;
    sim_point();
    if (kernel.is_old && flags) return SIM__INT(accept4, fd, sim__error(ENOSYS));
    return SIM__INT(accept4, fd, sim__accept_once(sim__file_of(fd, SIM_LISTENER), flags));
}
#define sim_accept(fd_, sa_, len_) sim_accept4(fd_, sa_, len_, 0)
SIM_FN int sim_shutdown(int fd, int how) {
    sim_point();
    sim_file *f = sim__file_of(fd, SIM_STREAM);
    if (!f) return SIM__INT(shutdown, fd, sim__error(sim__file_at(fd) ? ENOTSOCK : EBADF));
    if (!f->peer) return SIM__INT(shutdown, fd, sim__error(ENOTCONN));
    if (how == SHUT_WR || how == SHUT_RDWR) sim__send_end(f);
    if (how == SHUT_RD || how == SHUT_RDWR) sim__arrive_end(f, f->gen);
    return SIM__INT(shutdown, fd, 0);
}
static int sim__name(int fd, struct sockaddr *sa, socklen_t *len, int is_peer) {
    sim_file *f = sim__file_at(fd);
    struct sockaddr_in in;
    if (!f) return sim__error(EBADF);
    int has_peer = f->kind == SIM_DGRAM ? f->peer_port != 0
                 : f->is_tcp            ? f->is_joined
                                        : f->peer != NULL;
    if (is_peer && !has_peer)
        return sim__error(ENOTCONN);
    memset(&in, 0, sizeof in);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(is_peer ? f->peer_port : f->port);
    memcpy(sa, &in, *len < sizeof in ? *len : sizeof in);
    *len = sizeof in;
    return 0;
}
SIM_FN int sim_getsockname(int fd, struct sockaddr *sa, socklen_t *len) {
    sim_point();
    return SIM__INT(getsockname, fd, sim__name(fd, sa, len, 0));
}
SIM_FN int sim_getpeername(int fd, struct sockaddr *sa, socklen_t *len) {
    sim_point();
    return SIM__INT(getpeername, fd, sim__name(fd, sa, len, 1));
}
static void sim__ip_option(sim_file *f, int name, const void *value) {
    int v;
    memcpy(&v, value, sizeof v);
    if (name == IP_TOS) f->tos = v;
    if (name == IP_TTL) f->ttl = v;
    for (int i = 0; i < 3; i++)
        if (name == sim__info_options[i]) f->wants_info[i] = v;
}
SIM_FN int sim_setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    struct linger l;
    if (f && level == SOL_SOCKET && name == SO_LINGER && len == sizeof l) {
        memcpy(&l, value, sizeof l);
        f->is_lingering_off = l.l_onoff && l.l_linger == 0;
    }
    if (f && level == IPPROTO_IP && len == sizeof(int)) sim__ip_option(f, name, value);
    return SIM__INT(setsockopt, fd, f ? 0 : sim__error(EBADF));
}
SIM_FN int sim_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    int v = 0;
    if (!f) return SIM__INT(getsockopt, fd, sim__error(EBADF));
    if (level != SOL_SOCKET || !sim__is_socket(fd))
        return SIM__INT(getsockopt, fd, sim__error(ENOTSOCK));
    if (name == SO_TYPE)
        v = f->is_seq ? SOCK_SEQPACKET : f->kind == SIM_DGRAM ? SOCK_DGRAM : SOCK_STREAM;
    int is_udp = f->kind == SIM_DGRAM && !f->is_pair;
    if (name == SO_DOMAIN) v = f->is_tcp || is_udp ? AF_INET : AF_UNIX;
    if (name == SO_PROTOCOL) v = f->is_tcp ? IPPROTO_TCP : is_udp ? IPPROTO_UDP : 0;
    if (name == SO_ERROR) {
        v = f->error;
        f->error = 0;
    }
    memcpy(value, &v, *len < sizeof v ? *len : sizeof v);
    return SIM__INT(getsockopt, fd, 0);
}

// ---- small calls

SIM_FN int sim_fcntl(int fd, int command, ...) {
    va_list ap;
    sim_point();
    sim_file *f = sim__file_at(fd);
    if (!f) return SIM__INT(fcntl, fd, sim__error(EBADF));
    if (command == F_GETFL) return SIM__INT(fcntl, fd, f->flags | O_RDWR);
    if (command == F_DUPFD_CLOEXEC) return SIM__INT(fcntl, fd, sim__fd_install(f));
    va_start(ap, command);
    if (command == F_SETFL) f->flags = va_arg(ap, int) & O_NONBLOCK;
    va_end(ap);
    return SIM__INT(fcntl, fd, 0);
}
SIM_FN int sim_fstat(int fd, struct stat *st) {
    sim_point();
    sim_file *f = sim__file_at(fd);
    memset(st, 0, sizeof *st);
    if (!f) return sim__error(EBADF);
    st->st_mode = f->kind == SIM_PIPE ? S_IFIFO : f->kind == SIM_STORED ? S_IFREG : 0;
    if (f->kind == SIM_STORED) st->st_size = kernel.path[f->path].len;
    return 0;
}
SIM_FN int sim_poll(struct pollfd *p, nfds_t n, int timeout) {
    int ready = 0;
    sim_point();
    if (timeout != 0) sim_fail("simulation: poll() only without waiting");
    if (sim_fault(SIM_EINTR)) return SIM__INT(poll, (int64_t)n, sim__error(EINTR));
    for (nfds_t i = 0; i < n; i++) { // the bits of poll and epoll are the same
        sim_file *f = sim__file_at(p[i].fd);
        uint32_t m = f ? sim__poll_and_note(f) : POLLNVAL;
        p[i].revents =
            (short)(m & ((uint16_t)p[i].events | (uint32_t)(POLLERR | POLLHUP | POLLNVAL)));
        ready += p[i].revents != 0;
    }
    return SIM__INT(poll, (int64_t)n, ready);
}
SIM_FN int sim_clock_gettime(clockid_t clock, struct timespec *t) {
    (void)clock;
    sim_point();
    t->tv_sec = (time_t)(sim.now / 1000000000);
    t->tv_nsec = (long)(sim.now % 1000000000);
    return 0;
}
SIM_FN void *sim_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) {
    (void)at;
    (void)prot;
    (void)flags;
    (void)fd;
    (void)offset;
    sim_point();
    void *p = sim_fault(SIM_NOMEM) ? NULL : sim__alloc(bytes);
    if (!p) errno = ENOMEM;
    sim__done(SIM_C_mmap, (int64_t)bytes, p ? 0 : -1);
    return p ? p : MAP_FAILED;
}
SIM_FN int sim_munmap(void *p, size_t bytes) {
    sim_point();
    sim__free(p, bytes);
    return SIM__INT(munmap, (int64_t)bytes, 0);
}
// There is /dev/null, for children alone, and no other file that is opened so.
SIM_FN int sim_open(const char *path, int flags, ...) {
    (void)flags;
    if (strcmp(path, "/dev/null") != 0) return sim__error(ENOENT);
    sim_point();
    return SIM__INT(openat, 0, sim__fd_install(sim__file_open(SIM_NULL)));
}
SIM_FN int sim_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    (void)size;
    (void)set;
    return sim__error(ENOSYS);
}
#define sim_madvise madvise
#define VOLT_IS_MAPPED(p_, n_) 1 // a simulated program has no unmapped memory
#define sim_mincore mincore
#define sim_isatty(fd_) ((void)(fd_), 0)
SIM_FN int sim_ioctl(int fd, unsigned long command, ...) {
    (void)fd;
    (void)command;
    return sim__error(ENOTTY);
}
#define sim_pthread_setcancelstate(state_, old_) ((void)(state_), *(old_) = 0)

// ---- a disk: some files of a few bytes; the calling thread waits

static void sim__wait_for_disk(void) {
    if (sim_below(2)) sim__sleep("disk", &kernel.path, sim.now + 1 + sim_below(1u << 20));
}
static sim_path *sim__path_at(const char *path) {
    char *end = NULL;
    if (path[0] != '/' || path[1] < '0' || path[1] > '9') return NULL;
    unsigned long i = strtoul(path + 1, &end, 10);
    return i < SIM_PATHS && *end == 0 ? &kernel.path[i] : NULL;
}
// 0, or -1 with errno: of an interrupted or a failing disk.
static int sim__disk_fails(void) {
    sim__wait_for_disk();
    if (sim_fault(SIM_EINTR)) return sim__error(EINTR);
    return sim_fault(SIM_DISK) ? sim__error(sim_below(2) ? EIO : ENOSPC) : 0;
}
SIM_FN int sim_openat(int dir, const char *path, int flags, ...) {
    sim_path *p = sim__path_at(path);
    sim_point();
    if (sim__disk_fails() < 0) return SIM__INT(openat, dir, -1);
    if (!p || (!p->exists && !(flags & O_CREAT))) return SIM__INT(openat, dir, sim__error(ENOENT));
    sim_file *f = sim__file_open(SIM_STORED);
    int fd = sim__fd_install(f);
    if (fd < 0) return SIM__INT(openat, dir, -1);
    f->path = (int)(p - kernel.path);
    p->exists = 1;
    if (flags & O_TRUNC) p->len = 0;
    return SIM__INT(openat, dir, fd);
}
static sim_path *sim__path_of(int fd) {
    sim_file *f = sim__file_of(fd, SIM_STORED);
    return f ? &kernel.path[f->path] : NULL;
}
static int64_t sim__copy_out(const sim_path *p, void *buf, size_t n, off_t at) {
    size_t there = at < p->len ? (size_t)(p->len - at) : 0, got = n < there ? n : there;
    if (got > 1 && sim_fault(SIM_SHORT)) got = 1 + sim_below((uint32_t)got - 1);
    if (got > 0) memcpy(buf, p->byte + at, got);
    return (int64_t)got;
}
static int64_t sim__pread(const sim_path *p, void *buf, size_t n, off_t at) {
    if (!p) return sim__error(EBADF);
    return sim__disk_fails() < 0 ? -1 : sim__copy_out(p, buf, n, at);
}
// With RWF_NOWAIT: half of the reads find their bytes in memory, and the disk takes no part.
static int64_t sim__preadv2(const sim_path *p, const struct iovec *v, off_t at) {
    if (kernel.is_old) return sim__error(ENOSYS);
    if (!p) return sim__error(EBADF);
    return sim_below(2) ? sim__error(EAGAIN) : sim__copy_out(p, v->iov_base, v->iov_len, at);
}
static int sim__ftruncate(sim_path *p, off_t len) {
    if (!p) return sim__error(EBADF);
    if (sim__disk_fails() < 0) return -1;
    if (len > SIM_PATH_BYTES) return sim__error(EFBIG);
    if (len > p->len) memset(p->byte + p->len, 0, (size_t)(len - p->len));
    p->len = (int)len;
    return 0;
}
static int64_t sim__pwrite(sim_path *p, const void *buf, size_t n, off_t at) {
    if (!p) return sim__error(EBADF);
    if (sim__disk_fails() < 0) return -1;
    if (at + (off_t)n > SIM_PATH_BYTES) return sim__error(ENOSPC);
    if (n > 1 && sim_fault(SIM_SHORT)) n = 1 + sim_below((uint32_t)n - 1);
    if (at > p->len) memset(p->byte + p->len, 0, (size_t)(at - p->len));
    memcpy(p->byte + at, buf, n);
    if (at + (int)n > p->len) p->len = (int)at + (int)n;
    return (int64_t)n;
}
SIM_FN ssize_t sim_pread(int fd, void *buf, size_t n, off_t at) {
    sim_point();
    return (ssize_t)sim__done(SIM_C_pread, fd, sim__pread(sim__path_of(fd), buf, n, at));
}
SIM_FN ssize_t sim_pwrite(int fd, const void *buf, size_t n, off_t at) {
    sim_point();
    return (ssize_t)sim__done(SIM_C_pwrite, fd, sim__pwrite(sim__path_of(fd), buf, n, at));
}
SIM_FN ssize_t sim_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags) {
    sim_point();
    if (n != 1 || !(flags & RWF_NOWAIT)) sim_fail("simulation: preadv2 of one part, no wait");
    return (ssize_t)sim__done(SIM_C_preadv2, fd, sim__preadv2(sim__path_of(fd), v, at));
}
SIM_FN int sim_ftruncate(int fd, off_t len) {
    sim_point();
    return SIM__INT(ftruncate, fd, sim__ftruncate(sim__path_of(fd), len));
}
SIM_FN int sim_fsync(int fd) {
    sim_point();
    return SIM__INT(fsync, fd, sim__path_of(fd) ? sim__disk_fails() : sim__error(EBADF));
}
#define sim_fdatasync sim_fsync
// Opens a file of the disk that holds these bytes, all of them cached: no thread waits.
SIM_FN int sim_open_cached(int path, const unsigned char *bytes, int n) {
    sim_file *f = sim__file_open(SIM_STORED);
    sim_point();
    int fd = sim__fd_install(f);
    if (fd < 0) return SIM__INT(openat, path, fd);
    f->path = path;
    kernel.path[path].exists = 1;
    kernel.path[path].len = n;
    memcpy(kernel.path[path].byte, bytes, (size_t)n);
    return SIM__INT(openat, path, fd);
}
SIM_FN int sim_stat(const char *path, struct stat *out) {
    const sim_path *p = sim__path_at(path);
    sim_point();
    if (sim__disk_fails() < 0) return SIM__INT(stat, 0, -1);
    if (!p || !p->exists) return SIM__INT(stat, 0, sim__error(ENOENT));
    memset(out, 0, sizeof *out);
    out->st_size = p->len;
    return SIM__INT(stat, 0, 0);
}

// ---- names: "0110" has four addresses of this machine; a 1 stands for the requested port, a 0 for
// a port where no socket listens

enum { SIM_DEAD_PORT = 1 };
typedef struct sim_named {
    struct addrinfo info;
    struct sockaddr_in in;
} sim_named;
static struct addrinfo *sim__list_addresses(const char *host, const char *service) {
    struct addrinfo *list = NULL;
    for (size_t i = strlen(host); i-- > 0;) {
        sim_named *one = calloc(1, sizeof *one);
        if (!one) abort();
        one->in.sin_family = AF_INET;
        one->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        one->in.sin_port = htons((uint16_t)(host[i] == '1' ? atoi(service) : SIM_DEAD_PORT));
        one->info.ai_addr = (struct sockaddr *)&one->in;
        one->info.ai_addrlen = sizeof one->in;
        one->info.ai_next = list;
        list = &one->info;
    }
    return list;
}
static int sim__resolve(const char *host, const char *service, struct addrinfo **list) {
    static const int errors[] = {EAI_AGAIN, EAI_NONAME, EAI_MEMORY, EAI_SYSTEM};
    if (sim_below(4)) sim__sleep("name", &kernel.n_resolving, sim.now + 1 + sim_below(1u << 22));
    if (sim_fault(SIM_NAMES)) {
        errno = EMFILE;
        return errors[sim_below(4)];
    }
    *list = sim__list_addresses(host, service);
    kernel.n_lists += *list != NULL;
    return 0;
}
SIM_FN int sim_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                           struct addrinfo **list) {
    (void)hints;
    sim_point();
    if (++kernel.n_resolving > kernel.most_resolving) kernel.most_resolving = kernel.n_resolving;
    int rc = sim__resolve(host, service, list);
    kernel.n_resolving--;
    sim__done(SIM_C_getaddrinfo, rc, 0);
    return rc;
}
SIM_FN void sim_freeaddrinfo(struct addrinfo *list) {
    kernel.n_lists -= list != NULL;
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list); // the first member of a sim_named
        list = next;
    }
}

// ---- further small calls

SIM_FN long sim_sysconf(int name) { return name == _SC_PAGESIZE ? 4096 : 4; }
SIM_FN int sim_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *t) {
    (void)set;
    (void)info;
    (void)t;
    return sim__error(EAGAIN);
}
SIM_FN int sim_pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    (void)how;
    (void)set;
    if (old) sigemptyset(old);
    return 0;
}
SIM_FN int sim_pthread_attr_init(pthread_attr_t *a) {
    memset(a, 0, sizeof *a);
    return 0;
}
SIM_FN int sim_pthread_attr_setstacksize(pthread_attr_t *a, size_t n) {
    (void)a;
    return n >= 16384 ? 0 : EINVAL;
}
SIM_FN int sim_pthread_attr_destroy(pthread_attr_t *a) {
    (void)a;
    return 0;
}
SIM_FN int sim_pthread_setname_np(pthread_t t, const char *name) {
    (void)t;
    return strlen(name) < 16 ? 0 : ERANGE;
}

// ---- calls that this kernel does not have: directories, interfaces, terminals

#define sim_rename(from_, to_) ((void)(from_), (void)(to_), sim__error(ENOSYS))
#define sim_unlink(path_) ((void)(path_), sim__error(ENOSYS))
#define sim_mkdir(path_, mode_) ((void)(path_), (void)(mode_), sim__error(ENOSYS))
#define sim_rmdir(path_) ((void)(path_), sim__error(ENOSYS))
#define sim_chmod(path_, mode_) ((void)(path_), (void)(mode_), sim__error(ENOSYS))
#define sim_fchmod(fd_, mode_) ((void)(fd_), (void)(mode_), sim__error(ENOSYS))
#define sim_prctl(...) sim__error(ENOSYS)
#define sim_chown(path_, uid_, gid_) ((void)(path_), (void)(uid_), (void)(gid_), sim__error(ENOSYS))
#define sim_flock(fd_, how_) ((void)(fd_), (void)(how_), sim__error(ENOSYS))
#define sim_timerfd_gettime(fd_, left_) ((void)(fd_), (void)(left_), sim__error(EINVAL))
#define sim_tcgetattr(fd_, out_) ((void)(fd_), (void)(out_), sim__error(ENOTTY))
#define sim_tcsetattr(fd_, how_, in_) ((void)(fd_), (void)(how_), (void)(in_), sim__error(ENOTTY))
#define sim_cfsetispeed cfsetispeed // these only change the struct
#define sim_cfsetospeed cfsetospeed
#define sim_cfgetospeed cfgetospeed
SIM_FN unsigned sim_if_nametoindex(const char *name) {
    (void)name;
    errno = ENODEV;
    return 0;
}
SIM_FN char *sim_if_indextoname(unsigned index, char *name) {
    (void)index;
    (void)name;
    errno = ENXIO;
    return NULL;
}

#include "children.h"

// ---- threads and futexes

SIM_FN int sim_pthread_create(pthread_t *out, void *(*fn)(void *), void *arg) {
    sim_point();
    sim_thread *t = sim_fault(SIM_THREAD) ? NULL : sim__thread_create(fn, arg);
    if (t) *out = (pthread_t)t->id;
    sim__done(SIM_C_pthread_create, t ? t->id : -1, 0);
    return t ? 0 : EAGAIN;
}
SIM_FN int sim_pthread_join(pthread_t id) {
    sim_point();
    sim__thread_join(&sim.threads[(int)id]);
    return SIM__INT(pthread_join, (int64_t)id, 0);
}
static int sim__futex_wait(const uint32_t *word, uint32_t expected, const int64_t *ts) {
    int64_t deadline = SIM_NEVER;
    if (ts) deadline = ts[0] > SIM_NEVER / 1000000000 - 1 ? SIM_NEVER : ts[0] * 1000000000 + ts[1];
    if (sim_fault(SIM_FUTEX)) return sim_below(2) ? 0 : sim__error(EINTR);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) != expected) return sim__error(EAGAIN);
    return sim__sleep("futex wait", word, deadline) ? sim__error(ETIMEDOUT) : 0;
}
static int64_t sim__futex(va_list ap) {
    uint32_t *word = va_arg(ap, uint32_t *);
    int op = va_arg(ap, int);
    if ((op & 127) == 1) // FUTEX_WAKE
        return sim__done(SIM_C_futex_wake, 0, sim__wake_on(word, va_arg(ap, int)));
    uint32_t expected = va_arg(ap, uint32_t);
    return sim__done(SIM_C_futex_wait, expected,
                     sim__futex_wait(word, expected, va_arg(ap, const int64_t *)));
}
static int64_t sim__epoll_pwait2(va_list ap) {
    int ep = va_arg(ap, int);
    struct epoll_event *ev = va_arg(ap, struct epoll_event *);
    int max = va_arg(ap, int);
    const int64_t *ts = va_arg(ap, const int64_t *);
    if (kernel.is_old) return sim__error(ENOSYS);
    return sim__done(SIM_C_epoll_wait, ep,
                     sim__epoll_wait_ns(ep, ev, max, ts[0] * 1000000000 + ts[1]));
}
SIM_FN long sim_syscall(long number, ...) {
    va_list ap;
    int64_t rc = sim__error(ENOSYS);
    va_start(ap, number);
    sim_point();
    if (number == SYS_futex) rc = sim__futex(ap);
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) rc = sim__epoll_pwait2(ap);
#endif
    if (number == SYS_pidfd_open) {
        int pid = va_arg(ap, int);
        rc = sim__done(SIM_C_pidfd_open, pid, sim__pidfd_open(pid));
    }
    if (number == SYS_pidfd_send_signal) {
        int fd = va_arg(ap, int), signal = va_arg(ap, int);
        rc = sim__done(SIM_C_pidfd_send, fd, sim__pidfd_send(fd, signal));
    }
    if (number == SYS_getrandom) {
        uint64_t x = sim_random();
        memcpy(va_arg(ap, void *), &x, sizeof x);
        rc = sizeof x;
    }
    va_end(ap);
    return (long)rc;
}

// ---- a run

static void sim__kernel_calm(void) { kernel.fd_limit = SIM_FDS; }
static void sim__kernel_reset(void) {
    static const uint32_t caps[] = {1, 7, 64, 512, 4096, 4096};
    static const uint64_t most[] = {1, 3, UINT64_MAX - 1, UINT64_MAX - 1};
    static const int limits[] = {40, 90, SIM_FDS, SIM_FDS};
    static const uint32_t queues[] = {1, 3, 16, 16};
    sim_file *files = kernel.files;
    unsigned char *buffers = kernel.buffers;
    for (int i = 0; i < kernel.n_files; i++) files[i].kind = SIM_NOTHING;
    memset(&kernel, 0, sizeof kernel);
    kernel.files = files ? files : sim__reserve(sizeof(sim_file) * SIM_FILES);
    kernel.buffers = buffers ? buffers : sim__reserve((size_t)SIM_FILES * SIM_BUFFER);
    for (int i = 0; i < SIM_ITEMS; i++) {
        kernel.items[i].next_ready = kernel.free_item;
        kernel.free_item = &kernel.items[i];
    }
    for (int i = 0; i < SIM_PACKETS; i++) sim__packet_free(&kernel.packet[i]);
    kernel.cap = caps[sim_below(6)];
    kernel.eventfd_most = most[sim_below(4)];
    kernel.fd_limit = limits[sim_below(4)];
    if (sim.opt.is_calm) kernel.fd_limit = SIM_FDS;
    kernel.somaxconn = sim_below(3) ? 128 : 1 + (int)sim_below(3);
    kernel.is_old = sim_below(4) == 0;
    kernel.is_shuffled = (int)sim_below(2);
    kernel.latency_bits = 24;
    kernel.most_packets = queues[sim_below(4)];
    kernel.most_out = queues[sim_below(4)];
    kernel.splices_off = sim_below(3) ? 0 : 1 + sim_below(3);
    kernel.next_port = 10000;
    sim.on_calm = sim__kernel_calm;
}
// Nothing may be left open.
static void sim__kernel_check(void) {
    for (int i = 0; i < SIM_FDS && !sim.is_failed; i++)
        if (kernel.fd[i]) sim_fail("descriptor %d left open", i);
    for (int i = 0; i < kernel.n_children && !sim.is_failed; i++)
        if (kernel.child[i].state) sim_fail("child %d not collected", SIM_FIRST_PID + i);
    if (kernel.n_lists != 0 && !sim.is_failed) sim_fail("addresses of a name not freed");
}

#endif // VOLT_SIM_KERNEL_H
