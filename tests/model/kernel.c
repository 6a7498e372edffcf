// SPDX-License-Identifier: MIT OR 0BSD
// The world outside volt.h, second part: eventfd, epoll and a one-shot timerfd, as much of them as
// the runtime uses to park its workers.
//
//   eventfd   a counter. write adds, and releases; read takes all, and acquires what was written.
//   epoll     level-triggered: reports while ready. EPOLLET: once per edge. A worker in epoll_wait
//             is a thread asleep. Its return hands over no happens-before: a thread that needs
//             what a waker wrote reads the eventfd, or a word. (The kernel's locks would hand over
//             more.)
//             EPOLLEXCLUSIVE: the wake-up goes through the epolls in the order of registration,
//             marks each as ready, and stops at the first in which a thread sleeps.
//   timerfd   armed, it expires at any moment: a step of the environment. After .early_timers
//             expiries only when no thread can move; else time would outrun every thread.
//
// Calls conflict, so that their every order is explored, if they are about the same epoll: it, or
// an eventfd registered there alone. All others conflict with every call.
#include "internal.h"
#include "world.h"

enum { MAX_FILES = 24, MAX_ITEMS = 24, MAX_EXPIRIES = 256, FIRST_FD = 100 };
typedef enum file_kind { FREE, EVENTFD, TIMERFD, EPOLL, PLAIN_FD } file_kind;
typedef struct file {
    file_kind kind;
    uint64_t count;      // eventfd; timerfd: expiries
    uint32_t n_settings; // timerfd: so often set
    view message;        // eventfd: what its writers knew
} file;
typedef struct item {           // a registration; in the order of EPOLL_CTL_ADD
    uint8_t is_used, is_listed; // listed: an edge has come that was not reported
    int ep, fd;
    uint32_t edges; // PLAIN_FD: not yet reported
    struct epoll_event ev;
} item;
static file files[MAX_FILES];
static item items[MAX_ITEMS];
static int n_files, n_items;
// Each setting of a timer expires once, in their order; one that has been replaced without effect.
static struct {
    int file;
    uint32_t setting;
} expiries[MAX_EXPIRIES];
static int n_expiries, n_expired, n_early;
int world_hit_timer_bound;

void kernel_reset(void) {
    memset(items, 0, (size_t)n_items * sizeof items[0]);
    for (int i = 0; i < n_files; i++) files[i].kind = FREE;
    n_files = n_items = 0;
    n_expiries = n_expired = n_early = 0;
}
int vmc_unmodelled(const char *call, ...) { vmc_fail("system call `%s` is not modelled", call); }
int vmc_no_effect(const char *call, ...) {
    (void)call;
    return 0;
}

static int new_file(file_kind kind) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL});
    note_event(20);
    if (n_files == MAX_FILES) vmc_fail("limit: more than %d descriptors", MAX_FILES);
    file *f = &files[n_files++];
    f->kind = kind;
    f->count = f->n_settings = 0;
    memset(&f->message, 0, offsetof(view, newest));
    return FIRST_FD + n_files - 1;
}
const void *kernel_object(int fd) {
    int ep = -1, n_epolls = 0;
    if (fd < FIRST_FD || fd >= FIRST_FD + n_files) return NULL;
    file_kind kind = files[fd - FIRST_FD].kind;
    if (kind == EPOLL) return &files[fd - FIRST_FD];
    for (int i = 0; i < n_items; i++)
        if (items[i].is_used && items[i].fd == fd) {
            ep = items[i].ep;
            n_epolls++;
        }
    return kind == EVENTFD && n_epolls == 1 ? &files[ep - FIRST_FD] : NULL;
}
static file *file_of(int fd, const char *call) {
    int i = fd - FIRST_FD;
    if (i < 0 || i >= n_files || files[i].kind == FREE) vmc_fail("%s of a closed descriptor", call);
    return &files[i];
}
int vmc_sys_eventfd(unsigned initial, int flags) {
    (void)flags;
    int fd = new_file(EVENTFD);
    files[fd - FIRST_FD].count = initial;
    return fd;
}
int vmc_sys_epoll_create1(int flags) {
    (void)flags;
    return new_file(EPOLL);
}
int vmc_sys_timerfd_create(int clock, int flags) {
    (void)clock;
    (void)flags;
    return new_file(TIMERFD);
}
int vmc_fd(void) { return new_file(PLAIN_FD); }

// ---- readiness

static uint32_t ready_events(const item *it) {
    const file *f = &files[it->fd - FIRST_FD];
    int is_edge = (it->ev.events & (uint32_t)EPOLLET) != 0;
    if (f->kind == PLAIN_FD) return it->edges & it->ev.events;
    if (f->count == 0) return 0;
    return is_edge && !it->is_listed ? 0 : EPOLLIN & it->ev.events;
}
static thread *sleeper_in(int ep) {
    for (int i = 0; i < vm.n_threads; i++) {
        thread *t = &vm.threads[i];
        if (t->sleep == ASLEEP && !t->asleep_on && t->epoll == ep) return t;
    }
    return NULL;
}
// Something happened on fd: marks the registrations, wakes the sleepers.
static void notify(int fd, uint32_t edges) {
    for (int i = 0; i < n_items; i++) {
        item *it = &items[i];
        if (!it->is_used || it->fd != fd) continue;
        it->is_listed = 1;
        it->edges |= edges;
        thread *t = ready_events(it) ? sleeper_in(it->ep) : NULL;
        if (!t) continue;
        wake(t);
        if (it->ev.events & (uint32_t)EPOLLEXCLUSIVE) return;
    }
}
// In the order of registration; those reported by edge are done with.
static int collect(int ep, struct epoll_event *ev, int n) {
    int got = 0;
    for (int i = 0; i < n_items && got < n; i++) {
        item *it = &items[i];
        if (!it->is_used || it->ep != ep) continue;
        uint32_t events = ready_events(it);
        if (events) {
            ev[got] = it->ev;
            ev[got++].events = events;
            note_event(mix(21, (uint64_t)it->fd << 32 | events));
            TRACE("epoll %d reports fd %d, events %#x", ep, it->fd, events);
            if (it->ev.events & (uint32_t)EPOLLONESHOT) it->ev.events = EPOLLONESHOT;
        }
        it->is_listed = 0;
        it->edges = 0;
    }
    return got;
}

// ---- calls

int vmc_sys_epoll_ctl(int ep, int op_, int fd, struct epoll_event *ev) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL});
    note_event(mix(22, (uint64_t)op_));
    file_of(ep, "epoll_ctl");
    file *f = file_of(fd, "epoll_ctl");
    item *it = NULL;
    for (int i = 0; i < n_items; i++)
        if (items[i].is_used && items[i].ep == ep && items[i].fd == fd) it = &items[i];
    TRACE("epoll_ctl %d: %s fd %d", ep,
          op_ == EPOLL_CTL_ADD   ? "add"
          : op_ == EPOLL_CTL_MOD ? "mod"
                                 : "del",
          fd);
    errno = op_ == EPOLL_CTL_ADD ? EEXIST : ENOENT;
    if ((op_ == EPOLL_CTL_ADD) == (it != NULL)) return -1;
    if (op_ == EPOLL_CTL_DEL) {
        it->is_used = 0;
        return 0;
    }
    if (!it) {
        if (n_items == MAX_ITEMS) vmc_fail("limit: more than %d registrations", MAX_ITEMS);
        it = &items[n_items++];
        *it = (item){.is_used = 1, .ep = ep, .fd = fd};
    }
    it->ev = *ev;
    it->is_listed = f->count > 0; // reports what is ready already
    thread *t = ready_events(it) ? sleeper_in(ep) : NULL;
    if (t) wake(t);
    return 0;
}
int vmc_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout_ns) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL, .addr = kernel_object(ep)});
    file_of(ep, "epoll_wait");
    plain_access((uintptr_t)ev, (size_t)n * sizeof *ev, 1);
    int got = collect(ep, ev, n);
    if (got || timeout_ns == 0) {
        note_event(mix(23, (uint64_t)got));
        TRACE("epoll_wait %d: %d events", ep, got);
        return got;
    }
    self()->epoll = ep;
    fall_asleep(NULL, timeout_ns < 0 ? INT64_MAX : vm.now_ns + timeout_ns);
    self()->sleep = AWAKE;
    got = collect(ep, ev, n);
    note_event(mix(24, (uint64_t)got));
    TRACE("epoll_wait %d: wakes up, %d events", ep, got);
    return got;
}
ssize_t vmc_sys_write(int fd, const void *buf, size_t n) {
    uint64_t x;
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL, .addr = kernel_object(fd), .is_post = 1});
    file *f = file_of(fd, "write");
    if (f->kind != EVENTFD || n != sizeof x) return vmc_unmodelled("write");
    plain_access((uintptr_t)buf, n, 0);
    memcpy(&x, buf, n);
    view_join(&f->message, &self()->now);
    epoch_bump(self());
    f->count += x;
    note_event(25);
    TRACE("write to eventfd %d", fd);
    notify(fd, 0);
    return (ssize_t)n;
}
ssize_t vmc_sys_read(int fd, void *buf, size_t n) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL, .addr = kernel_object(fd)});
    file *f = file_of(fd, "read");
    if (f->kind != EVENTFD || n != sizeof f->count) return vmc_unmodelled("read");
    note_event(mix(26, f->count));
    TRACE("read of eventfd %d: %llu", fd, (unsigned long long)f->count);
    errno = EAGAIN;
    if (f->count == 0) return -1;
    plain_access((uintptr_t)buf, n, 1);
    memcpy(buf, &f->count, n);
    view_join(&self()->now, &f->message);
    f->count = 0;
    return (ssize_t)n;
}
int vmc_sys_poll(struct pollfd *p, nfds_t n, int timeout) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL, .addr = kernel_object(p->fd)});
    file *f = file_of(p->fd, "poll");
    if (f->kind != EVENTFD || n != 1 || timeout != 0) return vmc_unmodelled("poll");
    int is_ready = f->count > 0;
    note_event(mix(31, (uint64_t)is_ready));
    TRACE("poll of eventfd %d: %d", p->fd, is_ready);
    p->revents = is_ready ? POLLIN : 0;
    return is_ready;
}
int vmc_sys_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old) {
    (void)flags;
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL});
    file *f = file_of(fd, "timerfd_settime");
    if (f->kind != TIMERFD || old) return vmc_unmodelled("timerfd_settime");
    if (!t->it_value.tv_sec && !t->it_value.tv_nsec) return vmc_unmodelled("disarming a timerfd");
    if (n_expiries == MAX_EXPIRIES) vmc_fail("limit: a timer set %d times", MAX_EXPIRIES);
    f->count = 0;
    expiries[n_expiries].file = fd - FIRST_FD;
    expiries[n_expiries++].setting = ++f->n_settings;
    note_event(27);
    TRACE("timer %d armed", fd);
    return 0;
}
int vmc_sys_close(int fd) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL});
    file_of(fd, "close")->kind = FREE;
    for (int i = 0; i < n_items; i++)
        if (items[i].fd == fd || items[i].ep == fd) items[i].is_used = 0;
    note_event(28);
    TRACE("close %d", fd);
    return 0;
}
void vmc_fd_raise(int fd, uint32_t events) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_KERNEL});
    file_of(fd, "vmc_fd_raise");
    note_event(mix(29, events));
    TRACE("fd %d: events %#x", fd, events);
    notify(fd, events);
}
void *vmc_sys_mmap(void *at, size_t size, int protection, int flags, int fd, long offset) {
    (void)at, (void)protection, (void)flags, (void)fd, (void)offset;
    void *p = vmc_alloc_aligned(size, 4096);
    return memset(p, 0, size);
}
int vmc_sys_munmap(void *at, size_t size) {
    (void)size;
    vmc_free(at);
    return 0;
}

// ---- the environment: timers expire

// A timer that is set again whenever it expires would never let the others go on.
int environment_is_runnable(int others_are) {
    if (n_expired == n_expiries) return 0;
    if (!others_are || n_early < (scenario->early_timers ? scenario->early_timers : 1)) return 1;
    world_hit_timer_bound = 1;
    return 0;
}
void environment_step(int is_early) {
    file *f = &files[expiries[n_expired].file];
    int is_valid = f->kind == TIMERFD && f->n_settings == expiries[n_expired].setting;
    int fd = FIRST_FD + (int)(f - files);
    n_expired++;
    n_early += is_early;
    note_event(mix(30, (uint64_t)is_valid));
    TRACE("timer %d expires%s", fd, is_valid ? "" : ", but has been set again or closed");
    if (!is_valid) return;
    f->count++;
    notify(fd, 0);
}
