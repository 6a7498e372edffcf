#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The number of cache lines that move between processors per operation, on a simulated machine
# (machine.h).
#
#   bench/coherence/run.sh [ROW...]     default: S1 S2 S6 S8 S9c S10 C7b C9a C9c T1b, of those there
#                                       are; the programs: make bench-coherence
#
# Environment, with its defaults: WORKERS='2 4 8 16 32 64'  SEEDS='1 2 3'  SLICE=32  LINES=4 (places
# by name below each row)  BIN=build/bench/coherence  JOBS=2 (at a time)  BENCH_JSON=1: lines of JSON
#
# A figure is that of the run whose `runtime` is the median over the seeds. In a run workers may
# steal short tasks from each other until a trial tells that it does not pay (>>worker of volt.h):
# trials come every 25 ms, and a run is shorter than that. One seed of eight goes this way in S2.
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
for program in sched sync chan timer outside; do
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
seeds=${SEEDS:-1 2 3}

# shellcheck disable=SC2016 # the inner shell expands it
xargs -P "${JOBS:-2}" -L 1 sh -c '"$3" "$4" --workers "$5" --seed "$6" --slice "$1" \
        --lines "$2" >"$0/$4.$5.$6" || echo "$4 $5" >>"$0/failed"' \
    "$work" "${SLICE:-32}" "${LINES:-4}" <<END
$(for seed in $seeds; do sed "s|\$| $seed|" "$work/runs"; done)
END
[ ! -e "$work/failed" ] || fail "failed: $(tr '\n' ',' <"$work/failed")"

# median ROW WORKERS  Prints the output of the run with the median of `runtime`.
median() {
    for seed in $seeds; do
        awk -v file="$work/$1.$2.$seed" '!/^ / { print $8, file }' "$work/$1.$2.$seed"
    done | sort -g | awk '{ file[NR] = $2 } END { print file[int((NR + 1) / 2)] }' | xargs cat
}

printf '%-19s %10s %10s %10s %10s %10s %8s\n' 'row, workers' transfers invalid rmw shared runtime ns
while read -r _ row n; do median "$row" "$n"; done <"$work/runs" | awk -v json="${BENCH_JSON:-}" '
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
