#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The cost of counters, tracing and the stack pattern in the scheduler: rows of bench/rows/sched.c
# with one worker.
#
#   bench/tools/inside.sh [NAME=FLAGS...]      more builds, such as before=-Ibuild/before
#
# Environment, with its defaults: CC=cc  PAIRS=11  ROWS='S1 S6 S8'  OUT=build/bench/inside
#                                 PARTS='shipped debug'
#
# shipped       builds with NDEBUG: `default`, one from a copy of volt.h without counters, and
#               one with VOLT_TRACE=1
# debug         builds without NDEBUG: `no-pattern` with VOLT_STACK_FILL=0, and `pattern`, which
#               fills VOLT_STACK_FILL bytes of stack before each poll. An operation of S8 is one
#               poll, one of S1 a spawn and a poll; S6 is left out
#
# instructions  per operation, in user space, of a build with BENCH_COUNTED: the count of callgrind
#               for one further repetition, so that start and end do not count. With its
#               clock two counts differ by less than 0.01. Reading a clock counts as a few, and each
#               step of a `rep stos` as one.
# ns            user and system time per operation: medians of PAIRS runs, all builds in turn; more:
#               the median of the rounds' differences to the first build; the ratio to that is the
#               median of the rounds' ratios, with an interval that holds it at 95 %, from the order
#               of the ratios alone.
set -eu
cc=${CC:-cc}
pairs=${PAIRS:-11}
all_rows=${ROWS:-S1 S6 S8}
parts=${PARTS:-shipped debug}
out=${OUT:-build/bench/inside}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}
for tool in valgrind nm; do
    command -v "$tool" >/dev/null || fail "$tool is missing: package valgrind, package binutils"
done

# build NAME FLAGS...  Two programs: one to count, one to time.
build() {
    name=$1
    shift
    set -- -std=gnu11 -O2 "$@" -I. -pthread bench/rows/sched.c
    "$cc" -DBENCH_COUNTED "$@" -o "$out/counted-$name"
    "$cc" "$@" -o "$out/timed-$name"
    names="$names $name"
}
# The counters of a worker are changed by statements of two forms. The counts of live tasks stay: a
# shutdown waits for them.
build_shipped() {
    mkdir -p "$out/uncounted"
    sed 's/w->stats\.[a-z_]*++;/(void)0;/
        s/w->stats\.[a-z_]* += [^();]*;/(void)0;/
        s/w->published = w->stats;/(void)0;/' volt.h >"$out/uncounted/volt.h"
    n=$(diff volt.h "$out/uncounted/volt.h" | grep -c '^>') || :
    [ "$n" -ge 15 ] || fail "volt.h counts in another way: only $n lines found"
    build default -DNDEBUG
    build uncounted -DNDEBUG "-I$out/uncounted"
    build trace -DNDEBUG -DVOLT_TRACE=1
    for more in "$@"; do
        # shellcheck disable=SC2086 # flags are words
        build "${more%%=*}" -DNDEBUG ${more#*=}
    done
}
build_debug() {
    build no-pattern -DVOLT_STACK_FILL=0
    build pattern
    nm "$out/timed-pattern" | grep -q ' volt__stack_fill$' || fail "a debug build fills no stack"
}

# collected NAME ROW REPS  Instructions of the whole run.
collected() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$out/counted-$1" "$2" --reps "$3" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
    awk '/Collected/ { print $NF }' "$work/log"
}
# instructions NAME ROW  Per operation.
instructions() {
    one=$(collected "$1" "$2" 1)
    two=$(collected "$1" "$2" 2)
    awk -v row="$2" -v n=$((two - one)) '$1 == row { printf "%.2f", n / $8 }' "$work/log"
}

# show_instructions  Of all builds and rows, compared with the first build.
show_instructions() {
    echo 'instructions per operation'
    printf '%-4s %-10s %12s %12s\n' row build instructions more
    for row in $rows; do
        base=
        for name in $names; do
            count=$(instructions "$name" "$row")
            [ -n "$count" ] || fail "$row: no such row"
            base=${base:-$count}
            awk -v row="$row" -v name="$name" -v n="$count" -v base="$base" \
                'BEGIN { printf "%-4s %-10s %12.2f %+12.2f\n", row, name, n, n - base }'
        done
    done
}

# timed ROUND  All builds once, in an order that rotates from round to round.
timed() {
    order=$names
    [ $(($1 % 2)) -eq 1 ] || order=$(echo "$names" | awk '{ for (i = NF; i; i--) print $i }')
    for row in $rows; do
        for name in $order; do
            "$out/timed-$name" "$row" --reps 1 >"$work/log"
            awk -v round="$1" -v name="$name" -v row="$row" \
                '$1 == row { print round, row, name, $5 }' "$work/log" >>"$work/ns"
        done
    done
}
show_times() {
    echo 'CPU time per operation'
    printf '%-4s %-10s %8s %8s %8s  %s\n' row build ns more ratio interval
    awk -v rows="$rows" -v names="$names" '
function sort(n,    i, j, v) { # x[1..n]
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
}
function middle(n) { return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2 }
# The rank from either end within which a median lies at 95 %; 0: there are too few.
function rank(n,    k, p, below) {
    p = 1 / 2 ^ n
    for (k = 0; below + p <= 0.025; k++) {
        below += p
        p = p * (n - k) / (k + 1)
    }
    return k
}
{ ns[$2, $3, $1] = $4; if ($1 > rounds) rounds = $1 }
END {
    n_rows = split(rows, row, " ")
    n_names = split(names, name, " ")
    for (i = 1; i <= n_rows; i++) for (j = 1; j <= n_names; j++) {
        for (r = 1; r <= rounds; r++) x[r] = ns[row[i], name[j], r]
        sort(rounds)
        printf "%-4s %-10s %8.2f", row[i], name[j], middle(rounds)
        if (j == 1) {
            print ""
            continue
        }
        for (r = 1; r <= rounds; r++) x[r] = ns[row[i], name[j], r] - ns[row[i], name[1], r]
        sort(rounds)
        printf " %+8.2f", middle(rounds)
        for (r = 1; r <= rounds; r++) x[r] = ns[row[i], name[j], r] / ns[row[i], name[1], r]
        sort(rounds)
        k = rank(rounds)
        if (k == 0) printf " %8.3f  none of so few rounds\n", middle(rounds)
        else printf " %8.3f  %.3f to %.3f\n", middle(rounds), x[k], x[rounds + 1 - k]
    }
}' "$work/ns"
}

# A part: its builds, its rows, and both tables.
mkdir -p "$out"
for part in $parts; do
    names='' rows=$all_rows
    case $part in
    shipped) build_shipped "$@" ;;
    debug)
        rows=$(for row in $rows; do [ "$row" = S6 ] || printf '%s ' "$row"; done)
        build_debug
        ;;
    *) fail "PARTS: $part is none; there are: shipped debug" ;;
    esac
    [ "$part" = "${parts%% *}" ] || echo
    echo "$part builds"
    show_instructions
    : >"$work/ns"
    round=0
    while [ $((round += 1)) -le "$pairs" ]; do timed "$round"; done
    echo
    show_times
done
