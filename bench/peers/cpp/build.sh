#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the C++ peers: asio_sched, asio_outside and asio_timer by Asio, tbb_sched by oneTBB.
#
#   bench/peers/cpp/build.sh [DIRECTORY]     where they go; default: build/peers/cpp
#
# Environment: CXX=g++  CXXFLAGS=  further flags. Exit status 3: a package is missing, named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/peers/cpp}
cxx=${CXX:-g++}

missing() {
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 3
}
command -v "$cxx" >/dev/null || missing "$cxx" g++
has() { echo "#include <$1>" | $cxx -std=c++20 -E -x c++ - >/dev/null 2>&1; }
has asio.hpp || missing asio.hpp libasio-dev
has tbb/task_group.h || missing tbb/task_group.h libtbb-dev
mkdir -p "$out"

# build PROGRAM FLAG...  Builds again if any source is newer.
build() {
    program=$1
    shift
    [ ! -e "$out/$program" ] ||
        [ -n "$(find "$here" -type f -newer "$out/$program")" ] || return 0
    # shellcheck disable=SC2086 # CXXFLAGS is a list
    $cxx -std=c++20 -O3 -march=native -Wall -Wextra -Wpedantic -Wshadow -pthread ${CXXFLAGS:-} \
        -o "$out/$program" "$here/$program.cpp" "$@"
}
for program in asio_sched asio_outside asio_timer; do build "$program"; done
build tbb_sched -ltbb
