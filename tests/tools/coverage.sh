#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Line and branch coverage of volt.h, summed over many programs. Needs a POSIX shell, awk and gcov.
#   sh tests/tools/coverage.sh DIR... [> report]
# Every .gcda below the directories counts. Prints each line and each branch that no program took,
# unless tests/tools/coverage.txt gives a reason for it; then stale entries of that list, then the
# sums. Exit status 1: below the goals, or the list and the results differ.
#
# A branch is one outcome of one condition at -O0, so that each operand of && and || has two of its
# own. Those of VOLT_ASSERT are not counted, as the other outcome is a defect; nor are those inside
# VOLT_BEGIN and VOLT_AWAIT, which are mostly for misuse. Where builds differ in the number of
# branches of a line, as constants do, each form counts by itself.
here=$(dirname "$0")
list=$here/coverage.txt
LINES_WANTED=${LINES_WANTED:-95}
BRANCHES_WANTED=${BRANCHES_WANTED:-90}

find "$@" -name '*.gcda' | LC_ALL=C sort | while read -r data; do
    gcov --branch-probabilities --branch-counts --stdout "$data" 2>/dev/null
    echo 'end of program'
done | LC_ALL=C awk -v list="$list" -v lines_wanted="$LINES_WANTED" \
    -v branches_wanted="$BRANCHES_WANTED" '
# ---- the output of gcov: "count: line: text", below it "branch N taken M"
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function end_line(    i, key) {
    if (!line) return
    for (i = 0; i < n; i++) {
        key = line SUBSEP n SUBSEP i
        taken[key] += count[i]
        if (n > forms[line]) forms[line] = n
        has_form[line, n] = 1
    }
    line = n = 0
}
/^end of program$/ { end_line(); programs++; in_volt = 0; next }
/^ *-: *0:Source:/ { end_line(); in_volt = $0 ~ /(^|[:\/])volt\.h$/; next }
!in_volt { next }
/^function / { end_line(); fn = $2; next }
/^branch / {
    count[n++] = $3 == "never" ? 0 : $4
    next
}
/^ *[-#=0-9*]+: *[0-9]+:/ {
    end_line()
    split($0, part, ":")
    hits = trim(part[1]); line = part[2] + 0
    if (hits == "-") { line = 0; next }
    if (!(line in text)) {
        text[line] = trim(substr($0, index(substr($0, index($0, ":") + 1), ":") + \
            index($0, ":") + 1))
        sub(/ *\/\/ .*/, "", text[line])
        func_of[line] = fn
        if (line > last) last = line
    }
    ran[line] += hits + 0
}

# ---- the list: "line|branch  function  text: reason" in fields separated by " | "
function read_list(    s, f, i, n_fields) {
    while ((getline s < list) > 0) {
        if (s ~ /^(#|$)/) continue
        n_fields = split(s, f, / \| /)
        if (n_fields < 5) { print list ": not five fields: " s; bad++; continue }
        for (i = 5; i < n_fields; i++) f[4] = f[4] " | " f[i] # the text may have some too
        reason[f[1], f[2], f[3], f[4]] = f[n_fields]
    }
}
# 1: the list has it. "sometimes" marks a random outcome; it is never stale.
function is_listed(kind, l,    found, how) {
    for (how = 1; how <= 2; how++) {
        key = (how == 1 ? "never" : "sometimes") SUBSEP kind SUBSEP func_of[l] SUBSEP text[l]
        if (key in reason) { met[key] = 1; found = 1 }
    }
    return found
}
function is_macro(l) {
    return text[l] ~ /VOLT_(ASSERT|BEGIN|AWAIT)\(/ ||
        text[l - 1] ~ /VOLT_(ASSERT|AWAIT)\([^;]*$/
}

END {
    end_line()
    read_list()
    for (l = 1; l <= last; l++) {
        if (!(l in text)) continue
        n_lines++
        if (ran[l]) hit_lines++
        else if (is_listed("line", l)) listed++
        else { print "volt.h:" l ": " func_of[l] ": not run: " text[l]; bad++ }
        if (is_macro(l)) { in_macros += forms[l]; continue }
        for (n = 1; n <= forms[l]; n++) {
            if (!((l, n) in has_form)) continue
            missing = ""
            for (i = 0; i < n; i++) {
                n_branches++
                if (taken[l, n, i]) hit_branches++
                else missing = missing " " i
            }
            if (missing == "" || !ran[l]) continue
            if (is_listed("branch", l)) listed++
            else {
                print "volt.h:" l ": " func_of[l] ": branches not taken:" missing " of " n ": " \
                    text[l]
                bad++
            }
        }
    }
    for (key in reason) if (!(key in met) && key ~ /^never/) {
        split(key, f, SUBSEP)
        print list ": covered, or gone: " f[2] " | " f[3] " | " f[4]
        bad++
    }
    if (!n_lines || !n_branches) { print "coverage: nothing was measured"; exit 1 }
    p = 100 * hit_lines / n_lines; q = 100 * hit_branches / n_branches
    printf "coverage of volt.h by %d programs: lines %.2f %% (%d of %d), ", programs, p, \
        hit_lines, n_lines
    printf "branches %.2f %% (%d of %d; %d inside macros not counted)\n", q, hit_branches, \
        n_branches, in_macros
    printf "coverage: %d listed with their reason, %d to be settled\n", listed, bad
    if (p < lines_wanted || q < branches_wanted || bad) exit 1
}'
