// SPDX-License-Identifier: MIT OR 0BSD
// The litmus table: what the checker itself is checked with. Threads are separated by |, their
// instructions by ; and everything is 0 at first:
//
//     x            load, the value is part of the outcome      x=1       store
//     x+1          fetch_add                                   x<1       exchange
//     x?0>1        strong compare_exchange, 0 to 1             F.sc      fence
//     if1          ends the thread unless its last read gave 1
//     :xy          at the end: the final values are part of the outcome
//     .acq .rel .ar .sc  order, relaxed if none; /acq: of a failing compare_exchange
//     D, E         plain variables
//
// An outcome lists what each thread's reads gave, - for those not executed: "10,01:2".
// The table names one outcome per program and the verdict on it as the literature has it. That is
// the lesser part: of every program, the complete set of outcomes and the number of execution
// graphs must be those that the axioms give (litmus_axioms.c). So must those of random programs.
#include "litmus.h"
#include "vmc.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum verdict {
    ALLOWED,
    FORBIDDEN,
    RACE,
    NO_RACE,
    GAP,     // RC11 and C++20 allow it, the checker does not: seq_cst order against sb and rf
    LOAD_BUF // C++20 allows it, RC11 and the checker do not: a load reads a store executed later
} verdict;
typedef struct row {
    const char *name, *text, *outcome;
    verdict verdict;
} row;
typedef struct test {
    row row;
    lit_program program;
} test;
static const row table[] = {
    // store buffering
    {"SB", "x=1; y | y=1; x", "0,0", ALLOWED},
    {"SB+rel-acq", "x.rel=1; y.acq | y.rel=1; x.acq", "0,0", ALLOWED},
    {"SB+sc", "x.sc=1; y.sc | y.sc=1; x.sc", "0,0", FORBIDDEN},
    {"SB+sc-stores", "x.sc=1; y.acq | y.sc=1; x.acq", "0,0", ALLOWED},
    {"SB+fences", "x=1; F.sc; y | y=1; F.sc; x", "0,0", FORBIDDEN},
    {"SB+one-fence", "x=1; F.sc; y | y=1; x", "0,0", ALLOWED},
    {"SB+ar-fences", "x=1; F.ar; y | y=1; F.ar; x", "0,0", ALLOWED},
    {"SB+fence+sc", "x=1; F.sc; y | y.sc=1; x.sc", "0,0", FORBIDDEN},
    {"SB+rmws", "x.ar<1; y | y.ar<1; x", "00,00", ALLOWED},
    {"SB+rmws+fences", "x.ar<1; F.sc; y | y.ar<1; F.sc; x", "00,00", FORBIDDEN},
    {"SB+sc-rmws", "x.sc<1; y.sc | y.sc<1; x.sc", "00,00", FORBIDDEN},
    {"SB+own-reads", "x=1; x; y | y=1; y; x", "10,10", ALLOWED},
    {"3.SB", "x=1; y | y=1; z | z=1; x", "0,0,0", ALLOWED},
    {"3.SB+fences", "x=1; F.sc; y | y=1; F.sc; z | z=1; F.sc; x", "0,0,0", FORBIDDEN},
    // message passing
    {"MP", "x=1; y=1 | y; x", "10", ALLOWED},
    {"MP+rel-acq", "x=1; y.rel=1 | y.acq; x", "10", FORBIDDEN},
    {"MP+rel", "x=1; y.rel=1 | y; x", "10", ALLOWED},
    {"MP+acq", "x=1; y=1 | y.acq; x", "10", ALLOWED},
    {"MP+fences", "x=1; F.rel; y=1 | y; F.acq; x", "10", FORBIDDEN},
    {"MP+rel+acq-fence", "x=1; y.rel=1 | y; F.acq; x", "10", FORBIDDEN},
    {"MP+rel-fence+acq", "x=1; F.rel; y=1 | y.acq; x", "10", FORBIDDEN},
    {"MP+rel-fence", "x=1; F.rel; y=1 | y; x", "10", ALLOWED},
    {"MP+acq-fence", "x=1; y=1 | y; F.acq; x", "10", ALLOWED},
    {"MP+rel-fence-late", "x=1; y=1; F.rel | y; F.acq; x", "10", ALLOWED},
    {"MP+acq-fence-early", "x=1; F.rel; y=1 | F.acq; y; x", "10", ALLOWED},
    {"MP+sc-fences", "x=1; F.sc; y=1 | y; F.sc; x", "10", FORBIDDEN},
    {"MP+rmw", "x=1; y.rel+1 | y.acq; x", "0,10", FORBIDDEN},
    {"MP+plain", "D=1; y.rel=1 | y.acq; if1; D", "11", NO_RACE},
    {"MP+plain+rlx", "D=1; y=1 | y.acq; if1; D", "11", RACE},
    {"MP+plain+fences", "D=1; F.rel; y=1 | y; if1; F.acq; D", "11", NO_RACE},
    {"MP+plain+rel-fence", "D=1; F.rel; y=1 | y; if1; D", "11", RACE},
    // load buffering: the checker does not execute a load before the store that it reads
    {"LB", "x; y=1 | y; x=1", "1,1", LOAD_BUF},
    {"LB+rel-acq", "x.acq; y.rel=1 | y.acq; x.rel=1", "1,1", FORBIDDEN},
    {"LB+control", "x; if1; y=1 | y; if1; x=1", "1,1", FORBIDDEN},
    // independent reads of independent writes
    {"IRIW", "x=1 | y=1 | x; y | y; x", "10,10", ALLOWED},
    {"IRIW+rel-acq", "x.rel=1 | y.rel=1 | x.acq; y.acq | y.acq; x.acq", "10,10", ALLOWED},
    {"IRIW+sc", "x.sc=1 | y.sc=1 | x.sc; y.sc | y.sc; x.sc", "10,10", FORBIDDEN},
    {"IRIW+fences", "x=1 | y=1 | x; F.sc; y | y; F.sc; x", "10,10", FORBIDDEN},
    // causality through a third thread
    {"WRC", "x=1 | x; y=1 | y; x", "1,10", ALLOWED},
    {"WRC+rel-acq", "x=1 | x.acq; y.rel=1 | y.acq; x", "1,10", FORBIDDEN},
    {"WRC+acq", "x=1 | x.acq; y=1 | y.acq; x", "1,10", ALLOWED},
    {"RWC+fences", "x=1 | x; F.sc; y | y=1; F.sc; x", "10,0", FORBIDDEN},
    {"RWC+sc", "x.sc=1 | x.sc; y.sc | y.sc=1; x.sc", "10,0", FORBIDDEN},
    {"W+RWC+fences", "x=1; y.rel=1 | y.acq; F.sc; z | z=1; F.sc; x", "10,0", FORBIDDEN},
    {"ISA2", "x=1; y.rel=1 | y.acq; z.rel=1 | z.acq; x", "1,10", FORBIDDEN},
    {"ISA2+rlx", "x=1; y.rel=1 | y; z.rel=1 | z.acq; x", "1,10", ALLOWED},
    {"ISA2+plain", "D=1; x.rel=1 | x.acq; if1; y.rel=1 | y.acq; if1; D", "1,11", NO_RACE},
    // writes against writes
    {"R", "x=1; y=1 | y=2; x :y", "0:2", ALLOWED},
    {"R+sc", "x.sc=1; y.sc=1 | y.sc=2; x.sc :y", "0:2", FORBIDDEN},
    {"R+fences", "x=1; F.sc; y=1 | y=2; F.sc; x :y", "0:2", FORBIDDEN},
    {"S", "x=2; y=1 | y; x=1 :x", "1:2", ALLOWED},
    {"S+rel-acq", "x=2; y.rel=1 | y.acq; x=1 :x", "1:2", FORBIDDEN},
    {"S+fences", "x=2; F.rel; y=1 | y; F.acq; x=1 :x", "1:2", FORBIDDEN},
    {"2+2W", "x=1; y=2 | y=1; x=2 :xy", ":11", ALLOWED},
    {"2+2W+rel", "x.rel=1; y.rel=2 | y.rel=1; x.rel=2 :xy", ":11", ALLOWED},
    {"2+2W+sc", "x.sc=1; y.sc=2 | y.sc=1; x.sc=2 :xy", ":11", FORBIDDEN},
    {"2+2W+fences", "x=1; F.sc; y=2 | y=1; F.sc; x=2 :xy", ":11", FORBIDDEN},
    {"Z6.3", "x=1; y=1 | y=2; z=1 | z; x :y", "10:2", ALLOWED},
    {"Z6.3+fences", "x=1; F.sc; y=1 | y=2; F.sc; z=1 | z; F.sc; x :y", "10:2", FORBIDDEN},
    // coherence
    {"CoRR", "x=1 | x; x", "10", FORBIDDEN},
    {"CoRR2", "x=1 | x=2 | x; x | x; x", "12,21", FORBIDDEN},
    {"CoWW", "x=1; x=2 :x", ":1", FORBIDDEN},
    {"CoRW1", "x; x=1", "1", FORBIDDEN},
    {"CoRW2", "x; x=1 | x=2 :x", "2:2", FORBIDDEN},
    {"CoWR", "x=1; x | x=2 :x", "2:1", FORBIDDEN},
    // read-modify-write
    {"RMW+atomic", "x+1 | x+1 :x", "0,0:1", FORBIDDEN},
    {"RMW+atomic-3", "x+1 | x+1 | x+1", "0,0,1", FORBIDDEN},
    {"RMW+store", "x+1 | x=5 :x", "0:6", FORBIDDEN},
    {"RMW+store-between", "x+1 | x=5 :x", "0:5", ALLOWED},
    {"CAS+one-winner", "x?0>1 | x?0>2", "0,0", FORBIDDEN},
    {"CAS+stale-failure", "x=1; y=1 | y; x?2>3", "10", ALLOWED},
    {"CAS+failure-rlx", "x=1; y.rel=1 | y.ar/rlx?5>6; x", "10", ALLOWED},
    {"CAS+failure-acq", "x=1; y.rel=1 | y.ar/acq?5>6; x", "10", FORBIDDEN},
    {"CAS+lock", "x.acq?0>1; if0; D=1; x.rel=0 | x.acq?0>1; if0; D=2; x.rel=0", "0,0", NO_RACE},
    {"CAS+lock-rlx", "x.acq?0>1; if0; D=1; x=0 | x.acq?0>1; if0; D=2; x=0", "0,0", RACE},
    // release sequences
    {"RS+rmw", "x=1; y.rel=1 | y+1 | y.acq; x", "1,20", FORBIDDEN},
    {"RS+fence+rmw", "x=1; F.rel; y=1 | y+1 | y.acq; x", "1,20", FORBIDDEN},
    {"RS+rmw+acq-fence", "x=1; y.rel=1 | y+1 | y; F.acq; x", "1,20", FORBIDDEN},
    {"RS+two-rmws", "x=1; y.rel=1 | y+1 | y+1 | y.acq; x", "1,2,30", FORBIDDEN},
    {"RS+two-heads", "x=1; y.rel+1 | z=1; y.rel+1 | y.acq; x; z", "0,1,201", FORBIDDEN},
    {"RS+own-store", "x=1; y.rel=1; y=2 | y.acq; x", "20", ALLOWED}, // by C++20; RC11: forbidden
    {"RS+other-store", "x=1; y.rel=1 | y; if1; y=2 | y.acq; x", "1,20", ALLOWED},
    // plain accesses
    {"race+ww", "D=1 | D=2", "", RACE},
    {"race+after-release", "x.rel=1; D=1 | x.acq; if1; D", "11", RACE},
    {"race+wr", "D; x=1 | x.acq; if1; D=1", "0,1", RACE},
    {"race+wr+rel", "D; x.rel=1 | x.acq; if1; D=1", "0,1", NO_RACE},
    {"race+fences-only", "D=1; F.sc | F.sc; D", "1", RACE},
    {"race+sc-fences", "D=1; F.sc; x=1 | x; if1; F.sc; D", "11", NO_RACE},
    // where the checker is stricter than the model
    {"fences+rf-chain", "z=1; F.sc; x=1 | x; y=1 | y; F.sc; z", "1,10", GAP},
    {"Z6.U", "x.sc=1; y.rel=1 | y.sc+1; y | y.sc=3; x.sc", "13,0", GAP},
};
enum { N_ROWS = sizeof table / sizeof table[0] };

// ---- notation

static int parse_order(const char **s) {
    static const struct {
        const char *name;
        int order;
    } orders[] = {
        {"acq", __ATOMIC_ACQUIRE}, {"rel", __ATOMIC_RELEASE}, {"ar", __ATOMIC_ACQ_REL},
        {"sc", __ATOMIC_SEQ_CST},  {"rlx", __ATOMIC_RELAXED},
    };
    for (unsigned i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (!strncmp(*s, orders[i].name, strlen(orders[i].name))) {
            *s += strlen(orders[i].name);
            return orders[i].order;
        }
    fprintf(stderr, "litmus: no order at \"%s\"\n", *s);
    exit(2);
}
static int8_t parse_digit(const char **s) { return (int8_t)(*(*s)++ - '0'); }
static uint8_t var_of(char c) {
    const char *all = "xyzwDE", *at = strchr(all, c);
    if (c && at) return (uint8_t)(at - all);
    fprintf(stderr, "litmus: no variable '%c'\n", c);
    exit(2);
}
static const char *parse_instr(const char *s, lit_instr *in) {
    *in = (lit_instr){.kind = LIT_LOAD};
    if (!strncmp(s, "if", 2)) {
        s += 2;
        *in = (lit_instr){.kind = LIT_IF, .a = parse_digit(&s)};
        return s;
    }
    if (*s == 'F')
        in->kind = LIT_FENCE, s++;
    else
        in->var = var_of(*s++);
    if (*s == '.') s++, in->order = (uint8_t)parse_order(&s);
    if (*s == '/') s++, in->failure = (uint8_t)parse_order(&s);
    switch (*s) {
    case '=': in->kind = LIT_STORE; break;
    case '+': in->kind = LIT_ADD; break;
    case '<': in->kind = LIT_XCHG; break;
    case '?': in->kind = LIT_CAS; break;
    default: return s;
    }
    s++;
    in->a = parse_digit(&s);
    if (in->kind == LIT_CAS) s++, in->b = parse_digit(&s);
    return s;
}
static void parse(const char *s, lit_program *p) {
    int n = 0;
    p->n_threads = 1;
    for (; *s && *s != ':'; s += strspn(s, " ;")) {
        if (*s == '|') {
            p->n_threads++;
            n = 0;
            s++;
            continue;
        }
        s = parse_instr(s, &p->code[p->n_threads - 1][n++]);
    }
    if (*s == ':')
        for (s++; *s; s++) p->shows[var_of(*s)] = 1;
}

// ---- outcomes

static int is_read(const lit_instr *in) {
    return in->kind == LIT_LOAD || in->kind == LIT_ADD || in->kind == LIT_XCHG ||
           in->kind == LIT_CAS;
}
void lit_outcome_text(const lit_program *p, lit_values values, const int *finals, char *text) {
    char *c = text, *end = text + LIT_TEXT - 2;
    for (int t = 0; t < p->n_threads; t++) {
        int n = 0;
        for (int i = 0; p->code[t][i].kind != LIT_END && c < end; i++) {
            if (!is_read(&p->code[t][i])) continue;
            if (n++ == 0 && c > text) *c++ = ',';
            *c++ = values[t][i] < 0 ? '-' : (char)('0' + values[t][i]);
        }
    }
    for (int v = 0, n = 0; v < LIT_VARS && c < end; v++) {
        if (!p->shows[v]) continue;
        if (n++ == 0) *c++ = ':';
        *c++ = (char)('0' + finals[v]);
    }
    *c = 0;
}
static lit_values read_values;
const lit_program *lit_current(void) { return &((const test *)vmc_current()->arg)->program; }
void lit_begin(void) { memset(read_values, -1, sizeof read_values); }
void lit_read(int thread, int instr, int value) { read_values[thread][instr] = (int8_t)value; }
void lit_finish(const int *vars) {
    char text[LIT_TEXT];
    lit_outcome_text(lit_current(), read_values, vars, text);
    vmc_outcome("%s", text);
}

// ---- verdicts

static int has_outcome(const lit_result *r, const char *text) {
    for (int i = 0; i < r->n_outcomes; i++)
        if (!strcmp(r->outcomes[i], text)) return 1;
    return 0;
}
static char complaint[300];
static const char *complain(const char *what, const char *outcome) {
    snprintf(complaint, sizeof complaint, "%s: %s", what, outcome);
    return complaint;
}
// Does the table say of the named outcome what the axioms say?
static const char *judge_axioms(const row *r, const lit_result *all, const lit_result *strict) {
    int is_allowed = has_outcome(all, r->outcome), is_shown = has_outcome(strict, r->outcome);
    switch (r->verdict) {
    case ALLOWED: return is_shown ? NULL : complain("the axioms forbid", r->outcome);
    case FORBIDDEN:
    case LOAD_BUF: return is_allowed ? complain("the axioms allow", r->outcome) : NULL;
    case RACE: return strict->is_racy ? NULL : "the axioms find no race";
    case NO_RACE: return strict->is_racy ? "the axioms find a race" : NULL;
    case GAP: return is_allowed && !is_shown ? NULL : complain("is no such gap", r->outcome);
    }
    return NULL;
}
// Did the checker see what the axioms, in the checker's strictness, say?
static const char *judge_result(const lit_result *strict, const vmc_result *seen) {
    for (int i = 0, k = 0; i < strict->n_outcomes || k < seen->n_outcomes; i++, k++) {
        const char *want = i < strict->n_outcomes ? strict->outcomes[i] : "~";
        const char *got = k < seen->n_outcomes ? seen->outcomes[k].text : "~";
        int order = strcmp(want, got);
        if (order < 0) return complain("allowed, but not found", want);
        if (order > 0) return complain("found, but forbidden", got);
    }
    if (strict->n_graphs == seen->n_graphs) return NULL;
    snprintf(complaint, sizeof complaint, "%llu execution graphs, the axioms give %llu",
             (unsigned long long)seen->n_graphs, (unsigned long long)strict->n_graphs);
    return complaint;
}
static const char *judge(const vmc_scenario *s, const vmc_result *seen) {
    static lit_result all, strict;
    const test *t = s->arg;
    lit_decide(&t->program, 0, &all);
    lit_decide(&t->program, 1, &strict);
    const char *wrong = t->row.outcome ? judge_axioms(&t->row, &all, &strict) : NULL;
    return wrong ? wrong : judge_result(&strict, seen);
}

// ---- random programs

enum { N_RANDOM = 400, N_RANDOM_LONG = 6000 };
static uint64_t random_state = 1;
static unsigned below(unsigned n) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % n;
}
static const char *random_order(void) {
    static const char *const orders[] = {"", "", ".acq", ".rel", ".ar", ".sc", ".sc"};
    return orders[below(7)];
}
static int random_instr(char *to, size_t size) {
    char var = "xyz"[below(3)];
    const char *order = random_order();
    switch (below(8)) {
    case 0:
    case 1:
    case 2: // a load cannot release, a store cannot acquire
        if (!strcmp(order, ".rel") || !strcmp(order, ".ar")) order = ".acq";
        return snprintf(to, size, "%c%s", var, order);
    case 3:
    case 4:
        if (!strcmp(order, ".acq") || !strcmp(order, ".ar")) order = ".rel";
        return snprintf(to, size, "%c%s=%u", var, order, 1 + below(2));
    case 5: return snprintf(to, size, "%c%s+1", var, order);
    case 6: return snprintf(to, size, "%c.ar/acq?%u>3", var, below(2));
    default: return snprintf(to, size, "F%s", *order ? order : ".sc");
    }
}
// Three threads of two instructions, or two of three.
static void random_program(char *to, size_t size) {
    unsigned threads = 2 + below(2), each = threads == 2 ? 3 : 2;
    size_t n = 0;
    for (unsigned t = 0; t < threads; t++) {
        if (t) n += (size_t)snprintf(to + n, size - n, " | ");
        for (unsigned i = 0; i < each; i++) {
            n += (size_t)random_instr(to + n, size - n);
            n += (size_t)snprintf(to + n, size - n, "%s", i + 1 < each ? "; " : "");
        }
    }
}

// ---- one scenario per row

void lit_run(void);
static void add(test *t, vmc_scenario how) {
    vmc_scenario *s = calloc(1, sizeof *s);
    if (!s) exit(2);
    parse(t->row.text, &t->program);
    *s = how;
    s->name = t->row.name;
    s->run = lit_run;
    s->arg = t;
    vmc_register(s);
}
static void add_random(test *t, int i) {
    char *text = calloc(1, 100);
    if (!text) exit(2);
    random_program(text, 100);
    t->row = (row){.name = text, .text = text};
    int is_long = i >= N_RANDOM;
    add(t, (vmc_scenario){.judge = judge, .is_silent = 1, .is_long = is_long});
    // with a bound there are no axioms to compare with: it must see what it sees without reduction
    if (i % 4 == 0)
        add(t, (vmc_scenario){.class = VMC_BOUNDED,
                              .preemptions = i / 4 % 3,
                              .contests = i / 12 % 2,
                              .is_compared = 1,
                              .is_silent = 1,
                              .is_long = is_long});
    if (i % 4 == 1)
        add(t, (vmc_scenario){.stale_reads = i % 8 == 1 ? 1 : VMC_NO_STALE,
                              .is_compared = 1,
                              .is_silent = 1,
                              .is_long = is_long});
}
__attribute__((constructor)) static void add_all(void) {
    static test tests[N_ROWS], random_tests[N_RANDOM_LONG];
    for (int i = 0; i < N_ROWS; i++) {
        tests[i].row = table[i];
        add(&tests[i], (vmc_scenario){.judge = judge,
                                      .must_fail = table[i].verdict == RACE ? "data race" : NULL});
    }
    for (int i = 0; i < N_RANDOM_LONG; i++) add_random(&random_tests[i], i);
}
