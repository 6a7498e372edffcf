// SPDX-License-Identifier: MIT OR 0BSD
// Arguments at their limits, scopes that close out of order, descriptors without a runtime.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "frozen_runtime.h"
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

// ---- scopes

// A group that is seen empty leaves its task's list of scopes from below two open shields.
ROOT_TEST_1(group_may_end_below_open_shields, {
    volt_group g;
    volt_shield outer, inner;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    GROUP_SPAWN(&s->g, giver_run, (giver){.value = 1});
    volt_shield_begin(cx, &s->outer, VOLT_NEVER);
    volt_shield_begin(cx, &s->inner, VOLT_NEVER);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    volt_shield_end(cx, &s->inner);
    volt_shield_end(cx, &s->outer);
    VOLT_END(0);
}
ROOT_TEST_1(shield_without_time_cancels_awaits_at_once, {
    volt_shield sh;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->sh, 0);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(60)));
    CHECK_EQ(s->rc, -ECANCELED);
    volt_shield_end(cx, &s->sh);
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST(token_cancels_only_its_descendants) {
    volt_token root, left, right, leaf[3];
    volt_token_init(&root, NULL);
    volt_token_init(&left, &root);
    volt_token_init(&right, &root);
    for (int i = 0; i < 3; i++) volt_token_init(&leaf[i], &left);
    volt_token_cancel(&left);
    CHECK(volt_token_is_cancelled(&left));
    for (int i = 0; i < 3; i++) CHECK(volt_token_is_cancelled(&leaf[i]));
    CHECK(!volt_token_is_cancelled(&right) && !volt_token_is_cancelled(&root));
    volt_token_cancel(&root);
    CHECK(volt_token_is_cancelled(&right));
    volt_token_deinit(&leaf[1]); // one between others, the first, the last
    volt_token_deinit(&leaf[2]);
    volt_token_deinit(&leaf[0]);
    volt_token_deinit(&right);
    volt_token_deinit(&left);
    volt_token_deinit(&root);
}

// ---- arguments at their limits

// Written by hand, as an async function asserts that its whole state was spawned.
static volt_poll ends_at_once(volt_cx *cx, void *state) {
    (void)cx, (void)state;
    return volt_ready(0);
}
ROOT_TEST_1(spawn_copies_state_of_any_small_size, {
    volt_handle h;
    int64_t rc;
    size_t extra;
}) {
    VOLT_BEGIN(cx, s);
    for (s->extra = 0; s->extra <= 24; s->extra++) {
        union {
            volt_frame frame;
            char bytes[sizeof(volt_frame) + 24];
        } state;
        memset(&state, 0, sizeof state);
        for (size_t i = 0; i < s->extra; i++)
            state.bytes[sizeof(volt_frame) + i] = (char)(i + 1);
        CHECK_EQ(volt_spawn(cx, &s->h, ends_at_once, &state, sizeof(volt_frame) + s->extra), 0);
        const char *copy = (const char *)volt__task_state(s->h.task_) + sizeof(volt_frame);
        for (size_t i = 0; i < s->extra; i++) CHECK_EQ(copy[i], (char)(i + 1));
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}
// Not a byte beside the state is read: behind it lies memory that may not be accessed.
ROOT_TEST_1(spawn_reads_no_byte_beyond_state, {
    volt_handle h;
    int64_t rc;
    size_t extra, page;
    char *end;
}) {
    VOLT_BEGIN(cx, s);
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    s->end = (char *)mmap(NULL, 2 * s->page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(s->end != MAP_FAILED);
    s->end += s->page;
    CHECK_EQ(mprotect(s->end, s->page, PROT_NONE), 0);
    for (s->extra = 0; s->extra <= 24; s->extra += 8) {
        size_t size = sizeof(volt_frame) + s->extra;
        CHECK_EQ(volt_spawn(cx, &s->h, ends_at_once, s->end - size, size), 0);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
        CHECK_EQ(s->rc, 0);
    }
    CHECK_EQ(munmap(s->end - s->page, 2 * s->page), 0);
    VOLT_END(0);
}
ROOT_TEST_1(spawn_refuses_invalid_size_or_used_frame, {
    volt_group g;
    giver used;
    volt_handle h;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_rt *rt = volt_cx_rt(cx);
    CHECK_EQ(volt_spawn(cx, NULL, giver_run, &s->used, sizeof(volt_frame) - 1), -EINVAL);
    CHECK(!volt_task_create(rt, giver_run, sizeof(volt_frame) - 1));
    CHECK(!volt_task_create(rt, giver_run, SIZE_MAX));
    CHECK(!volt_task_create(rt, giver_run, (size_t)UINT32_MAX));
    VOLT_AWAIT(s->rc, giver_run(cx, &s->used));
    CHECK_EQ(volt_group_spawn(cx, &s->g, giver_run, &s->used, sizeof s->used), -EINVAL);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EINVAL);
    VOLT_END(0);
}
ROOT_TEST_1(group_spawn_is_refused_after_shutdown, {
    volt_group g;
    giver giver;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_shutdown(volt_cx_rt(cx), 0), -EINPROGRESS);
    while (s->rc == 0) VOLT_AWAIT(s->rc, volt_yield(cx)); // until this worker knows of it
    CHECK_EQ(s->rc, -ECANCELED);
    CHECK_EQ(volt_group_spawn(cx, &s->g, giver_run, &s->giver, sizeof s->giver), -ESHUTDOWN);
    VOLT_END(0);
}
// A loop without awaits learns of a shutdown before its worker does.
ROOT_TEST_1(task_sees_at_once_shutdown_that_it_began, { int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    CHECK(!volt_is_cancelled(cx));
    CHECK_EQ(volt_shutdown(volt_cx_rt(cx), 0), -EINPROGRESS);
    CHECK(volt_is_cancelled(cx));
    VOLT_AWAIT(s->rc, volt_yield(cx));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}
// The bracket has looked at its token, and then what it waits for sets it.
static volt_poll sets_its_own_bracket(volt_cx *cx, volt_token *stop) {
    volt_token_cancel(stop);
    return volt_sleep_forever(cx);
}
ROOT_TEST_1(with_token_ends_if_its_inner_poll_cancels_the_token, {
    volt_token stop;
    volt_token_link link;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->link, &s->stop, sets_its_own_bracket(cx, &s->stop)));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}
ROOT_TEST_1(join_any_over_no_children_gives_ecanceled, { giver g[1]; int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_join_any(cx, giver_run, s->g, sizeof s->g[0], 0));
    CHECK_EQ(s->rc, -ECANCELED); // there is no first one
    VOLT_AWAIT(s->rc, volt_join_all(cx, giver_run, s->g, sizeof s->g[0], 0));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
TEST(run_refuses_root_with_used_frame) {
    static giver g;
    g.value = 1;
    CHECK_EQ(run_on(1, giver_run, &g), 1);
    CHECK_EQ(run_on(1, giver_run, &g), -EINVAL);
}
TEST(run_clamps_result_to_int) {
    static giver most, least;
    most.value = (int64_t)INT_MAX + 1;
    least.value = (int64_t)INT_MIN - 1;
    CHECK_EQ(run_on(1, giver_run, &most), INT_MAX);
    CHECK_EQ(run_on(1, giver_run, &least), INT_MIN);
}
TEST(try_join_accepts_null_result_and_uses_up_handle) {
    volt_rt *rt = create_on(1);
    volt_handle h;
    RT_SPAWN(rt, &h, giver_run, (giver){.value = 3});
    UNTIL(volt_try_join(&h, NULL) == 0);
    CHECK_EQ(volt_try_join(&h, NULL), -EINVAL); // the handle is used up
    destroy(rt);
}
TEST(create_refuses_invalid_configuration) {
    for (int i = 0; i < 10; i++) {
        volt_config c = test_config(2);
        volt_rt *rt = NULL;
        if (i == 0) c.workers = VOLT_MAX_WORKERS + 1;
        if (i == 1) c.reactors = 3;
        if (i == 2) c.budget = UINT16_MAX + 1;
        if (i == 3) c.event_interval = 1000001;
        if (i == 4) c.stack_size = 65535;
        if (i == 5) c.watchdog_us = 99;
        if (i == 6) c.start_all_workers = 2;
        if (i == 7) c.drain_timeout = -1;
        if (i == 8) c.alloc.free = NULL;
        if (i == 9) c.size = 1;
        CHECK_EQ(volt_create(&c, &rt), -EINVAL);
        CHECK(!rt);
    }
}
// A task in the LIFO slot of a worker that is stuck in a poll is taken by the watchdog only.
typedef struct {
    volt_frame frame;
    volt_time at_most;
    int n_ended, was_rescued;
    awaiter a;
} occupant;
static volt_poll occupant_run(volt_cx *cx, void *arg) {
    occupant *o = (occupant *)arg;
    VOLT_BEGIN(cx, o);
    SPAWN(NULL, giver_run, (giver){.n_ended = &o->n_ended});
    for (volt_time end = volt_now() + o->at_most; volt_now() < end && !o->was_rescued;)
        o->was_rescued = READ(o->n_ended);
    VOLT_AWAIT(until_reaches(cx, &o->a, &o->n_ended, 1));
    VOLT_END(6);
}
// Its timer is the first descriptor that a runtime opens.
TEST_OF_THREADS(watchdog_with_descriptor_0_is_closed) {
    CHECK_EQ(close(STDIN_FILENO), 0);
    volt_rt *rt = create_on(2);
    CHECK_EQ(rt->watchdog.fd, STDIN_FILENO);
    destroy(rt);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
}
TEST(stuck_worker_is_rescued_unless_watchdog_is_off) {
    for (int is_on = 0; is_on < 2; is_on++) {
        occupant o = {.at_most = is_on ? VOLT_S(10) : VOLT_MS(30)};
        volt_config c = test_config(2);
        volt_counters all;
        volt_rt *rt = NULL;
        c.start_all_workers = 1;
        c.watchdog_us = is_on ? 750 : UINT32_MAX;
        CHECK_EQ(volt_create(&c, &rt), 0);
        CHECK_EQ(rt->watchdog.fd >= 0, is_on);
        CHECK_EQ(volt_block_on(rt, occupant_run, &o), 6);
        CHECK_EQ(o.was_rescued, is_on);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &all);
        CHECK_EQ(all.watchdog_scans > 0, is_on);
        CHECK_EQ(all.rescued > 0, is_on);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
TEST(cgroup_path_is_refused_unless_it_fits) {
    char out[32];
    CHECK_EQ(volt__path(out, sizeof out, "/r", "/d", 2, "/f"), strlen("/r/sys/fs/cgroup/d/f"));
    CHECK_STR(out, "/r/sys/fs/cgroup/d/f");
    CHECK_EQ(volt__path(out, 3, "/root", "/d", 2, "/f"), 0);
    CHECK_EQ(volt__path(out, 8, "/r", "/d", 2, "/f"), 0);
    CHECK_EQ(volt__path(out, 17, "/r", "/d", 2, "/f"), 0);
    CHECK_EQ(volt__path(out, 19, "/r", "/d", 2, "/f"), 0);
    CHECK_EQ(volt__path(out, 20, "/r", "/d", 2, "/f"), 0); // the end of the string
    CHECK_EQ(volt__path(out, 21, "/r", "/d", 2, "/f"), 20);
}
// From version 2 nothing comes where the file names no group of it, nor below a root of any length.
TEST(quota_is_0_without_cgroup_below_root_of_any_length) {
    char root[600];
    memset(root, 'x', sizeof root);
    for (size_t len = 480; len < sizeof root; len += 7) {
        root[len] = 0;
        CHECK_EQ(volt__quota(root), 0);
        root[len] = 'x';
    }
}
// Wherever the end of the buffer falls: into the site, the text, the number or the unit.
static char last_text[600];
static void keep_text(void *user, int item, const char *text) {
    (void)user, (void)item;
    snprintf(last_text, sizeof last_text, "%s", text);
}
TEST(log_text_is_cut_at_its_buffer) {
    enum { BUFFER = 256 };
#define LOG_TEXT(name_, text_) text_,
    static const char *const texts[] = { VOLT__LOG_ITEMS(LOG_TEXT) };
#undef LOG_TEXT
    static const char unit[] = " units";
    const char *what = texts[VOLT_LOG_STILL_ALIVE];
    char site[400], want[600];
    volt_rt *rt = still_rt(1);
    rt->cfg.log.fn = keep_text;
    for (size_t n = 0; n < sizeof site; n++) {
        memset(site, 's', n);
        site[n] = 0;
        snprintf(want, sizeof want, "%s: %s: %u%s", site, what, UINT32_MAX, unit);
        size_t len = strlen(want);
        want[BUFFER - 1] = 0;
        volt__log_number(rt, VOLT_LOG_STILL_ALIVE, site, UINT32_MAX, unit);
        CHECK_STR(last_text, want);
        CHECK_EQ(strlen(last_text), len < BUFFER ? len : BUFFER - 1);
    }
    still_end(rt);
}

// ---- descriptors

ROOT_TEST_1(readiness_of_own_fd_is_level_triggered, {
    int fd[2];
    char byte;
    int64_t rc;
    volt_timer t;
    volt_group g;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fd), 0);
    // a read that had to wait makes the descriptor an own one
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_read(cx, s->fd[0], &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_writable(cx, s->fd[0]));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_readable(cx, s->fd[0])));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK_EQ(write(s->fd[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_readable(cx, s->fd[0]));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_readable(cx, s->fd[0])); // level-triggered: still unread
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(close(s->fd[0]), 0); // behind its back
    VOLT_AWAIT(s->rc, volt_readable(cx, s->fd[0]));
    CHECK_EQ(s->rc, -EBADF);
    volt_fd_release(cx, s->fd[0]);
    volt_fd_release(cx, -1);
    volt_close(cx, -1);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    int fd[2];
    int64_t rc;
} pipe_writer;
static volt_poll pipe_writer_run(volt_cx *cx, void *arg) {
    pipe_writer *s = (pipe_writer *)arg;
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe2(s->fd, O_CLOEXEC), 0);
    CHECK_EQ(close(s->fd[0]), 0);
    VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "x", 1));
    CHECK_EQ(s->rc, -EPIPE);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
// On a worker with a thread of its own, where SIGPIPE is blocked for good.
TEST(write_to_broken_pipe_on_worker_thread_gives_epipe) {
    static pipe_writer s;
    volt_rt *rt = create_on(1);
    CHECK_EQ(volt_block_on(rt, pipe_writer_run, &s), 0);
    destroy(rt);
}
TEST(socket_options_give_error_of_kernel) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(volt_set_linger(fd, 3), 0);
    CHECK_EQ(volt_set_linger(fd, 0), 0);
    CHECK_EQ(volt_set_linger(fd, -1), 0);
    CHECK_EQ(volt_set_linger(-1, 3), -EBADF);
    CHECK_EQ(volt_set_nodelay(-1, 1), -EBADF);
    CHECK_EQ(volt_set_buffers(fd, 0, 8192), 0);
    CHECK_EQ(volt_set_buffers(fd, 8192, 0), 0);
    CHECK_EQ(volt_set_buffers(-1, 8192, 8192), -EBADF);
    CHECK_EQ(volt_set_keepalive(fd, 0, 0, 0), 0);
    CHECK_EQ(volt_set_keepalive(fd, 1 << 30, 1, 1), -EINVAL);
    CHECK_EQ(volt_set_keepalive(fd, 1, 1 << 30, 1), -EINVAL);
    CHECK_EQ(volt_set_keepalive(fd, 1, 1, 1 << 30), -EINVAL);
    CHECK_EQ(volt_set_keepalive(-1, 1, 1, 1), -EBADF);
    CHECK_EQ(volt_sock_shutdown(fd, 3), -EINVAL);
    CHECK_EQ(volt_sock_shutdown(fd, SHUT_RD), 0); // not connected any more, or yet
    CHECK_EQ(volt_sock_shutdown(fd, SHUT_WR), 0);
    CHECK_EQ(close(fd), 0);
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(volt_sock_shutdown(pair[0], SHUT_RD), 0);
    CHECK_EQ(volt_sock_shutdown(pair[0], SHUT_RDWR), 0);
    close(pair[0]);
    close(pair[1]);
}
TEST(listen_refuses_invalid_port_and_address) {
    volt_listen_options o = {.backlog = 1, .is_v6only = 1};
    volt_addr a;
    char text[100];
    CHECK_EQ(volt_listen("127.0.0.1", 65536, NULL), -EINVAL);
    CHECK_EQ(volt_listen("localhost", 0, NULL), -EINVAL); // no numeric address
    for (; o.backlog <= 2; o.backlog++, o.is_v6only = 0) {
        int fd = volt_listen("::1", 0, &o);
        CHECK(fd >= 0 || fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT); // a kernel without IPv6
        if (fd >= 0) CHECK_EQ(close(fd), 0);
    }
    memset(text, 'x', sizeof text);
    strcpy(text + sizeof text - 4, ":80");
    CHECK_EQ(volt_addr_parse(&a, text), -EINVAL);
}
// The kernel needs no 0 behind a path that fills its room.
TEST(addr_format_takes_unix_path_without_terminator) {
    volt_addr a;
    char text[200];
    struct sockaddr_un un;
    memset(&un, 'x', sizeof un);
    un.sun_family = AF_UNIX;
    memset(&a, 'y', sizeof a);
    memcpy(a.sa_, &un, sizeof un);
    a.len_ = sizeof un;
    CHECK_EQ(volt_addr_format(&a, text, sizeof text), 5 + sizeof un.sun_path);
    CHECK_EQ(strspn(text + 5, "x"), sizeof un.sun_path);
}
ROOT_TEST_1(pollset_refuses_invalid_arguments, {
    volt_pollset p;
    volt_pollev ev[70];
    int file;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pollset_set(&s->p, 0, VOLT_IN), -EINVAL);
    VOLT_AWAIT(s->rc, volt_pollset_wait(cx, &s->p, s->ev, 1));
    CHECK_EQ(s->rc, -EINVAL);
    CHECK_EQ(volt_pollset_open(&s->p), 0);
    VOLT_AWAIT(s->rc, volt_pollset_wait(cx, &s->p, s->ev, 0));
    CHECK_EQ(s->rc, -EINVAL);
    s->file = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(s->file >= 0);
    CHECK_EQ(volt_pollset_set(&s->p, s->file, VOLT_IN), -EPERM); // epoll takes no such file
    CHECK_EQ(volt_pollset_set(&s->p, s->file, 0), -EPERM);
    CHECK_EQ(volt_pollset_set(&s->p, -1, 0), 0);
    CHECK_EQ(volt_pollset_set(&s->p, s->p.epfd_ - 1, 0), -EINVAL); // itself
    CHECK_EQ(close(s->file), 0);
    volt_pollset_close(cx, &s->p);
    volt_pollset_close(cx, &s->p);
    VOLT_END(0);
}
// There is no memory for the entry, and none is looked up: the first operation will report it.
TEST(fd_adopt_and_release_do_nothing_without_memory) {
    volt_rt *rt = still_rt(1);
    volt__task *t = still_task(rt->workers[0]);
    volt_frame frame;
    memset(&frame, 0, sizeof frame);
    volt_cx *cx = still_cx(rt->workers[0], t, &frame);
    test_heap.fail_at = test_heap.n_allocs + 1;
    test_heap.is_sticky = 1;
    volt__fd_adopt(cx, 5, 0);
    CHECK(!rt->fds.dir[0]);
    volt_fd_release(cx, 5);
    CHECK(!rt->fds.dir[0]);
    still_end(rt);
}
