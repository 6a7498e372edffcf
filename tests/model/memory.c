// SPDX-License-Identifier: MIT OR 0BSD
// The memory model: C11 atomics as C++20 amended them, less load buffering, as a machine that
// executes one operation at a time and still shows every other reordering that a program can
// observe, but for one of seq_cst operations (below).
//
// Each location keeps all its stores in modification order. Each thread has a view: per location
// the newest store that it knows of. A load may read that one or any newer one, so a store that has
// been executed need not be seen; that is all the reordering there is. A store carries a message,
// the view of its thread; a thread that acquires the store joins the message, and may no longer
// read stores older than those. Beside it the view has a vector clock, the happens-before of plain
// accesses (shadow.c); both travel together, but for seq_cst fences, which order but do not
// synchronise.
//
//   relaxed load     reads s; knows s. `acquirable` joins the message of s
//   acquire load     ... and `now` joins it
//   release store    message = now            relaxed store: message = released
//   rmw              reads a store that no other rmw has read, stands right behind it in
//                    modification order; its message joins that of the store read (release
//                    sequence)
//   acquire fence    now joins acquirable     release fence: released = now
//   seq_cst fence    both, and what `sc` has newest and what the thread has newest become one
//   seq_cst access   may not read, or be ordered, before what `sc` has for its location, and adds
//                    itself
//
// Not covered, by construction, with the rows of litmus_table.c that show it:
//
//   load buffering: a load never reads a store that is executed later. C11 and C++20 allow that,
//   RC11 (Lahav et al., PLDI 2017) does not: LB.
//   An order of seq_cst operations that contradicts the order of execution along relaxed reads.
//   RC11 and C++20 allow it: fences+rf-chain, Z6.U.
//
// C++20 and RC11 differ in one more thing, in which this follows C++20, which allows more: later
// stores of the thread that began a release sequence do not continue it: RS+own-store.
#include "internal.h"

machine vm;

// ---- views

static uint16_t newest(const view *v, int loc) { return loc < v->n_locs ? v->newest[loc] : 0; }
static int pos_of(uint16_t id) { return vm.stores[id].pos; } // 0 for "none": the initial store

static void view_extend(view *v, int n) {
    if (v->n_locs >= n) return;
    memset(&v->newest[v->n_locs], 0, (size_t)(n - v->n_locs) * sizeof v->newest[0]);
    v->n_locs = (uint16_t)n;
}
static void view_raise(view *v, int loc, uint16_t id) {
    view_extend(v, loc + 1);
    if (!v->newest[loc] || pos_of(id) > pos_of(v->newest[loc])) v->newest[loc] = id;
}
void view_copy(view *to, const view *from) {
    memcpy(to, from, offsetof(view, newest) + from->n_locs * sizeof from->newest[0]);
}
static void join_clock(view *to, const view *from) {
    for (int i = 0; i < THREADS; i++)
        if (to->clock[i] < from->clock[i]) to->clock[i] = from->clock[i];
}
static void join_newest(view *to, const view *from) {
    view_extend(to, from->n_locs);
    for (int i = 0; i < from->n_locs; i++)
        if (from->newest[i] && from->newest[i] != to->newest[i]) view_raise(to, i, from->newest[i]);
}
void view_join(view *to, const view *from) {
    if (!MUTANT(NO_CLOCK_JOIN)) join_clock(to, from);
    if (!MUTANT(NO_VIEW_JOIN)) join_newest(to, from);
}
// Plain accesses from here on are not those that the last release published.
void epoch_bump(thread *t) {
    if (!MUTANT(NO_EPOCH_BUMP)) t->now.clock[vm.current]++;
}

// ---- locations and stores

static int is_acquire(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }
static int is_release(int order) { return order >= __ATOMIC_RELEASE; }

static uint64_t native(uintptr_t addr, int size) {
    uint64_t v = 0;
    memcpy(&v, (const void *)addr, (size_t)size);
    return v;
}
static void set_native(uintptr_t addr, int size, uint64_t v) {
    memcpy((void *)addr, &v, (size_t)size);
}
static uint64_t mask(int size) { return size == 8 ? UINT64_MAX : (UINT64_C(1) << size * 8) - 1; }

static uint16_t new_store(int loc, uint64_t value) {
    if (vm.n_stores == MAX_STORES) vmc_fail("limit: more than %d atomic stores", MAX_STORES);
    store *s = &vm.stores[vm.n_stores];
    memset(s, 0, offsetof(store, message.newest));
    s->value = value;
    s->loc = (uint16_t)loc;
    return (uint16_t)vm.n_stores++;
}
static location *find(uintptr_t addr, int size, int is_write) {
    int i = shadow_location(addr, size, is_write);
    if (i >= 0) return &vm.locs[i];
    if (vm.n_locs == MAX_LOCS) vmc_fail("limit: more than %d atomic objects", MAX_LOCS);
    i = vm.n_locs++;
    location *l = &vm.locs[i];
    memset(l, 0, offsetof(location, order));
    memset(l->read, 0, sizeof l->read + sizeof l->written);
    l->addr = addr;
    l->size = (uint8_t)size;
    l->order[l->n++] = new_store(i, native(addr, size));
    vm.stores[l->order[0]].is_initial = 1;
    for (int t = 0; t < vm.n_threads; t++) vm.threads[t].n_repeats[i] = 0;
    shadow_link(addr, size, i);
    return l;
}
static int index_of(const location *l) { return (int)(l - vm.locs); }

static uint64_t identity(const store *s) {
    if (s->is_initial) return vm.locs[s->loc].addr;
    return (uint64_t)s->tid << 16 | s->event;
}
static uint64_t location_hash(const location *l) {
    uint64_t h = l->addr;
    for (int i = 0; i < l->n; i++) h = mix(h, identity(&vm.stores[l->order[i]]));
    return h;
}
void location_retire(int loc) {
    vm.locs[loc].is_dead = 1;
    vm.retired += location_hash(&vm.locs[loc]);
}
// The reads of every thread, and every modification order: equal for equal execution graphs only.
uint64_t memory_hash(void) {
    uint64_t h = 0, orders = vm.retired;
    for (int t = 0; t < vm.n_threads; t++) h = mix(h, vm.threads[t].history);
    h = mix(h, vm.threads[ENVIRONMENT].history);
    for (int i = 0; i < vm.n_locs; i++)
        if (!vm.locs[i].is_dead) orders += location_hash(&vm.locs[i]);
    return mix(h, orders);
}
void note_event(uint64_t what) {
    thread *t = self();
    t->history = mix(t->history, what);
    t->n_events++;
}

// ---- what a load may read

static int floor_of(const location *l, int order) {
    int x = index_of(l), floor = MUTANT(NO_FLOOR) ? 0 : pos_of(newest(&self()->now, x));
    if (order == __ATOMIC_SEQ_CST && !MUTANT(NO_SC_FLOOR)) {
        int sc = pos_of(newest(&vm.sc, x));
        if (sc > floor) floor = sc;
    }
    return floor;
}
// A thread that has re-read a stale store often enough must look at a newer one.
static int live_floor(const location *l, int floor) {
    const thread *t = self();
    int x = index_of(l);
    if (scenario->max_repeats > 0 && floor < l->n - 1 && t->last_read[x] == l->order[floor] &&
        t->n_repeats[x] >= scenario->max_repeats)
        return floor + 1;
    return floor;
}
static int stale_is_over(void) {
    if (MUTANT(NO_STALE)) return 1;
    return scenario->stale_reads != 0 && vm.n_stale >= scenario->stale_reads;
}
// Stores that search.c has seen this very load read, in an equal execution, are skipped.
static int is_covered(uint16_t id) {
    uint16_t covered = self()->covered;
    return covered && (vm.stores[id].is_initial || id < covered);
}
static void note_read(location *l, uint16_t id, int order) {
    thread *t = self();
    int x = index_of(l);
    store *s = &vm.stores[id];
    int is_again = t->last_read[x] == id && t->n_repeats[x] > 0;
    t->n_repeats[x] = is_again ? (uint8_t)(t->n_repeats[x] + (t->n_repeats[x] < 255)) : 1;
    t->last_read[x] = id;
    if (s->pos < l->n - 1) vm.n_stale++;
    if (!MUTANT(NO_READ_VIEW)) view_raise(&t->now, x, id);
    view_join(&t->acquirable, &s->message);
    if (is_acquire(order)) view_join(&t->now, &s->message);
    if (order == __ATOMIC_SEQ_CST) view_raise(&vm.sc, x, id);
    l->read[vm.current] = t->now.clock[vm.current];
    vm.step->read_from = id;
}
static uint16_t choose_store(const location *l, int order) {
    uint16_t ways[STORES_PER_LOC];
    unsigned n = 0;
    int floor = live_floor(l, floor_of(l, order));
    if (stale_is_over()) floor = l->n - 1;
    for (int p = l->n - 1; p >= floor; p--) {
        uint16_t id = l->order[p];
        if (is_covered(id)) continue;
        // in the order of their execution, so that skipping those covered renumbers no way
        unsigned at = n++;
        for (; at > 0 && ways[at - 1] < id; at--) ways[at] = ways[at - 1];
        ways[at] = id;
    }
    if (n == 0) end_execution(PRUNED);
    return ways[choose(n)];
}
static const char *store_text(uint16_t id, char *text, size_t size) {
    const store *s = &vm.stores[id];
    if (s->is_initial)
        snprintf(text, size, "the initial value");
    else
        snprintf(text, size, "T%d's event %d", s->tid, s->event);
    return text;
}
static void trace_access(const char *what, uintptr_t addr, int order, uint64_t value,
                         uint16_t from) {
    char place[80], text[40];
    if (!is_tracing) return;
    describe_address(place, sizeof place, addr);
    trace("%-5s %-7s %-28s = %#llx%s%s", what, order_name(order), place, (unsigned long long)value,
          from ? "  from " : "", from ? store_text(from, text, sizeof text) : "");
}

// ---- operations

// Outside an execution, in constructors, memory is just memory.
uint64_t memory_load(uintptr_t addr, int size, int order) {
    if (!vm.is_running) return native(addr, size);
    schedule((op){.kind = OP_LOAD, .order = (uint8_t)order, .addr = (const void *)addr});
    location *l = find(addr, size, 0);
    uint16_t id = choose_store(l, order);
    note_event(mix(1, identity(&vm.stores[id])));
    note_read(l, id, order);
    trace_access("load", addr, order, vm.stores[id].value, id);
    return vm.stores[id].value;
}

// Puts a store at `pos`; `from`: the store that an rmw has read, or 0.
static void put(location *l, int pos, uint64_t value, int order, uint16_t from) {
    thread *t = self();
    int x = index_of(l);
    if (l->n == STORES_PER_LOC) vmc_fail("limit: more than %d stores to a word", STORES_PER_LOC);
    uint16_t id = new_store(x, value);
    store *s = &vm.stores[id];
    for (int p = l->n; p > pos; p--) {
        l->order[p] = l->order[p - 1];
        vm.stores[l->order[p]].pos = (uint16_t)p;
    }
    l->order[pos] = id;
    l->n++;
    s->pos = (uint16_t)pos;
    s->tid = (uint8_t)vm.current;
    s->event = t->n_events;
    view_raise(&t->now, x, id);
    view_copy(&s->message, is_release(order) ? &t->now : &t->released);
    view_raise(&s->message, x, id);
    if (from) {
        if (!MUTANT(NO_SEQUENCE)) view_join(&s->message, &vm.stores[from].message);
        vm.stores[from].has_successor = 1;
    }
    if (order == __ATOMIC_SEQ_CST) view_raise(&vm.sc, x, id);
    l->written[vm.current] = t->now.clock[vm.current];
    set_native(l->addr, l->size, vm.stores[l->order[l->n - 1]].value);
    vm.step->wrote = id;
    vm.step->has_written = 1;
    epoch_bump(t);
}

static int is_appended(void) {
    return scenario->mo_insert == VMC_MO_APPENDS || scenario->stale_reads == VMC_NO_STALE;
}
// Where a new store may stand: last, or anywhere behind what its thread knows of, but not between
// an rmw and what that has read.
static int choose_pos(const location *l, int order) {
    uint16_t ways[STORES_PER_LOC + 1];
    unsigned n = 0;
    if (is_appended()) return l->n;
    for (int p = l->n; p > floor_of(l, order); p--)
        if (p == l->n || !vm.stores[l->order[p - 1]].has_successor) ways[n++] = (uint16_t)p;
    return ways[choose(n)];
}
void memory_store(uintptr_t addr, int size, uint64_t value, int order) {
    value &= mask(size);
    if (!vm.is_running) {
        set_native(addr, size, value);
        return;
    }
    schedule((op){.kind = OP_STORE, .order = (uint8_t)order, .addr = (const void *)addr});
    location *l = find(addr, size, 1);
    note_event(2);
    put(l, choose_pos(l, order), value, order, 0);
    trace_access("store", addr, order, value, 0);
}

// Whether an rmw may read the store at `pos`: the last one, or else one without successor.
static int is_readable_by_rmw(const location *l, int pos) {
    if (MUTANT(NO_ADJACENCY)) return 1;
    return pos == l->n - 1 || (!is_appended() && !vm.stores[l->order[pos]].has_successor);
}
uint64_t memory_rmw(uintptr_t addr, int size, rmw_fn *fn, uint64_t operand, int order) {
    uint16_t ways[STORES_PER_LOC];
    unsigned n = 0;
    operand &= mask(size);
    if (!vm.is_running) {
        uint64_t old = native(addr, size);
        set_native(addr, size, fn(old, operand));
        return old;
    }
    schedule((op){.kind = OP_RMW, .order = (uint8_t)order, .addr = (const void *)addr});
    location *l = find(addr, size, 1);
    for (int p = l->n - 1; p >= floor_of(l, order); p--)
        if (is_readable_by_rmw(l, p)) ways[n++] = l->order[p];
    uint16_t from = ways[choose(n)];
    uint64_t old = vm.stores[from].value, value = fn(old, operand) & mask(size);
    note_event(mix(3, identity(&vm.stores[from])));
    note_read(l, from, order);
    put(l, vm.stores[from].pos + 1, value, order, from);
    trace_access("rmw", addr, order, value, from);
    return old;
}

// Every visible store with another value is a possible failure, however stale; one with the
// expected value is success, if an rmw may read it.
static unsigned cas_ways(const location *l, uint64_t expected, int success, int failure,
                         uint16_t *ways, unsigned *n_successes) {
    unsigned n = 0;
    for (int p = l->n - 1; p >= floor_of(l, success); p--)
        if (vm.stores[l->order[p]].value == expected && is_readable_by_rmw(l, p))
            ways[n++] = l->order[p];
    *n_successes = n;
    for (int p = l->n - 1; p >= live_floor(l, floor_of(l, failure)); p--) {
        if (vm.stores[l->order[p]].value == expected) continue;
        ways[n++] = l->order[p];
        if (MUTANT(NO_STALE_CAS) || stale_is_over()) break;
    }
    return n;
}
int memory_cas(uintptr_t addr, int size, uint64_t *expected, uint64_t desired, int is_weak,
               int success, int failure) {
    uint16_t ways[2 * STORES_PER_LOC];
    unsigned n_successes;
    uint64_t wanted = *expected & mask(size);
    if (!vm.is_running) {
        uint64_t old = native(addr, size);
        *expected = old;
        if (old == wanted) set_native(addr, size, desired);
        return old == wanted;
    }
    // the stronger of the two: what search.c must reckon with
    int order = failure == __ATOMIC_SEQ_CST ? failure : success;
    schedule((op){.kind = OP_CAS, .order = (uint8_t)order, .addr = (const void *)addr});
    location *l = find(addr, size, 0);
    unsigned n = cas_ways(l, wanted, success, failure, ways, &n_successes);
    unsigned may_be_spurious = is_weak && n_successes && vm.n_spurious < scenario->spurious;
    unsigned k = choose(n + may_be_spurious);
    if (MUTANT(NO_FAIL_ORDER)) failure = success;
    int is_spurious = k == n;
    uint16_t from = is_spurious ? ways[0] : ways[k];
    uint64_t old = vm.stores[from].value;
    vm.n_spurious += is_spurious;
    *expected = old;
    if (k < n_successes) {
        shadow_location(addr, size, 1); // only now it writes
        note_event(mix(3, identity(&vm.stores[from])));
        note_read(l, from, success);
        put(l, vm.stores[from].pos + 1, desired & mask(size), success, from);
        trace_access("cas", addr, success, desired & mask(size), from);
        return 1;
    }
    note_event(mix(4, identity(&vm.stores[from])));
    note_read(l, from, failure);
    trace_access(is_spurious ? "cas ?" : "cas -", addr, failure, old, from);
    return 0;
}

void sc_fence(void) {
    thread *t = self();
    view_join(&t->now, &t->acquirable);
    if (!MUTANT(NO_SC_FENCE)) {
        join_newest(&vm.sc, &t->now);
        join_newest(&t->now, &vm.sc);
    }
    view_copy(&t->released, &t->now);
    epoch_bump(t);
}
void memory_fence(int order) {
    if (!vm.is_running) return;
    // only seq_cst fences are ordered among threads; the others concern their own thread alone
    if (order == __ATOMIC_SEQ_CST) schedule((op){.kind = OP_FENCE, .order = __ATOMIC_SEQ_CST});
    thread *t = self();
    note_event(mix(5, (uint64_t)order));
    TRACE("fence %s", order_name(order));
    if (order == __ATOMIC_SEQ_CST) {
        sc_fence();
        return;
    }
    if (is_acquire(order) && !MUTANT(NO_ACQ_FENCE)) view_join(&t->now, &t->acquirable);
    if (is_release(order) && !MUTANT(NO_REL_FENCE)) {
        view_copy(&t->released, &t->now);
        epoch_bump(t);
    }
}
void barrier_of_all(void) {
    int me = vm.current;
    for (int i = -1; i <= vm.n_threads; i++) { // one's own first and last
        vm.current = i < 0 || i == vm.n_threads ? me : i;
        note_event(mix(14, (uint64_t)me));
        sc_fence();
    }
}
uint64_t futex_read(uintptr_t addr) {
    location *l = find(addr, 4, 0);
    uint16_t id = choose_store(l, __ATOMIC_RELAXED);
    note_event(mix(6, identity(&vm.stores[id])));
    note_read(l, id, __ATOMIC_RELAXED);
    trace_access("futex", addr, __ATOMIC_RELAXED, vm.stores[id].value, id);
    return vm.stores[id].value;
}

void memory_reset(void) {
    vm.n_locs = 0;
    vm.n_stores = 1; // 0 is none
    vm.retired = 0;
    vm.n_spurious = vm.n_stale = vm.has_registered = 0;
    memset(&vm.sc, 0, offsetof(view, newest));
    vm.stores[0].pos = 0;
}
