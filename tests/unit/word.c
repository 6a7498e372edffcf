// SPDX-License-Identifier: MIT OR 0BSD
// The task word: every event in every state against a table written down by hand.
__attribute__((noreturn)) static void test_panic(const char *text);
#define VOLT_PANIC(text_) test_panic(text_) // so that thousands of misuses fit in one process
#ifdef VOLT_TEST_SMALL
#  define VOLT_REF_BITS 22 // few enough to count all the way up to the trap
#endif
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include <setjmp.h>

static jmp_buf panic_exit;
static int panic_is_expected;
static char panic_text[256];
static void test_panic(const char *text) {
    if (!panic_is_expected) test_fail(__FILE__, __LINE__, "unexpected: %s", text);
    snprintf(panic_text, sizeof panic_text, "%s", text);
    longjmp(panic_exit, 1);
}

// ---- the table

enum { WAKE, CANCEL, BEGIN, SUSPEND, YIELD, FINISH, N_EVENTS };
static const char *const event_names[N_EVENTS] = { "wake",    "cancel", "begin",
                                                   "suspend", "yield",  "finish" };

// r running, n notified, c complete. The x of cancelled is kept, set by cancel, returned by begin.
// Reference counts are kept; finish gives one back and returns whether it was the last.
enum { NONE, RET_CANCELLED = 2, RET_WAS_LAST };
static const struct row {
    int event;
    const char *from, *to; // to NULL: misuse
    int ret;
} table[] = {
    { WAKE, "", "n", 1 },     { WAKE, "n", "n", 0 },    { WAKE, "r", "rn", 0 },
    { WAKE, "rn", "rn", 0 },  { WAKE, "c", "cn", 0 },   { WAKE, "cn", "cn", 0 },
    { CANCEL, "", "n", 1 },   { CANCEL, "n", "n", 0 },  { CANCEL, "r", "rn", 0 },
    { CANCEL, "rn", "rn", 0 },{ CANCEL, "c", "cn", 0 }, { CANCEL, "cn", "cn", 0 },
    { BEGIN, "", NULL, 0 },   { BEGIN, "n", "r", RET_CANCELLED },
    { BEGIN, "r", NULL, 0 },  { BEGIN, "rn", NULL, 0 },
    { BEGIN, "c", NULL, 0 },  { BEGIN, "cn", NULL, 0 },
    { SUSPEND, "", NULL, 0 }, { SUSPEND, "n", NULL, 0 },
    { SUSPEND, "r", "", 0 },  { SUSPEND, "rn", "n", 1 },
    { SUSPEND, "c", NULL, 0 },{ SUSPEND, "cn", NULL, 0 },
    { YIELD, "", NULL, 0 },   { YIELD, "n", NULL, 0 },
    { YIELD, "r", "n", NONE },{ YIELD, "rn", "n", NONE },
    { YIELD, "c", NULL, 0 },  { YIELD, "cn", NULL, 0 },
    { FINISH, "", NULL, 0 },  { FINISH, "n", NULL, 0 },
    { FINISH, "r", "c", RET_WAS_LAST }, { FINISH, "rn", "cn", RET_WAS_LAST },
    { FINISH, "c", NULL, 0 }, { FINISH, "cn", NULL, 0 },
};
enum { N_ROWS = sizeof table / sizeof *table, N_STATES = 6 };
static const uintptr_t ref_counts[] = { 1, 2, 3, 1000, (uintptr_t)1 << 20 };
enum { N_REF_COUNTS = sizeof ref_counts / sizeof *ref_counts };

static uintptr_t make_word(const char *state, int cancelled, uintptr_t refs) {
    uintptr_t w = refs << 6;
    if (strchr(state, 'r')) w |= 1;
    if (strchr(state, 'n')) w |= 2;
    if (strchr(state, 'c')) w |= 4;
    return cancelled ? w | 8 : w;
}

static int do_event(volt__task *t, int event) {
    switch (event) {
    case WAKE: return volt__task_wake(t);
    case CANCEL: return volt__task_cancel(t);
    case BEGIN: return !volt__task_begin_private(t, 0) && volt__task_begin(t) & VOLT__CANCELLED;
    case SUSPEND: return volt__task_suspend(t);
    case YIELD:
        if (!volt__task_yield_private(t, 0)) volt__task_yield(t);
        return NONE;
    default: return volt__task_finish_private(t) ? 1 : volt__task_finish(t);
    }
}

// flags: with some the runner may not take the short way for private words. The table is the same,
// but that the short way forgets a wake-up of what has ended.
static void check_way(const struct row *r, int cancelled, uintptr_t refs, uint8_t flags) {
    volt__task t;
    memset(&t, 0, sizeof t);
    t.word = make_word(r->from, cancelled, refs);
    t.flags = flags;
    int ret = do_event(&t, r->event), want = r->ret;
    if (want == RET_CANCELLED) want = cancelled;
    if (want == RET_WAS_LAST) want = refs == 1;
    uintptr_t after = make_word(r->to, cancelled || r->event == CANCEL,
                                refs - (r->event == FINISH));
    if (!flags && r->event == FINISH) after &= ~VOLT__NOTIFIED;
    if (t.word == after && ret == want) return;
    test_fail(__FILE__, __LINE__, "%s in \"%s\" x%d refs %zu: word %zx, wanted %zx; gives %d, %d",
              event_names[r->event], r->from, cancelled, (size_t)refs, (size_t)t.word,
              (size_t)after, ret, want);
}
static void check_row(const struct row *r, int cancelled, uintptr_t refs) {
    check_way(r, cancelled, refs, VOLT__IS_SHARED);
    if (cancelled || refs > 1) return; // another thread has, or had, a way to the task
    check_way(r, cancelled, refs, 0);
}
static int all_rows(void (*fn)(const struct row *r, int cancelled, uintptr_t refs), int is_legal) {
    int n = 0;
    for (int i = 0; i < N_ROWS; i++)
        for (int x = 0; x < 2; x++)
            for (int k = 0; k < N_REF_COUNTS; k++)
                if ((table[i].to != NULL) == is_legal) fn(&table[i], x, ref_counts[k]), n++;
    return n;
}

TEST(every_legal_event_gives_word_and_value_of_table) {
    CHECK_EQ(N_ROWS, N_EVENTS * N_STATES); // no state was forgotten
    CHECK_EQ(all_rows(check_row, 1), 19 * 2 * N_REF_COUNTS);
}

TEST(task_is_private_only_while_nothing_leads_to_it) {
    const uintptr_t word = make_word("r", 0, 1);
    volt__task t;
    memset(&t, 0, sizeof t);
    t.word = word;
    CHECK(!volt__task_yield_private(&t, 1)); // under a shield
    t.n_armed = 1;                           // a timer, a token
    CHECK(!volt__task_yield_private(&t, 0));
    t.n_armed = 0;
    t.shield_depth = 1;
    CHECK(!volt__task_yield_private(&t, 0));
    t.shield_depth = 0;
    for (int flag = 1; flag <= 128; flag *= 2) { // a handle, a waker, a group among them
        t.flags = (uint8_t)flag;
        CHECK(!volt__task_yield_private(&t, 0));
    }
    CHECK(t.word == word);
    t.flags = 0;
    CHECK(volt__task_yield_private(&t, 0));
    CHECK(t.word == make_word("n", 0, 1));
    CHECK(!volt__task_begin_private(&t, 1)); // the sweep of a shutdown may come by
    CHECK(volt__task_begin_private(&t, 0));
    CHECK(t.word == word);
}

// ---- misuse

#if VOLT_DEBUG
static void check_misuse(const struct row *r, int cancelled, uintptr_t refs) {
    static const uint8_t way[] = { VOLT__IS_SHARED, 0 };
    static volt__task t; // static: these keep their values over the longjmp
    static volatile int i;
    for (i = 0; i < 2; i++) {
        t.word = make_word(r->from, cancelled, refs);
        panic_is_expected = 1;
        if (!setjmp(panic_exit)) {
            t.flags = way[i];
            do_event(&t, r->event);
            test_fail(__FILE__, __LINE__, "%s in \"%s\" x%d was not stopped",
                      event_names[r->event], r->from, cancelled);
        }
        panic_is_expected = 0;
        CHECK(strstr(panic_text, "assertion failed"));
    }
}
#endif

TEST(every_illegal_event_stops_on_an_assert) {
#if VOLT_DEBUG
    CHECK_EQ(all_rows(check_misuse, 0), 17 * 2 * N_REF_COUNTS);
#else
    SKIP("asserts are off");
#endif
}

#if VOLT_DEBUG
static void check_counts_misuse(void (*fn)(volt__task *t), const char *state) {
    static volt__task t;
    t.word = make_word(state, 0, 0);
    panic_is_expected = 1;
    if (!setjmp(panic_exit)) {
        fn(&t);
        test_fail(__FILE__, __LINE__, "a word without references was used in \"%s\"", state);
    }
    panic_is_expected = 0;
}
static void retain(volt__task *t) { volt__task_retain(t); }
static void release(volt__task *t) { (void)volt__task_release(t); }
static void finish(volt__task *t) { (void)volt__task_finish(t); }
#endif

TEST(freed_task_cannot_be_retained_released_or_finished) {
#if VOLT_DEBUG
    check_counts_misuse(retain, "c");
    check_counts_misuse(release, "c");
    check_counts_misuse(release, "cn");
    check_counts_misuse(finish, "r");
#else
    SKIP("asserts are off");
#endif
}

// ---- references

static const char *const states[N_STATES] = { "", "n", "r", "rn", "c", "cn" };

static void check_references(const char *state, int cancelled, uintptr_t refs) {
    volt__task t;
    memset(&t, 0, sizeof t);
    t.word = make_word(state, cancelled, refs);
    volt__task_retain(&t);
    CHECK(t.word == make_word(state, cancelled, refs + 1));
    CHECK_EQ(volt__task_release(&t), 0);
    CHECK(t.word == make_word(state, cancelled, refs));
    CHECK_EQ(volt__task_try_retain(&t), 1);
    CHECK(t.word == make_word(state, cancelled, refs + 1));
    CHECK_EQ(volt__task_release(&t), 0);
    CHECK_EQ(volt__task_release(&t), refs == 1); // the last one frees, no other
    CHECK(t.word == make_word(state, cancelled, refs - 1));
}
TEST(references_are_counted_beside_the_flags) {
    for (int i = 0; i < N_STATES; i++)
        for (int x = 0; x < 2; x++)
            for (int k = 0; k < N_REF_COUNTS; k++) check_references(states[i], x, ref_counts[k]);
}

TEST(walker_gets_no_reference_to_free_slot) {
    volt__task t;
    memset(&t, 0, sizeof t);
    for (uintptr_t flags = 0; flags < VOLT__REF; flags++) {
        t.word = flags;
        CHECK_EQ(volt__task_try_retain(&t), 0);
        CHECK(t.word == flags);
    }
}

// Returns whether the trap was sprung.
static int retain_is_trapped(volt__task *t) {
    panic_is_expected = 1;
    if (setjmp(panic_exit)) {
        CHECK(strstr(panic_text, "too many references"));
        panic_is_expected = 0;
        return 1;
    }
    volt__task_retain(t);
    panic_is_expected = 0;
    return 0;
}
TEST(reference_count_traps_half_way_to_its_wrap) {
    static volt__task t;
    uintptr_t half = (uintptr_t)1 << (VOLT_REF_BITS + 5);
    for (uintptr_t flags = 0; flags < 16; flags++) {
        t.word = half - VOLT__REF + flags;
        CHECK(!retain_is_trapped(&t));
        for (int i = 0; i < 5; i++) CHECK(retain_is_trapped(&t)); // by several threads
        CHECK(t.word == half + 5 * VOLT__REF + flags); // while the other half is still ahead
    }
}
#ifdef VOLT_TEST_SMALL
TEST(reference_count_leaves_flags_alone_up_to_trap) {
    static volt__task t;
    uintptr_t n = 1, most = (uintptr_t)1 << (VOLT_REF_BITS - 1);
    for (t.word = make_word("rn", 1, 1); n < most; n++) volt__task_retain(&t);
    CHECK(t.word == make_word("rn", 1, most));
    CHECK(retain_is_trapped(&t));
}
#endif

// ---- decisions

TEST(wake_enqueues_only_a_task_that_sleeps) {
    for (uintptr_t refs = 0; refs < 4; refs++)
        for (uintptr_t flags = 0; flags < 16; flags++) {
            int running = flags & 1, notified = flags >> 1 & 1, complete = flags >> 2 & 1;
            int want = running + notified + complete == 0;
            CHECK_EQ(volt__word_must_enqueue(refs << 6 | flags), want);
        }
}

TEST(node_names_its_task_directly_or_through_a_scope) {
    volt__task t;
    volt__scope scope;
    volt__node n;
    memset(&t, 0, sizeof t);
    memset(&n, 0, sizeof n);
    scope.task_ = &t;
    n.waiter_ = &t;
    CHECK(volt__node_task(&n) == &t);
    n.waiter_ = (void *)((uintptr_t)&scope | VOLT__WAITER_IS_SCOPE);
    CHECK(volt__node_task(&n) == &t);
    volt__node_bind(&n, &t, &scope); // keeps the scope: it must still be told
    CHECK(volt__node_task(&n) == &t && n.waiter_ != (void *)&t && n.source_ == (void *)&scope);
    CHECK_EQ(t.n_armed, 1);
    CHECK_EQ(volt__node_state(&n), VOLT__LINKED);
    volt__node_unbind(&n, &t);
    CHECK_EQ(t.n_armed, 0);
    CHECK_EQ(volt__node_state(&n), VOLT__IDLE);
}

TEST(node_state_is_read_without_its_level) {
    volt__node n;
    memset(&n, 0, sizeof n);
    for (int level = 0; level < 16; level++)
        for (int state = VOLT__IDLE; state <= VOLT__CLOSED; state++) {
            volt__node_set(&n, (uint8_t)(level << 4 | state));
            CHECK_EQ(volt__node_state(&n), state);
        }
}

TEST(firing_a_list_wakes_each_task_once) {
    volt__task t[3];
    volt__node n[6], *head = NULL;
    volt__chain c;
    memset(t, 0, sizeof t);
    memset(n, 0, sizeof n);
    for (int i = 0; i < 3; i++) t[i].word = make_word(i == 1 ? "r" : "", 0, 1);
    for (int i = 0; i < 6; i++) {
        volt__node_bind(&n[i], &t[i / 2], &head);
        volt__list_push(&head, &n[i]);
    }
    volt__chain_init(&c);
    volt__list_fire_all(&head, VOLT__CLOSED, &c);
    CHECK(head == NULL);
    CHECK_EQ(c.len, 2); // the running one is its runner's to enqueue
    CHECK(c.head == &t[0] && c.tail == &t[2]);
    CHECK(t[1].word == make_word("rn", 0, 1));
    for (int i = 0; i < 6; i++) CHECK_EQ(volt__node_state(&n[i]), VOLT__CLOSED);
}

// ---- threads: each wake-up that wins an enqueue is followed by exactly one poll that sees it

enum { N_WAKERS = 3, N_WAKES = 60000 };
static volt__task shared;
static uint32_t queued;         // 1 while the task is in the queue of one
static uint32_t mail[N_WAKERS]; // written relaxed before a wake: the word must carry it over
static uint32_t read_up_to[N_WAKERS];

static void *waker_thread(void *arg) {
    uint32_t *box = arg;
    for (uint32_t i = 1; i <= N_WAKES; i++) {
        __atomic_store_n(box, i, __ATOMIC_RELAXED);
        int won = i % 64 ? volt__task_wake(&shared) : volt__task_cancel(&shared);
        if (!won) continue;
        CHECK_EQ(__atomic_exchange_n(&queued, 1, __ATOMIC_ACQ_REL), 0); // never queued twice
    }
    return NULL;
}
static int all_mail_is_read(void) {
    int n = 0;
    for (int i = 0; i < N_WAKERS; i++) {
        read_up_to[i] = __atomic_load_n(&mail[i], __ATOMIC_RELAXED);
        n += read_up_to[i] == N_WAKES;
    }
    return n == N_WAKERS;
}
// One poll; if no wake-up follows, it must have read all there is.
static int run_once(void) {
    (void)volt__task_begin(&shared);
    int done = all_mail_is_read();
    if (done) return 1;
    if (volt__task_suspend(&shared))
        CHECK_EQ(__atomic_exchange_n(&queued, 1, __ATOMIC_ACQ_REL), 0);
    return 0;
}

TEST(no_wake_is_lost_and_no_task_queued_twice) {
    pthread_t t[N_WAKERS];
    shared.word = make_word("", 0, 1);
    for (int i = 0; i < N_WAKERS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, waker_thread, &mail[i]), 0);
    int done = 0;
    while (!done) { // a lost wake ends in the time limit
        if (__atomic_exchange_n(&queued, 0, __ATOMIC_ACQ_REL)) done = run_once();
        else sched_yield();
    }
    for (int i = 0; i < N_WAKERS; i++) pthread_join(t[i], NULL);
    CHECK_EQ(volt__task_finish(&shared), 1);
}

enum { N_HOLDERS = 4, N_ROUNDS = 20000 };
static uint32_t frees[N_ROUNDS];
static volt__task counted[N_ROUNDS];
static int used[N_ROUNDS][N_HOLDERS]; // plain: the last one out must see every other's use

static void let_go(int round) {
    if (!volt__task_release(&counted[round])) return;
    for (int i = 0; i < N_HOLDERS; i++) CHECK_EQ(used[round][i], 1);
    __atomic_fetch_add(&frees[round], 1, __ATOMIC_RELAXED);
}
static void *holder_thread(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        volt__task_retain(&counted[i]);
        used[i][me] = 1;
        let_go(i);
        let_go(i);
    }
    return NULL;
}
TEST(last_of_many_references_frees_once) {
    pthread_t t[N_HOLDERS];
    for (int i = 0; i < N_ROUNDS; i++) counted[i].word = make_word("c", 0, N_HOLDERS);
    for (int i = 0; i < N_HOLDERS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, holder_thread, (void *)(intptr_t)i), 0);
    for (int i = 0; i < N_HOLDERS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < N_ROUNDS; i++) CHECK_EQ(frees[i], 1);
}
