#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Does a program carry what its compiler was asked to put in? `make harden` asks it of each build.
#   sh tests/harden.sh NAME PROGRAM MARK...
# Prints each mark that is missing, then "NAME: N passed, N failed, 0 skipped". Needs binutils.
name=$1 program=$2
shift 2
passed=0 failed=0
headers=$(readelf -hlWd "$program")
symbols=$(nm "$program" && nm -D "$program" 2>/dev/null)
code() { objdump -d --no-show-raw-insn "$program"; }
has() { printf '%s\n' "$1" | grep -Eq -e "$2"; }
is_marked() {
    case $1 in
    fortify) has "$symbols" '__[a-z]+_chk(@|$)' ;;
    stack-protector) has "$symbols" '__stack_chk_fail' ;;
    cet) code | grep -A 1 '<main>:$' | grep -q endbr ;;
    pie) has "$headers" 'Type: +DYN' ;;
    relro) has "$headers" '^ +GNU_RELRO' ;;
    now) has "$headers" '\(FLAGS_1\).* NOW' ;;
    no-exec-stack) has "$headers" '^ +GNU_STACK .* RW  *0x' ;;
    no-interpreter) ! has "$headers" '^ +INTERP' ;;
    trapv) has "$symbols" ' __(add|sub|mul|neg)v[sd]i[23]$' || code | grep -Eq '[^a-z]ud1( |$)' ;;
    pattern) code | grep -Eq '0x(fefefefefefefefe|aaaaaaaaaaaaaaaa)([^0-9a-f]|$)' ;;
    cfi) has "$symbols" '\.cfi$' ;;
    elf32) has "$headers" 'Class: +ELF32' ;;
    musl) has "$symbols" ' __init_libc$' && has "$symbols" ' static_init_tls$' ;;
    *) false ;;
    esac
}
for mark; do
    if is_marked "$mark"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "  FAIL  $name: no mark of $mark in $program"
    fi
done
echo "$name: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
