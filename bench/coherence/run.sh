#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The number of cache lines that move between processors per operation, on a simulated machine
# (machine.h).
#
#   bench/coherence/run.sh [ROW...]     default: S1 S2 S6 S8 S9c S10 C7b C9a C9c T1b, of those there
#                                       are; the programs: make bench-coherence
#
# Environment, with its defaults: WORKERS='2 4 8 16 32 64'  SEED=1  SLICE=32  LINES=4 (places by
# name below each row)  BIN=build/bench/coherence  JOBS=2 (at a time)  BENCH_JSON=1: lines of JSON
#
# transfers   lines that a processor got from another one     all per operation
# invalid     holders that lost a line to a writer
# rmw         atomic read-modify-writes; shared: of lines that another processor held
# runtime     the shared ones on memory of the runtime: neither the benchmark's own counters
#             nor the lock or the channel that the row is about
# ns          on the clocks of that machine
#
# Fails if a spawn, a poll or a wake (S1, S2, S8, T1b) with 4 workers or more does more than 0.1
# shared atomic operations of the runtime. The same seed gives the same figures.
set -eu
bin=${BIN:-build/bench/coherence}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}
for program in sched sync chan timer; do
    [ -x "$bin/$program" ] || fail "$bin/$program is missing: make bench-coherence"
    "$bin/$program" --list | sed "s|^|$bin/$program |"
done >"$work/all"
if [ $# -gt 0 ]; then
    for row in "$@"; do grep " $row\$" "$work/all" || fail "$row: no such row"; done >"$work/rows"
else
    for row in S1 S2 S6 S8 S9c S10 C7b C9a C9c T1b; do grep " $row\$" "$work/all" || :; done \
        >"$work/rows"
fi
while read -r program row; do
    for n in ${WORKERS:-2 4 8 16 32 64}; do echo "$program $row $n"; done
done <"$work/rows" >"$work/runs"

# shellcheck disable=SC2016 # the inner shell expands it
xargs -P "${JOBS:-2}" -L 1 sh -c '"$3" "$4" --workers "$5" --seed "$1" --slice "$2" \
        --lines "$6" >"$0/$4.$5" || echo "$4 $5" >>"$0/failed"' \
    "$work" "${SEED:-1}" "${SLICE:-32}" <<END
$(sed "s|\$| ${LINES:-4}|" "$work/runs")
END
[ ! -e "$work/failed" ] || fail "failed: $(tr '\n' ',' <"$work/failed")"

printf '%-19s %10s %10s %10s %10s %10s %8s\n' 'row, workers' transfers invalid rmw shared runtime ns
while read -r _ row n; do cat "$work/$row.$n"; done <"$work/runs" | awk -v json="${BENCH_JSON:-}" '
/^ / { print; next }
{
    is_high = $1 ~ /^(S1|S2|S8|T1b)$/ && $2 >= 4 && $8 > 0.1
    n_high += is_high
    printf "%-6s %12d %10.4f %10.4f %10.4f %10.4f %10.4f %8.1f%s\n", $1, $2, $4, $5, $6, $7, $8,
        $9, is_high ? "  more than 0.1" : ""
    if (json) printf "{\"row\":\"%s\",\"workers\":%d,\"ops\":%d,\"transfers_per_op\":%.4f," \
        "\"invalidations_per_op\":%.4f,\"rmw_per_op\":%.4f,\"shared_rmw_per_op\":%.4f," \
        "\"runtime_shared_rmw_per_op\":%.4f,\"ns\":%.1f}\n", $1, $2, $3, $4, $5, $6, $7, $8, $9
}
END {
    if (n_high) print "coherence: " n_high " figures of the runtime are more than 0.1"
    else print "coherence: passed"
    exit n_high > 0
}'
