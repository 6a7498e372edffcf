#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The policies of .placement side by side: medians, and ratios to `shared`.
#
#   bench/tools/placement.sh [WORKLOAD...]     default: burst mixed blocked producers1 2 4 8
#
# Environment, with its defaults:
#   BIN=build/bench  ROUNDS=7  SECONDS_EACH=1  WORKERS=  LOAD=70   see bench/rows/placement.c
#   PEER=            zio: bench/peers/zio/run.sh too, in the rounds of burst
#
# In each round each policy runs once, in a process of its own; the order rotates from round to
# round, so that a drift of the machine affects all. An open loop has one rate in each round,
# measured just before. A ratio is the median of the rounds' ratios, not the ratio of the medians,
# as the runs of a round meet the same machine. Fails if a run has lost a task.
set -eu
bin=${BIN:-build/bench}
rounds=${ROUNDS:-7}
seconds=${SECONDS_EACH:-1}
workers=${WORKERS:-}
load=${LOAD:-70}
peer=${PEER:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ $# -gt 0 ] || set -- burst mixed blocked producers1 producers2 producers4 producers8
make -s "$bin/placement"
[ -z "$peer" ] || "$here/../peers/$peer/run.sh" default 0.1 0.1 >/dev/null

# figures ROUND COMMAND...  Appends the line of figures of a run, its round in front.
figures() {
    round=$1
    shift
    "$@" >"$work/out"
    awk -v round="$round" '$1 != "workload" && !/^\{/ { print round, $0 }' "$work/out" >>"$work/all"
}

# rate WORKLOAD  Tasks a second for an open loop; 0 for a closed one.
rate() {
    case $1 in
    mixed | blocked)
        "$bin/placement" "$1-capacity" shared $workers --seconds "$seconds" |
            awk -v percent="$load" '$1 ~ /-capacity$/ { printf "%d", $4 * percent / 100 }'
        ;;
    *) echo 0 ;;
    esac
}

# run ROUND WORKLOAD POLICY RATE
run() {
    case $3 in
    zio-*) figures "$1" "$here/../peers/zio/run.sh" "${3#zio-}" "$seconds" ;;
    *) figures "$1" "$bin/placement" "$2" "$3" $workers --seconds "$seconds" --rate "$4" ;;
    esac
}

for workload in "$@"; do
    round=1
    while [ "$round" -le "$rounds" ]; do
        rate=$(rate "$workload")
        case $((round % 3)) in
        0) order='least shared two' ;;
        1) order='shared two least' ;;
        2) order='two least shared' ;;
        esac
        [ "$workload$peer" != burstzio ] || order="zio-default $order zio-bare"
        for policy in $order; do run "$round" "$workload" "$policy" "$rate"; done
        round=$((round + 1))
    done
done

awk '
function sorted_middle(n,    i, j, v) { # of x[1..n]
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
    return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}
function median(row, column,    r, n) {
    n = 0
    for (r = 1; r <= rounds; r++)
        if ((row, r, column) in at && at[row, r, column] != "-") x[++n] = at[row, r, column] + 0
    return n ? sorted_middle(n) : "-"
}
function ratio(row, base, column,    r, n) {
    n = 0
    for (r = 1; r <= rounds; r++)
        if (at[row, r, column] != "-" && at[base, r, column] > 0)
            x[++n] = at[row, r, column] / at[base, r, column]
    return n ? sprintf("%.2f", sorted_middle(n)) : "-"
}
function number(value, format) { return value == "-" ? "-" : sprintf(format, value) }
{
    row = $2 " " $3
    if (!(row in workload)) { order[++n_rows] = row; workload[row] = $2; policy[row] = $3 }
    workers[row] = $4
    if ($1 > rounds) rounds = $1
    for (i = 5; i <= NF; i++) at[row, $1, i] = $i
}
END {
    print "medians of " rounds " rounds; in us but for cpu, in ns / task"
    printf "%-11s %-11s %2s %9s %9s %9s %9s %9s %7s %6s %6s %8s %8s\n", "workload", "policy", \
        "w", "tasks/s", "p50", "p99", "p99.9", "max", "spread", "asleep", "cpu", "wakes", "steals"
    for (k = 1; k <= n_rows; k++) {
        row = order[k]
        printf "%-11s %-11s %2s %9s", workload[row], policy[row], workers[row], \
            number(median(row, 5), "%.0f")
        for (i = 6; i <= 9; i++) printf " %9s", number(median(row, i) / 1000, "%.1f")
        printf " %7s %6s %6s %8s %8s\n", number(median(row, 10), "%.1f"), \
            number(median(row, 11), "%.2f"), number(median(row, 12), "%.0f"), \
            number(median(row, 13), "%.5f"), number(median(row, 14), "%.5f")
    }
    print ""
    print "ratios to shared: medians of those of each round"
    printf "%-11s %-11s %2s %9s %9s %9s %9s %9s %7s %6s %6s %8s\n", "workload", "policy", "w", \
        "tasks/s", "p50", "p99", "p99.9", "max", "spread", "asleep", "cpu", "wakes"
    for (k = 1; k <= n_rows; k++) {
        row = order[k]
        if (policy[row] == "shared") continue
        base = workload[row] " shared"
        printf "%-11s %-11s %2s", workload[row], policy[row], workers[row]
        for (i = 5; i <= 13; i++)
            printf i < 10 ? " %9s" : i < 11 ? " %7s" : i < 13 ? " %6s" : " %8s", ratio(row, base, i)
        print ""
    }
}' "$work/all"
