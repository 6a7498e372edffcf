#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks tests/static/any_thread.txt, which names the test of each two calls of any threads at once:
# every such function of volt.h, by its declaration and by the manual's list, is in one class; every
# cell is there once; each test that a cell names has passed, and each scenario and thread exists.
# Functions that the manual lists for the task which owns an object are in no class.
#   sh tests/static/any_thread.sh volt.h LOG...
# Last line: "any_thread: N passed, N failed, 0 skipped".
file=$1
shift
here=$(dirname "$0")

{
    sed -n 's/^SCENARIO(\([a-z0-9_]*\).*/model:\1/p' "$here"/../model/model_*.c
    sed -n 's/^static void \([a-z0-9_]*\)(void \*arg) {.*/sim:\1/p' "$here"/../sim/*.h
    awk '$1 == "ok" { print "test:" $2 }' "$@"
} | awk '
# ---- the existing tests, scenarios and threads
FILENAME == "-" { is_there[$1] = 1; next }

# ---- volt.h: the functions that any thread may call, by the declarations and by the manual
FILENAME == header {
    if (/^\/\/ >>await  /) in_api = 1 # and >>api
    if (/^\/\/ >>cxx/) in_api = 0
    if (/^\/\/   any thread  *volt_/) in_list = 1
    if (/^\/\/   plain thread  /) in_list = 0
    if (in_list) list = list substr($0, 3)
    if (/^\/\/   its own task  /) in_own = 1
    if (/^\/\/   inside a task /) in_own = 0
    if (in_own) own = own substr($0, 3)
    if (in_api && /^(VOLT_API|static inline) /) { decl = ""; in_decl = 1 }
    if (!in_decl) next
    decl = decl " " $0
    if (!/[;{]/) next
    in_decl = 0
    if (!match(decl, /volt_[a-z0-9_]*\(/)) next
    name = substr(decl, RSTART, RLENGTH - 1)
    if (decl ~ /volt_cx \*/ || name ~ /_sync$|^volt__/) next
    if (name ~ /^volt_(run|block_on|rt_step|rt_deadline)$/) next
    may[name] = 1
    next
}

# ---- the table
/^#/ || NF == 0 { next }
$1 == "uncovered" { limit = $2; next }
$1 == "family" {
    for (i = 3; i <= NF; i++) family[$i] = $2
    n_in[$2] = NF - 2
    for (i = 3; i <= NF; i++) member[$2, i - 2] = $i
    next
}
$1 == "class" {
    for (i = 3; i <= NF; i++) {
        if ($i in class) wrong(FNR, $i " is in two classes")
        class[$i] = $2
    }
    next
}
$1 == "cell" {
    key = $2 " " $3
    if (key in cell) wrong(FNR, key " stands twice")
    cell[key] = $4
    line[key] = FNR
    if ($4 !~ /^[=!?]$/ || NF < 5) wrong(FNR, "no = ! or ?, or nothing behind it")
    if ($4 == "?") n_open++
    for (i = 5; $4 == "=" && i <= NF; i++)
        if ($i in is_there) n_ok++
        else wrong(FNR, $i " does not exist, or has not passed")
    next
}
{ wrong(FNR, "is nothing that a line may be") }

function wrong(at, what) { print table ":" at ": " what; n_wrong++ }
# 1: one of these n words of the manual names it, alone or with others.
function is_among(name, words, n,    i, w) {
    for (i = 1; i <= n; i++) {
        w = words[i]
        if (w == name) return 1
        if (w ~ /\*$/ && index(name, substr(w, 1, length(w) - 1)) == 1) return 1
    }
    return 0
}
function is_listed(name) { return is_among(name, word, n_words) }
function want(a, b) {
    if ((a " " b) in cell) { used[a " " b] = 1; n_ok++ }
    else wrong(0, "no cell for " a " and " b)
}
END {
    gsub(/[,;.]/, " ", list)
    n_words = split(list, word, " ")
    gsub(/[,;.]/, " ", own)
    n_own = split(own, own_word, " ")
    for (name in may) {
        if (!(name in class) && is_among(name, own_word, n_own)) continue
        n_may++
        if (!(name in class)) wrong(0, name " is in no class")
        else if (!is_listed(name)) wrong(0, name ": the manual does not say that any thread may")
        else n_ok++
    }
    for (i = 1; i <= n_words; i++)
        if (word[i] ~ /^volt_/ && word[i] !~ /\*$/ && !(word[i] in class))
            wrong(0, word[i] " is in the list of the manual and in no class")
    for (name in class)
        if (!(name in may) && !is_listed(name)) wrong(0, name " is no call of any thread")
    for (f in n_in)
        for (i = 1; i <= n_in[f]; i++) {
            for (j = i; j <= n_in[f]; j++) want(member[f, i], member[f, j])
            n = split("shutdown destroy end fork", column, " ")
            for (j = 1; j <= n; j++) want(member[f, i], column[j])
        }
    for (key in cell) if (!(key in used)) wrong(line[key], key " is no cell")
    if (n_may < 100) wrong(0, "the declarations are not found")
    if (n_open != limit)
        wrong(0, n_open + 0 " cells without cover, and not " limit ": " \
            (n_open > limit ? "play them" : "let the number fall"))
    printf "any_thread: %d passed, %d failed, 0 skipped\n", n_ok, n_wrong
}' header="$file" table="$here/any_thread.txt" - "$file" "$here/any_thread.txt"
