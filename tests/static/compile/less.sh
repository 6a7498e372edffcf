#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# volt.h with parts left out or added: the implementation by itself at several standards and levels,
# all warnings as errors. Without threads it must not refer to pthreads, without names not to
# getaddrinfo; the probes must be there, or not; the examples that need neither descriptors nor
# threads must print their expected output.
#   sh tests/static/compile/less.sh COMPILER DIRECTORY FLAGS...
# Ends with "less COMPILER: N passed, N failed".
cc=$1 out=$2
shift 2
root=$(dirname "$0")/../../..
passed=0 failed=0
rm -rf "$out" && mkdir -p "$out" || exit 1
printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' >"$out/impl.c"
case $cc in
*++) old=c++17 new=c++17 example='-std=gnu++20 -Wno-pedantic -Wno-missing-field-initializers' ;;
*) old=gnu99 new=c2x example='-std=gnu11' ;;
esac

# verdict STATUS WHAT
verdict() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "less $cc: failed: $2"
    fi
}
# implementation STANDARD LEVEL FLAGS...
implementation() {
    what=$*
    # shellcheck disable=SC2086 # flags are words
    "$cc" $warnings -std="$1" -I"$root" -c "$out/impl.c" $2 $3 -o "$out/impl.o"
    verdict $? "$what"
    case $3 in
    *SINGLE*)
        ! nm -u "$out/impl.o" | grep -E 'pthread|__atomic|__sync'
        verdict $? "$what: needs threads or atomics"
        ;;
    *NO_NAMES*)
        ! nm -u "$out/impl.o" | grep getaddrinfo
        verdict $? "$what: asks for names"
        ;;
    *USDT*)
        probes=$(readelf -n "$out/impl.o" | awk '/Provider: / { ours = $2 == "volt" }
            ours && /Name: / && !seen[$2]++ { n++ } END { print n + 0 }')
        [ "$probes" -eq $((6 * ${3#*=})) ]
        verdict $? "$what: $probes probes"
        ;;
    esac
}
# runs NAME FLAGS: an example
runs() {
    source=$root/examples/$1.c
    # shellcheck disable=SC2086
    "$cc" $warnings $example -O0 $2 -I"$root" "$source" -pthread -o "$out/$1" &&
        sed -n '/^\/\/ Expected output:/,/^[^\/]/s|^// ||p' "$source" | sed 1d >"$out/want" &&
        timeout 60 "$out/$1" >"$out/got" && diff "$out/want" "$out/got"
    verdict $? "$1 with $2"
}

warnings=$*
for less in -DVOLT_NO_IO -DVOLT_SINGLE_THREAD '-DVOLT_NO_IO -DVOLT_SINGLE_THREAD' \
    -DVOLT_MAX_WORKERS=1; do
    implementation $old -O0 "$less"
    implementation $new '-O2 -DNDEBUG' "$less"
    implementation $old -Os "$less"
    implementation $old '-Os -DNDEBUG' "$less"
    for name in 01_hello 02_sleep_join 04_timeout 05_cancel; do runs "$name" "$less"; done
done
for more in -DVOLT_NO_NAMES -DVOLT_TRACE=1 -DVOLT_USDT=0 -DVOLT_USDT=1; do
    implementation $new -O2 "$more"
    runs 02_sleep_join "$more"
done
echo "less $cc: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
