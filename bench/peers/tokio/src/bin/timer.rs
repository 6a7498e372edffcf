// SPDX-License-Identifier: MIT OR 0BSD
//! The costs of timers, by Tokio; built with tokio_unstable: by its alternative timer.
//!
//!   T1a  timeout(1 s) over a future that is ready at once
//!   T1b  a Sleep of 1 s polled once, which arms it, and dropped
//!   T1c  timeout(1 s) over yield_now; T1 by 100 tasks, 10,000 operations each
//!   T2   a million tasks sleep for 10 s, once: wall is what it takes beyond these, per task
//!   T3a  one task arms a million Sleeps, which fire within 999 ms and are dropped; their Waker
//!        counts, and wakes the task at the last
//!   T3b  one task resets any of a million Sleeps that are armed for one to two hours, a million
//!        times; an earlier deadline goes through the driver, a later one is only noted. Tokio has
//!        no reset that the driver does not learn of. The alternative timer forgets the Waker: a
//!        poll follows
//!   T4   1000 tasks sleep for a 100 us, b 1 ms, c 15 ms, 50 times each (c: 20): p99 of how late
//!        they run, in ns
//!   T5a, T5b  as T3a and T3b by the DelayQueue of tokio-util, which keeps all of them behind one
//!        Sleep
//!
//! Tokio's timers are of whole ms, rounded up. For options and columns see src/lib.rs.
use std::future::{poll_fn, Future};
use std::hint::black_box;
use std::pin::{pin, Pin};
use std::ptr::null;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};
use tokio::task::{unconstrained, yield_now};
use tokio::time::{sleep, sleep_until, timeout, Sleep};
use tokio_peer::{
    latch_hit, latch_set, latch_wait, percentile, run_rows, tally_add, Done, Options, Pause, Row,
    Since,
};
use tokio_util::time::DelayQueue;

const MILLION: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

// ---- T1

#[inline(never)]
async fn ready_at_once() -> u32 {
    black_box(1)
}
async fn timeout_ready() -> bool {
    timeout(SECOND, ready_at_once()).await == Ok(1)
}
async fn sleep_dropped() -> bool {
    let mut sleep = pin!(sleep(SECOND));
    poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await
}
async fn timeout_yield() -> bool {
    timeout(SECOND, yield_now()).await.is_ok()
}

async fn by_100_tasks<F>(op: fn() -> F) -> u64
where
    F: Future<Output = bool> + Send + 'static,
{
    let since = Since::now();
    latch_set(100);
    for _ in 0..100 {
        tokio::spawn(async move {
            let mut n_good = 0;
            for _ in 0..10_000 {
                n_good += u64::from(op().await);
            }
            tally_add(n_good);
            latch_hit();
        });
    }
    latch_wait().await;
    since.ops()
}

// ---- T2

async fn million_sleepers() -> Done {
    const LONG: Duration = Duration::from_secs(10);
    let since = Since::now();
    let start = Instant::now();
    latch_set(MILLION as u32);
    for _ in 0..MILLION {
        tokio::spawn(async {
            sleep(LONG).await;
            tally_add(1);
            latch_hit();
        });
    }
    latch_wait().await;
    let beyond = start.elapsed().checked_sub(LONG).expect("a sleep ended early");
    Done { ops: since.ops(), wall: Some(beyond.as_nanos() as f64 / MILLION as f64) }
}

// ---- T3

struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn up_to(&mut self, d: Duration) -> Duration {
        Duration::from_nanos(self.next() % d.as_nanos() as u64)
    }
    fn index(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}
const SEED: u64 = 0x9e3779b97f4a7c15;
const SPREAD: Duration = Duration::from_millis(999);

// A Waker that needs no memory.
const COUNTER: RawWakerVTable = RawWakerVTable::new(|_| counter(), count, count, |_| ());
const fn counter() -> RawWaker {
    RawWaker::new(null(), &COUNTER)
}
fn count(_: *const ()) {
    tally_add(1);
    latch_hit();
}

async fn fire() -> u64 {
    let since = Since::now();
    let (mut random, start) = (Random(SEED), Instant::now());
    let mut sleeps = Vec::with_capacity(MILLION as usize);
    latch_set(MILLION as u32);
    for _ in 0..MILLION {
        let mut sleep = Box::pin(sleep_until((start + random.up_to(SPREAD)).into()));
        let waker = unsafe { Waker::from_raw(counter()) }; // does nothing but count
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            count(null()); // too late to arm
        }
        sleeps.push(sleep);
    }
    latch_wait().await;
    let now = Instant::now();
    assert!(sleeps.iter().all(|s| s.deadline().into_std() <= now), "a timer fired early");
    drop(sleeps);
    since.ops()
}

async fn fire_queue() -> u64 {
    let (mut random, start) = (Random(SEED), Instant::now());
    let mut queue = DelayQueue::with_capacity(MILLION as usize);
    for i in 0..MILLION {
        queue.insert_at(i, (start + random.up_to(SPREAD)).into());
    }
    let (mut n, mut sum) = (0, 0);
    while let Some(expired) = poll_fn(|cx| queue.poll_expired(cx)).await {
        sum += expired.into_inner();
        n += 1;
    }
    assert!(start.elapsed() >= SPREAD - Duration::from_millis(1), "a timer fired early");
    assert_eq!(sum, MILLION * (MILLION - 1) / 2);
    n
}

fn poll_once(sleep: &mut Pin<Box<Sleep>>) {
    let is_armed = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(is_armed, "a timer fired early");
}

async fn rearm() -> u64 {
    let pause = Pause::new();
    let (mut random, start) = (Random(SEED), tokio::time::Instant::now());
    let mut armed = || start + HOUR + random.up_to(HOUR);
    let mut sleeps: Vec<_> = (0..MILLION).map(|_| Box::pin(sleep_until(armed()))).collect();
    sleeps.iter_mut().for_each(poll_once);
    let offset = |s: &Pin<Box<Sleep>>| (s.deadline() - start).as_nanos() as i128;
    let before: i128 = sleeps.iter().map(offset).sum();
    let (mut n, mut change, mut which) = (0, 0, Random(SEED));
    drop(pause);
    for _ in 0..MILLION {
        let (sleep, deadline) = (&mut sleeps[which.index(MILLION)], armed());
        change += (deadline - start).as_nanos() as i128 - offset(sleep);
        sleep.as_mut().reset(deadline);
        if cfg!(tokio_unstable) {
            poll_once(sleep);
        }
        n += 1;
    }
    let _pause = Pause::new();
    assert_eq!(sleeps.iter().map(offset).sum::<i128>(), before + change, "a reset was lost");
    assert!(!sleeps.iter().any(|s| s.is_elapsed()), "a timer fired early");
    drop(sleeps);
    n
}

async fn rearm_queue() -> u64 {
    let pause = Pause::new();
    let (mut random, start) = (Random(SEED), tokio::time::Instant::now());
    let mut armed = || start + HOUR + random.up_to(HOUR);
    let mut queue = DelayQueue::with_capacity(MILLION as usize);
    let keys: Vec<_> = (0..MILLION).map(|i| queue.insert_at(i, armed())).collect();
    let is_armed = poll_fn(|cx| Poll::Ready(queue.poll_expired(cx).is_pending())).await;
    assert!(is_armed);
    let mut last = vec![start; MILLION as usize];
    let (mut n, mut which) = (0, Random(SEED));
    drop(pause);
    for _ in 0..MILLION {
        let (k, deadline) = (which.index(MILLION), armed());
        queue.reset_at(&keys[k], deadline);
        last[k] = deadline;
        n += 1;
    }
    let _pause = Pause::new();
    let ms = Duration::from_millis(2); // to which the queue rounds
    for (key, deadline) in keys.iter().zip(last).filter(|(_, deadline)| *deadline > start) {
        let is_set = queue.deadline(key).duration_since(deadline) < ms;
        assert!(is_set && queue.deadline(key) + ms > deadline, "a reset was lost");
    }
    drop(queue);
    n
}

// ---- T4

async fn late(d: Duration, times: u64) -> Vec<i64> {
    let mut late = Vec::with_capacity(times as usize);
    for _ in 0..times {
        let due = Instant::now() + d;
        sleep_until(due.into()).await;
        let now = Instant::now();
        assert!(now >= due, "a sleep ended early");
        late.push((now - due).as_nanos() as i64);
    }
    late
}
async fn lateness(d: Duration, times: u64) -> Done {
    let tasks: Vec<_> = (0..1000).map(|_| tokio::spawn(late(d, times))).collect();
    let mut all = Vec::with_capacity(1000 * times as usize);
    for task in tasks {
        all.append(&mut task.await.unwrap());
    }
    let _pause = Pause::new();
    Done { ops: all.len() as u64, wall: Some(percentile(&mut all, 0.99) as f64) }
}

fn rows(_: &Options) -> Vec<Row> {
    let late_by = |id, what, times, us| {
        Row::task(id, what, 1000 * times, move || lateness(Duration::from_micros(us), times))
    };
    vec![
        Row::task("T1a", "timeout over a ready future", MILLION, || by_100_tasks(timeout_ready)),
        Row::task("T1b", "sleep polled once and dropped", MILLION, || by_100_tasks(sleep_dropped)),
        Row::task("T1c", "timeout over yield_now", MILLION, || by_100_tasks(timeout_yield)),
        Row::task("T2", "1,000,000 tasks sleep for 10 s", MILLION, million_sleepers).once(),
        // Unconstrained: polls beyond a task's budget would not arm.
        Row::task("T3a", "Sleep armed, fired, dropped", MILLION, || unconstrained(fire())),
        Row::task("T3b", "reset of one of 1,000,000 Sleeps", MILLION, || unconstrained(rearm())),
        Row::task("T5a", "DelayQueue: insert, poll", MILLION, || unconstrained(fire_queue())),
        Row::task("T5b", "DelayQueue of 1,000,000: reset", MILLION, rearm_queue),
        late_by("T4a", "1000 tasks sleep for 100 us: p99 late", 50, 100),
        late_by("T4b", "1000 tasks sleep for 1 ms: p99 late", 50, 1000),
        late_by("T4c", "1000 tasks sleep for 15 ms: p99 late", 20, 15_000),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
