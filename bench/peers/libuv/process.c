// SPDX-License-Identifier: MIT OR 0BSD
// Process rows by libuv.
//
//   process [ROW...] [--reps N]      default: all rows, 9 repetitions
//
//   P1   uv_spawn of true(1), 100 times one after the other
//   P2   8 at once, 25 times each
//
// For the columns see ../../rows/bench.h.
#include "../peer.h"
#include <uv.h>

enum { ONE_BY_ONE = 100, AT_ONCE = 8, EACH = 25 };
typedef struct starter {
    uv_process_t process;
    int left;
} starter;
static uv_loop_t loop;
static starter starters[AT_ONCE];

static void must(int rc) {
    if (rc < 0) bench_die("libuv: %s", uv_strerror(rc));
}
static void start_next(starter *s);
static void on_closed(uv_handle_t *handle) { start_next(handle->data); }
static void on_exit_of(uv_process_t *process, int64_t status, int signal) {
    peer_done += status == 0 && signal == 0;
    uv_close((uv_handle_t *)process, on_closed);
}
static void start_next(starter *s) {
    static char *argv[] = { "/bin/true", NULL };
    uv_process_options_t options = { .exit_cb = on_exit_of, .file = argv[0], .args = argv };
    uv_stdio_container_t inherited[3];
    if (s->left-- == 0) return;
    for (int i = 0; i < 3; i++) {
        inherited[i].flags = UV_INHERIT_FD;
        inherited[i].data.fd = i;
    }
    options.stdio = inherited;
    options.stdio_count = 3;
    s->process.data = s;
    must(uv_spawn(&loop, &s->process, &options));
}
static void run(int n, int times) {
    for (int i = 0; i < n; i++) {
        starters[i].left = times;
        start_next(&starters[i]);
    }
    must(uv_run(&loop, UV_RUN_DEFAULT));
}
static void p1_run(void) { run(1, ONE_BY_ONE); }
static void p2_run(void) { run(AT_ONCE, EACH); }
static void begin(void) { must(uv_loop_init(&loop)); }
static void end(void) { must(uv_loop_close(&loop)); }

static const row rows[] = {
    { "P1", "uv_spawn of true(1), one at a time", ONE_BY_ONE, p1_run, begin, end },
    { "P2", "uv_spawn of true(1), 8 at a time", AT_ONCE * EACH, p2_run, begin, end },
};

int main(int argc, char **argv) { return peer_main(argc, argv, rows, BENCH_COUNT(rows)); }
