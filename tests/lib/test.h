// SPDX-License-Identifier: MIT OR 0BSD
// A small test harness. Include it after volt.h, in one file per program: it brings main().
//
//     TEST(name) { CHECK(cond); CHECK_EQ(a, b); } // runs in a process of its own
//     TEST_DIES(name, "text") { ... }             // passes iff an assert with that text stops it
//     TEST_OF_THREADS(name) { ... }               // not a test in a build without threads
//
// build/test_x [name...] runs all tests, or those named. Environment:
//   TEST_SEED            seed of RANDOM(), to repeat a run
//   TEST_LONG            tests that try every step, or every length, try all of them
//   TEST_TIMEOUT_FACTOR  multiplies the time limit: sanitizers, valgrind, emulators
//   TEST_SKIPS           a file of tests that cannot work here: each line has a name and the reason
// The last line of output is "<program>: N passed, N failed, N skipped".
#ifndef VOLT_TEST_H
#define VOLT_TEST_H

#ifdef VOLT_TEST_OLD_KERNEL_H // was for volt.h: the tests' own calls are not refused
#  undef accept4
#  undef eventfd
#  undef madvise
#  undef getsockopt
#  undef setsockopt
#  undef epoll_ctl
#  undef sendmsg
#  undef recvmmsg
#  undef sendmmsg
#  undef preadv2
#  undef splice
#  undef syscall
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEST_SECONDS = 20, TEST_OUTPUT_CAP = 64 * 1024, TEST__SKIPPED = 77, TEST__LINES = 40 };

typedef struct test__case {
    const char *name;
    void (*fn)(void);
    const char *dies; // NULL, or what the output must contain when the test aborts
    struct test__case *next;
} test__case;

typedef struct test__run {
    pid_t pid;
    int out;       // read end of the child's stdout and stderr
    size_t len;
    int status, is_late, is_over; // is_over: more output than the cap
    char text[TEST_OUTPUT_CAP + 1];
} test__run;

static test__case *test__first, **test__last = &test__first;
static const char *test__program;
static uint64_t test__seed;
static size_t test__n_random; // numbers drawn: a word that every target can share

static inline void test__add(test__case *c) {
    *test__last = c;
    test__last = &c->next;
}

#define TEST__CASE(name_, dies_)                                                                   \
    static void test_fn_##name_(void);                                                             \
    static test__case test__case_##name_ = { #name_, test_fn_##name_, dies_, NULL };               \
    __attribute__((constructor)) static void test__add_##name_(void) {                             \
        test__add(&test__case_##name_);                                                            \
    }                                                                                              \
    static void test_fn_##name_(void)
#define TEST(name_) TEST__CASE(name_, NULL)
#define TEST_DIES(name_, text_) TEST__CASE(name_, text_)
#ifdef VOLT_SINGLE_THREAD // compiled, but no test
#  define TEST_OF_THREADS(name_) __attribute__((unused)) static void test_fn_##name_(void)
#else
#  define TEST_OF_THREADS(name_) TEST(name_)
#endif
#ifndef TEST_BEFORE_EXIT // coverage: the work of exit(), where a test ends without it
#  define TEST_BEFORE_EXIT() ((void)0)
#endif

// ---- for tests

// Any thread may fail a test; the process ends there, so that follow-up failures are not reported.
__attribute__((format(printf, 3, 4), noreturn)) static inline void
test_fail(const char *file, int line, const char *format, ...) {
    char text[512];
    __builtin_va_list ap;
    __builtin_va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    __builtin_va_end(ap);
    printf("%s:%d: %s\n", file, line, text);
    fflush(stdout);
    _exit(1);
}

static inline void test__equal(const char *file, int line, const char *what, int64_t a, int64_t b) {
    if (a != b) test_fail(file, line, "%s: %" PRId64 " and %" PRId64, what, a, b);
}
static inline void test__same(const char *file, int line, const char *what, const char *a,
                              const char *b) {
    if (strcmp(a, b) != 0) test_fail(file, line, "%s: \"%s\" and \"%s\"", what, a, b);
}
__attribute__((noreturn)) static inline void test__skip(const char *reason) {
    printf("%s", reason);
    fflush(stdout);
    TEST_BEFORE_EXIT();
    _exit(TEST__SKIPPED);
}
// Ends the test as passed and its process, without checks at exit: for contracts that leave threads
// running or memory held.
__attribute__((noreturn)) static inline void test_pass_and_exit(void) {
    fflush(stdout);
    TEST_BEFORE_EXIT();
    for (;;) syscall(SYS_exit_group, 0);
}

#define CHECK(cond_)                                                                               \
    ((cond_) ? (void)0 : test_fail(__FILE__, __LINE__, "CHECK(%s)", #cond_))
#define CHECK_EQ(a_, b_)                                                                           \
    test__equal(__FILE__, __LINE__, "CHECK_EQ(" #a_ ", " #b_ ")", (int64_t)(a_), (int64_t)(b_))
#define CHECK_STR(a_, b_) test__same(__FILE__, __LINE__, "CHECK_STR(" #a_ ", " #b_ ")", (a_), (b_))
#define SKIP(reason_) test__skip(reason_)
// Waits on a plain thread for something that another thread does; the test's time limit ends it.
#define UNTIL(cond_)                                                                               \
    do {                                                                                           \
        while (!(cond_)) sched_yield();                                                            \
    } while (0)

#define TEST__GOLDEN 0x9e3779b97f4a7c15u
static inline uint64_t test__mix(uint64_t x) { // splitmix64
    x += TEST__GOLDEN;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
// Any thread. The order of threads decides which number each gets; the seed decides the numbers.
static inline uint64_t test_random(void) {
    size_t n = __atomic_fetch_add(&test__n_random, 1, __ATOMIC_RELAXED);
    return test__mix(test__seed + n * TEST__GOLDEN);
}
#define RANDOM() test_random()
#define RANDOM_BELOW(n_) (test_random() % (uint64_t)(n_))

// ---- resources that must be unchanged when a test has ended: descriptors and threads

static inline int test_count_dir(const char *path) {
    DIR *d = opendir(path);
    if (!d) return -1;
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
// Set while workers may start at any moment: each opens descriptors, so that a count means nothing.
static int test_opens_late;
static inline int test_count_fds(void) {
    CHECK(!test_opens_late);
    return test_count_dir("/proc/self/fd");
}
static inline int test_count_threads(void) { return test_count_dir("/proc/self/task"); }
// The letter of /proc/TID/stat, of a process or thread: S if it is asleep, Z if it has ended; 0 if
// there is none.
static inline char test_state_of(long tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

// The sanitizers run threads of their own: gcc defines a macro for them, clang a feature.
#if defined(__has_feature)
#  define TEST__HAS(feature_) __has_feature(feature_)
#else
#  define TEST__HAS(feature_) 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) ||                               \
    TEST__HAS(thread_sanitizer) || TEST__HAS(address_sanitizer) || TEST__HAS(memory_sanitizer)
enum { TEST__IS_SANITIZED = 1 };
#else
enum { TEST__IS_SANITIZED = 0 };
#endif

// A joined thread may still be listed in /proc for a moment.
static inline void test__check_left_over(int fds, int threads) {
    CHECK_EQ(test_count_fds(), fds);
    if (!TEST__IS_SANITIZED) UNTIL(test_count_threads() <= threads);
}

// ---- one test in its process

static inline int64_t test__now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noreturn)) static inline void test__child(const test__case *c, int out,
                                                        const sigset_t *mask) {
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++) close(fd); // the harness's own
    setvbuf(stdout, NULL, _IONBF, 0);
    test__n_random = 0;
    int fds = test_count_fds(), threads = test_count_threads();
    c->fn();
    test__check_left_over(fds, threads);
    exit(0); // not _exit: the leak checker runs at exit
}

// Returns 0 if a test that could try every step, or every case, should try some of them, chosen at
// random: `make test` does, and `make test-optimised` tries them all.
static inline int test_is_long(void) { return getenv("TEST_LONG") != NULL; }

static inline int64_t test__limit_ms(void) {
    const char *factor = getenv("TEST_TIMEOUT_FACTOR");
    double f = factor ? atof(factor) : 1;
    return (int64_t)(TEST_SECONDS * 1000 * (f > 0 ? f : 1));
}

// 1 at the end of the output. Output beyond the cap is read, so that the test continues, and
// dropped.
static inline int test__drain(test__run *r) {
    char lost[4096];
    for (;;) {
        size_t room = TEST_OUTPUT_CAP - r->len;
        ssize_t n = read(r->out, room ? r->text + r->len : lost, room ? room : sizeof lost);
        if (n < 0) return errno != EAGAIN && errno != EINTR;
        if (n == 0) return 1;
        if (room) r->len += (size_t)n;
        else r->is_over = 1;
    }
}

// Until the test's own process has ended: its children may hold the pipe open without end.
static inline void test__watch(test__run *r, int sigfd) {
    int64_t end = test__now_ms() + test__limit_ms();
    struct pollfd p[2] = { { r->out, POLLIN, 0 }, { sigfd, POLLIN, 0 } };
    while (waitpid(r->pid, &r->status, WNOHANG) == 0) {
        int64_t left = end - test__now_ms();
        if (left <= 0) {
            r->is_late = 1;
            kill(-r->pid, SIGKILL);
            waitpid(r->pid, &r->status, 0);
            break;
        }
        poll(p, 2, (int)left);
        struct signalfd_siginfo info;
        if (p[1].revents && read(sigfd, &info, sizeof info) < 0) continue;
        if (p[0].revents && test__drain(r)) p[0].fd = -1;
    }
    kill(-r->pid, SIGKILL);
    test__drain(r);
    r->text[r->len] = 0;
}

static inline void test__start(test__run *r, const test__case *c, const sigset_t *mask) {
    int ends[2];
    if (pipe(ends) < 0) abort();
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fflush(stdout);
    r->out = ends[0];
    r->len = 0;
    r->is_late = r->is_over = 0;
    r->pid = fork();
    if (r->pid < 0) abort();
    if (r->pid == 0) test__child(c, ends[1], mask);
    setpgid(r->pid, r->pid); // on both sides, as either may come first
    close(ends[1]);
}

static inline const char *test__verdict(const test__run *r, const test__case *c, char *buf,
                                        size_t n) {
    int sig = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
    if (r->is_late) return "took too long";
    if (r->is_over) return "wrote too much";
    if (c->dies) {
        if (sig != SIGABRT && sig != SIGILL && sig != SIGTRAP) return "did not stop on an assert";
        return strstr(r->text, c->dies) ? NULL : "stopped for another reason";
    }
    if (sig) snprintf(buf, n, "signal %d, %s", sig, strsignal(sig));
    else if (WEXITSTATUS(r->status)) snprintf(buf, n, "exit status %d", WEXITSTATUS(r->status));
    else return NULL;
    return buf;
}

// The last lines: the failed check is the last one.
static inline void test__print_output(const test__run *r) {
    const char *s = r->text + r->len;
    for (int n = 0; s > r->text && (n += s[-1] == '\n') <= TEST__LINES; s--) {}
    while (*s) {
        size_t n = strcspn(s, "\n");
        printf("        | %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

enum { TEST__PASSED, TEST__FAILED, TEST__SKIPS };
static inline int test__one(const test__case *c, int sigfd, const sigset_t *mask) {
    static test__run r;
    char buf[80];
    int64_t start = test__now_ms();
    test__start(&r, c, mask);
    test__watch(&r, sigfd);
    close(r.out);
    double s = (double)(test__now_ms() - start) / 1000;
    if (!r.is_late && WIFEXITED(r.status) && WEXITSTATUS(r.status) == TEST__SKIPPED) {
        printf("  skip  %-44s %7.3f s  %s\n", c->name, s, r.text);
        return TEST__SKIPS;
    }
    const char *why = test__verdict(&r, c, buf, sizeof buf);
    printf("  %s  %-44s %7.3f s%s%s\n", why ? "FAIL" : "ok  ", c->name, s, why ? "  " : "",
           why ? why : "");
    if (!why) return TEST__PASSED;
    test__print_output(&r);
    printf("        again: TEST_SEED=%" PRIu64 " %s %s\n", test__seed, test__program, c->name);
    return TEST__FAILED;
}

// The text of TEST_SKIPS; a line that names no test is a mistake.
static char test__skips[16 * 1024];
static int test__n_skips;
static inline void test__read_skips(void) {
    const char *path = getenv("TEST_SKIPS");
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) return;
    size_t n = fread(test__skips, 1, sizeof test__skips - 1, f);
    for (size_t i = 0; i < n; i++) test__n_skips += test__skips[i] == '\n';
    fclose(f);
}
static inline int test__is_skipped(const char *name) {
    size_t n = strlen(name);
    for (const char *s = test__skips; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        if (strncmp(s, name, n) != 0 || s[n] != ' ') continue;
        s += n + 1;
        printf("  skip  %-44s           %.*s\n", name, (int)strcspn(s, "\n"), s);
        return 1;
    }
    return 0;
}

static inline int test__is_named(const char *name, int argc, char **argv) {
    int hit = argc < 2;
    for (int i = 1; i < argc; i++) hit |= strcmp(argv[i], name) == 0;
    return hit;
}

static inline void test__choose_seed(void) {
    const char *seed = getenv("TEST_SEED");
    uint64_t fresh = test__mix((uint64_t)time(NULL) << 20 ^ (uint64_t)getpid());
    test__seed = seed ? strtoull(seed, NULL, 0) : fresh;
}

int main(int argc, char **argv) {
    sigset_t chld, old;
    int n[3] = { 0, 0, 0 }, n_hit = 0;
    test__program = argv[0];
    test__choose_seed();
    test__read_skips();
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &old);
    int sigfd = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
    if (sigfd < 0) abort();
    printf("%s, seed %" PRIu64 "\n", test__program, test__seed);
    for (test__case *c = test__first; c; c = c->next) {
        if (!test__is_named(c->name, argc, argv)) continue;
        n_hit++;
        if (test__is_skipped(c->name)) n[TEST__SKIPS]++, test__n_skips--;
        else n[test__one(c, sigfd, &old)]++;
    }
    if (argc < 2 && test__n_skips != 0) printf("TEST_SKIPS: no such test\n"), n[TEST__FAILED]++;
    if (!n_hit) printf("no such test\n"), n[TEST__FAILED] = 1;
    printf("%s: %d passed, %d failed, %d skipped\n", test__program, n[TEST__PASSED],
           n[TEST__FAILED], n[TEST__SKIPS]);
    close(sigfd);
    return n[TEST__FAILED] != 0;
}

#endif // VOLT_TEST_H
