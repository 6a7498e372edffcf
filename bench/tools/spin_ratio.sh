#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Measures a task that another thread wakes after 3, 30 and 300 us (rows S12a to S12c), by volt.h
# without and with .spin_us 20, and by Go: median latency, and CPU time for a wake.
#
#   bench/tools/spin_ratio.sh [ROUNDS]     default: 11
#
# Environment: WORKERS=1. In a round each program runs once, in an order that rotates. Columns: the
# medians of the rounds, and of the rounds' ratios to volt.h without a spin; below 1 is less.
# N1 and N7u: PEERS='spin go' bench/tools/net_ratio.sh N1 N7u
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/server.sh"
rounds=${1:-11}
workers=${WORKERS:-1}
make -s build/bench/outside
"$here/../peers/go/build.sh" build/peers/go || fail "go's rows could not be built"

# run NAME ROW
run() {
    case $1 in
    volt) build/bench/outside "$2" --workers "$workers" ;;
    spin) BENCH_SPIN_US=20 build/bench/outside "$2" --workers "$workers" ;;
    go) build/peers/go/outside "$2" --workers "$workers" ;;
    esac | awk -v name="$1" -v row="$2" '$1 == row { print row, name, $4, $5 }'
}
i=0
while [ $((i += 1)) -le "$rounds" ]; do
    case $((i % 3)) in
    0) names='volt spin go' ;;
    1) names='spin go volt' ;;
    2) names='go volt spin' ;;
    esac
    for row in S12a S12b S12c; do
        for name in $names; do run "$name" "$row"; done
    done
done >"$work/runs"

awk -f "$here/ratio.awk" -f - "$work/runs" <<'PROGRAM'
{
    key = $1 " " $2
    n[key]++
    ns[key, n[key]] = $3
    cpu[key, n[key]] = $4
}
function figure(key, i, what) { return what == "ns" ? ns[key, i] : cpu[key, i] }
function median(key, what, by,    i) {
    for (i = 1; i <= n[key]; i++)
        x[i] = figure(key, i, what) / (by == "" ? 1 : figure(by, i, what))
    return median_x(n[key])
}
END {
    printf "%-6s%-6s%10s%8s%12s%8s\n", "row", "", "p50 ns", "x", "CPU ns", "x"
    n_rows = split("S12a S12b S12c", row, " ")
    n_names = split("volt spin go", name, " ")
    for (i = 1; i <= n_rows; i++)
        for (j = 1; j <= n_names; j++) {
            key = row[i] " " name[j]
            base = row[i] " volt"
            printf "%-6s%-6s%10.0f%8.2f%12.0f%8.2f\n", row[i], name[j], median(key, "ns"),
                median(key, "ns", base), median(key, "cpu"), median(key, "cpu", base)
        }
}
PROGRAM
