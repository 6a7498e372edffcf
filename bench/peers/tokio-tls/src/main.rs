// SPDX-License-Identifier: MIT OR 0BSD
//! The server of bench/tls/tls_server.c by Tokio and rustls, with the cryptography of aws-lc: a
//! task for each connection, and the scheduler of one thread.
//!
//!   tokio-tls CHAIN KEY [SECONDS]
//!
//! All else, and what it prints at its end, is as there.
use std::io::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{signal, SignalKind};
use tokio_rustls::rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BUFFER: usize = 16384;

static REQUESTS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

async fn serve(acceptor: TlsAcceptor, socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut stream = acceptor.accept(socket).await?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return stream.shutdown().await;
        }
        stream.write_all(&buffer[..n]).await?;
        stream.flush().await?;
        REQUESTS.fetch_add(1, Relaxed);
        BYTES.fetch_add(n as u64, Relaxed);
    }
}

fn report() -> Result<()> {
    let mut u = unsafe { std::mem::zeroed::<libc::rusage>() };
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) } < 0 {
        return Err(Error::last_os_error());
    }
    let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    println!("requests {}\nbytes {}", REQUESTS.load(Relaxed), BYTES.load(Relaxed));
    println!("cpu_us {}\nwakes {}", us(u.ru_utime) + us(u.ru_stime), u.ru_nvcsw);
    Ok(())
}

async fn run(config: ServerConfig) -> Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut term = signal(SignalKind::terminate())?;
    println!("port {}", listener.local_addr()?.port());
    loop {
        tokio::select! {
            came = listener.accept() => {
                let acceptor = acceptor.clone();
                tokio::spawn(serve(acceptor, came?.0));
            }
            _ = term.recv() => return report(),
        }
    }
}

fn config(chain: &str, key: &str) -> Result<ServerConfig> {
    let pem = |e| Error::other(format!("{e:?}"));
    let chain = CertificateDer::pem_file_iter(chain).map_err(pem)?;
    let chain = chain.collect::<std::result::Result<Vec<_>, _>>().map_err(pem)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(pem)?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    config.map_err(Error::other)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 3 || args.len() > 4 {
        return Err(Error::other("usage: tokio-tls CHAIN KEY [SECONDS]"));
    }
    let seconds = args.get(3).map_or(Ok(300), |s| s.parse()).map_err(Error::other)?;
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        std::process::exit(2)
    });
    let config = config(&args[1], &args[2])?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(config))
}
