// SPDX-License-Identifier: MIT OR 0BSD
// Runs a scenario under a plan: starts a runtime, runs the scenario while calls fail, runs it once
// more while none does (that must succeed), and ends the runtime while calls fail again. Include it
// after volt.h.
#ifndef VOLT_FAULT_HOST_H
#define VOLT_FAULT_HOST_H

// A scenario is one of three: a task, the root of volt_run or of volt_block_on; calls of a plain
// thread to a runtime; or a program of its own. It returns 0 or its first error.
enum {
    PEERS = 1, // an error of one part reaches the others as EPIPE, ECONNRESET, ...
    QUIET = 2, // not every error reaches the caller
    REUSES = 4, // closes a descriptor without volt_close
    SPARED = 8, // nothing may fail
    LONG = 16   // in the short form only with one worker
};
typedef struct scenario {
    const char *name;
    volt_fn *task;
    size_t size; // of the task's state
    int (*on)(volt_rt *rt);
    int (*whole)(void);
    int flags;
} scenario;
#define TASK(name_, flags_) { #name_, name_##_run, sizeof(name_##_state), NULL, NULL, flags_ }
#define ON(name_, flags_) { #name_, NULL, 0, name_, NULL, flags_ }
#define WHOLE(name_, flags_) { #name_, NULL, 0, NULL, name_, flags_ }

// volt_run; volt_create; a guest of the scenario's thread; a program of its own.
enum { RUN, OWN, GUEST, ITSELF };
typedef struct variant {
    const scenario *s;
    int host;
    uint32_t workers; // 3: all start at once
} variant;
static const variant *running;

static void write_log(void *user, int item, const char *text) {
    (void)user;
    if (item == VOLT_LOG_THREAD_START || item == VOLT_LOG_STILL_ALIVE) return;
    if (item == VOLT_LOG_FD_REUSED && (running->s->flags & REUSES)) return;
    fail("log: %s", text);
}
static volt_config config(uint32_t workers) {
    volt_config c;
    memset(&c, 0, sizeof c);
    c.workers = workers;
    c.start_all_workers = workers >= 3;
    c.max_blocking_threads = (workers + 1) / 2; // so that jobs have to wait
    c.placement = (volt_placement)(strlen(running->s->name) % 3); // each for a third of them
    c.seed = 7;
    c.alloc.alloc = fault_alloc;
    c.alloc.free = fault_free;
    c.log.fn = write_log;
    return c;
}

// ---- the plan is in force between start_faults and stop_faults

static rlim_t normal_limit;
static void limit_descriptors(rlim_t n) {
    struct rlimit r;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (normal_limit == 0) normal_limit = r.rlim_cur < MOST_FDS ? r.rlim_cur : MOST_FDS;
    r.rlim_cur = n ? n : normal_limit;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
}
static void start_faults(void) {
    if (inject.f.effect == LIMIT) {
        int fd = dup(STDOUT_FILENO); // the lowest free number
        CHECK(fd >= 0);
        close(fd);
        limit_descriptors((rlim_t)(fd + inject.k - 1));
    }
    set(&inject.is_on, 1);
}
static void stop_faults(void) {
    set(&inject.is_on, 0);
    if (inject.f.effect == LIMIT) limit_descriptors(0);
}
static void check_ledger(void) {
    CHECK_EQ(inject.n_open, 0);
    CHECK_EQ(inject.n_threads, 0);
    CHECK_EQ(inject.n_children, 0);
    CHECK_EQ(inject.n_lists, 0);
    CHECK_EQ(inject.mapped, 0);
    CHECK_EQ(inject.n_blocks, 0);
    CHECK_EQ(inject.n_bytes, 0);
}

// ---- hosts

static _Alignas(16) char root_state[1 << 16];
static int run_task(const variant *v) {
    volt_config c = config(v->workers);
    CHECK(v->s->size <= sizeof root_state);
    memset(root_state, 0, v->s->size);
    return volt_run(&c, v->s->task, root_state);
}
// The loop of an application: it waits for the descriptor, at most until the deadline, and steps.
// If another worker ends the task, only joiners are told, so the loop checks each ms.
static void step_guest(const variant *v, volt_rt *rt) {
    struct pollfd p = { .fd = volt_rt_fd(rt), .events = POLLIN };
    volt_time deadline = volt_rt_deadline(rt);
    int64_t left = deadline == VOLT_NEVER ? 0 : deadline - volt_now(), ms = left / 1000000 + 1;
    int timeout = deadline == VOLT_NEVER ? -1 : left <= 0 ? 0 : ms < 1000 ? (int)ms : 1000;
    if (v->workers > 1 && timeout != 0) timeout = 1;
    while (poll(&p, 1, timeout) < 0) CHECK_EQ(errno, EINTR);
    CHECK(volt_rt_step(rt, 0) >= 0);
}
static int work_as_a_guest(const variant *v, volt_rt *rt) {
    volt_handle h = { NULL };
    int64_t value = 0;
    int rc = volt_rt_spawn(rt, &h, v->s->task, root_state, v->s->size);
    CHECK_EQ(rc == 0, volt_handle_is_set(&h));
    if (rc < 0) return rc;
    while ((rc = volt_try_join(&h, &value)) == -EAGAIN) step_guest(v, rt);
    CHECK_EQ(rc, 0);
    return (int)value;
}
static int work_on(const variant *v, volt_rt *rt) {
    if (v->s->on) return v->s->on(rt);
    memset(root_state, 0, v->s->size);
    if (v->host == GUEST) return work_as_a_guest(v, rt);
    return volt_block_on(rt, v->s->task, root_state);
}
// Shutdown cannot fail and allocates nothing. With more workers one may be starting another now.
static void end(const variant *v, volt_rt *rt) {
    if (v->workers == 1) add(&inject.n_forbidden, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    if (v->workers == 1) add(&inject.n_forbidden, -1);
}
static int run_on_own(const variant *v) {
    volt_config c = config(v->workers);
    c.is_guest = v->host == GUEST;
    volt_rt *rt = NULL;
    start_faults();
    int rc = volt_create(&c, &rt);
    CHECK((rc == 0) == (rt != NULL));
    if (rc == 0) rc = work_on(v, rt);
    stop_faults();
    if (!rt) CHECK_EQ(volt_create(&c, &rt), 0);
    if (is_hit()) CHECK_EQ(work_on(v, rt), 0);
    start_faults();
    end(v, rt);
    stop_faults();
    return rc;
}
static int run_twice(const variant *v) {
    start_faults();
    int rc = v->host == RUN ? run_task(v) : v->s->whole();
    stop_faults();
    check_ledger();
    if (is_hit()) CHECK_EQ(v->host == RUN ? run_task(v) : v->s->whole(), 0);
    return rc;
}
// Returns the scenario's result under faults.
static int run_variant(const variant *v) {
    running = v;
    int rc = v->host == OWN || v->host == GUEST ? run_on_own(v) : run_twice(v);
    check_ledger();
    return rc;
}

// ---- shared by scenarios


static int64_t worse(int64_t so_far, int64_t rc) { return so_far < 0 || rc >= 0 ? so_far : rc; }

// A task with its state, written right below it: `s` is the state, `s->first` the first error.
#define STATE(name_, ...)                                                                          \
    typedef struct {                                                                               \
        volt_frame frame;                                                                          \
        int64_t rc, first;                                                                         \
        __VA_ARGS__                                                                                \
    } name_##_state;                                                                               \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s);                                  \
    static volt_poll name_##_run(volt_cx *cx, void *arg) {                                         \
        return name_##_body(cx, (name_##_state *)arg);                                             \
    }                                                                                              \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s)
#define KEEP(rc_) (s->first = worse(s->first, (rc_)))
// Awaits, and keeps the first error.
#define KEEP_AWAIT(...)                                                                            \
    do {                                                                                           \
        VOLT_AWAIT(s->rc, __VA_ARGS__);                                                            \
        KEEP(s->rc);                                                                               \
    } while (0)

#define FAR_AWAY VOLT_S(1000000000) // beyond every jump of the clock

// Children: one ends at once, one sleeps, one waits for a token, one yields.
STATE(giver, int64_t value;) {
    VOLT_BEGIN(cx, s);
    VOLT_END(s->value);
}
STATE(napper, volt_time d;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_sleep(cx, s->d));
    VOLT_END(s->rc);
}
STATE(waiter, volt_token *token; int *n_started;) {
    VOLT_BEGIN(cx, s);
    if (s->n_started) add(s->n_started, 1);
    VOLT_AWAIT(s->rc, volt_token_wait(cx, s->token));
    VOLT_END(s->rc);
}
STATE(yielder, int n;) {
    VOLT_BEGIN(cx, s);
    while (s->n-- > 0) VOLT_AWAIT(volt_yield(cx));
    VOLT_END(0);
}

#endif // VOLT_FAULT_HOST_H
