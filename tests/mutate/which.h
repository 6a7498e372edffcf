// SPDX-License-Identifier: MIT OR 0BSD
// Included before a mutated volt.h: selects which of the mutants compiled into the program is on
// (which.c), and defines the orders that volt.h has no name for, as it does not need them. See
// mutate.py.
#ifndef VOLT_MUTATE_WHICH_H
#define VOLT_MUTATE_WHICH_H

extern int volt_mutant; // from 1; 0: none; -1: none, and notes which places are reached
int volt_mutant_in_range(int first, int n);
int volt_mutant_is(int number);

// A place of volt.h with the mutants from `first` on: is one of them on? Under the model checker,
// whose hooks see every access to memory, it calls a function that is compiled without them.
#ifdef __SANITIZE_THREAD__
#  define VM_IN(first_, n_) volt_mutant_in_range(first_, n_)
#  define VM_IS(number_) volt_mutant_is(number_)
#else
#  define VM_IN(first_, n_)                                                                        \
      (__builtin_expect(volt_mutant != 0, 0) && volt_mutant_in_range(first_, n_))
#  define VM_IS(number_) (volt_mutant == (number_))
#endif

#define volt__xchg_rlx(p_, v_) __atomic_exchange_n((p_), (v_), __ATOMIC_RELAXED)
#define volt__add_acq(p_, v_) __atomic_fetch_add((p_), (v_), __ATOMIC_ACQUIRE)
#define volt__add_rel(p_, v_) __atomic_fetch_add((p_), (v_), __ATOMIC_RELEASE)
#define volt__sub_acq(p_, v_) __atomic_fetch_sub((p_), (v_), __ATOMIC_ACQUIRE)
#define volt__sub_rel(p_, v_) __atomic_fetch_sub((p_), (v_), __ATOMIC_RELEASE)
#define volt__and_acq(p_, v_) __atomic_fetch_and((p_), (v_), __ATOMIC_ACQUIRE)
#define volt__and_rel(p_, v_) __atomic_fetch_and((p_), (v_), __ATOMIC_RELEASE)
#define volt__or_acq(p_, v_) __atomic_fetch_or((p_), (v_), __ATOMIC_ACQUIRE)
#define volt__or_rel(p_, v_) __atomic_fetch_or((p_), (v_), __ATOMIC_RELEASE)
#define volt__xor_acq(p_, v_) __atomic_fetch_xor((p_), (v_), __ATOMIC_ACQUIRE)
#define volt__xor_rel(p_, v_) __atomic_fetch_xor((p_), (v_), __ATOMIC_RELEASE)
#define volt__cas_rlx(p_, old_, new_)                                                              \
    __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
// On success alone weaker than cas_acq_rel; a failure still acquires.
#define volt__cas_acq_fail_acq(p_, old_, new_)                                                     \
    __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define volt__cas_rel_fail_acq(p_, old_, new_)                                                     \
    __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)
// On failure alone weaker than cas_acq_rel.
#define volt__cas_acq_rel_fail_rlx(p_, old_, new_)                                                 \
    __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#define volt__fence_acq_rel(word_) ((void)(word_), __atomic_thread_fence(__ATOMIC_ACQ_REL))
#define volt__fence_none(word_) ((void)(word_))

#endif // VOLT_MUTATE_WHICH_H
