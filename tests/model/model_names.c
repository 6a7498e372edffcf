// SPDX-License-Identifier: MIT OR 0BSD
// Lookups of names: a task that still waits for one gets its answer, or learns that no thread
// comes; one that no task waits for any more is freed once, by its thread or by the task that left
// it last, and a shutdown with a time limit knows that it runs.
// Run: make model ONE=names_leave (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#include "refuse.h"
#include <netdb.h>
#include <netinet/in.h>
static uint32_t n_asked;
static uint32_t may_answer = 1; // futex word
static int ask(struct addrinfo **out) {
    static struct sockaddr_in address = { .sin_family = AF_INET };
    static struct addrinfo answer = { .ai_addr = (struct sockaddr *)&address,
                                      .ai_addrlen = sizeof address };
    __atomic_fetch_add(&n_asked, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&may_answer, __ATOMIC_ACQUIRE))
        vmc_futex_wait(&may_answer, 0, INT64_MAX);
    *out = &answer;
    return 0;
}
#undef vmc_sys_getaddrinfo
#undef vmc_sys_freeaddrinfo
#define vmc_sys_getaddrinfo(host_, service_, hints_, out_) ((void)(hints_), ask(out_))
#define vmc_sys_freeaddrinfo(list_) ((void)(list_))
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { N_LOOKUPS = 2 };
typedef struct lookup {
    volt_frame frame;
    volt_lookup lookup;
    volt_addr addr;
    int64_t rc;
} lookup;
static lookup lookups[N_LOOKUPS];
static volt_handle handles[N_LOOKUPS];

static volt_poll resolves(volt_cx *cx, void *arg) {
    lookup *l = arg;
    VOLT_BEGIN(cx, l);
    VOLT_AWAIT(l->rc, volt_resolve(cx, &l->lookup, "h", "1", &l->addr, 1));
    VOLT_END(0);
}
static void start(int i) { spawn_on(workers[i], &handles[i], resolves, &lookups[i]); }
static void begin(uint32_t n_workers) { make_runtime(n_workers, UINT32_MAX); }
static void close_names(void) {
    VMC_ASSERT(volt__pool_close(&rt->pool, VOLT_NEVER) == 0);
    VMC_ASSERT(!rt->queries && !rt->pool.n_queued);
}
// All threads have ended; what they have woken runs.
static void end(uint32_t n) {
    close_names();
    drain(workers[0]);
    for (uint32_t i = 0; i < n; i++) volt_detach(&handles[i]);
    finish();
}
static void leave(int i) {
    act_as(workers[0]);
    volt_cancel(&handles[i]);
    drain(workers[0]);
    act_as(NULL);
}

// Answered, cancelled while it was asked, or before.
static void check_left(int i) {
    VMC_ASSERT(lookups[i].rc == -ECANCELED || (lookups[i].rc == 1 && n_asked > 0));
    vmc_reached(lookups[i].rc == 1 ? "answered" : n_asked ? "asked" : "taken back");
}
SCENARIO(names_leave, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1) {
    vmc_must_happen("answered");
    vmc_must_happen("asked");
    vmc_must_happen("taken back");
    begin(1);
    start(0);
    drain(workers[0]);
    leave(0);
    end(1);
    check_left(0);
}
// Of two that share it the one that has asked leaves; the other gets the answer.
SCENARIO(names_leave_one, .class = VMC_BOUNDED, .preemptions = 1, .contests = 1) {
    begin(1);
    start(0);
    drain(workers[0]);
    spawn_on(workers[0], &handles[1], resolves, &lookups[1]);
    drain(workers[0]);
    leave(0);
    end(2);
    check_left(0);
    VMC_ASSERT(lookups[1].rc == 1);
}
// One task comes to wait for the answer while the only one that waits so far leaves: it waits for
// the same question, or finds it given up and asks another one; its answer comes either way.
static const volt__query *asked_first;
static int has_joined;
static volt_poll comes(volt_cx *cx, void *arg) {
    const lookup *l = arg;
    volt_poll p = resolves(cx, arg);
    if (volt_is_pending(p)) has_joined = l->lookup.query_ == asked_first;
    return p;
}
static void come(void *worker) { drain(worker); }
SCENARIO(names_join_beside_leave, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = 1,
         .contests = 1) {
    vmc_must_happen("joins what is left");
    vmc_must_happen("asks again");
    begin(2);
    start(0);
    drain(workers[0]);
    asked_first = lookups[0].lookup.query_;
    spawn_on(workers[1], &handles[1], comes, &lookups[1]);
    int t = vmc_spawn(come, workers[1]);
    leave(0);
    vmc_join(t);
    end(2);
    check_left(0);
    VMC_ASSERT(lookups[1].rc == 1);
    if (lookups[0].rc < 0) vmc_reached(has_joined ? "joins what is left" : "asks again");
    if (has_joined) VMC_ASSERT(n_asked == 1);
}
// One thread is not started. Of two that ask at once both learn of it if one has joined the other;
// else the question that was refused fails, or waits for the thread of the other one.
static void resolve(void *worker) { drain(worker); }
static int is_answered(int i) {
    const lookup *l = &lookups[i];
    VMC_ASSERT(l->rc == 1 || l->rc == -EAGAIN);
    VMC_ASSERT(l->addr.len_ == (l->rc == 1 ? sizeof(struct sockaddr_in) : 0));
    return l->rc == 1;
}
SCENARIO(names_no_thread, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    vmc_must_happen("none is answered");
    vmc_must_happen("one is answered");
    vmc_must_happen("both are answered");
    begin(2);
    n_refusals = 1;
    start(0);
    start(1);
    int t = vmc_spawn(resolve, workers[1]);
    drain(workers[0]);
    vmc_join(t);
    end(2);
    uint32_t n = (uint32_t)(is_answered(0) + is_answered(1));
    VMC_ASSERT(n_asked == n); // each answer is to a question of its own
    vmc_reached(n == 0 ? "none is answered" : n == 1 ? "one is answered" : "both are answered");
}
// A shutdown's time is up while the answer is awaited: it tells how many calls are left alone.
static void answer(void *unused) {
    (void)unused;
    __atomic_store_n(&may_answer, 1, __ATOMIC_RELEASE);
    vmc_futex_wake(&may_answer, 1);
}
SCENARIO(names_shutdown, .class = VMC_BOUNDED, .preemptions = 1, .early_timers = 1,
         .contests = 1) {
    vmc_must_happen("left alone");
    vmc_must_happen("in time");
    may_answer = 0;
    begin(1);
    start(0);
    drain(workers[0]);
    volt__shutdown_begin(rt);
    drain(workers[0]);
    volt__check_shutdown(workers[0]);
    drain(workers[0]);
    volt_detach(&handles[0]);
    volt__idle_park(&rt->idle, 0, 0);
    volt__stop_if_done(rt);
    VMC_ASSERT(volt__is_stopped(rt));
    act_as(NULL);
    int t = vmc_spawn(answer, NULL), rc = volt_shutdown(rt, 10);
    vmc_reached(rc ? "left alone" : "in time");
    VMC_ASSERT(rc == 1 ? volt_destroy(rt) == -EBUSY : rc == 0);
    vmc_join(t);
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0 && !volt__is_pool_busy(rt));
    free_runtime();
}
