// SPDX-License-Identifier: MIT OR 0BSD
// Misuse that debug builds find: each must stop the program with a line that says what is wrong,
// and where: on the line of the wrong await or, where that is no await, of the last one before it.
static void misuse_panic(const char *text);
#define VOLT_DEBUG 1
#define VOLT_PANIC(text_) misuse_panic(text_)
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "test.h"
#include "tasks.h"

// The test that runs begins there; 0: it names no line of its own. Its mistake is in its lines, or
// in a function right above.
static int misuse_from;
enum { MISUSE_LINES = 20 };
static void misuse_panic(const char *text) {
    static const char start[] = "volt: " __FILE__ ":";
    int line = strncmp(text, start, sizeof start - 1) ? 0 : atoi(text + sizeof start - 1);
    printf("%s", text);
    if (misuse_from && abs(line - misuse_from) > MISUSE_LINES)
        test_fail(__FILE__, misuse_from, "names another place");
    abort();
}

// A root that does one thing wrong, on one worker.
#define MISUSE(name_, says_, ...)                                                                  \
    typedef struct {                                                                               \
        volt_frame frame;                                                                          \
        struct __VA_ARGS__;                                                                        \
    } name_##_state;                                                                               \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s);                                  \
    static volt_poll name_##_root(volt_cx *cx, void *arg) {                                        \
        return name_##_body(cx, (name_##_state *)arg);                                             \
    }                                                                                              \
    TEST_DIES(name_, says_) {                                                                      \
        static name_##_state s;                                                                    \
        misuse_from = __LINE__;                                                                    \
        run_on(1, name_##_root, &s);                                                               \
    }                                                                                              \
    static volt_poll name_##_body(volt_cx *cx, name_##_state *s)

MISUSE(forgotten_await_is_caught, "outside VOLT_AWAIT", { giver g; }) {
    VOLT_BEGIN(cx, s);
    (void)giver_run(cx, &s->g);
    VOLT_END(0);
}

MISUSE(forgotten_await_of_wait_is_caught, "outside VOLT_AWAIT", { int unused; }) {
    VOLT_BEGIN(cx, s);
    if (volt_is_pending(volt_sleep(cx, VOLT_MS(1)))) s->unused = 1;
    VOLT_END(0);
}

MISUSE(forgotten_await_of_yield_is_caught, "outside VOLT_AWAIT", { int unused; }) {
    VOLT_BEGIN(cx, s);
    if (volt_is_pending(volt_yield(cx))) s->unused = 1;
    VOLT_END(0);
}

MISUSE(forgotten_await_of_select_is_caught, "wait called outside VOLT_AWAIT", { volt_arm a; }) {
    VOLT_BEGIN(cx, s);
    volt_poll p = VOLT_SELECT(VOLT_ARM(&s->a, volt_yield(cx)));
    if (volt_is_pending(p)) s->a.value = 1;
    VOLT_END(0);
}

// A send that needs not wait looks at no frame, so that it must look whether it is awaited.
MISUSE(forgotten_await_of_send_is_caught,
       "wait called outside VOLT_AWAIT", { volt_chan c; int buf, v; }) {
    VOLT_BEGIN(cx, s);
    volt_chan_init(&s->c, &s->buf, sizeof s->buf, 1);
    if (volt_is_pending(volt_chan_send(cx, &s->c, &s->v, sizeof s->v))) s->v = 1;
    VOLT_END(0);
}

// A read without a unit of the budget begins in the next poll, and must look before that, too.
MISUSE(forgotten_await_of_read_without_a_unit_is_caught, "wait called outside VOLT_AWAIT", {
    volt_file_op op;
    volt_sem sem;
    char to;
}) {
    VOLT_BEGIN(cx, s);
    while (cx->budget_ > 0) {
        volt_sem_release(&s->sem, 1);
        VOLT_AWAIT(volt_sem_acquire(cx, &s->sem, 1));
    }
    if (volt_is_pending(volt_file_pread(cx, &s->op, 0, &s->to, 1, 0))) s->to = 1;
    VOLT_END(0);
}

// ---- timers

// The timer of an await belongs to the task that awaits.
typedef struct {
    volt_frame frame;
    volt_timer *timer;
    int rc;
} patient;
static volt_poll patient_run(volt_cx *cx, void *arg) {
    patient *p = (patient *)arg;
    VOLT_BEGIN(cx, p);
    VOLT_AWAIT(p->rc, volt_within(cx, p->timer, VOLT_S(3), volt_sleep(cx, VOLT_S(30))));
    VOLT_END(0);
}
MISUSE(reset_of_the_timer_of_another_task_is_caught,
       "the timer of another task", { volt_timer timer; int rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(NULL, patient_run, (patient){ .timer = &s->timer });
    VOLT_AWAIT(s->rc, volt_yield(cx));
    (void)volt_timer_reset(cx, &s->timer, VOLT_NEVER);
    VOLT_END(0);
}

// ---- readers, writers, files

#ifndef VOLT_NO_STREAM
static volt_poll no_bytes(volt_cx *cx, volt_stream st, void *buf, size_t len) {
    (void)cx, (void)st, (void)buf, (void)len;
    return volt_ready(0);
}
static const volt_stream_ops no_bytes_ops = { no_bytes, NULL, NULL, NULL };
// A reader that was copied before its use: the copy would have another position in the same buffer.
#define MISUSE_OF_READER(name_, ...)                                                               \
    MISUSE(name_, "the reader was copied", {                                                       \
        volt_reader first, r;                                                                      \
        volt_span span;                                                                            \
        char buf[8];                                                                               \
    }) {                                                                                           \
        VOLT_BEGIN(cx, s);                                                                         \
        volt_reader_init(&s->first, (volt_stream){ &no_bytes_ops, NULL, -1 }, s->buf, 8,           \
                         VOLT_LONG_STOP);                                                          \
        s->r = s->first;                                                                           \
        VOLT_AWAIT(__VA_ARGS__);                                                                   \
        VOLT_END(0);                                                                               \
    }
MISUSE_OF_READER(copied_reader_is_caught_by_fill, volt_fill(cx, &s->r, 1, &s->span))
MISUSE_OF_READER(copied_reader_is_caught_by_read, volt_reader_read(cx, &s->r, s->buf, 8))
MISUSE_OF_READER(copied_reader_is_caught_by_read_exact,
                 volt_reader_read_exact(cx, &s->r, s->buf, 8))
MISUSE_OF_READER(copied_reader_is_caught_by_read_to_end, volt_read_to_end(cx, &s->r, s->buf, 8))
MISUSE_OF_READER(copied_reader_is_caught_by_read_line, volt_read_line(cx, &s->r, &s->span))
MISUSE_OF_READER(copied_reader_is_caught_by_read_record,
                 volt_read_record(cx, &s->r, &(volt_record_format){ 0 }, &s->span))
#define MISUSE_OF_WRITER(name_, ...)                                                               \
    MISUSE(name_, "the writer was copied", { volt_writer first, w; char buf[8]; }) {               \
        VOLT_BEGIN(cx, s);                                                                         \
        volt_writer_init(&s->first, volt_stream_of(-1), s->buf, 8);                                \
        s->w = s->first;                                                                           \
        VOLT_AWAIT(__VA_ARGS__);                                                                   \
        VOLT_END(0);                                                                               \
    }
MISUSE_OF_WRITER(copied_writer_is_caught_by_flush, volt_flush(cx, &s->w))
MISUSE_OF_WRITER(copied_writer_is_caught_by_put_wait, volt_put_wait(cx, &s->w, "x", 1))
MISUSE(consuming_more_than_there_is_is_caught, "volt_consume: more than is in the buffer", {
    volt_reader r;
    char buf[8];
}) {
    VOLT_BEGIN(cx, s);
    volt_reader_init(&s->r, (volt_stream){ &no_bytes_ops, NULL, -1 }, s->buf, 8, VOLT_LONG_STOP);
    misuse_from = 0; // the call has no task to name
    volt_consume(&s->r, 1);
    VOLT_END(0);
}
#endif
#ifndef VOLT_NO_PROCESS
MISUSE(second_start_of_a_running_process_is_caught, "the last process was not waited for", {
    volt_process p;
    volt_process_options o;
    int64_t rc;
}) {
    static const char *const argv[] = { "true", NULL };
    VOLT_BEGIN(cx, s);
    s->o.argv = argv;
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    CHECK_EQ(s->rc, 0);
    VOLT_AWAIT(s->rc, volt_process_start(cx, &s->p, &s->o));
    VOLT_END(0);
}
#endif
#ifndef VOLT_NO_FILES
// The address sanitizer would put the buffer elsewhere.
static __attribute__((noinline, no_sanitize_address)) volt_poll
reads_into_its_stack(volt_cx *cx, volt_file_op *op) {
    char buf[16];
    return volt_file_pread(cx, op, -1, buf, sizeof buf, 0);
}
MISUSE(file_buffer_on_the_stack_is_caught, "object on the stack", {
    volt_file_op op;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, reads_into_its_stack(cx, &s->op));
    VOLT_END(0);
}
#endif

MISUSE(child_in_frame_of_parent_is_caught, "of its caller", { int64_t value; int *n_ended; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(giver_run(cx, s));
    VOLT_END(0);
}

MISUSE(two_waits_in_one_await_are_caught, "two polls in one await", { volt_token t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT((volt_is_pending(volt_sleep(cx, VOLT_S(9))) ? volt_token_wait(cx, &s->t)
                                                            : volt_sleep(cx, VOLT_MS(1))));
    VOLT_END(0);
}

MISUSE(yield_after_wait_in_one_await_is_caught, "two polls in one await", { int unused; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT((volt_is_pending(volt_sleep(cx, VOLT_S(9))) ? volt_yield(cx)
                                                            : volt_sleep(cx, VOLT_MS(1))));
    VOLT_END(0);
}

MISUSE(two_children_in_one_await_are_caught, "outside VOLT_AWAIT", { napper a, b; }) {
    VOLT_BEGIN(cx, s);
    misuse_from = 0; // it is the first child's last await
    s->a.d = s->b.d = VOLT_S(9);
    VOLT_AWAIT((volt_is_pending(napper_run(cx, &s->a)) ? napper_run(cx, &s->b)
                                                       : napper_run(cx, &s->a)));
    VOLT_END(0);
}

MISUSE(new_child_at_next_poll_is_caught, "two polls in one await", { napper a, b; int n_polls; }) {
    VOLT_BEGIN(cx, s);
    s->a.d = s->b.d = VOLT_MS(50);
    VOLT_AWAIT((s->n_polls++ ? napper_run(cx, &s->b) : napper_run(cx, &s->a)));
    VOLT_END(0);
}

MISUSE(new_wait_at_next_poll_is_caught, "two polls in one await", { volt_arm a; int n_polls; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(
        VOLT_ARM(&s->a, s->n_polls++ % 2 ? volt_sleep_forever(cx) : volt_yield(cx))));
    VOLT_END(0);
}

// Where gcc says nothing in C11: arms are operands of a comma, and only the last one has a type to
// match.
MISUSE(child_that_is_no_arm_is_caught, "two polls in one await", { giver g; volt_arm a; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT((void)giver_run(cx, &s->g), // (void): for those that do see it
                           VOLT_ARM(&s->a, volt_sleep(cx, VOLT_MS(1)))));
    VOLT_END(0);
}

// The function that was to be awaited is called instead, and its poll returned.
MISUSE(returned_wait_is_caught, "wait called outside VOLT_AWAIT", { int unused; }) {
    VOLT_BEGIN(cx, s);
    return volt_sleep(cx, VOLT_MS(1));
    VOLT_END(0);
}
MISUSE(returned_child_is_caught, "async function called outside VOLT_AWAIT", { giver g; }) {
    VOLT_BEGIN(cx, s);
    return giver_run(cx, &s->g);
    VOLT_END(0);
}

// Polls written by hand that forget what they have begun.
static volt_poll forgets_a_sleep(volt_cx *cx) {
    return volt_ready(volt_is_pending(volt_sleep(cx, VOLT_S(5))));
}
MISUSE(wait_dropped_at_end_of_function_is_caught,
       "function returned with its own wait still pending", {
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, forgets_a_sleep(cx));
    VOLT_END(s->rc);
}
MISUSE(wait_dropped_before_another_is_caught, "two polls in one await", { int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, forgets_a_sleep(cx));
    VOLT_AWAIT(volt_yield(cx));
    VOLT_END(s->rc);
}
static volt_poll forgets_a_timeout(volt_cx *cx, volt_timer *t) {
    return volt_ready(volt_is_pending(volt_within(cx, t, VOLT_MS(1), volt_sleep_forever(cx))));
}
MISUSE(dropped_timeout_is_caught, "task ended with a wait still pending", {
    volt_timer t;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, forgets_a_timeout(cx, &s->t));
    VOLT_END(s->rc);
}
static volt_poll forgets_a_child(volt_cx *cx, napper *n) {
    return volt_ready(volt_is_pending(napper_run(cx, n)));
}
MISUSE(dropped_child_is_caught, "a child returned without VOLT_RETURN or VOLT_END", {
    napper n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    s->n.d = VOLT_S(60); // not over at once, however slow the machine is
    VOLT_AWAIT(s->rc, forgets_a_child(cx, &s->n));
    VOLT_END(s->rc);
}

MISUSE(changed_number_of_arms_is_caught,
       "the number of arms has changed", { volt_arm a, b; int n_polls; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(
        VOLT_ARM(&s->a, volt_sleep_forever(cx)),
        s->n_polls++ < 2 ? VOLT_ARM(&s->b, volt_yield(cx)) : (volt__arm_status){ 0 }));
    VOLT_END(0);
}

MISUSE(result_of_child_that_did_not_run_is_caught, "has not ended", { giver g; }) {
    VOLT_BEGIN(cx, s);
    VOLT_END(volt_result(&s->g.frame));
}

MISUSE(destination_too_small_for_result_is_caught, "does not fit", { giver g; signed char rc; }) {
    VOLT_BEGIN(cx, s);
    s->g.value = 300;
    VOLT_AWAIT(s->rc, giver_run(cx, &s->g));
    VOLT_END(0);
}

MISUSE(result_that_means_pending_is_caught, "-4096 is reserved", { int unused; }) {
    VOLT_BEGIN(cx, s);
    VOLT_END(-4096);
}

MISUSE(bare_number_as_duration_is_caught, "VOLT_MS", { int unused; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_sleep(cx, 100));
    VOLT_END(0);
}

// One object of memory in two waits at once.
MISUSE(timer_around_itself_is_caught, "nested in itself", { volt_timer t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_within(cx, &s->t, VOLT_S(2),
                           volt_within(cx, &s->t, VOLT_S(1), volt_sleep_forever(cx))));
    VOLT_END(0);
}
MISUSE(token_link_around_itself_is_caught, "nested in itself",
       { volt_token_link l; volt_token t; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_with_token(cx, &s->l, &s->t,
                               volt_with_token(cx, &s->l, &s->t, volt_sleep_forever(cx))));
    VOLT_END(0);
}
MISUSE(arm_used_twice_is_caught, "volt_arm used twice", { volt_arm a; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->a, volt_sleep(cx, VOLT_MS(1))),
                             VOLT_ARM(&s->a, volt_sleep(cx, VOLT_MS(2)))));
    VOLT_END(0);
}
MISUSE(arm_used_twice_by_waits_that_end_at_once_is_caught, "volt_arm used twice", {
    volt_arm a;
    volt_event e;
}) {
    VOLT_BEGIN(cx, s);
    volt_event_set(&s->e);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->a, volt_event_wait(cx, &s->e)),
                             VOLT_ARM(&s->a, volt_event_wait(cx, &s->e))));
    VOLT_END(0);
}
MISUSE(arm_of_yields_used_twice_is_caught, "volt_arm used twice", { volt_arm a; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->a, volt_yield(cx)), VOLT_ARM(&s->a, volt_yield(cx))));
    VOLT_END(0);
}
MISUSE(arm_inside_itself_is_caught, "volt_arm nested in itself", { volt_arm a; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&s->a, VOLT_SELECT(VOLT_ARM(&s->a, volt_sleep_forever(cx))))));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    giver *child;
} borrower;
static volt_poll never_ends(volt_cx *cx, giver *g) {
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(volt_sleep_forever(cx));
    VOLT_END(0);
}
MISUSE(child_in_two_arms_is_caught,
       "child is in use by another await", { volt_arm a, b; giver g; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_JOIN_ALL(VOLT_ARM(&s->a, never_ends(cx, &s->g)),
                             VOLT_ARM(&s->b, never_ends(cx, &s->g))));
    VOLT_END(0);
}
static volt_poll borrower_run(volt_cx *cx, void *arg) {
    borrower *b = (borrower *)arg;
    VOLT_BEGIN(cx, b);
    VOLT_AWAIT(never_ends(cx, b->child));
    VOLT_END(0);
}
MISUSE(child_of_two_tasks_is_caught, "child is in use by another await", { giver g; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(NULL, borrower_run, (borrower){ .child = &s->g });
    VOLT_AWAIT(never_ends(cx, &s->g));
    VOLT_END(0);
}

#ifndef VOLT__ASAN // which keeps locals elsewhere
MISUSE(read_buffer_on_stack_is_caught, "stack", { int fd[2]; int64_t n; }) {
    char buf[16];
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->n, volt_read(cx, s->fd[0], buf, sizeof buf));
    VOLT_END(0);
}
MISUSE(read_exact_buffer_on_stack_is_caught, "stack", { int fd[2]; int64_t n; }) {
    char buf[16];
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->n, volt_read_exact(cx, s->fd[0], buf, sizeof buf));
    VOLT_END(0);
}
MISUSE(write_buffer_on_stack_is_caught, "stack", { int fd[2]; int64_t n; }) {
    char buf[16] = "";
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->n, volt_write(cx, s->fd[1], buf, sizeof buf));
    VOLT_END(0);
}
MISUSE(write_all_buffer_on_stack_is_caught, "stack", { int fd[2]; int64_t n; }) {
    char buf[16] = "";
    VOLT_BEGIN(cx, s);
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->n, volt_write_all(cx, s->fd[1], buf, sizeof buf));
    VOLT_END(0);
}
MISUSE(timer_on_stack_is_caught, "stack", { int unused; }) {
    volt_timer t;
    VOLT_BEGIN(cx, s);
    memset(&t, 0, sizeof t);
    VOLT_AWAIT(volt_within(cx, &t, VOLT_S(1), volt_sleep_forever(cx)));
    VOLT_END(0);
}
MISUSE(token_link_on_stack_is_caught, "stack", { volt_token t; }) {
    volt_token_link l;
    VOLT_BEGIN(cx, s);
    memset(&l, 0, sizeof l);
    VOLT_AWAIT(volt_with_token(cx, &l, &s->t, volt_sleep_forever(cx)));
    VOLT_END(0);
}
MISUSE(token_around_a_poll_on_stack_is_caught, "stack", { volt_token_link l; }) {
    volt_token t;
    VOLT_BEGIN(cx, s);
    volt_token_init(&t, NULL);
    VOLT_AWAIT(volt_with_token(cx, &s->l, &t, volt_sleep_forever(cx)));
    VOLT_END(0);
}
MISUSE(token_on_stack_is_caught, "stack", { int unused; }) {
    volt_token t;
    VOLT_BEGIN(cx, s);
    volt_token_init(&t, NULL);
    VOLT_AWAIT(volt_token_wait(cx, &t));
    VOLT_END(0);
}
MISUSE(arm_on_stack_is_caught, "stack", { int unused; }) {
    volt_arm a;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(VOLT_ARM(&a, volt_sleep_forever(cx))));
    VOLT_END(0);
}
MISUSE(shield_on_stack_is_caught, "stack", { int unused; }) {
    volt_shield a;
    VOLT_BEGIN(cx, s);
    memset(&a, 0, sizeof a);
    volt_shield_begin(cx, &a, VOLT_S(1));
    VOLT_END(0);
}
MISUSE(handle_on_stack_is_caught, "stack", { int unused; }) {
    volt_handle h;
    VOLT_BEGIN(cx, s);
    SPAWN(&h, napper_run, (napper){ .d = VOLT_S(1) });
    VOLT_AWAIT(volt_join(cx, &h));
    VOLT_END(0);
}
MISUSE(joined_state_on_stack_is_caught, "stack", { volt_handle h; }) {
    napper n;
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, napper_run, (napper){ .d = VOLT_S(1) });
    VOLT_AWAIT(volt_join_state(cx, &s->h, &n, sizeof n));
    VOLT_END(0);
}
MISUSE(group_on_stack_is_caught, "stack", { int unused; }) {
    volt_group g;
    VOLT_BEGIN(cx, s);
    memset(&g, 0, sizeof g);
    GROUP_SPAWN(&g, napper_run, (napper){ .d = VOLT_S(1) });
    VOLT_END(0);
}
MISUSE(child_on_stack_is_caught, "stack", { int unused; }) {
    napper n;
    VOLT_BEGIN(cx, s);
    memset(&n, 0, sizeof n);
    VOLT_AWAIT(napper_run(cx, &n));
    VOLT_END(0);
}
MISUSE(children_on_stack_are_caught, "stack", { int unused; }) {
    napper n[2];
    VOLT_BEGIN(cx, s);
    memset(n, 0, sizeof n);
    VOLT_AWAIT(volt_join_all(cx, VOLT_EACH(napper_run, n)));
    VOLT_END(0);
}
MISUSE(poll_events_on_stack_are_caught, "stack", { volt_pollset p; }) {
    volt_pollev ev[2];
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_pollset_open(&s->p), 0);
    VOLT_AWAIT(volt_pollset_wait(cx, &s->p, ev, 2));
    VOLT_END(0);
}
MISUSE(interval_on_stack_is_caught, "stack", { int unused; }) {
    volt_interval iv;
    VOLT_BEGIN(cx, s);
    volt_interval_init(&iv, VOLT_S(1));
    VOLT_AWAIT(volt_interval_next(cx, &iv));
    VOLT_END(0);
}
MISUSE(iovec_on_stack_is_caught, "stack", { int fd[2]; char buf[16]; int64_t n; }) {
    struct iovec v;
    VOLT_BEGIN(cx, s);
    v.iov_base = s->buf;
    v.iov_len = sizeof s->buf;
    CHECK_EQ(pipe(s->fd), 0);
    VOLT_AWAIT(s->n, volt_readv(cx, s->fd[0], &v, 1));
    VOLT_END(0);
}
// Waits that keep a pointer to memory of the caller. kept_: the members of the state.
#define MISUSE_OF_STACK(name_, kept_, on_stack_, ...)                                              \
    MISUSE(name_, "stack", kept_) {                                                                \
        on_stack_;                                                                                 \
        VOLT_BEGIN(cx, s);                                                                         \
        memset(&on, 0, sizeof on);                                                                 \
        VOLT_AWAIT(__VA_ARGS__);                                                                   \
        VOLT_END(0);                                                                               \
    }
MISUSE_OF_STACK(semaphore_on_stack_is_caught, { int unused; }, volt_sem on,
                volt_sem_acquire(cx, &on, 1))
MISUSE_OF_STACK(semaphore_on_stack_is_caught_before_the_number, { int unused; }, volt_sem on,
                volt_sem_acquire(cx, &on, VOLT_SEM_MAX + 1))
MISUSE_OF_STACK(empty_group_on_stack_is_caught, { int unused; }, volt_group on,
                volt_group_wait(cx, &on))
MISUSE_OF_STACK(group_on_stack_that_gives_no_result_is_caught, { int unused; }, volt_group on,
                volt_group_next(cx, &on, NULL))
MISUSE_OF_STACK(closed_group_on_stack_is_caught, { int unused; }, volt_group on,
                volt_group_close(cx, &on))
MISUSE_OF_STACK(id_of_group_member_on_stack_is_caught, { volt_group g; }, uint64_t on,
                volt_group_next(cx, &s->g, &on))
MISUSE_OF_STACK(event_on_stack_is_caught, { int unused; }, volt_event on, volt_event_wait(cx, &on))
MISUSE_OF_STACK(notify_on_stack_is_caught, { int unused; }, volt_notify on,
                volt_notify_wait(cx, &on))
MISUSE_OF_STACK(notify_with_count_on_stack_is_caught, { int unused; }, volt_notify on,
                volt_notify_wait_past(cx, &on, 0))
MISUSE_OF_STACK(barrier_on_stack_is_caught, { int unused; }, volt_barrier on,
                volt_barrier_wait(cx, &on))
MISUSE_OF_STACK(condition_on_stack_is_caught, { volt_mutex m; }, volt_cond on,
                volt_cond_wait(cx, &on, &s->m))
MISUSE_OF_STACK(mutex_of_condition_on_stack_is_caught, { volt_cond c; }, volt_mutex on,
                volt_cond_wait(cx, &s->c, &on))
MISUSE_OF_STACK(channel_to_send_to_on_stack_is_caught, { int v; }, volt_chan on,
                volt_chan_send(cx, &on, &s->v, sizeof s->v))
MISUSE_OF_STACK(channel_to_receive_from_on_stack_is_caught, { int v; }, volt_chan on,
                volt_chan_recv(cx, &on, &s->v, sizeof s->v))
MISUSE_OF_STACK(value_to_send_on_stack_is_caught, { volt_chan c; }, int on,
                volt_chan_send(cx, &s->c, &on, sizeof on))
MISUSE_OF_STACK(values_to_send_on_stack_is_caught, { volt_chan c; }, int on,
                volt_chan_send_n(cx, &s->c, &on, sizeof on, 1))
MISUSE_OF_STACK(value_to_receive_on_stack_is_caught, { volt_chan c; }, int on,
                volt_chan_recv(cx, &s->c, &on, sizeof on))
MISUSE_OF_STACK(values_to_receive_on_stack_is_caught, { volt_chan c; }, int on,
                volt_chan_recv_n(cx, &s->c, &on, sizeof on, 1))
MISUSE_OF_STACK(oneshot_on_stack_is_caught, { int unused; }, volt_oneshot on,
                volt_oneshot_recv(cx, &on))
MISUSE_OF_STACK(queue_on_stack_is_caught, { volt_queue_node *out; }, volt_queue on,
                volt_queue_pop(cx, &on, &s->out))
MISUSE_OF_STACK(popped_node_on_stack_is_caught, { volt_queue q; }, volt_queue_node *on,
                volt_queue_pop(cx, &s->q, &on))
MISUSE_OF_STACK(value_of_subscription_on_stack_is_caught, { volt_sub sub; }, int on,
                volt_sub_recv(cx, &s->sub, &on, sizeof on))
MISUSE_OF_STACK(value_of_watch_on_stack_is_caught, { volt_watcher r; }, int on,
                volt_watcher_until(cx, &s->r, NULL, NULL, &on, sizeof on))
MISUSE_OF_STACK(argument_of_watch_on_stack_is_caught, { volt_watcher r; int v; }, int on,
                volt_watcher_until(cx, &s->r, NULL, &on, &s->v, sizeof s->v))
#ifndef VOLT_SINGLE_THREAD // which has no pool
static int no_call(void *arg) { return arg != NULL; }
MISUSE_OF_STACK(job_on_stack_is_caught, { int unused; }, volt_job on,
                volt_blocking(cx, &on, no_call, NULL))
MISUSE_OF_STACK(argument_of_job_on_stack_is_caught, { volt_job job; }, int on,
                volt_blocking(cx, &s->job, no_call, &on))
MISUSE_OF_STACK(detached_job_on_stack_is_caught, { int unused; }, volt_detached_job on,
                volt_blocking_detach(cx, &on, no_call, NULL, NULL))
MISUSE_OF_STACK(argument_of_detached_job_on_stack_is_caught, { volt_detached_job job; }, int on,
                volt_blocking_detach(cx, &s->job, no_call, &on, NULL))
#endif
#ifndef VOLT_NO_FILES
MISUSE_OF_STACK(file_operation_on_stack_is_caught, { int unused; }, volt_file_op on,
                volt_file_close(cx, &on, -1))
MISUSE_OF_STACK(buffer_of_file_on_stack_is_caught, { volt_file_op op; }, char on[8],
                volt_file_pread(cx, &s->op, 0, on, sizeof on, 0))
MISUSE_OF_STACK(path_of_file_on_stack_is_caught, { volt_file_op op; }, char on[8],
                volt_file_open(cx, &s->op, on, O_RDONLY, 0))
MISUSE_OF_STACK(new_path_of_file_on_stack_is_caught, { volt_file_op op; }, char on[8],
                volt_file_rename(cx, &s->op, "", on))
#endif
#ifndef VOLT_NO_IO
// The descriptor is none: the check comes first.
MISUSE_OF_STACK(iovec_of_write_all_on_stack_is_caught, { int unused; }, struct iovec on,
                volt_writev_all(cx, -1, &on, 1))
MISUSE_OF_STACK(received_datagram_on_stack_is_caught, { int unused; }, char on[8],
                volt_recvfrom(cx, -1, on, sizeof on, 0, NULL))
MISUSE_OF_STACK(sent_datagram_on_stack_is_caught, { int unused; }, char on[8],
                volt_sendto(cx, -1, on, sizeof on, 0, NULL))
MISUSE_OF_STACK(received_message_on_stack_is_caught, { int unused; }, struct msghdr on,
                volt_recvmsg(cx, -1, &on, 0))
MISUSE_OF_STACK(sent_message_on_stack_is_caught, { int unused; }, struct msghdr on,
                volt_sendmsg(cx, -1, &on, 0))
MISUSE_OF_STACK(received_messages_on_stack_is_caught, { int unused; }, struct mmsghdr on,
                volt_recvmmsg(cx, -1, &on, 1, 0))
MISUSE_OF_STACK(sent_messages_on_stack_is_caught, { int unused; }, struct mmsghdr on,
                volt_sendmmsg(cx, -1, &on, 1, 0))
MISUSE_OF_STACK(address_of_sender_on_stack_is_caught, { char buf[8]; }, volt_addr on,
                volt_recvfrom(cx, -1, s->buf, sizeof s->buf, 0, &on))
MISUSE_OF_STACK(address_to_send_to_on_stack_is_caught, { char buf[8]; }, volt_addr on,
                volt_sendto(cx, -1, s->buf, sizeof s->buf, 0, &on))
MISUSE_OF_STACK(address_of_accepted_peer_on_stack_is_caught, { int unused; }, volt_addr on,
                volt_accept_from(cx, -1, &on))
MISUSE_OF_STACK(address_to_connect_to_on_stack_is_caught, { int unused; }, volt_addr on,
                volt_connect(cx, &on))
MISUSE_OF_STACK(address_to_connect_from_on_stack_is_caught, { volt_addr to; }, volt_addr on,
                volt_connect_from(cx, &s->to, &on))
MISUSE_OF_STACK(poll_set_on_stack_is_caught, { volt_pollev ev; }, volt_pollset on,
                volt_pollset_wait(cx, &on, &s->ev, 1))
MISUSE_OF_STACK(found_address_on_stack_is_caught, { volt_lookup l; }, volt_addr on,
                volt_resolve(cx, &s->l, "127.0.0.1", "1", &on, 1))
MISUSE_OF_STACK(lookup_on_stack_is_caught, { volt_addr a; }, volt_lookup on,
                volt_resolve(cx, &on, "127.0.0.1", "1", &s->a, 1))
#endif
#ifndef VOLT_NO_UDP
MISUSE_OF_STACK(sent_segments_on_stack_is_caught, { int unused; }, char on[8],
                volt_send_segments(cx, -1, on, sizeof on, 4, NULL))
MISUSE_OF_STACK(received_segments_on_stack_is_caught, { size_t segment; }, char on[8],
                volt_recv_segments(cx, -1, on, sizeof on, &s->segment, NULL, NULL))
MISUSE_OF_STACK(address_of_sent_segments_on_stack_is_caught, { char buf[8]; }, volt_addr on,
                volt_send_segments(cx, -1, s->buf, sizeof s->buf, 4, &on))
MISUSE_OF_STACK(size_of_received_segments_on_stack_is_caught, { char buf[8]; }, size_t on,
                volt_recv_segments(cx, -1, s->buf, sizeof s->buf, &on, NULL, NULL))
MISUSE_OF_STACK(address_of_received_segments_on_stack_is_caught, { char buf[8]; size_t n; },
                volt_addr on, volt_recv_segments(cx, -1, s->buf, sizeof s->buf, &s->n, &on, NULL))
MISUSE_OF_STACK(information_of_received_segments_on_stack_is_caught, { char buf[8]; size_t n; },
                volt_msg_info on,
                volt_recv_segments(cx, -1, s->buf, sizeof s->buf, &s->n, NULL, &on))
#endif
#ifndef VOLT_NO_UNIX
MISUSE_OF_STACK(bytes_beside_sent_descriptors_on_stack_is_caught, { int fd; }, char on[8],
                volt_send_fds(cx, -1, on, sizeof on, &s->fd, 1))
MISUSE_OF_STACK(bytes_beside_received_descriptors_on_stack_is_caught, { int fd; }, char on[8],
                volt_recv_fds(cx, -1, on, sizeof on, &s->fd, 1, NULL))
MISUSE_OF_STACK(sent_descriptors_on_stack_are_caught, { char buf[8]; }, int on[1],
                volt_send_fds(cx, -1, s->buf, sizeof s->buf, on, 1))
MISUSE_OF_STACK(received_descriptors_on_stack_are_caught, { char buf[8]; }, int on[1],
                volt_recv_fds(cx, -1, s->buf, sizeof s->buf, on, 1, NULL))
MISUSE_OF_STACK(number_of_received_descriptors_on_stack_is_caught, { char buf[8]; int fd; },
                volt_fds_info on, volt_recv_fds(cx, -1, s->buf, sizeof s->buf, &s->fd, 1, &on))
#endif
#ifndef VOLT_NO_STREAM
MISUSE_OF_STACK(offset_of_sendfile_on_stack_is_caught, { int unused; }, int64_t on,
                volt_sendfile(cx, -1, -1, &on, 1))
MISUSE(buffer_of_reader_on_stack_is_caught, "stack", { volt_reader r; volt_span span; }) {
    char buf[8];
    VOLT_BEGIN(cx, s);
    volt_reader_init(&s->r, volt_stream_of(-1), buf, sizeof buf, VOLT_LONG_STOP);
    VOLT_AWAIT(volt_read_line(cx, &s->r, &s->span));
    VOLT_END(0);
}
#define MISUSE_BESIDE_READER(name_, on_stack_, ...)                                                \
    MISUSE(name_, "stack", { volt_reader r; char buf[8]; volt_record_format f; volt_span span; }) {\
        on_stack_;                                                                                 \
        VOLT_BEGIN(cx, s);                                                                         \
        memset(&on, 0, sizeof on);                                                                 \
        volt_reader_init(&s->r, volt_stream_of(-1), s->buf, sizeof s->buf, VOLT_LONG_STOP);        \
        VOLT_AWAIT(__VA_ARGS__);                                                                   \
        VOLT_END(0);                                                                               \
    }
MISUSE_BESIDE_READER(filled_span_on_stack_is_caught, volt_span on, volt_fill(cx, &s->r, 1, &on))
MISUSE_BESIDE_READER(buffer_beside_reader_on_stack_is_caught, char on[4],
                 volt_reader_read(cx, &s->r, on, sizeof on))
MISUSE_BESIDE_READER(buffer_to_fill_from_reader_on_stack_is_caught, char on[4],
                 volt_reader_read_exact(cx, &s->r, on, sizeof on))
MISUSE_BESIDE_READER(line_on_stack_is_caught, volt_span on, volt_read_line(cx, &s->r, &on))
MISUSE_BESIDE_READER(delimiter_on_stack_is_caught, char on[2],
                 volt_read_until(cx, &s->r, on, sizeof on, &s->span))
MISUSE_BESIDE_READER(record_on_stack_is_caught, volt_span on,
                 volt_read_record(cx, &s->r, &s->f, &on))
MISUSE_BESIDE_READER(format_of_record_on_stack_is_caught, volt_record_format on,
                 volt_read_record(cx, &s->r, &on, &s->span))
MISUSE(bytes_to_put_on_stack_are_caught, "stack", { volt_writer w; char buf[8]; }) {
    char on[14];
    VOLT_BEGIN(cx, s);
    memset(on, 0, sizeof on);
    volt_writer_init(&s->w, volt_stream_of(-1), s->buf, sizeof s->buf);
    VOLT_AWAIT(volt_put_wait(cx, &s->w, on, sizeof on));
    VOLT_END(0);
}
MISUSE(buffer_of_writer_on_stack_is_caught, "stack", { volt_writer w; }) {
    char buf[8];
    VOLT_BEGIN(cx, s);
    volt_writer_init(&s->w, volt_stream_of(-1), buf, sizeof buf);
    VOLT_AWAIT(volt_put_wait(cx, &s->w, "more than fits", 14));
    VOLT_END(0);
}
#endif
#ifndef VOLT_NO_SIGNAL
MISUSE_OF_STACK(received_signal_on_stack_is_caught, { int unused; }, volt_signal_info on,
                volt_signals_next(cx, -1, &on))
#endif
#ifndef VOLT_NO_PROCESS
MISUSE_OF_STACK(options_of_process_on_stack_is_caught, { volt_process p; }, volt_process_options on,
                volt_process_start(cx, &s->p, &on))
MISUSE_OF_STACK(arguments_of_process_on_stack_is_caught,
                { volt_process p; volt_process_options o; },
                const char *on[1],
                (s->o.argv = on, volt_process_start(cx, &s->p, &s->o)))
MISUSE_OF_STACK(end_of_process_on_stack_is_caught, { volt_process p; }, volt_exit_status on,
                volt_process_wait(cx, &s->p, &on))
MISUSE_OF_STACK(end_of_process_that_is_ended_on_stack_is_caught, { volt_process p; },
                volt_exit_status on, volt_process_end(cx, &s->p, 0, &on))
MISUSE_OF_STACK(options_of_capture_on_stack_are_caught, { volt_capture c; },
                volt_process_options on, volt_capture_run(cx, &s->c, &on))
#endif
#endif

// A wait in a function that has no VOLT_BEGIN has no frame to wait in.
static volt_poll no_begin(volt_cx *cx, void *arg) {
    (void)arg;
    return volt_sleep(cx, VOLT_MS(1));
}
TEST_DIES(wait_without_begin_is_caught, "wait called by a function without VOLT_BEGIN") {
    giver g = { .value = 0 };
    run_on(1, no_begin, &g);
}
typedef struct {
    volt_frame frame;
    volt_chan c;
    int buf, v;
} beginless;
static volt_poll sends_without_begin(volt_cx *cx, void *arg) {
    beginless *b = (beginless *)arg;
    volt_chan_init(&b->c, &b->buf, sizeof b->buf, 1);
    return volt_chan_send(cx, &b->c, &b->v, sizeof b->v);
}
TEST_DIES(send_without_begin_is_caught, "wait called by a function without VOLT_BEGIN") {
    static beginless b;
    run_on(1, sends_without_begin, &b);
}
static volt_poll yields_without_begin(volt_cx *cx, void *arg) {
    (void)arg;
    return volt_yield(cx);
}
TEST_DIES(yield_without_begin_is_caught, "wait called by a function without VOLT_BEGIN") {
    giver g = { .value = 0 };
    run_on(1, yields_without_begin, &g);
}

#ifndef VOLT_NO_IO
static volt_poll accepts_without_begin(volt_cx *cx, void *arg) {
    (void)arg;
    return volt_accept(cx, STDIN_FILENO);
}
TEST_DIES(accept_without_begin_is_caught, "wait called by a function without VOLT_BEGIN") {
    giver g = { .value = 0 };
    run_on(1, accepts_without_begin, &g);
}
#endif

typedef struct {
    volt_frame frame;
    int unused;
} leaper;
static volt_poll leaper_run(volt_cx *cx, leaper *l) {
    volt_poll one;
    one.v_ = 1;
    VOLT_BEGIN(cx, l);
    return one;
    VOLT_END(0);
}
MISUSE(return_without_volt_return_is_caught, "without VOLT_RETURN", { leaper l; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(leaper_run(cx, &s->l));
    VOLT_END(0);
}

MISUSE(group_left_open_is_caught, "group", { volt_group g; }) {
    VOLT_BEGIN(cx, s);
    GROUP_SPAWN(&s->g, napper_run, (napper){ .d = VOLT_S(100) });
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(0);
}

MISUSE(bounded_shield_opened_twice_is_caught, "already open", { volt_shield a; }) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->a, VOLT_S(1));
    volt_shield_begin(cx, &s->a, VOLT_S(1));
    VOLT_END(0);
}

MISUSE(shields_ended_in_wrong_order_are_caught, "volt_shield_end", { volt_shield a, b; }) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->a, VOLT_S(1));
    volt_shield_begin(cx, &s->b, VOLT_S(1));
    volt_shield_end(cx, &s->a);
    VOLT_END(0);
}

MISUSE(shield_ended_twice_is_caught, "volt_shield_end", { volt_shield a; }) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->a, VOLT_S(1));
    volt_shield_end(cx, &s->a);
    volt_shield_end(cx, &s->a);
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_handle h;
} joiner;
static volt_poll joiner_run(volt_cx *cx, void *arg) {
    joiner *j = arg;
    VOLT_BEGIN(cx, j);
    VOLT_AWAIT(volt_join(cx, &j->h));
    VOLT_END(0);
}
MISUSE(two_joins_of_one_task_are_caught, "another join", { volt_handle h; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, napper_run, (napper){ .d = VOLT_S(100) });
    SPAWN(NULL, joiner_run, (joiner){ .h = s->h }); // a handle must not be copied
    VOLT_AWAIT(volt_join(cx, &s->h));
    VOLT_END(0);
}

TEST_DIES(token_deinit_before_its_children_is_caught, "volt_token_deinit") {
    static volt_token root, child, grandchild;
    volt_token_init(&child, &root);
    volt_token_init(&grandchild, &child);
    volt_token_deinit(&child);
}

// The function expects more state than was spawned.
typedef struct {
    volt_frame frame;
    char more[1000];
} larger;
static volt_poll larger_run(volt_cx *cx, void *arg) {
    larger *l = arg;
    VOLT_BEGIN(cx, l);
    VOLT_END(0);
}
MISUSE(function_of_larger_state_is_caught, "wrong function", { volt_handle h; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, larger_run, (giver){ .value = 1 });
    VOLT_AWAIT(volt_join(cx, &s->h));
    VOLT_END(0);
}

TEST_DIES(created_task_with_dirty_frame_is_caught, "volt_task_start: frame not zeroed") {
    volt_rt *rt = create_on(1);
    giver *g = volt_task_create(rt, giver_run, sizeof *g);
    CHECK(g);
    memset(g, 1, sizeof *g);
    volt_task_start(g, NULL);
}

// Deeper than the counters go.
MISUSE(too_many_arms_are_caught, "too many arms", { volt_arm a; int i; }) {
#define ARM10                                                                                      \
    VOLT_ARM(&s->a, volt_sleep_forever(cx)), VOLT_ARM(&s->a, volt_sleep_forever(cx)),              \
        VOLT_ARM(&s->a, volt_sleep_forever(cx)), VOLT_ARM(&s->a, volt_sleep_forever(cx)),          \
        VOLT_ARM(&s->a, volt_sleep_forever(cx)), VOLT_ARM(&s->a, volt_sleep_forever(cx)),          \
        VOLT_ARM(&s->a, volt_sleep_forever(cx)), VOLT_ARM(&s->a, volt_sleep_forever(cx)),          \
        VOLT_ARM(&s->a, volt_sleep_forever(cx)), VOLT_ARM(&s->a, volt_sleep_forever(cx))
#define ARM70 ARM10, ARM10, ARM10, ARM10, ARM10, ARM10, ARM10
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(VOLT_SELECT(ARM70, ARM70, ARM70));
    VOLT_END(0);
}

typedef struct {
    volt_frame frame;
    volt_shield *shield;
} shield_ender;
static volt_poll shield_ender_run(volt_cx *cx, void *arg) {
    shield_ender *s = (shield_ender *)arg;
    VOLT_BEGIN(cx, s);
    volt_shield_end(cx, s->shield);
    VOLT_END(0);
}
MISUSE(shield_of_another_frame_is_caught, "shield or group belongs to another frame", {
    volt_shield shield;
    shield_ender child;
}) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    s->child.shield = &s->shield;
    VOLT_AWAIT(shield_ender_run(cx, &s->child));
    VOLT_END(0);
}
MISUSE(unbounded_shield_opened_twice_is_caught, "already open", { volt_shield shield; }) {
    VOLT_BEGIN(cx, s);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    volt_shield_begin(cx, &s->shield, VOLT_NEVER);
    VOLT_END(0);
}
static volt_poll shield_without_frame(volt_cx *cx, void *arg) {
    static volt_shield shield;
    (void)arg;
    volt_shield_begin(cx, &shield, VOLT_NEVER);
    return volt_ready(0);
}
TEST_DIES(shield_without_frame_is_caught, "no VOLT_BEGIN") {
    static giver g;
    run_on(1, shield_without_frame, &g);
}
MISUSE(token_deinit_while_task_waits_is_caught, "the token has waiters", {
    volt_token t;
    int started;
    awaiter a;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(NULL, waiter_run, (waiter){ .token = &s->t, .n_started = &s->started });
    VOLT_AWAIT(until_reaches(cx, &s->a, &s->started, 1));
    volt_token_deinit(&s->t);
    VOLT_END(0);
}
MISUSE(too_many_shields_are_caught, "253 nested shields", {
    volt_shield shield[UINT8_MAX];
    int i;
}) {
    VOLT_BEGIN(cx, s);
    for (s->i = 0; s->i < UINT8_MAX; s->i++)
        volt_shield_begin(cx, &s->shield[s->i], VOLT_NEVER);
    VOLT_END(0);
}
static volt_handle own_handle;
static volt_poll joins_itself_run(volt_cx *cx, void *arg) {
    giver *s = (giver *)arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->value, volt_join(cx, &own_handle));
    VOLT_END(0);
}
MISUSE(task_that_joins_itself_is_caught, "waits for its own end", { int64_t rc; }) {
    VOLT_BEGIN(cx, s);
    SPAWN(&own_handle, joins_itself_run, (giver){.value = 0});
    VOLT_AWAIT(s->rc, volt_sleep(cx, VOLT_S(60)));
    VOLT_END(0);
}
typedef struct {
    volt_frame frame;
    volt_handle *h;
} detacher;
static volt_poll detacher_run(volt_cx *cx, detacher *d) {
    VOLT_BEGIN(cx, d);
    VOLT_AWAIT(volt_yield(cx));
    volt_detach(d->h);
    VOLT_AWAIT(volt_sleep(cx, VOLT_S(60)));
    VOLT_END(0);
}
static volt_poll sleeper_run(volt_cx *cx, void *arg) {
    giver *g = (giver *)arg;
    VOLT_BEGIN(cx, g);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(0);
}
MISUSE(detach_beside_join_in_another_arm_is_caught, "cleared or changed during the wait", {
    volt_handle h;
    detacher d;
    volt_arm a, b;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, sleeper_run, (giver){.value = 0});
    s->d.h = &s->h;
    VOLT_AWAIT(s->rc, VOLT_SELECT(VOLT_ARM(&s->a, volt_join(cx, &s->h)),
                                  VOLT_ARM(&s->b, detacher_run(cx, &s->d))));
    VOLT_END(0);
}
MISUSE(join_state_beyond_end_of_state_is_caught, "exceeds the state of the task", {
    volt_handle h;
    char room[4096];
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(&s->h, giver_run, (giver){.value = 0});
    VOLT_AWAIT(s->rc, volt_join_state(cx, &s->h, s->room, sizeof s->room));
    VOLT_END(0);
}
// Functions that plain threads call as well name a line of the task that called them.
typedef struct {
    volt_frame frame;
    volt_chan *c;
    volt_queue *q;
    volt_queue_node *node;
    int value;
    int64_t rc;
} taker;
static volt_poll taker_run(volt_cx *cx, void *arg) {
    taker *k = (taker *)arg;
    VOLT_BEGIN(cx, k);
    if (k->c) VOLT_AWAIT(k->rc, volt_chan_recv(cx, k->c, &k->value, sizeof k->value));
    else VOLT_AWAIT(k->rc, volt_queue_pop(cx, k->q, &k->node));
    VOLT_END(k->rc);
}
MISUSE(chan_destroy_with_waiter_names_its_task, "the channel has waiters", {
    volt_chan c;
    int unused;
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_create(volt_cx_rt(cx), &s->c, sizeof(int), 1), 0);
    SPAWN(NULL, taker_run, (taker){.c = &s->c});
    while (!s->c.receivers_) VOLT_AWAIT(volt_yield(cx));
    volt_chan_destroy(&s->c);
    VOLT_END(0);
}
MISUSE(unreserve_of_nothing_names_its_task, "no slot is reserved", { volt_chan c; int buf[1]; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1), 0);
    volt_chan_unreserve(&s->c);
    VOLT_END(0);
}
MISUSE(release_of_no_sender_names_its_task, "no sender is retained", {
    volt_chan c;
    int buf[1];
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1), 0);
    volt_chan_release(&s->c, VOLT_CHAN_SENDER);
    VOLT_END(0);
}
MISUSE(release_of_no_receiver_names_its_task, "no receiver is retained", {
    volt_chan c;
    int buf[1];
}) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(volt_chan_init(&s->c, s->buf, sizeof s->buf[0], 1), 0);
    volt_chan_release(&s->c, VOLT_CHAN_RECEIVER);
    VOLT_END(0);
}
MISUSE(second_pop_names_its_task, "another caller waits already", {
    volt_queue q;
    volt_queue_node *n;
    int64_t rc;
}) {
    VOLT_BEGIN(cx, s);
    SPAWN(NULL, taker_run, (taker){.q = &s->q});
    while (!s->q.waiters_) VOLT_AWAIT(volt_yield(cx));
    VOLT_AWAIT(s->rc, volt_queue_pop(cx, &s->q, &s->n));
    VOLT_END(0);
}
MISUSE(bcast_send_of_another_size_names_its_task, "of the broadcast's elements", {
    volt_bcast b;
    int buf[1];
}) {
    VOLT_BEGIN(cx, s);
    volt_bcast b = VOLT_BCAST_INIT(s->buf);
    s->b = b;
    (void)volt_bcast_send(&s->b, s->buf, 1);
    VOLT_END(0);
}
MISUSE(watch_set_of_another_size_names_its_task, "of the watch's value", {
    volt_watch w;
    int value;
}) {
    VOLT_BEGIN(cx, s);
    volt_watch w = VOLT_WATCH_INIT(s->value);
    s->w = w;
    (void)volt_watch_set(&s->w, &s->value, 1);
    VOLT_END(0);
}
MISUSE(children_without_volt_each_are_caught, "use VOLT_EACH", { giver g[2]; }) {
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(volt_join_all(cx, giver_run, s->g, 1, 2));
    VOLT_END(0);
}
MISUSE(spawn_of_no_function_is_caught, "spawn: the function is NULL", { giver g; }) {
    VOLT_BEGIN(cx, s);
    CHECK_EQ(VOLT_SPAWN(cx, NULL, NULL, s->g), 0);
    VOLT_END(0);
}
static volt_poll first_frame_is_another(volt_cx *cx, void *arg) {
    giver *two = (giver *)arg;
    return giver_run(cx, &two[1]);
}
TEST_DIES(first_frame_that_is_not_of_state_is_caught, "must get the task's own state") {
    static giver two[2];
    run_on(1, first_frame_is_another, two);
}
TEST_DIES(poll_after_end_of_function_is_caught, "polled after it has returned") {
    static volt_frame frame;
    frame.node_.resume_line_ = VOLT__DONE;
    (void)volt__bad_resume("here", &frame);
}
// Its label is too wide for a `switch` over an int; over 64 bits only the program's end names it.
MISUSE(await_in_switch_is_caught, "the await is inside a `switch`", { uint64_t which; }) {
    VOLT_BEGIN(cx, s);
    switch (s->which) {
    case 0: VOLT_AWAIT(volt_yield(cx)); break;
    default: break;
    }
    VOLT_END(0);
}
TEST_DIES(garbage_frame_is_caught, "the frame is not zeroed") {
    static volt_frame frame;
    (void)volt__bad_resume("here", &frame);
}
TEST_DIES(long_misuse_message_is_cut_and_printed, "volt: ssss") {
    char site[400];
    memset(site, 's', sizeof site - 1);
    site[sizeof site - 1] = 0;
    volt__misuse(site, "too long");
}
static void *misaligned_alloc(void *user, size_t size, size_t align) {
    char *p = (char *)test_alloc(user, size + 64, align);
    return p && align == VOLT_SLAB_SIZE ? p + 64 : p;
}
TEST_DIES(allocator_that_ignores_alignment_is_caught, "not aligned as requested") {
    static giver g;
    volt_config c = test_config(1);
    c.alloc.alloc = misaligned_alloc;
    volt_run(&c, giver_run, &g);
}
