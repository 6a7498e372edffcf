// SPDX-License-Identifier: MIT OR 0BSD
// Model threads: stacks of their own in one thread of the system. A switch saves the registers that
// a call preserves; x86-64 and AArch64 have it in assembly (15 ns), others use ucontext.
#include "internal.h"

#if defined(__x86_64__)
// void fiber_swap(void **save_sp, void *sp)
__asm__(".text\n.globl fiber_swap\n.type fiber_swap,@function\nfiber_swap:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp,(%rdi)\n mov %rsi,%rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        ".size fiber_swap,.-fiber_swap\n");
enum { SAVED_WORDS = 6, ENTRY_WORD = 6, FRAME_WORDS = 8 };
#elif defined(__aarch64__)
__asm__(".text\n.globl fiber_swap\n.type fiber_swap,%function\nfiber_swap:\n"
        "sub sp,sp,#160\n"
        "stp x19,x20,[sp]\n stp x21,x22,[sp,#16]\n stp x23,x24,[sp,#32]\n"
        "stp x25,x26,[sp,#48]\n stp x27,x28,[sp,#64]\n stp x29,x30,[sp,#80]\n"
        "stp d8,d9,[sp,#96]\n stp d10,d11,[sp,#112]\n stp d12,d13,[sp,#128]\n"
        "stp d14,d15,[sp,#144]\n"
        "mov x9,sp\n str x9,[x0]\n mov sp,x1\n"
        "ldp x19,x20,[sp]\n ldp x21,x22,[sp,#16]\n ldp x23,x24,[sp,#32]\n"
        "ldp x25,x26,[sp,#48]\n ldp x27,x28,[sp,#64]\n ldp x29,x30,[sp,#80]\n"
        "ldp d8,d9,[sp,#96]\n ldp d10,d11,[sp,#112]\n ldp d12,d13,[sp,#128]\n"
        "ldp d14,d15,[sp,#144]\n"
        "add sp,sp,#160\n ret\n"
        ".size fiber_swap,.-fiber_swap\n");
enum { SAVED_WORDS = 20, ENTRY_WORD = 11, FRAME_WORDS = 20 };
#else
#    define USE_UCONTEXT 1
#    include <ucontext.h>
#endif

#ifndef USE_UCONTEXT
void fiber_swap(void **save_sp, void *sp);
static void *runner;

void fiber_prepare(int tid, void (*entry)(void)) {
    void **top = (void **)(void *)(stack_of(tid) + STACK_SIZE);
    void **sp = top - FRAME_WORDS - 8; // the entry finds its stack aligned as after a call
    memset(sp, 0, (FRAME_WORDS + 8) * sizeof *sp);
    memcpy(&sp[ENTRY_WORD], &entry, sizeof entry);
    vm.threads[tid].fiber = sp;
}
static void swap(void **from, void *to) { fiber_swap(from, to); }
static uintptr_t sp_of(const thread *t) { return (uintptr_t)t->fiber; }
#else
static ucontext_t contexts[THREADS], runner_context;
static void *runner = &runner_context;

void fiber_prepare(int tid, void (*entry)(void)) {
    getcontext(&contexts[tid]);
    contexts[tid].uc_stack.ss_sp = stack_of(tid);
    contexts[tid].uc_stack.ss_size = STACK_SIZE;
    makecontext(&contexts[tid], entry, 0);
    vm.threads[tid].fiber = &contexts[tid];
}
static void swap(void **from, void *to) {
    static ucontext_t forgotten;
    swapcontext(*from ? *from : &forgotten, to);
}
static uintptr_t sp_of(const thread *t) {
    (void)t;
    return 0;
} // not known: nothing is below
#endif

void fiber_run_execution(void) { swap(&runner, vm.threads[0].fiber); }
void fiber_switch(int from, int to) {
    static void *unused; // of a thread that has ended
    if (from >= 0) vm.threads[from].saved_errno = errno;
    errno = vm.threads[to].saved_errno;
    swap(from >= 0 ? &vm.threads[from].fiber : &unused, vm.threads[to].fiber);
}
_Noreturn void fiber_leave(void) {
    static void *unused;
    swap(&unused, runner);
    abort();
}
// A thread that has been switched away from uses nothing below its stack pointer.
int fiber_is_below(uintptr_t addr) {
    int tid = (int)((addr - (uintptr_t)stack_of(0)) / STACK_SIZE);
    if (tid == vm.current || tid >= vm.n_threads) return 0;
    return vm.threads[tid].state == ENDED || addr < sp_of(&vm.threads[tid]);
}
