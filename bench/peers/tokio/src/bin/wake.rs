// SPDX-License-Identifier: MIT OR 0BSD
//! The cost, to a thread that is no worker, of waking a task, by Tokio.
//!
//!   N7a  a thread wakes a task a million times and waits only in the end, parked, until the task
//!        has seen the last number
//!   N7b  20,000 times: wakes, and waits, parked, for the answer
//!
//! By a Notify, which is what one would write and for many wakes a little quicker; N7a:waker and
//! N7b:waker by the Waker of the task. Both coalesce: the number, which only grows, is stored
//! beside it. For options and columns see src/lib.rs.
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_peer::{run_rows, tally_add, Bell, By, Options, Row, Since};

const MANY: u64 = 1_000_000;
const FEW: u64 = 20_000;

// Answers each of the numbers that it is to answer, and counts what it has heard by then.
async fn listener(bell: Arc<Bell>, step: u64, n: u64) {
    let (mut seen, mut answered) = (0, 0);
    while answered < n {
        seen = bell.heard(seen).await;
        if seen == answered + step {
            tally_add(seen - answered);
            answered = seen;
            bell.answer_parked(answered);
        }
    }
}

// Waits for the answer after each `step` wakes.
fn wakes(h: &Handle, by: By, step: u64, n: u64) -> u64 {
    let since = Since::now();
    let bell = Arc::new(Bell::new(by));
    let task = h.spawn(listener(bell.clone(), step, n));
    bell.wait_for_task();
    for i in 1..=n {
        bell.ring(i);
        if i % step == 0 {
            bell.wait_parked(i);
        }
    }
    h.block_on(task).unwrap();
    since.ops()
}

fn rows(_: &Options) -> Vec<Row> {
    let row =
        |id, what, ops, by, step| Row::outside(id, what, ops, move |h| wakes(h, by, step, ops));
    vec![
        row("N7a", "wakes from a thread by notify_one", MANY, By::Notify, MANY),
        row("N7b", "wake by notify_one, and its answer", FEW, By::Notify, 1),
        row("N7a:waker", "wakes from a thread by the Waker", MANY, By::Waker, MANY),
        row("N7b:waker", "wake by the Waker, and its answer", FEW, By::Waker, 1),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
