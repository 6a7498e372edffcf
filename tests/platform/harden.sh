#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks that a program has the effects of its compiler's flags. `make harden` runs it on each
# build.
#   sh tests/platform/harden.sh NAME PROGRAM PROBE MARK...
# PROBE is tests/platform/harden_probe.c, built with the same flags. A mark shows that a flag has
# had an effect, not that it has had it in each place.
# Prints each mark that is missing, then "NAME: N passed, N failed, 0 skipped". Needs binutils.
name=$1 program=$2 probe=$3
shift 3
passed=0 failed=0
headers=$(readelf -hlWd "$program")
symbols=$(nm "$program" && nm -D "$program" 2>/dev/null)
code() { objdump -d --no-show-raw-insn "$program"; }
has() { printf '%s\n' "$1" | grep -Eq -e "$2"; }
is_marked() {
    case $1 in
    fortify) has "$symbols" '__[a-z]+_chk(@|$)' ;;
    # A length that is known at run time only: level 2 does not check it.
    fortify-3)
        { "$probe" 0 && ! said=$("$probe" 1 2>&1); } 2>/dev/null &&
            has "$said" 'buffer overflow detected'
        ;;
    # A page of the stack is touched before the next one is taken.
    stack-clash) code | grep -A 1 'sub  *\$0x1000,%rsp' | grep -Eq '(orq|movq)  *\$0x0,\(%rsp\)' ;;
    # A public function that the program does not use is left out, though it is extern.
    lto) has "$symbols" ' [Tt] volt_' && ! has "$symbols" ' [Tt] volt_watch_set_if$' ;;
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
