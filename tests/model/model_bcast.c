// SPDX-License-Identifier: MIT OR 0BSD
// Broadcasts and watches that are closed, or get a message, beside a receiver: what was sent is
// received before the end, and the sender is told if it was not.
// Run: make model ONE=bcast_send_beside_close (or another name from below).
#define VOLT_LOCK_TRIES 0
#include "vmc.h"
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include "waits.h"

static const int messages[2] = { 7, 8 };
static int got[2], sent;

// ---- broadcast

static volt_bcast *bcast;
static volt_sub subs[2];
static int one[1], two[2];
static void make_bcast(int cap) {
    bcast = vmc_alloc(sizeof *bcast);
    if (cap == 1) *bcast = (volt_bcast)VOLT_BCAST_INIT(one);
    else *bcast = (volt_bcast)VOLT_BCAST_INIT(two);
}
static void end_bcast(void) {
    VMC_ASSERT(!bcast->waiters_);
    vmc_free(bcast);
}
static void receive(waiter *w, int i) {
    volt__sub_wait_op(&w->a, &subs[i], &got[i]);
    wait_begin(w);
}
static void send_one(void *unused) {
    (void)unused;
    sent = volt_bcast_send(bcast, &messages[0], sizeof messages[0]);
}
SCENARIO(bcast_send_beside_close) {
    vmc_must_happen("sent");
    vmc_must_happen("closed");
    make_bcast(1);
    volt_sub_open(&subs[0], bcast);
    receive(&w1, 0);
    int t = vmc_spawn(send_one, NULL);
    volt_bcast_close(bcast);
    int64_t n = wait_end(&w1);
    vmc_join(t);
    VMC_ASSERT(sent == 1 ? n == 1 && got[0] == 7 : sent == -EPIPE && n == 0);
    vmc_reached(n == 1 ? "sent" : "closed");
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == 0);
    end_bcast();
}
// One waits when the channel is closed, one comes: none is forgotten.
static void come_late(void *unused) {
    (void)unused;
    volt__sub_wait_op(&w2.a, &subs[1], &got[1]);
    volt__thread_waiter_init(&w2.b);
    int64_t n = volt__wait_op_step(&w2.a, &w2.b.node, 0);
    vmc_reached(n == VOLT__PENDING ? "waits" : "comes late");
    if (n == VOLT__PENDING) n = wait_end(&w2);
    VMC_ASSERT(n == 0);
}
SCENARIO(bcast_close_beside_receivers) {
    vmc_must_happen("waits");
    vmc_must_happen("comes late");
    make_bcast(1);
    for (int i = 0; i < 2; i++) volt_sub_open(&subs[i], bcast);
    receive(&w1, 0);
    int t = vmc_spawn(come_late, NULL);
    volt_bcast_close(bcast);
    VMC_ASSERT(wait_end(&w1) == 0);
    vmc_join(t);
    end_bcast();
}
// Two messages for one place: a receiver gets both, or is told that it has lost the first one.
static void send_two(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++)
        VMC_ASSERT(volt_bcast_send(bcast, &messages[i], sizeof messages[i]) == 1);
}
SCENARIO(bcast_two_sends_beside_receiver) {
    vmc_must_happen("both");
    vmc_must_happen("lost");
    make_bcast(1);
    volt_sub_open(&subs[0], bcast);
    receive(&w1, 0);
    int t = vmc_spawn(send_two, NULL);
    int64_t n = wait_end(&w1);
    vmc_reached(n == 1 ? "both" : "lost");
    if (n == 1) VMC_ASSERT(got[0] == 7);
    else VMC_ASSERT(n == -EOVERFLOW && volt_sub_lost(&subs[0]) == 1);
    vmc_join(t);
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == 1 && got[0] == 8);
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == -EAGAIN);
    end_bcast();
}
// A subscription is counted, or begins behind the message.
static void subscribe(void *unused) {
    (void)unused;
    volt_sub_open(&subs[0], bcast);
}
SCENARIO(bcast_send_beside_subscribe) {
    make_bcast(2);
    int t = vmc_spawn(subscribe, NULL);
    send_one(NULL);
    vmc_join(t);
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == (sent ? 1 : -EAGAIN));
    end_bcast();
}
static void unsubscribe(void *unused) {
    (void)unused;
    volt_sub_close(&subs[0]);
}
SCENARIO(bcast_send_beside_unsubscribe) {
    make_bcast(2);
    for (int i = 0; i < 2; i++) volt_sub_open(&subs[i], bcast);
    int t = vmc_spawn(unsubscribe, NULL);
    send_one(NULL);
    vmc_join(t);
    VMC_ASSERT(sent == 1 || sent == 2);
    VMC_ASSERT(volt_bcast_send(bcast, &messages[1], sizeof messages[1]) == 1);
    for (int i = 0; i < 2; i++)
        VMC_ASSERT(volt_sub_try_recv(&subs[1], &got[1], sizeof got[1]) == 1 && got[1] == 7 + i);
    end_bcast();
}
SCENARIO(bcast_cancel_beside_send) {
    make_bcast(1);
    volt_sub_open(&subs[0], bcast);
    receive(&w1, 0);
    int t = vmc_spawn(wait_leave, &w1);
    send_one(NULL);
    vmc_join(t);
    VMC_ASSERT(sent == 1); // the message is there for the next receive
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == 1 && got[0] == 7);
    end_bcast();
}

// The last of two subscribers that leave ends the wait, and does not use the broadcast after it.
SCENARIO(bcast_wait_for_none_beside_two_that_leave) {
    make_bcast(1);
    for (int i = 0; i < 2; i++) volt_sub_open(&subs[i], bcast);
    volt__no_subs_wait_op(&w1.a, bcast);
    wait_begin(&w1);
    int t = vmc_spawn(unsubscribe, NULL);
    volt_sub_close(&subs[1]);
    VMC_ASSERT(wait_end(&w1) == 0);
    VMC_ASSERT(volt_bcast_subs(bcast) == 0);
    end_bcast();
    vmc_join(t);
}
static void release_bcast(void *unused) {
    (void)unused;
    (void)volt_bcast_send(bcast, &messages[0], sizeof messages[0]);
    volt_bcast_release(bcast);
}
// Both messages come before the end.
SCENARIO(bcast_two_release_beside_receiver) {
    make_bcast(2);
    volt_sub_open(&subs[0], bcast);
    for (int i = 0; i < 2; i++) volt_bcast_retain(bcast);
    receive(&w1, 0);
    int t = vmc_spawn(release_bcast, NULL);
    release_bcast(NULL);
    VMC_ASSERT(wait_end(&w1) == 1);
    vmc_join(t);
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == 1);
    VMC_ASSERT(volt_sub_try_recv(&subs[0], &got[0], sizeof got[0]) == 0);
    end_bcast();
}

// ---- watch

static volt_watch *value;
static volt_watcher watcher;
static volt__watch_filter filter;
static void make_watch(void) {
    value = vmc_alloc(sizeof *value);
    *value = (volt_watch)VOLT_WATCH_INIT(one[0]);
    volt_watcher_open(&watcher, value);
}
static void look(waiter *w) {
    filter = (volt__watch_filter){ &got[0], NULL, NULL };
    volt__watcher_wait_op(&w->a, &watcher, &filter);
    wait_begin(w);
}
static void set_one(void *unused) {
    (void)unused;
    sent = volt_watch_set(value, &messages[0], sizeof messages[0]);
}
SCENARIO(value_set_beside_close) {
    vmc_must_happen("set");
    vmc_must_happen("closed");
    make_watch();
    look(&w1);
    int t = vmc_spawn(set_one, NULL);
    volt_watch_close(value);
    int64_t n = wait_end(&w1);
    vmc_join(t);
    VMC_ASSERT(sent == 0 ? n == 1 && got[0] == 7 : sent == -EPIPE && n == 0);
    vmc_reached(n == 1 ? "set" : "closed");
    VMC_ASSERT(volt_watcher_try_next(&watcher, &got[0], sizeof got[0]) == 0);
    vmc_free(value);
}
// Both know the same version: one sets the value, and one is told.
static void set_if(void *version) {
    sent = volt_watch_set_if(value, &messages[0], sizeof messages[0], (uint32_t)(uintptr_t)version);
}
SCENARIO(value_set_if_both) {
    uint32_t version;
    make_watch();
    VMC_ASSERT(volt_watch_get(value, &got[0], sizeof got[0], &version) == 0);
    look(&w1);
    int t = vmc_spawn(set_if, (void *)(uintptr_t)version);
    int rc = volt_watch_set_if(value, &messages[1], sizeof messages[1], version);
    vmc_join(t);
    VMC_ASSERT(sent == 0 ? rc == -EAGAIN : sent == -EAGAIN && rc == 0);
    VMC_ASSERT(wait_end(&w1) == 1 && got[0] == (rc == 0 ? 8 : 7));
    VMC_ASSERT(volt_watch_get(value, &got[1], sizeof got[1], NULL) == 0 && got[1] == got[0]);
    vmc_free(value);
}
// The last release of a side closes the watch, and does not use it after the waits have ended.
static void release_value(void *unused) {
    (void)unused;
    volt_watch_release(value, VOLT_CHAN_RECEIVER);
}
SCENARIO(value_wait_for_the_close_beside_two_that_leave) {
    make_watch();
    for (int i = 0; i < 2; i++) volt_watch_retain(value, VOLT_CHAN_RECEIVER);
    volt__watch_closed_wait_op(&w1.a, value);
    wait_begin(&w1);
    int t = vmc_spawn(release_value, NULL);
    release_value(NULL);
    VMC_ASSERT(wait_end(&w1) == 0);
    VMC_ASSERT(volt_watch_is_closed(value));
    vmc_free(value);
    vmc_join(t);
}
