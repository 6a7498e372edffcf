// SPDX-License-Identifier: MIT OR 0BSD
// Floors: the operations of sched.c, timer.c, sync.c and chan.c by the least code that can do them,
// on one thread and without volt.h. A row of volt.h is compared with the floor of the same name.
//
//   floor [ROW...] [--reps N], or --list
//
//   S1   spawn, run and free an empty task: free list, ring of pointers, indirect call
//   S2   the same with 10,000 tasks queued at a time
//   S6   a task spawns the next one through a one-entry slot
//   S7   a task spawns another, waits, is queued again by the other, and ends
//   S7o  the same with two cells, each with a word that says whether its number is there
//   S8   200 tasks take turns
//   S9   two tasks and two such cells: a number there and back. One trip through the ring each
//   S10  tasks of a tree, the last one spawned taken first; numbers are added to the parent's word
//   T1a  one indirect call                    T1b  insert into and remove from a timer wheel
//   T1c  insert, one trip through the ring, remove
//   C1, C9a to C9c  a word set, a number that it guards, the word set back
//   C2   a: a load, b: a store            C3a, C3b, C4c, C5a, C6b  stores and loads of a few words
//   C3c, C9d, C9e, C10  lists of tasks that wait, and their trips through the ring of tasks
//   C4a, C4b, C6a, C7, C8  numbers into a ring and out of it, as many as fit; C7c with a trip of a
//        task for each that goes in, and for each that comes out
//   C5b  S1 with a parent that waits and is queued again
//   F1, F2  preadv2 with RWF_NOWAIT
// "+cas": tasks are taken by compare-and-swap, as a queue that other threads steal from needs.
// "+rmw": besides, two read-modify-writes per poll on the task's state word, as wake-ups from other
// threads need; in rows C one for each step that may race with another thread: taking and releasing
// a lock, sending and receiving, except for a single receiver. "+clock": the deadline is computed
// from the clock. For the figures see bench.h.
#define _GNU_SOURCE 1
#include "bench.h"
#include "files.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

enum { PLAIN = 0, CAS = 1, RMW = 2, CLOCK = 4 }; // the variant: constant after inlining

// ---- a scheduler without threads

typedef enum verdict { DONE, AGAIN, WAITING } verdict;
typedef struct task {
    uint64_t state; // QUEUED, RUNNING
    verdict (*poll)(struct task *);
    struct task *next;   // in the free list
    struct task *parent; // S7
    uint64_t left;       // S6, S8: remaining steps; S7: the number from the child
    uint64_t body[11];   // S7o, S9, S10; 128 bytes in all, like a small task of volt.h
} task;
enum { QUEUED = 1, RUNNING = 2, RING = 16384, TASKS = 16384 };

static task slab[TASKS];
static task *free_list, *slot;
static task *ring[RING];
static uint32_t head, tail, mask = 255;
static uint64_t tally; // operations that were carried out
static uint64_t cells_in, cells_out; // numbers that went through a ring

static void reset(uint32_t ring_size) {
    free_list = NULL;
    for (size_t i = TASKS; i-- > 0;) slab[i].next = free_list, free_list = &slab[i];
    head = tail = 0;
    cells_in = cells_out = 0;
    mask = ring_size - 1;
    tally = 0;
}

INLINE task *task_new(verdict (*poll)(task *)) {
    task *t = free_list;
    free_list = t->next;
    __atomic_store_n(&t->state, QUEUED, __ATOMIC_RELAXED);
    t->poll = poll;
    return t;
}

INLINE void push(task *t) {
    ring[tail & mask] = t;
    __atomic_store_n(&tail, tail + 1, __ATOMIC_RELEASE);
}

INLINE task *pop(int how) {
    uint32_t h = __atomic_load_n(&head, __ATOMIC_RELAXED);
    if (!(how & CAS)) {
        if (h == tail) return NULL;
        __atomic_store_n(&head, h + 1, __ATOMIC_RELEASE);
        return ring[h & mask];
    }
    while (h != tail) {
        task *t = ring[h & mask];
        if (__atomic_compare_exchange_n(&head, &h, h + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return t;
    }
    return NULL;
}

INLINE void state_set(task *t, uint64_t state, int how) {
    if (how & RMW)
        (void)__atomic_exchange_n(&t->state, state, __ATOMIC_ACQ_REL);
    else
        __atomic_store_n(&t->state, state, __ATOMIC_RELAXED);
}

INLINE void run(task *t, int how) {
    state_set(t, RUNNING, how);
    const verdict v = t->poll(t);
    state_set(t, v == AGAIN ? QUEUED : 0, how);
    if (v == AGAIN) push(t);
    if (v == DONE) t->next = free_list, free_list = t;
}

INLINE void drain(int how) {
    for (task *t = pop(how); t; t = pop(how)) run(t, how);
}

// ---- tasks

NOINLINE verdict poll_empty(task *t) {
    (void)t;
    tally++;
    return DONE;
}

NOINLINE verdict poll_link(task *t) {
    tally++;
    if (t->left == 0) return DONE;
    task *child = task_new(poll_link);
    child->left = t->left - 1;
    slot = child;
    return DONE;
}

NOINLINE verdict poll_pong(task *t) {
    t->parent->left = 1;
    push(t->parent);
    return DONE;
}

NOINLINE verdict poll_ping(task *t) {
    if (t->left) {
        tally += t->left;
        return DONE;
    }
    task *child = task_new(poll_pong);
    child->parent = t;
    push(child);
    return WAITING;
}

// Two words of a task: whether the number is there, and the number.
INLINE void cell_put(uint64_t *cell, uint64_t value, int how) {
    cell[1] = value;
    if (how & RMW) (void)__atomic_exchange_n(&cell[0], 1, __ATOMIC_ACQ_REL);
    else __atomic_store_n(&cell[0], 1, __ATOMIC_RELEASE);
}

INLINE uint64_t cell_take(uint64_t *cell, int how) {
    const uint64_t value = cell[1];
    if (how & RMW) (void)__atomic_exchange_n(&cell[0], 0, __ATOMIC_ACQ_REL);
    else __atomic_store_n(&cell[0], 0, __ATOMIC_RELEASE);
    return value;
}

// S7o: cells 0 and 2 of the parent. A task that finds its cell empty records that it waits.
INLINE verdict sent_pong(task *t, int how) {
    uint64_t *there = t->parent->body, *back = there + 2;
    if (__atomic_load_n(&there[0], __ATOMIC_ACQUIRE)) cell_put(back, there[1] + 1, how);
    push(t->parent);
    return DONE;
}

NOINLINE verdict poll_sent_pong(task *t) { return sent_pong(t, PLAIN); }
NOINLINE verdict poll_sent_pong_rmw(task *t) { return sent_pong(t, RMW); }

INLINE verdict sent_ping(task *t, int how) {
    uint64_t *there = t->body, *back = there + 2;
    if (t->left++ > 0) {
        tally += __atomic_load_n(&back[0], __ATOMIC_ACQUIRE) && back[1] == there[1] + 1;
        return DONE;
    }
    task *child = task_new(how & RMW ? poll_sent_pong_rmw : poll_sent_pong);
    child->parent = t;
    there[0] = back[0] = 0;
    push(child);
    cell_put(there, (uint64_t)(t - slab), how);
    (void)cell_take(back, how);
    return WAITING;
}

NOINLINE verdict poll_sent_ping(task *t) { return sent_ping(t, PLAIN); }
NOINLINE verdict poll_sent_ping_rmw(task *t) { return sent_ping(t, RMW); }

// S9: cell 0 of each of the two, for received numbers; `parent` is the other one.
INLINE verdict bring_back(task *t, int how) {
    cell_put(t->parent->body, cell_take(t->body, how) + 1, how);
    push(t->parent);
    return --t->left ? WAITING : DONE;
}

INLINE verdict travel(task *t, int how) {
    if (t->body[0]) {
        const uint64_t value = cell_take(t->body, how);
        tally += value == t->left-- + 1;
    }
    if (t->left == 0) return DONE;
    cell_put(t->parent->body, t->left, how);
    push(t->parent);
    return WAITING;
}

NOINLINE verdict poll_returner(task *t) { return bring_back(t, PLAIN); }
NOINLINE verdict poll_returner_rmw(task *t) { return bring_back(t, RMW); }
NOINLINE verdict poll_traveller(task *t) { return travel(t, PLAIN); }
NOINLINE verdict poll_traveller_rmw(task *t) { return travel(t, RMW); }

NOINLINE verdict poll_yield(task *t) {
    if (t->left-- == 0) return DONE;
    tally++;
    return AGAIN;
}

// ---- rows: each does its operations once

INLINE void spawn_batches(int batches, int tasks, int how) {
    for (int i = 0; i < batches; i++) {
        for (int k = 0; k < tasks; k++) push(task_new(poll_empty));
        drain(how);
    }
}

INLINE void chains(int how) {
    for (int i = 0; i < 1000; i++) {
        slot = task_new(poll_link);
        slot->left = 999;
        for (;;) {
            task *t = how & CAS ? __atomic_exchange_n(&slot, NULL, __ATOMIC_ACQ_REL) : slot;
            slot = NULL;
            if (!t) break;
            run(t, how);
        }
    }
}

INLINE void ping_pong(int how) {
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 1000; k++) {
            task *t = task_new(poll_ping);
            t->left = 0;
            push(t);
        }
        drain(how);
    }
}

INLINE void yields(int how) {
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 200; k++) {
            task *t = task_new(poll_yield);
            t->left = 1000;
            push(t);
        }
        drain(how);
    }
}

INLINE void ping_pong_sent(verdict (*poll)(task *), int how) {
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 1000; k++) {
            task *t = task_new(poll);
            t->left = 0;
            push(t);
        }
        drain(how);
    }
}

INLINE void there_and_back(int pairs, verdict (*go)(task *), verdict (*come)(task *), int how) {
    for (int i = 0; i < pairs; i++) {
        task *a = task_new(go), *b = task_new(come);
        a->parent = b;
        b->parent = a;
        a->left = b->left = 200000 / (uint64_t)pairs;
        a->body[0] = b->body[0] = 0;
        push(a);
    }
    drain(how);
}

// ---- S10. body: the word of an inner task, its first leaf, its leaves. The word has the children
// left in its upper bits and their sum so far in the others.
enum { CHILD_SHIFT = 60 };
#define CHILD_SUM (((uint64_t)1 << CHILD_SHIFT) - 1)

INLINE task *pop_last(int how) {
    uint32_t last = __atomic_load_n(&tail, __ATOMIC_RELAXED);
    if (last == head) return NULL;
    task *t = ring[(last - 1) & mask];
    if (!(how & CAS)) __atomic_store_n(&tail, last - 1, __ATOMIC_RELEASE);
    else if (!__atomic_compare_exchange_n(&tail, &last, last - 1, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE))
        return NULL;
    return t;
}

INLINE void give_up(task *parent, uint64_t sum, int how) {
    const uint64_t more = sum - ((uint64_t)1 << CHILD_SHIFT);
    uint64_t now = parent->body[0] + more;
    if (how & RMW) now = __atomic_add_fetch(&parent->body[0], more, __ATOMIC_ACQ_REL);
    else parent->body[0] = now;
    if (now >> CHILD_SHIFT == 0) push(parent);
}

INLINE verdict leaf(task *t, int how) {
    tally++;
    give_up(t->parent, t->body[1], how);
    return DONE;
}

NOINLINE verdict poll_leaf(task *t) { return leaf(t, PLAIN); }
NOINLINE verdict poll_leaf_rmw(task *t) { return leaf(t, RMW); }

INLINE void tree_node(task *t, task *parent, uint64_t first, uint64_t leaves) {
    t->parent = parent;
    t->body[0] = (uint64_t)10 << CHILD_SHIFT;
    t->body[1] = first;
    t->body[2] = leaves;
    push(t);
}

// The root, which has no parent, leaves its sum where skynet finds it.
static uint64_t tree_sum;

INLINE verdict inner(task *t, verdict (*poll)(task *), verdict (*poll_last)(task *), int how) {
    if (t->body[0] >> CHILD_SHIFT == 0) {
        if (t->parent) give_up(t->parent, t->body[0] & CHILD_SUM, how);
        else tree_sum = t->body[0];
        return DONE;
    }
    const uint64_t leaves = t->body[2] / 10;
    for (uint64_t i = 0; i < 10; i++)
        tree_node(task_new(leaves == 1 ? poll_last : poll), t, t->body[1] + i * leaves, leaves);
    return WAITING;
}

NOINLINE verdict poll_inner(task *t) { return inner(t, poll_inner, poll_leaf, PLAIN); }
NOINLINE verdict poll_inner_rmw(task *t) { return inner(t, poll_inner_rmw, poll_leaf_rmw, RMW); }

INLINE void skynet(verdict (*poll)(task *), int how) {
    tree_sum = 0;
    tree_node(task_new(poll), NULL, 0, 1000000);
    for (task *t = pop_last(how); t; t = pop_last(how)) run(t, how);
    if (tree_sum != UINT64_C(499999500000)) tally = 0;
}

static void s1(void) { spawn_batches(5000, 200, PLAIN); }
static void s1_cas(void) { spawn_batches(5000, 200, CAS); }
static void s1_rmw(void) { spawn_batches(5000, 200, CAS | RMW); }
static void s2(void) { spawn_batches(100, 10000, PLAIN); }
static void s2_rmw(void) { spawn_batches(100, 10000, CAS | RMW); }
static void s6(void) { chains(PLAIN); }
static void s6_rmw(void) { chains(CAS | RMW); }
static void s7(void) { ping_pong(PLAIN); }
static void s7_rmw(void) { ping_pong(CAS | RMW); }
static void s7o(void) { ping_pong_sent(poll_sent_ping, PLAIN); }
static void s7o_rmw(void) { ping_pong_sent(poll_sent_ping_rmw, CAS | RMW); }
static void s8(void) { yields(PLAIN); }
static void s8_cas(void) { yields(CAS); }
static void s8_rmw(void) { yields(CAS | RMW); }
static void s9(void) { there_and_back(1, poll_traveller, poll_returner, PLAIN); }
static void s9_rmw(void) {
    there_and_back(1, poll_traveller_rmw, poll_returner_rmw, CAS | RMW);
}
static void s9c(void) { there_and_back(200, poll_traveller, poll_returner, PLAIN); }
static void s9c_rmw(void) {
    there_and_back(200, poll_traveller_rmw, poll_returner_rmw, CAS | RMW);
}
static void s10(void) { skynet(poll_inner, PLAIN); }
static void s10_rmw(void) { skynet(poll_inner_rmw, CAS | RMW); }

// ---- locks: a word, and a number that it guards

enum { MILLION = 1000000 };
static uint32_t word;
static uint64_t guarded;

INLINE void word_set(uint32_t to, int how) {
    if (how & RMW) (void)__atomic_exchange_n(&word, to, __ATOMIC_ACQ_REL);
    else __atomic_store_n(&word, to, __ATOMIC_RELEASE);
    __asm__ volatile("" ::: "memory");
}

INLINE void lock_unlock(int n, int how) {
    guarded = 0;
    for (int i = 0; i < n; i++) {
        word_set(1, how);
        guarded++;
        word_set(0, how);
    }
    tally += guarded;
}

static void c1(void) { lock_unlock(MILLION, PLAIN); }
static void c1_rmw(void) { lock_unlock(MILLION, RMW); }
static void c9b(void) { lock_unlock(999600, PLAIN); }
static void c9b_rmw(void) { lock_unlock(999600, RMW); }

static inline uint64_t look(void) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE) ? guarded : 0; }
static void c2a(void) {
    uint64_t even = 0, odd = 0;
    word = 1;
    guarded = 1;
#pragma GCC unroll 4
    for (int i = 0; i < MILLION; i += 2) even += look(), odd += look();
    tally += even + odd;
}

// A new object of one word and a value: set by one task, and read.
INLINE void new_set_get(int how) {
    for (uint64_t i = 0; i < MILLION; i++) {
        word_set(0, PLAIN);
        guarded = i;
        word_set(1, how);
        tally += __atomic_load_n(&word, __ATOMIC_ACQUIRE) && guarded == i;
    }
}

static void c2b(void) { new_set_get(PLAIN); }
static void c2b_rmw(void) { new_set_get(RMW); }

INLINE void new_set_take(int how) {
    for (int i = 0; i < MILLION; i++) {
        word_set(0, PLAIN);
        word_set(1, how);
        tally += __atomic_load_n(&word, __ATOMIC_ACQUIRE);
        word_set(0, how);
    }
}

static void c3a(void) { new_set_take(PLAIN); }
static void c3a_rmw(void) { new_set_take(RMW); }

// ---- tasks that wait for each other: in a list, until another task queues them again

static task *waiting, *waiting_last;
static uint32_t n_waiting;
static uint64_t rounds_left;

INLINE verdict wait_in_line(task *t) {
    t->next = NULL;
    if (waiting) waiting_last->next = t;
    else waiting = t;
    waiting_last = t;
    n_waiting++;
    return WAITING;
}

INLINE void wake_first(void) {
    task *t = waiting;
    if (!t) return;
    waiting = t->next;
    n_waiting--;
    push(t);
}

static void crowd(int n, verdict (*poll)(task *)) {
    waiting = NULL;
    n_waiting = 0;
    for (int i = 0; i < n; i++) {
        task *t = task_new(poll);
        t->left = 0;
        push(t);
    }
}

NOINLINE verdict poll_party(task *t) {
    if (n_waiting < 7) return wait_in_line(t);
    tally++;
    if (--rounds_left == 0) return DONE;
    for (int i = 0; i < 7; i++) wake_first();
    return AGAIN;
}

INLINE void meetings(int how) {
    rounds_left = 20000;
    crowd(8, poll_party);
    drain(how);
}

// The holder of the lock yields once, and passes it to the task that has waited longest.
NOINLINE verdict poll_holder(task *t) {
    if (t->left == 0) {
        t->left = 1;
        return AGAIN;
    }
    t->left = 0;
    tally++;
    wake_first();
    return wait_in_line(t);
}

INLINE void hold(int how) {
    crowd(1, poll_holder);
    for (int i = 0; i < 3; i++) {
        task *t = task_new(poll_holder);
        t->left = 0;
        wait_in_line(t);
    }
    for (task *t = pop(how); t && tally < 200000; t = pop(how)) run(t, how);
}

NOINLINE verdict poll_woken(task *t) {
    if (t->left++ > 0) tally++;
    return wait_in_line(t);
}

INLINE void wake_all(int n, int how) {
    crowd(n, poll_woken);
    drain(how);
    for (int i = 0; i < 200000 / n; i++) {
        for (int k = 0; k < n; k++) wake_first();
        drain(how);
    }
}

NOINLINE verdict poll_next(task *t) {
    tally++;
    wake_first();
    return wait_in_line(t);
}

INLINE void wake_around(int n, int how) {
    crowd(0, poll_next);
    for (int i = 0; i < n; i++) wait_in_line(task_new(poll_next));
    wake_first();
    for (task *t = pop(how); t && tally < 200000; t = pop(how)) run(t, how);
}

NOINLINE verdict poll_child(task *t) {
    t->parent->left = t->left + 1;
    push(t->parent);
    return DONE;
}

NOINLINE verdict poll_parent(task *t) {
    tally += t->left == tally + 1;
    if (tally == MILLION) return DONE;
    task *child = task_new(poll_child);
    child->parent = t;
    child->left = tally;
    push(child);
    return WAITING;
}

INLINE void joins(int how) {
    task *t = task_new(poll_parent);
    t->left = 0;
    push(t);
    drain(how);
}

static void c3c(void) { meetings(PLAIN); }
static void c3c_rmw(void) { meetings(CAS | RMW); }
static void c9d(void) { hold(PLAIN); }
static void c9d_rmw(void) { hold(CAS | RMW); }
static void c10_10(void) { wake_all(10, PLAIN); }
static void c10_10_rmw(void) { wake_all(10, CAS | RMW); }
static void c10_500(void) { wake_all(500, PLAIN); }
static void c10_500_rmw(void) { wake_all(500, CAS | RMW); }
static void c10_1000(void) { wake_all(1000, PLAIN); }
static void c10_1000_rmw(void) { wake_all(1000, CAS | RMW); }
static void c10c(void) { wake_around(10, PLAIN); }
static void c10c_rmw(void) { wake_around(10, CAS | RMW); }
static void c10d(void) { wake_around(500, PLAIN); }
static void c10d_rmw(void) { wake_around(500, CAS | RMW); }
static void c5b(void) { joins(PLAIN); }
static void c5b_rmw(void) { joins(CAS | RMW); }

// ---- numbers through a ring

enum { CELLS = 1 << 20 };
static uint64_t cells[CELLS];

INLINE uint64_t advance(uint64_t *counter, int how) {
    if (how & RMW) return __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
    const uint64_t at = __atomic_load_n(counter, __ATOMIC_RELAXED);
    __atomic_store_n(counter, at + 1, __ATOMIC_RELEASE);
    return at;
}

INLINE void put(uint64_t value, int how) { cells[advance(&cells_in, how) % CELLS] = value; }

INLINE int get(uint64_t *value, int how) {
    if (__atomic_load_n(&cells_in, __ATOMIC_ACQUIRE) == cells_out) return 0;
    *value = cells[advance(&cells_out, how) % CELLS];
    return 1;
}

// n numbers, `most` at a time.
INLINE void through(uint64_t n, uint64_t most, int how_in, int how_out) {
    uint64_t sum = 0, value = 0, next = 0, got = 0;
    while (next < n) {
        for (uint64_t i = 0; i < most && next < n; i++) put(next++, how_in);
        for (; get(&value, how_out); got++) sum += value;
    }
    tally += sum == n * (n - 1) / 2 ? got : 0;
}

static bench_row *timed;
// One half of it.
INLINE void half(int is_in, int how) {
    uint64_t value = 0;
    for (int k = 0; k < 10; k++) {
        if (!is_in) bench_pause(timed);
        for (uint64_t i = 0; i < 100000; i++) put(i, how);
        if (is_in) bench_pause(timed);
        else bench_resume(timed);
        for (uint64_t i = 0; get(&value, how); i++) tally += value == i;
        if (is_in) bench_resume(timed);
    }
}

static uint64_t subscriber_sum(void) {
    uint64_t sum = 0;
    for (uint64_t at = cells_out; at < cells_in; at++) sum += cells[at % CELLS];
    return sum;
}

INLINE void broadcast(int how) {
    for (int k = 0; k < 10; k++) {
        int good = 1;
        for (uint64_t i = 0; i < 100000; i++) put(i, how);
        for (int i = 0; i < 4; i++) good &= subscriber_sum() == 99999 * UINT64_C(50000);
        cells_out = cells_in;
        tally += good ? 100000 : 0;
    }
}

INLINE void set_get(int how) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < MILLION; i++) {
        word_set(1, how);
        guarded = i;
        word_set(0, how);
        sum += guarded;
    }
    tally += sum == MILLION * (uint64_t)(MILLION - 1) / 2 ? MILLION : 0;
}

// A sender and a receiver with one cell, and a trip through the ring of tasks each.
static task *sender, *receiver;

INLINE verdict send_one(task *t, int how) {
    put(t->left++, how);
    push(receiver);
    return WAITING;
}

INLINE verdict receive_one(task *t, int how) {
    uint64_t value = 0;
    if (get(&value, how)) tally += value == t->left++;
    if (t->left < MILLION) push(sender);
    return WAITING;
}

NOINLINE verdict poll_sender(task *t) { return send_one(t, PLAIN); }
NOINLINE verdict poll_sender_rmw(task *t) { return send_one(t, RMW); }
NOINLINE verdict poll_receiver(task *t) { return receive_one(t, PLAIN); }
NOINLINE verdict poll_receiver_rmw(task *t) { return receive_one(t, RMW); }

INLINE void ping(verdict (*send)(task *), verdict (*receive)(task *), int how) {
    sender = task_new(send);
    receiver = task_new(receive);
    sender->left = receiver->left = 0;
    push(sender);
    drain(how);
}

static void c4a(void) { half(1, PLAIN); }
static void c4a_rmw(void) { half(1, RMW); }
static void c4b(void) { half(0, PLAIN); }
static void c4b_rmw(void) { half(0, RMW); }
static void c4c(void) { through(MILLION, 1, PLAIN, PLAIN); }
static void c4c_rmw(void) { through(MILLION, 1, RMW, RMW); }
static void c6a(void) { broadcast(PLAIN); }
static void c6a_rmw(void) { broadcast(RMW); }
static void c6b(void) { set_get(PLAIN); }
static void c6b_rmw(void) { set_get(RMW); }
static void c7a(void) { through(MILLION, 1000, PLAIN, PLAIN); }
static void c7a_rmw(void) { through(MILLION, 1000, RMW, RMW); }
static void c7c(void) { ping(poll_sender, poll_receiver, PLAIN); }
static void c7c_rmw(void) { ping(poll_sender_rmw, poll_receiver_rmw, CAS | RMW); }
static void c7d(void) { through(MILLION, MILLION, PLAIN, PLAIN); }
static void c7d_rmw(void) { through(MILLION, MILLION, RMW, RMW); }
static void c8(void) { through(MILLION, 5000, PLAIN, PLAIN); }
static void c8_rmw(void) { through(MILLION, 5000, RMW, PLAIN); }
static void c8b(void) { through(MILLION, 100, PLAIN, PLAIN); }
static void c8b_rmw(void) { through(MILLION, 100, RMW, PLAIN); }

// ---- timers: 6 levels of 64 slots; the highest bit that differs from `now` gives the level

typedef struct timer {
    struct timer *next, **link; // link: the pointer to this timer
    uint64_t tick;
} timer;

static struct {
    uint64_t now, occupied[6]; // a bit may be set for an empty slot, never clear for a full one
    timer *slots[6][64];
} wheel;

INLINE void timer_insert(timer *t, uint64_t tick) {
    const uint64_t differs = (wheel.now ^ tick) | 63;
    const unsigned level = (63u - (unsigned)__builtin_clzll(differs)) / 6;
    const unsigned at = (unsigned)(tick >> (6 * level)) & 63;
    timer **list = &wheel.slots[level][at];
    t->tick = tick;
    t->next = *list;
    t->link = list;
    if (t->next) t->next->link = &t->next;
    *list = t;
    wheel.occupied[level] |= (uint64_t)1 << at;
}

INLINE void timer_remove(timer *t) {
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
}

enum { TIMER_OPS = 1000000 };

static void t1a(void) {
    verdict (*volatile poll)(task *) = poll_empty;
    for (int i = 0; i < TIMER_OPS; i++) poll(&slab[0]);
}

INLINE void arm_and_disarm(int how) {
    static timer t;
    for (uint64_t i = 0; i < TIMER_OPS; i++) {
        const uint64_t now = how & CLOCK ? (uint64_t)bench_now() / 1000000 % 64 : i % 64;
        timer_insert(&t, wheel.now + 1000 + now);
        __asm__ volatile("" ::: "memory"); // keeps the timer in the wheel: no optimisation across
        timer_remove(&t);
        tally++;
    }
}
static void t1b(void) { arm_and_disarm(PLAIN); }
static void t1b_clock(void) { arm_and_disarm(CLOCK); }

static void t1c(void) {
    static timer t;
    task *queued = task_new(poll_empty);
    for (uint64_t i = 0; queued && i < TIMER_OPS; i++) {
        timer_insert(&t, wheel.now + 1000 + i % 64);
        queued->poll(queued);
        push(queued);
        queued = pop(PLAIN);
        timer_remove(&t);
    }
}

// ---- files

INLINE void read_file(size_t len, size_t times) {
    static int fd = -1;
    static char buf[FILE_PART];
    static uint64_t random_state;
    if (fd < 0) fd = file_open();
    for (size_t i = 0; i < times; i++) {
        struct iovec part = { buf, len };
        const uint64_t page = file_next(&random_state, len);
        const ssize_t n = preadv2(fd, &part, 1, (off_t)page * FILE_PAGE, RWF_NOWAIT);
        tally += n == (ssize_t)len && file_is_right(buf, page);
    }
}
static void f1(void) { read_file(FILE_PAGE, FILE_READS); }
static void f2(void) { read_file(FILE_PART, FILE_PARTS); }

// ---- main

static const struct row {
    const char *id;
    uint32_t ring;
    uint64_t ops;
    void (*run)(void);
    const char *what;
} rows[] = {
    { "S1", 256, 1000000, s1, "spawn, run, free; 200 at a time" },
    { "S1+cas", 256, 1000000, s1_cas, "  taken by compare-and-swap" },
    { "S1+rmw", 256, 1000000, s1_rmw, "  and two RMW on the state word" },
    { "S2", RING, 1000000, s2, "spawn, run, free; 10,000 at a time" },
    { "S2+rmw", RING, 1000000, s2_rmw, "  compare-and-swap, two RMW" },
    { "S6", 256, 1000000, s6, "chained spawn through a slot" },
    { "S6+rmw", 256, 1000000, s6_rmw, "  exchange on the slot, two RMW" },
    { "S7", 2048, 100000, s7, "ping-pong: two spawns, one hand-over" },
    { "S7+rmw", 2048, 100000, s7_rmw, "  compare-and-swap, two RMW per poll" },
    { "S7o", 2048, 100000, s7o, "ping-pong through two cells" },
    { "S7o+rmw", 2048, 100000, s7o_rmw, "  three RMW, and those of tasks" },
    { "S8", 256, 1000000, s8, "yield, 200 tasks" },
    { "S8+cas", 256, 1000000, s8_cas, "  taken by compare-and-swap" },
    { "S8+rmw", 256, 1000000, s8_rmw, "  and two RMW on the state word" },
    { "S9a", 256, 200000, s9, "there and back through two cells" },
    { "S9a+rmw", 256, 200000, s9_rmw, "  four RMW, and those of tasks" },
    { "S9b", 256, 200000, s9, "there and back through two cells" },
    { "S9b+rmw", 256, 200000, s9_rmw, "  four RMW, and those of tasks" },
    { "S9c", 256, 200000, s9c, "there and back, 200 pairs" },
    { "S9c+rmw", 256, 200000, s9c_rmw, "  four RMW, and those of tasks" },
    { "S10", 256, 1000000, s10, "a tree of tasks, per leaf" },
    { "S10+rmw", 256, 1000000, s10_rmw, "  one RMW, and those of tasks" },
    { "T1a", 256, TIMER_OPS, t1a, "one indirect call" },
    { "T1b", 256, TIMER_OPS, t1b, "timer wheel: insert, remove" },
    { "T1b+clock", 256, TIMER_OPS, t1b_clock, "  and one clock_gettime" },
    { "T1c", 256, TIMER_OPS, t1c, "timer wheel: insert, queue, remove" },
    { "C1at", 256, MILLION, c1, "word set, number, word set back" },
    { "C1at+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1aw", 256, MILLION, c1, "word set, number, word set back" },
    { "C1aw+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1bt", 256, MILLION, c1, "word set, number, word set back" },
    { "C1bt+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1bw", 256, MILLION, c1, "word set, number, word set back" },
    { "C1bw+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1ct", 256, MILLION, c1, "word set, number, word set back" },
    { "C1ct+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1cw", 256, MILLION, c1, "word set, number, word set back" },
    { "C1cw+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1dt", 256, MILLION, c1, "word set, number, word set back" },
    { "C1dt+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C1dw", 256, MILLION, c1, "word set, number, word set back" },
    { "C1dw+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C2a", 256, MILLION, c2a, "a load, a value" },
    { "C2b", 256, MILLION, c2b, "new, value, word set" },
    { "C2b+rmw", 256, MILLION, c2b_rmw, "  one RMW" },
    { "C3a", 256, MILLION, c3a, "new, word set and set back" },
    { "C3a+rmw", 256, MILLION, c3a_rmw, "  two RMW" },
    { "C3b", 256, MILLION, c2b, "new, word set" },
    { "C3b+rmw", 256, MILLION, c2b_rmw, "  one RMW" },
    { "C3c", 256, 20000, c3c, "8 tasks wait in a list for the last" },
    { "C3c+rmw", 256, 20000, c3c_rmw, "  compare-and-swap, two RMW per poll" },
    { "C4at", 256, MILLION, c4a, "numbers into a ring" },
    { "C4at+rmw", 256, MILLION, c4a_rmw, "  one RMW" },
    { "C4aw", 256, MILLION, c4a, "numbers into a ring" },
    { "C4aw+rmw", 256, MILLION, c4a_rmw, "  one RMW" },
    { "C4bt", 256, MILLION, c4b, "numbers out of a ring" },
    { "C4bt+rmw", 256, MILLION, c4b_rmw, "  one RMW" },
    { "C4bw", 256, MILLION, c4b, "numbers out of a ring" },
    { "C4bw+rmw", 256, MILLION, c4b_rmw, "  one RMW" },
    { "C4ct", 256, MILLION, c4c, "a number into a ring and out" },
    { "C4ct+rmw", 256, MILLION, c4c_rmw, "  two RMW" },
    { "C4cw", 256, MILLION, c4c, "a number into a ring and out" },
    { "C4cw+rmw", 256, MILLION, c4c_rmw, "  two RMW" },
    { "C5at", 256, MILLION, c2b, "new, value, word set and read" },
    { "C5at+rmw", 256, MILLION, c2b_rmw, "  one RMW" },
    { "C5aw", 256, MILLION, c2b, "new, value, word set and read" },
    { "C5aw+rmw", 256, MILLION, c2b_rmw, "  one RMW" },
    { "C5b", 256, MILLION, c5b, "spawn, run, free; the parent waits" },
    { "C5b+rmw", 256, MILLION, c5b_rmw, "  compare-and-swap, two RMW per poll" },
    { "C6a", 256, MILLION, c6a, "numbers into a ring, read four times" },
    { "C6a+rmw", 256, MILLION, c6a_rmw, "  one RMW" },
    { "C6b", 256, MILLION, c6b, "word set, value, word set back" },
    { "C6b+rmw", 256, MILLION, c6b_rmw, "  two RMW" },
    { "C7a", 256, MILLION, c7a, "through a ring, 1000 at a time" },
    { "C7a+rmw", 256, MILLION, c7a_rmw, "  two RMW" },
    { "C7b", 256, MILLION, c7a, "through a ring, 1000 at a time" },
    { "C7b+rmw", 256, MILLION, c7a_rmw, "  two RMW" },
    { "C7c", 256, MILLION, c7c, "through one cell, two trips of tasks" },
    { "C7c+rmw", 256, MILLION, c7c_rmw, "  two RMW, and those of tasks" },
    { "C7d", 256, MILLION, c7d, "through a ring, a million at a time" },
    { "C7d+rmw", 256, MILLION, c7d_rmw, "  two RMW" },
    { "C8a", 256, MILLION, c8, "through a ring, 5000 at a time" },
    { "C8a+rmw", 256, MILLION, c8_rmw, "  one RMW" },
    { "C8c", 256, MILLION, c8, "through a ring, 5000 at a time" },
    { "C8c+rmw", 256, MILLION, c8_rmw, "  one RMW" },
    { "C8e", 256, MILLION, c8, "through a ring, 5000 at a time" },
    { "C8e+rmw", 256, MILLION, c8_rmw, "  one RMW" },
    { "C8b", 256, MILLION, c8b, "through a ring, 100 at a time" },
    { "C8b+rmw", 256, MILLION, c8b_rmw, "  one RMW" },
    { "C8d", 256, MILLION, c8b, "through a ring, 100 at a time" },
    { "C8d+rmw", 256, MILLION, c8b_rmw, "  one RMW" },
    { "C9a", 256, MILLION, c1, "word set, number, word set back" },
    { "C9a+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C9c", 256, MILLION, c1, "word set, number, word set back" },
    { "C9c+rmw", 256, MILLION, c1_rmw, "  two RMW" },
    { "C9b", 256, 999600, c9b, "word set, number, word set back" },
    { "C9b+rmw", 256, 999600, c9b_rmw, "  two RMW" },
    { "C9d", 256, 200000, c9d, "in turn: a trip for the yield, one to wake" },
    { "C9d+rmw", 256, 200000, c9d_rmw, "  compare-and-swap, two RMW per poll" },
    { "C9e", 256, 200000, c9d, "in turn: a trip for the yield, one to wake" },
    { "C9e+rmw", 256, 200000, c9d_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10a", 256, 200000, c10_10, "10 tasks in a list are queued" },
    { "C10a+rmw", 256, 200000, c10_10_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10e", 256, 200000, c10_10, "10 tasks in a list are queued" },
    { "C10e+rmw", 256, 200000, c10_10_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10b", 512, 200000, c10_500, "500 tasks" },
    { "C10b+rmw", 512, 200000, c10_500_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10f", 1024, 200000, c10_1000, "1000 tasks" },
    { "C10f+rmw", 1024, 200000, c10_1000_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10g", 1024, 200000, c10_1000, "1000 tasks" },
    { "C10g+rmw", 1024, 200000, c10_1000_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10c", 256, 200000, c10c, "one of 10 queues the next" },
    { "C10c+rmw", 256, 200000, c10c_rmw, "  compare-and-swap, two RMW per poll" },
    { "C10d", 256, 200000, c10d, "one of 500 queues the next" },
    { "C10d+rmw", 256, 200000, c10d_rmw, "  compare-and-swap, two RMW per poll" },
    { "F1", 256, FILE_READS, f1, "preadv2 of 4 KiB" },
    { "F2", 256, FILE_PARTS, f2, "preadv2 of 64 KiB" },
};

static void measure(const struct row *r, int reps) {
    bench_row figures = { .id = r->id, .what = r->what, .workers = 1, .ops = r->ops };
    timed = &figures;
    for (int i = -1; i < reps; i++) { // the first one warms up
        reset(r->ring);
        bench_start(&figures);
        r->run();
        if (i >= 0) bench_stop(&figures);
        if (tally != r->ops) bench_die("%s: %" PRIu64 " operations were done", r->id, tally);
    }
    bench_print(&figures);
}

int main(int argc, char **argv) {
    double reps = 15;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < BENCH_COUNT(rows); i++) puts(rows[i].id);
        return 0;
    }
    const bench_option options[] = { { "--reps", &reps, 1, BENCH_REPS_MAX } };
    const int n = bench_options(argc, argv, options, BENCH_COUNT(options));
    int measured = 0;
    bench_print_header();
    for (size_t i = 0; i < BENCH_COUNT(rows); i++) {
        if (!bench_is_wanted(rows[i].id, argv, n)) continue;
        measure(&rows[i], (int)reps);
        measured++;
    }
    if (measured < n) bench_die("no such row");
    return 0;
}
