#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds tokio-tls with cargo, which fetches Tokio and rustls, for the processor that it runs on.
#
#   bench/peers/tokio-tls/build.sh [OUT]     default: build/peers/tokio-tls
#
# Environment: FEATURES=mimalloc, written in C, replaces the C library's allocator; FEATURES= keeps
# the latter. The output of cargo goes to OUT/target. Exit status 3: something is missing; a message
# names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/tokio-tls}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v cargo >/dev/null || missing cargo 'cargo, or see https://rustup.rs'
command -v cc >/dev/null || missing cc gcc
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
RUSTFLAGS='-C target-cpu=native' CARGO_TARGET_DIR=$out/target cargo build --quiet --release \
    --locked --features "${FEATURES-mimalloc}" >&2
cp -f "$out/target/release/tokio-tls" "$out/tokio-tls"
