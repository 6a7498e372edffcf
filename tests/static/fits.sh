#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks that the defects of tests/model/mutants*.txt and tests/sim/mutants.sh still fit volt.h: a
# defect whose text is missing, or found in another place, tests nothing. The runs that apply them
# take long; this takes a second.
#   sh tests/static/fits.sh [volt.h]
# Last line: "fits: N passed, N failed, 0 skipped".
header=${1:-volt.h}
here=$(dirname "$0")

awk '
function strip(s) { sub(/^[ \t]+/, "", s); return s }
function misfit(what) { print what; n_bad++ }
# ---- of the model: a text within one line; "@": the first occurrence after this
function model_edit(old, after,    i, from, n) {
    from = 1
    if (after != "") for (; from <= n_lines && !index(line[from], after); from++) {}
    for (i = from; i <= n_lines; i++) n += index(line[i], old) > 0
    n_edits++
    if (n == 0 || (n > 1 && after == "")) misfit(name ": " n + 0 " times in volt.h: " old)
}
# ---- of the simulation: whole consecutive lines
function sim_edit(    i, k, n) {
    if (!n_want) return
    for (i = 1; i + n_want - 1 <= n_lines; i++) {
        for (k = 1; k <= n_want && strip(line[i + k - 1]) == want[k]; k++) {}
        n += k > n_want
    }
    n_edits++
    if (n != 1) misfit(name ": " n + 0 " times in volt.h: " want[1])
    n_want = 0
}
FNR == 1 { file++; after = "" }
file == 1 { line[FNR] = $0; n_lines = FNR; next }
FILENAME ~ /\.txt$/ && /^mutant / { name = $2; after = "" }
FILENAME ~ /\.txt$/ && /^@ / { after = substr($0, 3) }
FILENAME ~ /\.txt$/ && /^- / { model_edit(substr($0, 3), after); after = "" }
FILENAME ~ /\.sh$/ && /^@ / { sim_edit(); name = $2 }
FILENAME ~ /\.sh$/ && /^- / { want[++n_want] = substr($0, 3) }
END {
    sim_edit()
    printf "fits: %d passed, %d failed, 0 skipped\n", n_edits - n_bad, n_bad
    exit n_bad > 0
}' "$header" "$here"/../model/mutants*.txt "$here/../sim/mutants.sh"
