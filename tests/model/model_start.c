// SPDX-License-Identifier: MIT OR 0BSD
// Starting workers ([R1]): a thread that sees that one more has started finds it made, and may look
// into its ring, poke it, and claim it. The worker's thread is started by the real function; it
// finds the runtime stopped, or the task that waits, and ends.
#define VOLT_LOCK_TRIES 0
#define MODEL_BARRIER
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

static void start_next(void *arg) {
    act_as(arg);
    VMC_ASSERT(volt__start_next(rt) == 0);
    act_as(NULL);
}
// A runtime for two workers, one of which exists.
static void make_one_of_two(void) {
    make_runtime(2, UINT32_MAX);
    volt__worker_destroy(rt, workers[1]);
    rt->workers[1] = workers[1] = NULL;
    rt->started = 1;
    rt->is_stopped = 1;
}
static void join_started(void) {
    VOLT_THREAD_JOIN(rt->workers[1]->thread);
    workers[1] = rt->workers[1];
    finish();
}
SCENARIO(start_scan) {
    vmc_must_happen("the new worker is seen");
    vmc_must_happen("it is not seen yet");
    make_one_of_two();
    int t = vmc_spawn(start_next, workers[0]);
    uint32_t n = volt__started(rt);
    vmc_reached(n == 2 ? "the new worker is seen" : "it is not seen yet");
    VMC_ASSERT(!volt__has_stealable_work(rt));
    for (uint32_t i = 0; i < n; i++) VMC_ASSERT(rt->workers[i]->index == i);
    volt__unpark_all(rt);
    vmc_join(t);
    VMC_ASSERT(rt->started == 2);
    join_started();
}
// It parks, as there is nothing to do, and a thread from outside claims it: the bit that was set
// and cleared is all that they know of each other.
SCENARIO(start_claim, .class = VMC_BOUNDED, .preemptions = 3) {
    vmc_must_happen("claimed");
    make_one_of_two();
    rt->is_stopped = 0;
    rt->idle.searching = 1; // another worker, which gives up below
    int t = vmc_spawn(start_next, workers[0]);
    volt__sub_acq_rel(&rt->idle.searching, 1);
    int i = volt__idle_claim(&rt->idle, VOLT__ANY_WORKER);
    if (i >= 0) {
        vmc_reached("claimed");
        VMC_ASSERT(i == 1);
        volt__reactor_unpark(&rt->workers[i]->reactor);
    }
    volt__store_rel(&rt->is_stopped, 1);
    vmc_join(t);
    volt__unpark_all(rt);
    join_started();
}
// A shutdown counts the workers that have to acknowledge it: one that is being started among them,
// and none is started behind it.
static void shut_down(void *arg) {
    (void)arg;
    volt__shutdown_begin(rt);
}
SCENARIO(start_beside_shutdown, .class = VMC_BOUNDED, .preemptions = 2) {
    vmc_must_happen("started");
    vmc_must_happen("refused");
    make_one_of_two();
    int t = vmc_spawn(shut_down, NULL);
    start_next(workers[0]);
    vmc_join(t);
    vmc_reached(rt->started == 2 ? "started" : "refused");
    if (rt->started == 2) VOLT_THREAD_JOIN(rt->workers[1]->thread);
    workers[1] = rt->workers[1];
    uint32_t n_owed = 0;
    for (uint32_t i = 0; i < rt->started; i++) n_owed += !workers[i]->is_closing;
    VMC_ASSERT(rt->starts_closed && rt->acks == n_owed);
    finish();
}
// Two wish for one at once: one thread is started, not two.
static void two_wishes(void) {
    make_one_of_two();
    int t = vmc_spawn(start_next, workers[0]);
    VMC_ASSERT(volt__start_next(rt) == 0);
    vmc_join(t);
    VMC_ASSERT(rt->started == 2);
    join_started();
}
SCENARIO(start_two_wishes, .class = VMC_BOUNDED, .preemptions = 2) { two_wishes(); }
SCENARIO(start_two_wishes_long, .class = VMC_BOUNDED, .preemptions = 3, .is_long = 1) {
    two_wishes();
}
