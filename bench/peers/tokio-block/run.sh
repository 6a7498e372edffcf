#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds src/main.rs with cargo, which fetches Tokio, and runs it.
#
#   bench/peers/tokio-block/run.sh [MS [REPS [CALLS [WORKERS]]]]     default: 1000 3 20000, 1 and 2
#
# Prints the same tables as bench/block.c. What it builds goes to target/ beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v cargo >/dev/null || {
    echo "${0##*/}: cargo is missing: see https://rustup.rs" >&2
    exit 1
}
cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml" >&2
exec "$here/target/release/tokio-block" "$@"
