// SPDX-License-Identifier: MIT OR 0BSD
// Runs an application's own tasks under simulation (sim.h); `make sim` builds and runs it. Two
// tasks pass numbers through a pair of sockets; whatever the seed does to them, the sum must be
// right, or an error must be due to the faults.
#define VOLT_IMPLEMENTATION
#include "sim.h"

enum { NUMBERS = 50, SEEDS = 2000 };

typedef struct source {
    volt_frame frame;
    int fd;
    uint32_t n;
    int64_t rc;
} source;
static volt_poll source_run(volt_cx *cx, void *arg) {
    source *s = arg;
    VOLT_BEGIN(cx, s);
    for (s->n = 1; s->n <= NUMBERS; s->n++) {
        VOLT_AWAIT(s->rc, volt_write_all(cx, s->fd, &s->n, sizeof s->n));
        if (s->rc < 0) break;
        if (s->n % 8 == 0) VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    }
    volt_close(cx, s->fd);
    VOLT_END(s->rc < 0 ? s->rc : 0);
}

typedef struct adder {
    volt_frame frame;
    volt_handle source;
    int fd[2];
    uint32_t n, sum;
    int64_t rc, source_rc;
} adder;
static volt_poll adder_run(volt_cx *cx, void *arg) {
    adder *a = arg;
    VOLT_BEGIN(cx, a);
    if (sim_socketpair(AF_UNIX, SOCK_STREAM, 0, a->fd) < 0) VOLT_RETURN(-errno);
    a->rc = VOLT_SPAWN(cx, &a->source, source_run, (source){.fd = a->fd[1]});
    if (a->rc < 0) volt_close(cx, a->fd[1]);
    while (a->rc >= 0) {
        VOLT_AWAIT(a->rc, volt_read_exact(cx, a->fd[0], &a->n, sizeof a->n));
        if (a->rc >= 0) a->sum += a->n;
    }
    volt_close(cx, a->fd[0]);
    if (volt_handle_is_set(&a->source)) VOLT_AWAIT(a->source_rc, volt_join(cx, &a->source));
    // -EPIPE: the end of the numbers
    SIM_CHECK(a->rc != -EPIPE || a->source_rc < 0 || a->sum == NUMBERS * (NUMBERS + 1) / 2);
    VOLT_END(a->rc == -EPIPE ? a->source_rc : a->rc);
}

static void program(void *n_passed) {
    adder a = {.sum = 0};
    volt_config c = {.workers = 3};
    int rc = volt_run(&c, adder_run, &a);
    SIM_CHECK(rc == 0 || rc == -ENOMEM || rc == -ENOSPC || rc == -EMFILE || rc == -EPIPE);
    *(int *)n_passed += rc == 0;
}
int main(void) {
    int n_passed = 0;
    uint64_t decisions = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sim_report r;
        if (sim_run(seed, NULL, program, &n_passed, &r) < 0) {
            printf("seed %" PRIu64 ": %s; its last steps:\n", seed, r.failure);
            sim_replay(seed, NULL, program, &n_passed);
            return 1;
        }
        decisions += r.points;
    }
    printf("example: %d seeds, %" PRIu64
           " decisions, %d ended well, %d with an error of the faults\n",
           SEEDS, decisions, n_passed, SEEDS - n_passed);
    return 0;
}
