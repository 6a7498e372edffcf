#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the peer by GNU Pth: sched.
#
#   bench/peers/pth/build.sh [DIRECTORY]     where it goes; default: build/peers/pth
#
# Environment: CC=gcc  CFLAGS=  further flags. Exit status 3: a package is missing, named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/peers/pth}
cc=${CC:-gcc}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v "$cc" >/dev/null || missing "$cc" gcc
echo '#include <pth.h>' | $cc -E -x c - >/dev/null 2>&1 || missing pth.h libpth-dev
mkdir -p "$out"

[ ! -e "$out/sched" ] ||
    [ -n "$(find "$here" "$here/../peer.h" "$here/../../rows/bench.h" -type f \
        -newer "$out/sched")" ] || exit 0
# shellcheck disable=SC2086 # CFLAGS is a list
$cc -std=c11 -O3 -march=native -Wall -Wextra -Wshadow -Wconversion ${CFLAGS:-} \
    -o "$out/sched" "$here/sched.c" -lpth
