// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios with calls of the program's own, datagrams, descriptors sent through sockets, and
// sockets that the program opens. Each sends before it receives, so that no wait lacks its message.
#ifndef VOLT_FAULT_SCENARIOS_MESSAGES_H
#define VOLT_FAULT_SCENARIOS_MESSAGES_H

static void close_two(volt_cx *cx, const int fd[2]) {
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0) volt_close(cx, fd[i]);
}

// ---- calls of the program's own, readiness, calls that do not wait

static int64_t read_byte(int fd, void *arg) {
    ssize_t n = fault_read(fd, arg, 1);
    return n < 0 ? -errno : n;
}
static int64_t write_byte(int fd, void *arg) {
    ssize_t n = fault_write(fd, arg, 1);
    return n < 0 ? -errno : n;
}
// One byte, or an error: a result of 0 is an early end.
static int64_t unless_ended(int64_t n) { return n == 0 ? -EPIPE : n; }
STATE(own_calls, volt_group group; int fd[2], is_socket; struct iovec iov[1]; char c[2];) {
    VOLT_BEGIN(cx, s);
    KEEP(s->is_socket ? make_pair(s->fd) : make_pipe(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_GROUP_SPAWN(cx, &s->group, poker_run, (poker_state){ .fd = s->fd[1] }));
    if (s->first == 0) {
        VOLT_AWAIT(s->rc, volt_io(cx, s->fd[0], VOLT_IN, read_byte, s->c));
        KEEP(unless_ended(s->rc));
    }
    if (s->first == 0) CHECK_EQ(s->c[0], 'x');
    while (s->first == 0) {
        KEEP_AWAIT(volt_read_ready(cx, s->fd[0]));
        if (s->first < 0) break;
        s->rc = volt_try_read(cx, s->fd[0], s->c, 1);
        if (s->rc != -EAGAIN) break;
    }
    if (s->first == 0) KEEP(unless_ended(s->rc));
    if (s->first == 0) CHECK_EQ(s->c[0], 'y');
    VOLT_AWAIT(volt_group_wait(cx, &s->group));
    for (s->rc = -EAGAIN; s->first == 0 && s->rc == -EAGAIN;) {
        KEEP_AWAIT(volt_write_ready(cx, s->fd[1]));
        if (s->rc == 0) s->rc = volt_try_io(cx, s->fd[1], VOLT_OUT, write_byte, "z");
    }
    KEEP(s->rc);
    s->iov[0] = (struct iovec){ s->c, 1 };
    for (s->rc = -EAGAIN; s->first == 0 && s->rc == -EAGAIN;) {
        KEEP_AWAIT(volt_read_ready(cx, s->fd[0]));
        if (s->rc == 0) s->rc = volt_try_readv(cx, s->fd[0], s->iov, 1);
    }
    if (s->first == 0) KEEP(unless_ended(s->rc));
    if (s->first == 0) CHECK_EQ(s->c[0], 'z');
    close_two(cx, s->fd);
    VOLT_END(s->first);
}
STATE(calls_of_its_own, own_calls_state calls; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) {
        s->calls = (own_calls_state){ .is_socket = s->i };
        KEEP_AWAIT(own_calls_run(cx, &s->calls));
    }
    VOLT_END(s->first);
}

// ---- datagrams: within this host, the message is there when the send has returned

// Two sockets of UDP, and the address of each. Negative: the error, and nothing is open.
static int open_udp(int fd[2], volt_addr addr[2], const volt_udp_options *options) {
    volt_addr any;
    fd[0] = fd[1] = -1;
    CHECK_EQ(volt_addr_make(&any, "127.0.0.1", 0), 0);
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) {
        fd[i] = volt_udp_open(&any, options);
        rc = fd[i] < 0 ? fd[i] : volt_local_addr(fd[i], &addr[i]);
    }
    for (int i = 0; i < 2 && rc < 0; i++)
        if (fd[i] >= 0) drop(fd[i]);
    return rc;
}
STATE(datagrams, volt_udp_options options; volt_addr addr[2], from; volt_msg_info info;
      volt_msg_control room; struct msghdr message; struct iovec iov[2]; int fd[2]; char in[16];) {
    VOLT_BEGIN(cx, s);
    s->options = (volt_udp_options){ .has_info = 1, .send_bytes = 10000 };
    s->rc = open_udp(s->fd, s->addr, &s->options);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    KEEP(volt_set_ttl(s->fd[0], 9));
    KEEP(volt_set_tos(s->fd[0], 8));
    KEEP_AWAIT(volt_sendto(cx, s->fd[0], "hello", 5, 0, &s->addr[1]));
    if (s->first == 0)
        KEEP_AWAIT(volt_recvfrom(cx, s->fd[1], s->in, sizeof s->in, 0, &s->from));
    if (s->first == 0)
        CHECK(s->rc == 5 && memcmp(s->in, "hello", 5) == 0 &&
              volt_addr_equal(&s->from, &s->addr[0]));
    // a datagram that is longer than the buffer is an error of its own
    if (s->first == 0) KEEP_AWAIT(volt_sendto(cx, s->fd[0], "hello", 5, 0, &s->addr[1]));
    if (s->first == 0) {
        VOLT_AWAIT(s->rc, volt_recv(cx, s->fd[1], s->in, 2, 0));
        if (!is_hit()) CHECK_EQ(s->rc, -EMSGSIZE);
        KEEP(s->rc == -EMSGSIZE ? 0 : s->rc);
    }
    if (s->first == 0) KEEP_AWAIT(volt_connect_on(cx, s->fd[0], &s->addr[1]));
    for (int i = 0; i < 2; i++) s->iov[i] = (struct iovec){ s->in + 8 * i, i ? 8 : 3 };
    s->message = (struct msghdr){ .msg_iov = s->iov, .msg_iovlen = 2 };
    s->info = (volt_msg_info){ .has = VOLT_MSG_TOS, .tos = 4 };
    CHECK_EQ(volt_msg_info_put(&s->message, &s->room, &s->info), 0);
    if (s->first == 0) KEEP_AWAIT(volt_sendmsg(cx, s->fd[0], &s->message, 0));
    if (s->first == 0) {
        s->message.msg_control = s->room.bytes;
        s->message.msg_controllen = sizeof s->room.bytes;
        KEEP_AWAIT(volt_recvmsg(cx, s->fd[1], &s->message, 0));
    }
    if (s->first == 0) {
        volt_msg_info_get(&s->message, &s->info);
        CHECK_EQ(s->rc, 11);
        if (!is_hit()) CHECK((s->info.has & VOLT_MSG_LOCAL) && s->info.tos == 4);
    }
    if (s->first == 0) KEEP_AWAIT(volt_send(cx, s->fd[0], "", 0, 0));
    if (s->first == 0) KEEP_AWAIT(volt_recv(cx, s->fd[1], s->in, sizeof s->in, 0));
    if (s->first == 0) CHECK_EQ(s->rc, 0);
    KEEP(volt_sock_error(s->fd[0]));
    close_two(cx, s->fd);
    VOLT_END(s->first);
}

// As many as are possible by each call; with an older kernel, one by one.
enum { N_MESSAGES = 3 };
STATE(several_messages, volt_addr addr[2]; struct mmsghdr out[N_MESSAGES], in[N_MESSAGES];
      struct iovec part[2][N_MESSAGES]; int fd[2], n, got; char text[N_MESSAGES][4], to[64];) {
    VOLT_BEGIN(cx, s);
    s->rc = open_udp(s->fd, s->addr, NULL);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    memset(s->out, 0, sizeof s->out);
    memset(s->in, 0, sizeof s->in);
    for (int i = 0; i < N_MESSAGES; i++) {
        unsigned len;
        const struct sockaddr *sa = volt_addr_sockaddr(&s->addr[1], &len);
        memset(s->text[i], 'a' + i, sizeof s->text[i]);
        s->part[0][i] = (struct iovec){ s->text[i], (size_t)i + 1 };
        s->part[1][i] = (struct iovec){ s->to + 8 * i, 8 };
        s->out[i].msg_hdr = (struct msghdr){ .msg_iov = &s->part[0][i],
                                             .msg_iovlen = 1,
                                             .msg_name = (void *)(uintptr_t)sa,
                                             .msg_namelen = len };
        s->in[i].msg_hdr = (struct msghdr){ .msg_iov = &s->part[1][i], .msg_iovlen = 1 };
    }
    while (s->first == 0 && s->n < N_MESSAGES) {
        KEEP_AWAIT(volt_sendmmsg(cx, s->fd[0], s->out + s->n, (unsigned)(N_MESSAGES - s->n), 0));
        if (s->first == 0) CHECK(s->rc > 0 && s->rc <= N_MESSAGES - s->n);
        s->n += s->rc > 0 ? (int)s->rc : 0;
    }
    while (s->first == 0 && s->got < s->n) {
        KEEP_AWAIT(volt_recvmmsg(cx, s->fd[1], s->in + s->got, (unsigned)(N_MESSAGES - s->got), 0));
        for (int i = 0; i < s->rc; i++, s->got++) {
            CHECK_EQ(s->in[s->got].msg_len, s->got + 1);
            CHECK_EQ(s->to[8 * s->got], 'a' + s->got);
        }
    }
    close_two(cx, s->fd);
    VOLT_END(s->first);
}

// Joined, or one by one, where that is refused.
enum { SEGMENTED = 1050, SEGMENT = 100 };
STATE(segments, volt_udp_options options; volt_addr addr[2], from; int fd[2]; int64_t sent, got;
      size_t segment; char out[SEGMENTED], in[65536 / 2];) {
    VOLT_BEGIN(cx, s);
    s->options.is_joined = 1;
    s->rc = open_udp(s->fd, s->addr, &s->options);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    for (int i = 0; i < SEGMENTED; i++) s->out[i] = (char)(i * 7);
    while (s->first == 0 && s->sent < SEGMENTED) {
        KEEP_AWAIT(volt_send_segments(cx, s->fd[0], s->out + s->sent,
                                      (size_t)(SEGMENTED - s->sent), SEGMENT, &s->addr[1]));
        if (s->first == 0) CHECK(s->rc > 0);
        s->sent += s->rc > 0 ? s->rc : 0;
    }
    while (s->first == 0 && s->got < SEGMENTED) {
        KEEP_AWAIT(volt_recv_segments(cx, s->fd[1], s->in, sizeof s->in, &s->segment, &s->from,
                                      NULL));
        if (s->first < 0) break;
        CHECK(s->rc > 0 && s->rc <= SEGMENTED - s->got);
        CHECK_EQ(s->segment, s->rc < SEGMENT ? s->rc : SEGMENT);
        CHECK(memcmp(s->in, s->out + s->got, (size_t)s->rc) == 0);
        s->got += s->rc;
    }
    close_two(cx, s->fd);
    VOLT_END(s->first);
}

// The name of an interface becomes its number, and the number its name, if it is known.
STATE(names_of_interfaces, volt_addr addr; char text[80];) {
    VOLT_BEGIN(cx, s);
    // the C library needs a socket, and gives ENOENT if there is none
    if (inject.f.effect == LIMIT) VOLT_RETURN(0);
    KEEP(volt_addr_parse(&s->addr, "[fe80::1%lo]:80"));
    if (s->first == 0) CHECK(volt_addr_format(&s->addr, s->text, sizeof s->text) > 0);
    if (s->first == 0 && !is_hit()) CHECK(strcmp(s->text, "[fe80::1%lo]:80") == 0);
    VOLT_END(s->first);
}

// ---- descriptors through a unix socket

// Both ends of a pipe go through a socket, first with room for only one of them.
STATE(passes_descriptors, volt_fds_info info; volt_cred cred; int pair[2], pipe[2], in[2];
      unsigned i; char c[2];) {
    VOLT_BEGIN(cx, s);
    s->rc = volt_socketpair(SOCK_STREAM, s->pair);
    if (s->rc < 0) VOLT_RETURN(s->rc);
    s->rc = volt_pipe(s->pipe);
    if (s->rc < 0) s->pipe[0] = s->pipe[1] = -1;
    KEEP(s->rc);
    for (s->i = 1; s->first == 0 && s->i <= 2; s->i++) {
        s->in[0] = s->in[1] = -1;
        KEEP_AWAIT(volt_send_fds(cx, s->pair[0], "a", 1, s->pipe, 2));
        if (s->first < 0) break;
        VOLT_AWAIT(s->rc, volt_recv_fds(cx, s->pair[1], s->c, 1, s->in, s->i, &s->info));
        KEEP(unless_ended(s->rc));
        if (s->rc < 0) CHECK_EQ(s->info.n, 0);
        if (s->info.n < s->i && s->first == 0) KEEP(-EMFILE); // the limit was reached
        if (s->first == 0) CHECK_EQ(s->info.is_surplus, s->i == 1);
        if (s->first == 0 && s->i == 2) {
            KEEP_AWAIT(volt_write_all(cx, s->in[1], "b", 1));
            if (s->first == 0) KEEP_AWAIT(volt_read_exact(cx, s->in[0], s->c, 1));
            if (s->first == 0) CHECK_EQ(s->c[0], 'b');
        }
        close_two(cx, s->in);
    }
    s->rc = volt_peer_cred(s->pair[0], &s->cred);
    if (s->rc == 0) CHECK_EQ(s->cred.pid, getpid());
    KEEP(s->rc);
    s->rc = volt_peer_pidfd(s->pair[0]);
    if (s->rc >= 0) volt_close(cx, (int)s->rc);
    KEEP(s->rc);
    close_two(cx, s->pair);
    close_two(cx, s->pipe);
    VOLT_END(s->first);
}

// ---- sockets that the program opens

STATE(connects_its_own, volt_addr addr, any, from, own; volt_timer timer; int listener, fd, one,
      i;) {
    VOLT_BEGIN(cx, s);
    s->listener = listen_on(NULL, &s->addr);
    if (s->listener < 0) VOLT_RETURN(s->listener);
    CHECK_EQ(volt_addr_make(&s->any, "127.0.0.1", 0), 0);
    for (s->i = 0; s->i < 2 && s->first == 0; s->i++) {
        if (s->i == 0) {
            s->fd = volt_sock_open(AF_INET, SOCK_STREAM, 0);
            KEEP(s->fd);
            if (s->fd >= 0) KEEP_AWAIT(volt_connect_on(cx, s->fd, &s->addr));
        } else {
            VOLT_AWAIT(s->fd, volt_connect_from(cx, &s->addr, &s->any));
            KEEP(s->fd);
        }
        if (s->first == 0) {
            VOLT_AWAIT(s->one, volt_within(cx, &s->timer, patience(),
                                           volt_accept_from(cx, s->listener, &s->from)));
            KEEP(s->one);
            KEEP(volt_local_addr(s->fd, &s->own));
            if (s->first == 0) CHECK(volt_addr_equal(&s->from, &s->own));
            if (s->one >= 0) volt_close(cx, s->one);
        }
        if (s->fd >= 0) volt_close_reset(cx, s->fd);
    }
    volt_close(cx, s->listener);
    VOLT_END(s->first);
}

// The path of a listener that has ended without removing it; then of a datagram socket. The
// directory is this process's own: its lock would keep other ones out.
// Some errors are reported as a path in use: that of its lock, and that of a server that answers.
static int64_t in_use_by(int64_t rc) {
    if (rc == -EINTR && inject.f.call == C_connect) return 0; // not on a non-blocking socket
    if (rc != -EADDRINUSE || !is_hit()) return rc;
    return inject.f.call == C_flock ? -EBUSY : -inject.f.value;
}
STATE(replaces_a_path, volt_addr addr; volt_listen_options options; int fd, i;
      char dir[40], text[60];) {
    VOLT_BEGIN(cx, s);
    snprintf(s->dir, sizeof s->dir, "/tmp/volt-fault-%d-dir", (int)getpid());
    snprintf(s->text, sizeof s->text, "unix:%s/socket", s->dir);
    unlink(s->text + strlen("unix:")); // a run that was killed has left both
    rmdir(s->dir);
    CHECK_EQ(mkdir(s->dir, 0700), 0);
    CHECK_EQ(volt_addr_parse(&s->addr, s->text), 0);
    s->options = (volt_listen_options){ .mode = 0600, .has_owner = 1, .is_replacing = 1 };
    s->options.uid = (unsigned)getuid();
    s->options.gid = (unsigned)getgid();
    for (s->i = 0; s->i < 3 && s->first == 0; s->i++) {
        s->fd = s->i < 2 ? volt_listen_addr(&s->addr, &s->options)
                         : volt_unix_open(&s->addr, &s->options);
        KEEP(in_use_by(s->fd));
        if (s->fd < 0) break;
        if (s->i == 1) {
            KEEP(volt_unix_unlink(s->fd));
            if (s->first == 0) CHECK(access(s->text + strlen("unix:"), F_OK) < 0);
        }
        drop(s->fd);
    }
    unlink(s->text + strlen("unix:"));
    CHECK_EQ(rmdir(s->dir), 0);
    VOLT_END(s->first);
}

#endif // VOLT_FAULT_SCENARIOS_MESSAGES_H
