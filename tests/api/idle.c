// SPDX-License-Identifier: MIT OR 0BSD
// Nothing to do costs nothing: no wake-up, no look, no switch, on any number of workers.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"
#include <sys/socket.h>

// ---- what the threads of all runtimes of this process did so far

typedef struct {
    // of the threads named volt-...: how many do not sleep; switches voluntary and not
    uint64_t n_threads, n_awake, switches;
    uint64_t parks, maintenances, useless, looks;
} activity;

static uint64_t number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    CHECK(at);
    return strtoull(at + strlen(key), NULL, 10);
}
static int read_status(const char *tid, char *text, size_t size) {
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}
// The sanitizers run threads of their own: only those named volt-... count.
static void add_threads(activity *a) {
    char text[4096];
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || !read_status(e->d_name, text, sizeof text)) continue;
        if (!strstr(text, "Name:\tvolt-")) continue;
        a->n_threads++;
        a->n_awake += !strstr(text, "State:\tS");
        a->switches += number_after(text, "\nvoluntary_ctxt_switches:");
        a->switches += number_after(text, "\nnonvoluntary_ctxt_switches:");
    }
    closedir(d);
}
static void add_runtime(activity *a, volt_rt *rt) {
    volt_counters s;
    volt_stats(rt, &s);
    a->parks += s.parks;
    a->maintenances += s.event_polls;
    a->useless += s.spurious_unparks;
    a->looks += s.watchdog_scans;
}
static activity activity_of(volt_rt **rt, int n) {
    activity a;
    memset(&a, 0, sizeof a);
    add_threads(&a);
    for (int i = 0; i < n; i++) add_runtime(&a, rt[i]);
    return a;
}
static int is_same(const activity *a, const activity *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static void pass_time(volt_time d) {
    struct timespec t = { (time_t)(d / 1000000000), (long)(d % 1000000000) };
    while (nanosleep(&t, &t) < 0) {}
}
// All asleep, the watchdog that may still be running included, and it stays so for a while.
static activity settle(volt_rt **rt, int n) {
    for (;;) {
        activity a = activity_of(rt, n);
        pass_time(VOLT_MS(20));
        activity b = activity_of(rt, n);
        if (is_same(&a, &b) && b.n_awake == 0) return b;
    }
}
static void check_silent(volt_rt **rt, int n, const activity *before, volt_time d) {
    pass_time(d);
    activity now = activity_of(rt, n);
    CHECK_EQ(now.n_threads, before->n_threads);
    CHECK_EQ(now.switches - before->switches, 0);
    CHECK_EQ(now.parks - before->parks, 0);
    CHECK_EQ(now.maintenances - before->maintenances, 0);
    CHECK_EQ(now.looks - before->looks, 0);
}

// ---- work of all kinds, then nothing

typedef struct {
    volt_frame frame;
    int fd, i;
    int64_t rc;
    char c;
} talker;
static volt_poll talker_run(volt_cx *cx, void *arg) {
    talker *t = arg;
    VOLT_BEGIN(cx, t);
    for (t->i = 0; t->i < 20; t->i++) {
        VOLT_AWAIT(t->rc, volt_write(cx, t->fd, &t->c, 1));
        VOLT_AWAIT(t->rc, volt_read(cx, t->fd, &t->c, 1));
        if (t->rc <= 0) break;
        if (t->i % 4 == 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    volt_close(cx, t->fd);
    VOLT_END(0);
}
enum { TALKERS = 200 };
static void work(volt_rt *rt) {
    static volt_handle h[2 * TALKERS];
    for (int i = 0; i < TALKERS; i++) {
        int fd[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        for (int k = 0; k < 2; k++)
            RT_SPAWN(rt, &h[2 * i + k], talker_run, (talker){ .fd = fd[k] });
    }
    for (int i = 0; i < 2 * TALKERS; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
}
static volt_rt *create_all(uint32_t workers) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.start_all_workers = 1;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
static void destroy_all(volt_rt **rt, int n) {
    for (int i = 0; i < n; i++) {
        CHECK_EQ(volt_shutdown(rt[i], VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt[i]), 0);
    }
    test_check_heap();
}

static const uint32_t sizes[] = { 1, 2, 64 };
enum { SIZES = 3, THREADS = 1 + 2 + 64 };

TEST(runtime_is_silent_before_and_after_work) {
    volt_rt *rt[SIZES];
    for (int i = 0; i < SIZES; i++) rt[i] = create_all(sizes[i]);
    activity a = settle(rt, SIZES);
    CHECK_EQ(a.n_threads, THREADS);
    check_silent(rt, SIZES, &a, VOLT_MS(300));
    for (int i = 0; i < SIZES; i++) work(rt[i]);
    activity b = settle(rt, SIZES);
    CHECK(b.switches > a.switches && b.parks > a.parks); // the instruments work
    check_silent(rt, SIZES, &b, VOLT_S(3));
    destroy_all(rt, SIZES);
}

// Tasks that wait: for a descriptor, for a token, for ten seconds.
typedef struct {
    volt_frame frame;
    int fd, n_waiting, rc;
    int *waiting;
    volt_token *token;
    volt_arm arm[3];
    char c;
} dozer;
static volt_poll dozer_run(volt_cx *cx, void *arg) {
    dozer *d = arg;
    VOLT_BEGIN(cx, d);
    COUNT(*d->waiting);
    VOLT_AWAIT(d->rc, VOLT_SELECT(VOLT_ARM(&d->arm[0], volt_read(cx, d->fd, &d->c, 1)),
                                  VOLT_ARM(&d->arm[1], volt_token_wait(cx, d->token)),
                                  VOLT_ARM(&d->arm[2], volt_sleep(cx, VOLT_S(10)))));
    VOLT_END(d->rc);
}
TEST(waiting_tasks_cause_no_wake_up) {
    volt_rt *rt[SIZES];
    int fd[2], waiting = 0;
    volt_token token;
    memset(&token, 0, sizeof token);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    for (int i = 0; i < SIZES; i++) {
        rt[i] = create_all(sizes[i]);
        for (int k = 0; k < 50; k++) {
            dozer d = { .fd = fd[0], .waiting = &waiting, .token = &token };
            RT_SPAWN(rt[i], NULL, dozer_run, d);
        }
    }
    UNTIL(READ(waiting) == SIZES * 50);
    activity a = settle(rt, SIZES);
    check_silent(rt, SIZES, &a, VOLT_MS(1500));
    destroy_all(rt, SIZES);
    close(fd[0]);
    close(fd[1]);
}

// ---- one event: its worker wakes, the watchdog at most one more, then silence

typedef struct {
    volt_frame frame;
    int fd, *n_read;
    int64_t rc;
    char c;
} reader;
static volt_poll reader_run(volt_cx *cx, void *arg) {
    reader *r = arg;
    VOLT_BEGIN(cx, r);
    for (;;) {
        VOLT_AWAIT(r->rc, volt_read(cx, r->fd, &r->c, 1));
        if (r->rc <= 0) break;
        COUNT(*r->n_read);
    }
    VOLT_END(r->rc);
}
static int compare_counts(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}
enum { EVENTS = 9 };
// Median number of parks that one event brings about; after each all is silent again.
static uint64_t parks_per_event(volt_rt *rt, int fd, int *n_read, volt_waker w) {
    uint64_t parks[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        int read_before = READ(*n_read);
        activity a = settle(&rt, 1);
        if (fd >= 0) CHECK_EQ(write(fd, "x", 1), 1);
        else volt_wake(w);
        if (fd >= 0) UNTIL(READ(*n_read) == read_before + 1);
        else UNTIL(activity_of(&rt, 1).parks > a.parks); // the woken thread may wait for its turn
        activity b = settle(&rt, 1);
        parks[i] = b.parks - a.parks;
        CHECK(parks[i] >= 1 && parks[i] <= 100);
        check_silent(&rt, 1, &b, VOLT_MS(50));
    }
    qsort(parks, EVENTS, sizeof parks[0], compare_counts);
    return parks[EVENTS / 2];
}
TEST(event_wakes_its_worker_and_at_most_one_more) {
    for (int i = 0; i < SIZES; i++) {
        volt_rt *rt = create_all(sizes[i]);
        int fd[2], n_read = 0;
        volt_waker none = { NULL };
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        RT_SPAWN(rt, NULL, reader_run, (reader){ .fd = fd[0], .n_read = &n_read });
        uint64_t median = parks_per_event(rt, fd[1], &n_read, none);
        printf("%u workers: %" PRIu64 " parks per event\n", sizes[i], median);
        CHECK(median <= (sizes[i] > 1 ? 2 : 1));
        destroy_all(&rt, 1);
        close(fd[0]);
        close(fd[1]);
    }
}

// The same for a wake-up from another thread.
typedef struct {
    volt_frame frame;
    volt_waker *waker;
    int is_known, *is_waiting;
} wakee;
static volt_poll wakee_run(volt_cx *cx, void *arg) {
    wakee *w = arg;
    if (!w->is_known) *w->waker = volt_waker_retain(cx);
    w->is_known = 1;
    WRITE(*w->is_waiting, 1);
    return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
}
TEST(wake_from_outside_wakes_at_most_two_workers) {
    for (int i = 0; i < SIZES; i++) {
        volt_rt *rt = create_all(sizes[i]);
        volt_waker w = { NULL };
        int is_waiting = 0;
        RT_SPAWN(rt, NULL, wakee_run, (wakee){ .waker = &w, .is_waiting = &is_waiting });
        UNTIL(READ(is_waiting));
        uint64_t median = parks_per_event(rt, -1, &is_waiting, w);
        printf("%u workers: %" PRIu64 " parks per wake-up\n", sizes[i], median);
        CHECK(median <= (sizes[i] > 1 ? 2 : 1));
        volt_waker_release(w);
        destroy_all(&rt, 1);
    }
}

// volt_run: the caller's thread is worker 0. A task of its own sees the counters stand still.
typedef struct {
    volt_frame frame;
    volt_counters before, after;
    int is_quiet;
} sleeper;
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    sleeper *s = arg;
    VOLT_BEGIN(cx, s);
    while (!s->is_quiet) {
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(200)));
        volt_stats(cx->rt_, &s->before);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(200)));
        volt_stats(cx->rt_, &s->after);
        // its own wake-up, and the one of the watchdog from 200 ms ago
        s->is_quiet = s->after.parks - s->before.parks <= 2;
    }
    VOLT_END(0);
}
TEST(run_that_sleeps_is_silent) {
    EACH_WORKERS(w) {
        sleeper s;
        memset(&s, 0, sizeof s);
        CHECK_EQ(run_on(w, sleeper_run, &s), 0);
    }
}

// ---- with .spin_us

static volt_rt *create_watched(uint32_t workers, uint32_t spin_us, uint32_t watchdog_us) {
    volt_config c = test_config(workers);
    volt_rt *rt = NULL;
    c.start_all_workers = 1;
    c.spin_us = spin_us;
    c.watchdog_us = watchdog_us;
    CHECK_EQ(volt_create(&c, &rt), 0);
    return rt;
}
// Nothing but a spin moves a task of a worker that is busy.
static volt_rt *create_spinning(uint32_t workers, uint32_t spin_us) {
    return create_watched(workers, spin_us, UINT32_MAX);
}
static void give_once(volt_rt *rt) {
    volt_handle h;
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 1 });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
}
static uint32_t count_parked(const volt_rt *rt) {
    return volt__idle_count_others(&rt->idle, 2 * VOLT_MAX_WORKERS, 0);
}
// Returns when one worker spins and the others sleep. Starts a spin if none is in progress.
static void await_spin(volt_rt *rt) {
    const uint32_t n = rt->n_workers;
    for (;; give_once(rt)) {
        UNTIL(count_parked(rt) >= n - 1);
        UNTIL((READ(rt->is_spinning) && (n == 1 || READ(rt->idle.searching))) ||
              count_parked(rt) == n);
        if (count_parked(rt) < n) return;
    }
}
// Takes the counters. As a task it publishes those of its own worker first, so they are exact.
typedef struct {
    volt_frame frame;
    volt_counters *out;
} teller;
static volt_poll teller_run(volt_cx *cx, void *arg) {
    teller *t = (teller *)arg;
    VOLT_BEGIN(cx, t);
    volt_stats(volt_cx_rt(cx), t->out);
    VOLT_END(0);
}
static void tell(volt_rt *rt, volt_counters *out) {
    volt_handle h;
    RT_SPAWN(rt, &h, teller_run, (teller){ .out = out });
    CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
}
// While one worker spins, a spawn from outside needs no wake-up. One that comes before the spinning
// worker counts as searching may cause one: a worker that has just parked was counted until then.
TEST(spinning_worker_takes_tasks_without_a_wake_up) {
    for (uint32_t workers = 1; workers <= 4; workers *= 4) {
        volt_rt *rt = create_spinning(workers, 1000000);
        uint64_t n_woken = 0;
        for (int i = 0; i < 100; i++) {
            volt_counters before, after;
            await_spin(rt);
            tell(rt, &before);
            await_spin(rt);
            tell(rt, &after);
            n_woken += after.unparks - before.unparks;
        }
        CHECK(workers == 1 ? n_woken == 0 : n_woken < 20);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
typedef struct {
    volt_frame frame;
    int *n_run;
} child;
static volt_poll child_run(volt_cx *cx, void *arg) {
    child *c = (child *)arg;
    VOLT_BEGIN(cx, c);
    __atomic_add_fetch(c->n_run, 1, __ATOMIC_RELEASE);
    VOLT_END(0);
}
// Keeps a worker until another one has run some of its children.
typedef struct {
    volt_frame frame;
    volt_group group;
    int *turn, n_children, n_run, rc;
} hog;
static volt_poll hog_run(volt_cx *cx, void *arg) {
    hog *h = (hog *)arg;
    VOLT_BEGIN(cx, h);
    __atomic_store_n(h->turn, 1, __ATOMIC_RELEASE);
    UNTIL(READ(*h->turn) == 2 && READ(cx->rt_->is_spinning));
    for (int i = 0; i < h->n_children; i++)
        GROUP_SPAWN(&h->group, child_run, (child){ .n_run = &h->n_run });
    UNTIL(READ(h->n_run) > 0);
    VOLT_AWAIT(h->rc, volt_group_wait(cx, &h->group));
    VOLT_END(0);
}
// Spins of a second would show: ten rounds take less than two seconds in all.
static void run_beside_spinner(int n_children, uint32_t watchdog_us) {
    volt_time start = volt_now();
    for (int i = 0; i < 10; i++) {
        volt_rt *rt = create_watched(2, 1000000, watchdog_us);
        int turn = 0;
        volt_handle h, other;
        RT_SPAWN(rt, &h, hog_run, (hog){ .turn = &turn, .n_children = n_children });
        UNTIL(READ(turn) == 1);
        RT_SPAWN(rt, &other, giver_run, (giver){ .value = 1 }); // wakes the other worker
        CHECK_EQ(volt_join_sync(&other, VOLT_NEVER, NULL), 0);
        __atomic_store_n(&turn, 2, __ATOMIC_RELEASE);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
    }
    CHECK(volt_now() - start < VOLT_S(2));
    test_check_heap();
}
TEST(spinning_worker_steals) { run_beside_spinner(64, UINT32_MAX); }
// The only child is in the LIFO slot, from which nothing but a rescue takes it.
TEST(spinning_worker_rescues_a_stuck_one) { run_beside_spinner(1, 0); }
TEST(spin_ends_with_the_runtime) {
    volt_time start = volt_now();
    for (int i = 0; i < 10; i++) {
        volt_rt *rt = create_spinning(1, 1000000);
        give_once(rt);
        UNTIL(READ(rt->is_spinning));
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
    }
    CHECK(volt_now() - start < VOLT_S(2));
    test_check_heap();
}
// A wake-up without a task, such as that of the watchdog after each burst, begins no spin: one
// of a second would show.
TEST(worker_that_is_woken_without_a_task_does_not_spin) {
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        volt_rt *rt = create_spinning(workers, 1000000);
        volt_counters before, after;
        UNTIL(count_parked(rt) == workers);
        volt_stats(rt, &before);
        volt__reactor_unpark(&rt->workers[0]->reactor);
        do volt_stats(rt, &after);
        while (after.parks == before.parks || count_parked(rt) < workers);
        CHECK(after.busy_ns - before.busy_ns < (uint64_t)VOLT_MS(500));
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        CHECK_EQ(volt_destroy(rt), 0);
    }
    test_check_heap();
}
TEST(spinning_runtime_is_silent_after_its_time) {
    volt_rt *rt[SIZES];
    for (int i = 0; i < SIZES; i++) rt[i] = create_spinning(sizes[i], 2000);
    for (int i = 0; i < SIZES; i++) work(rt[i]);
    activity a = settle(rt, SIZES);
    check_silent(rt, SIZES, &a, VOLT_MS(300));
    destroy_all(rt, SIZES);
}
