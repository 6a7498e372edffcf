// SPDX-License-Identifier: MIT OR 0BSD
// The seam of volt.h for a program that runs on simulated processors: see machine.h. Include it
// before volt.h, in code that is compiled with -fsanitize=thread.
#ifndef COHERENCE_SEAM_H
#define COHERENCE_SEAM_H

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1
#endif
#include "../../tests/model/world.h" // vmc_sys_*: the system calls that a runtime makes
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// ---- machine.c

enum { PROCESSORS = 80 }; // 64 workers, and the threads of the rows of work from outside

int coherence_thread_create(pthread_t *thread, void *(*fn)(void *), void *arg);
int coherence_thread_join(pthread_t thread);
void *coherence_tls_get(void);
void coherence_tls_set(void *value);
int64_t coherence_now(void);
int coherence_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline);
void coherence_futex_wake(uint32_t *word, int n);
int coherence_epoll_wait(int ep, struct epoll_event *ev, int n, int64_t timeout_ns);
uint64_t coherence_random(void);
void coherence_relax(void);
void coherence_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// Marks thread-local storage, which all processors get from one thread, as not shared.
void coherence_ignore(const void *word);
// Accesses count from begin to end. end prints the figures of a row of that many operations.
void coherence_begin(void);
void coherence_end(const char *row, unsigned workers, uint64_t ops);

// ---- symbols.c

void static_name(uintptr_t addr, char *text, size_t size); // of a static variable of the program

// ---- program.c

int bench_main(int argc, char **argv);
// Another processor continues; from -1: none has run.
void program_switch(int from, int to);
// Writes the name of the object at an address; 1: it is the runtime's, 0: the benchmark's own.
int program_name(uintptr_t addr, char *text, size_t size);

// ---- volt.h's seam

#define VOLT_MODEL 1 // fences are fences, also under -fsanitize=thread
#define VOLT_SYS(name_, ...) vmc_sys_##name_(__VA_ARGS__)
#define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) \
    ((void)(attr_), coherence_thread_create(thread_, fn_, arg_))
#define VOLT_THREAD_JOIN(thread_) coherence_thread_join(thread_)
#define VOLT_TLS_GET() ((volt__worker *)coherence_tls_get())
#define VOLT_TLS_SET(w_) coherence_tls_set(w_)
#define VOLT_TLS_MARK() ((uintptr_t)1) // no guest is asked here
#define VOLT_FORK_WORD() NULL
#define VOLT_GETPID() 1
#define VOLT_NOW_NS() coherence_now()
#define VOLT_FUTEX_WAIT(word_, expect_, deadline_) coherence_futex_wait(word_, expect_, deadline_)
#define VOLT_FUTEX_WAKE(word_, n_) coherence_futex_wake(word_, n_)
#define VOLT_MEMBARRIER(command_) ((void)(command_), 0) // one processor moves at a time
#define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) coherence_epoll_wait(ep_, ev_, n_, timeout_)
#define VOLT_RANDOM() coherence_random()
#define VOLT_PANIC(text_) coherence_die("%s", text_)
#define VOLT_CPU_RELAX() coherence_relax()

#endif // COHERENCE_SEAM_H
