// SPDX-License-Identifier: MIT OR 0BSD
// Blocking calls in random programs: jobs on the pool, calls in place, files, names; and the state
// of the pool and of the workers' queues whenever all threads sleep. For grammar.h and apps.h.
//
// Checked                                                           where
//   a call happens once, or is reported as not having happened        call_fn, settle_call
//   ... at once while a thread is free for it; on a plain thread      call_fn
//   ... as many at once as .max_blocking_threads says, names four     call_fn, check_calls
//   others go on while one blocks: their timers come in time          check_sleep    (oracle.h)
//   the contents of a file, the number of an address's lookups        check_bytes, check_addresses
//   every runnable task is in one queue; a sleeping worker has none   check_queues
//   a load is the number of tasks queued there and running            check_queues
//   nothing is placed or injected while a worker sleeps               check_queues
#ifndef VOLT_SIM_CALLS_H
#define VOLT_SIM_CALLS_H

#include "oracle.h"

// ---- a call: known from outside, so that a late one is seen, too

enum { MOST_CALLS = 256, MOST_IN_PLACE = 8, FILE_BYTES = 96 };
enum { ON_POOL, IN_PLACE };
enum { AT_ONCE, COMPUTES, VISITS }; // its kind
typedef struct call {
    volt_rt *rt;
    int value, kind, how, n_begun, n_ended, is_settled, has_room;
    int64_t work, asked_at, drift;
} call;
static struct calls {
    call call[MOST_CALLS];
    int n, n_in_place;
    struct {
        volt_rt *rt;
        int n_asked, n_running, limit; // of jobs: requested and not settled; inside now
    } pool[2];
} calls;

static int pool_of(volt_rt *rt) {
    int i = calls.pool[0].rt && calls.pool[0].rt != rt;
    if (!calls.pool[i].rt) {
        volt_config c;
        volt_effective_config(rt, &c);
        calls.pool[i].rt = rt;
        calls.pool[i].limit = (int)c.max_blocking_threads;
    }
    return i;
}
// Of two simultaneous requests the second may get the last thread: with one too many, none is sure.
static int ask_pool(volt_rt *rt) {
    int i = pool_of(rt);
    if (++calls.pool[i].n_asked <= calls.pool[i].limit) return 1;
    for (int k = 0; k < calls.n; k++)
        if (calls.call[k].rt == rt) calls.call[k].has_room = 0;
    return 0;
}
// Without a thread or memory the worker is not handed off: a call in place just runs.
static int can_lend(void) { return !sim.rate[SIM_THREAD] && !sim.rate[SIM_NOMEM]; }
static call *note_call(volt_rt *rt, int kind) {
    if (calls.n == MOST_CALLS || (kind == IN_PLACE && calls.n_in_place == MOST_IN_PLACE))
        return NULL;
    call *c = &calls.call[calls.n++];
    pool_of(rt); // while the runtime exists
    c->rt = rt;
    c->value = calls.n + 1000;
    c->kind = kind;
    c->how = (int)prog_below(3);
    if (kind == IN_PLACE && !can_lend()) c->how = prog.computes ? COMPUTES : AT_ONCE;
    const volt__worker *w = VOLT_TLS_GET();
    if (kind == IN_PLACE && c->how == COMPUTES && w && w->is_guest && !prog.computes)
        c->how = AT_ONCE; // a guest's worker is not handed off: its timers would be late
    c->work = prog_below(3000000);
    c->asked_at = sim_now();
    c->drift = sim.drift;
    if (kind == ON_POOL) c->has_room = ask_pool(rt) && can_lend();
    if (kind == IN_PLACE) calls.n_in_place++;
    return c;
}
typedef struct guest_task {
    volt_frame frame;
    int64_t d, rc;
} guest_task;
static volt_poll guest_task_run(volt_cx *cx, void *arg) {
    guest_task *g = (guest_task *)arg;
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(g->rc, volt_sleep(cx, g->d));
    VOLT_END(g->rc);
}
// As on any plain thread: waits for a task of the same runtime.
static void visit(const call *c) {
    volt_handle h = {NULL};
    guest_task g;
    int64_t result;
    memset(&g, 0, sizeof g);
    g.d = 1000 + c->work / 4;
    int rc = VOLT_RT_SPAWN(c->rt, &h, guest_task_run, g);
    SIM_CHECK(rc == 0 || prog.may_fail || prog.is_ending);
    if (rc < 0) return;
    rc = volt_join_sync(&h, c->work % 2 ? VOLT_NEVER : c->work / 8, &result);
    const volt__worker *w = VOLT_TLS_GET(); // a guest's worker is not handed off
    SIM_CHECK(rc == 0 || (rc == -ETIMEDOUT && c->work % 2 == 0) ||
              (rc == -EDEADLK && w && w->is_guest));
    if (rc == 0) SIM_CHECK(result == 0 || (result == -ECANCELED && prog.is_ending));
    volt_detach(&h);
}
static void check_begin(call *c) {
    int i = pool_of(c->rt);
    SIM_CHECK(c->n_begun++ == 0 && !c->is_settled);
    if (c->kind == IN_PLACE) return;
    SIM_CHECK(!VOLT_TLS_GET()); // a plain thread
    SIM_CHECK(++calls.pool[i].n_running <= calls.pool[i].limit);
    int64_t late = sim_now() - c->asked_at - (sim.drift - c->drift);
    if (c->has_room && prog.is_punctual && late > SIM_US(50))
        sim_fail("a call began %" PRId64 " ns late; a thread was free", late);
}
static int call_fn(void *arg) {
    call *c = (call *)arg;
    check_begin(c);
    if (c->how == COMPUTES) sim_compute(c->work);
    if (c->how == VISITS) visit(c);
    if (c->kind == ON_POOL) calls.pool[pool_of(c->rt)].n_running--;
    c->n_ended++;
    return c->value;
}
// It has run once, or not at all.
static void settle_call(call *c, int64_t rc) {
    SIM_CHECK(c->n_begun == (rc == c->value) && c->n_ended == (rc == c->value));
    SIM_CHECK(rc == c->value || rc == -ECANCELED || rc == -ETIMEDOUT || rc == -EAGAIN ||
              rc == -ENOMEM);
    c->is_settled = 1;
    if (c->kind == ON_POOL) calls.pool[pool_of(c->rt)].n_asked--;
    if (c->kind == IN_PLACE) calls.n_in_place--;
}
// When all has ended. Each runtime has four threads for names.
static void check_calls(void) {
    for (int i = 0; i < calls.n; i++) SIM_CHECK(calls.call[i].is_settled);
    for (int i = 0; i < 2; i++) SIM_CHECK(calls.pool[i].n_running == 0);
    SIM_CHECK(kernel.most_resolving <= 2 * VOLT_POOL_NAMES);
}

// ---- jobs, with and without a limit

typedef struct op_job {
    volt_frame frame;
    volt_job job;
    volt_timer timer;
    call *call;
    int64_t limit, start, rc;
} op_job;
static volt_poll job_op(volt_cx *cx, op_job *o, int id) {
    VOLT_BEGIN(cx, o);
    o->call = note_call(volt_cx_rt(cx), ON_POOL);
    if (!o->call) VOLT_RETURN(0);
    o->limit = prog_below(2) ? 0 : prog_below(1u << 22);
    o->start = sim_now();
    if (o->limit)
        VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                      volt_blocking(cx, &o->job, call_fn, o->call)));
    else
        VOLT_AWAIT(o->rc, volt_blocking(cx, &o->job, call_fn, o->call));
    settle_call(o->call, o->rc);
    if (o->rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    if (o->rc == -ETIMEDOUT) SIM_CHECK(o->limit && sim_now() >= o->start + o->limit);
    if (o->rc == -EAGAIN || o->rc == -ENOMEM) SIM_CHECK(prog.may_fail);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}
// Several at once, so that they have to wait for each other.
typedef struct op_jobs {
    volt_frame frame;
    volt_arm a, b, c;
    op_job job[3];
    int64_t rc;
} op_jobs;
static volt_poll jobs_op(volt_cx *cx, op_jobs *o, int id) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, VOLT_JOIN_ALL(VOLT_ARM(&o->a, job_op(cx, &o->job[0], id)),
                                    VOLT_ARM(&o->b, job_op(cx, &o->job[1], id)),
                                    VOLT_ARM(&o->c, job_op(cx, &o->job[2], id))));
    VOLT_END(o->rc);
}
static void call_in_place(volt_cx *cx) {
    call *c = note_call(volt_cx_rt(cx), IN_PLACE);
    if (c) settle_call(c, volt_block_in_place(cx, call_fn, c));
}

// ---- files

static int is_path_used[SIM_PATHS];
static int path_take(void) {
    for (int i = 0; i < SIM_PATHS; i++)
        if (!is_path_used[i]) return is_path_used[i] = 1, i;
    return -1;
}
typedef struct op_file {
    volt_frame frame;
    volt_file_op op;
    struct stat st;
    char path[8];
    int i, fd;
    size_t n;
    int64_t rc, at;
    unsigned char out[FILE_BYTES], in[FILE_BYTES];
} op_file;
static int file_has_failed(const op_file *o, int id) {
    if (o->rc >= 0) return 0;
    SIM_CHECK(prog.may_fail || prog.is_interrupted || o->rc == -ECANCELED);
    SIM_CHECK(o->rc != -ECANCELED || may_be_cancelled(id));
    SIM_CHECK(o->rc == -ECANCELED || o->rc == -EAGAIN || o->rc == -ENOMEM || o->rc == -EIO ||
              o->rc == -ENOSPC || o->rc == -EMFILE || o->rc == -ENFILE || o->rc == -EINTR);
    return 1;
}
static void file_draw(op_file *o, int id) {
    o->n = 1 + prog_below(sizeof o->out);
    o->at = prog_below(200);
    fill_bytes(o->out, o->n, (uint64_t)id, 0);
    memset(o->in, 0, sizeof o->in);
}
static volt_poll file_whole(volt_cx *cx, op_file *o, int id) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_file_save(cx, &o->op, o->path, o->out, o->n, 0600));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    SIM_CHECK(o->rc == (int64_t)o->n);
    VOLT_AWAIT(o->rc, volt_file_load(cx, &o->op, o->path, o->in, sizeof o->in));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    SIM_CHECK(o->rc == (int64_t)o->n);
    check_bytes(o->in, o->n, (uint64_t)id, 0);
    VOLT_END(0);
}
static volt_poll file_parts(volt_cx *cx, op_file *o, int id) {
    VOLT_BEGIN(cx, o);
    VOLT_AWAIT(o->rc, volt_file_pwrite(cx, &o->op, o->fd, o->out, o->n, o->at));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    SIM_CHECK(o->rc == (int64_t)o->n);
    VOLT_AWAIT(o->rc, volt_file_fsync(cx, &o->op, o->fd, o->n % 2 != 0));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    VOLT_AWAIT(o->rc, volt_file_stat(cx, &o->op, o->path, &o->st));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    SIM_CHECK(o->st.st_size == o->at + (int64_t)o->n);
    VOLT_AWAIT(o->rc, volt_file_pread(cx, &o->op, o->fd, o->in, sizeof o->in, o->at));
    if (file_has_failed(o, id)) VOLT_RETURN(o->rc);
    SIM_CHECK(o->rc == (int64_t)o->n);
    check_bytes(o->in, o->n, (uint64_t)id, 0);
    VOLT_END(0);
}
typedef struct op_files {
    volt_frame frame;
    op_file f;
    int64_t rc;
} op_files;
static volt_poll files_run(volt_cx *cx, op_files *o, int id) {
    VOLT_BEGIN(cx, o);
    o->f.i = path_take();
    if (o->f.i < 0) VOLT_RETURN(0);
    snprintf(o->f.path, sizeof o->f.path, "/%d", o->f.i);
    ask_pool(volt_cx_rt(cx)); // one at a time
    file_draw(&o->f, id);
    VOLT_AWAIT(o->rc, file_whole(cx, &o->f, id));
    if (o->rc == 0) {
        VOLT_AWAIT(o->rc, volt_file_open(cx, &o->f.op, o->f.path, O_RDWR | O_TRUNC, 0));
        o->f.rc = o->f.fd = (int)o->rc;
        file_has_failed(&o->f, id);
    }
    if (o->rc >= 0) {
        VOLT_AWAIT(o->rc, file_parts(cx, &o->f, id));
        VOLT_AWAIT(o->f.rc, volt_file_close(cx, &o->f.op, o->f.fd));
        file_has_failed(&o->f, id); // it is closed in any case
        if (o->f.rc == -ECANCELED) o->rc = o->f.rc;
    }
    is_path_used[o->f.i] = 0;
    calls.pool[pool_of(volt_cx_rt(cx))].n_asked--;
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- names

static const char *const host_names[] = {"1", "01", "0010", "1", "110010", "0"};
static void check_addresses(const char *host, const char *service, const volt_addr *a, int64_t n,
                            size_t cap) {
    size_t len = strlen(host);
    SIM_CHECK(n == (int64_t)(len < cap ? len : cap));
    for (int64_t i = 0; i < n; i++)
        SIM_CHECK(volt_addr_port(&a[i]) == (host[i] == '1' ? atoi(service) : SIM_DEAD_PORT));
}
static void check_unnamed(int64_t rc, int id) {
    if (rc == -ECANCELED) SIM_CHECK(may_be_cancelled(id));
    else if (rc != -ETIMEDOUT) SIM_CHECK(prog.may_fail);
    SIM_CHECK(rc == -ECANCELED || rc == -ETIMEDOUT || rc == -ENOENT || rc == -EAGAIN ||
              rc == -ENOMEM || rc == -EMFILE);
}
typedef struct op_name {
    volt_frame frame;
    volt_lookup lookup;
    volt_timer timer;
    volt_addr addr[5];
    const char *host;
    int64_t limit, rc;
} op_name;
static volt_poll name_run(volt_cx *cx, op_name *o, int id) {
    VOLT_BEGIN(cx, o);
    o->host = host_names[prog_below(6)];
    o->limit = prog_below(2) ? VOLT_NEVER : prog_below(1u << 22);
    VOLT_AWAIT(o->rc, volt_within(cx, &o->timer, o->limit,
                                  volt_resolve(cx, &o->lookup, o->host, "77", o->addr, 5)));
    if (o->rc >= 0) check_addresses(o->host, "77", o->addr, o->rc, 5);
    else check_unnamed(o->rc, id);
    VOLT_END(o->rc == -ECANCELED ? o->rc : 0);
}

// ---- every runnable task in one queue, when all threads sleep

typedef struct queued {
    uint64_t n; // tasks in queues
    int is_anyone_asleep;
} queued;
static uint32_t count_chain(const volt__task *t) {
    uint32_t n = 0;
    for (; t; t = t->next) n++;
    return n;
}
static uint32_t chain_len(const volt__injector *q) {
    uint32_t n = count_chain(q->head);
    SIM_CHECK(n == q->len);
    return n;
}
static uint32_t spill_len(volt__overflow *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) n += count_chain(volt__overflow_batch(s, i)->head);
    SIM_CHECK(n == s->len);
    return n;
}
static void check_worker(volt_rt *rt, uint32_t i, queued *all) {
    volt__worker *w = rt->workers[i];
    int is_asleep = volt__idle_is_parked(&rt->idle, i);
    uint32_t own = volt__ring_n_claimed(&w->ring) + volt__ring_len(&w->ring) + (w->lifo != NULL);
    uint32_t placed = chain_len(&w->inbox), bound = chain_len(&w->bound);
    own += spill_len(&w->overflow);
    SIM_CHECK(volt__head_distance(w->ring.head) == 0);
    if (is_asleep && own > 0) sim_fail("worker %u sleeps on %u tasks", i, own);
    if (is_asleep && bound > 0 && !w->is_guest) sim_fail("worker %u sleeps on bound tasks", i);
    if (!w->is_blocked) SIM_CHECK(volt__worker_load(rt, i) == own + placed + bound + !is_asleep);
    all->is_anyone_asleep |= is_asleep;
    all->n += own + placed + bound;
}
static uint64_t is_runnable(uintptr_t word) {
    return word >= VOLT__REF &&
           (word & (VOLT__NOTIFIED | VOLT__RUNNING | VOLT__COMPLETE)) == VOLT__NOTIFIED;
}
static uint64_t count_runnable(const volt_rt *rt) {
    uint64_t n = 0;
    for (volt__slab *s = rt->slabs.first; s; s = s->all_next)
        for (uint32_t i = 0; i < s->carved; i++) n += is_runnable(volt__slab_slot(s, i)->word);
    return n;
}
static void check_queues(volt_rt *rt) {
    queued all = {0, 0};
    uint64_t n_runnable = count_runnable(rt);
    uint32_t injected = chain_len(&rt->injector) + chain_len(&rt->urgent);
    for (uint32_t i = 0; i < rt->started; i++) check_worker(rt, i, &all);
    if (all.n + injected != n_runnable)
        sim_fail("%" PRIu64 " tasks in queues, %" PRIu64 " runnable", all.n + injected, n_runnable);
    uint64_t left = injected;
    for (uint32_t i = 0; i < rt->started; i++) left += rt->workers[i]->inbox.len;
    if (all.is_anyone_asleep && left > 0)
        sim_fail("%" PRIu64 " tasks wait while a worker sleeps", left);
}
// Called rarely: walking all slabs takes time. A worker that is woken late, or is just being
// started, may be in the middle of an operation.
static void look_at_queues(void) {
    if (sim.report.switches % 8) return;
    for (int i = 0; i < sim.n_threads; i++)
        if (sim.threads[i].state == SIM_WAKING) return;
    for (int i = 0; i < 2; i++) {
        volt_rt *rt = i ? prog.other : prog.rt;
        if (rt && !rt->is_stopped && !rt->is_starting) check_queues(rt);
    }
}

#endif // VOLT_SIM_CALLS_H
