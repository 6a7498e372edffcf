#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds go-net; Go fetches golang.org/x/net.
#
#   bench/peers/go-net/build.sh [OUT]     default: build/peers/go-net
#
# Exit status 3: something is missing; a message names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/go-net}
command -v go >/dev/null || {
    echo "${0##*/}: go is missing: install the package golang, or see https://go.dev/dl" >&2
    exit 3
}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
GOAMD64=v3 go build -trimpath -o "$out/go-net" .
