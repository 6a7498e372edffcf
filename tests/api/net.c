// SPDX-License-Identifier: MIT OR 0BSD
// Descriptors and sockets, on 127.0.0.1, unix sockets and pipes.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

// ---- shared

// Two connected TCP sockets.
typedef struct {
    volt_frame frame;
    volt_arm connects, accepts;
    volt_addr addr;
    int lfd, left, right;
    int64_t rc;
} pairing;
static volt_poll tcp_pair(volt_cx *cx, pairing *p) {
    VOLT_BEGIN(cx, p);
    p->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(p->lfd >= 0);
    CHECK_EQ(volt_local_addr(p->lfd, &p->addr), 0);
    VOLT_AWAIT(p->rc, VOLT_JOIN_ALL(VOLT_ARM(&p->connects, p->left, volt_connect(cx, &p->addr)),
                                    VOLT_ARM(&p->accepts, p->right, volt_accept(cx, p->lfd))));
    CHECK(p->left >= 0 && p->right >= 0);
    volt_close(cx, p->lfd);
    VOLT_END(0);
}
static void close_pair(volt_cx *cx, pairing *p) {
    volt_close(cx, p->left);
    volt_close(cx, p->right);
}

static unsigned char pattern(size_t at) { return (unsigned char)((at * 31) >> 3 ^ at >> 11); }
static void fill(unsigned char *buf, size_t at, size_t n) {
    for (size_t i = 0; i < n; i++) buf[i] = pattern(at + i);
}
static void check_pattern(const unsigned char *buf, size_t at, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (buf[i] != pattern(at + i)) test_fail(__FILE__, __LINE__, "wrong byte at %zu", at + i);
}

// A directory for unix sockets; removed by drop_dir.
static char dir[] = "/tmp/volt-test-XXXXXX";
static void make_dir(void) { CHECK(mkdtemp(dir)); }
static volt_addr unix_addr(const char *name) {
    char text[80];
    volt_addr a;
    snprintf(text, sizeof text, "unix:%s/%s", dir, name);
    CHECK_EQ(volt_addr_parse(&a, text), 0);
    return a;
}
static void drop_dir(const char *name) {
    char path[80];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
    CHECK_EQ(rmdir(dir), 0);
}

// Reads one byte; tells what it got.
typedef struct {
    volt_frame frame;
    int fd, *n_started;
    int64_t rc;
    char byte;
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    if (r->n_started) COUNT(*r->n_started);
    VOLT_AWAIT(r->rc, volt_read(cx, r->fd, &r->byte, 1));
    VOLT_END(r->rc == 1 ? 1000 + r->byte : r->rc);
}
static int has_reader(volt_rt *rt, int fd) {
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    CHECK(e);
    volt__lock(&e->lock);
    int has = e->rd != NULL;
    volt__unlock(&e->lock);
    return has;
}
// Yields until a task waits to read: one that has started to run may still be far from that.
static volt_poll until_read_waits(volt_cx *cx, awaiter *a, int fd) {
    VOLT_BEGIN(cx, a);
    while (!has_reader(cx->rt_, fd)) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}

// ---- echo

enum { ROUNDS = 20, MESSAGE = 300 };
typedef struct {
    volt_frame frame;
    volt_group clients;
    int lfd, fd;
    int64_t rc;
} acceptor;
static volt_poll acceptor_run(volt_cx *cx, void *arg) {
    acceptor *a = arg;
    VOLT_BEGIN(cx, a);
    for (;;) {
        VOLT_AWAIT(a->fd, volt_accept(cx, a->lfd));
        if (a->fd < 0) break;
        GROUP_SPAWN(&a->clients, mirror_run, (mirror){ .fd = a->fd, .cap = 128 });
    }
    CHECK_EQ(a->fd, -ECANCELED);
    VOLT_AWAIT(volt_group_close(cx, &a->clients));
    volt_close(cx, a->lfd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_addr to;
    int fd, i, rounds;
    int64_t n;
    unsigned char out[MESSAGE], in[MESSAGE];
} client;
static volt_poll client_run(volt_cx *cx, void *arg) {
    client *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd, volt_connect(cx, &c->to));
    if (c->fd < 0) VOLT_RETURN(c->fd);
    for (c->i = 0; c->i < c->rounds; c->i++) {
        fill(c->out, (size_t)RANDOM(), MESSAGE);
        memset(c->in, 0, MESSAGE);
        VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->out, MESSAGE));
        CHECK_EQ(c->n, MESSAGE);
        VOLT_AWAIT(c->n, volt_read_exact(cx, c->fd, c->in, MESSAGE));
        CHECK_EQ(c->n, MESSAGE);
        CHECK(memcmp(c->in, c->out, MESSAGE) == 0);
    }
    volt_close(cx, c->fd);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_addr at;
    volt_handle server;
    volt_group clients;
    int lfd, n_clients, rounds, i;
    int64_t rc;
} echo_test;
static volt_poll echo_test_run(volt_cx *cx, void *arg) {
    echo_test *t = arg;
    VOLT_BEGIN(cx, t);
    t->lfd = volt_listen_addr(&t->at, NULL);
    CHECK(t->lfd >= 0);
    CHECK_EQ(volt_local_addr(t->lfd, &t->at), 0);
    SPAWN(&t->server, acceptor_run, (acceptor){ .lfd = t->lfd });
    for (t->i = 0; t->i < t->n_clients; t->i++)
        GROUP_SPAWN(&t->clients, client_run, (client){ .to = t->at, .rounds = t->rounds });
    VOLT_AWAIT(t->rc, volt_group_wait(cx, &t->clients));
    CHECK_EQ(t->rc, 0);
    volt_cancel(&t->server);
    VOLT_AWAIT(t->rc, volt_join(cx, &t->server));
    CHECK_EQ(t->rc, 0);
    VOLT_END(0);
}
TEST(tcp_echoes_every_message) {
    EACH_WORKERS(w) {
        echo_test t = { .n_clients = 20, .rounds = ROUNDS };
        CHECK_EQ(volt_addr_parse(&t.at, "127.0.0.1:0"), 0);
        CHECK_EQ(run_on(w, echo_test_run, &t), 0);
    }
}
TEST(unix_sockets_echo_every_message) {
    make_dir();
    EACH_WORKERS(w) {
        char path[80];
        echo_test t = { .n_clients = 20, .rounds = ROUNDS, .at = unix_addr("echo") };
        CHECK_EQ(run_on(w, echo_test_run, &t), 0);
        snprintf(path, sizeof path, "%s/echo", dir);
        unlink(path);
    }
    drop_dir("echo");
}
TEST(five_hundred_connections_echo_at_once) {
    struct rlimit r;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (r.rlim_max < 1200) SKIP("needs 1200 descriptors; the hard limit is below");
    r.rlim_cur = r.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    EACH_WORKERS(w) {
        echo_test t = { .n_clients = 500, .rounds = 3 };
        CHECK_EQ(volt_addr_parse(&t.at, "127.0.0.1:0"), 0);
        CHECK_EQ(run_on(w, echo_test_run, &t), 0);
    }
}

// ---- reading and writing

enum { BIG = 8 << 20 };
typedef struct {
    volt_frame frame;
    int fd;
    size_t at;
    int64_t n;
    unsigned char *buf;
} slow_reader;
static volt_poll slow_reader_run(volt_cx *cx, void *arg) {
    slow_reader *r = arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->n, volt_read(cx, r->fd, r->buf, 100000));
        if (r->n <= 0) break;
        check_pattern(r->buf, r->at, (size_t)r->n);
        r->at += (size_t)r->n;
        if (RANDOM_BELOW(8) == 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    CHECK_EQ(r->n, 0);
    VOLT_END((int64_t)r->at);
}
ROOT_TEST(write_all_writes_everything_to_slow_reader, {
    pairing p;
    volt_handle h;
    unsigned char *out, *in;
    int64_t n;
}) {
    VOLT_BEGIN(cx, s);
    s->out = malloc(BIG);
    s->in = malloc(100000);
    fill(s->out, 0, BIG);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    SPAWN(&s->h, slow_reader_run, (slow_reader){ .fd = s->p.right, .buf = s->in });
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, s->out, BIG));
    CHECK_EQ(s->n, BIG);
    CHECK_EQ(volt_sock_shutdown(s->p.left, SHUT_WR), 0);
    VOLT_AWAIT(s->n, volt_join(cx, &s->h));
    CHECK_EQ(s->n, BIG);
    close_pair(cx, &s->p);
    free(s->out);
    free(s->in);
    VOLT_END(0);
}

ROOT_TEST(progress_counts_bytes_of_read_exact_that_failed,
          { pairing p; int64_t n; char buf[64]; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, "abcdefghij", 10));
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.right, s->buf, 4));
    CHECK(s->n == 4 && memcmp(s->buf, "abcd", 4) == 0);
    VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_MS(5),
                                 volt_read_exact(cx, s->p.right, s->buf, 20)));
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(volt_progress(&s->frame), 6); // these six are in the buffer
    CHECK(memcmp(s->buf, "efghij", 6) == 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, "xyz", 3));
    CHECK_EQ(volt_sock_shutdown(s->p.left, SHUT_WR), 0);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.right, s->buf, 20));
    CHECK_EQ(s->n, -EPIPE); // an early end of file
    CHECK_EQ(volt_progress(&s->frame), 3);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.right, s->buf, 20));
    CHECK_EQ(s->n, -EPIPE);
    CHECK_EQ(volt_progress(&s->frame), 0);
    VOLT_AWAIT(s->n, volt_read(cx, s->p.right, s->buf, 20));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.right, s->buf, 0));
    CHECK_EQ(s->n, 0); // nothing wanted, nothing missing
    close_pair(cx, &s->p);
    VOLT_END(0);
}

ROOT_TEST(readv_and_writev_transfer_every_part,
          { pairing p; int64_t n; char a[3], b[4], c[50]; struct iovec v[3]; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    s->v[0] = (struct iovec){ s->a, 3 }, s->v[1] = (struct iovec){ s->b, 4 };
    s->v[2] = (struct iovec){ s->c, 5 };
    memcpy(s->a, "abc", 3), memcpy(s->b, "defg", 4), memcpy(s->c, "hijkl", 5);
    VOLT_AWAIT(s->n, volt_writev(cx, s->p.left, s->v, 3));
    CHECK_EQ(s->n, 12);
    VOLT_AWAIT(s->n, volt_readable(cx, s->p.right));
    memset(s->c, 0, sizeof s->c);
    s->v[0] = (struct iovec){ s->a, 1 }, s->v[1] = (struct iovec){ s->b, 0 };
    s->v[2] = (struct iovec){ s->c, 50 };
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->v, 3));
    CHECK_EQ(s->n, 12);
    CHECK(s->a[0] == 'a' && memcmp(s->c, "bcdefghijkl", 12) == 0);
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->v, 0));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->v, -1));
    CHECK_EQ(s->n, -EINVAL);
    close_pair(cx, &s->p);
    VOLT_END(0);
}

static int64_t events(volt_cx *cx) {
    volt_counters c;
    volt_stats(volt_cx_rt(cx), &c);
    return (int64_t)c.events;
}
ROOT_TEST_1(events_are_counted, { pairing p; int64_t n, before; char byte; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    s->before = events(cx);
    VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_MS(3), volt_read(cx, s->p.right, &s->byte, 1)));
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK(events(cx) > s->before); // it can be written
    s->before = events(cx);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, "x", 1));
    VOLT_AWAIT(s->n, volt_read(cx, s->p.right, &s->byte, 1));
    CHECK_EQ(s->n, 1);
    CHECK(events(cx) > s->before); // it can be read
    close_pair(cx, &s->p);
    VOLT_END(0);
}

ROOT_TEST(zero_length_transfers_end_at_once, { pairing p; int64_t n; char byte; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_S(5), volt_read(cx, s->p.left, &s->byte, 0)));
    CHECK_EQ(s->n, 0); // at once, as read(2)
    VOLT_AWAIT(s->n, volt_write(cx, s->p.left, &s->byte, 0));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, &s->byte, 0));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_MS(3), volt_read(cx, s->p.right, &s->byte, 1)));
    CHECK_EQ(s->n, -ETIMEDOUT); // and nothing has arrived
    close_pair(cx, &s->p);
    VOLT_END(0);
}

// The peer resets in the middle of a write; SIGPIPE, which would end the test, does not come.
typedef struct {
    volt_frame frame;
    int fd;
    char byte;
    int64_t n;
} resetter;
static volt_poll resetter_run(volt_cx *cx, void *arg) {
    resetter *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->n, volt_read(cx, r->fd, &r->byte, 1)); // the write has begun
    CHECK_EQ(r->n, 1);
    CHECK_EQ(volt_set_linger(r->fd, 0), 0);
    volt_close(cx, r->fd);
    VOLT_END(0);
}
static int is_broken(int64_t n) { return n == -ECONNRESET || n == -EPIPE; }
ROOT_TEST(reset_ends_write_all_and_progress_stays, {
    pairing p;
    volt_handle h;
    unsigned char *out;
    int64_t n;
}) {
    VOLT_BEGIN(cx, s);
    s->out = calloc(1, BIG);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    SPAWN(&s->h, resetter_run, (resetter){ .fd = s->p.right });
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, s->out, BIG));
    CHECK(is_broken(s->n));
    CHECK(volt_progress(&s->frame) > 0 && volt_progress(&s->frame) < BIG);
    VOLT_AWAIT(s->n, volt_write(cx, s->p.left, s->out, 10));
    CHECK(is_broken(s->n));
    VOLT_AWAIT(volt_join(cx, &s->h));
    volt_close(cx, s->p.left);
    free(s->out);
    VOLT_END(0);
}

ROOT_TEST(broken_pipe_raises_no_signal, { int fd[2], flags; int64_t n; unsigned char *out; }) {
    VOLT_BEGIN(cx, s);
    s->out = calloc(1, BIG);
    CHECK_EQ(pipe(s->fd), 0);
    volt_close(cx, s->fd[0]);
    VOLT_AWAIT(s->n, volt_write(cx, s->fd[1], "x", 1));
    CHECK_EQ(s->n, -EPIPE);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->fd[1], s->out, BIG));
    CHECK_EQ(s->n, -EPIPE);
    volt_close(cx, s->fd[1]);
    free(s->out);
    VOLT_END(0);
}
TEST(no_signal_is_left_pending) {
    sigset_t before, after, pending;
    sigprocmask(SIG_BLOCK, NULL, &before);
    EACH_WORKERS(w) {
        broken_pipe_raises_no_signal_state s;
        memset(&s, 0, sizeof s);
        CHECK_EQ(run_on(w, broken_pipe_raises_no_signal_root, &s), 0);
    }
    sigprocmask(SIG_BLOCK, NULL, &after);
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    CHECK_EQ(sigismember(&after, SIGPIPE), sigismember(&before, SIGPIPE));
    CHECK_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

ROOT_TEST(half_closed_socket_works_in_other_direction, { pairing p; int64_t n; char buf[16]; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, "bye", 3));
    CHECK_EQ(volt_sock_shutdown(s->p.left, SHUT_WR), 0);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.right, s->buf, 3));
    CHECK_EQ(s->n, 3);
    VOLT_AWAIT(s->n, volt_read(cx, s->p.right, s->buf, 16));
    CHECK_EQ(s->n, 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->p.right, "ok", 2)); // the other direction lives
    CHECK_EQ(s->n, 2);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->p.left, s->buf, 2));
    CHECK(s->n == 2 && memcmp(s->buf, "ok", 2) == 0);
    VOLT_AWAIT(s->n, volt_write(cx, s->p.left, "x", 1));
    CHECK_EQ(s->n, -EPIPE);
    CHECK_EQ(volt_sock_shutdown(-1, SHUT_RDWR), -EBADF);
    close_pair(cx, &s->p);
    VOLT_END(0);
}

// A connection that idles: the timed-out read has consumed nothing.
ROOT_TEST(read_that_times_out_consumes_nothing, {
    pairing p;
    int64_t n;
    char late[16], buf[16], text[5];
    volt_timer t;
    int i;
    volt_time at;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    for (s->i = 0; s->i < 3; s->i++) {
        memset(s->late, '#', sizeof s->late);
        s->at = volt_now();
        VOLT_AWAIT(s->n,
                   volt_within(cx, &s->t, VOLT_MS(4), volt_read(cx, s->p.right, s->late, 16)));
        CHECK_EQ(s->n, -ETIMEDOUT);
        CHECK(volt_now() - s->at >= VOLT_MS(4));
        snprintf(s->text, sizeof s->text, "dat%d", s->i);
        VOLT_AWAIT(s->n, volt_write_all(cx, s->p.left, s->text, 4));
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1))); // its event comes while no task waits for it
        VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_S(9), volt_read(cx, s->p.right, s->buf, 16)));
        CHECK_EQ(s->n, 4);
        CHECK_EQ(memcmp(s->buf, s->text, 4), 0);
        for (int i = 0; i < 16; i++) CHECK_EQ(s->late[i], '#');
    }
    close_pair(cx, &s->p);
    VOLT_END(0);
}

// ---- connect, listen, addresses

ROOT_TEST(listen_and_connect_give_errors_of_kernel,
          { volt_addr a; int lfd, fd; volt_listen_options o; }) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    CHECK_EQ(volt_listen("127.0.0.1", (unsigned)volt_addr_port(&s->a), NULL), -EADDRINUSE);
    volt_close(cx, s->lfd);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->a));
    CHECK_EQ(s->fd, -ECONNREFUSED);
    CHECK_EQ(volt_addr_parse(&s->a, "unix:/nonexistent/volt"), 0);
    VOLT_AWAIT(s->fd, volt_connect(cx, &s->a));
    CHECK_EQ(s->fd, -ENOENT);
    VOLT_END(0);
}

TEST(listen_obeys_its_options_and_refuses_bad_hosts) {
    volt_addr a;
    volt_listen_options o = { .is_reuseport = 1, .backlog = 5 };
    int first = volt_listen("127.0.0.1", 0, &o);
    CHECK(first >= 0);
    CHECK_EQ(volt_local_addr(first, &a), 0);
    int second = volt_listen("127.0.0.1", (unsigned)volt_addr_port(&a), &o);
    CHECK(second >= 0); // the same port twice
    CHECK(fcntl(first, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(first, F_GETFL) & O_NONBLOCK);
    close(first);
    close(second);
    CHECK_EQ(volt_listen("no name", 80, NULL), -EINVAL);
    CHECK_EQ(volt_listen("", 80, NULL), -EINVAL);
    CHECK_EQ(volt_listen("127.0.0.1", 65536, NULL), -EINVAL);
    int any = volt_listen(NULL, 0, NULL); // right away on the same port: SO_REUSEADDR
    CHECK(any >= 0);
    CHECK_EQ(volt_local_addr(any, &a), 0);
    close(any);
    any = volt_listen(NULL, (unsigned)volt_addr_port(&a), NULL);
    CHECK(any >= 0);
    close(any);
}

ROOT_TEST(listen_without_host_takes_every_address,
          { volt_addr a; int lfd, out, in, i, n_kinds; char text[64]; }) {
    VOLT_BEGIN(cx, s);
    int v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->n_kinds = v6 < 0 ? 1 : 2; // IPv4, and IPv6 where the kernel has it
    if (v6 >= 0) close(v6);
    s->lfd = volt_listen(NULL, 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    CHECK(volt_addr_format(&s->a, s->text, sizeof s->text) > 0);
    CHECK_EQ(strncmp(s->text, s->n_kinds > 1 ? "[::]:" : "0.0.0.0:", 5), 0);
    for (s->i = 0; s->i < s->n_kinds; s->i++) {
        snprintf(s->text, sizeof s->text, "%s:%d", s->i ? "[::1]" : "127.0.0.1",
                 volt_addr_port(&s->a));
        {
            volt_addr to;
            CHECK_EQ(volt_addr_parse(&to, s->text), 0);
            s->a = to;
        }
        VOLT_AWAIT(s->out, volt_connect(cx, &s->a));
        if (s->i == 1 && s->out == -EADDRNOTAVAIL) break; // no interface has it
        CHECK(s->out >= 0);
        VOLT_AWAIT(s->in, volt_accept(cx, s->lfd));
        CHECK(s->in >= 0);
        volt_close(cx, s->out);
        volt_close(cx, s->in);
    }
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

TEST(addresses_survive_format_and_parse) {
    static const char *const good[] = {
        "127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "10.1.2.3:1", "[::1]:80", "[::]:0",
        "[2001:db8::ff00:42:8329]:443", "unix:/tmp/socket", "unix:/",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        volt_addr a;
        char text[140];
        CHECK_EQ(volt_addr_parse(&a, good[i]), 0);
        CHECK_EQ(volt_addr_format(&a, text, sizeof text), strlen(good[i]));
        CHECK_STR(text, good[i]);
        CHECK_EQ(volt_addr_format(&a, text, strlen(good[i]) + 1), strlen(good[i]));
        CHECK_EQ(volt_addr_format(&a, text, strlen(good[i])), -ENOSPC);
        CHECK_EQ(volt_addr_format(&a, text, 0), -ENOSPC);
        const char *colon = strrchr(good[i], ':');
        CHECK_EQ(volt_addr_port(&a), good[i][0] == 'u' ? 0 : atoi(colon + 1));
    }
    volt_addr none;
    char text[40];
    memset(&none, 0, sizeof none);
    CHECK_EQ(volt_addr_format(&none, text, sizeof text), -EAFNOSUPPORT);
}

// Leaves these bytes on the stack for the next function.
static __attribute__((noinline)) void dirty_stack(void) {
    volatile char dirt[4096];
    for (size_t i = 0; i < sizeof dirt; i++) dirt[i] = 'x';
}
static void check_bytes(const volt_addr *a, const void *sa, size_t len) {
    CHECK_EQ(a->len_, len);
    CHECK_EQ(memcmp(a->sa_, sa, len), 0);
    for (size_t i = len; i < sizeof a->sa_; i++) CHECK_EQ(a->sa_[i], 0);
}
// Every byte is known, so that two may be compared.
TEST(addr_has_no_undefined_bytes) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
    volt_addr a;
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    memset(&un, 0, sizeof un);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(513);
    v4.sin_addr.s_addr = htonl(0x7f000001);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(513);
    v6.sin6_addr.s6_addr[15] = 1;
    un.sun_family = AF_UNIX;
    un.sun_path[0] = '/';
    memset(&a, 0xa5, sizeof a);
    dirty_stack();
    CHECK_EQ(volt_addr_parse(&a, "127.0.0.1:513"), 0);
    check_bytes(&a, &v4, sizeof v4);
    memset(&a, 0xa5, sizeof a);
    dirty_stack();
    CHECK_EQ(volt_addr_parse(&a, "[::1]:513"), 0);
    check_bytes(&a, &v6, sizeof v6);
    memset(&a, 0xa5, sizeof a);
    dirty_stack();
    CHECK_EQ(volt_addr_parse(&a, "unix:/\0x"), 0);
    check_bytes(&a, &un, sizeof un);
    int fd = volt_listen("127.0.0.1", 0, NULL);
    memset(&a, 0xa5, sizeof a);
    CHECK_EQ(volt_local_addr(fd, &a), 0);
    v4.sin_port = htons((uint16_t)volt_addr_port(&a));
    check_bytes(&a, &v4, sizeof v4);
    CHECK_EQ(close(fd), 0);
}
// No byte is written behind the room that is given, none is read behind the address.
TEST(addr_format_stays_within_its_room) {
    const char want[] = "[2001:db8::1]:54321";
    volt_addr a;
    char text[40];
    CHECK_EQ(volt_addr_parse(&a, want), 0);
    for (size_t room = 0; room <= sizeof text; room++) {
        memset(text, '#', sizeof text);
        dirty_stack();
        int n = volt_addr_format(&a, text, room);
        CHECK_EQ(n, room < sizeof want ? -ENOSPC : (int)sizeof want - 1);
        if (n > 0) CHECK_STR(text, want);
        for (size_t i = n > 0 ? sizeof want : room; i < sizeof text; i++) CHECK_EQ(text[i], '#');
    }
    a.len_ = 2; // nothing but a family
    dirty_stack();
    CHECK_EQ(volt_addr_port(&a), 0);
    a.len_ = 1; // not even that
    CHECK_EQ(volt_addr_format(&a, text, sizeof text), -EAFNOSUPPORT);
    int fd[2]; // of a socket without a name the kernel tells the family alone
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    CHECK_EQ(volt_local_addr(fd[0], &a), 0);
    CHECK_EQ(a.len_, 2);
    CHECK_EQ(volt_addr_format(&a, text, sizeof text), 5);
    CHECK_STR(text, "unix:");
    CHECK_EQ(close(fd[0]), 0);
    CHECK_EQ(close(fd[1]), 0);
}

TEST(addr_parse_refuses_bad_addresses) {
    static const char *const bad[] = {
        "", ":", "80", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:8x", "127.0.0.1: 80", " 127.0.0.1:80", "127.0.0:80", "127.0.0.1.5:80",
        "256.0.0.1:80",
        "localhost:80", "::1:80", "[::1]", "[::1]80", "[::1:80", "[127.0.0.1]:80", "[::g]:80",
        "unix:", "127.0.0.1:000080", "127.0.0.1:0000080",
        "127.0.0.1:99999999999999999999", "127.0.0.1:080000000080", "unix", "[]:80", "[::1]:",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        volt_addr a;
        if (volt_addr_parse(&a, bad[i]) != -EINVAL)
            test_fail(__FILE__, __LINE__, "\"%s\" is taken for an address", bad[i]);
    }
    char path[300] = "unix:/";
    memset(path + 6, 'x', sizeof path - 7);
    path[sizeof path - 1] = 0;
    volt_addr a;
    CHECK_EQ(volt_addr_parse(&a, path), -EINVAL); // longer than a sockaddr_un
    path[5 + sizeof((struct sockaddr_un *)0)->sun_path] = 0;
    CHECK_EQ(volt_addr_parse(&a, path), -EINVAL); // no room for its 0
    path[5 + sizeof((struct sockaddr_un *)0)->sun_path - 1] = 0;
    CHECK_EQ(volt_addr_parse(&a, path), 0); // the longest with its 0
    for (size_t len = 40; len < 70; len++) { // a host as long as the room for it
        char text[80];
        snprintf(text, sizeof text, "%0*d:80", (int)len, 1);
        CHECK_EQ(volt_addr_parse(&a, text), -EINVAL);
    }
}

ROOT_TEST(peer_addr_is_local_addr_of_other_end, { pairing p; volt_addr a, b; int pipe[2]; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    {
        char x[60], y[60];
        CHECK_EQ(volt_local_addr(s->p.left, &s->a), 0);
        CHECK_EQ(volt_peer_addr(s->p.right, &s->b), 0);
        CHECK(volt_addr_format(&s->a, x, sizeof x) > 0 && volt_addr_format(&s->b, y, sizeof y) > 0);
        CHECK_STR(x, y);
        CHECK_EQ(volt_peer_addr(s->p.left, &s->a), 0);
        CHECK(volt_addr_format(&s->a, x, sizeof x) > 0);
        CHECK(volt_addr_format(&s->p.addr, y, sizeof y) > 0);
        CHECK_STR(x, y);
    }
    CHECK_EQ(volt_local_addr(-1, &s->a), -EBADF);
    CHECK_EQ(pipe(s->pipe), 0);
    CHECK_EQ(volt_peer_addr(s->pipe[0], &s->a), -ENOTSOCK);
    close(s->pipe[0]);
    close(s->pipe[1]);
    close_pair(cx, &s->p);
    VOLT_END(0);
}

static int option(int fd, int level, int name) {
    int v = -1;
    socklen_t n = sizeof v;
    CHECK_EQ(getsockopt(fd, level, name, &v, &n), 0);
    return v;
}
static void check_linger(int fd, int seconds) {
    struct linger l = { -1, -1 };
    socklen_t n = sizeof l;
    CHECK_EQ(volt_set_linger(fd, seconds), 0);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &n), 0);
    CHECK_EQ(l.l_onoff, seconds >= 0);
    if (l.l_onoff) CHECK_EQ(l.l_linger, seconds);
}
ROOT_TEST(socket_options_reach_the_kernel, { pairing p; int pipe[2]; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    {
        int fds[] = { s->p.left, s->p.right };
        for (int i = 0; i < 2; i++) {
            int fd = fds[i];
            CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
            CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
            CHECK(option(fd, IPPROTO_TCP, TCP_NODELAY)); // on by default
            CHECK_EQ(volt_set_nodelay(fd, 0), 0);
            CHECK(!option(fd, IPPROTO_TCP, TCP_NODELAY));
            CHECK_EQ(volt_set_nodelay(fd, 1), 0);
            CHECK(option(fd, IPPROTO_TCP, TCP_NODELAY));
            CHECK_EQ(volt_set_keepalive(fd, 11, 5, 3), 0);
            CHECK(option(fd, SOL_SOCKET, SO_KEEPALIVE));
            CHECK_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 11);
            CHECK_EQ(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
            CHECK_EQ(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
            CHECK_EQ(volt_set_keepalive(fd, 0, 0, 0), 0);
            CHECK(!option(fd, SOL_SOCKET, SO_KEEPALIVE));
            int receive = option(fd, SOL_SOCKET, SO_RCVBUF);
            CHECK_EQ(volt_set_buffers(fd, 20000, 0), 0);
            CHECK_EQ(option(fd, SOL_SOCKET, SO_SNDBUF), 40000); // the kernel doubles it
            CHECK_EQ(option(fd, SOL_SOCKET, SO_RCVBUF), receive);
            CHECK_EQ(volt_set_buffers(fd, 0, 10000), 0);
            CHECK_EQ(option(fd, SOL_SOCKET, SO_SNDBUF), 40000);
            CHECK_EQ(option(fd, SOL_SOCKET, SO_RCVBUF), 20000);
            for (int seconds = 2; seconds >= -1; seconds--) check_linger(fd, seconds);
        }
    }
    CHECK_EQ(pipe(s->pipe), 0);
    CHECK_EQ(volt_set_nodelay(s->pipe[0], 1), -ENOTSOCK);
    CHECK_EQ(volt_set_keepalive(-1, 1, 1, 1), -EBADF);
    CHECK_EQ(volt_set_linger(s->pipe[0], 0), -ENOTSOCK);
    CHECK_EQ(volt_set_buffers(s->pipe[0], 1000, 1000), -ENOTSOCK);
    close(s->pipe[0]);
    close(s->pipe[1]);
    close_pair(cx, &s->p);
    VOLT_END(0);
}

ROOT_TEST(delayed_listener_leaves_nagle_on, {
    volt_addr a;
    int lfd, out, in;
    volt_listen_options o;
}) {
    VOLT_BEGIN(cx, s);
    s->o.is_delayed = 1;
    s->lfd = volt_listen("127.0.0.1", 0, &s->o);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    VOLT_AWAIT(s->out, volt_connect(cx, &s->a));
    VOLT_AWAIT(s->in, volt_accept(cx, s->lfd));
    CHECK(s->out >= 0 && s->in >= 0);
    CHECK(!option(s->in, IPPROTO_TCP, TCP_NODELAY));
    volt_close(cx, s->lfd);
    volt_close(cx, s->out);
    volt_close(cx, s->in);
    VOLT_END(0);
}

// A full backlog: connects hang. A cancelled one closes its descriptor.
enum { HANGERS = 8 };
ROOT_TEST_ALL(cancelled_connect_closes_its_descriptor, { // a late worker opens descriptors, too
    volt_addr a;
    volt_listen_options o;
    volt_timer t;
    int lfd, fd[HANGERS], i, n_open, n_late, before;
}) {
    VOLT_BEGIN(cx, s);
    s->o.backlog = 1;
    s->lfd = volt_listen("127.0.0.1", 0, &s->o);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    s->before = test_count_fds();
    for (s->i = 0; s->i < HANGERS; s->i++) {
        VOLT_AWAIT(s->fd[s->i], volt_within(cx, &s->t, VOLT_MS(20), volt_connect(cx, &s->a)));
        CHECK(s->fd[s->i] >= 0 || s->fd[s->i] == -ETIMEDOUT);
        if (s->fd[s->i] >= 0) s->n_open++;
        else s->n_late++;
    }
    CHECK(s->n_late > 0);
    CHECK(test_count_fds() <= s->before + s->n_open);
    for (s->i = 0; s->i < HANGERS; s->i++)
        if (s->fd[s->i] >= 0) volt_close(cx, s->fd[s->i]);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}

// ---- close

ROOT_TEST_ALL(close_ends_every_waiting_read_with_ebadf, {
    pairing p, q;
    volt_handle h[4];
    int n_started, i;
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    for (s->i = 0; s->i < 4; s->i++)
        SPAWN(&s->h[s->i], reader_run, (reader){ .fd = s->p.left, .n_started = &s->n_started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, 4));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2))); // so that most of them wait; either way it is -EBADF
    volt_close(cx, s->p.left);
    for (s->i = 0; s->i < 4; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->rc, -EBADF);
    }
    // the number is free: the next pair gets it, and works
    VOLT_AWAIT(tcp_pair(cx, &s->q));
    CHECK(s->q.left == s->p.left || s->q.right == s->p.left || s->q.lfd == s->p.left);
    SPAWN(&s->h[0], reader_run, (reader){ .fd = s->q.right });
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->q.left, "A", 1));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, 1000 + 'A');
    volt_close(cx, s->p.right);
    close_pair(cx, &s->q);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    int fd, *n_started;
    int64_t rc;
} one_accept;
static volt_poll one_accept_run(volt_cx *cx, void *arg) {
    one_accept *a = arg;
    VOLT_BEGIN(cx, a);
    COUNT(*a->n_started);
    VOLT_AWAIT(a->rc, volt_accept(cx, a->fd));
    VOLT_END(a->rc);
}
ROOT_TEST(close_ends_waiting_accept_with_ebadf, {
    volt_handle h;
    int lfd, n_started;
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    SPAWN(&s->h, one_accept_run, (one_accept){ .fd = s->lfd, .n_started = &s->n_started });
    VOLT_AWAIT(until_read_waits(cx, &s->a, s->lfd));
    volt_close(cx, s->lfd);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EBADF);
    VOLT_END(0);
}

TEST_OF_THREADS(close_by_foreign_thread_ends_read_with_ebadf) {
    test_starts_all = 1; // a worker that started later would take the number
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        for (int i = 0; i < 50; i++) {
            int fd[2], n_started = 0;
            int64_t value = 0;
            volt_handle h = { NULL };
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
            RT_SPAWN(rt, &h, reader_run, (reader){ .fd = fd[0], .n_started = &n_started });
            UNTIL(READ(n_started));
            volt_rt_close(rt, fd[0]);
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
            CHECK_EQ(value, -EBADF);
            volt_rt_close(rt, fd[1]);
        }
        destroy(rt);
    }
}

// The close comes before the reader starts, while it asks what the descriptor is, while it reads or
// while it waits. No worker blocks in a read, and nothing of it is left for the next socket of that
// number, which is a blocking one again.
TEST(close_that_races_with_read_gives_ebadf) {
    test_starts_all = 1;
    EACH_WORKERS(w) {
        volt_rt *rt = create_on(w);
        for (int i = 0, n_rounds = test_is_long() ? 1000 : 200; i < n_rounds; i++) {
            int fd[2];
            volt_handle h = { NULL };
            int64_t value = 0;
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
            RT_SPAWN(rt, &h, reader_run, (reader){ .fd = fd[0] });
            for (uint64_t n = RANDOM_BELOW(4); n > 0; n--) sched_yield();
            volt_rt_close(rt, fd[0]);
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
            CHECK_EQ(value, -EBADF);
            volt_rt_close(rt, fd[1]);
        }
        destroy(rt);
    }
}

ROOT_TEST(operations_on_bad_descriptor_give_ebadf, { int64_t rc; char byte; int i, fds[3]; }) {
    VOLT_BEGIN(cx, s);
    s->fds[0] = -1;
    s->fds[1] = INT_MIN;
    s->fds[2] = INT_MAX;
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_read(cx, s->fds[s->i], &s->byte, 1));
        CHECK_EQ(s->rc, -EBADF);
        VOLT_AWAIT(s->rc, volt_write(cx, s->fds[s->i], &s->byte, 1));
        CHECK_EQ(s->rc, -EBADF);
        VOLT_AWAIT(s->rc, volt_readable(cx, s->fds[s->i]));
        CHECK_EQ(s->rc, -EBADF);
        VOLT_AWAIT(s->rc, volt_accept(cx, s->fds[s->i]));
        CHECK_EQ(s->rc, -EBADF);
    }
    volt_close(cx, -1); // nothing
    VOLT_END(0);
}

// close(2) by habit: when accept or connect returns the number again, its entry starts over.
ROOT_TEST_ALL(number_reused_after_plain_close_starts_over, {
    pairing p, q;
    volt_timer t;
    int64_t rc;
    int old;
    char byte;
}) {
    VOLT_BEGIN(cx, s);
    test_log.n[VOLT_LOG_FD_REUSED] = 0;
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_read(cx, s->p.left, &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT); // now it is in volt's table
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_read(cx, s->p.right, &s->byte, 1)));
    s->old = s->p.left;
    close(s->p.left);
    close(s->p.right);
    VOLT_AWAIT(tcp_pair(cx, &s->q));
    CHECK(s->q.left == s->old || s->q.right == s->old || s->q.lfd == s->old);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->q.left, "B", 1));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(10), volt_read(cx, s->q.right, &s->byte, 1)));
    CHECK(s->rc == 1 && s->byte == 'B');
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_read(cx, s->q.left, &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->q.right, "C", 1));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(10), volt_read(cx, s->q.left, &s->byte, 1)));
    CHECK(s->rc == 1 && s->byte == 'C');
    CHECK(test_log.n[VOLT_LOG_FD_REUSED] >= 1);
    close_pair(cx, &s->q);
    VOLT_END(0);
}

ROOT_TEST_ALL(fd_release_gives_descriptor_back_open, {
    volt_handle h;
    int fd[2], again[2];
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fd), 0);
    SPAWN(&s->h, reader_run, (reader){ .fd = s->fd[0] });
    VOLT_AWAIT(until_read_waits(cx, &s->a, s->fd[0]));
    volt_fd_release(cx, s->fd[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, -EBADF);
    CHECK(fcntl(s->fd[0], F_GETFD) >= 0); // still open
    CHECK_EQ(write(s->fd[1], "x", 1), 1);
    {
        char byte;
        CHECK_EQ(read(s->fd[0], &byte, 1), 1);
    }
    close(s->fd[0]);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->again), 0);
    CHECK(s->again[0] == s->fd[0]); // the same number, another socket
    SPAWN(&s->h, reader_run, (reader){ .fd = s->again[0] });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->again[1], "D", 1));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    CHECK_EQ(s->rc, 1000 + 'D');
    volt_close(cx, s->again[0]);
    volt_close(cx, s->again[1]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}

// Descriptor numbers that come and go quickly: no event of an old one reaches a new one.
typedef struct {
    volt_frame frame;
    pairing p;
    volt_timer t;
    int i;
    int64_t rc;
    char buf[8];
} churner;
static volt_poll churner_run(volt_cx *cx, void *arg) {
    churner *c = arg;
    VOLT_BEGIN(cx, c);
    for (c->i = 0; c->i < 60; c->i++) {
        VOLT_AWAIT(tcp_pair(cx, &c->p));
        if (RANDOM_BELOW(2)) {
            VOLT_AWAIT(c->rc, volt_write_all(cx, c->p.left, "12345678", 8));
            CHECK_EQ(c->rc, 8);
            VOLT_AWAIT(c->rc, volt_read_exact(cx, c->p.right, c->buf, 8));
            CHECK_EQ(c->rc, 8);
        }
        VOLT_AWAIT(c->rc, volt_within(cx, &c->t, VOLT_US(50),
                                      volt_read(cx, c->p.right, c->buf, 8)));
        CHECK_EQ(c->rc, -ETIMEDOUT); // no data came
        close_pair(cx, &c->p);
    }
    VOLT_END(0);
}
ROOT_TEST(event_of_closed_descriptor_does_not_reach_its_reuse, { volt_group g; int rc; }) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 8; i++) GROUP_SPAWN(&s->g, churner_run, (churner){ .i = 0 });
    VOLT_AWAIT(s->rc, volt_group_wait(cx, &s->g));
    CHECK_EQ(s->rc, 0);
    VOLT_END(0);
}

// ---- several waiters

enum { READERS = 6 };
ROOT_TEST(readers_of_one_descriptor_get_each_byte_once, {
    volt_handle h[READERS];
    int fd[2], i, n_started, got, n_of[3];
    int64_t rc;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    for (s->i = 0; s->i < READERS; s->i++)
        SPAWN(&s->h[s->i], reader_run, (reader){ .fd = s->fd[0], .n_started = &s->n_started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, READERS));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd[1], "012", 3));
    while (s->got < 3) { // three of them get a byte, no two the same one
        for (s->i = 0; s->i < READERS; s->i++) {
            if (volt_try_join(&s->h[s->i], &s->rc) != 0) continue;
            CHECK(s->rc >= 1000 + '0' && s->rc <= 1000 + '2');
            CHECK_EQ(s->n_of[s->rc - 1000 - '0']++, 0);
            s->got++;
        }
        VOLT_AWAIT(volt_yield(cx));
    }
    volt_close(cx, s->fd[1]); // the others the end of file
    for (s->i = 0; s->i < READERS; s->i++) {
        if (!volt_handle_is_set(&s->h[s->i])) continue;
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->rc, 0);
        s->got++;
    }
    CHECK_EQ(s->got, READERS);
    volt_close(cx, s->fd[0]);
    VOLT_END(0);
}

// ---- descriptors of others

ROOT_TEST(readable_is_level_triggered, { int fd, i; int64_t rc; volt_timer t; uint64_t n; }) {
    VOLT_BEGIN(cx, s);
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(s->fd >= 0);
    for (s->i = 0; s->i < 3; s->i++) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_readable(cx, s->fd)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        VOLT_AWAIT(s->rc, volt_writable(cx, s->fd));
        CHECK_EQ(s->rc, 0);
        s->n = 1;
        CHECK_EQ(write(s->fd, &s->n, 8), 8);
        VOLT_AWAIT(s->rc, volt_readable(cx, s->fd));
        CHECK_EQ(s->rc, 0);
        VOLT_AWAIT(s->rc, volt_readable(cx, s->fd)); // nothing was consumed
        CHECK_EQ(s->rc, 0);
        CHECK_EQ(read(s->fd, &s->n, 8), 8); // behind volt's back: nothing is cached
    }
    volt_close(cx, s->fd);
    VOLT_END(0);
}

// The number may be closed and opened again by the library that owns it, between two waits.
ROOT_TEST(readable_works_after_owner_reopened_its_number,
          { int fd, i, peer; int64_t rc; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 5; s->i++) {
        {
            int fd[2];
            CHECK_EQ(pipe(fd), 0);
            s->fd = fd[0], s->peer = fd[1];
        }
        VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1), volt_readable(cx, s->fd)));
        CHECK_EQ(s->rc, -ETIMEDOUT);
        CHECK_EQ(write(s->peer, "x", 1), 1);
        VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(10), volt_readable(cx, s->fd)));
        CHECK_EQ(s->rc, 0);
        volt_fd_release(cx, s->fd);
        close(s->fd);
        close(s->peer);
    }
    VOLT_END(0);
}

// Regular files cannot be polled: they are always ready.
ROOT_TEST(regular_files_are_always_ready, { int fd; int64_t rc; char buf[8]; char path[40]; }) {
    VOLT_BEGIN(cx, s);
    snprintf(s->path, sizeof s->path, "/tmp/volt-test-XXXXXX");
    s->fd = mkstemp(s->path);
    CHECK(s->fd >= 0);
    unlink(s->path);
    VOLT_AWAIT(s->rc, volt_writable(cx, s->fd));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, "content", 7));
    CHECK_EQ(s->rc, 7);
    CHECK_EQ(lseek(s->fd, 0, SEEK_SET), 0);
    VOLT_AWAIT(s->rc, volt_readable(cx, s->fd));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_read(cx, s->fd, s->buf, 8));
    CHECK(s->rc == 7 && memcmp(s->buf, "content", 7) == 0);
    VOLT_AWAIT(s->rc, volt_read(cx, s->fd, s->buf, 8));
    CHECK_EQ(s->rc, 0);
    volt_close(cx, s->fd);
    VOLT_END(0);
}

ROOT_TEST(descriptors_become_non_blocking, { int fd[2]; int64_t rc; volt_timer t; char byte; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    CHECK(!(fcntl(s->fd[0], F_GETFL) & O_NONBLOCK));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2), volt_read(cx, s->fd[0], &s->byte, 1)));
    CHECK_EQ(s->rc, -ETIMEDOUT); // it did not block the worker
    CHECK(fcntl(s->fd[0], F_GETFL) & O_NONBLOCK);
    volt_close(cx, s->fd[0]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}

// ---- buffers that end before the length that is told

enum { BEYOND = 2000 };
// Pages for `size` bytes, and behind them two that cut_half unmaps, or makes inaccessible. It does
// so right before they are read: libc may map memory of its own into a hole.
typedef struct {
    unsigned char *p;
    size_t size, len; // of what can be accessed; of all
} half_buffer;
static half_buffer map_half(size_t size) {
    half_buffer b;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    b.size = (size + page - 1) / page * page;
    b.len = b.size + 2 * page;
    void *p = mmap(NULL, b.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    b.p = (unsigned char *)p;
    return b;
}
static void cut_half(const half_buffer *b, int is_mapped) {
    unsigned char *end = b->p + b->size;
    size_t len = b->len - b->size;
    CHECK_EQ(is_mapped ? mprotect(end, len, PROT_NONE) : munmap(end, len), 0);
}
static void free_half(const half_buffer *b) { CHECK_EQ(munmap(b->p, b->len), 0); }
// Whether the kernel tells of such pages: of those without access since Linux 5.14; qemu of none.
static int is_access_told(int is_mapped) {
    enum { POPULATE_READ = 22 };
    half_buffer b = map_half(1);
    cut_half(&b, is_mapped);
    int is_told = madvise(b.p + b.size, b.len - b.size, POPULATE_READ) < 0 &&
                  (!is_mapped || madvise(b.p + b.size, 0, POPULATE_READ) == 0);
    free_half(&b);
    return is_told;
}
// The kernel fills what it can, and says no word of the rest: more may lie in the socket, of which
// no event will tell again.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    pairing p;
    half_buffer half;
    unsigned char *text, *read;
    size_t got, all;
    volt_time start;
    int in, i, is_mapped, is_short;
    int64_t n;
} half_reader;
static volt_poll half_reader_run(volt_cx *cx, void *arg) {
    half_reader *h = arg;
    VOLT_BEGIN(cx, h);
    VOLT_AWAIT(tcp_pair(cx, &h->p));
    CHECK_EQ(volt_set_buffers(h->p.left, 1 << 20, 0), 0);
    CHECK_EQ(volt_set_buffers(h->p.right, 0, 1 << 20), 0);
    VOLT_AWAIT(h->n, volt_within(cx, &h->limit, 0, volt_read(cx, h->p.right, h->read, 1)));
    CHECK_EQ(h->n, -ETIMEDOUT); // it is registered
    VOLT_AWAIT(h->n, volt_write_all(cx, h->p.left, h->text, h->all));
    CHECK_EQ(h->n, h->all);
    do {
        VOLT_AWAIT(volt_yield(cx));
        CHECK_EQ(ioctl(h->p.right, FIONREAD, &h->in), 0);
    } while ((size_t)h->in < h->all);
    for (h->i = 0; h->i < 600; h->i++) VOLT_AWAIT(volt_yield(cx)); // all events are fetched then
    cut_half(&h->half, h->is_mapped);
    VOLT_AWAIT(h->n, volt_read(cx, h->p.right, h->half.p, h->half.len));
    if (h->n != -EFAULT) CHECK(h->n > 0 && (size_t)h->n <= h->half.size);
    h->is_short = h->n > 0; // a message of one piece is copied as a whole, or not at all
    if (h->is_short) memcpy(h->read, h->half.p, (size_t)h->n);
    h->start = volt_now();
    for (h->got = h->is_short ? (size_t)h->n : 0; h->got < h->all; h->got += (size_t)h->n) {
        VOLT_AWAIT(h->n, volt_within(cx, &h->limit, VOLT_S(5),
                                     volt_read(cx, h->p.right, h->read + h->got, h->all)));
        CHECK(h->n > 0);
    }
    CHECK(volt_now() - h->start < VOLT_S(5)); // not by the last try of the limit
    check_pattern(h->read, 0, h->all);
    close_pair(cx, &h->p);
    VOLT_END(0);
}
static void read_into_half(int is_mapped) {
#ifdef TEST_IN_VALGRIND
    SKIP("memcheck reports the buffer");
#endif
    int n_short = 0;
    if (!is_access_told(is_mapped)) SKIP("the kernel does not tell of such pages");
    for (size_t size = 32; size <= 160; size += 16) { // KiB: a piece has 64, or 32, or less
        half_reader h = { .half = map_half(size * 1024), .is_mapped = is_mapped };
        h.all = h.half.size + BEYOND;
        h.text = malloc(h.all);
        h.read = malloc(2 * h.all);
        CHECK(h.text && h.read);
        fill(h.text, 0, h.all);
        CHECK_EQ(run_on(1, half_reader_run, &h), 0);
        n_short += h.is_short;
        free(h.text);
        free(h.read);
        free_half(&h.half);
    }
    CHECK(n_short > 0);
}
TEST(rest_of_a_read_that_ended_at_an_unmapped_page_is_read) { read_into_half(0); }
TEST(rest_of_a_read_that_ended_at_a_page_without_access_is_read) { read_into_half(1); }

// ---- poll sets

// A peer that takes less than what epoll calls room is given up like one that takes nothing,
// although a call would find some room by then.
typedef struct {
    volt_frame frame;
    volt_timer limit;
    int fd;
    int64_t n;
    char byte;
} late_writer;
static volt_poll late_writer_run(volt_cx *cx, void *arg) {
    late_writer *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(30), volt_write(cx, s->fd, &s->byte, 1)));
    VOLT_END(s->n);
}
// A unix socket takes a byte as soon as it is not full, but epoll reports room only once most of it
// is empty. A TCP socket shows the same only by chance.
ROOT_TEST_1(last_try_of_write_needs_room_that_epoll_reports, {
    char buf[4096];
    volt_handle h;
    struct pollfd room;
    int fd[2];
    int64_t n;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->fd), 0);
    while (send(s->fd[0], s->buf, sizeof s->buf, MSG_DONTWAIT) > 0) {}
    CHECK_EQ(errno, EAGAIN);
    SPAWN(&s->h, late_writer_run, (late_writer){ .fd = s->fd[0] });
    VOLT_AWAIT(volt_yield(cx)); // it waits now
    CHECK_EQ(recv(s->fd[1], s->buf, sizeof s->buf, MSG_DONTWAIT), sizeof s->buf);
    VOLT_AWAIT(s->n, volt_join(cx, &s->h));
    CHECK_EQ(s->n, -ETIMEDOUT);
    s->room = (struct pollfd){ .fd = s->fd[0], .events = POLLOUT };
    CHECK_EQ(poll(&s->room, 1, 0), 0);                    // no room,
    CHECK_EQ(send(s->fd[0], s->buf, 1, MSG_DONTWAIT), 1); // but a call finds some
    volt_close(cx, s->fd[0]);
    volt_close(cx, s->fd[1]);
    VOLT_END(0);
}
// More waits of one task than one poll has budget for. Data came in time, the worker was held up
// until all limits were over: each wait has its last try, in one of the polls to come.
enum { N_LIMITED = 200 };
typedef struct {
    volt_frame frame;
    volt_timer limit;
    int fd;
    int64_t n;
    char byte;
} limited;
typedef struct {
    volt_frame frame;
    limited all[N_LIMITED];
} many_limited;
static int n_read_in_time;
static volt_poll limited_run(volt_cx *cx, void *arg) {
    limited *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_MS(10), volt_read(cx, s->fd, &s->byte, 1)));
    n_read_in_time += s->n == 1;
    volt_close(cx, s->fd);
    VOLT_END(0);
}
static volt_poll many_limited_run(volt_cx *cx, void *arg) {
    many_limited *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(limited_run, s->all)));
    VOLT_END(0);
}
ROOT_TEST_1(limits_have_their_last_try_although_the_budget_is_used_up, {
    many_limited *m;
    int out[N_LIMITED];
    volt_handle h;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    n_read_in_time = 0;
    s->m = volt_task_create(cx->rt_, many_limited_run, sizeof *s->m);
    CHECK(s->m);
    for (int i = 0; i < N_LIMITED; i++) {
        int p[2];
        CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
        s->m->all[i].fd = p[0];
        s->out[i] = p[1];
    }
    volt_task_start(s->m, &s->h);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2))); // all wait
    for (int i = 0; i < N_LIMITED; i++) CHECK_EQ(write(s->out[i], "x", 1), 1);
    burn(VOLT_MS(20));
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h));
    for (int i = 0; i < N_LIMITED; i++) close(s->out[i]);
    CHECK_EQ(n_read_in_time, N_LIMITED);
    VOLT_END(0);
}
static void check_event(const volt_pollev *ev, int fd, uint32_t events) {
    CHECK_EQ(ev->fd, fd);
    CHECK_EQ(ev->events, events);
}
ROOT_TEST(pollset_gives_ready_descriptors_while_they_are_ready, {
    volt_pollset set;
    volt_pollev ev[4];
    int a[2], b[2];
    int64_t n;
    volt_timer t;
}) {
    VOLT_BEGIN(cx, s);
    CHECK(pipe(s->a) == 0 && pipe(s->b) == 0);
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    CHECK_EQ(volt_pollset_set(&s->set, s->a[0], VOLT_IN), 0);
    CHECK_EQ(volt_pollset_set(&s->set, s->b[0], VOLT_IN), 0);
    VOLT_AWAIT(s->n, volt_within(cx, &s->t, VOLT_MS(2), volt_pollset_wait(cx, &s->set, s->ev, 4)));
    CHECK_EQ(s->n, -ETIMEDOUT);
    CHECK_EQ(write(s->a[1], "x", 1), 1);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->a[0], VOLT_IN);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4)); // level-triggered
    CHECK_EQ(s->n, 1);
    CHECK_EQ(write(s->b[1], "x", 1), 1);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 2);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 1)); // no more than there is room for
    CHECK_EQ(s->n, 1);
    CHECK_EQ(volt_pollset_set(&s->set, s->a[0], 0), 0); // removed
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->b[0], VOLT_IN);
    CHECK_EQ(volt_pollset_set(&s->set, s->a[0], 0), 0); // again: no error
    CHECK_EQ(volt_pollset_set(&s->set, s->b[0], VOLT_PRI), 0); // changed
    CHECK_EQ(volt_pollset_set(&s->set, s->b[1], VOLT_OUT), 0);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->b[1], VOLT_OUT);
    close(s->b[1]); // leaves by itself
    CHECK_EQ(volt_pollset_set(&s->set, s->b[1], 0), 0); // already closed: no error
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->b[0], VOLT_HUP);
    volt_pollset_close(cx, &s->set);
    close(s->a[0]);
    close(s->a[1]);
    close(s->b[0]);
    VOLT_END(0);
}
// Of vectors what the kernel refuses is refused, and no error is taken for the end of the stream.
enum { MANY_PARTS = 1500 };
ROOT_TEST_1(refused_vectors_are_not_taken_for_end_of_file, {
    pairing p;
    int64_t n;
    char buf[MANY_PARTS];
    struct iovec two[2], many[MANY_PARTS];
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    CHECK_EQ(write(s->p.left, "x", 1), 1);
    VOLT_AWAIT(s->n, volt_readable(cx, s->p.right));
#ifndef TEST_IN_VALGRIND // memcheck reports the vector
    s->two[0] = (struct iovec){ s->buf, SIZE_MAX };
    s->two[1] = (struct iovec){ s->buf, 1 }; // the sum is 0
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->two, 2));
    CHECK(s->n < 0);
    VOLT_AWAIT(s->n, volt_writev(cx, s->p.right, s->two, 2));
    CHECK(s->n < 0);
#endif
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, NULL, 2));
    CHECK_EQ(s->n, -EFAULT);
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, NULL, -2));
    CHECK_EQ(s->n, -EINVAL);
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, NULL, 0));
    CHECK_EQ(s->n, 0);
    for (int i = 0; i < MANY_PARTS; i++) s->many[i] = (struct iovec){ s->buf + i, 1 };
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->many, MANY_PARTS));
    CHECK_EQ(s->n, 1);
    VOLT_AWAIT(s->n, volt_writev(cx, s->p.left, s->many, MANY_PARTS));
    CHECK_EQ(s->n, 1024); // a short write, as it may be
    // The parts that are clamped away are not the end of the file, if those before are empty.
    for (int i = 0; i < MANY_PARTS; i++) s->many[i].iov_len = i == MANY_PARTS - 1;
    VOLT_AWAIT(s->n, volt_readv(cx, s->p.right, s->many, MANY_PARTS));
    CHECK_EQ(s->n, 1);
    VOLT_AWAIT(s->n, volt_writev(cx, s->p.left, s->many, MANY_PARTS));
    CHECK_EQ(s->n, 1);
    VOLT_AWAIT(s->n, volt_writev(cx, s->p.left, s->many, MANY_PARTS - 1));
    CHECK_EQ(s->n, 0);
    close_pair(cx, &s->p);
    VOLT_END(0);
}
// The peer has shut down its writing side: that is not the end of both, and is told if asked for.
ROOT_TEST_1(pollset_tells_a_half_closed_peer_from_one_that_is_gone, {
    pairing p;
    volt_pollset set;
    volt_pollev ev[2];
    int64_t n;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(tcp_pair(cx, &s->p));
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    CHECK_EQ(volt_pollset_set(&s->set, s->p.left, VOLT_IN), 0);
    CHECK_EQ(volt_sock_shutdown(s->p.right, SHUT_WR), 0);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 2));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->p.left, VOLT_IN);
    CHECK_EQ(volt_pollset_set(&s->set, s->p.left, VOLT_RDHUP), 0);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 2));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->p.left, VOLT_RDHUP);
    CHECK_EQ(volt_sock_shutdown(s->p.left, SHUT_WR), 0);
    CHECK_EQ(volt_sock_shutdown(s->p.left, SHUT_RDWR), 0); // has ended already: no error
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 2));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->p.left, VOLT_RDHUP | VOLT_HUP);
    CHECK_EQ(volt_pollset_wait_sync(&s->set, s->ev, 2, 0), -EDEADLK);
    volt_pollset_close(cx, &s->set);
    close_pair(cx, &s->p);
    VOLT_END(0);
}
TEST(pollset_is_waited_for_on_a_plain_thread) {
    volt_pollset set = { 0 };
    volt_pollev ev[2];
    CHECK_EQ(volt_pollset_wait_sync(&set, ev, 2, 0), -EINVAL);
    CHECK_EQ(volt_pollset_open(&set), 0);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK_EQ(volt_pollset_set(&set, fd, VOLT_IN), 0);
    CHECK_EQ(volt_pollset_wait_sync(&set, ev, 0, 0), -EINVAL);
    volt_time start = volt_now();
    CHECK_EQ(volt_pollset_wait_sync(&set, ev, 2, VOLT_MS(3)), -ETIMEDOUT);
    CHECK(volt_now() - start >= VOLT_MS(3));
    CHECK_EQ(eventfd_write(fd, 1), 0);
    CHECK_EQ(volt_pollset_wait_sync(&set, ev, 2, VOLT_NEVER), 1);
    check_event(&ev[0], fd, VOLT_IN);
    close(fd);
    close(set.epfd_ - 1);
}
// A signal ends the wait of the kernel, but not that of the thread: it has the rest of its time.
static int n_signals;
static void count_signal(int number) {
    (void)number;
    COUNT(n_signals);
}
typedef struct {
    volt_pollset set;
    volt_time at_most;
    int tid, rc, is_over;
} sync_wait;
static void *sync_wait_run(void *arg) {
    sync_wait *w = arg;
    volt_pollev ev[2];
    WRITE(w->tid, (int)syscall(SYS_gettid));
    w->rc = volt_pollset_wait_sync(&w->set, ev, 2, w->at_most);
    WRITE(w->is_over, 1);
    return NULL;
}
// Each time that the thread waits it gets a signal, until it has had n, or has ended.
static void send_signals(sync_wait *w, pthread_t t, int n) {
    UNTIL(READ(w->tid));
    for (n += READ(n_signals); READ(n_signals) < n && !READ(w->is_over);) {
        int before = READ(n_signals);
        UNTIL(test_state_of(w->tid) == 'S' || READ(w->is_over));
        CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
        UNTIL(READ(n_signals) > before || READ(w->is_over));
    }
}
TEST_OF_THREADS(pollset_wait_on_a_plain_thread_goes_on_after_a_signal) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = count_signal;
    CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
    for (int i = 0; i < 3; i++) {
        static const volt_time limits[] = { VOLT_NEVER, VOLT_S(100), VOLT_MS(10) };
        sync_wait w = { .at_most = limits[i] };
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        CHECK_EQ(volt_pollset_open(&w.set), 0);
        CHECK_EQ(volt_pollset_set(&w.set, fd, VOLT_IN), 0);
        volt_time start = volt_now();
        pthread_t t = start_thread(sync_wait_run, &w);
        send_signals(&w, t, i < 2 ? 3 : INT_MAX / 2); // the last one: to its end
        CHECK_EQ(READ(w.is_over), i == 2);
        if (i < 2) CHECK_EQ(eventfd_write(fd, 1), 0);
        join_thread(t);
        CHECK_EQ(w.rc, i < 2 ? 1 : -ETIMEDOUT);
        if (i == 2) CHECK(volt_now() - start >= VOLT_MS(10));
        close(fd);
        close(w.set.epfd_ - 1);
    }
}
// As many as are ready, in portions.
ROOT_TEST_1(pollset_gives_at_most_64_events_at_once,
            { volt_pollset set; int fd[70]; volt_pollev ev[80]; int64_t n; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    for (int i = 0; i < 70; i++) {
        s->fd[i] = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        CHECK_EQ(volt_pollset_set(&s->set, s->fd[i], VOLT_IN), 0);
    }
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 80));
    CHECK_EQ(s->n, 64);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 63));
    CHECK_EQ(s->n, 63);
    for (int i = 0; i < 70; i++) close(s->fd[i]);
    volt_pollset_close(cx, &s->set);
    VOLT_END(0);
}
// Number 0 is a descriptor as any other.
ROOT_TEST_1(pollset_works_on_number_0, { volt_pollset set; int fd; volt_pollev ev; int64_t n; }) {
    VOLT_BEGIN(cx, s);
    close(0);
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    s->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(s->fd > 0);
    CHECK_EQ(volt_pollset_set(&s->set, s->fd, VOLT_IN), 0);
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, &s->ev, 1));
    CHECK_EQ(s->n, 1);
    close(s->fd);
    volt_pollset_close(cx, &s->set);
    CHECK_EQ(open("/dev/null", O_RDONLY), 0);
    VOLT_END(0);
}

// Also where another worker polls the task as soon as the close has woken it.
typedef struct {
    volt_frame frame;
    volt_pollset *set;
    int *n_started;
    volt_pollev ev;
    int64_t n;
} set_waiter;
static volt_poll set_waiter_run(volt_cx *cx, void *arg) {
    set_waiter *w = arg;
    VOLT_BEGIN(cx, w);
    COUNT(*w->n_started);
    VOLT_AWAIT(w->n, volt_pollset_wait(cx, w->set, &w->ev, 1));
    VOLT_END(w->n);
}
enum { SET_WAITERS = 3 };
ROOT_TEST(pollset_close_gives_ebadf_to_every_wait, {
    volt_pollset set;
    volt_handle h[SET_WAITERS];
    awaiter a;
    int round, i, fd, n_started;
    int64_t n;
}) {
    VOLT_BEGIN(cx, s);
    for (s->round = 0; s->round < 40; s->round++) {
        CHECK_EQ(volt_pollset_open(&s->set), 0);
        s->n_started = 0;
        for (s->i = 0; s->i < SET_WAITERS; s->i++)
            SPAWN(&s->h[s->i], set_waiter_run,
                  (set_waiter){ .set = &s->set, .n_started = &s->n_started });
        VOLT_AWAIT(until_reaches(cx, &s->a, &s->n_started, SET_WAITERS));
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(500)));
        volt_pollset_close(cx, &s->set);
        for (s->i = 0; s->i < SET_WAITERS; s->i++) {
            VOLT_AWAIT(s->n, volt_join(cx, &s->h[s->i]));
            CHECK_EQ(s->n, -EBADF);
        }
    }
    VOLT_END(0);
}
// Another task adds a descriptor to the set that is being waited on.
typedef struct {
    volt_frame frame;
    volt_pollset *set;
    int fd;
} adder;
static volt_poll adder_run(volt_cx *cx, void *arg) {
    adder *a = arg;
    VOLT_BEGIN(cx, a);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
    CHECK_EQ(volt_pollset_set(a->set, a->fd, VOLT_OUT), 0);
    VOLT_END(0);
}
ROOT_TEST(pollset_changes_take_effect_at_once, {
    volt_pollset set;
    volt_pollev ev[4];
    int fd[2];
    int64_t n;
    volt_handle h;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    CHECK_EQ(volt_pollset_open(&s->set), 0);
    SPAWN(&s->h, adder_run, (adder){ .set = &s->set, .fd = s->fd[1] });
    VOLT_AWAIT(s->n, volt_pollset_wait(cx, &s->set, s->ev, 4));
    CHECK_EQ(s->n, 1);
    check_event(&s->ev[0], s->fd[1], VOLT_OUT);
    VOLT_AWAIT(volt_join(cx, &s->h));
    volt_pollset_close(cx, &s->set);
    close(s->fd[0]);
    close(s->fd[1]);
    VOLT_END(0);
}

// ---- out of descriptors

// Valgrind lets the kernel accept and takes a descriptor beyond the limit back afterwards: what was
// waiting is lost.
#ifndef TEST_IN_VALGRIND
enum { WAITING = 3, DUPS = 4000 };
static int hoard[DUPS], n_hoarded;
static void take_all_descriptors(void) {
    for (n_hoarded = 0; n_hoarded < DUPS; n_hoarded++)
        if ((hoard[n_hoarded] = dup(STDOUT_FILENO)) < 0) break;
    CHECK(n_hoarded > WAITING && n_hoarded < DUPS);
}
static void give_back_descriptors(int n) {
    while (n-- > 0) close(hoard[--n_hoarded]);
}
static int raw_connect(const volt_addr *a) { // by hand: it must not go through volt
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sin;
    memset(&sin, 0, sizeof sin);
    sin.sin_family = AF_INET;
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sin.sin_port = htons((uint16_t)volt_addr_port(a));
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
    return fd;
}
static uint64_t wake_ups(volt_cx *cx) {
    volt_counters c;
    volt_stats(volt_cx_rt(cx), &c);
    return c.polls + c.parks;
}
ROOT_TEST(accept_waits_out_emfile, {
    volt_addr a;
    volt_handle h;
    int lfd, fd[WAITING], got, n_started, i;
    int64_t rc;
    uint64_t before;
    volt_time at;
    awaiter w;
}) {
    VOLT_BEGIN(cx, s);
    s->lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(s->lfd >= 0);
    CHECK_EQ(volt_local_addr(s->lfd, &s->a), 0);
    for (int i = 0; i < WAITING; i++) s->fd[i] = raw_connect(&s->a);
    {
        struct rlimit r;
        CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
        r.rlim_cur = 200;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    }
    take_all_descriptors();
    for (s->i = 0; s->i < WAITING; s->i++) {
        s->n_started = 0;
        SPAWN(&s->h, one_accept_run, (one_accept){ .fd = s->lfd, .n_started = &s->n_started });
        VOLT_AWAIT(until_reaches(cx, &s->w, &s->n_started, 1));
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(5)));
        s->before = wake_ups(cx);
        s->at = volt_now();
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(300)));
        CHECK_EQ(volt_try_join(&s->h, &s->rc), -EAGAIN); // it waits
        // a retry per 3 ms and its park would be that many
        CHECK(wake_ups(cx) - s->before < (uint64_t)((volt_now() - s->at) / VOLT_US(1500)));
        give_back_descriptors(1);
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h)); // and goes on by itself
        CHECK(s->rc >= 0);
        volt_close(cx, (int)s->rc);
        hoard[n_hoarded] = dup(STDOUT_FILENO);
        CHECK(hoard[n_hoarded++] >= 0);
    }
    give_back_descriptors(n_hoarded);
    for (int i = 0; i < WAITING; i++) close(s->fd[i]);
    volt_close(cx, s->lfd);
    VOLT_END(0);
}
#endif
