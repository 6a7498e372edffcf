#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds libuv_net.
#
#   bench/peers/libuv-net/build.sh [OUT]     default: build/peers/libuv-net
#
# Environment: CC=cc  LIBUV=DIRECTORY, where libuv is installed; default: build/peers/libuv-own, if
# ../libuv/library.sh has made it, else that of the system. Exit status 3: something is missing; a
# message names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/libuv-net}
cc=${CC:-cc}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v "$cc" >/dev/null || missing "$cc" gcc
libuv=${LIBUV:-$here/../../../build/peers/libuv-own}
if [ -e "$libuv/lib/libuv.a" ]; then
    set -- -I"$libuv/include" "$libuv/lib/libuv.a" -ldl
else
    echo '#include <uv.h>' | $cc -E -x c - >/dev/null 2>&1 || missing uv.h libuv1-dev
    set -- -luv
fi
mkdir -p "$out"
$cc -std=gnu11 -O2 -DNDEBUG -Wall -Wextra -I"$here/../../servers" -pthread \
    "$here/libuv_net.c" "$@" -o "$out/libuv_net"
