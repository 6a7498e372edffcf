// SPDX-License-Identifier: MIT OR 0BSD
// Litmus tests: tiny programs with known outcomes. litmus_table.c has the table and its notation,
// litmus_axioms.c derives the allowed outcomes of each program from the axioms of the memory model,
// and model_litmus.c executes it under the checker. The two must agree.
#ifndef VMC_LITMUS_H
#define VMC_LITMUS_H

#include <stdint.h>

enum { LIT_THREADS = 4, LIT_INSTRS = 6, LIT_VARS = 6, LIT_FIRST_PLAIN = 4, LIT_TEXT = 40 };
typedef enum lit_kind {
    LIT_END,
    LIT_LOAD,
    LIT_STORE,
    LIT_ADD,
    LIT_XCHG,
    LIT_CAS,
    LIT_FENCE,
    LIT_IF
} lit_kind;
typedef struct lit_instr {
    uint8_t kind, var, order, failure; // __ATOMIC_...
    int8_t a, b;                       // operands
} lit_instr;
typedef struct lit_program {
    int n_threads;
    lit_instr code[LIT_THREADS][LIT_INSTRS + 1]; // each ends with LIT_END
    uint8_t shows[LIT_VARS];                     // final value is part of the outcome
} lit_program;

enum { LIT_OUTCOMES = 512 };
typedef struct lit_result { // the allowed outcomes of a program
    int n_outcomes, is_racy;
    uint64_t n_graphs;
    char outcomes[LIT_OUTCOMES][LIT_TEXT]; // sorted
} lit_result;

// With `is_strict`, the order of seq_cst operations may not contradict sb and rf: the outcomes that
// the checker, which executes operations in that order, can show.
void lit_decide(const lit_program *p, int is_strict, lit_result *out);

// The value of each read of an execution; -1: not executed.
typedef int8_t lit_values[LIT_THREADS][LIT_INSTRS];
void lit_outcome_text(const lit_program *p, lit_values values, const int *finals, char *text);

// For model_litmus.c, outside the memory that the checker tracks.
const lit_program *lit_current(void);
void lit_begin(void);
void lit_read(int thread, int instr, int value);
void lit_finish(const int *vars);

#endif // VMC_LITMUS_H
