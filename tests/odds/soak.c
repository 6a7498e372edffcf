// SPDX-License-Identifier: MIT OR 0BSD
// An echo server under load for a given time: connections that come and go, some reset, some silent
// until the server closes them, some whose client is cancelled. Between rounds everything comes to
// rest, and descriptors, tasks and memory must be the same as before. Built and run by `make soak`.
//   soak [seconds [seed]]      prints a line per round, at most 20, then "soak: passed"
#define VOLT_IMPLEMENTATION
#include "../../volt.h"
#include <dirent.h>
#include <stdio.h>

enum { N_CLIENTS = 32, MOST = 20000, IDLE_MS = 30, ROUNDS = 20, SLACK_KIB = 2048 };

// ---- a failed check ends the program; `seed` repeats it
static uint64_t seed;
#define CHECK(cond_) ((cond_) ? (void)0 : fail(__LINE__, #cond_))
__attribute__((noreturn)) static void fail(int line, const char *what) {
    printf("soak.c:%d: %s; seed %llu\n", line, what, (unsigned long long)seed);
    fflush(stdout);
    _exit(1);
}
static uint64_t random_next(uint64_t *x) { // xorshift64
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

// Shared counters; relaxed, as they are read at rest.
#define ADD(x_, n_) ((void)__atomic_add_fetch(&(x_), (n_), __ATOMIC_RELAXED))
#define GET(x_) __atomic_load_n(&(x_), __ATOMIC_RELAXED)
static uint64_t n_connections, n_bytes, n_idle, n_cut, n_cancelled, n_served;
static int64_t live_bytes;

// Volt's default allocator, counted. With posix_memalign the process would grow although volt holds
// the same amount: glibc before 2.38 does not reuse freed aligned blocks.
static void *count_alloc(void *user, size_t size, size_t align) {
    void *p = volt__sys_map(user, size, align);
    if (p) ADD(live_bytes, (int64_t)size);
    return p;
}
static void count_free(void *user, void *block, size_t size) {
    if (!block) return;
    ADD(live_bytes, -(int64_t)size);
    volt__sys_unmap(user, block, size);
}

// ---- the server
typedef struct {
    volt_frame frame;
    volt_timer idle;
    int fd;
    int64_t n;
    char buf[4096];
} session;
static volt_poll session_run(volt_cx *cx, void *arg) {
    session *s = (session *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->n, volt_within(cx, &s->idle, VOLT_MS(IDLE_MS),
                                     volt_read(cx, s->fd, s->buf, sizeof s->buf)));
        if (s->n == -ETIMEDOUT) ADD(n_idle, 1);
        if (s->n <= 0) break;
        VOLT_AWAIT(s->n, volt_write_all(cx, s->fd, s->buf, (size_t)s->n));
        if (s->n < 0) break;
    }
    volt_close(cx, s->fd);
    ADD(n_served, 1);
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_group sessions;
    int lfd, fd;
} server;
static volt_poll server_run(volt_cx *cx, void *arg) {
    server *s = (server *)arg;
    VOLT_BEGIN(cx, s);
    for (;;) {
        VOLT_AWAIT(s->fd, volt_accept(cx, s->lfd));
        if (s->fd < 0) break;
        CHECK(VOLT_GROUP_SPAWN(cx, &s->sessions, session_run, (session){.fd = s->fd}) == 0);
    }
    CHECK(s->fd == -ECANCELED);
    volt_close(cx, s->lfd);
    VOLT_AWAIT(volt_group_close(cx, &s->sessions));
    VOLT_END(0);
}

// ---- the clients
typedef struct {
    volt_frame frame;
    volt_addr addr;
    uint64_t random;
    int fd, messages;
    size_t len;
    int64_t n;
    unsigned char out[MOST], in[MOST];
} client;
static volt_poll talk(volt_cx *cx, void *arg) {
    client *c = (client *)arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->fd, volt_connect(cx, &c->addr));
    if (c->fd == -ECANCELED) VOLT_RETURN(-ECANCELED);
    CHECK(c->fd >= 0);
    ADD(n_connections, 1);
    for (c->messages = (int)(random_next(&c->random) % 8); c->messages > 0; c->messages--) {
        c->len = 1 + random_next(&c->random) % MOST;
        for (size_t i = 0; i < c->len; i++) c->out[i] = (unsigned char)(c->random >> i % 57);
        VOLT_AWAIT(c->n, volt_write_all(cx, c->fd, c->out, c->len));
        if (c->n < 0) break;
        VOLT_AWAIT(c->n, volt_read_exact(cx, c->fd, c->in, c->len));
        if (c->n < 0) break;
        CHECK(memcmp(c->in, c->out, c->len) == 0);
        ADD(n_bytes, c->len);
    }
    // -EPIPE, -ECONNRESET: the server found this client idle while the machine was too slow
    if (c->n >= 0 && random_next(&c->random) % 8 == 0) {
        VOLT_AWAIT(c->n, volt_read(cx, c->fd, c->in, 1)); // silent, until the server ends it
        CHECK(c->n <= 0);
    } else if (random_next(&c->random) % 8 == 0) {
        CHECK(volt_set_linger(c->fd, 0) == 0); // closed by a reset
        ADD(n_cut, 1);
    }
    volt_close(cx, c->fd);
    VOLT_END(c->n);
}
typedef struct {
    volt_frame frame;
    volt_addr addr;
    volt_time until;
    uint64_t random;
    volt_handle h;
    int64_t rc;
    int is_cancelled;
    client c;
} user;
static volt_poll user_run(volt_cx *cx, void *arg) {
    user *u = (user *)arg;
    VOLT_BEGIN(cx, u);
    while (volt_now() < u->until) {
        u->is_cancelled = random_next(&u->random) % 16 == 0;
        memset(&u->c, 0, sizeof u->c);
        u->c.addr = u->addr;
        u->c.random = random_next(&u->random) | 1;
        CHECK(volt_spawn(cx, &u->h, talk, &u->c, sizeof u->c) == 0);
        if (u->is_cancelled) {
            VOLT_AWAIT(volt_sleep(cx, VOLT_US(random_next(&u->random) % 2000 + 1)));
            volt_cancel(&u->h);
            ADD(n_cancelled, 1);
        }
        VOLT_AWAIT(u->rc, volt_join(cx, &u->h));
        CHECK(u->rc >= 0 || u->rc == -EPIPE || u->rc == -ECONNRESET ||
              (u->rc == -ECANCELED && u->is_cancelled));
    }
    VOLT_END(0);
}

// ---- rounds
typedef struct {
    int64_t tasks, fds, kib, heap;
} state;
static int64_t count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    CHECK(d);
    int64_t n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}
static int64_t resident_kib(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    long size = 0, resident = 0;
    CHECK(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
    fclose(f);
    return (int64_t)resident * (sysconf(_SC_PAGESIZE) / 1024);
}
static state look(volt_rt *rt) {
    volt_counters c;
    volt_stats(rt, &c);
    return (state){(int64_t)(c.spawned - c.completed), count_fds(), resident_kib(),
                   __atomic_load_n(&live_bytes, __ATOMIC_RELAXED)};
}
typedef struct {
    volt_frame frame;
    volt_group users;
    volt_addr addr;
    volt_time length, deadline;
    uint64_t random;
    state before, now;
    int i;
} round_;
static volt_poll round_run(volt_cx *cx, void *arg) {
    round_ *r = (round_ *)arg;
    VOLT_BEGIN(cx, r);
    for (r->i = 0; r->i < N_CLIENTS; r->i++) {
        user *u = (user *)calloc(1, sizeof *u);
        CHECK(u);
        u->addr = r->addr;
        u->until = volt_now() + r->length;
        u->random = random_next(&r->random) | 1;
        CHECK(volt_group_spawn(cx, &r->users, user_run, u, sizeof *u) == 0);
        free(u);
    }
    VOLT_AWAIT(volt_group_wait(cx, &r->users));
    // The sessions of reset clients end by themselves; counters are published then.
    for (r->deadline = volt_now() + VOLT_S(30); volt_now() < r->deadline;) {
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(IDLE_MS)));
        r->now = look(volt_cx_rt(cx));
        if (r->now.tasks <= r->before.tasks && r->now.fds <= r->before.fds) break;
    }
    VOLT_END(0);
}
static void print_round(int i, const state *s) {
    printf("round %2d: %8llu connections, %9llu KiB, %6llu idle, %6llu cut, %6llu cancelled; "
           "%lld tasks, %lld descriptors, %lld KiB resident, %lld KiB of volt\n",
           i, (unsigned long long)GET(n_connections), (unsigned long long)GET(n_bytes) / 1024,
           (unsigned long long)GET(n_idle), (unsigned long long)GET(n_cut),
           (unsigned long long)GET(n_cancelled), (long long)s->tasks, (long long)s->fds,
           (long long)s->kib, (long long)s->heap / 1024);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 600;
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)volt_now();
    printf("soak: %d s, seed %llu\n", seconds, (unsigned long long)seed);
    static round_ r;
    static server srv;
    volt_config cfg = {.workers = 4, .alloc = {.alloc = count_alloc, .free = count_free}};
    volt_rt *rt = NULL;
    volt_handle h;
    int64_t fds = count_fds(), result = 0;
    uint64_t random = seed | 1;
    CHECK(volt_create(&cfg, &rt) == 0);
    srv.lfd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(srv.lfd >= 0 && volt_local_addr(srv.lfd, &r.addr) == 0);
    volt_addr addr = r.addr;
    CHECK(VOLT_RT_SPAWN(rt, &h, server_run, srv) == 0);
    state first = {2, 0, 0, 0}, last = {0, 0, 0, 0}; // at rest: the server and the round
    for (int i = 0; i < ROUNDS; i++) {
        memset(&r, 0, sizeof r);
        r.addr = addr;
        r.length = VOLT_MS(seconds * 1000 / ROUNDS);
        r.random = random_next(&random);
        r.before = first;
        if (i == 0) r.before.fds = INT64_MAX;
        CHECK(volt_block_on(rt, round_run, &r) == 0);
        last = r.now;
        print_round(i, &last);
        CHECK(last.tasks == 2);
        if (i < 2) first = last; // all workers run, and the process has its memory
        CHECK(last.fds <= first.fds);
        // at a fifth of the time memory has reached its level
        if (i == ROUNDS / 5) first.kib = last.kib, first.heap = last.heap;
    }
    CHECK(last.kib <= first.kib + SLACK_KIB);
    CHECK(last.heap <= first.heap + SLACK_KIB * 1024);
    volt_cancel(&h);
    CHECK(volt_join_sync(&h, VOLT_NEVER, &result) == 0 && result == 0);
    CHECK(volt_shutdown(rt, VOLT_NEVER) == 0 && volt_destroy(rt) == 0);
    CHECK(GET(live_bytes) == 0 && count_fds() == fds);
    CHECK(n_connections > N_CLIENTS && n_bytes > 0 && n_served > N_CLIENTS);
    printf("soak: passed\n");
    return 0;
}
