// SPDX-License-Identifier: MIT OR 0BSD
// volt.h with another call between any two steps of a call: at a chosen atomic operation, the other
// side performs its whole call. So each order of two calls is tested, without a race. Include in
// place of volt.h; in a build without threads nothing is atomic, and no meddler runs.
#ifndef VOLT_TEST_INTERLEAVE_H
#define VOLT_TEST_INTERLEAVE_H

__attribute__((unused)) static void meddle(void);
#define __atomic_load_n(...)                                                                       \
    __extension__({                                                                                \
        __typeof__(__atomic_load_n(__VA_ARGS__)) loaded_ = __atomic_load_n(__VA_ARGS__);           \
        meddle();                                                                                  \
        loaded_;                                                                                   \
    })
#define __atomic_compare_exchange_n(...) (meddle(), __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_store_n(...) (meddle(), __atomic_store_n(__VA_ARGS__))
#define __atomic_fetch_add(...) (meddle(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (meddle(), __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_and(...) (meddle(), __atomic_fetch_and(__VA_ARGS__))
#define __atomic_fetch_or(...) (meddle(), __atomic_fetch_or(__VA_ARGS__))
#include "volt.h"
#undef __atomic_load_n
#undef __atomic_compare_exchange_n
#undef __atomic_store_n
#undef __atomic_fetch_add
#undef __atomic_fetch_sub
#undef __atomic_fetch_and
#undef __atomic_fetch_or

// Calls fn(arg) with a meddler at its n-th atomic operation. 0: it has fewer.
static __thread int meddle_at;
static __thread void (*meddler)(void *);
static __thread void *meddler_arg;
static void meddle(void) {
    if (meddle_at > 0 && --meddle_at == 0) meddler(meddler_arg);
}
static inline int meddled_at(int n, void (*fn)(void *), void (*by)(void *), void *arg) {
    meddler = by;
    meddler_arg = arg;
    meddle_at = n;
    fn(arg);
    int was_there = meddle_at == 0;
    meddle_at = 0;
    return was_there;
}

#endif // VOLT_TEST_INTERLEAVE_H
