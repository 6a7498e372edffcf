// SPDX-License-Identifier: MIT OR 0BSD
// Shared by scenarios about workers: a runtime made by the real functions, except for its threads.
// A scenario chooses the workers that run, as model threads. Include after volt.h.
#ifndef VMC_RUNTIME_H
#define VMC_RUNTIME_H

static volt_rt *rt;
static volt__worker *workers[4];

// n workers, none of which runs. watchdog_us: 0 for the default, UINT32_MAX for no watchdog.
__attribute__((unused)) static void make_runtime(uint32_t n, uint32_t watch_us) {
    volt_config cfg;
    memset(&cfg, 0, sizeof cfg);
    cfg.workers = n;
    cfg.watchdog_us = watch_us;
    cfg.alloc.alloc = vmc_volt_alloc;
    cfg.alloc.free = vmc_volt_free;
    VMC_ASSERT(volt__rt_create(&cfg, &rt) == 0);
    for (uint32_t i = 0; i < n; i++) VMC_ASSERT(volt__worker_create(rt, i, &workers[i]) == 0);
    rt->started = n;
}
// For scenarios without stealing and without scans of the watchdog: each worker's ring and LIFO
// slot are its own, so that the fences of their lock do not order unrelated accesses.
__attribute__((unused)) static void make_runtime_of_own_rings(uint32_t n) {
    make_runtime(n, UINT32_MAX);
    for (uint32_t i = 0; i < n; i++) workers[i]->is_solo = 1;
}
// All threads have ended. As volt__rt_free, except for the table of descriptors, whose scan takes
// longer than most executions.
static void free_runtime(void) {
    volt__slabs_destroy(&rt->slabs);
    for (uint32_t i = 0; i < rt->started; i++) volt__worker_destroy(rt, workers[i]);
    if (rt->watchdog.fd >= 0) VOLT_SYS(close, rt->watchdog.fd);
    vmc_free(rt->workers);
    vmc_free(rt->fds.epfd);
    vmc_free(rt);
}

// ---- workers that run their tasks and then end

__attribute__((unused)) static void act_as(volt__worker *w) { VOLT_TLS_SET(w); }
__attribute__((unused)) static void drain(void *arg) {
    volt__worker *w = arg;
    act_as(w);
    w->needs_watchdog = 0;
    for (volt__task *t; (t = volt__next_local(w)) != NULL;) volt__poll_task(w, t);
}
// A task on the own queue of w; its state stays with the caller.
__attribute__((unused)) static void spawn_on(volt__worker *w, volt_handle *h, volt_fn *fn,
                                             void *state) {
    act_as(w);
    VMC_ASSERT(volt__spawn_root(rt, w, h, fn, state, 0) == 0);
    act_as(NULL);
}
// Called after all threads were joined: runs the tasks left on any queue, then none may be alive.
__attribute__((unused)) static void finish(void) {
    for (uint32_t i = 0; i < rt->started; i++) drain(workers[i]);
    act_as(NULL);
    VMC_ASSERT(volt__count_alive(rt) == 0);
    free_runtime();
}

#endif // VMC_RUNTIME_H
