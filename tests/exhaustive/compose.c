// SPDX-License-Identifier: MIT OR 0BSD
// Composition of awaits. The first part builds every nesting of combinators up to depth 3 and
// strikes it with each event at each level; a small model says what must come out.
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

// ---- trees

enum { SLEEP, CLEANUP, YIELD, N_LEAVES }; // kinds of a leaf
enum { WITHIN, UNLESS, SHIELD, SELECT, JOIN, TRY_JOIN, N_COMBINATORS };
enum { MAX_DEPTH = 3 };
// The first event: the leaf completes, the task is cancelled, or the combinator at a level (its
// timer, token, bound or second arm) does it.
enum { EV_COMPLETE = -2, EV_CANCEL = -1 };
enum { EVENT_MS = 2, FAR_S = 1000, LEAF_VALUE = 5, SIDE_ERROR = -EIO };

typedef struct tree tree;
typedef struct node {
    volt_frame frame;
    tree *tree;
    int level, kind; // level of a combinator; a leaf has level == tree->depth
    volt_timer timer;
    volt_token_link link;
    volt_shield shield;
    volt_arm a, b;
    int64_t rc;
    int n_started, n_ended, n_cleaned, at_end; // at_end: place in the order of ending
} node;

struct tree {
    int depth, combinators[MAX_DEPTH], leaf, event, is_direct;
    int n_ended, side_done, is_cancelled;
    volt_time release;
    node nodes[MAX_DEPTH + 1], sides[MAX_DEPTH]; // sides: second arms
    volt_token stops[MAX_DEPTH];
};
typedef struct {
    volt_frame frame;
    tree *tree;
    int64_t rc;
} case_task;

static int is_shielded_below(const tree *t, int level) { // between `level` and the leaf
    for (int i = level; i < t->depth; i++)
        if (t->combinators[i] == SHIELD) return 1;
    return 0;
}
// Whether the event leaves the leaf alone, because a shield lies between.
static int survives(const tree *t) {
    int struck = t->event == EV_CANCEL ? 0 : t->event + 1;
    return t->event != EV_COMPLETE && is_shielded_below(t, struck);
}

// The value of the tree from `level` down; is_struck: a scope above it has been cancelled.
static int64_t expected(const tree *t, int level, int is_struck) {
    if (level == t->depth) return is_struck ? -ECANCELED : LEAF_VALUE;
    int kind = t->combinators[level], hit = t->event == level;
    if (kind == SHIELD) return expected(t, level + 1, hit);
    int64_t v = expected(t, level + 1, is_struck || hit);
    switch (kind) {
    case WITHIN: return hit && v == -ECANCELED ? -ETIMEDOUT : v;
    case UNLESS: return v;
    case SELECT: // an arm that completes under its shield wins all the same
        return is_struck && v == -ECANCELED ? v : hit ? 1 : 0;
    case JOIN: return is_struck ? -ECANCELED : 0;
    default: return is_struck ? -ECANCELED : hit ? SIDE_ERROR : v < 0 ? v : 0;
    }
}

// ---- what runs them

static volt_poll node_run(volt_cx *cx, void *arg);
static volt_poll side_run(volt_cx *cx, void *arg);

static volt_time bound(const node *n) { // of the timer of this combinator
    return n->tree->event == n->level ? VOLT_MS(EVENT_MS) : VOLT_S(FAR_S);
}

// The inner poll of a combinator: a child with a frame of its own, or, where C allows it, the next
// combinator directly. A direct poll has no BEGIN; arms need the context under its macro name.
static volt_poll inner_poll(volt_cx *cx, node *n);
static volt_poll combine(volt_cx *cx, node *n) {
    volt_cx *const volt__cx = cx;
    tree *t = n->tree;
    node *in = &t->nodes[n->level + 1], *side = &t->sides[n->level];
    switch (n->kind) {
    case WITHIN: return volt_within(cx, &n->timer, bound(n), inner_poll(cx, in));
    case UNLESS: return volt_with_token(cx, &n->link, &t->stops[n->level], inner_poll(cx, in));
    case SELECT:
        return VOLT_SELECT(VOLT_ARM(&n->a, inner_poll(cx, in)),
                           VOLT_ARM(&n->b, side_run(cx, side)));
    case JOIN:
        return VOLT_JOIN_ALL(VOLT_ARM(&n->a, inner_poll(cx, in)),
                             VOLT_ARM(&n->b, side_run(cx, side)));
    default:
        return VOLT_TRY_JOIN_ALL(VOLT_ARM(&n->b, side_run(cx, side)),
                                 VOLT_ARM(&n->a, inner_poll(cx, in)));
    }
}
static volt_poll inner_poll(volt_cx *cx, node *n) {
    int has_frame = !n->tree->is_direct || n->level == n->tree->depth || n->kind == SHIELD;
    return has_frame ? node_run(cx, n) : combine(cx, n);
}

// One step of waiting; a leaf ends when its time has come: at once for EV_COMPLETE, behind the
// event if it survives that, else never.
static volt_poll leaf_step(volt_cx *cx, const node *n) {
    const tree *t = n->tree;
    if (n->kind == YIELD) return volt_yield(cx);
    return volt_sleep(cx, t->event == EV_COMPLETE || survives(t) ? VOLT_MS(1) : VOLT_S(FAR_S));
}
static int leaf_may_end(tree *t) {
    if (t->event == EV_COMPLETE) return 1;
    if (!survives(t)) return 0;
    if (t->event == EV_CANCEL) return READ(t->is_cancelled);
    switch (t->combinators[t->event]) {
    case SELECT:
    case TRY_JOIN: return READ(t->side_done);
    case UNLESS: return volt_token_is_cancelled(&t->stops[t->event]);
    }
    // a timer, which was armed when the leaf first suspended: wait it out
    if (!t->release) t->release = volt_now() + VOLT_MS(EVENT_MS + 3);
    return volt_now() >= t->release;
}

static volt_poll node_run(volt_cx *cx, void *arg) {
    node *n = arg;
    VOLT_BEGIN(cx, n);
    n->n_started++;
    if (n->level < n->tree->depth && n->kind == SHIELD) {
        volt_shield_begin(cx, &n->shield, bound(n));
        VOLT_AWAIT(n->rc, inner_poll(cx, &n->tree->nodes[n->level + 1]));
        volt_shield_end(cx, &n->shield);
    } else if (n->level < n->tree->depth) {
        VOLT_AWAIT(n->rc, combine(cx, n));
    } else {
        do VOLT_AWAIT(n->rc, leaf_step(cx, n));
        while (n->rc == 0 && !leaf_may_end(n->tree));
        if (n->rc == 0 && survives(n->tree)) VOLT_AWAIT(n->rc, volt_sleep(cx, VOLT_MS(1)));
        if (n->kind == CLEANUP) {
            volt_shield_begin(cx, &n->shield, VOLT_NEVER);
            VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
            volt_shield_end(cx, &n->shield);
            n->n_cleaned++;
        }
        if (n->rc == 0) n->rc = LEAF_VALUE;
    }
    n->n_ended++;
    n->at_end = n->tree->n_ended++;
    VOLT_END(n->rc);
}

// The second arm: of a join it ends by itself, else it is the event or never comes.
static volt_poll side_run(volt_cx *cx, void *arg) {
    node *n = arg;
    VOLT_BEGIN(cx, n);
    n->n_started++;
    VOLT_AWAIT(n->rc, volt_sleep(cx, n->kind == SELECT || n->tree->event == n->level ? bound(n)
                                                                                     : VOLT_MS(1)));
    if (n->tree->event == n->level) WRITE(n->tree->side_done, 1);
    n->n_ended++;
    n->at_end = n->tree->n_ended++;
    VOLT_END(n->rc == 0 && n->kind == TRY_JOIN && n->tree->event == n->level ? SIDE_ERROR : n->rc);
}

typedef struct {
    volt_frame frame;
    tree *tree;
    int64_t rc;
} striker; // cancels the token of the struck `unless`
static volt_poll striker_run(volt_cx *cx, void *arg) {
    striker *k = arg;
    VOLT_BEGIN(cx, k);
    VOLT_AWAIT(k->rc, volt_sleep(cx, VOLT_MS(EVENT_MS)));
    volt_token_cancel(&k->tree->stops[k->tree->event]);
    VOLT_END(0);
}

static volt_poll case_run(volt_cx *cx, void *arg) {
    case_task *c = arg;
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(c->rc, inner_poll(cx, &c->tree->nodes[0]));
    VOLT_END(c->rc);
}

// ---- building and judging

static void build(tree *t) {
    for (int i = 0; i <= t->depth; i++) {
        t->nodes[i].tree = t;
        t->nodes[i].level = i;
        t->nodes[i].kind = i == t->depth ? t->leaf : t->combinators[i];
    }
    for (int i = 0; i < t->depth; i++) {
        t->sides[i].tree = t;
        t->sides[i].level = i;
        t->sides[i].kind = t->combinators[i];
    }
}

static const char *describe(const tree *t) {
    static const char *const names[] = { "within", "unless", "shield",
                                         "select", "join",   "try_join" };
    static const char *const leaves[] = { "sleep", "cleanup", "yield" };
    static char text[200];
    int n = 0;
    for (int i = 0; i < t->depth; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s(", names[t->combinators[i]]);
    snprintf(text + n, sizeof text - (size_t)n, "%s%.*s, event %d, %s", leaves[t->leaf], t->depth,
             ")))", t->event,
             t->is_direct ? "direct" : "framed");
    return text;
}
#define JUDGE(t_, cond_)                                                                           \
    ((cond_) ? (void)0 : test_fail(__FILE__, __LINE__, "%s: %s", describe(t_), #cond_))

static void judge_node(const tree *t, const node *n, int last) {
    JUDGE(t, n->n_started == n->n_ended);
    JUDGE(t, n->n_started <= 1);
    JUDGE(t, n->n_cleaned == (n->level == t->depth && t->leaf == CLEANUP ? n->n_ended : 0));
    if (n->n_ended) JUDGE(t, n->at_end <= last);
}
static void judge(const tree *t, int64_t rc, int is_exact) {
    int64_t want = expected(t, 0, t->event == EV_CANCEL);
    int last = t->n_ended - 1;
    if (is_exact && rc != want)
        test_fail(__FILE__, __LINE__, "%s: gave %d, should be %d", describe(t), (int)rc, (int)want);
    judge_node(t, &t->nodes[t->depth], last);
    // an arm that comes after the deciding one may never have begun
    int kind = t->event >= 0 && t->event < t->depth ? (int)t->combinators[t->event] : -1;
    int may_be_spared = kind == SELECT || kind == TRY_JOIN;
    JUDGE(t, t->nodes[t->depth].n_ended == 1 || (may_be_spared && !t->nodes[t->depth].n_started));
    for (int i = 0; i < t->depth; i++) {
        judge_node(t, &t->nodes[i], last);
        judge_node(t, &t->sides[i], last);
        if (t->nodes[i].n_ended) last = t->nodes[i].at_end;
        JUDGE(t, t->nodes[i].at_end >= t->nodes[t->depth].at_end || !t->nodes[i].n_ended);
        JUDGE(t, !t->stops[i].waiters_);
        if (t->combinators[i] != SELECT) continue;
        JUDGE(t, t->nodes[i].a.fired + t->nodes[i].b.fired <= 1);
        if (is_exact) JUDGE(t, !t->nodes[i].a.fired || t->event != i);
    }
}

// Calls `visit` for every tree; a tree is in static order, so that two passes see the same ones.
static int next_tree(tree *t) { // an odometer: direct, event, leaf, combinators, depth
    if (!t->is_direct && t->depth > 1) return t->is_direct = 1;
    t->is_direct = 0;
    if (++t->event < t->depth) return 1;
    t->event = EV_COMPLETE;
    if (++t->leaf < N_LEAVES) return 1;
    t->leaf = 0;
    for (int i = 0; i < t->depth; i++) {
        if (++t->combinators[i] < N_COMBINATORS) return 1;
        t->combinators[i] = 0;
    }
    return ++t->depth <= MAX_DEPTH;
}
// A join has no event of its own: its second arm always ends.
static int makes_sense(const tree *t) {
    return t->event < 0 || t->combinators[t->event] != JOIN;
}

enum { BATCH = 64 };
typedef struct {
    volt_frame frame;
    tree next, *trees[BATCH];
    volt_handle h[BATCH], strikers[BATCH];
    int i, n, n_trees, has_more, is_exact;
    int64_t rc;
} driver;

static void fill_batch(driver *d) {
    for (d->n = 0; d->n < BATCH && d->has_more; d->has_more = next_tree(&d->next)) {
        if (!makes_sense(&d->next)) continue;
        tree *t = calloc(1, sizeof *t);
        CHECK(t);
        *t = d->next;
        build(t);
        d->trees[d->n++] = t;
    }
}
static void start_case(volt_cx *cx, driver *d, int i) {
    tree *t = d->trees[i];
    if (t->event >= 0 && t->combinators[t->event] == UNLESS)
        SPAWN(&d->strikers[i], striker_run, (striker){ .tree = t });
    SPAWN(&d->h[i], case_run, (case_task){ .tree = t });
}
static void cancel_cases(driver *d) {
    for (int i = 0; i < d->n; i++) {
        if (d->trees[i]->event != EV_CANCEL) continue;
        volt_cancel(&d->h[i]);
        WRITE(d->trees[i]->is_cancelled, 1);
    }
}
// Poisoned before it is freed: a timer or an arm that stayed linked would be found out.
static void end_case(driver *d, int i) {
    judge(d->trees[i], d->rc, d->is_exact || !survives(d->trees[i]));
    memset(d->trees[i], 0xdd, sizeof *d->trees[i]);
    free(d->trees[i]);
    d->n_trees++;
}

static volt_poll driver_run(volt_cx *cx, void *arg) {
    driver *d = arg;
    VOLT_BEGIN(cx, d);
    d->next.depth = 1;
    d->next.event = EV_COMPLETE;
    for (d->has_more = 1; d->has_more;) {
        fill_batch(d);
        for (d->i = 0; d->i < d->n; d->i++) start_case(cx, d, d->i);
        VOLT_AWAIT(volt_sleep(cx, VOLT_MS(2)));
        cancel_cases(d);
        for (d->i = 0; d->i < d->n; d->i++) {
            if (volt_handle_is_set(&d->strikers[d->i])) {
                VOLT_AWAIT(d->rc, volt_join(cx, &d->strikers[d->i]));
                CHECK_EQ(d->rc, 0);
            }
            VOLT_AWAIT(d->rc, volt_join(cx, &d->h[d->i]));
            end_case(d, d->i);
        }
    }
    VOLT_END(d->n_trees);
}

// One worker: events and what survives them come in a definite order, so every result is known.
TEST(nested_combinators_match_model_on_one_worker) {
    static driver d;
    d.is_exact = 1;
    int n = run_on(1, driver_run, &d);
    CHECK(n > 3000);
}
TEST_OF_THREADS(nested_combinators_match_model_on_four_workers) {
    static driver d;
    CHECK(run_on(4, driver_run, &d) > 3000);
}

// ---- select

ROOT_TEST(select_gives_index_of_fired_arm, { volt_arm a, b, c; int64_t rc, x, y, z; int i; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 3; s->i++) {
        s->x = s->y = s->z = 77;
        VOLT_AWAIT(s->rc, VOLT_SELECT(
            VOLT_ARM(&s->a, s->x, volt_sleep(cx, s->i == 0 ? VOLT_MS(1) : VOLT_S(100))),
            VOLT_ARM(&s->b, s->y, volt_sleep(cx, s->i == 1 ? VOLT_MS(1) : VOLT_S(100))),
            VOLT_ARM(&s->c, s->z, volt_sleep(cx, s->i == 2 ? VOLT_MS(1) : VOLT_S(100)))));
        CHECK_EQ(s->rc, s->i);
        // written iff it fired
        CHECK_EQ(s->x, s->i == 0 ? 0 : 77);
        CHECK_EQ(s->y, s->i == 1 ? 0 : 77);
        CHECK_EQ(s->z, s->i == 2 ? 0 : 77);
        CHECK(s->a.fired == (s->i == 0) && s->b.fired == (s->i == 1) && s->c.fired == (s->i == 2));
        CHECK_EQ(s->a.value, s->i == 0 ? 0 : -ECANCELED);
        CHECK_EQ(s->b.value, s->i == 1 ? 0 : -ECANCELED);
        CHECK_EQ(s->c.value, s->i == 2 ? 0 : -ECANCELED);
    }
    VOLT_END(0);
}

// All arms are ready: unbiased, each wins about as often; biased, the first always.
ROOT_TEST(select_starts_at_a_random_arm, { volt_token done; volt_arm a, b, c; int i, n[3], rc; }) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    for (s->i = 0; s->i < 600; s->i++) {
        VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_token_wait(cx, &s->done)),
                                      VOLT_ARM(&s->b, volt_token_wait(cx, &s->done)),
                                      VOLT_ARM(&s->c, volt_token_wait(cx, &s->done))));
        CHECK(s->rc >= 0 && s->rc < 3);
        s->n[s->rc]++;
    }
    for (int i = 0; i < 3; i++) CHECK(s->n[i] > 100); // 200 expected; 100 is 9 sigma away
    for (s->i = 0; s->i < 100; s->i++) {
        VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->a, volt_token_wait(cx, &s->done)),
                                             VOLT_ARM(&s->b, volt_token_wait(cx, &s->done))));
        CHECK_EQ(s->rc, 0);
    }
    VOLT_END(0);
}

// The first arm wins in the first poll: the other child never starts, and is no loser to wait for.
typedef struct {
    volt_frame frame;
    volt_shield grace;
    volt_time d;
    int n_started, n_done, n_ended, rc;
} kid;
static volt_poll kid_run(volt_cx *cx, void *arg) {
    kid *k = arg;
    VOLT_BEGIN(cx, k);
    k->n_started++;
    VOLT_AWAIT(k->rc, volt_sleep(cx, k->d));
    if (k->rc == 0) k->n_done++;
    volt_shield_begin(cx, &k->grace, VOLT_S(100));
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    volt_shield_end(cx, &k->grace);
    k->n_ended++;
    VOLT_END(k->rc < 0 ? k->rc : 30);
}
ROOT_TEST(select_does_not_start_losers, { volt_token done; volt_arm a, b; kid k; int rc; }) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    s->k.d = VOLT_S(100);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->a, volt_token_wait(cx, &s->done)),
                                         VOLT_ARM(&s->b, kid_run(cx, &s->k))));
    CHECK_EQ(s->rc, 0);
    CHECK(!s->b.fired && s->b.value == -ECANCELED);
    CHECK_EQ(s->k.n_started, 0);
    VOLT_END(0);
}

ROOT_TEST(select_waits_for_the_cleanup_of_losers, { volt_arm a, b, c; kid k, l; int rc; }) {
    VOLT_BEGIN(cx, s);
    s->k.d = VOLT_S(100);
    s->l.d = VOLT_MS(1);
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, kid_run(cx, &s->k)),
                                  VOLT_ARM(&s->c, volt_sleep_forever(cx)),
                                  VOLT_ARM(&s->b, kid_run(cx, &s->l))));
    CHECK_EQ(s->rc, 2);
    CHECK(s->k.n_started == 1 && s->k.n_ended == 1 && s->k.rc == -ECANCELED);
    CHECK_EQ(volt_result(&s->k.frame), -ECANCELED);
    CHECK_EQ(volt_result(&s->l.frame), 30);
    CHECK_EQ(s->b.value, 30);
    VOLT_END(0);
}

ROOT_TEST(select_arm_may_be_a_select_or_join, { volt_arm a, b, c, d; int rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT(
        VOLT_ARM(&s->a, volt_sleep(cx, VOLT_S(100))),
        VOLT_ARM(&s->b, VOLT_SELECT(VOLT_ARM(&s->c, volt_sleep(cx, VOLT_S(100))),
                                    VOLT_ARM(&s->d, volt_sleep(cx, VOLT_MS(2)))))));
    CHECK_EQ(s->rc, 1);
    CHECK(s->b.value == 1 && s->d.fired && !s->c.fired);
    VOLT_AWAIT(s->rc, VOLT_SELECT(
        VOLT_ARM(&s->a, volt_sleep(cx, VOLT_MS(2))),
        VOLT_ARM(&s->b, VOLT_JOIN_ALL(VOLT_ARM(&s->c, volt_sleep(cx, VOLT_S(100))),
                                      VOLT_ARM(&s->d, volt_sleep(cx, VOLT_S(100)))))));
    CHECK_EQ(s->rc, 0);
    CHECK(!s->b.fired && s->b.value == -ECANCELED && s->c.value == -ECANCELED);
    VOLT_END(0);
}

// Many arms; one after the other wins.
#define ARM4(i_)                                                                                   \
    VOLT_ARM(&s->a[i_], volt_token_wait(cx, &s->t[i_])),                                           \
        VOLT_ARM(&s->a[i_ + 1], volt_token_wait(cx, &s->t[i_ + 1])),                               \
        VOLT_ARM(&s->a[i_ + 2], volt_token_wait(cx, &s->t[i_ + 2])),                               \
        VOLT_ARM(&s->a[i_ + 3], volt_token_wait(cx, &s->t[i_ + 3]))
#define ARM16(i_) ARM4(i_), ARM4(i_ + 4), ARM4(i_ + 8), ARM4(i_ + 12)
ROOT_TEST(select_of_64_arms_fires_only_the_ready_arm, {
    volt_arm a[64];
    volt_token t[64];
    int i, rc, n_started;
    awaiter w;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 64; s->i += 9) {
        volt_token_cancel(&s->t[s->i]);
        VOLT_AWAIT(s->rc, VOLT_SELECT(ARM16(0), ARM16(16), ARM16(32), ARM16(48)));
        CHECK_EQ(s->rc, s->i);
        for (int i = 0; i < 64; i++) {
            CHECK_EQ(s->a[i].fired, i == s->i);
            CHECK(!s->t[i].waiters_);
        }
        memset(&s->t[s->i], 0, sizeof s->t[0]);
    }
    VOLT_END(0);
}

// ---- joins

ROOT_TEST(join_all_keeps_every_value, {
    volt_arm a, b, c;
    kid k;
    int64_t x, y, z, rc;
    char byte;
}) {
    VOLT_BEGIN(cx, s);
    s->k.d = VOLT_MS(2);
    VOLT_AWAIT(s->rc, VOLT_JOIN_ALL(VOLT_ARM(&s->a, s->x, volt_sleep(cx, VOLT_MS(1))),
                                    VOLT_ARM(&s->b, s->y, kid_run(cx, &s->k)),
                                    VOLT_ARM(&s->c, s->z, volt_read(cx, -1, &s->byte, 1))));
    CHECK_EQ(s->rc, 0); // errors of arms are theirs
    CHECK(s->x == 0 && s->y == 30 && s->z == -EBADF);
    CHECK(s->a.fired && s->b.fired && s->c.fired);
    CHECK_EQ(s->c.value, s->z);
    VOLT_END(0);
}

ROOT_TEST(try_join_all_stops_at_the_first_error, {
    volt_arm a, b, c;
    kid k;
    napper n;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    s->k.d = VOLT_S(100);
    s->n.d = VOLT_MS(1);
    s->n.value = -EIO;
    VOLT_AWAIT(s->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&s->a, kid_run(cx, &s->k)),
                                        VOLT_ARM(&s->b, napper_run(cx, &s->n)),
                                        VOLT_ARM(&s->c, volt_sleep(cx, 0))));
    CHECK_EQ(s->rc, -EIO);
    CHECK(s->k.n_ended == 1 && s->k.rc == -ECANCELED);
    CHECK_EQ(s->a.value, -ECANCELED);
    CHECK_EQ(s->b.value, -EIO);
    CHECK_EQ(s->c.value, 0);
    s->k.d = VOLT_MS(1);
    s->n.value = 4;
    VOLT_AWAIT(s->rc, VOLT_TRY_JOIN_ALL(VOLT_ARM(&s->a, kid_run(cx, &s->k)),
                                        VOLT_ARM(&s->b, napper_run(cx, &s->n))));
    CHECK_EQ(s->rc, 0);
    CHECK(s->a.value == 30 && s->b.value == 4);
    VOLT_END(0);
}

// ---- arrays of children

enum { KIDS = 20 };
ROOT_TEST(join_all_over_array_waits_for_all_children,
          { kid kids[KIDS]; int64_t rc; int i; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 2; s->i++) { // the children start over
        for (int i = 0; i < KIDS; i++) s->kids[i].d = VOLT_US(RANDOM_BELOW(5000) + 1);
        VOLT_AWAIT(s->rc, volt_join_all(cx, VOLT_EACH(kid_run, s->kids)));
        CHECK_EQ(s->rc, 0);
        for (int i = 0; i < KIDS; i++) {
            CHECK_EQ(volt_result(&s->kids[i].frame), 30);
            CHECK_EQ(s->kids[i].n_ended, s->i + 1);
        }
    }
    for (int i = 0; i < KIDS; i++) s->kids[i].d = i % 2 ? VOLT_US(1) : VOLT_S(100);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(20),
                                  volt_join_all(cx, VOLT_EACH(kid_run, s->kids))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    for (int i = 0; i < KIDS; i++) {
        CHECK_EQ(s->kids[i].n_ended, 3); // all have finished all the same
        CHECK(volt_result(&s->kids[i].frame) == -ECANCELED || i % 2);
    }
    VOLT_AWAIT(s->rc, volt_join_all(cx, kid_run, s->kids, sizeof s->kids[0], 0));
    CHECK_EQ(s->rc, 0); // of none
    VOLT_END(0);
}

ROOT_TEST(try_join_all_over_array_stops_at_first_error,
          { napper kids[KIDS]; int64_t rc; int n_ended, i; }) {
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < KIDS; i++) {
        s->kids[i].d = i == 13 ? VOLT_MS(1) : VOLT_S(100);
        s->kids[i].value = -EBADF;
        s->kids[i].n_ended = &s->n_ended;
    }
    VOLT_AWAIT(s->rc, volt_try_join_all(cx, VOLT_EACH(napper_run, s->kids)));
    CHECK_EQ(s->rc, -EBADF);
    CHECK_EQ(s->n_ended, KIDS);
    for (int i = 0; i < KIDS; i++)
        CHECK_EQ(volt_result(&s->kids[i].frame), i == 13 ? -EBADF : -ECANCELED);
    for (int i = 0; i < KIDS; i++) s->kids[i].d = VOLT_US(i + 1), s->kids[i].value = i;
    VOLT_AWAIT(s->rc, volt_try_join_all(cx, VOLT_EACH(napper_run, s->kids)));
    CHECK_EQ(s->rc, 0);
    for (int i = 0; i < KIDS; i++) CHECK_EQ(volt_result(&s->kids[i].frame), i);
    VOLT_END(0);
}

// Nothing beside the array is taken for the result of an element.
ROOT_TEST(try_join_all_reads_no_result_beside_its_array,
          { napper before, kids[3], behind; int64_t rc; int i; }) {
    VOLT_BEGIN(cx, s);
    s->before.value = s->behind.value = -EIO;
    VOLT_AWAIT(s->rc, napper_run(cx, &s->before));
    VOLT_AWAIT(s->rc, napper_run(cx, &s->behind));
    VOLT_AWAIT(s->rc, volt_try_join_all(cx, VOLT_EACH(napper_run, s->kids)));
    CHECK_EQ(s->rc, 0);
    for (s->i = 0; s->i < 3; s->i++) {
        for (int i = 0; i < 3; i++) s->kids[i].value = i == s->i ? -EBADF : 1;
        VOLT_AWAIT(s->rc, volt_try_join_all(cx, VOLT_EACH(napper_run, s->kids)));
        CHECK_EQ(s->rc, -EBADF);
    }
    VOLT_END(0);
}

ROOT_TEST(join_any_over_array_gives_index_of_first,
          { kid kids[KIDS]; int64_t rc; int i; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < KIDS; s->i += 6) {
        for (int i = 0; i < KIDS; i++) {
            s->kids[i].d = i == s->i ? VOLT_MS(1) : VOLT_S(100);
            s->kids[i].n_started = s->kids[i].n_ended = 0;
        }
        VOLT_AWAIT(s->rc, volt_join_any(cx, VOLT_EACH(kid_run, s->kids)));
        CHECK_EQ(s->rc, s->i);
        for (int i = 0; i < KIDS; i++) {
            CHECK(s->kids[i].n_started == 1 && s->kids[i].n_ended == 1);
            CHECK_EQ(volt_result(&s->kids[i].frame), i == s->i ? 30 : -ECANCELED);
        }
    }
    for (int i = 0; i < KIDS; i++) s->kids[i].d = VOLT_S(100);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2),
                                  volt_join_any(cx, VOLT_EACH(kid_run, s->kids))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_END(0);
}

// ---- children

// Each level loops over the one below; every await starts its child over.
typedef struct {
    volt_frame frame;
    int i, rc, sum;
} level3;
static volt_poll level3_run(volt_cx *cx, void *arg) {
    level3 *l = arg;
    VOLT_BEGIN(cx, l);
    for (l->i = 0, l->sum = 0; l->i < 3; l->i++) {
        VOLT_AWAIT(l->rc, volt_yield(cx));
        l->sum += l->rc == 0 ? 1 : 100;
        if (l->i == 1) VOLT_AWAIT(l->rc, volt_sleep(cx, VOLT_US(100)));
    }
    VOLT_END(l->sum);
}
typedef struct {
    volt_frame frame;
    level3 in[2];
    int i, rc, sum;
} level2;
static volt_poll level2_run(volt_cx *cx, void *arg) {
    level2 *l = arg;
    VOLT_BEGIN(cx, l);
    for (l->i = 0, l->sum = 0; l->i < 4; l->i++) {
        VOLT_AWAIT(l->rc, level3_run(cx, &l->in[l->i % 2]));
        l->sum += l->rc;
    }
    if (l->sum != 12) VOLT_RETURN(-EIO);
    VOLT_END(l->sum);
}
ROOT_TEST(children_in_loops_start_over, { level2 in; int i, rc, sum; volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 4; s->i++) {
        VOLT_AWAIT(s->rc, level2_run(cx, &s->in));
        s->sum += s->rc;
    }
    CHECK_EQ(s->sum, 48);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(100), level2_run(cx, &s->in)));
    CHECK_EQ(s->rc, 12);
    VOLT_END(0);
}

// The await of a child makes its frame ready, whatever was there.
ROOT_TEST(child_frames_need_no_zeroes, { level3 in; int rc; }) {
    VOLT_BEGIN(cx, s);
    memset(&s->in, 0xff, sizeof s->in);
    VOLT_AWAIT(s->rc, level3_run(cx, &s->in));
    CHECK_EQ(s->rc, 3);
    VOLT_END(0);
}

// Broken off in the middle by a timeout, a child starts over all the same.
ROOT_TEST(child_starts_over_after_a_timeout, { napper nap; volt_timer t; int i, rc; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 5; s->i++) {
        s->nap.d = s->i % 2 ? VOLT_US(10) : VOLT_S(100);
        s->nap.value = 8;
        VOLT_AWAIT(s->rc, volt_within(cx, &s->t, s->i % 2 ? VOLT_S(100) : VOLT_MS(1),
                                      napper_run(cx, &s->nap)));
        CHECK_EQ(s->rc, s->i % 2 ? 8 : -ETIMEDOUT);
        CHECK_EQ(volt_result(&s->nap.frame), s->i % 2 ? 8 : -ECANCELED);
    }
    VOLT_END(0);
}

// ---- within, before, unless

ROOT_TEST(timeout_ends_pending_but_not_ready_await, {
    volt_token done;
    volt_timer t, u;
    volt_time at;
    int rc;
}) {
    VOLT_BEGIN(cx, s);
    volt_token_cancel(&s->done);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_token_wait(cx, &s->done)));
    CHECK_EQ(s->rc, 0); // a value wins, even when the time is up already
    VOLT_AWAIT(s->rc, volt_before(cx, &s->t, volt_now() - VOLT_S(1),
                                  volt_token_wait(cx, &s->done)));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, 0, volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, -VOLT_S(5), volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    VOLT_AWAIT(s->rc, volt_before(cx, &s->t, volt_now() - VOLT_S(1), volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(s->rc, -ETIMEDOUT);
    s->at = volt_now() + VOLT_MS(4);
    VOLT_AWAIT(s->rc, volt_before(cx, &s->t, s->at, volt_sleep(cx, VOLT_S(100))));
    CHECK(s->rc == -ETIMEDOUT && volt_now() >= s->at);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_NEVER, volt_sleep(cx, VOLT_MS(1))));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(2),
                                  volt_within(cx, &s->u, VOLT_S(99), volt_sleep(cx, VOLT_S(99)))));
    CHECK_EQ(s->rc, -ETIMEDOUT); // the outer one
    VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_S(100),
                                  volt_within(cx, &s->u, VOLT_MS(2), volt_sleep(cx, VOLT_S(100)))));
    CHECK_EQ(s->rc, -ETIMEDOUT); // the inner one
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_MS(1)));
    CHECK_EQ(s->rc, 0); // nothing of all that is left
    VOLT_END(0);
}

// One timer object serves a loop in which the inner poll is ready now and then.
ROOT_TEST(timer_may_be_reused_in_a_loop, { volt_timer t; int i, rc, n_late; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 60; s->i++) {
        VOLT_AWAIT(s->rc, volt_within(cx, &s->t, VOLT_MS(1),
                                      volt_sleep(cx, s->i % 3 == 0 ? VOLT_S(100) : 0)));
        CHECK_EQ(s->rc, s->i % 3 == 0 ? -ETIMEDOUT : 0);
    }
    VOLT_END(0);
}

ROOT_TEST(with_token_cancels_await_with_its_token,
          { volt_token t, done; volt_token_link l; int rc; kid k; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t, volt_sleep(cx, VOLT_MS(1))));
    CHECK_EQ(s->rc, 0);
    CHECK(!s->t.waiters_);
    volt_token_cancel(&s->t);
    volt_token_cancel(&s->done);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t, volt_sleep(cx, VOLT_S(100))));
    CHECK_EQ(s->rc, -ECANCELED);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t, volt_token_wait(cx, &s->done)));
    CHECK_EQ(s->rc, -ECANCELED); // level-triggered, also for what would be ready
    s->k.d = VOLT_S(100);
    VOLT_AWAIT(s->rc, volt_with_token(cx, &s->l, &s->t, kid_run(cx, &s->k)));
    CHECK(s->rc == -ECANCELED && s->k.n_ended == 1); // after its cleanup
    CHECK(!volt_is_cancelled(cx));
    VOLT_END(0);
}

// Two clocks race at the same instant, many times: exactly one of them wins.
ROOT_TEST(tied_timers_let_exactly_one_arm_win,
          { volt_timer t; volt_arm a, b; int i, rc; volt_time at; }) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < 100; s->i++) {
        s->at = volt_now() + VOLT_US(500);
        VOLT_AWAIT(s->rc, volt_before(cx, &s->t, s->at, volt_sleep_until(cx, s->at)));
        CHECK_EQ(s->rc, volt_timer_fired(&s->t) ? -ETIMEDOUT : 0);
        VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_sleep_until(cx, s->at + VOLT_MS(1))),
                                      VOLT_ARM(&s->b, volt_sleep_until(cx, s->at + VOLT_MS(1)))));
        CHECK(volt_now() >= s->at + VOLT_MS(1));
        CHECK_EQ(s->a.fired, s->rc == 0);
        CHECK_EQ(s->b.fired, s->rc == 1);
        CHECK_EQ(s->a.value, s->rc == 0 ? 0 : -ECANCELED);
        CHECK_EQ(s->b.value, s->rc == 1 ? 0 : -ECANCELED);
    }
    VOLT_END(0);
}
