// SPDX-License-Identifier: MIT OR 0BSD
// The referee of the litmus tests: decides what a litmus program may do from the axioms of C11
// atomics as C++20 states them, with that of RC11 (Lahav et al., PLDI 2017) against values out of
// thin air. It shares no code and no idea with the checker: it builds graphs of events, every one
// in which a read may read any write and a write may stand anywhere in modification order, and
// keeps those that the axioms allow.
//
//   sb   program order        rf   write to its reader        mo   modification order
//   rb   read to the writes that follow in mo the one it read
//   sw   release to acquire: along a release sequence (rmws only, C++20), directly or via fences
//   hb   (sb, sw)+            eco  (rf, mo, rb)+
//
//   coherence   hb; eco? has no cycle             atomicity   no write between an rmw and its read
//   sc          the order that hb and eco impose on seq_cst operations and fences has no cycle
//   no out of thin air: sb and rf have no cycle (events are added in such an order)
#include "litmus.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 32, FIRST_INIT = LIT_THREADS * LIT_INSTRS, NA = -1 };
enum { VISITED_CAP = 1 << 20 };

typedef struct event {
    uint8_t exists, reads, writes, is_fence, var;
    int8_t order, rval, wval;
    uint8_t rf;
} event;
typedef struct graph {
    event e[EVENTS]; // thread * LIT_INSTRS + instruction; then the initial writes
    uint8_t mo[LIT_VARS][EVENTS], n_mo[LIT_VARS];
    uint8_t pc[LIT_THREADS], has_ended[LIT_THREADS];
} graph;
typedef uint32_t relation[EVENTS]; // [a]: the set of all b with a -> b

typedef struct search {
    const lit_program *p;
    lit_result *out;
    int is_strict;
    uint64_t *visited;
    int n_visited;
} search;

static uint32_t bit(int i) { return UINT32_C(1) << i; }
static int thread_of(int i) { return i < FIRST_INIT ? i / LIT_INSTRS : -1; }
static int is_sb(const graph *g, int a, int b) {
    if (!g->e[a].exists || !g->e[b].exists || a == b) return 0;
    if (thread_of(a) < 0) return thread_of(b) >= 0;
    return thread_of(a) == thread_of(b) && a < b;
}
static int is_acquire(int o) { return o > __ATOMIC_RELAXED && o != __ATOMIC_RELEASE; }
static int is_release(int o) { return o >= __ATOMIC_RELEASE; }

static void close_transitively(relation r) {
    for (int k = 0; k < EVENTS; k++)
        for (int i = 0; i < EVENTS; i++)
            if (r[i] & bit(k)) r[i] |= r[k];
}
static int has_cycle(relation r) {
    close_transitively(r);
    for (int i = 0; i < EVENTS; i++)
        if (r[i] & bit(i)) return 1;
    return 0;
}
static void compose(const relation a, const relation b, relation out) {
    for (int i = 0; i < EVENTS; i++) {
        out[i] = 0;
        for (int k = 0; k < EVENTS; k++)
            if (a[i] & bit(k)) out[i] |= b[k];
    }
}

// ---- relations

static void make_sb(const graph *g, relation sb) {
    for (int a = 0; a < EVENTS; a++) {
        sb[a] = 0;
        for (int b = 0; b < EVENTS; b++)
            if (is_sb(g, a, b)) sb[a] |= bit(b);
    }
}
// Release side of the head of a release sequence: itself, or fences before it.
static uint32_t release_side(const graph *g, int head) {
    uint32_t set = is_release(g->e[head].order) ? bit(head) : 0;
    for (int f = 0; f < FIRST_INIT; f++)
        if (g->e[f].is_fence && is_release(g->e[f].order) && is_sb(g, f, head) &&
            g->e[head].order != NA)
            set |= bit(f);
    return set;
}
static uint32_t acquire_side(const graph *g, int r) {
    uint32_t set = is_acquire(g->e[r].order) ? bit(r) : 0;
    for (int f = 0; f < FIRST_INIT; f++)
        if (g->e[f].is_fence && is_acquire(g->e[f].order) && is_sb(g, r, f) && g->e[r].order != NA)
            set |= bit(f);
    return set;
}
static void add_sw(const graph *g, relation sw) {
    for (int r = 0; r < FIRST_INIT; r++) {
        if (!g->e[r].exists || !g->e[r].reads) continue;
        uint32_t to = acquire_side(g, r);
        for (int w = g->e[r].rf; w < FIRST_INIT; w = g->e[w].rf) {
            uint32_t from = release_side(g, w);
            for (int a = 0; a < FIRST_INIT; a++)
                if (from & bit(a)) sw[a] |= to;
            if (!g->e[w].reads) break; // a release sequence goes on through rmws only
        }
    }
}
static int mo_pos(const graph *g, int w) {
    int v = g->e[w].var, i = 0;
    while (g->mo[v][i] != w) i++;
    return i;
}
static void make_eco(const graph *g, relation eco) {
    memset(eco, 0, sizeof(relation));
    for (int v = 0; v < LIT_VARS; v++)
        for (int i = 0; i + 1 < g->n_mo[v]; i++) eco[g->mo[v][i]] |= bit(g->mo[v][i + 1]);
    for (int r = 0; r < FIRST_INIT; r++) {
        if (!g->e[r].exists || !g->e[r].reads) continue;
        int w = g->e[r].rf, v = g->e[r].var, next = mo_pos(g, w) + 1;
        eco[w] |= bit(r);
        if (next < g->n_mo[v] && g->mo[v][next] == r) next++; // an rmw does not come before itself
        if (next < g->n_mo[v]) eco[r] |= bit(g->mo[v][next]);
    }
    close_transitively(eco);
}

// ---- axioms

static int is_atomic(const graph *g) {
    for (int u = 0; u < FIRST_INIT; u++)
        if (g->e[u].exists && g->e[u].reads && g->e[u].writes &&
            mo_pos(g, u) != mo_pos(g, g->e[u].rf) + 1)
            return 0;
    return 1;
}
static int is_coherent(const relation hb, const relation eco) {
    for (int a = 0; a < EVENTS; a++) {
        if (hb[a] & bit(a)) return 0;
        for (int b = 0; b < EVENTS; b++)
            if ((hb[a] & bit(b)) && (eco[b] & bit(a))) return 0;
    }
    return 1;
}
static int is_sc(const graph *g, int i) {
    return g->e[i].exists && g->e[i].order == __ATOMIC_SEQ_CST;
}

// For an event: the seq_cst operations that stand for it in the order of all of them. The event
// itself; fences that happen before it (`is_from`), or after it.
static uint32_t stands_for(const graph *g, const relation hb, int i, int is_from) {
    uint32_t set = is_sc(g, i) ? bit(i) : 0;
    for (int f = 0; f < FIRST_INIT; f++)
        if (is_sc(g, f) && g->e[f].is_fence && (is_from ? hb[f] & bit(i) : hb[i] & bit(f)))
            set |= bit(f);
    return set;
}
static int is_sc_consistent(const graph *g, const relation sb, const relation sw, const relation hb,
                            const relation eco, int is_strict) {
    relation order, sb_hb, sb_hb_sb;
    compose(sb, hb, sb_hb);
    compose(sb_hb, sb, sb_hb_sb);
    uint32_t all_sc = 0;
    for (int i = 0; i < FIRST_INIT; i++)
        if (is_sc(g, i)) all_sc |= bit(i);
    if (!all_sc) return 1;
    for (int a = 0; a < EVENTS; a++)
        order[a] = is_sc(g, a) ? (sb[a] | sb_hb_sb[a] | sw[a]) & all_sc : 0;
    for (int a = 0; a < EVENTS; a++) {
        if (!eco[a]) continue;
        uint32_t from = stands_for(g, hb, a, 1), to = 0;
        for (int b = 0; b < EVENTS && from; b++)
            if (eco[a] & bit(b)) to |= stands_for(g, hb, b, 0);
        for (int f = 0; f < FIRST_INIT; f++)
            if (from & bit(f)) order[f] |= to;
    }
    if (is_strict) {
        for (int a = 0; a < EVENTS; a++) order[a] |= sb[a];
        for (int r = 0; r < FIRST_INIT; r++)
            if (g->e[r].exists && g->e[r].reads) order[g->e[r].rf] |= bit(r);
    }
    return !has_cycle(order);
}
static int has_race(const graph *g, const relation hb) {
    for (int a = 0; a < FIRST_INIT; a++)
        for (int b = a + 1; b < FIRST_INIT; b++) {
            const event *x = &g->e[a], *y = &g->e[b];
            if (!x->exists || !y->exists || x->is_fence || y->is_fence || x->var != y->var)
                continue;
            if (!(x->writes | y->writes) || (x->order != NA && y->order != NA)) continue;
            if (thread_of(a) != thread_of(b) && !(hb[a] & bit(b)) && !(hb[b] & bit(a))) return 1;
        }
    return 0;
}
static int is_consistent(const graph *g, int is_strict, int *is_racy) {
    relation sb, sw, hb, eco;
    make_sb(g, sb);
    memset(sw, 0, sizeof sw);
    add_sw(g, sw);
    for (int i = 0; i < EVENTS; i++) hb[i] = sb[i] | sw[i];
    close_transitively(hb);
    make_eco(g, eco);
    if (!is_atomic(g) || !is_coherent(hb, eco)) return 0;
    if (!is_sc_consistent(g, sb, sw, hb, eco, is_strict)) return 0;
    *is_racy = has_race(g, hb);
    return 1;
}

// ---- all graphs

static uint64_t hash_of(const graph *g) {
    uint64_t h = 1469598103934665603u;
    const unsigned char *c = (const unsigned char *)g;
    for (size_t i = 0; i < sizeof *g; i++) h = (h ^ c[i]) * 1099511628211u;
    return h ? h : 1;
}
static int visit(search *s, const graph *g) {
    uint64_t h = hash_of(g), at = h % VISITED_CAP;
    for (; s->visited[at]; at = (at + 1) % VISITED_CAP)
        if (s->visited[at] == h) return 0;
    s->visited[at] = h;
    if (++s->n_visited > VISITED_CAP / 2) {
        fprintf(stderr, "limit: litmus program with too many graphs\n");
        exit(2);
    }
    return 1;
}
static void add_outcome(lit_result *out, const char *text) {
    int at = 0;
    while (at < out->n_outcomes && strcmp(out->outcomes[at], text) < 0) at++;
    if (at < out->n_outcomes && !strcmp(out->outcomes[at], text)) return;
    if (out->n_outcomes == LIT_OUTCOMES) {
        fprintf(stderr, "limit: litmus program with too many outcomes\n");
        exit(2);
    }
    memmove(out->outcomes[at + 1], out->outcomes[at], (size_t)(out->n_outcomes++ - at) * LIT_TEXT);
    snprintf(out->outcomes[at], LIT_TEXT, "%s", text);
}
static void note_complete(search *s, const graph *g) {
    lit_values values;
    int finals[LIT_VARS];
    char text[LIT_TEXT];
    for (int i = 0; i < FIRST_INIT; i++)
        values[i / LIT_INSTRS][i % LIT_INSTRS] =
            (int8_t)(g->e[i].exists && g->e[i].reads ? g->e[i].rval : -1);
    for (int v = 0; v < LIT_VARS; v++) finals[v] = g->e[g->mo[v][g->n_mo[v] - 1]].wval;
    lit_outcome_text(s->p, values, finals, text);
    add_outcome(s->out, text);
    s->out->n_graphs++;
}
static void extend(search *s, const graph *g);
static void accept(search *s, const graph *g) {
    int is_racy = 0;
    if (!is_consistent(g, s->is_strict, &is_racy) || !visit(s, g)) return;
    s->out->is_racy |= is_racy;
    extend(s, g);
}
static void insert(graph *g, int w, int pos) {
    int v = g->e[w].var;
    memmove(&g->mo[v][pos + 1], &g->mo[v][pos], (size_t)(g->n_mo[v]++ - pos));
    g->mo[v][pos] = (uint8_t)w;
}
static void add_read(search *s, const graph *g, const lit_instr *in, int i, int w) {
    graph next = *g;
    event *e = &next.e[i];
    e->reads = 1;
    e->rf = (uint8_t)w;
    e->rval = next.e[w].wval;
    if (in->kind == LIT_CAS && e->rval != in->a)
        e->order = (int8_t)in->failure;
    else if (in->kind != LIT_LOAD) {
        e->writes = 1;
        e->wval = in->kind == LIT_ADD    ? (int8_t)(e->rval + in->a)
                  : in->kind == LIT_XCHG ? in->a
                                         : in->b;
        insert(&next, i, mo_pos(&next, w) + 1);
    }
    accept(s, &next);
}
static int last_read(const graph *g, int thread) {
    for (int i = g->pc[thread] - 1; i >= 0; i--)
        if (g->e[thread * LIT_INSTRS + i].reads) return g->e[thread * LIT_INSTRS + i].rval;
    return -1;
}
static void execute(search *s, const graph *g, int thread) {
    graph next = *g;
    int pc = next.pc[thread]++, i = thread * LIT_INSTRS + pc;
    const lit_instr *in = &s->p->code[thread][pc];
    event *e = &next.e[i];
    if (in->kind == LIT_END || (in->kind == LIT_IF && last_read(g, thread) != in->a)) {
        next.has_ended[thread] = 1;
        accept(s, &next);
        return;
    }
    if (in->kind == LIT_IF) {
        accept(s, &next);
        return;
    }
    e->exists = 1;
    e->var = in->var;
    e->order = in->var >= LIT_FIRST_PLAIN ? NA : (int8_t)in->order;
    if (in->kind == LIT_FENCE) {
        e->is_fence = 1;
        e->order = (int8_t)in->order;
        accept(s, &next);
    } else if (in->kind == LIT_STORE) {
        e->writes = 1;
        e->wval = in->a;
        for (int pos = 1; pos <= g->n_mo[in->var]; pos++) {
            graph with = next;
            insert(&with, i, pos);
            accept(s, &with);
        }
    } else {
        for (int k = 0; k < g->n_mo[in->var]; k++) add_read(s, &next, in, i, g->mo[in->var][k]);
    }
}
static void extend(search *s, const graph *g) {
    int is_complete = 1;
    for (int t = 0; t < s->p->n_threads; t++) {
        if (g->has_ended[t]) continue;
        is_complete = 0;
        execute(s, g, t);
    }
    if (is_complete) note_complete(s, g);
}
void lit_decide(const lit_program *p, int is_strict, lit_result *out) {
    search s = {.p = p, .out = out, .is_strict = is_strict};
    static graph g;
    memset(&g, 0, sizeof g);
    memset(out, 0, sizeof *out);
    s.visited = calloc(VISITED_CAP, sizeof *s.visited);
    if (!s.visited) exit(2);
    for (int v = 0; v < LIT_VARS; v++) {
        g.e[FIRST_INIT + v] = (event){.exists = 1,
                                      .writes = 1,
                                      .var = (uint8_t)v,
                                      .order = v >= LIT_FIRST_PLAIN ? NA : __ATOMIC_RELAXED};
        g.mo[v][g.n_mo[v]++] = (uint8_t)(FIRST_INIT + v);
    }
    extend(&s, &g);
    free(s.visited);
}
