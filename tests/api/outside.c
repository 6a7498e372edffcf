// SPDX-License-Identifier: MIT OR 0BSD
// The process around a runtime: faults and crash handlers, terminals and sockets that others share,
// pipes without a reader, a stop of the whole process, threads that are cancelled.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "json.h"
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <termios.h>

// ---- faults: their handlers run on every thread of a runtime

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
static int check_mask(void *is_own_thread) {
    sigset_t mask;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        CHECK(!sigismember(&mask, faults[i]));
    if (is_own_thread) CHECK(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD));
    return 0;
}
typedef struct {
    volt_frame frame;
    volt_job job;
    int (*fn)(void *arg);
    void *arg;
    int is_on_pool, rc;
} caller;
static volt_poll caller_run(volt_cx *cx, void *arg) {
    caller *c = (caller *)arg;
    VOLT_BEGIN(cx, c);
    if (c->is_on_pool) VOLT_AWAIT(c->rc, volt_blocking(cx, &c->job, c->fn, c->arg));
    else c->rc = c->fn(c->arg);
    VOLT_END(c->rc);
}
TEST_OF_THREADS(runtime_threads_do_not_block_fault_signals) {
    volt_rt *rt = create_on(2);
    static int is_own_thread = 1;
    for (int i = 0; i < 2; i++) {
        caller c = { .fn = check_mask, .arg = &is_own_thread, .is_on_pool = i };
        CHECK_EQ(volt_block_on(rt, caller_run, &c), 0);
    }
    destroy(rt);
}

static volt_rt *crashing;
static int crash_pipe[2];
static int put_crash(void *user, const char *text, size_t len) {
    (void)user;
    return write(crash_pipe[1], text, len) == (ssize_t)len ? 0 : -EIO;
}
static void on_crash(int number) {
    (void)number;
    volt_dump_to(crashing, put_crash, NULL, VOLT_DUMP_CRASH);
    _exit(42);
}
static int crash(void *page) {
    *(volatile char *)page = 1;
    return 0;
}
static void crash_in_a_child(int is_on_pool) {
    char text[4096];
    size_t len = 0;
    CHECK_EQ(pipe2(crash_pipe, O_CLOEXEC), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        volt_config config = test_config(2);
        struct sigaction a;
        memset(&a, 0, sizeof a);
        a.sa_handler = on_crash;
        sigaction(SIGSEGV, &a, NULL);
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (volt_create(&config, &crashing) < 0) _exit(1);
        caller c = { .fn = crash, .arg = page, .is_on_pool = is_on_pool };
        volt_block_on(crashing, caller_run, &c);
        _exit(2);
    }
    close(crash_pipe[1]);
    for (ssize_t n; (n = read(crash_pipe[0], text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    close(crash_pipe[0]);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK(strstr(text, "worker 0: ") && strstr(text, "task "));
    CHECK(is_on_pool || strstr(text, "running"));
}
TEST_OF_THREADS(crash_on_a_worker_runs_the_handler_and_its_dump) { crash_in_a_child(0); }
TEST_OF_THREADS(crash_on_a_pool_thread_runs_the_handler_and_its_dump) { crash_in_a_child(1); }

// ---- descriptors that other processes share

typedef struct {
    volt_frame frame;
    int fd;
    char buf[64];
    int64_t n;
    volt_timer limit;
    volt_time at_most;
    const char *name;
    int is_write;
} user;
static volt_poll user_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    if (u->is_write)
        VOLT_AWAIT(u->n, volt_within(cx, &u->limit, u->at_most,
                                     volt_write_all(cx, u->fd, u->buf, sizeof u->buf)));
    else
        VOLT_AWAIT(u->n, volt_within(cx, &u->limit, u->at_most,
                                     volt_read(cx, u->fd, u->buf, sizeof u->buf)));
    VOLT_END(u->n);
}
// Standard input is `mine`, which this process shares with its parent, as with a shell.
static void read_as_stdin(int mine, int other) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        user u = { .fd = 0, .at_most = VOLT_S(10) };
        if (dup2(mine, 0) < 0) _exit(1);
        volt_config c = test_config(1);
        _exit(volt_run(&c, user_run, &u) == 6 && memcmp(u.buf, "hello\n", 6) == 0 ? 0 : 2);
    }
    int status = 0;
    CHECK_EQ(write(other, "hello\n", 6), 6);
    while (waitpid(child, &status, WNOHANG) == 0) CHECK(!(fcntl(mine, F_GETFL) & O_NONBLOCK));
    CHECK_EQ(status, 0);
    CHECK(!(fcntl(mine, F_GETFL) & O_NONBLOCK));
}
static void open_terminal(int *master, int *slave) {
    char name[64];
    struct termios t;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0) SKIP("no pseudo terminals");
    CHECK(grantpt(*master) == 0 && unlockpt(*master) == 0);
    CHECK_EQ(ptsname_r(*master, name, sizeof name), 0);
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(*slave >= 0);
    CHECK_EQ(tcgetattr(*slave, &t), 0);
    t.c_lflag &= ~(tcflag_t)ECHO;
    t.c_oflag &= ~(tcflag_t)OPOST;
    CHECK_EQ(tcsetattr(*slave, TCSANOW, &t), 0);
}
TEST(terminal_that_was_read_stays_blocking) {
    int master, slave;
    open_terminal(&master, &slave);
    read_as_stdin(slave, master);
    close(slave);
    close(master);
}
TEST(pipe_that_is_standard_input_stays_blocking) {
    int p[2];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    read_as_stdin(p[0], p[1]);
    close(p[0]);
    close(p[1]);
}
// More than it takes: the worker does not wait for room, and the rest comes when there is some.
static void fill_terminal(int fd, int mode) {
    CHECK_EQ(fcntl(fd, F_SETFL, mode | O_NONBLOCK), 0);
    struct pollfd room = { .fd = fd, .events = POLLOUT };
    do while (write(fd, "x", 1) > 0) {}
    while (poll(&room, 1, 10) > 0);
    CHECK_EQ(fcntl(fd, F_SETFL, mode), 0);
}
TEST(terminal_that_is_full_holds_up_no_worker) {
    int master, slave, rc;
    open_terminal(&master, &slave);
    int mode = fcntl(slave, F_GETFL);
    do { // the kernel moves bytes on in its own time: there may be room once more
        static user u;
        fill_terminal(slave, mode);
        u = (user){ .fd = slave, .at_most = VOLT_MS(20), .is_write = 1 };
        rc = run_on(1, user_run, &u);
        CHECK_EQ(fcntl(slave, F_GETFL), mode);
    } while (rc > 0);
    CHECK_EQ(rc, -ETIMEDOUT);
    close(slave);
    close(master);
}
// Where there is no /proc to open it again by.
TEST(pipe_without_its_own_description_blocks_no_call) {
    int p[2];
    static user u;
    volt__fd e;
    struct stat st;
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(fstat(p[0], &st), 0);
    memset(&e, 0, sizeof e);
    volt_config config = test_config(1);
    volt_rt *rt = NULL;
    volt__worker *w = NULL;
    CHECK_EQ(volt__rt_create(&config, &rt), 0);
    CHECK_EQ(volt__worker_create(rt, 0, &w), 0);
    rt->started = 1;
    volt__io io;
    volt__io_init(&io, VOLT__OP_READ, p[0], u.buf, sizeof u.buf, 0);
    CHECK_EQ(volt__io_call_toggled(&w->cx, &io), -EAGAIN);
    volt__io_init(&io, VOLT__OP_WRITE, p[1], "abc", 3, 0);
    CHECK_EQ(volt__io_call_toggled(&w->cx, &io), 3);
    volt__io_init(&io, VOLT__OP_READ, p[0], u.buf, sizeof u.buf, 0);
    CHECK_EQ(volt__io_call_toggled(&w->cx, &io), 3);
    static char big[100000];
    struct iovec v[2] = { { big, 0 }, { big, sizeof big } };
    volt__io_init_iov(&io, VOLT__OP_WRITEV, p[1], v, 2);
    int64_t n = 0;
    for (int64_t rc; (rc = volt__io_call_toggled(&w->cx, &io)) != -EAGAIN; n += rc) CHECK(rc > 0);
    CHECK(n >= PIPE_BUF);
    CHECK(!(fcntl(p[1], F_GETFL) & O_NONBLOCK));
    volt__rt_free(rt);
    close(p[0]);
    close(p[1]);
}
// A sharer of the socket sets it to block: calls on it do not wait all the same.
TEST(blocking_socket_holds_up_no_worker) {
    for (int is_write = 0; is_write < 2; is_write++) {
        int fd[2];
        static user u;
        char buf[4096];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        memset(buf, 'x', sizeof buf);
        while (is_write && send(fd[0], buf, sizeof buf, MSG_DONTWAIT) > 0) {}
        u = (user){ .fd = fd[0], .at_most = VOLT_MS(10), .is_write = is_write };
        CHECK_EQ(run_on(1, user_run, &u), -ETIMEDOUT);
        CHECK(!(fcntl(fd[0], F_GETFL) & O_NONBLOCK));
        close(fd[0]);
        close(fd[1]);
    }
}

// ---- dumps and traces into descriptors

static volt_poll named_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    volt_name(cx, u->name);
    VOLT_AWAIT(u->n, volt_sleep(cx, VOLT_S(100)));
    VOLT_END(0);
}
static volt_poll once_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}
typedef struct {
    char text[65536];
    size_t len;
} dumped;
static int put_dumped(void *to, const char *text, size_t len) {
    dumped *d = (dumped *)to;
    CHECK(d->len + len < sizeof d->text);
    memcpy(d->text + d->len, text, len);
    d->len += len;
    return 0;
}
TEST_OF_THREADS(dump_replaces_invalid_utf8) {
    static dumped d;
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    user u = { .name = "a\xff\xc3(\xe2\x82\xac\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\x01\"" };
    RT_SPAWN(rt, &h, named_run, u);
    while (!strstr(d.text, "timer")) {
        memset(&d, 0, sizeof d);
        CHECK_EQ(volt_dump_to(rt, put_dumped, &d, VOLT_DUMP_JSON), 0);
    }
    CHECK(strstr(d.text, "\"a\\ufffd\\ufffd(\xe2\x82\xac\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"
                         "\\ufffd\\ufffd\\ufffd\\ufffd\\u0001\\\"\""));
    volt_detach(&h);
    destroy(rt);
}
TEST_OF_THREADS(name_of_a_task_begins_no_line_of_a_dump) {
    static dumped d;
    volt_rt *rt = create_on(1);
    user u = { .name = "a\nworker 7: \x1b[2J\x7f" };
    RT_SPAWN(rt, NULL, named_run, u);
    while (!strstr(d.text, "timer")) {
        memset(&d, 0, sizeof d);
        CHECK_EQ(volt_dump_to(rt, put_dumped, &d, 0), 0);
    }
    CHECK(strstr(d.text, "a?worker 7: ?[2J?"));
    destroy(rt);
}
static int dump_into(volt_rt *rt, int fd) { return volt_dump(rt, fd, VOLT_DUMP_JSON); }
TEST_OF_THREADS(dump_into_a_pipe_without_a_reader_raises_no_signal) {
    volt_rt *rt = create_on(1);
    check_broken_pipe(rt, dump_into);
    destroy(rt);
}
TEST_OF_THREADS(dump_into_a_full_descriptor_waits_for_room) {
    enum { TASKS = 2000 };
    volt_rt *rt = create_on(1);
    static volt_handle h[TASKS];
    user u = { .fd = 0 };
    for (int i = 0; i < TASKS; i++) RT_SPAWN(rt, &h[i], named_run, u);
    check_full_pipe(rt, dump_into);
    for (int i = 0; i < TASKS; i++) volt_detach(&h[i]);
    destroy(rt);
}

// ---- the process is stopped for longer than its limits

enum { STOPPED = 10 }; // tasks
enum { READS, ACCEPTS, CONNECTS, WAITS_AT_A_SET, WAITS_TO_READ, WAITS_TO_WRITE };
typedef struct {
    volt_frame frame;
    volt_timer limit;
    volt_pollset set;
    volt_pollev ev;
    volt_addr to;
    int kind, fd, *n_begun;
    char byte;
    int64_t rc;
} limited;
static volt_poll limited_wait(volt_cx *cx, limited *l) {
    switch (l->kind) {
    case READS: return volt_read(cx, l->fd, &l->byte, 1);
    case ACCEPTS: return volt_accept(cx, l->fd);
    case CONNECTS: return volt_connect(cx, &l->to);
    case WAITS_AT_A_SET: return volt_pollset_wait(cx, &l->set, &l->ev, 1);
    case WAITS_TO_READ: return volt_readable(cx, l->fd);
    default: return volt_writable(cx, l->fd);
    }
}
static volt_poll limited_run(volt_cx *cx, void *arg) {
    limited *l = (limited *)arg;
    VOLT_BEGIN(cx, l);
    if (l->kind == WAITS_AT_A_SET) {
        CHECK_EQ(volt_pollset_open(&l->set), 0);
        CHECK_EQ(volt_pollset_set(&l->set, l->fd, VOLT_IN), 0);
    }
    ++*l->n_begun;
    VOLT_AWAIT(l->rc, volt_within(cx, &l->limit, VOLT_MS(300), limited_wait(cx, l)));
    if (l->rc >= 0 && (l->kind == ACCEPTS || l->kind == CONNECTS)) volt_close(cx, (int)l->rc);
    volt_pollset_close(cx, &l->set);
    VOLT_END(l->rc);
}
typedef struct {
    volt_frame frame;
    volt_group group;
    volt_addr to;
    int64_t rc;
    int i, kind, *fd, n_begun, tell;
} waits_for_all;
static volt_poll waits_for_all_run(volt_cx *cx, void *arg) {
    waits_for_all *r = (waits_for_all *)arg;
    VOLT_BEGIN(cx, r);
    for (r->i = 0; r->i < STOPPED; r->i++)
        CHECK_EQ(VOLT_GROUP_SPAWN(cx, &r->group, limited_run,
                                  (limited){ .kind = r->kind, .fd = r->fd[r->i], .to = r->to,
                                             .n_begun = &r->n_begun }), 0);
    // Until all wait, and the worker knows that polls are short: it then looks at descriptors after
    // all that have run out of time.
    for (r->i = 0; r->n_begun < STOPPED || r->i < 5000; r->i++) VOLT_AWAIT(volt_yield(cx));
    CHECK_EQ(write(r->tell, "x", 1), 1);
    VOLT_AWAIT(r->rc, volt_group_wait(cx, &r->group));
    VOLT_END(r->rc);
}
// Descriptors that the tasks wait for in the child, and events that the parent causes on them.
typedef struct {
    int kind, mine[STOPPED], other[STOPPED];
    volt_addr at[STOPPED]; // of listeners
    int n;                 // descriptors in `mine` and `other`
} occasion;
static void listen_at(occasion *o, int backlog) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(volt_addr_parse(&o->at[o->n], "127.0.0.1:0"), 0);
    CHECK_EQ(bind(fd, volt__addr_sa(&o->at[o->n]), o->at[o->n].len_), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    CHECK_EQ(volt_local_addr(fd, &o->at[o->n]), 0);
    o->mine[o->n++] = fd;
}
static int connect_to(const volt_addr *at) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, volt__addr_sa(at), at->len_), 0);
    return fd;
}
static void prepare(occasion *o) {
    static char block[4096];
    if (o->kind == CONNECTS) { // to one whose queue is full: the kernel tries again after 1 s
        listen_at(o, 0);
        o->other[0] = connect_to(&o->at[0]);
        struct pollfd p = { o->mine[0], POLLIN, 0 };
        CHECK_EQ(poll(&p, 1, -1), 1);
        return;
    }
    while (o->n < STOPPED && o->kind == ACCEPTS) listen_at(o, 8);
    for (int fd[2]; o->n < STOPPED; o->n++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
        o->mine[o->n] = fd[0];
        o->other[o->n] = fd[1];
        while (o->kind == WAITS_TO_WRITE && write(fd[0], block, sizeof block) > 0) {}
    }
}
static void bring_about(occasion *o) {
    static char block[4096];
    if (o->kind == CONNECTS) { // accepted are the one that was there and those of the tasks
        CHECK_EQ(listen(o->mine[0], 2 * STOPPED), 0);
        for (int i = 0; i <= STOPPED; i++) {
            int fd = accept(o->mine[0], NULL, NULL);
            CHECK(fd >= 0);
            close(fd);
        }
        return;
    }
    for (int i = 0; i < STOPPED; i++) {
        if (o->kind == ACCEPTS) o->other[i] = connect_to(&o->at[i]);
        else if (o->kind != WAITS_TO_WRITE) CHECK_EQ(write(o->other[i], "x", 1), 1);
        else while (read(o->other[i], block, sizeof block) > 0) {}
    }
}
// Returns 0 if the limits of the child passed before it was stopped, as a busy machine can cause.
static int stops_and_continues(int kind) {
    static occasion o;
    int p[2], status = 0;
    char byte;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < STOPPED; i++) o.other[i] = -1;
    o.kind = kind;
    prepare(&o);
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        waits_for_all r = { .kind = kind, .fd = o.mine, .to = o.at[0], .tell = p[1] };
        volt_config c = test_config(1);
        int rc = volt_run(&c, waits_for_all_run, &r);
        _exit(rc < 0 ? -rc : 0);
    }
    CHECK_EQ(read(p[0], &byte, 1), 1);
    volt_time start = volt_now();
    char state;
    UNTIL((state = test_state_of(child)) == 'S' || state == 'Z');
    CHECK_EQ(kill(child, SIGSTOP), 0); // its wait for events ends by the stop, without any
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    int is_stopped = WIFSTOPPED(status);
    if (is_stopped) {
        bring_about(&o);
        while (volt_now() - start < VOLT_MS(400)) sched_yield(); // past every limit
        CHECK_EQ(kill(child, SIGCONT), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    } else CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ETIMEDOUT);
    for (int i = 0; i < o.n; i++) {
        close(o.mine[i]);
        close(o.other[i]);
    }
    close(p[0]);
    close(p[1]);
    return is_stopped;
}
static void stop_and_continue(int kind) {
    while (!stops_and_continues(kind)) {}
}
TEST(read_gets_data_in_time_although_process_was_stopped) { stop_and_continue(READS); }
TEST(accept_gets_connection_although_process_was_stopped) {
    stop_and_continue(ACCEPTS);
}
TEST(connect_succeeds_in_time_although_process_was_stopped) {
    stop_and_continue(CONNECTS);
}
TEST(pollset_gives_event_although_process_was_stopped) {
    stop_and_continue(WAITS_AT_A_SET);
}
TEST(readable_succeeds_in_time_although_process_was_stopped) {
    stop_and_continue(WAITS_TO_READ);
}
TEST(writable_succeeds_in_time_although_process_was_stopped) {
    stop_and_continue(WAITS_TO_WRITE);
}

// ---- threads that are cancelled

typedef struct {
    volt_frame frame;
    pthread_t self;
    int rc;
} cancels_itself;
static volt_poll cancels_itself_run(volt_cx *cx, void *arg) {
    cancels_itself *c = (cancels_itself *)arg;
    VOLT_BEGIN(cx, c);
    CHECK_EQ(pthread_cancel(c->self), 0);
    VOLT_AWAIT(c->rc, volt_sleep(cx, VOLT_MS(5))); // an epoll_wait: where it would be unwound
    VOLT_END(7);
}
static int run_result;
static void *runs_cancelled(void *arg) {
    cancels_itself c = { .self = pthread_self() };
    (void)arg;
    run_result = run_on(1, cancels_itself_run, &c);
    pthread_testcancel();
    return NULL;
}
TEST_OF_THREADS(pthread_cancel_waits_for_the_end_of_volt_run) {
    pthread_t t;
    void *result = NULL;
    CHECK_EQ(pthread_create(&t, NULL, runs_cancelled, NULL), 0);
    CHECK_EQ(pthread_join(t, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_EQ(run_result, 7);
}

// ---- what is said on standard error

TEST(log_on_standard_error_writes_one_line_for_each_item) {
    int p[2], before = dup(2);
    char text[4096];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(dup2(p[1], 2), 2);
    volt_config c = test_config(1);
    c.log.fn = volt_log_stderr;
    user u;
    memset(&u, 0, sizeof u);
    u.frame.node_.resume_line_ = 3;
    int rc = volt_run(&c, once_run, &u);
    char line[512];
    memset(line, 'y', sizeof line);
    line[sizeof line - 1] = 0;
    volt_log_stderr(NULL, 0, line); // cut
    CHECK_EQ(dup2(before, 2), 2);
    close(before);
    close(p[1]);
    CHECK_EQ(rc, -EINVAL);
    ssize_t n = read(p[0], text, sizeof text - 1);
    CHECK(n > 0);
    text[n] = 0;
    CHECK_EQ(memcmp(text, "volt: root task: spawn refused: ", 32), 0);
    CHECK(strstr(text, "not zeroed\nvolt: yyyy"));
    CHECK(text[n - 1] == '\n' && text[n - 2] == 'y');
    close(p[0]);
}
