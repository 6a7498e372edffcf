// SPDX-License-Identifier: MIT OR 0BSD
//! File rows by Tokio: see bench/rows/files.h for the file.
//!
//!   F1   seek and read_exact of 4 KiB by tokio::fs at random offsets, 20,000 times
//!   F2   of 64 KiB, 4,000 times
//!   F1:pread, F2:pread   read_exact_at of the standard library in spawn_blocking, which moves file
//!        and buffer there and back
//!
//! For options and columns see src/lib.rs.
use std::fs::{remove_file, File};
use std::io::{SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::task::spawn_blocking;
use tokio_peer::{run_rows, tally_add, Options, Row, Since};

const PAGE: usize = 4096;
const PAGES: u64 = 4096;
const PART: usize = 65536;
const F1: u64 = 20_000;
const F2: u64 = 4_000;

fn open() -> File {
    let name = format!("/var/tmp/bench-files.{}", std::process::id());
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).open(&name).unwrap();
    remove_file(name).unwrap();
    let mut page = [0; PAGE];
    for i in 0..PAGES {
        page[..8].copy_from_slice(&i.to_ne_bytes());
        file.write_all(&page).unwrap();
    }
    file
}

fn next(len: usize) -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    let state = STATE.load(Relaxed).wrapping_mul(6364136223846793005);
    let state = state.wrapping_add(1442695040888963407);
    STATE.store(state, Relaxed);
    let pages = (len / PAGE) as u64;
    (state >> 33) % (PAGES / pages) * pages
}

fn is_right(buffer: &[u8], page: u64) -> u64 {
    u64::from(buffer.first_chunk() == Some(&page.to_ne_bytes()))
}

async fn by_fs(len: usize, times: u64) -> u64 {
    let since = Since::now();
    let mut file = tokio::fs::File::from_std(open());
    let mut buffer = vec![0; len];
    file.set_max_buf_size(len);
    for _ in 0..times {
        let page = next(len);
        file.seek(SeekFrom::Start(page * PAGE as u64)).await.unwrap();
        file.read_exact(&mut buffer).await.unwrap();
        tally_add(is_right(&buffer, page));
    }
    since.ops()
}

async fn by_pread(len: usize, times: u64) -> u64 {
    let since = Since::now();
    let mut moved = (open(), vec![0; len]);
    for _ in 0..times {
        let page = next(len);
        let read = move || {
            let (file, mut buffer) = moved;
            file.read_exact_at(&mut buffer, page * PAGE as u64).unwrap();
            (file, buffer)
        };
        moved = spawn_blocking(read).await.unwrap();
        tally_add(is_right(&moved.1, page));
    }
    since.ops()
}

fn rows(_: &Options) -> Vec<Row> {
    vec![
        Row::task("F1", "seek, read_exact of 4 KiB", F1, || by_fs(PAGE, F1)),
        Row::task("F2", "seek, read_exact of 64 KiB", F2, || by_fs(PART, F2)),
        Row::task("F1:pread", "pread of 4 KiB, spawn_blocking", F1, || by_pread(PAGE, F1)),
        Row::task("F2:pread", "pread of 64 KiB, spawn_blocking", F2, || by_pread(PART, F2)),
    ]
}

fn main() {
    run_rows(&Options::parse(), rows);
}
