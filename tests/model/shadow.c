// SPDX-License-Identifier: MIT OR 0BSD
// Plain memory. For every byte that a scenario touches: its last writer, its readers since then,
// and which atomic object lies there. A plain access that is not ordered by happens-before after
// each conflicting one is a data race, in whichever order the two were executed.
//
// Shadow cells stand for 4 aligned bytes and have one record, until an access touches only part of
// them: then one record per byte. Heap blocks are never reused within an execution, so any access
// to a freed one is found, and freeing counts as writing: what is not ordered before it is found.
// Each thread has a heap of its own: addresses must not depend on which one allocates first.
#include "internal.h"
#include <sys/mman.h>
#include <unistd.h>

enum {
    HEAP_SIZE = 1 << 20,
    UNIT = 16,
    N_UNITS = HEAP_SIZE * THREADS / UNIT,
    MAX_STATICS = 1 << 20
};

typedef struct record {
    uint16_t wrote_at; // clock of the last writer, 0: none
    uint8_t writer;
    uint16_t read_at[THREADS];
    uint16_t loc; // index + 1 of the atomic object here
} record;
typedef struct cell {
    uint32_t execution; // that this cell speaks of
    uint8_t is_split;
    record bytes[4]; // bytes[0] is for all four unless split
} cell;
typedef struct block {
    uintptr_t addr;
    size_t size;
    uint8_t is_freed, tid;
} block;

// One mapping at a fixed address, for equal addresses in every execution and run: heaps, stacks.
static const uintptr_t region = UINT64_C(0x100000000000);
enum { REGION_SIZE = (HEAP_SIZE + STACK_SIZE) * THREADS };
static cell *region_cells, *static_cells;
static uint16_t block_at[N_UNITS]; // index + 1 of the block that begins at or covers the unit
static block blocks[MAX_BLOCKS];
static int n_blocks;
static size_t heap_used[THREADS];
static uintptr_t touched[1 << 16]; // granules in the heap: what free must look at
static int n_touched;

// Statics of the scenario's object files: the linker gathers them in two sections (Makefile).
extern char __start_model_data[] __attribute__((weak)), __stop_model_data[] __attribute__((weak));
extern char __start_model_bss[] __attribute__((weak)), __stop_model_bss[] __attribute__((weak));
static char *saved_data, *saved_bss;

static size_t data_size(void) { return (size_t)(__stop_model_data - __start_model_data); }
static size_t bss_size(void) { return (size_t)(__stop_model_bss - __start_model_bss); }

static void *map(uintptr_t at, size_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
    void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p != MAP_FAILED) return p;
    perror("mmap");
    exit(2);
}
void shadow_init(void) {
    map(region, REGION_SIZE);
    region_cells = map(0, REGION_SIZE / 4 * sizeof(cell));
    if (data_size() + bss_size() > MAX_STATICS) {
        fprintf(stderr, "limit: more than %d bytes of statics\n", MAX_STATICS);
        exit(2);
    }
    static_cells = map(0, 2 * (MAX_STATICS / 4) * sizeof(cell));
    saved_data = map(0, data_size() + 1);
    saved_bss = map(0, bss_size() + 1);
    memcpy(saved_data, __start_model_data, data_size());
    memcpy(saved_bss, __start_model_bss, bss_size()); // constructors may have filled it
}
char *stack_of(int tid) {
    return (char *)(region + (uintptr_t)HEAP_SIZE * THREADS + (uintptr_t)(STACK_SIZE * tid));
}
void shadow_reset(void) {
    for (int i = 0; i < n_blocks; i++)
        memset(&block_at[(blocks[i].addr - region) / UNIT], 0,
               (blocks[i].size + UNIT - 1) / UNIT * sizeof block_at[0]);
    memset(heap_used, 0, sizeof heap_used);
    n_blocks = n_touched = 0;
    if (data_size()) memcpy(__start_model_data, saved_data, data_size());
    if (bss_size()) memcpy(__start_model_bss, saved_bss, bss_size());
}

// ---- where an address lies

static int is_in_heap(uintptr_t a) { return a - region < (uintptr_t)HEAP_SIZE * THREADS; }
static int is_in_stacks(uintptr_t a) {
    return a - region - (uintptr_t)HEAP_SIZE * THREADS < (uintptr_t)STACK_SIZE * THREADS;
}
static int is_in(uintptr_t a, const char *start, size_t size) {
    return a - (uintptr_t)start < size;
}

// NULL: not ours; constants, or memory of the C library.
static cell *cell_at(uintptr_t a) {
    cell *c;
    if (a - region < REGION_SIZE)
        c = &region_cells[(a - region) / 4];
    else if (is_in(a, __start_model_data, data_size()))
        c = &static_cells[(a - ((uintptr_t)__start_model_data & ~(uintptr_t)3)) / 4];
    else if (is_in(a, __start_model_bss, bss_size()))
        c = &static_cells[MAX_STATICS / 4 +
                          (a - ((uintptr_t)__start_model_bss & ~(uintptr_t)3)) / 4];
    else
        return NULL;
    if (c->execution == vm.execution) return c;
    memset(c, 0, offsetof(cell, bytes) + sizeof c->bytes[0]);
    c->execution = vm.execution;
    if (is_in_heap(a)) {
        if (n_touched == (int)(sizeof touched / sizeof touched[0]))
            vmc_fail("limit: more heap touched than %d words", n_touched);
        touched[n_touched++] = a & ~(uintptr_t)3;
    }
    return c;
}
static void split(cell *c) {
    if (c->is_split) return;
    for (int i = 1; i < 4; i++) c->bytes[i] = c->bytes[0];
    c->is_split = 1;
}

static const block *block_of(uintptr_t a) {
    int i = block_at[(a - region) / UNIT];
    return i ? &blocks[i - 1] : NULL;
}
// The name of a static, as nm has it; asked for at the first need only.
static int describe_static(char *text, size_t size, uintptr_t a) {
    enum { MAX_SYMBOLS = 2000 };
    static struct {
        uintptr_t at;
        char name[48];
    } symbols[MAX_SYMBOLS];
    static int n = -1;
    if (n < 0) {
        char command[300] = "nm -n ", line[200];
        ssize_t len = readlink("/proc/self/exe", command + 6, sizeof command - 7);
        FILE *in = len > 0 ? popen(command, "r") : NULL;
        n = 0;
        while (in && n < MAX_SYMBOLS && fgets(line, sizeof line, in)) {
            unsigned long at;
            if (sscanf(line, "%lx %*c %47s", &at, symbols[n].name) != 2) continue;
            symbols[n].at = at;
            n += is_in(at, __start_model_data, data_size()) ||
                 is_in(at, __start_model_bss, bss_size());
        }
        if (in) pclose(in);
    }
    int i = n - 1;
    while (i >= 0 && symbols[i].at > a) i--;
    if (i < 0) return snprintf(text, size, "static %#lx", (unsigned long)a);
    return snprintf(text, size, "%s +%d", symbols[i].name, (int)(a - symbols[i].at));
}
int describe_address(char *text, size_t size, uintptr_t a) {
    const block *b = is_in_heap(a) ? block_of(a) : NULL;
    if (b)
        return snprintf(text, size, "block %d of T%d +%d", (int)(b - blocks), b->tid,
                        (int)(a - b->addr));
    if (is_in_stacks(a))
        return snprintf(text, size, "stack of T%d %#lx",
                        (int)((a - region - (uintptr_t)HEAP_SIZE * THREADS) / STACK_SIZE),
                        (unsigned long)(a & (STACK_SIZE - 1)));
    if (is_in(a, __start_model_data, data_size()) || is_in(a, __start_model_bss, bss_size()))
        return describe_static(text, size, a);
    return snprintf(text, size, "address %#lx", (unsigned long)a);
}
static void complain(const char *what, uintptr_t a) {
    char place[80];
    describe_address(place, sizeof place, a);
    vmc_fail("%s: %s", what, place);
}
static void check_alive(uintptr_t a, size_t size) {
    if (is_in_heap(a)) {
        const block *b = block_of(a);
        if (!b || a + size > b->addr + b->size)
            complain("access outside a heap block", a);
        else if (b->is_freed)
            complain("use after free", a);
    } else if (is_in_stacks(a) && fiber_is_below(a)) {
        complain("use after return", a);
    }
}

// ---- races

static int is_behind(const thread *t, int other, uint16_t clock) {
    return other == vm.current || clock <= t->now.clock[other];
}
static void check_location(const record *r, uintptr_t a, int is_write) {
    const location *l = &vm.locs[r->loc - 1];
    const thread *t = self();
    for (int i = 0; i < vm.n_threads; i++) {
        if (!is_behind(t, i, l->written[i])) complain("data race with an atomic write", a);
        if (is_write && !is_behind(t, i, l->read[i])) complain("data race with an atomic read", a);
    }
}
static void check_record(const record *r, uintptr_t a, int is_write) {
    const thread *t = self();
    if (r->wrote_at && !is_behind(t, r->writer, r->wrote_at))
        complain(is_write ? "data race, write after write" : "data race, read after write", a);
    if (!is_write || MUTANT(NO_RACE_CHECK)) return;
    for (int i = 0; i < vm.n_threads; i++)
        if (!is_behind(t, i, r->read_at[i])) complain("data race, write after read", a);
}
static void note_plain(record *r, uintptr_t a, int is_write) {
    check_record(r, a, is_write);
    if (r->loc) check_location(r, a, is_write);
    if (!is_write) {
        r->read_at[vm.current] = self()->now.clock[vm.current];
        return;
    }
    if (r->loc && !vm.locs[r->loc - 1].is_dead) location_retire(r->loc - 1);
    r->loc = 0; // the object's history ends here; all that was, came before
    r->writer = (uint8_t)vm.current;
    r->wrote_at = self()->now.clock[vm.current];
}
void plain_access(uintptr_t addr, size_t size, int is_write) {
    if (!vm.is_running || size == 0) return;
    check_alive(addr, size);
    // Setting up: all that follows comes after it, and there is no atomic object to write over.
    if (vm.n_threads == 1 && vm.n_locs == 0 && !is_tracing) return;
    if (is_tracing && !is_in(addr, stack_of(vm.current), STACK_SIZE)) {
        char place[80];
        describe_address(place, sizeof place, addr);
        trace("%s %zu bytes  %s", is_write ? "write" : "read ", size, place);
    }
    for (uintptr_t a = addr, end = addr + size; a < end;) {
        cell *c = cell_at(a);
        if (!c) return;
        if ((a & 3) == 0 && end - a >= 4 && !c->is_split) {
            note_plain(&c->bytes[0], a, is_write);
            a += 4;
        } else {
            split(c);
            note_plain(&c->bytes[a & 3], a, is_write);
            a++;
        }
    }
}

// ---- atomic objects

int shadow_location(uintptr_t addr, int size, int is_write) {
    int loc = 0;
    check_alive(addr, (size_t)size);
    if (addr & (uintptr_t)(size - 1)) complain("misaligned atomic access", addr);
    for (uintptr_t a = addr; a < addr + (uintptr_t)size;) {
        cell *c = cell_at(a);
        if (!c) complain("atomic access to memory that is not the scenario's", addr);
        int is_whole = (a & 3) == 0 && size >= 4 && !c->is_split;
        record *r = &c->bytes[is_whole ? 0 : a & 3];
        if (!is_whole && !c->is_split) split(c);
        check_record(r, a, is_write);
        if (r->loc && (vm.locs[r->loc - 1].addr != addr || vm.locs[r->loc - 1].size != size)) {
            if (!vm.locs[r->loc - 1].is_dead) complain("atomic accesses of different sizes", addr);
            r->loc = 0;
        }
        if (r->loc && vm.locs[r->loc - 1].is_dead) r->loc = 0; // part of it was overwritten
        if (a == addr) loc = r->loc;
        a += is_whole ? 4 : 1;
    }
    return loc - 1;
}
void shadow_link(uintptr_t addr, int size, int loc) {
    for (uintptr_t a = addr; a < addr + (uintptr_t)size; a++) {
        cell *c = cell_at(a);
        c->bytes[c->is_split ? a & 3 : 0].loc = (uint16_t)(loc + 1);
    }
}

// ---- the heap

void *vmc_alloc_aligned(size_t size, size_t align) {
    int t = vm.current;
    uintptr_t heap = region + (uintptr_t)HEAP_SIZE * (unsigned)t;
    if (align < UNIT) align = UNIT;
    // a gap before each block, for what runs over the end of the one before
    size_t at = (heap_used[t] + UNIT + align - 1) & ~(align - 1);
    if (size == 0 || at + size > HEAP_SIZE || n_blocks == MAX_BLOCKS)
        vmc_fail("limit: %d blocks and %d bytes per thread", MAX_BLOCKS, HEAP_SIZE);
    blocks[n_blocks++] = (block){.addr = heap + at, .size = size, .tid = (uint8_t)t};
    heap_used[t] = at + size;
    for (size_t i = 0; i < (size + UNIT - 1) / UNIT; i++)
        block_at[(heap + at - region) / UNIT + i] = (uint16_t)n_blocks;
    TRACE("alloc %zu bytes: block %d", size, n_blocks - 1);
    return memset((void *)(heap + at), 0xa5, size);
}
void *vmc_alloc(size_t size) { return memset(vmc_alloc_aligned(size, UNIT), 0, size); }

void vmc_free(void *p) {
    uintptr_t a = (uintptr_t)p;
    if (!p) return;
    block *b = is_in_heap(a) && block_of(a) ? &blocks[block_of(a) - blocks] : NULL;
    if (!b || b->addr != a) complain("free of what is no block", a);
    if (b->is_freed) complain("double free", a);
    TRACE("free  block %d", (int)(b - blocks));
    for (int i = 0; i < n_touched; i++)
        if (touched[i] - a < b->size) {
            cell *c = cell_at(touched[i]);
            for (int k = 0; k < (c->is_split ? 4 : 1); k++)
                note_plain(&c->bytes[k], touched[i] + (unsigned)k, 1);
        }
    b->is_freed = 1;
}
void *vmc_volt_alloc(void *user, size_t size, size_t align) {
    (void)user;
    return vmc_alloc_aligned(size, align);
}
void vmc_volt_free(void *user, void *p, size_t size) {
    uintptr_t a = (uintptr_t)p;
    (void)user;
    if (p && is_in_heap(a) && block_of(a) && block_of(a)->size != size)
        complain("free with another size than it was allocated with", a);
    vmc_free(p);
}
void check_leaks(void) {
    for (int i = 0; i < n_blocks; i++)
        if (!blocks[i].is_freed) complain("leak", blocks[i].addr);
}
