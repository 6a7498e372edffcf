#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# A program of two units under the flags that distributions and firmware builds add: compiled with
# all warnings as errors, and run.
#   sh tests/static/compile/builds.sh COMPILER DIRECTORY FLAGS...
# Ends with "builds COMPILER: N passed, N failed".
cc=$1 out=$2
shift 2
dir=$(dirname "$0")
passed=0 failed=0
rm -rf "$out" && mkdir -p "$out" || exit 1
case $cc in
*++) language='-x c++ -std=gnu++17' cxx='-fno-exceptions -fno-rtti' ;;
*) language='-x c -std=gnu11' cxx= ;;
esac
warnings=$*

# build NAME FLAGS...: the same flags for all units, as in one build system
build() {
    name=$1
    shift
    # shellcheck disable=SC2086
    if "$cc" $language $warnings "$@" -pthread -DUNIT=first -DVOLT_IMPLEMENTATION \
        -c "$dir/unit.c" -o "$out/first.o" &&
        "$cc" $language $warnings "$@" -pthread -DUNIT=second -c "$dir/unit.c" \
            -o "$out/second.o" &&
        "$cc" $language $warnings "$@" -pthread "$dir/main.c" -x none "$out/first.o" \
            "$out/second.o" -o "$out/main" &&
        timeout 60 "$out/main"
    then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "builds $cc: $name failed: $*"
    fi
}

build hardened -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fPIE
build library -O1 -fPIC -fvisibility=hidden -fno-common -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
# shellcheck disable=SC2086
build firmware -Os -DNDEBUG -ffunction-sections -fdata-sections -fshort-enums -funsigned-char \
    -fno-asynchronous-unwind-tables $cxx
echo 'int main(void) { return 0; }' >"$out/empty.c"
if "$cc" $language -m32 "$out/empty.c" -o "$out/main" >/dev/null 2>&1; then
    build '32 bits' -O1 -m32
else
    echo "builds $cc: no -m32 here; Debian packages: gcc-multilib, g++-multilib"
fi

echo "builds $cc: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
