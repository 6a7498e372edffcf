// SPDX-License-Identifier: MIT OR 0BSD
// The end of a runtime hands over to the thread that waited for it [S1] [S2]: how many workers
// there are, and what the last tasks wrote, also on worker 0, which may have no thread that is
// joined. No thread sleeps on is_stopped here: its wake-up, a system call, would order more than
// the words do.
#define VOLT_LOCK_TRIES 0
#define MODEL_BARRIER
#include "vmc.h"
#undef VOLT_FUTEX_WAKE
#define VOLT_FUTEX_WAKE(word_, n_) ((n_) == 1 ? vmc_futex_wake(word_, n_) : (void)0)
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

// The end of volt__start_next on worker 0, beside a shutdown that the new worker ends.
static void has_started(void *unused) {
    (void)unused;
    volt__lock(&rt->start_lock);
    rt->is_starting = 0;
    volt__store_rel(&rt->started, 2);
    volt__unlock(&rt->start_lock);
    volt__check_shutdown(workers[0]);
}
static void park_last(void *worker) {
    volt__worker *w = worker;
    volt__check_shutdown(w);
    volt__idle_park(&rt->idle, w->index, 0);
    volt__stop_if_done(rt);
}
SCENARIO(stop_beside_a_start) {
    vmc_must_happen("stopped");
    make_runtime(2, UINT32_MAX);
    rt->started = rt->is_starting = 1;
    volt__shutdown_begin(rt); // counts both
    int t = vmc_spawn(has_started, NULL), u = vmc_spawn(park_last, workers[1]);
    if (volt__is_stopped(rt)) {
        vmc_reached("stopped");
        VMC_ASSERT(volt__started(rt) == 2); // two threads are joined, and two workers freed
    }
    vmc_join(t);
    vmc_join(u);
    free_runtime();
}

static uint32_t written;
static volt_poll writes(volt_cx *cx, void *arg) {
    (void)cx, (void)arg;
    written = 1; // plain
    return volt_ready(0);
}
static void poll_last(void *unused) {
    (void)unused;
    act_as(workers[0]);
    volt__poll_task(workers[0], volt__next_local(workers[0]));
    park_last(workers[0]);
    act_as(NULL);
}
SCENARIO(stop_hands_over_what_tasks_wrote) {
    static volt_frame state;
    vmc_must_happen("stopped");
    make_runtime(2, UINT32_MAX);
    workers[0]->needs_watchdog = 0;
    spawn_on(workers[0], NULL, writes, &state);
    volt__shutdown_begin(rt);
    for (int i = 0; i < 2; i++) volt__check_shutdown(workers[i]);
    int t = vmc_spawn(park_last, workers[1]), u = vmc_spawn(poll_last, NULL);
    int is_stopped = volt__is_stopped(rt);
    vmc_join(t); // a thread of the runtime; worker 0 is none
    if (is_stopped) {
        vmc_reached("stopped");
        VMC_ASSERT(written == 1);
    }
    vmc_join(u);
    free_runtime();
}
