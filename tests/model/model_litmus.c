// SPDX-License-Identifier: MIT OR 0BSD
// Executes a litmus program (litmus_table.c) with the compiler's atomic built-ins, whose orders
// must be constants: hence a switch for each.
#include "litmus.h"
#include "vmc.h"

static int vars[LIT_VARS];
void lit_run(void);

#define BY_ORDER(order_, OP_)                                                                      \
    switch (order_) {                                                                              \
    case __ATOMIC_ACQUIRE: OP_(__ATOMIC_ACQUIRE); break;                                           \
    case __ATOMIC_RELEASE: OP_(__ATOMIC_RELEASE); break;                                           \
    case __ATOMIC_ACQ_REL: OP_(__ATOMIC_ACQ_REL); break;                                           \
    case __ATOMIC_SEQ_CST: OP_(__ATOMIC_SEQ_CST); break;                                           \
    default: OP_(__ATOMIC_RELAXED); break;                                                         \
    }

static int load(const int *x, int order) {
    switch (order) {
    case __ATOMIC_ACQUIRE: return __atomic_load_n(x, __ATOMIC_ACQUIRE);
    case __ATOMIC_SEQ_CST: return __atomic_load_n(x, __ATOMIC_SEQ_CST);
    default: return __atomic_load_n(x, __ATOMIC_RELAXED);
    }
}
static void store(int *x, int value, int order) {
    switch (order) {
    case __ATOMIC_RELEASE: __atomic_store_n(x, value, __ATOMIC_RELEASE); break;
    case __ATOMIC_SEQ_CST: __atomic_store_n(x, value, __ATOMIC_SEQ_CST); break;
    default: __atomic_store_n(x, value, __ATOMIC_RELAXED); break;
    }
}
static int add(int *x, int value, int order) {
    int old = 0;
#define ADD(order_) old = __atomic_fetch_add(x, value, order_)
    BY_ORDER(order, ADD)
    return old;
}
static int exchange(int *x, int value, int order) {
    int old = 0;
#define EXCHANGE(order_) old = __atomic_exchange_n(x, value, order_)
    BY_ORDER(order, EXCHANGE)
    return old;
}
#define CAS(order_, failure_)                                                                      \
    __atomic_compare_exchange_n(x, &expected, desired, 0, order_, failure_)
static int compare_exchange(int *x, int expected, int desired, int order, int failure) {
#define CAS_RLX(order_) CAS(order_, __ATOMIC_RELAXED)
    if (failure == __ATOMIC_RELAXED)
        BY_ORDER(order, CAS_RLX)
    else if (order == __ATOMIC_ACQUIRE)
        CAS(__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    else if (order == __ATOMIC_ACQ_REL)
        CAS(__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    else
        CAS(__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
static void fence(int order) {
#define FENCE(order_) __atomic_thread_fence(order_)
    BY_ORDER(order, FENCE)
}

static int execute(const lit_instr *in) {
    int *x = &vars[in->var];
    switch (in->kind) {
    case LIT_ADD: return add(x, in->a, in->order);
    case LIT_XCHG: return exchange(x, in->a, in->order);
    case LIT_CAS: return compare_exchange(x, in->a, in->b, in->order, in->failure);
    default: return in->var >= LIT_FIRST_PLAIN ? *x : load(x, in->order);
    }
}
static void run_thread(void *arg) {
    int thread = (int)(intptr_t)arg, last = -1;
    const lit_instr *code = lit_current()->code[thread];
    for (int i = 0; code[i].kind != LIT_END; i++) {
        const lit_instr *in = &code[i];
        if (in->kind == LIT_IF) {
            if (last != in->a) return;
        } else if (in->kind == LIT_FENCE) {
            fence(in->order);
        } else if (in->kind == LIT_STORE) {
            if (in->var >= LIT_FIRST_PLAIN)
                vars[in->var] = in->a;
            else
                store(&vars[in->var], in->a, in->order);
        } else {
            last = execute(in);
            lit_read(thread, i, last);
        }
    }
}
void lit_run(void) {
    int n = lit_current()->n_threads, t[LIT_THREADS];
    lit_begin();
    for (int i = 0; i < n; i++) t[i] = vmc_spawn(run_thread, (void *)(intptr_t)i);
    for (int i = 0; i < n; i++) vmc_join(t[i]);
    lit_finish(vars);
}
