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
#define HOOK_pthread_attr_destroy ~, seam_attr_destroy
#define HOOK_pthread_attr_init ~, seam_attr_init
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
// Descriptor 0 is a number like any other, in a program that has closed its own.
static int is_zero; // 1: the epoll, 2: the eventfd gets it
static int give_zero(int fd, int which) {
    if (fd < 0 || is_zero != which) return fd;
    dup2(fd, 0);
    close(fd);
    return 0;
}
static int seam_epoll_create1(int flags) {
    return fails(&of_create1) ? -1 : give_zero(epoll_create1(flags), 1);
}
static int seam_eventfd(unsigned n, int flags) {
    return fails(&of_eventfd) ? -1 : give_zero(eventfd(n, flags), 2);
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
static int attr_error, n_attrs;
static int seam_attr_init(pthread_attr_t *a) {
    n_attrs += !attr_error;
    return attr_error ? attr_error : pthread_attr_init(a);
}
static int seam_attr_destroy(pthread_attr_t *a) {
    n_attrs--;
    return pthread_attr_destroy(a);
}
// Threads that are created do not begin.
static struct {
    int n_creates, error, fail_at;
    size_t stack;
    void *(*fn)(void *);
    void *arg;
    sigset_t mask;
} created;
static int seam_thread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
    (void)t;
    created.n_creates++;
    pthread_attr_getstacksize(attr, &created.stack);
    pthread_sigmask(SIG_BLOCK, NULL, &created.mask);
    created.fn = fn;
    created.arg = arg;
    return created.n_creates == created.fail_at ? created.error : 0;
}
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) seam_thread_create(thread_, attr_, fn_, arg_)
static int seam_thread_join(pthread_t t) { return (void)t, 0; }
#define VOLT_THREAD_JOIN(thread_) seam_thread_join(thread_)

#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "still.h"
#include "slab.h"

static void seam_panic(const char *text) {
    if (!is_panic_expected) test_fail(__FILE__, __LINE__, "%s", text);
    snprintf(panic_text, sizeof panic_text, "%s", text);
    is_panic_expected = 2;
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
TEST(misuse_text_has_site_and_reason) {
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
TEST(log_text_has_site_and_item) {
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
// Each errno that the C library knows has a text of its own, which ends with its name.
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#  if __GLIBC_PREREQ(2, 32)
#    define NAME_OF_ERRNO(e_) strerrorname_np(e_)
#  endif
#endif
TEST(every_errno_has_a_text_and_its_name) {
    enum { LAST = 133 }; // EHWPOISON, the last one but on MIPS
    for (int e = 1; e <= LAST; e++) {
#ifdef NAME_OF_ERRNO
        char name[32];
        if (!NAME_OF_ERRNO(e)) continue;
        snprintf(name, sizeof name, " (%s)", NAME_OF_ERRNO(e));
        const char *end = strstr(volt_strerror(-e), " (");
        CHECK_STR(end ? end : volt_strerror(-e), name);
#else
        if (e == 41 || e == 58) continue; // there is none
        CHECK(strcmp(volt_strerror(-e), "unknown error") != 0);
#endif
        for (int k = 1; k < e; k++) {
            if (!strchr(volt_strerror(-k), '(')) continue;
            CHECK(strcmp(volt_strerror(-k), volt_strerror(-e)) != 0);
        }
    }
}
TEST(strerror_gives_text_for_any_result) {
    CHECK_STR(volt_strerror(0), "success");
    CHECK_STR(volt_strerror(1), "success");
    CHECK_STR(volt_strerror(INT_MAX), "success");
    CHECK_STR(volt_strerror(-EPERM), "operation not permitted (EPERM)");
    CHECK_STR(volt_strerror(INT_MIN), "unknown error");
    CHECK_STR(volt_strerror(-ETIMEDOUT), "timed out (ETIMEDOUT)");
    CHECK_STR(volt_strerror(-4000), "unknown error");
}

// ---- locks

static uint32_t lock;
static int free_at; // pauses after which it is free
static void free_in_time(void) {
    if (n_relaxed == free_at) lock = 0;
}
static void free_lock(void) { lock = 0; }
enum { LOOKS = VOLT_LOCK_TRIES };
static int pauses_before(int look) { return (int)VOLT_LOCK_SPIN * ((2 << look) - 1); }
TEST(lock_spins_before_it_sleeps) {
    at_relax = free_in_time;
    futex.step = free_lock;
    for (int look = 0; look < LOOKS; look++) {
        for (int is_late = 0; is_late < 2; is_late++) { // freed just before it, or just after it
            n_relaxed = futex.n_waits = 0;
            free_at = pauses_before(look) + is_late;
            lock = 1;
            volt__lock(&lock);
            int seen = look + is_late; // by that look
            CHECK_EQ(lock, seen < LOOKS ? 1 : 2); // who sleeps cannot know
            CHECK_EQ(n_relaxed, pauses_before(seen < LOOKS ? seen : look));
            CHECK_EQ(futex.n_waits, seen == LOOKS);
        }
    }
    n_relaxed = futex.n_waits = 0;
    free_at = -1;
    lock = 1;
    volt__lock(&lock);
    CHECK_EQ(n_relaxed, pauses_before(LOOKS - 1));
    CHECK_EQ(futex.n_waits, 1);
    CHECK(futex.word == &lock);
    CHECK_EQ(futex.value, 2);
    CHECK_EQ(futex.expect, 2);
    CHECK(futex.deadline == VOLT_NEVER);
    CHECK_EQ(lock, 2);
}
TEST(unlock_wakes_one_waiter_if_lock_has_waiters) {
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

TEST(integer_helpers_are_exact_at_their_bounds) {
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
TEST(deadline_saturates_at_now_and_at_never) {
    CHECK(volt__deadline(VOLT_NEVER) == VOLT_NEVER);
    CHECK(volt__deadline(VOLT_NEVER - 1) == VOLT_NEVER);
    CHECK_EQ(volt__deadline(1), clock_now + 1);
    CHECK_EQ(volt__deadline(0), clock_now);
    CHECK_EQ(volt__deadline(-7), clock_now);
}
// xorshift64+, as in its paper, but on two halves of 32 bits with the shifts 17, 7, 16.
TEST(random_numbers_follow_from_seed_and_stream) {
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
    if (s->state != VOLT__SLAB_CURRENT) CHECK_EQ(s->used, slab_used(s));
}
static void check_class(uint32_t cls) {
    const volt__class *c = &mem.heap.cls[cls];
    const volt__slab *before = NULL;
    uint32_t n = 0, n_listed = 0, n_empty = 0;
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next) n += s->cls == cls;
    for (volt__slab *s = c->partial; s; before = s, s = s->next, n_listed++) {
        CHECK(s->cls == cls && s->state == VOLT__SLAB_PARTIAL && s->prev == before);
        CHECK(s->used > 0 && s->used < s->cap);
    }
    for (volt__slab *s = c->empty; s; s = s->next, n_empty++)
        CHECK(s->cls == cls && s->state == VOLT__SLAB_FULL && slab_used(s) == 0);
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next)
        if (s->cls == cls && s->state == VOLT__SLAB_FULL && s->used == s->cap) n_listed++;
    if (c->current) CHECK(c->current->state == VOLT__SLAB_CURRENT && c->current->cls == cls);
    CHECK_EQ(c->n_empty, n_empty);
    CHECK_EQ(n, n_listed + n_empty + (c->current != NULL));
    CHECK_EQ(c->n_used, n - n_empty);
    mem.n_used[cls] = c->n_used;
    if (mem.n_used[cls] > mem.n_high[cls]) mem.n_high[cls] = mem.n_used[cls];
    CHECK_EQ(c->n_used_max, mem.n_high[cls]);
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
    if (dice == 0 && size <= VOLT_SLAB_SIZE / 8) t = volt__heap_alloc_fast(&mem.heap, size);
    if (dice == 1) t = volt__heap_alloc_shared(&mem.heap, size);
    if (!t) t = volt__heap_alloc(&mem.heap, size);
    CHECK(t && volt__slab_of(t)->slot_size >= size);
    return t;
}
TEST(heap_is_consistent_after_every_step) {
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
TEST(slabs_become_partial_and_full_in_any_order) {
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
        for (int i = 0; i < SLABS; i++) // where there is room
            CHECK(volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8));
        CHECK_EQ(count_slabs(), SLABS);
        check_mem();
        for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) mem.n_high[cls] = 0;
        volt__slabs_destroy(&mem.slabs);
        volt__heap_init(&mem.heap, &mem.slabs);
    }
    mem_end();
}
TEST(heap_reuses_remote_frees_before_it_grows) {
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
TEST(heap_asks_allocator_for_slab_or_rounded_large_size) {
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
TEST(local_frees_are_reused_last_in_first_out) {
    volt__task *t[3];
    mem_begin();
    CHECK(!volt__heap_alloc_fast(&mem.heap, 2000));
    for (int i = 0; i < 3; i++) {
        t[i] = volt__heap_alloc(&mem.heap, 2000);
        CHECK(t[i] == volt__slab_slot(mem.slabs.first, (uint32_t)i));
        CHECK_EQ(t[i]->word, 0);
        CHECK(!volt__heap_alloc_fast(&mem.heap, 2000)); // not carved for it
    }
    for (int i = 0; i < 3; i++) volt__heap_free_local(&mem.heap, t[i]);
    CHECK(volt__heap_alloc_fast(&mem.heap, VOLT_SLAB_SIZE / 8) == NULL);
    for (int i = 2; i >= 0; i--) CHECK(volt__heap_alloc_fast(&mem.heap, 2000) == t[i]);
    for (int i = 0; i < 3; i++) volt__heap_free_remote(t[i]);
    CHECK(!volt__heap_alloc_fast(&mem.heap, 2000));
    volt__heap_drain(&mem.heap);
    CHECK(!mem.heap.remote);
    for (int i = 0; i < 3; i++) CHECK(volt__heap_alloc_fast(&mem.heap, 2000) == t[i]);
    volt__task *large = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 1);
    CHECK_EQ(count_slabs(), 2);
    volt__heap_free_remote(large);
    volt__heap_trim_shared(&mem.heap); // collects it, and gives it back
    CHECK_EQ(count_slabs(), 1);
    volt__task *full = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8);
    volt__heap_free_local(&mem.heap, full);
    CHECK(volt__heap_alloc_fast(&mem.heap, VOLT_SLAB_SIZE / 8) == full);
    mem_end();
}

// ---- queues

TEST(injector_takes_chain_and_gives_it_in_shares) {
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
TEST(ring_that_overflowed_can_be_filled_again) {
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

// ---- the table of descriptors

static void *stolen_page; // published by somebody else while ours was being made
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

// One descriptor of one worker of two, and nodes of one task that wait for it.
static int fd[2];
static volt__fd *e;
static volt__task *task;
static volt__node node[3];
static void begin_fd(void) {
    memset(&ctl, 0, sizeof ctl);
    begin(2);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    e = volt__fd_lookup(&rt->fds, fd[0]);
    e->gen = 5;
    task = still_task(w);
    task->word &= ~VOLT__NOTIFIED; // it sleeps
    memset(node, 0, sizeof node);
    memset(&ctl, 0, sizeof ctl);
}
static void end_fd(void) {
    close(fd[0]);
    close(fd[1]);
    end();
}
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
    int rc = volt__fd_wait(&rt->fds, e, fd[0], 0, dir, seen, n, task);
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
        volt__fd_mark_empty(&f, dir, i & 4 ? 4 : 3, "", 1, 1);
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
    int rc = volt__fd_probe(&f, n, f.gen, is_accept);
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
    // nobody waits: nothing to be armed
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
        CHECK(!got.was_unparked && !got.watchdog_expired);
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
    CHECK(got.n_events == 1 && got.was_unparked == 0 && got.watchdog_expired == 1);
    polls.ev[1] = polls.ev[0];
    volt__reactor_poll(&w->reactor, &rt->fds, 2, 0, &got); // there may be more behind it
    CHECK(got.n_events == 2 && got.was_unparked == 0 && got.watchdog_expired == 1);
    polls.error = EINTR;
    volt__reactor_poll(&w->reactor, &rt->fds, 1, 0, &got);
    CHECK(got.n_events == 0 && got.watchdog_expired == 0);
    polls.error = 0;
    end_fd();
}

// ---- who sleeps

TEST(parked_workers_are_counted_and_claimed_once) {
    volt__idle s;
    for (uint32_t n = 1; n <= VOLT_MAX_WORKERS; n = n == 130 ? VOLT_MAX_WORKERS : n + 1) {
        memset(&s, 0xa5, sizeof s);
        volt__idle_init(&s, n);
        CHECK_EQ(s.n_words, (n + VOLT__IDLE_BITS - 1) / VOLT__IDLE_BITS);
        CHECK_EQ(s.searching, 0);
        CHECK(!volt__idle_has_parked(&s) && volt__idle_claim(&s, VOLT__ANY_WORKER) == -1);
        CHECK_EQ(s.searching, 0);
        for (uint32_t i = 0; i < n; i++) { // the i-th alone, then with the first and the last
            CHECK(!volt__idle_is_parked(&s, i));
            CHECK_EQ(volt__idle_park(&s, i, 0), 0);
            CHECK(volt__idle_is_parked(&s, i) && volt__idle_has_parked(&s));
            CHECK_EQ(volt__idle_count_others(&s, i), 0);
            CHECK_EQ(volt__idle_count_others(&s, i ? 0 : n), 1);
            CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), i);
            CHECK_EQ(s.searching, 1);
            CHECK(!volt__idle_is_parked(&s, i) && !volt__idle_has_parked(&s));
            CHECK_EQ(volt__idle_unpark(&s, i), 1); // claimed
            CHECK_EQ(volt__idle_end_search(&s), 1);
            CHECK_EQ(volt__idle_park(&s, i, 0), 0);
            CHECK_EQ(volt__idle_unpark(&s, i), 0);
            CHECK(!volt__idle_is_parked(&s, i));
            CHECK_EQ(s.searching, 0);
        }
        for (uint32_t i = 0; i < n; i++) (void)volt__idle_park(&s, i, 0);
        for (uint32_t i = 0; i < n; i++) CHECK_EQ(volt__idle_count_others(&s, i), n - 1);
        for (uint32_t i = 0; i < n; i++)
            CHECK_EQ(volt__idle_claim_bit(&s, VOLT__ANY_WORKER), n - 1 - i);
        CHECK_EQ(volt__idle_claim_bit(&s, VOLT__ANY_WORKER), -1);
    }
}
TEST(idle_find_wraps_round_to_first_parked_worker) {
    volt__idle s;
    static const uint32_t sizes[] = { 1, 2, 31, 32, 33, 63, 64, 65, 128, 130 };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && sizes[k] <= VOLT_MAX_WORKERS; k++) {
        uint32_t n = sizes[k];
        volt__idle_init(&s, n);
        for (uint32_t from = 0; from < n; from++) CHECK_EQ(volt__idle_find(&s, from), -1);
        for (uint32_t i = 0; i < n; i++) { // one alone
            (void)volt__idle_park(&s, i, 0);
            for (uint32_t from = 0; from < n; from++) CHECK_EQ(volt__idle_find(&s, from), i);
            CHECK_EQ(volt__idle_unpark(&s, i), 0);
        }
        for (uint32_t i = 0; i < n; i += 3) (void)volt__idle_park(&s, i, 0);
        for (uint32_t from = 0; from < n; from++) { // the next one, or the first
            uint32_t next = (from + 2) / 3 * 3;
            CHECK_EQ(volt__idle_find(&s, from), next < n ? next : 0);
        }
    }
}
TEST(claim_prefers_named_worker) {
    volt__idle s;
    volt__idle_init(&s, 3);
    for (uint32_t i = 0; i < 3; i++) (void)volt__idle_park(&s, i, 0);
    CHECK_EQ(volt__idle_claim(&s, 1), 1);
    CHECK_EQ(s.searching, 1);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 1), 2); // it is awake: any other
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 0), 0);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, 0), -1);
    CHECK_EQ(s.searching, 0);
}
TEST(searching_workers_are_counted_and_limited) {
    volt__idle s;
    volt__idle_init(&s, 8);
    for (uint32_t n = 0; n < 12; n++)
        for (uint32_t started = 0; started < 20; started++) {
            s.searching = n;
            CHECK_EQ(volt__idle_begin_search(&s, started), 2 * n < started);
            CHECK_EQ(s.searching, n + (2 * n < started));
        }
    s.searching = 5;
    volt__idle_begin_search_always(&s);
    CHECK_EQ(s.searching, 6);
    CHECK_EQ(volt__idle_park(&s, 1, 1), 5);
    CHECK_EQ(s.searching, 5);
    CHECK_EQ(volt__idle_park(&s, 2, 0), 5);
    CHECK_EQ(s.searching, 5);
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), -1); // one that searches will see to it
    CHECK(volt__idle_is_parked(&s, 1) && s.searching == 5);
    CHECK_EQ(volt__idle_end_search(&s), 0);
    CHECK_EQ(s.searching, 4);
    volt__idle_unpark_searching(&s, 1); // nobody has claimed it: it counts itself
    CHECK_EQ(s.searching, 5);
    s.searching = 0;
    CHECK_EQ(volt__idle_claim(&s, VOLT__ANY_WORKER), 2);
    volt__idle_unpark_searching(&s, 2); // who claimed it has counted it
    CHECK_EQ(s.searching, 1);
}
// The one exception: another thread, which begins and ends a search all the time.
static int is_search_over;
static void *searching_main(void *arg) {
    volt__idle *s = (volt__idle *)arg;
    while (!READ(is_search_over)) {
        volt__idle_begin_search_always(s);
        volt__fence_sc(&s->searching);
        volt__load_rlx(&s->searching);
        (void)__atomic_fetch_sub(&s->searching, 1, __ATOMIC_ACQ_REL);
    }
    return NULL;
}
TEST(failed_claim_leaves_count_of_searching_unchanged) {
    volt__idle s;
    volt__idle_init(&s, 2);
    (void)volt__idle_park(&s, 1, 0);
    pthread_t t = start_thread(searching_main, &s);
    for (int i = 0; i < 300000; i++) {
        int claimed = volt__idle_claim(&s, VOLT__ANY_WORKER);
        CHECK(claimed == 1 || claimed < 0); // the first does not sleep
        if (claimed < 0) continue;
        (void)volt__idle_park(&s, 1, 1);
    }
    WRITE(is_search_over, 1);
    join_thread(t);
    CHECK_EQ(s.searching, 0);
}
TEST(watchdog_is_claimed_once_until_taken) {
    volt__watchdog watch;
    memset(&watch, 0xa5, sizeof watch);
    CHECK_EQ(volt__watchdog_init(&watch, 750), 0);
    CHECK(watch.fd >= 0 && watch.is_armed == 0 && watch.period == 750000);
    CHECK(fcntl(watch.fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(watch.fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(volt__watchdog_take(&watch), 0);
    CHECK_EQ(volt__watchdog_claim(&watch), 1);
    CHECK_EQ(watch.is_armed, 1);
    CHECK_EQ(volt__watchdog_claim(&watch), 0);
    CHECK_EQ(watch.is_armed, 1);
    CHECK_EQ(volt__watchdog_take(&watch), 1);
    CHECK_EQ(watch.is_armed, 0);
    CHECK_EQ(volt__watchdog_take(&watch), 0);
    watch.period = 3000000001;
    memset(&settime, 0xa5, sizeof settime);
    volt__timer_fd_set(watch.fd, watch.period);
    CHECK(settime.fd == watch.fd && settime.flags == 0);
    CHECK(settime.t.it_value.tv_sec == 3 && settime.t.it_value.tv_nsec == 1);
    CHECK(settime.t.it_interval.tv_sec == 0 && settime.t.it_interval.tv_nsec == 0);
    watch.period = 999999999;
    volt__timer_fd_set(watch.fd, watch.period);
    CHECK(settime.t.it_value.tv_sec == 0 && settime.t.it_value.tv_nsec == 999999999);
    for (int64_t left = -1; left < 3; left++) { // 0 is as soon as may be, and less is never
        volt__timer_fd_set(watch.fd, left);
        CHECK_EQ(settime.t.it_value.tv_sec, 0);
        CHECK_EQ(settime.t.it_value.tv_nsec, left < 0 ? 0 : left == 0 ? 1 : left);
    }
    close(watch.fd);
}

// ---- a worker: time

TEST(ticks_are_rounded_down_for_now_and_up_for_deadlines) {
    begin(1);
    const int64_t tick = VOLT_TICK_NS;
    static const struct {
        int64_t ns;
        uint64_t floor, ceil;
    } rows[] = { { -5, 0, 0 },       { -VOLT_TICK_NS, 0, 0 },  { 0, 0, 0 },
                 { 1, 0, 1 },        { VOLT_TICK_NS - 1, 0, 1 }, { VOLT_TICK_NS, 1, 1 },
                 { VOLT_TICK_NS + 1, 1, 2 }, { 7 * (int64_t)VOLT_TICK_NS, 7, 7 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(volt__tick_floor(rt, rt->epoch + rows[i].ns), rows[i].floor);
        CHECK_EQ(volt__tick_ceil(rt, rt->epoch + rows[i].ns), rows[i].ceil);
    }
    // until the next timer, or until the run gives up
    clock_now = rt->epoch;
    CHECK(volt__time_left(volt__sleep_deadline(w)) == -1);
    task = still_task(w);
    memset(node, 0, sizeof node);
    volt__timer_arm(&w->wheel, node, task, 3);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 3 * tick);
    clock_now += 3 * tick - 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 1);
    clock_now += 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    clock_now += 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    w->drain_deadline = clock_now + 1;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 0);
    clock_now = rt->epoch;
    w->drain_deadline = clock_now + tick;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), tick);
    w->drain_deadline = clock_now + 4 * tick;
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 3 * tick);
    volt__timer_disarm(node, task);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), 4 * tick);
    CHECK(!volt__drain_expired(w));
    w->drain_deadline = clock_now;
    CHECK(volt__drain_expired(w));
    w->drain_deadline = clock_now - 1;
    CHECK(volt__drain_expired(w));
    w->drain_deadline = clock_now + 1;
    CHECK(!volt__drain_expired(w));
    w->drain_deadline = VOLT_NEVER;
    clock_now = VOLT_NEVER;
    CHECK(!volt__drain_expired(w));
    clock_now = rt->epoch;
    // a tick that lies behind the end of time is none
    uint64_t last = (uint64_t)(VOLT_NEVER - rt->epoch) / VOLT_TICK_NS;
    w->wheel.elapsed = last - 2;
    volt__timer_arm(&w->wheel, node, task, last - 1);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), (int64_t)(last - 1) * tick);
    volt__timer_disarm(node, task);
    volt__timer_arm(&w->wheel, node, task, last);
    CHECK_EQ(volt__time_left(volt__sleep_deadline(w)), -1);
    end();
}

// ---- queues of a worker

static uint32_t ring_len(void) { return volt__ring_len(&w->ring); }
static void empty(volt__worker *of) {
    volt__store_rlx(&of->lifo, (volt__task *)NULL);
    while (volt__ring_pop(&of->ring)) {}
    volt__chain c = no_chain();
    while (volt__injector_pop(&rt->injector, 1, UINT32_MAX, &c) > 0) {}
    of->lifo_run = 0;
}
// The second worker sleeps; whether it has been claimed and unparked since.
static void park_v(void) { (void)volt__idle_park(&rt->idle, 1, 0); }
static int was_v_woken(void) {
    uint64_t n;
    if (volt__idle_is_parked(&rt->idle, 1)) return 0;
    CHECK_EQ(rt->idle.searching, 1);
    CHECK_EQ(read(v->reactor.evfd, &n, sizeof n), sizeof n);
    CHECK_EQ(n, 1);
    rt->idle.searching = 0;
    park_v();
    return 1;
}
TEST(push_past_wake_mark_wakes_parked_worker) {
    begin(2);
    park_v();
    volt__wake_worker(rt);
    CHECK(was_v_woken());
    (void)volt__idle_park(&rt->idle, 0, 0);
    volt__wake_worker(rt); // of both the upper one
    CHECK(was_v_woken());
    CHECK_EQ(volt__idle_unpark(&rt->idle, 0), 0);
    volt__chain c = no_chain();
    volt__chain_push(&c, still_task(w));
    volt__inject(rt, &c);
    CHECK(was_v_woken() && rt->injector.len == 1);
    CHECK(volt__current_worker(rt) == NULL);
    VOLT_TLS_SET(w);
    CHECK(volt__current_worker(rt) == w);
    VOLT_TLS_SET(NULL);
    empty(w);
    for (uint32_t mark = 2; mark < 4; mark++) {
        for (uint32_t n = 0; n <= mark + 3 && n < VOLT_RING_CAP; n++) {
            w->wake_at = VOLT_RING_CAP * 2;
            for (uint32_t i = 0; i < n; i++) volt__push_ring(w, still_task(w));
            CHECK(!was_v_woken());
            w->wake_at = mark;
            volt__push_ring(w, still_task(w));
            CHECK_EQ(was_v_woken(), n + 1 == mark || n + 1 == mark + 1);
            CHECK_EQ(volt__backlog(w), n + 1);
            empty(w);
        }
        for (uint32_t n = 1; n <= mark + 1 && n < VOLT_RING_CAP; n++) {
            c = no_chain();
            for (uint32_t i = 0; i < n; i++) volt__chain_push(&c, still_task(w));
            volt__push_batch(w, &c);
            CHECK_EQ(was_v_woken(), n >= mark);
            CHECK(ring_len() == n && !c.head);
            empty(w);
        }
    }
    w->is_solo = 1; // nobody looks
    w->wake_at = 1;
    volt__push_ring(w, still_task(w));
    c = no_chain();
    volt__push_batch(w, &c);
    volt__chain_push(&c, still_task(w));
    volt__push_batch(w, &c);
    CHECK(!was_v_woken() && ring_len() == 2);
    w->is_solo = 0;
    empty(w);
    c = no_chain();
    volt__push_ring(w, still_task(w));
    (void)was_v_woken();
    volt__push_batch(w, &c); // nothing came: nobody is told
    CHECK(!was_v_woken());
    empty(w);
    // full: what there is no room for goes on in order
    while (volt__ring_room(&w->ring) > 1) volt__ring_push(&w->ring, still_task(w));
    volt__task *t[3];
    for (int i = 0; i < 3; i++) volt__chain_push(&c, t[i] = still_task(w));
    volt__push_batch(w, &c);
    CHECK(was_v_woken() && rt->injector.len == 2 && rt->injector.head == t[1]);
    uint64_t before = w->stats.overflows;
    volt__push_ring(w, t[0] = still_task(w));
    CHECK(was_v_woken() && ring_len() == VOLT_RING_CAP / 2);
    CHECK(rt->injector.tail == t[0] && rt->injector.len == 2 + VOLT_RING_CAP / 2 + 1);
    CHECK_EQ(w->stats.overflows - before, 1);
    end();
}
TEST(lifo_slot_runs_before_ring_up_to_its_limit) {
    for (uint32_t n = 1; n <= 2; n++) {
        begin(n);
        w->wake_at = VOLT_RING_CAP * 2;
        volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
        CHECK(!volt__lifo_take(w) && !volt__lifo_is_full(w) && volt__backlog(w) == 0);
        volt__push_lifo(w, a);
        CHECK(w->lifo == a && volt__lifo_is_full(w) && volt__backlog(w) == 1);
        volt__push_lifo(w, b);
        CHECK(w->lifo == b && ring_len() == 1 && volt__backlog(w) == 2);
        CHECK(volt__lifo_take(w) == b && !w->lifo);
        w->lifo_run = VOLT_LIFO_MAX - 1;
        volt__push_lifo(w, b);
        CHECK(w->lifo == b && ring_len() == 1);
        w->lifo_run = VOLT_LIFO_MAX;
        volt__push_lifo(w, c);
        CHECK(w->lifo == b && ring_len() == 2);
        // so many times from the slot, then the ring, then the slot again
        w->lifo_run = VOLT_LIFO_MAX - 1;
        CHECK(volt__next_local(w) == b && w->lifo_run == VOLT_LIFO_MAX);
        w->lifo = b;
        CHECK(volt__next_local(w) == a && w->lifo == b && w->lifo_run == 0);
        CHECK_EQ(w->stats.lifo_polls, VOLT_LIFO_MAX);
        w->lifo = NULL;
        w->lifo_run = 1;
        CHECK(volt__next_local(w) == c && w->stats.lifo_polls == VOLT_LIFO_MAX + 1 && !w->lifo_run);
        w->stats.lifo_polls--;
        CHECK(!volt__next_local(w));
        w->lifo_run = VOLT_LIFO_MAX;
        w->lifo = b;
        CHECK(volt__next_local(w) == b && w->lifo_run == 0); // the ring is empty
        CHECK_EQ(w->stats.lifo_polls, 2 * VOLT_LIFO_MAX);
        volt__chain one = no_chain();
        volt__chain_push(&one, a);
        volt__injector_push(&rt->injector, &one);
        CHECK(volt__next_local(w) == a && w->stats.wakes_remote == 1);
        end();
    }
}
TEST(refill_takes_fair_share_of_injector) {
    begin(2);
    CHECK_EQ(volt__refill(w), 0);
    CHECK(!volt__next_from_refill(w) && !volt__pop_due_source(w));
    volt__task *t[3];
    volt__chain c = no_chain();
    for (int i = 0; i < 3; i++) volt__chain_push(&c, t[i] = still_task(w));
    volt__injector_push(&rt->injector, &c);
    CHECK_EQ(volt__refill(w), 2); // 3 / 2 + 1
    CHECK(w->stats.wakes_remote == 2 && ring_len() == 2);
    CHECK(volt__pop_due_source(w) == t[2] && w->stats.wakes_remote == 3);
    CHECK(rt->injector.len == 0 && !volt__pop_due_source(w) && w->stats.wakes_remote == 3);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1]);
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__injector_push(&rt->injector, &c);
    CHECK(volt__pop_due_source(w) == t[0] && rt->injector.len == 0); // 2 / 2 + 1
    CHECK(volt__pop_ring(w) == t[1] && w->stats.wakes_remote == 5);
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__injector_push(&rt->injector, &c);
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w));
    CHECK_EQ(volt__refill(w), 0);
    CHECK(volt__pop_due_source(w) == t[0] && rt->injector.len == 1); // one: the ring is full
    CHECK(volt__ring_room(&w->ring) == 0);
    end();
}
static void place_at(volt__worker *at, volt__task *t) {
    volt__chain c = no_chain();
    volt__chain_push(&c, t);
    volt__injector_push(at ? &at->inbox : &rt->injector, &c);
}
TEST(due_source_alternates_between_inbox_and_injector) {
    volt__task *placed[4], *injected[4];
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    for (int i = 0; i < 4; i++) {
        place_at(w, placed[i] = still_task(w));
        place_at(NULL, injected[i] = still_task(w));
    }
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w)); // one each
    CHECK(volt__pop_due_source(w) == placed[0] && volt__pop_due_source(w) == injected[0]);
    CHECK(volt__pop_due_source(w) == placed[1] && volt__pop_due_source(w) == injected[1]);
    while (ring_len() > 0) volt__pop_ring(w);
    CHECK(w->stats.inbox_tasks == 2 && w->stats.wakes_remote == 2);
    CHECK_EQ(volt__refill(w), 2); // idle: what was placed here comes first, and all of it
    CHECK(volt__pop_ring(w) == placed[2] && volt__pop_ring(w) == placed[3]);
    CHECK_EQ(volt__refill(w), 2); // 2 / 2 + 1
    CHECK(volt__pop_ring(w) == injected[2] && volt__pop_ring(w) == injected[3]);
    CHECK(w->stats.inbox_tasks == 4 && w->stats.wakes_remote == 4);
    for (int i = 0; i < 3; i++) { // where one is empty the other is asked
        place_at(w, placed[i]);
        CHECK(volt__pop_due_source(w) == placed[i]);
        place_at(NULL, injected[i]);
        CHECK(volt__pop_due_source(w) == injected[i]);
        place_at(NULL, injected[i]);
        CHECK(volt__pop_due_source(w) == injected[i]);
    }
    CHECK(!volt__pop_due_source(w) && !volt__refill(w));
    end();
}
// A full ring, and one more of those that a poll spawns: half of it, and that one.
enum { SPILT = VOLT_RING_CAP / 2 + 1 };
static void fill_ring(void) {
    while (volt__ring_room(&w->ring) > 0) volt__ring_push(&w->ring, still_task(w));
}
static volt__task *spill_half(void) {
    volt__task *t = still_task(w);
    fill_ring();
    volt__push_tail(w, t, 1);
    return t;
}
// A reader takes two words while the owner moves both: the second may be ahead of the first.
TEST(claimed_tasks_count_as_queued_and_torn_count_as_none) {
    begin(2);
    uint32_t first = w->ring.next;
    CHECK_EQ(w->ring.claimed, first);
    w->ring.claimed = first + VOLT_CLAIM_MAX;
    CHECK_EQ(volt__queued_at(w), VOLT_CLAIM_MAX);
    w->ring.next = w->ring.claimed + 1;
    CHECK_EQ(volt__queued_at(w), 0);
    w->ring.next = w->ring.claimed = first;
    end();
}
TEST(spawns_overflow_locally_and_wakes_to_injector) {
    begin(2);
    w->wake_at = UINT32_MAX;
    park_v();
    w->inject_batch = 99;
    volt__task *t = spill_half();
    CHECK(w->overflow.len == SPILT && rt->injector.len == 0);
    CHECK(volt__overflow_batch(&w->overflow, 0)->tail == t);
    CHECK(was_v_woken() && ring_len() == VOLT_RING_CAP / 2 && volt__has_stealable_work(rt));
    CHECK(w->stats.overflows == 1 && w->inject_batch == VOLT_INJECT_BATCH_MIN);
    CHECK_EQ(volt__queued_at(w), VOLT_RING_CAP + 1);
    // what a spawn displaces was queued by the same poll; what a wake-up displaces goes to all
    volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
    volt__push_runnext(w, a, 1);
    fill_ring();
    volt__push_runnext(w, b, 1);
    CHECK(w->overflow.n == 2 && volt__overflow_batch(&w->overflow, 1)->tail == a);
    fill_ring();
    volt__push_lifo(w, c);
    CHECK(w->overflow.n == 2 && rt->injector.len == SPILT && rt->injector.tail == b);
    // past the slot: what comes from one poll after the first
    w->lifo_run = VOLT_LIFO_MAX;
    w->lifo_bypass_at = w->countdown + 1;
    for (int i = 0; i < 3; i++) {
        fill_ring();
        volt__push_runnext(w, still_task(w), i < 2);
        CHECK_EQ(w->overflow.len, (i == 0 ? 2 : 3) * SPILT);
        CHECK_EQ(rt->injector.len, (i == 2 ? 3 : 2) * SPILT);
    }
    fill_ring();
    volt__push_ring(w, still_task(w)); // it yields
    CHECK(w->overflow.len == 3 * SPILT && rt->injector.len == 4 * SPILT);
    end();
}
TEST(owner_takes_newest_overflow_and_thief_oldest) {
    begin(2);
    spill_half();
    volt__task *oldest = volt__overflow_batch(&w->overflow, 0)->head;
    spill_half();
    volt__task *newest = volt__overflow_batch(&w->overflow, 1)->head;
    // behind a ring without room there is one at least: see volt__next_from_overflow
    fill_ring();
    volt__task *second = newest->next;
    CHECK(volt__next_from_refill(w) == newest && w->overflow.len == 2 * SPILT - 1);
    while (ring_len() > 0) volt__pop_ring(w);
    // idle: the newest come first, in their order
    uint32_t share = volt__min32(VOLT_INJECT_BATCH_MIN + 1, volt__min32(SPILT - 1, VOLT_RING_CAP));
    CHECK(volt__next_from_refill(w) == second && ring_len() == share - 1);
    CHECK(w->overflow.len == 2 * SPILT - 1 - share && w->inject_batch == VOLT_INJECT_BATCH_MIN + 2);
    share = volt__min32(SPILT, VOLT_INJECT_BATCH);
    CHECK_EQ(volt__steal(v, w), share); // others begin with the oldest
    CHECK(volt__pop_ring(v) == oldest);
    end();
}
TEST(due_source_takes_inbox_injector_and_overflow_in_turn) {
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    volt__task *placed[2], *injected[2], *spilt[3];
    for (int i = 0; i < 2; i++) {
        place_at(w, placed[i] = still_task(w));
        place_at(NULL, injected[i] = still_task(w));
    }
    spill_half();
    fill_ring(); // one each
    spilt[0] = volt__overflow_batch(&w->overflow, 0)->head;
    for (int i = 0; i < 2; i++) spilt[i + 1] = spilt[i]->next;
    CHECK(volt__pop_due_source(w) == placed[0] && volt__pop_due_source(w) == injected[0]);
    CHECK(volt__pop_due_source(w) == spilt[0] && volt__pop_due_source(w) == placed[1]);
    CHECK(volt__pop_due_source(w) == injected[1] && volt__pop_due_source(w) == spilt[1]);
    CHECK(volt__has_more_queued(w) && volt__pop_due_source(w) == spilt[2]); // nothing else is there
    end();
}
TEST(aged_overflow_moves_to_injector_oldest_first) {
    begin(1);
    volt__pop_due_source(w);
    spill_half();
    volt__task *oldest = volt__overflow_batch(&w->overflow, 0)->head;
    spill_half();
    fill_ring(); // one at a time
    uint64_t since = w->overflow_ms;
    w->ms = since + VOLT_OVERFLOW_MS - 1;
    volt__overflow_age(w);
    CHECK(w->overflow.len == 2 * SPILT && rt->injector.len == 0);
    w->ms++;
    uint32_t n = volt__min32(SPILT, VOLT_INJECT_BATCH);
    volt__overflow_age(w);
    CHECK(w->overflow.len == 2 * SPILT - n && rt->injector.len == n && rt->injector.head == oldest);
    volt__overflow_age(w);
    CHECK(w->overflow_ms == since + VOLT_OVERFLOW_MS && rt->injector.len == n);
    // it counts from when it was last seen empty
    volt__chain c = no_chain();
    volt__overflow_pop_all(&w->overflow, &c);
    w->ms += 3 * VOLT_OVERFLOW_MS;
    volt__overflow_age(w);
    spill_half();
    volt__overflow_age(w);
    CHECK(w->overflow.len == SPILT && rt->injector.len == n);
    end();
}
TEST(rescue_takes_overflow_queue) {
    begin(2);
    spill_half();
    spill_half();
    volt__worker *stuck = w;
    v->is_searching = 1;
    rt->idle.searching = 1;
    volt__rescue(v, stuck);
    CHECK(stuck->overflow.len == 0 && v->stats.rescued >= 2 * SPILT);
    CHECK(volt__ring_len(&v->ring) + rt->injector.len == v->stats.rescued);
    end();
}
TEST(evict_moves_overflow_queue_and_ring_to_injector) {
    begin(2);
    spill_half();
    volt__evict_local_tasks(w);
    CHECK(w->overflow.len == 0 && ring_len() == 0 && rt->injector.len == VOLT_RING_CAP + 1);
    end();
}
TEST(thief_takes_half_of_inbox_when_ring_is_empty) {
    volt__task *t[5];
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt));
    for (int i = 0; i < 3; i++) place_at(v, t[i] = still_task(w));
    CHECK(volt__has_stealable_work(rt));
    CHECK_EQ(volt__steal(w, v), 2); // 3 / 2 + 1
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1]);
    for (int i = 3; i < 5; i++) volt__ring_push(&v->ring, t[i] = still_task(w));
    CHECK_EQ(volt__steal(w, v), 1); // the ring first
    CHECK(volt__pop_ring(w) == t[3] && volt__ring_pop(&v->ring) == t[4]);
    rt->cfg.placement = VOLT_PLACE_SHARED; // nobody looks
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt) && v->inbox.len == 1);
    end();
}
TEST(overflow_of_worker_that_refuses_steals_wakes_no_thief) {
    begin(2);
    park_v();
    w->wake_at = VOLT__NO_STEAL;
    w->ring.steal_floor = VOLT__NO_STEAL;
    spill_half();
    CHECK(w->overflow.len == SPILT && !was_v_woken() && !volt__has_stealable_work(rt));
    CHECK(!volt__steal(v, w) && w->overflow.len == SPILT && ring_len() == VOLT_RING_CAP / 2);
    fill_ring();
    volt__push_tail(w, still_task(w), 0); // what a wake-up displaces goes to all
    CHECK(was_v_woken() && rt->injector.len == SPILT && w->overflow.len == SPILT);
    w->polls_since = 0;
    volt__maintain(w);
    CHECK(!was_v_woken());
    w->ring.steal_floor = 0;
    volt__maintain(w);
    CHECK(was_v_woken() && volt__steal(v, w) > 0 && w->overflow.len < SPILT);
    w->ring.steal_floor = VOLT__NO_STEAL;
    w->event_polls = w->event_polls_seen; // it is stuck
    volt__watchdog_scan(v);
    CHECK(w->overflow.len == 0);
    end();
}
TEST(ring_is_not_stolen_from_below_its_steal_floor) {
    begin(2);
    v->ring.steal_floor = 2;
    for (int i = 0; i < 2; i++) volt__ring_push(&v->ring, still_task(w));
    CHECK(!volt__steal(w, v) && !volt__has_stealable_work(rt) && volt__ring_len(&v->ring) == 2);
    volt__ring_push(&v->ring, still_task(w));
    CHECK(volt__has_stealable_work(rt));
    CHECK_EQ(volt__steal(w, v), 2);
    CHECK(!volt__steal(w, v) && volt__ring_len(&v->ring) == 1);
    v->event_polls = v->event_polls_seen; // it is stuck
    volt__watchdog_scan(w);
    CHECK_EQ(w->stats.rescued, 1);
    CHECK_EQ(volt__ring_len(&v->ring), 0);
    end();
}
TEST(load_of_worker_counts_its_queued_tasks) {
    begin(2);
    CHECK_EQ(volt__worker_load(rt, 1), 1); // it is awake
    park_v();
    CHECK_EQ(volt__worker_load(rt, 1), 0);
    for (uint32_t n = 1; n < 4; n++) {
        place_at(v, still_task(w));
        volt__ring_push(&v->ring, still_task(w));
        CHECK_EQ(volt__worker_load(rt, 1), 2 * n);
    }
    v->lifo = still_task(w);
    CHECK_EQ(volt__worker_load(rt, 1), 7);
    CHECK_EQ(volt__worker_load(rt, 0), 1);
    (void)volt__ring_steal(&v->ring, &w->ring);
    CHECK_EQ(volt__worker_load(rt, 1), 5);
    CHECK_EQ(volt__worker_load(rt, 0), 3);
    v->is_blocked = 1;
    CHECK_EQ(volt__worker_load(rt, 1), UINT32_MAX);
    end();
}
TEST(woken_task_goes_to_waking_worker_or_injector) {
    begin(2);
    w->wake_at = VOLT_RING_CAP * 2;
    volt__task *t[4];
    volt_rt *mine = rt;
    volt_rt *other = still_rt(1);
    for (int i = 0; i < 4; i++) t[i] = still_task(i == 2 ? other->workers[0] : w);
    VOLT_TLS_SET(w);
    volt__schedule(t[0]);
    CHECK(w->lifo == t[0] && w->stats.wakes_local == 1 && rt->injector.len == 0);
    volt__schedule(t[2]);
    CHECK(other->injector.head == t[2] && w->stats.wakes_local == 1 && other->pins == 0);
    volt__chain c = no_chain();
    (void)volt__lifo_take(w);
    volt__chain_push(&c, t[0]);
    volt__schedule_chain(&c); // one alone is next in turn
    CHECK(w->lifo == t[0] && !c.head && ring_len() == 0 && w->stats.wakes_local == 2);
    (void)volt__lifo_take(w);
    (void)volt__injector_pop(&other->injector, 1, 9, &c);
    c = no_chain();
    for (int i = 0; i < 4; i++) volt__chain_push(&c, t[i]);
    volt__schedule_chain(&c); // two here, one there, one here
    CHECK(!c.head && ring_len() == 3 && !w->lifo && w->stats.wakes_local == 5);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1] && volt__pop_ring(w) == t[3]);
    CHECK(other->injector.len == 1 && other->injector.head == t[2] && rt->injector.len == 0);
    VOLT_TLS_SET(NULL); // from outside
    c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, t[i]);
    volt__schedule_chain(&c);
    CHECK(rt->injector.len == 2 && ring_len() == 0 && rt->pins == 0);
    volt__schedule(t[3]);
    CHECK(rt->injector.len == 3 && rt->injector.tail == t[3] && rt->pins == 0);
    CHECK_EQ(w->stats.wakes_local, 5);
    volt__schedule_chain(&c); // nothing
    volt__rt_free(other);
    rt = mine;
    end();
}
TEST(last_unpin_wakes_waiting_teardown) {
    begin(1);
    volt__rt_pin(rt);
    CHECK_EQ(rt->pins, 2);
    volt__rt_pin(rt);
    volt__rt_unpin(rt);
    CHECK_EQ(rt->pins, 2);
    rt->pins |= 1; // the teardown waits
    volt__rt_pin(rt);
    futex.n_wakes = 0;
    volt__rt_unpin(rt);
    CHECK_EQ(futex.n_wakes, 0);
    volt__rt_unpin(rt);
    CHECK(futex.n_wakes == 1 && futex.n == 1 && futex.word == &rt->pins);
    CHECK_EQ(rt->pins, 1);
    rt->pins = 2;
    volt__rt_unpin(rt);
    CHECK_EQ(futex.n_wakes, 1);
    end();
}
TEST(unpark_all_unparks_every_worker) {
    uint64_t n;
    begin(2);
    volt__unpark_all(rt);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(read(rt->workers[i]->reactor.evfd, &n, sizeof n), sizeof n);
        CHECK_EQ(n, 1);
    }
    end();
}

// ---- the end of a task

static volt__parker parker;
static void set_parker(void) { parker.is_set = 1; }
TEST(parker_waits_until_it_is_set) {
    futex.rc = 0;
    volt__parker_set(&parker);
    CHECK(parker.is_set == 1 && futex.n_wakes == 1 && futex.word == &parker.is_set);
    CHECK_EQ(futex.n, 1);
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 0);
    parker.is_set = 0;
    futex.rc = -ETIMEDOUT;
    CHECK_EQ(volt__parker_wait(&parker, 5), -ETIMEDOUT);
    CHECK(futex.n_waits == 1 && futex.expect == 0 && futex.deadline == 5);
    CHECK(futex.word == &parker.is_set);
    futex.step = set_parker; // late, and set all the same
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 2);
    parker.is_set = 0;
    futex.rc = -EINTR;
    CHECK_EQ(volt__parker_wait(&parker, 5), 0);
    CHECK_EQ(futex.n_waits, 3);
}
TEST(join_word_wakes_the_registered_joiner) {
    begin(1);
    volt__task *t = still_task(w), *joiner = still_task(w);
    t->join = NULL;
    CHECK_EQ(volt__join_register(t, joiner), 1);
    CHECK(t->join == joiner && !volt__join_is_done(t));
    CHECK_EQ(volt__join_unregister(t, joiner), 1);
    CHECK(!t->join && !volt__join_unregister(t, joiner));
    volt__join_complete(t); // nobody waits
    CHECK(volt__join_is_done(t) && t->join == VOLT__JOIN_DONE);
    CHECK_EQ(volt__join_register(t, joiner), 0);
    CHECK(t->join == VOLT__JOIN_DONE);
    t->join = NULL;
    parker.is_set = 0;
    CHECK_EQ(volt__join_register(t, (void *)((uintptr_t)&parker | VOLT__JOIN_PARKER)), 1);
    volt__join_complete(t);
    CHECK(parker.is_set == 1 && futex.n_wakes == 1 && t->join == VOLT__JOIN_DONE);
    t->join = NULL;
    joiner->word = 2 * VOLT__REF; // it sleeps, and has lent a reference
    CHECK_EQ(volt__join_register(t, joiner), 1);
    volt__join_complete(t);
    CHECK_EQ(joiner->word, VOLT__REF | VOLT__NOTIFIED);
    CHECK(rt->injector.head == joiner && rt->injector.len == 1 && rt->pins == 0);
    t->join = NULL;
    joiner->word = 2 * VOLT__REF | VOLT__NOTIFIED; // somebody else has woken it
    CHECK_EQ(volt__join_register(t, joiner), 1);
    volt__join_complete(t);
    CHECK(joiner->word == (VOLT__REF | VOLT__NOTIFIED) && rt->injector.len == 1);
    end();
}
static volt__task *freed_by(volt__worker *worker, volt__task *t) {
    volt__task_free_here(worker, t);
    return t;
}
TEST(remote_frees_go_back_in_batches) {
    begin(3);
    volt__worker *u = rt->workers[2];
    volt__task *a = freed_by(w, still_task(v)), *b = freed_by(w, still_task(v));
    CHECK(!v->heap.remote && w->remote_batch.n == 2);
    volt__task *c = freed_by(w, still_task(u)); // of another heap: those of the first go
    CHECK(v->heap.remote == b && b->next == a && !a->next);
    CHECK(!u->heap.remote && w->remote_batch.n == 1);
    for (uint32_t i = 2; i < VOLT_REMOTE_BATCH; i++) freed_by(w, still_task(u));
    CHECK(!u->heap.remote && w->remote_batch.n == VOLT_REMOTE_BATCH - 1);
    freed_by(w, still_task(u)); // as many as there may be
    CHECK_EQ(w->remote_batch.n, 0);
    uint32_t n = 1;
    for (volt__task *t = u->heap.remote; t != c; t = t->next) n++;
    CHECK(n == VOLT_REMOTE_BATCH && !c->next);
    volt__task *large = volt__heap_alloc(&v->heap, VOLT_SLAB_SIZE); // alone in its slab
    freed_by(w, large);
    CHECK(v->heap.remote == large); // at once
    freed_by(w, still_task(v));
    volt__housekeep(w);
    CHECK(w->remote_batch.n == 0 && v->heap.remote != large);
    end();
}
TEST(freed_slot_returns_to_heap_of_its_slab) {
    begin(2);
    volt__task *mine = still_task(w), *other = still_task(v), *dropped = still_task(v);
    volt__task_free_here(w, mine);
    CHECK(volt__slab_of(mine)->free == mine && !w->heap.remote);
    volt__task_free_here(w, other);
    CHECK(!v->heap.remote && w->remote_batch.n == 1); // later, with others
    volt__remote_batch_flush(&w->remote_batch);
    CHECK(v->heap.remote == other && !other->next && !w->heap.remote && w->remote_batch.n == 0);
    volt__remote_batch_flush(&w->remote_batch);
    CHECK(v->heap.remote == other);
    mine = still_task(w);
    volt__task_free_here(NULL, mine);
    CHECK(w->heap.remote == mine);
    VOLT_TLS_SET(v);
    dropped->word = 2 * VOLT__REF;
    volt__task_drop(dropped);
    CHECK(dropped->word == VOLT__REF && volt__slab_of(dropped)->free != dropped);
    volt__task_drop(dropped);
    CHECK(dropped->word < VOLT__REF && volt__slab_of(dropped)->free == dropped);
    VOLT_TLS_SET(NULL);
    volt__heap_drain(&v->heap);
    dropped = still_task(v);
    dropped->word = VOLT__REF;
    volt__task_drop(dropped);
    CHECK(v->heap.remote == dropped && rt->pins == 0);
    end();
}

// ---- the end of a runtime

static void check_poked(int was_unparked) {
    for (uint32_t i = 0; i < rt->started; i++) {
        uint64_t n = 0;
        (void)!read(rt->workers[i]->reactor.evfd, &n, sizeof n);
        CHECK_EQ(n != 0, was_unparked);
    }
}
TEST(last_shutdown_ack_wakes_every_task) {
    begin(2);
    volt__task *t[4];
    for (int i = 0; i < 4; i++) t[i] = still_task(i % 2 ? v : w);
    t[0]->word = VOLT__REF;                  // asleep
    t[1]->word = VOLT__REF | VOLT__RUNNING;  // will see it
    t[2]->word = 2 * VOLT__REF | VOLT__NOTIFIED;
    t[3]->word = VOLT__COMPLETE;             // free
    volt__shutdown_ack(rt, 2);
    CHECK_EQ(rt->acks, 2);
    volt__shutdown_ack(rt, UINT32_MAX);
    CHECK(rt->acks == 1 && rt->injector.len == 0);
    check_poked(0);
    volt__shutdown_ack(rt, UINT32_MAX);
    CHECK(rt->acks == 0 && rt->injector.len == 1 && rt->injector.head == t[0]);
    check_poked(1);
    CHECK_EQ(t[0]->word, VOLT__REF | VOLT__NOTIFIED);
    CHECK_EQ(t[1]->word, VOLT__REF | VOLT__NOTIFIED | VOLT__RUNNING);
    CHECK_EQ(t[2]->word, 2 * VOLT__REF | VOLT__NOTIFIED);
    CHECK_EQ(t[3]->word, VOLT__COMPLETE);
    CHECK_EQ(rt->slabs.lock, 0);
    end();
}
TEST(shutdown_begins_once) {
    for (uint32_t is_starting = 0; is_starting < 2; is_starting++) {
        begin(2);
        rt->is_starting = is_starting;
        for (int i = 0; i < 2; i++) {
            volt__shutdown_begin(rt);
            CHECK(rt->injector.closed == 1 && rt->is_closed == 1 && rt->starts_closed == 1);
            CHECK(rt->acks == 2 + is_starting && rt->injector.lock == 0 && rt->start_lock == 0);
            check_poked(!i);
        }
        rt->is_starting = 0;
        end();
    }
}
TEST(worker_acknowledges_shutdown_once) {
    for (int i = 0; i < 4; i++) {
        begin(2);
        rt->acks = 2;
        rt->cfg.drain_timeout = i & 1 ? 700 : 0;
        w->has_thread = i & 2 ? 1 : 0;
        volt__check_shutdown(w);
        CHECK(!w->is_closing && rt->acks == 2);
        rt->is_closed = 1;
        for (int k = 0; k < 2; k++) {
            volt__check_shutdown(w);
            CHECK(w->is_closing == 1 && rt->acks == 1);
            CHECK(w->drain_deadline == (i == 1 ? clock_now + 700 : VOLT_NEVER));
        }
        end();
    }
    begin(1);
    rt->acks = rt->is_closed = 1;
    rt->cfg.drain_timeout = 1;
    w->has_thread = 0;
    volt__check_shutdown(w);
    CHECK_EQ(w->drain_deadline, clock_now + 1);
    end();
}
TEST(runtime_stops_when_no_task_is_alive) {
    begin(2);
    rt->injector.spawned = 9;
    rt->n_destroyed_outside = 2;
    w->spawned = 4;
    w->completed = 5;
    v->spawned = 1;
    v->completed = 6;
    CHECK_EQ(volt__count_alive(rt), 1);
    rt->acks = 1;
    futex.n_wakes = 0;
    for (int i = 0; i < 3; i++) { // one alive, one to acknowledge, neither
        volt__stop_if_done(rt);
        CHECK(!volt__is_stopped(rt) && futex.n_wakes == 0);
        if (i == 0) v->completed = 7;
        if (i == 1) v->completed = 6, rt->acks = 0;
    }
    check_poked(0);
    v->completed = 7;
    volt__stop_if_done(rt);
    CHECK(volt__is_stopped(rt) && rt->is_stopped == 1 && futex.n_wakes == 1);
    CHECK(futex.word == &rt->is_stopped && futex.n == INT_MAX);
    check_poked(1);
    volt__stop_if_done(rt);
    CHECK_EQ(futex.n_wakes, 1);
    check_poked(0);
    end();
}

// ---- polls

static volt_poll next_poll;
static void *polled_state;
static volt__worker *polled_by;
static uint8_t polled_abort, polled_shield;
static volt_poll answering_run(volt_cx *cx, void *state) {
    polled_state = state;
    polled_by = VOLT_TLS_GET();
    polled_abort = cx->cancel_level_;
    polled_shield = cx->shield_depth_;
    CHECK(!cx->frame_ && cx->wait_ == 0 && cx->budget_ == rt->cfg.budget);
    return next_poll;
}
static volt__task *answering_task(uint8_t flags) {
    volt__task *t = still_task(w);
    t->u.fn = answering_run;
    t->flags = flags;
    w->needs_watchdog = 0;
    return t;
}
TEST(poll_gets_fresh_context_and_settles_its_task) {
    static volt__task *t; // static: it keeps its value over the longjmp
    begin(2);
    t = answering_task(0);
    next_poll = volt_pending();
    w->cx.frame_ = (volt__node *)(void *)t; // of the poll before
    w->cx.wait_ = 99;
    w->cx.cancel_level_ = w->cx.shield_depth_ = 3;
    w->ms = 1234;
    volt__poll_task(w, t); // waits for nothing, which is told
    CHECK(polled_state == volt__task_state(t) && polled_abort == 0 && polled_shield == 0);
    CHECK_EQ(test_log.n[VOLT_LOG_NEVER_WAKES], VOLT_DEBUG);
    CHECK(t->word == VOLT__REF && t->wait == 0 && t->wait_ms == 1234 && ring_len() == 0);
    CHECK(t->wait_site == t->spawn_site);
    t->word |= VOLT__NOTIFIED;
    next_poll = volt_ready(5);
    volt__poll_task(w, t);
    CHECK(w->completed == 1 && t->word == VOLT__COMPLETE && volt__slab_of(t)->free == t);
    CHECK_EQ(rt->is_closed, 0);

    t = answering_task(VOLT__GAVE_WAKER);
    t->shield_depth = 2;
    t->join = NULL;
    rt->root_result = 42;
    t->word |= VOLT__CANCELLED;
    next_poll = volt_pending();
    volt__poll_task(w, t);
    CHECK(polled_abort == 1 && polled_shield == 2 && t->word == (VOLT__REF | VOLT__CANCELLED));
    // a waker is about
    CHECK(t->shield_depth == 2 && test_log.n[VOLT_LOG_NEVER_WAKES] == VOLT_DEBUG);
    t->word |= VOLT__NOTIFIED;
    t->shield_depth = 0;
    t->n_armed = 1;
    next_poll = volt_ready(5);
    is_panic_expected = 1;
    if (!setjmp(panic_exit)) volt__poll_task(w, t);
    CHECK(is_panic_expected == 2); // it did not come back
    is_panic_expected = 0;
    CHECK(strstr(panic_text, "still pending"));
    t->n_armed = 0;
    t->u.fn = answering_run;
    t->word = VOLT__REF | VOLT__NOTIFIED;

    w->is_closing = 1;
    volt__poll_task(w, t);
    CHECK(polled_abort == 1 && (t->flags & VOLT__IS_SHARED) && w->completed == 2);
    CHECK(rt->root_result == 42 && !t->join && !rt->is_closed); // of no root, nobody's to join
    w->is_closing = 0;

    t = answering_task(VOLT__HAS_HANDLE | VOLT__IS_ROOT);
    t->join = NULL;
    t->word = 2 * VOLT__REF | VOLT__NOTIFIED;
    next_poll = volt_ready(-7);
    volt__poll_task(w, t);
    CHECK(t->u.result == -7 && rt->root_result == -7 && volt__join_is_done(t));
    CHECK(t->word == (VOLT__REF | VOLT__COMPLETE) && w->completed == 3);
    CHECK(rt->is_closed == 1 && volt__slab_of(t)->free != t);
    volt__task *external = answering_task(VOLT__EXTERNAL);
    static still_state outside;
    *(void **)volt__task_state(external) = &outside;
    volt__poll_task(w, external);
    CHECK(polled_state == &outside && w->completed == 4);
    end();
}
TEST(yielded_or_woken_task_is_queued_in_ring) {
    begin(2);
    volt__task *t = answering_task(0);
    for (uint8_t shield = 0; shield < 2; shield++) {
        t->word = VOLT__REF | VOLT__RUNNING;
        w->cx.frame_ = NULL;
        w->cx.wait_ = VOLT__REQUEUE;
        w->cx.shield_depth_ = shield;
        volt__poll_pending(w, t);
        CHECK(t->word == (VOLT__REF | VOLT__NOTIFIED) && t->shield_depth == shield);
        CHECK(volt__pop_ring(w) == t);
    }
    volt__node frame;
    w->cx.frame_ = &frame;
    w->cx.site_ = "here";
    w->cx.wait_ = 77;
    w->cx.shield_depth_ = 4;
    t->word = VOLT__REF | VOLT__RUNNING | VOLT__NOTIFIED; // was woken meanwhile
    volt__poll_pending(w, t);
    CHECK(t->wait_site && strcmp(t->wait_site, "here") == 0 && t->wait == 77 &&
          t->shield_depth == 4);
    CHECK(volt__pop_ring(w) == t && t->word == (VOLT__REF | VOLT__NOTIFIED));
    CHECK_EQ(test_log.n[VOLT_LOG_NEVER_WAKES], 0);
    w->cx.wait_ = 0; // for nothing, but it has been woken: or it has an armed node
    t->word = VOLT__REF | VOLT__RUNNING | VOLT__NOTIFIED;
    volt__poll_pending(w, t);
    (void)volt__pop_ring(w);
    t->word = VOLT__REF | VOLT__RUNNING;
    t->n_armed = 1;
    volt__poll_pending(w, t);
    CHECK(ring_len() == 0 && test_log.n[VOLT_LOG_NEVER_WAKES] == 0);
    t->n_armed = 0;
    end();
}
TEST(child_that_ends_leaves_its_group) {
    begin(1);
    for (int collects = 0; collects < 2; collects++)
        for (int order = 0; order < 6; order++) { // of three
            static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                              { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
            volt_group g;
            volt__task *t[3], *waits = still_task(w);
            memset(&g, 0, sizeof g);
            memset(node, 0, sizeof node);
            waits->word = VOLT__REF;
            g.n_live_ = 3;
            g.collects_ = (uint32_t)collects;
            for (int i = 0; i < 3; i++) {
                t[i] = volt__task_alloc(rt, w, sizeof(still_state), sizeof(volt__group_link));
                memset(volt__task_group_link(t[i]), 0, sizeof(volt__group_link));
            }
            g.live_ = t[0];
            for (int i = 0; i < 3; i++) {
                volt__group_link *x = volt__task_group_link(t[i]);
                x->group = &g;
                x->g_next = i < 2 ? t[i + 1] : NULL;
                x->g_prev = i > 0 ? t[i - 1] : NULL;
            }
            volt__node_bind(node, waits, &g);
            volt__list_push(&g.waiters_, node);
            for (int k = 0; k < 3; k++) {
                int at = orders[order][k];
                volt__group_child_ended(t[at], k == 0 ? 5 : -k);
                CHECK(g.n_live_ == (uint32_t)(2 - k) && g.lock_ == 0);
                CHECK_EQ(g.error_, k == 0 ? 0 : -1); // the first one
                int is_told = collects || k == 2, n = 0;
                CHECK_EQ(volt__node_state(node), is_told ? VOLT__FIRED : VOLT__LINKED);
                CHECK_EQ(rt->injector.len, is_told);
                const volt__task *before = NULL;
                for (volt__task *m = g.live_; m; before = m, m = volt__task_group_link(m)->g_next,
                     n++)
                    CHECK(volt__task_group_link(m)->g_prev == before && m != t[at]);
                CHECK_EQ(n, 2 - k);
                if (!collects) continue;
                CHECK(g.done_ == t[orders[order][0]] && g.done_last_ == t[at]);
                CHECK(!volt__task_group_link(t[at])->g_next);
                if (k) CHECK(volt__task_group_link(t[orders[order][k - 1]])->g_next == t[at]);
            }
            if (!collects) CHECK(!g.done_ && !g.done_last_);
            volt__chain c = no_chain();
            (void)volt__injector_pop(&rt->injector, 1, 9, &c);
            CHECK(c.head == waits && c.len == 1);
            volt__node_unbind(node, waits);
        }
    end();
}

// ---- maintenance

TEST(countdown_accounts_for_every_poll) {
    begin(1);
    static const struct {
        uint32_t inject, event, n, inject_then, event_then, due;
    } rows[] = { { 10, 20, 3, 7, 17, 7 }, { 10, 4, 4, 6, 0, 1 }, { 3, 20, 3, 0, 17, 1 },
                 { 2, 9, 5, 0, 4, 1 },    { 9, 2, 5, 4, 0, 1 },  { 1, 1, 0, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t before = w->stats.polls;
        w->inject_due = rows[i].inject;
        w->event_due = rows[i].event;
        w->countdown_from = 50;
        w->countdown = 50 - rows[i].n;
        w->polls_since = 7;
        volt__countdown_settle(w);
        CHECK(w->countdown_from == w->countdown && w->polls_since == 7 + rows[i].n);
        CHECK_EQ(w->stats.polls - before, rows[i].n);
        CHECK(w->inject_due == rows[i].inject_then && w->event_due == rows[i].event_then);
        volt__countdown_settle(w); // nothing since
        CHECK_EQ(w->stats.polls - before, rows[i].n);
        volt__countdown_start(w);
        CHECK(w->countdown == rows[i].due && w->countdown_from == rows[i].due);
    }
    w->spawned = 8;
    w->completed = 6;
    w->stats.spawned = 5;
    w->stats.completed = 4;
    w->stats.searches = 42;
    w->countdown_from = 9;
    w->countdown = 2;
    w->stats.polls = 100;
    volt__publish_stats(w);
    CHECK(w->published.spawned == 8 && w->published.completed == 6 && w->stats_lock == 0);
    CHECK(w->published.searches == 42 && w->published.polls == 107);
    end();
}
TEST(housekeeping_trims_heaps_once_a_second) {
    for (uint32_t n = 1; n <= 3; n++)
        for (uint32_t i = 0; i < n; i++)
            for (int is_late = 0; is_late < 2; is_late++) {
                begin(n);
                volt__worker *x = rt->workers[i];
                uint32_t cls = volt__class_of(200);
                for (int k = 0; k < VOLT__OUTSIDE_HEAPS; k++)
                    rt->outside_heaps[k].cls[cls].n_used_max = 1;
                volt__task *t = still_task(x);
                volt__heap_free_remote(t);
                x->heap.cls[cls].n_used_max = 9;
                x->trim_ms = 70;
                x->ms = is_late ? 70 : 69;
                x->housekeep_due = 5;
                x->stats.watchdog_scans = 4;
                volt__housekeep(x);
                CHECK(x->housekeep_due == 16 && !x->heap.remote &&
                      x->published.watchdog_scans == 4);
                CHECK_EQ(x->trim_ms, is_late ? 1070 : 70);
                CHECK_EQ(x->heap.cls[cls].n_used_max == 9, !is_late);
                for (uint32_t k = 0; k < VOLT__OUTSIDE_HEAPS; k++)
                    CHECK_EQ(rt->outside_heaps[k].cls[cls].n_used_max, !is_late || k % n != i);
                end();
            }
}
static void claim_w(void) { CHECK_EQ(volt__idle_claim(&rt->idle, VOLT__ANY_WORKER), 0); }
TEST(event_poll_handles_events_timers_and_unparks) {
    begin_fd();
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    w->avg_ns = 1000;
    w->polls_since = w->countdown_from = w->countdown = 0;
    w->event_every = 30;
    w->inject_due = 20;
    w->last_event_poll = clock_now;
    w->countdown_from = 12;
    w->countdown = 2;
    clock_now = rt->epoch + 9 * (int64_t)VOLT_TICK_NS + 5;
    w->last_event_poll = clock_now - 20000; // for 10 polls
    volt__timer_arm(&w->wheel, &node[0], task, 4);
    volt__timer_arm(&w->wheel, &node[1], task, 10);
    e->mode = VOLT__MODE_EDGE;
    polls.n = 1;
    polls.ev[0].data.u64 = (uint64_t)5 << 32 | (uint32_t)fd[0];
    polls.ev[0].events = EPOLLIN;
    uint32_t room = volt__ring_room(&w->ring);
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK_EQ(polls.max, room < VOLT_EVENTS ? room : VOLT_EVENTS);
    CHECK(polls.timeout == 0 && polls.ep == w->reactor.epfd);
    CHECK(w->stats.polls == 10 && w->polls_since == 0 && w->last_event_poll == clock_now &&
          w->avg_ns == 1652);
    CHECK(w->ms == 9 * (uint64_t)VOLT_TICK_NS / 1000000 && w->wheel.elapsed == 9);
    CHECK(w->stats.timers_fired == 1);
    CHECK(w->stats.events == 1 && w->stats.event_polls == 1 && w->event_polls == 1);
    CHECK(w->stats.unparks == 0 && !w->is_searching && !w->is_closing);
    CHECK_EQ(w->event_due, w->event_every);
    CHECK_EQ(w->countdown, w->event_due < 10 ? w->event_due : 10); // 20 - 10 to the injector
    CHECK(volt__pop_ring(w) == task && volt__node_state(&node[1]) == VOLT__LINKED);
    volt__timer_disarm(&node[0], task);
    volt__timer_disarm(&node[1], task);
    // poked; the watchdog, that is not armed, and that is
    polls.n = 2;
    polls.ev[0].data.u64 = VOLT__EPOLL_EVENTFD;
    polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
    volt__reactor_unpark(&w->reactor);
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK(w->stats.unparks == 1 && w->event_polls == 2);
    uint64_t n;
    CHECK(read(w->reactor.evfd, &n, sizeof n) < 0);
    rt->watchdog.is_armed = 1;
    CHECK_EQ(volt__drive_events(w, 0, 0), 1);
    CHECK_EQ(rt->watchdog.is_armed, 0);
    rt->watchdog.is_armed = 1;
    polls.ev[1].data.u64 = VOLT__EPOLL_EVENTFD;
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    CHECK_EQ(rt->watchdog.is_armed, 1);
    int watch_fd = rt->watchdog.fd;
    polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
    rt->watchdog.fd = -1;
    CHECK_EQ(volt__drive_events(w, 0, 0), 0);
    rt->watchdog.fd = 0;
    CHECK_EQ(volt__drive_events(w, 0, 0), 1);
    rt->watchdog.fd = watch_fd;
    // asleep: nobody claims it, somebody does; the time asleep is not the polls'
    polls.n = 0;
    for (int is_claimed = 0; is_claimed < 2; is_claimed++) {
        (void)volt__idle_park(&rt->idle, 0, 0);
        polls.step = is_claimed ? claim_w : NULL;
        w->countdown_from = w->countdown + 1;
        w->avg_ns = 1000;
        w->last_event_poll = clock_now - 1000000;
        CHECK_EQ(volt__drive_events(w, 1, 4321), 0);
        CHECK(polls.timeout == 4321 && w->is_searching == is_claimed && w->avg_ns == 1000);
        CHECK(!volt__idle_is_parked(&rt->idle, 0) && w->last_event_poll == clock_now);
    }
    polls.step = NULL;
    rt->acks = 2;
    rt->is_closed = 1;
    (void)volt__drive_events(w, 0, 0);
    CHECK(w->is_closing && rt->acks == 1);
    end_fd();
}

// ---- the watchdog over stuck workers

TEST(watchdog_is_armed_only_with_several_workers) {
    begin(2);
    int watch_fd = rt->watchdog.fd;
    memset(&settime, 0, sizeof settime);
    rt->watchdog.fd = -1;
    volt__watchdog_arm(w);
    rt->watchdog.fd = watch_fd;
    rt->started = 1;
    volt__watchdog_arm(w);
    CHECK(settime.n_calls == 0 && rt->watchdog.is_armed == 0);
    rt->started = 2;
    for (int i = 0; i < 2; i++) {
        volt__watchdog_arm(w);
        CHECK(settime.n_calls == 1 && rt->watchdog.is_armed == 1);
    }
    end();
}
TEST(rescue_takes_events_timers_lifo_slot_and_half_ring) {
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        begin_fd();
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        volt__task *lifo = still_task(v), *timed = still_task(v), *ringed[3];
        timed->word = VOLT__REF;
        v->lifo = lifo;
        for (int i = 0; i < 3; i++) volt__ring_push(&v->ring, ringed[i] = still_task(v));
        clock_now = rt->epoch + 3 * (int64_t)VOLT_TICK_NS;
        volt__timer_arm(&v->wheel, &node[1], timed, 3);
        e->mode = VOLT__MODE_EDGE;
        volt__node_bind(&node[0], task, e);
        volt__list_push(&e->rd, &node[0]);
        polls.n = 1 + is_watch;
        polls.ev[0].data.u64 = (uint64_t)5 << 32 | (uint32_t)fd[0];
        polls.ev[0].events = EPOLLIN;
        polls.ev[1].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = 1;
        w->is_searching = 1;
        w->wake_at = VOLT_RING_CAP * 2;
        rt->idle.searching = 1;
        volt__rescue(w, v);
        CHECK(polls.timeout == 0 && polls.ep == v->reactor.epfd);
        CHECK_EQ(polls.max, VOLT_RING_CAP < VOLT_EVENTS ? VOLT_RING_CAP : VOLT_EVENTS);
        CHECK_EQ(rt->watchdog.is_armed, !is_watch);
        CHECK(volt__pop_ring(w) == task && volt__pop_ring(w) == timed);
        CHECK(volt__pop_ring(w) == lifo && !v->lifo);
        uint32_t n = VOLT_RING_CAP > 4 ? 2 : 1; // half, rounded up, but no more than fit there
        for (uint32_t i = 0; i < n; i++) CHECK(volt__pop_ring(w) == ringed[i]);
        CHECK(!volt__pop_ring(w) && volt__ring_len(&v->ring) == 3 - n);
        CHECK_EQ(w->stats.rescued, 3 + n);
        end_fd();
    }
}
TEST(rescue_takes_inbox) {
    begin(2);
    rt->cfg.placement = VOLT_PLACE_LEAST;
    volt__task *t[2];
    for (int i = 0; i < 2; i++) place_at(v, t[i] = still_task(v));
    w->is_searching = 1;
    rt->idle.searching = 1;
    volt__rescue(w, v);
    CHECK(volt__pop_ring(w) == t[0] && volt__pop_ring(w) == t[1] && v->inbox.len == 0);
    CHECK_EQ(w->stats.rescued, 2);
    end();
}
TEST(watchdog_scan_rescues_awake_worker_without_event_poll) {
    for (int i = 0; i < 16; i++) {
        begin(3);
        volt__worker *third = rt->workers[2];
        int is_stuck = i & 1, is_parked = (i >> 1) & 1, was_counted = (i >> 2) & 1;
        int is_third_stuck = (i >> 3) & 1;
        v->event_polls = 5;
        v->event_polls_seen = is_stuck ? 5 : 4;
        third->event_polls = 7;
        third->event_polls_seen = is_third_stuck ? 7 : 8;
        w->event_polls = w->event_polls_seen = 3;
        v->lifo = still_task(v);
        if (is_parked) park_v();
        w->is_searching = (uint8_t)was_counted;
        rt->idle.searching = (uint32_t)was_counted;
        w->needs_watchdog = 0;
        volt__watchdog_scan(w);
        int is_rescued = is_stuck && !is_parked;
        CHECK(w->stats.watchdog_scans == 1 && w->needs_watchdog == 1);
        CHECK_EQ(v->lifo == NULL, is_rescued);
        CHECK_EQ(v->event_polls_seen, is_parked && !is_stuck ? 4 : 5);
        CHECK(third->event_polls_seen == 7 && w->event_polls_seen == 3);
        CHECK_EQ(w->is_searching, was_counted || is_rescued || is_third_stuck);
        CHECK_EQ(rt->idle.searching, w->is_searching);
        CHECK_EQ(w->stats.rescued, is_rescued);
        end();
    }
}

TEST(watchdog_scan_covers_first_worker) {
    begin(2);
    w->lifo = still_task(w);
    w->event_polls = w->event_polls_seen = 4;
    volt__watchdog_scan(v);
    CHECK(!w->lifo && v->stats.rescued == 1);
    end();
}

// ---- search, park, wake up

TEST(awake_workers_and_stealable_work_are_seen) {
    begin(3);
    CHECK(volt__others_awake(w) && volt__others_awake(rt->workers[2]));
    (void)volt__idle_park(&rt->idle, 1, 0);
    CHECK(volt__others_awake(w) && volt__others_awake(v));
    (void)volt__idle_park(&rt->idle, 2, 0);
    CHECK(!volt__others_awake(w) && volt__others_awake(v));
    CHECK(!volt__has_stealable_work(rt));
    for (uint32_t i = 0; i < 3; i++) {
        volt__ring_push(&rt->workers[i]->ring, still_task(w));
        CHECK_EQ(volt__has_stealable_work(rt), 1);
        (void)volt__ring_pop(&rt->workers[i]->ring);
        CHECK_EQ(volt__has_stealable_work(rt), 0);
    }
    volt__chain c = no_chain();
    volt__chain_push(&c, still_task(w));
    volt__injector_push(&rt->injector, &c);
    CHECK_EQ(volt__has_stealable_work(rt), 1);
    end();
}
TEST(last_worker_to_end_search_checks_for_work_again) {
    for (int i = 0; i < 4; i++) {
        begin(2);
        int is_last = i & 1, is_more = i >> 1;
        park_v();
        rt->idle.searching = is_last ? 1 : 2;
        w->is_searching = 1;
        if (is_more) volt__ring_push(&w->ring, still_task(w));
        volt__end_search(w);
        CHECK_EQ(w->is_searching, 0);
        CHECK_EQ(volt__idle_is_parked(&rt->idle, 1), !(is_last && is_more));
        CHECK_EQ(rt->idle.searching, is_last ? is_more : 1);
        end();
    }
}
TEST(search_takes_from_injector_or_other_rings) {
    begin(2);
    park_v();
    CHECK(!volt__search(w) && !w->is_searching && w->stats.searches == 0); // nobody has anything
    CHECK_EQ(rt->idle.searching, 0);
    volt__chain c = no_chain();
    volt__task *t = still_task(w);
    volt__chain_push(&c, t);
    volt__injector_push(&rt->injector, &c);
    rt->idle.searching = 1; // enough are at it
    CHECK(!volt__search(w) && !w->is_searching && w->stats.searches == 0);
    rt->idle.searching = 0;
    CHECK(volt__search(w) == t && w->is_searching == 1 && w->stats.searches == 1);
    CHECK(rt->idle.searching == 1 && w->stats.steals == 0 && w->stats.wakes_remote == 1);
    CHECK(!volt__search(w) && w->stats.searches == 2 && rt->idle.searching == 1);
    (void)volt__idle_unpark(&rt->idle, 1);
    for (int k = 0; k < 20; k++) { // wherever it begins
        for (int i = 0; i < 3; i++) volt__ring_push(&v->ring, still_task(v));
        volt__task *first = v->ring.slot[volt__head_index(v->ring.head) & (VOLT_RING_CAP - 1)];
        CHECK(volt__search(w) == first);
        CHECK(w->stats.steals == (uint64_t)k + 1 && w->stats.stolen == 2 * ((uint64_t)k + 1));
        CHECK(volt__ring_len(&v->ring) == 1 && ring_len() == 1);
        empty(w);
        empty(v);
    }
    w->is_searching = 0;
    rt->idle.searching = 0;
    CHECK(!volt__search(w) && w->is_searching == 1); // one is awake, who may have had something
    end();
}
TEST(watchdog_expiry_ends_sleep_with_a_scan) {
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        polls.n = is_watch;
        polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = 1;
        v->event_polls = v->event_polls_seen + 1;
        w->drain_deadline = clock_now + 99;
        w->needs_watchdog = w->has_slept = 0;
        (void)volt__idle_park(&rt->idle, 0, 0);
        volt__worker_sleep(w);
        CHECK(polls.timeout == 99 && w->stats.parks == 1 && w->has_slept == 1);
        CHECK(w->needs_watchdog == 1 && w->stats.watchdog_scans == (uint64_t)is_watch);
        end();
    }
}
static int n_slept;
static void count_sleep(void) { n_slept++; }
TEST(worker_parks_unless_stopped_or_work_is_left) {
    for (int i = 0; i < 64; i++) {
        int is_stopped = i & 1, is_more = i >> 1 & 1, was_counted = i >> 2 & 1;
        int others_search = i >> 3 & 1, is_v_parked = i >> 4 & 1, needs_watch = i >> 5 & 1;
        begin(2);
        memset(&polls, 0, sizeof polls);
        memset(&settime, 0, sizeof settime);
        polls.is_played = 1;
        polls.step = count_sleep;
        n_slept = 0;
        if (is_v_parked) park_v();
        rt->is_stopped = (uint32_t)is_stopped;
        w->is_searching = (uint8_t)was_counted;
        w->needs_watchdog = (uint8_t)needs_watch;
        w->housekeep_due = 3;
        rt->idle.searching = (uint32_t)(was_counted + others_search);
        if (is_more) volt__ring_push(&v->ring, still_task(v));
        volt__park(w);
        int stays = is_stopped || (!others_search && is_more);
        CHECK_EQ(n_slept, !stays);
        CHECK_EQ(w->is_searching, stays);
        CHECK_EQ(rt->idle.searching, (uint32_t)(others_search + stays));
        CHECK(!volt__idle_is_parked(&rt->idle, 0) && w->housekeep_due == 16);
        CHECK_EQ(settime.n_calls, !stays && needs_watch && !is_v_parked);
        CHECK_EQ(w->needs_watchdog, stays ? needs_watch : 1);
        end();
    }
    polls.step = NULL;
}
TEST(closing_worker_stops_empty_runtime_as_it_parks) {
    for (int is_closing = 0; is_closing < 2; is_closing++) {
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        w->is_closing = (uint32_t)is_closing;
        volt__park(w);
        CHECK_EQ(volt__is_stopped(rt), is_closing);
        CHECK_EQ(w->is_searching, is_closing);
        end();
    }
}
TEST(found_task_ends_search_and_arms_watchdog) {
    for (int i = 0; i < 64; i++) {
        int is_searching = i & 1, needs_watch = i >> 1 & 1, has_slept = i >> 2 & 1;
        int is_v_parked = i >> 3 & 1, are_more = i >> 4 & 1, is_late = i >> 5 & 1;
        begin(2);
        memset(&settime, 0, sizeof settime);
        memset(&created, 0, sizeof created);
        rt->n_workers = are_more ? 3 : 2;
        if (are_more) rt->started = 1, is_v_parked = 0;
        if (is_v_parked) park_v();
        created.fail_at = 1;
        created.error = EAGAIN;
        w->is_searching = (uint8_t)is_searching;
        rt->idle.searching = 2;
        w->needs_watchdog = (uint8_t)needs_watch;
        w->has_slept = (uint8_t)has_slept;
        w->last_event_poll = 1000;
        w->start_retry = is_late ? 1000 : 1001;
        VOLT_TLS_SET(w);
        volt__worker *second = rt->workers[1];
        if (are_more) rt->workers[1] = NULL;
        volt__searching_done(w);
        CHECK_EQ(rt->idle.searching, 2 - is_searching);
        CHECK(!w->is_searching && !w->needs_watchdog);
        CHECK_EQ(settime.n_calls, needs_watch && rt->started == 2);
        CHECK_EQ(w->has_slept, needs_watch ? 0 : has_slept);
        CHECK_EQ(created.n_creates, needs_watch && has_slept && are_more && is_late);
        int has_failed = created.n_creates;
        CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], has_failed);
        CHECK_EQ(w->start_retry, has_failed ? 1000 + 1000000000 : is_late ? 1000 : 1001);
        test_log.n[VOLT_LOG_THREAD_START] = 0;
        CHECK(!are_more || !rt->workers[1]);
        rt->workers[1] = second;
        rt->started = 2;
        rt->n_workers = 2;
        end();
    }
}
TEST(worker_is_not_started_while_another_is_parked) {
    begin(3);
    memset(&created, 0, sizeof created);
    rt->started = 2;
    w->needs_watchdog = w->has_slept = 1;
    w->is_searching = 0;
    park_v();
    VOLT_TLS_SET(w);
    volt__searching_done(w);
    CHECK_EQ(created.n_creates, 0);
    rt->started = 3;
    end();
}
TEST(maintenance_polls_events_and_wakes_worker_for_backlog) {
    for (int i = 0; i < 8; i++) {
        int is_mine = i & 1, is_due = i >> 1 & 1, is_enough = i >> 2;
        begin(2);
        memset(&polls, 0, sizeof polls);
        memset(&settime, 0, sizeof settime);
        polls.is_played = 1;
        polls.n = is_mine;
        polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
        rt->watchdog.is_armed = (uint32_t)is_mine;
        park_v();
        v->event_polls = v->event_polls_seen + 1;
        w->wake_at = is_enough ? 2 : 3;
        w->lifo = still_task(w);
        volt__ring_push(&w->ring, still_task(w));
        w->housekeep_due = is_due ? 1 : 2;
        w->needs_watchdog = 0;
        w->polls_since = 0;
        volt__maintain(w);
        CHECK_EQ(w->housekeep_due, is_due ? 16 : 1);
        CHECK_EQ(w->stats.event_polls, 1);
        CHECK_EQ(was_v_woken(), is_enough);
        CHECK(w->stats.watchdog_scans == (uint64_t)is_mine && !w->needs_watchdog);
        CHECK_EQ(rt->watchdog.is_armed, is_mine);
        CHECK_EQ(settime.n_calls, is_mine);
        if (is_enough) {
            w->is_solo = 1; // nobody to tell
            volt__maintain(w);
            CHECK(!was_v_woken());
        }
        end();
    }
}

// ---- the loop

TEST(due_injector_is_served_before_due_events) {
    for (int i = 0; i < 32; i++) {
        int is_inject_due = i & 1, is_event_due = i >> 1 & 1, is_injected = i >> 2 & 1;
        int has_given_up = i >> 3 & 1, is_more = i >> 4;
        begin(2);
        memset(&polls, 0, sizeof polls);
        polls.is_played = 1;
        volt__chain c = no_chain();
        volt__task *first = still_task(w), *t = first;
        if (is_injected) volt__chain_push(&c, first);
        if (is_injected && is_more) volt__chain_push(&c, still_task(w));
        volt__injector_push(&rt->injector, &c);
        w->countdown_from = w->countdown = 9;
        w->inject_due = is_inject_due ? 0 : 5;
        w->inject_every = 30;
        w->event_due = is_event_due ? 0 : 6;
        w->event_every = 40;
        w->polls_since = 0;
        if (has_given_up) w->drain_deadline = clock_now;
        int is_given = is_inject_due && is_injected, is_served = is_event_due && !is_given;
        CHECK_EQ(volt__serve_due(w, &t), is_given || (is_served && has_given_up));
        CHECK(t == (is_given ? first : NULL));
        CHECK_EQ(w->stats.event_polls, is_served);
        CHECK_EQ(w->inject_due, is_inject_due ? 30 : 5);
        CHECK_EQ(w->event_due, is_served ? 40 : is_event_due ? 0 : 6);
        if (!is_served || !has_given_up)
            CHECK_EQ(w->countdown, is_event_due && !is_served ? 1
                             : w->inject_due < w->event_due ? w->inject_due : w->event_due);
        end();
    }
}
// What an injector or inbox still has is due again when all that is in the ring has had a poll.
TEST(source_that_has_more_is_due_again_after_one_round) {
    for (int i = 0; i < 4; i++) {
        int is_placed = i & 1, is_rare = i >> 1;
        volt__chain c = no_chain();
        begin(2);
        rt->cfg.placement = is_placed ? VOLT_PLACE_LEAST : VOLT_PLACE_SHARED;
        for (int k = 0; k < 2; k++) volt__ring_push(&w->ring, still_task(w));
        volt__task *t, *first = still_task(w);
        volt__chain_push(&c, first);
        for (int k = 0; k < 200; k++) volt__chain_push(&c, still_task(w));
        volt__injector_push(is_placed ? &w->inbox : &rt->injector, &c);
        w->countdown_from = w->countdown = w->inject_due = 0;
        w->inject_every = is_rare ? 2 : 255;
        w->event_due = 256;
        CHECK(volt__serve_due(w, &t) && t == first);
        CHECK(ring_len() > 2);
        CHECK_EQ(w->inject_due, is_rare ? 2 : ring_len() + 1);
        CHECK_EQ(w->countdown, w->inject_due);
        end();
    }
}
static int stop_at; // sleeps after which the runtime is stopped
static volt__task *comes;
static void stop_in_time(void) {
    if (++n_slept == stop_at) rt->is_stopped = 1;
    if (comes) volt__ring_push(&w->ring, comes), comes = NULL;
}
static void begin_loop(uint32_t n_workers) {
    begin(n_workers);
    memset(&polls, 0, sizeof polls);
    polls.is_played = 1;
    polls.step = stop_in_time;
    n_slept = stop_at = 0;
    comes = NULL;
    rt->idle.searching = 0;
}
TEST(worker_waits_until_task_stop_or_drain_deadline) {
    for (uint32_t n = 1; n <= 2; n++) {
        begin_loop(n);
        volt__task *t = still_task(w);
        if (n == 1) comes = t; // while it sleeps: it is not called with something in its queues
        else volt__ring_push(&w->ring, t);
        CHECK(volt__wait_for_task(w) == t && !w->needs_watchdog);
        CHECK(polls.n_calls == 1 && w->stats.parks == (n == 1) && w->stats.spurious_unparks == 0);
        empty(w);
        w->polls_since = 0;
        stop_at = n_slept + 3;
        CHECK(!volt__wait_for_task(w));
        CHECK(rt->is_stopped);
        CHECK(w->stats.spurious_unparks > 0 && w->stats.spurious_unparks <= 3);
        rt->is_stopped = 0;
        w->drain_deadline = clock_now;
        uint64_t parks = w->stats.parks;
        CHECK(!volt__wait_for_task(w));
        CHECK_EQ(w->stats.parks, parks);
        end();
    }
    begin_loop(2); // the other one has something
    volt__task *t = still_task(v);
    volt__ring_push(&v->ring, t);
    CHECK(volt__wait_for_task(w) == t && w->stats.steals == 1 && w->stats.parks == 0);
    CHECK(!w->is_searching && rt->idle.searching == 0);
    end();
    begin_loop(2); // the watchdog expires
    polls.n = 1;
    polls.ev[0].data.u64 = VOLT__EPOLL_WATCHDOG;
    rt->watchdog.is_armed = 1;
    v->event_polls = v->event_polls_seen + 1;
    volt__ring_push(&w->ring, still_task(w));
    CHECK(volt__wait_for_task(w) && w->stats.watchdog_scans == 1);
    end();
    polls.step = NULL;
}
TEST(tasks_from_outside_go_before_a_lone_task) {
    begin_loop(2);
    volt__task *t = still_task(w), *other = still_task(w);
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 50;
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 1 && ring_len() == 0);
    uint16_t left = w->cx.budget_;
    w->cx.budget_ = 0; // it has not asked for others
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 1 && ring_len() == 0);
    volt__chain c = no_chain();
    volt__chain_push(&c, other);
    volt__injector_push(&rt->injector, &c);
    w->countdown_from = w->countdown = 50;
    CHECK(volt__next_before_lone_task(w, t) == other && ring_len() == 1 &&
          w->stats.event_polls == 1);
    w->cx.budget_ = left;
    CHECK(volt__pop_ring(w) == t);
    w->countdown_from = w->countdown = 50; // the injector's turn, and something comes meanwhile
    w->inject_due = 0;
    CHECK(volt__next_before_lone_task(w, t) == t && w->stats.event_polls == 2);
    while (volt__ring_push(&w->ring, still_task(w))) {} // no room for a share: one is served
    c = no_chain();
    volt__chain_push(&c, other);
    volt__injector_push(&rt->injector, &c);
    w->countdown_from = w->countdown = 50;
    w->inject_due = 0;
    CHECK(volt__next_before_lone_task(w, t) == other && w->stats.event_polls == 2);
    empty(w);
    w->countdown_from = w->countdown = 50;
    w->inject_due = 9;
    w->drain_deadline = clock_now;
    CHECK(!volt__next_before_lone_task(w, t) && ring_len() == 1 && volt__pop_ring(w) == t);
    end();
    polls.step = NULL;
}
// The injector always has more than the share of this worker, which is a single task.
TEST(due_event_poll_is_not_put_off_by_tasks_from_outside) {
    begin_loop(3);
    volt__task *last = still_task(w);
    volt__chain c = no_chain();
    for (int i = 0; i < 2; i++) volt__chain_push(&c, still_task(w));
    volt__injector_push(&rt->injector, &c);
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 1;
    w->inject_due = w->event_due = 1;
    for (int i = 0; i < 4; i++) {
        last = volt__next_task(w, last);
        CHECK(last != NULL);
        c = no_chain();
        volt__chain_push(&c, still_task(w));
        volt__injector_push(&rt->injector, &c);
    }
    CHECK(w->stats.event_polls > 0);
    empty(w);
    end();
    polls.step = NULL;
}
TEST(next_task_comes_from_due_source_before_ring) {
    begin_loop(2);
    volt__task *a = still_task(w), *b = still_task(w), *c = still_task(w);
    w->wake_at = VOLT_RING_CAP * 2;
    w->needs_watchdog = 0;
    w->countdown_from = w->countdown = 3;
    w->inject_due = w->event_due = 3;
    volt__ring_push(&w->ring, a);
    volt__ring_push(&w->ring, b);
    CHECK(volt__next_task(w, c) == a && w->countdown == 2);
    CHECK(volt__next_task(w, a) == b && w->countdown == 1);
    volt__chain one = no_chain();
    volt__chain_push(&one, c);
    volt__injector_push(&rt->injector, &one);
    volt__ring_push(&w->ring, a);
    CHECK(volt__next_task(w, b) == c && w->stats.polls == 3); // is due before what is queued
    w->countdown_from = w->countdown = 9;
    CHECK(volt__next_task(w, a) == a && w->stats.event_polls == 1); // twice in a row
    volt__ring_push(&w->ring, b);
    w->countdown_from = w->countdown = 1;
    w->inject_due = w->event_due = 1;
    w->drain_deadline = clock_now;
    CHECK(!volt__next_task(w, a)); // the time is up
    CHECK(volt__pop_ring(w) == b);
    w->drain_deadline = VOLT_NEVER;
    w->countdown_from = w->countdown = 9;
    rt->is_stopped = 1;
    CHECK(!volt__next_task(w, a)); // nothing left
    end();
    polls.step = NULL;
}
TEST(worker_thread_runs_worker_until_runtime_stops) {
    begin_loop(2);
    volt__task *t = answering_task(0);
    next_poll = volt_ready(0);
    w->needs_watchdog = 1;
    w->lifo = t;
    rt->is_stopped = 1;
    w->cx.stack_ = NULL;
    volt__worker_run(w);
    CHECK(w->completed == 1 && !VOLT_TLS_GET() && polled_by == w && w->cx.stack_);
    CHECK(w->published.completed == 1 && w->published.lifo_polls == 1 && w->lifo_run == 0);
    CHECK_EQ(rt->watchdog.is_armed, 1); // first of all it sees to it that it is watched
    end();
    begin_loop(1); // nothing at first
    comes = answering_task(0);
    stop_at = 2;
    CHECK(!volt__thread_main(w) && w->completed == 1 && n_slept == 2);
    end();
    begin_loop(1); // the time is up while it takes from the slot
    w->lifo = answering_task(0);
    w->countdown_from = w->countdown = w->inject_due = w->event_due = 1;
    w->drain_deadline = clock_now;
    volt__worker_run(w);
    CHECK(w->completed == 1 && w->published.lifo_polls == 1 && w->published.polls == 1);
    end();
    polls.step = NULL;
}
TEST(worker_threads_are_named_by_index) {
    static const uint32_t numbers[] = { 0,   7,   9,    10, 42, 99, 100, 905,
                                        999, 1000, VOLT_MAX_WORKERS - 1 };
    begin_loop(2);
    rt->is_stopped = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char want[32];
        snprintf(want, sizeof want, "volt-%u", (unsigned)numbers[i]);
        w->index = numbers[i];
        w->carrier_serving = 0; // as from the start
        CHECK(!volt__thread_main(w));
        CHECK_STR(thread_name, want);
    }
    w->index = 0;
    end();
    polls.step = NULL;
}

// ---- starting workers

static volt_rt *bare_rt(uint32_t n_workers) {
    volt_config c = test_config(n_workers);
    memset(&created, 0, sizeof created);
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    return rt;
}
TEST(worker_create_initializes_worker_or_frees_all) {
    for (uint32_t n = 1; n <= 3; n += 2) {
        bare_rt(n);
        clock_now = rt->epoch + 5 * (int64_t)VOLT_TICK_NS + 7;
        volt__worker *x = NULL;
        uint32_t i = n - 1;
        CHECK_EQ(volt__worker_create(rt, i, &x), 0);
        CHECK(x && rt->workers[i] == x && rt->fds.epfd[i] == x->reactor.epfd);
        CHECK(x->rt == rt && x->cx.rt_ == rt && x->cx.worker_ == x && x->index == i);
        CHECK(x->is_solo == (n == 1) && x->avg_ns == VOLT_POLL_NS &&
              x->last_event_poll == clock_now);
        CHECK(x->ms == 5 * (uint64_t)VOLT_TICK_NS / 1000000 && x->wheel.elapsed == 5);
        CHECK(x->inject_due == 20 && x->inject_every == 20); // 1 ms of 50 us each
        CHECK(x->event_due == 2 && x->event_every == 2);
        CHECK(x->countdown == 2 && x->countdown_from == 2 && x->cx.budget_ == VOLT_BUDGET &&
              x->wake_at == 2);
        volt_cx cx = x->cx;
        cx.wait_ = 9;
        cx.budget_ = 0;
        memcpy(&cx.wait_, &x->fresh_cx, sizeof x->fresh_cx);
        CHECK(cx.wait_ == 0 && cx.budget_ == VOLT_BUDGET && !cx.cancel_level_ && !cx.shield_depth_);
        CHECK(x->housekeep_due == 16 && x->trim_ms == x->ms + 1000);
        CHECK(x->drain_deadline == VOLT_NEVER && x->needs_watchdog == 1 && !x->has_slept);
        CHECK(x->heap.slabs == &rt->slabs && x->reactor.index == i);
        CHECK(!x->lifo && !x->is_searching && !x->polls_since && !x->completed && !x->start_retry);
        volt__random r;
        volt__random_seed(&r, rt->cfg.seed, i);
        CHECK(r.a == x->random.a && r.b == x->random.b);
        volt__worker_destroy(rt, x);
        // out of memory, of descriptors
        int n_fds = test_count_fds();
        int64_t bytes = test_heap.live_bytes;
        test_heap.fail_at = test_heap.n_allocs + 1;
        CHECK_EQ(volt__worker_create(rt, i, &x), -ENOMEM);
        of_eventfd.n_calls = 0;
        of_eventfd.error[0] = EMFILE;
        CHECK_EQ(volt__worker_create(rt, i, &x), -EMFILE);
        of_eventfd.error[0] = 0;
        CHECK(test_heap.live_bytes == bytes && test_count_fds() == n_fds);
        end();
    }
}
TEST(worker_thread_starts_with_all_signals_blocked) {
    begin(2);
    sigset_t before;
    memset(&created, 0, sizeof created);
    rt->cfg.stack_size = 131072;
    w->has_slept = 0;
    CHECK_EQ(volt__thread_start(w), 0);
    CHECK(created.n_creates == 1 && created.fn == volt__thread_main && created.arg == w);
    CHECK(created.stack == 131072 && w->has_thread == 1 && w->has_slept == 1);
    CHECK(sigismember(&created.mask, SIGINT) && sigismember(&created.mask, SIGPIPE));
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    CHECK(!sigismember(&before, SIGINT) && !sigismember(&before, SIGPIPE));
    created.fail_at = 2;
    created.error = EAGAIN;
    CHECK_EQ(volt__thread_start(w), -EAGAIN);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    CHECK(!sigismember(&before, SIGINT));
    attr_error = ENOMEM;
    CHECK_EQ(volt__thread_start(w), -ENOMEM);
    CHECK(created.n_creates == 2 && n_attrs == 0);
    end();
}
// One after the other, as far as they are wanted; a wish that comes while one is being started is
// kept for its starter.
TEST(workers_are_started_one_by_one) {
    bare_rt(3);
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 1 && created.n_creates == 1 && created.arg == rt->workers[0]);
    CHECK(rt->start_wanted == 0 && rt->is_starting == 0 && rt->start_lock == 0);
    rt->is_starting = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 1 && rt->start_wanted == 1 && rt->start_lock == 0);
    rt->is_starting = 0;
    created.fail_at = 2;
    created.error = EAGAIN;
    int n_fds = test_count_fds();
    CHECK_EQ(volt__start_next(rt), -EAGAIN);
    CHECK(rt->started == 1 && !rt->workers[1] && test_count_fds() == n_fds);
    CHECK(rt->is_starting == 0 && rt->start_lock == 0 && rt->start_wanted == 0);
    test_heap.fail_at = test_heap.n_allocs + 1;
    CHECK_EQ(volt__start_next(rt), -ENOMEM);
    CHECK(!rt->workers[1] && created.n_creates == 2);
    for (uint32_t n = 2; n <= 3; n++) {
        CHECK_EQ(volt__start_next(rt), 0);
        CHECK(rt->started == n && created.arg == rt->workers[n - 1]);
        CHECK(rt->workers[n - 1]->index == n - 1);
    }
    CHECK_EQ(volt__start_next(rt), 0); // all run
    CHECK(rt->started == 3 && created.n_creates == 4 && rt->start_lock == 0);
    end();
    bare_rt(2);
    rt->starts_closed = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 0 && created.n_creates == 0 && rt->start_lock == 0);
    end();
}
// Something happens while a thread is being created.
static int meanwhile;
static void *meanwhile_alloc(void *user, size_t size, size_t align) {
    int what = meanwhile;
    meanwhile = 0;
    CHECK_EQ(rt->start_lock, 0);
    if (what == 1) CHECK_EQ(volt__start_next(rt), 0); // another one is wanted
    if (what == 2) volt__shutdown_begin(rt);
    return test_alloc(user, size, align);
}
TEST(start_heeds_request_or_shutdown_that_comes_meanwhile) {
    bare_rt(3);
    rt->cfg.alloc.alloc = meanwhile_alloc;
    meanwhile = 1;
    CHECK_EQ(volt__start_next(rt), 0);
    CHECK(rt->started == 2 && created.n_creates == 2 && rt->start_wanted == 0);
    end();
    for (int has_failed = 0; has_failed < 2; has_failed++) {
        bare_rt(3);
        CHECK_EQ(volt__start_next(rt), 0);
        rt->cfg.alloc.alloc = meanwhile_alloc;
        created.fail_at = has_failed ? 2 : 0;
        created.error = EPERM;
        meanwhile = 2;
        CHECK_EQ(volt__start_next(rt), has_failed ? -EPERM : 0);
        CHECK(rt->starts_closed && rt->started == 2 - (uint32_t)has_failed);
        CHECK_EQ(rt->acks, 2 - (uint32_t)has_failed); // who did not come is acknowledged for
        check_poked(1);                               // who came has to be told
        CHECK(created.n_creates == 2 && rt->start_lock == 0);
        end();
    }
}
TEST(failed_start_of_spare_worker_is_retried_after_a_second) {
    begin(2);
    rt->n_workers = 3;
    volt__worker **two = rt->workers, *three[3] = { w, v, NULL };
    int *epfd = rt->fds.epfd, epfds[3] = { epfd[0], epfd[1], -1 };
    rt->workers = three;
    rt->fds.epfd = epfds;
    memset(&created, 0, sizeof created);
    created.fail_at = 1;
    created.error = EAGAIN;
    VOLT_TLS_SET(w);
    w->last_event_poll = 5000;
    w->start_retry = 5001;
    volt__start_spare(rt);
    CHECK(created.n_creates == 0);
    w->start_retry = 5000;
    volt__start_spare(rt);
    CHECK(created.n_creates == 1 && w->start_retry == 5000 + 1000000000);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 1);
    CHECK(strstr(test_log.text[VOLT_LOG_THREAD_START], ": 11 (errno)"));
    w->last_event_poll = w->start_retry;
    volt__start_spare(rt);
    CHECK(created.n_creates == 2 && rt->started == 3 && w->start_retry == 5000 + 1000000000);
    CHECK_EQ(test_log.n[VOLT_LOG_THREAD_START], 1);
    volt__worker_destroy(rt, three[2]);
    rt->workers = two;
    rt->fds.epfd = epfd;
    rt->n_workers = rt->started = 2;
    end();
}

// ---- the wheel

TEST(wheel_advance_fires_a_bounded_number_per_lock_hold) {
    static volt__node many[VOLT_FIRE_MAX + 1];
    for (uint32_t n = VOLT_FIRE_MAX - 1; n <= VOLT_FIRE_MAX + 1; n++) {
        begin(1);
        volt__chain c = no_chain();
        uint64_t n_fired = 0;
        memset(many, 0, sizeof many);
        task = still_task(w);
        for (uint32_t i = 0; i < n; i++) volt__timer_arm(&w->wheel, &many[i], task, 1);
        CHECK_EQ(volt__wheel_advance(&w->wheel, 1, &c, &n_fired), n > VOLT_FIRE_MAX);
        CHECK_EQ(n_fired, n > VOLT_FIRE_MAX ? VOLT_FIRE_MAX : n);
        end();
    }
}
TEST(disarm_does_not_write_behind_the_wheel) {
    static struct {
        volt__wheel wheel;
        volt__node *behind;
    } x;
    begin(1);
    memset(node, 0, sizeof node);
    task = still_task(w);
    uint64_t far = UINT64_C(3) << (VOLT_WHEEL_BITS * (VOLT_WHEEL_LEVELS - 1));
    for (int i = 0; i < 2; i++) volt__timer_arm(&x.wheel, &node[i], task, far);
    x.behind = &node[1]; // which is not the first of its slot
    volt__timer_disarm(&node[1], task);
    CHECK(x.behind == &node[1] && node[0].next_ == &node[0]);
    volt__timer_disarm(&node[0], task);
    CHECK(x.wheel.occupied[VOLT_WHEEL_LEVELS - 1] == 0);
    end();
}

// ---- text

// Of all leads and second bytes, and of the bounds of the others: what stands for a number that is
// not written in a shorter form, is no surrogate, and at most U+10FFFF.
TEST(utf8_len_accepts_shortest_form_of_each_character_only) {
    static const unsigned char tails[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    enum { N_TAILS = sizeof tails };
    for (uint32_t i = 256; i < 256 * 256 * N_TAILS * N_TAILS; i++) {
        const unsigned char byte[4] = { (unsigned char)(i / 256 % 256), (unsigned char)(i % 256),
                                        tails[i / 65536 % N_TAILS],
                                        tails[i / 65536 / N_TAILS] };
        char text[5] = "";
        memcpy(text, byte, sizeof byte);
        if (!byte[0]) continue;
        size_t n = byte[0] < 0x80 ? 1 : byte[0] < 0xc0 ? 0 : byte[0] < 0xe0 ? 2
                   : byte[0] < 0xf0 ? 3 : byte[0] < 0xf8 ? 4 : 0;
        uint32_t number = n < 2 ? byte[0] : byte[0] & (0x7fu >> n);
        int is_one = n > 0;
        for (size_t k = 1; k < n; k++) {
            is_one = is_one && (byte[k] & 0xc0) == 0x80;
            number = number << 6 | (byte[k] & 0x3f);
        }
        if (number < least[n] || number > 0x10ffff || number >> 11 == 0xd800 >> 11) is_one = 0;
        CHECK_EQ(volt__utf8_len(text, NULL), is_one ? n : 0);
        CHECK_EQ(volt__utf8_len(text, text + 4), is_one ? n : 0);
        for (size_t k = 1; is_one && k < n; k++)
            CHECK_EQ(volt__utf8_len(text, text + k), 0); // cut off
    }
}

// ---- the pace of polls, at its bounds

TEST(average_poll_time_resists_outliers_and_clock_steps) {
    static const struct {
        int64_t avg, ns, then;
    } rows[] = { { 1000, 7500, 1000 + 6500 * 26 / 256 },
                 { 1000, 8500, 1000 + 7000 * 26 / 256 }, // taken for eight times as long
                 { 1, -9, 1 } };                         // 0 would be divided by
    begin(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w->avg_ns = rows[i].avg;
        w->polls_since = 1;
        w->last_event_poll = clock_now;
        volt__measure(w, clock_now + rows[i].ns);
        CHECK_EQ(w->avg_ns, rows[i].then);
    }
    end();
}
