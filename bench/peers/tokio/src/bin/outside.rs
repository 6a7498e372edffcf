// SPDX-License-Identifier: MIT OR 0BSD
//! The cost of work from threads that are no workers, by Tokio.
//!
//!   S3       the runtime idle, a thread spawns 10,000 tasks, keeps their JoinHandles and waits for
//!            all of them in block_on; 20 times
//!   S4a      the same, once, beside 2 tasks per worker that stall for 10 us and yield
//!   S4b      1000 tasks, 5 times, beside 4 that stall for 10 us and respawn themselves
//!   S5pN     N threads spawn 12,800 detached tasks in all; from the first spawn until all have run;
//!            20 times
//!   S12a-c   a thread wakes one task by its Waker, 3, 30 and 300 us after the last answer; the
//!            median of the time until the task runs, in ns. The thread waits busily
//!   S12d,e   100 tasks sleep_until each of 1000 ticks of 1 ms beside the tasks of S4a: p50 and p99
//!            of how late they run, in ns. Tokio's timers are of whole ms, rounded up
//!
//! For options and columns see src/lib.rs.
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::*};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::{yield_now, JoinHandle};
use tokio::time::sleep_until;
use tokio_peer::{
    now, percentile, run_rows, stall, tally_add, Bell, By, Done, Options, Pause, Row, Since,
};

const STALL: Duration = Duration::from_micros(10);

async fn empty() {
    tally_add(1);
}

// ---- what keeps workers busy meanwhile

static HOGS_STOP: AtomicBool = AtomicBool::new(false);
static HOGS: AtomicU32 = AtomicU32::new(0);

async fn yielding_hog() {
    while !HOGS_STOP.load(Relaxed) {
        stall(STALL);
        yield_now().await;
    }
    HOGS.fetch_sub(1, Release);
}

// Not an async fn, whose type would depend on whether it is Send, and that on its type.
#[allow(clippy::manual_async_fn)]
fn respawning_hog() -> impl Future<Output = ()> + Send {
    async {
        if HOGS_STOP.load(Relaxed) {
            HOGS.fetch_sub(1, Release);
            return;
        }
        stall(STALL);
        tokio::spawn(respawning_hog());
    }
}

/// Neither their start nor their end counts.
struct Hogs;
impl Hogs {
    fn start<F>(h: &Handle, n: usize, hog: fn() -> F) -> Hogs
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _pause = Pause::new();
        HOGS_STOP.store(false, Relaxed);
        HOGS.store(n as u32, Relaxed);
        (0..n).for_each(|_| drop(h.spawn(hog())));
        Hogs
    }
}
impl Drop for Hogs {
    fn drop(&mut self) {
        let _pause = Pause::new();
        HOGS_STOP.store(true, Relaxed);
        while HOGS.load(Acquire) > 0 {
            thread::yield_now();
        }
    }
}

// ---- S3, S4

fn spawn_and_wait(h: &Handle, n: usize, times: usize) -> u64 {
    let since = Since::now();
    for _ in 0..times {
        let handles: Vec<JoinHandle<()>> = (0..n).map(|_| h.spawn(empty())).collect();
        h.block_on(async {
            for handle in handles {
                handle.await.unwrap();
            }
        });
    }
    since.ops()
}

fn beside_yielding(h: &Handle, workers: usize) -> u64 {
    let _hogs = Hogs::start(h, 2 * workers, yielding_hog);
    spawn_and_wait(h, 10_000, 1)
}
fn beside_respawning(h: &Handle) -> u64 {
    let _hogs = Hogs::start(h, 4, respawning_hog);
    spawn_and_wait(h, 1000, 5)
}

// ---- S5: 20 rounds, each of which the last task ends

const FLOOD: u64 = 12_800;
const ROUNDS: u64 = 20;
static LEFT: AtomicU32 = AtomicU32::new(0);
static FIRST: AtomicI64 = AtomicI64::new(0); // spawn of the round
static LAST: AtomicI64 = AtomicI64::new(0); // task of the round
static ROOT: OnceLock<Thread> = OnceLock::new();

async fn flood_drop() {
    tally_add(1);
    if LEFT.fetch_sub(1, AcqRel) == 1 {
        LAST.store(now(), Release);
        ROOT.get().unwrap().unpark();
    }
}

fn flooder(h: &Handle, gate: &Barrier, n: u64) {
    for _ in 0..ROUNDS {
        gate.wait();
        FIRST.fetch_min(now(), Relaxed);
        for _ in 0..n {
            drop(h.spawn(flood_drop()));
        }
        gate.wait();
    }
}

fn flood(h: &Handle, threads: u64) -> Done {
    let pause = Pause::new();
    let since = Since::now();
    ROOT.get_or_init(thread::current);
    let gate = Barrier::new(threads as usize + 1);
    let mut wall = 0;
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| flooder(h, &gate, FLOOD / threads));
        }
        drop(pause);
        for _ in 0..ROUNDS {
            LEFT.store(FLOOD as u32, Relaxed);
            LAST.store(0, Relaxed);
            FIRST.store(i64::MAX, Relaxed);
            gate.wait();
            while LAST.load(Acquire) == 0 {
                thread::park();
            }
            gate.wait(); // spawned and stamped by all
            wall += LAST.load(Relaxed) - FIRST.load(Relaxed);
        }
    });
    let ops = since.ops();
    Done { ops, wall: Some(wall as f64 / ops as f64) }
}

// ---- S12: latency of a wake

async fn sleeper(bell: Arc<Bell>, n: u64) {
    let mut seen = 0;
    while seen < n {
        seen = bell.heard(seen).await;
        bell.answer(seen, now());
    }
}

// One wake at a time; the thread stays busy so that the gap is what it says.
fn wake_latency(h: &Handle, n: u64, gap: Duration) -> Done {
    let bell = Arc::new(Bell::new(By::Waker));
    let task = h.spawn(sleeper(bell.clone(), n));
    bell.wait_for_task();
    let mut latency = Vec::with_capacity(n as usize);
    for i in 1..=n {
        stall(gap);
        let sent = now();
        bell.ring(i);
        latency.push(bell.wait_busily(i) - sent);
    }
    h.block_on(task).unwrap();
    let ops = latency.len() as u64;
    let _pause = Pause::new();
    Done { ops, wall: Some(percentile(&mut latency, 0.5) as f64) }
}

// ---- S12d, e

const TICKS: u32 = 1000;
const TICKERS: u64 = 100;

async fn ticker() -> Vec<i64> {
    let start = Instant::now();
    let mut late = Vec::with_capacity(TICKS as usize);
    for i in 1..=TICKS {
        let due = start + i * Duration::from_millis(1);
        sleep_until(due.into()).await;
        let now = Instant::now();
        assert!(now >= due, "a tick came early");
        late.push((now - due).as_nanos() as i64);
    }
    late
}

fn tick_lateness(h: &Handle, workers: usize, p: f64) -> Done {
    let mut late = Vec::new();
    {
        let _hogs = Hogs::start(h, 2 * workers, yielding_hog);
        let tickers: Vec<_> = (0..TICKERS).map(|_| h.spawn(ticker())).collect();
        h.block_on(async {
            for t in tickers {
                late.append(&mut t.await.unwrap());
            }
        });
    }
    let _pause = Pause::new();
    Done { ops: late.len() as u64, wall: Some(percentile(&mut late, p) as f64) }
}

fn rows(o: &Options) -> Vec<Row> {
    let w = o.workers;
    let flood_of = |id, what, p| Row::outside(id, what, ROUNDS * FLOOD, move |h| flood(h, p));
    let wake_of = |id, what, n, us| {
        Row::outside(id, what, n, move |h| wake_latency(h, n, Duration::from_micros(us)))
    };
    let ticks_of = |id, what, p| {
        Row::outside(id, what, TICKERS * TICKS as u64, move |h| tick_lateness(h, w, p))
    };
    vec![
        Row::outside("S3", "spawn 10,000 from a thread, join", 200_000, |h| {
            spawn_and_wait(h, 10_000, 20)
        }),
        Row::outside("S4a", "the same beside tasks that stall and yield", 10_000, move |h| {
            beside_yielding(h, w)
        }),
        Row::outside("S4b", "1000 beside tasks that stall and respawn", 5000, beside_respawning),
        flood_of("S5p1", "spawn from 1 thread", 1),
        flood_of("S5p2", "spawn from 2 threads", 2),
        flood_of("S5p4", "spawn from 4 threads", 4),
        flood_of("S5p8", "spawn from 8 threads", 8),
        wake_of("S12a", "wake from a thread, 3 us after the answer: p50", 2000, 3),
        wake_of("S12b", "wake from a thread, 30 us after the answer: p50", 2000, 30),
        wake_of("S12c", "wake from a thread, 300 us after the answer: p50", 500, 300),
        ticks_of("S12d", "ticks of 1 ms by sleep_until beside busy tasks: p50 late", 0.5),
        ticks_of("S12e", "ticks of 1 ms by sleep_until beside busy tasks: p99 late", 0.99),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
