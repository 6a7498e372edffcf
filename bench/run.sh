#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# All rows with one worker, against the floor of the same run.
#
#   bench/run.sh [DIRECTORY]     of the programs, which make builds there; default: build/bench
#
# ns/op and floor are medians of the repetitions inside one process (see bench.h, floor.c); the last
# three columns are whole processes that do the row twice, start and end included, timed by
# hyperfine. Everything runs on CPU 0.
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
make -s "$bin/floor" "$bin/sched" "$bin/timer" "$bin/memory"

on_cpu() { taskset -c 0 "$@"; }

# process PROGRAM ROW  Median time of the whole process in ms.
process() {
    on_cpu hyperfine -N --style none --warmup 1 --runs 11 --export-csv "$work/csv" \
        "$bin/$1 $2 --reps 1" >/dev/null
    awk -F , 'NR == 2 { printf "%.2f", $4 * 1000 }' "$work/csv"
}

on_cpu "$bin/floor" >"$work/floor"
on_cpu "$bin/sched" --workers 1 >"$work/sched"
on_cpu "$bin/timer" --workers 1 >"$work/timer"

for program in sched timer; do
    while read -r row _ _ median cpu _ what; do
        [ "$row" != row ] || continue
        floor=$(awk -v row="$row" '$1 == row { print $4 }' "$work/floor")
        volt_ms=$(process "$program" "$row")
        floor_ms=$(process floor "$row")
        echo "$row $median $cpu $floor $volt_ms $floor_ms $what"
    done <"$work/$program"
done >"$work/table"

printf '%-5s %9s %9s %9s %7s   %9s %9s %7s  %s\n' \
    row ns/op 'cpu ns' floor ratio 'volt ms' 'floor ms' ratio operation
awk '{
    what = $0
    sub("^([^ ]+ ){6}", "", what)
    printf "%-5s %9.2f %9.2f %9.2f %7.1f   %9.2f %9.2f %7.1f  %s\n", \
        $1, $2, $3, $4, $2 / $4, $5, $6, $5 / $6, what
}' "$work/table"
echo
echo "floors, with what they leave out:"
cat "$work/floor"
echo
on_cpu "$bin/memory" --workers 1
