#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the rows of the benchmarks by Tokio with cargo, which fetches it.
#
#   bench/peers/tokio/build.sh [OUT [PROGRAM...]]     default: build/peers/tokio and all of:
#       sched outside timer wake sync block files process   with the allocator of the C library
#       sched-mimalloc and so on              with mimalloc, in C: needs a C compiler
#       timer-alt                             each worker's own timers, which Tokio calls unstable
#
# Built for the host's processor. The output of cargo goes to OUT/target.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v cargo >/dev/null || {
    echo "${0##*/}: cargo is missing: install the package cargo, or see https://rustup.rs" >&2
    exit 1
}
out=${1:-$here/../../../build/peers/tokio}
[ $# -eq 0 ] || shift
names='sched outside timer wake sync block files process'
# shellcheck disable=SC2046,SC2086 # words
[ $# -gt 0 ] || set -- $names $(printf '%s-mimalloc ' $names) timer-alt
for program in "$@"; do
    case $program in
    timer-alt | *-mimalloc) ;;
    *-*) echo "${0##*/}: no such program: $program" >&2 && exit 1 ;;
    esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)

# build SUFFIX NAME...
build() {
    suffix=$1 features='' flags='-C target-cpu=native'
    shift
    [ "$suffix" != -mimalloc ] || features=mimalloc
    [ "$suffix" != -alt ] || flags="$flags --cfg tokio_unstable"
    # shellcheck disable=SC2046 # words
    (cd "$here" && RUSTFLAGS=$flags CARGO_TARGET_DIR=$out/target cargo build --quiet --release \
        --locked --features "$features" $(printf -- '--bin %s ' "$@")) >&2
    for name in "$@"; do cp "$out/target/release/$name" "$out/$name$suffix"; done
}
for suffix in '' -mimalloc -alt; do
    bins=
    for program in "$@"; do
        [ "$program" != "${program%%-*}$suffix" ] || bins="$bins ${program%%-*}"
    done
    # shellcheck disable=SC2086 # words
    [ -z "$bins" ] || build "$suffix" $bins
done
