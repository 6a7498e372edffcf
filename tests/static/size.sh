#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The size of volt.h: text + data at -Os without debug checks, for each compiler named, as a table
# for bench/README.md: the whole implementation, and programs without unused functions; a second
# table of the whole without each part that a macro leaves out; and the time that the host's
# compiler takes to read the header without the implementation. Fails where Thumb-2
# takes more than 100 KiB for all, 30 for the plain echo server, 22 for its form with one thread.
# `make size` runs it:
#   size.sh DIR NAME=COMMAND...     a missing command is named, and the script fails
#   PARTS= size.sh ...              the first table only
set -u
export LC_ALL=C
dir=$1 rc=0
shift
mkdir -p "$dir"

# size_of COMMAND...  The bytes of text and data, or nothing if it does not compile.
size_of() {
    "$@" -o "$dir/volt.o" && size "$dir/volt.o" | awk 'NR == 2 { printf "%d + %d", $1, $2 }'
}

# row NAME COMMAND...
row() {
    line="| $1" all="$dir/all-$1"
    shift
    : > "$all"
    for what in "$dir/all.c" \
        'tests/static/size_echo.c -DVOLT_STATIC' \
        'tests/static/size_echo.c -DVOLT_STATIC -DVOLT_SINGLE_THREAD' \
        'examples/03_echo.c -DVOLT_STATIC' \
        'examples/01_hello.c -DVOLT_STATIC' \
        'examples/01_hello.c -DVOLT_STATIC -DVOLT_SINGLE_THREAD -DVOLT_NO_IO'; do
        # shellcheck disable=SC2086 # a list of words
        bytes=$(size_of "$@" -Os -std=gnu11 -DNDEBUG -I. -c $what) || rc=1
        line="$line | ${bytes:-does not compile}"
        [ -s "$all" ] || echo "$bytes" > "$all"
    done
    echo "$line |"
    case $line in '| Thumb-2 |'*) limit "$line" ;; esac
}
# without WHAT TARGET...  A row of the second table: the whole without the parts that these macros
# leave out, and in brackets the bytes that this saves.
without() {
    line="| $1" flags=$(printf -- "-D%s " $1)
    shift
    for target; do
        all="$dir/all-${target%%=*}"
        [ -s "$all" ] || continue
        # shellcheck disable=SC2086 # lists of words
        bytes=$(size_of ${target#*=} -Os -std=gnu11 -DNDEBUG -I. $flags -c "$dir/all.c") || rc=1
        saved=$(echo "$(cat "$all") + $bytes" | awk '{ print $1 + $3 - $5 - $7 }')
        line="$line | ${bytes:-does not compile} (-$saved)"
    done
    echo "$line |"
}
# limit LINE  The limit of the design.
limit() {
    echo "$1" | awk -F'[|+]' '{
        split("102400 30720 22528", most, " ")
        for (i = 1; i <= 3; i++)
            if ($(2 * i + 1) + $(2 * i + 2) > most[i]) bad = bad " more than " most[i] " bytes"
        if (bad) print bad
        exit bad != "" }' || rc=1
}

missing() {
    case $1 in
    *-gcc) echo "$1: not found; Debian package: gcc-${1%-gcc}" ;;
    *) echo "$1: not found" ;;
    esac
    rc=1
}

printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' > "$dir/all.c"
echo '| text + data, bytes | all | plain echo server | with VOLT_SINGLE_THREAD | 03_echo |' \
    '01_hello | with VOLT_SINGLE_THREAD, VOLT_NO_IO |'
echo '|---|---|---|---|---|---|---|'
for target; do
    command=${target#*=}
    if command -v "${command%% *}" >/dev/null; then
        # shellcheck disable=SC2086 # the command is a list of words
        row "${target%%=*}" $command
    else
        missing "${command%% *}"
    fi
done

all_parts='VOLT_NO_UDP VOLT_NO_UNIX VOLT_NO_STREAM VOLT_NO_SIGNAL VOLT_NO_PROCESS VOLT_NO_FILES'
parts=${PARTS-$all_parts}
[ -n "$parts" ] || exit $rc
echo
printf '| all, text + data, without'
for target; do [ ! -s "$dir/all-${target%%=*}" ] || printf ' | %s' "${target%%=*}"; done
printf ' |\n|---'
for target; do [ ! -s "$dir/all-${target%%=*}" ] || printf '|---'; done
echo '|'
for part in $parts; do without "$part" "$@"; done
without "$parts" "$@"
echo

# ns_of FILE  The time of one run.
ns_of() {
    start=$(date +%s%N)
    ${CC:-cc} -fsyntax-only -I. "$1" || exit 1
    echo $(($(date +%s%N) - start))
}
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1e6 }'; }

runs=21
printf '#include <stddef.h>\n#include <stdint.h>\n' > "$dir/empty.c"
{ cat "$dir/empty.c" && echo '#include "volt.h"'; } > "$dir/header.c"
for file in empty header; do : > "$dir/$file.ns"; done
for _ in $(seq $runs); do # in turn: a slow phase of the machine affects both
    for file in empty header; do ns_of "$dir/$file.c" >> "$dir/$file.ns" || exit 1; done
done
empty=$(median < "$dir/empty.ns") header=$(median < "$dir/header.ns")
echo "header     $(awk "BEGIN { printf \"%.1f\", $header - $empty }") ms to parse:" \
    "$header ms less $empty ms for what it includes; median of $runs"
exit $rc
