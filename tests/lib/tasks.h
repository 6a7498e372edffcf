// SPDX-License-Identifier: MIT OR 0BSD
// Shared by the tests of the runtime. Include after volt.h and test.h.
#ifndef VOLT_TEST_TASKS_H
#define VOLT_TEST_TASKS_H

#include <pthread.h>
#include <sys/resource.h>

// ---- words shared by tasks, foreign threads and the test: at most as wide as a pointer, as larger
// ones are not atomic everywhere
#define READ(x_) __atomic_load_n(&(x_), __ATOMIC_ACQUIRE)
#define WRITE(x_, v_) __atomic_store_n(&(x_), (v_), __ATOMIC_RELEASE)
#define COUNT(x_) __atomic_add_fetch(&(x_), 1, __ATOMIC_ACQ_REL)

// A struct field that an expression must not evaluate twice has no macro; use lvalues only.
#ifdef VOLT_SINGLE_THREAD
enum { TEST_MOST_WORKERS = 1 };
#else
enum { TEST_MOST_WORKERS = 4 };
#endif
#define EACH_WORKERS(w_) for (uint32_t w_ = 1; w_ <= TEST_MOST_WORKERS; w_ *= 2)

// ---- an allocator that counts, poisons and fails on demand
typedef struct test_mem {
    intptr_t live_bytes, live_blocks;
    size_t n_allocs;
    size_t fail_at; // this allocation fails and, if sticky, all later ones; 0: none
    int is_sticky;
} test_mem;
static test_mem test_heap;

// A read of unwritten memory yields garbage, or is reported by a tool that tracks writes.
static inline void test_fill(void *p, size_t size) {
#ifdef TEST_SEES_UNWRITTEN
    (void)p, (void)size;
#else
    memset(p, 0xa5, size);
#endif
}
static inline void *test_alloc(void *user, size_t size, size_t align) {
    test_mem *m = (test_mem *)user;
    size_t n = COUNT(m->n_allocs);
    if (m->fail_at && (n == m->fail_at || (m->is_sticky && n > m->fail_at))) return NULL;
    CHECK(size > 0 && align && (align & (align - 1)) == 0);
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size) != 0) return NULL;
    test_fill(p, size);
    __atomic_add_fetch(&m->live_bytes, (intptr_t)size, __ATOMIC_RELAXED);
    __atomic_add_fetch(&m->live_blocks, 1, __ATOMIC_RELAXED);
    return p;
}
static inline void test_free(void *user, void *block, size_t size) {
    test_mem *m = (test_mem *)user;
    if (!block) return;
    memset(block, 0xdd, size); // wrong sizes show under the address sanitizer
    __atomic_sub_fetch(&m->live_bytes, (intptr_t)size, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&m->live_blocks, 1, __ATOMIC_RELAXED);
    free(block);
}

// ---- a log that counts per item and keeps the last text of each
typedef struct test_journal {
    int n[VOLT_LOG_COUNT];
    char text[VOLT_LOG_COUNT][160];
} test_journal;
static test_journal test_log;

static inline void test_write_log(void *user, int item, const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    test_journal *j = (test_journal *)user;
    CHECK(item >= 0 && item < VOLT_LOG_COUNT && text && *text);
    pthread_mutex_lock(&lock);
    j->n[item]++;
    snprintf(j->text[item], sizeof j->text[item], "%s", text);
    pthread_mutex_unlock(&lock);
}

// A worker that starts opens descriptors of its own. Where a test depends on the free numbers, all
// workers start at once, and its root waits for that, as a worker that is quicker than the rest may
// run it; otherwise chance decides, as both ways must work.
static int test_starts_all;
static inline volt_config test_config(uint32_t workers) {
    volt_config c;
    memset(&c, 0, sizeof c);
    c.workers = workers;
    c.start_all_workers = workers > 1 && (test_starts_all || RANDOM_BELOW(2));
    c.seed = RANDOM() | 1;
    c.alloc.alloc = test_alloc;
    c.alloc.free = test_free;
    c.alloc.user = &test_heap;
    c.log.fn = test_write_log;
    c.log.user = &test_log;
    return c;
}

// ---- run a root to its end; no byte may be left
static inline void test_check_heap(void) {
    CHECK_EQ(READ(test_heap.live_bytes), 0);
    CHECK_EQ(READ(test_heap.live_blocks), 0);
}
static inline int run_on(uint32_t workers, volt_fn *fn, void *state) {
    volt_config c = test_config(workers);
    int rc = volt_run(&c, fn, state);
    test_check_heap();
    return rc;
}
static inline volt_rt *create_on(uint32_t workers) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    CHECK_EQ(volt_create(&c, &rt), 0);
    CHECK(rt);
    return rt;
}
static inline void destroy(volt_rt *rt) {
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
    test_check_heap();
}

// Spawns that must succeed; `cx` is that of the function around them.
#define SPAWN(h_, fn_, ...) CHECK_EQ(VOLT_SPAWN(cx, h_, fn_, __VA_ARGS__), 0)
#define GROUP_SPAWN(g_, fn_, ...) CHECK_EQ(VOLT_GROUP_SPAWN(cx, g_, fn_, __VA_ARGS__), 0)
#define RT_SPAWN(rt_, h_, fn_, ...) CHECK_EQ(VOLT_RT_SPAWN(rt_, h_, fn_, __VA_ARGS__), 0)

// A test whose root is written right below it, on 1, 2 and 4 workers:
//     ROOT_TEST(name, { int rc; volt_handle h; }) { ... VOLT_AWAIT ... VOLT_END(0); }
// In the body `s` is the state; it begins after VOLT_BEGIN.
#define ROOT_TEST_ON(name_, last_, starts_all_, ...)                                               \
    typedef struct {                                                                               \
        volt_frame frame;                                                                          \
        struct __VA_ARGS__;                                                                        \
    } name_##_state;                                                                               \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s);                                  \
    static volt_poll name_##_root(volt_cx *cx, void *arg) {                                        \
        if (starts_all_) UNTIL(volt__started(cx->rt_) == cx->rt_->n_workers);                      \
        return name_##_body(cx, (name_##_state *)arg);                                             \
    }                                                                                              \
    TEST(name_) {                                                                                  \
        test_starts_all = starts_all_;                                                             \
        for (uint32_t w = 1; w <= last_; w *= 2) {                                                 \
            static name_##_state s;                                                                \
            memset(&s, 0, sizeof s);                                                               \
            test_opens_late = w > 1 && !starts_all_;                                               \
            CHECK_EQ(run_on(w, name_##_root, &s), 0);                                              \
            test_opens_late = 0;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s)
#define ROOT_TEST(name_, ...) ROOT_TEST_ON(name_, TEST_MOST_WORKERS, 0, __VA_ARGS__)
#define ROOT_TEST_1(name_, ...) ROOT_TEST_ON(name_, 1, 0, __VA_ARGS__)
#define ROOT_TEST_ALL(name_, ...) ROOT_TEST_ON(name_, TEST_MOST_WORKERS, 1, __VA_ARGS__)

// ---- small tasks

// Sleeps, then returns `value`; reports the result of the sleep and its own end.
typedef struct napper {
    volt_frame frame;
    volt_time d;
    int64_t value;
    int *rc, *n_ended; // may be NULL
    int result;
} napper;
static inline volt_poll napper_run(volt_cx *cx, void *arg) {
    napper *n = (napper *)arg;
    VOLT_BEGIN(cx, n);
    VOLT_AWAIT(n->result, volt_sleep(cx, n->d));
    if (n->rc) WRITE(*n->rc, n->result);
    if (n->n_ended) COUNT(*n->n_ended);
    VOLT_END(n->result < 0 ? n->result : n->value);
}

// Ends at once with `value`.
typedef struct giver {
    volt_frame frame;
    int64_t value;
    int *n_ended;
} giver;
static inline volt_poll giver_run(volt_cx *cx, void *arg) {
    giver *g = (giver *)arg;
    VOLT_BEGIN(cx, g);
    if (g->n_ended) COUNT(*g->n_ended);
    VOLT_END(g->value);
}

#ifndef VOLT_NO_IO
// Sends back what it reads, at most `cap` bytes at a time, and closes.
enum { MIRROR_MOST = 3000 };
typedef struct mirror {
    volt_frame frame;
    int fd;
    size_t cap;
    int64_t n;
    char buf[MIRROR_MOST];
} mirror;
static inline volt_poll mirror_run(volt_cx *cx, void *arg) {
    mirror *m = (mirror *)arg;
    VOLT_BEGIN(cx, m);
    CHECK(m->cap > 0 && m->cap <= sizeof m->buf);
    for (;;) {
        VOLT_AWAIT(m->n, volt_read(cx, m->fd, m->buf, m->cap));
        if (m->n <= 0) break;
        VOLT_AWAIT(m->n, volt_write_all(cx, m->fd, m->buf, (size_t)m->n));
        if (m->n < 0) break;
    }
    volt_close(cx, m->fd);
    VOLT_END(m->n);
}
#endif

// Waits for a token, then returns `value`, or the result of the wait if that is negative.
typedef struct waiter {
    volt_frame frame;
    volt_token *token;
    int64_t value;
    int *n_started, *n_ended;
    int rc;
} waiter;
static inline volt_poll waiter_run(volt_cx *cx, void *arg) {
    waiter *w = (waiter *)arg;
    VOLT_BEGIN(cx, w);
    if (w->n_started) COUNT(*w->n_started);
    VOLT_AWAIT(w->rc, volt_token_wait(cx, w->token));
    if (w->n_ended) COUNT(*w->n_ended);
    VOLT_END(w->rc < 0 ? w->rc : w->value);
}

// Yields until a word has reached a value: how a test waits for another task.
typedef struct awaiter {
    volt_frame frame;
    int rc;
} awaiter;
static inline volt_poll until_reaches(volt_cx *cx, awaiter *a, const int *word, int value) {
    VOLT_BEGIN(cx, a);
    while (READ(*word) < value) VOLT_AWAIT(a->rc, volt_yield(cx));
    VOLT_END(0);
}

// The number of tasks and threads that wait on a list of an object.
static inline int count_waiting(uint32_t *lock, volt__node *const *list) {
    int n = 0;
    volt__lock(lock);
    const volt__node *first = *list, *w = first;
    if (first) do n++;
        while ((w = w->next_) != first);
    volt__unlock(lock);
    return n;
}
#define WAITING(o_) count_waiting(&(o_).lock_, &(o_).waiters_)

// Sets the limit on descriptors; returns the old one. 0: no new ones, open ones stay.
static inline rlim_t set_fd_limit(rlim_t n) {
    struct rlimit r;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    rlim_t before = r.rlim_cur;
    r.rlim_cur = n;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    return before;
}

// ---- plain threads
static inline pthread_t start_thread(void *(*fn)(void *), void *arg) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, fn, arg), 0);
    return t;
}
static inline void join_thread(pthread_t t) { CHECK_EQ(pthread_join(t, NULL), 0); }
// Keeps the thread busy.
static inline void burn(volt_time d) {
    for (volt_time end = volt_now() + d; volt_now() < end;) {}
}

#endif // VOLT_TEST_TASKS_H
