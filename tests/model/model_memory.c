// SPDX-License-Identifier: MIT OR 0BSD
// Slabs: slots that other threads give back [M1], walkers that go by the slabs while slots are
// carved, freed and used again [M2], slabs that are destroyed, heaps that are shared. No slot has
// two users, none is lost; a walker meets live tasks only, and finds their headers filled.
// Run: make model ONE=memory_remote_free (or another name from below).
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "../lib/slab.h"

enum { SMALL = 112, LARGE = VOLT_SLAB_SIZE / 8 + 1 };
static volt__slabs slabs;
static volt__heap heap;
static int n_met;
static const char stamp[] = "live";

static void make(void) {
    slabs.alloc.alloc = vmc_volt_alloc;
    slabs.alloc.free = vmc_volt_free;
    volt__heap_init(&heap, &slabs);
}
static void end(void) {
    volt__heap_drain(&heap);
    for (volt__slab *s = slabs.first; s; s = s->all_next) VMC_ASSERT(slab_used(s) == 0);
    volt__slabs_destroy(&slabs);
}
// A slot's user writes to it, plainly: two at a time would be a race.
static void use(volt__task *t) {
    t->u.result++;
    t->shield_depth = 1;
}
static volt__task *new_task(size_t size) {
    volt__task *t = volt__heap_alloc(&heap, size, 0);
    VMC_ASSERT(t && volt__load_rlx(&t->word) < VOLT__REF);
    t->spawn_site = stamp; // plain: for walkers, which may read it from the publication on
    use(t);
    volt__task_publish(t, 1);
    return t;
}
static void end_here(volt__task *t) {
    if (volt__task_release(t)) volt__heap_free_local(&heap, t);
}
static void end_elsewhere(void *task) {
    volt__task *t = task;
    use(t);
    if (volt__task_release(t)) volt__heap_free_remote(t);
}

// ---- slots that come back from other threads [M1]

SCENARIO(memory_remote_free, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("a slot is used again");
    make();
    volt__task *a = new_task(SMALL), *b = new_task(SMALL);
    int t1 = vmc_spawn(end_elsewhere, a), t2 = vmc_spawn(end_elsewhere, b);
    volt__heap_drain(&heap);
    volt__task *c = new_task(SMALL), *d = new_task(SMALL);
    VMC_ASSERT(c != d);
    if (c == a || c == b || d == a || d == b) vmc_reached("a slot is used again");
    end_here(c);
    end_here(d);
    vmc_join(t1);
    vmc_join(t2);
    end();
}
// The same slot twice: what was at the top of the stack comes there again.
static void end_two(void *tasks) {
    volt__task **t = tasks;
    end_elsewhere(t[0]);
    end_elsewhere(t[1]);
}
// Two of them at once, from a worker, while another thread gives back a third.
static void end_together(void *two) {
    volt__task **t = two;
    volt__remote_batch r = { 0 };
    for (int i = 0; i < 2; i++) {
        use(t[i]);
        if (volt__task_release(t[i])) volt__remote_batch_add(&r, t[i]);
    }
    volt__remote_batch_flush(&r);
}
SCENARIO(memory_returns, .class = VMC_EXHAUSTIVE) {
    vmc_must_happen("both are used again");
    make();
    volt__task *two[2] = { new_task(SMALL), new_task(SMALL) }, *third = new_task(SMALL), *t[3];
    int t1 = vmc_spawn(end_together, two), t2 = vmc_spawn(end_elsewhere, third);
    volt__heap_drain(&heap);
    int n_again = 0;
    for (int i = 0; i < 3; i++) {
        t[i] = new_task(SMALL);
        n_again += t[i] == two[0] || t[i] == two[1];
    }
    VMC_ASSERT(t[0] != t[1] && t[1] != t[2] && t[0] != t[2]);
    if (n_again == 2) vmc_reached("both are used again");
    for (int i = 0; i < 3; i++) end_here(t[i]);
    vmc_join(t1);
    vmc_join(t2);
    end();
}
SCENARIO(memory_remote_free_again, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *mine[2] = { new_task(SMALL), new_task(SMALL) };
    int t1 = vmc_spawn(end_two, mine);
    volt__heap_drain(&heap);
    volt__task *c = new_task(SMALL);
    int t2 = vmc_spawn(end_elsewhere, c);
    volt__heap_drain(&heap);
    vmc_join(t1);
    vmc_join(t2);
    end();
}

// ---- walkers [M2], as the sweep of a shutdown

static void meet(void *unused, volt__task *t) {
    (void)unused;
    if (!volt__task_try_retain(t)) return;
    VMC_ASSERT(t->spawn_site == stamp);
    n_met++;
    vmc_reached("the walker meets a task");
    if (volt__task_release(t)) volt__heap_free_remote(t);
}
static void walk(void *unused) { volt__slabs_walk(&slabs, meet, unused); }
static int start_walk(void) {
    vmc_must_happen("the walker meets a task");
    return vmc_spawn(walk, NULL);
}
// In a slab that is there already, and in one that comes.
SCENARIO(memory_carve_and_walk, .class = VMC_EXHAUSTIVE) {
    make();
    int t = start_walk();
    volt__task *a = new_task(SMALL), *b = new_task(SMALL);
    end_here(a);
    end_here(b);
    vmc_join(t);
    end();
}
// A task that lives all the time is met.
SCENARIO(memory_lasting_and_walk, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *a = new_task(SMALL);
    int t = start_walk();
    volt__task *b = new_task(SMALL);
    end_here(b);
    vmc_join(t);
    VMC_ASSERT(n_met >= 1);
    end_here(a);
    end();
}
// Freed by its owner or by the walker, its slot carved or used again.
SCENARIO(memory_reuse_and_walk, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *a = new_task(SMALL);
    int t = start_walk();
    end_here(a);
    volt__heap_drain(&heap);
    volt__task *b = new_task(SMALL);
    end_here(b);
    vmc_join(t);
    end();
}
SCENARIO(memory_two_walks, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *a = new_task(SMALL);
    int t1 = start_walk(), t2 = start_walk();
    end_here(a);
    vmc_join(t1);
    vmc_join(t2);
    end();
}

// ---- slabs that are destroyed: large tasks, and trimming

SCENARIO(memory_large_and_walk, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *a = new_task(LARGE);
    int t1 = start_walk(), t2 = vmc_spawn(end_elsewhere, a);
    volt__heap_drain(&heap);
    vmc_join(t1);
    vmc_join(t2);
    end();
}
// Two heaps change the list of all slabs: one removes a slab beside that of the other.
static volt__heap other;
static volt__task *new_task_of_other(void) {
    volt__task *t = volt__heap_alloc(&other, LARGE, 0);
    VMC_ASSERT(t != NULL);
    volt__task_publish(t, 1);
    return t;
}
static void end_of_other(void *task) {
    volt__task *t = task ? task : new_task_of_other();
    if (volt__task_release(t)) volt__heap_free_local(&other, t);
}
static void beside_other(int is_new) {
    make();
    volt__heap_init(&other, &slabs);
    volt__task *a = new_task(LARGE), *b = is_new ? NULL : new_task_of_other();
    int t = vmc_spawn(end_of_other, b);
    end_here(a);
    vmc_join(t);
    end();
}
SCENARIO(memory_two_slabs_are_destroyed, .class = VMC_EXHAUSTIVE) { beside_other(0); }
SCENARIO(memory_slab_is_made_beside_destroyed, .class = VMC_EXHAUSTIVE) { beside_other(1); }
static void trim(void) {
    volt__heap_drain(&heap);
    volt__slabs_reap(volt__heap_trim(&heap));
}
SCENARIO(memory_trim_and_walk, .class = VMC_EXHAUSTIVE) {
    make();
    volt__task *a = new_task(SMALL), *b = new_task(2 * SMALL);
    // only an emptied slab that is no longer taken from is given back
    volt__slab_of(a)->cap = 1; // full
    volt__class_set_current(&heap.cls[volt__class_of(SMALL)],
                            volt__slab_create(&heap, volt__class_of(SMALL), SMALL));
    int t = start_walk();
    end_here(a);
    trim();
    trim();
    end_here(b);
    vmc_join(t);
    end();
}

// ---- a heap that threads from outside share under its lock

static void use_shared(void *size) {
    volt__task *t = volt__heap_alloc(&heap, (size_t)(uintptr_t)size, 1);
    VMC_ASSERT(t != NULL);
    t->spawn_site = stamp;
    use(t);
    volt__task_publish(t, 1);
    if (volt__task_release(t)) volt__heap_free_remote(t);
}
static void share(size_t size, int is_walked, int has_slab) {
    make();
    if (has_slab) use_shared((void *)size);
    int t1 = vmc_spawn(use_shared, (void *)size);
    int t2 = is_walked ? vmc_spawn(walk, NULL) : 0;
    use_shared((void *)size);
    vmc_join(t1);
    if (is_walked) vmc_join(t2);
    volt__heap_trim_shared(&heap);
    end();
}
SCENARIO(memory_shared, .class = VMC_EXHAUSTIVE) { share(SMALL, 0, 1); }
SCENARIO(memory_shared_large, .class = VMC_EXHAUSTIVE) { share(LARGE, 0, 0); }
SCENARIO(memory_shared_from_nothing, .class = VMC_BOUNDED, .preemptions = 1) {
    share(SMALL, 0, 0);
}
SCENARIO(memory_shared_from_nothing_long, .class = VMC_BOUNDED, .preemptions = 3,
         .is_long = 1) {
    share(SMALL, 0, 0);
}
// A slot that has come back is collected by one thread, for a large task, while the other one
// allocates again.
static void use_shared_twice(void *size) {
    use_shared(size);
    use_shared(size);
}
SCENARIO(memory_shared_large_beside_small, .class = VMC_EXHAUSTIVE) {
    make();
    use_shared((void *)SMALL);
    int t = vmc_spawn(use_shared_twice, (void *)SMALL);
    use_shared((void *)LARGE);
    vmc_join(t);
    end();
}
SCENARIO(memory_shared_and_walk, .class = VMC_EXHAUSTIVE) { share(SMALL, 1, 1); }
static void trim_shared(void *unused) {
    (void)unused;
    volt__heap_trim_shared(&heap);
    volt__heap_trim_shared(&heap);
}
// The task that comes meanwhile needs a slab, which changes what the trim goes by.
static void trim_once(void *unused) {
    (void)unused;
    volt__heap_trim_shared(&heap);
}
SCENARIO(memory_shared_trim_beside_new_slab, .class = VMC_EXHAUSTIVE) {
    make();
    int t = vmc_spawn(trim_once, NULL);
    use_shared((void *)SMALL);
    vmc_join(t);
    end();
}
SCENARIO(memory_shared_trim, .class = VMC_EXHAUSTIVE) {
    make();
    use_shared((void *)SMALL);
    int t = vmc_spawn(trim_shared, NULL);
    use_shared((void *)SMALL);
    vmc_join(t);
    end();
}
