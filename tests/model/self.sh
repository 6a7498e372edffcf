#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The checker's own mutants: builds it once with each defect that internal.h lists; a litmus program
# must notice. A defect that none notices is a failure: the table lacks a program.
#   sh tests/model/self.sh build-dir compiler
set -u
dir=$1 cc=$2
here=$(dirname "$0")
out=$dir/self
mkdir -p "$out"
passed=0 failed=0
for mutant in $(sed -n 's/^    \(NO_[A-Z_]*\)\( = 1\)*, *\/\/.*/\1/p' "$here/internal.h"); do
    for part in memory shadow search; do
        "$cc" -std=gnu11 -O1 -fno-pie -I"$here" -DVMC_MUTANT="$mutant" -c "$here/$part.c" \
            -o "$out/$part.o" || exit 1
    done
    "$cc" -no-pie "$dir/model_litmus.o" "$dir"/litmus_*.part.o "$out"/*.o \
        $(ls "$dir"/*.part.o | grep -v 'litmus_\|memory\|shadow\|search') -o "$out/litmus" || exit 1
    timeout 300 "$out/litmus" -q -f > "$out/log" 2>&1
    noticed=$(sed -n 's/^FAIL  *\(.*[^ ]\)  *\(EXHAUSTIVE\|BOUNDED\|fails as\).*/\1/p' "$out/log")
    why=$(sed -n 's/^  \([^ ].*\)/\1/p' "$out/log" | tail -n 1)
    if [ -n "$noticed" ]; then
        passed=$((passed + 1))
        printf 'ok   %-16s %s: %s\n' "$mutant" "$(echo $noticed)" "$why"
    else
        failed=$((failed + 1))
        printf 'FAIL %-16s no litmus program notices\n' "$mutant"
    fi
done
echo "self: $passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
