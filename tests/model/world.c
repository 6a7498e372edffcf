// SPDX-License-Identifier: MIT OR 0BSD
// The world outside volt.h, first part: threads, futexes, the clock.
//
// A futex wait is a seq_cst fence, then a load of the word, then sleep if it is as expected: one
// step, as the kernel holds the bucket's lock. A wake is a fence and then a choice of thread.
// Neither hands over happens-before: a woken thread must read what it was woken for. (The kernel's
// locks would order more. Code that relies on that is reported.)
//
// Time stands still. A wait with a time limit may end at any moment, as a thread may be scheduled
// late at any moment; the clock then stands at the limit.
#include "internal.h"

static void thread_entry(void) {
    thread *t = self();
    t->fn(t->arg);
    thread_ended();
    abort();
}
int thread_start(void (*fn)(void *), void *arg) {
    if (vm.n_threads == VMC_THREADS) vmc_fail("limit: more than %d threads", VMC_THREADS);
    int i = vm.n_threads++;
    thread *t = &vm.threads[i], *parent = self();
    t->state = ALIVE;
    t->sleep = AWAKE;
    t->has_yielded = 0;
    t->fn = fn;
    t->arg = arg;
    t->next = (op){.kind = OP_START};
    if (i == 0)
        memset(&t->now, 0, offsetof(view, newest));
    else
        view_copy(&t->now, &parent->now);
    t->now.clock[i] = 1;
    memset(&t->acquirable, 0, offsetof(view, newest));
    memset(&t->released, 0, offsetof(view, newest));
    t->n_events = t->n_steps = 0;
    t->last_step = i == 0 ? 0 : parent->last_step; // its creator's steps come before it
    t->covered = 0;
    t->history = 0;
    t->tls = NULL;
    t->saved_errno = 0;
    t->depth = 0;
    memset(t->n_repeats, 0, (size_t)vm.n_locs);
    fiber_prepare(i, thread_entry);
    return i;
}
int vmc_spawn(void (*fn)(void *), void *arg) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_SPAWN});
    int i = thread_start(fn, arg);
    note_event(7);
    epoch_bump(self());
    TRACE("starts T%d", i);
    return i;
}
void vmc_join(int i) {
    if (i <= 0 || i >= vm.n_threads) vmc_fail("vmc_join(%d): no such thread", i);
    FROM_SCENARIO();
    schedule((op){.kind = OP_JOIN, .arg = i});
    view_join(&self()->now, &vm.threads[i].now);
    note_event(8);
    TRACE("joined T%d", i);
}
int vmc_self(void) { return vm.current; }
void vmc_yield(void) {
    self()->has_yielded = 1;
    FROM_SCENARIO();
    schedule((op){.kind = OP_YIELD});
}
void vmc_assume(int condition) {
    if (!condition) end_execution(DISMISSED);
}
int world_is_runnable(const thread *t) {
    if (t->state != ALIVE) return 0;
    if (t->sleep == ASLEEP) return t->next.is_timed;
    return t->next.kind != OP_JOIN || vm.threads[t->next.arg].state == ENDED;
}

// ---- threads as volt.h starts them

static void *results[THREADS];
static void *(*mains[THREADS])(void *);
static void *main_args[THREADS];
static void run_main(void *arg) {
    int i = (int)(intptr_t)arg;
    results[i] = mains[i](main_args[i]);
}
int vmc_thread_create(uintptr_t *thread_out, void *(*fn)(void *), void *arg) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_SPAWN});
    int i = vm.n_threads;
    if (i < THREADS) {
        mains[i] = fn;
        main_args[i] = arg;
    }
    thread_start(run_main, (void *)(intptr_t)i);
    note_event(7);
    epoch_bump(self());
    *thread_out = (uintptr_t)i;
    TRACE("starts T%d", i);
    return 0;
}
int vmc_thread_join(uintptr_t i) {
    vmc_join((int)i);
    return 0;
}
void *vmc_tls_get(void) { return vm.is_running ? self()->tls : NULL; }
void vmc_tls_set(void *value) { self()->tls = value; }

// ---- the clock

int64_t vmc_now(void) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_CLOCK});
    note_event(mix(9, (uint64_t)vm.now_ns));
    TRACE("clock %lld", (long long)vm.now_ns);
    return vm.now_ns;
}

// ---- sleeping

void wake(thread *t) {
    t->sleep = WOKEN;
    t->woken_by = self()->last_step;
}
// Returns when another thread has called wake, or the deadline has been taken to be over.
void fall_asleep(const void *on, int64_t deadline) {
    thread *t = self();
    t->sleep = ASLEEP;
    t->asleep_on = on;
    t->deadline = deadline;
    TRACE("falls asleep");
    schedule((op){.kind = OP_SLEEP,
                  .addr = on ? on : kernel_object(t->epoll),
                  .is_kernel = !on,
                  .is_timed = deadline != INT64_MAX});
    if (t->sleep == ASLEEP && t->deadline > vm.now_ns) vm.now_ns = t->deadline;
}

int vmc_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline) {
    thread *t = self();
    FROM_SCENARIO();
    schedule((op){.kind = OP_FUTEX_WAIT, .order = __ATOMIC_SEQ_CST, .addr = word});
    sc_fence();
    if (futex_read((uintptr_t)word) != expected) return -EAGAIN;
    if (vm.n_spurious < scenario->spurious && choose(2)) {
        vm.n_spurious++;
        note_event(10);
        TRACE("futex wait ends with EINTR");
        return -EINTR;
    }
    if (deadline <= vm.now_ns) return -ETIMEDOUT;
    fall_asleep(word, deadline);
    int was_woken = t->sleep == WOKEN;
    t->sleep = AWAKE;
    note_event(mix(11, (uint64_t)was_woken));
    TRACE(was_woken ? "woken" : "times out");
    return was_woken ? 0 : -ETIMEDOUT;
}
void vmc_futex_wake(uint32_t *word, int n) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_FUTEX_WAKE, .order = __ATOMIC_SEQ_CST, .addr = word});
    sc_fence();
    note_event(12);
    for (; n > 0; n--) {
        int asleep[THREADS];
        unsigned n_asleep = 0;
        for (int i = 0; i < vm.n_threads; i++)
            if (vm.threads[i].sleep == ASLEEP && vm.threads[i].asleep_on == word)
                asleep[n_asleep++] = i;
        if (n_asleep == 0) break;
        int i = asleep[choose((unsigned)n >= n_asleep ? 1 : n_asleep)];
        wake(&vm.threads[i]);
        note_event(mix(13, (uint64_t)i));
        TRACE("wakes T%d", i);
    }
}

int vmc_membarrier(int command) {
    FROM_SCENARIO();
    schedule((op){.kind = OP_BARRIER, .order = __ATOMIC_SEQ_CST});
    if (command == 16) { // as volt.h spells it
        vm.has_registered = 1;
        sc_fence();
        note_event(15);
        TRACE("registers for barriers");
        return 0;
    }
    if (!vm.has_registered) {
        note_event(16);
        TRACE("barrier refused");
        return -EPERM;
    }
    barrier_of_all();
    TRACE("barrier of all threads");
    return 0;
}

void world_reset(void) {
    vm.n_threads = 0;
    vm.current = 0;
    vm.now_ns = INT64_C(1000000000);
    vm.threads[ENVIRONMENT].n_steps = vm.threads[ENVIRONMENT].last_step = 0;
    vm.threads[ENVIRONMENT].n_events = 0;
    vm.threads[ENVIRONMENT].history = 0;
    kernel_reset();
}
