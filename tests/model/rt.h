// SPDX-License-Identifier: MIT OR 0BSD
// A runtime for scenarios, made by volt.h's own functions, whose workers have no carrier yet: each
// thread of the scenario takes one (rt_carry) and performs the scenario's operations with it.
// Include it after volt.h.
//
// The runtime and its workers are statics, which cost an execution nothing; slabs come from the
// checker's heap, where a use after free is found.
#ifndef VMC_RT_H
#define VMC_RT_H

#include "../lib/slab.h"

enum { RT_STATIC = 1 << 15 };
static volt_rt *rt;
static volt__worker *w0, *w1;

static __attribute__((aligned(128))) char rt_memory[RT_STATIC];
static size_t rt_used;
static int rt_is_on_heap; // set it before rt_make where volt_destroy frees the runtime
static void *rt_alloc(void *user, size_t size, size_t align) {
    if (align == VOLT_SLAB_SIZE || rt_is_on_heap) return vmc_volt_alloc(user, size, align);
    size_t at = (rt_used + align - 1) & ~(align - 1);
    VMC_ASSERT(at + size <= RT_STATIC);
    rt_used = at + size;
    return rt_memory + at;
}
static void rt_release(void *user, void *block, size_t size) {
    char *p = block;
    if (p < rt_memory || p >= rt_memory + RT_STATIC) vmc_volt_free(user, block, size);
}

// Pushes go to the ring, where others may steal, as after VOLT_LIFO_MAX polls from the LIFO slot.
static void rt_use_ring(volt__worker *w) { w->lifo_run = VOLT_LIFO_MAX; }
static volt__worker *rt_worker(uint32_t index) {
    volt__worker *w;
    VMC_ASSERT(volt__worker_create(rt, index, &w) == 0);
    w->needs_watchdog = 0; // as if it had found a task
    rt_use_ring(w);
    rt->started = index + 1;
    return w;
}
static void rt_log(void *user, int item, const char *text) {
    (void)user;
    if (item == VOLT_LOG_NEVER_WAKES) vmc_fail("%s", text);
}
static void rt_make(uint32_t n_workers) {
    volt_config cfg;
    memset(&cfg, 0, sizeof cfg);
    cfg.workers = n_workers;
    cfg.watchdog_us = UINT32_MAX;
    cfg.seed = 1;
    cfg.log.fn = rt_log;
    cfg.alloc.alloc = rt_alloc;
    cfg.alloc.free = rt_release;
    VMC_ASSERT(volt__rt_create(&cfg, &rt) == 0);
    w0 = rt_worker(0);
    if (n_workers > 1) w1 = rt_worker(1);
}

// ---- operations of a thread that carries a worker

static __attribute__((unused)) void rt_carry(volt__worker *w) { VOLT_TLS_SET(w); }
static int rt_poll(volt__worker *w, volt__task *t) {
    rt_use_ring(w);
    if (t) volt__poll_task(w, t);
    return t != NULL;
}
static __attribute__((unused)) int rt_run_one(volt__worker *w) {
    return rt_poll(w, volt__next_local(w));
}
static __attribute__((unused)) void rt_run_all(volt__worker *w) {
    while (rt_run_one(w)) {}
}
// Steals a task from `from`, and polls it once.
static __attribute__((unused)) int rt_steal_and_run(volt__worker *w, volt__worker *from) {
    uint32_t n = volt__ring_steal(&from->ring, &w->ring);
    return rt_poll(w, n ? volt__ring_pop(&w->ring) : NULL);
}

// ---- the end, after all threads were joined

// The calling thread carries w0 and runs the remaining tasks of all workers. Then every slot must
// have been freed, each to its own heap.
static __attribute__((unused)) void rt_end(void) {
    rt_carry(w0);
    do rt_run_all(w0);
    while (w1 && rt_steal_and_run(w0, w1));
    for (uint32_t i = 0; i < rt->started; i++) { // as each worker does before it sleeps
        volt__remote_batch_flush(&rt->workers[i]->remote_batch);
    }
    for (uint32_t i = 0; i < rt->started; i++) {
        VMC_ASSERT(volt__backlog(rt->workers[i]) == 0);
        volt__heap_drain(&rt->workers[i]->heap);
    }
    for (int i = 0; i < VOLT__OUTSIDE_HEAPS; i++) volt__heap_drain(&rt->outside_heaps[i]);
    for (volt__slab *s = rt->slabs.first; s; s = s->all_next) VMC_ASSERT(slab_used(s) == 0);
    volt__slabs_destroy(&rt->slabs);
}

#endif // VMC_RT_H
