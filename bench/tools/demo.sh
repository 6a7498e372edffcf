#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The main use on real sockets: the echo server of volt.h under the load of 200 connections, in five
# seconds. Prints throughput, latency and the counters of the scheduler.
#
#   bench/tools/demo.sh [DIRECTORY]     with the programs echo_server and load; default: build/bench
#
# Exit status 0 only if every byte came back as it was sent and the server ended normally.
set -eu
. "$(dirname "$0")/server.sh"
bin=${1:-build/bench}

start "$bin/echo_server" 0 0 20
echo "echo server on 127.0.0.1:$port; 200 connections send and check messages of 64 bytes for 4 s"
status=0
"$bin/load" --port "$port" --conns 200 --seconds 4 --size 64 >"$work/load" || status=$?
stop

awk '
    function line(text, number) { printf "  %-24s %12s\n", text, number }
    $1 == "requests"      { line("requests", $2) }
    $1 == "per_second"    { line("requests per second", $2) }
    /^p[0-9.]+_us/        { sub("_us", "", $1); line("latency " $1 ", us", $2) }
    $1 == "bytes_checked" { line("bytes checked", $2) }
    $1 == "errors"        { line("errors", $2) }
' "$work/load"
echo "counters of the scheduler"
awk '
    $1 == "port" || $1 == "requests" || $1 == "bytes" || $1 == "cpu_us" { next }
    { text = $0; sub("^[^ ]+ +[^ ]+ +", "", text); printf "  %-16s %12s  %s\n", $1, $2, text }
' "$work/server"
[ "$status" -eq 0 ] || fail "the client found errors"
