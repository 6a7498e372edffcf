// SPDX-License-Identifier: MIT OR 0BSD
//! The rows of bench/rows/sync.c and bench/rows/chan.c by Tokio, with the same workloads and sums;
//! those of C7, for which Tokio has no channel, by async-channel, and as C7a:kanal and C7a:flume by
//! kanal and by flume's async calls. For options and columns see src/lib.rs.
//!
//!   sync [ROW...] [--workers N] [--reps N] [--flavor mt|ct]    C9w only when it is asked for
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{
    broadcast, mpsc, oneshot, watch, Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore,
};
use tokio_peer::{die, latch_hit, latch_set, latch_wait, run_rows, runtime, Options, Pause, Row};

const MILLION: u64 = 1_000_000;
const FULL: u64 = 100_000;
const FILLS: u64 = 10;

fn sum_below(n: u64) -> u64 {
    n * (n - 1) / 2
}
fn messages(n: u64, sum: u64) -> u64 {
    if sum == sum_below(n) {
        n
    } else {
        0
    }
}

// ---- C1

fn try_mutex() -> u64 {
    let m = Mutex::new(0u64);
    black_box(&m);
    for _ in 0..MILLION {
        *m.try_lock().unwrap() += 1;
    }
    m.into_inner()
}
async fn mutex() -> u64 {
    let m = Mutex::new(0u64);
    black_box(&m);
    for _ in 0..MILLION {
        *m.lock().await += 1;
    }
    m.into_inner()
}
fn try_read() -> u64 {
    let (l, mut sum) = (RwLock::new(1u64), 0);
    black_box(&l);
    for _ in 0..MILLION {
        sum += *l.try_read().unwrap();
    }
    sum
}
async fn read() -> u64 {
    let (l, mut sum) = (RwLock::new(1u64), 0);
    black_box(&l);
    for _ in 0..MILLION {
        sum += *l.read().await;
    }
    sum
}
fn try_write() -> u64 {
    let l = RwLock::new(0u64);
    black_box(&l);
    for _ in 0..MILLION {
        *l.try_write().unwrap() += 1;
    }
    l.into_inner()
}
async fn write() -> u64 {
    let l = RwLock::new(0u64);
    black_box(&l);
    for _ in 0..MILLION {
        *l.write().await += 1;
    }
    l.into_inner()
}
fn try_sem() -> u64 {
    let (s, mut n) = (Semaphore::new(10), 0);
    black_box(&s);
    for _ in 0..MILLION {
        let _permit = s.try_acquire().unwrap();
        n += 1;
    }
    assert_eq!(s.available_permits(), 10);
    n
}
async fn sem() -> u64 {
    let (s, mut n) = (Semaphore::new(10), 0);
    black_box(&s);
    for _ in 0..MILLION {
        let _permit = s.acquire().await.unwrap();
        n += 1;
    }
    assert_eq!(s.available_permits(), 10);
    n
}

// ---- C2, C3

fn once_get() -> u64 {
    let (cell, mut sum) = (OnceCell::new(), 0);
    cell.set(1u64).unwrap();
    for _ in 0..MILLION {
        sum += *black_box(&cell).get().unwrap();
    }
    sum
}
fn once_set() -> u64 {
    let mut n = 0;
    for i in 0..MILLION {
        let cell = OnceCell::new();
        black_box(&cell).set(i).unwrap();
        n += (cell.get() == Some(&i)) as u64;
    }
    n
}
async fn notify() -> u64 {
    let mut n = 0;
    for _ in 0..MILLION {
        let notify = Notify::new();
        notify.notify_one();
        notify.notified().await;
        n += 1;
    }
    n
}
async fn barrier() -> u64 {
    let mut n = 0;
    for _ in 0..MILLION {
        n += Barrier::new(1).wait().await.is_leader() as u64;
    }
    n
}
const MEETINGS: u64 = 20_000;
async fn meetings() -> u64 {
    let barrier = Arc::new(Barrier::new(8));
    let leaders = Arc::new(AtomicU64::new(0));
    latch_set(8);
    for _ in 0..8 {
        let (barrier, leaders) = (barrier.clone(), leaders.clone());
        tokio::spawn(async move {
            let mut n = 0;
            for _ in 0..MEETINGS {
                n += barrier.wait().await.is_leader() as u64;
            }
            leaders.fetch_add(n, Relaxed);
            latch_hit();
        });
    }
    latch_wait().await;
    leaders.load(Relaxed)
}

// ---- C9

const C9_OPS: u64 = 10_000;
const C9_TIMES: u64 = 100;
const YIELD_TIMES: u64 = 20;
async fn lockers(times: u64, yields: bool) -> u64 {
    let m = Arc::new(Mutex::new(0u64));
    for _ in 0..times {
        latch_set(4);
        for _ in 0..4 {
            let m = m.clone();
            tokio::spawn(async move {
                for _ in 0..C9_OPS / 4 {
                    let mut guard = m.lock().await;
                    let seen = *guard;
                    if yields {
                        tokio::task::yield_now().await;
                    }
                    *guard = seen + 1;
                }
                latch_hit();
            });
        }
        latch_wait().await;
    }
    let n = *m.lock().await;
    n
}
async fn readers_writers() -> u64 {
    let l = Arc::new(RwLock::new(0u64));
    let reads = Arc::new(AtomicU64::new(0));
    for _ in 0..C9_TIMES {
        latch_set(6);
        for id in 0..6 {
            let (l, reads) = (l.clone(), reads.clone());
            tokio::spawn(async move {
                if id < 4 {
                    let mut n = 0;
                    for _ in 0..C9_OPS / 6 {
                        black_box(&l.read().await);
                        n += 1;
                    }
                    reads.fetch_add(n, Relaxed);
                } else {
                    for _ in 0..C9_OPS / 6 {
                        *l.write().await += 1;
                    }
                }
                latch_hit();
            });
        }
        latch_wait().await;
    }
    let n = *l.read().await;
    n + reads.load(Relaxed)
}
async fn acquirers() -> u64 {
    let s = Arc::new(Semaphore::new(2));
    let total = Arc::new(AtomicU64::new(0));
    for _ in 0..C9_TIMES {
        latch_set(8);
        for _ in 0..8 {
            let (s, total) = (s.clone(), total.clone());
            tokio::spawn(async move {
                let mut n = 0;
                for _ in 0..C9_OPS / 8 {
                    let _permit = s.acquire().await.unwrap();
                    n += 1;
                }
                total.fetch_add(n, Relaxed);
                latch_hit();
            });
        }
        latch_wait().await;
    }
    assert_eq!(s.available_permits(), 2);
    total.load(Relaxed)
}

// ---- C9w

macro_rules! contest {
    ($what:expr, $workers:expr, $n:expr, $yields:expr, $id:ident, $lock:ident, $new:expr, $take:expr) => {{
        let $lock = Arc::new($new);
        let (tell, mut told) = mpsc::unbounded_channel();
        let start = Instant::now();
        for $id in 0..$n {
            let ($lock, tell) = ($lock.clone(), tell.clone());
            tokio::spawn(async move {
                let (mut n, mut longest) = (0u64, 0u128);
                loop {
                    let since = Instant::now();
                    if since.duration_since(start).as_millis() >= 200 {
                        break;
                    }
                    let guard = $take;
                    longest = longest.max(since.elapsed().as_nanos());
                    if $yields {
                        tokio::task::yield_now().await;
                    }
                    drop(guard);
                    n += 1;
                }
                tell.send((n, longest)).unwrap();
            });
        }
        drop(tell);
        let mut all = Vec::new();
        while let Some(share) = told.recv().await {
            all.push(share);
        }
        assert_eq!(all.len(), $n);
        let n: u64 = all.iter().map(|s| s.0).sum();
        let fair = n as f64 / all.len() as f64;
        println!(
            "{:<12} {:>7} {:<16} {:>12.0} {:>10.1} {:>8.2} {:>8.2}",
            "C9w",
            $workers,
            $what,
            n as f64 / start.elapsed().as_secs_f64(),
            all.iter().map(|s| s.1).max().unwrap() as f64 / 1000.0,
            all.iter().map(|s| s.0).min().unwrap() as f64 / fair,
            all.iter().map(|s| s.0).max().unwrap() as f64 / fair
        );
    }};
}
enum Either<A, B> {
    Read(#[allow(dead_code)] A),
    Write(#[allow(dead_code)] B),
}
async fn contests(w: usize) {
    println!(
        "{:<12} {:>7} {:<16} {:>12} {:>10} {:>8} {:>8}",
        "row", "workers", "contest", "ops/s", "longest us", "least", "most"
    );
    for yields in [false, true] {
        let name = |s: &str| if yields { format!("{s}+yield") } else { s.to_string() };
        contest!(name("mutex"), w, 4, yields, _id, m, Mutex::new(()), m.lock().await);
        contest!(name("rwlock"), w, 6, yields, id, l, RwLock::new(()), {
            if id < 4 {
                Either::Read(l.read().await)
            } else {
                Either::Write(l.write().await)
            }
        });
        contest!(
            name("semaphore"),
            w,
            8,
            yields,
            _id,
            s,
            Semaphore::new(2),
            s.acquire().await.unwrap()
        );
    }
}

// ---- C10

const C10_OPS: u64 = 200_000;
async fn notify_all(n: u64) -> u64 {
    let bell = Arc::new(Notify::new());
    let woken = Arc::new(AtomicU64::new(0));
    latch_set(n as u32);
    for _ in 0..n {
        let (bell, woken) = (bell.clone(), woken.clone());
        tokio::spawn(async move {
            for _ in 0..C10_OPS / n {
                let notified = bell.notified(); // sees notify_waiters from here on
                latch_hit();
                notified.await;
            }
            woken.fetch_add(C10_OPS / n, Relaxed);
            latch_hit();
        });
    }
    latch_wait().await;
    for _ in 0..C10_OPS / n {
        latch_set(n as u32);
        bell.notify_waiters();
        latch_wait().await;
    }
    woken.load(Relaxed)
}
async fn notify_one(n: u64) -> u64 {
    let bell = Arc::new(Notify::new());
    let woken = Arc::new(AtomicU64::new(0));
    latch_set(n as u32);
    for _ in 0..n {
        let (bell, woken) = (bell.clone(), woken.clone());
        tokio::spawn(async move {
            latch_hit();
            for _ in 0..C10_OPS / n {
                bell.notified().await;
                bell.notify_one();
            }
            woken.fetch_add(C10_OPS / n, Relaxed);
            latch_hit();
        });
    }
    latch_wait().await;
    latch_set(n as u32);
    bell.notify_one();
    latch_wait().await;
    woken.load(Relaxed)
}
async fn broadcast_to(n: u64) -> u64 {
    let (tx, _) = broadcast::channel::<u64>(16);
    let rounds = C10_OPS / n;
    let total = Arc::new(AtomicU64::new(0));
    latch_set(n as u32);
    for _ in 0..n {
        let (mut rx, total) = (tx.subscribe(), total.clone());
        tokio::spawn(async move {
            let mut sum = 0;
            latch_hit();
            for _ in 0..rounds {
                sum += rx.recv().await.unwrap();
                latch_hit();
            }
            total.fetch_add(messages(rounds, sum), Relaxed);
            latch_hit();
        });
    }
    latch_wait().await;
    for i in 0..rounds {
        latch_set((n + if i + 1 == rounds { n } else { 0 }) as u32);
        tx.send(i).unwrap();
        latch_wait().await;
    }
    total.load(Relaxed)
}
async fn watch_by(n: u64) -> u64 {
    let (tx, rx) = watch::channel(0u64);
    let rounds = C10_OPS / n;
    let total = Arc::new(AtomicU64::new(0));
    latch_set(n as u32);
    for _ in 0..n {
        let (mut rx, total) = (rx.clone(), total.clone());
        tokio::spawn(async move {
            let mut sum = 0;
            latch_hit();
            for _ in 0..rounds {
                rx.changed().await.unwrap();
                sum += *rx.borrow_and_update();
                latch_hit();
            }
            total.fetch_add(messages(rounds, sum), Relaxed);
            latch_hit();
        });
    }
    latch_wait().await;
    for i in 0..rounds {
        latch_set((n + if i + 1 == rounds { n } else { 0 }) as u32);
        tx.send(i).unwrap();
        latch_wait().await;
    }
    total.load(Relaxed)
}

// ---- C4

fn fill(tx: &mpsc::Sender<u64>) {
    for i in 0..FULL {
        tx.try_send(i).unwrap();
    }
}
fn drain(rx: &mut mpsc::Receiver<u64>) -> u64 {
    let mut sum = 0;
    for _ in 0..FULL {
        sum += rx.try_recv().unwrap();
    }
    messages(FULL, sum)
}
fn chan_fill() -> u64 {
    let mut n = 0;
    for _ in 0..FILLS {
        let pause = Pause::new();
        let (tx, mut rx) = mpsc::channel(FULL as usize);
        drop(pause);
        fill(&tx);
        let _pause = Pause::new();
        n += drain(&mut rx);
        drop(rx);
    }
    n
}
fn chan_drain() -> u64 {
    let mut n = 0;
    for _ in 0..FILLS {
        let pause = Pause::new();
        let (tx, mut rx) = mpsc::channel(FULL as usize);
        fill(&tx);
        drop(pause);
        n += drain(&mut rx);
        let _pause = Pause::new();
        drop(rx);
    }
    n
}
fn chan_one() -> u64 {
    let (tx, mut rx) = mpsc::channel(1);
    let mut sum = 0;
    for i in 0..MILLION {
        tx.try_send(i).unwrap();
        sum += rx.try_recv().unwrap();
    }
    messages(MILLION, sum)
}
async fn fill_wait(tx: &mpsc::Sender<u64>) {
    for i in 0..FULL {
        tx.send(i).await.unwrap();
    }
}
async fn drain_wait(rx: &mut mpsc::Receiver<u64>) -> u64 {
    let mut sum = 0;
    for _ in 0..FULL {
        sum += rx.recv().await.unwrap();
    }
    messages(FULL, sum)
}
async fn halves(is_drain_timed: bool) -> u64 {
    let mut n = 0;
    for _ in 0..FILLS {
        let mut pause = Some(Pause::new());
        let (tx, mut rx) = mpsc::channel(FULL as usize);
        if !is_drain_timed {
            pause = None;
        }
        fill_wait(&tx).await;
        pause = if is_drain_timed {
            drop(pause);
            None
        } else {
            Some(Pause::new())
        };
        n += drain_wait(&mut rx).await;
        if is_drain_timed {
            pause = Some(Pause::new());
        }
        drop(rx);
        drop(pause);
    }
    n
}
async fn chan_one_wait() -> u64 {
    let (tx, mut rx) = mpsc::channel(1);
    let mut sum = 0;
    for i in 0..MILLION {
        tx.send(i).await.unwrap();
        sum += rx.recv().await.unwrap();
    }
    messages(MILLION, sum)
}

// ---- C5, C6

fn oneshot_try() -> u64 {
    let mut sum = 0;
    for i in 0..MILLION {
        let (tx, mut rx) = oneshot::channel::<u64>();
        tx.send(i).unwrap();
        sum += rx.try_recv().unwrap();
    }
    messages(MILLION, sum)
}
async fn oneshot_wait() -> u64 {
    let mut sum = 0;
    for i in 0..MILLION {
        let (tx, rx) = oneshot::channel::<u64>();
        tx.send(i).unwrap();
        sum += rx.await.unwrap();
    }
    messages(MILLION, sum)
}
async fn join() -> u64 {
    let mut sum = 0;
    for i in 0..MILLION {
        sum += tokio::spawn(async move { i }).await.unwrap();
    }
    messages(MILLION, sum)
}
fn broadcast_4() -> u64 {
    let mut n = 0;
    for _ in 0..FILLS {
        let pause = Pause::new();
        let (tx, first) = broadcast::channel(FULL as usize);
        let mut rxs = vec![first, tx.subscribe(), tx.subscribe(), tx.subscribe()];
        drop(pause);
        for i in 0..FULL {
            assert_eq!(tx.send(i).unwrap(), 4);
        }
        for rx in &mut rxs {
            let mut sum = 0;
            for _ in 0..FULL {
                sum += rx.try_recv().unwrap();
            }
            assert_eq!(sum, sum_below(FULL));
        }
        n += FULL;
        let _pause = Pause::new();
        drop(rxs);
        drop(tx);
    }
    n
}
fn watch_set_get() -> u64 {
    let (tx, rx) = watch::channel(0u64);
    let mut sum = 0;
    for i in 0..MILLION {
        tx.send(i).unwrap();
        sum += *rx.borrow();
    }
    messages(MILLION, sum)
}

// ---- C7

macro_rules! exchange {
    ($name:ident, $bounded:expr, $unbounded:expr, $send:ident, $recv:ident) => {
        async fn $name(n: u64, cap: usize, times: u64) -> u64 {
            let mut total = 0;
            for _ in 0..times {
                let (tx, rx) = if cap > 0 { $bounded(cap) } else { $unbounded() };
                let received = Arc::new(AtomicU64::new(0));
                let sum = Arc::new(AtomicU64::new(0));
                latch_set(8);
                for id in 0..4 {
                    let tx = tx.clone();
                    tokio::spawn(async move {
                        for i in 0..n / 4 {
                            tx.$send(id * (n / 4) + i).await.unwrap();
                        }
                        drop(tx);
                        latch_hit();
                    });
                }
                drop(tx);
                for _ in 0..4 {
                    let (rx, received, sum) = (rx.clone(), received.clone(), sum.clone());
                    tokio::spawn(async move {
                        let (mut mine, mut count) = (0, 0);
                        while let Ok(value) = rx.$recv().await {
                            mine += value;
                            count += 1;
                        }
                        received.fetch_add(count, Relaxed);
                        sum.fetch_add(mine, Relaxed);
                        latch_hit();
                    });
                }
                drop(rx);
                latch_wait().await;
                assert_eq!(sum.load(Relaxed), sum_below(n));
                total += received.load(Relaxed);
            }
            total
        }
    };
}
exchange!(exchange, async_channel::bounded::<u64>, async_channel::unbounded::<u64>, send, recv);
exchange!(exchange_kanal, kanal::bounded_async::<u64>, kanal::unbounded_async::<u64>, send, recv);
exchange!(exchange_flume, flume::bounded::<u64>, flume::unbounded::<u64>, send_async, recv_async);

// ---- C8

const C8_EACH: u64 = 1000;
const C8_ALL: u64 = 5 * C8_EACH;
const C8_TIMES: u64 = 200;
async fn collect(cap: usize, most: usize) -> u64 {
    let mut total = 0;
    let mut taken = Vec::with_capacity(C8_ALL as usize);
    for _ in 0..C8_TIMES {
        let (tx, mut rx) = mpsc::channel(cap);
        let (mut n, mut sum) = (0, 0);
        latch_set(5);
        for id in 0..5 {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..C8_EACH {
                    tx.send(id * C8_EACH + i).await.unwrap();
                }
                latch_hit();
            });
        }
        while n < C8_ALL {
            if most > 1 {
                n += rx.recv_many(&mut taken, most).await as u64;
                sum += taken.drain(..).sum::<u64>();
            } else {
                sum += rx.recv().await.unwrap();
                n += 1;
            }
        }
        total += messages(C8_ALL, sum);
        latch_wait().await;
    }
    total
}
async fn collect_unbounded() -> u64 {
    let mut total = 0;
    for _ in 0..C8_TIMES {
        let (tx, mut rx) = mpsc::unbounded_channel();
        let mut sum = 0;
        latch_set(5);
        for id in 0..5 {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..C8_EACH {
                    tx.send(id * C8_EACH + i).unwrap();
                }
                latch_hit();
            });
        }
        for _ in 0..C8_ALL {
            sum += rx.recv().await.unwrap();
        }
        total += messages(C8_ALL, sum);
        latch_wait().await;
    }
    total
}

// ---- main

macro_rules! row {
    ($id:expr, $what:expr, $ops:expr, $run:expr) => {
        Row::task($id, $what, $ops, || $run)
    };
}
fn rows(_: &Options) -> Vec<Row> {
    vec![
        row!("C1at", "Mutex: try_lock", MILLION, async { try_mutex() }),
        row!("C1aw", "Mutex: lock", MILLION, mutex()),
        row!("C1bt", "RwLock: try_read", MILLION, async { try_read() }),
        row!("C1bw", "RwLock: read", MILLION, read()),
        row!("C1ct", "RwLock: try_write", MILLION, async { try_write() }),
        row!("C1cw", "RwLock: write", MILLION, write()),
        row!("C1dt", "Semaphore: try_acquire", MILLION, async { try_sem() }),
        row!("C1dw", "Semaphore: acquire", MILLION, sem()),
        row!("C2a", "OnceCell: get", MILLION, async { once_get() }),
        row!("C2b", "OnceCell: new, set", MILLION, async { once_set() }),
        row!("C3a", "Notify: new, notify_one, notified", MILLION, notify()),
        row!("C3b", "Barrier of 1: new, wait", MILLION, barrier()),
        row!("C3c", "Barrier of 8 tasks: a round", MEETINGS, meetings()),
        row!("C4at", "mpsc: fill, try_send", FILLS * FULL, async { chan_fill() }),
        row!("C4aw", "mpsc: fill, send", FILLS * FULL, halves(false)),
        row!("C4bt", "mpsc: drain, try_recv", FILLS * FULL, async { chan_drain() }),
        row!("C4bw", "mpsc: drain, recv", FILLS * FULL, halves(true)),
        row!("C4ct", "mpsc of 1: try_send, try_recv", MILLION, async { chan_one() }),
        row!("C4cw", "mpsc of 1: send, recv", MILLION, chan_one_wait()),
        row!("C5at", "oneshot: new, send, try_recv", MILLION, async { oneshot_try() }),
        row!("C5aw", "oneshot: new, send, recv", MILLION, oneshot_wait()),
        row!("C5b", "task: spawn, join", MILLION, join()),
        row!("C6a", "broadcast: send, 4 try_recv", FILLS * FULL, async { broadcast_4() }),
        row!("C6b", "watch: send, borrow", MILLION, async { watch_set_get() }),
        row!("C7a", "4 to 4 tasks, 10k through 1000", MILLION, exchange(10_000, 1000, 100)),
        row!("C7b", "4 to 4 tasks, 1M through 1000", MILLION, exchange(MILLION, 1000, 1)),
        row!("C7c", "4 to 4 tasks, 1M through 1", MILLION, exchange(MILLION, 1, 1)),
        row!("C7d", "4 to 4 tasks, 1M, unbounded", MILLION, exchange(MILLION, 0, 1)),
        row!(
            "C7a:kanal",
            "4 to 4 tasks, 10k through 1000",
            MILLION,
            exchange_kanal(10_000, 1000, 100)
        ),
        row!(
            "C7b:kanal",
            "4 to 4 tasks, 1M through 1000",
            MILLION,
            exchange_kanal(MILLION, 1000, 1)
        ),
        row!("C7c:kanal", "4 to 4 tasks, 1M through 1", MILLION, exchange_kanal(MILLION, 1, 1)),
        row!("C7d:kanal", "4 to 4 tasks, 1M, unbounded", MILLION, exchange_kanal(MILLION, 0, 1)),
        row!("C7a:flume", "4 to 4 tasks, 10k through 1000", MILLION, {
            exchange_flume(10_000, 1000, 100)
        }),
        row!("C7b:flume", "4 to 4 tasks, 1M through 1000", MILLION, {
            exchange_flume(MILLION, 1000, 1)
        }),
        row!("C7c:flume", "4 to 4 tasks, 1M through 1", MILLION, exchange_flume(MILLION, 1, 1)),
        row!("C7d:flume", "4 to 4 tasks, 1M, unbounded", MILLION, exchange_flume(MILLION, 0, 1)),
        row!("C8a", "5 to 1 task through 1M", C8_TIMES * C8_ALL, collect(1_000_000, 1)),
        row!("C8b", "5 to 1 task through 100", C8_TIMES * C8_ALL, collect(100, 1)),
        row!(
            "C8c",
            "5 to 1 task through 1M, recv_many",
            C8_TIMES * C8_ALL,
            collect(1_000_000, 5000)
        ),
        row!("C8d", "5 to 1 task through 100, recv_many", C8_TIMES * C8_ALL, collect(100, 5000)),
        row!("C8e", "5 to 1 task, unbounded", C8_TIMES * C8_ALL, collect_unbounded()),
        row!("C9a", "Mutex, 4 tasks", C9_TIMES * C9_OPS, lockers(C9_TIMES, false)),
        row!("C9b", "RwLock, 4 readers, 2 writers", C9_TIMES * 6 * (C9_OPS / 6), readers_writers()),
        row!("C9c", "Semaphore of 2, 8 tasks", C9_TIMES * C9_OPS, acquirers()),
        row!(
            "C9d",
            "Mutex over a yield, 4 tasks",
            YIELD_TIMES * C9_OPS,
            lockers(YIELD_TIMES, true)
        ),
        row!("C9e", "the same", YIELD_TIMES * C9_OPS, lockers(YIELD_TIMES, true)),
        row!("C10a", "notify_waiters, 10 tasks: one woken", C10_OPS, notify_all(10)),
        row!("C10b", "notify_waiters, 500 tasks: one woken", C10_OPS, notify_all(500)),
        row!("C10c", "notify_one around 10 tasks", C10_OPS, notify_one(10)),
        row!("C10d", "notify_one around 500 tasks", C10_OPS, notify_one(500)),
        row!("C10e", "broadcast, 10 tasks: one woken", C10_OPS, broadcast_to(10)),
        row!("C10f", "broadcast, 1000 tasks: one woken", C10_OPS, broadcast_to(1000)),
        row!("C10g", "watch, 1000 tasks: one woken", C10_OPS, watch_by(1000)),
    ]
}

fn main() {
    let o = Options::parse();
    if o.wanted == ["C9w"] {
        let workers = o.workers;
        return runtime(&o).block_on(async { tokio::spawn(contests(workers)).await.unwrap() });
    }
    if o.wanted.iter().any(|id| id == "C9w") {
        die("C9w: alone");
    }
    run_rows(&o, rows);
}
