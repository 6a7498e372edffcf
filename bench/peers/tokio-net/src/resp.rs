// SPDX-License-Identifier: MIT OR 0BSD
//! Redis' protocol as bench/servers/serve.h has it: PING, SET and GET on a table in memory.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{Error, ErrorKind, Result};
use std::sync::{LazyLock, Mutex};

const WORDS: usize = 3;
const LONGEST: usize = 4096;

#[derive(Clone, Copy)]
struct Fnv(u64);
impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf29ce484222325)
    }
}
impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x100000001b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Table = HashMap<Vec<u8>, Vec<u8>, BuildHasherDefault<Fnv>>;
static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn broken() -> Error {
    Error::from(ErrorKind::InvalidData)
}

/// "*3\r\n" or "$5\r\n" at `*at`, which then is behind it; None: it has not come whole.
fn number(input: &[u8], at: &mut usize, mark: u8) -> Result<Option<usize>> {
    let mut n = 0;
    let mut i = *at;
    if i < input.len() && input[i] != mark {
        return Err(broken());
    }
    i += 1;
    while i < input.len() && input[i].is_ascii_digit() {
        n = n * 10 + usize::from(input[i] - b'0');
        if n > LONGEST {
            return Err(broken());
        }
        i += 1;
    }
    if i + 2 > input.len() {
        return Ok(None);
    }
    if input[i..i + 2] != *b"\r\n" {
        return Err(broken());
    }
    *at = i + 2;
    Ok(Some(n))
}

fn command(words: &[&[u8]], out: &mut Vec<u8>) {
    let is = |name: &str| words[0].eq_ignore_ascii_case(name.as_bytes());
    let table = || TABLE.lock().unwrap();
    match words.len() {
        1 if is("PING") => out.extend_from_slice(b"+PONG\r\n"),
        2 if is("GET") => match table().get(words[1]) {
            Some(value) => {
                use std::io::Write;
                let _ = write!(out, "${}\r\n", value.len()); // to memory
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(b"$-1\r\n"),
        },
        3 if is("SET") => {
            let mut table = table();
            if let Some(value) = table.get_mut(words[1]) {
                value.clear();
                value.extend_from_slice(words[2]);
            } else {
                table.insert(words[1].to_vec(), words[2].to_vec());
            }
            out.extend_from_slice(b"+OK\r\n");
        }
        _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
    }
}

/// Answers one request; gives its length, 0 if it has not come whole.
fn answer(input: &[u8], out: &mut Vec<u8>) -> Result<usize> {
    let mut words: [&[u8]; WORDS] = [&[]; WORDS];
    let mut at = 0;
    let Some(count) = number(input, &mut at, b'*')? else {
        return Ok(0);
    };
    if count == 0 || count > WORDS {
        return Err(broken());
    }
    for word in &mut words[..count] {
        let Some(len) = number(input, &mut at, b'$')? else {
            return Ok(0);
        };
        if at + len + 2 > input.len() {
            return Ok(0);
        }
        *word = &input[at..at + len];
        at += len + 2;
        if input[at - 2..at] != *b"\r\n" {
            return Err(broken());
        }
    }
    command(&words[..count], out);
    Ok(at)
}

/// Gives the bytes and the number of the requests that are answered.
pub fn answer_all(input: &[u8], out: &mut Vec<u8>) -> Result<(usize, usize)> {
    let (mut used, mut requests) = (0, 0);
    loop {
        match answer(&input[used..], out)? {
            0 => return Ok((used, requests)),
            n => used += n,
        }
        requests += 1;
    }
}
