#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the peers by libuv: timer, wake, outside, files and process.
#
#   bench/peers/libuv/build.sh [DIRECTORY]     where they go; default: build/peers/libuv
#   bench/peers/libuv/build.sh --version       of the libuv that it takes
#
# Environment: CC=gcc  CFLAGS=  further flags  LIBUV=DIRECTORY, where libuv is installed; default:
# build/peers/libuv-own, if library.sh has made it, else that of the system. Exit status 3: a
# package is missing, named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/peers/libuv}
cc=${CC:-gcc}

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
if [ "$out" = --version ]; then
    printf '#include <uv.h>\n#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n%s\n' \
        'version TEXT(UV_VERSION_MAJOR) TEXT(UV_VERSION_MINOR) TEXT(UV_VERSION_PATCH)' |
        $cc -E -x c - "$1" 2>/dev/null | sed -n 's/^version "\(.*\)" "\(.*\)" "\(.*\)"/\1.\2.\3/p'
    exit
fi
mkdir -p "$out"

# Builds again if any source is newer.
for program in timer wake outside files process; do
    [ ! -e "$out/$program" ] ||
        [ -n "$(find "$here" "$here/../peer.h" "$here/../../rows/bench.h" -type f \
            -newer "$out/$program")" ] || continue
    # shellcheck disable=SC2086 # CFLAGS is a list
    $cc -std=c11 -O3 -march=native -Wall -Wextra -Wshadow -Wconversion -pthread ${CFLAGS:-} \
        -o "$out/$program" "$here/$program.c" "$@"
done
