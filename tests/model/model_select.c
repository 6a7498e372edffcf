// SPDX-License-Identifier: MIT OR 0BSD
// Selects whose arms wait on rendezvous channels ([X1]). The one that comes to such an arm claims
// its select by a word in the select's frame, and copies the message itself; the select's own task
// takes the word back while it polls. A send that gave 0 has been received by one arm, whose select
// reports it as the winner; a select is met once at most; an arm that has lost or was cancelled has
// neither sent nor received; all that wait for a partner go on once there is one; and frame, arms
// and messages are freed as soon as the select is over.
// Run: make model ONE=select_two_claims (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "runtime.h"

enum { FIRST = 7 }; // the message for the first channel; that for the second is one more
static volt_chan *chans[2];
static int slots[2];
static volt_event *event;

// ---- selects: a function each, whose state lies on the heap. Its result: 0 or 1 is the arm of
// that number, more is another arm.

typedef struct selection {
    volt_frame frame;
    volt_arm arm[2], other, inner;
    volt_timer timer;
    int64_t rc;
    int message[2], n_received;
} selection;
#define RECEIVE_FROM(c_, i_)                                                                       \
    VOLT_ARM(&s->arm[i_], volt_chan_recv(cx, chans[c_], &s->message[i_], sizeof(int)))
#define SEND_TO(c_, i_)                                                                            \
    VOLT_ARM(&s->arm[i_], volt_chan_send(cx, chans[c_], &s->message[i_], sizeof(int)))
#define RECEIVE(i_) RECEIVE_FROM(i_, i_)
#define SEND(i_) SEND_TO(i_, i_)

static volt_poll receives_either(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(RECEIVE(0), RECEIVE(1)));
    VOLT_END(s->rc);
}
static volt_poll receives_unless_event(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->other, volt_event_wait(cx, event)),
                                         RECEIVE(0), RECEIVE(1)));
    VOLT_END(s->rc == 0 ? 2 : s->rc < 0 ? s->rc : s->rc - 1);
}
static volt_poll receives_within(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, volt_within(cx, &s->timer, VOLT_MS(1),
                                  VOLT_SELECT_BIASED(RECEIVE(0), RECEIVE(1))));
    VOLT_END(s->rc);
}
// The limit is that of the first arm alone.
static volt_poll receives_first_within(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(
        VOLT_ARM(&s->arm[0], volt_within(cx, &s->timer, VOLT_MS(1),
                                         volt_chan_recv(cx, chans[0], &s->message[0],
                                                        sizeof(int)))),
        RECEIVE(1)));
    VOLT_END(s->rc);
}
static volt_poll receives_or_sleeps(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(RECEIVE(0), RECEIVE(1),
                                         VOLT_ARM(&s->other, volt_sleep(cx, VOLT_MS(1)))));
    VOLT_END(s->rc);
}
// The first arm takes one message and waits for another one, as a reader may.
static volt_poll receives_twice(volt_cx *cx, selection *s) {
    volt_poll p = volt_chan_recv(cx, chans[0], &s->message[0], sizeof(int));
    if (volt_is_pending(p) || volt_value(p) != 1 || s->n_received++ > 0) return p;
    return volt_chan_recv(cx, chans[0], &s->message[0], sizeof(int));
}
static volt_poll receives_two_or_one(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->arm[0], receives_twice(cx, s)), RECEIVE(1)));
    VOLT_END(s->rc);
}
static volt_poll sends_either(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) s->message[i] = FIRST + i;
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(SEND(0), SEND(1)));
    VOLT_END(s->rc);
}
static volt_poll sends_or_receives(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    s->message[0] = FIRST;
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(SEND(0), RECEIVE(1)));
    VOLT_END(s->rc);
}
static volt_poll receives_or_sends(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    s->message[1] = FIRST + 1;
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(RECEIVE(0), SEND(1)));
    VOLT_END(s->rc);
}
// Both arms are on one channel, and polled in a random order.
static volt_poll either_way(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    s->message[0] = FIRST;
    VOLT_AWAIT(s->rc, VOLT_SELECT(SEND(0), RECEIVE_FROM(0, 1)));
    VOLT_END(s->rc);
}
static volt_poll sends_two_on_one(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    for (int i = 0; i < 2; i++) s->message[i] = FIRST + i;
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(SEND(0), SEND_TO(0, 1)));
    VOLT_END(s->rc);
}
// While the select is polled its messages are its own: another arm changes one.
static volt_poll changes_message(volt_cx *cx, void *arg) {
    selection *s = arg;
    if (!volt_is_cancelled(cx) && volt_event_is_set(event)) s->message[0] = FIRST + 10;
    return volt_sleep_forever(cx);
}
static volt_poll sends_and_changes(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    s->message[0] = FIRST;
    s->arm[1].value = -ECANCELED; // not used
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(SEND(0), VOLT_ARM(&s->other, changes_message(cx, s))));
    VOLT_END(s->rc);
}
// Room that its own arm reserves is not for the other one, and does not keep that waiting either.
static volt_poll reserves_or_receives(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    s->arm[1].value = -ECANCELED; // not used
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(VOLT_ARM(&s->other, volt_chan_reserve(cx, chans[0])),
                                         RECEIVE(0)));
    VOLT_END(s->rc < 0 ? s->rc : s->rc == 0 ? 2 : 0);
}
// A select that is an arm of another one. The result of its own arms is kept; the outer one may
// have been won by the event even so.
static volt_poll receives_inside(volt_cx *cx, void *arg) {
    selection *s = arg;
    VOLT_BEGIN(cx, s);
    VOLT_AWAIT(s->rc, VOLT_SELECT_BIASED(
        VOLT_ARM(&s->other, volt_event_wait(cx, event)),
        VOLT_ARM(&s->inner, VOLT_SELECT_BIASED(RECEIVE(0), RECEIVE(1)))));
    VMC_ASSERT(s->rc == 0 || s->rc == 1);
    VMC_ASSERT(s->inner.fired == (s->rc == 1) && s->other.fired == (s->rc == 0));
    VOLT_END(s->inner.value);
}

// ---- tasks

typedef struct selector {
    volt_frame frame;
    volt_handle handle;
    volt_waker waker;
    selection *s;
    volt_fn *fn;
    int64_t rc, value[2];
    int message[2], has_ended;
    int n_poor, left; // n_poor polls find budget `left`: other arms of the task had the rest
} selector;
static selector selectors[2];
typedef struct mover { // sends or receives, and waits for nothing else
    volt_frame frame;
    volt_handle handle;
    int64_t rc;
    int i, message, has_ended;
} mover;
static mover movers[3];
static int n_movers;

static volt_poll selects(volt_cx *cx, void *arg) {
    selector *k = arg;
    if (k->n_poor > 0) cx->budget_ = (uint16_t)k->left;
    if (k->n_poor > 0) k->n_poor--;
    VOLT_BEGIN(cx, k);
    k->waker = volt_waker_retain(cx);
    VOLT_AWAIT(k->rc, k->fn(cx, k->s));
    for (int i = 0; i < 2; i++) {
        k->value[i] = k->s->arm[i].value;
        k->message[i] = k->s->message[i];
        VMC_ASSERT((k->s->arm[i].fired != 0) == (k->rc == i));
        VMC_ASSERT(k->rc == i || k->value[i] == -ECANCELED);
    }
    vmc_free(k->s);
    volt_waker_release(k->waker);
    k->has_ended = 1;
    VOLT_END(0);
}
static volt_poll sends(volt_cx *cx, void *arg) {
    mover *m = arg;
    VOLT_BEGIN(cx, m);
    m->message = FIRST + m->i;
    VOLT_AWAIT(m->rc, volt_chan_send(cx, chans[m->i], &m->message, sizeof m->message));
    m->has_ended = 1;
    VOLT_END(0);
}
static volt_poll receives(volt_cx *cx, void *arg) {
    mover *m = arg;
    VOLT_BEGIN(cx, m);
    VOLT_AWAIT(m->rc, volt_chan_recv(cx, chans[m->i], &m->message, sizeof m->message));
    m->has_ended = 1;
    VOLT_END(0);
}

// ---- begin and end

static int sent[2]; // results of try_send
static void make(uint32_t n_workers) {
    for (int i = 0; i < 2; i++) {
        chans[i] = vmc_alloc(sizeof *chans[i]);
        volt_chan_init(chans[i], &slots[i], sizeof slots[i], 0);
        sent[i] = -EAGAIN;
    }
    event = vmc_alloc(sizeof *event);
    make_runtime_of_own_rings(n_workers);
}
static void spawn_selector(int n, volt_fn *fn) {
    selector *k = &selectors[n];
    k->s = vmc_alloc(sizeof *k->s);
    k->fn = fn;
    spawn_on(workers[n], &k->handle, selects, k);
}
static void spawn_mover(int worker, volt_fn *fn, int i) {
    mover *m = &movers[n_movers++];
    m->i = i;
    spawn_on(workers[worker], &m->handle, fn, m);
}
static void run_all(void) {
    for (uint32_t i = 0; i < rt->started; i++) drain(workers[i]);
    act_as(NULL);
}
// It waits before the threads begin.
static void start(volt_fn *fn) {
    spawn_selector(0, fn);
    run_all();
    VMC_ASSERT(!selectors[0].has_ended);
}
// All threads have ended, and so have the selects, by what the threads did.
static void end(int n_selectors) {
    run_all();
    for (int i = 0; i < n_selectors; i++) {
        VMC_ASSERT(selectors[i].has_ended);
        volt_detach(&selectors[i].handle);
    }
}
// A sender that nothing has come to is still there.
static void end_sender(mover *m) {
    int got = 0;
    if (!m->has_ended) {
        VMC_ASSERT(volt_chan_try_recv(chans[m->i], &got, sizeof got) == 1);
        VMC_ASSERT(got == FIRST + m->i);
        run_all();
    }
    VMC_ASSERT(m->has_ended && m->rc == 0);
    volt_detach(&m->handle);
}
static void end_all(void) {
    finish();
    for (int i = 0; i < 2; i++) {
        VMC_ASSERT(!chans[i]->senders_ && !chans[i]->receivers_);
        VMC_ASSERT(chans[i]->len_ + chans[i]->n_slots_granted_ + chans[i]->n_msgs_granted_ == 0);
        vmc_free(chans[i]);
    }
    vmc_free(event);
}
static void both(void (*first)(void *), void (*second)(void *)) {
    int t = vmc_spawn(first, workers[1]);
    second(workers[0]);
    act_as(NULL);
    vmc_join(t);
}
static void three(void (*first)(void *), void (*second)(void *), void (*third)(void *)) {
    int t = vmc_spawn(first, workers[2]);
    both(second, third);
    vmc_join(t);
}

// ---- what a thread does with its worker

static void run(void *w) { drain(w); }
static void try_send(volt__worker *w, int i) {
    int message = FIRST + i;
    act_as(w);
    sent[i] = volt_chan_try_send(chans[i], &message, sizeof message);
    drain(w);
}
static void try_send_first(void *w) { try_send(w, 0); }
static void try_send_second(void *w) { try_send(w, 1); }
static void try_send_both(void *w) {
    try_send(w, 0);
    try_send(w, 1);
}
static void set_event(void *w) {
    act_as(w);
    volt_event_set(event);
    drain(w);
}
static void cancel(void *w) {
    act_as(w);
    volt_cancel(&selectors[0].handle);
    drain(w);
}
static void wake(void *w) { // for nothing
    act_as(w);
    volt_wake(selectors[0].waker);
    drain(w);
}
static void time_passes(void *w_) {
    volt__worker *w = w_;
    volt__chain c;
    volt__chain_init(&c);
    act_as(w);
    volt__wheel_fire(&w->wheel, volt__tick_ceil(rt, vmc_now() + VOLT_MS(5)), &c);
    volt__push_batch(w, &c);
    drain(w);
}

// Each message has been sent if, and only if, the select has received it, and a losing arm's memory
// is as it was; or else the select gave `otherwise`.
static void check_sent(int64_t otherwise, const char *text) {
    const selector *k = &selectors[0];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        VMC_ASSERT(sent[i] == 0 || sent[i] == -EAGAIN);
        VMC_ASSERT((sent[i] == 0) == (k->rc == i && k->value[i] == 1));
        VMC_ASSERT(k->message[i] == (sent[i] == 0 ? FIRST + i : 0));
        n += sent[i] == 0;
    }
    VMC_ASSERT(n == 1 || k->rc == otherwise);
    vmc_reached(sent[0] == 0 ? "the first" : sent[1] == 0 ? "the second" : text);
}
enum { NOTHING_ELSE = 99 };

// ---- a select that waits

SCENARIO(select_two_claims) { // the first of the two that come meets it
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(2);
    start(receives_either);
    both(try_send_first, try_send_second);
    end(1);
    check_sent(NOTHING_ELSE, "");
    end_all();
}
SCENARIO(select_claim_beside_cancel) {
    vmc_must_happen("the first");
    vmc_must_happen("cancelled");
    make(2);
    start(receives_either);
    both(try_send_first, cancel);
    end(1);
    check_sent(-ECANCELED, "cancelled");
    end_all();
}
SCENARIO(select_two_claims_beside_cancel) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    vmc_must_happen("cancelled");
    make(3);
    start(receives_either);
    three(try_send_first, try_send_second, cancel);
    end(1);
    check_sent(-ECANCELED, "cancelled");
    end_all();
}
// An arm that comes earlier in the text becomes ready: the one that was met wins all the same.
SCENARIO(select_two_claims_beside_event) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    vmc_must_happen("the event");
    make(3);
    start(receives_unless_event);
    three(try_send_first, try_send_second, set_event);
    end(1);
    check_sent(2, "the event");
    end_all();
}
// It is polled for nothing. A message that comes meanwhile may miss it; a later one meets it.
SCENARIO(select_claim_beside_poll) {
    vmc_must_happen("the first");
    vmc_must_happen("not while it is polled");
    make(2);
    start(receives_either);
    both(try_send_first, wake);
    if (sent[0] != 0) {
        vmc_reached("not while it is polled");
        try_send(workers[1], 0);
    }
    end(1);
    check_sent(NOTHING_ELSE, "");
    end_all();
}
SCENARIO(select_sender_beside_poll) {
    make(2);
    start(receives_either);
    spawn_mover(1, sends, 0);
    both(run, wake);
    end(1);
    VMC_ASSERT(movers[0].has_ended && selectors[0].rc == 0 && selectors[0].message[0] == FIRST);
    end_sender(&movers[0]);
    end_all();
}
// The arm that was met waits again: the select still meets the sender that comes to its other arm.
SCENARIO(select_met_arm_waits_again) {
    vmc_must_happen("both");
    vmc_must_happen("the second");
    make(3);
    start(receives_two_or_one);
    spawn_mover(2, sends, 1);
    three(run, try_send_first, run);
    end(1);
    const selector *k = &selectors[0];
    VMC_ASSERT(k->rc == 1 && k->message[1] == FIRST + 1 && movers[0].has_ended);
    VMC_ASSERT(k->message[0] == (sent[0] == 0 ? FIRST : 0));
    vmc_reached(sent[0] == 0 ? "both" : "the second");
    end_sender(&movers[0]);
    end_all();
}
// A sender that comes to an arm of a met select waits. No reservation overtakes it on account of
// that arm, which leaves.
static void send_and_reserve(void *w) {
    drain(w);
    act_as(w);
    if (!movers[0].has_ended) VMC_ASSERT(volt_chan_try_reserve(chans[0]) == -EAGAIN);
    drain(w);
}
SCENARIO(select_reserve_behind_sender) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(2);
    start(receives_either);
    spawn_mover(1, sends, 0);
    both(send_and_reserve, try_send_second);
    end(1);
    const selector *k = &selectors[0];
    VMC_ASSERT(k->rc == (sent[1] == 0) && movers[0].has_ended == (k->rc == 0));
    VMC_ASSERT(k->message[k->rc] == FIRST + k->rc && k->message[!k->rc] == 0);
    vmc_reached(k->rc ? "the second" : "the first");
    end_sender(&movers[0]);
    end_all();
}
// One of two senders is received; the other one waits for the next receiver.
static void end_two_senders(void) {
    int64_t rc = selectors[0].rc;
    VMC_ASSERT(rc == 0 || rc == 1);
    VMC_ASSERT(selectors[0].message[rc] == FIRST + rc && selectors[0].message[!rc] == 0);
    for (int i = 0; i < 2; i++) VMC_ASSERT(movers[i].has_ended == (movers[i].i == rc));
    vmc_reached(rc ? "the second" : "the first");
    for (int i = 0; i < 2; i++) end_sender(&movers[i]);
    end_all();
}
SCENARIO(select_two_senders_beside_poll, .is_long = 1) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(3);
    start(receives_either);
    spawn_mover(2, sends, 0);
    spawn_mover(1, sends, 1);
    three(run, run, wake);
    end(1);
    end_two_senders();
}

// ---- a select that begins

SCENARIO(select_begins_beside_sender) {
    make(2);
    spawn_selector(0, receives_either);
    spawn_mover(1, sends, 0);
    both(run, run);
    end(1);
    VMC_ASSERT(movers[0].has_ended && selectors[0].rc == 0 && selectors[0].message[0] == FIRST);
    end_sender(&movers[0]);
    end_all();
}
SCENARIO(select_reserves_beside_sender, .class = VMC_BOUNDED, .preemptions = 3) {
    make(2);
    spawn_selector(0, reserves_or_receives);
    spawn_mover(1, sends, 0);
    both(run, run);
    end(1);
    VMC_ASSERT(movers[0].has_ended && selectors[0].rc == 0 && selectors[0].message[0] == FIRST);
    end_sender(&movers[0]);
    end_all();
}
// Its second arm meets a sender that waits, while another one comes to the first.
SCENARIO(select_meets_beside_sender) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(2);
    spawn_mover(1, sends, 1);
    run_all();
    spawn_selector(0, receives_either);
    spawn_mover(1, sends, 0);
    both(run, run);
    end(1);
    end_two_senders();
}
// The claimed select is polled elsewhere at once, and is over while the other one comes.
SCENARIO(select_begins_beside_two_senders, .class = VMC_BOUNDED, .preemptions = 2, .contests = 1,
         .is_long = 1) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(3);
    spawn_selector(0, receives_either);
    spawn_mover(2, sends, 0);
    spawn_mover(1, sends, 1);
    three(run, run, run);
    end(1);
    end_two_senders();
}

// ---- two selects. Each that finds the other one polled lets it look again, which may go on for as
// long as their polls overlap: so these are bounded.

SCENARIO(select_two_meet, .class = VMC_BOUNDED, .preemptions = 2) {
    make(2);
    spawn_selector(0, receives_either);
    spawn_selector(1, sends_either);
    both(run, run);
    end(2);
    int64_t rc = selectors[0].rc;
    VMC_ASSERT((rc == 0 || rc == 1) && selectors[1].rc == rc);
    VMC_ASSERT(selectors[0].message[rc] == FIRST + rc && selectors[0].message[!rc] == 0);
    end_all();
}
// A message that one sends the other receives, on either channel.
SCENARIO(select_two_meet_crosswise, .class = VMC_BOUNDED, .preemptions = 2) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    make(2);
    spawn_selector(0, sends_or_receives);
    spawn_selector(1, receives_or_sends);
    both(run, run);
    end(2);
    int64_t rc = selectors[0].rc;
    VMC_ASSERT((rc == 0 || rc == 1) && selectors[1].rc == rc);
    VMC_ASSERT(selectors[1].message[0] == (rc == 0 ? FIRST : 0));
    VMC_ASSERT(selectors[0].message[1] == (rc == 1 ? FIRST + 1 : 0));
    vmc_reached(rc ? "the second" : "the first");
    end_all();
}
// Neither meets itself.
static void check_either_way(const selector *k) {
    VMC_ASSERT(k->rc == 0 || k->rc == 1);
    VMC_ASSERT(k->message[1] == (k->rc == 1 ? FIRST : 0));
}
SCENARIO(select_two_meet_either_way, .class = VMC_BOUNDED, .preemptions = 2) {
    make(2);
    spawn_selector(0, either_way);
    spawn_selector(1, either_way);
    both(run, run);
    end(2);
    check_either_way(&selectors[0]);
    check_either_way(&selectors[1]);
    VMC_ASSERT(selectors[0].rc + selectors[1].rc == 1);
    end_all();
}
// Of these and a plain sender two meet, whichever, and the third one waits on.
SCENARIO(select_two_and_a_sender, .class = VMC_BOUNDED, .preemptions = 1) {
    vmc_must_happen("the selects");
    vmc_must_happen("the sender");
    make(3);
    spawn_selector(0, either_way);
    spawn_selector(1, either_way);
    spawn_mover(2, sends, 0);
    three(run, run, run);
    run_all();
    VMC_ASSERT(selectors[0].has_ended + selectors[1].has_ended + movers[0].has_ended == 2);
    vmc_reached(movers[0].has_ended ? "the sender" : "the selects");
    for (int i = 0; i < 2; i++) {
        if (selectors[i].has_ended) continue;
        VMC_ASSERT(selectors[!i].rc == 1); // it has received
        try_send(workers[0], 0);
        VMC_ASSERT(sent[0] == 0);
    }
    end(2);
    for (int i = 0; i < 2; i++) check_either_way(&selectors[i]);
    end_sender(&movers[0]);
    end_all();
}
SCENARIO(select_either_way_beside_cancel) {
    vmc_must_happen("they met");
    vmc_must_happen("cancelled");
    make(2);
    start(either_way);
    spawn_selector(1, either_way);
    both(run, cancel);
    run_all();
    const selector *k = &selectors[0], *other = &selectors[1];
    VMC_ASSERT(k->has_ended);
    vmc_reached(k->rc < 0 ? "cancelled" : "they met");
    if (k->rc < 0) { // the other one waits for the next
        int got = 0;
        VMC_ASSERT(k->rc == -ECANCELED && !other->has_ended);
        VMC_ASSERT(volt_chan_try_recv(chans[0], &got, sizeof got) == 1 && got == FIRST);
    } else {
        VMC_ASSERT(k->rc + other->rc == 1);
    }
    end(2);
    check_either_way(other);
    end_all();
}
// One call that takes two messages meets a select once, though both arms send on that channel.
static int n_taken;
static int taken[2];
static void try_recv_two(void *w) {
    act_as(w);
    n_taken = volt_chan_try_recv_n(chans[0], taken, sizeof taken[0], 2);
    drain(w);
}
SCENARIO(select_met_once_by_many) {
    vmc_must_happen("taken");
    vmc_must_happen("cancelled");
    make(2);
    start(sends_two_on_one);
    both(try_recv_two, cancel);
    end(1);
    VMC_ASSERT(n_taken == 1 ? selectors[0].rc == 0 : selectors[0].rc == -ECANCELED);
    VMC_ASSERT(n_taken == 1 ? taken[0] == FIRST : n_taken == -EAGAIN);
    vmc_reached(n_taken == 1 ? "taken" : "cancelled");
    end_all();
}
// A message that an arm changes while the select is polled is taken before or after that.
SCENARIO(select_changes_its_message) {
    vmc_must_happen("before");
    vmc_must_happen("after");
    vmc_must_happen("not while it is polled");
    make(2);
    start(sends_and_changes);
    volt_event_set(event);
    both(try_recv_two, wake);
    if (n_taken == -EAGAIN) {
        vmc_reached("not while it is polled");
        try_recv_two(workers[1]);
    }
    end(1);
    VMC_ASSERT(n_taken == 1 && selectors[0].rc == 0);
    VMC_ASSERT(taken[0] == selectors[0].message[0]);
    VMC_ASSERT(taken[0] == FIRST || taken[0] == FIRST + 10);
    vmc_reached(taken[0] == FIRST ? "before" : "after");
    end_all();
}
SCENARIO(select_inside_another) {
    vmc_must_happen("the first");
    vmc_must_happen("the event");
    make(2);
    start(receives_inside);
    both(try_send_first, set_event);
    end(1);
    check_sent(-ECANCELED, "the event");
    end_all();
}

// ---- a select whose poll has no budget left: each arm has a unit

// It is met and then cancelled, or the other way round: no second message meets it.
SCENARIO(select_cancelled_without_budget) {
    vmc_must_happen("the first");
    vmc_must_happen("cancelled");
    make(2);
    start(receives_either);
    selectors[0].n_poor = 1;
    both(try_send_both, cancel);
    end(1);
    check_sent(-ECANCELED, "cancelled");
    end_all();
}
SCENARIO(select_polled_without_budget) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    vmc_must_happen("not while it is polled");
    make(2);
    start(receives_either);
    selectors[0].n_poor = 1;
    both(try_send_both, wake);
    if (sent[0] != 0 && sent[1] != 0) {
        vmc_reached("not while it is polled");
        try_send(workers[1], 0);
    }
    end(1);
    check_sent(NOTHING_ELSE, "");
    end_all();
}
// It has won by the event and has no budget to leave the channels: no message meets it there.
SCENARIO(select_won_without_budget) {
    vmc_must_happen("the first");
    vmc_must_happen("the event");
    make(2);
    start(receives_unless_event);
    selectors[0].n_poor = 1;
    selectors[0].left = 1;
    both(try_send_first, set_event);
    end(1);
    check_sent(2, "the event");
    end_all();
}

// ---- time

SCENARIO(select_claim_beside_within) {
    vmc_must_happen("the first");
    vmc_must_happen("the second"); // between its last try and its end
    vmc_must_happen("time");
    make(2);
    start(receives_within);
    both(try_send_both, time_passes);
    end(1);
    check_sent(-ETIMEDOUT, "time");
    end_all();
}
SCENARIO(select_claim_beside_within_arm) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    vmc_must_happen("time");
    make(2);
    start(receives_first_within);
    both(try_send_both, time_passes);
    end(1);
    const selector *k = &selectors[0];
    VMC_ASSERT(k->rc == 0 || k->rc == 1);
    if (k->value[0] == -ETIMEDOUT) {
        VMC_ASSERT(k->rc == 0 && k->message[0] == 0 && sent[0] < 0 && sent[1] < 0);
        vmc_reached("time");
    } else {
        check_sent(NOTHING_ELSE, "");
    }
    end_all();
}
SCENARIO(select_claim_beside_sleep) {
    vmc_must_happen("the first");
    vmc_must_happen("time");
    make(2);
    start(receives_or_sleeps);
    both(try_send_first, time_passes);
    end(1);
    check_sent(2, "time");
    end_all();
}

// ---- what else happens to a channel that a select waits for

static void close_first(void *w) {
    act_as(w);
    volt_chan_close(chans[0]);
    drain(w);
}
static void release_first(void *w) {
    act_as(w);
    volt_chan_release(chans[0], VOLT_CHAN_SENDER);
    drain(w);
}
static void claim_beside_close(void (*close)(void *)) {
    vmc_must_happen("received");
    vmc_must_happen("closed");
    make(2);
    volt_chan_retain(chans[0], VOLT_CHAN_SENDER);
    start(receives_either);
    both(try_send_first, close);
    end(1);
    const selector *k = &selectors[0];
    VMC_ASSERT(sent[0] == 0 || sent[0] == -EPIPE);
    VMC_ASSERT(k->rc == 0 && k->value[0] == (sent[0] == 0));
    VMC_ASSERT(k->message[0] == (sent[0] == 0 ? FIRST : 0));
    vmc_reached(sent[0] == 0 ? "received" : "closed");
    end_all();
}
SCENARIO(select_claim_beside_close) { claim_beside_close(close_first); }
SCENARIO(select_claim_beside_release) { claim_beside_close(release_first); }
// A message that was reserved for lies in the channel. The receiver that it is for takes it only
// now, and with that those meet that came meanwhile.
static void leave_a_reserved_message(void) {
    int message = FIRST;
    spawn_mover(1, receives, 0);
    run_all();
    act_as(workers[1]);
    VMC_ASSERT(volt_chan_try_reserve(chans[0]) == 0);
    VMC_ASSERT(volt_chan_send_reserved(chans[0], &message, sizeof message) == 0);
    act_as(NULL);
}
static void end_receiver(mover *m) {
    VMC_ASSERT(m->has_ended && m->rc == 1 && m->message == FIRST);
    volt_detach(&m->handle);
}
// A sender and a select that receives: it is claimed for a message that is not of the claiming one.
static void retry_beside(void (*fn)(void *)) {
    make(2);
    leave_a_reserved_message();
    spawn_selector(0, receives_either);
    drain(workers[0]);
    spawn_on(workers[0], &movers[1].handle, sends, &movers[1]);
    n_movers++;
    drain(workers[0]);
    act_as(NULL);
    VMC_ASSERT(!selectors[0].has_ended && !movers[1].has_ended); // the reserved message is older
    both(run, fn);
    run_all();
    end_receiver(&movers[0]);
}
SCENARIO(select_retry_beside_poll) {
    retry_beside(wake);
    end(1);
    VMC_ASSERT(selectors[0].rc == 0 && selectors[0].message[0] == FIRST && movers[1].has_ended);
    end_sender(&movers[1]);
    end_all();
}
SCENARIO(select_retry_beside_claim) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    retry_beside(try_send_second);
    end(1);
    sent[0] = movers[1].has_ended ? 0 : -EAGAIN;
    check_sent(NOTHING_ELSE, "");
    end_sender(&movers[1]);
    end_all();
}
SCENARIO(select_retry_beside_cancel) {
    vmc_must_happen("the first");
    vmc_must_happen("cancelled");
    retry_beside(cancel);
    end(1);
    sent[0] = movers[1].has_ended ? 0 : -EAGAIN;
    check_sent(-ECANCELED, "cancelled");
    end_sender(&movers[1]);
    end_all();
}
// A receiver and a select that sends, which cannot be claimed for it: it looks again.
static void retry_sender_beside(void (*fn)(void *)) {
    make(2);
    leave_a_reserved_message();
    spawn_selector(0, sends_either);
    drain(workers[0]);
    spawn_on(workers[0], &movers[1].handle, receives, &movers[1]);
    n_movers++;
    drain(workers[0]);
    act_as(NULL);
    VMC_ASSERT(!selectors[0].has_ended && !movers[1].has_ended); // the reserved message is older
    both(run, fn);
    run_all();
    end_receiver(&movers[0]);
}
SCENARIO(select_retry_sender_beside_poll) {
    retry_sender_beside(wake);
    end(1);
    VMC_ASSERT(selectors[0].rc == 0);
    end_receiver(&movers[1]);
    end_all();
}
SCENARIO(select_retry_sender_beside_cancel) {
    vmc_must_happen("sent");
    vmc_must_happen("cancelled");
    retry_sender_beside(cancel);
    VMC_ASSERT(movers[1].has_ended == (selectors[0].rc == 0));
    vmc_reached(movers[1].has_ended ? "sent" : "cancelled");
    if (!movers[1].has_ended) {
        VMC_ASSERT(selectors[0].rc == -ECANCELED);
        try_send(workers[0], 0);
        VMC_ASSERT(sent[0] == 0);
    }
    end(1);
    end_receiver(&movers[1]);
    end_all();
}
// Its other arm is claimed meanwhile: it sends once.
static void try_recv_second(void *w) {
    act_as(w);
    n_taken = volt_chan_try_recv(chans[1], &taken[1], sizeof taken[1]);
    drain(w);
}
SCENARIO(select_retry_sender_beside_claim) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    retry_sender_beside(try_recv_second);
    VMC_ASSERT(selectors[0].rc == (n_taken == 1) && movers[1].has_ended == (n_taken != 1));
    VMC_ASSERT(n_taken == 1 ? taken[1] == FIRST + 1 : n_taken == -EAGAIN);
    vmc_reached(n_taken == 1 ? "the second" : "the first");
    if (n_taken == 1) try_send(workers[0], 0);
    end(1);
    end_receiver(&movers[1]);
    end_all();
}
// Room is reserved while the select waits. The message sent then is left to the next receiver, if
// the select was met elsewhere.
static int reserved;
static void reserve_and_send(void *w) {
    int message = FIRST;
    act_as(w);
    reserved = volt_chan_try_reserve(chans[0]);
    if (reserved == 0)
        VMC_ASSERT(volt_chan_send_reserved(chans[0], &message, sizeof message) == 0);
    drain(w);
}
SCENARIO(select_reserve_beside_claim) {
    vmc_must_happen("the first");
    vmc_must_happen("the second");
    vmc_must_happen("left in the channel");
    make(2);
    start(receives_either);
    both(reserve_and_send, try_send_second);
    end(1);
    int got = 0;
    const selector *k = &selectors[0];
    VMC_ASSERT(k->rc == 0 ? reserved == 0 && sent[1] == -EAGAIN : k->rc == 1 && sent[1] == 0);
    VMC_ASSERT(k->value[k->rc] == 1 && k->message[k->rc] == FIRST + k->rc);
    VMC_ASSERT(k->message[!k->rc] == 0);
    if (reserved == 0 && k->rc == 1) {
        VMC_ASSERT(volt_chan_try_recv(chans[0], &got, sizeof got) == 1 && got == FIRST);
        vmc_reached("left in the channel");
    }
    vmc_reached(k->rc ? "the second" : "the first");
    end_all();
}
// The last worker sees a shutdown, which cancels every task: what was met is reported all the same.
static void see_shutdown(void *w) {
    act_as(w);
    volt__check_shutdown(w);
    drain(w);
}
static void beside_shutdown(void (*fn)(void *)) {
    make(2);
    volt_chan_retain(chans[0], VOLT_CHAN_SENDER);
    start(receives_either);
    volt__shutdown_begin(rt);
    see_shutdown(workers[1]);
    act_as(NULL);
    both(fn, see_shutdown);
    end(1);
}
SCENARIO(select_claim_beside_shutdown) {
    vmc_must_happen("the first");
    vmc_must_happen("cancelled");
    beside_shutdown(try_send_first);
    check_sent(-ECANCELED, "cancelled");
    end_all();
}
static void close_beside_shutdown(void (*close)(void *)) {
    beside_shutdown(close);
    VMC_ASSERT(selectors[0].rc == -ECANCELED && volt_chan_is_closed(chans[0]));
    end_all();
}
SCENARIO(select_close_beside_shutdown) { close_beside_shutdown(close_first); }
SCENARIO(select_release_beside_shutdown) { close_beside_shutdown(release_first); }
