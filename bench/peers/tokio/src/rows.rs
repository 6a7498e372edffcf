// SPDX-License-Identifier: MIT OR 0BSD
// Rows: what they are, how they are measured and printed, and the command line.
use crate::{die, median, usage, Usage};
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

// ---- what does not count

static UNTIMED: [AtomicI64; 3] = [const { AtomicI64::new(0) }; 3]; // as in Stamp

/// Time and work while one lives do not count.
pub struct Pause(Stamp);
impl Pause {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Pause {
        Pause(Stamp::now())
    }
}
impl Drop for Pause {
    fn drop(&mut self) {
        for (sum, took) in UNTIMED.iter().zip(self.0.took()) {
            sum.fetch_add(took, Relaxed);
        }
    }
}

struct Stamp(Instant, Usage);
impl Stamp {
    fn now() -> Stamp {
        Stamp(Instant::now(), usage())
    }
    // Wall and CPU time in ns, voluntary context switches.
    fn took(&self) -> [i64; 3] {
        let (wall, now) = (self.0.elapsed(), usage());
        [wall.as_nanos() as i64, now.cpu - self.1.cpu, now.voluntary - self.1.voluntary]
    }
}

// ---- rows

/// Result of a repetition; wall replaces the measured time, in ns per operation.
pub struct Done {
    pub ops: u64,
    pub wall: Option<f64>,
}
impl From<u64> for Done {
    fn from(ops: u64) -> Done {
        Done { ops, wall: None }
    }
}

type Task = Pin<Box<dyn Future<Output = Done> + Send>>;
enum Run {
    Task(Box<dyn Fn() -> Task + Send + Sync>),
    Outside(Box<dyn Fn(&Handle) -> Done + Send + Sync>),
}

pub struct Row {
    id: &'static str,
    what: &'static str,
    ops: u64, // per repetition
    is_once: bool,
    run: Run,
}
impl Row {
    /// Runs in a task.
    pub fn task<F, D>(
        id: &'static str,
        what: &'static str,
        ops: u64,
        run: impl Fn() -> F + Copy + Send + Sync + 'static,
    ) -> Row
    where
        F: Future<Output = D> + Send + 'static,
        D: Into<Done>,
    {
        let run = Run::Task(Box::new(move || Box::pin(async move { run().await.into() })));
        Row { id, what, ops, is_once: false, run }
    }
    /// Runs in a thread that is no worker.
    pub fn outside<D: Into<Done>>(
        id: &'static str,
        what: &'static str,
        ops: u64,
        run: impl Fn(&Handle) -> D + Send + Sync + 'static,
    ) -> Row {
        let run = Run::Outside(Box::new(move |handle| run(handle).into()));
        Row { id, what, ops, is_once: false, run }
    }
    /// Without a repetition that warms up, and with one repetition by default.
    pub fn once(self) -> Row {
        Row { is_once: true, ..self }
    }
}

struct Measurement<'a> {
    row: &'a Row,
    figures: [Vec<f64>; 3], // per operation, as in Stamp
}
impl Measurement<'_> {
    fn start() -> Stamp {
        UNTIMED.iter().for_each(|sum| sum.store(0, Relaxed));
        Stamp::now()
    }
    fn stop(&mut self, from: Stamp, done: Done, is_warm: bool) {
        let took = from.took();
        let Row { id, ops, .. } = *self.row;
        if done.ops != ops {
            die(format!("{id}: operations were lost or done twice: {} of {ops}", done.ops));
        }
        if !is_warm {
            return;
        }
        for (k, figures) in self.figures.iter_mut().enumerate() {
            let per_op = (took[k] - UNTIMED[k].load(Relaxed)) as f64 / ops as f64;
            figures.push(done.wall.filter(|_| k == 0).unwrap_or(per_op));
        }
    }
    fn print(mut self, workers: usize) {
        let Row { id, what, ops, .. } = self.row;
        let n = self.figures[0].len();
        let [wall, cpu, wakes] = self.figures.each_mut().map(|v| median(v));
        let min = self.figures[0][0]; // sorted by now
        println!(
            "{id:<12} {workers:>7} {min:>10.2} {wall:>10.2} {cpu:>10.2} {wakes:>9.4} {ops:>10}  \
             {what}"
        );
        if std::env::var_os("BENCH_JSON").is_some() {
            println!(
                "{{\"row\":\"{id}\",\"workers\":{workers},\"wall_min_ns\":{min:.3},\
                 \"wall_median_ns\":{wall:.3},\"cpu_median_ns\":{cpu:.3},\
                 \"wakes_per_op\":{wakes:.6},\"ops\":{ops},\"repetitions\":{n}}}"
            );
        }
        let _ = std::io::stdout().flush();
    }
}

// The repetitions of a row, the first of which warms up.
fn repetitions(row: &Row, reps: Option<usize>) -> impl Iterator<Item = bool> {
    let n = reps.unwrap_or(if row.is_once { 1 } else { 9 });
    let first = usize::from(row.is_once);
    (first..=n).map(|i| i > 0)
}

async fn measure_task(row: Row, o: Options) {
    let Run::Task(run) = &row.run else { unreachable!() };
    let mut m = Measurement { row: &row, figures: Default::default() };
    for is_warm in repetitions(&row, o.reps) {
        let from = Measurement::start();
        let done = run().await;
        m.stop(from, done, is_warm);
    }
    m.print(o.workers);
}

fn measure_outside(row: &Row, o: &Options, handle: &Handle) {
    let Run::Outside(run) = &row.run else { unreachable!() };
    let mut m = Measurement { row, figures: Default::default() };
    for is_warm in repetitions(row, o.reps) {
        let from = Measurement::start();
        let done = run(handle);
        m.stop(from, done, is_warm);
    }
    m.print(o.workers);
}

fn measure(row: Row, o: &Options) {
    let rt = runtime(o);
    if let Run::Task(_) = row.run {
        let o = o.clone();
        return rt.block_on(async { tokio::spawn(measure_task(row, o)).await.unwrap() });
    }
    let handle = rt.handle().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let host = thread::spawn(move || drop(rt.block_on(stopped))); // drives the runtime of ct
    measure_outside(&row, o, &handle);
    drop(stop);
    host.join().unwrap();
}

/// Those that are asked for.
pub fn run_rows(o: &Options, rows: fn(&Options) -> Vec<Row>) {
    let mut rows = rows(o);
    if o.is_list {
        return rows.iter().for_each(|row| println!("{}", row.id));
    }
    if let Some(id) = o.wanted.iter().find(|id| !rows.iter().any(|row| row.id == *id)) {
        die(format!("no such row: {id}"));
    }
    rows.retain(|row| o.wanted.is_empty() || o.wanted.iter().any(|id| id == row.id));
    println!(
        "{:<12} {:>7} {:>10} {:>10} {:>10} {:>9} {:>10}  operation",
        "row", "workers", "min ns", "median", "cpu", "wakes", "ops"
    );
    for row in rows {
        measure(row, o);
    }
}

// ---- command line

#[derive(Clone)]
pub struct Options {
    pub workers: usize,
    pub is_ct: bool,
    reps: Option<usize>,
    is_list: bool,
    pub wanted: Vec<String>, // none: all
}

fn number(name: &str, text: Option<String>, max: usize) -> usize {
    match text.and_then(|t| t.parse().ok()) {
        Some(n) if (1..=max).contains(&n) => n,
        _ => die(format!("{name}: a number from 1 to {max}")),
    }
}

impl Options {
    pub fn new(workers: usize) -> Options {
        Options { workers, is_ct: false, reps: None, is_list: false, wanted: Vec::new() }
    }
    pub fn parse() -> Options {
        let mut o = Options::new(1);
        let mut args = std::env::args().skip(1);
        while let Some(a) = args.next() {
            match a.as_str() {
                "--workers" => o.workers = number(&a, args.next(), 64),
                "--reps" => o.reps = Some(number(&a, args.next(), 99)),
                "--list" => o.is_list = true,
                "--flavor" => match args.next().as_deref() {
                    Some("mt") => o.is_ct = false,
                    Some("ct") => o.is_ct = true,
                    _ => die("--flavor: mt or ct"),
                },
                _ if a.starts_with('-') => {
                    die(format!("unknown option {a}; there are: --workers --reps --flavor --list"))
                }
                _ => o.wanted.push(a),
            }
        }
        if o.is_ct && o.workers > 1 {
            die("--flavor ct: has one worker");
        }
        o
    }
}

/// With descriptors and timers, which volt.h has, too.
pub fn runtime(o: &Options) -> Runtime {
    let mut b = if o.is_ct { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    #[cfg(tokio_unstable)]
    if o.is_ct {
        die("--flavor ct: the alternative timer is for the runtime of several threads");
    } else {
        b.enable_alt_timer();
    }
    b.worker_threads(o.workers).enable_all().build().unwrap()
}
