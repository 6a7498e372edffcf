#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Compiles every example in the comments of volt.h and in README.md, and runs the complete ones.
#   sh tests/doc.sh [directory for the files]
# A program is a run of volt.h lines that begin with "//     ", or a ```c block of README.md, with
# `int main` in it. A README block that begins with `// fragment` is compiled only; it may use what
# volt.h declares. Ends with "doc: N passed, N failed, 0 skipped".
out=${1:-build/doc}
cc=${CC:-cc}
least=2
root=$(cd "$(dirname "$0")/.." && pwd)
warn='-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef
    -Wstrict-prototypes -Wmissing-prototypes -Wdouble-promotion -Wformat=2 -Wvla
    -Wimplicit-fallthrough -Werror'
passed=0 failed=0 programs=0

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
        if (text ~ /int main/) printf "%s", text > (out "-" line ".c")
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

for source in "$out"/*.c; do
    name=$(basename "$source" .c)
    why=
    if grep -q 'int main' "$source"; then
        programs=$((programs + 1))
        # shellcheck disable=SC2086
        $cc -std=gnu11 -O1 $warn -I"$root" -pthread "$source" -o "$out/$name" >"$out/log" 2>&1 ||
            why='does not compile'
        # shellcheck disable=SC2086
        [ -n "$why" ] || $limited "$out/$name" >"$out/log" 2>&1 || why="exit status $?"
    else
        # shellcheck disable=SC2086
        $cc -std=gnu11 -O1 $warn -Wno-unused-function -I"$root" -include volt.h \
            -c "$source" -o "$out/$name.o" >"$out/log" 2>&1 || why='does not compile'
    fi
    verdict "$name" "$why"
done
: >"$out/log"
if [ "$programs" -lt "$least" ]; then
    verdict 'number of programs' "only $programs found, at least $least expected"
fi
echo "doc: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
