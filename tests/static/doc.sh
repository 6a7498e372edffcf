#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Compiles every example in the comments of volt.h, in README.md and in examples/README.md as C and
# as C++, and runs the complete ones. None may declare a local above VOLT_BEGIN.
#   CC=gcc CXX=g++ sh tests/static/doc.sh [directory for the files]
# A program is a run of volt.h lines that begin with "//     ", or a ```c block of a page, with `int
# main` in it. One that begins with `// fragment` is compiled only; it may use the declarations of
# volt.h, and errno.h. The programs of README.md are built by the commands of its ```sh blocks and
# run: the first program is also that of volt.h and of examples/01_hello.c and prints the output
# shown in README.md, the second one answers a client. The table of the last runs is compared with
# its source file, and some numbers of the pages with the things that they count. README.md has at
# most 150 lines and 8 KB. Ends with "doc: N passed, N failed, N skipped".
out=${1:-build/doc}
cc=${CC:-cc}
cxx=${CXX:-c++}
least=2
root=$(cd "$(dirname "$0")/../.." && pwd)
warn='-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef
    -Wdouble-promotion -Wformat=2 -Wvla -Wimplicit-fallthrough -Werror'
c_flags="-std=gnu11 -Wpedantic -Wstrict-prototypes -Wmissing-prototypes $warn"
# (type){ ... } is C; in C++ both compilers have it as an extension. g++ warns of omitted members
# also where the others are designated.
cxx_flags="-std=gnu++20 -Wno-missing-field-initializers $warn"
passed=0 failed=0 skipped=0 programs=0

rm -rf "$out" && mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)

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
# blocks NAME PAGE
blocks() {
    awk -v out="$out/$1" '
        /^```/ {
            if (inside && (text ~ /int main/ || text ~ /^\/\/ fragment/))
                printf "%s", text > (out "-" line ".c")
            inside = !inside && /^```c$/
            text = ""; line = FNR + 1
            next
        }
        inside { text = text $0 "\n" }
    ' "$root/$2"
}
blocks readme README.md
blocks guide examples/README.md

verdict() { # name, reason of the failure or nothing
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
command -v timeout >/dev/null 2>&1 && limited='timeout 60'

# try LANGUAGE SOURCE COMPILER FLAG...  As c or as c++; a complete program runs as well.
try() {
    language=$1 source=$2
    shift 2
    name=$(basename "$source" .c) why=
    set -- "$@" -O1 -I"$root" -pthread -x "$language" "$source" -o "$source.$language"
    if grep -q 'int main' "$source"; then
        "$@" >"$out/log" 2>&1 || why='does not compile'
        # a server does not end: it is run below
        [ -n "$why" ] || grep -q volt_listen "$source" ||
            $limited "$source.$language" >"$out/log" 2>&1 || why="exit status $?"
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
    sh "$root/tests/static/above_begin.sh" "$source" >"$out/log" ||
        why='a local starts over at each poll'
    verdict "$(basename "$source" .c) above VOLT_BEGIN" "$why"
done
# The table of the last runs; no target of the Makefile is left out of it.
if command -v python3 >/dev/null; then
    why=
    python3 "$root/tests/tools/everything.py" check >"$out/log" 2>&1 || why='differs'
    verdict 'the tables of tests/everything.tsv' "$why"
else
    skipped=$((skipped + 1))
    echo '  skip  the tables of tests/everything.tsv: no python3'
fi
# Numbers in a page about this repository: says PAGE WHAT NUMBER TEXT, in which @ stands for the
# number.
says() {
    : >"$out/log"
    line=$(printf '%s' "$4" | sed "s/@/$3/")
    why=
    tr -s '\n ' '  ' <"$root/$1" | grep -qF "$line" || why="not \"$line\""
    verdict "$1 says the number of $2" "$why"
}
says tests/README.md programs \
    "$(find "$root/tests/static/reject" -name '*.c' -o -name '*.cpp' | wc -l)" \
    '`make reject` | @ programs'
gate() {
    awk -v row="$1" '$1 ~ /^[A-Z][0-9]/ && (row == "" || $1 == row)' \
        "$root/bench/results/gate.txt"
}
says tests/README.md rows "$(gate '' | wc -l)" 'system calls per operation of @ rows'
says bench/README.md instructions "$(gate S8 | awk '{ printf "%.0f", $2 }')" \
    'The @ instructions also keep'
says tests/README.md answers "$(sed -n "/^alone='/,/^'/p" "$root/tests/platform/kernels.sh" |
    awk '{ for (i = 2; i <= NF; i++) n += $i ~ /^[A-Z]/ } END { print n }')" \
    'SO_PEERPIDFD and SO_PROTOCOL: @ answers'

# ---- README.md: its size, and its two programs by its own commands
: >"$out/log"
why=
[ "$(wc -l <"$root/README.md")" -le 150 ] && [ "$(wc -c <"$root/README.md")" -le 8192 ] ||
    why='more than 150 lines or 8 KB'
verdict 'README.md is short' "$why"
mkdir "$out/first" && cd "$out/first" && ln -s "$root/volt.h" . || exit 1
# page_program NAME  The ```c block of README.md that begins with "// NAME"; page_shell NAME prints
# its commands.
page_program() {
    awk -v name="// $1" '/^```/ { inside = 0 } inside { print }
        begun && $0 == name { inside = 1 } { begun = $0 == "```c" }' "$root/README.md" >"$1"
}
page_shell() {
    awk -v name="$1" '/^```/ { if (inside && text ~ name) { printf "%s", text; exit }
            inside = $0 == "```sh"; text = ""; next }
        inside { text = text $0 "\n" }' "$root/README.md"
}
why=
page_program countdown.c && page_shell countdown.c >countdown.sh
$limited sh -e countdown.sh >printed 2>"$out/log" || why="its commands fail"
[ -n "$why" ] || [ "$(tr -d '\n' <printed)" = 321 ] || why='it does not print 3, 2 and 1'
verdict 'the first program of README.md, by its commands' "$why"
why=
squeeze() { sed 's|//.*||' | tr -d ' \n'; }
squeeze <countdown.c >want
sed -n '/^#ifndef VOLT_H/q; s|^//     ||p' "$root/volt.h" | squeeze >got
cmp -s got want || why='that of volt.h differs'
squeeze <"$root/examples/01_hello.c" >got
[ -n "$why" ] || cmp -s got want || why='examples/01_hello.c differs'
verdict 'the first program is the same in README.md, volt.h and examples' "$why"
if command -v python3 >/dev/null; then
    why=
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
    page_program echo.c && sed -i "s/7000/$port/" echo.c
    page_shell echo.c | grep -v '^\./' | sh -e >"$out/log" 2>&1 || why='its commands fail'
    ./echo 2>>"$out/log" &
    server=$!
    [ -n "$why" ] || python3 - "$port" >>"$out/log" 2>&1 <<'CLIENT' || why='it does not answer'
import os, socket, sys, time
end = time.monotonic() + 10
while True:
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
        break
    except ConnectionRefusedError:  # not listening yet
        assert time.monotonic() < end
        os.sched_yield()
s.sendall(b"hello")
assert s.recv(5, socket.MSG_WAITALL) == b"hello"
CLIENT
    kill "$server"
    verdict 'the echo server of README.md, by its commands' "$why"
else
    skipped=$((skipped + 1))
    echo '  skip  the echo server of README.md: no python3'
fi
cd "$root" || exit 1
: >"$out/log"
if [ "$programs" -lt "$least" ]; then
    verdict 'number of programs' "only $programs found, at least $least expected"
fi
echo "doc: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
