// SPDX-License-Identifier: MIT OR 0BSD
//! Idle connections without a buffer, and relays.
use crate::{BYTES, REQUESTS};
use std::io::{ErrorKind, Result};
use std::sync::atomic::Ordering::Relaxed;
use tokio::io::{copy_bidirectional_with_sizes, AsyncWriteExt};
use tokio::net::TcpStream;

const SHARED: usize = 65536;

/// Sends back the bytes that are there, by a buffer on the stack. Gives their number, and those
/// that the socket did not take.
fn answer(stream: &TcpStream) -> Result<(usize, Vec<u8>)> {
    let mut buffer = [0; SHARED];
    let n = stream.try_read(&mut buffer)?;
    let sent = match stream.try_write(&buffer[..n]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        other => other?,
    };
    Ok((n, buffer[sent..n].to_vec()))
}

pub async fn idle(mut stream: TcpStream) -> Result<()> {
    loop {
        stream.readable().await?;
        let (n, rest) = match answer(&stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            other => other?,
        };
        if n == 0 {
            return Ok(());
        }
        REQUESTS.fetch_add(1, Relaxed);
        BYTES.fetch_add(n as u64, Relaxed);
        if !rest.is_empty() {
            stream.write_all(&rest).await?;
        }
    }
}

/// Tokio has no splice.
pub async fn relay(mut client: TcpStream, port: u16) -> Result<()> {
    let mut backend = TcpStream::connect(("127.0.0.1", port)).await?;
    backend.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut client, &mut backend, SHARED, SHARED).await?;
    Ok(())
}
