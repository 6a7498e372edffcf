// SPDX-License-Identifier: MIT OR 0BSD
// Bounded channels that are closed, or whose sides are counted: by two at once, beside what is
// sent, and freed by the one that is let through. The channel is closed once; all that wait go on,
// and what was sent into it is still received.
// Run: make model ONE=chan_release_both (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

enum { SENDER = VOLT_CHAN_SENDER, RECEIVER = VOLT_CHAN_RECEIVER, BOTH = SENDER | RECEIVER };
static volt_chan *chan;
static int buffer[1], got;
static void make(int n_senders, int n_receivers) {
    chan = vmc_alloc(sizeof *chan);
    volt_chan_init(chan, buffer, sizeof buffer[0], 1);
    for (int i = 0; i < n_senders; i++) volt_chan_retain(chan, SENDER);
    for (int i = 0; i < n_receivers; i++) volt_chan_retain(chan, RECEIVER);
}
static void end(void) {
    VMC_ASSERT(volt_chan_is_closed(chan) && !chan->n_senders_ && !chan->n_receivers_);
    VMC_ASSERT(!chan->senders_ && !chan->receivers_ && !chan->watchers_);
    vmc_free(chan);
}
static void release(void *side) { volt_chan_release(chan, (int)(intptr_t)side); }
static void *side(int which) { return (void *)(intptr_t)which; }
static void watch(waiter *w) {
    volt__chan_closed_wait_op(&w->a, chan);
    wait_begin(w);
}
static void receive(waiter *w) {
    volt__chan_recv_wait_op(&w->a, chan, &got, 1);
    wait_begin(w);
}
static void wait_through(void *w) { VMC_ASSERT(wait_end(w) == 0); }

// One waits for a message, one for the close: the first of the two that release lets them go on,
// the other one finds it done.
static void release_and_watch(void *unused) {
    (void)unused;
    release(side(SENDER));
    wait_through(&w2);
}
SCENARIO(chan_release_both) {
    make(1, 1);
    receive(&w1);
    watch(&w2);
    int t = vmc_spawn(release_and_watch, NULL);
    release(side(RECEIVER));
    wait_through(&w1);
    vmc_join(t);
    end();
}
// Both threads are sender and receiver; the second one to come is the last of both sides.
SCENARIO(chan_release_each_both) {
    int message = 7;
    make(2, 2);
    VMC_ASSERT(volt_chan_try_send(chan, &message, sizeof message) == 0);
    watch(&w1);
    int t = vmc_spawn(release, side(BOTH));
    release(side(BOTH));
    wait_through(&w1);
    vmc_join(t);
    VMC_ASSERT(volt_chan_try_recv(chan, &got, sizeof got) == 1 && got == message);
    VMC_ASSERT(volt_chan_try_recv(chan, &got, sizeof got) == 0);
    end();
}
// The only sender, which is a receiver, too, is released beside the other receiver: it has closed
// the channel before it goes on.
SCENARIO(chan_release_sender_beside_receiver) {
    make(1, 2);
    watch(&w1);
    int t = vmc_spawn(release, side(RECEIVER));
    release(side(BOTH));
    VMC_ASSERT(volt_chan_is_closed(chan));
    wait_through(&w1);
    vmc_join(t);
    end();
}
// One more is retained by a thread that is a sender while another one is released.
static void retain_and_release(void *unused) {
    (void)unused;
    volt_chan_retain(chan, SENDER);
    release(side(SENDER));
    VMC_ASSERT(!volt_chan_is_closed(chan));
    release(side(SENDER));
}
SCENARIO(chan_retain_beside_release) {
    make(2, 1);
    int t = vmc_spawn(retain_and_release, NULL);
    release(side(SENDER));
    vmc_join(t);
    VMC_ASSERT(volt_chan_is_closed(chan));
    release(side(RECEIVER));
    end();
}

// ---- closed

static void close_it(void *unused) {
    (void)unused;
    volt_chan_close(chan);
}
static void close_beside(void (*fn)(void *), void *arg) {
    make(1, 1);
    receive(&w1);
    watch(&w2);
    int t = vmc_spawn(fn, arg);
    close_it(NULL);
    wait_through(&w1);
    wait_through(&w2);
    vmc_join(t);
    VMC_ASSERT(volt_chan_is_closed(chan));
    volt_chan_release(chan, BOTH - (int)(intptr_t)arg);
    end();
}
SCENARIO(chan_close_both) { close_beside(close_it, side(0)); }
SCENARIO(chan_close_beside_release) { close_beside(release, side(SENDER)); }

// Sent beside that: it is received before the end, or the send is told.
static int sent;
static void send_one(void *unused) {
    int message = 7;
    (void)unused;
    sent = volt_chan_try_send(chan, &message, sizeof message);
}
static void send_beside(void (*fn)(void *), void *arg) {
    vmc_must_happen("sent");
    vmc_must_happen("closed");
    make(1, 1);
    receive(&w1);
    int t = vmc_spawn(send_one, NULL);
    fn(arg);
    int64_t n = wait_end(&w1);
    vmc_join(t);
    VMC_ASSERT(sent == 0 ? n == 1 && got == 7 : sent == -EPIPE && n == 0);
    vmc_reached(sent == 0 ? "sent" : "closed");
    VMC_ASSERT(volt_chan_try_recv(chan, &got, sizeof got) == 0);
    volt_chan_release(chan, BOTH - (int)(intptr_t)arg);
    end();
}
SCENARIO(chan_send_beside_close) { send_beside(close_it, side(0)); }
SCENARIO(chan_send_beside_release) { send_beside(release, side(SENDER)); }

// It is freed by the one that it lets through, whether that has waited or not.
static void let_through(void (*fn)(void *)) {
    vmc_must_happen("waits");
    vmc_must_happen("comes late");
    make(1, 0);
    int t = vmc_spawn(fn, side(SENDER));
    volt__chan_recv_wait_op(&w1.a, chan, &got, 1);
    volt__thread_waiter_init(&w1.b);
    int64_t n = volt__wait_op_step(&w1.a, &w1.b.node, 0);
    vmc_reached(n == VOLT__PENDING ? "waits" : "comes late");
    if (n == VOLT__PENDING) n = wait_end(&w1);
    VMC_ASSERT(n == 0);
    vmc_free(chan);
    vmc_join(t);
}
SCENARIO(chan_freed_behind_close) { let_through(close_it); }
SCENARIO(chan_freed_behind_release) { let_through(release); }
