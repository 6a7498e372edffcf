#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks the table of promises of locks and channels in >>sema: the test in each line must exist,
# have run, and have passed.
#   sh tests/static/semantics.sh volt.h LOG...
# Last line: "semantics: N passed, N failed, 0 skipped".
file=$1
shift
awk '
FNR == NR && /^\/\/ ---- / { is_table = /promises of locks and channels/ }
FNR == NR && is_table && /^\/\/   [a-z]/ { want[$NF] = FNR; n_rows++ }
FNR < NR && $1 == "ok" { has_passed[$2] = 1 }
END {
    for (name in want) {
        if (name in has_passed) { n_passed++; continue }
        print ARGV[1] ":" want[name] ": no test " name " has passed"
        n_failed++
    }
    if (n_rows < 40) { print "the table is not there, or has lost its lines"; n_failed++ }
    printf "semantics: %d passed, %d failed, 0 skipped\n", n_passed, n_failed
}' "$file" "$@"
