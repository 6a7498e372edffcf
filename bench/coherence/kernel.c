// SPDX-License-Identifier: MIT OR 0BSD
// The kernel of the simulated machine: eventfds, timerfds, epoll with levels, edges and exclusive
// registrations, as far as runtimes need them to park their workers. See machine.h.
#include "machine.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { FILES = 512, ITEMS = 1024, FIRST_FD = 100 };
typedef enum file_kind { CLOSED, EVENTFD, TIMERFD, EPOLL } file_kind;
typedef struct file {
    file_kind kind;
    uint64_t count;   // eventfd; timerfd: expiries
    int64_t deadline; // timerfd
} file;
typedef struct item {           // a registration, in the order in which they were made
    int is_used, is_edge;       // edge: an event since the last report
    int ep, fd;
    struct epoll_event event;
} item;
static file files[FILES];
static item items[ITEMS];
static int n_files, n_items;

static file *file_of(int fd) {
    const int i = fd - FIRST_FD;
    if (i < 0 || i >= n_files || files[i].kind == CLOSED) coherence_die("no descriptor: %d", fd);
    return &files[i];
}
static int new_file(file_kind kind) {
    int i = 0;
    while (i < n_files && files[i].kind != CLOSED) i++;
    if (i == FILES) coherence_die("more than %d descriptors", FILES);
    if (i == n_files) n_files++;
    files[i] = (file){ .kind = kind, .deadline = NEVER };
    spend(COST_CALL);
    return FIRST_FD + i;
}

// ---- epoll

static uint32_t ready_events(const item *it) {
    const int is_edge = (it->event.events & (uint32_t)EPOLLET) != 0;
    if (files[it->fd - FIRST_FD].count == 0 || (is_edge && !it->is_edge)) return 0;
    return EPOLLIN & it->event.events;
}
// Reports an event: of exclusive registrations only the first that has a sleeper is notified.
static void notify(int fd) {
    for (int i = 0; i < n_items; i++) {
        item *it = &items[i];
        if (!it->is_used || it->fd != fd) continue;
        it->is_edge = 1;
        if (!ready_events(it) || wake_on(&files[it->ep - FIRST_FD], 1) == 0) continue;
        if (it->event.events & (uint32_t)EPOLLEXCLUSIVE) return;
    }
}
static int collect(int ep, struct epoll_event *ev, int n) {
    int got = 0;
    for (int i = 0; i < n_items && got < n; i++) {
        item *it = &items[i];
        if (!it->is_used || it->ep != ep) continue;
        const uint32_t events = ready_events(it);
        it->is_edge = 0;
        if (!events) continue;
        ev[got] = it->event;
        ev[got++].events = events;
    }
    return got;
}
int coherence_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout_ns) {
    const file *f = file_of(ep);
    spend(COST_CALL);
    const int64_t until = timeout_ns < 0 ? NEVER : clock_of_this() + timeout_ns;
    int got = collect(ep, ev, n);
    while (got == 0 && timeout_ns != 0 && sleep_on(f, until)) got = collect(ep, ev, n);
    return got;
}

static item *item_of(int ep, int fd) {
    for (int i = 0; i < n_items; i++)
        if (items[i].is_used && items[i].ep == ep && items[i].fd == fd) return &items[i];
    return NULL;
}
static item *new_item(int ep, int fd) {
    int i = n_items; // behind all others: their order counts
    if (i == ITEMS) coherence_die("more than %d registrations", ITEMS);
    items[i] = (item){ .is_used = 1, .ep = ep, .fd = fd };
    n_items++;
    return &items[i];
}
int vmc_sys_epoll_ctl(int ep, int op, int fd, struct epoll_event *event) {
    item *it = item_of(ep, fd);
    spend(COST_CALL);
    errno = it ? EEXIST : ENOENT;
    if ((op == EPOLL_CTL_ADD) == (it != NULL)) return -1;
    if (op == EPOLL_CTL_DEL) {
        it->is_used = 0;
        return 0;
    }
    if (!it) it = new_item(ep, fd);
    it->event = *event;
    it->is_edge = file_of(fd)->count > 0;
    if (ready_events(it)) wake_on(file_of(ep), 1);
    return 0;
}

// ---- other calls

int vmc_sys_eventfd(unsigned initial, int flags) {
    const int fd = new_file(EVENTFD);
    (void)flags;
    file_of(fd)->count = initial;
    return fd;
}
int vmc_sys_epoll_create1(int flags) {
    (void)flags;
    return new_file(EPOLL);
}
static int64_t next_alarm = NEVER; // read at each switch
static void set_alarm(void) {
    next_alarm = NEVER;
    for (int i = 0; i < n_files; i++)
        if (files[i].kind == TIMERFD && files[i].deadline < next_alarm)
            next_alarm = files[i].deadline;
}
int vmc_sys_timerfd_create(int clock, int flags) {
    (void)clock, (void)flags;
    return new_file(TIMERFD);
}
int vmc_sys_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old) {
    file *f = file_of(fd);
    const int64_t left = (int64_t)t->it_value.tv_sec * 1000000000 + t->it_value.tv_nsec;
    if (flags || old || f->kind != TIMERFD) return vmc_unmodelled("timerfd_settime");
    spend(COST_CALL);
    f->count = 0;
    f->deadline = left ? clock_of_this() + left : NEVER;
    set_alarm();
    return 0;
}
int64_t kernel_alarm(void) { return next_alarm; }
void kernel_ring(void) {
    int i = 0;
    while (files[i].kind != TIMERFD || files[i].deadline != next_alarm) i++;
    files[i].deadline = NEVER;
    files[i].count++;
    set_alarm();
    notify(FIRST_FD + i);
}
ssize_t vmc_sys_write(int fd, const void *buf, size_t n) {
    file *f = file_of(fd);
    uint64_t x;
    if (f->kind != EVENTFD || n != sizeof x) return vmc_unmodelled("write");
    spend(COST_CALL);
    memcpy(&x, buf, n);
    f->count += x;
    notify(fd);
    return (ssize_t)n;
}
ssize_t vmc_sys_read(int fd, void *buf, size_t n) {
    file *f = file_of(fd);
    if (f->kind != EVENTFD || n != sizeof f->count) return vmc_unmodelled("read");
    spend(COST_CALL);
    errno = EAGAIN;
    if (f->count == 0) return -1;
    memcpy(buf, &f->count, n);
    f->count = 0;
    return (ssize_t)n;
}
int vmc_sys_close(int fd) {
    file_of(fd)->kind = CLOSED;
    set_alarm();
    for (int i = 0; i < n_items; i++)
        if (items[i].fd == fd || items[i].ep == fd) items[i].is_used = 0;
    while (n_items > 0 && !items[n_items - 1].is_used) n_items--;
    spend(COST_CALL);
    return 0;
}
void *vmc_sys_mmap(void *at, size_t size, int protection, int flags, int fd, long offset) {
    spend(COST_CALL);
    return mmap(at, size, protection, flags, fd, offset);
}
int vmc_sys_munmap(void *at, size_t size) {
    spend(COST_CALL);
    return munmap(at, size);
}
int vmc_no_effect(const char *call, ...) {
    (void)call;
    return 0;
}
int vmc_unmodelled(const char *call, ...) {
    coherence_die("system call `%s` is not modelled", call);
}
