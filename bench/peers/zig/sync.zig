// SPDX-License-Identifier: MIT OR 0BSD
//! Rows of locks and the like by blitz-io, in Zig: one thread, no runtime, no waits.
//!
//!   sync [ROW...] [--reps N]        default: all rows, 9 repetitions
//!
//!   C1   uncontended, lock and unlock: a mutex, b rwlock read, c write, d semaphore of 10
//!   C2   a: a look at a cell that is set and at its value; b: a new cell, set, and its value
//!   C3   a: a new notify, notified and waited for; b: a new barrier of 1. Its functions that wait
//!        take the waiter and tell at once that they need not wait, so there is no task to poll
//!
//! The operations are those of ../../rows/sync.c. New objects lie on the stack each time, where it
//! is quickest. For the columns see ../../rows/bench.h.
const bench = @import("bench.zig");
const sync = @import("blitz-io");

const million = 1_000_000;
const permits = 10;

var guarded: u64 = 0; // by the lock that the row is about
var mutex = sync.Mutex.init();
var rwlock = sync.RwLock.init();
var sem = sync.Semaphore.init(permits);

// ---- C1

fn try_mutex() u64 {
    guarded = 0;
    for (0..million) |_| {
        if (!mutex.tryLock()) return 0;
        guarded += 1;
        mutex.unlock();
    }
    return guarded;
}

fn try_read() u64 {
    var sum: u64 = 0;
    guarded = 1;
    for (0..million) |_| {
        if (!rwlock.tryReadLock()) return 0;
        sum += guarded;
        rwlock.readUnlock();
    }
    return sum;
}

fn try_write() u64 {
    guarded = 0;
    for (0..million) |_| {
        if (!rwlock.tryWriteLock()) return 0;
        guarded += 1;
        rwlock.writeUnlock();
    }
    return guarded;
}

fn try_sem() u64 {
    sem = sync.Semaphore.init(permits);
    guarded = 0;
    for (0..million) |_| {
        if (!sem.tryAcquire(1)) return 0;
        guarded += 1;
        sem.release(1);
    }
    return if (sem.availablePermits() == permits) guarded else 0;
}

// ---- C2

fn cell_get() u64 {
    var sum: u64 = 0;
    var cell = sync.OnceCell(u64).init();
    if (!cell.set(1)) return 0;
    for (0..million) |_| sum += if (cell.get()) |value| value.* else 0;
    return sum;
}

fn cell_set() u64 {
    var n: u64 = 0;
    for (0..million) |i| {
        var cell = sync.OnceCell(u64).init();
        if (!cell.set(i)) return 0;
        const value = cell.get() orelse return 0;
        n += @intFromBool(value.* == i);
    }
    return n;
}

// ---- C3

fn notify_wait() u64 {
    var n: u64 = 0;
    for (0..million) |_| {
        var notify = sync.Notify.init();
        notify.notifyOne();
        var waiter = sync.notify.Waiter.init();
        n += @intFromBool(notify.waitWith(&waiter));
    }
    return n;
}

fn barrier_wait() u64 {
    var n: u64 = 0;
    for (0..million) |_| {
        var barrier = sync.Barrier.init(1);
        var waiter = sync.barrier.Waiter.init();
        n += @intFromBool(barrier.waitWith(&waiter) and waiter.is_leader.load(.acquire));
    }
    return n;
}

// ---- main

const rows = [_]bench.Row{
    .{ .id = "C1at", .what = "mutex: tryLock, unlock", .ops = million, .run = try_mutex },
    .{ .id = "C1bt", .what = "rwlock: tryReadLock, unlock", .ops = million, .run = try_read },
    .{ .id = "C1ct", .what = "rwlock: tryWriteLock, unlock", .ops = million, .run = try_write },
    .{ .id = "C1dt", .what = "semaphore: tryAcquire, release", .ops = million, .run = try_sem },
    .{ .id = "C2a", .what = "OnceCell: get", .ops = million, .run = cell_get },
    .{ .id = "C2b", .what = "OnceCell: new, set, get", .ops = million, .run = cell_set },
    .{ .id = "C3a", .what = "notify: new, one, waitWith", .ops = million, .run = notify_wait },
    .{ .id = "C3b", .what = "barrier of 1: new, waitWith", .ops = million, .run = barrier_wait },
};

pub fn main() void {
    bench.main(&rows);
}
