#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds libuv from its sources, for the peers by libuv: distributions have older releases.
#
#   bench/peers/libuv/library.sh [PREFIX [SOURCE]]
#       PREFIX   where it is installed; default: build/peers/libuv-own, where build.sh looks for it
#       SOURCE   a directory of its sources; default: a clone of the release named below
#
# Exit status 3: something is missing; a message names it.
set -eu
release=v1.52.1
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-$here/../../../build/peers/libuv-own}
source=${2:-}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v cmake >/dev/null || missing cmake cmake
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
if [ -z "$source" ]; then
    command -v git >/dev/null || missing git git
    source=$prefix/source
    [ -e "$source/CMakeLists.txt" ] || git clone --quiet --depth 1 -b "$release" \
        https://github.com/libuv/libuv "$source"
fi
cmake -S "$source" -B "$prefix/build" -DCMAKE_BUILD_TYPE=Release -DLIBUV_BUILD_SHARED=OFF \
    -DLIBUV_BUILD_TESTS=OFF -DLIBUV_BUILD_BENCH=OFF -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_PREFIX="$prefix" >"$prefix/log" 2>&1 &&
    cmake --build "$prefix/build" --target install >>"$prefix/log" 2>&1 || {
    cat "$prefix/log" >&2
    exit 1
}
