#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Finds locals that start over at each poll. The lines above VOLT_BEGIN run again at each poll, so
# only const locals and the pointer to the state may stand there (rule 1 of the manual). No compiler
# warns of the others. Needs a POSIX shell and awk, and no compiler.
#   sh tests/static/above_begin.sh FILE...
# Prints each breach as file:line, then one line of the form "above_begin: N passed, N failed, 0
# skipped", which counts functions; fails at a breach, and if no function has a VOLT_BEGIN. A macro
# of the same file whose text begins with VOLT_BEGIN counts as one. Statics are not locals. A
# declaration that a macro makes is not seen.
LC_ALL=C awk '
# ---- text: `code` gets a file without comments; literals become 0; a #define is between \001
function read_line(s,    at, two, goes_on) {
    if (!in_block && !in_define && s ~ /^[ \t]*#/) {
        if (!sub(/^[ \t]*#[ \t]*define[ \t]*/, "", s)) s = ""
        else { in_define = 1; code = code "\001" }
    }
    if (in_define) goes_on = sub(/\\$/, "", s)
    while (s != "") {
        if (in_block) {
            at = index(s, "*/")
            if (!at) break
            s = substr(s, at + 2); in_block = 0
            continue
        }
        at = match(s, /["\047]|\/\/|\/\*/)
        if (!at) { code = code s; break }
        code = code substr(s, 1, at - 1)
        s = substr(s, at)
        two = substr(s, 1, 2)
        if (two == "//") break
        if (two == "/*") { in_block = 1; s = substr(s, 3); continue }
        if (!match(s, /^"([^"\\]|\\.)*"/) && !match(s, /^\047([^\047\\]|\\.)*\047/)) RLENGTH = 1
        code = code "0"
        s = substr(s, RLENGTH + 1)
    }
    if (in_define && !goes_on && !in_block) { code = code "\001"; in_define = 0 }
    code = code "\n"
}

# ---- statements: the current one inside each open brace
function enter(level) {
    depth = level
    text[depth] = ""
    n_of[depth] = parens = 0
}
# The braces of an initialiser or a type do not end the enclosing statement.
function open_brace(    head) {
    head = text[depth]
    gsub(/[ \n]+$/, "", head)
    is_inside[depth + 1] = parens > 0 || head ~ /=$/ || \
        (" " head) ~ /[^A-Za-z_0-9](struct|union|enum)( [A-Za-z_0-9]+)?$/
    outer_parens[depth + 1] = parens
    enter(depth + 1)
}
function close_brace() {
    parens = outer_parens[depth--]
    if (is_inside[depth + 1]) text[depth] = text[depth] " " body_
    else end_statement()
}
function end_statement() {
    statement[depth, ++n_of[depth]] = text[depth]
    line_of[depth, n_of[depth]] = text_line[depth]
    text[depth] = ""
}

# ---- declarations
# The name in a declarator: `*const p = q`, `a[3]`, `(*fn)(int)`; sets is_const.
function declared(d, type_is_const,    stars) {
    sub(/=.*/, "", d)
    if (match(d, /\( *\*[^()]*\)/)) d = substr(d, RSTART + 1, RLENGTH - 2)
    gsub(/\[[^]]*\]/, " ", d)
    gsub(/ +$/, "", d)
    is_const = type_is_const || d ~ /&/
    stars = d
    if (sub(/.*\*/, "", stars)) is_const = stars ~ /^ *const[^A-Za-z_0-9]/
    return match(d, /[A-Za-z_][A-Za-z_0-9]*$/) ? substr(d, RSTART, RLENGTH) : ""
}
# The names of the locals that a statement declares and that are not const, less `states`.
function starting_over(s, states,    type, type_is_const, n, i, part, name, found) {
    gsub(/__attribute__ *\(\([^;]*\)\)|\[\[[^]]*\]\]|__extension__/, " ", s)
    gsub(/ *## */, "", s)
    gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s)
    if (s ~ not_local || s !~ declaration) return ""
    if (s ~ prototype && s !~ /\( ?\*|=/) return ""
    type = s
    sub(/[=,*(].*/, "", type)
    type_is_const = (" " type " ") ~ /[^A-Za-z_0-9]const[^A-Za-z_0-9]/
    # A comma inside brackets does not separate declarators.
    while (s !~ /\( ?\*/ && match(s, /\([^()]*\)/))
        s = substr(s, 1, RSTART - 1) "0" substr(s, RSTART + RLENGTH)
    n = split(s, part, ",")
    for (i = 1; i <= n; i++) {
        name = declared(part[i], type_is_const)
        if (name != "" && name != body_ && !is_const && !index(states, " " name " "))
            found = found ", " name
    }
    return substr(found, 3)
}
# The arguments of the VOLT_BEGIN in front of `s`, each between blanks.
function arguments(s) {
    sub(/\).*/, "", s)
    gsub(/[^A-Za-z_0-9]+/, "  ", s)
    return s " "
}
function check_function(states,    i, names, is_bad) {
    for (i = 1; i <= n_of[depth]; i++) {
        names = starting_over(statement[depth, i], states)
        if (names == "") continue
        is_bad = 1
        print file ":" line_of[depth, i] ": starts over at each poll: " names \
            " (const, or in the state, or below VOLT_BEGIN)"
    }
    n_functions++
    n_bad += is_bad
}

# ---- files
function check_file(    rest, token, line, begins, bottom, kept_depth, kept_parens) {
    begins = "VOLT_BEGIN"
    rest = code
    while (match(rest, /\001[A-Za-z_0-9]+(\([^)]*\))?[ \n]+VOLT_BEGIN[^A-Za-z_0-9]/)) {
        token = substr(rest, RSTART + 1, RLENGTH)
        sub(/[^A-Za-z_0-9].*/, "", token)
        begins = begins "|" token
        rest = substr(rest, RSTART + RLENGTH)
    }
    begins = "^(" begins ")$"
    bottom = 0
    enter(0)
    line = 1
    rest = code
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*|[{}();\001\n]/)) {
        token = substr(rest, RSTART, RLENGTH)
        if (text[depth] ~ /^[ \t]*$/) text_line[depth] = line
        text[depth] = text[depth] substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (token == "\n") { line++; token = " " }
        if (token == "\001" && !bottom) {
            kept_depth = depth; kept_parens = parens
            enter(depth + 1)
            bottom = depth
        } else if (token == "\001") {
            depth = kept_depth; parens = kept_parens
            bottom = 0
        } else if (token == "{") open_brace()
        else if (token == "}") { if (depth > bottom) close_brace() }
        else if (token == ";" && parens <= 0) end_statement()
        else {
            if (token == "(") parens++
            if (token == ")") parens--
            if (token ~ begins && depth > bottom) check_function(arguments(rest))
            text[depth] = text[depth] token
        }
    }
}
BEGIN {
    body_ = "braces_" # stands for the braces of an initialiser or a type
    name_ = "[A-Za-z_][A-Za-z_0-9]*"
    not_local = "^(static|extern|typedef|using|return|if|else|for|while|do|switch|case|goto|" \
        "break|continue|_Static_assert|static_assert|delete|throw)([^A-Za-z_0-9]|$)"
    # A type of one name or several, stars or a blank, and the name; anything else is an expression.
    declaration = "^" name_ "(( |::)" name_ "|<[^;=()]*>)*( ?[*&]+ ?(const )?| )" \
        "\\(? ?\\*? ?(const )?" name_ "\\)?( ?\\[[^;]*\\]| ?\\([^;]*\\))?( ?[=,{].*)?$"
    prototype = "^[A-Za-z_0-9 ]+ [A-Za-z_0-9]+ ?\\("
}
FNR == 1 && file != "" { check_file() }
FNR == 1 { code = in_define = in_block = ""; file = FILENAME }
{ read_line($0) }
END {
    if (file != "") check_file()
    printf "above_begin: %d passed, %d failed, 0 skipped\n", n_functions - n_bad, n_bad
    exit n_bad > 0 || !n_functions
}
' "$@"
