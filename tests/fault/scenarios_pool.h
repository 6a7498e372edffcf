// SPDX-License-Identifier: MIT OR 0BSD
// Scenarios with pool threads: jobs, calls in place, names, files; and tasks placed, and dumps
// taken, from outside. The pool has one thread, with three workers two.
#ifndef VOLT_FAULT_SCENARIOS_POOL_H
#define VOLT_FAULT_SCENARIOS_POOL_H

// Called while another thread must progress: it may need this processor.
static void rest(void) { usleep(20); }

// ---- a blocking call: outlives its task, so that a late one is seen, too

typedef struct request {
    int value; // its result
    int n_begun, n_ended, n_told; // told: the task that requested it has ended
    int n_dropped;                // the requesting task need not wait for it
    const int *gate;              // it waits until this is set; NULL: it does not
} request;
static int answer(void *arg) {
    request *c = (request *)arg;
    add(&c->n_begun, 1);
    while (c->gate && !get(c->gate)) rest();
    add(&c->n_ended, 1);
    return c->value;
}
// It has run once, and is reported; or not at all.
static void check_call(const request *c, int64_t rc) {
    CHECK_EQ(get(&c->n_begun), rc == c->value);
    CHECK_EQ(get(&c->n_ended), rc == c->value);
}
STATE(asker, volt_job job; request *call;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_blocking(cx, &s->job, answer, s->call));
    check_call(s->call, s->rc);
    add(&s->call->n_told, 1);
    VOLT_END(s->rc);
}
static int is_settled(const request *c) { return get(&c->n_begun) || get(&c->n_told); }

// More than there are threads.
enum { N_JOBS = 4 };
STATE(jobs, volt_group group; request call[N_JOBS]; int i; uint64_t id; int64_t value;) {
    VOLT_BEGIN(cx, s);
    volt_group_collect(&s->group);
    for (s->i = 0; s->i < N_JOBS; s->i++) {
        s->call[s->i].value = 100 + s->i;
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, asker_run, (asker_state){ .call = &s->call[s->i] }));
    }
    for (;;) {
        VOLT_AWAIT(s->value, volt_group_next(cx, &s->group, &s->id));
        if (s->value == -ENOENT) break;
        KEEP(s->value);
    }
    VOLT_END(s->first);
}

// A running job is waited for, even if cancelled; those behind it are cancelled or time out.
static int64_t unless_given_up(int64_t rc) {
    return rc == -ECANCELED || rc == -ETIMEDOUT ? 0 : rc;
}
STATE(jobs_cancelled, volt_handle h[2]; request call[4]; volt_job job; volt_timer timer; int gate;
      int64_t value;) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 4; i++) s->call[i].value = 100 + i;
    s->call[0].gate = &s->gate;
    KEEP(VOLT_SPAWN(cx, &s->h[0], asker_run, (asker_state){ .call = &s->call[0] }));
    while (volt_handle_is_set(&s->h[0]) && !is_settled(&s->call[0]))
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    KEEP(VOLT_SPAWN(cx, &s->h[1], asker_run, (asker_state){ .call = &s->call[1] }));
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_MS(1),
                                  volt_blocking(cx, &s->job, answer, &s->call[2])));
    check_call(&s->call[2], s->rc);
    KEEP(unless_given_up(s->rc));
    volt_cancel(&s->h[1]);
    if (volt_handle_is_set(&s->h[1])) VOLT_AWAIT(s->value, volt_join(cx, &s->h[1]));
    KEEP(unless_given_up(s->value));
    if (!is_hit() && cx->rt_->cfg.max_blocking_threads == 1)
        CHECK_EQ(s->call[1].n_begun + s->call[2].n_begun, 0);
    volt_cancel(&s->h[0]);
    set(&s->gate, 1);
    if (volt_handle_is_set(&s->h[0])) KEEP_AWAIT(volt_join(cx, &s->h[0]));
    KEEP_AWAIT(volt_blocking(cx, &s->job, answer, &s->call[3])); // its struct is free again
    check_call(&s->call[3], s->rc);
    VOLT_END(s->first);
}

// The result of a task that a shutdown may have cancelled.
static int64_t join_after(volt_handle *h) {
    int64_t value = 0;
    if (volt_handle_is_set(h)) CHECK_EQ(volt_join_sync(h, VOLT_NEVER, &value), 0);
    return unless_given_up(value);
}
static int jobs_at_a_shutdown_on(uint32_t workers) {
    volt_rt *rt = NULL;
    volt_handle h[3] = { { NULL } };
    request c[3];
    int gate = 0;
    int64_t first = open_rt(workers, &rt);
    if (first < 0) return (int)first;
    memset(c, 0, sizeof c);
    for (int i = 0; i < 3; i++) {
        c[i].value = 100 + i;
        c[i].gate = &gate;
        int rc = VOLT_RT_SPAWN(rt, &h[i], asker_run, (asker_state){ .call = &c[i] });
        first = worse(first, rc);
        while (i == 0 && rc == 0 && !is_settled(&c[0])) rest();
    }
    CHECK(volt_shutdown(rt, VOLT_US(300)) >= get(&c[0].n_begun));
    set(&gate, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    for (int i = 0; i < 3; i++) first = worse(first, join_after(&h[i]));
    CHECK_EQ(volt_destroy(rt), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(c[i].n_begun, c[i].n_ended);
    return (int)first;
}
static int jobs_at_a_shutdown(void) {
    int one = jobs_at_a_shutdown_on(1), two = jobs_at_a_shutdown_on(2);
    return (int)worse(one, two);
}

// A cancelled task leaves a running call, and takes back a waiting one; either is dropped once.
static void drop_request(void *arg) { add(&((request *)arg)->n_dropped, 1); }
STATE(leaver, volt_detached_job errand; request *call;) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_blocking_detach(cx, &s->errand, answer, s->call, drop_request));
    add(&s->call->n_told, 1);
    VOLT_END(s->rc);
}
static int jobs_left_alone(void) {
    volt_rt *rt = NULL;
    volt_handle h[2] = { { NULL } };
    request c[2];
    int gate = 0;
    int64_t value[2] = { 0, 0 }, first = open_rt(1, &rt);
    if (first < 0) return (int)first;
    memset(c, 0, sizeof c);
    for (int i = 0; i < 2; i++) {
        c[i].value = 100 + i;
        c[i].gate = &gate;
        int rc = VOLT_RT_SPAWN(rt, &h[i], leaver_run, (leaver_state){ .call = &c[i] });
        first = worse(first, rc);
        while (i == 0 && rc == 0 && !is_settled(&c[0])) rest();
    }
    for (int i = 0; i < 2; i++) {
        volt_cancel(&h[i]);
        if (!volt_handle_is_set(&h[i])) continue;
        CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &value[i]), 0);
        first = worse(first, unless_given_up(value[i]));
    }
    if (!is_hit()) CHECK(value[0] == -ECANCELED && c[0].n_dropped == 0);
    CHECK(volt_shutdown(rt, VOLT_US(300)) >= get(&c[0].n_begun)); // the call is still running
    set(&gate, 1);
    close_rt(rt);
    for (int i = 0; i < 2; i++) CHECK_EQ(c[i].n_dropped, value[i] == -ECANCELED);
    if (!is_hit()) CHECK_EQ(c[1].n_begun, 0); // it was queued behind the other
    for (int i = 0; i < 2; i++) CHECK_EQ(c[i].n_begun, c[i].n_ended);
    return (int)first;
}

// ---- calls in place

// On a plain thread, so it may wait for a task of its own runtime. If no thread can be started, and
// there is no other worker, it gets an error, as no thread could run that.
typedef struct trip {
    volt_rt *rt;
    int is_alone;
} trip;
static int visit(void *arg) {
    const trip *t = (const trip *)arg;
    volt_handle h = { NULL };
    int64_t value = 0;
    int rc = VOLT_RT_SPAWN(t->rt, &h, napper_run, (napper_state){ .d = VOLT_US(100) });
    if (rc < 0) return rc;
    rc = volt_join_sync(&h, VOLT_NEVER, &value);
    volt_detach(&h);
    int is_held_up = running->host == GUEST || (is_hit() && t->is_alone); // a guest is not lent
    CHECK(rc == 0 || (rc == -EDEADLK && is_held_up));
    return (int)value;
}
static int64_t travel(volt_cx *cx, int is_at_once) {
    volt_counters c;
    trip t = { volt_cx_rt(cx), 0 };
    volt_stats(t.rt, &c);
    t.is_alone = c.workers_started < 2 || is_at_once; // the others may block like this, too
    return volt_block_in_place(cx, visit, &t);
}
STATE(visitor, int is_at_once;) {
    VOLT_BEGIN(cx, s);
    KEEP(travel(cx, s->is_at_once));
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(s->first);
}
// Quick calls, before a thread can take over; then slow ones.
STATE(in_place, volt_group group; request call[3]; int i;) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->call[s->i].value = 100 + s->i;
        s->rc = volt_block_in_place(cx, answer, &s->call[s->i]);
        CHECK_EQ(s->rc, s->call[s->i].value);
        check_call(&s->call[s->i], s->rc);
        VOLT_AWAIT(volt_yield(cx));
    }
    for (s->i = 0; s->i < 2; s->i++) {
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, visitor_run, (visitor_state){ .rc = 0 }));
        KEEP_AWAIT(volt_group_wait(cx, &s->group));
    }
    for (s->i = 0; s->i < 2; s->i++)
        KEEP(VOLT_GROUP_SPAWN(cx, &s->group, visitor_run, (visitor_state){ .is_at_once = 1 }));
    KEEP_AWAIT(volt_group_wait(cx, &s->group));
    VOLT_END(s->first);
}

// A shutdown begins while a task blocks in place, and another one waits.
STATE(stayer, request *call;) {
    VOLT_BEGIN(cx, s);
    s->rc = volt_block_in_place(cx, answer, s->call);
    check_call(s->call, s->rc);
    VOLT_AWAIT(s->first, volt_sleep(cx, VOLT_NEVER));
    CHECK_EQ(s->first, -ECANCELED);
    VOLT_END(s->rc);
}
static int in_place_at_a_shutdown_on(uint32_t workers) {
    volt_rt *rt = NULL;
    volt_handle h[2] = { { NULL } };
    int gate = 0;
    request c = { .value = 100, .gate = &gate };
    int64_t first = open_rt(workers, &rt);
    if (first < 0) return (int)first;
    int rc = VOLT_RT_SPAWN(rt, &h[0], stayer_run, (stayer_state){ .call = &c });
    first = worse(first, rc);
    while (rc == 0 && !get(&c.n_begun)) rest();
    rc = VOLT_RT_SPAWN(rt, &h[1], napper_run, (napper_state){ .d = VOLT_NEVER });
    first = worse(first, rc);
    CHECK(volt_shutdown(rt, VOLT_US(300)) >= get(&c.n_begun));
    set(&gate, 1);
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    for (int i = 0; i < 2; i++) first = worse(first, join_after(&h[i]));
    CHECK_EQ(volt_destroy(rt), 0);
    return (int)first;
}
static int in_place_at_a_shutdown(void) {
    int one = in_place_at_a_shutdown_on(1), two = in_place_at_a_shutdown_on(2);
    return (int)worse(one, two);
}

// ---- names

STATE(inquirer, const char *host; volt_lookup lookup; volt_addr addr[4]; int *n_asked, *n_told;) {
    VOLT_BEGIN(cx, s);
    add(s->n_asked, 1);
    VOLT_AWAIT(s->rc, volt_resolve(cx, &s->lookup, s->host, "80", s->addr, 4));
    for (int i = 0; i < s->rc; i++) CHECK_EQ(volt_addr_port(&s->addr[i]), 80);
    CHECK(s->rc < 0 || s->rc == 3);
    add(s->n_told, 1);
    VOLT_END(s->rc);
}
// Several tasks look up the same name, and one of them leaves; then a single lookup.
enum { N_ASKERS = 3 };
STATE(resolves, volt_handle h[N_ASKERS]; inquirer_state last; int i, n_asked, n_told, n;) {
    VOLT_BEGIN(cx, s);
    memset(&names, 0, sizeof names);
    for (s->i = 0; s->i < N_ASKERS; s->i++) {
        s->rc = VOLT_SPAWN(cx, &s->h[s->i], inquirer_run,
                           (inquirer_state){ .host = "held.test",
                                             .n_asked = &s->n_asked,
                                             .n_told = &s->n_told });
        s->n += s->rc == 0;
        KEEP(s->rc);
    }
    while (get(&s->n_asked) < s->n || (!get(&names.n_in) && get(&s->n_told) < s->n))
        VOLT_AWAIT(volt_sleep(cx, VOLT_US(50)));
    volt_cancel(&s->h[1]);
    if (volt_handle_is_set(&s->h[1])) VOLT_AWAIT(s->rc, volt_join(cx, &s->h[1]));
    KEEP(unless_given_up(s->rc < 0 ? s->rc : 0));
    set(&names.is_open, 1);
    for (s->i = 0; s->i < N_ASKERS; s->i++)
        if (volt_handle_is_set(&s->h[s->i])) KEEP_AWAIT(volt_join(cx, &s->h[s->i]));
    if (!is_hit() && running->workers == 1) CHECK_EQ(names.n_calls, 1);
    s->last.host = "3.test";
    s->last.n_asked = &s->n_asked;
    s->last.n_told = &s->n_told;
    KEEP_AWAIT(inquirer_run(cx, &s->last));
    VOLT_END(s->first);
}

// The only waiter has left; the runtime waits for the call all the same.
static int name_left_alone(void) {
    volt_rt *rt = NULL;
    volt_handle h = { NULL };
    int n_asked = 0, n_told = 0;
    int64_t value = 0, first = open_rt(1, &rt);
    if (first < 0) return (int)first;
    memset(&names, 0, sizeof names);
    int rc = VOLT_RT_SPAWN(
        rt, &h, inquirer_run,
        (inquirer_state){ .host = "held.test", .n_asked = &n_asked, .n_told = &n_told });
    while (rc == 0 && !get(&names.n_in) && !get(&n_told)) rest();
    volt_cancel(&h);
    if (rc == 0) CHECK_EQ(volt_join_sync(&h, VOLT_NEVER, &value), 0);
    first = worse(rc, unless_given_up(value));
    int left = volt_shutdown(rt, VOLT_MS(1));
    CHECK(left == 0 || left == 1);
    if (left > 0) CHECK_EQ(volt_destroy(rt), -EBUSY);
    if (!is_hit()) CHECK(value == -ECANCELED && left == 1);
    set(&names.is_open, 1);
    close_rt(rt);
    return (int)first;
}

// Addresses where no socket listens, before and after one where a socket does.
static int take_port(int *port) {
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof sa;
    int fd = opened(socket(AF_INET, SOCK_STREAM, 0), FD_DATA);
    if (fd < 0) return -EMFILE;
    CHECK_EQ(bind(fd, (struct sockaddr *)&sa, len), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *port = ntohs(sa.sin_port);
    return fd;
}
STATE(dials, volt_dial dial; volt_addr addr; int listener, free, port, i;) {
    VOLT_BEGIN(cx, s);
    memset(&names, 0, sizeof names);
    s->free = take_port(&s->port);
    if (s->free < 0) VOLT_RETURN(s->free);
    s->listener = listen_on(NULL, &s->addr);
    if (s->listener < 0) {
        drop(s->free);
        VOLT_RETURN(s->listener);
    }
    for (s->i = 0; s->i < 3; s->i++) {
        names.n_ports = 3;
        for (int i = 0; i < 3; i++) names.port[i] = s->port;
        names.port[s->i] = volt_addr_port(&s->addr);
        KEEP_AWAIT(volt_tcp_connect(cx, &s->dial, "dial.test", "80"));
        if (s->rc >= 0) volt_close(cx, (int)s->rc);
    }
    volt_close(cx, s->listener);
    drop(s->free);
    VOLT_END(s->first);
}

// ---- files

enum { FILE_LEN = 100 };
// All of it, or an error; less if a read reported an early end.
static int64_t unless_short(int64_t rc, int64_t want) {
    CHECK(rc <= want);
    return rc < 0 || rc == want ? rc : -EPIPE;
}
// In memory: these calls cover enough of the failures of disks.
STATE(files, volt_file_op op; struct stat st; int file, fd; char path[32]; char out[FILE_LEN];
      char in[FILE_LEN + 1];) {
    VOLT_BEGIN(cx, s);
    s->file = opened(memfd_create("volt-fault", MFD_CLOEXEC), FD_DATA);
    if (s->file < 0) VOLT_RETURN(-EMFILE);
    snprintf(s->path, sizeof s->path, "/proc/self/fd/%d", s->file);
    for (int i = 0; i < FILE_LEN; i++) s->out[i] = (char)(i * 7);
    VOLT_AWAIT(s->fd, volt_file_open(cx, &s->op, s->path, O_RDWR | O_CREAT, 0600));
    KEEP(s->fd);
    if (s->fd >= 0) {
        VOLT_AWAIT(s->rc, volt_file_pwrite(cx, &s->op, s->fd, s->out, FILE_LEN, 0));
        KEEP(unless_short(s->rc, FILE_LEN));
        KEEP_AWAIT(volt_file_fsync(cx, &s->op, s->fd, 0));
        KEEP_AWAIT(volt_file_fsync(cx, &s->op, s->fd, 1));
        VOLT_AWAIT(s->rc, volt_file_pread(cx, &s->op, s->fd, s->in, 10, 20));
        if (s->first == 0) KEEP(unless_short(s->rc, 10));
        if (s->first == 0) CHECK(memcmp(s->in, s->out + 20, 10) == 0);
        KEEP_AWAIT(volt_file_stat(cx, &s->op, s->path, &s->st));
        if (s->first == 0) CHECK_EQ(s->st.st_size, FILE_LEN);
        VOLT_AWAIT(s->rc, volt_file_close(cx, &s->op, s->fd));
        CHECK(kind_of(s->fd) != FD_STORED);
        KEEP(s->rc);
    }
    VOLT_AWAIT(s->rc, volt_file_save(cx, &s->op, s->path, s->out + 50, 50, 0600));
    KEEP(unless_short(s->rc, 50));
    VOLT_AWAIT(s->rc, volt_file_load(cx, &s->op, s->path, s->in, FILE_LEN));
    if (s->first == 0) KEEP(unless_short(s->rc, 50));
    if (s->first == 0) CHECK(memcmp(s->in, s->out + 50, 50) == 0);
    VOLT_AWAIT(s->rc, volt_file_load(cx, &s->op, s->path, s->in, 50)); // fits exactly
    if (s->first == 0) KEEP(unless_short(s->rc, 50));
    VOLT_AWAIT(s->rc, volt_file_load(cx, &s->op, s->path, s->in, 49));
    if (s->first == 0 && inject.f.effect != ZERO) CHECK(s->rc < 0);
    KEEP(s->rc == -EFBIG ? 0 : s->rc < 0 ? s->rc : -EPIPE);
    drop(s->file);
    VOLT_END(s->first);
}

// ---- dumps from outside, and work from there

// Into a pipe that holds the whole dump. A partial one is taken out, and written again.
static int64_t dump_into(volt_rt *rt, const int fd[2], unsigned flags) {
    static char text[4096];
    for (;;) {
        int rc = volt_dump(rt, fd[1], flags);
        CHECK_EQ(write(fd[1], "\n", 2), 2); // ends the text, and makes it non-empty
        ssize_t n = read(fd[0], text, sizeof text);
        CHECK(n >= 2 && text[n - 1] == 0);
        if (rc == -EAGAIN) continue;
        if (rc == 0) CHECK(strstr(text, flags ? "\"tasks\":[" : "task ") != NULL);
        if (rc == 0) CHECK(strstr(text, "napper_run") != NULL);
        return rc;
    }
}
STATE(dumps, volt_handle h; volt_counters c; int fd[2];) {
    VOLT_BEGIN(cx, s);
    KEEP(make_pipe(s->fd));
    if (s->first < 0) VOLT_RETURN(s->first);
    KEEP(VOLT_SPAWN(cx, &s->h, napper_run, (napper_state){ .d = VOLT_NEVER }));
    VOLT_AWAIT(volt_sleep(cx, VOLT_US(100)));
    if (s->first == 0) KEEP(dump_into(volt_cx_rt(cx), s->fd, 0));
    if (s->first == 0) KEEP(dump_into(volt_cx_rt(cx), s->fd, VOLT_DUMP_JSON));
    volt_stats(volt_cx_rt(cx), &s->c);
    if (running->workers == 1 && volt_handle_is_set(&s->h))
        CHECK_EQ(s->c.spawned - s->c.completed, 2);
    volt_cancel(&s->h);
    if (volt_handle_is_set(&s->h)) VOLT_AWAIT(volt_join(cx, &s->h));
    for (int i = 0; i < 2; i++) drop(s->fd[i]);
    VOLT_END(s->first);
}

// Threads outside the workers spawn and wake, with each placement.
typedef struct {
    volt_rt *rt;
    volt_token *token;
    int64_t first;
} source;
enum { N_PLACED = 4 };
static void *place_some(void *arg) {
    source *s = (source *)arg;
    volt_handle h[N_PLACED] = { { NULL } };
    for (int i = 0; i < N_PLACED; i++) {
        waiter_state waits = { .token = s->token };
        int rc = i % 2 ? VOLT_RT_SPAWN(s->rt, &h[i], yielder_run, (yielder_state){ .n = 3 })
                       : VOLT_RT_SPAWN(s->rt, &h[i], waiter_run, waits);
        s->first = worse(s->first, rc);
    }
    volt_token_cancel(s->token); // wakes several at once
    for (int i = 0; i < N_PLACED; i++) {
        int64_t value = 0;
        if (volt_handle_is_set(&h[i])) CHECK_EQ(volt_join_sync(&h[i], VOLT_NEVER, &value), 0);
        CHECK_EQ(value, 0);
    }
    return NULL;
}
static int64_t places_by(volt_placement placement) {
    volt_config c = config(3);
    volt_rt *rt = NULL;
    volt_token token[2];
    source s[2];
    pthread_t t[2];
    volt_counters n;
    c.placement = placement;
    int64_t first = volt_create(&c, &rt);
    if (first < 0) return first;
    memset(token, 0, sizeof token);
    for (int i = 0; i < 2; i++) {
        s[i] = (source){ rt, &token[i], 0 };
        CHECK_EQ(pthread_create(&t[i], NULL, place_some, &s[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(t[i], NULL), 0);
        first = worse(first, s[i].first);
    }
    CHECK_EQ(volt_shutdown(rt, VOLT_NEVER), 0);
    volt_stats(rt, &n);
    CHECK_EQ(n.spawned, n.completed);
    if (!is_hit()) CHECK_EQ(n.spawned, 2 * N_PLACED);
    CHECK_EQ(volt_destroy(rt), 0);
    return first;
}
static int places(void) {
    int64_t two = places_by(VOLT_PLACE_TWO);
    return (int)worse(two, places_by(VOLT_PLACE_LEAST));
}

#endif // VOLT_FAULT_SCENARIOS_POOL_H
