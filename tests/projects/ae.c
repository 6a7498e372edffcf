// SPDX-License-Identifier: MIT OR 0BSD
// The same claims about examples/projects/ae.c over each of its backends: epoll, a poll set in a
// plain thread, a poll set in a task (-DAE_TASK), epoll with volt as a guest. See ae.h.
#define _GNU_SOURCE
#ifdef AE_TASK
#  define AE_POLLSET
#endif
#include "volt.h"
#include "examples/projects/ae.c"
#include "test.h"
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { MS = 1000000 };
static aeEventLoop *loop; // of the test

static void begin(void) {
    loop = aeCreateEventLoop(1000);
    CHECK(loop != NULL);
}
// Runs the loop until aeStop.
static void run(void) {
#ifdef AE_TASK
    aeTask t = { .loop = loop };
    CHECK_EQ(volt_run(NULL, aeMainTask, &t), 0);
#else
    aeMain(loop);
#endif
}
static int n_left; // descriptors that were open at the start
static int descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 1000; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
static void end(void) {
    aeDeleteEventLoop(loop);
    CHECK_EQ(descriptors(), n_left);
}
// A pipe whose ends do not block.
typedef struct {
    int in, out; // for reading, for writing
    int n_calls;
} tube;
static void tube_open(tube *t) {
    int fd[2];
    CHECK_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    *t = (tube){ .in = fd[0], .out = fd[1] };
}
static void tube_put(const tube *t, const char *text) {
    CHECK_EQ(write(t->out, text, strlen(text)), (ssize_t)strlen(text));
}
static void tube_close(tube *t) {
    if (t->in >= 0) close(t->in);
    if (t->out >= 0) close(t->out);
}
static void watch(int fd, int mask, aeFileProc *proc, void *data) {
    CHECK_EQ(aeCreateFileEvent(loop, fd, mask, proc, data), AE_OK);
}
static long long stop_in(aeEventLoop *l, long long id, void *data) {
    (void)id, (void)data;
    aeStop(l);
    return AE_NOMORE;
}
static void stop_after(long long ms) {
    CHECK(aeCreateTimeEvent(loop, ms, stop_in, NULL, NULL) >= 0);
}
static char record[100]; // of the callbacks, in their order
static void note(const char *what) {
    CHECK(strlen(record) + strlen(what) < sizeof record);
    strcat(record, what);
}
#define BEGIN() n_left = descriptors(), begin()

// ---- descriptors

static void read_one(aeEventLoop *l, int fd, void *data, int mask) {
    tube *t = (tube *)data;
    char c;
    CHECK(l == loop && fd == t->in);
    CHECK_EQ(mask & AE_READABLE, AE_READABLE);
    CHECK_EQ(read(fd, &c, 1), 1);
    t->n_calls++;
    if (c == '.') aeStop(l);
}
TEST(readable_descriptor_calls_back_until_it_is_read) {
    tube a, b;
    BEGIN();
    tube_open(&a), tube_open(&b);
    watch(a.in, AE_READABLE, read_one, &a);
    watch(b.in, AE_READABLE, read_one, &b);
    tube_put(&a, "12.");
    run();
    CHECK_EQ(a.n_calls, 3);
    CHECK_EQ(b.n_calls, 0);
    tube_close(&a), tube_close(&b);
    end();
}
static void note_read(aeEventLoop *l, int fd, void *data, int mask) {
    (void)l, (void)fd, (void)data, (void)mask;
    note("r");
}
static void note_write(aeEventLoop *l, int fd, void *data, int mask) {
    (void)fd, (void)data, (void)mask;
    note("w");
    if (strlen(record) >= 4) aeStop(l);
}
static void order(int barrier, const char *wanted) {
    int s[2];
    BEGIN();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    CHECK_EQ(write(s[1], "x", 1), 1);
    watch(s[0], AE_READABLE, note_read, NULL);
    watch(s[0], AE_WRITABLE | barrier, note_write, NULL);
    CHECK_EQ(aeGetFileEvents(loop, s[0]), AE_READABLE | AE_WRITABLE | barrier);
    run();
    CHECK_EQ(strncmp(record, wanted, 4), 0);
    aeDeleteFileEvent(loop, s[0], AE_WRITABLE); // takes the barrier with it
    CHECK_EQ(aeGetFileEvents(loop, s[0]), AE_READABLE);
    close(s[0]), close(s[1]);
    end();
}
TEST(reading_is_called_before_writing) { order(0, "rwrw"); }
TEST(barrier_calls_writing_before_reading) { order(AE_BARRIER, "wrwr"); }
static void both(aeEventLoop *l, int fd, void *data, int mask) {
    (void)fd;
    CHECK_EQ(mask, AE_READABLE | AE_WRITABLE);
    ++*(int *)data;
    aeStop(l);
}
TEST(callback_for_both_is_called_once) {
    int s[2], n = 0;
    BEGIN();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    CHECK_EQ(write(s[1], "x", 1), 1);
    watch(s[0], AE_READABLE | AE_WRITABLE, both, &n);
    run();
    CHECK_EQ(n, 1);
    close(s[0]), close(s[1]);
    end();
}
static tube pair[2];
static void drop_other(aeEventLoop *l, int fd, void *data, int mask) {
    (void)data, (void)mask;
    note("x");
    aeDeleteFileEvent(l, pair[fd == pair[0].in].in, AE_READABLE);
    aeStop(l);
}
TEST(events_that_a_callback_deletes_are_not_called_in_its_round) {
    BEGIN();
    for (int i = 0; i < 2; i++) {
        tube_open(&pair[i]);
        tube_put(&pair[i], "x");
        watch(pair[i].in, AE_READABLE, drop_other, NULL);
    }
    run();
    CHECK_STR(record, "x");
    tube_close(&pair[0]), tube_close(&pair[1]);
    end();
}
static void replace(aeEventLoop *l, int fd, void *data, int mask) { // by a pipe of that number
    tube *t = (tube *)data;
    (void)mask;
    note("old ");
    aeDeleteFileEvent(l, fd, AE_READABLE);
    CHECK_EQ(dup2(t->in, fd), fd);
    close(t->in);
    t->in = fd;
    watch(fd, AE_READABLE, read_one, t);
    tube_put(t, ".");
}
TEST(number_that_is_closed_and_used_again_has_its_own_events) {
    tube a, b;
    BEGIN();
    tube_open(&a), tube_open(&b);
    tube_put(&a, "not read");
    watch(a.in, AE_READABLE, replace, &b);
    run();
    CHECK_STR(record, "old ");
    CHECK_EQ(b.n_calls, 1);
    a.in = -1;
    tube_close(&a), tube_close(&b);
    end();
}
TEST(end_of_a_peer_calls_back_for_reading_and_writing) {
    int s[2];
    BEGIN();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    close(s[1]);
    watch(s[0], AE_READABLE, note_read, NULL);
    watch(s[0], AE_WRITABLE, note_write, NULL);
    run();
    CHECK_EQ(strncmp(record, "rwrw", 4), 0);
    close(s[0]);
    end();
}
TEST(full_pipe_without_a_reader_calls_back_for_writing) {
    tube t;
    static const char zeros[4096];
    BEGIN();
    tube_open(&t);
    while (write(t.out, zeros, sizeof zeros) > 0) {}
    close(t.in), t.in = -1;
    strcpy(record, "...");
    watch(t.out, AE_WRITABLE, note_write, NULL);
    run();
    CHECK_STR(record, "...w");
    tube_close(&t);
    end();
}
static void read_end(aeEventLoop *l, int fd, void *data, int mask) {
    char c;
    (void)data, (void)mask;
    CHECK_EQ(read(fd, &c, 1), 0);
    aeStop(l);
}
TEST(empty_pipe_without_a_writer_calls_back_for_reading) {
    tube t;
    BEGIN();
    tube_open(&t);
    close(t.out), t.out = -1;
    watch(t.in, AE_READABLE, read_end, NULL);
    run();
    tube_close(&t);
    end();
}
static void connected(aeEventLoop *l, int fd, void *data, int mask) {
    socklen_t len = sizeof(int);
    (void)mask;
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, data, &len), 0);
    aeStop(l);
}
TEST(refused_connection_calls_back_for_writing) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    BEGIN();
    int free_port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // bound, and does not listen
    CHECK_EQ(bind(free_port, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(free_port, (struct sockaddr *)&at, &len), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = -1;
    CHECK(connect(fd, (struct sockaddr *)&at, len) == 0 || errno == EINPROGRESS ||
          errno == ECONNREFUSED);
    watch(fd, AE_WRITABLE, connected, &error);
    run();
    CHECK(error == ECONNREFUSED || error == 0); // 0: connect has already taken it
    close(fd), close(free_port);
    end();
}
TEST(descriptors_that_cannot_be_watched_are_refused) {
    BEGIN();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(aeCreateFileEvent(loop, file, AE_READABLE, note_read, NULL), AE_ERR);
    CHECK_EQ(errno, EPERM);
    CHECK_EQ(aeGetFileEvents(loop, file), AE_NONE);
    close(file);
    CHECK_EQ(aeCreateFileEvent(loop, file, AE_READABLE, note_read, NULL), AE_ERR);
    CHECK_EQ(errno, EBADF);
    CHECK_EQ(aeCreateFileEvent(loop, -1, AE_READABLE, note_read, NULL), AE_ERR);
    CHECK_EQ(errno, EBADF);
    CHECK_EQ(aeCreateFileEvent(loop, 1000, AE_READABLE, note_read, NULL), AE_ERR);
    CHECK_EQ(errno, ERANGE);
    aeDeleteFileEvent(loop, -1, AE_READABLE), aeDeleteFileEvent(loop, 1000, AE_READABLE);
    CHECK_EQ(aeGetFileEvents(loop, 1000), AE_NONE);
    stop_after(1); // and the loop is as good as before
    run();
    end();
}
TEST(tables_grow_but_do_not_shrink_below_a_descriptor_in_use) {
    tube t;
    BEGIN();
    tube_open(&t);
    CHECK_EQ(dup2(t.in, 900), 900);
    watch(900, AE_READABLE, read_one, &t);
    CHECK_EQ(aeResizeSetSize(loop, 900), AE_ERR);
    CHECK_EQ(aeGetSetSize(loop), 1000);
    CHECK_EQ(aeResizeSetSize(loop, 901), AE_OK);
    CHECK_EQ(aeResizeSetSize(loop, 5000), AE_OK);
    for (int fd = 901; fd < 5000; fd++) CHECK_EQ(aeGetFileEvents(loop, fd), AE_NONE);
    close(t.in), t.in = 900;
    tube_put(&t, ".");
    run();
    CHECK_EQ(t.n_calls, 1);
    aeDeleteFileEvent(loop, 900, AE_READABLE);
    CHECK_EQ(aeResizeSetSize(loop, 10), AE_OK);
    tube_close(&t);
    end();
}
enum { MANY = 300 };
static int n_served;
static void serve(aeEventLoop *l, int fd, void *data, int mask) {
    read_one(l, fd, data, mask);
    if (++n_served == MANY) aeStop(l);
}
// The first callback of a round deletes the events of all others, and shrinks the tables.
enum { SHRUNK = 100 };
static tube shrunk[SHRUNK];
static int n_shrinks;
static void shrink_tables(aeEventLoop *l, int fd, void *data, int mask) {
    (void)mask, (void)data;
    n_shrinks++;
    for (int i = 0; i < SHRUNK; i++)
        if (shrunk[i].in != fd) aeDeleteFileEvent(l, shrunk[i].in, AE_READABLE);
    aeDeleteFileEvent(l, fd, AE_READABLE);
    CHECK_EQ(aeResizeSetSize(l, 1), AE_OK);
    aeStop(l);
}
TEST(callback_may_shrink_the_tables_below_the_events_of_its_round) {
    BEGIN();
    for (int i = 0; i < SHRUNK; i++) {
        tube_open(&shrunk[i]);
        watch(shrunk[i].in, AE_READABLE, shrink_tables, NULL);
        tube_put(&shrunk[i], "x");
    }
    run();
    CHECK_EQ(n_shrinks, 1);
    for (int i = 0; i < SHRUNK; i++) tube_close(&shrunk[i]);
    end();
}
TEST(all_of_300_ready_descriptors_are_served_each_once) {
    static tube t[MANY];
    BEGIN();
    for (int i = 0; i < MANY; i++) {
        tube_open(&t[i]);
        tube_put(&t[i], "x");
        watch(t[i].in, AE_READABLE, serve, &t[i]);
    }
    run();
    for (int i = 0; i < MANY; i++) CHECK_EQ(t[i].n_calls, 1), tube_close(&t[i]);
    end();
}

// ---- times

typedef struct {
    int64_t set, ms;
    const char *name;
} alarm_of;
static long long ring(aeEventLoop *l, long long id, void *data) {
    const alarm_of *a = (const alarm_of *)data;
    (void)l, (void)id;
    CHECK(aeNow() - a->set >= a->ms * MS);
    note(a->name);
    return AE_NOMORE;
}
static void at_end(aeEventLoop *l, void *data) {
    (void)l;
    note((const char *)data);
}
TEST(times_come_in_their_order_and_never_early) {
    static alarm_of a[] = { { .ms = 30, .name = "d" }, { .ms = 10, .name = "b" },
                            { .ms = 10, .name = "c" }, { .ms = 0, .name = "a" } };
    BEGIN();
    for (int i = 0; i < 4; i++) {
        a[i].set = aeNow();
        CHECK_EQ(aeCreateTimeEvent(loop, a[i].ms, ring, &a[i], NULL), i);
    }
    stop_after(40);
    run();
    CHECK_STR(record, "abcd");
    end();
}
static int n_rings;
static long long ring_again(aeEventLoop *l, long long id, void *data) {
    (void)l, (void)id, (void)data;
    return ++n_rings < 5 ? 2 : AE_NOMORE;
}
static void note_and_stop(aeEventLoop *l, void *data) {
    at_end(l, data);
    aeStop(l);
}
TEST(time_comes_again_until_it_says_no_more_and_is_finalized_once) {
    int64_t begun = aeNow();
    BEGIN();
    aeCreateTimeEvent(loop, 1, ring_again, (void *)(uintptr_t) "f", note_and_stop);
    run();
    CHECK_EQ(n_rings, 5);
    CHECK_STR(record, "f");
    CHECK(aeNow() - begun >= 9 * MS);
    end();
    CHECK_STR(record, "f");
}
TEST(times_that_are_left_are_finalized_with_the_loop) {
    BEGIN();
    aeCreateTimeEvent(loop, 100000, ring_again, (void *)(uintptr_t) "b", at_end);
    aeCreateTimeEvent(loop, 50000, ring_again, (void *)(uintptr_t) "a", at_end);
    stop_after(0);
    run();
    end();
    CHECK_STR(record, "ab");
    CHECK_EQ(n_rings, 0);
}
static int n_rounds, round_of_child;
static void count_round(aeEventLoop *l) { (void)l, n_rounds++; }
static long long child(aeEventLoop *l, long long id, void *data) {
    (void)id, (void)data;
    round_of_child = n_rounds;
    aeStop(l);
    return AE_NOMORE;
}
static long long parent(aeEventLoop *l, long long id, void *data) {
    (void)id;
    *(int *)data = n_rounds;
    aeCreateTimeEvent(l, 0, child, NULL, NULL);
    return AE_NOMORE;
}
TEST(time_that_a_time_sets_has_the_next_round) {
    int round_of_parent = 0;
    BEGIN();
    aeSetBeforeSleepProc(loop, count_round);
    aeCreateTimeEvent(loop, 1, parent, &round_of_parent, NULL);
    run();
    CHECK(round_of_parent > 0);
    CHECK_EQ(round_of_child, round_of_parent + 1);
    end();
}
static long long victim;
static long long delete_both(aeEventLoop *l, long long id, void *data) {
    (void)data;
    CHECK_EQ(aeDeleteTimeEvent(l, victim), AE_OK);
    CHECK_EQ(aeDeleteTimeEvent(l, victim), AE_ERR);
    CHECK_EQ(aeDeleteTimeEvent(l, id), AE_OK);
    CHECK_EQ(aeDeleteTimeEvent(l, id), AE_ERR);
    note("|");
    return 1; // is not called again nevertheless
}
static void times_deleted(long long ms) {
    BEGIN();
    aeCreateTimeEvent(loop, 1, delete_both, (void *)(uintptr_t) "self", at_end);
    victim = aeCreateTimeEvent(loop, ms, ring_again, (void *)(uintptr_t) "other", at_end);
    stop_after(20);
    struct timespec both_due = { .tv_sec = 0, .tv_nsec = 5 * MS };
    nanosleep(&both_due, NULL);
    run();
    CHECK_STR(record, "other|self");
    CHECK_EQ(n_rings, 0);
    CHECK_EQ(aeDeleteTimeEvent(loop, 12345), AE_ERR);
    end();
}
TEST(time_deletes_itself_and_one_that_is_due_in_the_same_round) { times_deleted(2); }
TEST(time_deletes_itself_and_a_later_one) { times_deleted(1000); }

// ---- rounds

static void hook_before(aeEventLoop *l) { (void)l, note("<"); }
static void hook_after(aeEventLoop *l, int n) {
    (void)l;
    note(n == 1 ? "1>" : n == 0 ? "0>" : "?");
}
static void read_note(aeEventLoop *l, int fd, void *data, int mask) {
    read_one(l, fd, data, mask);
    note("c");
}
TEST(each_wait_is_between_its_two_hooks) {
    tube t;
    BEGIN();
    tube_open(&t);
    aeSetBeforeSleepProc(loop, hook_before);
    aeSetAfterSleepProc(loop, hook_after);
    watch(t.in, AE_READABLE, read_note, &t);
    tube_put(&t, "12.");
    run();
    CHECK_STR(record, "<1>c<1>c<1>c");
    tube_close(&t);
    end();
}
TEST(idle_loop_does_not_wake_and_takes_no_time_of_a_processor) {
    tube t;
    struct rusage before, after;
    BEGIN();
    tube_open(&t);
    watch(t.in, AE_READABLE, read_one, &t);
    aeSetBeforeSleepProc(loop, count_round);
    stop_after(300);
    getrusage(RUSAGE_SELF, &before);
    run();
    getrusage(RUSAGE_SELF, &after);
    CHECK(n_rounds >= 1 && n_rounds <= 3);
    CHECK(after.ru_utime.tv_sec - before.ru_utime.tv_sec < 2);
    tube_close(&t);
    end();
}
static void *put_later(void *arg) {
    struct timespec pause = { .tv_sec = 0, .tv_nsec = 20 * MS };
    nanosleep(&pause, NULL);
    tube_put((const tube *)arg, ".");
    return NULL;
}
TEST(write_by_another_thread_ends_the_wait) {
    tube t;
    pthread_t thread;
    BEGIN();
    tube_open(&t);
    watch(t.in, AE_READABLE, read_one, &t);
    CHECK_EQ(pthread_create(&thread, NULL, put_later, &t), 0);
    run();
    CHECK_EQ(t.n_calls, 1);
    pthread_join(thread, NULL);
    tube_close(&t);
    end();
}
static void always(aeEventLoop *l, int fd, void *data, int mask) {
    (void)l, (void)fd, (void)mask;
    ++*(int *)data;
}
static long long stop_after_calls(aeEventLoop *l, long long id, void *data) {
    (void)id;
    if (*(int *)data > 10) aeStop(l);
    return 1;
}
TEST(time_comes_beside_a_descriptor_that_is_always_ready) {
    tube t;
    int n = 0;
    BEGIN();
    tube_open(&t);
    tube_put(&t, "not read");
    watch(t.in, AE_READABLE, always, &n);
    aeCreateTimeEvent(loop, 1, stop_after_calls, &n, NULL);
    run();
    tube_close(&t);
    end();
}
TEST(deleted_events_call_nothing_and_do_not_wake) {
    tube t;
    int n = 0;
    BEGIN();
    tube_open(&t);
    tube_put(&t, "not read");
    watch(t.in, AE_READABLE, always, &n);
    watch(t.out, AE_WRITABLE, always, &n);
    aeDeleteFileEvent(loop, t.out, AE_WRITABLE);
    aeDeleteFileEvent(loop, t.in, AE_READABLE);
    CHECK_EQ(loop->maxfd, -1);
    aeSetBeforeSleepProc(loop, count_round);
    stop_after(20);
    run();
    CHECK_EQ(n, 0);
    CHECK(n_rounds <= 3);
    tube_close(&t);
    end();
}
#ifndef AE_TASK
TEST(flags_choose_what_a_round_does) {
    tube t;
    BEGIN();
    tube_open(&t);
    CHECK_EQ(aeProcessEvents(loop, 0), 0);
    CHECK_EQ(aeProcessEvents(loop, AE_ALL_EVENTS | AE_DONT_WAIT), 0);
    aeSetBeforeSleepProc(loop, hook_before);
    aeSetAfterSleepProc(loop, hook_after);
    watch(t.in, AE_READABLE, read_note, &t);
    aeCreateTimeEvent(loop, 0, ring_again, NULL, NULL);
    CHECK_EQ(aeProcessEvents(loop, AE_FILE_EVENTS | AE_DONT_WAIT), 0);
    CHECK_EQ(n_rings, 0);
    tube_put(&t, "12");
    CHECK_EQ(aeProcessEvents(loop, AE_TIME_EVENTS | AE_DONT_WAIT), 1);
    CHECK_EQ(t.n_calls, 0);
    CHECK_EQ(aeProcessEvents(loop, AE_FILE_EVENTS), 1);
    CHECK_EQ(t.n_calls, 1);
    CHECK_STR(record, "c");
    aeSetBeforeSleepProc(loop, NULL);
    CHECK_EQ(aeProcessEvents(loop, AE_FILE_EVENTS | AE_DONT_WAIT | AE_CALL_AFTER_SLEEP |
                                       AE_CALL_BEFORE_SLEEP), 1);
    CHECK_STR(record, "c1>c");
    struct timespec until_due = { .tv_sec = 0, .tv_nsec = 5 * MS };
    nanosleep(&until_due, NULL);
    CHECK_EQ(aeProcessEvents(loop, AE_ALL_EVENTS | AE_DONT_WAIT), 1); // the time
    CHECK_EQ(n_rings, 2);
    tube_close(&t);
    end();
}
static void nest(aeEventLoop *l, int fd, void *data, int mask) {
    char c;
    (void)data, (void)mask;
    CHECK_EQ(read(fd, &c, 1), 1);
    note("[");
    (void)aeProcessEvents(l, AE_ALL_EVENTS | AE_DONT_WAIT);
    note("]");
}
TEST(callback_makes_a_round_of_its_own) {
    BEGIN();
    for (int i = 0; i < 2; i++) {
        tube_open(&pair[i]);
        tube_put(&pair[i], "1");
        watch(pair[i].in, AE_READABLE, nest, NULL);
    }
    CHECK_EQ(aeProcessEvents(loop, AE_ALL_EVENTS), 2);
    CHECK_STR(record, "[[]]"); // and the outer round calls back for nothing that was read inside
    tube_close(&pair[0]), tube_close(&pair[1]);
    end();
}
static long long nest_time(aeEventLoop *l, long long id, void *data) {
    (void)id, (void)data;
    note("[");
    (void)aeProcessEvents(l, AE_ALL_EVENTS | AE_DONT_WAIT);
    note("]");
    return AE_NOMORE;
}
TEST(time_makes_a_round_of_its_own_and_is_not_called_in_it) {
    BEGIN();
    aeCreateTimeEvent(loop, 0, nest_time, NULL, NULL);
    aeCreateTimeEvent(loop, 0, nest_time, NULL, NULL);
    CHECK_EQ(aeProcessEvents(loop, AE_ALL_EVENTS), 1); // the other one belongs to the inner round
    CHECK_STR(record, "[[]]");
    end();
}
TEST(loop_runs_again_after_it_was_stopped) {
    BEGIN();
    for (int i = 0; i < 3; i++) stop_after(1), run();
    end();
}
#endif

// ---- tasks beside the callbacks

#if defined(AE_TASK) || defined(AE_GUEST)
typedef struct {
    volt_frame frame;
    int *n;
} yielder;
static volt_poll yielder_run(volt_cx *cx, void *arg) {
    yielder *y = (yielder *)arg;
    VOLT_BEGIN(cx, y);
    while (!volt_is_cancelled(cx)) {
        ++*y->n;
        VOLT_AWAIT(volt_yield(cx));
    }
    VOLT_END(0);
}
#endif

#ifdef AE_TASK
typedef struct {
    volt_frame frame;
    volt_group tasks;
    aeTask loop;
    int n, rc;
} beside;
static beside *b;
static volt_poll beside_run(volt_cx *cx, void *arg) {
    b = (beside *)arg;
    VOLT_BEGIN(cx, b);
    b->rc = VOLT_GROUP_SPAWN(cx, &b->tasks, yielder_run, (yielder){ .n = &b->n });
    b->loop.loop = loop;
    if (b->rc == 0) VOLT_AWAIT(b->rc, aeMainTask(cx, &b->loop));
    VOLT_AWAIT(volt_group_close(cx, &b->tasks));
    VOLT_END(b->rc);
}
typedef struct {
    volt_frame frame;
    aeTask loop;
    int rc;
} looper;
typedef struct {
    volt_frame frame;
    volt_handle handle;
    const tube *t;
    int at_wait, i, rc;
} canceller;
static int n_seen;
static void sees_the_task(aeEventLoop *l, int fd, void *data, int mask) {
    (void)fd, (void)data, (void)mask;
    if (b->n > 100 && ++n_seen == 10) aeStop(l);
}
static long long at_once(aeEventLoop *l, long long id, void *data) {
    (void)l, (void)id, (void)data;
    return 0;
}
static const volt_config one_worker = { .workers = 1 };
TEST(loop_that_always_has_something_holds_up_no_task_and_none_holds_it_up) {
    tube t;
    beside s = { .n = 0 };
    BEGIN();
    tube_open(&t);
    tube_put(&t, "not read");
    watch(t.in, AE_READABLE, sees_the_task, NULL);
    aeCreateTimeEvent(loop, 0, at_once, NULL, NULL);
    CHECK_EQ(volt_run(&one_worker, beside_run, &s), 0);
    tube_close(&t);
    end();
}
static volt_poll looper_run(volt_cx *cx, void *arg) {
    looper *l = (looper *)arg;
    VOLT_BEGIN(cx, l);
    l->loop.loop = loop;
    VOLT_AWAIT(l->rc, aeMainTask(cx, &l->loop));
    VOLT_END(l->rc);
}
// Ends the waits of the loop by one of five bytes each, and one of them by a cancellation, too.
static volt_poll canceller_run(volt_cx *cx, void *arg) {
    canceller *c = (canceller *)arg;
    VOLT_BEGIN(cx, c);
    c->rc = VOLT_SPAWN(cx, &c->handle, looper_run, (looper){ .rc = 0 });
    for (c->i = 1; c->rc == 0 && c->i <= 5; c->i++) {
        while (n_rounds < c->i && c->i <= c->at_wait) VOLT_AWAIT(volt_yield(cx));
        if (c->i == c->at_wait) volt_cancel(&c->handle);
        tube_put(c->t, c->i < 5 ? "x" : ".");
    }
    if (c->rc == 0) VOLT_AWAIT(c->rc, volt_join(cx, &c->handle));
    VOLT_END(c->rc);
}
TEST(loop_that_is_cancelled_at_any_of_its_waits_ends_and_leaves_nothing) {
    for (int k = 1, rc = -ECANCELED; rc != 0; k++) {
        tube t;
        BEGIN();
        n_rounds = 0;
        tube_open(&t);
        watch(t.in, AE_READABLE, read_one, &t);
        aeSetBeforeSleepProc(loop, count_round);
        canceller c = { .t = &t, .at_wait = k };
        rc = volt_run(&one_worker, canceller_run, &c);
        CHECK(rc == 0 ? k == 6 : rc == -ECANCELED && k < 6);
        CHECK_EQ(t.n_calls, k - 1);
        tube_close(&t);
        end();
    }
}
typedef struct {
    volt_frame frame;
    aeTask loop;
    int i, rc;
} twice;
static volt_poll twice_run(volt_cx *cx, void *arg) {
    twice *w = (twice *)arg;
    VOLT_BEGIN(cx, w);
    for (w->i = 0; w->i < 2 && w->rc == 0; w->i++) {
        begin();
        w->loop.loop = loop;
        stop_after(1);
        VOLT_AWAIT(w->rc, aeMainTask(cx, &w->loop));
        aeDeleteEventLoop(loop);
    }
    VOLT_END(w->rc);
}
static int n_logged;
static void count_log(void *user, int item, const char *text) {
    (void)user, (void)item;
    printf("%s\n", text);
    n_logged++;
}
TEST(task_runs_one_loop_after_the_other) {
    const volt_config config = { .workers = 1, .log = { .fn = count_log } };
    twice w = { .rc = 0 };
    n_left = descriptors();
    CHECK_EQ(volt_run(&config, twice_run, &w), 0);
    CHECK_EQ(n_logged, 0);
    CHECK_EQ(descriptors(), n_left);
}
static void makes_a_round(aeEventLoop *l, int fd, void *data, int mask) {
    (void)fd, (void)data, (void)mask;
    CHECK_EQ(aeProcessEvents(l, AE_ALL_EVENTS | AE_DONT_WAIT), 0);
    aeStop(l);
}
TEST(round_below_a_task_has_no_events) {
    tube t;
    BEGIN();
    tube_open(&t);
    tube_put(&t, "x");
    watch(t.in, AE_READABLE, makes_a_round, NULL);
    run();
    tube_close(&t);
    end();
}
#endif

#ifdef AE_GUEST
typedef struct {
    volt_frame frame;
    int *n, n_ms;
    pthread_t *thread;
} napper;
static volt_poll napper_run(volt_cx *cx, void *arg) {
    napper *n = (napper *)arg;
    VOLT_BEGIN(cx, n);
    for (*n->n = 0; *n->n < n->n_ms; ++*n->n) {
        if (n->thread) *n->thread = pthread_self();
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    aeStop(loop);
    VOLT_END(0);
}
TEST(tasks_run_between_the_callbacks_in_the_thread_of_the_loop) {
    int n = 0;
    tube t;
    pthread_t thread;
    BEGIN();
    tube_open(&t);
    tube_put(&t, "123");
    watch(t.in, AE_READABLE, read_one, &t);
    memset(&thread, 0, sizeof thread);
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, napper_run,
                           (napper){ .n = &n, .n_ms = 20, .thread = &thread }), 0);
    aeDeleteFileEvent(loop, t.in, AE_READABLE);
    tube_put(&t, "4");
    watch(t.in, AE_READABLE, always, &t.n_calls);
    run();
    CHECK_EQ(n, 20);
    CHECK(t.n_calls > 0);
    CHECK(pthread_equal(thread, pthread_self()));
    tube_close(&t);
    end();
}
TEST(task_that_always_yields_holds_up_no_callback) {
    tube t;
    int n = 0;
    BEGIN();
    tube_open(&t);
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, yielder_run, (yielder){ .n = &n }), 0);
    watch(t.in, AE_READABLE, read_one, &t);
    tube_put(&t, "1234567890.");
    aeSetBeforeSleepProc(loop, count_round);
    run();
    CHECK_EQ(t.n_calls, 11);
    CHECK(n > 0 && n <= (n_rounds + 1) * AE_STEP_POLLS);
    tube_close(&t);
    end();
}
TEST(idle_guest_does_not_wake_the_loop) {
    int n = 0;
    BEGIN();
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, napper_run, (napper){ .n = &n, .n_ms = 1 }), 0);
    run(); // the runtime has run
    aeSetBeforeSleepProc(loop, count_round);
    stop_after(200);
    run();
    CHECK(n_rounds <= 3);
    end();
}
typedef struct {
    volt_frame frame;
    volt_job job;
    tube *t;
    int ticks, n, rc;
} changer;
static int blocks(void *arg) { // until there were five ticks
    char ticks[5];
    return (int)read(*(int *)arg, ticks, sizeof ticks);
}
static volt_poll changer_run(volt_cx *cx, void *arg) {
    changer *c = (changer *)arg;
    VOLT_BEGIN(cx, c);
    for (; c->n < 5; c->n += c->rc) {
        VOLT_AWAIT(c->rc, volt_blocking(cx, &c->job, blocks, &c->ticks));
        CHECK(c->rc > 0);
    }
    aeDeleteFileEvent(loop, c->t[0].in, AE_READABLE); // it fires in each round, in this one, too
    tube_put(&c->t[1], ".");
    watch(c->t[1].in, AE_READABLE, read_one, &c->t[1]);
    c->t[0].n_calls = 0;
    VOLT_END(0);
}
static long long tick(aeEventLoop *l, long long id, void *data) {
    (void)l, (void)id;
    CHECK_EQ(write(*(int *)data, "x", 1), 1);
    return 2;
}
TEST(task_changes_the_events_of_the_loop_and_its_blocking_call_holds_up_nothing) {
    tube t[2];
    int ticks[2];
    BEGIN();
    tube_open(&t[0]), tube_open(&t[1]);
    CHECK_EQ(pipe2(ticks, O_CLOEXEC), 0); // blocks
    tube_put(&t[0], "not read");
    watch(t[0].in, AE_READABLE, always, &t[0].n_calls);
    aeCreateTimeEvent(loop, 1, tick, &ticks[1], NULL);
    changer c = { .t = t, .ticks = ticks[0] };
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, changer_run, c), 0);
    run();
    CHECK_EQ(t[1].n_calls, 1);
    CHECK_EQ(t[0].n_calls, 0);
    tube_close(&t[0]), tube_close(&t[1]);
    close(ticks[0]), close(ticks[1]);
    end();
}
static void *spawn_later(void *arg) {
    static int n;
    struct timespec pause = { .tv_sec = 0, .tv_nsec = 20 * MS };
    nanosleep(&pause, NULL);
    CHECK_EQ(VOLT_RT_SPAWN((volt_rt *)arg, NULL, napper_run, (napper){ .n = &n, .n_ms = 2 }), 0);
    return NULL;
}
TEST(task_that_another_thread_spawns_wakes_the_loop) {
    pthread_t thread;
    BEGIN();
    CHECK_EQ(pthread_create(&thread, NULL, spawn_later, aeGetVolt(loop)), 0);
    run();
    pthread_join(thread, NULL);
    end();
}
typedef struct {
    volt_frame frame;
    volt_shield shield;
    int n_ms;
} leaver;
static volt_poll leaver_run(volt_cx *cx, void *arg) {
    leaver *l = (leaver *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(volt_sleep_forever(cx));
    volt_shield_begin(cx, &l->shield, VOLT_S(5));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(l->n_ms)));
    volt_shield_end(cx, &l->shield);
    note("left");
    VOLT_END(0);
}
TEST(end_of_the_loop_lets_its_tasks_clean_up) {
    BEGIN();
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, leaver_run, (leaver){ .n_ms = 5 }), 0);
    stop_after(5);
    run();
    CHECK_STR(record, "");
    end();
    CHECK_STR(record, "left");
}
typedef struct {
    volt_frame frame;
    int *rc;
} nester;
static volt_poll nester_run(volt_cx *cx, void *arg) {
    nester *n = (nester *)arg;
    VOLT_BEGIN(cx, n);
    *n->rc = aeProcessEvents(loop, AE_ALL_EVENTS | AE_DONT_WAIT);
    VOLT_AWAIT(volt_yield(cx));
    aeStop(loop);
    VOLT_END(0);
}
TEST(task_makes_a_round_of_the_loop_in_which_no_other_task_runs) {
    tube t;
    int rc = -1;
    BEGIN();
    tube_open(&t);
    watch(t.in, AE_READABLE, read_one, &t);
    tube_put(&t, "1");
    CHECK_EQ(VOLT_RT_SPAWN(aeGetVolt(loop), NULL, nester_run, (nester){ .rc = &rc }), 0);
    run();
    CHECK_EQ(rc, 1);
    CHECK_EQ(t.n_calls, 1);
    tube_close(&t);
    end();
}
#endif
