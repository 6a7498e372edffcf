#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The rows of sync and chan by volt.h and by Tokio, async-channel, kanal and flume, losses first.
#
#   bench/tools/sync_ratio.sh [ROW...]     default: all but C9w, the longest waits
#
# Environment, with its defaults:
#   BIN=build/bench  PAIRS=21  REPS=3   repetitions in a run, whose median counts
#   WORKERS="1 2"    2 and more: only the rows in which tasks meet
#   PEER=            the programs of another build of volt.h, in place of the peer: a directory
#
# Needs cargo, which fetches the peers; its output goes to build/peers. Both programs run each row
# in a process of its own, in turn: A B, B A, A B and so on, so that a drift of the machine affects
# both; with one worker on CPU 0. ns and cpu are medians of all pairs; x is the peer's time over
# volt's: the ratio of the medians, and in brackets the interval of the ratio in 95 % of the sets of
# pairs that are drawn from these. A wrong sum ends the script.
set -eu
bin=${BIN:-build/bench}
pairs=${PAIRS:-21}
reps=${REPS:-3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

need() {
    command -v "$1" >/dev/null && return
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 1
}
need taskset util-linux
make -s "$bin/sync" "$bin/chan"
peer=${PEER:-}
if [ -z "$peer" ]; then
    need cargo cargo
    "$here/../peers/tokio/build.sh" "$PWD/build/peers/tokio" sync
    peer=$PWD/build/peers/tokio/sync
fi

# program DIRECTORY ROW
program() {
    case $2 in
    C1?* | C2* | C3* | C9*) name=sync ;;
    *) name=chan ;;
    esac
    case $2 in
    C10[abcd]) name=sync ;;
    C10*) name=chan ;;
    esac
    echo "$1/$name"
}

# once PEER ROW WORKERS  One run, as a line of $work/runs.
once() {
    row=$2
    command=$(program "$bin" "$row")
    [ "$1" = volt ] || command=$peer
    [ "$1" = volt ] || [ ! -d "$peer" ] || command=$(program "$peer" "$row")
    [ "$1" = peer ] && [ ! -d "$peer" ] || row=${row%:*}
    pin=
    [ "$3" -ne 1 ] || pin='taskset -c 0'
    if [ "$row" = C9w ]; then
        $pin "$command" C9w --workers "$3" >"$work/out"
        awk -v who="$1" '$1 == "C9w" { print who, $2, $3, $4, $5, $6, $7 }' "$work/out" \
            >>"$work/waits"
        return
    fi
    $pin "$command" "$row" --workers "$3" --reps "$reps" >"$work/out"
    awk -v who="$1" -v row="$2" -v k="$3" '$1 ~ /^C/ { print row, k, who, $4, $5 }' "$work/out" \
        >>"$work/runs"
}

if [ $# -eq 0 ]; then
    for name in sync chan; do "$bin/$name" --list; done >"$work/rows"
    [ -d "$peer" ] || sed -n '/^C7/{s/$/:kanal/p;s/kanal/flume/p;}' "$work/rows" >"$work/more"
    [ -d "$peer" ] || cat "$work/more" >>"$work/rows"
else
    printf '%s\n' "$@" >"$work/rows"
fi
: >"$work/runs"
: >"$work/waits"

pair=0
while [ $((pair += 1)) -le "$pairs" ]; do
    order='volt peer'
    [ $((pair % 2)) -eq 1 ] || order='peer volt'
    for workers in ${WORKERS:-1 2}; do
        while read -r id; do
            case $workers-$id in
            *-C9w | 1-* | *-C3c | *-C7* | *-C8* | *-C9* | *-C10*)
                for who in $order; do once "$who" "$id" "$workers"; done
                ;;
            esac
        done <"$work/rows"
    done
    [ ! -t 2 ] || printf '\rpair %d of %d' "$pair" "$pairs" >&2
done
[ ! -t 2 ] || echo >&2

# For each row: medians, ratios, and the ratios of 1000 sets of pairs drawn with replacement.
awk '
function sort_x(n,    i, j, v) {
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
}
function middle(n) { sort_x(n); return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2 }
function quotient(a, b) { return (b > 0) ? a / b : 0 }
function median(row, who, what,    i) { # of the pairs in drawn[]
    for (i = 1; i <= n[row]; i++) x[i] = at[row, who, what, drawn[i]]
    return middle(n[row])
}
function interval(row, what,    k, i, y, m) {
    for (k = 1; k <= 1000; k++) {
        for (i = 1; i <= n[row]; i++) drawn[i] = 1 + int(rand() * n[row])
        m = median(row, "volt", what)
        y[k] = quotient(median(row, "peer", what), m)
    }
    for (k = 1; k <= 1000; k++) x[k] = y[k]
    sort_x(1000)
    return sprintf("%6.2f..%-6.2f", x[25], x[975])
}
{
    row = $1 " " $2
    if (!(row in n)) order[++rows] = row
    at[row, $3, "wall", ++seen[row, $3]] = $4
    at[row, $3, "cpu", seen[row, $3]] = $5
    n[row] = seen[row, $3]
}
END {
    srand(1)
    for (k = 1; k <= rows; k++) {
        row = order[k]
        for (i = 1; i <= n[row]; i++) drawn[i] = i
        vw = median(row, "volt", "wall"); pw = median(row, "peer", "wall")
        vc = median(row, "volt", "cpu"); pc = median(row, "peer", "cpu")
        split(row, part, " ")
        printf "%-10s %2s %9.2f %9.2f %8.2f %s %9.2f %9.2f %8.2f %s\n", part[1], part[2], vw, pw, \
            quotient(pw, vw), interval(row, "wall"), vc, pc, quotient(pc, vc), \
            interval(row, "cpu")
    }
}' "$work/runs" >"$work/ratios"
sort -n -k9,9 "$work/ratios" >"$work/table" # by the ratio of cpu, the less disturbed one
if [ -s "$work/table" ]; then
    printf '%-10s %2s %9s %9s %8s %14s %9s %9s %8s %14s\n' row w 'volt ns' 'peer ns' x '95 %' \
        'volt cpu' 'peer cpu' x '95 %'
    cat "$work/table"
fi

[ -s "$work/waits" ] || exit 0
printf '\n%-6s %2s %-16s %12s %12s %8s %8s   medians\n' peer w contest 'ops/s' 'longest us' \
    least most
sort -k2,2 -k3,3 -k1,1 "$work/waits" | awk '
function middle(what,    i, j, v) {
    for (i = 1; i <= n; i++) x[i] = at[what, i]
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
    return x[int((n + 1) / 2)]
}
function flush() {
    if (n) printf "%-6s %2s %-16s %12.0f %12.1f %8.2f %8.2f\n", who, k, what, middle(4), \
        middle(5), middle(6), middle(7)
    n = 0
}
{
    if ($1 != who || $2 != k || $3 != what) flush()
    who = $1; k = $2; what = $3; n++
    for (i = 4; i <= 7; i++) at[i, n] = $i
}
END { flush() }'
