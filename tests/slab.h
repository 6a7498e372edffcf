// SPDX-License-Identifier: MIT OR 0BSD
// For tests that look into the allocator, behind volt.h.
#ifndef VOLT_TESTS_SLAB_H
#define VOLT_TESTS_SLAB_H

// Slots in use, by the list of the free ones: a slab that is current keeps no count.
static inline uint32_t slab_used(const volt__slab *s) {
    uint32_t n = s->carved;
    for (const volt__task *t = s->free; t; t = t->next) n--;
    return n;
}

#endif
