// SPDX-License-Identifier: MIT OR 0BSD
// The brackets around an await (within, unless, shields, select, joins), exhaustively: every
// expression of at most three of them (of two where a run is slow), around leaves that wait, struck
// by all their events in every order, also by several between two polls. The expected outcome comes
// from a second interpreter of such expressions, `rule`, which knows neither frames nor levels: it
// walks up from a wait and asks whether what it meets cancels it or shields it.
//
// One of the brackets is a sequence: two awaits in one frame, the second after the first ended with
// whatever it did. Expressions that have one may be larger by one bracket where they have few
// events. How they are written is chosen too, where it makes a difference: whether the second await
// uses the memory of the first, whether nested shields share a frame, which of them is closed, arms
// or arrays, which arm a select begins with.
//
// After every batch of events the two must agree about each node of the expression: whether it has
// ended, with what, and how many nodes the task has linked. At the end everything has ended.
//   make build/test_brackets && build/test_brackets
#define VOLT_IMPLEMENTATION
#define VOLT_NOW_NS() test_clock
static __INT64_TYPE__ test_clock = 1000000000;
#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- expressions

typedef enum kind {
    LEAF,    // waits for its event
    CHILD,   // an async function around one; has an error of its own for all errors
    WITHIN,  // event: its time is up
    UNLESS,  // event: its token is cancelled
    SHIELD,
    BOUNDED, // a shield; event: its bound is over
    CLEANUP, // after an error it waits for its event under a shield
    THEN,    // from here on: two operands. One await after the other, in one frame
    SELECT,
    JOIN,
    TRY_JOIN,
    ANY,     // volt_join_any over an array of two
    N_KINDS
} kind;
#ifdef __OPTIMIZE__
enum { MAX_BRACKETS = TEST__IS_SANITIZED ? 2 : 3 };
#else // smaller, as all that is slow
enum { MAX_BRACKETS = 2 };
#endif
enum { MAX_OF_SEQUENCE = MAX_BRACKETS + 1, MAX_EVENTS_OF_SEQUENCE = 5 };
enum { MAX_NODES = 2 * MAX_OF_SEQUENCE + 1, CANCEL = 0, MAX_EVENTS = MAX_NODES + 1 };
enum { NONE = -1 };

typedef struct node node;
typedef struct element {
    volt_frame frame;
    node *node;
    int64_t rc;
} element;
// The memory for one bracket; operands of a sequence may have it in turn.
typedef struct memory {
    volt_frame frame;
    node *at; // of those that share a frame: what is awaited
    int is_cleaning;
    int64_t rc;
    volt_timer timer;
    volt_token_link link;
    volt_shield shield;
    volt_arm arm[2];
    element element[2];
} memory;
struct node {
    kind kind;
    node *up, *operand[2];
    int event; // number; NONE: has none
    volt_token token; // of a leaf: set when what it waits for has come
    memory *m;
    struct { // the results so far, and those that the rules demand
        int is_started, is_over, winner, first, is_armed, is_tried, is_cleaning;
        int64_t value;
    } real, rule;
};
typedef struct heir {
    int first, end; // nodes whose memory is free again
    unsigned given; // a bit for each of all nodes
} heir;
typedef struct world {
    int n_nodes, n_events, n_of[N_KINDS], is_cancelled;
    int has_one_memory, has_one_frame, is_left_open, is_array, is_biased;
    volt__random random; // as the worker's: which arm a select begins with
    node nodes[MAX_NODES];
    memory memory[MAX_NODES];
    int n_memory;
    heir heir;
    int batch_of[MAX_EVENTS], n_batches, batch; // batch: the one that has struck, from 1
    int n_changes;
} world;
static world x;

static int has_happened(const node *n) { return x.batch_of[n->event] <= x.batch; }
static volt_time when(const node *n) {
    return test_clock + (x.batch_of[n->event] - x.batch) * VOLT_S(1);
}

// ---- the expression, run by volt

static volt_poll run(volt_cx *cx, node *n);
static void is_over(node *n, int64_t value) {
    CHECK(!n->real.is_over);
    n->real.is_over = 1;
    n->real.value = value;
}
static volt_poll run_element(volt_cx *cx, void *arg) {
    element *e = arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->rc, run(cx, e->node));
    VOLT_END(e->rc);
}

// Shields, cleanups and sequences are functions. One inside the other, they may be one function.
static int is_function(const node *n) { return n->kind >= SHIELD && n->kind <= THEN; }
static int is_shield(const node *n) { return n->kind == SHIELD || n->kind == BOUNDED; }
static int is_inlined(const node *n) { return x.has_one_frame && is_function(n); }
static void begin_shield(volt_cx *cx, node *n) {
    volt_shield_begin(cx, &n->m->shield, n->kind == BOUNDED ? when(n) - test_clock : VOLT_NEVER);
}
// Down to what is awaited next in the frame of `top`.
static node *go_in(volt_cx *cx, const node *top, node *n) {
    while (n == top || is_inlined(n)) {
        if (is_shield(n)) begin_shield(cx, n);
        n = n->operand[0];
    }
    return n;
}
// Is there something to do in this frame when `n` has ended?
static int is_last(const node *top, const node *n) {
    for (; n != top; n = n->up)
        if (n->up->kind == CLEANUP || (n->up->kind == THEN && n->up->operand[0] == n)) return 0;
    return 1;
}
// `n` has ended: up to the next await of this frame. NULL: none.
static node *go_on(volt_cx *cx, memory *m, const node *top, node *n) {
    for (; n != top; n = n->up) {
        node *up = n->up;
        if (is_shield(up) && !(x.is_left_open && is_last(top, up)))
            volt_shield_end(cx, &up->m->shield);
        if (up->kind == CLEANUP && m->rc < 0) {
            begin_shield(cx, up);
            m->is_cleaning = 1;
            return up;
        }
        if (up->kind == THEN && n == up->operand[0]) return go_in(cx, top, up->operand[1]);
        if (up != top) is_over(up, m->rc);
    }
    return NULL;
}
static node *go_on_cleaned(volt_cx *cx, memory *m, const node *top, node *n) {
    m->is_cleaning = 0;
    if (!(x.is_left_open && is_last(top, n))) volt_shield_end(cx, &n->m->shield);
    if (n == top) return NULL;
    is_over(n, m->rc);
    return go_on(cx, m, top, n);
}
static volt_poll run_function(volt_cx *cx, node *n) {
    memory *m = n->m;
    VOLT_BEGIN(cx, m);
    int64_t ignored;
    m->is_cleaning = 0;
    m->at = go_in(cx, n, n);
    while (m->at) {
        if (m->is_cleaning) {
            VOLT_AWAIT(ignored, volt_token_wait(cx, &m->at->token));
            CHECK_EQ(ignored, 0);
            m->at = go_on_cleaned(cx, m, n, m->at);
        } else {
            VOLT_AWAIT(m->rc, run(cx, m->at));
            m->at = go_on(cx, m, n, m->at);
        }
    }
    VOLT_END(m->rc);
}
static volt_poll run_child(volt_cx *cx, node *n) {
    memory *m = n->m;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, run(cx, n->operand[0]));
    VOLT_END(m->rc < 0 ? -EIO : m->rc);
}

#define ARMS(which_)                                                                               \
    VOLT_AWAIT(m->rc,                                                                              \
               which_(VOLT_ARM(&m->arm[0], run(cx, a)), VOLT_ARM(&m->arm[1], run(cx, b))))
static volt_poll run_arms(volt_cx *cx, node *n) {
    memory *m = n->m;
    node *const a = n->operand[0], *const b = n->operand[1];
    const uint8_t level = cx->cancel_level_;
    VOLT_BEGIN(cx, m);
    if (n->kind == JOIN) ARMS(VOLT_JOIN_ALL);
    else if (n->kind == TRY_JOIN) ARMS(VOLT_TRY_JOIN_ALL);
    else if (x.is_biased) ARMS(VOLT_SELECT_BIASED);
    else ARMS(VOLT_SELECT);
    CHECK_EQ(cx->cancel_level_, level); // the next await of this frame would find it
    VOLT_END(m->rc);
}
#define ELEMENTS(which_) VOLT_AWAIT(m->rc, which_(cx, VOLT_EACH(run_element, m->element)))
static volt_poll run_array(volt_cx *cx, node *n) {
    memory *m = n->m;
    const uint8_t level = cx->cancel_level_;
    VOLT_BEGIN(cx, m);
    m->element[0].node = n->operand[0];
    m->element[1].node = n->operand[1];
    if (n->kind == JOIN) ELEMENTS(volt_join_all);
    else if (n->kind == TRY_JOIN) ELEMENTS(volt_try_join_all);
    else ELEMENTS(volt_join_any);
    CHECK_EQ(cx->cancel_level_, level); // the next await of this frame would find it
    VOLT_END(m->rc);
}
static volt_poll run_kind(volt_cx *cx, node *n) {
    memory *m = n->m;
    switch (n->kind) {
    case LEAF: return volt_token_wait(cx, &n->token);
    case CHILD: return run_child(cx, n);
    case WITHIN: return volt_within(cx, &m->timer, when(n) - test_clock, run(cx, n->operand[0]));
    case UNLESS: return volt_with_token(cx, &m->link, &n->token, run(cx, n->operand[0]));
    case SELECT: return run_arms(cx, n);
    case JOIN:
    case TRY_JOIN: return x.is_array ? run_array(cx, n) : run_arms(cx, n);
    case ANY: return run_array(cx, n);
    default: return run_function(cx, n);
    }
}
static volt_poll run(volt_cx *cx, node *n) {
    CHECK(!n->real.is_over);
    volt_poll p = run_kind(cx, n);
    if (!volt_is_pending(p)) is_over(n, volt_value(p));
    return p;
}
typedef struct {
    volt_frame frame;
    int64_t rc;
} root;
static volt_poll run_root(volt_cx *cx, void *arg) {
    root *r = arg;
    VOLT_BEGIN(cx, r);
    VOLT_AWAIT(r->rc, run(cx, &x.nodes[0]));
    VOLT_END(r->rc);
}

// ---- the rules

// Does this wrapper cancel the operation inside it? A timer can only be up once it has been armed.
// The operation inside a limit is tried once more before.
static int is_time_up(const node *n) { return n->rule.is_armed && has_happened(n); }
static int cancels_inside(const node *n) {
    if (n->kind == UNLESS) return has_happened(n);
    if (n->kind == WITHIN) return is_time_up(n) && n->rule.is_tried;
    return n->kind == BOUNDED && is_time_up(n);
}
// Is a wait at this place cancelled? The nearest shield above decides about all that is above it.
static int is_off(const node *n) {
    for (const node *up = n->up; up; n = up, up = n->up) {
        if (cancels_inside(up)) return 1;
        if (up->kind == SHIELD || up->kind == BOUNDED) return 0;
        if (up->rule.winner != NONE && up->operand[up->rule.winner] != n) return 1;
    }
    return x.is_cancelled;
}
static int ends(node *n, int64_t value) {
    n->rule.is_over = 1;
    n->rule.value = value;
    x.n_changes++;
    return 1;
}
static int rule(node *n);
static int rule_within(node *n) {
    node *a = n->operand[0];
    int is_mine = cancels_inside(n) && !is_off(n), is_last_try = is_time_up(n) && !n->rule.is_tried;
    if (rule(a))
        return ends(n, is_mine && a->rule.value == -ECANCELED ? -ETIMEDOUT : a->rule.value);
    if (is_last_try) {
        n->rule.is_tried = 1;
        x.n_changes++;
    }
    x.n_changes += !n->rule.is_armed; // may be over already: then the next poll sees it
    n->rule.is_armed = 1;
    return 0;
}
static int rule_cleanup(node *n) {
    node *a = n->operand[0];
    if (!rule(a)) return 0;
    if (a->rule.value >= 0) return ends(n, a->rule.value);
    n->rule.is_cleaning = 1;
    return has_happened(n) ? ends(n, a->rule.value) : 0;
}
static int rule_child(node *n) {
    node *a = n->operand[0];
    return rule(a) ? ends(n, a->rule.value < 0 ? -EIO : a->rule.value) : 0;
}
static int rule_then(node *n) {
    if (!rule(n->operand[0]) || !rule(n->operand[1])) return 0;
    return ends(n, n->operand[1]->rule.value);
}
// Did the end of this operand decide the whole?
static int decides(const node *n, const node *operand) {
    if (n->rule.winner != NONE || n->kind == JOIN) return 0;
    if (n->kind == TRY_JOIN) return operand->rule.value < 0;
    return !(is_off(n) && operand->rule.value == -ECANCELED);
}
static int rule_operands(node *n) {
    int is_decided_before = n->rule.winner != NONE;
    for (int turn = 0; turn < 2; turn++) { // a decision cancels the operands before it, too
        int is_decided_now = !is_decided_before && n->rule.winner != NONE;
        if (turn == 1 && !is_decided_now && !(n->kind == SELECT && is_off(n))) break;
        for (int k = 0; k < 2; k++) {
            int i = n->rule.first ^ k;
            node *a = n->operand[i];
            if (a->rule.is_over || (turn == 1 && !a->rule.is_started)) continue;
            if (n->kind == SELECT && turn == 0 && !is_decided_before && n->rule.winner != NONE)
                continue; // is not even begun
            if (rule(a) && decides(n, a)) n->rule.winner = i;
        }
    }
    for (int i = 0; i < 2; i++)
        if (n->operand[i]->rule.is_started && !n->operand[i]->rule.is_over) return 0;
    int winner = n->rule.winner;
    if (winner == NONE)
        return ends(n, is_off(n) || n->kind == SELECT || n->kind == ANY ? -ECANCELED : 0);
    return ends(n, n->kind == TRY_JOIN ? n->operand[winner]->rule.value : winner);
}
// One poll. 1: over.
static int rule(node *n) {
    if (n->rule.is_over) return 1;
    if (n->kind == SELECT && !n->rule.is_started && !x.is_biased)
        n->rule.first = volt__random_below(&x.random, 2) == 0;
    n->rule.is_started = 1;
    switch (n->kind) {
    case LEAF: return is_off(n) ? ends(n, -ECANCELED) : has_happened(n) ? ends(n, 0) : 0;
    case WITHIN: return rule_within(n);
    case CLEANUP: return rule_cleanup(n);
    case THEN: return rule_then(n);
    case UNLESS:
        if (rule(n->operand[0])) return ends(n, n->operand[0]->rule.value);
        n->rule.is_armed |= !has_happened(n);
        return 0;
    case BOUNDED: n->rule.is_armed = 1; break;
    case CHILD: return rule_child(n);
    case SHIELD: break;
    default: return rule_operands(n);
    }
    return rule(n->operand[0]) ? ends(n, n->operand[0]->rule.value) : 0;
}
// Until nothing moves any more: the task is polled as often as that takes.
static void apply_rules(void) {
    do {
        x.n_changes = 0;
        rule(&x.nodes[0]);
    } while (x.n_changes > 0);
}
// How many nodes the waits hold.
static int rule_links(void) {
    int links = 0;
    for (int i = 0; i < x.n_nodes; i++) {
        const node *n = &x.nodes[i];
        if (!n->rule.is_started || n->rule.is_over) continue;
        links += n->kind == LEAF || n->rule.is_armed || n->rule.is_cleaning;
    }
    return links;
}

// ---- choices: each call of choose() takes another way in each run, until all have been taken

enum { MAX_CHOICES = 64 };
static struct {
    int n, at, way[MAX_CHOICES], n_ways[MAX_CHOICES];
} path;
static int choose(int n_ways) {
    CHECK(path.at < MAX_CHOICES);
    if (path.at == path.n) {
        path.way[path.n] = 0;
        path.n_ways[path.n++] = n_ways;
    }
    CHECK_EQ(path.n_ways[path.at], n_ways);
    return path.way[path.at++];
}
static int next_path(void) {
    while (path.n > 0 && ++path.way[path.n - 1] == path.n_ways[path.n - 1]) path.n--;
    path.at = 0;
    return path.n > 0;
}

static int has_event(kind k) {
    return k == LEAF || k == WITHIN || k == UNLESS || k == BOUNDED || k == CLEANUP;
}
// In the second operand of a sequence: what a node of the same kind had in the first one, if that
// is not given away yet.
static memory *inherit(kind k) {
    for (int i = x.heir.first; i < x.heir.end; i++)
        if (x.nodes[i].kind == k && !(x.heir.given >> i & 1)) {
            x.heir.given |= 1u << i;
            return x.nodes[i].m;
        }
    return &x.memory[x.n_memory++];
}
static node *grow(node *up, int *n_left, kind k) {
    int at = x.n_nodes++;
    node *n = &x.nodes[at];
    heir before = x.heir;
    n->kind = k;
    n->up = up;
    n->m = inherit(k);
    n->rule.winner = NONE;
    n->event = has_event(k) ? x.n_events++ : NONE;
    x.n_of[k]++;
    for (int i = 0; k != LEAF && i < (k < THEN ? 1 : 2); i++) {
        kind inner = *n_left > 0 ? (kind)choose(N_KINDS) : LEAF;
        *n_left -= inner != LEAF;
        if (k == THEN && i == 1 && x.has_one_memory) {
            before = x.heir;
            x.heir = (heir){ at + 1, x.n_nodes, 0 };
        }
        n->operand[i] = grow(n, n_left, inner);
        if (k == THEN && i == 1 && x.has_one_memory) x.heir = before;
    }
    return n;
}
static int n_brackets(void) {
    int n = 0;
    for (int k = LEAF + 1; k < N_KINDS; k++) n += x.n_of[k];
    return n;
}
static int is_wanted(void) {
    if (x.has_one_memory && !x.n_of[THEN]) return 0; // nothing would differ
    if (n_brackets() <= MAX_BRACKETS) return 1;
    return x.n_of[THEN] > 0 && x.has_one_memory && x.n_events <= MAX_EVENTS_OF_SEQUENCE;
}
// How it is written, where there is a choice. Larger expressions are run in one of their forms, as
// their kinds have it: all forms occur in many of them.
static int way(int n_ways, int is_large, uint64_t *mix) {
    *mix = test__mix(*mix);
    return is_large ? (int)(*mix % (uint64_t)n_ways) : choose(n_ways);
}
static void choose_form(void) {
    int n_big = n_brackets() - MAX_BRACKETS, has_nested = 0;
    uint64_t mix = 0;
    for (int i = 0; i < x.n_nodes; i++) {
        const node *n = &x.nodes[i];
        has_nested |= is_function(n) && n->up && is_function(n->up);
        mix = test__mix(mix + (uint64_t)n->kind);
    }
    if (has_nested) x.has_one_frame = way(2, n_big > 0, &mix);
    if (x.n_of[SHIELD] + x.n_of[BOUNDED] + x.n_of[CLEANUP] > 0)
        x.is_left_open = way(2, n_big > 0, &mix);
    if (x.n_of[JOIN] + x.n_of[TRY_JOIN] > 0) x.is_array = way(2, n_big >= 0, &mix);
    int start = x.n_of[SELECT] > 0 ? way(3, n_big >= 0, &mix) : 0;
    x.is_biased = start == 0;
    x.random.a = 1; // two states of the generator whose next bit differs
    x.random.b = start == 2 ? 1 : UINT32_MAX;
}
// Every order of all events, and every way to cut it into batches.
static void choose_order(void) {
    int left[MAX_EVENTS], n_left = x.n_events, last = NONE;
    for (int i = 0; i < n_left; i++) left[i] = i;
    while (n_left > 0) {
        int i = choose(n_left), event = left[i];
        int is_with_last = event > last && last != NONE && choose(2);
        if (!is_with_last) x.n_batches++;
        x.batch_of[event] = x.n_batches;
        last = event;
        for (n_left--; i < n_left; i++) left[i] = left[i + 1];
    }
}

// ---- a worker without a thread

static volt_rt *rt;
static volt__worker *worker;
static void start_worker(void) {
    volt_config cfg = test_config(1);
    CHECK_EQ(volt__rt_create(&cfg, &rt), 0);
    CHECK_EQ(volt__worker_create(rt, 0, &worker), 0);
    rt->started = 1;
    worker->needs_watchdog = 0;
    VOLT_TLS_SET(worker);
}
static void stop_worker(void) {
    VOLT_TLS_SET(NULL);
    volt__rt_free(rt);
    test_check_heap();
}
static void strike(volt__task *t) {
    x.batch++;
    if (x.batch_of[CANCEL] == x.batch) {
        x.is_cancelled = 1;
        if (volt__task_cancel(t)) volt__schedule(t);
    }
    for (int i = 0; i < x.n_nodes; i++) {
        node *n = &x.nodes[i];
        if (n->event != NONE && x.batch_of[n->event] == x.batch) volt_token_cancel(&n->token);
    }
    volt__chain c;
    volt__chain_init(&c);
    test_clock += VOLT_S(1);
    volt__wheel_fire(&worker->wheel, volt__tick_floor(rt, test_clock), &c);
    if (c.head) volt__schedule_chain(&c);
}
static void poll_until_idle(void) {
    for (volt__task *t; (t = volt__next_local(worker));) volt__poll_task(worker, t);
}
static void compare(const volt__task *t) {
    for (int i = 0; i < x.n_nodes; i++) {
        const node *n = &x.nodes[i];
        CHECK_EQ(n->real.is_over, n->rule.is_over);
        if (n->rule.is_over) CHECK_EQ(n->real.value, n->rule.value);
    }
    CHECK_EQ(t->n_armed, rule_links());
}
static void check_expression(void) {
    root r = { .rc = 0 };
    volt_handle h;
    int64_t result;
    worker->random = x.random;
    CHECK_EQ(volt_rt_spawn(rt, &h, run_root, &r, sizeof r), 0);
    for (int i = 0;; i++) {
        poll_until_idle();
        apply_rules();
        compare(h.task_);
        if (i == x.n_batches || volt__join_is_done(h.task_)) break;
        strike(h.task_);
    }
    CHECK_EQ(volt_try_join(&h, &result), 0); // whatever happens first, it ends
    CHECK_EQ(result, x.nodes[0].rule.value);
}
// All expressions with this outermost bracket.
static void check_all(kind outermost) {
    uint64_t n_runs = 0;
    start_worker();
    do {
        int n_left = MAX_OF_SEQUENCE - (outermost != LEAF);
        memset(&x, 0, sizeof x);
        x.n_events = CANCEL + 1;
        x.has_one_memory = choose(2);
        grow(NULL, &n_left, outermost);
        if (!is_wanted() || (!test_is_long() && RANDOM_BELOW(4) > 0)) continue;
        choose_form();
        choose_order();
        check_expression();
        n_runs++;
    } while (next_path());
    stop_worker();
    printf("%" PRIu64 " runs\n", n_runs);
}

#define BRACKET(name_, kind_)                                                                      \
    TEST(name_##_ends_as_its_rules_say) { check_all(kind_); }
BRACKET(leaf, LEAF)
BRACKET(child, CHILD)
BRACKET(within, WITHIN)
BRACKET(unless, UNLESS)
BRACKET(shield, SHIELD)
BRACKET(bounded_shield, BOUNDED)
BRACKET(cleanup, CLEANUP)
BRACKET(sequence, THEN)
BRACKET(select, SELECT)
BRACKET(join_all, JOIN)
BRACKET(try_join_all, TRY_JOIN)
BRACKET(join_any, ANY)
