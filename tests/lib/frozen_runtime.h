// SPDX-License-Identifier: MIT OR 0BSD
// A runtime whose workers have no carrier: only the test acts on it, step by step, with volt.h's
// own functions. So both sides of a race run in the harmful order. Include after volt.h, test.h and
// tasks.h.
#ifndef VOLT_TEST_FROZEN_RUNTIME_H
#define VOLT_TEST_FROZEN_RUNTIME_H

static inline volt_rt *still_rt(uint32_t n_workers) {
    volt_config c = test_config(n_workers);
    volt_rt *rt = NULL;
    CHECK_EQ(volt__rt_create(&c, &rt), 0);
    for (uint32_t i = 0; i < n_workers; i++) {
        volt__worker *w;
        CHECK_EQ(volt__worker_create(rt, i, &w), 0);
        rt->started = i + 1;
    }
    return rt;
}
static inline void still_end(volt_rt *rt) {
    volt__rt_free(rt);
    test_check_heap();
}
typedef struct still_state {
    volt_frame frame;
} still_state;
// A task that has the right to be queued and is not queued yet.
static inline volt__task *still_task(volt__worker *w) {
    volt__task *t = volt__task_alloc(w->rt, w, sizeof(still_state), 0);
    CHECK(t);
    memset(volt__task_state(t), 0, sizeof(still_state));
    volt__task_fill(t, giver_run, 0, "still");
    volt__task_publish(t, 1);
    return t;
}
// The context of a poll of `t` by `w`, in which `frame` awaits a leaf.
static inline volt_cx *still_cx(volt__worker *w, volt__task *t, volt_frame *frame) {
    volt_cx *cx = &w->cx;
    cx->task_ = t;
    cx->frame_ = &frame->node_;
    cx->budget_ = VOLT_BUDGET;
    cx->is_awaiting_ = 1;
    cx->cancel_level_ = cx->shield_depth_ = 0;
    return cx;
}
static inline void still_wait_readable(int fd) {
    struct pollfd p = { fd, POLLIN, 0 };
    CHECK_EQ(poll(&p, 1, -1), 1);
}

#endif // VOLT_TEST_FROZEN_RUNTIME_H
