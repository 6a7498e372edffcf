// SPDX-License-Identifier: MIT OR 0BSD
// The whole runtime in miniature: real workers that park in epoll_wait without a time limit, real
// shutdown. A task pushed while they fall asleep must be run; all ends, nothing leaks.
#define MODEL_BARRIER
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

static uint32_t n_ran;

typedef struct item {
    volt_frame frame;
} item;
static volt_poll run_item(volt_cx *cx, void *arg) {
    item *i = arg;
    VOLT_BEGIN(cx, i);
    __atomic_fetch_add(&n_ran, 1, __ATOMIC_RELAXED);
    VOLT_END(0);
}
static volt_rt *create(uint32_t workers) {
    volt_config c;
    volt_rt *rt = NULL;
    memset(&c, 0, sizeof c);
    c.workers = workers;
    c.start_all_workers = 1;
    c.seed = 1;
    c.alloc.alloc = vmc_volt_alloc;
    c.alloc.free = vmc_volt_free;
    VMC_ASSERT(volt_create(&c, &rt) == 0);
    return rt;
}
static void destroy(volt_rt *rt) {
    VMC_ASSERT(volt_shutdown(rt, VOLT_NEVER) == 0);
    VMC_ASSERT(volt_destroy(rt) == 0);
}
static void run_one_item(uint32_t workers) {
    static item i;
    volt_rt *rt = create(workers);
    VMC_ASSERT(VOLT_RT_SPAWN(rt, NULL, run_item, i) == 0);
    destroy(rt);
    VMC_ASSERT(n_ran == 1);
}
SCENARIO(runtime_one_worker, .class = VMC_BOUNDED, .preemptions = 2, .stale_reads = 1) {
    run_one_item(1);
}
// Its two threads with many switches, under sequential consistency.
SCENARIO(runtime_one_worker_sc, .class = VMC_BOUNDED, .preemptions = 6, .stale_reads = VMC_NO_STALE,
         .is_long = 1) {
    run_one_item(1);
}
SCENARIO(runtime_two_workers, .class = VMC_BOUNDED, .preemptions = 1, .stale_reads = VMC_NO_STALE) {
    run_one_item(2);
}
SCENARIO(runtime_two_workers_sampled, .class = VMC_SAMPLED, .samples = 2000) { run_one_item(2); }
