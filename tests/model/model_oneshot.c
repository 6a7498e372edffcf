// SPDX-License-Identifier: MIT OR 0BSD
// Oneshot and queue ([O1]): one word, in which a receiver that waits leaves its task. What is sent
// is received once, with all that was written before, or the sender is told; who waits is woken;
// the task is held exactly as long as it is in the word or in the hands of who took it out; and
// whoever receives last may free the object at once.
// Run: make model ONE=queue_push_close (or another name from below).
#define VOLT_LOCK_SPIN 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

typedef struct message {
    volt_queue_node node;
    int content; // plain
} message;
static volt_queue *queue;

static message *pop(int *rc) {
    volt_queue_node *n = NULL;
    *rc = volt_queue_try_pop(queue, &n);
    return (message *)(void *)n;
}
static void push_and_close(void *message_) {
    message *m = message_;
    m->content = 7;
    VMC_ASSERT(volt_queue_push(queue, &m->node) == 0);
    volt_queue_close(queue);
}
// What was pushed before the close is received before the end is told.
SCENARIO(queue_push_close) {
    int rc;
    message *m;
    vmc_must_happen("after the close");
    vmc_must_happen("before the close");
    queue = vmc_alloc(sizeof *queue);
    int t = vmc_spawn(push_and_close, vmc_alloc(sizeof *m));
    m = pop(&rc);
    if (rc != 1) {
        VMC_ASSERT(rc == -EAGAIN);
        vmc_join(t);
        m = pop(&rc);
        t = 0;
    }
    VMC_ASSERT(rc == 1 && m->content == 7);
    vmc_free(m);
    (void)pop(&rc);
    VMC_ASSERT(rc == 0 || (t && rc == -EAGAIN));
    if (rc == 0) vmc_free(queue);
    vmc_reached(rc == 0 ? "after the close" : "before the close");
    if (t) vmc_join(t);
    if (rc != 0) vmc_free(queue);
}
static void close_queue(void *unused) {
    (void)unused;
    volt_queue_close(queue);
}
SCENARIO(queue_two_close) {
    int rc;
    queue = vmc_alloc(sizeof *queue);
    message *m = vmc_alloc(sizeof *m);
    VMC_ASSERT(volt_queue_push(queue, &m->node) == 0);
    int t = vmc_spawn(close_queue, NULL);
    volt_queue_close(queue);
    VMC_ASSERT(pop(&rc) == m && rc == 1);
    vmc_free(m);
    VMC_ASSERT(!pop(&rc) && rc == 0);
    vmc_join(t);
    vmc_free(queue);
}
