// SPDX-License-Identifier: MIT OR 0BSD
// The lower sections of volt.h, each alone: texts, locks, numbers, memory, the wheel. Contents are
// compared before and after each step, to the bit.
#include "scripted_seam.h"

// ---- texts

static const char *misused(const char *site, const char *what) {
    is_panic_expected = 1;
    if (!setjmp(panic_exit)) volt__misuse(site, what);
    is_panic_expected = 0;
    return panic_text;
}
TEST(misuse_text_has_site_and_reason) {
    static char site[400];
    char want[600];
    for (size_t n = 0; n < sizeof site; n += n < 200 || n > 250 ? 40 : 1) {
        memset(site, 's', n);
        site[n] = 0;
        snprintf(want, sizeof want, "volt: %s: what", site);
        want[254] = 0; // with the newline and the end it fills the 256 bytes
        CHECK_STR(misused(site, "what"), strcat(want, "\n"));
        CHECK_STR(misused("s", "w"), "volt: s: w\n"); // also after a longer one
    }
}
static char logged[600];
static int logged_item;
static void log_text(void *user, int item, const char *text) {
    CHECK(user == &logged_item);
    logged_item = item;
    snprintf(logged, sizeof logged, "%s", text);
}
TEST(log_text_has_site_and_item) {
#define LOG_TEXT(name_, text_) text_,
    static const char *const texts[] = { VOLT__LOG_ITEMS(LOG_TEXT) };
#undef LOG_TEXT
    static char site[400], want[600];
    begin(1);
    rt->cfg.log.fn = log_text;
    rt->cfg.log.user = &logged_item;
    for (size_t n = 0; n < sizeof site - 1; n++) {
        int item = (int)(n % VOLT_LOG_COUNT);
        memset(site, 's', n);
        site[n] = 0;
        snprintf(want, sizeof want, "%s: %s", site, texts[item]);
        want[255] = 0;
        volt__log(rt, (volt_log_item)item, site);
        CHECK_STR(logged, want);
        CHECK_EQ(logged_item, item);
        volt__log(rt, (volt_log_item)item, NULL);
        CHECK_STR(logged, texts[item]);
    }
    for (int i = 0; i < 2; i++) volt__log(rt, (volt_log_item)0, i ? "s" : site);
    snprintf(want, sizeof want, "s: %s", texts[0]);
    CHECK_STR(logged, want); // right behind a longer one, at the same place
    rt->cfg.log.fn = NULL;
    volt__log(rt, (volt_log_item)0, "not logged");
    CHECK_STR(logged, want);
    end();
}
// Each errno that the C library knows has a text of its own, which ends with its name.
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#  if __GLIBC_PREREQ(2, 32)
#    define NAME_OF_ERRNO(e_) strerrorname_np(e_)
#  endif
#endif
TEST(every_errno_has_a_text_and_its_name) {
    enum { LAST = 133 }; // EHWPOISON, the last one but on MIPS
    for (int e = 1; e <= LAST; e++) {
#ifdef NAME_OF_ERRNO
        char name[32];
        if (!NAME_OF_ERRNO(e)) continue;
        snprintf(name, sizeof name, " (%s)", NAME_OF_ERRNO(e));
        const char *end = strstr(volt_strerror(-e), " (");
        CHECK_STR(end ? end : volt_strerror(-e), name);
#else
        if (e == 41 || e == 58) continue; // there is none
        CHECK(strcmp(volt_strerror(-e), "unknown error") != 0);
#endif
        for (int k = 1; k < e; k++) {
            if (!strchr(volt_strerror(-k), '(')) continue;
            CHECK(strcmp(volt_strerror(-k), volt_strerror(-e)) != 0);
        }
    }
}
TEST(strerror_gives_text_for_any_result) {
    CHECK_STR(volt_strerror(0), "success");
    CHECK_STR(volt_strerror(1), "success");
    CHECK_STR(volt_strerror(INT_MAX), "success");
    CHECK_STR(volt_strerror(-EPERM), "operation not permitted (EPERM)");
    CHECK_STR(volt_strerror(INT_MIN), "unknown error");
    CHECK_STR(volt_strerror(-ETIMEDOUT), "timed out (ETIMEDOUT)");
    CHECK_STR(volt_strerror(-4000), "unknown error");
}

// ---- locks

static uint32_t lock;
static int free_at; // pauses after which it is free
static void free_in_time(void) {
    if (n_relaxed == free_at) lock = 0;
}
static void free_lock(void) { lock = 0; }
enum { LOOKS = VOLT_LOCK_TRIES };
static int pauses_before(int look) { return (int)VOLT_LOCK_SPIN * ((2 << look) - 1); }
TEST(lock_spins_before_it_sleeps) {
    at_relax = free_in_time;
    futex.step = free_lock;
    for (int look = 0; look < LOOKS; look++) {
        for (int is_late = 0; is_late < 2; is_late++) { // freed just before it, or just after it
            n_relaxed = futex.n_waits = 0;
            free_at = pauses_before(look) + is_late;
            lock = 1;
            volt__lock(&lock);
            int seen = look + is_late; // by that look
            CHECK_EQ(lock, seen < LOOKS ? 1 : 2); // a thread that slept can't know
            CHECK_EQ(n_relaxed, pauses_before(seen < LOOKS ? seen : look));
            CHECK_EQ(futex.n_waits, seen == LOOKS);
        }
    }
    n_relaxed = futex.n_waits = 0;
    free_at = -1;
    lock = 1;
    volt__lock(&lock);
    CHECK_EQ(n_relaxed, pauses_before(LOOKS - 1));
    CHECK_EQ(futex.n_waits, 1);
    CHECK(futex.word == &lock);
    CHECK_EQ(futex.value, 2);
    CHECK_EQ(futex.expect, 2);
    CHECK(futex.deadline == VOLT_NEVER);
    CHECK_EQ(lock, 2);
}
TEST(unlock_wakes_one_waiter_if_lock_has_waiters) {
    volt__lock(&lock);
    CHECK_EQ(lock, 1);
    CHECK_EQ(n_relaxed, 0);
    CHECK(!volt__try_lock(&lock));
    CHECK_EQ(lock, 1);
    volt__unlock(&lock);
    CHECK_EQ(lock, 0);
    CHECK_EQ(futex.n_wakes, 0);
    CHECK(volt__try_lock(&lock));
    CHECK_EQ(lock, 1);
    CHECK(!volt__try_lock(&lock));
    lock = 2;
    CHECK(!volt__try_lock(&lock));
    CHECK_EQ(lock, 2);
    volt__unlock(&lock);
    CHECK_EQ(lock, 0);
    CHECK_EQ(futex.n_wakes, 1);
    CHECK_EQ(futex.n, 1);
    CHECK(futex.word == &lock);
}

// ---- numbers

TEST(integer_helpers_are_exact_at_their_bounds) {
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(volt__highest_bit(UINT64_C(1) << i), i);
        CHECK_EQ(volt__highest_bit((UINT64_C(1) << i) | 1), i);
    }
    CHECK_EQ(volt__clamp32(-1, 3, 9), 3);
    CHECK_EQ(volt__clamp32(4, 3, 9), 4);
    CHECK_EQ(volt__clamp32(INT64_MAX, 3, 9), 9);
    CHECK_EQ(volt__min32(3, 4), 3);
    CHECK_EQ(volt__min32(4, 3), 3);
    CHECK(volt__time_add(1, VOLT_NEVER - 2) == VOLT_NEVER - 1);
    CHECK(volt__time_add(3, VOLT_NEVER - 2) == VOLT_NEVER);
    CHECK(volt__time_add(-5, 3) == -2);
}
TEST(deadline_saturates_at_now_and_at_never) {
    CHECK(volt__deadline(VOLT_NEVER) == VOLT_NEVER);
    CHECK(volt__deadline(VOLT_NEVER - 1) == VOLT_NEVER);
    CHECK_EQ(volt__deadline(1), clock_now + 1);
    CHECK_EQ(volt__deadline(0), clock_now);
    CHECK_EQ(volt__deadline(-7), clock_now);
}
// xorshift64+, as in its paper, but on two halves of 32 bits with the shifts 17, 7, 16.
TEST(random_numbers_follow_from_seed_and_stream) {
    const uint64_t seeds[] = { 1, 42, UINT64_C(0x123456789abcdef0), UINT64_MAX };
    for (int k = 0; k < 4; k++)
        for (uint32_t stream = 0; stream < 5; stream++) {
            volt__random r;
            uint64_t x = seeds[k];
            for (uint32_t i = 0; i <= stream; i++) x += UINT64_C(0x9e3779b97f4a7c15);
            uint32_t a = (uint32_t)(x >> 32), b = (uint32_t)x;
            volt__random_seed(&r, seeds[k], stream);
            CHECK(r.a == a && r.b == b);
            for (int i = 0; i < 50; i++) {
                uint32_t s = a ^ a << 17;
                a = b;
                b = s ^ b ^ s >> 7 ^ b >> 16;
                CHECK_EQ(volt__random_below(&r, 1000), (uint64_t)(a + b) * 1000 >> 32);
                CHECK(r.a == a && r.b == b);
            }
        }
    volt__random zero;
    volt__random_seed(&zero, 0 - UINT64_C(0x9e3779b97f4a7c15), 0);
    CHECK(zero.a == 0 && zero.b == 1);
}

// ---- memory: what a heap looks like, after every step of many

static struct {
    volt__slabs slabs;
    volt__heap heap;
    uint32_t n_used[VOLT__CLASSES], n_high[VOLT__CLASSES]; // expected counts
    size_t asked;                                          // of the hook, by the last call
    int is_refusing, n_allocs;
} mem;
static void *mem_alloc(void *user, size_t size, size_t align) {
    CHECK(user == &mem && align == VOLT_SLAB_SIZE);
    CHECK_EQ(mem.slabs.lock | mem.heap.lock, 0);
    mem.asked = size;
    mem.n_allocs++;
    return mem.is_refusing ? NULL : test_alloc(&test_heap, size, align);
}
static void mem_free(void *user, void *block, size_t size) {
    CHECK(user == &mem);
    CHECK_EQ(mem.slabs.lock | mem.heap.lock, 0);
    test_free(&test_heap, block, size);
}
static void mem_begin(void) {
    memset(&mem, 0, sizeof mem);
    memset(&mem.heap, 0xa5, sizeof mem.heap);
    mem.slabs.rt = (volt_rt *)(void *)&mem; // is only handed on
    mem.slabs.alloc.alloc = mem_alloc;
    mem.slabs.alloc.free = mem_free;
    mem.slabs.alloc.user = &mem;
    volt__heap_init(&mem.heap, &mem.slabs);
    // between the classes and the part that others write lie only bytes that are never read
    unsigned char *gap = (unsigned char *)mem.heap.cls + sizeof mem.heap.cls;
    while (gap < (unsigned char *)&mem.heap.remote) *gap++ = 0xff;
}
static void mem_end(void) {
    volt__slabs_destroy(&mem.slabs);
    CHECK(!mem.slabs.first);
    test_check_heap();
}
static void check_slab(const volt__slab *s) {
    size_t size = s->cls < VOLT__CLASSES ? VOLT_SLAB_SIZE : VOLT__SLAB_HEAD + s->slot_size;
    CHECK(s->rt == mem.slabs.rt && s->heap == &mem.heap);
    CHECK_EQ(s->bytes, size);
    CHECK_EQ(s->cap, (size - VOLT__SLAB_HEAD) / s->slot_size);
    CHECK(s->carved <= s->cap && slab_used(s) <= s->carved);
    if (s->cls < VOLT__CLASSES) CHECK_EQ(s->slot_size, volt__class_size(s->cls));
    else CHECK(s->slot_size % 16 == 0 && s->cap == 1);
    if (s->state != VOLT__SLAB_CURRENT) CHECK_EQ(s->used, slab_used(s));
}
static void check_class(uint32_t cls) {
    const volt__class *c = &mem.heap.cls[cls];
    const volt__slab *before = NULL;
    uint32_t n = 0, n_listed = 0, n_empty = 0;
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next) n += s->cls == cls;
    for (volt__slab *s = c->partial; s; before = s, s = s->next, n_listed++) {
        CHECK(s->cls == cls && s->state == VOLT__SLAB_PARTIAL && s->prev == before);
        CHECK(s->used > 0 && s->used < s->cap);
    }
    for (volt__slab *s = c->empty; s; s = s->next, n_empty++)
        CHECK(s->cls == cls && s->state == VOLT__SLAB_FULL && slab_used(s) == 0);
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next)
        if (s->cls == cls && s->state == VOLT__SLAB_FULL && s->used == s->cap) n_listed++;
    if (c->current) CHECK(c->current->state == VOLT__SLAB_CURRENT && c->current->cls == cls);
    CHECK_EQ(c->n_empty, n_empty);
    CHECK_EQ(n, n_listed + n_empty + (c->current != NULL));
    CHECK_EQ(c->n_used, n - n_empty);
    mem.n_used[cls] = c->n_used;
    if (mem.n_used[cls] > mem.n_high[cls]) mem.n_high[cls] = mem.n_used[cls];
    CHECK_EQ(c->n_used_max, mem.n_high[cls]);
}
static void check_mem(void) {
    const volt__slab *before = NULL;
    for (const volt__slab *s = mem.slabs.first; s; before = s, s = s->all_next) {
        CHECK(s->all_prev == before);
        check_slab(s);
    }
    for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) check_class(cls);
}
static uint32_t count_slabs(void) {
    uint32_t n = 0;
    for (const volt__slab *s = mem.slabs.first; s; s = s->all_next) n++;
    return n;
}
static void mem_trim(void) {
    volt__heap_drain(&mem.heap);
    check_mem();
    uint32_t n = count_slabs(), n_given_back = 0;
    for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) {
        uint32_t keep = mem.n_high[cls] - mem.n_used[cls], have = mem.heap.cls[cls].n_empty;
        n_given_back += have > keep ? have - keep : 0;
        mem.n_high[cls] = mem.n_used[cls];
    }
    if (RANDOM_BELOW(2)) volt__slabs_reap(volt__heap_trim(&mem.heap));
    else volt__heap_trim_shared(&mem.heap);
    CHECK_EQ(count_slabs(), n - n_given_back);
}
static void mem_put(volt__task *t) {
    if (RANDOM_BELOW(4)) volt__heap_free_local(&mem.heap, t);
    else volt__heap_free_remote(t);
    if (RANDOM_BELOW(3) == 0) volt__heap_drain(&mem.heap);
}
static volt__task *mem_get(size_t size) {
    volt__task *t = NULL;
    uint64_t dice = RANDOM_BELOW(3);
    if (dice == 0 && size <= VOLT_SLAB_SIZE / 8) t = volt__heap_alloc_fast(&mem.heap, size);
    if (dice == 1) t = volt__heap_alloc(&mem.heap, size, 1);
    if (!t) t = volt__heap_alloc(&mem.heap, size, 0);
    CHECK(t && volt__slab_of(t)->slot_size >= size);
    return t;
}
TEST(heap_is_consistent_after_every_step) {
    enum { TASKS = 300, SIZES = 5 };
    static const size_t sizes[SIZES] = { 2000, 3000, VOLT_SLAB_SIZE / 8, VOLT_SLAB_SIZE / 8 + 1,
                                         3 * VOLT_SLAB_SIZE };
    static volt__task *task[TASKS];
    mem_begin();
    for (int k = 0; k < 6000; k++) {
        uint64_t i = RANDOM_BELOW(k / 1000 % 2 ? TASKS : TASKS / 6);
        if (task[i]) mem_put(task[i]), task[i] = NULL;
        else task[i] = mem_get(sizes[RANDOM_BELOW(k % 3 ? 3 : SIZES)]);
        check_mem();
        if (RANDOM_BELOW(100) == 0) mem_trim(), check_mem();
    }
    for (int i = 0; i < TASKS; i++)
        if (task[i]) mem_put(task[i]), check_mem();
    volt__heap_drain(&mem.heap);
    for (int i = 0; i < 2; i++) mem_trim(), check_mem();
    for (volt__slab *s = mem.slabs.first; s; s = s->all_next) CHECK(s->cls < VOLT__CLASSES);
    mem_end();
}
// From the first, the last and the middle of those with room, and back again.
TEST(slabs_become_partial_and_full_in_any_order) {
    enum { SLABS = 4, SLOTS = 7 }; // of the largest class
    volt__task *t[SLABS][SLOTS];
    mem_begin();
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < SLABS * SLOTS; i++) {
            t[i / SLOTS][i % SLOTS] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, 0);
            check_mem();
        }
        CHECK_EQ(count_slabs(), SLABS); // the same again
        int from = (int)RANDOM_BELOW(SLABS), step = RANDOM_BELOW(2) ? 1 : SLABS - 1;
        for (int k = 0; k < SLABS; k++) {
            int i = (from + k * step) % SLABS;
            volt__heap_free_local(&mem.heap, t[i][0]);
            check_mem();
        }
        for (int i = 0; i < SLABS; i++) // where there is room
            CHECK(volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, 0));
        CHECK_EQ(count_slabs(), SLABS);
        check_mem();
        for (uint32_t cls = 0; cls < VOLT__CLASSES; cls++) mem.n_high[cls] = 0;
        volt__slabs_destroy(&mem.slabs);
        volt__heap_init(&mem.heap, &mem.slabs);
    }
    mem_end();
}
TEST(heap_reuses_remote_frees_before_it_grows) {
    volt__task *t[7];
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        mem_begin();
        for (int i = 0; i < 7; i++) t[i] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, 0);
        volt__heap_free_remote(t[3]);
        CHECK(volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, is_shared) == t[3]);
        check_mem();
        t[0] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE, 0); // two large ones and a small one
        t[1] = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE, 0);
        CHECK_EQ(count_slabs(), 3);
        for (int i = 0; i < 3; i++) volt__heap_free_remote(t[i]);
        CHECK(volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, is_shared) == t[2]);
        CHECK_EQ(count_slabs(), 1);
        mem_end();
    }
}
TEST(heap_asks_allocator_for_slab_or_rounded_large_size) {
    const size_t most = UINT32_MAX / 2;
    mem_begin();
    mem.is_refusing = 1;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        for (size_t size = 1; size <= VOLT_SLAB_SIZE / 8; size += 1000) {
            CHECK(!volt__heap_alloc(&mem.heap, size, is_shared));
            CHECK_EQ(mem.asked, VOLT_SLAB_SIZE);
        }
        CHECK(!volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, is_shared));
        CHECK_EQ(mem.asked, VOLT_SLAB_SIZE);
        CHECK(!volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 1, is_shared));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + VOLT_SLAB_SIZE / 8 + 16);
        CHECK(!volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 16, is_shared));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + VOLT_SLAB_SIZE / 8 + 16);
        CHECK(!volt__heap_alloc(&mem.heap, most, is_shared));
        CHECK_EQ(mem.asked, VOLT__SLAB_HEAD + most + 1);
        int n = mem.n_allocs;
        CHECK(!volt__heap_alloc(&mem.heap, most + 1, is_shared));
        CHECK_EQ(mem.n_allocs, n);
    }
    check_mem();
    mem_end();
}
// Freed memory is reused last in, first out, and a slot is only tried where it is at hand.
TEST(local_frees_are_reused_last_in_first_out) {
    volt__task *t[3];
    mem_begin();
    CHECK(!volt__heap_alloc_fast(&mem.heap, 2000));
    for (int i = 0; i < 3; i++) {
        t[i] = volt__heap_alloc(&mem.heap, 2000, 0);
        CHECK(t[i] == volt__slab_slot(mem.slabs.first, (uint32_t)i));
        CHECK_EQ(t[i]->word, 0);
        CHECK(!volt__heap_alloc_fast(&mem.heap, 2000)); // not carved for it
    }
    for (int i = 0; i < 3; i++) volt__heap_free_local(&mem.heap, t[i]);
    CHECK(volt__heap_alloc_fast(&mem.heap, VOLT_SLAB_SIZE / 8) == NULL);
    for (int i = 2; i >= 0; i--) CHECK(volt__heap_alloc_fast(&mem.heap, 2000) == t[i]);
    for (int i = 0; i < 3; i++) volt__heap_free_remote(t[i]);
    CHECK(!volt__heap_alloc_fast(&mem.heap, 2000));
    volt__heap_drain(&mem.heap);
    CHECK(!mem.heap.remote);
    for (int i = 0; i < 3; i++) CHECK(volt__heap_alloc_fast(&mem.heap, 2000) == t[i]);
    volt__task *large = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8 + 1, 0);
    CHECK_EQ(count_slabs(), 2);
    volt__heap_free_remote(large);
    volt__heap_trim_shared(&mem.heap); // collects it, and gives it back
    CHECK_EQ(count_slabs(), 1);
    volt__task *full = volt__heap_alloc(&mem.heap, VOLT_SLAB_SIZE / 8, 0);
    volt__heap_free_local(&mem.heap, full);
    CHECK(volt__heap_alloc_fast(&mem.heap, VOLT_SLAB_SIZE / 8) == full);
    mem_end();
}

// ---- the wheel
#include "scripted_fd.h"

TEST(wheel_advance_fires_a_bounded_number_per_lock_hold) {
    static volt__node many[VOLT_FIRE_MAX + 1];
    for (uint32_t n = VOLT_FIRE_MAX - 1; n <= VOLT_FIRE_MAX + 1; n++) {
        begin(1);
        volt__chain c = no_chain();
        uint64_t n_fired = 0;
        memset(many, 0, sizeof many);
        task = still_task(w);
        for (uint32_t i = 0; i < n; i++) volt__timer_arm(&w->wheel, &many[i], task, 1);
        CHECK_EQ(volt__wheel_advance(&w->wheel, 1, &c, &n_fired), n > VOLT_FIRE_MAX);
        CHECK_EQ(n_fired, n > VOLT_FIRE_MAX ? VOLT_FIRE_MAX : n);
        end();
    }
}
TEST(disarm_does_not_write_behind_the_wheel) {
    static struct {
        volt__wheel wheel;
        volt__node *behind;
    } x;
    begin(1);
    memset(node, 0, sizeof node);
    task = still_task(w);
    uint64_t far = UINT64_C(3) << (VOLT_WHEEL_BITS * (VOLT_WHEEL_LEVELS - 1));
    for (int i = 0; i < 2; i++) volt__timer_arm(&x.wheel, &node[i], task, far);
    x.behind = &node[1]; // which is not the first of its slot
    volt__timer_disarm(&node[1], task);
    CHECK(x.behind == &node[1] && node[0].next_ == &node[0]);
    volt__timer_disarm(&node[0], task);
    CHECK(x.wheel.occupied[VOLT_WHEEL_LEVELS - 1] == 0);
    end();
}

// ---- text

// Of all leads and second bytes, and of the bounds of the others: what stands for a number that is
// not written in a shorter form, is no surrogate, and at most U+10FFFF.
TEST(utf8_len_accepts_shortest_form_of_each_character_only) {
    static const unsigned char tails[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    enum { N_TAILS = sizeof tails };
    for (uint32_t i = 256; i < 256 * 256 * N_TAILS * N_TAILS; i++) {
        const unsigned char byte[4] = { (unsigned char)(i / 256 % 256), (unsigned char)(i % 256),
                                        tails[i / 65536 % N_TAILS],
                                        tails[i / 65536 / N_TAILS] };
        char text[5] = "";
        memcpy(text, byte, sizeof byte);
        if (!byte[0]) continue;
        size_t n = byte[0] < 0x80 ? 1 : byte[0] < 0xc0 ? 0 : byte[0] < 0xe0 ? 2
                   : byte[0] < 0xf0 ? 3 : byte[0] < 0xf8 ? 4 : 0;
        uint32_t number = n < 2 ? byte[0] : byte[0] & (0x7fu >> n);
        int is_one = n > 0;
        for (size_t k = 1; k < n; k++) {
            is_one = is_one && (byte[k] & 0xc0) == 0x80;
            number = number << 6 | (byte[k] & 0x3f);
        }
        if (number < least[n] || number > 0x10ffff || number >> 11 == 0xd800 >> 11) is_one = 0;
        CHECK_EQ(volt__utf8_len(text, NULL), is_one ? n : 0);
        CHECK_EQ(volt__utf8_len(text, text + 4), is_one ? n : 0);
        for (size_t k = 1; is_one && k < n; k++)
            CHECK_EQ(volt__utf8_len(text, text + k), 0); // cut off
    }
}
