// SPDX-License-Identifier: MIT OR 0BSD
// Everything at once, under bad conditions: far more workers than processors, one processor for all
// of them, a process that is stopped and continued, threads from outside. All tests but the last
// run the same actors, which perform random operations of programs and check their results. Built
// and run by `make odds`, with the delays of odds.h; a failed run prints its seed.
//   ODDS_MS   duration of each test (default 5000)
#define VOLT_IMPLEMENTATION
#include "../../volt.h"
#include "../lib/test.h"
#include "../lib/tasks.h"
#include <sys/socket.h>

static volt_time ends_at; // of the actors; read only while they run
static int n_rounds;

static volt_time odds_duration(void) {
    const char *ms = getenv("ODDS_MS");
    return VOLT_MS(ms ? atoi(ms) : 5000);
}

// ---- trees of tasks: each returns the number of its leaves
enum { TREE_WIDTH = 3, TREE_DEPTH = 4, TREE_LEAVES = 81 };
typedef struct {
    volt_frame frame;
    volt_handle child[TREE_WIDTH];
    int depth, i;
    int64_t leaves, sum;
} tree;
static volt_poll tree_run(volt_cx *cx, void *arg) {
    tree *t = (tree *)arg;
    VOLT_BEGIN(cx, t);
    if (t->depth == 0) VOLT_RETURN(1);
    for (t->i = 0; t->i < TREE_WIDTH; t->i++)
        SPAWN(&t->child[t->i], tree_run, (tree){.depth = t->depth - 1});
    for (t->i = 0; t->i < TREE_WIDTH; t->i++) {
        VOLT_AWAIT(t->leaves, volt_join(cx, &t->child[t->i]));
        CHECK(t->leaves > 0);
        t->sum += t->leaves;
    }
    VOLT_END(t->sum);
}

// ---- an echo over a pair of sockets
enum { ECHO_MOST = 9000 };
typedef struct {
    volt_frame frame;
    int fd[2];
    volt_handle peer;
    uint64_t seed;
    size_t len, i;
    int64_t rc;
    unsigned char out[ECHO_MOST], in[ECHO_MOST];
} echo;
static volt_poll echo_run(volt_cx *cx, echo *e) {
    VOLT_BEGIN(cx, e);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->fd), 0);
    SPAWN(&e->peer, mirror_run, (mirror){ .fd = e->fd[1], .cap = 700 });
    e->seed = RANDOM();
    e->len = 1 + e->seed % ECHO_MOST;
    for (e->i = 0; e->i < e->len; e->i++) e->out[e->i] = (unsigned char)(e->seed >> e->i % 57);
    VOLT_AWAIT(e->rc, volt_write_all(cx, e->fd[0], e->out, e->len));
    CHECK_EQ(e->rc, (int64_t)e->len);
    VOLT_AWAIT(e->rc, volt_read_exact(cx, e->fd[0], e->in, e->len));
    CHECK_EQ(e->rc, (int64_t)e->len);
    CHECK_EQ(memcmp(e->in, e->out, e->len), 0);
    volt_close(cx, e->fd[0]);
    VOLT_AWAIT(e->rc, volt_join(cx, &e->peer));
    CHECK_EQ(e->rc, 0);
    VOLT_END(0);
}

// ---- time, cancellation, tokens
enum { N_WAITERS = 5 };
typedef struct {
    volt_frame frame;
    volt_timer t;
    volt_time d, from;
    volt_handle h[N_WAITERS];
    volt_token token;
    int64_t rc;
    int i;
} small;
static volt_poll sleep_run(volt_cx *cx, small *s) {
    VOLT_BEGIN(cx, s);
    s->d = VOLT_US(1 + RANDOM_BELOW(3000));
    s->from = volt_now();
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->d));
    CHECK_EQ(s->rc, 0);
    CHECK(volt_now() - s->from >= s->d);
    s->from = volt_now();
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, s->d, volt_sleep_forever(cx)));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    CHECK(volt_now() - s->from >= s->d);
    VOLT_END(0);
}
static volt_poll cancel_run(volt_cx *cx, small *s) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h[0], napper_run, (napper){.d = VOLT_S(3600)});
    if (RANDOM_BELOW(2)) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&s->h[0]);
    VOLT_AWAIT(s->rc, volt_join(cx, &s->h[0]));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_END(0);
}
static volt_poll token_run(volt_cx *cx, small *s) {
    VOLT_BEGIN(cx, s);
    volt_token_init(&s->token, NULL);
    for (s->i = 0; s->i < N_WAITERS; s->i++)
        SPAWN(&s->h[s->i], waiter_run, (waiter){.token = &s->token, .value = s->i});
    if (RANDOM_BELOW(2)) VOLT_AWAIT(volt_yield(cx));
    volt_token_cancel(&s->token);
    for (s->i = 0; s->i < N_WAITERS; s->i++) {
        VOLT_AWAIT(s->rc, volt_join(cx, &s->h[s->i]));
        CHECK_EQ(s->rc, s->i);
    }
    volt_token_deinit(&s->token);
    VOLT_END(0);
}

// ---- actors
typedef struct {
    volt_frame frame;
    volt_handle h;
    int64_t rc;
    int what;
    union {
        echo echo;
        small small;
    } u;
} actor;
static volt_poll actor_run(volt_cx *cx, void *arg) {
    actor *a = (actor *)arg;
    VOLT_BEGIN(cx, a);
    while (volt_now() < ends_at) {
        memset(&a->u, 0, sizeof a->u);
        a->what = (int)RANDOM_BELOW(5);
        if (a->what == 0) {
            SPAWN(&a->h, tree_run, (tree){.depth = TREE_DEPTH});
            VOLT_AWAIT(a->rc, volt_join(cx, &a->h));
            CHECK_EQ(a->rc, TREE_LEAVES);
        } else if (a->what == 1) {
            VOLT_AWAIT(echo_run(cx, &a->u.echo));
        } else if (a->what == 2) {
            VOLT_AWAIT(sleep_run(cx, &a->u.small));
        } else if (a->what == 3) {
            VOLT_AWAIT(cancel_run(cx, &a->u.small));
        } else {
            VOLT_AWAIT(token_run(cx, &a->u.small));
        }
        COUNT(n_rounds);
    }
    VOLT_END(0);
}
enum { N_ACTORS = 24 };
typedef struct {
    volt_frame frame;
    volt_group g;
    int64_t rc;
    int i;
} play;
static volt_poll play_run(volt_cx *cx, void *arg) {
    play *p = (play *)arg;
    VOLT_BEGIN(cx, p);
    for (p->i = 0; p->i < N_ACTORS; p->i++) GROUP_SPAWN(&p->g, actor_run, (actor){.what = 0});
    VOLT_AWAIT(p->rc, volt_group_wait(cx, &p->g));
    CHECK_EQ(p->rc, 0);
    VOLT_END(0);
}
static void perform(uint32_t workers, uint32_t start_all) {
    static play p;
    memset(&p, 0, sizeof p);
    ends_at = volt_now() + odds_duration();
    volt_config c = test_config(workers);
    c.start_all_workers = start_all;
    CHECK_EQ(volt_run(&c, play_run, &p), 0);
    test_check_heap();
    CHECK(n_rounds > N_ACTORS);
}

// ---- conditions

TEST(more_workers_than_processors) { perform(64, 1); }

TEST(all_workers_on_one_processor) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && CPU_COUNT(&one) == 0) CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    perform(64, 1);
}

// Stops and continues the whole process at random moments, until the pipe is closed: it ends only
// while the process runs.
__attribute__((noreturn)) static void antagonize(pid_t victim, int until_closed) {
    struct pollfd p = {until_closed, POLLIN, 0};
    while (poll(&p, 1, (int)RANDOM_BELOW(20)) == 0) {
        struct timespec t = {0, (long)RANDOM_BELOW(20000000)};
        kill(victim, SIGSTOP);
        nanosleep(&t, NULL);
        kill(victim, SIGCONT);
    }
    _exit(0);
}
TEST(tasks_go_on_after_stop_and_continue) {
    int ends[2], status;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t victim = getpid(), antagonist = fork();
    CHECK(antagonist >= 0);
    if (antagonist == 0) {
        close(ends[1]);
        antagonize(victim, ends[0]);
    }
    close(ends[0]);
    perform(8, 0);
    close(ends[1]);
    CHECK_EQ(waitpid(antagonist, &status, 0), antagonist);
    CHECK_EQ(status, 0);
}

// ---- threads from outside that spawn, cancel and join
static void *knock(void *arg) {
    volt_rt *rt = (volt_rt *)arg;
    while (volt_now() < ends_at) {
        volt_handle h;
        int64_t result = 0;
        int is_cancelled = RANDOM_BELOW(2) == 0;
        RT_SPAWN(rt, &h, napper_run, (napper){.d = is_cancelled ? VOLT_S(3600) : 0, .value = 5});
        if (is_cancelled) volt_cancel(&h);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &result), 0);
        CHECK_EQ(result, is_cancelled ? -ECANCELED : 5);
        COUNT(n_rounds);
    }
    return NULL;
}
TEST(wake_ups_from_many_threads_are_kept) {
    pthread_t t[6];
    ends_at = volt_now() + odds_duration();
    volt_rt *rt = create_on(16);
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) t[i] = start_thread(knock, rt);
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) join_thread(t[i]);
    destroy(rt);
    CHECK(n_rounds > 6);
}
