// SPDX-License-Identifier: MIT OR 0BSD
// A thread logs by examples/programs/service/log.h while the task of the log ends: it has found the
// log running, and gives its line to the queue only when the task has ended. See service.sh.
#define VOLT_IMPLEMENTATION
#include "volt.h"
static int send_late(volt_chan *c, const void *line, size_t size);
#define volt_chan_try_send send_late
#include "examples/programs/service/log.h"
#undef volt_chan_try_send
#include <pthread.h>
#include <semaphore.h>

static sem_t has_begun, may_end; // of the send

static int send_late(volt_chan *c, const void *line, size_t size) {
    sem_post(&has_begun);
    sem_wait(&may_end);
    return volt_chan_try_send(c, line, size);
}
static void *thread_main(void *arg) {
    log_event(LOG_NEWS, "late", NULL);
    return arg;
}
typedef struct {
    volt_frame frame;
    volt_handle log;
    pthread_t thread;
    int rc;
} root;
static volt_poll root_run(volt_cx *cx, void *arg) {
    root *r = (root *)arg;
    VOLT_BEGIN(cx, r);
    r->rc = VOLT_SPAWN(cx, &r->log, log_run, (log_writer){ .n = 0 });
    if (r->rc < 0) VOLT_RETURN(r->rc);
    log_begin();
    if (pthread_create(&r->thread, NULL, thread_main, NULL) != 0) VOLT_RETURN(-EAGAIN);
    while (sem_trywait(&has_begun) != 0) VOLT_AWAIT(volt_yield(cx));
    volt_cancel(&r->log);
    VOLT_AWAIT(r->rc, volt_join(cx, &r->log));
    sem_post(&may_end);
    pthread_join(r->thread, NULL);
    VOLT_END(r->rc);
}
int main(void) {
    static root r;
    volt_config config = { .log = { .fn = log_volt } };
    sem_init(&has_begun, 0, 0);
    sem_init(&may_end, 0, 0);
    log_open();
    return volt_run(&config, root_run, &r) < 0;
}
