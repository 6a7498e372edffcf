// SPDX-License-Identifier: MIT OR 0BSD
//! The server of bench/servers/net_server.c by Tokio, and for http by hyper: a task for each
//! connection.
//!
//!   tokio-net MODE WORKERS [SECONDS [PORT]]     all modes but liar
//!   tokio-net --version
//!
//! WORKERS 0: the scheduler of one thread, which has no other workers to think of. All else, and
//! what it prints at its end, is as there. resp has a parser and a table of its own, see resp.rs.
mod datagrams;
mod idle;
mod resp;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{signal, SignalKind};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BUFFER: usize = 4096;
const BACKLOG: u32 = 1024; // as the others; by default 128, which the clients of N8 overflow
const MODES: &str = "echo http resp idle relay udp udp-many udp-send udp-receive";

// ---- figures

static REQUESTS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Counts for one task, which alone writes to it; adds up when that ends.
#[derive(Default)]
struct Count {
    requests: AtomicU64,
    bytes: AtomicU64,
}
impl Count {
    fn add(&self, requests: usize, bytes: usize) {
        let add = |to: &AtomicU64, n: usize| to.store(to.load(Relaxed) + n as u64, Relaxed);
        add(&self.requests, requests);
        add(&self.bytes, bytes);
    }
}
impl Drop for Count {
    fn drop(&mut self) {
        REQUESTS.fetch_add(self.requests.load(Relaxed), Relaxed);
        BYTES.fetch_add(self.bytes.load(Relaxed), Relaxed);
    }
}

fn usage() -> libc::rusage {
    let mut u = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) };
    u
}

fn cpu_us(u: &libc::rusage) -> i64 {
    let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    us(u.ru_utime) + us(u.ru_stime)
}

// ---- services

async fn echo(mut stream: TcpStream) -> Result<()> {
    let count = Count::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
        count.add(1, n);
    }
}

async fn resp(mut stream: TcpStream) -> Result<()> {
    let count = Count::default();
    let (mut input, mut output) = (vec![0; BUFFER], Vec::with_capacity(BUFFER));
    let mut have = 0;
    loop {
        let n = stream.read(&mut input[have..]).await?;
        if n == 0 {
            return Ok(());
        }
        have += n;
        output.clear();
        let (used, requests) = resp::answer_all(&input[..have], &mut output)?;
        stream.write_all(&output).await?;
        count.add(requests, output.len());
        input.copy_within(used..have, 0);
        have -= used;
    }
}

/// Without the Date that the others do not send either.
async fn http(stream: TcpStream) -> Result<()> {
    const HELLO: &[u8] = b"Hello, World!";
    let count = Count::default();
    let service = service_fn(|_: Request<Incoming>| {
        count.add(1, HELLO.len());
        let mut response = Response::new(Full::new(Bytes::from_static(HELLO)));
        let kind = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let mut builder = http1::Builder::new();
    builder.pipeline_flush(true).auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    connection.await.map_err(std::io::Error::other)
}

// ---- program

async fn accept(listener: TcpListener, mode: String, port: u16) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        match mode.as_str() {
            "echo" => tokio::spawn(echo(stream)),
            "http" => tokio::spawn(http(stream)),
            "idle" => tokio::spawn(idle::idle(stream)),
            "relay" => tokio::spawn(idle::relay(stream, port)),
            _ => tokio::spawn(resp(stream)),
        };
    }
}

fn report_port(at: SocketAddr) {
    println!("port {}", at.port());
}

/// Serves in a task, since block_on's thread is no worker, until the signal comes.
async fn serve(mode: String, port: u16) -> Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    if mode.starts_with("udp") {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        report_port(socket.local_addr()?);
        match mode.as_str() {
            "udp-many" => tokio::spawn(datagrams::many(socket)),
            "udp-send" => tokio::spawn(datagrams::send_bursts(socket)),
            "udp-receive" => tokio::spawn(datagrams::receive_bursts(socket)),
            _ => tokio::spawn(datagrams::singly(socket)),
        };
    } else {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(BACKLOG)?;
        report_port(listener.local_addr()?);
        tokio::spawn(accept(listener, mode, port));
    }
    term.recv().await;
    Ok(())
}

fn runtime(workers: usize) -> Result<Runtime> {
    match workers {
        0 => Builder::new_current_thread().enable_all().build(),
        n => Builder::new_multi_thread()
            .worker_threads(n)
            .enable_all()
            .build(),
    }
}

/// Of a crate, as Cargo.lock has it.
fn version(of: &str) -> &'static str {
    let name = format!("name = \"{of}\"\nversion = \"");
    let rest = include_str!("../Cargo.lock").split_once(&name);
    rest.map_or("?", |(_, rest)| rest.split('"').next().unwrap_or("?"))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args.len() == 2 && args[1] == "--version" {
        let [tokio, hyper, quinn] = ["tokio", "hyper", "quinn-udp"].map(version);
        println!("Tokio {tokio}, hyper {hyper}, quinn-udp {quinn}");
        return Ok(());
    }
    let number = |i: usize| {
        args.get(i)
            .and_then(|text: &String| text.parse::<u32>().ok())
    };
    let mode = args.get(1).map_or("", String::as_str);
    let (Some(workers), true) = (number(2), MODES.split(' ').any(|m| m == mode)) else {
        eprintln!("usage: tokio-net MODE WORKERS [SECONDS [PORT]]");
        std::process::exit(2);
    };
    unsafe { libc::alarm(number(3).unwrap_or(300)) };
    let runtime = runtime(workers as usize)?;
    let start = cpu_us(&usage());
    let port = number(4).map_or(0, |n| n as u16);
    runtime.block_on(serve(mode.to_string(), port))?;
    drop(runtime); // every task has ended, and has added up
    let u = usage();
    println!(
        "requests {}\nbytes {}",
        REQUESTS.load(Relaxed),
        BYTES.load(Relaxed)
    );
    println!("cpu_us {}\nwakes {}", cpu_us(&u) - start, u.ru_nvcsw);
    Ok(())
}
