// SPDX-License-Identifier: MIT OR 0BSD
// Thread starts that fail: as many of the next ones as the scenario sets. Include it between vmc.h
// and volt.h.
#ifndef VMC_REFUSE_H
#define VMC_REFUSE_H

#include <errno.h>

static int n_refusals;
static int create_thread(uintptr_t *thread, void *(*fn)(void *), void *arg) {
    if (__atomic_sub_fetch(&n_refusals, 1, __ATOMIC_RELAXED) >= 0) return EAGAIN;
    return vmc_thread_create(thread, fn, arg);
}
#undef VOLT_THREAD_CREATE
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_)                                              \
    ((void)(attr_), create_thread((uintptr_t *)(thread_), fn_, arg_))

#endif // VMC_REFUSE_H
