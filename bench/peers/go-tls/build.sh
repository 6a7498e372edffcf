#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds go-tls.
#
#   bench/peers/go-tls/build.sh [OUT]     default: build/peers/go-tls
#
# Exit status 3: something is missing; a message names it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../../build/peers/go-tls}
command -v go >/dev/null || {
    echo "${0##*/}: go is missing: install the package golang, or see https://go.dev/dl" >&2
    exit 3
}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
GOAMD64=v3 go build -trimpath -o "$out/go-tls" .
