// SPDX-License-Identifier: MIT OR 0BSD
// Starting workers ([R1]): whoever sees that one more has started finds it made, and may look into
// its ring, poke it, and claim it. The thread is started by the real function; it finds the runtime
// stopped, or the task that waits, and ends.
#define VOLT_LOCK_SPIN 0
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
    VMC_ASSERT(!volt__is_anything_takeable(rt));
    for (uint32_t i = 0; i < n; i++) VMC_ASSERT(rt->workers[i]->index == i);
    volt__poke_all(rt);
    vmc_join(t);
    VMC_ASSERT(rt->started == 2);
    join_started();
}
// Two wish for one at once: one thread is started, not two.
SCENARIO(start_two_wishes) {
    make_one_of_two();
    int t = vmc_spawn(start_next, workers[0]);
    VMC_ASSERT(volt__start_next(rt) == 0);
    vmc_join(t);
    VMC_ASSERT(rt->started == 2);
    join_started();
}
