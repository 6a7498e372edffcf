// SPDX-License-Identifier: MIT OR 0BSD
// Ring, injector, chains, node lists and heaps: each against a simple model, then with threads.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "slab.h"
#include "test.h"

#ifdef VOLT_TEST_SMALL
enum { IS_SMALL = 1 };
#else
enum { IS_SMALL = 0 };
#endif

// Threads meet before they begin, or the first has finished before the last was created.
static uint32_t n_met;
static void meet(uint32_t n) {
    __atomic_fetch_add(&n_met, 1, __ATOMIC_ACQ_REL);
    UNTIL(__atomic_load_n(&n_met, __ATOMIC_ACQUIRE) >= n);
}
static void start_threads(pthread_t *t, int n, void *(*fn)(void *), void **args) {
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_create(&t[i], NULL, fn, args[i]), 0);
}
static void join_threads(const pthread_t *t, int n) {
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

// ---- the model of a queue

enum { FIFO_CAP = 1 << 16 };
typedef struct fifo {
    uint32_t first, len;
    volt__task *at[FIFO_CAP];
} fifo;
static void fifo_push(fifo *q, volt__task *t) {
    CHECK(q->len < FIFO_CAP);
    q->at[(q->first + q->len++) % FIFO_CAP] = t;
}
static volt__task *fifo_pop(fifo *q) {
    if (!q->len) return NULL;
    q->len--;
    return q->at[q->first++ % FIFO_CAP];
}
static uint32_t random_pick(fifo *idle, volt__chain *c, uint32_t most) {
    uint32_t n = (uint32_t)RANDOM_BELOW(most + 1);
    volt__chain_init(c);
    if (n > idle->len) n = idle->len;
    for (uint32_t i = 0; i < n; i++) volt__chain_push(c, fifo_pop(idle));
    CHECK_EQ(c->len, n);
    return n;
}

// ---- chains and lists

TEST(chain_pops_in_order_of_push) {
    static volt__task t[100];
    static fifo model;
    volt__chain c;
    volt__chain_init(&c);
    for (int i = 0, pushed = 0; i < 100000; i++) {
        if (RANDOM_BELOW(2) && c.len < 100) {
            fifo_push(&model, &t[pushed % 100]);
            volt__chain_push(&c, &t[pushed++ % 100]);
        } else {
            CHECK(volt__chain_pop(&c) == fifo_pop(&model));
        }
        CHECK_EQ(c.len, model.len);
        CHECK((c.head == NULL) == (model.len == 0) && (c.tail == NULL) == (model.len == 0));
    }
}

enum { LIST_NODES = 12 };
static void check_list(volt__node *head, volt__node *const *model, int n) {
    volt__node *v = head;
    CHECK((head == NULL) == (n == 0));
    for (int i = 0; i < n; i++, v = v->next_) CHECK(v == model[i] && v->next_->prev_ == v);
    CHECK(v == head);
}
static void list_step(volt__node **head, volt__node **model, int *n, volt__node *v) {
    int at = 0;
    while (at < *n && model[at] != v) at++;
    if (at == *n) {
        volt__list_push(head, v);
        model[(*n)++] = v;
        return;
    }
    volt__list_remove(head, v);
    CHECK(!v->next_ && !v->prev_);
    memmove(&model[at], &model[at + 1], (size_t)(--*n - at) * sizeof *model);
}
TEST(node_list_keeps_its_order_whatever_is_removed) {
    static volt__node nodes[LIST_NODES];
    volt__node *head = NULL, *model[LIST_NODES];
    int n = 0;
    for (int i = 0; i < 200000; i++) {
        list_step(&head, model, &n, &nodes[RANDOM_BELOW(LIST_NODES)]);
        check_list(head, model, n);
    }
}

// ---- the ring, one thread: every operation, also while a thief stands between claim and release

enum { RING_TASKS = 3 * VOLT_RING_CAP };
static volt__task ring_tasks[RING_TASKS];
typedef struct ring_model {
    volt__ring ring;
    fifo tasks;                     // from head to tail
    fifo claimed;                   // by the owner, and not popped yet
    uint32_t n_pushed, end_claimed; // of all pushed so far: how many; where `claimed` ends
    uint32_t taken, popped;         // claimed by the thief that is at work, and by its owner since
    volt__task *loot[VOLT_RING_CAP];
} ring_model;
static ring_model rings[2];
static fifo idle; // tasks that are in no ring

static uint32_t model_room(const ring_model *m) {
    uint32_t used = m->tasks.len + m->taken + m->popped;
    uint32_t since = m->n_pushed - (m->end_claimed - m->claimed.len); // the first that is claimed
    return VOLT_RING_CAP - (m->claimed.len > 0 && since > used ? since : used);
}
static void ring_check(const ring_model *m) {
    CHECK_EQ(volt__ring_len(&m->ring), m->tasks.len);
    CHECK_EQ(volt__ring_n_claimed(&m->ring), m->claimed.len);
    CHECK_EQ(volt__ring_room(&m->ring), model_room(m));
    CHECK_EQ(volt__ring_is_stealable(&m->ring), m->taken == 0 && m->tasks.len > 0);
}
static void ring_start(ring_model *m, uint32_t index) {
    memset(m, 0, sizeof *m);
    m->ring.head = volt__head_make(index, 0);
    m->ring.tail = m->ring.limit = index & VOLT__RING_INDEX_MASK;
    ring_check(m);
}
static void ring_try_push(ring_model *m) {
    if (!idle.len) return;
    volt__task *t = fifo_pop(&idle);
    uint32_t room = model_room(m);
    CHECK_EQ(volt__ring_push(&m->ring, t), room > 0);
    fifo_push(room ? &m->tasks : &idle, t);
    m->n_pushed += room > 0;
}
// Solo is for a ring that no other thread can reach: no thief is at work, and nothing is claimed.
static void ring_try_pop_solo(ring_model *m) {
    volt__task *want = fifo_pop(&m->tasks);
    CHECK(volt__ring_pop_solo(&m->ring) == want);
    if (want) fifo_push(&idle, want);
}
static void ring_try_pop(ring_model *m) {
    m->ring.claim_more = (uint32_t)RANDOM_BELOW(VOLT_CLAIM_MAX);
    if (m->taken == 0 && m->claimed.len == 0 && RANDOM_BELOW(2)) {
        ring_try_pop_solo(m);
        return;
    }
    uint32_t n = m->claimed.len ? 0 : (m->tasks.len + 1) / 2;
    if (n > m->ring.claim_more + 1) n = m->ring.claim_more + 1;
    for (uint32_t i = 0; i < n; i++) fifo_push(&m->claimed, fifo_pop(&m->tasks));
    if (n) m->end_claimed = m->n_pushed - m->tasks.len;
    if (m->taken) m->popped += n;
    volt__task *want = fifo_pop(&m->claimed);
    CHECK(volt__ring_pop(&m->ring) == want);
    if (want) fifo_push(&idle, want);
}
static void ring_try_rescue(ring_model *m) {
    volt__chain c;
    volt__chain_init(&c);
    volt__ring_pop_claimed(&m->ring, &c);
    CHECK_EQ(c.len, m->claimed.len);
    for (volt__task *want; (want = fifo_pop(&m->claimed)) != NULL; fifo_push(&idle, want))
        CHECK(volt__chain_pop(&c) == want);
}
// Full and no thief: the newer half goes, in order; the older one stays, with what was claimed.
static void ring_try_overflow(ring_model *m) {
    volt__chain c;
    volt__chain_init(&c);
    int is_full = m->tasks.len + m->claimed.len == VOLT_RING_CAP && m->taken == 0;
    CHECK_EQ(volt__ring_overflow(&m->ring, &c), is_full);
    CHECK_EQ(c.len, is_full ? VOLT_RING_CAP / 2 : 0);
    if (!is_full) return;
    for (uint32_t i = 0; i < VOLT_RING_CAP; i++) {
        volt__task *t = m->claimed.len ? fifo_pop(&m->claimed) : fifo_pop(&m->tasks);
        if (i < VOLT_RING_CAP / 2) fifo_push(&m->tasks, t);
        else CHECK(volt__chain_pop(&c) == t), fifo_push(&idle, t);
    }
}
static uint32_t share_of(const ring_model *from, uint32_t room) {
    uint32_t half = (from->tasks.len + 1) / 2;
    if (from->taken) return 0; // another thief is at work
    if (room > VOLT_RING_CAP / 2) room = VOLT_RING_CAP / 2;
    return half < room ? half : room;
}
static void ring_try_steal(ring_model *from, ring_model *to) {
    uint32_t n = share_of(from, model_room(to));
    CHECK_EQ(volt__ring_steal(&from->ring, &to->ring), n);
    for (uint32_t i = 0; i < n; i++) fifo_push(&to->tasks, fifo_pop(&from->tasks));
    to->n_pushed += n;
}
// The first half of a steal, as volt__ring documents it: head moves, the distance says how far.
static void ring_claim(ring_model *m) {
    uint32_t n = share_of(m, VOLT_RING_CAP), index = volt__head_index(m->ring.head);
    if (!n) return;
    m->ring.head = volt__head_make(index + n, n);
    for (uint32_t i = 0; i < n; i++) {
        m->loot[i] = fifo_pop(&m->tasks);
        CHECK(m->ring.slot[(index + i) & (VOLT_RING_CAP - 1)] == m->loot[i]);
    }
    m->taken = n;
}
// The second half: until here nothing may have overwritten what was claimed.
static void ring_release(ring_model *m) {
    uint32_t start = volt__head_index(m->ring.head) - volt__head_distance(m->ring.head);
    CHECK_EQ(volt__head_distance(m->ring.head), m->taken ? m->taken + m->popped : 0);
    for (uint32_t i = 0; i < m->taken; i++) {
        CHECK(m->ring.slot[(start + i) & (VOLT_RING_CAP - 1)] == m->loot[i]);
        fifo_push(&idle, m->loot[i]);
    }
    m->taken = m->popped = 0;
    m->ring.head = volt__head_make(volt__head_index(m->ring.head), 0);
}
static void ring_step(ring_model *m, ring_model *other, unsigned dice) {
    if (dice < 9) ring_try_push(m);
    else if (dice < 13) ring_try_pop(m);
    else if (dice < 14 && RANDOM_BELOW(4)) ring_try_overflow(m);
    else if (dice < 14) ring_try_rescue(m);
    else if (dice < 15) ring_try_steal(m, other);
    else if (m->taken) ring_release(m);
    else if (RANDOM_BELOW(4) == 0) ring_claim(m);
}
static void ring_run(uint32_t index, int n_steps) {
    memset(&idle, 0, sizeof idle);
    for (int i = 0; i < RING_TASKS; i++) fifo_push(&idle, &ring_tasks[i]);
    for (int i = 0; i < 2; i++) ring_start(&rings[i], index);
    for (int k = 0; k < n_steps; k++) {
        int i = RANDOM_BELOW(4) == 0;
        // long runs of mostly pushes and of mostly pops: both ends are reached
        unsigned dice = (unsigned)RANDOM_BELOW(16), is_draining = k / 1000 % 3 == 2;
        ring_step(&rings[i], &rings[!i], is_draining && dice < 9 ? 9 : dice);
        ring_check(&rings[0]);
        ring_check(&rings[1]);
    }
    for (int i = 0; i < 2; i++) {
        ring_release(&rings[i]);
        while (rings[i].tasks.len + rings[i].claimed.len) ring_try_pop(&rings[i]);
        CHECK(volt__ring_pop(&rings[i].ring) == NULL);
    }
    CHECK_EQ(idle.len, RING_TASKS);
}

TEST(ring_is_fifo_under_any_order_of_operations) { ring_run(0, 1000000); }
TEST(ring_works_wherever_its_indices_wrap) {
    for (uint32_t back = 0; back <= 2 * VOLT_RING_CAP + 2; back += IS_SMALL ? 1 : 37)
        ring_run(VOLT__RING_INDEX_MASK - back, 6000);
}
TEST(ring_works_from_every_start_index) {
    for (uint32_t i = 0; i < 40; i++) ring_run(i * (VOLT__RING_INDEX_MASK / 40), 3000);
}
TEST(ring_head_keeps_index_and_distance_apart) {
    for (uint32_t back = 0; back < 70; back++)
        for (uint32_t distance = 0; distance <= VOLT_RING_CAP; distance++) {
            uint32_t index = (VOLT__RING_INDEX_MASK - 35 + back) & VOLT__RING_INDEX_MASK;
            uintptr_t head = volt__head_make(VOLT__RING_INDEX_MASK - 35 + back, distance);
            CHECK_EQ(volt__head_index(head), index);
            CHECK_EQ(volt__head_distance(head), distance);
        }
}

// ---- the ring with thieves

enum { MAX_THIEVES = 3, STRESS_TASKS = IS_SMALL ? 50000 : 400000 };
// t->wait counts how often a task was seen; t->spawn_ms is its number in its ring.
typedef struct party { // one thread with its ring
    volt__ring ring;
    uint32_t turn;     // odd while a steal of this thread's is in progress
    uint32_t moved;    // slots that the tail has moved since no steal was in progress
    uint32_t last;     // number of the last task popped
    uint32_t number;   // numbers given out
    volt__random random;
    VOLT__ALIGN(128) char pad;
} party;
static party parties[1 + MAX_THIEVES];
static int n_parties, is_chained;
static uint32_t n_seen, stress_over;
static volt__task *stress;

static uint32_t turn_of(party *p, uint32_t step) { // an rmw: each sees what the other did before
    return __atomic_fetch_add(&p->turn, step, __ATOMIC_ACQ_REL);
}
// An index of few bits comes back while a thief sleeps between reading head and its cas; the ring
// allows for 2^bits pops in that time and no more. So no tail goes round before all steals that
// were in progress have ended.
static void wait_for_steals(party *me) {
    for (int i = 0; i < n_parties; i++) {
        uint32_t turn = turn_of(&parties[i], 0);
        while (turn % 2 && turn_of(&parties[i], 0) == turn) sched_yield();
    }
    me->moved = 0;
}
// Before the tail moves by up to n; the caller adds the actual number.
static void may_move(party *me, uint32_t n) {
    if (VOLT_RING_INDEX_BITS < 20 && me->moved + n + VOLT_RING_CAP > VOLT__RING_INDEX_MASK)
        wait_for_steals(me);
}
static void see(volt__task *t) {
    CHECK_EQ(__atomic_fetch_add(&t->wait, 1, __ATOMIC_RELAXED), 0);
    __atomic_fetch_add(&n_seen, 1, __ATOMIC_RELAXED);
}
// In the order of their numbers: a ring is first in, first out, for its owner and for each thief.
static void pop_all(party *me, int most) {
    for (volt__task *t; most-- > 0 && (t = volt__ring_pop(&me->ring));) {
        if (!is_chained) {
            CHECK(t->spawn_ms > me->last);
            me->last = t->spawn_ms;
        }
        see(t);
    }
}
static void *thief_thread(void *arg) {
    party *me = arg;
    meet((uint32_t)n_parties);
    while (!__atomic_load_n(&stress_over, __ATOMIC_ACQUIRE)) {
        uint32_t victim = is_chained ? volt__random_below(&me->random, (uint32_t)n_parties) : 0;
        if (&parties[victim] == me) continue;
        may_move(me, VOLT_RING_CAP / 2);
        turn_of(me, 1);
        uint32_t n = volt__ring_steal(&parties[victim].ring, &me->ring);
        turn_of(me, 1);
        me->moved += n;
        if (!n) sched_yield();
        pop_all(me, is_chained ? 2 : VOLT_RING_CAP);
    }
    pop_all(me, VOLT_RING_CAP);
    return NULL;
}
static void owner_push(party *me, volt__task *t, volt__chain *spilled) {
    may_move(me, 1);
    t->spawn_ms = ++me->number; // plain, as all of a task is: handed over by the ring
    while (!volt__ring_push(&me->ring, t)) {
        may_move(me, VOLT_RING_CAP);
        if (volt__ring_overflow(&me->ring, spilled)) me->moved += VOLT_RING_CAP;
        else sched_yield();
    }
    me->moved++;
}
static void owner_run(party *me) {
    volt__chain spilled;
    volt__chain_init(&spilled);
    meet((uint32_t)n_parties);
    for (int i = 0; i < STRESS_TASKS;) {
        uint32_t n = volt__random_below(&me->random, 2 * VOLT_RING_CAP);
        for (; n > 0 && i < STRESS_TASKS; n--) {
            volt__task *t = spilled.len > 8 ? volt__chain_pop(&spilled) : &stress[i++];
            owner_push(me, t, &spilled);
        }
        pop_all(me, (int)volt__random_below(&me->random, 2 * VOLT_RING_CAP));
    }
    for (volt__task *t; (t = volt__chain_pop(&spilled));) owner_push(me, t, &spilled);
    pop_all(me, VOLT_RING_CAP);
}
static void run_stress(int n_thieves, int chained) {
    pthread_t t[MAX_THIEVES];
    void *args[MAX_THIEVES];
    memset(parties, 0, sizeof parties);
    memset(stress, 0, STRESS_TASKS * sizeof *stress);
    n_seen = stress_over = n_met = 0;
    n_parties = 1 + n_thieves;
    is_chained = chained;
    for (int i = 0; i < n_parties; i++) {
        parties[i].ring.tail = VOLT__RING_INDEX_MASK - (IS_SMALL ? 5 : 5000); // wraps soon
        parties[i].ring.limit = parties[i].ring.tail;
        parties[i].ring.head = volt__head_make(parties[i].ring.tail, 0);
        volt__random_seed(&parties[i].random, RANDOM(), (uint32_t)i);
        if (i > 0) args[i - 1] = &parties[i];
    }
    start_threads(t, n_thieves, thief_thread, args);
    owner_run(&parties[0]);
    UNTIL(__atomic_load_n(&n_seen, __ATOMIC_RELAXED) == STRESS_TASKS);
    __atomic_store_n(&stress_over, 1, __ATOMIC_RELEASE);
    join_threads(t, n_thieves);
    for (int i = 0; i < STRESS_TASKS; i++) CHECK_EQ(stress[i].wait, 1);
}
static void ring_stress(int n_thieves) {
    stress = malloc(STRESS_TASKS * sizeof *stress);
    CHECK(stress);
    for (int chained = 0; chained < 2; chained++) run_stress(n_thieves, chained);
    free(stress);
}
TEST(ring_gives_each_task_once_with_one_thief) { ring_stress(1); }
TEST(ring_gives_each_task_once_with_two_thieves) { ring_stress(2); }
TEST(ring_gives_each_task_once_with_three_thieves) { ring_stress(3); }

// ---- injector

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void injector_check(const volt__injector *q, const fifo *model, uint64_t n_spawned) {
    CHECK_EQ(q->len, model->len);
    CHECK_EQ(volt__injector_is_empty(q), model->len == 0);
    CHECK_EQ(q->spawned, n_spawned);
}
static void injector_try_pop(volt__injector *q, fifo *model, fifo *out) {
    volt__chain c;
    volt__chain_init(&c);
    uint32_t workers = 1 + (uint32_t)RANDOM_BELOW(9), room = (uint32_t)RANDOM_BELOW(100);
    uint32_t share = least(least(model->len / workers + 1, room), VOLT_INJECT_BATCH);
    share = least(share, model->len);
    CHECK_EQ(volt__injector_pop(q, workers, room, &c), share);
    CHECK_EQ(c.len, share);
    for (uint32_t i = 0; i < share; i++) {
        volt__task *t = volt__chain_pop(&c);
        CHECK(t == fifo_pop(model));
        fifo_push(out, t);
    }
}
static int injector_try_spawn(volt__injector *q, fifo *model, fifo *from) {
    volt__task *t = from->len && RANDOM_BELOW(8) ? fifo_pop(from) : NULL; // none: is only counted
    int ok = volt__injector_spawn(q, t);
    CHECK_EQ(ok, !q->closed);
    if (t) fifo_push(ok ? model : from, t);
    return ok;
}
TEST(injector_is_fifo_and_hands_out_fair_shares) {
    static volt__task t[3000];
    static fifo model, out;
    static volt__injector q;
    uint64_t n_spawned = 0;
    for (int i = 0; i < 3000; i++) fifo_push(&out, &t[i]);
    for (int k = 0; k < 300000; k++) {
        volt__chain c;
        volt__chain more;
        uint64_t dice = RANDOM_BELOW(10);
        if (dice < 3) {
            random_pick(&out, &c, k / 1000 % 2 ? 20 : 3);
            more = c;
            volt__injector_push(&q, &c); // also once closed: a wake-up cannot fail
            for (volt__task *v = more.head; more.len--; v = v->next) fifo_push(&model, v);
        } else if (dice < 5) {
            n_spawned += (uint64_t)injector_try_spawn(&q, &model, &out);
        } else {
            injector_try_pop(&q, &model, &out);
        }
        if (k % 5000 == 0) q.closed = !q.closed;
        injector_check(&q, &model, n_spawned);
    }
}

enum { PRODUCERS = 2, CONSUMERS = 2, PER_PRODUCER = 200000 };
static volt__injector injector;
static volt__task injected[PRODUCERS * PER_PRODUCER];
static uint32_t n_pushed[PRODUCERS]; // release: a reader of it must not find "empty" falsely
static uint32_t n_popped;

static void *producer_thread(void *arg) {
    uint32_t me = (uint32_t)(uintptr_t)arg;
    meet(PRODUCERS + CONSUMERS);
    for (uint32_t i = 0; i < PER_PRODUCER;) {
        volt__chain c;
        volt__chain_init(&c);
        for (uint32_t n = 1 + i % 3; n > 0 && i < PER_PRODUCER; n--, i++) {
            volt__task *t = &injected[me * PER_PRODUCER + i];
            t->spawn_ms = i;
            volt__chain_push(&c, t);
        }
        volt__injector_push(&injector, &c);
        __atomic_store_n(&n_pushed[me], i, __ATOMIC_RELEASE);
    }
    return NULL;
}
static void take_injected(volt__task *t, uint32_t *next) {
    uint32_t from = (uint32_t)((t - injected) / PER_PRODUCER);
    CHECK(t->spawn_ms >= next[from]); // in the order of each producer
    next[from] = t->spawn_ms + 1;
    CHECK_EQ(__atomic_fetch_add(&t->wait, 1, __ATOMIC_RELAXED), 0);
}
static void *consumer_thread(void *arg) {
    uint32_t next[PRODUCERS] = { 0 };
    (void)arg;
    meet(PRODUCERS + CONSUMERS);
    while (__atomic_load_n(&n_popped, __ATOMIC_ACQUIRE) < PRODUCERS * PER_PRODUCER) {
        uint32_t popped = __atomic_load_n(&n_popped, __ATOMIC_ACQUIRE), pushed = 0;
        for (int i = 0; i < PRODUCERS; i++)
            pushed += __atomic_load_n(&n_pushed[i], __ATOMIC_ACQUIRE);
        int is_empty = volt__injector_is_empty(&injector);
        // tasks pushed earlier, and not taken since by any thread, cannot be overlooked
        if (is_empty && pushed > popped)
            UNTIL(__atomic_load_n(&n_popped, __ATOMIC_ACQUIRE) >= pushed);
        volt__chain c;
        volt__chain_init(&c);
        uint32_t n = volt__injector_pop(&injector, CONSUMERS, 3, &c);
        for (volt__task *t; (t = volt__chain_pop(&c));) take_injected(t, next);
        __atomic_fetch_add(&n_popped, n, __ATOMIC_RELEASE);
        if (!n) sched_yield();
    }
    return NULL;
}
TEST(injector_gives_each_task_once_in_order_of_its_producer) {
    pthread_t t[PRODUCERS + CONSUMERS];
    void *args[PRODUCERS] = { (void *)0, (void *)1 };
    start_threads(t, PRODUCERS, producer_thread, args);
    start_threads(t + PRODUCERS, CONSUMERS, consumer_thread, args);
    join_threads(t, PRODUCERS + CONSUMERS);
    CHECK(volt__injector_is_empty(&injector) && !injector.head && !injector.tail);
    for (int i = 0; i < PRODUCERS * PER_PRODUCER; i++) CHECK_EQ(injected[i].wait, 1);
}

// ---- spill: a row of batches

enum { SPILL_TASKS = 1000 };
typedef struct spill_model {
    volt__overflow spill;
    volt__task *at[SPILL_TASKS]; // the oldest first
    uint32_t len, n, batch[VOLT_OVERFLOW_CAP + 1];
} spill_model;
static void spill_try_push(spill_model *m, fifo *rest) {
    volt__chain c;
    if (!random_pick(rest, &c, 6)) return;
    m->batch[m->n++] = c.len;
    for (volt__task *t = c.head; t; t = t->next) m->at[m->len++] = t;
    if (m->n > VOLT_OVERFLOW_CAP) { // the two oldest become one
        m->batch[1] += m->batch[0];
        memmove(&m->batch[0], &m->batch[1], --m->n * sizeof m->batch[0]);
    }
    volt__overflow_push(&m->spill, &c);
}
// The first `got` of c are what stands in the model from `from` on.
static void spill_take(spill_model *m, volt__chain *c, uint32_t from, uint32_t got, fifo *rest) {
    CHECK_EQ(c->len, got);
    for (uint32_t i = from; i < from + got; i++) {
        CHECK(volt__chain_pop(c) == m->at[i]);
        fifo_push(rest, m->at[i]);
    }
    m->len -= got;
    memmove(&m->at[from], &m->at[from + got], (m->len - from) * sizeof m->at[0]);
}
static void spill_try_pop(spill_model *m, volt__overflow_end end, fifo *rest) {
    volt__chain c;
    volt__chain_init(&c);
    uint32_t most = (uint32_t)RANDOM_BELOW(8), k = end == VOLT__NEWEST && m->n ? m->n - 1 : 0;
    uint32_t want = m->n ? least(most, m->batch[k]) : 0;
    uint32_t from = end == VOLT__NEWEST && m->n ? m->len - m->batch[k] : 0;
    CHECK_EQ(volt__overflow_pop(&m->spill, end, most, &c), want);
    spill_take(m, &c, from, want, rest);
    if (!m->n) return;
    m->batch[k] -= want;
    if (m->batch[k]) return;
    memmove(&m->batch[k], &m->batch[k + 1], (--m->n - k) * sizeof m->batch[0]);
}
static void spill_try_take_all(spill_model *m, fifo *rest) {
    volt__chain c;
    volt__chain_init(&c);
    volt__overflow_pop_all(&m->spill, &c);
    spill_take(m, &c, 0, m->len, rest);
    m->n = 0;
}
TEST(overflow_queue_pops_from_newest_or_oldest_batch) {
    static volt__task t[SPILL_TASKS];
    static fifo rest;
    static spill_model m;
    for (int i = 0; i < SPILL_TASKS; i++) fifo_push(&rest, &t[i]);
    m.spill.oldest = UINT32_MAX - 3; // wraps soon
    uint32_t most = 0;
    for (int k = 0; k < 30000; k++) {
        uint64_t dice = RANDOM_BELOW(100);
        if (dice < (k / 1000 % 2 ? 60 : 40)) spill_try_push(&m, &rest);
        else if (dice < 99) spill_try_pop(&m, dice % 2 ? VOLT__NEWEST : VOLT__OLDEST, &rest);
        else if (k % 3 == 0) spill_try_take_all(&m, &rest);
        most = m.n > most ? m.n : most;
        CHECK(m.spill.n == m.n && m.spill.len == m.len);
        CHECK_EQ(volt__overflow_is_empty(&m.spill), m.len == 0);
    }
    CHECK_EQ(most, VOLT_OVERFLOW_CAP);
}

// ---- heaps: classes

TEST(size_class_is_the_smallest_that_fits_and_wastes_little) {
    uint32_t before = 0;
    for (uint32_t size = 1; size <= VOLT_SLAB_SIZE / 8; size++) {
        uint32_t cls = volt__class_of(size), slot = volt__class_size(cls);
        CHECK(cls < VOLT__CLASSES && cls >= before);
        CHECK(slot >= size && slot % 16 == 0);
        CHECK(cls == 0 || volt__class_size(cls - 1) < size); // the smallest that fits
        CHECK(size <= 128 ? slot - size < 16 : 4 * slot < 5 * size); // a quarter at most
        before = cls;
    }
    CHECK_EQ(before, VOLT__CLASSES - 1);
}

// ---- heaps: a hook that counts, fails when told, and hates to be called under a lock

static struct hook {
    volt__slabs slabs;
    volt__heap heap;
    size_t n_blocks, n_bytes;   // given and not yet taken back; relaxed
    int64_t fail_at;            // calls until one fails; < 0: never
    int has_walker;             // another thread may hold slabs.lock at any time
    int is_shared;              // heap.lock may be held at any time
} hook;

static void check_unlocked(const struct hook *h) {
    CHECK(h->has_walker || h->slabs.lock == 0);
    CHECK(h->is_shared || h->heap.lock == 0);
}
static void *hook_alloc(void *user, size_t size, size_t align) {
    struct hook *h = user;
    void *p = NULL;
    check_unlocked(h);
    CHECK((align & (align - 1)) == 0);
    if (h->fail_at >= 0 && h->fail_at-- == 0) return NULL;
    CHECK_EQ(posix_memalign(&p, align, size), 0);
    memset(p, 0xa5, size); // a user that needs zeroes must write them
    __atomic_fetch_add(&h->n_blocks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&h->n_bytes, size, __ATOMIC_RELAXED);
    return p;
}
static void hook_free(void *user, void *block, size_t size) {
    struct hook *h = user;
    check_unlocked(h);
    __atomic_fetch_sub(&h->n_blocks, 1, __ATOMIC_RELAXED);
    CHECK(__atomic_fetch_sub(&h->n_bytes, size, __ATOMIC_RELAXED) >= size);
    memset(block, 0x5a, size);
    free(block);
}
static void hook_start(void) {
    memset(&hook, 0, sizeof hook);
    hook.fail_at = -1;
    hook.slabs.alloc.alloc = hook_alloc;
    hook.slabs.alloc.free = hook_free;
    hook.slabs.alloc.user = &hook;
    volt__heap_init(&hook.heap, &hook.slabs);
}
static void hook_end(void) {
    volt__slabs_destroy(&hook.slabs);
    CHECK_EQ(hook.n_blocks, 0);
    CHECK_EQ(hook.n_bytes, 0);
}

// ---- heaps: random patterns against a shadow map

enum { MAX_LIVE = 4000 };
typedef struct shadow {
    volt__task *task[MAX_LIVE];
    size_t size[MAX_LIVE];
    unsigned char fill[MAX_LIVE];
    int n;
} shadow;
static shadow live;

// All but the word, which belongs to the heap's walkers.
static unsigned char *body_of(volt__task *t) { return (unsigned char *)t + sizeof t->word; }
static void check_body(volt__task *t, size_t size, unsigned char fill) {
    unsigned char *p = body_of(t);
    size -= sizeof t->word;
    CHECK(p[0] == fill && p[size - 1] == fill && memcmp(p, p + 1, size - 1) == 0);
}
static void check_place(const volt__task *t, size_t size) {
    volt__slab *s = volt__slab_of(t);
    CHECK((uintptr_t)t % 16 == 0);
    const char *at = (const char *)t, *slab = (const char *)s;
    CHECK(at >= slab + VOLT__SLAB_HEAD && at + size <= slab + s->bytes);
    CHECK(s->heap == &hook.heap && s->slot_size >= size);
    CHECK(((uintptr_t)t - (uintptr_t)s - VOLT__SLAB_HEAD) % s->slot_size == 0);
}
static int shadow_alloc(shadow *m, size_t size) {
    volt__task *t = volt__heap_alloc(&hook.heap, size, 0);
    if (!t) return 0;
    check_place(t, size);
    CHECK(t->word < VOLT__REF); // free for walkers until a task owns it
    unsigned char fill = (unsigned char)(1 + RANDOM_BELOW(255));
    memset(body_of(t), fill, size - sizeof t->word); // an overlap shows when the other is freed
    m->task[m->n] = t;
    m->size[m->n] = size;
    m->fill[m->n++] = fill;
    return 1;
}
static volt__task *shadow_take(shadow *m, int i) {
    volt__task *t = m->task[i];
    check_body(t, m->size[i], m->fill[i]);
    m->n--;
    m->task[i] = m->task[m->n];
    m->size[i] = m->size[m->n];
    m->fill[i] = m->fill[m->n];
    return t;
}
static void free_any(volt__task *t) {
    if (RANDOM_BELOW(4)) volt__heap_free_local(&hook.heap, t);
    else volt__heap_free_remote(t);
}
static size_t random_size(void) {
    uint64_t dice = RANDOM_BELOW(100);
    if (dice < 70) return 64 + (size_t)RANDOM_BELOW(200);
    if (dice < 98) return 64 + (size_t)RANDOM_BELOW(VOLT_SLAB_SIZE / 8 - 63);
    return VOLT_SLAB_SIZE / 8 + 1 + (size_t)RANDOM_BELOW(3 * VOLT_SLAB_SIZE);
}
static void trim(void) { volt__slabs_reap(volt__heap_trim(&hook.heap)); }
// Once for what was needed since the last trim, once for what is needed now.
static void heap_trim_all(void) {
    for (int i = 0; i < 2; i++) trim();
}
static void shadow_end(shadow *m) {
    while (m->n) free_any(shadow_take(m, (int)RANDOM_BELOW(m->n)));
    volt__heap_drain(&hook.heap);
    heap_trim_all();
    CHECK(hook.n_blocks <= VOLT__CLASSES); // at most the current slab of each class is kept
    for (volt__slab *s = hook.slabs.first; s; s = s->all_next) CHECK_EQ(slab_used(s), 0);
}
TEST(heap_slots_do_not_overlap_and_keep_their_content) {
    hook_start();
    for (int k = 0; k < 200000; k++) {
        int limit = 1 + (k / 5000 % 4) * (MAX_LIVE / 4 - 1); // waves: slabs come and go
        if (live.n < limit) CHECK(shadow_alloc(&live, random_size()));
        else free_any(shadow_take(&live, (int)RANDOM_BELOW(live.n)));
        if (k % 1000 == 0) volt__heap_drain(&hook.heap);
        if (k % 2000 == 0) trim();
    }
    shadow_end(&live);
    hook_end();
}
TEST(slab_is_filled_to_its_last_slot_and_reused) {
    for (uint32_t cls = 3; cls < VOLT__CLASSES; cls++) {
        uint32_t size = volt__class_size(cls), cap = (VOLT_SLAB_SIZE - VOLT__SLAB_HEAD) / size;
        hook_start();
        for (int round = 0; round < 3; round++) {
            for (uint32_t i = 0; i < 3 * cap; i++) CHECK(shadow_alloc(&live, size));
            CHECK_EQ(hook.n_blocks, 3);
            while (live.n) volt__heap_free_local(&hook.heap, shadow_take(&live, live.n / 2));
            CHECK_EQ(hook.n_blocks, 3); // the next round needs them again
            trim();
            CHECK_EQ(hook.n_blocks, 3); // they were needed since the last trim
            if (round == 1) trim();
            CHECK_EQ(hook.n_blocks, round == 1 ? 1 : 3);
        }
        hook_end();
    }
}
// Tasks made one after the other share no cache lines, while they are few; and all have a slot.
TEST(first_slots_of_slab_lie_apart) {
    for (uint32_t cls = 3; cls < VOLT__CLASSES; cls++) {
        uint32_t size = volt__class_size(cls), cap = (VOLT_SLAB_SIZE - VOLT__SLAB_HEAD) / size;
        hook_start();
        for (uint32_t i = 0; i < 16 && i < cap; i++) {
            CHECK(shadow_alloc(&live, size));
            volt__task *t = live.task[i];
            volt__slab *s = volt__slab_of(t);
            CHECK(volt__slab_slot(s, i) == t);
            CHECK_EQ(volt__slab_shuffle(s, volt__slab_shuffle(s, i)), i);
            if (i == 0 || cap < 16) continue;
            const char *a = (const char *)live.task[i - 1], *b = (const char *)t;
            CHECK((size_t)(a < b ? b - a : a - b) >= size * 7);
        }
        shadow_end(&live);
        hook_end();
    }
}
TEST(large_object_has_its_own_memory_and_frees_it_at_once) {
    hook_start();
    for (size_t size = VOLT_SLAB_SIZE / 8 + 1; size < 40 * VOLT_SLAB_SIZE; size = size * 3 / 2) {
        CHECK(shadow_alloc(&live, size));
        CHECK_EQ(hook.n_blocks, 1);
        CHECK(hook.n_bytes < size + VOLT__SLAB_HEAD + 16);
        volt__heap_free_local(&hook.heap, shadow_take(&live, 0));
        CHECK_EQ(hook.n_blocks, 0);
    }
    // refused, not cut short
    CHECK(volt__heap_alloc(&hook.heap, (size_t)UINT32_MAX / 2 + 1, 0) == NULL);
    CHECK_EQ(hook.n_blocks, 0);
    hook_end();
}
// Empty slabs are kept up to the most that were in use since the last trim, no more.
TEST(heap_trim_keeps_slabs_used_since_last_trim) {
    uint32_t size = 1024, cap = (VOLT_SLAB_SIZE - VOLT__SLAB_HEAD) / size;
    hook_start();
    for (uint32_t i = 0; i < 5 * cap; i++) CHECK(shadow_alloc(&live, size));
    while (live.n > (int)cap) volt__heap_free_local(&hook.heap, shadow_take(&live, live.n - 1));
    trim();
    uint64_t kept = hook.n_blocks;
    CHECK_EQ(kept, 5);
    for (uint32_t i = 0; i < 2 * cap; i++) CHECK(shadow_alloc(&live, size));
    CHECK_EQ(hook.n_blocks, kept); // from what was kept
    while (live.n > (int)cap) volt__heap_free_local(&hook.heap, shadow_take(&live, live.n - 1));
    trim();
    CHECK_EQ(hook.n_blocks, 3); // three were the most
    shadow_end(&live);
    hook_end();
}
TEST(slabs_destroy_frees_slabs_that_are_in_use) {
    hook_start();
    for (int i = 0; i < 1000; i++) CHECK(shadow_alloc(&live, random_size()));
    live.n = 0;
    hook_end();
}
TEST(sys_map_gives_aligned_and_zeroed_pages) {
    for (size_t align = 4096; align <= 16 * VOLT_SLAB_SIZE; align *= 4)
        for (size_t size = 1; size < 5 * VOLT_SLAB_SIZE; size = size * 3 + 1000) {
            char *p[3]; // several at once: whatever lies between must not be cut off
            for (int i = 0; i < 3; i++) {
                p[i] = volt__sys_map(NULL, size, align);
                CHECK(p[i] && (uintptr_t)p[i] % align == 0);
                CHECK(p[i][0] == 0 && p[i][size - 1] == 0);
                memset(p[i], i + 1, size);
            }
            for (int i = 0; i < 3; i++) CHECK(p[i][0] == i + 1 && p[i][size - 1] == i + 1);
            for (int i = 0; i < 3; i++) volt__sys_unmap(NULL, p[i], size);
        }
}

// ---- heaps: out of memory, once at every call of the hook

static int allocate_until_failure(void) {
    int n_failed = 0;
    for (int i = 0; i < 300; i++) {
        int64_t left = hook.fail_at;
        int ok = shadow_alloc(&live, 64 + (size_t)i * 74 % (VOLT_SLAB_SIZE / 4));
        CHECK_EQ(ok, left < 0 || hook.fail_at >= 0); // fails iff the hook failed
        n_failed += !ok;
        if (i % 3 == 0 && live.n) free_any(shadow_take(&live, (int)RANDOM_BELOW(live.n)));
    }
    return n_failed;
}
TEST(heap_allocation_that_fails_harms_no_other) {
    int k = 0;
    for (int n_failed = 1; n_failed; k++) {
        hook_start();
        hook.fail_at = k;
        n_failed = allocate_until_failure();
        CHECK(n_failed <= 1);
        shadow_end(&live);
        hook_end();
    }
    CHECK(k > 50); // the number of calls until none failed
}

// ---- heaps: tasks freed by other threads, and a walker

enum { FREERS = 2, FREED = 150000, SLOTS = 64 };
static volt__task *handed[FREERS][SLOTS]; // NULL: taken
static uint32_t frees_over;

static int free_handed(volt__task **slots) {
    int n = 0;
    for (int i = 0; i < SLOTS; i++) {
        volt__task *t = __atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQUIRE);
        if (!t) continue;
        check_body(t, volt__slab_of(t)->slot_size, body_of(t)[0]);
        volt__heap_free_remote(t);
        n++;
    }
    return n;
}
static void *freeing_thread(void *arg) {
    meet(FREERS + 1);
    for (;;) {
        int is_over = (int)__atomic_load_n(&frees_over, __ATOMIC_ACQUIRE);
        if (free_handed(arg)) continue;
        if (is_over) return NULL;
        sched_yield();
    }
}
static void hand_over(int i) {
    uint32_t size = volt__class_size(3 + (uint32_t)i % 7);
    volt__task *t = volt__heap_alloc(&hook.heap, size, 0);
    CHECK(t);
    memset(body_of(t), 1 + i % 255, size - sizeof t->word);
    volt__task **slot = &handed[i % FREERS][i / FREERS % SLOTS];
    t = __atomic_exchange_n(slot, t, __ATOMIC_ACQ_REL);
    if (t) volt__heap_free_local(&hook.heap, t); // the last one was not fetched
}
TEST(slot_freed_by_another_thread_returns_to_its_heap) {
    pthread_t t[FREERS];
    void *args[FREERS] = { handed[0], handed[1] };
    hook_start();
    start_threads(t, FREERS, freeing_thread, args);
    meet(FREERS + 1);
    for (int i = 0; i < FREED; i++) {
        hand_over(i);
        if (i % 100 == 0) volt__heap_drain(&hook.heap);
        if (i % 1000 == 0) trim();
    }
    __atomic_store_n(&frees_over, 1, __ATOMIC_RELEASE);
    join_threads(t, FREERS);
    shadow_end(&live);
    hook_end();
}

// ---- heaps: one that all foreign threads share

TEST(shared_heap_calls_hooks_unlocked_and_survives_failure) {
    int k = 0;
    for (int n_failed = 1; n_failed; k++) {
        hook_start();
        hook.fail_at = k;
        n_failed = 0;
        for (int i = 0; i < 100; i++) {
            size_t size = 64 + (size_t)i * 300;
            volt__task *t = volt__heap_alloc(&hook.heap, size, 1);
            CHECK(t || hook.fail_at < 0);
            n_failed += !t;
            if (t) check_place(t, size), volt__heap_free_remote(t);
        }
        CHECK(n_failed <= 1);
        shadow_end(&live);
        hook_end();
    }
    CHECK(k > 50);
}

enum { SHARERS = 3, SHARED_ROUNDS = 40000, SHARED_LIVE = 50 };
static void *sharing_thread(void *arg) {
    volt__task *mine[SHARED_LIVE] = { NULL };
    unsigned char fill = (unsigned char)(1 + *(int *)arg);
    volt__random r;
    volt__random_seed(&r, RANDOM(), fill);
    meet(SHARERS);
    for (int i = 0; i < SHARED_ROUNDS + SHARED_LIVE; i++) { // the last round only frees
        uint32_t k = i < SHARED_ROUNDS ? volt__random_below(&r, SHARED_LIVE)
                                       : (uint32_t)(i - SHARED_ROUNDS);
        if (mine[k]) {
            check_body(mine[k], volt__slab_of(mine[k])->slot_size, fill);
            volt__heap_free_remote(mine[k]);
            mine[k] = NULL;
        } else if (i < SHARED_ROUNDS) {
            if (i % 500 == 0) volt__heap_trim_shared(&hook.heap);
            mine[k] = volt__heap_alloc(&hook.heap, 64 + volt__random_below(&r, 4000), 1);
            CHECK(mine[k]);
            size_t size = volt__slab_of(mine[k])->slot_size - sizeof mine[k]->word;
            memset(body_of(mine[k]), fill, size);
        }
    }
    return NULL;
}
TEST(shared_heap_gives_no_slot_to_two_threads) {
    pthread_t t[SHARERS];
    int id[SHARERS] = { 0, 1, 2 };
    void *args[SHARERS] = { &id[0], &id[1], &id[2] };
    hook_start();
    hook.is_shared = hook.has_walker = 1; // others hold the locks at any time
    start_threads(t, SHARERS, sharing_thread, args);
    join_threads(t, SHARERS);
    shadow_end(&live);
    hook_end();
}

enum { LASTING = 40, PASSING = 400, WALKS_AT_LEAST = 5000 };
typedef struct walk {
    volt__task *found[LASTING + PASSING];
    int n, n_lasting, n_walks;
} walk;
static uint32_t walk_over, walks_done;

static int64_t mark_of(const volt__task *t) { return (int64_t)(uintptr_t)t ^ 0x5bd1e995; }
static void found_one(void *arg, volt__task *t) {
    walk *w = arg;
    if (!volt__task_try_retain(t)) return;
    CHECK(w->n < LASTING + PASSING);
    CHECK_EQ(t->u.result, mark_of(t)); // plain: only what is a task's own by now may be read
    w->n_lasting += (int)t->spawn_ms & 1;
    w->found[w->n++] = t;
}
static void *walking_thread(void *arg) {
    walk *w = arg;
    while (!__atomic_load_n(&walk_over, __ATOMIC_ACQUIRE)) {
        w->n = w->n_lasting = 0;
        volt__slabs_walk(&hook.slabs, found_one, w);
        CHECK_EQ(w->n_lasting, LASTING); // each lasting task is found every time
        for (int i = 0; i < w->n; i++)
            if (volt__task_release(w->found[i])) volt__heap_free_remote(w->found[i]);
        __atomic_fetch_add(&walks_done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static volt__task *live_task(size_t size, uint32_t is_lasting) {
    volt__task *t = volt__heap_alloc(&hook.heap, size, 0);
    CHECK(t && volt__load_acq(&t->word) < VOLT__REF);
    t->u.result = mark_of(t);
    t->spawn_ms = is_lasting;
    volt__store_rel(&t->word, VOLT__REF); // as a spawn publishes it
    return t;
}
static void end_task(volt__task *t) {
    if (!volt__task_release(t)) return; // the walker holds it and will free it
    t->u.result = 0;
    volt__heap_free_local(&hook.heap, t);
}
TEST(walker_meets_every_live_task_and_no_other) {
    static walk w;
    static volt__task *lasting[LASTING], *passing[PASSING];
    void *args[1] = { &w };
    pthread_t t;
    hook_start();
    hook.has_walker = 1;
    for (int i = 0; i < LASTING; i++) lasting[i] = live_task(64 + (size_t)i * 100, 1);
    start_threads(&t, 1, walking_thread, args);
    for (uint32_t k = 0; k < 30000 || volt__load_rlx(&walks_done) < WALKS_AT_LEAST; k++) {
        // big ones mostly: slabs come and go under the walker
        size_t i = (size_t)RANDOM_BELOW(PASSING);
        if (k % 100 == 0) volt__heap_drain(&hook.heap), trim();
        if (passing[i]) end_task(passing[i]), passing[i] = NULL;
        else passing[i] = live_task(64 + (size_t)RANDOM_BELOW(VOLT_SLAB_SIZE / 6), 0);
    }
    __atomic_store_n(&walk_over, 1, __ATOMIC_RELEASE);
    join_threads(&t, 1);
    for (int i = 0; i < LASTING; i++) end_task(lasting[i]);
    for (int i = 0; i < PASSING; i++)
        if (passing[i]) end_task(passing[i]);
    shadow_end(&live);
    hook_end();
}
