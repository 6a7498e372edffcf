#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# What volt.h costs: text + data of the implementation at -Os without debug checks, for each
# compiler named and each configuration, as a table for README.md; and the time that the host's
# compiler takes to read the header without the implementation. `make size` runs it:
#   size.sh DIR NAME=COMMAND...     a command that is not there is named, and the script fails
set -u
export LC_ALL=C
dir=$1 rc=0
shift
mkdir -p "$dir"

# size_of COMMAND...  The bytes of text and data, or nothing if it does not compile.
size_of() {
    "$@" -Os -std=gnu11 -DNDEBUG -x c -DVOLT_IMPLEMENTATION -c volt.h -o "$dir/volt.o" &&
        size "$dir/volt.o" | awk 'NR == 2 { printf "%d + %d", $1, $2 }'
}

# row NAME COMMAND...
row() {
    line="| $1"
    shift
    for flags in '' -DVOLT_NO_IO -DVOLT_SINGLE_THREAD '-DVOLT_NO_IO -DVOLT_SINGLE_THREAD'; do
        # shellcheck disable=SC2086 # a list of words
        bytes=$(size_of "$@" $flags) || rc=1
        line="$line | ${bytes:-does not compile}"
    done
    echo "$line |"
}

missing() {
    case $1 in
    *-gcc) echo "$1: not found; Debian package: gcc-${1%-gcc}" ;;
    *) echo "$1: not found" ;;
    esac
    rc=1
}

echo '| text + data, bytes | full | VOLT_NO_IO | VOLT_SINGLE_THREAD | both |'
echo '|---|---|---|---|---|'
for target; do
    command=${target#*=}
    if command -v "${command%% *}" >/dev/null; then
        # shellcheck disable=SC2086 # the command is a list of words
        row "${target%%=*}" $command
    else
        missing "${command%% *}"
    fi
done

# ns_of FILE  How long one run takes.
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
for _ in $(seq $runs); do # in turn: what slows the machine down meets both
    for file in empty header; do ns_of "$dir/$file.c" >> "$dir/$file.ns" || exit 1; done
done
empty=$(median < "$dir/empty.ns") header=$(median < "$dir/header.ns")
echo "header     $(awk "BEGIN { printf \"%.1f\", $header - $empty }") ms to parse:" \
    "$header ms less $empty ms for what it includes; median of $runs"
exit $rc
