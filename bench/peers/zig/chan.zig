// SPDX-License-Identifier: MIT OR 0BSD
//! Rows of channels by blitz-io, in Zig: one thread, no runtime, no waits.
//!
//!   chan [ROW...] [--reps N]        default: all rows, 9 repetitions
//!
//!   C4   8 bytes: a fills a channel of 100,000, b drains it, c one message through a channel of 1
//!   C5   a: a new oneshot, sent and received
//!   C6   a: a broadcast fills a ring of 100,000, 4 receivers drain it: one send, four receives;
//!        b: a watch set, and read by a receiver. (Its borrow is quicker, but reads with no lock
//!        what another thread may be writing, so it is not this operation)
//!
//! The operations are those of ../../rows/chan.c, and all messages are added up. The rings lie in
//! memory that was touched before, as there; to make one of 100,000 is not timed. For the columns
//! see ../../rows/bench.h.
const std = @import("std");
const bench = @import("bench.zig");
const io = @import("blitz-io");

const million = 1_000_000;
const full = 100_000;
const fills = 10;
const receivers = 4;

const Channel = io.Channel(u64);
const Oneshot = io.Oneshot(u64);
const Broadcast = io.BroadcastChannel(u64);
const Watch = io.Watch(u64);

var memory: [4 << 20]u8 align(4096) = undefined; // of whatever channel the row is about
var room = std.heap.FixedBufferAllocator.init(&memory);
var chan: Channel = undefined;

fn sum_below(n: u64) u64 {
    return n * (n - 1) / 2;
}

/// n messages, if their sum is that of all numbers below n.
fn messages(n: u64, sum: u64) u64 {
    return if (sum == sum_below(n)) n else 0;
}

// ---- C4

fn chan_init(capacity: usize) void {
    room.reset();
    chan = Channel.init(room.allocator(), capacity) catch bench.die("no memory", .{});
}

fn fill() bool {
    for (0..full) |i| if (chan.trySend(i) != .ok) return false;
    return true;
}

fn drain() ?u64 {
    var sum: u64 = 0;
    for (0..full) |_| switch (chan.tryRecv()) {
        .value => |value| sum += value,
        else => return null,
    };
    return sum;
}

fn chan_fill() u64 {
    var n: u64 = 0;
    for (0..fills) |_| {
        bench.pause();
        chan_init(full);
        bench.unpause();
        if (!fill()) return 0;
        bench.pause();
        n += messages(full, drain() orelse return 0);
        bench.unpause();
    }
    return n;
}

fn chan_drain() u64 {
    var n: u64 = 0;
    for (0..fills) |_| {
        bench.pause();
        chan_init(full);
        if (!fill()) return 0;
        bench.unpause();
        n += messages(full, drain() orelse return 0);
    }
    return n;
}

fn chan_one() u64 {
    var sum: u64 = 0;
    chan_init(1);
    for (0..million) |i| {
        if (chan.trySend(i) != .ok) return 0;
        switch (chan.tryRecv()) {
            .value => |value| sum += value,
            else => return 0,
        }
    }
    return messages(million, sum);
}

// ---- C5

fn oneshot() u64 {
    var sum: u64 = 0;
    for (0..million) |i| {
        var shared = Oneshot.Shared.init();
        var pair = Oneshot.fromShared(&shared);
        if (!pair.sender.send(i)) return 0;
        sum += pair.receiver.tryRecv() orelse return 0;
    }
    return messages(million, sum);
}

// ---- C6

var broadcast: Broadcast = undefined;
var ends: [receivers]Broadcast.Receiver = undefined;

fn broadcast_init() void {
    room.reset();
    broadcast = Broadcast.init(room.allocator(), full) catch bench.die("no memory", .{});
    for (&ends) |*end| end.* = broadcast.subscribe();
}

fn broadcast_fill() bool {
    for (0..full) |i| switch (broadcast.send(i)) {
        .ok => |n| if (n != receivers) return false,
        else => return false,
    };
    return true;
}

fn broadcast_drain(end: *Broadcast.Receiver) bool {
    var sum: u64 = 0;
    for (0..full) |_| switch (end.tryRecv()) {
        .value => |value| sum += value,
        else => return false,
    };
    return sum == sum_below(full);
}

fn broadcast_fill_drain() u64 {
    for (0..fills) |_| {
        bench.pause();
        broadcast_init();
        bench.unpause();
        if (!broadcast_fill()) return 0;
        for (&ends) |*end| if (!broadcast_drain(end)) return 0;
    }
    return fills * full;
}

var watch = Watch.init(0);

fn watch_set_get() u64 {
    var sum: u64 = 0;
    watch = Watch.init(0);
    const reader = watch.subscribe();
    for (0..million) |i| {
        watch.send(i);
        sum += reader.get();
    }
    return messages(million, sum);
}

// ---- main

const rows = [_]bench.Row{
    .{ .id = "C4at", .what = "channel: fill, trySend", .ops = fills * full, .run = chan_fill },
    .{ .id = "C4bt", .what = "channel: drain, tryRecv", .ops = fills * full, .run = chan_drain },
    .{ .id = "C4ct", .what = "channel of 1: trySend, tryRecv", .ops = million, .run = chan_one },
    .{ .id = "C5at", .what = "oneshot: new, send, tryRecv", .ops = million, .run = oneshot },
    .{
        .id = "C6a",
        .what = "broadcast: send, 4 tryRecv",
        .ops = fills * full,
        .run = broadcast_fill_drain,
    },
    .{ .id = "C6b", .what = "watch: send, get", .ops = million, .run = watch_set_get },
};

pub fn main() void {
    bench.main(&rows);
}
