// SPDX-License-Identifier: MIT OR 0BSD
// Timers: armed on the wheel of the worker that runs the task, fired there or by the rescuer of a
// stuck worker, disarmed from anywhere. Disarming is the barrier behind which the memory of the
// timer may go, fired or not; the checker reports any thread that still touches it.
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"

enum { DUE = 3, LATER = 9, NOW = 5 };
static volt__wheel wheel;
typedef struct sleeper {
    volt__task task;
    volt__node *node;
    uint32_t n_woken, n_fired;
} sleeper;
static sleeper sleepers[2];

static void arm(sleeper *s, uint64_t tick) {
    s->node = vmc_alloc(sizeof *s->node);
    s->task.word = VOLT__RUNNING + VOLT__REF;
    volt__timer_arm(&wheel, s->node, &s->task, tick);
}
// The task goes to sleep: a wake-up from here on enqueues it.
static void suspend(sleeper *s) { VMC_ASSERT(!volt__task_suspend(&s->task)); }
static void disarm(sleeper *s) {
    s->n_fired = volt__node_state(s->node) == VOLT__FIRED;
    volt__timer_disarm(s->node, &s->task);
    VMC_ASSERT(s->task.n_armed == 0);
    vmc_free(s->node);
}
static void take_chain(volt__chain *c) {
    for (volt__task *t; (t = volt__chain_pop(c)) != NULL;)
        VOLT__CONTAINER(sleeper, task, t)->n_woken++;
}
static void fire(void *arg) {
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    volt__wheel_fire(&wheel, NOW, &c);
    take_chain(&c);
}
static void try_fire(void *arg) {
    volt__chain c;
    (void)arg;
    volt__chain_init(&c);
    if (volt__wheel_try_fire(&wheel, NOW, &c) > 0) vmc_reached("fired by another");
    take_chain(&c);
}
static int is_notified(const sleeper *s) {
    return (__atomic_load_n(&s->task.word, __ATOMIC_RELAXED) & VOLT__NOTIFIED) != 0;
}

// The task runs on another worker, for another reason, and gives its timer up while it fires: the
// frame goes at once. Either the timer has fired, and the task is notified, or it never will.
SCENARIO(timer_disarm_fire) {
    vmc_must_happen("fires first");
    vmc_must_happen("disarmed first");
    arm(&sleepers[0], DUE);
    int t = vmc_spawn(fire, NULL);
    disarm(&sleepers[0]);
    int has_fired_early = (int)sleepers[0].n_fired;
    vmc_join(t);
    VMC_ASSERT(sleepers[0].n_woken == 0); // it was running
    if (has_fired_early) VMC_ASSERT(is_notified(&sleepers[0]));
    vmc_reached(is_notified(&sleepers[0]) ? "fires first" : "disarmed first");
}
// The same with two workers that fire: the owner, and one that takes it for stuck.
SCENARIO(timer_disarm_fire_rescue) {
    vmc_must_happen("fired by another");
    arm(&sleepers[0], DUE);
    int a = vmc_spawn(fire, NULL), b = vmc_spawn(try_fire, NULL);
    disarm(&sleepers[0]);
    vmc_join(a);
    vmc_join(b);
    VMC_ASSERT(sleepers[0].n_woken == 0);
}
// Owner and rescuer fire the same wheel: each task is enqueued exactly once.
SCENARIO(timer_fire_rescue) {
    vmc_must_happen("fired by another");
    for (int i = 0; i < 2; i++) {
        arm(&sleepers[i], DUE + (uint64_t)i);
        suspend(&sleepers[i]);
    }
    int t = vmc_spawn(try_fire, NULL);
    fire(NULL);
    vmc_join(t);
    for (int i = 0; i < 2; i++) {
        VMC_ASSERT(sleepers[i].n_woken == 1);
        disarm(&sleepers[i]);
    }
}
// A rescuer fires while the owner arms another timer: nothing is lost, nothing early.
SCENARIO(timer_arm_rescue) {
    vmc_must_happen("fired by another");
    arm(&sleepers[0], DUE);
    suspend(&sleepers[0]);
    int t = vmc_spawn(try_fire, NULL);
    arm(&sleepers[1], LATER);
    suspend(&sleepers[1]);
    vmc_join(t);
    fire(NULL);
    VMC_ASSERT(sleepers[0].n_woken == 1 && sleepers[1].n_woken == 0);
    volt__chain c;
    volt__chain_init(&c);
    volt__wheel_fire(&wheel, LATER, &c);
    take_chain(&c);
    VMC_ASSERT(sleepers[1].n_woken == 1);
    disarm(&sleepers[0]);
    disarm(&sleepers[1]);
}
// The owner asks for the next expiry, to sleep until then, while another worker disarms.
static void disarm_second(void *arg) {
    (void)arg;
    disarm(&sleepers[1]);
}
SCENARIO(timer_expiry_disarm) {
    arm(&sleepers[0], LATER);
    arm(&sleepers[1], DUE);
    int t = vmc_spawn(disarm_second, NULL);
    uint64_t tick = volt__wheel_expiry(&wheel);
    VMC_ASSERT(tick <= LATER && tick > 0); // never late; early costs an empty turn
    vmc_join(t);
    VMC_ASSERT(volt__wheel_expiry(&wheel) <= LATER);
    disarm(&sleepers[0]);
    VMC_ASSERT(volt__wheel_expiry(&wheel) == UINT64_MAX);
}
