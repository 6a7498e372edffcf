// SPDX-License-Identifier: MIT OR 0BSD
// Replaces the model checker's memory: the functions that its tsan.c calls for each access. Memory
// here is the machine's own. One processor runs at a time, so an access that has begun also ends.
#include "../../tests/model/internal.h"

enum { READ, WRITE, RMW, LINE_SHIFT = 6 }; // machine.h, whose seam differs from that of vmc.h
void access_word(uintptr_t addr, int kind);
void access_fence(void);

machine vm; // not running: tsan.c only notes where an access comes from

void plain_access(uintptr_t addr, size_t size, int is_write) {
    const uintptr_t end = addr + size;
    while (addr < end) {
        access_word(addr, is_write ? WRITE : READ);
        addr = ((addr >> LINE_SHIFT) + 1) << LINE_SHIFT;
    }
}
static uint64_t value_at(uintptr_t addr, int size) {
    uint64_t value = 0;
    memcpy(&value, (const void *)addr, (size_t)size); // little-endian
    return value;
}
static void set_value(uintptr_t addr, int size, uint64_t value) {
    memcpy((void *)addr, &value, (size_t)size);
}
uint64_t memory_load(uintptr_t addr, int size, int order) {
    (void)order;
    access_word(addr, READ);
    return value_at(addr, size);
}
void memory_store(uintptr_t addr, int size, uint64_t value, int order) {
    (void)order;
    access_word(addr, WRITE);
    set_value(addr, size, value);
}
uint64_t memory_rmw(uintptr_t addr, int size, rmw_fn *fn, uint64_t operand, int order) {
    (void)order;
    access_word(addr, RMW);
    const uint64_t old = value_at(addr, size);
    set_value(addr, size, fn(old, operand));
    return old;
}
int memory_cas(uintptr_t addr, int size, uint64_t *expected, uint64_t desired, int is_weak,
               int success, int failure) {
    (void)is_weak, (void)success, (void)failure;
    access_word(addr, RMW); // also when it fails
    const uint64_t old = value_at(addr, size);
    const int is_equal = old == *expected;
    *expected = old;
    if (is_equal) set_value(addr, size, desired);
    return is_equal;
}
void memory_fence(int order) {
    (void)order;
    access_fence();
}
