// SPDX-License-Identifier: MIT OR 0BSD
// A program to be looked at by tests/tools/gdb.sh: five runtimes with tasks in every kind of wait, and
// running, queued, created and ended ones; with workers that are stuck, lent and blocked. It writes
// to the file that its argument names how `volt tasks` should show each of the tasks:
//   address|name|state|what for|at|function|spawned at|references|nodes|group
// and calls ready(), where it is to be stopped. Then it ends them all, and exits with 0.
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int refuses_threads;
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_)                                              \
    (refuses_threads ? EAGAIN : pthread_create((thread_), (attr_), (fn_), (arg_)))
#define VOLT_THREAD_JOIN(thread_) pthread_join((thread_), NULL)
static int ask(struct addrinfo **out);
#define getaddrinfo(host_, service_, hints_, out_) ask(out_)
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { ROWS = 40, TEXT = 96 };
#define FAR VOLT_S(600)

typedef struct row {
    const volt__task *task;
    char state[TEXT], what[TEXT], at[TEXT];
    const char *fn, *site;   // site: as the spawn had it
    const char *name;        // NULL: what the spawn says
    int refs, nodes, tag; // tag 0: none
    const volt_group *group;
} row;
static row rows[ROWS];
static uint32_t rows_lock, n_rows, n_told, n_stuck;

// One struct for all tasks of this program.
typedef struct task {
    volt_frame frame;
    const char *site; // of its spawn
    int refs, fd, rc;
    const volt_group *member_of;
    int line, up_line; // children: where they are awaited, and where their parent is awaited
    struct task *child;
    volt_handle other;
    volt_group group;
    volt_shield shield;
    volt_timer timer;
    volt_arm a, b;
    volt_waker waker;
    volt_job job;
    volt_lookup lookup;
    volt_addr addr;
} task;
typedef struct leaf {
    volt_frame frame;
    int rc;
} leaf;
static leaf leaves[2];
static const task blank;
static char lots[1 << 22];
static volt_addr full;        // of a listener that takes no more connections
static volt_token stop, over; // never cancelled; cancelled at the end
static int gate[2];           // a pipe, closed at the end

static void check(int ok, const char *what) {
    if (ok) return;
    perror(what);
    _exit(1);
}
#define CHECK(c_) check(!!(c_), __FILE__ ":" VOLT__STR(__LINE__) ": " #c_)
#define FORMAT(to_, ...) CHECK(snprintf((to_), TEXT, __VA_ARGS__) < TEXT)
#define COUNT(n_) volt__add_acq_rel(&(n_), 1)
#define UNTIL(c_)                                                                                  \
    do {                                                                                           \
        while (!(c_)) sched_yield();                                                               \
    } while (0)

// ---- what is known of a task

static row *row_of(const volt__task *t) {
    volt__lock(&rows_lock);
    uint32_t i = 0;
    while (i < n_rows && rows[i].task != t) i++;
    CHECK(i < ROWS);
    if (i == n_rows) n_rows++;
    rows[i].task = t;
    volt__unlock(&rows_lock);
    return &rows[i];
}
static row *know(const volt__task *t, const char *state, const char *fn, const char *site,
                 int refs) {
    row *r = row_of(t);
    FORMAT(r->state, "%s", state);
    FORMAT(r->what, "-");
    FORMAT(r->at, "-");
    r->fn = fn;
    r->site = site;
    r->refs = refs;
    return r;
}
// Of the task that runs, which stops in this line, or whose child does.
static row *tell(const volt_cx *cx, const task *w, const char *fn, int line, int nodes) {
    row *r =
        know(cx->task_, "waiting", w->up_line ? "root_run" : fn, w->site, w->refs ? w->refs : 1);
    FORMAT(r->at, "%s:%d", __FILE__, line);
    if (w->up_line) FORMAT(r->at, "%s:%d < %d < %d", __FILE__, line, w->line, w->up_line);
    r->nodes = nodes;
    r->group = w->member_of;
    return r;
}
// Says what it will wait for, with nodes_ nodes, and waits, all in one line.
#define WAIT(nodes_, await_, ...)                                                                  \
    do {                                                                                           \
        row *r_ = tell(cx, w, __func__, __LINE__, (nodes_));                                       \
        FORMAT(r_->what, __VA_ARGS__);                                                             \
        COUNT(n_told);                                                                             \
        VOLT_AWAIT(w->rc, await_);                                                                 \
    } while (0)

// Blocks until the end.
static int wait_at_gate(void) {
    char c;
    ssize_t n;
    do n = read(gate[0], &c, 1);
    while (n < 0 && errno == EINTR); // as a core file is made
    return n == 0 ? 0 : -EIO;
}

// ---- tasks, each in a wait of its own

static volt_poll timer_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_sleep(cx, FAR), "timer");
    VOLT_END(0);
}
static volt_poll never_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(0, volt_sleep_forever(cx), "forever");
    VOLT_END(0);
}
static volt_poll join_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_join(cx, &w->other), "join of %p", (void *)w->other.task_);
    volt_detach(&w->other);
    VOLT_END(0);
}
static volt_poll read_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_read(cx, w->fd, lots, 1), "readable fd %d", w->fd);
    VOLT_END(0);
}
static volt_poll write_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_write_all(cx, w->fd, lots, sizeof lots), "writable fd %d", w->fd);
    VOLT_END(0);
}
static volt_poll connect_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    w->fd = dup(0); // the lowest number that is free: that of the next socket
    close(w->fd);
    WAIT(1, volt_connect(cx, &full), "connect fd %d", w->fd);
    VOLT_END(0);
}
static volt_poll token_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_token_wait(cx, &stop), "token %p", (void *)&stop);
    VOLT_END(0);
}
static int spawn_member(volt_cx *cx, volt_group *g) {
    const task member = {.site = VOLT__SPAWN_SITE(timer_run), .member_of = g};
    return volt_group_spawn_at(cx, g, timer_run, &member, sizeof member, member.site);
}
static volt_poll group_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    CHECK(spawn_member(cx, &w->group) == 0);
    WAIT(1, volt_group_wait(cx, &w->group), "group %p", (void *)&w->group);
    VOLT_AWAIT(volt_group_close(cx, &w->group));
    VOLT_END(0);
}
static volt_poll select_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(2,
         VOLT_SELECT_BIASED(VOLT_ARM(&w->a, volt_token_wait(cx, &stop)),
                            VOLT_ARM(&w->b, volt_sleep(cx, FAR))),
         "select of 2 arms, one: timer");
    VOLT_END(0);
}
static volt_poll leaf_run(volt_cx *cx, void *arg) {
    leaf *l = (leaf *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_sleep_forever(cx));
    VOLT_END(0);
}
static volt_poll array_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(0, volt_join_all(cx, VOLT_EACH(leaf_run, leaves)), "array, one: forever");
    VOLT_END(0);
}
static volt_poll by_hand(volt_cx *cx) {
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
static volt_poll waker_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    w->refs = 2;
    w->waker = volt_waker_retain(cx);
    WAIT(0, by_hand(cx), "waker");
    volt_waker_release(w->waker);
    VOLT_END(0);
}
// A shield lets it wait although it is cancelled.
static volt_poll cancelled_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    while (!volt_is_cancelled(cx)) VOLT_AWAIT(volt_yield(cx));
    volt_shield_begin(cx, &w->shield, VOLT_NEVER);
    WAIT(1, volt_token_wait(cx, &over), "token %p", (void *)&over);
    volt_shield_end(cx, &w->shield);
    VOLT_END(0);
}

static uint32_t n_asked;
static int ask(struct addrinfo **out) {
    *out = NULL;
    COUNT(n_asked);
    return wait_at_gate() == 0 ? EAI_AGAIN : EAI_FAIL;
}
static volt_poll name_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_resolve(cx, &w->lookup, "far.test", "80", &w->addr, 1), "name of far.test");
    VOLT_END(0);
}
static uint32_t n_blocked; // calls that have begun
static int call_run(void *unused) {
    (void)unused;
    COUNT(n_blocked);
    return wait_at_gate();
}
// The first one has a thread, the only one that there may be; the second one waits for it.
static volt_poll blocking_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_blocking(cx, &w->job, call_run, NULL), "blocking, started");
    VOLT_END(0);
}
static volt_poll blocking_queued_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(1, volt_blocking(cx, &w->job, call_run, NULL), "blocking, queued");
    VOLT_END(0);
}
static volt_poll named_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    volt_name(cx, "an odd name");
    row_of(cx->task_)->name = "an odd name";
    WAIT(0, volt_sleep_forever(cx), "forever");
    VOLT_END(0);
}

// ---- children inside each other; the root is volt_block_on's

static volt_poll inner_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    WAIT(2, volt_within(cx, &w->timer, FAR, volt_sleep(cx, FAR - VOLT_S(1))), "timer");
    VOLT_END(0);
}
static volt_poll middle_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    w->child->up_line = w->line;
    w->child->line = __LINE__ + 1;
    VOLT_AWAIT(w->rc, inner_run(cx, w->child));
    VOLT_END(0);
}
static volt_poll root_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    w->child->line = __LINE__ + 1;
    VOLT_AWAIT(w->rc, middle_run(cx, w->child));
    VOLT_END(0);
}
static void *block_on_thread(void *rt) {
    static task root, middle, inner;
    root.child = &middle;
    middle.child = &inner;
    inner.site = "root task";
    inner.refs = 2;
    CHECK(volt_block_on((volt_rt *)rt, root_run, &root) == 0);
    return NULL;
}

// ---- tasks that do not wait

static volt_poll yield_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    while (!volt_is_cancelled(cx)) WAIT(0, volt_yield(cx), "-");
    VOLT_END(0);
}
static volt_poll end_run(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    return volt_ready(42);
}
// Stops its worker, with a task in its LIFO slot. It sleeps before: so long have others waited.
static volt_poll stuck_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    char state[TEXT];
    WAIT(0, volt_sleep(cx, VOLT_MS(300)), "-");
    w->site = VOLT__SPAWN_SITE(end_run);
    CHECK(volt_spawn_at(cx, &w->other, end_run, &blank, sizeof blank, w->site) == 0);
    FORMAT(state, "queued on LIFO %u", cx->worker_->index);
    know(w->other.task_, state, "end_run", w->site, 2);
    FORMAT(row_of(cx->task_)->state, "running on %u", cx->worker_->index);
    COUNT(n_stuck);
    CHECK(wait_at_gate() == 0);
    volt_detach(&w->other);
    VOLT_END(0);
}
// Blocks in place: its worker is carried by a thread of the pool, or by none.
static volt_poll lends_run(volt_cx *cx, void *arg) {
    task *w = (task *)arg;
    VOLT_BEGIN(cx, w);
    row *r = tell(cx, w, __func__, 0, 0);
    FORMAT(r->at, "-");
    FORMAT(r->what, "-");
    FORMAT(r->state, w->fd ? "running on %u" : "running in place", cx->worker_->index);
    CHECK(volt_block_in_place(cx, call_run, NULL) == 0);
    VOLT_END(0);
}

// ---- the program

// A task that tells of itself: SPAWN(runtime, handle, function, member = value ...)
static uint32_t n_spawned;
#define SPAWN(rt_, handle_, fn_, ...)                                                              \
    do {                                                                                           \
        task new_ = {.site = VOLT__SPAWN_SITE(fn_), __VA_ARGS__};                                  \
        CHECK(volt_rt_spawn_at((rt_), (handle_), (fn_), &new_, sizeof new_, new_.site) == 0);      \
        n_spawned++;                                                                               \
    } while (0)
static void await_told(void) { UNTIL(volt__load_acq(&n_told) >= n_spawned); }

static volt_rt *rt, *other_rt, *placed_rt, *lent_rt, *blocked_rt;
static volt_handle joined, cancelled, yields, ended, queued[2], placed;
static void *created;

// A listener, and more connections than it takes.
static void fill_backlog(void) {
    volt_listen_options one = {.backlog = 1};
    int fd = volt_listen("127.0.0.1", 0, &one);
    CHECK(fd >= 0 && volt_local_addr(fd, &full) == 0);
    for (int i = 0; i < 6; i++) {
        int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CHECK(c >= 0);
        CHECK(connect(c, volt__addr_sa(&full), full.len_) == 0 || errno == EINPROGRESS);
    }
}
static void spawn_waits(void) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fill_backlog();
    SPAWN(rt, NULL, connect_run, .rc = 0);
    await_told(); // it has its descriptor
    SPAWN(other_rt, NULL, timer_run, .rc = 0);
    SPAWN(rt, NULL, timer_run, .rc = 0);
    SPAWN(rt, &joined, never_run, .refs = 2);
    SPAWN(rt, NULL, join_run, .refs = 2, .other = joined);
    SPAWN(rt, NULL, read_run, .fd = pair[0]);
    SPAWN(rt, NULL, write_run, .fd = pair[0]);
    SPAWN(rt, NULL, token_run, .rc = 0);
    SPAWN(rt, NULL, group_run, .rc = 0);
    n_spawned++; // the child of the group
    SPAWN(rt, NULL, select_run, .rc = 0);
    SPAWN(rt, NULL, array_run, .rc = 0);
    SPAWN(rt, NULL, waker_run, .rc = 0);
    SPAWN(rt, &cancelled, cancelled_run, .refs = 2);
    volt_cancel(&cancelled);
    n_spawned++; // the root of volt_block_on
    SPAWN(rt, NULL, named_run, .rc = 0);
    SPAWN(rt, NULL, name_run, .rc = 0);
    SPAWN(rt, NULL, blocking_run, .rc = 0);
    UNTIL(volt__load_acq(&n_blocked) == 1 && volt__load_acq(&n_asked) == 1);
    SPAWN(rt, NULL, blocking_queued_run, .rc = 0);
    await_told();
    FORMAT(row_of(cancelled.task_)->state, "waiting, cancelled");
}
// One worker after the other gets stuck: the second task comes when the first can run nowhere else.
static void stop_both(volt_rt *r) {
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = volt__load_acq(&n_stuck);
        SPAWN(r, NULL, stuck_run, .rc = 0);
        UNTIL(volt__load_acq(&n_stuck) == n + 1);
    }
}
static void spawn_stuck(void) {
    SPAWN(rt, &yields, yield_run, .refs = 2);
    stop_both(rt);
    FORMAT(row_of(yields.task_)->state, "queued on ring");
}
static void spawn_with(volt_spawn_options o, const char *state) {
    static const char *const site = VOLT__SPAWN_SITE(end_run);
    volt_handle h;
    CHECK(volt_rt_spawn_with(rt, &o, &h, end_run, &blank, sizeof blank, site) == 0);
    know(h.task_, state, "end_run", site, 1)->tag = (int)o.tag;
    volt_detach(&h);
}
static void spawn_others(void) {
    static const char *const ended_at = VOLT__SPAWN_SITE(end_run);
    static const char *const queued_at = VOLT__SPAWN_SITE(end_run);
    CHECK(volt_rt_spawn_at(rt, &ended, end_run, &blank, sizeof blank, ended_at) == 0);
    UNTIL(volt__load_acq(&ended.task_->word) & VOLT__COMPLETE);
    FORMAT(know(ended.task_, "ended, held", "-", ended_at, 1)->what, "result 42");
    created = volt_task_create(rt, end_run, sizeof(task));
    CHECK(created != NULL);
    know(volt__state_task(created), "created", "end_run", "volt_task_create", 1);
    spawn_stuck();
    for (int i = 0; i < 2; i++) {
        CHECK(volt_rt_spawn_at(rt, &queued[i], end_run, &blank, sizeof blank, queued_at) == 0);
        know(queued[i].task_, "queued on injector", "end_run", queued_at, 2);
    }
    spawn_with((volt_spawn_options){.is_bound = 1, .worker = 1}, "queued on bound 1");
    spawn_with((volt_spawn_options){.is_urgent = 1, .tag = 4711}, "queued on urgent lane");
}
// Stuck workers, and what is placed with one of them.
static void spawn_placed(void) {
    static const char *const placed_at = VOLT__SPAWN_SITE(end_run);
    stop_both(placed_rt);
    CHECK(volt_rt_spawn_at(placed_rt, &placed, end_run, &blank, sizeof blank, placed_at) == 0);
    int is_first = placed_rt->workers[0]->inbox.head == placed.task_;
    know(placed.task_, is_first ? "queued on inbox 0" : "queued on inbox 1", "end_run", placed_at,
         2);
}
static int is_asleep(volt_rt *r, uint32_t i) { return volt__idle_is_parked(&r->idle, i); }
// The helper of a worker that was lent polls another task, then sleeps.
static void spawn_in_place(void) {
    SPAWN(lent_rt, NULL, lends_run, .rc = 0);
    UNTIL(volt__load_acq(&n_blocked) == 2);
    SPAWN(lent_rt, NULL, timer_run, .rc = 0);
    await_told();
    UNTIL(is_asleep(lent_rt, 0));
    refuses_threads = 1;
    SPAWN(blocked_rt, NULL, lends_run, .fd = 1);
    UNTIL(volt__load_acq(&n_blocked) == 3);
    refuses_threads = 0;
    UNTIL(is_asleep(blocked_rt, 0) + is_asleep(blocked_rt, 1) == 1);
}
static void end_all(pthread_t blocked) {
    volt_token_cancel(&over);
    close(gate[1]);
    volt_task_destroy(created);
    volt_detach(&cancelled);
    volt_detach(&yields);
    volt_detach(&ended);
    for (int i = 0; i < 2; i++) volt_detach(&queued[i]);
    volt_detach(&placed);
    volt_rt *const all[] = {rt, other_rt, placed_rt, lent_rt, blocked_rt};
    for (int i = 0; i < 5; i++) CHECK(volt_shutdown(all[i], VOLT_S(20)) == 0);
    CHECK(pthread_join(blocked, NULL) == 0);
    for (int i = 0; i < 5; i++) CHECK(volt_destroy(all[i]) == 0);
}

static void write_rows(const char *path) {
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    for (const row *r = rows; r < rows + n_rows; r++) {
        const char *tab = r->name ? NULL : strchr(r->site, '\t');
        fprintf(f, "%p|%s|", (const void *)r->task, r->name ? r->name : tab ? tab + 1 : r->site);
        if (r->tag) fprintf(f, "%d|", r->tag);
        else fprintf(f, "-|");
        fprintf(f, "%s|%s|%s|%s|%.*s|%d|%d|", r->state, r->what, r->at, r->fn,
                tab ? (int)(tab - r->site) : 1, tab ? r->site : "-", r->refs, r->nodes);
        if (r->group)
            fprintf(f, "%p\n", (const void *)r->group);
        else
            fprintf(f, "-\n");
    }
    CHECK(fclose(f) == 0);
}
void ready(void);
__attribute__((noinline)) void ready(void) { __asm__ volatile(""); }

int main(int argc, char **argv) {
    volt_config two = {.workers = 2, .start_all_workers = 1, .watchdog_us = UINT32_MAX,
                        .max_blocking_threads = 1};
    volt_config one = {.workers = 1};
    volt_config least = two;
    pthread_t blocked;
    least.placement = VOLT_PLACE_LEAST;
    CHECK(argc == 2 && pipe(gate) == 0);
    CHECK(volt_create(&two, &rt) == 0 && volt_create(&one, &other_rt) == 0);
    CHECK(volt_create(&least, &placed_rt) == 0 && volt_create(&one, &lent_rt) == 0);
    CHECK(volt_create(&two, &blocked_rt) == 0);
    CHECK(pthread_create(&blocked, NULL, block_on_thread, rt) == 0);
    spawn_waits();
    spawn_others();
    spawn_placed();
    spawn_in_place();
    write_rows(argv[1]);
    ready();
    end_all(blocked);
    return 0;
}
