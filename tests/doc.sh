#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Compiles every example in the comments of volt.h and in README.md as C and as C++, and runs the
# complete ones. None may declare a local above VOLT_BEGIN that starts over at each poll.
#   CC=gcc CXX=g++ sh tests/doc.sh [directory for the files]
# A program is a run of volt.h lines that begin with "//     ", or a ```c block of README.md, with
# `int main` in it. One that begins with `// fragment` is compiled only; it may use what volt.h
# declares, and errno.h. README.md's table of the last runs is compared with the file that it is
# made from, and some of its numbers with what they count. Ends with "doc: N passed, N failed, N
# skipped".
out=${1:-build/doc}
cc=${CC:-cc}
cxx=${CXX:-c++}
least=2
root=$(cd "$(dirname "$0")/.." && pwd)
warn='-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef
    -Wdouble-promotion -Wformat=2 -Wvla -Wimplicit-fallthrough -Werror'
c_flags="-std=gnu11 -Wpedantic -Wstrict-prototypes -Wmissing-prototypes $warn"
# (type){ ... } is C; in C++ both compilers have it as an extension. g++ finds members without an
# initialiser also where those with one are named.
cxx_flags="-std=gnu++20 -Wno-missing-field-initializers $warn"
passed=0 failed=0 skipped=0 programs=0

rm -rf "$out" && mkdir -p "$out" || exit 1

# Each block becomes <out>/<source>-<line>.c, the line being that of its first line.
awk -v out="$out/header" '
    /^\/\/     / || (text != "" && /^\/\/$/) {
        if (text == "") line = FNR
        text = text substr($0, 8) "\n"
        next
    }
    { flush_block() }
    function flush_block() {
        if (text ~ /int main/ || text ~ /^\/\/ fragment/)
            printf "%s", text > (out "-" line ".c")
        text = ""
    }
    END { flush_block() }
' "$root/volt.h"
awk -v out="$out/readme" '
    /^```/ {
        if (inside && (text ~ /int main/ || text ~ /^\/\/ fragment/))
            printf "%s", text > (out "-" line ".c")
        inside = !inside && /^```c$/
        text = ""; line = FNR + 1
        next
    }
    inside { text = text $0 "\n" }
' "$root/README.md"

verdict() { # name, what went wrong or nothing
    if [ -z "$2" ]; then
        passed=$((passed + 1))
        echo "  ok    $1"
    else
        failed=$((failed + 1))
        echo "  FAIL  $1: $2"
        sed 's/^/        | /' "$out/log"
    fi
}
limited=
command -v timeout >/dev/null 2>&1 && limited='timeout 10'

# try LANGUAGE SOURCE COMPILER FLAG...  As c or as c++; a complete program runs as well.
try() {
    language=$1 source=$2
    shift 2
    name=$(basename "$source" .c) why=
    set -- "$@" -O1 -I"$root" -pthread -x "$language" "$source" -o "$source.$language"
    if grep -q 'int main' "$source"; then
        "$@" >"$out/log" 2>&1 || why='does not compile'
        [ -n "$why" ] || $limited "$source.$language" >"$out/log" 2>&1 || why="exit status $?"
    else
        "$@" -Wno-unused-function -include volt.h -include errno.h -c >"$out/log" 2>&1 ||
            why='does not compile'
    fi
    verdict "$name as $language" "$why"
}

for source in "$out"/*.c; do
    ! grep -q 'int main' "$source" || programs=$((programs + 1))
    # shellcheck disable=SC2086 # flags and compilers are lists of words
    try c "$source" $cc $c_flags
    if command -v "${cxx%% *}" >/dev/null; then
        # shellcheck disable=SC2086
        try c++ "$source" $cxx $cxx_flags
    else
        skipped=$((skipped + 1))
        echo "  skip  $(basename "$source" .c) as c++: no $cxx; Debian package: g++"
    fi
    grep -q VOLT_BEGIN "$source" || continue
    why=
    sh "$root/tests/above_begin.sh" "$source" >"$out/log" || why='a local starts over at each poll'
    verdict "$(basename "$source" .c) above VOLT_BEGIN" "$why"
done
# The table of what ran on which commit; and no target of the Makefile is left out of it.
if command -v python3 >/dev/null; then
    why=
    python3 "$root/tests/everything.py" check >"$out/log" 2>&1 || why='differs'
    verdict 'the table of tests/everything.tsv in README.md' "$why"
else
    skipped=$((skipped + 1))
    echo '  skip  the table of tests/everything.tsv in README.md: no python3'
fi
# Numbers in README.md of what is here: says WHAT NUMBER TEXT, in which @ stands for the number.
says() {
    : >"$out/log"
    line=$(printf '%s' "$3" | sed "s/@/$2/")
    why=
    tr -s '\n ' '  ' <"$root/README.md" | grep -qF "$line" || why="not \"$line\""
    verdict "README.md says the number of $1" "$why"
}
says programs "$(find "$root/tests/reject" -name '*.c' -o -name '*.cpp' | wc -l)" \
    '`make reject` | @ programs'
gate() { awk -v row="$1" '$1 ~ /^[A-Z][0-9]/ && (row == "" || $1 == row)' "$root/bench/gate.txt"; }
says rows "$(gate '' | wc -l)" 'system calls per operation of @ rows'
says instructions "$(gate S8 | awk '{ printf "%.0f", $2 }')" 'The @ instructions also keep'
says answers "$(sed -n "/^alone='/,/^'/p" "$root/tests/kernels.sh" |
    awk '{ for (i = 2; i <= NF; i++) n += $i ~ /^[A-Z]/ } END { print n }')" \
    'membarrier and SO_PROTOCOL: @ answers'
: >"$out/log"
if [ "$programs" -lt "$least" ]; then
    verdict 'number of programs' "only $programs found, at least $least expected"
fi
echo "doc: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
