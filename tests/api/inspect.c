// SPDX-License-Identifier: MIT OR 0BSD
// Contents of a dump: tasks and workers, as text and as JSON, while they come and go.
#define _GNU_SOURCE 1 // before the first libc header
#define VOLT_IMPLEMENTATION
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

// The seam: a write is interrupted, takes a little at a time, and fails at last.
static int interrupts, most_at_once, writes_left = -1;
static ssize_t test_write(int fd, const void *buf, size_t len);
#define write test_write
#include "volt.h"
#undef write
#include "test.h"
#include "tasks.h"
#include "json.h"
#include <sys/resource.h>
#include <sys/socket.h>

static ssize_t test_write(int fd, const void *buf, size_t len) {
    if (interrupts > 0) {
        interrupts--;
        errno = EINTR;
        return -1;
    }
    if (writes_left == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (writes_left > 0) writes_left--;
    return write(fd, buf, most_at_once && len > (size_t)most_at_once ? (size_t)most_at_once : len);
}

// ---- tasks that wait, in every way there is

typedef struct {
    volt_frame frame;
    volt_token *stop;
    volt_token_link link;
    int fd, rc;
    char byte;
    const char *name;
} waits;
static volt_poll reads(volt_cx *cx, void *arg) {
    waits *w = (waits *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_with_token(cx, &w->link, w->stop, volt_read(cx, w->fd, &w->byte, 1)));
    VOLT_END(0);
}
static volt_poll sleeps(volt_cx *cx, void *arg) {
    waits *w = (waits *)arg;
    VOLT_BEGIN(cx, w);
    if (w->name) volt_name(cx, w->name);
    VOLT_AWAIT(w->rc, volt_with_token(cx, &w->link, w->stop, volt_sleep(cx, VOLT_S(1000))));
    VOLT_END(0);
}
static volt_poll hears(volt_cx *cx, void *arg) {
    waits *w = (waits *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_token_wait(cx, w->stop));
    VOLT_END(0);
}
// Until no task is queued or running any more.
static void settle(volt_rt *rt, sink *s, int n_waiting) {
    do dump(rt, s, 0);
    while (count(s, ": waiting at ") < n_waiting);
}
TEST_OF_THREADS(dump_shows_where_each_task_waits_and_for_what) {
    EACH_WORKERS(n) {
        volt_rt *rt = create_on(n);
        volt_token stop;
        sink s = { .text = NULL };
        char line[512], want[256];
        int fd[2];
        memset(&stop, 0, sizeof stop);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        RT_SPAWN(rt, NULL, reads, (waits){ .stop = &stop, .fd = fd[0] });
        int spawn_line = __LINE__ - 1;
        RT_SPAWN(rt, NULL, sleeps, (waits){ .stop = &stop });
        RT_SPAWN(rt, NULL, hears, (waits){ .stop = &stop });
        RT_SPAWN(rt, NULL, sleeps, (waits){ .stop = &stop, .name = "a \"named\" one\\\n" });
        settle(rt, &s, 4);
        CHECK_EQ(count(&s, "task "), 4);
        line_of(&s, " reads, ", line, sizeof line);
        snprintf(want, sizeof want, " old, spawned at %s:%d: waiting at %s:", __FILE__, spawn_line,
                 __FILE__);
        CHECK(strstr(line, want));
        snprintf(want, sizeof want, " for readable fd %d, 0.", fd[0]);
        CHECK(strstr(line, want));
        line_of(&s, " sleeps, ", line, sizeof line);
        CHECK(strstr(line, " for timer, 0."));
        line_of(&s, " hears, ", line, sizeof line);
        CHECK(strstr(line, " for token, 0."));
        CHECK_EQ(count(&s, "a \"named\" one"), 1);
        dump(rt, &s, VOLT_DUMP_JSON);
        volt_counters c;
        volt_stats(rt, &c);
        CHECK_EQ(read_json(&s), 4 + c.workers_started);
        CHECK_EQ(count(&s, "\"state\":\"waiting\""), 4);
        CHECK_EQ(count(&s, "\"name\":\"reads\""), 1);
        CHECK_EQ(count(&s, "\"a \\\"named\\\" one\\\\\\u000a\""), 1);
        snprintf(want, sizeof want, "\"for\":\"readable\",\"fd\":%d,", fd[0]);
        CHECK_EQ(count(&s, want), 1);
        dump(rt, &s, VOLT_DUMP_CRASH);
        CHECK_EQ(count(&s, "task "), 4);
        volt_token_cancel(&stop);
        volt_rt_close(rt, fd[0]);
        close(fd[1]);
        do dump(rt, &s, 0);
        while (count(&s, "task ") > 0);
        drop(&s);
        destroy(rt);
    }
}
// ---- and the rest of it

typedef struct {
    volt_frame frame;
    volt_token *stop;
    volt_token_link link;
    volt_group group;
    volt_job job;
    volt_handle other;
    volt_sem none;
    volt_event event;
    volt_queue queue;
    volt_queue_node *node;
    int fd, rc;
    int *go_on;
    char bytes[65536];
} others;
static volt_poll hands(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    volt_name(cx, NULL); // keeps the name
    return READ(*o->go_on) || volt_is_cancelled(cx) ? volt_ready(0) : volt_pending();
}
static volt_poll nevers(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_sleep_forever(cx));
    VOLT_END(0);
}
static volt_poll joins(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    SPAWN(&o->other, nevers, *o);
    VOLT_AWAIT(o->rc, volt_join(cx, &o->other));
    volt_detach(&o->other);
    VOLT_END(0);
}
static volt_poll writes(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    do VOLT_AWAIT(o->rc, volt_write(cx, o->fd, o->bytes, sizeof o->bytes));
    while (o->rc > 0);
    VOLT_END(0);
}
static volt_poll groups(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    GROUP_SPAWN(&o->group, nevers, *o);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, &o->group));
    VOLT_AWAIT(volt_group_close(cx, &o->group));
    VOLT_END(0);
}
static volt_poll acquires(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_sem_acquire(cx, &o->none, 1));
    VOLT_END(0);
}
static volt_poll looks_out(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_event_wait(cx, &o->event));
    VOLT_END(0);
}
static volt_poll pops(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_queue_pop(cx, &o->queue, &o->node));
    VOLT_END(0);
}
static int blocks(void *arg) {
    int *go_on = (int *)arg;
    UNTIL(READ(*go_on));
    return 0;
}
static volt_poll asks(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_blocking(cx, &o->job, blocks, o->go_on));
    VOLT_END(0);
}
// Each large state has a slab of its own. The number of slabs continues beyond 32 bits.
typedef struct {
    volt_frame frame;
    char bytes[VOLT_SLAB_SIZE / 4];
} giant;
static volt_poll giant_run(volt_cx *cx, void *arg) {
    giant *l = (giant *)arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(volt_sleep_forever(cx));
    VOLT_END(0);
}
TEST(ids_differ_and_dumps_are_complete_beyond_2_32_slabs) {
    enum { N = 6 };
    static giant l;
    volt_rt *rt = create_on(1);
    volt_handle h[N];
    uint64_t id[N];
    sink s = { .text = NULL };
    char want[64];
    for (int i = 0; i < N; i++) {
        if (i == N / 2) rt->slabs.n_created = UINT32_MAX - 1;
        RT_SPAWN(rt, &h[i], giant_run, l);
        id[i] = volt_handle_id(&h[i]);
        CHECK(id[i] != 0);
        for (int k = 0; k < i; k++) CHECK(id[i] > id[k]);
    }
    dump(rt, &s, 0);
    CHECK_EQ(count(&s, "task "), N);
    for (int i = 0; i < N; i++) {
        snprintf(want, sizeof want, "task %llu.%u giant_run,", (unsigned long long)(id[i] >> 16),
                 (unsigned)id[i] & 0xffff);
        CHECK_EQ(count(&s, want), 1);
        volt_detach(&h[i]);
    }
    drop(&s);
    destroy(rt);
}
TEST_OF_THREADS(dump_names_each_kind_of_wait) {
    static others o;
    volt_rt *rt = create_on(2);
    sink s = { .text = NULL };
    int fd[2], go_on = 0;
    memset(&o, 0, sizeof o);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    o.fd = fd[0];
    o.go_on = &go_on;
    volt_fn *fns[] = { hands, joins, writes, groups, asks, acquires, looks_out, pops };
    for (int i = 0; i < 8; i++)
        CHECK_EQ(volt_rt_spawn_at(rt, NULL, fns[i], &o, sizeof o, "a place"), 0);
    do dump(rt, &s, 0);
    while (count(&s, ": waiting") < 10);
    CHECK_EQ(count(&s, "for forever"), 2);
    CHECK_EQ(count(&s, "for join"), 1);
    CHECK_EQ(count(&s, "for writable fd "), 1);
    CHECK_EQ(count(&s, "for group"), 1);
    CHECK_EQ(count(&s, "for blocking"), 1);
    CHECK_EQ(count(&s, "for lock"), 1);
    CHECK_EQ(count(&s, "for event"), 1);
    CHECK_EQ(count(&s, "for channel"), 1);
    CHECK_EQ(count(&s, "for waker"), 1);
    CHECK_EQ(count(&s, "a place, "), 8); // a site without a function is the name
    dump(rt, &s, VOLT_DUMP_JSON);
    CHECK_EQ(read_json(&s), 2 + 10);
    WRITE(go_on, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    close(fd[0]);
    close(fd[1]);
    drop(&s);
    CHECK_EQ(volt_destroy(rt), 0);
}
static volt_poll accepts(volt_cx *cx, void *arg) {
    waits *w = (waits *)arg;
    VOLT_BEGIN(cx, w);
    VOLT_AWAIT(w->rc, volt_with_token(cx, &w->link, w->stop, volt_accept(cx, w->fd)));
    VOLT_END(0);
}
// No descriptor is left: the accept waits, tries again, and waits.
TEST_OF_THREADS(dump_names_wait_of_accept_that_is_out_of_descriptors) {
    struct rlimit before, none;
    volt_rt *rt = create_on(1);
    volt_token stop;
    sink s = { .text = NULL };
    char want[64];
    memset(&stop, 0, sizeof stop);
    int fd = volt_listen("127.0.0.1", 0, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    RT_SPAWN(rt, NULL, accepts, (waits){ .stop = &stop, .fd = fd });
    snprintf(want, sizeof want, " for back-off fd %d, 0.", fd);
    do dump(rt, &s, 0);
    while (count(&s, want) == 0);
    snprintf(want, sizeof want, "\"for\":\"back-off\",\"fd\":%d,", fd);
    do dump(rt, &s, VOLT_DUMP_JSON);
    while (count(&s, want) == 0);
    CHECK_EQ(read_json(&s), 2);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    volt_token_cancel(&stop);
    do dump(rt, &s, 0);
    while (count(&s, "task ") > 0);
    CHECK_EQ(close(fd), 0);
    drop(&s);
    destroy(rt);
}
static volt_poll groups_at(volt_cx *cx, void *arg) {
    others *o = (others *)arg;
    VOLT_BEGIN(cx, o);
    CHECK_EQ(volt_group_spawn_at(cx, &o->group, nevers, o, sizeof *o, "caf\xc3\tmember"), 0);
    VOLT_AWAIT(o->rc, volt_group_wait(cx, &o->group));
    VOLT_AWAIT(volt_group_close(cx, &o->group));
    VOLT_END(0);
}
// The name of its file ends in the middle of a character.
TEST_OF_THREADS(dump_shows_site_that_group_spawn_was_given) {
    static others o;
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    CHECK_EQ(volt_rt_spawn_at(rt, NULL, groups_at, &o, sizeof o, "a place"), 0);
    settle(rt, &s, 2);
    CHECK_EQ(count(&s, " member, "), 1);
    dump(rt, &s, VOLT_DUMP_JSON);
    CHECK_EQ(read_json(&s), 1 + 2);
    CHECK_EQ(count(&s, "\"name\":\"member\""), 1);
    CHECK_EQ(count(&s, "\"spawned\":\"caf\\ufffd\""), 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    drop(&s);
    CHECK_EQ(volt_destroy(rt), 0);
}
TEST_OF_THREADS(dump_is_complete_despite_short_and_interrupted_writes) {
    volt_rt *rt = create_on(1);
    int n_ended = 0, fd[2];
    char got[4096];
    sink s = { .text = NULL };
    for (int i = 0; i < 20; i++)
        RT_SPAWN(rt, NULL, napper_run, (napper){ .d = VOLT_S(1000), .n_ended = &n_ended });
    do dump(rt, &s, 0);
    while (count(&s, ": waiting at ") < 20);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    interrupts = 2;
    most_at_once = 100;
    CHECK_EQ(volt_dump(rt, fd[0], 0), 0);
    CHECK_EQ(interrupts, 0);
    ssize_t n = recv(fd[1], got, sizeof got, MSG_DONTWAIT);
    CHECK(n > 100 && n < (ssize_t)sizeof got);
    CHECK(n > (ssize_t)s.len / 2 && got[n - 1] == '\n'); // ages may have another digit
    writes_left = 3;
    CHECK_EQ(volt_dump(rt, fd[0], 0), -ENOSPC);
    writes_left = -1;
    interrupts = most_at_once = 0;
    s.fail_at = 1;
    s.n_puts = 0;
    s.rc = 5; // more than 0 is none
    s.len = 0;
    CHECK_EQ(volt_dump_to(rt, put, &s, 0), 0);
    close(fd[0]);
    close(fd[1]);
    drop(&s);
    destroy(rt);
}
TEST_OF_THREADS(dump_shows_ended_tasks_that_are_held) {
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    volt_handle h = { NULL };
    RT_SPAWN(rt, &h, giver_run, (giver){ .value = 1 });
    do dump(rt, &s, 0);
    while (count(&s, ": ended") != 1);
    CHECK_EQ(read_json((dump(rt, &s, VOLT_DUMP_JSON), &s)), 2);
    volt_detach(&h);
    drop(&s);
    destroy(rt);
}
typedef struct {
    volt_frame frame;
    uint64_t *id;
    volt_token *stop;
    int rc;
} known;
static volt_poll known_run(volt_cx *cx, void *arg) {
    known *k = (known *)arg;
    VOLT_BEGIN(cx, k);
    *k->id = volt_task_id(cx);
    VOLT_AWAIT(k->rc, volt_token_wait(cx, k->stop));
    VOLT_END(k->rc);
}
TEST_OF_THREADS(dump_shows_each_task_with_its_id) {
    enum { N = 40 };
    volt_rt *rt = create_on(2);
    sink s = { .text = NULL };
    volt_token stop;
    volt_handle h[N] = { { NULL } };
    uint64_t id[N];
    volt_token_init(&stop, NULL);
    CHECK_EQ(volt_handle_id(&h[0]), 0);
    for (int i = 0; i < N; i++)
        RT_SPAWN(rt, &h[i], known_run, (known){ .id = &id[i], .stop = &stop });
    settle(rt, &s, N);
    for (int i = 0; i < N; i++) {
        char text[40];
        snprintf(text, sizeof text, "task %u.%u ", (unsigned)(id[i] >> 16),
                 (unsigned)id[i] & 0xffff);
        CHECK_EQ(count(&s, text), 1);
        CHECK(id[i] == volt_handle_id(&h[i]));
    }
    volt_token_cancel(&stop);
    for (int i = 0; i < N; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
    drop(&s);
    destroy(rt);
}
TEST(dump_of_idle_runtime_shows_its_worker_only) {
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    dump(rt, &s, VOLT_DUMP_JSON);
    CHECK_EQ(read_json(&s), 1);
    dump(rt, &s, 0);
    CHECK_EQ(count(&s, "\n"), 1);
    drop(&s);
    destroy(rt);
}
TEST(trace_calls_give_enosys_without_volt_trace) {
    volt_rt *rt = create_on(1);
    volt_latency_histograms histograms;
    volt_health_report health;
    memset(&histograms, 1, sizeof histograms);
    memset(&health, 1, sizeof health);
    CHECK_EQ(volt_trace(rt, STDOUT_FILENO), -ENOSYS);
    CHECK_EQ(volt_histograms(rt, &histograms), -ENOSYS);
    CHECK_EQ(volt_health(rt, &health), -ENOSYS);
    for (int i = 0; i < VOLT_HISTOGRAM; i++) CHECK(!histograms.poll[i] && !histograms.wait[i]);
    CHECK(!health.oldest_runnable && !health.longest_poll && !health.site);
    destroy(rt);
}
TEST_OF_THREADS(dump_stops_at_first_error_of_its_sink) {
    volt_rt *rt = create_on(1);
    volt_token stop;
    memset(&stop, 0, sizeof stop);
    for (int i = 0; i < 150; i++) RT_SPAWN(rt, NULL, hears, (waits){ .stop = &stop });
    sink s = { .text = NULL };
    settle(rt, &s, 150);
    int all = s.n_puts;
    CHECK(all > 3);
    for (int i = 1; i <= all; i++) {
        s.len = 0;
        s.n_puts = 0;
        s.fail_at = i;
        s.rc = -EIO;
        CHECK_EQ(volt_dump_to(rt, put, &s, 0), -EIO);
        CHECK_EQ(s.n_puts, i);
    }
    CHECK_EQ(volt_dump(rt, -1, 0), -EBADF);
    volt__lock_kept(&rt->slabs.lock); // as where a crash has stopped a thread that held it
    CHECK_EQ(volt_dump(rt, -1, VOLT_DUMP_CRASH), -EBADF);
    s.fail_at = 0;
    CHECK_EQ(volt_dump_to(rt, put, &s, VOLT_DUMP_CRASH), -EBUSY);
    volt__unlock_kept(&rt->slabs.lock);
    volt_token_cancel(&stop);
    drop(&s);
    destroy(rt);
}

// ---- metrics

// Each line that is no sample is of the family whose samples follow, and each name is given once.
static void check_families(const sink *s) {
    char family[64] = "", type[16], name[64];
    int n_families = 0;
    for (const char *line = s->text; *line; line = strchr(line, '\n') + 1) {
        if (sscanf(line, "# TYPE %63s %15s", name, type) == 2) {
            char once[80];
            snprintf(once, sizeof once, "# TYPE %s ", name);
            CHECK_EQ(count(s, once), 1);
            CHECK(!strcmp(type, "counter") || !strcmp(type, "gauge") || !strcmp(type, "histogram"));
            strcpy(family, name);
            n_families++;
        } else if (sscanf(line, "# UNIT %63s seconds", name) == 1 ||
                   sscanf(line, "# HELP %63s ", name) == 1) {
            CHECK_EQ(strcmp(name, family), 0);
        } else if (strncmp(line, "# EOF\n", 7)) {
            CHECK_EQ(strncmp(line, family, strlen(family)), 0);
            CHECK(strchr(line, ' ') < strchr(line, '\n'));
        }
    }
    CHECK(n_families >= 28);
    CHECK_EQ(strcmp(s->text + s->len - 6, "# EOF\n"), 0);
    CHECK_EQ(count(s, "# EOF"), 1);
}
TEST_OF_THREADS(metrics_have_every_counter) {
    volt_rt *rt = create_on(2);
    volt_counters c;
    sink s = { .text = NULL };
    for (int i = 0; i < 100; i++) {
        volt_handle h;
        RT_SPAWN(rt, &h, giver_run, (giver){ .value = i });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    }
    do { // until no worker publishes any more
        volt_stats(rt, &c);
        dump(rt, &s, VOLT_DUMP_METRICS);
    } while (sample(&s, "volt_parks_total") != (double)c.parks || c.completed < 100);
    check_families(&s);
#define CHECK_SAMPLE(name_, text_)                                                                 \
    if (strcmp(#name_, "busy_ns"))                                                                 \
        CHECK_EQ((uint64_t)sample(&s, "volt_" #name_ "_total"), c.name_);
    VOLT__COUNTERS(CHECK_SAMPLE)
#undef CHECK_SAMPLE
    double busy = sample(&s, "volt_busy_seconds_total") - (double)c.busy_ns / 1e9;
    CHECK(busy > -1e-6 && busy < 1e-6);
    CHECK_EQ((uint64_t)sample(&s, "volt_workers"), 2);
    CHECK_EQ((uint64_t)sample(&s, "volt_workers_started"), c.workers_started);
    CHECK_EQ((uint64_t)sample(&s, "volt_queued"), 0);
    CHECK_EQ((uint64_t)sample(&s, "volt_blocking_jobs_total"), c.blocking_jobs);
    CHECK_EQ(count(&s, "histogram"), 0); // without VOLT_TRACE
    drop(&s);
    destroy(rt);
}
TEST_OF_THREADS(dump_of_metrics_stops_at_first_error_and_refuses_other_flags) {
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    CHECK_EQ(volt_dump_to(rt, put, &s, VOLT_DUMP_METRICS | VOLT_DUMP_JSON), -EINVAL);
    CHECK_EQ(volt_dump_to(rt, put, &s, VOLT_DUMP_METRICS | VOLT_DUMP_CRASH), -EINVAL);
    CHECK_EQ(s.n_puts, 0);
    dump(rt, &s, VOLT_DUMP_METRICS);
    int all = s.n_puts;
    CHECK(all > 2);
    for (int i = 1; i <= all; i++) {
        s.len = 0;
        s.n_puts = 0;
        s.fail_at = i;
        s.rc = -EIO;
        CHECK_EQ(volt_dump_to(rt, put, &s, VOLT_DUMP_METRICS), -EIO);
        CHECK_EQ(s.n_puts, i);
    }
    drop(&s);
    destroy(rt);
}

// ---- while tasks come and go: every one that lives all the time is told once

typedef struct {
    volt_rt *rt;
    int stop;
} maker;
static void *make_and_end(void *arg) {
    maker *m = (maker *)arg;
    while (!READ(m->stop)) {
        volt_handle h[20];
        for (int i = 0; i < 20; i++) RT_SPAWN(m->rt, &h[i], giver_run, (giver){ .value = i });
        for (int i = 0; i < 20; i++) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, NULL), 0);
    }
    return NULL;
}
TEST_OF_THREADS(dump_beside_spawns_finds_all_lasting_tasks) {
    enum { STAY = 2000 };
    volt_rt *rt = create_on(2);
    volt_token stop;
    sink s = { .text = NULL };
    memset(&stop, 0, sizeof stop);
    for (int i = 0; i < STAY; i++) RT_SPAWN(rt, NULL, hears, (waits){ .stop = &stop });
    settle(rt, &s, STAY);
    maker m = { rt, 0 };
    pthread_t t = start_thread(make_and_end, &m);
    for (int i = 0; i < 30; i++) {
        dump(rt, &s, i % 2 ? VOLT_DUMP_JSON : 0);
        CHECK_EQ(count(&s, i % 2 ? "\"name\":\"hears\"" : " hears, "), STAY);
        if (i % 2) read_json(&s);
    }
    WRITE(m.stop, 1);
    join_thread(t);
    volt_token_cancel(&stop);
    drop(&s);
    destroy(rt);
}
// Between two batches the slab where the walk is goes, and newer ones come: it begins again, passes
// over slabs that are newer than its last place, and tells nothing twice.
typedef struct {
    waits waits;
    char rest[VOLT_SLAB_SIZE / 8]; // so that each has a slab of its own
} large;
enum { STAYS = 3 * VOLT__DUMP_BATCH };
typedef struct {
    sink sink;
    volt_rt *rt;
    volt_token stop;
    volt_handle h[STAYS];
    int n_late;
} changer;
static uint32_t count_gone(volt_rt *rt) {
    volt__lock_kept(&rt->slabs.lock);
    uint32_t n = rt->slabs.n_destroyed;
    volt__unlock_kept(&rt->slabs.lock);
    return n;
}
static void spawn_large(changer *c, volt_handle *h, const char *name) {
    static large state;
    state.waits.stop = &c->stop;
    CHECK_EQ(volt_rt_spawn_at(c->rt, h, hears, &state, sizeof state, name), 0);
}
// The first batch, the newest, ends while it is written.
static int put_and_change(void *user, const char *text, size_t len) {
    changer *c = (changer *)user;
    if (c->n_late == 0) {
        uint32_t before = count_gone(c->rt);
        for (int i = STAYS - VOLT__DUMP_BATCH; i < STAYS; i++) {
            volt_cancel(&c->h[i]);
            CHECK_EQ(volt_join_sync(&c->h[i], VOLT_NEVER, NULL), 0);
        }
        do spawn_large(c, NULL, "late"); // takes the slabs of what has ended back
        while (c->n_late++, count_gone(c->rt) - before < VOLT__DUMP_BATCH);
    }
    return put(&c->sink, text, len);
}
TEST_OF_THREADS(dump_goes_on_when_slabs_come_and_go) {
    static changer c;
    c.rt = create_on(1);
    for (int i = 0; i < STAYS; i++) spawn_large(&c, &c.h[i], "stays");
    settle(c.rt, &c.sink, STAYS);
    drop(&c.sink);
    memset(&c.sink, 0, sizeof c.sink);
    CHECK_EQ(volt_dump_to(c.rt, put_and_change, &c, 0), 0);
    CHECK_EQ(count(&c.sink, " stays, "), STAYS);
    CHECK_EQ(count(&c.sink, " late, "), 0);
    dump(c.rt, &c.sink, 0);
    CHECK_EQ(count(&c.sink, " stays, "), STAYS - VOLT__DUMP_BATCH);
    CHECK_EQ(count(&c.sink, " late, "), c.n_late);
    for (int i = 0; i < STAYS; i++) volt_detach(&c.h[i]);
    volt_token_cancel(&c.stop);
    drop(&c.sink);
    destroy(c.rt);
}

// Slabs go and none is made: the slab where the walk is has gone all the same. Fails, by a read of
// memory given back, when a cursor counts the slabs made instead of those gone.
typedef struct {
    sink sink;
    volt_rt *rt;
    volt_token stop, early;
    int is_changed;
} shrinker;
typedef struct {
    volt_frame frame;
    shrinker *s;
    int i, rc;
} spawner;
static volt_poll spawns_stays(volt_cx *cx, void *arg) {
    spawner *o = (spawner *)arg;
    VOLT_BEGIN(cx, o);
    for (o->i = 0; o->i < STAYS; o->i++) {
        static large state; // of one task: this one
        state.waits.stop = o->i < STAYS - VOLT__DUMP_BATCH ? &o->s->stop : &o->s->early;
        CHECK_EQ(volt_spawn_at(cx, NULL, hears, &state, sizeof state, "stays"), 0);
    }
    VOLT_AWAIT(o->rc, volt_token_wait(cx, &o->s->stop)); // else its worker may trim its slabs
    VOLT_END(0);
}
static uint64_t count_made(volt_rt *rt) {
    volt__lock_kept(&rt->slabs.lock);
    uint64_t n = rt->slabs.n_created;
    volt__unlock_kept(&rt->slabs.lock);
    return n;
}
static int put_and_shrink(void *user, const char *text, size_t len) {
    shrinker *s = (shrinker *)user;
    if (!s->is_changed++) {
        uint32_t gone = count_gone(s->rt);
        uint64_t made = count_made(s->rt);
        volt_token_cancel(&s->early);
        UNTIL(count_gone(s->rt) - gone >= VOLT__DUMP_BATCH);
        CHECK_EQ(count_made(s->rt), made);
    }
    return put(&s->sink, text, len);
}
TEST_OF_THREADS(dump_goes_on_when_slabs_go_and_none_is_made) {
    static shrinker s;
    s.rt = create_on(1);
    RT_SPAWN(s.rt, NULL, spawns_stays, (spawner){ .s = &s });
    settle(s.rt, &s.sink, STAYS + 1);
    drop(&s.sink);
    memset(&s.sink, 0, sizeof s.sink);
    CHECK_EQ(volt_dump_to(s.rt, put_and_shrink, &s, 0), 0);
    CHECK_EQ(count(&s.sink, " stays, "), STAYS);
    dump(s.rt, &s.sink, 0);
    CHECK_EQ(count(&s.sink, " stays, "), STAYS - VOLT__DUMP_BATCH);
    volt_token_cancel(&s.stop);
    drop(&s.sink);
    destroy(s.rt);
}

// ---- counters, of all and of one

static void stats_of_workers(volt_rt *rt, volt_counters *sum) {
    volt_counters c;
    uint32_t i = 0;
    memset(sum, 0, sizeof *sum);
    for (; volt_worker_stats(rt, i, &c) == 0; i++) {
#define SUM_UP(name_, text_) sum->name_ += c.name_;
        VOLT__COUNTERS(SUM_UP)
#undef SUM_UP
        CHECK_EQ(c.workers, 0);
        CHECK_EQ(c.blocking_jobs, 0);
    }
    CHECK_EQ(volt_worker_stats(rt, i, &c), -ENOENT);
    sum->workers_started = i;
}
TEST_OF_THREADS(counters_of_workers_add_up_to_total) {
    EACH_WORKERS(n) {
        volt_rt *rt = create_on(n);
        volt_counters all, sum;
        for (int i = 0; i < 100; i++) {
            volt_handle h = { NULL };
            RT_SPAWN(rt, &h, giver_run, (giver){ .value = i });
            CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        }
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &all);
        stats_of_workers(rt, &sum);
        CHECK_EQ(sum.workers_started, all.workers_started);
        CHECK_EQ(all.completed, 100);
#define SAME(name_, text_) \
    if (strcmp(#name_, "spawned") && strcmp(#name_, "completed")) CHECK_EQ(sum.name_, all.name_);
        VOLT__COUNTERS(SAME) // these two also count what no worker has done
#undef SAME
        CHECK_EQ(sum.polls, 100);
        CHECK(sum.completed <= 100);
        CHECK_EQ(all.queued, 0);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
typedef struct {
    volt_frame frame;
    const int *go_on;
    int *has_begun;
    const char *later_name; // after its first wait; or NULL: it does not wait
} blocker;
static volt_poll blocker_run(volt_cx *cx, void *arg) {
    blocker *b = (blocker *)arg;
    VOLT_BEGIN(cx, b);
    if (b->later_name) {
        VOLT_AWAIT(volt_yield(cx));
        volt_name(cx, b->later_name);
    }
    COUNT(*b->has_begun);
    while (!READ(*b->go_on)) sched_yield();
    VOLT_END(0);
}
// Before its first wait it is nowhere, also under another name than that of where it was spawned.
static volt_poll renamed_run(volt_cx *cx, void *arg) {
    volt_name(cx, "renamed");
    return blocker_run(cx, arg);
}
TEST_OF_THREADS(dump_shows_no_line_of_task_before_its_first_wait) {
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    char line[256];
    for (int has_site = 0; has_site < 2; has_site++) {
        int go_on = 0, has_begun = 0;
        blocker b = { .go_on = &go_on, .has_begun = &has_begun };
        volt_handle h = { NULL };
        if (has_site) RT_SPAWN(rt, &h, renamed_run, b);
        else CHECK_EQ(volt_rt_spawn(rt, &h, renamed_run, &b, sizeof b), 0);
        UNTIL(READ(has_begun));
        dump(rt, &s, 0);
        line_of(&s, " renamed, ", line, sizeof line);
        CHECK(strstr(line, " s old: running"));
        CHECK(!strstr(line, " at ") && !strchr(line, '\t'));
        dump(rt, &s, VOLT_DUMP_JSON);
        CHECK_EQ(read_json(&s), 2);
        CHECK_EQ(count(&s, "\"at\":"), 0);
        WRITE(go_on, 1);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    }
    drop(&s);
    destroy(rt);
}
TEST_OF_THREADS(new_name_keeps_line_of_last_wait) {
    volt_rt *rt = create_on(1);
    sink s = { .text = NULL };
    char line[256];
    int go_on = 0, has_begun = 0;
    blocker b = { .go_on = &go_on, .has_begun = &has_begun, .later_name = "renamed later" };
    RT_SPAWN(rt, NULL, blocker_run, b);
    UNTIL(READ(has_begun));
    dump(rt, &s, 0);
    line_of(&s, " renamed later, ", line, sizeof line);
    CHECK(strstr(line, " s old: running at ") && strstr(line, "inspect.c:"));
    WRITE(go_on, 1);
    drop(&s);
    destroy(rt);
}
TEST_OF_THREADS(runnable_tasks_are_counted_as_queued) {
    enum { BEHIND = 7 };
    volt_rt *rt = create_on(1);
    volt_counters c;
    int go_on = 0, has_begun = 0;
    RT_SPAWN(rt, NULL, blocker_run, (blocker){ .go_on = &go_on, .has_begun = &has_begun });
    UNTIL(READ(has_begun));
    volt_stats(rt, &c);
    CHECK_EQ(c.queued, 0);
    for (int i = 0; i < BEHIND; i++) RT_SPAWN(rt, NULL, giver_run, (giver){ .value = i });
    volt_stats(rt, &c);
    CHECK_EQ(c.queued, BEHIND);
    WRITE(go_on, 1);
    destroy(rt);
}
// Of the time between two looks, a worker was awake for as long as it was busy, and not while it
// slept: by the clock of the test, within what the machine takes to run threads.
TEST_OF_THREADS(busy_ns_counts_time_awake) {
    EACH_WORKERS(n) {
        volt_rt *rt = create_on(n);
        volt_counters c;
        int go_on = 0, has_begun = 0;
        volt_handle h = { NULL };
        RT_SPAWN(rt, &h, giver_run, (giver){ .value = 1 }); // started, and soon asleep
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        UNTIL((volt_stats(rt, &c), volt__idle_is_parked(&rt->idle, 0)));
        volt_stats(rt, &c);
        uint64_t before = c.busy_ns;
        volt_time from = volt_now();
        RT_SPAWN(rt, &h, blocker_run, (blocker){ .go_on = &go_on, .has_begun = &has_begun });
        UNTIL(READ(has_begun));
        volt_time begun = volt_now();
        while (volt_now() < begun + VOLT_MS(20)) sched_yield();
        WRITE(go_on, 1);
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
        CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
        volt_stats(rt, &c);
        uint64_t busy = c.busy_ns - before, took = (uint64_t)(volt_now() - from);
        CHECK(busy >= (uint64_t)VOLT_MS(20));
        CHECK(busy <= n * took);
        CHECK_EQ(volt_destroy(rt), 0);
        test_check_heap();
    }
}
// A worker that only sleeps is not busy.
TEST_OF_THREADS(busy_ns_does_not_count_time_asleep) {
    volt_rt *rt = create_on(1);
    volt_handle h = { NULL };
    volt_counters c;
    int n_ended = 0;
    for (int i = 0; i < 10; i++) {
        RT_SPAWN(rt, &h, napper_run, (napper){ .d = VOLT_MS(20), .n_ended = &n_ended });
        CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, NULL), 0);
    }
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt_stats(rt, &c);
    CHECK(c.busy_ns > 0);
    CHECK(c.busy_ns < (uint64_t)VOLT_MS(100));
    CHECK_EQ(volt_destroy(rt), 0);
}
