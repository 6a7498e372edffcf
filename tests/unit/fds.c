// SPDX-License-Identifier: MIT OR 0BSD
// The table of descriptors and the reactor, against answers of the kernel that the seam plays.
#include "scripted_seam.h"

// ---- the table of descriptors

static void *stolen_page; // published by another thread while ours was being made
static void **stolen_slot;
static void strict_free(void *user, void *block, size_t size) {
    CHECK(block);
    test_free(user, block, size);
}
static void *late_alloc(void *user, size_t size, size_t align) {
    void *p = test_alloc(user, size, align);
    if (stolen_slot) *stolen_slot = stolen_page;
    return p;
}
TEST(every_descriptor_number_has_its_own_entry) {
    const uint32_t dir = VOLT__FD_PAGE * VOLT__FD_DIR;
    const uint32_t numbers[] = { 0, 1, 63, 64, 65, dir - 1, dir, dir + 1, 1000 * dir + 70,
                                 VOLT__FD_MAX - 1 };
    begin(1);
    volt__fds *f = &rt->fds;
    f->alloc.free = strict_free;
    for (size_t i = 1; i <= 2; i++) { // no memory for the directory, for the page
        test_heap.fail_at = test_heap.n_allocs + i;
        CHECK(!volt__fd_lookup(f, (int)(VOLT__FD_MAX - 1 - dir)));
        CHECK_EQ(f->dir[VOLT__FD_ROOT - 2] != NULL, i == 2);
    }
    int64_t before = test_heap.live_bytes;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        volt__fd *e = volt__fd_lookup(f, (int)numbers[i]);
        CHECK(e && volt__fd_lookup(f, (int)numbers[i]) == e);
        CHECK(e == &f->dir[numbers[i] / dir]->page[numbers[i] % dir / 64][numbers[i] % 64]);
        CHECK(!e->mode && !e->pins && !e->rd);
    }
    int64_t want = 4 * (int64_t)sizeof(volt__fd_dir) + 6 * 64 * (int64_t)sizeof(volt__fd);
    CHECK_EQ(test_heap.live_bytes - before, want);
    CHECK(!volt__fd_lookup(f, -1) && !volt__fd_lookup(f, (int)VOLT__FD_MAX));
    CHECK_EQ(volt__fd_lookup_error(-1), -EBADF);
    CHECK_EQ(volt__fd_lookup_error((int)VOLT__FD_MAX), -EBADF);
    CHECK_EQ(volt__fd_lookup_error((int)VOLT__FD_MAX - 1), -ENOMEM);
    CHECK_EQ(volt__fd_lookup_error(0), -ENOMEM);
    end();
}
TEST(page_of_fd_table_that_loses_the_race_is_freed) {
    begin(1);
    void *slot = NULL;
    stolen_page = test_alloc(&test_heap, 100, 64);
    stolen_slot = &slot;
    rt->fds.alloc.alloc = late_alloc;
    int64_t before = test_heap.live_bytes;
    CHECK(volt__fds_page(&rt->fds, &slot, 1000) == stolen_page);
    CHECK_EQ(test_heap.live_bytes, before);
    test_free(&test_heap, stolen_page, 100);
    end();
}
TEST(pin_keeps_descriptor_open) {
    volt__fd e;
    memset(&e, 0, sizeof e);
    CHECK_EQ(volt__fd_pin(&e), 1);
    CHECK_EQ(volt__fd_pin(&e), 1);
    CHECK_EQ(e.pins, 4);
    CHECK_EQ(volt__fd_unpin(&e), 0);
    volt__fd_begin_close(&e);
    CHECK_EQ(e.pins, 3);
    CHECK_EQ(volt__fd_try_close(&e), 0);
    CHECK_EQ(volt__fd_pin(&e), 0);
    CHECK_EQ(volt__fd_unpin(&e), 0);
    CHECK_EQ(volt__fd_unpin(&e), 1); // the last one, and inside again
    CHECK_EQ(e.pins, 3);
}
TEST(fd_interest_follows_its_mode_and_waiters) {
    for (int mode = VOLT__MODE_NONE; mode <= VOLT__MODE_ALWAYS; mode++)
        for (int ready = 0; ready < 4; ready++)
            for (int dir = VOLT__RD; dir <= VOLT__WR; dir++) {
                volt__fd e;
                memset(&e, 0, sizeof e);
                volt__fd_set_mode(&e, (uint8_t)mode);
                CHECK_EQ(e.mode, mode);
                e.ready = (uint8_t)ready;
                CHECK_EQ(volt__fd_is_known_empty(&e, dir),
                         mode == VOLT__MODE_EDGE && (ready & dir) == 0);
                CHECK(volt__fd_waiters(&e, dir) == (dir == VOLT__RD ? &e.rd : &e.wr));
            }
    volt__fd e;
    volt__node n;
    memset(&e, 0, sizeof e);
    e.gen = 7;
    e.seq = 9;
    CHECK(volt__fd_take_snapshot(&e).gen == 7 && volt__fd_take_snapshot(&e).seq == 9);
    e.mode = VOLT__MODE_EDGE;
    CHECK_EQ(volt__fd_interest(&e), EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    e.mode = VOLT__MODE_ONESHOT;
    for (int i = 0; i < 4; i++) {
        e.rd = i & 1 ? &n : NULL;
        e.wr = i & 2 ? &n : NULL;
        uint32_t want = (i & 1 ? EPOLLIN | EPOLLRDHUP : 0) | (i & 2 ? EPOLLOUT : 0);
        CHECK_EQ(volt__fd_interest(&e), (uint32_t)EPOLLONESHOT | want);
    }
}

#include "scripted_fd.h"

static void say(int first, int second) {
    memset(&ctl, 0, sizeof ctl);
    ctl.answers.error[0] = first;
    ctl.answers.error[1] = second;
}
static void check_ctl(int n_calls, int op, uint32_t home) {
    CHECK_EQ(ctl.answers.n_calls, n_calls);
    CHECK_EQ(ctl.op, op);
    CHECK_EQ(ctl.ep, rt->workers[home]->reactor.epfd);
    CHECK_EQ(ctl.fd, fd[0]);
    if (op != EPOLL_CTL_DEL)
        CHECK(ctl.ev.data.u64 == ((uint64_t)e->gen << 32 | (uint32_t)fd[0]) &&
              ctl.ev.events == (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET));
}
TEST(fd_control_retries_epoll_ctl_with_other_operation) {
    static const struct {
        int op, first, second, rc, n_calls, last_op, mode;
    } rows[] = {
        { EPOLL_CTL_ADD, EEXIST, ENOMEM, -ENOMEM, 2, EPOLL_CTL_MOD, VOLT__MODE_EDGE },
        { EPOLL_CTL_MOD, ENOENT, ENOSPC, -ENOSPC, 2, EPOLL_CTL_ADD, VOLT__MODE_EDGE },
        { EPOLL_CTL_ADD, ENOSPC, 0, -ENOSPC, 1, EPOLL_CTL_ADD, VOLT__MODE_EDGE },
        { EPOLL_CTL_ADD, EPERM, 0, 0, 1, EPOLL_CTL_ADD, VOLT__MODE_ALWAYS },
        { EPOLL_CTL_MOD, ENOENT, EPERM, 0, 2, EPOLL_CTL_ADD, VOLT__MODE_ALWAYS },
        { EPOLL_CTL_MOD, ENOENT, 0, 0, 2, EPOLL_CTL_ADD, VOLT__MODE_EDGE },
        { EPOLL_CTL_ADD, EEXIST, 0, 0, 2, EPOLL_CTL_MOD, VOLT__MODE_EDGE },
        { EPOLL_CTL_MOD, 0, 0, 0, 1, EPOLL_CTL_MOD, VOLT__MODE_EDGE },
    };
    begin_fd();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        e->mode = VOLT__MODE_EDGE;
        e->reactor = 1;
        e->ready = 0;
        say(rows[i].first, rows[i].second);
        errno = ENOENT; // of another call
        CHECK_EQ(volt__fd_control(&rt->fds, e, fd[0], rows[i].op), rows[i].rc);
        check_ctl(rows[i].n_calls, rows[i].last_op, 1);
        CHECK_EQ(e->mode, rows[i].mode);
        CHECK_EQ(e->ready, rows[i].mode == VOLT__MODE_ALWAYS ? VOLT__RD | VOLT__WR : 0);
    }
    end_fd();
}
TEST(own_fd_is_registered_once) {
    begin_fd();
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 3), 0); // reactor 3 of 2
    CHECK(e->mode == VOLT__MODE_EDGE && e->reactor == 1 && e->ready == (VOLT__RD | VOLT__WR));
    check_ctl(1, EPOLL_CTL_ADD, 1);
    e->ready = 0;
    // a debug build looks whether it still is
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), 0);
    CHECK(ctl.op == EPOLL_CTL_ADD && ctl.answers.n_calls == 2);
    e->mode = VOLT__MODE_ALWAYS;
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), 0);
    CHECK(ctl.answers.n_calls == 2 && e->ready == 0 && e->reactor == 1);
    e->mode = VOLT__MODE_EDGE;
    CHECK_EQ(epoll_ctl(rt->fds.epfd[1], EPOLL_CTL_DEL, fd[0], &ctl.ev), 0);
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), VOLT__FD_REUSED);
    CHECK_EQ(ctl.op, EPOLL_CTL_DEL); // and what it has found out so is taken back
    CHECK_EQ(epoll_ctl(rt->fds.epfd[1], EPOLL_CTL_ADD, fd[0], &ctl.ev), 0);
    e->mode = VOLT__MODE_ONESHOT;
    say(ENOMEM, 0);
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), -ENOMEM);
    check_ctl(1, EPOLL_CTL_MOD, 1);
    CHECK_EQ(e->mode, VOLT__MODE_ONESHOT);
    say(0, 0);
    CHECK_EQ(volt__fd_register(&rt->fds, e, fd[0], 0), 0);
    check_ctl(1, EPOLL_CTL_MOD, 1);
    CHECK(e->mode == VOLT__MODE_EDGE && e->reactor == 1);
    end_fd();
}
static int wait_own(volt__fd_snapshot seen, int dir, volt__node *n) {
    int rc = volt__fd_wait(&rt->fds, e, fd[0], 0, dir, dir, seen, n, task);
    CHECK_EQ(e->lock, 0);
    CHECK_EQ(volt__node_state(n), rc == 1 ? VOLT__LINKED : VOLT__IDLE);
    return rc;
}
TEST(wait_for_own_fd_links_node_only_if_nothing_changed) {
    begin_fd();
    volt__fd_snapshot seen = volt__fd_take_snapshot(e), old = seen;
    e->pins = VOLT__FD_IS_CLOSING + VOLT__FD_PIN;
    CHECK_EQ(wait_own(seen, VOLT__RD, &node[0]), -EBADF);
    e->pins = VOLT__FD_PIN;
    old.gen--;
    CHECK_EQ(wait_own(old, VOLT__RD, &node[0]), -EBADF);
    old = seen;
    old.seq--;
    CHECK_EQ(wait_own(old, VOLT__RD, &node[0]), 0);
    CHECK_EQ(e->mode, VOLT__MODE_NONE);
    say(ENOMEM, 0);
    CHECK_EQ(wait_own(seen, VOLT__RD, &node[0]), -ENOMEM);
    CHECK(!e->rd && task->n_armed == 0);
    say(EPERM, 0);
    CHECK_EQ(wait_own(seen, VOLT__RD, &node[0]), 0);
    CHECK(!e->rd && e->mode == VOLT__MODE_ALWAYS && e->ready == (VOLT__RD | VOLT__WR));
    e->mode = VOLT__MODE_NONE;
    CHECK_EQ(wait_own(seen, VOLT__RD, &node[0]), 1);
    CHECK(e->rd == &node[0] && !e->wr && node[0].source_ == e && task->n_armed == 1);
    CHECK_EQ(e->ready, VOLT__WR);
    CHECK_EQ(wait_own(seen, VOLT__WR, &node[1]), 1);
    CHECK(e->wr == &node[1] && e->ready == 0 && task->n_armed == 2);
    CHECK_EQ(volt__fd_end_wait(&node[1], task, VOLT__WR), VOLT__LINKED);
    CHECK(!e->wr && e->rd && task->n_armed == 1 && e->lock == 0);
    CHECK_EQ(volt__node_state(&node[1]), VOLT__IDLE);
    volt__chain c = no_chain();
    volt__fd_fire_all(e, &e->rd, VOLT__FIRED, &c);
    CHECK(!e->rd && c.head == task && c.len == 1);
    CHECK_EQ(volt__node_state(&node[0]), VOLT__FIRED);
    CHECK_EQ(volt__fd_end_wait(&node[0], task, VOLT__RD), VOLT__FIRED);
    task->word &= ~VOLT__NOTIFIED;
    c = no_chain();
    CHECK_EQ(wait_own(seen, VOLT__RD, &node[0]), 1);
    volt__fd_fire_all(e, &e->rd, VOLT__FIRED, &c);
    e->gen++; // the number has changed hands since
    CHECK_EQ(volt__fd_end_wait(&node[0], task, VOLT__RD), VOLT__CLOSED);
    CHECK_EQ(task->n_armed, 0);
    end_fd();
}
TEST(wait_for_foreign_fd_registers_it_oneshot) {
    static const struct {
        uint8_t before, after;
        int op, home, error, rc;
    } rows[] = {
        { VOLT__MODE_NONE, VOLT__MODE_ONESHOT, EPOLL_CTL_ADD, 1, 0, 1 },
        { VOLT__MODE_ONESHOT, VOLT__MODE_ONESHOT, EPOLL_CTL_MOD, 0, 0, 1 },
        { VOLT__MODE_EDGE, VOLT__MODE_ONESHOT, EPOLL_CTL_MOD, 0, 0, 1 },
        { VOLT__MODE_ALWAYS, VOLT__MODE_ONESHOT, EPOLL_CTL_ADD, 1, 0, 1 },
        { VOLT__MODE_NONE, VOLT__MODE_ALWAYS, EPOLL_CTL_ADD, 1, EPERM, 0 },
        { VOLT__MODE_NONE, VOLT__MODE_NONE, EPOLL_CTL_ADD, 1, ENOMEM, -ENOMEM },
        { VOLT__MODE_ALWAYS, VOLT__MODE_NONE, EPOLL_CTL_ADD, 1, ENOMEM, -ENOMEM },
        { VOLT__MODE_EDGE, VOLT__MODE_EDGE, EPOLL_CTL_MOD, 0, ENOMEM, -ENOMEM },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int dir = VOLT__RD; dir <= VOLT__WR; dir++) {
            begin_fd();
            volt__node **head = volt__fd_waiters(e, dir);
            e->mode = rows[i].before;
            struct epoll_event ev = { 0, { 0 } };
            if (rows[i].op == EPOLL_CTL_MOD)
                CHECK_EQ(epoll_ctl(w->reactor.epfd, EPOLL_CTL_ADD, fd[0], &ev), 0);
            say(rows[i].error, 0);
            CHECK_EQ(volt__fd_wait_foreign(&rt->fds, e, fd[0], 3, dir, NULL, node, task),
                     rows[i].rc);
            CHECK_EQ(ctl.op, rows[i].op);
            CHECK_EQ(ctl.ev.events & EPOLLIN, dir == VOLT__RD ? EPOLLIN : 0);
            CHECK(e->mode == rows[i].after && e->reactor == rows[i].home && e->lock == 0);
            CHECK(*head == (rows[i].rc == 1 ? node : NULL));
            CHECK_EQ(task->n_armed, rows[i].rc == 1);
            CHECK_EQ(volt__node_state(node), rows[i].rc == 1 ? VOLT__LINKED : VOLT__IDLE);
            end_fd();
        }
}
TEST(short_transfer_clears_readiness_unless_an_event_came) {
    for (int i = 0; i < 16; i++) {
        volt__fd f;
        memset(&f, 0, sizeof f);
        f.seq = 4;
        f.sticky = i & 1;
        f.mode = i & 2 ? VOLT__MODE_EDGE : VOLT__MODE_ONESHOT;
        f.ready = VOLT__RD | VOLT__WR;
        int dir = i & 8 ? VOLT__RD : VOLT__WR;
        volt__fd_mapped last = { NULL, 0 };
        volt__fd_mark_empty(&f, &last, dir, i & 4 ? 4 : 3, "", 1, 1);
        CHECK_EQ(f.ready, (i & 7) == 6 ? (VOLT__RD | VOLT__WR) & ~dir : VOLT__RD | VOLT__WR);
        CHECK_EQ(f.lock, 0);
    }
}
TEST(fd_retire_deregisters_and_ends_every_wait) {
    for (int mode = VOLT__MODE_NONE; mode <= VOLT__MODE_ALWAYS; mode++)
        for (int is_close = 0; is_close < 2; is_close++) {
            begin_fd();
            volt__chain c = no_chain();
            e->mode = (uint8_t)mode;
            e->reactor = 1;
            e->seq = 8;
            e->flags = e->ready = e->sticky = 1;
            volt__fd_set_backoff(e, 77);
            CHECK_EQ(e->backoff_ms, 77);
            e->pins = 7 * VOLT__FD_PIN + VOLT__FD_IS_CLOSING;
            for (int i = 0; i < 2; i++) {
                volt__node_bind(&node[i], task, e);
                volt__list_push(i ? &e->wr : &e->rd, &node[i]);
            }
            int n_closed = of_close.n_calls;
            volt__fd_retire(&rt->fds, e, fd[0], is_close, &c);
            int is_told = mode == VOLT__MODE_EDGE || mode == VOLT__MODE_ONESHOT;
            CHECK_EQ(ctl.answers.n_calls, is_told);
            if (is_told) check_ctl(1, EPOLL_CTL_DEL, 1);
            CHECK(e->gen == 6 && e->seq == 9 && e->mode == VOLT__MODE_NONE && e->flags == 0);
            CHECK(e->ready == 0 && e->sticky == 0 && e->backoff_ms == 0 && e->lock == 0);
            CHECK(!e->rd && !e->wr && c.head == task && c.len == 1);
            for (int i = 0; i < 2; i++) {
                CHECK_EQ(volt__node_state(&node[i]), VOLT__CLOSED);
                CHECK((uintptr_t)node[i].prev_ == 6);
            }
            CHECK_EQ(of_close.n_calls - n_closed, is_close);
            CHECK_EQ(fcntl(fd[0], F_GETFD) < 0, is_close);
            CHECK_EQ(e->pins, is_close ? 6 * VOLT__FD_PIN : 7 * VOLT__FD_PIN + 1);
            if (is_close) CHECK_EQ(dup2(fd[1], fd[0]), fd[0]);
            end_fd();
        }
}
// Sockets keep their mode: they are told with each call not to wait.
static int probe(int n, int is_accept, int flags) {
    volt__fd f;
    memset(&f, 0, sizeof f);
    f.flags = 99;
    int before = fcntl(n, F_GETFL);
    int rc = volt__fd_probe(&f, n, f.gen, is_accept ? VOLT__FD_SOCKET | VOLT__FD_NONBLOCK : 0);
    CHECK_EQ(f.lock, 0);
    CHECK_EQ(f.flags, rc < 0 ? 0 : rc);
    int is_unblocked = rc >= 0 && (is_accept || !(rc & VOLT__FD_SOCKET));
    CHECK_EQ(fcntl(n, F_GETFL), is_unblocked ? before | O_NONBLOCK : before);
    if (n >= 0 && flags) close(n);
    return rc;
}
TEST(fd_probe_tells_kind_of_descriptor) {
    const int some = VOLT__FD_PROBED, sock = some | VOLT__FD_SOCKET, tcp = sock | VOLT__FD_STREAM;
    int p[2];
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(probe(p[0], 1, 0), -ENOTSOCK);
    CHECK_EQ(probe(p[0], 0, 1), some);
    CHECK_EQ(probe(p[1], 0, 1), some);
    CHECK_EQ(probe(socket(AF_UNIX, SOCK_STREAM, 0), 0, 1), sock);
    CHECK_EQ(probe(socket(AF_UNIX, SOCK_STREAM, 0), 1, 1), sock | VOLT__FD_NONBLOCK);
    CHECK_EQ(probe(socket(AF_INET, SOCK_DGRAM, 0), 0, 1), sock);
    CHECK_EQ(probe(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), 0, 1), tcp);
    int six = socket(AF_INET6, SOCK_STREAM, 0);
    if (six >= 0) CHECK_EQ(probe(six, 0, 1), tcp);
    CHECK_EQ(probe(-1, 0, 0), -EBADF);
    memset(&of_sockopt, 0, sizeof of_sockopt);
    of_sockopt.error[0] = ENOTSOCK;
    CHECK_EQ(probe(socket(AF_INET, SOCK_STREAM, 0), 0, 1), some);
    CHECK_EQ(of_sockopt.n_calls, 1);
    memset(&of_sockopt, 0, sizeof of_sockopt);
    of_sockopt.error[1] = ENOBUFS; // of the protocol nothing is known
    CHECK_EQ(probe(socket(AF_INET, SOCK_STREAM, 0), 0, 1), sock);
    CHECK(volt__is_ip(AF_INET) && volt__is_ip(AF_INET6) && !volt__is_ip(AF_UNIX));
}
TEST(event_fires_waits_of_its_directions_only) {
    static const struct {
        uint32_t events;
        int rd, wr, sticky;
    } rows[] = {
        { 0, 0, 0, 0 },          { EPOLLIN, 1, 0, 0 },     { EPOLLOUT, 0, 1, 0 },
        { EPOLLPRI, 1, 0, 1 },   { EPOLLRDHUP, 1, 0, 1 },  { EPOLLHUP, 1, 1, 1 },
        { EPOLLERR, 1, 1, 1 },   { EPOLLIN | EPOLLOUT, 1, 1, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int mode = VOLT__MODE_NONE; mode <= VOLT__MODE_ALWAYS; mode++)
            for (int how = 0; how < 3; how++) { // of this generation, of another, armed in vain
                begin_fd();
                volt__chain c = no_chain();
                int is_seen = mode != VOLT__MODE_NONE && how != 1;
                int rd = is_seen && rows[i].rd, wr = is_seen && rows[i].wr;
                int is_armed = is_seen && mode == VOLT__MODE_ONESHOT && !(rd && wr);
                int is_in_vain = is_armed && how == 2;
                e->mode = (uint8_t)mode;
                e->reactor = 1;
                e->seq = 3;
                for (int k = 0; k < 2; k++) {
                    volt__node_bind(&node[k], task, e);
                    volt__list_push(k ? &e->wr : &e->rd, &node[k]);
                }
                struct epoll_event ev = { 0, { 0 } };
                CHECK_EQ(epoll_ctl(v->reactor.epfd, EPOLL_CTL_ADD, fd[0], &ev), 0);
                say(how == 2 ? ENOMEM : 0, 0);
                uint64_t token = (uint64_t)(how == 1 ? 4 : 5) << 32 | (uint32_t)fd[0];
                volt__fd_event(&rt->fds, token, rows[i].events, &c);
                CHECK_EQ(e->lock, 0);
                CHECK_EQ(e->seq, 3 + is_seen);
                CHECK_EQ(e->ready, (rd ? VOLT__RD : 0) | (wr ? VOLT__WR : 0));
                CHECK_EQ(e->sticky, is_seen && rows[i].sticky);
                CHECK_EQ(!e->rd, rd || is_in_vain);
                CHECK_EQ(!e->wr, wr || is_in_vain);
                CHECK_EQ(volt__node_state(&node[0]),
                         rd || is_in_vain ? VOLT__FIRED : VOLT__LINKED);
                CHECK_EQ(volt__node_state(&node[1]),
                         wr || is_in_vain ? VOLT__FIRED : VOLT__LINKED);
                CHECK_EQ(c.len, rd || wr || is_in_vain);
                CHECK_EQ(ctl.answers.n_calls, is_armed);
                if (is_armed) CHECK_EQ(ctl.op, EPOLL_CTL_MOD);
                end_fd();
            }
}
TEST(readiness_of_several_events_adds_up) {
    begin_fd();
    volt__chain c = no_chain();
    e->mode = VOLT__MODE_EDGE;
    uint64_t token = (uint64_t)5 << 32 | (uint32_t)fd[0];
    volt__fd_event(&rt->fds, token, EPOLLOUT, &c);
    volt__fd_event(&rt->fds, token, EPOLLRDHUP, &c);
    CHECK(e->ready == (VOLT__RD | VOLT__WR) && e->sticky == 1);
    volt__fd_event(&rt->fds, token, EPOLLIN, &c);
    CHECK(e->sticky == 1 && e->seq == 3 && !c.head);
    // there is no waiter: nothing to be armed
    e->mode = VOLT__MODE_ONESHOT;
    volt__fd_event(&rt->fds, token, EPOLLIN, &c);
    CHECK_EQ(ctl.answers.n_calls, 0);
    end_fd();
}

// ---- a reactor

static volt__reactor reactor;
static int start_reactor(int watch_fd) {
    memset(&reactor, 0xa5, sizeof reactor);
    memset(&ctl, 0, sizeof ctl);
    return volt__reactor_init(&reactor, 3, watch_fd);
}
TEST(reactor_init_opens_two_fds_or_none) {
    int n_fds = test_count_fds(), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    CHECK_EQ(start_reactor(-1), 0);
    CHECK_EQ(test_count_fds(), n_fds + 3);
    CHECK(reactor.index == 3 && ctl.fd == reactor.evfd && ctl.ep == reactor.epfd);
    CHECK(ctl.op == EPOLL_CTL_ADD && ctl.ev.events == EPOLLIN);
    CHECK(ctl.ev.data.u64 == VOLT__EPOLL_EVENTFD && ctl.answers.n_calls == 1);
    volt__reactor_deinit(&reactor);
    CHECK_EQ(test_count_fds(), n_fds + 1);
    CHECK(reactor.evfd == -1 && reactor.epfd == -1);
    for (int i = 0; i < 2; i++) { // 1: a kernel that does not know how to wake only one
        memset(&ctl, 0, sizeof ctl);
        if (i) ctl.answers.error[1] = EINVAL;
        CHECK_EQ(volt__reactor_init(&reactor, 0, timer), 0);
        CHECK_EQ(ctl.answers.n_calls, 2 + i);
        CHECK(ctl.fd == timer && ctl.ev.data.u64 == VOLT__EPOLL_WATCHDOG);
        CHECK_EQ(ctl.ev.events, EPOLLIN | EPOLLET | (i ? 0 : (uint32_t)EPOLLEXCLUSIVE));
        volt__reactor_deinit(&reactor);
    }
    for (int i = 0; i < 2; i++) { // no room for the first, for the second
        memset(&ctl, 0, sizeof ctl);
        ctl.answers.error[i] = ENOSPC;
        CHECK_EQ(volt__reactor_init(&reactor, 0, timer), -ENOSPC);
        CHECK_EQ(ctl.answers.n_calls, 1 + i);
        CHECK_EQ(test_count_fds(), n_fds + 1);
        CHECK(reactor.evfd == -1 && reactor.epfd == -1);
    }
    of_eventfd.n_calls = 0;
    of_eventfd.error[0] = EMFILE;
    of_close.n_calls = 0;
    CHECK_EQ(start_reactor(timer), -EMFILE);
    CHECK_EQ(ctl.answers.n_calls, 0);
    CHECK_EQ(of_close.n_calls, 1);
    of_create1.n_calls = 0;
    of_create1.error[0] = ENFILE;
    CHECK_EQ(start_reactor(timer), -ENFILE);
    CHECK_EQ(test_count_fds(), n_fds + 1);
    CHECK_EQ(of_close.n_calls, 1);
    close(timer);
}
TEST(reactor_and_watchdog_accept_fd_0) {
    volt__watchdog watch;
    int n_fds = test_count_fds(), mine = dup(0);
    for (is_zero = 1; is_zero <= 2; is_zero++) {
        dup2(mine, 0);
        CHECK_EQ(start_reactor(-1), 0);
        CHECK_EQ(is_zero == 1 ? reactor.epfd : reactor.evfd, 0);
        volt__reactor_unpark(&reactor);
        volt__reactor_deinit(&reactor);
        CHECK_EQ(test_count_fds(), n_fds);
    }
    CHECK_EQ(volt__watchdog_init(&watch, 1), 0);
    CHECK_EQ(watch.fd, 0);
    CHECK_EQ(start_reactor(0), 0);
    CHECK_EQ(ctl.answers.n_calls, 2);
    volt__reactor_deinit(&reactor);
    dup2(mine, 0);
    close(mine);
    begin(2);
    int watch_fd = rt->watchdog.fd;
    rt->watchdog.fd = 0;
    settime.n_calls = 0;
    volt__watchdog_arm(w);
    CHECK_EQ(settime.n_calls, 1);
    rt->watchdog.fd = watch_fd;
    end();
}
TEST(reactor_unpark_and_acknowledge_retry_after_eintr) {
    CHECK_EQ(start_reactor(-1), 0);
    uint64_t n;
    memset(&of_write, 0, sizeof of_write);
    of_write.error[0] = of_write.error[1] = EINTR;
    volt__reactor_unpark(&reactor);
    CHECK_EQ(of_write.n_calls, 3);
    CHECK_EQ(read(reactor.evfd, &n, sizeof n), sizeof n);
    CHECK_EQ(n, 1);
    memset(&of_write, 0, sizeof of_write);
    of_write.error[0] = EAGAIN;
    volt__reactor_unpark(&reactor);
    CHECK_EQ(of_write.n_calls, 1);
    memset(&of_write, 0, sizeof of_write);
    errno = EINTR; // of another call
    volt__reactor_unpark(&reactor);
    CHECK_EQ(of_write.n_calls, 1);
    memset(&of_read, 0, sizeof of_read);
    of_read.error[0] = of_read.error[1] = EINTR;
    volt__reactor_acknowledge(&reactor);
    CHECK_EQ(of_read.n_calls, 3);
    CHECK(read(reactor.evfd, &n, sizeof n) < 0 && errno == EAGAIN);
    memset(&of_read, 0, sizeof of_read);
    volt__reactor_acknowledge(&reactor); // EAGAIN by itself
    CHECK_EQ(of_read.n_calls, 1);
    volt__reactor_deinit(&reactor);
}
TEST(reactor_poll_tells_events_unpark_and_watchdog) {
    static const uint32_t rooms[] = { 0, 1, 2, VOLT_EVENTS - 1, VOLT_EVENTS, VOLT_EVENTS + 1,
                                      UINT32_MAX };
    begin_fd();
    volt__reactor_events got;
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        memset(&got, 0xa5, sizeof got);
        volt__reactor_poll(&w->reactor, &rt->fds, rooms[i], 123, &got);
        int want = rooms[i] == 0 ? 1 : rooms[i] < VOLT_EVENTS ? (int)rooms[i] : VOLT_EVENTS;
        CHECK_EQ(polls.max, want);
        CHECK(polls.timeout == 123 && polls.ep == w->reactor.epfd);
        CHECK(!got.chain.head && !got.chain.len && !got.n_events);
        CHECK(!got.was_unparked && !got.watchdog_expired && !got.is_full);
    }
    e->mode = VOLT__MODE_EDGE;
    volt__node_bind(node, task, e);
    volt__list_push(&e->rd, node);
    polls.n = 2;
    polls.ev[0].data.u64 = (uint64_t)5 << 32 | (uint32_t)fd[0];
    polls.ev[0].events = EPOLLIN;
    polls.ev[1].data.u64 = VOLT__EPOLL_EVENTFD;
    volt__reactor_poll(&w->reactor, &rt->fds, 3, 0, &got);
    CHECK(got.chain.head == task && got.chain.len == 1 && got.n_events == 1);
    CHECK(got.was_unparked == 1 && got.watchdog_expired == 0 && e->ready == VOLT__RD);
    polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
    volt__reactor_poll(&w->reactor, &rt->fds, 3, 0, &got);
    CHECK(got.n_events == 1 && got.was_unparked == 0 && got.watchdog_expired == 1 && !got.is_full);
    polls.ev[1] = polls.ev[0];
    volt__reactor_poll(&w->reactor, &rt->fds, 2, 0, &got); // there may be more behind it
    CHECK(got.n_events == 2 && !got.was_unparked && !got.watchdog_expired && got.is_full);
    polls.error = EINTR;
    volt__reactor_poll(&w->reactor, &rt->fds, 1, 0, &got);
    CHECK(got.n_events == 0 && got.watchdog_expired == 0);
    polls.error = 0;
    end_fd();
}
