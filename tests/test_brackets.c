// SPDX-License-Identifier: MIT OR 0BSD
// The brackets around an await (within, unless, shields, select, joins), exhaustively: every
// expression of at most three of them, around leaves that wait, struck by all their events in every
// order, also by several between two polls. What must come out is told by a second interpreter of
// such expressions, `rule`, which knows neither frames nor levels: it walks up from a wait and asks
// whether what it meets cancels it or shields it.
//
// After every batch of events the two must agree about each node of the expression: whether it has
// ended, with what, and how many nodes the task has linked. At the end everything has ended.
//   make build/test_brackets && build/test_brackets
#define VOLT_IMPLEMENTATION
#define VOLT_NOW_NS() test_clock
static __INT64_TYPE__ test_clock = 1000000000;
#include "../volt.h"
#include "test.h"
#include "tasks.h"

// ---- expressions

typedef enum kind {
    LEAF,    // waits for its event
    CHILD,   // an async function around one
    WITHIN,  // event: its time is up
    UNLESS,  // event: its token is cancelled
    SHIELD,
    BOUNDED, // a shield; event: its bound is over
    CLEANUP, // after an error it waits for its event under a shield
    SELECT,  // from here on: two operands
    JOIN,
    TRY_JOIN,
    ANY,     // volt_join_any over an array of two
    N_KINDS
} kind;
enum { MAX_BRACKETS = 3, MAX_NODES = 2 * MAX_BRACKETS + 1, CANCEL = 0, MAX_EVENTS = MAX_NODES + 1 };
enum { NONE = -1 };

typedef struct node node;
typedef struct element {
    volt_frame frame;
    node *node;
} element;
struct node {
    volt_frame frame;
    kind kind;
    node *up, *operand[2];
    int event; // number; NONE: has none
    volt_timer timer;
    volt_link link;
    volt_token token; // of a leaf: set when what it waits for has come
    volt_shield shield;
    volt_arm arm[2];
    element element[2];
    int64_t rc, ignored;
    struct { // what has come of it, and what the rules say
        int is_started, is_over, winner, is_armed, is_cleaning;
        int64_t value;
    } real, rule;
};
typedef struct world {
    int n_nodes, n_events, is_cancelled;
    node nodes[MAX_NODES];
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
static volt_poll run_function(volt_cx *cx, node *n);
static volt_poll run_element(volt_cx *cx, void *arg) {
    element *e = arg;
    VOLT_BEGIN(cx, e);
    VOLT_AWAIT(e->node->ignored, run(cx, e->node));
    VOLT_END(e->node->ignored);
}
static volt_poll run_shielded(volt_cx *cx, node *n) {
    VOLT_BEGIN(cx, n);
    volt_shield_begin(cx, &n->shield, n->kind == BOUNDED ? when(n) - test_clock : VOLT_NEVER);
    VOLT_AWAIT(n->rc, run(cx, n->operand[0]));
    volt_shield_end(cx, &n->shield);
    VOLT_END(n->rc);
}
static volt_poll run_cleanup(volt_cx *cx, node *n) {
    VOLT_BEGIN(cx, n);
    VOLT_AWAIT(n->rc, run(cx, n->operand[0]));
    if (n->rc < 0) {
        volt_shield_begin(cx, &n->shield, VOLT_NEVER);
        VOLT_AWAIT(n->ignored, volt_token_wait(cx, &n->token));
        volt_shield_end(cx, &n->shield);
    }
    VOLT_END(n->rc);
}
static volt_poll run_function(volt_cx *cx, node *n) {
    node *a = n->operand[0], *b = n->operand[1];
    VOLT_BEGIN(cx, n);
    if (n->kind == CHILD) {
        VOLT_AWAIT(n->rc, run(cx, a));
    } else if (n->kind == SELECT) {
        VOLT_AWAIT(n->rc, VOLT_SELECT_BIASED(VOLT_ARM(&n->arm[0], run(cx, a)),
                                             VOLT_ARM(&n->arm[1], run(cx, b))));
    } else if (n->kind == JOIN) {
        VOLT_AWAIT(n->rc, VOLT_JOIN_ALL(VOLT_ARM(&n->arm[0], run(cx, a)),
                                        VOLT_ARM(&n->arm[1], run(cx, b))));
    } else if (n->kind == TRY_JOIN) {
        VOLT_AWAIT(n->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&n->arm[0], run(cx, a)),
                                            VOLT_ARM(&n->arm[1], run(cx, b))));
    } else {
        n->element[0].node = a;
        n->element[1].node = b;
        VOLT_AWAIT(n->rc, volt_join_any(cx, VOLT_EACH(run_element, n->element)));
    }
    VOLT_END(n->rc);
}
static volt_poll run_kind(volt_cx *cx, node *n) {
    switch (n->kind) {
    case LEAF: return volt_token_wait(cx, &n->token);
    case WITHIN: return volt_within(cx, &n->timer, when(n) - test_clock, run(cx, n->operand[0]));
    case UNLESS: return volt_unless(cx, &n->link, &n->token, run(cx, n->operand[0]));
    case SHIELD:
    case BOUNDED: return run_shielded(cx, n);
    case CLEANUP: return run_cleanup(cx, n);
    default: return run_function(cx, n);
    }
}
static volt_poll run(volt_cx *cx, node *n) {
    CHECK(!n->real.is_over);
    volt_poll p = run_kind(cx, n);
    if (!volt_is_pending(p)) {
        n->real.is_over = 1;
        n->real.value = volt_value(p);
    }
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

// Does this bracket cancel what is inside it? A timer can only be up once it has been armed.
static int cancels_inside(const node *n) {
    if (n->kind == UNLESS) return has_happened(n);
    return (n->kind == WITHIN || n->kind == BOUNDED) && n->rule.is_armed && has_happened(n);
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
    int is_mine = cancels_inside(n) && !is_off(n);
    if (rule(a))
        return ends(n, is_mine && a->rule.value == -ECANCELED ? -ETIMEDOUT : a->rule.value);
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
// Did the end of this operand decide the whole?
static int decides(const node *n, const node *operand) {
    if (n->rule.winner != NONE || n->kind == JOIN) return 0;
    if (n->kind == TRY_JOIN) return operand->rule.value < 0;
    return !(is_off(n) && operand->rule.value == -ECANCELED);
}
static int rule_operands(node *n) {
    int is_decided_before = n->rule.winner != NONE;
    for (int turn = 0; turn < 2; turn++) // what has decided cancels those before it, too
        for (int i = 0; i < 2; i++) {
            node *a = n->operand[i];
            if (a->rule.is_over || (turn == 1 && !a->rule.is_started)) continue;
            if (n->kind == SELECT && turn == 0 && !is_decided_before && n->rule.winner != NONE)
                continue; // is not even begun
            if (rule(a) && decides(n, a)) n->rule.winner = i;
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
    n->rule.is_started = 1;
    switch (n->kind) {
    case LEAF: return is_off(n) ? ends(n, -ECANCELED) : has_happened(n) ? ends(n, 0) : 0;
    case WITHIN: return rule_within(n);
    case CLEANUP: return rule_cleanup(n);
    case UNLESS: n->rule.is_armed |= !rule(n->operand[0]) && !has_happened(n); break;
    case BOUNDED: n->rule.is_armed = 1; break;
    case CHILD:
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
static node *grow(node *up, int *n_brackets, kind k) {
    node *n = &x.nodes[x.n_nodes++];
    n->kind = k;
    n->up = up;
    n->rule.winner = NONE;
    n->event = has_event(k) ? x.n_events++ : NONE;
    for (int i = 0; k != LEAF && i < (k < SELECT ? 1 : 2); i++) {
        kind inner = *n_brackets > 0 ? (kind)choose(N_KINDS) : LEAF;
        *n_brackets -= inner != LEAF;
        n->operand[i] = grow(n, n_brackets, inner);
    }
    return n;
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
    worker->needs_watch = 0;
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
    for (volt__task *t; (t = volt__take(worker));) volt__poll_task(worker, t);
}
static void compare(const volt__task *t) {
    for (int i = 0; i < x.n_nodes; i++) {
        const node *n = &x.nodes[i];
        CHECK_EQ(n->real.is_over, n->rule.is_over);
        if (n->rule.is_over) CHECK_EQ(n->real.value, n->rule.value);
    }
    CHECK_EQ(t->links, rule_links());
}
static void check_expression(void) {
    root r = { .rc = 0 };
    volt_handle h;
    int64_t result;
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
        int n_brackets = MAX_BRACKETS - (outermost != LEAF);
        memset(&x, 0, sizeof x);
        x.n_events = CANCEL + 1;
        grow(NULL, &n_brackets, outermost);
        choose_order();
        check_expression();
        n_runs++;
    } while (next_path());
    stop_worker();
    printf("%" PRIu64 " runs\n", n_runs);
}

#define BRACKET(name_, kind_)                                                                      \
    TEST(name_) { check_all(kind_); }
BRACKET(leaf, LEAF)
BRACKET(child, CHILD)
BRACKET(within, WITHIN)
BRACKET(unless, UNLESS)
BRACKET(shield, SHIELD)
BRACKET(bounded_shield, BOUNDED)
BRACKET(cleanup, CLEANUP)
BRACKET(select, SELECT)
BRACKET(join_all, JOIN)
BRACKET(try_join_all, TRY_JOIN)
BRACKET(join_any, ANY)
