#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Compiles volt.h for one target, under each standard: the header alone, then the implementation;
# warnings are errors, and no object may need libatomic. `make cross` runs it:
#   compile.sh DIR "STANDARDS" CC FLAGS...
# The last line is "N passed, N failed, 0 skipped"; the failures are listed above it.
set -u
dir=$1 standards=$2
shift 2
here=$(dirname "$0")
passed=0 failed=0

# check WHAT COMMAND...
check() {
    what=$1
    shift
    if "$@" > "$dir/check.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $what"
        head -n 20 "$dir/check.log"
    fi
}
refuses() { ! "$@"; }

mkdir -p "$dir"
printf '#include "volt.h"\n#include "volt.h"\nint volt_user(void);\n' > "$dir/header.c"
printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' > "$dir/volt.c"
for std in $standards; do
    check "header as $std" "$@" -std="$std" -I. -fsyntax-only "$dir/header.c"
    for level in -Os -O2; do
        check "implementation as $std, $level" \
            "$@" -std="$std" "$level" -I. -pthread -c "$dir/volt.c" -o "$dir/volt.o"
        check "no libatomic as $std, $level" sh "$here/no_libatomic.sh" "$dir/volt.o"
    done
done

# Checks the check: an operation that no target has an instruction for must not pass.
printf '%s\n' 'static struct { char bytes[32]; } from, to;' 'int main(void) {' \
    '__atomic_load(&from, &to, __ATOMIC_SEQ_CST);' 'return to.bytes[0];' '}' > "$dir/wide.c"
check 'a program compiled for that' "$@" -c "$dir/wide.c" -o "$dir/wide.o"
check 'no_libatomic.sh tells' refuses sh "$here/no_libatomic.sh" "$dir/wide.o"
check 'the linker tells' refuses "$@" -Wl,--no-undefined "$dir/wide.o" -o "$dir/wide"

echo "compile.sh: $passed passed, $failed failed, 0 skipped"
