// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios with descriptors: sockets, pipes, files, readiness for other libraries.
#ifndef VOLT_FAULT_SCENARIOS_NET_H
#define VOLT_FAULT_SCENARIOS_NET_H

// ---- descriptors of the scenario, known to the ledger

static int make_two(int fd[2], int rc) {
    if (rc < 0) {
        fd[0] = fd[1] = -1;
        return opened(-1, FD_DATA) < 0 ? -errno : 0;
    }
    opened(fd[0], FD_DATA);
    opened(fd[1], FD_DATA);
    return 0;
}
static int make_pair(int fd[2]) { return make_two(fd, socketpair(AF_UNIX, SOCK_STREAM, 0, fd)); }
static int make_pipe(int fd[2]) { return make_two(fd, pipe(fd)); }
static void drop(int fd) {
    closing(fd);
    CHECK_EQ(close(fd), 0);
}
// An accept that never gets a descriptor gives up after some time.
static int is_hopeless(void) {
    return inject.f.effect == LIMIT || (inject.f.call == C_accept4 && inject.f.count == ALWAYS);
}
static volt_time patience(void) {
    return is_hopeless() && get(&inject.is_on) ? VOLT_MS(30) : FAR_AWAY;
}

// ---- echo: messages exceed the buffers, so that both sides wait and writes are short

enum { PAYLOAD = 12000 };
STATE(echo, int fd; char buf[3000];) {
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_read(cx, s->fd, s->buf, sizeof s->buf));
        if (s->rc <= 0) break;
        VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, s->buf, (size_t)s->rc));
        if (s->rc < 0) break;
    }
    volt_close(cx, s->fd);
    VOLT_END(s->rc);
}
STATE(caller, volt_arm write, read; int fd; char out[PAYLOAD], in[PAYLOAD];) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < PAYLOAD; i++) s->out[i] = (char)(i * 7);
    VOLT_AWAIT(s->rc, VOLT_TRY_JOIN_ALL(
                          VOLT_ARM(&s->write, volt_write_all(cx, s->fd, s->out, PAYLOAD)),
                          VOLT_ARM(&s->read, volt_read_exact(cx, s->fd, s->in, PAYLOAD))));
    if (s->rc >= 0) CHECK(memcmp(s->in, s->out, PAYLOAD) == 0);
    volt_close(cx, s->fd);
    VOLT_END(s->rc < 0 ? s->rc : 0);
}
STATE(pair_echo, volt_group group; caller_state caller; int fd[2];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    for (int i = 0; i < 2; i++) KEEP(volt_set_buffers(s->fd[i], 1, 0));
    s->caller.fd = s->fd[0];
    s->rc = VOLT_GROUP_SPAWN(cx, &s->group, echo_run, (echo_state){ .fd = s->fd[1] });
    if (s->rc < 0) drop(s->fd[1]);
    KEEP(s->rc);
    KEEP_AWAIT(caller_run(cx, &s->caller));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// A server that accepts one connection and serves it; closes its listener in any case.
STATE(server, volt_timer timer; int fd; echo_state echo;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, patience(), volt_accept(cx, s->fd)));
    volt_close(cx, s->fd);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    s->echo.fd = (int)s->rc;
    VOLT_AWAIT(s->rc, echo_run(cx, &s->echo));
    VOLT_END(s->rc);
}
// A listener and its address: of "unix:/path", or TCP. Negative: the error, and nothing is open.
static int listen_on(const char *text, volt_addr *addr) {
    if (text) {
        unlink(text + strlen("unix:"));
        CHECK_EQ(volt_addr_parse(addr, text), 0);
        return volt_listen_addr(addr, NULL);
    }
    int fd = volt_listen("127.0.0.1", 0, NULL);
    if (fd < 0) return fd;
    int rc = volt_local_addr(fd, addr);
    if (rc == 0) return fd;
    drop(fd);
    return rc;
}
STATE(call_a_server, const char *text; volt_group group; caller_state caller; volt_addr addr, peer;
      int fd;) {
    VOLT_BEGIN(cx, s);
    s->fd = listen_on(s->text, &s->addr);
    if (s->fd < 0) VOLT_RETURN(s->fd);
    s->rc = VOLT_GROUP_SPAWN(cx, &s->group, server_run, (server_state){ .fd = s->fd });
    if (s->rc < 0) drop(s->fd);
    KEEP(s->rc);
    KEEP_AWAIT(volt_connect(cx, &s->addr));
    if (s->rc < 0) {
        VOLT_AWAIT(volt_group_close(cx, &s->group));
        VOLT_RETURN(s->first);
    }
    s->caller.fd = (int)s->rc;
    KEEP(volt_peer_addr(s->caller.fd, &s->peer));
    KEEP_AWAIT(caller_run(cx, &s->caller));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}
STATE(tcp_echo, call_a_server_state call;) {
    VOLT_BEGIN(cx, s);
    KEEP_AWAIT(call_a_server_run(cx, &s->call));
    VOLT_END(s->first);
}
static const char *unix_address(void) {
    static char text[64];
    snprintf(text, sizeof text, "unix:/tmp/volt-fault-%d", (int)getpid());
    return text;
}
STATE(unix_echo, call_a_server_state call;) {
    VOLT_BEGIN(cx, s);
    s->call.text = unix_address();
    KEEP_AWAIT(call_a_server_run(cx, &s->call));
    unlink(s->call.text + strlen("unix:"));
    VOLT_END(s->first);
}

// Many at once: events come in batches.
STATE(client, volt_addr addr; volt_timer timer; int fd; char c;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_connect(cx, &s->addr));
    if (s->rc < 0) VOLT_RETURN(s->rc);
    s->fd = (int)s->rc;
    KEEP_AWAIT(volt_write_all(cx, s->fd, "x", 1));
    if (s->rc >= 0)
        KEEP_AWAIT(volt_within(cx, &s->timer, patience(), volt_read_exact(cx, s->fd, &s->c, 1)));
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}
STATE(acceptor, volt_group echoes; int fd, one;) {
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->rc, volt_accept(cx, s->fd));
        if (s->rc < 0) break;
        s->one = (int)s->rc;
        s->rc = VOLT_GROUP_SPAWN(cx, &s->echoes, echo_run, (echo_state){ .fd = s->one });
        if (s->rc < 0) volt_close(cx, s->one);
        KEEP(s->rc);
    }
    volt_close(cx, s->fd);
    KEEP(s->rc == -ECANCELED ? 0 : s->rc);
    VOLT_AWAIT(volt_group_close(cx, &s->echoes));
    VOLT_END(s->first);
}
STATE(crowd, volt_group clients, server; volt_addr addr; int fd, i;) {
    VOLT_BEGIN(cx, s);
    s->fd = listen_on(NULL, &s->addr);
    if (s->fd < 0) VOLT_RETURN(s->fd);
    s->rc = VOLT_GROUP_SPAWN(cx, &s->server, acceptor_run, (acceptor_state){ .fd = s->fd });
    if (s->rc < 0) drop(s->fd);
    KEEP(s->rc);
    for (s->i = 0; s->i < 4; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->clients, client_run, (client_state){ .addr = s->addr }));
    KEEP_AWAIT(volt_group_wait(cx, &s->clients));
    volt_group_cancel(&s->server);
    KEEP_AWAIT(volt_group_wait(cx, &s->server));
    VOLT_END(s->first);
}

// ---- pipes, vectors, exact lengths

enum { PIPED = 200 };
STATE(drain, int fd; struct iovec iov[2]; char buf[100]; int64_t n;) {
    VOLT_BEGIN(cx, s);
    for (;;) {
        for (int i = 0; i < 2; i++) s->iov[i] = (struct iovec){ s->buf + 50 * i, 50 };
        VOLT_AWAIT(s->rc, volt_readv(cx, s->fd, s->iov, 2));
        if (s->rc <= 0) break;
        s->n += s->rc;
    }
    volt_close(cx, s->fd);
    VOLT_END(s->rc < 0 ? s->rc : s->n);
}
// The reader waits first; then bytes, then vectors.
STATE(flow, volt_handle reader; int fd[2], is_socket; struct iovec iov[2]; char buf[PIPED];
      int64_t n, got;) {
    VOLT_BEGIN(cx, s);
    KEEP(s->is_socket ? make_pair(s->fd) : make_pipe(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_SPAWN(cx, &s->reader, drain_run, (drain_state){ .fd = s->fd[0] }));
    if (s->first < 0) drop(s->fd[0]);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    KEEP_AWAIT(volt_write_all(cx, s->fd[1], s->buf, PIPED));
    s->n = volt_progress(&s->frame);
    for (int i = 0; i < 2; i++) s->iov[i] = (struct iovec){ s->buf, 60 };
    KEEP_AWAIT(volt_writev(cx, s->fd[1], s->iov, 2));
    s->n += s->rc > 0 ? s->rc : 0;
    if (s->is_socket) KEEP(volt_sock_shutdown(s->fd[1], SHUT_WR));
    volt_close(cx, s->fd[1]);
    if (!volt_handle_is_set(&s->reader)) VOLT_RETURN(s->first);
    VOLT_AWAIT(s->got, volt_join(cx, &s->reader));
    KEEP(s->got);
    // the bytes written, and no more; unless an early end was reported
    if (s->got >= 0 && inject.f.effect != ZERO) CHECK_EQ(s->got, s->n);
    VOLT_END(s->first);
}
STATE(pipe_flow, flow_state flow;) {
    VOLT_BEGIN(cx, s);
    KEEP_AWAIT(flow_run(cx, &s->flow));
    VOLT_END(s->first);
}
STATE(socket_flow, flow_state flow;) {
    VOLT_BEGIN(cx, s);
    s->flow.is_socket = 1;
    KEEP_AWAIT(flow_run(cx, &s->flow));
    VOLT_END(s->first);
}

// Messages of every length up to MOST_EXACT, each in one piece; then an early end.
enum { MOST_EXACT = 9 };
STATE(exact_reader, int fd; int64_t n; char buf[MOST_EXACT + 1];) {
    VOLT_BEGIN(cx, s);
    for (s->n = 1; s->n <= MOST_EXACT && s->first == 0; s->n++) {
        VOLT_AWAIT(s->rc, volt_read_exact(cx, s->fd, s->buf, (size_t)s->n));
        KEEP(s->rc);
        if (s->rc < 0) break;
        CHECK_EQ(s->rc, s->n);
        for (int i = 0; i < s->n; i++) CHECK_EQ(s->buf[i], s->n * 10 + i);
    }
    if (s->first == 0) {
        VOLT_AWAIT(s->rc, volt_read_exact(cx, s->fd, s->buf, MOST_EXACT));
        if (!is_hit()) CHECK(s->rc == -EPIPE && volt_progress(&s->frame) == 2);
        KEEP(s->rc == -EPIPE ? 0 : s->rc);
    }
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}
STATE(exact, volt_group group; int fd[2], is_pipe; int64_t n; char buf[MOST_EXACT];) {
    VOLT_BEGIN(cx, s);
    KEEP(s->is_pipe ? make_pipe(s->fd) : make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, exact_reader_run, (exact_reader_state){ .fd = s->fd[0] }));
    if (s->first < 0) drop(s->fd[0]);
    for (s->n = 1; s->n <= MOST_EXACT && s->first == 0; s->n++) {
        for (int i = 0; i < s->n; i++) s->buf[i] = (char)(s->n * 10 + i);
        KEEP_AWAIT(volt_write_all(cx, s->fd[1], s->buf, (size_t)s->n));
    }
    if (s->first == 0) KEEP_AWAIT(volt_write_all(cx, s->fd[1], s->buf, 2));
    volt_close(cx, s->fd[1]);
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}
STATE(exact_lengths, exact_state exact; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        s->exact = (exact_state){ .is_pipe = s->i };
        KEEP_AWAIT(exact_run(cx, &s->exact));
    }
    VOLT_END(s->first);
}

// No reader: an error, and no SIGPIPE is left for the application.
STATE(writes_to_closed_reader, int fd[2]; struct iovec iov[1];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pipe(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    volt_close(cx, s->fd[0]);
    s->iov[0] = (struct iovec){ s->fd, 1 };
    VOLT_AWAIT(s->rc, volt_write(cx, s->fd[1], "x", 1));
    KEEP(s->rc == -EPIPE ? 0 : s->rc);
    VOLT_AWAIT(s->rc, volt_writev(cx, s->fd[1], s->iov, 1));
    KEEP(s->rc == -EPIPE ? 0 : s->rc);
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    // volt's own threads always block it
    if (running->host == RUN && running->workers == 1) CHECK(!sigismember(&pending, SIGPIPE));
    volt_close(cx, s->fd[1]);
    VOLT_END(s->first);
}

// ---- waits that end without data

// Awaits an operation that returns this error unless something fails; keeps the first other error.
#define KEEP_EXPECTED(rc_, ...)                                                                    \
    do {                                                                                           \
        VOLT_AWAIT(s->rc, __VA_ARGS__);                                                            \
        if (!is_hit()) CHECK_EQ(s->rc, rc_);                                                       \
        KEEP(s->rc == (rc_) ? 0 : s->rc);                                                          \
    } while (0)

STATE(sleeps_by_other_clocks, int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = VOLT_CLOCK_BOOT; s->first == 0 && s->i <= VOLT_CLOCK_WALL; s->i++)
        KEEP_AWAIT(volt_sleep_on(cx, (volt_clock)s->i,
                                 volt_clock_now((volt_clock)s->i) + VOLT_US(300)));
    VOLT_END(s->first);
}
STATE(stops_a_sleep_by_another_clock, volt_timer timer;) {
    VOLT_BEGIN(cx, s);
    KEEP_EXPECTED(-ETIMEDOUT, volt_within(cx, &s->timer, VOLT_MS(1),
                                          volt_sleep_on(cx, VOLT_CLOCK_WALL, VOLT_NEVER)));
    VOLT_END(s->first);
}

STATE(reader, int fd; int *n_started; char c;) {
    VOLT_BEGIN(cx, s);
    add(s->n_started, 1);
    VOLT_AWAIT(s->rc, volt_read(cx, s->fd, &s->c, 1));
    VOLT_END(s->rc);
}
// A task that waits for a descriptor is told when it is closed.
STATE(closes_under_a_reader, volt_handle h; int fd[2], n_started;) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_SPAWN(cx, &s->h, reader_run,
                    (reader_state){ .fd = s->fd[0], .n_started = &s->n_started }));
    if (s->first == 0) {
        while (!get(&s->n_started)) VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    }
    volt_close(cx, s->fd[0]);
    if (s->first == 0) {
        KEEP_EXPECTED(-EBADF, volt_join(cx, &s->h));
    }
    volt_close(cx, s->fd[1]);
    VOLT_END(s->first);
}

// The time limit passes: for a read, an accept, a connect that no server accepts.
STATE(gives_up, volt_timer timer; volt_addr addr; int fd[2], listener, i, calls[3]; char c;) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP_EXPECTED(-ETIMEDOUT,
                  volt_within(cx, &s->timer, VOLT_MS(1), volt_read(cx, s->fd[0], &s->c, 1)));
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    s->listener = listen_on(NULL, &s->addr);
    if (s->listener < 0) VOLT_RETURN(worse(s->first, s->listener));
    KEEP_EXPECTED(-ETIMEDOUT,
                  volt_within(cx, &s->timer, VOLT_MS(1), volt_accept(cx, s->listener)));
    if (listen(s->listener, 0) < 0) fail("listen: %s", strerror(errno)); // one may queue
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_MS(1), volt_connect(cx, &s->addr)));
        s->calls[s->i] = (int)s->rc;
        KEEP(s->rc == -ETIMEDOUT ? 0 : s->rc);
    }
    for (int i = 0; i < 3; i++)
        if (s->calls[i] >= 0) volt_close(cx, s->calls[i]);
    volt_close(cx, s->listener);
    VOLT_END(s->first);
}

// The address is bound, but its socket does not listen.
STATE(is_refused, volt_addr addr; int fd;) {
    VOLT_BEGIN(cx, s);
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    s->fd = opened(socket(AF_INET, SOCK_STREAM, 0), FD_DATA);
    if (s->fd < 0) VOLT_RETURN(-EMFILE);
    CHECK_EQ(bind(s->fd, (struct sockaddr *)&sa, sizeof sa), 0);
    KEEP(volt_local_addr(s->fd, &s->addr));
    if (s->first == 0) KEEP_EXPECTED(-ECONNREFUSED, volt_connect(cx, &s->addr));
    drop(s->fd);
    VOLT_END(s->first);
}

// Out of descriptors twice, whatever else fails: accept waits, 5 ms and 10 ms, and does not spin.
STATE(accept_backs_off, volt_addr addr; volt_timer timer; int fd, peer, one;) {
    VOLT_BEGIN(cx, s);
    s->fd = listen_on(NULL, &s->addr);
    if (s->fd < 0) VOLT_RETURN(s->fd);
    VOLT_AWAIT(s->peer, volt_connect(cx, &s->addr));
    KEEP(s->peer);
    if (s->peer >= 0) {
        set(&inject.n_short_accepts, 2);
        VOLT_AWAIT(s->one, volt_within(cx, &s->timer, patience(), volt_accept(cx, s->fd)));
        if (s->one >= 0) CHECK_EQ(get(&inject.n_short_accepts), 0);
        set(&inject.n_short_accepts, 0);
        KEEP(s->one);
        if (s->one >= 0) volt_close(cx, s->one);
        volt_close(cx, s->peer);
    }
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}

// ---- readiness, for other libraries

STATE(poker, int fd;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(write(s->fd, "x", 1), 1);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(write(s->fd, "y", 1), 1);
    VOLT_END(0);
}
STATE(looks, volt_group group; volt_pollset set; volt_pollev ev[2]; int fd[2]; char c;) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, poker_run, (poker_state){ .fd = s->fd[1] }));
    KEEP_AWAIT(volt_writable(cx, s->fd[0]));
    if (s->first == 0) KEEP_AWAIT(volt_readable(cx, s->fd[0]));
    if (s->first == 0) CHECK_EQ(read(s->fd[0], &s->c, 1), 1);
    s->rc = volt_pollset_open(&s->set);
    if (s->rc == 0) s->rc = volt_pollset_set(&s->set, s->fd[0], VOLT_IN);
    if (s->rc == 0 && s->first == 0)
        VOLT_AWAIT(s->rc, volt_pollset_wait(cx, &s->set, s->ev, 2));
    KEEP(s->rc);
    if (s->first == 0) CHECK(s->rc == 1 && s->ev[0].fd == s->fd[0] && s->ev[0].events & VOLT_IN);
    volt_pollset_close(cx, &s->set);
    volt_fd_release(cx, s->fd[0]);
    VOLT_AWAIT(volt_group_wait(cx, &s->group));
    for (int i = 0; i < 2; i++) drop(s->fd[i]);
    VOLT_END(s->first);
}

// A descriptor that volt itself reads: there the kernel is asked.
STATE(looks_at_its_own, volt_group group; int fd[2]; char c;) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, poker_run, (poker_state){ .fd = s->fd[1] }));
    if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->fd[0], &s->c, 1));
    if (s->first == 0) KEEP_AWAIT(volt_readable(cx, s->fd[0]));
    if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->fd[0], &s->c, 1));
    if (s->first == 0) CHECK_EQ(s->c, 'y');
    KEEP_AWAIT(volt_writable(cx, s->fd[0]));
    VOLT_AWAIT(volt_group_wait(cx, &s->group));
    for (int i = 0; i < 2; i++) volt_close(cx, s->fd[i]);
    VOLT_END(s->first);
}

// Both directions of one descriptor, waited for by two tasks, become ready one after the other.
STATE(ready_waiter, int fd, is_write;) {
    VOLT_BEGIN(cx, s);
    if (s->is_write) VOLT_AWAIT(s->rc, volt_writable(cx, s->fd));
    else VOLT_AWAIT(s->rc, volt_readable(cx, s->fd));
    VOLT_END(s->rc);
}
static void fill(int fd) {
    char junk[4096] = { 0 };
    while (send(fd, junk, sizeof junk, MSG_DONTWAIT) > 0) {}
}
static void empty(int fd) {
    char junk[4096];
    while (recv(fd, junk, sizeof junk, MSG_DONTWAIT) > 0) {}
}
STATE(looks_both_ways, volt_group group; int fd[2], i;) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    fill(s->fd[0]);
    for (s->i = 0; s->i < 2; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, ready_waiter_run,
                              (ready_waiter_state){ .fd = s->fd[0], .is_write = s->i }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    CHECK_EQ(write(s->fd[1], "x", 1), 1);
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
    empty(s->fd[1]);
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    volt_fd_release(cx, s->fd[0]);
    for (int i = 0; i < 2; i++) drop(s->fd[i]);
    VOLT_END(s->first);
}

// A task that waits for a descriptor is told when it is released.
STATE(forgets_under_a_waiter, volt_handle h; int fd[2];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_SPAWN(cx, &s->h, ready_waiter_run, (ready_waiter_state){ .fd = s->fd[0] }));
    if (s->first == 0) {
        while (volt_try_join(&s->h, &s->rc) == -EAGAIN) { // it may not wait yet
            VOLT_AWAIT(volt_sleep(cx, VOLT_US(200)));
            volt_fd_release(cx, s->fd[0]);
        }
        if (!is_hit()) CHECK_EQ(s->rc, -EBADF);
        KEEP(s->rc == -EBADF ? 0 : s->rc);
    }
    for (int i = 0; i < 2; i++) drop(s->fd[i]);
    VOLT_END(s->first);
}

// ---- the rest

// A regular file: epoll refuses it, so it is always ready.
STATE(reads_a_file, int fd; char buf[40]; int64_t n;) {
    VOLT_BEGIN(cx, s);
    s->fd = opened(memfd_create("volt-fault", MFD_CLOEXEC), FD_DATA);
    if (s->fd < 0) VOLT_RETURN(-EMFILE);
    KEEP_AWAIT(volt_write_all(cx, s->fd, "as good as a file on disk", 25));
    CHECK_EQ(lseek(s->fd, 0, SEEK_SET), 0);
    KEEP_AWAIT(volt_readable(cx, s->fd));
    if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->fd, s->buf, 25));
    if (s->first == 0) CHECK(memcmp(s->buf, "as good as a file", 17) == 0);
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}

STATE(sets_options, volt_addr addr; volt_listen_options opt; int fd;) {
    VOLT_BEGIN(cx, s);
    s->opt = (volt_listen_options){ .backlog = 3, .is_reuseport = 1, .is_v6only = 1 };
    s->fd = volt_listen("127.0.0.1", 0, &s->opt);
    if (s->fd < 0) VOLT_RETURN(s->fd);
    KEEP(volt_set_nodelay(s->fd, 0));
    KEEP(volt_set_keepalive(s->fd, 10, 5, 2));
    KEEP(volt_set_keepalive(s->fd, 0, 0, 0));
    KEEP(volt_set_buffers(s->fd, 10000, 10000));
    KEEP(volt_set_linger(s->fd, -1));
    KEEP(volt_local_addr(s->fd, &s->addr));
    volt_close(cx, s->fd);
    VOLT_END(s->first);
}

// A library closes a descriptor that volt still has registered; the number is reused.
STATE(number_comes_back, volt_timer timer; volt_addr addr; int listener, fd[2], one; char c;) {
    VOLT_BEGIN(cx, s);
    s->listener = listen_on(NULL, &s->addr);
    if (s->listener < 0) VOLT_RETURN(s->listener);
    KEEP(make_pair(s->fd));
    if (s->first < 0) {
        volt_close(cx, s->listener);
        VOLT_RETURN(s->first);
    }
    KEEP_EXPECTED(-ETIMEDOUT,
                  volt_within(cx, &s->timer, VOLT_MS(1), volt_read(cx, s->fd[0], &s->c, 1)));
    drop(s->fd[0]);
    KEEP_AWAIT(volt_connect(cx, &s->addr));
    s->one = (int)s->rc;
    if (s->one >= 0) {
        KEEP_EXPECTED(-ETIMEDOUT,
                      volt_within(cx, &s->timer, VOLT_MS(1), volt_read(cx, s->one, &s->c, 1)));
        volt_close(cx, s->one);
    }
    volt_close(cx, s->fd[1]);
    volt_close(cx, s->listener);
    VOLT_END(s->first);
}

// The loser of a race between descriptors consumes nothing.
STATE(races_reads, volt_arm a, b; int one[2], two[2]; char c[2];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pair(s->one));
    KEEP(make_pair(s->two));
    if (s->first == 0) {
        CHECK_EQ(write(s->two[1], "x", 1), 1);
        VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_read(cx, s->one[0], &s->c[0], 1)),
                                      VOLT_ARM(&s->b, volt_read(cx, s->two[0], &s->c[1], 1))));
        KEEP(s->rc);
        if (s->rc >= 0) KEEP(s->rc == 0 ? s->a.value : s->b.value);
        if (s->first == 0 && inject.f.effect != ZERO) CHECK(s->rc == 1 && s->b.value == 1);
        KEEP_AWAIT(volt_write_all(cx, s->one[1], "y", 1));
        if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->one[0], s->c, 1));
    }
    for (int i = 0; i < 2; i++) {
        if (s->one[i] > 0) volt_close(cx, s->one[i]);
        if (s->two[i] > 0) volt_close(cx, s->two[i]);
    }
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_NET_H
