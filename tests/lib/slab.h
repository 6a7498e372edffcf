// SPDX-License-Identifier: MIT OR 0BSD
// For tests that inspect the allocator. Include after volt.h.
#ifndef VOLT_TESTS_SLAB_H
#define VOLT_TESTS_SLAB_H

// Slots in use, computed from the free list: a current slab keeps no count.
static inline uint32_t slab_used(const volt__slab *s) {
    uint32_t n = s->carved;
    for (const volt__task *t = s->free; t; t = t->next) n--;
    return n;
}

#endif
