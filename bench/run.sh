#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# All rows with one worker, against the floor of the same run.
#
#   bench/run.sh [DIRECTORY]     of the programs, which make builds there; default: build/bench
#
# ns/op, floor and floor+ are medians of PAIRS=9 runs, floor and row in turn; each run gives the
# median of its repetitions inside one process. A floor is the least that the operation takes on one
# thread; floor+ adds the atomic operations, or the reading of the clock, that an operation open to
# other threads cannot do without (floor.c says which). The last three columns are
# whole processes that do the row twice, start and end included, timed by hyperfine. Everything
# runs on CPU 0. Fails if a row gives a wrong sum, or allocates where it must not.
set -eu
bin=${1:-build/bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

need() {
    command -v "$1" >/dev/null && return
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 1
}
need hyperfine hyperfine
need taskset util-linux
make -s "$bin/floor" "$bin/sched" "$bin/timer" "$bin/sync" "$bin/chan" "$bin/memory"

on_cpu() { taskset -c 0 "$@"; }

# process PROGRAM ROW  Median time of the whole process in ms.
process() {
    on_cpu hyperfine -N --style none --warmup 1 --runs 11 --export-csv "$work/csv" \
        "$bin/$1 $2 --reps 1" >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
    awk -F , 'NR == 2 { printf "%.2f", $4 * 1000 }' "$work/csv"
}

# median PROGRAM COLUMN ROW...  Over all runs, of the first of these rows that there is; 0 if none.
median() {
    runs=$work/$1 column=$2
    shift 2
    for row in "$@"; do
        awk -v row="$row" -v column="$column" '$1 == row { print $column }' "$runs" | sort -n |
            awk '{ x[NR] = $1 } END { if (NR) print x[int((NR + 1) / 2)] }'
    done | awk 'NR == 1 { median = $1 } END { print median + 0 }'
}

pair=0
while [ $((pair += 1)) -le "${PAIRS:-9}" ]; do
    on_cpu "$bin/floor" --reps 5 >>"$work/floor"
    on_cpu "$bin/sched" --workers 1 --reps 3 >>"$work/sched"
    for program in sched timer sync chan; do
        on_cpu "$bin/$program" --workers 1 --reps 3 >>"$work/$program"
    done
done

for program in sched timer sync chan; do
    awk '$1 != "row" && !seen[$1]++' "$work/$program" >"$work/rows"
    while read -r id _ _ _ _ _ what; do
        echo "$id $(median $program 4 "$id") $(median $program 5 "$id")" \
            "$(median floor 4 "$id") $(median floor 4 "$id+rmw" "$id+clock")" \
            "$(process "$program" "$id") $(process floor "$id") $what"
    done <"$work/rows"
done >"$work/table"

printf '%-5s %8s %8s %7s %6s %7s %6s  %8s %8s %6s  %s\n' row ns/op 'cpu ns' \
    floor ratio floor+ ratio 'volt ms' 'floor ms' ratio operation
awk '{
    printf "%-5s %8.2f %8.2f %7.2f %6.1f ", $1, $2, $3, $4, $2 / $4
    if ($5 > 0) printf "%7.2f %6.1f ", $5, $2 / $5
    else printf "%7s %6s ", "-", "-"
    printf " %8.2f %8.2f %6.1f ", $6, $7, $6 / $7
    for (i = 8; i <= NF; i++) printf " %s", $i
    print ""
}' "$work/table"
echo
echo "all floors, ns/op:"
awk '$1 != "row" && !seen[$1]++ { print $1 }' "$work/floor" | while read -r id; do
    printf '%-10s %8.2f\n' "$id" "$(median floor 4 "$id")"
done
echo
on_cpu "$bin/memory" --workers 1
