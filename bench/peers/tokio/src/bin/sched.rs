// SPDX-License-Identifier: MIT OR 0BSD
//! The costs of spawning, chaining, handing over and yielding: the rows of bench/rows/sched.c by
//! Tokio.
//!
//!   S1   detached empty tasks, 200 at a time; the root yields until they have run
//!   S2   the root spawns 10,000 at a time; the last one to run wakes it
//!   S6   each task spawns the next, 1000 deep; the last one wakes the root
//!   S7   1000 tasks at a time each spawn a task, hand it a number with its state, and get it back
//!        from the JoinHandle; one operation is both spawns and the hand-over
//!   S7o  the same, with two oneshots in place of state and JoinHandle: Tokio's own ping_pong
//!   S8   200 tasks yield 1000 times each
//!   S9   two tasks, two mpsc channels of 1, numbers there and back: a one pair, b as many pairs as
//!        workers, c 200 pairs; one operation is there and back
//!   S10  a tree of tasks, ten to each, down to a million leaves; each waits for its ten and gives
//!        the sum of their numbers up; one operation is a leaf. By the JoinHandles, which take less
//!        time than one mpsc channel for each ten
//!
//! Every task counts its operations. For options and columns see src/lib.rs.
use std::future::Future;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio_peer::{
    latch_hit, latch_set, latch_wait, run_rows, tally_add, tally_sum, Options, Row, Since,
};

const MILLION: u64 = 1_000_000;
const TRIPS: u64 = 200_000;

async fn empty() {
    tally_add(1);
}
async fn empty_last() {
    tally_add(1);
    latch_hit();
}

async fn spawn_yielding() -> u64 {
    let since = Since::now();
    let mut target = tally_sum();
    for _ in 0..MILLION / 200 {
        for _ in 0..200 {
            tokio::spawn(empty());
        }
        target += 200;
        while tally_sum() < target {
            yield_now().await;
        }
    }
    since.ops()
}

async fn spawn_many() -> u64 {
    let since = Since::now();
    for _ in 0..100 {
        latch_set(10_000);
        for _ in 0..10_000 {
            tokio::spawn(empty_last());
        }
        latch_wait().await;
    }
    since.ops()
}

// Not an async fn, whose type would depend on whether it is Send, and that on its type.
#[allow(clippy::manual_async_fn)]
fn link(left: u32) -> impl Future<Output = ()> + Send {
    async move {
        tally_add(1);
        if left > 0 {
            tokio::spawn(link(left - 1));
        } else {
            latch_hit();
        }
    }
}
async fn chains() -> u64 {
    let since = Since::now();
    for _ in 0..1000 {
        latch_set(1);
        tokio::spawn(link(999));
        latch_wait().await;
    }
    since.ops()
}

// ---- S7

async fn ping_join(value: u64) {
    let answer = tokio::spawn(async move { value + 1 }).await.unwrap();
    tally_add(u64::from(answer == value + 1));
    latch_hit();
}
async fn ping_oneshot(value: u64) {
    let (to, from) = oneshot::channel::<u64>();
    let (back, answer) = oneshot::channel::<u64>();
    tokio::spawn(async move { back.send(from.await.unwrap() + 1).unwrap() });
    to.send(value).unwrap();
    tally_add(u64::from(answer.await.unwrap() == value + 1));
    latch_hit();
}
async fn thousands<F: Future<Output = ()> + Send + 'static>(ping: fn(u64) -> F) -> u64 {
    let since = Since::now();
    for i in 0..100 {
        latch_set(1000);
        for k in 0..1000 {
            tokio::spawn(ping(i * 1000 + k));
        }
        latch_wait().await;
    }
    since.ops()
}

// ---- S8, S9

async fn yields() -> u64 {
    let since = Since::now();
    for _ in 0..5 {
        latch_set(200);
        for _ in 0..200 {
            tokio::spawn(async {
                for _ in 0..1000 {
                    yield_now().await;
                }
                tally_add(1000);
                latch_hit();
            });
        }
        latch_wait().await;
    }
    since.ops()
}

async fn pairs(n: u64, trips: u64) -> u64 {
    let since = Since::now();
    latch_set(n as u32);
    for _ in 0..n {
        let (to, mut from) = mpsc::channel::<u64>(1);
        let (back, mut answers) = mpsc::channel::<u64>(1);
        tokio::spawn(async move {
            while let Some(value) = from.recv().await {
                back.send(value + 1).await.unwrap();
            }
        });
        tokio::spawn(async move {
            let mut n = 0;
            for i in 0..trips {
                to.send(i).await.unwrap();
                n += u64::from(answers.recv().await.unwrap() == i + 1);
            }
            tally_add(n);
            latch_hit();
        });
    }
    latch_wait().await;
    since.ops()
}

// ---- S10

#[allow(clippy::manual_async_fn)] // as link
fn skynet(first: u64, leaves: u64) -> impl Future<Output = u64> + Send {
    async move {
        if leaves == 1 {
            tally_add(1);
            return first;
        }
        let part = leaves / 10;
        let children: [_; 10] =
            std::array::from_fn(|k| tokio::spawn(skynet(first + k as u64 * part, part)));
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    }
}
async fn tree() -> u64 {
    let since = Since::now();
    assert_eq!(tokio::spawn(skynet(0, MILLION)).await.unwrap(), MILLION * (MILLION - 1) / 2);
    since.ops()
}

fn rows(o: &Options) -> Vec<Row> {
    let w = o.workers as u64;
    let pairs_of_all = move || pairs(w, TRIPS / w);
    vec![
        Row::task("S1", "spawn, 200 at a time", MILLION, spawn_yielding),
        Row::task("S2", "spawn, 10,000 at a time", MILLION, spawn_many),
        Row::task("S6", "chained spawn, depth 1000", MILLION, chains),
        Row::task("S7", "ping-pong: two spawns, hand-over, join", 100_000, || thousands(ping_join)),
        Row::task("S7o", "ping-pong by two oneshots", 100_000, || thousands(ping_oneshot)),
        Row::task("S8", "yield, 200 tasks", MILLION, yields),
        Row::task("S9a", "mpsc of 1, there and back, 1 pair", TRIPS, || pairs(1, TRIPS)),
        Row::task("S9b", "the same, a pair per worker", TRIPS / w * w, pairs_of_all),
        Row::task("S9c", "the same, 200 pairs", TRIPS, || pairs(200, 1000)),
        Row::task("S10", "skynet: spawn ten, await their JoinHandles", MILLION, tree),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
