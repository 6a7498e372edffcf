#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# All rows with one worker, each against its floor; then M1 to M4: memory, startup, idleness.
#
#   bench/tools/run.sh [DIRECTORY]     of the programs, which make builds there; default:
#                                      build/bench
#
# Environment, with its defaults:
#   ROWS= ROW=    rows, such as 'S1 S6 M1'; none: all
#   PAIRS=9       runs of a row and of its floor, in turn: A B, B A, A B and so on
#   RUNS=11       of a process that does a row twice; 0: none
#   SECONDS_IDLE=10    duration of M4
#   BENCH_JSON=   if set, a line of JSON for each row follows at the end
#
# ns/op, cpu, wakes and calls (see bench/rows/bench.h), floor and floor+ are medians of all pairs;
# each run is a process, and yields the median of its repetitions. A floor is the least that the
# operation takes on one thread; floor+ adds the atomic operations, or the reading of the clock,
# that an operation open to other threads needs (see bench/rows/floor.c). The last three columns are
# whole processes, start and end included, timed by hyperfine. Single-threaded programs run on CPU
# 0. Fails if a row yields a wrong sum, or allocates where it must not.
set -eu
bin=${1:-build/bench}
pairs=${PAIRS:-9}
runs=${RUNS:-11}
rows="${ROWS:-} ${ROW:-}"
json=${BENCH_JSON:-}
unset BENCH_JSON
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The programs that may exist; those whose rows have threads of their own.
programs='sched timer sync chan outside wake'
floors='floor floor_outside'
threaded='outside wake'
# Rows of many seconds: one pair of one repetition, and no process.
slow='T2'

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}
need() { command -v "$1" >/dev/null || fail "$1 is missing: install the package $2"; }
is_among() {
    case " $2 " in *" $1 "*) ;; *) return 1 ;; esac
}
is_wanted() { [ -z "${rows# }" ] || is_among "$1" "$rows"; }
existing() {
    for name; do [ ! -e "$here/../rows/$name.c" ] || echo "$name"; done
}
need taskset util-linux
[ "$runs" -eq 0 ] || need hyperfine hyperfine

# ---- the existing rows: program, row, program and rows of its floor

# shellcheck disable=SC2086 # lists of words, here and below
build() {
    programs=$(existing $programs)
    floors=$(existing $floors)
    for name in $programs $floors memory hello idle; do echo "$bin/$name"; done >"$work/targets"
    xargs make -s <"$work/targets" || exit 1
}
floor_of() {
    awk -v id="$1" '$2 == id || index($2, id "+") == 1 { program = $1; rows = rows " " $2 }
        END { print program rows }' "$work/floors"
}
find_rows() {
    for name in $floors; do
        "$bin/$name" --list >"$work/list" || fail "$name has no --list"
        sed "s/^/$name /" "$work/list" >>"$work/floors"
    done
    for name in $programs; do
        "$bin/$name" --list >"$work/list" || fail "$name has no --list"
        while read -r id; do
            if is_wanted "$id"; then echo "$name $id $(floor_of "$id")"; fi
        done <"$work/list"
    done >"$work/rows"
    for id in $rows; do
        case $id in M[1-4]) continue ;; esac
        awk -v id="$id" '$2 == id { n++ } END { exit !n }' "$work/rows" || fail "$id: no such row"
    done
}

# ---- runs

# pinned PROGRAM COMMAND...  On CPU 0, unless rows of this program have threads of their own.
pinned() {
    if is_among "$1" "$threaded"; then
        shift
        "$@"
    else
        shift
        taskset -c 0 "$@"
    fi
}
# take NAME PROGRAM ITSELF-OR-FLOOR ARGUMENT...  One run for a row of this program: a line of
# $work/runs for each row or floor.
take() {
    who=$1 of=$2 program=$3
    shift 3
    pinned "$of" "$bin/$program" "$@" >"$work/out" </dev/null || exit 1
    awk -v who="$who" '$1 != "row" {
        printf "%s %s %s %s %s %s", who, $1, $4, $5, $6, $7
        for (i = 9; i <= NF; i++) printf " %s", $i
        print ""
    }' "$work/out" >>"$work/runs"
}
# pair N PROGRAM ROW FLOOR...
pair() {
    n=$1 of=$2 id=$3 volt_reps=3 floor_reps=5
    shift 3
    if is_among "$id" "$slow"; then
        [ "$n" -eq 1 ] || return 0
        volt_reps=1 floor_reps=1
    fi
    order='volt floor'
    [ $((n % 2)) -eq 1 ] || order='floor volt'
    for side in $order; do
        case $side-$# in
        volt-*) take volt "$of" "$of" "$id" --workers 1 --reps "$volt_reps" ;;
        floor-0) ;;
        *) take floor "$of" "$@" --reps "$floor_reps" ;;
        esac
    done
}
# process PROGRAM ITSELF-OR-FLOOR ROW  Median time of the whole process in ms.
process() {
    pinned "$1" hyperfine -N --style none --warmup 1 --runs "$runs" --export-csv "$work/csv" \
        "$bin/$2 $3 --reps 1" >"$work/log" 2>&1 </dev/null || { cat "$work/log" >&2 && exit 1; }
    awk -F , 'NR == 2 { printf "%.3f", $4 * 1000 }' "$work/csv"
}
# processes PROGRAM ROW [FLOOR ROW...]
processes() {
    of=$1 id=$2 volt_ms=- floor_ms=-
    shift 2
    if [ "$runs" -gt 0 ] && ! is_among "$id" "$slow"; then
        volt_ms=$(process "$of" "$of" "$id")
        [ "${2:-}" != "$id" ] || floor_ms=$(process "$of" "$1" "$id")
    fi
    echo "$id $volt_ms $floor_ms" >>"$work/processes"
}

# ---- tables

# Of each row: id, ns, cpu, wakes, calls, floor, floor+, CPU time of the floor, ms of both
# processes, operation; - if missing. Then ns of all floors, on lines that begin with +.
medians() {
    awk '
    function sort(n,    i, j, v) { # x[1..n]
        for (i = 2; i <= n; i++) {
            v = x[i]
            for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
            x[j + 1] = v
        }
    }
    function median(who, id, what,    i, k) {
        k = n[who, id]
        if (k == 0 || at[who, id, what, 1] == "-") return "-"
        for (i = 1; i <= k; i++) x[i] = at[who, id, what, i] + 0
        sort(k)
        return (x[int((k + 1) / 2)] + x[int(k / 2) + 1]) / 2
    }
    FILENAME ~ /runs$/ {
        k = ++n[$1, $2]
        for (i = 3; i <= 6; i++) at[$1, $2, i, k] = $i
        operation[$1, $2] = ""
        for (i = 7; i <= NF; i++) operation[$1, $2] = operation[$1, $2] " " $i
        if (k > 1 || $1 != "floor") next
        floors[++n_floors] = $2
        id = $2
        if (sub(/[+].*/, "", id)) last_plus[id] = $2
        next
    }
    {
        plus = $1 in last_plus ? median("floor", last_plus[$1], 3) : "-"
        print $1, median("volt", $1, 3), median("volt", $1, 4), median("volt", $1, 5), \
            median("volt", $1, 6), median("floor", $1, 3), plus, median("floor", $1, 4), $2, \
            $3 operation["volt", $1]
    }
    END { for (i = 1; i <= n_floors; i++) print "+", floors[i], median("floor", floors[i], 3) }
    ' "$work/runs" "$work/processes"
}
table() {
    printf '%-5s %9s %9s %8s %8s %8s %6s %8s %6s  %8s %8s %6s  %s\n' row ns/op 'cpu ns' wakes \
        calls floor ratio floor+ ratio 'volt ms' 'floor ms' ratio operation
    awk '
    function known(x, width, digits) {
        return x == "-" ? sprintf("%" width "s", x) : sprintf("%" width "." digits "f", x)
    }
    function over(a, b) { return a == "-" || b == "-" || b <= 0 ? "-" : a / b }
    $1 != "+" {
        printf "%-5s %s %s %s %s", $1, known($2, 9, 2), known($3, 9, 2), known($4, 8, 5), \
            known($5, 8, 5)
        printf " %s %s", known($6, 8, 2), known(over($2, $6), 6, 1)
        printf " %s %s ", known($7, 8, 2), known(over($2, $7), 6, 1)
        printf " %s %s %s ", known($9, 8, 2), known($10, 8, 2), known(over($9, $10), 6, 1)
        for (i = 11; i <= NF; i++) printf " %s", $i
        print ""
    }' "$work/medians"
    printf '\nall floors, ns/op:\n'
    awk '$1 == "+" { printf "%-10s %8.2f\n", $2, $3 }' "$work/medians"
}
json_of_rows() {
    awk '
    function member(name, x) { if (x != "-") printf ",\"%s\":%.6g", name, x }
    function over(a, b) { return a == "-" || b == "-" || b <= 0 ? "-" : a / b }
    $1 != "+" {
        printf "{\"row\":\"%s\",\"workers\":1", $1
        member("ns", $2); member("cpu_ns", $3); member("wakes", $4); member("calls", $5)
        member("floor_ns", $6); member("floor_ratio", over($2, $6))
        member("floor_plus_ns", $7); member("floor_plus_ratio", over($2, $7))
        member("floor_cpu_ns", $8); member("process_ms", $9); member("floor_process_ms", $10)
        print "}"
    }' "$work/medians"
}

# ---- M1 to M4

# show FILE  Prints the text now; the JSON follows at the end.
show() {
    sed '/^{/d; /^idle$/d; /^awake$/d' "$1" # the last two are marks for tracing M4
    sed -n '/^{/p' "$1" >>"$work/json"
}
both() {
    env BENCH_JSON=1 "$@" >"$work/out" || { show "$work/out" && exit 1; }
    show "$work/out"
}
# The size of a small program, and the time to compile it: by tests/static/size.sh.
m3() {
    pinned hello "$bin/hello" --workers 1 >"$work/hello" || exit 1
    sh "$here/../../tests/static/size.sh" "$work" host="${CC:-cc}" >"$work/size" || exit 1
    awk '
    FILENAME ~ /hello$/ { if ($1 == "M3") { us = $4 / 1000; cpu = $5; calls = $7 } next }
    /^\| host / { split($0, part, " *[|] *"); text = part[6]; sub(/ .*/, "", text) }
    /^header / { header = $2 }
    END {
        if (us == "" || text == "" || header == "") exit 1
        printf "M3   %.1f us to begin, run a task and end; %d bytes of text: 01_hello, -Os; " \
            "%s ms to parse the header\n", us, text, header
        printf "{\"row\":\"M3\",\"workers\":1,\"ns\":%.6g,\"cpu_ns\":%.6g,\"calls\":%.6g," \
            "\"text_bytes\":%d,\"header_ms\":%s}\n", us * 1000, cpu, calls, text, header
    }' "$work/hello" "$work/size" >"$work/m3" || fail "M3: figures are missing"
    show "$work/m3"
}

build
find_rows
: >"$work/json"
: >"$work/runs"
: >"$work/processes"
if [ -s "$work/rows" ]; then
    k=0
    while [ $((k += 1)) -le "$pairs" ]; do
        # shellcheck disable=SC2086 # a list of words
        while read -r program id floor; do pair "$k" "$program" "$id" $floor; done <"$work/rows"
        [ ! -t 2 ] || printf '\rpair %d of %d' "$k" "$pairs" >&2
    done
    [ ! -t 2 ] || echo >&2
    # shellcheck disable=SC2086 # a list of words
    while read -r program id floor; do processes "$program" "$id" $floor; done <"$work/rows"
    medians >"$work/medians"
    table
    json_of_rows >>"$work/json"
    echo
fi
for id in M1 M2; do
    if is_wanted "$id"; then both taskset -c 0 "$bin/memory" "$id" --workers 1; fi
done
if is_wanted M3; then m3; fi
if is_wanted M4; then
    for workers in 2 64; do
        both "$bin/idle" --workers "$workers" --seconds "${SECONDS_IDLE:-10}"
    done
fi
[ -z "$json" ] || cat "$work/json"
