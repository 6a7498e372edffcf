// SPDX-License-Identifier: MIT OR 0BSD
// A thread wakes one task, by the task's Waker or by a Notify, and sees when it has answered.
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use std::sync::OnceLock;
use std::task::{Poll, Waker};
use std::thread::{self, Thread};
use tokio::sync::Notify;

#[derive(Clone, Copy)]
pub enum By {
    Waker,
    Notify,
}

pub struct Bell {
    by: By,
    rung: AtomicU64,        // numbers that grow
    waker: OnceLock<Waker>, // a task of Tokio has the same one all its life
    notify: Notify,
    thread: Thread,
    answered: AtomicU64,
    answered_at: AtomicI64,
}

impl Bell {
    /// Belongs to this thread.
    pub fn new(by: By) -> Bell {
        Bell {
            by,
            rung: AtomicU64::new(0),
            waker: OnceLock::new(),
            notify: Notify::new(),
            thread: thread::current(),
            answered: AtomicU64::new(0),
            answered_at: AtomicI64::new(0),
        }
    }

    // ---- the thread

    /// Once the task has looked for the first time.
    pub fn wait_for_task(&self) {
        while self.waker.get().is_none() {
            thread::yield_now();
        }
    }
    pub fn ring(&self, n: u64) {
        self.rung.store(n, Release); // the wake synchronizes with the poll that it leads to
        match self.by {
            By::Waker => self.waker.get().unwrap().wake_by_ref(),
            By::Notify => self.notify.notify_one(),
        }
    }
    /// Stays on its CPU, unless another thread wants it; gives the time of the answer.
    pub fn wait_busily(&self, n: u64) -> i64 {
        let mut looks = 0;
        while self.answered.load(Acquire) < n {
            looks += 1;
            if looks == 64 {
                looks = 0;
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
        self.answered_at.load(Relaxed)
    }
    pub fn wait_parked(&self, n: u64) {
        while self.answered.load(Acquire) < n {
            thread::park();
        }
    }

    // ---- the task

    /// The last number, which is beyond the one already seen.
    pub async fn heard(&self, seen: u64) -> u64 {
        self.introduce().await;
        match self.by {
            By::Waker => poll_fn(|_| self.newer(seen).map_or(Poll::Pending, Poll::Ready)).await,
            By::Notify => loop {
                if let Some(n) = self.newer(seen) {
                    return n;
                }
                self.notify.notified().await;
            },
        }
    }
    async fn introduce(&self) {
        if self.waker.get().is_none() {
            let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            let _ = self.waker.set(waker);
        }
    }
    fn newer(&self, seen: u64) -> Option<u64> {
        Some(self.rung.load(Acquire)).filter(|&n| n > seen)
    }
    pub fn answer(&self, n: u64, at: i64) {
        self.answered_at.store(at, Relaxed);
        self.answered.store(n, Release);
    }
    pub fn answer_parked(&self, n: u64) {
        self.answered.store(n, Release);
        self.thread.unpark();
    }
}
