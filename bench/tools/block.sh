#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs bench/rows/block.c and its counterpart in bench/peers/tokio in turn.
#
#   bench/tools/block.sh [DIRECTORY]     of the programs, which make builds there; default:
#                                        build/bench
#
# Environment, with its defaults: ROUNDS=7  MS=1000  CALLS=5000
#
# Each round runs both once, and the order alternates. Columns: medians of volt.h and of Tokio, and
# the median of the rounds' ratios. Rows of `late` are in us, those of `call` in ns of wall time and
# of CPU time, and in voluntary context switches.
set -eu
bin=${1:-build/bench}
rounds=${ROUNDS:-7}
ms=${MS:-1000}
calls=${CALLS:-5000}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
make -s "$bin/block"
"$here/../peers/tokio/build.sh" "$PWD/build/peers/tokio" block

# figures ROUND PEER COMMAND...  Appends the lines of both tables.
figures() {
    round=$1 who=$2
    shift 2
    "$@" >"$work/out"
    awk -v round="$round" -v who="$who" '
        $1 == "way" || $1 == "call" { table = $1 == "way" ? "late" : "call"; next }
        NF { print round, who, table, $0 }' "$work/out" >>"$work/all"
}
round=0
while [ $((round += 1)) -le "$rounds" ]; do
    order='volt tokio'
    [ $((round % 2)) -eq 1 ] || order='tokio volt'
    for who in $order; do
        case $who in
        volt) figures "$round" volt "$bin/block" --ms "$ms" --reps 1 --calls "$calls" ;;
        tokio) figures "$round" tokio build/peers/tokio/block "$ms" 1 "$calls" ;;
        esac
    done
done

awk '
function sorted_middle(n,    i, j, v) { # of x[1..n]
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
    return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
}
function median(who, row, k,    r) {
    for (r = 1; r <= rounds; r++) x[r] = at[who, row, k, r]
    return sorted_middle(rounds)
}
function ratio(row, k,    r) {
    for (r = 1; r <= rounds; r++) {
        if (at["tokio", row, k, r] == 0) return "-"
        x[r] = at["volt", row, k, r] / at["tokio", row, k, r]
    }
    return sprintf("%.2f", sorted_middle(rounds))
}
function print_row(row, k, what) {
    printf "%-22s %-9s", row, what
    printf k == 3 && row ~ /^call/ ? " %12.2f %12.2f" : " %12.0f %12.0f", \
        median("volt", row, k), median("tokio", row, k)
    printf " %8s\n", ratio(row, k)
}
{
    if ($4 == "floor") next
    row = $3 " " $4 " " $5
    if (!(row in seen)) { seen[row] = 1; rows[++n_rows] = row }
    if ($1 > rounds) rounds = $1
    # late: ticks, p50, p99, max; call: ns, cpu, voluntary, involuntary
    first = $3 == "late" ? 7 : 6
    for (i = first; i <= NF; i++) at[$2, row, i - first + 1, $1] = $i
}
END {
    split("p50 p99 max", late, " ")
    split("ns cpu voluntary", call, " ")
    printf "%-22s %-9s %12s %12s %8s\n", "row, workers", "figure", "volt.h", "Tokio", "ratio"
    for (i = 1; i <= n_rows; i++)
        for (k = 1; k <= 3; k++)
            print_row(rows[i], k, rows[i] ~ /^late/ ? late[k] : call[k])
}' "$work/all"
