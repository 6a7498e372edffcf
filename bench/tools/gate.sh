#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Limits the cost of an operation, in figures that repeat: instructions, locked instructions and
# system calls, counted by callgrind with one worker, against those of bench/results/gate.txt, or
# gate_clang.txt if clang builds the programs.
#
#   bench/tools/gate.sh [ROW...]     default: S1 S6 S8, all of C1 to C6, T1a T1b T1c; by clang, S1
#                                    S6 S8 C5b C6a
#   bench/tools/gate.sh --update     writes the table
#
# Environment: CC=cc  VOLT=. (the directory of volt.h)  OUT=build/bench/gate
#              GATE_FORCE=1 judges the figures of another compiler or C library, too
#
# instructions  per operation, in user space
# locked        per operation: executed instructions that lock a line: with a lock prefix, or an
#               xchg with memory; mfence counts as well
# calls         system calls per 1000 operations
#
# All are of a build with BENCH_COUNTED (bench/rows/counted.h), and the difference between runs of
# 1 and of 2 repetitions: start and end do not count. A figure more than 0.5 % above its own of the
# table fails the gate; one that is as much below should be recorded by --update. Figures of another
# compiler or C library are not compared: a message reports that, and the gate passes.
set -eu
cc=${CC:-cc}
volt=${VOLT:-.}
out=${OUT:-build/bench/gate}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}
for tool in valgrind objdump; do
    command -v "$tool" >/dev/null || fail "$tool is missing: package valgrind, package binutils"
done

# The figures also depend on these, beside volt.h and the benchmarks.
printf '%s\n' '#include <features.h>' '#ifdef __clang__' 'clang' '#else' 'gcc' '#endif' \
    '__VERSION__' '#ifdef __x86_64__' 'x86_64' '#endif' 'glibc __GLIBC__.__GLIBC_MINOR__' \
    >"$work/with.c"
with=$("$cc" -E -P "$work/with.c" | tr -d '"' | tr -s ' \n' ' ')
with=$(echo "$with" | sed 's/ *\. */./g; s/^ //; s/ $//')
case $with in
clang*) table=bench/results/gate_clang.txt rows='S1|S6|S8|C5b|C6a' ;;
*) table=bench/results/gate.txt rows='S[168]|C[1-6][a-z]+|T1[abc]' ;;
esac
given=$(sed -n 's/^# with: //p' "$table" 2>/dev/null) || given=
update=
if [ "${1:-}" = --update ]; then
    update=1
    shift
    [ $# -eq 0 ] || fail "--update takes no rows"
elif [ "$with" != "$given" ] && [ -z "${GATE_FORCE:-}" ]; then
    echo "not compared: this is $with; $table is of $given (GATE_FORCE=1 compares all the same)"
    exit 0
fi
case $with in
*x86_64*) ;;
*) fail "counts the locked instructions of x86-64 only" ;;
esac

# build PROGRAM  Static, for fixed addresses that objdump knows. A static program that can look up
# names makes the linker warn.
build() {
    "$cc" -std=gnu11 -O2 -DNDEBUG -DBENCH_COUNTED "-I$volt" -pthread -static \
        "bench/rows/$1.c" -o "$out/$1" 2>"$work/log" || { cat "$work/log" >&2 && exit 1; }
    objdump -d --no-show-raw-insn "$out/$1" | awk '
        $2 == "lock" || $2 == "mfence" || ($2 ~ /^xchg/ && /\(/) {
            print "0x" substr($1, 1, length($1) - 1)
        }
    ' >"$out/$1.locked"
    "$out/$1" --list | sed "s/^/$1 /" >>"$work/all"
}
mkdir -p "$out"
: >"$work/all"
for program in sched sync chan timer; do build "$program"; done
if [ $# -eq 0 ]; then
    grep -E " ($rows)\$" "$work/all" >"$work/rows"
else
    for row in "$@"; do grep " $row\$" "$work/all" || fail "$row: no such row"; done >"$work/rows"
fi

# count PROGRAM ROW REPS  "instructions locked calls" of the whole run. The environment would move
# the stack, and the processor's features select functions of the C library.
count() {
    file=$work/$2.$3
    env -i GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM,-SSE4_2 "PATH=$PATH" valgrind \
        --tool=callgrind --callgrind-out-file="$file" --dump-instr=yes --dump-line=no \
        --compress-pos=no --compress-strings=no --collect-systime=usec \
        "$out/$1" "$2" --reps "$3" >"$file.log" 2>&1 || { cat "$file.log" >&2 && return 1; }
    awk '
        FNR == NR { locked[$1] = 1; next }
        /^summary:/ { instructions = $2; calls = $3 }
        /^calls=/ { getline; next } # instructions of a callee count where it is executed
        $1 in locked { n += $2 }
        END { print instructions, n + 0, calls }
    ' "$out/$1.locked" "$file" >"$file.sum"
    rm "$file"
}

# Both runs of a row at once.
: >"$work/figures"
while read -r program row; do
    count "$program" "$row" 1 &
    first=$!
    count "$program" "$row" 2
    wait "$first" || exit 1
    ops=$(awk -v row="$row" '
        $1 == "row" { for (i = 1; i <= NF; i++) if ($i == "ops") at = i - 1 } # "min ns": one column
        $1 == row { print $at }
    ' "$work/$row.1.log")
    [ "${ops:-0}" -gt 0 ] || fail "$row: no figures"
    paste -d ' ' "$work/$row.1.sum" "$work/$row.2.sum" | awk -v row="$row" -v ops="$ops" '
        { printf "%-6s %12.2f %8.3f %8.2f\n", row, ($4 - $1) / ops, ($5 - $2) / ops,
              ($6 - $3) / ops * 1000 }' >>"$work/figures"
done <"$work/rows"

if [ -n "$update" ]; then
    {
        echo '# Written by bench/tools/gate.sh --update, which says what the columns are.'
        echo "# with: $with"
        printf '%-6s %12s %8s %8s\n' row instructions locked calls
        cat "$work/figures"
    } >"$work/table"
    cp "$work/table" "$table"
    echo "wrote $table"
    exit 0
fi

# Printing one more figure takes a hundredth or two of an instruction.
awk '
function look(what, is, was, least,    d) {
    d = is - was
    if (d <= was * 0.005 + least && -d <= was * 0.005 + least) return
    note = note sprintf("  %s %+.1f %%", what, was > 0 ? d / was * 100 : 100)
    if (d > 0) n_risen++
    else n_fallen++
}
FNR == NR && /^(#|row)/ { next }
FNR == NR { instructions[$1] = $2; locked[$1] = $3; calls[$1] = $4; next }
FNR == 1 {
    format = "%-6s %12s %8s %8s   %12s %8s %8s%s\n"
    printf format, "", "", "", "", "", "", "table", ""
    printf format, "row", "instructions", "locked", "calls", "instructions", "locked", "calls", ""
}
{
    note = ""
    if ($1 in calls) {
        look("instructions", $2, instructions[$1], 0.02)
        look("locked", $3, locked[$1], 0)
        look("calls", $4, calls[$1], 0.005)
    } else {
        note = "  not in the table"
        n_missing++
    }
    printf format, $1, $2, $3, $4, instructions[$1], locked[$1], calls[$1], note
}
END {
    if (n_fallen)
        print n_fallen " figures fell by more than 0.5 %: renew the table by " \
            "bench/tools/gate.sh --update"
    if (n_missing) print n_missing " rows are not in the table"
    if (n_risen) print n_risen " figures rose by more than 0.5 %"
    print n_risen + n_missing ? "gate: failed" : "gate: passed"
    exit n_risen + n_missing > 0
}' "$table" "$work/figures"
