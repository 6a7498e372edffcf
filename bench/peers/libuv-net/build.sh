#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds libuv_net against the libuv of the system.
#
#   bench/peers/libuv-net/build.sh [OUT]     default: build/peers/libuv-net
#
# Environment: CC=cc. Exit status 3: something is missing; a message names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/libuv-net}
cc=${CC:-cc}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v "$cc" >/dev/null || missing "$cc" gcc
echo '#include <uv.h>' | $cc -E -x c - >/dev/null 2>&1 || missing uv.h libuv1-dev
mkdir -p "$out"
$cc -std=gnu11 -O2 -DNDEBUG -Wall -Wextra -I"$here/../../servers" -pthread \
    "$here/libuv_net.c" -luv -o "$out/libuv_net"
