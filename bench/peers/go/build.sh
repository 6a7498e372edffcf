#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds the rows of Go: sched, outside, timer, wake, sync, files and process.
#
#   bench/peers/go/build.sh [DIRECTORY]     of the programs; default: build/peers/go
#
# go fetches golang.org/x/sync, as go.sum has it. Without go: prints so and exits with 3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/go}

command -v go >/dev/null || {
    echo "${0##*/}: go is missing: see https://go.dev/dl" >&2
    exit 3
}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
GOAMD64=v3 go build -trimpath -o "$out/" ./sched ./outside ./timer ./wake ./sync ./files ./process
