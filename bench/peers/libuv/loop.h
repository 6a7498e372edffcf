// SPDX-License-Identifier: MIT OR 0BSD
// A loop of libuv that runs in a thread of its own, for rows whose work comes from outside.
#ifndef LOOP_H
#define LOOP_H

#include "../peer.h"
#include <uv.h>

typedef struct loop {
    uv_loop_t uv;
    uv_async_t wake, stop;
    uv_thread_t thread;
} loop;

static inline void loop_must(int rc) {
    if (rc < 0) bench_die("libuv: %s", uv_strerror(rc));
}

static inline void loop_run(void *arg) {
    loop *l = arg;
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

static inline void loop_on_stop(uv_async_t *stop) {
    loop *l = stop->data;
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->stop, NULL);
}

static inline void loop_start(loop *l, uv_async_cb on_wake) {
    loop_must(uv_loop_init(&l->uv));
    loop_must(uv_async_init(&l->uv, &l->wake, on_wake));
    loop_must(uv_async_init(&l->uv, &l->stop, loop_on_stop));
    l->stop.data = l;
    loop_must(uv_thread_create(&l->thread, loop_run, l));
}

static inline void loop_end(loop *l) {
    loop_must(uv_async_send(&l->stop));
    loop_must(uv_thread_join(&l->thread));
    loop_must(uv_loop_close(&l->uv));
}

#endif // LOOP_H
