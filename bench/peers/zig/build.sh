#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the peer by blitz-io, in Zig: sync and chan.
#
#   bench/peers/zig/build.sh [DIRECTORY]     where they go; default: build/peers/zig
#
# Environment: ZIG='python3 -m ziglang' (0.15)  BLITZ=  a checkout of blitz-io at the commit below;
# without it, git fetches it into DIRECTORY. Exit status 3: something is missing, named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/peers/zig}
zig=${ZIG:-python3 -m ziglang}
blitz=${BLITZ:-$out/blitz-io}
url=https://github.com/NerdMeNot/blitz-io
commit=225e1ca17ce2ec2389f286a1ef9a1178c752b906

missing() {
    echo "${0##*/}: $1 is missing: $2" >&2
    exit 3
}
# Fetches that commit alone. A failed fetch leaves nothing behind.
fetch() {
    rm -rf "$blitz.part"
    if git init -q "$blitz.part" &&
        GIT_TERMINAL_PROMPT=0 git -C "$blitz.part" fetch -q --depth 1 "$url" "$commit" &&
        git -C "$blitz.part" checkout -q FETCH_HEAD; then
        mv "$blitz.part" "$blitz"
    else
        rm -rf "$blitz.part"
        return 1
    fi
}
case $($zig version 2>/dev/null) in
    0.15.*) ;;
    *) missing 'Zig 0.15' 'pip install ziglang==0.15.2, or name a zig in ZIG' ;;
esac
mkdir -p "$out"
[ -n "${BLITZ:-}" ] || [ -e "$blitz" ] || fetch 2>/dev/null ||
    missing "blitz-io" "name a checkout of $url at $commit in BLITZ"

# PROGRAM PART: uses only that part of the library. Each module has its own options.
options='-O ReleaseFast -mcpu=native'
build() {
    [ -e "$blitz/src/$2.zig" ] || missing "$blitz/src/$2.zig" 'is BLITZ a checkout of blitz-io?'
    [ ! -e "$out/$1" ] ||
        [ -n "$(find "$here" "$blitz/src" -type f -newer "$out/$1")" ] || return 0
    # shellcheck disable=SC2086 # $zig and $options are lists
    $zig build-exe $options --dep blitz-io "-Mroot=$here/$1.zig" \
        $options "-Mblitz-io=$blitz/src/$2.zig" --name "$1" \
        --cache-dir "$out/cache" "-femit-bin=$out/$1"
}
build sync sync
build chan channel
