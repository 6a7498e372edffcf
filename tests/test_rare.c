// SPDX-License-Identifier: MIT OR 0BSD
// Ways through volt.h that programs rarely take: no budget left at the very first poll, scopes that
// close out of order, arguments at their limits. `make coverage` showed that no other test did.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "still.h"
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

// ---- no budget left: the wait is put off to the next poll, and nothing else changes

// The code between two awaits runs once, so only the first poll of the next one finds no budget.
static void spend_budget(volt_cx *cx) { cx->budget_ = 0; }

ROOT_TEST_1(group_waits_complete_without_budget, {
    volt_group g;
    giver giver;
    int64_t rc;
    uint64_t id;
}) {
    VOLT_BEGIN(cx, s);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    volt_group_collect(&s->g);
    s->giver.value = 7;
    CHECK_EQ(volt_group_spawn(cx, &s->g, giver_run, &s->giver, sizeof s->giver), 0);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, NULL));
    CHECK_EQ(s->rc, 7);
    VOLT_AWAIT(s->rc, volt_group_next(cx, &s->g, &s->id));
    CHECK_EQ(s->rc, -ENOENT);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_group_close(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}
ROOT_TEST_1(sleep_forever_without_budget_can_time_out, {
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    spend_budget(cx);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_END(0);
}
ROOT_TEST_1(connect_and_accept_complete_without_budget, {
    volt_addr a;
    int lfd, fd, peer;
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    spend_budget(cx);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->a));
    CHECK(s->fd >= 0);
    spend_budget(cx);
    VOLT_AWAIT(s->peer, volt_accept(cx, s->lfd));
    CHECK(s->peer >= 0);
    volt_close(cx, s->fd);
    volt_close(cx, s->peer);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// The frame notes of which file a read was that went round; the next read is of another one.
ROOT_TEST_1(next_read_is_not_bound_to_file_of_requeued_read, {
    int a[2], b[2], number;
    char buf[8];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->b), 0);
    s->number = s->b[0];
    CHECK_EQ(write(s->b[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_read(cx, s->b[0], s->buf, 1));
    CHECK_EQ(s->rc, 1);
    volt_close(cx, s->b[0]);
    close(s->b[1]);
    CHECK_EQ(pipe(s->b), 0);
    CHECK_EQ(s->b[0], s->number); // the second file of this number
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s->a), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(write(s->a[1], "half", 4), 4);
    cx->budget_ = 1;
    VOLT_AWAIT(s->rc, volt_read_exact(cx, s->a[0], s->buf, 8));
    CHECK_EQ(s->rc, 8);
    CHECK_EQ(write(s->b[1], "x", 1), 1);
    VOLT_AWAIT(s->rc, volt_read(cx, s->b[0], s->buf, 1));
    CHECK_EQ(s->rc, 1);
    for (int i = 0; i < 2; i++) volt_close(cx, s->a[i]), volt_close(cx, s->b[i]);
    VOLT_END(0);
}

// A wait that is polled again by the wake-up of another one stays linked.
typedef struct {
    volt_frame frame;
    volt_arm slept, waited, next;
    volt_group waits, collects;
    int64_t rc, value;
} linked;
ROOT_TEST_1(group_wait_polled_again_stays_linked, { linked l; }) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->l.collects);
    GROUP_SPAWN(&s->l.waits, napper_run, (napper){.d = VOLT_MS(30)});
    GROUP_SPAWN(&s->l.collects, napper_run, (napper){.d = VOLT_MS(30), .value = 9});
    VOLT_AWAIT(s->l.rc, VOLT_JOIN_ALL(VOLT_ARM(&s->l.slept, volt_sleep(cx, VOLT_MS(1))),
                                      VOLT_ARM(&s->l.waited, volt_group_wait(cx, &s->l.waits)),
                                      VOLT_ARM(&s->l.next, s->l.value,
                                               volt_group_next(cx, &s->l.collects, NULL))));
    CHECK_EQ(s->l.rc, 0);
    CHECK_EQ(s->l.value, 9);
    GROUP_SPAWN(&s->l.collects, giver_run, (giver){.value = 4});
    VOLT_AWAIT(s->l.rc, volt_group_wait(cx, &s->l.collects)); // its result is kept
    CHECK_EQ(s->l.rc, 0);
    VOLT_AWAIT(s->l.rc, volt_group_next(cx, &s->l.collects, NULL));
    CHECK_EQ(s->l.rc, 4);
    VOLT_END(0);
}

// A task that ignores its cancellation must not own its worker, whatever it waits for: a yield that
// gives -ECANCELED does not put it into the queue, but costs a unit of the budget, at whose end the
// next task has its turn.
typedef struct {
    volt_frame frame;
    int n, *n_polls, *n_cancelled;
    int64_t rc;
} stubborn;
static volt_poll yield_stubbornly(volt_cx *cx, stubborn *s) {
    VOLT_BEGIN(cx, s);
    for (s->n = 0; s->n < 2 * VOLT_BUDGET; s->n++) {
        VOLT_AWAIT(s->rc, volt_yield(cx));
        if (s->rc == -ECANCELED) COUNT(*s->n_cancelled);
    }
    VOLT_END(0);
}
static volt_poll stubborn_run(volt_cx *cx, void *arg) {
    stubborn *s = (stubborn *)arg;
    int before = *s->n_cancelled, *n_cancelled = s->n_cancelled;
    COUNT(*s->n_polls);
    volt_poll p = yield_stubbornly(cx, s);
    CHECK(*n_cancelled - before <= VOLT_BUDGET);
    return p;
}
ROOT_TEST_1(cancelled_yield_costs_budget, {
    volt_handle h;
    int n_polls, n_cancelled;
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, stubborn_run,
          (stubborn){.n_polls = &s->n_polls, .n_cancelled = &s->n_cancelled});
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_polls, 1));
    volt_cancel(&s->h);
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_polls, 2));
    CHECK_EQ(s->n_cancelled, VOLT_BUDGET); // this task's turn has come
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 0);
    CHECK_EQ(s->n_cancelled, 2 * VOLT_BUDGET); // also the first one, which was waiting
    CHECK_EQ(s->n_polls, 3);
    VOLT_END(0);
}

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
// Not a byte beside the state is read: behind it lies memory that nobody may touch.
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
    CHECK_EQ(s->rc, -ECANCELED); // nobody can be the first
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
    CHECK_EQ(volt_sock_shutdown(fd, 0, 0), -EINVAL);
    CHECK_EQ(volt_sock_shutdown(fd, 1, 0), 0); // not connected any more, or yet
    CHECK_EQ(volt_sock_shutdown(fd, 0, 1), 0);
    CHECK_EQ(close(fd), 0);
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(volt_sock_shutdown(pair[0], 1, 0), 0);
    CHECK_EQ(volt_sock_shutdown(pair[0], 1, 1), 0);
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
    CHECK_EQ(volt_addr_format(&a, text, sizeof text), 5 + sizeof un.sun_path - 1);
    CHECK_EQ(strspn(text + 5, "x"), sizeof un.sun_path - 1);
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
// Nobody has room for its entry, and nobody looks it up: the first operation will say so.
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

// ---- how long polls take, and how often a worker looks around

TEST(weight_of_average_follows_number_of_polls) {
    double rest = 1; // 0.9^n
    for (uint32_t n = 0; n <= 20; n++, rest *= 0.9)
        CHECK_EQ(volt__ewma_weight(n), (int)(256 * (1 - rest) + 0.5));
    CHECK_EQ(volt__ewma_weight(21), 225);
    CHECK_EQ(volt__ewma_weight(UINT32_MAX), 225);
}
// From an average of `avg`, polls that took `ns` together.
static int64_t measured(volt__worker *w, int64_t avg, uint32_t polls, int64_t ns) {
    w->avg_ns = avg;
    w->polls_since = polls;
    w->last_event_poll = 5000;
    volt__measure(w, 5000 + ns);
    CHECK_EQ(w->polls_since, 0);
    CHECK_EQ(w->last_event_poll, 5000 + ns);
    return w->avg_ns;
}
TEST(average_poll_time_follows_measured_polls) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    CHECK_EQ(measured(w, 1000, 1, 2000), 1000 + 1000 * 26 / 256);
    CHECK_EQ(measured(w, 1000, 2, 4000), 1000 + 1000 * 49 / 256);
    CHECK_EQ(measured(w, 1000, 2, 1000), 1000 - 500 * 49 / 256);
    CHECK_EQ(measured(w, 1000, 1, 8000), 1000 + 7000 * 26 / 256);
    CHECK_EQ(measured(w, 1000, 1, 9999999), 1000 + 7000 * 26 / 256); // an outlier
    CHECK_EQ(measured(w, 1000, 1, -9999999), 1); // a clock that went back
    CHECK_EQ(measured(w, 1000, 0, 9999999), 1000); // nothing ran
    still_end(rt);
}
TEST(average_poll_time_sets_the_intervals) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    rt->cfg.event_interval = 50;
    const int64_t paces[] = { 1, 999, 2000, 2001, 99999, 100000, 100001, 499999, 500001, 9999999 };
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        int64_t ns = paces[i], often = VOLT_EVENT_NS / ns, inject = VOLT_INJECT_NS / ns,
                wake = VOLT_WAKE_COST_NS / ns;
        w->event_every = 50;
        CHECK_EQ(measured(w, ns, 1, ns), ns);
        CHECK_EQ(w->event_every, often < 1 ? 1 : often > 50 ? 50 : often);
        CHECK_EQ(w->inject_every, inject < VOLT_INJECT_MIN   ? VOLT_INJECT_MIN
                                  : inject > VOLT_INJECT_MAX ? VOLT_INJECT_MAX
                                                             : inject);
        CHECK_EQ(w->wake_at, wake < 2 ? 2 : wake > VOLT_RING_CAP - 1 ? VOLT_RING_CAP - 1 : wake);
    }
    still_end(rt);
}
// The interval after one of `from` polls that took `ns` together, and were short.
static uint32_t interval_after(volt__worker *w, uint32_t from, int64_t ns) {
    w->event_every = from;
    measured(w, 1, from, ns);
    return w->event_every;
}
TEST(burst_of_short_polls_leaves_event_interval_short) {
    volt_rt *rt = still_rt(1);
    volt__worker *w = rt->workers[0];
    rt->cfg.event_interval = 50;
    CHECK_EQ(interval_after(w, 10, -5), 11);
    CHECK_EQ(interval_after(w, 10, 0), 11);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS / 10 - 1), 11);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS / 10), 12);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS - 1), 20);
    CHECK_EQ(interval_after(w, 10, VOLT_EVENT_NS), 21);
    CHECK_EQ(interval_after(w, 10, INT64_C(1000) * VOLT_EVENT_NS), 21);
    CHECK_EQ(interval_after(w, 40, VOLT_EVENT_NS), 50);
    CHECK_EQ(interval_after(w, 50, 0), 50);
    CHECK_EQ(interval_after(w, 1, VOLT_EVENT_NS), 3);
    still_end(rt);
}
// How many stay after so many polls of that pace, when so many ended their task, or spawned one.
static uint32_t kept_after(volt__worker *w, int64_t ns, uint32_t polls, uint32_t ended,
                           uint32_t spawned) {
    w->completed = w->completed_then + ended;
    w->spawned = w->spawned_then + spawned;
    measured(w, ns, polls, ns * polls);
    CHECK(w->completed_then == w->completed && w->spawned_then == w->spawned);
    CHECK_EQ(w->ring.steal_floor == VOLT__NO_STEAL, w->wake_at == VOLT__NO_STEAL);
    return w->ring.steal_floor;
}
TEST(short_tasks_that_end_are_not_stolen) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    const int64_t ns = VOLT_STEAL_COST_NS - 1;
    CHECK_EQ(w->ring.steal_floor, 0);
    uint32_t ring = volt__clamp32(VOLT_WAKE_COST_NS / ns, 2, VOLT_RING_CAP - 1) - 2;
    CHECK(ring > 0);
    for (uint32_t polls = 8; polls < 10; polls++) {
        CHECK_EQ(kept_after(w, ns, polls, 5, 0), VOLT__NO_STEAL);
        CHECK_EQ(kept_after(w, ns, polls, 5, 4), VOLT__NO_STEAL);
        CHECK_EQ(kept_after(w, ns, polls, 5, 5), ring); // they spawn others
        CHECK_EQ(kept_after(w, ns, polls, 4, 0), 0);    // not most of them
    }
    CHECK_EQ(kept_after(w, ns + 1, 8, 8, 8), 0); // long enough
    CHECK_EQ(kept_after(w, 1, 8, 8, 8), VOLT_RING_CAP - 3);
    measured(w, ns, 0, 1000); // nothing ran, nothing learned
    CHECK_EQ(w->ring.steal_floor, VOLT_RING_CAP - 3);
    CHECK_EQ(w->n_trials, 0);
    w->is_guest = 1;
    CHECK_EQ(kept_after(w, ns, 8, 8, 0), 0);
    w->is_guest = 0;
    w->is_solo = 1;
    CHECK_EQ(kept_after(w, ns, 8, 8, 0), 0);
    w->is_solo = 0;
    still_end(rt);
}
// So long that each may have waited for as many others as there are.
TEST(worker_probes_regularly_whether_tasks_are_short) {
    volt_rt *rt = still_rt(2);
    volt__worker *w = rt->workers[0];
    const int64_t ns = 2 * VOLT_STEAL_COST_NS * 2;
    for (uint32_t i = 0; i < 2 * VOLT__TRIAL_EVERY; i++) {
        CHECK_EQ(kept_after(w, ns, 8, 8, 0), 0); // too long
        CHECK_EQ(kept_after(w, ns - 1, 8, 8, 8), 0); // not the last of them
        int is_tried = i % VOLT__TRIAL_EVERY < VOLT__TRIAL;
        CHECK_EQ(kept_after(w, ns - 1, 8, 8, 0), is_tried ? VOLT__NO_STEAL : 0);
    }
    still_end(rt);
}
