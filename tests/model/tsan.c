// SPDX-License-Identifier: MIT OR 0BSD
// Where the compiler's calls arrive. Code compiled with -fsanitize=thread calls a function for each
// plain access, atomic operation and fence; linked without the sanitizer's library, it calls these.
#include "internal.h"

#define PC() __builtin_return_address(0)

// ---- plain accesses

#define PLAIN(name_, size_, is_write_)                                                             \
    void __tsan_##name_(void *addr);                                                               \
    void __tsan_##name_(void *addr) {                                                              \
        vm.pc = PC();                                                                              \
        plain_access((uintptr_t)addr, size_, is_write_);                                           \
    }
#define PLAIN_OF_SIZE(n_)                                                                          \
    PLAIN(read##n_, n_, 0)                                                                         \
    PLAIN(write##n_, n_, 1)                                                                        \
    PLAIN(read_write##n_, n_, 1)                                                                   \
    PLAIN(unaligned_read##n_, n_, 0)                                                               \
    PLAIN(unaligned_write##n_, n_, 1)                                                              \
    PLAIN(unaligned_read_write##n_, n_, 1)                                                         \
    PLAIN(volatile_read##n_, n_, 0)                                                                \
    PLAIN(volatile_write##n_, n_, 1)                                                               \
    PLAIN(unaligned_volatile_read##n_, n_, 0)                                                      \
    PLAIN(unaligned_volatile_write##n_, n_, 1)
PLAIN_OF_SIZE(1)
PLAIN_OF_SIZE(2)
PLAIN_OF_SIZE(4)
PLAIN_OF_SIZE(8)
PLAIN_OF_SIZE(16)

#define RANGE(name_, is_write_)                                                                    \
    void __tsan_##name_(void *addr, unsigned long size);                                           \
    void __tsan_##name_(void *addr, unsigned long size) {                                          \
        vm.pc = PC();                                                                              \
        plain_access((uintptr_t)addr, size, is_write_);                                            \
    }
RANGE(read_range, 0)
RANGE(write_range, 1)

// The Makefile gives these names to the calls of memset, memcpy and memmove in scenario objects.
void *vmc_memset(void *to, int c, size_t n);
void *vmc_memset(void *to, int c, size_t n) {
    vm.pc = PC();
    plain_access((uintptr_t)to, n, 1);
    return memset(to, c, n);
}
void *vmc_memmove(void *to, const void *from, size_t n);
void *vmc_memmove(void *to, const void *from, size_t n) {
    vm.pc = PC();
    plain_access((uintptr_t)from, n, 0);
    plain_access((uintptr_t)to, n, 1);
    return memmove(to, from, n);
}

void *vmc_memcpy(void *to, const void *from, size_t n);
void *vmc_memcpy(void *to, const void *from, size_t n) {
    vm.pc = PC();
    plain_access((uintptr_t)from, n, 0);
    plain_access((uintptr_t)to, n, 1);
    return memcpy(to, from, n);
}

// ---- atomic operations

static uint64_t take_new(uint64_t old, uint64_t x) {
    (void)old;
    return x;
}
static uint64_t add(uint64_t old, uint64_t x) { return old + x; }
static uint64_t sub(uint64_t old, uint64_t x) { return old - x; }
static uint64_t and (uint64_t old, uint64_t x) { return old & x; }
static uint64_t or (uint64_t old, uint64_t x) { return old | x; }
static uint64_t xor (uint64_t old, uint64_t x) { return old ^ x; } static uint64_t
    nand(uint64_t old, uint64_t x) {
    return ~(old & x);
}

#define RMW(bits_, name_, fn_)                                                                     \
    uint##bits_##_t __tsan_atomic##bits_##_##name_(volatile void *a, uint##bits_##_t x,            \
                                                   int order);                                     \
    uint##bits_##_t __tsan_atomic##bits_##_##name_(volatile void *a, uint##bits_##_t x,            \
                                                   int order) {                                    \
        vm.pc = PC();                                                                              \
        return (uint##bits_##_t)memory_rmw((uintptr_t)a, bits_ / 8, fn_, x, order);                \
    }
#define CAS(bits_, name_, is_weak_)                                                                \
    int __tsan_atomic##bits_##_compare_exchange_##name_(                                           \
        volatile void *a, void *expected, uint##bits_##_t desired, int order, int failure);        \
    int __tsan_atomic##bits_##_compare_exchange_##name_(                                           \
        volatile void *a, void *expected, uint##bits_##_t desired, int order, int failure) {       \
        uint##bits_##_t *e = expected;                                                             \
        uint64_t old = *e;                                                                         \
        vm.pc = PC();                                                                              \
        int ok = memory_cas((uintptr_t)a, bits_ / 8, &old, desired, is_weak_, order, failure);     \
        if (!ok) *e = (uint##bits_##_t)old;                                                        \
        return ok;                                                                                 \
    }
#define ATOMIC(bits_)                                                                              \
    uint##bits_##_t __tsan_atomic##bits_##_load(const volatile void *a, int order);                \
    uint##bits_##_t __tsan_atomic##bits_##_load(const volatile void *a, int order) {               \
        vm.pc = PC();                                                                              \
        return (uint##bits_##_t)memory_load((uintptr_t)a, bits_ / 8, order);                       \
    }                                                                                              \
    void __tsan_atomic##bits_##_store(volatile void *a, uint##bits_##_t x, int order);             \
    void __tsan_atomic##bits_##_store(volatile void *a, uint##bits_##_t x, int order) {            \
        vm.pc = PC();                                                                              \
        memory_store((uintptr_t)a, bits_ / 8, x, order);                                           \
    }                                                                                              \
    RMW(bits_, exchange, take_new)                                                                 \
    RMW(bits_, fetch_add, add)                                                                     \
    RMW(bits_, fetch_sub, sub)                                                                     \
    RMW(bits_, fetch_and, and)                                                                     \
    RMW(bits_, fetch_or, or)                                                                       \
    RMW(bits_, fetch_xor, xor)                                                                     \
    RMW(bits_, fetch_nand, nand)                                                                   \
    CAS(bits_, strong, 0)                                                                          \
    CAS(bits_, weak, 1)                                                                            \
    uint##bits_##_t __tsan_atomic##bits_##_compare_exchange_val(                                   \
        volatile void *a, uint##bits_##_t expected, uint##bits_##_t desired, int order,            \
        int failure);                                                                              \
    uint##bits_##_t __tsan_atomic##bits_##_compare_exchange_val(                                   \
        volatile void *a, uint##bits_##_t expected, uint##bits_##_t desired, int order,            \
        int failure) {                                                                             \
        uint64_t old = expected;                                                                   \
        vm.pc = PC();                                                                              \
        memory_cas((uintptr_t)a, bits_ / 8, &old, desired, 0, order, failure);                     \
        return (uint##bits_##_t)old;                                                               \
    }
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
    vm.pc = PC();
    memory_fence(order);
}
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) { (void)order; }

// ---- calls

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) {
    if (!vm.is_running) return;
    thread *t = self();
    if (t->depth < CALL_DEPTH) t->call[t->depth] = caller;
    t->depth++;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {
    if (vm.is_running) self()->depth--;
}
