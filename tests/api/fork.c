// SPDX-License-Identifier: MIT OR 0BSD
// A forked child: what it calls gives -ECHILD or does nothing, and its parent is not disturbed. All
// with the word that the kernel wipes in a child, and with process numbers, as before Linux 4.14.
// And a program that a task starts.
#define VOLT_FORK_WORD() (last_word = has_word ? volt__sys_fork_word() : NULL)
#define VOLT_GETPID() getpid()
static int has_word;
static unsigned *last_word; // that a runtime was given
#define VOLT_IMPLEMENTATION
#define VOLT_TRACE 1
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include "in_child.h"
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>

typedef struct {
    volt_frame frame;
    volt_waker *waker;
    int *n_polls;
} listener;
// Waits for a waker; counts how often it is polled.
static volt_poll listener_run(volt_cx *cx, void *arg) {
    listener *l = arg;
    if (COUNT(*l->n_polls) == 1) *l->waker = volt_waker_retain(cx);
    return volt_is_cancelled(cx) ? volt_ready(0) : volt_pending();
}
typedef struct {
    volt_rt *rt;
    int is_guest, fd[2], n_polls;
    volt_handle listener, mirror, bound, ended; // ended: a task that gave 3
    volt_waker waker;
} parent;

static void step(parent *p) {
    if (p->is_guest) CHECK(volt_rt_step(p->rt, 0) >= 0);
}
static void begin(parent *p, uint32_t workers, int is_guest) {
    volt_config c = test_config(workers);
    memset(p, 0, sizeof *p);
    p->is_guest = is_guest;
    c.is_guest = (uint32_t)is_guest;
    CHECK_EQ(volt_create(&c, &p->rt), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
    RT_SPAWN(p->rt, &p->listener, listener_run,
             (listener){ .waker = &p->waker, .n_polls = &p->n_polls });
    RT_SPAWN(p->rt, &p->mirror, mirror_run, (mirror){ .fd = p->fd[0], .cap = 8 });
    volt_spawn_options o = { .is_bound = 1 };
    CHECK_EQ(VOLT_RT_SPAWN_WITH(p->rt, &o, &p->bound, napper_run,
                                (napper){ .d = VOLT_NEVER }), 0);
    RT_SPAWN(p->rt, &p->ended, giver_run, (giver){ .value = 3 });
    while (READ(p->n_polls) == 0 || !volt__join_is_done(p->ended.task_)) step(p);
}
// A byte that is sent comes back: the descriptor is still waited for.
static void talk(parent *p) {
    char c = 0;
    CHECK_EQ(write(p->fd[1], "x", 1), 1);
    while (recv(p->fd[1], &c, 1, p->is_guest ? MSG_DONTWAIT : 0) != 1) step(p);
    CHECK_EQ(c, 'x');
}
static void end(parent *p) {
    volt_waker_release(p->waker);
    volt_cancel(&p->listener);
    volt_cancel(&p->bound);
    CHECK_EQ(close(p->fd[1]), 0);
    CHECK_EQ(volt_shutdown(p->rt, VOLT_NEVER), 0);
    int64_t result = -1;
    CHECK_EQ(volt_try_join(&p->ended, &result), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(volt_try_join(&p->listener, &result), 0);
    CHECK_EQ(volt_try_join(&p->bound, &result), 0);
    CHECK_EQ(volt_try_join(&p->mirror, &result), 0);
    CHECK(result == 0 || result == -ECANCELED); // end of file, or too late to see it
    CHECK_EQ(volt_destroy(p->rt), 0);
    test_check_heap();
}

static void is_refused(void *arg) {
    parent *p = (parent *)arg;
    static giver state;
    volt_handle h = { 0 };
    volt_spawn_options o = { .tag = 1 };
    int64_t result;
    CHECK_EQ(VOLT_RT_SPAWN(p->rt, &h, giver_run, (giver){ .value = 1 }), -ECHILD);
    CHECK_EQ(VOLT_RT_SPAWN_WITH(p->rt, &o, &h, giver_run, (giver){ .value = 1 }), -ECHILD);
    CHECK(!volt_handle_is_set(&h));
    CHECK(volt_task_create(p->rt, giver_run, sizeof(giver)) == NULL);
    CHECK_EQ(volt_block_on(p->rt, giver_run, &state), -ECHILD);
    CHECK_EQ(volt_join_sync(&p->listener, 0, &result), -ECHILD);
    CHECK_EQ(volt_shutdown(p->rt, VOLT_NEVER), -ECHILD);
    CHECK_EQ(volt_destroy(p->rt), -ECHILD);
    if (p->is_guest) CHECK_EQ(volt_rt_step(p->rt, 0), -ECHILD);
    CHECK_EQ(volt_rt_deadline(p->rt), VOLT_NEVER);
    volt_counters none = { 0 }, c;
    volt_stats(p->rt, &c);
    CHECK(memcmp(&c, &none, sizeof c) == 0);
    memset(&c, 1, sizeof c);
    CHECK_EQ(volt_worker_stats(p->rt, 0, &c), -ECHILD);
    CHECK(memcmp(&c, &none, sizeof c) == 0);
    CHECK_EQ(volt_dump(p->rt, STDOUT_FILENO, 0), -ECHILD);
    volt_latency_histograms histograms;
    volt_health_report health;
    CHECK_EQ(volt_trace(p->rt, STDOUT_FILENO), -ECHILD);
    CHECK_EQ(volt_histograms(p->rt, &histograms), -ECHILD);
    CHECK_EQ(volt_health(p->rt, &health), -ECHILD);
}
static void wakes_no_thread(void *arg) {
    parent *p = (parent *)arg;
    volt_wake(p->waker);
    volt_cancel(&p->listener);
    volt_cancel(&p->mirror);
    volt_cancel(&p->bound);
}
// They are copies: what the child joins and detaches is still the parent's.
static void gives_up_its_handles(void *arg) {
    parent *p = (parent *)arg;
    int64_t result = -1;
    CHECK_EQ(volt_try_join(&p->listener, &result), -EAGAIN);
    CHECK(volt_handle_is_set(&p->listener));
    volt_detach(&p->listener);
    volt_detach(&p->mirror);
    CHECK(!volt_handle_is_set(&p->listener) && !volt_handle_is_set(&p->mirror));
    CHECK_EQ(volt_try_join(&p->ended, &result), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(volt_try_join(&p->ended, &result), -EINVAL);
}
static void closes_its_own(void *arg) {
    parent *p = (parent *)arg;
    volt_rt_close(p->rt, p->fd[0]);
    CHECK_EQ(fcntl(p->fd[0], F_GETFD), -1);
    CHECK_EQ(errno, EBADF);
}
#ifdef VOLT__TSAN // lets a child start no threads
enum { NEW_WORKERS = 1 };
#else
enum { NEW_WORKERS = 2 };
#endif
static void runs_a_new_one(void *arg) {
    static giver state = { .value = 42 };
    volt_config c = test_config(NEW_WORKERS);
    (void)arg;
    CHECK_EQ(volt_run(&c, giver_run, &state), 42);
}
// A worker tells what it has counted when it goes to sleep: a few times after this call.
static uint64_t unparks_of(parent *p) {
    volt_counters c;
    volt_stats(p->rt, &c);
    for (uint64_t parks = c.parks; c.parks < parks + 3; volt_stats(p->rt, &c)) talk(p);
    return c.unparks;
}
static void beside_children(uint32_t workers, int is_guest) {
    static void (*const what[])(void *) = { is_refused, wakes_no_thread, gives_up_its_handles,
                                              closes_its_own, runs_a_new_one };
    parent p;
    begin(&p, workers, is_guest);
    uint64_t unparks = unparks_of(&p);
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        in_child(what[i], &p);
        uint64_t now = unparks_of(&p);
        CHECK_EQ(READ(p.n_polls), 1); // no wake-up has come through
        if (workers == 1) CHECK_EQ(now, unparks);
    }
    volt_wake(p.waker); // the parent's own does
    while (READ(p.n_polls) == 1) step(&p);
    end(&p);
}
TEST(children_do_not_disturb_their_parent) {
    for (has_word = 0; has_word < 2; has_word++)
        EACH_WORKERS(w) beside_children(w, 0);
}
TEST(children_do_not_disturb_a_guest) {
    for (has_word = 0; has_word < 2; has_word++) beside_children(1, 1);
}
// The parent has begun a shutdown, and waits for the task that the child also has.
static void destroys_the_created(void *state) { volt_task_destroy(state); }
TEST_OF_THREADS(child_that_destroys_a_task_does_not_wake_its_parent) {
    volt_config c = test_config(1);
    volt_counters before, after;
    volt_rt *rt;
    CHECK_EQ(volt_create(&c, &rt), 0);
    void *state = volt_task_create(rt, giver_run, sizeof(giver));
    CHECK_EQ(volt_shutdown(rt, VOLT_MS(1)), 1);
    struct pollfd p = { .fd = rt->workers[0]->reactor.evfd, .events = POLLIN };
    // the worker has seen the shutdown, and sleeps again
    UNTIL(volt__load_acq(&rt->acks) == 0 && volt__idle_is_parked(&rt->idle, 0) &&
          poll(&p, 1, 0) == 0);
    volt_stats(rt, &before);
    in_child(destroys_the_created, state);
    volt_stats(rt, &after);
    CHECK(poll(&p, 1, 0) == 0 && after.unparks == before.unparks);
    volt_task_destroy(state);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    CHECK_EQ(volt_destroy(rt), 0);
}
static int is_mapped(void *page) {
    unsigned char pages;
    if (mincore(page, 1, &pages) == 0) return 1;
    CHECK_EQ(errno, ENOMEM);
    return 0;
}
// Also with one whose creation fails after the word was mapped.
TEST(fork_word_is_unmapped_with_its_runtime) {
    has_word = 1;
    uint32_t *word = volt__sys_fork_word();
    if (!word) SKIP("no MADV_WIPEONFORK");
    CHECK(is_mapped(word));
    volt__sys_unmap(NULL, word, sizeof *word);
    CHECK(!is_mapped(word));
    volt_rt *rt = create_on(1);
    word = rt->fork_word;
    CHECK(word && word == last_word && is_mapped(word));
    destroy(rt);
    CHECK(!is_mapped(word));
    for (size_t n = 2; n < 4; n++) { // that of the runtime itself comes before the word
        volt_config c = test_config(1);
        rt = NULL;
        last_word = NULL;
        test_heap.fail_at = test_heap.n_allocs + n;
        CHECK_EQ(volt_create(&c, &rt), -ENOMEM);
        test_heap.fail_at = 0;
        CHECK(last_word && !is_mapped(last_word));
        test_check_heap();
    }
}

// ---- a program that a task starts: the threads of a runtime block its signals

// As the manual has it, word by word.
static int start_child(pid_t *pid, char *const argv[], char *const envp[]) {
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int rc = posix_spawnattr_init(&attributes);
    if (rc != 0) return -rc;
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    rc = posix_spawn(pid, argv[0], NULL, &attributes, argv, envp);
    posix_spawnattr_destroy(&attributes);
    return -rc;
}
static int start_child_carelessly(pid_t *pid, char *const argv[], char *const envp[]) {
    return -posix_spawn(pid, argv[0], NULL, NULL, argv, envp);
}
typedef struct {
    volt_frame frame;
    volt_job job;
    int (*start)(pid_t *pid, char *const argv[], char *const envp[]);
    int is_on_pool, rc;
    pid_t pid;
} starter;
static int start_sleep(void *arg) {
    static char program[] = "/bin/sleep", seconds[] = "1000";
    char *const argv[] = { program, seconds, NULL }, *const envp[] = { NULL };
    starter *s = (starter *)arg;
    return s->start(&s->pid, argv, envp);
}
static volt_poll starter_run(volt_cx *cx, void *arg) {
    starter *s = (starter *)arg;
    VOLT_BEGIN(cx, s);
    if (s->is_on_pool) VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, start_sleep, s));
    else s->rc = start_sleep(s);
    VOLT_END(s->rc);
}
static pid_t start_from_a_task(volt_rt *rt, int is_careful, int is_on_pool) {
    starter s = { .start = is_careful ? start_child : start_child_carelessly,
                  .is_on_pool = is_on_pool };
    CHECK_EQ(volt_block_on(rt, starter_run, &s), 0);
    CHECK(s.pid > 0);
    return s.pid;
}
static int blocks(pid_t pid, int number) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    CHECK(n > 0 && close(fd) == 0);
    text[n] = 0;
    const char *mask = strstr(text, "SigBlk:");
    CHECK(mask);
    return (int)(strtoull(mask + 7, NULL, 16) >> (number - 1) & 1);
}
TEST_OF_THREADS(child_started_as_the_manual_says_is_ended_by_sigterm) {
    if (access("/bin/sleep", X_OK) != 0) SKIP("no /bin/sleep");
    volt_rt *rt = create_on(2);
    for (int is_on_pool = 0; is_on_pool < 2; is_on_pool++) {
        int status = 0;
        pid_t pid = start_from_a_task(rt, 1, is_on_pool);
        CHECK_EQ(kill(pid, SIGTERM), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        pid = start_from_a_task(rt, 0, is_on_pool);
        CHECK(blocks(pid, SIGTERM)); // so that it would go on
        CHECK_EQ(kill(pid, SIGKILL), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
    }
    destroy(rt);
}
