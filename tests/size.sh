#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# What volt.h costs: text and data of the whole implementation for each compiler named, without
# debug checks, and the time that the host's compiler takes to read the header without it.
# `make size` runs it:
#   size.sh DIR NAME=COMMAND...     a command that is not there is named, and the script fails
set -u
export LC_ALL=C
dir=$1 rc=0
shift
mkdir -p "$dir"

# size_of NAME LEVEL COMMAND...
size_of() {
    name=$1 level=$2
    shift 2
    "$@" "$level" -std=gnu11 -DNDEBUG -x c -DVOLT_IMPLEMENTATION -c volt.h -o "$dir/volt.o" ||
        return
    size "$dir/volt.o" | awk -v name="$name" -v level="$level" 'NR == 2 {
        printf "%-10s %s  text %6d  data %4d  bss %4d\n", name, level, $1, $2, $3 }'
}

say_missing() {
    case $1 in
    *-gcc) echo "$1: not found; Debian package: gcc-${1%-gcc}" ;;
    *) echo "$1: not found" ;;
    esac
}

for target; do
    command=${target#*=}
    if ! command -v "${command%% *}" > /dev/null; then
        say_missing "${command%% *}"
        rc=1
        continue
    fi
    for level in -Os -O2; do
        # shellcheck disable=SC2086 # the command is a list of words
        size_of "${target%%=*}" $level $command || rc=1
    done
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
