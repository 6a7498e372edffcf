// SPDX-License-Identifier: MIT OR 0BSD
// The measurements of bench/rows/block.c, of Tokio: the other tasks while one blocks, and the cost
// of a call.
//
//   block [MS [REPS [CALLS [WORKERS]]]]      default: 1000 3 20000, 1 worker and then 2
//
// The same ways, tables and columns: in_place is block_in_place, pool is spawn_blocking. The task
// that blocks runs on a worker, not in the thread of block_on. A second block_in_place in one poll
// would cost nothing: the worker stays with the other thread until the poll has ended.
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task;
use tokio_peer::{median, now, percentile, runtime, start, usage, Options};

const TICKERS: usize = 16;
const TICK_NS: i64 = 1_000_000;
const WAYS: [&str; 4] = ["none", "poll", "in_place", "pool"];

struct Plan {
    ms: u64,
    reps: usize,
    calls: u64,
}

// ---- the other tasks; 0: not yet

static WINDOW_BEGIN: AtomicI64 = AtomicI64::new(0);
static WINDOW_END: AtomicI64 = AtomicI64::new(0);

async fn ticker(mut due: i64) -> Vec<i64> {
    let mut late = Vec::new();
    loop {
        due += TICK_NS;
        let at = start() + Duration::from_nanos(due as u64);
        tokio::time::sleep_until(at.into()).await;
        let begin = WINDOW_BEGIN.load(Ordering::Acquire);
        let end = WINDOW_END.load(Ordering::Acquire);
        let this = now() - due;
        if end != 0 && due >= end {
            return late;
        }
        if begin != 0 && due >= begin {
            late.push(this.max(0));
        }
    }
}

async fn blocker(way: &str, d: Duration) {
    WINDOW_BEGIN.store(now(), Ordering::Release);
    match way {
        "none" => tokio::time::sleep(d).await,
        "poll" => thread::sleep(d),
        "in_place" => task::block_in_place(|| thread::sleep(d)),
        _ => task::spawn_blocking(move || thread::sleep(d)).await.unwrap(),
    }
    WINDOW_END.store(now(), Ordering::Release);
}

async fn scene(way: &'static str, d: Duration, reps: usize) -> Vec<i64> {
    let mut all = Vec::new();
    for _ in 0..reps {
        WINDOW_BEGIN.store(0, Ordering::Release);
        WINDOW_END.store(0, Ordering::Release);
        let first = now();
        let tickers: Vec<_> = (0..TICKERS).map(|_| tokio::spawn(ticker(first))).collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        tokio::spawn(blocker(way, d)).await.unwrap();
        for t in tickers {
            all.append(&mut t.await.unwrap());
        }
    }
    all
}

fn measure_late(way: &'static str, workers: usize, o: &Plan) {
    let rt = runtime(&Options::new(workers));
    let d = Duration::from_millis(o.ms);
    let mut all = rt.block_on(async { tokio::spawn(scene(way, d, o.reps)).await.unwrap() });
    let n = all.len();
    let expected = o.ms as usize * TICKERS * o.reps;
    assert!(n * 100 >= expected * 98, "{way}: ticks are missing");
    let mut at = |p: f64| percentile(&mut all, p) / 1000;
    println!("{way:<14} {workers:>7} {n:>9} {:>10} {:>10} {:>10}", at(0.5), at(0.99), at(1.0));
}

// ---- empty calls

static EMPTY: AtomicU64 = AtomicU64::new(0);
fn empty() {
    EMPTY.fetch_add(1, Ordering::Relaxed);
}

// The first repetition warms up.
async fn caller(way: &'static str, is_busy: bool, calls: u64, reps: usize) -> Vec<[f64; 4]> {
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = is_over.clone();
    let yielder = is_busy.then(|| {
        tokio::spawn(async move {
            while !seen.load(Ordering::Relaxed) {
                task::yield_now().await;
            }
        })
    });
    let mut costs = Vec::new();
    for rep in 0..=reps {
        let (from, start) = (usage(), now());
        for _ in 0..calls {
            match way {
                "in_place" => {
                    task::block_in_place(empty);
                    task::yield_now().await;
                }
                _ => task::spawn_blocking(empty).await.unwrap(),
            }
        }
        let (to, end) = (usage(), now());
        let per = |a: i64, b: i64| (b - a) as f64 / calls as f64;
        if rep > 0 {
            costs.push([
                per(start, end),
                per(from.cpu, to.cpu),
                per(from.voluntary, to.voluntary),
                per(from.involuntary, to.involuntary),
            ]);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    if let Some(y) = yielder {
        y.await.unwrap();
    }
    costs
}

fn measure_calls(way: &'static str, is_busy: bool, workers: usize, o: &Plan) {
    let (calls, reps) = (o.calls, o.reps);
    EMPTY.store(0, Ordering::Relaxed);
    let costs = runtime(&Options::new(workers))
        .block_on(async { tokio::spawn(caller(way, is_busy, calls, reps)).await.unwrap() });
    assert_eq!(EMPTY.load(Ordering::Relaxed), calls * (reps as u64 + 1), "calls were lost");
    let of = |k: usize| median(&mut costs.iter().map(|c| c[k]).collect::<Vec<_>>());
    let name = format!("{way}{}", if is_busy { "_busy" } else { "" });
    println!(
        "{name:<14} {workers:>7} {:>9.0} {:>9.0} {:>10.2} {:>12.2}",
        of(0),
        of(1),
        of(2),
        of(3)
    );
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let arg = |i: usize, default: u64| args.get(i).copied().unwrap_or(default);
    let o = Plan { ms: arg(0, 1000), reps: arg(1, 3) as usize, calls: arg(2, 20000) };
    let workers: Vec<usize> = args.get(3).map_or(vec![1, 2], |&w| vec![w as usize]);
    start();
    println!(
        "{:<14} {:>7} {:>9} {:>10} {:>10} {:>10}",
        "way", "workers", "ticks", "p50 us", "p99 us", "max us"
    );
    for way in WAYS {
        for &w in &workers {
            measure_late(way, w, &o);
        }
    }
    println!(
        "\n{:<14} {:>7} {:>9} {:>9} {:>10} {:>12}",
        "call", "workers", "ns", "cpu ns", "voluntary", "involuntary"
    );
    for way in ["in_place", "pool"] {
        for is_busy in [false, true] {
            for &w in &workers {
                measure_calls(way, is_busy, w, &o);
            }
        }
    }
}
