// SPDX-License-Identifier: MIT OR 0BSD
// The parts of volt.h, each alone: what stands where before and after it, to the bit. Kernel, clock
// and other threads are played by the seam, and no thread runs but the test's own.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

// ---- the seam: calls named by a HOOK_ go to a function of this file

#define HOOK_close ~, seam_close
#define HOOK_epoll_create1 ~, seam_epoll_create1
#define HOOK_epoll_ctl ~, seam_epoll_ctl
#define HOOK_eventfd ~, seam_eventfd
#define HOOK_getsockopt ~, seam_getsockopt
#define HOOK_pthread_setname_np ~, seam_setname
#define HOOK_read ~, seam_read
#define HOOK_timerfd_settime ~, seam_timerfd_settime
#define HOOK_write ~, seam_write
#define SECOND(a_, b_, ...) b_
#define PICK(...) SECOND(__VA_ARGS__)
#define VOLT_SYS(name_, ...) PICK(HOOK_##name_, name_, ~)(__VA_ARGS__)

static int64_t clock_now = INT64_C(1000000000000), clock_step;
#define VOLT_NOW_NS() (clock_now += clock_step)

// A sleep on a futex is over when the step that the test has for it was taken.
static struct {
    int n_waits, n_wakes, n, rc; // n: threads to be woken; rc: of a wait
    uint32_t *word, value;       // of the last call; what stood in the word
    uint32_t expect;
    int64_t deadline;
    void (*step)(void);
} futex;
static int seam_futex_wait(uint32_t *word, uint32_t expect, int64_t deadline) {
    futex.n_waits++;
    futex.word = word;
    futex.value = *word;
    futex.expect = expect;
    futex.deadline = deadline;
    if (futex.step) futex.step();
    return futex.rc;
}
static void seam_futex_wake(uint32_t *word, int n) {
    futex.n_wakes++;
    futex.word = word;
    futex.n = n;
}
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_) seam_futex_wait(word_, expect_, deadline_)
#define VOLT_FUTEX_WAKE(word_, n_) seam_futex_wake(word_, n_)

static int n_relaxed;
static void (*at_relax)(void);
static void seam_relax(void) {
    n_relaxed++;
    if (at_relax) at_relax();
}
#define VOLT_CPU_RELAX() seam_relax()

static jmp_buf panic_exit;
static char panic_text[600];
__attribute__((noreturn)) static void seam_panic(const char *text);
static int is_panic_expected;
#define VOLT_PANIC(text_) seam_panic(text_)

// Nobody sleeps here: a worker asks, and is answered at once.

static struct {
    int n_calls, ep, max, is_played, n, error;
    int64_t timeout;
    struct epoll_event ev[8];
    void (*step)(void); // while it sleeps
} polls;
static int seam_epoll_wait(int ep, struct epoll_event *ev, int max, int64_t timeout);
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) seam_epoll_wait(ep_, ev_, n_, timeout_)

// The next errors of a call, one after the other; 0: the kernel's own answer.
typedef struct {
    int n_calls, error[8];
} answers;
static int fails(answers *a) {
    int n = a->n_calls++;
    if (n >= 8 || !a->error[n]) return 0;
    errno = a->error[n];
    return 1;
}
static struct {
    answers answers;
    int ep, op, fd;
    struct epoll_event ev;
} ctl;
static int seam_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev) {
    ctl.ep = ep;
    ctl.op = op;
    ctl.fd = fd;
    ctl.ev = *ev;
    return fails(&ctl.answers) ? -1 : epoll_ctl(ep, op, fd, ev);
}
static answers of_close, of_create1, of_eventfd, of_read, of_write, of_sockopt;
static int seam_close(int fd) {
    int is_failing = fails(&of_close), error = errno, rc = close(fd);
    errno = error;
    return is_failing ? -1 : rc;
}
static int seam_epoll_create1(int flags) { return fails(&of_create1) ? -1 : epoll_create1(flags); }
static int seam_eventfd(unsigned n, int flags) {
    return fails(&of_eventfd) ? -1 : eventfd(n, flags);
}
static int seam_getsockopt(int fd, int at, int name, void *v, socklen_t *n) {
    return fails(&of_sockopt) ? -1 : getsockopt(fd, at, name, v, n);
}
static ssize_t seam_read(int fd, void *buf, size_t n) {
    return fails(&of_read) ? -1 : read(fd, buf, n);
}
static ssize_t seam_write(int fd, const void *buf, size_t n) {
    return fails(&of_write) ? -1 : write(fd, buf, n);
}
static char thread_name[32];
static int seam_setname(pthread_t t, const char *name) {
    (void)t;
    snprintf(thread_name, sizeof thread_name, "%s", name);
    return 0;
}
static struct {
    int n_calls, fd, flags;
    struct itimerspec t;
} settime;
static int seam_timerfd_settime(int fd, int flags, const struct itimerspec *t,
                                struct itimerspec *old) {
    (void)old;
    settime.n_calls++;
    settime.fd = fd;
    settime.flags = flags;
    settime.t = *t;
    return 0;
}
// Threads that are created do not begin.
static struct {
    int n_creates, error, fail_at;
    size_t stack;
    void *(*fn)(void *);
    void *arg;
    sigset_t mask;
} threads;
static int seam_thread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    (void)t;
    threads.n_creates++;
    pthread_attr_getstacksize(attr, &threads.stack);
    pthread_sigmask(SIG_BLOCK, NULL, &threads.mask);
    threads.fn = fn;
    threads.arg = arg;
    return threads.n_creates == threads.fail_at ? threads.error : 0;
}
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) seam_thread_create(thread_, attr_, fn_, arg_)
#define VOLT_THREAD_JOIN(thread_) ((void)(thread_), 0)

#include "../volt.h"
#include "test.h"
#include "tasks.h"
#include "still.h"
#include "slab.h"

static void seam_panic(const char *text) {
    if (!is_panic_expected) test_fail(__FILE__, __LINE__, "%s", text);
    snprintf(panic_text, sizeof panic_text, "%s", text);
    longjmp(panic_exit, 1);
}
static int seam_epoll_wait(int ep, struct epoll_event *ev, int max, int64_t timeout) {
    polls.n_calls++;
    polls.ep = ep;
    polls.max = max;
    polls.timeout = timeout;
    if (polls.step) polls.step();
    if (polls.error) return -polls.error;
    if (!polls.is_played) return volt__sys_epoll_wait(ep, ev, max, 0);
    CHECK(polls.n <= max);
    for (int i = 0; i < polls.n; i++) ev[i] = polls.ev[i];
    return polls.n;
}
static volt_rt *rt;
static volt__worker *w, *v; // the first two workers
static void begin(uint32_t n_workers) {
    rt = still_rt(n_workers);
    w = rt->workers[0];
    v = n_workers > 1 ? rt->workers[1] : NULL;
}
static void end(void) {
    VOLT_TLS_SET(NULL);
    still_end(rt);
}
static volt__chain no_chain(void) {
    volt__chain c;
    volt__chain_init(&c);
    return c;
}

// ---- texts

static const char *misused(const char *site, const char *what) {
    is_panic_expected = 1;
    if (!setjmp(panic_exit)) volt__misuse(site, what);
    is_panic_expected = 0;
    return panic_text;
}
TEST(a_misuse_says_where_and_what) {
    static char site[400];
    char want[600];
    for (size_t n = 0; n < sizeof site; n += n < 200 || n > 250 ? 40 : 1) {
        memset(site, 's', n);
        site[n] = 0;
        snprintf(want, sizeof want, "volt: %s: what", site);
        want[254] = 0; // with the newline and the end it fills the 256 bytes
        CHECK_STR(misused(site, "what"), strcat(want, "\n"));
        CHECK_STR(misused("s", "w"), "volt: s: w\n"); // also after a longer one
    }
}
static char logged[600];
static int logged_item;
static void log_text(void *user, int item, const char *text) {
    CHECK(user == &logged_item);
    logged_item = item;
    snprintf(logged, sizeof logged, "%s", text);
}
TEST(a_log_says_where_and_what) {
#define LOG_TEXT(name_, text_) text_,
    static const char *const texts[] = { VOLT__LOG_ITEMS(LOG_TEXT) };
#undef LOG_TEXT
    static char site[400], want[600];
    begin(1);
    rt->cfg.log.fn = log_text;
    rt->cfg.log.user = &logged_item;
    for (size_t n = 0; n < sizeof site - 1; n++) {
        int item = (int)(n % VOLT_LOG_COUNT);
        memset(site, 's', n);
        site[n] = 0;
        snprintf(want, sizeof want, "%s: %s", site, texts[item]);
        want[255] = 0;
        volt__log(rt, (volt_log_item)item, site);
        CHECK_STR(logged, want);
        CHECK_EQ(logged_item, item);
        volt__log(rt, (volt_log_item)item, NULL);
        CHECK_STR(logged, texts[item]);
    }
    for (int i = 0; i < 2; i++) volt__log(rt, (volt_log_item)0, i ? "s" : site);
    snprintf(want, sizeof want, "s: %s", texts[0]);
    CHECK_STR(logged, want); // right behind a longer one, at the same place
    rt->cfg.log.fn = NULL;
    volt__log(rt, (volt_log_item)0, "nobody");
    CHECK_STR(logged, want);
    end();
}
TEST(texts_of_results) {
    CHECK_STR(volt_strerror(0), "success");
    CHECK_STR(volt_strerror(1), "success");
    CHECK_STR(volt_strerror(INT_MAX), "success");
    CHECK_STR(volt_strerror(-EPERM), "not permitted");
    CHECK_STR(volt_strerror(-ETIMEDOUT), "timed out");
    CHECK_STR(volt_strerror(-4000), "system error");
}

// ---- locks

static uint32_t lock;
static int free_at; // looks after which it is free
static void free_in_time(void) {
    if (n_relaxed == free_at) lock = 0;
}
static void free_lock(void) { lock = 0; }
TEST(a_lock_is_looked_at_before_it_is_slept_on) {
    at_relax = free_in_time;
    futex.step = free_lock;
    for (free_at = 1; free_at <= VOLT_LOCK_SPIN; free_at++) {
        n_relaxed = futex.n_waits = 0;
        lock = 1;
        volt__lock(&lock);
        if (free_at < VOLT_LOCK_SPIN) CHECK_EQ(lock, 1); // nobody sleeps
        else CHECK_EQ(lock, 2);                          // it cannot know
        CHECK_EQ(n_relaxed, free_at);
        CHECK_EQ(futex.n_waits, 0);
    }
    n_relaxed = 0;
    free_at = -1;
    lock = 1;
    volt__lock(&lock);
    CHECK_EQ(n_relaxed, VOLT_LOCK_SPIN);
    CHECK_EQ(futex.n_waits, 1);
    CHECK(futex.word == &lock);
    CHECK_EQ(futex.value, 2);
    CHECK_EQ(futex.expect, 2);
    CHECK(futex.deadline == VOLT_NEVER);
    CHECK_EQ(lock, 2);
}
TEST(a_lock_wakes_who_sleeps_on_it) {
    volt__lock(&lock);
    CHECK_EQ(lock, 1);
    CHECK_EQ(n_relaxed, 0);
    CHECK(!volt__try_lock(&lock));
    CHECK_EQ(lock, 1);
    volt__unlock(&lock);
    CHECK_EQ(lock, 0);
    CHECK_EQ(futex.n_wakes, 0);
    CHECK(volt__try_lock(&lock));
    CHECK_EQ(lock, 1);
    CHECK(!volt__try_lock(&lock));
    lock = 2;
    CHECK(!volt__try_lock(&lock));
    CHECK_EQ(lock, 2);
    volt__unlock(&lock);
    CHECK_EQ(lock, 0);
    CHECK_EQ(futex.n_wakes, 1);
    CHECK_EQ(futex.n, 1);
    CHECK(futex.word == &lock);
}

// ---- numbers

TEST(bits_and_bounds) {
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(volt__highest_bit(UINT64_C(1) << i), i);
        CHECK_EQ(volt__highest_bit((UINT64_C(1) << i) | 1), i);
    }
    CHECK_EQ(volt__clamp32(-1, 3, 9), 3);
    CHECK_EQ(volt__clamp32(4, 3, 9), 4);
    CHECK_EQ(volt__clamp32(INT64_MAX, 3, 9), 9);
    CHECK_EQ(volt__min32(3, 4), 3);
    CHECK_EQ(volt__min32(4, 3), 3);
    CHECK(volt__time_add(1, VOLT_NEVER - 2) == VOLT_NEVER - 1);
    CHECK(volt__time_add(3, VOLT_NEVER - 2) == VOLT_NEVER);
    CHECK(volt__time_add(-5, 3) == -2);
}
TEST(deadlines) {
    CHECK(volt__deadline(VOLT_NEVER) == VOLT_NEVER);
    CHECK(volt__deadline(VOLT_NEVER - 1) == VOLT_NEVER);
    CHECK_EQ(volt__deadline(1), clock_now + 1);
    CHECK_EQ(volt__deadline(0), clock_now);
    CHECK_EQ(volt__deadline(-7), clock_now);
}
// xorshift64+, as in its paper, but on two halves of 32 bits with the shifts 17, 7, 16.
TEST(random_numbers_are_those_of_their_seed) {
    const uint64_t seeds[] = { 1, 42, UINT64_C(0x123456789abcdef0), UINT64_MAX };
    for (int k = 0; k < 4; k++)
        for (uint32_t stream = 0; stream < 5; stream++) {
            volt__random r;
            uint64_t x = seeds[k];
            for (uint32_t i = 0; i <= stream; i++) x += UINT64_C(0x9e3779b97f4a7c15);
            uint32_t a = (uint32_t)(x >> 32), b = (uint32_t)x;
            volt__random_seed(&r, seeds[k], stream);
            CHECK(r.a == a && r.b == b);
            for (int i = 0; i < 50; i++) {
                uint32_t s = a ^ a << 17;
                a = b;
                b = s ^ b ^ s >> 7 ^ b >> 16;
                CHECK_EQ(volt__random_below(&r, 1000), (uint64_t)(a + b) * 1000 >> 32);
                CHECK(r.a == a && r.b == b);
            }
        }
    volt__random zero;
    volt__random_seed(&zero, 0 - UINT64_C(0x9e3779b97f4a7c15), 0);
    CHECK(zero.a == 0 && zero.b == 1);
}

// ---- memory: what a heap looks like, after every step of many

static struct {
    volt__slabs slabs;
    volt__heap heap;
    uint32_t n_used[VOLT__CLASSES], n_high[VOLT__CLASSES]; // what they should be
    size_t asked;                                          // of the hook, by the last call
    int is_refusing, n_allocs;
} mem;
static void *mem_alloc(void *user, size_t size, size_t align) {
    CHECK(user == &mem && align == VOLT_SLAB_SIZE);
    CHECK_EQ(mem.slabs.lock | mem.heap.lock, 0);
    mem.asked = size;
    mem.n_allocs++;
    return mem.is_refusing ? NULL : test_alloc(&test_heap, size, align);
}
static void mem_free(void *user, void *block, size_t size) {
    CHECK(user == &mem);
    CHECK_EQ(mem.slabs.lock | mem.heap.lock, 0);
    test_free(&test_heap, block, size);
}
static void mem_begin(void) {
    memset(&mem, 0, sizeof mem);
    memset(&mem.heap, 0xa5, sizeof mem.heap);
    mem.slabs.rt = (volt_rt *)(void *)&mem; // is only handed on
    mem.slabs.alloc.alloc = mem_alloc;
    mem.slabs.alloc.free = mem_free;
    mem.slabs.alloc.user = &mem;
    volt__heap_init(&mem.heap, &mem.slabs);
    // between the classes and what others write lies nothing that anybody reads
    unsigned char *gap = (unsigned char *)mem.heap.cls + sizeof mem.heap.cls;
    while (gap < (unsigned char *)&mem.heap.remote) *gap++ = 0xff;
}
static void mem_end(void) {
    volt__slabs_destroy(&mem.slabs);
    CHECK(!mem.slabs.first);
    test_check_heap();
}
static void check_slab(const volt__slab *s) {
    size_t size = s->cls < VOLT__CLASSES ? VOLT_SLAB_SIZE : VOLT__SLAB_HEAD + s->slot_size;
    CHECK(s->rt == mem.slabs.rt && s->heap == &mem.heap);
    CHECK_EQ(s->bytes, size);
    CHECK_EQ(s->cap, (size - VOLT__SLAB_HEAD) / s->slot_size);
    CHECK(s->carved <= s->cap && slab_used(s) <= s->carved);
    if (s->cls < VOLT__CLASSES) CHECK_EQ(s->slot_size, volt__class_size(s->cls));
    else CHECK(s->slot_size % 16 == 0 && s->cap == 1);
    if (s->place != VOLT__SLAB_CURRENT) CHECK_EQ(s->used, slab_used(s));
}
static void check_class(uint32_t cls) {
    const volt__class *c = &mem.heap.cls[cls];
    const volt__slab *before = NULL;
    uint32_t n = 0, n_listed = 0, n_empty = 0;
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next) n += s->cls == cls;
    for (volt__slab *s = c->room; s; before = s, s = s->next, n_listed++) {
        CHECK(s->cls == cls && s->place == VOLT__SLAB_ROOM && s->prev == before);
        CHECK(s->used > 0 && s->used < s->cap);
    }
    for (volt__slab *s = c->empty; s; s = s->next, n_empty++)
        CHECK(s->cls == cls && s->place == VOLT__SLAB_FULL && slab_used(s) == 0);
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next)
        if (s->cls == cls && s->place == VOLT__SLAB_FULL && s->used == s->cap) n_listed++;
    if (c->current) CHECK(c->current->place == VOLT__SLAB_CURRENT && c->current->cls == cls);
    CHECK_EQ(c->n_empty, n_empty);
    CHECK_EQ(n, n_listed + n_empty + (c->current != NULL));
    CHECK_EQ(c->n_used, n - n_empty);
    mem.n_used[cls] = c->n_used;
    if (mem.n_used[cls] > mem.n_high[cls]) mem.n_high[cls] = mem.n_used[cls];
    CHECK_EQ(c->n_high, mem.n_high[cls]);
}
static void check_mem(void) {
    const volt__slab *before = NULL;
    for (const volt__slab *s = mem.slabs.first; s; before = s, s = s->all_next) {
        CHECK(s->all_prev == before);
        check_slab(s);
    }
    for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) check_class(cls);
}
static uint32_t count_slabs(void) {
    uint32_t n = 0;
    for (const volt__slab *s = mem.slabs.first; s; s = s->all_next) n++;
    return n;
}
static void mem_trim(void) {
    volt__heap_drain(&mem.heap);
    check_mem();
    uint32_t n = count_slabs(), n_given_back = 0;
    for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) {
        uint32_t keep = mem.n_high[cls] - mem.n_used[cls], have = mem.heap.cls[cls].n_empty;
        n_given_back += have > keep ? have - keep : 0;
        mem.n_high[cls] = mem.n_used[cls];
    }
    if (RANDOM_BELOW(2)) volt__slabs_reap(volt__heap_trim(&mem.heap));
    else volt__heap_trim_shared(&mem.heap);
    CHECK_EQ(count_slabs(), n - n_given_back);
}
static void mem_put(volt__task *t) {
    if (RANDOM_BELOW(4)) volt__heap_free_local(&mem.heap, t);
    else volt__heap_free_remote(t);
    if (RANDOM_BELOW(3) == 0) volt__heap_drain(&mem.heap);
}
static volt__task *mem_get(size_t size) {
    volt__task *t = NULL;
    uint64_t dice = RANDOM_BELOW(3);
    if (dice == 0) t = volt__heap_try(&mem.heap, size);
    if (dice == 1) t = volt__heap_alloc_shared(&mem.heap, size);
    if (!t) t = volt__heap_alloc(&mem.heap, size);
    CHECK(t && volt__slab_of(t)->slot_size >= size);
    return t;
}
TEST(a_heap_is_in_order_after_every_step) {
    enum { TASKS = 300, SIZES = 5 };
    static const size_t sizes[SIZES] = { 2000, 3000, VOLT_SLAB_SIZE / 8, VOLT_SLAB_SIZE / 8 + 1,
                                         3 * VOLT_SLAB_SIZE };
    static volt__task *task[TASKS];
    mem_begin();
    for (int k = 0; k < 6000; k++) {
        uint64_t i = RANDOM_BELOW(k / 1000 % 2 ? TASKS : TASKS / 6);
        if (task[i]) mem_put(task[i]), task[i] = NULL;
        else task[i] = mem_get(sizes[RANDOM_BELOW(k % 3 ? 3 : SIZES)]);
        check_mem();
        if (RANDOM_BELOW(100) == 0) mem_trim(), check_mem();
    }
    for (int i = 0; i < TASKS; i++)
        if (task[i]) mem_put(task[i]), check_mem();
    volt__heap_drain(&mem.heap);
    for (int i = 0; i < 2; i++) mem_trim(), check_mem();
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next) CHECK(s->cls < VOLT__CLASSES);
    mem_end();
}
// From the first, the last and the middle of those with room, and back again.
TEST(slabs_get_room_and_lose_it_in_any_order) {
    enum { SLABS = 4, SLOTS = 7 }; // of the largest class
    volt__task *t[SLABS][SLOTS];
    mem_begin();
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < SLABS * SLOTS; i++) {
            t[i / SLOTS][i % SLOTS] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8);
            check_mem();
        }
        CHECK_EQ(count_slabs(), SLABS); // the same again
        int from = (int)RANDOM_BELOW(SLABS), step = RANDOM_BELOW(2) ? 1 : SLABS - 1;
        for (int k = 0; k < SLABS; k++) {
            int i = (from + k * step) % SLABS;
            volt__heap_free_local(&mem.heap, t[i][0]);
            check_mem();
        }
        CHECK(volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8)); // where there is room
        CHECK_EQ(count_slabs(), SLABS);
        check_mem();
        for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) mem.n_high[cls] = 0;
        volt__slabs_destroy(&mem.slabs);
        volt__heap_init(&mem.heap, &mem.slabs);
    }
    mem_end();
}
TEST(what_others_gave_back_is_used_first) {
    volt__task *t[7];
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        mem_begin();
        for (int i = 0; i < 7; i++) t[i] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8);
        volt__heap_free_remote(t[3]);
        CHECK((is_shared ? volt__heap_alloc_shared : volt__heap_alloc)(
                  &mem.heap, VOLT_SLAB_SIZE / 8) == t[3]);
        check_mem();
        t[0] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE); // two large ones and a small one
        t[1] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE);
        CHECK_EQ(count_slabs(), 3);
        for (int i = 0; i < 3; i++) volt__heap_free_remote(t[i]);
        CHECK((is_shared ? volt__heap_alloc_shared : volt__heap_alloc)(
                  &mem.heap, VOLT_SLAB_SIZE / 8) == t[2]);
        CHECK_EQ(count_slabs(), 1);
        mem_end();
    }
}
TEST(how_much_is_asked_for) {
    const size_t most = UINT32_MAX / 2;
    mem_begin();
    mem.is_refusing = 1;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        volt__task *(*alloc)(volt__heap *h, size_t size) =
            is_shared ? volt__heap_alloc_shared : volt__heap_alloc;
        for (size_t size = 1; size <= VOLT_SLAB_SIZE / 8; size += 1000) {
            CHECK(!alloc(&mem.heap, size));
            CHECK_EQ(mem.asked, VOLT_SLAB_SIZE);
        }
        CHECK(!alloc(&mem.heap, VOLT_SLAB_SIZE / 8));
        CHECK_EQ(mem.asked, VOLT_SLAB_SIZE);
        CHECK(!alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 1));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + VOLT_SLAB_SIZE / 8 + 16);
        CHECK(!alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 16));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + VOLT_SLAB_SIZE / 8 + 16);
        CHECK(!alloc(&mem.heap, most));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + most + 1);
        int n = mem.n_allocs;
        CHECK(!alloc(&mem.heap, most + 1));
        CHECK_EQ(mem.n_allocs, n);
    }
    check_mem();
    mem_end();
}
// What is freed comes back last in, first out, and a slot is only tried where it is at hand.
TEST(slots_come_back_in_order) {
    volt__task *t[3];
    mem_begin();
    CHECK(!volt__heap_try(&mem.heap, 2000));
    for (int i = 0; i < 3; i++) {
        t[i] = volt__heap_alloc(&mem.heap, 2000);
        CHECK(t[i] == volt__slab_slot(mem.slabs.first, (uint32_t)i));
        CHECK_EQ(t[i]->word, 0);
        CHECK(!volt__heap_try(&mem.heap, 2000)); // not carved for it
    }
    for (int i = 0; i < 3; i++) volt__heap_free_local(&mem.heap, t[i]);
    CHECK(volt__heap_try(&mem.heap, VOLT_SLAB_SIZE / 8) == NULL);
    CHECK(volt__heap_try(&mem.heap, VOLT_SLAB_SIZE / 8 + 1) == NULL);
    CHECK(volt__heap_try(&mem.heap, SIZE_MAX) == NULL);
    for (int i = 2; i >= 0; i--) CHECK(volt__heap_try(&mem.heap, 2000) == t[i]);
    for (int i = 0; i < 3; i++) volt__heap_free_remote(t[i]);
    CHECK(!volt__heap_try(&mem.heap, 2000));
    volt__heap_drain(&mem.heap);
    CHECK(!mem.heap.remote);
    for (int i = 0; i < 3; i++) CHECK(volt__heap_try(&mem.heap, 2000) == t[i]);
    volt__task *large = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 1);
    CHECK_EQ(count_slabs(), 2);
    volt__heap_free_remote(large);
    volt__heap_trim_shared(&mem.heap); // collects it, and gives it back
    CHECK_EQ(count_slabs(), 1);
    volt__task *full = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8);
    volt__heap_free_local(&mem.heap, full);
    CHECK(volt__heap_try(&mem.heap, VOLT_SLAB_SIZE / 8) == full);
    mem_end();
}

// ---- queues

TEST(a_chain_of_one_has_no_end) {
    volt__injector q;
    volt__task t[3];
    memset(&q, 0, sizeof q);
    memset(t, 0xa5, sizeof t);
    volt__chain c = no_chain();
    volt__injector_push(&q, &c);
    CHECK(!q.head && q.len == 0);
    for (int i = 0; i < 3; i++) volt__chain_push(&c, &t[i]);
    CHECK(c.head == &t[0] && c.tail == &t[2] && !t[2].next);
    CHECK_EQ(c.len, 3);
    volt__injector_push(&q, &c);
    CHECK(q.head == &t[0] && q.tail == &t[2]);
    CHECK_EQ(q.lock, 0);
    c = no_chain();
    CHECK_EQ(volt__injector_pop(&q, 3, 9, &c), 2); // 3 / 3 + 1
    CHECK_EQ(volt__injector_pop(&q, 1, 0, &c), 0);
    CHECK_EQ(q.lock, 0);
    CHECK_EQ(volt__injector_pop(&q, 1, 9, &c), 1);
    CHECK(!q.head && !q.tail && c.head == &t[0] && c.tail == &t[2]);
}
TEST(a_ring_that_spills_can_be_filled_again) {
    static volt__task t[2 * VOLT_RING_CAP];
    for (uint32_t from = 0; from <= 2 * VOLT_RING_CAP; from += VOLT_RING_CAP / 2) {
        volt__ring r;
        volt__chain c = no_chain();
        memset(&r, 0, sizeof r);
        r.head = volt__head_make(from, 0);
        r.tail = r.limit = from & VOLT__RING_INDEX_MASK;
        CHECK_EQ(volt__ring_overflow(&r, &c), 0); // not full
        CHECK(volt__head_index(r.head) == (from & VOLT__RING_INDEX_MASK) && !c.head);
        for (uint32_t i = 0; i < VOLT_RING_CAP; i++) CHECK(volt__ring_push(&r, &t[i]));
        CHECK(!volt__ring_push(&r, &t[VOLT_RING_CAP]));
        r.head |= 1; // a thief is at work
        CHECK_EQ(volt__ring_overflow(&r, &c), 0);
        r.head &= ~(uintptr_t)1;
        CHECK_EQ(volt__ring_overflow(&r, &c), 1);
        CHECK_EQ(volt__head_distance(r.head), 0);
        CHECK_EQ(volt__ring_len(&r), VOLT_RING_CAP / 2);
        CHECK_EQ(r.limit, r.tail); // looks for room before the next push
        for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
            CHECK(volt__chain_pop(&c) == &t[i]);
        CHECK(!c.head && c.len == 0);
        for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
            CHECK(volt__ring_push(&r, &t[i + VOLT_RING_CAP / 2]));
        CHECK(!volt__ring_push(&r, &t[0]));
        for (uint32_t i = 0; i < VOLT_RING_CAP; i++)
            CHECK(volt__ring_pop(&r) == &t[i < VOLT_RING_CAP / 2 ? i : i + VOLT_RING_CAP / 2]);
        CHECK(!volt__ring_pop(&r));
    }
}
