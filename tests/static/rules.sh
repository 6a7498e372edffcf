#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The rules of the source of volt.h that a script can check. Needs a POSIX shell and awk.
#   sh tests/static/rules.sh [volt.h]
# Prints each breach as file:line, then the lengths of functions, then one line of the form "rules:
# N passed, N failed, 0 skipped". The rules are named at the end of the program below.
file=${1:-volt.h}
here=$(dirname "$0")/..
texts=$(ls "$here"/*/*.[ch] "$here"/*/*.sh "$here"/../examples/*.c "$here"/../bench/rows/*.[ch] \
    "$here"/../bench/servers/*.[ch] "$here"/../bench/load/*.[ch] "$here"/../bench/tools/*.sh \
    "$here"/../examples/gdb/volt.py 2>/dev/null)

LC_ALL=C awk -v main="$file" '
function breach(rule, what) {
    if (!(rule in broken)) broken[rule] = 0
    if (broken[rule]++ < 20) print FILENAME ":" FNR ": " rule ": " what
}

# ---- lines: comments go to `note`, strings become "", the rest is `code`
function split_line(s,    at, c, rest) {
    code = note = ""
    while (s != "") {
        if (in_block) {
            at = index(s, "*/")
            if (!at) { note = note s; return }
            s = substr(s, at + 2); in_block = 0
            continue
        }
        at = match(s, /["\x27]|\/\/|\/\*/)
        if (!at) { code = code s; return }
        c = substr(s, at, 1)
        code = code substr(s, 1, at - 1)
        rest = substr(s, at)
        if (c == "/") {
            if (substr(rest, 2, 1) == "/") { note = note rest; return }
            in_block = 1; s = substr(rest, 3)
            continue
        }
        if (c == "\"") match(rest, /^"([^"\\]|\\.)*"/)
        else match(rest, /^\x27([^\x27\\]|\\.)*\x27/)
        if (RLENGTH < 0) RLENGTH = 1
        code = code (c == "\"" ? "\"\"" : "0")
        s = substr(rest, RLENGTH + 1)
    }
}

# ---- declarations: walks the tokens of file scope; `stmt` holds the current one without bodies
function name_ok(n) { return n ~ /^(volt|VOLT)_/ }
function want_name(n) {
    if (n != "" && !name_ok(n)) breach("names", "`" n "` at file scope does not begin with volt_")
}
function declared(s,    n, w, i, head) {
    gsub(/__attribute__ *\(\([^;]*\)\)/, " ", s)
    gsub(/__extension__|\[[^]]*\]/, " ", s)
    sub(/=.*/, "", s)
    sub(/^ *template *<[^>]*>/, "", s)
    # A function has its name before the first parenthesis, a pointer to one behind it.
    if (match(s, /[A-Za-z_0-9]* *\( *\** *[A-Za-z_0-9]*/)) {
        head = substr(s, RSTART, RLENGTH)
        if (head ~ /\( *\*/ && head !~ /^volt__?[a-z]/) { sub(/.*\* */, "", head); return head }
        sub(/ *\(.*/, "", head)
        return head
    }
    n = split(s, w, /[^A-Za-z0-9_]+/)
    for (i = n; i > 0; i--) if (w[i] != "") return w[i]
    return ""
}
function is_function(s) { return s ~ /[A-Za-z0-9_] *\(/ && s !~ /=/ && s !~ /^ *typedef/ }

function end_of_statement(    name) {
    if (stmt ~ /[A-Za-z]/ && stmt !~ /^ *(extern *"")? *$/) {
        name = declared(stmt)
        if (stmt ~ /^ *(struct|union|enum) +[a-z_0-9]+ *$/) name = "" # a tag: checked at its brace
        if (stmt !~ /^ *enum *$/) want_name(name)
        if (stmt ~ /VOLT_API/) public[name] = 1
        # A macro or a prototype is the only way to use from below, in C.
        else if (in_implementation && is_function(stmt) && note !~ /below/ &&
                 stmt !~ /VOLT__SASSERT/)
            breach("contents", "`" name "` is declared above its definition")
        if (stmt ~ /VOLT_API/) want_thread(name, stmt, FNR)
    }
    stmt = ""
}
# The manual says on which threads a public function without a volt_cx may be called.
function want_thread(name, decl, line) {
    if (name ~ /^volt_[a-z]/ && decl !~ /volt_cx \*cx/) outside[name] = line
}
function end_of_section(line) {
    if (in_implementation && section != "" && line - section_line > 600 &&
        broken["contents"]++ < 20)
        print main ":" line ": contents: >>" section " has " line - section_line " lines, not 600"
}
function open_brace(    s, name) {
    depth++
    if (depth > 1) return
    s = stmt
    is_body = 0
    if (s ~ /(struct|union|enum)( +[A-Za-z_0-9]+)? *$/) {
        is_enum = s ~ /enum( +[A-Za-z_0-9]+)? *$/
        want_enumerator = is_enum
        sub(/.*(struct|union|enum) */, "", s); sub(/ *$/, "", s)
        want_name(s)
        return
    }
    is_enum = 0
    if (!is_function(s)) return # an initialiser
    is_body = 1
    name = declared(s)
    want_name(name)
    if (!in_implementation && s ~ /(^| )static /) want_thread(name, s, stmt_line)
    if (in_implementation && s !~ /(^| )static / && s !~ /VOLT_API/ && !(name in public))
        breach("static", "`" name "` is neither static nor VOLT_API")
    body_name = name; body_line = stmt_line
    if (s ~ /(^| )static / && name ~ /^volt__/) helper[name]++
}
function close_brace() {
    depth--
    if (depth) return
    if (is_body) {
        n_functions++
        len = FNR - body_line + 1
        lengths[n_functions] = len
        if (len > 110) breach("length", "`" body_name "` has " len " lines, more than 110")
        stmt = ""
        is_body = 0
    }
    is_enum = 0
}
function walk(s,    c, at) {
    while (s != "") {
        if (depth) {
            at = is_enum ? match(s, /[{},A-Za-z_]/) : match(s, /[{}]/)
            if (!at) return
            c = substr(s, at, 1)
            s = substr(s, at)
            if (c ~ /[A-Za-z_]/) {
                match(s, /^[A-Za-z_0-9]+/)
                if (want_enumerator) want_name(substr(s, 1, RLENGTH))
                want_enumerator = 0
                s = substr(s, RLENGTH + 1)
                continue
            }
        } else {
            at = match(s, /[{};]/)
            if (stmt !~ /[A-Za-z]/) { stmt_line = FNR }
            if (!at) { stmt = stmt " " s; return }
            c = substr(s, at, 1)
            stmt = stmt " " substr(s, 1, at - 1)
            s = substr(s, at)
        }
        s = substr(s, 2)
        if (c == "{") open_brace()
        else if (c == "}") close_brace()
        else if (c == ",") want_enumerator = is_enum && depth == 1
        else end_of_statement()
    }
}

# ---- calls
function next_match(s, re) { return match(s, re) ? substr(s, RSTART, RLENGTH) : "" }
function check_system_calls(s,    n, before) {
    while (match(s, system_call)) {
        before = RSTART > 1 ? substr(s, RSTART - 1, 1) : " "
        n = substr(s, RSTART, RLENGTH)
        sub(/ *\($/, "", n)
        if (before !~ /[A-Za-z0-9_.>]/) breach("seam", "`" n "` outside >>seam")
        s = substr(s, RSTART + RLENGTH)
    }
}
function check_tags(s, comment,    t, n, seen) {
    n = gsub(ordered, "&", s)
    if (!n) return
    if (comment !~ tag) { breach("tags", "ordered operation without a tag like [Q1]"); return }
    while (match(comment, tag)) {
        t = substr(comment, RSTART, RLENGTH)
        if (!(t in seen)) { seen[t] = 1; sites[t] += n; if (!(t in first)) first[t] = FNR }
        comment = substr(comment, RSTART + RLENGTH)
    }
}

BEGIN {
    system_call = "(read|write|readv|writev|pread|pwrite|send|sendto|sendmsg|recv|recvfrom|" \
        "recvmsg|accept|accept4|connect|bind|listen|socket|socketpair|shutdown|close|open|" \
        "openat|pipe|pipe2|dup|dup2|dup3|fcntl|ioctl|getsockopt|setsockopt|getsockname|" \
        "getpeername|epoll_[a-z0-9_]+|eventfd[a-z_]*|timerfd_[a-z]+|mmap|munmap|madvise|mprotect|" \
        "malloc|calloc|realloc|free|aligned_alloc|posix_memalign|pthread_[a-z_]+|sched_[a-z_]+|" \
        "clock_[a-z]+|nanosleep|usleep|sleep|syscall|getrandom|getenv|abort|exit|_exit|sysconf|" \
        "sig[a-z]+|raise|kill|poll|ppoll|select|fopen|fclose|fgets|fread|printf|fprintf|puts|" \
        "perror|strerror|unlink|fork|prctl|getaddrinfo|getpid|gettid) *\\("
    operation = "volt__(load|store|xchg|cas|add|sub|and|or|xor)[a-z0-9]*_"
    ordered = "(" operation "([a-z]+_)*(acq|rel)|volt__fence_sc)[a-z_]* *\\("
    relaxed = operation "rlx *\\("
    tag = "\\[[A-Z]+[0-9]+[a-z]?\\]"
}

FNR == 1 { in_block = 0 }
length($0) > 100 { breach("text", length($0) " columns, more than 100") }
/[^ -~\t]/ { breach("text", "a character that is not ASCII") }
/\t/ { breach("text", "a tab") }
/[ \t]$/ { breach("text", "trailing blanks") }
/T[O]DO|F[I]XME|(^|[^X])X[X]X([^X]|$)/ { breach("unfinished", "an unfinished mark") }
FILENAME ~ /gdb\/volt.py$/ && match($0, /"VOLT__LEAF_[A-Z]+": "/) {
    in_gdb[substr($0, RSTART + 12, RLENGTH - 16)] = 1
}
FILENAME ~ /gdb\/volt.py$/ && /^VERSION = [0-9]+$/ { gdb_version = $3 }
FILENAME != main {
    check_test_name($0)
    note_uses($0, by_tests)
    next
}

{ split_line($0); n_main = FNR; note_uses(code, uses) }
$1 == "#define" && $2 == "VOLT_VERSION" { version = $3 }
/^#define VOLT__LEAVES/ { in_leaves = 1 }
in_leaves && match($0, /X_\([A-Z]+, /) { leaves[substr($0, RSTART + 3, RLENGTH - 5)] = FNR }
in_leaves && !/\\$/ { in_leaves = 0 }
# ---- vocabulary: the glossary, and the words of the public names
section == "terms" && note != "" {
    text = tolower(note)
    gsub(/[^a-z]+/, " ", text)
    n = split(text, w, " ")
    for (i = 1; i <= n; i++) known[w[i]] = known[w[i] "s"] = 1
}
!in_implementation {
    for (rest = code; match(rest, /volt_[a-z]+/); rest = substr(rest, RSTART + RLENGTH))
        known[substr(rest, RSTART + 5, RLENGTH - 5)] = 1
}
# ---- words of comments: persons, private idiom, and clauses as subjects
note != "" && !in_block {
    text = tolower(note)
    gsub(/[^a-z_.:;]+/, " ", text)
    n_words += split(text, w, " ")
    was_banned = n_banned
    n_banned += gsub(/ (who|whom|whoever|he|him) /, "& ", text)
    n_banned += gsub(/ (somebody|someone|nobody|anybody|anyone|everybody) /, "& ", text)
    n_banned += gsub(/ (for ever|anew|so many|by and by|as long as may be) /, "& ", text)
    n_banned += gsub(/(^ |[.;:] )(what|who|whoever) /, "& ", text)
    if (n_banned > was_banned && n_shown < 20) banned[++n_shown] = FNR ": " note
}
# ---- the table of the manual under "threads": volt_x, or volt_x* for several functions
/^\/\/ ---- / { in_table = /^\/\/ ---- threads/ }
in_table && /^\/\/   / {
    for (rest = $0; match(rest, /volt_[a-z_]+\*?/); rest = substr(rest, RSTART + RLENGTH)) {
        entry = substr(rest, RSTART, RLENGTH)
        sub(/\*$/, ".*", entry)
        if (entry != "volt_cx") table[entry] = FNR
    }
}
is_after_bar && match($0, /^\/\/ >>[a-z]+/) {
    end_of_section(FNR)
    section = substr($0, RSTART + 5, RLENGTH - 5)
    if (section in opened) breach("contents", ">>" section " opens two sections")
    opened[section] = section_line = FNR
    order = order " " section
    title = substr($0, RSTART + RLENGTH)
    sub(/^ +/, "", title)
    if (!(section in listed) && section != "terms")
        breach("contents", ">>" section " is not in the contents above it")
    else if (title != listed[section] && section != "terms")
        breach("contents", ">>" section " has another title in the contents: " listed[section])
}
{ is_after_bar = /^\/\/==/ }
match($0, /^\/\/   >>[a-z]+ /) {
    entry = substr($0, RSTART + 7, RLENGTH - 8)
    if (entry in listed) breach("contents", ">>" entry " is listed twice")
    listed[entry] = substr($0, RSTART + RLENGTH)
    sub(/^ +/, "", listed[entry])
    listed_order = listed_order (listed_order ~ / cxx$/ ? " terms " : " ") entry
}
/^#endif \/\/ VOLT_H/ { in_implementation = 1 }

section == "atomics" && $0 ~ "^//[ |]+" tag {
    row = next_match($0, tag)
    ledger[row] = FNR
    if ($0 ~ /one site/) single[row] = 1
}
section != "seam" { check_system_calls(code) }
section != "atomics" {
    if (code ~ /__(atomic|sync)_/) breach("atomics", "__atomic_ outside >>atomics")
    check_tags(code, note (prev_is_note ? prev_note : ""))
    if (code ~ relaxed && note p1 p2 p3 !~ /\/\/ *rlx:/)
        breach("relaxed", "_rlx without a comment rlx:")
}
{
    prev_is_note = code ~ /^[ \t]*$/; prev_note = note
    p3 = p2; p2 = p1; p1 = note
    n_asserts += gsub(/(VOLT_ASSERT|VOLT__(REQUIRE|EXPECT)(_CX)?|VOLT__SASSERT) *\(/, "&", code)
}

# Preprocessor lines, with their continuations, declare macros only.
in_macro || code ~ /^[ \t]*#/ {
    if (!in_macro && match(code, /^[ \t]*# *define +[A-Za-z_0-9]+/)) {
        macro = substr(code, RSTART, RLENGTH); sub(/.* /, "", macro)
        if (!name_ok(macro) && macro !~ /^(_GNU_SOURCE|STAP_SDT_ARG_CONSTRAINT)$/)
            breach("names", "macro `" macro "` does not begin with VOLT_")
    }
    in_macro = code ~ /\\$/
    next
}
code ~ /^extern "" *[{]/ || /^} *\/\/ extern "C"/ { next }
{ walk(code) }

# Counts the private names in a line; `calls` those that are called there.
function note_uses(s, counts,    word) {
    while (match(s, /volt__[a-z_0-9]+/)) {
        word = substr(s, RSTART, RLENGTH)
        counts[word]++
        s = substr(s, RSTART + RLENGTH)
        if (s ~ /^\(/) calls[word]++
    }
}
# The first word of a private name is in the glossary of >>terms or in a public name, or is one of
# these: plain words of any C program, and nouns that one section defines at its begin.
function check_vocabulary(    plain, n, w, i, word, first) {
    plain = "add admit alloc append bad cas check clamp clear copy deadline drain drive due " \
            "evict grow head highest inject least less load max measure min ms must out " \
            "parent partial path pop publish push raise refill refuses rescue root running " \
            "since snapshot spin stack started stray suspend sys teardown tick timeout " \
            "timespec tls unclosed unfinished unpark update utf xchg xor " \
            "backlog class countdown cursor ewma housekeep iov lane maintain p query queued " \
            "quota sigpipe"
    n = split(plain, w, " ")
    for (i = 1; i <= n; i++) known[w[i]] = 1
    for (word in uses) {
        first = substr(word, 7)
        sub(/[^a-z].*/, "", first)
        if (first != "" && !(first in known) && !((first "s") in known) &&
            broken["vocabulary"]++ < 20)
            print main ": vocabulary: `" word "` begins with a word that is not in >>terms"
    }
}
# A private function that one function calls, and no test, should be part of that function, unless
# it makes it easier to read: so at most a quarter of them.
function check_helpers(    name, n, n_once) {
    for (name in helper) {
        n++
        if (uses[name] - helper[name] == 1 && calls[name] - helper[name] == 1 &&
            !(name in by_tests)) n_once++
    }
    if (n) printf "%d of %d private functions have one use: %.1f %%\n", n_once, n, n_once * 100 / n
    if (n_once * 4 > n) {
        print main ": helpers: more than 25 % of the private functions have one use"
        broken["helpers"]++
    }
}
# A test is named by its claim: with a verb, and not as a question or a heading.
function check_test_name(s,    name, n, w, i) {
    if (s !~ /^(ROOT_)?(TEST|DIES|MISUSE)[A-Z_0-9]*\([a-z0-9_]+[,)]/) return
    name = s
    sub(/^[A-Z_0-9]+\(/, "", name)
    sub(/[,)].*/, "", name)
    n = split(name, w, "_")
    if (name !~ /^(what|who|where|when|how|a|an|the)_/)
        for (i = 2; i <= n; i++)
            if (w[i] ~ /[^s]s$|^(not|may|can|cannot|do|are|have|never|leave|spend|complete)$/ ||
                w[i] ~ /^(accept|retry|transfer|copy|show|use|keep|end|give|get|wake|go)$/ ||
                w[i] ~ /^(become|follow|add|start|name|survive)$/) return
    breach("tests", "`" name "` does not say what must hold")
}

function sort_lengths(    i, j, v) {
    for (i = 2; i <= n_functions; i++) {
        v = lengths[i]
        for (j = i - 1; j > 0 && lengths[j] > v; j--) lengths[j + 1] = lengths[j]
        lengths[j + 1] = v
    }
}
function ledger_breach(line, what) {
    if (!("tags" in broken)) broken["tags"] = 0
    if (broken["tags"]++ < 20) print main ":" line ": tags: " what
}
END {
    for (t in sites) if (!(t in ledger)) ledger_breach(first[t], t " has no row in the ledger")
    for (t in ledger) {
        if (!(t in sites)) ledger_breach(ledger[t], t " is in the ledger and nowhere else")
        else if (sites[t] < 2 && !(t in single))
            ledger_breach(ledger[t], t " has one site only; if meant so, its row says \"one site\"")
    }
    end_of_section(n_main)
    if (order != listed_order) {
        print main ": the contents have the sections in another order:" listed_order
        broken["contents"]++
    }
    for (name in outside) {
        found = 0
        for (entry in table) if (name ~ "^" entry "$") { found = 1; hit[entry] = 1 }
        if (!found && broken["threads"]++ < 20)
            print main ":" outside[name] ": threads: " name " is not in the table of the manual"
    }
    for (entry in table)
        if (!(entry in hit) && entry != "volt_result" && # a macro
            broken["threads"]++ < 20)
            print main ":" table[entry] ": threads: " entry " is no function without a volt_cx"
    if (n_banned * 1000 > 0.2 * n_words) {
        for (i = 1; i <= n_shown; i++) print main ":" banned[i]
        printf "%s: words: %d banned in %d of comments, more than 0.2 per 1000\n", main, n_banned,
            n_words
        broken["words"]++
    }
    for (leaf in leaves)
        if (!(leaf in in_gdb)) {
            print main ":" leaves[leaf] ": leaves: " leaf " has no row in examples/gdb/volt.py"
            broken["leaves"]++
        }
    if (version == "" || version != gdb_version) {
        print main ": version: " version ", but examples/gdb/volt.py knows " gdb_version
        broken["version"]++
    }
    check_vocabulary()
    check_helpers()
    if (depth) { print main ": braces do not balance"; broken["names"]++ }
    if (!n_functions) { print main ": no function found"; broken["names"]++ }
    sort_lengths()
    if (n_functions)
        printf "%d functions, length median %d, p90 %d, longest %d; %.1f asserts per 1000 lines\n",
            n_functions, lengths[int((n_functions + 1) / 2)], lengths[int(n_functions * 0.9 + 0.5)],
            lengths[n_functions], n_asserts * 1000 / n_main
    n = split("names static seam atomics tags relaxed threads contents words vocabulary helpers " \
              "leaves version tests text unfinished length",
              rules, " ")
    for (i = 1; i <= n; i++) {
        if (rules[i] in broken) { bad++; print "broken: " rules[i] " (" broken[rules[i]] ")" }
    }
    printf "rules: %d passed, %d failed, 0 skipped\n", n - bad, bad
    exit bad > 0
}
' "$file" $texts
