// SPDX-License-Identifier: MIT OR 0BSD
//! Process rows by tokio::process.
//!
//!   P1   status() of true(1), 100 times
//!   P2   by 8 tasks, 25 times each
//!
//! For options and columns see src/lib.rs.
use tokio::process::Command;
use tokio_peer::{run_rows, tally_add, Options, Row, Since};

const ONE_BY_ONE: u64 = 100;
const AT_ONCE: u64 = 8;
const EACH: u64 = 25;

async fn start(times: u64) {
    for _ in 0..times {
        let status = Command::new("/bin/true").status().await.unwrap();
        tally_add(u64::from(status.success()));
    }
}

async fn one() -> u64 {
    let since = Since::now();
    start(ONE_BY_ONE).await;
    since.ops()
}

async fn several() -> u64 {
    let since = Since::now();
    let tasks: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(start(EACH))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    since.ops()
}

fn rows(_: &Options) -> Vec<Row> {
    vec![
        Row::task("P1", "true(1), one at a time", ONE_BY_ONE, one),
        Row::task("P2", "true(1), 8 at a time", AT_ONCE * EACH, several),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
