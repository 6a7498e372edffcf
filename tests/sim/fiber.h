// SPDX-License-Identifier: MIT OR 0BSD
// Fibers: stacks of their own in one OS thread, switched by hand. Part of sim.h, first of all.
//
//     fiber_context main_, f;
//     fiber_init(&f, stack, size, entry);  // entry(void) never returns
//     fiber_switch(&main_, &f);            // runs entry until it switches back
//
// Assembly for x86-64 and AArch64, 5 ns a switch; elsewhere, or with -DFIBER_PORTABLE, ucontext.
#ifndef VOLT_SIM_FIBER_H
#define VOLT_SIM_FIBER_H

#include <stddef.h>
#include <stdint.h>

typedef void fiber_entry(void);

#if !defined(FIBER_PORTABLE) && (defined(__x86_64__) || defined(__aarch64__))

typedef struct fiber_context {
    void *sp; // where the registers that a call preserves have been saved
} fiber_context;

extern void fiber_asm_switch(void **save, void *load) __asm__("fiber_asm_switch");
#    ifdef __x86_64__
__asm__(".text\n"
        ".type fiber_asm_switch, @function\n"
        "fiber_asm_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n"
        "    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n"
        "    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size fiber_asm_switch, . - fiber_asm_switch\n");
enum { FIBER_RETURN = 6, FIBER_FRAME = 8 }; // words: of a new stack, and where `entry` goes
#    else
__asm__(".text\n"
        ".type fiber_asm_switch, %function\n"
        "fiber_asm_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fiber_asm_switch, . - fiber_asm_switch\n");
enum { FIBER_RETURN = 11, FIBER_FRAME = 22 };
#    endif

static inline void fiber_init(fiber_context *f, void *stack, size_t size, fiber_entry *entry) {
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    uintptr_t *sp = (uintptr_t *)(void *)((char *)stack + (top - (uintptr_t)stack)) - FIBER_FRAME;
    for (int i = 0; i < FIBER_FRAME; i++) sp[i] = 0; // also the return address of `entry`: none
    sp[FIBER_RETURN] = (uintptr_t)entry;
    f->sp = sp;
}
static inline void fiber_switch(fiber_context *from, fiber_context *to) {
    fiber_asm_switch(&from->sp, to->sp);
}

#else
#    include <ucontext.h>

typedef struct fiber_context {
    ucontext_t u;
} fiber_context;

static inline void fiber_init(fiber_context *f, void *stack, size_t size, fiber_entry *entry) {
    getcontext(&f->u);
    f->u.uc_stack.ss_sp = stack;
    f->u.uc_stack.ss_size = size;
    f->u.uc_link = NULL;
    makecontext(&f->u, entry, 0);
}
static inline void fiber_switch(fiber_context *from, fiber_context *to) {
    swapcontext(&from->u, &to->u);
}
#endif

#endif // VOLT_SIM_FIBER_H
