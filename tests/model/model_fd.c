// SPDX-License-Identifier: MIT OR 0BSD
// Descriptors (tags [F1] [F2] [F3]): reading and waiting, against events that any worker may find
// in the home's epoll, against closing. No readiness is lost; close(2) is called exactly once, and
// not while a system call on the number is in flight; what belongs to an earlier use of the number
// does not reach a later one; the memory of a wait may go as soon as the wait is given up.
//
// Reads are those of the net section, on real workers; the file behind the descriptor is a counter
// of bytes here, and its read and close check that they are called as they may be.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
static ssize_t model_read(int fd, void *buf, size_t n);
static int model_close(int fd);
static int model_fcntl(int fd, int op, ...);
static int model_getsockopt(int fd, ...);
static int model_fstat(int fd, ...);
static int model_accept4(int fd, ...);
#undef vmc_sys_accept4
#undef vmc_sys_fcntl
#undef vmc_sys_getsockopt
#undef vmc_sys_fstat
#define vmc_sys_accept4 model_accept4
#define vmc_sys_fcntl model_fcntl
#define vmc_sys_getsockopt model_getsockopt
#define vmc_sys_fstat model_fstat
#define vmc_sys_read model_read
#define VOLT_IS_MAPPED(p_, n_) 1
#define vmc_sys_close model_close
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"
#undef vmc_sys_read
#undef vmc_sys_close

static int file = -1;                                 // the descriptor
static uint32_t n_bytes, n_inside, is_open, n_closes; // atomic
static uint32_t n_opens;                              // atomic: times it was opened again
static uint32_t contents[2]; // plain: per use of the number the calls on it, then its close
static uint32_t add(uint32_t *word, uint32_t x) { // relaxed: the kernel hands nothing over here
    return __atomic_fetch_add(word, x, __ATOMIC_RELAXED);
}
// All that is there: an rmw, since a real read does not see an old state either.
static ssize_t model_read(int fd, void *buf, size_t n) {
    if (fd != file) return vmc_sys_read(fd, buf, n);
    add(&n_inside, 1);
    VMC_ASSERT(add(&is_open, 0) == 1 && n >= 2);
    VMC_ASSERT(contents[add(&n_opens, 0)] == 0);
    uint32_t got = __atomic_exchange_n(&n_bytes, 0, __ATOMIC_RELAXED);
    add(&n_inside, UINT32_MAX);
    errno = EAGAIN;
    return got ? (ssize_t)got : -1;
}
static uint32_t n_probes; // atomic
static int model_fcntl(int fd, int op, ...) { // F_GETFL
    VMC_ASSERT(fd == file && op == F_GETFL);
    add(&n_probes, 1);
    errno = EBADF;
    return add(&is_open, 0) ? O_NONBLOCK : -1;
}
static int model_getsockopt(int fd, ...) { // no socket
    VMC_ASSERT(fd == file);
    return -1;
}
static int model_fstat(int fd, ...) { // no file on a disk, no pipe, no terminal
    va_list args;
    VMC_ASSERT(fd == file);
    errno = EBADF;
    if (add(&is_open, 0) == 0) return -1;
    va_start(args, fd);
    *va_arg(args, struct stat *) = (struct stat){ .st_mode = 0600 };
    va_end(args);
    return 0;
}
static int model_accept4(int fd, ...) { // a connection
    VMC_ASSERT(fd == file && add(&is_open, 0) == 1);
    return file + 1;
}
static int model_close(int fd) {
    if (fd != file) return vmc_sys_close(fd);
    VMC_ASSERT(__atomic_load_n(&n_inside, __ATOMIC_RELAXED) == 0);
    VMC_ASSERT(add(&is_open, 0) == 1 && add(&n_closes, 1) == 0);
    contents[add(&n_opens, 0)] = 1;
    return add(&is_open, UINT32_MAX) == 1 ? 0 : -1; // from here on the number is free
}
// Gives the number out again, if it is free.
static int open_again(void) {
    uint32_t no = 0;
    if (!__atomic_compare_exchange_n(&is_open, &no, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return 0;
    add(&n_opens, 1);
    return 1;
}

typedef struct reader {
    volt_frame frame;
    int64_t rc;
    int64_t want, got; // bytes
    char buf[8];
} reader;
static reader state;
static volt_handle handle;

static volt_poll read_some(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    while (r->got < r->want) {
        VOLT_AWAIT(r->rc, volt_read(cx, file, r->buf, sizeof r->buf));
        if (r->rc < 0) VOLT_RETURN(r->rc);
        r->got += r->rc;
    }
    VOLT_END(r->got);
}
// The same into a buffer whose second page is asked about, without the entry's lock.
static char pages[8192] __attribute__((aligned(4096)));
static volt_poll read_across_pages(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    while (r->got < r->want) {
        VOLT_AWAIT(r->rc, volt_read(cx, file, pages + 4092, 8));
        if (r->rc < 0) VOLT_RETURN(r->rc);
        r->got += r->rc;
    }
    VOLT_END(r->got);
}
// The same with a wait for readiness, and reads outside of it.
static volt_poll read_when_ready(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    while (r->got < r->want) {
        VOLT_AWAIT(r->rc, volt_read_ready(cx, file));
        if (r->rc == 0) r->rc = volt_try_read(cx, file, r->buf, sizeof r->buf);
        if (r->rc == -EAGAIN) continue;
        if (r->rc < 0) VOLT_RETURN(r->rc);
        r->got += r->rc;
    }
    VOLT_END(r->got);
}
static volt__fd *entry(void) { return volt__fd_lookup(&rt->fds, file); }
// The file is registered at worker 0, which is to run the reader.
static void start_with(volt_fn *fn, unsigned flags, int want) {
    make_runtime(2, UINT32_MAX);
    file = vmc_fd();
    is_open = 1;
    entry()->flags = (uint8_t)(VOLT__FD_PROBED | flags);
    VMC_ASSERT(volt__fd_register(&rt->fds, entry(), file, 0) == 0);
    state.want = want;
    spawn_on(workers[0], &handle, fn, &state);
}
static void start(unsigned flags, int want) { start_with(read_some, flags, want); }
static void let_it_wait(void) {
    drain(workers[0]);
    act_as(NULL);
}
static void write_byte(void) {
    add(&n_bytes, 1);
    vmc_fd_raise(file, EPOLLIN);
}
// A byte comes, and worker 1 finds the event: it looks after worker 0.
static void byte_comes(void *arg) {
    volt__reactor_events got;
    (void)arg;
    write_byte();
    act_as(workers[1]);
    volt__reactor_poll(&workers[0]->reactor, &rt->fds, 4, 0, &got);
    volt__push_batch(workers[1], &got.chain);
    drain(workers[1]);
}
static void end_fd(void) {
    act_as(NULL);
    volt__fds_free_pages(&rt->fds);
    memset(rt->fds.dir, 0, sizeof rt->fds.dir);
    finish();
}
// All threads have ended: worker 0 looks at its descriptors once more, then the reader is over.
static int64_t result(void) {
    int64_t value = -1;
    act_as(workers[0]);
    volt__drive_events(workers[0], 0, 0);
    for (int k = 0; k < 2; k++) drain(workers[k]);
    act_as(NULL);
    VMC_ASSERT(volt_try_join(&handle, &value) == 0);
    return value;
}
static void run_reader(void) {
    drain(workers[0]);
    act_as(NULL);
}

// ---- an event comes between the try and the wait

SCENARIO(fd_read_event) {
    start(0, 1);
    int t = vmc_spawn(byte_comes, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == 1);
    end_fd();
}
// A short read says "empty" without a call; the event that comes meanwhile must not be forgotten.
SCENARIO(fd_short_read_event) {
    start(VOLT__FD_STREAM, 2);
    n_bytes = 1;
    int t = vmc_spawn(byte_comes, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == 2);
    end_fd();
}
SCENARIO(fd_short_read_across_pages_event, .is_long = 1) {
    start_with(read_across_pages, VOLT__FD_STREAM, 2);
    n_bytes = 1;
    int t = vmc_spawn(byte_comes, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == 2);
    end_fd();
}
// An attempt outside a wait finds nothing, and clears the readiness, but not that of a later event.
SCENARIO(fd_try_read_event) {
    start_with(read_when_ready, 0, 1);
    int t = vmc_spawn(byte_comes, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == 1);
    end_fd();
}

// ---- closing

static void close_it(void *arg) {
    (void)arg;
    act_as(workers[1]);
    volt__close(rt, file);
    drain(workers[1]);
}
static void check_closed(void) { VMC_ASSERT(n_closes == 1 && is_open == 0 && entry()->pins == 0); }

SCENARIO(fd_read_close) {
    vmc_must_happen("read");
    vmc_must_happen("closed");
    start(0, 1);
    n_bytes = 1;
    int t = vmc_spawn(close_it, NULL);
    run_reader();
    vmc_join(t);
    int64_t rc = result();
    VMC_ASSERT(rc == 1 || rc == -EBADF);
    vmc_reached(rc == 1 ? "read" : "closed");
    check_closed();
    end_fd();
}
// Nothing to read: the reader is about to wait while the file is closed.
SCENARIO(fd_wait_close) {
    start(0, 1);
    int t = vmc_spawn(close_it, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == -EBADF);
    check_closed();
    end_fd();
}
SCENARIO(fd_ready_close) {
    start_with(read_when_ready, 0, 1);
    int t = vmc_spawn(close_it, NULL);
    run_reader();
    vmc_join(t);
    VMC_ASSERT(result() == -EBADF);
    check_closed();
    end_fd();
}
// The number may be in use again as soon as it is free. By [F2] alone the next user learns from the
// entry that it is open again, unprobed, and of which generation: without a byte it must wait.
SCENARIO(fd_close_open) {
    vmc_must_happen("opened at once");
    start(0, 1);
    int t = vmc_spawn(close_it, NULL), is_open_again = open_again();
    if (is_open_again) {
        vmc_reached("opened at once");
        run_reader();
    }
    vmc_join(t);
    VMC_ASSERT(is_open_again || open_again());
    drain(workers[0]);
    write_byte();
    VMC_ASSERT(result() == 1 && n_closes == 1 && is_open == 1);
    end_fd();
}
// A probe that began before the release leaves nothing behind for the number's next use.
static int is_released;
static void release_if_probed(void *arg) {
    volt_cx cx;
    (void)arg;
    if (add(&n_probes, 0) == 0) return;
    vmc_reached("released in or behind the probe");
    memset(&cx, 0, sizeof cx);
    cx.rt_ = rt;
    act_as(workers[1]);
    volt_fd_release(&cx, file);
    drain(workers[1]);
    is_released = 1;
}
SCENARIO(fd_probe_release) {
    vmc_must_happen("released in or behind the probe");
    start(0, 1);
    entry()->flags = 0;
    n_bytes = 1;
    int t = vmc_spawn(release_if_probed, NULL);
    run_reader();
    vmc_join(t);
    if (is_released) VMC_ASSERT(entry()->flags == 0);
    (void)result();
    end_fd();
}
// The length of the pause after a shortage of descriptors lies in the entry, under no lock: a task
// that has accepted writes it after it has left `use`, beside volt__fd_retire.
static volt_poll accept_one(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, volt_accept(cx, file));
    VOLT_END(r->rc);
}
SCENARIO(fd_accept_close, .class = VMC_EXHAUSTIVE) {
    start_with(accept_one, 0, 0);
    int t = vmc_spawn(close_it, NULL);
    run_reader();
    vmc_join(t);
    int64_t rc = result();
    VMC_ASSERT(rc == file + 1 || rc == -EBADF);
    end_fd();
}
// It waits already; an event and the close both want to wake it.
static void look_at_events(void) {
    act_as(workers[0]);
    volt__drive_events(workers[0], 0, 0);
    drain(workers[0]);
    act_as(NULL);
}
SCENARIO(fd_event_close) {
    vmc_must_happen("read");
    vmc_must_happen("closed");
    start(0, 1);
    let_it_wait();
    write_byte();
    int t = vmc_spawn(close_it, NULL);
    look_at_events();
    vmc_join(t);
    int64_t rc = result();
    VMC_ASSERT(rc == 1 || rc == -EBADF);
    vmc_reached(rc == 1 ? "read" : "closed");
    check_closed();
    end_fd();
}

// ---- an event of an earlier use of the number

static volt__task tasks[2];
static volt__node nodes[2];
static uint32_t n_woken;
static uint64_t old_token;
static void deliver_old(void *arg) { // collected from epoll before the close, handled late
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    volt__fd_event(&rt->fds, old_token, EPOLLIN, &c);
    while (volt__chain_pop(&c)) n_woken++;
}
static void retire(volt__chain *c) {
    volt__chain_init(c);
    volt__fd_retire(&rt->fds, entry(), file, 0, c);
}
static int wait_for_bytes(int i) {
    tasks[i].word = VOLT__REF;
    return volt__fd_wait(&rt->fds, entry(), file, 0, VOLT__RD, VOLT__RD,
                         volt__fd_take_snapshot(entry()), &nodes[i], &tasks[i]);
}
SCENARIO(fd_old_event) {
    volt__chain c;
    make_runtime(2, UINT32_MAX);
    file = vmc_fd();
    VMC_ASSERT(wait_for_bytes(0) == 1);
    old_token = (uint64_t)entry()->gen << 32 | (uint32_t)file;
    int t = vmc_spawn(deliver_old, NULL);
    retire(&c); // volt_fd_release: the number may be in use again from now on
    int is_closed = volt__fd_end_wait(&nodes[0], &tasks[0], VOLT__RD) == VOLT__CLOSED;
    VMC_ASSERT(is_closed && wait_for_bytes(1) == 1);
    vmc_join(t);
    VMC_ASSERT(volt__node_state(&nodes[1]) == VOLT__LINKED);
    VMC_ASSERT(n_woken + c.len == 1); // the first waiter, by one of the two
    volt__fd_end_wait(&nodes[1], &tasks[1], VOLT__RD);
    volt__fds_free_pages(&rt->fds);
    free_runtime();
}

// ---- giving a wait up: the barrier against the thread that fires it

SCENARIO(fd_cancel_event) {
    vmc_must_happen("event first");
    vmc_must_happen("cancelled first");
    make_runtime(2, UINT32_MAX);
    file = vmc_fd();
    volt__node *node = vmc_alloc(sizeof *node);
    tasks[0].word = VOLT__RUNNING + VOLT__REF;
    VMC_ASSERT(volt__fd_wait(&rt->fds, entry(), file, 0, VOLT__RD, VOLT__RD,
                             volt__fd_take_snapshot(entry()), node, &tasks[0]) == 1);
    old_token = (uint64_t)entry()->gen << 32 | (uint32_t)file;
    int t = vmc_spawn(deliver_old, NULL);
    uint8_t was = volt__fd_end_wait(node, &tasks[0], VOLT__RD);
    VMC_ASSERT(was == VOLT__FIRED || was == VOLT__LINKED);
    vmc_reached(was == VOLT__FIRED ? "event first" : "cancelled first");
    vmc_free(node);
    vmc_join(t);
    VMC_ASSERT(n_woken == 0); // it was running
    volt__fds_free_pages(&rt->fds);
    free_runtime();
}

// ---- the table: one entry per number, whichever thread asks first

static volt__fd *found;
static void get_entry(void *arg) {
    (void)arg;
    found = entry();
    VMC_ASSERT(found && found->pins == 0 && found->reactor == 0); // zeroed, and seen so
}
SCENARIO(fd_table) {
    make_runtime(2, UINT32_MAX);
    file = 3;
    int t = vmc_spawn(get_entry, NULL);
    volt__fd *e = entry();
    VMC_ASSERT(e && e->pins == 0 && e->reactor == 0);
    vmc_join(t);
    VMC_ASSERT(e == found);
    volt__fds_free_pages(&rt->fds);
    free_runtime();
}
