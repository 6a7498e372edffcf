// SPDX-License-Identifier: MIT OR 0BSD
//! Datagrams: one for each system call, many for each, and bursts as bench/servers/bursts.h has
//! them. Tokio has calls for one; many are by recvmmsg and sendmmsg in its async_io, bursts by
//! quinn-udp.
use crate::Count;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::{Error, IoSliceMut, Result};
use std::os::fd::{AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::net::UdpSocket;

const DATAGRAMS: usize = 32;
const DATAGRAM: usize = 1200;
const BURST: usize = DATAGRAMS * DATAGRAM;
const ROOM: usize = 1500;
const BUFFERS: libc::c_int = 1 << 20;

pub async fn singly(socket: UdpSocket) -> Result<()> {
    let count = Count::default();
    let mut buffer = vec![0; ROOM];
    loop {
        let (n, from) = socket.recv_from(&mut buffer).await?;
        socket.send_to(&buffer[..n], from).await?;
        count.add(1, n);
    }
}

/// The arguments of recvmmsg and sendmmsg, which point to each other.
struct Batch {
    messages: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    from: Vec<libc::sockaddr_in>,
    buffers: Vec<[u8; ROOM]>,
}
unsafe impl Send for Batch {}
unsafe impl Sync for Batch {}
impl Batch {
    fn new() -> Batch {
        let mut b = Batch {
            messages: vec![unsafe { std::mem::zeroed() }; DATAGRAMS],
            parts: vec![unsafe { std::mem::zeroed() }; DATAGRAMS],
            from: vec![unsafe { std::mem::zeroed() }; DATAGRAMS],
            buffers: vec![[0; ROOM]; DATAGRAMS],
        };
        b.clear(DATAGRAMS);
        b
    }
    fn clear(&mut self, n: usize) {
        for i in 0..n {
            self.parts[i].iov_base = self.buffers[i].as_mut_ptr().cast();
            self.parts[i].iov_len = ROOM;
            let head = &mut self.messages[i].msg_hdr;
            head.msg_name = (&raw mut self.from[i]).cast();
            head.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            head.msg_iov = &raw mut self.parts[i];
            head.msg_iovlen = 1;
        }
    }
    fn turn(&mut self, n: usize) -> usize {
        for i in 0..n {
            self.parts[i].iov_len = self.messages[i].msg_len as usize;
        }
        self.parts[..n].iter().map(|part| part.iov_len).sum()
    }
    fn receive(&mut self, fd: RawFd) -> Result<usize> {
        let (to, n) = (self.messages.as_mut_ptr(), self.messages.len() as u32);
        let none = std::ptr::null_mut();
        number_of(unsafe { libc::recvmmsg(fd, to, n, libc::MSG_DONTWAIT, none) })
    }
    fn send(&mut self, fd: RawFd, done: usize, n: usize) -> Result<usize> {
        let from = self.messages[done..n].as_mut_ptr();
        number_of(unsafe { libc::sendmmsg(fd, from, (n - done) as u32, libc::MSG_DONTWAIT) })
    }
}

fn number_of(result: libc::c_int) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

pub async fn many(socket: UdpSocket) -> Result<()> {
    let count = Count::default();
    let mut batch = Batch::new();
    let fd = socket.as_raw_fd();
    loop {
        let receive = || batch.receive(fd);
        let n = socket.async_io(Interest::READABLE, receive).await?;
        let bytes = batch.turn(n);
        let mut done = 0;
        while done < n {
            let send = || batch.send(fd, done, n);
            done += socket.async_io(Interest::WRITABLE, send).await?;
        }
        count.add(n, bytes);
        batch.clear(n);
    }
}

fn state_of(socket: &UdpSocket) -> Result<UdpSocketState> {
    let buffers = BUFFERS;
    for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        let value = (&raw const buffers).cast();
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, size) };
    }
    UdpSocketState::new(socket.into())
}

pub async fn send_bursts(socket: UdpSocket) -> Result<()> {
    let count = Count::default();
    let state = state_of(&socket)?;
    let mut number = [0; 8];
    let mut burst = vec![0x5a; BURST];
    loop {
        let (_, from) = socket.recv_from(&mut number).await?;
        let first = u64::from_ne_bytes(number) * DATAGRAMS as u64;
        for (i, datagram) in burst.chunks_exact_mut(DATAGRAM).enumerate() {
            datagram[..8].copy_from_slice(&(first + i as u64).to_ne_bytes());
        }
        let transmit = Transmit {
            destination: from,
            ecn: None,
            contents: &burst,
            segment_size: Some(DATAGRAM),
            src_ip: None,
        };
        let send = || state.try_send((&socket).into(), &transmit);
        socket.async_io(Interest::WRITABLE, send).await?;
        count.add(1, BURST);
    }
}

pub async fn receive_bursts(socket: UdpSocket) -> Result<()> {
    let count = Count::default();
    let state = state_of(&socket)?;
    let mut joined = vec![0; 65536];
    let (mut datagrams, mut sum) = (0u64, 0u64);
    loop {
        let mut meta = [RecvMeta::default()];
        let receive = || {
            let mut parts = [IoSliceMut::new(&mut joined)];
            state.recv((&socket).into(), &mut parts, &mut meta)
        };
        socket.async_io(Interest::READABLE, receive).await?;
        let before = datagrams / DATAGRAMS as u64;
        for datagram in joined[..meta[0].len].chunks(meta[0].stride) {
            if let Some(number) = datagram.first_chunk() {
                sum += u64::from_ne_bytes(*number);
                datagrams += 1;
            }
        }
        if datagrams / DATAGRAMS as u64 > before {
            let mut receipt = [0; 16];
            receipt[..8].copy_from_slice(&datagrams.to_ne_bytes());
            receipt[8..].copy_from_slice(&sum.to_ne_bytes());
            socket.send_to(&receipt, meta[0].addr).await?;
            count.add(1, receipt.len());
        }
    }
}
