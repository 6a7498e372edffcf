// SPDX-License-Identifier: MIT OR 0BSD
// Which execution comes next. An execution is a path of choices: which thread moves, and then
// whatever its operation leaves open, mostly which store a load reads. Depth first: the last choice
// that has another way takes it, what lay behind is forgotten, and the scenario runs again.
//
// EXHAUSTIVE does not try every order of threads. Two executions with the same reads-from and
// modification orders are one to the program, so it is source-set dynamic partial-order reduction
// with sleep sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL
// 2014), with two liberties that a memory model of views allows:
//
//   A load may read an older store even if a newer one has been executed. So executing the load
//   first shows nothing that executing the store first does not: only a store behind a load is a
//   reason to try the other order, never a load behind a store.
//   A thread asleep before a load, whose location is then written, is woken for the new store only:
//   the older ones have been read in executions that are equal (`covered`).
//
// BOUNDED has no sleep sets and reverses every pair of conflicting operations; where it does so, it
// also tries the switch where the first thread's block of steps began, as a switch there may be
// free (Coons, Musuvathi, McKinley: Bounded Partial-Order Reduction, OOPSLA 2013). SAMPLED draws.
//
// A bound hides races: a lock that its user gives back and soon takes again orders what the user
// has touched in between, unless the other thread gets the lock just there, and that switch may be
// one too many. Up to .contests such switches are free: those where both threads are about to
// compare and swap the same word.
#include "internal.h"

typedef struct choice {
    uint16_t n, pick; // n = 0: which thread, in steps[step]
    uint16_t step;
} choice;
static choice path[MAX_PATH];
static int path_len, path_pos; // known; taken
static int first_new;          // choices from here on were not made like this before
static step steps[MAX_STEPS];
static int n_steps;
static const char *replay; // not NULL: choices come from this string
static uint64_t random_state;
int search_is_naive;

static uint8_t bit(int t) { return (uint8_t)(1u << t); }
static int lowest(unsigned set) { return __builtin_ctz(set); }
static int is_reduced(void) { return scenario->class == VMC_EXHAUSTIVE && !search_is_naive; }
// The liberties hold if a load behind a store may read all that it may read before it. Where stale
// reads are counted it may not, so there they are not taken.
static int is_liberal(void) {
    return is_reduced() && scenario->stale_reads == 0 && scenario->max_repeats == 0;
}

static uint64_t random_below(uint64_t n) {
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(mix(random_state, 1), 2) % n;
}

// ---- paths

static void changed(const char *what) {
    vmc_fail("the scenario is not deterministic: when replayed, %s differs", what);
}
// Digits are threads, letters from 'a' on are ways; a way beyond 'y' is written z and a number.
static int next_of_replay(int is_thread) {
    if (!*replay) return -1;
    if (is_thread) return *replay >= '0' && *replay <= '9' ? *replay++ - '0' : -1;
    if (*replay < 'a' || *replay > 'z') return -1;
    if (*replay != 'z') return *replay++ - 'a';
    char *end;
    long k = strtol(replay + 1, &end, 10);
    replay = *end == '.' ? end + 1 : end;
    return (int)k;
}
void search_print_path(FILE *out) {
    for (int i = 0; i < path_pos; i++) {
        if (path[i].n == 0)
            fprintf(out, "%d", steps[path[i].step].tid);
        else if (path[i].pick < 'z' - 'a')
            fputc('a' + path[i].pick, out);
        else
            fprintf(out, "z%d.", path[i].pick);
    }
}
static choice *push(unsigned n) {
    if (path_len == MAX_PATH) vmc_fail("limit: more than %d choices", MAX_PATH);
    choice *c = &path[path_len++];
    *c = (choice){.n = (uint16_t)n, .step = (uint16_t)n_steps};
    return c;
}
unsigned choose(unsigned n) {
    if (n == 0 || n > MAX_CHOICE) vmc_fail("limit: a choice among %u", n);
    if (n == 1) return 0;
    if (path_pos == path_len) {
        choice *c = push(n);
        if (replay) {
            int k = next_of_replay(0);
            if (k >= (int)n) vmc_fail("the replay string does not fit: %d of %u ways", k, n);
            c->pick = k < 0 ? 0 : (uint16_t)k;
        } else if (scenario->class == VMC_SAMPLED) {
            c->pick = (uint16_t)random_below(n);
        }
    }
    const choice *c = &path[path_pos++];
    if (c->n != n) changed("a choice");
    return c->pick;
}

// ---- which operations matter to each other

static int is_memory(const op *o) { return o->kind >= OP_LOAD && o->kind <= OP_CAS; }
static int is_futex(const op *o) { return o->kind == OP_FUTEX_WAIT || o->kind == OP_FUTEX_WAKE; }
static int is_sc_fence(const op *o) { return o->kind == OP_FENCE || is_futex(o); }
int op_is_sc(const op *o) {
    return is_sc_fence(o) || (is_memory(o) && o->order == __ATOMIC_SEQ_CST);
}
static int is_world(const op *o) {
    return is_futex(o) || (o->kind >= OP_SLEEP && o->kind != OP_BARRIER);
}

static int is_kernel(const op *o) { return o->kind == OP_KERNEL || o->is_kernel; }
// A kernel call is about one epoll, or counts as about all of them.
static int same_kernel(const op *a, const op *b) {
    if (a->is_post && b->is_post) return 0;
    return !a->addr || !b->addr || a->addr == b->addr;
}
static int same_world(const op *a, const op *b) {
    if (a->kind == OP_SPAWN) return b->kind == OP_SPAWN; // they number the threads
    if (!is_world(a) || !is_world(b)) return 0;
    int a_moves_time = a->kind == OP_SLEEP && a->is_timed;
    int b_moves_time = b->kind == OP_SLEEP && b->is_timed;
    if (a->kind == OP_CLOCK || b->kind == OP_CLOCK) return a_moves_time || b_moves_time;
    if (a_moves_time && b_moves_time) return 1;
    return is_kernel(a) && is_kernel(b) ? same_kernel(a, b) : a->addr == b->addr;
}
static int same_place(const op *a, const op *b) {
    return a->addr == b->addr && (is_memory(a) || a->kind == OP_FUTEX_WAIT) &&
           (is_memory(b) || b->kind == OP_FUTEX_WAIT);
}
static int both_sc(const op *a, const op *b) {
    if (!op_is_sc(a) || !op_is_sc(b)) return 0;
    return is_sc_fence(a) || is_sc_fence(b) || a->addr == b->addr;
}
// It concerns every thread, wherever that one is.
static int is_barrier(const op *a, const op *b) {
    return a->kind == OP_BARRIER || b->kind == OP_BARRIER;
}
static int may_write(const op *o) { return o->kind >= OP_STORE && o->kind <= OP_CAS; }

// Is a step with an operation `a`, that has or has not written, in another order with `b` another
// execution?
static int conflicts(const op *a, const op *b, int a_writes, int b_writes) {
    if (is_barrier(a, b) || both_sc(a, b) || same_world(a, b)) return 1;
    return same_place(a, b) && (a_writes || b_writes);
}
static const op *op_of(const step *s) { return &s->ops[s->tid]; }

// A thread woken in a futex only goes on: its step matters to no other, and only its waker to it.
static int is_waker(const step *a, const step *b) { return a - steps + 1 == b->woken_by; }

// Could the second show something new if it came before the first?
static int is_race(const step *a, const step *b) {
    const op *x = op_of(a), *y = op_of(b);
    if (y->kind == OP_SLEEP && !(a->runnable & bit(b->tid))) return 0; // it was not awake yet
    if (a->woken_by) return 0;
    if (b->woken_by) return is_waker(a, b); // it might have timed out before
    if (!is_liberal()) return conflicts(x, y, may_write(x), may_write(y));
    if (is_barrier(x, y) || both_sc(x, y) || same_world(x, y)) return 1;
    if (!same_place(x, y)) return 0;
    if (b->has_written) return a->has_written || !MUTANT(NO_LOAD_RACE);
    return a->has_written && y->kind == OP_CAS; // it failed, and could succeed without the first
}
// Must the first come before the second in every execution equal to this one?
static int precedes(const step *a, const step *b) {
    const op *x = op_of(a), *y = op_of(b);
    if (y->kind == OP_JOIN) return a->tid == y->arg;
    if (a->woken_by) return 0;
    if (b->woken_by) return is_waker(a, b);
    if (!is_liberal()) return conflicts(x, y, may_write(x), may_write(y));
    if (is_barrier(x, y) || both_sc(x, y) || same_world(x, y)) return 1;
    if (!same_place(x, y) || !a->has_written) return 0;
    return b->has_written || b->read_from == a->wrote;
}

// ---- races: what other order to try

static int comes_before(int a, int b) { return steps[b].past[steps[a].tid] >= steps[a].nth; }

// The threads one of which must move at step i for step k to come before it.
static unsigned initials(int i, int k, int *first) {
    static int kept[MAX_STEPS];
    int n = 0;
    unsigned seen = 0, set = 0;
    for (int m = i + 1; m <= k; m++) {
        if (m != k && comes_before(i, m)) continue;
        unsigned me = bit(steps[m].tid);
        int is_initial = !(seen & me);
        for (int j = 0; j < n && is_initial; j++) is_initial = !comes_before(kept[j], m);
        if (is_initial) set |= me;
        if (n == 0) *first = steps[m].tid;
        kept[n++] = m;
        seen |= me;
    }
    return set;
}
static void try_at(step *s, unsigned wanted) {
    s->backtrack |= (uint8_t)((s->runnable & wanted) ? s->runnable & wanted : s->runnable);
}
static void reverse(int i, int k) {
    step *s = &steps[i];
    if (is_reduced()) {
        int first = steps[k].tid;
        if (!(initials(i, k, &first) & (s->backtrack | s->asleep))) try_at(s, bit(first));
        return;
    }
    try_at(s, bit(steps[k].tid));
    while (i > 0 && steps[i].before == steps[i].tid && !MUTANT(NO_BLOCK_START)) i--;
    try_at(&steps[i], bit(steps[k].tid));
}
static void join_past(step *to, const step *from) {
    for (int t = 0; t < THREADS; t++)
        if (to->past[t] < from->past[t]) to->past[t] = from->past[t];
}
// Finds the steps that must come before step k, and those that it races with.
static void analyse(int k) {
    step *s = &steps[k];
    static int races[MAX_STEPS];
    int n = 0;
    memset(s->past, 0, sizeof s->past);
    if (s->previous) join_past(s, &steps[s->previous - 1]);
    s->past[s->tid] = s->nth;
    for (int i = k - 1; i >= 0; i--) {
        const step *e = &steps[i];
        if (e->tid == s->tid || e->nth <= s->past[e->tid]) continue;
        if (is_race(e, s)) races[n++] = i;
        if (precedes(e, s)) join_past(s, e);
    }
    for (int r = 0; r < n; r++) reverse(races[r], k);
}
void finish_step(void) {
    step *s = vm.step;
    if (!s) return;
    vm.step = NULL;
    int is_known = path_pos <= first_new; // no choice of this step is new
    if (search_is_naive || scenario->class == VMC_SAMPLED || is_known || replay) return;
    analyse((int)(s - steps));
}

// ---- a new step

// Whether thread t, all of whose ways at `s` have been explored, still need not move after s.
static void inherit_sleep(step *next, const step *s, int t) {
    const op *moved = op_of(s), *waits = &s->ops[t];
    int was_asleep = (s->asleep | s->done) & bit(t);
    uint16_t covered = s->covered[t];
    if (t == s->tid || (!was_asleep && !covered)) return;
    if (s->done & bit(t)) covered = s->n_stores;
    if (is_barrier(moved, waits) || both_sc(moved, waits) || same_world(moved, waits)) {
        if (MUTANT(NO_SLEEP_WAKE)) next->asleep |= bit(t);
        return;
    }
    if (!is_liberal() && conflicts(moved, waits, may_write(moved), may_write(waits))) return;
    if (same_place(moved, waits) && s->has_written) {
        if (MUTANT(NO_SLEEP_WAKE))
            next->asleep |= bit(t);
        else if (!may_write(waits))
            next->covered[t] = covered;
        return;
    }
    next->covered[t] = covered;
    if (was_asleep) next->asleep |= bit(t);
}
static unsigned runnable_threads(void) {
    unsigned set = 0, yielded = 0;
    for (int i = 0; i < vm.n_threads; i++) {
        if (!world_is_runnable(&vm.threads[i])) continue;
        if (vm.threads[i].has_yielded)
            yielded |= bit(i);
        else
            set |= bit(i);
    }
    if (!set) set = yielded;
    if (environment_is_runnable(set != 0)) set |= bit(ENVIRONMENT);
    return set;
}
// Thread t, about to compare and swap the same word as the thread that has moved last, goes first.
static int is_contest(const step *s, int t) {
    const op *a = &s->ops[s->before], *b = &s->ops[t];
    return a->kind == OP_CAS && b->kind == OP_CAS && a->addr == b->addr &&
           s->n_contests < scenario->contests;
}
static unsigned affordable(const step *s, unsigned set) {
    int is_out = scenario->class == VMC_BOUNDED && s->n_preemptions >= scenario->preemptions;
    unsigned may = (unsigned)bit(s->before) | bit(ENVIRONMENT);
    if (!is_out || !(s->runnable & bit(s->before))) return set;
    for (int t = 0; t < vm.n_threads; t++)
        if (is_contest(s, t)) may |= bit(t);
    return set & may;
}
// Picks the thread that moves first of those that may. Writers before readers: a load behind a
// store is no reason for another order.
static int prefer(const step *s, unsigned set) {
    unsigned writers = 0;
    if (replay) {
        int t = next_of_replay(1);
        if (t < 0) return set & bit(s->before) ? s->before : lowest(set);
        if (!(set & bit(t))) vmc_fail("the replay string does not fit: thread %d cannot move", t);
        return t;
    }
    if (scenario->class == VMC_SAMPLED) {
        unsigned n = (unsigned)random_below((uint64_t)__builtin_popcount(set));
        while (n-- > 0) set &= set - 1;
        return lowest(set);
    }
    for (int t = 0; t < THREADS && is_liberal(); t++)
        if ((set & bit(t)) && s->ops[t].kind != OP_LOAD) writers |= bit(t);
    if (writers) set = writers;
    return set & bit(s->before) ? s->before : lowest(set);
}
static void new_step(unsigned runnable) {
    step *s = &steps[n_steps], *last = n_steps > 0 ? s - 1 : NULL;
    memset(s, 0, sizeof *s);
    s->runnable = (uint8_t)runnable;
    s->before = (uint8_t)vm.current;
    s->n_stores = (uint16_t)vm.n_stores;
    for (int t = 0; t < vm.n_threads; t++) s->ops[t] = vm.threads[t].next;
    s->ops[ENVIRONMENT] = (op){.kind = OP_KERNEL};
    if (last) {
        int was_preempted = last->tid != last->before && last->tid != ENVIRONMENT &&
                            (last->runnable & bit(last->before));
        int was_free = was_preempted && is_contest(last, last->tid);
        s->n_contests = (uint8_t)(last->n_contests + was_free);
        s->n_preemptions = (uint16_t)(last->n_preemptions + (was_preempted && !was_free));
        if (is_reduced() && !replay)
            for (int t = 0; t < THREADS; t++) inherit_sleep(s, last, t);
    }
    unsigned set = affordable(s, runnable & ~(unsigned)s->asleep);
    if (!set) end_execution(PRUNED);
    s->tid = (uint8_t)prefer(s, set);
    s->backtrack = search_is_naive ? (uint8_t)set : bit(s->tid);
    // no pair of operations may be left that would lead here: the way to it may cost too much
    for (int t = 0; t < vm.n_threads; t++)
        if ((set & bit(t)) && is_contest(s, t)) s->backtrack |= bit(t);
}
static void begin_step(step *s) {
    thread *t = &vm.threads[s->tid];
    s->has_written = 0;
    s->read_from = s->wrote = 0;
    s->nth = ++t->n_steps;
    s->previous = t->last_step;
    t->last_step = (uint16_t)n_steps;
    t->covered = s->covered[s->tid];
    s->woken_by =
        t->next.kind == OP_SLEEP && !t->next.is_kernel && t->sleep == WOKEN ? t->woken_by : 0;
    vm.step = s;
}
static int next_thread(void) {
    unsigned runnable = runnable_threads();
    int limit = scenario->max_steps ? scenario->max_steps : 2000;
    if (!runnable) vmc_fail("deadlock: a wake-up was lost, or threads wait for each other");
    if (n_steps >= limit || n_steps >= MAX_STEPS) vmc_fail("limit: more than %d steps", limit);
    if (path_pos == path_len) {
        new_step(runnable);
        push(0);
    }
    const choice *c = &path[path_pos++];
    step *s = &steps[n_steps++];
    if (c->n != 0 || s->runnable != runnable) changed("the set of threads that can move");
    begin_step(s);
    return s->tid;
}

// ---- moving

// Not before the environment has moved, too: no execution shows the conflicts of a step that
// may be left out.
static void end_if_over(void) {
    for (int i = 0; i < vm.n_threads; i++)
        if (vm.threads[i].state != ENDED) return;
    if (environment_is_runnable(0)) return;
    check_leaks();
    end_execution(COMPLETE);
}
// The environment has no code of its own: the current thread executes its steps.
static int next_with_code(void) {
    int me = vm.current;
    for (;;) {
        int t = next_thread();
        if (t != ENVIRONMENT) return t;
        int is_early = (vm.step->runnable & ~(unsigned)bit(ENVIRONMENT)) != 0;
        vm.current = ENVIRONMENT;
        environment_step(is_early);
        vm.current = me;
        for (int i = 0; i < vm.n_threads; i++) vm.threads[i].has_yielded = 0;
        finish_step();
        end_if_over();
    }
}
static void move_on(int me) {
    int t = next_with_code();
    vm.current = t;
    if (t != me) fiber_switch(me, t);
}
void schedule(op next) {
    int me = vm.current;
    const void *pc = vm.pc;
    vm.threads[me].next = next;
    finish_step();
    move_on(me);
    for (int i = 0; i < vm.n_threads; i++)
        if (i != me) vm.threads[i].has_yielded = 0;
    self()->has_yielded = 0;
    vm.pc = pc;
}
// Thread 0 is the only one: its start leaves no choice.
void schedule_first(void) {
    next_thread();
    fiber_run_execution();
}
void thread_ended(void) {
    vm.threads[vm.current].state = ENDED;
    finish_step();
    end_if_over();
    move_on(-1);
}
_Noreturn void end_execution(verdict v) {
    vm.verdict = v;
    vm.is_running = 0;
    fiber_leave();
}

// ---- from one execution to the next

void search_start(uint64_t seed) {
    path_len = path_pos = first_new = 0;
    random_state = seed;
    replay = NULL;
}
int search_replay(const char *choices) {
    replay = choices;
    return choices[strspn(choices, "0123456789abcdefghijklmnopqrstuvwxyz.")] == 0;
}
void search_reset(void) {
    n_steps = path_pos = 0;
    vm.step = NULL;
}
void search_again(void) {
    path_len = path_pos;
    first_new = path_len;
}
static int take_other_way(choice *c) {
    if (c->n) {
        if (c->pick + 1 == c->n) return 0;
        c->pick++;
        return 1;
    }
    step *s = &steps[c->step];
    s->done |= bit(s->tid);
    unsigned set = affordable(s, s->backtrack & ~(unsigned)s->done & ~(unsigned)s->asleep);
    if (!set) return 0;
    s->tid = (uint8_t)lowest(set);
    return 1;
}
int search_next(void) {
    if (scenario->class == VMC_SAMPLED) {
        path_len = 0;
        return 1;
    }
    path_len = path_pos;
    for (; path_len > 0; path_len--) {
        if (!take_other_way(&path[path_len - 1])) continue;
        first_new = path_len - 1;
        return 1;
    }
    return 0;
}
