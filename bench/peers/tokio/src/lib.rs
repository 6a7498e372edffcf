// SPDX-License-Identifier: MIT OR 0BSD
//! Shared by the programs: clocks, repetitions, a line of figures per row, options, the tally of
//! operations, and the latch that tasks hit and the root waits for. The frame is that of
//! bench/rows/bench.h:
//!
//!   PROGRAM [ROW...] [--workers N] [--reps N] [--flavor mt|ct]     or --list, which names the rows
//!
//! Default: all rows, 1 worker, 9 repetitions after one that warms up. ct is the runtime of one
//! thread. A row runs in a task, not in block_on, whose thread is no worker; one whose work comes
//! from outside runs in the first thread, and the runtime in others.
use std::fmt::Display;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

mod bell;
mod rows;
pub use bell::{Bell, By};
pub use rows::{run_rows, runtime, Done, Options, Pause, Row};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static MIMALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub fn die(what: impl Display) -> ! {
    eprintln!("{what}");
    std::process::exit(2);
}

// ---- clocks

/// From where now() counts.
pub fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}
pub fn now() -> i64 {
    start().elapsed().as_nanos() as i64
}

/// Use of resources by all threads of the process so far.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub cpu: i64, // user and system time, in ns
    pub voluntary: i64,
    pub involuntary: i64,
}
#[allow(clippy::unnecessary_cast)] // fields of a timeval may have 32 bits
pub fn usage() -> Usage {
    let mut r: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut r) };
    let ns = |t: libc::timeval| t.tv_sec as i64 * 1_000_000_000 + t.tv_usec as i64 * 1000;
    Usage {
        cpu: ns(r.ru_utime) + ns(r.ru_stime),
        voluntary: r.ru_nvcsw as i64,
        involuntary: r.ru_nivcsw as i64,
    }
}

/// Takes a CPU for so long.
pub fn stall(d: Duration) {
    let start = Instant::now();
    while start.elapsed() < d {}
}

// ---- order statistics

pub fn median(v: &mut [f64]) -> f64 {
    v.sort_by(f64::total_cmp);
    (v[(v.len() - 1) / 2] + v[v.len() / 2]) / 2.0
}

/// The smallest of them that a share `p` of them does not exceed.
pub fn percentile(v: &mut [i64], p: f64) -> i64 {
    v.sort_unstable();
    v[((v.len() as f64 * p).ceil() as usize).max(1) - 1]
}

// ---- tally: operations done, summed over threads without a line that they share

const CELLS: usize = 1024;
#[repr(align(128))]
struct Cell(AtomicU64); // written by one thread only
static TALLY: [Cell; CELLS] = [const { Cell(AtomicU64::new(0)) }; CELLS];
static TALLY_USED: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static MINE: &'static Cell = TALLY
        .get(TALLY_USED.fetch_add(1, Relaxed))
        .unwrap_or_else(|| die("too many threads in one run: choose fewer rows"));
}

pub fn tally_add(n: u64) {
    MINE.with(|cell| cell.0.store(cell.0.load(Relaxed) + n, Release));
}
pub fn tally_sum() -> u64 {
    let used = TALLY_USED.load(Relaxed).min(CELLS);
    TALLY[..used].iter().map(|cell| cell.0.load(Acquire)).sum()
}

/// The growth of the tally since then.
pub struct Since(u64);
impl Since {
    pub fn now() -> Since {
        Since(tally_sum())
    }
    pub fn ops(self) -> u64 {
        tally_sum() - self.0
    }
}

// ---- latch: what several tasks hit and the root waits for

static LATCH: AtomicU32 = AtomicU32::new(0);
static LATCH_OPEN: Notify = Notify::const_new();
pub fn latch_set(n: u32) {
    LATCH.store(n, Release);
}
pub fn latch_hit() {
    if LATCH.fetch_sub(1, AcqRel) == 1 {
        LATCH_OPEN.notify_one();
    }
}
pub async fn latch_wait() {
    LATCH_OPEN.notified().await;
}
